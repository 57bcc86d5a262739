/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a new store. */
#ifndef STORE_MAKE_H
#define STORE_MAKE_H

#include "volume/store/db/db.h"

struct store_filling {
	struct report *report;
	/* Fills the database, in a transaction. NULL: it stays empty. *uuid: that of the store, which may be changed. 0 or a result. */
	int (*fill)(void *arg, struct db *db, uint8_t uuid[16]);
	void *arg;
};

/* In an empty directory; FORMAT comes last, so that before there is no store. 0 or -errno. */
int make_store_files(struct store_layer *layer, const struct store_filling *filling);
/* A database and its mark, in a folder that is there. 0 or a result. */
int make_meta_files(struct store_layer *layer, const char *folder,
		    const struct store_filling *filling, uint8_t uuid[16]);

#endif
