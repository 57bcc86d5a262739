/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending file data: from the page cache, or from threads that read ahead of the network. */
#ifndef FILESERVER_IO_H
#define FILESERVER_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rxwire/types.h>

#include "fileserver/base/base.h"

/* -- streams: the destination of file data; the reply of a call, or memory of a test -- */

struct fsd_stream;

/*
 * Like the functions of the same names in rxwire/call.h, but -EAGAIN if there is no room now, which only
 * happens if the call is deferred. Every other failure is negative, and the call is lost.
 */
struct fsd_stream_ops {
	/* Returns bytes written. */
	ssize_t (*write)(struct fsd_stream *stream, const void *data, size_t length);
	/* The same, but full packets may stay until the next ones, or the end of the reply, which leave with them. */
	ssize_t (*hold)(struct fsd_stream *stream, const void *data, size_t length);
	/* *count: elements of iov; on return those that are used. */
	ssize_t (*reserve)(struct fsd_stream *stream, size_t length, struct iovec *iov,
			   unsigned *count);
	int (*commit)(struct fsd_stream *stream, size_t length);
	/* Have `visit` called whenever there is room again, or the call is lost. NULL: always room. */
	int (*watch)(struct fsd_stream *stream, void (*visit)(void *arg), void *arg);
	/* Have it called again soon, by a thread of the library, also if there is room already. Negative: it is not. */
	int (*again)(struct fsd_stream *stream);
};

struct fsd_stream {
	const struct fsd_stream_ops *ops;
	struct fsd_share_key caller; /* flows take turns with those of others */
	/* of a stream into a reply */
	rxw_call *call;
	void (*visit)(void *arg);
	void *arg;
};

/* A stream into the reply of a call that a handler serves. */
void fsd_stream_from_call(struct fsd_stream *stream, rxw_call *call);

/* The call was lost while its reply was written; the result of the handler is ignored. */
#define FSD_LOST (-1000)

/* Write all bytes. 0 or FSD_LOST. */
int fsd_stream_write(struct fsd_stream *stream, const void *data, size_t length);

/* -- the time line: when each part of a file was read and sent -- */

struct fsd_timeline;

#define FSD_READ_CACHE	"cached"  /* from the page cache, by the thread that sends it */
#define FSD_READ_DIRECT "direct"  /* from the disk, too little to be read ahead */
#define FSD_READ_AHEAD	"ahead"	  /* by a reader thread */
#define FSD_READ_NOT	"dropped" /* queued, but the call ended before the read began */
#define FSD_SENT	"send"	  /* written to the call */

/* One part of one send; times are monotonic_ns(). */
struct fsd_moment {
	uint64_t send;		/* number of the flow that it belongs to, from 1 */
	const char *what;	/* one of those above */
	uint64_t offset, bytes; /* in the file */
	uint64_t posted_ns;	/* when a read ahead was queued; else 0 */
	uint64_t begin_ns, end_ns;
	/*
	 * Sends of data that was read ahead: chunks queued and not sent, including this one, and
	 * how many of them memory and the length of the file allow.
	 */
	unsigned ahead, allowed;
};

/*
 * Create the file, one JSON object per line. Returns NULL with errno. Lines are buffered; all of
 * them are in the file after fsd_timeline_close().
 */
struct fsd_timeline *fsd_timeline_open(const char *path);
/* Any thread. Errors of the file are reported by fsd_timeline_close(). */
void fsd_timeline_add(struct fsd_timeline *timeline, const struct fsd_moment *moment);
/* The number of a new flow. Any thread. */
uint64_t fsd_timeline_send(struct fsd_timeline *timeline);
/* Returns 0, or -1 with errno if lines are missing. NULL is allowed. */
int fsd_timeline_close(struct fsd_timeline *timeline);

/* -- readers -- */

struct fsd_readers;

struct fsd_reader_stats {
	uint64_t bytes_cached; /* from the page cache */
	uint64_t bytes_direct; /* from the disk, too little to be read ahead */
	uint64_t bytes_ahead;  /* read ahead */
	uint64_t reads_ahead;
	uint64_t waits; /* times that a flow had to wait for the end of a read */
	uint64_t turns; /* times that a flow waited while others had their turn (saturation.h) */
	size_t memory;	/* bytes of the buffers that count, now */
	unsigned threads;
};

