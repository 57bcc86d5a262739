/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends a file of the page cache as bursts of datagrams, each a header and a slice of the file, by
 * one of the ways that the kernel offers: with copies, or by reference to pages. Prints the CPU
 * time of the sender. src/bench/zerocopy runs it over loopback and between network namespaces.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "bench/count.h"
#include "bench/raw.h"

#define HEADER	    28u /* of Rx */
#define DATA	    1416u
#define DATAGRAM    (HEADER + DATA)
#define DATAGRAMS   45u		/* of one message, at most */
#define SLOT	    65536u	/* bytes, of one message */
#define QUEUE	    (10 * SLOT) /* all slots: the send queue of a call, 420 packets */
#define SLOTS	    256u
#define MAPPED_PART (1u << 20)
#define AHEAD	    (1u << 20) /* of the receiver */
#define SOCKETBUF   (64 << 20)
#define PORT	    7700

#ifndef IORING_SEND_ZC_REPORT_USAGE /* older headers */
#	define IORING_SEND_ZC_REPORT_USAGE  (1U << 3)
#	define IORING_NOTIF_USAGE_ZC_COPIED (1U << 31)
#endif

/* A message, and what may not change before the kernel has sent it. */
struct slot {
	uint8_t *data;
	struct head {
		uint64_t offset; /* of the slice, in the file */
		uint8_t rest[HEADER - sizeof(uint64_t)];
	} __attribute__((packed)) head[DATAGRAMS] __attribute__((aligned(2048))); /* in one page */
	struct iovec iov[2 * DATAGRAMS];
	struct msghdr msg;
	bool busy;
};

static struct slot slots[SLOTS];
static unsigned slot_count, datagrams;
static int sock, file;
static uint64_t file_size, mapped_part = UINT64_MAX, copied;
static _Atomic(uint64_t) *received; /* bytes; shared with the receiver */

static void check(bool good, const char *what)
{
	if (!good)
		raw_fail(what, strerror(errno));
}

static void set_option(int level, int option, int value, const char *name)
{
	check(setsockopt(sock, level, option, &value, sizeof(value)) == 0, name);
}

/* -- What a message consists of --------------------------------------------------------------- */

/* Headers and data in one buffer, as in rxwire. */
static void fill_buffer(struct slot *s, uint64_t offset)
{
	struct iovec part[DATAGRAMS];

	for (unsigned i = 0; i < datagrams; i++) {
		uint8_t *at = s->data + (size_t)i * DATAGRAM;

		s->head[i].offset = offset + i * DATA;
		memcpy(at, &s->head[i], HEADER);
		part[i] = (struct iovec){at + HEADER, DATA};
	}
	check(preadv(file, part, (int)datagrams, (off_t)offset) == (ssize_t)datagrams * DATA,
	      "preadv");
	s->iov[0] = (struct iovec){s->data, (size_t)datagrams * DATAGRAM};
	s->msg = (struct msghdr){.msg_iov = s->iov, .msg_iovlen = 1};
}

/* Headers beside slices of the file, which is mapped all at once or part by part. */
static void fill_slices(struct slot *s, uint64_t offset)
{
	static uint8_t *map;
	static uint64_t from, length;

	if (!map || offset < from || offset + (uint64_t)datagrams * DATA > from + length) {
		if (map)
			munmap(map, length);
		from = offset & ~(uint64_t)4095;
		length = file_size - from < mapped_part ? file_size - from : mapped_part;
		map = mmap(NULL, length, PROT_READ, MAP_SHARED | MAP_POPULATE, file, (off_t)from);
		check(map != MAP_FAILED, "mmap");
	}
	for (unsigned i = 0; i < datagrams; i++, offset += DATA) {
		s->head[i].offset = offset;
		s->iov[2 * i] = (struct iovec){&s->head[i], HEADER};
		s->iov[2 * i + 1] = (struct iovec){map + (offset - from), DATA};
	}
	s->msg = (struct msghdr){.msg_iov = s->iov, .msg_iovlen = 2 * datagrams};
}

/* -- How it is sent --------------------------------------------------------------------------- */

static void send_copy(struct slot *s)
{
	check(sendmsg(sock, &s->msg, 0) > 0, "sendmsg");
}

static void send_by_reference(struct slot *s)
{
	check(sendmsg(sock, &s->msg, MSG_ZEROCOPY) > 0, "sendmsg with MSG_ZEROCOPY");
	s->busy = true;
}

