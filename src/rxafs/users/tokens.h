/* SPDX-License-Identifier: BSD-2-Clause */
/* Which users of a mount have tokens, for whom and until when; and the looking after them. */
#ifndef RXAFS_TOKENS_H
#define RXAFS_TOKENS_H

#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>
#include <rxafs/client.h>
#include <rxwire/token.h>

struct sessions;
struct tokens;

struct tokens_options {
	rxafs_client *client;
	struct sessions *sessions;
	/*
	 * Tokens of the user of this process are made from his Kerberos tickets, for the home cell and `cells`, and again when
	 * the tickets change or run out.
	 */
	bool own;
	const char *const *cells;
	size_t cell_count;
	const char *where; /* the mount: tickets in it are not used */
	void (*log)(void *arg, int priority, const char *text);
	void *log_arg;
};
/* Start looking after tokens. NULL: no memory, or no thread. */
struct tokens *tokens_start(const struct tokens_options *options);
/* Before the client is closed: forgets all users. NULL is allowed. */
void tokens_stop(struct tokens *tokens);
/* Afterwards, when no operation is in progress. */
void tokens_free(struct tokens *tokens);

/* Use a token from now on. */
int tokens_set(struct tokens *tokens, rxafs_user *user, uid_t uid, const char *cell,
	       rxw_token *token);
/* Take those of a user away, of one cell, or of all: NULL. */
void tokens_drop(struct tokens *tokens, rxafs_user *user, const char *cell);
/* One object for each token of a user; NULL: of all users. */
void tokens_list(struct tokens *tokens, const rxafs_user *user, json_t *list);

/* Whether the Kerberos tickets of this user have changed and are not used yet. Never waits. */
bool tokens_are_behind(struct tokens *tokens);
/* Wait until they are, some seconds at most. */
void tokens_catch_up(struct tokens *tokens);
/* After a server has refused a token: whether there is a newer one. Waits some seconds at most. */
bool tokens_renew(struct tokens *tokens, const char *cell);
/* Whether this user has asked for no tokens, until he asks for some. */
void tokens_set_own(struct tokens *tokens, bool wanted);

#endif
