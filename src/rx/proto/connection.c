/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: checks on packets received, channels, errors (rx-protocol 1.8, 2.3 to 2.5). */
#include <errno.h>

#include "proto/internal.h"

#define BUSY_AVOID  (3 * RXW_SEC)
#define BUSY_APART  (50 * RXW_MS) /* to one who is wasteful */
#define LAST_NUMBER 0x7fffffffu

int rxw_pconn_init(struct rxw_pconn *c, const struct rxw_params *params,
		   const struct rxw_proto_ops *ops, struct rxw_peer *peer,
		   const struct rxw_path *path, uint32_t epoch, uint32_t cid, uint16_t service,
		   struct rxw_security *security, bool client, uint64_t now)
{
	c->params = params;
	c->ops = ops;
	c->peer = peer;
	c->path = *path;
	c->epoch = epoch;
	c->cid = cid & ~3u;
	c->service = service;
	c->security = security;
	c->security_index = security->class.index;
	c->client = client;
	c->dead = params->dead;
	c->idle = client ? params->client_idle : params->server_idle;
	c->hard = params->hard;
	c->last_heard = c->last_sent = now;
	rxw_budget_init(&c->memory, (int64_t)params->conn_memory);
	return rxw_pconn_auth_init(c);
}

void rxw_pconn_fini(struct rxw_pconn *c, uint64_t now)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			rxw_pcall_detach(c->channel[i], NULL);
	rxw_pconn_auth_fini(c);
	if (c->peer != NULL)
		rxw_peer_unref(c->peer, now);
	c->peer = NULL;
}

static enum rxw_input_result drop(const struct rxw_rxrun *run, enum rxw_drop cause,
				  struct rxw_out *out)
{
	rxw_drop(out->stats, cause, run->count);
	return RXW_INPUT_DONE;
}

/* Steps 7 and the additions of 1.8; true if the packet is to be dropped. */
static bool foreign(const struct rxw_pconn *c, const struct rxw_header *h, enum rxw_drop *cause)
{
	bool stateless = c->client && h->type == RXW_ABORT && h->serial == 0;

	if (h->security != c->security_index && !(stateless && h->security == 0)) {
		*cause = RXW_DROP_SECURITY_INDEX;
		return true;
	}
	if (h->service != c->service && !(c->client && h->type == RXW_ABORT)) {
		*cause = RXW_DROP_SERVICE;
		return true;
	}
	if (c->client ? h->type == RXW_RESPONSE : h->type == RXW_CHALLENGE || h->type == RXW_BUSY) {
		*cause = RXW_DROP_DIRECTION;
		return true;
	}
	return false;
}

/* callNumber 0: about the connection (steps 9 and 10). */
static enum rxw_input_result about_connection(struct rxw_pconn *c, const struct rxw_rxrun *run,
					      struct rxw_out *out)
{
	int32_t code;

	switch (run->head.type) {
	case RXW_ABORT:
		if (!rxw_abort_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE,
				   &code))
			return drop(run, RXW_DROP_BAD_ABORT, out);
		rxw_pconn_fail(c, code, RXW_ORIGIN_PEER, false, out);
		return RXW_INPUT_DONE;
	case RXW_CHALLENGE:
		rxw_pconn_input_challenge(c, run, out);
		return RXW_INPUT_DONE;
	case RXW_RESPONSE:
		rxw_pconn_input_response(c, run, out);
		return RXW_INPUT_DONE;
	case RXW_DATA:
	case RXW_ACK:
	case RXW_BUSY:
	case RXW_ACKALL:
		return drop(run, RXW_DROP_CALL_NUMBER, out);
	default:
		return drop(run, RXW_DROP_TYPE, out);
	}
}

static void ack_all(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (!rxw_pcall_live(p))
		return;
	p->timer.last_heard = p->conn->last_heard = out->now;
	q->heard = true;
	rxw_sendq_free_below(p, q->nxt);
	q->backoff = 0;
	q->base_at = out->now;
	if (rxw_pcall_send_complete(p))
		rxw_pcall_all_acked(p, out);
	else
		rxw_pcall_offer(p, 0, out);
	rxw_pcall_arm(p, out);
}

