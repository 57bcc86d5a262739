/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking the engine's locks. Contended acquisitions are counted. */
#ifndef RXW_ENGINE_LOCK_H
#define RXW_ENGINE_LOCK_H

#include "engine/objects.h"

/*
 * Only the contended path touches the shared counter. It may have to sleep, which costs far more
 * than counting. pthread_cond_wait() is not counted when it takes the lock again: contention with
 * the signalling thread is normal there.
 */
static inline void rxw_mutex_lock(pthread_mutex_t *m, _Atomic(uint64_t) *contended)
{
	if (__builtin_expect(pthread_mutex_trylock(m) != 0, 0))
		rxw_mutex_wait(m, contended);
}

static inline void rxw_conn_lock(struct rxw_connection *c)
{
	if (__builtin_expect(pthread_mutex_trylock(&c->lock) != 0, 0))
		rxw_conn_wait_lock(c);
}

/* For work that can be postponed. */
static inline bool rxw_conn_trylock(struct rxw_connection *c)
{
	return !pthread_mutex_trylock(&c->lock);
}

static inline void rxw_conn_unlock(struct rxw_connection *c)
{
	pthread_mutex_unlock(&c->lock);
}

static inline void rxw_table_lock(struct rxw_shard *s)
{
	rxw_mutex_lock(&s->lock, &s->contended[RXW_LOCK_TABLE]);
}

static inline void rxw_table_unlock(struct rxw_shard *s)
{
	pthread_mutex_unlock(&s->lock);
}

static inline void rxw_role_lock(struct rxw_shard *s)
{
	rxw_mutex_lock(&s->role.lock, &s->contended[RXW_LOCK_RECEIVE_ROLE]);
}

static inline void rxw_role_unlock(struct rxw_shard *s)
{
	pthread_mutex_unlock(&s->role.lock);
}

static inline void rxw_peers_lock(struct rxw_endpoint *ep)
{
	rxw_mutex_lock(&ep->peers.lock, &ep->contended[RXW_LOCK_PEERS]);
}

static inline void rxw_peers_unlock(struct rxw_endpoint *ep)
{
	pthread_mutex_unlock(&ep->peers.lock);
}

static inline void rxw_unvalidated_lock(struct rxw_endpoint *ep)
{
	rxw_mutex_lock(&ep->admit.lock, &ep->contended[RXW_LOCK_UNVALIDATED]);
}

static inline void rxw_unvalidated_unlock(struct rxw_endpoint *ep)
{
	pthread_mutex_unlock(&ep->admit.lock);
}

#endif
