/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens of a mount's users. A thread tells the log when one will run out. In the mount of one user it also makes them from his
 * Kerberos tickets: at the start, after kinit, and in time before they run out.
 */
#include "rxafs/users/tokens.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <rxafs/admin.h>

#include "common/background.h"
#include "common/clock.h"
#include "program/auth.h"
#include "rxafs/users/cell_token.h"
#include "rxafs/users/members.h"
#include "rxafs/users/sessions.h"
#include "rxafs/users/tickets.h"
#include "rxafs/users/tokens.h"

#define WARN_S	   600		      /* before the end of a token */
#define LOOK_S	   10u		      /* between two looks at the tickets, at most */
#define FRESH_NS   (1 * NS_PER_MS)    /* a look at the file of the tickets is good for so long */
#define CATCH_UP_S 10		      /* that an operation waits for new tokens */
#define TURN_NS	   (30ull * NS_PER_S) /* between two looks at the ends of tokens */

/* A token of a user. */
struct entry {
	struct entry *next;
	rxafs_user *user; /* a reference */
	uid_t uid;
	char cell[256], client[256];
	unsigned index, level;
	int64_t expires;
	bool of_session;
	bool warned;
};

/* The tickets of this user. */
struct own {
	bool on;
	bool away;  /* the thread waits for the KDC or a server, perhaps for long */
	bool idle;  /* the thread sleeps */
	bool asked; /* make tokens also if nothing has changed */
	char *file; /* NULL: they are in no file */
	/* The tickets that the tokens were made from. */
	struct tickets used;
	int64_t retry_at, renew_at; /* seconds since 1970: not before */
	_Atomic bool wanted;	    /* rxafsctl logout: not */
	_Atomic bool behind;	    /* the thread has to look at them */
	_Atomic int64_t seen;	    /* the stamp of the file when it looked */
	_Atomic uint64_t looked_ns; /* when others did */
	uint64_t turns;		    /* complete looks */
};

struct tokens {
	struct background
		background; /* its lock covers the list and the members of `own` that are not atomic */
	pthread_cond_t turned; /* the thread has looked */
	struct tokens_options o;
	bool left; /* the thread could not be waited for */
	struct entry *list;
	struct own own;
};

