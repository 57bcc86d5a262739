/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: bursts of every shape arrive; after any refusal nothing is lost or duplicated. */
#include "io_test.h"

#define BURSTS 150u

struct run {
	const char *host;
	const char *inject;
	bool plain, gso, gro;
	bool fragment;
	bool nowait;
	/* Result */
	struct lines lines;
	uint64_t fallbacks, gso_messages, retries, received_bursts;
	unsigned failed; /* entries with an error */
	int error;       /* of the last of these */
};

/* Bursts of 1 to 64 datagrams in calls of 1 to 5 entries; each accepted one arrives once. */
static void run(struct run *r)
{
	struct rxw_io_options o = options_for(r->host, &r->lines);
	struct rxw_io_group from, to;
	struct sink sink;
	struct seen seen;
	uint32_t number = 0, accepted = 0;

	o.plain = r->plain;
	o.gso = r->gso;
	o.gro = r->gro;
	open_group(&to, &o);
	set_faults(&o, r->inject);
	open_group(&from, &o);
	sink_init(&sink);
	seen_init(&seen, BURSTS * 64);
	for (unsigned i = 0; i < BURSTS;) {
		unsigned entries = 1 + i % 5;
		struct burst t[5];
		struct rxw_io_tx tx[5];

		if (entries > BURSTS - i)
			entries = BURSTS - i;
		for (unsigned k = 0; k < entries; k++, i++) {
			uint32_t segment = i % 7 == 3 ? 400 : 1024;
			unsigned datagrams = i % 11 == 0 ? 1 : 2 + i * 7 % 63;

			tx[k] = burst_make(&t[k], &to.bound, number, datagrams, segment,
					   i % 3 ? segment : 12 + i % 300, 1 + i % 4);
			tx[k].fragment = r->fragment;
			number += datagrams;
		}
		rxw_io_send(from.sock[0], tx, entries, r->nowait);
		for (unsigned k = 0; k < entries; k++) {
			accepted += tx[k].sent_segments;
			if (tx[k].error) {
				r->failed++;
				r->error = tx[k].error;
			} else {
				uint32_t size = tx[k].segment;

				ck_assert_uint_eq(tx[k].sent_segments,
						  (tx[k].length + size - 1) / size);
			}
		}
		sink_until(&sink, to.sock[0], &seen, accepted);
		for (unsigned k = 0; k < entries; k++)
			free(t[k].bytes);
	}
	/* Loopback delivers within the send: a duplicate would have arrived by now. */
	sink_take(&sink, to.sock[0], &seen, 0);
	ck_assert_uint_eq(seen.total, accepted);
	ck_assert_uint_eq(seen.twice, 0);
	ck_assert_uint_eq(seen.wrong, 0);
	if (!r->failed)
		ck_assert_uint_eq(accepted, number);
	r->fallbacks = stat_of(&rxw_io_sock_stats(from.sock[0])->gso_fallbacks);
	r->gso_messages = stat_of(&rxw_io_sock_stats(from.sock[0])->gso_messages);
	r->retries = stat_of(&rxw_io_sock_stats(from.sock[0])->send_retries);
	r->received_bursts = stat_of(&rxw_io_sock_stats(to.sock[0])->gro_messages);
	ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(from.sock[0])->datagrams_sent), accepted);
	ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(to.sock[0])->datagrams_received), accepted);
	free(seen.times);
	sink_free(&sink);
	rxw_io_close(&from);
	rxw_io_close(&to);
}

static const char *const hosts[] = { "127.0.0.1", "::1" };

static unsigned host_count(void)
{
	return have_ipv6() ? 2 : 1;
}

START_TEST(every_way_of_sending_and_receiving)
{
	unsigned n = host_count();

	if (kernel_lacks(KERNEL_BURSTS))
		return;
	for (unsigned i = 0; i < 16 * n; i++) {
		struct run r = { .host = hosts[i / 16], .plain = i & 1, .gso = i & 2,
				 .gro = i & 4, .nowait = i & 8 };

		run(&r);
		ck_assert_uint_eq(r.failed, 0);
		ck_assert_uint_eq(r.lines.count, 0);
		if (r.gso && !r.plain && RXW_ENABLE_MMSG) {
			ck_assert_uint_gt(r.gso_messages, BURSTS / 2);
			if (r.gro)
				ck_assert_uint_gt(r.received_bursts, BURSTS / 2);
		} else {
			ck_assert_uint_eq(r.gso_messages, 0);
		}
	}
}
END_TEST

START_TEST(fragmentable_datagrams_sent_singly)
{
	unsigned n = host_count();

	for (unsigned i = 0; i < n; i++) {
		struct run r = { .host = hosts[i], .gso = true, .gro = true, .fragment = true };

		run(&r);
		ck_assert_uint_eq(r.failed, 0);
		ck_assert_uint_eq(r.gso_messages, 0);
	}
}
END_TEST

