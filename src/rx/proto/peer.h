/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: what is known of an address, their table; limits for strangers. */
#ifndef RXW_PROTO_PEER_H
#define RXW_PROTO_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/wire.h"

/*
 * One peer (address and port). Fields are atomics because connections of different locks share it;
 * each is a hint or a counter on its own.
 */
struct rxw_peer {
	struct rxw_addr addr;	    /* fixed */
	struct rxw_peer *hash_next; /* the table's lock */
	_Atomic(uint32_t) refs;
	_Atomic(uint64_t) srtt, rttvar, rtt_at; /* latest published estimate, ns; time of it */
	_Atomic(uint64_t) least_rtt;		/* shortest of all its calls, ns; 0 = unknown */
	_Atomic(uint32_t) ssthresh;		/* 0 = unknown */
	_Atomic(uint32_t) mtu;			/* confirmed datagram size, 0 = default */
	_Atomic(uint32_t) peer_max_mtu;		/* what its ACKs allow us to send, 0 = unknown */
	_Atomic(uint32_t) reordering;		/* rxw_recovery_learned(), 0 = nothing */
	/* its flight was seen to double per round trip on merged ACKs */
	_Atomic(uint32_t) merged_acks_ok;
	/* last proof of its address, ns; 0 = never; valid 60 s */
	_Atomic(uint64_t) proven_at;
	/* bytes with IP and UDP headers, while unproven (6.7) */
	_Atomic(uint64_t) unproven_in, unproven_out;
	/* packets of replies that it asked for and gave up, as of then (rxw_peer_waste()) */
	_Atomic(uint64_t) wasted, wasted_at;
	_Atomic(uint64_t) idle_since;
	struct rxw_budget memory; /* received bytes pinned by its calls */
	/* of the engine: its calls that have a worker (workers->lock), and that wait or may */
	unsigned workers;
	bool served; /* a handler was through with a call of it and returned 0; workers->lock */
	_Atomic(unsigned) places;
	_Atomic(bool) fresh; /* has calls that wait, none at work yet; set under workers->lock */
	_Atomic(uint64_t) bytes_sent, bytes_received, packets_sent, packets_resent;
	/*
	 * an address of this host: loopback ones are known as such at creation, others set by who
	 * creates it
	 */
	bool local;
	/* Of its table, where those are marked that prove something, and its place there; fixed. */
	struct rxw_proof_marks *marks;
	uint16_t mark;
};

/* Table of peers; the caller locks it. */
struct rxw_peer_table;
struct rxw_peer_table *rxw_peer_table_create(const uint64_t key[2], uint64_t peer_memory);
void rxw_peer_table_destroy(struct rxw_peer_table *t);
/* Find or make; returns with a reference. NULL: no memory. */
struct rxw_peer *rxw_peer_get(struct rxw_peer_table *t, const struct rxw_addr *addr, uint64_t now);
/* Only find; without a reference. NULL: it is not known. */
struct rxw_peer *rxw_peer_find(const struct rxw_peer_table *t, const struct rxw_addr *addr);
/*
 * False: no peer of this address is proven. True: perhaps one is. Needs no lock, and reads none of
 * the peers: for floods in which each packet has another address.
 */
bool rxw_peer_maybe_proven(const struct rxw_peer_table *t, const struct rxw_addr *addr,
			   uint64_t now);
void rxw_peer_ref(struct rxw_peer *p);
/*
 * Entries stay for 300 s after the last reference; where there are many, those that proved nothing
 * go earlier.
 */
void rxw_peer_unref(struct rxw_peer *p, uint64_t now);
/*
 * Drop those; once a second. Looks at a share of a large table: each entry is seen within 64
 * calls.
 */
void rxw_peer_reap(struct rxw_peer_table *t, uint64_t now);
unsigned rxw_peer_count(const struct rxw_peer_table *t);
/*
 * Received bytes that calls of the peers in `slots` slots from *at on pin; moves *at behind them.
 * False: those were the last.
 */
bool rxw_peer_pinned(const struct rxw_peer_table *t, unsigned slots, unsigned *at,
		     uint64_t *bytes);
/*
 * Who lists a table (DEBUG) asks for one entry after the other: how far that has come. Zeroed: to the
 * beginning. By the table's lock.
 */
struct rxw_listing {
	unsigned slot, before; /* looked at next; entries that count in those before it */
	unsigned size, state;  /* of the table then */
	bool unfinished;       /* it was left for want of steps, and goes on from there */
};
/*
 * The search for entry `index` goes on where the last one ended, if it can: not for an index that was
 * passed, in a table of another size or state, nor for the first, unless that was left unfinished.
 */
