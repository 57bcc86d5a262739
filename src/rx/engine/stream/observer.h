/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal functions for generated stubs, beyond the public headers. */
#ifndef RXW_API_OBSERVER_H
#define RXW_API_OBSERVER_H

#include <rxwire/rpc.h>

struct rxw_observed {
	const struct rxw_rpc_observer *observer;
	uint64_t started_ns;	 /* monotonic: when it began, or its first packet arrived */
	uint64_t served_ns;	 /* of rxw_call_note_served(); 0: never */
	uint64_t written, taken; /* bytes that the application wrote and read */
};

/*
 * Returns false, and does nothing else, if the endpoint has no observer. For the thread that reads
 * and writes the call.
 */
bool rxw_call_observed(const rxw_call *call, struct rxw_observed *observed);

/*
 * Like rxw_call_begin(). For -RXW_ECALL *code is the error of the connection, or the code of
 * rxw_connection_abort().
 */
int rxw_call_try_begin(rxw_connection *connection, const struct rxw_call_options *options,
		       rxw_call **call, int32_t *code);

/* The same on a pool: *code is that of rxw_connpool_abort(). */
int rxw_connpool_try_begin(rxw_connpool *pool, const struct rxw_call_options *options,
			   rxw_call **call, int32_t *code);

/*
 * Like rxw_call_begin(), but does not wait for a channel, and no event tells of one: -RXW_EAGAIN.
 */
int rxw_call_begin_now(rxw_connection *connection, const struct rxw_call_options *options,
		       rxw_call **call);

/* The application holds the server's call; for the thread of its handler. */
bool rxw_call_is_deferred(const rxw_call *call);
/* The connection or pool is that of a process which has forked this one. */
bool rxw_connection_is_inherited(const rxw_connection *connection);
bool rxw_connpool_is_inherited(const rxw_connpool *pool);
/* ns: the hard timeout of calls that begin now; 0: none. */
uint64_t rxw_connection_hard_timeout(rxw_connection *connection);
uint64_t rxw_connpool_hard_timeout(rxw_connpool *pool);
/* A stub begins to serve the call; for the thread of its handler. */
void rxw_call_note_served(rxw_call *call, uint64_t now);
/*
 * The send queue accepts all further bytes of a deferred call, even if it is full: the results are
 * in memory already. For the thread that writes the call.
 */
void rxw_call_unlimit(rxw_call *call);
/*
 * Like rxw_call_write(). If the stub writes `more` at once, or ends a reply, full packets are held back
 * until the next write or flush or the end of the stream: they leave together.
 */
ssize_t rxw_call_write_part(rxw_call *call, const void *data, size_t length, bool more);

/* Is this thread in a callback or a short handler, and must not block? */
bool rxw_must_not_wait(void);

#endif
