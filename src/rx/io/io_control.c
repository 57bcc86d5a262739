/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages: of messages to send, of received ones, and of ICMP errors about datagrams sent earlier (the error queue). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>
#include <linux/errqueue.h> /* needs struct timespec */

#include "base/assert.h"
#include "base/path_probe.h"
#include "common/cancel.h"
#include "io/io_linux.h"
#include "io/io_sock.h"

#define WAITED_MOST 10000000000 /* ns; a longer wait means that the clock was set */

/* The header is written by memcpy: the buffer is aligned, but compilers cannot know the padding. */
static size_t add_control(union rxw_io_control *c, size_t at, int level, int type, const void *data,
			  size_t size)
{
	struct cmsghdr h = { .cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type };

	assert(at + CMSG_SPACE(size) <= sizeof(c->bytes));
	memset(c->bytes + at, 0, CMSG_SPACE(size));
	memcpy(c->bytes + at, &h, sizeof(h));
	memcpy(c->bytes + at + CMSG_LEN(0), data, size);
	return at + CMSG_SPACE(size);
}

size_t rxw_io_control_build(union rxw_io_control *c, const struct rxw_io_sock *s,
			    const struct rxw_io_tx *tx, uint16_t segment)
{
	const struct rxw_addr *local = &tx->path->local;
	bool say = local->len && !s->local.len;
	size_t n = 0;

	/* A dual-stack socket sends to IPv4 as one of IPv4 does. */
	if (say && (s->family == AF_INET || s->dual) && local->u.sa.sa_family == AF_INET) {
		/* Without an interface routing selects it, as for any datagram from this address. */
		struct in_pktinfo info = {.ipi_ifindex = tx->path->ifindex,
					  .ipi_spec_dst = local->u.in.sin_addr};

		n = add_control(c, n, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else if (say && s->family == AF_INET6 && local->u.sa.sa_family == AF_INET6) {
		struct in6_pktinfo info = {.ipi6_addr = local->u.in6.sin6_addr,
					   .ipi6_ifindex = (unsigned)tx->path->ifindex};

		n = add_control(c, n, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
	if (tx->fragment && tx->path->peer.u.sa.sa_family == AF_INET6) {
		int off = 0;

		n = add_control(c, n, IPPROTO_IPV6, IPV6_DONTFRAG, &off, sizeof(off));
	}
	if (tx->ect) {
		int bits = RXW_ECN_ECT0;

		if (tx->path->peer.u.sa.sa_family == AF_INET6)
			n = add_control(c, n, IPPROTO_IPV6, IPV6_TCLASS, &bits, sizeof(bits));
		else
			n = add_control(c, n, IPPROTO_IP, IP_TOS, &bits, sizeof(bits));
	}
	if (segment)
		n = add_control(c, n, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	return n;
}

static void count_drops(struct rxw_io_sock *s, uint32_t total)
{
	/* The kernel's counter has 32 bits and wraps around. */
	uint32_t more = total - s->drops_seen;

	s->drops_seen = total;
	if (more)
		rxw_io_count(&s->stats.kernel_drops, more);
}

static void set_local4(struct rxw_path *path, const struct in_pktinfo *info)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	/* ipi_spec_dst is a local address even if the datagram was sent to a broadcast address. */
	in.sin_addr = info->ipi_spec_dst.s_addr ? info->ipi_spec_dst : info->ipi_addr;
	rxw_addr_set(&path->local, (const struct sockaddr *)&in, sizeof(in));
}

static void set_local6(struct rxw_path *path, const struct in6_pktinfo *info)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = info->ipi6_addr };

	if (IN6_IS_ADDR_LINKLOCAL(&info->ipi6_addr)) {
		in6.sin6_scope_id = info->ipi6_ifindex;
		path->ifindex = (int)info->ipi6_ifindex;
	}
	rxw_addr_set(&path->local, (const struct sockaddr *)&in6, sizeof(in6));
}

/* `now`: CLOCK_REALTIME, which may have been set since the message came. */
static uint64_t time_waited(const struct timespec *since, const struct timespec *now)
{
	int64_t ns = (int64_t)(now->tv_sec - since->tv_sec) * 1000000000 + now->tv_nsec - since->tv_nsec;

	return ns > 0 && ns < WAITED_MOST ? (uint64_t)ns : 0;
}

/* True: the message is of this kind, and *value is set. */
static bool read_control(struct cmsghdr *h, int level, int type, void *value, size_t size)
{
	if (h->cmsg_level != level || h->cmsg_type != type || h->cmsg_len < CMSG_LEN(size))
		return false;
	memcpy(value, CMSG_DATA(h), size);
	return true;
}

void rxw_io_control_parse(struct rxw_io_sock *s, const struct msghdr *m, uint32_t length,
			  const struct timespec *now, struct rxw_io_rx *rx)
{
	struct msghdr *walk = (struct msghdr *)m; /* CMSG_NXTHDR takes no const */

	rx->length = length;
	rx->segment = length;
	rx->ecn = RXW_ECN_NOT;
	rx->waited = 0;
	rx->truncated = (m->msg_flags & MSG_TRUNC) != 0;
	rx->path.local = s->local;
	rx->path.ifindex = s->family == AF_INET6 ? (int)s->local.u.in6.sin6_scope_id : 0;
	if (!rxw_addr_set(&rx->path.peer, m->msg_name, m->msg_namelen))
		memset(&rx->path.peer, 0, sizeof(rx->path.peer));
	for (struct cmsghdr *h = CMSG_FIRSTHDR(walk); h; h = CMSG_NXTHDR(walk, h)) {
		struct in_pktinfo info;
		struct in6_pktinfo info6;
		struct timespec since;
		uint32_t total;
		uint8_t tos;
		int n;

		if (read_control(h, SOL_UDP, UDP_GRO, &n, sizeof(n))) {
			if (n > 0 && (uint32_t)n < length)
				rx->segment = (uint32_t)n;
		} else if (read_control(h, SOL_SOCKET, SO_RXQ_OVFL, &total, sizeof(total))) {
			count_drops(s, total);
		} else if (read_control(h, SOL_SOCKET, SO_TIMESTAMPNS, &since, sizeof(since))) {
			rx->waited = time_waited(&since, now);
		} else if (read_control(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info))) {
			set_local4(&rx->path, &info);
		} else if (read_control(h, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6))) {
			set_local6(&rx->path, &info6);
		} else if (read_control(h, IPPROTO_IP, IP_TOS, &tos, sizeof(tos))) {
			rx->ecn = tos & 3;
		} else if (read_control(h, IPPROTO_IPV6, IPV6_TCLASS, &n, sizeof(n))) {
			rx->ecn = (uint8_t)(n & 3);
		}
	}
}

