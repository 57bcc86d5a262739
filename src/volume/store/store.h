/* SPDX-License-Identifier: BSD-2-Clause */
/* The store: volumes in a directory of their own. Opening, volumes, clones, counters. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <limits.h>

#include "volume/store/disk/layer.h"
#include "volume/interface.h"

enum store_durability {
	STORE_LAZY,  /* a killed process loses nothing, a dead machine at most the last second */
	STORE_STRICT /* what was acknowledged is on stable storage */
};

#define STORE_SCRUB_NEVER UINT_MAX

struct store_options {
	const char *path; /* the directory */
	struct store_layer
		*layer; /* in place of `path`, which then is only a name; owned by the caller */
	enum store_durability durability;
	size_t memory;	/* bytes of all caches; 0: 64 MiB */
	unsigned files; /* open files that are kept; 0: 256 */
	unsigned small; /* bytes of a file that is kept in the database, at most 64 KiB; 0: 8192 */
	bool timed;	/* measure the CPU time of commits; for tests */
	/* The data are verified in the background: KiB in a second, 0: 8192; or STORE_SCRUB_NEVER. */
	unsigned scrub_kib;
	unsigned scrub_wait_ms; /* after the opening; 0: ten minutes */
	/*
	 * A directory for the copy of the metadata, best on another disk. NULL: the copy is in the store, unless there is
	 * to be none, or there is a `layer`: then it is made in `copy_layer`, unless that is NULL.
	 */
	const char *copy;
	bool no_copy;
	struct store_layer *copy_layer; /* for tests; owned by the caller */
	bool no_reserve; /* take no room that is given up on a full disk; for tests */
	/* level: as in syslog, 3 error, 4 warning, 6 information. May be NULL. */
	void (*log)(void *arg, int level, const char *line);
	void *arg;
};

/*
 * Make an empty store. The directory may be missing or empty. 0, or -errno with one line in
 * message[STORE_MESSAGE_MAX] that names the directory and the remedy.
 */
int store_make(const struct store_options *options, char *message);
/*
 * Open a store for this process alone. Never needs a repair first. -EBUSY: another process has it;
 * -EPROTO, -ENOTSUP: made by a newer version, or one that is too old; -ENOENT, -EINVAL: there is none; -EBADMSG: damaged; with a
 * message as above. To be closed by store->ops->close(), which flushes.
 */
int store_open(const struct store_options *options, struct store **store, char *message);

/* Identifies the store; 16 bytes. */
void store_uuid(struct store *store, uint8_t uuid[16]);

/*
 * The highest id of a user and the lowest of a group that were given out, as far as the store was told: ACLs and owners outlive
 * the database of users. 0: none. 0 or a result.
 */
int store_note_ids(struct store *store, int32_t user, int32_t group);
int store_noted_ids(struct store *store, int32_t *user, int32_t *group);

/*
 * A member: ids and names of its volumes are given out by a cell, never by the store. store_set_member() remembers that, or no longer.
 * 0 or a result.
 */
int store_set_member(struct store *store, bool member);
int store_is_member(struct store *store, bool *member);

/* -- volumes -- */

struct store_new_volume {
	const char *name; /* without suffix; afs_volume_name_has_room() */
	uint32_t id;	  /* 0: the next free one, and two for its clones */
	uint64_t quota_kib;
	int32_t owner;		     /* of the root directory */
	uint32_t mode;		     /* of the root directory; 0: 0755 */
	const struct store_acl *acl; /* of the root directory; NULL: administrators only */
};
/* 0; -EEXIST (name), STORE_VVOLEXISTS (id), -EINVAL. */
int store_volume_create(struct store *store, const struct store_new_volume *volume, uint32_t *id);
/* The clones of a read-write volume must be gone: else -ENOTEMPTY. Its data go in the background. */
int store_volume_remove(struct store *store, uint32_t id);
/* -EEXIST. Clones are renamed with it. */
int store_volume_rename(struct store *store, uint32_t id, const char *name);
int store_volume_offline(struct store *store, uint32_t id, const char *message);
/*
 * `permits` (may be NULL) is asked first whether a read-write volume whose root has this access list may be served: if
 * not, -EACCES, and the volume has not been online. Not asked if the root is damaged. The thread of a commit calls it:
 * it must not wait, nor change the store.
 */
