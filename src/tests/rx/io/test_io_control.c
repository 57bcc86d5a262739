/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages: the destination address of a request, answers from it, drops. */
#include "base/path_probe.h"
#include "io_test.h"

START_TEST(answers_leave_from_requested_address)
{
	struct rxw_io_options o = options_for("0.0.0.0", NULL);
	struct rxw_io_group server, client;
	struct rxw_addr asked;
	struct burst t;
	struct rxw_io_tx tx;
	struct rxw_path path;
	struct sink sink;

	open_group(&server, &o);
	o.bind = address("127.0.0.1", 0);
	open_group(&client, &o);
	sink_init(&sink);
	asked = address("127.0.0.2", rxw_addr_port(&server.bound));
	tx = burst_make(&t, &asked, 0, 3, 500, 100, 1);
	ck_assert_uint_eq(rxw_io_send(client.sock[0], &tx, 1, false), 1);
	ck_assert_int_gt(sink_take(&sink, server.sock[0], NULL, LOST_US), 0);
	path = sink.rx[0].path;
	ck_assert(rxw_addr_same_host(&path.local, &asked));
	ck_assert_uint_eq(rxw_addr_port(&path.local), 0);
	ck_assert(rxw_addr_equal(&path.peer, &client.bound));
	/* Back: a burst from that address, and a single one. */
	for (unsigned n = 1; n <= 2; n++) {
		struct rxw_io_tx back = {.path = &path,
					 .iov = t.iov,
					 .iov_count = 1,
					 .length = n * 500,
					 .segment = 500};

		t.iov[0].iov_len = n * 500;
		ck_assert_uint_eq(rxw_io_send(server.sock[0], &back, 1, false), 1);
		ck_assert_int_gt(sink_take(&sink, client.sock[0], NULL, LOST_US), 0);
		ck_assert(rxw_addr_equal(&sink.rx[0].path.peer, &asked));
	}
	free(t.bytes);
	sink_free(&sink);
	rxw_io_close(&client);
	rxw_io_close(&server);
}
END_TEST

START_TEST(answers_leave_from_requested_ipv6_address)
{
	struct rxw_io_options o = options_for("::1", NULL);
	struct rxw_io_group server, client;
	struct rxw_addr asked;
	struct burst t;
	struct rxw_io_tx tx;
	struct rxw_path path;
	struct sink sink;

	if (!have_ipv6())
		return;
	open_group(&client, &o);
	o.bind = address("::", 0);
	open_group(&server, &o);
	sink_init(&sink);
	asked = address("::1", rxw_addr_port(&server.bound));
	tx = burst_make(&t, &asked, 0, 3, 500, 100, 1);
	ck_assert_uint_eq(rxw_io_send(client.sock[0], &tx, 1, false), 1);
	ck_assert_int_gt(sink_take(&sink, server.sock[0], NULL, LOST_US), 0);
	path = sink.rx[0].path;
	ck_assert(rxw_addr_same_host(&path.local, &asked));
	tx.path = &path;
	ck_assert_uint_eq(rxw_io_send(server.sock[0], &tx, 1, false), 1);
	ck_assert_int_gt(sink_take(&sink, client.sock[0], NULL, LOST_US), 0);
	ck_assert(rxw_addr_equal(&sink.rx[0].path.peer, &asked));
	free(t.bytes);
	sink_free(&sink);
	rxw_io_close(&client);
	rxw_io_close(&server);
}
END_TEST

