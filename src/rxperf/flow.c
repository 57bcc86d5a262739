/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rxperf server: bulk calls without a thread. A thread of the library that finds that a call can go
 * on moves its data. Calls of one client take turns: all at once, a thousand of them would fill its
 * receive buffer with a few packets each.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"
#include "common/siphash.h"
#include "program/address.h"
#include "rxperf/job.h"

#define AT_ONCE 128			/* calls of one client */
#define TURN	((uint64_t)4 << 20)	/* bytes that a thread moves in a row */

struct perf_flow {
	struct perf_job job;
	struct perf_client *client;
	struct perf_flow *next; /* the lock of the server: waits, too */
};

/* A client that has flows. The lock of the server covers it. */
struct perf_client {
	struct perf_client *next; /* of the same chain */
	struct tools_address address;
	unsigned active;		 /* flows that have their turn; at least one */
	struct perf_flow *first, **last; /* flows that wait for their turn, the oldest first */
};

/* The link to the client, or to the end of its chain. */
static struct perf_client **find_client(struct perf_server *server,
					const struct tools_address *address)
{
	uint64_t hash = siphash(&address->sa, address->len, server->secret);
	struct perf_client **link = &server->clients[hash % PERF_CHAINS];

	assert(mutex_is_held(&server->lock));
	while (*link && ((*link)->address.len != address->len ||
			 memcmp(&(*link)->address.sa, &address->sa, address->len)))
		link = &(*link)->next;
	return link;
}

static void append_waiting(struct perf_client *client, struct perf_flow *flow)
{
	assert(mutex_is_held(&flow->job.server->lock));
	*(client->first ? client->last : &client->first) = flow;
	client->last = &flow->next;
}

static struct perf_flow *pop_waiting(struct perf_client *client)
{
	struct perf_flow *flow = client->first;

	assert(flow && mutex_is_held(&flow->job.server->lock));
	client->first = flow->next;
	return flow;
}

static void continue_perf_flow(rxw_call *call, unsigned events, void *arg);

/*
 * Watch the call of an active flow. Events that hold already are reported soon, on another thread.
 */
static void arm_perf_flow(struct perf_flow *flow)
{
	int watched = rxw_call_set_callback(flow->job.call, continue_perf_flow, flow);

	assert(watched == 0); /* the call is deferred */
	(void)watched;
}

/* Returns whether it has its turn at once. `fresh`: it becomes the client's, or is freed. */
static bool append_flow(struct perf_flow *flow, struct perf_client *fresh)
{
	struct perf_server *server = flow->job.server;
	struct perf_client **link;
	bool now;

	pthread_mutex_lock(&server->lock);
	link = find_client(server, &fresh->address);
	if (!*link) {
		*link = fresh;
		fresh = NULL;
	}
	flow->client = *link;
	now = flow->client->active < AT_ONCE;
	flow->client->active += now;
	if (!now)
		append_waiting(flow->client, flow);
	pthread_mutex_unlock(&server->lock);
	free(fresh);
	return now;
}

/* Remove an active flow. Returns the flow of the same client that has its turn now, or NULL. */
static struct perf_flow *remove_flow(struct perf_flow *flow)
{
	struct perf_server *server = flow->job.server;
	struct perf_client *client = flow->client, *left = NULL;
	struct perf_flow *next = NULL;

	pthread_mutex_lock(&server->lock);
	if (client->first) {
		next = pop_waiting(client);
	} else if (--client->active == 0) {
		*find_client(server, &client->address) = client->next;
		left = client;
	}
	pthread_mutex_unlock(&server->lock);
	free(left);
	return next;
}

/* Something moved, or the call has failed. */
static void continue_perf_flow(rxw_call *call, unsigned events, void *arg)
{
	struct perf_flow *flow = arg, *next;
	struct perf_job *job = &flow->job;
	enum perf_progress progress = perf_job_move(job, TURN);
	int32_t code = progress == PERF_DONE ? 0 : job->code;

	(void)events;
	if (progress == PERF_WAITS)
		return;
	if (progress == PERF_DONE && !perf_job_is_over(job)) {
		arm_perf_flow(
			flow); /* it goes on after other jobs, if a thread that verifies has any */
		return;
	}
	next = remove_flow(flow);
	perf_count_call(job->server, code);
	RXPERF_Run_reply(call, code);
	free(flow);
	if (next)
		arm_perf_flow(next);
}

bool perf_flow_begin(const struct perf_job *job)
{
	struct perf_flow *flow = calloc(1, sizeof(*flow));
	struct perf_client *client = calloc(1, sizeof(*client));

	if (!flow || !client ||
	    rxw_call_peer(job->call, &client->address.sa, &client->address.len) < 0 ||
	    rxw_call_defer(job->call) < 0) {
		free(flow);
		free(client);
		return false;
	}
	flow->job = *job;
	if (append_flow(flow, client))
		arm_perf_flow(flow);
	return true;
}
