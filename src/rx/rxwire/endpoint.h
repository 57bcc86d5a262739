/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints and client connections. See rxw_endpoint_create(3). */
#ifndef RXWIRE_ENDPOINT_H
#define RXWIRE_ENDPOINT_H

#include <rxwire/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_endpoint_options {
	size_t size;			/* sizeof(struct rxw_endpoint_options) */
	const struct sockaddr *address; /* to bind; NULL = any IPv4 address, free port */
	socklen_t address_len;
	const struct rxw_config *config; /* copied; NULL = that of the engine */
	/* nonzero: main port of a server; listeners auto = processors, at most 8 */
	int server;
	const char *version_text; /* answer to VERSION, at most 64 bytes; NULL = "rxwire" */
	/* nonzero: receive nothing before rxw_endpoint_start(), so that services can be added */
	int paused;
	/*
	 * Bound UDP sockets to use instead of `address`, for example from systemd: all of one
	 * address and port, with SO_REUSEPORT if there are several; an IPv6 wildcard with
	 * IPV6_V6ONLY. Each gets a thread, and `listeners` is ignored. The endpoint uses
	 * duplicates; the caller may close its own descriptors afterwards.
	 */
	const int *sockets;
	size_t socket_count; /* at most 64; 0 = none */
};

/*
 * Bind a port, start the threads and attach the endpoint to the engine. `options` may be NULL: a
 * client on any free IPv4 port. The IPv6 wildcard address accepts IPv6 only. Calls to services
 * that have not been added are refused. The caller owns the endpoint. Errors: -RXW_EADDRINUSE,
 * -RXW_ESYS (errno), -RXW_ENOMEM; -RXW_EINVAL, also if a socket of `sockets` is not a bound UDP
 * socket or differs from the first in its address. Any thread.
 */
RXW_MUST_USE
int rxw_endpoint_create(rxw_engine *engine, const struct rxw_endpoint_options *options,
			rxw_endpoint **endpoint);

/*
 * Start to receive on an endpoint that was created paused. Packets that arrived earlier have
 * waited in the socket buffer. -RXW_ESTATE if it is running already; -RXW_ESYS (errno) if a
 * thread cannot be created. Any thread.
 */
RXW_MUST_USE int rxw_endpoint_start(rxw_endpoint *endpoint);

/* The address and port to which the endpoint is bound. -RXW_EINVAL. Any thread. */
int rxw_endpoint_address(const rxw_endpoint *endpoint, struct sockaddr_storage *address,
			 socklen_t *address_len);

/*
 * Drain the endpoint: refuses new calls (-100), waits until all calls have ended and replies are
 * acknowledged, and after limit_ms milliseconds aborts the remaining calls (incoming -100,
 * outgoing -6). Handlers have another 250 ms to return. Returns 0, or -RXW_ETIMEDOUT if calls
 * were aborted or a handler has not returned; data of such a handler must exist until
 * rxw_endpoint_destroy() returns. -RXW_EDEADLK on a thread of the library; -RXW_ESTATE if called
 * before. Once, any other thread.
 */
int rxw_endpoint_stop(rxw_endpoint *endpoint, unsigned limit_ms);

/*
 * Stop the endpoint with a limit of 0 unless it has been stopped, wait for running handlers, end
 * the threads and free the endpoint. -RXW_ESTATE: the application still holds connections or
 * calls. -RXW_EDEADLK as above. NULL is ignored.
 */
int rxw_endpoint_destroy(rxw_endpoint *endpoint);

/*
 * The client side of a connection: up to four calls at a time to one service (rx-protocol 2.1).
 * Sends nothing. `security` NULL is the null class; the connection takes a reference. The caller
 * owns the connection; several threads may use it. Errors: -RXW_EINVAL (for example, the address
 * family differs from that of the endpoint), -RXW_ENOMEM, -RXW_ELIMIT, -RXW_ESTOPPED. Any thread.
 */
RXW_MUST_USE
int rxw_connection_create(rxw_endpoint *endpoint, const struct sockaddr *peer, socklen_t peer_len,
			  uint16_t service_id, rxw_security *security, rxw_connection **connection);

/* Release a connection. Calls in progress continue; no new call may begin. Any thread. */
void rxw_connection_release(rxw_connection *connection);

/*
 * Abort all calls of a connection, and the waits for one of its channels, with `code`; 0 is
 * replaced by -6. Functions that wait return -RXW_ECALL, rxw_call_begin() included; generated
 * stubs return the code. The connection remains usable. Never waits. -RXW_EINVAL. Any thread,
 * until the connection is released.
 */
int rxw_connection_abort(rxw_connection *connection, int32_t code);

/*
 * Set the timeouts of later calls in milliseconds; 0 leaves one unchanged (rx-protocol 6.1).
 * dead_ms must be at least 1000. hard_ms counts from rxw_call_begin(), including the wait for a
 * channel. -RXW_EINVAL. Any thread.
 */
int rxw_connection_set_timeouts(rxw_connection *connection, unsigned dead_ms, unsigned idle_ms,
				unsigned hard_ms);

#ifdef __cplusplus
}
#endif
#endif
