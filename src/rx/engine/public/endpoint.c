/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of endpoints: binding a port, tunables, starting shards, stopping gracefully. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cancel.h"
#include "common/sized.h"
#include "engine/receive/lifecycle.h"
#include "engine/objects.h"
#include "engine/lock.h"
#include "proto/peer/validation.h"
#include "engine/core/config.h"
#include "engine/core/constants.h"

#define LINES_LOGGED 5u /* lines that clients cause in the log, per second */
#define LOCAL_ANSWERS \
	10000 /* a second: programs that list all connections send a request for each */
#define MAX_AUTO_LISTENERS 8
#define MTU_MOST	   8972u /* of a search: a packet of 9,000 bytes */
#define PINNED		   4096u /* bytes that a packet pins, at most */
#define SOURCE_TEXT	   "rxwire"
#define AUTO_RCVBUF \
	(32u        \
	 << 20) /* 100 streams with a full window; memory is used only while packets are queued */
#define AUTO_SNDBUF (4u << 20)
/* Kernel memory of a full packet in a socket's queue: alone, and in a burst. */
#define TRUE_SIZE	2304u
#define TRUE_SIZE_BURST 1700u

static void set_params(const struct rxw_endpoint *ep, const struct rxw_config *c,
		       struct rxw_params *p)
{
	bool search;

	p->window = (uint16_t)c->window;
	p->initial_window = c->window < 16 ? (uint16_t)c->window : 16;
	p->mtu = c->mtu;
	p->mtu_auto = c->path_mtu == RXW_AUTO;
	/* A size that somebody has set is not exceeded automatically. */
	search = p->mtu_auto ? c->mtu == RXW_MTU_DEFAULT : c->path_mtu == RXW_ON;
	p->mtu_ceiling = search ? rxw_max32(c->mtu, MTU_MOST) : c->mtu;
	p->jumbo = c->jumbo == RXW_ON;
	p->ecn = c->ecn != RXW_OFF;
	p->dead = c->dead_ms * RXW_MS;
	p->client_idle = c->idle_ms * RXW_MS;
	p->server_idle = c->server_idle_ms * RXW_MS;
	p->hard = c->hard_ms * RXW_MS;
	p->ack_delay = 50 * RXW_MS;
	p->call_memory = ep->settings.constants.call_memory;
	if (c->window > RXW_MAX_ACKS)
		p->wide_memory = rxw_min64((uint64_t)c->window * PINNED, c->peer_memory);
	p->conn_memory = 4 * rxw_max64(p->call_memory, p->wide_memory);
	p->peer_memory = c->peer_memory;
	p->sendq_high = ep->settings.constants.sendq_packets;
	/* A window in flight and one ready when the writer is woken keep the network busy. */
	p->sendq_low = p->sendq_high * 2 / 3;
	p->wake_packets = 64;
	p->unread_packets = 256;
	p->cc = rxw_config_controller(c, false);
	p->cc_wide = rxw_config_controller(c, true);
	memcpy(p->secret, ep->engine->key, sizeof(p->secret));
}

/*
 * Endpoint's lock held, or no other thread knows it: puts `c` into effect, apart from the limits of workers, and
 * from what is fixed when threads and sockets are made. 0 or -RXW_ENOMEM.
 */
__attribute__((cold)) static int put_into_effect(struct rxw_endpoint *ep,
						 const struct rxw_config *c)
{
	struct rxw_settings *made = calloc(1, sizeof(*made)), *before;

	if (!made)
		return -RXW_ENOMEM;
	set_params(ep, c, &made->params);
	atomic_init(&made->refs, 1);
	rxw_peers_lock(ep);
	before = ep->settings.current;
	ep->settings.current = made;
	rxw_peers_unlock(ep);
	rxw_settings_unref(before);
	atomic_store(&ep->settings.window, c->window);
	atomic_store(&ep->settings.mtu, c->mtu);
	atomic_store(&ep->settings.connections_max, c->connections_max);
	atomic_store(&ep->settings.poll_us, c->poll_us);
	rxw_unvalidated_lock(ep);
	ep->debug.net_valid = c->debug_access == RXW_DEBUG_NET &&
			      rxw_cidr_parse(&ep->debug.net, c->debug_clients);
	rxw_unvalidated_unlock(ep);
	atomic_store(&ep->debug.access, (unsigned)c->debug_access);
	return 0;
}

