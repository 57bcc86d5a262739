/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets for a connection: the checks of 1.8, channels, new calls, runs that were verified without the lock (7.1), the
 * end of a batch.
 */
#include "proto/conn/conn.h"

#define BUSY_AVOID (3 * RXW_SEC)
#define BUSY_APART (50 * RXW_MS) /* to a wasteful client */

static enum rxw_input_result drop_run(const struct rxw_rxrun *run, enum rxw_drop cause,
				      struct rxw_out *out)
{
	rxw_drop(out->stats, cause, run->count);
	return RXW_INPUT_DONE;
}

/* Step 7 and the additions of 1.8; true if the packet is to be dropped. */
static bool is_foreign(const struct rxw_pconn *c, const struct rxw_header *h, enum rxw_drop *cause)
{
	bool stateless = c->client && h->type == RXW_ABORT && h->serial == 0;

	if (h->security != c->security_index && !(stateless && h->security == 0)) {
		*cause = RXW_DROP_SECURITY_INDEX;
		return true;
	}
	if (h->service != c->service && !(c->client && h->type == RXW_ABORT)) {
		*cause = RXW_DROP_SERVICE;
		return true;
	}
	if (c->client ? h->type == RXW_RESPONSE : h->type == RXW_CHALLENGE || h->type == RXW_BUSY) {
		*cause = RXW_DROP_DIRECTION;
		return true;
	}
	return false;
}

/* callNumber 0: the packet is for the connection (steps 9 and 10). */
static enum rxw_input_result input_connection(struct rxw_pconn *c, const struct rxw_rxrun *run,
					      struct rxw_out *out)
{
	int32_t code;

	switch (run->head.type) {
	case RXW_ABORT:
		if (!rxw_abort_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE,
				   &code))
			return drop_run(run, RXW_DROP_BAD_ABORT, out);
		rxw_pconn_fail(c, code, RXW_ORIGIN_PEER, false, out);
		return RXW_INPUT_DONE;
	case RXW_CHALLENGE:
		rxw_pconn_input_challenge(c, run, out);
		return RXW_INPUT_DONE;
	case RXW_RESPONSE:
		rxw_auth_input(c, RXW_AUTH_CHECK, run, c->number, out);
		return RXW_INPUT_DONE;
	case RXW_DATA:
	case RXW_ACK:
	case RXW_BUSY:
	case RXW_ACKALL:
		return drop_run(run, RXW_DROP_CALL_NUMBER, out);
	default:
		return drop_run(run, RXW_DROP_TYPE, out);
	}
}

/*
 * Server: a packet for a new call, while the channel's call has a handler. A client that abandons
 * calls again and again does not end it: it gets a BUSY now and then, and clients wait for longer
 * than BUSY_APART before they try again.
 */
static enum rxw_input_result interrupt_call(struct rxw_pconn *c, struct rxw_pcall *p,
					    const struct rxw_rxrun *run, struct rxw_out *out)
{
	unsigned channel = p->channel;
	bool wasteful = rxw_peer_wasteful(c->peer, out->now);

	if (!wasteful) {
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		rxw_pconn_write_busy(c, channel, run->head.call, out);
		return drop_run(run, RXW_DROP_STATE, out);
	}
	if (out->now >= c->busy_sent_at + BUSY_APART) {
		c->busy_sent_at = out->now;
		rxw_pconn_write_busy(c, channel, run->head.call, out);
	}
	return drop_run(run, RXW_DROP_LIMIT, out);
}

/* Server: a packet with a higher number than that of the channel's latest call. */
static enum rxw_input_result new_call(struct rxw_pconn *c, const struct rxw_rxrun *run,
				      struct rxw_out *out)
{
	const struct rxw_header *h = &run->head;
	unsigned channel = h->cid & 3;
	struct rxw_pcall *p = c->channel[channel];
	int32_t code = 0;

