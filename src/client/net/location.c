/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the location servers of a cell: where volumes are, and the addresses of servers
 * (K-006, K-010).
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "afs/address.h"
#include "client/net/record.h"

#define QUESTION_NS ((uint64_t)30 * NS_PER_S)  /* for all servers together */
#define START_NS    ((uint64_t)15 * NS_PER_S)  /* for those that never answered, since the first question */
#define TURN_MS	    4000u		       /* for one of several, */
#define GLANCE_MS   250u		       /* and first so long, or three times its round trip */
#define UNKNOWN_MS  1000u		       /* or so long if that is unknown */
#define LAST_NS	    ((uint64_t)600 * NS_PER_S) /* a server that failed is tried last for so long */
#define SILENT_NS   ((uint64_t)30 * NS_PER_S)  /* no renewal so long after a question without an answer */
#define PAUSE_NS    ((uint64_t)NS_PER_S)       /* after all have failed; doubles */

/* A location server. */
struct guide {
	struct cl_cell_server at;
	rxw_connection *connection; /* NULL = none yet */
	uint32_t rtt_us;	    /* 0 = unknown */
	uint64_t failed_at;	    /* 0 = it has not */
	bool no_uuids;		    /* lacks the calls with UUIDs */
	bool wants_token;	    /* has refused an anonymous question */
	bool unrouted;		    /* there is no way to its IPv6 address from here */
};

/* The location servers of a cell that was used. */
struct cl_location {
	struct cl_location *next;
	struct cl_cell *cell;
	pthread_mutex_t lock; /* covers the members below */
	struct guide guides[CL_CELL_SERVERS];
	unsigned count;
	struct question *questions; /* with calls in progress */
	uint64_t silent_until;	    /* 0 = somebody answers */
	uint64_t asked_at, heard_at; /* the first question; the last answer. 0 = none */
};

static void drop_guides(struct guide *guides, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (guides[i].connection)
			rxw_connection_release(guides[i].connection);
}

void cl_locations_free(struct cl_net *net)
{
	struct cl_location *location;

	while ((location = net->locations)) {
		net->locations = location->next;
		drop_guides(location->guides, location->count);
		pthread_mutex_destroy(&location->lock);
		free(location);
	}
}

/* NULL: no memory. */
static struct cl_location *get_location(struct cl_net *net, struct cl_cell *cell)
{
	struct cl_location *location;

	pthread_mutex_lock(&net->table_lock);
	location = net->locations;
	while (location && location->cell != cell)
		location = location->next;
	if (!location && (location = calloc(1, sizeof(*location)))) {
		location->cell = cell;
		pthread_mutex_init(&location->lock, NULL);
		location->next = net->locations;
		net->locations = location;
	}
	pthread_mutex_unlock(&net->table_lock);
	return location;
}

unsigned cl_location_guides(struct cl_net *net, uint32_t cell, struct cl_address *list,
			    unsigned max)
{
	struct cl_location *location;
	unsigned count = 0;

	pthread_mutex_lock(&net->table_lock);
	location = net->locations;
	while (location && cl_cell_number(location->cell) != cell)
		location = location->next;
	pthread_mutex_unlock(&net->table_lock);
	if (!location)
		return 0;
	pthread_mutex_lock(&location->lock);
	for (; count < location->count && count < max; count++)
		list[count] = (struct cl_address){.sa = location->guides[count].at.address,
						  .len = location->guides[count].at.len};
	pthread_mutex_unlock(&location->lock);
	return count;
}

bool cl_location_silent(struct cl_net *net, struct cl_cell *cell)
{
	struct cl_location *location = get_location(net, cell);
	bool silent;

	if (!location)
		return false;
	pthread_mutex_lock(&location->lock);
	silent = cl_net_now() < location->silent_until;
	pthread_mutex_unlock(&location->lock);
	return silent;
}

/* No packet is sent. Many hosts have no route to IPv6 addresses, and a server that cannot be reached costs its whole turn. */
static bool has_route(const struct cl_cell_server *server)
{
	bool routed;
	int fd;

	if (server->address.ss_family != AF_INET6)
		return true;
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	routed = connect(fd, (const struct sockaddr *)&server->address, server->len) == 0;
	close(fd);
	return routed;
}

