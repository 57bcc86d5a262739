/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores on a disk in memory. */
#ifndef TESTS_STORE_DISKSTORE_H
#define TESTS_STORE_DISKSTORE_H

#include "tests/volume/store/crashdisk.h"
#include "volume/store/store.h"

/* Why the last of these functions failed. */
extern char diskstore_message[STORE_MESSAGE_MAX];
/* Lines of the log since a store was opened. */
extern unsigned diskstore_lines;

/* Whether stores keep room for a full disk, which takes time on this one. */
extern bool diskstore_reserve;
/* Whether stores have a copy of the metadata, on the same disk. */
extern bool diskstore_copy;

/* Make a store, and open it with the volume "v"; a failure ends the test. */
struct store *diskstore_make(struct crashdisk *disk, struct store_layer **layer, uint32_t *volume);
/* NULL: diskstore_message says why. The layer is to be closed in any case. */
struct store *diskstore_open(struct crashdisk *disk, enum store_durability durability,
			     struct store_layer **layer);
/* `store` may be NULL. */
void diskstore_close(struct store *store, struct store_layer *layer);
/* Faults of a full check, each of which is printed after `what`; or -errno. */
int diskstore_faults(struct store *store, const char *what);
/* state_dump(); a failure ends the test. */
char *diskstore_dump(struct store *store, const char *what);

#endif
