/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are kept as a whole, for disk.c. With the lock of the cache held, unless said. */
#ifndef CLIENT_DISK_WHOLE_H
#define CLIENT_DISK_WHOLE_H

#include "client/disk/folder.h"

int whole_open(const struct cl_disk *disk, uint32_t number, int flags);
/* The whole of a file that has one, or is to have one: a reference. NULL: none. */
struct cl_disk_whole *whole_hold(struct cl_disk_file *file);
/* Without the lock. Keeps a block, and gives the reference back. -EAGAIN: the whole was dropped meanwhile. */
int whole_write_block(struct cl_disk_whole *whole, uint64_t number, const void *bytes,
		      uint32_t length);
/* Takes it from its file, with all blocks. place_bury() has to follow. */
void whole_drop(struct cl_disk_whole *whole);
/* At the start, without the lock: those without a file, and files of none. */
void wholes_tidy(struct cl_disk *disk);

#endif
