/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks and condition variables under the names that programs for classic Rx use. */
#ifndef RXWIRE_CLASSIC_PTHREAD_H
#define RXWIRE_CLASSIC_PTHREAD_H

#include <pthread.h>
#include <sched.h>

#include <rx/rx_types.h>

/* The same function; glibc warns of this name, which OpenAFS's sources use. */
#ifdef __GLIBC__
#	define pthread_yield sched_yield
#endif

#ifdef RXWIRE_CLASSIC_WITH_OPENAFS
/* OpenAFS's sources rely on rx.h for these. */
#	if __has_include(<afs/pthread_nosigs.h>)
#		include <afs/pthread_nosigs.h>
#	endif
#	if __has_include(<afs/opr.h>)
#		include <afs/opr.h>
#	endif
#	if __has_include(<opr/lock.h>)
#		include <opr/lock.h>
#	endif
#endif

#ifndef RX_ENABLE_LOCKS
#	define RX_ENABLE_LOCKS 1
#endif

typedef pthread_mutex_t afs_kmutex_t;
typedef pthread_cond_t afs_kcondvar_t;

#define MUTEX_DEFAULT 0
#define CV_DEFAULT    0

#ifdef opr_mutex_init
#	define MUTEX_INIT(mutex, name, type, arg) opr_mutex_init(mutex)
#	define MUTEX_DESTROY(mutex)		   opr_mutex_destroy(mutex)
#	define MUTEX_ENTER(mutex)		   opr_mutex_enter(mutex)
#	define MUTEX_TRYENTER(mutex)		   opr_mutex_tryenter(mutex)
#	define MUTEX_EXIT(mutex)		   opr_mutex_exit(mutex)
#	define MUTEX_ASSERT(mutex)		   opr_mutex_assert(mutex)
#	define CV_INIT(cond, name, type, arg)	   opr_cv_init(cond)
#	define CV_DESTROY(cond)		   opr_cv_destroy(cond)
#	define CV_WAIT(cond, mutex)		   opr_cv_wait(cond, mutex)
#	define CV_TIMEDWAIT(cond, mutex, until)   opr_cv_timedwait(cond, mutex, until)
#	define CV_SIGNAL(cond)			   opr_cv_signal(cond)
#	define CV_BROADCAST(cond)		   opr_cv_broadcast(cond)
#else
#	define MUTEX_INIT(mutex, name, type, arg) ((void)pthread_mutex_init(mutex, NULL))
#	define MUTEX_DESTROY(mutex)		   ((void)pthread_mutex_destroy(mutex))
#	define MUTEX_ENTER(mutex)		   ((void)pthread_mutex_lock(mutex))
#	define MUTEX_TRYENTER(mutex)		   (pthread_mutex_trylock(mutex) == 0)
#	define MUTEX_EXIT(mutex)		   ((void)pthread_mutex_unlock(mutex))
#	define MUTEX_ASSERT(mutex)		   ((void)0)
#	define CV_INIT(cond, name, type, arg)	   ((void)pthread_cond_init(cond, NULL))
#	define CV_DESTROY(cond)		   ((void)pthread_cond_destroy(cond))
#	define CV_WAIT(cond, mutex)		   ((void)pthread_cond_wait(cond, mutex))
#	define CV_TIMEDWAIT(cond, mutex, until)   pthread_cond_timedwait(cond, mutex, until)
#	define CV_SIGNAL(cond)			   ((void)pthread_cond_signal(cond))
#	define CV_BROADCAST(cond)		   ((void)pthread_cond_broadcast(cond))
#endif

#endif
