/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside rxperf server: one call that is served. */
#ifndef PERF_JOB_H
#define PERF_JOB_H

#include "rxperf/serve.h"

struct perf_job {
	struct perf_server *server;
	rxw_call *call;
	rxperf_sizes sizes;
	uint64_t to_take, to_give; /* bytes of data */
	uint64_t in, out;	   /* bytes of data moved */
	unsigned cookie_sent;	   /* bytes */
	int32_t code;		   /* of the ABORT, once something failed */
};

enum perf_progress { PERF_FAILED = -1, PERF_WAITS, PERF_DONE };

/* All data and the cookie have moved. */
bool perf_job_is_over(const struct perf_job *job);
/*
 * Moves data of request and reply, and the cookie at the end, until `turn` bytes have moved in each
 * direction (PERF_DONE), a non-blocking call has to wait, or the call has failed: job->code.
 */
enum perf_progress perf_job_move(struct perf_job *job, uint64_t turn);
/* A call has ended with that code. */
void perf_count_call(struct perf_server *server, int32_t code);

/*
 * Serve the job without a thread (flow.c). Copies it. True: the call is deferred, and will be ended.
 * False: too many calls are deferred, or there is no memory.
 */
bool perf_flow_begin(const struct perf_job *job);

#endif
