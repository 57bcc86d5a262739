/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: events of clients and servers, channels, posts, threads, the end. */
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "tests/support/counters.h"
#include "tests/support/internals.h"

#define SERVICE 120 /* calls go to the server's queue */
#define FEW	121 /* at most 4 calls at the same time */
#define ROOM	64

static struct h_bed bed;
static rxw_queue *clients, *servers;
static int context;

static void set_up(void)
{
	struct rxw_service_options options = {
		.size = sizeof(options), .id = SERVICE, .context = &context};

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &clients), 0);
	ck_assert_int_eq(rxw_queue_create(bed.server_engine, NULL, &servers), 0);
	options.queue = servers;
	h_offer(&bed, options);
	options.id = FEW;
	options.deferred_max = 4;
	h_offer(&bed, options);
}

/* h_close() destroys the engines, which must have no queues then. */
static void tear_down(void)
{
	if (bed.client)
		ck_assert_int_eq(rxw_endpoint_destroy(bed.client), 0);
	if (bed.server)
		ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	bed.client = bed.server = NULL;
	ck_assert_int_eq(rxw_queue_destroy(clients), 0);
	ck_assert_int_eq(rxw_queue_destroy(servers), 0);
	h_close(&bed);
}

static int begin(rxw_connection *c, unsigned events, void *arg, rxw_call **call)
{
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .queue = clients,
					   .events = events,
					   .arg = arg};

	return rxw_call_begin(c, &options, call);
}

