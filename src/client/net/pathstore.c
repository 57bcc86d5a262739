/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread sends a file over several paths: it begins the calls that the scheduler asks for, fills their send queues, and notes what
 * was acknowledged. All ranges belong to one session of the server, and only its end makes a version of them. So a range that comes late,
 * from a path that has died, changes nothing (P-034, P-035).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/queue.h>

#include "client/net/pathstore.h"
#include "client/net/server.h"
#include "client/net/tries.h"
#include "common/clock.h"

#define SLICES	    64u
#define EVENTS	    16u
#define PIECE	    262144u /* bytes that are reserved at a time */
#define PROBE_NS    ((uint64_t)250 * NS_PER_MS)
#define PATIENT_NS  ((uint64_t)5 * NS_PER_S) /* a path that is out for longer is asked less often: */
#define SELDOM_NS   ((uint64_t)2 * NS_PER_S)
#define WAIT_NS	    ((uint64_t)20 * NS_PER_MS) /* acknowledgements are looked at after this time */
#define SPAN_NS	    ((uint64_t)200 * NS_PER_MS)
#define RANGE_LEAST ((uint64_t)1 << 20)
#define RANGE_MOST  ((uint64_t)64 << 20) /* that the server takes */
#define BUSY_MOST   16u			 /* ranges that a busy server refuses */

struct lane {
	struct cl_path *path; /* a reference */
	struct cl_lane *lane; /* likewise, once it is needed */
	rxw_call *probe;      /* in progress, or NULL */
	uint64_t probed, out; /* when the probe began; since when the path is out */
	bool was_live, gone;
	unsigned deaths;
};

struct flight {
	rxw_call *call;		/* NULL: unused */
	uint64_t offset, given; /* the first byte; the next one for the send queue */
	uint64_t packets;	/* that have come from the server */
	bool ended;		/* its stream */
};

struct pouring {
	struct cl_wide_store *store;
	struct cl_server *server;
	struct cl_credential *credential;
	rxw_queue *queue;
	struct cl_spread spread;
	struct lane lanes[CL_PATHS];
	struct flight flights[CL_RANGES]; /* by range of the scheduler */
	unsigned path_count;
	uint64_t paths_seen; /* of cl_paths_changed() */
	uint64_t moved;	     /* when the last bytes were acknowledged */
	unsigned busy;	     /* refused ranges */
	int result;	     /* of give(), or -EOPNOTSUPP */
};

/* ---- paths ---- */

/* Takes over the reference, or drops it. */
static void add_lane(struct pouring *p, struct cl_path *path)
{
	unsigned most = p->store->most && p->store->most < CL_PATHS ? p->store->most : CL_PATHS;
	bool known = p->path_count >= most;

	for (unsigned i = 0; i < p->path_count; i++)
		known = known || p->lanes[i].path == path;
	if (known)
		cl_path_put(path);
	else
		p->lanes[p->path_count++].path = path;
}

/* That in use for ordinary calls is the first one. */
static void list_lanes(struct pouring *p)
{
	struct cl_path *list[CL_PATHS];
	unsigned count;

	cl_paths_changed(p->server, &p->paths_seen);
	count = cl_paths_take(p->server, list);
	for (unsigned i = 0; i < count; i++)
		add_lane(p, list[i]);
}

/* A call on a path, whose events come with `arg`. NULL: not now. */
static rxw_call *begin_on_lane(struct pouring *p, struct lane *lane, void *arg)
{
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .queue = p->queue,
					   .arg = arg,
					   .events = RXW_EVENT_WRITE | RXW_EVENT_DONE};
	rxw_call *call;

	if (!lane->lane)
		lane->lane = cl_path_take_lane(lane->path, p->credential);
	if (!lane->lane || rxw_connpool_begin(lane->lane->pool, &options, &call) < 0)
		return NULL;
	return call;
}

/* What the transport knows. One call fills a path if the server has large windows. */
static struct rxw_call_statistics read_pour_statistics(struct pouring *p, rxw_call *call)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};

	rxw_call_stats(call, &stats);
	if (stats.wide)
		cl_spread_widen(&p->spread);
	return stats;
}

