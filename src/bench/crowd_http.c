/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of an HTTP server: one connection each, which stays open. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/crowd.h"

#define HEAD_MAX 4096

struct client {
	struct crowd_client base;
	struct sockaddr_in server;
	int fd; /* -1: not connected; changed by the thread of the client, with the lock */
};

/* The head of an answer, and the bytes of the body that came with it. */
struct answer {
	char head[HEAD_MAX + 1];
	size_t used, surplus;
	uint64_t length;
};

static void set_descriptor(struct client *c, int fd)
{
	int old;

	pthread_mutex_lock(&c->base.lock);
	old = c->fd;
	c->fd = fd;
	if (fd >= 0 && c->base.interrupted)
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_unlock(&c->base.lock);
	if (old >= 0)
		close(old);
}

static int connect_client(struct client *c, char *why)
{
	struct timeval limit = {.tv_sec = c->base.limit_ms / 1000,
				.tv_usec = c->base.limit_ms % 1000 * 1000};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return crowd_explain_errno(why, "socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&c->server, sizeof(c->server))) {
		crowd_explain_errno(why, "connect");
		close(fd);
		return -1;
	}
	set_descriptor(c, fd);
	return 0;
}

static void close_http(void *client)
{
	set_descriptor(client, -1);
}

static int open_http(void *client, const struct crowd_place *place, char *why)
{
	struct client *c = client;

	c->fd = -1;
	c->server.sin_family = AF_INET;
	c->server.sin_port = htons((uint16_t)place->http_port);
	if (inet_pton(AF_INET, place->address, &c->server.sin_addr) != 1)
		return crowd_explain(why, "the server's address is not numeric");
	return connect_client(c, why);
}

static int send_request(struct client *c, const char *method, const char *name, char *why)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "%s /%s HTTP/1.1\r\nHost: crowd\r\n\r\n", method,
			      name);

	return send(c->fd, text, (size_t)length, MSG_NOSIGNAL) == length
		       ? 0
		       : crowd_explain_errno(why, "send");
}

/* Read until the head is complete. */
static int receive_head(struct client *c, struct answer *a, char *why)
{
	char *end = NULL;

	a->used = 0;
	while (!end) {
		ssize_t n = recv(c->fd, a->head + a->used, HEAD_MAX - a->used, 0);

		if (n <= 0)
			return n ? crowd_explain_errno(why, "recv")
				 : crowd_explain(why, "the answer ended before its head");
		a->used += (size_t)n;
		a->head[a->used] = '\0';
		end = strstr(a->head, "\r\n\r\n");
	}
	*end = '\0';
	a->surplus = a->used - (size_t)(end + 4 - a->head);
	return 0;
}

static int take_head(struct client *c, struct answer *a, char *why)
{
	const char *length;

	if (receive_head(c, a, why) < 0)
		return -1;
	if (strncmp(a->head, "HTTP/1.1 200", 12) != 0) {
		snprintf(why, CROWD_WHY, "the answer is %.40s", a->head);
		return -1;
	}
	length = strcasestr(a->head, "\r\nContent-Length:");
	if (!length)
		return crowd_explain(why, "the answer has no length");
	a->length = strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
	return a->surplus <= a->length ? 0 : crowd_explain(why, "the answer is too long");
}

/* After a failure the next request needs another connection. */
static int request(struct client *c, const char *method, const char *name, struct answer *a,
		   char *why)
{
	if (c->fd < 0 && connect_client(c, why) < 0)
		return -1;
	if (send_request(c, method, name, why) == 0 && take_head(c, a, why) == 0)
		return 0;
	set_descriptor(c, -1);
	return -1;
}

static int fetch_http(void *client, const struct crowd_file *file, uint8_t *buffer,
		      _Atomic(uint64_t) *bytes, char *why)
{
	struct client *c = client;
	struct answer a;
	uint64_t left;

	if (request(c, "GET", file->name, &a, why) < 0)
		return -1;
	atomic_fetch_add_explicit(bytes, a.surplus, memory_order_relaxed);
	crowd_compare(file, 0, a.head + a.used - a.surplus, a.surplus);
	left = a.length - a.surplus;
	while (left) {
		ssize_t n = recv(c->fd, buffer, left < CROWD_BUFFER ? left : CROWD_BUFFER, 0);

		if (n <= 0) {
			if (n)
				crowd_explain_errno(why, "recv");
			else
				crowd_explain(why, "the answer ended early");
			set_descriptor(c, -1);
			return -1;
		}
		atomic_fetch_add_explicit(bytes, (uint64_t)n, memory_order_relaxed);
		crowd_compare(file, a.length - left, buffer, (size_t)n);
		left -= (uint64_t)n;
	}
	return a.length == file->length ? 0 : crowd_explain(why, "a file has another length");
}

static int ask_http(void *client, const struct crowd_file *file, char *why)
{
	struct answer a;

	return request(client, "HEAD", file->name, &a, why);
}

static int find_http(void *client, struct crowd_file *file, char *why)
{
	struct answer a;

	if (request(client, "HEAD", file->name, &a, why) < 0)
		return -1;
	file->length = a.length;
	return 0;
}

static void interrupt_http(void *client)
{
	struct client *c = client;

	if (c->fd >= 0)
		shutdown(c->fd, SHUT_RDWR);
}

const struct crowd_way crowd_http = {.name = "HTTP",
				     .client_size = sizeof(struct client),
				     .open = open_http,
				     .find = find_http,
				     .fetch = fetch_http,
				     .ask = ask_http,
				     .interrupt = interrupt_http,
				     .close = close_http};
