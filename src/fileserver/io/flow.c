/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows: file data on its way into replies, without a thread. A flow is run by whichever thread finds
 * that it can go on: the one that received an ACK, a reader whose read is done, or the handler at the
 * beginning. Cached pages are read straight into the packets. The pool reads the rest, several large
 * reads ahead of the send position.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "fileserver/io/chunk.h"

#define CHUNK_MIN ((size_t)128 << 10)
#define CHUNK_MAX ((size_t)1 << 20)
#define DEPTH_MIN 2
#define DIRECT_MAX ((uint64_t)256 << 10) /* up to this size there is nothing to read ahead */
#define DIRECT_BYTES ((size_t)64 << 10)
#define CACHED_RUN 8 /* reading ahead stops after this many reads in a row from the page cache */
/*
 * If this much was in the page cache since the last read of the disk, the kernel is reading ahead.
 * With more flows than CPUs it is then cheapest to follow the kernel: a large buffer has left the CPU
 * cache when it is sent.
 */
#define KERNEL_AHEAD ((uint64_t)2 << 20)
#define SLOTS_IOV    64
#define TURN	     ((uint64_t)4 << 20) /* bytes that a thread sends in a row */
#define VISITS	     16			 /* that one thread leaves to others in a row */

/*
 * Used only by the thread that runs it: the one that raised the visits of `base` from 0. The reads are
 * in file order: ring[first .. first + count).
 */
struct fsd_flow {
	struct asker base;
	struct fsd_job job; /* a thread that may wait runs it, on behalf of one that must not */
	struct fsd_turn turn;
	struct fsd_stream *stream;
	void (*done)(struct fsd_source *source, int result);
	uint64_t offset, left;
	uint64_t waited; /* offset of the last read of the disk */
	uint64_t cached; /* bytes, for the statistics */
	struct chunk ring[DEPTH_MAX];
	unsigned first, count;
	size_t written;	       /* bytes of the first chunk */
	uint64_t next;	       /* offset of the next read, while there are chunks */
	unsigned cached_reads; /* chunks in a row that came from the page cache */
	unsigned depth;	       /* intended chunks */
	bool ahead;	       /* they are posted as long as there are more */
	bool active;	       /* counted by its caller */
	size_t chunk_bytes;
	uint8_t *spare; /* a buffer of chunk_bytes; not charged, so only while the flow runs */
	int result;
	/* The lock of the readers covers the rest. */
	size_t charged; /* bytes of buffers; if there are any: */
	uint64_t changed_ns;
	struct fsd_flow *next_charged, **link;
};

static uint64_t now_ns(const struct fsd_flow *flow)
{
	return flow->base.readers->timeline ? monotonic_ns() : 0;
}

/* While there are chunks: more are to be posted. */
static bool wants_more(const struct fsd_flow *flow)
{
	return flow->next < flow->offset + flow->left && flow->cached_reads < CACHED_RUN;
}

static void note_moment(const struct fsd_flow *flow, const char *what, size_t bytes, uint64_t begin)
{
	struct fsd_timeline *timeline = flow->base.readers->timeline;
	struct fsd_moment moment = {.send = flow->base.number,
				    .what = what,
				    .offset = flow->offset,
				    .bytes = bytes,
				    .begin_ns = begin,
				    .ahead = flow->count,
				    .allowed = flow->count && wants_more(flow) ? flow->depth
									       : flow->count};

	if (!timeline)
		return;
	moment.end_ns = monotonic_ns();
	fsd_timeline_add(timeline, &moment);
}

static void advance_flow(struct fsd_flow *flow, size_t bytes)
{
	flow->offset += bytes;
	flow->left -= bytes;
}

/* -- from the page cache -- */

/*
 * The next run of packets. With `cached`, only what needs no disk. Bytes; 0: not in the page
 * cache; -EAGAIN: no room; another -errno, or FSD_LOST.
 */
