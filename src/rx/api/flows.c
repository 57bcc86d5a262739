/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls in progress: their statistics, and a list of them as JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/metrics.h>

#include "engine/fork/fork.h"
#include "api/flows.h"
#include "api/text.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define VISIT_SLOTS 64u /* of a table under one lock, since receivers wait for it */
#define MOST_CALLS  10000u

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
	s->windows_by_writer = atomic_load(&call->tx.windows_by_writer);
	s->windows_by_receiver = atomic_load(&call->tx.windows_by_receiver);
	s->rtt_ns = p->tx.rtt.valid ? p->tx.rtt.srtt : 0;
	s->cwnd = p->tx.cc.cwnd;
	s->peer_window = call->conn->p.peer_window;
	s->started_ns = call->started;
	s->ended_ns = call->finished;
	s->security = call->conn->p.security_index;
	s->level = call->conn->p.auth.level;
	read_sender(p, s);
}

/* Connection's lock held. */
static void read_flow(const struct rxw_call *call, uint64_t now, struct rxw_flow *f)
{
	const struct rxw_pcall *p = &call->p;
	const struct rxw_pconn *c = &call->conn->p;

	memset(f, 0, sizeof(*f));
	rxw_flow_read(call, &f->s);
	f->peer = rxw_pconn_path(c)->peer;
	f->age = now > call->started ? now - call->started : 0;
	f->epoch = c->epoch;
	f->cid = c->cid | p->channel;
	f->number = p->number;
	f->receive_window = p->rx.window;
	f->queued = rxw_pcall_queued(p);
	f->service = c->service;
	f->client = p->client;
	f->sending = rxw_pcall_sends(p);
}

/* Table's lock held. */
static void visit_chain(struct rxw_pconn *p, uint64_t now,
			void (*see)(void *arg, const struct rxw_flow *flow), void *arg)
{
	struct rxw_flow flow;

	for (; p; p = p->links.hash_next) {
		struct rxw_connection *c = rxw_conn_of(p);

		rxw_conn_lock(c);
		for (unsigned i = 0; i < 4; i++)
			if (p->channel[i] && rxw_pcall_live(p->channel[i])) {
				read_flow(rxw_call_of(p->channel[i]), now, &flow);
				see(arg, &flow);
			}
		rxw_conn_unlock(c);
	}
}

void rxw_flows_visit(rxw_endpoint *endpoint, void (*see)(void *arg, const struct rxw_flow *flow),
		     void *arg)
{
	for (unsigned i = 0; i < endpoint->shard_count; i++) {
		struct rxw_shard *s = &endpoint->shard[i];
		unsigned at = 0;
		bool more = true;

		if (!atomic_load_explicit(&s->calls_live, memory_order_relaxed))
			continue;
		while (more) {
			uint64_t now = rxw_now();
			unsigned end = at + VISIT_SLOTS;

			rxw_table_lock(s);
			for (; at < end && at < rxw_conntable_chains(&s->table); at++)
				visit_chain(rxw_conntable_chain(&s->table, at), now, see, arg);
			more = at < rxw_conntable_chains(&s->table);
			rxw_table_unlock(s);
		}
	}
}

uint64_t rxw_flow_rate(const struct rxw_flow *f)
{
	double bytes = (double)(f->s.bytes_sent + f->s.bytes_received);

	return f->age ? (uint64_t)(bytes * (double)RXW_SEC / (double)f->age) : 0;
}

/* ---- the list ---- */

struct entry {
	uint64_t rate;
	size_t endpoint;
	struct rxw_flow flow;
};

/* Those with the highest rates: a heap whose root has the lowest one. */
struct list {
	struct entry *entry;
	size_t count, most;
	uint64_t left_out;
	size_t endpoint; /* that is visited */
};

static void swap(struct entry *a, struct entry *b)
{
	struct entry t = *a;

	*a = *b;
	*b = t;
}

static void sift_up(struct entry *e, size_t i)
{
	for (; i && e[i].rate < e[(i - 1) / 2].rate; i = (i - 1) / 2)
		swap(&e[i], &e[(i - 1) / 2]);
}

static void sift_down(struct entry *e, size_t count)
{
	for (size_t i = 0, least; (least = 2 * i + 1) < count; i = least) {
		if (least + 1 < count && e[least + 1].rate < e[least].rate)
			least++;
		if (e[i].rate <= e[least].rate)
			return;
		swap(&e[i], &e[least]);
	}
}

static void add(void *arg, const struct rxw_flow *flow)
{
	struct list *l = arg;
	struct entry *e = l->entry;
	uint64_t rate = rxw_flow_rate(flow);
	bool full = l->count == l->most;

	if (full)
		l->left_out++;
	if (full && (!l->most || rate <= e[0].rate))
		return;
	e = full ? &l->entry[0] : &l->entry[l->count++];
	*e = (struct entry){.rate = rate, .endpoint = l->endpoint, .flow = *flow};
	if (full)
		sift_down(l->entry, l->count);
	else
		sift_up(l->entry, l->count - 1);
}

