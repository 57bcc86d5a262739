/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers that listeners serve since their service is quick: whatever such a handler does, other
 * calls go on, and all limits hold.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "tests/main.h"

#define SERVICE 120
#define LIMITED 121 /* one worker at most */
#define BULK	3000000u
#define LATER	4000u	/* bytes that follow in further packets */
#define LONG_US 150000u /* long enough to end the quickness of a service (LIMITS) */
#define THREADS 6u

/*
 * A handler counts as quick below 4 ms, so that the tests do not depend on the machine's speed. One
 * listener, so that calls have no way around it.
 */
#define LIMITS "inline-us=100000 listeners=1"

/* The first byte of a request; the reply begins with the kind of thread that ran the handler. */
enum op {
	PLAIN,
	WAIT,	 /* waits for the gate */
	OPEN,	 /* opens the gate */
	LOCK,	 /* takes the mutex */
	CALL,	 /* calls PLAIN of its own endpoint */
	LATE,	 /* reads LATER further bytes */
	LARGE,	 /* replies BULK further bytes */
	DEFER,	 /* leaves the call to the test */
	FORBIDS, /* calls functions that a handler must not call */
	SLEEP,	 /* sleeps for LONG_US */
	NAP	 /* sleeps for 2 ms */
};

static struct h_bed bed;
static rxw_service *service;
static struct {
	sem_t arrived, gate;		 /* of WAIT and LATE: they began; they may go on */
	_Atomic(char) place;		 /* of the one that arrived last */
	_Atomic(unsigned) running, most; /* handlers of both services */
	pthread_mutex_t lock;
	rxw_call *deferred;
} at;

/* 'L': a listener or deputy; 'W': a worker. */
static char place(void)
{
	char name[16] = "";

	pthread_getname_np(pthread_self(), name, sizeof(name));
	return strncmp(name, "rxw-work", 8) ? 'L' : 'W';
}

static void begin_run(void)
{
	unsigned n = atomic_fetch_add(&at.running, 1) + 1, most = atomic_load(&at.most);

	while (n > most && !atomic_compare_exchange_weak(&at.most, &most, n))
		;
}

static void wait_sem(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
}

static void arrive(void)
{
	atomic_store(&at.place, place());
	sem_post(&at.arrived);
}

static rxw_call *ask(rxw_connection *c, enum op op)
{
	uint8_t byte = (uint8_t)op;
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, &byte, 1), 1);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	return call;
}

/* The thread that ran the handler, or 0 if the call failed. */
static char end(rxw_call *call)
{
	char where = 0;

	if (rxw_call_read(call, &where, 1) != 1)
		where = 0;
	return rxw_call_end(call, 0, NULL) ? 0 : where;
}

static char make(rxw_connection *c, enum op op)
{
	return end(ask(c, op));
}

/* Calls the endpoint from itself. */
static bool call_back(void)
{
	rxw_connection *c;
	char where;

	if (rxw_connection_create(bed.server, (struct sockaddr *)&bed.address, bed.address_len,
				  SERVICE, bed.security, &c))
		return false;
	where = make(c, PLAIN);
	rxw_connection_release(c);
	return where != 0;
}

static bool forbids(void)
{
	return rxw_endpoint_stop(bed.server, 0) == -RXW_EDEADLK &&
	       rxw_endpoint_destroy(bed.server) == -RXW_EDEADLK &&
	       rxw_endpoint_hand_over(bed.server, 0) == -RXW_EDEADLK &&
	       rxw_service_remove(service, 0) == -RXW_EDEADLK &&
	       rxw_engine_destroy(bed.server_engine) == -RXW_EDEADLK;
}

static int32_t read_later(rxw_call *call)
{
	char later[LATER];

	arrive();
	return rxw_call_read(call, later, sizeof(later)) == sizeof(later) ? 0 : 1;
}

