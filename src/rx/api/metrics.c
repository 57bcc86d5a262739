/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of endpoints in the text format of Prometheus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/metrics.h>
#include <rxwire/rxwire.h>

#include "engine/fork/fork.h"
#include "api/counters.h"
#include "api/flows.h"
#include "api/text.h"
#include "engine/objects.h"

#define PHASES_MOST 7

/* The controllers, and the phases that rxw_send_phase() knows of each. */
static const struct {
	const char *controller, *phase[PHASES_MOST + 1];
} controllers[] = {
	{"reno", {"slow-start", "avoidance", "recovery"}},
	{"cubic", {"slow-start", "avoidance", "recovery"}},
	{"rate", {"startup", "drain", "down", "cruise", "refill", "up", "shrink"}},
};
#define CONTROLLERS (sizeof(controllers) / sizeof(controllers[0]))

/* The calls that have something to send. */
struct senders {
	uint64_t in_phase[CONTROLLERS][PHASES_MOST + 1]; /* the last one: after a timeout */
	uint64_t cwnd, in_flight, pacing_rate;
	uint64_t rtt_ns, count; /* sum, of so many calls */
};

/* An endpoint and its statistics. */
struct subject {
	rxw_endpoint *endpoint;
	char name[72]; /* "127.0.0.1:7009" */
	struct rxw_sums sums;
	struct rxw_effective effective;
	struct rxw_latency latency[2]; /* served, made */
	struct senders senders;
};

static void head(struct rxw_text *t, const char *name, const char *type, const char *help)
{
	rxw_put(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The counters of one row of the table, of every endpoint. */
static void put_family(struct rxw_text *t, const struct rxw_family *f, const struct subject *s,
		       size_t count)
{
	bool total = f->kind == RXW_COUNTER_TOTAL;
	char name[64];

	snprintf(name, sizeof(name), "rxwire_%s%s", f->name, total ? "_total" : "");
	head(t, name, total ? "counter" : "gauge", f->help);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < rxw_family_size(f); k++) {
			rxw_put(t, "%s{endpoint=\"%s\"", name, s[i].name);
			for (unsigned l = 0; l < 2 && f->label[l].count; l++)
				rxw_put(t, ",%s=\"%s\"", f->label[l].name,
					rxw_family_label(f, l, k));
			rxw_put(t, "} %llu\n",
				(unsigned long long)rxw_family_value(f, &s[i].sums, k));
		}
}

/* Successful calls, by duration. */
static void put_latency(struct rxw_text *t, const struct subject *s, size_t count)
{
	static const char name[] = "rxwire_call_duration_seconds";
	static const char *const role[] = {"server", "client"};
	char text[32];

	head(t, name, "histogram",
	     "Calls by their duration: served, "
	     "from the first packet to the handler's end; made, from begin to "
	     "the end of the reply.");
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < 2; k++) {
			const struct rxw_latency *l = &s[i].latency[k];
			unsigned long long sum = 0;

			for (unsigned b = 0; b + 1 < RXW_LATENCY_SLOTS; b++) {
				sum += l->slot[b];
				rxw_put(t,
					"%s_bucket{endpoint=\"%s\",role=\"%s\",le=\"%s\"} %llu\n",
					name, s[i].name, role[k],
					rxw_seconds(rxw_latency_bound(b), text), sum);
			}
			sum += l->slot[RXW_LATENCY_SLOTS - 1];
			rxw_put(t, "%s_bucket{endpoint=\"%s\",role=\"%s\",le=\"+Inf\"} %llu\n",
				name, s[i].name, role[k], sum);
			rxw_put(t, "%s_sum{endpoint=\"%s\",role=\"%s\"} %s\n", name, s[i].name,
				role[k], rxw_seconds(l->sum, text));
			rxw_put(t, "%s_count{endpoint=\"%s\",role=\"%s\"} %llu\n", name, s[i].name,
				role[k], sum);
		}
}

static void put_senders(struct rxw_text *t, const struct subject *s, size_t count)
{
	char text[32];

	head(t, "rxwire_senders", "gauge",
	     "Calls with data to send, by congestion controller and its phase.");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < CONTROLLERS; k++)
			for (unsigned n = 0; n <= PHASES_MOST; n++) {
				const char *phase =
					n < PHASES_MOST ? controllers[k].phase[n] : "timeout";

				if (phase)
					rxw_put(t,
						"rxwire_senders{endpoint=\"%s\",controller=\"%s\","
						"phase=\"%s\"} %llu\n",
						s[i].name, controllers[k].controller, phase,
						(unsigned long long)s[i].senders.in_phase[k][n]);
			}
	head(t, "rxwire_senders_cwnd_packets", "gauge", "Sum of their congestion windows.");
	for (size_t i = 0; i < count; i++)
		rxw_put(t, "rxwire_senders_cwnd_packets{endpoint=\"%s\"} %llu\n", s[i].name,
			(unsigned long long)s[i].senders.cwnd);
	head(t, "rxwire_senders_in_flight_packets", "gauge", "Sum of their packets in flight.");
	for (size_t i = 0; i < count; i++)
		rxw_put(t, "rxwire_senders_in_flight_packets{endpoint=\"%s\"} %llu\n", s[i].name,
			(unsigned long long)s[i].senders.in_flight);
	head(t, "rxwire_senders_pacing_bytes_per_second", "gauge",
	     "Sum of the rates at which they are paced.");
	for (size_t i = 0; i < count; i++)
		rxw_put(t, "rxwire_senders_pacing_bytes_per_second{endpoint=\"%s\"} %llu\n",
			s[i].name, (unsigned long long)s[i].senders.pacing_rate);
	head(t, "rxwire_senders_rtt_seconds", "gauge", "Mean of their smoothed round-trip times.");
	for (size_t i = 0; i < count; i++) {
		const struct senders *all = &s[i].senders;

		rxw_put(t, "rxwire_senders_rtt_seconds{endpoint=\"%s\"} %s\n", s[i].name,
			rxw_seconds(all->count ? all->rtt_ns / all->count : 0, text));
	}
}

