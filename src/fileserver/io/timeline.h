/* SPDX-License-Identifier: BSD-2-Clause */
/* The time line: when each stretch of a file was read, and when it was sent; to see who waits. */
#ifndef FILESERVER_TIMELINE_H
#define FILESERVER_TIMELINE_H

#include <stdint.h>

struct fsd_timeline;

#define FSD_READ_CACHE	"cached" /* from the page cache, by the thread that sends */
#define FSD_READ_DIRECT "direct" /* the same thread waited for the disk */
#define FSD_READ_AHEAD	"ahead"	 /* by a reader, into a buffer of its own */
#define FSD_READ_NOT	"dropped" /* handed to the readers, but the call ended before it began */
#define FSD_SENT	"send"	 /* given to the call, room for it in the send queue awaited */

/* One stretch of one send; times are CLOCK_MONOTONIC. */
struct fsd_moment {
	uint64_t send;		 /* number of the fsd_send_file() that it belongs to, from 1 */
	const char *what;	 /* one of those above */
	uint64_t offset, bytes;	 /* in the file */
	uint64_t posted_ns;	 /* when a read ahead was handed to the readers; else 0 */
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

/* CLOCK_MONOTONIC. */
uint64_t fsd_timeline_now(void);

#endif
