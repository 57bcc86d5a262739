/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated link between two network namespaces: delay, loss, reordering, duplicates, changed
 * bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "spoil.h"

#define MAX_PACKET 65536u
#define BURST_NS   200000000u /* limit of a burst of losses */

/* Properties of the link, equal in both directions. */
struct wire {
	const char *ns[2];   /* files of the namespaces */
	const char *name[2]; /* name of the device in each */
	int mtu;
	double delay_ms, jitter_ms;
	/* fractions; burst is the mean number of packets lost in sequence */
	double loss, reorder, duplicate, corrupt;
	double burst;
	bool fix_checksum;               /* corrupted packets have a matching checksum */
	/* bytes at the start of a datagram that are never corrupted */
	uint32_t behind;
	double rate_bps;                 /* 0: no limit */
	unsigned queue;                  /* packets that may wait for the rate */
	bool mute;                       /* routers send no reports: a black hole */
	uint64_t seed;
};

/* A packet in flight; the heap is ordered by due time, then by number. */
struct packet {
	uint64_t due, number;
	int to;
	uint32_t length;
	uint8_t *data;
};

struct state {
	struct wire w;
	int fd[2];
	uint64_t free_at[2]; /* when the link has sent the packets queued so far */
	unsigned waiting[2];
	bool losing[2];	   /* in a burst */
	uint64_t until[2]; /* and its latest end */
	struct packet *heap;
	size_t count, room;
	uint64_t number, random;
	uint64_t forwarded, lost, reordered, duplicated, corrupted, muted, overflowed;
};

static volatile sig_atomic_t stop, calm;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		calm = 1;
	else
		stop = 1;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "link: %s: %s\n", what, why);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* splitmix64 */