static int32_t write_large(rxw_call *call, char where)
{
	static const char zeros[65536];
	int32_t code = rxw_call_write(call, &where, 1) == 1 ? 0 : 2;

	arrive();
	for (size_t left = BULK; left && !code;) {
		size_t n = left < sizeof(zeros) ? left : sizeof(zeros);

		code = rxw_call_write(call, zeros, n) == (ssize_t)n ? 0 : 3;
		left -= n;
	}
	return code;
}

static int32_t defer(rxw_call *call)
{
	if (rxw_call_defer(call))
		return 4;
	at.deferred = call;
	arrive();
	return 0;
}

static int32_t run(rxw_call *call, char where)
{
	uint8_t op;
	int32_t code = 0;

	if (rxw_call_read(call, &op, 1) != 1)
		return 5;
	switch ((enum op)op) {
	case WAIT:
		arrive();
		wait_sem(&at.gate);
		break;
	case OPEN:
		sem_post(&at.gate);
		break;
	case LOCK:
		arrive();
		pthread_mutex_lock(&at.lock);
		pthread_mutex_unlock(&at.lock);
		break;
	case CALL:
		arrive();
		code = call_back() ? 0 : 6;
		break;
	case LATE:
		code = read_later(call);
		break;
	case LARGE:
		return write_large(call, where);
	case DEFER:
		return defer(call);
	case FORBIDS:
		arrive();
		code = forbids() ? 0 : 7;
		break;
	case SLEEP:
		usleep(LONG_US);
		break;
	case NAP:
		usleep(2000);
		break;
	default:
		break;
	}
	if (!code && rxw_call_write(call, &where, 1) != 1)
		code = 8;
	return code;
}

static int32_t handle(rxw_call *call, void *context)
{
	int32_t code;

	(void)context;
	begin_run();
	code = run(call, place());
	atomic_fetch_sub(&at.running, 1);
	return code;
}

/*
 * A new thread gets its name a moment after it has begun. So the threads of the workers that a test
 * needs are made in advance.
 */
static void make_workers(unsigned n)
{
	rxw_connection *c = h_connect(&bed, SERVICE);
	rxw_call *call[4];

	for (unsigned i = 0; i < n; i++)
		call[i] = ask(c, WAIT);
	for (unsigned i = 0; i < n; i++)
		wait_sem(&at.arrived);
	for (unsigned i = 0; i < n; i++)
		sem_post(&at.gate);
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_ne(end(call[i]), 0);
	rxw_connection_release(c);
}

static void open_bed(const char *tunables, unsigned workers)
{
	struct rxw_service_options o = {.size = sizeof(o), .handler = handle};

	h_open(&bed, &(struct h_options){.both = LIMITS, .server = tunables});
	memset(&at, 0, sizeof(at));
	sem_init(&at.arrived, 0, 0);
	sem_init(&at.gate, 0, 0);
	pthread_mutex_init(&at.lock, NULL);
	o.id = LIMITED;
	o.workers_max = 1;
	h_offer(&bed, o);
	o.id = SERVICE;
	o.workers_max = 0;
	o.security = bed.offered;
	o.security_count = 4;
	ck_assert_int_eq(rxw_service_add(bed.server, &o, &service), 0);
	make_workers(workers);
	atomic_store(&at.most, 0);
}

static bool listener_serves(void *c)
{
	return make(c, PLAIN) == 'L';
}

/* Until the service is quick, and its listener has a deputy. */
static void warm(rxw_connection *c)
{
	h_wait_for(listener_serves, c, "a listener serves a quick service");
}

/* Begins a call whose handler runs on the listener and has arrived. The other ones run to their end. */
static rxw_call *occupy(rxw_connection *c, enum op op)
{
	static const char later[LATER];

	for (;;) {
		rxw_call *call;

		warm(c);
		call = ask(c, op);
		wait_sem(&at.arrived);
		if (atomic_load(&at.place) == 'L')
			return call;
		if (op == WAIT)
			sem_post(&at.gate);
		if (op == LATE)
			ck_assert_int_eq(rxw_call_write(call, later, LATER), LATER);
		ck_assert_int_ne(end(call), 0);
	}
}

