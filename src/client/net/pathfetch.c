/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread fetches a file over several paths: it begins the calls that the scheduler asks for, hands the bytes over as they arrive, and
 * probes the paths that do not answer. All calls report to one queue. Versions are never mixed: all calls go to one server, which
 * had the version before they were sent, and has it after the last byte (P-020 to P-022).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/queue.h>

#include "afs/address.h"
#include "afs/fetch.h"
#include "client/net/pathfetch.h"
#include "client/net/server.h"
#include "client/net/tries.h"
#include "common/clock.h"

#define SLICES	   64u
#define EVENTS	   16u
#define CALLS_OF_PATH 4u
#define PROBE_NS   ((uint64_t)250 * NS_PER_MS)
#define PATIENT_NS ((uint64_t)5 * NS_PER_S) /* a path that is out for longer is asked less often: */
#define SELDOM_NS  ((uint64_t)2 * NS_PER_S)
#define STATUS_NS  ((uint64_t)250 * NS_PER_MS)
#define QUIET_NS      ((uint64_t)20 * NS_PER_MS)  /* without bytes: have packets come? */
#define WAIT_NS	   ((uint64_t)100 * NS_PER_MS) /* a cancel is seen after this time */

struct pathway {
	struct cl_path *path; /* a reference */
	struct cl_lane *lane; /* likewise, once it is needed */
	rxw_call *probe;      /* in progress, or NULL */
	uint64_t probed, out; /* when the probe began; since when the path is out */
	bool was_live, gone;
	unsigned deaths;
	/* Calls that it had when it died: the server hears that they have ended once it is back. */
	rxw_call *lost[CALLS_OF_PATH];
	unsigned lost_count;
};

struct flight {
	bool used, kept; /* kept: bytes of it were handed over */
	rxw_call *call;
	struct afs_fetch fetch;
	uint64_t whole; /* when its last byte came; 0 = not yet */
	uint64_t packets; /* that have come */
	bool excused;	  /* none has, since this thread was late */
};

struct wide {
	struct cl_wide *request;
	struct cl_server *server;
	struct cl_credential *credential;
	rxw_queue *queue;
	struct cl_spread spread;
	struct pathway paths[CL_PATHS];
	struct flight flights[CL_RANGES]; /* by range of the scheduler */
	unsigned path_count;
	uint64_t paths_seen; /* of cl_paths_changed() */
	uint64_t length;   /* of the file */
	uint32_t creation; /* of the volume, as its server says */
	bool read_only;	   /* the volume, which several servers may have in different states */
	uint64_t moved;	   /* when the last bytes came */
	uint64_t due;	   /* when the present turn was to begin at the latest; 0 = at once */
	bool unconfirmed; /* bytes came by calls without a status */
	bool refused;	  /* the ordinary way tells why */
	int result;	  /* of take(), or -EAGAIN */
	struct cl_stamp *stamp;
	struct rxafs_failure *failure;
};

/* ---- paths ---- */

static unsigned paths_wanted(const struct wide *w)
{
	return w->request->most && w->request->most < CL_PATHS ? w->request->most : CL_PATHS;
}

/* A call on a path, whose events come with `arg`. NULL: not now. */
static rxw_call *begin_on_path(struct wide *w, struct pathway *path, void *arg)
{
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .queue = w->queue,
					   .arg = arg,
					   .events = RXW_EVENT_READ | RXW_EVENT_DONE};
	rxw_call *call;

	if (!path->lane)
		path->lane = cl_path_take_lane(path->path, w->credential);
	if (!path->lane || rxw_connpool_begin(path->lane->pool, &options, &call) < 0)
		return NULL;
	return call;
}

/* What the transport knows. One call fills a path if the server has large windows. */
static struct rxw_call_statistics read_statistics(struct wide *w, rxw_call *call)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};

	rxw_call_stats(call, &stats);
	if (stats.wide)
		cl_spread_widen(&w->spread);
	return stats;
}

/* ---- probes ---- */

/* Version and length are those of the beginning; of a read-only volume also its time (P-021). */
static bool is_same_state(const struct wide *w, const AFSFetchStatus *status,
			  const AFSVolSync *sync)
{
	return afs_status_version(status) == w->request->version &&
	       afs_status_length(status) == w->length &&
	       (!w->read_only || sync->spare1 == w->creation);
}

