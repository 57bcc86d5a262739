/* SPDX-License-Identifier: BSD-2-Clause */
/* Scratch of one receive batch: its runs, grouped by connection so that each is locked once. */
#ifndef RXW_ENGINE_BATCH_H
#define RXW_ENGINE_BATCH_H

#include "engine/internal.h"

#define RXW_BATCH_RUNS	   256
#define RXW_BATCH_GROUPS   128
#define RXW_UNPROVEN_SLOTS 32  /* seconds: more than a stranger is given */
#define RXW_BATCH_CHAINS   128 /* groups by connection id */

struct rxw_batch_run {
	struct rxw_rxrun run;
	int next; /* of the same connection, -1 = last */
};

struct rxw_batch_group {
	struct rxw_connection *conn; /* one reference */
	int first, last;
	uint8_t chain; /* next group of the same chain, counted from 1; 0 = none */
};

/* Strangers' connections in the order in which they were put there; the shard's lock. */
struct rxw_unproven_list {
	struct rxw_connection *head, *tail; /* tail: of a list that is not empty */
};

/* Belongs to the holder of the receive role. */
struct rxw_batch {
	unsigned runs, groups;
	struct rxw_batch_run run[RXW_BATCH_RUNS];
	struct rxw_batch_group group[RXW_BATCH_GROUPS];
	/* runs that this thread verifies once it has left the role */
	struct rxw_verify_job *verify, **verify_tail;
	uint32_t verify_round;		 /* counts the lists that were taken */
	uint8_t chain[RXW_BATCH_CHAINS]; /* first group, as above; all 0 between batches */
	/* Packets that fit no call: how many at the last look, when that was, when last told. */
	uint64_t foreign, foreign_at, foreign_told;
	unsigned foreign_looks; /* in a row that found many */
	/* Reaping: slot that is looked at next, when was looked last, when the other things were. */
	unsigned reap_slot;
	uint64_t reap_at, watched_at;
	uint64_t refused_at;	/* ns; when a call was refused last and the socket dry */
	uint64_t refused, came; /* since then; and what came since the socket was dry last */
	uint64_t refused_gap;	/* ns; from one to the next, about */
	bool gathered;		/* by a nap, and the socket was not dry since */
	/*
	 * Strangers' connections that were made here, one reference each, by the second in which
	 * they are looked at; the shard's lock.
	 */
	struct rxw_unproven_list unproven[RXW_UNPROVEN_SLOTS], unproven_due;
	_Atomic(unsigned) strangers; /* in these lists */
	uint64_t unproven_at;	     /* second that was looked at last */
	uint64_t evict_at;	     /* ns; before that none is looked for that could make room */
	/* The same for those that are no strangers; and where they are looked for. */
	uint64_t settled_at;
	unsigned settled_slot, settled_table;
	struct rxw_listing listed, listed_busy; /* connections, those at work; shard's lock */
};

/* Ids of one shard have low bits in common. */
static inline unsigned rxw_batch_chain(uint32_t cid)
{
	return ((cid >> 2) * 0x9e3779b1u) >> 25;
}

/* Sent on this host? The kernel refuses packets from outside that claim one of our addresses. */
static inline bool rxw_path_is_local(const struct rxw_path *path)
{
	return rxw_addr_is_loopback(&path->peer) ||
	       (path->local.len && rxw_addr_same_host(&path->peer, &path->local));
}

/*
 * receive.c: connection of a run, made if it is a new call's first packet; with a reference, or
 * NULL: dropped, counted, perhaps answered in *a.
 */
struct rxw_connection *rxw_find_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					   struct rxw_effects *a);
/*
 * verify.c: with the connection's lock and the receive role. A run that is to be verified, of a
 * batch with so many packets of the connection: by this thread when it has left the role
 * (rxw_verify_taken()), by the call's reader, or by a thread of the endpoint.
 */
