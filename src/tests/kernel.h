/* SPDX-License-Identifier: BSD-2-Clause */
/* What a test needs of the kernel that not every kernel has; asked of the kernel, not of the library. */
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

/* Unknown, or filtered; another error is the value's. */
static inline bool kernel_refuses(int fd, int level, int option, const void *value, socklen_t size)
{
	return setsockopt(fd, level, option, value, size) < 0 &&
	       (errno == ENOPROTOOPT || errno == EOPNOTSUPP || errno == EPERM);
}

/* No descriptor is named: what is there finds that out, what is not there or is filtered does not. */
static inline bool kernel_batches(void)
{
	return recvmmsg(-1, NULL, 0, 0, NULL) == 0 || errno == EBADF;
}

/*
 * Does this kernel lack some of `wanted`? Then the test that asked returns: stdout says what is missing.
 * That several tests of one program are left out does not make the program a skipped one.
 */
static inline bool kernel_lacks(unsigned wanted)
{
	struct sock_filter first = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &first };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, size = 1200;
	const char *what = NULL;

	if (fd < 0)
		return false;
	if ((wanted & KERNEL_SHARE) && kernel_refuses(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)))
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