/* A refusal once, or for ever, at the first burst or at the hundredth. */
static void refused(const char *host, const char *error, bool at_once, bool is_refusal)
{
	static const char *const when[] = { "1", "100", "1+", "100+" };

	for (unsigned i = 0; i < 4; i++) {
		bool onward = i >= 2;
		char inject[64];
		struct run r = { .host = host, .gso = true, .gro = true, .inject = inject };

		snprintf(inject, sizeof(inject), "gso:%s@%s", error, when[i]);
		run(&r);
		if (!RXW_ENABLE_MMSG) {
			ck_assert_uint_eq(r.failed, 0);
			continue;
		}
		if (is_refusal) {
			/* Sent singly, remembered, logged once; or the retry was accepted. */
			bool fell = at_once || onward;

			ck_assert_msg(r.failed == 0, "%s: %u entries failed", inject, r.failed);
			ck_assert_msg(r.fallbacks == fell, "%s: %u fallbacks", inject,
				      (unsigned)r.fallbacks);
			ck_assert_uint_eq(r.lines.count, fell);
			ck_assert_uint_eq(r.retries, !at_once);
			if (fell)
				ck_assert_uint_lt(r.gso_messages, 100);
		} else {
			/* Unrelated to bursts: one retry, then the entry has the errno. */
			ck_assert_uint_eq(r.fallbacks, 0);
			ck_assert_uint_eq(r.failed != 0, onward);
		}
	}
}

START_TEST(refused_bursts_go_singly)
{
	unsigned n = host_count();

	if (kernel_lacks(KERNEL_BURSTS))
		return;
	for (unsigned i = 0; i < n; i++) {
		refused(hosts[i], "EIO", true, true);
		refused(hosts[i], "EINVAL", true, true);
		refused(hosts[i], "EMSGSIZE", false, true);
		refused(hosts[i], "EOPNOTSUPP", false, true);
		refused(hosts[i], "ENOPROTOOPT", false, true);
	}
}
END_TEST

START_TEST(other_errors_are_tried_twice)
{
	if (kernel_lacks(KERNEL_BURSTS))
		return;
	refused("127.0.0.1", "ENOBUFS", false, false);
	refused("127.0.0.1", "ENOMEM", false, false);
	refused("127.0.0.1", "EPERM", false, false);
	refused("127.0.0.1", "ECONNREFUSED", false, false);
	refused("127.0.0.1", "EHOSTUNREACH", false, false);
	refused("127.0.0.1", "ENETUNREACH", false, false);
}
END_TEST

START_TEST(an_interrupted_send_is_repeated)
{
	struct run r = { .host = "127.0.0.1", .gso = true, .gro = true,
			 .inject = "gso:EINTR@1,gso:EINTR@100,send:EINTR@1" };

	run(&r);
	ck_assert_uint_eq(r.failed, 0);
	ck_assert_uint_eq(r.retries, 0);
}
END_TEST

START_TEST(single_sends_are_tried_twice)
{
	static const char *const errors[] = { "EMSGSIZE", "EINVAL", "ENOBUFS", "EIO", "EPERM" };

	for (unsigned i = 0; i < 10; i++) {
		char inject[64];
		struct run r = { .host = "127.0.0.1", .gro = true, .plain = i & 1,
				 .inject = inject };

		snprintf(inject, sizeof(inject), "send:%s@1,send:%s@777", errors[i / 2],
			 errors[i / 2]);
		run(&r);
		ck_assert_uint_eq(r.failed, 0);
		ck_assert_uint_eq(r.retries, 2);
	}
}
END_TEST

START_TEST(a_datagram_that_fails_twice_ends_its_entry_only)
{
	/* The 100th single send fails, and so does its retry. */
	struct run r = { .host = "127.0.0.1", .inject = "send:EMSGSIZE@100,send:EMSGSIZE@101" };

	run(&r);
	ck_assert_uint_eq(r.failed, 1);
	ck_assert_int_eq(r.error, EMSGSIZE);
}
END_TEST

START_TEST(failing_datagrams_do_not_disable_bursts)
{
	/* Both fail: the path is at fault. Bursts stay in use elsewhere and later. */
	struct run r = { .host = "127.0.0.1", .gso = true, .gro = true,
			 .inject = "gso:EMSGSIZE@5,gso:EMSGSIZE@6,send:EMSGSIZE@1+" };

	if (kernel_lacks(KERNEL_BURSTS))
		return;
	run(&r);
	if (RXW_ENABLE_MMSG) {
		ck_assert_uint_ge(r.failed, 1);
		ck_assert_int_eq(r.error, EMSGSIZE);
		ck_assert_uint_eq(r.fallbacks, 0);
		ck_assert_uint_gt(r.gso_messages, BURSTS / 2);
	}
}
END_TEST

