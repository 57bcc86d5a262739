/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies to VERSION and DEBUG packets: access, rate limits and contents (rx-protocol 8). */
#include <time.h>

#include "base/assert.h"
#include "base/debugfmt.h"
#include "engine/lock.h"
#include "proto/peer/event.h"

/* The encoding of rxdebug, and the bits of debugConn that we use. */
enum {
	CONN_MAKECALL_WAITING = 1,
	CONN_DESTROY_ME = 2
};
enum {
	MODE_SENDING = 1,
	MODE_RECEIVING = 2,
	MODE_ERROR = 3,
	MODE_EOF = 4
};
enum {
	CALL_READER_WAIT = 1,
	CALL_WAIT_WINDOW_ALLOC = 2,
	CALL_WAIT_PROC = 16
};
enum {
	OTHER_IN = 1,
	OTHER_OUT = 2
};
enum {
	SEC_NO_STATE = 1,
	SEC_AUTHENTICATED = 2,
	SEC_EXPIRED = 4,
	SEC_CHECKSUM = 8
};

#define RTT_PEERS 64u /* peers examined for the round-trip times of rx_statistics */

/*
 * The work for DEBUG packets is limited in steps: a slot or an entry of a table counts as one,
 * taking a connection's lock as several. A packet may take STEPS. If they do not suffice it gets no
 * reply, and the next request continues where it stopped. The total of all packets is limited to
 * one step in STEP_NS.
 */
#define STEPS	    65536u
#define LOCK_STEPS  8u
#define STEP_NS	    500u
#define STEPS_SAVED (100 * RXW_MS)

/* A request and its remaining budget. */
struct request {
	struct rxw_shard *shard;
	bool local; /* from this host: a rate limit of its own, and it sees connection ids */
	uint64_t now;
	unsigned steps; /* steps left for this packet */
};

