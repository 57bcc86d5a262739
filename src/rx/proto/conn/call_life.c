/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a call, from its first packet to its last answer (rx-protocol 2.6, 2.7). */
#include <limits.h>

#include "proto/conn/call.h"

#define FINAL_ACK_WAIT (2 * RXW_MS)
#define RELEASE_FIRST  32 /* runs of a queue: most calls have no more */
/* A stream ends below this packet, so that no window reaches 2^32, even if packets are cut into smaller ones. */
#define STREAM_MOST (UINT32_MAX - 4 * RXW_WINDOW_MAX)

void rxw_event_begin(const struct rxw_pcall *p, const struct rxw_pstats *stats)
{
	const struct rxw_pconn *c = p->conn;

	RXW_PROBE(call_begin, p, c->cid | p->channel, p->number, c->service, (int)p->client,
		  &rxw_pconn_path(c)->peer.u.sa);
	rxw_event(p, stats,
		  (struct rxw_trace_event){.kind = RXW_TRACE_CALL_BEGIN,
					   .now = p->time.began,
					   .a = c->service,
					   .b = p->client,
					   .c = c->security_index});
}

/* `out` NULL: the connection is being destroyed, only the probe fires. */
static void saw_end(const struct rxw_pcall *p, const struct rxw_out *out)
{
	uint64_t took = out ? out->now - p->time.began : 0;

	RXW_PROBE(call_end, p, p->error, (int)p->error_origin, took, p->count.packets_sent,
		  p->count.retransmitted);
	if (out)
		rxw_event(p, out->stats,
			  (struct rxw_trace_event){.kind = RXW_TRACE_CALL_END,
						   .now = out->now,
						   .a = (uint32_t)p->error,
						   .b = took,
						   .c = p->error_origin,
						   .d = p->client});
}

void rxw_pcall_init(struct rxw_pcall *p, struct rxw_pconn *c, unsigned channel, uint32_t number,
		    uint64_t now)
{
	struct rxw_calltimers *t = &p->timer;

	p->conn = c;
	p->client = c->client;
	p->channel = (uint8_t)channel;
	p->number = number;
	p->state = c->client ? RXW_CS_ACTIVE : RXW_CS_PRECALL;
	if (c->live != NULL) {
		atomic_fetch_add_explicit(c->live, 1, memory_order_relaxed);
		p->counted = true;
	}
	rxw_sendq_init(p, now);
	rxw_proof_init(p);
	rxw_recvq_init(p, now);
	rxw_ack_init(p);
	t->deadline = t->ping = RXW_NEVER;
	p->time.began = p->time.last_heard = p->time.last_moved = p->time.last_sent = now;
	t->dead = c->dead;
	t->idle = c->idle;
	t->hard = c->hard;
}

void rxw_pcall_live_dec(struct rxw_pcall *p)
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
	rxw_pcall_release(p, UINT_MAX);
	rxw_pcall_live_dec(p);
	rxw_slab_fini(&p->tx.ents);
	rxw_sent_fini(&p->tx.sent);
}

bool rxw_pcall_done(const struct rxw_pcall *p)
{
	if (p->state == RXW_CS_RESET)
		return true;
	return p->state == RXW_CS_DALLY && !p->ack.final;
}

bool rxw_pcall_awaits_attach(const struct rxw_pcall *p)
{
	return p->state == RXW_CS_PRECALL && !p->timer.attach_posted;
}

bool rxw_pcall_sends(const struct rxw_pcall *p)
{
	return p->client ? !p->count.packets_received && !rxw_pcall_send_complete(p)
			 : rxw_pcall_next_seq(p) > 1;
}

uint64_t rxw_pcall_progress(const struct rxw_pcall *p)
{
	return p->tx.una + p->rx.consumed;
}

void rxw_pcall_done_event(struct rxw_pcall *p, struct rxw_out *out)
{
	if (p->timer.done_posted || !rxw_pcall_done(p))
		return;
	p->timer.done_posted = true;
	rxw_pcall_post_event(p, out, RXW_OUT_DONE);
}

bool rxw_pcall_release(struct rxw_pcall *p, unsigned most)
{
	return rxw_recvq_release(p, most) & rxw_sendq_release(p, most);
}

/* Queues were cleared. `out` NULL: the rest is released with the call. */
static __attribute__((noinline)) void begin_release(struct rxw_pcall *p, struct rxw_out *out)
{
	if (!rxw_pcall_release(p, RELEASE_FIRST) && out != NULL)
		rxw_pcall_post_event(p, out, RXW_OUT_RELEASE);
}

/* Release the queues of a call whose end was counted. */
static void clear_queues(struct rxw_pcall *p, struct rxw_out *out)
{
	rxw_sendq_stop(p);
	rxw_recvq_clear(p);
	begin_release(p, out);
	rxw_pcall_live_dec(p);
}

