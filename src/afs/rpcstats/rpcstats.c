/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting procedure calls, per function, for the process and for each peer. */
#include "afs/rpcstats/rpcstats.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "afs/rpcstats/private.h"
#include "base/hash.h"

#define PEERS_DEFAULT 1024

/* -- counters -- */

static void times_reset(struct afs_rpcstats_times *times)
{
	*times = (struct afs_rpcstats_times){.least = UINT64_MAX};
}

void stats_counters_reset(struct afs_rpcstats_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	times_reset(&counters->queue);
	times_reset(&counters->run);
}

static void times_add(struct afs_rpcstats_times *times, uint64_t ns)
{
	double seconds = (double)ns / 1e9;

	times->sum += ns;
	times->square += seconds * seconds;
	if (ns < times->least)
		times->least = ns;
	if (ns > times->most)
		times->most = ns;
}

static void times_merge(struct afs_rpcstats_times *to, const struct afs_rpcstats_times *from)
{
	to->sum += from->sum;
	to->square += from->square;
	if (from->least < to->least)
		to->least = from->least;
	if (from->most > to->most)
		to->most = from->most;
}

static void counters_add(struct afs_rpcstats_counters *counters,
			 const struct rxw_rpc_report *report)
{
	counters->calls++;
	counters->failed += report->code != 0;
	counters->sent += report->bytes_sent;
	counters->received += report->bytes_received;
	times_add(&counters->queue, report->queue_ns);
	times_add(&counters->run, report->run_ns);
}

static void counters_merge(struct afs_rpcstats_counters *to,
			   const struct afs_rpcstats_counters *from)
{
	to->calls += from->calls;
	to->failed += from->failed;
	to->sent += from->sent;
	to->received += from->received;
	times_merge(&to->queue, &from->queue);
	times_merge(&to->run, &from->run);
}

/* `first`: the flag of the sum; square, least and most have the next three. */
static void times_clear(struct afs_rpcstats_times *times, uint32_t flags, uint32_t first)
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

static void counters_clear(struct afs_rpcstats_counters *counters, uint32_t flags)
{
	if (flags & RXSTATS_CLEAR_INVOCATIONS)
		counters->calls = counters->failed = 0;
	if (flags & RXSTATS_CLEAR_BYTES_SENT)
		counters->sent = 0;
	if (flags & RXSTATS_CLEAR_BYTES_RECEIVED)
		counters->received = 0;
	times_clear(&counters->queue, flags, RXSTATS_CLEAR_QUEUE_SUM);
	times_clear(&counters->run, flags, RXSTATS_CLEAR_RUN_SUM);
}

/* -- interfaces -- */

static struct stats_known *find_known(struct afs_rpcstats *stats,
				      const struct rxw_rpc_interface *interface, bool client)
{
	unsigned count = atomic_load_explicit(&stats->known_count, memory_order_acquire);

	for (unsigned i = 0; i < count; i++) {
		struct stats_known *known =
			atomic_load_explicit(&stats->known[i], memory_order_relaxed);

		if (known->interface == interface && known->client == client)
			return known;
	}
	return NULL;
}

/* NULL: no memory, or too many interfaces. */
static struct stats_known *know(struct afs_rpcstats *stats,
				const struct rxw_rpc_interface *interface, bool client)
{
	struct stats_known *known = find_known(stats, interface, client);
	unsigned count;

	if (known)
		return known;
	pthread_mutex_lock(&stats->known_lock);
	known = find_known(stats, interface, client);
	count = atomic_load_explicit(&stats->known_count, memory_order_relaxed);
	if (!known && count < STATS_KNOWN_MAX) {
		known = stats_known_create(interface, client);
		if (known) {
			atomic_store_explicit(&stats->known[count], known, memory_order_relaxed);
			atomic_store_explicit(&stats->known_count, count + 1, memory_order_release);
		}
	}
	pthread_mutex_unlock(&stats->known_lock);
	return known;
}

static struct stats_block *find_block(struct stats_block *block,
				      const struct rxw_rpc_interface *interface, bool client)
{
	while (block && (block->known->interface != interface || block->known->client != client))
		block = block->next;
	return block;
}

/* Count a call in a list of blocks; the caller holds its lock. Without memory it is not counted. */
static void count_in(struct afs_rpcstats *stats, struct stats_block **list,
		     const struct rxw_rpc_report *report)
{
	const struct rxw_rpc_interface *interface = report->interface;
	struct stats_block *block = find_block(*list, interface, report->client);

	if (!block) {
		struct stats_known *known = know(stats, interface, report->client);

		block = known ? malloc(sizeof(*block) +
				       interface->count * sizeof(block->counters[0]))
			      : NULL;
		if (!block)
			return;
		block->known = known;
		for (unsigned i = 0; i < interface->count; i++)
			stats_counters_reset(&block->counters[i]);
		block->next = *list;
		*list = block;
	}
	counters_add(&block->counters[report->function], report);
}

