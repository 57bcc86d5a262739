/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server with rxgk and a client on loopback; the server returns the request after the client's
 * identity.
 */
#ifndef RXW_TESTS_RXGK_LIVE_H
#define RXW_TESTS_RXGK_LIVE_H

#include "tests/rx/base/testing.h"

#include <rxwire/rxwire.h>

#define LIVE_SERVICE 200
#define LIVE_WHO     128 /* bytes of a reply before the request's: "LEVEL LOCAL NAME" */

struct live {
	rxw_engine *engine;
	rxw_endpoint *server, *client;
	struct sockaddr_storage address;
	socklen_t address_len;
};

/*
 * Starts a server that accepts connections of these classes for LIVE_SERVICE. `more` (may be NULL)
 * adds services before it starts.
 */
void live_begin(struct live *l, rxw_security *const *classes, size_t count,
		int (*more)(void *context, rxw_endpoint *server), void *context);
void live_end(struct live *l);
rxw_connection *live_connect(struct live *l, uint16_t service, rxw_security *security);
/*
 * One call with `length` bytes, which are returned; `who` gets our identity as the server sees it.
 * Returns its code. Any thread.
 */
int32_t live_call(rxw_connection *connection, size_t length, char who[LIVE_WHO]);

#endif