/* The connection of the calls that must go on. */
static rxw_connection *open_with(const char *tunables, unsigned workers, rxw_connection **other)
{
	open_bed(tunables, workers);
	*other = h_connect(&bed, SERVICE);
	return h_connect(&bed, SERVICE);
}

static void close_with(rxw_connection *c, rxw_connection *other)
{
	rxw_connection_release(c);
	rxw_connection_release(other);
	h_close(&bed);
}

START_TEST(a_handler_that_waits_for_another_one)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);

	for (int i = 0; i < 20; i++) {
		rxw_call *call = occupy(c, WAIT);

		ck_assert_int_eq(make(other, PLAIN), 'W'); /* the listener has no deputy now */
		ck_assert_int_eq(make(other, OPEN), 'W');
		ck_assert_int_eq(end(call), 'L');
	}
	close_with(c, other);
}
END_TEST

/* Of four workers, one is reserved for other clients. */
START_TEST(several_handlers_that_wait)
{
	rxw_connection *other, *c = open_with("workers-max=4", 3, &other);
	rxw_call *call = occupy(c, WAIT), *second = ask(other, WAIT);

	wait_sem(&at.arrived);
	ck_assert_int_eq(atomic_load(&at.place), 'W');
	ck_assert_int_eq(make(other, OPEN), 'W');
	ck_assert_int_ne(make(other, OPEN), 0); /* the first one may have freed the listener */
	ck_assert_int_eq(end(call), 'L');
	ck_assert_int_eq(end(second), 'W');
	close_with(c, other);
}
END_TEST

START_TEST(a_handler_that_waits_for_a_mutex)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);
	rxw_call *call;

	for (;;) {
		warm(c);
		pthread_mutex_lock(&at.lock);
		call = ask(c, LOCK);
		wait_sem(&at.arrived);
		ck_assert_int_ne(make(other, PLAIN), 0);
		pthread_mutex_unlock(&at.lock);
		if (end(call) == 'L')
			break;
	}
	close_with(c, other);
}
END_TEST

START_TEST(a_handler_that_calls_its_own_endpoint)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);

	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(end(occupy(c, CALL)), 'L');
	close_with(c, other);
}
END_TEST

START_TEST(a_request_whose_rest_comes_later)
{
	static const char later[LATER];
	rxw_connection *other, *c = open_with(NULL, 4, &other);

	for (int i = 0; i < 20; i++) {
		rxw_call *call = occupy(c, LATE);

		ck_assert_int_ne(make(other, PLAIN), 0);
		ck_assert_int_eq(rxw_call_write(call, later, LATER), LATER);
		ck_assert_int_eq(end(call), 'L');
	}
	close_with(c, other);
}
END_TEST

/* The client reads the reply only after another call. */
START_TEST(a_reply_larger_than_the_window)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);

	for (int i = 0; i < 4; i++) {
		rxw_call *call = occupy(c, LARGE);
		char buf[65536], where;
		size_t got = 0;
		ssize_t n;

		ck_assert_int_ne(make(other, PLAIN), 0);
		ck_assert_int_eq(rxw_call_read(call, &where, 1), 1);
		ck_assert_int_eq(where, 'L');
		while ((n = rxw_call_read(call, buf, sizeof(buf))) > 0)
			got += (size_t)n;
		ck_assert_uint_eq(got, BULK);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	close_with(c, other);
}
END_TEST

static void answer_deferred(void)
{
	char d = 'D';

	ck_assert_int_eq(rxw_call_write(at.deferred, &d, 1), 1);
	ck_assert_int_eq(rxw_call_end(at.deferred, 0, NULL), 0);
}

