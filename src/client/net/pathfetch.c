/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread fetches a file over several paths: it begins the calls that the scheduler asks for, and hands the bytes over as they arrive.
 * Versions are never mixed: all calls go to one server, which had the version before they were sent, and has it after the last byte (P-020 to
 * P-022).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetch.h"
#include "client/net/pathfetch.h"
#include "client/net/pathway.h"
#include "client/net/server.h"
#include "client/net/tries.h"
#include "common/clock.h"

#define SLICES	  64u
#define STATUS_NS ((uint64_t)250 * NS_PER_MS)

struct flight {
	bool kept; /* bytes of it were handed over */
	struct afs_fetch fetch;
	uint64_t whole; /* when its last byte came; 0 = not yet */
};

struct wide {
	struct cl_wide *request;
	struct cl_pathways ways;
	struct flight flights[CL_RANGES]; /* of calls of `ways` */
	uint64_t length;		  /* of the file */
	uint32_t creation;		  /* of the volume, as its server says */
	bool read_only;	  /* the volume, which several servers may have in different states */
	bool unconfirmed; /* bytes came by calls without a status */
	bool refused;	  /* the ordinary way tells why */
	int result;	  /* of take(), or -EAGAIN */
	struct cl_stamp *stamp;
	struct rxafs_failure *failure;
};

/* ---- the question to a path ---- */

/* Version and length are those of the beginning; of a read-only volume also its time (P-021). */
static bool is_same_state(const struct wide *w, const AFSFetchStatus *status,
			  const AFSVolSync *sync)
{
	return afs_status_version(status) == w->request->version &&
	       afs_status_length(status) == w->length &&
	       (!w->read_only || sync->spare1 == w->creation);
}

static rxw_code ask_for_state(void *arg, rxw_call *call)
{
	const struct wide *w = arg;

	return StartRXAFS_FetchStatus(call, &w->request->fid);
}

/* A path carries data if the file has the same state there. */
static bool is_state_confirmed(void *arg, rxw_call *call)
{
	AFSFetchStatus status;
	AFSCallBack callback;
	AFSVolSync sync;

	return EndRXAFS_FetchStatus(call, &status, &callback, &sync) == 0 &&
	       is_same_state(arg, &status, &sync);
}

/* ---- ranges ---- */

static void end_flight(struct wide *w, unsigned range, rxw_code code, enum rxw_origin *origin)
{
	code = rxw_rpc_end(w->ways.calls[range], code, &RXAFS_interface, RXAFS_FN_FetchData64);
	*origin = code ? rxw_rpc_origin() : RXW_ORIGIN_NONE;
	if (code && w->flights[range].kept)
		w->unconfirmed = true;
	w->ways.calls[range] = NULL;
	cl_spread_end(&w->ways.spread, range);
}

static void abort_flight(struct wide *w, unsigned range)
{
	enum rxw_origin origin;

	end_flight(w, range, RXW_USER_ABORT, &origin);
}

/* The server's own answer stops everything; otherwise the path is out (P-071). */
static void fail_flight(struct wide *w, unsigned range)
{
	enum rxw_origin origin;

	end_flight(w, range, RXW_USER_ABORT, &origin);
	if (w->flights[range].fetch.why || origin == RXW_ORIGIN_PEER)
		w->refused = true;
	else
		cl_spread_leave(&w->ways.spread, w->ways.spread.ranges[range].path);
}

/* A range has come whole, with its status. */
static void finish_flight(struct wide *w, unsigned range)
{
	const struct afs_fetch *fetch = &w->flights[range].fetch;
	unsigned path = w->ways.spread.ranges[range].path;
	enum rxw_origin origin;

	end_flight(w, range, 0, &origin);
	w->request->status = fetch->status;
	if (cl_path_hears(w->ways.list[path].path))
		w->stamp->callback = fetch->callback;
	w->stamp->sync = fetch->sync;
	if (!is_same_state(w, &fetch->status, &fetch->sync))
		w->result = -EAGAIN;
	else if (fetch->received < fetch->wanted)
		w->refused = true;
}

/* Keep the first `kept` bytes of what was lent. */
static int hand_bytes_kept(struct wide *w, uint64_t at, uint64_t kept, struct iovec *iov)
{
	unsigned count = 0;

	while (kept > 0) {
		if (iov[count].iov_len > kept)
			iov[count].iov_len = (size_t)kept;
		kept -= iov[count++].iov_len;
	}
	return count ? w->request->take(w->request->arg, at, iov, count) : 0;
}

