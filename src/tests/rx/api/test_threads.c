/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads of the library and of the application may do: signals, pthread_cancel(),
 * pthread_exit().
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

#define ON_WORKER 150 /* services whose handler calls `act` */
#define IN_SHORT  151
#define QUEUED	  152 /* nothing is taken out of its queue */

static struct h_bed bed;
static rxw_queue *servers;
static void (*act)(void);

static rxw_code handle(rxw_call *call, void *unused)
{
	(void)call;
	(void)unused;
	act();
	return 0;
}

static void set_up(void)
{
	struct rxw_service_options options = {
		.size = sizeof(options), .id = ON_WORKER, .handler = handle};

	h_open(&bed, NULL);
	h_offer(&bed, options);
	options.id = IN_SHORT;
	options.flags = RXW_SERVICE_INLINE;
	h_offer(&bed, options);
	ck_assert_int_eq(rxw_queue_create(bed.server_engine, NULL, &servers), 0);
	options = (struct rxw_service_options){
		.size = sizeof(options), .id = QUEUED, .queue = servers};
	h_offer(&bed, options);
}

static void tear_down(void)
{
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	bed.client = bed.server = NULL;
	ck_assert_int_eq(rxw_queue_destroy(servers), 0);
	h_close(&bed);
}

static rxw_code call_service(uint16_t service)
{
	rxw_connection *c = h_connect(&bed, service);
	rxw_call *call;
	rxw_code code;

	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	code = rxw_call_end(call, 0, NULL);
	rxw_connection_release(c);
	return code;
}

/* ---- signals ---- */

/* Those that a thread causes itself, and that of profilers. */
static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF};
#define OWN (sizeof(own) / sizeof(own[0]))

static _Atomic(unsigned) caught;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&caught, 1);
}

static void cause_signals(void)
{
	sigset_t blocked;

	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
	for (size_t i = 0; i < OWN; i++) {
		ck_assert_int_eq(sigismember(&blocked, own[i]), 0);
		ck_assert_int_eq(raise(own[i]), 0);
	}
	ck_assert_int_eq(sigismember(&blocked, SIGINT), 1);
	ck_assert_int_eq(sigismember(&blocked, SIGTERM), 1);
	ck_assert_int_eq(sigismember(&blocked, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&blocked, SIGALRM), 1);
}

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	if (!(events & RXW_EVENT_DONE))
		return;
	cause_signals();
	rxw_call_end(call, 0, NULL);
	atomic_store((_Atomic(bool) *)arg, true);
}

static bool is_set(void *flag)
{
	return atomic_load((_Atomic(bool) *)flag);
}

START_TEST(handlers_get_signals_that_they_cause)
{
	static _Atomic(bool) done;
	struct sigaction action = {.sa_handler = on_signal};
	rxw_connection *c = h_connect(&bed, ON_WORKER);
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .callback = on_event,
					   .arg = &done};
	rxw_call *call;

	for (size_t i = 0; i < OWN; i++)
		ck_assert_int_eq(sigaction(own[i], &action, NULL), 0);
	act = cause_signals;
	ck_assert_int_eq(call_service(ON_WORKER), 0);
	ck_assert_int_eq(call_service(IN_SHORT), 0);
	ck_assert_uint_eq(atomic_load(&caught), 2 * OWN);
	ck_assert_int_eq(rxw_call_begin(c, &options, &call), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_wait_for(is_set, &done, "the callback");
	ck_assert_uint_eq(atomic_load(&caught), 4 * OWN);
	rxw_connection_release(c);
}
END_TEST

/* ---- a thread that is cancelled while it waits ---- */

struct waiter {
	rxw_connection *c;
	rxw_call *call, *other;
	rxw_queue *queue;
	struct rxw_rpc_multi *multi;
	_Atomic(bool) waits, returned;
	ssize_t result;
};

/*
 * The thread returned from the function although it is to be cancelled. It is not: sanitizers do not
 * support the unwinding. An assertion of the thread would be a cancellation point.
 */
