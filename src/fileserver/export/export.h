/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported directory as a store: one read-only volume, whose objects change in place. */
#ifndef FILESERVER_EXPORT_H
#define FILESERVER_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "fileserver/callbacks/callbacks.h"
#include "fileserver/guard/guard.h"
#include "fileserver/export/tree.h"
#include "fileserver/export/object.h"
#include "volume/interface.h"

/*
 * The target of `who` in a struct store_caller. Without it the caller sees everything.
 */
struct fsd_viewer {
	struct fsd_who who;
	const void *actor; /* as in fsd_change_fn */
	bool promised;	   /* a promise was given on the object: watch it */
};

/* The id of the read-write volume from which the read-only one would have been released. */
#define FSD_RW_ID(id) ((id)-1)

/* -- watching the tree: inotify where it works, and a slow sweep -- */
struct fsd_watch;
/*
 * Start the thread. At most `max` directories are watched. The sweep (256 objects per second) notices
 * changes in others, or a request for the object. Returns NULL without memory or thread.
 */
struct fsd_watch *fsd_watch_start(struct fsd_volume *volume, struct fsd_clients *clients,
				  unsigned max);
void fsd_watch_stop(struct fsd_watch *watch);
/* Watch the directory of this object, or itself: a promise is about to be given. Any thread. */
void fsd_watch_add(struct fsd_watch *watch, const struct fsd_record *record, const char *path);
/* The number of directories that are watched. */
size_t fsd_watch_count(struct fsd_watch *watch);

/* Everything must outlive the store. */
struct fsd_export_options {
	struct fsd_volume *volume;
	struct fsd_usage *usage; /* NULL: sizes are reported as 0 */
	struct fsd_guard *guard; /* NULL: everybody may see everything */
	struct fsd_watch *watch; /* may be NULL */
	uint32_t released;	 /* `sync` of the volume; 0: its date of creation */
};

/*
 * The rights of callers are those of "other" in the tree, under --require and --allow. All
 * operations that write are missing. Only `volume` reports sizes, because that may begin a count of
 * the tree; it does not wait for the count. NULL without memory.
 */
struct store *fsd_export_open(const struct fsd_export_options *options);

#endif