/* What has arrived for a range. */
static void read_flight(void *arg, unsigned range, uint64_t now)
{
	struct wide *w = arg;
	struct flight *flight = &w->flights[range];

	while (w->ways.calls[range] && !w->result && !w->refused) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		uint64_t before = flight->fetch.received, at, kept;
		enum afs_fetch_result step =
			afs_fetch_step(&flight->fetch, w->ways.calls[range], iov, &count);

		if (step == AFS_FETCH_AGAIN)
			return;
		if (step == AFS_FETCH_DONE) {
			finish_flight(w, range);
		} else if (step == AFS_FETCH_ERROR) {
			fail_flight(w, range);
		} else {
			at = flight->fetch.offset + before;
			kept = cl_spread_take(&w->ways.spread, range,
					      flight->fetch.received - before, now);
			w->ways.moved = now;
			if (!flight->kept)
				cl_ways_statistics(&w->ways, w->ways.calls[range]);
			flight->kept = flight->kept || kept;
			w->result = hand_bytes_kept(w, at, kept, iov);
			/* A whole range has its status still to come. */
			if (flight->fetch.received == flight->fetch.wanted)
				flight->whole = now;
			else if (!cl_spread_wants(&w->ways.spread, range))
				abort_flight(w, range);
		}
	}
}

static void begin_ranges(void *arg, uint64_t now)
{
	struct wide *w = arg;
	struct cl_spread_ask ask;

	while (cl_spread_next(&w->ways.spread, now, &ask)) {
		struct flight *flight = &w->flights[ask.range];
		rxw_call *call = cl_ways_begin(&w->ways, ask.path, ask.range);

		*flight = (struct flight){0};
		afs_fetch_init(&flight->fetch, &w->request->fid, ask.offset, ask.length);
		if (call && afs_fetch_send(&flight->fetch, call))
			continue;
		if (call) {
			fail_flight(w, ask.range);
		} else {
			cl_spread_end(&w->ways.spread, ask.range);
			cl_spread_leave(&w->ways.spread, ask.path);
		}
		return;
	}
}

static void lose_flight(void *arg, unsigned range)
{
	struct wide *w = arg;

	w->unconfirmed = w->unconfirmed || w->flights[range].kept;
	cl_ways_lose(&w->ways, range);
}

static const struct cl_pathway_ops fetch_ops = {
	.events = RXW_EVENT_READ,
	.question = RXAFS_FN_FetchStatus,
	.transfer = RXAFS_FN_FetchData64,
	.ask = ask_for_state,
	.confirm = is_state_confirmed,
	.begin = begin_ranges,
	.lose = lose_flight,
	.use = read_flight,
};

/* ---- the whole ---- */

/* Calls that have brought all their bytes, but no status, make room for others. */
static void abort_whole_flights(struct wide *w, uint64_t now)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (w->ways.calls[i] && w->flights[i].whole && now > w->flights[i].whole + NS_PER_S)
			abort_flight(w, i);
}

/* All bytes are there. The statuses of the last ranges may be on their way, for which it waits a moment. */
static bool is_wide_complete(const struct wide *w)
{
	return cl_spread_complete(&w->ways.spread) &&
	       (!cl_ways_flying(&w->ways) || cl_net_now() > w->ways.moved + STATUS_NS);
}

/* One turn. False: the fetch is over. */
static bool turn_wide(struct wide *w, const struct cl_caller *caller)
{
	int end;

	cl_ways_prepare(&w->ways);
	if (w->refused || !cl_ways_live(&w->ways))
		return false;
	abort_whole_flights(w, cl_net_now());
	end = cl_ways_wait(&w->ways, caller);
	cl_ways_tell(&w->ways);
	if (!w->result)
		w->result = end == -ESTALE ? -ETIMEDOUT : end;
	return !w->result && !w->refused && !is_wide_complete(w);
}

/* The version that the server has now. 0; -EAGAIN: another one. */
static int confirm_version(struct cl_volume *volume, const struct cl_caller *caller,
			   struct cl_wide *request, struct cl_stamp *stamp,
			   struct rxafs_failure *failure)
{
	int result = cl_net_fetch_status(volume, caller, &request->fid, &request->status, stamp,
					 failure);

	request->known = result == 0;
	if (result || afs_status_version(&request->status) == request->version)
		return result;
	return -EAGAIN;
}