/* Begins a call that reports `events` to the client's queue, and sends its request. */
static rxw_call *ask(rxw_connection *c, unsigned events, void *arg)
{
	rxw_call *call;

	ck_assert_int_eq(begin(c, events, arg, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

static struct rxw_queue_event next(rxw_queue *queue)
{
	struct rxw_queue_event event;

	ck_assert_int_eq(rxw_queue_next(queue, &event, 1, 30000), 1);
	return event;
}

static bool is_empty(rxw_queue *queue)
{
	struct rxw_queue_event event;

	return rxw_queue_next(queue, &event, 1, 0) == 0;
}

static bool is_readable(rxw_queue *queue)
{
	struct pollfd p = {.fd = rxw_queue_fd(queue), .events = POLLIN};

	ck_assert_int_ge(p.fd, 0);
	return poll(&p, 1, 0) == 1;
}

static void wait_readable(rxw_queue *queue)
{
	struct pollfd p = {.fd = rxw_queue_fd(queue), .events = POLLIN};

	ck_assert_int_eq(poll(&p, 1, 30000), 1);
}

/* Takes the next new call out of the server's queue. */
static rxw_call *accept_call(void)
{
	struct rxw_queue_event event = next(servers);
	char request[H_ASK_SIZE];

	ck_assert_uint_ne(event.events & RXW_EVENT_CALL, 0);
	ck_assert_ptr_eq(event.arg, &context);
	ck_assert_int_eq(rxw_call_read(event.call, request, sizeof(request)), sizeof(request));
	return event.call;
}

static void answer(rxw_call *call)
{
	ck_assert_int_eq(rxw_call_write(call, "pong", 4), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}

static void end_with_reply(rxw_call *call)
{
	char reply[8];

	ck_assert_int_eq(rxw_call_read(call, reply, sizeof(reply)), 4);
	ck_assert(!memcmp(reply, "pong", 4));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}

START_TEST(a_call_from_end_to_end)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, RXW_EVENT_DONE, &bed), *served = accept_call();
	struct rxw_queue_event event;

	ck_assert(is_empty(clients));
	answer(served);
	event = next(clients);
	ck_assert_ptr_eq(event.call, call);
	ck_assert_ptr_eq(event.arg, &bed);
	ck_assert_uint_eq(event.events, RXW_EVENT_DONE);
	end_with_reply(call);
	ck_assert(is_empty(clients));
	ck_assert(is_empty(servers));
	rxw_connection_release(c);
}
END_TEST

/* ---- many calls, each side with one thread and one descriptor ---- */

#define CONNECTIONS 64

static void *serve_calls(void *left)
{
	struct rxw_queue_event v[ROOM];
	unsigned *count = left;

	while (*count) {
		int n;

		wait_readable(servers);
		n = rxw_queue_next(servers, v, ROOM, 0);
		for (int i = 0; i < n; i++) {
			char request[H_ASK_SIZE];

			ck_assert_uint_ne(v[i].events & RXW_EVENT_CALL, 0);
			ck_assert_int_eq(rxw_call_read(v[i].call, request, sizeof(request)),
					 sizeof(request));
			answer(v[i].call);
			--*count;
		}
	}
	return NULL;
}

START_TEST(many_calls)
{
	unsigned left = h_small() ? 2000 : 20000, begun = 0, ended = 0, serve = left;
	rxw_connection *c[CONNECTIONS];
	struct rxw_queue_event v[ROOM];
	pthread_t t;

	pthread_create(&t, NULL, serve_calls, &serve);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		c[i] = h_connect(&bed, SERVICE);
	for (; begun < 4 * CONNECTIONS; begun++)
		ask(c[begun / 4], RXW_EVENT_DONE, c[begun / 4]);
	while (ended < left) {
		int n;

		wait_readable(clients);
		n = rxw_queue_next(clients, v, ROOM, 0);
		for (int i = 0; i < n; i++) {
			end_with_reply(v[i].call);
			ended++;
			if (begun < left) {
				ask(v[i].arg, RXW_EVENT_DONE, v[i].arg);
				begun++;
			}
		}
	}
	pthread_join(t, NULL);
	ck_assert(!is_readable(clients));
	for (unsigned i = 0; i < CONNECTIONS; i++)
		rxw_connection_release(c[i]);
}
END_TEST

/* ---- handled by a function, whose packets leave together ---- */

static unsigned run_served, run_ended;
static rxw_connection *run_connection;

static void serve_one(const struct rxw_queue_event *event)
{
	char request[H_ASK_SIZE];

	ck_assert_int_eq(rxw_queue_run(servers, serve_one, 1, 0), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 0), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_call_read(event->call, request, sizeof(request)), sizeof(request));
	answer(event->call);
	run_served++;
}

static void end_one(const struct rxw_queue_event *event)
{
	end_with_reply(event->call);
	if (run_ended++ < 100)
		ask(run_connection, RXW_EVENT_DONE, NULL);
}

START_TEST(events_for_a_function)
{
	run_connection = h_connect(&bed, SERVICE);
	for (unsigned i = 0; i < 4; i++)
		ask(run_connection, RXW_EVENT_DONE, NULL);
	while (run_ended < 104) {
		ck_assert_int_ge(rxw_queue_run(servers, serve_one, ROOM, 0), 0);
		ck_assert_int_ge(rxw_queue_run(clients, end_one, ROOM, 0), 0);
	}
	ck_assert_uint_eq(run_served, 104);
	rxw_connection_release(run_connection);
}
END_TEST

static unsigned many_run;

static void count_post(const struct rxw_queue_event *event)
{
	ck_assert_uint_eq(event->events, RXW_EVENT_POST);
	many_run++;
}

/* The function is called for as many entries as are wanted, however many are taken out at once. */
START_TEST(as_many_as_wanted)
{
	for (unsigned i = 0; i < 300; i++)
		ck_assert_int_eq(rxw_queue_post(clients, NULL), 0);
	ck_assert_int_eq(rxw_queue_run(clients, count_post, 0, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_queue_run(clients, count_post, 200, 0), 200);
	ck_assert_int_eq(rxw_queue_run(clients, count_post, 1, -1), 1);
	ck_assert_int_eq(rxw_queue_run(clients, count_post, UINT_MAX, -1), 99);
	ck_assert_int_eq(rxw_queue_run(clients, count_post, 1, 0), 0);
	ck_assert_uint_eq(many_run, 300);
}
END_TEST

/* fn() may end calls whose entries are queued behind the one that it handles. */
static rxw_call *both[2];
static unsigned both_seen;

static void end_both(const struct rxw_queue_event *event)
{
	ck_assert(event->call == both[0] || event->call == both[1]);
	both_seen++;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(rxw_call_end(both[i], 77, NULL), 77);
}

START_TEST(a_function_ends_another_call)
{
	rxw_connection *c = h_connect(&bed, SERVICE);

	for (unsigned i = 0; i < 2; i++) {
		both[i] = ask(c, RXW_EVENT_DONE, NULL);
		rxw_call_abort(both[i], 77);
	}
	ck_assert_int_eq(rxw_queue_run(clients, end_both, ROOM, 30000), 1);
	ck_assert_uint_eq(both_seen, 1);
	ck_assert(is_empty(clients));
	rxw_connection_release(c);
}
END_TEST

/* ---- one call is in one array once ---- */

#define ABORTING 16 /* connections whose calls another thread aborts */
#define LOADED	 96 /* calls at the same time, more than are taken out with one lock */

static rxw_connection *aborted[ABORTING];
static _Atomic(bool) aborting; /* until the client has ended all its calls */

static void check_array(const struct rxw_queue_event *v, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			ck_assert_msg(!v[i].call || v[i].call != v[k].call,
				      "elements %d (events %x) and %d (%x) of %d are one call", k,
				      v[k].events, i, v[i].events, n);
}

/* The loop of the manual. */
static void *serve_aborted(void *unused)
{
	struct rxw_queue_event v[ROOM];
	unsigned held = 0;

	while (atomic_load(&aborting) || held) {
		int n = rxw_queue_next(servers, v, ROOM, 20);

		check_array(v, n);
		for (int i = 0; i < n; i++) {
			char request[H_ASK_SIZE];
			ssize_t size = rxw_call_read(v[i].call, request, sizeof(request));

			held += (v[i].events & RXW_EVENT_CALL) != 0;
			if (size == -RXW_EAGAIN && !(v[i].events & RXW_EVENT_DONE))
				continue;
			if (size > 0)
				(void)!rxw_call_write(v[i].call, "pong", 4);
			rxw_call_end(v[i].call, 0, NULL);
			held--;
		}
	}
	return unused;
}

static void *abort_all(void *unused)
{
	while (atomic_load(&aborting)) {
		for (unsigned i = 0; i < ABORTING; i++)
			ck_assert_int_eq(rxw_connection_abort(aborted[i], 5), 0);
		usleep(300);
	}
	return unused;
}

/* Keeps LOADED calls begun, half of them with a deadline, until `left` calls have ended. */
static void begin_and_end(rxw_queue *queue, unsigned left)
{
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = RXW_CALL_NONBLOCK, .queue = queue};
	struct rxw_queue_event v[ROOM];
	unsigned live = 0, begun = 0;

	while (left || live) {
		int n;

		for (unsigned i = 0; i < ABORTING && live < LOADED && left; i++) {
			rxw_call *call;

			options.deadline_ms = begun++ % 2 ? 3 : 0;
			if (rxw_call_begin(aborted[i], &options, &call))
				continue;
			live++;
			(void)!rxw_call_write(call, &options, H_ASK_SIZE);
			(void)!rxw_call_send_end(call);
		}
		n = rxw_queue_next(queue, v, ROOM, 20);
		check_array(v, n);
		for (int i = 0; i < n; i++) {
			if (!(v[i].events & RXW_EVENT_DONE))
				continue;
			rxw_call_end(v[i].call, 0, NULL);
			live--;
			left -= left != 0;
		}
	}
}

START_TEST(aborts_and_deadlines_double_no_call)
{
	pthread_t server, aborter;

	atomic_store(&aborting, true);
	for (unsigned i = 0; i < ABORTING; i++)
		aborted[i] = h_connect(&bed, SERVICE);
	pthread_create(&server, NULL, serve_aborted, NULL);
	pthread_create(&aborter, NULL, abort_all, NULL);
	begin_and_end(clients, h_small() ? 5000 : 40000);
	atomic_store(&aborting, false);
	pthread_join(server, NULL);
	pthread_join(aborter, NULL);
	for (unsigned i = 0; i < ABORTING; i++)
		rxw_connection_release(aborted[i]);
}
END_TEST

/*
 * A thread that moves calls between two queues while others take them out: what was taken out of the
 * old queue is void.
 */
START_TEST(a_call_that_moves_is_reported_once)
{
	struct rxw_queue_event v[ROOM];
	rxw_call *call[4];
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_queue *other;
	int n;

	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &other), 0);
	for (unsigned i = 0; i < 4; i++) {
		call[i] = ask(c, RXW_EVENT_DONE, NULL);
		rxw_call_abort(call[i], 77);
		ck_assert_int_eq(rxw_call_set_queue(call[i], other, &call[i]), 0);
		ck_assert_int_eq(rxw_call_set_queue(call[i], clients, &call[i]), 0);
		ck_assert_int_eq(rxw_call_set_queue(call[i], clients, &call[i]), 0);
	}
	ck_assert(is_empty(other));
	n = rxw_queue_next(clients, v, ROOM, 30000);
	ck_assert_int_eq(n, 4);
	check_array(v, n);
	ck_assert(is_empty(clients));
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 77);
	ck_assert_int_eq(rxw_queue_destroy(other), 0);
	rxw_connection_release(c);
}
END_TEST

