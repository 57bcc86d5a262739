/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets for a call: DATA, ACK, ACKALL, BUSY, ABORT (rx-protocol 2.8 to 2.11, 3.6). */
#include "proto/conn/call.h"

/* The run contradicts what is known of the end of the stream, or its LAST_PACKET what arrived. */
static bool last_conflict(const struct rxw_recvq *q, uint32_t first, uint32_t end, bool last)
{
	if (q->last == 0)
		return last && q->highest >= end;
	if (end - 1 > q->last)
		return true;
	return last ? end - 1 != q->last : first <= q->last && end - 1 == q->last;
}

/*
 * No class protects flags, but a level above clear protects numbers and data. There the flag was
 * damaged on its way, or set to cut the stream short, and the data count. True: the run may be
 * queued.
 */
static bool settle_conflict(struct rxw_pcall *p, const struct rxw_rxrun *run, bool last,
			    struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t end = run->head.seq + run->count;
	bool proven = run->verified && p->conn->auth.level >= RXW_LEVEL_AUTH;

	/* Only while the reader has not seen the false end. */
	if (proven && q->last != 0 && end - 1 > q->last && q->taken <= q->last) {
		rxw_recvq_set_last(q, 0);
		if (!last || q->highest < end)
			return true;
	}
	rxw_drop(out->stats, RXW_DROP_WINDOW, run->count);
	/* Data beyond an end that the reader has seen: the stream must not pass for complete. */
	if (proven ? q->last != 0 && end - 1 > q->last
		   : run->verified || !rxw_auth_unsure(&p->conn->auth))
		rxw_pcall_fail(p, RXW_PROTOCOL_ERROR, RXW_ORIGIN_LOCAL, true, out);
	return false;
}

static void tell_reader(struct rxw_pcall *p, struct rxw_out *out)
{
	bool ended;
	uint32_t readable = rxw_pcall_readable(p, &ended);

	p->time.last_moved = out->now;
	if (p->state == RXW_CS_PRECALL)
		rxw_pcall_try_attach(p, out);
	else if (ended || readable >= p->conn->params->wake_packets)
		rxw_pcall_post_event(p, out, RXW_OUT_READ);
	else if (readable > 0)
		rxw_pcall_post_event(p, out, RXW_OUT_READ_LATER);
}

/* Packets for a call that accepts no more: repeat the answer. */
static void too_late(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out)
{
	p->count.duplicates += run->count;
	rxw_tally(out->stats, &out->stats->duplicates, run->count);
	if (p->error != 0)
		rxw_pcall_write_abort(p, out);
	else if (p->state == RXW_CS_RESET)
		rxw_drop(out->stats, RXW_DROP_STATE, run->count);
	else
		rxw_ack_owe(p, RXW_ACK_DUPLICATE, run->head.serial + run->count - 1, true);
}

static bool all_known(const struct rxw_recvq *q, uint32_t first, uint32_t end)
{
	return rxw_recvq_missing(q, &first, end) == 0;
}

/* Known packets are neither verified nor compared: only a new one may say where the stream ends. */
static bool brings_end(const struct rxw_recvq *q, uint32_t end, bool last)
{
	return last && !all_known(q, end - 1, end);
}

/* Checks before anything of the run is used. False: it was dropped. */
static bool is_acceptable(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out)
{
	uint32_t first = run->head.seq, end = first + run->count;

	if (first == 0 || end < first || end == UINT32_MAX) {
		rxw_drop(out->stats, first == 0 ? RXW_DROP_SEQ_ZERO : RXW_DROP_WINDOW, run->count);
		return false;
	}
	if (!rxw_pcall_live(p) || p->rx.stopped) {
		too_late(p, run, out);
		return false;
	}
	/* Sealed packets do not fit into jumbograms, and the level may not be known yet. */
	if (run->jumbo && !rxw_auth_takes_jumbo(&p->conn->auth)) {
		rxw_drop(out->stats, RXW_DROP_JUMBO, run->count);
		return false;
	}
	return true;
}

/* Packets above the limit, and packets that were known, are counted and answered. */
static void count_useless(struct rxw_pcall *p, const struct rxw_rxrun *run, uint32_t limit,
			  const struct rxw_queued *queued, struct rxw_out *out)
{
	uint32_t first = run->head.seq, end = first + run->count, stop = rxw_min32(end, limit);

	if (stop < end) {
		uint32_t over = first < limit ? end - limit : run->count;

		rxw_drop(out->stats, RXW_DROP_WINDOW, over);
		rxw_ack_owe(p, RXW_ACK_EXCEEDS_WINDOW, run->head.serial + run->count - 1, true);
	}
	if (!queued->refused && first < limit && queued->fresh < stop - first) {
		uint32_t known = stop - first - queued->fresh;

		p->count.duplicates += known;
		rxw_tally(out->stats, &out->stats->duplicates, known);
		rxw_drop(out->stats, RXW_DROP_DUPLICATE, known);
		rxw_ack_owe(p, RXW_ACK_DUPLICATE, run->head.serial + (stop - first) - 1, true);
	}
}