static rxw_code end_range_call(rxw_call *call, rxw_code code)
{
	return rxw_rpc_end(call, code, &RXAFS_interface, RXAFS_FN_StoreRange);
}

/* ---- probes: an empty range, which only the server of the session takes ---- */

static void end_lane_probe(struct lane *lane)
{
	if (lane->probe)
		end_range_call(lane->probe, RXW_USER_ABORT);
	lane->probe = NULL;
}

static void begin_lane_probe(struct pouring *p, struct lane *lane, uint64_t now)
{
	end_lane_probe(lane);
	lane->probed = now;
	lane->probe = begin_on_lane(p, lane, lane);
	if (lane->probe && (StartRXAFS_StoreRange(lane->probe, &p->store->session, 0, 0) != 0 ||
			    rxw_call_send_end(lane->probe) < 0))
		end_lane_probe(lane);
}

static void take_lane_probe(struct pouring *p, struct lane *lane, uint64_t now)
{
	struct rxw_call_statistics stats;
	unsigned number = (unsigned)(lane - p->lanes);
	uint64_t taken, rtt;
	rxw_code code;

	if (!(rxw_call_events(lane->probe) & RXW_EVENT_DONE))
		return;
	stats = read_pour_statistics(p, lane->probe);
	rtt = stats.rtt_ns ? stats.rtt_ns : now - lane->probed;
	code = EndRXAFS_StoreRange(lane->probe, &taken);
	code = end_range_call(lane->probe, code);
	lane->probe = NULL;
	if (code || p->spread.paths[number].state != CL_PATH_OUT)
		return;
	cl_path_lives(lane->path, rtt);
	cl_spread_join(&p->spread, number, now, rtt);
}

static void probe_dead_lanes(struct pouring *p, uint64_t now)
{
	for (unsigned i = 0; i < p->path_count; i++) {
		struct lane *lane = &p->lanes[i];
		uint64_t pause = now < lane->out + PATIENT_NS ? PROBE_NS : SELDOM_NS;

		if (p->spread.paths[i].state != CL_PATH_OUT) {
			lane->was_live = true;
			continue;
		}
		if (lane->was_live) {
			lane->was_live = false;
			lane->deaths++;
			lane->out = now;
			cl_path_dies(lane->path);
		}
		if (!lane->out)
			lane->out = now;
		if (!lane->gone && now >= lane->probed + pause)
			begin_lane_probe(p, lane, now);
	}
}

/* Addresses of this machine or of the server came or went: paths that are gone carry nothing any more, late ones join. */
static void follow_lane_changes(struct pouring *p)
{
	if (!cl_paths_changed(p->server, &p->paths_seen))
		return;
	list_lanes(p);
	for (unsigned i = 0; i < p->path_count; i++) {
		struct lane *lane = &p->lanes[i];

		if (lane->gone || !cl_path_is_gone(lane->path))
			continue;
		lane->gone = true;
		end_lane_probe(lane);
		if (p->spread.paths[i].state != CL_PATH_OUT)
			cl_spread_leave(&p->spread, i);
	}
}

/* ---- ranges ---- */

/* The call of a range is over; `taken` bytes of it are there. Others may have got what is not. */
static void end_pour(struct pouring *p, unsigned range, uint64_t taken)
{
	struct flight *flight = &p->flights[range];
	uint64_t noted = p->spread.ranges[range].at - flight->offset;

	cl_spread_end(&p->spread, range);
	if (taken < noted)
		cl_spread_add(&p->spread, flight->offset + taken, flight->offset + noted);
	flight->call = NULL;
}

/* What was noted of it counts for nothing. */
static void lose_pour(struct pouring *p, unsigned range)
{
	end_range_call(p->flights[range].call, RXW_USER_ABORT);
	end_pour(p, range, 0);
}

/* The server's own answer stops everything, unless it is busy; otherwise the path is out (P-071). */
static void fail_pour(struct pouring *p, unsigned range, rxw_code code)
{
	unsigned path = p->spread.ranges[range].path;
	enum rxw_origin origin = rxw_rpc_origin();

	end_pour(p, range, 0);
	if (origin == RXW_ORIGIN_PEER && (code != AFS_VBUSY || ++p->busy > BUSY_MOST))
		p->result = -EOPNOTSUPP;
	else
		cl_spread_leave(&p->spread, path);
}

