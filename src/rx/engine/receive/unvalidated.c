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

#define LIFETIME      (15 * RXW_SEC) /* of a silent connection */
#define RECHECK_AFTER RXW_SEC	     /* until a connection with an active call is checked again */
#define COOKIE_SIZE   128    /* largest size of a cookie with its IP and UDP headers, in bytes */
#define CHECK_MAX     64     /* connections checked under one lock */
#define CHECK_TOTAL   256    /* connections checked before packets are received again */

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

/*
 * Shard's lock held; takes over the reference. The connection is checked in the second that follows
 * `at`.
 */
static void schedule_check(struct rxw_shard_admit *b, struct rxw_connection *c, uint64_t at)
{
	struct rxw_unvalidated_list *slot;
	uint64_t second = at / RXW_SEC + 1;

	if (second <= b->second)
		second = b->second + 1;
	slot = &b->slot[second % RXW_UNVALIDATED_SLOTS];
	c->admit.next = NULL;
	if (slot->head)
		slot->tail->admit.next = c;
	else
		slot->head = c;
	slot->tail = c;
	b->count++;
}

/* Shard's lock held: remove the first of a list. Its reference becomes the caller's. */
static struct rxw_connection *remove_first(struct rxw_shard_admit *b,
					   struct rxw_unvalidated_list *list)
{
	struct rxw_connection *c = list->head;

	assert(c && atomic_load(&b->count));
	list->head = c->admit.next;
	c->admit.next = NULL;
	b->count--;
	return c;
}

void rxw_unvalidated_note(struct rxw_shard *s, struct rxw_connection *c, uint64_t now)
{
	rxw_count(&s->stats.unvalidated_connections, 1);
	rxw_conn_ref(c);
	rxw_table_lock(s);
	schedule_check(&s->admit, c, now + LIFETIME);
	rxw_table_unlock(s);
}

void rxw_unvalidated_forget_all(struct rxw_shard *s)
{
	struct rxw_shard_admit *b = &s->admit;

	while (b->due.head)
		rxw_conn_unref(remove_first(b, &b->due));
	for (unsigned i = 0; i < RXW_UNVALIDATED_SLOTS; i++)
		while (b->slot[i].head)
			rxw_conn_unref(remove_first(b, &b->slot[i]));
}

/* Returns when to check again; 0: its address was validated, or it expired (*gone). */
static uint64_t check_unvalidated(struct rxw_shard *s, struct rxw_connection *c, uint64_t now,
				  bool *gone)
{
	uint64_t again = 0;

	assert(rxw_is_locked(&s->lock));
	*gone = false;
	rxw_conn_lock(c);
	rxw_unvalidated_recheck(c, now);
	if (c->admit.unvalidated) {
		again = rxw_pconn_idle(&c->p) ? rxw_last_activity(c) + LIFETIME
					      : now + RECHECK_AFTER;
		*gone = now > again;
	}
	rxw_conn_unlock(c);
	return *gone ? 0 : again;
}

/*
 * Shard's lock held: move the next slot whose second has come to the due list. False: there is
 * none.
 */
static bool next_due(struct rxw_shard_admit *b, uint64_t second)
{
	struct rxw_unvalidated_list *slot;

	if (b->second + RXW_UNVALIDATED_SLOTS < second)
		b->second = second - RXW_UNVALIDATED_SLOTS; /* all slots are due */
	if (b->second >= second)
		return false;
	slot = &b->slot[++b->second % RXW_UNVALIDATED_SLOTS];
	b->due = *slot;
	slot->head = NULL;
	return true;
}

/*
 * Check some of the connections that are due; *checked is incremented for each. False: none is
 * left.
 */
static bool reap_some(struct rxw_shard *s, uint64_t now, unsigned *checked)
{
	struct rxw_connection *left[CHECK_MAX];
	struct rxw_shard_admit *b = &s->admit;
	unsigned n = 0;
	bool gone[CHECK_MAX], more;

	rxw_table_lock(s);
	for (unsigned i = 0; b->due.head && i < CHECK_MAX; i++, ++*checked) {
		struct rxw_connection *c = remove_first(b, &b->due);
		uint64_t again = check_unvalidated(s, c, now, &gone[n]);

		if (again)
			schedule_check(b, c, again);
		else
			left[n++] = c;
	}
	more = b->due.head || next_due(b, now / RXW_SEC);
	rxw_table_unlock(s);
	for (unsigned k = 0; k < n; k++) {
		if (gone[k])
			rxw_conn_remove(left[k]);
		rxw_conn_unref(left[k]);
	}
	return more;
}

bool rxw_unvalidated_reap(struct rxw_shard *s, uint64_t now)
{
	unsigned checked = 0;

	while (reap_some(s, now, &checked))
		if (checked >= CHECK_TOTAL)
			return false;
	return true;
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
