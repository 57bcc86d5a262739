/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of clients and servers. See rxw_connection_create(3). */
#ifndef RXWIRE_CONNECTION_H
#define RXWIRE_CONNECTION_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The client side of a connection: up to four calls at a time to one service (rx-protocol 2.1).
 * Sends nothing. `security` NULL is the null class; the connection takes a reference. The caller
 * owns one reference; several threads may use the connection. Errors: -RXW_EINVAL (for example, the
 * endpoint does not take the address family), -RXW_ENOMEM, -RXW_ELIMIT, -RXW_ESTOPPED. Any
 * thread.
 */
RXW_MUST_USE
int rxw_connection_create(rxw_endpoint *endpoint, const struct sockaddr *peer, socklen_t peer_len,
			  uint16_t service_id, rxw_security *security, rxw_connection **connection);

/*
 * The connection of a call, of either side. It is the same object for all calls of one connection.
 * No reference is added: it is valid as long as the call. NULL for NULL. Any thread.
 */
rxw_connection *rxw_call_connection(const rxw_call *call);

/*
 * Add a reference of the application, and drop one. A server forgets connections that are idle for
 * 10 minutes, or earlier if there are more than the tunable connections-max; a reference does not
 * prevent that. It keeps the object, about 2 KiB with its identity, until it is dropped. NULL is
 * ignored. Any thread.
 *
 * Client: with the last reference the connection is released. Calls in progress continue; no new
 * call may begin.
 */
rxw_connection *rxw_connection_ref(rxw_connection *connection);
void rxw_connection_release(rxw_connection *connection);

/*
 * Data of the application. The library calls `destructor` (may be NULL) with it once: when it
 * forgets the connection, within 15 seconds after the connection has failed, or when the endpoint
 * is destroyed; in each case after all calls of the connection. It does so at once, before the
 * function returns, when other data replaces it, unless the pointer is the same.
 *
 * The destructor runs without locks of the library, on any of its threads, or on a thread of the
 * application in a function that ends a call, releases a connection, removes a service or destroys
 * an endpoint. It must not block. It may release references, also of this connection.
 *
 * -RXW_EINVAL; -RXW_ESTATE: the connection was forgotten or has failed without calls, and the
 * caller keeps its data. rxw_connection_data() returns NULL if there is none. Any thread; calls of
 * one connection may run at the same time. Outside of handlers of its calls the data may be
 * destroyed at any time.
 */
int rxw_connection_set_data(rxw_connection *connection, void *data, void (*destructor)(void *data));
void *rxw_connection_data(rxw_connection *connection);

/*
 * Epoch and connection id as on the wire, with channel bits 0 (rx-protocol 1.6, 1.7); each pointer
 * may be NULL. Epoch, id and address together name a connection of a server. -RXW_EINVAL. Any
 * thread.
 */
int rxw_connection_id(const rxw_connection *connection, uint32_t *epoch, uint32_t *cid);
/* The address of the other side. -RXW_EINVAL. Any thread. */
int rxw_connection_peer(const rxw_connection *connection, struct sockaddr_storage *address,
			socklen_t *address_len);
/* The index of the security class, 0 to 255; -RXW_EINVAL. Any thread. */
int rxw_connection_security_index(const rxw_connection *connection);

/*
 * The code with which the whole connection has failed, 0 if it has not. The code of a call that was
 * aborted is not one of its connection. A connection that a server has forgotten has
 * RXW_CALL_DEAD. `origin` may be NULL. RXW_INVALID_OPERATION for NULL. Any thread.
 */
rxw_code rxw_connection_error(const rxw_connection *connection, enum rxw_origin *origin);

/*
 * Server: the connection fails with `code`; 0 is replaced by -6. Its calls are aborted, the client
 * is told by an ABORT of the connection, and its later packets are answered with that. Handlers
 * that run must still return. The destructor of its data runs within 15 seconds. Never waits.
 * -RXW_EINVAL; -RXW_ESTATE: it has failed, or was forgotten, or it is a client's. Any thread.
 */
int rxw_connection_close(rxw_connection *connection, rxw_code code);

/*
 * Abort all calls of a connection, and the waits for one of its channels, with `code`; 0 is
 * replaced by -6. Functions that wait return -RXW_ECALL, rxw_call_begin() included; generated
 * stubs return the code. The connection remains usable. Never waits. -RXW_EINVAL; -RXW_ESTATE: a
 * server has forgotten it. Any thread, at a client until the connection is released.
 */
int rxw_connection_abort(rxw_connection *connection, rxw_code code);

/*
 * Set the timeouts of later calls in milliseconds (rx-protocol 6.1). 0 leaves one unchanged;
 * RXW_TIMEOUT_OFF ends idle_ms or hard_ms. dead_ms must be at least 1000 and cannot be off, since
 * nothing else ends calls to a host that is gone. hard_ms counts from rxw_call_begin(), including
 * the wait for a channel. -RXW_EINVAL. Any thread.
 */
int rxw_connection_set_timeouts(rxw_connection *connection, unsigned dead_ms, unsigned idle_ms,
				unsigned hard_ms);

#ifdef __cplusplus
}
#endif
#endif
