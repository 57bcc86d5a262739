/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread between two sockets. */
#include "relay.h"
#include "tests/asserts.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_socket(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = 4 << 20;

	*address = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)address, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &length), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return fd;
}

void relay_pass(struct relay *r, bool to_server, const uint8_t *data, size_t size)
{
	struct sockaddr_in client;

	if (to_server) {
		(void)!send(r->back, data, size, 0);
		return;
	}
	pthread_mutex_lock(&r->lock);
	client = r->client;
	pthread_mutex_unlock(&r->lock);
	(void)!sendto(r->front, data, size, 0, (struct sockaddr *)&client, sizeof(client));
}

void relay_rebind(struct relay *r)
{
	struct sockaddr_in server, unused;
	socklen_t length = sizeof(server);
	int fd = open_socket(&unused);

	ck_assert_int_eq(getpeername(r->back, (struct sockaddr *)&server, &length), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&server, length), 0);
	ck_assert_int_eq(dup2(fd, r->back), r->back);
	close(fd);
}

static void take(struct relay *r, bool to_server)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	ssize_t n = recvfrom(to_server ? r->front : r->back, r->data, sizeof(r->data), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &length);
	relay_fn filter = r->filter;

	if (n < 0)
		return;
	if (to_server) {
		pthread_mutex_lock(&r->lock);
		r->client = from;
		pthread_mutex_unlock(&r->lock);
	}
	if (filter && n >= HEADER)
		filter(r, to_server, r->data, (size_t)n);
	else
		relay_pass(r, to_server, r->data, (size_t)n);
}

static void *run(void *arg)
{
	struct relay *r = arg;
	struct pollfd p[3] = {{.fd = r->front, .events = POLLIN},
			      {.fd = r->back, .events = POLLIN},
			      {.fd = r->stop[0], .events = POLLIN}};

	while (!p[2].revents) {
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[0].revents)
			take(r, true);
		if (p[1].revents)
			take(r, false);
	}
	return NULL;
}

void relay_open(struct relay *r, const struct sockaddr_in *server)
{
	struct sockaddr_in unused;

	memset(r, 0, sizeof(*r));
	pthread_mutex_init(&r->lock, NULL);
	r->front = open_socket(&r->address);
	r->back = open_socket(&unused);
	ck_assert_int_eq(connect(r->back, (const struct sockaddr *)server, sizeof(*server)), 0);
	ck_assert_int_eq(pipe(r->stop), 0);
	ck_assert_int_eq(pthread_create(&r->thread, NULL, run, r), 0);
}

void relay_close(struct relay *r)
{
	ck_assert_int_eq(write(r->stop[1], "", 1), 1);
	pthread_join(r->thread, NULL);
	close(r->front);
	close(r->back);
	close(r->stop[0]);
	close(r->stop[1]);
	pthread_mutex_destroy(&r->lock);
}
