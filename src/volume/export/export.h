/* SPDX-License-Identifier: BSD-2-Clause */
/* An exported directory as a volume: one read-only volume, whose objects change in place. */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/export/tree.h"
#include "volume/interface.h"

/* level: as in syslog, 4 warning, 6 information. `line` may be NULL. Any thread. */
struct export_log {
	void (*line)(void *arg, int level, const char *line);
	void *arg;
};

/* -- the FIDs of the objects, kept in a file across restarts -- */

struct fids;
/*
 * Open the file, or make a new one. -EILSEQ: another format; -EBADMSG: the header is damaged; other errors of the file as
 * -errno. Damage further on is logged, and what follows it is dropped.
 */
int fids_open(const char *path, const struct export_log *log, struct fids **fids);
/* NULL is allowed. */
void fids_close(struct fids *fids);

/* -- the volume -- */

/* The target of `who` in a struct store_caller. Without it the caller sees everything. */
struct export_viewer {
	bool sees_all;	   /* whatever may_see() says */
	const void *who;   /* for may_see() */
	const void *actor; /* for changed() */
	bool promised;	   /* a promise was given on the object: watch it */
};

/* The part of a path that a caller may see. */
enum export_sight {
	EXPORT_SIGHT_NONE,
	EXPORT_SIGHT_WAY, /* a directory on the way to what it may see, not all that is in it */
	EXPORT_SIGHT_ALL  /* the path and what is below it */
};

/* Functions of the user of the volume. Any thread, without a lock. NULL: there is none. */
struct export_hooks {
	/* If it is NULL, every caller sees all paths. "" is the root. */
	enum export_sight (*may_see)(void *arg, const void *who, const char *path);
	/* The arguments for callers without and with an identity, of which access lists tell. */
	const void *anonymous, *authenticated;
	/*
	 * Promises on the object must be broken: its status or data changed, or it is gone. `actor` is that of the
	 * viewer whose call noticed the change, and learns of it from the reply; or NULL.
	 */
	void (*changed)(void *arg, const struct store_fid *fid, const void *actor);
	/* Whether there is a promise on the object: others need not be watched. */
	bool (*is_promised)(void *arg, const struct store_fid *fid);
	/* The next objects with promises after *cursor, at most `max`; all of them in turn. Returns their number. */
	size_t (*next_promised)(void *arg, size_t *cursor, struct store_fid *fids, size_t max);
	void *arg;
};

struct export_options {
	const char *name;
	const char *root;	    /* path of the directory, which identifies the tree */
	struct export_layer *layer; /* owned by the caller */
	struct fids *fids;	    /* the volume closes it */
	uint32_t new_id;	    /* volume id if the file of FIDs is new */
	bool all_files;		    /* also serve what "other" may not read */
	struct export_log log;
	struct export_hooks hooks;
};

/*
 * Open. If the file of FIDs was made for another tree it is emptied, and the volume gets a new creation date. The rights
 * of callers are those of "other" in the tree, as far as may_see() permits. All operations that write are missing. Only
 * `volume` reports sizes, because that may begin a count of the tree; it does not wait for the count. 0 or -errno:
 * then `fids` is open.
 */
int export_open(const struct export_options *options, struct store **store);

/* The id of the read-write volume from which the read-only one would have been released. */
#define EXPORT_RW_ID(id) ((id)-1)

/*
 * Start the threads, one that watches the tree and one that counts its objects. At most `watches` directories are watched
 * with inotify; a sweep (256 objects per second) notices changes in others, or a request for the object does. `released`:
 * `sync` of the volume; 0: its date of creation. Before any other call. False: no memory or thread.
 */
bool export_start(struct store *store, unsigned watches, uint32_t released);

/* The number of directories that are watched. */
size_t export_count_watches(struct store *store);

/* Number of objects, including directories, and KiB of their contents, at least one for each. */
struct export_used {
	uint64_t objects, kib;
};
/*
 * The latest result. If it is older than 10 minutes a new count begins, which looks at every file;
 * wait for it for at most wait_ms. During the first count the sums so far are returned. Any thread.
 */
void export_count_used(struct store *store, unsigned wait_ms, struct export_used *used);

#endif
