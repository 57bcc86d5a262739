/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends of the raw baseline: windows of numbered datagrams, acknowledged by their count. */
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "bench/raw.h"

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BUFFER       (8 << 20)
#define SKB_BYTES    1024u     /* kernel overhead of each queued datagram */
#define SEND_BUFFER  (1u << 20) /* data per system call, to stay in the cache */
#define RECEIVE_SIZE 65536u
#define LOST_S       2 /* loopback answers within microseconds */

/* A datagram, and an acknowledgement, begins with its stream and its number or count. */
#define STREAM_SHIFT 48
#define NUMBER_MASK  (((uint64_t)1 << STREAM_SHIFT) - 1)

/* One end of all streams of a socket, with its arrays for batches. */
struct end {
	const struct raw_options *o;
	int fd;
	int flags;
	unsigned messages;  /* messages in hdr waiting to be sent */
	size_t used;        /* bytes of buffer in use */
	struct sockaddr_storage peer;
	socklen_t peer_len;
	struct raw_usage *u;
	struct mmsghdr hdr[RAW_BATCH];
	struct iovec iov[RAW_BATCH];
	union raw_control control[RAW_BATCH];
	uint8_t *buffer;
};

static void set(int fd, int level, int option, int value, const char *what)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)) < 0)
		raw_fail(what, strerror(errno));
}

void raw_set_buffers(int fd, int size)
{
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		set(fd, SOL_SOCKET, SO_RCVBUF, size, "SO_RCVBUF");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		set(fd, SOL_SOCKET, SO_SNDBUF, size, "SO_SNDBUF");
}

void raw_receive_bursts(int fd)
{
	set(fd, SOL_UDP, UDP_GRO, 1, "UDP_GRO: the kernel cannot receive bursts");
}

int raw_socket(const struct raw_options *o, struct sockaddr_storage *bound, bool receiver)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct timeval lost = { .tv_sec = LOST_S };
	socklen_t len = o->ipv6 ? sizeof(in6) : sizeof(in);
	/* All windows of the socket. The kernel doubles the requested size. */
	uint64_t all = (uint64_t)o->streams * o->window * (o->size + SKB_BYTES);
	int size = all < BUFFER ? BUFFER : all < INT32_MAX / 2 ? (int)all : INT32_MAX / 2;
	int fd = socket(o->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, o->ipv6 ? (void *)&in6 : (void *)&in, len) < 0)
		raw_fail("socket on loopback", strerror(errno));
	len = sizeof(*bound);
	if (getsockname(fd, (struct sockaddr *)bound, &len) < 0)
		raw_fail("getsockname", strerror(errno));
	raw_set_buffers(fd, size);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)) < 0)
		raw_fail("SO_RCVTIMEO", strerror(errno));
	if (o->mode == RAW_GSO_GRO && receiver)
		raw_receive_bursts(fd);
	return fd;
}

static void end_init(struct end *e, const struct raw_options *o, int fd, size_t bytes,
		     struct raw_usage *u)
{
	memset(e, 0, sizeof(*e));
	e->o = o;
	e->fd = fd;
	e->u = u;
	e->flags = o->poll ? MSG_DONTWAIT : 0;
	e->buffer = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!e->buffer)
		raw_fail("memory", strerror(errno));
}

static void address(struct end *e, struct msghdr *m)
{
	m->msg_name = e->o->connect ? NULL : &e->peer;
	m->msg_namelen = e->o->connect ? 0 : e->peer_len;
}

/* -- Sender ----------------------------------------------------------------------------------- */

void raw_put_segment(struct msghdr *m, union raw_control *c, uint16_t size)
{
	struct cmsghdr h = { .cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = SOL_UDP,
			     .cmsg_type = UDP_SEGMENT };

	memset(c, 0, sizeof(*c));
	memcpy(c->bytes, &h, sizeof(h));
	memcpy(c->bytes + CMSG_LEN(0), &size, sizeof(size));
	m->msg_control = c->bytes;
	m->msg_controllen = CMSG_SPACE(sizeof(size));
}

