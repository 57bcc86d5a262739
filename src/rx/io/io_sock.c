/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One socket: create, configure, bind; a kernel program that selects a port's socket by the second word of a datagram. An
 * option that the kernel refuses is logged once.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/io_linux.h"
#include "io/io_sock.h"

#define LOOPBACK     1	/* index of the interface, in each network namespace */
#define STEERED_MOST 64 /* sockets */

/* The errno to inject into this step of the set-up, or 0. */
static int find_setup_fault(const struct rxw_io_sock *s, enum rxw_io_fault_kind kind)
{
	for (unsigned i = 0; i < s->faults.count; i++)
		if (s->faults.fault[i].kind == kind && s->faults.fault[i].at == 0)
			return s->faults.fault[i].error;
	return 0;
}

/*
 * Packets that processor cpu[i] takes from a card reach socket i. The queues of a card spread peers over processors, and a
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

	assert(cpu && sockets <= STEERED_MOST);
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
	struct sock_filter code[3 + 2 * STEERED_MOST + 5];
	struct sock_fprog program = {.filter = code};
	int error = find_setup_fault(s, RXW_IO_FAULT_STEER);

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

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static size_t buffer_size(int fd, int option)
{
	int size = 0;
	socklen_t len = sizeof(size);

	if (getsockopt(fd, SOL_SOCKET, option, &size, &len) < 0 || size < 0)
		return 0;
	return (size_t)size;
}

/*
 * Request a buffer, first beyond the system's limit (CAP_NET_ADMIN), then within it. Returns the
 * size granted in bytes of kernel memory, which includes the kernel's overhead: twice the size
 * requested.
 */
static size_t set_buffer(struct rxw_io_sock *s, size_t wanted, int option, int force)
{
	if (set_int(s->fd, SOL_SOCKET, force, (int)wanted) < 0)
		(void)set_int(s->fd, SOL_SOCKET, option, (int)wanted);
	return buffer_size(s->fd, option);
}

static size_t buffer_wanted(size_t configured)
{
	size_t wanted = configured ? configured : RXW_IO_BUFFER;

	return wanted > INT32_MAX / 2 ? INT32_MAX / 2 : wanted;
}

/*
 * Without root, buffers are usually limited by the system, and transfers are still fast: log this
 * as information, not as a warning.
 */
static void set_buffers(struct rxw_io_sock *s, const struct rxw_io_options *o)
{
	size_t in = buffer_wanted(o->rcvbuf), out = buffer_wanted(o->sndbuf);

	s->rcvbuf = set_buffer(s, in, SO_RCVBUF, SO_RCVBUFFORCE);
	s->sndbuf = set_buffer(s, out, SO_SNDBUF, SO_SNDBUFFORCE);
	if (s->rcvbuf / 2 < in || s->sndbuf / 2 < out)
		rxw_io_warn(s, RXW_IO_NOTE_BUFFERS,
			    "socket buffers: %zu of %zu bytes to receive, %zu of %zu to send; for "
			    "more: sysctl -w net.core.rmem_max=%zu net.core.wmem_max=%zu",
			    s->rcvbuf / 2, in, s->sndbuf / 2, out, in, out);
}

/*
 * Always set DF, so that ICMP errors or losses reveal the path MTU. "probe" makes the kernel ignore
 * its path MTU cache, which one forged ICMP message with a guessed port pair can lower; with "do"
 * it would refuse datagrams because of it. Only a datagram larger than the device's MTU fails with
 * EMSGSIZE.
 */
int rxw_io_sock_fragment(struct rxw_io_sock *s, bool allow)
{
	int rc = 0;

	rxw_io_count(&s->stats.syscalls_other, 1);
	if (s->family == AF_INET || s->dual)
		rc = set_int(s->fd, IPPROTO_IP, IP_MTU_DISCOVER,
			     allow ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE);
	if (s->family == AF_INET || rc < 0)
		return rc;
	/*
	 * IPv6 routers do not fragment, and the kernel fragments only datagrams longer than the
	 * path MTU that it knows (IPV6_MTU does not change that). Where a router drops silently, a
	 * datagram that is too long is lost every time.
	 */
	return set_int(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
		       allow ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE);
}

