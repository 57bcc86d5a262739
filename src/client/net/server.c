/* SPDX-License-Identifier: BSD-2-Clause */
/* File servers: addresses, connections, and whether they answer (K-132 to K-134). */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/afs.h>

#include "afs/address.h"
#include "afs/uuid.h"
#include "client/net/netpath.h"
#include "common/grow.h"

#define LANE_CONNECTIONS 16u /* of one identity to one server, so 64 calls */
#define LANE_IDLE_NS	 ((uint64_t)600 * NS_PER_S)
#define PROMISE_NS	 ((uint64_t)4 * 3600 * NS_PER_S) /* promises end within this time */
#define NAT_S		 20u				 /* K-139 */
#define DOUBT_NS	 ((uint64_t)NS_PER_S)
#define CHANGE_NS        \
	((uint64_t)600 * \
	 NS_PER_S) /* a change may take so long at least, such as a store to a slow disk */

/* ---- the table ---- */

struct cl_server *cl_server_at(struct cl_net *net, uint32_t number)
{
	struct cl_server *server = NULL;

	pthread_mutex_lock(&net->table_lock);
	if (number >= 1 && number <= net->server_count)
		server = net->servers[number - 1];
	pthread_mutex_unlock(&net->table_lock);
	return server;
}

/* NULL: no memory. */
static struct cl_server *add_server(struct cl_net *net, struct cl_cell *cell)
{
	struct cl_server *server;

	assert(mutex_is_held(&net->table_lock));
	if (!grow_array(&net->servers, &net->server_room, net->server_count,
			sizeof(struct cl_server *)))
		return NULL;
	server = calloc(1, sizeof(*server));
	if (!server)
		return NULL;
	server->net = net;
	server->cell = cell;
	pthread_mutex_init(&server->lock, NULL);
	net->servers[net->server_count++] = server;
	server->number = (uint32_t)net->server_count;
	return server;
}

struct cl_server *cl_server_by_uuid(struct cl_net *net, struct cl_cell *cell,
				    const struct rxw_uuid *uuid)
{
	struct cl_server *server = NULL;

	pthread_mutex_lock(&net->table_lock);
	for (size_t i = 0; i < net->server_count && !server; i++)
		if (net->servers[i]->by_uuid && net->servers[i]->cell == cell &&
		    afs_uuid_same(&net->servers[i]->uuid, uuid))
			server = net->servers[i];
	if (!server) {
		server = add_server(net, cell);
		if (server) {
			server->uuid = *uuid;
			server->by_uuid = true;
		}
	}
	pthread_mutex_unlock(&net->table_lock);
	return server;
}

/* Index of an address, or that behind the last one. */
static unsigned find_address(const struct cl_server *server, const struct sockaddr_storage *sa)
{
	unsigned i = 0;

	assert(mutex_is_held((pthread_mutex_t *)&server->lock));
	while (i < server->address_count && !afs_same_address(&server->addresses[i].sa, sa))
		i++;
	return i;
}

bool cl_server_has_address(struct cl_server *server, const struct sockaddr_storage *sa)
{
	bool found;

	pthread_mutex_lock(&server->lock);
	found = find_address(server, sa) < server->address_count;
	pthread_mutex_unlock(&server->lock);
	return found;
}

struct cl_server *cl_server_from(struct cl_net *net, const struct sockaddr_storage *sa,
				 uint32_t after)
{
	struct cl_server *server;

	do
		server = cl_server_at(net, ++after);
	while (server && !cl_server_has_address(server, sa));
	return server;
}

struct cl_server *cl_server_by_address(struct cl_net *net, struct cl_cell *cell,
				       const struct sockaddr *sa, socklen_t len)
{
	struct cl_server *server = NULL;
	struct cl_address address = {.len = len};

	memcpy(&address.sa, sa, len);
	pthread_mutex_lock(&net->table_lock);
	for (size_t i = 0; i < net->server_count && !server; i++)
		if (net->servers[i]->cell == cell &&
		    cl_server_has_address(net->servers[i], &address.sa))
			server = net->servers[i];
	if (!server) {
		server = add_server(net, cell);
		if (server) {
			server->addresses[0] = address;
			server->address_count = 1;
		}
	}
	pthread_mutex_unlock(&net->table_lock);
	return server;
}

