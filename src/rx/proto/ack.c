/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledging: what is owed, when it is written, window updates, PINGs (3.6, 3.7, 6.2). */
#include <string.h>

#include "base/hash.h"
#include "proto/internal.h"

#define QUICK_PACKETS		  128u /* acknowledged every second one: Linux senders count ACKs */
#define QUICK_SPARE		  4u
#define OUT_OF_SEQUENCE_PER_BATCH 4
#define OWED_LIMIT		  RXW_MS
/*
 * A request that is there as a whole is acknowledged by its reply, most of them within this time;
 * clients allow 100 ms for it and more. With what timers are late by it stays below that (C-033).
 */
#define WHOLE_REQUEST		  (90 * RXW_MS)
#define DOUBLED_ENOUGH		  2
#define MERGED_MIN		  8u
#define UPDATE_PACKETS		  8u
#define JUMBO_MAX_MTU		  5692u
/*
 * Packets that bring nothing are answered at once as often as others brought something, and a few
 * times besides; then one answer in a while says what there is to say to all of them.
 */
#define ANSWERS_FIRST		  16u
#define ANSWERS_MOST		  64u
#define ANSWERS_GAP		  (10 * RXW_MS)

/*
 * So many PINGs of a connection are answered in that time: far more than any peer sends. For each
 * answer a hostile peer may send many more of them, until they leave no room for anything else.
 */
#define PONGS	  16u
#define PONG_TIME (100 * RXW_MS)

/* How far behind a connection's latest serial those lie that nobody can guess. */
#define SECRET_NEAR (1u << 24)
#define SECRET_FAR  (0x80000000u - SECRET_NEAR)

static unsigned rank(unsigned reason)
{
	static const uint8_t ranks[] = {
		[RXW_ACK_IDLE] = 1,
		[RXW_ACK_DELAY] = 2,
		[RXW_ACK_REQUESTED] = 3,
		[RXW_ACK_DUPLICATE] = 4,
		[RXW_ACK_EXCEEDS_WINDOW] = 5,
		[RXW_ACK_NOSPACE] = 6,
		[RXW_ACK_OUT_OF_SEQUENCE] = 7,
	};

	return ranks[reason];
}

static bool merged_ok(const struct rxw_pcall *p)
{
	return atomic_load_explicit(&p->conn->peer->merged_acks_ok, memory_order_relaxed) != 0;
}

void rxw_ack_init(struct rxw_pcall *p)
{
	struct rxw_ackstate *a = &p->ack;

	memset(a, 0, sizeof(*a));
	a->sent_first = a->sent_next = 1;
	a->quick = merged_ok(p) ? 0 : QUICK_PACKETS;
	a->answers = ANSWERS_FIRST;
	a->probe_at = RXW_NEVER;
}

void rxw_ack_trailer(const struct rxw_pconn *c, uint32_t size, struct rxw_ack *ack)
{
	const struct rxw_params *params = c->params;

	ack->if_mtu = rxw_max32(params->mtu, size);
	ack->max_mtu = rxw_max32(ack->if_mtu, params->mtu_ceiling);
	ack->jumbo_max = 1;
	if (params->jumbo && rxw_pconn_takes_jumbo(c)) {
		ack->max_mtu = rxw_max32(ack->max_mtu, JUMBO_MAX_MTU);
		ack->jumbo_max = 4;
	}
}

