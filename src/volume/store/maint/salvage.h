/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the trees of volumes consistent after records were lost. */
#ifndef STORE_SALVAGE_H
#define STORE_SALVAGE_H

#include "volume/store/db/db.h"

struct salvage {
	/* Called with a line for each thing that is lost or was moved. May be NULL. */
	void (*line)(void *arg, const char *line);
	void *arg;
	/* The counts of what was done. */
	uint64_t kept;	    /* files, directories and links */
	uint64_t found;	    /* of them, those that got a name in "lost+found" */
	uint64_t lost;	    /* names whose object is gone */
	uint64_t damaged;   /* directories that may have lost names */
	uint64_t volumes;   /* read-write ones */
};

/*
 * In a transaction, for a database that no store has open: each read-write volume becomes a tree. Names of lost objects
 * go. Objects without a name get one in the directory "lost+found" of their volume. Volumes without a record get a new
 * one. Sums are made right. `incarnation`: of the store, above all that there were. 0 or a result.
 */
int salvage_volumes(struct db *db, uint32_t incarnation, struct salvage *salvage);

#endif
