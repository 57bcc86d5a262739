/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of volumes in memory: what was committed. */
#ifndef STORE_VOLUMES_H
#define STORE_VOLUMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "volume/store/db/record.h"

struct volume;

/* `lock` covers everything. */
struct volumes {
	pthread_rwlock_t lock;
	struct htable by_id, by_name;
	struct volume **order; /* by id; `count` of them, without hidden ones */
	struct volume **plain; /* of these, the ones that no cell has; `plain_count` */
	uint32_t *
		kept; /* ids of their clones, also of those that do not exist, ascending; `kept_count` */
	size_t count, plain_count, kept_count;
	size_t room;		       /* of `order` and `plain`; `kept` has twice as much */
	uint32_t of_type[STORE_TYPES]; /* undamaged ones */
	struct volume *spare; /* memory for new ones */
	unsigned spares;
	uint64_t serial; /* of the last one that was added */
};

/* Where the vnodes of a volume are found, and who owns it. */
struct view {
	uint32_t volume, group;
	uint32_t epoch; /* CACHE_HEAD for a read-write volume */
	uint8_t type;
	int32_t owner;
};

int volumes_init(struct volumes *volumes); /* 0 or -ENOMEM */
void volumes_fini(struct volumes *volumes);

/* 0; STORE_VNOVOL, STORE_VSALVAGE. Off-line volumes as well. */
int volumes_get(struct volumes *volumes, uint32_t id, struct volrec *volume);
/*
 * As above, but STORE_VNOVOL for one that was removed before its clones. Results for which volumes_has_view(), such as STORE_VBUSY while
 * the contents are replaced: *view is filled nevertheless.
 */
int volumes_view(struct volumes *volumes, uint32_t id, struct view *view);
static inline bool volumes_has_view(int result)
{
	return !result || result == STORE_VOFFLINE || result == STORE_VBUSY ||
	       result == STORE_VMOVED;
}
/* Codes that readers and writers of a volume get from now on; 0: none. False: there is no such volume. Not kept on the disk. */
bool volumes_hold(struct volumes *volumes, uint32_t id, int for_readers, int for_writers);
/* Find a volume by its name, with the suffix of a clone. */
int volumes_by_name(struct volumes *volumes, const char *name, struct volrec *volume);
/* The volume with the smallest id above `id`; that which has `at` before it of those that no cell has. Not hidden ones. */
int volumes_next(struct volumes *volumes, uint32_t id, struct volrec *volume);
int volumes_at(struct volumes *volumes, uint32_t at, struct volrec *volume);
void volumes_totals(struct volumes *volumes, struct store_totals *totals);
/* Whether an id, or a name, is in use, also by a damaged volume. */
bool volumes_has(struct volumes *volumes, uint32_t id);
/* Whether an id is in use, or kept for a clone. */
bool volumes_keeps(struct volumes *volumes, uint32_t id);
bool volumes_has_name(struct volumes *volumes, const char *name);

/* Memory for that many new volumes, so that volumes_put() does not fail: 0 or -ENOMEM. */
int volumes_reserve(struct volumes *volumes, unsigned count);
/* A new volume or a new record; one thread at a time. 0 or -ENOMEM. */
int volumes_put(struct volumes *volumes, const struct volrec *volume, bool damaged);
void volumes_drop(struct volumes *volumes, uint32_t id);
/*
 * Promise a writer that a volume may grow by so many KiB more than the `held` that it was promised before, in one step
 * with the look at what others were promised. *promise: 0, or the number that the first call has set, since the volume
 * may be removed meanwhile, and another one get its id. 0; STORE_VOVERQUOTA: it would exceed the quota by more than
 * `spare`, and what was held is given back in the same step, so that of several writers the last one goes on;
 * STORE_VNOVOL.
 */
int volumes_promise(struct volumes *volumes, uint32_t id, uint64_t kib, uint64_t held,
		    uint64_t spare, uint64_t *promise);
void volumes_take_back(struct volumes *volumes, uint32_t id, uint64_t promise, uint64_t kib);
/* How often a directory of the volume got another one above it. For those who looked at its tree before a commit. */
uint64_t volumes_moves(struct volumes *volumes, uint32_t id);
void volumes_moved(struct volumes *volumes, uint32_t id);
/* KiB that are promised to all running writers of a volume. */
uint64_t volumes_promised(struct volumes *volumes, uint32_t id);

#endif
