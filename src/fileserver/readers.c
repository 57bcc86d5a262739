/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending file data; the pool of threads that read ahead of the wire. */
#include "fileserver/readers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN  ((size_t)128 << 10)
#define CHUNK_MAX  ((size_t)1 << 20)
#define DEPTH_MIN  2
#define DEPTH_MAX  8
#define DIRECT_MAX ((uint64_t)256 << 10) /* up to here a hand-over costs more than it brings */
/*
 * A few packets are read straight into their slots. For more, reading a good piece into a buffer
 * that stays in the processor's cache, and copying it, took a sixth less time: fewer and larger
 * reads, and the writer waits for room in the send queue, where it is found when an ACK lets
 * something go.
 */
#define BUFFER_BYTES ((size_t)256 << 10)
#define SLOTS_MAX    ((uint64_t)32 << 10)
#define SLOTS_IOV    64
#define CHECK_EVERY  ((uint64_t)4 << 20)

/* One read ahead. Between posting and `done` it belongs to the pool. */
struct chunk {
	struct chunk *next; /* in the pool's queue */
	struct ahead *ahead;
	uint8_t *data;
	size_t want;
	uint64_t offset;
	ssize_t result;
	bool done;
};

/*
 * The reads of one call, in the order of the file: ring[first .. first + count). Only the call's
 * thread posts and takes; the pool's lock covers `done` and `result`.
 */
struct ahead {
	struct fsd_file *file;
	pthread_cond_t arrived;
	struct chunk ring[DEPTH_MAX];
	unsigned first, count;
	uint8_t *spare[DEPTH_MAX]; /* buffers not in use */
	unsigned spares;
	size_t chunk_bytes; /* 0 = not started */
};

struct fsd_readers {
	pthread_mutex_t lock; /* covers everything below */
	pthread_cond_t work;
	struct chunk *head, **tail;
	unsigned threads, idle, threads_max;
	pthread_t *ids;
	bool stop;
	size_t memory;
	unsigned active; /* calls that read ahead now */
	struct fsd_reader_stats stats;
};

static void *reader_main(void *arg)
{
	struct fsd_readers *readers = arg;

	pthread_mutex_lock(&readers->lock);
	for (;;) {
		struct chunk *chunk = readers->head;

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
		pthread_mutex_unlock(&readers->lock);

		struct fsd_file *file = chunk->ahead->file;
		size_t got = 0;
		ssize_t n = 1;

		while (got < chunk->want && n > 0) {
			struct iovec iov = {chunk->data + got, chunk->want - got};

			n = file->layer->ops->preadv(file, &iov, 1, chunk->offset + got, 0);
			if (n > 0)
				got += (size_t)n;
		}
		pthread_mutex_lock(&readers->lock);
		chunk->result = n < 0 ? n : (ssize_t)got;
		chunk->done = true;
		readers->stats.reads_ahead++;
		readers->stats.bytes_ahead += got;
		pthread_cond_signal(&chunk->ahead->arrived);
	}
	pthread_mutex_unlock(&readers->lock);
	return NULL;
}

struct fsd_readers *fsd_readers_start(unsigned threads, size_t memory)
{
	struct fsd_readers *readers = calloc(1, sizeof(*readers));

