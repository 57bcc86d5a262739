/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls the statistics service (409) of a server through OpenAFS's own stubs.
 *
 *   afsrx_stats HOST PORT version|on|process|peers|change
 *
 * version: the number. on: "process 0|1 peers 0|1". process, peers: "entries N", then one line for
 * each function that was called. change: the codes of the six calls that require a superuser.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "afsrx.h"

#include <rx/rxstat.h>

enum {
	STATS_SERVICE = 409,
	WORDS = 28
};

static struct rx_connection *connect_to(const char *host, const char *port)
{
	struct in_addr address;

	if (inet_pton(AF_INET, host, &address) != 1)
		afsrx_usage_die("%s: not an IPv4 address", host);
	return rx_NewConnection(address.s_addr,
				htons((uint16_t)afsrx_number("PORT", port, 1, 65535)),
				STATS_SERVICE, rxnull_NewClientSecurityObject(), 0);
}

static uint64_t wide(const afs_uint32 *w)
{
	return (uint64_t)w[0] << 32 | w[1];
}

static void print_entry(const afs_uint32 *w)
{
	char host[INET_ADDRSTRLEN] = "-";
	struct in_addr address = {.s_addr = w[0]};

	if (wide(w + 6) == 0)
		return;
	if (w[0] != 0xffffffff)
		inet_ntop(AF_INET, &address, host, sizeof(host));
	printf("peer %s port %u %s interface %u function %u of %u calls %" PRIu64 " sent %" PRIu64
	       " received %" PRIu64 " queue %u.%06u run %u.%06u least %u.%06u "
	       "most %u.%06u\n",
	       host, w[1] == 0xffffffff ? 0 : ntohs((uint16_t)w[1]), w[2] ? "client" : "server",
	       w[3], w[5], w[4], wide(w + 6), wide(w + 8), wide(w + 10), w[12], w[13], w[20], w[21],
	       w[24], w[25], w[26], w[27]);
}

/* OpenAFS's stub for peers names three of its results in another order than that on the wire. */
static int print_list(struct rx_connection *connection, int peers)
{
	afs_uint32 version = 0, sec = 0, usec = 0, count = 0;
	rpcStats list = {0};
	int code = peers ? RXSTATS_RetrievePeerRPCStats(connection, 1, &version, &sec, &usec,
							&count, &list)
			 : RXSTATS_RetrieveProcessRPCStats(connection, 1, &version, &sec, &usec,
							   &count, &list);

	if (code)
		return code;
	printf("version %u entries %u words %u clock %u.%06u\n", version, count, list.rpcStats_len,
	       sec, usec);
	for (u_int i = 0; i + WORDS <= list.rpcStats_len; i += WORDS)
		print_entry(list.rpcStats_val + i);
	return 0;
}

static int print_changes(struct rx_connection *connection)
{
	const int codes[] = {
		RXSTATS_EnableProcessRPCStats(connection),
		RXSTATS_EnablePeerRPCStats(connection),
		RXSTATS_DisableProcessRPCStats(connection),
		RXSTATS_DisablePeerRPCStats(connection),
		RXSTATS_ClearProcessRPCStats(connection, 0xffffffff),
		RXSTATS_ClearPeerRPCStats(connection, 0xffffffff),
	};

	printf("codes");
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		printf(" %d", codes[i]);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	const struct afsrx_setup setup = {0};
	struct rx_connection *connection;
	afs_uint32 version = 0;
	afs_int32 on[2] = {0};
	int code;

	if (argc != 4)
		afsrx_usage_die("HOST PORT version|on|process|peers|change");
	alarm(60);
	afsrx_setup_before(&setup);
	if (rx_Init(0))
		afsrx_die("cannot open a port");
	afsrx_setup_after(&setup);
	connection = connect_to(argv[1], argv[2]);
	if (strcmp(argv[3], "version") == 0) {
		code = RXSTATS_QueryRPCStatsVersion(connection, &version);
		if (!code)
			printf("version %u\n", version);
	} else if (strcmp(argv[3], "on") == 0) {
		code = RXSTATS_QueryProcessRPCStats(connection, &on[0]);
		if (!code)
			code = RXSTATS_QueryPeerRPCStats(connection, &on[1]);
		if (!code)
			printf("process %d peers %d\n", on[0], on[1]);
	} else if (strcmp(argv[3], "change") == 0) {
		code = print_changes(connection);
	} else {
		code = print_list(connection, strcmp(argv[3], "peers") == 0);
	}
	if (code)
		afsrx_die("%s: the server returned %d", argv[3], code);
	return 0;
}
