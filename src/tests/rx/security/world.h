/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that returns the bytes it was sent, and a client whose packets go through a relay. */
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
	_Atomic(unsigned) served; /* calls that reached a handler */
	_Atomic(bool) hold;	  /* handlers wait before they reply */
	_Atomic(unsigned) moves_logged;
	int steer;
};

void world_open(struct world *w, const struct kind *kind);
struct world_options {
	unsigned listeners, dead_ms; /* 0: 1, and a minute */
	int steer;		     /* see constants.h */
};
void world_open_with(struct world *w, const struct kind *kind, const struct world_options *o);
void world_close(struct world *w);
/* Closes the server's endpoint and opens another at the same port, without its state. */
void world_restart(struct world *w);
rxw_connection *world_connect(struct world *w);
/* The same through a relay of the caller's. */
rxw_connection *world_connect_by(struct world *w, const struct relay *relay);
/*
 * A call that sends `size` bytes and expects them back. Returns its code; *same: all came back as
 * sent.
 */
int32_t world_call(rxw_connection *connection, size_t size, bool *same);
/* The same; must succeed. */
void world_good(struct world *w, rxw_connection *connection, size_t size);
/* Packets that did not verify, at the server or at the client. */
uint64_t world_refused(struct world *w, bool at_server);

#endif
