/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls in progress and their statistics. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/call.h>
#include <rxwire/stats.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define VISIT_SLOTS 64u /* of a table under one lock, since receivers wait for it */
#define BATCH	    64u /* calls that are copied, and then shown without a lock */

static void read_sender(const struct rxw_pcall *p, struct rxw_call_statistics *s)
{
	uint64_t interval = rxw_send_interval(p);
	size_t payload = rxw_sealed_capacity(&p->conn->auth.room,
					     rxw_pcall_datagram_size(p) - RXW_HEADER_SIZE);

	s->pacing_rate = interval ? payload * RXW_SEC / interval : 0;
	s->rtt_min_ns = p->tx.rtt.min;
	s->lost = p->count.lost;
	s->loss_events = p->count.loss_events;
	s->spurious = p->count.spurious;
	s->timeouts = p->count.timeouts;
	s->in_flight = p->tx.flight;
	s->ssthresh = p->tx.cc.ssthresh;
	s->controller = p->tx.cc.ops->name;
	s->phase = rxw_send_phase(p);
	s->marks_sent = p->tx.ecn.sent;
	s->marks_seen = p->tx.ecn.ce;
	s->mark_events = p->count.mark_events;
	s->marks_received = p->count.marks_received;
	s->ecn = rxw_ecn_name(p->tx.ecn.state);
}

void rxw_flow_read(const struct rxw_call *call, struct rxw_call_statistics *s)
{
	const struct rxw_pcall *p = &call->p;

	s->bytes_sent = p->count.bytes_sent;
	s->bytes_received = p->count.bytes_received;
	s->packets_sent = p->count.packets_sent - p->count.retransmitted;
	s->packets_received = p->count.packets_received;
	s->retransmitted = p->count.retransmitted;
	s->duplicates = p->count.duplicates;
	s->acks_sent = p->count.acks_sent;
	s->acks_received = p->count.acks_received;
	s->windows_by_writer = atomic_load(&call->windows_by_writer);
	s->windows_by_receiver = atomic_load(&call->windows_by_receiver);
	s->rtt_ns = p->tx.rtt.valid ? p->tx.rtt.srtt : 0;
	s->cwnd = p->tx.cc.cwnd;
	s->peer_window = call->conn->p.peer_window;
	s->started_ns = call->started;
	s->ended_ns = call->finished;
	s->security = call->conn->p.security_index;
	s->level = call->conn->p.auth.level;
	s->wide = call->conn->p.rx.wide_heard;
	read_sender(p, s);
}

/* A copy of a call. */
struct flow {
	struct rxw_call_view view;
	struct rxw_call_statistics statistics;
	struct rxw_addr peer;
};

/* The next calls of a shard: those of `chain`, without the first `skip`. */
struct cursor {
	unsigned chain, skip;
};

/* Connection's lock held. */
static void read_flow(const struct rxw_call *call, uint64_t now, struct flow *f)
{
	const struct rxw_pcall *p = &call->p;
	const struct rxw_pconn *c = &call->conn->p;

	memset(f, 0, sizeof(*f));
	f->statistics.size = sizeof(f->statistics);
	rxw_flow_read(call, &f->statistics);
	f->peer = rxw_pconn_path(c)->peer;
	f->view = (struct rxw_call_view){
		.peer = &f->peer.u.sa,
		.client = p->client,
		.sending = rxw_pcall_sends(p),
		.service = c->service,
		.epoch = c->epoch,
		.cid = c->cid | p->channel,
		.number = p->number,
		.age_ns = now > call->started ? now - call->started : 0,
		.queued = rxw_pcall_queued(p),
		.receive_window = p->rx.window,
		.statistics = &f->statistics,
	};
}

/*
 * Table's lock held: copy calls of a chain, without the first `skip`, to at most `room` places.
 * Returns their number.
 */
static unsigned read_chain(struct rxw_pconn *p, unsigned skip, uint64_t now, struct flow *flow,
			   unsigned room)
{
	unsigned seen = 0, count = 0;

	for (; p && count < room; p = p->links.hash_next) {
		struct rxw_connection *c = rxw_conn_of(p);

		rxw_conn_lock(c);
		for (unsigned i = 0; i < 4 && count < room; i++)
			if (p->channel[i] && rxw_pcall_live(p->channel[i]) && seen++ >= skip)
				read_flow(rxw_call_of(p->channel[i]), now, &flow[count++]);
		rxw_conn_unlock(c);
	}
	return count;
}

/* Copy the next calls of a shard, of VISIT_SLOTS chains at most. Returns their number, <= BATCH. */
static unsigned read_next_flows(struct rxw_shard *s, struct cursor *at, struct flow flow[BATCH])
{
	unsigned end = at->chain + VISIT_SLOTS, count = 0;
	uint64_t now = rxw_now();

	rxw_table_lock(s);
	while (at->chain < end && at->chain < rxw_conntable_chains(&s->table) && count < BATCH) {
		unsigned n = read_chain(rxw_conntable_chain(&s->table, at->chain), at->skip, now,
					flow + count, BATCH - count);

		count += n;
		if (count == BATCH) {
			at->skip += n;
			break;
		}
		at->chain++;
		at->skip = 0;
	}
	if (at->chain >= rxw_conntable_chains(&s->table))
		at->chain = UINT_MAX;
	rxw_table_unlock(s);
	assert(count <= BATCH);
	return count;
}

__attribute__((cold)) int
rxw_endpoint_calls(rxw_endpoint *endpoint, void (*see)(void *arg, const struct rxw_call_view *call),
		   void *arg)
{
	struct flow *flow;
	NOT_CANCELLED;

	if (!endpoint || !see)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	flow = malloc(BATCH * sizeof(*flow));
	if (!flow)
		return -RXW_ENOMEM;
	for (unsigned i = 0; i < endpoint->shard_count; i++) {
		struct rxw_shard *s = &endpoint->shard[i];
		struct cursor at = {0};

		if (!atomic_load_explicit(&s->calls_live, memory_order_relaxed))
			continue;
		while (at.chain != UINT_MAX) {
			unsigned count = read_next_flows(s, &at, flow);

			for (unsigned k = 0; k < count; k++)
				see(arg, &flow[k].view);
		}
	}
	free(flow);
	return 0;
}
