/* SPDX-License-Identifier: BSD-2-Clause */
/* The paths to a file server: which there are, and what is known of each. */
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "afs/address.h"
#include "client/net/netpath.h"
#include "client/net/pairs.h"

#define FRESH_NS ((uint64_t)60 * NS_PER_S) /* a rate is of use so long */

/* A path that the kernel has now. */
struct candidate {
	struct cl_way way; /* without a local address: the kernel chooses this one */
	struct sockaddr_storage source;
	unsigned interface;
	char device[IF_NAMESIZE];
};

struct candidates {
	bool tunnelled; /* by the kernel's choice, what is sent to an address goes into a tunnel */
	unsigned count;
	struct candidate list[CL_PATHS];
};

static bool has_interface(const struct candidates *c, unsigned interface)
{
	for (unsigned i = 0; i < c->count; i++)
		if (c->list[i].interface == interface)
			return true;
	return false;
}

/* By the kernel's route to an address. The first one is listed even if there is none now. */
static void add_chosen(struct candidates *c, const struct cl_interfaces *interfaces,
		       const struct cl_address *to)
{
	struct candidate *new = &c->list[c->count];
	const struct cl_interface *at;

	if (c->count == CL_PATHS)
		return;
	*new = (struct candidate){.way = {.sa = to->sa, .len = to->len}};
	if (!cl_route_source(&to->sa, to->len, NULL, &new->source) && c->count > 0)
		return;
	at = cl_interface_of(interfaces, &new->source);
	if (at) {
		c->tunnelled = c->tunnelled || at->tunnel;
		new->interface = at->index;
		memcpy(new->device, at->device, sizeof(new->device));
	}
	c->count++;
}

/* Addresses of the link alone, of which several interfaces may have the same. */
static bool is_link_local(const struct sockaddr_storage *source)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)source;

	return source->ss_family == AF_INET && ntohl(sin->sin_addr.s_addr) >> 16 == 0xa9fe;
}

/* From an interface that the kernel does not choose for any of the addresses, if it has a route to one. */
static bool add_further(struct candidates *c, const struct cl_interfaces *interfaces,
			const struct cl_interface *from, const struct cl_address *to)
{
	struct candidate *new = &c->list[c->count];
	const struct cl_interface *at;
	struct sockaddr_storage source;

	/* An interface without an address of its own would lend that of another one. */
	if (!cl_route_source(&to->sa, to->len, from->device, &source) || is_link_local(&source) ||
	    !(at = cl_interface_of(interfaces, &source)) || at->index != from->index ||
	    !cl_route_exists(&to->sa, &source, from->index))
		return false;
	*new = (struct candidate){.way = {.sa = to->sa,
					  .len = to->len,
					  .local = source,
					  .local_len = to->len,
					  .interface = from->index},
				  .source = source,
				  .interface = from->index};
	memcpy(new->device, from->device, sizeof(new->device));
	c->count++;
	return true;
}

static bool is_listed(const struct candidates *c, const struct candidate *new)
{
	for (unsigned i = 0; i < c->count; i++)
		if (c->list[i].interface == new->interface &&
		    afs_same_address(&c->list[i].way.sa, &new->way.sa) &&
		    afs_same_address(&c->list[i].source, &new->source))
			return true;
	return false;
}