/* The packet itself, without changes of what is owed. */
static bool write_ack(struct rxw_pcall *p, unsigned reason, unsigned flags, uint32_t serial,
		      uint32_t upto, uint32_t padded, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	uint8_t table[RXW_MAX_ACKS];
	struct rxw_ack ack = {.serial = serial, .reason = (uint8_t)reason, .acks = table};
	struct rxw_ctl *ctl;
	uint32_t edge, size;

	if (out->ctl_count >= out->ctl_room)
		return false;
	rxw_recvq_advance(p);
	ack.first = rxw_min32(q->hard, upto);
	ack.previous = q->highest;
	ack.count = (uint8_t)rxw_recvq_table(q, ack.first, upto, table, RXW_MAX_ACKS);
	edge = rxw_max32(q->edge, q->hard + q->window);
	ack.rwind = rxw_min32(edge - ack.first, RXW_MAX_ACKS);
	rxw_ack_trailer(p->conn, p->mtu.confirmed, &ack);
	/*
	 * Answers to an address that may be forged count against it, too, and questions as well. An
	 * answer that is not sent is drawn again by what it sends; a question is asked later.
	 */
	size = rxw_max32(RXW_ACK_FRAME + ack.count, padded - rxw_min32(padded, RXW_HEADER_SIZE));
	if (rxw_pconn_challenge_first(p->conn, size, out->now)) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return !(flags & RXW_REQUEST_ACK);
	}
	ctl = rxw_ctl_add(p->conn, out, RXW_ACK, flags | RXW_SLOW_START_OK, p->channel, p->number,
			  p->local_status, size);
	if (ctl == NULL)
		return !(flags & RXW_REQUEST_ACK);
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + rxw_ack_put(ctl->bytes + RXW_HEADER_SIZE, &ack));
	if (padded > ctl->length)
		ctl->padding = (uint16_t)(padded - ctl->length);
	if (edge > q->edge)
		q->edge = edge;
	RXW_PROBE(ack_sent, p, ack.first, ack.count, ack.reason, ack.rwind, ack.serial);
	p->acks_sent++;
	p->timer.last_sent = out->now;
	if (p->timer.first_sent == 0)
		p->timer.first_sent = out->now;
	return true;
}

static void nothing_owed(struct rxw_pcall *p)
{
	p->ack.reason = 0;
	p->ack.now = false;
	p->ack.unacked = 0;
	p->timer.ack = RXW_NEVER;
	p->timer.final_ack = false;
}

static bool useless(unsigned reason)
{
	return reason == RXW_ACK_DUPLICATE || reason == RXW_ACK_EXCEEDS_WINDOW ||
	       reason == RXW_ACK_NOSPACE;
}

/* Packets came that brought something. */
static void earn_answers(struct rxw_ackstate *a, uint32_t packets)
{
	a->answers = (uint8_t)rxw_min32(a->answers + packets, ANSWERS_MOST);
	a->in_vain = 0;
}

/* What is owed is for packets that brought nothing: until then there were enough answers; 0: no. */
static uint64_t answers_rest(struct rxw_ackstate *a, uint64_t now)
{
	uint64_t rest;

	if (!useless(a->reason) || a->unacked > 0)
		return 0;
	if (a->answers > 0) {
		a->answers--;
		return 0;
	}
	/* A repetition by a timer is answered at once all the same. */
	rest = a->useless_at + (ANSWERS_GAP << rxw_min32(a->in_vain / ANSWERS_FIRST, 4));
	return now < rest ? rest : 0;
}

bool rxw_ack_write(struct rxw_pcall *p, unsigned reason, uint32_t serial, uint32_t upto,
		   struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;

	if (!write_ack(p, reason, 0, serial, upto, 0, out)) {
		rxw_ack_owe(p, reason, serial, true);
		p->timer.ack = rxw_min64(p->timer.ack, out->now + OWED_LIMIT);
		return false;
	}
	a->sent_first = rxw_min32(p->rx.hard, upto);
	a->sent_next = upto;
	if (useless(reason)) {
		a->useless_at = out->now;
		a->in_vain += a->in_vain < UINT8_MAX;
	}
	if (upto == p->rx.next)
		nothing_owed(p);
	return true;
}

/*
 * A serial that only the owner of the address learns. Receivers compare serials by their difference:
 * this one is older than all that the connection used or uses next.
 */
static uint32_t secret_serial(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_pconn *c = p->conn;
	const uint64_t *key = c->params->secret;
	uint64_t word[5] = {rxw_addr_hash(&c->peer->addr, key, true), now,
			    (uint64_t)c->epoch << 32 | c->cid | p->channel,
			    (uint64_t)p->number << 32 | c->serial, p->ack.ping_next};
	uint32_t distance = SECRET_NEAR + (uint32_t)(rxw_siphash(word, sizeof(word), key) %
						     (SECRET_FAR - SECRET_NEAR));
	uint32_t serial = c->serial - distance;

	return serial != 0 ? serial : 1; /* 0 is none */
}

