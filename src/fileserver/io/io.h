/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending file data: from the page cache, or from threads that read ahead of the network. */
#ifndef FILESERVER_IO_H
#define FILESERVER_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rxwire/types.h>

#include "fileserver/tree/tree.h"

/* -- streams: the destination of bulk data; the reply of a call, or memory of a test -- */

struct fsd_stream;

/*
 * As the functions of the same names in rxwire/call.h; every failure is negative, and then the call
 * is lost.
 */
struct fsd_stream_ops {
	ssize_t (*write)(struct fsd_stream *stream, const void *data, size_t length);
	/* *count is the number of elements that iov has room for, then how many were used. */
	ssize_t (*reserve)(struct fsd_stream *stream, size_t length, struct iovec *iov,
			   unsigned *count);
	int (*commit)(struct fsd_stream *stream, size_t length);
};

struct fsd_stream {
	const struct fsd_stream_ops *ops;
	rxw_call *call; /* of the library's streams */
};

/* A stream into the reply of a call that a service handler was given. */
void fsd_stream_from_call(struct fsd_stream *stream, rxw_call *call);

/* The call was lost while a reply was written; what the handler returns goes nowhere. */
#define FSD_LOST (-1000)

/* All bytes or FSD_LOST. */
int fsd_stream_write(struct fsd_stream *stream, const void *data, size_t length);

/* -- the time line: when each part of a file was read and sent -- */

struct fsd_timeline;

#define FSD_READ_CACHE	"cached"  /* from the page cache, by the thread that sends */
#define FSD_READ_DIRECT "direct"  /* the same thread waited for the disk */
#define FSD_READ_AHEAD	"ahead"	  /* by a reader, into a buffer of its own */
#define FSD_READ_NOT	"dropped" /* handed to the readers, but the call ended before it began */
#define FSD_SENT	"send"	  /* given to the call, room for it in the send queue awaited */

/* One stretch of one send; times are CLOCK_MONOTONIC. */
struct fsd_moment {
	uint64_t send;		/* number of the fsd_send_file() that it belongs to, from 1 */
	const char *what;	/* one of those above */
	uint64_t offset, bytes; /* in the file */
	uint64_t posted_ns;	/* when a read ahead was handed to the readers; else 0 */
	uint64_t begin_ns, end_ns;
	/* Of a send of what was read ahead: reads begun and not yet sent, this one too; how many of
	 * them memory and the length of the file allow. */
	unsigned ahead, allowed;
};

/*
 * Start a new file, one JSON object a line. Returns NULL with errno. Lines are buffered: they are
 * all in the file after fsd_timeline_close().
 */
struct fsd_timeline *fsd_timeline_open(const char *path);
/* Any thread. A file that cannot be written any more is noticed at the end. */
void fsd_timeline_add(struct fsd_timeline *timeline, const struct fsd_moment *moment);
/* The number of a new send. Any thread. */
uint64_t fsd_timeline_send(struct fsd_timeline *timeline);
/* Returns 0, or -1 with errno if lines are missing. NULL is allowed. */
int fsd_timeline_close(struct fsd_timeline *timeline);

/* -- readers -- */

struct fsd_readers;

struct fsd_reader_stats {
	uint64_t bytes_cached; /* read in place, without waiting */
	uint64_t bytes_direct; /* small reads that waited for the disk on the handler's thread */
	uint64_t bytes_ahead;  /* read by the threads */
	uint64_t reads_ahead;
	uint64_t waits; /* times that a handler waited for a read ahead */
	unsigned threads;
};

/*
 * At most `threads` reader threads, made when they are needed. `memory` bounds the buffers of all
 * calls; each call that reads from the disk may always have two of 128 KiB. `timeline`, or NULL, is
 * told of all that is read and sent; it must stay until fsd_readers_stop(). Returns NULL without
 * memory.
 */
struct fsd_readers *fsd_readers_start(unsigned threads, size_t memory,
				      struct fsd_timeline *timeline);
/* No send may be running. */
void fsd_readers_stop(struct fsd_readers *readers);
void fsd_readers_stats(struct fsd_readers *readers, struct fsd_reader_stats *stats);

/*
 * Write `length` bytes of the file from `offset` on to the stream. The file must stay as `expect`
 * says: it is compared on the way and after the last byte. Returns 0; FSD_LOST; -EIO (changed, or
 * shorter than it should be); or another -errno of a read. After a failure the stream has fewer
 * bytes than asked, or bytes that must not be believed: abort the call.
 */
int fsd_send_file(struct fsd_readers *readers, struct fsd_file *file, const struct fsd_stat *expect,
		  uint64_t offset, uint64_t length, struct fsd_stream *stream);

#endif
