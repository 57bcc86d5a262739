/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits on connections of unvalidated addresses. */
#include <arpa/inet.h>

#include "tests/rx/proto/bench.h"

static const uint64_t key[2] = {5, 6};

static struct rxw_addr *address(uint32_t host, unsigned port)
{
	static struct rxw_addr a;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	in.sin_addr.s_addr = htonl(host);
	rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in));
	return &a;
}

START_TEST(per_host)
{
	struct rxw_unvalidated *s = rxw_unvalidated_create(key, 64, 8192);

	/*
	 * Counted by host, for all of its ports. Beyond the limit no call is refused, but the
	 * address must be validated.
	 */
	for (unsigned i = 0; i < 64; i++)
		ck_assert_int_eq(rxw_unvalidated_add(s, address(1, i + 1), false), RXW_ADMIT);
	ck_assert_int_eq(rxw_unvalidated_add(s, address(1, 99), false), RXW_ADMIT_STRICT);
	ck_assert_int_eq(rxw_unvalidated_add(s, address(2, 1), false), RXW_ADMIT);
	ck_assert_int_eq(rxw_unvalidated_add(s, address(1, 1), true), RXW_ADMIT);
	rxw_unvalidated_remove(s, address(1, 1));
	rxw_unvalidated_remove(s, address(1, 1));
	rxw_unvalidated_remove(s, address(1, 1));
	ck_assert_int_eq(rxw_unvalidated_add(s, address(1, 1), false), RXW_ADMIT);
	ck_assert_uint_eq(rxw_unvalidated_total(s), 65);
	rxw_unvalidated_remove(s, address(77, 1)); /* unknown */
	ck_assert_uint_eq(rxw_unvalidated_total(s), 65);
	rxw_unvalidated_destroy(s);
}
END_TEST

START_TEST(total)
{
	struct rxw_unvalidated *s = rxw_unvalidated_create(key, 64, 100);

	for (unsigned i = 0; i < 100; i++) {
		enum rxw_admission a = rxw_unvalidated_add(s, address(i + 1, 1), false);

		ck_assert_int_eq(a, i < 50 ? RXW_ADMIT : RXW_ADMIT_STRICT);
		ck_assert_int_eq(rxw_unvalidated_crowded(s), i + 1 > 25);
	}
	ck_assert_int_eq(rxw_unvalidated_add(s, address(500, 1), false), RXW_REFUSE);
	ck_assert_int_eq(rxw_unvalidated_add(s, address(500, 1), true), RXW_ADMIT);
	rxw_unvalidated_destroy(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unvalidated");
	TCase *tcase = tcase_create("unvalidated");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, per_host);
	tcase_add_test(tcase, total);
	return bench_main(suite);
}
