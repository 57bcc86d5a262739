/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of an endpoint that do the work of security classes: bulk to verify, callbacks that seal
 * bulk, exchanges. */
#ifndef RXW_ENGINE_VERIFY_H
#define RXW_ENGINE_VERIFY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RXW_VERIFY_QUEUE   1024 /* turns at runs and callbacks of calls that may wait */
#define RXW_VERIFY_AUTH	   256	/* exchanges that may wait */
#define RXW_VERIFY_THREADS 32

struct rxw_verify_job;

/*
 * All fields by `lock`, but the threads' handles, `short_of` and the counter. Threads start when jobs
 * wait and none is idle: who queues a job says so, mostly with locks held, and whoever gets to
 * rxw_verifier_grow() without makes one.
 */
struct rxw_verifier {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct rxw_verify_job *head, **tail;
	unsigned turns, auths; /* that wait */
	unsigned threads, idle, most;
	unsigned coming; /* threads that were made, or are being made, and took no job yet */
	bool starting;	 /* one is being made, without the lock */
	bool stop;
	_Atomic(bool) short_of;	     /* a job waits for a thread that is yet to be made */
	_Atomic(uint64_t) contended; /* acquisitions of lock that waited; relaxed */
	pthread_t thread[RXW_VERIFY_THREADS];
};

int rxw_verifier_init(struct rxw_verifier *v);
/* No more jobs; what waits is done, then the threads end. */
void rxw_verifier_stop(struct rxw_verifier *v);
void rxw_verifier_fini(struct rxw_verifier *v);

#endif
