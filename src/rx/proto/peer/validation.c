/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address validation: the state of an address, the bytes that it may receive, and cookies. A cookie is a PING whose
 * serial is a keyed hash of the address and the call. The answer repeats it (rx-protocol 3.3, 6.7, 12.3).
 */
#include <string.h>

#include "base/hash.h"
#include "proto/peer/validation.h"

static unsigned generation_of(uint64_t now)
{
	return now / RXW_VALIDATION_LIFE % 4;
}

uint16_t rxw_mark_of(uint64_t hash)
{
	return (uint16_t)(hash >> 48) % RXW_MARKS; /* from bits that do not choose the slot */
}

static void mark_validated(struct rxw_peer *p, uint64_t now)
{
	unsigned ring = generation_of(now);
	_Atomic(uint64_t) *word = &p->marks->bits[ring][p->mark / 64];
	uint64_t bit = 1ull << p->mark % 64;

	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		return;
	atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
	atomic_store_explicit(&p->marks->used[ring], true, memory_order_relaxed);
}

bool rxw_marks_have(const struct rxw_validated_marks *m, uint16_t mark, uint64_t now)
{
	unsigned ring = generation_of(now);
	uint64_t bits =
		atomic_load_explicit(&m->bits[ring][mark / 64], memory_order_relaxed) |
		atomic_load_explicit(&m->bits[(ring + 3) % 4][mark / 64], memory_order_relaxed);

	return bits >> mark % 64 & 1;
}

void rxw_marks_clear(struct rxw_validated_marks *m, uint64_t now)
{
	unsigned ring = (generation_of(now) + 2) % 4;

	if (!atomic_exchange_explicit(&m->used[ring], false, memory_order_relaxed))
		return;
	for (unsigned i = 0; i < RXW_MARKS / 64; i++)
		atomic_store_explicit(&m->bits[ring][i], 0, memory_order_relaxed);
}

bool rxw_peer_set_validated(struct rxw_peer *p, uint64_t now)
{
	bool before = rxw_peer_validated(p, now);

	atomic_store_explicit(&p->validated_at, now ? now : 1, memory_order_relaxed);
	mark_validated(p, now);
	/* When the validation has expired, counting begins again. */
	atomic_store_explicit(&p->unvalidated_in, 0, memory_order_relaxed);
	atomic_store_explicit(&p->unvalidated_out, 0, memory_order_relaxed);
	return !before;
}

unsigned rxw_peer_overhead(const struct rxw_peer *p)
{
	return p->addr.u.sa.sa_family == AF_INET6 ? 48 : 28;
}

uint64_t rxw_peer_allowance(const struct rxw_peer *p, uint64_t now)
{
	uint64_t in, out;

	if (rxw_peer_validated(p, now))
		return UINT64_MAX;
	in = 3 * atomic_load_explicit(&p->unvalidated_in, memory_order_relaxed);
	out = atomic_load_explicit(&p->unvalidated_out, memory_order_relaxed);
	return in > out ? in - out : 0;
}

bool rxw_peer_may_send(struct rxw_peer *p, uint64_t bytes, unsigned datagrams, uint64_t now)
{
	uint64_t whole, in, out;

	if (rxw_peer_validated(p, now))
		return true;
	whole = bytes + (uint64_t)datagrams * rxw_peer_overhead(p);
	in = 3 * atomic_load_explicit(&p->unvalidated_in, memory_order_relaxed);
	out = atomic_load_explicit(&p->unvalidated_out, memory_order_relaxed);
	do {
		if (out + whole > in)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&p->unvalidated_out, &out, out + whole,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

void rxw_peer_heard(struct rxw_peer *p, uint64_t bytes, unsigned datagrams, uint64_t now)
{
	if (!rxw_peer_validated(p, now))
		atomic_fetch_add_explicit(&p->unvalidated_in,
					  bytes + (uint64_t)datagrams * rxw_peer_overhead(p),
					  memory_order_relaxed);
}

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
