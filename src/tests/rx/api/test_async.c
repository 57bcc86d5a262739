/* SPDX-License-Identifier: BSD-2-Clause */
/* The asynchronous form: callbacks, the descriptor of a queue, non-blocking calls; cancelling and deadlines. */
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define CONNECTIONS 16
#define SLOTS       (4 * CONNECTIONS)

static struct h_bed bed;
static rxw_queue *queue; /* of the calls of begin_nonblock() */

static void open_with(const struct h_options *options)
{
	h_open(&bed, options);
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &queue), 0);
}

static void set_up(void)
{
	open_with(NULL);
}

static void tear_down(void)
{
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	h_close(&bed);
}

/* ---- calls that begin the next one when they end ---- */

static struct slot {
	pthread_mutex_t lock; /* the call's request is written before its end is handled */
	rxw_connection *connection;
	rxw_call *call;
	unsigned left, good;
} slots[SLOTS];
static sem_t all_done;

static void begin_next(struct slot *slot);

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	struct slot *slot = arg;
	char reply[8];

	pthread_mutex_lock(&slot->lock);
	if (!(events & RXW_EVENT_DONE) || call != slot->call) {
		pthread_mutex_unlock(&slot->lock);
		return;
	}
	slot->good += rxw_call_read(call, reply, sizeof(reply)) == 4 && !memcmp(reply, "pong", 4);
	if (rxw_call_end(call, 0, NULL))
		slot->good = 0;
	if (--slot->left)
		begin_next(slot);
	else
		sem_post(&all_done);
	pthread_mutex_unlock(&slot->lock);
}

/* With the slot's lock held. */
static void begin_next(struct slot *slot)
{
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK,
					    .callback = on_event, .arg = slot };
	rxw_call *call;
	int rc = rxw_call_begin(slot->connection, &options, &call);

	ck_assert_msg(rc == 0, "cannot begin a call in a callback: %s", rxw_strerror(rc));
	slot->call = call;
	h_write_ask(call, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_send_end(call), 0);
}

static void chain_of_calls(uint16_t service)
{
	unsigned each = h_small() ? 20 : 200;

	sem_init(&all_done, 0, 0);
	for (int i = 0; i < SLOTS; i++) {
		slots[i].connection = i % 4 ? slots[i - 1].connection : h_connect(&bed, service);
		pthread_mutex_init(&slots[i].lock, NULL);
	}
	for (int i = 0; i < SLOTS; i++) {
		pthread_mutex_lock(&slots[i].lock);
		slots[i].left = each;
		slots[i].good = 0;
		begin_next(&slots[i]);
		pthread_mutex_unlock(&slots[i].lock);
	}
	for (int i = 0; i < SLOTS; i++)
		sem_wait(&all_done);
	for (int i = 0; i < SLOTS; i++) {
		pthread_mutex_lock(&slots[i].lock);
		ck_assert_uint_eq(slots[i].good, each);
		pthread_mutex_unlock(&slots[i].lock);
		if (i % 4 == 3)
			rxw_connection_release(slots[i].connection);
	}
}

START_TEST(callbacks_begin_the_next_call)
{
	chain_of_calls(H_SERVICE);
}
END_TEST

START_TEST(callbacks_and_inline_handlers)
{
	chain_of_calls(H_INLINE);
	ck_assert_uint_gt(counter_of(bed.server, "handlers.receiver"), 0);
}
END_TEST

static const char *const clients[] = { "", "listeners=4" };

/*
 * A burst is steered by its first packet: requests of different connections never share one.
 * Replies do, and arrive at the wrong one of a client's shards.
 */
START_TEST(requests_reach_their_shards)
{
	struct rxw_effective e = { .size = sizeof(e) };

	tear_down();
	open_with(&(struct h_options){.server = "listeners=4", .client = clients[_i]});
	chain_of_calls(H_INLINE);
	chain_of_calls(H_SERVICE);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	if (e.steered)
		ck_assert_uint_eq(counter_of(bed.server, "wrong_shard"), 0);
}
END_TEST

/* ---- a slow callback ---- */

static void when_done(rxw_call *call, unsigned events, void *arg)
{
	char reply[8];

	if (!(events & RXW_EVENT_DONE))
		return;
	ck_assert_int_eq(rxw_call_read(call, reply, sizeof(reply)), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	sem_post(arg);
}

static void after_a_while(rxw_call *call, unsigned events, void *arg)
{
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK,
					    .callback = when_done, .arg = arg,
					    .deadline_ms = 4000 };
	rxw_connection *connection = rxw_call_connection(call);
	rxw_call *next;

	if (!(events & RXW_EVENT_DONE))
		return;
	usleep(4200 * 1000);
	ck_assert_int_eq(rxw_call_begin(connection, &options, &next), 0);
	h_write_ask(next, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_send_end(next), 0);
	rxw_call_end(call, RXW_USER_ABORT, NULL);
}

