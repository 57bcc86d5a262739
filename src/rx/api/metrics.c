/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of endpoints in the text format of Prometheus. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/metrics.h>
#include <rxwire/rxwire.h>

#include "api/counters.h"
#include "engine/objects.h"

#define FIRST_ROOM 16384u

/* A growing text. */
struct text {
	char *at;
	size_t used, room;
	bool failed; /* no memory: the text is incomplete */
};

/* An endpoint and its statistics. */
struct subject {
	rxw_endpoint *endpoint;
	char name[72]; /* "127.0.0.1:7009" */
	struct rxw_sums sums;
	struct rxw_effective effective;
	struct rxw_latency latency[2]; /* served, made */
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	for (;;) {
		size_t left = t->room - t->used;
		char *more;

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

static void head(struct text *t, const char *name, const char *type, const char *help)
{
	put(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The counters of one row of the table, of every endpoint. */
static void put_family(struct text *t, const struct rxw_family *f, const struct subject *s,
		       size_t count)
{
	bool total = f->kind == RXW_COUNTER_TOTAL;
	char name[64];

	snprintf(name, sizeof(name), "rxwire_%s%s", f->name, total ? "_total" : "");
	head(t, name, total ? "counter" : "gauge", f->help);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < rxw_family_size(f); k++) {
			put(t, "%s{endpoint=\"%s\"", name, s[i].name);
			for (unsigned l = 0; l < 2 && f->label[l].count; l++)
				put(t, ",%s=\"%s\"", f->label[l].name, rxw_family_label(f, l, k));
			put(t, "} %llu\n",
			    (unsigned long long)rxw_family_value(f, &s[i].sums, k));
		}
}

/* Nanoseconds as exact seconds, with a point in every locale. */
static const char *seconds(uint64_t ns, char text[32])
{
	snprintf(text, 32, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
		 (unsigned long long)(ns % 1000000000u));
	return text;
}

/* Successful calls, by duration. */
static void put_latency(struct text *t, const struct subject *s, size_t count)
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
				put(t, "%s_bucket{endpoint=\"%s\",role=\"%s\",le=\"%s\"} %llu\n",
				    name, s[i].name, role[k], seconds(rxw_latency_bound(b), text),
				    sum);
			}
			sum += l->slot[RXW_LATENCY_SLOTS - 1];
			put(t, "%s_bucket{endpoint=\"%s\",role=\"%s\",le=\"+Inf\"} %llu\n", name,
			    s[i].name, role[k], sum);
			put(t, "%s_sum{endpoint=\"%s\",role=\"%s\"} %s\n", name, s[i].name, role[k],
			    seconds(l->sum, text));
			put(t, "%s_count{endpoint=\"%s\",role=\"%s\"} %llu\n", name, s[i].name,
			    role[k], sum);
		}
}

/* Everything but counters: the effective configuration, and memory. */
static void put_info(struct text *t, const struct subject *s, size_t count)
{
	head(t, "rxwire_build_info", "gauge", "1, with the version as a label.");
	put(t, "rxwire_build_info{version=\"%s\"} 1\n", rxw_version());
	head(t, "rxwire_endpoint_info", "gauge", "1, with what is in effect as labels.");
	for (size_t i = 0; i < count; i++)
		put(t,
		    "rxwire_endpoint_info{endpoint=\"%s\",io=\"%s\",listeners=\"%u\",window=\"%u\","
		    "mtu=\"%u\",gso=\"%d\",gro=\"%d\"} 1\n",
		    s[i].name, s[i].effective.io, s[i].effective.listeners, s[i].effective.window,
		    s[i].effective.mtu, s[i].effective.gso, s[i].effective.gro);
	head(t, "rxwire_socket_buffer_bytes", "gauge", "Socket buffer granted by the kernel.");
	for (size_t i = 0; i < count; i++) {
		put(t, "rxwire_socket_buffer_bytes{endpoint=\"%s\",direction=\"received\"} %zu\n",
		    s[i].name, s[i].effective.rcvbuf);
		put(t, "rxwire_socket_buffer_bytes{endpoint=\"%s\",direction=\"sent\"} %zu\n",
		    s[i].name, s[i].effective.sndbuf);
	}
	head(t, "rxwire_memory_bytes", "gauge",
	     "Packet memory in use by the engine of the "
	     "endpoint.");
	for (size_t i = 0; i < count; i++)
		put(t, "rxwire_memory_bytes{endpoint=\"%s\"} %lld\n", s[i].name,
		    (long long)atomic_load(&s[i].endpoint->engine->memory.used));
	head(t, "rxwire_memory_limit_bytes", "gauge",
	     "Limit of the packet memory of that "
	     "engine.");
	for (size_t i = 0; i < count; i++)
		put(t, "rxwire_memory_limit_bytes{endpoint=\"%s\"} %lld\n", s[i].name,
		    (long long)s[i].endpoint->engine->memory.limit);
}

static void name_endpoint(struct subject *s)
{
	struct sockaddr_storage sa;
	socklen_t size = sizeof(sa);
	char host[INET6_ADDRSTRLEN] = "?";
	bool six;

	snprintf(s->name, sizeof(s->name), "?");
	if (rxw_endpoint_address(s->endpoint, &sa, &size) < 0)
		return;
	six = sa.ss_family == AF_INET6;
	if (six)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&sa)->sin6_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET, &((struct sockaddr_in *)&sa)->sin_addr, host, sizeof(host));
	snprintf(s->name, sizeof(s->name), six ? "[%s]:%u" : "%s:%u", host,
		 ntohs(six ? ((struct sockaddr_in6 *)&sa)->sin6_port
			   : ((struct sockaddr_in *)&sa)->sin_port));
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
	name_endpoint(s);
}

int rxw_metrics_text(rxw_endpoint *const *endpoints, size_t count, char **text)
{
	struct text t = {0};
	struct subject *s;

	if (!text || (count && !endpoints))
		return -RXW_EINVAL;
	*text = NULL;
	for (size_t i = 0; i < count; i++)
		if (!endpoints[i])
			return -RXW_EINVAL;
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
	free(s);
	if (t.failed) {
		free(t.at);
		return -RXW_ENOMEM;
	}
	*text = t.at;
	return (int)t.used;
}
