/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of packets and calls, rxdebug and addresses, with both sides in one process. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <rx/rx.h>

#include "tests/main.h"

#define SERVICE	  5001
#define INTERFACE 42
#define FUNCTIONS 3
#define WORDS	  28
#define NO_TIME	  9999999u

static struct {
	struct rx_securityClass *classes[1];
	struct rx_connection *connection;
	u_short port;
	int fd; /* for rxdebug */
} bed;

/*
 * A request has two words: a function of the interface, and the bytes of the reply. Counts the call
 * as a generated stub does.
 */
static afs_int32 procedure(struct rx_call *call)
{
	afs_int32 function, length, code = 0;
	char zero = 0;

	if (rx_Read32(call, &function) != 4 || rx_Read32(call, &length) != 4)
		return RX_EOF;
	while (!code && length-- > 0)
		code = rx_Write(call, &zero, 1) == 1 ? 0 : RX_PROTOCOL_ERROR;
	if (rx_enable_stats)
		rx_RecordCallStatistics(call, INTERFACE, (unsigned)function, FUNCTIONS, 0);
	return code;
}

static void ask(afs_int32 function, afs_int32 length)
{
	struct rx_call *call = rx_NewCall(bed.connection);
	char byte;

	ck_assert_int_eq(rx_Write32(call, &function), 4);
	ck_assert_int_eq(rx_Write32(call, &length), 4);
	for (; length > 0; length--)
		ck_assert_int_eq(rx_Read(call, &byte, 1), 1);
	ck_assert_int_eq(rx_EndCall(call, 0), 0);
	if (rx_enable_stats)
		rx_RecordCallStatistics(call, INTERFACE, (unsigned)function, FUNCTIONS, 1);
}

static u_short start(void)
{
	for (int port = 20000 + getpid() % 10000; port < 60000; port++) {
		int rc = rx_InitHost(htonl(INADDR_LOOPBACK), htons((u_short)port));

		if (!rc)
			return htons((u_short)port);
		ck_assert_int_eq(rc, RX_ADDRINUSE);
	}
	ck_abort_msg("no free port");
	return 0;
}

static void set_up(void)
{
	bed.classes[0] = rxnull_NewServerSecurityObject();
	bed.port = start();
	ck_assert_ptr_nonnull(rx_NewService(0, SERVICE, "test", bed.classes, 1, procedure));
	rx_StartServer(0);
	bed.connection =
		rx_NewConnection(htonl(INADDR_LOOPBACK), bed.port, SERVICE, bed.classes[0], 0);
	bed.fd = socket(AF_INET, SOCK_DGRAM, 0);
	ck_assert_int_ge(bed.fd, 0);
}

static void tear_down(void)
{
	close(bed.fd);
	rx_DestroyConnection(bed.connection);
	rx_Finalize();
	rxs_Release(bed.classes[0]);
}

/* -- Calls ---------------------------------------------------------------------------------------- */

struct list {
	afs_uint32 *words, count;
	size_t size;
};

static struct list retrieve(bool peers)
{
	afs_uint32 version = 0, seconds = 0, microseconds = 1000000;
	struct list list = {(afs_uint32 *)&list, 77, 77};
	int rc = (peers ? rx_RetrievePeerRPCStats : rx_RetrieveProcessRPCStats)(
		1, &version, &seconds, &microseconds, &list.size, &list.count, &list.words);

	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(version, RX_STATS_RETRIEVAL_VERSION);
	ck_assert_uint_eq(list.size, list.count * WORDS * sizeof(afs_uint32));
	ck_assert_int_eq(list.words == NULL, list.count == 0);
	ck_assert_int_le(labs((long)seconds - (long)time(NULL)), 5);
	ck_assert_uint_lt(microseconds, 1000000);
	return list;
}