/*
 * At most `threads` reader threads, which are created on demand. `memory` limits the buffers of all
 * flows together, but each flow that reads from the disk may use one of 64 KiB. A caller has no more
 * of it than is free. A flow whose stream takes nothing for seconds loses its part to another one that
 * gets none. All reads and sends are recorded in `timeline`, unless it is NULL; it must exist until
 * fsd_readers_stop(). Returns NULL without memory.
 */
struct fsd_readers *fsd_readers_start(unsigned threads, size_t memory,
				      struct fsd_timeline *timeline);
/* No flow may be in progress. NULL is allowed. */
void fsd_readers_stop(struct fsd_readers *readers);
void fsd_readers_stats(struct fsd_readers *readers, struct fsd_reader_stats *stats);

/* -- sources: what is sent, a reader of a store or memory of a test -- */

struct fsd_source;

/* Several threads may read at a time. */
struct fsd_source_ops {
	/*
	 * Returns bytes read, fewer at the end or if `cached`: then only what needs no disk access
	 * is read, and -EAGAIN means nothing. Or -errno.
	 */
	ssize_t (*read)(struct fsd_source *source, const struct iovec *iov, int count,
			uint64_t offset, bool cached);
};
struct fsd_source {
	const struct fsd_source_ops *ops;
};

/* -- flows: data on its way from a source into a stream -- */

/*
 * Write `length` bytes of the source, starting at `offset`, to the stream. It needs no thread: whichever
 * thread finds room in the window reads on from the page cache, and only what is not there is read by
 * a reader thread. `done` is called once, on a reader or by this function, so that it may wait: with 0;
 * FSD_LOST; -EIO (the source is too short); or another -errno of a read. After a failure abort the
 * call: the stream has too few bytes. `done` ends the call, or at least the visits; source and stream must
 * exist until then.
 * -ENOMEM: nothing was begun.
 */
int fsd_flow_start(struct fsd_readers *readers, struct fsd_source *source, uint64_t offset,
		   uint64_t length, struct fsd_stream *stream,
		   void (*done)(struct fsd_source *source, int result));

/* Bytes that go before the data of a short reply. */
struct fsd_head {
	const void *bytes;
	size_t length; /* FSD_HEAD at most */
};
#define FSD_HEAD 8u

/*
 * The same for a few packets, on this thread, which waits for the disk. They leave together, with the end of the reply.
 * Returns the result.
 */
int fsd_send_now(struct fsd_readers *readers, struct fsd_source *source, uint64_t offset,
		 uint64_t length, const struct fsd_head *head, struct fsd_stream *stream);

/* -- tasks: work for calls that wait for their clients without a thread -- */

struct fsd_pool;
struct fsd_task;

enum fsd_task_state {
	FSD_TASK_WAITS,	  /* for the next visit */
	FSD_TASK_GOES_ON, /* when others had their turn */
	FSD_TASK_ENDED	  /* no visit comes any more: the task is gone */
};

/*
 * A task whose `run` is called by one thread at a time, of the pool, and which may wait: again if there was a visit
 * since the latest call began. Tasks of one key take turns with those of others. First the caller has to call
 * fsd_task_begin(), or fsd_task_destroy(). NULL: no memory, or no thread.
 */
struct fsd_task *fsd_task_create(struct fsd_pool *pool, const struct fsd_share_key *key,
				 enum fsd_task_state (*run)(void *arg), void *arg);
/* Destroys a task that has not begun. NULL is allowed. */
void fsd_task_destroy(struct fsd_task *task);
/*
 * The first call of `run`: on this thread, or, if so many threads are in this function that few would be left for other
 * calls, on one of the pool. There may have been visits already.
 */
void fsd_task_begin(struct fsd_task *task);
/* The same on a thread of the pool. Any thread; does not wait. */
void fsd_task_post(struct fsd_task *task);
/* Any thread; does not wait. */
void fsd_task_visit(struct fsd_task *task);

#endif
