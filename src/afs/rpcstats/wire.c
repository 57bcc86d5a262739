/* SPDX-License-Identifier: BSD-2-Clause */
/* The encoding of the statistics: entries, their numbering, the service 409. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afs/rpcstats/private.h"
#include "common/clock.h"

/* -- the numbering of functions -- */

/* Operations that follow each other in OpenAFS's interface file. */
struct run {
	int32_t first;
	unsigned count;
};

/*
 * For interfaces whose .xg file here has another order. Interfaces that are not listed have the
 * same order, or do not exist in OpenAFS. Taken from the tables of names in its libraries.
 */
static const struct order {
	uint32_t stat_index;
	struct run run[12]; /* up to the first that has no count */
} orders[] = {
	{6, {{204, 15}, {65536, 3}}}, /* callback */
	{8, {{500, 23}}},	      /* protection */
	{15,			      /* volume location */
	 {{514, 1},
	  {504, 1},
	  {519, 1},
	  {527, 1},
	  {533, 1},
	  {501, 3},
	  {505, 9},
	  {515, 4},
	  {520, 5},
	  {532, 1},
	  {534, 1}}},
	{16, {{100, 29}, {65536, 4}, {65547, 1}}}, /* volume server */
};

static const struct run *order_of(uint32_t stat_index)
{
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (orders[i].stat_index == stat_index)
			return orders[i].run;
	return NULL;
}

/* The entry of an operation; `behind` if OpenAFS does not have it. */
static unsigned entry_of(const struct run *run, int32_t opcode, unsigned behind)
{
	unsigned before = 0;

	for (; run->count; before += run->count, run++)
		if (opcode >= run->first && opcode - run->first < (int32_t)run->count)
			return before + (unsigned)(opcode - run->first);
	return behind;
}

struct stats_known *stats_known_create(const struct rxw_rpc_interface *interface, bool client)
{
	const struct run *order = order_of(interface->stat_index);
	unsigned foreign = 0, entries;
	struct stats_known *known;

	for (const struct run *run = order; run && run->count; run++)
		foreign += run->count;
	known = malloc(sizeof(*known) + (foreign + interface->count) * sizeof(known->function[0]));
	if (!known)
		return NULL;
	entries = foreign;
	for (unsigned i = 0; i < foreign; i++)
		known->function[i] = STATS_NO_FUNCTION;
	for (unsigned i = 0; i < interface->count; i++) {
		unsigned entry = entries;

		if (order)
			entry = entry_of(order, interface->functions[i].opcode, entries);
		if (entry == entries)
			entries++;
		known->function[entry] = (uint16_t)i;
	}
	known->interface = interface;
	known->client = client;
	known->entries = entries;
	return known;
}

/* -- entries -- */

/* The minimum if no time has been measured. */
#define NO_TIME 9999999u

static uint32_t *put_ns(uint32_t *w, uint64_t ns)
{
	w[0] = (uint32_t)(ns / 1000000000);
	w[1] = (uint32_t)(ns % 1000000000 / 1000);
	return w + 2;
}

static uint32_t *put_times(uint32_t *w, const struct afs_rpcstats_times *times)
{
	double whole = (double)(uint64_t)times->square;

	w = put_ns(w, times->sum);
	*w++ = (uint32_t)(uint64_t)whole;
	*w++ = (uint32_t)((times->square - whole) * 1e6);
	if (times->least == UINT64_MAX) {
		*w++ = NO_TIME;
		*w++ = NO_TIME;
	} else {
		w = put_ns(w, times->least);
	}
	return put_ns(w, times->most);
}

static uint32_t *put_u64(uint32_t *w, uint64_t v)
{
	w[0] = (uint32_t)(v >> 32);
	w[1] = (uint32_t)v;
	return w + 2;
}

/*
 * Addresses have the byte order of a little-endian server's memory, which readers expect. There is
 * room only for IPv4; other addresses are 0.
 */
