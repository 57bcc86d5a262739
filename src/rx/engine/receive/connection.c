/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of connections. */
#include <string.h>

#include <rxwire/afs.h>

#include "engine/receive/lifecycle.h"
#include "engine/objects.h"
#include "engine/lock.h"

#define CID_TRIES 64

int rxw_engine_draw_epoch(struct rxw_engine *e)
{
	if (rxw_random(&e->epoch, sizeof(e->epoch)) || rxw_random(e->order, sizeof(e->order)))
		return -RXW_ESYS;
	/* The random form of an epoch (rx-protocol 1.6). */
	e->epoch |= 0x80000000u;
	e->epoch &= ~0x40000000u;
	e->named = 0;
	return 0;
}

int rxw_engine_name(struct rxw_engine *e, uint32_t *epoch, uint32_t *cid)
{
	int r = 0;

	pthread_mutex_lock(&e->lock);
	do {
		if (e->named >= RXW_NAMES_MAX)
			r = rxw_engine_draw_epoch(e);
		if (!r) {
			*epoch = e->epoch;
			*cid = rxw_shuffle30(e->named++, e->order) << 2;
		}
	} while (!r && !*cid);
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* Inserts it into the table, unless a live connection there has the same id from an older epoch. */
static int insert_client_connection(struct rxw_connection *c)
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

__attribute__((cold)) int rxw_conn_open(rxw_endpoint *endpoint, const struct rxw_path *path,
					uint16_t service_id, rxw_security *security,
					rxw_connection **connection)
{
	int r = -RXW_EAGAIN;

	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	*connection = NULL;
	if (atomic_load(&endpoint->life.stopping))
		return -RXW_ESTOPPED;
	for (unsigned i = 0; i < CID_TRIES && r == -RXW_EAGAIN; i++) {
		struct rxw_connection *c;
		uint32_t epoch, cid;
		int error = rxw_engine_name(endpoint->engine, &epoch, &cid);

		if (error)
			return error;
		c = rxw_conn_create(endpoint, path, epoch, cid, service_id,
				    security ? security : rxw_security_null(), true,
				    (cid >> 2) % endpoint->shard_count, &error);
		if (!c)
			return error;
		rxw_conn_ref(c); /* one reference for the table, one for the application */
		r = insert_client_connection(c);
		if (r) {
			rxw_conn_unref(c);
			rxw_conn_unref(c);
		} else {
			c->owned = 1;
			*connection = c;
		}
	}
	return r == -RXW_EAGAIN ? -RXW_ELIMIT : r;
}

__attribute__((cold)) int rxw_connection_create(rxw_endpoint *endpoint, const struct sockaddr *peer,
						socklen_t peer_len, uint16_t service_id,
						rxw_security *security, rxw_connection **connection)
{
	struct rxw_path path = {.ifindex = 0};

	if (!endpoint || !connection || !service_id || !peer ||
	    !rxw_addr_set(&path.peer, peer, peer_len) ||
	    !rxw_takes_family(endpoint, path.peer.u.sa.sa_family) || !rxw_addr_port(&path.peer))
		return -RXW_EINVAL;
	return rxw_conn_open(endpoint, &path, service_id, security, connection);
}

rxw_connection *rxw_call_connection(const rxw_call *call)
{
	return call ? call->conn : NULL;
}

/*
 * A client's application has one reference that keeps the connection alive, however many times it
 * is owned. At a server it has a handle for each.
 */
rxw_connection *rxw_connection_ref(rxw_connection *connection)
{
	struct rxw_connection *c = connection;

	if (!c)
		return NULL;
	if (rxw_conn_inherited(c))
		return c;
	rxw_conn_lock(c);
	c->owned++;
	rxw_conn_unlock(c);
	if (!c->p.client) {
		atomic_fetch_add(&c->handles, 1);
		atomic_fetch_add(&c->ep->usage.owned, 1);
	}
	return c;
}

void rxw_connection_release(rxw_connection *connection)
{
	struct rxw_connection *c = connection;
	struct rxw_channel_waits waits = {.first = NULL};
	struct rxw_endpoint *ep;
	bool owned, last;

	if (!c)
		return;
	rxw_check_alive(&c->alive, "the connection was released before");
	if (rxw_conn_inherited(c))
		return;
	ep = c->ep;
	rxw_conn_lock(c);
	owned = c->owned > 0;
	last = owned && !--c->owned && c->p.client;
	if (last) {
		c->released = true;
		rxw_pconn_keep_mapping(&c->p, 0, 0);
		if (c->channels) {
			waits = c->channels->waits;
			c->channels->waits = (struct rxw_channel_waits){.first = NULL};
		}
	}
	rxw_conn_unlock(c);
	rxw_channel_forget(&waits);
	if (last) {
		rxw_conn_release_idle(c);
		rxw_conn_unref(c);
	} else if (owned && !c->p.client) {
		rxw_conn_drop(c);
		atomic_fetch_sub(&ep->usage.owned, 1); /* the endpoint may go now */
	}
}

int rxw_connection_set_data(rxw_connection *connection, void *data, void (*destructor)(void *data))
{
	struct rxw_connection *c = connection;
	void (*end)(void *old);
	void *old;
	bool settled;

	if (!c)
		return -RXW_EINVAL;
	if (rxw_conn_inherited(c))
		return -RXW_ESTATE;
	rxw_conn_lock(c);
	settled = c->settled;
	old = c->data;
	end = old == data || settled ? NULL : c->data_end;
	if (!settled) {
		c->data = data;
		c->data_end = destructor;
	}
	rxw_conn_unlock(c);
	if (end)
		end(old);
	return settled ? -RXW_ESTATE : 0;
}

void *rxw_connection_data(rxw_connection *connection)
{
	void *data;

	if (!connection || rxw_conn_inherited(connection))
		return NULL;
	rxw_conn_lock(connection);
	data = connection->data;
	rxw_conn_unlock(connection);
	return data;
}

int rxw_connection_id(const rxw_connection *connection, uint32_t *epoch, uint32_t *cid)
{
	if (!connection)
		return -RXW_EINVAL;
	if (epoch)
		*epoch = connection->p.epoch;
	if (cid)
		*cid = connection->p.cid;
	return 0;
}

int rxw_conn_address(const struct rxw_connection *connection, bool local,
		     struct sockaddr_storage *address, socklen_t *address_len)
{
	struct rxw_connection *c = (struct rxw_connection *)(uintptr_t)connection;
	const struct rxw_path *path;
	const struct rxw_addr *from;

	if (!address || !address_len)
		return -RXW_EINVAL;
	if (rxw_conn_inherited(c))
		return -RXW_ESTATE;
	rxw_conn_lock(c);
	path = rxw_pconn_path(&c->p); /* it changes if a client moves; what is pointed to stays */
	rxw_conn_unlock(c);
	from = local ? &path->local : &path->peer;
	memset(address, 0, sizeof(*address));
	memcpy(address, &from->u, from->len);
	*address_len = from->len;
	return 0;
}

int rxw_connection_peer(const rxw_connection *connection, struct sockaddr_storage *address,
			socklen_t *address_len)
{
	return connection ? rxw_conn_address(connection, false, address, address_len) : -RXW_EINVAL;
}

int rxw_connection_security_index(const rxw_connection *connection)
{
	return connection ? connection->p.security_index : -RXW_EINVAL;
}

rxw_code rxw_connection_error(const rxw_connection *connection, enum rxw_origin *origin)
{
	struct rxw_connection *c = (struct rxw_connection *)(uintptr_t)connection;
	rxw_code code;

	if (origin)
		*origin = RXW_ORIGIN_NONE;
	if (!c || rxw_conn_inherited(c))
		return RXW_INVALID_OPERATION;
	rxw_conn_lock(c);
	code = c->p.error;
	if (origin && code)
		*origin = c->p.error_origin;
	rxw_conn_unlock(c);
	return code;
}

int rxw_connection_close(rxw_connection *connection, rxw_code code)
{
	struct rxw_connection *c = connection;

	if (!c)
		return -RXW_EINVAL;
	if (rxw_conn_inherited(c))
		return -RXW_ESTATE;
	if (c->p.client || !rxw_conn_try_ref(c))
		return -RXW_ESTATE;
	code = rxw_conn_fail(c, code ? code : RXW_USER_ABORT);
	rxw_conn_unref(c);
	return code ? -RXW_ESTATE : 0;
}

int rxw_connection_abort(rxw_connection *connection, rxw_code code)
{
	struct rxw_connection *c = connection;
	struct rxw_effects a;

	if (!c)
		return -RXW_EINVAL;
	if (rxw_conn_inherited(c))
		return -RXW_ESTATE;
	if (!rxw_conn_try_ref(c))
		return -RXW_ESTATE;
	if (!code)
		code = RXW_USER_ABORT;
	rxw_change_begin(&a, c);
	c->aborts++;
	c->abort_code = code;
	for (unsigned i = 0; i < 4; i++)
		if (c->p.channel[i] && !rxw_call_of(c->p.channel[i])->ended)
			rxw_pcall_abort(c->p.channel[i], code, &a.out);
	rxw_change_end(&a, c);
	pthread_cond_broadcast(&c->channel_free);
	rxw_conn_unref(c);
	return 0;
}

__attribute__((cold)) int rxw_connection_set_timeouts(rxw_connection *connection, unsigned dead_ms,
						      unsigned idle_ms, unsigned hard_ms)
{
	if (!connection || !rxw_timeouts_valid(dead_ms))
		return -RXW_EINVAL;
	if (rxw_conn_inherited(connection))
		return -RXW_ESTATE;
	rxw_conn_lock(connection);
	if (dead_ms)
		connection->p.dead = dead_ms * RXW_MS;
	if (idle_ms)
		connection->p.idle = idle_ms == RXW_TIMEOUT_OFF ? 0 : idle_ms * RXW_MS;
	if (hard_ms)
		connection->p.hard = hard_ms == RXW_TIMEOUT_OFF ? 0 : hard_ms * RXW_MS;
	rxw_conn_unlock(connection);
	return 0;
}

/* Connection's lock held: other threads read its address without the lock once it has sent. */
static bool may_have_sent(const struct rxw_connection *c)
{
	bool used = c->p.nat_every != 0;

	for (unsigned i = 0; i < 4; i++)
		used |= c->p.number[i] || c->p.channel[i];
	return used;
}

__attribute__((cold)) int rxw_connection_set_local(rxw_connection *connection,
						   const struct sockaddr *local,
						   socklen_t local_len)
{
	struct rxw_addr addr;
	int r = 0;

	if (!connection || !connection->p.client || !local ||
	    !rxw_addr_set_local(&addr, local, local_len))
		return -RXW_EINVAL;
	if (rxw_conn_inherited(connection))
		return -RXW_ESTATE;
	rxw_conn_lock(connection);
	if (addr.u.sa.sa_family != connection->p.path.peer.u.sa.sa_family)
		r = -RXW_EINVAL;
	else if (may_have_sent(connection))
		r = -RXW_ESTATE;
	else
		connection->p.path.local = addr;
	rxw_conn_unlock(connection);
	return r;
}

__attribute__((cold)) int rxw_connection_set_nat_ping(rxw_connection *connection, unsigned seconds)
{
	uint64_t now = rxw_now();

	if (!connection || !connection->p.client || seconds > 3600)
		return -RXW_EINVAL;
	if (rxw_conn_inherited(connection))
		return -RXW_ESTATE;
	rxw_conn_lock(connection);
	rxw_pconn_keep_mapping(&connection->p, seconds * RXW_SEC, now);
	rxw_timer_of_conn(connection);
	rxw_conn_unlock(connection);
	return 0;
}
