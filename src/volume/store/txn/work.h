/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The changes of a transaction. Operations read and change versions in memory; what has changed is
 * written to the database once, and given to the caches after the commit.
 */
#ifndef STORE_WORK_H
#define STORE_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "volume/store/db/slots.h"
#include "volume/store/txn/cache.h"
#include "volume/store/txn/volumes.h"

/* A volume that a transaction has used. */
struct workvol {
	struct workvol *next;
	struct volrec rec; /* as it will be */
	bool changed;	   /* to be written */
	bool named;	   /* with its name */
	bool gone;	   /* removed */
	bool publish;	   /* was written */
	unsigned moves;	   /* directories of it that got another one above them */
};

/* A vnode of a read-write volume that a transaction has used. */
struct node {
	void *chain;
	struct node *next;
	struct workvol *vol;
	uint32_t vnode;
	struct version *base; /* its newest row, also a tombstone; NULL: none */
	struct version *now;  /* NULL: there is none; base: not changed */
	bool pages_forked;    /* the pages of `now` belong to this transaction */
	bool changed;	      /* to be written */
	bool publish;	      /* was written */
};

/* Objects that a commit made; or that nothing refers to any more, or to some blocks of them. */
struct object_list {
	struct db_object *item;
	size_t count, room;
	bool more; /* the background has rows of slots to delete (db_drop_put()) */
};

/* By how much the slots that refer to an object become more. */
struct ref_change {
	uint64_t object;
	int64_t delta;
};

/*
 * Directories whose entries an operation needs, and files whose map it needs, as its caller has read them before the
 * transaction: neither is read while others wait for the commit.
 */
#define WORK_LOADED 4
/* Rows of slots that a cut takes away in one transaction; and that are copied, so that all others can go in the background. */
#ifndef WORK_ROWS /* tests have fewer */
#	define WORK_ROWS 64
#endif
struct work_loaded {
	struct work_entries {
		uint32_t group, vnode;
		struct version *version; /* a reference; it has pages, or all slots */
	} entries[WORK_LOADED];
	unsigned next;		  /* the place of the next one */
	struct store_fid missing; /* after WORK_MISSING: the directory or file */
};

/* The parts of the store that a transaction uses. Constant, but for `numbers`. */
struct work_base {
	struct db *db;
	struct cache *cache;
	struct volumes *volumes;
	struct report *report;
	_Atomic uint64_t *numbers; /* the last number of an object or a small content */
	uint32_t incarnation;
};

/* One thread at a time: the one that commits. */
struct work {
	struct work_base base;
	struct htable nodes;
	struct node *first, **last; /* all nodes, in the order of their first use */
	struct workvol *volumes;
	struct object_list made, dead;
	size_t made_written; /* of `made`, those that are in the database */
	struct ref_change *refs; /* of objects, that are not in the database yet */
	size_t ref_count, ref_room;
	uint32_t now;	     /* seconds since 1970 */
	bool begun;	     /* a transaction of the database has begun */
	bool written;	     /* and something was written directly */
	bool refers;	     /* a new version refers to bytes in objects that may not be flushed */
	bool broken;	     /* an operation failed half done: the transaction must be undone */
	struct work_loaded *loaded; /* of the operation that is applied; NULL: it uses no entries */
};

int work_init(struct work *work, const struct work_base *base); /* 0 or -ENOMEM */
void work_fini(struct work *work);

/* -- for operations; 0 or a result, by which nothing has changed -- */

