/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread sends a file over several paths: it begins the calls that the scheduler asks for, fills their send queues, and notes what
 * was acknowledged. All ranges belong to one session of the server, and only its end makes a version of them. So a range that comes late,
 * from a path that has died, changes nothing (P-034, P-035).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/net/pathstore.h"
#include "client/net/pathway.h"
#include "client/net/server.h"
#include "client/net/tries.h"
#include "common/clock.h"

#define SLICES	    64u
#define PIECE	    262144u /* bytes that are reserved at a time */
#define SPAN_NS	    ((uint64_t)200 * NS_PER_MS)
#define RANGE_LEAST ((uint64_t)1 << 20)
#define RANGE_MOST  ((uint64_t)64 << 20) /* that the server takes */
#define BUSY_MOST   16u			 /* ranges that a busy server refuses */
#define DROP_NS	    ((uint64_t)NS_PER_S) /* so long an interrupted one tells the server of its end */

struct flight {
	uint64_t offset, given; /* the first byte; the next one for the send queue */
	uint64_t noted;		/* the scheduler knows of the bytes before */
	bool ended;		/* its stream */
};

struct pouring {
	struct cl_wide_store *store;
	struct cl_pathways ways;
	struct flight flights[CL_RANGES]; /* of calls of `ways` */
	unsigned busy;			  /* refused ranges */
	int result;			  /* of give(), or -EOPNOTSUPP */
};

static rxw_code end_range_call(rxw_call *call, rxw_code code)
{
	return rxw_rpc_end(call, code, &RXAFS_interface, RXAFS_FN_StoreRange);
}

/* ---- the question to a path: an empty range, which only the server of the session takes ---- */

static rxw_code ask_for_session(void *arg, rxw_call *call)
{
	const struct pouring *p = arg;

	return StartRXAFS_StoreRange(call, &p->store->session, 0, 0);
}

static bool is_session_confirmed(void *arg, rxw_call *call)
{
	uint64_t taken;

	(void)arg;
	return EndRXAFS_StoreRange(call, &taken) == 0;
}

/* ---- ranges ---- */

/* The call of a range is over; `taken` bytes of it are there. Others may have got what is not. */
static void end_pour(struct pouring *p, unsigned range, uint64_t taken)
{
	struct flight *flight = &p->flights[range];
	uint64_t noted = p->ways.spread.ranges[range].at - flight->offset;

	cl_spread_end(&p->ways.spread, range);
	if (taken < noted)
		cl_spread_add(&p->ways.spread, flight->offset + taken, flight->offset + noted);
	p->ways.calls[range] = NULL;
}

/* What was noted of it counts for nothing. */
static void lose_pour(void *arg, unsigned range)
{
	struct pouring *p = arg;

	end_range_call(p->ways.calls[range], RXW_USER_ABORT);
	end_pour(p, range, 0);
}

