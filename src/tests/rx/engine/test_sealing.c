/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealing of data written by callbacks: by several threads for bulk, by the receiving thread for
 * small calls. Also the ways in which such calls end meanwhile.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "engine/lock.h"
#include "tests/rx/api/harness.h"

#define STREAMS	 6
#define THREADS	 8
#define CHUNK	 50000
#define PATIENCE 30 /* seconds until a wait fails */

static const char *const dear[] = {"rxkad-crypt", "rxgk-auth", "rxgk-crypt"};
static const char *const cheap[] = {"null", "rxkad-auth", "rxgk-clear"};
#define DEAR  ((int)(sizeof(dear) / sizeof(dear[0])))
#define CHEAP ((int)(sizeof(cheap) / sizeof(cheap[0])))

static struct h_bed bed;
static pthread_t the_test;
static sem_t all_over;

/* Seal requests to the client's class, and the threads that make them. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int (*seal)(void *conn, struct rxw_security_packet *packets, size_t count);
	pthread_t thread[THREADS];
	unsigned threads;
	bool held;	 /* while true, all threads but the test's are held in seal() */
	unsigned inside; /* threads held */
	bool failed;
} sealing = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static bool listens(pthread_t thread)
{
	return pthread_equal(thread, bed.client->shard[0].first);
}

/* Lock held. */
static void note_thread(pthread_t thread)
{
	for (unsigned i = 0; i < sealing.threads; i++)
		if (pthread_equal(sealing.thread[i], thread))
			return;
	if (sealing.threads < THREADS)
		sealing.thread[sealing.threads++] = thread;
}

/* Waits until condition() holds or the test times out, with the lock of `sealing`. */
static bool await(bool (*condition)(void))
{
	struct timespec limit;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += PATIENCE;
	while (!condition() && !r)
		r = pthread_cond_timedwait(&sealing.moved, &sealing.lock, &limit);
	return condition();
}

static bool let_go(void)
{
	return !sealing.held;
}

/* A held thread does not continue. */
static void stand(void)
{
	pthread_mutex_lock(&sealing.lock);
	note_thread(pthread_self());
	sealing.inside++;
	pthread_cond_broadcast(&sealing.moved);
	sealing.failed |= !await(let_go);
	sealing.inside--;
	pthread_mutex_unlock(&sealing.lock);
}

static int seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	if (!pthread_equal(pthread_self(), the_test))
		stand();
	return sealing.seal(conn, packets, count);
}

static void hold(bool held)
{
	pthread_mutex_lock(&sealing.lock);
	sealing.held = held;
	pthread_cond_broadcast(&sealing.moved);
	pthread_mutex_unlock(&sealing.lock);
}

/* ---- streams written by callbacks ---- */

static struct stream {
	pthread_mutex_t lock; /* the call, for threads that abort it */
	rxw_connection *connection;
	rxw_call *call;
	uint64_t at, bytes;
	uint32_t seed;
	bool stands;	 /* its callback does nothing, while all are held */
	unsigned left;	 /* calls still to begin */
	unsigned called; /* callbacks */
	int32_t code;
} stream[STREAMS];

static uint64_t bulk(void)
{
	return h_small() ? 2u << 20 : 6u << 20;
}

static void on_event(rxw_call *call, unsigned events, void *arg);

/* Writes until the queue is full or the request is complete. */
static void write_on(struct stream *s, rxw_call *call)
{
	uint8_t data[CHUNK];

	while (s->at < s->bytes) {
		size_t want = s->bytes - s->at < CHUNK ? s->bytes - s->at : CHUNK;
		ssize_t n;

		h_pattern(data, s->at, want, s->seed);
		n = rxw_call_write(call, data, want);
		if (n <= 0)
			return;
		s->at += (uint64_t)n;
	}
	rxw_call_send_end(call);
}

static void begin(struct stream *s, enum h_op op)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	struct h_ask ask = {.op = op, .bytes = s->bytes, .seed = s->seed};
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(s->connection, &options, &call), 0);
	s->at = 0;
	h_write_ask(call, &ask);
	/*
	 * From here on other threads may abort it. The checks refer to a call that was still
	 * active.
	 */
	pthread_mutex_lock(&s->lock);
	s->call = call;
	pthread_mutex_unlock(&s->lock);
	write_on(s, call);
	rxw_call_set_callback(call, on_event, s);
}

