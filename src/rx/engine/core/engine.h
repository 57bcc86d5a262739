/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine that endpoints share, and the services that they offer. */
#ifndef RXW_ENGINE_ENGINE_H
#define RXW_ENGINE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "base/buf.h"

struct rxw_engine {
	struct rxw_config config; /* fixed */
	struct rxw_budget memory;
	struct rxw_pool *pool; /* receive buffers, send chunks, small buffers */
	pthread_mutex_t lock;  /* endpoints */
	unsigned endpoints;
	uint64_t key[2]; /* keyed hashes */
	/*
	 * Identifiers of client connections (rx-protocol 1.6, 1.7): the epoch of new connections,
	 * the number of ids used in it, and the key of the permutation that orders them. Protected
	 * by lock.
	 */
	uint32_t epoch, named;
	uint64_t order[2];
	/*
	 * Callers that busy-poll for packets. At the limit (fixed), further callers sleep instead.
	 */
	_Atomic(unsigned) pollers;
	unsigned pollers_max;
	/*
	 * Features that the kernel lacks are logged once for all endpoints: rxw_io_options.warned.
	 */
	_Atomic(unsigned) io_warned;
};

/* The largest number of ids used in one epoch (rx-protocol 1.6). */
#define RXW_NAMES_MAX (1u << 28)

/*
 * Returns an epoch and an unpredictable id that no connection of this epoch had before: servers
 * remember connections after they end. 0 or -RXW_ESYS. No lock held.
 */
int rxw_engine_name(struct rxw_engine *e, uint32_t *epoch, uint32_t *cid);

/* A service. All fields but the counters are fixed once it is added. */
struct rxw_service {
	uint16_t id;
	char name[32];
	rxw_handler_fn handler;
	void *context;
	unsigned flags;
	unsigned workers_max, idle_ms;
	rxw_security **security;
	size_t security_count;
	uint8_t level_min; /* enum rxw_level */
	unsigned workers;  /* busy now; workers->lock */
	/*
	 * A short handler that was slow: until slow_until (ns) workers run the service's handlers.
	 * `watched` counts the calls whose preemptions are still to be checked. Relaxed.
	 */
	_Atomic(uint64_t) slow_until;
	_Atomic(unsigned) watched;
};

#endif
