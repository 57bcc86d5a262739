/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet layouts: headers, acknowledgements, jumbograms, aborts (rx-protocol 1, 2.8, 3.1, 5.1). */

#include "base/wire.h"

#include <rxwire/error.h>

#define ACK_FIXED    18u /* bytes before the table of an ACK */
#define ACK_PADDING  3u
#define ECN_WORDS    5u /* the fifth one has counts of marks */
#define BASE_WORDS   6u /* the last of so many trailer words is the number of a table */
#define VERSION_TEXT 65u

bool rxw_header_get(const uint8_t *data, size_t size, struct rxw_header *h)
{
	if (size < RXW_HEADER_SIZE)
		return false;
	h->epoch = rxw_get32(data);
	h->cid = rxw_get32(data + 4);
	h->call = rxw_get32(data + 8);
	h->seq = rxw_get32(data + 12);
	h->serial = rxw_get32(data + 16);
	h->type = data[20];
	h->flags = data[21];
	h->user_status = data[22];
	h->security = data[23];
	h->spare = rxw_get16(data + 24);
	h->service = rxw_get16(data + 26);
	return true;
}

void rxw_header_put(uint8_t *data, const struct rxw_header *h)
{
	rxw_put32(data, h->epoch);
	rxw_put32(data + 4, h->cid);
	rxw_put32(data + 8, h->call);
	rxw_put32(data + 12, h->seq);
	rxw_put32(data + 16, h->serial);
	data[20] = h->type;
	data[21] = h->flags;
	data[22] = h->user_status;
	data[23] = h->security;
	rxw_put16(data + 24, h->spare);
	rxw_put16(data + 26, h->service);
}

void rxw_header_set_serial(uint8_t *data, uint32_t serial)
{
	rxw_put32(data + 16, serial);
}