static void end(struct stream *s)
{
	rxw_call *call = s->call;

	pthread_mutex_lock(&s->lock);
	s->call = NULL;
	pthread_mutex_unlock(&s->lock);
	s->code = rxw_call_end(call, 0, NULL);
	if (s->left && s->left--)
		begin(s, H_SINK);
	else
		sem_post(&all_over);
}

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	struct stream *s = arg;

	s->called++;
	if (s->stands)
		stand();
	else if (events & RXW_EVENT_DONE)
		end(s);
	else if (events & RXW_EVENT_WRITE)
		write_on(s, call);
}

/* At most `threads` threads seal. */
static void open_bed(const char *security, unsigned threads)
{
	h_open(&bed, &(struct h_options){.security = security, .client = "listeners=1"});
	bed.client->verifier->most = threads; /* nothing has been queued to start one */
	the_test = pthread_self();
	sem_init(&all_over, 0, 0);
	sealing.seal = NULL;
	if (bed.security && bed.security->class.seal) {
		sealing.seal = bed.security->class.seal;
		bed.security->class.seal = seal;
	}
	sealing.threads = sealing.inside = 0;
	sealing.held = sealing.failed = false;
	memset(stream, 0, sizeof(stream));
	for (unsigned i = 0; i < STREAMS; i++) {
		stream[i].connection = i % 2 ? stream[i - 1].connection :
					       h_connect(&bed, H_SERVICE);
		stream[i].bytes = bulk();
		stream[i].seed = i;
		pthread_mutex_init(&stream[i].lock, NULL);
	}
}

/* Calls with a full queue, since their handlers do not read yet. */
static void fill_queues(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		begin(&stream[i], H_WAIT);
		ck_assert_uint_lt(stream[i].at, stream[i].bytes);
	}
	h_gate_arrived(&bed, count);
}

static void all_end(unsigned count)
{
	while (count--)
		sem_wait(&all_over);
	ck_assert_msg(!sealing.failed, "who sealed waited in vain");
}

static void close_bed(void)
{
	for (unsigned i = 0; i < STREAMS; i += 2)
		rxw_connection_release(stream[i].connection);
	h_close(&bed);
	sem_destroy(&all_over);
}

static bool two_inside(void)
{
	return sealing.inside >= 2;
}

static void await_inside(bool (*condition)(void), const char *what)
{
	bool there;

	pthread_mutex_lock(&sealing.lock);
	there = await(condition);
	pthread_mutex_unlock(&sealing.lock);
	ck_assert_msg(there, "this did not happen: %s", what);
}

/* Two threads seal at once, neither of them the receiving one. All bytes arrive. */
START_TEST(bulk_by_several)
{
	open_bed(dear[_i], 2);
	hold(true);
	fill_queues(STREAMS);
	h_gate_open(&bed);
	await_inside(two_inside, "two threads seal");
	hold(false);
	all_end(STREAMS);
	for (unsigned i = 0; i < STREAMS; i++)
		ck_assert_int_eq(stream[i].code, 0);
	ck_assert_uint_eq(sealing.threads, 2);
	for (unsigned i = 0; i < sealing.threads; i++)
		ck_assert(!listens(sealing.thread[i]));
	close_bed();
}
END_TEST

/* Only one thread: every call is scheduled and all of its bytes arrive. */
START_TEST(bulk_by_one)
{
	open_bed(dear[_i], 1);
	fill_queues(STREAMS);
	h_gate_open(&bed);
	all_end(STREAMS);
	for (unsigned i = 0; i < STREAMS; i++)
		ck_assert_int_eq(stream[i].code, 0);
	ck_assert_uint_eq(sealing.threads, 1);
	ck_assert(!listens(sealing.thread[0]));
	close_bed();
}
END_TEST

static uint64_t most; /* bytes written by a callback */

/* Earlier data was sent, so there is room. */
static bool has_left(void *arg)
{
	struct rxw_call *call = arg;
	bool room;

	rxw_conn_lock(call->conn);
	room = rxw_pcall_queued(&call->p) < 200;
	rxw_conn_unlock(call->conn);
	return room;
}

