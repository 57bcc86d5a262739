/* SPDX-License-Identifier: BSD-2-Clause */
/* The database: connections, tables and statements. Beside the VFS, the only part that knows SQLite. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include "volume/store/db/record.h"
#include "volume/store/disk/report.h"

/*
 * Functions return 0; a positive volume code, which only a full disk gives; or -errno: -ENOENT,
 * -EIO (damage or a fault of the disk), -EROFS, -ENOMEM, ... A connection belongs to one thread at
 * a time.
 */
struct db;

struct db_options {
	const char *path, *vfs;
	bool create, read_only;
	bool full; /* each commit is flushed */
	unsigned cache_kib;
	int (*vfs_errno)(void); /* the last error of a file in this thread */
	struct report *report;	/* damaged records are named there */
};

int db_open(const struct db_options *options, struct db **db);
void db_close(struct db *db); /* NULL is allowed */
void db_leave(struct db *db); /* the same, without moving the log to the database */
/* Read what every start reads: 0, or -EIO if that is damaged. */
int db_probe(struct db *db);
int db_make(struct db *db); /* the tables */

/*
 * -- transactions. SQLite undoes one by itself after some errors: then all functions fail until
 * db_rollback(), so that nothing is committed on its own. --
 */

int db_begin(struct db *db);	  /* for writing: takes the lock of writers */
int db_begin_read(struct db *db); /* a view that does not change until db_end_read() */
void db_end_read(struct db *db);
int db_commit(struct db *db);
void db_rollback(struct db *db);
/* Rows that were read, inserted, changed and deleted since the connection was opened, for differences. */
uint32_t db_rows(const struct db *db);
/* Move pages from the log to the database without waiting. *left: those that are in the log only. */
int db_checkpoint(struct db *db, unsigned *left);
/* Move all of the log, waiting for readers, and empty it. */
int db_checkpoint_all(struct db *db);
/* After a db_checkpoint() that left nothing: make the file of the log empty, unless a reader uses it. */
void db_log_cut(struct db *db);

/* -- numbers by name -- */

int db_number_get(struct db *db, const char *name, uint64_t *value); /* -ENOENT */
int db_number_put(struct db *db, const char *name, uint64_t value);
int db_number_delete(struct db *db, const char *name);
/* Call `each` for the numbers whose names begin with a prefix. Nonzero stops. */
int db_numbers(struct db *db, const char *prefix,
	       int (*each)(void *arg, const char *name, uint64_t value), void *arg);

/* The store that the database belongs to. */
int db_identity_put(struct db *db, const uint8_t uuid[16]);
int db_identity_get(struct db *db, uint8_t uuid[16]); /* -ENOENT */

/* -- volumes -- */

/* A damaged record is given with `damaged`, and its id and name only. Nonzero stops. */
typedef int (*db_volume_fn)(void *arg, const struct volrec *volume, bool damaged);
int db_volumes(struct db *db, db_volume_fn each, void *arg);
/* One of them: 0 or -ENOENT. */
int db_volume_get(struct db *db, uint32_t id, struct volrec *volume, bool *damaged);
/* A new one, or one with a new name. */
int db_volume_put(struct db *db, const struct volrec *volume);
int db_volume_update(struct db *db, const struct volrec *volume); /* the name stays */
int db_volume_delete(struct db *db, uint32_t id);

/* -- vnodes -- */

/*
 * The row with the greatest epoch up to `key->epoch`. 0 and *version, which may be a tombstone
 * (v.kind 0); -ENOENT: no row; -EIO: damaged.
 */
int db_vnode_get(struct db *db, const struct vnode_key *key, struct version **version);
/* The same with all slots of its content. */
int db_vnode_get_whole(struct db *db, const struct vnode_key *key, struct version **version);
int db_vnode_insert(struct db *db, const struct vnode_key *key, const struct version *version);
int db_vnode_update(struct db *db, const struct vnode_key *key, const struct version *version);
int db_vnode_delete(struct db *db, const struct vnode_key *key);
/* All rows of a vnode, the newest first. Damaged ones are skipped, and counted in *damaged. */
typedef int (*db_row_fn)(void *arg, const struct vnode_key *key, const struct version *version);
int db_vnode_rows(struct db *db, uint32_t group, uint32_t vnode, unsigned *damaged, db_row_fn each,
		  void *arg);
/* Rows of a group in the order of (vnode, epoch), from that of *key on; a damaged row has no version. */
int db_group_rows(struct db *db, const struct vnode_key *from, db_row_fn each, void *arg);
/* The same in outline, from a vnode up to another one. A nonzero result of `each` stops, as there. */
typedef int (*db_outline_fn)(void *arg, const struct outline *outline);
int db_group_outlines(struct db *db, uint32_t group, uint32_t from, uint32_t below,
		      db_outline_fn each, void *arg);
