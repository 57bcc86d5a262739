/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocking functions: refused on threads of the library, bounded by deadlines, ended by aborts and
 * by stopping the endpoint.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rpc.h>
#include <rxwire/stub.h>

#include "harness.h"
#include "tests/main.h"
#include "tests/support/internals.h"

#define IN_SHORT 200 /* an inline handler executes its argument */
#define STUCK	 201 /* a handler that waits for something outside the library */

static struct h_bed bed;
static sem_t done, stuck, released;

/* ---- on threads of the library ---- */

/* All channels of one connection are busy, and the written data is not read. */
static rxw_connection *full;
static rxw_call *calls[4];

static void fill_connection(void)
{
	full = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 4; i++) {
		calls[i] = h_begin(full, &(struct h_ask){ .op = H_WAIT });
		ck_assert_int_eq(rxw_call_flush(calls[i]), 0);
	}
	h_gate_arrived(&bed, 4);
}

/* Calls [first, end) have not been ended yet. */
static void empty_connection(int first, int end)
{
	h_gate_open(&bed);
	for (int i = first; i < end; i++)
		rxw_call_end(calls[i], RXW_USER_ABORT, NULL);
	rxw_connection_release(full);
}

/* Queued or reserved data needs no room: these functions never wait, and are never refused. */
static void ends_without_room(rxw_call *call)
{
	ck_assert_int_eq(rxw_call_commit(call, 0), 0);
	ck_assert_int_eq(rxw_call_commit(call, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	ck_assert_int_eq(rxw_call_error(call, NULL), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	ck_assert_int_eq(rxw_call_write(call, "", 1), -RXW_ESTATE);
}

static void writers(void)
{
	static uint8_t data[20000];
	struct iovec iov[4];
	unsigned count;
	ssize_t n;

	do
		n = rxw_call_write(calls[0], data, sizeof(data));
	while (n > 0);
	ck_assert_int_eq(n, -RXW_EDEADLK);
	do {
		count = 4;
		n = rxw_call_reserve(calls[1], sizeof(data), iov, &count);
		if (n > 0)
			ck_assert_int_eq(rxw_call_commit(calls[1], (size_t)n), 0);
	} while (n > 0);
	ck_assert_int_eq(n, -RXW_EDEADLK);
	ends_without_room(calls[1]);
	do
		n = rxw_call_sendfile(calls[2], bed.file, 0, sizeof(data));
	while (n > 0);
	ck_assert_int_eq(n, -RXW_EDEADLK);
}

static void readers(void)
{
	struct iovec iov[4];
	unsigned count = 4;
	uint8_t byte;

	ck_assert_int_eq(rxw_call_read(calls[3], &byte, 1), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_call_read_some(calls[3], &byte, 1), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_call_readv(calls[3], 1, iov, &count), -RXW_EDEADLK);
	/* It ends in any case: results of waiting are discarded. */
	ck_assert_int_eq(rxw_call_end(calls[3], 0, NULL), RXW_USER_ABORT);
}

static void try_begin(void)
{
	struct rxw_call_options options = { .size = sizeof(options), .deadline_ms = 100000 };
	int32_t code, deadlock = rxw_code_from_errno(EDEADLK);
	struct rxw_rpc_multi *multi;
	unsigned index = 7;
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(full, NULL, &call), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_call_begin(full, &options, &call), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_rpc_begin(full, NULL, &call), deadlock);
	ck_assert_int_eq(rxw_rpc_begin(full, &options, &call), deadlock);
	multi = rxw_rpc_multi_create(&full, 1, NULL);
	ck_assert_int_eq(rxw_rpc_multi_next(multi, &index, &call, &code), RXW_RPC_FAILED);
	ck_assert_int_eq(code, deadlock);
	ck_assert_uint_eq(index, 0);
	ck_assert_int_eq(rxw_rpc_multi_next(multi, &index, &call, &code), RXW_RPC_DONE);
	rxw_rpc_multi_destroy(multi);
}

static void try_all(void)
{
	try_begin();
	writers();
	readers();
	ck_assert_int_eq(rxw_endpoint_stop(bed.client, 1), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 1), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_engine_destroy(bed.client_engine), -RXW_EDEADLK);
}

static void on_done(rxw_call *call, unsigned events, void *arg)
{
	(void)arg;
	if (!(events & RXW_EVENT_DONE))
		return;
	try_all();
	rxw_call_end(call, RXW_USER_ABORT, NULL);
	sem_post(&done);
}

static void ping_with(rxw_connection *connection, rxw_call_fn callback)
{
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK,
					    .callback = callback };
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_send_end(call), 0);
}

