/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of flows and their readers: bytes, reading ahead, limits, windows, failures. */
#include "tests/fileserver/fixture.h"
#include "fileserver/io/chunk.h"
#include "tests/main.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static struct slow_layer *slow;
static struct fsd_readers *readers;
static struct memory_stream m;
static struct export_file *file;
static struct export_stat st;
static struct fsd_timeline *timeline; /* NULL: none */

static void setup(uint64_t size, unsigned read_ms, unsigned threads, size_t memory)
{
	slow = slow_layer_make(size, read_ms);
	readers = fsd_readers_start(threads, memory, timeline);
	ck_assert_ptr_nonnull(readers);
	memory_stream_init(&m);
	file = slow_layer_open(slow, &st);
}

static void teardown(void)
{
	slow->base.ops->close(file);
	memory_stream_free(&m);
	ck_assert_uint_eq(readers->used, 0);
	fsd_readers_stop(readers);
	slow->base.ops->destroy(&slow->base);
}

static void check_bytes(uint64_t offset, uint64_t length)
{
	ck_assert_uint_eq(m.reply_length, length);
	for (uint64_t i = 0; i < length; i++)
		if (m.reply[i] != slow_layer_byte(offset + i))
			ck_abort_msg("byte %llu differs", (unsigned long long)i);
}

START_TEST(bytes_from_disk)
{
	static const uint64_t ranges[][2] = {
		{0, 20 * MIB},	 {1, 5 * MIB + 3}, {3 * MIB + 7, 300000},
		{19 * MIB, MIB}, {5, 100},	   {7 * MIB, 0}};

	setup(20 * MIB, 0, 4, 8 * MIB);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		m.reply_length = 0;
		ck_assert_int_eq(
			send_file(readers, file, ranges[i][0], ranges[i][1], &m.stream), 0);
		check_bytes(ranges[i][0], ranges[i][1]);
	}
	teardown();
}
END_TEST

START_TEST(bytes_from_cache)
{
	struct fsd_reader_stats stats;

	setup(20 * MIB, 0, 4, 8 * MIB);
	slow->cached_below = 20 * MIB;
	ck_assert_int_eq(send_file(readers, file, 11, 20 * MIB - 11, &m.stream), 0);
	check_bytes(11, 20 * MIB - 11);
	ck_assert_uint_eq(slow->reads, 0);
	fsd_readers_stats(readers, &stats);
	ck_assert_uint_eq(stats.bytes_cached, 20 * MIB - 11);
	ck_assert_uint_eq(stats.threads, 1);
	teardown();
}
END_TEST

START_TEST(cached_beginning)
{
	setup(20 * MIB, 0, 4, 8 * MIB);
	slow->cached_below = 3 * MIB + 12345;
	ck_assert_int_eq(send_file(readers, file, 0, 20 * MIB, &m.stream), 0);
	check_bytes(0, 20 * MIB);
	ck_assert_uint_gt(slow->reads, 0);
	for (unsigned i = 0; i < slow->reads; i++)
		ck_assert_uint_ge(slow->offset[i], 3 * MIB);
	teardown();
}
END_TEST

#define SLOW_CHUNKS 64u
#define SLOW_DEPTH  8u

/* A simulated wire that takes its time for each piece. */
struct pace {
	unsigned write_ms;
	unsigned writes;
	uint64_t busy_ns;
};

static unsigned reads_now(void)
{
	pthread_mutex_lock(&slow->lock);
	unsigned n = slow->reads;
	pthread_mutex_unlock(&slow->lock);
	return n;
}

/* The write ends only when all reads that the limit allows have started. */
static void slow_write(void *arg, size_t total, size_t length)
{
	struct pace *wire = arg;
	struct timespec ts = {.tv_nsec = (long)wire->write_ms * 1000000};
	unsigned allowed = wire->writes + SLOW_DEPTH;
	uint64_t from, patience = monotonic_ns() + 30000000000ull;

	(void)total;
	(void)length;
	if (allowed > SLOW_CHUNKS)
		allowed = SLOW_CHUNKS;
	while (reads_now() < allowed) {
		ck_assert_msg(monotonic_ns() < patience,
			      "during write %u only %u reads were started, %u were allowed",
			      wire->writes, reads_now(), allowed);
		usleep(100);
	}
	wire->writes++;
	from = monotonic_ns();
	nanosleep(&ts, NULL);
	wire->busy_ns += monotonic_ns() - from;
}

