/* SPDX-License-Identifier: BSD-2-Clause */
/* Received DATA, and acknowledgements: what is owed, when it is written, window updates, PINGs (3.4 to 3.7, 6.2). */
#include <string.h>

#include "base/hash.h"

#include "proto/state.h"

/* So many packets are acknowledged two at a time, for senders that count ACKs, as Linux does. */
#define QUICK_PACKETS		  128u
#define QUICK_SPARE		  4u /* entries of the output record left for urgent packets */
#define OUT_OF_SEQUENCE_PER_BATCH 4
#define OWED_LIMIT		  RXW_MS
/*
 * A complete request is usually acknowledged by its reply. Its ACK waits for that up to this time:
 * clients wait for at least 100 ms, and timers may be late (C-033).
 */
#define WHOLE_REQUEST  (90 * RXW_MS)
#define DOUBLED_ENOUGH 2
#define MERGED_MIN     8u
#define UPDATE_PACKETS 8u
/*
 * With a window above WIDE_WINDOW packets, an ACK waits for WIDE_PACKETS of them, or OWED_LIMIT. Gaps
 * are not reported at once, either, if WIDE_FLIGHT packets or more wait behind them. If DENSE packets or
 * more arrive in a round trip, an ACK waits longer for WIDE_PACKETS: up to PATIENCE_PART of a round trip.
 */
#define WIDE_WINDOW  2048u
#define WIDE_PACKETS 64u
#define WIDE_FLIGHT  512u
#define DENSE	      1536u
#define PATIENCE_PART 16u
#define JUMBO_MAX_MTU  5692u
/*
 * Useless packets (duplicates, packets outside the window) are answered at once as often as useful
 * ones arrived, and ANSWERS_FIRST times more. After that, one answer per interval serves all of
 * them; the interval begins with ANSWERS_GAP and doubles.
 */
#define ANSWERS_FIRST 16u
#define ANSWERS_MOST  64u
#define ANSWERS_GAP   (10 * RXW_MS)

/*
 * At most PONGS PINGs of a connection are answered per PONG_TIME, which is far more than any honest
 * peer sends. Without a limit, a hostile peer could fill the output record with answers.
 */
#define PONGS	  16u
#define PONG_TIME (100 * RXW_MS)

#define WIDE_ASK_APART RXW_SEC /* between two PINGs to validate an address, for a wide window */

/* Secret serials are at least SECRET_NEAR and less than SECRET_FAR below the latest serial. */
#define SECRET_NEAR (1u << 24)
#define SECRET_FAR  (0x80000000u - SECRET_NEAR)

static unsigned rank_reason(unsigned reason)
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
	a->due = RXW_NEVER;
}

void rxw_ack_trailer(const struct rxw_pconn *c, uint32_t size, struct rxw_ack *ack)
{
	const struct rxw_params *params = c->params;

	ack->if_mtu = rxw_max32(params->mtu, size);
	ack->max_mtu = ack->if_mtu;
	if (!params->mtu_auto || c->rx.wide_heard)
		ack->max_mtu = rxw_max32(ack->max_mtu, params->mtu_ceiling);
	ack->jumbo_max = 1;
	if (params->jumbo && rxw_auth_takes_jumbo(&c->auth)) {
		ack->max_mtu = rxw_max32(ack->max_mtu, JUMBO_MAX_MTU);
		ack->jumbo_max = 4;
	}
}

unsigned rxw_ack_flags(const struct rxw_pconn *c)
{
	return RXW_SLOW_START_OK | (c->params->window > RXW_MAX_ACKS ? RXW_EXTENDED_ACK : 0);
}