static void on_turn(rxw_call *call, unsigned events, void *arg)
{
	struct stream *s = arg;
	uint64_t before = s->at;
	uint8_t data[CHUNK];
	ssize_t n = 1;

	if (events & RXW_EVENT_DONE) {
		end(s);
		return;
	}
	while (s->at < s->bytes && n > 0) {
		size_t want = s->bytes - s->at < CHUNK ? s->bytes - s->at : CHUNK;

		h_wait_for(has_left, call, "the queue becomes shorter");
		h_pattern(data, s->at, want, s->seed);
		n = rxw_call_write(call, data, want);
		s->at += n > 0 ? (uint64_t)n : 0;
	}
	if (s->at - before > most)
		most = s->at - before;
	if (s->at == s->bytes)
		rxw_call_send_end(call);
}

/* A callback that always finds room still lets others run. */
START_TEST(turns_end)
{
	open_bed("rxgk-crypt", 1);
	most = 0;
	stream[0].bytes = 2u << 20;
	fill_queues(1);
	rxw_call_set_callback(stream[0].call, on_turn, &stream[0]);
	h_gate_open(&bed);
	all_end(1);
	ck_assert_int_eq(stream[0].code, 0);
	ck_assert_uint_gt(most, 0);
	ck_assert_uint_lt(most, 1u << 19);
	close_bed();
}
END_TEST

static unsigned left;

static void on_small(rxw_call *call, unsigned events, void *arg)
{
	struct stream *s = arg;
	char reply[8];

	if (!(events & RXW_EVENT_DONE))
		return;
	pthread_mutex_lock(&sealing.lock);
	note_thread(pthread_self());
	pthread_mutex_unlock(&sealing.lock);
	ck_assert_int_eq(rxw_call_read(call, reply, sizeof(reply)), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	if (left--) {
		struct rxw_call_options options = {.size = sizeof(options),
						   .flags = RXW_CALL_NONBLOCK};

		ck_assert_int_eq(rxw_call_begin(s->connection, &options, &call), 0);
		h_write_ask(call, &(struct h_ask){.op = H_PING});
		ck_assert_int_eq(rxw_call_send_end(call), 0);
		rxw_call_set_callback(call, on_small, s);
	} else {
		sem_post(&all_over);
	}
}

/* The receiving thread begins, seals and ends small calls. */
START_TEST(small_calls_here)
{
	rxw_call *call;

	open_bed(dear[_i], 2);
	left = 100;
	call = h_begin(stream[0].connection, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	rxw_call_set_callback(call, on_small, &stream[0]);
	all_end(1);
	ck_assert_uint_eq(sealing.threads, 1);
	ck_assert(listens(sealing.thread[0]));
	close_bed();
}
END_TEST

static void on_cheap(rxw_call *call, unsigned events, void *arg)
{
	pthread_mutex_lock(&sealing.lock);
	note_thread(pthread_self());
	pthread_mutex_unlock(&sealing.lock);
	on_event(call, events, arg);
}

/* Nor is work handed over if sealing is cheap. */
START_TEST(cheap_classes_here)
{
	open_bed(cheap[_i], 2);
	fill_queues(2);
	for (unsigned i = 0; i < 2; i++)
		rxw_call_set_callback(stream[i].call, on_cheap, &stream[i]);
	h_gate_open(&bed);
	all_end(2);
	ck_assert_int_eq(stream[0].code, 0);
	ck_assert_int_eq(stream[1].code, 0);
	ck_assert_uint_eq(sealing.threads, 1);
	ck_assert(listens(sealing.thread[0]));
	close_bed();
}
END_TEST

/* ---- reads by callbacks that only the call's options name ---- */

static void read_on(rxw_call *call, unsigned events, void *arg)
{
	uint64_t *got = arg;
	uint8_t data[CHUNK];
	ssize_t n;

	(void)events;
	while ((n = rxw_call_read(call, data, sizeof(data))) > 0)
		*got += (uint64_t)n;
	if (n != -RXW_EAGAIN)
		sem_post(&all_over);
}

/* Verification threads post events to the listener, which must be awake or wakeable. */
START_TEST(read_by_options)
{
	uint64_t got = 0, bytes = bulk();
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .callback = read_on,
					   .arg = &got};
	rxw_connection *connection;
	rxw_call *call;

	h_open(&bed, &(struct h_options){.security = dear[_i]});
	sem_init(&all_over, 0, 0);
	connection = h_connect(&bed, H_SERVICE);
	ck_assert(!atomic_load(&bed.client->threads.callbacks_left));
	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_SOURCE, .bytes = bytes});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	while (sem_wait(&all_over))
		;
	ck_assert_uint_eq(got, bytes);
	ck_assert(atomic_load(&bed.client->threads.callbacks_left));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	h_close(&bed);
	sem_destroy(&all_over);
}
END_TEST

