/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An attacker: a thread that sends packets at a given rate from one socket with many source
 * addresses of this host. RXW_ATTACK_FROM is the first address. The default is in 127/8, which
 * needs no privilege. foreign.sh uses addresses that the server takes for other hosts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attacker.h"
#include "tests/support/internals.h"

#define ROOM 512u /* bytes of a packet: RXW_ACK_MAX_SIZE and its header fit */

struct burst {
	struct mmsghdr message[BURST];
	struct iovec iov[BURST];
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control[BURST];
	unsigned from[BURST];
	uint8_t bytes[BURST][ROOM];
};

bool attacker_first;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t attacker_draw(struct attacker *a)
{
	return (uint32_t)(rxw_prng(&a->random) >> 16);
}

/* Source address of each packet: one socket instead of ten thousand. */
static void address_it(const struct attacker *a, struct burst *b, unsigned k)
{
	struct msghdr *m = &b->message[k].msg_hdr;
	struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(a->base + b->from[k])};
	struct cmsghdr *c;

	m->msg_name = (void *)(uintptr_t)&a->victim;
	m->msg_namelen = sizeof(a->victim);
	m->msg_iov = &b->iov[k];
	m->msg_iovlen = 1;
	m->msg_control = NULL;
	m->msg_controllen = 0;
	if (a->attack->spoofs)
		return;
	m->msg_control = b->control[k].bytes;
	m->msg_controllen = sizeof(b->control[k].bytes);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
}

/* h_raw_encode() without its assertions: libcheck makes a system call for each one. */
static void encode(struct iovec *to, uint8_t packet[ROOM], const struct h_raw *raw)
{
	const struct rxw_header h = {.epoch = raw->epoch, .cid = raw->cid, .call = raw->call,
				     .seq = raw->seq, .serial = raw->serial, .type = raw->type,
				     .flags = raw->flags, .security = raw->security,
				     .service = raw->service};

	rxw_header_put(packet, &h);
	memcpy(packet + RXW_HEADER_SIZE, raw->body, raw->size);
	to->iov_base = packet;
	to->iov_len = RXW_HEADER_SIZE + raw->size;
}

static void fill(struct attacker *a, struct burst *b, uint64_t first, unsigned n)
{
	struct shot shot;

	for (unsigned k = 0; k < n; k++) {
		memset(&shot, 0, offsetof(struct shot, head));
		a->attack->make(a, first + k, &shot);
		encode(&b->iov[k], b->bytes[k], &shot.raw);
		b->from[k] = shot.from;
		address_it(a, b, k);
	}
}

/* Sends all of them: a full socket has room again soon. */
static void emit(struct attacker *a, struct burst *b, unsigned n)
{
	for (unsigned k = 0; k < n;) {
		int done = sendmmsg(a->attack->spoofs ? a->spoof_fd : a->fd, b->message + k, n - k,
				    MSG_DONTWAIT);

		if (done < 0) {
			if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR &&
			    errno != ECONNREFUSED)
				ck_abort_msg("sending: %s", strerror(errno));
			sched_yield();
			continue;
		}
		for (; done > 0; done--, k++)
			a->in[b->from[k]] += b->iov[k].iov_len + HEADERS;
	}
}

/* One received message. */
static void note(struct attacker *a, struct msghdr *m, const uint8_t *packet, size_t size)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct in_pktinfo info;
		unsigned which;

		if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO)
			continue;
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		which = ntohl(info.ipi_addr.s_addr) - a->base;
		if (which >= a->addresses)
			continue;
		a->out[which] += size + HEADERS;
		if (size >= RXW_HEADER_SIZE)
			a->seen[which] = (struct seen){.call = rxw_get32(packet + 8),
						       .seq = rxw_get32(packet + 12),
						       .serial = rxw_get32(packet + 16),
						       .type = packet[20]};
	}
}

