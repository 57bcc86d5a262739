/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel selects a socket of the port by the connection id; by a wrong one; or by hash. */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "io_test.h"

/* Sends one datagram for each of 64 connections, and counts each socket's and the expected ones. */
static void spread(const char *host, unsigned sockets, int steer)
{
	struct rxw_io_options o = options_for(host, NULL);
	struct rxw_io_group g, client;
	struct sink sink;
	struct seen all;
	unsigned bad = 0;

	open_group(&client, &o);
	static const uint16_t cpu[64];

	o.sockets = sockets;
	o.steer = steer;
	o.cpu = cpu; /* where packets from this host are sent does not matter */
	open_group(&g, &o);
	ck_assert_uint_eq(g.count, sockets);
	ck_assert_int_eq(g.steered, sockets > 1 && steer != 1);
	sink_init(&sink);
	seen_init(&all, 64);
	for (uint32_t c = 0; c < 64; c++) {
		struct burst t;
		struct rxw_io_tx tx = burst_make(&t, &g.bound, c, 1, 200, 200, 1);
		uint32_t cid = 0xfffffe00u + 4 * c + (c & 3);

		fill_datagram(t.bytes, c, cid, 200);
		ck_assert_uint_eq(rxw_io_send(client.sock[0], &tx, 1, false), 1);
		free(t.bytes);
	}
	for (unsigned i = 0; i < sockets; i++) {
		int n;

		while ((n = sink_take(&sink, g.sock[i], &all, 0)) > 0)
			for (int k = 0; k < n && steer != 1; k++) {
				uint32_t cid;

				memcpy(&cid, sink.rx[k].buf->data + 4, 4);
				cid = ntohl(cid) >> 2;
				bad += (cid + (steer == 2)) % sockets != i;
			}
	}
	ck_assert_uint_eq(bad, 0);
	seen_all_once(&all);
	sink_free(&sink);
	rxw_io_close(&g);
	rxw_io_close(&client);
}

START_TEST(by_connection_id)
{
	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	for (unsigned n = 1; n <= 4; n++)
		spread("127.0.0.1", n, 0);
	if (have_ipv6())
		spread("::1", 3, 0);
}
END_TEST

START_TEST(by_the_wrong_one)
{
	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	for (unsigned n = 2; n <= 4; n++)
		spread("127.0.0.1", n, 2);
	if (have_ipv6())
		spread("::1", 2, 2);
}
END_TEST

START_TEST(by_hash)
{
	if (kernel_lacks(KERNEL_SHARE))
		return;
	spread("127.0.0.1", 3, 1);
}
END_TEST

START_TEST(short_datagrams_reach_the_first_socket)
{
	struct rxw_io_options o = options_for("127.0.0.1", NULL);
	struct rxw_io_group g;
	struct iovec iov = { "abcdefg", 7 };
	struct rxw_path path = { 0 };
	struct rxw_io_tx tx = { .path = &path, .iov = &iov, .iov_count = 1, .length = 7 };
	struct sink sink;

	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	o.sockets = 3;
	open_group(&g, &o);
	sink_init(&sink);
	path.peer = g.bound;
	ck_assert_uint_eq(rxw_io_send(g.sock[1], &tx, 1, false), 1);
	ck_assert_int_eq(sink_take(&sink, g.sock[0], NULL, LOST_US), 1);
	ck_assert_uint_eq(sink.rx[0].length, 7);
	ck_assert_uint_eq(sink.rx[0].segment, 7);
	sink_free(&sink);
	rxw_io_close(&g);
}
END_TEST

START_TEST(refused_by_the_kernel)
{
	struct lines lines = { 0 };
	struct rxw_io_options o = options_for("127.0.0.1", &lines);
	struct rxw_io_group g;

	if (kernel_lacks(KERNEL_SHARE | KERNEL_BURSTS))
		return;
	o.sockets = 2;
	set_faults(&o, "steer:EPERM@0");
	open_group(&g, &o);
	ck_assert_uint_eq(g.count, 2);
	ck_assert(!g.steered);
	ck_assert_uint_eq(lines.count, 1);
	rxw_io_close(&g);
}
END_TEST

/* -- by processor ------------------------------------------------------------------------------ */