/* The group with the smallest number above *group, of those that have rows. -ENOENT. */
int db_group_next(struct db *db, uint32_t *group);
/* Up to `room` rows with after < (epoch, vnode) and epoch <= until, in this order. *count: how many. */
struct db_change {
	uint32_t epoch, vnode;
};
int db_changes(struct db *db, uint32_t group, const struct db_change *after, uint32_t until,
	       struct db_change *change, unsigned room, unsigned *count);

/* -- pages of directories: for each page the row with the greatest epoch up to that asked for -- */

/* -EIO: it is missing or damaged. */
int db_page_get(struct db *db, const struct vnode_key *key, unsigned page, uint8_t out[STORE_PAGE]);
/* All pages of a directory of `length` bytes. -EIO: one is missing or damaged; -EBADMSG: they do not fit together. */
int db_directory_get(struct db *db, const struct vnode_key *key, uint64_t length,
		     struct store_pages **pages);
/* A row with an epoch above `shared` is replaced; else a new one is made. */
int db_page_put(struct db *db, const struct vnode_key *key, uint32_t shared, unsigned page,
		const uint8_t bytes[STORE_PAGE]);
/* Delete the pages with epochs above key->epoch. */
int db_pages_delete(struct db *db, const struct vnode_key *key);
/* `most` of them at most; *count: how many. */
int db_pages_delete_some(struct db *db, const struct vnode_key *key, unsigned most,
			 unsigned *count);
/*
 * Delete pages with epochs in (from, to] that a row with an epoch up to `next` hides from all newer
 * views; next = 0: all of them.
 */
struct db_hidden {
	uint32_t from, to, next;
};
int db_pages_prune(struct db *db, uint32_t group, uint32_t vnode, const struct db_hidden *hidden);
/* -- contents of small files; slots.h has those of large ones -- */

struct db_small {
	uint64_t id;
	uint32_t group, vnode;
};
int db_small_get(struct db *db, const struct db_small *small, struct blob **blob); /* -ENOENT */
int db_small_put(struct db *db, const struct db_small *small, const struct blob *blob);
int db_small_delete(struct db *db, uint64_t id);
/* Ascending, those above `after`. Nonzero stops. */
int db_smalls(struct db *db, uint64_t after, int (*each)(void *arg, uint64_t id), void *arg);

/* -- objects -- */

struct db_object {
	uint64_t id;
	struct store_owner owner;
	uint64_t
		refs; /* slots that refer to it, in records of vnodes and in rows; 0: its file may be there */
	/* In memory: blocks of it that nothing refers to; 0: it is all of it. */
	uint64_t first;
	uint32_t count;
};
int db_object_get(struct db *db, uint64_t id, struct db_object *object); /* -ENOENT */
int db_object_put(struct db *db, const struct db_object *object);
int db_object_delete(struct db *db, uint64_t id);
typedef int (*db_object_fn)(void *arg, const struct db_object *object);
int db_objects(struct db *db, bool dead_only, db_object_fn each, void *arg);

/* -- the queue of pruning -- */

struct db_prune {
	uint64_t id; /* 0: a new one */
	uint32_t group;
	uint32_t epoch; /* of the clone that is gone; 0: the whole group */
	struct db_change done;
};
/* The first one, of all or of a group; group 0: of all. -ENOENT. */
int db_prune_first(struct db *db, uint32_t group, struct db_prune *prune);
int db_prune_put(struct db *db, const struct db_prune *prune);
int db_prune_delete(struct db *db, uint64_t id);
int db_prune_count(struct db *db, uint32_t group, uint64_t *count); /* of a group */
/* Whether a whole group waits to be removed. */
int db_prune_has(struct db *db, uint32_t group, bool *has);

/* -- entries of the database of locations, whose form is another module's; `length` 0: there is none any more -- */

#define DB_LOCATIONS_LOST "locations lost" /* a number, if some may be missing after a rescue */
int db_make_locations(struct db *db);	   /* the table, if it is missing */
int db_location_put(struct db *db, uint32_t id, const void *entry, size_t length);
/* Ascending. Nonzero stops. */
int db_locations(struct db *db,
		 int (*each)(void *arg, uint32_t id, const void *entry, size_t length), void *arg);

/* -- checking -- */

/* One line for each fault. */
int db_integrity(struct db *db, bool fast, void (*each)(void *arg, const char *line), void *arg);
/* A statement that runs ends with -EINTR, unless it ends by itself. Any thread. */
void db_interrupt(struct db *db);

/* -- connections for reading, which threads borrow -- */

struct readers;
int readers_create(const struct db_options *options, unsigned count, struct readers **readers);
void readers_destroy(struct readers *readers); /* NULL is allowed */
/* Waits until one is free. It is opened when it is first needed: 0 or a result of db_open(). */
int readers_get(struct readers *readers, struct db **db);
void readers_put(struct readers *readers, struct db *db);

#endif