int store_volume_online(struct store *store, uint32_t id,
			bool (*permits)(void *arg, const struct store_acl *root), void *arg);
/*
 * Make or replace the read-only or backup clone of a read-write volume, in one step and without a
 * copy. One that was off-line stays so. -ENAMETOOLONG: it could not be named. *clone: its id. The cost does not depend on the size of the volume.
 */
int store_volume_clone(struct store *store, uint32_t id, enum store_type type, uint32_t *clone);
/*
 * Call `each` for every vnode that was made, changed or removed in a read-write volume after a
 * clone of it was taken; nonzero stops and is returned. The cost is that of the changes.
 */
int store_volume_changes(struct store *store, uint32_t clone,
			 int (*each)(void *arg, uint32_t vnode, bool gone), void *arg);

/* -- objects by number, for administrators: also of volumes that are off-line -- */

struct store_object {
	struct store_fid fid;
	enum store_kind kind;
	uint32_t mode;
	struct store_fid parent; /* the directory above; the root: itself */
	const char *text;	 /* of a symbolic link, as long as it is told of; else NULL */
};
/* What has the number, without its text: 0; STORE_VNOVNODE; -EIO: its record is damaged; or another result. */
int store_object(struct store *store, uint32_t volume, uint32_t vnode, struct store_object *object);

struct store_object_scan {
	unsigned kinds; /* 1 << kind: which objects are wanted */
	/* Nonzero stops. It may use the store. */
	int (*each)(void *arg, const struct store_object *object);
	bool (*stopped)(void *arg); /* asked now and then: true ends with -EINTR; may be NULL */
	void *arg;
};
/*
 * Each object of a volume, but for damaged ones, in the order of numbers. One that changes meanwhile may be told of as it
 * was. 0, what `each` returned, or a result. STORE_VBUSY: a clone was replaced meanwhile.
 */
int store_objects(struct store *store, uint32_t volume, const struct store_object_scan *scan);

/* -- maintenance -- */

/* Everything acknowledged is on stable storage afterwards. */
int store_flush(struct store *store);

/* Counters of one store; all values since it was opened unless stated. */
struct store_stats {
	uint64_t operations, commits, flushes; /* operations per commit: how well calls share one */
	uint64_t status_hits, status_misses;   /* of the cache of vnodes */
	uint64_t directories;		       /* that were read from the database */
	uint64_t bytes_written, bytes_read;
	uint64_t bytes_copied; /* by writers within the store: the rest of blocks */
	uint64_t scrubbed_bytes, scrub_damaged,
		scrub_passes; /* in the background: bytes read, damaged blocks */
	uint32_t
		scrub_last; /* when the last pass was complete, in seconds since 1970; 0: none was */
	uint64_t damaged; /* records that failed verification */
	uint64_t copy_age_ms; /* of the copy of the metadata, now; UINT64_MAX: there is none */
	uint64_t pruning; /* versions that wait to be removed, now */
	size_t memory;	  /* of caches, now */
};
void store_stats(struct store *store, struct store_stats *stats);

/*
 * What one commit has cost at most since the last call: all writers wait for it. The time from its first operation until
 * it has ended, flushes included; and rows of the database that were read and changed.
 */
struct store_commit_costs {
	uint64_t ns, cpu_ns; /* cpu_ns: if store_options.timed */
	uint64_t
		paused_ns; /* that no commit could run, or that one waited for the log to become shorter */
	uint32_t rows;
};
void store_commit_costs(struct store *store, struct store_commit_costs *costs);

#endif
