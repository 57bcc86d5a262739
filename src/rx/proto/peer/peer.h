/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: what is known of an address. Its validation is in validation.h. */
#ifndef RXW_PROTO_PEER_H
#define RXW_PROTO_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/cc.h"
#include "base/path_probe.h"
#include "base/rtt.h"
#include "base/wire.h"
#include "proto/peer/wide.h"

struct rxw_files_share;

/*
 * Measurements of the path by calls with wide windows (path.c). Each pair is stored in one word, so that
 * it is consistent.
 */
struct rxw_learnt {
	_Atomic(uint64_t) rate_rtt; /* packets per second of all calls << 32 | RTT in us; 0 = none */
	_Atomic(uint64_t) rate_at;  /* ns */
	_Atomic(uint64_t) window_at; /* receive window << 48 | time in us; 0 = none */
	_Atomic(uint64_t) ecn_at; /* enum rxw_ecn_state << 48 | time in us; 0 = none */
	_Atomic(uint64_t) cwnd_at; /* proven by a call << 48 | time in us; 0 = none */
	_Atomic(uint32_t) senders;  /* calls that have more to send than an initial window */
	/* Of those that the path limits: their rates together, as above, and their number. */
	_Atomic(uint64_t) rates;
	_Atomic(uint32_t) sharing;
};

/*
 * One peer: an address and port. Connections of different locks, shards and processors share it, so its fields are
 * atomics; each is a hint or a counter of its own. First what is read for every packet and seldom changes, last what
 * packets and their acknowledgements change: the two share no cache line.
 */
struct rxw_peer {
	struct rxw_addr addr; /* fixed */
	bool local; /* an address of this host; set at creation for loopback, else by the creator */
	_Atomic(bool) carries;		  /* packets above RXW_MTU_LEAST have arrived there */
	_Atomic(uint32_t) mtu;		  /* confirmed datagram size, 0 = default */
	_Atomic(uint32_t) mtu_refused;	  /* our system refused a probe of this size; 0 = none */
	_Atomic(uint32_t) told_max_mtu;	  /* limit in its latest ACK, for observers; 0 = unknown */
	_Atomic(uint32_t) merged_acks_ok; /* its flight doubled per round trip on merged ACKs */
	_Atomic(uint64_t) validated_at;	  /* ns; 0 = never; valid for 60 s */
	/* shortest RTT of all calls, ns, and when one was like it; 0 = none */
	_Atomic(uint64_t) least_rtt, least_at;
	_Atomic(uint64_t) probed_at; /* when a stream without ACKs needed a probe; 0 = never */
	/* packets of replies that it requested and abandoned, as of wasted_at; rxw_peer_waste() */
	_Atomic(uint64_t) wasted, wasted_at;
	_Atomic(uint64_t) ssthresh_at;	 /* slow start threshold << 48 | time in us; 0 = none */
	_Atomic(uint64_t) reordering_at; /* rxw_recovery_learned() << 32 | time in s; 0 = none */
	/* No call but the one that searches begins a search before; its state, if it ends before. */
	_Atomic(uint64_t) mtu_at;
	_Atomic(uint32_t) mtu_search; /* rxw_mtu_pack(); 0 = none */
	/* Its table's marks of validated addresses, and its mark there; fixed. */
	uint16_t mark;
	struct rxw_validated_marks *marks;
	/* as calls begin and end */
	void *hash_next; /* covered by the table's lock */
	uint64_t
		source; /* of the address that our packets to it name: a path of its own; 0 = routing chooses; fixed */
	_Atomic(uint32_t) refs;
	/* For the engine; covered by workers->lock, apart from the atomics. */
	unsigned workers;	    /* its calls that have a worker */
	bool served;		    /* a handler of its calls returned 0 */
	_Atomic(bool) fresh;	    /* it has waiting calls, and none with a worker yet */
	_Atomic(unsigned) places;   /* its calls that wait for a worker, or may have to */
	_Atomic(unsigned) deferred; /* its calls that need no worker */
	struct rxw_files_share *files; /* of its calls with files, or NULL; covered by their lock */
	_Atomic(uint64_t) idle_since;
	struct rxw_learnt learnt;
	struct rxw_wide wide;
	_Atomic(uint64_t) srtt, rttvar, rtt_at; /* latest estimate, ns, of about this time */
	/* a round trip less the time that the answer is said to have waited, and when it ended; ns */
	_Atomic(uint64_t) net_rtt, net_at;
	_Atomic(uint64_t) unvalidated_in, unvalidated_out; /* bytes, until validated (6.7) */
	_Atomic(uint64_t) bytes_sent, bytes_received, packets_sent, packets_resent;
	struct rxw_budget memory; /* received bytes pinned by its calls */
};

/* --- the table of peers; the caller locks it --- */
struct rxw_peer_table;
/* `wide`: memory of the wide windows of all peers, which outlives the table; NULL: no limit. */
struct rxw_peer_table *rxw_peer_table_create(const uint64_t key[2], uint64_t peer_memory,
					     struct rxw_budget *wide);
void rxw_peer_table_destroy(struct rxw_peer_table *t);
/* Find or create; returns with a reference. NULL: out of memory. */
struct rxw_peer *rxw_peer_get(struct rxw_peer_table *t, const struct rxw_addr *addr, uint64_t now);
/* The same for the path from one of our addresses, whose measurements are its own; NULL: from that which routing chooses. */
struct rxw_peer *rxw_peer_get_from(struct rxw_peer_table *t, const struct rxw_addr *addr,
				   const struct rxw_addr *local, uint64_t now);
/* Find; without a reference. NULL: not known. */
struct rxw_peer *rxw_peer_find(const struct rxw_peer_table *t, const struct rxw_addr *addr);
/* False: no peer of this address is validated. Needs no lock and reads no peer, for floods. */
bool rxw_peer_maybe_validated(const struct rxw_peer_table *t, const struct rxw_addr *addr,
			      uint64_t now);
