/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that works in the background until it is told to stop. */
#ifndef COMMON_BACKGROUND_H
#define COMMON_BACKGROUND_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/held.h"

/*
 * A part of the structure that the thread works on. Other members of that structure may use the lock. The structure must
 * not move from start_background() to stop_background().
 */
struct background {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	_Atomic bool stop; /* written with the lock held */
	pthread_t thread;
};

/* Begins run(arg) on a thread. 0, or an error number: nothing is to be stopped then. */
static inline int start_background(struct background *background, void *(*run)(void *arg),
				   void *arg)
{
	int error;

	atomic_init(&background->stop, false);
	pthread_mutex_init(&background->lock, NULL);
	monotonic_cond_init(&background->wake);
	error = pthread_create(&background->thread, NULL, run, arg);
	if (!error)
		return 0;
	pthread_cond_destroy(&background->wake);
	pthread_mutex_destroy(&background->lock);
	return error;
}

/* Wakes the thread. The caller holds the lock, under which it has changed what the thread waits for. */
static inline void wake_background(struct background *background)
{
	assert(mutex_is_held(&background->lock));
	pthread_cond_signal(&background->wake);
}

/* For the thread, which holds the lock. Sleeps until it is woken, or until this monotonic_ns(); UINT64_MAX: no limit. */
static inline void sleep_in_background(struct background *background, uint64_t until)
{
	assert(mutex_is_held(&background->lock));
	if (until == UINT64_MAX)
		pthread_cond_wait(&background->wake, &background->lock);
	else
		monotonic_wait(&background->wake, &background->lock, until);
}

/* Tells the thread to stop, waits for its end and destroys the lock. Any other thread, once. */
static inline void stop_background(struct background *background)
{
	assert(!pthread_equal(pthread_self(), background->thread));
	pthread_mutex_lock(&background->lock);
	atomic_store(&background->stop, true);
	wake_background(background);
	pthread_mutex_unlock(&background->lock);
	pthread_join(background->thread, NULL);
	pthread_cond_destroy(&background->wake);
	pthread_mutex_destroy(&background->lock);
}
#endif
