/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions in which a thread is not cancelled. */
#ifndef COMMON_CANCEL_H
#define COMMON_CANCEL_H

#include <pthread.h>

static inline int cancel_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_restore(const int *before)
{
	int ignored;

	pthread_setcancelstate(*before, &ignored);
}

/*
 * A declaration: until the end of the block a pthread_cancel() of this thread waits. For functions that
 * are cancellation points: the thread may hold locks, roles or references, which no other one gives back.
 */
#define NOT_CANCELLED \
	const int not_cancelled __attribute__((cleanup(cancel_restore), unused)) = cancel_disable()

#endif
