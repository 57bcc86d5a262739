/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries of all endpoints on the command line with VERSION and DEBUG packets (rx-protocol 8), as OpenAFS's
 * tools do, and of the programs whose sockets it names.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"
#include "common/clock.h"
#include "rxwstat/stat.h"

/* ---- one endpoint ---- */

#define EPOCH	  999u /* of packets outside connections */
#define TRIES	  4
#define ROOM	  2048
#define END_CID	  0xffffffffu
#define MS	  1000000u
#define LETTER_AT 14 /* in the basic statistics */

struct asker {
	int fd;
	uint32_t number; /* of the latest query */
	uint64_t timeout_ms;
	int tries;
	bool gone; /* the port is closed */
};

/* Wait for the answer to query a->number: its size, 0 if none came in time. */
static size_t await_answer(struct asker *a, uint8_t type, uint8_t *packet, uint64_t timeout_ms)
{
	uint64_t end = monotonic_ns() + timeout_ms * MS, now;

	while ((now = monotonic_ns()) < end) {
		struct pollfd p = {.fd = a->fd, .events = POLLIN};
		struct rxw_header h;
		ssize_t n;

		if (poll(&p, 1, (int)((end - now) / MS) + 1) < 0 && errno != EINTR)
			return 0;
		n = recv(a->fd, packet, ROOM, MSG_DONTWAIT);
		if (n < 0 && errno == ECONNREFUSED) {
			a->gone = true;
			return 0;
		}
		if (n < (ssize_t)RXW_HEADER_SIZE || !rxw_header_get(packet, (size_t)n, &h))
			continue;
		if (h.type == type && h.call == a->number && !(h.flags & RXW_CLIENT_INITIATED))
			return (size_t)n;
	}
	return 0;
}

/* Send a query, with retries; the body of the answer in *body. Its size, 0 = none. */
static size_t send_query(struct asker *a, uint8_t type, const uint8_t *ask, size_t ask_size,
			 uint8_t packet[ROOM], uint8_t **body)
{
	struct rxw_header h = {
		.epoch = EPOCH, .type = type, .flags = RXW_CLIENT_INITIATED | RXW_LAST_PACKET};
	uint64_t timeout = a->timeout_ms;

	for (int i = 0; i < a->tries && !a->gone; i++, timeout *= 2) {
		uint8_t out[RXW_HEADER_SIZE + 8];
		size_t n;

		h.call = ++a->number;
		rxw_header_put(out, &h);
		memcpy(out + RXW_HEADER_SIZE, ask, ask_size);
		if (send(a->fd, out, RXW_HEADER_SIZE + ask_size, 0) < 0 && errno == ECONNREFUSED)
			a->gone = true;
		n = await_answer(a, type, packet, timeout);
		*body = packet + RXW_HEADER_SIZE;
		if (n)
			return n - RXW_HEADER_SIZE;
	}
	return 0;
}

static size_t send_debug_query(struct asker *a, uint32_t type, uint32_t index, uint8_t packet[ROOM],
			       uint8_t **body)
{
	uint8_t ask[8];

	rxw_put32(ask, type);
	rxw_put32(ask + 4, index);
	return send_query(a, RXW_DEBUG, ask, sizeof(ask), packet, body);
}

/* Make room for another element after `count`. NULL: no memory. */
static void *make_element_room(void *list, size_t count, size_t element)
{
	if (count & (count - 1))
		return list;
	return realloc(list, (count ? 2 * count : 1) * element);
}

static void list_conns(struct asker *a, struct stat_view *v, uint64_t most, bool all)
{
	uint8_t packet[ROOM], *body;
	struct rxw_debug_conn c;

	for (uint32_t i = 0;; i++) {
		size_t n = send_debug_query(a, all ? RXW_DEBUG_ALLCONN : RXW_DEBUG_CONN, i, packet,
					    &body);
		void *more;

		/* Other hosts get cid 0; the end of the list has a cid of its own. */
		if (!n || !rxw_debug_conn_get(body, n, &c) || c.cid == END_CID)
			return;
		if (i >= most) {
			v->more = true;
			return;
		}
		more = make_element_room(v->conns, v->conn_count, sizeof(c));
		if (!more)
			return;
		v->conns = more;
		v->conns[v->conn_count++] = c;
	}
}

