/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the statistics of procedure calls: counters (rpcstats.c) and their encoding (wire.c). */
#ifndef AFS_RPCSTATS_PRIVATE_H
#define AFS_RPCSTATS_PRIVATE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "afs/rpcstats/rpcstats.h"
#include "afs/rxstats.h"
#include "common/htable.h"

#define STATS_SHARDS	  8
#define STATS_KNOWN_MAX	  64 /* interfaces, each side counted for itself */
#define STATS_NO_FUNCTION UINT16_MAX

/* An interface that has been used, on one side. Constant once it is in the list. */
struct stats_known {
	const struct rxw_rpc_interface *interface;
	bool client;
	unsigned entries;    /* functions as OpenAFS numbers them */
	uint16_t function[]; /* for each entry: index of the function, or STATS_NO_FUNCTION */
};

/* The counters of an interface, by function; covered by the lock of the owner. */
struct stats_block {
	struct stats_block *next;
	const struct stats_known *known;
	struct afs_rpcstats_counters counters[];
};

/*
 * The counters of the process are sharded to avoid contention; a thread always uses the same shard.
 */
struct stats_shard {
	alignas(64) pthread_mutex_t lock;
	struct stats_block *blocks;
};

struct stats_key {
	uint8_t address[16]; /* IPv4 in its mapped form */
	uint16_t port;	     /* in host order */
};

/* Invariant: a peer is in the table and in the list by age, both covered by peers_lock. */
struct stats_peer {
	void *chain;
	struct stats_peer *newer, *older;
	struct stats_key key;
	struct stats_block *blocks;
};

struct afs_rpcstats {
	bool open;
	unsigned peers_max;
	_Atomic bool on[2]; /* [0] process, [1] peers; set under the locks they matter for */

	pthread_mutex_t known_lock; /* taken for adding; lists are read without it */
	_Atomic(struct stats_known *) known[STATS_KNOWN_MAX];
	_Atomic unsigned known_count;

	struct stats_shard shard[STATS_SHARDS];

	pthread_mutex_t peers_lock; /* covers the rest; taken before known_lock */
	struct htable peers;
	struct stats_peer *newest, *oldest;

	struct rxw_rpc_observer observer;
	struct RXSTATS_service service;
};

/* The numbering of OpenAFS for an interface; NULL without memory. */
struct stats_known *stats_known_create(const struct rxw_rpc_interface *interface, bool client);

extern const struct RXSTATS_handlers stats_handlers;

void stats_counters_reset(struct afs_rpcstats_counters *counters);

#endif
