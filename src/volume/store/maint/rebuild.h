/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of a store, made anew out of whatever can be read of a damaged one. */
#ifndef STORE_REBUILD_H
#define STORE_REBUILD_H

#include "volume/store/db/db.h"

struct rebuild {
	struct store_layer *source;
	struct store_layer *copy; /* with the copy of the metadata; NULL: none is used */
	const char *copy_name;	  /* its directory, for lines; NULL: that of the store */
	bool in_place;	   /* objects that nothing refers to any more are kept: their files stay */
	uint64_t greatest; /* the greatest number of an object whose file is there */
	bool known;	   /* `uuid` is that of the store */
	uint8_t uuid[16];
	/* A line for each thing that is lost or was moved. May be NULL. */
	void (*line)(void *arg, const char *line);
	void *arg;

	/* What was found, as in struct store_rescue. */
	uint64_t pages, damaged_pages, volumes, files, found, lost, older;
	bool copy_only;
	/* The files of contents; NULL: records that are lost stay so. */
	struct store_layer *contents;
	uint64_t recordless; /* files that are made of contents alone */
};

/* Fill a new database, in a transaction. *uuid: that of the store, if it is known. For struct store_filling. 0 or a result. */
int rebuild_database(struct rebuild *rebuild, struct db *db, uint8_t uuid[16]);

#endif
