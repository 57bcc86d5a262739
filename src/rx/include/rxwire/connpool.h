/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools of client connections: more than four calls at a time. See rxw_connpool(3). */
#ifndef RXWIRE_CONNPOOL_H
#define RXWIRE_CONNPOOL_H

#include <rxwire/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A handle for up to `most` connections (1 to 65,536) to one service, so for four times as many
 * calls. Arguments as of rxw_connection_create(); connections are created when calls need them, and
 * replaced when they have failed. The caller owns the pool until rxw_connpool_release(). Errors:
 * -RXW_EINVAL, -RXW_ENOMEM, -RXW_ESTOPPED. Any thread.
 */
int rxw_connpool_create(rxw_endpoint *endpoint, const struct sockaddr *peer, socklen_t peer_len,
			uint16_t service_id, rxw_security *security, unsigned most,
			rxw_connpool **pool);
/*
 * Release the connections; NULL is permitted. Calls in progress go on. No thread may be in
 * another function of the pool.
 */
void rxw_connpool_release(rxw_connpool *pool);

/*
 * Like rxw_call_begin(), on a connection with a free channel. If all connections are busy, waits
 * for a channel of any; a non-blocking call gets -RXW_EAGAIN, and its queue reports
 * RXW_EVENT_CHANNEL with this pool. Errors also as rxw_connection_create(). Any thread.
 */
int rxw_connpool_begin(rxw_connpool *pool, const struct rxw_call_options *options, rxw_call **call);

/* As rxw_connection_abort() and rxw_connection_set_timeouts(), for all connections. Any thread. */
int rxw_connpool_abort(rxw_connpool *pool, rxw_code code);
int rxw_connpool_set_timeouts(rxw_connpool *pool, unsigned dead_ms, unsigned idle_ms,
			      unsigned hard_ms);

/*
 * Send from this address of the machine, and by this interface (its index; 0: that of the route); the port is that of the endpoint. So
 * a client with several addresses has several paths to one server, each with its own measurements, by one socket. Replies are received by any
 * interface. For connections that are created later: before the first rxw_connpool_begin(). No effect if the endpoint is bound to one
 * address. Calls fail if the machine does not have the address. -RXW_EINVAL: also for an address of another family than
 * that of the peer. Any thread, while no other function of the pool runs.
 */
int rxw_connpool_set_local(rxw_connpool *pool, const struct sockaddr *local, socklen_t local_len,
			   unsigned interface);

#ifdef __cplusplus
}
#endif
#endif
