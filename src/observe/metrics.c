/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of endpoints in the text format of Prometheus. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/observe.h>
#include <rxwire/rxwire.h>

#include "common/cancel.h"
#include "common/counters.h"
#include "observe/observe.h"

#define PHASES_MOST    7
#define FIRST_DURATION 16384ull /* ns: upper bound of the first number of rxw_durations */

/* The controllers, and the phases that rxw_send_phase() knows of each. */
static const struct {
	const char *controller, *phase[PHASES_MOST + 1];
} controllers[] = {
	{"reno", {"slow-start", "avoidance", "recovery"}},
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
	char name[RXW_ADDRESS_TEXT]; /* "127.0.0.1:7009" */
	struct counters counters;
	struct rxw_effective effective;
	struct rxw_durations durations;
	struct senders senders;
};

static void put_family_head(struct rxw_text *t, const char *name, const char *type,
			    const char *help)
{
	rxw_text_add(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Length of the first part of a counter's name: that of its family. */
static size_t measure_family(const struct rxw_counter *c)
{
	return c->label[0] ? strcspn(c->name, ".") : strlen(c->name);
}

/* `,direction="sent",type="data"` */
static void put_labels(struct rxw_text *t, const struct rxw_counter *c)
{
	const char *value = c->name + measure_family(c);

	for (unsigned i = 0; i < 2 && c->label[i]; i++) {
		size_t length;

		assert(*value == '.');
		value++;
		length = i == 0 && c->label[1] ? strcspn(value, ".") : strlen(value);
		rxw_text_add(t, ",%s=\"%.*s\"", c->label[i], (int)length, value);
		value += length;
	}
}

/* The counters whose names begin alike, from index `first` on, of every endpoint. Returns the next index. */
static size_t put_family(struct rxw_text *t, size_t first, const struct subject *s, size_t count)
{
	const struct rxw_counter *f = rxw_counter_at(first), *c;
	size_t length = measure_family(f), end = first;
	char name[64];

	snprintf(name, sizeof(name), "rxwire_%.*s%s", (int)length, f->name,
		 f->kind == RXW_COUNTER_TOTAL ? "_total" : "");
	put_family_head(t, name, f->kind == RXW_COUNTER_TOTAL ? "counter" : "gauge", f->help);
	while (end < COUNTERS_ROOM && (c = rxw_counter_at(end)) && measure_family(c) == length &&
	       strncmp(c->name, f->name, length) == 0)
		end++;
	for (size_t i = 0; i < count; i++)
		for (size_t k = first; k < end; k++) {
			rxw_text_add(t, "%s{endpoint=\"%s\"", name, s[i].name);
			put_labels(t, rxw_counter_at(k));
			rxw_text_add(t, "} %llu\n", (unsigned long long)s[i].counters.value[k]);
		}
	return end;
}

/* The calls that an endpoint has served or made. */
static void put_durations(struct rxw_text *t, const char *name, const char *labels,
			  const uint64_t slot[RXW_DURATIONS], uint64_t sum_ns)
{
	unsigned long long sum = 0;
	char text[32];

	for (unsigned i = 0; i + 1 < RXW_DURATIONS; i++) {
		sum += slot[i];
		rxw_text_add(t, "%s_bucket{%s,le=\"%s\"} %llu\n", name, labels,
			     rxw_seconds_text(FIRST_DURATION << i, text), sum);
	}
	sum += slot[RXW_DURATIONS - 1];
	rxw_text_add(t, "%s_bucket{%s,le=\"+Inf\"} %llu\n", name, labels, sum);
	rxw_text_add(t, "%s_sum{%s} %s\n", name, labels, rxw_seconds_text(sum_ns, text));
	rxw_text_add(t, "%s_count{%s} %llu\n", name, labels, sum);
}

/* Successful calls, by duration. */
static void put_latency(struct rxw_text *t, const struct subject *s, size_t count)
{
	static const char name[] = "rxwire_call_duration_seconds";

	put_family_head(t, name, "histogram",
			"Calls by their duration: served, "
			"from the first packet to the handler's end; made, from begin to "
			"the end of the reply.");
	for (size_t i = 0; i < count; i++) {
		const struct rxw_durations *d = &s[i].durations;
		char labels[RXW_ADDRESS_TEXT + 32];

		snprintf(labels, sizeof(labels), "endpoint=\"%s\",role=\"server\"", s[i].name);
		put_durations(t, name, labels, d->served, d->served_ns);
		snprintf(labels, sizeof(labels), "endpoint=\"%s\",role=\"client\"", s[i].name);
		put_durations(t, name, labels, d->made, d->made_ns);
	}
}

static void put_senders(struct rxw_text *t, const struct subject *s, size_t count)
{
	char text[32];

	put_family_head(t, "rxwire_senders", "gauge",
			"Calls with data to send, by congestion controller and its phase.");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < CONTROLLERS; k++)
			for (unsigned n = 0; n <= PHASES_MOST; n++) {
				const char *phase =
					n < PHASES_MOST ? controllers[k].phase[n] : "timeout";

				if (phase)
					rxw_text_add(
						t,
						"rxwire_senders{endpoint=\"%s\",controller=\"%s\","
						"phase=\"%s\"} %llu\n",
						s[i].name, controllers[k].controller, phase,
						(unsigned long long)s[i].senders.in_phase[k][n]);
			}
	put_family_head(t, "rxwire_senders_cwnd_packets", "gauge",
			"Sum of their congestion windows.");
	for (size_t i = 0; i < count; i++)
		rxw_text_add(t, "rxwire_senders_cwnd_packets{endpoint=\"%s\"} %llu\n", s[i].name,
			     (unsigned long long)s[i].senders.cwnd);
	put_family_head(t, "rxwire_senders_in_flight_packets", "gauge",
			"Sum of their packets in flight.");
	for (size_t i = 0; i < count; i++)
		rxw_text_add(t, "rxwire_senders_in_flight_packets{endpoint=\"%s\"} %llu\n",
			     s[i].name, (unsigned long long)s[i].senders.in_flight);
	put_family_head(t, "rxwire_senders_pacing_bytes_per_second", "gauge",
			"Sum of the rates at which they are paced.");
	for (size_t i = 0; i < count; i++)
		rxw_text_add(t, "rxwire_senders_pacing_bytes_per_second{endpoint=\"%s\"} %llu\n",
			     s[i].name, (unsigned long long)s[i].senders.pacing_rate);
	put_family_head(t, "rxwire_senders_rtt_seconds", "gauge",
			"Mean of their smoothed round-trip times.");
	for (size_t i = 0; i < count; i++) {
		const struct senders *all = &s[i].senders;

		rxw_text_add(t, "rxwire_senders_rtt_seconds{endpoint=\"%s\"} %s\n", s[i].name,
			     rxw_seconds_text(all->count ? all->rtt_ns / all->count : 0, text));
	}
}

/* Everything but counters: the effective configuration. */
static void put_info(struct rxw_text *t, const struct subject *s, size_t count)
{
	put_family_head(t, "rxwire_build_info", "gauge", "1, with the version as a label.");
	rxw_text_add(t, "rxwire_build_info{version=\"%s\"} 1\n", rxw_version());
	put_family_head(t, "rxwire_endpoint_info", "gauge", "1, with what is in effect as labels.");
	for (size_t i = 0; i < count; i++)
		rxw_text_add(t,
			     "rxwire_endpoint_info{endpoint=\"%s\",io=\"%s\",listeners=\"%u\","
			     "window=\"%u\",mtu=\"%u\",gso=\"%d\",gro=\"%d\"} 1\n",
			     s[i].name, s[i].effective.io, s[i].effective.listeners,
			     s[i].effective.window, s[i].effective.mtu, s[i].effective.gso,
			     s[i].effective.gro);
	put_family_head(t, "rxwire_socket_buffer_bytes", "gauge",
			"Socket buffer granted by the kernel.");
	for (size_t i = 0; i < count; i++) {
		rxw_text_add(
			t,
			"rxwire_socket_buffer_bytes{endpoint=\"%s\",direction=\"received\"} %zu\n",
			s[i].name, s[i].effective.rcvbuf);
		rxw_text_add(t,
			     "rxwire_socket_buffer_bytes{endpoint=\"%s\",direction=\"sent\"} %zu\n",
			     s[i].name, s[i].effective.sndbuf);
	}
}

static void add_sender(void *arg, const struct rxw_call_view *call)
{
	const struct rxw_call_statistics *s = call->statistics;
	struct senders *all = arg;
	size_t k = 0;
	unsigned n = 0;

	if (!call->queued)
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

static int read_subject(struct subject *s, rxw_endpoint *endpoint)
{
	int rc;

	s->effective.size = sizeof(s->effective);
	s->durations.size = sizeof(s->durations);
	rc = rxw_endpoint_effective(endpoint, &s->effective);
	if (rc)
		return rc;
	rc = counters_read(&s->counters, endpoint);
	if (rc)
		return rc;
	rc = rxw_endpoint_durations(endpoint, &s->durations);
	if (rc)
		return rc;
	rxw_bound_text(endpoint, s->name);
	return rxw_endpoint_calls(endpoint, add_sender, &s->senders);
}

int rxw_metrics_text(rxw_endpoint *const *endpoints, size_t count, char **text)
{
	struct rxw_text t = {0};
	struct subject *s;
	int rc = rxw_endpoints_check(endpoints, count);
	NOT_CANCELLED;

	if (!text)
		return -RXW_EINVAL;
	*text = NULL;
	if (rc)
		return rc;
	s = calloc(count ? count : 1, sizeof(*s));
	if (!s)
		return -RXW_ENOMEM;
	for (size_t i = 0; i < count && !rc; i++)
		rc = read_subject(&s[i], endpoints[i]);
	if (rc)
		goto out;
	put_info(&t, s, count);
	for (size_t i = 0; i < COUNTERS_ROOM && rxw_counter_at(i);)
		i = put_family(&t, i, s, count);
	put_latency(&t, s, count);
	put_senders(&t, s, count);
	rc = rxw_text_finish(&t, text);
out:
	free(s);
	return rc;
}
