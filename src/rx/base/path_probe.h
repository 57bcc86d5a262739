/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of a path for large packets and marks of congestion: the search for the path MTU by padded PINGs, and black
 * hole detection (RFC 8899; rx-protocol 5.5); counts of marked packets, and their validation by the sender (RFC 9000,
 * 13.4.2; rx-wide-windows, rule 8).
 */
#ifndef RXW_BASE_PATH_PROBE_H
#define RXW_BASE_PATH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* The two bits in the headers of IPv4 and IPv6. */
enum rxw_ecn_bits {
	RXW_ECN_NOT = 0,
	RXW_ECN_ECT1 = 1,
	RXW_ECN_ECT0 = 2,
	RXW_ECN_CE = 3
};

/* New packets of a call that arrived with these marks, modulo 2^16. */
struct rxw_ecn_counts {
	uint16_t ce, ect0;
};

static inline void rxw_ecn_count(struct rxw_ecn_counts *c, unsigned bits, uint32_t packets)
{
	if (bits == RXW_ECN_CE)
		c->ce = (uint16_t)(c->ce + packets);
	else if (bits == RXW_ECN_ECT0)
		c->ect0 = (uint16_t)(c->ect0 + packets);
}

/* From RXW_ECN_BLEACHED on, validation has failed, and no packet is marked any more. */
enum rxw_ecn_state {
	RXW_ECN_OFF,	  /* the peer does not report marks */
	RXW_ECN_TESTING,  /* a few packets are marked */
	RXW_ECN_UNKNOWN,  /* they were sent; no packet is marked until a report about them */
	RXW_ECN_CAPABLE,  /* all first transmissions are marked */
	RXW_ECN_BLEACHED, /* packets arrived without a mark, or with ECT(1) */
	RXW_ECN_MANGLED,  /* more marks than packets, counts that fell, nothing but CE */
	RXW_ECN_LOST,	  /* marked packets are lost, others arrive */
	RXW_ECN_SILENT	  /* no report for 65,535 packets: the counts could be ambiguous */
};

/* A packet of the sender. */
enum rxw_ecn_packet {
	RXW_ECN_UNMARKED, /* or acknowledged */
	RXW_ECN_MARKED,	  /* its only transmission was marked */
	RXW_ECN_RESENT	  /* the first one was, not the latest */
};

#define RXW_ECN_TEST 10u /* packets of a test */

/*
 * The sender's state of one call; zeroed: off. Retransmissions are never marked, and the receiver
 * counts a packet once, so that of each packet at most one mark is counted.
 */
struct rxw_ecn {
	uint8_t state;		    /* enum rxw_ecn_state */
	uint8_t noted;		    /* the state that the owner has last noted */
	uint8_t tests;		    /* tests that lost all packets */
	uint8_t ce_rounds;	    /* reactions in a row without ECT(0), and without a queue */
	bool kept;		    /* such packets since the latest reaction */
	bool proven;		    /* such packets ever */
	struct rxw_ecn_counts told; /* by the latest report */
	uint32_t tested;	    /* packets marked in this test */
	uint32_t test_order;	    /* of the first of them */
	uint32_t lost;		    /* marked packets lost since one was acknowledged */
	uint32_t open;		    /* packets that were sent marked, and are not acknowledged */
	uint32_t since;		    /* such packets acknowledged since the latest report */
	uint32_t acked;		    /* packets acknowledged that were sent only once, and marked */
	uint32_t total;		    /* packets with CE or ECT(0), by the reports */
	uint32_t counted;	    /* the same, less those that were sent again: a lower bound */
	uint32_t sent, ce;	    /* packets sent marked; those of them that congestion marked */
	uint32_t cut_order;	    /* latest transmission before the latest reaction; 0 = none */
};

static inline bool rxw_ecn_failed(const struct rxw_ecn *e)
{
	return e->state >= RXW_ECN_BLEACHED;
}
/* The next first transmissions are to be marked. */
static inline bool rxw_ecn_marks(const struct rxw_ecn *e)
{
	return e->state == RXW_ECN_TESTING || e->state == RXW_ECN_CAPABLE;
}
/* The peer reports marks. `known`: the state that an earlier call found; OFF = none did. */
void rxw_ecn_begin(struct rxw_ecn *e, enum rxw_ecn_state known);
/* Test again: the path has changed. */
void rxw_ecn_again(struct rxw_ecn *e);
/* The number of packets, of `n`, that may be marked together. */
uint32_t rxw_ecn_most(const struct rxw_ecn *e, uint32_t n);
/* `n` packets are sent, marked; `order` is that of the first. */
void rxw_ecn_sent(struct rxw_ecn *e, uint32_t order, uint32_t n);
/* Packets that were sent marked are acknowledged; `once`: they were not sent again. */
void rxw_ecn_acked(struct rxw_ecn *e, uint32_t n, bool once);
/* They are declared lost, not having been sent again. */
void rxw_ecn_lost(struct rxw_ecn *e, uint32_t order, uint32_t n);
/*
 * The counts of an ACK that none has overtaken, after what it acknowledges. Returns the packets
 * newly reported with CE; 0 if the report is not valid.
 */
