/* SPDX-License-Identifier: BSD-2-Clause */
/* A client that has another address or port: its connection follows it (rx-protocol 2.3). */
#include "proto/conn/conn.h"

#define ASK_APART  (100 * RXW_MS)
#define MOVES_MOST 64u /* paths that a connection keeps */
/* One that was left may still be read by a thread that sends; after this time it is used for another address. */
#define LEFT_FOR   (30 * RXW_SEC)

/* The packet is for a live call. */
static bool is_movable(const struct rxw_pconn *c, const struct rxw_header *h)
{
	const struct rxw_pcall *p = c->channel[h->cid & 3];

	return !c->client && c->error == 0 && !c->evicted && h->security == c->security_index &&
	       h->service == c->service && p != NULL && p->number == h->call && rxw_pcall_live(p);
}

/*
 * The code of an ABORT for a packet from another address, 0: none. The call has failed, and the
 * ABORT to where the client was did not reach it. Only what the call itself would answer counts.
 */
static int32_t failed_with(const struct rxw_pconn *c, const struct rxw_rxrun *run)
{
	const struct rxw_header *h = &run->head;
	const struct rxw_pcall *p = c->channel[h->cid & 3];
	const struct rxw_finished_call *e = &c->finished[h->cid & 3];

	if (c->client || c->evicted || h->security != c->security_index ||
	    h->service != c->service || h->call == 0 || h->call != c->number[h->cid & 3])
		return 0;
	if (h->type == RXW_ACK) {
		const struct rxw_ack *ack = rxw_run_ack(run);

		if (ack == NULL || (!(h->flags & RXW_REQUEST_ACK) && ack->reason != RXW_ACK_PING))
			return 0;
	} else if (h->type != RXW_DATA) {
		return 0;
	}
	if (c->error != 0)
		return c->error;
	if (p != NULL)
		return p->error;
	return e->state == RXW_CS_RESET ? e->error : 0;
}

static uint64_t address_of(const struct rxw_pconn *c, const struct rxw_rxrun *run)
{
	return rxw_addr_hash(&run->path->peer, c->params->secret, true);
}

/* With the connection's lock only: threads that look for connections may read the path meanwhile. */
static bool have_roam(struct rxw_pconn *c)
{
	struct rxw_roam *roam = c->roam;

	if (roam != NULL)
		return true;
	roam = rxw_mem_get(NULL, sizeof(*roam));
	if (roam == NULL)
		return false;
	atomic_init(&roam->path, &c->path);
	atomic_store_explicit(&c->roam, roam, memory_order_release);
	return true;
}

/* An ACK that names the PING, from the address that was asked. */
static bool answers_ping(const struct rxw_pconn *c, const struct rxw_rxrun *run)
{
	const struct rxw_asked *asked = &c->roam->asked;
	const struct rxw_ack *ack = run->head.type == RXW_ACK ? rxw_run_ack(run) : NULL;

	return ack != NULL && asked->at != 0 && ack->serial == asked->serial &&
	       asked->address == address_of(c, run);
}

void rxw_pconn_forget_moves(struct rxw_pconn *c)
{
	struct rxw_moved *m;

	if (c->roam == NULL)
		return;
	while ((m = c->roam->moved) != NULL) {
		c->roam->moved = m->before;
		rxw_mem_give(NULL, m, sizeof(*m));
	}
	rxw_mem_give(NULL, c->roam, sizeof(*c->roam));
	c->roam = NULL;
}

bool rxw_pconn_moving(const struct rxw_pconn *c, uint64_t now)
{
	return c->roam != NULL && c->roam->asked.at != 0 && now < c->roam->asked.at + c->dead;
}

void rxw_pconn_ask_end(struct rxw_pconn *c, struct rxw_pstats *stats)
{
	if (c->roam == NULL || c->roam->asked.at == 0)
		return;
	rxw_tally(stats, &stats->moves[RXW_MOVE_EXPIRED], 1);
	c->roam->asked.at = 0;
}

