/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending file data: from the page cache, or from threads that read ahead of the wire. */
#ifndef FILESERVER_READERS_H
#define FILESERVER_READERS_H

#include <stdint.h>

#include "fileserver/tree/tree.h"
#include "fileserver/io/stream.h"
#include "fileserver/io/timeline.h"

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