static void send_messages(struct end *e, unsigned n)
{
	unsigned sent = 0;

	e->u->messages += n;
	while (sent < n) {
		int r;

		e->u->syscalls++;
		if (e->o->mode == RAW_MSG)
			r = sendmsg(e->fd, &e->hdr[sent].msg_hdr, 0) < 0 ? -1 : 1;
		else
			r = sendmmsg(e->fd, e->hdr + sent, n - sent, 0);
		if (r < 0)
			raw_fail("send", strerror(errno));
		sent += (unsigned)r;
	}
}

/* Sends the batch. */
static void flush(struct end *e)
{
	send_messages(e, e->messages);
	e->messages = 0;
	e->used = 0;
}

/* Maximum datagrams in one message. */
static unsigned burst_length(const struct raw_options *o)
{
	unsigned n = RAW_MAX_BURST / o->size;

	if (o->mode < RAW_GSO_MMSG)
		return 1;
	return n < RAW_SEGMENTS ? n : RAW_SEGMENTS;
}

/* Queues datagrams [first, first + n) of a stream. */
static void send_window(struct end *e, unsigned stream, uint64_t first, unsigned n)
{
	unsigned size = e->o->size;
	unsigned burst = burst_length(e->o);

	for (unsigned at = 0; at < n;) {
		unsigned k = n - at < burst ? n - at : burst;
		struct iovec *iov;
		struct msghdr *m;

		if (e->messages == RAW_BATCH ||
		    (e->messages && e->used + (size_t)k * size > SEND_BUFFER))
			flush(e);
		m = &e->hdr[e->messages].msg_hdr;
		iov = &e->iov[e->messages];
		memset(m, 0, sizeof(*m));
		address(e, m);
		iov->iov_base = e->buffer + e->used;
		iov->iov_len = (size_t)k * size;
		m->msg_iov = iov;
		m->msg_iovlen = 1;
		if (k > 1)
			raw_put_segment(m, &e->control[e->messages], (uint16_t)size);
		for (unsigned i = 0; i < k; i++) {
			uint64_t number = (uint64_t)stream << STREAM_SHIFT | (first + at + i);

			memcpy(e->buffer + e->used + (size_t)i * size, &number, sizeof(number));
		}
		e->used += (size_t)k * size;
		e->messages++;
		at += k;
	}
}

/* State of a stream's sender. */
struct sending {
	uint64_t next;  /* next datagram to send */
	uint64_t acked; /* datagrams */
};

/* Reads the received counts. Returns 0, or -1 at a timeout. */
static int wait_for_ack(struct end *e, struct sending *streams)
{
	uint64_t count[RAW_BATCH];
	time_t polled_since = 0;
	int n;

	for (unsigned i = 0; i < RAW_BATCH; i++) {
		struct msghdr *m = &e->hdr[i].msg_hdr;

		memset(m, 0, sizeof(*m));
		e->iov[i].iov_base = &count[i];
		e->iov[i].iov_len = sizeof(count[i]);
		m->msg_iov = &e->iov[i];
		m->msg_iovlen = 1;
	}
	for (unsigned long spins = 1;; spins++) {
		e->u->syscalls++;
		if (e->o->mode == RAW_MSG)
			n = recvmsg(e->fd, &e->hdr[0].msg_hdr, e->flags) < 0 ? -1 : 1;
		else
			n = recvmmsg(e->fd, e->hdr, RAW_BATCH, e->flags | MSG_WAITFORONE, NULL);
		if (n > 0 || !e->o->poll || errno != EAGAIN)
			break;
		if (spins % 65536 == 0) {
			if (!polled_since)
				polled_since = time(NULL);
			else if (time(NULL) - polled_since > LOST_S)
				break;
		}
	}
	for (int i = 0; i < n; i++) {
		uint64_t stream = count[i] >> STREAM_SHIFT;

		count[i] &= NUMBER_MASK;
		if (stream < e->o->streams && count[i] > streams[stream].acked)
			streams[stream].acked = count[i];
	}
	e->u->acks += n > 0 ? (unsigned)n : 0;
	return n > 0 ? 0 : -1;
}

