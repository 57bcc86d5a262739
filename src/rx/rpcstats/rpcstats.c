/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting procedure calls, by function, for the process and for each peer. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/sized.h"
#include "rpcstats/private.h"

#define PEERS_DEFAULT 1024

/* -- counters -- */

static void times_reset(struct rxw_rpcstats_times *times)
{
	*times = (struct rxw_rpcstats_times){.least = UINT64_MAX};
}

static void counters_reset(struct rxw_rpcstats_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters->size = sizeof(*counters);
	times_reset(&counters->queue);
	times_reset(&counters->run);
}

static void times_add(struct rxw_rpcstats_times *times, uint64_t ns)
{
	double seconds = (double)ns / 1e9;

	times->sum += ns;
	times->square += seconds * seconds;
	if (ns < times->least)
		times->least = ns;
	if (ns > times->most)
		times->most = ns;
}

static void times_merge(struct rxw_rpcstats_times *to, const struct rxw_rpcstats_times *from)
{
	to->sum += from->sum;
	to->square += from->square;
	if (from->least < to->least)
		to->least = from->least;
	if (from->most > to->most)
		to->most = from->most;
}

static void counters_add(struct rxw_rpcstats_counters *counters,
			 const struct rxw_rpcstats_call *call)
{
	counters->calls++;
	counters->failed += call->code != 0;
	counters->sent += call->bytes_sent;
	counters->received += call->bytes_received;
	times_add(&counters->queue, call->queue_ns);
	times_add(&counters->run, call->run_ns);
}

static void counters_merge(struct rxw_rpcstats_counters *to,
			   const struct rxw_rpcstats_counters *from)
{
	to->calls += from->calls;
	to->failed += from->failed;
	to->sent += from->sent;
	to->received += from->received;
	times_merge(&to->queue, &from->queue);
	times_merge(&to->run, &from->run);
}

/* `first`: the flag of the sum; square, least and most have the next three. */
static void times_clear(struct rxw_rpcstats_times *times, uint32_t flags, uint32_t first)
{
	if (flags & first)
		times->sum = 0;
	if (flags & first << 1)
		times->square = 0;
	if (flags & first << 2)
		times->least = UINT64_MAX;
	if (flags & first << 3)
		times->most = 0;
}

static void counters_clear(struct rxw_rpcstats_counters *counters, uint32_t flags)
{
	if (flags & RXW_RPCSTATS_CLEAR_CALLS)
		counters->calls = counters->failed = 0;
	if (flags & RXW_RPCSTATS_CLEAR_BYTES_SENT)
		counters->sent = 0;
	if (flags & RXW_RPCSTATS_CLEAR_BYTES_RECEIVED)
		counters->received = 0;
	times_clear(&counters->queue, flags, RXW_RPCSTATS_CLEAR_QUEUE_SUM);
	times_clear(&counters->run, flags, RXW_RPCSTATS_CLEAR_RUN_SUM);
}

/* -- tables: lists whose lock the caller holds -- */

static struct rxw_rpcstats_table *find_table(struct rxw_rpcstats_table *table,
					     const struct rxw_rpcstats_id *id, unsigned *before)
{
	for (*before = 0; table && !rxw_rpcstats_same(&table->id, id); table = table->next)
		++*before;
	return table;
}

/* 0, -RXW_ENOMEM or -RXW_ELIMIT. */
static int count_in(struct rxw_rpcstats_table **list, const struct rxw_rpcstats_id *id,
		    const struct rxw_rpcstats_call *call)
{
	unsigned tables;
	struct rxw_rpcstats_table *table = find_table(*list, id, &tables);

	if (!table && tables >= RXW_RPCSTATS_TABLES_MAX)
		return -RXW_ELIMIT;
	if (!table) {
		table = malloc(sizeof(*table) + id->functions * sizeof(table->counters[0]));
		if (!table)
			return -RXW_ENOMEM;
		table->id = *id;
		for (uint32_t i = 0; i < id->functions; i++)
			counters_reset(&table->counters[i]);
		table->next = *list;
		*list = table;
	}
	counters_add(&table->counters[call->function], call);
	return 0;
}

static void free_tables(struct rxw_rpcstats_table **list)
{
	struct rxw_rpcstats_table *table = *list;

	while (table) {
		struct rxw_rpcstats_table *next = table->next;

		free(table);
		table = next;
	}
	*list = NULL;
}

static void clear_tables(struct rxw_rpcstats_table *table, uint32_t flags)
{
	for (; table; table = table->next)
		for (uint32_t i = 0; i < table->id.functions; i++)
			counters_clear(&table->counters[i], flags);
}

