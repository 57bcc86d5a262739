/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving: time-outs, batches, truncated and empty datagrams. */
#include "io_test.h"

START_TEST(time_outs_are_set_only_when_they_change)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	const struct rxw_io_stats *stats;
	struct sink sink;
	uint64_t before;

	open_group(&g, &o);
	sink_init(&sink);
	stats = rxw_io_sock_stats(g.sock[0]);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 8, 1000), 0);
	before = stat_of(&stats->syscalls_other);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 8, 1000), 0);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 8, 0), 0);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 8, 1000), 0);
	ck_assert_uint_eq(stat_of(&stats->syscalls_other), before);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 8, 2000), 0);
	ck_assert_uint_eq(stat_of(&stats->syscalls_other), before + 1);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

static void batches(bool plain)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct burst t[40];
	struct rxw_io_tx tx[40];
	struct sink sink;
	struct seen seen;

	o.plain = plain;
	o.batch = 16;
	open_group(&g, &o);
	sink_init(&sink);
	seen_init(&seen, 40);
	for (unsigned i = 0; i < 40; i++)
		tx[i] = burst_make(&t[i], &g.bound, i, 1, 300 + i, 300 + i, 1);
	ck_assert_uint_eq(rxw_io_send(g.sock[0], tx, 40, false), 40);
	/* Never more than the batch, even if more are queued and requested. */
	ck_assert_int_eq(sink_take(&sink, g.sock[0], &seen, LOST_US), 16);
	ck_assert_int_eq(sink_take(&sink, g.sock[0], &seen, 0), 16);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 3, 0), 3);
	for (unsigned i = 0; i < 3; i++)
		seen_rx(&seen, &sink.rx[i]);
	ck_assert_int_eq(sink_take(&sink, g.sock[0], &seen, 0), 5);
	ck_assert_int_eq(sink_take(&sink, g.sock[0], &seen, 0), 0);
	seen_all_once(&seen);
	ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[0])->datagrams_received), 40);
	for (unsigned i = 0; i < 40; i++)
		free(t[i].bytes);
	sink_free(&sink);
	rxw_io_close(&g);
}

START_TEST(batches_are_bounded)
{
	batches(false);
	batches(true);
}
END_TEST

static void cut_and_empty(bool plain)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct iovec iov = { "0123456789012345678901234567890123456789"
			     "0123456789012345678901234567890123456789", 80 };
	struct rxw_path path = { 0 };
	struct rxw_io_tx tx = { .path = &path, .iov = &iov, .iov_count = 1, .length = 80 };
	struct rxw_io_rx rx[2] = { { 0 }, { 0 } };
	struct rxw_budget budget;
	struct rxw_pool *pool;

	rxw_budget_init(&budget, 1 << 24);
	pool = rxw_pool_create(&budget, 1 << 20, 4);
	rx[0].buf = rxw_buf_get_small(pool, 64);
	rx[1].buf = rxw_buf_get_small(pool, 64);
	o.plain = plain;
	open_group(&g, &o);
	path.peer = g.bound;
	ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, false), 1);
	iov.iov_len = tx.length = 0;
	ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, false), 1);
	ck_assert_uint_eq(tx.sent_segments, 1);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], rx, 2, LOST_US), 2);
	ck_assert(rx[0].truncated);
	ck_assert_uint_le(rx[0].length, 64);
	ck_assert(!rx[1].truncated);
	ck_assert_uint_eq(rx[1].length, 0);
	ck_assert(rxw_addr_equal(&rx[1].path.peer, &g.bound));
	rxw_buf_unref(rx[0].buf);
	rxw_buf_unref(rx[1].buf);
	rxw_pool_destroy(pool);
	rxw_io_close(&g);
}

START_TEST(truncated_and_empty_datagrams)
{
	cut_and_empty(false);
	cut_and_empty(true);
}
END_TEST

RUN("io_recv", time_outs_are_set_only_when_they_change, batches_are_bounded,
    truncated_and_empty_datagrams)
