/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stateless address validation: a PING whose serial is a keyed hash of the address and the call.
 * The answer repeats it (rx-protocol 3.3, 6.7, 12.3).
 */
#include <string.h>

#include "base/hash.h"
#include "base/rtt.h"
#include "proto/peer/cookie.h"
#include "proto/peer/peer.h"

/* A host is sent one PING per PERIOD, and an answer is valid for another PERIOD. */
#define PERIOD	(4 * RXW_SEC)
#define BUCKETS 65536u /* of hosts */
#define RATE	4000u  /* PINGs a second, to all hosts */
/*
 * Clients ignore a packet with a lower serial as older. The serials of a new connection begin with
 * 1: in serial arithmetic its first 2^24 packets are newer than all of these.
 */
#define LEAST (0x80000000u + (1u << 24))

struct rxw_cookies {
	uint64_t secret[2]; /* never leaves */
	struct rxw_rate rate;
	uint64_t until;		/* ns; no cookie is valid after that */
	uint8_t asked[BUCKETS]; /* period of the latest PING, 1..255; 0 = none yet */
};

struct rxw_cookies *rxw_cookies_create(const uint64_t secret[2], uint64_t now)
{
	struct rxw_cookies *q = rxw_mem_get(NULL, sizeof(*q));

	if (q == NULL)
		return NULL;
	memcpy(q->secret, secret, sizeof(q->secret));
	rxw_rate_init(&q->rate, RATE, now);
	return q;
}

void rxw_cookies_destroy(struct rxw_cookies *q)
{
	if (q == NULL)
		return;
	explicit_bzero(q->secret, sizeof(q->secret));
	rxw_mem_give(NULL, q, sizeof(*q));
}

static unsigned bucket_of(const struct rxw_cookies *q, const struct rxw_addr *peer)
{
	return (unsigned)rxw_addr_hash(peer, q->secret, false) % BUCKETS;
}

/* Periods of different hosts begin at different times, to spread the PINGs. */
static uint64_t period_of(unsigned bucket, uint64_t now)
{
	return (now + bucket * (PERIOD / BUCKETS)) / PERIOD;
}

static uint32_t serial_of(const struct rxw_cookies *q, const struct rxw_addr *peer,
			  const struct rxw_header *h, uint64_t period)
{
	uint64_t word[4] = {rxw_addr_hash(peer, q->secret, true), period,
			    (uint64_t)h->epoch << 32 | h->cid, h->call};

	return LEAST + (uint32_t)(rxw_siphash(word, sizeof(word), q->secret) % (0u - LEAST));
}

uint32_t rxw_cookie_issue(struct rxw_cookies *q, const struct rxw_addr *peer,
			  const struct rxw_header *head, uint64_t now)
{
	unsigned bucket = bucket_of(q, peer);
	uint64_t period = period_of(bucket, now);
	uint8_t mark = (uint8_t)(1 + period % 255);

	if (q->asked[bucket] == mark || !rxw_rate_take(&q->rate, now))
		return 0;
	q->asked[bucket] = mark;
	q->until = now + 2 * PERIOD;
	return serial_of(q, peer, head, period);
}

bool rxw_cookie_check(const struct rxw_cookies *q, const struct rxw_addr *peer,
		      const struct rxw_header *head, uint32_t serial, uint64_t now)
{
	uint64_t period;

	if (serial < LEAST || now >= q->until)
		return false;
	period = period_of(bucket_of(q, peer), now);
	return serial == serial_of(q, peer, head, period) ||
	       (period > 0 && serial == serial_of(q, peer, head, period - 1));
}

size_t rxw_cookie_put_ping(uint8_t *out, const struct rxw_header *request, uint32_t serial,
			   unsigned mtu, unsigned window)
{
	struct rxw_header h = {
		.epoch = request->epoch,
		.cid = request->cid,
		.call = request->call,
		.serial = serial,
		.type = RXW_ACK,
		.flags = RXW_REQUEST_ACK | RXW_SLOW_START_OK,
		.security = request->security,
		.service = request->service,
	};
	/* It acknowledges nothing: the client sends the call again. */
	struct rxw_ack ack = {
		.first = 1,
		.reason = RXW_ACK_PING,
		.acks = out,
		.max_mtu = mtu,
		.if_mtu = mtu,
		.rwind = window,
		.jumbo_max = 1,
	};

	rxw_header_put(out, &h);
	return RXW_HEADER_SIZE + rxw_ack_put(out + RXW_HEADER_SIZE, &ack);
}
