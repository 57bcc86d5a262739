/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a call: when it has to run, limits, ACKs, keepalive, address validation (rx-protocol 6). */
#include "base/assert.h"
#include "base/hash.h"
#include "proto/conn/call.h"

#define REACH_LIFE	 (10 * RXW_SEC)
#define LEAST_QUIET (10 * RXW_SEC) /* of keepalives, if the dead time allows more */
#define BROKEN		 (60 * RXW_SEC) /* so long, no packet verified: wrong keys (7.1) */
#define BROKEN_LEAST	 4		/* packets */
#define UNVALIDATED_LIFE (15 * RXW_SEC)

/* The limit that a call has exceeded. */
enum limit {
	LIMIT_NONE,
	LIMIT_DEAD,   /* the peer is silent */
	LIMIT_BROKEN, /* no packet verifies: wrong keys */
	LIMIT_TIME    /* hard or idle limit, or the sender makes no progress */
};

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

static enum limit limit_exceeded(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_calltimers *t = &p->timer;

	if (now >= dead_at(p))
		return LIMIT_DEAD;
	if (p->rx.failed >= BROKEN_LEAST && now >= p->rx.failed_since + BROKEN)
		return LIMIT_BROKEN;
	if ((t->hard != 0 && now >= p->time.began + t->hard) ||
	    (t->idle != 0 && waits_for_peer(p) && now >= idle_at(p)) || rxw_send_gave_up(p, now))
		return LIMIT_TIME;
	return LIMIT_NONE;
}

/*
 * The silence that keepalives leave adapts to the mapping of a NAT. It is a sixth of the dead time
 * at first, and at most a third, so that three more can follow one that is lost. At least it is a
 * sixth, or ten seconds if that is less.
 */
static uint64_t least_quiet(const struct rxw_pcall *p)
{
	return rxw_min64(p->timer.dead / 6, LEAST_QUIET);
}

static uint64_t quiet_of(const struct rxw_pcall *p)
{
	const struct rxw_calltimers *t = &p->timer;

	if (t->asked != 0)
		return rxw_min64(t->quiet != 0 ? t->quiet : t->dead / 6, t->dead / 6);
	return t->quiet != 0 ? t->quiet : t->dead / 6;
}

/* The mapping outlived a silence: a longer one may follow, within what is known to break it. */
static void mapping_held(struct rxw_pcall *p)
{
	struct rxw_calltimers *t = &p->timer;
	uint64_t quiet = t->quiet != 0 ? t->quiet : t->dead / 6;

	if (t->asked >= quiet / 10 * 8) {
		uint64_t longer = rxw_min64(quiet / 2 * 3, t->dead / 3);

		if (t->broke != 0 && longer > t->broke / 3 * 2) {
			longer = rxw_max64(t->broke / 3 * 2, least_quiet(p));
			/* The reason may have been another one: try longer ones after many. */
			t->broke += t->broke / 1024;
		}
		t->quiet = longer;
	}
	t->asked = 0;
}

static void mapping_broke(struct rxw_pcall *p, uint64_t silence)
{
	struct rxw_calltimers *t = &p->timer;

	t->asked = 0;
	if (silence < least_quiet(p))
		return; /* the host has moved, or its NAT was restarted */
	t->broke = t->broke != 0 ? rxw_min64(t->broke, silence) : silence;
	t->quiet = rxw_max64(t->broke / 2, least_quiet(p));
}

void rxw_pcall_pong(struct rxw_pcall *p)
{
	if (p->timer.asked != 0)
		mapping_held(p);
}

void rxw_pcall_remapped(struct rxw_pcall *p, uint64_t now)
{
	mapping_broke(p, now - p->time.last_heard);
	p->timer.ping = rxw_min64(p->timer.ping, now + quiet_of(p) / 10 * 9);
}

/* An interval 10 % longer or shorter, so that calls do not ping in step; deterministic. */
static uint64_t ping_interval(const struct rxw_pcall *p)
{
	uint64_t interval = quiet_of(p),
		 state = p->conn->cid ^ (uint64_t)p->number << 32 ^ p->time.last_sent;

	if (state == 0)
		state = 1;
	return interval - interval / 10 + rxw_prng(&state) % (interval / 5 + 1);
}

static void send_keepalive(struct rxw_pcall *p, struct rxw_out *out)
{
	uint64_t interval = ping_interval(p);

	rxw_recvq_rest(p, out->now);
	rxw_sendq_rest(p, out->now);
	if (out->now < p->time.last_sent + interval) {
		p->timer.ping = p->time.last_sent + interval;
		return;
	}
	/*
	 * The server was heard, but the latest PING has no answer: it arrived from another address,
	 * and the server asked that address for proof instead (2.3).
	 */
	if (p->client && p->timer.asked != 0 && p->time.last_heard > p->timer.asked_at)
		mapping_broke(p, p->timer.asked);
	if (p->timer.asked == 0) {
		p->timer.asked = out->now - p->time.last_sent;
		p->timer.asked_at = out->now;
	} else {
		rxw_send_unanswered(p, out);
	}
	p->timer.ping = out->now + ping_interval(p);
	if (!rxw_peer_known(p->conn->peer, p->client, out->now)) {
		rxw_proof_ping(p, out);
		return;
	}
	rxw_ack_ping(p, 0, out);
}

/* A handler waits for the address to be validated. */
static void proof_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	uint64_t since = p->timer.proof_since;

	if (!rxw_peer_awaited(p->conn->peer, since, out->now)) {
		p->timer.proof_since = 0;
		rxw_pcall_try_attach(p, out);
	} else if (out->now >= since + REACH_LIFE) {
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
	} else {
		rxw_proof_ask_again(p, since, p->proof.pings, since + REACH_LIFE, out);
	}
}

/* Has the call exceeded a limit? Then it ends. */
static bool end_if_overdue(struct rxw_pcall *p, struct rxw_out *out)
{
	int32_t code;

	switch (limit_exceeded(p, out->now)) {
	case LIMIT_NONE:
		return false;
	case LIMIT_DEAD:
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		break;
	case LIMIT_BROKEN:
		code = p->conn->auth.security->class.broken;
		rxw_pcall_fail(p, code ? code : RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		break;
	case LIMIT_TIME:
		rxw_pcall_fail(p, RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true, out);
		break;
	}
	return true;
}

/*
 * If the timer is late by more than a keepalive's interval, this process was stopped, and heard nothing.
 * That is not the peer's silence.
 */
static void excuse_pause(struct rxw_pcall *p, uint64_t deadline, uint64_t now)
{
	uint64_t heard = rxw_max64(p->time.last_heard, p->timer.excused);

	if (now <= deadline || now - deadline <= p->timer.dead / 6)
		return;
	p->timer.excused = rxw_min64(heard + (now - deadline), now);
	rxw_send_excuse(p, now);
}

void rxw_pcall_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;

	excuse_pause(p, t->deadline, out->now);
	/* The caller has removed the deadline from its timer wheel. */
	t->deadline = RXW_NEVER;
	if (rxw_pcall_live(p) && end_if_overdue(p, out))
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
			send_keepalive(p, out);
	}
	rxw_pcall_arm(p, out);
	/* Work that waits for a sender must not run the timer again at once. */
	if (t->deadline <= out->now)
		t->deadline = out->now + RXW_MS;
}
