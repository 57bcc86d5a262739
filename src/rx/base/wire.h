/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet layouts: headers, acknowledgements, jumbograms, aborts (rx-protocol 1, 2.8, 3.1, 5.1). */
#ifndef RXW_BASE_WIRE_H
#define RXW_BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RXW_HEADER_SIZE   28u
#define RXW_JUMBO_PAYLOAD 1412u
#define RXW_JUMBO_HEADER  4u
#define RXW_MTU_DEFAULT   1444u
#define RXW_MTU_MIN       520u
/* Upper limit for a peer's announcement: the largest datagram that Rx peers receive. */
#define RXW_MTU_MAX   16384u
#define RXW_JUMBO_MAX 46u /* members that fit 64 KiB */
/* Packets that the table of a plain ACK describes, and so the largest window without wide ones. */
#define RXW_MAX_ACKS 255u
/*
 * Wide windows (rx-wide-windows): a table has 256 bytes, the last of them in the place of the first
 * octet of padding, and describes 2,048 packets. We send up to four tables behind the trailer, so
 * that the largest ACK fits into RXW_MTU_DEFAULT, and accept up to 31. If these do not suffice, they
 * describe a part of the window that begins with another table than the second one, and a sixth word
 * of the trailer tells which.
 */
#define RXW_WINDOW_MAX	    65535u
#define RXW_ACK_TABLE	    256u
#define RXW_TABLE_PACKETS   (8u * RXW_ACK_TABLE)
#define RXW_ACK_TABLES	    4u
#define RXW_ACK_TABLES_MOST 31u
/* Header, 18 fixed bytes, table, padding, trailer, further tables. */
#define RXW_ACK_MAX_SIZE \
	(RXW_HEADER_SIZE + 18u + RXW_MAX_ACKS + 3u + 24u + RXW_ACK_TABLES * RXW_ACK_TABLE)

enum rxw_packet_type {
	RXW_DATA = 1,
	RXW_ACK = 2,
	RXW_BUSY = 3,
	RXW_ABORT = 4,
	RXW_ACKALL = 5,
	RXW_CHALLENGE = 6,
	RXW_RESPONSE = 7,
	RXW_DEBUG = 8,
	RXW_PARAMS = 9,
	RXW_VERSION = 13
};

enum rxw_packet_flag {
	RXW_CLIENT_INITIATED = 0x01,
	RXW_REQUEST_ACK = 0x02,
	RXW_LAST_PACKET = 0x04,
	RXW_MORE_PACKETS = 0x08,
	RXW_EXTENDED_ACK = 0x08, /* on an ACK: the sender of it understands wide windows */
	RXW_JUMBO_PACKET = 0x20,
	RXW_SLOW_START_OK = 0x20
};

enum rxw_ack_reason {
	RXW_ACK_NONE = 0,
	RXW_ACK_REQUESTED = 1,
	RXW_ACK_DUPLICATE = 2,
	RXW_ACK_OUT_OF_SEQUENCE = 3,
	RXW_ACK_EXCEEDS_WINDOW = 4,
	RXW_ACK_NOSPACE = 5,
	RXW_ACK_PING = 6,
	RXW_ACK_PING_RESPONSE = 7,
	RXW_ACK_DELAY = 8,
	RXW_ACK_IDLE = 9
};

struct rxw_header {
	uint32_t epoch;
	uint32_t cid; /* channel bits included */
	uint32_t call;
	uint32_t seq;
	uint32_t serial;
	uint8_t type;
	uint8_t flags;
	uint8_t user_status;
	uint8_t security;
	uint16_t spare;
	uint16_t service;
};

/* Big-endian words at any address. */
static inline uint32_t rxw_get32(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline void rxw_put32(void *p, uint32_t v)
{
	uint8_t *b = (uint8_t *)p;

	b[0] = (uint8_t)(v >> 24);
	b[1] = (uint8_t)(v >> 16);
	b[2] = (uint8_t)(v >> 8);
	b[3] = (uint8_t)v;
}

static inline uint16_t rxw_get16(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint16_t)((unsigned)b[0] << 8 | b[1]);
}

