/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of a file, which connect reads from the disk (readers.c) and flows (flow.c). */
#ifndef FILESERVER_IO_CHUNK_H
#define FILESERVER_IO_CHUNK_H

#include <pthread.h>
#include <stdatomic.h>

#include "fileserver/io/io.h"
#include "fileserver/io/saturation.h"

#define DEPTH_MAX 8

/* A caller that has flows. The lock of the readers covers what the pool does not have. */
struct caller {
	struct fsd_pool_caller base; /* each flow has entered */
	size_t memory;		     /* bytes of the buffers of its flows */
	unsigned active;	     /* flows that read ahead, or would */
	struct fsd_crowd_caller crowd; /* of `saturation` */
};

/* For whom reads are done: the part of a flow that readers know. */
struct asker {
	struct fsd_readers *readers;
	struct caller *caller;
	struct fsd_source *source;
	uint64_t number; /* in the time line */
	/* The thread that raises it from 0 runs the flow. Since that thread last began. */
	_Atomic unsigned visits;
	_Atomic bool over; /* what was posted is not needed any more */
	void (*run)(struct asker *asker);
};

/* One read by a thread of the pool, to which it belongs until `done`. */
struct chunk {
	struct fsd_job job;
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
};

struct fsd_readers {
	struct fsd_timeline *timeline; /* NULL: none; set before the first flow */
	struct fsd_pool *pool;	       /* of `struct caller` */
	unsigned processors;	       /* constant */
	size_t memory;		       /* constant: bytes of all buffers */
	uint64_t stall_ns;    /* constant: a flow without a change for so long is stalled */
	struct fsd_saturation saturation; /* has a lock of its own */
	pthread_mutex_t lock; /* covers everything below, and `done` and `result` of chunks */
	unsigned flows;	      /* in progress */
	size_t used;	      /* bytes of their buffers */
	struct fsd_flow *first, **last; /* have some, in the order of their last changes */
	struct fsd_reader_stats stats;
};

/*
 * The job of a chunk: a read. When it is done the thread counts as a visitor of the asker, and runs it if it is the
 * first one.
 */
void fsd_chunk_read(struct fsd_job *job);

#endif
