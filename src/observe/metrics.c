/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of endpoints in the text format of Prometheus, and their calls in progress as JSON. */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/call.h>
#include <rxwire/endpoint.h>
#include <rxwire/error.h>
#include <rxwire/observe.h>
#include <rxwire/rxwire.h>
#include <rxwire/stats.h>

#include "common/cancel.h"
#include "common/clock.h"
#include "common/counters.h"
#include "observe/observe.h"

/* Initially zero; the owner frees `at`. */
struct rxw_text {
	char *at;
	size_t used, room;
	bool failed; /* no memory: the text is incomplete */
};

#define FIRST_ROOM 16384u

__attribute__((format(printf, 2, 3))) static void rxw_text_add(struct rxw_text *t,
							       const char *format, ...)
{
	va_list args;
	int n;

	for (;;) {
		size_t left = t->room - t->used;
		char *more;

		assert(t->used <= t->room);
		va_start(args, format);
		n = t->at ? vsnprintf(t->at + t->used, left, format, args) : 0;
		va_end(args);
		if (t->at && n >= 0 && (size_t)n < left) {
			t->used += (size_t)n;
			return;
		}
		more = t->failed ? NULL : realloc(t->at, t->room ? 2 * t->room : FIRST_ROOM);
		if (!more) {
			t->failed = true;
			return;
		}
		t->room = t->room ? 2 * t->room : FIRST_ROOM;
		t->at = more;
	}
}

/*
 * Stores the complete text, which the caller frees, and returns its length; or stores NULL and returns
 * -RXW_ENOMEM.
 */
static int rxw_text_finish(struct rxw_text *t, char **text)
{
	assert(t->at || t->failed);
	if (t->failed) {
		free(t->at);
		*text = NULL;
		return -RXW_ENOMEM;
	}
	*text = t->at;
	return (int)t->used;
}

/* Nanoseconds as exact seconds, with a point in every locale. Returns `text`. */
static const char *rxw_seconds_text(uint64_t ns, char text[32])
{
	snprintf(text, 32, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
		 (unsigned long long)(ns % 1000000000u));
	return text;
}

/* "1.2.3.4:7000", "[::1]:7000". Returns `text`. */
static const char *rxw_address_text(const struct sockaddr *sa, char text[RXW_ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN];

	assert(sa->sa_family == AF_INET || sa->sa_family == AF_INET6);
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const void *)sa;
		char scope[16] = "";

		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
		if (six->sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", (unsigned)six->sin6_scope_id);
		snprintf(text, RXW_ADDRESS_TEXT, "[%s%s]:%u", host, scope, ntohs(six->sin6_port));
	} else {
		const struct sockaddr_in *four = (const void *)sa;

		inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
		snprintf(text, RXW_ADDRESS_TEXT, "%s:%u", host, ntohs(four->sin_port));
	}
	return text;
}

const char *rxw_bound_text(rxw_endpoint *endpoint, char text[RXW_ADDRESS_TEXT])
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	if (rxw_endpoint_address(endpoint, &sa, &length) < 0)
		return strcpy(text, "?");
	return rxw_address_text((const struct sockaddr *)&sa, text);
}

/* 0; -RXW_EINVAL: the list, unless it is empty, or one of the endpoints is NULL. */
static int rxw_endpoints_check(rxw_endpoint *const *endpoints, size_t count)
{
	if (count && !endpoints)
		return -RXW_EINVAL;
	for (size_t i = 0; i < count; i++)
		if (!endpoints[i])
			return -RXW_EINVAL;
	return 0;
}

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

#define MOST_CALLS 10000u

struct entry {
	uint64_t rate; /* mean bytes per second of both streams since the call began */
	size_t endpoint;
	struct rxw_call_view call;
	struct rxw_call_statistics statistics;
	char peer[RXW_ADDRESS_TEXT];
};

/* The calls with the highest rates: a heap whose root has the lowest one. */
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