START_TEST(a_handler_that_defers_its_call)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);
	unsigned on_listener = 0;

	while (on_listener < 20) {
		rxw_call *call;

		warm(c);
		call = ask(c, DEFER);
		wait_sem(&at.arrived);
		on_listener += atomic_load(&at.place) == 'L';
		ck_assert_int_ne(make(other, PLAIN), 0);
		answer_deferred();
		ck_assert_int_eq(end(call), 'D');
	}
	close_with(c, other);
}
END_TEST

START_TEST(what_a_handler_must_not_call)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);

	ck_assert_int_eq(end(occupy(c, FORBIDS)), 'L');
	ck_assert_int_ne(make(other, PLAIN), 0);
	close_with(c, other);
}
END_TEST

static bool call_waits(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "calls_waiting") == 1;
}

/* A handler on the listener is one of `workers-max`, or of the service's `workers_max`. */
START_TEST(limits_of_workers)
{
	rxw_connection *other, *c;
	rxw_call *call, *second;

	open_bed(_i ? NULL : "workers-max=1", _i ? 4 : 1);
	c = h_connect(&bed, _i ? LIMITED : SERVICE);
	other = h_connect(&bed, _i ? LIMITED : SERVICE);
	for (int i = 0; i < 10; i++) {
		call = occupy(c, WAIT);
		second = ask(other, PLAIN);
		h_wait_for(call_waits, NULL, "a call waits for the only worker");
		ck_assert_uint_eq(atomic_load(&at.running), 1);
		sem_post(&at.gate);
		ck_assert_int_eq(end(call), 'L');
		ck_assert_int_ne(end(second), 0);
	}
	ck_assert_uint_eq(atomic_load(&at.most), 1);
	close_with(c, other);
}
END_TEST

static bool busy_was_sent(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "packets.sent.busy") > 0;
}

/* With the only worker's place taken by the listener, one call waits; the others get BUSY. */
START_TEST(limit_of_waiting_calls)
{
	rxw_connection *other, *c = open_with("workers-max=1 queue=1", 1, &other);
	rxw_call *call = occupy(c, WAIT), *more[4];

	for (int i = 0; i < 4; i++)
		more[i] = ask(other, PLAIN);
	h_wait_for(busy_was_sent, NULL, "a full queue draws BUSY");
	ck_assert_uint_eq(atomic_load(&at.running), 1);
	sem_post(&at.gate);
	ck_assert_int_eq(end(call), 'L');
	for (int i = 0; i < 4; i++)
		ck_assert_int_ne(end(more[i]), 0);
	ck_assert_uint_eq(atomic_load(&at.most), 1);
	close_with(c, other);
}
END_TEST

/* A single long run time is enough, whatever the others were. */
START_TEST(a_service_that_becomes_slow)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);

	warm(c);
	ck_assert_int_ne(make(c, SLEEP), 0);
	ck_assert_int_eq(make(c, PLAIN), 'W');
	warm(c);
	close_with(c, other);
}
END_TEST

/* Handlers have 250 ms to return. Destruction waits for them. */
START_TEST(stop_while_a_listener_serves)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other);
	rxw_call *call = occupy(c, WAIT);
	uint64_t began = h_now_ms();

	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 0), -RXW_ETIMEDOUT);
	ck_assert_uint_ge(h_now_ms() - began, 250);
	ck_assert_uint_ge(h_warnings(&bed), 1);
	sem_post(&at.gate);
	rxw_call_end(call, 0, NULL);
	close_with(c, other);
}
END_TEST

static void *open_gate_later(void *began)
{
	wait_sem(began);
	usleep(20000);
	sem_post(&at.gate);
	return NULL;
}

/* Runs fn() in this thread; meanwhile the handler that runs on the listener returns. */
static void end_meanwhile(void (*fn)(void))
{
	sem_t began;
	pthread_t t;

	sem_init(&began, 0, 0);
	ck_assert_int_eq(pthread_create(&t, NULL, open_gate_later, &began), 0);
	sem_post(&began);
	fn();
	pthread_join(t, NULL);
	sem_destroy(&began);
}