/* Take over the addresses of the cell; what was learnt of the same ones stays. Whether one cannot be reached any more. */
static bool update_guides(struct cl_location *location, const struct cl_cell_server *servers,
			  unsigned count)
{
	struct guide now[CL_CELL_SERVERS] = {0};
	bool lost = false, before;

	assert(mutex_is_held(&location->lock));
	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = 0; j < location->count; j++)
			if (afs_same_address(&location->guides[j].at.address,
					     &servers[i].address)) {
				now[i] = location->guides[j];
				location->guides[j].connection = NULL;
			}
		now[i].at = servers[i];
		before = now[i].unrouted;
		now[i].unrouted = !has_route(&servers[i]);
		lost |= now[i].unrouted && !before;
	}
	drop_guides(location->guides, location->count);
	memcpy(location->guides, now, sizeof(now));
	location->count = count;
	return lost;
}

/*
 * The rank of a location server: those that failed lately are last, then by round trip, then in the
 * order of the list.
 */
static uint64_t rank_guide(const struct guide *guide, unsigned index, uint64_t now)
{
	uint64_t rank = (guide->rtt_us ? guide->rtt_us : UINT32_MAX) * (uint64_t)32 + index;

	if (guide->failed_at && now < guide->failed_at + LAST_NS)
		rank |= (uint64_t)1 << 60;
	if (guide->unrouted)
		rank |= (uint64_t)1 << 61;
	return rank;
}

/* The best location server that was not asked in this round. -1: all were. */
static int choose_guide(const struct cl_location *location, uint32_t asked)
{
	uint64_t now = cl_net_now(), least = UINT64_MAX;
	int best = -1;

	for (unsigned i = 0; i < location->count; i++) {
		uint64_t rank = rank_guide(&location->guides[i], i, now);

		if (!(asked & 1u << i) && rank < least) {
			least = rank;
			best = (int)i;
		}
	}
	return best;
}

/* A question in progress. */
struct question {
	struct question *next; /* of the location's list, while there is a call */
	struct cl_net *net;
	struct cl_location *location;
	const struct cl_caller *caller;
	const char *what; /* for failures */
	uint64_t until;	  /* cl_net_now() */
	bool hasty;	  /* earlier than the caller would have it */
	uint32_t asked;	  /* by index, in this round */
	bool glance;	  /* the first round: whoever is silent gets little time, */
	uint32_t silent;  /* and these, by index, get more in the second one */
	uint64_t pause;
	/* of the server that is asked now: */
	int index;
	struct cl_cell_server at;
	bool no_uuids;
	bool with_token;
	uint64_t sent;
	rxw_call *call;
	/* the result: */
	rxw_code code;
	enum rxw_origin origin;
};

/* The call has begun. False: nobody may begin one any more, and nobody will abort it. */
static bool list_question(struct question *q)
{
	pthread_mutex_lock(&q->location->lock);
	q->next = q->location->questions;
	q->location->questions = q;
	pthread_mutex_unlock(&q->location->lock);
	return !atomic_load(&q->net->cancelled);
}

static void unlist_question(struct question *q)
{
	struct question **at = &q->location->questions;

	pthread_mutex_lock(&q->location->lock);
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	pthread_mutex_unlock(&q->location->lock);
}

void cl_locations_abort(struct cl_net *net)
{
	pthread_mutex_lock(&net->table_lock);
	for (struct cl_location *l = net->locations; l; l = l->next) {
		pthread_mutex_lock(&l->lock);
		for (struct question *q = l->questions; q; q = q->next)
			rxw_call_abort(q->call, RXW_USER_ABORT);
		pthread_mutex_unlock(&l->lock);
	}
	pthread_mutex_unlock(&net->table_lock);
}

/* Addresses may be wrong: servers that never answered have some time for all questions of whoever repeats them. */
static void limit_first_questions(struct question *q)
{
	struct cl_location *location = q->location;
	uint64_t now = cl_net_now(), end;

	pthread_mutex_lock(&location->lock);
	if (!location->asked_at)
		location->asked_at = now;
	end = location->asked_at + START_NS;
	if (end < now + PAUSE_NS)
		end = now + PAUSE_NS;
	if (q->net->one_round && !location->heard_at && q->until > end) {
		q->until = end;
		q->hasty = true;
	}
	pthread_mutex_unlock(&location->lock);
}