static uint64_t load_counter(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* ---- access ---- */

static bool may_debug(struct rxw_endpoint *ep, const struct rxw_path *path, bool local)
{
	bool allowed;

	switch ((enum rxw_debug_access)atomic_load_explicit(&ep->debug.access,
							    memory_order_relaxed)) {
	case RXW_DEBUG_OFF:
		return false;
	case RXW_DEBUG_ANY:
		return true;
	case RXW_DEBUG_NET:
		rxw_unvalidated_lock(ep);
		allowed = ep->debug.net_valid && rxw_cidr_has(&ep->debug.net, &path->peer);
		rxw_unvalidated_unlock(ep);
		return local || allowed;
	case RXW_DEBUG_LOCAL:
		break;
	}
	return local;
}

static bool within_rate(struct rxw_endpoint *ep, const struct request *request)
{
	bool ok;

	rxw_unvalidated_lock(ep);
	ok = ep->debug.answers_at <= request->now &&
	     rxw_rate_take(request->local ? &ep->admit.local_rate : &ep->admit.answer_rate,
			   request->now);
	rxw_unvalidated_unlock(ep);
	return ok;
}

/* Charges the steps that were taken. Unused budget accumulates, but not for long. */
static void charge_steps(struct rxw_endpoint *ep, const struct request *request)
{
	uint64_t least = request->now > STEPS_SAVED ? request->now - STEPS_SAVED : 0;

	assert(request->steps <= STEPS);
	if (request->steps == STEPS)
		return;
	rxw_unvalidated_lock(ep);
	if (ep->debug.answers_at < least)
		ep->debug.answers_at = least;
	ep->debug.answers_at += (uint64_t)(STEPS - request->steps) * STEP_NS;
	rxw_unvalidated_unlock(ep);
}

/* ---- type 1: basic statistics ---- */

static size_t put_stats(uint8_t *out, struct rxw_endpoint *ep)
{
	int64_t limit = ep->engine->memory.limit, used = atomic_load(&ep->engine->memory.used);
	uint32_t size = rxw_mtu_of(ep);
	struct rxw_workers_count workers;
	struct rxw_debug_stats v = {.used_fds = (uint8_t)ep->shard_count};
	uint64_t executed;

	v.packets = (uint32_t)(limit / size);
	v.free_packets = used < limit ? (uint32_t)((limit - used) / size) : 0;
	rxw_workers_count(ep, &workers);
	executed = workers.executed;
	v.waiting = workers.waiting;
	v.waited = workers.waited;
	v.idle_threads = workers.idle;
	for (unsigned i = 0; i < ep->shard_count; i++)
		executed += load_counter(&ep->shard[i].handlers_inline);
	v.calls_executed = (uint32_t)executed;
	return rxw_debug_stats_put(out, &v);
}

/* ---- types 2 and 3: connections ---- */

static uint8_t find_call_mode(const struct rxw_pcall *p)
{
	if (p->error)
		return MODE_ERROR;
	if (p->state == RXW_CS_DALLY || p->state == RXW_CS_HOLD)
		return MODE_EOF;
	return rxw_pcall_sends(p) ? MODE_SENDING : MODE_RECEIVING;
}

static void fill_call(struct rxw_debug_conn *v, unsigned i, const struct rxw_call *call)
{
	const struct rxw_pcall *p = &call->p;
	bool ended = false;

	v->call_state[i] = (uint8_t)p->state;
	v->call_mode[i] = find_call_mode(p);
	if (call->w.state == RXW_WRITER_WAITING)
		v->call_flags[i] |= CALL_WAIT_WINDOW_ALLOC;
	else if (call->sleep.threads)
		v->call_flags[i] |= CALL_READER_WAIT;
	if (!p->client && p->state == RXW_CS_PRECALL && call->attached)
		v->call_flags[i] |= CALL_WAIT_PROC;
	if (rxw_pcall_readable(p, &ended))
		v->call_other[i] |= OTHER_IN;
	if (rxw_pcall_queued(p))
		v->call_other[i] |= OTHER_OUT;
}

/* These statistics number security classes differently than the wire. */
static uint8_t find_class_number(uint8_t security_index)
{
	switch (security_index) {
	case 0:
		return 1;
	case 2:
		return 3;
	case 4:
		return 4;
	default:
		return 0;
	}
}

static void fill_host(uint8_t host[4], const struct rxw_addr *a)
{
	if (a->len && a->u.sa.sa_family == AF_INET)
		memcpy(host, &a->u.in.sin_addr, 4);
}

static uint32_t find_mtu_towards(const struct rxw_endpoint *ep, struct rxw_peer *peer)
{
	uint32_t mtu = atomic_load_explicit(&peer->mtu, memory_order_relaxed);

	return mtu ? mtu : rxw_mtu_of(ep);
}

/*
 * Level and state of the security class. The expiry of the ticket is shown with connection ids
 * only.
 */
static void fill_security(struct rxw_debug_conn *v, const struct rxw_pconn *p, bool ids)
{
	const struct rxw_security_class *k = &p->auth.security->class;
	struct rxw_identity identity = {.size = sizeof(identity), .index = k->index};

	if (k->challenge == NULL)
		return; /* a class without authentication */
	if (!p->auth.authenticated || (k->identity && k->identity(p->auth.sec, &identity))) {
		v->sec_flags = SEC_NO_STATE;
		return;
	}
	v->sec_level = p->auth.level;
	v->sec_flags = SEC_AUTHENTICATED | (k->index == 2 ? SEC_CHECKSUM : 0);
	if (!k->identity || identity.expires <= 0 || identity.expires >= UINT32_MAX)
		return;
	if (time(NULL) > identity.expires)
		v->sec_flags |= SEC_EXPIRED;
	if (ids)
		v->sec_expires = (uint32_t)identity.expires;
}

/* Connection's lock held. */
static void fill_conn(struct rxw_debug_conn *v, const struct rxw_connection *c, bool ids)
{
	const struct rxw_pconn *p = &c->p;

	fill_host(v->host, &rxw_pconn_path(p)->peer);
	v->port = rxw_addr_port(&rxw_pconn_path(p)->peer);
	v->cid = ids ? p->cid : 0;
	v->epoch = ids ? p->epoch : 0;
	v->serial = p->serial;
	v->error = p->error;
	v->flags = (uint8_t)((c->channel_waiters ? CONN_MAKECALL_WAITING : 0) |
			     (c->released ? CONN_DESTROY_ME : 0));
	v->type = p->client ? 0 : 1;
	v->security = p->security_index;
	v->sec_type = find_class_number(p->security_index);
	fill_security(v, p, ids);
	v->sec_packets_received = (uint32_t)p->count.packets_received;
	v->sec_packets_sent = (uint32_t)p->count.packets_sent;
	v->sec_bytes_received = (uint32_t)p->count.bytes_received;
	v->sec_bytes_sent = (uint32_t)p->count.bytes_sent;
	v->nat_mtu = find_mtu_towards(c->ep, p->peer);
	for (unsigned i = 0; i < 4; i++) {
		assert(!p->channel[i] || p->channel[i]->conn == p);
		v->call[i] = p->number[i];
		if (p->channel[i]) {
			fill_call(v, i, rxw_call_of(p->channel[i]));
		} else if (p->finished[i].state != RXW_CS_NOTINIT) {
			v->call_state[i] = p->finished[i].state;
			v->call_mode[i] =
				p->finished[i].state == RXW_CS_RESET ? MODE_ERROR : MODE_EOF;
		}
	}
}

/*
 * Is a caller waiting for a channel, was it released, or does it have a call that has not ended
 * (rx-protocol 8.2)?
 */
static bool is_connection_busy(const struct rxw_connection *c)
{
	if (c->channel_waiters || c->released)
		return true;
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->p.channel[i];

		if (p && (p->state == RXW_CS_PRECALL || p->state == RXW_CS_ACTIVE))
			return true;
	}
	return false;
}