/*
 * Two listeners on one CPU interrupt each other, and each batch is smaller. So CPUs that the process
 * may not use do not count.
 */
static unsigned listeners_of(const struct rxw_endpoint *ep)
{
	unsigned cpus = ep->engine->cpus;

	if (ep->settings.config.listeners && ep->settings.config.listeners != RXW_LISTENERS_SHARED)
		return ep->settings.config.listeners;
	if (!ep->server || ep->settings.config.listeners)
		return 1;
	return cpus > MAX_AUTO_LISTENERS ? MAX_AUTO_LISTENERS : cpus;
}

static void log_io(void *arg, int level, const char *line)
{
	rxw_log(arg, (enum rxw_log_level)level, "%s", line);
}

/* The sum that advertised windows may reach, from the receive buffers that the kernel granted. */
static uint32_t room_packets(const struct rxw_io_group *g)
{
	uint64_t room = 0;

	for (unsigned i = 0; i < g->count; i++)
		room += rxw_io_rcvbuf(g->sock[i]) /
			(rxw_io_gro(g->sock[i]) ? TRUE_SIZE_BURST : TRUE_SIZE);
	return room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
}

/* `affinity` = auto. Returns whether the processor that takes a packet from a card selects the socket. */
__attribute__((cold)) static bool place_shards(struct rxw_endpoint *ep, unsigned count)
{
	if (strcmp(ep->settings.config.affinity, "auto") != 0 ||
	    sched_getaffinity(0, sizeof(ep->threads.allowed), &ep->threads.allowed) < 0)
		return false;
	rxw_place("/sys", &ep->threads.allowed, count, ep->threads.cpu);
	ep->threads.placed = true;
	return count <= ep->engine->cpus && rxw_place_has_queues("/sys", count);
}

static int open_sockets(struct rxw_endpoint *ep, const struct rxw_addr *bind,
			const struct rxw_endpoint_options *options)
{
	const struct rxw_config *c = &ep->settings.config;
	struct rxw_io_options o = {.bind = *bind,
				   .dual = options->dual_stack,
				   .sockets = options->socket_count
						      ? (unsigned)options->socket_count
						      : listeners_of(ep),
				   .given = options->socket_count ? options->sockets : NULL,
				   .batch = ep->settings.constants.batch,
				   .gso = c->gso != RXW_OFF,
				   .gro = c->gro != RXW_OFF,
				   .plain = c->io == RXW_IO_MSG,
				   .steer = ep->settings.constants.steer,
				   .rcvbuf = c->rcvbuf ? c->rcvbuf : AUTO_RCVBUF,
				   .sndbuf = c->sndbuf ? c->sndbuf : AUTO_SNDBUF,
				   .faults = ep->settings.constants.faults,
				   .log = log_io,
				   .log_arg = ep->engine,
				   .warned = &ep->engine->io_warned};
	bool by_cpu = place_shards(ep, o.sockets);
	int r;

	o.cpu = ep->threads.placed ? ep->threads.cpu : NULL;
	if (by_cpu && !o.steer)
		o.steer = RXW_IO_STEER_CPU;
	r = rxw_io_open(&ep->io, &o);
	if (r) {
		errno = -r;
		return r == -EADDRINUSE		 ? -RXW_EADDRINUSE
		       : r == -EINVAL && o.given ? -RXW_EINVAL
						 : -RXW_ESYS;
	}
	ep->usage.room_packets = room_packets(&ep->io);
	return 0;
}

