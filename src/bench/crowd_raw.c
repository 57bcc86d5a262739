/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of crowd_raw_server: each asks for a few blocks of a file at a time, for the next one as
 * soon as a block is complete, and for what has not arrived in time again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench/crowd.h"
#include "bench/crowd_raw.h"
#include "bench/raw.h"
#include "common/clock.h"

#define BLOCKS	  3u	    /* in flight: about as much as a call of rxwire */
#define BUFFER	  (1 << 20) /* of the socket: these blocks, and the kernel's overhead */
#define WAIT_MIN  64u	    /* ms until data counts as lost, at least and at most */
#define WAIT_MAX  2048u
#define FIRST_NS  (250 * NS_PER_MS) /* a guess of the time of the first block */
#define MAP_WORDS ((CROWD_RAW_PIECES + 63) / 64)

struct block {
	uint64_t offset, asked_ns;
	uint32_t length, left;	  /* bytes; nothing left: not in use */
	uint64_t have[MAP_WORDS]; /* pieces that have arrived */
	bool repeated;
};

struct client {
	struct crowd_client base;
	struct sockaddr_in server; /* with the port that the socket is connected to */
	uint16_t data_port, status_port;
	int fd;
	unsigned wait_ms;  /* that the socket waits */
	uint64_t block_ns; /* a block takes, smoothed */
	struct block blocks[BLOCKS];
};

/* A file on its way. */
struct transfer {
	struct client *client;
	const struct crowd_file *file;
	uint64_t next, left; /* bytes asked for, and bytes that have not arrived */
};

/* ---- the socket ---- */

/* Data and status have ports of their own. */
static int use_port(struct client *c, uint16_t port, char *why)
{
	if (c->server.sin_port == htons(port))
		return 0;
	c->server.sin_port = htons(port);
	return connect(c->fd, (struct sockaddr *)&c->server, sizeof(c->server))
		       ? crowd_explain_errno(why, "connect")
		       : 0;
}

/* Wait for four times as long as a block takes. */
static int set_wait(struct client *c, char *why)
{
	struct timeval t = {0};
	unsigned ms = WAIT_MIN;

	while (ms < WAIT_MAX && ms * NS_PER_MS < 4 * c->block_ns)
		ms *= 2;
	if (ms == c->wait_ms)
		return 0;
	c->wait_ms = ms;
	t.tv_sec = ms / 1000;
	t.tv_usec = ms % 1000 * 1000;
	return setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t))
		       ? crowd_explain_errno(why, "SO_RCVTIMEO")
		       : 0;
}

static int open_raw(void *client, const struct crowd_place *place, char *why)
{
	struct client *c = client;

	c->data_port = (uint16_t)place->raw_port;
	c->status_port = (uint16_t)place->raw_status_port;
	c->block_ns = FIRST_NS;
	c->server.sin_family = AF_INET;
	if (inet_pton(AF_INET, place->address, &c->server.sin_addr) != 1)
		return crowd_explain(why, "the server's address is not numeric");
	c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return crowd_explain_errno(why, "socket");
	raw_set_buffers(c->fd, BUFFER);
	raw_receive_bursts(c->fd);
	return set_wait(c, why);
}

static void close_raw(void *client)
{
	struct client *c = client;

	close(c->fd);
}

static void interrupt_raw(void *client)
{
	struct client *c = client;

	shutdown(c->fd, SHUT_RDWR);
}

static int send_request(struct client *c, const struct crowd_raw_request *r, char *why)
{
	return send(c->fd, r, sizeof(*r), MSG_NOSIGNAL) == (ssize_t)sizeof(*r)
		       ? 0
		       : crowd_explain_errno(why, "send");
}

/* Bytes that have arrived, 0 if none have in time, or -1. `since`: of the last progress. */
static ssize_t receive(struct client *c, void *buffer, size_t size, uint64_t since, char *why)
{
	ssize_t n = recv(c->fd, buffer, size, 0);

	if (n > 0)
		return n;
	if (n == 0)
		return crowd_explain(why, "interrupted");
	if (errno != EAGAIN)
		return crowd_explain_errno(why, "recv");
	if (monotonic_ns() - since > c->base.limit_ms * NS_PER_MS)
		return crowd_explain(why, "the server does not answer");
	return 0;
}

/* ---- a file ---- */

static int ask_for_next(struct transfer *t, struct block *b, char *why)
{
	uint64_t left = t->file->length - t->next;
	struct crowd_raw_request r = {.offset = t->next, .file = t->file->number};

	memset(b, 0, sizeof(*b));
	if (!left)
		return 0;
	b->offset = t->next;
	b->length = b->left = left < CROWD_RAW_BLOCK ? (uint32_t)left : CROWD_RAW_BLOCK;
	b->asked_ns = monotonic_ns();
	t->next += b->length;
	r.length = b->length;
	return send_request(t->client, &r, why);
}

static bool has_piece(const struct block *b, uint32_t piece)
{
	return b->have[piece / 64] >> piece % 64 & 1;
}