/*
 * Disk reads take 20 ms, and the wire is as slow. All reads that the limit allows are started
 * before the first byte is sent. From then on one more is started for each that was sent, and none
 * waits for a send to end. slow_write() ensures that.
 */
START_TEST(reads_start_ahead_of_the_wire)
{
	struct pace wire = {.write_ms = 20};
	uint64_t begin, wall;

	setup(SLOW_CHUNKS * MIB, 20, 16, 64 * MIB);
	m.on_write = slow_write;
	m.arg = &wire;
	m.discard = true;
	begin = monotonic_ns();
	ck_assert_int_eq(send_file(readers, file, 0, SLOW_CHUNKS * MIB, &m.stream), 0);
	wall = monotonic_ns() - begin;
	ck_assert_uint_eq(m.reply_length, SLOW_CHUNKS * MIB);
	ck_assert_uint_eq(wire.writes, SLOW_CHUNKS);
	ck_assert_uint_eq(slow->reads, SLOW_CHUNKS);
	/* Printed, not asserted: sleeping threads can be late on a busy machine. */
	printf("wire busy %.1f %%, disk busy %.1f %% until it was done\n",
	       100 * (double)wire.busy_ns / (double)wall,
	       100 * (double)slow->busy_ns / (double)(slow->last_end - begin));
	teardown();
}
END_TEST

/* A stalled wire: the reads stop exactly at the limit. */
static void count_at_first(void *arg, size_t total, size_t length)
{
	struct timespec ts = {.tv_nsec = 150000000};
	unsigned *seen = arg;

	(void)length;
	if (total == 0) {
		while (reads_now() < 4) /* otherwise the test hangs */
			usleep(100);
		nanosleep(&ts, NULL); /* a surplus read would start now */
		*seen = reads_now();
	}
}

START_TEST(memory_limit)
{
	unsigned seen = 0;

	setup(64 * MIB, 1, 16, 8 * MIB);
	m.on_write = count_at_first;
	m.arg = &seen;
	ck_assert_int_eq(send_file(readers, file, 0, 64 * MIB, &m.stream), 0);
	/* a caller has half of 8 MiB, in reads of one: four buffers */
	ck_assert_uint_eq(seen, 4);
	ck_assert_uint_le(slow->most_running, 4);
	check_bytes(0, 64 * MIB);
	teardown();
}
END_TEST

struct sender {
	pthread_t thread;
	struct memory_stream m;
	int rc;
};

static void *send_main(void *arg)
{
	struct sender *s = arg;

	memory_stream_init(&s->m);
	s->rc = send_file(readers, file, 0, 8 * MIB, &s->m.stream);
	return NULL;
}

START_TEST(many_share_the_memory)
{
	struct sender senders[20];

	setup(8 * MIB, 1, 8, 4 * MIB);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(pthread_create(&senders[i].thread, NULL, send_main, &senders[i]),
				 0);
	for (int i = 0; i < 20; i++) {
		pthread_join(senders[i].thread, NULL);
		ck_assert_int_eq(senders[i].rc, 0);
		ck_assert_uint_eq(senders[i].m.reply_length, 8 * MIB);
		for (uint64_t j = 0; j < 8 * MIB; j += 997)
			ck_assert_uint_eq(senders[i].m.reply[j], slow_layer_byte(j));
		memory_stream_free(&senders[i].m);
	}
	ck_assert_uint_le(slow->most_running, 8);
	teardown();
}
END_TEST

