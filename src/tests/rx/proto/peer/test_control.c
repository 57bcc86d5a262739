/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets without data: the fields of 1.5, limits, output to an unvalidated address. */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;

START_TEST(fields)
{
	struct rxw_ctl *ctl;
	struct rxw_header h;

	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	ctl = rxw_ctl_add(&c->p, &b.out, RXW_ACK, RXW_SLOW_START_OK, 2, 9, 0x41, 10);
	ck_assert_ptr_nonnull(ctl);
	ck_assert_uint_eq(ctl->length, 38);
	ck_assert_uint_eq(ctl->padding, 0);
	ck_assert(ctl->client);
	ck_assert(rxw_header_get(ctl->bytes, ctl->length, &h));
	ck_assert_uint_eq(h.epoch, BENCH_EPOCH);
	ck_assert_uint_eq(h.cid, BENCH_CID | 2);
	ck_assert_uint_eq(h.call, 9);
	ck_assert_uint_eq(h.seq, 0);
	ck_assert_uint_eq(h.serial, 1);
	ck_assert_uint_eq(h.flags, RXW_SLOW_START_OK | RXW_CLIENT_INITIATED);
	ck_assert_uint_eq(h.user_status, 0x41);
	ck_assert_uint_eq(h.spare, 0);
	ck_assert_uint_eq(h.service, BENCH_SERVICE);
	b.out.ctl_count = 0;
	/* A full record accepts no more, and no serial is used. */
	b.out.ctl_room = 0;
	ck_assert_ptr_null(rxw_ctl_add(&c->p, &b.out, RXW_ACK, 0, 0, 1, 0, 0));
	ck_assert_uint_eq(c->p.serial, 1);
	bench_free(&b);
}
END_TEST

START_TEST(busy)
{
	struct bench_packet *k;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
	rxw_pconn_write_busy(&c->p, 3, 12, &b.out);
	bench_settle(&b);
	k = bench_expect(&b, RXW_BUSY);
	ck_assert_uint_eq(k->length, 28);
	ck_assert_uint_eq(k->h.call, 12);
	ck_assert_uint_eq(k->h.cid, BENCH_CID | 3);
	ck_assert_uint_eq(k->h.flags, 0);
	bench_free(&b);
}
END_TEST

/*
 * All output to an unvalidated address, except PING and CHALLENGE, stays within three times the
 * input.
 */
START_TEST(answers_to_strangers)
{
	uint8_t packet[200];
	uint64_t in = 0, out = 0;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	for (uint32_t i = 1; i <= 40; i++) {
		uint32_t size = bench_data(&b, packet, 1, 2 + i % 5, 0, 0);

		bench_input(&b, c, packet, size, size);
		in += size + 28;
	}
	for (unsigned i = 0; i < b.count; i++)
		if (b.sent[i].h.type != RXW_ACK || b.sent[i].ack.reason != RXW_ACK_PING)
			out += b.sent[i].length + 28;
	ck_assert_uint_gt(out, 0);
	ck_assert_uint_le(out, 3 * in);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control");
	TCase *tcase = tcase_create("control");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, fields);
	tcase_add_test(tcase, busy);
	tcase_add_test(tcase, answers_to_strangers);
	return bench_main(suite);
}