/* Bytes of a range that were acknowledged, about, in whole units. The last one counts with the answer. */
static uint64_t count_acknowledged(const struct flight *flight,
				   const struct rxw_call_statistics *stats)
{
	uint64_t given = flight->given - flight->offset, units;
	double part;

	if (stats->in_flight >= stats->packets_sent)
		return 0;
	if (stats->bytes_sent < given)
		given = stats->bytes_sent;
	part = 1 - (double)stats->in_flight / (double)stats->packets_sent;
	units = (uint64_t)((double)given * part) / CL_STORE_UNIT;
	return units * CL_STORE_UNIT;
}

static void note_acknowledged(struct pouring *p, unsigned range, uint64_t now)
{
	struct flight *flight = &p->flights[range];
	struct rxw_call_statistics stats = read_pour_statistics(p, flight->call);
	uint64_t at = p->spread.ranges[range].at,
		 end = flight->offset + count_acknowledged(flight, &stats);

	if (stats.packets_received + stats.acks_received > flight->packets)
		cl_spread_hear(&p->spread, p->spread.ranges[range].path, now);
	flight->packets = stats.packets_received + stats.acks_received;
	if (end >= flight->given || end <= at)
		return;
	cl_spread_take(&p->spread, range, end - at, now);
	p->moved = now;
}

/* The next bytes for the send queue. 0: it has no room, or nothing is left; a negative result. */
static int give_piece(struct pouring *p, struct flight *flight, uint64_t end)
{
	size_t want = end - flight->given < PIECE ? (size_t)(end - flight->given) : PIECE;
	struct iovec iov[SLICES];
	unsigned count = SLICES;
	ssize_t n = rxw_call_reserve(flight->call, want, iov, &count);
	int result;

	if (n <= 0)
		return 0;
	result = p->store->give(p->store->arg, flight->given, iov, count);
	if (result)
		return result;
	if (rxw_call_commit(flight->call, (size_t)n) < 0)
		return 0;
	flight->given += (uint64_t)n;
	return 1;
}

/* Up to whole units, or the end of the file. */
static uint64_t round_to_unit(const struct pouring *p, uint64_t at)
{
	at = (at + CL_STORE_UNIT - 1) / CL_STORE_UNIT * CL_STORE_UNIT;
	return at < p->store->length ? at : p->store->length;
}

/* Where the stream of a range ends: others may send what is behind, but a unit that was begun comes whole. */
static uint64_t find_stream_end(const struct pouring *p, unsigned range)
{
	uint64_t end = p->spread.ranges[range].end, given = p->flights[range].given;

	return round_to_unit(p, end > given ? end : given);
}

static void fill_flight(struct pouring *p, unsigned range)
{
	struct flight *flight = &p->flights[range];
	uint64_t end = find_stream_end(p, range);

	while (flight->given < end) {
		int result = give_piece(p, flight, end);

		if (result < 0)
			p->result = result;
		if (result <= 0)
			return;
	}
	if (!flight->ended && rxw_call_send_end(flight->call) == 0)
		flight->ended = true;
}

/* The answer has come, or the call has failed. */
static void finish_pour(struct pouring *p, unsigned range, uint64_t now)
{
	struct flight *flight = &p->flights[range];
	uint64_t at = p->spread.ranges[range].at, taken = 0;
	rxw_code code = EndRXAFS_StoreRange(flight->call, &taken);

	code = end_range_call(flight->call, code);
	if (code) {
		fail_pour(p, range, code);
		return;
	}
	if (taken > flight->given - flight->offset)
		taken = flight->given - flight->offset;
	/* A server may refuse what comes twice too often. */
	if (!taken && ++p->busy > BUSY_MOST)
		p->result = -EOPNOTSUPP;
	if (flight->offset + taken > at)
		cl_spread_take(&p->spread, range, flight->offset + taken - at, now);
	p->moved = now;
	end_pour(p, range, taken);
}