void rxw_listing_begin(struct rxw_listing *l, unsigned index, unsigned size, unsigned state);
/*
 * Entry `index`, in *steps steps at most, one for each slot and entry; less those made. NULL and steps
 * left: there is none. NULL and none left: ask again. What comes and goes between two questions may
 * hide an entry, or show it twice.
 */
struct rxw_peer *rxw_peer_nth(struct rxw_peer_table *t, struct rxw_listing *l, unsigned index,
			      unsigned *steps);
struct rxw_peer *rxw_peer_at(struct rxw_peer_table *t, unsigned index); /* NULL beyond; for tests */

bool rxw_peer_proven(const struct rxw_peer *p, uint64_t now);
/* And is not to be proven again soon: half of the proof's time is left. */
bool rxw_peer_freshly_proven(const struct rxw_peer *p, uint64_t now);
void rxw_peer_prove(struct rxw_peer *p, uint64_t now);
/*
 * May `bytes` of UDP payload leave in `datagrams` datagrams? Charges them if so; always true for a
 * proven one.
 */
bool rxw_peer_may_send(struct rxw_peer *p, uint64_t bytes, unsigned datagrams, uint64_t now);
void rxw_peer_heard(struct rxw_peer *p, uint64_t bytes, unsigned datagrams);
/*
 * Bytes with IP and UDP headers that may leave before the address is proven; UINT64_MAX for a
 * proven one.
 */
uint64_t rxw_peer_allowance(const struct rxw_peer *p, uint64_t now);
/*
 * A call of the peer ended at its wish, or for its silence, while so many packets of the reply were
 * queued. The account empties at a steady rate; while it is overdrawn the peer is wasteful, and is
 * given less to throw away.
 */
void rxw_peer_waste(struct rxw_peer *p, uint32_t packets, uint64_t now);
bool rxw_peer_wasteful(const struct rxw_peer *p, uint64_t now);
/* Bytes of IP and UDP headers of a datagram to or from it. */
unsigned rxw_peer_overhead(const struct rxw_peer *p);

/* A rate limit: at most `per_second`, in bursts of the same size. The caller locks it. */
struct rxw_rate {
	uint64_t per_second, tokens_ns, at;
};
void rxw_rate_init(struct rxw_rate *r, unsigned per_second, uint64_t now);
bool rxw_rate_take(struct rxw_rate *r, uint64_t now);

/*
 * Connections of addresses that proved nothing yet: caps per host and in all (12.3). The caller
 * locks it. STRICT: serve only after a reach check; REFUSE: keep no state.
 */
enum rxw_admission {
	RXW_ADMIT,
	RXW_ADMIT_STRICT,
	RXW_REFUSE
};
struct rxw_strangers;
struct rxw_strangers *rxw_strangers_create(const uint64_t key[2], unsigned per_host,
					   unsigned total);
void rxw_strangers_destroy(struct rxw_strangers *s);
enum rxw_admission rxw_strangers_add(struct rxw_strangers *s, const struct rxw_addr *host,
				     bool local);
/* proved, or gone */
void rxw_strangers_remove(struct rxw_strangers *s, const struct rxw_addr *host);
unsigned rxw_strangers_total(const struct rxw_strangers *s);
/*
 * Questions to strangers of whom nothing is kept, where places run short (12.3). The secret is 128
 * random bits. The caller locks it. NULL: no memory.
 */
struct rxw_questions;
struct rxw_questions *rxw_questions_create(const uint64_t secret[2], uint64_t now);
void rxw_questions_destroy(struct rxw_questions *q);
/*
 * The serial of a question to who sent `head`; 0: none, since its host was asked within the last 4
 * s, or 4,000 of others within the last second.
 */
uint32_t rxw_question_ask(struct rxw_questions *q, const struct rxw_addr *peer,
			  const struct rxw_header *head, uint64_t now);
/*
 * An answer, whose header is `head`, names that serial: was that asked of that address and port,
 * for that call, no longer than 4 to 8 s ago?
 */
bool rxw_question_answered(const struct rxw_questions *q, const struct rxw_addr *peer,
			   const struct rxw_header *head, uint32_t serial, uint64_t now);
/*
 * The packet, of RXW_HEADER_SIZE + RXW_ACK_FRAME bytes at `out`: a PING that acknowledges nothing.
 * Returns its size.
 */
size_t rxw_question_put(uint8_t *out, const struct rxw_header *request, uint32_t serial,
			unsigned mtu, unsigned window);
/* Over a quarter of the cap: unproven connections may queue 2 packets instead of 16. */
bool rxw_strangers_pressed(const struct rxw_strangers *s);

#endif
