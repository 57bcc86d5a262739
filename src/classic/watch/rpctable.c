/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of procedure calls, of the process and by peer. */
#include "rpctable.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/htable.h"

/* Peers that are kept. Strangers can create them: each new one replaces the least recent. */
#define PEERS_MAX 1024
/* Functions in one answer, which fits in 16 MiB. */
#define LISTED_MAX (4194304 / RPCTABLE_WORDS)
/* Seconds and microseconds of a minimum if there are no times. */
#define NO_TIME 9999999u

struct times {
	uint64_t sum, least, most; /* ns; least is UINT64_MAX if there are none */
	double square;		   /* sum of the squares, in square seconds */
};

struct counters {
	uint64_t calls, sent, received;
	struct times queue, run;
};

/* An interface that has been called, at one side. */
struct block {
	struct block *next;
	unsigned interface_id, functions;
	bool remote_is_server;
	struct counters counters[];
};

struct peer {
	void *chain;		    /* of by_address */
	struct peer *newer, *older; /* by the latest call */
	afs_uint32 host;	    /* network order; 0xffffffff: the process */
	afs_uint32 port;	    /* network order */
	struct block *blocks;	    /* the latest interface first */
};

/* The process is a peer with an address of its own. */
struct rpctable {
	bool by_peer;
	_Atomic bool counts;  /* set with the lock held */
	pthread_mutex_t lock; /* covers the rest */
	struct htable by_address;
	bool ready; /* by_address exists */
	struct peer *newest, *oldest;
};

struct rpctable rpctable_process = {.lock = PTHREAD_MUTEX_INITIALIZER};
struct rpctable rpctable_peers = {.by_peer = true, .lock = PTHREAD_MUTEX_INITIALIZER};

/* -- Counters ------------------------------------------------------------------------------------- */

static void times_add(struct times *times, uint64_t ns)
{
	double seconds = (double)ns / 1e9;

	times->sum += ns;
	times->square += seconds * seconds;
	if (ns < times->least)
		times->least = ns;
	if (ns > times->most)
		times->most = ns;
}

/* `first`: the bit of the sum. The next three are those of the squares, the least and the most. */
static void times_clear(struct times *times, afs_uint32 what, afs_uint32 first)
{
	if (what & first)
		times->sum = 0;
	if (what & first << 1)
		times->square = 0;
	if (what & first << 2)
		times->least = UINT64_MAX;
	if (what & first << 3)
		times->most = 0;
}

static void counters_clear(struct counters *counters, afs_uint32 what)
{
	if (what & AFS_RX_STATS_CLEAR_INVOCATIONS)
		counters->calls = 0;
	if (what & AFS_RX_STATS_CLEAR_BYTES_SENT)
		counters->sent = 0;
	if (what & AFS_RX_STATS_CLEAR_BYTES_RCVD)
		counters->received = 0;
	times_clear(&counters->queue, what, AFS_RX_STATS_CLEAR_QUEUE_TIME_SUM);
	times_clear(&counters->run, what, AFS_RX_STATS_CLEAR_EXEC_TIME_SUM);
}

static void blocks_clear(struct block *block, afs_uint32 what)
{
	for (; block; block = block->next)
		for (unsigned i = 0; i < block->functions; i++)
			counters_clear(&block->counters[i], what);
}

static void blocks_free(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
}

static struct block *enter_block(struct block **list, const struct rpctable_function *f)
{
	struct block *block = *list;

	while (block && (block->interface_id != f->interface_id ||
			 block->remote_is_server != f->remote_is_server))
		block = block->next;
	if (block)
		return block;
	block = calloc(1, sizeof(*block) + f->functions * sizeof(block->counters[0]));
	if (!block)
		return NULL;
	block->interface_id = f->interface_id;
	block->functions = f->functions;
	block->remote_is_server = f->remote_is_server;
	blocks_clear(block, AFS_RX_STATS_CLEAR_ALL);
	block->next = *list;
	*list = block;
	return block;
}

/* -- Peers; the table's lock is held ---------------------------------------------------------------- */

static uint64_t hash_address(afs_uint32 host, afs_uint32 port, const uint64_t key[2])
{
	uint64_t address = (uint64_t)host << 16 | port;

	/* Peers are few: a long chain that somebody arranges costs little. */
	return ((address ^ key[0]) * (key[1] | 1)) >> 32;
}

static uint64_t hash_peer(const void *item, const uint64_t key[2])
{
	const struct peer *peer = item;

	return hash_address(peer->host, peer->port, key);
}

static void unlink_age(struct rpctable *table, struct peer *peer)
{
	*(peer->newer ? &peer->newer->older : &table->newest) = peer->older;
	*(peer->older ? &peer->older->newer : &table->oldest) = peer->newer;
}

static void link_newest(struct rpctable *table, struct peer *peer)
{
	peer->newer = NULL;
	peer->older = table->newest;
	*(table->newest ? &table->newest->newer : &table->oldest) = peer;
	table->newest = peer;
}

static void forget_peer(struct rpctable *table, struct peer *peer)
{
	htable_remove(&table->by_address, peer);
	unlink_age(table, peer);
	blocks_free(peer->blocks);
	free(peer);
}

static struct peer *find_peer(struct rpctable *table, afs_uint32 host, afs_uint32 port)
{
	struct peer *peer =
		htable_first(&table->by_address, hash_address(host, port, table->by_address.key));

