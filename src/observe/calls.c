/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls in progress of endpoints, as JSON. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rxwire/call.h>
#include <rxwire/error.h>
#include <rxwire/observe.h>
#include <rxwire/stats.h>

#include "common/cancel.h"
#include "common/clock.h"
#include "observe/observe.h"

#define MOST_CALLS 10000u

struct entry {
	uint64_t rate; /* mean bytes per second of both streams since the call began */
	size_t endpoint;
	struct rxw_call_view call;
	struct rxw_call_statistics statistics;
	char peer[RXW_ADDRESS_TEXT];
};

/* Those with the highest rates: a heap whose root has the lowest one. */
struct call_list {
	struct entry *entry;
	size_t count, most;
	uint64_t left_out;
	size_t endpoint; /* that is visited */
};

static void swap_entries(struct entry *a, struct entry *b)
{
	struct entry t = *a;

	*a = *b;
	*b = t;
}

static void sift_up(struct entry *e, size_t i)
{
	for (; i && e[i].rate < e[(i - 1) / 2].rate; i = (i - 1) / 2)
		swap_entries(&e[i], &e[(i - 1) / 2]);
}

static void sift_down(struct entry *e, size_t count)
{
	for (size_t i = 0, least; (least = 2 * i + 1) < count; i = least) {
		if (least + 1 < count && e[least + 1].rate < e[least].rate)
			least++;
		if (e[i].rate <= e[least].rate)
			return;
		swap_entries(&e[i], &e[least]);
	}
}

static void copy_call(struct entry *e, const struct rxw_call_view *call, uint64_t rate,
		      size_t endpoint)
{
	*e = (struct entry){
		.rate = rate, .endpoint = endpoint, .call = *call, .statistics = *call->statistics};
	e->call.peer = NULL; /* both end with the callback */
	e->call.statistics = NULL;
	rxw_address_text(call->peer, e->peer);
}

static void add_to_list(void *arg, const struct rxw_call_view *call)
{
	struct call_list *l = arg;
	double bytes = (double)(call->statistics->bytes_sent + call->statistics->bytes_received);
	uint64_t rate = call->age_ns ? (uint64_t)(bytes * NS_PER_S / (double)call->age_ns) : 0;

	assert(l->count <= l->most);
	if (l->count < l->most) {
		copy_call(&l->entry[l->count], call, rate, l->endpoint);
		sift_up(l->entry, l->count++);
		return;
	}
	l->left_out++;
	if (!l->most || rate <= l->entry[0].rate)
		return;
	copy_call(&l->entry[0], call, rate, l->endpoint);
	sift_down(l->entry, l->count);
}

static int compare_rates(const void *a, const void *b)
{
	uint64_t first = ((const struct entry *)a)->rate, second = ((const struct entry *)b)->rate;

	return (first < second) - (first > second);
}

static void put_call(struct rxw_text *t, const struct entry *e, const char *endpoint)
{
	const struct rxw_call_view *f = &e->call;
	const struct rxw_call_statistics *s = &e->statistics;
	char age[32], rtt[32], least[32];

	rxw_text_add(t,
		     "{\"endpoint\":\"%s\",\"role\":\"%s\",\"peer\":\"%s\",\"epoch\":%" PRIu32
		     ",\"cid\":%" PRIu32 ",\"number\":%" PRIu32 ",\"service\":%u,\"security\":%u,"
		     "\"level\":%u,\"direction\":\"%s\",\"age_s\":%s,\"rate\":%" PRIu64
		     ",\"bytes_sent\":%" PRIu64 ",\"bytes_received\":%" PRIu64,
		     endpoint, f->client ? "client" : "server", e->peer, f->epoch, f->cid,
		     f->number, f->service, s->security, s->level,
		     f->sending ? "sending" : "receiving", rxw_seconds_text(f->age_ns, age),
		     e->rate, s->bytes_sent, s->bytes_received);
	rxw_text_add(t,
		     ",\"packets_sent\":%" PRIu64 ",\"packets_received\":%" PRIu64
		     ",\"retransmitted\":%" PRIu64 ",\"duplicates\":%" PRIu64 ",\"lost\":%" PRIu64
		     ",\"loss_events\":%" PRIu64 ",\"spurious\":%" PRIu64 ",\"timeouts\":%" PRIu64,
		     s->packets_sent, s->packets_received, s->retransmitted, s->duplicates, s->lost,
		     s->loss_events, s->spurious, s->timeouts);
	rxw_text_add(t,
		     ",\"ecn\":\"%s\",\"marks_sent\":%" PRIu64 ",\"marks_seen\":%" PRIu64
		     ",\"mark_events\":%" PRIu64 ",\"marks_received\":%" PRIu64,
		     s->ecn, s->marks_sent, s->marks_seen, s->mark_events, s->marks_received);
	rxw_text_add(t,
		     ",\"queued\":%" PRIu32 ",\"in_flight\":%" PRIu32 ",\"cwnd\":%" PRIu32
		     ",\"ssthresh\":%" PRIu32 ",\"peer_window\":%" PRIu32
		     ",\"receive_window\":%" PRIu32 ",\"pacing_rate\":%" PRIu64
		     ",\"rtt_s\":%s,\"rtt_min_s\":%s,\"controller\":\"%s\",\"phase\":\"%s\"}",
		     f->queued, s->in_flight, s->cwnd, s->ssthresh, s->peer_window,
		     f->receive_window, s->pacing_rate, rxw_seconds_text(s->rtt_ns, rtt),
		     rxw_seconds_text(s->rtt_min_ns, least), s->controller, s->phase);
}

int rxw_metrics_calls(rxw_endpoint *const *endpoints, size_t count, size_t most, char **text)
{
	struct call_list l = {.most = most < MOST_CALLS ? most : MOST_CALLS};
	int rc = rxw_endpoints_check(endpoints, count);
	struct rxw_text t = {0};
	NOT_CANCELLED;

	if (!text)
		return -RXW_EINVAL;
	*text = NULL;
	if (rc)
		return rc;
	l.entry = malloc((l.most + 1) * sizeof(*l.entry));
	if (!l.entry)
		return -RXW_ENOMEM;
	for (; l.endpoint < count && !rc; l.endpoint++)
		rc = rxw_endpoint_calls(endpoints[l.endpoint], add_to_list, &l);
	if (rc)
		goto out;
	qsort(l.entry, l.count, sizeof(*l.entry), compare_rates);
	rxw_text_add(&t, "{\"calls\":[");
	for (size_t i = 0; i < l.count; i++) {
		char name[RXW_ADDRESS_TEXT];

		rxw_text_add(&t, i ? ",\n" : "\n");
		put_call(&t, &l.entry[i], rxw_bound_text(endpoints[l.entry[i].endpoint], name));
	}
	rxw_text_add(&t, "],\"left_out\":%" PRIu64 "}\n", l.left_out);
	rc = rxw_text_finish(&t, text);
out:
	free(l.entry);
	return rc;
}
