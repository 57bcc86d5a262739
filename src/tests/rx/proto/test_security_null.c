/* SPDX-License-Identifier: BSD-2-Clause */
/* rxnull: index 0, nothing around the data, no exchange. */
#include "bench.h"

START_TEST(null_class)
{
	const struct rxw_security_ops *ops = rxw_security_null_class.ops;

	ck_assert_uint_eq(ops->index, 0);
	ck_assert_uint_eq(ops->head + ops->tail, 0);
	ck_assert(!ops->needs_verify && !ops->deferred);
	ck_assert_ptr_null(ops->challenge);
	ck_assert_ptr_null(ops->respond);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("security_null");
	TCase *tcase = tcase_create("security_null");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, null_class);
	return bench_main(suite);
}