uint32_t rxw_ecn_report(struct rxw_ecn *e, struct rxw_ecn_counts counts);
/*
 * CE was reported, and `acked` is the latest transmission acknowledged, `sent` the latest one sent.
 * `queue`: the round trip is longer than that of the empty path, so that a full queue explains CE on
 * every packet. True: react to congestion, which happens at most once in a round trip.
 */
bool rxw_ecn_react(struct rxw_ecn *e, uint32_t acked, uint32_t sent, bool queue);
/* "off", "testing", "unknown", "capable", "bleached", "mangled", "lost", "silent". Static. */
const char *rxw_ecn_name(enum rxw_ecn_state state);

/*
 * State of one peer; sizes in UDP payload bytes. Invariants: base <= confirmed <= ceiling, low <=
 * high <= ceiling. `confirmed` is the largest size for DATA.
 */
#define RXW_MTU_LEAST	 548u /* fits into every IPv4 packet that need not be cut */
#define RXW_MTU_FALLBACK 1200u

struct rxw_mtu {
	uint32_t base, confirmed, ceiling;
	uint32_t probing;   /* size of the probe in flight, 0 = none */
	uint32_t low, high; /* bounds of the search */
	uint8_t tries, black_holes;
	bool try_high; /* try the upper bound next */
	bool enabled, done;
	uint32_t usual;	  /* `base` before the path MTU fell; below it pauses are shorter */
	uint32_t rest_s;  /* pause, doubled each time */
	uint64_t next_at; /* earliest time of the next probe */
	/*
	 * Set by the owner at any time after rxw_mtu_init(): the largest datagram that the peer accepts
	 * (initially no limit), and the bytes of IP and UDP headers (28).
	 */
	uint32_t limit, headers;
	uint32_t told; /* latest report below `base`, 0 = none; it counts after a black hole */
};

/*
 * Does a path that has become silent still carry small packets? Two PINGs, one of them as large as
 * the packets that were lost.
 */
struct rxw_mtu_check {
	uint32_t small, large; /* their serials; 0 = answered, or no check */
	uint32_t order;	       /* latest transmission before them */
	uint64_t at;	       /* ns: the large one counts as lost then; RXW_NEVER = not yet */
	uint64_t asked_at;     /* ns, of the latest check */
	uint64_t progress_at;  /* ns: latest progress, or first packet in flight */
	bool asked;	       /* a check was made since */
};

/*
 * Windows count packets, of the size `size`. After a change, packets of the call below the sequence
 * number `from` count by their size, `before`: in flight are `old` of them.
 */
struct rxw_mtu_units {
	uint32_t size, before, from, old; /* size 0: nothing was sent yet; before 0: no change */
	uint32_t rest; /* bytes acknowledged of such packets that are no whole packet of `size` */
	uint32_t delivered; /* what rxw_txrate.delivered was at the change */
	uint32_t older;	    /* the packets before this one had yet another size */
};

/*
 * Not enabled: sizes above `base` are not probed, but after a black hole the search returns to it.
 */
void rxw_mtu_init(struct rxw_mtu *m, uint32_t base, uint32_t ceiling, bool enabled);
/*
 * Size of the probe to send now, 0 = none due. Follow with rxw_mtu_confirmed() or rxw_mtu_lost().
 */
uint32_t rxw_mtu_probe(struct rxw_mtu *m, uint64_t now, uint64_t srtt);
/* A probe, or DATA in a datagram, of this size arrived. */
void rxw_mtu_confirmed(struct rxw_mtu *m, uint32_t size, uint64_t now);
void rxw_mtu_lost(struct rxw_mtu *m, uint64_t now); /* the probe in flight was not answered */
/*
 * RTO with packets of this size outstanding; the second in a row falls back to 1200, and the fourth, or
 * the third if the peer was not heard yet, to the least size. True if the size changed.
 */
bool rxw_mtu_timeout(struct rxw_mtu *m, uint32_t outstanding_size, bool heard);
/*
 * Small packets arrive, and those of the confirmed size do not: fall back to 1200, or below that to
 * the least size. That size is tried once more, and then smaller ones. False: it is the least already.
 */
bool rxw_mtu_fall(struct rxw_mtu *m);
/* Our own system refused the probe in flight: it is as good as lost three times. */
void rxw_mtu_refused(struct rxw_mtu *m, uint64_t now);
/* The probe in flight was not sent: it does not count as lost. */
void rxw_mtu_unsent(struct rxw_mtu *m);
/* Another call of the peer uses this size. */
void rxw_mtu_follow(struct rxw_mtu *m, uint32_t size, uint64_t now);
/*
 * The search of a call ends before the path MTU is found: its state in 32 bits, and the start of
 * another one with it. 0 = from the beginning.
 */
uint32_t rxw_mtu_pack(const struct rxw_mtu *m);
void rxw_mtu_resume(struct rxw_mtu *m, uint32_t packed);
void rxw_mtu_progress(struct rxw_mtu *m); /* data was acknowledged */
/* An ICMP report, which may be forged: it only lowers the upper bound, never below base. */
void rxw_mtu_hint(struct rxw_mtu *m, uint32_t size);

#endif