static ssize_t fill_slots(struct fsd_flow *flow, bool cached)
{
	struct fsd_stream *stream = flow->stream;
	struct iovec iov[SLOTS_IOV];
	unsigned count = SLOTS_IOV;
	ssize_t room = stream->ops->reserve(stream, (size_t)flow->left, iov, &count), n;
	uint64_t begin;

	if (room <= 0)
		return room == -EAGAIN ? -EAGAIN : FSD_LOST;
	begin = now_ns(flow);
	n = flow->base.source->ops->read(flow->base.source, iov, (int)count, flow->offset, cached);
	if (n > 0)
		note_moment(flow, cached ? FSD_READ_CACHE : FSD_READ_DIRECT, (size_t)n, begin);
	begin = now_ns(flow);
	if (stream->ops->commit(stream, n > 0 ? (size_t)n : 0) < 0)
		return FSD_LOST;
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n ? n : -EIO;
	note_moment(flow, FSD_SENT, (size_t)n, begin);
	advance_flow(flow, (size_t)n);
	return n;
}

/* -- from the disk -- */

/* Bytes of buffers that a caller may have, at most those that would be free then. The caller holds the lock. */
static size_t caller_memory(const struct fsd_readers *readers, const struct caller *caller)
{
	assert(readers->used <= readers->memory && caller->memory <= readers->used);
	return (readers->memory - readers->used + caller->memory) / 2;
}

/* Bytes of buffers that one flow may use: those of a caller that read ahead share what it may have. */
static size_t flow_memory(struct fsd_flow *flow)
{
	struct caller *caller = flow->base.caller;
	size_t share;

	pthread_mutex_lock(&flow->base.readers->lock);
	caller->active += !flow->active;
	share = caller_memory(flow->base.readers, caller) / caller->active;
	pthread_mutex_unlock(&flow->base.readers->lock);
	flow->active = true;
	return share;
}

/* These two with the lock held. */
static void append_charged(struct fsd_flow *flow)
{
	struct fsd_readers *readers = flow->base.readers;

	flow->changed_ns = monotonic_ns();
	flow->next_charged = NULL;
	flow->link = readers->last;
	*flow->link = flow;
	readers->last = &flow->next_charged;
}

static void remove_charged(struct fsd_flow *flow)
{
	*flow->link = flow->next_charged;
	if (flow->next_charged)
		flow->next_charged->link = flow->link;
	else
		flow->base.readers->last = flow->link;
}

static bool charge_memory(struct fsd_flow *flow, size_t bytes)
{
	struct fsd_readers *readers = flow->base.readers;
	struct caller *caller = flow->base.caller;
	bool may;

	if (!bytes)
		return true;
	pthread_mutex_lock(&readers->lock);
	may = caller->memory + bytes <= caller_memory(readers, caller);
	if (may) {
		if (flow->charged)
			remove_charged(flow);
		flow->charged += bytes;
		caller->memory += bytes;
		readers->used += bytes;
		append_charged(flow);
	}
	pthread_mutex_unlock(&readers->lock);
	return may;
}

static void return_memory(struct fsd_flow *flow, size_t bytes)
{
	struct fsd_readers *readers = flow->base.readers;

	if (!bytes)
		return;
	pthread_mutex_lock(&readers->lock);
	remove_charged(flow);
	flow->charged -= bytes;
	flow->base.caller->memory -= bytes;
	readers->used -= bytes;
	if (flow->charged)
		append_charged(flow);
	pthread_mutex_unlock(&readers->lock);
}

/* 0: too little for what it began with. */
static void update_depth(struct fsd_flow *flow)
{
	size_t depth = flow_memory(flow) / flow->chunk_bytes;

	flow->depth = depth < DEPTH_MIN ? 0 : depth > DEPTH_MAX ? DEPTH_MAX : (unsigned)depth;
}

static bool follows_kernel(const struct fsd_flow *flow)
{
	struct fsd_readers *readers = flow->base.readers;
	bool many;

	if (flow->offset - flow->waited < KERNEL_AHEAD)
		return false;
	pthread_mutex_lock(&readers->lock);
	many = readers->flows > readers->processors;
	pthread_mutex_unlock(&readers->lock);
	return many;
}

static void drop_spare(struct fsd_flow *flow)
{
	free(flow->spare);
	flow->spare = NULL;
}

static void retire_chunk(struct fsd_flow *flow)
{
	struct chunk *chunk = &flow->ring[flow->first];

	if (!chunk->cached)
		flow->waited = flow->offset;
	flow->cached_reads = chunk->cached ? flow->cached_reads + 1 : 0;
	return_memory(flow, chunk->charge);
	if (flow->ahead && !flow->spare && !flow->base.over)
		flow->spare = chunk->data;
	else
		free(chunk->data);
	flow->written = 0;
	flow->first = (flow->first + 1) % DEPTH_MAX;
	flow->count--;
}