/* The server's own answer stops everything, unless it is busy; otherwise the path is out (P-071). */
static void fail_pour(struct pouring *p, unsigned range, rxw_code code)
{
	unsigned path = p->ways.spread.ranges[range].path;
	enum rxw_origin origin = rxw_rpc_origin();

	end_pour(p, range, 0);
	if (origin == RXW_ORIGIN_PEER && (code != AFS_VBUSY || ++p->busy > BUSY_MOST))
		p->result = -EOPNOTSUPP;
	else
		cl_spread_leave(&p->ways.spread, path);
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

/* All bytes of a range before `end` are there. */
static void note_bytes_sent(struct pouring *p, unsigned range, uint64_t end, uint64_t now)
{
	struct flight *flight = &p->flights[range];

	if (end <= flight->noted)
		return;
	cl_spread_take(&p->ways.spread, range, end - flight->noted, now);
	flight->noted = end;
	p->ways.moved = now;
}

static void note_acknowledged(struct pouring *p, unsigned range, uint64_t now)
{
	struct flight *flight = &p->flights[range];
	struct rxw_call_statistics stats = cl_ways_statistics(&p->ways, p->ways.calls[range]);
	uint64_t end = flight->offset + count_acknowledged(flight, &stats);

	if (end < flight->given)
		note_bytes_sent(p, range, end, now);
}

/* The next bytes for the send queue. 0: it has no room, or nothing is left; a negative result. */
static int give_piece(struct pouring *p, unsigned range, uint64_t end)
{
	struct flight *flight = &p->flights[range];
	rxw_call *call = p->ways.calls[range];
	size_t want = end - flight->given < PIECE ? (size_t)(end - flight->given) : PIECE;
	struct iovec iov[SLICES];
	unsigned count = SLICES;
	ssize_t n = rxw_call_reserve(call, want, iov, &count);
	int result;

	if (n <= 0)
		return 0;
	result = p->store->give(p->store->arg, flight->given, iov, count);
	if (result)
		return result;
	if (rxw_call_commit(call, (size_t)n) < 0)
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
	uint64_t end = p->ways.spread.ranges[range].end, given = p->flights[range].given;

	return round_to_unit(p, end > given ? end : given);
}

static void fill_flight(struct pouring *p, unsigned range)
{
	struct flight *flight = &p->flights[range];
	uint64_t end = find_stream_end(p, range);

	while (flight->given < end) {
		int result = give_piece(p, range, end);

		if (result < 0)
			p->result = result;
		if (result <= 0)
			return;
	}
	if (!flight->ended && rxw_call_send_end(p->ways.calls[range]) == 0)
		flight->ended = true;
}

/* The answer has come, or the call has failed. */
static void finish_pour(struct pouring *p, unsigned range, uint64_t now)
{
	struct flight *flight = &p->flights[range];
	uint64_t taken = 0;
	rxw_code code = EndRXAFS_StoreRange(p->ways.calls[range], &taken);

	code = end_range_call(p->ways.calls[range], code);
	if (code) {
		fail_pour(p, range, code);
		return;
	}
	if (taken > flight->given - flight->offset)
		taken = flight->given - flight->offset;
	/* A server may refuse what comes twice too often. */
	if (taken < flight->given - flight->offset && ++p->busy > BUSY_MOST)
		p->result = -EOPNOTSUPP;
	note_bytes_sent(p, range, flight->offset + taken, now);
	end_pour(p, range, taken);
}

static void use_pour(struct pouring *p, unsigned range, uint64_t now)
{
	if (rxw_call_events(p->ways.calls[range]) & RXW_EVENT_DONE) {
		finish_pour(p, range, now);
		return;
	}
	note_acknowledged(p, range, now);
	fill_flight(p, range);
}

/* A range that was split off another one begins behind what that has given already, at a unit. False: nothing is left of it. */
static bool begin_behind_given(struct pouring *p, struct cl_spread_ask *ask)
{
	struct cl_spread_range *range = &p->ways.spread.ranges[ask->range];

	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct cl_spread_range *owner = &p->ways.spread.ranges[i];

		if (!p->ways.calls[i] || i == ask->range || owner->loose || owner->end != range->at)
			continue;
		owner->end = find_stream_end(p, i);
		if (owner->end > range->end)
			owner->end = range->end;
		range->at = ask->offset = owner->end;
		ask->length = range->end - range->at;
	}
	if (ask->length)
		return true;
	cl_spread_end(&p->ways.spread, ask->range);
	return false;
}

/* A range that is lost with its path is sent again as a whole: so it is what the path carries in a part of a second. */
static void shorten_range(struct pouring *p, struct cl_spread_ask *ask)
{
	const struct cl_spread_path *path = &p->ways.spread.paths[ask->path];
	struct cl_spread_range *range = &p->ways.spread.ranges[ask->range];
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
	cl_spread_add(&p->ways.spread, range->end, ask->offset + ask->length);
	ask->length = most;
}

static void begin_pours(void *arg, uint64_t now)
{
	struct pouring *p = arg;
	struct cl_spread_ask ask;

	while (!p->result && cl_spread_next(&p->ways.spread, now, &ask)) {
		rxw_call *call;

		if (!begin_behind_given(p, &ask))
			return;
		shorten_range(p, &ask);
		p->flights[ask.range] = (struct flight){
			.offset = ask.offset, .given = ask.offset, .noted = ask.offset};
		call = cl_ways_begin(&p->ways, ask.path, ask.range);
		if (call &&
		    StartRXAFS_StoreRange(call, &p->store->session, ask.offset, ask.length) == 0) {
			fill_flight(p, ask.range);
			continue;
		}
		if (call)
			lose_pour(p, ask.range);
		else
			cl_spread_end(&p->ways.spread, ask.range);
		cl_spread_leave(&p->ways.spread, ask.path);
		return;
	}
}

static const struct cl_pathway_ops store_ops = {
	.events = RXW_EVENT_WRITE,
	.question = RXAFS_FN_StoreRange,
	.transfer = RXAFS_FN_StoreRange,
	.ask = ask_for_session,
	.confirm = is_session_confirmed,
	.begin = begin_pours,
	.lose = lose_pour,
};