static bool check_connection_busy(struct rxw_connection *c, unsigned *steps)
{
	bool busy;

	*steps -= *steps < LOCK_STEPS ? *steps : LOCK_STEPS;
	rxw_conn_lock(c);
	busy = is_connection_busy(c);
	rxw_conn_unlock(c);
	return busy;
}

/* Shard's lock held: connection number `index` of the listing; like rxw_peer_nth(). */
static struct rxw_connection *find_nth_conn(struct rxw_shard *s, bool all, unsigned index,
					    unsigned *steps)
{
	const struct rxw_conntable *t = &s->table;
	struct rxw_listing *l = all ? &s->diag.all : &s->diag.busy;

	assert(*steps <= STEPS);
	rxw_listing_begin(l, index, t->size, t->moved);
	for (; l->slot < rxw_conntable_chains(t); l->slot++) {
		unsigned at = l->before;

		if (*steps == 0) {
			l->unfinished = true;
			return NULL;
		}
		--*steps;
		for (struct rxw_pconn *p = rxw_conntable_chain(t, l->slot); p;
		     p = p->links.hash_next) {
			*steps -= *steps > 0;
			if ((all || check_connection_busy(rxw_conn_of(p), steps)) && at++ == index)
				return rxw_conn_of(p);
		}
		l->before = at;
	}
	*steps += *steps == 0;
	return NULL;
}

/*
 * Fills in entry *index of the shard's listing. If the shard has fewer, *index is reduced by their
 * number.
 */
static bool conn_in_shard(struct rxw_shard *s, bool all, unsigned *index, struct rxw_debug_conn *v,
			  struct request *request)
{
	struct rxw_connection *c = NULL;

	rxw_table_lock(s);
	if (!all || *index < s->table.count)
		c = find_nth_conn(s, all, *index, &request->steps);
	if (c) {
		rxw_conn_lock(c);
		fill_conn(v, c, request->local);
		rxw_conn_unlock(c);
	} else if (request->steps) {
		*index -= all ? s->table.count : s->diag.busy.before;
	}
	rxw_table_unlock(s);
	return c;
}

