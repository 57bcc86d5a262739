/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics: counters of calls, sums over shards, arguments, effective settings. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tests/kernel.h"
#include "tests/main.h"

static struct h_bed bed;

static bool no_calls_left(void *arg)
{
	return !counter_of(arg, "calls_active");
}

/*
 * One connection per call: an ACK written by one thread may be sent after another thread's first
 * packet of the channel's next call, and is then correctly dropped.
 */
START_TEST(counters_follow_calls)
{
	enum { CALLS = 3 };
	const uint64_t bytes = 500000;
	struct counters c, s;
	rxw_connection *connection[CALLS];

	h_open(&bed, NULL);
	c = counters_of(bed.client);
	ck_assert_uint_eq(counter_in(&c, "datagrams.sent"), 0);
	ck_assert_uint_eq(counter_in(&c, "connections_client"), 0);
	for (int i = 0; i < CALLS; i++) {
		connection[i] = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection[i], &(struct h_ask){ .op = H_BOTH, .bytes = bytes });
	}
	h_wait_for(no_calls_left, bed.server, "the last reply is acknowledged");
	c = counters_of(bed.client);
	s = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&c, "calls_started"), CALLS);
	ck_assert_uint_eq(counter_in(&s, "calls_started"), CALLS);
	ck_assert_uint_eq(counter_in(&c, "calls_ended"), CALLS);
	ck_assert_uint_eq(counter_in(&c, "calls_aborted") + counter_in(&s, "calls_aborted") +
				  counter_in(&c, "calls_timed_out"),
			  0);
	ck_assert_uint_eq(counter_in(&c, "connections_client"), CALLS);
	ck_assert_uint_eq(counter_in(&c, "connections_server"), 0);
	ck_assert_uint_eq(counter_in(&s, "connections_server"), CALLS);
	ck_assert_uint_eq(counter_in(&s, "peers"), 1);
	ck_assert_uint_eq(counter_in(&s, "handlers.worker"), CALLS);
	ck_assert_uint_ge(counter_in(&s, "workers"), 1);
	ck_assert_uint_eq(counter_in(&s, "calls_waiting"), 0);
	ck_assert_uint_eq(counter_in(&s, "pinned_bytes"), 0);
	/* Every packet of the streams is counted once. */
	ck_assert_uint_ge(counter_in(&c, "packets.sent.data"), CALLS * bytes / 1416);
	ck_assert_uint_ge(counter_in(&s, "packets.received.data"), CALLS * bytes / 1416);
	ck_assert_uint_ge(counter_in(&s, "packets.sent.data"), CALLS * bytes / 1416);
	ck_assert_uint_gt(counter_in(&c, "packets.sent.ack"), 0);
	ck_assert_uint_gt(counter_in(&s, "packets.received.ack"), 0);
	ck_assert_uint_ge(counter_in(&c, "bytes.sent"), CALLS * bytes);
	ck_assert_uint_ge(counter_in(&s, "bytes.received"), CALLS * bytes);
	ck_assert_uint_ge(counter_in(&c, "datagrams.sent"), counter_in(&c, "packets.sent.data"));
	ck_assert_uint_gt(counter_in(&c, "syscalls.send"), 0);
	ck_assert_uint_gt(counter_in(&c, "syscalls.receive"), 0);
	ck_assert_uint_eq(counters_sum(&s, "drops."), counter_in(&s, "drops.duplicate"));
	for (int i = 0; i < CALLS; i++)
		rxw_connection_release(connection[i]);
	ck_assert_uint_eq(counter_of(bed.client, "connections_client"), 0);
	h_close(&bed);
}
END_TEST

static bool all_begun(void *arg)
{
	return counter_of(bed.server, "calls_active") == *(unsigned *)arg;
}

static bool bytes_pinned(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "pinned_bytes");
}

/*
 * Gauges of calls, pinned bytes and connections, however calls end: by a reply, an abort, or the
 * end of their connection.
 */