static enum rxw_input_result to_call(struct rxw_pcall *p, const struct rxw_rxrun *run,
				     struct rxw_out *out)
{
	switch (run->head.type) {
	case RXW_DATA:
		return rxw_pcall_input_data(p, run, out);
	case RXW_ACK:
		rxw_pcall_input_ack(p, run, out);
		return RXW_INPUT_DONE;
	case RXW_BUSY:
		p->conn->busy_until[p->channel] = out->now + BUSY_AVOID;
		rxw_pcall_input_busy(p, out);
		return RXW_INPUT_DONE;
	case RXW_ABORT:
		rxw_pcall_input_abort(p, run, out);
		return RXW_INPUT_DONE;
	case RXW_ACKALL:
		ack_all(p, out);
		return RXW_INPUT_DONE;
	default:
		return drop(run, RXW_DROP_TYPE, out);
	}
}

/* Server: a packet with a number that no call of the channel has. */
static enum rxw_input_result new_call(struct rxw_pconn *c, const struct rxw_rxrun *run,
				      struct rxw_out *out)
{
	const struct rxw_header *h = &run->head;
	unsigned channel = h->cid & 3;
	struct rxw_pcall *p = c->channel[channel];

	if (h->type != RXW_DATA)
		return drop(run, RXW_DROP_CALL_NUMBER, out);
	if (h->seq == 0)
		return drop(run, RXW_DROP_SEQ_ZERO, out);
	if (h->seq > rxw_max32(c->params->window, RXW_FIRST_FLIGHT))
		return drop(run, RXW_DROP_WINDOW, out);
	/* A forged packet must not end the call that is there. */
	if (rxw_pconn_must_verify(c, run))
		return RXW_INPUT_VERIFY;
	if (p != NULL && p->state == RXW_CS_ACTIVE && rxw_peer_wasteful(c->peer, out->now)) {
		/*
		 * It did so again and again: what was begun for it is not thrown away once more.
		 * Clients wait for longer than this before they try again.
		 */
		if (out->now >= c->busy_sent_at + BUSY_APART) {
			c->busy_sent_at = out->now;
			rxw_pconn_write_busy(c, channel, h->call, out);
		}
		return drop(run, RXW_DROP_LIMIT, out);
	}
	if (p != NULL && p->state == RXW_CS_ACTIVE) {
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		rxw_pconn_write_busy(c, channel, h->call, out);
		return drop(run, RXW_DROP_STATE, out);
	}
	if (p != NULL) {
		if (p->state == RXW_CS_HOLD)
			rxw_pcall_all_acked(p, out);
		rxw_pcall_retire(p);
		if (c->channel[channel] != NULL)
			rxw_pcall_detach(p, out);
	}
	p = c->ops->call_new(c);
	if (p == NULL) {
		rxw_pconn_write_busy(c, channel, h->call, out);
		return drop(run, RXW_DROP_LIMIT, out);
	}
	rxw_ended_forget(c, channel);
	c->channel[channel] = p;
	c->number[channel] = h->call;
	rxw_pcall_init(p, c, channel, h->call, out->now);
	rxw_saw_begin(p, out->stats);
	return rxw_pcall_input_data(p, run, out);
}

/* Counted for the limit of 6.7. Of a jumbogram's member only its jumbo header was on the wire. */
static void heard(struct rxw_pconn *c, const struct rxw_rxrun *run)
{
	if (run->jumbo)
		rxw_peer_heard(c->peer, run->size - RXW_HEADER_SIZE + RXW_JUMBO_HEADER, 0);
	else
		rxw_peer_heard(c->peer, run->size, run->count);
}

enum rxw_input_result rxw_pconn_input(struct rxw_pconn *c, const struct rxw_rxrun *run,
				      struct rxw_out *out)
{
	const struct rxw_header *h = &run->head;
	unsigned channel = h->cid & 3;
	struct rxw_pcall *p;
	enum rxw_drop cause;