START_TEST(blocking_refused_in_callback)
{
	rxw_connection *other;

	sem_init(&done, 0, 0);
	h_open(&bed, NULL);
	fill_connection();
	other = h_connect(&bed, H_SERVICE);
	ping_with(other, on_done);
	sem_wait(&done);
	rxw_connection_release(other);
	empty_connection(0, 3);
	h_close(&bed);
}
END_TEST

static void on_done_open(rxw_call *call, unsigned events, void *arg)
{
	if (!(events & RXW_EVENT_DONE))
		return;
	on_done(call, events, arg);
	h_gate_open(&bed);
}

/* An application thread that waits for its own reply may run the callback. */
START_TEST(blocking_refused_in_callback_on_caller)
{
	rxw_connection *waiting, *other;
	rxw_call *call;
	uint8_t byte;

	sem_init(&done, 0, 0);
	h_open(&bed, NULL);
	fill_connection();
	waiting = h_connect(&bed, H_SERVICE);
	other = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, waiting, &(struct h_ask){ .op = H_PING });
	call = h_begin(waiting, &(struct h_ask){ .op = H_WAIT });
	ping_with(other, on_done_open);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	sem_wait(&done);
	rxw_connection_release(waiting);
	rxw_connection_release(other);
	empty_connection(0, 3);
	h_close(&bed);
}
END_TEST

static int32_t run_in_handler(rxw_call *call, void *context)
{
	void (*what)(void) = (void (*)(void))context;

	(void)call;
	what();
	return 0;
}

/* Runs it in an inline handler; a separate client makes the call. */
static void in_short_handler(void (*what)(void))
{
	rxw_endpoint *endpoint = h_client(&bed, "");
	rxw_connection *connection;
	rxw_call *call;
	uint8_t byte;

	h_offer(&bed, (struct rxw_service_options){.size = sizeof(struct rxw_service_options),
						   .id = IN_SHORT,
						   .name = "short-does",
						   .handler = run_in_handler,
						   .context = (void *)what,
						   .flags = RXW_SERVICE_INLINE});
	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&bed.address,
					       bed.address_len, IN_SHORT, bed.security,
					       &connection), 0);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
}

START_TEST(blocking_refused_in_inline_handler)
{
	h_open(&bed, NULL);
	fill_connection();
	in_short_handler(try_all);
	empty_connection(0, 3);
	h_close(&bed);
}
END_TEST

#define LARGE (4u << 20) /* more than the send queue accepts from functions that may wait */

static struct {
	int committed, flushed, ended;
	size_t bytes;
} reply;

/* No thread receives ACKs meanwhile, so the send queue grows beyond its limit. */
static int32_t fill_reply(rxw_call *call, void *context)
{
	ssize_t n;

	(void)context;
	while (reply.bytes < LARGE && !reply.committed) {
		struct iovec iov[4];
		unsigned count = 4;

		n = rxw_call_reserve(call, 20000, iov, &count);
		for (unsigned i = 0; n > 0 && i < count; i++)
			memset(iov[i].iov_base, 7, iov[i].iov_len);
		reply.committed = n > 0 ? rxw_call_commit(call, (size_t)n) : (int)n;
		reply.bytes += n > 0 ? (size_t)n : 0;
	}
	reply.flushed = rxw_call_flush(call);
	reply.ended = rxw_call_send_end(call);
	sem_post(&done);
	return 0;
}

/* An inline handler's reply that exceeds the send queue is not refused, and arrives. */
START_TEST(inline_reply_exceeds_send_queue)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = IN_SHORT,
					.name = "fills",
					.handler = fill_reply,
					.flags = RXW_SERVICE_INLINE};
	static uint8_t data[65536];
	rxw_connection *connection;
	size_t bytes = 0;
	rxw_call *call;
	ssize_t n;

	sem_init(&done, 0, 0);
	memset(&reply, 0, sizeof(reply));
	h_open(&bed, NULL);
	h_offer(&bed, o);
	connection = h_connect(&bed, IN_SHORT);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	sem_wait(&done);
	while ((n = rxw_call_read_some(call, data, sizeof(data))) > 0)
		bytes += (size_t)n;
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_int_eq(reply.committed, 0);
	ck_assert_int_eq(reply.flushed, 0);
	ck_assert_int_eq(reply.ended, -RXW_ESTATE); /* returning from the handler does that */
	ck_assert_uint_ge(bytes, LARGE);
	ck_assert_uint_eq(bytes, reply.bytes);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

static rxw_call *watched;

static void hold_callback(rxw_call *call, unsigned events, void *arg)
{
	(void)arg;
	(void)events;
	watched = call;
	rxw_call_set_callback(call, NULL, NULL);
	sem_post(&stuck);
	sem_wait(&released);
	sem_post(&done);
}