/* ---- calls that end meanwhile ---- */

static bool one_inside(void)
{
	return sealing.inside == 1;
}

static bool turn_waits(void *arg)
{
	struct rxw_verifier *v = bed.client->verifier;
	bool waits;

	(void)arg;
	pthread_mutex_lock(&v->lock);
	waits = v->quanta > 0;
	pthread_mutex_unlock(&v->lock);
	return waits;
}

/* One is being sealed, the others of `count` wait for the only thread. */
static void block(unsigned count, bool stands)
{
	open_bed("rxgk-crypt", 1);
	for (unsigned i = 0; i < count; i++)
		stream[i].stands = stands;
	hold(true);
	fill_queues(count);
	h_gate_open(&bed);
	await_inside(one_inside, "a thread seals");
	if (count > 1)
		h_wait_for(turn_waits, NULL, "a callback waits for a thread");
}

/* Aborted while their callbacks seal or wait to run. Each callback ends its call. */
START_TEST(aborted_meanwhile)
{
	block(STREAMS, false);
	for (unsigned i = 0; i < STREAMS; i++) {
		pthread_mutex_lock(&stream[i].lock);
		if (stream[i].call)
			rxw_call_abort(stream[i].call, 18);
		pthread_mutex_unlock(&stream[i].lock);
	}
	hold(false);
	all_end(STREAMS);
	for (unsigned i = 0; i < STREAMS; i++)
		ck_assert_int_eq(stream[i].code, 18);
	close_bed();
}
END_TEST

static bool is_queued(void *arg)
{
	struct stream *s = arg;
	bool queued;

	rxw_conn_lock(s->call->conn);
	queued = s->call->events.queued;
	rxw_conn_unlock(s->call->conn);
	return queued;
}

/*
 * Ended by the application while their callbacks wait. The callbacks never run, and all is freed.
 */
START_TEST(ended_while_waiting)
{
	unsigned busy = STREAMS;

	block(STREAMS, true);
	for (unsigned i = 0; i < STREAMS; i++) {
		struct rxw_call *call = stream[i].call;

		rxw_conn_lock(call->conn);
		if (call->events.busy)
			busy = i;
		rxw_conn_unlock(call->conn);
		if (busy == i)
			continue;
		h_wait_for(is_queued, &stream[i], "a callback is queued");
		ck_assert_int_eq(rxw_call_end(call, 19, NULL), 19);
	}
	ck_assert_uint_lt(busy, STREAMS);
	hold(false);
	ck_assert_int_eq(rxw_call_end(stream[busy].call, 20, NULL), 20);
	close_bed();
	for (unsigned i = 0; i < STREAMS; i++)
		ck_assert_uint_eq(stream[i].called, i == busy);
}
END_TEST

static _Atomic(bool) returned;

static void *end_from_here(void *arg)
{
	struct stream *s = arg;

	s->code = rxw_call_end(s->call, 20, NULL);
	atomic_store(&returned, true);
	return NULL;
}

static bool is_ended(void *arg)
{
	struct stream *s = arg;
	bool ended;

	rxw_conn_lock(s->call->conn);
	ended = s->call->ended;
	rxw_conn_unlock(s->call->conn);
	return ended;
}

/* Ended by the application while its callback runs: the end waits for the callback. */
START_TEST(ended_while_called)
{
	pthread_t thread;

	block(1, true);
	atomic_store(&returned, false);
	pthread_create(&thread, NULL, end_from_here, &stream[0]);
	h_wait_for(is_ended, &stream[0], "the call is ended");
	ck_assert(!atomic_load(&returned));
	hold(false);
	pthread_join(thread, NULL);
	ck_assert_int_eq(stream[0].code, 20);
	close_bed();
}
END_TEST

