/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the statistics service: counters, their encoding, and access rights. */
#include "tests/tools/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#include <rxwire/afs.h>
#include <rxwire/rxwire.h>

#include "afs/afsvol.h"
#include "afs/pt.h"
#include "afs/rxafs.h"
#include "afs/rxafscb.h"
#include "afs/rxstats.h"
#include "afs/vl.h"

#define WORDS RXSTATS_ENTRY_WORDS
#define RXAFS_ENTRIES 46 /* 43 functions of OpenAFS, and three of ours behind them */

static rxw_rpcstats *stats;
static uint32_t *words;
static int count;

static void setup(bool process, bool peers, unsigned peers_max)
{
	struct rxw_rpcstats_options options = {.size = sizeof(options),
					       .process = process,
					       .peers = peers,
					       .peers_max = peers_max};

	ck_assert_int_eq(rxw_rpcstats_create(&options, &stats), 0);
	words = NULL;
	count = 0;
}

static void teardown(void)
{
	free(words);
	words = NULL;
	rxw_rpcstats_destroy(stats);
}

static struct sockaddr_in address(uint32_t host, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(host)}};
}

/* Reports a call. */
static struct rxw_rpc_report report_of(const struct rxw_rpc_interface *interface, unsigned function,
				       const struct sockaddr_in *peer)
{
	return (struct rxw_rpc_report){.size = sizeof(struct rxw_rpc_report),
				       .interface = interface,
				       .function = function,
				       .peer = (const struct sockaddr *)peer,
				       .peer_len = sizeof(*peer),
				       .bytes_sent = 100,
				       .bytes_received = 10,
				       .queue_ns = 1500000,
				       .run_ns = 2000000};
}

static void count_call(const struct rxw_rpc_interface *interface, unsigned function, uint32_t host,
		       uint16_t port)
{
	struct sockaddr_in peer = address(host, port);
	struct rxw_rpc_report report = report_of(interface, function, &peer);

	rxw_rpcstats_report(stats, &report);
}

static void read_entries(enum rxw_rpcstats_kind peers)
{
	free(words);
	count = rxw_rpcstats_entries(stats, peers, &words);
	ck_assert_int_ge(count, 0);
}

/* The entry of a function that was called; NULL if none was called. */
static const uint32_t *called(void)
{
	for (int i = 0; i < count; i++)
		if (words[i * WORDS + 6] || words[i * WORDS + 7])
			return words + i * WORDS;
	return NULL;
}

START_TEST(one_entry)
{
	/* RXAFS, FetchStatus; the squares of the run time are 4e-6 + 9e-6 */
	static const uint32_t want[WORDS] = {
		UINT32_MAX,
		UINT32_MAX,
		0,
		7,
		RXAFS_ENTRIES,
		2,
		0,
		2,
		0,
		300,
		0,
		30,
		/* queue, run: sum, squares, least, most */
		2,
		501500,
		6,
		250002,
		0,
		1500,
		2,
		500000,
		0,
		5000,
		0,
		13,
		0,
		2000,
		0,
		3000,
	};
	struct sockaddr_in peer = address(0x7f000001, 4000);
	struct rxw_rpc_report report = report_of(&RXAFS_interface, RXAFS_FN_FetchStatus, &peer);
	struct rxw_rpcstats_counters counters = {.size = sizeof(counters)};

	setup(true, false, 0);
	rxw_rpcstats_report(stats, &report);
	report.bytes_sent = 200;
	report.bytes_received = 20;
	report.queue_ns = 2500000000;
	report.run_ns = 3000000;
	report.code = 102;
	rxw_rpcstats_report(stats, &report);
	read_entries(false);
	ck_assert_int_eq(count, RXAFS_ENTRIES);
	for (int i = 0; i < WORDS; i++) {
		/* The microseconds of squares are truncated sums of fractions. */
		uint32_t off = i == 15 || i == 23 ? want[i] - words[2 * WORDS + i] : 0;

		ck_assert_msg(words[2 * WORDS + i] + off == want[i] && off <= 1,
			      "word %d is %u, not %u", i, words[2 * WORDS + i], want[i]);
	}
	rxw_rpcstats_get(stats, &RXAFS_interface, RXAFS_FN_FetchStatus, false, &counters);
	ck_assert_uint_eq(counters.calls, 2);
	ck_assert_uint_eq(counters.failed, 1);
	ck_assert_uint_eq(counters.run.most, 3000000);
	rxw_rpcstats_get(stats, &RXAFS_interface, RXAFS_FN_FetchStatus, true, &counters);
	ck_assert_uint_eq(counters.calls, 0);
	ck_assert(counters.run.least == UINT64_MAX);
	teardown();
}
END_TEST

