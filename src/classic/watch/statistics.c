/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of the process's endpoints in the form of classic Rx, and as text; and statistics of procedure calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <rx/rx.h>

#include "../classic.h"

#define ROOM 512 /* counters of the library; there are about 100 */

/* Positions of arrays by type, which begin with type 1. */
#define READ(type) (offsetof(struct rx_statistics, packetsRead) + ((type)-1) * sizeof(int))
#define SENT(type) (offsetof(struct rx_statistics, packetsSent) + ((type)-1) * sizeof(int))
#define AT(member) offsetof(struct rx_statistics, member)

/* A member is the sum of the counters that have its position; others stay 0. */
static const struct {
	const char *name;
	size_t member;
} counters[] = {
	{"packets.received.data", READ(1)},
	{"packets.received.ack", READ(2)},
	{"packets.received.busy", READ(3)},
	{"packets.received.abort", READ(4)},
	{"packets.received.ackall", READ(5)},
	{"packets.received.challenge", READ(6)},
	{"packets.received.response", READ(7)},
	{"packets.received.debug", READ(8)},
	{"packets.received.version", READ(13)},
	{"packets.sent.data", SENT(1)},
	{"packets.sent.ack", SENT(2)},
	{"packets.sent.busy", SENT(3)},
	{"packets.sent.abort", SENT(4)},
	{"packets.sent.ackall", SENT(5)},
	{"packets.sent.challenge", SENT(6)},
	{"packets.sent.response", SENT(7)},
	{"packets.sent.debug", SENT(8)},
	{"packets.sent.version", SENT(13)},
	{"packets.received.data", AT(dataPacketsRead)},
	{"packets.received.ack", AT(ackPacketsRead)},
	{"duplicates", AT(dupPacketsRead)},
	{"drops.no-connection", AT(spuriousPacketsRead)},
	{"drops.call-number", AT(spuriousPacketsRead)},
	{"drops.state", AT(ignorePacketDally)},
	{"drops.short", AT(bogusPacketOnRead)},
	{"drops.truncated", AT(bogusPacketOnRead)},
	{"drops.type", AT(bogusPacketOnRead)},
	{"drops.memory", AT(noPacketBuffersOnRead)},
	{"kernel_drops", AT(noPacketBuffersOnRead)},
	{"syscalls.receive", AT(selects)},
	{"packets.sent.data", AT(dataPacketsSent)},
	{"packets.sent.ack", AT(ackPacketsSent)},
	{"packets.sent.abort", AT(abortPacketsSent)},
	{"packets.sent.busy", AT(busyPacketsSent)},
	{"probes", AT(pingPacketsSent)},
	{"retransmitted", AT(dataPacketsReSent)},
	{"send_errors", AT(netSendFailures)},
	{"connections_server", AT(nServerConns)},
	{"connections_client", AT(nClientConns)},
	{"peers", AT(nPeerStructs)},
	{"calls_active", AT(nCallStructs)},
	{"calls_refused", AT(nBusies)},
};

static void add_counter(struct rx_statistics *statistics, size_t member, uint64_t value)
{
	int sum;

	memcpy(&sum, (char *)statistics + member, sizeof(sum));
	sum = (int)((uint32_t)sum + (uint32_t)value);
	memcpy((char *)statistics + member, &sum, sizeof(sum));
}

static void add_endpoint(rxw_endpoint *endpoint, void *arg)
{
	struct rx_statistics *statistics = arg;
	const struct rxw_counter *c;
	uint64_t values[ROOM];

	if (rxw_endpoint_counters(endpoint, values, ROOM) < 0)
		return;
	for (size_t at = 0; at < ROOM && (c = rxw_counter_at(at)); at++)
		for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
			if (!strcmp(c->name, counters[i].name))
				add_counter(statistics, counters[i].member, values[at]);
}

struct rx_statistics *rx_GetStatistics(void)
{
	struct rx_statistics *statistics = calloc(1, sizeof(*statistics));

	if (statistics)
		classic_each_endpoint(add_endpoint, statistics);
	return statistics;
}

void rx_FreeStatistics(struct rx_statistics **statistics)
{
	free(*statistics);
	*statistics = NULL;
}

/* -- Text ----------------------------------------------------------------------------------------- */

static void print_types(FILE *file, const char *what, const int count[RX_N_PACKET_TYPES])
{
	static const char *const names[RX_N_PACKET_TYPES] = RX_PACKET_TYPES;

	fprintf(file, "   packets %s:", what);
	for (int i = 0; i < RX_N_PACKET_TYPES; i++)
		if (count[i] || strcmp(names[i], "unused") != 0)
			fprintf(file, " %s %u", names[i], (unsigned)count[i]);
	fprintf(file, "\n");
}

static void print_rtt(FILE *file, const struct rx_statistics *s)
{
	if (s->nRttSamples <= 0)
		return;
	fprintf(file,
		"   round-trip times: average %.3f s, least %.3f s, most %.3f s, %d samples\n",
		clock_Float(&s->totalRtt) / s->nRttSamples, clock_Float(&s->minRtt),
		clock_Float(&s->maxRtt), s->nRttSamples);
}