/* Otherwise the server would send their bytes for a while, before those of new calls. */
static void end_lost_calls(struct pathway *path)
{
	while (path->lost_count > 0)
		rxw_rpc_end(path->lost[--path->lost_count], RXW_USER_ABORT, &RXAFS_interface,
			    RXAFS_FN_FetchData64);
}

static void end_state_probe(struct pathway *path)
{
	if (path->probe)
		rxw_rpc_end(path->probe, RXW_USER_ABORT, &RXAFS_interface, RXAFS_FN_FetchStatus);
	path->probe = NULL;
}

static void begin_state_probe(struct wide *w, struct pathway *path, uint64_t now)
{
	end_state_probe(path);
	path->probed = now;
	path->probe = begin_on_path(w, path, path);
	if (path->probe && (StartRXAFS_FetchStatus(path->probe, &w->request->fid) != 0 ||
			    rxw_call_send_end(path->probe) < 0))
		end_state_probe(path);
}

/*
 * A path carries data if the file has the same state there. A private address may lead to another server that has a file with this
 * number.
 */
static void take_probe(struct wide *w, struct pathway *path, uint64_t now)
{
	struct rxw_call_statistics stats;
	unsigned number = (unsigned)(path - w->paths);
	AFSFetchStatus status;
	AFSCallBack callback;
	AFSVolSync sync;
	bool same;

	if (!(rxw_call_events(path->probe) & RXW_EVENT_DONE))
		return;
	stats = read_statistics(w, path->probe);
	same = EndRXAFS_FetchStatus(path->probe, &status, &callback, &sync) == 0 &&
	       is_same_state(w, &status, &sync);
	end_state_probe(path);
	if (!same || w->spread.paths[number].state != CL_PATH_OUT)
		return;
	end_lost_calls(path);
	cl_path_lives(path->path, stats.rtt_ns ? stats.rtt_ns : now - path->probed);
	cl_spread_join(&w->spread, number, now, stats.rtt_ns ? stats.rtt_ns : now - path->probed);
}

static void probe_dead_paths(struct wide *w, uint64_t now)
{
	for (unsigned i = 0; i < w->path_count; i++) {
		struct pathway *path = &w->paths[i];
		uint64_t pause = now < path->out + PATIENT_NS ? PROBE_NS : SELDOM_NS;

		if (w->spread.paths[i].state != CL_PATH_OUT) {
			path->was_live = true;
			continue;
		}
		if (path->was_live) {
			path->was_live = false;
			path->deaths++;
			path->out = now;
			cl_path_dies(path->path);
		}
		if (!path->out)
			path->out = now;
		if (!path->gone && now >= path->probed + pause)
			begin_state_probe(w, path, now);
	}
}

/* ---- which paths there are ---- */

static void release_pathway(struct wide *w, unsigned i)
{
	struct pathway *path = &w->paths[i];
	const struct cl_spread_path *state = &w->spread.paths[i];

	end_state_probe(path);
	end_lost_calls(path);
	cl_server_put_lane(w->server, path->lane);
	cl_path_note(path->path, state->rate, state->bytes, state->repeated);
	cl_path_put(path->path);
}

/* One that carries nothing any more makes room. NULL: there is none now. */
static struct pathway *room_for_pathway(struct wide *w)
{
	if (w->path_count < paths_wanted(w))
		return &w->paths[w->path_count++];
	for (unsigned i = 0; i < w->path_count; i++) {
		if (!w->paths[i].gone)
			continue;
		if (w->spread.paths[i].flying) {
			w->paths_seen = 0; /* in the next turn */
			continue;
		}
		release_pathway(w, i);
		w->spread.paths[i] = (struct cl_spread_path){.state = CL_PATH_OUT};
		return &w->paths[i];
	}
	return NULL;
}

/* Takes over the reference, or drops it. */
static void add_pathway(struct wide *w, struct cl_path *path)
{
	struct pathway *new = NULL;
	bool known = false;

	for (unsigned i = 0; i < w->path_count; i++)
		known = known || w->paths[i].path == path;
	if (!known)
		new = room_for_pathway(w);
	if (new)
		*new = (struct pathway){.path = path};
	else
		cl_path_put(path);
}

