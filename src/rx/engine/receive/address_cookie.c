/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cookies: unvalidated peers for which there is no room validate their address without occupying
 * any (rx-protocol 12.3). A cookie is the serial number of a PING; its acknowledgement returns it.
 */
#include "base/hash.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "proto/peer/validation.h"

bool rxw_address_validated(struct rxw_endpoint *ep, const struct rxw_addr *peer, uint64_t now)
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

/* Creates the secret when the first cookie is sent. */
static bool create_secret(struct rxw_endpoint *ep, uint64_t now)
{
	struct rxw_cookies *q;
	uint64_t secret[2];

	if (rxw_random(secret, sizeof(secret)))
		return false;
	q = rxw_cookies_create(secret, now);
	explicit_bzero(secret, sizeof(secret));
	if (!q)
		return false;
	rxw_unvalidated_lock(ep);
	if (!ep->cookies) {
		ep->cookies = q;
		q = NULL;
	}
	rxw_unvalidated_unlock(ep);
	rxw_cookies_destroy(q);
	return true;
}

void rxw_cookie_send(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a)
{
	struct rxw_endpoint *ep = s->ep;
	const struct rxw_path *path = run->path;
	struct rxw_ctl *ctl;
	uint32_t serial = 0;
	bool ready;

	if (a->out.ctl_count >= a->out.ctl_room)
		return;
	rxw_unvalidated_lock(ep);
	ready = ep->cookies;
	if (ready)
		serial = rxw_cookie_issue(ep->cookies, &path->peer, &run->head, a->out.now);
	rxw_unvalidated_unlock(ep);
	if (!ready && create_secret(ep, a->out.now)) {
		rxw_unvalidated_lock(ep);
		serial = rxw_cookie_issue(ep->cookies, &path->peer, &run->head, a->out.now);
		rxw_unvalidated_unlock(ep);
	}
	if (!serial)
		return;
	ctl = &a->out.ctl[a->out.ctl_count++];
	ctl->path = *path;
	ctl->padding = 0;
	ctl->client = false;
	ctl->length =
		(uint16_t)rxw_cookie_put_ping(ctl->bytes, &run->head, serial, rxw_mtu_of(ep),
					      (uint8_t)rxw_min32(rxw_window_of(ep), RXW_MAX_ACKS));
	rxw_count(&s->stats.cookies_sent, 1);
	rxw_count(&s->stats.packets_sent[RXW_ACK], 1);
}

bool rxw_cookie_matches(struct rxw_endpoint *ep, const struct rxw_addr *peer,
			const struct rxw_rxrun *run, uint64_t now)
{
	const struct rxw_ack *ack = rxw_run_ack(run);
	bool valid;

	if (ack == NULL || ack->reason != RXW_ACK_PING_RESPONSE)
		return false;
	rxw_unvalidated_lock(ep);
	valid = ep->cookies && rxw_cookie_check(ep->cookies, peer, &run->head, ack->serial, now);
	rxw_unvalidated_unlock(ep);
	return valid;
}

bool rxw_cookie_accept(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now)
{
	struct rxw_endpoint *ep = s->ep;
	struct rxw_peer *peer;

	if (!rxw_cookie_matches(ep, &run->path->peer, run, now))
		return false;
	rxw_peers_lock(ep);
	peer = rxw_peer_get(ep->peers, &run->path->peer, now);
	rxw_peers_unlock(ep);
	if (!peer)
		return false;
	rxw_peer_set_validated(peer, now);
	rxw_peer_unref(peer, now);
	rxw_count(&s->stats.cookies_returned, 1);
	return true;
}