static inline void rxw_put16(void *p, uint16_t v)
{
	uint8_t *b = (uint8_t *)p;

	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

/* False if `size` is below 28. */
bool rxw_header_get(const uint8_t *data, size_t size, struct rxw_header *h);
/* Writes 28 bytes. */
void rxw_header_put(uint8_t *data, const struct rxw_header *h);
void rxw_header_set_serial(uint8_t *data, uint32_t serial);

/*
 * A decoded ACK; the tables point into the packet. It describes the packets [first, first + count),
 * see rxw_ack_has(), and says that the next `tail` packets were received as well. If `part` is
 * not 0, it describes as many packets from table `base` on, too, and says nothing of others. Trailer words are
 * clamped (3.2): sizes to RXW_MTU_MIN..RXW_MTU_MAX, rwind to 1..RXW_MAX_ACKS, or of an extended ACK
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
};

/*
 * `body` follows a header with these flags. False: malformed, ignore it (too short, nAcks exceeds
 * the bytes, firstPacket 0). Of an extended ACK with impossible tables only firstPacket and the
 * trailer are taken.
 */
bool rxw_ack_get(const uint8_t *body, size_t size, uint8_t flags, struct rxw_ack *ack);
/*
 * Body of an ACK: 18 + count + 3 + 16 bytes; always four trailer words. Returns its size. out has
 * room for RXW_ACK_MAX_SIZE - RXW_HEADER_SIZE. `ack->acks` has count bytes of 0 or 1. Of an
 * extended ACK, 255 packets or more are described by RXW_ACK_TABLE bytes at `acks` and `tables`
 * times as many at `more`.
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
 * The end of the packets from `from` on, below `to`, that have the same state, which is stored in
 * *received. from < to; all of them are described.
 */
uint32_t rxw_ack_run(const struct rxw_ack *ack, uint32_t from, uint32_t to, bool *received);
/* Mark packets [from, to) as received in tables that follow each other, and were zero before. */
void rxw_ack_mark(uint8_t *tables, uint32_t from, uint32_t to);

/* Code of an ABORT body: false if shorter than 4 bytes; 0 reads as -5. */
bool rxw_abort_get(const uint8_t *body, size_t size, int32_t *code);

/*
 * Walk over the members of a DATA datagram (plain, or not DATA: one). rxw_jumbo_init() is false for
 * less than a header. Every call of rxw_jumbo_next() yields the next member's payload and its
 * header (seq, serial, flags, spare of the member; the rest of member 1). It returns 1, 0 at the
 * end, and once -1 where the tail is truncated (5.1; members before it are good).
 */
struct rxw_jumbo {
	const uint8_t *data;
	size_t size;
	size_t at;           /* payload of the next member, <= size */
	struct rxw_header h; /* of the next member */
	bool more;           /* there is a next member, good or truncated */
};
bool rxw_jumbo_init(struct rxw_jumbo *j, const uint8_t *datagram, size_t size);
int rxw_jumbo_next(struct rxw_jumbo *j, struct rxw_header *h, const uint8_t **payload,
		   size_t *size);

/*
 * Build answers: stateless ABORT (32 bytes, 1.9) from the header of the packet answered. Returns
 * the size.
 */
size_t rxw_stateless_abort_put(uint8_t *out, const struct rxw_header *request, int32_t code);
/* VERSION answer: 28 + 65 bytes, `text` cut to 64 and NUL-padded. */
size_t rxw_version_put(uint8_t *out, const struct rxw_header *request, const char *text);

/* Names for logs and tests: "DATA", "REQUESTED". Never NULL. */
const char *rxw_packet_type_name(unsigned type);
const char *rxw_ack_reason_name(unsigned reason);

#endif
