/* SPDX-License-Identifier: BSD-2-Clause */
#include "client/net/pathway.h"

#include <assert.h>
#include <errno.h>

#include "client/net/server.h"
#include "common/clock.h"

#define EVENTS	16u
#define ASK_NS	((uint64_t)NS_PER_S) /* a path that carries nothing is asked again then, or: */
#define LOST_NS ((uint64_t)40 * NS_PER_MS) /* beside two round trips, for an answer */
#define WAIT_NS \
	((uint64_t)20 * NS_PER_MS) /* packets, and a cancel, are looked for after this time */
#define OWNER_NS    \
	((uint64_t) \
		 NS_PER_S) /* the first path says within this time whose it is, if it is not silent */

/* ---- calls ---- */

static rxw_call *begin_on_pathway(struct cl_pathways *ways, struct cl_pathway *way, void *arg)
{
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .queue = ways->queue,
					   .arg = arg,
					   .events = ways->ops->events | RXW_EVENT_DONE};
	rxw_call *call;

	if (!way->lane)
		way->lane = cl_path_take_lane(way->path, ways->credential);
	if (!way->lane || rxw_connpool_begin(way->lane->pool, &options, &call) < 0)
		return NULL;
	return call;
}

rxw_call *cl_ways_begin(struct cl_pathways *ways, unsigned path, unsigned range)
{
	assert(path < ways->count && range < CL_RANGES && !ways->calls[range]);
	ways->packets[range] = 0;
	ways->calls[range] = begin_on_pathway(ways, &ways->list[path], &ways->calls[range]);
	return ways->calls[range];
}

struct rxw_call_statistics cl_ways_statistics(struct cl_pathways *ways, rxw_call *call)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};

	rxw_call_stats(call, &stats);
	if (stats.wide)
		cl_spread_widen(&ways->spread);
	return stats;
}

/* Otherwise the server would send their bytes for a while, before those of new calls. */
static void end_lost_calls(const struct cl_pathways *ways, struct cl_pathway *way)
{
	while (way->lost_count > 0)
		rxw_rpc_end(way->lost[--way->lost_count], RXW_USER_ABORT, &RXAFS_interface,
			    ways->ops->transfer);
}

void cl_ways_lose(struct cl_pathways *ways, unsigned range)
{
	struct cl_pathway *way = &ways->list[ways->spread.ranges[range].path];

	if (way->lost_count == CL_CALLS_OF_PATH)
		end_lost_calls(ways, way);
	way->lost[way->lost_count++] = ways->calls[range];
	ways->calls[range] = NULL;
	cl_spread_end(&ways->spread, range);
}

bool cl_ways_flying(const struct cl_pathways *ways)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (ways->calls[i])
			return true;
	return false;
}

bool cl_ways_live(const struct cl_pathways *ways)
{
	for (unsigned i = 0; i < ways->count; i++)
		if (ways->spread.paths[i].state != CL_PATH_OUT)
			return true;
	return false;
}

/* ---- paths that are out ---- */

static void end_question(const struct cl_pathways *ways, struct cl_pathway *way)
{
	if (way->question)
		rxw_rpc_end(way->question, RXW_USER_ABORT, &RXAFS_interface, ways->ops->question);
	way->question = NULL;
}

static void begin_question(struct cl_pathways *ways, struct cl_pathway *way, uint64_t now)
{
	end_question(ways, way);
	way->asked = now;
	way->passed = false;
	way->question = begin_on_pathway(ways, way, way);
	if (way->question && ways->ops->ask(ways->arg, way->question) == 0)
		rxw_call_send_end(way->question);
}

/*
 * A private address may lead to another server, with a file of this number and state. So the first path says when its server has started
 * before others join; unless it is silent, as ordinary calls would then go over the others, too.
 */
static bool is_first_known(const struct cl_pathways *ways, uint64_t now)
{
	return cl_load_answered(ways->list[0].path) > ways->began ||
	       (ways->spread.paths[0].state != CL_PATH_LIVE && now > ways->began + OWNER_NS);
}

static void join_answered_paths(struct cl_pathways *ways, uint64_t now)
{
	for (unsigned i = 0; i < ways->count; i++) {
		struct cl_pathway *way = &ways->list[i];

		if (!way->passed || ways->spread.paths[i].state != CL_PATH_OUT ||
		    cl_load_answered(way->path) < way->out || !is_first_known(ways, now))
			continue;
		way->passed = false;
		if (cl_load_is_strange(way->path))
			continue;
		end_lost_calls(ways, way);
		cl_spread_join(&ways->spread, i, now, cl_path_rtt(way->path));
	}
}

static void take_answer(struct cl_pathways *ways, struct cl_pathway *way, rxw_call *call)
{
	/* It may have ended since. */
	if (!call || call != way->question || !(rxw_call_events(call) & RXW_EVENT_DONE))
		return;
	cl_ways_statistics(ways, call);
	way->passed = ways->ops->confirm(ways->arg, call);
	if (rxw_rpc_end(call, way->passed ? 0 : RXW_USER_ABORT, &RXAFS_interface,
			ways->ops->question))
		way->passed = false;
	way->question = NULL;
}