static uint32_t peer_address(const struct stats_key *key)
{
	const uint8_t *a = key->address;
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(a, mapped, sizeof(mapped)) != 0)
		return 0;
	return (uint32_t)a[15] << 24 | (uint32_t)a[14] << 16 | (uint32_t)a[13] << 8 | a[12];
}

/* One entry; `key` is NULL for the process. */
static uint32_t *put_entry(uint32_t *w, const struct stats_key *key,
			   const struct stats_known *known, unsigned entry,
			   const struct afs_rpcstats_counters *counters)
{
	*w++ = key ? peer_address(key) : UINT32_MAX;
	*w++ = key ? (uint32_t)(uint16_t)(key->port << 8 | key->port >> 8) : UINT32_MAX;
	*w++ = known->client;
	*w++ = known->interface->stat_index;
	*w++ = known->entries;
	*w++ = entry;
	w = put_u64(w, counters->calls);
	w = put_u64(w, counters->sent);
	w = put_u64(w, counters->received);
	w = put_times(w, &counters->queue);
	return put_times(w, &counters->run);
}

#define ENTRIES_MAX (RXSTATS_WORDS_MAX / RXSTATS_ENTRY_WORDS)

static int process_entries(struct afs_rpcstats *stats, uint32_t **words)
{
	unsigned known_count = atomic_load(&stats->known_count), total = 0;
	struct afs_rpcstats_counters counters;
	uint32_t *w;

	/* Interfaces that were counted only for peers, or before a stop, are listed with zeros. */
	for (unsigned k = 0; k < known_count; k++)
		total += atomic_load(&stats->known[k])->entries;
	if (total > ENTRIES_MAX)
		total = ENTRIES_MAX;
	w = *words = total ? malloc(total * RXSTATS_ENTRY_WORDS * sizeof(*w)) : NULL;
	if (total && !w)
		return -1;
	for (unsigned k = 0, n = 0; k < known_count; k++) {
		const struct stats_known *known = atomic_load(&stats->known[k]);

		for (unsigned i = 0; i < known->entries && n < total; i++, n++) {
			unsigned function = known->function[i];

			if (function == STATS_NO_FUNCTION)
				stats_counters_reset(&counters);
			else
				afs_rpcstats_get(stats, known->interface, function, known->client,
						 &counters);
			w = put_entry(w, NULL, known, i, &counters);
		}
	}
	return (int)total;
}

/* Under peers_lock: the entries of one peer, at most `room`; returns how many. */
static unsigned peer_entries(const struct stats_peer *peer, unsigned room, uint32_t **w)
{
	struct afs_rpcstats_counters none;
	unsigned n = 0;

	stats_counters_reset(&none);
	for (const struct stats_block *block = peer->blocks; block; block = block->next) {
		const struct stats_known *known = block->known;

		for (unsigned i = 0; i < known->entries && n < room; i++, n++) {
			unsigned function = known->function[i];

			*w = put_entry(*w, &peer->key, known, i,
				       function == STATS_NO_FUNCTION ? &none
								     : &block->counters[function]);
		}
	}
	return n;
}

static int all_peer_entries(struct afs_rpcstats *stats, uint32_t **words)
{
	unsigned total = 0, n = 0;
	uint32_t *w;

	pthread_mutex_lock(&stats->peers_lock);
	for (const struct stats_peer *peer = stats->newest; peer; peer = peer->older)
		for (const struct stats_block *block = peer->blocks; block; block = block->next)
			total += block->known->entries;
	if (total > ENTRIES_MAX)
		total = ENTRIES_MAX;
	w = *words = total ? malloc(total * RXSTATS_ENTRY_WORDS * sizeof(*w)) : NULL;
	for (const struct stats_peer *peer = stats->newest; w && peer; peer = peer->older)
		n += peer_entries(peer, total - n, &w);
	pthread_mutex_unlock(&stats->peers_lock);
	return n == total ? (int)total : -1;
}

int afs_rpcstats_entries(struct afs_rpcstats *stats, bool peers, uint32_t **words)
{
	return peers ? all_peer_entries(stats, words) : process_entries(stats, words);
}

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

