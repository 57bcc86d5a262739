/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of unvalidated addresses: few, and short-lived (rx-protocol 12.3). Peers for which there is no room
 * validate their address with a cookie: the serial number of a PING, which its acknowledgement returns.
 */
#include <string.h>

#include "base/hash.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "proto/peer/validation.h"

#define COOKIE_SIZE 128 /* largest size of a cookie with its IP and UDP headers, in bytes */

bool rxw_unvalidated_admit(struct rxw_endpoint *ep, const struct rxw_path *path, bool *crowded)
{
	uint32_t most = ep->settings.constants.unvalidated_max, before;
	bool local = rxw_path_is_local(path);

	before = atomic_fetch_add_explicit(&ep->admit.unvalidated, 1, memory_order_relaxed);
	*crowded = !local && before >= most / 4;
	/* Programs of this host may still connect when others have taken all places. */
	if (before < (local ? 2 * most : most))
		return true;
	rxw_unvalidated_dismiss(ep);
	return false;
}

void rxw_unvalidated_dismiss(struct rxw_endpoint *ep)
{
	rxw_count_down(&ep->admit.unvalidated);
}

void rxw_unvalidated_recheck(struct rxw_connection *c, uint64_t now)
{
	if (!c->admit.unvalidated || !rxw_peer_validated(c->p.peer, now))
		return;
	c->admit.unvalidated = false;
	rxw_unvalidated_dismiss(c->ep);
	rxw_count_validated(c);
}

bool rxw_unvalidated_needs_cookie(struct rxw_connection *c, const struct rxw_rxrun *run,
				  uint64_t now)
{
	const struct rxw_header *h = &run->head;

	if (rxw_path_is_local(rxw_pconn_path(&c->p)) || rxw_peer_validated(c->p.peer, now))
		return false;
	if (h->type == RXW_DATA)
		return h->call > 1 && h->call > c->p.number[h->cid & 3] &&
		       rxw_peer_allowance(c->p.peer, now) >= COOKIE_SIZE;
	if (h->type == RXW_ACK &&
	    rxw_cookie_matches(c->ep, &rxw_pconn_path(&c->p)->peer, run, now)) {
		rxw_count(&rxw_home(c)->stats.cookies_returned, 1);
		rxw_peer_set_validated(c->p.peer, now);
	}
	return false;
}

void rxw_unvalidated_send_cookie(struct rxw_shard *s, struct rxw_connection *c,
				 const struct rxw_rxrun *run, struct rxw_effects *a)
{
	unsigned before = a->out.ctl_count;

	rxw_cookie_send(s, run, a);
	if (a->out.ctl_count > before)
		rxw_peer_may_send(c->p.peer, a->out.ctl[before].length, 1, a->out.now);
}

bool rxw_address_validated(struct rxw_endpoint *ep, const struct rxw_addr *peer, uint64_t now)
{
	struct rxw_peer *p;
	bool known;

	if (!rxw_peer_maybe_validated(ep->peers.table, peer, now))
		return false;
	rxw_peers_lock(ep);
	p = rxw_peer_find(ep->peers.table, peer);
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
	if (!ep->admit.cookies) {
		ep->admit.cookies = q;
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
	ready = ep->admit.cookies;
	if (ready)
		serial = rxw_cookie_issue(ep->admit.cookies, &path->peer, &run->head, a->out.now);
	rxw_unvalidated_unlock(ep);
	if (!ready && create_secret(ep, a->out.now)) {
		rxw_unvalidated_lock(ep);
		serial = rxw_cookie_issue(ep->admit.cookies, &path->peer, &run->head, a->out.now);
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
	valid = ep->admit.cookies &&
		rxw_cookie_check(ep->admit.cookies, peer, &run->head, ack->serial, now);
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
	peer = rxw_peer_get(ep->peers.table, &run->path->peer, now);
	rxw_peers_unlock(ep);
	if (!peer)
		return false;
	rxw_peer_set_validated(peer, now);
	rxw_peer_unref(peer, now);
	rxw_count(&s->stats.cookies_returned, 1);
	return true;
}
