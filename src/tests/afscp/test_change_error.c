/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of failures: what codes mean, and what users can do about failed changes. */
#include "afs/numbers.h"
#include "tests/tools/testing.h"
#include "afscp/change.h"

static struct afs_error of(int32_t code, enum rxw_origin origin)
{
	struct afs_error error;

	afs_error_code(&error, "it", code, origin);
	return error;
}

#define UAE 49733376 /* EPERM in the numbers that servers send */

START_TEST(numbers)
{
	ck_assert_int_eq(of(UAE + 16, RXW_ORIGIN_PEER).number, EEXIST);
	ck_assert_int_eq(of(17, RXW_ORIGIN_PEER).number, EEXIST);
	ck_assert_int_eq(of(109, RXW_ORIGIN_PEER).number, EDQUOT);
	ck_assert_int_eq(of(108, RXW_ORIGIN_PEER).number, ENOSPC);
	ck_assert_int_eq(of(30, RXW_ORIGIN_PEER).number, EROFS);
	/* Volumes have their own codes from 101 on. */
	ck_assert_int_eq(of(110, RXW_ORIGIN_PEER).number, 0);
	ck_assert_int_eq(of(103, RXW_ORIGIN_PEER).number, 0);
	ck_assert_int_eq(of(17, RXW_ORIGIN_LOCAL).number, 0);
	ck_assert_int_eq(of(-1, RXW_ORIGIN_PEER).number, 0);
}
END_TEST

/* Which failures may go away with time. */
START_TEST(passing)
{
	static const struct {
		int32_t code;
		enum rxw_origin origin;
		bool passing;
	} known[] = {
		{RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, true},
		{RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true},
		{RXW_NETWORK_RESET, RXW_ORIGIN_LOCAL, true},
		{RXW_NETWORK_RESET, RXW_ORIGIN_PEER, false},
		{RXW_RESTARTING, RXW_ORIGIN_PEER, true},
		{AFS_VBUSY, RXW_ORIGIN_PEER, true},
		{AFS_VBUSY, RXW_ORIGIN_LOCAL, false},
		{AFS_VNOSERVICE, RXW_ORIGIN_PEER, true},
		{AFS_VMOVED, RXW_ORIGIN_PEER, true},
		{AFS_VNOVNODE, RXW_ORIGIN_PEER, false},
		{UAE + 12, RXW_ORIGIN_PEER, false},
		{RXW_RPC_OPCODE, RXW_ORIGIN_PEER, false},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_msg(of(known[i].code, known[i].origin).passing == known[i].passing, "%d",
			      known[i].code);
}
END_TEST

/* A long path does not hide the reason behind it. */
START_TEST(long_paths)
{
	struct afs_error error;
	char path[1000];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	afs_error_text(&error, "%s: the reason", path);
	ck_assert_uint_eq(strlen(error.text), sizeof(error.text) - 1);
	ck_assert_str_eq(error.text + strlen(error.text) - strlen(": the reason"), ": the reason");
	ck_assert_ptr_nonnull(strstr(error.text, "x...x"));
}
END_TEST

/* Each refusal of a file server that users can do something about has a remedy. */
START_TEST(remedies)
{
	static const int refused[] = {EACCES, EPERM, EDQUOT, ENOSPC, EROFS};
	struct afs_error error = {.origin = RXW_ORIGIN_PEER};

	for (int op = CHANGE_CREATE; op <= CHANGE_LOCK; op++)
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
			error.number = refused[i];
			ck_assert_ptr_nonnull(change_remedy((enum change_op)op, &error));
		}
	error.number = EAGAIN;
	ck_assert_ptr_nonnull(strstr(change_remedy(CHANGE_LOCK, &error), "locked"));
	error.number = EXDEV;
	ck_assert_ptr_nonnull(strstr(change_remedy(CHANGE_LINK, &error), "ln -s"));
	ck_assert_ptr_nonnull(strstr(change_remedy(CHANGE_RENAME, &error), "get and put"));
	error.number = E2BIG;
	ck_assert_ptr_nonnull(strstr(change_remedy(CHANGE_ACL, &error), "groups"));
	error.number = 0;
	ck_assert_ptr_null(change_remedy(CHANGE_CREATE, &error));
	error = of(102, RXW_ORIGIN_PEER);
	ck_assert_ptr_nonnull(strstr(change_remedy(CHANGE_STORE, &error), "removed"));
}
END_TEST

TEST_MAIN("change_error", numbers, passing, long_paths, remedies)