static void list_peers(struct asker *a, struct stat_view *v, uint64_t most)
{
	static const uint8_t end[4] = {0xff, 0xff, 0xff, 0xff};
	uint8_t packet[ROOM], *body;
	struct rxw_debug_peer p;

	for (uint32_t i = 0;; i++) {
		size_t n = send_debug_query(a, RXW_DEBUG_PEER, i, packet, &body);
		void *more;

		if (!n || !rxw_debug_peer_get(body, n, &p) || !memcmp(p.host, end, 4))
			return;
		if (i >= most) {
			v->more = true;
			return;
		}
		more = make_element_room(v->peers, v->peer_count, sizeof(p));
		if (!more)
			return;
		v->peers = more;
		v->peers[v->peer_count++] = p;
	}
}

static uint64_t peer_bytes(const struct rxw_debug_peer *p)
{
	return p->bytes_sent + p->bytes_received;
}

/* The bytes that a peer has moved since `before`; NULL: in all. */
static uint64_t new_peer_bytes(const struct rxw_debug_peer *p, const struct stat_view *before)
{
	for (size_t i = 0; before && i < before->peer_count; i++) {
		const struct rxw_debug_peer *old = &before->peers[i];

		if (!memcmp(old->host, p->host, sizeof(p->host)) && old->port == p->port)
			return peer_bytes(p) - peer_bytes(old);
	}
	return peer_bytes(p);
}

/* A peer, and what it has moved. */
struct ordered_peer {
	struct rxw_debug_peer peer;
	uint64_t bytes;
};

static int compare_peers(const void *a, const void *b)
{
	const struct ordered_peer *x = a, *y = b;
	uint64_t all = peer_bytes(&x->peer), other = peer_bytes(&y->peer);

	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
				    : (all < other) - (all > other);
}

void stat_order_peers(struct stat_view *v, const struct stat_view *before)
{
	struct ordered_peer *list = v->peer_count ? calloc(v->peer_count, sizeof(*list)) : NULL;

	if (!list)
		return;
	for (size_t i = 0; i < v->peer_count; i++)
		list[i] = (struct ordered_peer){v->peers[i], new_peer_bytes(&v->peers[i], before)};
	qsort(list, v->peer_count, sizeof(*list), compare_peers);
	for (size_t i = 0; i < v->peer_count; i++)
		v->peers[i] = list[i].peer;
	free(list);
}

static void ask_version(struct asker *a, struct stat_view *v)
{
	uint8_t packet[ROOM], *body, nothing = 0;
	size_t n = send_query(a, RXW_VERSION, &nothing, 1, packet, &body);

	if (n >= sizeof(v->version))
		n = sizeof(v->version) - 1;
	memcpy(v->version, n ? (const char *)body : "", n);
	v->version[n] = 0;
	for (char *c = v->version; *c; c++) /* it is shown on terminals */
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}