/* Everything but counters: the effective configuration, and memory. */
static void put_info(struct rxw_text *t, const struct subject *s, size_t count)
{
	head(t, "rxwire_build_info", "gauge", "1, with the version as a label.");
	rxw_put(t, "rxwire_build_info{version=\"%s\"} 1\n", rxw_version());
	head(t, "rxwire_endpoint_info", "gauge", "1, with what is in effect as labels.");
	for (size_t i = 0; i < count; i++)
		rxw_put(t,
			"rxwire_endpoint_info{endpoint=\"%s\",io=\"%s\",listeners=\"%u\","
			"window=\"%u\",mtu=\"%u\",gso=\"%d\",gro=\"%d\"} 1\n",
			s[i].name, s[i].effective.io, s[i].effective.listeners,
			s[i].effective.window, s[i].effective.mtu, s[i].effective.gso,
			s[i].effective.gro);
	head(t, "rxwire_socket_buffer_bytes", "gauge", "Socket buffer granted by the kernel.");
	for (size_t i = 0; i < count; i++) {
		rxw_put(t,
			"rxwire_socket_buffer_bytes{endpoint=\"%s\",direction=\"received\"} %zu\n",
			s[i].name, s[i].effective.rcvbuf);
		rxw_put(t, "rxwire_socket_buffer_bytes{endpoint=\"%s\",direction=\"sent\"} %zu\n",
			s[i].name, s[i].effective.sndbuf);
	}
	head(t, "rxwire_memory_bytes", "gauge",
	     "Packet memory in use by the engine of the "
	     "endpoint.");
	for (size_t i = 0; i < count; i++)
		rxw_put(t, "rxwire_memory_bytes{endpoint=\"%s\"} %lld\n", s[i].name,
			(long long)atomic_load(&s[i].endpoint->engine->memory.used));
	head(t, "rxwire_memory_limit_bytes", "gauge",
	     "Limit of the packet memory of that "
	     "engine.");
	for (size_t i = 0; i < count; i++)
		rxw_put(t, "rxwire_memory_limit_bytes{endpoint=\"%s\"} %lld\n", s[i].name,
			(long long)s[i].endpoint->engine->memory.limit);
}

static void note_sender(void *arg, const struct rxw_flow *flow)
{
	const struct rxw_call_statistics *s = &flow->s;
	struct senders *all = arg;
	size_t k = 0;
	unsigned n = 0;

	if (!flow->queued)
		return;
	all->cwnd += s->cwnd;
	all->in_flight += s->in_flight;
	all->pacing_rate += s->pacing_rate;
	all->count += s->rtt_ns != 0;
	all->rtt_ns += s->rtt_ns;
	while (k < CONTROLLERS && strcmp(controllers[k].controller, s->controller) != 0)
		k++;
	if (k == CONTROLLERS)
		return;
	while (n < PHASES_MOST &&
	       (!controllers[k].phase[n] || strcmp(controllers[k].phase[n], s->phase) != 0))
		n++;
	if (n < PHASES_MOST || strcmp(s->phase, "timeout") == 0)
		all->in_phase[k][n]++;
}

static void read_stats(struct subject *s)
{
	const struct rxw_endpoint *ep = s->endpoint;

	s->effective.size = sizeof(s->effective);
	rxw_sums_read(s->endpoint, &s->sums);
	rxw_endpoint_effective(s->endpoint, &s->effective);
	for (unsigned i = 0; i < ep->shard_count; i++)
		for (unsigned k = 0; k < 2; k++)
			rxw_latency_fold(&s->latency[k], &ep->shard[i].stats.latency[k]);
	rxw_flows_visit(s->endpoint, note_sender, &s->senders);
	rxw_addr_text(&ep->io.bound, s->name, sizeof(s->name));
}

__attribute__((cold))
int rxw_metrics_text(rxw_endpoint *const *endpoints, size_t count, char **text)
{
	struct rxw_text t = {0};
	struct subject *s;

	if (!text || (count && !endpoints))
		return -RXW_EINVAL;
	*text = NULL;
	for (size_t i = 0; i < count; i++)
		if (!endpoints[i])
			return -RXW_EINVAL;
		else if (rxw_endpoint_inherited(endpoints[i]))
			return -RXW_ESTATE;
	s = calloc(count ? count : 1, sizeof(*s));
	if (!s)
		return -RXW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		s[i].endpoint = endpoints[i];
		read_stats(&s[i]);
	}
	put_info(&t, s, count);
	for (size_t i = 0; i < rxw_family_count; i++)
		put_family(&t, &rxw_families[i], s, count);
	put_latency(&t, s, count);
	put_senders(&t, s, count);
	free(s);
	if (t.failed) {
		free(t.at);
		return -RXW_ENOMEM;
	}
	*text = t.at;
	return (int)t.used;
}