/* It carries nothing any more. */
static void leave_pathway(struct wide *w, unsigned i)
{
	struct pathway *path = &w->paths[i];

	path->gone = true;
	cl_path_dies(path->path);
	end_state_probe(path);
	if (w->spread.paths[i].state != CL_PATH_OUT)
		cl_spread_leave(&w->spread, i);
}

/* At the beginning, and after addresses of this machine or of the server came or went. That of ordinary calls is the first one. */
static void list_paths(struct wide *w)
{
	struct cl_path *list[CL_PATHS];
	unsigned count;

	if (!cl_paths_changed(w->server, &w->paths_seen))
		return;
	count = cl_paths_take(w->server, list);
	for (unsigned i = 0; i < w->path_count; i++)
		if (!w->paths[i].gone && cl_path_is_gone(w->paths[i].path))
			leave_pathway(w, i);
	for (unsigned i = 0; i < count; i++)
		add_pathway(w, list[i]);
}

/* ---- ranges ---- */

static void end_flight(struct wide *w, unsigned range, rxw_code code, enum rxw_origin *origin)
{
	struct flight *flight = &w->flights[range];

	code = rxw_rpc_end(flight->call, code, &RXAFS_interface, RXAFS_FN_FetchData64);
	*origin = code ? rxw_rpc_origin() : RXW_ORIGIN_NONE;
	if (code && flight->kept)
		w->unconfirmed = true;
	flight->used = false;
	cl_spread_end(&w->spread, range);
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
		cl_spread_leave(&w->spread, w->spread.ranges[range].path);
}

/* A range has come whole, with its status. */
static void finish_flight(struct wide *w, unsigned range)
{
	struct flight *flight = &w->flights[range];
	const struct afs_fetch *fetch = &flight->fetch;
	enum rxw_origin origin;

	end_flight(w, range, 0, &origin);
	w->request->status = fetch->status;
	if (cl_path_hears(w->paths[w->spread.ranges[range].path].path))
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
static void read_flight(struct wide *w, unsigned range, uint64_t now)
{
	struct flight *flight = &w->flights[range];

	while (flight->used && !w->result) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		uint64_t before = flight->fetch.received, at, kept;
		enum afs_fetch_result step =
			afs_fetch_step(&flight->fetch, flight->call, iov, &count);

		if (step == AFS_FETCH_AGAIN)
			return;
		if (step == AFS_FETCH_DONE) {
			finish_flight(w, range);
		} else if (step == AFS_FETCH_ERROR) {
			fail_flight(w, range);
		} else {
			at = flight->fetch.offset + before;
			kept = cl_spread_take(&w->spread, range, flight->fetch.received - before,
					      now);
			w->moved = now;
			if (!flight->kept)
				read_statistics(w, flight->call);
			flight->kept = flight->kept || kept;
			w->result = hand_bytes_kept(w, at, kept, iov);
			/* A whole range has its status still to come. */
			if (flight->fetch.received == flight->fetch.wanted)
				flight->whole = now;
			else if (!cl_spread_wants(&w->spread, range))
				abort_flight(w, range);
		}
	}
}

/*
 * Packets behind a lost one bring no bytes until that one is repeated, but show that the path lives. If this thread has slept for longer than
 * it meant to, the processor was busy, and what has arrived may not have been received yet: that excuses a path once.
 */
static void hear_paths(struct wide *w, uint64_t now)
{
	bool late = w->due && now > w->due + QUIET_NS;

	for (unsigned i = 0; i < CL_RANGES; i++) {
		struct flight *flight = &w->flights[i];
		unsigned path = w->spread.ranges[i].path;
		uint64_t packets;

		if (!flight->used || now < w->spread.paths[path].heard + QUIET_NS)
			continue;
		packets = read_statistics(w, flight->call).packets_received;
		if (packets > flight->packets)
			flight->excused = false;
		else if (!late || flight->excused || w->spread.paths[path].state != CL_PATH_LIVE)
			continue;
		else
			flight->excused = true;
		cl_spread_hear(&w->spread, path, now);
		flight->packets = packets;
	}
}

