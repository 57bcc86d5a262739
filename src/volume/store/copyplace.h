/* SPDX-License-Identifier: BSD-2-Clause */
/* Which directory has the copy of the metadata: the one that is named, else the one that the store remembers. */
#ifndef STORE_COPYPLACE_H
#define STORE_COPYPLACE_H

#include <limits.h>

#include "volume/store/store.h"

/*
 * The store remembers a directory of its own accord: the file COPY has the path, and the inode of the store, so that the copy of
 * a whole store does not write to the directory of the first one.
 */
struct copyplace {
	struct store_layer *layer; /* that of the store if the copy is in there; NULL: it has none, or cannot be opened */
	bool own;		   /* not the store's, nor the caller's */
	bool absent;		   /* it cannot be opened, for `result` */
	bool named;		   /* by the options */
	bool shares;		   /* it is on the disk of the store */
	int result;
	char path[PATH_MAX]; /* of another directory, or of one that was named; or "" */
};

/* Find and open it. `store`: the layer of the store. `lock`: keep other processes out of another directory. */
void copyplace_open(struct copyplace *place, const struct store_options *options,
		    struct store_layer *store, bool lock);
/* From now on it is used if none is named. 0 or -errno. */
int copyplace_remember(const struct copyplace *place, const struct store_options *options,
		       struct store_layer *store);
/* Zeros are allowed. */
void copyplace_close(struct copyplace *place);
/* Why it cannot be opened, as a phrase. */
const char *copyplace_reason(const struct copyplace *place);

#endif
