/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers granted and refused, bursts probed and refused, DF as the rule. */
#include "io_test.h"

START_TEST(buffers_are_read_back)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g;

	if (kernel_lacks(KERNEL_BURSTS))
		return;
	o.rcvbuf = 65536;
	o.sndbuf = 131072;
	open_group(&g, &o);
	ck_assert_uint_eq(rxw_io_rcvbuf(g.sock[0]), 2 * 65536);
	ck_assert_uint_eq(rxw_io_sndbuf(g.sock[0]), 2 * 131072);
	ck_assert_uint_eq(lines.count, 0);
	rxw_io_close(&g);
}
END_TEST

START_TEST(reduced_buffers_logged)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g, h;
	_Atomic(unsigned) warned = 0;
	uid_t was = geteuid();

	if (kernel_lacks(KERNEL_SHARE))
		return;
	o.warned = &warned;
	o.sockets = 3;
	o.rcvbuf = o.sndbuf = 1 << 30;
	/* Without the capability to exceed the system's limits: root would never see the note. */
	if (was == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	open_group(&g, &o);
	/* A second endpoint does not repeat it. */
	open_group(&h, &o);
	if (was == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_uint_gt(rxw_io_rcvbuf(g.sock[2]), 0);
	ck_assert_uint_lt(rxw_io_rcvbuf(g.sock[0]) / 2, INT32_MAX / 2);
	ck_assert_uint_eq(lines.notes, 1);
	ck_assert_ptr_nonnull(strstr(lines.all, "net.core.rmem_max=1073741823"));
	ck_assert_ptr_nonnull(strstr(lines.all, "net.core.wmem_max=1073741823"));
	ck_assert_uint_eq(lines.count, 0);
	rxw_io_close(&h);
	rxw_io_close(&g);
}
END_TEST

START_TEST(bursts_can_be_switched_off)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g;

	if (kernel_lacks(KERNEL_BURSTS))
		return;
	o.gso = o.gro = 0;
	open_group(&g, &o);
	ck_assert(!rxw_io_gso(g.sock[0]) && !rxw_io_gro(g.sock[0]));
	rxw_io_close(&g);
	o.gso = o.gro = 1;
	o.plain = true;
	open_group(&g, &o);
	ck_assert_str_eq(g.backend, "msg");
	ck_assert(!rxw_io_gso(g.sock[0]) && !rxw_io_gro(g.sock[0]));
	rxw_io_close(&g);
	ck_assert_uint_eq(lines.count, 0);
}
END_TEST

START_TEST(a_kernel_without_bursts_warns_once_each)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g, h;
	_Atomic(unsigned) warned = 0;

	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER | KERNEL_BURSTS))
		return;
	o.warned = &warned;
	o.sockets = 3;
	set_faults(&o, "gso:ENOPROTOOPT@0,gro:ENOPROTOOPT@0");
	open_group(&g, &o);
	ck_assert(!rxw_io_gso(g.sock[0]) && !rxw_io_gro(g.sock[0]));
	if (RXW_ENABLE_MMSG) {
		ck_assert_uint_eq(lines.count, 2);
		open_group(&h, &o);
		ck_assert_uint_eq(lines.count, 2);
		rxw_io_close(&h);
		ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[1])->gso_fallbacks), 1);
		ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[1])->gro_fallbacks), 1);
	}
	ck_assert_uint_eq(rxw_io_max_segments(g.sock[0]), 64);
	rxw_io_close(&g);
}
END_TEST

START_TEST(df_is_the_rule)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	int mode = -1;
	socklen_t len = sizeof(mode);

	open_group(&g, &o);
	ck_assert_int_eq(getsockopt(g.sock[0]->fd, IPPROTO_IP, IP_MTU_DISCOVER, &mode, &len), 0);
	ck_assert_int_eq(mode, IP_PMTUDISC_PROBE);
	rxw_io_close(&g);
}
END_TEST

RUN("io_sock", buffers_are_read_back, reduced_buffers_logged, bursts_can_be_switched_off,
    a_kernel_without_bursts_warns_once_each, df_is_the_rule)