static void use_flight(struct pouring *p, unsigned range, uint64_t now)
{
	struct flight *flight = &p->flights[range];

	if (rxw_call_events(flight->call) & RXW_EVENT_DONE) {
		finish_pour(p, range, now);
		return;
	}
	note_acknowledged(p, range, now);
	fill_flight(p, range);
}

/* A range that was split off another one begins behind what that has given already, at a unit. False: nothing is left of it. */
static bool begin_behind_given(struct pouring *p, struct cl_spread_ask *ask)
{
	struct cl_spread_range *range = &p->spread.ranges[ask->range];

	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct cl_spread_range *owner = &p->spread.ranges[i];

		if (!p->flights[i].call || i == ask->range || owner->loose ||
		    owner->end != range->at)
			continue;
		owner->end = find_stream_end(p, i);
		if (owner->end > range->end)
			owner->end = range->end;
		range->at = ask->offset = owner->end;
		ask->length = range->end - range->at;
	}
	if (ask->length)
		return true;
	cl_spread_end(&p->spread, ask->range);
	return false;
}

/* A range that is lost with its path is sent again as a whole: so it is what the path carries in a part of a second. */
static void shorten_range(struct pouring *p, struct cl_spread_ask *ask)
{
	const struct cl_spread_path *path = &p->spread.paths[ask->path];
	struct cl_spread_range *range = &p->spread.ranges[ask->range];
	uint64_t span = 8 * path->rtt > SPAN_NS ? 8 * path->rtt : SPAN_NS,
		 most = (uint64_t)(path->rate * ((double)span / NS_PER_S)) / CL_STORE_UNIT *
			CL_STORE_UNIT;

	if (most < RANGE_LEAST)
		most = RANGE_LEAST;
	if (most > RANGE_MOST)
		most = RANGE_MOST;
	if (ask->length <= most)
		return;
	range->end = range->at + most;
	cl_spread_add(&p->spread, range->end, ask->offset + ask->length);
	ask->length = most;
}

static void begin_flights(struct pouring *p, uint64_t now)
{
	struct cl_spread_ask ask;

	while (!p->result && cl_spread_next(&p->spread, now, &ask)) {
		struct flight *flight = &p->flights[ask.range];

		assert(!flight->call);
		if (!begin_behind_given(p, &ask))
			return;
		shorten_range(p, &ask);
		*flight = (struct flight){.offset = ask.offset, .given = ask.offset};
		flight->call = begin_on_lane(p, &p->lanes[ask.path], flight);
		if (flight->call && StartRXAFS_StoreRange(flight->call, &p->store->session,
							  ask.offset, ask.length) == 0) {
			fill_flight(p, ask.range);
			continue;
		}
		if (flight->call)
			lose_pour(p, ask.range);
		else
			cl_spread_end(&p->spread, ask.range);
		cl_spread_leave(&p->spread, ask.path);
		return;
	}
}

static void lose_dead_pours(struct pouring *p)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (p->flights[i].call &&
		    p->spread.paths[p->spread.ranges[i].path].state == CL_PATH_OUT)
			lose_pour(p, i);
}

/* ---- the whole ---- */

static void take_pour_events(struct pouring *p, const struct rxw_queue_event *events, int count)
{
	uint64_t now = cl_net_now();

	for (int i = 0; i < count && !p->result; i++) {
		uintptr_t at = (uintptr_t)events[i].arg;

		if (at >= (uintptr_t)p->lanes && at < (uintptr_t)(p->lanes + CL_PATHS)) {
			struct lane *lane = events[i].arg;

			/* The probe may have ended since. */
			if (lane->probe && lane->probe == events[i].call)
				take_lane_probe(p, lane, now);
		}
	}
	for (unsigned i = 0; i < CL_RANGES && !p->result; i++)
		if (p->flights[i].call)
			use_flight(p, i, now);
}

static bool has_flights(const struct pouring *p)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (p->flights[i].call)
			return true;
	return false;
}

static bool has_lane(const struct pouring *p)
{
	for (unsigned i = 0; i < p->path_count; i++)
		if (p->spread.paths[i].state != CL_PATH_OUT)
			return true;
	return false;
}

