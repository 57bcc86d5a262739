/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints. See rxw_endpoint_create(3). */
#ifndef RXWIRE_ENDPOINT_H
#define RXWIRE_ENDPOINT_H

#include <rxwire/config.h>
#include <rxwire/connection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_endpoint_options {
	size_t size;			/* sizeof(struct rxw_endpoint_options) */
	const struct sockaddr *address; /* to bind; NULL = any IPv4 address, free port */
	socklen_t address_len;
	const struct rxw_config *config; /* copied; NULL = that of the engine */
	/* nonzero: main port of a server; listeners auto = processors it may use, at most 8 */
	int server;
	const char *version_text; /* answer to VERSION, at most 64 bytes; NULL = "rxwire" */
	/* nonzero: receive nothing before rxw_endpoint_start(), so that services can be added */
	int paused;
	/*
	 * Bound UDP sockets to use instead of `address`, for example from systemd: all of one
	 * address and port, with SO_REUSEPORT if there are several. IPv6 wildcard sockets without
	 * IPV6_V6ONLY accept IPv4, as with `dual_stack`. Each gets a thread unless `listeners` is
	 * shared; otherwise that is ignored. The endpoint uses duplicates; the caller may close its
	 * own descriptors afterwards.
	 */
	const int *sockets;
	size_t socket_count; /* at most 64; 0 = none */
	/*
	 * nonzero: `address` is the IPv6 wildcard, and accepts IPv4 as well. Peers with IPv4 have
	 * plain IPv4 addresses, here and in logs, and are counted as such.
	 */
	int dual_stack;
};

/*
 * Bind a port, start the threads and attach the endpoint to the engine. `options` may be NULL: a
 * client on any free IPv4 port. The IPv6 wildcard address accepts IPv6 only, unless `dual_stack` is
 * set. Calls to services
 * that have not been added are refused. The caller owns the endpoint. Errors: -RXW_EADDRINUSE,
 * -RXW_ESYS (errno), -RXW_ENOMEM; -RXW_EINVAL, also if `dual_stack` goes with another address, or
 * a socket of `sockets` is not a bound UDP
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
 * Change a tunable while the endpoint exists, as by rxw_config_set(). workers-max, queue, poll-us,
 * connections-max, debug-clients and log-level (of the whole engine) take effect at once; mtu, path-mtu, window, congestion, jumbo
 * and the timeouts for connections that begin later. -RXW_ESTATE: the others cannot change:
 * listeners, rcvbuf, sndbuf, gso, gro, io, peer-memory, and the others of the engine. -RXW_ENAME;
 * -RXW_EVALUE; -RXW_ENOMEM; -RXW_EINVAL. Any thread.
 */
int rxw_endpoint_set(rxw_endpoint *endpoint, const char *name, const char *value);

/*
 * Refuse new calls of clients with `code` from now on, for example RXW_RESTARTING. Calls that have
 * arrived are served, and the endpoint's own calls go on. 0: accept calls again. -RXW_ESTATE: the
 * endpoint was stopped; -RXW_EINVAL. Any thread.
 */
int rxw_endpoint_refuse(rxw_endpoint *endpoint, rxw_code code);

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
 * Leave the sockets to a successor: another process, with a paused endpoint on the same sockets
 * (`sockets` above). From now on packets of new calls are dropped without an answer, so that their
 * clients send them again. Waits until all calls have ended and replies are acknowledged, or for
 * limit_ms milliseconds (-RXW_ETIMEDOUT). Then call rxw_endpoint_destroy(), which aborts what is
 * left, and let the successor call rxw_endpoint_start(). No call fails, and none runs twice. Calls
 * that begin meanwhile are served after a retransmission. -RXW_EINVAL: no server; -RXW_EDEADLK on
 * a thread of the library; -RXW_ESTATE: called before, or stopped. Once, any other thread.
 */
int rxw_endpoint_hand_over(rxw_endpoint *endpoint, unsigned limit_ms);

/*
 * Stop the endpoint with a limit of 0 unless it has been stopped, wait for running handlers, end
 * the threads, forget all connections and free the endpoint. -RXW_ESTATE: the application still
 * holds client connections or calls, and nothing was done; or it holds references of a server's
 * connections after all destructors have run, and all but the memory is gone: release them and call
 * again. -RXW_EDEADLK as above. NULL is ignored.
 */
int rxw_endpoint_destroy(rxw_endpoint *endpoint);

#ifdef __cplusplus
}
#endif
#endif