static void free_blocks(struct stats_block **list)
{
	struct stats_block *block = *list;

	while (block) {
		struct stats_block *next = block->next;

		free(block);
		block = next;
	}
	*list = NULL;
}

static void clear_blocks(struct stats_block *block, uint32_t flags)
{
	for (; block; block = block->next)
		for (unsigned i = 0; i < block->known->interface->count; i++)
			counters_clear(&block->counters[i], flags);
}

/* -- peers; all under peers_lock -- */

static bool make_key(const struct sockaddr *peer, struct stats_key *key)
{
	memset(key, 0, sizeof(*key));
	if (peer && peer->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)peer;

		key->address[10] = key->address[11] = 0xff;
		memcpy(key->address + 12, &in->sin_addr, 4);
		key->port = ntohs(in->sin_port);
		return true;
	}
	if (peer && peer->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;

		memcpy(key->address, &in6->sin6_addr, 16);
		key->port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

static uint64_t hash_key(const struct stats_key *key, const uint64_t secret[2])
{
	uint8_t bytes[sizeof(key->address) + sizeof(key->port)];

	memcpy(bytes, key->address, sizeof(key->address));
	memcpy(bytes + sizeof(key->address), &key->port, sizeof(key->port));
	return rxw_siphash(bytes, sizeof(bytes), secret);
}

static uint64_t hash_peer(const void *peer, const uint64_t secret[2])
{
	return hash_key(&((const struct stats_peer *)peer)->key, secret);
}

static void unlink_age(struct afs_rpcstats *stats, struct stats_peer *peer)
{
	*(peer->newer ? &peer->newer->older : &stats->newest) = peer->older;
	*(peer->older ? &peer->older->newer : &stats->oldest) = peer->newer;
}

static void link_newest(struct afs_rpcstats *stats, struct stats_peer *peer)
{
	peer->newer = NULL;
	peer->older = stats->newest;
	*(stats->newest ? &stats->newest->newer : &stats->oldest) = peer;
	stats->newest = peer;
}

static void forget_peer(struct afs_rpcstats *stats, struct stats_peer *peer)
{
	htable_remove(&stats->peers, peer);
	unlink_age(stats, peer);
	free_blocks(&peer->blocks);
	free(peer);
}

static struct stats_peer *enter_peer(struct afs_rpcstats *stats, const struct stats_key *key)
{
	struct stats_peer *peer = htable_first(&stats->peers, hash_key(key, stats->peers.key));

	while (peer && (peer->key.port != key->port ||
			memcmp(peer->key.address, key->address, sizeof(key->address)) != 0))
		peer = peer->chain;
	if (peer && peer == stats->newest)
		return peer;
	if (peer) {
		unlink_age(stats, peer);
	} else {
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return NULL;
		while (stats->peers.count >= stats->peers_max)
			forget_peer(stats, stats->oldest);
		peer->key = *key;
		htable_add(&stats->peers, peer);
	}
	link_newest(stats, peer);
	return peer;
}

/* -- public -- */

struct afs_rpcstats *afs_rpcstats_create(const struct afs_rpcstats_options *options)
{
	/* Shards are aligned, so that they share no cache line. */
	struct afs_rpcstats *stats =
		aligned_alloc(alignof(struct afs_rpcstats), sizeof(struct afs_rpcstats));

	uint64_t secret[2];

	if (!stats)
		return NULL;
	memset(stats, 0, sizeof(*stats));
	stats->open = options->open;
	stats->observer = (struct rxw_rpc_observer){afs_rpcstats_report, stats};
	stats->service.base.context = stats;
	stats->service.handlers = &stats_handlers;
	stats->peers_max = options->peers_max ? options->peers_max : PEERS_DEFAULT;
	if (rxw_random(secret, sizeof(secret)) ||
	    !htable_init(&stats->peers, offsetof(struct stats_peer, chain), hash_peer, secret, 0)) {
		free(stats);
		return NULL;
	}
	atomic_store(&stats->on[0], options->process);
	atomic_store(&stats->on[1], options->peers);
	pthread_mutex_init(&stats->known_lock, NULL);
	pthread_mutex_init(&stats->peers_lock, NULL);
	for (int i = 0; i < STATS_SHARDS; i++)
		pthread_mutex_init(&stats->shard[i].lock, NULL);
	return stats;
}

void afs_rpcstats_destroy(struct afs_rpcstats *stats)
{
	if (!stats)
		return;
	for (int i = 0; i < STATS_SHARDS; i++) {
		free_blocks(&stats->shard[i].blocks);
		pthread_mutex_destroy(&stats->shard[i].lock);
	}
	while (stats->oldest)
		forget_peer(stats, stats->oldest);
	for (unsigned i = 0; i < stats->known_count; i++)
		free(stats->known[i]);
	pthread_mutex_destroy(&stats->known_lock);
	pthread_mutex_destroy(&stats->peers_lock);
	htable_fini(&stats->peers, NULL);
	free(stats);
}

static struct stats_shard *shard_of_thread(struct afs_rpcstats *stats)
{
	uint64_t self = (uint64_t)(uintptr_t)pthread_self();

	return &stats->shard[((self >> 12) * 0x9e3779b97f4a7c15u) >> 61];
}
_Static_assert(STATS_SHARDS == 8, "shard_of_thread() uses three bits");

static bool is_on(struct afs_rpcstats *stats, bool peers)
{
	return atomic_load_explicit(&stats->on[peers], memory_order_relaxed);
}

void afs_rpcstats_report(void *arg, const struct rxw_rpc_report *report)
{
	struct afs_rpcstats *stats = arg;
	struct stats_key key;

	if (!report->interface->stat_index || report->function >= report->interface->count)
		return;
	if (is_on(stats, false)) {
		struct stats_shard *shard = shard_of_thread(stats);

		pthread_mutex_lock(&shard->lock);
		/* Counting may have been stopped meanwhile, and the block freed. */
		if (is_on(stats, false))
			count_in(stats, &shard->blocks, report);
		pthread_mutex_unlock(&shard->lock);
	}
	if (is_on(stats, true) && make_key(report->peer, &key)) {
		struct stats_peer *peer;

		pthread_mutex_lock(&stats->peers_lock);
		peer = is_on(stats, true) ? enter_peer(stats, &key) : NULL;
		if (peer)
			count_in(stats, &peer->blocks, report);
		pthread_mutex_unlock(&stats->peers_lock);
	}
}

void afs_rpcstats_get(struct afs_rpcstats *stats, const struct rxw_rpc_interface *interface,
		      unsigned function, bool client, struct afs_rpcstats_counters *counters)
{
	stats_counters_reset(counters);
	if (function >= interface->count)
		return;
	for (int i = 0; i < STATS_SHARDS; i++) {
		const struct stats_block *block;

		pthread_mutex_lock(&stats->shard[i].lock);
		block = find_block(stats->shard[i].blocks, interface, client);
		if (block)
			counters_merge(counters, &block->counters[function]);
		pthread_mutex_unlock(&stats->shard[i].lock);
	}
}

void afs_rpcstats_clear(struct afs_rpcstats *stats, bool peers, uint32_t flags)
{
	if (!peers) {
		for (int i = 0; i < STATS_SHARDS; i++) {
			pthread_mutex_lock(&stats->shard[i].lock);
			clear_blocks(stats->shard[i].blocks, flags);
			pthread_mutex_unlock(&stats->shard[i].lock);
		}
		return;
	}
	pthread_mutex_lock(&stats->peers_lock);
	for (struct stats_peer *peer = stats->newest; peer; peer = peer->older)
		clear_blocks(peer->blocks, flags);
	pthread_mutex_unlock(&stats->peers_lock);
}

void afs_rpcstats_enable(struct afs_rpcstats *stats, bool peers, bool on)
{
	atomic_store(&stats->on[peers], on);
	if (on)
		return;
	for (int i = 0; !peers && i < STATS_SHARDS; i++) {
		pthread_mutex_lock(&stats->shard[i].lock);
		free_blocks(&stats->shard[i].blocks);
		pthread_mutex_unlock(&stats->shard[i].lock);
	}
	if (peers) {
		pthread_mutex_lock(&stats->peers_lock);
		while (stats->oldest)
			forget_peer(stats, stats->oldest);
		pthread_mutex_unlock(&stats->peers_lock);
	}
}

bool afs_rpcstats_enabled(struct afs_rpcstats *stats, bool peers)
{
	return is_on(stats, peers);
}

int afs_rpcstats_observe(struct afs_rpcstats *stats, rxw_endpoint *endpoint)
{
	return rxw_endpoint_set_observer(endpoint, &stats->observer);
}