void cl_server_set_addresses(struct cl_server *server, const struct cl_address *addresses,
			     unsigned count, int32_t generation)
{
	struct cl_address now[CL_ADDRESSES], used;
	bool same = true;

	assert(count > 0 && count <= CL_ADDRESSES);
	pthread_mutex_lock(&server->lock);
	used = server->addresses[server->current];
	for (unsigned i = 0; i < count; i++) {
		unsigned old = find_address(server, &addresses[i].sa);

		/* What was measured stays. */
		now[i] = old < server->address_count ? server->addresses[old] : addresses[i];
		same = same && old < server->address_count;
	}
	same = same && count == server->address_count;
	memcpy(server->addresses, now, count * sizeof(now[0]));
	server->address_count = count;
	server->current = find_address(server, &used.sa);
	if (server->current == count)
		server->current = 0;
	server->generation = generation;
	pthread_mutex_unlock(&server->lock);
	if (same)
		return;
	atomic_store(&server->probed, count == 1);
	atomic_fetch_add(&server->net->moves, 1);
}

bool cl_server_current(struct cl_server *server, int32_t generation)
{
	bool current;

	pthread_mutex_lock(&server->lock);
	current = server->address_count > 0 && server->generation == generation;
	pthread_mutex_unlock(&server->lock);
	return current;
}

bool cl_server_reachable(struct cl_server *server)
{
	bool reachable;

	pthread_mutex_lock(&server->lock);
	reachable = server->address_count > 0;
	pthread_mutex_unlock(&server->lock);
	return reachable;
}

/* ---- state ---- */

enum cl_server_state cl_server_state(const struct cl_server *server)
{
	if (atomic_load(&server->down))
		return CL_SERVER_DOWN;
	if (atomic_load(&server->calls) > 0 &&
	    cl_net_now() > atomic_load(&server->silent_since) + DOUBT_NS)
		return CL_SERVER_DOUBT;
	return CL_SERVER_UP;
}

enum cl_server_state cl_net_server_state(struct cl_net *net, uint32_t number)
{
	struct cl_server *server = cl_server_at(net, number);

	return server ? cl_server_state(server) : CL_SERVER_UP;
}

bool cl_net_server_info(struct cl_net *net, uint32_t number, struct cl_server_info *info)
{
	struct cl_server *server = cl_server_at(net, number);
	const struct cl_address *used;

	if (!server)
		return false;
	*info = (struct cl_server_info){.number = number,
					.cell = cl_cell_number(server->cell),
					.state = cl_server_state(server),
					.calls = atomic_load(&server->calls),
					.answered = atomic_load(&server->answered),
					.unanswered = atomic_load(&server->unanswered),
					.resets = atomic_load(&server->resets)};
	pthread_mutex_lock(&server->lock);
	used = &server->addresses[server->current];
	info->address = used->sa;
	info->address_len = used->len;
	info->rtt_us = used->rtt_us;
	pthread_mutex_unlock(&server->lock);
	return true;
}

const char *cl_server_text(struct cl_server *server, char *text, size_t size)
{
	struct sockaddr_storage sa;

	pthread_mutex_lock(&server->lock);
	sa = server->addresses[server->current].sa;
	pthread_mutex_unlock(&server->lock);
	return afs_server_text(&sa, "file server", text, size);
}

void cl_server_silent(struct cl_server *server, const struct sockaddr_storage *sa)
{
	char text[96];
	unsigned at;
	bool was;

	pthread_mutex_lock(&server->lock);
	at = find_address(server, sa);
	if (at < server->address_count)
		server->addresses[at].failed_at = cl_net_now();
	was = at != server->current || atomic_exchange(&server->down, true);
	if (!was) {
		atomic_store(&server->down_since, cl_net_now());
		server->probes_failed = 0;
		server->next_probe = 0;
	}
	pthread_mutex_unlock(&server->lock);
	if (was)
		return;
	cl_net_note(server->net, "%s does not answer", cl_server_text(server, text, sizeof(text)));
	cl_wake_waiters(server->net);
}

void cl_server_alive(struct cl_server *server, const struct sockaddr_storage *sa)
{
	uint64_t now = cl_net_now();
	char text[96];
	bool was;

	atomic_store(&server->silent_since, now);
	atomic_store(&server->heard_at, now);
	if (!atomic_load(&server->down))
		return;
	pthread_mutex_lock(&server->lock);
	if (sa) {
		unsigned at = find_address(server, sa);

		if (at < server->address_count) {
			server->current = at;
			server->addresses[at].failed_at = 0;
		}
	}
	was = atomic_exchange(&server->down, false);
	if (was)
		atomic_store(&server->up_since, now);
	pthread_mutex_unlock(&server->lock);
	if (!was)
		return;
	cl_net_note(server->net, "%s answers again", cl_server_text(server, text, sizeof(text)));
	cl_wake_waiters(server->net);
}

