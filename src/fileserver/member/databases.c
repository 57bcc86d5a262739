/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The servers of a replicated database. Each of them answers questions; changes are made by one, which they elect. One that does not
 * answer is not asked by others until it answers again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/rpc.h>

#include "common/clock.h"
#include "fileserver/member/membership.h"
#include "program/address.h"

#define DEAD_MS	    4000 /* without a packet of a server */
#define ANSWER_MS   8000 /* without its answer */
#define CONNECTIONS 4	 /* to a server, of four calls each */
#define AVOID_S	    2	 /* at first, and twice as long each time */
#define AVOID_MAX_S 60

/* Codes of Ubik, and of rxkad: the server answers, but not the question. */
#define UBIK_FIRST  5376
#define UBIK_LAST   5407
#define RXKAD_FIRST 19270400
#define RXKAD_LAST  19270431

/* Counted references: of the database and of calls. */
struct server {
	_Atomic unsigned refs;
	struct cl_cell_server where;
	rxw_connpool *pool;
	/* The lock of the database covers the rest. */
	uint64_t dead_until; /* monotonic ns; 0: it is alive */
	unsigned failures;   /* in a row */
	bool probed;
};

struct member_database {
	struct member_database_options options;
	pthread_mutex_t lock; /* covers the rest */
	struct server *server[CL_CELL_SERVERS];
	unsigned count, preferred;
	bool stopped;
	_Atomic bool dead; /* written with the lock */
};

static void unref_server(struct server *server)
{
	if (!server || atomic_fetch_sub(&server->refs, 1) != 1)
		return;
	rxw_connpool_release(server->pool);
	free(server);
}

static struct server *make_database_server(const struct member_database_options *options,
					   const struct cl_cell_server *where)
{
	struct server *server = calloc(1, sizeof(*server));
	rxw_security *security = options->security ? options->security(options->arg) : NULL;
	int rc = -1;

	if (server) {
		server->refs = 1;
		server->where = *where;
		if (options->port)
			tools_address_set_port(&server->where.address, options->port);
		rc = rxw_connpool_create(
			options->endpoint, (const struct sockaddr *)&server->where.address,
			server->where.len, options->service, security, CONNECTIONS, &server->pool);
	}
	if (security)
		rxw_security_unref(security);
	if (!rc)
		rc = rxw_connpool_set_timeouts(server->pool, options->dead_ms, 0, 0);
	if (!rc)
		return server;
	if (server && server->pool)
		rxw_connpool_release(server->pool);
	free(server);
	return NULL;
}

struct member_database *member_database_open(const struct member_database_options *options)
{
	struct member_database *database = calloc(1, sizeof(*database));

	if (!database)
		return NULL;
	database->options = *options;
	if (!options->dead_ms)
		database->options.dead_ms = DEAD_MS;
	if (!options->answer_ms)
		database->options.answer_ms = ANSWER_MS;
	pthread_mutex_init(&database->lock, NULL);
	return database;
}

void member_database_close(struct member_database *database)
{
	if (!database)
		return;
	for (unsigned i = 0; i < database->count; i++)
		unref_server(database->server[i]);
	pthread_mutex_destroy(&database->lock);
	free(database);
}

/* Lock held. */
static void note_dead(struct member_database *database)
{
	bool dead = true;

	for (unsigned i = 0; i < database->count; i++)
		dead = dead && database->server[i]->dead_until;
	atomic_store(&database->dead, dead);
}

bool member_database_set(struct member_database *database, const struct cl_cell_server *servers,
			 unsigned count)
{
	struct server *made[CL_CELL_SERVERS], *old[CL_CELL_SERVERS];
	unsigned n = 0, before;

	assert(count > 0 && count <= CL_CELL_SERVERS);
	while (n < count && (made[n] = make_database_server(&database->options, &servers[n])))
		n++;
	if (n < count) {
		while (n)
			unref_server(made[--n]);
		return false;
	}
	pthread_mutex_lock(&database->lock);
	before = database->count;
	memcpy(old, database->server, sizeof(old));
	memcpy(database->server, made, count * sizeof(*made));
	database->count = count;
	database->preferred = 0;
	note_dead(database);
	pthread_mutex_unlock(&database->lock);
	for (unsigned i = 0; i < before; i++)
		unref_server(old[i]);
	return true;
}

/* The next server that is alive and was not tried, with a reference; NULL: there is none. */
static struct server *next_server(struct member_database *database, unsigned *tried)
{
	struct server *server = NULL;

	pthread_mutex_lock(&database->lock);
	for (unsigned i = 0; i < database->count && !server && !database->stopped; i++) {
		unsigned at = (database->preferred + i) % database->count;

		if (*tried & 1u << at || database->server[at]->dead_until)
			continue;
		*tried |= 1u << at;
		server = database->server[at];
		atomic_fetch_add(&server->refs, 1);
	}
	pthread_mutex_unlock(&database->lock);
	return server;
}

static bool is_between(int32_t code, int32_t first, int32_t last)
{
	return code >= first && code <= last;
}

/* It answered the question. */
static bool answers_question(int32_t code, enum rxw_origin origin)
{
	return !code ||
	       (origin == RXW_ORIGIN_PEER && code > 0 && !is_between(code, UBIK_FIRST, UBIK_LAST) &&
		!is_between(code, RXKAD_FIRST, RXKAD_LAST));
}