/* -- from flows whose clients take nothing -- */

/*
 * If not even a newcomer could read ahead: run the flow whose buffers have not changed for longest, if it is stalled.
 * NULL: it is not, or another thread runs it.
 */
static struct fsd_flow *seize_stalled(struct fsd_readers *readers)
{
	struct fsd_flow *flow;
	unsigned none = 0;

	pthread_mutex_lock(&readers->lock);
	flow = readers->memory - readers->used < 2 * DEPTH_MIN * CHUNK_MIN ? readers->first : NULL;
	if (flow && monotonic_ns() - flow->changed_ns < readers->stall_ns)
		flow = NULL;
	if (flow) {
		/* Another one is next, whatever this one has. */
		remove_charged(flow);
		append_charged(flow);
		if (!atomic_compare_exchange_strong(&flow->base.visits, &none, 1))
			flow = NULL;
	}
	pthread_mutex_unlock(&readers->lock);
	return flow;
}

static bool is_all_read(struct fsd_flow *flow)
{
	bool all = true;

	pthread_mutex_lock(&flow->base.readers->lock);
	for (unsigned i = 0; i < flow->count; i++)
		all &= flow->ring[(flow->first + i) % DEPTH_MAX].done;
	pthread_mutex_unlock(&flow->base.readers->lock);
	return all;
}

/* It reads again what it had, when its client goes on. A constant effort, since any thread may do this. */
static void take_from_stalled(struct fsd_readers *readers)
{
	struct fsd_flow *flow = seize_stalled(readers);

	if (!flow)
		return;
	if (is_all_read(flow)) {
		while (flow->count)
			retire_chunk(flow);
		drop_spare(flow);
	}
	/* Threads that visited meanwhile left the flow to this thread, which has to do something else. */
	if (atomic_fetch_sub(&flow->base.visits, 1) != 1)
		fsd_pool_post(readers->pool, &flow->job);
}

/* -- how much to read -- */

/* Decides how much to read at a time, and whether ahead of the wire. */
static void choose_chunks(struct fsd_flow *flow)
{
	size_t share;

	flow->depth = 1;
	flow->ahead = false;
	if (flow->left <= DIRECT_MAX) {
		flow->chunk_bytes = (size_t)flow->left;
		return;
	}
	flow->chunk_bytes = DIRECT_BYTES;
	if (follows_kernel(flow))
		return;
	share = flow_memory(flow);
	if (share < DEPTH_MIN * CHUNK_MIN) {
		take_from_stalled(flow->base.readers);
		share = flow_memory(flow);
	}
	if (share < DEPTH_MIN * CHUNK_MIN)
		return;
	flow->ahead = true;
	flow->chunk_bytes = CHUNK_MAX;
	while (flow->chunk_bytes > CHUNK_MIN && flow->chunk_bytes * 4 > share)
		flow->chunk_bytes /= 2;
}

static uint8_t *take_buffer(struct fsd_flow *flow)
{
	uint8_t *data = flow->spare;

	flow->spare = NULL;
	return data ? data : malloc(flow->chunk_bytes);
}

/* Queue the read of the next part. The smallest one is for free: each flow goes on. */
static bool post_chunk(struct fsd_flow *flow)
{
	struct chunk *chunk = &flow->ring[(flow->first + flow->count) % DEPTH_MAX];
	size_t charge = flow->chunk_bytes > DIRECT_BYTES ? flow->chunk_bytes : 0;
	uint64_t left = flow->offset + flow->left - flow->next;
	uint8_t *data;

	assert(flow->count < DEPTH_MAX && (charge || !flow->count));
	if (!charge_memory(flow, charge))
		return false;
	data = take_buffer(flow);
	if (!data) {
		return_memory(flow, charge);
		return false;
	}
	*chunk = (struct chunk){.job = {.caller = &flow->base.caller->base, .run = fsd_chunk_read},
				.asker = &flow->base,
				.data = data,
				.charge = charge,
				.offset = flow->next,
				.want = left < flow->chunk_bytes ? (size_t)left : flow->chunk_bytes,
				.direct = !flow->ahead};
	fsd_pool_post(flow->base.readers->pool, &chunk->job);
	flow->count++;
	flow->next += chunk->want;
	return true;
}

