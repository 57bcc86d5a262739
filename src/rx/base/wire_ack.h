/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of acknowledgements (rx-protocol 3.1, 3.2; rx-wide-windows). Included by wire.h. */
#ifndef RXW_BASE_WIRE_ACK_H
#define RXW_BASE_WIRE_ACK_H

#include "base/path_probe.h"
#include "base/wire.h"

/*
 * Wide windows (rx-wide-windows): a table has 256 bytes, the last of them in the place of the first
 * octet of padding, and describes 2,048 packets. We send up to four tables behind the trailer, so
 * that the largest ACK fits into RXW_MTU_DEFAULT, and accept up to 31. If these do not suffice, they
 * describe a part of the window that begins with another table than the second one, and a sixth word
 * of the trailer tells which. The fifth word has two counts of 16 bits: packets of the call that
 * arrived with CE, and with ECT(0) (base/path_probe.h).
 */
#define RXW_WINDOW_MAX	    65535u
#define RXW_ACK_TABLE	    256u
#define RXW_TABLE_PACKETS   (8u * RXW_ACK_TABLE)
#define RXW_ACK_TABLES	    4u
#define RXW_ACK_TABLES_MOST 31u
/* Header, 18 fixed bytes, table, padding, trailer, further tables. */
#define RXW_ACK_MAX_SIZE \
	(RXW_HEADER_SIZE + 18u + RXW_MAX_ACKS + 3u + 24u + RXW_ACK_TABLES * RXW_ACK_TABLE)

/*
 * A decoded ACK; the tables point into the packet. It describes the packets [first, first + count),
 * see rxw_ack_has(), and says that the next `tail` packets were received as well. If `part` is
 * not 0, it describes as many packets from table `base` on, too, and says nothing of others.
 * Trailer words are clamped (3.2): sizes to RXW_MTU_MIN..RXW_MTU_MAX, rwind to 1..RXW_MAX_ACKS, or of an extended ACK
 * to 1..RXW_WINDOW_MAX, jumbo_max to 1..RXW_JUMBO_MAX; absent ones are 0.
 */
struct rxw_ack {
	uint32_t first; /* firstPacket */
	uint32_t previous;
	uint32_t serial;       /* of the packet that caused it */
	uint8_t reason;        /* unknown ones read as DELAY */
	bool extended;	       /* RXW_EXTENDED_ACK */
	uint8_t tables;	       /* further tables */
	uint8_t base;	       /* the number of the first of these, 1 = they follow the first table */
	uint8_t trailer_words; /* number present: 0, 2, 3 or 4 */
	uint32_t count, tail;
	uint32_t part;	     /* packets that the further tables describe; 0 = `count` includes them */
	const uint8_t *acks; /* RXW_ACK_TABLE bytes if count exceeds 255, else count */
	const uint8_t *more; /* further tables */
	uint32_t max_mtu, if_mtu, rwind, jumbo_max; /* valid by trailer_words */
	bool ecn;				    /* of an extended ACK: it has the fifth word */
	struct rxw_ecn_counts marks;
};

/*
 * `body` follows a header with these flags. False: malformed, ignore it (too short, nAcks exceeds
 * the bytes, firstPacket 0). Of an extended ACK with impossible tables only firstPacket and the
 * trailer are taken.
 */
bool rxw_ack_get(const uint8_t *body, size_t size, uint8_t flags, struct rxw_ack *ack);
/*
 * Body of an ACK: 18 + count + 3 + 16 bytes, with four trailer words; `ecn` needs a fifth one,
 * `part` a sixth. Returns its size. out has room for RXW_ACK_MAX_SIZE - RXW_HEADER_SIZE.
 * `ack->acks` has count bytes of 0 or 1. Of an extended ACK, 255 packets or more are described by
 * RXW_ACK_TABLE bytes at `acks` and `tables` times as many at `more`.
 */
size_t rxw_ack_put(uint8_t *out, const struct rxw_ack *ack);

/* The table that describes packet first + i, which must be described. */
static inline const uint8_t *rxw_ack_table(const struct rxw_ack *ack, uint32_t i)
{
	return i < RXW_TABLE_PACKETS
		       ? ack->acks
		       : ack->more + (i / RXW_TABLE_PACKETS - ack->base) * RXW_ACK_TABLE;
}
/* Was it received? */
static inline bool rxw_ack_has(const struct rxw_ack *ack, uint32_t i)
{
	return rxw_ack_table(ack, i)[i % RXW_ACK_TABLE] >> (i / RXW_ACK_TABLE % 8) & 1;
}
/*
 * Tables of extended ACKs as bits in the order of packets: 64 in a word, the first in the lowest bit.
 * `count` is at most RXW_WINDOW_MAX + 1; the bits of the last word beyond it are 0.
 */
#define RXW_ACK_WORDS (32u * RXW_TABLE_PACKETS / 64)
/* Into tables that follow each other, and were zero before. */
void rxw_ack_spread(uint8_t *tables, const uint64_t *bits, uint32_t count);
/* From the tables, which are complete: packets from `from` on, a multiple of RXW_TABLE_PACKETS. */
void rxw_ack_gather(const struct rxw_ack *ack, uint32_t from, uint32_t count, uint64_t *bits);

#endif