START_TEST(a_full_socket_does_not_block)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct burst t[4];
	struct rxw_io_tx tx[4];

	set_faults(&o, "send:EAGAIN@3+");
	open_group(&g, &o);
	for (unsigned i = 0; i < 4; i++)
		tx[i] = burst_make(&t[i], &g.bound, i, 1, 100, 100, 1);
	ck_assert_uint_eq(rxw_io_send(g.sock[0], tx, 4, true), 2);
	ck_assert_int_eq(tx[0].error, 0);
	ck_assert_int_eq(tx[1].error, 0);
	ck_assert_int_eq(tx[2].error, EAGAIN);
	ck_assert_int_eq(tx[3].error, EAGAIN);
	ck_assert_uint_eq(tx[3].sent_segments, 0);
	for (unsigned i = 0; i < 4; i++)
		free(t[i].bytes);
	rxw_io_close(&g);
}
END_TEST

START_TEST(longer_than_the_kernel_accepts)
{
	/* 100 datagrams of 1,440 bytes in 400 pieces of memory, in one entry. */
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct burst t;
	struct rxw_io_tx tx;
	struct iovec iov[400];
	struct sink sink;
	struct seen seen;

	if (kernel_lacks(KERNEL_BURSTS))
		return;
	open_group(&g, &o);
	sink_init(&sink);
	seen_init(&seen, 100);
	tx = burst_make(&t, &g.bound, 0, 100, 1440, 1440, 1);
	for (unsigned i = 0; i < 400; i++) {
		iov[i].iov_base = t.bytes + 360 * i;
		iov[i].iov_len = 360;
	}
	tx.iov = iov;
	tx.iov_count = 400;
	ck_assert_uint_eq(rxw_io_send(g.sock[0], &tx, 1, false), 1);
	ck_assert_uint_eq(tx.sent_segments, 100);
	sink_until(&sink, g.sock[0], &seen, 100);
	seen_all_once(&seen);
	if (RXW_ENABLE_MMSG)
		ck_assert_uint_eq(stat_of(&rxw_io_sock_stats(g.sock[0])->syscalls_send), 1);
	free(t.bytes);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

START_TEST(more_pieces_than_a_message_can_have)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct burst t[2];
	struct rxw_io_tx tx[2];
	struct iovec iov[1400];

	/* One datagram of 700 pieces: its entry fails, the next one does not. */
	open_group(&g, &o);
	tx[0] = burst_make(&t[0], &g.bound, 0, 2, 700, 700, 1);
	tx[1] = burst_make(&t[1], &g.bound, 2, 1, 700, 700, 1);
	for (unsigned i = 0; i < 1400; i++) {
		iov[i].iov_base = t[0].bytes + i;
		iov[i].iov_len = 1;
	}
	tx[0].iov = iov;
	tx[0].iov_count = 1400;
	ck_assert_uint_eq(rxw_io_send(g.sock[0], tx, 2, false), 1);
	ck_assert_int_ne(tx[0].error, 0);
	ck_assert_int_eq(tx[1].error, 0);
	free(t[0].bytes);
	free(t[1].bytes);
	rxw_io_close(&g);
}
END_TEST

struct sender {
	struct rxw_io_sock *s;
	struct rxw_addr to;
	uint32_t number;
};

static void *send_hundred(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < 100; i++) {
		struct burst t;
		struct rxw_io_tx tx = burst_make(&t, &s->to, s->number + 8 * i, 8, 1200, 600, 2);

		if (i % 10 == 9)
			tx.fragment = true;
		if (rxw_io_send(s->s, &tx, 1, false) != 1)
			abort();
		free(t.bytes);
	}
	return NULL;
}

START_TEST(two_threads_on_one_socket)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct sender sender[2];
	pthread_t thread[2];
	struct sink sink;
	struct seen seen;

	set_faults(&o, "gso:EIO@50");
	open_group(&g, &o);
	sink_init(&sink);
	seen_init(&seen, 1600);
	for (unsigned i = 0; i < 2; i++) {
		sender[i] = (struct sender){ g.sock[0], g.bound, i * 800 };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, send_hundred, &sender[i]), 0);
	}
	sink_until(&sink, g.sock[0], &seen, 1600);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	seen_all_once(&seen);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

RUN("io_send", every_way_of_sending_and_receiving, fragmentable_datagrams_sent_singly,
    refused_bursts_go_singly, other_errors_are_tried_twice, an_interrupted_send_is_repeated,
    single_sends_are_tried_twice, a_datagram_that_fails_twice_ends_its_entry_only,
    failing_datagrams_do_not_disable_bursts, a_full_socket_does_not_block,
    longer_than_the_kernel_accepts, more_pieces_than_a_message_can_have, two_threads_on_one_socket)