/* ---- batches ---- */

#define ASKED 32 /* calls of a batch */

/* Begins ASKED calls on new connections in a batch, which is not ended. */
static void ask_in_batch(rxw_connection **c)
{
	rxw_batch_begin();
	for (unsigned i = 0; i < ASKED; i++) {
		if (i % 4 == 0)
			c[i / 4] = h_connect(&bed, SERVICE);
		ask(c[i / 4], RXW_EVENT_DONE, NULL);
	}
}

static void answer_batch(rxw_connection **c)
{
	for (unsigned i = 0; i < ASKED; i++)
		answer(accept_call());
	for (unsigned i = 0; i < ASKED; i++)
		end_with_reply(next(clients).call);
	for (unsigned i = 0; i < ASKED / 4; i++)
		rxw_connection_release(c[i]);
}

START_TEST(packets_of_a_batch_leave_together)
{
	uint64_t before = counter_of(bed.client, "syscalls.send"), sent;
	struct rxw_effective effective = {.size = sizeof(effective)};
	rxw_connection *c[ASKED / 4];
	unsigned most = ASKED / 2;

	ck_assert_int_eq(rxw_endpoint_effective(bed.client, &effective), 0);
	if (!strcmp(effective.io, "msg"))
		most = ASKED; /* a system call for each packet, but later */
	ask_in_batch(c);
	ck_assert_uint_eq(counter_of(bed.client, "syscalls.send"), before);
	rxw_batch_end();
	sent = counter_of(bed.client, "syscalls.send") - before;
	ck_assert_msg(sent <= most, "%u calls took %u system calls", ASKED, (unsigned)sent);
	rxw_batch_end(); /* does nothing */
	answer_batch(c);
}
END_TEST

