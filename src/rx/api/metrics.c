/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of endpoints in the text format of Prometheus. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/metrics.h>
#include <rxwire/rxwire.h>

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
	struct rxw_stats stats;
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

/* A counter or gauge that is one member of struct rxw_stats. */
struct metric {
	const char *name, *help;
	size_t offset;
	bool wide; /* uint64_t, else uint32_t */
};

#define COUNT64(member, text)                                                              \
	{                                                                                  \
		"rxwire_" #member "_total", text, offsetof(struct rxw_stats, member), true \
	}
#define GAUGE32(member, text)                                                      \
	{                                                                          \
		"rxwire_" #member, text, offsetof(struct rxw_stats, member), false \
	}

static const struct metric counters[] = {
	COUNT64(retransmitted, "DATA packets retransmitted."),
	COUNT64(duplicates, "DATA packets received more than once."),
	COUNT64(gso_messages, "Messages of several datagrams passed to the kernel (GSO)."),
	COUNT64(gro_messages, "Messages of several datagrams received from the kernel (GRO)."),
	COUNT64(wakeups, "Threads woken to read, write or serve."),
	COUNT64(calls_started, "Calls begun in both directions."),
	COUNT64(calls_ended, "Calls that ended successfully."),
	COUNT64(calls_aborted, "Calls that failed."),
	COUNT64(calls_timed_out, "Calls that timed out."),
	COUNT64(calls_refused, "Calls refused because the server is busy."),
	COUNT64(kernel_drops, "Datagrams dropped by the kernel because the socket buffer was "
			      "full."),
	COUNT64(wrong_shard, "Packets that arrived at another socket than that of their "
			     "connection."),
	COUNT64(gso_fallbacks, "Times that the kernel refused GSO."),
	COUNT64(gro_fallbacks, "Times that the kernel refused GRO."),
	COUNT64(send_errors, "Messages that the kernel refused to send."),
	COUNT64(send_retries, "Messages sent again after a temporary error."),
	COUNT64(stateless_aborts, "ABORT packets sent without a connection."),
	COUNT64(version_answers, "VERSION packets answered."),
	COUNT64(debug_answers, "DEBUG packets answered."),
	COUNT64(loss_events, "Loss events: reactions of congestion control to lost packets."),
	COUNT64(spurious_losses, "False losses, whose reactions were undone."),
	COUNT64(rto_events, "Retransmission timeouts."),
	COUNT64(probes, "Tail loss probes."),
	COUNT64(calls_given_up, "Calls aborted because they made too little progress while "
				"others waited."),
	COUNT64(unvalidated_connections, "Connections created for unvalidated addresses."),
	COUNT64(cookies_sent, "Clients asked to validate their address because no room was "
			      "left."),
	COUNT64(cookies_returned, "Clients that validated their address when asked."),
	COUNT64(connections_evicted, "Idle connections removed because of connections-max."),
};

