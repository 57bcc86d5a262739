/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of engines, which endpoints share; and what fork() changes. */
#include <stdlib.h>
#include <string.h>

#include "common/cancel.h"
#include "common/cpus.h"
#include "engine/receive/rx.h"
#include "engine/sched/files.h"
#include "engine/sched/sched.h"
#include "engine/objects.h"
#include "engine/core/config.h"

#define WIDE_PART 3 /* of the memory, for wide windows: the rest of its first half is for others */

/*
 * The only thread of the child. It may have been a thread of the library, or have collected packets
 * that the parent sends.
 */
static void note_child(void)
{
	atomic_fetch_add_explicit(&rxw_forks, 1, memory_order_relaxed);
	rxw_set_library_thread(NULL);
	rxw_set_receiving(NULL);
	rxw_clock_cache_set(0);
	rxw_worker_forget();
	rxw_callback_forget();
	rxw_tx_forget();
	rxw_role_forget();
}

static int watch_result;

static void register_child_handler(void)
{
	watch_result = pthread_atfork(NULL, NULL, note_child) ? -RXW_ENOMEM : 0;
}

/* Counts in every child from now on, and forgets there what its thread did. 0 or -RXW_ENOMEM. */
static int watch_all_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_child_handler);
	return watch_result;
}

/*
 * One part of the pool for each CPU, of at least 8 MiB, since each leases some. Together they keep
 * no more idle buffers than a few CPUs need.
 */
static struct rxw_pool *make_pool(struct rxw_budget *memory, unsigned cpus)
{
	unsigned parts = cpus < RXW_POOL_STRIPES ? cpus : RXW_POOL_STRIPES;

	if (parts > memory->limit >> 23)
		parts = memory->limit >> 23 ? (unsigned)(memory->limit >> 23) : 1;
	return rxw_pool_create_spread(memory, 1u << 20, parts > 4 ? 64 : 256 / parts, parts);
}

int rxw_engine_create(const struct rxw_config *config, rxw_engine **engine)
{
	struct rxw_engine *e;
	int r;
	NOT_CANCELLED;

	if (!engine)
		return -RXW_EINVAL;
	*engine = NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -RXW_ENOMEM;
	e->generation = rxw_generation();
	rxw_config_init(&e->config, sizeof(e->config));
	r = watch_all_forks();
	if (r)
		goto fail;
	r = config ? rxw_config_adopt(&e->config, config) : 0;
	if (r)
		goto fail;
	atomic_init(&e->log_level, (unsigned)e->config.log_level);
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->thread_lock, NULL);
	e->cpus = cpus_allowed();
	if (sched_getaffinity(0, sizeof(e->allowed), &e->allowed) < 0)
		memset(&e->allowed, 0xff,
		       sizeof(e->allowed)); /* the machine has more CPUs than the set */
	/* Half of them: each polling caller may keep one from the threads that it waits for. */
	e->pollers_max = rxw_half_of_cpus(e);
	rxw_budget_init(&e->memory, (int64_t)e->config.memory);
	rxw_budget_init(&e->wide, (int64_t)(e->config.memory / WIDE_PART));
	r = -RXW_ESYS;
	if (rxw_random(e->key, sizeof(e->key)) || rxw_engine_draw_epoch(e))
		goto fail;
	r = -RXW_ENOMEM;
	e->pool = make_pool(&e->memory, e->cpus);
	if (!e->pool)
		goto fail;
	rxw_alive_begin(&e->alive);
	*engine = e;
	return 0;
fail:
	free(e);
	return r;
}

int rxw_engine_destroy(rxw_engine *engine)
{
	unsigned endpoints;
	bool queues;

	if (!engine)
		return 0;
	rxw_check_alive(&engine->alive, "the engine was destroyed before");
	if (rxw_engine_inherited(engine)) {
		rxw_listeners_forget(engine); /* this process's descriptors */
		return 0;
	}
	if (rxw_on_library_thread(NULL) || rxw_must_not_wait())
		return -RXW_EDEADLK;
	pthread_mutex_lock(&engine->lock);
	endpoints = engine->endpoints;
	queues = engine->queues;
	pthread_mutex_unlock(&engine->lock);
	if (endpoints || queues) {
		rxw_log(engine, RXW_LOG_INFO, "an engine is still in use: %u endpoints%s",
			endpoints, queues ? ", and queues" : "");
		return -RXW_ESTATE;
	}
	rxw_alive_end(&engine->alive);
	rxw_files_destroy(engine->files);
	rxw_pool_destroy(engine->pool);
	pthread_mutex_destroy(&engine->lock);
	pthread_mutex_destroy(&engine->thread_lock);
	free(engine);
	return 0;
}

size_t rxw_engine_memory(const rxw_engine *engine, size_t *peak)
{
	if (!engine)
		return 0;
	if (peak)
		*peak = (size_t)atomic_load(&engine->memory.peak);
	return (size_t)atomic_load(&engine->memory.used);
}
