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
 * RTO with packets > 1200 outstanding; the second in a row falls back to 1200. True if the size
 * changed.
 */
bool rxw_mtu_timeout(struct rxw_mtu *m, uint32_t outstanding_size);
void rxw_mtu_progress(struct rxw_mtu *m); /* data was acknowledged */
/* An ICMP report, which may be forged: it only lowers the upper bound, never below base. */
void rxw_mtu_hint(struct rxw_mtu *m, uint32_t size);

#endif