static void tell(struct waiter *w, ssize_t result)
{
	w->result = result;
	atomic_store(&w->returned, true);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

static void *wait_for_reply(void *arg)
{
	struct waiter *w = arg;
	char byte;

	atomic_store(&w->waits, true);
	tell(w, rxw_call_read(w->call, &byte, 1));
	return NULL;
}

static void *wait_for_channel(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->waits, true);
	tell(w, rxw_call_begin(w->c, NULL, &w->call));
	return NULL;
}

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;
	struct rxw_queue_event event;

	atomic_store(&w->waits, true);
	tell(w, rxw_queue_next(w->queue, &event, 1, 30000));
	return NULL;
}

static void *wait_for_member(void *arg)
{
	struct waiter *w = arg;
	unsigned index;
	int32_t code;

	atomic_store(&w->waits, true);
	tell(w, rxw_rpc_multi_next(w->multi, &index, &w->call, &code));
	return NULL;
}

/* Kerberos opens files, with locks held. */
static void *create_token(void *arg)
{
	struct rxw_token_options options = {.size = sizeof(options),
					    .index = RXW_RXKAD_INDEX,
					    .cell = "example.org",
					    .cache = "FILE:/nonexistent"};
	struct waiter *w = arg;
	rxw_token *token;
	int result;

	pthread_cancel(pthread_self());
	result = rxw_token_create(&options, &token, NULL, 0);
	atomic_store(&w->waits, true);
	tell(w, result < 0);
	return NULL;
}

/* Cancels a thread that runs fn(); `release` ends its wait. */
static void cancel(struct waiter *w, void *(*fn)(void *), void (*release)(struct waiter *w),
		   ssize_t expected)
{
	void *result;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, fn, w), 0);
	h_wait_for(is_set, &w->waits, "the thread");
	usleep(20000); /* nearly always it waits then; the test passes if it does not, too */
	ck_assert_int_eq(pthread_cancel(t), 0);
	usleep(20000);
	release(w);
	ck_assert_int_eq(pthread_join(t, &result), 0);
	ck_assert_ptr_null(result);
	ck_assert(atomic_load(&w->returned));
	ck_assert_int_eq(w->result, expected);
}

static void open_gate(struct waiter *w)
{
	(void)w;
	h_gate_open(&bed);
}

static void free_channel(struct waiter *w)
{
	ck_assert_int_eq(rxw_call_end(w->other, 7, NULL), 7);
}

static void post(struct waiter *w)
{
	ck_assert_int_eq(rxw_queue_post(w->queue, NULL), 0);
}

static void abort_calls(struct waiter *w)
{
	ck_assert_int_eq(rxw_connection_abort(w->c, 7), 0);
}

static void do_nothing(struct waiter *w)
{
	(void)w;
}

START_TEST(cancelled_in_a_read)
{
	struct waiter w = {.c = h_connect(&bed, H_SERVICE)};

	w.call = h_begin(w.c, &(struct h_ask){.op = H_WAIT});
	cancel(&w, wait_for_reply, open_gate, 0);
	ck_assert_int_eq(rxw_call_end(w.call, 0, NULL), 0);
	h_good_call(&bed, w.c, &(struct h_ask){.op = H_SOURCE, .bytes = 100});
	rxw_connection_release(w.c);
}
END_TEST

START_TEST(cancelled_without_a_channel)
{
	struct waiter w = {.c = h_connect(&bed, H_SERVICE)};
	rxw_call *call[4];

	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_begin(w.c, NULL, &call[i]), 0);
	w.other = call[0];
	cancel(&w, wait_for_channel, free_channel, 0);
	ck_assert_int_eq(rxw_call_end(w.call, 7, NULL), 7);
	for (unsigned i = 1; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 7, NULL), 7);
	h_good_call(&bed, w.c, &(struct h_ask){.op = H_SOURCE, .bytes = 100});
	rxw_connection_release(w.c);
}
END_TEST