/* A socket bound to one address has it in every path, without asking the kernel for it. */
static void bound_to(const char *text, int level, int name)
{
	struct rxw_io_options o = options_for(text, NULL);
	struct rxw_io_group server, client;
	struct rxw_addr alone = address(text, 0);
	struct burst t;
	struct rxw_io_tx tx;
	struct rxw_path path;
	struct sink sink;
	int told = -1;
	socklen_t size = sizeof(told);

	open_group(&server, &o);
	open_group(&client, &o);
	sink_init(&sink);
	ck_assert_int_eq(getsockopt(server.sock[0]->fd, level, name, &told, &size), 0);
	ck_assert_int_eq(told, 0);
	tx = burst_make(&t, &server.bound, 0, 3, 500, 100, 1);
	ck_assert_uint_eq(rxw_io_send(client.sock[0], &tx, 1, false), 1);
	ck_assert_int_gt(sink_take(&sink, server.sock[0], NULL, LOST_US), 0);
	path = sink.rx[0].path;
	ck_assert(rxw_addr_equal(&path.local, &alone));
	ck_assert(rxw_addr_equal(&path.peer, &client.bound));
	tx.path = &path;
	ck_assert_uint_eq(rxw_io_send(server.sock[0], &tx, 1, false), 1);
	ck_assert_int_gt(sink_take(&sink, client.sock[0], NULL, LOST_US), 0);
	ck_assert(rxw_addr_equal(&sink.rx[0].path.peer, &server.bound));
	free(t.bytes);
	sink_free(&sink);
	rxw_io_close(&client);
	rxw_io_close(&server);
}

START_TEST(one_address_is_known)
{
	bound_to("127.0.0.2", IPPROTO_IP, IP_PKTINFO);
	if (have_ipv6())
		bound_to("::1", IPPROTO_IPV6, IPV6_RECVPKTINFO);
}
END_TEST

/* A datagram lies in the socket's queue until it is received. */
START_TEST(time_in_the_queue_is_known)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct timespec before, after;
	struct rxw_io_group g;
	struct rxw_io_tx tx;
	struct burst t;
	struct sink sink;
	int64_t passed;

	open_group(&g, &o);
	sink_init(&sink);
	tx = burst_make(&t, &g.bound, 0, 1, 300, 300, 1);
	clock_gettime(CLOCK_MONOTONIC, &before);
	ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, false), 1);
	nanosleep(&pause, NULL);
	ck_assert_int_eq(sink_take(&sink, g.sock[0], NULL, LOST_US), 1);
	clock_gettime(CLOCK_MONOTONIC, &after);
	passed = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
	ck_assert_uint_ge(sink.rx[0].waited, 4000000);
	ck_assert_int_le((int64_t)sink.rx[0].waited, passed + 1000000); /* of another clock */
	free(t.bytes);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

/* The clock of the time stamps was set since: a time that cannot be is none. */
START_TEST(times_that_cannot_be)
{
	static const struct {
		int64_t since; /* s, of a message that is received at 1000 s */
		uint64_t waited;
	} cases[] = {{999, 1000000000}, {1000, 0}, {1001, 0}, {1000000, 0}, {989, 0}, {0, 0}};
	struct rxw_io_sock sock = {.family = AF_INET};
	const struct timespec now = {.tv_sec = 1000};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct timespec since = {.tv_sec = cases[i].since};
		struct sockaddr_in from = {.sin_family = AF_INET};
		union rxw_io_control c = {0};
		struct msghdr m = {.msg_name = &from,
				   .msg_namelen = sizeof(from),
				   .msg_control = c.bytes,
				   .msg_controllen = CMSG_SPACE(sizeof(since))};
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		struct rxw_io_rx rx = {0};

		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SO_TIMESTAMPNS;
		h->cmsg_len = CMSG_LEN(sizeof(since));
		memcpy(CMSG_DATA(h), &since, sizeof(since));
		rxw_io_control_parse(&sock, &m, 100, &now, &rx);
		ck_assert_uint_eq(rx.waited, cases[i].waited);
	}
}
END_TEST

START_TEST(the_largest_set_fits)
{
	struct rxw_io_sock s = { .family = AF_INET6 };
	struct rxw_path path = { .peer = address("fe80::2", 7000), .local = address("fe80::1", 0),
				 .ifindex = 1 };
	struct rxw_io_tx tx = {.path = &path, .fragment = true, .ect = true};
	union rxw_io_control c;
	struct msghdr m = { .msg_control = c.bytes };
	unsigned count = 0;

	m.msg_controllen = rxw_io_control_build(&c, &s, &tx, 1440);
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
		count++;
	ck_assert_uint_eq(count, 4);
	ck_assert_uint_le(m.msg_controllen, sizeof(c.bytes));
}
END_TEST