static const struct metric gauges[] = {
	GAUGE32(connections_client, "Client connections."),
	GAUGE32(connections_server, "Server connections."),
	GAUGE32(calls_active, "Calls in progress."),
	GAUGE32(calls_waiting, "Calls waiting for a worker."),
	GAUGE32(peers, "Peers (address and port) in memory."),
	GAUGE32(workers, "Worker threads."),
	GAUGE32(workers_idle, "Idle workers."),
	GAUGE32(workers_parked, "Workers blocked on their clients."),
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void head(struct text *t, const char *name, const char *type, const char *help)
{
	put(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static unsigned long long value_of(const struct subject *s, const struct metric *m)
{
	const uint8_t *at = (const uint8_t *)&s->stats + m->offset;
	uint64_t wide;
	uint32_t narrow;

	if (m->wide) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void put_plain(struct text *t, const struct metric *m, const char *type,
		      const struct subject *s, size_t count)
{
	head(t, m->name, type, m->help);
	for (size_t i = 0; i < count; i++)
		put(t, "%s{endpoint=\"%s\"} %llu\n", m->name, s[i].name, value_of(&s[i], m));
}

/* Two metrics of one family that differ in a label. */
struct pair {
	const char *name, *help, *label, *first, *second;
	size_t offset_first, offset_second;
};
#define PAIR(name, help, label, a, b, text_a, text_b)                             \
	{                                                                         \
		name, help, label, text_a, text_b, offsetof(struct rxw_stats, a), \
			offsetof(struct rxw_stats, b)                             \
	}

static const struct pair pairs[] = {
	PAIR("rxwire_datagrams_total", "UDP datagrams.", "direction", datagrams_received,
	     datagrams_sent, "received", "sent"),
	PAIR("rxwire_bytes_total", "Bytes of UDP payload.", "direction", bytes_received, bytes_sent,
	     "received", "sent"),
	PAIR("rxwire_windows_total",
	     "Windows opened by an acknowledgement, by the thread that "
	     "sent the data.",
	     "sent_by", windows_by_writer, windows_by_receiver, "writer", "receiver"),
	PAIR("rxwire_handlers_total", "Calls served, by the thread that ran the handler.", "on",
	     handlers_inline, handlers_worker, "receiver", "worker"),
};

static void put_pair(struct text *t, const struct pair *p, const struct subject *s, size_t count)
{
	head(t, p->name, "counter", p->help);
	for (size_t i = 0; i < count; i++) {
		const struct metric a = {NULL, NULL, p->offset_first, true};
		const struct metric b = {NULL, NULL, p->offset_second, true};

		put(t, "%s{endpoint=\"%s\",%s=\"%s\"} %llu\n", p->name, s[i].name, p->label,
		    p->first, value_of(&s[i], &a));
		put(t, "%s{endpoint=\"%s\",%s=\"%s\"} %llu\n", p->name, s[i].name, p->label,
		    p->second, value_of(&s[i], &b));
	}
}

static const char *const type_names[14] = {
	[1] = "data",	   [2] = "ack",	     [3] = "busy",  [4] = "abort",    [5] = "ackall",
	[6] = "challenge", [7] = "response", [8] = "debug", [13] = "version",
};

static void put_packets(struct text *t, const struct subject *s, size_t count)
{
	head(t, "rxwire_packets_total", "counter", "Rx packets by type.");
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < LENGTH(type_names); k++) {
			if (!type_names[k])
				continue;
			put(t,
			    "rxwire_packets_total{endpoint=\"%s\",direction=\"received\","
			    "type=\"%s\"} %llu\n",
			    s[i].name, type_names[k],
			    (unsigned long long)s[i].stats.packets_received[k]);
			put(t,
			    "rxwire_packets_total{endpoint=\"%s\",direction=\"sent\","
			    "type=\"%s\"} %llu\n",
			    s[i].name, type_names[k],
			    (unsigned long long)s[i].stats.packets_sent[k]);
		}
}

static void put_causes(struct text *t, const struct subject *s, size_t count)
{
	head(t, "rxwire_drops_total", "counter", "Datagrams and packets dropped, by cause.");
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < RXW_DROP_COUNT; k++)
			put(t, "rxwire_drops_total{endpoint=\"%s\",cause=\"%s\"} %llu\n", s[i].name,
			    rxw_drop_name((enum rxw_drop)k),
			    (unsigned long long)s[i].stats.drops[k]);
	head(t, "rxwire_lock_contended_total", "counter", "Contended lock acquisitions.");
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < RXW_LOCK_COUNT; k++)
			put(t, "rxwire_lock_contended_total{endpoint=\"%s\",lock=\"%s\"} %llu\n",
			    s[i].name, rxw_lock_name((enum rxw_lock)k),
			    (unsigned long long)s[i].stats.lock_contended[k]);
	head(t, "rxwire_syscalls_total", "counter", "System calls on sockets, by operation.");
	for (size_t i = 0; i < count; i++) {
		const struct rxw_stats *v = &s[i].stats;
		const uint64_t calls[] = {v->syscalls_send, v->syscalls_recv, v->syscalls_other};
		static const char *const did[] = {"send", "receive", "other"};

		for (unsigned k = 0; k < LENGTH(did); k++)
			put(t, "rxwire_syscalls_total{endpoint=\"%s\",operation=\"%s\"} %llu\n",
			    s[i].name, did[k], (unsigned long long)calls[k]);
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
	head(t, "rxwire_pinned_bytes", "gauge", "Receive buffers held by queues.");
	for (size_t i = 0; i < count; i++)
		put(t, "rxwire_pinned_bytes{endpoint=\"%s\"} %llu\n", s[i].name,
		    (unsigned long long)s[i].stats.bytes_pinned);
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

	s->stats.size = sizeof(s->stats);
	s->effective.size = sizeof(s->effective);
	rxw_endpoint_stats(s->endpoint, &s->stats);
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
	for (size_t i = 0; i < LENGTH(gauges); i++)
		put_plain(&t, &gauges[i], "gauge", s, count);
	for (size_t i = 0; i < LENGTH(counters); i++)
		put_plain(&t, &counters[i], "counter", s, count);
	for (size_t i = 0; i < LENGTH(pairs); i++)
		put_pair(&t, &pairs[i], s, count);
	put_packets(&t, s, count);
	put_causes(&t, s, count);
	put_latency(&t, s, count);
	free(s);
	if (t.failed) {
		free(t.at);
		return -RXW_ENOMEM;
	}
	*text = t.at;
	return (int)t.used;
}
