/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes: one thread asks servers for their capabilities. All addresses of a server that is down
 * are asked at the same time, and the one that answers first is used from then on (K-132, K-133).
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/net/netpath.h"

#define PROBE_MS    4000u  /* an address of a server that is down may be silent so long */
#define BUSY_MS	    60000u /* a server that lives, but has no time to answer, is asked again then */
#define PATH_MS	    3000u  /* the answer of a path comes within this time */
#define LIVE_NS	    ((uint64_t)300 * NS_PER_S) /* a live server is asked after so much silence */
#define INTEREST_NS ((uint64_t)3 * 3600 * NS_PER_S) /* and if it was used within this time */
#define ASLEEP_NS   ((int64_t)60 * NS_PER_S)
#define TICK_PAUSES 5u
#define TICK_MS	    5000u
#define UNTOLD_MS   2000u /* between two looks at addresses, if the kernel does not tell of changes */
#define CALM_MS	    100u /* between two looks, if it tells of many */

/* A probe of one address. */
struct probe {
	struct probe *next; /* of those in progress */
	struct cl_server *server;
	struct cl_path *path; /* of this one, for long reads; or NULL: */
	struct cl_way to;
	uint64_t at;
	rxw_call *call;
};

struct cl_prober {
	struct cl_net *net;
	rxw_queue *queue;
	pthread_t thread;
	_Atomic bool stop;
	/* only the thread uses these: */
	struct probe *running;
	bool urgent;   /* a server is looked for, or calls are in progress */
	bool watchful; /* paths carry long reads */
	uint64_t next_idle;
	int64_t slept;	   /* asleep_ns() when last looked */
	uint64_t moved_at; /* probes from before say nothing of the present addresses */
	int watch;	   /* cl_routes_watch() */
	uint64_t told_at;  /* when it last told of a change */
	struct cl_interfaces interfaces;
};

static void forget_probe(struct cl_prober *prober, struct probe *probe)
{
	struct probe **at = &prober->running;

	while (*at != probe)
		at = &(*at)->next;
	*at = probe->next;
	free(probe);
}

/*
 * `silent`: nothing came from the address, not even answers to PINGs, which a busy server gives
 * (K-134).
 */
static void end_probe(struct cl_prober *prober, struct probe *probe, bool answered, bool silent)
{
	struct cl_server *server = probe->server;
	uint64_t now = cl_net_now();
	bool first, last;

	pthread_mutex_lock(&server->lock);
	server->probes--;
	last = server->probes == 0;
	first = false;
	for (unsigned i = 0; answered && i < server->address_count; i++) {
		struct cl_address *a = &server->addresses[i];

		if (memcmp(&a->sa, &probe->to.sa, probe->to.len) != 0)
			continue;
		a->rtt_us = (uint32_t)((now - probe->at) / 1000) + 1;
		a->failed_at = 0;
		/* Answers come in the order of round trips. */
		first = !atomic_load(&server->probed) || atomic_load(&server->down);
		if (first)
			server->current = i;
	}
	pthread_mutex_unlock(&server->lock);
	if (answered)
		cl_server_alive(server, &probe->to.sa);
	else if (silent && last && !atomic_load(&server->down) &&
		 atomic_load(&server->heard_at) <= probe->at)
		cl_server_silent(server, &probe->to.sa);
	if ((first || last) && probe->at >= prober->moved_at &&
	    !atomic_exchange(&server->probed, true))
		cl_wake_waiters(server->net);
	forget_probe(prober, probe);
}

/* A new connection, with one call that reports to the prober. */
static int begin_probe_call(struct cl_prober *prober, struct probe *probe)
{
	struct rxw_call_options co = {.size = sizeof(co),
				      .flags = RXW_CALL_NONBLOCK,
				      .deadline_ms = BUSY_MS,
				      .queue = prober->queue,
				      .arg = probe,
				      .events = RXW_EVENT_DONE};
	unsigned dead_ms = prober->net->dead_ms;
	const struct cl_way *to = &probe->to;
	rxw_connpool *pool = NULL;
	int rc = rxw_connpool_create(prober->net->endpoint, (const struct sockaddr *)&to->sa,
				     to->len, AFS_SERVICE_FS, NULL, 1, &pool);

	if (rc == 0 && to->local_len)
		rc = rxw_connpool_set_local(pool, (const struct sockaddr *)&to->local,
					    to->local_len, to->interface);
	if (atomic_load(&probe->server->down) && dead_ms > PROBE_MS)
		dead_ms = PROBE_MS;
	if (rc == 0)
		rc = rxw_connpool_set_timeouts(pool, dead_ms, 0, 0);
	if (rc == 0)
		rc = rxw_connpool_begin(pool, &co, &probe->call);
	/* The call keeps its connection. */
	rxw_connpool_release(pool);
	return rc;
}