/* Functions are reported under OpenAFS's numbers, also those that we do not implement. */
START_TEST(numbering)
{
	static const struct {
		const struct rxw_rpc_interface *interface;
		unsigned function;
		uint32_t statindex, entries, entry;
	} list[] = {
		{&RXAFS_interface, RXAFS_FN_FetchData, 7, RXAFS_ENTRIES, 0},
		{&RXAFS_interface, RXAFS_FN_GetStatistics64, 7, RXAFS_ENTRIES, 41},
		{&RXAFSCB_interface, RXAFSCB_FN_CallBack, 6, 18, 0},
		{&RXAFSCB_interface, RXAFSCB_FN_GetCacheConfig, 6, 18, 14},
		{&RXAFSCB_interface, RXAFSCB_FN_GetCE64, 6, 18, 15},
		{&RXAFSCB_interface, RXAFSCB_FN_TellMeAboutYourself, 6, 18, 17},
		{&VL_interface, VL_FN_ProbeServer, 15, 28, 0},
		{&VL_interface, VL_FN_GetAddrsU, 15, 28, 4},
		{&VL_interface, VL_FN_CreateEntry, 15, 28, 5},
		{&VL_interface, VL_FN_GetNewVolumeId, 15, 28, 8},
		{&VL_interface, VL_FN_GetStats, 15, 28, 16},
		{&VL_interface, VL_FN_GetEntryByIDN, 15, 28, 20},
		{&VL_interface, VL_FN_UpdateEntryByName, 15, 28, 25},
		{&VL_interface, VL_FN_ListAttributesN2, 15, 28, 27},
		{&AFSVol_interface, AFSVol_FN_CreateVolume, 16, 34, 0},
		{&AFSVol_interface, AFSVol_FN_Monitor, 16, 34, 18},
		{&AFSVol_interface, AFSVol_FN_PartitionInfo64, 16, 34, 32},
		{&AFSVol_interface, AFSVol_FN_SplitVolume, 16, 34, 33},
		{&PR_interface, PR_FN_NameToID, 8, 23, 4},
		{&PR_interface, PR_FN_GetHostCPS, 8, 23, 19},
		{&PR_interface, PR_FN_ListSuperGroups, 8, 23, 22},
		{&RXSTATS_interface, RXSTATS_FN_ClearPeerRPCStats, 9, 11, 10},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		const uint32_t *entry;

		setup(true, false, 0);
		count_call(list[i].interface, list[i].function, 0x0a000001, 7001);
		read_entries(false);
		entry = called();
		ck_assert_ptr_nonnull(entry);
		ck_assert_uint_eq(entry[3], list[i].statindex);
		ck_assert_msg(entry[5] == list[i].entry, "%s is number %u, not %u",
			      list[i].interface->functions[list[i].function].name, entry[5],
			      list[i].entry);
		ck_assert_uint_eq(entry[4], list[i].entries);
		ck_assert_int_eq(count, (int)list[i].entries);
		for (int k = 0; k < count; k++) /* each number once */
			ck_assert_uint_eq(words[k * WORDS + 5], (unsigned)k);
		teardown();
	}
}
END_TEST

START_TEST(not_counted)
{
	static const struct rxw_rpc_function functions[] = {{1, "NONE_One"}};
	static const struct rxw_rpc_interface none = {"NONE_", 0, 1, functions, false};

	setup(true, true, 0);
	count_call(&none, 0, 0x0a000001, 7001);		 /* no statindex */
	count_call(&VL_interface, 99, 0x0a000001, 7001); /* no such function */
	read_entries(false);
	ck_assert_int_eq(count, 0);
	ck_assert_ptr_null(words);
	read_entries(true);
	ck_assert_int_eq(count, 0);
	teardown();
}
END_TEST

