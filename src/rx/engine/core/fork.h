/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that a process has inherited by fork(). Their threads and connections are those of the
 * parent, and their locks may be held by threads that do not exist here. Public functions refuse such
 * objects before they take a lock.
 */
#ifndef RXW_ENGINE_FORK_H
#define RXW_ENGINE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/objects.h"

/* How many times fork() was called on the way from the process of the first engine; relaxed. */
extern _Atomic(unsigned) rxw_forks;

static inline unsigned rxw_generation(void)
{
	return atomic_load_explicit(&rxw_forks, memory_order_relaxed);
}

/* A process that nobody forked compares nothing. */
static inline bool rxw_engine_inherited(const struct rxw_engine *e)
{
	unsigned generation = rxw_generation();

	return __builtin_expect(generation != 0, 0) && e->generation != generation;
}

static inline bool rxw_endpoint_inherited(const struct rxw_endpoint *ep)
{
	return rxw_engine_inherited(ep->engine);
}

static inline bool rxw_conn_inherited(const struct rxw_connection *c)
{
	return __builtin_expect(rxw_generation() != 0, 0) && rxw_endpoint_inherited(c->ep);
}

static inline bool rxw_call_inherited(const struct rxw_call *call)
{
	return __builtin_expect(rxw_generation() != 0, 0) && rxw_conn_inherited(call->conn);
}

#endif