static size_t put_conn(uint8_t *out, struct request *request, bool all, int32_t given)
{
	struct rxw_endpoint *ep = request->shard->ep;
	struct rxw_debug_conn v = {0};
	unsigned index = (unsigned)given;

	for (unsigned i = 0; given >= 0 && i < ep->shard_count; i++) {
		if (conn_in_shard(&ep->shard[i], all, &index, &v, request))
			return rxw_debug_conn_put(out, &v);
		if (!request->steps)
			return 0;
	}
	return rxw_debug_conn_end_put(out);
}

/* ---- type 4: Rx statistics ---- */

/* Positions of words in rx_statistics. */
enum {
	W_BOGUS_PACKET = 5,
	W_BOGUS_HOST = 6,
	W_SELECTS = 9,
	W_READ = 10 /* + type */,
	W_DATA_READ = 24,
	W_ACK_READ = 25,
	W_DUP_READ = 26,
	W_SPURIOUS_READ = 27,
	W_SENT = 27 /* + type */,
	W_ACK_SENT = 41,
	W_PING_SENT = 42,
	W_ABORT_SENT = 43,
	W_BUSY_SENT = 44,
	W_DATA_SENT = 45,
	W_DATA_RESENT = 46,
	W_TOTAL_RTT = 49,
	W_MIN_RTT = 51,
	W_MAX_RTT = 53,
	W_RTT_SAMPLES = 55,
	W_SERVER_CONNS = 56,
	W_CLIENT_CONNS = 57,
	W_PEERS = 58,
	W_CALLS = 59,
	W_SEND_FAILURES = 61,
	W_BUSIES = 66
};

static void add_to_word(uint32_t *word, uint64_t value)
{
	*word += (uint32_t)value;
}

static void fold_proto(uint32_t *w, const struct rxw_pstats *p)
{
	for (unsigned type = 1; type < RXW_PACKET_TYPES; type++) {
		add_to_word(&w[W_READ + type], load_counter(&p->packets_received[type]));
		add_to_word(&w[W_SENT + type], load_counter(&p->packets_sent[type]));
	}
	add_to_word(&w[W_BOGUS_PACKET], load_counter(&p->drops[RXW_DROP_SHORT]) +
						load_counter(&p->drops[RXW_DROP_TYPE]) +
						load_counter(&p->drops[RXW_DROP_TRUNCATED]));
	add_to_word(&w[W_BOGUS_HOST], load_counter(&p->drops[RXW_DROP_ADDRESS]));
	add_to_word(&w[W_DUP_READ], load_counter(&p->duplicates));
	add_to_word(&w[W_SPURIOUS_READ], load_counter(&p->drops[RXW_DROP_CALL_NUMBER]) +
						 load_counter(&p->drops[RXW_DROP_NO_CONNECTION]));
	add_to_word(&w[W_PING_SENT], load_counter(&p->probes));
	add_to_word(&w[W_DATA_RESENT], load_counter(&p->retransmitted));
}

static void fold_shard(uint32_t *w, struct rxw_shard *s)
{
	const struct rxw_io_stats *io = rxw_io_sock_stats(s->sock);

	fold_proto(w, &s->stats);
	fold_proto(w, &s->own);
	add_to_word(&w[W_SELECTS], load_counter(&io->syscalls_recv));
	add_to_word(&w[W_SEND_FAILURES], load_counter(&io->send_errors));
	rxw_table_lock(s);
	add_to_word(&w[W_CLIENT_CONNS], s->table.clients);
	add_to_word(&w[W_SERVER_CONNS], s->table.count - s->table.clients);
	rxw_table_unlock(s);
}

static void put_seconds(uint32_t *word, uint64_t ns)
{
	word[0] = (uint32_t)(ns / RXW_SEC);
	word[1] = (uint32_t)(ns % RXW_SEC / 1000);
}

