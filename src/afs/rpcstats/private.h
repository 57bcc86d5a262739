/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of procedure calls from inside: what the collector and its encoding share. */
#ifndef AFS_RPCSTATS_PRIVATE_H
#define AFS_RPCSTATS_PRIVATE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "afs/rpcstats/rpcstats.h"
#include "afs/rxstats.h"

#define STATS_SHARDS	  8
#define STATS_KNOWN_MAX	  64 /* interfaces, each side counted for itself */
#define STATS_NO_FUNCTION UINT16_MAX

/* An interface that has been seen, on one side. Constant once it stands in the list. */
struct stats_known {
	const struct rxw_rpc_interface *interface;
	bool client;
	unsigned entries;    /* functions as OpenAFS counts them */
	uint16_t function[]; /* for each of them: ours, or STATS_NO_FUNCTION */
};

/* The counters of one interface, by our function index; guarded by the lock of what holds it. */
struct stats_block {
	struct stats_block *next;
	const struct stats_known *known;
	struct afs_rpcstats_counters counters[];
};

/* The process is counted in parts, so that threads seldom meet: a thread always uses the same. */
struct stats_shard {
	alignas(64) pthread_mutex_t lock;
	struct stats_block *blocks;
};

struct stats_key {
	uint8_t address[16]; /* IPv4 in its mapped form */
	uint16_t port;	     /* in host order */
};

/* Invariant: a peer stands in its hash chain and in the list by age, both guarded by peers_lock. */
struct stats_peer {
	struct stats_peer *chain, *newer, *older;
	struct stats_key key;
	struct stats_block *blocks;
};

struct afs_rpcstats {
	bool open;
	unsigned peers_max, buckets; /* buckets: a power of two */
	uint64_t secret[2];	     /* of their hash */
	_Atomic bool on[2]; /* [0] process, [1] peers; set under the locks they matter for */

	pthread_mutex_t known_lock; /* for those that add; lists are read without */
	_Atomic(struct stats_known *) known[STATS_KNOWN_MAX];
	_Atomic unsigned known_count;

	struct stats_shard shard[STATS_SHARDS];

	pthread_mutex_t peers_lock; /* covers the rest; taken before known_lock */
	unsigned peers;
	struct stats_peer *newest, *oldest;
	struct stats_peer **bucket;

	struct rxw_rpc_observer observer;
	struct RXSTATS_service service;
};

/* The numbering of OpenAFS for an interface; NULL without memory. */
struct stats_known *stats_known_create(const struct rxw_rpc_interface *interface, bool client);

extern const struct RXSTATS_handlers stats_handlers;

void stats_counters_reset(struct afs_rpcstats_counters *counters);

#endif
