/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeing changes in the tree: inotify where it works, and a slow sweep. */
#ifndef FILESERVER_WATCH_H
#define FILESERVER_WATCH_H

#include "fileserver/callbacks/clients.h"
#include "fileserver/volume/volume.h"

struct fsd_watch;

/*
 * Start the thread. At most `max` directories are watched; of others, and of file systems that do
 * not tell, changes are seen by the sweep (256 objects a second) or when they are asked for.
 * Without inotify the sweep alone does it. Returns NULL without memory or thread.
 */
struct fsd_watch *fsd_watch_start(struct fsd_volume *volume, struct fsd_clients *clients,
				  unsigned max);
void fsd_watch_stop(struct fsd_watch *watch);

/*
 * A promise is about to be given on the object of this record: watch its directory (or itself, if
 * it is one). `path` is the object's. Cheap if that is done already. Any thread.
 */
void fsd_watch_add(struct fsd_watch *watch, const struct fsd_record *record, const char *path);

/* Directories watched now. */
size_t fsd_watch_count(struct fsd_watch *watch);

#endif