static void print_counters(FILE *file, const struct rx_statistics *s)
{
	char host[INET_ADDRSTRLEN] = "";
	struct in_addr bogus = {htonl((uint32_t)s->bogusHost)};

	inet_ntop(AF_INET, &bogus, host, sizeof(host));
	print_types(file, "read", s->packetsRead);
	fprintf(file, "   other read counters: data %u, ack %u, dup %u, spurious %u, dally %u\n",
		(unsigned)s->dataPacketsRead, (unsigned)s->ackPacketsRead,
		(unsigned)s->dupPacketsRead, (unsigned)s->spuriousPacketsRead,
		(unsigned)s->ignorePacketDally);
	fprintf(file, "   reads: bogus %u (last from %s), nothing %u, no buffers %u, selects %u\n",
		(unsigned)s->bogusPacketOnRead, host, (unsigned)s->noPacketOnRead,
		(unsigned)s->noPacketBuffersOnRead, (unsigned)s->selects);
	print_types(file, "sent", s->packetsSent);
	fprintf(file, "   other send counters: ack %u, data %u, resends %u, pushed %u, pings %u\n",
		(unsigned)s->ackPacketsSent, (unsigned)s->dataPacketsSent,
		(unsigned)s->dataPacketsReSent, (unsigned)s->dataPacketsPushed,
		(unsigned)s->pingPacketsSent);
	fprintf(file, "   failures: send %u, fatal %u, busy %u\n", (unsigned)s->netSendFailures,
		(unsigned)s->fatalErrors, (unsigned)s->nBusies);
	print_rtt(file, s);
	fprintf(file,
		"   %d server connections, %d client connections, %d peer structs, "
		"%d call structs, %d free call structs\n",
		s->nServerConns, s->nClientConns, s->nPeerStructs, s->nCallStructs,
		s->nFreeCallStructs);
}

void rx_PrintTheseStats(FILE *file, struct rx_statistics *statistics, int size,
			afs_int32 free_packets, char version)
{
	if (size != (int)sizeof(*statistics))
		fprintf(file, "rx stats: %d bytes instead of %zu: some values may be wrong\n", size,
			sizeof(*statistics));
	fprintf(file,
		"rx stats: free packets %d, allocs %u, failed allocs: rcv %u, send %u, ack %u",
		free_packets, (unsigned)statistics->packetRequests,
		(unsigned)statistics->receivePktAllocFailures,
		(unsigned)statistics->sendPktAllocFailures,
		(unsigned)statistics->specialPktAllocFailures);
	if (version >= RX_DEBUGI_VERSION_W_NEWPACKETTYPES)
		fprintf(file, ", buffers rcv %u, send %u",
			(unsigned)statistics->receiveCbufPktAllocFailures,
			(unsigned)statistics->sendCbufPktAllocFailures);
	fprintf(file, "\n");
	print_counters(file, statistics);
}

void rx_PrintStats(FILE *file)
{
	struct rx_statistics *statistics = rx_GetStatistics();

	if (!statistics)
		return;
	fprintf(file, "rx stats:\n");
	print_counters(file, statistics);
	fprintf(file, "   settings without effect: %u\n", classic_ignored_count());
	rx_FreeStatistics(&statistics);
}

void rx_PrintPeerStats(FILE *file, struct rx_peer *peer)
{
	char host[INET_ADDRSTRLEN] = "";
	struct in_addr address = {rx_HostOf(peer)};

	inet_ntop(AF_INET, &address, host, sizeof(host));
	fprintf(file, "Peer %s, port %u\n", host, (unsigned)ntohs(rx_PortOf(peer)));
}

/* -- Procedure calls, as stubs count them and OpenAFS's service 409 reads them --------------------- */

static _Atomic(int (*)(struct rx_call *)) user_ok;
/* The table exists from the first use to the end of the process; NULL without memory. */
static rxw_rpcstats *table_of_process;

static void create_statistics_table(void)
{
	if (rxw_rpcstats_create(NULL, &table_of_process))
		classic_log("cannot count procedure calls: no memory");
}

static rxw_rpcstats *statistics_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, create_statistics_table);
	return table_of_process;
}

static bool is_kind_enabled(enum rxw_rpcstats_kind kind)
{
	return rxw_rpcstats_enabled(statistics_table(), kind);
}