/* Reads begin as early as possible: before anything is sent, and as soon as a buffer is free. */
static void post_chunks(struct fsd_flow *flow)
{
	update_depth(flow);
	while (wants_more(flow) && flow->count < flow->depth)
		if (!post_chunk(flow))
			break; /* with those there are */
	drop_spare(flow);
}

/* The next bytes are not in the page cache. */
static int begin_reading(struct fsd_flow *flow)
{
	assert(!flow->count); /* their buffers might be smaller than the next ones */
	flow->next = flow->offset;
	flow->cached_reads = 0;
	choose_chunks(flow);
	if (flow->ahead)
		post_chunks(flow);
	else
		post_chunk(flow);
	if (flow->count)
		return 0;
	flow->ahead = false;
	flow->depth = 1;
	flow->chunk_bytes = DIRECT_BYTES;
	return post_chunk(flow) ? 0 : -ENOMEM;
}

static bool is_read(struct fsd_flow *flow)
{
	struct chunk *chunk = &flow->ring[flow->first];
	bool done;

	pthread_mutex_lock(&flow->base.readers->lock);
	done = chunk->done;
	flow->base.readers->stats.waits += !done && !chunk->awaited;
	pthread_mutex_unlock(&flow->base.readers->lock);
	chunk->awaited |= !done;
	return done;
}

/* Sends as much of the first chunk as there is room for. The result is that of fill_slots(), or 0: all of it was sent. */
static ssize_t send_chunk(struct fsd_flow *flow)
{
	const struct chunk *chunk = &flow->ring[flow->first];
	size_t want = chunk->want - flow->written;
	uint64_t begin;
	ssize_t n;

	if (!is_read(flow))
		return -EAGAIN;
	if (chunk->result < 0)
		return chunk->result;
	if ((size_t)chunk->result < chunk->want)
		return -EIO;
	begin = now_ns(flow);
	n = flow->stream->ops->write(flow->stream, chunk->data + flow->written, want);
	if (n <= 0)
		return n == -EAGAIN ? -EAGAIN : FSD_LOST;
	note_moment(flow, FSD_SENT, (size_t)n, begin);
	advance_flow(flow, (size_t)n);
	flow->written += (size_t)n;
	if ((size_t)n < want)
		return -EAGAIN;
	retire_chunk(flow);
	return n;
}

/* -- flows -- */

/*
 * The address has had its part: others are first. There has to be room, or the client would not be seen to be slow, or
 * gone.
 */
static ssize_t await_turn(struct fsd_flow *flow)
{
	struct fsd_stream *stream = flow->stream;
	struct iovec iov;
	unsigned count = 1;
	ssize_t room;

	drop_spare(flow); /* whether it waits for its turn or for room */
	room = stream->ops->reserve(stream, (size_t)flow->left, &iov, &count);
	if (room <= 0)
		return room == -EAGAIN ? -EAGAIN : FSD_LOST;
	if (stream->ops->commit(stream, 0) < 0)
		return FSD_LOST;
	return fsd_turn_wait(&flow->base.readers->saturation, &flow->turn) ? -EAGAIN : 1;
}

/* The next step. Positive: go on; -EAGAIN: nothing can be done now. */
static ssize_t take_step(struct fsd_flow *flow)
{
	ssize_t n;
	int rc;

	if (!fsd_turn_has(&flow->base.readers->saturation, &flow->turn))
		return await_turn(flow);
	if (flow->count) {
		if (flow->ahead)
			post_chunks(flow);
		return send_chunk(flow);
	}
	drop_spare(flow);
	n = fill_slots(flow, true);
	if (n) {
		flow->cached += n > 0 ? (uint64_t)n : 0;
		return n;
	}
	rc = begin_reading(flow);
	return rc ? rc : 1;
}

/* It is over: true when no reader uses the flow any more. */
static bool discard_chunks(struct fsd_flow *flow)
{
	while (flow->count && is_read(flow))
		retire_chunk(flow);
	return flow->count == 0;
}