static const afs_uint32 *find(const struct list *list, unsigned function, unsigned remote_is_server)
{
	for (afs_uint32 i = 0; i < list->count; i++) {
		const afs_uint32 *row = list->words + i * WORDS;

		if (row[2] == remote_is_server && row[5] == function)
			return row;
	}
	ck_abort_msg("no row of function %u", function);
	return NULL;
}

static void check_calls(const afs_uint32 *row, unsigned calls, unsigned sent, unsigned received)
{
	ck_assert_uint_eq(row[3], INTERFACE);
	ck_assert_uint_eq(row[4], FUNCTIONS);
	ck_assert_uint_eq(row[6], 0);
	ck_assert_uint_eq(row[7], calls);
	ck_assert_uint_eq(row[8], 0);
	ck_assert_uint_eq(row[9], sent);
	ck_assert_uint_eq(row[10], 0);
	ck_assert_uint_eq(row[11], received);
}

static double seconds_of(const afs_uint32 *time)
{
	return time[0] + time[1] / 1e6;
}

/* The times of running: of one call at least. */
static void check_times(const afs_uint32 *row, double most)
{
	ck_assert_double_le(seconds_of(row + 24), seconds_of(row + 26));
	ck_assert_double_le(seconds_of(row + 26), seconds_of(row + 20));
	ck_assert_double_le(seconds_of(row + 20), most);
	ck_assert_double_le(seconds_of(row + 22), most * most + 1e-6);
	ck_assert_double_gt(seconds_of(row + 20), 0);
}