/* It works, but does not make changes, or has no majority for the moment. */
static bool is_not_in_charge(int32_t code, enum rxw_origin origin)
{
	return origin == RXW_ORIGIN_PEER && is_between(code, UBIK_FIRST, UBIK_LAST);
}

static void log_server(const struct member_database *database, const struct server *server,
		       bool dead, int32_t code)
{
	char text[TOOLS_ADDRESS_TEXT];

	tools_address_text(&server->where.address, text, sizeof(text));
	if (dead && is_between(code, RXKAD_FIRST, RXKAD_LAST))
		fsd_log(RXW_LOG_WARNING,
			"the %s server %s refuses this one: %s; the key of --cell-config must be that of the cell",
			database->options.name, text, rxw_code_text(code));
	else if (dead)
		fsd_log(RXW_LOG_WARNING, "the %s server %s does not answer: %s",
			database->options.name, text, rxw_code_text(code));
	else
		fsd_log(RXW_LOG_INFO, "the %s server %s answers again", database->options.name,
			text);
}

/* The result of a call. */
static void note_server_result(struct member_database *database, struct server *server, bool alive,
			       int32_t code)
{
	unsigned at = 0, avoid = AVOID_S;
	bool was_dead;

	pthread_mutex_lock(&database->lock);
	was_dead = server->dead_until != 0;
	while (at < database->count && database->server[at] != server)
		at++;
	if (at == database->count || database->stopped)
		alive = true, was_dead = false; /* nobody asks it any more */
	else if (alive)
		server->dead_until = server->failures = 0;
	else {
		for (unsigned i = 0; i < server->failures && avoid < AVOID_MAX_S; i++)
			avoid *= 2;
		server->failures++;
		server->dead_until = monotonic_ns() + (avoid < AVOID_MAX_S ? avoid : AVOID_MAX_S) *
							      (uint64_t)NS_PER_S;
	}
	server->probed = false;
	note_dead(database);
	pthread_mutex_unlock(&database->lock);
	if (alive == was_dead)
		log_server(database, server, !alive, code);
}

static int32_t ask_database_server(const struct member_database *database,
				   const struct server *server,
				   int32_t (*ask)(rxw_call *call, void *arg), void *arg,
				   enum rxw_origin *origin)
{
	const struct rxw_call_options options = {.size = sizeof(options),
						 .deadline_ms = database->options.answer_ms};
	rxw_call *call;
	int32_t code = rxw_rpc_begin_pool(server->pool, &options, &call);

	if (!code)
		code = rxw_rpc_end(call, ask(call, arg), NULL, 0);
	*origin = rxw_rpc_origin();
	return code;
}

int32_t member_database_ask(struct member_database *database,
			    int32_t (*ask)(rxw_call *call, void *arg), void *arg)
{
	struct server *server;
	unsigned tried = 0;

	while ((server = next_server(database, &tried))) {
		enum rxw_origin origin;
		int32_t code = ask_database_server(database, server, ask, arg, &origin);
		bool answered = answers_question(code, origin);

		note_server_result(database, server, answered || is_not_in_charge(code, origin),
				   code);
		if (answered) {
			pthread_mutex_lock(&database->lock);
			for (unsigned i = 0; i < database->count; i++)
				if (database->server[i] == server)
					database->preferred = i;
			pthread_mutex_unlock(&database->lock);
		}
		unref_server(server);
		if (answered)
			return code;
	}
	return MEMBER_NOBODY;
}

bool member_database_dead(const struct member_database *database)
{
	return atomic_load_explicit(&database->dead, memory_order_relaxed);
}

/* A dead server whose time has come, with a reference. *next: when that of another one comes. */
static struct server *due_server(struct member_database *database, uint64_t *next)
{
	uint64_t now = monotonic_ns();
	struct server *due = NULL;

	*next = UINT64_MAX;
	pthread_mutex_lock(&database->lock);
	for (unsigned i = 0; i < database->count && !database->stopped; i++) {
		struct server *server = database->server[i];

		if (!server->dead_until || server->probed)
			continue;
		if (!due && server->dead_until <= now)
			due = server;
		else if (server->dead_until < *next)
			*next = server->dead_until;
	}
	if (due) {
		due->probed = true;
		atomic_fetch_add(&due->refs, 1);
	}
	pthread_mutex_unlock(&database->lock);
	return due;
}

uint64_t member_database_probe(struct member_database *database,
			       int32_t (*ask)(rxw_call *call, void *arg), void *arg)
{
	struct server *server;
	uint64_t next;

	while ((server = due_server(database, &next))) {
		enum rxw_origin origin;
		int32_t code = ask_database_server(database, server, ask, arg, &origin);

		note_server_result(database, server, answers_question(code, origin), code);
		unref_server(server);
	}
	return next;
}

void member_database_count(struct member_database *database, unsigned *servers, unsigned *dead)
{
	*dead = 0;
	pthread_mutex_lock(&database->lock);
	*servers = database->count;
	for (unsigned i = 0; i < database->count; i++)
		*dead += database->server[i]->dead_until != 0;
	pthread_mutex_unlock(&database->lock);
}

void member_database_stop(struct member_database *database)
{
	pthread_mutex_lock(&database->lock);
	database->stopped = true;
	pthread_mutex_unlock(&database->lock);
}
