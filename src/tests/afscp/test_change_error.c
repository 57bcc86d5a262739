/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the decisions after failed changes. */
#include "afs/client/change.h"
#include "tests/tools/testing.h"
#include "afscp/change.h"

static struct afs_error of(int32_t code, enum rxw_origin origin)
{
	struct afs_error error;

	afs_error_code(&error, "it", code, origin);
	return error;
}

#define UAE 49733376 /* EPERM in the numbers that servers send */

/* Which failures leave it open whether the server has made a change. */
START_TEST(unknown)
{
	static const struct {
		int32_t code;
		enum rxw_origin origin;
		bool unknown;
	} known[] = {
		{RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, true},
		{RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true},
		{RXW_NETWORK_RESET, RXW_ORIGIN_LOCAL, true},
		{RXW_CALL_TIMEOUT, RXW_ORIGIN_PEER, true},
		{RXW_RESTARTING, RXW_ORIGIN_PEER, true},
		{110, RXW_ORIGIN_PEER, false},
		{106, RXW_ORIGIN_PEER, false},
		{UAE + 16, RXW_ORIGIN_PEER, false},
		{RXW_RPC_OPCODE, RXW_ORIGIN_PEER, false},
		{17, RXW_ORIGIN_PEER, false},
	};
	struct afs_error error;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		error = of(known[i].code, known[i].origin);
		ck_assert_msg(afs_error_unknown(&error) == known[i].unknown, "%d", known[i].code);
	}
	/* The call has not begun. */
	error = of(RXW_CALL_DEAD, RXW_ORIGIN_LOCAL);
	error.result = -RXW_ECALL;
	ck_assert(!afs_error_unknown(&error));
}
END_TEST

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

START_TEST(decisions)
{
	static const struct {
		enum change_op op;
		int number;
		enum decision decision;
	} known[] = {
		{CHANGE_CREATE, EEXIST, DECIDE_LOOK},	{CHANGE_MKDIR, EEXIST, DECIDE_LOOK},
		{CHANGE_SYMLINK, EEXIST, DECIDE_LOOK},	{CHANGE_MOUNT, EEXIST, DECIDE_LOOK},
		{CHANGE_LINK, EEXIST, DECIDE_LOOK},	{CHANGE_REMOVE, ENOENT, DECIDE_DONE},
		{CHANGE_RMDIR, ENOENT, DECIDE_DONE},	{CHANGE_RENAME, ENOENT, DECIDE_LOOK},
		{CHANGE_CREATE, EACCES, DECIDE_FAIL},	{CHANGE_CREATE, ENOENT, DECIDE_FAIL},
		{CHANGE_REMOVE, EEXIST, DECIDE_FAIL},	{CHANGE_RENAME, EEXIST, DECIDE_FAIL},
		{CHANGE_LOCK, EAGAIN, DECIDE_FAIL},	{CHANGE_STORE, EEXIST, DECIDE_FAIL},
		{CHANGE_RMDIR, ENOTEMPTY, DECIDE_FAIL},
	};
	struct afs_error error = {.origin = RXW_ORIGIN_PEER};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		error.number = known[i].number;
		ck_assert_int_eq(change_decide(known[i].op, true, &error), known[i].decision);
		/* A first try means what it says, unless the FID tells. */
		ck_assert_int_eq(change_decide(known[i].op, false, &error),
				 known[i].op == CHANGE_RENAME && known[i].number == ENOENT
					 ? DECIDE_LOOK
					 : DECIDE_FAIL);
		/* A restarted server may have got it twice. */
		error.resent = true;
		ck_assert_int_eq(change_decide(known[i].op, false, &error),
				 known[i].op == CHANGE_CREATE ? DECIDE_FAIL : known[i].decision);
		error.resent = false;
	}
}
END_TEST

START_TEST(ours)
{
	const AFSStoreStatus how = {
		.Mask = AFS_SETMODTIME | AFS_SETMODE, .ClientModTime = 1000, .UnixModeBits = 04644};
	AFSFetchStatus found = {
		.FileType = 1, .LinkCount = 1, .ClientModTime = 1000, .UnixModeBits = 0644};

	ck_assert(change_is_ours(CHANGE_CREATE, &how, &found));
	found.ClientModTime++;
	ck_assert(!change_is_ours(CHANGE_CREATE, &how, &found));
	found.ClientModTime--;
	found.UnixModeBits = 0600;
	ck_assert(!change_is_ours(CHANGE_CREATE, &how, &found));
	found.UnixModeBits = 0644;
	found.Length_hi = 1;
	ck_assert(!change_is_ours(CHANGE_CREATE, &how, &found));
	found.Length_hi = 0;
	found.LinkCount = 2;
	ck_assert(!change_is_ours(CHANGE_CREATE, &how, &found));
	ck_assert(!change_is_ours(CHANGE_MKDIR, &how, &found));
	found.FileType = 2;
	ck_assert(change_is_ours(CHANGE_MKDIR, &how, &found));
	found.LinkCount = 3;
	ck_assert(!change_is_ours(CHANGE_MKDIR, &how, &found));
}
END_TEST

START_TEST(repeats)
{
	struct afs_error error = of(RXW_CALL_DEAD, RXW_ORIGIN_LOCAL);

	ck_assert(change_may_repeat(&error));
	error = of(110, RXW_ORIGIN_PEER);
	ck_assert(change_may_repeat(&error));
	error = of(RXW_RESTARTING, RXW_ORIGIN_PEER);
	ck_assert(change_may_repeat(&error));
	error = of(RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL);
	error.remedy = AFS_REMEDY_OTHER;
	ck_assert(change_may_repeat(&error));
	/* VNOSERVICE: there is no other site of a read-write volume. */
	error = of(105, RXW_ORIGIN_PEER);
	ck_assert(change_may_repeat(&error));
	error = of(112, RXW_ORIGIN_PEER);
	ck_assert(!change_may_repeat(&error));
	error = of(UAE + 12, RXW_ORIGIN_PEER);
	ck_assert(!change_may_repeat(&error));
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

TEST_MAIN("change_error", unknown, numbers, decisions, ours, repeats, remedies)