static int start_question(struct question *q, struct cl_net *net, struct cl_cell *cell,
			  const struct cl_caller *caller, const char *what,
			  struct rxafs_failure *failure)
{
	uint64_t now = cl_net_now();
	struct cl_cell_server servers[CL_CELL_SERVERS];
	bool lost;
	int count;

	*q = (struct question){.net = net,
			       .caller = caller,
			       .what = what,
			       .until = now + QUESTION_NS,
			       .pause = PAUSE_NS};
	if (net->soft_ms < QUESTION_NS / NS_PER_MS)
		q->until = now + (uint64_t)net->soft_ms * NS_PER_MS;
	if (caller->deadline && caller->deadline < q->until)
		q->until = caller->deadline;
	count = cl_cell_servers(cell, q->until, servers);
	if (count < 0)
		return cl_fail(failure, -count, "%s: no location servers of cell %s are known",
			       what, cl_cell_name(cell));
	q->location = get_location(net, cell);
	if (!q->location)
		return cl_fail(failure, ENOMEM, "%s: no memory", what);
	limit_first_questions(q);
	pthread_mutex_lock(&q->location->lock);
	lost = update_guides(q->location, servers, (unsigned)count);
	q->glance = count > 1;
	pthread_mutex_unlock(&q->location->lock);
	if (lost)
		cl_net_note(
			net,
			"cell %s: a location server with an IPv6 address is asked last, since this machine has no route to it",
			cl_cell_name(cell));
	return 0;
}

/* Fail as the last answer, or its absence, says. */
static int fail_question(struct question *q, struct rxafs_failure *failure)
{
	char server[96];

	afs_server_text(&q->at.address, "location server", server, sizeof(server));
	if (q->origin == RXW_ORIGIN_PEER) {
		int number = q->code == AFS_VL_NOENT || q->code == AFS_VL_BADNAME ? ENODEV
			     : q->code == AFS_VL_PERM				  ? EACCES
										  : EIO;

		cl_fail(failure, number, "%s: %s: %s (code %d)", q->what, server,
			rxw_code_text_from(q->code, q->origin), q->code);
		if (failure) {
			failure->origin = RXAFS_FROM_LOCATION;
			failure->code = q->code;
			snprintf(failure->server, sizeof(failure->server), "%.63s", server);
		}
		return -number;
	}
	pthread_mutex_lock(&q->location->lock);
	if (!q->glance)
		q->location->silent_until = cl_net_now() + SILENT_NS;
	pthread_mutex_unlock(&q->location->lock);
	cl_fail(failure, ETIMEDOUT,
		q->code == RXW_USER_ABORT ? "%s: %s: its answer is too long"
					  : "%s: no answer of the %s",
		q->what, server);
	if (failure) {
		failure->origin = RXAFS_FROM_NETWORK;
		failure->code = q->hasty && q->code == RXW_CALL_TIMEOUT ? RXW_CALL_DEAD : q->code;
		snprintf(failure->server, sizeof(failure->server), "%.63s", server);
	}
	return -ETIMEDOUT;
}

static bool never_ready(void *arg)
{
	(void)arg;
	return false;
}

/*
 * All were asked: wait, and begin another round. 0, or -1: the time is over; the failure is filled
 * in.
 */
static int begin_round(struct question *q, struct rxafs_failure *failure)
{
	uint64_t until = cl_net_now() + q->pause;
	bool glance = q->glance;

	q->glance = false;
	if (glance && q->silent) {
		q->asked = ~q->silent;
		return 0;
	}
	if (q->net->one_round || until >= q->until)
		return fail_question(q, failure);
	q->pause *= 2;
	q->asked = 0;
	if (cl_wait(q->net, q->caller->cancel, until, never_ready, NULL) == -EINTR)
		return cl_fail(failure, EINTR, "%s: interrupted", q->what);
	return 0;
}

static int make_guide_connection(const struct question *q, const struct guide *guide,
				 rxw_security *security, rxw_connection **connection)
{
	int rc =
		rxw_connection_create(q->net->endpoint, (const struct sockaddr *)&guide->at.address,
				      guide->at.len, AFS_SERVICE_VL, security, connection);

	if (rc == 0)
		rxw_connection_set_timeouts(*connection, q->net->dead_ms, 0, 0);
	return rc;
}