/* Begin a probe of one address. False: that cannot be now. */
static bool begin_probe(struct cl_prober *prober, struct cl_server *server, const struct cl_way *to)
{
	struct probe *probe = calloc(1, sizeof(*probe));

	if (!probe)
		return false;
	*probe = (struct probe){.server = server, .to = *to, .at = cl_net_now()};
	if (begin_probe_call(prober, probe) < 0) {
		free(probe);
		return false;
	}
	pthread_mutex_lock(&server->lock);
	server->probes++;
	pthread_mutex_unlock(&server->lock);
	probe->next = prober->running;
	prober->running = probe;
	if (StartRXAFS_GetCapabilities(probe->call) == 0)
		rxw_call_send_end(probe->call);
	return true;
}

/* The same for a path. Takes the reference. */
static void ask_path(struct cl_prober *prober, struct cl_path *path)
{
	struct rxw_call_options co = {.size = sizeof(co),
				      .flags = RXW_CALL_NONBLOCK,
				      .deadline_ms = PATH_MS,
				      .queue = prober->queue,
				      .events = RXW_EVENT_DONE};
	struct probe *probe = calloc(1, sizeof(*probe));
	struct cl_lane *lane = cl_path_take_lane(path, NULL);
	int rc = -RXW_ENOMEM;

	if (probe && lane) {
		*probe = (struct probe){.server = path->server, .path = path, .at = cl_net_now()};
		co.arg = probe;
		rc = rxw_connpool_begin(lane->pool, &co, &probe->call);
	}
	cl_server_put_lane(path->server, lane);
	if (rc < 0) {
		free(probe);
		cl_load_probed(path, 0, 0, 0);
		return;
	}
	probe->next = prober->running;
	prober->running = probe;
	if (StartRXAFS_GetStatistics(probe->call) == 0)
		rxw_call_send_end(probe->call);
}

/* After 1, 2, 5, 10, 30 pauses. */
static uint64_t pause_after_probes(const struct cl_net *net, unsigned failed)
{
	static const unsigned pauses[] = {1, 2, 5, 10, 30};
	const unsigned count = sizeof(pauses) / sizeof(pauses[0]);

	return (uint64_t)net->pause_ms * NS_PER_MS * pauses[failed < count ? failed : count - 1];
}

/* Whether a server is due, and the addresses to be asked. */
static unsigned choose_probes(struct cl_server *server, struct cl_address list[CL_ADDRESSES])
{
	uint64_t now = cl_net_now();
	unsigned count = 0;

	pthread_mutex_lock(&server->lock);
	if (server->probes > 0) {
		/* One round at a time. */
	} else if (atomic_load(&server->down) || !atomic_load(&server->probed)) {
		if (server->next_probe <= now) {
			count = server->address_count;
			memcpy(list, server->addresses, count * sizeof(list[0]));
			server->next_probe =
				now + pause_after_probes(server->net, server->probes_failed++);
		}
	} else if (atomic_load(&server->heard_at) + LIVE_NS < now &&
		   atomic_load(&server->used_at) &&
		   atomic_load(&server->used_at) + INTEREST_NS > now) {
		list[0] = server->addresses[server->current];
		count = 1;
	}
	pthread_mutex_unlock(&server->lock);
	return count;
}

/*
 * A path has died. A server that breaks promises at one address of this machine at a time, as OpenAFS does, takes another one when it gets a
 * call from there on a new connection (P-014).
 */
static void show_living_path(struct cl_prober *prober, struct cl_server *server)
{
	bool found = false;
	struct cl_way to;

	pthread_mutex_lock(&server->lock);
	for (unsigned i = 0; server->lost_path && i < server->path_count && !found; i++) {
		found = server->paths[i]->state == CL_PATH_LIVE;
		to = server->paths[i]->way;
	}
	server->lost_path = false;
	pthread_mutex_unlock(&server->lock);
	if (found && atomic_load(&server->promised))
		begin_probe(prober, server, &to);
}

static void watch_paths(struct cl_prober *prober, struct cl_server *server)
{
	struct cl_path *list[CL_PATHS];
	bool busy;
	unsigned count = cl_load_look(server, list, &busy);

	for (unsigned i = 0; i < count; i++)
		ask_path(prober, list[i]);
	prober->watchful = prober->watchful || busy;
}

static void probe_due_servers(struct cl_prober *prober)
{
	struct cl_server *server;

	prober->urgent = prober->watchful = false;
	for (uint32_t n = 1; (server = cl_server_at(prober->net, n)); n++) {
		struct cl_address list[CL_ADDRESSES];
		unsigned count = choose_probes(server, list);

		watch_paths(prober, server);
		prober->urgent = cl_server_end_overdue(server) || prober->urgent ||
				 atomic_load(&server->down);
		for (unsigned i = 0; i < count; i++)
			begin_probe(prober, server,
				    &(struct cl_way){.sa = list[i].sa, .len = list[i].len});
		show_living_path(prober, server);
		cl_server_keep(server);
		cl_server_idle(server);
	}
}

