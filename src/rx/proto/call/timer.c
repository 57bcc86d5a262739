/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a call: limits, ACKs, keepalive, address validation (rx-protocol 6). */
#include "base/hash.h"
#include "proto/call/call.h"

#define REACH_LIFE (10 * RXW_SEC)

/* An interval 10 % longer or shorter, so that calls do not ping in step; deterministic. */
static uint64_t ping_interval(const struct rxw_pcall *p)
{
	uint64_t interval = p->timer.dead / 6,
		 state = p->conn->cid ^ (uint64_t)p->number << 32 ^ p->time.last_sent;

	if (state == 0)
		state = 1;
	return interval - interval / 10 + rxw_prng(&state) % (interval / 5 + 1);
}

static void keepalive(struct rxw_pcall *p, struct rxw_out *out)
{
	uint64_t interval = ping_interval(p);

	if (out->now < p->time.last_sent + interval) {
		p->timer.ping = p->time.last_sent + interval;
		return;
	}
	p->timer.ping = out->now + interval;
	if (!p->client && !rxw_peer_validated(p->conn->peer, out->now)) {
		rxw_proof_ping(p, out);
		return;
	}
	rxw_ack_ping(p, 0, out);
}

/* A handler waits for the address to be validated. */
static void proof_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	uint64_t since = p->timer.proof_since;

	if (rxw_peer_validated(p->conn->peer, out->now)) {
		p->timer.proof_since = 0;
		rxw_pcall_try_attach(p, out);
	} else if (out->now >= since + REACH_LIFE) {
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
	} else {
		rxw_proof_ask_again(p, since, p->proof.pings, since + REACH_LIFE, out);
	}
}

/* Has the call exceeded a limit? Then it ends. */
static bool limits(struct rxw_pcall *p, struct rxw_out *out)
{
	int32_t code;

	switch (rxw_pcall_overdue(p, out->now)) {
	case RXW_LIMIT_NONE:
		return false;
	case RXW_LIMIT_DEAD:
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		break;
	case RXW_LIMIT_BROKEN:
		code = p->conn->auth.security->class.broken;
		rxw_pcall_fail(p, code ? code : RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		break;
	case RXW_LIMIT_TIME:
		rxw_pcall_fail(p, RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true, out);
		break;
	}
	return true;
}

void rxw_pcall_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;

	/* The caller has removed the deadline from its timer wheel. */
	t->deadline = RXW_NEVER;
	if (rxw_pcall_live(p) && limits(p, out))
		return;
	if (out->now >= p->ack.due) {
		rxw_ack_timer(p, out);
		if (p->state == RXW_CS_DALLY)
			rxw_pcall_done_event(p, out);
	}
	if (rxw_pcall_live(p)) {
		rxw_send_timer(p, out);
		if (p->timer.proof_since != 0 && out->now >= p->proof.at)
			proof_timer(p, out);
		if (rxw_pcall_live(p) && out->now >= t->ping)
			keepalive(p, out);
	}
	rxw_pcall_arm(p, out);
	/* Work that waits for a sender must not run the timer again at once. */
	if (t->deadline <= out->now)
		t->deadline = out->now + RXW_MS;
}