static uint64_t draw(struct state *s)
{
	uint64_t z = (s->random += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A number from 0 to below 1. */
static double chance(struct state *s)
{
	return (double)(draw(s) >> 11) * 0x1p-53;
}

/* -- Devices ------------------------------------------------------------------------------ */

static int open_device(const struct wire *w, int side)
{
	struct ifreq r = { 0 };
	int ns = open(w->ns[side], O_RDONLY | O_CLOEXEC);
	int fd, s;

	if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
		fail(w->ns[side], strerror(errno));
	close(ns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fail("/dev/net/tun", strerror(errno));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", w->name[side]);
	r.ifr_flags = IFF_TUN | IFF_NO_PI;
	if (ioctl(fd, TUNSETIFF, &r) < 0)
		fail("TUNSETIFF", strerror(errno));
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r.ifr_mtu = w->mtu;
	if (s < 0 || ioctl(s, SIOCSIFMTU, &r) < 0)
		fail("MTU of the device", strerror(errno));
	if (ioctl(s, SIOCGIFFLAGS, &r) < 0)
		fail("device", strerror(errno));
	r.ifr_flags |= IFF_UP;
	if (ioctl(s, SIOCSIFFLAGS, &r) < 0)
		fail("device", strerror(errno));
	close(s);
	return fd;
}

/* -- Packets in flight ---------------------------------------------------------------------- */

static bool earlier(const struct packet *a, const struct packet *b)
{
	return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void swap(struct packet *a, struct packet *b)
{
	struct packet t = *a;

	*a = *b;
	*b = t;
}

static void push(struct state *s, int to, const uint8_t *data, uint32_t length, uint64_t due)
{
	size_t i = s->count;

	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
		if (!s->heap)
			fail("memory", strerror(errno));
	}
	s->heap[i] = (struct packet){ due, s->number++, to, length, malloc(length) };
	if (!s->heap[i].data)
		fail("memory", strerror(errno));
	memcpy(s->heap[i].data, data, length);
	s->count++;
	s->waiting[to]++;
	for (; i && earlier(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

static struct packet pop(struct state *s)
{
	struct packet first = s->heap[0];
	size_t i = 0;

	s->heap[0] = s->heap[--s->count];
	for (;;) {
		size_t least = i;

		for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < s->count; c++)
			if (earlier(&s->heap[c], &s->heap[least]))
				least = c;
		if (least == i)
			break;
		swap(&s->heap[i], &s->heap[least]);
		i = least;
	}
	s->waiting[first.to]--;
	return first;
}

/* Whether it is ICMP that reports a packet as undeliverable or too big. */
static bool is_report(const uint8_t *data, uint32_t length)
{
	if (length > 20 && data[0] >> 4 == 4)
		return data[9] == IPPROTO_ICMP;
	/* Of ICMPv6 errors only: their types are below 128. */
	return length > 40 && data[0] >> 4 == 6 && data[6] == IPPROTO_ICMPV6 && data[40] < 128;
}

/*
 * Independent losses or bursts: two states, with a transition probability that gives the configured
 * mean loss. A burst also ends after some time: if only packets ended it, it would outlast the dead
 * time of a single stream that sends seldom.
 */
static bool loses(struct state *s, int to, uint64_t now)
{
	const struct wire *w = &s->w;

	if (w->burst <= 1)
		return chance(s) < w->loss;
	if (s->losing[to]) {
		s->losing[to] = chance(s) >= 1 / w->burst && now < s->until[to];
	} else {
		s->losing[to] = chance(s) < w->loss / (1 - w->loss) / w->burst;
		s->until[to] = now + BURST_NS;
	}
	return s->losing[to];
}

/* Loses, corrupts, delays or duplicates one packet. */
static void take(struct state *s, int to, uint8_t *data, uint32_t length, uint64_t now)
{
	const struct wire *w = &s->w;
	uint64_t due = now;
	double delay = w->delay_ms;

	if (w->mute && is_report(data, length)) {
		s->muted++;
		return;
	}
	if (calm) {
		push(s, to, data, length, now);
		return;
	}
	if (loses(s, to, now)) {
		s->lost++;
		return;
	}
	if (chance(s) < w->corrupt && spoil(data, length, draw(s), w->fix_checksum, w->behind))
		s->corrupted++;
	if (w->rate_bps > 0) {
		if (s->waiting[to] >= w->queue) {
			s->overflowed++;
			return;
		}
		if (s->free_at[to] < now)
			s->free_at[to] = now;
		s->free_at[to] += (uint64_t)(length * 8 * 1e9 / w->rate_bps);
		due = s->free_at[to];
	}
	if (w->jitter_ms > 0)
		delay += chance(s) * w->jitter_ms;
	/* Held back a little: some later packets overtake it. */
	if (chance(s) < w->reorder) {
		delay += 0.5 + chance(s) * 2;
		s->reordered++;
	}
	due += (uint64_t)(delay * 1e6);
	push(s, to, data, length, due);
	if (chance(s) < w->duplicate) {
		push(s, to, data, length, due);
		s->duplicated++;
	}
}

static void deliver(struct state *s, uint64_t now)
{
	while (s->count && s->heap[0].due <= now) {
		struct packet p = pop(s);

		/* A full device drops packets, as a real link does. */
		if (write(s->fd[p.to], p.data, p.length) < 0)
			s->overflowed++;
		else
			s->forwarded++;
		free(p.data);
	}
}

static void serve(struct state *s)
{
	static uint8_t data[MAX_PACKET];

	while (!stop) {
		struct pollfd p[2] = { { .fd = s->fd[0], .events = POLLIN },
				       { .fd = s->fd[1], .events = POLLIN } };
		struct timespec t = { 1, 0 };
		uint64_t now = now_ns();

		if (s->count) {
			uint64_t wait = s->heap[0].due > now ? s->heap[0].due - now : 0;

			if (wait < 1000000000)
				t = (struct timespec){ 0, (long)wait };
		}
		if (ppoll(p, 2, &t, NULL) < 0 && errno != EINTR)
			fail("poll", strerror(errno));
		now = now_ns();
		deliver(s, now);
		for (int side = 0; side < 2; side++) {
			/* One batch of each at a time, so that due packets are not late. */
			for (int i = 0; i < 64; i++) {
				ssize_t n = read(s->fd[side], data, sizeof(data));

				if (n <= 0)
					break;
				take(s, !side, data, (uint32_t)n, now);
			}
		}
	}
}

/* -- Options ------------------------------------------------------------------------------ */

static double number(const char *option, const char *text, double most)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || !(n >= 0 && n <= most)) {
		fprintf(stderr, "link: %s: %s\n", option, text);
		exit(2);
	}
	return n;
}

static void parse(struct wire *w, int argc, char **argv)
{
	static const struct option options[] = {
		{ "a", 1, NULL, 'a' },         { "b", 1, NULL, 'b' },
		{ "name-a", 1, NULL, 'A' },    { "name-b", 1, NULL, 'B' },
		{ "mtu", 1, NULL, 'm' },       { "delay", 1, NULL, 'd' },
		{ "jitter", 1, NULL, 'j' },    { "loss", 1, NULL, 'l' },
		{ "reorder", 1, NULL, 'r' },   { "duplicate", 1, NULL, 'u' },
		{ "rate", 1, NULL, 't' },      { "queue", 1, NULL, 'q' },
		{ "mute", 0, NULL, 'M' },      { "seed", 1, NULL, 's' },
		{ "corrupt", 1, NULL, 'c' },   { "fix-checksum", 0, NULL, 'e' },
		{ "burst", 1, NULL, 'U' },     { "behind", 1, NULL, 'H' },
		{ NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'a': w->ns[0] = optarg; break;
		case 'b': w->ns[1] = optarg; break;
		case 'A': w->name[0] = optarg; break;
		case 'B': w->name[1] = optarg; break;
		case 'm': w->mtu = (int)number("--mtu", optarg, 65535); break;
		case 'd': w->delay_ms = number("--delay", optarg, 60000); break;
		case 'j': w->jitter_ms = number("--jitter", optarg, 60000); break;
		case 'l': w->loss = number("--loss", optarg, 100) / 100; break;
		case 'r': w->reorder = number("--reorder", optarg, 100) / 100; break;
		case 'u': w->duplicate = number("--duplicate", optarg, 100) / 100; break;
		case 't': w->rate_bps = number("--rate", optarg, 1e6) * 1e6; break;
		case 'q': w->queue = (unsigned)number("--queue", optarg, 1e6); break;
		case 'M': w->mute = true; break;
		case 'c': w->corrupt = number("--corrupt", optarg, 100) / 100; break;
		case 'e': w->fix_checksum = true; break;
		case 'H': w->behind = (uint32_t)number("--behind", optarg, 65535); break;
		case 'U': w->burst = number("--burst", optarg, 1000); break;
		case 's': w->seed = (uint64_t)number("--seed", optarg, 1e15); break;
		default: exit(2);
		}
	}
	if (!w->ns[0] || !w->ns[1] || optind < argc) {
		fprintf(stderr,
			"usage: link --a NAMESPACE_FILE --b NAMESPACE_FILE\n"
			"  [--name-a DEVICE] [--name-b DEVICE] [--mtu BYTES] [--delay MS]\n"
			"  [--jitter MS] [--loss PERCENT] [--reorder PERCENT]\n"
			"  [--duplicate PERCENT]\n"
			"  [--corrupt PERCENT [--fix-checksum] [--behind BYTES]]\n"
			"  [--burst PACKETS] [--rate MBIT/S] [--queue PACKETS]\n"
			"  [--mute] [--seed N]\n"
			"SIGUSR1: from then on, packets pass unchanged.\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct state s = { .w = { .name = { "wire0", "wire0" }, .mtu = 1500, .queue = 1000,
				  .seed = 1 } };
	struct sigaction act = { .sa_handler = on_signal };

	parse(&s.w, argc, argv);
	s.random = s.w.seed;
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGUSR1, &act, NULL);
	for (int side = 0; side < 2; side++)
		s.fd[side] = open_device(&s.w, side);
	puts("ready");
	fflush(stdout);
	serve(&s);
	printf("forwarded %llu lost %llu reordered %llu duplicated %llu "
	       "corrupted %llu muted %llu overflowed %llu\n",
	       (unsigned long long)s.forwarded, (unsigned long long)s.lost,
	       (unsigned long long)s.reordered, (unsigned long long)s.duplicated,
	       (unsigned long long)s.corrupted, (unsigned long long)s.muted,
	       (unsigned long long)s.overflowed);
	return 0;
}
