/* SPDX-License-Identifier: BSD-2-Clause */
/* Work in the background, with two threads: one flushes, one verifies data. */
#ifndef STORE_MAINT_H
#define STORE_MAINT_H

#include "volume/store/disk/mend.h"
#include "volume/store/txn/core.h"

/* -- flushes, names of objects, checkpoints, pruning -- */

/* 0 or -errno. Begins the work that an earlier process left. */
int keeper_create(struct core *core, struct keeper **keeper);
/* Starts the thread. */
int keeper_start(struct keeper *keeper);
/* Everything is flushed, and the thread has ended. NULL is allowed. 0 or a result. */
int keeper_stop(struct keeper *keeper);
void keeper_destroy(struct keeper *keeper); /* NULL is allowed */

/* Everything that was committed before the call is on stable storage. Callers share flushes. */
int keeper_flush(struct keeper *keeper);
/* For struct txn_options. */
void keeper_committed(void *keeper, const struct object_list *made, const struct object_list *dead);
/*
 * Called by the thread that commits: waits while the write-ahead log is too long and is being moved
 * to the database.
 */
void keeper_admit(void *keeper);
/* Called by the thread that commits: move the log to the database, so that it starts again. */
void keeper_full(void *keeper);
/* There is something to prune. */
void keeper_wake(struct keeper *keeper);
void keeper_counts(struct keeper *keeper, uint64_t *flushes, uint64_t *pruning);

/*
 * Remove rows that only removed clones showed, or those of removed volumes: one small transaction. *more: there is more to do.
 * `group`: of this group only; 0: what comes first.
 */
int prune_step(struct core *core, uint32_t group, bool *more);
/*
 * A vnode may have a row for each clone that waits to be pruned, and an operation looks at all of them. So the caller who makes
 * a clone prunes until fewer than PRUNE_MOST of the group wait.
 */
#define PRUNE_MOST 16
int prune_until_few(struct core *core, uint32_t group);
/* Finish the removal of a whole group, if it waits: the id is to be used again. */
int prune_removed(struct core *core, uint32_t group);

/*
 * -- bytes of objects that a flush lost: the database has a record of them, so that they are an error also after a restart. It
 * is written before the mark moves over the commits that refer to them --
 */

/* When the store is opened: take over the records. 0 or a result of the database. */
int lost_load(struct core *core, struct db *db);
/* Record what was lost since, before there is a thread that commits. The same. */
int lost_record_first(struct core *core, struct db *db);
/* -EIO: bytes of a file's newest version are lost. */
int lost_check(struct core *core, const struct store_fid *fid);

/*
 * -- the copy of the metadata, at most some seconds behind. Nothing of it happens if the store has none --
 */

/*
 * Before the database is opened: repair what damage is known of, that of its log first. 0; -EUCLEAN: what is damaged hides records
 * that are sound, so that the database is to be made anew; or -errno.
 */
int copying_check(struct core *core, struct store_log_state *log);
/* After the database was read, before the copy is opened: a full disk gets the room of the copy, which is made again later. */
void copying_make_room(struct core *core);
/* While the store is open: a change found no room. The copy on the same disk gives its own, and is made again later. */
void copying_give_room(struct core *core);
/* Before the first change: it is not certain any more that the copy has all. */
void copying_begin(struct core *core);
/* After the database was closed: the copy is the same. A short program makes no long copy, which is the server's work. */
void copying_end(struct core *core);
/*
 * Whether nothing that an administrator could still bring back is lost if the database is made anew. *copy: what is to be
 * read beside it, or NULL.
 */
bool copying_may_remake(struct core *core, struct store_layer **copy);
/* Repair all damaged pages. 0; -ESTALE: the copy may lack changes; -ENOENT: there is none; or -errno. */
int copying_repair(struct core *core);
/* Starts the thread. 0 or a result. */
int copying_start(struct core *core);
void copying_stop(struct core *core);
/* After a flush: copy what the log has more. */
void copying_ship(struct core *core);
/* The log must not begin anew now. *rest: bytes that the commit would copy with which it does. */
bool copying_is_behind(struct core *core, uint64_t *rest);
/* Milliseconds since the copy was the same as the database; UINT64_MAX: there is none. */
uint64_t copying_age_ms(struct core *core);

/* -- verification of all data, with a thread of its own, because it waits for the disk -- */

/* `rate_kib`: in a second, 0: 8192; `wait_ms`: after the opening, 0: ten minutes. 0 or -ENOMEM. */
int scrub_create(struct core *core, unsigned rate_kib, unsigned wait_ms,
		 struct scrubber **scrubber);
int scrub_start(struct scrubber *scrubber);    /* 0 or -errno */
void scrub_stop(struct scrubber *scrubber);    /* NULL is allowed */
void scrub_destroy(struct scrubber *scrubber); /* NULL is allowed */

struct scrub_state {
	uint64_t bytes, damaged,
		passes; /* since the opening: bytes read, blocks, complete passes */
	uint32_t last;	/* when the last one was complete, in seconds since 1970; 0: none was */
};
void scrub_get_state(struct scrubber *scrubber, struct scrub_state *state);

struct scrub_calls {
	int (*damaged)(void *arg,
		       uint64_t offset);	  /* of a block. Nonzero ends it, and is returned */
	bool (*go_on)(void *arg, uint64_t bytes); /* after each step; false: -EINTR */
	void *arg;
};
/* Read and verify a content. -ENOENT: it is not the current one any more. */
int scrub_content(struct core *core, const struct store_owner *owner,
		  const struct store_content *content, uint64_t length,
		  const struct scrub_calls *calls);
/* Whether the row still shows the block at the offset, so that what is wrong with it is damage. */
bool scrub_confirm(struct db *db, const struct vnode_key *key, const struct version *version,
		   uint64_t offset);

#endif