/*
 * Client: an answer to a call of ours names its epoch and connection, which are drawn at random. So
 * the address has received our packets. Servers that call their clients need not be asked with a
 * PING, whose loss would delay the reply.
 */
static void prove_server(struct rxw_pcall *p, uint64_t now)
{
	if (p->client && rxw_peer_proof_due(p->conn->peer, now))
		rxw_peer_set_validated(p->conn->peer, now);
}

/* Verified packets, or packets that need no verification, show that the peer is alive. */
static void note_heard_run(struct rxw_pcall *p, const struct rxw_rxrun *run, bool fresh,
			   struct rxw_out *out)
{
	rxw_recvq_note_good(&p->rx);
	p->time.last_heard = p->conn->last_heard = out->now;
	p->peer_status = run->head.user_status;
	if (!p->client || !fresh)
		return;
	prove_server(p, out->now);
	rxw_send_heard(p);
	/* Reply DATA acknowledges the request. */
	if (!rxw_pcall_send_complete(p) && !p->tx.stopped)
		rxw_pcall_all_acked(p, out);
}

enum rxw_input_result rxw_pcall_input_data(struct rxw_pcall *p, const struct rxw_rxrun *run,
					   struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t first = run->head.seq, end = first + run->count, limit, stop;
	bool last = run->last_flags & RXW_LAST_PACKET, ends;
	struct rxw_queued queued = {0};

	if (!is_acceptable(p, run, out))
		return RXW_INPUT_DONE;
	limit = rxw_recvq_limit(p, out->now);
	stop = rxw_min32(end, limit);
	if (first < limit && !all_known(q, first, stop)) {
		if (rxw_auth_must_verify(&p->conn->auth, run))
			return RXW_INPUT_VERIFY;
		if (last_conflict(q, first, end, last) && !settle_conflict(p, run, last, out))
			return RXW_INPUT_DONE;
	}
	p->count.packets_received += run->count;
	ends = stop == end && brings_end(q, end, last);
	if (first < limit)
		rxw_recv_queue(p, run, stop, &queued, out);
	if (ends && q->highest >= end - 1 && !queued.refused)
		rxw_recvq_set_last(q, end - 1);
	if (stop < end || queued.fresh < run->count)
		count_useless(p, run, limit, &queued, out);
	if (run->verified || !rxw_auth_unsure(&p->conn->auth))
		note_heard_run(p, run, queued.fresh > 0, out);
	RXW_PROBE(receive_state, p, q->next - q->consumed, q->next, q->last);
	if (queued.in_order > 0)
		tell_reader(p, out);
	else if (p->state == RXW_CS_PRECALL)
		rxw_pcall_try_attach(p, out); /* its CHALLENGE may have been lost */
	rxw_pcall_arm(p, out);
	return RXW_INPUT_DONE;
}

/* A PING: answer it. It shows that the peer exists: we may send one more PING and CHALLENGE. */
static void take_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_out *out)
{
	if (p->state != RXW_CS_RESET)
		rxw_ack_answer_ping(p, serial, out);
	rxw_proof_pinged(p);
	rxw_auth_pinged(p->conn);
}

/*
 * The peer has everything, or has begun its reply, so nothing is to be sent again. But its handler may not have read all
 * of it: ACKs then begin with packets that are known to have arrived. An answer to a PING still shows that it is alive.
 */
static __attribute__((cold)) void note_alive(struct rxw_pcall *p, const struct rxw_ack *ack,
					     const struct rxw_out *out)
{
	struct rxw_ping ping;

	if (p->tx.una != p->tx.end || ack->reason != RXW_ACK_PING_RESPONSE ||
	    !rxw_ack_take_ping(p, ack->serial, &ping))
		return;
	rxw_pcall_pong(p);
	p->time.last_heard = p->conn->last_heard = out->now;
}

/* False: the ACK must not be processed. */
static bool check_ack(struct rxw_pcall *p, const struct rxw_ack *ack, struct rxw_out *out)
{
	enum rxw_ack_check check = rxw_send_check_renumbered(p, ack);

	if (check == RXW_ACK_GOOD)
		check = rxw_send_check_ack(p, ack, out->now);
	switch (check) {
	case RXW_ACK_GOOD:
		return true;
	case RXW_ACK_OLD:
		note_alive(p, ack, out);
		return false;
	case RXW_ACK_INVALID:
		/*
		 * Damaged or forged, since no class protects ACKs: a protected call survives it. If
		 * the peer means it, nothing keeps the call alive.
		 */
		rxw_drop(out->stats, RXW_DROP_BAD_ACK, 1);
		if (p->conn->auth.security->class.verify == NULL)
			rxw_pcall_fail(p, RXW_PROTOCOL_ERROR, RXW_ORIGIN_LOCAL, true, out);
		return false;
	case RXW_ACK_WHOLE:
		rxw_send_heard(p);
		p->time.last_heard = p->conn->last_heard = out->now;
		rxw_pcall_all_acked(p, out);
		return false;
	case RXW_ACK_MIXED:
	case RXW_ACK_RESET:
		break;
	}
	rxw_pcall_fail(p, check == RXW_ACK_MIXED ? RXW_CALL_MSGSIZE : RXW_NETWORK_RESET,
		       RXW_ORIGIN_LOCAL, check == RXW_ACK_MIXED, out);
	return false;
}

