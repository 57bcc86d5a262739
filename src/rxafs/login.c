/* SPDX-License-Identifier: BSD-2-Clause */
/* rxafsctl login, logout, tokens and session: the daemon's part. */
#include "rxafs/users/cell_token.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rxafs/admin.h>

#include "program/address.h"
#include "program/auth.h"
#include "rxafs/answer.h"
#include "rxafs/users/logins.h"
#include "rxafs/users/sessions.h"
#include "rxafs/users/tickets.h"
#include "rxafs/users/tokens.h"

/* With the keys of the service, as an administrator can. */
static int make_token_of_keys(const struct asked *a, const struct tools_address *server,
			      const char *cell, const char *path, rxw_token **token, char *message,
			      size_t size)
{
	bool rxkad = !strcmp(word_of(a, 2), "rxkad");
	struct tools_auth auth = {.class = rxkad ? TOOLS_RXKAD : TOOLS_RXGK,
				  .level = RXW_LEVEL_CRYPT,
				  .cell = cell,
				  .key_file = path,
				  .principal = strcmp(word_of(a, 4), " ") ? word_of(a, 4) : NULL};
	struct tools_renewal renewal = {0};
	int result = tools_renewal_open(&renewal, &auth, server, NULL, NULL, message, size);

	if (!result)
		*token = rxw_token_ref(renewal.token);
	tools_renewal_close(&renewal);
	return result;
}

/* -- what rxafsctl hands over ------------------------------------------------------------------ */

/* A part of the tickets or keys, which the caller has read as himself. The first one has the offset 0. */
int answer_tickets(struct asked *a)
{
	struct handle *h = a->task->handle;

	if (!h || a->from->size > CONTROL_DATA)
		return -EINVAL;
	atomic_store(&h->hands_over, true);
	return logins_add(a->task->mount->logins, h, find_accountable(a->task->caller.uid),
			  strtoul(word_of(a, 1), NULL, 10), a->from->data, a->from->size);
}

/* A file of this process with what was handed over, which is forgotten. */
static int file_of_caller(struct asked *a, char path[40])
{
	struct handle *h = a->task->handle;
	size_t size = 0;
	uint8_t *data = h ? logins_take(a->task->mount->logins, h, &size) : NULL;
	int fd = data ? memfd_create("rxafs-login", MFD_CLOEXEC) : -EINVAL;

	if (fd == -1)
		fd = -errno;
	if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
		close(fd);
		fd = -ENOMEM;
	}
	free_secret(data, size);
	snprintf(path, 40, "/proc/self/fd/%d", fd);
	return fd;
}

/* A user may have handed over an initial ticket of a realm of his own, whose KDC keeps silent: none is asked. */
static int make_token_of_tickets(const struct asked *a, const struct tools_address *server,
				 const char *cell, const char *path, rxw_token **token,
				 char *message, size_t size)
{
	char cache[64], copy[TICKETS_NAME];
	int result;

	assert(size >= TICKETS_MESSAGE);
	snprintf(cache, sizeof cache, "FILE:%s", path);
	if (tickets_for_services(cache, copy, message))
		return -1;
	result = make_cell_token(server, cell, word_of(a, 2), copy, token, message, size);
	tickets_forget(copy);
	return result;
}

static int make_token_of_caller(struct asked *a, const char *cell, rxw_token **token)
{
	char path[40], message[TOOLS_AUTH_MESSAGE] = "";
	int fd = file_of_caller(a, path), result;
	struct tools_address server;

	if (fd < 0)
		return fd;
	result = find_token_server(a->task->mount->client, cell, &server, message, sizeof message);
	if (result)
		goto out;
	if (!strcmp(word_of(a, 3), "keys"))
		result = make_token_of_keys(a, &server, cell, path, token, message, sizeof message);
	else
		result = make_token_of_tickets(a, &server, cell, path, token, message,
					       sizeof message);
out:
	close(fd);
	if (result >= 0)
		return 0;
	snprintf(a->task->request.failure.text, sizeof a->task->request.failure.text, "%.199s",
		 message);
	return -EACCES;
}

/* In one of the places that logins have. */
static int make_token_in_place(struct asked *a, const char *cell, rxw_token **token)
{
	struct logins *logins = a->task->mount->logins;
	uid_t uid = find_accountable(a->task->caller.uid);
	int result = logins_enter(logins, uid);

	if (result)
		return refuse_asked(a, result,
				    "%s logins at a time; try again when one of them has ended",
				    result == -EUSERS ? "this user has too many"
						      : "the users of this mount have too many");
	result = make_token_of_caller(a, cell, token);
	logins_leave(logins, uid);
	return result;
}

