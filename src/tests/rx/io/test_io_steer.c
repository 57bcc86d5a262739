/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel selects a socket of the port by the connection id; by a wrong one; or by hash. */
#include "io_test.h"

/* Sends one datagram for each of 64 connections, and counts each socket's and the expected ones. */
static void spread(const char *host, unsigned sockets, int steer)
{
	struct rxw_io_options o = options_for(host, NULL);
	struct rxw_io_group g, client;
	struct sink sink;
	struct seen all;
	unsigned bad = 0;

	open_group(&client, &o);
	o.sockets = sockets;
	o.steer = steer;
	open_group(&g, &o);
	ck_assert_uint_eq(g.count, sockets);
	ck_assert_int_eq(g.steered, sockets > 1 && steer != 1);
	sink_init(&sink);
	seen_init(&all, 64);
	for (uint32_t c = 0; c < 64; c++) {
		struct burst t;
		struct rxw_io_tx tx = burst_make(&t, &g.bound, c, 1, 200, 200, 1);
		uint32_t cid = 0xfffffe00u + 4 * c + (c & 3);

		fill_datagram(t.bytes, c, cid, 200);
		ck_assert_uint_eq(rxw_io_send(client.sock[0], &tx, 1, false), 1);
		free(t.bytes);
	}
	for (unsigned i = 0; i < sockets; i++) {
		int n;

		while ((n = sink_take(&sink, g.sock[i], &all, 0)) > 0)
			for (int k = 0; k < n && steer != 1; k++) {
				uint32_t cid;

				memcpy(&cid, sink.rx[k].buf->data + 4, 4);
				cid = ntohl(cid) >> 2;
				bad += (cid + (steer == 2)) % sockets != i;
			}
	}
	ck_assert_uint_eq(bad, 0);
	seen_all_once(&all);
	sink_free(&sink);
	rxw_io_close(&g);
	rxw_io_close(&client);
}

START_TEST(by_connection_id)
{
	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	for (unsigned n = 1; n <= 4; n++)
		spread("127.0.0.1", n, 0);
	if (have_ipv6())
		spread("::1", 3, 0);
}
END_TEST

START_TEST(by_the_wrong_one)
{
	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	for (unsigned n = 2; n <= 4; n++)
		spread("127.0.0.1", n, 2);
	if (have_ipv6())
		spread("::1", 2, 2);
}
END_TEST

START_TEST(by_hash)
{
	if (kernel_lacks(KERNEL_SHARE))
		return;
	spread("127.0.0.1", 3, 1);
}
END_TEST

START_TEST(short_datagrams_reach_the_first_socket)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct iovec iov = { "abcdefg", 7 };
	struct rxw_path path = { 0 };
	struct rxw_io_tx tx = { .path = &path, .iov = &iov, .iov_count = 1, .length = 7 };
	struct sink sink;

	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	o.sockets = 3;
	open_group(&g, &o);
	sink_init(&sink);
	path.peer = g.bound;
	ck_assert_uint_eq(rxw_io_send(g.sock[1], &tx, 1, false), 1);
	ck_assert_int_eq(sink_take(&sink, g.sock[0], NULL, LOST_US), 1);
	ck_assert_uint_eq(sink.rx[0].length, 7);
	ck_assert_uint_eq(sink.rx[0].segment, 7);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

START_TEST(refused_by_the_kernel)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g;

	if (kernel_lacks(KERNEL_SHARE | KERNEL_BURSTS))
		return;
	o.sockets = 2;
	o.inject = "steer:EPERM@0";
	open_group(&g, &o);
	ck_assert_uint_eq(g.count, 2);
	ck_assert(!g.steered);
	ck_assert_uint_eq(lines.count, 1);
	rxw_io_close(&g);
}
END_TEST

RUN("io_steer", by_connection_id, by_the_wrong_one, by_hash,
    short_datagrams_reach_the_first_socket, refused_by_the_kernel)
