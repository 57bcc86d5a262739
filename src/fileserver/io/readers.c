/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending file data; the pool of threads that read ahead of the network. */
#include "fileserver/io/io.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/cpus.h"

#define CHUNK_MIN ((size_t)128 << 10)
#define CHUNK_MAX ((size_t)1 << 20)
#define DEPTH_MIN 2
#define DEPTH_MAX 8
#define DIRECT_MAX     \
	((uint64_t)256 \
	 << 10)	     /* up to this size handing over to a reader costs more than it saves */
#define CACHED_RUN 8 /* reading ahead stops after this many reads in a row from the page cache */
/*
 * If this much was in the page cache since the last wait for the disk, the kernel is reading ahead.
 * With more streams than CPUs it is then cheapest to wait for the kernel: a reader's buffer has
 * left the CPU cache when it is sent.
 */
#define KERNEL_AHEAD ((uint64_t)2 << 20)
/*
 * A few packets are read directly into their slots. For more, reading into a buffer that stays in
 * the CPU cache, and copying from there, took a sixth less time: the reads are fewer and larger,
 * and the writer waits in the send queue, where an ACK wakes it. The buffers of many streams should
 * fit the cache, too: with 256 KiB each, 32 streams were slower by a tenth to a third than with 64
 * KiB; one and eight streams were equally fast.
 */
#define BUFFER_BYTES ((size_t)64 << 10)
#define SLOTS_MAX    ((uint64_t)32 << 10)
#define SLOTS_IOV    64
#define CHECK_EVERY  ((uint64_t)4 << 20)

/* One read ahead. From post() until `done` it belongs to the pool. */
struct chunk {
	struct chunk *next; /* in the pool's queue */
	struct ahead *ahead;
	uint8_t *data;
	size_t want;
	uint64_t offset;
	ssize_t result;
	bool cached; /* all of it was in the page cache */
	bool done;
	uint64_t posted_ns; /* with a time line */
};

/*
 * The reads of one call, in file order: ring[first .. first + count). Only the thread of the call
 * posts and takes; the lock of the pool covers `done` and `result`.
 */
struct ahead {
	struct fsd_source *source;
	uint64_t send; /* number of the send in the time line */
	pthread_cond_t arrived;
	struct chunk ring[DEPTH_MAX];
	unsigned first, count;
	unsigned allowed;	   /* the intended count; 0 = not reading ahead */
	uint8_t *spare[DEPTH_MAX]; /* buffers not in use */
	unsigned spares;
	size_t chunk_bytes; /* 0 = not started */
};

struct fsd_readers {
	struct fsd_timeline *timeline; /* NULL: none; set before the first send */
	pthread_mutex_t lock;	       /* covers everything below */
	pthread_cond_t work;
	struct chunk *head, **tail;
	unsigned queued; /* chunks in the queue */
	unsigned threads, idle, threads_max;
	unsigned sends; /* sends in progress */
	unsigned processors;
	pthread_t *ids;
	bool stop;
	size_t memory;
	unsigned active; /* calls that are reading ahead */
	struct fsd_reader_stats stats;
};

static uint64_t now_ns(const struct fsd_readers *readers)
{
	return readers->timeline ? monotonic_ns() : 0;
}