	if (!run->verified) {
		/* The second time, after verify(), it is counted already. */
		rxw_tally(out->stats, &out->stats->packets_received[h->type < 14 ? h->type : 0], run->count);
		c->packets_received += run->count;
		c->bytes_received += run->size;
		atomic_fetch_add_explicit(&c->peer->bytes_received, run->size,
					  memory_order_relaxed);
		if (!c->client && !rxw_peer_proven(c->peer, out->now))
			heard(c, run);
	}
	if (foreign(c, h, &cause))
		return drop(run, cause, out);
	if (c->error != 0) {
		if (!c->forgotten &&
		    (h->type == RXW_DATA || h->type == RXW_ACK || h->type == RXW_ACKALL))
			rxw_pconn_write_abort(c, out);
		return drop(run, RXW_DROP_STATE, out);
	}
	if (h->call == 0)
		return about_connection(c, run, out);
	p = c->channel[channel];
	if (p != NULL && p->number == h->call)
		return to_call(p, run, out);
	if (p == NULL && h->call == c->number[channel] &&
	    c->ended[channel].state != RXW_CS_NOTINIT) {
		if (h->type == RXW_BUSY)
			c->busy_until[channel] = out->now + BUSY_AVOID;
		rxw_ended_input(c, channel, run, out);
		return RXW_INPUT_DONE;
	}
	if (c->client || h->call < c->number[channel])
		return drop(run, RXW_DROP_CALL_NUMBER, out);
	return new_call(c, run, out);
}

void rxw_pconn_batch_end(struct rxw_pconn *c, bool dry, struct rxw_out *out)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL ||
		    !(p->ack.in_batch || (dry && p->ack.reason != 0 && p->ack.unacked > 1)))
			continue;
		rxw_ack_batch_end(p, dry, out);
		rxw_pcall_done_event(p, out); /* it may have been the final one */
		rxw_pcall_arm(p, out);
	}
	if (c->ended_owes != 0)
		rxw_ended_batch_end(c, out);
}

bool rxw_pconn_owes(const struct rxw_pconn *c)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->channel[i];

		if (p != NULL && p->ack.reason != 0 && (p->ack.now || p->ack.unacked > 1))
			return true;
	}
	return c->ended_owes != 0;
}

/* Is the channel free, and how gladly is it taken? 0: not free. */
static unsigned charm(const struct rxw_pconn *c, unsigned channel, uint64_t now)
{
	const struct rxw_pcall *p = c->channel[channel];

	if (p != NULL && rxw_pcall_live(p))
		return 0;
	if (now < c->busy_until[channel])
		return 1;
	return c->number[channel] != 0 ? 3 : 2; /* the server has its structures already */
}

bool rxw_pconn_has_free_channel(const struct rxw_pconn *c, uint64_t now)
{
	for (unsigned i = 0; i < 4; i++)
		if (charm(c, i, now) > 0)
			return true;
	return false;
}

int rxw_pconn_begin(struct rxw_pconn *c, struct rxw_pcall *call, uint64_t now)
{
	unsigned best = 0, channel = 0;

	if (c->error != 0)
		return -RXW_ECALL;
	for (unsigned i = 0; i < 4; i++) {
		unsigned value = charm(c, i, now);

		if (value > best) {
			best = value;
			channel = i;
		}
	}
	if (best == 0)
		return -RXW_EAGAIN;
	if (c->number[channel] >= LAST_NUMBER - 1)
		return -RXW_ELIMIT;
	if (c->channel[channel] != NULL)
		rxw_pcall_detach(c->channel[channel], NULL);
	rxw_ended_forget(c, channel);
	c->channel[channel] = call;
	rxw_pcall_init(call, c, channel, ++c->number[channel], now);
	rxw_pcall_arm(call, NULL);
	return 0;
}

void rxw_pconn_fail(struct rxw_pconn *c, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out)
{
	if (c->error != 0)
		return;
	c->error = code != 0 ? code : RXW_PROTOCOL_ERROR;
	c->error_origin = origin;
	rxw_pconn_challenge_over(c);
	if (tell)
		rxw_pconn_write_abort(c, out);
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			rxw_pcall_fail(c->channel[i], c->error, origin, false, out);
}

void rxw_pconn_close(struct rxw_pconn *c, struct rxw_out *out)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL || !p->timer.final_ack)
			continue;
		rxw_ack_timer(p, out);
		rxw_pcall_done_event(p, out);
		rxw_pcall_arm(p, out);
	}
}

void rxw_pconn_icmp(struct rxw_pconn *c, int error, uint32_t mtu, struct rxw_out *out)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL || !rxw_pcall_live(p))
			continue;
		if (error == EMSGSIZE)
			rxw_mtu_hint(&p->mtu, mtu);
		else if (p->timer.unreachable == 0 || p->timer.last_heard > p->timer.unreachable)
			p->timer.unreachable = out->now ? out->now : 1;
		rxw_pcall_arm(p, out);
	}
}

bool rxw_pconn_idle(const struct rxw_pconn *c)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && !rxw_pcall_done(c->channel[i]))
			return false;
	return true;
}