/* 10.88.0.2 and port 45164, of the recorded reply. */
START_TEST(peers)
{
	const uint32_t *entry;
	struct sockaddr_in peer = address(0x0a580002, 0xb06c);
	struct rxw_rpc_report report = report_of(&RXAFSCB_interface, RXAFSCB_FN_Probe, &peer);

	setup(false, true, 0);
	report.client = true;
	rxw_rpcstats_report(stats, &report);
	read_entries(false);
	ck_assert_int_eq(count, 0); /* the process is not counted */
	ck_assert_ptr_null(words);
	read_entries(true);
	ck_assert_int_eq(count, 18);
	entry = called();
	ck_assert_uint_eq(entry[0], 0x0200580a);
	ck_assert_uint_eq(entry[1], 0x6cb0);
	ck_assert_uint_eq(entry[2], 1);
	ck_assert_uint_eq(entry[5], 2);
	/* As a client that we call, the same peer has separate entries. */
	report.client = false;
	rxw_rpcstats_report(stats, &report);
	read_entries(true);
	ck_assert_int_eq(count, 36);
	teardown();
}
END_TEST

static bool has_peer(uint32_t host)
{
	for (int i = 0; i < count; i++)
		if (words[i * WORDS] == htonl(host) || words[i * WORDS] == __builtin_bswap32(host))
			return true;
	return false;
}

START_TEST(oldest_peers_go)
{
	setup(false, true, 0);
	for (uint32_t i = 0; i < 1024; i++)
		count_call(&RXSTATS_interface, 0, 0x0a010000 + i, 7001);
	count_call(&RXSTATS_interface, 0, 0x0a010000, 7001); /* used again */
	count_call(&RXSTATS_interface, 0, 0x0a020000, 7001);
	read_entries(true);
	ck_assert_int_eq(count, 1024 * 11);
	ck_assert(has_peer(0x0a010000));
	ck_assert(!has_peer(0x0a010001));
	ck_assert(has_peer(0x0a010002));
	ck_assert(has_peer(0x0a020000));
	ck_assert_uint_eq(words[0], 0x0000020a); /* the latest comes first */
	ck_assert_uint_eq(words[11 * WORDS], 0x0000010a);
	ck_assert_uint_eq(words[11 * WORDS + 7], 2);
	teardown();

	setup(false, true, 2); /* ports are compared, too */
	for (uint16_t i = 0; i < 5; i++)
		count_call(&RXSTATS_interface, 0, 0x0a010000, i);
	read_entries(true);
	ck_assert_int_eq(count, 2 * 11);
	teardown();
}
END_TEST

START_TEST(clear_flags)
{
	/* Each flag, the words that it resets, and their new values. */
	static const struct {
		uint32_t flag;
		int word;
		uint32_t none;
	} list[] = {
		{0x1, 6, 0},	{0x2, 8, 0},	      {0x4, 10, 0},   {0x8, 12, 0},
		{0x10, 14, 0},	{0x20, 16, 9999999},  {0x40, 18, 0},  {0x80, 20, 0},
		{0x100, 22, 0}, {0x200, 24, 9999999}, {0x400, 26, 0},
	};
	uint32_t before[WORDS];

	for (int peer = 0; peer < 2; peer++)
		for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
			setup(true, true, 0);
			count_call(&VL_interface, VL_FN_GetStats, 0x0a000001, 7001);
			read_entries(peer);
			memcpy(before, called(), sizeof(before));
			rxw_rpcstats_clear(stats, peer, list[i].flag);
			read_entries(peer);
			for (int w = 0; w < WORDS; w++) {
				bool hit = w == list[i].word || w == list[i].word + 1;

				ck_assert_uint_eq(words[16 * WORDS + w],
						  hit ? list[i].none : before[w]);
			}
			teardown();
		}
	setup(true, true, 0);
	count_call(&VL_interface, VL_FN_GetStats, 0x0a000001, 7001);
	rxw_rpcstats_clear(stats, true, 0xffffffff);
	read_entries(true);
	ck_assert_int_eq(count, 28);
	ck_assert_ptr_null(called());
	read_entries(false); /* the process is unaffected */
	ck_assert_ptr_nonnull(called());
	teardown();
}
END_TEST