static void leave_caller(struct fsd_flow *flow)
{
	struct fsd_readers *readers = flow->base.readers;
	struct caller *caller = flow->base.caller;

	fsd_turn_end(&readers->saturation, &flow->turn, &caller->base.share.key);
	pthread_mutex_lock(&readers->lock);
	readers->flows--;
	pthread_mutex_unlock(&readers->lock);
	fsd_pool_leave(readers->pool, &caller->base);
}

/* On a thread that may wait: the source closes its file, and others may hold what it needs. */
static void end_flow(struct fsd_flow *flow)
{
	struct fsd_readers *readers = flow->base.readers;

	drop_spare(flow);
	pthread_mutex_lock(&readers->lock);
	readers->stats.bytes_cached += flow->cached;
	flow->base.caller->active -= flow->active;
	pthread_mutex_unlock(&readers->lock);
	leave_caller(flow);
	flow->done(flow->base.source, flow->result); /* no callback runs from now on */
	free(flow);
}

/*
 * The thread has sent enough in a row: another one is to go on. That is the visit which it asks for now;
 * those before told of nothing that the flow will not find then. A client may cause any number of them.
 */
static bool leave_to_another(struct fsd_flow *flow, unsigned *seen)
{
	*seen = atomic_load(&flow->base.visits);
	return flow->stream->ops->again(flow->stream) >= 0;
}

/*
 * False: the flow has ended, or a reader will end it: no other thread touches it again, since its visits
 * stay above 0. A thread that seals more slowly than the client reads never runs out of room. Others wait
 * for it, so it leaves the flow to another one after a turn. *seen: visits that this round answers.
 */
static bool run_round(struct fsd_flow *flow, bool receives, unsigned *seen)
{
	uint64_t begin = flow->offset;

	while (!flow->base.over) {
		uint64_t before = flow->offset;
		ssize_t n = flow->left ? take_step(flow) : 0;

		fsd_turn_charge(&flow->base.readers->saturation, &flow->turn,
				flow->offset - before);
		if (n == -EAGAIN)
			return true;
		if (n <= 0) {
			flow->result = (int)n;
			atomic_store(&flow->base.over, true);
		} else if (flow->offset - begin >= TURN && flow->left &&
			   leave_to_another(flow, seen)) {
			drop_spare(flow); /* there may be no room before long */
			return true;
		}
	}
	if (!discard_chunks(flow))
		return true;
	assert(flow->base.over && !flow->count); /* the pool has nothing of it but its end */
	if (receives)
		fsd_pool_post(flow->base.readers->pool, &flow->job);
	else
		end_flow(flow);
	return false;
}

/* Goes on until no visit came since its last round began. `receives`: this thread must not wait. */
static void run_flow(struct fsd_flow *flow, bool receives)
{
	unsigned seen = atomic_load(&flow->base.visits), visits;

	while (run_round(flow, receives, &seen)) {
		assert(!flow->spare);
		visits = atomic_fetch_sub(&flow->base.visits, seen);
		if (visits == seen)
			return;
		seen = visits - seen;
	}
}

static void run_by_reader(struct asker *asker)
{
	run_flow((struct fsd_flow *)(void *)asker, false);
}

static void run_flow_job(struct fsd_job *job)
{
	run_flow((struct fsd_flow *)(void *)((char *)job - offsetof(struct fsd_flow, job)), false);
}

static void visit_flow(void *arg)
{
	struct fsd_flow *flow = arg;

	fsd_saturation_notice(&flow->base.readers->saturation);
	if (atomic_fetch_add(&flow->base.visits, 1) == 0)
		run_flow(flow, true);
}

/* Its turn has come. This thread runs it, and leaves it to one that receives, or to the pool. */
static void resume_flow(struct fsd_turn *turn)
{
	struct fsd_flow *flow =
		(struct fsd_flow *)(void *)((char *)turn - offsetof(struct fsd_flow, turn));
	unsigned seen = 1, visits;

	for (unsigned i = 0; i < VISITS && flow->stream->ops->again(flow->stream) >= 0; i++) {
		visits = atomic_fetch_sub(&flow->base.visits, seen);
		assert(visits >= seen);
		if (visits == seen)
			return;
		seen = visits - seen; /* they came before the visit that is asked for next */
	}
	fsd_pool_post(flow->base.readers->pool, &flow->job);
}

