/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of calls that the application reports itself; numbers and limits; who is local. What
 * generated stubs report, and the service, are tested in tests/afs/test_rxstats.c.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "rpcstats/private.h"
#include "tests/main.h"

#define WORDS RXW_RPCSTATS_WORDS

static rxw_rpcstats *stats;
static uint32_t *words;
static int count;

static void setup(bool process, bool peers)
{
	struct rxw_rpcstats_options options = {
		.size = sizeof(options), .process = process, .peers = peers};

	ck_assert_int_eq(rxw_rpcstats_create(&options, &stats), 0);
	words = NULL;
}

static void teardown(void)
{
	free(words);
	rxw_rpcstats_destroy(stats);
}

static void read_entries(enum rxw_rpcstats_kind kind)
{
	free(words);
	count = rxw_rpcstats_entries(stats, kind, &words);
	ck_assert_int_ge(count, 0);
}

static struct sockaddr_in address = {.sin_family = AF_INET};

/* A call of function 2 of interface 4711, which has 5. */
static struct rxw_rpcstats_call call_of(bool client)
{
	address.sin_addr.s_addr = htonl(0x0a580002);
	address.sin_port = htons(0xb06c);
	return (struct rxw_rpcstats_call){.size = sizeof(struct rxw_rpcstats_call),
					  .interface = 4711,
					  .function = 2,
					  .functions = 5,
					  .client = client,
					  .peer = (struct sockaddr *)&address,
					  .peer_len = sizeof(address),
					  .bytes_sent = (7ull << 32) + 5,
					  .bytes_received = 9,
					  .queue_ns = 1500000,
					  .run_ns = 2000003000};
}

/* A row for each function of the interface, zeros for those that were not called. */
static void check_rows(const uint32_t *row, bool client, bool of_peer)
{
	const uint32_t called[] = {0,	 1, 7,	  5, 0, 9, 0,  1500, 0, 2, 0,
				   1500, 0, 1500, 2, 3, 4, 12, 2,    3, 2, 3};
	const uint32_t never[] = {0,	   0, 0, 0, 0, 0, 0, 0,	      0,       0, 9999999,
				  9999999, 0, 0, 0, 0, 0, 0, 9999999, 9999999, 0, 0};

	for (uint32_t i = 0; i < 5; i++, row += WORDS) {
		const uint32_t head[] = {of_peer ? 0x0200580a : UINT32_MAX,
					 of_peer ? 0x6cb0 : UINT32_MAX,
					 client,
					 4711,
					 5,
					 i};

		ck_assert_mem_eq(row, head, sizeof(head));
		for (unsigned w = 0; w < 22; w++) {
			uint32_t want = i == 2 ? called[w] : never[w];
			/* Microseconds of squares are truncated fractions. */
			bool off = (w == 9 || w == 17) && row[6 + w] + 1 == want;

			ck_assert_msg(row[6 + w] == want || off, "row %u, word %u: %u, not %u", i,
				      6 + w, row[6 + w], want);
		}
	}
}

START_TEST(one_call)
{
	for (int client = 0; client < 2; client++) {
		struct rxw_rpcstats_call call = call_of(client);

		setup(true, true);
		ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
		for (int kind = 0; kind < 2; kind++) {
			read_entries(kind);
			ck_assert_int_eq(count, 5);
			check_rows(words, client, kind == RXW_RPCSTATS_PEERS);
		}
		teardown();
	}
}
END_TEST

/* Both sides of an interface, another interface, and another count of functions: apart. */
START_TEST(apart)
{
	struct rxw_rpcstats_call call = call_of(false);

	setup(true, true);
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	call.client = true;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	call.interface = 4712;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	call.functions = 7;
	call.function = 6;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	for (int kind = 0; kind < 2; kind++) {
		uint32_t calls = 0;

		read_entries(kind);
		ck_assert_int_eq(count, 5 + 5 + 5 + 7);
		for (int i = 0; i < count; i++) {
			ck_assert_uint_le(words[i * WORDS + 7], 1);
			calls += words[i * WORDS + 7];
		}
		ck_assert_uint_eq(calls, 4);
	}
	teardown();
}
END_TEST

/* What is not counted has no rows, before, between and after. */
START_TEST(on_and_off)
{
	struct rxw_rpcstats_call call = call_of(false);

	setup(false, false);
	for (int kind = 0; kind < 2; kind++)
		for (int round = 0; round < 2; round++) {
			ck_assert(!rxw_rpcstats_enabled(stats, kind));
			ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
			read_entries(kind);
			ck_assert_int_eq(count, 0);
			ck_assert_ptr_null(words);
			ck_assert_int_eq(rxw_rpcstats_enable(stats, kind, true), 0);
			ck_assert(rxw_rpcstats_enabled(stats, kind));
			read_entries(kind);
			ck_assert_int_eq(count, 0);
			ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
			read_entries(kind);
			check_rows(words, false, kind);
			ck_assert_int_eq(rxw_rpcstats_clear(stats, kind, RXW_RPCSTATS_CLEAR_ALL),
					 0);
			read_entries(kind);
			ck_assert_int_eq(count, 5); /* of a function that was called */
			ck_assert_uint_eq(words[2 * WORDS + 7], 0);
			ck_assert_int_eq(rxw_rpcstats_enable(stats, kind, false), 0);
		}
	teardown();
}
END_TEST