START_TEST(cancelled_at_a_queue)
{
	struct waiter w = {.c = h_connect(&bed, H_SERVICE)};

	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &w.queue), 0);
	cancel(&w, wait_for_event, post, 1);
	ck_assert_int_eq(rxw_queue_destroy(w.queue), 0);
	rxw_connection_release(w.c);
}
END_TEST

START_TEST(cancelled_in_a_multi_call)
{
	struct waiter w = {.c = h_connect(&bed, QUEUED)};
	rxw_call *call;
	unsigned index;
	int32_t code;

	w.multi = rxw_rpc_multi_create(&w.c, 1, NULL);
	ck_assert_ptr_nonnull(w.multi);
	ck_assert_int_eq(rxw_rpc_multi_next(w.multi, &index, &call, &code), RXW_RPC_START);
	rxw_rpc_multi_started(w.multi, index, 0);
	cancel(&w, wait_for_member, abort_calls, RXW_RPC_REPLY);
	ck_assert_int_eq(rxw_rpc_multi_ended(w.multi, index, 0, NULL, 0), 7);
	rxw_rpc_multi_destroy(w.multi);
	rxw_connection_release(w.c);
}
END_TEST

START_TEST(cancelled_in_kerberos)
{
	struct waiter w = {.c = NULL};

	cancel(&w, create_token, do_nothing, 1);
}
END_TEST

/* ---- handlers that do not return ---- */

static void leave(void)
{
	pthread_exit(NULL);
}

/* The call fails, the log says why, and the endpoint does not wait for the worker. */
START_TEST(a_handler_that_exits)
{
	rxw_connection *c = h_connect(&bed, ON_WORKER);
	rxw_call *call;

	act = leave;
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), -6);
	}
	rxw_connection_release(c);
	ck_assert_uint_eq(h_warnings(&bed), 20);
}
END_TEST

static _Atomic(bool) first_left;

static void leave_with_a_queue(void)
{
	if (atomic_exchange(&first_left, true))
		return;
	while (counter_of(bed.server, "calls_waiting") < 1)
		usleep(1000);
	pthread_exit(NULL);
}

/* The only worker ends while a call waits for it: another one serves that. */
START_TEST(a_call_waits_for_a_handler_that_exits)
{
	rxw_connection *c = h_connect(&bed, ON_WORKER);
	rxw_call *first, *second;

	ck_assert_int_eq(rxw_endpoint_set(bed.server, "workers-max", "1"), 0);
	act = leave_with_a_queue;
	ck_assert_int_eq(rxw_call_begin(c, NULL, &first), 0);
	ck_assert_int_eq(rxw_call_send_end(first), 0);
	while (!atomic_load(&first_left))
		usleep(1000);
	ck_assert_int_eq(rxw_call_begin(c, NULL, &second), 0);
	ck_assert_int_eq(rxw_call_send_end(second), 0);
	ck_assert_int_eq(rxw_call_end(first, 0, NULL), -6);
	ck_assert_int_eq(rxw_call_end(second, 0, NULL), 0);
	rxw_connection_release(c);
	ck_assert_uint_eq(h_warnings(&bed), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tcase = tcase_create("threads");
	SRunner *runner;
	int left;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, handlers_get_signals_that_they_cause);
	tcase_add_test(tcase, cancelled_in_a_read);
	tcase_add_test(tcase, cancelled_without_a_channel);
	tcase_add_test(tcase, cancelled_at_a_queue);
	tcase_add_test(tcase, cancelled_in_a_multi_call);
	tcase_add_test(tcase, cancelled_in_kerberos);
	tcase_add_test(tcase, a_handler_that_exits);
	tcase_add_test(tcase, a_call_waits_for_a_handler_that_exits);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	left = srunner_ntests_failed(runner);
	srunner_free(runner);
	return left ? EXIT_FAILURE : EXIT_SUCCESS;
}