/*
 * The deadline of a call begun in a callback counts from the start of the call, not of the
 * callback.
 */
START_TEST(slow_callbacks_begin_calls)
{
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK,
					    .arg = &all_done };
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	rxw_call *call;

	sem_init(&all_done, 0, 0);
	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_set_callback(call, after_a_while, &all_done), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	sem_wait(&all_done);
	rxw_connection_release(connection);
}
END_TEST

/* ---- callbacks that end calls before functions of the call have returned ---- */

static void end_at_once(rxw_call *call, unsigned events, void *arg)
{
	(void)events;
	rxw_call_end(call, 0, NULL);
	sem_post(arg);
}

static void end_when_done(rxw_call *call, unsigned events, void *arg)
{
	if (!(events & RXW_EVENT_DONE))
		return;
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	sem_post(arg);
}

/*
 * The thread that begins the calls takes no lock: sending the end of the request is its last use of
 * each call. A thread sanitizer checks that.
 */
START_TEST(ended_by_callbacks)
{
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK,
					    .callback = _i ? end_at_once : end_when_done,
					    .arg = &all_done };
	rxw_connection *connection = h_connect(&bed, H_INLINE);
	unsigned calls = h_small() ? 500 : 5000, out = 0;

	sem_init(&all_done, 0, 0);
	for (unsigned i = 0; i < calls; i++) {
		rxw_call *call;
		int r;

		while ((r = rxw_call_begin(connection, &options, &call)) == -RXW_EAGAIN) {
			sem_wait(&all_done);
			out--;
		}
		ck_assert_int_eq(r, 0);
		out++;
		h_write_ask(call, &(struct h_ask){ .op = i % 2 ? H_PING : H_SOURCE,
						   .bytes = 4000 });
		r = rxw_call_send_end(call);
		ck_assert(r == 0 || (_i && r == -RXW_ECALL));
	}
	while (out--)
		sem_wait(&all_done);
	rxw_connection_release(connection);
}
END_TEST

/* ---- without blocking ---- */

static rxw_call *begin_nonblock(rxw_connection *connection, const struct h_ask *ask)
{
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = RXW_CALL_NONBLOCK, .queue = queue};
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, ask);
	return call;
}

/* Waits as an event loop does; the queue has one call. */
static void await(rxw_call *call, unsigned wanted)
{
	struct pollfd p = {.fd = rxw_queue_fd(queue), .events = POLLIN};
	struct rxw_queue_event event;

	while (!(rxw_call_events(call) & wanted)) {
		ck_assert_msg(poll(&p, 1, 60000) == 1, "the queue's descriptor reported no event");
		/* None, if the event does not hold any more. */
		if (rxw_queue_next(queue, &event, 1, 0))
			ck_assert_ptr_eq(event.call, call);
	}
}

/* Writes from `at` on without blocking, until all is accepted or, if requested, until a refusal. */
static uint64_t write_on(rxw_call *call, uint64_t at, uint64_t bytes, bool until_refused)
{
	static uint8_t data[100000];
	ssize_t n;

	while (at < bytes) {
		size_t want = bytes - at < sizeof(data) ? bytes - at : sizeof(data);

		h_pattern(data, at, want, 0);
		n = rxw_call_write(call, data, want);
		if (n == -RXW_EAGAIN) {
			if (until_refused)
				break;
			await(call, RXW_EVENT_WRITE);
			continue;
		}
		ck_assert_msg(n > 0, "write: %s", rxw_strerror((int)n));
		at += (uint64_t)n;
	}
	return at;
}

/*
 * A reader that stops for want of data has opened the window. Otherwise the sender probes it after
 * seconds, each time: the test would end with its time limit.
 */
START_TEST(window_of_a_reader)
{
	static char data[65536];
	struct h_ask ask = { .op = H_SOURCE, .bytes = 1u << 20 };
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	for (int i = h_small() ? 40 : 400; i; i--) {
		rxw_call *call = begin_nonblock(connection, &ask);
		uint64_t got = 0;
		ssize_t n;

		ck_assert_int_eq(rxw_call_send_end(call), 0);
		ck_assert_int_eq(rxw_call_set_events(call, RXW_EVENT_READ), 0);
		while ((n = rxw_call_read_some(call, data, sizeof(data))) != 0) {
			if (n == -RXW_EAGAIN) {
				await(call, RXW_EVENT_READ);
				continue;
			}
			ck_assert_msg(n > 0, "read: %s", rxw_strerror((int)n));
			got += (uint64_t)n;
		}
		ck_assert_uint_eq(got, ask.bytes);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	rxw_connection_release(connection);
}
END_TEST

/*
 * While the handler does not read, the library refuses further data; when it reads, the writer is
 * notified.
 */
START_TEST(refused_until_read)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct h_ask ask = { .op = H_WAIT, .bytes = 8u << 20 };
	rxw_call *call = begin_nonblock(connection, &ask);
	uint64_t at;
	ssize_t n;
	char byte;

	at = write_on(call, 0, ask.bytes, true);
	ck_assert_uint_lt(at, ask.bytes);
	h_gate_arrived(&bed, 1);
	h_gate_open(&bed);
	ck_assert_uint_eq(write_on(call, at, ask.bytes, false), ask.bytes);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	while ((n = rxw_call_read_some(call, &byte, 1)) == -RXW_EAGAIN)
		await(call, RXW_EVENT_READ);
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
}
END_TEST