/* The address is valid. True: calls may have waited for that. */
static bool validate_address(struct rxw_pcall *p, uint64_t now)
{
	/* Another connection may have validated it; a call learns that only here. */
	bool waited = p->tx.proof_since != 0 || p->timer.proof_since != 0;

	return rxw_peer_set_validated(p->conn->peer, now) || waited;
}

static enum rxw_input_result input_ack(struct rxw_pcall *p, const struct rxw_rxrun *run,
				       struct rxw_out *out)
{
	const struct rxw_ack *ack = rxw_run_ack(run);
	struct rxw_sendq *q = &p->tx;
	unsigned acked;
	bool waited;

	if (ack == NULL) {
		rxw_drop(out->stats, RXW_DROP_BAD_ACK, 1);
		return RXW_INPUT_DONE;
	}
	RXW_PROBE(ack_received, p, ack->first, ack->count, ack->reason, ack->rwind, ack->serial);
	p->count.acks_received++;
	p->peer_status = run->head.user_status;
	if ((run->head.flags & RXW_REQUEST_ACK) || ack->reason == RXW_ACK_PING) {
		if (p->error != 0) {
			rxw_pcall_write_abort(p, out);
			return RXW_INPUT_DONE;
		}
		take_ping(p, run->head.serial, out);
	} else if (p->abort.owed) {
		rxw_pcall_write_abort(p, out);
	}
	if (!rxw_pcall_live(p) || !check_ack(p, ack, out))
		return RXW_INPUT_DONE;
	if (ack->reason == RXW_ACK_PING_RESPONSE)
		rxw_pcall_pong(p);
	acked = rxw_send_ack(p, ack, run->head.serial, run->waited, out);
	p->time.last_heard = p->conn->last_heard = out->now;
	prove_server(p, out->now);
	if (acked & RXW_ACKED_NEW)
		p->time.last_moved = out->now;
	waited = (acked & RXW_ACKED_PROOF) && !p->client && validate_address(p, out->now);
	/* A server may drop a request again that it acknowledged softly, a client not a reply. */
	if (rxw_pcall_send_complete(p) && (!p->client || q->una == q->end)) {
		rxw_pcall_all_acked(p, out);
	} else {
		rxw_sendq_tell_writer(p, out);
		rxw_send_schedule(p, out);
	}
	rxw_pcall_arm(p, out);
	return waited ? RXW_INPUT_VALIDATED : RXW_INPUT_DONE;
}

static void input_ack_all(struct rxw_pcall *p, struct rxw_out *out)
{
	if (!rxw_pcall_live(p))
		return;
	p->time.last_heard = p->conn->last_heard = out->now;
	rxw_send_ack_all(p, out->now);
	if (rxw_pcall_send_complete(p) || p->tx.renumber.whole)
		rxw_pcall_all_acked(p, out);
	else
		rxw_send_schedule(p, out);
	rxw_pcall_arm(p, out);
}

static void input_busy(struct rxw_pcall *p, struct rxw_out *out)
{
	if (!rxw_pcall_live(p) || !rxw_send_busy(p, out->now))
		return;
	p->time.last_heard = p->conn->last_heard = out->now;
	rxw_pcall_arm(p, out);
}

static void input_abort(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out)
{
	int32_t code;

	if (!rxw_abort_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE, &code)) {
		rxw_drop(out->stats, RXW_DROP_BAD_ABORT, 1);
		return;
	}
	p->conn->last_heard = out->now;
	rxw_pcall_fail(p, code, RXW_ORIGIN_PEER, false, out);
}

enum rxw_input_result rxw_pcall_input(struct rxw_pcall *p, const struct rxw_rxrun *run,
				      struct rxw_out *out)
{
	switch (run->head.type) {
	case RXW_ACK:
		return input_ack(p, run, out);
	case RXW_BUSY:
		input_busy(p, out);
		break;
	case RXW_ABORT:
		input_abort(p, run, out);
		break;
	case RXW_ACKALL:
		input_ack_all(p, out);
		break;
	default:
		rxw_drop(out->stats, RXW_DROP_TYPE, run->count);
		break;
	}
	return RXW_INPUT_DONE;
}