static void set_option(struct rxw_io_sock *s, int level, int name, int value, const char *text)
{
	int rc = set_int(s->fd, level, name, value);

	if (rc < 0)
		rxw_io_warn(s, RXW_IO_WARN_OPTION,
			    "the kernel refused socket option %s (%s); continuing without it", text,
			    strerror(-rc));
}

static void set_family_options(struct rxw_io_sock *s)
{
	bool refused = rxw_io_sock_fragment(s, false) < 0;

	if (s->family == AF_INET || s->dual) {
		if (!s->local.len)
			set_option(s, IPPROTO_IP, IP_PKTINFO, 1, "IP_PKTINFO");
		set_option(s, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
		if (refused)
			set_option(s, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO,
				   "IP_MTU_DISCOVER");
	}
	if (s->family == AF_INET6) {
		if (!s->local.len)
			set_option(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO");
		set_option(s, IPPROTO_IPV6, IPV6_RECVERR, 1, "IPV6_RECVERR");
		set_option(s, IPPROTO_IPV6, IPV6_DONTFRAG, 1, "IPV6_DONTFRAG");
		if (refused)
			set_option(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO,
				   "IPV6_MTU_DISCOVER");
	}
}

void rxw_io_sock_read_ecn(struct rxw_io_sock *s)
{
	if (s->family == AF_INET || s->dual)
		set_option(s, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
	if (s->family == AF_INET6)
		set_option(s, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
}

/*
 * Check, with empty batches, that the kernel has sendmmsg and recvmmsg and no filter denies them.
 * Otherwise use the simplest back-end, which has no GSO or GRO.
 */
static void probe_batches(struct rxw_io_sock *s)
{
#if RXW_ENABLE_MMSG
	if (s->backend != &rxw_io_backend_mmsg)
		return;
	if (sendmmsg(s->fd, NULL, 0, 0) >= 0 &&
	    recvmmsg(s->fd, NULL, 0, MSG_DONTWAIT, NULL) >= 0)
		return;
	if (errno != ENOSYS && errno != EPERM)
		return;
	s->backend = &rxw_io_backend_msg;
	rxw_io_warn(s, RXW_IO_WARN_MMSG,
		    "the kernel refused sendmmsg or recvmmsg (%s): one system call for each "
		    "datagram, without GSO and GRO", strerror(errno));
#else
	(void)s;
#endif
}

static int set_udp_option(struct rxw_io_sock *s, enum rxw_io_fault_kind fault, int option,
			  int value)
{
	int error = find_setup_fault(s, fault);

	return error ? -error : set_int(s->fd, SOL_UDP, option, value);
}

/* Check for GSO: setting a segment size of 0 succeeds only if the kernel supports it. */
static void probe_gso(struct rxw_io_sock *s, const struct rxw_io_options *o)
{
	s->gso = s->gro = false;
	if (!s->backend->gso)
		return;
	if (o->gso) {
		int rc = set_udp_option(s, RXW_IO_FAULT_GSO, UDP_SEGMENT, 0);

		s->gso = rc == 0;
		rxw_io_count(&s->stats.gso_fallbacks, !s->gso);
		if (!s->gso)
			rxw_io_warn(s, RXW_IO_WARN_GSO,
				    "sending without GSO: the kernel refused UDP_SEGMENT (%s)",
				    strerror(-rc));
	}
	if (o->gro) {
		int rc = set_udp_option(s, RXW_IO_FAULT_GRO, UDP_GRO, 1);

		s->gro = rc == 0;
		rxw_io_count(&s->stats.gro_fallbacks, !s->gro);
		if (!s->gro)
			rxw_io_warn(s, RXW_IO_WARN_GRO,
				    "receiving without GRO: the kernel refused UDP_GRO (%s)",
				    strerror(-rc));
	}
}

/*
 * A socket bound to one address needs no IP_PKTINFO: all datagrams are sent to and from that
 * address.
 */
static void note_local(struct rxw_io_sock *s, const struct rxw_addr *bind)
{
	bool any = s->family == AF_INET ? bind->u.in.sin_addr.s_addr == htonl(INADDR_ANY) :
					  IN6_IS_ADDR_UNSPECIFIED(&bind->u.in6.sin6_addr);

	if (any)
		return;
	s->local = *bind;
	if (s->family == AF_INET)
		s->local.u.in.sin_port = 0;
	else
		s->local.u.in6.sin6_port = 0;
}

static int bind_first(struct rxw_io_sock *s, const struct rxw_addr *a)
{
	return bind(s->fd, &a->u.sa, a->len) < 0 ? -errno : 0;
}

static int bind_joining(struct rxw_io_sock *s, const struct rxw_addr *a)
{
#ifdef SO_REUSEPORT
	int rc = set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1);

	return rc < 0 ? rc : bind_first(s, a);
#else
	(void)s;
	(void)a;
	return -ENOPROTOOPT;
#endif
}

int rxw_io_sock_share(struct rxw_io_sock *s)
{
	int error = find_setup_fault(s, RXW_IO_FAULT_REUSEPORT);

	if (error)
		return -error;
#ifdef SO_REUSEPORT
	return set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1);
#else
	return -ENOPROTOOPT;
#endif
}

/* Duplicate a socket of the application. -EINVAL: it is not a UDP socket bound to `a`. */
static int take_given(struct rxw_io_sock *s, int fd, const struct rxw_addr *a)
{
	struct rxw_addr bound;
	int rc = rxw_io_sock_address(fd, &bound);

	if (rc < 0)
		return rc;
	if (!rxw_addr_equal(&bound, a) || rxw_io_sock_dual(fd, &bound) != s->dual)
		return -EINVAL;
	s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return s->fd < 0 ? -errno : 0;
}

bool rxw_io_sock_dual(int fd, const struct rxw_addr *bound)
{
	socklen_t len = sizeof(int);
	int only = 0;

	return bound->u.sa.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&bound->u.in6.sin6_addr) &&
	       (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) < 0 || !only);
}

