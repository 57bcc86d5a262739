/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads from the disk, on the threads of a pool, for flows. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/cpus.h"
#include "fileserver/io/chunk.h"

#define STALL_NS (4 * (uint64_t)NS_PER_S)

/* First what is in the page cache; the rest from the disk. */
static void read_chunk(struct chunk *chunk)
{
	struct fsd_source *source = chunk->asker->source;
	bool cached = true;
	size_t got = 0;
	ssize_t n;

	for (;;) {
		struct iovec iov = {chunk->data + got, chunk->want - got};

		n = source->ops->read(source, &iov, 1, chunk->offset + got, cached);
		if (n > 0)
			got += (size_t)n;
		if (got == chunk->want || (!cached && n <= 0))
			break;
		cached = false;
	}
	chunk->cached = cached;
	chunk->result = n < 0 ? n : (ssize_t)got;
}

static void note_chunk(struct fsd_readers *readers, const struct chunk *chunk, bool dropped,
		       uint64_t begin)
{
	struct fsd_moment moment = {.send = chunk->asker->number,
				    .what = dropped	    ? FSD_READ_NOT
					    : chunk->direct ? FSD_READ_DIRECT
							    : FSD_READ_AHEAD,
				    .offset = chunk->offset,
				    .bytes = chunk->want,
				    .posted_ns = chunk->direct ? 0 : chunk->job.since,
				    .begin_ns = begin,
				    .end_ns = monotonic_ns()};

	fsd_timeline_add(readers->timeline, &moment);
}

/*
 * With the lock held: it may be taken and freed, with its asker, as soon as the lock is released. Returns
 * the asker if this thread has to run it.
 */
static struct asker *finish_chunk(struct fsd_readers *readers, struct chunk *chunk)
{
	struct asker *asker = chunk->asker;
	uint64_t bytes = chunk->result > 0 ? (uint64_t)chunk->result : 0;

	if (chunk->direct) {
		readers->stats.bytes_direct += bytes;
	} else {
		readers->stats.reads_ahead++;
		readers->stats.bytes_ahead += bytes;
	}
	chunk->done = true;
	return atomic_fetch_add(&asker->visits, 1) == 0 ? asker : NULL;
}

void fsd_chunk_read(struct fsd_job *job)
{
	struct chunk *chunk = (struct chunk *)(void *)job;
	struct fsd_readers *readers = chunk->asker->readers;
	struct asker *asker;
	uint64_t begin = readers->timeline ? monotonic_ns() : 0;
	bool dropped = atomic_load(&chunk->asker->over);

	if (!dropped)
		read_chunk(chunk);
	if (readers->timeline)
		note_chunk(readers, chunk, dropped, begin);
	pthread_mutex_lock(&readers->lock);
	asker = finish_chunk(readers, chunk);
	pthread_mutex_unlock(&readers->lock);
	if (asker)
		asker->run(asker);
}

struct fsd_readers *fsd_readers_start(unsigned threads, size_t memory,
				      struct fsd_timeline *timeline)
{
	struct fsd_readers *readers = calloc(1, sizeof(*readers));

	if (!readers)
		return NULL;
	readers->pool =
		fsd_pool_create(threads ? threads : 1, cpus_allowed(), sizeof(struct caller));
	if (!readers->pool || !fsd_saturation_init(&readers->saturation)) {
		fsd_pool_destroy(readers->pool);
		free(readers);
		return NULL;
	}
	readers->processors = cpus_allowed();
	pthread_mutex_init(&readers->lock, NULL);
	readers->memory = memory;
	readers->stall_ns = STALL_NS;
	readers->last = &readers->first;
	readers->timeline = timeline;
	return readers;
}

void fsd_readers_stop(struct fsd_readers *readers)
{
	if (!readers)
		return;
	fsd_saturation_fini(&readers->saturation);
	fsd_pool_destroy(readers->pool);
	pthread_mutex_destroy(&readers->lock);
	free(readers);
}

void fsd_readers_stats(struct fsd_readers *readers, struct fsd_reader_stats *stats)
{
	pthread_mutex_lock(&readers->lock);
	*stats = readers->stats;
	stats->memory = readers->used;
	pthread_mutex_unlock(&readers->lock);
	stats->turns = fsd_saturation_waits(&readers->saturation);
	stats->threads = fsd_pool_threads(readers->pool, NULL);
}