/* A call whose peer acknowledges a part at a time. Its callback never runs twice at a time. */
struct paced_call {
	struct memory_stream m;
	struct fsd_source source;
	pthread_mutex_t callback; /* held while it runs; the end of the call waits for it */
	size_t step;
	bool silent;	   /* no callback begins: lock `callback` */
	_Atomic bool over; /* the test may drop it */
	int result;
};

static _Thread_local bool in_callback;

static ssize_t read_paced(struct fsd_source *source, const struct iovec *iov, int count,
			  uint64_t offset, bool cached)
{
	(void)source;
	return file->layer->ops->preadv(file, iov, count, offset, cached ? STORE_CACHED : 0);
}

static const struct fsd_source_ops paced_ops = {.read = read_paced};

static void end_paced(struct fsd_source *source, int result)
{
	struct paced_call *call =
		(struct paced_call *)(void *)((char *)source - offsetof(struct paced_call, source));

	ck_assert(!in_callback); /* a thread that receives must not close files */
	pthread_mutex_lock(&call->callback);
	ck_assert(!call->over);
	call->result = result;
	call->silent = true;
	pthread_mutex_unlock(&call->callback);
	atomic_store(&call->over, true);
}

static void acknowledge(struct paced_call *call)
{
	pthread_mutex_lock(&call->callback);
	if (!call->silent) {
		in_callback = true;
		atomic_fetch_add(&call->m.window, call->step);
		call->m.visit(call->m.visited);
		in_callback = false;
	}
	pthread_mutex_unlock(&call->callback);
}

/*
 * Room comes in parts that fit nothing: less than a packet, packets and a half, more than a buffer. Every byte
 * arrives once and in order, from the page cache, from the disk, and from both in turn.
 */
START_TEST(room_comes_in_parts)
{
	static const size_t steps[] = {700, 2200, 99991, 3 * MIB + 1};
	const uint64_t size = 6 * MIB + 12345;

	for (unsigned i = 0; i < 12; i++) {
		struct paced_call call = {.step = steps[i % 4], .source.ops = &paced_ops};

		setup(size, 0, 4, 8 * MIB);
		slow->cached_below = i < 4 ? size : i < 8 ? 0 : 2 * MIB + 77;
		memory_stream_init(&call.m);
		call.m.has_window = true;
		pthread_mutex_init(&call.callback, NULL);
		ck_assert_int_eq(fsd_flow_start(readers, &call.source, 0, size, &call.m.stream,
						end_paced),
				 0);
		while (!call.over)
			acknowledge(&call);
		ck_assert_int_eq(call.result, 0);
		ck_assert_uint_eq(call.m.reply_length, size);
		for (uint64_t at = 0; at < size; at++)
			if (call.m.reply[at] != slow_layer_byte(at))
				ck_abort_msg("byte %llu differs", (unsigned long long)at);
		memory_stream_free(&call.m);
		teardown();
	}
}
END_TEST

/* A call ends while reads for it are queued and in progress: visits wait for none, and all is freed. */
START_TEST(a_call_ends_while_it_is_read)
{
	struct paced_call call = {.step = 1, .source.ops = &paced_ops};
	uint64_t begin;

	setup(64 * MIB, 300, 2, 64 * MIB);
	memory_stream_init(&call.m);
	call.m.has_window = true;
	call.m.fail_at = 1;
	pthread_mutex_init(&call.callback, NULL);
	ck_assert_int_eq(
		fsd_flow_start(readers, &call.source, 0, 64 * MIB, &call.m.stream, end_paced), 0);
	begin = monotonic_ns();
	for (int i = 0; i < 100; i++)
		acknowledge(&call);
	printf("visits took %.1f ms\n", (double)(monotonic_ns() - begin) / 1e6);
	while (!call.over)
		usleep(1000);
	ck_assert_int_eq(call.result, FSD_LOST);
	ck_assert_uint_le(slow->reads, 4); /* those that had begun */
	memory_stream_free(&call.m);
	teardown();
}
END_TEST

/* The first part of a file comes from the disk, the rest from the page cache; and there is always room. */
#define COLD (64 << 10)

