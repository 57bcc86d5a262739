/* SPDX-License-Identifier: BSD-2-Clause */
/* Deferred server calls: late answers, cancellation, keepalive, stop and destruction. */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define SERVICE 110 /* defers on a worker */
#define SHORT	111 /* defers on the receiving thread */
#define FEW	112 /* at most 4 deferred calls */
#define MANY	256

/* Calls that the handlers have deferred. */
static struct held {
	pthread_mutex_t lock;
	rxw_call *call[MANY];
	unsigned count;
	sem_t arrived;
} held;
static struct h_bed bed;

static int32_t defer(rxw_call *call, void *context)
{
	char request[H_ASK_SIZE];
	int r;

	(void)context;
	if (rxw_call_read(call, request, sizeof(request)) != sizeof(request))
		return 1;
	r = rxw_call_defer(call);
	if (r)
		return r == -RXW_ELIMIT ? 16 : 2;
	ck_assert_int_eq(rxw_call_defer(call), -RXW_ESTATE);
	pthread_mutex_lock(&held.lock);
	held.call[held.count++] = call;
	pthread_mutex_unlock(&held.lock);
	sem_post(&held.arrived);
	return 77; /* ignored */
}

static void open_bed(const char *tunables)
{
	struct rxw_service_options options = {.size = sizeof(options), .handler = defer};

	h_open(&bed, &(struct h_options){.server = tunables});
	memset(&held, 0, sizeof(held));
	pthread_mutex_init(&held.lock, NULL);
	sem_init(&held.arrived, 0, 0);
	options.id = SERVICE;
	h_offer(&bed, options);
	options.id = SHORT;
	options.flags = RXW_SERVICE_INLINE;
	h_offer(&bed, options);
	options.id = FEW;
	options.deferred_max = 4;
	h_offer(&bed, options);
}

static void set_up(void)
{
	open_bed("workers-max=2");
}

static void tear_down(void)
{
	h_close(&bed);
}

static void wait_held(unsigned count)
{
	while (count--)
		sem_wait(&held.arrived);
}

/* Begins a call and sends its request. */
static rxw_call *ask(rxw_connection *connection, unsigned flags)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = flags};
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

static void answer(rxw_call *call, const char *text)
{
	enum rxw_origin origin = RXW_ORIGIN_PEER;

	ck_assert_int_eq(rxw_call_write(call, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), 0);
	ck_assert_int_eq(origin, RXW_ORIGIN_NONE);
}

static void *answer_all(void *unused)
{
	for (unsigned i = 0; i < held.count; i++)
		answer(held.call[i], "late");
	return unused;
}

static const uint16_t both[] = {SERVICE, SHORT};

/* More calls than workers wait at once; another thread answers them. */
START_TEST(late_answers)
{
	rxw_connection *c[MANY / 4];
	rxw_call *call[MANY];
	unsigned n = h_small() ? 32 : MANY;
	pthread_t t;

	for (unsigned i = 0; i < n; i++) {
		if (i % 4 == 0)
			c[i / 4] = h_connect(&bed, both[_i]);
		call[i] = ask(c[i / 4], 0);
	}
	wait_held(n);
	pthread_create(&t, NULL, answer_all, NULL);
	for (unsigned i = 0; i < n; i++) {
		char reply[8];

		ck_assert_int_eq(rxw_call_read(call[i], reply, sizeof(reply)), 4);
		ck_assert(!memcmp(reply, "late", 4));
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	}
	pthread_join(t, NULL);
	for (unsigned i = 0; i < n / 4; i++)
		rxw_connection_release(c[i]);
}
END_TEST

START_TEST(an_answer_may_be_an_abort)
{
	rxw_connection *c = h_connect(&bed, both[_i]);
	enum rxw_origin origin;
	rxw_call *call = ask(c, 0);
	char reply[4];

	wait_held(1);
	ck_assert_int_eq(rxw_call_end(held.call[0], 4711, &origin), 4711);
	ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	ck_assert_int_eq(rxw_call_read(call, reply, sizeof(reply)), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), 4711);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	rxw_connection_release(c);
}
END_TEST

