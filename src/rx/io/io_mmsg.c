/* SPDX-License-Identifier: BSD-2-Clause */
/* The batching back-end: many messages, single or segmented, per system call. */
#include <errno.h>

#include "io/io_sock.h"

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