	if (h->type != RXW_DATA)
		return drop_run(run, RXW_DROP_CALL_NUMBER, out);
	if (h->seq == 0)
		return drop_run(run, RXW_DROP_SEQ_ZERO, out);
	if (h->seq > rxw_max32(rxw_min32(c->params->window, RXW_MAX_ACKS), RXW_FIRST_FLIGHT))
		return drop_run(run, RXW_DROP_WINDOW, out);
	/* A forged packet must not end the channel's call. */
	if (rxw_auth_must_verify(&c->auth, run))
		return RXW_INPUT_VERIFY;
	if (p != NULL && p->state == RXW_CS_ACTIVE)
		return interrupt_call(c, p, run, out);
	if (p != NULL && p->state == RXW_CS_HOLD)
		rxw_pcall_all_acked(p, out);
	if (c->ops->leaving != NULL && c->ops->leaving(c))
		return drop_run(run, RXW_DROP_STATE, out);
	if (p != NULL) {
		rxw_pcall_retire(p);
		if (c->channel[channel] != NULL)
			rxw_pcall_detach(p, out);
	}
	p = c->ops->call_new(c, &code);
	if (p == NULL) {
		if (code != 0)
			rxw_finished_refuse(c, channel, h->call, code, out);
		else
			rxw_pconn_write_busy(c, channel, h->call, out);
		return drop_run(run, RXW_DROP_LIMIT, out);
	}
	rxw_finished_clear(c, channel);
	c->channel[channel] = p;
	c->number[channel] = h->call;
	rxw_pcall_init(p, c, channel, h->call, out->now);
	rxw_event_begin(p, out->stats);
	return rxw_pcall_input_data(p, run, out);
}

/* Count a run, once. Bytes from an address that is not validated raise its sending limit (6.7). */
static void count_received(struct rxw_pconn *c, const struct rxw_rxrun *run, struct rxw_out *out)
{
	unsigned type = run->head.type < RXW_PACKET_TYPES ? run->head.type : 0;

	rxw_tally(out->stats, &out->stats->packets_received[type], run->count);
	c->count.packets_received += run->count;
	c->count.bytes_received += run->size;
	atomic_fetch_add_explicit(&c->peer->bytes_received, run->size, memory_order_relaxed);
	if (c->client)
		return;
	/* Only the jumbo header of a jumbogram's member was on the wire. */
	if (run->jumbo)
		rxw_peer_heard(c->peer, run->size - RXW_HEADER_SIZE + RXW_JUMBO_HEADER, 0,
			       out->now);
	else
		rxw_peer_heard(c->peer, run->size, run->count, out->now);
}

/* A packet for a call: the channel's call, one that is over, or a new one. */
static enum rxw_input_result input_channel(struct rxw_pconn *c, const struct rxw_rxrun *run,
					   struct rxw_out *out)
{
	const struct rxw_header *h = &run->head;
	unsigned channel = h->cid & 3;
	struct rxw_pcall *p = c->channel[channel];
	bool ours = p != NULL ? p->number == h->call
			      : h->call == c->number[channel] &&
					c->finished[channel].state != RXW_CS_NOTINIT;

	if (ours && h->type == RXW_BUSY)
		c->busy_until[channel] = out->now + BUSY_AVOID;
	if (ours && p != NULL)
		return h->type == RXW_DATA ? rxw_pcall_input_data(p, run, out)
					   : rxw_pcall_input(p, run, out);
	if (ours) {
		rxw_finished_input(c, channel, run, out);
		return RXW_INPUT_DONE;
	}
	if (c->client || h->call < c->number[channel])
		return drop_run(run, RXW_DROP_CALL_NUMBER, out);
	return new_call(c, run, out);
}

enum rxw_input_result rxw_pconn_input(struct rxw_pconn *c, const struct rxw_rxrun *run,
				      struct rxw_out *out)
{
	const struct rxw_header *h = &run->head;
	enum rxw_input_result result;
	enum rxw_drop cause;

	/* The second time, after verify(), it is counted already. */
	if (!run->verified)
		count_received(c, run, out);
	if (is_foreign(c, h, &cause))
		return drop_run(run, cause, out);
	if (c->error != 0) {
		if (!c->evicted &&
		    (h->type == RXW_DATA || h->type == RXW_ACK || h->type == RXW_ACKALL))
			rxw_pconn_write_abort(c, out);
		return drop_run(run, RXW_DROP_STATE, out);
	}
	if (h->call == 0)
		return input_connection(c, run, out);
	result = input_channel(c, run, out);
	if (result == RXW_INPUT_VALIDATED) {
		rxw_pconn_validated(c, out);
		return RXW_INPUT_DONE;
	}
	if (c->auth.wanted)
		rxw_pconn_challenge_wanted(c, out);
	return result;
}

/* --- runs that were verified without the lock, and runs that were queued before authentication --- */