/* How long this machine has slept since its start. */
static int64_t asleep_ns(void)
{
	/* Read first: the difference is never negative. */
	int64_t awake = (int64_t)monotonic_ns();

	return (int64_t)cl_net_now() - awake;
}

/* The machine slept: nobody could tell us of changes, and addresses may be others (K-141). */
static void look_for_sleep(struct cl_prober *prober)
{
	int64_t slept = asleep_ns();
	struct cl_server *server;

	/* A thread that was stopped between the two clocks is not a machine that slept. */
	if (slept > prober->slept + ASLEEP_NS)
		slept = asleep_ns();
	if (slept > prober->slept + ASLEEP_NS) {
		cl_net_note(prober->net, "this machine slept: promises are void");
		for (uint32_t n = 1; (server = cl_server_at(prober->net, n)); n++)
			cl_server_reset(server);
	}
	prober->slept = slept;
}

static bool is_told_of_moves(struct cl_prober *prober)
{
	if (prober->watch < 0 || !cl_routes_moved(prober->watch))
		return false;
	prober->told_at = cl_net_now();
	return true;
}

/*
 * The machine has other addresses than before (K-141): servers have to see them, and if one is
 * gone, nobody could tell us of changes there.
 */
static void look_for_moves(struct cl_prober *prober)
{
	struct cl_interfaces now;
	struct cl_server *server;
	enum cl_moved moved;

	cl_interfaces_read(&now);
	if (is_told_of_moves(prober) || memcmp(&now, &prober->interfaces, sizeof(now)) != 0)
		atomic_fetch_add(&prober->net->moves, 1);
	moved = cl_interfaces_compare(&prober->interfaces, &now);
	if (now.known)
		prober->interfaces = now;
	if (moved == CL_MOVED_NOT)
		return;
	prober->moved_at = cl_net_now();
	cl_net_note(prober->net, moved == CL_MOVED_AWAY
					 ? "an address of this machine is gone: promises are void"
					 : "this machine has a further address");
	for (uint32_t n = 1; (server = cl_server_at(prober->net, n)); n++) {
		if (!atomic_load(&server->used_at))
			continue;
		if (moved == CL_MOVED_AWAY)
			cl_server_reset(server);
		atomic_store(&server->probed, false);
		pthread_mutex_lock(&server->lock);
		server->next_probe = 0;
		pthread_mutex_unlock(&server->lock);
	}
}

static void take_path_answer(struct cl_prober *prober, struct probe *probe, rxw_call *call)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};
	uint64_t rtt = cl_net_now() - probe->at + 1;
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	ViceStatistics server = {0};
	rxw_code code = rxw_call_error(call, NULL) ?: EndRXAFS_GetStatistics(call, &server);

	/* A probe that was lost was sent again. */
	if (rxw_call_stats(call, &stats) == 0 && stats.rtt_ns && stats.rtt_ns < rtt)
		rtt = stats.rtt_ns;
	code = rxw_call_end(call, code, &origin);
	/* One that does not tell when it started answers with a code. */
	cl_load_probed(probe->path, probe->at, code == 0 || origin == RXW_ORIGIN_PEER ? rtt : 0,
		       code == 0 ? server.StartTime : 0);
	forget_probe(prober, probe);
}

static void take_probe_answer(struct cl_prober *prober, const struct rxw_queue_event *event)
{
	struct probe *probe = event->arg;
	Capabilities caps = {0};
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	rxw_code code;

	if (!event->call)
		return;
	if (probe->path) {
		take_path_answer(prober, probe, event->call);
		return;
	}
	code = rxw_call_error(event->call, NULL);
	if (code == 0)
		code = EndRXAFS_GetCapabilities(event->call, &caps);
	xdrfree_Capabilities(&caps);
	code = rxw_call_end(event->call, code, &origin);
	end_probe(prober, probe, code == 0 || origin == RXW_ORIGIN_PEER, code == RXW_CALL_DEAD);
}

/* Wait until a probe is answered, somebody hurries, or a server is due. */
static void wait_for_work(struct cl_prober *prober)
{
	unsigned ms = prober->net->pause_ms, tick = ms * TICK_PAUSES;
	/* A wait in the queue would make this thread the one that receives for all. */
	struct pollfd fds[] = {{.fd = rxw_queue_fd(prober->queue), .events = POLLIN},
			       {.fd = prober->watch, .events = POLLIN}};
	unsigned most = TICK_MS, count = 2;

	if (prober->urgent)
		tick = ms;
	if (prober->watch < 0)
		most = UNTOLD_MS;
	/* Many changes, as those of a routing daemon, do not keep this thread busy. */
	if (prober->told_at && cl_net_now() < prober->told_at + CALM_MS * NS_PER_MS) {
		most = CALM_MS;
		count = 1;
	}
	if (prober->watchful && tick > CL_LOAD_MS)
		tick = CL_LOAD_MS;
	poll(fds, count, (int)(tick < most ? tick : most));
}