static void begin_ranges(struct wide *w, uint64_t now)
{
	struct cl_spread_ask ask;

	while (cl_spread_next(&w->spread, now, &ask)) {
		struct flight *flight = &w->flights[ask.range];

		assert(!flight->used);
		*flight = (struct flight){.used = true};
		afs_fetch_init(&flight->fetch, &w->request->fid, ask.offset, ask.length);
		flight->call = begin_on_path(w, &w->paths[ask.path], flight);
		if (flight->call && afs_fetch_send(&flight->fetch, flight->call))
			continue;
		if (flight->call)
			fail_flight(w, ask.range);
		else {
			flight->used = false;
			cl_spread_end(&w->spread, ask.range);
			cl_spread_leave(&w->spread, ask.path);
		}
		return;
	}
}

/* The call of a path that is dead stays for later. */
static void lose_flight(struct wide *w, unsigned range)
{
	struct pathway *path = &w->paths[w->spread.ranges[range].path];
	struct flight *flight = &w->flights[range];

	if (path->lost_count == CALLS_OF_PATH)
		end_lost_calls(path);
	path->lost[path->lost_count++] = flight->call;
	w->unconfirmed = w->unconfirmed || flight->kept;
	flight->used = false;
	cl_spread_end(&w->spread, range);
}

static void lose_dead_flights(struct wide *w)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (w->flights[i].used &&
		    w->spread.paths[w->spread.ranges[i].path].state == CL_PATH_OUT)
			lose_flight(w, i);
}

static void take_events(struct wide *w, const struct rxw_queue_event *events, int count)
{
	uint64_t now = cl_net_now();

	for (int i = 0; i < count && !w->result && !w->refused; i++) {
		uintptr_t at = (uintptr_t)events[i].arg;

		if (at >= (uintptr_t)w->paths && at < (uintptr_t)(w->paths + CL_PATHS)) {
			struct pathway *path = events[i].arg;

			/* The probe may have ended since. */
			if (path->probe && path->probe == events[i].call)
				take_probe(w, path, now);
		} else {
			struct flight *flight = events[i].arg;

			if (flight->used && flight->call == events[i].call)
				read_flight(w, (unsigned)(flight - w->flights), now);
		}
	}
}

/* ---- the whole ---- */

static bool has_path(const struct wide *w)
{
	for (unsigned i = 0; i < w->path_count; i++)
		if (w->spread.paths[i].state != CL_PATH_OUT)
			return true;
	return false;
}

/* Whether the time of the caller is over, or the server sends nothing for long. */
static int check_wide_end(const struct wide *w, const struct cl_caller *caller, uint64_t now)
{
	const struct cl_net *net = w->server->net;

	if (cl_cancel_raised(caller->cancel) || atomic_load(&net->cancelled))
		return -EINTR;
	if (caller->deadline && now >= caller->deadline)
		return -ETIMEDOUT;
	return net->soft_ms != UINT32_MAX && now > w->moved + (uint64_t)net->soft_ms * NS_PER_MS
		       ? -ETIMEDOUT
		       : 0;
}

/* Calls that have brought all their bytes, but no status, make room for others. */
static void abort_whole_flights(struct wide *w, uint64_t now)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (w->flights[i].used && w->flights[i].whole &&
		    now > w->flights[i].whole + NS_PER_S)
			abort_flight(w, i);
}

/* All bytes are there. The statuses of the last ranges may be on their way, for which it waits a moment. */
static bool is_wide_complete(const struct wide *w)
{
	bool flying = false;

	for (unsigned i = 0; i < CL_RANGES; i++)
		flying = flying || w->flights[i].used;
	return cl_spread_complete(&w->spread) && (!flying || cl_net_now() > w->moved + STATUS_NS);
}

