/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation and removal of connections and calls, and the callbacks of the protocol core. */
#include <stdlib.h>
#include <unistd.h>

#include "common/cancel.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"

void rxw_count_validated(struct rxw_connection *c)
{
	if (c->admit.validated || c->p.evicted)
		return;
	c->admit.validated = true;
	atomic_fetch_add_explicit(&c->ep->admit.validated, 1, memory_order_relaxed);
}

static void uncount_validated(struct rxw_connection *c)
{
	if (c->admit.validated)
		rxw_count_down(&c->ep->admit.validated);
	c->admit.validated = false;
}

/* The destructor may use the connection: it runs without the lock, and the caller has a handle. */
void rxw_conn_settle(struct rxw_connection *c)
{
	struct rxw_service *service = NULL;
	void (*end)(void *data) = NULL;
	void *data = NULL;

	rxw_conn_lock(c);
	if (!atomic_load(&c->refs) || (c->p.error && !atomic_load(&c->calls))) {
		end = c->data_end;
		data = c->data;
		service = c->service;
		c->data_end = NULL;
		c->data = NULL;
		c->service = NULL;
		c->settled = true;
	}
	rxw_conn_unlock(c);
	if (end) {
		rxw_callback_enter();
		end(data);
		rxw_callback_leave();
	}
	rxw_service_unref(service);
}