/* Queues the datagrams that the windows permit. Returns the number of unfinished streams. */
static unsigned send_what_fits(struct end *e, struct sending *streams, uint64_t total)
{
	const struct raw_options *o = e->o;
	unsigned unfinished = 0;

	for (unsigned i = 0; i < o->streams; i++) {
		struct sending *s = &streams[i];
		uint64_t room = o->window - (s->next - s->acked);
		uint64_t left = total - s->next;

		unfinished += s->acked < total;
		if (left && room >= (o->send_room < left ? o->send_room : left)) {
			unsigned n = (unsigned)(room < left ? room : left);

			send_window(e, i, s->next, n);
			s->next += n;
		}
	}
	flush(e);
	return unfinished;
}

int raw_send_all(const struct raw_options *o, int fd, const struct sockaddr_storage *to,
		 struct raw_usage *u)
{
	struct sending *streams = calloc(o->streams, sizeof(*streams));
	size_t most = (size_t)o->streams * o->window * o->size;
	struct end e;
	int rc = 0;

	if (!streams)
		raw_fail("memory", strerror(errno));
	most = most < SEND_BUFFER ? most : SEND_BUFFER;
	end_init(&e, o, fd, most, u);
	memset(e.buffer, 0x5a, most);
	e.peer = *to;
	e.peer_len = o->ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (o->connect && connect(fd, (const struct sockaddr *)to, e.peer_len) < 0)
		raw_fail("connect", strerror(errno));
	while (rc == 0 && send_what_fits(&e, streams, raw_datagrams(o)))
		rc = wait_for_ack(&e, streams);
	free(e.buffer);
	free(streams);
	return rc;
}

/* -- Receiver --------------------------------------------------------------------------------- */

/* State of a stream's receiver. */
struct receiving {
	uint64_t received, acked; /* datagrams */
	bool touched;             /* in the current batch */
};

/* Acknowledgements of one batch. Those of several streams are sent with one system call. */
struct acks {
	unsigned n;
	uint64_t count[RAW_BATCH];
	struct iovec iov[RAW_BATCH];
	struct mmsghdr hdr[RAW_BATCH];
};

static void send_acks(struct end *e, struct acks *a)
{
	unsigned sent = 0;

	e->u->acks += a->n;
	while (sent < a->n) {
		int r;

		e->u->syscalls++;
		if (a->n == 1 || e->o->mode == RAW_MSG)
			r = sendmsg(e->fd, &a->hdr[sent].msg_hdr, 0) < 0 ? -1 : 1;
		else
			r = sendmmsg(e->fd, a->hdr + sent, a->n - sent, 0);
		if (r < 0)
			raw_fail("send of an acknowledgement", strerror(errno));
		sent += (unsigned)r;
	}
	a->n = 0;
}

static void add_ack(struct end *e, struct acks *a, uint64_t stream, uint64_t count)
{
	struct msghdr *m = &a->hdr[a->n].msg_hdr;

	a->count[a->n] = stream << STREAM_SHIFT | count;
	a->iov[a->n] = (struct iovec){ &a->count[a->n], sizeof(a->count[0]) };
	memset(m, 0, sizeof(*m));
	m->msg_iov = &a->iov[a->n];
	m->msg_iovlen = 1;
	address(e, m);
	/* Not coalesced: a system call each. */
	if (++a->n == RAW_BATCH || !e->o->merge)
		send_acks(e, a);
}

static void prepare(struct end *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct msghdr *m = &e->hdr[i].msg_hdr;

		e->iov[i].iov_base = e->buffer + (size_t)i * RECEIVE_SIZE;
		e->iov[i].iov_len = RECEIVE_SIZE;
		m->msg_iov = &e->iov[i];
		m->msg_iovlen = 1;
		m->msg_name = e->peer_len ? NULL : &e->peer;
		m->msg_namelen = e->peer_len ? 0 : sizeof(e->peer);
		m->msg_control = e->o->mode == RAW_GSO_GRO ? e->control[i].bytes : NULL;
		m->msg_controllen = e->o->mode == RAW_GSO_GRO ? sizeof(e->control[i]) : 0;
	}
}

/*
 * Handles a message, whose datagrams must be the next ones of its stream. Returns the stream or -1.
 */
