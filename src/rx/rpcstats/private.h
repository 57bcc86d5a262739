/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the statistics of procedure calls: counters (rpcstats.c), their encoding (entries.c), and
 * the service (service.c).
 */
#ifndef RXW_RPCSTATS_PRIVATE_H
#define RXW_RPCSTATS_PRIVATE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include <rxwire/error.h>
#include <rxwire/rpcstats.h>
#include <rxwire/stub.h>

#include "common/htable.h"

#define RXW_RPCSTATS_SHARDS	8
#define RXW_RPCSTATS_TABLES_MAX 64 /* interfaces, each side counted for itself; in each list */
#define RXW_RPCSTATS_FUNCTIONS	4096
#define RXW_RPCSTATS_MANY	((16u << 20) / (4 * RXW_RPCSTATS_WORDS)) /* entries of one reply */

/* An interface on one side. */
struct rxw_rpcstats_id {
	uint32_t interface; /* statindex */
	uint32_t functions;
	bool client;
};

/* The counters of an interface, by function; covered by the lock of the list that it is in. */
struct rxw_rpcstats_table {
	struct rxw_rpcstats_table *next;
	struct rxw_rpcstats_id id;
	struct rxw_rpcstats_counters counters[];
};

/*
 * The counters of the process are sharded to avoid contention; a thread always uses the same shard.
 */
struct rxw_rpcstats_shard {
	alignas(64) pthread_mutex_t lock;
	struct rxw_rpcstats_table *tables;
};

struct rxw_rpcstats_key {
	uint8_t address[16]; /* IPv4 in its mapped form */
	uint16_t port;	     /* in host order */
};

/* Invariant: a peer is in the table and in the list by age, both covered by peers_lock. */
struct rxw_rpcstats_peer {
	void *chain;
	struct rxw_rpcstats_peer *newer, *older;
	struct rxw_rpcstats_key key;
	struct rxw_rpcstats_table *tables;
};

struct rxw_rpcstats {
	bool open; /* fixed, as the next */
	unsigned peers_max;
	/* by kind; set under the locks they matter for */
	_Atomic(bool) on[2];

	struct rxw_rpcstats_shard shard[RXW_RPCSTATS_SHARDS];

	pthread_mutex_t peers_lock; /* covers the rest, apart from the observer */
	struct htable peers;
	struct rxw_rpcstats_peer *newest, *oldest;

	struct rxw_rpc_observer observer; /* fixed */
};

/* The tables of the process, each once. Returns how many. */
unsigned rxw_rpcstats_ids(struct rxw_rpcstats *stats,
			  struct rxw_rpcstats_id ids[RXW_RPCSTATS_TABLES_MAX]);
/* The counters of a function in this process. */
void rxw_rpcstats_sum(struct rxw_rpcstats *stats, const struct rxw_rpcstats_id *id,
		      uint32_t function, struct rxw_rpcstats_counters *counters);

/* Whether a caller is on this machine. `local`: the address that it called; its length may be 0. */
bool rxw_rpcstats_is_local(const struct sockaddr *peer, const struct sockaddr *local,
			   socklen_t local_len);

#endif
