/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: their life, channels, errors (rx-protocol 2.3 to 2.5). */
#include <errno.h>

#include "proto/conn/conn.h"

#define LAST_NUMBER 0x7fffffffu

int rxw_pconn_init(struct rxw_pconn *c, const struct rxw_params *params,
		   const struct rxw_proto_ops *ops, struct rxw_peer *peer,
		   const struct rxw_path *path, uint32_t epoch, uint32_t cid, uint16_t service,
		   struct rxw_security *security, bool client, uint64_t now)
{
	c->params = params;
	c->ops = ops;
	c->peer = c->account = peer;
	rxw_peer_ref(peer);
	c->path = *path;
	c->epoch = epoch;
	c->cid = cid & ~3u;
	c->service = service;
	c->security_index = security->class.index;
	c->client = client;
	c->dead = params->dead;
	c->idle = client ? params->client_idle : params->server_idle;
	c->hard = params->hard;
	c->last_heard = c->last_sent = now;
	rxw_budget_init(&c->rx.memory, (int64_t)params->conn_memory);
	return rxw_auth_init(c, security);
}

void rxw_pconn_end(struct rxw_pconn *c, uint64_t now)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			rxw_pcall_detach(c->channel[i], NULL);
	rxw_auth_end(c);
	if (c->peer != NULL) {
		rxw_peer_unref(c->peer, now);
		rxw_peer_unref(c->account, now);
	}
	c->peer = c->account = NULL;
}

void rxw_pconn_fini(struct rxw_pconn *c, uint64_t now)
{
	rxw_pconn_end(c, now);
	rxw_auth_fini(c);
	rxw_pconn_forget_moves(c);
}

void rxw_pcall_detach(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;

	c->channel[p->channel] = NULL;
	rxw_pcall_abandon(p, out);
	c->ops->drop(p);
}

void rxw_pconn_challenge_wanted(struct rxw_pconn *c, struct rxw_out *out)
{
	if (rxw_auth_take_wanted(c))
		rxw_auth_challenge(c, false, out);
}

bool rxw_pcall_refuse(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;

	if (p->state != RXW_CS_PRECALL || p->error != 0 || c->channel[p->channel] != p)
		return false;
	rxw_ack_withdraw(p, out);
	rxw_pconn_write_busy(c, p->channel, p->number, out);
	rxw_pcall_detach(p, out);
	return true;
}

/* Its numbers are used up: no other call can follow. */
static bool is_used_up(const struct rxw_pconn *c, unsigned channel)
{
	return c->number[channel] >= LAST_NUMBER - 1;
}

bool rxw_pconn_used_up(const struct rxw_pconn *c)
{
	return is_used_up(c, 0) && is_used_up(c, 1) && is_used_up(c, 2) && is_used_up(c, 3);
}

/* How good a channel is for a new call; 0: it is not free. */
static unsigned channel_preference(const struct rxw_pconn *c, unsigned channel, uint64_t now)
{
	const struct rxw_pcall *p = c->channel[channel];

	if ((p != NULL && rxw_pcall_live(p)) || is_used_up(c, channel))
		return 0;
	if (now < c->busy_until[channel])
		return 1;
	return c->number[channel] != 0 ? 3 : 2; /* the server has its structures already */
}

bool rxw_pconn_has_free_channel(const struct rxw_pconn *c, uint64_t now)
{
	for (unsigned i = 0; i < 4; i++)
		if (channel_preference(c, i, now) > 0)
			return true;
	return false;
}

int rxw_pconn_begin(struct rxw_pconn *c, struct rxw_pcall *call, uint64_t now)
{
	unsigned best = 0, channel = 0;

	if (c->error != 0)
		return -RXW_ECALL;
	for (unsigned i = 0; i < 4; i++) {
		unsigned value = channel_preference(c, i, now);

		if (value > best) {
			best = value;
			channel = i;
		}
	}
	if (best == 0)
		return rxw_pconn_used_up(c) ? -RXW_ELIMIT : -RXW_EAGAIN;
	if (c->channel[channel] != NULL)
		rxw_pcall_detach(c->channel[channel], NULL);
	rxw_finished_clear(c, channel);
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
	rxw_auth_end_challenge(c);
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

		if (p == NULL || !p->ack.final)
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
		if (error == EMSGSIZE) {
			rxw_mtu_hint(&p->tx.mtu, mtu);
			if (p->tx.mtu.told != 0)
				rxw_send_check_path(p, out);
		} else if (rxw_pconn_moving(c, out->now))
			continue; /* the client may be elsewhere */
		else if (p->timer.unreachable == 0 || p->time.last_heard > p->timer.unreachable)
			p->timer.unreachable = out->now ? out->now : 1;
		rxw_pcall_arm(p, out);
	}
}

/*
 * A call that cannot begin yet, or whose reply the peer does not acknowledge although it is there. PINGs and their
 * answers tell of no use.
 */
static uint64_t call_unused_since(const struct rxw_pcall *p)
{
	if (rxw_pcall_awaits_attach(p))
		return p->time.began;
	if (p->state == RXW_CS_HOLD && p->tx.stuck_since != 0)
		return p->tx.stuck_since + p->timer.dead;
	return RXW_NEVER;
}

uint64_t rxw_pconn_unused_since(const struct rxw_pconn *c)
{
	uint64_t since = 0;

	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && !rxw_pcall_done(c->channel[i]))
			since = rxw_max64(since, call_unused_since(c->channel[i]));
	return since != 0 ? since : rxw_max64(c->last_heard, c->last_sent);
}

bool rxw_pconn_idle(const struct rxw_pconn *c)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && !rxw_pcall_done(c->channel[i]))
			return false;
	return true;
}
