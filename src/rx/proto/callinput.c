/* SPDX-License-Identifier: BSD-2-Clause */
/* DATA, BUSY and ABORT for a call (rx-protocol 2.8 to 2.11, 3.6). */
#include "proto/internal.h"

#define BUSY_FIRST	 (100 * RXW_MS)
#define BUSY_MOST	 (5 * RXW_SEC)
#define UNPROVEN_PACKETS RXW_FIRST_FLIGHT
#define PRESSED_PACKETS	 2u

/* What became of the packets of a run. */
struct tally {
	uint32_t fresh, in_order;
	bool refused;
};

/* First sequence number that is not accepted. */
static uint32_t receive_limit(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_pconn *c = p->conn;
	uint32_t window = c->params->window, first = RXW_FIRST_FLIGHT;

	if (!c->client && !c->peer->local && !rxw_peer_proven(c->peer, now)) {
		first = c->pressed ? PRESSED_PACKETS : UNPROVEN_PACKETS;
		window = rxw_min32(window, first);
	}
	return rxw_max32(rxw_max32(p->rx.edge, p->rx.hard + window), 1 + first);
}

/* LAST_PACKET says one thing and this run another. */
static bool last_conflict(const struct rxw_recvq *q, uint32_t first, uint32_t end, bool last)
{
	if (q->last == 0)
		return last && q->highest >= end;
	if (end - 1 > q->last)
		return true;
	return last ? end - 1 != q->last : first <= q->last && end - 1 == q->last;
}

/*
 * A LAST_PACKET contradicts the numbers of what came. No class protects flags, but a level above
 * clear protects numbers and data: there the flag was damaged on its way, or set by somebody who
 * would cut the stream short, and the data count. True: the run may be queued.
 */
static bool settle_conflict(struct rxw_pcall *p, const struct rxw_rxrun *run, bool last,
			    struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t end = run->head.seq + run->count;
	bool proven = run->verified && p->conn->level >= RXW_LEVEL_AUTH;

	/* As long as the reader was not told of an end that is none. */
	if (proven && q->last != 0 && end - 1 > q->last && q->taken <= q->last) {
		q->last = 0;
		if (!last || q->highest < end)
			return true;
	}
	rxw_drop(out->stats, RXW_DROP_WINDOW, run->count);
	/* What goes beyond an end that the reader has seen must not pass for a complete stream. */
	if (proven ? q->last != 0 && end - 1 > q->last
		   : run->verified || !rxw_pconn_unsure(p->conn))
		rxw_pcall_fail(p, RXW_PROTOCOL_ERROR, RXW_ORIGIN_LOCAL, true, out);
	return false;
}

static uint64_t payload_of(const struct rxw_rxrun *run, const struct rxw_rxpart *part)
{
	bool tail = part->skip + part->count == run->count;

	return (uint64_t)(part->count - 1) * rxw_run_data(run, false) + rxw_run_data(run, tail);
}

/* Queue what is new of [first, end); acknowledgements become due. */
static void queue(struct rxw_pcall *p, const struct rxw_rxrun *run, uint32_t end, struct tally *t,
		  struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	struct rxw_rxpart part = {.first = run->head.seq};
	bool requested = run->or_flags & RXW_REQUEST_ACK;

	while ((part.count = rxw_recvq_missing(q, &part.first, end)) > 0) {
		bool in_order = part.first == q->next, holes = q->later_head != RXW_NO_NODE;
		uint32_t serial;

		part.skip = part.first - run->head.seq;
		serial = run->head.serial + part.skip;
		if (!(in_order ? rxw_recvq_append(p, run, &part)
			       : rxw_recvq_later(p, run, &part))) {
			rxw_drop(out->stats, RXW_DROP_MEMORY, part.count);
			rxw_ack_owe(p, RXW_ACK_NOSPACE, serial + part.count - 1, true);
			t->refused = true;
			return;
		}
		t->fresh += part.count;
		p->bytes_received += payload_of(run, &part);
		if (in_order) {
			t->in_order += part.count + rxw_recvq_absorb(p);
			rxw_ack_in_order(p, part.first, part.count, serial, requested, holes, out);
		} else {
			rxw_ack_out_of_sequence(p, part.count, serial, out);
		}
		part.first += part.count;
	}
}

static void tell_reader(struct rxw_pcall *p, struct rxw_out *out)
{
	bool ended;
	uint32_t readable = rxw_pcall_readable(p, &ended);

	p->timer.last_moved = out->now;
	if (p->state == RXW_CS_PRECALL)
		rxw_pcall_try_attach(p, out);
	else if (ended || readable >= p->conn->params->wake_packets)
		rxw_pcall_touch(p, out, RXW_OUT_READ);
	else if (readable > 0)
		rxw_pcall_touch(p, out, RXW_OUT_QUIET);
}

/* Packets for a call that takes no more: said again what was said before. */
static void too_late(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out)
{
	p->duplicates += run->count;
	rxw_tally(out->stats, &out->stats->duplicates, run->count);
	if (p->error != 0)
		rxw_pcall_write_abort(p, out);
	else if (p->state == RXW_CS_RESET)
		rxw_drop(out->stats, RXW_DROP_STATE, run->count);
	else
		rxw_ack_owe(p, RXW_ACK_DUPLICATE, run->head.serial + run->count - 1, true);
}

