/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that answers with what it was sent, and a client whose packets go by way of a relay. */
#ifndef TESTS_RX_SECURITY_WORLD_H
#define TESTS_RX_SECURITY_WORLD_H

#include <stdatomic.h>

#include "kinds.h"
#include "relay.h"
#include "tests/asserts.h"

#define SERVICE 104

struct world {
	const struct kind *kind;
	rxw_security *server_class, *client_class;
	rxw_engine *engine;
	rxw_endpoint *server, *client;
	struct sockaddr_in address; /* the server's */
	struct relay relay;
	_Atomic(unsigned) served; /* calls that a handler has seen */
};

void world_open(struct world *w, const struct kind *kind);
void world_close(struct world *w);
/* Close the server's endpoint and open another at the same port, which remembers nothing. */
void world_restart(struct world *w);
rxw_connection *world_connect(struct world *w);
/*
 * A call that sends `size` bytes and wants them back. Its code; *same: that all came back as they
 * were sent.
 */
int32_t world_call(rxw_connection *connection, size_t size, bool *same);
/* The same where nothing may go wrong. */
void world_good(struct world *w, rxw_connection *connection, size_t size);
/* Packets that did not verify, at the server or at the client. */
uint64_t world_refused(struct world *w, bool at_server);

#endif