static int take_message(struct end *e, unsigned i, struct receiving *streams)
{
	const uint8_t *data = e->iov[i].iov_base;
	unsigned size = e->o->size;
	unsigned n = e->hdr[i].msg_len / size;
	uint64_t number, stream;

	if (n == 0 || n * size != e->hdr[i].msg_len)
		return -1;
	memcpy(&number, data, sizeof(number));
	stream = number >> STREAM_SHIFT;
	if (stream >= e->o->streams)
		return -1;
	for (unsigned k = 0; k < n; k++) {
		memcpy(&number, data + (size_t)k * size, sizeof(number));
		if (number != (stream << STREAM_SHIFT | (streams[stream].received + k)))
			return -1;
	}
	streams[stream].received += n;
	return (int)stream;
}

/* Receives a batch, waiting for its first message. */
static int receive_batch(struct end *e, unsigned n)
{
	time_t polled_since = 0;
	int r;

	prepare(e, n);
	for (unsigned long spins = 1;; spins++) {
		e->u->syscalls++;
		if (e->o->mode == RAW_MSG) {
			ssize_t len = recvmsg(e->fd, &e->hdr[0].msg_hdr, e->flags);

			r = len < 0 ? -1 : 1;
			e->hdr[0].msg_len = len < 0 ? 0 : (unsigned)len;
		} else {
			r = recvmmsg(e->fd, e->hdr, n, e->flags | MSG_WAITFORONE, NULL);
		}
		if (r > 0 || !e->o->poll || errno != EAGAIN)
			break;
		if (spins % 65536 == 0) {
			if (!polled_since)
				polled_since = time(NULL);
			else if (time(NULL) - polled_since > LOST_S)
				break;
		}
	}
	if (r > 0 && !e->peer_len)
		e->peer_len = e->hdr[0].msg_hdr.msg_namelen;
	e->u->messages += r > 0 ? (unsigned)r : 0;
	return r;
}

/* Receives a batch and acknowledges it. Returns -1, or the number of streams that it completed. */
static int take_batch(struct end *e, int messages, struct receiving *streams, struct acks *acks)
{
	uint64_t step = e->o->ack_every ? e->o->ack_every : 1;
	uint64_t total = raw_datagrams(e->o);
	unsigned touched[RAW_BATCH], n = 0;
	int ended = 0;

	for (int i = 0; i < messages; i++) {
		int stream = take_message(e, (unsigned)i, streams);
		struct receiving *s;

		if (stream < 0)
			return -1;
		s = &streams[stream];
		if (!s->touched)
			touched[n++] = (unsigned)stream;
		s->touched = true;
		while (!e->o->merge && s->received - s->acked >= step)
			add_ack(e, acks, (unsigned)stream, s->acked += step);
	}
	for (unsigned i = 0; i < n; i++) {
		struct receiving *s = &streams[touched[i]];

		s->touched = false;
		ended += s->received == total;
		if (s->received > s->acked &&
		    (s->received - s->acked >= step || s->received == total))
			add_ack(e, acks, touched[i], s->acked = s->received);
	}
	send_acks(e, acks);
	return ended;
}

/* Messages per receiving system call: bursts are few, and each needs a large buffer. */
static unsigned receive_batch_size(const struct raw_options *o)
{
	unsigned bursts = o->streams * (o->window / burst_length(o) + 2);

	if (o->mode == RAW_MSG)
		return 1;
	if (o->mode != RAW_GSO_GRO)
		return RAW_BATCH;
	return bursts < RAW_BURSTS ? bursts : RAW_BURSTS;
}

int raw_receive_all(const struct raw_options *o, int fd, struct raw_usage *u)
{
	unsigned batch = receive_batch_size(o);
	struct receiving *streams = calloc(o->streams, sizeof(*streams));
	struct acks acks = { 0 };
	unsigned ended = 0;
	struct end e;

	if (!streams)
		raw_fail("memory", strerror(errno));
	end_init(&e, o, fd, (size_t)batch * RECEIVE_SIZE, u);
	while (ended < o->streams) {
		bool first = !e.peer_len;
		int r = receive_batch(&e, batch);

		if (first && r > 0 && o->connect &&
		    connect(fd, (struct sockaddr *)&e.peer, e.peer_len) < 0)
			raw_fail("connect", strerror(errno));
		r = r > 0 ? take_batch(&e, r, streams, &acks) : -1;
		if (r < 0)
			break;
		ended += (unsigned)r;
	}
	free(e.buffer);
	free(streams);
	return ended == o->streams ? 0 : -1;
}
