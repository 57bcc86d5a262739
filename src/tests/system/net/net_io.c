/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O layer on a link with a real MTU: path MTU, DF, fragments, bursts; for
 * src/tests/system/net/run.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io_sock.h"

#define LOST_US 5000000u

/* Both ends: a socket in each namespace, opened by one process. */
static struct rxw_io_group near, far;
static struct rxw_io_rx rx[64];
static struct rxw_path path;
static uint8_t bytes[65536];
static uint32_t headers;

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	printf("  %s\n", line);
}

#define REQUIRE(what)                                                                    \
	do {                                                                             \
		if (!(what)) {                                                           \
			printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #what);        \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static struct rxw_addr address(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct rxw_addr a;

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		REQUIRE(rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in)));
	} else {
		REQUIRE(inet_pton(AF_INET6, text, &in6.sin6_addr) == 1);
		REQUIRE(rxw_addr_set(&a, (struct sockaddr *)&in6, sizeof(in6)));
	}
	return a;
}

static void open_in(struct rxw_io_group *g, const char *ns, const char *host)
{
	struct rxw_io_options o = { .bind = address(host), .sockets = 1, .batch = 64, .gso = 1,
				    .gro = 1, .log = log_line };
	int fd = open(ns, O_RDONLY | O_CLOEXEC);

	REQUIRE(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
	close(fd);
	REQUIRE(rxw_io_open(g, &o) == 0);
}

/* Sends `length` bytes in datagrams of `segment`. Returns the entry's error. */
static int give(uint32_t length, uint16_t segment, bool fragment)
{
	struct iovec iov = { bytes, length };
	struct rxw_io_tx tx = { .path = &path, .iov = &iov, .iov_count = 1, .length = length,
				.segment = segment, .fragment = fragment };

	rxw_io_send(near.sock[0], &tx, 1, false);
	return tx.error;
}

/* Receives `total` bytes in order; returns how many arrived before a long pause. */
static uint32_t take(uint32_t total, uint32_t timeout_us)
{
	uint32_t got = 0;

	while (got < total) {
		int n = rxw_io_recv(far.sock[0], rx, 64, timeout_us);

		if (n <= 0)
			break;
		for (int i = 0; i < n; i++) {
			REQUIRE(got + rx[i].length <= total);
			REQUIRE(memcmp(rx[i].buf->data, bytes + got, rx[i].length) == 0);
			got += rx[i].length;
		}
	}
	return got;
}

/* The next report about a datagram that was too long. */
static uint32_t reported_mtu(void)
{
	struct rxw_io_error e[8];

	for (;;) {
		unsigned n;

		if (!rxw_io_errors_pending(near.sock[0]))
			REQUIRE(rxw_io_wait(near.sock[0], LOST_US) == 1);
		n = rxw_io_errors(near.sock[0], e, 8);
		for (unsigned i = 0; i < n; i++)
			if (e[i].error == EMSGSIZE) {
				REQUIRE(rxw_addr_same_host(&e[i].peer, &path.peer));
				return e[i].mtu;
			}
	}
}

/* The largest payload that the kernel expects to reach the peer. Only a connected socket tells. */
static uint32_t known_payload(void)
{
	bool v4 = path.peer.u.sa.sa_family == AF_INET;
	socklen_t len = sizeof(int);
	int mtu = 0, fd = socket(path.peer.u.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

	REQUIRE(fd >= 0);
	if (path.local.len)
		REQUIRE(bind(fd, &path.local.u.sa, path.local.len) == 0);
	REQUIRE(connect(fd, &path.peer.u.sa, path.peer.len) == 0);
	REQUIRE(getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU, &mtu,
			   &len) == 0);
	close(fd);
	return (uint32_t)mtu - headers;
}

static void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* A device of `mtu` at the sender. */
static void first_hop(uint32_t mtu)
{
	const struct rxw_io_stats *stats = rxw_io_sock_stats(near.sock[0]);
	uint32_t fits = mtu - headers;

	REQUIRE(known_payload() == fits);
	REQUIRE(give(fits, 0, false) == 0);
	REQUIRE(take(fits, LOST_US) == fits);
	/* One byte more: refused by the kernel, with the size that fits. */
	REQUIRE(give(fits + 1, 0, false) == EMSGSIZE);
	REQUIRE(reported_mtu() == fits);
	REQUIRE(give(2 * fits, 0, true) == 0);
	REQUIRE(take(2 * fits, LOST_US) == 2 * fits);
	/* The error concerned one datagram only. */
	REQUIRE(give(fits + 1, 0, false) == EMSGSIZE);
	REQUIRE(reported_mtu() == fits);
	/* A burst, whether the kernel splits it or refuses it. */
	REQUIRE(give(20 * fits - 7, (uint16_t)fits, false) == 0);
	REQUIRE(take(20 * fits - 7, LOST_US) == 20 * fits - 7);
	printf("  bursts: %llu sent, %llu refused\n",
	       (unsigned long long)atomic_load(&stats->gso_messages),
	       (unsigned long long)atomic_load(&stats->gso_fallbacks));
	/* Datagrams that are too long do not disable bursts. */
	near.sock[0]->refused_count = 0;
	uint64_t fallbacks = atomic_load(&stats->gso_fallbacks);

	REQUIRE(give(4 * (fits + 1), (uint16_t)(fits + 1), false) == EMSGSIZE);
	REQUIRE(atomic_load(&stats->gso_fallbacks) == fallbacks);
	REQUIRE(take(1, 100000) == 0);
}

/* A router with a smaller MTU on its far side. */
static void behind_a_router(uint32_t mtu, uint32_t first)
{
	uint32_t fits = mtu - headers, local = first - headers;

	REQUIRE(known_payload() == local);
	/* Sent; the router drops it and reports that. */
	REQUIRE(give(local, 0, false) == 0);
	REQUIRE(reported_mtu() == fits);
	REQUIRE(known_payload() == fits);
	/* The kernel's learnt MTU does not prevent sending a probe of that size. */
	REQUIRE(give(local, 0, false) == 0);
	REQUIRE(take(1, 100000) == 0);
	sleep_ms(50);
	REQUIRE(give(fits, 0, false) == 0);
	REQUIRE(take(fits, LOST_US) == fits);
	REQUIRE(give(local, 0, true) == 0);
	REQUIRE(take(local, LOST_US) == local);
}

/* The same without a report. */
static void black_hole(uint32_t first)
{
	uint32_t local = first - headers;

	REQUIRE(give(local, 0, false) == 0);
	REQUIRE(take(1, 200000) == 0);
	REQUIRE(!rxw_io_errors_pending(near.sock[0]));
	REQUIRE(give(local, 0, true) == 0);
	REQUIRE(take(local, LOST_US) == local);
	/* The error concerned one datagram only. */
	REQUIRE(give(local, 0, false) == 0);
	REQUIRE(take(1, 200000) == 0);
}

int main(int argc, char **argv)
{
	struct rxw_budget budget;
	struct rxw_pool *pool;
	uint32_t mtu, first;

	if (argc != 7) {
		fprintf(stderr, "usage: net_io NAMESPACE ADDRESS NAMESPACE ADDRESS MTU "
				"FIRST_MTU; MTU 0: a smaller MTU without reports\n");
		return 2;
	}
	mtu = (uint32_t)atoi(argv[5]);
	first = (uint32_t)atoi(argv[6]);
	rxw_budget_init(&budget, 64 << 20);
	pool = rxw_pool_create(&budget, 1 << 20, 64);
	for (unsigned i = 0; i < 64; i++)
		REQUIRE((rx[i].buf = rxw_buf_get(pool)) != NULL);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	open_in(&far, argv[3], argv[4]);
	open_in(&near, argv[1], argv[2]);
	path.peer = far.bound;
	headers = path.peer.u.sa.sa_family == AF_INET ? 28 : 48;
	if (mtu == 0)
		black_hole(first);
	else if (mtu == first)
		first_hop(mtu);
	else
		behind_a_router(mtu, first);
	rxw_io_close(&near);
	rxw_io_close(&far);
	for (unsigned i = 0; i < 64; i++)
		rxw_buf_unref(rx[i].buf);
	rxw_pool_destroy(pool);
	return 0;
}