static int create_shards(struct rxw_endpoint *ep)
{
	uint64_t now = rxw_now();
	int r;

	ep->peers.table = rxw_peer_table_create(ep->engine->key, ep->settings.config.peer_memory,
						&ep->engine->wide);
	ep->shard = calloc(ep->io.count, sizeof(*ep->shard));
	if (!ep->peers.table || !ep->shard)
		return -RXW_ENOMEM;
	rxw_rate_init(&ep->admit.abort_rate, ep->settings.constants.abort_rate, now);
	rxw_rate_init(&ep->admit.answer_rate, ep->settings.constants.answer_rate, now);
	rxw_rate_init(&ep->admit.local_rate, LOCAL_ANSWERS, now);
	rxw_rate_init(&ep->admit.log_rate, LINES_LOGGED, now);
	ep->shard_count = ep->io.count;
	r = rxw_workers_create(ep);
	if (r)
		return r;
	r = rxw_verifier_create(ep);
	for (unsigned i = 0; i < ep->shard_count && !r; i++)
		r = rxw_shard_init(&ep->shard[i], ep, i);
	return r;
}

static int start_shards(struct rxw_endpoint *ep)
{
	int r = 0;

	for (unsigned i = 0; i < ep->shard_count && !r; i++)
		r = rxw_shard_start(&ep->shard[i]);
	return r;
}

__attribute__((cold)) int rxw_endpoint_start(rxw_endpoint *endpoint)
{
	int r = -RXW_ESTATE;
	NOT_CANCELLED;

	if (!endpoint)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	pthread_mutex_lock(&endpoint->lock);
	if (endpoint->life.paused) {
		endpoint->life.paused = false;
		r = start_shards(endpoint);
	}
	pthread_mutex_unlock(&endpoint->lock);
	return r;
}

static void remove_connections(struct rxw_endpoint *ep)
{
	for (unsigned i = 0; i < ep->shard_count; i++) {
		struct rxw_shard *s = &ep->shard[i];

		/* No connection is added any more, so empty slots stay empty. */
		for (unsigned k = 0;;) {
			struct rxw_connection *c = NULL;

			rxw_table_lock(s);
			for (; k < rxw_conntable_chains(&s->table) && !c; k += !c) {
				struct rxw_pconn *p = rxw_conntable_chain(&s->table, k);

				if (p) {
					c = rxw_conn_of(p);
					rxw_conn_ref(c);
				}
			}
			rxw_table_unlock(s);
			if (!c)
				break;
			rxw_conn_remove(c);
			rxw_conn_unref(c);
		}
	}
}

/* Ends the threads and removes all connections. The application may still have handles of some. */
__attribute__((cold)) static void quiesce_endpoint(struct rxw_endpoint *ep)
{
	if (ep->life.quiesced)
		return;
	ep->life.quiesced = true;
	atomic_store(&ep->life.quit, true);
	if (ep->shard_count) {
		rxw_queue_forget(ep);
		rxw_queue_drop_channels(ep);
	}
	for (unsigned i = 0; i < ep->shard_count; i++)
		if (ep->shard[i].ep)
			rxw_shard_stop(&ep->shard[i]);
	if (!ep->verifier)
		return;
	rxw_verifier_stop(ep->verifier);
	remove_connections(ep);
	for (unsigned i = 0; i < ep->shard_count; i++) {
		if (!ep->shard[i].ep)
			continue;
		rxw_timer_forget_all(&ep->shard[i]);
		rxw_send_forget(&ep->shard[i]);
	}
}

static void tear_down(struct rxw_endpoint *ep)
{
	quiesce_endpoint(ep);
	for (unsigned i = 0; i < ep->shard_count; i++)
		rxw_shard_fini(&ep->shard[i]);
	rxw_verifier_free(ep->verifier);
	rxw_workers_free(ep->workers);
	rxw_io_close(&ep->io);
	if (ep->peers.table)
		rxw_peer_table_destroy(ep->peers.table);
	rxw_cookies_destroy(ep->admit.cookies);
	for (unsigned i = 0; i < atomic_load(&ep->services.count); i++)
		if (atomic_load(&ep->services.id[i]))
			rxw_service_unref(&ep->services.place[i]);
	pthread_mutex_destroy(&ep->lock);
	pthread_mutex_destroy(&ep->peers.lock);
	pthread_mutex_destroy(&ep->admit.lock);
	rxw_trace_free(ep);
	rxw_settings_unref(ep->settings.current);
	rxw_alive_end(&ep->life.alive);
	free(ep->shard);
	free(ep);
}