/* Each run of missing pieces by a request. */
static int ask_again(struct transfer *t, struct block *b, char *why)
{
	uint32_t pieces = (b->length + CROWD_RAW_DATA - 1) / CROWD_RAW_DATA;

	b->asked_ns = monotonic_ns();
	b->repeated = true;
	for (uint32_t first = 0, end; first < pieces; first = end + 1) {
		struct crowd_raw_request r = {.file = t->file->number};
		uint32_t at = first * CROWD_RAW_DATA;

		for (end = first; end < pieces && !has_piece(b, end); end++)
			;
		if (end == first)
			continue;
		r.offset = b->offset + at;
		r.length = end == pieces ? b->length - at : (end - first) * CROWD_RAW_DATA;
		r.again = end - first;
		if (send_request(t->client, &r, why) < 0)
			return -1;
	}
	return 0;
}

/* Ask for what is overdue again. */
static int ask_overdue(struct transfer *t, char *why)
{
	uint64_t now = monotonic_ns();

	for (unsigned i = 0; i < BLOCKS; i++) {
		struct block *b = &t->client->blocks[i];

		if (b->left && now - b->asked_ns >= t->client->wait_ms * NS_PER_MS &&
		    ask_again(t, b, why) < 0)
			return -1;
	}
	return 0;
}

static int complete(struct transfer *t, struct block *b, char *why)
{
	struct client *c = t->client;

	if (!b->repeated)
		c->block_ns += (monotonic_ns() - b->asked_ns) / 8 - c->block_ns / 8;
	if (set_wait(c, why) < 0 || ask_for_next(t, b, why) < 0)
		return -1;
	return ask_overdue(t, why);
}

/* The bytes of a datagram that had not arrived before; -1: a failure. */
static int take_piece(struct transfer *t, const struct crowd_raw_head *h, const uint8_t *data,
		      char *why)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		struct block *b = &t->client->blocks[i];
		uint64_t at = h->offset - b->offset;
		uint32_t piece = (uint32_t)(at / CROWD_RAW_DATA), length;

		if (at >= b->length || at % CROWD_RAW_DATA || has_piece(b, piece))
			continue;
		length = b->length - (uint32_t)at;
		if (h->length != (length < CROWD_RAW_DATA ? length : CROWD_RAW_DATA))
			return crowd_explain(why, "a datagram has another length");
		crowd_compare(t->file, h->offset, data, h->length);
		b->have[piece / 64] |= (uint64_t)1 << piece % 64;
		b->left -= h->length;
		if (!b->left && complete(t, b, why) < 0)
			return -1;
		return (int)h->length;
	}
	return 0;
}

/* A burst of datagrams; the same, of all. */
static int take_burst(struct transfer *t, const uint8_t *data, size_t left, char *why)
{
	struct crowd_raw_head h;
	int sum = 0;

	for (; left >= sizeof(h); data += h.length, left -= h.length) {
		int took = 0;

		memcpy(&h, data, sizeof(h));
		data += sizeof(h);
		left -= sizeof(h);
		if (h.length > left)
			return crowd_explain(why, "a datagram is too short");
		/* Not one of an earlier file that was sent twice. */
		if (h.file == t->file->number)
			took = take_piece(t, &h, data, why);
		if (took < 0)
			return -1;
		sum += took;
	}
	return sum;
}

static int receive_file(struct transfer *t, uint8_t *buffer, _Atomic(uint64_t) *bytes, char *why)
{
	uint64_t since = monotonic_ns();

	while (t->left) {
		ssize_t n = receive(t->client, buffer, CROWD_BUFFER, since, why);
		int took = n > 0 ? take_burst(t, buffer, (size_t)n, why) : (int)n;

		if (took < 0 || (n == 0 && ask_overdue(t, why) < 0))
			return -1;
		if (!took)
			continue;
		t->left -= (unsigned)took;
		since = monotonic_ns();
		atomic_fetch_add_explicit(bytes, (unsigned)took, memory_order_relaxed);
	}
	return 0;
}

static int fetch_raw(void *client, const struct crowd_file *file, uint8_t *buffer,
		     _Atomic(uint64_t) *bytes, char *why)
{
	struct transfer t = {.client = client, .file = file, .left = file->length};

	if (use_port(t.client, t.client->data_port, why) < 0)
		return -1;
	for (unsigned i = 0; i < BLOCKS; i++)
		if (ask_for_next(&t, &t.client->blocks[i], why) < 0)
			return -1;
	return receive_file(&t, buffer, bytes, why);
}

/* ---- its status ---- */

static int get_status(struct client *c, uint32_t file, struct crowd_raw_status *s, char *why)
{
	const struct crowd_raw_request r = {.file = file};
	uint64_t since = monotonic_ns();

	if (use_port(c, c->status_port, why) < 0 || send_request(c, &r, why) < 0)
		return -1;
	for (;;) {
		ssize_t n = receive(c, s, sizeof(*s), since, why);

		if (n < 0 || (n == 0 && send_request(c, &r, why) < 0))
			return -1;
		if (n == (ssize_t)sizeof(*s) && s->file == file)
			return 0;
	}
}

static int ask_raw(void *client, const struct crowd_file *file, char *why)
{
	struct crowd_raw_status s;

	return get_status(client, file->number, &s, why);
}

static int find_raw(void *client, struct crowd_file *file, char *why)
{
	struct crowd_raw_status s;

	if (get_status(client, file->number, &s, why) < 0)
		return -1;
	file->length = s.length;
	return 0;
}

const struct crowd_way crowd_raw = {.name = "datagrams",
				    .client_size = sizeof(struct client),
				    .open = open_raw,
				    .find = find_raw,
				    .fetch = fetch_raw,
				    .ask = ask_raw,
				    .interrupt = interrupt_raw,
				    .close = close_raw};
