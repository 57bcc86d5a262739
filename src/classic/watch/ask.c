/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to servers over a socket of the program, as rxdebug asks them. */
#include "ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/random.h>

#include <rx/rx_packet.h>

#include "common/clock.h"

#define EPOCH	 999u /* of packets outside connections */
#define TRIES	 5
#define PAUSE_MS 1000
#define ROOM	 2048

/* Offsets in the header, and its flags. */
enum {
	AT_EPOCH = 0,
	AT_CALL = 8,
	AT_TYPE = 20,
	AT_FLAGS = 21
};
#define CLIENT_INITIATED 1
#define LAST_PACKET	 4

static void store_word(unsigned char *at, uint32_t word)
{
	word = htonl(word);
	memcpy(at, &word, sizeof(word));
}

static bool equals_word(const unsigned char *at, uint32_t word)
{
	word = htonl(word);
	return memcmp(at, &word, sizeof(word)) == 0;
}

static bool is_from_server(const struct sockaddr_in *from, const struct watch_server *server)
{
	return from->sin_family == AF_INET && from->sin_addr.s_addr == server->host &&
	       from->sin_port == server->port;
}

static bool is_answer(const unsigned char *packet, unsigned char type, uint32_t number)
{
	return packet[AT_TYPE] == type && !(packet[AT_FLAGS] & CLIENT_INITIATED) &&
	       equals_word(packet + AT_EPOCH, EPOCH) && equals_word(packet + AT_CALL, number);
}

static bool is_unusable(int error)
{
	return error == EBADF || error == ENOTSOCK;
}

/* The size of the answer; 0: it did not come in time; -1: the socket cannot be used. */
static ssize_t await_watch_answer(const struct watch_server *server, unsigned char type,
				  uint32_t number, unsigned char packet[ROOM], int pause_ms)
{
	uint64_t end = monotonic_ns() + (uint64_t)pause_ms * NS_PER_MS, now;

	while ((now = monotonic_ns()) < end) {
		struct pollfd poller = {.fd = server->socket, .events = POLLIN};
		struct sockaddr_in from = {0};
		socklen_t from_size = sizeof(from);
		ssize_t n;

		if (poll(&poller, 1, (int)((end - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return -1;
		n = recvfrom(server->socket, packet, ROOM, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &from_size);
		if (n >= RX_HEADER_SIZE && is_from_server(&from, server) &&
		    is_answer(packet, type, number))
			return n;
		if (n < 0 && is_unusable(errno))
			return -1;
	}
	return 0;
}

int classic_ask(const struct watch_server *server, unsigned char type, const void *question,
		size_t size, void *answer, size_t room)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = server->port, .sin_addr.s_addr = server->host};
	unsigned char out[RX_HEADER_SIZE + 8] = {0}, packet[ROOM];
	uint32_t number;

	/* A host that does not see the question cannot guess the number. */
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -1;
	store_word(out + AT_EPOCH, EPOCH);
	store_word(out + AT_CALL, number);
	out[AT_TYPE] = type;
	out[AT_FLAGS] = CLIENT_INITIATED | LAST_PACKET;
	memcpy(out + RX_HEADER_SIZE, question, size);
	for (int try = 0; try < TRIES; try++) {
		ssize_t n;

		/* Other failures may be temporary, for example a lost route. */
		if (sendto(server->socket, out, RX_HEADER_SIZE + size, 0,
			   (const struct sockaddr *)&to, sizeof(to)) < 0 &&
		    is_unusable(errno))
			return -1;
		n = await_watch_answer(server, type, number, packet, PAUSE_MS << try);
		if (n < 0)
			return -1;
		if (n > 0) {
			size_t got = (size_t)n - RX_HEADER_SIZE;

			if (got > room)
				got = room;
			memcpy(answer, packet + RX_HEADER_SIZE, got);
			return (int)got;
		}
	}
	errno = ETIMEDOUT;
	return -1;
}
