/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of connections and calls: creation, removal, failure. No lock held unless stated. */
#ifndef RXW_ENGINE_CONN_H
#define RXW_ENGINE_CONN_H

#include <stdbool.h>
#include <stdint.h>

struct rxw_call;
struct rxw_connection;
struct rxw_endpoint;
struct rxw_path;
struct rxw_security;

/* A connection with one reference that is in no table. NULL: *error says why. */
struct rxw_connection *rxw_conn_create(struct rxw_endpoint *ep, const struct rxw_path *path,
				       uint32_t epoch, uint32_t cid, uint16_t service,
				       struct rxw_security *security, bool client, unsigned home,
				       int *error);
/* Take it out of its table and release its channels' calls. */
void rxw_conn_remove(struct rxw_connection *c);
/* After a call has ended: remove a client connection that the application has released. */
void rxw_conn_release_idle(struct rxw_connection *c);
/* A call with one reference, or NULL. */
struct rxw_call *rxw_call_create(struct rxw_connection *c, unsigned flags);
/* The call fails here, and the peer is told. */
void rxw_call_fail(struct rxw_call *call, int32_t code);
/*
 * Connection's lock held: the call is active, and may advertise its share of the sockets' receive buffers;
 * or is no longer.
 */
void rxw_call_live(struct rxw_call *call);
void rxw_call_unlive(struct rxw_call *call);
/* Connection's lock held, or nobody else knows it: it counts among those of validated addresses; or no longer. */
void rxw_count_validated(struct rxw_connection *c);
void rxw_uncount_validated(struct rxw_connection *c);
/* For struct rxw_upcalls. */
void rxw_conn_free(struct rxw_connection *c);
void rxw_call_free(struct rxw_call *call);

#endif
