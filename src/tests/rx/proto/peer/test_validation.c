/* SPDX-License-Identifier: BSD-2-Clause */
/* Address validation: what an address may have, recipients of a cookie PING, and valid answers. */
#include <arpa/inet.h>

#include "proto/peer/validation.h"
#include "tests/rx/proto/bench.h"

#define ASKED_AT (1000 * RXW_SEC)
#define LEAST	 0x80000000u

static const uint64_t secret[2] = {0x0123456789abcdefull, 77}, other_secret[2] = {1, 2};
static const struct rxw_header call = {.epoch = 0x80000123,
				       .cid = 0x4001,
				       .call = 7,
				       .type = RXW_DATA,
				       .service = 9,
				       .security = 2};

static struct rxw_addr *address(uint32_t host, unsigned port)
{
	static struct rxw_addr a;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	in.sin_addr.s_addr = htonl(host);
	rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in));
	return &a;
}

static bool answers(struct rxw_cookies *q, uint32_t host, unsigned port, const struct rxw_header *h,
		    uint32_t serial)
{
	return rxw_cookie_check(q, address(host, port), h, serial, ASKED_AT);
}

START_TEST(only_who_was_asked)
{
	struct rxw_cookies *q = rxw_cookies_create(secret, ASKED_AT),
			   *r = rxw_cookies_create(other_secret, ASKED_AT);
	uint32_t serial = rxw_cookie_issue(q, address(1, 7000), &call, ASKED_AT),
		 other = rxw_cookie_issue(r, address(1, 7000), &call, ASKED_AT);
	struct rxw_header h;

	/* Older than any initial serial of a connection. */
	ck_assert_uint_gt(serial, LEAST + (1u << 24) - 1);
	ck_assert_int_gt((int32_t)(1u - serial), 0);
	ck_assert_int_gt((int32_t)((1u << 24) - serial), 0);
	ck_assert(answers(q, 1, 7000, &call, serial));
	ck_assert(answers(q, 1, 7000, &call, serial)); /* stateless, so no budget is used up */
	ck_assert(!answers(q, 1, 7001, &call, serial));
	ck_assert(!answers(q, 2, 7000, &call, serial));
	ck_assert(!answers(q, 1, 7000, &call, serial + 1));
	ck_assert(!answers(q, 1, 7000, &call, serial ^ 1u << 30));
	ck_assert(!answers(q, 1, 7000, &call, 0));
	ck_assert_uint_ne(serial, other);
	ck_assert(!answers(r, 1, 7000, &call, serial));
	h = call;
	h.epoch++;
	ck_assert(!answers(q, 1, 7000, &h, serial));
	h = call;
	h.cid++;
	ck_assert(!answers(q, 1, 7000, &h, serial));
	h = call;
	h.call++;
	ck_assert(!answers(q, 1, 7000, &h, serial));
	/* An answer has its own type, sequence number and flags. */
	h = call;
	h.type = RXW_ACK;
	h.serial = 99;
	ck_assert(answers(q, 1, 7000, &h, serial));
	rxw_cookies_destroy(q);
	rxw_cookies_destroy(r);
	rxw_cookies_destroy(NULL);
}
END_TEST

START_TEST(not_for_long)
{
	struct rxw_cookies *q = rxw_cookies_create(secret, ASKED_AT);
	uint32_t serial = rxw_cookie_issue(q, address(1, 7000), &call, ASKED_AT), next;

	ck_assert_uint_ne(serial, 0);
	ck_assert(rxw_cookie_check(q, address(1, 7000), &call, serial, ASKED_AT + 4 * RXW_SEC));
	next = rxw_cookie_issue(q, address(1, 7000), &call, ASKED_AT + 4 * RXW_SEC);
	ck_assert_uint_ne(next, 0);
	ck_assert_uint_ne(next, serial);
	ck_assert(rxw_cookie_check(q, address(1, 7000), &call, serial, ASKED_AT + 4 * RXW_SEC));
	ck_assert(!rxw_cookie_check(q, address(1, 7000), &call, serial, ASKED_AT + 8 * RXW_SEC));
	ck_assert(rxw_cookie_check(q, address(1, 7000), &call, next, ASKED_AT + 8 * RXW_SEC));
	/* Without a recently sent cookie no answer is accepted. */
	ck_assert(!rxw_cookie_check(q, address(1, 7000), &call, next, ASKED_AT + 12 * RXW_SEC));
	rxw_cookies_destroy(q);
}
END_TEST

