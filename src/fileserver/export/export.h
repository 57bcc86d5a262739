/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported directory as a store: one read-only volume, whose objects change in place. */
#ifndef FILESERVER_EXPORT_H
#define FILESERVER_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "fileserver/callbacks/callbacks.h"
#include "fileserver/guard/guard.h"
#include "fileserver/tree/tree.h"
#include "fileserver/volume/volume.h"
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