/* The caller's token for the cell, a reference; NULL: he has none that is valid. */
static struct cl_credential *find_usable_token(const struct question *q)
{
	struct cl_credential *credential =
		cl_identity_credential(q->caller->identity, cl_cell_number(q->location->cell));

	if (credential && cl_credential_expired(credential)) {
		cl_credential_unref(credential);
		return NULL;
	}
	return credential;
}

/*
 * The connection to a location server, with a reference. Questions are anonymous (K-124), and the answers are for all users. A server that
 * refuses that is asked with the caller's token, by a connection for this question alone: records last an hour.
 */
static int connect_guide(struct question *q, struct guide *guide, rxw_connection **connection)
{
	struct cl_credential *credential = guide->wants_token ? find_usable_token(q) : NULL;
	int rc = 0;

	assert(mutex_is_held(&q->location->lock));
	q->with_token = credential != NULL;
	if (credential) {
		rc = make_guide_connection(q, guide, credential->security, connection);
		cl_credential_unref(credential);
		return rc;
	}
	/* A server that stops or restarts ends connections. */
	if (guide->connection && rxw_connection_error(guide->connection, NULL)) {
		rxw_connection_release(guide->connection);
		guide->connection = NULL;
	}
	if (!guide->connection)
		rc = make_guide_connection(q, guide, NULL, &guide->connection);
	if (rc == 0)
		*connection = rxw_connection_ref(guide->connection);
	return rc;
}

/* How long a server may take, of `left` milliseconds for all. */
static unsigned choose_turn(const struct question *q, uint32_t rtt_us, bool others, uint64_t left)
{
	uint64_t turn = left;

	if (q->glance)
		turn = rtt_us ? rtt_us / 1000 * UINT64_C(3) : UNKNOWN_MS;
	if (q->glance && turn < GLANCE_MS)
		turn = GLANCE_MS;
	if ((q->glance || others) && turn > TURN_MS)
		turn = TURN_MS;
	return (unsigned)(turn < left ? turn : left);
}

/*
 * Begin a call to the next location server. 1: q->call; 0: this one failed at once; or a negative
 * errno value.
 */
static int ask_next(struct question *q, struct rxafs_failure *failure)
{
	struct rxw_call_options co = {.size = sizeof(co)};
	rxw_connection *connection = NULL;
	uint64_t now = cl_net_now(), left;
	uint32_t rtt_us = 0;
	bool others;

	if (atomic_load(&q->net->cancelled))
		return cl_fail(failure, EINTR, "%s: interrupted", q->what);
	if (now >= q->until)
		return fail_question(q, failure);
	left = (q->until - now) / NS_PER_MS + 1;
	pthread_mutex_lock(&q->location->lock);
	q->index = choose_guide(q->location, q->asked);
	if (q->index >= 0) {
		struct guide *guide = &q->location->guides[q->index];

		q->at = guide->at;
		q->no_uuids = guide->no_uuids;
		rtt_us = guide->rtt_us;
		q->asked |= 1u << q->index;
		if (connect_guide(q, guide, &connection) < 0)
			connection = NULL;
	}
	others = choose_guide(q->location, q->asked) >= 0;
	pthread_mutex_unlock(&q->location->lock);
	if (q->index < 0)
		return begin_round(q, failure);
	if (!connection)
		return 0;
	co.deadline_ms = choose_turn(q, rtt_us, others, left);
	q->sent = cl_net_now();
	q->code = rxw_rpc_begin(connection, &co, &q->call);
	rxw_connection_release(connection);
	q->origin = RXW_ORIGIN_LOCAL;
	if (q->code)
		return 0;
	if (!list_question(q) || cl_cancel_attach(q->caller->cancel, q->call) < 0) {
		unlist_question(q);
		rxw_call_end(q->call, RXW_USER_ABORT, NULL);
		return cl_fail(failure, EINTR, "%s: interrupted", q->what);
	}
	return 1;
}

