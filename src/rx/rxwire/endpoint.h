/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: UDP ports that calls are made from and services offered on; client connections. */
#ifndef RXWIRE_ENDPOINT_H
#define RXWIRE_ENDPOINT_H

#include <rxwire/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero, set `size`, then fill. */
struct rxw_endpoint_options {
	size_t size;                    /* sizeof(struct rxw_endpoint_options) */
	const struct sockaddr *address; /* to bind; NULL = any IPv4 address, ephemeral port */
	socklen_t address_len;
	const struct rxw_config *config;/* NULL = the engine's */
	/* nonzero: main port of a server (listeners auto = cores, max 8) */
	int server;
	const char *version_text;       /* answer to VERSION, at most 64 bytes; NULL = "rxwire" */
	/*
	 * nonzero: nothing is received before rxw_endpoint_start(), so that services can be added
	 */
	int paused;
};

/*
 * Bind a port and attach it to the engine. `options` may be NULL (a client on any IPv4 port). For
 * an IPv6 any-address the socket takes IPv6 only. Services must be added before packets for them
 * are served; packets that come earlier are refused as unknown service. Errors: -RXW_EADDRINUSE,
 * -RXW_ESYS (errno), -RXW_EINVAL, -RXW_ENOMEM.
 */
int rxw_endpoint_create(rxw_engine *engine, const struct rxw_endpoint_options *options,
			rxw_endpoint **endpoint);

/*
 * Begin to receive on an endpoint that was created paused; what came meanwhile waited in the
 * kernel. -RXW_ESTATE if it runs already, -RXW_ESYS (errno) if a thread cannot be made.
 */
int rxw_endpoint_start(rxw_endpoint *endpoint);

/* The address and port that the endpoint is bound to. */
int rxw_endpoint_address(const rxw_endpoint *endpoint, struct sockaddr_storage *address,
			 socklen_t *address_len);

/*
 * Graceful stop: new calls are refused (-100), running ones, served or made, go on until `limit_ms`
 * passed, replies are sent until acknowledged, then what is left is aborted (-100 what is served,
 * -6 what was made). Returns 0 if all ended by themselves, -RXW_ETIMEDOUT if some were aborted, or
 * if a handler has not returned 250 ms after the limit: it runs on, and what it uses must stay until
 * rxw_endpoint_destroy() returned. -RXW_EDEADLK from a handler or callback. May be called once, from
 * any thread but a library one.
 */
int rxw_endpoint_stop(rxw_endpoint *endpoint, unsigned limit_ms);

/*
 * Destroy: stops with a limit of 0 if that was not done, and waits for handlers that still run;
 * connections and calls of the endpoint that the application still holds must have been ended before
 * (-RXW_ESTATE). None of its threads is left after that. -RXW_EDEADLK as above.
 */
int rxw_endpoint_destroy(rxw_endpoint *endpoint);

/*
 * Client end of a connection: up to four calls at a time to one service. Nothing is sent.
 * `security` may be NULL for the null class. Errors: -RXW_EINVAL (address family differs from the
 * endpoint's), -RXW_ENOMEM, -RXW_ELIMIT, -RXW_ESTOPPED. Owned by the caller; any thread may use it.
 */
int rxw_connection_create(rxw_endpoint *endpoint, const struct sockaddr *peer, socklen_t peer_len,
			  uint16_t service_id, rxw_security *security, rxw_connection **connection);

/* Give the connection back. Calls in progress keep it alive until they end. */
void rxw_connection_release(rxw_connection *connection);

/*
 * Abort all calls of a client connection that have not been ended, and those that wait for one of its
 * channels, with a code (0 counts as -6): functions that wait return -RXW_ECALL, rxw_call_begin()
 * too, plain stubs the code. The connection stays usable: calls may begin afterwards. Never waits; any
 * thread that knows that the connection was not released. -RXW_EINVAL.
 */
int rxw_connection_abort(rxw_connection *connection, int32_t code);

/*
 * Override the timeouts of calls begun later on this connection; milliseconds, 0 = leave as it is.
 * hard_ms counts from rxw_call_begin(), the wait for a channel included.
 */
int rxw_connection_set_timeouts(rxw_connection *connection, unsigned dead_ms, unsigned idle_ms,
				unsigned hard_ms);

#ifdef __cplusplus
}
#endif
#endif