/* The thread with that id sleeps. */
static bool sleeps(void *arg)
{
	char path[64], line[512], *at;
	bool asleep = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)*(pid_t *)arg);
	f = fopen(path, "r");
	if (!f)
		return true; /* no /proc: the test checks less */
	if (fgets(line, sizeof(line), f) && (at = strrchr(line, ')')))
		asleep = !strncmp(at, ") S", 3);
	fclose(f);
	return asleep;
}

static _Atomic(pid_t) taker;

static void *take_callback(void *arg)
{
	struct stream *s = arg;

	atomic_store(&taker, gettid());
	rxw_call_set_callback(s->call, NULL, NULL);
	atomic_store(&returned, true);
	return NULL;
}

/* The callback is removed during sealing. The removal waits until the callback has returned. */
START_TEST(taken_while_sealing)
{
	pthread_t thread;
	pid_t tid;

	block(1, false);
	atomic_store(&returned, false);
	atomic_store(&taker, 0);
	pthread_create(&thread, NULL, take_callback, &stream[0]);
	while (!(tid = atomic_load(&taker)))
		sched_yield();
	h_wait_for(sleeps, &tid, "a thread waits for the callback");
	ck_assert(!atomic_load(&returned));
	hold(false);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rxw_call_end(stream[0].call, 21, NULL), 21);
	close_bed();
}
END_TEST

static int results[3];

static void on_destroy(rxw_call *call, unsigned events, void *arg)
{
	struct stream *s = arg;

	if (!listens(pthread_self()) && !results[0]) {
		results[0] = rxw_endpoint_stop(bed.client, 0);
		results[1] = rxw_endpoint_destroy(bed.client);
		results[2] = rxw_engine_destroy(bed.client_engine);
	}
	on_event(call, events, s);
}

/* A wait for the calling thread itself is refused. */
START_TEST(destroyed_by_callback)
{
	open_bed("rxgk-crypt", 2);
	memset(results, 0, sizeof(results));
	fill_queues(1);
	rxw_call_set_callback(stream[0].call, on_destroy, &stream[0]);
	h_gate_open(&bed);
	all_end(1);
	ck_assert_int_eq(stream[0].code, 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(results[i], -RXW_EDEADLK);
	close_bed();
}
END_TEST

/* Calls begin as others end. Some are aborted from outside at any time. */
START_TEST(storm)
{
	unsigned each = h_small() ? 3 : 10, turn = 0;

	open_bed(dear[_i], 2);
	for (unsigned i = 0; i < STREAMS; i++) {
		stream[i].left = each;
		stream[i].bytes = 200000 + 150000 * i; /* some fit in their queues, others do not */
		begin(&stream[i], H_SINK);
	}
	for (unsigned over = 0; over < STREAMS; turn++) {
		struct timespec soon;
		struct stream *s = &stream[turn % STREAMS];

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 2000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		if (!sem_timedwait(&all_over, &soon))
			over++;
		pthread_mutex_lock(&s->lock);
		if (s->call)
			rxw_call_abort(s->call, 22);
		pthread_mutex_unlock(&s->lock);
	}
	for (unsigned i = 0; i < STREAMS; i++)
		ck_assert(stream[i].code == 0 || stream[i].code == 22);
	close_bed();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sealing");
	TCase *tc = tcase_create("callbacks");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 2 * PATIENCE);
	tcase_add_loop_test(tc, bulk_by_several, 0, DEAR);
	tcase_add_loop_test(tc, bulk_by_one, 0, DEAR);
	tcase_add_test(tc, turns_end);
	tcase_add_loop_test(tc, small_calls_here, 0, DEAR);
	tcase_add_loop_test(tc, cheap_classes_here, 0, CHEAP);
	tcase_add_loop_test(tc, read_by_options, 0, DEAR);
	tcase_add_test(tc, aborted_meanwhile);
	tcase_add_test(tc, ended_while_waiting);
	tcase_add_test(tc, ended_while_called);
	tcase_add_test(tc, taken_while_sealing);
	tcase_add_test(tc, destroyed_by_callback);
	tcase_add_loop_test(tc, storm, 0, DEAR);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
