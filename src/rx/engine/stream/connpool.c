/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools of connections: a channel of any of them. */
#include <limits.h>
#include <stdlib.h>

#include "base/assert.h"
#include "engine/stream/observer.h"
#include "base/addr.h"
#include "common/sized.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define POOL_MAX       65536u
#define CHECK_INTERVAL (100 * RXW_MS) /* a waiting thread sees that the endpoint stops */

struct rxw_connpool {
	struct rxw_channel_group group; /* first; its lock covers `next`, `aborts` and slot[] */
	struct rxw_alive alive;
	/* fixed */
	rxw_endpoint *endpoint;
	struct rxw_path
		path; /* rxw_connpool_set_local() changes its local side, before the first use */
	uint16_t service;
	rxw_security *security; /* one reference, or NULL */
	unsigned most;
	pthread_mutex_t making; /* one thread creates a connection; no other lock is held */
	unsigned dead_ms, idle_ms, hard_ms; /* of rxw_connpool_set_timeouts(); making */
	unsigned next;			    /* where the latest free channel was */
	unsigned aborts;		    /* of rxw_connpool_abort() ... */
	int32_t abort_code;		    /* ... and its latest code */
	rxw_connection *slot[];		    /* `most`; NULL: not created, or failed */
};

__attribute__((cold)) int rxw_connpool_create(rxw_endpoint *endpoint, const struct sockaddr *peer,
					      socklen_t peer_len, uint16_t service_id,
					      rxw_security *security, unsigned most,
					      rxw_connpool **pool)
{
	struct rxw_connpool *p;

	if (!endpoint || !pool || !peer || !service_id || !most || most > POOL_MAX)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	*pool = NULL;
	if (atomic_load(&endpoint->life.stopping))
		return -RXW_ESTOPPED;
	p = calloc(1, sizeof(*p) + most * sizeof(p->slot[0]));
	if (!p)
		return -RXW_ENOMEM;
	if (!rxw_addr_set(&p->path.peer, peer, peer_len) || !rxw_addr_port(&p->path.peer) ||
	    !rxw_takes_family(endpoint, p->path.peer.u.sa.sa_family)) {
		free(p);
		return -RXW_EINVAL;
	}
	if (rxw_channel_group_init(&p->group)) {
		free(p);
		return -RXW_ENOMEM;
	}
	pthread_mutex_init(&p->making, NULL);
	rxw_alive_begin(&p->alive);
	p->endpoint = endpoint;
	p->service = service_id;
	p->security = rxw_security_ref(security);
	p->most = most;
	atomic_fetch_add(&endpoint->usage.pools, 1);
	*pool = p;
	return 0;
}

/* No lock held. The pool gives a connection up, and its reference. */
static void let_go(rxw_connection *c)
{
	rxw_conn_lock(c);
	if (c->channels)
		c->channels->group = NULL;
	rxw_conn_unlock(c);
	rxw_connection_release(c);
}

__attribute__((cold)) void rxw_connpool_release(rxw_connpool *pool)
{
	if (!pool)
		return;
	rxw_check_alive(&pool->alive, "the pool was released before");
	if (rxw_endpoint_inherited(pool->endpoint))
		return;
	rxw_alive_end(&pool->alive);
	for (unsigned i = 0; i < pool->most; i++)
		if (pool->slot[i])
			let_go(pool->slot[i]);
	rxw_count_down(&pool->endpoint->usage.pools); /* which may be destroyed now */
	rxw_security_unref(pool->security);
	pthread_mutex_destroy(&pool->making);
	rxw_channel_group_release(&pool->group);
}

/* The connection of a slot with a reference for the caller, or NULL. */
static rxw_connection *ref_slot(struct rxw_connpool *p, unsigned i)
{
	rxw_connection *c;

	pthread_mutex_lock(&p->group.lock);
	c = p->slot[i];
	if (c)
		rxw_conn_ref(c);
	pthread_mutex_unlock(&p->group.lock);
	return c;
}

/* A new connection of the pool, with a reference for the caller besides that of the slot. */
static int create_pooled_connection(struct rxw_connpool *p, rxw_connection **c)
{
	struct rxw_conn_channels *channels = calloc(1, sizeof(*channels));
	int r = channels ? rxw_conn_open(p->endpoint, &p->path, p->service, p->security, c)
			 : -RXW_ENOMEM;

	if (r) {
		free(channels);
		return r;
	}
	r = rxw_connection_set_timeouts(*c, p->dead_ms, p->idle_ms, p->hard_ms);
	assert(!r); /* rxw_connpool_set_timeouts() has checked them */
	channels->group = &p->group;
	rxw_conn_ref(*c);
	rxw_conn_lock(*c);
	(*c)->channels = channels;
	rxw_conn_unlock(*c);
	return 0;
}

/* Fills an empty slot. *c has a reference for the caller. */
static int fill_slot(struct rxw_connpool *p, unsigned i, rxw_connection **c)
{
	int r = 0;

	pthread_mutex_lock(&p->making);
	*c = ref_slot(p, i);
	if (*c) /* another thread has made it */
		goto out;
	r = create_pooled_connection(p, c);
	if (r)
		goto out;
	pthread_mutex_lock(&p->group.lock);
	p->slot[i] = *c;
	pthread_mutex_unlock(&p->group.lock);
out:
	pthread_mutex_unlock(&p->making);
	return r;
}