/* Both directions by poll(), without blocking. */
START_TEST(streams_by_descriptor)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct h_ask ask = { .op = H_BOTH, .bytes = h_small() ? 1u << 20 : 8u << 20 };
	rxw_call *call = begin_nonblock(connection, &ask);
	static uint8_t data[100000];
	uint64_t at;
	ssize_t n;

	ck_assert_uint_eq(write_on(call, 0, ask.bytes, false), ask.bytes);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	for (at = 0;;) {
		n = rxw_call_read_some(call, data, sizeof(data));
		if (n == -RXW_EAGAIN) {
			await(call, RXW_EVENT_READ);
			continue;
		}
		ck_assert_msg(n >= 0, "read: %s", rxw_strerror((int)n));
		if (!n)
			break;
		ck_assert(h_pattern_is(data, at, (size_t)n, 0));
		at += (uint64_t)n;
	}
	ck_assert_uint_eq(at, ask.bytes);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
}
END_TEST

/* Ended before it is done, a non-blocking call is aborted. */
START_TEST(end_before_done)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	rxw_call *call = begin_nonblock(connection, &(struct h_ask){ .op = H_WAIT });
	enum rxw_origin origin;
	uint8_t byte;

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_gate_arrived(&bed, 1);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_EAGAIN);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), RXW_USER_ABORT);
	ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	rxw_connection_release(connection);
}
END_TEST

static void on_done(rxw_call *call, unsigned events, void *arg)
{
	(void)call;
	if (events & RXW_EVENT_DONE)
		sem_post(arg);
}

/* A callback that is set late is called for pending events. */
START_TEST(late_callback)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	rxw_call *call = begin_nonblock(connection, &(struct h_ask){ .op = H_PING });
	sem_t told;
	char reply[8];

	sem_init(&told, 0, 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	await(call, RXW_EVENT_DONE);
	ck_assert_int_eq(rxw_call_set_callback(call, on_done, &told), 0);
	sem_wait(&told);
	ck_assert_int_eq(rxw_call_read(call, reply, 8), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
}
END_TEST

/* ---- cancelling ---- */

static void *cancel(void *arg)
{
	rxw_call_abort(arg, 0);
	return NULL;
}

START_TEST(cancel_a_reader)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_WAIT });
	enum rxw_origin origin;
	pthread_t thread;
	uint8_t byte;

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_gate_arrived(&bed, 1);
	pthread_create(&thread, NULL, cancel, call);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), RXW_USER_ABORT);
	ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	h_gate_open(&bed);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 50000 });
	rxw_connection_release(connection);
}
END_TEST

static bool nothing_moves(void *arg)
{
	uint64_t *last = arg, now = counter_of(bed.client, "packets.sent.data");
	bool still = now > 5 && now == *last;

	*last = now;
	return still;
}

static void *cancel_when_blocked(void *arg)
{
	uint64_t last = 0;

	h_wait_for(nothing_moves, &last, "a writer waits for room");
	rxw_call_abort(arg, 4712);
	return NULL;
}

START_TEST(cancel_a_writer)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct h_ask ask = { .op = H_WAIT, .bytes = 64u << 20 };
	rxw_call *call = h_begin(connection, &ask);
	pthread_t thread;

	ck_assert_int_eq(rxw_call_flush(call), 0);
	h_gate_arrived(&bed, 1);
	pthread_create(&thread, NULL, cancel_when_blocked, call);
	ck_assert_int_eq(h_put(&bed, call, &ask), -RXW_ECALL);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4712);
	rxw_connection_release(connection);
}
END_TEST

/* ---- time limits ---- */

START_TEST(deadline)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct rxw_call_options options = { .size = sizeof(options), .deadline_ms = 300 };
	enum rxw_origin origin;
	rxw_call *call;
	uint8_t byte;

	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	/* On a busy machine the deadline may pass before that. */
	if (h_try_write_ask(call, &(struct h_ask){ .op = H_WAIT }))
		ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), RXW_CALL_TIMEOUT);
	ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	ck_assert_uint_ge(counter_of(bed.client, "calls_timed_out"), 1);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
}
END_TEST

