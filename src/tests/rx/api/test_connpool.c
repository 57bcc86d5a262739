/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools of connections: more than four calls, waiting for any channel, events, failures. */
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "tests/support/counters.h"
#include "tests/main.h"

#define SERVICE 140
#define MOST	3

static struct h_bed bed;
static rxw_connpool *pool;
static rxw_queue *queue;

static void open_pool(void)
{
	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &queue), 0);
	ck_assert_int_eq(rxw_connpool_create(bed.client, (struct sockaddr *)&bed.address,
					     bed.address_len, H_SERVICE, bed.security, MOST, &pool),
			 0);
}

static void close_pool(void)
{
	rxw_connpool_release(pool);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	h_close(&bed);
}

static int begin(unsigned flags, unsigned deadline_ms, void *arg, rxw_call **call)
{
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = flags, .deadline_ms = deadline_ms, .arg = arg};

	if (arg) {
		options.queue = queue;
		options.events = RXW_EVENT_DONE;
	}
	return rxw_connpool_begin(pool, &options, call);
}

/* Calls on all channels, whose handlers wait at the gate. */
static void fill(rxw_call *call[4 * MOST])
{
	for (unsigned i = 0; i < 4 * MOST; i++) {
		ck_assert_int_eq(begin(0, 0, NULL, &call[i]), 0);
		h_write_ask(call[i], &(struct h_ask){.op = H_WAIT});
		ck_assert_int_eq(rxw_call_send_end(call[i]), 0);
		/* A connection is created only when those that exist are full. */
		ck_assert_uint_eq(counter_of(bed.client, "connections_client"), i / 4 + 1);
	}
	h_gate_arrived(&bed, 4 * MOST);
}

static void end_all(rxw_call *call[4 * MOST], unsigned first)
{
	h_gate_open(&bed);
	for (unsigned i = first; i < 4 * MOST; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
}

static void *wait_for_channel(void *arg)
{
	rxw_call *call;
	int r = begin(0, 0, NULL, &call);

	sem_post(arg);
	if (!r) { /* it may have been aborted meanwhile: abort_ends_calls_and_waits */
		int32_t code = rxw_call_end(call, 1, NULL);

		ck_assert(code == 1 || code == 77);
	}
	return (void *)(intptr_t)r;
}

START_TEST(a_blocking_call_waits_for_any_channel)
{
	rxw_call *call[4 * MOST], *more;
	pthread_t t[2];
	void *result;
	sem_t begun;

	open_pool();
	fill(call);
	ck_assert_int_eq(begin(RXW_CALL_TRY, 0, NULL, &more), -RXW_EAGAIN);
	ck_assert_int_eq(begin(0, 50, NULL, &more), -RXW_ETIMEDOUT);
	sem_init(&begun, 0, 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, wait_for_channel, &begun);
	ck_assert_int_eq(rxw_call_end(call[5], 1, NULL), 1);
	sem_wait(&begun);
	sem_wait(&begun);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(t[i], &result);
		ck_assert_int_eq((int)(intptr_t)result, 0);
	}
	call[5] = call[0];
	end_all(call, 1);
	close_pool();
}
END_TEST

START_TEST(a_queue_is_told_of_a_channel)
{
	rxw_call *call[4 * MOST], *more;
	struct rxw_queue_event v[2];

	open_pool();
	fill(call);
	ck_assert_int_eq(begin(RXW_CALL_NONBLOCK, 0, &more, &more), -RXW_EAGAIN);
	ck_assert_int_eq(begin(RXW_CALL_NONBLOCK, 0, &more, &more), -RXW_EAGAIN);
	ck_assert_int_eq(rxw_queue_next(queue, v, 2, 0), 0);
	ck_assert_int_eq(rxw_call_end(call[0], 1, NULL), 1);
	ck_assert_int_eq(rxw_queue_next(queue, v, 2, 30000), 1);
	ck_assert_uint_eq(v[0].events, RXW_EVENT_CHANNEL);
	ck_assert_ptr_eq(v[0].pool, pool);
	ck_assert_ptr_eq(v[0].arg, &more);
	ck_assert_int_eq(begin(RXW_CALL_NONBLOCK, 0, &v, &call[0]), 0);
	ck_assert_int_eq(rxw_call_end(call[0], 1, NULL), 1);
	/* A released pool announces nothing. */
	ck_assert_int_eq(begin(RXW_CALL_NONBLOCK, 0, &v, &call[0]), 0);
	ck_assert_int_eq(begin(RXW_CALL_NONBLOCK, 0, &more, &more), -RXW_EAGAIN);
	ck_assert_int_eq(rxw_call_end(call[0], 1, NULL), 1);
	rxw_connpool_release(pool);
	pool = NULL;
	ck_assert_int_eq(rxw_queue_next(queue, v, 2, 0), 0);
	end_all(call, 1);
	close_pool();
}
END_TEST