/* Waits until the kernel has released some messages. */
static void reap_errors(void)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct sock_extended_err)) + 64];
	} control;
	struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof(control)};
	struct pollfd p = {.fd = sock};
	struct sock_extended_err e;

	if (recvmsg(sock, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		check(errno == EAGAIN, "completions");
		poll(&p, 1, -1);
		return;
	}
	check(CMSG_FIRSTHDR(&m), "completion");
	memcpy(&e, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(e));
	errno = (int)e.ee_errno;
	check(e.ee_origin == SO_EE_ORIGIN_ZEROCOPY, "error of the socket");
	for (uint32_t i = e.ee_info; i != e.ee_data + 1; i++) {
		slots[i % slot_count].busy = false;
		copied += e.ee_code == SO_EE_CODE_ZEROCOPY_COPIED;
	}
}

/* One that sends and then splices is corked meanwhile: all of it is one message. */
static void send_spliced(struct slot *s)
{
	set_option(IPPROTO_UDP, UDP_CORK, 1, "UDP_CORK");
	for (unsigned i = 0; i < datagrams; i++) {
		off_t offset = (off_t)s->head[i].offset;

		check(send(sock, &s->head[i], HEADER, 0) == HEADER, "send of a header");
		check(sendfile(sock, file, &offset, DATA) == DATA, "sendfile");
	}
	set_option(IPPROTO_UDP, UDP_CORK, 0, "UDP_CORK");
}

static struct io_uring ring;

