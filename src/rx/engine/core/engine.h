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
	 * Names of client connections (rx-protocol 1.6, 1.7): the epoch of those to come, how many
	 * have it, and the order in which they get their ids. By lock.
	 */
	uint32_t epoch, named;
	uint64_t order[2];
	/*
	 * Callers that receive for themselves and wait for what comes soon; with more of them than
	 * that (fixed), none looks instead of sleeping.
	 */
	_Atomic(unsigned) waiting;
	unsigned lookers_max;
	/* What the kernel refuses is logged once for all endpoints: rxw_io_options.warned. */
	_Atomic(unsigned) io_warned;
};

/* More ids than these no epoch is used for (rx-protocol 1.6). */
#define RXW_NAMES_MAX (1u << 28)

/*
 * An epoch, and an id that nobody can guess and that no connection of this epoch had before: servers
 * remember those that are gone. 0 or -RXW_ESYS. No lock held.
 */
int rxw_engine_name(struct rxw_engine *e, uint32_t *epoch, uint32_t *cid);

/* A service: fixed once added, but for the counters. */
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
	 * Short handlers that take long: until then (ns) workers run them; and how many more are
	 * watched closely. Relaxed.
	 */
	_Atomic(uint64_t) slow_until;
	_Atomic(unsigned) watched;
};

#endif