static int by_rate(const void *a, const void *b)
{
	uint64_t first = ((const struct entry *)a)->rate, second = ((const struct entry *)b)->rate;

	return (first < second) - (first > second);
}

static void put_call(struct rxw_text *t, const struct entry *e, const char *endpoint)
{
	const struct rxw_flow *f = &e->flow;
	const struct rxw_call_statistics *s = &f->s;
	char peer[64], age[32], rtt[32], least[32];

	rxw_put(t,
		"{\"endpoint\":\"%s\",\"role\":\"%s\",\"peer\":\"%s\",\"epoch\":%" PRIu32
		",\"cid\":%" PRIu32 ",\"number\":%" PRIu32 ",\"service\":%u,\"security\":%u,"
		"\"level\":%u,\"direction\":\"%s\",\"age_s\":%s,\"rate\":%" PRIu64
		",\"bytes_sent\":%" PRIu64 ",\"bytes_received\":%" PRIu64,
		endpoint, f->client ? "client" : "server",
		rxw_addr_text(&f->peer, peer, sizeof(peer)), f->epoch, f->cid, f->number,
		f->service, s->security, s->level, f->sending ? "sending" : "receiving",
		rxw_seconds(f->age, age), e->rate, s->bytes_sent, s->bytes_received);
	rxw_put(t,
		",\"packets_sent\":%" PRIu64 ",\"packets_received\":%" PRIu64
		",\"retransmitted\":%" PRIu64 ",\"duplicates\":%" PRIu64 ",\"lost\":%" PRIu64
		",\"loss_events\":%" PRIu64 ",\"spurious\":%" PRIu64 ",\"timeouts\":%" PRIu64,
		s->packets_sent, s->packets_received, s->retransmitted, s->duplicates, s->lost,
		s->loss_events, s->spurious, s->timeouts);
	rxw_put(t,
		",\"ecn\":\"%s\",\"marks_sent\":%" PRIu64 ",\"marks_seen\":%" PRIu64
		",\"mark_events\":%" PRIu64 ",\"marks_received\":%" PRIu64,
		s->ecn, s->marks_sent, s->marks_seen, s->mark_events, s->marks_received);
	rxw_put(t,
		",\"queued\":%" PRIu32 ",\"in_flight\":%" PRIu32 ",\"cwnd\":%" PRIu32
		",\"ssthresh\":%" PRIu32 ",\"peer_window\":%" PRIu32 ",\"receive_window\":%" PRIu32
		",\"pacing_rate\":%" PRIu64
		",\"rtt_s\":%s,\"rtt_min_s\":%s,\"controller\":\"%s\",\"phase\":\"%s\"}",
		f->queued, s->in_flight, s->cwnd, s->ssthresh, s->peer_window, f->receive_window,
		s->pacing_rate, rxw_seconds(s->rtt_ns, rtt), rxw_seconds(s->rtt_min_ns, least),
		s->controller, s->phase);
}

__attribute__((cold)) int rxw_metrics_calls(rxw_endpoint *const *endpoints, size_t count,
					    size_t most, char **text)
{
	struct list l = {.most = most < MOST_CALLS ? most : MOST_CALLS};
	struct rxw_text t = {0};

	if (!text || (count && !endpoints))
		return -RXW_EINVAL;
	*text = NULL;
	for (size_t i = 0; i < count; i++)
		if (!endpoints[i])
			return -RXW_EINVAL;
		else if (rxw_endpoint_inherited(endpoints[i]))
			return -RXW_ESTATE;
	l.entry = malloc((l.most + 1) * sizeof(*l.entry));
	if (!l.entry)
		return -RXW_ENOMEM;
	for (; l.endpoint < count; l.endpoint++)
		rxw_flows_visit(endpoints[l.endpoint], add, &l);
	qsort(l.entry, l.count, sizeof(*l.entry), by_rate);
	rxw_put(&t, "{\"calls\":[");
	for (size_t i = 0; i < l.count; i++) {
		const struct entry *e = &l.entry[i];
		char name[64];

		rxw_put(&t, i ? ",\n" : "\n");
		put_call(&t, e,
			 rxw_addr_text(&endpoints[e->endpoint]->io.bound, name, sizeof(name)));
	}
	rxw_put(&t, "],\"left_out\":%" PRIu64 "}\n", l.left_out);
	free(l.entry);
	if (t.failed) {
		free(t.at);
		return -RXW_ENOMEM;
	}
	*text = t.at;
	return (int)t.used;
}
