/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics: counters of calls, sums over shards, older sizes, effective settings. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tests/kernel.h"
#include "tests/main.h"

static struct h_bed bed;

START_TEST(names_of_drops)
{
	for (int i = 0; i < RXW_DROP_COUNT; i++) {
		const char *name = rxw_drop_name((enum rxw_drop)i);

		ck_assert_str_ne(name, "unknown");
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(name, rxw_drop_name((enum rxw_drop)k));
	}
	ck_assert_str_eq(rxw_drop_name(RXW_DROP_SHORT), "short");
	ck_assert_str_eq(rxw_drop_name(RXW_DROP_COUNT), "unknown");
	ck_assert_str_eq(rxw_drop_name((enum rxw_drop)-1), "unknown");
}
END_TEST

START_TEST(names_of_locks)
{
	for (int i = 0; i < RXW_LOCK_COUNT; i++) {
		const char *name = rxw_lock_name((enum rxw_lock)i);

		ck_assert_str_ne(name, "unknown");
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(name, rxw_lock_name((enum rxw_lock)k));
	}
	ck_assert_str_eq(rxw_lock_name(RXW_LOCK_SEND_QUEUE), "send-queue");
	ck_assert_str_eq(rxw_lock_name(RXW_LOCK_COUNT), "unknown");
	ck_assert_str_eq(rxw_lock_name((enum rxw_lock)-1), "unknown");
}
END_TEST

static bool no_calls_left(void *arg)
{
	return !h_stats(arg).calls_active;
}

/*
 * One connection per call: an ACK written by one thread may be sent after another thread's first
 * packet of the channel's next call, and is then correctly dropped.
 */
START_TEST(counters_follow_calls)
{
	enum { CALLS = 3 };
	const uint64_t bytes = 500000;
	struct rxw_stats c, s;
	rxw_connection *connection[CALLS];

	h_open(&bed, NULL);
	c = h_stats(bed.client);
	ck_assert_uint_eq(c.datagrams_sent, 0);
	ck_assert_uint_eq(c.connections_client, 0);
	for (int i = 0; i < CALLS; i++) {
		connection[i] = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection[i], &(struct h_ask){ .op = H_BOTH, .bytes = bytes });
	}
	h_wait_for(no_calls_left, bed.server, "the last reply is acknowledged");
	c = h_stats(bed.client);
	s = h_stats(bed.server);
	ck_assert_uint_eq(c.calls_started, CALLS);
	ck_assert_uint_eq(s.calls_started, CALLS);
	ck_assert_uint_eq(c.calls_ended, CALLS);
	ck_assert_uint_eq(c.calls_aborted + s.calls_aborted + c.calls_timed_out, 0);
	ck_assert_uint_eq(c.connections_client, CALLS);
	ck_assert_uint_eq(c.connections_server, 0);
	ck_assert_uint_eq(s.connections_server, CALLS);
	ck_assert_uint_eq(s.peers, 1);
	ck_assert_uint_eq(s.handlers_worker, CALLS);
	ck_assert_uint_ge(s.workers, 1);
	ck_assert_uint_eq(s.calls_waiting, 0);
	ck_assert_uint_eq(s.bytes_pinned, 0);
	/* Every packet of the streams is counted once. */
	ck_assert_uint_ge(c.packets_sent[1], CALLS * bytes / 1416);
	ck_assert_uint_ge(s.packets_received[1], CALLS * bytes / 1416);
	ck_assert_uint_ge(s.packets_sent[1], CALLS * bytes / 1416);
	ck_assert_uint_gt(c.packets_sent[2], 0);
	ck_assert_uint_gt(s.packets_received[2], 0);
	ck_assert_uint_ge(c.bytes_sent, CALLS * bytes);
	ck_assert_uint_ge(s.bytes_received, CALLS * bytes);
	ck_assert_uint_ge(c.datagrams_sent, c.packets_sent[1]);
	ck_assert_uint_gt(c.syscalls_send, 0);
	ck_assert_uint_gt(c.syscalls_recv, 0);
	for (int i = 0; i < RXW_DROP_COUNT; i++)
		ck_assert_msg(i == RXW_DROP_DUPLICATE || !s.drops[i], "%llu drops: %s",
			      (unsigned long long)s.drops[i], rxw_drop_name((enum rxw_drop)i));
	for (int i = 0; i < CALLS; i++)
		rxw_connection_release(connection[i]);
	ck_assert_uint_eq(h_stats(bed.client).connections_client, 0);
	h_close(&bed);
}
END_TEST

