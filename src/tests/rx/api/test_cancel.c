/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation and deadlines reach a handler by one packet, the client's ABORT, whatever the handler
 * does meanwhile. A relay passes that packet and nothing after it, so that only the packet can have
 * told the handler. It delays packets, too; the time that passes is printed as a part of the round
 * trip. The simulator bounds it (src/tests/sim/test_cancel.c).
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "tests/main.h"
#include "tests/rx/security/relay.h"

#define SERVICE	   120 /* and one more for each way to notice */
#define TYPE_ABORT 4
#define ONE_WAY_MS 40
#define CODE	   4711

static struct h_bed bed;
static struct relay relay;
static struct sockaddr_storage server; /* behind the relay */

/* What the relay has seen, and does. */
static struct {
	_Atomic(bool) deaf;	  /* nothing reaches the client any more */
	_Atomic(unsigned) aborts; /* of the client; nothing reaches the server after the first */
} path;

/* What the handler has seen. */
static struct {
	sem_t arrived, noticed;
	rxw_code code;
	enum rxw_origin origin;
	uint64_t at; /* us */
} seen;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A packet on its way. */
struct packet {
	struct packet *next;
	bool to_server;
	uint64_t due; /* us */
	size_t size;
	uint8_t data[];
};

static struct {
	pthread_t thread;
	pthread_mutex_t lock; /* of the list and `end` */
	pthread_cond_t more;
	struct packet *first, **last;
	bool end;
} way_there;

/* The packet is there: it is passed on, or not. */
static void arrive(const struct packet *p)
{
	if (p->to_server ? path.aborts > 0 : path.deaf)
		return;
	if (p->to_server && type_of(p->data) == TYPE_ABORT)
		path.aborts++;
	relay_pass(&relay, p->to_server, p->data, p->size);
}

static void *carry(void *unused)
{
	pthread_mutex_lock(&way_there.lock);
	for (;;) {
		struct packet *p;
		uint64_t now;

		while (!way_there.first && !way_there.end)
			pthread_cond_wait(&way_there.more, &way_there.lock);
		p = way_there.first;
		if (!p)
			break;
		way_there.first = p->next;
		if (!p->next)
			way_there.last = &way_there.first;
		pthread_mutex_unlock(&way_there.lock);
		now = now_us();
		if (now < p->due)
			usleep((useconds_t)(p->due - now));
		arrive(p);
		free(p);
		pthread_mutex_lock(&way_there.lock);
	}
	pthread_mutex_unlock(&way_there.lock);
	return unused;
}

static void filter(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	struct packet *p = malloc(sizeof(*p) + size);

	(void)r;
	ck_assert_ptr_nonnull(p);
	*p = (struct packet){
		.to_server = to_server, .due = now_us() + ONE_WAY_MS * 1000, .size = size};
	memcpy(p->data, data, size);
	pthread_mutex_lock(&way_there.lock);
	*way_there.last = p;
	way_there.last = &p->next;
	pthread_cond_signal(&way_there.more);
	pthread_mutex_unlock(&way_there.lock);
}

/* --- handlers, and how they notice: each returns once the call has failed --- */

/* It computes, and asks between two steps. */
static void by_question(rxw_call *call)
{
	sem_post(&seen.arrived);
	while (!rxw_call_error(call, NULL))
		usleep(100);
}

static void by_read(rxw_call *call)
{
	char more;

	sem_post(&seen.arrived);
	ck_assert_int_eq(rxw_call_read(call, &more, 1), -RXW_ECALL);
}

/* The client has stopped to read, so there is no room. */
static void by_write(rxw_call *call)
{
	static char data[1 << 16];
	ssize_t n;

	sem_post(&seen.arrived);
	do
		n = rxw_call_write(call, data, sizeof(data));
	while (n > 0);
	ck_assert_int_eq(n, -RXW_ECALL);
}

static void (*const ways[])(rxw_call *call) = {by_question, by_read, by_write};
static const char *const names[] = {"computes", "reads", "writes"};
#define WAYS 3

static rxw_code handler(rxw_call *call, void *context)
{
	void (*const *way)(rxw_call * call) = context;
	char request[H_ASK_SIZE];

	ck_assert_int_eq(rxw_call_read(call, request, sizeof(request)), sizeof(request));
	(*way)(call);
	seen.at = now_us();
	seen.code = rxw_call_error(call, &seen.origin);
	sem_post(&seen.noticed);
	return 0;
}

/* --- the client --- */

