/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mark in the objects that applications end or destroy: a second time fails an assertion, as
 * long as the memory has no other use. Atomic, so that the compiler keeps the
 * store before free().
 */
#ifndef RXW_ENGINE_ALIVE_H
#define RXW_ENGINE_ALIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct rxw_alive {
	_Atomic(uint32_t) mark;
};

#define RXW_ALIVE_MARK 0x5278416cu

static inline void rxw_alive_begin(struct rxw_alive *a)
{
	atomic_store_explicit(&a->mark, RXW_ALIVE_MARK, memory_order_relaxed);
}

static inline void rxw_alive_end(struct rxw_alive *a)
{
	atomic_store_explicit(&a->mark, 0, memory_order_relaxed);
}

static inline bool rxw_is_alive(const struct rxw_alive *a)
{
	return atomic_load_explicit(&a->mark, memory_order_relaxed) == RXW_ALIVE_MARK;
}

/* `what` is a string literal, which the message contains. The expression is short: it is kept. */
#define rxw_check_alive(a, what) assert(rxw_is_alive(a) && what)

#endif