static void stop(void)
{
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 20000), 0);
}

static void hand_over(void)
{
	ck_assert_int_eq(rxw_endpoint_hand_over(bed.server, 20000), 0);
}

static void take_out(void)
{
	ck_assert_int_eq(rxw_service_remove(service, 20000), 0);
}

static void *read_reply(void *call)
{
	ck_assert_int_eq(end(call), 'L');
	return NULL;
}

/* Each of them waits for the handler, whose reply arrives. */
START_TEST(ends_that_wait_for_a_listener)
{
	static void (*const fn[])(void) = {stop, hand_over, take_out};
	rxw_connection *other, *c = open_with(NULL, 4, &other);
	rxw_call *call = occupy(c, WAIT);
	pthread_t reader;

	pthread_create(&reader, NULL, read_reply, call);
	end_meanwhile(fn[_i]);
	pthread_join(reader, NULL);
	close_with(c, other);
}
END_TEST

START_TEST(remove_while_a_listener_serves)
{
	rxw_connection *other, *c = open_with(NULL, 4, &other), *second = h_connect(&bed, LIMITED);
	rxw_call *call = occupy(c, WAIT);

	ck_assert_int_eq(rxw_service_remove(service, 0), -RXW_ETIMEDOUT);
	ck_assert_int_ne(make(second, PLAIN), 0);
	sem_post(&at.gate);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_INVALID_OPERATION);
	ck_assert_int_ne(make(second, PLAIN), 0);
	rxw_connection_release(second);
	close_with(c, other);
}
END_TEST

/* Some of everything, from several threads. */
static void *mix(void *arg)
{
	static const char later[LATER];
	unsigned seed = (unsigned)(uintptr_t)arg, calls = h_small() ? 300 : 3000;
	rxw_connection *c = h_connect(&bed, seed % 3 ? SERVICE : LIMITED);

	for (unsigned i = 0; i < calls; i++) {
		static const enum op ops[] = {NAP, CALL, LATE, LARGE, PLAIN, PLAIN, PLAIN, PLAIN};
		enum op op = i % 16 == seed ? ops[rand_r(&seed) % 8] : PLAIN;
		rxw_call *call;
		char where, buf[65536];

		call = ask(c, op);
		if (op == LATE)
			ck_assert_int_eq(rxw_call_write(call, later, LATER), LATER);
		ck_assert_int_eq(rxw_call_read(call, &where, 1), 1);
		while (op == LARGE && rxw_call_read(call, buf, sizeof(buf)) > 0)
			;
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	rxw_connection_release(c);
	return NULL;
}

START_TEST(everything_at_once)
{
	pthread_t t[THREADS];

	open_bed(_i ? "workers-max=3 listeners=4" : NULL, 3);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, mix, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_le(atomic_load(&at.most), _i ? 3 : 64);
	h_close(&bed);
}
END_TEST

int main(void)
{
	const TTest *const each[] = {a_handler_that_waits_for_another_one,
				     several_handlers_that_wait,
				     a_handler_that_waits_for_a_mutex,
				     a_handler_that_calls_its_own_endpoint,
				     a_request_whose_rest_comes_later,
				     a_reply_larger_than_the_window,
				     a_handler_that_defers_its_call,
				     what_a_handler_must_not_call,
				     limit_of_waiting_calls,
				     a_service_that_becomes_slow,
				     stop_while_a_listener_serves,
				     remove_while_a_listener_serves};
	Suite *suite = suite_create("quick");
	TCase *tcase = tcase_create("quick");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		tcase_add_test(tcase, each[i]);
	tcase_add_loop_test(tcase, limits_of_workers, 0, 2);
	tcase_add_loop_test(tcase, ends_that_wait_for_a_listener, 0, 3);
	tcase_add_loop_test(tcase, everything_at_once, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