/* Each would wait without end for packets that are not sent. */
START_TEST(a_wait_ends_a_batch)
{
	rxw_connection *c[ASKED / 4], *blocking = h_connect(&bed, H_SERVICE);

	ask_in_batch(c);
	answer_batch(c); /* rxw_queue_next() */
	ask_in_batch(c);
	h_good_call(&bed, blocking, &(struct h_ask){.op = H_SOURCE, .bytes = 100000});
	answer_batch(c);
	ask_in_batch(c);
	ck_assert_int_ge(rxw_queue_run(clients, end_one, 1, 0), 0);
	answer_batch(c);
	rxw_connection_release(blocking);
}
END_TEST

static void batch_within(const struct rxw_queue_event *event)
{
	rxw_batch_begin();
	end_with_reply(event->call);
	rxw_batch_end();
}

START_TEST(a_function_is_in_a_batch_already)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, RXW_EVENT_DONE, NULL);

	answer(accept_call());
	ck_assert_int_eq(rxw_queue_run(clients, batch_within, 1, 30000), 1);
	/* No batch is left. */
	call = ask(c, RXW_EVENT_DONE, NULL);
	answer(accept_call());
	wait_readable(clients);
	ck_assert_ptr_eq(next(clients).call, call);
	end_with_reply(call);
	rxw_connection_release(c);
}
END_TEST

START_TEST(the_end_of_the_endpoint_ends_a_batch)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call;

	rxw_batch_begin();
	call = ask(c, RXW_EVENT_DONE, NULL);
	ck_assert_int_eq(rxw_call_end(call, 1, NULL), 1);
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), 0);
	bed.client = NULL;
	rxw_batch_end(); /* nothing of the endpoint is used */
}
END_TEST

/* ---- entries ---- */

static bool sent_all(void *call)
{
	struct rxw_call_statistics s = {.size = sizeof(s)};

	ck_assert_int_eq(rxw_call_stats(call, &s), 0);
	return s.packets_received >= 3;
}

/* Packets, the end of the request and an abort make one entry, with what holds when it is taken. */
START_TEST(events_coalesce)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	struct rxw_queue_event v[4];
	rxw_call *call, *served;

	ck_assert_int_eq(begin(c, 0, NULL, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_flush(call), 0);
	served = accept_call();
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rxw_call_write(call, "more", 4), 4);
		ck_assert_int_eq(rxw_call_flush(call), 0);
	}
	h_wait_for(sent_all, served, "the packets arrive");
	ck_assert_int_eq(rxw_queue_next(servers, v, 4, 30000), 1);
	ck_assert_ptr_eq(v[0].call, served);
	ck_assert_uint_eq(v[0].events, RXW_EVENT_READ | RXW_EVENT_WRITE);
	/* Nothing new: it is not reported again although data is unread. */
	ck_assert(is_empty(servers));
	rxw_call_abort(call, 99);
	ck_assert_int_eq(rxw_queue_next(servers, v, 4, 30000), 1);
	ck_assert_uint_eq(v[0].events, RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE);
	ck_assert_int_eq(rxw_call_end(served, 0, NULL), 99);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 99);
	rxw_connection_release(c);
}
END_TEST

START_TEST(selected_events_only)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	struct rxw_queue_event event;
	rxw_call *call, *served;

	ck_assert_int_eq(begin(c, 0x80, NULL, &call), -RXW_EINVAL);
	ck_assert_int_eq(begin(c, RXW_EVENT_DONE, NULL, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_flush(call), 0);
	served = accept_call();
	ck_assert_int_eq(rxw_call_set_events(served, RXW_EVENT_DONE), 0);
	ck_assert_int_eq(rxw_call_write(call, "0123456789", 10), 10);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	/* The request ends; it is not reported before the event is selected. */
	while (!(rxw_call_events(served) & RXW_EVENT_READ))
		;
	ck_assert(is_empty(servers));
	ck_assert_int_eq(rxw_call_set_events(served, RXW_EVENT_READ), 0);
	event = next(servers);
	ck_assert_uint_eq(event.events, RXW_EVENT_READ);
	answer(served);
	ck_assert_uint_eq(next(clients).events, RXW_EVENT_DONE);
	end_with_reply(call);
	rxw_connection_release(c);
}
END_TEST