	if (!readers)
		return NULL;
	readers->threads_max = threads ? threads : 1;
	readers->ids = calloc(readers->threads_max, sizeof(*readers->ids));
	if (!readers->ids) {
		free(readers);
		return NULL;
	}
	pthread_mutex_init(&readers->lock, NULL);
	pthread_cond_init(&readers->work, NULL);
	readers->tail = &readers->head;
	readers->memory = memory;
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

/* Queue a read; the lock is held. Returns false if there is no thread at all to do it. */
static bool enqueue(struct fsd_readers *readers, struct chunk *chunk)
{
	if (readers->idle == 0 && readers->threads < readers->threads_max &&
	    pthread_create(&readers->ids[readers->threads], NULL, reader_main, readers) == 0)
		readers->threads++;
	if (readers->threads == 0)
		return false;
	chunk->next = NULL;
	*readers->tail = chunk;
	readers->tail = &chunk->next;
	pthread_cond_signal(&readers->work);
	return true;
}

/* Bytes that one call may have in buffers now; the lock is held. */
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

/* Start the read of the next stretch. 0 or -ENOMEM. */
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

/* The oldest chunk is used up. Its buffer goes if there are more than should be. */
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

/* Wait for what is still being read, and let go of everything. */
static void ahead_stop(struct fsd_readers *readers, struct ahead *ahead)
{
	if (!ahead->chunk_bytes)
		return;
	pthread_mutex_lock(&readers->lock);
	struct chunk **at = &readers->head;

	while (*at) { /* not begun: need not be read */
		if ((*at)->ahead == ahead) {
			(*at)->done = true;
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

/* What a send has still to do. */
struct send {
	struct fsd_readers *readers;
	struct fsd_file *file;
	const struct fsd_stat *expect;
	struct fsd_stream *stream;
	uint64_t offset, left;
	uint64_t checked;	 /* offset at the last comparison */
	uint64_t cached, direct; /* for the statistics */
	uint8_t *buffer;	 /* BUFFER_BYTES, or NULL */
	struct ahead ahead;
};

static int still_same(struct send *send)
{
	struct fsd_stat st;
	int rc = send->file->layer->ops->stat_file(send->file, &st);

	send->checked = send->offset;
	if (rc)
		return rc;
	return fsd_stat_same(&st, send->expect) && st.links > 0 ? 0 : -EIO;
}

static int advance(struct send *send, size_t bytes)
{
	send->offset += bytes;
	send->left -= bytes;
	return send->left == 0 || send->offset - send->checked >= CHECK_EVERY ? still_same(send)
									      : 0;
}

/*
 * What is in the page cache now, into the packets' own memory. Bytes sent, -EAGAIN, another -errno,
 * FSD_LOST.
 */
static ssize_t cached_to_slots(struct send *send)
{
	struct iovec iov[SLOTS_IOV];
	unsigned count = SLOTS_IOV;
	ssize_t room = send->stream->ops->reserve(send->stream, (size_t)send->left, iov, &count);
	ssize_t n;

	if (room <= 0)
		return FSD_LOST;
	n = send->file->layer->ops->preadv(send->file, iov, (int)count, send->offset,
					   FSD_READ_CACHED);
	if (send->stream->ops->commit(send->stream, n > 0 ? (size_t)n : 0) < 0)
		return FSD_LOST;
	return n;
}

static bool have_buffer(struct send *send)
{
	if (!send->buffer)
		send->buffer = malloc(BUFFER_BYTES);
	return send->buffer != NULL;
}

/* The same by way of the buffer. */
static ssize_t cached_to_buffer(struct send *send)
{
	struct iovec iov = {send->buffer, BUFFER_BYTES};
	ssize_t n;

	if (send->left < iov.iov_len)
		iov.iov_len = (size_t)send->left;
	n = send->file->layer->ops->preadv(send->file, &iov, 1, send->offset, FSD_READ_CACHED);
	if (n > 0 && fsd_stream_write(send->stream, send->buffer, (size_t)n))
		return FSD_LOST;
	return n;
}

/* As long as there is something in the page cache. 0 also when nothing is. */
static int send_cached(struct send *send)
{
	while (send->left) {
		ssize_t n = send->left > SLOTS_MAX && have_buffer(send) ? cached_to_buffer(send)
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

/* A little that is not in the cache: this thread waits for the disk. */
static int send_direct(struct send *send)
{
	size_t want = send->left < BUFFER_BYTES ? (size_t)send->left : BUFFER_BYTES, got = 0;
	int rc = 0;

	if (!have_buffer(send))
		return -ENOMEM;
	while (got < want && !rc) {
		struct iovec iov = {send->buffer + got, want - got};
		ssize_t n =
			send->file->layer->ops->preadv(send->file, &iov, 1, send->offset + got, 0);

		if (n > 0)
			got += (size_t)n;
		else
			rc = n ? (int)n : -EIO;
	}
	if (!rc)
		rc = fsd_stream_write(send->stream, send->buffer, got);
	if (!rc) {
		send->direct += got;
		rc = advance(send, got);
	}
	return rc;
}

/* Is the next stretch in the page cache? Both its ends are, at least. */
static bool next_cached(struct send *send, uint64_t offset, uint64_t left)
{
	uint64_t length = left < send->ahead.chunk_bytes ? left : send->ahead.chunk_bytes;
	const struct fsd_layer_ops *ops = send->file->layer->ops;
	char byte;
	struct iovec iov = {&byte, 1};

	return ops->preadv(send->file, &iov, 1, offset, FSD_READ_CACHED) == 1 &&
	       ops->preadv(send->file, &iov, 1, offset + length - 1, FSD_READ_CACHED) == 1;
}

/*
 * From the disk: several large reads are always under way ahead of what is sent, and a new one
 * starts as soon as a buffer is free. Returns when all is sent, or when the rest turns out to be in
 * the page cache.
 */
static int send_ahead(struct send *send)
{
	struct ahead *ahead = &send->ahead;
	uint64_t next = send->offset, end = send->offset + send->left;
	bool more = true;
	int rc = 0;

	if (!ahead->chunk_bytes)
		ahead_start(send->readers, ahead);
	while (!rc && send->left) {
		unsigned depth = depth_now(send->readers, ahead->chunk_bytes);

		while (more && next < end && ahead->count < depth) {
			if (next > send->offset && next_cached(send, next, end - next)) {
				more = false;
				break;
			}
			rc = post(send->readers, ahead, next, end - next);
			if (rc && ahead->count == 0)
				return rc;
			if (rc)
				break; /* no memory for one more: go on with what there is */
			next += ahead->chunk_bytes;
		}
		rc = 0;
		if (ahead->count == 0)
			return 0;

		struct chunk *chunk = take(send->readers, ahead);

		if (chunk->result < 0)
			rc = (int)chunk->result;
		else if ((size_t)chunk->result < chunk->want)
			rc = -EIO;
		else
			rc = fsd_stream_write(send->stream, chunk->data, chunk->want);
		if (!rc)
			rc = advance(send, chunk->want);
		retire(ahead, depth);
	}
	return rc;
}

int fsd_send_file(struct fsd_readers *readers, struct fsd_file *file, const struct fsd_stat *expect,
		  uint64_t offset, uint64_t length, struct fsd_stream *stream)
{
	struct send send = {
		.readers = readers,
		.file = file,
		.expect = expect,
		.stream = stream,
		.offset = offset,
		.left = length,
		.checked = offset,
		.ahead.file = file,
	};
	int rc = 0;

	pthread_cond_init(&send.ahead.arrived, NULL);
	while (!rc && send.left) {
		rc = send_cached(&send);
		if (!rc && send.left)
			rc = send.left <= DIRECT_MAX ? send_direct(&send) : send_ahead(&send);
	}
	ahead_stop(readers, &send.ahead);
	free(send.buffer);
	pthread_cond_destroy(&send.ahead.arrived);
	pthread_mutex_lock(&readers->lock);
	readers->stats.bytes_cached += send.cached;
	readers->stats.bytes_direct += send.direct;
	pthread_mutex_unlock(&readers->lock);
	return rc;
}