/* ---- the whole ---- */

/* One turn. False: it is over. */
static bool turn_pouring(struct pouring *p, const struct cl_caller *caller)
{
	int end;

	cl_ways_prepare(&p->ways);
	/* Whoever repeats operations himself need not wait for the ordinary way as well. */
	if (!p->result && !cl_ways_live(&p->ways))
		p->result = p->ways.server->net->one_round ? -ETIMEDOUT : -EOPNOTSUPP;
	if (p->result || (cl_spread_complete(&p->ways.spread) && !cl_ways_flying(&p->ways)))
		return false;
	end = cl_ways_wait(&p->ways, caller);
	cl_ways_tell(&p->ways);
	for (unsigned i = 0; i < CL_RANGES && !p->result; i++)
		if (p->ways.calls[i])
			use_pour(p, i, cl_net_now());
	if (!p->result)
		p->result = end == -ESTALE ? -ETIMEDOUT : end;
	return !p->result;
}

/* The answer does not matter, but the call has to reach the server: what has come keeps space from others. */
static void drop_interrupted(struct pouring *p)
{
	uint64_t until = cl_net_now() + DROP_NS;
	struct rxw_queue_event event;
	unsigned path = 0;
	rxw_call *call;

	while (path < p->ways.count && p->ways.spread.paths[path].state == CL_PATH_OUT)
		path++;
	if (path == p->ways.count)
		return;
	call = cl_ways_begin(&p->ways, path, 0);
	if (call && StartRXAFS_EndStore(call, &p->store->session, 0, 0) == 0 &&
	    rxw_call_send_end(call) == 0)
		while (!(rxw_call_events(call) & RXW_EVENT_DONE) && cl_net_now() < until)
			rxw_queue_next(p->ways.queue, &event, 1, 20);
	if (call)
		rxw_rpc_end(call, RXW_USER_ABORT, &RXAFS_interface, RXAFS_FN_EndStore);
	p->ways.calls[0] = NULL;
}

/* All bytes to the session. 0, or what ended it. */
static int pour_bytes(struct pouring *p, const struct cl_caller *caller)
{
	if (cl_ways_start(&p->ways))
		return -ENOMEM;
	for (unsigned i = 0; i < p->store->count; i++)
		cl_spread_add(&p->ways.spread, p->store->data[i].at, p->store->data[i].end);
	while (turn_pouring(p, caller))
		;
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (p->ways.calls[i])
			lose_pour(p, i);
	if (p->result == -EINTR || p->result == -ETIMEDOUT)
		drop_interrupted(p);
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
	p->ways = (struct cl_pathways){.ops = &store_ops,
				       .arg = p,
				       .server = cl_server_at(volume->record->net, stamp->server),
				       .most = store->most,
				       .see = store->see,
				       .see_arg = store->see_arg};
	cl_ways_list(&p->ways);
	if (stamp->identity)
		p->ways.credential = cl_identity_credential(caller->identity,
							    cl_cell_number(volume->record->cell));
	result = p->ways.count > 1 ? pour_bytes(p, caller) : -EOPNOTSUPP;
	cl_ways_end(&p->ways, store->paths, &store->path_count);
	if (!result)
		return commit_store_session(volume, caller, store, stamp, failure);
	/* An interrupted one has told the server, and so has one that waited for too long, if it could. */
	if (result != -EINTR && result != -ETIMEDOUT)
		drop_store_session(volume, caller, store);
	return result;
}

/* No path has taken anything for too long. */
static int fail_store(const struct pouring *p, struct rxafs_failure *failure)
{
	char where[96];

	cl_fail(failure, ETIMEDOUT, "StoreRange: %s: it takes nothing",
		cl_server_text(p->ways.server, where, sizeof(where)));
	failure->origin = RXAFS_FROM_NETWORK;
	failure->volume = p->store->fid.Volume;
	failure->code = RXW_CALL_TIMEOUT;
	snprintf(failure->server, sizeof(failure->server), "%.63s", where);
	return -ETIMEDOUT;
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
	if (result == -ETIMEDOUT && p->ways.began && !store->unanswered)
		fail_store(p, failure);
	free(p);
	if (result == -EINTR || result == -ENOMEM)
		return cl_fail(failure, -result, "StoreRange: %s",
			       result == -EINTR ? "interrupted" : "no memory");
	return result;
}