void rx_RecordCallStatistics(struct rx_call *call, unsigned int interface_id, unsigned int function,
			     unsigned int functions, int is_server)
{
	struct sockaddr_in peer = {.sin_family = AF_INET};
	struct rxw_rpcstats_call of = {
		.size = sizeof(of),
		.interface = interface_id,
		.function = function,
		.functions = functions,
		.client = is_server != 0,
		.peer = (const struct sockaddr *)&peer,
		.peer_len = sizeof(peer),
	};
	struct classic_usage usage;

	if (!is_kind_enabled(RXW_RPCSTATS_PROCESS) && !is_kind_enabled(RXW_RPCSTATS_PEERS))
		return;
	classic_usage(call, &usage);
	peer.sin_addr.s_addr = usage.host;
	peer.sin_port = usage.port;
	of.bytes_sent = usage.sent;
	of.bytes_received = usage.received;
	of.queue_ns = usage.queue_ns;
	of.run_ns = usage.run_ns;
	/* A failure has no reader: the call is not counted then. */
	(void)rxw_rpcstats_record(statistics_table(), &of);
}

/* -- Reading -------------------------------------------------------------------------------------- */

static int retrieve_statistics(enum rxw_rpcstats_kind kind, afs_uint32 caller_version,
			       afs_uint32 *version, afs_uint32 *seconds, afs_uint32 *microseconds,
			       size_t *size, afs_uint32 *count, afs_uint32 **statistics)
{
	struct clock now;
	int functions = 0;

	clock_GetTime(&now);
	*seconds = (afs_uint32)now.sec;
	*microseconds = (afs_uint32)now.usec;
	*version = RX_STATS_RETRIEVAL_VERSION;
	*statistics = NULL;
	if (is_kind_enabled(kind) && caller_version >= RX_STATS_RETRIEVAL_FIRST_EDITION)
		functions = rxw_rpcstats_entries(statistics_table(), kind, statistics);
	*count = functions > 0 ? (afs_uint32)functions : 0;
	*size = *count * RXW_RPCSTATS_WORDS * sizeof(afs_uint32);
	return functions < 0 ? ENOMEM : 0;
}

int rx_RetrieveProcessRPCStats(afs_uint32 caller_version, afs_uint32 *version, afs_uint32 *seconds,
			       afs_uint32 *microseconds, size_t *size, afs_uint32 *count,
			       afs_uint32 **statistics)
{
	return retrieve_statistics(RXW_RPCSTATS_PROCESS, caller_version, version, seconds,
				   microseconds, size, count, statistics);
}

int rx_RetrievePeerRPCStats(afs_uint32 caller_version, afs_uint32 *version, afs_uint32 *seconds,
			    afs_uint32 *microseconds, size_t *size, afs_uint32 *count,
			    afs_uint32 **statistics)
{
	return retrieve_statistics(RXW_RPCSTATS_PEERS, caller_version, version, seconds,
				   microseconds, size, count, statistics);
}

void rx_FreeRPCStats(afs_uint32 *statistics, size_t size)
{
	(void)size;
	free(statistics);
}

/* The bits of both interfaces are the same ones. */
_Static_assert(RXW_RPCSTATS_CLEAR_BYTES_RECEIVED == AFS_RX_STATS_CLEAR_BYTES_RCVD, "bits");
_Static_assert(RXW_RPCSTATS_CLEAR_RUN_MAX == AFS_RX_STATS_CLEAR_EXEC_TIME_MAX, "bits");
_Static_assert(RXW_RPCSTATS_WORDS == sizeof(rx_function_entry_v1_t) / sizeof(afs_uint32), "layout");

/* -- Settings ------------------------------------------------------------------------------------- */

int rx_queryProcessRPCStats(void)
{
	return is_kind_enabled(RXW_RPCSTATS_PROCESS);
}

int rx_queryPeerRPCStats(void)
{
	return is_kind_enabled(RXW_RPCSTATS_PEERS);
}

static void enable_statistics(enum rxw_rpcstats_kind kind, bool on)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	/* The variable fits the table, also when several threads change it. */
	pthread_mutex_lock(&lock);
	(void)rxw_rpcstats_enable(statistics_table(), kind, on);
	rx_enable_stats =
		is_kind_enabled(RXW_RPCSTATS_PROCESS) || is_kind_enabled(RXW_RPCSTATS_PEERS);
	pthread_mutex_unlock(&lock);
}

void rx_enableProcessRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PROCESS, true);
}

void rx_enablePeerRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PEERS, true);
}

void rx_disableProcessRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PROCESS, false);
}

void rx_disablePeerRPCStats(void)
{
	enable_statistics(RXW_RPCSTATS_PEERS, false);
}

void rx_clearProcessRPCStats(afs_uint32 what)
{
	(void)rxw_rpcstats_clear(statistics_table(), RXW_RPCSTATS_PROCESS, what);
}

void rx_clearPeerRPCStats(afs_uint32 what)
{
	(void)rxw_rpcstats_clear(statistics_table(), RXW_RPCSTATS_PEERS, what);
}

/* -- Permission ----------------------------------------------------------------------------------- */

void rx_SetRxStatUserOk(int (*allowed)(struct rx_call *call))
{
	user_ok = allowed;
}

int rx_RxStatUserOk(struct rx_call *call)
{
	int (*allowed)(struct rx_call *) = user_ok;

	return allowed ? allowed(call) : 0;
}
