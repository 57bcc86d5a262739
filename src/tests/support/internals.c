/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the objects of the engine for tests of other layers. */
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "internals.h"
#include "io/io_sock.h"
#include "proto/peer/auth.h"
#include "tests/support/test_class.h"

const size_t internals_connection_size = sizeof(struct rxw_connection);
const size_t internals_call_size = sizeof(struct rxw_call);
const size_t internals_peer_size = sizeof(struct rxw_peer);

struct internals_header internals_header(rxw_connection *connection)
{
	struct internals_header h;

	rxw_conn_lock(connection);
	h = (struct internals_header){.epoch = connection->p.epoch,
				      .cid = connection->p.cid,
				      .call = connection->p.number[0],
				      .security = connection->p.security_index};
	rxw_conn_unlock(connection);
	return h;
}

unsigned internals_channel_waiters(rxw_connection *connection)
{
	unsigned n;

	rxw_conn_lock(connection);
	n = connection->channel_waiters;
	rxw_conn_unlock(connection);
	return n;
}

unsigned internals_queue_waiters(rxw_queue *queue)
{
	unsigned n;

	pthread_mutex_lock(&queue->lock);
	n = queue->waiting;
	pthread_mutex_unlock(&queue->lock);
	return n;
}

uint64_t internals_hard_limit(const rxw_call *call)
{
	return call->p.timer.hard;
}

unsigned internals_calls_taken(const rxw_endpoint *endpoint)
{
	return atomic_load(&endpoint->usage.calls_taken);
}

void internals_lock(rxw_connection *connection)
{
	rxw_conn_lock(connection);
}

void internals_unlock(rxw_connection *connection)
{
	rxw_conn_unlock(connection);
}

bool internals_stopping(const rxw_endpoint *endpoint)
{
	return atomic_load(&endpoint->life.stopping);
}

int internals_socket(const rxw_endpoint *endpoint)
{
	return endpoint->shard[0].sock->fd;
}

rxw_security *internals_test_class(void)
{
	return &rxw_security_test_class;
}

uint8_t internals_class_index(const rxw_security *security)
{
	return security->class.index;
}
