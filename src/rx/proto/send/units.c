/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The size of packets, windows and rates in packets of another size, the pace, and the delay of ACKs: what the other
 * files of the module need (rx-protocol 4.4, 5.5).
 */
#include "proto/state.h"

#define ACK_DELAY_PEER	(100 * RXW_MS) /* how long peers may delay an ACK */
#define ACK_DELAY_REPLY (400 * RXW_MS) /* only the reply may acknowledge a request */

uint32_t rxw_pcall_datagram_size(const struct rxw_pcall *p)
{
	uint32_t size = p->tx.mtu.confirmed;
	uint32_t peer = p->conn->peer_max_mtu;

	if (peer == 0)
		peer = RXW_MTU_DEFAULT;
	return rxw_min32(size, peer);
}

bool rxw_send_short_path(const struct rxw_pcall *p)
{
	return rxw_peer_is_near(p->conn->peer) && !p->tx.losses;
}

uint64_t rxw_send_interval(const struct rxw_pcall *p)
{
	if (!p->tx.rtt.valid || rxw_send_short_path(p))
		return 0;
	return rxw_cc_interval(&p->tx.cc, rxw_max32(p->tx.window, 1), p->tx.rtt.srtt);
}

uint64_t rxw_send_peer_delay(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;

	return p->client && q->all_queued && q->nxt == q->end ? ACK_DELAY_REPLY : ACK_DELAY_PEER;
}

static uint64_t scale_packets(uint64_t packets, uint32_t from, uint32_t to)
{
	return packets * from / to;
}

uint32_t rxw_send_mixed_flight(const struct rxw_sendq *q)
{
	const struct rxw_mtu_units *u = &q->units;

	if (u->before == 0)
		return q->flight;
	return q->flight - u->old + (uint32_t)scale_packets(u->old, u->before, u->size);
}

void rxw_send_resize(struct rxw_sendq *q, uint32_t size)
{
	struct rxw_mtu_units *u = &q->units;
	uint32_t before = u->size, older = u->from;

	if (size == before)
		return;
	*u = (struct rxw_mtu_units){.size = size, .older = older, .delivered = q->rate.delivered};
	if (before == 0)
		return;
	u->before = before;
	u->from = q->nxt;
	u->old = q->flight;
	rxw_cc_resize(&q->cc, before, size);
	q->peak = rxw_send_flight(q);
	q->last_peak = (uint32_t)scale_packets(q->last_peak, before, size);
	q->carried = (uint32_t)scale_packets(q->carried, before, size);
}

uint32_t rxw_send_credit(struct rxw_sendq *q, uint32_t newly, uint32_t old)
{
	struct rxw_mtu_units *u = &q->units;
	uint64_t bytes = (uint64_t)old * u->before + u->rest;

	if (u->before == 0)
		return newly;
	u->rest = (uint32_t)(bytes % u->size);
	newly = newly - old + (uint32_t)(bytes / u->size);
	if (q->una >= u->from)
		*u = (struct rxw_mtu_units){.size = u->size};
	return newly;
}

uint32_t rxw_send_delivered(const struct rxw_sendq *q, const struct rxw_txseg *s)
{
	const struct rxw_mtu_units *u = &q->units;
	uint32_t packets = q->rate.delivered - s->delivered, before = u->delivered - s->delivered;
	/* Late packets, which a later one has overtaken, were sent before the first of the two. */
	uint32_t sent = s->order + s->count - 1 - s->began_order;

	if (s->first >= u->from)
		return rxw_min32(packets, sent);
	if (s->first < u->older)
		return 0;
	/* Sent before the change, and acknowledged in part before it. */
	if ((int32_t)before > 0)
		packets = packets - before + (uint32_t)scale_packets(before, u->before, u->size);
	return rxw_min32(packets, (uint32_t)scale_packets(sent, u->before, u->size));
}

uint64_t rxw_send_rate_to(const struct rxw_pcall *p, uint64_t rate)
{
	return p->tx.units.size != 0 ? scale_packets(rate, p->tx.units.size, RXW_MTU_DEFAULT)
				     : rate;
}

uint64_t rxw_send_rate_from(const struct rxw_pcall *p, uint64_t rate)
{
	uint32_t size = p->tx.units.size != 0 ? p->tx.units.size : rxw_pcall_datagram_size(p);

	return scale_packets(rate, RXW_MTU_DEFAULT, size);
}