/* Write the packet; does not change what is owed. False: it is to be tried again. */
static bool write_ack(struct rxw_pcall *p, unsigned reason, unsigned flags, uint32_t serial,
		      uint32_t upto, uint32_t padded, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	bool wide = p->conn->params->window > RXW_MAX_ACKS;
	uint8_t table[(1 + RXW_ACK_TABLES) * RXW_ACK_TABLE];
	struct rxw_ack ack = {.serial = serial,
			      .reason = (uint8_t)reason,
			      .acks = table,
			      .base = 1,
			      .extended = wide,
			      .ecn = rxw_ack_reports_marks(p->conn),
			      .marks = p->ack.marks};
	struct rxw_ctl *ctl;
	uint32_t edge, size;

	if (out->ctl_count >= out->ctl_room)
		return false;
	rxw_recvq_advance(p, out->now);
	ack.first = rxw_min32(q->hard, upto);
	ack.previous = q->highest;
	if (!wide || !rxw_recvq_wide(q, &ack, table, 1 + RXW_ACK_TABLES))
		ack.count = rxw_recvq_table(q, ack.first, upto, table, RXW_MAX_ACKS);
	edge = rxw_recvq_edge(q);
	ack.rwind = rxw_min32(edge - ack.first, wide ? RXW_WINDOW_MAX : RXW_MAX_ACKS);
	rxw_ack_trailer(p->conn, p->tx.mtu.confirmed, &ack);
	/*
	 * The sending limit of an address that is not validated covers ACKs and PINGs. An ACK that
	 * is not sent is triggered again by the peer's next packet; a PING is tried again by its
	 * timer.
	 */
	size = rxw_max32(rxw_ack_size(&ack), padded - rxw_min32(padded, RXW_HEADER_SIZE));
	if (rxw_auth_needs_allowance(p->conn, size, out->now)) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return !(flags & RXW_REQUEST_ACK);
	}
	ctl = rxw_ctl_add(p->conn, out, RXW_ACK, flags | rxw_ack_flags(p->conn), p->channel,
			  p->number, p->local_status, size);
	if (ctl == NULL)
		return !(flags & RXW_REQUEST_ACK);
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + rxw_ack_put(ctl->bytes + RXW_HEADER_SIZE, &ack));
	if (padded > ctl->length)
		ctl->padding = (uint16_t)(padded - ctl->length);
	rxw_recvq_advertised(p, edge, out->now);
	p->conn->rx.window_told =
		(uint8_t)rxw_max32(p->conn->rx.window_told, rxw_min32(ack.rwind, RXW_MAX_ACKS));
	RXW_PROBE(ack_sent, p, ack.first, ack.count, ack.reason, ack.rwind, ack.serial);
	p->count.acks_sent++;
	p->time.last_sent = out->now;
	if (p->time.first_sent == 0)
		p->time.first_sent = out->now;
	return true;
}

void rxw_ack_clear(struct rxw_pcall *p)
{
	p->ack.reason = 0;
	p->ack.now = false;
	p->ack.unacked = 0;
	p->ack.due = RXW_NEVER;
	p->ack.final = false;
}

static bool useless(unsigned reason)
{
	return reason == RXW_ACK_DUPLICATE || reason == RXW_ACK_EXCEEDS_WINDOW ||
	       reason == RXW_ACK_NOSPACE;
}

/* Useful packets arrived. */
static void earn_answers(struct rxw_ackstate *a, uint32_t packets)
{
	a->answers = (uint8_t)rxw_min32(a->answers + packets, ANSWERS_MOST);
	a->in_vain = 0;
}

/*
 * If the owed ACK answers useless packets, and enough of them were answered: when it may be sent;
 * else 0.
 */
static uint64_t answers_rest(struct rxw_ackstate *a, uint64_t now)
{
	uint64_t rest;

	if (!useless(a->reason) || a->unacked > 0)
		return 0;
	if (a->answers > 0) {
		a->answers--;
		return 0;
	}
	/* Timer-driven retransmissions come less often than this, and are answered at once. */
	rest = a->useless_at + (ANSWERS_GAP << rxw_min32(a->in_vain / ANSWERS_FIRST, 4));
	return now < rest ? rest : 0;
}

/* An ACK of what arrived in order below `upto`. False: no space, it stays owed. */
static bool write_owed(struct rxw_pcall *p, unsigned reason, uint32_t serial, uint32_t upto,
		       struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;

	if (!write_ack(p, reason, 0, serial, upto, 0, out)) {
		rxw_ack_owe_by(p, reason, serial, out->now + OWED_LIMIT);
		return false;
	}
	a->sent_first = rxw_min32(p->rx.hard, upto);
	a->sent_next = upto;
	if (useless(reason)) {
		a->useless_at = out->now;
		a->in_vain += a->in_vain < UINT8_MAX;
	}
	if (upto == p->rx.next)
		rxw_ack_clear(p);
	return true;
}

