/* SPDX-License-Identifier: BSD-2-Clause */
/* Cutting a received burst into runs of consecutive packets. */
#include <string.h>

#include "proto/peer/core.h"
#include "proto/peer/event.h"

/*
 * The bits of the word at offset 20 (type, flags, user status, security index) that a run shares.
 */
#define RUN_MASK     0xff01ffffu
#define RUN_BREAKERS ((uint32_t)(RXW_LAST_PACKET | RXW_JUMBO_PACKET) << 16)

static void fill_run(struct rxw_rxrun *run, struct rxw_buf *buf, const struct rxw_path *path,
		     uint8_t *data, uint32_t size)
{
	run->buf = buf;
	run->data = data;
	run->stride = run->last_size = (uint16_t)size;
	run->count = 1;
	run->size = size;
	run->or_flags = run->last_flags = run->head.flags;
	run->jumbo = run->verified = run->kept = false;
	run->ecn = RXW_ECN_NOT;
	run->waited = 0;
	run->path = path;
}

/* An ACK is decoded here only. Its lengths may be wrong: then it counts as malformed. */
static void decode_ack(struct rxw_rxrun *run, const uint8_t *packet, uint32_t size)
{
	if (!rxw_ack_get(packet + RXW_HEADER_SIZE, size - RXW_HEADER_SIZE, run->head.flags,
			 &run->ack))
		run->ack.first = 0;
}

/* The next member of a jumbogram; false at its end. */
static bool jumbo_member(struct rxw_jumbo *jumbo, struct rxw_buf *buf, const struct rxw_path *path,
			 struct rxw_rxrun *run, struct rxw_pstats *stats)
{
	const uint8_t *payload;
	size_t size;
	int got = rxw_jumbo_next(jumbo, &run->head, &payload, &size);

	if (got <= 0) {
		if (got < 0)
			rxw_drop(stats, RXW_DROP_JUMBO, 1);
		memset(jumbo, 0, sizeof(*jumbo));
		return false;
	}
	fill_run(run, buf, path, buf->data + (payload - buf->data) - RXW_HEADER_SIZE,
		 (uint32_t)size + RXW_HEADER_SIZE);
	run->jumbo = true;
	return true;
}

/* Extend the run by the packets at p that follow the first. */
static void extend_run(struct rxw_rxrun *run, uint8_t *p, uint32_t left, uint32_t segment)
{
	const uint8_t *first = run->data;
	uint32_t word = rxw_get32(first + 20) & RUN_MASK;
	uint32_t seq = run->head.seq, serial = run->head.serial;
	uint32_t or_flags = 0, flags = 0, size = segment;

	while (left >= RXW_HEADER_SIZE && run->count < UINT16_MAX) {
		uint32_t now = rxw_get32(p + 20);

		if (memcmp(p, first, 12) != 0 || (now & RUN_MASK) != word ||
		    memcmp(p + 26, first + 26, 2) != 0 || rxw_get32(p + 12) != ++seq ||
		    rxw_get32(p + 16) != ++serial || (now & (uint32_t)RXW_JUMBO_PACKET << 16))
			break;
		size = left < segment ? left : segment;
		flags = now;
		or_flags |= now;
		run->count++;
		run->size += size;
		p += size;
		left -= size;
		if (now & RUN_BREAKERS)
			break;
	}
	if (run->count > 1) {
		run->last_size = (uint16_t)size;
		run->or_flags |= (uint8_t)(or_flags >> 16);
		run->last_flags = (uint8_t)(flags >> 16);
	}
}

int rxw_run_next(struct rxw_buf *buf, const struct rxw_path *path, uint32_t length,
		 uint32_t segment, uint32_t *at, struct rxw_jumbo *jumbo, struct rxw_rxrun *run,
		 struct rxw_pstats *stats)
{
	if (segment == 0 || segment > length)
		segment = length;
	for (;;) {
		uint8_t *p;
		uint32_t left, size;

		if (jumbo->more && jumbo_member(jumbo, buf, path, run, stats))
			return 1;
		if (*at >= length)
			return 0;
		p = buf->data + *at;
		left = length - *at;
		size = left < segment ? left : segment;
		if (!rxw_header_get(p, size, &run->head)) {
			rxw_drop(stats, RXW_DROP_SHORT, 1);
			*at += size;
			continue;
		}
		if (run->head.type != RXW_DATA) {
			fill_run(run, buf, path, p, size);
			if (run->head.type == RXW_ACK)
				decode_ack(run, p, size);
			*at += size;
			return 1;
		}
		if (run->head.flags & RXW_JUMBO_PACKET) {
			*at += size;
			rxw_jumbo_init(jumbo, p, size);
			continue;
		}
		fill_run(run, buf, path, p, size);
		if (size == segment && !(run->head.flags & RXW_LAST_PACKET))
			extend_run(run, p + size, left - size, segment);
		*at += run->size;
		return 1;
	}
}
