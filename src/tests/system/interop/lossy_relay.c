/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A UDP relay that drops, duplicates and reorders datagrams, from a seed: the bad network between
 * our programs and OpenAFS's library. It needs no network emulator in the kernel.
 *
 * usage: lossy_relay PORT SERVER_PORT SEED LOST DOUBLED LATE     (the last three per 1000)
 *
 * Everything is on 127.0.0.1. Each client gets its own socket towards the server, so that the
 * server can tell them apart. A late datagram is sent after the next one of its direction, or after
 * 5 ms. Ends on SIGTERM with a line of counts; status 1 if nothing was forwarded.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

enum {
	MAX_CLIENTS = 64,
	MAX_DATAGRAM = 65536,
	HOLD_MS = 5,
	BUFFER = 4 << 20,
};

/* One direction of one client: its destination, and the delayed datagram. */
struct way {
	int fd;
	struct sockaddr_in to; /* used if has_to; else fd is connected */
	int has_to;
	unsigned char *held;
	size_t held_len;
	int64_t held_since; /* ms */
};

struct client {
	struct sockaddr_in addr;
	int fd;
	struct way up, down;
};

static struct client clients[MAX_CLIENTS];
static int client_count;
static uint64_t rng;
static unsigned int lost, doubled, late;
static uint64_t seen_count, lost_count, doubled_count, late_count;
static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* True in the given number of 1000 draws. */
static int chance(unsigned int permille)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 20) % 1000 < permille;
}

/* An error (the peer's port is closed, a full buffer) is one more loss. */
static void forward(const struct way *w, const void *data, size_t len)
{
	ssize_t n = w->has_to ? sendto(w->fd, data, len, 0, (const struct sockaddr *)&w->to,
				       sizeof(w->to))
			      : send(w->fd, data, len, 0);

	if (n < 0 && errno != ECONNREFUSED && errno != EAGAIN && errno != ENOBUFS)
		err(1, "sending");
}

static void release(struct way *w)
{
	if (!w->held)
		return;
	forward(w, w->held, w->held_len);
	free(w->held);
	w->held = NULL;
}

static void relay(struct way *w, const void *data, size_t len)
{
	seen_count++;
	if (chance(lost)) {
		lost_count++;
		return;
	}
	if (!w->held && chance(late)) {
		late_count++;
		w->held = malloc(len ? len : 1);
		if (!w->held)
			err(1, "holding a datagram");
		memcpy(w->held, data, len);
		w->held_len = len;
		w->held_since = now_ms();
		return;
	}
	forward(w, data, len);
	if (chance(doubled)) {
		doubled_count++;
		forward(w, data, len);
	}
	release(w);
}

static int open_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size = BUFFER;

	if (fd < 0)
		err(1, "socket");
	/* Only the seed should determine losses: request the largest buffer permitted. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return fd;
}

static struct client *find_client(const struct sockaddr_in *from, int listener,
				  const struct sockaddr_in *server)
{
	struct client *c;

	for (int i = 0; i < client_count; i++)
		if (clients[i].addr.sin_port == from->sin_port &&
		    clients[i].addr.sin_addr.s_addr == from->sin_addr.s_addr)
			return &clients[i];
	if (client_count == MAX_CLIENTS)
		errx(1, "more than %d clients", MAX_CLIENTS);
	c = &clients[client_count++];
	c->addr = *from;
	c->fd = open_socket();
	if (connect(c->fd, (const struct sockaddr *)server, sizeof(*server)))
		err(1, "connect");
	c->up = (struct way){ .fd = c->fd };
	c->down = (struct way){ .fd = listener, .to = *from, .has_to = 1 };
	return c;
}

static void release_old(struct way *w, int64_t now)
{
	if (w->held && now - w->held_since >= HOLD_MS)
		release(w);
}

static void loop(int listener, const struct sockaddr_in *server)
{
	static unsigned char buf[MAX_DATAGRAM];
	struct pollfd fds[1 + MAX_CLIENTS];

	while (!ended) {
		ssize_t n;
		int64_t now;

		fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (int i = 0; i < client_count; i++)
			fds[1 + i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
		if (poll(fds, (nfds_t)client_count + 1, HOLD_MS) < 0 && errno != EINTR)
			err(1, "poll");
		for (;;) {
			struct sockaddr_in from;
			socklen_t len = sizeof(from);

			n = recvfrom(listener, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len);
			if (n < 0)
				break;
			relay(&find_client(&from, listener, server)->up, buf, (size_t)n);
		}
		now = now_ms();
		for (int i = 0; i < client_count; i++) {
			struct client *c = &clients[i];

			while ((n = recv(c->fd, buf, sizeof(buf), 0)) >= 0)
				relay(&c->down, buf, (size_t)n);
			release_old(&c->up, now);
			release_old(&c->down, now);
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET }, server;
	struct sigaction action = { .sa_handler = on_signal };
	int listener;

	if (argc != 7) {
		fprintf(stderr, "usage: lossy_relay PORT SERVER_PORT SEED LOST DOUBLED LATE\n");
		return 2;
	}
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server = here;
	here.sin_port = htons((uint16_t)atoi(argv[1]));
	server.sin_port = htons((uint16_t)atoi(argv[2]));
	rng = strtoull(argv[3], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
	lost = (unsigned int)atoi(argv[4]);
	doubled = (unsigned int)atoi(argv[5]);
	late = (unsigned int)atoi(argv[6]);
	sigaction(SIGTERM, &action, NULL);
	listener = open_socket();
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)))
		err(1, "port %s", argv[1]);
	loop(listener, &server);
	printf("{\"seen\":%llu,\"lost\":%llu,\"doubled\":%llu,\"late\":%llu}\n",
	       (unsigned long long)seen_count, (unsigned long long)lost_count,
	       (unsigned long long)doubled_count, (unsigned long long)late_count);
	return seen_count > lost_count ? 0 : 1;
}