void cl_server_prefer(struct cl_server *server, const struct sockaddr_storage *sa)
{
	unsigned at;

	pthread_mutex_lock(&server->lock);
	at = find_address(server, sa);
	if (at < server->address_count)
		server->current = at;
	pthread_mutex_unlock(&server->lock);
}

void cl_server_reset(struct cl_server *server)
{
	uint32_t resets = atomic_fetch_add(&server->resets, 1) + 1;

	/* It may be another program now. */
	atomic_store(&server->missing, 0);
	if (server->net->ops.reset)
		server->net->ops.reset(server->net->arg, server->number, resets);
}

/* ---- connections ---- */

static void free_lane(struct cl_lane *lane)
{
	rxw_connpool_release(lane->pool);
	cl_credential_unref(lane->credential);
	free(lane);
}

/* Drop a reference. The lane to be freed, when the lock is released, or NULL. */
static struct cl_lane *put_lane(struct cl_server *server, struct cl_lane *lane)
{
	assert(mutex_is_held(&server->lock));
	assert(lane->refs > 0);
	return --lane->refs == 0 ? lane : NULL;
}

/* A lane without references. NULL: *rc. */
static struct cl_lane *make_lane(struct cl_server *server, struct cl_credential *credential,
				 const struct cl_way *way, int *rc)
{
	struct cl_lane *lane = calloc(1, sizeof(*lane));

	*rc = -RXW_ENOMEM;
	if (!lane)
		return NULL;
	*rc = rxw_connpool_create(
		server->net->endpoint, (const struct sockaddr *)&way->sa, way->len, AFS_SERVICE_FS,
		credential ? credential->security : NULL, LANE_CONNECTIONS, &lane->pool);
	if (*rc == 0 && way->local_len)
		*rc = rxw_connpool_set_local(lane->pool, (const struct sockaddr *)&way->local,
					     way->local_len, way->interface);
	if (*rc < 0) {
		rxw_connpool_release(lane->pool);
		free(lane);
		return NULL;
	}
	rxw_connpool_set_timeouts(lane->pool, server->net->dead_ms, 0, 0);
	lane->credential = credential;
	if (credential)
		atomic_fetch_add(&credential->refs, 1);
	lane->way = *way;
	return lane;
}

static bool is_same_way(const struct cl_way *a, const struct cl_way *b)
{
	return afs_same_address(&a->sa, &b->sa) && a->local_len == b->local_len &&
	       a->interface == b->interface &&
	       (!a->local_len || afs_same_address(&a->local, &b->local));
}

/* The lane of a credential over a way, made if there is none, with a reference. NULL: *rc. */
static struct cl_lane *get_lane(struct cl_server *server, struct cl_credential *credential,
				const struct cl_way *way, int *rc)
{
	struct cl_lane *lane = server->lanes;

	assert(mutex_is_held(&server->lock));
	while (lane && (lane->credential != credential || !is_same_way(&lane->way, way)))
		lane = lane->next;
	if (!lane) {
		lane = make_lane(server, credential, way, rc);
		if (!lane)
			return NULL;
		lane->refs = 1;
		lane->next = server->lanes;
		server->lanes = lane;
	}
	lane->refs++;
	lane->used_at = cl_net_now();
	return lane;
}

struct cl_lane *cl_server_take_lane(struct cl_server *server, struct cl_credential *credential,
				    const struct cl_way *way)
{
	struct cl_lane *lane;
	int rc;

	pthread_mutex_lock(&server->lock);
	lane = get_lane(server, credential, way, &rc);
	pthread_mutex_unlock(&server->lock);
	return lane;
}

void cl_server_put_lane(struct cl_server *server, struct cl_lane *lane)
{
	if (!lane)
		return;
	pthread_mutex_lock(&server->lock);
	lane = put_lane(server, lane);
	pthread_mutex_unlock(&server->lock);
	if (lane)
		free_lane(lane);
}

struct cl_credential *cl_server_credential(struct cl_server *server)
{
	struct cl_credential *credential = NULL;

	pthread_mutex_lock(&server->lock);
	for (struct cl_lane *lane = server->lanes; lane && !credential; lane = lane->next)
		if (lane->credential && !cl_credential_expired(lane->credential))
			credential = lane->credential;
	if (credential)
		atomic_fetch_add(&credential->refs, 1);
	pthread_mutex_unlock(&server->lock);
	return credential;
}