/* Note what is learnt of the server that was asked. */
static void note_answer(struct question *q, bool no_uuids, bool wants_token)
{
	bool answered = q->code == 0 || q->origin == RXW_ORIGIN_PEER;
	uint64_t now = cl_net_now();

	pthread_mutex_lock(&q->location->lock);
	if (answered)
		q->location->heard_at = now;
	for (unsigned i = 0; i < q->location->count; i++) {
		struct guide *guide = &q->location->guides[i];

		if (!afs_same_address(&guide->at.address, &q->at.address))
			continue;
		guide->failed_at = answered ? 0 : now;
		guide->no_uuids = guide->no_uuids || no_uuids;
		guide->wants_token = guide->wants_token || wants_token;
		if (answered)
			guide->rtt_us = (uint32_t)((now - q->sent) / 1000) + 1;
	}
	if (answered)
		q->location->silent_until = 0;
	pthread_mutex_unlock(&q->location->lock);
}

static bool has_token(const struct question *q)
{
	struct cl_credential *credential = find_usable_token(q);

	cl_credential_unref(credential);
	return credential;
}

/*
 * The call has ended with `code`. 1: this is the answer, also if it is a refusal; 0: ask another
 * server; or a negative errno value.
 */
static int judge_answer(struct question *q, rxw_code code, unsigned function,
			struct rxafs_failure *failure)
{
	bool endless = code == 0 && !cl_answer_ended(q->call), no_uuids, wants_token;

	cl_cancel_detach(q->caller->cancel);
	unlist_question(q);
	q->code = rxw_rpc_end(q->call, endless ? RXW_USER_ABORT : code, &VL_interface, function);
	q->origin = q->code ? rxw_rpc_origin() : RXW_ORIGIN_NONE;
	q->call = NULL;
	/* A server that had no time to answer has not failed. */
	if (q->code && (cl_cancel_raised(q->caller->cancel) || atomic_load(&q->net->cancelled)))
		return cl_fail(failure, EINTR, "%s: interrupted", q->what);
	no_uuids = q->origin == RXW_ORIGIN_PEER && q->code == RXW_RPC_OPCODE;
	wants_token = q->origin == RXW_ORIGIN_PEER && q->code == AFS_VL_PERM;
	note_answer(q, no_uuids, wants_token);
	if (q->code == RXW_CALL_TIMEOUT && q->origin != RXW_ORIGIN_PEER)
		q->silent |= 1u << q->index;
	if (q->code == 0)
		return 1;
	if ((no_uuids && !q->no_uuids) || (wants_token && !q->with_token && has_token(q))) {
		q->asked &= ~(1u << q->index);
		return 0;
	}
	/* Codes of the location service are answers; those of Rx, ubik and the machine are not. */
	if (q->origin == RXW_ORIGIN_PEER && q->code > 363519 && q->code < 363776)
		return 1;
	return 0;
}

static void take_entry_u(const uvldbentry *e, struct cl_entry *entry)
{
	snprintf(entry->name, sizeof(entry->name), "%.*s", VL_MAXNAMELEN - 1, e->name);
	entry->count = e->nServers < 0 ? 0 : (unsigned)e->nServers;
	for (unsigned i = 0; i < NMAXNSERVERS; i++) {
		entry->site[i].by_uuid = e->serverFlags[i] & VLSF_UUID;
		entry->site[i].uuid = e->serverNumber[i];
		/* Without the flag the first word is the address. */
		entry->site[i].address = e->serverNumber[i].time_low;
		entry->site[i].generation = e->serverUnique[i];
		entry->site[i].flags = e->serverFlags[i];
	}
}

static void take_entry_n(const nvldbentry *e, struct cl_entry *entry)
{
	snprintf(entry->name, sizeof(entry->name), "%.*s", VL_MAXNAMELEN - 1, e->name);
	entry->count = e->nServers < 0 ? 0 : (unsigned)e->nServers;
	for (unsigned i = 0; i < NMAXNSERVERS; i++) {
		entry->site[i].address = (uint32_t)e->serverNumber[i];
		entry->site[i].flags = e->serverFlags[i];
	}
}

static void take_ids(const uint32_t id[MAXTYPES], int32_t flags, struct cl_entry *entry)
{
	static const int32_t exists[MAXTYPES] = {VLF_RWEXISTS, VLF_ROEXISTS, VLF_BACKEXISTS};

	for (unsigned i = 0; i < MAXTYPES; i++)
		entry->id[i] = flags & exists[i] ? id[i] : 0;
}

int cl_location_ask(struct cl_net *net, struct cl_cell *cell, const char *name,
		    const struct cl_caller *caller, struct cl_entry *entry,
		    struct rxafs_failure *failure)
{
	struct question q;
	char what[160];
	int rc;