/* Whether the time of the caller is over, or the server takes nothing for long. */
static int check_pouring_end(const struct pouring *p, const struct cl_caller *caller, uint64_t now)
{
	const struct cl_net *net = p->server->net;

	if (cl_cancel_raised(caller->cancel) || atomic_load(&net->cancelled))
		return -EINTR;
	if (caller->deadline && now >= caller->deadline)
		return -ETIMEDOUT;
	return net->soft_ms != UINT32_MAX && now > p->moved + (uint64_t)net->soft_ms * NS_PER_MS
		       ? -EOPNOTSUPP
		       : 0;
}

/* One turn. False: it is over. */
static bool turn_pouring(struct pouring *p, const struct cl_caller *caller)
{
	struct rxw_queue_event events[EVENTS];
	uint64_t now = cl_net_now(), next;
	int count;

	follow_lane_changes(p);
	rxw_batch_begin();
	probe_dead_lanes(p, now);
	begin_flights(p, now);
	rxw_batch_end();
	if (!p->result && !has_lane(p))
		p->result = -EOPNOTSUPP;
	if (p->result || (cl_spread_complete(&p->spread) && !has_flights(p)))
		return false;
	next = cl_spread_tick(&p->spread, now);
	lose_dead_pours(p);
	if (next > now + WAIT_NS)
		next = now + WAIT_NS;
	count = rxw_queue_next(p->queue, events, EVENTS, (int)((next - now) / NS_PER_MS) + 1);
	take_pour_events(p, events, count);
	if (!p->result)
		p->result = check_pouring_end(p, caller, cl_net_now());
	return !p->result;
}

static void report_lanes(const struct pouring *p)
{
	struct cl_wide_store *store = p->store;

	store->path_count = p->path_count;
	for (unsigned i = 0; i < p->path_count; i++) {
		const struct cl_spread_path *state = &p->spread.paths[i];
		struct cl_path_report *report = &store->paths[i];

		cl_path_describe(p->lanes[i].path, report);
		cl_path_note(p->lanes[i].path, state->rate, state->bytes, state->repeated);
		report->live = state->state != CL_PATH_OUT;
		report->bytes = state->bytes;
		report->repeated = state->repeated;
		report->rtt_ns = state->rtt;
		report->rate = state->rate;
		report->deaths = p->lanes[i].deaths;
	}
}

/* The first path that is alive is used for calls from now on, if that in use is not, or may not be. */
static void prefer_live_lane(struct pouring *p)
{
	unsigned i = 0;

	while (i < p->path_count && (p->spread.paths[i].state == CL_PATH_OUT ||
				     p->spread.paths[i].state == CL_PATH_SUSPECT))
		i++;
	if (i > 0 && i < p->path_count)
		cl_server_prefer(p->server, &p->lanes[i].path->way.sa);
}

static void end_pouring(struct pouring *p)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (p->flights[i].call)
			lose_pour(p, i);
	for (unsigned i = 0; i < p->path_count; i++) {
		end_lane_probe(&p->lanes[i]);
		cl_server_put_lane(p->server, p->lanes[i].lane);
	}
	rxw_queue_destroy(p->queue);
	report_lanes(p);
}

/* All bytes to the session. 0, or what ended it. */
static int pour_bytes(struct pouring *p, const struct cl_caller *caller)
{
	uint64_t now = cl_net_now();

	if (rxw_queue_create(p->server->net->engine, NULL, &p->queue) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < p->store->count; i++)
		cl_spread_add(&p->spread, p->store->data[i].at, p->store->data[i].end);
	p->moved = now;
	cl_spread_join(&p->spread, 0, now, cl_path_rtt(p->lanes[0].path));
	while (turn_pouring(p, caller))
		;
	prefer_live_lane(p);
	end_pouring(p);
	return p->result;
}

/* ---- the session ---- */

