/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of client connections. */
#include "engine/conn/conn.h"
#include "engine/dispatch/dispatch.h"
#include "engine/objects.h"
#include "engine/lock.h"

#define CID_TRIES 64

/* Inserts it into the table, unless a live connection there has the same id from an older epoch. */
static int insert(struct rxw_connection *c)
{
	struct rxw_shard *t = &c->ep->shard[c->table];
	int r;

	rxw_table_lock(t);
	if (rxw_conntable_has_cid(&t->table, c->p.cid)) {
		r = -RXW_EAGAIN;
	} else {
		r = rxw_conntable_insert(&t->table, &c->p);
		c->in_table = !r;
	}
	rxw_table_unlock(t);
	return r;
}

int rxw_connection_create(rxw_endpoint *endpoint, const struct sockaddr *peer, socklen_t peer_len,
			  uint16_t service_id, rxw_security *security, rxw_connection **connection)
{
	struct rxw_path path = {.ifindex = 0};
	int r = -RXW_EAGAIN;

	if (!endpoint || !connection || !service_id || !peer ||
	    !rxw_addr_set(&path.peer, peer, peer_len) ||
	    path.peer.u.sa.sa_family != endpoint->io.bound.u.sa.sa_family ||
	    !rxw_addr_port(&path.peer))
		return -RXW_EINVAL;
	*connection = NULL;
	if (atomic_load(&endpoint->stopping))
		return -RXW_ESTOPPED;
	for (unsigned i = 0; i < CID_TRIES && r == -RXW_EAGAIN; i++) {
		struct rxw_connection *c;
		uint32_t epoch, cid;
		int error = rxw_engine_name(endpoint->engine, &epoch, &cid);

		if (error)
			return error;
		c = rxw_conn_create(endpoint, &path, epoch, cid, service_id,
				    security ? security : rxw_security_null(), true,
				    (cid >> 2) % endpoint->shard_count, &error);
		if (!c)
			return error;
		rxw_conn_ref(c); /* one reference for the table, one for the application */
		r = insert(c);
		if (r) {
			rxw_conn_unref(c);
			rxw_conn_unref(c);
		} else {
			*connection = c;
		}
	}
	return r == -RXW_EAGAIN ? -RXW_ELIMIT : r;
}

void rxw_connection_release(rxw_connection *connection)
{
	if (!connection)
		return;
	rxw_conn_lock(connection);
	connection->released = true;
	rxw_conn_unlock(connection);
	rxw_conn_release_idle(connection);
	rxw_conn_unref(connection);
}

int rxw_connection_abort(rxw_connection *connection, int32_t code)
{
	struct rxw_connection *c = connection;
	struct rxw_effects a;

	if (!c)
		return -RXW_EINVAL;
	if (!code)
		code = RXW_USER_ABORT;
	rxw_effects_init(&a, rxw_home(c), false);
	rxw_conn_lock(c);
	c->aborts++;
	c->abort_code = code;
	for (unsigned i = 0; i < 4; i++)
		if (c->p.channel[i] && !rxw_call_of(c->p.channel[i])->ended)
			rxw_pcall_fail(c->p.channel[i], code, RXW_ORIGIN_LOCAL, true, &a.out);
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	pthread_cond_broadcast(&c->channel_free);
	return 0;
}

int rxw_connection_set_timeouts(rxw_connection *connection, unsigned dead_ms, unsigned idle_ms,
				unsigned hard_ms)
{
	if (!connection || (dead_ms && dead_ms < 1000))
		return -RXW_EINVAL;
	rxw_conn_lock(connection);
	if (dead_ms)
		connection->p.dead = dead_ms * RXW_MS;
	if (idle_ms)
		connection->p.idle = idle_ms * RXW_MS;
	if (hard_ms)
		connection->p.hard = hard_ms * RXW_MS;
	rxw_conn_unlock(connection);
	return 0;
}