	snprintf(what, sizeof(what), "volume %.80s", name);
	rc = start_question(&q, net, cell, caller, what, failure);
	while (rc == 0) {
		rxw_code code;

		rc = ask_next(&q, failure);
		if (rc <= 0)
			continue;
		memset(entry, 0, sizeof(*entry));
		if (q.no_uuids) {
			nvldbentry n = {0};

			code = StartVL_GetEntryByNameN(q.call, name)
				       ?: EndVL_GetEntryByNameN(q.call, &n);
			take_entry_n(&n, entry);
			take_ids(n.volumeId, n.flags, entry);
		} else {
			uvldbentry u = {0};

			code = StartVL_GetEntryByNameU(q.call, name)
				       ?: EndVL_GetEntryByNameU(q.call, &u);
			take_entry_u(&u, entry);
			take_ids(u.volumeId, u.flags, entry);
		}
		rc = judge_answer(&q, code,
				  q.no_uuids ? VL_FN_GetEntryByNameN : VL_FN_GetEntryByNameU,
				  failure);
	}
	if (rc < 0)
		return rc;
	if (q.code)
		return fail_question(&q, failure);
	if (entry->count > NMAXNSERVERS)
		return cl_fail(failure, EIO, "%s: malformed answer of a location server", what);
	entry->from = q.at.address;
	entry->from_len = q.at.len;
	entry->fs_port = q.at.fs_port ? q.at.fs_port : AFS_PORT_FS;
	return 0;
}

bool cl_location_may_be_server(uint32_t address)
{
	/* Not 0.0.0.0/8, nor multicast, nor 240.0.0.0/4 with the broadcast address. */
	return address >> 24 != 0 && address < 0xe0000000;
}

/* One of the machine, or of the link, that asks: for others it is another server, or none. */
static bool is_near_address(uint32_t address)
{
	return address >> 24 == IN_LOOPBACKNET || address >> 16 == 0xa9fe;
}

/* IPv4 addresses as numbers, with the port of file servers. Near ones count if there are no others. Returns their number. */
static unsigned take_addresses(const bulkaddrs *addrs, uint16_t port,
			       struct cl_address list[CL_ADDRESSES])
{
	unsigned count = 0;
	bool far = false;

	for (uint32_t i = 0; i < addrs->len; i++)
		far = far ||
		      (cl_location_may_be_server(addrs->val[i]) && !is_near_address(addrs->val[i]));
	for (uint32_t i = 0; i < addrs->len && count < CL_ADDRESSES; i++) {
		struct sockaddr_in sin = {.sin_family = AF_INET,
					  .sin_port = htons(port),
					  .sin_addr.s_addr = htonl(addrs->val[i])};

		if (!cl_location_may_be_server(addrs->val[i]) ||
		    (far && is_near_address(addrs->val[i])))
			continue;
		list[count] = (struct cl_address){.len = sizeof(sin)};
		memcpy(&list[count++].sa, &sin, sizeof(sin));
	}
	return count;
}

int cl_location_addresses(struct cl_net *net, struct cl_cell *cell, const struct rxw_uuid *uuid,
			  const struct cl_caller *caller, struct cl_address list[CL_ADDRESSES],
			  unsigned *count, int32_t *generation, struct rxafs_failure *failure)
{
	const ListAddrByAttributes attr = {.Mask = AFS_VL_BY_UUID, .uuid = *uuid};
	struct question q;
	int rc = start_question(&q, net, cell, caller, "addresses of a server", failure);

	*count = 0;
	while (rc == 0) {
		bulkaddrs addrs = {0};
		struct rxw_uuid same;
		int32_t entries;
		rxw_code code;

		rc = ask_next(&q, failure);
		if (rc <= 0)
			continue;
		code = StartVL_GetAddrsU(q.call, &attr)
			       ?: EndVL_GetAddrsU(q.call, &same, generation, &entries, &addrs);
		rc = judge_answer(&q, code, VL_FN_GetAddrsU, failure);
		if (rc == 1 && q.code == 0)
			*count = take_addresses(&addrs, q.at.fs_port ? q.at.fs_port : AFS_PORT_FS,
						list);
		xdrfree_bulkaddrs(&addrs);
	}
	return rc < 0 ? rc : 0;
}
