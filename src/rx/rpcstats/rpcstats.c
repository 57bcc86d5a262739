/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting procedure calls, by function, for the process and for each peer. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/sized.h"
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
__attribute__((cold)) static uint32_t
rxw_rpcstats_number(const struct rxw_rpc_interface *interface, unsigned function,
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

__attribute__((cold)) static int process_entries(struct rxw_rpcstats *stats, uint32_t **words)
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

static bool ids_are_equal(const struct rxw_rpcstats_id *a, const struct rxw_rpcstats_id *b)
{
	return a->interface == b->interface && a->functions == b->functions &&
	       a->client == b->client;
}

static struct rxw_rpcstats_table *find_table(struct rxw_rpcstats_table *table,
					     const struct rxw_rpcstats_id *id, unsigned *before)
{
	for (*before = 0; table && !ids_are_equal(&table->id, id); table = table->next)
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

__attribute__((cold)) int rxw_rpcstats_create(const struct rxw_rpcstats_options *given,
					      rxw_rpcstats **stats)
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
		if (ids_are_equal(&ids[i], id))
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
