/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of sockets that one thread waits for. Apart from io_common.c, which tests replace. */
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "io/io_sock.h"

__attribute__((cold)) int rxw_io_set_open(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

__attribute__((cold)) void rxw_io_set_remove(int set, struct rxw_io_sock *s)
{
	int saved = errno;

	/* Closing them is not enough: a child of fork() may have the same files open. */
	epoll_ctl(set, EPOLL_CTL_DEL, s->fd, NULL);
	epoll_ctl(set, EPOLL_CTL_DEL, s->wake_fd, NULL);
	errno = saved;
}

__attribute__((cold)) int rxw_io_set_add(int set, struct rxw_io_sock *s, unsigned name)
{
	struct epoll_event readable = {.events = EPOLLIN, .data.u64 = name};
	/* Reported once for each rxw_io_wake(), so that the descriptor need not be read. */
	struct epoll_event woken = {.events = EPOLLIN | EPOLLET, .data.u64 = name};

	if (epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &readable) < 0)
		return -errno;
	if (epoll_ctl(set, EPOLL_CTL_ADD, s->wake_fd, &woken) == 0)
		return 0;
	rxw_io_set_remove(set, s);
	return -errno;
}

unsigned rxw_io_set_wait(int set, uint64_t timeout_ns, struct rxw_io_ready *ready)
{
	struct epoll_event event[RXW_IO_READY];
	uint64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
	int n;
	NOT_CANCELLED;

	assert(set >= 0);
	n = epoll_wait(set, event, RXW_IO_READY, ms > INT_MAX ? -1 : (int)ms);
	for (int i = 0; i < n; i++)
		ready[i] = (struct rxw_io_ready){.name = (unsigned)event[i].data.u64,
						 .errors = event[i].events & EPOLLERR};
	return n > 0 ? (unsigned)n : 0;
}

__attribute__((cold)) void rxw_io_set_close(int set)
{
	if (set >= 0)
		close(set);
}

void rxw_io_note_errors(struct rxw_io_sock *s)
{
	atomic_store_explicit(&s->errors_pending, true, memory_order_relaxed);
}