/* By the kernel's route if that is the path that was named, or else from its address and interface, if there is a route from there. */
static void add_named(struct candidates *c, const struct cl_interfaces *interfaces,
		      const struct cl_pair *pair, const struct cl_address *to)
{
	const struct cl_interface *at = NULL;
	struct candidate new = {.way = {.sa = to->sa, .len = to->len}};
	char device[IF_NAMESIZE];

	if (cl_route_source(&to->sa, to->len, NULL, &new.source))
		at = cl_interface_of(interfaces, &new.source);
	if (pair->interface && (!at || at->index != pair->interface ||
				(pair->local.ss_family != AF_UNSPEC &&
				 !afs_same_address(&pair->local, &new.source)))) {
		new.source = pair->local;
		if (pair->local.ss_family == AF_UNSPEC &&
		    (!if_indextoname(pair->interface, device) ||
		     !cl_route_source(&to->sa, to->len, device, &new.source)))
			return;
		at = cl_interface_of(interfaces, &new.source);
		if (!at || at->index != pair->interface ||
		    !cl_route_exists(&to->sa, &new.source, at->index))
			return;
		new.way.local = new.source;
		new.way.local_len = to->len;
		new.way.interface = at->index;
	}
	if (!new.source.ss_family || c->count == CL_PATHS)
		return;
	if (at) {
		new.interface = at->index;
		memcpy(new.device, at->device, sizeof(new.device));
	}
	if (!is_listed(c, &new))
		c->list[c->count++] = new;
}

/* Those that the user has named, to the address in use first. */
static void list_named(struct candidates *c, const struct cl_net *net, const struct cl_address *to,
		       unsigned count, unsigned current)
{
	struct cl_interfaces interfaces;

	c->count = 0;
	cl_interfaces_read(&interfaces);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < net->pair_count; k++)
			if (cl_pair_leads_to(&net->pairs[k], &to[(current + i) % count].sa))
				add_named(c, &interfaces, &net->pairs[k],
					  &to[(current + i) % count]);
}

/* Whether the server is on this machine: its address is one of ours, or packets to it come from the loopback interface. */
static bool is_here(const struct candidate *c)
{
	struct sockaddr_storage host = c->way.sa;

	if (!c->source.ss_family)
		return false;
	if (host.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&host)->sin6_port = 0;
	else
		((struct sockaddr_in *)&host)->sin_port = 0;
	return !c->interface || afs_same_address(&host, &c->source);
}

/*
 * One for each address of the server, by the kernel's route, and one more for each further interface (P-057), to the address after the last
 * one so that each address and each interface has a path of its own if there are enough of both.
 */
static void list_candidates(struct candidates *c, const struct cl_address *to, unsigned count,
			    unsigned current)
{
	struct cl_interfaces interfaces;
	unsigned next = current + 1;

	c->count = 0;
	c->tunnelled = false;
	cl_interfaces_read(&interfaces);
	for (unsigned i = 0; i < count; i++)
		add_chosen(c, &interfaces, &to[(current + i) % count]);
	for (unsigned i = 0; i < c->count; i++)
		if (is_here(&c->list[i]))
			return;
	for (unsigned i = 0; i < interfaces.count && c->count < CL_PATHS; i++) {
		const struct cl_interface *from = &interfaces.list[i];
		/* What is meant for a tunnel, as that of a VPN, is not sent beside it. */
		bool added = !from->running || has_interface(c, from->index) ||
			     (c->tunnelled && !from->tunnel);

		for (unsigned k = 0; k < count && !added; k++)
			added = add_further(c, &interfaces, from, &to[next++ % count]);
	}
}

/* ---- the list of a server ---- */

static bool is_candidate(const struct cl_path *path, const struct candidate *c)
{
	/* Packets of one whose source is not fixed are another path once the kernel chooses another one. */
	return path->interface == c->interface && afs_same_address(&path->way.sa, &c->way.sa) &&
	       afs_same_address(&path->source, &c->source) &&
	       (path->way.local_len || !c->way.local_len);
}

static struct cl_path *make_server_path(struct cl_server *server, const struct candidate *c)
{
	struct cl_path *path = calloc(1, sizeof(*path));

	if (!path)
		return NULL;
	path->server = server;
	path->way = c->way;
	path->source = c->source;
	path->interface = c->interface;
	memcpy(path->device, c->device, sizeof(path->device));
	path->refs = 1;
	return path;
}

/* True: nobody uses it any more. */
static bool drop_reference(struct cl_path *path)
{
	assert(mutex_is_held(&path->server->lock) && path->refs > 0);
	return --path->refs == 0;
}

