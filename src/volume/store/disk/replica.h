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

#define STORE_COPY "copy"

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
/* Whether a complete log waits for that: the log of the database should not begin anew. */
bool store_replica_is_busy(struct store_replica *replica);
/* Bytes of the log that it would have to copy now if that began anew; 0 if the copy is missing, or is being made. */
uint64_t store_replica_rest(struct store_replica *replica);
/* Whether there is no copy, so that it has to be made. */
bool store_replica_is_missing(struct store_replica *replica);
/*
 * Make the copy, while a connection of the caller has begun to read, so that its view does not change. `stopped` is asked
 * now and then. As store_replica_settle().
 */
void store_replica_renew(struct store_replica *replica, bool (*stopped)(void *arg), void *arg);
/*
 * Look at some pages of the copy, the next ones with each call, or at all of them. If one is damaged, the copy is given up.
 * As store_replica_settle().
 */
void store_replica_verify(struct store_replica *replica, bool all);
/* After store_vfs_end(): the copy is the same as the database. */
void store_replica_end(struct store_replica *replica);
/* Whether making it takes more than a moment. */
bool store_replica_is_long(struct store_replica *replica);
/* When the copy had all that the database had: CLOCK_MONOTONIC; 0: there is no copy. */
uint64_t store_replica_time(struct store_replica *replica);

/*
 * -- repairs, while nobody has the database open --
 */

enum store_relation {
	STORE_COPY_NONE,  /* there is none that can be used */
	STORE_COPY_OLDER, /* it may lack the last changes */
	STORE_COPY_SAME,  /* of each page that the log does not have, it has the newest state */
};
/* How the copy in a layer is related to the database of the store. 0 or -errno. */
int store_replica_compare(struct store_layer *copy, struct store_layer *store,
			  enum store_relation *relation);
/* When the copy had all changes: CLOCK_REALTIME in seconds; later ones may be in it, too. 0: that is not known. */
int64_t store_replica_written(struct store_layer *copy);
/*
 * Whether the log is damaged or gone, and that of the copy has more of it. *lost: it is damaged or gone, and the last changes
 * may be in neither. Nothing is changed. 0 or -errno.
 */
int store_replica_judge_log(struct store_layer *copy, struct store_layer *store, bool *better,
			    bool *lost);
/*
 * If the log ends before what the mark says was flushed, take the rest from the copy. *lost: the log is damaged, and the
 * copy has not all of it either.
 */
int store_replica_mend_log(struct store_layer *copy, struct store_layer *store, bool *mended,
			   bool *lost);
/*
 * Take pages that are damaged, or that the database lacks, from a copy that is the same. *repaired, *left: pages that were and
 * that could not be.
 */
int store_replica_repair(struct store_layer *copy, struct store_layer *store, uint32_t *repaired,
			 uint32_t *left);

#endif
