/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool of threads that read from the disk for flows. Callers take turns, whatever the number of their flows. */
#include <stdlib.h>

#include "base/hash.h"
#include "common/clock.h"
#include "common/cpus.h"
#include "fileserver/io/private.h"

/* Without the lock. First what is in the page cache; the rest from the disk. */
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
				    .posted_ns = chunk->direct ? 0 : chunk->posted_ns,
				    .begin_ns = begin,
				    .end_ns = monotonic_ns()};

	fsd_timeline_add(readers->timeline, &moment);
}

/* -- the queue; with the lock held -- */

static void append_caller(struct fsd_readers *readers, struct caller *caller)
{
	caller->next = NULL;
	*readers->tail = caller;
	readers->tail = &caller->next;
}

static void prepend_caller(struct fsd_readers *readers, struct caller *caller)
{
	caller->next = readers->head;
	readers->head = caller;
	if (!caller->next)
		readers->tail = &caller->next;
}

static void append_chunk(struct fsd_readers *readers, struct chunk *chunk)
{
	struct caller *caller = chunk->asker->caller;

	chunk->next = NULL;
	if (!caller->waiting) {
		caller->newest = &caller->waiting;
		append_caller(readers, caller);
	}
	*caller->newest = chunk;
	caller->newest = &chunk->next;
}

/* Before the other ones of its caller. If there are none, it does not wait for others. */
static void prepend_chunk(struct fsd_readers *readers, struct chunk *chunk)
{
	struct caller *caller = chunk->asker->caller;

	chunk->next = caller->waiting;
	if (!caller->waiting) {
		caller->newest = &chunk->next;
		prepend_caller(readers, caller);
	}
	caller->waiting = chunk;
}

/* The first one of the caller whose turn it is, which is the last one then. */
static struct chunk *pop_chunk(struct fsd_readers *readers)
{
	struct caller *caller = readers->head;
	struct chunk *chunk = caller->waiting;

	readers->head = caller->next;
	if (!readers->head)
		readers->tail = &readers->head;
	caller->waiting = chunk->next;
	if (caller->waiting)
		append_caller(readers, caller);
	return chunk;
}

static struct chunk *next_chunk(struct fsd_readers *readers)
{
	while (!readers->head && !readers->stop) {
		readers->idle++;
		pthread_cond_wait(&readers->work, &readers->lock);
		readers->idle--;
	}
	if (!readers->head)
		return NULL;
	readers->queued--;
	return pop_chunk(readers);
}

/* -- threads -- */

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

static void *reader_main(void *arg)
{
	struct fsd_readers *readers = arg;
	struct chunk *chunk;

	pthread_mutex_lock(&readers->lock);
	while ((chunk = next_chunk(readers)) != NULL) {
		struct asker *asker;
		uint64_t begin = readers->timeline ? monotonic_ns() : 0;
		bool dropped;

		pthread_mutex_unlock(&readers->lock);
		if (chunk->last) {
			chunk->asker->end(chunk->asker);
			pthread_mutex_lock(&readers->lock);
			continue;
		}
		dropped = atomic_load(&chunk->asker->over);
		if (!dropped)
			read_chunk(chunk);
		if (readers->timeline)
			note_chunk(readers, chunk, dropped, begin);
		pthread_mutex_lock(&readers->lock);
		asker = finish_chunk(readers, chunk);
		if (!asker)
			continue;
		pthread_mutex_unlock(&readers->lock);
		asker->run(asker);
		pthread_mutex_lock(&readers->lock);
	}
	pthread_mutex_unlock(&readers->lock);
	return NULL;
}

struct fsd_readers *fsd_readers_start(unsigned threads, size_t memory,
				      struct fsd_timeline *timeline)
{
	struct fsd_readers *readers = calloc(1, sizeof(*readers));
	uint64_t secret[2] = {0};

	if (!readers)
		return NULL;
	readers->threads_max = threads ? threads : 1;
	readers->processors = cpus_allowed();
	readers->ids = calloc(readers->threads_max, sizeof(*readers->ids));
	if (!readers->ids || rxw_random(secret, sizeof(secret)) ||
	    !fsd_shares_init(&readers->callers, sizeof(struct caller), secret)) {
		free(readers->ids);
		free(readers);
		return NULL;
	}
	pthread_mutex_init(&readers->lock, NULL);
	pthread_cond_init(&readers->work, NULL);
	readers->tail = &readers->head;
	readers->memory = memory;
	readers->timeline = timeline;
	return readers;
}

void fsd_readers_stop(struct fsd_readers *readers)
{
	if (!readers)
		return;
	pthread_mutex_lock(&readers->lock);
	readers->stop = true;
	pthread_cond_broadcast(&readers->work);
	pthread_mutex_unlock(&readers->lock);
	for (unsigned i = 0; i < readers->threads; i++)
		pthread_join(readers->ids[i], NULL);
	pthread_cond_destroy(&readers->work);
	pthread_mutex_destroy(&readers->lock);
	fsd_shares_fini(&readers->callers);
	free(readers->ids);
	free(readers);
}

void fsd_readers_stats(struct fsd_readers *readers, struct fsd_reader_stats *stats)
{
	pthread_mutex_lock(&readers->lock);
	*stats = readers->stats;
	stats->threads = readers->threads;
	stats->memory = readers->used;
	pthread_mutex_unlock(&readers->lock);
}

/* With the lock held: one more thread, if those that wait have enough to do. False: there is none at all. */
static bool provide_reader(struct fsd_readers *readers)
{
	/* A thread that was signalled counts as idle until it runs. */
	if (readers->idle <= readers->queued && readers->threads < readers->threads_max &&
	    pthread_create(&readers->ids[readers->threads], NULL, reader_main, readers) == 0)
		readers->threads++;
	return readers->threads > 0;
}

bool fsd_chunk_post(struct fsd_readers *readers, struct chunk *chunk)
{
	bool possible;

	pthread_mutex_lock(&readers->lock);
	possible = provide_reader(readers);
	if (possible) {
		append_chunk(readers, chunk);
		readers->queued++;
		pthread_cond_signal(&readers->work);
	}
	pthread_mutex_unlock(&readers->lock);
	return possible;
}

bool fsd_end_post(struct fsd_readers *readers, struct asker *asker, struct chunk *chunk)
{
	bool possible;

	pthread_mutex_lock(&readers->lock);
	possible = provide_reader(readers);
	if (possible) {
		*chunk = (struct chunk){.asker = asker, .last = true};
		prepend_chunk(readers, chunk);
		readers->queued++;
		pthread_cond_signal(&readers->work);
	}
	pthread_mutex_unlock(&readers->lock);
	return possible;
}
