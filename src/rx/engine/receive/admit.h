/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits on what peers may hold: connections of unvalidated addresses, idle connections, slow calls
 * (rx-protocol 12.3); and what they may ask.
 */
#ifndef RXW_ENGINE_ADMIT_H
#define RXW_ENGINE_ADMIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "proto/conn/conn.h"

struct rxw_connection;
struct rxw_ctl;
struct rxw_effects;
struct rxw_endpoint;
struct rxw_shard;

/* Of an endpoint. `lock` covers all fields but the atomics. */
struct rxw_ep_admit {
	_Atomic(uint32_t) validated;   /* connections of validated addresses, of connections_max */
	_Atomic(uint32_t) unvalidated; /* and of the others, of constants.unvalidated_max */
	pthread_mutex_t lock;
	struct rxw_cookies *cookies; /* NULL until the first cookie is sent */
	/* local_rate: of the host's own addresses; log_rate: of lines about clients */
	struct rxw_rate abort_rate, answer_rate, local_rate, log_rate;
	unsigned moves_unlogged; /* since the latest line about a move */
};

/* Of a connection. */
struct rxw_conn_admit {
	bool unvalidated;	     /* counted in ep->admit.unvalidated; connection's lock */
	bool validated;		     /* counted in ep->admit.validated; connection's lock */
};

/* Of a shard; receive role, unless stated. */
struct rxw_shard_admit {
	uint64_t idle_at;		/* ns: no search for idle connections before that */
	unsigned idle_slot, idle_table; /* where that search continues */
	unsigned in_vain;		/* searches since the latest success */
};

/* Of an endpoint; admit.lock, unless stated. */
struct rxw_ep_debug {
	uint64_t answers_at;	  /* ns: no DEBUG answer before that */
	_Atomic(unsigned) access; /* enum rxw_debug_access; relaxed */
	struct rxw_cidr net;
	bool net_valid;
	char version_text[65]; /* fixed */
};

/*
 * Of a shard: positions in the DEBUG listings of all connections and of those with active calls.
 * The lock of its table.
 */
struct rxw_shard_diag {
	struct rxw_listing all, busy;
};

/*
 * Was the packet sent on this host? The kernel refuses packets from outside that claim a local
 * address.
 */
static inline bool rxw_path_is_local(const struct rxw_path *path)
{
	return rxw_addr_is_loopback(&path->peer) ||
	       (path->local.len && rxw_addr_same_host(&path->peer, &path->local));
}

/* unvalidated.c */

/*
 * Count a connection of an unvalidated address. False: there is no room, and it was not counted.
 * *crowded: there are many, so each gets a smaller queue.
 */
bool rxw_unvalidated_admit(struct rxw_endpoint *ep, const struct rxw_path *path, bool *crowded);
/* Undo rxw_unvalidated_admit(): the connection is validated, or gone. */
void rxw_unvalidated_dismiss(struct rxw_endpoint *ep);
/* Connection's lock held: if its address was validated meanwhile, count it as such. */
void rxw_unvalidated_recheck(struct rxw_connection *c, uint64_t now);
/*
 * Connection's lock held, before the run is processed. True: an unvalidated address of another host
 * makes a further call and is to be sent a cookie, since small calls validate nothing by
 * themselves. A run that returns a cookie validates the address.
 */
bool rxw_unvalidated_needs_cookie(struct rxw_connection *c, const struct rxw_rxrun *run,
				  uint64_t now);
/* Send the cookie, without the lock; at most one in 4 s to a host. It is charged to the address. */
void rxw_unvalidated_send_cookie(struct rxw_shard *s, struct rxw_connection *c,
				 const struct rxw_rxrun *run, struct rxw_effects *a);
/* Validation of an address without state for it. */

/* Is the address validated? */
bool rxw_address_validated(struct rxw_endpoint *ep, const struct rxw_addr *peer, uint64_t now);
/* Send a cookie: a control packet in *a. */
void rxw_cookie_send(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a);
/* Does this ACK return a valid cookie of the address? */
bool rxw_cookie_matches(struct rxw_endpoint *ep, const struct rxw_addr *peer,
			const struct rxw_rxrun *run, uint64_t now);
/*
 * For an ACK that belongs to no connection. True: it returns a valid cookie, and its address is
 * validated.
 */
bool rxw_cookie_accept(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now);

/* evict.c: idle connections of validated addresses. Receive role, no lock held. */

/* Time of the latest packet of either side (ns); connection's lock held. */
uint64_t rxw_last_activity(const struct rxw_connection *c);
/* Is `connections-max` exceeded, by connections or by calls that have not ended? */
bool rxw_must_evict(const struct rxw_endpoint *ep);
void rxw_evict_idle(struct rxw_shard *s, uint64_t now);
/* Is there room for one more connection, after evicting others if necessary? */
bool rxw_room_for_connection(struct rxw_shard *s, uint64_t now);

/*
 * slow_calls.c: to be called when workers.sample_at has passed. Ends calls that occupy workers
 * without progress.
 */
void rxw_end_slow_calls(struct rxw_endpoint *ep, uint64_t now);

/* rxdebug.c: answers to VERSION and DEBUG packets. */

/* Receive role, no lock held. Handle a packet of these types. True: a reply is in *ctl. */
bool rxw_inspect(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now,
		 struct rxw_ctl *ctl);

#endif