/* Each peer's smoothed RTT counts as one sample. */
static void fill_peers(uint32_t *w, struct rxw_endpoint *ep, unsigned *steps)
{
	uint64_t total = 0, low = UINT64_MAX, high = 0;
	struct rxw_listing list = {0};
	struct rxw_peer *peer;

	rxw_peers_lock(ep);
	w[W_PEERS] = rxw_peer_count(ep->peers.table);
	for (unsigned i = 0;
	     i < RTT_PEERS && (peer = rxw_peer_nth(ep->peers.table, &list, i, steps)); i++) {
		uint64_t srtt = load_counter(&peer->srtt);

		if (!srtt)
			continue;
		w[W_RTT_SAMPLES]++;
		total += srtt;
		low = srtt < low ? srtt : low;
		high = srtt > high ? srtt : high;
	}
	rxw_peers_unlock(ep);
	put_seconds(&w[W_TOTAL_RTT], total);
	put_seconds(&w[W_MIN_RTT], w[W_RTT_SAMPLES] ? low : 0);
	put_seconds(&w[W_MAX_RTT], high);
}

static size_t put_rxstats(uint8_t *out, struct request *request)
{
	struct rxw_endpoint *ep = request->shard->ep;
	struct rxw_debug_rxstats v = {{0}};
	uint32_t *w = v.word;

	for (unsigned i = 0; i < ep->shard_count; i++)
		fold_shard(w, &ep->shard[i]);
	fill_peers(w, ep, &request->steps);
	w[W_DATA_READ] = w[W_READ + RXW_DATA];
	w[W_ACK_READ] = w[W_READ + RXW_ACK];
	w[W_ACK_SENT] = w[W_SENT + RXW_ACK];
	w[W_ABORT_SENT] = w[W_SENT + RXW_ABORT];
	w[W_BUSY_SENT] = w[W_BUSIES] = w[W_SENT + RXW_BUSY];
	w[W_DATA_SENT] = w[W_SENT + RXW_DATA];
	w[W_CALLS] = atomic_load(&ep->usage.calls);
	return rxw_debug_rxstats_put(out, &v);
}

/* ---- type 5: peers ---- */

static size_t put_peer_answer(uint8_t *out, struct request *request, int32_t index)
{
	struct rxw_endpoint *ep = request->shard->ep;
	struct rxw_debug_peer v = {
		.max_dgram_packets = 1, .if_dgram_packets = 1, .dgram_packets = 1};
	struct rxw_peer *peer;
	uint32_t max;

	rxw_peers_lock(ep);
	peer = index >= 0 ? rxw_peer_nth(ep->peers.table, &ep->peers.listed, (unsigned)index,
					 &request->steps)
			  : NULL;
	if (!peer) {
		rxw_peers_unlock(ep);
		return request->steps ? rxw_debug_peer_end_put(out) : 0;
	}
	fill_host(v.host, &peer->addr);
	v.port = rxw_addr_port(&peer->addr);
	v.refs = (uint16_t)atomic_load_explicit(&peer->refs, memory_order_relaxed);
	max = atomic_load_explicit(&peer->told_max_mtu, memory_order_relaxed);
	v.if_mtu = (uint16_t)rxw_mtu_of(ep);
	v.mtu = v.nat_mtu = (uint16_t)find_mtu_towards(ep, peer);
	v.max_mtu = max ? (uint16_t)max : v.if_mtu;
	v.cwind = (uint16_t)rxw_peer_recall_ssthresh(peer, request->now);
	if (!v.cwind) /* no packet was ever lost: only the window limits a call */
		v.cwind = (uint16_t)rxw_window_of(ep);
	v.rtt = (uint32_t)(load_counter(&peer->srtt) * 8 / RXW_MS);
	v.rtt_dev = (uint32_t)(load_counter(&peer->rttvar) * 4 / RXW_MS);
	v.sent = (uint32_t)load_counter(&peer->packets_sent);
	v.resent = (uint32_t)load_counter(&peer->packets_resent);
	v.bytes_sent = load_counter(&peer->bytes_sent);
	v.bytes_received = load_counter(&peer->bytes_received);
	rxw_peers_unlock(ep);
	return rxw_debug_peer_put(out, &v);
}

/* ---- replies ---- */

