/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs through a security class: sealed by the writer, verified by whoever has the time (7.1). */
#include "proto/internal.h"

static uint8_t *payload(const struct rxw_rxrun *run, uint16_t i)
{
	return run->data + (size_t)i * run->stride + RXW_HEADER_SIZE;
}

static uint32_t payload_size(const struct rxw_rxrun *run, uint16_t i)
{
	return (i + 1 == run->count ? run->last_size : run->stride) - RXW_HEADER_SIZE;
}

int rxw_run_seal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		 uint8_t *data, uint16_t stride, uint16_t count, uint32_t length, uint32_t last)
{
	const struct rxw_security_class *k = &c->security->class;
	struct rxw_security_packet packet[RXW_VERIFY_MOST];

	for (uint16_t at = 0; at < count;) {
		uint16_t n = 0;

		for (; n < RXW_VERIFY_MOST && at + n < count; n++)
			packet[n] = (struct rxw_security_packet){
				.data = data + (size_t)(at + n) * stride + RXW_HEADER_SIZE,
				.call = call,
				.seq = seq + at + n,
				.channel = channel,
				.length = at + n + 1 == count ? last : length,
			};
		if (k->seal != NULL && k->seal(c->sec, packet, n) != 0)
			return -RXW_ECALL;
		for (uint16_t i = 0; i < n; i++)
			rxw_put16(packet[i].data - RXW_HEADER_SIZE + 24, packet[i].spare);
		at += n;
	}
	return 0;
}

int rxw_run_renew(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		  uint8_t *data, uint16_t stride, uint16_t count, uint16_t last_size)
{
	const struct rxw_security_class *k = &c->security->class;
	struct rxw_security_packet packet[RXW_VERIFY_MOST];

	for (uint16_t at = 0; k->renew != NULL && at < count;) {
		uint16_t n = 0;

		for (; n < RXW_VERIFY_MOST && at + n < count; n++) {
			uint8_t *d = data + (size_t)(at + n) * stride;

			packet[n] = (struct rxw_security_packet){
				.data = d + RXW_HEADER_SIZE,
				.call = call,
				.seq = seq + at + n,
				.channel = channel,
				.spare = rxw_get16(d + 24),
				.length = (at + n + 1 == count ? last_size : stride) -
					  (uint32_t)RXW_HEADER_SIZE,
			};
		}
		if (k->renew(c->sec, packet, n) != 0)
			return -RXW_ECALL;
		for (uint16_t i = 0; i < n; i++)
			rxw_put16(packet[i].data - RXW_HEADER_SIZE + 24, packet[i].spare);
		at += n;
	}
	return 0;
}

void rxw_run_verify(const struct rxw_pconn *c, const struct rxw_rxrun *run,
		    struct rxw_security_packet *packet)
{
	for (uint16_t i = 0; i < run->count; i++)
		packet[i] = (struct rxw_security_packet){
			.data = payload(run, i),
			.call = run->head.call,
			.seq = run->head.seq + i,
			.channel = run->head.cid & 3,
			.spare = run->jumbo ? run->head.spare : rxw_get16(payload(run, i) - 4),
			.length = payload_size(run, i),
			.result = -1,
		};
	c->security->class.verify(c->sec, packet, run->count);
	/* A class that says more than there is must not lead us behind the packet. */
	for (uint16_t i = 0; i < run->count; i++)
		if (packet[i].result == 0 &&
		    ((uint64_t)c->room.head + packet[i].length > payload_size(run, i)))
			packet[i].result = -1;
}

/* Packets from..to of a run, all good, all with as much data as the first but the last. */
static void hand_on(struct rxw_pconn *c, const struct rxw_rxrun *whole,
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
	run.sec_head = c->room.head;
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
 * A call that was begun by packets from before the key was known, none of which verified: their call
 * number was damaged or forged. It must not make old what the client really calls, and said so in its
 * RESPONSE.
 */
static bool never_was(struct rxw_pconn *c, struct rxw_pcall *p, struct rxw_out *out)
{
	unsigned channel = p->channel;

	if (p->state != RXW_CS_PRECALL || p->number <= c->claimed[channel] || p->rx.next > 1 ||
	    p->rx.later_head != RXW_NO_NODE)
		return false;
	rxw_pcall_retire(p);
	if (c->channel[channel] != NULL)
		rxw_pcall_detach(p, out);
	rxw_ended_forget(c, channel);
	c->number[channel] = c->claimed[channel];
	return true;
}

static void failed(struct rxw_pconn *c, const struct rxw_rxrun *run, uint32_t count,
		   struct rxw_out *out)
{
	struct rxw_pcall *p = c->channel[run->head.cid & 3];
	struct rxw_recvq *q;

	rxw_drop(out->stats, RXW_DROP_VERIFY, count);
	if (p == NULL || p->number != run->head.call || !rxw_pcall_live(p))
		return;
	if (run->kept && never_was(c, p, out))
		return;
	q = &p->rx;
	if (q->failed == 0)
		q->failed_since = out->now;
	q->failed += count;
	if (run->kept) {
		/* Said to be there and missing again: in the next ACK, at once. */
		rxw_ack_owe(p, RXW_ACK_DELAY, 0, true);
		p->timer.ack = rxw_min64(p->timer.ack, out->now);
	}
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
				hand_on(c, run, packet, from, i, out);
			from = (uint16_t)(i + 1);
			bad++;
		} else if (i > from && packet[i - 1].length != packet[from].length) {
			hand_on(c, run, packet, from, i, out);
			from = i;
		}
	}
	if (run->count > from)
		hand_on(c, run, packet, from, run->count, out);
	if (bad)
		failed(c, run, bad, out);
}

bool rxw_pconn_take_kept(struct rxw_pconn *c, struct rxw_rxrun *run)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && rxw_recvq_take_kept(c->channel[i], run))
			return true;
	return false;
}