static bool all_begun(void *arg)
{
	return h_stats(bed.server).calls_active == *(unsigned *)arg;
}

static bool bytes_pinned(void *arg)
{
	struct rxw_stats shard = { .size = sizeof(shard) };

	(void)arg;
	ck_assert_int_eq(rxw_shard_stats(bed.server, 0, &shard), 0);
	return shard.bytes_pinned && h_stats(bed.server).bytes_pinned;
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
	struct rxw_stats s;

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
	s = h_stats(bed.server);
	ck_assert_uint_eq(s.connections_server, CALLS);
	ck_assert_uint_eq(s.connections_client, 0);
	ck_assert_uint_eq(h_stats(bed.client).connections_client, CALLS);
	ck_assert_uint_eq(h_stats(bed.client).connections_server, 0);
	ck_assert_uint_eq(h_stats(bed.client).calls_active, CALLS);
	for (int i = 0; i < CALLS; i++)
		rxw_call_abort(call[i], 77);
	ck_assert_uint_eq(h_stats(bed.client).calls_active, 0);
	h_wait_for(all_begun, &none, "the server has received the aborts");
	h_gate_open(&bed);
	for (int i = 0; i < CALLS; i++) {
		rxw_call_end(call[i], 0, NULL);
		rxw_connection_release(connection[i]);
	}
	ck_assert_uint_eq(h_stats(bed.client).connections_client, 0);
	ck_assert_uint_eq(h_stats(bed.server).bytes_pinned, 0);
	h_close(&bed);
}
END_TEST

/* The endpoint's counts are the sums of the shards'. */
START_TEST(shards_add_up)
{
	struct rxw_effective e = { .size = sizeof(e) };
	struct rxw_stats whole, part = { .size = sizeof(part) };
	uint64_t datagrams = 0, started = 0, connections = 0;
	rxw_connection *connection[8];

	h_open(&bed, &(struct h_options){ .server = "listeners=4" });
	for (int i = 0; i < 8; i++) {
		connection[i] = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection[i], &(struct h_ask){ .op = H_BOTH, .bytes = 50000 });
	}
	h_wait_for(no_calls_left, bed.server, "the last reply is acknowledged");
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	whole = h_stats(bed.server);
	for (unsigned i = 0; i < e.listeners; i++) {
		ck_assert_int_eq(rxw_shard_stats(bed.server, i, &part), 0);
		datagrams += part.datagrams_sent;
		started += part.calls_started;
		connections += part.connections_server;
	}
	ck_assert_int_eq(rxw_shard_stats(bed.server, e.listeners, &part), -RXW_EINVAL);
	ck_assert_uint_eq(started, 8);
	ck_assert_uint_eq(connections, 8);
	ck_assert_uint_eq(whole.calls_started, 8);
	ck_assert_uint_le(whole.datagrams_sent, datagrams);
	for (int i = 0; i < 8; i++)
		rxw_connection_release(connection[i]);
	h_close(&bed);
}
END_TEST

START_TEST(sizes_of_other_programs)
{
	/* volatile: the compiler must not know that the structure is truncated. */
	volatile size_t less = offsetof(struct rxw_stats, retransmitted);
	size_t more = sizeof(struct rxw_stats) + 16;
	struct rxw_stats *s = calloc(1, less);
	uint8_t *large = malloc(more);
	struct rxw_effective e = { .size = 0 };

	h_open(&bed, NULL);
	s->size = less;
	ck_assert_int_eq(rxw_endpoint_stats(bed.server, s), 0);
	ck_assert_uint_eq(s->size, less);
	memset(large, 0xff, more);
	memcpy(large, &more, sizeof(more));
	ck_assert_int_eq(rxw_endpoint_stats(bed.server, (struct rxw_stats *)(void *)large), 0);
	for (size_t i = sizeof(struct rxw_stats); i < more; i++)
		ck_assert_uint_eq(large[i], 0);
	s->size = 0;
	ck_assert_int_eq(rxw_endpoint_stats(bed.server, s), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_stats(NULL, s), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_stats(bed.server, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_shard_stats(bed.server, 0, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), -RXW_EINVAL);
	h_close(&bed);
	free(s);
	free(large);
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

TEST_MAIN_WITHIN(60, "stats", names_of_drops, names_of_locks, counters_follow_calls,
	  gauges, shards_add_up, sizes_of_other_programs, effective_settings)