static void open_ring(void)
{
	struct iovec all = {slots[0].data, QUEUE};

	errno = -io_uring_queue_init(4 * SLOTS, &ring,
				     IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	check(!errno, "io_uring");
	errno = -io_uring_register_buffers(&ring, &all, 1);
	check(!errno, "registered buffers");
}

/* A message is sent, and later released. */
static void reap_ring(void)
{
	struct io_uring_cqe *c;

	errno = -io_uring_wait_cqe(&ring, &c);
	check(!errno, "completions");
	do {
		errno = c->res < 0 && !(c->flags & IORING_CQE_F_NOTIF) ? -c->res : 0;
		check(!errno, "sending by the ring");
		if (c->flags & IORING_CQE_F_NOTIF) {
			slots[c->user_data].busy = false;
			copied += (uint32_t)c->res == IORING_NOTIF_USAGE_ZC_COPIED;
		}
		io_uring_cqe_seen(&ring, c);
	} while (!io_uring_peek_cqe(&ring, &c));
}

static void submit(struct io_uring_sqe *e, struct slot *s)
{
	e->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
	e->user_data = (uint64_t)(s - slots);
	s->busy = true;
	check(io_uring_submit(&ring) == 1, "io_uring_submit");
}

static void send_by_ring(struct slot *s)
{
	struct io_uring_sqe *e = io_uring_get_sqe(&ring);

	io_uring_prep_sendmsg_zc(e, sock, &s->msg, 0);
	submit(e, s);
}

/* From buffers that the kernel has pinned once and for all. */
static void send_registered(struct slot *s)
{
	struct io_uring_sqe *e = io_uring_get_sqe(&ring);

	io_uring_prep_send_zc_fixed(e, sock, s->data, s->iov[0].iov_len, 0, 0, 0);
	submit(e, s);
}

static const struct way {
	const char *name;
	void (*fill)(struct slot *s, uint64_t offset);
	void (*send)(struct slot *s);
	void (*reap)(void); /* until a message is complete; NULL: it is at once */
} ways[] = {
	{"copy", fill_buffer, send_copy, NULL},
	{"slices", fill_slices, send_copy, NULL},
	{"map", fill_slices, send_copy, NULL},
	{"zerocopy", fill_buffer, send_by_reference, reap_errors},
	{"zerocopy-slices", fill_slices, send_by_reference, reap_errors},
	{"ring", fill_buffer, send_by_ring, reap_ring},
	{"ring-registered", fill_buffer, send_registered, reap_ring},
	{"ring-slices", fill_slices, send_by_ring, reap_ring},
	{"splice", fill_slices, send_spliced, NULL},
	{NULL, NULL, NULL, NULL},
};

/* -- Both ends -------------------------------------------------------------------------------- */

static void receive(struct sockaddr_in at, const char *netns, int ready)
{
	static uint8_t buffer[16][SLOT];
	struct mmsghdr hdr[16] = {0};
	struct iovec iov[16];
	int ns = netns ? open(netns, O_RDONLY | O_CLOEXEC) : -1;

	check(!netns || (ns >= 0 && setns(ns, CLONE_NEWNET) == 0), netns);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(bind(sock, (struct sockaddr *)&at, sizeof(at)) == 0, "bind");
	raw_set_buffers(sock, SOCKETBUF);
	raw_receive_bursts(sock);
	check(write(ready, "", 1) == 1, "pipe");
	for (unsigned i = 0; i < 16; i++) {
		iov[i] = (struct iovec){buffer[i], SLOT};
		hdr[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	for (;;) {
		int n = recvmmsg(sock, hdr, 16, MSG_WAITFORONE, NULL);
		uint64_t bytes = 0;

		check(n > 0, "recvmmsg");
		for (int i = 0; i < n; i++)
			bytes += hdr[i].msg_len;
		atomic_fetch_add(received, bytes);
	}
}

static void start_receiver(struct sockaddr_in at, const char *netns)
{
	int fds[2];
	pid_t child;
	char c;

	received = mmap(NULL, sizeof(*received), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	check(received != MAP_FAILED && pipe(fds) == 0, "memory");
	child = fork();
	check(child >= 0, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raw_pin(1);
		close(fds[0]);
		receive(at, netns, fds[1]);
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		raw_fail("receiver", "has ended");
}

/* Waits for the receiver. What does not arrive in 10 ms is lost. */
static void throttle(uint64_t sent)
{
	static uint64_t lost;

	if (!received || sent - lost - atomic_load(received) < AHEAD)
		return;
	for (unsigned i = 0; sent - lost - atomic_load(received) > AHEAD / 2; i++) {
		if (i == 200)
			lost = sent - atomic_load(received);
		usleep(50);
	}
}

static uint64_t send_file(const struct way *way, uint64_t bytes)
{
	uint64_t sent = 0, offset = 0, number = 0;

	for (; sent < bytes; number++) {
		struct slot *s = &slots[number % slot_count];

		while (s->busy)
			way->reap();
		if (offset + (uint64_t)datagrams * DATA > file_size)
			offset = 0;
		way->fill(s, offset);
		way->send(s);
		offset += datagrams * DATA;
		sent += datagrams * DATAGRAM;
		throttle(sent);
	}
	for (unsigned i = 0; i < slot_count; i++)
		while (slots[i].busy)
			way->reap();
	return sent;
}

static void measure(const struct way *way, uint64_t bytes)
{
	double start = count_now(), cpu = count_cpu(CLOCK_PROCESS_CPUTIME_ID), gb;
	struct raw_usage u = {0};
	uint64_t sent;

	raw_measure(&u, -1);
	sent = send_file(way, bytes);
	raw_measure(&u, 1);
	cpu = count_cpu(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	gb = (double)sent / 1e9;
	printf("{\"way\":\"%s\",\"datagrams\":%u,\"GB\":%.3f,\"seconds\":%.3f,\"cpu\":%.4f,"
	       "\"user\":%.4f,\"system\":%.4f,\"copied\":%.3f,",
	       way->name, datagrams, gb, count_now() - start, cpu / gb, u.user_s / gb, u.sys_s / gb,
	       (double)copied * datagrams * DATAGRAM / (double)sent);
	usleep(100000);
	printf("\"received\":%.4f}\n",
	       received ? (double)atomic_load(received) / (double)sent : 0.);
}

static void open_slots(void)
{
	static uint8_t buffers[QUEUE] __attribute__((aligned(4096)));
	unsigned size = (datagrams * DATAGRAM + 4095) & ~4095u;

	slot_count = QUEUE / size < SLOTS ? QUEUE / size : SLOTS;
	for (unsigned i = 0; i < slot_count; i++)
		slots[i].data = buffers + (size_t)size * i;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	const struct way *way = ways;

	if (argc != 7) {
		fprintf(stderr,
			"usage: zerocopy_load WAY DATAGRAMS BYTES FILE ADDRESS NETNS\n"
			"NETNS: the file of the receiver's network namespace, `here`, or `none`: no receiver\n");
		return 2;
	}
	while (way->name && strcmp(way->name, argv[1]))
		way++;
	if (!way->name)
		raw_usage_error("no such way", argv[1]);
	if (!strcmp(way->name, "map"))
		mapped_part = MAPPED_PART;
	datagrams = (unsigned)raw_number("DATAGRAMS", argv[2], 2, DATAGRAMS);
	if (inet_pton(AF_INET, argv[5], &to.sin_addr) != 1)
		raw_usage_error("not a numeric address", argv[5]);
	file = open(argv[4], O_RDONLY | O_CLOEXEC);
	check(file >= 0, argv[4]);
	file_size = (uint64_t)lseek(file, 0, SEEK_END);
	open_slots();
	way->fill(&slots[0], 0); /* also maps the file */
	if (strcmp(argv[6], "none"))
		start_receiver(to, strcmp(argv[6], "here") ? argv[6] : NULL);
	raw_pin(0);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(connect(sock, (struct sockaddr *)&to, sizeof(to)) == 0, argv[5]);
	raw_set_buffers(sock, SOCKETBUF);
	set_option(IPPROTO_UDP, UDP_SEGMENT, DATAGRAM, "UDP_SEGMENT");
	set_option(SOL_SOCKET, SO_ZEROCOPY, 1, "SO_ZEROCOPY");
	if (way->reap == reap_ring)
		open_ring();
	measure(way, raw_number("BYTES", argv[3], 1, UINT64_MAX));
	return 0;
}
