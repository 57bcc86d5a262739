/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of connections and calls: creation, removal, failure. No lock held unless stated. */
#ifndef RXW_ENGINE_LIFECYCLE_H
#define RXW_ENGINE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct rxw_call;
struct rxw_connection;
struct rxw_endpoint;
struct rxw_path;
struct rxw_security;

/* A connection with one reference, in no table. NULL: *error says why. */
struct rxw_connection *rxw_conn_create(struct rxw_endpoint *ep, const struct rxw_path *path,
				       uint32_t epoch, uint32_t cid, uint16_t service,
				       struct rxw_security *security, bool client, unsigned home,
				       int *error);
/* rxw_connection_create() without the checks of its arguments. A local side of the path is that of all its packets. */
int rxw_conn_open(struct rxw_endpoint *endpoint, const struct rxw_path *path, uint16_t service_id,
		  struct rxw_security *security, struct rxw_connection **connection);
/* Can the endpoint's sockets send to addresses of this family? */
bool rxw_takes_family(const struct rxw_endpoint *ep, sa_family_t family);
/* Public functions of connections and calls: an address of the connection's path. */
int rxw_conn_address(const struct rxw_connection *connection, bool local,
		     struct sockaddr_storage *address, socklen_t *address_len);
/* May a connection have this dead time? 0: it stays as it is. */
bool rxw_timeouts_valid(unsigned dead_ms);
/* Remove the connection from its table and release its channels' calls. */
void rxw_conn_remove(struct rxw_connection *c);
/*
 * If the connection has failed or was removed, and no object of its calls exists: end the
 * application's data, and drop the service. Once. Not for a client's that is still in use.
 */
void rxw_conn_settle(struct rxw_connection *c);
/*
 * The connection fails with `code`, and the peer is told. Returns the error that it had before, or
 * 0.
 */
int32_t rxw_conn_fail(struct rxw_connection *c, int32_t code);
/* Drop a handle. */
void rxw_conn_drop(struct rxw_connection *c);
/* After a call has ended: remove a client connection that the application has released. */
void rxw_conn_release_idle(struct rxw_connection *c);
/* A call with one reference, or NULL. */
struct rxw_call *rxw_call_create(struct rxw_connection *c, unsigned flags);
/* The application ends the call, or it lacks memory: the peer is sent an ABORT. */
void rxw_call_fail(struct rxw_call *call, int32_t code);
/* Connection's lock held, or no other thread knows it: it counts as one of a validated address. */
void rxw_count_validated(struct rxw_connection *c);
/* For struct rxw_upcalls. */
void rxw_conn_free(struct rxw_connection *c);
void rxw_call_free(struct rxw_call *call);

#endif