/*
 * A serial that only the owner of the address `to` learns: PINGs to two addresses at the same time
 * have different ones. In serial arithmetic it is older than all that the connection has used or
 * will use next.
 */
static uint32_t secret_serial(const struct rxw_pcall *p, const struct rxw_addr *to, uint64_t now)
{
	const struct rxw_pconn *c = p->conn;
	const uint64_t *key = c->params->secret;
	uint64_t word[5] = {rxw_addr_hash(to, key, true), now,
			    (uint64_t)c->epoch << 32 | c->cid | p->channel,
			    (uint64_t)p->number << 32 | c->serial, p->ack.ping_next};
	uint32_t distance = SECRET_NEAR + (uint32_t)(rxw_siphash(word, sizeof(word), key) %
						     (SECRET_FAR - SECRET_NEAR));
	uint32_t serial = c->serial - distance;

	return serial != 0 ? serial : 1; /* 0 means none */
}

bool rxw_ack_ping(struct rxw_pcall *p, uint32_t size, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;
	struct rxw_ping *ping = &p->ack.ping[p->ack.ping_next];

	if (!write_ack(p, RXW_ACK_PING, RXW_REQUEST_ACK, 0, p->rx.next, size, out))
		return false;
	c->rx.wide_asked = rxw_max32((uint32_t)(out->now / RXW_MS), 1);
	ping->serial = c->serial;
	ping->size = size;
	ping->sent_at = out->now;
	ping->secret = !c->client && rxw_peer_proof_due(c->peer, out->now);
	if (ping->secret) {
		c->serial--; /* not used by this packet */
		ping->serial = c->rx.proof_serial = secret_serial(p, &c->peer->addr, out->now);
		c->rx.proof_asked = out->now;
		rxw_header_set_serial(out->ctl[out->ctl_count - 1].bytes, ping->serial);
	}
	p->ack.ping_next = (uint8_t)((p->ack.ping_next + 1) % RXW_PINGS);
	rxw_tally(out->stats, &out->stats->probes, 1);
	return true;
}

uint32_t rxw_ack_put_probe(const struct rxw_pcall *p, struct rxw_ctl *ctl, uint64_t now)
{
	const struct rxw_pconn *c = p->conn;
	const struct rxw_recvq *q = &p->rx;
	struct rxw_header h = {
		.epoch = c->epoch,
		.cid = c->cid | p->channel,
		.call = p->number,
		.serial = secret_serial(p, &ctl->path.peer, now),
		.type = RXW_ACK,
		.flags = (uint8_t)(RXW_REQUEST_ACK | rxw_ack_flags(c)),
		.security = c->security_index,
		.service = c->service,
	};
	struct rxw_ack ack = {
		.first = q->hard,
		.previous = q->highest,
		.reason = RXW_ACK_PING,
		.base = 1,
		.extended = h.flags & RXW_EXTENDED_ACK,
		.rwind = rxw_min32(rxw_recvq_edge(q) - q->hard, RXW_MAX_ACKS),
	};

	rxw_ack_trailer(c, c->params->mtu, &ack);
	rxw_header_put(ctl->bytes, &h);
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + rxw_ack_put(ctl->bytes + RXW_HEADER_SIZE, &ack));
	return h.serial;
}

void rxw_ack_heard_wide(struct rxw_pcall *p, bool offered)
{
	const struct rxw_pconn *c = p->conn;

	p->conn->rx.wide_heard = offered && c->params->window > RXW_MAX_ACKS && !c->peer->local;
	p->conn->rx.marks_heard &= p->conn->rx.wide_heard;
}

bool rxw_ack_reports_marks(const struct rxw_pconn *c)
{
	return c->rx.wide_heard && c->params->ecn;
}

bool rxw_ack_heard_marks(struct rxw_pcall *p)
{
	struct rxw_pconn *c = p->conn;

	c->rx.marks_heard = rxw_ack_reports_marks(c);
	return c->rx.marks_heard;
}