static unsigned list_servers(struct cl_volume *volume, struct cl_server *servers[NMAXNSERVERS])
{
	struct cl_record *record = volume->record;
	unsigned count;

	pthread_mutex_lock(&record->lock);
	count = record->site_count;
	for (unsigned i = 0; i < count; i++)
		servers[i] = record->sites[i].server;
	pthread_mutex_unlock(&record->lock);
	return count;
}

bool cl_net_has_paths(struct cl_volume *volume)
{
	struct cl_server *servers[NMAXNSERVERS];
	unsigned count = list_servers(volume, servers);
	bool several = false;

	for (unsigned i = 0; i < count && !several; i++) {
		struct cl_path *list[CL_PATHS];
		unsigned paths = cl_paths_take(servers[i], list);

		several = paths > 1;
		while (paths > 0)
			cl_path_put(list[--paths]);
	}
	return several;
}

bool cl_net_paths_joined(struct cl_volume *volume, uint64_t *seen)
{
	uint64_t now = 1 + (uint64_t)atomic_load(&volume->record->net->moves);

	if (*seen == now || cl_volume_type(volume) != AFS_VL_RW)
		return false;
	*seen = now;
	return cl_net_has_paths(volume);
}

static int run_wide(struct wide *w, const struct cl_caller *caller)
{
	struct cl_wide *request = w->request;
	char where[96];

	if (cl_ways_start(&w->ways))
		return cl_fail(w->failure, ENOMEM, "FetchData64: no memory");
	for (unsigned i = 0; i < request->count; i++)
		cl_spread_add(&w->ways.spread, request->missing[i].at, request->missing[i].end);
	while (turn_wide(w, caller))
		;
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (w->ways.calls[i])
			abort_flight(w, i);
	request->count = w->ways.spread.hole_count;
	memcpy(request->missing, w->ways.spread.holes, sizeof(w->ways.spread.holes));
	if (w->result == -EINTR || w->result == -ETIMEDOUT)
		return cl_fail(w->failure, -w->result, "FetchData64: %s: %s",
			       cl_server_text(w->ways.server, where, sizeof(where)),
			       w->result == -EINTR ? "interrupted" : "it sends nothing");
	return w->result;
}

/*
 * Bytes without a status count if the server that sent them still has the version (P-022). Another server of a read-only volume may say so
 * while that one has got a new release: then the fetch begins again, as it does if the next try may go to another server.
 */
static int confirm_bytes(struct wide *w, struct cl_volume *volume, const struct cl_caller *caller)
{
	int result = confirm_version(volume, caller, w->request, w->stamp, w->failure);

	if (result)
		return result;
	return is_same_state(w, &w->request->status, &w->stamp->sync) &&
			       w->stamp->server == w->ways.server->number
		       ? 0
		       : -EAGAIN;
}

int cl_net_fetch_wide(struct cl_volume *volume, const struct cl_caller *caller,
		      struct cl_wide *request, struct cl_stamp *stamp,
		      struct rxafs_failure *failure)
{
	struct cl_net *net = volume->record->net;
	struct wide *w;
	int result;

	request->known = false;
	if (request->most == 1 || !cl_net_has_paths(volume))
		return 0;
	result = confirm_version(volume, caller, request, stamp, failure);
	if (result)
		return result;
	w = calloc(1, sizeof(*w));
	if (!w)
		return cl_fail(failure, ENOMEM, "FetchData64: no memory");
	w->request = request;
	w->stamp = stamp;
	w->failure = failure;
	w->length = afs_status_length(&request->status);
	w->creation = stamp->sync.spare1;
	w->read_only = cl_volume_type(volume) != AFS_VL_RW;
	w->ways = (struct cl_pathways){.ops = &fetch_ops,
				       .arg = w,
				       .server = cl_server_at(net, stamp->server),
				       .most = request->most,
				       .see = request->see,
				       .see_arg = request->see_arg};
	cl_ways_list(&w->ways);
	if (w->ways.count > 1 && stamp->identity)
		w->ways.credential = cl_identity_credential(caller->identity,
							    cl_cell_number(volume->record->cell));
	if (w->ways.count > 1)
		result = run_wide(w, caller);
	cl_ways_end(&w->ways, request->paths, &request->path_count);
	if (!result && w->unconfirmed)
		result = confirm_bytes(w, volume, caller);
	else if (result == -ETIMEDOUT && w->unconfirmed && w->read_only)
		result = -EAGAIN;
	free(w);
	return result;
}
