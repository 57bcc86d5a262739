/* SPDX-License-Identifier: BSD-2-Clause */
/* Optional kernel features that a test needs; asks the kernel, not the library. */
#ifndef RXW_TESTS_KERNEL_H
#define RXW_TESTS_KERNEL_H

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KERNEL_GSO = 1,
	KERNEL_GRO = 2,
	KERNEL_STEER = 4,   /* SO_ATTACH_REUSEPORT_CBPF */
	KERNEL_SHARE = 8,   /* SO_REUSEPORT: several sockets on one port */
	KERNEL_BATCHES = 16, /* sendmmsg and recvmmsg */
	KERNEL_BURSTS = KERNEL_GSO | KERNEL_GRO | KERNEL_BATCHES
};

/* Unknown, or filtered by seccomp. Any other error concerns the value. */
static inline bool kernel_refuses(int fd, int level, int option, const void *value, socklen_t size)
{
	return setsockopt(fd, level, option, value, size) < 0 &&
	       (errno == ENOPROTOOPT || errno == EOPNOTSUPP || errno == EPERM);
}

/*
 * The descriptor is invalid: an existing system call reports EBADF, a missing or filtered one
 * another error.
 */
static inline bool kernel_batches(void)
{
	return recvmmsg(-1, NULL, 0, 0, NULL) == 0 || errno == EBADF;
}

/*
 * Returns true and prints the name of a missing feature if this kernel lacks one of `wanted`; the
 * test then returns. A program of which some tests are left out is not reported as skipped.
 */
static inline bool kernel_lacks(unsigned wanted)
{
	struct sock_filter first = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &first };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, size = 1200;
	const char *what = NULL;

	if (fd < 0)
		return false;
	if ((wanted & KERNEL_SHARE) &&
	    kernel_refuses(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)))
		what = "SO_REUSEPORT";
	else if ((wanted & KERNEL_STEER) &&
		 kernel_refuses(fd, SOL_SOCKET, 51, &program, sizeof(program)))
		what = "SO_ATTACH_REUSEPORT_CBPF";
	else if ((wanted & KERNEL_GSO) && kernel_refuses(fd, IPPROTO_UDP, 103, &size, sizeof(size)))
		what = "UDP_SEGMENT";
	else if ((wanted & KERNEL_GRO) && kernel_refuses(fd, IPPROTO_UDP, 104, &on, sizeof(on)))
		what = "UDP_GRO";
	else if ((wanted & KERNEL_BATCHES) && !kernel_batches())
		what = "sendmmsg and recvmmsg";
	close(fd);
	if (what)
		printf("SKIP: a test that needs %s\n", what);
	return what != NULL;
}

#endif