void rxw_ack_tell_wide(struct rxw_pcall *p, uint64_t rto, struct rxw_out *out)
{
	const struct rxw_recvshare *s = &p->conn->rx;

	if (s->wide_heard && !s->wide_told &&
	    (s->wide_asked == 0 ||
	     (uint32_t)(out->now / RXW_MS) - s->wide_asked > rto / RXW_MS + 1))
		rxw_ack_ping(p, 0, out);
}

bool rxw_ack_take_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_ping *ping)
{
	for (unsigned i = 0; serial != 0 && i < RXW_PINGS; i++)
		if (p->ack.ping[i].serial == serial) {
			*ping = p->ack.ping[i];
			p->ack.ping[i].serial = 0;
			p->conn->rx.wide_told = true;
			return true;
		}
	return false;
}

bool rxw_ack_may_pong(struct rxw_pconn *c, struct rxw_out *out)
{
	if (c->rx.pongs == 0 || out->now >= c->rx.pong_at + PONG_TIME) {
		c->rx.pong_at = out->now;
		c->rx.pongs = 0;
	}
	if (c->rx.pongs >= PONGS) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return false;
	}
	c->rx.pongs++;
	return true;
}

void rxw_ack_answer_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_out *out)
{
	/* A replay of the latest PING is not answered. */
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

void rxw_ack_withdraw(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;

	if (p->count.acks_sent == 0)
		return;
	rxw_recvq_fini(p);
	q->consumed = q->taken = q->hard = q->next = 1;
	write_ack(p, RXW_ACK_DELAY, 0, 0, q->next, 0, out);
}

void rxw_ack_owe(struct rxw_pcall *p, unsigned reason, uint32_t serial, bool now)
{
	struct rxw_ackstate *a = &p->ack;

	/* The first duplicate of a batch tells the sender most of what came before it. */
	if (rank_reason(reason) >=
	    rank_reason(a->reason) + (reason == RXW_ACK_DUPLICATE && a->in_batch)) {
		a->reason = (uint8_t)reason;
		a->serial = serial;
	}
	a->now |= now;
	a->in_batch = true;
}

void rxw_ack_owe_by(struct rxw_pcall *p, unsigned reason, uint32_t serial, uint64_t by)
{
	rxw_ack_owe(p, reason, serial, true);
	p->ack.due = rxw_min64(p->ack.due, by);
}

void rxw_ack_set_due(struct rxw_pcall *p, uint64_t at, bool final)
{
	p->ack.due = at;
	p->ack.final = final;
}

/* Nothing of the stream has been acknowledged. */
static bool is_new(const struct rxw_pcall *p)
{
	return p->ack.sent_next == 1;
}

/* Packets that arrived in order. */
struct arrival {
	uint32_t first, count, serial; /* serial: of the first */
	bool requested;		       /* with REQUEST_ACK */
	bool filled;		       /* there were gaps before */
	bool last;		       /* the stream ends with them */
};

static void owe_in_order(struct rxw_pcall *p, const struct arrival *in, struct rxw_out *out)
{
	uint32_t newest = in->serial + in->count - 1;
	struct rxw_ackstate *a = &p->ack;

	a->newest_serial = newest;
	earn_answers(a, in->count);
	if (in->filled) {
		a->unacked += in->count;
		rxw_ack_owe(p, RXW_ACK_IDLE, newest, true);
	} else if (a->quick > 0 && !(in->last && is_new(p))) {
		for (uint32_t i = 0; i < in->count; i++) {
			/* The number of packets after which an ACK is written at once. */
			uint32_t most = a->quick > 0 ? 2 : UINT32_MAX;

			a->quick -= a->quick > 0;
			if (++a->unacked < most || (in->requested && i + 1 == in->count))
				continue;
			/* The last entries of the output record are for urgent packets. */
			if (out->ctl_count + QUICK_SPARE >= out->ctl_room)
				continue;
			if (write_owed(p, RXW_ACK_IDLE, in->serial + i, in->first + i + 1, out))
				a->unacked = 0;
		}
	} else {
		a->unacked += in->count;
	}
	if (in->requested)
		rxw_ack_owe(p, RXW_ACK_REQUESTED, newest, true);
	else if (a->unacked > 0)
		rxw_ack_owe(p, RXW_ACK_IDLE, newest, false);
}

/* Many packets are in flight, and WIDE_PACKETS of them arrive in a small part of a round trip. */
static bool is_dense(const struct rxw_recvq *q)
{
	return q->window > WIDE_WINDOW && q->tuning.flight >= DENSE && !rxw_recvq_ended(q);
}

/* The sender has a wide window, and the large ACKs of one must be few. */
static bool wide_flight(const struct rxw_recvq *q)
{
	return is_dense(q) || (q->highest - q->hard >= WIDE_FLIGHT && q->highest > q->hard);
}

/* How long an ACK may wait for WIDE_PACKETS. */
static uint64_t wide_ack_wait(const struct rxw_recvq *q)
{
	return is_dense(q) ? rxw_max64(OWED_LIMIT, q->tuning.least / PATIENCE_PART) : OWED_LIMIT;
}

static void owe_out_of_sequence(struct rxw_pcall *p, uint32_t count, uint32_t serial,
				struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;

	if (wide_flight(&p->rx)) {
		earn_answers(a, count);
		a->unacked += count;
		rxw_ack_owe(p, RXW_ACK_OUT_OF_SEQUENCE, serial + count - 1, false);
		return;
	}
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
		if (!write_owed(p, RXW_ACK_OUT_OF_SEQUENCE, serial + i, p->rx.next, out))
			return;
	}
}

