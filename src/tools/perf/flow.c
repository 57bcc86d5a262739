/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rxperf server: bulk calls without a thread. A thread of the library that finds that a call can go on moves
 * its data. Calls of one client take turns: all at once, a thousand of them would fill its receive buffer with
 * a few packets each.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/address.h"
#include "tools/perf/job.h"

#define AT_ONCE 128			/* calls of one client */
#define TURN	((uint64_t)4 << 20)	/* bytes that a thread moves in a row */

struct perf_flow {
	struct perf_job job;
	struct tools_address client;
	struct perf_flow *next, **link; /* the lock of the server */
	bool active;			/* the same lock: it has its turn */
};

static bool has_client(const struct perf_flow *flow, const struct tools_address *client)
{
	return flow->client.len == client->len && !memcmp(&flow->client.sa, &client->sa, client->len);
}

static void go_on(rxw_call *call, unsigned events, void *arg);

/* Without the lock: the flow is active. Events that hold already are reported soon, on another thread. */
static void start_flow(struct perf_flow *flow)
{
	int watched = rxw_call_set_callback(flow->job.call, go_on, flow);

	assert(watched == 0); /* the call is deferred */
	(void)watched;
}

/* Returns whether it has its turn at once. */
static bool append_flow(struct perf_server *server, struct perf_flow *flow)
{
	struct perf_flow **link = &server->flows;
	unsigned active = 0;
	bool now;

	pthread_mutex_lock(&server->lock);
	for (; *link; link = &(*link)->next)
		active += (*link)->active && has_client(*link, &flow->client);
	*link = flow;
	flow->link = link;
	now = flow->active = active < AT_ONCE;
	pthread_mutex_unlock(&server->lock);
	return now;
}

/* Returns the flow of the same client that has its turn now, or NULL. */
static struct perf_flow *remove_flow(struct perf_server *server, struct perf_flow *flow)
{
	struct perf_flow *next;

	pthread_mutex_lock(&server->lock);
	*flow->link = flow->next;
	if (flow->next)
		flow->next->link = flow->link;
	for (next = server->flows; next; next = next->next)
		if (!next->active && has_client(next, &flow->client))
			break;
	if (next)
		next->active = true;
	pthread_mutex_unlock(&server->lock);
	return next;
}

/* Something moved, or the call has failed. */
static void go_on(rxw_call *call, unsigned events, void *arg)
{
	struct perf_flow *flow = arg, *next;
	struct perf_job *job = &flow->job;
	enum perf_progress progress = perf_job_move(job, TURN);
	int32_t code = progress == PERF_DONE ? 0 : job->code;

	(void)events;
	if (progress == PERF_WAITS)
		return;
	if (progress == PERF_DONE && !perf_job_is_over(job)) {
		start_flow(flow); /* after the other calls of this thread */
		return;
	}
	next = remove_flow(job->server, flow);
	perf_count_call(job->server, code);
	RXPERF_Run_reply(call, code);
	free(flow);
	if (next)
		start_flow(next);
}

bool perf_flow_begin(const struct perf_job *job)
{
	struct perf_flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return false;
	flow->job = *job;
	if (rxw_call_peer(job->call, &flow->client.sa, &flow->client.len) < 0 ||
	    rxw_call_defer(job->call) < 0) {
		free(flow);
		return false;
	}
	if (append_flow(job->server, flow))
		start_flow(flow);
	return true;
}