START_TEST(gauges)
{
	enum { CALLS = 3 };
	unsigned calls = CALLS, none = 0;
	rxw_connection *connection[CALLS];
	rxw_call *call[CALLS];
	uint8_t bytes[2000] = { 0 };
	struct counters s;

	h_open(&bed, &(struct h_options){ .server = "listeners=1" });
	for (int i = 0; i < CALLS; i++) {
		struct h_ask ask = { .op = H_WAIT };

		connection[i] = h_connect(&bed, H_SERVICE);
		call[i] = h_begin(connection[i], &ask);
		ck_assert_int_eq(rxw_call_write(call[i], bytes, sizeof(bytes)), sizeof(bytes));
		ck_assert_int_eq(rxw_call_flush(call[i]), 0);
	}
	h_gate_arrived(&bed, CALLS);
	h_wait_for(all_begun, &calls, "all calls are at work");
	h_wait_for(bytes_pinned, NULL, "bytes wait for their handlers");
	s = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&s, "connections_server"), CALLS);
	ck_assert_uint_eq(counter_in(&s, "connections_client"), 0);
	ck_assert_uint_eq(counter_of(bed.client, "connections_client"), CALLS);
	ck_assert_uint_eq(counter_of(bed.client, "connections_server"), 0);
	ck_assert_uint_eq(counter_of(bed.client, "calls_active"), CALLS);
	for (int i = 0; i < CALLS; i++)
		rxw_call_abort(call[i], 77);
	ck_assert_uint_eq(counter_of(bed.client, "calls_active"), 0);
	h_wait_for(all_begun, &none, "the server has received the aborts");
	h_gate_open(&bed);
	for (int i = 0; i < CALLS; i++) {
		rxw_call_end(call[i], 0, NULL);
		rxw_connection_release(connection[i]);
	}
	ck_assert_uint_eq(counter_of(bed.client, "connections_client"), 0);
	ck_assert_uint_eq(counter_of(bed.server, "pinned_bytes"), 0);
	h_close(&bed);
}
END_TEST

/* The counts of an endpoint are the sums of those of its shards. */
START_TEST(shards_add_up)
{
	struct counters whole;
	rxw_connection *connection[8];

	h_open(&bed, &(struct h_options){ .server = "listeners=4" });
	for (int i = 0; i < 8; i++) {
		connection[i] = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection[i], &(struct h_ask){ .op = H_BOTH, .bytes = 50000 });
	}
	h_wait_for(no_calls_left, bed.server, "the last reply is acknowledged");
	whole = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&whole, "calls_started"), 8);
	ck_assert_uint_eq(counter_in(&whole, "connections_server"), 8);
	for (int i = 0; i < 8; i++)
		rxw_connection_release(connection[i]);
	h_close(&bed);
}
END_TEST

/* Programs of other releases have room for fewer counters, or for more. */
START_TEST(room_of_other_programs)
{
	uint64_t values[COUNTERS_ROOM];
	int all;

	h_open(&bed, NULL);
	all = rxw_endpoint_counters(bed.server, NULL, 0);
	ck_assert_int_ge(all, 90);
	ck_assert_int_lt(all, COUNTERS_ROOM);
	memset(values, 0xff, sizeof(values));
	ck_assert_int_eq(rxw_endpoint_counters(bed.server, values, 3), all);
	ck_assert_uint_ne(values[2], UINT64_MAX);
	ck_assert_uint_eq(values[3], UINT64_MAX);
	memset(values, 0xff, sizeof(values));
	ck_assert_int_eq(rxw_endpoint_counters(bed.server, values, COUNTERS_ROOM), all);
	for (int i = all; i < COUNTERS_ROOM; i++)
		ck_assert_uint_eq(values[i], 0);
	h_close(&bed);
}
END_TEST

START_TEST(arguments)
{
	struct rxw_effective e = { .size = 0 };
	uint64_t value = 7;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_endpoint_counters(NULL, &value, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_counters(bed.server, NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_counter(NULL, "peers", &value), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_counter(bed.server, NULL, &value), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_counter(bed.server, "peers", NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_counter(bed.server, "drops", &value), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_counter(bed.server, "", &value), -RXW_EINVAL);
	ck_assert_uint_eq(value, 7);
	ck_assert_int_eq(rxw_endpoint_counter(bed.server, "peers", &value), 0);
	ck_assert_uint_eq(value, 0);
	ck_assert_ptr_null(rxw_counter_at(SIZE_MAX));
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), -RXW_EINVAL);
	h_close(&bed);
}
END_TEST

START_TEST(effective_settings)
{
	struct rxw_effective e = { .size = sizeof(e) };

	if (kernel_lacks(KERNEL_SHARE))
		return;
	h_open(&bed, &(struct h_options){.server = "listeners=2 batch=7 window=33 mtu=1300 gso=off "
						   "gro=off steer=hash io=msg"});
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	ck_assert_uint_eq(e.listeners, 2);
	ck_assert_uint_eq(e.batch, 7);
	ck_assert_uint_eq(e.window, 33);
	ck_assert_uint_eq(e.mtu, 1300);
	ck_assert_int_eq(e.gso, 0);
	ck_assert_int_eq(e.gro, 0);
	ck_assert_int_eq(e.steered, 0);
	ck_assert_str_eq(e.io, "msg");
	ck_assert_uint_gt(e.rcvbuf, 0);
	ck_assert_uint_gt(e.sndbuf, 0);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "stats", counters_follow_calls, gauges, shards_add_up, room_of_other_programs,
		 arguments, effective_settings)