static ssize_t read_warm(struct fsd_source *source, const struct iovec *iov, int count,
			 uint64_t offset, bool cached)
{
	return cached && offset < COLD ? -EAGAIN : read_paced(source, iov, count, offset, false);
}

static const struct fsd_source_ops warm_ops = {.read = read_warm};

struct busy {
	_Atomic bool begun, posted;
	struct memory_stream *visits; /* acknowledges all that is sent at once; NULL: nothing */
};

/* The reader sends from the page cache by then, and another flow wants it. */
static void await_posted(void *arg, size_t total, size_t length)
{
	struct busy *busy = arg;

	(void)length;
	if (busy->visits)
		busy->visits->visit(busy->visits->visited);
	if (total < 2 * MIB)
		return;
	busy->begun = true;
	while (!busy->posted)
		usleep(100);
}

static void reader_goes_back(bool visits)
{
	struct paced_call first = {.source.ops = &warm_ops}, second = {.source.ops = &warm_ops};
	struct busy busy = {.visits = visits ? &first.m : NULL};

	setup(512 * MIB, 0, 1, MIB / 2);
	memory_stream_init(&first.m);
	memory_stream_init(&second.m);
	first.m.discard = true;
	first.m.asks = true;
	first.m.on_write = await_posted;
	first.m.arg = &busy;
	pthread_mutex_init(&first.callback, NULL);
	pthread_mutex_init(&second.callback, NULL);
	ck_assert_int_eq(
		fsd_flow_start(readers, &first.source, 0, 512 * MIB, &first.m.stream, end_paced),
		0);
	while (!busy.begun)
		usleep(100);
	ck_assert_int_eq(
		fsd_flow_start(readers, &second.source, 0, COLD, &second.m.stream, end_paced), 0);
	busy.posted = true;
	while (!second.over)
		usleep(100);
	ck_assert(!first.over);
	while (!first.over)
		acknowledge(&first);
	ck_assert_uint_eq(first.m.reply_length, 512 * MIB);
	memory_stream_free(&first.m);
	memory_stream_free(&second.m);
	teardown();
}

/*
 * A reader thread whose call takes all that it sends goes back to what others wait for, also if visits come
 * meanwhile.
 */
START_TEST(readers_are_not_kept)
{
	reader_goes_back(false);
	reader_goes_back(true);
}
END_TEST

/* -- callers -- */

#define CROWD 100

/* Flows of two callers with one reader thread, which waits in the first read until all reads are queued. */
static struct line_up {
	struct paced_call first[CROWD], second;
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t opened;
	bool open;
	unsigned begun, of_second; /* reads and ends; before that of the second caller */
} line_up;

static void pass_line(const struct fsd_source *source)
{
	pthread_mutex_lock(&line_up.lock);
	line_up.begun++;
	if (source == &line_up.second.source && !line_up.of_second)
		line_up.of_second = line_up.begun;
	while (!line_up.open)
		pthread_cond_wait(&line_up.opened, &line_up.lock);
	pthread_mutex_unlock(&line_up.lock);
}

static ssize_t read_in_line(struct fsd_source *source, const struct iovec *iov, int count,
			    uint64_t offset, bool cached)
{
	if (cached)
		return -EAGAIN;
	pass_line(source);
	return read_paced(source, iov, count, offset, false);
}

static const struct fsd_source_ops line_ops = {.read = read_in_line};

static void end_in_line(struct fsd_source *source, int result)
{
	pass_line(source);
	end_paced(source, result);
}

static void setup_line(void)
{
	line_up.open = false;
	line_up.begun = line_up.of_second = 0;
	setup(MIB, 0, 1, 64 * MIB);
}

static void begin_in_line(struct paced_call *call, uint8_t caller, const struct fsd_source_ops *ops,
			  bool lost)
{
	*call = (struct paced_call){.source.ops = ops, .step = 1};
	memory_stream_init(&call->m);
	call->m.stream.caller.bytes[0] = caller;
	call->m.discard = true;
	call->m.has_window = lost;
	call->m.fail_at = lost;
	pthread_mutex_init(&call->callback, NULL);
	ck_assert_int_eq(
		fsd_flow_start(readers, &call->source, 0, COLD, &call->m.stream, end_in_line), 0);
}

