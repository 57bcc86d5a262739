/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs that were verified without the lock, and runs that were queued before authentication (7.1).
 */
#include "proto/conn/conn.h"

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