/* The PING has less than three times the bytes of any packet. */
int32_t rxw_pconn_ask(struct rxw_pconn *c, const struct rxw_rxrun *run, struct rxw_out *out)
{
	uint64_t srtt = atomic_load_explicit(&c->peer->srtt, memory_order_relaxed);
	struct rxw_asked *asked;
	struct rxw_ctl *ctl;

	if (!is_movable(c, &run->head))
		return failed_with(c, run);
	if (out->ctl_count >= out->ctl_room || !have_roam(c))
		return 0;
	asked = &c->roam->asked;
	if (answers_ping(c, run)) /* but not in silence */
		rxw_tally(out->stats, &out->stats->moves[RXW_MOVE_REFUSED], 1);
	if (asked->at != 0 && out->now < asked->at + rxw_max64(ASK_APART, 2 * srtt))
		return 0;
	if (asked->address != address_of(c, run))
		rxw_pconn_ask_end(c, out->stats);
	ctl = &out->ctl[out->ctl_count++];
	ctl->path = *run->path;
	ctl->padding = 0;
	ctl->client = false;
	asked->serial = rxw_ack_put_probe(c->channel[run->head.cid & 3], ctl, out->now);
	asked->address = address_of(c, run);
	asked->at = out->now;
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			rxw_pcall_moving(c->channel[i]);
	rxw_tally(out->stats, &out->stats->move_pings, 1);
	rxw_tally(out->stats, &out->stats->packets_sent[RXW_ACK], 1);
	return 0;
}

bool rxw_pconn_proves(const struct rxw_pconn *c, const struct rxw_rxrun *run)
{
	return c->roam != NULL && is_movable(c, &run->head) && answers_ping(c, run) &&
	       c->last_heard <= c->roam->asked.at;
}

static bool paths_equal(const struct rxw_path *a, const struct rxw_path *b)
{
	return rxw_addr_equal(&a->peer, &b->peer) && rxw_addr_equal(&a->local, &b->local) &&
	       a->ifindex == b->ifindex;
}

/* A path that was left long ago, or NULL. */
static struct rxw_moved *left_long_ago(const struct rxw_pconn *c, uint64_t now)
{
	struct rxw_moved *oldest = NULL;

	for (struct rxw_moved *m = c->roam->moved; m != NULL; m = m->before)
		if (&m->path != rxw_pconn_path(c) && now >= m->used_at + LEFT_FOR &&
		    (oldest == NULL || m->used_at < oldest->used_at))
			oldest = m;
	return oldest;
}

/* The connection's own copy of a path; NULL: out of memory, or too many in a short time. */
static const struct rxw_path *keep_path(struct rxw_pconn *c, const struct rxw_path *path,
					uint64_t now)
{
	const struct rxw_path *left = rxw_pconn_path(c);
	struct rxw_moved *m, *found = NULL;
	unsigned n = 0;

	for (m = c->roam->moved; m != NULL; m = m->before, n++) {
		if (&m->path == left)
			m->used_at = now;
		if (paths_equal(&m->path, path))
			found = m;
	}
	if (paths_equal(&c->path, path))
		return &c->path;
	if (found == NULL && n >= MOVES_MOST) {
		found = left_long_ago(c, now);
		if (found == NULL)
			return NULL;
		found->path = *path;
	} else if (found == NULL) {
		found = rxw_mem_get(NULL, sizeof(*found));
		if (found == NULL)
			return NULL;
		found->path = *path;
		found->before = c->roam->moved;
		c->roam->moved = found;
	}
	found->used_at = now;
	return &found->path;
}

bool rxw_pconn_move(struct rxw_pconn *c, struct rxw_peer *peer, const struct rxw_path *path,
		    struct rxw_out *out)
{
	const struct rxw_path *kept = keep_path(c, path, out->now);
	bool same_host;

	if (kept == NULL)
		return false;
	same_host = rxw_addr_same_host(&rxw_pconn_path(c)->peer, &kept->peer);
	rxw_peer_unref(c->peer, out->now);
	rxw_peer_ref(peer);
	rxw_peer_set_validated(peer, out->now);
	c->peer = peer;
	c->roam->path = kept;
	/* An answer to a PING to the old address proves nothing any more. */
	c->rx.proof_serial = 0;
	c->rx.proof_asked = 0;
	if (!same_host)
		c->peer_max_mtu = 0;
	c->roam->asked.at = 0;
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && rxw_pcall_live(c->channel[i]))
			rxw_pcall_moved(c->channel[i], same_host, out);
	rxw_auth_moved(c, out);
	rxw_pconn_challenge_wanted(c, out);
	return true;
}