static void await_begun(unsigned begun)
{
	bool enough = false;

	while (!enough) {
		pthread_mutex_lock(&line_up.lock);
		enough = line_up.begun >= begun;
		pthread_mutex_unlock(&line_up.lock);
		usleep(100);
	}
}

static void open_line(void)
{
	pthread_mutex_lock(&line_up.lock);
	line_up.open = true;
	pthread_cond_broadcast(&line_up.opened);
	pthread_mutex_unlock(&line_up.lock);
}

static void end_line(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		while (!line_up.first[i].over)
			usleep(100);
	while (!line_up.second.over)
		usleep(100);
	ck_assert_int_eq(line_up.second.result, 0);
	for (unsigned i = 0; i < CROWD; i++)
		memory_stream_free(&line_up.first[i].m);
	memory_stream_free(&line_up.second.m);
	ck_assert_uint_eq(readers->flows, 0);
	teardown();
}

/* A caller with very many cold flows delays another one by two reads, and the ends of these flows. */
START_TEST(callers_take_turns)
{
	setup_line();
	for (unsigned i = 0; i < CROWD; i++)
		begin_in_line(&line_up.first[i], 1, &line_ops, false);
	await_begun(1);
	begin_in_line(&line_up.second, 2, &line_ops, false);
	open_line();
	end_line();
	ck_assert_uint_le(line_up.of_second, 5);
}
END_TEST

/* The same holds if these flows end, which may take time, too. */
START_TEST(ends_take_turns)
{
	setup_line();
	slow->cached_below = MIB;
	for (unsigned i = 0; i < CROWD; i++)
		begin_in_line(&line_up.first[i], 1, &paced_ops, true);
	acknowledge(&line_up.first[0]);
	begin_in_line(&line_up.second, 2, &line_ops, false);
	await_begun(1);
	for (unsigned i = 1; i < CROWD; i++)
		acknowledge(&line_up.first[i]);
	open_line();
	end_line();
	ck_assert_uint_le(line_up.of_second, 3);
}
END_TEST

#define SMALLEST ((size_t)64 << 10) /* what each flow may read, whatever is free */
#define STALLED	 200

static struct paced_call stalled[STALLED];

/* Its client takes one byte. */
static void begin_stalled(struct paced_call *call, unsigned caller)
{
	*call = (struct paced_call){.source.ops = &paced_ops, .step = 16 * MIB};
	memory_stream_init(&call->m);
	memcpy(call->m.stream.caller.bytes, &caller, sizeof(caller));
	call->m.discard = true;
	call->m.has_window = true;
	call->m.window = 1;
	pthread_mutex_init(&call->callback, NULL);
	ck_assert_int_eq(
		fsd_flow_start(readers, &call->source, 0, 16 * MIB, &call->m.stream, end_paced), 0);
}

/* Nothing else is sent: what was read is in buffers. */
static size_t bytes_read(void)
{
	struct fsd_reader_stats stats;
	bool rests = false;

	while (!rests) {
		usleep(100);
		fsd_pool_threads(readers->pool, &rests);
	}
	fsd_readers_stats(readers, &stats);
	return stats.bytes_ahead + stats.bytes_direct;
}

static void end_stalled(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		while (!stalled[i].over)
			acknowledge(&stalled[i]);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(stalled[i].result, 0);
		ck_assert_uint_eq(stalled[i].m.reply_length, 16 * MIB);
		memory_stream_free(&stalled[i].m);
	}
	teardown();
}

/* However many flows and clients there are, and in which order they come. */
START_TEST(stalled_flows_share_the_memory)
{
	setup(16 * MIB, 0, 4, 8 * MIB);
	readers->stall_ns = UINT64_MAX;
	for (unsigned i = 0; i < STALLED; i++)
		begin_stalled(&stalled[i], i % 50);
	ck_assert_uint_le(bytes_read(), 8 * MIB + STALLED * SMALLEST);
	end_stalled(STALLED);
}
END_TEST

