/* SPDX-License-Identifier: BSD-2-Clause */
/* A new database in the place of one that no start can read. */
#ifndef STORE_REMAKE_H
#define STORE_REMAKE_H

#include "volume/store/txn/core.h"
#include "volume/store/upkeep.h"

/*
 * While the database is not open. All that can be read of it and of its copy is in the new one; the files of contents stay. The
 * files of the old one and of the copy get names with ".damaged". A stop on the way leaves the old state, or the new one
 * after remake_finish(). `copy`: NULL: there is none. 0; -ENODATA: no volume is left, and nothing has changed; or a result.
 */
int remake_metadata(struct core *core, struct store_layer *copy);
/* After a stop on the way: whether there is a new database, which is to be used. And do so: 0 or -errno. */
bool remake_is_complete(struct store_layer *layer);
int remake_finish(struct core *core);

/* A store that nobody has open; name: for lines. */
struct remake_place {
	struct store_layer *layer;
	struct report *report;
	const char *name;
};
/*
 * A new database of what the copy has alone, although it may lack changes. It may be stopped, and repeated. 0; -EBADMSG: the copy is
 * damaged, and nothing has changed; or a result. *out gets what was found.
 */
int remake_from_copy(const struct remake_place *place, struct store_layer *copy,
		     struct store_rescue *out);

#endif