START_TEST(on_and_off)
{
	setup(false, false, 0);
	count_call(&VL_interface, 0, 0x0a000001, 7001);
	read_entries(false);
	ck_assert_int_eq(count, 0);
	for (int peer = 0; peer < 2; peer++) {
		ck_assert(!rxw_rpcstats_enabled(stats, peer));
		rxw_rpcstats_enable(stats, peer, true);
		ck_assert(rxw_rpcstats_enabled(stats, peer));
		count_call(&VL_interface, 0, 0x0a000001, 7001);
		read_entries(peer);
		ck_assert_ptr_nonnull(called());
		rxw_rpcstats_enable(stats, peer, false);
		read_entries(peer);
		ck_assert_ptr_null(called());
		count_call(&VL_interface, 0, 0x0a000001, 7001);
		rxw_rpcstats_enable(stats, peer, true);
		read_entries(peer);
		ck_assert_ptr_null(called());
		rxw_rpcstats_enable(stats, peer, false);
	}
	teardown();
}
END_TEST

#define THREADS 8
#define ROUNDS	2000

static void *many_calls(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		count_call(&RXAFS_interface, i % RXAFS_ENTRIES, 0x0a000000 + i % 50, 7001);
		count_call(&VL_interface, i % 28, 0x0a000000 + i % 50, 7001);
		if (arg && i % 100 == 0) {
			uint32_t *list = NULL;

			ck_assert_int_ge(rxw_rpcstats_entries(stats, i % 200 == 0, &list), 0);
			free(list);
		}
	}
	return NULL;
}

START_TEST(many_threads)
{
	pthread_t thread[THREADS];
	uint64_t sum[2] = {0};

	setup(true, true, 64);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, many_calls, i ? NULL : stats), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int peer = 0; peer < 2; peer++) {
		read_entries(peer);
		for (int i = 0; i < count; i++)
			sum[peer] += words[i * WORDS + 7];
	}
	ck_assert_uint_eq(sum[0], 2 * THREADS * ROUNDS);
	ck_assert_uint_eq(sum[1], 2 * THREADS * ROUNDS);
	teardown();
}
END_TEST

/* -- the service, over the network -- */

static rxw_engine *engine;
static rxw_endpoint *server, *client;
static rxw_connection *connection;

static rxw_endpoint *endpoint(bool serve)
{
	struct sockaddr_in any = address(0x7f000001, 0);
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&any,
					       .address_len = sizeof(any),
					       .server = serve,
					       .paused = serve};
	rxw_endpoint *made;

	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &made), 0);
	return made;
}

static void network_start(void)
{
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);

	setup(true, true, 0);
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	server = endpoint(true);
	client = endpoint(false);
	ck_assert_int_eq(rxw_rpcstats_observe(stats, server), 0);
	ck_assert_int_eq(rxw_rpcstats_serve(stats, server), 0);
	ck_assert_int_eq(rxw_endpoint_start(server), 0);
	ck_assert_int_eq(rxw_endpoint_address(server, &to, &length), 0);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&to, length,
					       RXW_RPCSTATS_SERVICE, NULL, &connection),
			 0);
}

static void network_stop(void)
{
	rxw_connection_release(connection);
	rxw_endpoint_stop(server, 1000);
	rxw_endpoint_destroy(client);
	rxw_endpoint_destroy(server);
	rxw_engine_destroy(engine);
	teardown();
}