/* Paths that the kernel does not have any more leave the list, and new ones join. In the order of the candidates. */
static void renew_paths(struct cl_server *server, const struct candidates *c)
{
	struct cl_path *old[CL_PATHS], *path;
	unsigned count = server->path_count;

	assert(mutex_is_held(&server->lock));
	memcpy(old, server->paths, sizeof(old));
	server->path_count = 0;
	for (unsigned i = 0; i < c->count; i++) {
		unsigned k = 0;

		while (k < count && !(old[k] && is_candidate(old[k], &c->list[i])))
			k++;
		path = k < count ? old[k] : make_server_path(server, &c->list[i]);
		if (k < count)
			old[k] = NULL;
		if (path)
			server->paths[server->path_count++] = path;
	}
	for (unsigned k = 0; k < count; k++) {
		if (!old[k])
			continue;
		old[k]->gone = true;
		if (drop_reference(old[k]))
			free(old[k]);
	}
}

static uint64_t count_changes(struct cl_server *server)
{
	/* 1: never 0, which stands for a list that was not made yet. */
	return 1 + (uint64_t)atomic_load(&server->net->moves);
}

bool cl_paths_changed(struct cl_server *server, uint64_t *seen)
{
	uint64_t now = count_changes(server);
	bool changed = *seen != now;

	*seen = now;
	return changed;
}

/* That of ordinary calls is the first one. */
static unsigned first_path(const struct cl_server *server)
{
	const struct cl_address *used = &server->addresses[server->current];

	for (unsigned i = 0; i < server->path_count; i++)
		if (afs_same_address(&server->paths[i]->way.sa, &used->sa) &&
		    !server->paths[i]->way.local_len)
			return i;
	return 0;
}

unsigned cl_paths_take(struct cl_server *server, struct cl_path *list[CL_PATHS])
{
	struct cl_address addresses[CL_ADDRESSES];
	struct candidates candidates;
	uint64_t now = count_changes(server);
	unsigned count, current, first;
	bool fresh;

	pthread_mutex_lock(&server->lock);
	fresh = server->paths_at == now;
	count = server->address_count;
	current = server->current;
	memcpy(addresses, server->addresses, count * sizeof(addresses[0]));
	pthread_mutex_unlock(&server->lock);
	if (!fresh && server->net->pair_count)
		list_named(&candidates, server->net, addresses, count, current);
	else if (!fresh)
		list_candidates(&candidates, addresses, count, current);
	pthread_mutex_lock(&server->lock);
	/* Another thread may have made a newer list meanwhile. */
	if (!fresh && server->paths_at < now) {
		renew_paths(server, &candidates);
		server->paths_at = now;
	}
	count = server->path_count;
	first = first_path(server);
	for (unsigned i = 0; i < count; i++) {
		list[i] = server->paths[(first + i) % count];
		list[i]->refs++;
	}
	pthread_mutex_unlock(&server->lock);
	return count;
}

void cl_path_put(struct cl_path *path)
{
	struct cl_server *server = path->server;
	bool last;

	pthread_mutex_lock(&server->lock);
	last = drop_reference(path);
	pthread_mutex_unlock(&server->lock);
	if (last)
		free(path);
}

void cl_paths_free(struct cl_server *server)
{
	pthread_mutex_lock(&server->lock);
	renew_paths(server, &(struct candidates){.count = 0});
	pthread_mutex_unlock(&server->lock);
}

struct cl_lane *cl_path_take_lane(struct cl_path *path, struct cl_credential *credential)
{
	return cl_server_take_lane(path->server, credential, &path->way);
}

