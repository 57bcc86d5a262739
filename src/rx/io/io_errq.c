/* SPDX-License-Identifier: BSD-2-Clause */
/* The error queue: ICMP errors about datagrams sent earlier. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>
#include <linux/errqueue.h> /* needs struct timespec */

#include "common/cancel.h"
#include "io/io_sock.h"
#include "io/io_linux.h"

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
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr m = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &iov,
			    .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
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