static int begin_store_session(struct cl_volume *volume, const struct cl_caller *caller,
			       struct cl_wide_store *store, struct cl_stamp *stamp,
			       struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "BeginStore", &store->fid, 0, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = RXW_USER_ABORT;

		t.alternative = CL_MISSING_SESSIONS;
		if (cl_tries_lacks(&t, CL_MISSING_SESSIONS))
			cl_tries_stop(&t, -EOPNOTSUPP);
		else
			code = StartRXAFS_BeginStore(t.sent.call, &store->fid, &store->how,
						     store->length)
				       ?: EndRXAFS_BeginStore(t.sent.call, &store->session);
		cl_tries_judge(&t, code, RXAFS_FN_BeginStore);
	}
	return cl_tries_result(&t);
}

/* Make the version, or drop all. The same answer comes again if one was lost. */
static int end_session(struct cl_volume *volume, const struct cl_caller *caller,
		       struct cl_wide_store *store, bool commit, uint64_t bytes,
		       struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "EndStore", &store->fid, 0, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code =
			StartRXAFS_EndStore(t.sent.call, &store->session, commit, bytes)
				?: EndRXAFS_EndStore(t.sent.call, &store->status, &stamp->sync);

		if (code == 0 && commit && !afs_status_usable(&store->status))
			cl_tries_reject(&t, "the status is malformed");
		cl_tries_judge(&t, code, RXAFS_FN_EndStore);
	}
	store->unanswered = cl_tries_result(&t) && t.origin != RXW_ORIGIN_PEER;
	return cl_tries_result(&t);
}

static uint64_t count_data_bytes(const struct cl_wide_store *store)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < store->count; i++)
		bytes += store->data[i].end - store->data[i].at;
	return bytes;
}

/* All have come. An answer of the server that is no success means that nothing was made, nor will be. */
static int commit_store_session(struct cl_volume *volume, const struct cl_caller *caller,
				struct cl_wide_store *store, struct cl_stamp *stamp,
				struct rxafs_failure *failure)
{
	int result =
		end_session(volume, caller, store, true, count_data_bytes(store), stamp, failure);

	return result && !store->unanswered ? -EOPNOTSUPP : result;
}

/* What has come keeps space from others. */
static void drop_store_session(struct cl_volume *volume, const struct cl_caller *caller,
			       struct cl_wide_store *store)
{
	struct rxafs_failure failure = {0};
	struct cl_stamp stamp = {0};

	end_session(volume, caller, store, false, 0, &stamp, &failure);
	store->unanswered = false;
}

static int pour_over_lanes(struct pouring *p, struct cl_volume *volume,
			   const struct cl_caller *caller, struct cl_stamp *stamp,
			   struct rxafs_failure *failure)
{
	struct cl_wide_store *store = p->store;
	int result = begin_store_session(volume, caller, store, stamp, failure);

	if (result)
		return result == -EINTR || result == -ETIMEDOUT ? result : -EOPNOTSUPP;
	p->server = cl_server_at(volume->record->net, stamp->server);
	list_lanes(p);
	if (stamp->identity)
		p->credential = cl_identity_credential(caller->identity,
						       cl_cell_number(volume->record->cell));
	result = p->path_count > 1 ? pour_bytes(p, caller) : -EOPNOTSUPP;
	while (p->path_count > 0)
		cl_path_put(p->lanes[--p->path_count].path);
	cl_credential_unref(p->credential);
	if (!result)
		return commit_store_session(volume, caller, store, stamp, failure);
	/* An interrupted one ends by itself. */
	if (result != -EINTR)
		drop_store_session(volume, caller, store);
	return result;
}

int cl_net_store_wide(struct cl_volume *volume, const struct cl_caller *caller,
		      struct cl_wide_store *store, struct cl_stamp *stamp,
		      struct rxafs_failure *failure)
{
	struct pouring *p;
	int result;

	if (store->unanswered)
		return commit_store_session(volume, caller, store, stamp, failure);
	if (store->most == 1 || !cl_net_has_paths(volume))
		return -EOPNOTSUPP;
	p = calloc(1, sizeof(*p));
	if (!p)
		return cl_fail(failure, ENOMEM, "StoreRange: no memory");
	p->store = store;
	result = pour_over_lanes(p, volume, caller, stamp, failure);
	free(p);
	if (result == -EINTR || result == -ENOMEM)
		return cl_fail(failure, -result, "StoreRange: %s",
			       result == -EINTR ? "interrupted" : "no memory");
	return result;
}