/* Reads a reply on a thread of its own. */
struct reading {
	rxw_call *call;
	struct h_ask ask;
};

static void *read_reply(void *arg)
{
	struct reading *r = arg;

	ck_assert_int_eq(h_get(r->call, &r->ask), 0);
	return NULL;
}

static bool has_room(void *call)
{
	return rxw_call_events(call) & RXW_EVENT_WRITE;
}

/* A reply that is longer than the send queue, written as there is room. */
START_TEST(a_long_reply)
{
	struct reading r = {.ask = {.op = H_SOURCE, .bytes = 8u << 20, .seed = 3}};
	rxw_connection *c = h_connect(&bed, both[_i]);
	uint8_t part[1 << 15];
	unsigned waits = 0;
	pthread_t t;

	r.call = ask(c, 0);
	wait_held(1);
	for (uint64_t at = 0; at < r.ask.bytes;) {
		size_t n =
			r.ask.bytes - at < sizeof(part) ? (size_t)(r.ask.bytes - at) : sizeof(part);
		ssize_t wrote;

		h_pattern(part, at, n, r.ask.seed);
		wrote = rxw_call_write(held.call[0], part, n);
		if (wrote == -RXW_EAGAIN) {
			/* The client reads once nothing more fits. */
			if (!waits++)
				pthread_create(&t, NULL, read_reply, &r);
			h_wait_for(has_room, held.call[0], "room for more of the reply");
			continue;
		}
		ck_assert_int_gt(wrote, 0);
		at += (uint64_t)wrote;
	}
	ck_assert_uint_gt(waits, 0);
	ck_assert_int_eq(rxw_call_end(held.call[0], 0, NULL), 0);
	pthread_join(t, NULL);
	ck_assert_int_eq(rxw_call_end(r.call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

static void on_done(rxw_call *call, unsigned events, void *arg)
{
	if ((events & RXW_EVENT_DONE) && rxw_call_error(call, NULL))
		sem_post(arg);
}

static void watch(rxw_call *call, sem_t *done)
{
	sem_init(done, 0, 0);
	ck_assert_int_eq(rxw_call_set_callback(call, on_done, done), 0);
}

/* Not by a keepalive, which takes two seconds: the client's ABORT brings it. */
#define AT_ONCE 1500

START_TEST(a_cancellation_arrives_at_once)
{
	rxw_connection *c = h_connect(&bed, both[_i]);
	rxw_call *call = ask(c, RXW_CALL_NONBLOCK);
	enum rxw_origin origin;
	uint64_t before;
	sem_t done;

	wait_held(1);
	watch(held.call[0], &done);
	before = h_now_ms();
	rxw_call_abort(call, 1234);
	sem_wait(&done);
	ck_assert_uint_lt(h_now_ms() - before, AT_ONCE);
	ck_assert_int_eq(rxw_call_end(held.call[0], 0, &origin), 1234);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 1234);
	rxw_connection_release(c);
}
END_TEST

START_TEST(a_deadline_arrives_at_once)
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = 1000};
	rxw_connection *c = h_connect(&bed, both[_i]);
	uint64_t before = h_now_ms();
	rxw_call *call;
	sem_t done;

	ck_assert_int_eq(rxw_call_begin(c, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	wait_held(1);
	watch(held.call[0], &done);
	sem_wait(&done);
	ck_assert_uint_lt(h_now_ms() - before, options.deadline_ms + AT_ONCE);
	ck_assert_int_eq(rxw_call_end(held.call[0], 0, NULL), RXW_CALL_TIMEOUT);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_CALL_TIMEOUT);
	rxw_connection_release(c);
}
END_TEST

/* A client that sends a request and is never heard of again. */
START_TEST(a_silent_client)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = h_raw_request(head, H_PING, 0x100);
	sem_t done;
	int fd;

	if (h_left_out("a hand-made request", "it is of the null class"))
		return;
	tear_down();
	open_bed("dead-ms=1000");
	fd = h_raw_socket(&bed);
	raw.service = both[_i];
	h_raw_send(fd, &raw);
	wait_held(1);
	watch(held.call[0], &done);
	sem_wait(&done);
	ck_assert_int_eq(rxw_call_end(held.call[0], 0, NULL), RXW_CALL_DEAD);
	close(fd);
}
END_TEST