bool rxw_ack_ping(struct rxw_pcall *p, uint32_t size, struct rxw_out *out)
{
	struct rxw_ping *ping = &p->ack.ping[p->ack.ping_next];
	struct rxw_pconn *c = p->conn;

	if (!write_ack(p, RXW_ACK_PING, RXW_REQUEST_ACK, 0, p->rx.next, size, out))
		return false;
	ping->serial = c->serial;
	ping->size = size;
	ping->sent_at = out->now;
	ping->secret = !c->client && !rxw_peer_freshly_proven(c->peer, out->now);
	if (ping->secret) {
		c->serial--; /* the next packet has the number that this one does without */
		ping->serial = c->proof_serial = secret_serial(p, out->now);
		c->proof_asked = out->now;
		rxw_header_set_serial(out->ctl[out->ctl_count - 1].bytes, ping->serial);
	}
	p->ack.ping_next = (uint8_t)((p->ack.ping_next + 1) % RXW_PINGS);
	rxw_tally(out->stats, &out->stats->probes, 1);
	return true;
}

bool rxw_ack_may_pong(struct rxw_pconn *c, struct rxw_out *out)
{
	if (c->pongs == 0 || out->now >= c->pong_at + PONG_TIME) {
		c->pong_at = out->now;
		c->pongs = 0;
	}
	if (c->pongs >= PONGS) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return false;
	}
	c->pongs++;
	return true;
}

void rxw_ack_answer_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_out *out)
{
	/* One answer for each; a replay of the latest draws none. */
	if (serial != 0 && serial == p->ack.ping_answered)
		return;
	if (!rxw_ack_may_pong(p->conn, out))
		return;
	if (write_ack(p, RXW_ACK_PING_RESPONSE, 0, serial, p->rx.next, 0, out)) {
		p->ack.ping_answered = serial;
		p->ack.sent_first = p->rx.hard;
		p->ack.sent_next = p->rx.next;
	}
}

void rxw_ack_take_back(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;

	if (p->acks_sent == 0)
		return;
	rxw_recvq_clear(p);
	q->consumed = q->taken = q->hard = q->next = 1;
	write_ack(p, RXW_ACK_DELAY, 0, 0, q->next, 0, out);
}

void rxw_ack_owe(struct rxw_pcall *p, unsigned reason, uint32_t serial, bool now)
{
	struct rxw_ackstate *a = &p->ack;

	if (rank(reason) >= rank(a->reason)) {
		a->reason = (uint8_t)reason;
		a->serial = serial;
	}
	a->now |= now;
	a->in_batch = true;
}

/* After how many packets an ACK is written at once, whatever else the batch brings. */
static uint32_t most_answered(const struct rxw_pcall *p)
{
	uint32_t most = p->conn->params->ack_packets;

	if (most == 0)
		most = UINT32_MAX;
	return p->ack.quick > 0 ? rxw_min32(most, 2) : most;
}

void rxw_ack_in_order(struct rxw_pcall *p, uint32_t first, uint32_t count, uint32_t serial,
		      bool requested, bool filled, struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;

	a->newest_serial = serial + count - 1;
	earn_answers(a, count);
	if (filled) {
		a->unacked += count;
		rxw_ack_owe(p, RXW_ACK_IDLE, a->newest_serial, true);
	} else if (a->quick > 0 || p->conn->params->ack_packets > 0) {
		for (uint32_t i = 0; i < count; i++) {
			uint32_t most = most_answered(p);

			a->quick -= a->quick > 0;
			if (++a->unacked < most || (requested && i + 1 == count))
				continue;
			/* The last places of the record are for what may not wait. */
			if (out->ctl_count + QUICK_SPARE >= out->ctl_room)
				continue;
			if (rxw_ack_write(p, RXW_ACK_IDLE, serial + i, first + i + 1, out))
				a->unacked = 0;
		}
	} else {
		a->unacked += count;
	}
	if (requested)
		rxw_ack_owe(p, RXW_ACK_REQUESTED, a->newest_serial, true);
	else if (a->unacked > 0)
		rxw_ack_owe(p, RXW_ACK_IDLE, a->newest_serial, false);
}