static const struct rxw_upcalls upcalls = {
	.free_call = rxw_call_free,
	.free_connection = rxw_conn_free,
	.serve = rxw_serve_call,
	.finish = rxw_stream_finish,
	.verify = rxw_verify_job_run,
	.cancel = rxw_verify_job_cancel,
};

static bool is_wildcard6(const struct rxw_addr *a)
{
	return a->u.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr);
}

__attribute__((cold)) __attribute__((cold)) int
rxw_endpoint_create(rxw_engine *engine, const struct rxw_endpoint_options *options,
		    rxw_endpoint **endpoint)
{
	return rxw_endpoint_create_with(engine, options, &rxw_constants, endpoint);
}

__attribute__((cold)) int rxw_endpoint_create_with(rxw_engine *engine,
						   const struct rxw_endpoint_options *options,
						   const struct rxw_constants *constants,
						   rxw_endpoint **endpoint)
{
	struct rxw_endpoint_options o = {.size = sizeof(o)};
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rxw_endpoint *ep;
	struct rxw_addr bind;
	const char *text;
	int r, saved;
	NOT_CANCELLED;

	if (!engine || !endpoint || (options && !sized_read(&o, sizeof(o), options)) ||
	    o.socket_count > RXW_MAX_SHARDS || (o.socket_count && !o.sockets))
		return -RXW_EINVAL;
	if (rxw_engine_inherited(engine))
		return -RXW_ESTATE;
	*endpoint = NULL;
	if (!rxw_addr_set(&bind, o.address ? o.address : (struct sockaddr *)&any,
			  o.address ? o.address_len : sizeof(any)))
		return -RXW_EINVAL;
	if (o.dual_stack && !o.socket_count && !is_wildcard6(&bind))
		return -RXW_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -RXW_ENOMEM;
	pthread_mutex_lock(&engine->lock);
	ep->settings.config = engine->config;
	pthread_mutex_unlock(&engine->lock);
	r = o.config ? rxw_config_adopt(&ep->settings.config, o.config) : 0;
	if (r) {
		free(ep);
		return r;
	}
	ep->settings.constants = *constants;
	ep->engine = engine;
	ep->upcalls = &upcalls;
	rxw_alive_begin(&ep->life.alive);
	ep->server = o.server;
	ep->life.paused = o.paused;
	text = o.version_text ? o.version_text : SOURCE_TEXT;
	strncpy(ep->debug.version_text, text, sizeof(ep->debug.version_text) - 1);
	pthread_mutex_init(&ep->lock, NULL);
	rxw_mutex_init(&ep->peers.lock);
	rxw_mutex_init(&ep->admit.lock);
	r = put_into_effect(ep, &ep->settings.config);
	if (r)
		goto fail;
	r = open_sockets(ep, &bind, &o);
	if (r)
		goto fail;
	r = create_shards(ep);
	if (r)
		goto fail;
	r = ep->life.paused ? 0 : start_shards(ep);
	if (r)
		goto fail;
	pthread_mutex_lock(&engine->lock);
	engine->endpoints++;
	pthread_mutex_unlock(&engine->lock);
	*endpoint = ep;
	return 0;
fail:
	saved = errno;
	tear_down(ep);
	errno = saved;
	return r;
}

/*
 * May the tunable change while the endpoint exists? Threads and sockets are made with the others.
 */