/* The call outlives the dead time of its client many times. */
START_TEST(a_waiting_call_stays_alive)
{
	rxw_connection *c = h_connect(&bed, both[_i]);
	char reply[4];
	rxw_call *call;
	sem_t done;

	ck_assert_int_eq(rxw_connection_set_timeouts(c, 1000, 0, 0), 0);
	call = ask(c, 0);
	wait_held(1);
	watch(held.call[0], &done);
	sleep(h_small() ? 3 : 5);
	ck_assert_int_ne(sem_trywait(&done), 0);
	answer(held.call[0], "late");
	ck_assert_int_eq(rxw_call_read(call, reply, 4), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

START_TEST(the_number_of_deferred_calls_is_bounded)
{
	rxw_connection *c = h_connect(&bed, FEW), *d = h_connect(&bed, FEW);
	rxw_call *call[4], *fifth;

	for (unsigned i = 0; i < 4; i++)
		call[i] = ask(c, 0);
	wait_held(4);
	fifth = ask(d, 0);
	ck_assert_int_eq(rxw_call_end(fifth, 0, NULL), 16);
	answer_all(NULL);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	held.count = 0;
	fifth = ask(d, 0);
	wait_held(1);
	answer(held.call[0], "more");
	ck_assert_int_eq(rxw_call_end(fifth, 0, NULL), 0);
	rxw_connection_release(c);
	rxw_connection_release(d);
}
END_TEST

static void *stop(void *limit)
{
	return (void *)(intptr_t)rxw_endpoint_stop(bed.server, *(unsigned *)limit);
}

/* Waits until the server refuses new calls. */
static void wait_refused(void)
{
	rxw_connection *c = h_connect(&bed, H_INLINE);

	while (h_call(&bed, c, &(struct h_ask){.op = H_SOURCE}) != RXW_RESTARTING)
		usleep(1000);
	rxw_connection_release(c);
}

START_TEST(stop_waits_for_answers)
{
	rxw_connection *c = h_connect(&bed, both[_i]);
	unsigned limit = 60000;
	rxw_call *call = ask(c, 0);
	pthread_t t;
	void *result;

	wait_held(1);
	pthread_create(&t, NULL, stop, &limit);
	wait_refused();
	answer(held.call[0], "last");
	pthread_join(t, &result);
	ck_assert_int_eq((int)(intptr_t)result, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

START_TEST(stop_aborts_what_is_left)
{
	rxw_connection *c = h_connect(&bed, both[_i]);
	rxw_call *call = ask(c, 0);
	sem_t done;

	wait_held(1);
	watch(held.call[0], &done);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), -RXW_ESTATE);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 10), -RXW_ETIMEDOUT);
	sem_wait(&done);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_end(held.call[0], 0, NULL), RXW_RESTARTING);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	bed.server = NULL;
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_RESTARTING);
	rxw_connection_release(c);
}
END_TEST

/* ---- stubs ---- */

#define STUBS 113

static int32_t stub(rxw_call *call, const void *service)
{
	ck_assert_ptr_eq(service, &held);
	ck_assert_int_eq(rxw_call_defer(call), 0);
	pthread_mutex_lock(&held.lock);
	held.call[held.count++] = call;
	pthread_mutex_unlock(&held.lock);
	sem_post(&held.arrived);
	return RXW_RPC_DEFERRED;
}

