/* SPDX-License-Identifier: BSD-2-Clause */
/* Querying an endpoint with VERSION and DEBUG packets (rx-protocol 8), as OpenAFS's tools do. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"
#include "common/clock.h"
#include "program/report.h"
#include "rxwstat/stat.h"

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

bool stat_ask(struct stat_view *v, uint64_t timeout_ms, uint64_t most, bool all)
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
	}
	close(a.fd);
	return v->answered || *v->version;
}