/* Marks of single datagrams and trains; those of different marks are not joined. */
static void marks_pass(const char *from, const char *to, const char *name)
{
	struct rxw_io_options o = options_for(to, NULL);
	struct rxw_io_group server, client;
	struct rxw_addr asked;
	unsigned arrived = 0, marked = 0;
	struct burst t[3];
	struct rxw_io_tx tx[3];
	struct sink sink;

	o.dual = true;
	open_group(&server, &o);
	o.bind = address(from, 0);
	o.dual = false;
	open_group(&client, &o);
	rxw_io_read_ecn(&server);
	rxw_io_read_ecn(&server);
	sink_init(&sink);
	asked = address(name, rxw_addr_port(&server.bound));
	for (unsigned i = 0; i < 3; i++) {
		tx[i] = burst_make(&t[i], &asked, 100 * i, i == 1 ? 1 : 10, 500, 500, 1);
		tx[i].ect = i != 0;
	}
	ck_assert_uint_eq(rxw_io_send(client.sock[0], tx, 3, false), 3);
	while (arrived < 21) {
		int n = sink_take(&sink, server.sock[0], NULL, LOST_US);

		ck_assert_int_gt(n, 0);
		for (int i = 0; i < n; i++) {
			const struct rxw_io_rx *rx = &sink.rx[i];
			unsigned count = rx->length / 500;

			ck_assert_uint_eq(rx->ecn, arrived < 10 ? RXW_ECN_NOT : RXW_ECN_ECT0);
			arrived += count;
			marked += rx->ecn == RXW_ECN_ECT0 ? count : 0;
		}
	}
	ck_assert_uint_eq(marked, 11);
	for (unsigned i = 0; i < 3; i++)
		free(t[i].bytes);
	sink_free(&sink);
	rxw_io_close(&client);
	rxw_io_close(&server);
}

START_TEST(marks_are_sent_and_seen)
{
	marks_pass("127.0.0.1", "0.0.0.0", "127.0.0.1");
	marks_pass("127.0.0.1", "127.0.0.1", "127.0.0.1");
	if (!have_ipv6())
		return;
	marks_pass("::1", "::1", "::1");
	marks_pass("127.0.0.1", "::", "127.0.0.1");
	marks_pass("::", "::1", "::1");
}
END_TEST

START_TEST(drops_are_counted)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct sink sink;
	struct seen seen;
	const struct rxw_io_stats *stats;
	uint64_t lost;

	o.rcvbuf = 4096;
	o.gso = o.gro = 0;
	open_group(&g, &o);
	stats = rxw_io_sock_stats(g.sock[0]);
	sink_init(&sink);
	seen_init(&seen, 201);
	for (unsigned i = 0; i < 200; i++) {
		struct burst t;
		struct rxw_io_tx tx = burst_make(&t, &g.bound, i, 1, 1400, 1400, 1);

		ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, false), 1);
		free(t.bytes);
	}
	while (sink_take(&sink, g.sock[0], &seen, 0) > 0)
		;
	lost = 200 - seen.total;
	ck_assert_uint_gt(lost, 0);
	/* The count comes with the next datagram that is received. */
	for (unsigned i = 200; i < 201; i++) {
		struct burst t;
		struct rxw_io_tx tx = burst_make(&t, &g.bound, i, 1, 100, 100, 1);

		ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, false), 1);
		free(t.bytes);
	}
	ck_assert_int_eq(sink_take(&sink, g.sock[0], &seen, LOST_US), 1);
#ifdef SO_RXQ_OVFL
	ck_assert_uint_eq(stat_of(&stats->kernel_drops), lost);
#endif
	free(seen.times);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

RUN("io_control", answers_leave_from_requested_address, answers_leave_from_requested_ipv6_address,
    one_address_is_known, time_in_the_queue_is_known, times_that_cannot_be, the_largest_set_fits,
    marks_are_sent_and_seen, drops_are_counted)
