/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE: when they are sent, what an answer sets free (6.1, 7.1). */
#include "proto/internal.h"

#define CHALLENGE_APART	 (500 * RXW_MS)
#define CHALLENGE_SECOND (1250 * RXW_MS)
#define CHALLENGE_LIFE	 (30 * RXW_SEC)
#define RESPONSES	 8u /* per second */
#define ABORT_DELAY	 RXW_SEC
#define BODY		 (RXW_ACK_MAX_SIZE - RXW_HEADER_SIZE)

bool rxw_pconn_authenticated(const struct rxw_pconn *c)
{
	const struct rxw_security_ops *ops = c->security->ops;

	return c->client || ops->challenge == NULL ||
	       (ops->authenticated != NULL && ops->authenticated(c->sec));
}

void rxw_pconn_challenge(struct rxw_pconn *c, bool timer, struct rxw_out *out)
{
	struct rxw_ctl *ctl;
	int size;

	if (c->challenge_since != 0 && out->now < c->challenge_sent + CHALLENGE_APART && !timer)
		return;
	ctl = rxw_ctl_add(c, out, RXW_CHALLENGE, 0, 0, 0, 0, 0);
	if (ctl == NULL)
		return;
	size = c->security->ops->challenge(c->security, c->sec, ctl->bytes + RXW_HEADER_SIZE, BODY);
	if (size < 0) {
		out->ctl_count--;
		return;
	}
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + (unsigned)size);
	c->challenge_sent = out->now;
	if (c->challenge_since == 0) {
		c->challenge_since = out->now ? out->now : 1;
		c->challenge_at = out->now + CHALLENGE_APART;
		c->challenges = 0;
	}
}

void rxw_pconn_input_challenge(struct rxw_pconn *c, const struct rxw_rxrun *run,
			       struct rxw_out *out)
{
	const struct rxw_security_ops *ops = c->security->ops;
	const uint32_t id[2] = {c->epoch, c->cid};
	bool active = false;
	struct rxw_ctl *ctl;
	int size;

	for (unsigned i = 0; i < 4; i++)
		active |= c->channel[i] != NULL && rxw_pcall_live(c->channel[i]);
	if (!active || ops->respond == NULL) {
		rxw_count(&out->stats->drops[RXW_DROP_STATE], 1);
		return;
	}
	if (out->now >= c->responded_at + RXW_SEC)
		c->responses = 0;
	if (c->responses >= RESPONSES) {
		rxw_count(&out->stats->drops[RXW_DROP_RATE], 1);
		return;
	}
	ctl = rxw_ctl_add(c, out, RXW_RESPONSE, 0, 0, 0, 0, 0);
	if (ctl == NULL)
		return;
	size = ops->respond(c->security, c->sec, run->data + RXW_HEADER_SIZE,
			    run->last_size - RXW_HEADER_SIZE, id, c->number,
			    ctl->bytes + RXW_HEADER_SIZE, BODY);
	if (size < 0) {
		/* Not one of this class: forged or damaged. */
		out->ctl_count--;
		rxw_count(&out->stats->drops[RXW_DROP_VERIFY], 1);
		return;
	}
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + (unsigned)size);
	if (c->responses++ == 0)
		c->responded_at = out->now;
	c->last_heard = out->now;
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			c->channel[i]->timer.last_heard = out->now;
}

void rxw_pconn_proved(struct rxw_pconn *c, struct rxw_out *out)
{
	rxw_peer_prove(c->peer, out->now);
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL || !rxw_pcall_live(p))
			continue;
		p->timer.unsolicited = 0;
		if (p->tx.proof_asked != 0) {
			p->tx.proof_asked = 0;
			rxw_pcall_offer(p, 0, out);
		}
		rxw_pcall_try_attach(p, out);
		rxw_pcall_arm(p, out);
	}
}

void rxw_pconn_input_response(struct rxw_pconn *c, const struct rxw_rxrun *run, struct rxw_out *out)
{
	const struct rxw_security_ops *ops = c->security->ops;
	const uint32_t id[2] = {c->epoch, c->cid};
	uint32_t calls[4] = {0};
	int32_t code = RXW_PROTOCOL_ERROR;

	if (c->challenge_since == 0 || ops->check_response == NULL || rxw_pconn_authenticated(c)) {
		rxw_count(&out->stats->drops[RXW_DROP_STATE], 1);
		return;
	}
	if (ops->check_response(c->security, c->sec, run->data + RXW_HEADER_SIZE,
				run->last_size - RXW_HEADER_SIZE, run->head.spare, id, calls,
				&code) != 0) {
		rxw_pconn_fail(c, code, RXW_ORIGIN_LOCAL, false, out);
		c->abort_at = out->now + ABORT_DELAY;
		return;
	}
	c->challenge_since = c->challenge_at = 0;
	c->last_heard = out->now;
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL && c->ended[i].state == RXW_CS_NOTINIT && calls[i] > c->number[i])
			c->number[i] = calls[i];
		if (p == NULL || !rxw_pcall_live(p))
			continue;
		rxw_recvq_verify(p, out);
		p->timer.last_heard = out->now;
		rxw_pcall_arm(p, out);
	}
	rxw_pconn_proved(c, out);
}

uint64_t rxw_pconn_deadline(const struct rxw_pconn *c)
{
	uint64_t at = RXW_NEVER;

	if (c->challenge_since != 0)
		at = c->challenge_at;
	if (c->abort_at != 0)
		at = rxw_min64(at, c->abort_at);
	return at;
}

void rxw_pconn_timer(struct rxw_pconn *c, struct rxw_out *out)
{
	if (c->abort_at != 0 && out->now >= c->abort_at) {
		c->abort_at = 0;
		rxw_pconn_write_abort(c, out);
	}
	if (c->challenge_since == 0 || out->now < c->challenge_at)
		return;
	if (out->now >= c->challenge_since + CHALLENGE_LIFE) {
		c->challenge_since = c->challenge_at = 0;
		for (unsigned i = 0; i < 4; i++)
			if (c->channel[i] != NULL && c->channel[i]->state == RXW_CS_PRECALL)
				rxw_pcall_fail(c->channel[i], RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, true,
					       out);
		return;
	}
	if (c->challenges < 2) {
		c->challenges++;
		rxw_pconn_challenge(c, true, out);
	}
	c->challenge_at =
		c->challenge_since + (c->challenges == 1 ? CHALLENGE_SECOND : CHALLENGE_LIFE);
}
