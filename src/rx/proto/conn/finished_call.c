/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are over: what the channel remembers, and how late packets are answered (2.6, 2.8,
 * 2.10).
 */
#include <string.h>

#include "base/assert.h"
#include "proto/conn/conn.h"

static uint32_t rwind_of(const struct rxw_recvq *q)
{
	return rxw_min32(rxw_max32(q->edge, q->hard + q->window) - q->next, RXW_MAX_ACKS);
}

void rxw_pcall_retire(struct rxw_pcall *p)
{
	struct rxw_pconn *c = p->conn;
	struct rxw_finished_call *e = &c->finished[p->channel];

	if (c->channel[p->channel] != p || !rxw_pcall_done(p))
		return;
	*e = (struct rxw_finished_call){
		.state = (uint8_t)p->state,
		.local_status = p->local_status,
	};
	c->finished_owes &= (uint8_t) ~(1u << p->channel);
	if (p->state == RXW_CS_RESET) {
		e->error = p->error;
		e->abort = p->abort;
	} else {
		e->mtu = (uint16_t)p->tx.mtu.confirmed;
		e->next = p->rx.next;
		e->highest = p->rx.highest;
		e->rwind = (uint8_t)rwind_of(&p->rx);
		e->ping_answered = p->ack.ping_answered;
		/* After the end, only an urgent ACK is worth sending. */
		if (p->ack.reason != 0 && p->ack.now) {
			e->reason = p->ack.reason;
			e->serial = p->ack.serial;
			c->finished_owes |= (uint8_t)(1u << p->channel);
		}
	}
	c->channel[p->channel] = NULL;
	c->ops->drop(p);
}

/* False: no space, try again. An ACK that the address may not be sent counts as sent. */
static bool write_finished_ack(struct rxw_pconn *c, unsigned channel, unsigned reason,
			       uint32_t serial, struct rxw_out *out)
{
	const struct rxw_finished_call *e = &c->finished[channel];
	uint8_t table[RXW_MAX_ACKS];
	struct rxw_ack ack = {.serial = serial,
			      .reason = (uint8_t)reason,
			      .first = e->next,
			      .previous = e->highest,
			      .rwind = e->rwind,
			      .extended = c->params->window > RXW_MAX_ACKS,
			      .base = 1,
			      .acks = table};
	struct rxw_ctl *ctl;

	assert(e->state == RXW_CS_DALLY);
	if (out->ctl_count >= out->ctl_room)
		return false;
	/* Nothing was kept of what arrived behind a gap. */
	if (e->highest >= e->next) {
		ack.count = rxw_min32(e->highest - e->next + 1, RXW_MAX_ACKS);
		ack.previous = e->next + ack.count - 1;
		memset(table, 0, ack.count);
	}
	rxw_ack_trailer(c, e->mtu, &ack);
	ctl = rxw_ctl_add(c, out, RXW_ACK, rxw_ack_flags(c), channel, c->number[channel],
			  e->local_status, rxw_ack_size(&ack));
	if (ctl == NULL)
		return true;
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + rxw_ack_put(ctl->bytes + RXW_HEADER_SIZE, &ack));
	return true;
}

static void write_finished_abort(struct rxw_pconn *c, unsigned channel, struct rxw_out *out)
{
	struct rxw_finished_call *e = &c->finished[channel];
	struct rxw_aborting a = {.channel = channel,
				 .number = c->number[channel],
				 .error = e->error,
				 .status = e->local_status,
				 .state = &e->abort};

	assert(e->state == RXW_CS_RESET);
	rxw_ctl_abort(c, &a, out);
}

void rxw_finished_refuse(struct rxw_pconn *c, unsigned channel, uint32_t number, int32_t code,
			 struct rxw_out *out)
{
	rxw_finished_clear(c, channel);
	c->number[channel] = number;
	c->finished[channel] = (struct rxw_finished_call){.state = RXW_CS_RESET, .error = code};
	rxw_tally(out->stats, &out->stats->calls_refused, 1);
	write_finished_abort(c, channel, out);
}

static void input_late_data(struct rxw_pconn *c, unsigned channel, const struct rxw_rxrun *run,
			    struct rxw_out *out)
{
	struct rxw_finished_call *e = &c->finished[channel];
	uint32_t first = run->head.seq, end = first + run->count;

	if (first == 0 || end < first || end == UINT32_MAX) {
		rxw_drop(out->stats, first == 0 ? RXW_DROP_SEQ_ZERO : RXW_DROP_WINDOW, run->count);
		return;
	}
	rxw_tally(out->stats, &out->stats->duplicates, run->count);
	if (e->state == RXW_CS_RESET) {
		write_finished_abort(c, channel, out);
		return;
	}
	/* One answer per batch. */
	e->reason = RXW_ACK_DUPLICATE;
	e->serial = run->head.serial + run->count - 1;
	c->finished_owes |= (uint8_t)(1u << channel);
}

static void input_late_ack(struct rxw_pconn *c, unsigned channel, const struct rxw_rxrun *run,
			   struct rxw_out *out)
{
	struct rxw_finished_call *e = &c->finished[channel];
	const struct rxw_ack *ack = rxw_run_ack(run);
	uint32_t serial = run->head.serial;
	bool asks;

	if (ack == NULL) {
		rxw_drop(out->stats, RXW_DROP_BAD_ACK, 1);
		return;
	}
	/* The ACK that ended the call may have triggered a PING with a secret serial. */
	if (ack->serial != 0 && ack->serial == c->rx.proof_serial)
		rxw_pconn_validated(c, out);
	asks = (run->head.flags & RXW_REQUEST_ACK) || ack->reason == RXW_ACK_PING;
	if (e->state == RXW_CS_RESET) {
		if (asks || e->abort.owed)
			write_finished_abort(c, channel, out);
	} else if (asks && (serial == 0 || serial != e->ping_answered) &&
		   rxw_ack_may_pong(c, out)) {
		/* A replay of the latest PING is not answered. */
		if (write_finished_ack(c, channel, RXW_ACK_PING_RESPONSE, serial, out))
			e->ping_answered = serial;
	}
}

void rxw_finished_input(struct rxw_pconn *c, unsigned channel, const struct rxw_rxrun *run,
			struct rxw_out *out)
{
	int32_t code;

	switch (run->head.type) {
	case RXW_DATA:
		input_late_data(c, channel, run, out);
		return;
	case RXW_ACK:
		input_late_ack(c, channel, run, out);
		return;
	case RXW_ABORT:
		if (rxw_abort_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE,
				  &code))
			c->last_heard = out->now;
		else
			rxw_drop(out->stats, RXW_DROP_BAD_ABORT, 1);
		return;
	case RXW_BUSY:
	case RXW_ACKALL:
		return;
	default:
		rxw_drop(out->stats, RXW_DROP_TYPE, run->count);
		return;
	}
}

void rxw_finished_batch_end(struct rxw_pconn *c, struct rxw_out *out)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_finished_call *e = &c->finished[i];

		if ((c->finished_owes & 1u << i) &&
		    write_finished_ack(c, i, e->reason, e->serial, out))
			c->finished_owes &= (uint8_t) ~(1u << i);
	}
}
