/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering: a kernel program selects a port's socket by the second word of a datagram. */
#include <errno.h>
#include <linux/filter.h>

#include "io/io_sock.h"
#include "io/io_linux.h"

/*
 * Offset 0 is the UDP payload. The word is the connection id of an Rx header, whose two low bits
 * are the channel: all calls of a connection reach the same socket. For a datagram too short to
 * hold the word the program returns 0, the first socket. The first datagram of a GRO message
 * selects its socket.
 */
int rxw_io_sock_steer(struct rxw_io_sock *s, unsigned sockets, bool wrong)
{
	struct sock_filter right[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, sockets),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_filter one_further[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, sockets),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = { .len = sizeof(right) / sizeof(right[0]), .filter = right };
	int error = rxw_io_inject_setup(s, RXW_IO_FAULT_STEER);

	if (error)
		return -error;
	if (wrong) {
		program.len = sizeof(one_further) / sizeof(one_further[0]);
		program.filter = one_further;
	}
	if (setsockopt(s->fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0)
		return -errno;
	return 0;
}
