/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: their life from the first packet to the last answer (rx-protocol 2.6, 2.7). */
#include "proto/internal.h"

#define FIRST_CWND	4u
#define FIRST_CWND_GOOD 10u
#define GOOD_RTT	(100 * RXW_MS)
#define RECENT		(60 * RXW_SEC)
#define FINAL_ACK_WAIT	(2 * RXW_MS)
#define PRESSED_WINDOW	2u

static void seed_from_peer(struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_params *params = p->conn->params;
	struct rxw_peer *peer = p->conn->peer;
	uint64_t srtt = atomic_load_explicit(&peer->srtt, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&peer->rtt_at, memory_order_relaxed);
	uint32_t ssthresh = atomic_load_explicit(&peer->ssthresh, memory_order_relaxed);
	uint32_t reordering = atomic_load_explicit(&peer->reordering, memory_order_relaxed);
	uint32_t mtu = atomic_load_explicit(&peer->mtu, memory_order_relaxed);
	bool good = srtt != 0 && srtt < GOOD_RTT && now < at + RECENT && ssthresh == 0;

	rxw_rtt_init(&p->rtt);
	rxw_rtt_seed(&p->rtt, srtt, atomic_load_explicit(&peer->rttvar, memory_order_relaxed));
	rxw_cc_init(&p->cc, params->cc, good ? FIRST_CWND_GOOD : FIRST_CWND, ssthresh,
		    params->window);
	rxw_recovery_init(&p->recovery);
	rxw_recovery_seed(&p->recovery, reordering, now, srtt);
	rxw_mtu_init(&p->mtu, params->mtu, params->mtu_ceiling, params->mtu_ceiling > params->mtu);
	if (mtu > params->mtu)
		rxw_mtu_confirmed(&p->mtu, mtu, now);
	else if (mtu != 0 && mtu < params->mtu)
		p->mtu.confirmed = p->mtu.low = mtu;
}

void rxw_pcall_init(struct rxw_pcall *p, struct rxw_pconn *c, unsigned channel, uint32_t number,
		    uint64_t now)
{
	struct rxw_calltimers *t = &p->timer;
	uint32_t window = c->peer_window != 0 ? c->peer_window : RXW_FIRST_FLIGHT;

	p->conn = c;
	p->client = c->client;
	p->channel = (uint8_t)channel;
	p->number = number;
	p->state = c->client ? RXW_CS_ACTIVE : RXW_CS_PRECALL;
	if (c->live != NULL) {
		atomic_fetch_add_explicit(c->live, 1, memory_order_relaxed);
		p->counted = true;
	}
	seed_from_peer(p, now);
	rxw_sendq_init(&p->tx, window, now);
	rxw_recvq_init(&p->rx, c->params);
	if (c->pressed && !rxw_peer_proven(c->peer, now)) {
		p->rx.window = rxw_min32(p->rx.window, PRESSED_WINDOW);
		p->rx.edge = 1 + p->rx.window;
	}
	rxw_ack_init(p);
	t->deadline = t->ack = t->ping = t->reach = RXW_NEVER;
	t->began = t->last_heard = t->last_moved = t->last_sent = now;
	t->dead = c->dead;
	t->idle = c->idle;
	t->hard = c->hard;
}

void rxw_pcall_uncount(struct rxw_pcall *p)
{
	if (p->counted)
		atomic_fetch_sub_explicit(p->conn->live, 1, memory_order_release);
	p->counted = false;
}

void rxw_pcall_fini(struct rxw_pcall *p)
{
	if (p->conn == NULL)
		return;
	rxw_sendq_clear(p);
	rxw_recvq_clear(p);
	rxw_pcall_uncount(p);
	rxw_slab_fini(&p->tx.ents);
	rxw_slab_fini(&p->tx.segs);
	rxw_slab_fini(&p->rx.ents);
}

bool rxw_pcall_done(const struct rxw_pcall *p)
{
	if (p->state == RXW_CS_RESET)
		return true;
	return p->state == RXW_CS_DALLY && !p->timer.final_ack;
}

void rxw_pcall_done_event(struct rxw_pcall *p, struct rxw_out *out)
{
	if (p->timer.done_told || !rxw_pcall_done(p))
		return;
	p->timer.done_told = true;
	rxw_pcall_touch(p, out, RXW_OUT_DONE);
}

void rxw_pcall_detach(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;

	c->channel[p->channel] = NULL;
	/* One that waits for its handler still gets there, and must see that it is over. */
	if (p->error == 0 && rxw_pcall_live(p) && p->state != RXW_CS_HOLD) {
		p->error = RXW_CALL_DEAD;
		p->error_origin = RXW_ORIGIN_LOCAL;
	}
	if (rxw_pcall_live(p))
		rxw_saw_end(p, out);
	p->state = RXW_CS_RESET;
	p->timer.final_ack = false;
	p->timer.ack = RXW_NEVER;
	p->timer.deadline = RXW_NEVER;
	rxw_sendq_clear(p);
	rxw_recvq_clear(p);
	rxw_pcall_uncount(p);
	if (out != NULL)
		rxw_pcall_done_event(p, out);
	c->ops->drop(p);
}

