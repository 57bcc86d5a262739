/* SPDX-License-Identifier: BSD-2-Clause */
/* The back-ends: one datagram per system call, for any system and as a baseline; or many messages, single or segmented. */
#include <errno.h>

#include "io/io_sock.h"

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
