/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries: the numbers of functions, and the encoding of counters (rx-protocol 10.2). */
#include <stdlib.h>
#include <string.h>

#include "rpcstats/private.h"

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
	{8, {{500, 22}, {530, 1}}},   /* protection */
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

/* The number of an operation; that of all if OpenAFS does not have it. */
static uint32_t operation_number(const struct run *run, int32_t opcode)
{
	uint32_t before = 0;

	for (; run->count; before += run->count, run++)
		if (opcode >= run->first && opcode - run->first < (int32_t)run->count)
			return before + (uint32_t)(opcode - run->first);
	return before;
}

/* Functions that OpenAFS does not have come after the others, in order of declaration. */
uint32_t rxw_rpcstats_number(const struct rxw_rpc_interface *interface, unsigned function,
			     uint32_t *functions)
{
	const struct run *order = order_of(interface->stat_index);
	uint32_t foreign = 0, more = 0, number;

	*functions = interface->count;
	if (!order)
		return function;
	for (const struct run *run = order; run->count; run++)
		foreign += run->count;
	number = operation_number(order, interface->functions[function].opcode);
	for (unsigned i = 0; i < interface->count; i++) {
		bool own = operation_number(order, interface->functions[i].opcode) == foreign;

		if (i == function && own)
			number = foreign + more;
		more += own;
	}
	*functions = foreign + more;
	return number;
}

/* -- entries -- */

/* The minimum if no time has been measured. */
#define NO_TIME 9999999u

static uint32_t *put_seconds(uint32_t *w, uint64_t ns)
{
	w[0] = (uint32_t)(ns / 1000000000);
	w[1] = (uint32_t)(ns % 1000000000 / 1000);
	return w + 2;
}

static uint32_t *put_stat_times(uint32_t *w, const struct rxw_rpcstats_times *times)
{
	double whole = (double)(uint64_t)times->square;

	w = put_seconds(w, times->sum);
	*w++ = (uint32_t)(uint64_t)whole;
	*w++ = (uint32_t)((times->square - whole) * 1e6);
	if (times->least == UINT64_MAX) {
		*w++ = NO_TIME;
		*w++ = NO_TIME;
	} else {
		w = put_seconds(w, times->least);
	}
	return put_seconds(w, times->most);
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
static uint32_t peer_address(const struct rxw_rpcstats_key *key)
{
	const uint8_t *a = key->address;
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(a, mapped, sizeof(mapped)) != 0)
		return 0;
	return (uint32_t)a[15] << 24 | (uint32_t)a[14] << 16 | (uint32_t)a[13] << 8 | a[12];
}

/* One entry; `key` is NULL for the process. */
static uint32_t *put_stat_entry(uint32_t *w, const struct rxw_rpcstats_key *key,
				const struct rxw_rpcstats_id *id, uint32_t function,
				const struct rxw_rpcstats_counters *counters)
{
	*w++ = key ? peer_address(key) : UINT32_MAX;
	*w++ = key ? (uint32_t)(uint16_t)(key->port << 8 | key->port >> 8) : UINT32_MAX;
	*w++ = id->client;
	*w++ = id->interface;
	*w++ = id->functions;
	*w++ = function;
	w = put_u64(w, counters->calls);
	w = put_u64(w, counters->sent);
	w = put_u64(w, counters->received);
	w = put_stat_times(w, &counters->queue);
	return put_stat_times(w, &counters->run);
}

/* Room for `total` entries, or for as many as fit into a reply; *total is set to that. */
static uint32_t *allocate_entries(uint64_t *total)
{
	if (*total > RXW_RPCSTATS_MANY)
		*total = RXW_RPCSTATS_MANY;
	return *total ? malloc(*total * RXW_RPCSTATS_WORDS * sizeof(uint32_t)) : NULL;
}

static int process_entries(struct rxw_rpcstats *stats, uint32_t **words)
{
	struct rxw_rpcstats_id ids[RXW_RPCSTATS_TABLES_MAX];
	unsigned known = rxw_rpcstats_ids(stats, ids);
	uint64_t total = 0, n = 0;
	uint32_t *w;

	for (unsigned k = 0; k < known; k++)
		total += ids[k].functions;
	w = *words = allocate_entries(&total);
	if (total && !w)
		return -RXW_ENOMEM;
	for (unsigned k = 0; k < known; k++)
		for (uint32_t i = 0; i < ids[k].functions && n < total; i++, n++) {
			struct rxw_rpcstats_counters counters;

			rxw_rpcstats_sum(stats, &ids[k], i, &counters);
			w = put_stat_entry(w, NULL, &ids[k], i, &counters);
		}
	return (int)total;
}

/* Under peers_lock: the entries of one peer, at most `room`; returns how many. */
static uint64_t peer_entries(const struct rxw_rpcstats_peer *peer, uint64_t room, uint32_t **w)
{
	uint64_t n = 0;

	for (const struct rxw_rpcstats_table *table = peer->tables; table; table = table->next)
		for (uint32_t i = 0; i < table->id.functions && n < room; i++, n++)
			*w = put_stat_entry(*w, &peer->key, &table->id, i, &table->counters[i]);
	return n;
}

static int all_peer_entries(struct rxw_rpcstats *stats, uint32_t **words)
{
	uint64_t total = 0, n = 0;
	uint32_t *w;

	pthread_mutex_lock(&stats->peers_lock);
	for (const struct rxw_rpcstats_peer *peer = stats->newest; peer; peer = peer->older)
		for (const struct rxw_rpcstats_table *t = peer->tables; t; t = t->next)
			total += t->id.functions;
	w = *words = allocate_entries(&total);
	for (const struct rxw_rpcstats_peer *peer = stats->newest; w && peer; peer = peer->older)
		n += peer_entries(peer, total - n, &w);
	pthread_mutex_unlock(&stats->peers_lock);
	return n == total ? (int)total : -RXW_ENOMEM;
}

int rxw_rpcstats_entries(rxw_rpcstats *stats, enum rxw_rpcstats_kind kind, uint32_t **words)
{
	if (!stats || !words || (kind != RXW_RPCSTATS_PROCESS && kind != RXW_RPCSTATS_PEERS))
		return -RXW_EINVAL;
	return kind == RXW_RPCSTATS_PEERS ? all_peer_entries(stats, words)
					  : process_entries(stats, words);
}