void rxw_pcall_try_attach(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;

	if (p->state != RXW_CS_PRECALL || p->timer.attach_told || p->rx.next == 1)
		return;
	if (!rxw_pconn_authenticated(c)) {
		rxw_pconn_challenge(c, false, out);
		return;
	}
	if (rxw_pcall_readable(p, NULL) == 0)
		return;
	if (c->strict_reach && !rxw_peer_proven(c->peer, out->now)) {
		if (p->timer.reach_since == 0)
			rxw_pcall_ask_proof(p, &p->timer.reach_since, out);
		return;
	}
	p->timer.reach_since = 0;
	p->timer.attach_told = true;
	rxw_pcall_touch(p, out, RXW_OUT_ATTACH);
}

void rxw_pcall_attach(struct rxw_pcall *p, struct rxw_out *out)
{
	if (p->state != RXW_CS_PRECALL)
		return;
	p->state = RXW_CS_ACTIVE;
	p->timer.last_moved = out->now;
	rxw_tally(out->stats, &out->stats->calls_started, 1);
	rxw_saw_handler(p, out);
	rxw_pcall_arm(p, out);
}

bool rxw_pcall_refuse(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;

	if (p->state != RXW_CS_PRECALL || p->error != 0 || c->channel[p->channel] != p)
		return false;
	rxw_ack_take_back(p, out);
	rxw_pconn_write_busy(c, p->channel, p->number, out);
	rxw_pcall_detach(p, out);
	return true;
}

void rxw_pcall_read_pause(struct rxw_pcall *p, struct rxw_out *out)
{
	rxw_ack_consumed(p, out);
	rxw_pcall_arm(p, out);
}

void rxw_pcall_fail(struct rxw_pcall *p, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out)
{
	if (p->error != 0 || !rxw_pcall_live(p))
		return;
	p->error = code != 0 ? code : RXW_PROTOCOL_ERROR;
	p->error_origin = origin;
	/* The channel is free before the ABORT leaves: the peer may use it at once. */
	p->state = RXW_CS_RESET;
	if (tell && (!p->client || p->timer.first_sent != 0))
		rxw_pcall_write_abort(p, out);
	/* What the application ended is not its client's fault. */
	if (!p->client && (origin == RXW_ORIGIN_PEER || p->error == RXW_CALL_DEAD))
		rxw_peer_waste(p->conn->peer, p->tx.end - p->tx.una, out->now);
	if (origin == RXW_ORIGIN_LOCAL &&
	    (p->error == RXW_CALL_DEAD || p->error == RXW_CALL_TIMEOUT))
		rxw_tally(out->stats, &out->stats->calls_timed_out, 1);
	else
		rxw_tally(out->stats, &out->stats->calls_aborted, 1);
	rxw_saw_end(p, out);
	rxw_sendq_clear(p);
	rxw_recvq_clear(p);
	rxw_pcall_uncount(p);
	p->timer.ack = p->timer.ping = p->ack.probe_at = RXW_NEVER;
	p->timer.final_ack = false;
	p->ack.reason = 0;
	p->ack.now = false;
	rxw_pcall_touch(p, out, RXW_OUT_READ | RXW_OUT_WRITE);
	rxw_pcall_done_event(p, out);
	rxw_pcall_arm(p, out);
}

void rxw_pcall_reply_acked(struct rxw_pcall *p, struct rxw_out *out)
{
	p->state = RXW_CS_DALLY;
	p->timer.ack = RXW_NEVER;
	p->timer.ping = RXW_NEVER;
	rxw_tally(out->stats, &out->stats->calls_ended, 1);
	rxw_pcall_uncount(p);
	rxw_saw_end(p, out);
	rxw_pcall_done_event(p, out);
}

static void finish_client(struct rxw_pcall *p, struct rxw_out *out)
{
	if (!rxw_recvq_ended(&p->rx)) {
		rxw_pcall_fail(p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, true, out);
		return;
	}
	rxw_recvq_discard(p);
	rxw_sendq_clear(p);
	p->state = RXW_CS_DALLY;
	p->timer.ping = RXW_NEVER;
	rxw_ack_forget(p);
	rxw_tally(out->stats, &out->stats->calls_ended, 1);
	rxw_pcall_uncount(p);
	rxw_saw_end(p, out);
	if (p->ack.sent_first <= p->rx.last) {
		/* A next call on the channel would say as much. */
		p->timer.ack = out->now + FINAL_ACK_WAIT;
		p->timer.final_ack = true;
	}
	rxw_pcall_done_event(p, out);
}

void rxw_pcall_finish(struct rxw_pcall *p, struct rxw_out *out)
{
	if (p->error != 0 || p->state != RXW_CS_ACTIVE)
		return;
	if (p->client) {
		finish_client(p, out);
	} else if (!p->tx.all_queued) {
		rxw_pcall_fail(p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, true, out);
	} else {
		rxw_recvq_discard(p);
		p->state = RXW_CS_HOLD;
		if (rxw_pcall_send_complete(p))
			rxw_pcall_all_acked(p, out);
		else
			rxw_pcall_offer(p, 0, out);
	}
	rxw_pcall_arm(p, out);
}