void cl_server_drop_lanes(struct cl_server *server, const struct cl_credential *credential)
{
	struct cl_lane **at, *lane, *gone = NULL;

	pthread_mutex_lock(&server->lock);
	for (at = &server->lanes; (lane = *at);) {
		if (credential && lane->credential != credential) {
			at = &lane->next;
			continue;
		}
		*at = lane->next;
		if (put_lane(server, lane)) {
			lane->next = gone;
			gone = lane;
		}
	}
	pthread_mutex_unlock(&server->lock);
	while ((lane = gone)) {
		gone = lane->next;
		free_lane(lane);
	}
}

void cl_server_abort(struct cl_server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct cl_lane *lane = server->lanes; lane; lane = lane->next)
		rxw_connpool_abort(lane->pool, RXW_USER_ABORT);
	/* Connections that the pools have given up may carry calls, too. */
	for (struct cl_sent *sent = server->sent; sent; sent = sent->next)
		rxw_call_abort(sent->call, RXW_USER_ABORT);
	pthread_mutex_unlock(&server->lock);
}

static bool is_overdue(const struct cl_sent *sent, uint64_t now)
{
	uint64_t since = atomic_load(&sent->waits_since),
		 limit = (uint64_t)sent->server->net->soft_ms * NS_PER_MS,
		 dead = (uint64_t)sent->server->net->dead_ms * NS_PER_MS;

	if (!sent->reads && limit < CHANGE_NS)
		limit = CHANGE_NS;
	if (atomic_load(&sent->spare) && limit > dead)
		limit = dead;
	return since && since + limit < now;
}

bool cl_server_end_overdue(struct cl_server *server)
{
	uint64_t now = cl_net_now();

	if (atomic_load(&server->calls) == 0)
		return false;
	pthread_mutex_lock(&server->lock);
	for (struct cl_sent *sent = server->sent; sent; sent = sent->next)
		if (is_overdue(sent, now))
			rxw_call_abort(sent->call, RXW_CALL_TIMEOUT);
	pthread_mutex_unlock(&server->lock);
	return true;
}

void cl_server_keep(struct cl_server *server)
{
	rxw_connection *old, *made = NULL;
	struct cl_address to;
	bool wanted;

	pthread_mutex_lock(&server->lock);
	wanted = atomic_load(&server->promised) && !atomic_load(&server->down) &&
		 atomic_load(&server->used_at) + PROMISE_NS > cl_net_now();
	old = server->keeper;
	if (wanted == (old != NULL) && (!old || server->keeper_address == server->current)) {
		pthread_mutex_unlock(&server->lock);
		return;
	}
	to = server->addresses[server->current];
	server->keeper = NULL;
	pthread_mutex_unlock(&server->lock);
	rxw_connection_release(old);
	if (!wanted || rxw_connection_create(server->net->endpoint, (struct sockaddr *)&to.sa,
					     to.len, AFS_SERVICE_FS, NULL, &made) < 0)
		return;
	rxw_connection_set_nat_ping(made, NAT_S);
	pthread_mutex_lock(&server->lock);
	/* Only the prober's thread comes here. */
	assert(!server->keeper);
	server->keeper = made;
	server->keeper_address = find_address(server, &to.sa);
	pthread_mutex_unlock(&server->lock);
}

void cl_server_idle(struct cl_server *server)
{
	struct cl_lane **at, *lane, *gone = NULL;
	uint64_t now = cl_net_now();

	pthread_mutex_lock(&server->lock);
	for (at = &server->lanes; (lane = *at);) {
		if (lane->refs > 1 || lane->used_at + LANE_IDLE_NS > now) {
			at = &lane->next;
			continue;
		}
		*at = lane->next;
		lane->next = gone;
		gone = lane;
	}
	pthread_mutex_unlock(&server->lock);
	while ((lane = gone)) {
		gone = lane->next;
		free_lane(lane);
	}
}

/* Over a path, or at the address in use. NULL: *rc. */
static struct cl_lane *choose_lane(struct cl_server *server, struct cl_credential *credential,
				   const struct cl_path *path, int *rc)
{
	const struct cl_address *to;
	struct cl_way way;
	struct cl_lane *lane;

	pthread_mutex_lock(&server->lock);
	assert(server->address_count > 0);
	to = &server->addresses[server->current];
	way = path ? path->way : (struct cl_way){.sa = to->sa, .len = to->len};
	lane = get_lane(server, credential, &way, rc);
	pthread_mutex_unlock(&server->lock);
	return lane;
}

