/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of sockets on one port; ports in use; waiting and waking. */
#include <fcntl.h>

#include "io_test.h"

START_TEST(groups_of_one_to_four)
{
	if (kernel_lacks(KERNEL_SHARE | KERNEL_BATCHES))
		return;
	for (unsigned n = 1; n <= 4; n++) {
		struct rxw_io_options o = options_for("127.0.0.1", NULL);
		struct rxw_io_group g;

		o.sockets = n;
		open_group(&g, &o);
		ck_assert_uint_eq(g.count, n);
		ck_assert_uint_ne(rxw_addr_port(&g.bound), 0);
		ck_assert_str_eq(g.backend, RXW_ENABLE_MMSG ? "mmsg" : "msg");
		for (unsigned i = 0; i < n; i++) {
			struct sockaddr_in in;
			socklen_t len = sizeof(in);

			ck_assert(fcntl(g.sock[i]->fd, F_GETFD) & FD_CLOEXEC);
			ck_assert_int_eq(getsockname(g.sock[i]->fd, (void *)&in, &len), 0);
			ck_assert_uint_eq(ntohs(in.sin_port), rxw_addr_port(&g.bound));
		}
		rxw_io_close(&g);
		ck_assert_uint_eq(g.count, 0);
	}
}
END_TEST

START_TEST(a_port_in_use_is_reported)
{
	for (unsigned n = 1; n <= 3; n += 2) {
		struct rxw_io_options o = options_for("127.0.0.1", NULL);
		struct rxw_io_group g, h;

		o.sockets = n;
		open_group(&g, &o);
		o.bind = g.bound;
		ck_assert_int_eq(rxw_io_open(&h, &o), -EADDRINUSE);
		ck_assert_uint_eq(h.count, 0);
		rxw_io_close(&g);
		/* It is free again. */
		open_group(&h, &o);
		rxw_io_close(&h);
	}
}
END_TEST

START_TEST(arguments_are_checked)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;

	o.sockets = 0;
	ck_assert_int_eq(rxw_io_open(&g, &o), -EINVAL);
	o.sockets = 65;
	ck_assert_int_eq(rxw_io_open(&g, &o), -EINVAL);
	o.sockets = 1;
	o.bind.len = 0;
	ck_assert_int_eq(rxw_io_open(&g, &o), -EAFNOSUPPORT);
	o = options_for("192.0.2.1", NULL);
	ck_assert_int_eq(rxw_io_open(&g, &o), -EADDRNOTAVAIL);
}
END_TEST

START_TEST(without_reuseport_one_socket_serves)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g;

	o.sockets = 4;
	set_faults(&o, "reuseport:EPERM@0");
	open_group(&g, &o);
	ck_assert_uint_eq(g.count, 1);
	ck_assert(!g.steered);
	ck_assert_ptr_nonnull(strstr(lines.all, "1 of 4 sockets"));
	rxw_io_close(&g);
}
END_TEST

START_TEST(both_families_share_a_port)
{
	struct rxw_io_options o = options_for("0.0.0.0", NULL);
	struct rxw_io_group g, h;

	if (!have_ipv6())
		return;
	open_group(&g, &o);
	o.bind = address("::", rxw_addr_port(&g.bound));
	open_group(&h, &o);
	rxw_io_close(&h);
	rxw_io_close(&g);
}
END_TEST

static void *wake_later(void *arg)
{
	rxw_io_wake(arg);
	return NULL;
}

START_TEST(a_wake_up_ends_the_wait)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	pthread_t thread;

	open_group(&g, &o);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 1000), 0);
	/*
	 * Before and during the wait. A lost wake-up would make this test run into its time limit.
	 */
	rxw_io_wake(g.sock[0]);
	rxw_io_wake(g.sock[0]);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 3600ull * 1000000), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wake_later, g.sock[0]), 0);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 3600ull * 1000000), 0);
	pthread_join(thread, NULL);
	rxw_io_close(&g);
}
END_TEST

START_TEST(a_datagram_ends_the_wait)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct burst t;
	struct rxw_io_tx tx;
	struct sink sink;
	struct seen seen;

	open_group(&g, &o);
	sink_init(&sink);
	seen_init(&seen, 1);
	tx = burst_make(&t, &g.bound, 0, 1, 100, 100, 1);
	ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, true), 1);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 3600ull * 1000000), 1);
	sink_until(&sink, g.sock[0], &seen, 1);
	seen_all_once(&seen);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 0), 0);
	free(t.bytes);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

RUN("io_common", groups_of_one_to_four, a_port_in_use_is_reported, arguments_are_checked,
    without_reuseport_one_socket_serves, both_families_share_a_port, a_wake_up_ends_the_wait,
    a_datagram_ends_the_wait)