START_TEST(the_end_removes_the_entry)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, 0, NULL), *served = accept_call();

	ck_assert(!is_readable(clients));
	ck_assert_int_eq(rxw_call_end(served, 5, NULL), 5);
	wait_readable(clients);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 5);
	ck_assert(!is_readable(clients));
	ck_assert(is_empty(clients));
	rxw_connection_release(c);
}
END_TEST

START_TEST(readable_exactly_while_queued)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	struct rxw_queue_event v[2];
	rxw_call *call;

	ck_assert_int_eq(rxw_queue_post(servers, &bed), 0);
	ck_assert(is_readable(servers)); /* queued before the descriptor existed */
	ck_assert_int_eq(rxw_queue_post(servers, &c), 0);
	ck_assert_int_eq(rxw_queue_next(servers, v, 1, -1), 1);
	ck_assert_uint_eq(v[0].events, RXW_EVENT_POST);
	ck_assert_ptr_eq(v[0].arg, &bed);
	ck_assert_ptr_null(v[0].call);
	ck_assert(is_readable(servers));
	ck_assert_int_eq(rxw_queue_next(servers, v, 2, 0), 1);
	ck_assert_ptr_eq(v[0].arg, &c);
	ck_assert(!is_readable(servers));
	call = ask(c, RXW_EVENT_DONE, NULL);
	wait_readable(servers);
	answer(accept_call());
	ck_assert(!is_readable(servers));
	wait_readable(clients);
	end_with_reply(next(clients).call);
	ck_assert(!is_readable(clients));
	ck_assert_ptr_nonnull(call);
	rxw_connection_release(c);
}
END_TEST

/* ---- calls that nobody takes ---- */

static bool saw_abort(void *unused)
{
	(void)unused;
	return counter_of(bed.server, "calls_aborted") > 0;
}

START_TEST(a_call_that_fails_untaken)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, 0, NULL);

	wait_readable(servers);
	rxw_call_abort(call, 7);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 7);
	h_wait_for(saw_abort, NULL, "the abort arrives");
	call = ask(c, RXW_EVENT_DONE, NULL);
	answer(accept_call());
	ck_assert_ptr_eq(next(clients).call, call);
	end_with_reply(call);
	ck_assert(is_empty(servers));
	rxw_connection_release(c);
}
END_TEST

START_TEST(stop_refuses_untaken_calls)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, 0, NULL);

	wait_readable(servers);
	if (_i)
		ck_assert_int_eq(rxw_endpoint_stop(bed.server, 60000), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	bed.server = NULL;
	ck_assert(is_empty(servers));
	ck_assert_uint_ne(next(clients).events & RXW_EVENT_DONE, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_RESTARTING);
	rxw_connection_release(c);
}
END_TEST

/* Removal refuses calls that nobody has taken, and aborts the others after its limit. */
START_TEST(removal_of_the_service)
{
	struct rxw_service_options options = {.size = sizeof(options), .id = 131};
	rxw_connection *c;
	rxw_call *taken, *left, *served;
	rxw_service *service;

	options.queue = servers;
	options.context = &context;
	options.security = bed.offered;
	options.security_count = 4;
	ck_assert_int_eq(rxw_service_add(bed.server, &options, &service), 0);
	c = h_connect(&bed, 131);
	taken = ask(c, RXW_EVENT_DONE, NULL);
	served = accept_call();
	left = ask(c, RXW_EVENT_DONE, NULL);
	wait_readable(servers);
	ck_assert_int_eq(rxw_service_remove(service, 10), -RXW_ETIMEDOUT);
	ck_assert_uint_ne(next(servers).events & RXW_EVENT_DONE, 0);
	ck_assert_int_eq(rxw_call_end(served, 0, NULL), RXW_INVALID_OPERATION);
	for (int i = 0; i < 2; i++) /* the client has received both ABORT packets */
		ck_assert_uint_ne(next(clients).events & RXW_EVENT_DONE, 0);
	ck_assert_int_eq(rxw_call_end(taken, 3, NULL), RXW_INVALID_OPERATION);
	ck_assert_int_eq(rxw_call_end(left, 3, NULL), RXW_INVALID_OPERATION);
	ck_assert(is_empty(servers));
	rxw_connection_release(c);
}
END_TEST

START_TEST(stop_aborts_taken_calls)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, 0, NULL), *served = accept_call();

	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), -RXW_ESTATE);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 1), -RXW_ETIMEDOUT);
	ck_assert_uint_ne(next(servers).events & RXW_EVENT_DONE, 0);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_end(served, 0, NULL), RXW_RESTARTING);
	while (!(next(clients).events & RXW_EVENT_DONE))
		; /* other events may come before */
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_RESTARTING);
	rxw_connection_release(c);
}
END_TEST

