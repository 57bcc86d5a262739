/* SPDX-License-Identifier: BSD-2-Clause */
/* Space on the disk, and quotas. */
#ifndef STORE_SPACE_H
#define STORE_SPACE_H

#include "volume/store/txn/core.h"

#define SPACE_SPARE 1024 /* KiB by which a StoreData may exceed a quota */

/* KiB that an object is charged. */
uint64_t space_blocks(const struct vnode *v);
uint64_t space_blocks_of(uint64_t length);
/*
 * Free and total KiB of the disk. Space that is kept for the log, or promised to writers, counts as used.
 */
int space_disk(struct core *core, struct store_space *space);
/* KiB. */
struct space_need {
	uint64_t growth;   /* of the volume */
	uint64_t spare;	   /* of the growth: may exceed the quota */
	uint64_t promised; /* of the quota: the caller has reserved them with volumes_promise() */
	uint64_t disk;	   /* of the disk, that the caller has not reserved */
};
/* 0, STORE_VDISKFULL, STORE_VOVERQUOTA, -errno. */
int space_check(struct core *core, const struct volrec *volume, const struct space_need *need);
/*
 * Whether a transaction of many rows has room: what the logs of the database and of its copy hold goes to both on top of the rows.
 * 0, STORE_VDISKFULL, -errno.
 */
int space_check_rows(struct core *core, uint64_t kib);
/*
 * Promise room on the disk, as volumes_promise() does. 0, STORE_VDISKFULL; -errno: nothing is given
 * back.
 */
int space_promise(struct core *core, uint64_t kib, uint64_t held);
void space_give_back(struct core *core, uint64_t kib);

/*
 * -- the file "reserve" takes room on the disk that is given up when other programs have filled it: a store can be opened
 * then, and files can be removed --
 */

/* Before the database is opened: give the reserve up if the disk is full. */
void reserve_begin(struct core *core);
/* A commit failed for want of space. */
void reserve_release(struct core *core);
/* Take the room again, if it was given up and the disk has it. By one thread at a time. */
void reserve_make(struct core *core);

#endif
