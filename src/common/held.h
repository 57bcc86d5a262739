/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a lock is held, for assertions of functions that expect it. */
#ifndef COMMON_HELD_H
#define COMMON_HELD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * False if no thread holds the mutex. If it is true, the holder may be another thread than the
 * caller. For mutexes that are not recursive.
 */
static inline bool mutex_is_held(pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
	/* A plain read: an assertion on the path of each packet would repeat an atomic operation. */
	return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) != 0;
#else
	if (pthread_mutex_trylock(mutex))
		return true;
	pthread_mutex_unlock(mutex);
	return false;
#endif
}

/* The same for readers or a writer. */
static inline bool rwlock_is_held(pthread_rwlock_t *lock)
{
	if (pthread_rwlock_trywrlock(lock))
		return true;
	pthread_rwlock_unlock(lock);
	return false;
}
#endif