static void set_up(void)
{
	struct rxw_service_options options = {.size = sizeof(options), .handler = handler};

	h_open(&bed, NULL);
	for (unsigned i = 0; i < WAYS; i++) {
		options.id = (uint16_t)(SERVICE + i);
		options.context = (void *)(uintptr_t)&ways[i];
		h_offer(&bed, options);
	}
	sem_init(&seen.arrived, 0, 0);
	sem_init(&seen.noticed, 0, 0);
	seen.code = 0;
	path.deaf = false;
	path.aborts = 0;
	server = bed.address;
	pthread_mutex_init(&way_there.lock, NULL);
	pthread_cond_init(&way_there.more, NULL);
	way_there.last = &way_there.first;
	way_there.end = false;
	relay_open(&relay, (struct sockaddr_in *)&server);
	pthread_create(&way_there.thread, NULL, carry, NULL);
	relay.filter = filter;
	*(struct sockaddr_in *)&bed.address = relay.address;
}

static void tear_down(void)
{
	pthread_mutex_lock(&way_there.lock);
	way_there.end = true;
	pthread_cond_signal(&way_there.more);
	pthread_mutex_unlock(&way_there.lock);
	pthread_join(way_there.thread, NULL);
	relay_close(&relay);
	while (way_there.first) {
		struct packet *p = way_there.first;

		way_there.first = p->next;
		free(p);
	}
	h_close(&bed);
}

/* A call that the handler holds. Nothing of the server reaches its client any more. */
static rxw_call *held_call(rxw_connection *c, const struct rxw_call_options *options)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(c, options, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_flush(call), 0);
	sem_wait(&seen.arrived);
	path.deaf = true;
	return call;
}

#define DEADLINE_MS 1500 /* the request arrives before that, also on a busy machine */

/* The handler got the code, from the client, and after one packet. */
static void expect_noticed(const char *what, unsigned way, uint64_t since, rxw_code code)
{
	double passed;

	sem_wait(&seen.noticed);
	ck_assert_int_eq(seen.code, code);
	ck_assert_int_eq(seen.origin, RXW_ORIGIN_PEER);
	ck_assert_uint_eq(path.aborts, 1);
	passed = (double)(seen.at - since) / 1000;
	printf("%s, the handler %s: after %.1f ms, %.2f of the round trip of %d ms\n", what,
	       names[way], passed, passed / (2 * ONE_WAY_MS), 2 * ONE_WAY_MS);
	ck_assert_msg(passed >= ONE_WAY_MS, "%.1f ms", passed);
}

START_TEST(an_abort)
{
	rxw_connection *c = h_connect(&bed, (uint16_t)(SERVICE + _i));
	rxw_call *call = held_call(c, NULL);
	uint64_t since = now_us();

	rxw_call_abort(call, CODE);
	expect_noticed("an abort", (unsigned)_i, since, CODE);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), CODE);
	rxw_connection_release(c);
}
END_TEST

START_TEST(an_end_with_a_code)
{
	rxw_connection *c = h_connect(&bed, (uint16_t)(SERVICE + _i));
	rxw_call *call = held_call(c, NULL);
	uint64_t since = now_us();

	ck_assert_int_eq(rxw_call_end(call, CODE, NULL), CODE);
	expect_noticed("the end of the call", (unsigned)_i, since, CODE);
	rxw_connection_release(c);
}
END_TEST

START_TEST(an_abort_of_the_connection)
{
	rxw_connection *c = h_connect(&bed, (uint16_t)(SERVICE + _i));
	rxw_call *call = held_call(c, NULL);
	uint64_t since = now_us();

	ck_assert_int_eq(rxw_connection_abort(c, CODE), 0);
	expect_noticed("an abort of the connection", (unsigned)_i, since, CODE);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), CODE);
	rxw_connection_release(c);
}
END_TEST

/* The deadline is the client's: its ABORT tells the server, which has no clock of its own for it. */
START_TEST(a_deadline)
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = DEADLINE_MS};
	rxw_connection *c = h_connect(&bed, (uint16_t)(SERVICE + _i));
	uint64_t since = now_us() + 1000 * DEADLINE_MS;
	rxw_call *call = held_call(c, &options);

	expect_noticed("a deadline", (unsigned)_i, since, RXW_CALL_TIMEOUT);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_CALL_TIMEOUT);
	rxw_connection_release(c);
}
END_TEST

START_TEST(a_hard_timeout)
{
	rxw_connection *c = h_connect(&bed, (uint16_t)(SERVICE + _i));
	rxw_call *call;
	uint64_t since;

	ck_assert_int_eq(rxw_connection_set_timeouts(c, 0, 0, DEADLINE_MS), 0);
	since = now_us() + 1000 * DEADLINE_MS;
	call = held_call(c, NULL);
	expect_noticed("a hard timeout", (unsigned)_i, since, RXW_CALL_TIMEOUT);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_CALL_TIMEOUT);
	rxw_connection_release(c);
}
END_TEST

int main(void)
{
	const TTest *const each[] = {an_abort, an_end_with_a_code, an_abort_of_the_connection,
				     a_deadline, a_hard_timeout};
	Suite *suite = suite_create("cancel");
	TCase *tcase = tcase_create("cancel");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		tcase_add_loop_test(tcase, each[i], 0, WAYS);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