START_TEST(the_number_of_calls_is_bounded)
{
	rxw_connection *c = h_connect(&bed, FEW), *d = h_connect(&bed, FEW);
	rxw_call *served[4];

	for (unsigned i = 0; i < 4; i++)
		ask(c, RXW_EVENT_DONE, NULL);
	for (unsigned i = 0; i < 4; i++)
		served[i] = accept_call();
	ask(d, RXW_EVENT_DONE, NULL);
	while (!counter_of(bed.server, "calls_refused"))
		usleep(1000);
	ck_assert(is_empty(servers));
	for (unsigned i = 0; i < 4; i++)
		answer(served[i]);
	answer(accept_call());
	for (unsigned i = 0; i < 5; i++)
		end_with_reply(next(clients).call);
	rxw_connection_release(c);
	rxw_connection_release(d);
}
END_TEST

/* ---- channels ---- */

START_TEST(a_free_channel_is_announced)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *served[4], *more;
	struct rxw_queue_event event;
	int first, second;

	for (unsigned i = 0; i < 4; i++)
		ask(c, RXW_EVENT_DONE, NULL);
	for (unsigned i = 0; i < 4; i++)
		served[i] = accept_call();
	/* One event for each argument. */
	ck_assert_int_eq(begin(c, 0, &first, &more), -RXW_EAGAIN);
	ck_assert_int_eq(begin(c, 0, &first, &more), -RXW_EAGAIN);
	ck_assert_int_eq(begin(c, 0, &second, &more), -RXW_EAGAIN);
	ck_assert_ptr_null(more);
	ck_assert(is_empty(clients));
	answer(served[0]);
	event = next(clients);
	ck_assert_uint_eq(event.events, RXW_EVENT_DONE);
	end_with_reply(event.call);
	for (unsigned i = 0; i < 2; i++) {
		event = next(clients);
		ck_assert_uint_eq(event.events, RXW_EVENT_CHANNEL);
		ck_assert_ptr_null(event.call);
		ck_assert_ptr_eq(event.connection, c);
		ck_assert_ptr_eq(event.arg, i ? &first : &second);
	}
	ck_assert(is_empty(clients));
	ask(c, RXW_EVENT_DONE, NULL);
	ck_assert_int_eq(begin(c, 0, &first, &more), -RXW_EAGAIN);
	for (unsigned i = 1; i < 4; i++)
		answer(served[i]);
	answer(accept_call());
	for (unsigned i = 0; i < 5; i++) {
		event = next(clients);
		if (event.call)
			end_with_reply(event.call);
	}
	rxw_connection_release(c);
}
END_TEST

START_TEST(announcements_are_bounded)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call[4], *more;
	char args[65];

	for (unsigned i = 0; i < 4; i++)
		call[i] = ask(c, RXW_EVENT_DONE, NULL);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_int_eq(begin(c, 0, &args[i], &more), -RXW_EAGAIN);
	ck_assert_int_eq(begin(c, 0, &args[64], &more), -RXW_ELIMIT);
	for (unsigned i = 0; i < 4; i++)
		answer(accept_call());
	/* A released connection announces nothing. */
	if (_i) {
		rxw_call_abort(call[0], 1);
		rxw_call_end(call[0], 1, NULL);
	}
	rxw_connection_release(c);
	for (unsigned i = _i; i < 4; i++) {
		struct rxw_queue_event event = next(clients);

		ck_assert_ptr_nonnull(event.call);
		end_with_reply(event.call);
	}
	ck_assert(is_empty(clients));
}
END_TEST

/* Queued events of a released connection do not need its endpoint. */
START_TEST(an_endpoint_ends_before_its_announcement)
{
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = RXW_CALL_NONBLOCK, .queue = clients};
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	rxw_call *call[4], *more;
	rxw_endpoint *endpoint;
	rxw_connection *c;

	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, NULL, &endpoint), 0);
	ck_assert_int_eq(rxw_endpoint_address(bed.server, &to, &length), 0);
	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&to, length, SERVICE,
					       NULL, &c),
			 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_begin(c, NULL, &call[i]), 0);
	ck_assert_int_eq(rxw_call_begin(c, &options, &more), -RXW_EAGAIN);
	ck_assert_int_eq(rxw_queue_post(clients, &more), 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 1, NULL), 1);
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	ck_assert_ptr_eq(next(clients).arg, &more);
	ck_assert(is_empty(clients));
}
END_TEST

static void *take_all(void *events)
{
	return (void *)(uintptr_t)rxw_queue_next(clients, events, 4, 30000);
}

static void *destroy_endpoint(void *endpoint)
{
	return (void *)(intptr_t)rxw_endpoint_destroy(endpoint);
}

