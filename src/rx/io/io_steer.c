/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering: a kernel program selects a port's socket by the second word of a datagram. */
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <string.h>

#include "io/io_sock.h"
#include "io/io_linux.h"

#define LOOPBACK 1  /* index of the interface, in each network namespace */
#define MOST	 64 /* sockets */

/*
 * What processor cpu[i] takes from a card reaches socket i. The queues of a card spread peers over processors, and a
 * peer's packets stay on one. A packet from this host has its sender's processor, which changes.
 */
static unsigned select_by_processor(struct sock_filter *code, unsigned sockets, const uint16_t *cpu)
{
	const struct sock_filter head[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, (uint8_t)(1 + 2 * sockets), 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_CPU)),
	};
	const struct sock_filter pair[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_filter *at = code + 3;

	assert(cpu && sockets <= MOST);
	memcpy(code, head, sizeof(head));
	for (unsigned i = 0; i < sockets; i++, at += 2) {
		memcpy(at, pair, sizeof(pair));
		at[0].k = cpu[i];
		at[1].k = i;
	}
	return 3 + 2 * sockets;
}

/*
 * Offset 0 is the UDP payload. The word is the connection id of an Rx header, whose two low bits
 * are the channel: all calls of a connection reach the same socket. For a datagram too short to
 * hold the word the program returns 0, the first socket. The first datagram of a GRO message
 * selects its socket.
 */
__attribute__((cold)) int rxw_io_sock_steer(struct rxw_io_sock *s, unsigned sockets,
					    const struct rxw_io_options *o)
{
	const struct sock_filter by_connection[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, o->steer == 2), /* the wrong one, one further */
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, sockets),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_filter code[3 + 2 * MOST + 5];
	struct sock_fprog program = {.filter = code};
	int error = rxw_io_inject_setup(s, RXW_IO_FAULT_STEER);

	if (error)
		return -error;
	if (o->steer == RXW_IO_STEER_CPU)
		program.len = (unsigned short)select_by_processor(code, sockets, o->cpu);
	memcpy(code + program.len, by_connection, sizeof(by_connection));
	program.len += sizeof(by_connection) / sizeof(by_connection[0]);
	if (setsockopt(s->fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0)
		return -errno;
	return 0;
}