/* Returns the size of the reply; 0: it needs more steps than a packet may take. */
static size_t debug_answer(uint8_t *out, struct request *request, const uint8_t *body, size_t size)
{
	struct rxw_endpoint *ep = request->shard->ep;
	int32_t type, index;

	rxw_debug_request_get(body, size, &type, &index);
	switch (type) {
	case RXW_DEBUG_STATS:
		return put_stats(out, ep);
	case RXW_DEBUG_CONN:
	case RXW_DEBUG_ALLCONN:
		return put_conn(out, request, type == RXW_DEBUG_ALLCONN, index);
	case RXW_DEBUG_RXSTATS:
		return put_rxstats(out, request);
	case RXW_DEBUG_PEER:
		return put_peer_answer(out, request, index);
	default:
		return rxw_debug_bad_put(out);
	}
}

/* May the packet be answered? If not, the reason is counted. */
static bool is_request_admitted(struct rxw_shard *s, const struct rxw_rxrun *run,
				const struct request *request)
{
	enum rxw_drop why;

	if (run->head.type == RXW_DEBUG && !may_debug(s->ep, run->path, request->local))
		why = RXW_DROP_ACCESS;
	else if (!within_rate(s->ep, request))
		why = RXW_DROP_RATE;
	else
		return true;
	rxw_drop(&s->stats, why, 1);
	return false;
}

/*
 * Replies are up to five times as long as requests. If debug_access is `any`, an unvalidated
 * address gets at most three times the bytes that it sent. Networks named in the configuration are
 * trusted.
 */
static bool within_allowance(const struct request *request, const struct rxw_addr *from,
			     size_t asked, size_t answer)
{
	struct rxw_endpoint *ep = request->shard->ep;
	struct rxw_peer *peer;
	bool allowed;

	if (request->local || atomic_load(&ep->debug.access) != RXW_DEBUG_ANY)
		return true;
	rxw_peers_lock(ep);
	peer = rxw_peer_get(ep->peers.table, from, request->now);
	rxw_peers_unlock(ep);
	if (!peer)
		return false;
	rxw_peer_heard(peer, asked, 1, request->now);
	allowed = rxw_peer_may_send(peer, answer, 1, request->now);
	rxw_peer_unref(peer, request->now);
	return allowed;
}

__attribute__((cold)) bool rxw_inspect(struct rxw_shard *s, const struct rxw_rxrun *run,
				       uint64_t now, struct rxw_ctl *ctl)
{
	struct request request = {
		.shard = s, .local = rxw_path_is_local(run->path), .now = now, .steps = STEPS};
	size_t size = run->count > 1 ? run->stride : run->last_size;
	struct rxw_header h = run->head;

	rxw_count(&s->stats.packets_received[h.type], run->count);
	/* Without the flag it is a reply, or keeps a NAT's mapping alive. */
	if (!(h.flags & RXW_CLIENT_INITIATED) || size < RXW_HEADER_SIZE || run->jumbo)
		return false;
	if (!is_request_admitted(s, run, &request))
		return false;
	assert(h.type == RXW_VERSION || h.type == RXW_DEBUG);
	ctl->path = *run->path;
	ctl->padding = 0;
	ctl->client = false;
	if (h.type == RXW_VERSION) {
		ctl->length = (uint16_t)rxw_version_put(ctl->bytes, &h, s->ep->debug.version_text);
		rxw_count(&s->stats.version_answers, 1);
	} else {
		size_t answer = debug_answer(ctl->bytes + RXW_HEADER_SIZE, &request,
					     run->data + RXW_HEADER_SIZE, size - RXW_HEADER_SIZE);

		charge_steps(s->ep, &request);
		ctl->length = (uint16_t)(RXW_HEADER_SIZE + answer);
		if (!answer || !within_allowance(&request, &run->path->peer, size, ctl->length)) {
			rxw_drop(&s->stats, RXW_DROP_RATE, 1);
			return false;
		}
		h.flags &= (uint8_t)~RXW_CLIENT_INITIATED;
		rxw_header_put(ctl->bytes, &h);
		rxw_count(&s->stats.debug_answers, 1);
	}
	rxw_count(&s->stats.packets_sent[h.type], 1);
	return true;
}
