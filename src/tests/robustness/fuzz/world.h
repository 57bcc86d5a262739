/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints without sockets, threads or real time: the I/O layer is a queue of datagrams, and the
 * test advances the clock. One thread drives everything, so a run can be repeated.
 */
#ifndef RXW_TESTS_FUZZ_WORLD_H
#define RXW_TESTS_FUZZ_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "base/addr.h"
#include "tests/support/constants.h"

/* A sent datagram, or a burst to be received. Linked in order. */
struct packet {
	struct packet *next;
	struct rxw_addr from, to;
	uint32_t length, segment;
	uint8_t bytes[];
};

struct world {
	rxw_engine *engine;
	/* sent and not yet taken, oldest first: the network */
	struct packet *sent, **sent_tail;
	unsigned sent_count;
	uint64_t sent_total; /* datagrams in total */
	/* called with each sent datagram, before it is queued; may be NULL */
	void (*look)(struct world *w, const struct packet *p);
	struct rxw_constants constants; /* of endpoints; world_begin() sets them */
	unsigned refuse; /* number of sends that will fail with ... */
	int refuse_with; /* ... this errno */
};

/* From here to world_end() the clock, sleeps, random numbers and threads are simulated. */
void world_begin(struct world *w, const struct rxw_config *config);
/*
 * Call after all endpoints are destroyed. Frees the packets and the engine, and checks for leaks.
 */
void world_end(struct world *w);

/* An endpoint without a listener thread: world_poll() replaces it. `address` "10.0.0.1:7000". */
rxw_endpoint *world_endpoint(struct world *w, uint32_t host, uint16_t port, bool server);
void world_destroy(struct world *w, rxw_endpoint *ep);
void world_poll(rxw_endpoint *ep); /* until its socket and its deferred work are done */

/* Whether this address was ever validated there. */
bool world_validated(rxw_endpoint *ep, const struct rxw_addr *a);

struct rxw_addr world_addr(uint32_t host, uint16_t port);
/* `segment` 0: one datagram. Copied to the socket's queue. False: no endpoint has that address. */
bool world_deliver(const struct rxw_addr *from, const struct rxw_addr *to, const uint8_t *bytes,
		   uint32_t length, uint32_t segment);
/* Removes and returns the oldest packet of the network, or NULL. free() it. */
struct packet *world_take(struct world *w);
/* An ICMP report to the owner of `to`, about a packet sent to `about`. */
void world_report(const struct rxw_addr *to, const struct rxw_addr *about, int error, uint32_t mtu);

uint64_t world_now(void);
void world_pass(uint64_t ns);

/* Output must be well formed for all input. */
void world_check_packet(const uint8_t *bytes, size_t length);

#endif
