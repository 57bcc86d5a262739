/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to the module: the runs of one receive batch, grouped by connection so that each is locked once.
 */
#ifndef RXW_ENGINE_BATCH_H
#define RXW_ENGINE_BATCH_H

#include "engine/objects.h"

#define RXW_BATCH_RUNS	 256
#define RXW_BATCH_GROUPS 128
#define RXW_BATCH_CHAINS 128 /* groups by connection id */

struct rxw_batch_run {
	struct rxw_rxrun run;
	int next; /* of the same connection, -1: last */
};

struct rxw_batch_group {
	struct rxw_connection *conn; /* one reference */
	int first, last;
	uint8_t chain; /* next group of the same chain, counted from 1; 0: none */
};

/* Belongs to the holder of the receive role. */
struct rxw_batch {
	unsigned runs, groups;
	struct rxw_batch_run run[RXW_BATCH_RUNS];
	struct rxw_batch_group group[RXW_BATCH_GROUPS];
	uint8_t chain[RXW_BATCH_CHAINS]; /* first group, as above; all 0 between batches */
	/*
	 * Packets of unknown connections: total at the latest check, its time, and time of the
	 * latest log message.
	 */
	uint64_t foreign, foreign_at, foreign_logged;
	unsigned foreign_looks; /* consecutive checks that found many */
	/*
	 * Removal of idle connections: the next slot, the time of the latest scan, and of the
	 * latest other checks.
	 */
	unsigned reap_slot;
	uint64_t reap_at, watched_at;
	uint64_t refused_at; /* ns: when the socket was last drained after a refused call */
	uint64_t refused,
		/* refused calls since then, and messages, since the socket was last drained */
		received;
	uint64_t refused_gap; /* ns between refused calls, roughly */
	/* the receiver delayed to coalesce packets, and has not drained the socket since */
	bool coalesced;
};

/* Ids of one shard have low bits in common, so the hash uses high ones. */
static inline unsigned rxw_batch_chain(uint32_t cid)
{
	return ((cid >> 2) * 0x9e3779b1u) >> 25;
}

/*
 * lookup.c: the connection of a run, created if it is the first packet of a new call; with a
 * reference. NULL: the run is dropped, counted, and perhaps answered in *a.
 */
struct rxw_connection *rxw_find_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					   struct rxw_effects *a);
/*
 * follow.c: the run is for a call of `c`, whose address is another one. True: the connection has
 * followed its client, and the run can be processed. False: it is to be dropped; perhaps a PING in
 * *a asks for proof. *code: the call has failed, and the client has not heard of it; 0: it has not.
 */
bool rxw_conn_follow(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		     int32_t *code, struct rxw_effects *a);
/*
 * lookup.c: remove connections that were idle for long. Scans such a share of the table that each
 * connection is checked every 5 s. Sets rx.reaped_at: to be called again a second after that.
 */
void rxw_shard_reap(struct rxw_shard *s, uint64_t now);

#endif