/* False: no memory, or no thread. */
static bool enter_caller(struct fsd_flow *flow, const struct fsd_share_key *key)
{
	struct fsd_readers *readers = flow->base.readers;
	struct caller *caller = (struct caller *)fsd_pool_enter(readers->pool, key);

	if (!caller)
		return false;
	flow->base.caller = caller;
	flow->turn = (struct fsd_turn){
		.caller = &caller->crowd, .resume = resume_flow, .visits = &flow->base.visits};
	fsd_turn_begin(&readers->saturation, &flow->turn, key);
	pthread_mutex_lock(&readers->lock);
	readers->flows++;
	pthread_mutex_unlock(&readers->lock);
	return true;
}

int fsd_flow_start(struct fsd_readers *readers, struct fsd_source *source, uint64_t offset,
		   uint64_t length, struct fsd_stream *stream,
		   void (*done)(struct fsd_source *source, int result))
{
	struct fsd_flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return -ENOMEM;
	flow->base.readers = readers;
	flow->base.source = source;
	flow->base.run = run_by_reader;
	flow->stream = stream;
	flow->done = done;
	flow->base.number = readers->timeline ? fsd_timeline_send(readers->timeline) : 0;
	flow->offset = flow->waited = offset;
	flow->left = length;
	atomic_store(&flow->base.visits, 1);
	if (!enter_caller(flow, &stream->caller)) {
		free(flow);
		return -ENOMEM;
	}
	flow->job = (struct fsd_job){
		.caller = &flow->base.caller->base, .run = run_flow_job, .urgent = true};
	if (stream->ops->watch && stream->ops->watch(stream, visit_flow, flow) < 0) {
		leave_caller(flow);
		free(flow);
		return -ENOMEM;
	}
	run_flow(flow, false);
	return 0;
}

/* -- a few packets -- */

#define HELD ((size_t)8 << 10) /* bytes that are read at a time */

/* Read and write the next bytes, behind the head. Bytes of the source; -EIO: it has ended; another -errno; FSD_LOST. */
static ssize_t send_held(struct fsd_flow *flow, const struct fsd_head *head)
{
	struct fsd_source *source = flow->base.source;
	uint8_t bytes[FSD_HEAD + HELD];
	size_t most = flow->left < HELD ? (size_t)flow->left : HELD;
	const struct iovec iov = {.iov_base = bytes + head->length, .iov_len = most};
	uint64_t begin = now_ns(flow);
	ssize_t n = source->ops->read(source, &iov, 1, flow->offset, true);
	bool cached = n != -EAGAIN;

	assert(head->length <= FSD_HEAD);
	if (!cached)
		n = source->ops->read(source, &iov, 1, flow->offset, false);
	if (n <= 0)
		return n ? n : -EIO;
	note_moment(flow, cached ? FSD_READ_CACHE : FSD_READ_DIRECT, (size_t)n, begin);
	begin = now_ns(flow);
	if (head->length)
		memcpy(bytes, head->bytes, head->length);
	if (flow->stream->ops->hold(flow->stream, bytes, head->length + (size_t)n) < 0)
		return FSD_LOST;
	note_moment(flow, FSD_SENT, (size_t)n, begin);
	flow->cached += cached ? (size_t)n : 0;
	advance_flow(flow, (size_t)n);
	return n;
}

int fsd_send_now(struct fsd_readers *readers, struct fsd_source *source, uint64_t offset,
		 uint64_t length, const struct fsd_head *head, struct fsd_stream *stream)
{
	struct fsd_flow flow = {
		.base.readers = readers,
		.base.source = source,
		.stream = stream,
		.base.number = readers->timeline ? fsd_timeline_send(readers->timeline) : 0,
		.offset = offset,
		.left = length};
	const struct fsd_head none = {0};
	ssize_t n = 0;

	if (!length && stream->ops->hold(stream, head->bytes, head->length) < 0)
		return FSD_LOST;
	while (flow.left && n >= 0) {
		n = send_held(&flow, head);
		head = &none;
	}
	pthread_mutex_lock(&readers->lock);
	readers->stats.bytes_cached += flow.cached;
	readers->stats.bytes_direct += length - flow.left - flow.cached;
	pthread_mutex_unlock(&readers->lock);
	return n < 0 ? (int)n : 0;
}
