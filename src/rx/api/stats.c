/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics: sums of the counters of shards and sockets, and the effective configuration. */
#include <string.h>

#include <rxwire/error.h>
#include <rxwire/stats.h>

#include "common/sized.h"
#include "engine/objects.h"
#include "engine/lock.h"

static uint64_t get(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Counters that have the same name in the public structure and in their source. */
/* clang-format off */
#define PROTO_COUNTERS(X)                                                                        \
	X(retransmitted) X(duplicates) X(calls_started) X(calls_ended) X(calls_aborted)          \
	X(calls_timed_out) X(calls_refused) X(loss_events) X(spurious_losses) X(rto_events)      \
	X(probes) X(stateless_aborts) X(version_answers) X(debug_answers)                   \
	X(unvalidated_connections) X(calls_given_up)                      \
	X(connections_evicted) X(cookies_sent) X(cookies_returned)
#define IO_COUNTERS(X)                                                                           \
	X(syscalls_send) X(syscalls_recv) X(syscalls_other) X(datagrams_sent)                    \
	X(datagrams_received) X(bytes_sent) X(bytes_received) X(gso_messages) X(gro_messages)  \
	X(gso_fallbacks) X(gro_fallbacks) X(send_errors) X(send_retries) X(kernel_drops)
#define SHARD_COUNTERS(X)                                                                        \
	X(wakeups) X(wrong_shard) X(handlers_inline)  \
	X(handlers_worker)
/* clang-format on */

static void add_proto(struct rxw_stats *to, const struct rxw_pstats *proto)
{
#define X(name) to->name += get(&proto->name);
	PROTO_COUNTERS(X)
#undef X
	for (unsigned i = 0; i < 14; i++) {
		to->packets_sent[i] += get(&proto->packets_sent[i]);
		to->packets_received[i] += get(&proto->packets_received[i]);
	}
	for (unsigned i = 0; i < RXW_DROP_COUNT; i++)
		to->drops[i] += get(&proto->drops[i]);
}

static void add_counters(struct rxw_stats *to, const struct rxw_shard *s)
{
	const struct rxw_io_stats *io = rxw_io_sock_stats(s->sock);

	add_proto(to, &s->stats);
	add_proto(to, &s->own);
#define X(name) to->name += get(&io->name);
	IO_COUNTERS(X)
#undef X
#define X(name) to->name += get(&s->name);
	SHARD_COUNTERS(X)
#undef X
	to->windows_by_writer += get(&s->tx.windows_by_writer);
	to->windows_by_receiver += get(&s->tx.windows_by_receiver);
	for (unsigned i = 0; i < RXW_LOCK_COUNT; i++)
		to->lock_contended[i] += get(&s->contended[i]);
	to->lock_contended[RXW_LOCK_SOCKET] += get(&io->lock_contended);
}

/* The endpoint's locks. */
static void add_contended(struct rxw_stats *to, const struct rxw_endpoint *ep)
{
	for (unsigned i = 0; i < RXW_LOCK_COUNT; i++)
		to->lock_contended[i] += get(&ep->contended[i]);
	to->lock_contended[RXW_LOCK_VERIFIER] += get(&ep->verifier.contended);
	to->lock_contended[RXW_LOCK_BUFFERS] += rxw_pool_contended(ep->engine->pool);
}

#define SCAN_SLOTS 256 /* slots scanned under one lock, since other threads wait for it */

/* Current values that need no search. */
static void add_gauges(struct rxw_stats *to, struct rxw_shard *s)
{
	rxw_table_lock(s);
	to->connections_client += s->table.clients;
	to->connections_server += s->table.count - s->table.clients;
	rxw_table_unlock(s);
	/* Values read after it are later ones: rxw_pcall_live_dec(). */
	to->calls_active += atomic_load_explicit(&s->calls_live, memory_order_acquire);
}

/* Pinned bytes, summed over peers: there are fewer of them than connections. */
static void add_pinned(struct rxw_stats *to, struct rxw_endpoint *ep)
{
	unsigned at = 0;
	bool more;

	do {
		rxw_peers_lock(ep);
		more = rxw_peer_pinned(ep->peers, SCAN_SLOTS, &at, &to->bytes_pinned);
		rxw_peers_unlock(ep);
	} while (more);
}

/* The same for a shard's connections, a few slots under each lock. */
static bool add_slots(struct rxw_stats *to, struct rxw_shard *s, unsigned from)
{
	bool more;

	rxw_table_lock(s);
	for (unsigned i = from; i < from + SCAN_SLOTS && i < rxw_conntable_chains(&s->table); i++)
		for (struct rxw_pconn *p = rxw_conntable_chain(&s->table, i); p;
		     p = p->links.hash_next) {
			int64_t pinned = atomic_load(&p->rx.memory.used);

			to->bytes_pinned += pinned > 0 ? (uint64_t)pinned : 0;
		}
	more = from + SCAN_SLOTS < rxw_conntable_chains(&s->table);
	rxw_table_unlock(s);
	return more;
}

int rxw_endpoint_stats(rxw_endpoint *endpoint, struct rxw_stats *stats)
{
	struct rxw_workers *w;
	struct rxw_stats sum;

	if (!endpoint || !sized_valid(stats))
		return -RXW_EINVAL;
	memset(&sum, 0, sizeof(sum));
	/*
	 * Read the calls in progress first: those that have ended since then are counted as ended.
	 */
	for (unsigned i = 0; i < endpoint->shard_count; i++)
		add_gauges(&sum, &endpoint->shard[i]);
	for (unsigned i = 0; i < endpoint->shard_count; i++)
		add_counters(&sum, &endpoint->shard[i]);
	add_contended(&sum, endpoint);
	add_pinned(&sum, endpoint);
	w = &endpoint->workers;
	rxw_workers_lock(endpoint);
	sum.calls_waiting = w->waiting;
	sum.workers = w->threads;
	sum.workers_idle = w->idle;
	sum.workers_parked = w->parked;
	rxw_workers_unlock(endpoint);
	rxw_peers_lock(endpoint);
	sum.peers = rxw_peer_count(endpoint->peers);
	rxw_peers_unlock(endpoint);
	sized_write(stats, &sum, sizeof(sum));
	return 0;
}

int rxw_shard_stats(rxw_endpoint *endpoint, unsigned shard, struct rxw_stats *stats)
{
	struct rxw_stats sum;

	if (!endpoint || !sized_valid(stats) ||
	    shard >= endpoint->shard_count)
		return -RXW_EINVAL;
	memset(&sum, 0, sizeof(sum));
	add_gauges(&sum, &endpoint->shard[shard]);
	add_counters(&sum, &endpoint->shard[shard]);
	for (unsigned from = 0; add_slots(&sum, &endpoint->shard[shard], from); from += SCAN_SLOTS)
		;
	sized_write(stats, &sum, sizeof(sum));
	return 0;
}

int rxw_endpoint_effective(rxw_endpoint *endpoint, struct rxw_effective *effective)
{
	const struct rxw_io_sock *sock;
	struct rxw_effective e;

	if (!endpoint || !sized_valid(effective))
		return -RXW_EINVAL;
	sock = endpoint->shard[0].sock;
	memset(&e, 0, sizeof(e));
	e.listeners = endpoint->shard_count;
	e.batch = endpoint->constants.batch;
	e.window = rxw_window_of(endpoint);
	e.mtu = rxw_mtu_of(endpoint);
	e.gso = rxw_io_gso(sock);
	e.gro = rxw_io_gro(sock);
	e.steered = endpoint->io.steered;
	e.io = endpoint->io.backend;
	e.rcvbuf = rxw_io_rcvbuf(sock);
	e.sndbuf = rxw_io_sndbuf(sock);
	sized_write(effective, &e, sizeof(e));
	return 0;
}
