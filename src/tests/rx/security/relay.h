/* SPDX-License-Identifier: BSD-2-Clause */
/* A relay between a client and a server that may pass, drop, change or add datagrams. */
#ifndef TESTS_RX_SECURITY_RELAY_H
#define TESTS_RX_SECURITY_RELAY_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_ROOM 65536

/* Fields of the header (rx-protocol 1.1). */
#define AT_CALL	  8
#define AT_SEQ	  12
#define AT_TYPE	  20
#define AT_FLAGS  21
#define AT_STATUS 22
#define AT_CLASS  23
#define AT_SPARE  24
#define AT_SERVICE 26
#define HEADER	  28

enum { TYPE_DATA = 1, TYPE_ACK = 2, TYPE_CHALLENGE = 6, TYPE_RESPONSE = 7 };

struct relay;
/*
 * Called on the relay's thread for each datagram in the order of arrival: passes it on, or does
 * not.
 */
typedef void (*relay_fn)(struct relay *r, bool to_server, uint8_t *data, size_t size);

struct relay {
	int front, back, stop[2]; /* towards the client, towards the server */
	struct sockaddr_in address; /* the address that clients use */
	struct sockaddr_in client;  /* the latest sender; lock */
	pthread_mutex_t lock;
	pthread_t thread;
	_Atomic(relay_fn) filter; /* NULL: all datagrams are passed on */
	uint8_t data[RELAY_ROOM]; /* of its thread */
};

/* A relay to `server`, on its own port. */
void relay_open(struct relay *r, const struct sockaddr_in *server);
void relay_close(struct relay *r);
/* Sends a datagram as if it came from the other side. Any thread. */
void relay_pass(struct relay *r, bool to_server, const uint8_t *data, size_t size);

/*
 * The server sees packets from another port from now on, and what it sends to the old one is lost.
 * On the relay's thread.
 */
void relay_rebind(struct relay *r);

static inline unsigned type_of(const uint8_t *data)
{
	return data[AT_TYPE];
}

#endif