static bool may_change_setting(const struct rxw_option *option)
{
	static const char *const fixed[] = {"listeners", "rcvbuf", "sndbuf",	 "gso",
					    "gro",	 "io",	   "peer-memory"};

	if (!strcmp(option->scope, "engine"))
		return !strcmp(option->name, "log-level");
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!strcmp(option->name, fixed[i]))
			return false;
	return true;
}

/* Endpoint's lock held. *threads: workers to start once it is released. */
static int change_setting(struct rxw_endpoint *ep, const struct rxw_option *option,
			  const char *value, unsigned *threads)
{
	struct rxw_config next = ep->settings.config;
	int r = rxw_config_set(&next, option->name, value, NULL, 0);

	if (r)
		return r;
	if (!may_change_setting(option))
		return -RXW_ESTATE;
	r = put_into_effect(ep, &next);
	if (r)
		return r;
	if (!strcmp(option->name, "log-level"))
		atomic_store(&ep->engine->log_level, (unsigned)next.log_level);
	*threads = rxw_workers_limit(ep, next.workers_max, next.queue);
	/* Other threads read members that never change: only this one is stored. */
	return rxw_config_set(&ep->settings.config, option->name, value, NULL, 0);
}

__attribute__((cold)) int rxw_endpoint_set(rxw_endpoint *endpoint, const char *name,
					   const char *value)
{
	const struct rxw_option *option = name ? rxw_config_option(name) : NULL;
	unsigned threads = 0;
	int r;

	if (!endpoint || !name || !value)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	if (!option)
		return -RXW_ENAME;
	pthread_mutex_lock(&endpoint->lock);
	r = change_setting(endpoint, option, value, &threads);
	pthread_mutex_unlock(&endpoint->lock);
	rxw_workers_make(endpoint, threads);
	return r;
}

__attribute__((cold)) int rxw_endpoint_set_observer(rxw_endpoint *endpoint,
						    const struct rxw_rpc_observer *observer)
{
	if (!endpoint || (observer && !observer->report))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	atomic_store_explicit(&endpoint->observe.observer, observer, memory_order_release);
	return 0;
}

int rxw_endpoint_address(const rxw_endpoint *endpoint, struct sockaddr_storage *address,
			 socklen_t *address_len)
{
	if (!endpoint || !address || !address_len)
		return -RXW_EINVAL;
	memset(address, 0, sizeof(*address));
	memcpy(address, &endpoint->io.bound.u, endpoint->io.bound.len);
	*address_len = endpoint->io.bound.len;
	return 0;
}

/*
 * Connection's lock held: has it calls in progress? An application's call that failed does not
 * count: it was told, and may end the call when it likes.
 */
static bool connection_is_busy(struct rxw_connection *c)
{
	if (!c->p.client)
		return !rxw_pconn_idle(&c->p);
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_call *call = c->p.channel[i] ? rxw_call_of(c->p.channel[i]) : NULL;

		if (call && !call->ended && !call->p.error)
			return true;
	}
	return c->channel_waiters > 0;
}

static void end_calls(struct rxw_connection *c)
{
	if (c->p.client)
		rxw_connection_abort(c, RXW_USER_ABORT);
	else
		rxw_conn_fail(c, RXW_RESTARTING);
}

/*
 * A call without a handler would be refused when it gets one. It may never get one: a client that began it
 * before a restart sends the middle of its request, and this endpoint never gets the beginning.
 */
static void refuse_unattached(struct rxw_connection *c)
{
	struct rxw_effects a;

	if (c->p.client)
		return;
	rxw_change_begin(&a, c);
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->p.channel[i];

		if (p && p->state == RXW_CS_PRECALL && !rxw_call_of(p)->attached)
			rxw_pcall_fail(p, RXW_RESTARTING, RXW_ORIGIN_LOCAL, true, &a.out);
	}
	rxw_change_end(&a, c);
}

#define FOUND_MAX 64

/*
 * Counts connections with calls in progress. `end`, unless NULL, is called for at most FOUND_MAX of each
 * shard, without a lock.
 */