static uint64_t payload_of(const struct rxw_rxrun *run, const struct rxw_rxpart *part)
{
	bool tail = part->skip + part->count == run->count;

	return (uint64_t)(part->count - 1) * rxw_run_data(run, false) + rxw_run_data(run, tail);
}

static void count_marks(struct rxw_pcall *p, unsigned bits, uint32_t packets,
			const struct rxw_out *out)
{
	if (bits == RXW_ECN_NOT)
		return;
	rxw_ecn_count(&p->ack.marks, bits, packets);
	if (bits != RXW_ECN_CE)
		return;
	p->count.marks_received += packets;
	rxw_tally(out->stats, &out->stats->marks_received, packets);
}

void rxw_recv_queue(struct rxw_pcall *p, const struct rxw_rxrun *run, uint32_t end,
		    struct rxw_queued *queued, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	struct rxw_rxpart part = {.first = run->head.seq};

	while ((part.count = rxw_recvq_missing(q, &part.first, end)) > 0) {
		bool in_order = part.first == q->next, gaps = rxw_recvq_has_later(q);
		uint32_t serial;

		part.skip = part.first - run->head.seq;
		serial = run->head.serial + part.skip;
		if (!(in_order ? rxw_recvq_append(p, run, &part)
			       : rxw_recvq_later(p, run, &part))) {
			rxw_drop(out->stats, RXW_DROP_MEMORY, part.count);
			rxw_ack_owe(p, RXW_ACK_NOSPACE, serial + part.count - 1, true);
			queued->refused = true;
			return;
		}
		queued->fresh += part.count;
		q->fresh += part.count;
		count_marks(p, run->ecn, part.count, out);
		p->count.bytes_received += payload_of(run, &part);
		if (in_order) {
			const struct arrival arrival = {
				.first = part.first,
				.count = part.count,
				.serial = serial,
				.requested = run->or_flags & RXW_REQUEST_ACK,
				.filled = gaps,
				.last = run->last_flags & RXW_LAST_PACKET &&
					part.skip + part.count == run->count,
			};

			queued->in_order += part.count + rxw_recvq_absorb(p);
			owe_in_order(p, &arrival, out);
		} else {
			owe_out_of_sequence(p, part.count, serial, out);
		}
		part.first += part.count;
	}
	if (!rxw_recvq_measure(p, out->now) &&
	    (p->conn->rx.proof_serial == 0 || out->now >= p->conn->rx.proof_asked + WIDE_ASK_APART))
		rxw_ack_ping(p, 0, out);
}

/*
 * A sender whose flight grows by half or more from one merged ACK to the next does not count ACKs.
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

/*
 * A whole reply: the next call acknowledges it, or an ACK at the end of this one (2.7). A whole
 * request: the reply does, if it comes soon.
 */
