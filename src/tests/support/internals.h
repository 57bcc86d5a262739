/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of the engine's objects that no public function returns, for tests of other layers. Such
 * tests include no header of the engine.
 */
#ifndef TESTS_SUPPORT_INTERNALS_H
#define TESTS_SUPPORT_INTERNALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

/* Memory of one object, without what it points to. */
extern const size_t internals_connection_size, internals_call_size, internals_peer_size;

/* Header fields of a connection's packets; `call` is the latest call of the first channel. */
struct internals_header {
	uint32_t epoch, cid, call;
	uint8_t security;
};
struct internals_header internals_header(rxw_connection *connection);

/* Callers that wait for a channel. */
unsigned internals_channel_waiters(rxw_connection *connection);
/* Threads that wait at a queue. */
unsigned internals_queue_waiters(rxw_queue *queue);
/* Most nanoseconds that a call may last; 0: no limit. */
uint64_t internals_hard_limit(const rxw_call *call);
/* Does it accept no new calls any more? */
bool internals_stopping(const rxw_endpoint *endpoint);
/* Calls that threads have taken out of queues and not reported yet. */
unsigned internals_calls_taken(const rxw_endpoint *endpoint);
/* The lock of a connection, for a short time. */
void internals_lock(rxw_connection *connection);
void internals_unlock(rxw_connection *connection);
/* The descriptor of an endpoint's first socket. */
int internals_socket(const rxw_endpoint *endpoint);

/* The class "test", which changes all bytes; static. */
rxw_security *internals_test_class(void);
uint8_t internals_class_index(const rxw_security *security);

#endif
