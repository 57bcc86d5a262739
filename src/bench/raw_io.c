/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw yardstick's two ends: a window of numbered datagrams, acknowledged by their count. */
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
#define RECEIVE_SIZE 65536u
#define LOST_S       2 /* loopback answers within microseconds */

/* One end: its arrays for batches, made once. */
struct end {
	const struct raw_options *o;
	int fd;
	int flags;
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

int raw_socket(const struct raw_options *o, struct sockaddr_storage *bound, bool receiver)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct timeval lost = { .tv_sec = LOST_S };
	socklen_t len = o->ipv6 ? sizeof(in6) : sizeof(in);
	int size = BUFFER;
	int fd = socket(o->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, o->ipv6 ? (void *)&in6 : (void *)&in, len) < 0)
		raw_fail("socket on loopback", strerror(errno));
	len = sizeof(*bound);
	if (getsockname(fd, (struct sockaddr *)bound, &len) < 0)
		raw_fail("getsockname", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		set(fd, SOL_SOCKET, SO_RCVBUF, size, "SO_RCVBUF");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		set(fd, SOL_SOCKET, SO_SNDBUF, size, "SO_SNDBUF");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)) < 0)
		raw_fail("SO_RCVTIMEO", strerror(errno));
	if (o->mode == RAW_GSO_GRO && receiver)
		set(fd, SOL_UDP, UDP_GRO, 1, "UDP_GRO: the kernel cannot receive trains");
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
	memset(e->buffer, 0x5a, bytes);
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

/* Send datagrams [first, first + n): each begins with its number. */
static void send_window(struct end *e, uint64_t first, unsigned n)
{
	unsigned size = e->o->size;
	unsigned train = 1, messages = 0;
	unsigned at = 0;

	if (e->o->mode >= RAW_GSO_MMSG)
		train = RAW_MAX_TRAIN / size < RAW_SEGMENTS ? RAW_MAX_TRAIN / size : RAW_SEGMENTS;
	for (unsigned i = 0; i < n; i++) {
		uint64_t number = first + i;

		memcpy(e->buffer + (size_t)i * size, &number, sizeof(number));
	}
	while (at < n) {
		struct msghdr *m = &e->hdr[messages].msg_hdr;
		unsigned k = n - at < train ? n - at : train;

		memset(m, 0, sizeof(*m));
		address(e, m);
		e->iov[messages].iov_base = e->buffer + (size_t)at * size;
		e->iov[messages].iov_len = (size_t)k * size;
		m->msg_iov = &e->iov[messages];
		m->msg_iovlen = 1;
		if (k > 1)
			raw_put_segment(m, &e->control[messages], (uint16_t)e->o->size);
		at += k;
		if (++messages == RAW_BATCH || at == n) {
			send_messages(e, messages);
			messages = 0;
		}
	}
}

/* The highest count that has come. 0, or -1 when nothing comes any more. */
static int wait_for_ack(struct end *e, uint64_t *acked)
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
	for (int i = 0; i < n; i++)
		if (count[i] > *acked)
			*acked = count[i];
	e->u->acks += n > 0 ? (unsigned)n : 0;
	return n > 0 ? 0 : -1;
}

int raw_send_all(const struct raw_options *o, int fd, const struct sockaddr_storage *to,
		 struct raw_usage *u)
{
	uint64_t total = (o->bytes + o->size - 1) / o->size;
	uint64_t next = 0, acked = 0;
	static struct end e;
	int rc = 0;

	end_init(&e, o, fd, (size_t)o->window * o->size, u);
	e.peer = *to;
	e.peer_len = o->ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (o->connect && connect(fd, (const struct sockaddr *)to, e.peer_len) < 0)
		raw_fail("connect", strerror(errno));
	while (acked < total && rc == 0) {
		uint64_t room = o->window - (next - acked);
		uint64_t left = total - next;

		if (left && room >= (o->send_room < left ? o->send_room : left)) {
			unsigned n = (unsigned)(room < left ? room : left);

			send_window(&e, next, n);
			next += n;
		} else {
			rc = wait_for_ack(&e, &acked);
		}
	}
	free(e.buffer);
	return rc;
}

/* -- Receiver --------------------------------------------------------------------------------- */

static void send_ack(struct end *e, uint64_t count)
{
	struct iovec iov = { &count, sizeof(count) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	address(e, &m);
	e->u->syscalls++;
	e->u->acks++;
	if (sendmsg(e->fd, &m, 0) < 0)
		raw_fail("send of an acknowledgement", strerror(errno));
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

/* Datagrams of a message; each must be the next one. -1: one was lost. */
static int check_message(struct end *e, unsigned i, uint64_t expected)
{
	const uint8_t *data = e->iov[i].iov_base;
	unsigned size = e->o->size;
	unsigned n = e->hdr[i].msg_len / size;

	if (n * size != e->hdr[i].msg_len)
		return -1;
	for (unsigned k = 0; k < n; k++) {
		uint64_t number;

		memcpy(&number, data + (size_t)k * size, sizeof(number));
		if (number != expected + k)
			return -1;
	}
	return (int)n;
}

/* A batch, waiting for its first message. */
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

int raw_receive_all(const struct raw_options *o, int fd, struct raw_usage *u)
{
	uint64_t total = (o->bytes + o->size - 1) / o->size;
	uint64_t received = 0, acked = 0;
	unsigned batch = o->mode == RAW_MSG ? 1 : o->mode == RAW_GSO_GRO ? 16 : RAW_BATCH;
	unsigned step = o->ack_every ? o->ack_every : 1;
	static struct end e;
	int rc = 0;

	end_init(&e, o, fd, (size_t)batch * RECEIVE_SIZE, u);
	while (received < total && rc == 0) {
		bool first = !e.peer_len;
		int r = receive_batch(&e, batch);

		if (first && r > 0 && o->connect &&
		    connect(fd, (struct sockaddr *)&e.peer, e.peer_len) < 0)
			raw_fail("connect", strerror(errno));
		rc = r > 0 ? 0 : -1;
		for (int i = 0; i < r; i++) {
			int n = check_message(&e, (unsigned)i, received);

			if (n < 0) {
				rc = -1;
				break;
			}
			received += (unsigned)n;
			/* Not merged: an acknowledgement for every step, each a system call. */
			while (!o->merge && received - acked >= step)
				send_ack(&e, acked += step);
		}
		if (received > acked && (received - acked >= step || received == total))
			send_ack(&e, acked = received);
	}
	free(e.buffer);
	return rc;
}
