/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers may hold: connections of unvalidated addresses, idle connections, slow calls (rx-protocol 12.3). */
#ifndef RXW_ENGINE_ADMIT_H
#define RXW_ENGINE_ADMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/conn/conn.h"

struct rxw_connection;
struct rxw_effects;
struct rxw_endpoint;
struct rxw_shard;

#define RXW_UNVALIDATED_SLOTS 32 /* seconds: more than such a connection lives idle */

/* Connections in the order in which they were added; the shard's lock. */
struct rxw_unvalidated_list {
	struct rxw_connection *head, *tail; /* tail: of a list that is not empty */
};

/* Of a connection. */
struct rxw_conn_admit {
	bool unvalidated; /* counted in ep->strangers; connection's lock */
	bool validated;	  /* counted in ep->validated; connection's lock */
	struct rxw_connection *next; /* lock of the shard that made it */
};

/* Of a shard; receive role, unless stated. */
struct rxw_shard_admit {
	/*
	 * Connections of unvalidated addresses that were made here, one reference each, by the second in
	 * which they are looked at; the shard's lock.
	 */
	struct rxw_unvalidated_list slot[RXW_UNVALIDATED_SLOTS], due;
	_Atomic(unsigned) count; /* in these lists */
	uint64_t second;	 /* that was looked at last */
	uint64_t evict_at;	 /* ns: no search for one to evict before that */
	uint64_t idle_at;	 /* ns: no search for idle connections before that */
	unsigned idle_slot, idle_table; /* where that search goes on */
};

/* Was it sent on this host? The kernel refuses packets from outside that claim one of our addresses. */
static inline bool rxw_path_is_local(const struct rxw_path *path)
{
	return rxw_addr_is_loopback(&path->peer) ||
	       (path->local.len && rxw_addr_same_host(&path->peer, &path->local));
}

/* unvalidated.c */

/* Count a connection of an unvalidated address; *pressed: there are many, so each gets less room. */
enum rxw_admission rxw_unproven_admit(struct rxw_endpoint *ep, const struct rxw_path *path,
				      bool *pressed);
/* It is counted no longer. */
void rxw_unproven_dismiss(struct rxw_endpoint *ep, const struct rxw_addr *peer);
/* A new connection is of an unvalidated address: it will be looked at in time. */
void rxw_unproven_note(struct rxw_shard *s, struct rxw_connection *c, uint64_t now);
/* Connection's lock held: if its address was validated meanwhile, it counts as such. */
void rxw_stranger_look(struct rxw_connection *c, uint64_t now);
/*
 * Connection's lock held, before the run is handled. True: an unvalidated address of another host makes its
 * second call and is to be asked for a proof, since small calls give none. A run that answers such a
 * question validates the address.
 */
bool rxw_stranger_watch(struct rxw_connection *c, const struct rxw_rxrun *run, uint64_t now);
/* Ask it, without the lock: a host once in 4 s. The question is charged to its address. */
void rxw_stranger_meet(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		       struct rxw_effects *a);
/* All places are taken: evict the connection that was silent longest. False: none may go. */
bool rxw_unproven_evict(struct rxw_shard *s, uint64_t now);
/* Once a second: remove those that were silent for 15 s. False: call again after the next batch. */
bool rxw_unproven_reap(struct rxw_shard *s, uint64_t now);
/* At shutdown: drop all references. */
void rxw_shard_forget_strangers(struct rxw_shard *s);

/* cookie.c: an address is validated without any state of its own. */

/* Is the address validated? */
bool rxw_stranger_known(struct rxw_endpoint *ep, const struct rxw_addr *peer, uint64_t now);
/* Ask for a proof, by a control packet in *a. */
void rxw_stranger_ask(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a);
/* Does this ACK of the address answer such a question? */
bool rxw_stranger_answered(struct rxw_endpoint *ep, const struct rxw_addr *peer,
			   const struct rxw_rxrun *run, uint64_t now);
/* An ACK that belongs to no connection. True: it does, and the address is validated now. */
bool rxw_stranger_answers(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now);

/* evict.c: idle connections of validated addresses. Receive role, no lock held. */

/* When either side sent something last (ns); connection's lock held. */
uint64_t rxw_last_activity(const struct rxw_connection *c);
/* There are more than `connections-max`. */
bool rxw_too_many_connections(const struct rxw_endpoint *ep);
void rxw_evict_idle(struct rxw_shard *s, uint64_t now);
/* Is there room for one more, evicting others if need be? */
bool rxw_room_for_connection(struct rxw_shard *s, uint64_t now);

/* slow_calls.c: once workers.look_at has come, end calls that keep workers and move nothing. */
void rxw_end_slow_calls(struct rxw_endpoint *ep, uint64_t now);

#endif