enum condition {
	FULL,
	FREE,
	FAILED /* or its call numbers are used up */
};

static enum condition connection_condition(rxw_connection *c, uint64_t now)
{
	enum condition is;

	rxw_conn_lock(c);
	if (c->p.error || rxw_pconn_used_up(&c->p))
		is = FAILED;
	else
		is = rxw_pconn_has_free_channel(&c->p, now) ? FREE : FULL;
	rxw_conn_unlock(c);
	return is;
}

/* A failed connection leaves its slot, so that another one is created. */
static void vacate_slot(struct rxw_connpool *p, unsigned i, rxw_connection *c)
{
	bool mine;

	pthread_mutex_lock(&p->group.lock);
	mine = p->slot[i] == c;
	if (mine)
		p->slot[i] = NULL;
	pthread_mutex_unlock(&p->group.lock);
	if (mine)
		let_go(c);
}

/* -RXW_EAGAIN: the connection of the slot has no free channel. */
static int try_slot(struct rxw_connpool *p, unsigned i, const struct rxw_call_options *options,
		    rxw_call **call)
{
	rxw_connection *c = ref_slot(p, i);
	uint64_t now = rxw_now();
	int r = 0;

	if (c && connection_condition(c, now) == FAILED) {
		vacate_slot(p, i, c);
		rxw_conn_unref(c);
		c = NULL;
	}
	if (!c)
		r = fill_slot(p, i, &c);
	if (r)
		return r;
	r = connection_condition(c, now) == FREE ? rxw_call_begin_now(c, options, call)
						 : -RXW_EAGAIN;
	rxw_conn_unref(c);
	/* It failed, or was replaced, just now: the next attempt finds another one. */
	return r == -RXW_ECALL || r == -RXW_ESTATE ? -RXW_EAGAIN : r;
}

/* Connections that exist come before those that have to be created. */
static int try_all_slots(struct rxw_connpool *p, const struct rxw_call_options *options,
			 rxw_call **call)
{
	unsigned first, empty = p->most;

	pthread_mutex_lock(&p->group.lock);
	first = p->next;
	pthread_mutex_unlock(&p->group.lock);
	for (unsigned k = 0; k < p->most; k++) {
		unsigned i = (first + k) % p->most;
		rxw_connection *c = ref_slot(p, i);
		int r;

		if (!c) {
			if (empty == p->most)
				empty = i;
			continue;
		}
		rxw_conn_unref(c);
		r = try_slot(p, i, options, call);
		if (r != -RXW_EAGAIN) {
			pthread_mutex_lock(&p->group.lock);
			p->next = i;
			pthread_mutex_unlock(&p->group.lock);
			return r;
		}
	}
	return empty < p->most ? try_slot(p, empty, options, call) : -RXW_EAGAIN;
}

/* Every connection announces its next free channel. */
static void want_any(struct rxw_connpool *p)
{
	pthread_mutex_lock(&p->group.lock);
	for (unsigned i = 0; i < p->most; i++)
		if (p->slot[i])
			atomic_store(&p->slot[i]->channel_wanted, true);
	pthread_mutex_unlock(&p->group.lock);
}

/* Group's lock held: 0 to go on, or why not. */
static int sleep_or_leave(struct rxw_connpool *p, const struct rxw_call_options *options,
			  uint64_t end)
{
	uint64_t now = rxw_now();

	if (options->flags & (RXW_CALL_NONBLOCK | RXW_CALL_TRY)) {
		int r = options->queue ? rxw_channel_wait(&p->group.waits, options->queue,
							  options->arg, NULL, &p->group)
				       : 0;

		return r ? r : -RXW_EAGAIN;
	}
	if (rxw_must_not_wait())
		return -RXW_EDEADLK;
	if (now >= end)
		return -RXW_ETIMEDOUT;
	if (rxw_tx_collecting()) {
		pthread_mutex_unlock(&p->group.lock);
		rxw_tx_collect_end();
		pthread_mutex_lock(&p->group.lock);
		return 0;
	}
	rxw_cond_wait_until(&p->group.cond, &p->group.lock,
			    end < now + CHECK_INTERVAL ? end : now + CHECK_INTERVAL);
	return 0;
}

/* Milliseconds until `end`, at least 1; 0: there is no end. */
static unsigned remaining_ms(uint64_t end)
{
	uint64_t now = rxw_now();

	if (end == UINT64_MAX)
		return 0;
	return end > now + RXW_MS ? (unsigned)((end - now) / RXW_MS) : 1;
}

