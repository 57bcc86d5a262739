/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of rxperf/serve.c: the bytes of both services, and all refusals. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/afs/known.h"

#include "rxperf/serve.h"

static struct perf_server server;

static void start(bool figures)
{
	perf_pattern_init();
	memset(&server, 0, sizeof(server));
	pthread_mutex_init(&server.lock, NULL);
	perf_server_init(&server);
	perf_moment_now(&server, &server.start);
	if (figures)
		known_dispatcher(RXPERFFIG_ExecuteRequest, &server.figures);
	else
		known_dispatcher(perf_handle, &server);
}

/* The first bytes of the pattern, as text. */
static const char *pattern(size_t length)
{
	static char text[2 * 64 + 1];
	size_t n;
	const uint8_t *p = perf_pattern(0, length, &n);

	ck_assert(n == length && length <= 64);
	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return text;
}

START_TEST(commands)
{
	char want[256];

	start(false);
	/* SEND, RECV, RPC; FILE: three words there, two back, one more. */
	known_exchange("00000003 00000000 00080000 00080000 00000005 6162636465", "00004711");
	snprintf(want, sizeof(want), "%s 00004711", pattern(7));
	known_exchange("00000003 00000001 00080000 00080000 00000007", want);
	snprintf(want, sizeof(want), "%s 00004711", pattern(6));
	known_exchange("00000003 00000003 00000001 00000002 00000003 00000006 616263", want);
	snprintf(want, sizeof(want), "%s", pattern(12));
	known_exchange("00000003 00000004 00080000 00080000 00000004 00000003 00000000 00000002 "
		       "00000001 'twelve bytes'",
		       want);
	known_exchange("00000003 00000004 00080000 00080000 00000000", "");
	/* Nothing to move; more than announced. */
	known_exchange("00000003 00000003 00080000 00080000 00000000 00000000", "00004711");
	known_exchange("00000003 00000000 00080000 00080000 00000001 6162636465", "00004711");
	ck_assert_uint_eq(server.calls, 7);
	ck_assert_uint_eq(server.failed, 0);
	ck_assert_uint_eq(server.bytes_in, 5 + 3 + 12 + 1);
	ck_assert_uint_eq(server.bytes_out, 7 + 6 + 12);
}
END_TEST

START_TEST(refusals)
{
	static const char *const bad[] = {
		"",
		"0000",
		"00000003",
		"00000002 00000000 00080000 00080000 00000000", /* version */
		"00000003 00000002 00080000 00080000 00000000", /* command */
		"00000003 00000005 00080000 00080000 00000000",
		"00000003 00000000 00000000 00080000 00000000", /* sizes */
		"00000003 00000000 00080000 00000000 00000000",
		"00000003 00000001 00080001 00080000 00000000",
		"00000003 00000003 00080000 ffffffff 00000000*2",
		"00000003 00000001 00080000 00080000 80000000", /* lengths */
		"00000003 00000003 00080000 00080000 80000000 00000000",
		"00000003 00000003 00080000 00080000 00000000 80000000",
		"00000003 00000000 00080000 00080000", /* words that are missing */
		"00000003 00000003 00080000 00080000 00000000",
		"00000003 00000000 00080000 00080000 00000005 61626364",      /* bytes */
		"00000003 00000004 00080000 00080000 00001001 00000000*4097", /* lists */
		"00000003 00000004 00080000 00080000 ffffffff",
		"00000003 00000004 00080000 00080000 00000002 00000000",
		"00000003 00000004 00080000 00080000 00000001 80000000",
		"00000003 00000004 00080000 00080000 00000001 00000001 616263",
		"00000003 00000004 00000000 00080000 00000000",
		/* more data to the server after the announced bytes */
		"00000003 00000004 00080000 00080000 00000004 00000000 00000001 00000000 00000001",
	};

	start(false);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		known_failure(bad[i], -1);
	ck_assert_uint_eq(server.failed, sizeof(bad) / sizeof(bad[0]));
	ck_assert_uint_eq(server.calls, 0);
}
END_TEST

START_TEST(verified)
{
	char request[256];

	start(false);
	server.verify = true;
	snprintf(request, sizeof(request), "00000003 00000000 00080000 00080000 00000008 %s",
		 pattern(8));
	known_exchange(request, "00004711");
	known_failure("00000003 00000000 00080000 00080000 00000008 00000000*2",
		      rxw_code_from_errno(EBADMSG));
	ck_assert_uint_eq(server.mismatches, 1);
}
END_TEST

START_TEST(figures)
{
	start(true);
	known_exchange("00000001 00000000", "00000001");
	known_exchange("00000001 00000000", "00000002");
	known_failure("00000001", RXW_RPC_SS_UNMARSHAL);
	known_failure("00000003 00000000", RXW_RPC_OPCODE);
	known_failure("00", RXW_RPC_DECODE);
}
END_TEST

KNOWN_MAIN("serve", commands, refusals, verified, figures)