static void change_callback(void)
{
	ck_assert_int_eq(rxw_call_set_callback(watched, hold_callback, NULL), -RXW_EDEADLK);
}

/* A callback that runs on another thread is not waited for. */
START_TEST(set_callback_does_not_wait)
{
	rxw_connection *connection;

	sem_init(&done, 0, 0);
	sem_init(&stuck, 0, 0);
	sem_init(&released, 0, 0);
	h_open(&bed, NULL);
	connection = h_connect(&bed, H_SERVICE);
	ping_with(connection, hold_callback);
	sem_wait(&stuck);
	in_short_handler(change_callback);
	sem_post(&released);
	sem_wait(&done);
	rxw_call_end(watched, 0, NULL);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* ---- the wait for a channel ---- */

static unsigned waiters(void)
{
	return internals_channel_waiters(full);
}

static bool two_wait(void *arg)
{
	(void)arg;
	return waiters() == 2;
}

static bool some_wait(void *arg)
{
	(void)arg;
	return waiters() >= 4;
}

START_TEST(deadline_covers_wait_for_channel)
{
	struct rxw_call_options options = { .size = sizeof(options), .deadline_ms = 50 };
	rxw_call *call;

	h_open(&bed, NULL);
	fill_connection();
	ck_assert_int_eq(rxw_call_begin(full, &options, &call), -RXW_ETIMEDOUT);
	ck_assert_ptr_null(call);
	ck_assert_int_eq(rxw_rpc_begin(full, &options, &call), RXW_CALL_TIMEOUT);
	ck_assert_int_eq(rxw_connection_set_timeouts(full, 0, 0, 50), 0);
	ck_assert_int_eq(rxw_call_begin(full, NULL, &call), -RXW_ETIMEDOUT);
	ck_assert_int_eq(rxw_rpc_begin(full, NULL, &call), RXW_CALL_TIMEOUT);
	options.deadline_ms = 100000;
	ck_assert_int_eq(rxw_call_begin(full, &options, &call), -RXW_ETIMEDOUT);
	empty_connection(0, 4);
	h_close(&bed);
}
END_TEST

static void *free_one(void *arg)
{
	(void)arg;
	while (!waiters())
		usleep(1000);
	usleep(20000);
	rxw_call_end(calls[0], RXW_USER_ABORT, NULL);
	return NULL;
}

/* The time spent waiting is not available to the call. */
START_TEST(deadlines_count_from_the_beginning)
{
	struct rxw_call_options options = { .size = sizeof(options), .deadline_ms = 100000 };
	pthread_t thread;
	rxw_call *call;

	h_open(&bed, NULL);
	fill_connection();
	pthread_create(&thread, NULL, free_one, NULL);
	ck_assert_int_eq(rxw_call_begin(full, &options, &call), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_le(internals_hard_limit(call), 99980000000);
	ck_assert_uint_gt(internals_hard_limit(call), 0);
	rxw_call_end(call, RXW_USER_ABORT, NULL);
	empty_connection(1, 4);
	h_close(&bed);
}
END_TEST

static void *begin_one(void *arg)
{
	rxw_call *call;

	*(int *)arg = rxw_call_begin(full, NULL, &call);
	return NULL;
}

static void *begin_stub(void *arg)
{
	rxw_call *call;

	*(int *)arg = rxw_rpc_begin(full, NULL, &call);
	return NULL;
}

static void start_waiters(pthread_t threads[2], int results[2])
{
	pthread_create(&threads[0], NULL, begin_one, &results[0]);
	pthread_create(&threads[1], NULL, begin_stub, &results[1]);
	h_wait_for(two_wait, NULL, "two callers wait for a channel");
}

#define CROWD 12

static atomic_uint served, gave_up;

/* Half of the callers are impatient. */
static void *call_often(void *arg)
{
	struct rxw_call_options options = { .size = sizeof(options),
					    .deadline_ms = arg ? 0 : 1 };

	for (unsigned i = 0; i < 100; i++) {
		rxw_call *call;
		int rc = rxw_call_begin(full, &options, &call);

		ck_assert_msg(!rc || (!arg && rc == -RXW_ETIMEDOUT), "%s", rxw_strerror(rc));
		atomic_fetch_add(rc ? &gave_up : &served, 1);
		if (!rc)
			rxw_call_end(call, RXW_USER_ABORT, NULL);
	}
	return NULL;
}

/* One caller at a time is woken for a channel. None is forgotten, also if others give up. */
START_TEST(crowd_waits_for_channels)
{
	pthread_t thread[CROWD];

	h_open(&bed, NULL);
	fill_connection();
	for (unsigned i = 0; i < CROWD; i++)
		pthread_create(&thread[i], NULL, call_often, i % 2 ? &bed : NULL);
	h_wait_for(some_wait, NULL, "callers wait for a channel");
	h_gate_open(&bed);
	for (int i = 0; i < 4; i++)
		rxw_call_end(calls[i], RXW_USER_ABORT, NULL);
	for (unsigned i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(atomic_load(&served) + atomic_load(&gave_up), CROWD * 100);
	ck_assert_uint_ge(atomic_load(&served), CROWD / 2 * 100);
	ck_assert_uint_eq(waiters(), 0);
	rxw_connection_release(full);
	h_close(&bed);
}
END_TEST

/* ---- aborts and stops ---- */

START_TEST(abort_a_connection)
{
	pthread_t threads[2];
	int results[2];

	h_open(&bed, NULL);
	fill_connection();
	start_waiters(threads, results);
	ck_assert_int_eq(rxw_connection_abort(NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_abort(full, 77), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(results[0], -RXW_ECALL);
	ck_assert_int_eq(results[1], 77);
	for (int i = 0; i < 4; i++) {
		enum rxw_origin origin;

		ck_assert_int_eq(rxw_call_error(calls[i], NULL), 77);
		ck_assert_int_eq(rxw_call_end(calls[i], 0, &origin), 77);
		ck_assert_int_eq(origin, RXW_ORIGIN_LOCAL);
	}
	/* Calls may begin again. */
	h_good_call(&bed, full, &(struct h_ask){ .op = H_PING });
	empty_connection(4, 4);
	h_close(&bed);
}
END_TEST

static void *read_on(void *arg)
{
	uint8_t byte;

	*(int *)arg = (int)rxw_call_read(calls[0], &byte, 1);
	return NULL;
}

/*
 * Stopping waits for a client's calls, then aborts them. Calls waiting for a channel never begin.
 */
START_TEST(stop_a_client)
{
	pthread_t threads[2], reader;
	int results[2], result;

	h_open(&bed, NULL);
	fill_connection();
	start_waiters(threads, results);
	pthread_create(&reader, NULL, read_on, &result);
	ck_assert_int_eq(rxw_endpoint_stop(bed.client, 20), -RXW_ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_join(reader, NULL);
	ck_assert_int_eq(results[0], -RXW_ESTOPPED);
	ck_assert_int_eq(results[1], rxw_code_from_errno(ESHUTDOWN));
	ck_assert_int_eq(result, -RXW_ECALL);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(calls[i], 0, NULL), RXW_USER_ABORT);
	empty_connection(4, 4);
	h_close(&bed);
}
END_TEST

static void *stop_client(void *arg)
{
	*(int *)arg = rxw_endpoint_stop(bed.client, 50000);
	return NULL;
}

START_TEST(stop_waits_for_a_client)
{
	pthread_t thread;
	rxw_call *call;
	uint8_t byte;
	int result;

	h_open(&bed, NULL);
	fill_connection();
	for (int i = 1; i < 4; i++)
		rxw_call_end(calls[i], RXW_USER_ABORT, NULL);
	pthread_create(&thread, NULL, stop_client, &result);
	while (!internals_stopping(bed.client))
		usleep(1000);
	ck_assert_int_eq(rxw_call_begin(full, NULL, &call), -RXW_ESTOPPED);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_read(calls[0], &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(calls[0], 0, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, 0);
	empty_connection(4, 4);
	h_close(&bed);
}
END_TEST

static int32_t stuck_handler(rxw_call *call, void *context)
{
	(void)call;
	(void)context;
	sem_post(&stuck);
	sem_wait(&released);
	return 0;
}

static bool warned(void *arg)
{
	(void)arg;
	return h_warnings(&bed) > 0;
}

/* A handler that hangs outside the library: stopping returns an error instead of hanging. */
START_TEST(stop_with_stuck_handler)
{
	rxw_connection *connection;
	rxw_call *call;

	sem_init(&stuck, 0, 0);
	sem_init(&released, 0, 0);
	h_open(&bed, NULL);
	h_offer(&bed, (struct rxw_service_options){ .size = sizeof(struct rxw_service_options),
						    .id = STUCK, .name = "stuck",
						    .handler = stuck_handler });
	connection = h_connect(&bed, STUCK);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	sem_wait(&stuck);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 20), -RXW_ETIMEDOUT);
	ck_assert(warned(NULL));
	sem_post(&released);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_RESTARTING);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "blocking", blocking_refused_in_callback,
		 blocking_refused_in_callback_on_caller, blocking_refused_in_inline_handler,
		 inline_reply_exceeds_send_queue, set_callback_does_not_wait,
		 crowd_waits_for_channels, deadline_covers_wait_for_channel,
		 deadlines_count_from_the_beginning, abort_a_connection, stop_a_client,
		 stop_waits_for_a_client, stop_with_stuck_handler)