static void collect(struct attacker *a, struct burst *b)
{
	int n;

	do {
		for (unsigned k = 0; k < BURST; k++) {
			b->iov[k] = (struct iovec){b->bytes[k], ROOM};
			b->message[k].msg_hdr = (struct msghdr){
				.msg_iov = &b->iov[k], .msg_iovlen = 1,
				.msg_control = b->control[k].bytes,
				.msg_controllen = sizeof(b->control[k].bytes)};
		}
		n = recvmmsg(a->fd, b->message, BURST, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (int k = 0; k < n; k++)
			note(a, &b->message[k].msg_hdr, b->bytes[k], b->message[k].msg_len);
	} while (n == BURST);
}

/* Opens the gate that handlers wait for. */
static void leave(struct attacker *a, struct burst *b)
{
	struct shot shot;

	for (unsigned k = 0; k < BURST && k < a->addresses; k++) {
		attack_goodbye(&shot, k);
		encode(&b->iov[k], b->bytes[k], &shot.raw);
		b->from[k] = k;
		address_it(a, b, k);
	}
	emit(a, b, BURST);
}

static void go_first(void)
{
	static bool told;
	struct sched_param p = {.sched_priority = 1};
	int rc = pthread_setschedparam(pthread_self(), SCHED_RR, &p);

	if (rc && !told)
		fprintf(stderr, "attacker: SCHED_RR: %s; its rate will depend on the load (run it "
			"as root)\n", strerror(rc));
	told = told || rc;
}

static void *attacking(void *arg)
{
	struct attacker *a = arg;
	struct burst *b = calloc(1, sizeof(*b));
	const char *asked = getenv("RXW_ATTACK_RATE");
	unsigned rate = asked ? (unsigned)atoi(asked) : a->attack->rate ? a->attack->rate : RATE;
	uint64_t gap = 1000000000ull * BURST / rate, due = now_ns();

	pthread_setname_np(pthread_self(), "attacker");
	if (attacker_first)
		go_first();
	ck_assert_ptr_nonnull(b);
	for (uint64_t i = 0; i < a->most && !atomic_load(&a->stop); i += BURST) {
		unsigned n = a->most - i < BURST ? (unsigned)(a->most - i) : BURST;
		uint64_t now;

		fill(a, b, i, n);
		emit(a, b, n);
		atomic_store(&a->sent, i + n);
		collect(a, b);
		due += gap;
		now = now_ns();
		if (now < due) {
			struct timespec t = {(time_t)(due / 1000000000u),
					     (long)(due % 1000000000u)};

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		} else {
			sched_yield();
		}
	}
	collect(a, b);
	if (!a->attack->spoofs && !a->attack->addresses)
		leave(a, b);
	free(b);
	return NULL;
}

void attacker_start(struct attacker *a, const struct attack *attack,
		    const struct sockaddr_storage *victim, const struct honest *h, uint64_t most)
{
	const char *from = getenv("RXW_ATTACK_FROM");
	struct internals_header known;
	struct sockaddr_in any = {.sin_family = AF_INET};
	int on = 1, room = 4 << 20;

	memset(a, 0, sizeof(*a));
	a->attack = attack;
	a->random = 0x9e3779b97f4a7c15ull;
	a->most = most;
	a->spoof_fd = honest_socket(h);
	known = internals_header(h->connection);
	a->known_epoch = known.epoch;
	a->known_cid = known.cid;
	a->known_security = h_index(h->bed);
	memcpy(&a->victim, victim, sizeof(a->victim));
	a->base = ntohl(inet_addr(from ? from : "127.1.0.1"));
	a->addresses = attack->addresses ? attack->addresses : ADDRESSES;
	a->in = calloc(a->addresses, sizeof(*a->in));
	a->out = calloc(a->addresses, sizeof(*a->out));
	a->seen = calloc(a->addresses, sizeof(*a->seen));
	ck_assert(a->in && a->out && a->seen);
	a->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(a->fd, 0);
	if (setsockopt(a->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(a->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	ck_assert_int_eq(setsockopt(a->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(a->fd, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(pthread_create(&a->thread, NULL, attacking, a), 0);
}

void attacker_end(struct attacker *a, bool stop)
{
	if (stop)
		atomic_store(&a->stop, true);
	pthread_join(a->thread, NULL);
	for (unsigned s = 0; s < a->addresses && a->attack->silent; s++)
		ck_assert_msg(a->out[s] <= 3 * a->in[s], "%s: %llu bytes for %llu", a->attack->name,
			      (unsigned long long)a->out[s], (unsigned long long)a->in[s]);
	close(a->fd);
	free(a->in);
	free(a->out);
	free(a->seen);
}