void rxw_ack_out_of_sequence(struct rxw_pcall *p, uint32_t count, uint32_t serial,
			     struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;

	if (!merged_ok(p))
		a->quick = QUICK_PACKETS;
	earn_answers(a, count);
	for (uint32_t i = 0; i < count; i++) {
		if (a->out_of_sequence >= OUT_OF_SEQUENCE_PER_BATCH) {
			rxw_ack_owe(p, RXW_ACK_OUT_OF_SEQUENCE, serial + count - 1, true);
			return;
		}
		a->out_of_sequence++;
		a->in_batch = true;
		if (!rxw_ack_write(p, RXW_ACK_OUT_OF_SEQUENCE, serial + i, p->rx.next, out))
			return;
	}
}

/*
 * A sender whose flight grows by half and more from one merged ACK to the next does not count ACKs.
 */
static void watch_merging(struct rxw_pcall *p)
{
	struct rxw_ackstate *a = &p->ack;

	if (a->quick > 0 || merged_ok(p))
		return;
	if (a->merged >= MERGED_MIN && a->unacked >= a->merged + a->merged / 2 &&
	    ++a->doubled >= DOUBLED_ENOUGH)
		atomic_store_explicit(&p->conn->peer->merged_acks_ok, 1, memory_order_relaxed);
	a->merged = a->unacked;
}

/* How long what came may wait for more, or for something that acknowledges it by itself. */
static uint64_t may_wait(const struct rxw_pcall *p)
{
	if (p->ack.unacked >= 2)
		return OWED_LIMIT;
	return !p->client && rxw_recvq_ended(&p->rx) ? WHOLE_REQUEST : p->conn->params->ack_delay;
}

void rxw_ack_batch_end(struct rxw_pcall *p, bool dry, struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;
	uint64_t rest;
	uint32_t half;

	a->in_batch = false;
	a->out_of_sequence = 0;
	if (a->reason == 0 || p->error != 0)
		return;
	half = rxw_max32(p->rx.window / 2, 1);
	if (!a->now && a->unacked < half && (a->unacked < 2 || !dry)) {
		p->timer.ack = rxw_min64(p->timer.ack, out->now + may_wait(p));
		return;
	}
	rest = answers_rest(a, out->now);
	if (rest != 0) {
		p->timer.ack = rxw_min64(p->timer.ack, rest);
		return;
	}
	watch_merging(p);
	rxw_ack_write(p, a->reason, a->serial, p->rx.next, out);
}

void rxw_ack_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;
	bool late = a->reason == 0 || a->reason == RXW_ACK_DELAY || p->timer.final_ack ||
		    (a->reason == RXW_ACK_IDLE && a->unacked < 2);

	rxw_ack_write(p, late ? RXW_ACK_DELAY : a->reason, late ? 0 : a->serial, p->rx.next, out);
}

void rxw_ack_consumed(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	struct rxw_ackstate *a = &p->ack;
	uint32_t news;

	rxw_recvq_advance(p);
	if (!rxw_pcall_live(p) || rxw_recvq_ended(q))
		return; /* the end of the stream needs no window; what is owed keeps its timer */
	/*
	 * What the last ACK held back. Packets that came since then are owed an ACK of their own, at the
	 * end of the batch: to write it here would be one for each read, and none joined with others.
	 */
	news = rxw_min32(q->hard, a->sent_next);
	news = news > a->sent_first ? news - a->sent_first : 0;
	if (news >= rxw_max32(rxw_min32(UPDATE_PACKETS, q->window / 2), 1) ||
	    (q->edge <= q->next && q->hard + q->window > q->edge))
		rxw_ack_write(p, RXW_ACK_DELAY, 0, q->next, out);
	else if (news > 0)
		p->timer.ack = rxw_min64(p->timer.ack, out->now + p->conn->params->ack_delay);
}

void rxw_ack_forget(struct rxw_pcall *p)
{
	nothing_owed(p);
}