/* At the end nobody waits for answers. */
static void abort_probes(struct cl_prober *prober)
{
	for (struct probe *probe = prober->running; probe; probe = probe->next)
		rxw_call_abort(probe->call, RXW_USER_ABORT);
}

static void tell_idle(struct cl_prober *prober)
{
	const struct cl_net *net = prober->net;
	uint64_t now = cl_net_now();

	if (!net->ops.idle || now < prober->next_idle || atomic_load(&prober->stop))
		return;
	prober->next_idle = now + (uint64_t)net->pause_ms * TICK_PAUSES * NS_PER_MS;
	net->ops.idle(net->arg);
}

static void *run_prober(void *arg)
{
	struct cl_prober *prober = arg;

	while (!atomic_load(&prober->stop) || prober->running) {
		struct rxw_queue_event events[16];
		int n;

		tell_idle(prober);

		if (!atomic_load(&prober->stop)) {
			look_for_sleep(prober);
			look_for_moves(prober);
			probe_due_servers(prober);
		} else {
			abort_probes(prober);
		}
		wait_for_work(prober);
		n = rxw_queue_next(prober->queue, events, 16, 0);
		for (int i = 0; i < n; i++)
			take_probe_answer(prober, &events[i]);
	}
	return NULL;
}

static void close_watch(const struct cl_prober *prober)
{
	if (prober->watch >= 0)
		close(prober->watch);
}

int cl_probes_start(struct cl_net *net)
{
	struct cl_prober *prober = calloc(1, sizeof(*prober));
	int rc;

	if (!prober)
		return -ENOMEM;
	prober->net = net;
	prober->slept = asleep_ns();
	prober->watch = cl_routes_watch();
	cl_interfaces_read(&prober->interfaces);
	rc = rxw_queue_create(net->engine, NULL, &prober->queue);
	if (rc == 0 && pthread_create(&prober->thread, NULL, run_prober, prober) != 0) {
		rxw_queue_destroy(prober->queue);
		rc = -1;
	}
	if (rc < 0) {
		close_watch(prober);
		free(prober);
		return -ENOMEM;
	}
	net->prober = prober;
	net->probing = prober->queue;
	return 0;
}

void cl_probes_stop(struct cl_net *net)
{
	struct cl_prober *prober = net->prober;

	if (!prober)
		return;
	atomic_store(&prober->stop, true);
	rxw_queue_post(prober->queue, NULL);
	pthread_join(prober->thread, NULL);
	rxw_queue_destroy(prober->queue);
	net->prober = NULL;
	close_watch(prober);
	free(prober);
}

void cl_probes_hurry(struct cl_server *server)
{
	uint64_t now = cl_net_now(), soon;
	bool wake;

	pthread_mutex_lock(&server->lock);
	/* Whoever waits makes it due, once in a pause. */
	soon = now + pause_after_probes(server->net, 0);
	wake = server->probes == 0 && (server->next_probe <= now || server->next_probe > soon);
	if (server->next_probe > soon)
		server->next_probe = soon;
	pthread_mutex_unlock(&server->lock);
	if (wake)
		rxw_queue_post(server->net->probing, NULL);
}

struct probing {
	struct cl_net *net;
	uint32_t cell;
	uint64_t since;
};

/* All servers have answered since then, or are down. */
static bool are_probed(void *arg)
{
	const struct probing *p = arg;
	struct cl_server *server;

	for (uint32_t n = 1; (server = cl_server_at(p->net, n)); n++) {
		if (p->cell && cl_cell_number(server->cell) != p->cell)
			continue;
		if (atomic_load(&server->heard_at) < p->since && !atomic_load(&server->down))
			return false;
	}
	return true;
}

void cl_net_probe_servers(struct cl_net *net, uint32_t cell, const struct cl_caller *caller)
{
	struct probing p = {.net = net, .cell = cell, .since = cl_net_now()};
	struct cl_server *server;

	for (uint32_t n = 1; (server = cl_server_at(net, n)); n++) {
		if (cell && cl_cell_number(server->cell) != cell)
			continue;
		atomic_store(&server->probed, false);
		pthread_mutex_lock(&server->lock);
		server->next_probe = 0;
		pthread_mutex_unlock(&server->lock);
		cl_probes_hurry(server);
	}
	cl_wait(net, caller->cancel, p.since + (uint64_t)(net->dead_ms + 2000) * NS_PER_MS,
		are_probed, &p);
}