START_TEST(abort_ends_calls_and_waits)
{
	rxw_call *call[4 * MOST];
	pthread_t t;
	void *result;
	sem_t begun;

	open_pool();
	fill(call);
	sem_init(&begun, 0, 0);
	pthread_create(&t, NULL, wait_for_channel, &begun);
	do /* until the thread waits */
		ck_assert_int_eq(rxw_connpool_abort(pool, 77), 0);
	while (sem_trywait(&begun));
	pthread_join(t, &result);
	ck_assert((int)(intptr_t)result == -RXW_ECALL || !result);
	for (unsigned i = 0; i < 4 * MOST; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 77);
	close_pool();
}
END_TEST

START_TEST(timeouts_and_arguments)
{
	struct sockaddr *to = (struct sockaddr *)&bed.address;
	rxw_call *call[4 * MOST], *more;
	rxw_connpool *other;

	open_pool();
	ck_assert_int_eq(
		rxw_connpool_create(bed.client, to, bed.address_len, H_SERVICE, NULL, 0, &other),
		-RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_create(bed.client, to, 1, H_SERVICE, NULL, 1, &other),
			 -RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_create(NULL, to, bed.address_len, H_SERVICE, NULL, 1, &other),
			 -RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_begin(NULL, NULL, &more), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_abort(NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_set_timeouts(pool, 999, 0, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connpool_set_timeouts(pool, RXW_TIMEOUT_OFF, 0, 0), -RXW_EINVAL);
	rxw_connpool_release(NULL);
	fill(call);
	ck_assert_int_eq(rxw_connpool_set_timeouts(pool, 0, 0, 40), 0);
	ck_assert_int_eq(begin(0, 0, NULL, &more), -RXW_ETIMEDOUT);
	ck_assert_int_eq(rxw_call_end(call[0], 1, NULL), 1);
	ck_assert_int_eq(begin(0, 0, NULL, &more), 0);
	h_write_ask(more, &(struct h_ask){.op = H_WAIT});
	ck_assert_int_eq(rxw_call_end(more, 0, NULL), RXW_CALL_TIMEOUT);
	end_all(call, 1);
	close_pool();
}
END_TEST

/* A pool is released before its endpoint, also if it has no connection. */
START_TEST(a_pool_keeps_its_endpoint)
{
	struct rxw_endpoint_options options = {.size = sizeof(options)};
	rxw_endpoint *endpoint;
	rxw_connpool *unused;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &options, &endpoint), 0);
	ck_assert_int_eq(rxw_connpool_create(endpoint, (struct sockaddr *)&bed.address,
					     bed.address_len, H_SERVICE, bed.security, 1, &unused),
			 0);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), -RXW_ESTATE);
	rxw_connpool_release(unused);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	h_close(&bed);
}
END_TEST

/* An endpoint for both families reaches peers of both, by a pool as by a connection. */
START_TEST(a_peer_of_the_other_family)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&any,
					       .address_len = sizeof(any),
					       .dual_stack = 1};
	rxw_endpoint *client;
	rxw_connpool *other;
	rxw_call *call;

	h_open(&bed, NULL);
	if (!h_have_ipv6()) {
		printf("skipped: the machine has no IPv6\n");
		h_close(&bed);
		return;
	}
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &options, &client), 0);
	ck_assert_int_eq(rxw_connpool_create(client, (struct sockaddr *)&bed.address,
					     bed.address_len, H_SERVICE, bed.security, 1, &other),
			 0);
	ck_assert_int_eq(rxw_connpool_begin(other, NULL, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connpool_release(other);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	h_close(&bed);
}
END_TEST

static void *use(void *unused)
{
	for (unsigned i = 0; i < (h_small() ? 100 : 1000); i++) {
		rxw_call *call;
		char reply[4];

		ck_assert_int_eq(begin(0, 0, NULL, &call), 0);
		h_write_ask(call, &(struct h_ask){.op = H_PING});
		ck_assert_int_eq(rxw_call_read(call, reply, 4), 4);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	return unused;
}

START_TEST(more_threads_than_channels)
{
	pthread_t t[4 * MOST + 4];

	open_pool();
	for (unsigned i = 0; i < 4 * MOST + 4; i++)
		pthread_create(&t[i], NULL, use, NULL);
	for (unsigned i = 0; i < 4 * MOST + 4; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_le(counter_of(bed.client, "connections_client"), MOST);
	close_pool();
}
END_TEST

TEST_MAIN_WITHIN(120, "connpool", a_blocking_call_waits_for_any_channel,
		 a_queue_is_told_of_a_channel, abort_ends_calls_and_waits, timeouts_and_arguments,
		 a_pool_keeps_its_endpoint, a_peer_of_the_other_family, more_threads_than_channels)