/* A socket that is connected to the address; false if there cannot be one. */
static bool open_asker(struct asker *a, const struct tools_address *address, uint64_t timeout_ms,
		       int tries)
{
	*a = (struct asker){.timeout_ms = timeout_ms, .tries = tries};
	a->number = (uint32_t)monotonic_ns(); /* distinguishes late answers to other queries */
	a->fd = socket(address->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (a->fd < 0)
		return false;
	if (connect(a->fd, (const struct sockaddr *)&address->sa, address->len) == 0)
		return true;
	close(a->fd);
	return false;
}

bool stat_answers(const struct tools_address *address, uint64_t timeout_ms)
{
	uint8_t packet[ROOM], *body, nothing = 0;
	struct asker a;
	bool good;

	if (!open_asker(&a, address, timeout_ms, 2))
		return false;
	good = send_query(&a, RXW_VERSION, &nothing, 1, packet, &body) > 0;
	close(a.fd);
	return good;
}

/* Query everything that an endpoint answers. False: no answer. */
static bool stat_ask(struct stat_view *v, uint64_t timeout_ms, uint64_t most, bool all)
{
	uint8_t packet[ROOM], *body;
	struct asker a;
	size_t n;

	v->at = monotonic_ns();
	if (!open_asker(&a, &v->address, timeout_ms, TRIES))
		return false;
	ask_version(&a, v);
	n = *v->version && !a.gone ? send_debug_query(&a, RXW_DEBUG_STATS, 0, packet, &body) : 0;
	v->answered = n && rxw_debug_stats_get(body, n, &v->basic);
	if (v->answered) {
		v->letter = (char)body[LETTER_AT];
		n = send_debug_query(&a, RXW_DEBUG_RXSTATS, 0, packet, &body);
		v->have_rx = n && rxw_debug_rxstats_get(body, n, &v->rx);
		list_conns(&a, v, most, all);
		list_peers(&a, v, most);
		stat_order_peers(v, NULL);
	}
	close(a.fd);
	return v->answered || *v->version;
}

/* ---- all endpoints ---- */

void stat_forget(struct stat_view *views, size_t count)
{
	for (size_t i = 0; views && i < count; i++) {
		for (size_t k = 0; k < views[i].samples.count; k++) {
			free(views[i].samples.at[k].name);
			free(views[i].samples.at[k].labels);
		}
		free(views[i].samples.at);
		free(views[i].conns);
		free(views[i].peers);
		json_decref(views[i].calls);
	}
	free(views);
}

static struct stat_view *add_view(struct stat_view **views, size_t *count)
{
	struct stat_view *more = realloc(*views, (*count + 1) * sizeof(*more));

	if (!more)
		return NULL;
	*views = more;
	memset(&more[*count], 0, sizeof(*more));
	return &more[(*count)++];
}

/* Copy the samples of this endpoint. */
static bool copy_samples(struct stat_view *v, const struct stat_samples *all)
{
	v->samples.at = calloc(all->count ? all->count : 1, sizeof(*v->samples.at));
	for (size_t i = 0; v->samples.at && i < all->count; i++) {
		struct stat_sample *to = &v->samples.at[v->samples.count];
		char name[TOOLS_ADDRESS_TEXT];

		if (!stat_label(all->at[i].labels, "endpoint", name, sizeof(name)) ||
		    strcmp(name, v->name) != 0)
			continue;
		to->name = strdup(all->at[i].name);
		to->labels = strdup(all->at[i].labels);
		to->value = all->at[i].value;
		v->samples.count++;
		if (!to->name || !to->labels)
			return false;
	}
	return v->samples.at != NULL;
}

/* The address at which this host queries an endpoint with this local address. */
static bool find_query_address(struct stat_view *v)
{
	char host[256], message[256];
	uint16_t port = 0;
	const char *at = host;

	if (tools_split_host(v->name, host, sizeof(host), &port, 1) < 0)
		return false;
	if (!strcmp(host, "0.0.0.0"))
		at = "127.0.0.1";
	else if (!strcmp(host, "::"))
		at = "::1";
	return tools_resolve(at, port, 0, &v->address, message, sizeof(message)) == 0;
}

/* Query each endpoint of the program that serves the socket. */
static bool collect_from_socket(const struct stat_source *source, const char *path,
				struct stat_view **views, size_t *count, char *message, size_t size)
{
	char *text = stat_fetch(path, "/metrics", source->timeout_ms, message, size);
	char *calls, ignored[256];
	struct stat_samples all;
	bool good = true;

	if (!text)
		return false;
	if (!stat_parse(text, &all)) {
		snprintf(message, size, "%s: malformed response", path);
		free(text);
		return false;
	}
	/* Programs with an older library list no calls. */
	calls = stat_fetch(path, "/calls", source->timeout_ms, ignored, sizeof(ignored));
	for (size_t i = 0; i < all.count && good; i++) {
		struct stat_view *v;

		if (strcmp(all.at[i].name, "rxwire_endpoint_info") != 0)
			continue;
		v = add_view(views, count);
		good = v && stat_label(all.at[i].labels, "endpoint", v->name, sizeof(v->name)) &&
		       copy_samples(v, &all);
		if (good && calls)
			stat_take_calls(v, calls);
		if (good && find_query_address(v))
			stat_ask(v, source->timeout_ms, source->most, source->all);
	}
	if (!good)
		snprintf(message, size, "no memory");
	free(all.at);
	free(calls);
	free(text);
	return good;
}

struct stat_view *stat_collect(const struct stat_source *source, size_t *count, char *message,
			       size_t size)
{
	struct stat_view *views = calloc(1, sizeof(*views));
	bool good = views != NULL;

	*count = 0;
	snprintf(message, size, "no memory");
	for (size_t i = 0; good && i < source->address_count; i++) {
		struct stat_view *v = add_view(&views, count);

		good = v != NULL;
		if (!good)
			break;
		v->address = source->addresses[i];
		tools_address_text(&v->address.sa, v->name, sizeof(v->name));
		stat_ask(v, source->timeout_ms, source->most, source->all);
	}
	for (size_t i = 0; good && i < source->socket_count; i++)
		good = collect_from_socket(source, source->sockets[i], &views, count, message,
					   size);
	if (good)
		return views;
	stat_forget(views, *count);
	return NULL;
}