int rxw_io_sock_address(int fd, struct rxw_addr *bound)
{
	int type = 0, protocol = 0;
	struct sockaddr_storage ss;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return errno == ENOTSOCK ? -EINVAL : -errno;
	len = sizeof(protocol);
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0)
		return -errno;
	len = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	if (type != SOCK_DGRAM || protocol != IPPROTO_UDP ||
	    !rxw_addr_set(bound, (struct sockaddr *)&ss, len) || !rxw_addr_port(bound))
		return -EINVAL;
	return 0;
}

static int new_socket(struct rxw_io_sock *s)
{
	s->fd = socket(s->family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	if (s->fd < 0)
		return -errno;
	return s->family == AF_INET6 ? set_int(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, !s->dual) : 0;
}

__attribute__((cold))
int rxw_io_sock_open(struct rxw_io_sock *s, const struct rxw_io_options *o,
		     const struct rxw_addr *join, int given)
{
	int rc;

	assert(s->fd < 0 && s->wake_fd < 0);
	s->timeout_us = -1;
	s->family = o->bind.u.sa.sa_family;
	s->dual = o->dual && s->family == AF_INET6;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return -errno;
	rc = given >= 0 ? take_given(s, given, &o->bind) : new_socket(s);
	if (rc < 0)
		return rc;
	set_buffers(s, o);
#ifdef SO_RXQ_OVFL
	set_option(s, SOL_SOCKET, SO_RXQ_OVFL, 1, "SO_RXQ_OVFL");
#endif
	set_option(s, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
	note_local(s, &o->bind);
	set_family_options(s);
	probe_batches(s);
	probe_gso(s, o);
	if (given >= 0)
		return 0;
	return join ? bind_joining(s, join) : bind_first(s, &o->bind);
}

void rxw_io_sock_close(struct rxw_io_sock *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
