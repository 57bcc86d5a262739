/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of an address that is not validated: what they may send, and PINGs to validate it (6.7). */
#include "proto/state.h"

#define MORE_PINGS 2
#define RECHECK	   RXW_MS

void rxw_proof_init(struct rxw_pcall *p)
{
	p->proof.at = RXW_NEVER;
}

bool rxw_send_reply_sent(const struct rxw_pcall *p)
{
	return !p->client && p->tx.all_queued && p->tx.nxt == p->tx.end;
}

bool rxw_proof_ask(struct rxw_pcall *p, uint64_t *since, struct rxw_out *out)
{
	bool asked = rxw_ack_ping(p, 0, out);

	if (!asked && out->ctl_count >= out->ctl_room)
		return false;
	*since = out->now ? out->now : 1;
	p->proof.at = out->now + (asked ? rxw_rtt_rto(&p->tx.rtt, 0, 0) : RECHECK);
	return true;
}

bool rxw_proof_ping(struct rxw_pcall *p, struct rxw_out *out)
{
	if (p->proof.pings >= MORE_PINGS || !rxw_ack_ping(p, 0, out))
		return false;
	p->proof.pings++;
	return true;
}

void rxw_proof_pinged(struct rxw_pcall *p)
{
	p->proof.pings -= p->proof.pings > 0;
}

/*
 * If no PING may be sent, other calls of the address have used up its allowance. Their PINGs may
 * validate it as well, but nothing reports that to this call: it checks again, at growing
 * intervals.
 */
bool rxw_proof_ask_again(struct rxw_pcall *p, uint64_t since, unsigned backoff, uint64_t latest,
			 struct rxw_out *out)
{
	uint64_t now = out->now, wait = rxw_rtt_rto(&p->tx.rtt, 0, backoff);
	bool asked = rxw_proof_ping(p, out);

	if (!asked && now - since < wait)
		wait = now - since > RECHECK ? now - since : RECHECK;
	p->proof.at = rxw_min64(now + wait, latest);
	return asked;
}

uint32_t rxw_proof_limit(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first, uint32_t n,
			 struct rxw_out *out)
{
	struct rxw_peer *peer = p->conn->peer;
	uint64_t allowance, each, bytes, wire;
	bool whole;

	if (p->client || n == 0)
		return n;
	allowance = rxw_peer_allowance(peer, out->now);
	if (allowance == UINT64_MAX) {
		p->tx.proof_since = 0; /* perhaps by another connection */
		return n;
	}
	each = e->stride + rxw_peer_overhead(peer);
	whole = first + n == e->first + e->count;
	/* Most small replies are a single last packet, so its true size counts. */
	bytes = whole ? (uint64_t)(n - 1) * e->stride + e->last_size : (uint64_t)n * e->stride;
	wire = bytes + (uint64_t)n * rxw_peer_overhead(peer);
	/* Unless this is the end of the reply, a PING has to fit as well. */
	if (!(whole && e->last) || wire > allowance) {
		allowance -= rxw_min64(allowance,
				       RXW_HEADER_SIZE + RXW_ACK_FRAME + rxw_peer_overhead(peer));
		if (wire > allowance) {
			n = rxw_min32(n, (uint32_t)rxw_min64(allowance / each, UINT32_MAX));
			bytes = (uint64_t)n * e->stride;
		}
	}
	if (n > 0 && rxw_peer_may_send(peer, bytes, n, out->now))
		return n;
	if (p->tx.proof_since == 0)
		rxw_proof_ask(p, &p->tx.proof_since, out);
	return 0;
}