static void log_token(struct tokens *tokens, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void log_token(struct tokens *tokens, int priority, const char *format, ...)
{
	char text[TOOLS_AUTH_MESSAGE + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	tokens->o.log(tokens->o.log_arg, priority, text);
}

/* -- the list ----------------------------------------------------------------------------------- */

static struct entry *find_token_entry(const struct tokens *tokens, const rxafs_user *user,
				      const char *cell)
{
	struct entry *e = tokens->list;

	assert(mutex_is_held((pthread_mutex_t *)&tokens->background.lock));
	while (e && (e->user != user || strcmp(e->cell, cell)))
		e = e->next;
	return e;
}

static void describe_entry(struct entry *e, const struct rxw_token_details *details)
{
	snprintf(e->client, sizeof e->client, "%s",
		 details->client ? details->client : "the service itself");
	e->index = details->index;
	e->level = details->level;
	e->expires = details->expires;
	/* A short one would be told at once. */
	e->warned = e->expires - wall_ns() / (int64_t)NS_PER_S <= WARN_S;
}

/* With the lock. */
static int set_token_entry(struct tokens *tokens, rxafs_user *user, uid_t uid, const char *cell,
			   rxw_token *token)
{
	struct rxw_token_details details = {.size = sizeof details};
	char text[SESSION_TEXT];
	struct entry *e;
	int result;

	assert(mutex_is_held(&tokens->background.lock));
	if (tokens->background.stop)
		return -ESHUTDOWN;
	if (rxw_token_info(token, &details) < 0)
		return -EINVAL;
	e = find_token_entry(tokens, user, cell);
	/* Another principal has other rights than those that are known. */
	result = (e && details.client && !strcmp(e->client, details.client) ? rxafs_renew_token
									    : rxafs_set_token)(
		user, cell, rxw_token_security(token), details.expires);
	if (result)
		return result;
	if (!e && (e = calloc(1, sizeof *e))) {
		e->user = rxafs_hold_user(user);
		e->uid = uid;
		e->of_session = session_name(tokens->o.sessions, user, text);
		snprintf(e->cell, sizeof e->cell, "%s", cell);
		e->next = tokens->list;
		tokens->list = e;
	}
	if (e)
		describe_entry(e, &details);
	wake_background(&tokens->background);
	return 0;
}

int tokens_set(struct tokens *tokens, rxafs_user *user, uid_t uid, const char *cell,
	       rxw_token *token)
{
	int result;

	pthread_mutex_lock(&tokens->background.lock);
	result = set_token_entry(tokens, user, uid, cell, token);
	pthread_mutex_unlock(&tokens->background.lock);
	return result;
}

static void free_token_entry(struct entry *e)
{
	rxafs_put_user(e->user);
	free(e);
}

void tokens_drop(struct tokens *tokens, rxafs_user *user, const char *cell)
{
	struct entry **at = &tokens->list, *e, *dropped = NULL;

	pthread_mutex_lock(&tokens->background.lock);
	while ((e = *at)) {
		if (e->user != user || (cell && strcmp(e->cell, cell))) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		e->next = dropped;
		dropped = e;
	}
	pthread_mutex_unlock(&tokens->background.lock);
	while ((e = dropped)) {
		dropped = e->next;
		rxafs_set_token(user, e->cell, NULL, 0);
		free_token_entry(e);
	}
}

/* Of sessions without processes. With the lock. */
static void forget_dead_entries(struct tokens *tokens)
{
	struct entry **at = &tokens->list, *e;
	char text[SESSION_TEXT];

	assert(mutex_is_held(&tokens->background.lock));
	sessions_forget_dead(tokens->o.sessions);
	while ((e = *at)) {
		if (!e->of_session || session_name(tokens->o.sessions, e->user, text)) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free_token_entry(e);
	}
}

void tokens_list(struct tokens *tokens, const rxafs_user *user, json_t *list)
{
	int64_t now = wall_ns() / (int64_t)NS_PER_S;

	pthread_mutex_lock(&tokens->background.lock);
	forget_dead_entries(tokens);
	for (const struct entry *e = tokens->list; e; e = e->next) {
		json_t *one = !user || e->user == user ? json_object() : NULL;
		char text[SESSION_TEXT];

		if (!one)
			continue;
		add_json_text(one, "cell", e->cell);
		add_json_text(one, "client", e->client);
		add_json_text(one, "class", tools_class_name(e->index));
		add_json_text(one, "level", tools_level_name(e->level));
		add_json_number(one, "uid", e->uid);
		if (session_name(tokens->o.sessions, e->user, text))
			add_json_text(one, "session", text);
		add_json_number(one, "expires", (uint64_t)e->expires);
		json_object_set_new(one, "expired", json_boolean(e->expires <= now));
		json_array_append_new(list, one);
	}
	pthread_mutex_unlock(&tokens->background.lock);
}

/* With the lock. */
static void watch_ends(struct tokens *tokens)
{
	int64_t now = wall_ns() / (int64_t)NS_PER_S;

	forget_dead_entries(tokens);
	for (struct entry *e = tokens->list; e; e = e->next) {
		if (e->warned || e->expires - now > WARN_S)
			continue;
		e->warned = true;
		log_token(tokens, LOG_NOTICE,
			  "the token of %s for cell %s (uid %u) ends in %lld minutes: "
			  "kinit and rxafsctl login",
			  e->client, e->cell, (unsigned)e->uid, (long long)(e->expires - now) / 60);
	}
}

/* -- the tickets of this user --------------------------------------------------------------- */

/* Changes with the file. 0: there is none. */
static int64_t file_stamp(const struct own *own)
{
	struct stat st;

	if (!own->file || stat(own->file, &st))
		return 0;
	return ((int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec) ^
	       ((int64_t)st.st_ino << 20) ^ (int64_t)st.st_size;
}

static bool same_tickets(const struct tickets *a, const struct tickets *b)
{
	return a->begins == b->begins && a->ends == b->ends && !strcmp(a->principal, b->principal);
}

/* For what may wait for long the lock is released, and the client must not be used: it may be closed. False: it ends. */
static bool come_back(struct tokens *tokens)
{
	pthread_mutex_lock(&tokens->background.lock);
	tokens->own.away = false;
	return !tokens->background.stop;
}

static void go_away(struct tokens *tokens)
{
	assert(!tokens->own.away);
	tokens->own.away = true;
	pthread_mutex_unlock(&tokens->background.lock);
}

/* For one cell, with the lock. False: after a line in the log. */
static bool log_in_to(struct tokens *tokens, const char *cell)
{
	char message[TOOLS_AUTH_MESSAGE] = "";
	struct tools_address server;
	rxafs_user *user = NULL;
	rxw_token *token = NULL;
	int result = find_token_server(tokens->o.client, cell, &server, message, sizeof message);

	if (!result) {
		go_away(tokens);
		result =
			make_cell_token(&server, cell, NULL, NULL, &token, message, sizeof message);
		if (!come_back(tokens)) {
			rxw_token_unref(token);
			return false;
		}
	}
	if (result < 0) {
		log_token(tokens, LOG_NOTICE, "no token for cell %s: %s", cell, message);
		return false;
	}
	result = rxafs_get_user(tokens->o.client, (uint32_t)getuid() + 1, &user);
	if (!result)
		result = set_token_entry(tokens, user, getuid(), cell, token);
	rxafs_put_user(user);
	rxw_token_unref(token);
	return !result;
}

static bool log_in_to_all(struct tokens *tokens)
{
	const char *home = rxafs_home_cell(tokens->o.client);
	bool done = true;

	if (home)
		done = log_in_to(tokens, home);
	for (size_t i = 0; i < tokens->o.cell_count && !tokens->background.stop; i++)
		if (!home || strcmp(home, tokens->o.cells[i]))
			done = log_in_to(tokens, tokens->o.cells[i]) && done;
	return done;
}

/* A renewable ticket in the last quarter of its life is renewed. */
static void renew_tickets(struct own *own, struct tickets *tickets, int64_t now,
			  char message[TICKETS_MESSAGE])
{
	if (now < own->renew_at || now < tickets_renewal(tickets))
		return;
	own->renew_at = now + tickets_pause(tickets);
	if (!tickets_renew(NULL, message))
		(void)tickets_look(NULL, tickets, message);
}

/* With the lock, which is released meanwhile. */
static void look_at_tickets(struct tokens *tokens, bool asked)
{
	struct own *own = &tokens->own;
	int64_t now = wall_ns() / (int64_t)NS_PER_S;
	char message[TICKETS_MESSAGE] = "";
	struct tickets tickets;
	bool found;

	assert(mutex_is_held(&tokens->background.lock));
	if (!atomic_load(&own->wanted))
		return;
	go_away(tokens);
	found = !tickets_look(NULL, &tickets, message) && tickets.ends > now;
	if (found)
		renew_tickets(own, &tickets, now, message);
	if (!come_back(tokens))
		return;
	if (message[0] && found)
		log_token(tokens, LOG_NOTICE, "%s", message);
	if (!found) {
		/* Tokens stay until their end, as with other clients. */
		own->used = (struct tickets){.ends = 0};
	} else {
		if (!same_tickets(&own->used, &tickets) || asked ||
		    (own->retry_at && now >= own->retry_at)) {
			own->used = tickets;
			own->retry_at = log_in_to_all(tokens) ? 0 : now + TICKETS_AGAIN_S;
		}
	}
	atomic_store(&own->seen, file_stamp(own));
}

static void end_look(struct tokens *tokens)
{
	tokens->own.turns++;
	atomic_store(&tokens->own.behind, false);
	pthread_cond_broadcast(&tokens->turned);
}

/* Tickets that live for seconds have to be renewed in time. */
static uint64_t next_look_at_tickets(const struct own *own)
{
	int64_t left = tickets_renewal(&own->used) - wall_ns() / (int64_t)NS_PER_S;

	return monotonic_ns() +
	       (left >= 0 && left < LOOK_S ? (uint64_t)left + 1 : LOOK_S) * NS_PER_S;
}

static void *look_after_tokens(void *arg)
{
	struct tokens *tokens = arg;
	struct own *own = &tokens->own;

	pthread_mutex_lock(&tokens->background.lock);
	while (!tokens->background.stop) {
		bool asked = own->asked;

		own->idle = own->asked = false;
		if (own->on) {
			look_at_tickets(tokens, asked);
			end_look(tokens);
		}
		if (!tokens->background.stop)
			watch_ends(tokens);
		own->idle = !own->asked;
		if (!tokens->background.stop && !own->asked)
			sleep_in_background(&tokens->background, own->on ? next_look_at_tickets(own)
								 : tokens->list
									 ? monotonic_ns() + TURN_NS
									 : UINT64_MAX);
	}
	end_look(tokens);
	pthread_mutex_unlock(&tokens->background.lock);
	return NULL;
}

bool tokens_are_behind(struct tokens *tokens)
{
	struct own *own = &tokens->own;
	uint64_t now;

	if (!own->file || !atomic_load(&own->wanted))
		return false;
	if (atomic_load(&own->behind))
		return true;
	now = monotonic_ns();
	if (now - atomic_load(&own->looked_ns) < FRESH_NS)
		return false;
	atomic_store(&own->looked_ns, now);
	if (file_stamp(own) == atomic_load(&own->seen))
		return false;
	atomic_store(&own->behind, true);
	return true;
}

/* Until the thread has looked once more. */
static void await_look(struct tokens *tokens, bool asked)
{
	uint64_t until = monotonic_ns() + (uint64_t)CATCH_UP_S * NS_PER_S, turn;

	pthread_mutex_lock(&tokens->background.lock);
	/* A look that is in progress may have begun too early. */
	turn = tokens->own.turns + 2;
	tokens->own.asked |= asked;
	wake_background(&tokens->background);
	while (!tokens->background.stop && monotonic_ns() < until &&
	       (asked ? tokens->own.asked || (tokens->own.turns < turn && !tokens->own.idle)
		      : atomic_load(&tokens->own.behind)))
		monotonic_wait(&tokens->turned, &tokens->background.lock, until);
	pthread_mutex_unlock(&tokens->background.lock);
}

void tokens_catch_up(struct tokens *tokens)
{
	if (atomic_load(&tokens->own.behind))
		await_look(tokens, false);
}

bool tokens_renew(struct tokens *tokens, const char *cell)
{
	int64_t now;
	const struct entry *e = NULL;
	bool fresh = false;

	if (!tokens->own.on || !atomic_load(&tokens->own.wanted))
		return false;
	await_look(tokens, true);
	now = wall_ns() / (int64_t)NS_PER_S;
	pthread_mutex_lock(&tokens->background.lock);
	for (e = tokens->list; e && !fresh; e = e->next)
		fresh = e->uid == getuid() && !strcmp(e->cell, cell) && e->expires > now;
	pthread_mutex_unlock(&tokens->background.lock);
	return fresh;
}

void tokens_set_own(struct tokens *tokens, bool wanted)
{
	atomic_store(&tokens->own.wanted, wanted && tokens->own.on);
}

/* -- beginning and end ------------------------------------------------------------------------ */

/* Whether a file is below the mount, which the daemon itself must not touch. */
static bool tickets_are_below(const char *mount, const char *file)
{
	char *copy = strdup(file), *slash = copy ? strrchr(copy, '/') : NULL, *in, *where;
	bool found = false;

	if (slash)
		*slash = '\0';
	in = slash ? realpath(copy, NULL) : NULL;
	where = realpath(mount, NULL);
	if (in && where) {
		size_t length = strlen(where);

		found = !strncmp(in, where, length) && (!in[length] || in[length] == '/');
	}
	free(in);
	free(where);
	free(copy);
	return found;
}

struct tokens *tokens_start(const struct tokens_options *options)
{
	struct tokens *tokens = calloc(1, sizeof *tokens);
	struct own *own;

	if (!tokens)
		return NULL;
	tokens->o = *options;
	own = &tokens->own;
	own->file = options->own ? tickets_file(NULL) : NULL;
	own->on = options->own && !(own->file && tickets_are_below(options->where, own->file));
	if (options->own && !own->on)
		log_token(tokens, LOG_WARNING,
			  "the Kerberos tickets are in the mount itself, so it does not use them");
	atomic_init(&own->wanted, own->on);
	/* The first operations wait for the tokens. */
	atomic_init(&own->behind, own->on && file_stamp(own));
	monotonic_cond_init(&tokens->turned);
	if (!start_background(&tokens->background, look_after_tokens, tokens))
		return tokens;
	pthread_cond_destroy(&tokens->turned);
	free(own->file);
	free(tokens);
	return NULL;
}

void tokens_stop(struct tokens *tokens)
{
	struct entry *e;

	if (!tokens)
		return;
	pthread_mutex_lock(&tokens->background.lock);
	atomic_store(&tokens->background.stop, true);
	wake_background(&tokens->background);
	pthread_cond_broadcast(&tokens->turned);
	while ((e = tokens->list)) {
		tokens->list = e->next;
		free_token_entry(e);
	}
	/* The process ends before it is back, and what it uses stays until then. */
	if (tokens->own.away)
		pthread_detach(tokens->background.thread);
	tokens->left = tokens->own.away;
	pthread_mutex_unlock(&tokens->background.lock);
	if (!tokens->left)
		pthread_join(tokens->background.thread, NULL);
}

void tokens_free(struct tokens *tokens)
{
	if (!tokens || tokens->left)
		return;
	pthread_cond_destroy(&tokens->background.wake);
	pthread_mutex_destroy(&tokens->background.lock);
	pthread_cond_destroy(&tokens->turned);
	free(tokens->own.file);
	free(tokens);
}