/* One caller leaves half of it to others. */
START_TEST(a_caller_leaves_memory)
{
	const unsigned crowd = 50;
	size_t before;

	setup(16 * MIB, 0, 4, 8 * MIB);
	readers->stall_ns = UINT64_MAX;
	for (unsigned i = 0; i < crowd; i++)
		begin_stalled(&stalled[i], 1);
	before = bytes_read();
	ck_assert_uint_le(before, 4 * MIB + crowd * SMALLEST);
	begin_stalled(&stalled[crowd], 2);
	ck_assert_uint_ge(bytes_read() - before, 2 * MIB);
	end_stalled(crowd + 1);
}
END_TEST

/* Clients at many addresses have all of it, and do not go on. A newcomer gets what one of them had. */
START_TEST(a_newcomer_reads_ahead)
{
	const unsigned crowd = 50;
	size_t before;

	setup(16 * MIB, 0, 4, 8 * MIB);
	readers->stall_ns = UINT64_MAX; /* however long they take to begin */
	for (unsigned i = 0; i < crowd; i++)
		begin_stalled(&stalled[i], i);
	before = bytes_read();
	readers->stall_ns = 0;
	ck_assert_uint_gt(readers->used, 7 * MIB);
	begin_stalled(&stalled[crowd], crowd);
	ck_assert_uint_ge(bytes_read() - before, MIB);
	end_stalled(crowd + 1);
}
END_TEST

#define RIVALS 12u
#define EACH   3u /* by one thread */

static struct paced_call rivals[RIVALS];

static void *acknowledge_some(void *arg)
{
	struct paced_call *some = arg;
	unsigned over;

	do {
		over = 0;
		for (unsigned i = 0; i < EACH; i++) {
			acknowledge(&some[i]);
			usleep(100); /* it is read by then */
			over += some[i].over;
		}
	} while (over < EACH);
	return NULL;
}

/* Flows that lose what was read for them, at any time when they do not run, read it again, each from where it was. */
START_TEST(rivals_take_memory)
{
	const uint64_t size = MIB + 12345;
	pthread_t threads[RIVALS / EACH];
	struct fsd_reader_stats stats;

	setup(size, 0, 4, MIB);
	readers->stall_ns = 0;
	for (unsigned i = 0; i < RIVALS; i++) {
		rivals[i] = (struct paced_call){.source.ops = &paced_ops, .step = 9973};
		memory_stream_init(&rivals[i].m);
		rivals[i].m.stream.caller.bytes[0] = (uint8_t)i;
		rivals[i].m.has_window = true;
		pthread_mutex_init(&rivals[i].callback, NULL);
		ck_assert_int_eq(fsd_flow_start(readers, &rivals[i].source, 0, size,
						&rivals[i].m.stream, end_paced),
				 0);
	}
	for (unsigned i = 0; i < RIVALS / EACH; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, acknowledge_some, &rivals[i * EACH]), 0);
	for (unsigned i = 0; i < RIVALS / EACH; i++)
		pthread_join(threads[i], NULL);
	fsd_readers_stats(readers, &stats);
	printf("%.1f MiB read ahead and %.1f MiB directly for %.1f MiB\n",
	       (double)stats.bytes_ahead / MIB, (double)stats.bytes_direct / MIB,
	       (double)size * RIVALS / MIB);
	for (unsigned i = 0; i < RIVALS; i++) {
		ck_assert_int_eq(rivals[i].result, 0);
		ck_assert_uint_eq(rivals[i].m.reply_length, size);
		for (uint64_t at = 0; at < size; at++)
			if (rivals[i].m.reply[at] != slow_layer_byte(at))
				ck_abort_msg("byte %llu differs", (unsigned long long)at);
		memory_stream_free(&rivals[i].m);
	}
	teardown();
}
END_TEST

