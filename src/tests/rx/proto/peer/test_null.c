/* SPDX-License-Identifier: BSD-2-Clause */
/* rxnull: index 0, no framing of the data, no exchange. */
#include "tests/rx/proto/bench.h"

START_TEST(null_class)
{
	const struct rxw_security_class *k = &rxw_security_null_class.class;

	ck_assert_uint_eq(k->index, 0);
	ck_assert(k->room == NULL && k->seal == NULL && k->verify == NULL);
	ck_assert_ptr_null(k->challenge);
	ck_assert_ptr_null(k->respond);
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
