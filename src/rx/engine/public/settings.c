/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunables of engines and endpoints that exist. */
#include <stdlib.h>
#include <string.h>

#include "engine/core/config.h"
#include "engine/public/settings.h"
#include "engine/core/fork.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define MTU_MOST 8972u /* of a search: a packet of 9,000 bytes */
#define PINNED 4096u /* bytes that a packet pins, at most */

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
	p->call_memory = ep->constants.call_memory;
	if (c->window > RXW_MAX_ACKS)
		p->wide_memory = rxw_min64((uint64_t)c->window * PINNED, c->peer_memory);
	p->conn_memory = 4 * rxw_max64(p->call_memory, p->wide_memory);
	p->peer_memory = c->peer_memory;
	p->sendq_high = ep->constants.sendq_packets;
	/* A window in flight and one ready when the writer is woken keep the network busy. */
	p->sendq_low = p->sendq_high * 2 / 3;
	p->wake_packets = 64;
	p->unread_packets = 256;
	p->cc = rxw_config_controller(c, false);
	p->cc_wide = rxw_config_controller(c, true);
	memcpy(p->secret, ep->engine->key, sizeof(p->secret));
}

int rxw_settings_apply(struct rxw_endpoint *ep, const struct rxw_config *c)
{
	struct rxw_settings *made = calloc(1, sizeof(*made)), *before;

	if (!made)
		return -RXW_ENOMEM;
	set_params(ep, c, &made->params);
	atomic_init(&made->refs, 1);
	rxw_peers_lock(ep);
	before = ep->settings;
	ep->settings = made;
	rxw_peers_unlock(ep);
	rxw_settings_unref(before);
	atomic_store(&ep->window, c->window);
	atomic_store(&ep->mtu, c->mtu);
	atomic_store(&ep->connections_max, c->connections_max);
	atomic_store(&ep->poll_us, c->poll_us);
	rxw_unvalidated_lock(ep);
	ep->debug_net_valid = c->debug_access == RXW_DEBUG_NET &&
			      rxw_cidr_parse(&ep->debug_net, c->debug_clients);
	rxw_unvalidated_unlock(ep);
	atomic_store(&ep->debug_access, (unsigned)c->debug_access);
	return 0;
}

/*
 * May the tunable change while the endpoint exists? Threads and sockets are made with the others.
 */
static bool may_change_setting(const struct rxw_option *option)
{
	static const char *const fixed[] = {"listeners", "rcvbuf", "sndbuf", "gso",
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
	struct rxw_config next = ep->config;
	int r = rxw_config_set(&next, option->name, value, NULL, 0);

	if (r)
		return r;
	if (!may_change_setting(option))
		return -RXW_ESTATE;
	r = rxw_settings_apply(ep, &next);
	if (r)
		return r;
	if (!strcmp(option->name, "log-level"))
		atomic_store(&ep->engine->log_level, (unsigned)next.log_level);
	*threads = rxw_workers_limit(ep, next.workers_max, next.queue);
	/* Other threads read members that never change: only this one is stored. */
	return rxw_config_set(&ep->config, option->name, value, NULL, 0);
}

int rxw_endpoint_set(rxw_endpoint *endpoint, const char *name, const char *value)
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
