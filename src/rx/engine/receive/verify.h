/* SPDX-License-Identifier: BSD-2-Clause */
/* Verifying received packets and delivering them to their calls; exchanges of security classes. */
#ifndef RXW_ENGINE_VERIFY_H
#define RXW_ENGINE_VERIFY_H

#include <stdbool.h>

struct rxw_connection;
struct rxw_effects;
struct rxw_shard;
struct rxw_verify_job;

/* Connection's lock held: wake the readers of calls that have runs to verify, or signal threads. */
void rxw_verify_wake(struct rxw_connection *c, struct rxw_effects *a);

/* No lock held in the functions below. */

/* Verify the runs of a list. This thread must not hold a receive role either. */
void rxw_verify_run(struct rxw_verify_job *jobs);
/*
 * Deliver verified runs to their connections, and free the list. `receiver`: this thread holds the
 * role of `s`; otherwise `drained` must be set.
 */
void rxw_verify_deliver(struct rxw_shard *s, struct rxw_verify_job *jobs, bool receiver,
			bool drained);
/* Both, without a role. */
void rxw_verify_and_deliver(struct rxw_connection *c, struct rxw_verify_job *jobs);
/* For struct rxw_upcalls: run a job and free it; free one that no thread can run. */
void rxw_verify_job_run(struct rxw_verify_job *job);
void rxw_verify_job_cancel(struct rxw_verify_job *job);

#endif
