/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of the network: returned by the queue, never by another peer's send or receive. */
#include <poll.h>

#include "io_test.h"

/* An address without a receiver. */
static struct rxw_addr closed_port(const char *text)
{
	struct rxw_io_options o = options_for(text, NULL);
	struct rxw_io_group g;
	struct rxw_addr a;

	open_group(&g, &o);
	a = g.bound;
	rxw_io_close(&g);
	return a;
}

static void send_one(struct rxw_io_sock *s, const struct rxw_addr *to, uint32_t number)
{
	struct burst t;
	struct rxw_io_tx tx = burst_make(&t, to, number, 1, 100, 100, 1);

	ck_assert_uint_eq(rxw_io_send(s, &tx, 1, false), 1);
	ck_assert_int_eq(tx.error, 0);
	free(t.bytes);
}

static void await_report(struct rxw_io_sock *s)
{
	struct pollfd p = { .fd = s->fd, .events = 0 };

	ck_assert_int_eq(poll(&p, 1, 20000), 1);
	ck_assert(p.revents & POLLERR);
}

static void refused_port(const char *text)
{
	struct rxw_io_options o = options_for(text, NULL);
	struct rxw_addr nobody = closed_port(text);
	struct rxw_io_error e[4];
	struct rxw_io_group g;

	open_group(&g, &o);
	ck_assert_uint_eq(rxw_io_errors(g.sock[0], e, 4), 0);
	send_one(g.sock[0], &nobody, 0);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], LOST_US), 1);
	ck_assert(rxw_io_errors_pending(g.sock[0]));
	ck_assert_uint_eq(rxw_io_errors(g.sock[0], e, 4), 1);
	ck_assert_int_eq(e[0].error, ECONNREFUSED);
	ck_assert(rxw_addr_equal(&e[0].peer, &nobody));
	ck_assert_uint_eq(e[0].mtu, 0);
	ck_assert(!rxw_io_errors_pending(g.sock[0]));
	rxw_io_close(&g);
}

START_TEST(a_closed_port_is_reported)
{
	refused_port("127.0.0.1");
	if (have_ipv6())
		refused_port("::1");
}
END_TEST

START_TEST(send_does_not_return_report)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_addr nobody = closed_port("127.0.0.1");
	struct rxw_io_error e[4];
	struct rxw_io_group g, peer;
	struct sink sink;
	struct seen seen;

	if (kernel_lacks(KERNEL_GSO))
		return;
	open_group(&g, &o);
	open_group(&peer, &o);
	sink_init(&sink);
	seen_init(&seen, 45 + 1);
	for (unsigned round = 0; round < 2; round++) {
		struct burst t;
		unsigned datagrams = round ? 45 : 1;
		struct rxw_io_tx tx;

		send_one(g.sock[0], &nobody, 0);
		await_report(g.sock[0]);
		/* A single datagram, then a burst: the report about another port fails neither. */
		tx = burst_make(&t, &peer.bound, round, datagrams, 1400, 1400, 1);
		ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, round), 1);
		ck_assert_uint_eq(tx.sent_segments, datagrams);
		ck_assert(rxw_io_errors_pending(g.sock[0]));
		ck_assert_uint_eq(rxw_io_errors(g.sock[0], e, 4), 1);
		ck_assert(rxw_addr_equal(&e[0].peer, &nobody));
		free(t.bytes);
	}
	ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[0])->gso_fallbacks), 0);
	ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[0])->send_retries), 2);
	ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[0])->send_errors), 0);
	sink_until(&sink, peer.sock[0], &seen, 46);
	seen_all_once(&seen);
	sink_free(&sink);
	rxw_io_close(&peer);
	rxw_io_close(&g);
}
END_TEST

START_TEST(receive_does_not_return_report)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_addr nobody = closed_port("127.0.0.1");
	struct rxw_io_error e[4];
	struct rxw_io_group g;
	struct sink sink;
	struct seen seen;

	open_group(&g, &o);
	sink_init(&sink);
	seen_init(&seen, 1);
	send_one(g.sock[0], &g.bound, 0);
	send_one(g.sock[0], &nobody, 0);
	await_report(g.sock[0]);
	sink_until(&sink, g.sock[0], &seen, 1);
	seen_all_once(&seen);
	ck_assert(rxw_io_errors_pending(g.sock[0]));
	ck_assert_uint_eq(rxw_io_errors(g.sock[0], e, 4), 1);
	/* Nothing to receive, a report pending: no error either. */
	send_one(g.sock[0], &nobody, 0);
	await_report(g.sock[0]);
	ck_assert_int_eq(rxw_io_recv(g.sock[0], sink.rx, 4, 0), 0);
	ck_assert(rxw_io_errors_pending(g.sock[0]));
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

START_TEST(reports_read_in_steps_or_discarded)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_addr nobody = closed_port("127.0.0.1");
	struct rxw_io_error e[4];
	struct rxw_io_group g;

	open_group(&g, &o);
	for (unsigned i = 0; i < 3; i++)
		send_one(g.sock[0], &nobody, 0);
	await_report(g.sock[0]);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], LOST_US), 1);
	ck_assert_uint_eq(rxw_io_errors(g.sock[0], e, 2), 2);
	ck_assert(rxw_io_errors_pending(g.sock[0]));
	/* Offered once more; later waits do not end because of it. */
	ck_assert_int_eq(rxw_io_wait(g.sock[0], LOST_US), 1);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 0), 0);
	ck_assert_int_eq(rxw_io_wait(g.sock[0], 0), 0);
	ck_assert_uint_eq(rxw_io_errors(g.sock[0], e, 4), 0);
	rxw_io_close(&g);
}
END_TEST

RUN("io_errq", a_closed_port_is_reported, send_does_not_return_report,
    receive_does_not_return_report, reports_read_in_steps_or_discarded)
