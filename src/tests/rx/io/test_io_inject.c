/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of fault injection: parsed, refused, counted. */
#include "io_test.h"

START_TEST(rules_are_read)
{
	struct rxw_io_sock s = { 0 };

	ck_assert_int_eq(rxw_io_inject_parse(&s, NULL), 0);
	ck_assert_int_eq(rxw_io_inject_parse(&s, ""), 0);
	ck_assert_uint_eq(s.fault_count, 0);
	ck_assert_int_eq(rxw_io_inject_parse(&s, "gso:EIO@3,send:ENOBUFS@2+,steer:EPERM@0"), 0);
	ck_assert_uint_eq(s.fault_count, 3);
	ck_assert_int_eq(rxw_io_inject_setup(&s, RXW_IO_FAULT_STEER), EPERM);
	ck_assert_int_eq(rxw_io_inject_setup(&s, RXW_IO_FAULT_GSO), 0);
	for (unsigned i = 1; i <= 5; i++) {
		ck_assert_int_eq(rxw_io_inject_peek(&s, RXW_IO_FAULT_GSO, 0), i == 3 ? EIO : 0);
		ck_assert_int_eq(rxw_io_inject_peek(&s, RXW_IO_FAULT_SEND, 0),
				 i >= 2 ? ENOBUFS : 0);
		ck_assert_int_eq(rxw_io_inject_peek(&s, RXW_IO_FAULT_GSO, 1), i == 2 ? EIO : 0);
		rxw_io_inject_count(&s, RXW_IO_FAULT_GSO);
		rxw_io_inject_count(&s, RXW_IO_FAULT_SEND);
	}
}
END_TEST

START_TEST(invalid_rules_refused)
{
	static const char *const bad[] = { "gso", "gso:EIO", "gso:EIO@", "gso:EIO@x", "gso:EWHAT@1",
					   "what:EIO@1", "gso:EIO@1x", "gso:EIO@1;", ":EIO@1",
					   "gso:EIO@1,,", "gso:EIO@-1" };
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_sock s = { 0 };
	struct rxw_io_group g;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(rxw_io_inject_parse(&s, bad[i]) == -EINVAL, "taken: %s", bad[i]);
	o.inject = "nonsense";
	ck_assert_int_eq(rxw_io_open(&g, &o), -EINVAL);
}
END_TEST

RUN("io_inject", rules_are_read, invalid_rules_refused)