START_TEST(shrunk_file_is_never_padded)
{
	for (int i = 0; i < 2; i++) {
		setup(20 * MIB, 0, 4, 8 * MIB);
		slow->real_size = 13 * MIB + 77;
		slow->cached_below = i ? 20 * MIB : 0;
		ck_assert_int_eq(send_file(readers, file, 0, 20 * MIB, &m.stream), -EIO);
		ck_assert_uint_le(m.reply_length, 13 * MIB + 77);
		for (uint64_t j = 0; j < m.reply_length; j += 101)
			ck_assert_uint_eq(m.reply[j], slow_layer_byte(j));
		teardown();
	}
}
END_TEST

START_TEST(disk_error_is_passed_on)
{
	setup(20 * MIB, 1, 4, 8 * MIB);
	slow->fail = ENXIO;
	slow->fail_from = 10 * MIB;
	ck_assert_int_eq(send_file(readers, file, 0, 20 * MIB, &m.stream), -ENXIO);
	ck_assert_uint_le(m.reply_length, 10 * MIB);
	teardown();
	setup(100000, 1, 4, 8 * MIB);
	slow->fail = EIO;
	ck_assert_int_eq(send_file(readers, file, 0, 100000, &m.stream), -EIO);
	ck_assert_uint_eq(m.reply_length, 0);
	teardown();
}
END_TEST

START_TEST(dead_call_ends_at_once)
{
	for (int i = 0; i < 2; i++) {
		setup(64 * MIB, 5, 4, 8 * MIB);
		slow->cached_below = i ? 64 * MIB : 0;
		m.fail_at = 3 * MIB;
		ck_assert_int_eq(send_file(readers, file, 0, 64 * MIB, &m.stream), FSD_LOST);
		ck_assert_uint_lt(slow->reads, 20);
		teardown();
	}
}
END_TEST

/* -- the time line -- */

struct line {
	char what[16];
	unsigned long long send, offset, bytes, posted, begin, end, ahead, allowed;
};

static unsigned long long number(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static size_t read_lines(const char *path, struct line *lines, size_t room)
{
	char text[512];
	size_t n = 0;
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(text, sizeof(text), f)) {
		struct line *l = &lines[n++];
		const char *what = strstr(text, "\"what\":\"");

		ck_assert_uint_le(n, room);
		ck_assert(text[0] == '{' && !strcmp(text + strlen(text) - 2, "}\n") && what);
		snprintf(l->what, sizeof(l->what), "%.*s", (int)strcspn(what + 8, "\""), what + 8);
		l->send = number(text, "\"send\":");
		l->offset = number(text, "\"offset\":");
		l->bytes = number(text, "\"bytes\":");
		l->posted = number(text, "\"posted_ns\":");
		l->begin = number(text, "\"begin_ns\":");
		l->end = number(text, "\"end_ns\":");
		l->ahead = number(text, "\"ahead\":");
		l->allowed = number(text, "\"allowed\":");
		ck_assert_uint_le(l->begin, l->end);
	}
	fclose(f);
	return n;
}

/* A send with a time line, which is then read: returns the number of its lines. */
static size_t drawn(uint64_t size, uint64_t cached_below, size_t memory, struct line *lines,
		    size_t room)
{
	char path[] = "/tmp/rxw-timeline-XXXXXX";
	int fd = mkstemp(path);
	size_t n;

	ck_assert_int_ge(fd, 0);
	close(fd);
	timeline = fsd_timeline_open(path);
	ck_assert_ptr_nonnull(timeline);
	setup(size, 1, 16, memory);
	slow->cached_below = cached_below;
	ck_assert_int_eq(send_file(readers, file, 0, size, &m.stream), 0);
	check_bytes(0, size);
	teardown();
	ck_assert_int_eq(fsd_timeline_close(timeline), 0);
	timeline = NULL;
	n = read_lines(path, lines, room);
	unlink(path);
	return n;
}

/* Number of reads ahead that were posted, and not sent, when this send began. */
static unsigned under_way(const struct line *lines, size_t n, const struct line *send)
{
	unsigned count = 0;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(lines[i].what, "ahead") && lines[i].offset >= send->offset &&
		    lines[i].posted <= send->begin)
			count++;
	return count;
}