/* Without the lock. First what is in the page cache; the rest from the disk. */
static void read_chunk(struct chunk *chunk)
{
	struct fsd_source *source = chunk->ahead->source;
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

static void note_chunk(struct fsd_readers *readers, const struct chunk *chunk, const char *what,
		       uint64_t begin)
{
	struct fsd_moment moment = {.send = chunk->ahead->send,
				    .what = what,
				    .offset = chunk->offset,
				    .bytes = chunk->want,
				    .posted_ns = chunk->posted_ns,
				    .begin_ns = begin,
				    .end_ns = now_ns(readers)};

	if (readers->timeline)
		fsd_timeline_add(readers->timeline, &moment);
}

static void *reader_main(void *arg)
{
	struct fsd_readers *readers = arg;

	pthread_mutex_lock(&readers->lock);
	for (;;) {
		struct chunk *chunk = readers->head;
		uint64_t begin;

		if (!chunk) {
			if (readers->stop)
				break;
			readers->idle++;
			pthread_cond_wait(&readers->work, &readers->lock);
			readers->idle--;
			continue;
		}
		readers->head = chunk->next;
		if (!readers->head)
			readers->tail = &readers->head;
		readers->queued--;
		pthread_mutex_unlock(&readers->lock);
		begin = now_ns(readers);
		read_chunk(chunk);
		note_chunk(readers, chunk, FSD_READ_AHEAD, begin);
		pthread_mutex_lock(&readers->lock);
		chunk->done = true;
		readers->stats.reads_ahead++;
		readers->stats.bytes_ahead += chunk->result > 0 ? (size_t)chunk->result : 0;
		pthread_cond_signal(&chunk->ahead->arrived);
	}
	pthread_mutex_unlock(&readers->lock);
	return NULL;
}

struct fsd_readers *fsd_readers_start(unsigned threads, size_t memory,
				      struct fsd_timeline *timeline)
{
	struct fsd_readers *readers = calloc(1, sizeof(*readers));

	if (!readers)
		return NULL;
	readers->threads_max = threads ? threads : 1;
	readers->processors = cpus_allowed();
	readers->ids = calloc(readers->threads_max, sizeof(*readers->ids));
	if (!readers->ids) {
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
	free(readers->ids);
	free(readers);
}

void fsd_readers_stats(struct fsd_readers *readers, struct fsd_reader_stats *stats)
{
	pthread_mutex_lock(&readers->lock);
	*stats = readers->stats;
	stats->threads = readers->threads;
	pthread_mutex_unlock(&readers->lock);
}

/* Queue a read; the lock is held. Returns false if there is no reader thread. */
static bool enqueue(struct fsd_readers *readers, struct chunk *chunk)
{
	/* A thread that was signalled counts as idle until it runs. */
	if (readers->idle <= readers->queued && readers->threads < readers->threads_max &&
	    pthread_create(&readers->ids[readers->threads], NULL, reader_main, readers) == 0)
		readers->threads++;
	if (readers->threads == 0)
		return false;
	chunk->next = NULL;
	*readers->tail = chunk;
	readers->tail = &chunk->next;
	readers->queued++;
	pthread_cond_signal(&readers->work);
	return true;
}

/* Bytes of buffers that one call may use; the lock is held. */
static size_t share(const struct fsd_readers *readers)
{
	return readers->memory / (readers->active ? readers->active : 1);
}

static unsigned depth_now(struct fsd_readers *readers, size_t chunk_bytes)
{
	pthread_mutex_lock(&readers->lock);
	size_t depth = share(readers) / chunk_bytes;
	pthread_mutex_unlock(&readers->lock);
	return depth < DEPTH_MIN ? DEPTH_MIN : depth > DEPTH_MAX ? DEPTH_MAX : (unsigned)depth;
}

static void ahead_start(struct fsd_readers *readers, struct ahead *ahead)
{
	size_t bytes = CHUNK_MAX;

	pthread_mutex_lock(&readers->lock);
	readers->active++;
	while (bytes > CHUNK_MIN && bytes * 4 > share(readers))
		bytes /= 2;
	pthread_mutex_unlock(&readers->lock);
	ahead->chunk_bytes = bytes;
}

/* Queue the read of the next part. 0 or -ENOMEM. */
static int post(struct fsd_readers *readers, struct ahead *ahead, uint64_t offset, uint64_t left)
{
	struct chunk *chunk = &ahead->ring[(ahead->first + ahead->count) % DEPTH_MAX];
	bool queued;

	if (ahead->spares == 0) {
		ahead->spare[0] = malloc(ahead->chunk_bytes);
		if (!ahead->spare[0])
			return -ENOMEM;
		ahead->spares = 1;
	}
	chunk->data = ahead->spare[ahead->spares - 1];
	chunk->ahead = ahead;
	chunk->offset = offset;
	chunk->want = left < ahead->chunk_bytes ? (size_t)left : ahead->chunk_bytes;
	chunk->done = false;
	chunk->posted_ns = now_ns(readers);
	pthread_mutex_lock(&readers->lock);
	queued = enqueue(readers, chunk);
	pthread_mutex_unlock(&readers->lock);
	if (!queued)
		return -ENOMEM;
	ahead->spares--;
	ahead->count++;
	return 0;
}

/* Wait for the oldest read. */
static struct chunk *take(struct fsd_readers *readers, struct ahead *ahead)
{
	struct chunk *chunk = &ahead->ring[ahead->first];

	pthread_mutex_lock(&readers->lock);
	if (!chunk->done)
		readers->stats.waits++;
	while (!chunk->done)
		pthread_cond_wait(&ahead->arrived, &readers->lock);
	pthread_mutex_unlock(&readers->lock);
	return chunk;
}

/* Remove the oldest chunk. Its buffer is freed if there are more than `depth`. */
static void retire(struct ahead *ahead, unsigned depth)
{
	uint8_t *data = ahead->ring[ahead->first].data;

	if (ahead->count + ahead->spares > depth)
		free(data);
	else
		ahead->spare[ahead->spares++] = data;
	ahead->first = (ahead->first + 1) % DEPTH_MAX;
	ahead->count--;
}

/* Cancel queued reads, wait for those in progress, and free all buffers. */
static void ahead_stop(struct fsd_readers *readers, struct ahead *ahead)
{
	if (!ahead->chunk_bytes)
		return;
	pthread_mutex_lock(&readers->lock);
	struct chunk **at = &readers->head;

	while (*at) { /* not begun: cancel */
		if ((*at)->ahead == ahead) {
			(*at)->done = true;
			readers->queued--;
			note_chunk(readers, *at, FSD_READ_NOT, now_ns(readers));
			*at = (*at)->next;
		} else {
			at = &(*at)->next;
		}
	}
	readers->tail = at;
	pthread_mutex_unlock(&readers->lock);
	while (ahead->count) {
		take(readers, ahead);
		retire(ahead, 0);
	}
	while (ahead->spares)
		free(ahead->spare[--ahead->spares]);
	pthread_mutex_lock(&readers->lock);
	readers->active--;
	pthread_mutex_unlock(&readers->lock);
}

/* A send in progress. */
struct send {
	struct fsd_readers *readers;
	struct fsd_source *source;
	struct fsd_stream *stream;
	uint64_t offset, left;
	uint64_t checked;	 /* offset at the last comparison */
	uint64_t waited;	 /* offset of the last wait for the disk */
	uint64_t cached, direct; /* for the statistics */
	uint8_t *buffer;	 /* of buffer_bytes, or NULL */
	size_t buffer_bytes;
	struct ahead ahead;
};

static void note(struct send *send, const char *what, size_t bytes, uint64_t begin)
{
	struct fsd_timeline *timeline = send->readers->timeline;
	struct fsd_moment moment = {.send = send->ahead.send,
				    .what = what,
				    .offset = send->offset,
				    .bytes = bytes,
				    .begin_ns = begin};

	if (!timeline)
		return;
	moment.end_ns = monotonic_ns();
	moment.ahead = send->ahead.count;
	moment.allowed = send->ahead.allowed;
	fsd_timeline_add(timeline, &moment);
}

/* Write the next bytes of the file. 0 or FSD_LOST. */
static int write_next(struct send *send, const void *data, size_t bytes)
{
	uint64_t begin = now_ns(send->readers);
	int rc = fsd_stream_write(send->stream, data, bytes);

	note(send, FSD_SENT, bytes, begin);
	return rc;
}

static int still_same(struct send *send)
{
	send->checked = send->offset;
	return send->source->ops->check ? send->source->ops->check(send->source) : 0;
}

static int advance(struct send *send, size_t bytes)
{
	send->offset += bytes;
	send->left -= bytes;
	return send->left == 0 || send->offset - send->checked >= CHECK_EVERY ? still_same(send)
									      : 0;
}

/*
 * Read what is in the page cache into the memory of the packets. Returns bytes sent, -EAGAIN,
 * another -errno, or FSD_LOST.
 */
static ssize_t cached_to_slots(struct send *send)
{
	struct iovec iov[SLOTS_IOV];
	unsigned count = SLOTS_IOV;
	ssize_t room = send->stream->ops->reserve(send->stream, (size_t)send->left, iov, &count);
	uint64_t begin;
	ssize_t n;

	if (room <= 0)
		return FSD_LOST;
	begin = now_ns(send->readers);
	n = send->source->ops->read(send->source, iov, (int)count, send->offset, true);
	if (n > 0)
		note(send, FSD_READ_CACHE, (size_t)n, begin);
	begin = now_ns(send->readers);
	if (send->stream->ops->commit(send->stream, n > 0 ? (size_t)n : 0) < 0)
		return FSD_LOST;
	if (n > 0)
		note(send, FSD_SENT, (size_t)n, begin);
	return n;
}

static bool have_buffer(struct send *send, size_t bytes)
{
	if (send->buffer_bytes < bytes) {
		free(send->buffer);
		send->buffer = malloc(bytes);
		send->buffer_bytes = send->buffer ? bytes : 0;
	}
	return send->buffer_bytes >= bytes;
}

/* The same through the buffer. */
static ssize_t cached_to_buffer(struct send *send)
{
	struct iovec iov = {send->buffer, BUFFER_BYTES};
	uint64_t begin = now_ns(send->readers);
	ssize_t n;

	if (send->left < iov.iov_len)
		iov.iov_len = (size_t)send->left;
	n = send->source->ops->read(send->source, &iov, 1, send->offset, true);
	if (n <= 0)
		return n;
	note(send, FSD_READ_CACHE, (size_t)n, begin);
	return write_next(send, send->buffer, (size_t)n) ? FSD_LOST : n;
}

/* Send as long as the next bytes are in the page cache. 0 also if they are not. */
static int send_cached(struct send *send)
{
	while (send->left) {
		ssize_t n = send->left > SLOTS_MAX && have_buffer(send, BUFFER_BYTES)
				    ? cached_to_buffer(send)
				    : cached_to_slots(send);
		int rc;

		if (n == -EAGAIN)
			return 0;
		if (n <= 0)
			return n ? (int)n : -EIO;
		send->cached += (size_t)n;
		rc = advance(send, (size_t)n);
		if (rc)
			return rc;
	}
	return 0;
}

/* Read a small part that is not in the page cache; this thread waits for the disk. */
static int send_direct(struct send *send)
{
	size_t want = send->left <= DIRECT_MAX ? (size_t)send->left : BUFFER_BYTES, got = 0;
	uint64_t begin = now_ns(send->readers);
	int rc = 0;

	if (!have_buffer(send, want))
		return -ENOMEM;
	while (got < want && !rc) {
		struct iovec iov = {send->buffer + got, want - got};
		ssize_t n =
			send->source->ops->read(send->source, &iov, 1, send->offset + got, false);

		if (n > 0)
			got += (size_t)n;
		else
			rc = n ? (int)n : -EIO;
	}
	if (!rc) {
		note(send, FSD_READ_DIRECT, got, begin);
		rc = write_next(send, send->buffer, got);
	}
	if (!rc) {
		send->direct += got;
		send->waited = send->offset + got;
		rc = advance(send, got);
	}
	return rc;
}

/* Send what was read ahead. */
static int send_chunk(struct send *send, struct chunk *chunk)
{
	int rc;

	if (chunk->result < 0)
		return (int)chunk->result;
	if ((size_t)chunk->result < chunk->want)
		return -EIO;
	rc = write_next(send, chunk->data, chunk->want);
	return rc ? rc : advance(send, chunk->want);
}

/*
 * From the disk: several large reads are always in progress ahead of the send position, and a new
 * one begins as soon as a buffer is free. Returns when everything is sent, or when the next bytes
 * are in the page cache.
 */
static int send_ahead(struct send *send)
{
	struct ahead *ahead = &send->ahead;
	uint64_t next = send->offset, end = send->offset + send->left;
	unsigned cached = 0; /* chunks in a row that came from the page cache */
	int rc = 0;

	if (!ahead->chunk_bytes)
		ahead_start(send->readers, ahead);
	while (!rc && send->left) {
		unsigned depth = depth_now(send->readers, ahead->chunk_bytes);
		struct chunk *chunk;

		while (next < end && ahead->count < depth && cached < CACHED_RUN) {
			rc = post(send->readers, ahead, next, end - next);
			if (rc && ahead->count == 0)
				return rc;
			if (rc)
				break; /* no memory for another chunk: continue with those posted */
			next += ahead->chunk_bytes;
		}
		if (ahead->count == 0)
			return 0;
		ahead->allowed = next < end && cached < CACHED_RUN ? depth : ahead->count;
		chunk = take(send->readers, ahead);
		cached = chunk->cached ? cached + 1 : 0;
		rc = send_chunk(send, chunk);
		if (!chunk->cached)
			send->waited = send->offset;
		retire(ahead, depth);
		ahead->allowed = 0;
	}
	return rc;
}

static void count_sends(struct fsd_readers *readers, int change)
{
	pthread_mutex_lock(&readers->lock);
	readers->sends += (unsigned)change;
	pthread_mutex_unlock(&readers->lock);
}

/* The next bytes are not in the page cache. Whether this thread should wait for the disk itself. */
static bool wait_here(struct send *send)
{
	struct fsd_readers *readers = send->readers;
	bool many;

	if (send->left <= DIRECT_MAX)
		return true;
	if (send->offset - send->waited < KERNEL_AHEAD)
		return false;
	pthread_mutex_lock(&readers->lock);
	many = readers->sends > readers->processors;
	pthread_mutex_unlock(&readers->lock);
	return many;
}

int fsd_send(struct fsd_readers *readers, struct fsd_source *source, uint64_t offset,
	     uint64_t length, struct fsd_stream *stream)
{
	struct send send = {
		.readers = readers,
		.source = source,
		.stream = stream,
		.offset = offset,
		.left = length,
		.checked = offset,
		.waited = offset,
		.ahead.source = source,
		.ahead.send = readers->timeline ? fsd_timeline_send(readers->timeline) : 0,
	};
	int rc = 0;

	pthread_cond_init(&send.ahead.arrived, NULL);
	count_sends(readers, 1);
	while (!rc && send.left) {
		rc = send_cached(&send);
		if (!rc && send.left)
			rc = wait_here(&send) ? send_direct(&send) : send_ahead(&send);
	}
	count_sends(readers, -1);
	ahead_stop(readers, &send.ahead);
	free(send.buffer);
	pthread_cond_destroy(&send.ahead.arrived);
	pthread_mutex_lock(&readers->lock);
	readers->stats.bytes_cached += send.cached;
	readers->stats.bytes_direct += send.direct;
	pthread_mutex_unlock(&readers->lock);
	return rc;
}
