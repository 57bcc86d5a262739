/* SPDX-License-Identifier: BSD-2-Clause */
/* Strangers for whom there is no place: they prove their address without one (rx-protocol 12.3). */
#include "base/hash.h"
#include "engine/lock.h"
#include "engine/objects.h"

bool rxw_stranger_known(struct rxw_endpoint *ep, const struct rxw_addr *peer, uint64_t now)
{
	struct rxw_peer *p;
	bool known;

	if (!rxw_peer_maybe_validated(ep->peers, peer, now))
		return false;
	rxw_peers_lock(ep);
	p = rxw_peer_find(ep->peers, peer);
	known = p && rxw_peer_validated(p, now);
	rxw_peers_unlock(ep);
	return known;
}

/* The first question of all: from now on there is a secret. */
static bool begin(struct rxw_endpoint *ep, uint64_t now)
{
	struct rxw_cookies *q;
	uint64_t secret[2];

	if (rxw_random(secret, sizeof(secret)))
		return false;
	q = rxw_cookies_create(secret, now);
	explicit_bzero(secret, sizeof(secret));
	if (!q)
		return false;
	rxw_strangers_lock(ep);
	if (!ep->questions) {
		ep->questions = q;
		q = NULL;
	}
	rxw_strangers_unlock(ep);
	rxw_cookies_destroy(q);
	return true;
}

void rxw_stranger_ask(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a)
{
	struct rxw_endpoint *ep = s->ep;
	const struct rxw_path *path = run->path;
	struct rxw_ctl *ctl;
	uint32_t serial = 0;
	bool begun;

	if (a->out.ctl_count >= a->out.ctl_room)
		return;
	rxw_strangers_lock(ep);
	begun = ep->questions;
	if (begun)
		serial = rxw_cookie_issue(ep->questions, &path->peer, &run->head, a->out.now);
	rxw_strangers_unlock(ep);
	if (!begun && begin(ep, a->out.now)) {
		rxw_strangers_lock(ep);
		serial = rxw_cookie_issue(ep->questions, &path->peer, &run->head, a->out.now);
		rxw_strangers_unlock(ep);
	}
	if (!serial)
		return;
	ctl = &a->out.ctl[a->out.ctl_count++];
	ctl->path = *path;
	ctl->padding = 0;
	ctl->client = false;
	ctl->length = (uint16_t)rxw_cookie_put_ping(ctl->bytes, &run->head, serial, ep->params.mtu,
						    ep->params.window);
	rxw_count(&s->stats.strangers_asked, 1);
	rxw_count(&s->stats.packets_sent[RXW_ACK], 1);
}

bool rxw_stranger_answered(struct rxw_endpoint *ep, const struct rxw_addr *peer,
			   const struct rxw_rxrun *run, uint64_t now)
{
	struct rxw_ack ack;
	bool right;

	if (!rxw_ack_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE, &ack) ||
	    ack.reason != RXW_ACK_PING_RESPONSE)
		return false;
	rxw_strangers_lock(ep);
	right = ep->questions && rxw_cookie_check(ep->questions, peer, &run->head, ack.serial, now);
	rxw_strangers_unlock(ep);
	return right;
}

bool rxw_stranger_answers(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now)
{
	struct rxw_endpoint *ep = s->ep;
	struct rxw_peer *peer;

	if (!rxw_stranger_answered(ep, &run->path->peer, run, now))
		return false;
	rxw_peers_lock(ep);
	peer = rxw_peer_get(ep->peers, &run->path->peer, now);
	rxw_peers_unlock(ep);
	if (!peer)
		return false;
	rxw_peer_set_validated(peer, now);
	rxw_peer_unref(peer, now);
	rxw_count(&s->stats.strangers_proved, 1);
	return true;
}
