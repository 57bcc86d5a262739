/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of the process's endpoints in the form of classic Rx, and as text. */
#include <arpa/inet.h>
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