/* The server answers, but no data moves: the idle time ends the call. */
START_TEST(idle_time)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	ck_assert_int_eq(rxw_connection_set_timeouts(connection, 0, 300, 0), 0);
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){ .op = H_WAIT }),
			 RXW_CALL_TIMEOUT);
	rxw_connection_release(connection);
}
END_TEST

START_TEST(hard_time)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	ck_assert_int_eq(rxw_connection_set_timeouts(connection, 0, 0, 300), 0);
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){ .op = H_WAIT }),
			 RXW_CALL_TIMEOUT);
	rxw_connection_release(connection);
}
END_TEST

/* ---- packets do not wait until all callbacks have run ---- */

#define TOGETHER 20

static struct {
	sem_t first, go, asked, answered;
	_Atomic unsigned ran;
} turn;

static void block_listener(rxw_call *call, unsigned events, void *arg)
{
	(void)call, (void)arg;
	if (!(events & RXW_EVENT_DONE))
		return;
	sem_post(&turn.first);
	sem_wait(&turn.go);
}

/* The first one has a question sent, the tenth waits for the answer: the listener receives in between. */
static void run_for_long(rxw_call *call, unsigned events, void *arg)
{
	struct timespec late;
	uint64_t begun = h_now_ms();
	unsigned n;

	(void)call, (void)arg;
	if (!(events & RXW_EVENT_DONE))
		return;
	n = atomic_fetch_add(&turn.ran, 1);
	if (n == 0) {
		sem_post(&turn.first);
		sem_wait(&turn.asked);
	}
	if (n == 10) {
		clock_gettime(CLOCK_REALTIME, &late);
		late.tv_sec += 30;
		ck_assert_int_eq(sem_timedwait(&turn.answered, &late), 0);
	}
	while (h_now_ms() < begun + 2)
		;
}

static rxw_call *begin_with(rxw_connection *connection, enum h_op op, rxw_call_fn callback)
{
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK,
					    .callback = callback };
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){ .op = op });
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

static bool all_replied(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "packets.sent.data") > TOGETHER;
}

static bool all_ran(void *arg)
{
	(void)arg;
	return atomic_load(&turn.ran) == TOGETHER;
}

static int socket_to_client(void)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(rxw_endpoint_address(bed.client, &address, &length), 0);
	((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, length), 0);
	return fd;
}

START_TEST(packets_between_callbacks)
{
	struct h_raw question = { .epoch = 999, .call = 1, .type = 13, .flags = 5, .body = "", .size = 1 };
	rxw_connection *connection[TOGETHER / 4 + 1];
	rxw_call *call[TOGETHER + 1];
	uint8_t answer[2048];
	int fd = socket_to_client();

	sem_init(&turn.first, 0, 0);
	sem_init(&turn.go, 0, 0);
	sem_init(&turn.asked, 0, 0);
	sem_init(&turn.answered, 0, 0);
	for (unsigned i = 0; i <= TOGETHER; i++) {
		if (i % 4 == 0)
			connection[i / 4] = h_connect(&bed, H_SERVICE);
		if (i < TOGETHER)
			call[i] = begin_with(connection[i / 4], H_WAIT, run_for_long);
	}
	h_gate_arrived(&bed, TOGETHER);
	call[TOGETHER] = begin_with(connection[TOGETHER / 4], H_PING, block_listener);
	sem_wait(&turn.first);
	h_gate_open(&bed);
	h_wait_for(all_replied, NULL, "all replies to be sent");
	sem_post(&turn.go);
	sem_wait(&turn.first);
	h_raw_send(fd, &question);
	sem_post(&turn.asked);
	ck_assert_int_gt(h_raw_receive(fd, 13, answer), 0);
	sem_post(&turn.answered);
	h_wait_for(all_ran, NULL, "all callbacks to run");
	for (unsigned i = 0; i <= TOGETHER; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	for (unsigned i = 0; i <= TOGETHER / 4; i++)
		rxw_connection_release(connection[i]);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("async");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, callbacks_begin_the_next_call);
	tcase_add_test(tc, callbacks_and_inline_handlers);
	tcase_add_loop_test(tc, requests_reach_their_shards, 0, 2);
	tcase_add_test(tc, slow_callbacks_begin_calls);
	tcase_add_loop_test(tc, ended_by_callbacks, 0, 2);
	tcase_add_test(tc, window_of_a_reader);
	tcase_add_test(tc, refused_until_read);
	tcase_add_test(tc, streams_by_descriptor);
	tcase_add_test(tc, end_before_done);
	tcase_add_test(tc, late_callback);
	tcase_add_test(tc, cancel_a_reader);
	tcase_add_test(tc, cancel_a_writer);
	tcase_add_test(tc, deadline);
	tcase_add_test(tc, idle_time);
	tcase_add_test(tc, hard_time);
	tcase_add_test(tc, packets_between_callbacks);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