int rxw_connpool_try_begin(rxw_connpool *pool, const struct rxw_call_options *given,
			   rxw_call **call, int32_t *code)
{
	struct rxw_call_options options = {.size = sizeof(options)};
	uint64_t end = UINT64_MAX, freed = UINT64_MAX;
	unsigned aborts;
	int r;

	*code = 0;
	if (!pool || !call || (given && !sized_read(&options, sizeof(options), given)) ||
	    (options.queue && !rxw_queue_of_engine(options.queue, pool->endpoint->engine)))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(pool->endpoint))
		return -RXW_ESTATE;
	*call = NULL;
	pthread_mutex_lock(&pool->making);
	if (pool->hard_ms && pool->hard_ms != RXW_TIMEOUT_OFF &&
	    (!options.deadline_ms || pool->hard_ms < options.deadline_ms))
		options.deadline_ms = pool->hard_ms;
	pthread_mutex_unlock(&pool->making);
	if (options.deadline_ms)
		end = rxw_now() + options.deadline_ms * RXW_MS;
	pthread_mutex_lock(&pool->group.lock);
	aborts = pool->aborts;
	pthread_mutex_unlock(&pool->group.lock);
	for (;;) {
		options.deadline_ms = remaining_ms(end);
		r = try_all_slots(pool, &options, call);
		if (r != -RXW_EAGAIN)
			return r;
		pthread_mutex_lock(&pool->group.lock);
		/* The channels were tried after all connections were told that one is wanted. */
		if (pool->group.freed == freed)
			r = sleep_or_leave(pool, &options, end);
		else
			r = 0;
		freed = pool->group.freed;
		if (!r && pool->aborts != aborts) {
			*code = pool->abort_code;
			r = -RXW_ECALL;
		}
		pthread_mutex_unlock(&pool->group.lock);
		if (!r && atomic_load(&pool->endpoint->life.stopping))
			r = -RXW_ESTOPPED;
		if (r)
			return r;
		want_any(pool);
	}
}

int rxw_connpool_begin(rxw_connpool *pool, const struct rxw_call_options *options, rxw_call **call)
{
	int32_t code;

	return rxw_connpool_try_begin(pool, options, call, &code);
}

bool rxw_connpool_is_inherited(const rxw_connpool *pool)
{
	return rxw_endpoint_inherited(pool->endpoint);
}

uint64_t rxw_connpool_hard_timeout(rxw_connpool *pool)
{
	unsigned hard_ms;

	pthread_mutex_lock(&pool->making);
	hard_ms = pool->hard_ms;
	pthread_mutex_unlock(&pool->making);
	return hard_ms == RXW_TIMEOUT_OFF ? 0 : hard_ms * RXW_MS;
}

/* The function for each connection. The first result that is not 0. */
static int for_each_connection(struct rxw_connpool *p,
			       int (*fn)(rxw_connection *c, struct rxw_connpool *p))
{
	int first = 0;

	for (unsigned i = 0; i < p->most; i++) {
		rxw_connection *c = ref_slot(p, i);
		int r = c ? fn(c, p) : 0;

		if (c)
			rxw_conn_unref(c);
		if (!first)
			first = r;
	}
	return first;
}

static int abort_one(rxw_connection *c, struct rxw_connpool *p)
{
	int32_t code;

	pthread_mutex_lock(&p->group.lock);
	code = p->abort_code;
	pthread_mutex_unlock(&p->group.lock);
	return rxw_connection_abort(c, code);
}

int rxw_connpool_abort(rxw_connpool *pool, rxw_code code)
{
	if (!pool)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(pool->endpoint))
		return -RXW_ESTATE;
	pthread_mutex_lock(&pool->group.lock);
	pool->aborts++;
	pool->abort_code = code ? code : RXW_USER_ABORT;
	pthread_cond_broadcast(&pool->group.cond);
	pthread_mutex_unlock(&pool->group.lock);
	return for_each_connection(pool, abort_one);
}

static int set_one(rxw_connection *c, struct rxw_connpool *p)
{
	return rxw_connection_set_timeouts(c, p->dead_ms, p->idle_ms, p->hard_ms);
}

int rxw_connpool_set_timeouts(rxw_connpool *pool, unsigned dead_ms, unsigned idle_ms,
			      unsigned hard_ms)
{
	int r;

	if (!pool || !rxw_timeouts_valid(dead_ms))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(pool->endpoint))
		return -RXW_ESTATE;
	pthread_mutex_lock(&pool->making);
	pool->dead_ms = dead_ms ? dead_ms : pool->dead_ms;
	pool->idle_ms = idle_ms ? idle_ms : pool->idle_ms;
	pool->hard_ms = hard_ms ? hard_ms : pool->hard_ms;
	r = for_each_connection(pool, set_one);
	pthread_mutex_unlock(&pool->making);
	return r;
}

__attribute__((cold)) int rxw_connpool_set_local(rxw_connpool *pool, const struct sockaddr *local,
						 socklen_t local_len, unsigned interface)
{
	struct rxw_addr address;

	if (!pool || !local || interface > INT_MAX ||
	    !rxw_addr_set_local(&address, local, local_len) ||
	    address.u.sa.sa_family != pool->path.peer.u.sa.sa_family)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(pool->endpoint))
		return -RXW_ESTATE;
	pthread_mutex_lock(&pool->making);
	pool->path.local = address;
	pool->path.ifindex = (int)interface;
	pthread_mutex_unlock(&pool->making);
	return 0;
}
