/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structures of the contents of files, for the files of this folder.
 *
 * Locks, in this order: cl_data_file.lock (of one file; a second one only by trylock), cl_data.lock (budgets and lists), jobs.lock.
 * None is held over a call of cl_data_ops but hold(), nor over reading and writing the disk.
 */
#ifndef CLIENT_DATA_FILESTATE_H
#define CLIENT_DATA_FILESTATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/data/data.h"
#include "client/data/extents.h"
#include "client/data/jobs.h"
#include "client/disk/disk.h"

#define NO_CUT ((uint64_t)CL_DATA_NO_CUT)
#define STORE_CHUNK \
	(4u * 1024 * 1024) /* so many bytes are stored while the program goes on writing */
#define BLOCK_MIN \
	4096u /* a buffer has so many bytes, or a power of two times as many, up to the size of a block */

struct link {
	struct link *next, *previous;
};

/*
 * Bytes of a block. One reference is the block's, others are of readers and stores, which read without the lock. Bytes below lent_end may
 * be read so: whoever wants to change them takes another buffer (block_change()).
 */
struct buffer {
	struct cl_data *data;
	_Atomic unsigned references;
	uint32_t size;
	uint32_t lent_end;   /* protected by the file's lock */
	struct buffer *next; /* spare ones */
	unsigned char *bytes;
};

/* A part of a file in memory. Protected by the file's lock, but for `age`. */
struct block {
	struct cl_data_file *file;
	uint64_t number;
	struct buffer *buffer; /* NULL: nothing is valid */
	struct extents valid;  /* bytes of the file's version, or dirty */
	struct extents dirty;  /* to be stored; all of them valid */
	struct extents again;  /* dirtied since the running store began */
	unsigned busy;	       /* fetches and writers to disk that need it */
	bool used;	       /* since the evicting hand came by */
	bool consumed;	 /* lent to the end to a sequential reader that keeps the bytes itself */
	bool on_disk;	 /* is there, or on its way: not to be saved again */
	struct link age; /* protected by cl_data.lock */
};

/* A call for bytes of a file in flight, or a read from the disk. */
struct fetch {
	struct job job;
	struct cl_data_file *file;
	struct fetch *next;
	void *who;
	uint64_t start, end;
	uint64_t position; /* bytes up to here have come */
	uint64_t limit;	   /* bytes from here on were cut off meanwhile */
	uint64_t ahead;	   /* of the budget for read-ahead */
	uint64_t version;  /* that was known when it began; 0: none */
};

/* A thread that waits at a file, on its stack. */
struct waiter {
	struct waiter *next;
	pthread_cond_t cond;
	uint64_t start, end;	   /* it needs these bytes; empty: any change */
	const struct fetch *fetch; /* whose failure concerns it */
	int error;		   /* of that */
	bool woken;
};

struct cl_data_file {
	struct cl_data *data;
	struct rxafs_fid fid;
	void *owner;
	struct cl_disk_file *disk; /* NULL: none */
	bool keep_whole;	   /* on the disk */
	bool completing;	   /* that */
	pthread_mutex_t lock;

	/* What the server has. */
	bool known;
	struct cl_data_version version; /* length: of the server's file */
	/* What it shall have: nothing beyond cut (NO_CUT: as it is), and at least `grow` bytes. */
	uint64_t cut, grow;
	uint64_t next_cut; /* the same, after the call that is under way */

	struct block **blocks; /* by number */
	size_t count, room;
	struct fetch *fetches;
	unsigned paths; /* that share its fetches, at the last one; 0: none was yet */
	uint64_t share; /* bytes of one of these; 0: any */
	struct waiter *waiters;
	struct cl_data_handle *handles;

	/* Changes. */
	_Atomic uint64_t dirty; /* bytes */
	uint64_t changes;	/* counts them */
	uint64_t clean_to;	/* changes up to this one are at the server */
	uint64_t synced_to;	/* and on its disk */
	int64_t mtime;
	bool time_pending; /* it was set while a store with another one was under way */
	bool unsynced;	   /* stored without being durable */
	bool held; /* in cl_data.dirties, with ops.hold(): something is, or was, to be stored */
	bool abandoned;
	uint64_t dirty_since; /* monotonic */
	struct link dirties;  /* protected by cl_data.lock */

	/* Storing: one at a time. */
	bool storing;
	bool calling; /* a call is under way */
	bool queued;  /* job is in use */
	bool durable_wanted;
	unsigned flushing; /* threads that flush: the identities that wrote are still needed */
	struct job job;
	uint64_t storing_from, storing_to; /* of the call */
	uint64_t
		sent_end; /* the server may have bytes up to here, of calls that have failed or still run */
	struct writer *writers;	       /* identities that changed something, the last one first */
	_Atomic int error;	       /* of the last pass; 0 after one that succeeded */
	_Atomic uint64_t errors;       /* counts failures */
	uint64_t retry_at, give_up_at; /* monotonic; 0: not */
	unsigned retries;
};

/* An identity with changes that are not yet stored. */
struct writer {
	struct writer *next;
	void *who;
};

struct cl_data_handle {
	struct cl_data_file *file;
	struct cl_data_handle *next;
	void *who;
	/* Protected by the file's lock. Reading: */
	uint64_t position; /* where a sequential reader goes on */
	uint64_t window;   /* of read-ahead; 0: none */
	uint64_t ahead;	   /* fetches were begun up to here */
	/* Writing: */
	uint64_t seen_errors; /* those that write reported */
};

struct area;

struct cl_data {
	struct cl_data_ops ops;
	struct cl_data_options options;
	unsigned block_shift;
	struct cl_disk *disk;
	struct jobs jobs;

	pthread_mutex_t lock;
	pthread_cond_t room; /* something was stored, or failed to be */
	_Atomic unsigned room_waiters;
	struct link blocks; /* by age, the oldest last */
	size_t block_count;
	struct link dirties; /* files */
	struct buffer *spare;
	struct area *areas;
	pthread_cond_t tick;
	pthread_t ticker;
	bool tick_sleeps; /* until a file has changes */
	bool stop;
	atomic_bool stopped;

	_Atomic uint64_t memory; /* bytes of buffers that are in use */
	_Atomic uint64_t dirty;
	_Atomic uint64_t ahead;	 /* bytes of read-ahead in flight */
	_Atomic uint64_t saving; /* bytes on their way to the disk */
};

#endif
