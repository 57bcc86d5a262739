/* SPDX-License-Identifier: BSD-2-Clause */
/* The service 409 for reading the statistics: who may, and its procedures (rx-protocol 10.1). */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "common/clock.h"
#include "rpcstats/private.h"

#define REQUEST_MAX 65536u /* bytes */

/* -- access -- */

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
				  &((const struct sockaddr_in6 *)b)->sin6_addr);
}

bool rxw_rpcstats_is_local(const struct sockaddr *peer, const struct sockaddr *local,
			   socklen_t local_len)
{
	if (local_len && same_address(peer, local))
		return true;
	if (peer->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr) >> 24 == 127;
	if (peer->sa_family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)peer)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(a) ||
		       (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
	}
	return false;
}

static bool may_read_stats(const struct rxw_rpcstats *stats, const rxw_call *call)
{
	struct sockaddr_storage peer, local;
	socklen_t peer_len = sizeof(peer), local_len = sizeof(local);

	if (stats->open)
		return true;
	if (rxw_call_peer(call, &peer, &peer_len))
		return false;
	if (rxw_call_local(call, &local, &local_len))
		local_len = 0;
	return rxw_rpcstats_is_local((const struct sockaddr *)&peer,
				     (const struct sockaddr *)&local, local_len);
}

/* -- procedures -- */

static rxw_code reply_words(rxw_call *call, const uint32_t *first, size_t count,
			    const uint32_t *more, size_t more_count)
{
	struct rxw_rpc_stream s;

	rxw_rpc_writer(&s, call);
	rxw_xdr_put_words(&s.xdr, first, count);
	rxw_xdr_put_words(&s.xdr, more, more_count);
	return rxw_rpc_flush(&s) ? 0 : RXW_RPC_SS_MARSHAL;
}

/* Reads an argument, and ignores it. */
static bool take_word(rxw_call *call)
{
	struct rxw_rpc_stream s;
	uint32_t word;

	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, REQUEST_MAX);
	return rxw_xdr_get_u32(&s.xdr, &word);
}

static rxw_code retrieve_entries(rxw_call *call, struct rxw_rpcstats *stats,
				 enum rxw_rpcstats_kind kind)
{
	uint32_t head[5], *words;
	rxw_code code;
	int64_t now;
	int n;

	if (!take_word(call))
		return RXW_RPC_SS_UNMARSHAL;
	if (!may_read_stats(stats, call))
		return EPERM;
	n = rxw_rpcstats_entries(stats, kind, &words);
	if (n < 0)
		return ENOMEM;
	now = wall_ns();
	head[0] = RXW_RPCSTATS_VERSION;
	head[1] = (uint32_t)(now / NS_PER_S);
	head[2] = (uint32_t)(now % NS_PER_S / 1000);
	head[3] = (uint32_t)n;
	head[4] = (uint32_t)n * RXW_RPCSTATS_WORDS; /* the length of the array that follows */
	code = reply_words(call, head, 5, words, head[4]);
	free(words);
	return code;
}

static rxw_code serve_retrieve_process(rxw_call *call, const void *service)
{
	return retrieve_entries(call, (struct rxw_rpcstats *)(uintptr_t)service,
				RXW_RPCSTATS_PROCESS);
}

static rxw_code serve_retrieve_peers(rxw_call *call, const void *service)
{
	return retrieve_entries(call, (struct rxw_rpcstats *)(uintptr_t)service,
				RXW_RPCSTATS_PEERS);
}

static rxw_code serve_query_process(rxw_call *call, const void *service)
{
	uint32_t on = rxw_rpcstats_enabled(service, RXW_RPCSTATS_PROCESS);

	return reply_words(call, &on, 1, NULL, 0);
}

static rxw_code serve_query_peers(rxw_call *call, const void *service)
{
	uint32_t on = rxw_rpcstats_enabled(service, RXW_RPCSTATS_PEERS);

	return reply_words(call, &on, 1, NULL, 0);
}

static rxw_code serve_version(rxw_call *call, const void *service)
{
	uint32_t version = RXW_RPCSTATS_VERSION;

	(void)service;
	return reply_words(call, &version, 1, NULL, 0);
}

/* Callers are anonymous, so changes are refused. */
static rxw_code serve_change(rxw_call *call, const void *service)
{
	(void)call, (void)service;
	return EPERM;
}

static rxw_code serve_clear(rxw_call *call, const void *service)
{
	(void)service;
	return take_word(call) ? EPERM : RXW_RPC_SS_UNMARSHAL;
}

/* -- the service -- */

#define PROCEDURES(X)                                         \
	X(0, RetrieveProcessRPCStats, serve_retrieve_process) \
	X(1, RetrievePeerRPCStats, serve_retrieve_peers)      \
	X(2, QueryProcessRPCStats, serve_query_process)       \
	X(3, QueryPeerRPCStats, serve_query_peers)            \
	X(4, EnableProcessRPCStats, serve_change)             \
	X(5, EnablePeerRPCStats, serve_change)                \
	X(6, DisableProcessRPCStats, serve_change)            \
	X(7, DisablePeerRPCStats, serve_change)               \
	X(8, QueryRPCStatsVersion, serve_version)             \
	X(9, ClearProcessRPCStats, serve_clear)               \
	X(10, ClearPeerRPCStats, serve_clear)

static const struct rxw_rpc_function functions[] = {
#define X(opcode, name, stub) {opcode, "RXSTATS_" #name},
	PROCEDURES(X)
#undef X
};

static const struct rxw_rpc_entry entries[] = {
#define X(opcode, name, stub) {opcode, opcode, stub},
	PROCEDURES(X)
#undef X
};

#define COUNT (sizeof(entries) / sizeof(entries[0]))

static const struct rxw_rpc_interface interface = {
	.name = "RXSTATS_", .stat_index = 9, .count = COUNT, .functions = functions};

static const struct rxw_rpc_table table = {
	.interface = &interface, .entries = entries, .count = COUNT};

static rxw_code serve_stats(rxw_call *call, void *stats)
{
	return rxw_rpc_serve(call, &table, NULL, stats);
}

int rxw_rpcstats_serve(rxw_rpcstats *stats, rxw_endpoint *endpoint)
{
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = RXW_RPCSTATS_SERVICE,
					      .name = "rxstats",
					      .handler = serve_stats,
					      .context = stats,
					      .workers_max = 1};

	return stats ? rxw_service_add(endpoint, &options, NULL) : -RXW_EINVAL;
}