/*
 * No read waits for a send: when a send begins, all reads that memory allows, or all that are left,
 * have been posted.
 */
START_TEST(no_read_waits_for_a_send)
{
	static const struct {
		size_t memory;
		unsigned depth;
		uint64_t chunk;
	} cases[] = {{64 * MIB, 8, MIB}, {8 * MIB, 4, MIB}, {2 * MIB, 4, 256 << 10}};
	static struct line lines[1024];
	const uint64_t size = 24 * MIB;

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		size_t n = drawn(size, 0, cases[c].memory, lines, 1024);
		uint64_t sent = 0;

		for (size_t i = 0; i < n; i++) {
			const struct line *l = &lines[i];
			uint64_t left;

			ck_assert_uint_eq(l->send, 1);
			if (strcmp(l->what, "send")) {
				ck_assert_str_eq(l->what, "ahead");
				ck_assert_uint_eq(l->bytes, cases[c].chunk);
				ck_assert(l->posted && l->posted <= l->begin);
				continue;
			}
			ck_assert_uint_eq(l->offset, sent);
			left = (size - sent) / cases[c].chunk;
			sent += l->bytes;
			ck_assert_uint_eq(l->ahead, left < cases[c].depth ? left : cases[c].depth);
			ck_assert_uint_eq(l->ahead, l->allowed);
			ck_assert_uint_eq(under_way(lines, n, l), l->ahead);
		}
		ck_assert_uint_eq(sent, size);
	}
}
END_TEST

/* Each piece was read before it was sent, and the time line has all of them. */
START_TEST(time_line_is_complete)
{
	static struct line lines[1024];
	const uint64_t size = 9 * MIB + 100000;
	size_t n = drawn(size, 3 * MIB + 5, 64 * MIB, lines, 1024);
	uint64_t read = 0, sent = 0, cached = 0;

	for (size_t i = 0; i < n; i++) {
		const struct line *l = &lines[i];

		if (!strcmp(l->what, "send")) {
			ck_assert_uint_eq(l->offset, sent);
			sent += l->bytes;
			ck_assert_uint_ge(read, sent);
			continue;
		}
		read += l->bytes;
		cached += strcmp(l->what, "cached") ? 0 : l->bytes;
	}
	ck_assert_uint_eq(sent, size);
	ck_assert_uint_eq(read, size);
	ck_assert_uint_eq(cached, 3 * MIB + 5);
	n = drawn(100000, 0, 64 * MIB, lines, 1024);
	ck_assert_uint_eq(n, 2);
	ck_assert_str_eq(lines[0].what, "direct");
	ck_assert_str_eq(lines[1].what, "send");
}
END_TEST

START_TEST(time_line_file_errors)
{
	ck_assert_ptr_null(fsd_timeline_open("/none/such/place"));
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(fsd_timeline_close(NULL), 0);
	/* The device is full: reported at the end at the latest. */
	timeline = fsd_timeline_open("/dev/full");
	if (timeline) {
		struct fsd_moment moment = {.send = 1, .what = FSD_SENT};

		fsd_timeline_add(timeline, &moment);
		ck_assert_int_eq(fsd_timeline_close(timeline), -1);
		ck_assert_int_eq(errno, ENOSPC);
		timeline = NULL;
	}
}
END_TEST

TEST_MAIN_WITHIN(120, "readers", bytes_from_disk, bytes_from_cache, cached_beginning,
		 reads_start_ahead_of_the_wire, memory_limit, many_share_the_memory,
		 room_comes_in_parts, a_call_ends_while_it_is_read, readers_are_not_kept,
		 callers_take_turns, ends_take_turns, stalled_flows_share_the_memory,
		 a_caller_leaves_memory, a_newcomer_reads_ahead, rivals_take_memory,
		 shrunk_file_is_never_padded, disk_error_is_passed_on, dead_call_ends_at_once,
		 no_read_waits_for_a_send, time_line_is_complete, time_line_file_errors)