__attribute__((cold)) static unsigned busy_connections(struct rxw_endpoint *ep,
						       void (*end)(struct rxw_connection *c))
{
	unsigned count = 0;

	for (unsigned i = 0; i < ep->shard_count; i++) {
		struct rxw_shard *s = &ep->shard[i];
		struct rxw_connection *found[FOUND_MAX];
		unsigned n = 0;

		rxw_table_lock(s);
		for (unsigned k = 0; k < rxw_conntable_chains(&s->table); k++)
			for (struct rxw_pconn *p = rxw_conntable_chain(&s->table, k); p;
			     p = p->links.hash_next) {
				struct rxw_connection *c = rxw_conn_of(p);
				bool works;

				rxw_conn_lock(c);
				works = connection_is_busy(c);
				/* Callers that wait for a channel see that the endpoint stops. */
				if (works && c->channel_waiters)
					pthread_cond_broadcast(&c->channel_free);
				rxw_conn_unlock(c);
				count += works;
				if (works && end && n < FOUND_MAX) {
					rxw_conn_ref(c);
					found[n++] = c;
				}
			}
		rxw_table_unlock(s);
		for (unsigned k = 0; k < n; k++) {
			end(found[k]);
			rxw_conn_unref(found[k]);
		}
	}
	return count;
}

/* Calls that no thread has taken out of a queue are refused, as those that wait for a worker. */
static void refuse_queued(struct rxw_endpoint *ep)
{
	unsigned n = atomic_load_explicit(&ep->services.count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		uint16_t id = atomic_load_explicit(&ep->services.id[i], memory_order_acquire);
		struct rxw_service *s = id ? rxw_service_find(ep, id) : NULL;

		if (s && s->queue)
			rxw_queue_refuse(s->queue, s);
		rxw_service_unref(s);
	}
}

/* Waits until no call is in progress. -RXW_ETIMEDOUT: some are at the time `end`. */
static int drain_endpoint(struct rxw_endpoint *ep, uint64_t end)
{
	for (;;) {
		bool stopping = atomic_load(&ep->life.stopping);

		if (stopping)
			refuse_queued(ep);
		if (!busy_connections(ep, stopping ? refuse_unattached : NULL))
			return 0;
		if (rxw_now() >= end)
			return -RXW_ETIMEDOUT;
		rxw_sleep_us(2000);
	}
}

__attribute__((cold)) int rxw_endpoint_refuse(rxw_endpoint *endpoint, rxw_code code)
{
	if (!endpoint)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint) || atomic_load(&endpoint->life.stopping))
		return -RXW_ESTATE;
	atomic_store(&endpoint->life.refusing, code);
	return 0;
}