/* --- the error queue --- */

static uint32_t payload_of_mtu(int family, uint32_t mtu)
{
	uint32_t headers = family == AF_INET ? 20 + 8 : 40 + 8;
	uint32_t most = family == AF_INET ? RXW_IO_MAX_PAYLOAD4 : RXW_IO_MAX_PAYLOAD6;

	if (mtu <= headers)
		return 0;
	mtu -= headers;
	return mtu < most ? mtu : most;
}

/* True if the message is an error report about a peer. */
static bool parse_report(struct msghdr *m, struct rxw_io_error *e)
{
	struct sock_extended_err ee;

	memset(e, 0, sizeof(*e));
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		bool is4 = h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_RECVERR;
		bool is6 = h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_RECVERR;

		if ((!is4 && !is6) || h->cmsg_len < CMSG_LEN(sizeof(ee)))
			continue;
		memcpy(&ee, CMSG_DATA(h), sizeof(ee));
		if (ee.ee_origin != SO_EE_ORIGIN_ICMP && ee.ee_origin != SO_EE_ORIGIN_ICMP6 &&
		    ee.ee_origin != SO_EE_ORIGIN_LOCAL)
			continue;
		if (!rxw_addr_set(&e->peer, m->msg_name, m->msg_namelen))
			return false;
		e->error = (int)ee.ee_errno;
		if (ee.ee_errno == EMSGSIZE)
			e->mtu = payload_of_mtu(e->peer.u.sa.sa_family, ee.ee_info);
		return true;
	}
	return false;
}

/* 1: a report; 0: another message was read; -1: the queue is empty. */
static int read_one(struct rxw_io_sock *s, struct rxw_io_error *e)
{
	struct sockaddr_in6 name;
	union {
		struct cmsghdr align;
		uint8_t bytes[512];
	} control;
	uint8_t data[8]; /* the start of our own datagram, not used */
	struct iovec iov = {.iov_base = data, .iov_len = sizeof(data)};
	struct msghdr m = {.msg_name = &name,
			   .msg_namelen = sizeof(name),
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	NOT_CANCELLED;

	rxw_io_count(&s->stats.syscalls_other, 1);
	if (recvmsg(s->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return -1;
	return parse_report(&m, e);
}

bool rxw_io_errors_pending(const struct rxw_io_sock *s)
{
	return atomic_load_explicit(&s->errors_pending, memory_order_relaxed);
}

unsigned rxw_io_errors(struct rxw_io_sock *s, struct rxw_io_error *errors, unsigned count)
{
	unsigned n = 0;

	s->errors_offered = false;
	/* Clear it before reading the queue: later reports set it again. */
	if (!atomic_exchange_explicit(&s->errors_pending, false, memory_order_relaxed))
		return 0;
	while (n < count) {
		int r = read_one(s, &errors[n]);

		if (r < 0)
			return n;
		n += (unsigned)r;
	}
	atomic_store_explicit(&s->errors_pending, true, memory_order_relaxed);
	return n;
}

void rxw_io_errors_drop(struct rxw_io_sock *s)
{
	struct rxw_io_error e;

	s->errors_offered = false;
	atomic_store_explicit(&s->errors_pending, false, memory_order_relaxed);
	/* Bounded, so that a flood of forged ICMP errors cannot keep this thread here. */
	for (unsigned i = 0; i < 1024 && read_one(s, &e) >= 0; i++)
		;
}