START_TEST(not_often)
{
	struct rxw_cookies *q = rxw_cookies_create(secret, ASKED_AT);
	unsigned asked = 0;

	/* Once per host, for all of its ports and calls. */
	for (unsigned i = 0; i < 1000; i++) {
		struct rxw_header h = call;

		h.cid += 4 * i;
		asked += rxw_cookie_issue(q, address(1, 7000 + i), &h, ASKED_AT) != 0;
	}
	ck_assert_uint_eq(asked, 1);
	/* All of them together at 4,000 per second. */
	for (uint32_t i = 0; i < 20000; i++)
		asked += rxw_cookie_issue(q, address(2 + i, 7000), &call, ASKED_AT) != 0;
	ck_assert_uint_eq(asked, 4000);
	for (uint32_t i = 0; i < 20000; i++)
		asked += rxw_cookie_issue(q, address(100000 + i, 7000), &call,
					  ASKED_AT + RXW_SEC / 2) != 0;
	ck_assert_uint_eq(asked, 6000);
	rxw_cookies_destroy(q);
}
END_TEST

START_TEST(packet)
{
	struct rxw_cookies *q = rxw_cookies_create(secret, ASKED_AT);
	uint32_t serial = rxw_cookie_issue(q, address(1, 7000), &call, ASKED_AT);
	uint8_t bytes[RXW_ACK_MAX_SIZE];
	size_t size = rxw_cookie_put_ping(bytes, &call, serial, 1444, 32);
	struct rxw_header h;
	struct rxw_ack ack;

	ck_assert(rxw_header_get(bytes, size, &h));
	ck_assert(rxw_ack_get(bytes + RXW_HEADER_SIZE, size - RXW_HEADER_SIZE, 0, &ack));
	/* IP and UDP included, at most three times the smallest packet that begins a call. */
	ck_assert_uint_le(size + 28, 3 * (RXW_HEADER_SIZE + 28));
	ck_assert_uint_eq(h.epoch, call.epoch);
	ck_assert_uint_eq(h.cid, call.cid);
	ck_assert_uint_eq(h.call, call.call);
	ck_assert_uint_eq(h.seq, 0);
	ck_assert_uint_eq(h.serial, serial);
	ck_assert_uint_eq(h.type, RXW_ACK);
	ck_assert_uint_eq(h.service, call.service);
	ck_assert_uint_eq(h.security, call.security);
	ck_assert(h.flags & RXW_REQUEST_ACK);
	ck_assert(!(h.flags & RXW_CLIENT_INITIATED));
	ck_assert_uint_eq(ack.reason, RXW_ACK_PING);
	ck_assert_uint_eq(ack.first, 1);
	ck_assert_uint_eq(ack.count, 0);
	ck_assert_uint_eq(ack.serial, 0);
	ck_assert_uint_eq(ack.rwind, 32);
	ck_assert_uint_eq(ack.if_mtu, 1444);
	rxw_cookies_destroy(q);
}
END_TEST

/* The rights of an address before, within and after its validation, at a server and at a client. */
START_TEST(rights_of_an_address)
{
	const uint64_t at = 100 * RXW_SEC, key[2] = {5, 6};
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_peer *p = rxw_peer_get(t, address(1, 7000), at);

	ck_assert(!rxw_peer_known(p, false, at) && !rxw_peer_trusted(p, false, at));
	ck_assert(rxw_peer_known(p, true, at) && rxw_peer_trusted(p, true, at));
	ck_assert(rxw_peer_awaited(p, at, at) && !rxw_peer_awaited(p, 0, at));
	ck_assert(rxw_peer_proof_due(p, at));
	p->local =
		true; /* its packets are not forged, but nothing has proved that it receives ours */
	ck_assert(!rxw_peer_known(p, false, at) && rxw_peer_trusted(p, false, at));
	p->local = false;
	ck_assert(rxw_peer_set_validated(p, at));
	ck_assert(!rxw_peer_set_validated(p, at));
	ck_assert(rxw_peer_known(p, false, at) && rxw_peer_trusted(p, false, at));
	ck_assert(!rxw_peer_awaited(p, at, at) && !rxw_peer_proof_due(p, at));
	/* Bytes do not count while it is validated. */
	rxw_peer_heard(p, 1000, 1, at);
	ck_assert(!rxw_peer_proof_due(p, at + 29 * RXW_SEC));
	ck_assert(rxw_peer_proof_due(p, at + 30 * RXW_SEC));
	ck_assert(rxw_peer_trusted(p, false, at + 59 * RXW_SEC));
	ck_assert(!rxw_peer_trusted(p, false, at + 60 * RXW_SEC));
	ck_assert_uint_eq(rxw_peer_allowance(p, at + 60 * RXW_SEC), 0);
	rxw_peer_table_destroy(t);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("validation");
	TCase *tcase = tcase_create("validation");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, only_who_was_asked);
	tcase_add_test(tcase, not_for_long);
	tcase_add_test(tcase, not_often);
	tcase_add_test(tcase, packet);
	tcase_add_test(tcase, rights_of_an_address);
	return bench_main(suite);
}