bool afs_rpcstats_is_local(const struct sockaddr *peer, const struct sockaddr *local,
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

static bool may_read(const struct afs_rpcstats *stats, const rxw_call *call)
{
	struct sockaddr_storage peer, local;
	socklen_t peer_len = sizeof(peer), local_len = sizeof(local);

	if (stats->open)
		return true;
	if (rxw_call_peer(call, &peer, &peer_len))
		return false;
	if (rxw_call_local(call, &local, &local_len))
		local_len = 0;
	return afs_rpcstats_is_local((const struct sockaddr *)&peer,
				     (const struct sockaddr *)&local, local_len);
}

/* -- the service -- */

static int32_t retrieve(struct afs_rpcstats *stats, const rxw_call *call, bool peers,
			uint32_t *version, uint32_t *clock_sec, uint32_t *clock_usec,
			uint32_t *count, rpcStats *list)
{
	int64_t now;
	int n;

	if (!may_read(stats, call))
		return EPERM;
	n = afs_rpcstats_entries(stats, peers, &list->val);
	if (n < 0)
		return ENOMEM;
	now = wall_ns();
	*version = RXSTATS_VERSION;
	*clock_sec = (uint32_t)(now / NS_PER_S);
	*clock_usec = (uint32_t)(now % NS_PER_S / 1000);
	*count = (uint32_t)n;
	list->len = (uint32_t)n * RXSTATS_ENTRY_WORDS;
	return 0;
}

static int32_t retrieve_process(void *context, rxw_call *call, uint32_t client_version,
				uint32_t *version, uint32_t *clock_sec, uint32_t *clock_usec,
				uint32_t *count, rpcStats *list)
{
	(void)client_version;
	return retrieve(context, call, false, version, clock_sec, clock_usec, count, list);
}

static int32_t retrieve_peers(void *context, rxw_call *call, uint32_t client_version,
			      uint32_t *version, uint32_t *clock_sec, uint32_t *clock_usec,
			      uint32_t *count, rpcStats *list)
{
	(void)client_version;
	return retrieve(context, call, true, version, clock_sec, clock_usec, count, list);
}

static int32_t query_process(void *context, rxw_call *call, int32_t *on)
{
	(void)call;
	*on = afs_rpcstats_enabled(context, false);
	return 0;
}

static int32_t query_peers(void *context, rxw_call *call, int32_t *on)
{
	(void)call;
	*on = afs_rpcstats_enabled(context, true);
	return 0;
}

static int32_t query_version(void *context, rxw_call *call, uint32_t *version)
{
	(void)context, (void)call;
	*version = RXSTATS_VERSION;
	return 0;
}

/* Callers are anonymous, so changes are refused. */
static int32_t refuse(void *context, rxw_call *call)
{
	(void)context, (void)call;
	return EPERM;
}

static int32_t refuse_clear(void *context, rxw_call *call, uint32_t flags)
{
	(void)context, (void)call, (void)flags;
	return EPERM;
}

const struct RXSTATS_handlers stats_handlers = {
	.RetrieveProcessRPCStats = retrieve_process,
	.RetrievePeerRPCStats = retrieve_peers,
	.QueryProcessRPCStats = query_process,
	.QueryPeerRPCStats = query_peers,
	.EnableProcessRPCStats = refuse,
	.EnablePeerRPCStats = refuse,
	.DisableProcessRPCStats = refuse,
	.DisablePeerRPCStats = refuse,
	.QueryRPCStatsVersion = query_version,
	.ClearProcessRPCStats = refuse_clear,
	.ClearPeerRPCStats = refuse_clear,
};

int afs_rpcstats_serve(struct afs_rpcstats *stats, rxw_endpoint *endpoint)
{
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = AFS_SERVICE_RXSTATS,
					      .name = "rxstats",
					      .handler = RXSTATS_ExecuteRequest,
					      .context = &stats->service,
					      .workers_max = 1};
	rxw_service *service;

	return rxw_service_add(endpoint, &options, &service);
}
