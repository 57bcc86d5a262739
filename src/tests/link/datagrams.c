/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbered datagrams from this network namespace to that of another process, and what the network
 * between them did to them: one JSON object. For `netem`, which compares links; static, for guests.
 *
 * usage: datagrams PID FROM TO COUNT INTERVAL_US SIZE
 * SIZE is that of the IP packet. An interval of 0: as fast as possible, for the rate.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEADERS	 28u
#define MOST	 200000u
#define PATIENCE 1000 /* ms without a datagram after the last one was sent */

struct head {
	uint32_t number, unused;
	uint64_t sent_ns;
};

static uint8_t *times; /* how often each arrived */
static uint64_t *late; /* delays in the order of arrival */
static uint32_t arrived, copies, overtaken, highest;
static uint64_t first_ns, last_ns;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "datagrams: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_socket(const char *address, struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), one = 1, large = 1 << 25;
	socklen_t size = sizeof(*at);

	*at = (struct sockaddr_in){.sin_family = AF_INET};
	if (fd < 0 || inet_pton(AF_INET, address, &at->sin_addr) != 1 ||
	    bind(fd, (struct sockaddr *)at, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)at, &size) < 0)
		fail(address);
	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof(large));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof(large));
	return fd;
}

/* Goes to another namespace for good, or back. */
static void enter(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		fail(path);
	close(fd);
}

static bool take(int fd)
{
	uint8_t bytes[2048];
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, 0);
	struct head head;
	struct timespec at;
	const struct cmsghdr *c;

	if (n < (ssize_t)sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	c = CMSG_FIRSTHDR(&m);
	if (c == NULL || head.number >= MOST)
		return true;
	memcpy(&at, CMSG_DATA(c), sizeof(at));
	last_ns = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
	if (arrived + copies == 0)
		first_ns = last_ns;
	if (times[head.number]++ != 0) {
		copies++;
		return true;
	}
	late[arrived++] = last_ns - head.sent_ns;
	if (head.number < highest)
		overtaken++;
	else
		highest = head.number;
	return true;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double us(double share)
{
	return arrived == 0 ? 0 : (double)late[(uint32_t)(share * (arrived - 1))] / 1e3;
}

static void report(uint32_t count, uint32_t size)
{
	uint32_t runs = 0;
	double seconds = (double)(last_ns - first_ns) / 1e9;

	for (uint32_t i = 0; i < count; i++)
		runs += times[i] == 0 && (i == 0 || times[i - 1] != 0);
	qsort(late, arrived, sizeof(*late), ascending);
	printf("{\"sent\": %u, \"lost\": %u, \"runs\": %u, \"copies\": %u, \"overtaken\": %u, "
	       "\"delay_us\": {\"least\": %.1f, \"median\": %.1f, \"p99\": %.1f, \"most\": %.1f}, "
	       "\"Mbps\": %.3f}\n",
	       count, count - arrived, runs, copies, overtaken, us(0), us(0.5), us(0.99), us(1),
	       seconds > 0 ? (arrived + copies - 1) * size * 8 / seconds / 1e6 : 0);
}

int main(int argc, char **argv)
{
	char there[64];
	struct sockaddr_in from, to;
	struct pollfd p = {.events = POLLIN};
	uint8_t bytes[2048] = {0};
	uint32_t count, size;
	uint64_t began, interval;
	int fd;

	if (argc != 7)
		return 2;
	count = (uint32_t)strtoul(argv[4], NULL, 10);
	interval = strtoull(argv[5], NULL, 10) * 1000;
	size = (uint32_t)strtoul(argv[6], NULL, 10);
	times = calloc(MOST, 1);
	late = calloc(MOST, sizeof(*late));
	if (times == NULL || late == NULL || count == 0 || count > MOST || size > 1500 ||
	    size < HEADERS + sizeof(struct head))
		return 2;
	fd = open_socket(argv[2], &from);
	snprintf(there, sizeof(there), "/proc/%s/ns/net", argv[1]);
	enter(there);
	p.fd = open_socket(argv[3], &to);
	began = now_ns();
	for (uint32_t i = 0; i < count;) {
		struct head head = {.number = i};

		if (now_ns() < began + i * interval) {
			struct timespec t = {0, 50000};

			ppoll(&p, 1, &t, NULL);
			while (take(p.fd))
				;
			continue;
		}
		head.sent_ns = now_ns();
		memcpy(bytes, &head, sizeof(head));
		if (sendto(fd, bytes, size - HEADERS, 0, (struct sockaddr *)&to, sizeof(to)) > 0)
			i++;
		else if (errno != EAGAIN && errno != ENOBUFS)
			fail("send");
		else
			poll(&p, 1, 1);
		while (take(p.fd))
			;
	}
	while (poll(&p, 1, PATIENCE) > 0)
		while (take(p.fd))
			;
	report(count, size);
	return 0;
}
