/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of one port: opening and closing, waiting and waking, options in effect. Back-ends: one datagram per
 * system call, for any system and as a baseline; or many messages, single or segmented. Sets of sockets that one thread
 * waits for.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "io/io_sock.h"

/* --- back-ends --- */

static int msg_recv(struct rxw_io_sock *s, struct rxw_io_in *in, unsigned n, int flags)
{
	unsigned i;

	/* Wait for the first one only. */
	for (i = 0; i < n; i++, flags |= MSG_DONTWAIT) {
		ssize_t r = recvmsg(s->fd, &in->hdr[i].msg_hdr, flags);

		rxw_io_count(&s->stats.syscalls_recv, 1);
		if (r < 0)
			break;
		in->hdr[i].msg_len = (unsigned)r;
	}
	if (i)
		return (int)i;
	return n ? -errno : 0;
}

static int msg_send(struct rxw_io_sock *s, struct rxw_io_out *out, unsigned n, int flags)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		rxw_io_count(&s->stats.syscalls_send, 1);
		if (sendmsg(s->fd, &out->hdr[i].msg_hdr, flags) < 0)
			break;
	}
	if (i)
		return (int)i;
	return n ? -errno : 0;
}

const struct rxw_io_backend rxw_io_backend_msg = {
	.name = "msg",
	.gso = false,
	.recv = msg_recv,
	.send = msg_send,
};

#if RXW_ENABLE_MMSG
static int mmsg_recv(struct rxw_io_sock *s, struct rxw_io_in *in, unsigned n, int flags)
{
	int r = recvmmsg(s->fd, in->hdr, n, flags | MSG_WAITFORONE, NULL);

	rxw_io_count(&s->stats.syscalls_recv, 1);
	return r < 0 ? -errno : r;
}

static int mmsg_send(struct rxw_io_sock *s, struct rxw_io_out *out, unsigned n, int flags)
{
	int r = sendmmsg(s->fd, out->hdr, n, flags);

	rxw_io_count(&s->stats.syscalls_send, 1);
	return r < 0 ? -errno : r;
}

const struct rxw_io_backend rxw_io_backend_mmsg = {
	.name = "mmsg",
	.gso = true,
	.recv = mmsg_recv,
	.send = mmsg_send,
};
#endif

/* --- the sockets of a port --- */

void rxw_io_warn(struct rxw_io_sock *s, enum rxw_io_warning once, const char *format, ...)
{
	char line[256];
	va_list ap;

	if (!s->log)
		return;
	if (atomic_fetch_or_explicit(s->warned, (unsigned)once, memory_order_relaxed) &
	    (unsigned)once)
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	s->log(s->log_arg, once == RXW_IO_NOTE_BUFFERS ? 6 /* LOG_INFO */ : 4 /* LOG_WARNING */,
	       line);
}

static const struct rxw_io_backend *choose_backend(const struct rxw_io_options *o)
{
#if RXW_ENABLE_MMSG
	if (!o->plain)
		return &rxw_io_backend_mmsg;
#else
	(void)o;
#endif
	return &rxw_io_backend_msg;
}

/* Add a socket. On failure it is closed and the group is unchanged. */
static int add_socket(struct rxw_io_group *g, const struct rxw_io_options *o,
		      const struct rxw_addr *join, int given)
{
	struct rxw_io_sock *s = calloc(1, sizeof(*s));
	int rc;

	assert(g->count < sizeof(g->sock) / sizeof(g->sock[0]));
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->warned = o->warned ? o->warned : g->count ? g->sock[0]->warned : &s->warned_here;
	s->backend = choose_backend(o);
	s->batch = o->batch < 1 ? 1 : o->batch > RXW_IO_BATCH ? RXW_IO_BATCH : o->batch;
	s->log = o->log;
	s->log_arg = o->log_arg;
	s->fd = s->wake_fd = -1;
	if (o->faults)
		s->faults = *o->faults;
	rc = rxw_io_sock_open(s, o, join, given);
	if (rc < 0)
		goto fail;
	if (o->cpu) {
		int cpu = o->cpu[g->count];

		/* A hint for kernels since 6.2 that refuse the program which selects a socket. */
		(void)setsockopt(s->fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof(cpu));
	}
	g->sock[g->count++] = s;
	return 0;
fail:
	rxw_io_sock_close(s);
	return rc;
}

static int read_bound(struct rxw_io_group *g)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(g->sock[0]->fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	return rxw_addr_set(&g->bound, (struct sockaddr *)&ss, len) ? 0 : -EAFNOSUPPORT;
}

/*
 * The first socket was bound alone, which proves that the port was free. Now the others join. A
 * failure leaves fewer sockets, but at least one.
 */
static void open_others(struct rxw_io_group *g, const struct rxw_io_options *o)
{
	int rc = rxw_io_sock_share(g->sock[0]);

	while (rc == 0 && g->count < o->sockets)
		rc = add_socket(g, o, &g->bound, -1);
	if (rc < 0)
		rxw_io_warn(g->sock[0], RXW_IO_WARN_REUSEPORT,
			    "only %u of %u sockets could share the port (SO_REUSEPORT: %s)",
			    g->count, o->sockets, strerror(-rc));
}