static const struct rxw_rpc_function functions[] = {{H_PING, "wait"}};
static const struct rxw_rpc_interface interface = {"TEST_", 0, 1, functions, true};

static int32_t serve_stubs(rxw_call *call, void *context)
{
	static const struct rxw_rpc_entry entries[] = {{H_PING, 0, stub}};
	static const struct rxw_rpc_table table = {&interface, entries, 1, true};

	return rxw_rpc_serve(call, &table, NULL, context);
}

/* What the observer of the server was told last. */
static struct rxw_rpc_report told;
static unsigned reports;

static void on_report(void *arg, const struct rxw_rpc_report *report)
{
	ck_assert_ptr_eq(arg, &reports);
	ck_assert_ptr_eq(report->interface, &interface);
	ck_assert(!report->client);
	ck_assert_int_eq(report->peer->sa_family, bed.address.ss_family);
	told = *report;
	reports++;
}

static rxw_connection *connect_to_stubs(bool observed)
{
	static const struct rxw_rpc_observer observer = {on_report, &reports};
	struct rxw_service_options options = {
		.size = sizeof(options), .id = STUBS, .handler = serve_stubs, .context = &held};

	reports = 0;
	if (observed)
		ck_assert_int_eq(rxw_endpoint_set_observer(bed.server, &observer), 0);
	h_offer(&bed, options);
	return h_connect(&bed, STUBS);
}

START_TEST(a_stub_defers)
{
	rxw_connection *c = connect_to_stubs(_i);
	struct rxw_rpc_stream s;
	rxw_call *call = ask(c, 0);
	uint8_t word[4];

	wait_held(1);
	ck_assert_uint_eq(reports, 0);
	usleep(2000);
	rxw_rpc_writer(&s, held.call[0]);
	rxw_xdr_put_u32(&s.xdr, 4712);
	ck_assert(rxw_rpc_flush(&s));
	ck_assert_int_eq(rxw_rpc_answer(held.call[0], 0, &interface, 0), 0);
	ck_assert_int_eq(rxw_call_read(call, word, 4), 4);
	ck_assert_uint_eq(rxw_xdr_load32(word), 4712);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_uint_eq(reports, _i ? 1 : 0);
	if (_i) {
		ck_assert_int_eq(told.code, 0);
		ck_assert_uint_eq(told.bytes_sent, 4);
		ck_assert_uint_eq(told.bytes_received, 4);
		ck_assert_uint_ge(told.run_ns, 2000000); /* until the answer */
	}
	rxw_connection_release(c);
}
END_TEST

/* ENOSPC and EDQUOT of Linux get their codes on the wire. */
START_TEST(a_stub_is_answered_with_a_code)
{
	static const int32_t codes[][2] = {{28, 108}, {122, 109}, {4711, 4711}, {-17, -17}};
	rxw_connection *c = connect_to_stubs(true);

	for (unsigned i = 0; i < 4; i++) {
		rxw_call *call = ask(c, 0);

		wait_held(1);
		ck_assert_int_eq(rxw_rpc_answer(held.call[i], codes[i][0], &interface, 0),
				 codes[i][1]);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), codes[i][1]);
		ck_assert_uint_eq(reports, i + 1);
		ck_assert_int_eq(told.code, codes[i][1]);
	}
	rxw_connection_release(c);
}
END_TEST

START_TEST(a_stub_is_answered_too_late)
{
	rxw_connection *c = connect_to_stubs(true);
	rxw_call *call = ask(c, 0);
	sem_t done;

	wait_held(1);
	watch(held.call[0], &done);
	ck_assert_int_eq(rxw_call_end(call, 4713, NULL), 4713);
	sem_wait(&done);
	ck_assert_int_eq(rxw_rpc_answer(held.call[0], 28, &interface, 0), 4713);
	ck_assert_uint_eq(reports, 1);
	ck_assert_int_eq(told.code, 4713);
	rxw_connection_release(c);
}
END_TEST