/* -- peers; all under peers_lock -- */

static bool make_key(const struct sockaddr *peer, socklen_t length, struct rxw_rpcstats_key *key)
{
	memset(key, 0, sizeof(*key));
	if (peer && length >= sizeof(struct sockaddr_in) && peer->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)peer;

		key->address[10] = key->address[11] = 0xff;
		memcpy(key->address + 12, &in->sin_addr, 4);
		key->port = ntohs(in->sin_port);
		return true;
	}
	if (peer && length >= sizeof(struct sockaddr_in6) && peer->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;

		memcpy(key->address, &in6->sin6_addr, 16);
		key->port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

static uint64_t hash_peer_key(const struct rxw_rpcstats_key *key, const uint64_t secret[2])
{
	uint8_t bytes[sizeof(key->address) + sizeof(key->port)];

	memcpy(bytes, key->address, sizeof(key->address));
	memcpy(bytes + sizeof(key->address), &key->port, sizeof(key->port));
	return rxw_siphash(bytes, sizeof(bytes), secret);
}

static uint64_t hash_stats_peer(const void *peer, const uint64_t secret[2])
{
	return hash_peer_key(&((const struct rxw_rpcstats_peer *)peer)->key, secret);
}

static void unlink_by_age(struct rxw_rpcstats *stats, struct rxw_rpcstats_peer *peer)
{
	*(peer->newer ? &peer->newer->older : &stats->newest) = peer->older;
	*(peer->older ? &peer->older->newer : &stats->oldest) = peer->newer;
}

static void link_as_newest(struct rxw_rpcstats *stats, struct rxw_rpcstats_peer *peer)
{
	peer->newer = NULL;
	peer->older = stats->newest;
	*(stats->newest ? &stats->newest->newer : &stats->oldest) = peer;
	stats->newest = peer;
}

static void forget_peer(struct rxw_rpcstats *stats, struct rxw_rpcstats_peer *peer)
{
	htable_remove(&stats->peers, peer);
	unlink_by_age(stats, peer);
	free_tables(&peer->tables);
	free(peer);
}

static struct rxw_rpcstats_peer *enter_peer(struct rxw_rpcstats *stats,
					    const struct rxw_rpcstats_key *key)
{
	struct rxw_rpcstats_peer *peer =
		htable_first(&stats->peers, hash_peer_key(key, stats->peers.key));

	while (peer && (peer->key.port != key->port ||
			memcmp(peer->key.address, key->address, sizeof(key->address)) != 0))
		peer = peer->chain;
	if (peer && peer == stats->newest)
		return peer;
	if (peer) {
		unlink_by_age(stats, peer);
	} else {
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return NULL;
		while (stats->peers.count >= stats->peers_max)
			forget_peer(stats, stats->oldest);
		peer->key = *key;
		htable_add(&stats->peers, peer);
	}
	link_as_newest(stats, peer);
	return peer;
}

/* -- public -- */

static void init_stats_locks(struct rxw_rpcstats *stats)
{
	pthread_mutex_init(&stats->peers_lock, NULL);
	for (int i = 0; i < RXW_RPCSTATS_SHARDS; i++)
		pthread_mutex_init(&stats->shard[i].lock, NULL);
}

int rxw_rpcstats_create(const struct rxw_rpcstats_options *given, rxw_rpcstats **stats)
{
	struct rxw_rpcstats_options options = {0};
	struct rxw_rpcstats *made;
	uint64_t secret[2];

	if (!stats || (given && !sized_read(&options, sizeof(options), given)))
		return -RXW_EINVAL;
	/* Shards are aligned, so that they share no cache line. */
	made = aligned_alloc(alignof(struct rxw_rpcstats), sizeof(*made));
	if (!made)
		return -RXW_ENOMEM;
	memset(made, 0, sizeof(*made));
	made->open = options.open;
	made->observer = (struct rxw_rpc_observer){rxw_rpcstats_report, made};
	made->peers_max = options.peers_max ? options.peers_max : PEERS_DEFAULT;
	if (rxw_random(secret, sizeof(secret)) ||
	    !htable_init(&made->peers, offsetof(struct rxw_rpcstats_peer, chain), hash_stats_peer,
			 secret, 0)) {
		free(made);
		return -RXW_ENOMEM;
	}
	atomic_init(&made->on[RXW_RPCSTATS_PROCESS], options.process);
	atomic_init(&made->on[RXW_RPCSTATS_PEERS], options.peers);
	init_stats_locks(made);
	*stats = made;
	return 0;
}

void rxw_rpcstats_destroy(rxw_rpcstats *stats)
{
	if (!stats)
		return;
	for (int i = 0; i < RXW_RPCSTATS_SHARDS; i++) {
		free_tables(&stats->shard[i].tables);
		pthread_mutex_destroy(&stats->shard[i].lock);
	}
	while (stats->oldest)
		forget_peer(stats, stats->oldest);
	pthread_mutex_destroy(&stats->peers_lock);
	htable_fini(&stats->peers, NULL);
	free(stats);
}

static struct rxw_rpcstats_shard *shard_of_thread(struct rxw_rpcstats *stats)
{
	uint64_t self = (uint64_t)(uintptr_t)pthread_self();

	return &stats->shard[((self >> 12) * 0x9e3779b97f4a7c15u) >> 61];
}
_Static_assert(RXW_RPCSTATS_SHARDS == 8, "shard_of_thread() uses three bits");

static bool kind_is_on(const struct rxw_rpcstats *stats, enum rxw_rpcstats_kind kind)
{
	return atomic_load_explicit(&stats->on[kind], memory_order_relaxed);
}

static int count_process(struct rxw_rpcstats *stats, const struct rxw_rpcstats_id *id,
			 const struct rxw_rpcstats_call *call)
{
	struct rxw_rpcstats_shard *shard = shard_of_thread(stats);
	int r = 0;

	pthread_mutex_lock(&shard->lock);
	/* Counting may have been stopped meanwhile, and the tables freed. */
	if (kind_is_on(stats, RXW_RPCSTATS_PROCESS))
		r = count_in(&shard->tables, id, call);
	pthread_mutex_unlock(&shard->lock);
	return r;
}

static int count_peer(struct rxw_rpcstats *stats, const struct rxw_rpcstats_id *id,
		      const struct rxw_rpcstats_call *call)
{
	struct rxw_rpcstats_peer *peer;
	struct rxw_rpcstats_key key;
	int r = 0;

	if (!make_key(call->peer, call->peer_len, &key))
		return 0;
	pthread_mutex_lock(&stats->peers_lock);
	if (kind_is_on(stats, RXW_RPCSTATS_PEERS)) {
		peer = enter_peer(stats, &key);
		r = peer ? count_in(&peer->tables, id, call) : -RXW_ENOMEM;
	}
	pthread_mutex_unlock(&stats->peers_lock);
	return r;
}

static int count_call(struct rxw_rpcstats *stats, const struct rxw_rpcstats_call *call)
{
	struct rxw_rpcstats_id id = {call->interface, call->functions, call->client};
	int r = 0, other = 0;

	if (kind_is_on(stats, RXW_RPCSTATS_PROCESS))
		r = count_process(stats, &id, call);
	if (kind_is_on(stats, RXW_RPCSTATS_PEERS))
		other = count_peer(stats, &id, call);
	return r ? r : other;
}

int rxw_rpcstats_record(rxw_rpcstats *stats, const struct rxw_rpcstats_call *given)
{
	struct rxw_rpcstats_call call = {0};

	if (!stats || !given || !sized_read(&call, sizeof(call), given) || !call.interface ||
	    call.functions > RXW_RPCSTATS_FUNCTIONS || call.function >= call.functions)
		return -RXW_EINVAL;
	return count_call(stats, &call);
}

/* A call that cannot be counted, without memory or an interface number, is left out. */
void rxw_rpcstats_report(void *arg, const struct rxw_rpc_report *report)
{
	struct rxw_rpcstats *stats = arg;
	struct rxw_rpcstats_call call;

	if (!stats || !report || !report->interface || !report->interface->stat_index ||
	    report->function >= report->interface->count ||
	    (!kind_is_on(stats, RXW_RPCSTATS_PROCESS) && !kind_is_on(stats, RXW_RPCSTATS_PEERS)))
		return;
	call = (struct rxw_rpcstats_call){.interface = report->interface->stat_index,
					  .client = report->client,
					  .code = report->code,
					  .peer = report->peer,
					  .peer_len = report->peer_len,
					  .bytes_sent = report->bytes_sent,
					  .bytes_received = report->bytes_received,
					  .queue_ns = report->queue_ns,
					  .run_ns = report->run_ns};
	call.function = rxw_rpcstats_number(report->interface, report->function, &call.functions);
	if (call.functions <= RXW_RPCSTATS_FUNCTIONS)
		count_call(stats, &call);
}

void rxw_rpcstats_sum(struct rxw_rpcstats *stats, const struct rxw_rpcstats_id *id,
		      uint32_t function, struct rxw_rpcstats_counters *counters)
{
	counters_reset(counters);
	for (int i = 0; i < RXW_RPCSTATS_SHARDS; i++) {
		const struct rxw_rpcstats_table *table;
		unsigned before;

		pthread_mutex_lock(&stats->shard[i].lock);
		table = find_table(stats->shard[i].tables, id, &before);
		if (table)
			counters_merge(counters, &table->counters[function]);
		pthread_mutex_unlock(&stats->shard[i].lock);
	}
}

static void add_id(struct rxw_rpcstats_id ids[RXW_RPCSTATS_TABLES_MAX], unsigned *n,
		   const struct rxw_rpcstats_id *id)
{
	for (unsigned i = 0; i < *n; i++)
		if (rxw_rpcstats_same(&ids[i], id))
			return;
	if (*n < RXW_RPCSTATS_TABLES_MAX)
		ids[(*n)++] = *id;
}

unsigned rxw_rpcstats_ids(struct rxw_rpcstats *stats,
			  struct rxw_rpcstats_id ids[RXW_RPCSTATS_TABLES_MAX])
{
	unsigned n = 0;

	for (int i = 0; i < RXW_RPCSTATS_SHARDS; i++) {
		const struct rxw_rpcstats_table *table;

		pthread_mutex_lock(&stats->shard[i].lock);
		for (table = stats->shard[i].tables; table; table = table->next)
			add_id(ids, &n, &table->id);
		pthread_mutex_unlock(&stats->shard[i].lock);
	}
	return n;
}

int rxw_rpcstats_get(rxw_rpcstats *stats, const struct rxw_rpc_interface *interface,
		     unsigned function, bool client, struct rxw_rpcstats_counters *counters)
{
	struct rxw_rpcstats_counters found;
	struct rxw_rpcstats_id id;
	uint32_t number;

	if (!stats || !interface || function >= interface->count || !sized_valid(counters))
		return -RXW_EINVAL;
	id = (struct rxw_rpcstats_id){.interface = interface->stat_index, .client = client};
	number = rxw_rpcstats_number(interface, function, &id.functions);
	rxw_rpcstats_sum(stats, &id, number, &found);
	sized_write(counters, &found, sizeof(found));
	return 0;
}

static bool is_kind(enum rxw_rpcstats_kind kind)
{
	return kind == RXW_RPCSTATS_PROCESS || kind == RXW_RPCSTATS_PEERS;
}

int rxw_rpcstats_clear(rxw_rpcstats *stats, enum rxw_rpcstats_kind kind, uint32_t flags)
{
	if (!stats || !is_kind(kind))
		return -RXW_EINVAL;
	for (int i = 0; kind == RXW_RPCSTATS_PROCESS && i < RXW_RPCSTATS_SHARDS; i++) {
		pthread_mutex_lock(&stats->shard[i].lock);
		clear_tables(stats->shard[i].tables, flags);
		pthread_mutex_unlock(&stats->shard[i].lock);
	}
	if (kind == RXW_RPCSTATS_PEERS) {
		pthread_mutex_lock(&stats->peers_lock);
		for (struct rxw_rpcstats_peer *peer = stats->newest; peer; peer = peer->older)
			clear_tables(peer->tables, flags);
		pthread_mutex_unlock(&stats->peers_lock);
	}
	return 0;
}

int rxw_rpcstats_enable(rxw_rpcstats *stats, enum rxw_rpcstats_kind kind, bool on)
{
	if (!stats || !is_kind(kind))
		return -RXW_EINVAL;
	atomic_store(&stats->on[kind], on);
	for (int i = 0; !on && kind == RXW_RPCSTATS_PROCESS && i < RXW_RPCSTATS_SHARDS; i++) {
		pthread_mutex_lock(&stats->shard[i].lock);
		free_tables(&stats->shard[i].tables);
		pthread_mutex_unlock(&stats->shard[i].lock);
	}
	if (!on && kind == RXW_RPCSTATS_PEERS) {
		pthread_mutex_lock(&stats->peers_lock);
		while (stats->oldest)
			forget_peer(stats, stats->oldest);
		pthread_mutex_unlock(&stats->peers_lock);
	}
	return 0;
}

bool rxw_rpcstats_enabled(const rxw_rpcstats *stats, enum rxw_rpcstats_kind kind)
{
	return stats && is_kind(kind) && kind_is_on(stats, kind);
}

int rxw_rpcstats_observe(rxw_rpcstats *stats, rxw_endpoint *endpoint)
{
	return stats ? rxw_endpoint_set_observer(endpoint, &stats->observer) : -RXW_EINVAL;
}