/* Let the kernel select the socket by connection id, or by processor; without a program, it does so by itself. */
static void steer_sockets(struct rxw_io_group *g, const struct rxw_io_options *o)
{
	int rc;

	if (g->count < 2 || o->steer == 1)
		return;
	rc = rxw_io_sock_steer(g->sock[0], g->count, o);
	g->steered = rc == 0;
	if (rc < 0)
		rxw_io_warn(g->sock[0], RXW_IO_WARN_STEER,
			    "the kernel refused the steering program (%s): addresses and ports "
			    "decide which socket a datagram reaches", strerror(-rc));
}

/* The application's sockets: all of them, or none. */
static int open_given(struct rxw_io_group *g, const struct rxw_io_options *options)
{
	struct rxw_io_options o = *options;
	int rc = rxw_io_sock_address(o.given[0], &o.bind);

	if (rc < 0)
		return rc;
	o.dual = rxw_io_sock_dual(o.given[0], &o.bind);
	while (g->count < o.sockets) {
		rc = add_socket(g, &o, NULL, o.given[g->count]);
		if (rc < 0)
			return rc;
	}
	g->bound = o.bind;
	return 0;
}

static int open_own(struct rxw_io_group *g, const struct rxw_io_options *options)
{
	int rc;

	if (!options->bind.len || (options->bind.u.sa.sa_family != AF_INET &&
				   options->bind.u.sa.sa_family != AF_INET6))
		return -EAFNOSUPPORT;
	rc = add_socket(g, options, NULL, -1);
	if (rc < 0)
		return rc;
	rc = read_bound(g);
	if (rc == 0 && options->sockets > 1)
		open_others(g, options);
	return rc;
}

int rxw_io_open(struct rxw_io_group *g, const struct rxw_io_options *options)
{
	int rc;

	memset(g, 0, sizeof(*g));
	if (options->sockets < 1 || options->sockets > sizeof(g->sock) / sizeof(g->sock[0]))
		return -EINVAL;
	rc = options->given ? open_given(g, options) : open_own(g, options);
	if (rc < 0) {
		rxw_io_close(g);
		return rc;
	}
	g->backend = g->sock[0]->backend->name;
	g->dual = g->sock[0]->dual;
	steer_sockets(g, options);
	return 0;
}

void rxw_io_read_ecn(struct rxw_io_group *g)
{
	if (atomic_load_explicit(&g->reads_ecn, memory_order_relaxed))
		return;
	for (unsigned i = 0; i < g->count; i++)
		rxw_io_sock_read_ecn(g->sock[i]);
	atomic_store_explicit(&g->reads_ecn, true, memory_order_relaxed);
}

void rxw_io_close(struct rxw_io_group *g)
{
	int saved = errno;

	/* Close the first socket last: the others refer to it. */
	while (g->count > 0)
		rxw_io_sock_close(g->sock[--g->count]);
	memset(g, 0, sizeof(*g));
	errno = saved;
}

int rxw_io_wait(struct rxw_io_sock *s, uint64_t timeout_us)
{
	struct pollfd p[2] = { { .fd = s->fd, .events = POLLIN },
			       { .fd = s->wake_fd, .events = POLLIN } };
	struct timespec t = { .tv_sec = (time_t)(timeout_us / 1000000),
			      .tv_nsec = (long)(timeout_us % 1000000) * 1000 };
	uint64_t woken;
	NOT_CANCELLED;

	/* Unread reports would end every wait at once; they are therefore reported only once. */
	if (atomic_load_explicit(&s->errors_pending, memory_order_relaxed)) {
		s->errors_offered = !s->errors_offered;
		if (s->errors_offered)
			return 1;
		rxw_io_errors_drop(s);
	}
	rxw_io_count(&s->stats.syscalls_other, 1);
	if (ppoll(p, 2, &t, NULL) <= 0)
		return 0;
	if (p[1].revents & POLLIN) {
		rxw_io_count(&s->stats.syscalls_other, 1);
		if (read(s->wake_fd, &woken, sizeof(woken)) < 0)
			woken = 0; /* consumed by another wait */
	}
	if (p[0].revents & POLLERR) {
		s->errors_offered = true;
		atomic_store_explicit(&s->errors_pending, true, memory_order_relaxed);
	}
	return (p[0].revents & (POLLIN | POLLERR)) != 0;
}

void rxw_io_wake(struct rxw_io_sock *s)
{
	uint64_t one = 1;
	NOT_CANCELLED;

	rxw_io_count(&s->stats.syscalls_other, 1);
	/* Fails only if the counter is full; then a wake-up is already pending. */
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		return;
}

const struct rxw_io_stats *rxw_io_sock_stats(const struct rxw_io_sock *s)
{
	return &s->stats;
}

bool rxw_io_gso(const struct rxw_io_sock *s)
{
	return s->gso;
}

bool rxw_io_gro(const struct rxw_io_sock *s)
{
	return s->gro;
}

size_t rxw_io_rcvbuf(const struct rxw_io_sock *s)
{
	return s->rcvbuf;
}

size_t rxw_io_sndbuf(const struct rxw_io_sock *s)
{
	return s->sndbuf;
}

unsigned rxw_io_max_segments(const struct rxw_io_sock *s)
{
	(void)s;
	return RXW_IO_SEGMENTS;
}