void rxw_conn_drop(struct rxw_connection *c)
{
	if (atomic_fetch_sub_explicit(&c->handles, 1, memory_order_acq_rel) != 1)
		return;
	rxw_alive_end(&c->alive);
	rxw_pconn_fini(&c->p, 0);
	rxw_security_unref(c->p.auth.security);
	free(c->channels);
	pthread_cond_destroy(&c->channel_free);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void rxw_conn_free(struct rxw_connection *c)
{
	struct rxw_endpoint *ep = c->ep;

	assert(!atomic_load(&c->refs) && !c->in_table && !c->timer.wheel_prev &&
	       !c->timer.callbacks);
	if (c->admit.unvalidated)
		rxw_count_down(&ep->admit.unvalidated);
	uncount_validated(c); /* the table may hold another one in its place */
	rxw_verify_forget_early(c);
	rxw_pconn_ask_end(&c->p, &rxw_home(c)->stats);
	rxw_pconn_end(&c->p, rxw_now());
	rxw_settings_unref(c->settings);
	rxw_conn_settle(c);
	rxw_conn_drop(c);
	rxw_count_down(&ep->usage.connections);
}

/* Buffers of the stream: pieces that were not returned, slots that were not sent. */
static void free_stream(struct rxw_call *call)
{
	for (unsigned i = call->r.keep; i < call->r.count; i++)
		rxw_buf_unref(call->r.piece[i].buf);
	rxw_buf_unref(call->w.buf);
	rxw_buf_unref(call->w.kept.buf);
}

void rxw_call_free(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	NOT_CANCELLED;

	assert(!atomic_load(&call->refs));
	rxw_workers_release_call(call);
	rxw_deferral_release_call(call);
	rxw_call_unlive(call);
	free_stream(call);
	rxw_verify_forget(call);
	rxw_pcall_fini(&call->p);
	pthread_cond_destroy(&call->sleep.cond);
	rxw_alive_end(&call->alive);
	free(call);
	rxw_count_down(&c->ep->usage.calls);
	rxw_count_down(&c->calls);
	rxw_conn_unref(c);
}

struct rxw_call *rxw_call_create(struct rxw_connection *c, unsigned flags)
{
	struct rxw_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	if (rxw_cond_init(&call->sleep.cond)) {
		free(call);
		return NULL;
	}
	rxw_alive_begin(&call->alive);
	call->conn = c;
	call->flags = flags;
	call->events.mask = RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE;
	call->w.seq = 1;
	/* A callback that begins a call may have run for long since the cached time was read. */
	call->started = c->p.client ? rxw_now() : rxw_clock_cached();
	atomic_init(&call->refs, 1);
	rxw_conn_ref(c);
	atomic_fetch_add(&c->calls, 1);
	atomic_fetch_add(&c->ep->usage.calls, 1);
	return call;
}

/* The address of a new call is not validated, and will not be before the call begins. */
static bool may_be_spoofed(const struct rxw_pconn *p)
{
	return !p->validate_first && !rxw_path_is_local(rxw_pconn_path(p)) &&
	       !rxw_peer_validated(p->peer, rxw_clock_cached());
}

/* A call that a queue receives needs no worker. */
static struct rxw_pcall *new_queued_call(struct rxw_connection *c)
{
	struct rxw_call *call;

	if (!rxw_deferral_reserve(c))
		return NULL;
	call = rxw_call_create(c, RXW_CALL_NONBLOCK);
	if (!call) {
		rxw_deferral_release(c);
		return NULL;
	}
	rxw_deferral_assign(call);
	if (may_be_spoofed(&c->p) && rxw_deferral_scarce(c))
		c->p.validate_first = true;
	return &call->p;
}

static struct rxw_pcall *op_call_new(struct rxw_pconn *p, int32_t *code)
{
	struct rxw_connection *c = rxw_conn_of(p);
	bool is_inline = c->service->flags & RXW_SERVICE_INLINE;
	struct rxw_call *call;

	*code = rxw_refusing(c->ep);
	if (*code)
		return NULL;
	*code = rxw_busy_code(c->service);
	if (c->service->queue)
		return new_queued_call(c);
	/* Reserve first: many calls may have to be refused, and refusals must be cheap. */
	if (!is_inline && !rxw_workers_reserve(c))
		return NULL;
	call = rxw_call_create(c, 0);
	if (!call) {
		if (!is_inline)
			rxw_workers_release(c);
		return NULL;
	}
	call->is_inline = is_inline;
	if (!is_inline)
		rxw_workers_assign(call);
	/* Validate addresses when workers are scarce: a spoofed request must not occupy one. */
	if (!is_inline && may_be_spoofed(p) && rxw_workers_scarce(c->ep))
		p->validate_first = true;
	return &call->p;
}

static void op_hold(struct rxw_pcall *p)
{
	rxw_call_ref(rxw_call_of(p));
}

static void op_drop(struct rxw_pcall *p)
{
	rxw_call_unref(rxw_call_of(p));
}

static struct rxw_pool *op_pool(struct rxw_pconn *p)
{
	return rxw_pool_for(rxw_home(rxw_conn_of(p)));
}

static bool op_memory_short(struct rxw_pconn *p)
{
	const struct rxw_engine *e = rxw_conn_of(p)->ep->engine;

	return rxw_pool_about(e->pool) > (size_t)(e->memory.limit / 2);
}

static bool op_leaving(struct rxw_pconn *p)
{
	return atomic_load(&rxw_conn_of(p)->ep->life.leaving);
}

static const struct rxw_proto_ops engine_ops = {
	.call_new = op_call_new,
	.hold = op_hold,
	.drop = op_drop,
	.pool = op_pool,
	.memory_short = op_memory_short,
	.leaving = op_leaving,
};

struct rxw_connection *rxw_conn_create(struct rxw_endpoint *ep, const struct rxw_path *path,
				       uint32_t epoch, uint32_t cid, uint16_t service,
				       struct rxw_security *security, bool client, unsigned home,
				       int *error)
{
	struct rxw_connection *c = calloc(1, sizeof(*c));
	uint64_t now = rxw_now();
	struct rxw_peer *peer;

	*error = -RXW_ENOMEM;
	if (!c)
		return NULL;
	rxw_peers_lock(ep);
	peer = rxw_peer_get_from(ep->peers.table, &path->peer,
				 client && path->local.len ? &path->local : NULL, now);
	c->settings = ep->settings.current;
	atomic_fetch_add(&c->settings->refs, 1);
	rxw_peers_unlock(ep);
	if (!peer || rxw_cond_init(&c->channel_free))
		goto fail;
	rxw_mutex_init(&c->lock);
	c->ep = ep;
	c->table = (uint8_t)((cid >> 2) % ep->shard_count);
	c->wheel = (uint8_t)home;
	atomic_init(&c->home, home);
	atomic_init(&c->refs, 1);
	atomic_init(&c->handles, 1);
	rxw_alive_begin(&c->alive);
	atomic_init(&c->timer.deadline, UINT64_MAX);
	atomic_init(&c->timer.armed, UINT64_MAX);
	*error = rxw_pconn_init(&c->p, &c->settings->params, &engine_ops, peer, path, epoch, cid,
				service, security, client, now);
	if (*error) {
		rxw_pconn_end(&c->p, now); /* it had taken the peer over */
		peer = NULL;
		pthread_mutex_destroy(&c->lock);
		pthread_cond_destroy(&c->channel_free);
		goto fail;
	}
	c->p.live = &ep->shard[c->table].calls_live;
	rxw_security_ref(security);
	atomic_fetch_add(&ep->usage.connections, 1);
	return c;
fail:
	rxw_settings_unref(c->settings);
	if (peer)
		rxw_peer_unref(peer, now);
	free(c);
	return NULL;
}

void rxw_conn_remove(struct rxw_connection *c)
{
	struct rxw_shard *t = &c->ep->shard[c->table];
	struct rxw_call *left[4];
	struct rxw_effects a;
	bool mine;

	rxw_table_lock(t);
	mine = c->in_table;
	if (mine)
		rxw_conntable_remove(&t->table, &c->p);
	c->in_table = false;
	rxw_table_unlock(t);
	if (!mine)
		return;
	rxw_change_begin(&a, c);
	rxw_pconn_close(&c->p, &a.out);
	/*
	 * Another thread may have looked it up just before. A call created by its packet would hold
	 * the connection for ever, so the packet is dropped; the peer retransmits it.
	 */
	c->p.evicted = true;
	uncount_validated(c);
	if (!c->p.error) {
		c->p.error = RXW_CALL_DEAD;
		c->p.error_origin = RXW_ORIGIN_LOCAL;
	}
	for (unsigned i = 0; i < 4; i++) {
		left[i] = rxw_call_of(c->p.channel[i]);
		c->p.channel[i] = NULL;
		if (left[i])
			rxw_pcall_live_dec(&left[i]->p);
	}
	rxw_change_end(&a, c);
	for (unsigned i = 0; i < 4; i++)
		if (left[i])
			rxw_call_unref(left[i]);
	rxw_conn_settle(c);
	rxw_conn_unref(c); /* the table's reference */
}

void rxw_conn_release_idle(struct rxw_connection *c)
{
	bool gone;

	rxw_conn_lock(c);
	/* A pending final ACK is sent when the connection is closed. */
	gone = c->p.client && c->released && !c->held;
	rxw_conn_unlock(c);
	if (gone)
		rxw_conn_remove(c);
}

bool rxw_takes_family(const struct rxw_endpoint *ep, sa_family_t family)
{
	return family == ep->io.bound.u.sa.sa_family || (family == AF_INET && ep->io.dual);
}

bool rxw_timeouts_valid(unsigned dead_ms)
{
	return !dead_ms || (dead_ms >= 1000 && dead_ms != RXW_TIMEOUT_OFF);
}

void rxw_call_fail(struct rxw_call *call, int32_t code)
{
	struct rxw_effects a;

	rxw_change_begin(&a, call->conn);
	rxw_pcall_abort(&call->p, code, &a.out);
	rxw_timer_update(call);
	rxw_change_end(&a, call->conn);
}

int32_t rxw_conn_fail(struct rxw_connection *c, int32_t code)
{
	struct rxw_effects a;
	int32_t before;

	rxw_change_begin(&a, c);
	before = c->p.error;
	rxw_pconn_fail(&c->p, code, RXW_ORIGIN_LOCAL, true, &a.out);
	rxw_change_end(&a, c);
	return before;
}
