/* SPDX-License-Identifier: BSD-2-Clause */
/* A large local file to AFS over several paths: the contents appear in one step. For put and sync. */
#ifndef AFSCP_SCATTER_H
#define AFSCP_SCATTER_H

#include "afscp/session.h"

#define SCATTER_LEAST (8u << 20) /* bytes of files that go over several paths */

struct scatter {
	struct run *run;
	rxafs_object *object;
	const char *label;
	int fd;
	uint64_t size;
	struct rxafs_changes set;
	/* results */
	bool unread; /* the source could not be read: */
	int error;   /* an errno; 0: it became shorter */
	struct rxafs_attributes now;
};
/*
 * Store all of it with the tries of `t`, whose value says what ended it. *stored: it is there. False with COPY_GOOD: nothing was
 * stored, and one path is used. COPY_FAILED without a message: see `unread` and `t`.
 */
enum copy_result scatter_store(struct scatter *w, struct attempt *t, bool *stored);

#endif
