/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by check.c (the database and objects) and checkview.c (one volume or clone). */
#ifndef STORE_CHECKING_H
#define STORE_CHECKING_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "volume/store/store.h"
#include "volume/store/txn/core.h"

/* Numbers that were seen, sorted when they are searched. */
struct number_set {
	uint64_t *number;
	size_t count, room;
	bool sorted;
};
int number_set_add(struct number_set *set, uint64_t number); /* 0 or -ENOMEM */
bool number_set_has(struct number_set *set, uint64_t number);

struct checking {
	struct core *core;
	struct db *db;	  /* a view of the database that does not change */
	struct db *fresh; /* for a second look at what may have changed since */
	const struct store_checker *checker;
	int faults;
	uint64_t looked_at, all; /* objects */
	/* Set by the watching thread: what follows is not complete, so that no fault is one. */
	atomic_bool stop;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ended;			   /* lock: the check has; signals `wake` */
	struct number_set smalls, objects; /* that rows refer to */
};

__attribute__((format(printf, 2, 3))) void checking_fault(struct checking *checking,
							  const char *format, ...);
/* -EINTR once the check is stopped, else 0. */
static inline int checking_stopped(struct checking *checking)
{
	return atomic_load_explicit(&checking->stop, memory_order_relaxed) ? -EINTR : 0;
}
/* Report the progress at the beginning and after some objects. */
void checking_progress(const struct checking *checking);
/* One volume or clone: vnodes, directories, links, quota, contents. 0 or -errno. */
int checkview(struct checking *checking, const struct volrec *volume);

#endif