START_TEST(calls_of_the_process)
{
	uint64_t begun;
	struct timespec now;
	double most;
	struct list list;

	set_up();
	ask(1, 5);
	ck_assert_int_eq(rx_enable_stats, 0);
	ck_assert_uint_eq(retrieve(false).count, 0);
	rx_enableProcessRPCStats();
	ck_assert_int_eq(rx_enable_stats, 1);
	ck_assert_int_ne(rx_queryProcessRPCStats(), 0);
	ck_assert_int_eq(rx_queryPeerRPCStats(), 0);
	ck_assert_uint_eq(retrieve(false).count, 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	begun = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	ask(1, 5);
	ask(1, 7);
	ask(2, 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	most = (double)((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - begun) / 1e9;
	list = retrieve(false);
	ck_assert_uint_eq(list.count, 2 * FUNCTIONS);
	for (unsigned side = 0; side < 2; side++) {
		check_calls(find(&list, 0, side), 0, 0, 0);
		ck_assert_uint_eq(find(&list, 0, side)[16], NO_TIME);
		ck_assert_uint_eq(find(&list, 0, side)[25], NO_TIME);
		check_times(find(&list, 1, side), most);
		ck_assert_uint_eq(find(&list, 1, side)[0], 0xffffffff);
		ck_assert_uint_eq(find(&list, 1, side)[1], 0xffffffff);
	}
	check_calls(find(&list, 1, 1), 2, 16, 12);
	check_calls(find(&list, 1, 0), 2, 12, 16);
	check_calls(find(&list, 2, 1), 1, 8, 0);
	check_calls(find(&list, 2, 0), 1, 0, 8);
	rx_FreeRPCStats(list.words, list.size);
	ck_assert_uint_eq(retrieve(true).count, 0);
	rx_disableProcessRPCStats();
	ck_assert_int_eq(rx_enable_stats, 0);
	ck_assert_uint_eq(retrieve(false).count, 0);
	tear_down();
}
END_TEST

START_TEST(calls_by_peer)
{
	struct list list;

	set_up();
	rx_enablePeerRPCStats();
	rx_enableProcessRPCStats();
	rx_disableProcessRPCStats();
	ck_assert_int_eq(rx_enable_stats, 1);
	ask(0, 3);
	list = retrieve(true);
	/* Both sides have the same address. */
	ck_assert_uint_eq(list.count, 2 * FUNCTIONS);
	check_calls(find(&list, 0, 1), 1, 8, 3);
	for (afs_uint32 i = 0; i < list.count; i++) {
		ck_assert_uint_eq(list.words[i * WORDS], htonl(INADDR_LOOPBACK));
		ck_assert_uint_eq(list.words[i * WORDS + 1], bed.port);
	}
	rx_FreeRPCStats(list.words, list.size);
	rx_disablePeerRPCStats();
	ck_assert_int_eq(rx_enable_stats, 0);
	ck_assert_uint_eq(retrieve(true).count, 0);
	tear_down();
}
END_TEST

START_TEST(clearing)
{
	/* The first word of what each bit sets back. */
	static const int at[] = {7, 9, 11, 12, 14, 16, 18, 20, 22, 24, 26};
	struct list before, after;

	set_up();
	rx_enableProcessRPCStats();
	ask(0, 3);
	for (size_t bit = 0; bit < sizeof(at) / sizeof(at[0]); bit++) {
		const afs_uint32 *was, *is;

		before = retrieve(false);
		rx_clearPeerRPCStats(AFS_RX_STATS_CLEAR_ALL);
		rx_clearProcessRPCStats((afs_uint32)1 << bit);
		after = retrieve(false);
		was = find(&before, 0, 1);
		is = find(&after, 0, 1);
		for (int i = 0; i < WORDS; i++) {
			bool cleared = i == at[bit] || (bit > 2 && i == at[bit] + 1);
			bool least = bit == 5 || bit == 9;

			ck_assert_uint_eq(is[i], !cleared ? was[i] : least ? NO_TIME : 0);
		}
		rx_FreeRPCStats(before.words, before.size);
		rx_FreeRPCStats(after.words, after.size);
	}
	rx_disableProcessRPCStats();
	tear_down();
}
END_TEST

static int allow(struct rx_call *call)
{
	return call == NULL ? 5 : 0;
}

START_TEST(permission)
{
	ck_assert_int_eq(rx_RxStatUserOk(NULL), 0);
	rx_SetRxStatUserOk(allow);
	ck_assert_int_eq(rx_RxStatUserOk(NULL), 5);
	rx_SetRxStatUserOk(NULL);
	ck_assert_int_eq(rx_RxStatUserOk(NULL), 0);
}
END_TEST

/* -- Packets -------------------------------------------------------------------------------------- */

START_TEST(packets)
{
	struct rx_statistics *s;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(file);
	set_up();
	for (int i = 0; i < 10; i++)
		ask(0, 1);
	s = rx_GetStatistics();
	ck_assert_ptr_nonnull(s);
	ck_assert_int_ge(s->packetsRead[0], 20);
	ck_assert_int_eq(s->packetsRead[0], s->dataPacketsRead);
	ck_assert_int_ge(s->packetsSent[0], 20);
	ck_assert_int_eq(s->packetsSent[1], s->ackPacketsSent);
	ck_assert_int_eq(s->nClientConns, 1);
	ck_assert_int_eq(s->nServerConns, 1);
	ck_assert_int_gt(s->selects, 0);
	s->packetsRead[12] = 77;
	rx_PrintTheseStats(file, s, sizeof(*s), 123, RX_DEBUGI_VERSION);
	rx_PrintTheseStats(file, s, 200, 123, RX_DEBUGI_VERSION);
	rx_FreeStatistics(&s);
	ck_assert_ptr_null(s);
	rx_PrintStats(file);
	rx_PrintPeerStats(file, rx_PeerOf(bed.connection));
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_ptr_nonnull(strstr(text, "free packets 123"));
	ck_assert_ptr_nonnull(strstr(text, "packets read: data "));
	ck_assert_ptr_nonnull(strstr(text, " version 77\n"));
	ck_assert_ptr_nonnull(strstr(text, "200 bytes instead of 284"));
	ck_assert_ptr_nonnull(strstr(text, "1 server connections, 1 client connections"));
	ck_assert_ptr_nonnull(strstr(text, "Peer 127.0.0.1, port "));
	free(text);
	tear_down();
}
END_TEST

/* -- rxdebug -------------------------------------------------------------------------------------- */

/* The connection of this service at one side, in the list of all. */
static void find_connection(afs_uint32 supported, char type)
{
	afs_int32 next = 0;
	struct rx_debugConn c;
	afs_uint32 unused;

	do
		ck_assert_int_eq(rx_GetServerConnections(bed.fd, htonl(INADDR_LOOPBACK), bed.port,
							 &next, 1, supported, &c, &unused),
				 sizeof(c));
	while (c.cid != -1 && c.type != type);
	ck_assert_int_eq(c.type, type);
	ck_assert_uint_eq((afs_uint32)c.cid, rx_GetConnectionId(bed.connection));
	ck_assert_uint_eq((afs_uint32)c.epoch, rx_GetConnectionEpoch(bed.connection));
	ck_assert_uint_eq(c.host, htonl(INADDR_LOOPBACK));
	ck_assert_uint_eq((u_short)c.port, bed.port);
	ck_assert_int_eq(c.securityIndex, RX_SECIDX_NULL);
	ck_assert_int_eq(c.callNumber[0], 2);
}

START_TEST(rxdebug)
{
	afs_uint32 supported, unused, host = htonl(INADDR_LOOPBACK);
	struct rx_debugStats basic;
	struct rx_statistics s;
	struct rx_debugPeer peer;
	afs_int32 next = 0;
	char version[64];

	set_up();
	ask(0, 100);
	ask(0, 100);
	ck_assert_int_eq(rx_GetServerDebug(bed.fd, host, bed.port, &basic, &supported),
			 sizeof(basic));
	ck_assert_uint_eq(supported, 0x3df);
	ck_assert_int_eq(basic.callsExecuted, 2);
	ck_assert_int_gt(basic.nPackets, 0);
	ck_assert_int_gt(rx_GetServerVersion(bed.fd, host, bed.port, sizeof(version), version), 0);
	ck_assert_int_eq(rx_GetServerStats(bed.fd, host, bed.port, &s, &unused), sizeof(s));
	ck_assert_int_ge(s.dataPacketsSent, 4);
	find_connection(supported, RX_SERVER_CONNECTION);
	find_connection(supported, RX_CLIENT_CONNECTION);
	do
		ck_assert_int_eq(
			rx_GetServerPeers(bed.fd, host, bed.port, &next, supported, &peer, &unused),
			sizeof(peer));
	while (peer.host != 0xffffffff && peer.port != bed.port);
	ck_assert_uint_eq(peer.port, bed.port);
	ck_assert_uint_eq(peer.host, host);
	ck_assert_int_gt(peer.nSent, 0);
	tear_down();
}
END_TEST

/* -- Addresses ------------------------------------------------------------------------------------ */

START_TEST(addresses)
{
	afs_uint32 all[64], again[64], masks[64], mtus[64];
	int count = rx_getAllAddr(all, 64);

	ck_assert_int_ge(count, 0);
	ck_assert_int_eq(rx_getAllAddrMaskMtu(again, masks, mtus, 64), count);
	for (int i = 0; i < count; i++) {
		afs_uint32 host_bits = ~ntohl(masks[i]);

		ck_assert_uint_eq(all[i], again[i]);
		ck_assert(!rx_IsLoopbackAddr(ntohl(all[i])));
		ck_assert_uint_eq(host_bits & (host_bits + 1), 0);
		ck_assert_uint_ge(ntohl(mtus[i]), 68);
	}
	ck_assert_int_eq(rx_getAllAddr(all, 0), 0);
	if (count > 0)
		ck_assert_int_eq(rx_getAllAddr(all, 1), 1);
}
END_TEST

TEST_MAIN("watch", calls_of_the_process, calls_by_peer, clearing, permission, packets, rxdebug,
	  addresses)