START_TEST(operations)
{
	uint32_t version = 0, sec = 0, usec = 0, n = 0;
	rpcStats list = {0};
	int32_t on = 0;
	uint64_t own = 0;

	network_start();
	ck_assert_int_eq(RXSTATS_QueryRPCStatsVersion(connection, &version), 0);
	ck_assert_uint_eq(version, 1);
	ck_assert_int_eq(RXSTATS_QueryProcessRPCStats(connection, &on), 0);
	ck_assert_int_eq(on, 1);
	ck_assert_int_eq(RXSTATS_QueryPeerRPCStats(connection, &on), 0);
	ck_assert_int_eq(on, 1);
	ck_assert_int_eq(RXSTATS_EnableProcessRPCStats(connection), 1);
	ck_assert_int_eq(RXSTATS_EnablePeerRPCStats(connection), 1);
	ck_assert_int_eq(RXSTATS_DisableProcessRPCStats(connection), 1);
	ck_assert_int_eq(RXSTATS_DisablePeerRPCStats(connection), 1);
	ck_assert_int_eq(RXSTATS_ClearProcessRPCStats(connection, 0xffffffff), 1);
	ck_assert_int_eq(RXSTATS_ClearPeerRPCStats(connection, 0xffffffff), 1);
	ck_assert_int_eq(
		RXSTATS_RetrieveProcessRPCStats(connection, 77, &version, &sec, &usec, &n, &list),
		0);
	ck_assert_uint_eq(version, 1);
	ck_assert_uint_gt(sec, 1700000000);
	ck_assert_uint_lt(usec, 1000000);
	ck_assert_uint_eq(n, 11);
	ck_assert_uint_eq(list.len, n * WORDS);
	for (uint32_t i = 0; i < n; i++)
		own += list.val[i * WORDS + 7];
	ck_assert_uint_eq(own, 9);
	ck_assert_uint_eq(list.val[8 * WORDS + 9], 4); /* the version's reply is one word */
	ck_assert_uint_eq(list.val[8 * WORDS + 11], 4);
	xdrfree_rpcStats(&list);
	ck_assert_int_eq(
		RXSTATS_RetrievePeerRPCStats(connection, 1, &version, &sec, &usec, &n, &list), 0);
	ck_assert_uint_eq(n, 11);
	ck_assert_uint_eq(list.val[0], 0x0100007f);
	xdrfree_rpcStats(&list);
	network_stop();
}
END_TEST

static int32_t raw_call(const uint8_t *request, size_t length, uint8_t *reply, size_t room,
			ssize_t *got)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, request, length), (int)length);
	*got = rxw_call_read(call, reply, room);
	return rxw_call_end(call, 0, NULL);
}

/* Truncated requests. */
START_TEST(short_requests)
{
	static const uint8_t retrieve[8] = {0}, clear[7] = {0, 0, 0, 9, 0xff, 0xff, 0xff};
	uint8_t reply[64];
	ssize_t got;

	network_start();
	ck_assert_int_eq(raw_call(retrieve, 4, reply, sizeof(reply), &got), -453);
	ck_assert_int_eq(raw_call(retrieve, 7, reply, sizeof(reply), &got), -453);
	ck_assert_int_eq(raw_call(clear, 7, reply, sizeof(reply), &got), -453);
	ck_assert_int_eq(raw_call(retrieve, 3, reply, sizeof(reply), &got), -454);
	ck_assert_int_eq(raw_call(retrieve, 0, reply, sizeof(reply), &got), -454);
	network_stop();
}
END_TEST

/* The maximum number of peers, each with all functions of the file service: some 5 MB. */
START_TEST(large_reply)
{
	uint32_t version = 0, sec = 0, usec = 0, n = 0;
	uint64_t calls = 0;
	rpcStats list = {0};

	network_start();
	for (uint32_t i = 0; i < 1024; i++)
		count_call(&RXAFS_interface, i % RXAFS_ENTRIES, 0x0a010000 + i, 7001);
	ck_assert_int_eq(
		RXSTATS_RetrievePeerRPCStats(connection, 1, &version, &sec, &usec, &n, &list), 0);
	ck_assert_uint_eq(n, 1024 * RXAFS_ENTRIES);
	ck_assert_uint_eq(list.len, n * WORDS);
	for (uint32_t i = 0; i < n; i++)
		calls += list.val[i * WORDS + 7];
	ck_assert_uint_eq(calls, 1024);
	xdrfree_rpcStats(&list);
	network_stop();
}
END_TEST

/* -- recorded calls -- */

static char *load_vectors(void)
{
	FILE *f = fopen(RXW_TEST_SRCDIR "/vectors/rxstats.json", "r");
	char *text = calloc(1, 16384);

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_gt(fread(text, 1, 16383, f), 1000);
	fclose(f);
	return text;
}