/* One turn. False: the fetch is over. */
static bool turn_wide(struct wide *w, const struct cl_caller *caller)
{
	struct rxw_queue_event events[EVENTS];
	uint64_t now = cl_net_now(), next;
	int count;

	list_paths(w);
	rxw_batch_begin();
	probe_dead_paths(w, now);
	begin_ranges(w, now);
	rxw_batch_end();
	if (w->refused || !has_path(w))
		return false;
	hear_paths(w, now);
	next = cl_spread_tick(&w->spread, now);
	lose_dead_flights(w);
	abort_whole_flights(w, now);
	if (next > now + WAIT_NS)
		next = now + WAIT_NS;
	w->due = next;
	count = rxw_queue_next(w->queue, events, EVENTS, (int)((next - now) / NS_PER_MS) + 1);
	take_events(w, events, count);
	if (!w->result)
		w->result = check_wide_end(w, caller, cl_net_now());
	return !w->result && !w->refused && !is_wide_complete(w);
}

static void report_paths(const struct wide *w)
{
	struct cl_wide *request = w->request;

	request->path_count = w->path_count;
	for (unsigned i = 0; i < w->path_count; i++) {
		const struct cl_spread_path *state = &w->spread.paths[i];
		struct cl_path_report *report = &request->paths[i];

		cl_path_describe(w->paths[i].path, report);
		report->live = state->state != CL_PATH_OUT;
		report->bytes += state->bytes;
		report->repeated += state->repeated;
		report->rtt_ns = state->rtt;
		report->rate = state->rate;
		report->deaths += w->paths[i].deaths;
	}
}

/* The first path that is alive is used for calls from now on, if that in use is not, or may not be. */
static void prefer_live_path(struct wide *w)
{
	unsigned i = 0;

	while (i < w->path_count && (w->spread.paths[i].state == CL_PATH_OUT ||
				     w->spread.paths[i].state == CL_PATH_SUSPECT))
		i++;
	if (i > 0 && i < w->path_count)
		cl_server_prefer(w->server, &w->paths[i].path->way.sa);
}

static void end_wide(struct wide *w)
{
	for (unsigned i = 0; i < CL_RANGES; i++)
		if (w->flights[i].used)
			abort_flight(w, i);
	prefer_live_path(w);
	report_paths(w);
	while (w->path_count > 0)
		release_pathway(w, --w->path_count);
	rxw_queue_destroy(w->queue);
	w->request->count = w->spread.hole_count;
	memcpy(w->request->missing, w->spread.holes, sizeof(w->spread.holes));
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

/* The first range may be long if the server is known to have large windows: by a call that is not sent. */
static void look_at_server(struct wide *w)
{
	rxw_call *call = begin_on_path(w, &w->paths[0], NULL);

	if (!call)
		return;
	read_statistics(w, call);
	rxw_rpc_end(call, RXW_USER_ABORT, &RXAFS_interface, RXAFS_FN_FetchData64);
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
	char where[96];
	const struct cl_wide *request = w->request;
	uint64_t now = cl_net_now();

	if (rxw_queue_create(w->server->net->engine, NULL, &w->queue) < 0)
		return cl_fail(w->failure, ENOMEM, "FetchData64: no memory");
	for (unsigned i = 0; i < request->count; i++)
		cl_spread_add(&w->spread, request->missing[i].at, request->missing[i].end);
	w->moved = now;
	look_at_server(w);
	cl_path_lives(w->paths[0].path, cl_path_rtt(w->paths[0].path));
	cl_spread_join(&w->spread, 0, now, cl_path_rtt(w->paths[0].path));
	while (turn_wide(w, caller))
		;
	end_wide(w);
	if (w->result == -EINTR || w->result == -ETIMEDOUT)
		return cl_fail(w->failure, -w->result, "FetchData64: %s: %s",
			       cl_server_text(w->server, where, sizeof(where)),
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
			       w->stamp->server == w->server->number
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
	w->server = cl_server_at(net, stamp->server);
	list_paths(w);
	if (w->path_count > 1) {
		if (stamp->identity)
			w->credential = cl_identity_credential(
				caller->identity, cl_cell_number(volume->record->cell));
		result = run_wide(w, caller);
		if (!result && w->unconfirmed)
			result = confirm_bytes(w, volume, caller);
		else if (result == -ETIMEDOUT && w->unconfirmed && w->read_only)
			result = -EAGAIN;
		cl_credential_unref(w->credential);
	}
	while (w->path_count > 0)
		release_pathway(w, --w->path_count);
	free(w);
	return result;
}