/* More than the send queue takes: the results are in memory already. */
START_TEST(a_stub_with_long_results)
{
	rxw_connection *c = connect_to_stubs(true);
	struct reading r = {.ask = {.op = H_SOURCE, .bytes = 8u << 20, .seed = 3}};
	uint8_t *all = malloc(r.ask.bytes);
	struct rxw_rpc_stream s;

	ck_assert_ptr_nonnull(all);
	h_pattern(all, 0, r.ask.bytes, r.ask.seed);
	r.call = ask(c, 0);
	wait_held(1);
	rxw_rpc_writer(&s, held.call[0]);
	rxw_xdr_put_opaque(&s.xdr, all, r.ask.bytes);
	ck_assert(rxw_rpc_flush(&s));
	ck_assert_int_eq(rxw_rpc_answer(held.call[0], 0, &interface, 0), 0);
	ck_assert_uint_eq(told.bytes_sent, r.ask.bytes);
	read_reply(&r);
	ck_assert_int_eq(rxw_call_end(r.call, 0, NULL), 0);
	free(all);
	rxw_connection_release(c);
}
END_TEST

static int32_t answer_within(rxw_call *call, void *context)
{
	*(int32_t *)context = rxw_rpc_answer(call, 0, &interface, 0);
	return 4714;
}

START_TEST(a_call_that_is_not_deferred_is_not_answered)
{
	int32_t result = 0;
	struct rxw_service_options options = {
		.size = sizeof(options), .id = STUBS, .handler = answer_within, .context = &result};
	rxw_connection *c;
	rxw_call *call;

	h_offer(&bed, options);
	c = h_connect(&bed, STUBS);
	call = ask(c, 0);
	ck_assert_int_eq(rxw_rpc_answer(call, 0, &interface, 0), RXW_INVALID_OPERATION);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4714);
	ck_assert_int_eq(result, RXW_INVALID_OPERATION);
	rxw_connection_release(c);
}
END_TEST

/* ---- arguments ---- */

static int32_t check_handler(rxw_call *call, void *context)
{
	int *results = context;

	results[0] = rxw_call_end(call, 0, NULL);
	results[1] = rxw_call_set_callback(call, on_done, NULL);
	return 0;
}

START_TEST(calls_that_cannot_be_deferred)
{
	int results[2] = {0, 0};
	struct rxw_service_options options = {
		.size = sizeof(options), .id = STUBS, .handler = check_handler, .context = results};
	rxw_connection *c;
	rxw_call *call;

	h_offer(&bed, options);
	c = h_connect(&bed, STUBS);
	call = ask(c, 0);
	ck_assert_int_eq(rxw_call_defer(call), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_defer(NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_int_eq(results[0], RXW_INVALID_OPERATION);
	ck_assert_int_eq(results[1], -RXW_ESTATE);
	rxw_connection_release(c);
}
END_TEST

int main(void)
{
	const TTest *const each[] = {late_answers,
				     an_answer_may_be_an_abort,
				     a_long_reply,
				     a_cancellation_arrives_at_once,
				     a_deadline_arrives_at_once,
				     a_silent_client,
				     a_waiting_call_stays_alive,
				     stop_waits_for_answers,
				     stop_aborts_what_is_left};
	Suite *suite = suite_create("defer");
	TCase *tcase = tcase_create("defer");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		tcase_add_loop_test(tcase, each[i], 0, 2);
	tcase_add_test(tcase, the_number_of_deferred_calls_is_bounded);
	tcase_add_loop_test(tcase, a_stub_defers, 0, 2);
	tcase_add_test(tcase, a_stub_is_answered_with_a_code);
	tcase_add_test(tcase, a_stub_is_answered_too_late);
	tcase_add_test(tcase, a_stub_with_long_results);
	tcase_add_test(tcase, a_call_that_is_not_deferred_is_not_answered);
	tcase_add_test(tcase, calls_that_cannot_be_deferred);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
