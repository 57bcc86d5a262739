/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving in batches. The timeout is changed, with a system call, only when it differs. */
#include <errno.h>
#include <string.h>
#include <sys/time.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "io/io_sock.h"

/*
 * The kernel keeps a socket's timeout, so set it only when it changes. `us` is not 0. False:
 * refused.
 */
static bool set_timeout(struct rxw_io_sock *s, uint32_t timeout_us)
{
	struct timeval t = { .tv_sec = timeout_us / 1000000, .tv_usec = timeout_us % 1000000 };

	if (s->timeout_us == (int64_t)timeout_us)
		return true;
	rxw_io_count(&s->stats.syscalls_other, 1);
	if (setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0)
		return false;
	s->timeout_us = timeout_us;
	return true;
}

static void prepare_headers(struct rxw_io_in *in, struct rxw_io_rx *rx, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct msghdr *m = &in->hdr[i].msg_hdr;

		assert(rx[i].buf);
		in->iov[i].iov_base = rx[i].buf->data;
		in->iov[i].iov_len = rx[i].buf->cap;
		m->msg_name = &in->name[i];
		m->msg_namelen = sizeof(in->name[i]);
		m->msg_iov = &in->iov[i];
		m->msg_iovlen = 1;
		m->msg_control = in->control[i].bytes;
		m->msg_controllen = sizeof(in->control[i].bytes);
		m->msg_flags = 0;
	}
}

static void take_messages(struct rxw_io_sock *s, const struct rxw_io_in *in, struct rxw_io_rx *rx,
		 unsigned n)
{
	uint64_t datagrams = 0, bytes = 0, segmented = 0;
	struct timespec now;

	assert(n <= RXW_IO_BATCH);
	clock_gettime(CLOCK_REALTIME, &now); /* the kernel's time stamps have no other */
	for (unsigned i = 0; i < n; i++) {
		rxw_io_control_parse(s, &in->hdr[i].msg_hdr, in->hdr[i].msg_len, &now, &rx[i]);
		bytes += rx[i].length;
		if (rx[i].segment < rx[i].length) {
			datagrams += (rx[i].length + rx[i].segment - 1) / rx[i].segment;
			segmented++;
		} else {
			datagrams++;
		}
	}
	rxw_io_count(&s->stats.datagrams_received, datagrams);
	rxw_io_count(&s->stats.bytes_received, bytes);
	if (segmented)
		rxw_io_count(&s->stats.gro_messages, segmented);
}

/* Errors of the call itself. Any other errno is a pending ICMP error. */
static bool is_error_of_call(int error)
{
	return error == EBADF || error == ENOTSOCK || error == EFAULT || error == EINVAL ||
	       error == ENOMEM || error == ENOSYS;
}

int rxw_io_recv(struct rxw_io_sock *s, struct rxw_io_rx *rx, unsigned count, uint32_t timeout_us)
{
	struct rxw_io_in in;
	int flags = 0;
	int r = 0;
	NOT_CANCELLED;

	if (count > s->batch)
		count = s->batch;
	if (timeout_us == 0) {
		flags = MSG_DONTWAIT;
	} else if (!set_timeout(s, timeout_us)) {
		/*
		 * Without a timeout recvmmsg() could wait for ever; wait in a separate call
		 * instead.
		 */
		if (!rxw_io_wait(s, timeout_us))
			return 0;
		flags = MSG_DONTWAIT;
	}
	/* Reporting a pending error clears it; it does not affect received data. */
	for (unsigned tries = 0; tries < 3; tries++) {
		prepare_headers(&in, rx, count);
		r = s->backend->recv(s, &in, count, flags);
		if (r >= 0)
			break;
		if (r == -EAGAIN || r == -EWOULDBLOCK || r == -EINTR)
			return 0;
		if (is_error_of_call(-r))
			return r;
		atomic_store_explicit(&s->errors_pending, true, memory_order_relaxed);
		r = 0;
	}
	take_messages(s, &in, rx, (unsigned)r);
	return r;
}