/* Input packets from..to of a run: all good, all but the last with as much data as the first. */
static void input_part(struct rxw_pconn *c, const struct rxw_rxrun *whole,
		       const struct rxw_security_packet *packet, uint16_t from, uint16_t to,
		       struct rxw_out *out)
{
	struct rxw_rxrun run = *whole;

	run.data += (size_t)from * run.stride;
	run.count = (uint16_t)(to - from);
	run.last_size = to == whole->count ? whole->last_size : whole->stride;
	run.size = (uint32_t)(run.count - 1) * run.stride + run.last_size;
	run.head.seq += from;
	run.head.serial += from;
	run.verified = true;
	run.sec_head = c->auth.room.head;
	run.length = (uint16_t)packet[from].length;
	run.last_length = (uint16_t)packet[to - 1].length;
	if (!run.jumbo) {
		run.or_flags = 0;
		for (uint16_t i = 0; i < run.count; i++)
			run.or_flags |= run.last_flags = run.data[(size_t)i * run.stride + 21];
		run.head.flags = run.data[21];
	}
	rxw_pconn_input(c, &run, out);
}

/*
 * A call that consists only of packets from before authentication, none of which verified: its
 * number was damaged or forged. Forget it, and return to the number of the client's RESPONSE: else
 * the client's real calls would be too old.
 */
static bool forget_forged(struct rxw_pconn *c, struct rxw_pcall *p, struct rxw_out *out)
{
	unsigned channel = p->channel;

	if (p->state != RXW_CS_PRECALL || p->number <= c->auth.claimed[channel] || p->rx.next > 1 ||
	    rxw_recvq_has_later(&p->rx))
		return false;
	rxw_pcall_retire(p);
	if (c->channel[channel] != NULL)
		rxw_pcall_detach(p, out);
	rxw_finished_clear(c, channel);
	c->number[channel] = c->auth.claimed[channel];
	return true;
}

static void note_failed_packets(struct rxw_pconn *c, const struct rxw_rxrun *run, uint32_t count,
				struct rxw_out *out)
{
	struct rxw_pcall *p = c->channel[run->head.cid & 3];

	rxw_drop(out->stats, RXW_DROP_VERIFY, count);
	if (p == NULL || p->number != run->head.call || !rxw_pcall_live(p))
		return;
	if (run->kept && forget_forged(c, p, out))
		return;
	rxw_recvq_note_failed(&p->rx, count, out->now);
	/* They were acknowledged: report them missing again, at once. */
	if (run->kept)
		rxw_ack_owe_by(p, RXW_ACK_DELAY, 0, out->now);
	rxw_pcall_arm(p, out);
}

void rxw_pconn_input_verified(struct rxw_pconn *c, const struct rxw_rxrun *run,
			      const struct rxw_security_packet *packet, struct rxw_out *out)
{
	uint16_t from = 0, bad = 0;

	for (uint16_t i = 0; i < run->count; i++) {
		if (packet[i].result > 0) {
			rxw_pconn_fail(c, packet[i].result, RXW_ORIGIN_LOCAL, true, out);
			return;
		}
		if (packet[i].result < 0) {
			if (i > from)
				input_part(c, run, packet, from, i, out);
			from = (uint16_t)(i + 1);
			bad++;
		} else if (i > from && packet[i - 1].length != packet[from].length) {
			input_part(c, run, packet, from, i, out);
			from = i;
		}
	}
	if (run->count > from)
		input_part(c, run, packet, from, run->count, out);
	if (bad)
		note_failed_packets(c, run, bad, out);
}

bool rxw_pconn_take_unverified(struct rxw_pconn *c, struct rxw_rxrun *run)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && rxw_recvq_take_unverified(c->channel[i], run))
			return true;
	return false;
}

void rxw_pconn_batch_end(struct rxw_pconn *c, bool drained, struct rxw_out *out)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL ||
		    !(p->ack.in_batch || (drained && p->ack.reason != 0 && p->ack.unacked > 1)))
			continue;
		rxw_ack_batch_end(p, drained, out);
		rxw_pcall_done_event(p, out); /* it may have been the final ACK */
		rxw_pcall_arm(p, out);
	}
	if (c->finished_owes != 0)
		rxw_finished_batch_end(c, out);
}

bool rxw_pconn_owes(const struct rxw_pconn *c)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->channel[i];

		if (p != NULL && p->ack.reason != 0 && (p->ack.now || p->ack.unacked > 1))
			return true;
	}
	return c->finished_owes != 0;
}
