/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of an endpoint that verifies packets of slow security classes, in order of arrival. */
#ifndef RXW_ENGINE_VERIFY_H
#define RXW_ENGINE_VERIFY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RXW_VERIFY_QUEUE 1024 /* runs that may wait */

struct rxw_verify_job;

/*
 * All fields by `lock`, but the thread's handle and the counter. The thread starts with the first
 * job.
 */
struct rxw_verifier {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct rxw_verify_job *head, **tail;
	unsigned count;
	bool started, stop;
	_Atomic(uint64_t) contended; /* acquisitions of lock that waited; relaxed */
	pthread_t thread;
};

int rxw_verifier_init(struct rxw_verifier *v);
/* No more jobs; what waits is done, then the thread ends. */
void rxw_verifier_stop(struct rxw_verifier *v);
void rxw_verifier_fini(struct rxw_verifier *v);

#endif
