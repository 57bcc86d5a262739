/* SPDX-License-Identifier: BSD-2-Clause */
/* Search for the path MTU by padded PINGs, and black hole detection (RFC 8899; rx-protocol 5.5). */
#ifndef RXW_BASE_MTU_H
#define RXW_BASE_MTU_H

#include <stdbool.h>
#include <stdint.h>

/*
 * State of one peer; sizes in UDP payload bytes. Invariants: base <= confirmed <= ceiling, low <=
 * high <= ceiling. `confirmed` is the largest size for DATA.
 */
#define RXW_MTU_LEAST 548u /* fits into every IPv4 packet that need not be cut */
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
