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

#include "base/wire_ack.h"

#endif
