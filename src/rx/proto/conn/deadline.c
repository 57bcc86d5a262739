/* SPDX-License-Identifier: BSD-2-Clause */
/* When a call's timer has to run, and the limits of the call (rx-protocol 6). */
#include <assert.h>

#include "proto/conn/call.h"

#define BROKEN		 (60 * RXW_SEC) /* so long, no packet verified: wrong keys (7.1) */
#define BROKEN_LEAST	 4		/* packets */
#define UNVALIDATED_LIFE (15 * RXW_SEC)

/* A margin for the round trip. */
static uint64_t round_trip_margin(const struct rxw_pcall *p)
{
	const struct rxw_rtt *rtt = &p->tx.rtt;

	return rtt->valid ? rtt->srtt + 8 * rtt->rttvar : 0;
}

static uint64_t dead_at(const struct rxw_pcall *p)
{
	uint64_t dead = p->timer.dead, at;
	uint64_t heard = rxw_max64(p->time.last_heard, p->timer.excused);

	if (p->client && p->time.first_sent == 0)
		return RXW_NEVER;
	if (p->state == RXW_CS_PRECALL && dead > UNVALIDATED_LIFE &&
	    !rxw_peer_validated(p->conn->peer, heard))
		dead = UNVALIDATED_LIFE;
	at = heard + dead + round_trip_margin(p);
	if (p->timer.unreachable != 0 && heard <= p->timer.unreachable)
		at = rxw_min64(at,
			       p->timer.unreachable + 2 * rxw_rtt_rto(&p->tx.rtt, 0, 0) + RXW_SEC);
	return at;
}

static uint64_t idle_at(const struct rxw_pcall *p)
{
	return rxw_max64(p->time.last_moved, p->timer.excused) + p->timer.idle +
	       round_trip_margin(p);
}

/* Does the application wait for the peer? Pauses of the application do not count as idle time. */
static bool waits_for_peer(const struct rxw_pcall *p)
{
	bool ended;
	uint32_t readable = rxw_pcall_readable(p, &ended);

	if (p->state != RXW_CS_ACTIVE)
		return false;
	if (rxw_pcall_queued(p) > 0)
		return true;
	return readable == 0 && !ended && p->rx.consumed == p->rx.taken;
}

void rxw_pcall_arm(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;
	uint64_t at = p->ack.due, now = out != NULL ? out->now : p->time.began;

	assert(p->error == 0 || p->state == RXW_CS_RESET);
	if (rxw_pcall_live(p)) {
		if (t->ping == RXW_NEVER && (!p->client || p->time.first_sent != 0) && out != NULL)
			/* The shortest interval; send_keepalive() finds the exact one. */
			t->ping = out->now + t->dead / 6 / 10 * 9;
		at = rxw_min64(at, rxw_min64(t->ping, dead_at(p)));
		at = rxw_min64(at, p->tx.mtu_at);
		if (p->tx.mtu.enabled)
			at = rxw_min64(at, rxw_send_check_deadline(p));
		if (p->tx.una != p->tx.end)
			at = rxw_min64(at, rxw_send_deadline(p, now));
		if (p->timer.proof_since != 0)
			at = rxw_min64(at, p->proof.at);
		if (t->hard != 0)
			at = rxw_min64(at, p->time.began + t->hard);
		if (t->idle != 0 && waits_for_peer(p))
			at = rxw_min64(at, idle_at(p));
		if (p->rx.failed >= BROKEN_LEAST)
			at = rxw_min64(at, p->rx.failed_since + BROKEN);
	}
	if (at < t->deadline && out != NULL)
		rxw_pcall_post_event(p, out, RXW_OUT_TIMER);
	t->deadline = at;
}

uint64_t rxw_pcall_deadline(const struct rxw_pcall *p)
{
	return p->timer.deadline;
}

enum rxw_limit rxw_pcall_overdue(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_calltimers *t = &p->timer;

	if (now >= dead_at(p))
		return RXW_LIMIT_DEAD;
	if (p->rx.failed >= BROKEN_LEAST && now >= p->rx.failed_since + BROKEN)
		return RXW_LIMIT_BROKEN;
	if ((t->hard != 0 && now >= p->time.began + t->hard) ||
	    (t->idle != 0 && waits_for_peer(p) && now >= idle_at(p)) || rxw_send_gave_up(p, now))
		return RXW_LIMIT_TIME;
	return RXW_LIMIT_NONE;
}
