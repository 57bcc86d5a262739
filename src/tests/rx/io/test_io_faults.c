/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of injected faults: parsed, refused. Other tests of this folder inject them. */
#include "io_test.h"

static void check_fault(const struct rxw_io_fault *f, enum rxw_io_fault_kind kind, int error,
			uint64_t at, bool onward)
{
	ck_assert_int_eq(f->kind, kind);
	ck_assert_int_eq(f->error, error);
	ck_assert_uint_eq(f->at, at);
	ck_assert_int_eq(f->onward, onward);
}

START_TEST(rules_are_read)
{
	struct rxw_io_faults faults;

	ck_assert(test_faults_parse(&faults, NULL));
	ck_assert(test_faults_parse(&faults, ""));
	ck_assert_uint_eq(faults.count, 0);
	ck_assert(test_faults_parse(&faults, "gso:EIO@3,send:ENOBUFS@2+,steer:EPERM@0"));
	ck_assert_uint_eq(faults.count, 3);
	check_fault(&faults.fault[0], RXW_IO_FAULT_GSO, EIO, 3, false);
	check_fault(&faults.fault[1], RXW_IO_FAULT_SEND, ENOBUFS, 2, true);
	check_fault(&faults.fault[2], RXW_IO_FAULT_STEER, EPERM, 0, false);
}
END_TEST

START_TEST(invalid_rules_refused)
{
	static const char *const bad[] = {"gso",	 "gso:EIO",	"gso:EIO@",   "gso:EIO@x",
					  "gso:EWHAT@1", "what:EIO@1",	"gso:EIO@1x", "gso:EIO@1;",
					  ":EIO@1",	 "gso:EIO@1,,", "gso:EIO@-1", "nonsense"};
	struct rxw_io_faults faults;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!test_faults_parse(&faults, bad[i]), "taken: %s", bad[i]);
}
END_TEST

RUN("io_faults", rules_are_read, invalid_rules_refused)
