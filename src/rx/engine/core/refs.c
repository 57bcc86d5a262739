/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts: references of connections, calls and security classes; threads that sleep for packets;
 * callers that wait for a channel. receive/lifecycle.c frees connections and calls.
 */
#include <stdlib.h>

#include "engine/objects.h"

#define SHARE_MIN 8 /* packets: with fewer a stream is very slow, and some loss costs less */

_Atomic(unsigned) rxw_forks;

void rxw_count_down(_Atomic(uint32_t) *count)
{
	uint32_t before = atomic_fetch_sub(count, 1);

	assert(before);
	(void)before;
}

__attribute__((cold)) void rxw_mutex_wait(pthread_mutex_t *m, _Atomic(uint64_t) *contended)
{
	atomic_fetch_add_explicit(contended, 1, memory_order_relaxed);
	pthread_mutex_lock(m);
}

__attribute__((cold)) void rxw_conn_wait_lock(struct rxw_connection *c)
{
	rxw_mutex_wait(&c->lock, &rxw_home(c)->contended[RXW_LOCK_CONNECTION]);
}

struct rxw_pool *rxw_pool_for(const struct rxw_shard *s)
{
	rxw_pool_use_part(s->index, s->ep->shard_count);
	return s->ep->engine->pool;
}

void rxw_ref_add(_Atomic(uint32_t) *refs)
{
	uint32_t before = atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);

	assert(before);
	(void)before;
}

bool rxw_ref_drop(_Atomic(uint32_t) *refs)
{
	uint32_t before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);

	assert(before);
	return before == 1;
}

void rxw_conn_ref(struct rxw_connection *c)
{
	rxw_ref_add(&c->refs);
}

void rxw_conn_unref(struct rxw_connection *c)
{
	if (rxw_ref_drop(&c->refs))
		c->ep->upcalls->free_connection(c);
}

bool rxw_ref_take(_Atomic(uint32_t) *refs)
{
	uint32_t n = atomic_load_explicit(refs, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak_explicit(
			    refs, &n, n + 1, memory_order_acquire, memory_order_relaxed))
		;
	return n;
}

bool rxw_conn_try_ref(struct rxw_connection *c)
{
	return rxw_ref_take(&c->refs);
}

void rxw_call_ref(struct rxw_call *call)
{
	rxw_ref_add(&call->refs);
}

void rxw_call_unref(struct rxw_call *call)
{
	if (rxw_ref_drop(&call->refs))
		call->conn->ep->upcalls->free_call(call);
}

rxw_security *rxw_security_ref(rxw_security *security)
{
	if (security && atomic_load_explicit(&security->refs, memory_order_relaxed))
		atomic_fetch_add_explicit(&security->refs, 1, memory_order_relaxed);
	return security;
}

void rxw_security_unref(rxw_security *security)
{
	/* Static classes have a count of 0 and are never freed. */
	if (!security || !atomic_load_explicit(&security->refs, memory_order_relaxed) ||
	    atomic_fetch_sub(&security->refs, 1) != 1)
		return;
	if (security->class.destroy)
		security->class.destroy(security->data);
	free(security);
}

void rxw_settings_unref(struct rxw_settings *settings)
{
	if (settings && rxw_ref_drop(&settings->refs))
		free(settings);
}

void rxw_sleeper_add(struct rxw_call *call, struct rxw_shard *s)
{
	assert(rxw_is_locked(&call->conn->lock));
	if (call->sleep.counted_in)
		return;
	call->sleep.counted_in = s;
	atomic_fetch_add(&s->role.sleepers, 1);
}

void rxw_sleeper_remove(struct rxw_call *call)
{
	if (!call->sleep.counted_in)
		return;
	rxw_count_down(&call->sleep.counted_in->role.sleepers);
	call->sleep.counted_in = NULL;
}

bool rxw_channel_wake(struct rxw_connection *c)
{
	assert(rxw_is_locked(&c->lock));
	if (!c->channel_waiters || c->channel_woken)
		return false;
	c->channel_woken = true;
	return true;
}

void rxw_call_live(struct rxw_call *call)
{
	struct rxw_endpoint *ep = call->conn->ep;
	uint32_t share;

	if (call->live)
		return;
	call->live = true;
	share = ep->usage.room_packets / (atomic_fetch_add(&ep->usage.live, 1) + 1);
	rxw_pcall_limit_window(&call->p, share < SHARE_MIN ? SHARE_MIN : share);
}

void rxw_call_unlive(struct rxw_call *call)
{
	if (call->live)
		rxw_count_down(&call->conn->ep->usage.live);
	call->live = false;
}

void rxw_call_relax(struct rxw_call *call)
{
	bool ended;

	rxw_pcall_readable(&call->p, &ended);
	if (ended)
		rxw_call_unlive(call);
	else
		rxw_call_live(call);
}

void rxw_call_refuse(struct rxw_call *call, int32_t code)
{
	const struct rxw_service *service = call->conn->service;
	bool removed = service && atomic_load(&service->removed);

	if (!code)
		code = removed ? RXW_INVALID_OPERATION : RXW_RESTARTING;
	call->conn->ep->upcalls->finish(call, code);
}