void rxw_pcall_abandon(struct rxw_pcall *p, struct rxw_out *out)
{
	/*
	 * A call in the queue for handlers stays there, and its handler has to see that it is over.
	 */
	if (p->error == 0 && rxw_pcall_live(p) && p->state != RXW_CS_HOLD) {
		p->error = RXW_CALL_DEAD;
		p->error_origin = RXW_ORIGIN_LOCAL;
	}
	if (rxw_pcall_live(p))
		saw_end(p, out);
	p->state = RXW_CS_RESET;
	rxw_ack_clear(p);
	p->timer.deadline = RXW_NEVER;
	clear_queues(p, out);
	if (out != NULL)
		rxw_pcall_done_event(p, out);
}

void rxw_pcall_try_attach(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;

	if (!rxw_pcall_awaits_attach(p))
		return;
	/*
	 * Even if the first packet is missing: the call number may be damaged or forged, and only
	 * the RESPONSE shows that.
	 */
	if (!c->auth.authenticated) {
		rxw_auth_want(c);
		return;
	}
	if (rxw_pcall_readable(p, NULL) == 0)
		return;
	if (c->validate_first && !rxw_peer_validated(c->peer, out->now)) {
		if (p->timer.proof_since == 0)
			rxw_proof_ask(p, &p->timer.proof_since, out);
		return;
	}
	p->timer.proof_since = 0;
	p->timer.attach_posted = true;
	rxw_pcall_post_event(p, out, RXW_OUT_ATTACH);
}

void rxw_pcall_validated(struct rxw_pcall *p, struct rxw_out *out)
{
	rxw_send_validated(p, out);
	rxw_pcall_try_attach(p, out);
	rxw_pcall_arm(p, out);
}

void rxw_pcall_moving(struct rxw_pcall *p)
{
	p->timer.unreachable = 0;
}

void rxw_pcall_moved(struct rxw_pcall *p, bool same_host, struct rxw_out *out)
{
	rxw_pcall_moving(p);
	rxw_pcall_remapped(p, out->now);
	rxw_sendq_moved(p, same_host, out->now);
	rxw_send_schedule(p, out);
	rxw_pcall_validated(p, out);
}

void rxw_pcall_attach(struct rxw_pcall *p, struct rxw_out *out)
{
	uint64_t waited = out->now - p->time.began;

	if (p->state != RXW_CS_PRECALL)
		return;
	p->state = RXW_CS_ACTIVE;
	p->time.last_moved = out->now;
	rxw_tally(out->stats, &out->stats->calls_started, 1);
	RXW_PROBE(call_handler, p, waited);
	rxw_event(p, out->stats,
		  (struct rxw_trace_event){
			  .kind = RXW_TRACE_CALL_HANDLER, .now = out->now, .a = waited});
	rxw_pcall_arm(p, out);
}

int rxw_pcall_push(struct rxw_pcall *p, const struct rxw_txrun *run, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	int result = 0;

	if (p->error != 0 || p->state != RXW_CS_ACTIVE)
		result = -RXW_ECALL;
	else if (q->stopped)
		result = -RXW_ESTATE;
	else if (run->count == 0 || run->stride < RXW_HEADER_SIZE ||
		 run->last_size < RXW_HEADER_SIZE || run->last_size > run->stride || q->all_queued)
		result = -RXW_EINVAL;
	else if (q->end + run->count < q->end || q->end + run->count >= STREAM_MOST) {
		rxw_pcall_fail(p, RXW_PROTOCOL_ERROR, RXW_ORIGIN_LOCAL, true, out);
		result = -RXW_ECALL;
	} else if (!rxw_sendq_append(p, run))
		result = -RXW_ENOMEM;
	if (result != 0) {
		rxw_buf_unref(run->buf);
		return result;
	}
	p->time.last_moved = out->now;
	rxw_sendq_probe(p, q);
	rxw_sendq_note_high(p);
	if (rxw_send_pushed(p, out))
		rxw_pcall_arm(p, out);
	return 0;
}

enum rxw_burst_result rxw_pcall_burst(struct rxw_pcall *p, unsigned max_packets,
				      struct rxw_burst *burst, uint64_t *not_before,
				      struct rxw_out *out)
{
	enum rxw_burst_result result = rxw_send_burst(p, max_packets, burst, not_before, out);

	if (result == RXW_BURST_FAILED)
		rxw_pcall_fail(p, rxw_send_too_large(p) ? RXW_CALL_MSGSIZE : RXW_USER_ABORT,
			       RXW_ORIGIN_LOCAL, true, out);
	if (result == RXW_BURST_FAILED || result == RXW_BURST_IDLE)
		return RXW_BURST_NONE;
	rxw_pcall_arm(p, out);
	return result;
}

