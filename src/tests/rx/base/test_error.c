/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/error.c: a text for every code, portable errno both ways. */

#include "testing.h"

#include <errno.h>

#include <rxwire/error.h>

#define UAE 49733376

START_TEST(result_texts)
{
	for (int n = 0; n <= RXW_ENOKEY; n++) {
		ck_assert_str_eq(rxw_strerror(n), rxw_strerror(-n));
		ck_assert_str_ne(rxw_strerror(n), "unknown result");
		for (int k = 0; k < n; k++)
			ck_assert_str_ne(rxw_strerror(n), rxw_strerror(k));
	}
	ck_assert_str_eq(rxw_strerror(RXW_ENOKEY + 1), "unknown result");
	ck_assert_str_eq(rxw_strerror(INT32_MIN), "unknown result");
	ck_assert_str_eq(rxw_strerror(INT32_MAX), "unknown result");
}
END_TEST

START_TEST(code_texts)
{
	static const struct {
		int32_t code;
		const char *part;
	} cases[] = {
		{0, "success"},
		{-1, "dead"},
		{-2, "unknown service"},
		{-3, "timed out"},
		{-5, "protocol"},
		{-6, "aborted"},
		{-100, "restarting"},
		{-101, "mapping"},
		{-450, "encode"},
		{-455, "operation"},
		{-457, "free"},
		{2, "ENOENT"},
		{13, "EACCES"},
		{30, "EROFS"},
		{101, "VSALVAGE"},
		{103, "VNOVOL"},
		{108, "VDISKFULL"},
		{110, "VBUSY"},
		{112, "VIO"},
		{122, "EDQUOT"},
		{UAE, "EPERM"},
		{UAE + 1, "ENOENT"},
		{UAE + 40, "EWOULDBLOCK"},
		{UAE + 129, "EDISCON"},
		{19270400, "rxkad"},
		{19270408, "unknown service key"},
		{19270409, "expired"},
		{19270412, "level"},
		{1233242880, "rxgk"},
		{1233242886, "expired"},
		{1233242891, "rxgk"},
		{363524, "no such entry"},
		{363546, "permission"},
		{363552, "damaged"},
		{267268, "no such user"},
		{267282, "too long"},
		{5377, "sync site"},
		{1492325125, "no such partition"},
		{1492325133, "in use"},
		{1492325137, "failed"},
	};
	static const int32_t unknown[] = {
		-7777,	 -9,	    -11,	-458,	    41,		134,	   500,
		UAE - 1, UAE + 130, 19270399,	19270413,   1233242892, 363519,	   363553,
		267283,	 5378,	    1492325119, 1492325138, INT32_MAX,	INT32_MIN,
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(strstr(rxw_code_text(cases[i].code), cases[i].part),
			      "code %d: \"%s\" lacks \"%s\"", cases[i].code,
			      rxw_code_text(cases[i].code), cases[i].part);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		ck_assert_msg(!strcmp(rxw_code_text(unknown[i]), "unknown code"), "code %d: \"%s\"",
			      unknown[i], rxw_code_text(unknown[i]));
}
END_TEST

/* A code of the library that the peer sent is not reported as an event on this side. */
START_TEST(texts_by_origin)
{
	ck_assert_ptr_nonnull(strstr(rxw_code_text_from(-1, RXW_ORIGIN_LOCAL), "no answer"));
	ck_assert_ptr_null(strstr(rxw_code_text_from(-1, RXW_ORIGIN_PEER), "no answer"));
	ck_assert_ptr_nonnull(strstr(rxw_code_text_from(-1, RXW_ORIGIN_PEER), "-1"));
	for (int32_t code = -101; code < 0; code++) {
		const char *peer = rxw_code_text_from(code, RXW_ORIGIN_PEER);

		/* -2 is a server's anyway, and so is -100. */
		if (strcmp(rxw_code_text(code), "unknown code") && code != -2 && code != -100)
			ck_assert_ptr_nonnull(strstr(peer, "peer"));
	}
	ck_assert_str_eq(rxw_code_text_from(4711, RXW_ORIGIN_PEER), "unknown code");
	ck_assert_str_eq(rxw_code_text_from(103, RXW_ORIGIN_PEER), rxw_code_text(103));
	ck_assert_str_eq(rxw_code_text_from(-1, RXW_ORIGIN_NONE), rxw_code_text(-1));
	ck_assert_ptr_nonnull(strstr(rxw_code_text(-1), "no answer"));
	/* The library does not know which options its programs have. */
	for (int32_t code = 19270400; code < 19270413; code++)
		ck_assert_ptr_null(strstr(rxw_code_text(code), "--"));
	for (int32_t code = 1233242880; code < 1233242892; code++)
		ck_assert_ptr_null(strstr(rxw_code_text(code), "--"));
}
END_TEST

/* No family has gaps. */
START_TEST(families_are_complete)
{
	static const struct {
		int32_t base, count;
	} families[] = {{19270400, 13}, {1233242880, 12}, {363520, 33},
			{267264, 19},	{UAE, 130},	  {1492325120, 18}};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		for (int32_t n = 0; n < families[i].count; n++)
			ck_assert_str_ne(rxw_code_text(families[i].base + n), "unknown code");
}
END_TEST

/* Values of afs-fileserver 5.2. */
START_TEST(portable_errno)
{
	static const struct {
		int err;
		int32_t code;
	} cases[] = {
		{ EPERM, 49733376 },
		{ ENOENT, 49733377 },
		{ EIO, 49733380 },
		{ E2BIG, 49733382 },
		{ EAGAIN, 49733386 },
		{ ENOMEM, 49733387 },
		{ EACCES, 49733388 },
		{ EBUSY, 49733391 },
		{ EEXIST, 49733392 },
		{ EXDEV, 49733393 },
		{ ENODEV, 49733394 },
		{ ENOTDIR, 49733395 },
		{ EISDIR, 49733396 },
		{ EINVAL, 49733397 },
		{ EFBIG, 49733402 },
		{ ENOSPC, 49733403 },
		{ EROFS, 49733405 },
		{ EMLINK, 49733406 },
		{ ENAMETOOLONG, 49733411 },
		{ ENOSYS, 49733413 },
		{ ENOTEMPTY, 49733414 },
		{ ELOOP, 49733415 },
		{ ETIMEDOUT, 49733484 },
		{ EDQUOT, 49733496 },
		{ EOPNOTSUPP, 49733376 + 93 },
		{ EOWNERDEAD, 49733376 + 127 },
		{ ENOTRECOVERABLE, 49733376 + 124 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(rxw_code_from_errno(cases[i].err), cases[i].code);
		ck_assert_int_eq(rxw_code_to_errno(cases[i].code), cases[i].err);
	}
}
END_TEST

START_TEST(portable_errno_all)
{
	unsigned known = 0;

	ck_assert_int_eq(rxw_code_from_errno(0), 0);
	ck_assert_int_eq(rxw_code_to_errno(0), 0);
	for (int err = 1; err < 4000; err++) {
		int32_t code = rxw_code_from_errno(err);

		if (code == err)
			continue;
		known++;
		ck_assert_int_ge(code, UAE);
		ck_assert_int_eq(rxw_code_to_errno(code), err);
	}
	ck_assert_uint_ge(known, 80);
	/*
	 * Unknown ones stay: codes of volumes, of calls, portable ones without an errno on this
	 * system.
	 */
	ck_assert_int_eq(rxw_code_from_errno(-5), -5);
	ck_assert_int_eq(rxw_code_from_errno(3999), 3999);
	ck_assert_int_eq(rxw_code_to_errno(103), 103);
	/* The codes of AFS servers for a full disk and an exceeded quota. */
	ck_assert_int_eq(rxw_code_to_errno(108), ENOSPC);
	ck_assert_int_eq(rxw_code_to_errno(109), EDQUOT);
	ck_assert_int_eq(rxw_code_to_errno(-455), -455);
	ck_assert_int_eq(rxw_code_to_errno(UAE - 1), UAE - 1);
	ck_assert_int_eq(rxw_code_to_errno(UAE + 126), UAE + 126);
	ck_assert_int_eq(rxw_code_to_errno(UAE + 130), UAE + 130);
	ck_assert_int_eq(rxw_code_to_errno(INT32_MIN), INT32_MIN);
	ck_assert_int_eq(rxw_code_to_errno(UAE + 40), EAGAIN);
	ck_assert_int_eq(rxw_code_to_errno(UAE + 125), EOPNOTSUPP);
}
END_TEST

TEST_MAIN("error", result_texts, code_texts, texts_by_origin, families_are_complete, portable_errno,
	  portable_errno_all)