/* Calls without an address, or with one that cannot be read, count for the process. */
START_TEST(no_peer)
{
	struct rxw_rpcstats_call call = call_of(false);

	setup(true, true);
	call.peer_len = sizeof(address) - 1;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	call.peer = NULL;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	read_entries(RXW_RPCSTATS_PROCESS);
	ck_assert_uint_eq(words[2 * WORDS + 7], 2);
	read_entries(RXW_RPCSTATS_PEERS);
	ck_assert_int_eq(count, 0);
	teardown();
}
END_TEST

START_TEST(limits)
{
	struct rxw_rpcstats_call call = call_of(false);

	setup(true, true);
	call.interface = 0;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), -RXW_EINVAL);
	call.interface = 1;
	call.function = 5;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), -RXW_EINVAL);
	call.functions = 4097;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), -RXW_EINVAL);
	call.functions = 4096;
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	call.functions = 6;
	for (call.interface = 2; call.interface <= 64; call.interface++)
		ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), -RXW_ELIMIT);
	call.interface = 64; /* one that is known */
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	for (int kind = 0; kind < 2; kind++) {
		read_entries(kind);
		ck_assert_int_eq(count, 4096 + 63 * 6);
	}
	ck_assert_int_eq(rxw_rpcstats_enable(stats, (enum rxw_rpcstats_kind)2, true), -RXW_EINVAL);
	ck_assert_int_eq(rxw_rpcstats_clear(stats, (enum rxw_rpcstats_kind)2, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_rpcstats_entries(stats, (enum rxw_rpcstats_kind)2, &words),
			 -RXW_EINVAL);
	ck_assert(!rxw_rpcstats_enabled(stats, (enum rxw_rpcstats_kind)2));
	teardown();
}
END_TEST

/* An interface of stubs and the same numbers reported by hand are one. */
START_TEST(stubs_and_hand)
{
	static const struct rxw_rpc_function functions[5] = {
		{0, "A"}, {1, "B"}, {2, "C"}, {3, "D"}, {4, "E"}};
	static const struct rxw_rpc_interface interface = {"ABC_", 4711, 5, functions, false};
	struct rxw_rpcstats_counters counters = {.size = sizeof(counters)};
	struct rxw_rpcstats_call call = call_of(false);
	struct rxw_rpc_report report = {.size = sizeof(report),
					.interface = &interface,
					.function = 2,
					.code = 1,
					.run_ns = 5};

	setup(true, false);
	ck_assert_int_eq(rxw_rpcstats_record(stats, &call), 0);
	rxw_rpcstats_report(stats, &report);
	ck_assert_int_eq(rxw_rpcstats_get(stats, &interface, 2, false, &counters), 0);
	ck_assert_uint_eq(counters.calls, 2);
	ck_assert_uint_eq(counters.failed, 1);
	ck_assert_uint_eq(counters.run.least, 5);
	ck_assert_uint_eq(counters.run.most, 2000003000);
	ck_assert_int_eq(rxw_rpcstats_get(stats, &interface, 2, true, &counters), 0);
	ck_assert_uint_eq(counters.calls, 0);
	ck_assert(counters.run.least == UINT64_MAX);
	ck_assert_int_eq(rxw_rpcstats_get(stats, &interface, 5, false, &counters), -RXW_EINVAL);
	read_entries(RXW_RPCSTATS_PROCESS);
	ck_assert_int_eq(count, 5);
	teardown();
}
END_TEST

static bool local(const char *peer, const char *asked)
{
	struct sockaddr_storage sa[2];

	memset(sa, 0, sizeof(sa));
	for (int i = 0; i < 2; i++) {
		const char *text = i ? asked : peer;
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa[i];
		struct sockaddr_in *in = (struct sockaddr_in *)&sa[i];

		if (!text)
			continue;
		in6->sin6_family = strchr(text, ':') ? AF_INET6 : AF_INET;
		ck_assert_int_eq(inet_pton(sa[i].ss_family, text,
					   sa[i].ss_family == AF_INET ? (void *)&in->sin_addr
								      : (void *)&in6->sin6_addr),
				 1);
	}
	return rxw_rpcstats_is_local((struct sockaddr *)&sa[0], (struct sockaddr *)&sa[1],
				     asked ? sizeof(sa[1]) : 0);
}

START_TEST(local_callers)
{
	ck_assert(local("127.0.0.1", NULL));
	ck_assert(local("127.9.9.9", "192.0.2.1"));
	ck_assert(local("::1", NULL));
	ck_assert(local("::ffff:127.0.0.1", NULL));
	ck_assert(local("192.0.2.1", "192.0.2.1"));
	ck_assert(local("2001:db8::1", "2001:db8::1"));
	ck_assert(!local("192.0.2.2", "192.0.2.1"));
	ck_assert(!local("192.0.2.2", NULL));
	ck_assert(!local("2001:db8::1", "2001:db8::2"));
	ck_assert(!local("::ffff:192.0.2.1", NULL));
	ck_assert(!local("0.0.0.0", NULL));
}
END_TEST

TEST_MAIN("rpcstats", one_call, apart, on_and_off, no_peer, limits, stubs_and_hand, local_callers)