bool cl_path_take_named(struct cl_server *server, struct cl_path **path)
{
	struct cl_path *list[CL_PATHS];
	unsigned count, chosen = 0;

	*path = NULL;
	if (!server->net->pair_count)
		return true;
	count = cl_paths_take(server, list);
	pthread_mutex_lock(&server->lock);
	while (chosen < count && list[chosen]->probed && list[chosen]->state == CL_PATH_OUT)
		chosen++;
	pthread_mutex_unlock(&server->lock);
	if (count)
		*path = list[chosen < count ? chosen : 0];
	for (unsigned i = 0; i < count; i++)
		if (list[i] != *path)
			cl_path_put(list[i]);
	return *path;
}

/* ---- what is known ---- */

bool cl_path_is_gone(struct cl_path *path)
{
	bool gone;

	pthread_mutex_lock(&path->server->lock);
	gone = path->gone;
	pthread_mutex_unlock(&path->server->lock);
	return gone;
}

uint64_t cl_path_rtt(struct cl_path *path)
{
	struct cl_server *server = path->server;
	uint64_t rtt;

	pthread_mutex_lock(&server->lock);
	rtt = path->rtt_ns;
	for (unsigned i = 0; i < server->address_count && !rtt; i++)
		if (afs_same_address(&server->addresses[i].sa, &path->way.sa))
			rtt = (uint64_t)server->addresses[i].rtt_us * 1000;
	pthread_mutex_unlock(&server->lock);
	return rtt;
}

void cl_path_lives(struct cl_path *path, uint64_t rtt_ns)
{
	pthread_mutex_lock(&path->server->lock);
	path->probed = true;
	path->rtt_ns = rtt_ns;
	path->measured_at = cl_net_now();
	path->state = CL_PATH_LIVE;
	pthread_mutex_unlock(&path->server->lock);
}

void cl_path_dies(struct cl_path *path)
{
	bool lived;

	pthread_mutex_lock(&path->server->lock);
	lived = path->state != CL_PATH_OUT;
	path->deaths += lived;
	path->probed = true;
	path->state = CL_PATH_OUT;
	path->rate = 0;
	path->load.next_probe = 0;
	path->load.probes_failed = path->load.measured = 0;
	path->server->lost_path = path->server->lost_path || lived;
	pthread_mutex_unlock(&path->server->lock);
	if (lived)
		rxw_queue_post(path->server->net->probing, NULL);
}

void cl_path_note(struct cl_path *path, double rate, uint64_t bytes, uint64_t repeated)
{
	pthread_mutex_lock(&path->server->lock);
	path->bytes += bytes;
	path->repeated += repeated;
	if (rate > 0) {
		path->rate = rate;
		path->measured_at = cl_net_now();
	}
	pthread_mutex_unlock(&path->server->lock);
}

double cl_path_rate(struct cl_path *path)
{
	double rate;

	pthread_mutex_lock(&path->server->lock);
	rate = path->measured_at + FRESH_NS > cl_net_now() ? path->rate : 0;
	pthread_mutex_unlock(&path->server->lock);
	return rate;
}

unsigned cl_net_server_paths(struct cl_net *net, uint32_t number,
			     struct cl_path_report reports[CL_PATHS], bool untried[CL_PATHS])
{
	struct cl_server *server = cl_server_at(net, number);
	struct cl_path *list[CL_PATHS];
	unsigned count = server ? cl_paths_take(server, list) : 0;

	for (unsigned i = 0; i < count; i++) {
		const struct cl_path *path = list[i];
		struct cl_path_report *report = &reports[i];

		*report = (struct cl_path_report){.rtt_ns = cl_path_rtt(list[i])};
		cl_path_describe(path, report);
		pthread_mutex_lock(&server->lock);
		report->state = path->state;
		report->rate = path->rate;
		report->bytes = path->bytes;
		report->repeated = path->repeated;
		report->deaths = path->deaths;
		untried[i] = !path->probed;
		pthread_mutex_unlock(&server->lock);
		cl_path_put(list[i]);
	}
	return count;
}

void cl_path_describe(const struct cl_path *path, struct cl_path_report *report)
{
	report->remote = path->way.sa;
	report->local = path->source;
	memcpy(report->device, path->device, sizeof(report->device));
}