/* Its answer would have come before that of a later probe: it was lost. */
static bool is_question_lost(const struct cl_pathway *way, uint64_t now)
{
	return way->question && cl_load_answered(way->path) > way->asked &&
	       now > way->asked + 2 * cl_path_rtt(way->path) + LOST_NS;
}

static void note_path_out(struct cl_pathway *way, uint64_t now)
{
	if (!way->was_live && way->out)
		return;
	way->out = now;
	way->passed = false;
	if (!way->was_live)
		return;
	way->was_live = false;
	way->deaths++;
	cl_path_dies(way->path);
}

/* The prober asks whether they live. Meanwhile they are asked whether they have the file. */
static void ask_dead_paths(struct cl_pathways *ways, uint64_t now)
{
	for (unsigned i = 0; i < ways->count; i++) {
		struct cl_pathway *way = &ways->list[i];

		if (ways->spread.paths[i].state != CL_PATH_OUT) {
			way->was_live = true;
			continue;
		}
		note_path_out(way, now);
		if (way->gone)
			continue;
		if (cl_load_answered(way->path) < way->out)
			cl_load_want(way->path);
		if (way->asked < way->out || is_question_lost(way, now) ||
		    (!way->question && now >= way->asked + ASK_NS))
			begin_question(ways, way, now);
	}
}

/* ---- which paths there are ---- */

static void release_pathway(struct cl_pathways *ways, unsigned i)
{
	struct cl_pathway *way = &ways->list[i];
	const struct cl_spread_path *state = &ways->spread.paths[i];

	end_question(ways, way);
	end_lost_calls(ways, way);
	cl_server_put_lane(ways->server, way->lane);
	cl_path_note(way->path, state->rate, state->bytes, state->repeated);
	cl_path_put(way->path);
}

/* One that carries nothing any more makes room. NULL: there is none now. */
static struct cl_pathway *room_for_pathway(struct cl_pathways *ways)
{
	if (ways->count < (ways->most && ways->most < CL_PATHS ? ways->most : CL_PATHS))
		return &ways->list[ways->count++];
	for (unsigned i = 0; i < ways->count; i++) {
		if (!ways->list[i].gone)
			continue;
		if (ways->spread.paths[i].flying) {
			ways->seen = 0; /* in the next turn */
			continue;
		}
		release_pathway(ways, i);
		ways->spread.paths[i] = (struct cl_spread_path){.state = CL_PATH_OUT};
		return &ways->list[i];
	}
	return NULL;
}

/* Takes over the reference, or drops it. */
static void add_pathway(struct cl_pathways *ways, struct cl_path *path)
{
	struct cl_pathway *new = NULL;
	bool known = false;

	for (unsigned i = 0; i < ways->count; i++)
		known = known || ways->list[i].path == path;
	if (!known)
		new = room_for_pathway(ways);
	if (new)
		*new = (struct cl_pathway){.path = path};
	else
		cl_path_put(path);
}

static void leave_pathway(struct cl_pathways *ways, unsigned i)
{
	struct cl_pathway *way = &ways->list[i];

	way->gone = true;
	cl_path_dies(way->path);
	end_question(ways, way);
	if (ways->spread.paths[i].state != CL_PATH_OUT)
		cl_spread_leave(&ways->spread, i);
}

void cl_ways_list(struct cl_pathways *ways)
{
	struct cl_path *list[CL_PATHS];
	unsigned count;

	if (!cl_paths_changed(ways->server, &ways->seen))
		return;
	count = cl_paths_take(ways->server, list);
	for (unsigned i = 0; i < ways->count; i++)
		if (!ways->list[i].gone && cl_path_is_gone(ways->list[i].path))
			leave_pathway(ways, i);
	for (unsigned i = 0; i < count; i++)
		add_pathway(ways, list[i]);
}

/* ---- turns ---- */

/* Packets behind a lost one move no bytes until that one is repeated, but show that the path lives. */
static void hear_paths(struct cl_pathways *ways, uint64_t now)
{
	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct rxw_call_statistics stats;

		if (!ways->calls[i])
			continue;
		stats = cl_ways_statistics(ways, ways->calls[i]);
		stats.packets_received += stats.acks_received;
		if (stats.packets_received > ways->packets[i])
			cl_spread_hear(&ways->spread, ways->spread.ranges[i].path, now);
		ways->packets[i] = stats.packets_received;
	}
}

/* While this thread did not run, or was busy, what has arrived may not have been received: that is no silence of the paths. */
static void excuse_lateness(struct cl_pathways *ways, uint64_t now)
{
	uint64_t late = ways->turned ? now - ways->turned - ways->waited : 0;

	if (late > WAIT_NS)
		cl_spread_excuse(&ways->spread, late - WAIT_NS, now);
	ways->turned = now;
	ways->waited = 0;
}

static void lose_dead_calls(struct cl_pathways *ways)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (ways->calls[i] &&
		    ways->spread.paths[ways->spread.ranges[i].path].state == CL_PATH_OUT)
			ways->ops->lose(ways->arg, i);
}

