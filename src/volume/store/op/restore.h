/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a restore: the vnodes that came, and the check of them before they appear. */
#ifndef STORE_RESTORE_H
#define STORE_RESTORE_H

#include "volume/store/op/whole.h"

/* A set of numbers below STORE_RESTORE_VNODE_MAX. All zeros: empty. `byte` is to be freed. */
struct restore_bits {
	uint8_t *byte;
	size_t room;
};
int restore_bit_set(struct restore_bits *bits, uint32_t bit, bool *was); /* 0 or -ENOMEM */
bool restore_bit_get(const struct restore_bits *bits, uint32_t bit);
void restore_bit_clear(struct restore_bits *bits, uint32_t bit);

struct core *restore_core(const struct store_restore *restore);
struct view restore_view(const struct store_restore *restore);
/* Changes, which restore_flush() commits at the latest. `now`: the version that is there. */
int restore_remove(struct store_restore *restore, uint32_t vnode);
int restore_correct(struct store_restore *restore, uint32_t vnode, const struct version *now,
		    uint32_t links, uint32_t parent_unique);
int restore_flush(struct store_restore *restore);
/* So many vnodes of the volume came into the cache. One pass over a large volume leaves others their place. */
void restore_note_cached(struct store_restore *restore, unsigned count);

/*
 * Each directory is reached from the root by one name, and each name leads to an object of the directory. Corrects counts
 * of links, and removes files without a name. -EBADMSG with a message, or another result.
 */
int restore_verify(struct store_restore *restore, uint64_t *lost, char *message);

#endif