void rxw_peer_ref(struct rxw_peer *p);
/* Entries stay for 300 s after the last reference; of a large table, unvalidated ones go earlier. */
void rxw_peer_unref(struct rxw_peer *p, uint64_t now);
/* Free expired entries; to be called once a second. Each entry is looked at within 64 calls. */
void rxw_peer_reap(struct rxw_peer_table *t, uint64_t now);
unsigned rxw_peer_count(const struct rxw_peer_table *t);
/*
 * Add up the received bytes pinned by calls of the peers in `slots` slots, beginning with *at, and
 * advance *at. False: these were the last slots.
 */
bool rxw_peer_pinned(const struct rxw_peer_table *t, unsigned slots, unsigned *at, uint64_t *bytes);
/*
 * The position of a client that lists a table entry by entry (DEBUG). Covered by the table's lock;
 * zeroed: at the beginning.
 */
struct rxw_listing {
	unsigned slot, before; /* next slot; entries in the slots before it */
	unsigned size, state;  /* of the table at that time */
	bool unfinished;       /* the search stopped at the limit of steps */
};
/*
 * Continue the search for entry `index` where the last one ended, if possible: not for an index
 * before that, not in a table of another size or state, and not for the first entry unless
 * unfinished.
 */
void rxw_listing_begin(struct rxw_listing *l, unsigned index, unsigned size, unsigned state);
/*
 * Entry `index`, in at most *steps steps, one for each slot and entry; subtracts those made. NULL
 * with steps left: no such entry; without: ask again. Changes of the table between two requests may
 * hide an entry or repeat it.
 */
struct rxw_peer *rxw_peer_nth(struct rxw_peer_table *t, struct rxw_listing *l, unsigned index,
			      unsigned *steps);
struct rxw_peer *rxw_peer_at(struct rxw_peer_table *t, unsigned index); /* for tests; may be NULL */

/* --- what the path carries: see path.c --- */

/* A round trip was measured, ns, of which the answer waited in our own socket (0: unknown). The shortest one expires. */
void rxw_peer_learn_rtt(struct rxw_peer *p, uint64_t rtt, uint64_t waited, uint64_t now);
/*
 * Is the path short? One to this host is, however long answers take: a thousand clients that begin together have no
 * round trip below that. If round trips are long nevertheless, the delay is at the peer, for processors or verification.
 */
bool rxw_peer_is_near(const struct rxw_peer *p);
/* The estimate of a call. Of those within a millisecond, the first one counts. */
void rxw_peer_learn_srtt(struct rxw_peer *p, const struct rxw_rtt *rtt, uint64_t now);
/* A slow start threshold, of a call that lost packets; the latest one, 0 = none lately. */
void rxw_peer_learn_ssthresh(struct rxw_peer *p, uint32_t ssthresh, uint64_t now);
uint32_t rxw_peer_recall_ssthresh(const struct rxw_peer *p, uint64_t now);
/* rxw_recovery_learned(); the latest one, 0 = none lately. */
void rxw_peer_learn_reordering(struct rxw_peer *p, uint32_t learned, uint64_t now);
uint32_t rxw_peer_recall_reordering(const struct rxw_peer *p, uint64_t now);

/*
 * The rate of a call that the path limits is `rate` now, and was `before`; 0 = it is none. With the
 * fractional bits of rates.
 */
void rxw_peer_share(struct rxw_peer *p, uint64_t before, uint64_t rate);
/* The mean rate of such calls; 0 = less than two. */
uint64_t rxw_peer_fair(const struct rxw_peer *p);
/* A call has measured the path. Ignored unless the owner of the address is known. */
void rxw_peer_learn(struct rxw_peer *p, bool client, const struct rxw_cc_path *path, uint64_t now);
/* False: nothing is known, or not lately. */
bool rxw_peer_recall(const struct rxw_peer *p, struct rxw_cc_path *path, uint64_t now);
void rxw_peer_forget(struct rxw_peer *p);
/* Congestion window of the latest call without wide windows or losses; 0 = none within a second. */
void rxw_peer_learn_cwnd(struct rxw_peer *p, bool client, uint32_t cwnd, uint64_t now);
uint32_t rxw_peer_recall_cwnd(const struct rxw_peer *p, uint64_t now);
/* The receive window that a stream needed; the latest one, 0 = unknown. */
void rxw_peer_learn_window(struct rxw_peer *p, bool client, uint32_t window, uint64_t now);
uint32_t rxw_peer_recall_window(const struct rxw_peer *p, uint64_t now);
/* Whether marks pass, which a call has found: CAPABLE, or a failure. OFF: nothing is known. */
void rxw_peer_learn_ecn(struct rxw_peer *p, bool client, enum rxw_ecn_state state, uint64_t now);
enum rxw_ecn_state rxw_peer_recall_ecn(const struct rxw_peer *p, uint64_t now);

/* --- limits --- */

/*
 * The peer ended a call, or became silent, while `packets` of the reply were queued. The account
 * drains at a steady rate; while it is overdrawn, the peer is wasteful, and less work is done for
 * it.
 */
void rxw_peer_waste(struct rxw_peer *p, uint32_t packets, uint64_t now);
bool rxw_peer_wasteful(const struct rxw_peer *p, uint64_t now);

/* A rate limit: at most `per_second`, in bursts of the same size. The caller locks it. */
struct rxw_rate {
	uint64_t per_second, tokens_ns, at;
};
void rxw_rate_init(struct rxw_rate *r, unsigned per_second, uint64_t now);
bool rxw_rate_take(struct rxw_rate *r, uint64_t now);

#endif
