/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that any thread may change. Each operation is sequentially consistent. */
#ifndef RXWIRE_CLASSIC_ATOMIC_H
#define RXWIRE_CLASSIC_ATOMIC_H

#include <rx/rx_types.h>

typedef struct {
	int var;
} rx_atomic_t;

static inline void rx_atomic_set(rx_atomic_t *atomic, int value)
{
	__atomic_store_n(&atomic->var, value, __ATOMIC_SEQ_CST);
}

static inline int rx_atomic_read(rx_atomic_t *atomic)
{
	return __atomic_load_n(&atomic->var, __ATOMIC_SEQ_CST);
}

static inline int rx_atomic_add_and_read(rx_atomic_t *atomic, int change)
{
	return __atomic_add_fetch(&atomic->var, change, __ATOMIC_SEQ_CST);
}

static inline void rx_atomic_add(rx_atomic_t *atomic, int change)
{
	(void)rx_atomic_add_and_read(atomic, change);
}

static inline void rx_atomic_sub(rx_atomic_t *atomic, int change)
{
	(void)__atomic_sub_fetch(&atomic->var, change, __ATOMIC_SEQ_CST);
}

static inline int rx_atomic_inc_and_read(rx_atomic_t *atomic)
{
	return rx_atomic_add_and_read(atomic, 1);
}

static inline void rx_atomic_inc(rx_atomic_t *atomic)
{
	rx_atomic_add(atomic, 1);
}

static inline int rx_atomic_dec_and_read(rx_atomic_t *atomic)
{
	return rx_atomic_add_and_read(atomic, -1);
}

static inline void rx_atomic_dec(rx_atomic_t *atomic)
{
	rx_atomic_add(atomic, -1);
}

#endif