/* Nothing is to be sent before an ACK, a timer or the writer comes. */
static bool has_sent_all(const struct rxw_sendq *q)
{
	return q->nxt == q->end && q->lost == 0 && q->force == 0 && !q->probe &&
	       q->renumber.state == RXW_RENUMBER_NONE;
}

void rxw_pcall_burst_done(struct rxw_pcall *p, const struct rxw_burst *burst, unsigned sent,
			  int error, struct rxw_out *out)
{
	rxw_send_burst_done(p, burst, sent, error, out->now);
	if (sent == burst->count && has_sent_all(&p->tx))
		return;
	if (rxw_pcall_live(p))
		rxw_send_schedule(p, out);
	rxw_pcall_arm(p, out);
}

void rxw_pcall_read_pause(struct rxw_pcall *p, struct rxw_out *out)
{
	rxw_ack_consumed(p, out);
	rxw_pcall_arm(p, out);
}

/* Codes have no meaning if the application chose them: its -1 is not a dead peer. */
enum failure {
	BY_PROTOCOL,
	BY_APPLICATION
};

static void fail_call(struct rxw_pcall *p, int32_t code, enum rxw_origin origin, bool tell,
		      enum failure how, struct rxw_out *out)
{
	if (p->error != 0 || !rxw_pcall_live(p))
		return;
	p->error = code != 0 ? code : RXW_PROTOCOL_ERROR;
	p->error_origin = origin;
	/* The channel is free before the ABORT is sent: the peer may use it at once. */
	p->state = RXW_CS_RESET;
	if (tell && (!p->client || p->time.first_sent != 0))
		rxw_pcall_write_abort(p, out);
	/* Count the unsent reply against the client, unless our application ended the call. */
	if (!p->client && how != BY_APPLICATION &&
	    (origin == RXW_ORIGIN_PEER || p->error == RXW_CALL_DEAD))
		rxw_peer_waste(p->conn->peer, rxw_pcall_queued(p), out->now);
	if (how != BY_APPLICATION && origin == RXW_ORIGIN_LOCAL &&
	    (p->error == RXW_CALL_DEAD || p->error == RXW_CALL_TIMEOUT))
		rxw_tally(out->stats, &out->stats->calls_timed_out, 1);
	else
		rxw_tally(out->stats, &out->stats->calls_aborted, 1);
	saw_end(p, out);
	clear_queues(p, out);
	rxw_ack_clear(p);
	p->timer.ping = RXW_NEVER;
	rxw_pcall_post_event(p, out, RXW_OUT_READ | RXW_OUT_WRITE);
	rxw_pcall_done_event(p, out);
	rxw_pcall_arm(p, out);
}

void rxw_pcall_fail(struct rxw_pcall *p, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out)
{
	fail_call(p, code, origin, tell, BY_PROTOCOL, out);
}

void rxw_pcall_abort(struct rxw_pcall *p, int32_t code, struct rxw_out *out)
{
	fail_call(p, code, RXW_ORIGIN_LOCAL, true, BY_APPLICATION, out);
}

/* The call ended well: DALLY. */
static void end_call_well(struct rxw_pcall *p, struct rxw_out *out)
{
	p->state = RXW_CS_DALLY;
	p->timer.ping = RXW_NEVER;
	rxw_tally(out->stats, &out->stats->calls_ended, 1);
	rxw_pcall_live_dec(p);
	saw_end(p, out);
}

void rxw_pcall_all_acked(struct rxw_pcall *p, struct rxw_out *out)
{
	rxw_sendq_all_acked(p, out);
	begin_release(p, out);
	if (!p->client && p->state == RXW_CS_HOLD) {
		rxw_ack_set_due(p, RXW_NEVER, false);
		end_call_well(p, out);
		rxw_pcall_done_event(p, out);
	}
	rxw_pcall_arm(p, out);
}

static void finish_client(struct rxw_pcall *p, struct rxw_out *out)
{
	if (!rxw_recvq_ended(&p->rx)) {
		rxw_pcall_fail(p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, true, out);
		return;
	}
	rxw_recvq_discard(p);
	rxw_sendq_clear(p);
	begin_release(p, out);
	rxw_ack_clear(p);
	end_call_well(p, out);
	if (p->ack.sent_first <= p->rx.last) {
		/* The next call on the channel would acknowledge the reply, too. */
		rxw_ack_set_due(p, out->now + FINAL_ACK_WAIT, true);
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
		begin_release(p, out);
		p->state = RXW_CS_HOLD;
		if (rxw_pcall_send_complete(p))
			rxw_pcall_all_acked(p, out);
		else
			rxw_send_schedule(p, out);
	}
	rxw_pcall_arm(p, out);
}
