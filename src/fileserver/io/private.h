/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the reader threads (readers.c) and the flows (flow.c). */
#ifndef FILESERVER_IO_PRIVATE_H
#define FILESERVER_IO_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fileserver/io/io.h"

#define DEPTH_MAX 8

/* A caller that has flows. The lock of the pool covers it. */
struct caller {
	struct fsd_share share;		 /* its flows */
	struct chunk *waiting, **newest; /* in this order; no chunks: `newest` is void */
	struct caller *next;		 /* has chunks that wait, too */
	size_t memory;			 /* bytes of the buffers of its flows */
	unsigned active;		 /* flows that read ahead, or would */
};

/* For whom reads are done: the part of a flow that readers know. */
struct asker {
	struct caller *caller;
	struct fsd_source *source;
	uint64_t number; /* in the time line */
	/* The thread that raises it from 0 runs the flow. Since that thread last began. */
	_Atomic unsigned visits;
	_Atomic bool over; /* what was posted is not needed any more */
	void (*run)(struct asker *asker);
	void (*end)(struct asker *asker); /* on a reader thread, after fsd_end_post() */
};

/* One read by a reader thread. From fsd_chunk_post() until `done` it belongs to the pool. */
struct chunk {
	struct chunk *next; /* of the caller, that waits */
	struct asker *asker;
	uint8_t *data;
	size_t charge; /* bytes of it that count */
	size_t want;
	uint64_t offset;
	ssize_t result;
	bool cached; /* all of it was in the page cache */
	bool direct; /* counted as such: too little to be read ahead */
	bool done;
	bool awaited; /* by the flow: counted */
	bool last;    /* no read: the asker ends */
	uint64_t posted_ns; /* with a time line */
};

struct fsd_readers {
	struct fsd_timeline *timeline; /* NULL: none; set before the first flow */
	unsigned processors;	       /* constant */
	unsigned threads_max;	       /* constant */
	size_t memory;		       /* constant: bytes of all buffers */
	pthread_mutex_t lock;	       /* covers everything below, and `done` and `result` of chunks */
	pthread_cond_t work;
	struct fsd_shares callers;
	struct caller *head, **tail; /* have chunks that wait, one read a turn */
	unsigned queued;	     /* these chunks */
	unsigned threads, idle;
	pthread_t *ids;
	bool stop;
	unsigned flows; /* in progress */
	size_t used;	/* bytes of their buffers */
	struct fsd_reader_stats stats;
};

/*
 * Queue a read. When it is done the reader counts as a visitor of the asker, and runs it if it is the
 * first one. False: there is no reader thread.
 */
bool fsd_chunk_post(struct fsd_readers *readers, struct chunk *chunk);
/*
 * Have a reader end the asker, before it reads for the same caller; nothing else of it is queued. `chunk` is
 * for the pool's use until then. False: there is no reader thread.
 */
bool fsd_end_post(struct fsd_readers *readers, struct asker *asker, struct chunk *chunk);

#endif