void rxw_verify_note(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		     uint32_t packets);
/* Lock held: for runs that were given to calls, their readers are woken, or threads told. */
void rxw_verify_wake(struct rxw_connection *c, struct rxw_effects *a);
/*
 * Forget connections that are idle for long. Looks at strangers in their time, and at a share of
 * the table such that each connection is seen every 15 s; called too seldom, it makes up for it.
 * Sets reaped_at: it is wanted again a second after that. Receive role.
 */
void rxw_shard_reap(struct rxw_shard *s, uint64_t now);
/* When either side said something last; the connection's lock is held. */
static inline uint64_t rxw_last_activity(const struct rxw_connection *c)
{
	return c->p.last_heard > c->p.last_sent ? c->p.last_heard : c->p.last_sent;
}

/*
 * unproven.c: connections of strangers, whose address is not proven (12.3). Counted when admitted;
 * *pressed: there are so many that each gets less room. Dismissed: counted no more.
 */
enum rxw_admission rxw_unproven_admit(struct rxw_endpoint *ep, const struct rxw_path *path,
				      bool *pressed);
void rxw_unproven_dismiss(struct rxw_endpoint *ep, const struct rxw_addr *peer);
/* A new connection is a stranger's: it will be looked at in time. */
void rxw_unproven_note(struct rxw_shard *s, struct rxw_connection *c, uint64_t now);
/* Connection's lock held: it is no stranger's any more once its peer has proven its address. */
void rxw_stranger_look(struct rxw_connection *c, uint64_t now);
/*
 * Connection's lock held, before the run is dealt with. True: a stranger of another host makes its
 * second call, and is to be asked for a proof, since those of small calls give none unasked; what
 * the question costs is paid by what came before. A run that answers one proves the address.
 */
bool rxw_stranger_watch(struct rxw_connection *c, const struct rxw_rxrun *run, uint64_t now);
/* Ask it, without the lock: a host once in 4 s. Counted with what its address is sent. */
void rxw_stranger_meet(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		       struct rxw_effects *a);
/*
 * All places are taken: of some that were silent long, the one that was longest goes. False: none
 * of those may.
 */
bool rxw_unproven_evict(struct rxw_shard *s, uint64_t now);
/*
 * Once a second: those that were silent for 15 s go. False: the rest is wanted after the next
 * batch. Receive role.
 */
bool rxw_unproven_reap(struct rxw_shard *s, uint64_t now);
/* Drop what is kept: nobody makes connections any more. */
void rxw_shard_forget_strangers(struct rxw_shard *s);
/*
 * question.c: has that address proven itself? Then it needs no place. Else it may be asked to, by a
 * control packet in *a, and nothing is kept of it.
 */
bool rxw_stranger_known(struct rxw_endpoint *ep, const struct rxw_addr *peer, uint64_t now);
void rxw_stranger_ask(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a);
/* An ACK from that address: does it answer such a question? */
bool rxw_stranger_answered(struct rxw_endpoint *ep, const struct rxw_addr *peer,
			   const struct rxw_rxrun *run, uint64_t now);
/* An ACK that belongs to no connection: true if it does; then the address is proven. */
bool rxw_stranger_answers(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now);
/*
 * idle.c: connections of addresses that are proven. With the connection's lock, or nobody else
 * knows of it: counted; counted no more.
 */
void rxw_count_validated(struct rxw_connection *c);
void rxw_uncount_validated(struct rxw_connection *c);
/*
 * More than connections_max? Then idle ones go, behind a batch; and before one is made, so that the
 * bound holds where none may. Receive role, no lock.
 */
bool rxw_too_many_connections(const struct rxw_endpoint *ep);
void rxw_evict_idle(struct rxw_shard *s, uint64_t now);
bool rxw_room_for_connection(struct rxw_shard *s, uint64_t now);
/* errors.c: what the network reported about packets sent. Receive role. */
void rxw_shard_errors(struct rxw_shard *s);

#endif