	while (peer && (peer->host != host || peer->port != port))
		peer = peer->chain;
	return peer;
}

/* The peer, which becomes the newest one; NULL without memory. */
static struct peer *enter_peer(struct rpctable *table, afs_uint32 host, afs_uint32 port)
{
	struct peer *peer = find_peer(table, host, port);

	if (peer) {
		unlink_age(table, peer);
	} else {
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return NULL;
		if (table->by_address.count >= PEERS_MAX)
			forget_peer(table, table->oldest);
		peer->host = host;
		peer->port = port;
		htable_add(&table->by_address, peer);
	}
	link_newest(table, peer);
	return peer;
}

static bool make_ready(struct rpctable *table)
{
	uint64_t key[2];

	if (!table->ready)
		table->ready = getrandom(key, sizeof(key), 0) == (ssize_t)sizeof(key) &&
			       htable_init(&table->by_address, offsetof(struct peer, chain),
					   hash_peer, key, 0);
	return table->ready;
}

/* -- What others use ------------------------------------------------------------------------------ */

bool rpctable_counts(struct rpctable *table)
{
	return atomic_load_explicit(&table->counts, memory_order_relaxed);
}

void rpctable_count(struct rpctable *table, bool on)
{
	pthread_mutex_lock(&table->lock);
	table->counts = on;
	while (!on && table->oldest)
		forget_peer(table, table->oldest);
	pthread_mutex_unlock(&table->lock);
}

void rpctable_add(struct rpctable *table, const struct rpctable_function *function,
		  const struct classic_usage *usage)
{
	struct block *block = NULL;
	struct peer *peer = NULL;

	if (!rpctable_counts(table) || function->function >= function->functions)
		return;
	pthread_mutex_lock(&table->lock);
	/* Counting may have stopped meanwhile. */
	if (table->counts && make_ready(table))
		peer = table->by_peer ? enter_peer(table, usage->host, usage->port)
				      : enter_peer(table, UINT32_MAX, UINT32_MAX);
	if (peer)
		block = enter_block(&peer->blocks, function);
	if (block && block->functions == function->functions) {
		struct counters *counters = &block->counters[function->function];

		counters->calls++;
		counters->sent += usage->sent;
		counters->received += usage->received;
		times_add(&counters->queue, usage->queue_ns);
		times_add(&counters->run, usage->run_ns);
	}
	pthread_mutex_unlock(&table->lock);
}

void rpctable_clear(struct rpctable *table, afs_uint32 what)
{
	pthread_mutex_lock(&table->lock);
	for (struct peer *peer = table->newest; peer; peer = peer->older)
		blocks_clear(peer->blocks, what);
	pthread_mutex_unlock(&table->lock);
}

/* -- Output --------------------------------------------------------------------------------------- */

static afs_uint32 *put_number(afs_uint32 *word, uint64_t number)
{
	*word++ = (afs_uint32)(number >> 32);
	*word++ = (afs_uint32)number;
	return word;
}

static afs_uint32 *put_time(afs_uint32 *word, uint64_t ns)
{
	*word++ = (afs_uint32)(ns / 1000000000);
	*word++ = (afs_uint32)(ns % 1000000000 / 1000);
	return word;
}

static afs_uint32 *put_times(afs_uint32 *word, const struct times *times)
{
	double whole = (double)(uint64_t)times->square;

	word = put_time(word, times->sum);
	*word++ = (afs_uint32)(uint64_t)whole;
	*word++ = (afs_uint32)((times->square - whole) * 1e6);
	if (times->least == UINT64_MAX) {
		*word++ = NO_TIME;
		*word++ = NO_TIME;
	} else {
		word = put_time(word, times->least);
	}
	return put_time(word, times->most);
}

static afs_uint32 *put_function(afs_uint32 *word, const struct peer *peer,
				const struct block *block, unsigned function)
{
	const struct counters *counters = &block->counters[function];

	*word++ = peer->host;
	*word++ = peer->port;
	*word++ = block->remote_is_server;
	*word++ = block->interface_id;
	*word++ = block->functions;
	*word++ = function;
	word = put_number(word, counters->calls);
	word = put_number(word, counters->sent);
	word = put_number(word, counters->received);
	word = put_times(word, &counters->queue);
	return put_times(word, &counters->run);
}

/* The table's lock is held. */
static size_t count_functions(const struct rpctable *table)
{
	size_t total = 0;

	for (const struct peer *peer = table->newest; peer; peer = peer->older)
		for (const struct block *block = peer->blocks; block; block = block->next)
			total += block->functions;
	return total < LISTED_MAX ? total : LISTED_MAX;
}

/* The first `total` functions; the table's lock is held. */
static void put_functions(const struct rpctable *table, afs_uint32 *word, size_t total)
{
	for (const struct peer *peer = table->newest; peer; peer = peer->older)
		for (const struct block *block = peer->blocks; block; block = block->next)
			for (unsigned i = 0; i < block->functions && total; i++, total--)
				word = put_function(word, peer, block, i);
}

int rpctable_list(struct rpctable *table, afs_uint32 **words)
{
	size_t total;

	*words = NULL;
	pthread_mutex_lock(&table->lock);
	total = count_functions(table);
	if (total)
		*words = malloc(total * RPCTABLE_WORDS * sizeof(**words));
	if (*words)
		put_functions(table, *words, total);
	pthread_mutex_unlock(&table->lock);
	return total && !*words ? -1 : (int)total;
}
