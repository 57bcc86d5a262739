/* SPDX-License-Identifier: BSD-2-Clause */
/* The metadata of a store, made anew of whatever can be read of a damaged one: by a start and by a rescue. */
#ifndef STORE_REBUILD_H
#define STORE_REBUILD_H

#include "volume/store/db/db.h"
#include "volume/store/upkeep.h"

struct rebuild {
	struct store_rescue *out; /* gets the lines and the counts */
	struct store_layer *source;
	struct store_layer *copy;     /* with the copy of the metadata; NULL: none is used */
	struct store_layer *contents; /* with the files of contents */
	bool before;		      /* the source has the format before */
	bool copy_only;		      /* nothing is read of the database */
	bool in_place; /* files that nothing refers to any more stay, without a record */
	bool known;    /* `uuid` is that of the store */
	uint8_t uuid[16];
	uint32_t incarnation; /* of the new metadata, above all that there were */
};

/* Fill a new database, in a transaction. *uuid: that of the store, if it is known. For struct store_filling. 0 or a result. */
int rebuild_database(struct rebuild *rebuild, struct db *db, uint8_t uuid[16]);

/* -- between its parts -- */

/* A line for the user. */
__attribute__((format(printf, 2, 3))) void rebuild_tell(const struct rebuild *rebuild,
							const char *format, ...);
/*
 * salvage.c: each read-write volume becomes a tree. Names of lost objects go: *lost of them. Objects without a name get one in the
 * directory "lost+found" of their volume. Volumes without a record get a new one. Sums are made right. 0 or a result.
 */
int rebuild_trees(struct rebuild *rebuild, struct db *db, uint64_t *lost);

#endif