/* One thread has taken the last call of an endpoint out of the queue, another ends both. */
START_TEST(an_endpoint_ends_while_its_call_is_taken)
{
	rxw_connection *first = h_connect(&bed, SERVICE), *second;
	struct rxw_queue_event event[4];
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	rxw_endpoint *endpoint;
	pthread_t taker, destroyer;
	rxw_call *call[2];
	void *n, *rc;

	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, NULL, &endpoint), 0);
	ck_assert_int_eq(rxw_endpoint_address(bed.server, &to, &length), 0);
	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&to, length, SERVICE,
					       NULL, &second),
			 0);
	ck_assert_int_eq(begin(first, RXW_EVENT_DONE, NULL, &call[0]), 0);
	ck_assert_int_eq(begin(second, RXW_EVENT_DONE, NULL, &call[1]), 0);
	rxw_call_abort(call[0], 1);
	rxw_call_abort(call[1], 1);
	internals_lock(first);
	ck_assert_int_eq(pthread_create(&taker, NULL, take_all, event), 0);
	while (!internals_calls_taken(endpoint))
		sched_yield();
	ck_assert_int_eq(rxw_call_end(call[1], 0, NULL), 1);
	rxw_connection_release(second);
	ck_assert_int_eq(pthread_create(&destroyer, NULL, destroy_endpoint, endpoint), 0);
	while (!internals_stopping(endpoint))
		sched_yield();
	internals_unlock(first);
	pthread_join(taker, &n);
	pthread_join(destroyer, &rc);
	ck_assert_uint_eq((uintptr_t)n, 1);
	ck_assert_ptr_eq(event[0].call, call[0]);
	ck_assert_int_eq((intptr_t)rc, 0);
	rxw_call_end(call[0], 0, NULL);
	rxw_connection_release(first);
}
END_TEST

/* ---- threads ---- */

#define THREADS 4

static sem_t taken;

static void *take_posts(void *unused)
{
	struct rxw_queue_event event;

	do {
		ck_assert_int_eq(rxw_queue_next(clients, &event, 1, -1), 1);
		ck_assert_uint_eq(event.events, RXW_EVENT_POST);
		sem_post(&taken);
	} while (event.arg);
	return unused;
}

static bool all_wait(void *unused)
{
	(void)unused;
	return internals_queue_waiters(clients) == THREADS;
}

/* As many threads wake as entries come, and each entry goes to one of them. */
START_TEST(several_threads_wait)
{
	unsigned rounds = h_small() ? 200 : 2000;
	pthread_t t[THREADS];

	sem_init(&taken, 0, 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, take_posts, NULL);
	for (unsigned i = 0; i < rounds; i++) {
		ck_assert_int_eq(rxw_queue_post(clients, &bed), 0);
		ck_assert_int_eq(rxw_queue_post(clients, &bed), 0);
		sem_wait(&taken);
		sem_wait(&taken);
	}
	h_wait_for(all_wait, NULL, "all threads are back");
	ck_assert_int_eq(rxw_queue_destroy(clients), -RXW_ESTATE);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(rxw_queue_post(clients, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert(is_empty(clients));
}
END_TEST

static void *serve_until_post(void *unused)
{
	for (;;) {
		struct rxw_queue_event v[8];
		int n = rxw_queue_next(servers, v, 8, -1);
		bool posted = false;

		for (int i = 0; i < n; i++) {
			char request[H_ASK_SIZE];

			posted |= v[i].events & RXW_EVENT_POST;
			if (!(v[i].events & RXW_EVENT_CALL))
				continue;
			if (rxw_call_read(v[i].call, request, sizeof(request)) == sizeof(request))
				(void)!rxw_call_write(v[i].call, "pong", 4);
			rxw_call_end(v[i].call, 0, NULL);
		}
		if (posted) {
			rxw_queue_post(servers, NULL); /* for the next thread */
			return unused;
		}
	}
}

/* Clients abort some calls at any time; servers and clients end them while events come. */
START_TEST(ends_during_events)
{
	unsigned left = h_small() ? 3000 : 30000;
	rxw_connection *c[8];
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, serve_until_post, NULL);
	for (unsigned i = 0; i < 8; i++)
		c[i] = h_connect(&bed, SERVICE);
	for (unsigned i = 0; i < left; i++) {
		rxw_call *call;
		struct rxw_queue_event v[4];

		if (!begin(c[i % 8], 0, NULL, &call)) {
			h_write_ask(call, &(struct h_ask){.op = H_PING});
			rxw_call_send_end(call);
			if (i % 5 == 0)
				rxw_call_end(call, 9, NULL);
			else if (i % 7 == 0)
				rxw_call_abort(call, 8);
		}
		for (int n = rxw_queue_next(clients, v, 4, i % 3 ? 0 : 1); n > 0; n--)
			if (v[n - 1].call && (v[n - 1].events & RXW_EVENT_DONE))
				rxw_call_end(v[n - 1].call, 0, NULL);
	}
	for (unsigned i = 0; i < 8; i++)
		rxw_connection_abort(c[i], 10);
	for (;;) {
		struct rxw_queue_event event;

		if (!rxw_queue_next(clients, &event, 1, 100))
			break;
		if (event.call && (event.events & RXW_EVENT_DONE))
			rxw_call_end(event.call, 0, NULL);
	}
	for (unsigned i = 0; i < 8; i++)
		rxw_connection_release(c[i]);
	rxw_queue_post(servers, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}
END_TEST

/* ---- callbacks and queues ---- */

static sem_t called;

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	(void)call;
	if (events & RXW_EVENT_DONE) {
		ck_assert_int_eq(rxw_queue_next(clients, &(struct rxw_queue_event){0}, 1, 1),
				 -RXW_EDEADLK);
		ck_assert_int_eq(rxw_queue_post(clients, arg), 0);
		sem_post(&called);
	}
}

START_TEST(from_a_callback_to_a_queue_and_back)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	struct rxw_queue_event event;
	rxw_call *call = ask(c, 0, NULL);

	sem_init(&called, 0, 0);
	ck_assert_int_eq(rxw_call_set_callback(call, on_event, &bed), 0);
	answer(accept_call());
	sem_wait(&called);
	event = next(clients);
	ck_assert_uint_eq(event.events, RXW_EVENT_POST);
	ck_assert(is_empty(clients));
	ck_assert_int_eq(rxw_call_set_queue(call, clients, &c), 0);
	event = next(clients);
	ck_assert_ptr_eq(event.call, call);
	ck_assert_ptr_eq(event.arg, &c);
	ck_assert_uint_ne(event.events & RXW_EVENT_DONE, 0);
	ck_assert_int_eq(rxw_call_set_queue(call, NULL, NULL), 0);
	end_with_reply(call);
	rxw_connection_release(c);
}
END_TEST

