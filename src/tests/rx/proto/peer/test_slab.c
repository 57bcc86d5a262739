/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes by index: growth keeps existing nodes, memory limits are reported. */
#include <string.h>

#include "tests/rx/proto/bench.h"

struct node {
	uint64_t value;
	uint32_t more;
};

START_TEST(grows)
{
	struct bench b;
	struct rxw_slab s;
	struct node own[3];

	bench_init(&b, true);
	rxw_slab_init(&s, own, sizeof(own[0]), 3);
	for (unsigned i = 0; i < 1000; i++) {
		uint16_t k = rxw_slab_get(&s, b.pool);

		ck_assert_uint_ne(k, RXW_NO_NODE);
		*(struct node *)rxw_slab_at(&s, k) = (struct node){i, k};
	}
	ck_assert_uint_eq(s.used, 1000);
	for (unsigned i = 0; i < 1000; i++) {
		struct node *n = rxw_slab_at(&s, (uint16_t)i);

		ck_assert_uint_lt(n->value, 1000);
		ck_assert_uint_eq(n->more, i);
	}
	for (unsigned i = 0; i < 1000; i++)
		rxw_slab_put(&s, (uint16_t)i);
	ck_assert_uint_eq(s.used, 0);
	rxw_slab_fini(&s);
	bench_free(&b);
}
END_TEST

START_TEST(has_a_ceiling)
{
	struct bench b;
	struct rxw_slab s;
	struct node own[3];
	unsigned n = 0;

	bench_init(&b, true);
	rxw_slab_init(&s, own, sizeof(own[0]), 3);
	ck_assert(rxw_slab_reserve(&s, b.pool, 100));
	ck_assert_uint_ge(s.cap, 100);
	while (rxw_slab_get(&s, b.pool) != RXW_NO_NODE)
		n++;
	ck_assert_uint_eq(n, RXW_NO_NODE - 1);
	ck_assert(!rxw_slab_reserve(&s, b.pool, 1));
	rxw_slab_fini(&s);
	ck_assert_uint_eq(rxw_slab_get(&s, NULL), RXW_NO_NODE);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("slab");
	TCase *tcase = tcase_create("slab");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, grows);
	tcase_add_test(tcase, has_a_ceiling);
	return bench_main(suite);
}
