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
 * All fields by `lock`, but the threads' handles and the counter. Threads start when jobs wait and
 * none is idle.
 */
struct rxw_verifier {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct rxw_verify_job *head, **tail;
	unsigned turns, auths; /* that wait */
	unsigned threads, idle, most;
	bool stop;
	_Atomic(uint64_t) contended; /* acquisitions of lock that waited; relaxed */
	pthread_t thread[RXW_VERIFY_THREADS];
};

int rxw_verifier_init(struct rxw_verifier *v);
/* No more jobs; what waits is done, then the threads end. */
void rxw_verifier_stop(struct rxw_verifier *v);
void rxw_verifier_fini(struct rxw_verifier *v);

#endif
