/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of the metadata: a second database, which follows the log of the first one. */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include "volume/store/disk/pageset.h"

/*
 * The folder "copy" of a layer has the files "db", "db-wal", "state" and FORMAT. Its log has the same bytes as that of the
 * database. When the database's log begins anew, the copy's log is moved to the copy. So the copy is a state of
 * the database at any time, and written in steps whose size is that of the changes.
 *
 * Any thread. No function fails because of the copy: then it is given up, with a line in the log, and made again by
 * store_replica_renew().
 */
struct store_replica;

/*
 * After store_vfs_recover() of the database, and before store_vfs_begin(). `copy`: the layer; `store`: that of the
 * database. 0, -ENOMEM, or what makes the copy impossible: -EEXIST: it is that of another store, or -errno.
 */
int store_replica_open(struct store_layer *copy, struct store_layer *store, struct store_vfs *vfs,
		       const uint8_t uuid[16], struct report *report,
		       struct store_replica **replica);
/* NULL is allowed. */
void store_replica_free(struct store_replica *replica);

/* Copy what the log has more, without a flush. */
void store_replica_ship(struct store_replica *replica);
/* Flush that, and move a log that is complete to the copy. One thread at a time, which may wait. */
void store_replica_settle(struct store_replica *replica);
struct store_replica_view {
	bool missing; /* there is no copy: it has to be made */
	bool full;    /* for want of space: its files are of no use */
	bool busy; /* a complete log waits to be moved: the log of the database should not begin anew */
	uint64_t rest; /* bytes that it would have to copy now if that log began anew */
	uint64_t ns; /* CLOCK_MONOTONIC, when the copy had all that was flushed; 0: there is none */
};
void store_replica_look(struct store_replica *replica, struct store_replica_view *view);
/*
 * Make the copy, while a connection of the caller has begun to read, so that its view does not change. `stopped` is asked
 * now and then. As store_replica_settle().
 */
void store_replica_renew(struct store_replica *replica, bool (*stopped)(void *arg), void *arg);
/*
 * The disk is full: give the copy up, and remove its files. Waits for another thread that flushes or makes it. True if that gave
 * room. A copy is kept if the metadata are damaged.
 */
bool store_replica_drop(struct store_replica *replica);
/*
 * Look at some pages of the copy, the next ones with each call, or at all of them. If one is damaged, the copy is given up.
 * As store_replica_settle().
 */
void store_replica_verify(struct store_replica *replica, bool all);
/* After store_vfs_end(): the copy is the same as the database, and the store remembers it. */
void store_replica_end(struct store_replica *replica);

#endif