int cl_server_begin(struct cl_server *server, struct cl_credential *credential,
		    unsigned deadline_ms, unsigned flags, bool reads,
		    const struct cl_long_read *long_read, struct cl_sent *sent)
{
	struct rxw_call_options co = {
		.size = sizeof(co), .deadline_ms = deadline_ms, .flags = flags};
	struct cl_lane *lane;
	int rc = 0;

	lane = choose_lane(server, credential,
			   long_read ? long_read->path ?: long_read->named : NULL, &rc);
	if (!lane)
		return rc;
	*sent = (struct cl_sent){.server = server, .sa = lane->way.sa, .reads = reads};
	if (long_read)
		sent->read = *long_read;
	sent->read.named = NULL;
	sent->resets = atomic_load(&server->resets);
	rc = rxw_connpool_begin(lane->pool, &co, &sent->call);
	/* After the wait for a channel: promises count from here. */
	sent->at = cl_net_now();
	atomic_store(&sent->waits_since, sent->at);
	if (rc == 0) {
		atomic_store(&server->used_at, sent->at);
		/* In this order: a call in progress without that time would look like doubt. */
		if (atomic_load(&server->calls) == 0)
			atomic_store(&server->silent_since, sent->at);
		atomic_fetch_add(&server->calls, 1);
	}
	pthread_mutex_lock(&server->lock);
	if (rc == 0) {
		sent->next = server->sent;
		server->sent = sent;
	}
	pthread_mutex_unlock(&server->lock);
	cl_server_put_lane(server, lane);
	return rc;
}

void cl_server_moved(struct cl_sent *sent, bool waits)
{
	uint64_t now = cl_net_now();

	atomic_store(&sent->server->silent_since, now);
	atomic_store(&sent->waits_since, waits ? now : 0);
}

/* Nobody aborts the call any more. */
static void forget_sent(struct cl_sent *sent)
{
	struct cl_sent **at = &sent->server->sent;

	pthread_mutex_lock(&sent->server->lock);
	while (*at != sent)
		at = &(*at)->next;
	*at = sent->next;
	pthread_mutex_unlock(&sent->server->lock);
}

/* Now and then the round trip of a call is taken as that of its address. */
static void sample_round_trip(struct cl_sent *sent, uint64_t rtt_ns)
{
	struct cl_server *server = sent->server;
	unsigned at;

	pthread_mutex_lock(&server->lock);
	at = find_address(server, &sent->sa);
	if (at < server->address_count)
		server->addresses[at].rtt_us = (uint32_t)(rtt_ns / 1000) + 1;
	pthread_mutex_unlock(&server->lock);
}

/* What the statistics of a call tell, before it ends with `code`. */
static void note_statistics(struct cl_sent *sent, rxw_code code)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};

	if ((code == 0 && atomic_load(&sent->server->answered) % 32 != 0) ||
	    rxw_call_stats(sent->call, &stats) < 0)
		return;
	sent->resent = stats.retransmitted > 0;
	if (stats.rtt_ns)
		sample_round_trip(sent, stats.rtt_ns);
}

#define SURPLUS_MOST 4096 /* bytes after an answer that are discarded */

bool cl_answer_ended(rxw_call *call)
{
	uint8_t rest[512];
	size_t surplus = 0;
	ssize_t n;

	while ((n = rxw_call_read_some(call, rest, sizeof(rest))) > 0) {
		surplus += (size_t)n;
		if (surplus > SURPLUS_MOST)
			return false;
	}
	return true;
}

rxw_code cl_server_end(struct cl_sent *sent, rxw_code code, unsigned function,
		       enum rxw_origin *origin)
{
	struct cl_server *server = sent->server;

	note_statistics(sent, code);
	forget_sent(sent);
	code = rxw_rpc_end(sent->call, code, &RXAFS_interface, function);
	*origin = code ? rxw_rpc_origin() : RXW_ORIGIN_NONE;
	sent->call = NULL;
	atomic_fetch_sub(&server->calls, 1);
	if (code == 0 || *origin == RXW_ORIGIN_PEER) {
		atomic_fetch_add(&server->answered, 1);
		cl_server_alive(server, &sent->sa);
	} else if (code == RXW_CALL_DEAD) {
		atomic_fetch_add(&server->unanswered, 1);
		/* A server that has answered since then has lost this call: it was restarted. */
		if (atomic_load(&server->heard_at) <= sent->at)
			cl_server_silent(server, &sent->sa);
	}
	return code;
}

void cl_server_disconnect(struct cl_server *server)
{
	assert(atomic_load(&server->calls) == 0);
	cl_server_drop_lanes(server, NULL);
	rxw_connection_release(server->keeper);
	server->keeper = NULL;
}

void cl_server_free(struct cl_server *server)
{
	assert(!server->lanes && !server->path_count && !server->keeper && !server->sent);
	pthread_mutex_destroy(&server->lock);
	free(server->given);
	free(server);
}