/* ---- arguments and life ---- */

/* An engine's calls use its own queues. */
START_TEST(a_queue_of_another_engine)
{
	struct rxw_service_options service = {.size = sizeof(service), .id = 122, .queue = clients};
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = RXW_CALL_NONBLOCK, .queue = servers};
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_connpool *pool;
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(c, &options, &call), -RXW_EINVAL);
	ck_assert_int_eq(rxw_service_add(bed.server, &service, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_create(bed.client, (struct sockaddr *)&bed.address,
					     bed.address_len, SERVICE, NULL, 1, &pool),
			 0);
	ck_assert_int_eq(rxw_connpool_begin(pool, &options, &call), -RXW_EINVAL);
	rxw_connpool_release(pool);
	ck_assert_int_eq(begin(c, 0, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_set_queue(call, servers, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_end(call, 1, NULL), 1);
	rxw_connection_release(c);
}
END_TEST

START_TEST(a_queue_in_use_is_not_destroyed)
{
	struct rxw_service_options options = {.size = sizeof(options), .id = 130};
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call = ask(c, 0, NULL);

	ck_assert_int_eq(rxw_queue_destroy(clients), -RXW_ESTATE);
	ck_assert_int_eq(rxw_queue_destroy(servers), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_end(call, 1, NULL), 1);
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_service_add(bed.server, &options, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_queue_destroy(NULL), 0);
	ck_assert_int_eq(rxw_queue_create(NULL, NULL, &clients), -RXW_EINVAL);
	ck_assert_int_eq(rxw_queue_fd(NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_queue_post(NULL, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_queue_next(NULL, NULL, 1, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_queue_next(clients, NULL, 0, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_set_queue(NULL, NULL, NULL), -RXW_EINVAL);
}
END_TEST

int main(void)
{
	const TTest *const each[] = {a_call_from_end_to_end,
				     many_calls,
				     events_for_a_function,
				     as_many_as_wanted,
				     a_function_ends_another_call,
				     aborts_and_deadlines_double_no_call,
				     a_call_that_moves_is_reported_once,
				     packets_of_a_batch_leave_together,
				     a_wait_ends_a_batch,
				     a_function_is_in_a_batch_already,
				     the_end_of_the_endpoint_ends_a_batch,
				     events_coalesce,
				     selected_events_only,
				     the_end_removes_the_entry,
				     readable_exactly_while_queued,
				     a_call_that_fails_untaken,
				     stop_aborts_taken_calls,
				     removal_of_the_service,
				     the_number_of_calls_is_bounded,
				     a_free_channel_is_announced,
				     several_threads_wait,
				     ends_during_events,
				     from_a_callback_to_a_queue_and_back,
				     a_queue_of_another_engine,
				     a_queue_in_use_is_not_destroyed};
	Suite *suite = suite_create("queue");
	TCase *tcase = tcase_create("queue");
	SRunner *runner;
	int left;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		tcase_add_test(tcase, each[i]);
	tcase_add_loop_test(tcase, stop_refuses_untaken_calls, 0, 2);
	tcase_add_test(tcase, an_endpoint_ends_before_its_announcement);
	tcase_add_test(tcase, an_endpoint_ends_while_its_call_is_taken);
	tcase_add_loop_test(tcase, announcements_are_bounded, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	left = srunner_ntests_failed(runner);
	srunner_free(runner);
	return left ? EXIT_FAILURE : EXIT_SUCCESS;
}
