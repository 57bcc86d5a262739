/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many concurrent calls, packets at the wrong shard, and which thread sends when an ACK opens the
 * window.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tests/kernel.h"
#include "tests/main.h"

static struct h_bed bed;

/* ---- many calls ---- */

#define MANY_CONNECTIONS 50
#define MANY_CALLS       200

struct worker {
	pthread_t thread;
	rxw_connection *connection;
	unsigned number;
	int32_t code;
};

static void *one_of_many(void *arg)
{
	struct worker *w = arg;
	static const enum h_op ops[] = { H_BOTH, H_SOURCE, H_SINK, H_BOTH };
	struct h_ask ask = { .op = ops[w->number % 4], .how = w->number % 16, .seed = w->number,
			     .bytes = 1000 + w->number * 3001 };

	w->code = h_call(&bed, w->connection, &ask);
	return NULL;
}

static void many_calls(const struct h_options *options)
{
	struct worker *w = calloc(MANY_CALLS, sizeof(*w));
	pthread_attr_t small;

	h_open(&bed, options);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 512 << 10);
	for (unsigned i = 0; i < MANY_CALLS; i++) {
		w[i].number = i;
		w[i].connection = i < MANY_CONNECTIONS ? h_connect(&bed, H_SERVICE) :
							 w[i % MANY_CONNECTIONS].connection;
	}
	for (unsigned i = 0; i < MANY_CALLS; i++)
		ck_assert_int_eq(pthread_create(&w[i].thread, &small, one_of_many, &w[i]), 0);
	for (unsigned i = 0; i < MANY_CALLS; i++) {
		pthread_join(w[i].thread, NULL);
		ck_assert_msg(!w[i].code, "call %u: code %d", i, w[i].code);
	}
	for (unsigned i = 0; i < MANY_CONNECTIONS; i++)
		rxw_connection_release(w[i].connection);
	pthread_attr_destroy(&small);
	h_close(&bed);
	free(w);
}

/* All calls share a machine that may be busy: none may fail because of a long wait. */
#define PATIENT "dead-ms=60000 idle-ms=off server-idle-ms=off queue-burst-ms=0"

START_TEST(two_hundred_calls)
{
	many_calls(&(struct h_options){ .both = PATIENT, .server = "workers-max=200" });
}
END_TEST

/* With fewer workers than calls the others wait; with a verifying class too. */
START_TEST(two_hundred_calls_few_workers)
{
	many_calls(&(struct h_options){
		.both = PATIENT, .server = "workers-max=4 listeners=4", .secure = true });
}
END_TEST

START_TEST(two_hundred_calls_without_batches)
{
	many_calls(&(struct h_options){
		.both = PATIENT " io=msg gso=off gro=off batch=1 window=8" });
}
END_TEST

/* ---- shards ---- */

/* Every packet arrives at the wrong shard: full size, also under sanitizers. */
START_TEST(steered_wrong)
{
	struct rxw_effective e = { .size = sizeof(e) };
	rxw_connection *connection;

	if (kernel_lacks(KERNEL_SHARE))
		return;
	h_open(&bed, &(struct h_options){ .server = "listeners=4 steer=wrong" });
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 64u << 20 });
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	ck_assert_uint_eq(e.listeners, 4);
	if (e.steered) {
		struct counters s = counters_of(bed.server);

		ck_assert_uint_ge(counter_in(&s, "wrong_shard"), 1);
	}
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* Steered by connection id, every packet arrives at its connection's shard. */
START_TEST(steered_right)
{
	struct rxw_effective e = { .size = sizeof(e) };
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){ .server = "listeners=4 steer=cid" });
	for (int i = 0; i < 8; i++) {
		connection = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 200000 });
		rxw_connection_release(connection);
	}
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	if (e.steered)
		ck_assert_uint_eq(counter_of(bed.server, "wrong_shard"), 0);
	h_close(&bed);
}
END_TEST

/* The same with several sockets of a client. */
START_TEST(shards_of_a_client)
{
	rxw_connection *connection[8];

	h_open(&bed, &(struct h_options){ .both = "listeners=4" });
	for (int i = 0; i < 8; i++)
		connection[i] = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 24; i++)
		h_good_call(&bed, connection[i % 8],
			    &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	for (int i = 0; i < 8; i++)
		rxw_connection_release(connection[i]);
	h_close(&bed);
}
END_TEST

/* ---- the sending thread ---- */

/* One long write, whose writer mostly waits for room. */
static struct rxw_call_statistics one_write(const char *tunables)
{
	rxw_connection *connection;
	struct rxw_call_statistics seen;

	h_open(&bed, &(struct h_options){ .server = tunables });
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_ONCE, .bytes = 4u << 20 });
	rxw_connection_release(connection);
	pthread_mutex_lock(&bed.lock);
	seen = bed.seen;
	pthread_mutex_unlock(&bed.lock);
	h_close(&bed);
	return seen;
}

/* One write of many windows: its writer or the receiver sends each. */
START_TEST(windows_are_counted_by_sender)
{
	struct rxw_call_statistics s = one_write("window=32 sendq-packets=64");

	ck_assert_uint_gt(s.windows_by_writer + s.windows_by_receiver, 20);
}
END_TEST

/* ---- one endpoint at both ends ---- */

/* Both halves of a connection in one process, on one socket. */
START_TEST(talking_to_oneself)
{
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){ .no_client = true });
	ck_assert_int_eq(rxw_connection_create(bed.server, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, NULL, &connection),
			 0);
	for (int i = 0; i < 5; i++)
		h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 200000 });
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), 1);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* ---- families ---- */

START_TEST(over_ipv6)
{
	rxw_connection *connection;

	if (!h_have_ipv6())
		return;
	h_open(&bed, &(struct h_options){ .ipv6 = true });
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 3000000 });
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(90, "loopback", two_hundred_calls, two_hundred_calls_few_workers,
	  two_hundred_calls_without_batches, steered_wrong, steered_right, shards_of_a_client,
	  windows_are_counted_by_sender, talking_to_oneself, over_ipv6)