static uint32_t clamp(uint32_t v, uint32_t low, uint32_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* The trailer is recognised by its length. A peer may send any values, so all are clamped. */
static void trailer_get(struct rxw_ack *ack, const uint8_t *p, size_t size)
{
	size_t words = size / 4;

	if (words < 2)
		return;
	ack->trailer_words = (uint8_t)(words > 4 ? 4 : words);
	ack->max_mtu = clamp(rxw_get32(p), RXW_MTU_MIN, RXW_MTU_MAX);
	ack->if_mtu = clamp(rxw_get32(p + 4), RXW_MTU_MIN, RXW_MTU_MAX);
	if (words >= 3)
		ack->rwind = clamp(rxw_get32(p + 8), 1,
				   ack->extended && words >= 4 ? RXW_WINDOW_MAX : RXW_MAX_ACKS);
	if (words >= 4)
		ack->jumbo_max = clamp(rxw_get32(p + 12), 1, RXW_JUMBO_MAX);
}

static void marks_get(struct rxw_ack *ack, const uint8_t *p, size_t size)
{
	ack->ecn = p[1] >= ECN_WORDS && size >= ACK_PADDING + 4 * ECN_WORDS;
	if (!ack->ecn)
		return;
	p += ACK_PADDING + 4 * (ECN_WORDS - 1);
	ack->marks.ce = rxw_get16(p);
	ack->marks.ect0 = rxw_get16(p + 2);
}

/*
 * Of an extended ACK, previousPacket tells how many packets are meant. With more than 255, the
 * tables describe the first of them. The sender leaves out a tail without a gap.
 */
static void tables_get(struct rxw_ack *ack, const uint8_t *p, size_t size)
{
	uint32_t all = ack->previous - ack->first + 1, room = RXW_TABLE_PACKETS, begin = 1;
	size_t trailer = 4u * p[1];

	if (ack->previous < ack->first || all <= RXW_MAX_ACKS)
		return;
	ack->tables = p[2];
	if (all > RXW_WINDOW_MAX || ack->tables > RXW_ACK_TABLES_MOST ||
	    size < ACK_PADDING + trailer + (size_t)ack->tables * RXW_ACK_TABLE) {
		ack->count = ack->tables = 0;
		return;
	}
	ack->more = p + ACK_PADDING + trailer;
	if (ack->count < RXW_MAX_ACKS) {
		ack->tail = all - ack->count;
		return;
	}
	if (p[1] >= BASE_WORDS)
		begin = rxw_get32(p + ACK_PADDING + 4 * (BASE_WORDS - 1));
	if (p[1] >= BASE_WORDS && begin >= 1 && begin <= RXW_ACK_TABLES_MOST) {
		ack->base = (uint8_t)begin;
		ack->count = all < RXW_TABLE_PACKETS ? all : RXW_TABLE_PACKETS;
		begin *= RXW_TABLE_PACKETS;
		room = ack->tables * RXW_TABLE_PACKETS;
		ack->part = all <= begin ? 0 : all - begin < room ? all - begin : room;
		return;
	}
	room += ack->tables * RXW_TABLE_PACKETS;
	ack->count = all < room ? all : room;
	ack->tail = all - ack->count;
}

bool rxw_ack_get(const uint8_t *body, size_t size, uint8_t flags, struct rxw_ack *ack)
{
	size_t after;

	memset(ack, 0, sizeof(*ack));
	ack->base = 1;
	if (size < ACK_FIXED)
		return false;
	ack->first = rxw_get32(body + 4);
	ack->previous = rxw_get32(body + 8);
	ack->serial = rxw_get32(body + 12);
	ack->reason = body[16];
	ack->count = body[17];
	ack->acks = body + ACK_FIXED;
	if (ack->first == 0 || ack->count > size - ACK_FIXED)
		return false;
	if (ack->reason < RXW_ACK_REQUESTED || ack->reason > RXW_ACK_IDLE)
		ack->reason = RXW_ACK_DELAY;
	after = ACK_FIXED + ack->count;
	if (size - after < ACK_PADDING)
		return true;
	ack->extended = (flags & RXW_EXTENDED_ACK) && body[after + 1] >= 4;
	trailer_get(ack, body + after + ACK_PADDING, size - after - ACK_PADDING);
	if (!ack->extended)
		return true;
	marks_get(ack, body + after, size - after);
	tables_get(ack, body + after, size - after);
	return true;
}

size_t rxw_ack_put(uint8_t *out, const struct rxw_ack *ack)
{
	uint32_t n = ack->count < RXW_MAX_ACKS ? ack->count : RXW_MAX_ACKS;
	uint8_t *p = out + ACK_FIXED;

	rxw_put32(out, 0); /* bufferSpace, maxSkew */
	rxw_put32(out + 4, ack->first);
	rxw_put32(out + 8, ack->previous);
	rxw_put32(out + 12, ack->serial);
	out[16] = ack->reason;
	out[17] = (uint8_t)n;
	if (n)
		memcpy(p, ack->acks, n);
	p += n;
	memset(p, 0, ACK_PADDING);
	if (ack->extended) {
		if (ack->count > RXW_MAX_ACKS)
			p[0] = ack->acks[RXW_MAX_ACKS];
		p[1] = ack->part ? BASE_WORDS : ack->ecn ? ECN_WORDS : 4;
		p[2] = ack->tables;
	}
	p += ACK_PADDING;
	rxw_put32(p, ack->max_mtu);
	rxw_put32(p + 4, ack->if_mtu);
	rxw_put32(p + 8, ack->rwind);
	rxw_put32(p + 12, ack->jumbo_max);
	p += 16;
	if (ack->extended && (ack->part || ack->ecn)) {
		rxw_put16(p, ack->ecn ? ack->marks.ce : 0);
		rxw_put16(p + 2, ack->ecn ? ack->marks.ect0 : 0);
		p += 4;
	}
	if (ack->extended && ack->part) {
		rxw_put32(p, ack->base);
		p += 4;
	}
	if (ack->tables) {
		memcpy(p, ack->more, (size_t)ack->tables * RXW_ACK_TABLE);
		p += (size_t)ack->tables * RXW_ACK_TABLE;
	}
	return (size_t)(p - out);
}

#define LOW_BITS 0x0101010101010101u /* bit 0 of eight bytes */

/* A word of which byte i is the lowest one in memory for i = 0. */
static uint64_t by_memory(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(word);
#else
	return word;
#endif
}

/* Bit 0 of byte i is bit i of `bits`. */
static uint64_t spread_byte(uint64_t bits)
{
	uint64_t word = (bits & 0xff) * LOW_BITS & 0x8040201008040201u;

	return (word + 0x7f7f7f7f7f7f7f7fu) >> 7 & LOW_BITS;
}

/* The reverse of that. */
static uint64_t gather_byte(uint64_t word)
{
	return (word & LOW_BITS) * 0x0102040810204080u >> 56;
}

void rxw_ack_spread(uint8_t *tables, const uint64_t *bits, uint32_t count)
{
	for (uint32_t at = 0; at < count; at += 64) {
		uint8_t *table =
			tables + at / RXW_TABLE_PACKETS * RXW_ACK_TABLE + at % RXW_ACK_TABLE;
		unsigned k = at / RXW_ACK_TABLE % 8;
		uint64_t left = bits[at / 64], word;

		for (; left != 0; left >>= 8, table += 8) {
			memcpy(&word, table, sizeof(word));
			word |= by_memory(spread_byte(left) << k);
			memcpy(table, &word, sizeof(word));
		}
	}
}

void rxw_ack_gather(const struct rxw_ack *ack, uint32_t from, uint32_t count, uint64_t *bits)
{
	for (uint32_t at = 0; at < count; at += 64) {
		const uint8_t *table = rxw_ack_table(ack, from + at) + at % RXW_ACK_TABLE;
		unsigned k = at / RXW_ACK_TABLE % 8;
		uint64_t all = 0, word;

		for (unsigned i = 0; i < 8; i++) {
			memcpy(&word, table + 8 * i, sizeof(word));
			all |= gather_byte(by_memory(word) >> k) << 8 * i;
		}
		bits[at / 64] = all;
	}
	if (count % 64 != 0)
		bits[count / 64] &= (1ull << count % 64) - 1;
}

bool rxw_abort_get(const uint8_t *body, size_t size, int32_t *code)
{
	if (size < 4)
		return false;
	*code = (int32_t)rxw_get32(body);
	if (*code == 0)
		*code = RXW_PROTOCOL_ERROR;
	return true;
}

bool rxw_jumbo_init(struct rxw_jumbo *j, const uint8_t *datagram, size_t size)
{
	memset(j, 0, sizeof(*j));
	if (!rxw_header_get(datagram, size, &j->h))
		return false;
	j->data = datagram;
	j->size = size;
	j->at = RXW_HEADER_SIZE;
	j->more = true;
	return true;
}

int rxw_jumbo_next(struct rxw_jumbo *j, struct rxw_header *h, const uint8_t **payload, size_t *size)
{
	const uint8_t *next;
	size_t left;

	if (!j->more)
		return 0;
	left = j->size - j->at;
	if (j->h.type != RXW_DATA || !(j->h.flags & RXW_JUMBO_PACKET)) {
		j->more = false;
		*h = j->h;
		*payload = j->data + j->at;
		*size = left;
		return 1;
	}
	if (left < RXW_JUMBO_PAYLOAD + RXW_JUMBO_HEADER) {
		j->more = false;
		return -1;
	}
	*h = j->h;
	*payload = j->data + j->at;
	*size = RXW_JUMBO_PAYLOAD;
	/* The direction flag is the datagram's; a member cannot change it. */
	next = *payload + RXW_JUMBO_PAYLOAD;
	j->h.flags =
		(uint8_t)((next[0] & ~RXW_CLIENT_INITIATED) | (j->h.flags & RXW_CLIENT_INITIATED));
	j->h.spare = rxw_get16(next + 2);
	j->h.seq++;
	j->h.serial++;
	j->at += RXW_JUMBO_PAYLOAD + RXW_JUMBO_HEADER;
	return 1;
}

size_t rxw_stateless_abort_put(uint8_t *out, const struct rxw_header *request, int32_t code)
{
	struct rxw_header h = {
		.epoch = request->epoch,
		.cid = request->cid,
		.call = request->call,
		.type = RXW_ABORT,
		.flags = (uint8_t)(~request->flags & RXW_CLIENT_INITIATED),
		.security = request->security,
		.service = request->service,
	};

	rxw_header_put(out, &h);
	rxw_put32(out + RXW_HEADER_SIZE, (uint32_t)(code ? code : RXW_PROTOCOL_ERROR));
	return RXW_HEADER_SIZE + 4;
}

size_t rxw_version_put(uint8_t *out, const struct rxw_header *request, const char *text)
{
	struct rxw_header h = *request;
	size_t length = strnlen(text, VERSION_TEXT - 1);

	h.flags &= (uint8_t)~RXW_CLIENT_INITIATED;
	rxw_header_put(out, &h);
	memset(out + RXW_HEADER_SIZE, 0, VERSION_TEXT);
	memcpy(out + RXW_HEADER_SIZE, text, length);
	return RXW_HEADER_SIZE + VERSION_TEXT;
}

const char *rxw_packet_type_name(unsigned type)
{
	static const char *const names[] = {
		[RXW_DATA] = "DATA",         [RXW_ACK] = "ACK",       [RXW_BUSY] = "BUSY",
		[RXW_ABORT] = "ABORT",       [RXW_ACKALL] = "ACKALL", [RXW_CHALLENGE] = "CHALLENGE",
		[RXW_RESPONSE] = "RESPONSE", [RXW_DEBUG] = "DEBUG",   [RXW_PARAMS] = "PARAMS",
		[RXW_VERSION] = "VERSION",
	};

	if (type < sizeof(names) / sizeof(names[0]) && names[type])
		return names[type];
	return "unknown";
}

const char *rxw_ack_reason_name(unsigned reason)
{
	static const char *const names[] = {
		"NONE",    "REQUESTED", "DUPLICATE",     "OUT_OF_SEQUENCE", "EXCEEDS_WINDOW",
		"NOSPACE", "PING",      "PING_RESPONSE", "DELAY",           "IDLE",
	};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "unknown";
}
