/* SPDX-License-Identifier: BSD-2-Clause */
/* Detection of fork(). */
#include <pthread.h>

#include "engine/send/dispatch.h"
#include "engine/core/events.h"
#include "engine/core/fork.h"
#include "engine/receive/rx.h"
#include "engine/sched/sched.h"

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

static void watch_forks(void)
{
	watch_result = pthread_atfork(NULL, NULL, note_child) ? -RXW_ENOMEM : 0;
}

int rxw_fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	return watch_result;
}
