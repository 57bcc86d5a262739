/* SPDX-License-Identifier: BSD-2-Clause */
/* Space on the disk and quotas (afs-volumes 10.1). */
#ifndef STORE_SPACE_H
#define STORE_SPACE_H

#include "store/core.h"

#define SPACE_SPARE 1024 /* KiB by which a StoreData may exceed a quota */

/* KiB that an object is charged. */
uint64_t space_blocks(const struct vnode *v);
uint64_t space_blocks_of(uint64_t length);
/* Free and total KiB of the disk, less what writers were promised. */
int space_disk(struct core *core, struct store_space *space);
/*
 * Whether a volume may grow by `growth` KiB, of which `spare` do not count. 0, STORE_VDISKFULL,
 * STORE_VOVERQUOTA, -errno. `promised`: KiB of the disk and the quota that the caller has reserved
 * itself.
 */
int space_check(struct core *core, const struct volrec *volume, uint64_t growth, uint64_t spare,
		uint64_t promised);
/* Reserve; negative: give back. */
void space_promise(struct core *core, uint32_t volume, int64_t kib);

#endif