void cl_ways_prepare(struct cl_pathways *ways)
{
	uint64_t now = cl_net_now();

	excuse_lateness(ways, now);
	cl_ways_list(ways);
	rxw_batch_begin();
	ask_dead_paths(ways, now);
	join_answered_paths(ways, now);
	ways->ops->begin(ways->arg, now);
	rxw_batch_end();
	hear_paths(ways, now);
}

static int check_transfer_end(const struct cl_pathways *ways, const struct cl_caller *caller,
			      uint64_t now)
{
	const struct cl_net *net = ways->server->net;

	if (cl_cancel_raised(caller->cancel) || atomic_load(&net->cancelled))
		return -EINTR;
	if (caller->deadline && now >= caller->deadline)
		return -ETIMEDOUT;
	return net->soft_ms != UINT32_MAX && now > ways->moved + (uint64_t)net->soft_ms * NS_PER_MS
		       ? -ESTALE
		       : 0;
}

static void take_way_event(struct cl_pathways *ways, const struct rxw_queue_event *event,
			   uint64_t now)
{
	uintptr_t at = (uintptr_t)event->arg;

	if (at >= (uintptr_t)ways->list && at < (uintptr_t)(ways->list + CL_PATHS)) {
		take_answer(ways, event->arg, event->call);
		join_answered_paths(ways, now);
	} else if (at >= (uintptr_t)ways->calls && at < (uintptr_t)(ways->calls + CL_RANGES)) {
		rxw_call **call = event->arg;

		if (*call && *call == event->call && ways->ops->use)
			ways->ops->use(ways->arg, (unsigned)(call - ways->calls), now);
	}
}

int cl_ways_wait(struct cl_pathways *ways, const struct cl_caller *caller)
{
	struct rxw_queue_event events[EVENTS];
	uint64_t now = cl_net_now(), next = cl_spread_tick(&ways->spread, now);
	int count;

	lose_dead_calls(ways);
	if (next > now + WAIT_NS)
		next = now + WAIT_NS;
	next = now + ((next - now) / NS_PER_MS + 1) * NS_PER_MS;
	count = rxw_queue_next(ways->queue, events, EVENTS, (int)((next - now) / NS_PER_MS));
	ways->waited = (cl_net_now() < next ? cl_net_now() : next) - now;
	for (int i = 0; i < count; i++)
		take_way_event(ways, &events[i], cl_net_now());
	return check_transfer_end(ways, caller, cl_net_now());
}

/* ---- beginning and end ---- */

/* The first range may be long if the server is known to have large windows: by a call that is not sent. */
static void look_at_server(struct cl_pathways *ways)
{
	rxw_call *call = begin_on_pathway(ways, &ways->list[0], NULL);

	if (!call)
		return;
	cl_ways_statistics(ways, call);
	rxw_rpc_end(call, RXW_USER_ABORT, &RXAFS_interface, ways->ops->transfer);
}

int cl_ways_start(struct cl_pathways *ways)
{
	struct cl_path *first = ways->list[0].path;
	uint64_t rtt = cl_path_rtt(first);

	assert(ways->count > 0);
	if (rxw_queue_create(ways->server->net->engine, NULL, &ways->queue) < 0)
		return -ENOMEM;
	ways->began = ways->moved = cl_net_now();
	look_at_server(ways);
	cl_path_lives(first, rtt);
	cl_spread_join(&ways->spread, 0, ways->began, rtt);
	cl_load_want(first);
	return 0;
}

void cl_ways_report(const struct cl_pathways *ways, struct cl_path_report reports[CL_PATHS])
{
	for (unsigned i = 0; i < ways->count; i++) {
		const struct cl_spread_path *state = &ways->spread.paths[i];

		cl_path_describe(ways->list[i].path, &reports[i]);
		reports[i].state = state->state;
		reports[i].bytes = state->bytes;
		reports[i].repeated = state->repeated;
		reports[i].rtt_ns = state->rtt;
		reports[i].rate = state->rate;
		reports[i].deaths = ways->list[i].deaths;
	}
}

static bool is_silent_state(enum cl_path_state state)
{
	return state == CL_PATH_OUT || state == CL_PATH_SUSPECT;
}

/* The first path that is alive is used for calls from now on, if that in use is not, or may not be. */
static void prefer_live_path(const struct cl_pathways *ways)
{
	unsigned i = 0;

	while (i < ways->count && is_silent_state(ways->spread.paths[i].state))
		i++;
	if (i > 0 && i < ways->count)
		cl_server_prefer(ways->server, &ways->list[i].path->way.sa);
}

void cl_ways_end(struct cl_pathways *ways, struct cl_path_report *reports, unsigned *count)
{
	assert(!cl_ways_flying(ways));
	*count = 0;
	if (ways->queue) {
		prefer_live_path(ways);
		cl_ways_report(ways, reports);
		*count = ways->count;
	}
	while (ways->count > 0)
		release_pathway(ways, --ways->count);
	if (ways->queue)
		rxw_queue_destroy(ways->queue);
	cl_credential_unref(ways->credential);
}