/* A network namespace with a card, 192.0.2.1, whose packets this program makes. -1: not permitted. */
static int open_card(void)
{
	struct ifreq request = {.ifr_name = "card0", .ifr_flags = IFF_TUN | IFF_NO_PI};
	struct sockaddr_in in = {.sin_family = AF_INET};
	int card, fd;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -1;
	card = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (card < 0 || ioctl(card, TUNSETIFF, &request) < 0)
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	inet_pton(AF_INET, "192.0.2.1", &in.sin_addr);
	memcpy(&request.ifr_addr, &in, sizeof(in));
	ck_assert_int_eq(ioctl(fd, SIOCSIFADDR, &request), 0);
	inet_pton(AF_INET, "255.255.255.0", &in.sin_addr);
	memcpy(&request.ifr_netmask, &in, sizeof(in));
	ck_assert_int_eq(ioctl(fd, SIOCSIFNETMASK, &request), 0);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
	return card;
}

static uint16_t checksum(const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i += 2)
		sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* A datagram of a connection arrives from 192.0.2.2 at `cpu`. */
static void arrive(int card, unsigned cpu, uint16_t port, uint32_t cid)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
		uint32_t word[4];
	} packet = {.ip = {.version = 4, .ihl = 5, .ttl = 9, .protocol = IPPROTO_UDP}};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	inet_pton(AF_INET, "192.0.2.2", &packet.ip.saddr);
	inet_pton(AF_INET, "192.0.2.1", &packet.ip.daddr);
	packet.ip.tot_len = htons(sizeof(packet));
	packet.ip.check = checksum(&packet.ip, sizeof(packet.ip));
	packet.udp.source = htons(7001);
	packet.udp.dest = port;
	packet.udp.len = htons(sizeof(packet) - sizeof(packet.ip));
	packet.word[1] = htonl(cid << 2);
	ck_assert_int_eq(write(card, &packet, sizeof(packet)), sizeof(packet));
}

/* The socket that has a datagram, which is taken. */
static unsigned reached(struct rxw_io_group *g)
{
	uint8_t bytes[64];

	for (unsigned tries = 0;; tries++) {
		unsigned i = tries % g->count;

		if (recv(g->sock[i]->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			return i;
		ck_assert_msg(tries < 1000000, "the datagram is lost");
		if (i == 0)
			usleep(20);
	}
}

/* What a processor takes from a card reaches its socket; what others take, and all from this host, goes by connection. */
START_TEST(by_processor)
{
	struct rxw_io_options o = options_for("0.0.0.0", NULL);
	uint16_t cpu[2] = {UINT16_MAX, UINT16_MAX};
	struct rxw_io_group g;
	unsigned cpus = 0;
	cpu_set_t set;
	int card;

	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	card = open_card();
	if (card < 0) {
		printf("SKIP: no network namespace with a device of tun(4): %s\n", strerror(errno));
		return;
	}
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned c = 0; c < CPU_SETSIZE && cpus < 2; c++)
		if (CPU_ISSET(c, &set))
			cpu[cpus++] = (uint16_t)c;
	o.sockets = 2;
	o.steer = RXW_IO_STEER_CPU;
	o.cpu = (const uint16_t[]){cpu[1], cpu[0]};
	open_group(&g, &o);
	ck_assert(g.steered);
	for (uint32_t cid = 1; cid < 9; cid++)
		for (unsigned i = 0; i < cpus; i++) {
			arrive(card, cpu[i], htons(rxw_addr_port(&g.bound)), cid);
			ck_assert_uint_eq(reached(&g), 1 - i);
		}
	rxw_io_close(&g);
	o.cpu = (const uint16_t[]){UINT16_MAX, UINT16_MAX - 1};
	open_group(&g, &o);
	for (uint32_t cid = 1; cid < 9; cid++) {
		arrive(card, cpu[0], htons(rxw_addr_port(&g.bound)), cid);
		ck_assert_uint_eq(reached(&g), cid % 2);
	}
	rxw_io_close(&g);
	close(card);
}
END_TEST

/* The same program from this host. */
START_TEST(by_connection_id_over_loopback)
{
	if (kernel_lacks(KERNEL_SHARE | KERNEL_STEER))
		return;
	spread("127.0.0.1", 4, RXW_IO_STEER_CPU);
	spread("127.0.0.1", 64, RXW_IO_STEER_CPU);
	if (have_ipv6())
		spread("::1", 3, RXW_IO_STEER_CPU);
}
END_TEST

RUN("io_steer", by_connection_id, by_the_wrong_one, by_hash, short_datagrams_reach_the_first_socket,
    refused_by_the_kernel, by_processor, by_connection_id_over_loopback)