static bool came_at_once(const struct rxw_pcall *p)
{
	return is_new(p) && rxw_recvq_ended(&p->rx);
}

/* How long the ACK may wait for more packets, or for a reply that acknowledges them. */
static uint64_t allowed_ack_wait(const struct rxw_pcall *p)
{
	if (p->ack.unacked >= 2 && !came_at_once(p))
		return OWED_LIMIT;
	return !p->client && rxw_recvq_ended(&p->rx) ? WHOLE_REQUEST : p->conn->params->ack_delay;
}

void rxw_ack_batch_end(struct rxw_pcall *p, bool drained, struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;
	uint64_t rest;
	uint32_t half;

	a->in_batch = false;
	a->out_of_sequence = 0;
	if (a->reason == 0 || p->error != 0)
		return;
	half = rxw_max32(p->rx.window / 2, 1);
	if (p->rx.window > WIDE_WINDOW && a->unacked < WIDE_PACKETS &&
	    (!a->now || wide_flight(&p->rx))) {
		p->ack.due = rxw_min64(p->ack.due, out->now + wide_ack_wait(&p->rx));
		return;
	}
	if (!a->now && a->unacked < half &&
	    (a->unacked < 2 || !drained || came_at_once(p))) {
		p->ack.due = rxw_min64(p->ack.due, out->now + allowed_ack_wait(p));
		return;
	}
	rest = answers_rest(a, out->now);
	if (rest != 0) {
		p->ack.due = rxw_min64(p->ack.due, rest);
		return;
	}
	watch_merging(p);
	write_owed(p, a->reason, a->serial, p->rx.next, out);
}

/*
 * An ACK to an address that is not validated, or a window update, after which the limit of 6.7 would
 * leave no room for a PING, is a PING, which acknowledges as well. Otherwise a reply beyond the limit
 * would wait until the client's keepalive, and a client that is silent would never be asked. False: no
 * need, or it was not sent.
 */
static bool acknowledge_by_ping(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;
	struct rxw_pconn *c = p->conn;
	uint64_t each = RXW_HEADER_SIZE + RXW_ACK_FRAME + rxw_peer_overhead(c->peer);

	if (c->client || p->rx.stopped || rxw_peer_allowance(c->peer, out->now) > 2 * each ||
	    !rxw_ack_ping(p, 0, out))
		return false;
	a->sent_first = p->rx.hard;
	a->sent_next = p->rx.next;
	rxw_ack_clear(p);
	return true;
}

void rxw_ack_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_ackstate *a = &p->ack;
	bool late = a->reason == 0 || a->reason == RXW_ACK_DELAY || p->ack.final ||
		    (a->reason == RXW_ACK_IDLE && (a->unacked < 2 || came_at_once(p)));

	if (late && acknowledge_by_ping(p, out))
		return;
	write_owed(p, late ? RXW_ACK_DELAY : a->reason, late ? 0 : a->serial, p->rx.next, out);
}

void rxw_ack_consumed(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	struct rxw_ackstate *a = &p->ack;
	uint32_t freed, update;

	rxw_recvq_advance(p, out->now);
	if (!rxw_pcall_live(p) || rxw_recvq_ended(q))
		return; /* the end of the stream needs no window; an owed ACK keeps its timer */
	/*
	 * Only packets that the last ACK acknowledged softly count. Newer ones are acknowledged at
	 * the end of the batch: doing it here would write one ACK per read.
	 */
	freed = rxw_min32(q->hard, a->sent_next);
	freed = freed > a->sent_first ? freed - a->sent_first : 0;
	update = q->window > WIDE_WINDOW ? WIDE_PACKETS : UPDATE_PACKETS;
	if (freed >= rxw_max32(rxw_min32(update, q->window / 2), 1) ||
	    (q->edge <= q->next && rxw_recvq_edge(q) > q->edge))
		write_owed(p, RXW_ACK_DELAY, 0, q->next, out);
	else if (freed > 0)
		p->ack.due = rxw_min64(p->ack.due, out->now + p->conn->params->ack_delay);
}
