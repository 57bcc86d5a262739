/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the checker: check.c (the database and objects), checkview.c (one volume or clone). */
#ifndef STORE_CHECKING_H
#define STORE_CHECKING_H

#include "store/core.h"

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
	void (*each)(void *arg, const char *line);
	void *arg;
	int faults;
	struct number_set smalls, objects; /* that rows refer to */
};

__attribute__((format(printf, 2, 3))) void checking_fault(struct checking *checking,
							  const char *format, ...);
/* One volume or clone: vnodes, directories, links, quota, contents. 0 or -errno. */
int checkview(struct checking *checking, const struct volrec *volume);

#endif
