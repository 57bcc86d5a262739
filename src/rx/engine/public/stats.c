/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics: sums of the counters of shards and sockets, and the effective configuration. */
#include <string.h>

#include <rxwire/error.h>
#include <rxwire/stats.h>

#include "base/assert.h"
#include "engine/observe/counters.h"
#include "common/sized.h"
#include "engine/objects.h"
#include "engine/lock.h"

static uint64_t load_counter(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Counters that have the same name in the sums and in their source. */
/* clang-format off */
#define PROTO_COUNTERS(X)                                                                        \
	X(retransmitted) X(duplicates) X(calls_started) X(calls_ended) X(calls_aborted)          \
	X(calls_timed_out) X(calls_refused) X(loss_events) X(spurious_losses) X(rto_events)      \
	X(probes) X(stateless_aborts) X(version_answers) X(debug_answers)                        \
	X(unvalidated_connections) X(calls_given_up)                                             \
	X(connections_evicted) X(cookies_sent) X(cookies_returned) X(move_pings)                 \
	X(marks_sent) X(marks_received) X(mark_events) X(ecn_failures)
#define IO_COUNTERS(X)                                                                           \
	X(gso_messages) X(gro_messages) X(gso_fallbacks) X(gro_fallbacks) X(send_errors)         \
	X(send_retries) X(kernel_drops)
/* clang-format on */

static void add_proto(struct rxw_sums *to, const struct rxw_pstats *proto)
{
#define X(name) to->name += load_counter(&proto->name);
	PROTO_COUNTERS(X)
#undef X
	for (unsigned i = 0; i < RXW_PACKET_TYPES; i++) {
		to->packets[RXW_SENT][rxw_packet_class[i]] += load_counter(&proto->packets_sent[i]);
		to->packets[RXW_RECEIVED][rxw_packet_class[i]] +=
			load_counter(&proto->packets_received[i]);
	}
	for (unsigned i = 0; i < RXW_DROP_COUNT; i++)
		to->drops[i] += load_counter(&proto->drops[i]);
	for (unsigned i = 0; i < RXW_MOVE_OUTCOMES; i++)
		to->moves[i] += load_counter(&proto->moves[i]);
}

static void add_io(struct rxw_sums *to, const struct rxw_io_stats *io)
{
#define X(name) to->name += load_counter(&io->name);
	IO_COUNTERS(X)
#undef X
	to->datagrams[RXW_SENT] += load_counter(&io->datagrams_sent);
	to->datagrams[RXW_RECEIVED] += load_counter(&io->datagrams_received);
	to->bytes[RXW_SENT] += load_counter(&io->bytes_sent);
	to->bytes[RXW_RECEIVED] += load_counter(&io->bytes_received);
	to->syscalls[0] += load_counter(&io->syscalls_send);
	to->syscalls[1] += load_counter(&io->syscalls_recv);
	to->syscalls[2] += load_counter(&io->syscalls_other);
	to->lock_contended[RXW_LOCK_SOCKET] += load_counter(&io->lock_contended);
}

static void add_counters(struct rxw_sums *to, const struct rxw_shard *s)
{
	add_proto(to, &s->stats);
	add_proto(to, &s->own);
	add_io(to, rxw_io_sock_stats(s->sock));
	to->wakeups += load_counter(&s->wakeups);
	to->wrong_shard += load_counter(&s->wrong_shard);
	to->handlers[0] += load_counter(&s->handlers_inline);
	to->handlers[1] += load_counter(&s->handlers_worker);
	to->windows[0] += load_counter(&s->windows_by_writer);
	to->windows[1] += load_counter(&s->windows_by_receiver);
	for (unsigned i = 0; i < RXW_LOCK_COUNT; i++)
		to->lock_contended[i] += load_counter(&s->contended[i]);
}

/* The endpoint's locks. */
static void add_contended(struct rxw_sums *to, const struct rxw_endpoint *ep)
{
	for (unsigned i = 0; i < RXW_LOCK_COUNT; i++)
		to->lock_contended[i] += load_counter(&ep->contended[i]);
	to->lock_contended[RXW_LOCK_VERIFIER] += rxw_verifier_contended(ep);
	to->lock_contended[RXW_LOCK_BUFFERS] += rxw_pool_contended(ep->engine->pool);
}

#define SCAN_SLOTS 256 /* slots scanned under one lock, since other threads wait for it */

/* Current values that need no search. */
static void add_gauges(struct rxw_sums *to, struct rxw_shard *s)
{
	rxw_table_lock(s);
	to->connections_client += s->table.clients;
	to->connections_server += s->table.count - s->table.clients;
	rxw_table_unlock(s);
	/* Values read after it are later ones: rxw_pcall_live_dec(). */
	to->calls_active += atomic_load_explicit(&s->calls_live, memory_order_acquire);
}

/* Pinned bytes, summed over peers: there are fewer of them than connections. */
static void add_pinned(struct rxw_sums *to, struct rxw_endpoint *ep)
{
	unsigned at = 0;
	bool more;

	do {
		rxw_peers_lock(ep);
		more = rxw_peer_pinned(ep->peers.table, SCAN_SLOTS, &at, &to->pinned_bytes);
		rxw_peers_unlock(ep);
	} while (more);
}

static void add_memory(struct rxw_sums *to, const struct rxw_budget *memory)
{
	int64_t used = atomic_load_explicit(&memory->used, memory_order_relaxed);

	to->memory_bytes = used > 0 ? (uint64_t)used : 0;
	to->memory_limit_bytes = (uint64_t)memory->limit;
}

void rxw_sums_read(rxw_endpoint *endpoint, struct rxw_sums *sums)
{
	struct rxw_workers_count workers;

	memset(sums, 0, sizeof(*sums));
	/*
	 * Read the calls in progress first: those that have ended since then are counted as ended.
	 */
	for (unsigned i = 0; i < endpoint->shard_count; i++)
		add_gauges(sums, &endpoint->shard[i]);
	for (unsigned i = 0; i < endpoint->shard_count; i++)
		add_counters(sums, &endpoint->shard[i]);
	add_contended(sums, endpoint);
	add_pinned(sums, endpoint);
	rxw_workers_count(endpoint, &workers);
	sums->calls_waiting = workers.waiting;
	sums->workers = workers.threads;
	sums->workers_idle = workers.idle;
	sums->workers_parked = workers.parked;
	rxw_peers_lock(endpoint);
	sums->peers = rxw_peer_count(endpoint->peers.table);
	rxw_peers_unlock(endpoint);
	add_memory(sums, &endpoint->engine->memory);
}

int rxw_endpoint_counters(rxw_endpoint *endpoint, uint64_t *values, size_t room)
{
	struct rxw_sums sums;

	if (!endpoint || (!values && room))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	if (room) {
		rxw_sums_read(endpoint, &sums);
		rxw_sums_list(&sums, values, room);
	}
	return (int)RXW_COUNTERS;
}

int rxw_endpoint_counter(rxw_endpoint *endpoint, const char *name, uint64_t *value)
{
	int index = rxw_counter_index(name);
	uint64_t values[RXW_COUNTERS];

	if (!endpoint || index < 0 || !value)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	rxw_endpoint_counters(endpoint, values, RXW_COUNTERS);
	*value = values[index];
	return 0;
}

_Static_assert(RXW_DURATIONS == RXW_LATENCY_SLOTS, "slots of durations");

static void copy_latency(uint64_t *slot, uint64_t *sum, const struct rxw_latency *from)
{
	memcpy(slot, from->slot, sizeof(from->slot));
	*sum = from->sum;
}

__attribute__((cold)) int rxw_endpoint_durations(rxw_endpoint *endpoint,
						 struct rxw_durations *durations)
{
	struct rxw_durations d = {.size = sizeof(d)};
	struct rxw_latency latency[2] = {0}; /* served, made */

	if (!endpoint || !sized_valid(durations))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	for (unsigned i = 0; i < endpoint->shard_count; i++)
		for (unsigned k = 0; k < 2; k++)
			rxw_latency_fold(&latency[k], &endpoint->shard[i].stats.latency[k]);
	copy_latency(d.served, &d.served_ns, &latency[0]);
	copy_latency(d.made, &d.made_ns, &latency[1]);
	sized_write(durations, &d, sizeof(d));
	return 0;
}

__attribute__((cold)) int rxw_endpoint_effective(rxw_endpoint *endpoint,
						 struct rxw_effective *effective)
{
	const struct rxw_io_sock *sock;
	struct rxw_effective e;

	if (!endpoint || !sized_valid(effective))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	sock = endpoint->shard[0].sock;
	memset(&e, 0, sizeof(e));
	e.listeners = endpoint->shard_count;
	e.batch = endpoint->settings.constants.batch;
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