static bool all_known(const struct rxw_pcall *p, uint32_t first, uint32_t end)
{
	return rxw_recvq_missing(&p->rx, &first, end) == 0;
}

/*
 * Of packets that are known none is verified, nor compared with what it repeats: only one that is
 * new says where the data end.
 */
static bool brings_end(const struct rxw_recvq *q, uint32_t end, bool last)
{
	uint32_t from = end - 1;

	return last && rxw_recvq_missing(q, &from, end) > 0;
}

enum rxw_input_result rxw_pcall_input_data(struct rxw_pcall *p, const struct rxw_rxrun *run,
					   struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t first = run->head.seq, end = first + run->count, limit, stop;
	bool last = run->last_flags & RXW_LAST_PACKET;
	bool sure = run->verified || !rxw_pconn_unsure(p->conn), ends;
	struct tally t = {0};

	if (first == 0 || end < first || end == UINT32_MAX) {
		rxw_drop(out->stats, first == 0 ? RXW_DROP_SEQ_ZERO : RXW_DROP_WINDOW, run->count);
		return RXW_INPUT_DONE;
	}
	if (!rxw_pcall_live(p) || q->stopped) {
		too_late(p, run, out);
		return RXW_INPUT_DONE;
	}
	/* What is sealed fits none, and what level it will be is not known before. */
	if (run->jumbo && !rxw_pconn_takes_jumbo(p->conn)) {
		rxw_drop(out->stats, RXW_DROP_JUMBO, run->count);
		return RXW_INPUT_DONE;
	}
	limit = receive_limit(p, out->now);
	stop = rxw_min32(end, limit);
	if (first < limit && !all_known(p, first, stop)) {
		if (rxw_pconn_must_verify(p->conn, run))
			return RXW_INPUT_VERIFY;
		if (last_conflict(q, first, end, last) && !settle_conflict(p, run, last, out))
			return RXW_INPUT_DONE;
	}
	p->packets_received += run->count;
	ends = stop == end && brings_end(q, end, last);
	if (first < limit)
		queue(p, run, stop, &t, out);
	if (ends && q->highest >= end - 1 && !t.refused)
		q->last = end - 1;
	if (stop < end) {
		uint32_t over = first < limit ? end - limit : run->count;

		rxw_drop(out->stats, RXW_DROP_WINDOW, over);
		rxw_ack_owe(p, RXW_ACK_EXCEEDS_WINDOW, run->head.serial + run->count - 1, true);
	}
	if (!t.refused && first < limit && t.fresh < stop - first) {
		uint32_t again = stop - first - t.fresh;

		p->duplicates += again;
		rxw_tally(out->stats, &out->stats->duplicates, again);
		rxw_drop(out->stats, RXW_DROP_DUPLICATE, again);
		rxw_ack_owe(p, RXW_ACK_DUPLICATE, run->head.serial + (stop - first) - 1, true);
	}
	/* What did not pass its check proves no life. */
	if (sure) {
		q->failed = 0;
		p->timer.last_heard = p->conn->last_heard = out->now;
		p->peer_status = run->head.user_status;
		if (p->client && t.fresh > 0) {
			p->tx.heard = true;
			p->tx.busy_since = 0;
			if (!rxw_pcall_send_complete(p) && !p->tx.stopped)
				/* the reply says that the request came */
				rxw_pcall_all_acked(p, out);
		}
	}
	rxw_saw_receiver(p);
	if (t.in_order > 0)
		tell_reader(p, out);
	else if (p->state == RXW_CS_PRECALL)
		rxw_pcall_try_attach(p, out); /* a CHALLENGE that got lost is drawn again */
	rxw_pcall_arm(p, out);
	return RXW_INPUT_DONE;
}

void rxw_pcall_input_busy(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t wait = BUSY_FIRST << (q->busy_count < 6 ? q->busy_count : 6);

	if (!rxw_pcall_live(p) || q->heard || (q->busy_since != 0 && out->now < q->busy_at))
		return;
	if (q->busy_since == 0)
		q->busy_since = out->now ? out->now : 1;
	q->busy_count++;
	q->busy_at = out->now + rxw_min64(wait, BUSY_MOST);
	p->timer.last_heard = p->conn->last_heard = out->now;
	/* Nothing of it was kept: the first packet goes again, alone, after the wait. */
	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next)
		if (rxw_sendq_seg(q, i)->state == RXW_TX_FLIGHT)
			rxw_sendq_set(q, rxw_sendq_seg(q, i), RXW_TX_LOST);
	p->cc.cwnd = 1;
	q->probe = false;
	q->loss_at = RXW_NEVER;
	rxw_pcall_arm(p, out);
}

void rxw_pcall_input_abort(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out)
{
	int32_t code;

	if (!rxw_abort_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE, &code)) {
		rxw_drop(out->stats, RXW_DROP_BAD_ABORT, 1);
		return;
	}
	p->conn->last_heard = out->now;
	rxw_pcall_fail(p, code, RXW_ORIGIN_PEER, false, out);
}