/* The value after "NAME": in an object that starts at `object`; NULL if absent. */
static const char *value_of(const char *object, const char *name)
{
	const char *end = strchr(object, '}'), *at;
	char key[40];

	snprintf(key, sizeof(key), "\"%s\": ", name);
	at = strstr(object, key);
	return at && at < end ? at + strlen(key) : NULL;
}

/* Bytes of a quoted hexadecimal text. */
static size_t unhex(const char *text, uint8_t *bytes, size_t room)
{
	size_t n = 0;
	unsigned byte;

	ck_assert(*text++ == '"');
	for (; sscanf(text, "%2x", &byte) == 1 && *text != '"'; text += 2) {
		ck_assert_uint_lt(n, room);
		bytes[n++] = (uint8_t)byte;
	}
	return n;
}

/*
 * The recorded requests get the recorded answers, except those that need a superuser, whom we do
 * not know: 1.
 */
START_TEST(recorded_requests)
{
	char *text = load_vectors();
	unsigned calls = 0;

	network_start();
	for (const char *at = strstr(text, "\"caller\""); at; at = strstr(at + 1, "\"caller\"")) {
		bool superuser = strncmp(value_of(at, "caller"), "\"superuser\"", 11) == 0;
		const char *abort_code = value_of(at, "abort"), *body = value_of(at, "replyBody");
		uint8_t request[64], want[512], *reply = calloc(1, 65536);
		size_t length = unhex(value_of(at, "requestBody"), request, sizeof(request)), n;
		ssize_t got;
		int32_t code = raw_call(request, length, reply, 65536, &got);

		calls++;
		if (abort_code) {
			ck_assert_int_eq(code, atoi(abort_code));
		} else if (superuser) {
			ck_assert_int_eq(code, 1);
		} else {
			n = unhex(body, want, sizeof(want));
			ck_assert_int_eq(code, 0);
			/* Figures differ; the version, and that "on" is a word, are equal. */
			ck_assert_int_eq(got % 4, 0);
			if (n == 4 && request[3] == 8)
				ck_assert_mem_eq(reply, want, 4);
			else if (n == 4)
				ck_assert_int_eq(got, 4);
			else
				ck_assert_mem_eq(reply, want, 4);
		}
		free(reply);
	}
	ck_assert_uint_eq(calls, 13);
	network_stop();
	free(text);
}
END_TEST

/* The recorded entries belong to functions that were never called. */
static void compare_recorded(const char *text, const char *operation, bool peer)
{
	const char *at = strstr(text, operation);
	uint8_t body[512], entry[WORDS * 4];
	size_t n = unhex(value_of(at, "replyBody"), body, sizeof(body));
	struct rxw_xdr x;
	uint32_t word = 0;

	ck_assert_uint_eq(n, 20 + 3 * WORDS * 4);
	rxw_xdr_reader(&x, body, n);
	rxw_xdr_get_u32(&x, &word);
	ck_assert_uint_eq(word, RXSTATS_VERSION);
	rxw_xdr_skip(&x, 8);
	for (int i = 0; i < 2; i++) { /* number of entries, then of words */
		uint32_t all = 0;

		rxw_xdr_get_u32(&x, i ? &all : &word);
		ck_assert(i == 0 || all == word * WORDS);
	}
	ck_assert(rxw_xdr_ok(&x));
	read_entries(peer);
	ck_assert_int_eq(count, 23);
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < WORDS; i++)
			rxw_xdr_store32(entry + 4 * i, words[k * WORDS + i]);
		ck_assert_mem_eq(body + 20 + k * WORDS * 4, entry, sizeof(entry));
	}
}

START_TEST(recorded_replies)
{
	char *text = load_vectors();

	setup(true, true, 0);
	count_call(&PR_interface, PR_FN_GetCPS, 0x0a580002,
		   0xb06c); /* 8, none of the first three */
	compare_recorded(text, "\"RetrieveProcessRPCStats", false);
	compare_recorded(text, "\"RetrievePeerRPCStats", true);
	teardown();
	free(text);
}
END_TEST

TEST_MAIN("rxstats", one_entry, numbering, not_counted, peers, oldest_peers_go, clear_flags,
	  on_and_off, many_threads, operations, short_requests, large_reply,
	  recorded_requests, recorded_replies)