/* The volume: STORE_VNOVOL, STORE_VSALVAGE, STORE_VOFFLINE, -EROFS. */
int work_volume(struct work *work, uint32_t id, struct workvol **volume);
/* A volume, also if it is off-line or a clone. */
int work_any_volume(struct work *work, uint32_t id, struct workvol **volume);
/* A new volume. -EEXIST: the name is taken; STORE_VVOLEXISTS: the id. */
int work_volume_add(struct work *work, const struct volrec *record);
/* A new name: -EEXIST. */
int work_volume_rename(struct work *work, struct workvol *volume, const char *name);
/* A vnode, whether it is in use or not. */
int work_node(struct work *work, struct workvol *volume, uint32_t vnode, struct node **node);
/* A vnode in use: STORE_VNOVNODE. */
int work_live(struct work *work, struct workvol *volume, uint32_t vnode, uint32_t unique,
	      struct node **node);
/* An unused vnode for a new directory, or a new file or link. -ENOSPC: there is none. */
int work_free(struct work *work, struct workvol *volume, bool directory, struct node **node);
/*
 * The entries of a directory, which belong to node->now. WORK_MISSING: they are not in memory; the caller is to load
 * them, and to run the operation again.
 */
#define WORK_MISSING 1101
int work_pages(struct work *work, struct node *node, struct store_pages **pages);
/* All slots of a large file, which belong to node->now. WORK_MISSING. */
int work_content(struct work *work, struct node *node, const struct store_content **content);
/* The contents of a small file, for the caller. */
int work_blob(struct work *work, const struct node *node, struct blob **blob);
/* node->now may be changed after this. 0 or -ENOMEM. */
int work_edit(struct work *work, struct node *node);
/* node->now and its pages may be changed after this. */
int work_edit_pages(struct work *work, struct node *node, struct store_pages **pages);
/* The database for direct use, within the transaction. Earlier changes are written. */
int work_db(struct work *work, struct db **db);

/* -- changes that cannot fail -- */

/* The node gets its first version, of the caller, with pages of its own. */
void work_create(struct work *work, struct node *node, struct version *version);
void work_remove(struct work *work, struct node *node);
void work_volume_changed(struct work *work, struct workvol *volume); /* its contents */
/*
 * The server time of a change. It never goes back within a volume, also if the clock does: a dump of what has changed since a release
 * takes what has this time or a later one.
 */
uint32_t work_stamp(const struct work *work, const struct workvol *volume);
void work_volume_remove(struct work *work, struct workvol *volume);
/* A number for an object or a small content. Any thread. */
uint64_t work_number(struct work *work);
/* The next data version of an object that is being changed. */
void work_new_version(struct work *work, struct version *version);
/* A uniquifier. */
uint32_t work_unique(struct work *work, struct workvol *volume);
/* An object that a version mentions first; if it cannot be noted, the transaction is broken. */
void work_object_made(struct work *work, const struct db_object *object);

/*
 * The row of a vnode goes: its small contents, unless another row of the vnode refers to them (`others`: there may be some),
 * and the references of the first slot.
 */
int work_release(struct work *work, const struct vnode_key *key, const struct version *old,
		 bool others);
/* Rows of slots go, and their references: some now, the rest in the background. */
int work_drop(struct work *work, struct db_drop *drop);

/* -- within a transaction: dead.c and work.c -- */

/* If no memory is left, the transaction is broken. */
void work_note_object(struct work *work, struct object_list *list, const struct db_object *object);
/*
 * Note the blocks of a slot that its new content `now`, which may be NULL, does not have, and no other row of the vnode.
 * `others`: there may be some. The second one is for the first slot, which is in the record of a vnode.
 */
int work_dead_blocks(struct work *work, const struct db_slot_key *key, bool others,
		     const struct store_slot *old, const struct store_slot *now);
int work_first_dead_blocks(struct work *work, const struct vnode_key *key, bool others,
			   const struct store_slot *old, const struct store_slot *now);

/* -- for the committing thread -- */

void work_begin(struct work *work);
/* Write all changes to the database. */
int work_write(struct work *work);
int work_commit(struct work *work);
/* Give the changes to the caches and the table of volumes. */
void work_publish(struct work *work);
/* Forget all; without a commit before, nothing has happened. */
void work_reset(struct work *work);

#endif