/* -- commands ------------------------------------------------------------------------------------ */

static int refuse_session(struct asked *a, int result)
{
	snprintf(a->task->request.failure.text, sizeof a->task->request.failure.text, "%s",
		 result == -EPERM
			 ? "this mount is of one user and keeps no sessions apart: mount it with "
			   "--sessions or --allow-other"
		 : result == -ENODEV ? "the kernel knows no login session of this process: use "
				       "rxafsctl session"
		 : result == -ESRCH  ? "the daemon of the mount cannot see this process: /proc "
				       "hides it (hidepid)"
		 : result == -ENOENT ? "this login session has no tokens of its own"
		 : result == -EUSERS ? "this user, or all, have begun too many sessions"
				     : strerror(-result));
	return result;
}

/* The kernel's caches must not tell one session what another has seen. */
static int begin_session_of(struct asked *a, bool command, rxafs_user **user)
{
	struct mount *mount = a->task->mount;
	char text[SESSION_TEXT];
	int result = mount->many_users
			     ? session_begin(mount->sessions, find_accountable(a->task->caller.uid),
					     a->task->caller.pid, command, user, text)
			     : -EPERM;

	if (result)
		return refuse_session(a, result);
	add_json_text(a->answer, "session", text);
	return 0;
}

int answer_session(struct asked *a)
{
	rxafs_user *user;
	int result = begin_session_of(a, true, &user);

	if (!result)
		rxafs_put_user(user);
	return result;
}

static bool is_asked_for(const struct asked *a, const char *word)
{
	for (unsigned i = 1; i < a->count; i++)
		if (!strcmp(a->words[i], word))
			return true;
	return false;
}

/* login CELL CLASS cache|keys PRINCIPAL [session] */
int answer_login(struct asked *a)
{
	struct mount *mount = a->task->mount;
	const char *cell = word_of(a, 1);
	rxafs_user *user = NULL;
	rxw_token *token = NULL;
	json_t *list;
	int result;

	/* No cell is named. */
	if (!strcmp(cell, " "))
		cell = rxafs_home_cell(mount->client);
	if (!cell || !a->task->request.user || a->named)
		return -EINVAL;
	result = make_token_in_place(a, cell, &token);
	if (result)
		return result;
	if (a->count > 5 && !strcmp(a->words[5], "session"))
		result = begin_session_of(a, false, &user);
	else
		user = rxafs_hold_user(a->task->request.user);
	if (!result)
		result = tokens_set(mount->tokens, user, a->task->caller.uid, cell, token);
	if (!result) {
		tokens_set_own(mount->tokens, true);
		list = json_array();
		tokens_list(mount->tokens, user, list);
		json_object_set_new(a->answer, "tokens", list);
		add_json_text(a->answer, "cell", cell);
	}
	rxafs_put_user(user);
	rxw_token_unref(token);
	return result;
}

/* logout CELL [session] */
static bool is_known_cell(struct mount *mount, const char *cell)
{
	const char *name;

	for (uint32_t n = 1; (name = rxafs_cell_name(mount->client, n)); n++)
		if (!strcasecmp(name, cell))
			return true;
	return false;
}

int answer_logout(struct asked *a)
{
	struct mount *mount = a->task->mount;
	const char *cell = a->count > 1 && strcmp(a->words[1], " ") ? a->words[1] : NULL;

	if (!a->task->request.user)
		return -EINVAL;
	if (cell && !is_known_cell(mount, cell))
		return refuse_asked(a, -ENOENT, "cell %.100s is not known; see rxafsctl cells",
				    cell);
	tokens_drop(mount->tokens, a->task->request.user, cell);
	if (!cell)
		tokens_set_own(mount->tokens, false);
	if (is_asked_for(a, "session") && session_end(mount->sessions, a->task->caller.pid))
		return refuse_session(a, -ENOENT);
	return 0;
}

/* tokens [all] */
int answer_tokens(struct asked *a)
{
	json_t *list = json_array();
	bool all = is_asked_for(a, "all");

	if (all && a->task->caller.uid) {
		json_decref(list);
		return -EPERM;
	}
	tokens_list(a->task->mount->tokens, all ? NULL : a->task->request.user, list);
	json_object_set_new(a->answer, "tokens", list);
	return 0;
}