__attribute__((cold)) int rxw_endpoint_hand_over(rxw_endpoint *endpoint, unsigned limit_ms)
{
	NOT_CANCELLED;

	if (!endpoint || !endpoint->server)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	if (rxw_on_library_thread(NULL) || rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	if (atomic_load(&endpoint->life.stopping) || atomic_exchange(&endpoint->life.leaving, true))
		return -RXW_ESTATE;
	return drain_endpoint(endpoint, rxw_now() + limit_ms * RXW_MS);
}

__attribute__((cold)) int rxw_endpoint_stop(rxw_endpoint *endpoint, unsigned limit_ms)
{
	uint64_t end;
	unsigned left;
	int r;
	NOT_CANCELLED;

	if (!endpoint)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	if (rxw_on_library_thread(NULL) || rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	if (atomic_exchange(&endpoint->life.stopping, true))
		return -RXW_ESTATE;
	end = rxw_now() + limit_ms * RXW_MS;
	r = drain_endpoint(endpoint, end);
	end += RXW_STOP_GRACE;
	while (r && busy_connections(endpoint, end_calls) && rxw_now() < end)
		rxw_sleep_us(1000);
	left = rxw_workers_stop(endpoint, end);
	if (!left)
		return r;
	rxw_log(endpoint->engine, RXW_LOG_WARNING,
		"the endpoint has stopped, but %u handlers have not returned yet", left);
	return -RXW_ETIMEDOUT;
}

/* Objects that keep an endpoint from being destroyed. */
struct open_objects {
	unsigned connections; /* of a client, not released */
	unsigned calls;	      /* of a client, not ended */
	unsigned deferred;    /* calls of a server, not ended */
	unsigned handles;     /* references to connections of a server */
	unsigned pools;	      /* of client connections, not released */
};

/* Table's lock held. */
static void count_open(struct rxw_pconn *p, struct open_objects *open)
{
	struct rxw_connection *c = rxw_conn_of(p);

	rxw_conn_lock(c);
	open->connections += p->client && !c->released;
	open->calls += p->client ? c->held : 0;
	rxw_conn_unlock(c);
}

static void find_open(struct rxw_endpoint *ep, struct open_objects *open)
{
	*open = (struct open_objects){.deferred = atomic_load(&ep->usage.deferred),
				      .pools = atomic_load(&ep->usage.pools)};
	for (unsigned i = 0; i < ep->shard_count; i++) {
		struct rxw_shard *s = &ep->shard[i];

		rxw_table_lock(s);
		for (unsigned k = 0; k < rxw_conntable_chains(&s->table); k++)
			for (struct rxw_pconn *p = rxw_conntable_chain(&s->table, k); p;
			     p = p->links.hash_next)
				count_open(p, open);
		rxw_table_unlock(s);
	}
}

static bool is_open(const struct open_objects *open)
{
	return open->connections || open->calls || open->deferred || open->handles || open->pools;
}

/* " of service 5, 7": those that have calls without a worker. */
static void name_services(struct rxw_endpoint *ep, char *to, size_t room)
{
	unsigned n = atomic_load(&ep->services.count);
	size_t used = 0;

	to[0] = 0;
	for (unsigned i = 0; i < n && used < room; i++)
		if (atomic_load(&ep->services.place[i].used) &&
		    atomic_load(&ep->services.place[i].deferred))
			used += (size_t)snprintf(to + used, room - used, "%s%u",
						 used ? ", " : " of service ",
						 ep->services.place[i].id);
}

static void log_open(struct rxw_endpoint *ep, const struct open_objects *open)
{
	char services[100];

	name_services(ep, services, sizeof(services));
	rxw_log(ep->engine, RXW_LOG_INFO,
		"an endpoint is still in use: %u connections are not released, %u calls are not "
		"ended, %u deferred calls%s are not ended, %u references of connections are not "
		"released, %u pools are not released",
		open->connections, open->calls, open->deferred, open->deferred ? services : "",
		open->handles, open->pools);
}

__attribute__((cold)) int rxw_endpoint_destroy(rxw_endpoint *endpoint)
{
	struct open_objects open;
	struct rxw_engine *e;
	NOT_CANCELLED;

	if (!endpoint)
		return 0;
	rxw_check_alive(&endpoint->life.alive, "the endpoint was destroyed before");
	if (rxw_endpoint_inherited(endpoint)) {
		rxw_io_close(&endpoint->io); /* this process's descriptors */
		return 0;
	}
	if (rxw_on_library_thread(NULL) || rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	find_open(endpoint, &open);
	if (is_open(&open)) {
		log_open(endpoint, &open);
		return -RXW_ESTATE;
	}
	if (!atomic_load(&endpoint->life.stopping))
		rxw_endpoint_stop(endpoint, 0);
	refuse_queued(endpoint);
	/* Handlers use what is freed below. */
	rxw_workers_stop(endpoint, UINT64_MAX);
	quiesce_endpoint(endpoint);
	open.handles = atomic_load(&endpoint->usage.owned);
	if (is_open(&open)) {
		log_open(endpoint, &open);
		return -RXW_ESTATE;
	}
	e = endpoint->engine;
	tear_down(endpoint);
	pthread_mutex_lock(&e->lock);
	e->endpoints--;
	pthread_mutex_unlock(&e->lock);
	return 0;
}
