/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's tokens. */

#include "common/cancel.h"
#include "common/sized.h"
#include "token/negotiated.h"
#include "keys/secret.h"
#include "token/cell_ticket.h"

#include <rxwire/afs.h>
#include <rxwire/error.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/token.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constant after its creation; the key is in the security object. */
struct rxw_token {
	atomic_uint references;
	rxw_security *security;
	struct rxw_token_details info; /* its strings are the token's own */
};

/* Make a token of rxkad of a Kerberos ticket. */
static int from_ticket(rxw_token *token, const struct rxw_cell_ticket *ticket, char *error,
		       size_t room)
{
	const krb5_creds *creds = ticket->creds;
	struct rxw_rxkad_token kad = {.size = sizeof(kad), .kvno = RXW_RXKAD_KVNO_ENCPART};
	const uint8_t *part;
	size_t length;
	int result;

	if (!rxw_ticket_encrypted_part((const uint8_t *)creds->ticket.data, creds->ticket.length,
				       &part, &length))
		return rxw_token_say(error, room, ticket->service, -RXW_EDECODE);
	result = rxw_rxkad_session_key(creds->keyblock.enctype, creds->keyblock.contents,
				       creds->keyblock.length, kad.session_key);
	if (result < 0)
		return rxw_token_say(error, room, "unsuitable session key of the ticket", result);
	/* Not owned: the class copies both. */
	kad.ticket = (void *)part;
	kad.ticket_length = length;
	kad.client_name = ticket->client;
	kad.begins = creds->times.starttime ? creds->times.starttime : creds->times.authtime;
	kad.expires = (uint32_t)creds->times.endtime;
	result = rxw_rxkad_client(&kad, token->info.level, &token->security);
	explicit_bzero(kad.session_key, sizeof(kad.session_key));
	if (result < 0)
		return rxw_token_say(error, room, "token", result);
	token->info.enctype = creds->keyblock.enctype;
	token->info.begins = kad.begins;
	token->info.expires = kad.expires;
	token->info.client = strdup(ticket->client);
	token->info.service = strdup(ticket->service);
	if (!token->info.client || !token->info.service)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
	return 0;
}

/* Create the class for a token of rxgk. */
static int take_rxgk(rxw_token *token, const struct rxw_rxgk_token *gk, const char *client,
		     char *error, size_t room)
{
	const struct rxw_rxgk_client_options co = {
		.size = sizeof(co), .index = token->info.index, .client_name = client};
	int result = rxw_rxgk_client(gk, &co, &token->security);

	token->info.enctype = gk->enctype;
	token->info.expires = gk->expires ? gk->expires / RXW_RXGK_SECOND : INT64_MAX;
	return result < 0 ? rxw_token_say(error, room, "token", result) : 0;
}

static int from_negotiation(rxw_token *token, const struct rxw_token_options *options, char *error,
			    size_t room)
{
	struct rxw_negotiated *n = rxw_secret_alloc(sizeof(*n));
	int result;

	if (!n)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
	result = rxw_token_negotiate(options, n, error, room);
	if (result == 0) {
		result = take_rxgk(token, &n->token, n->client, error, room);
		token->info.client = n->client;
		token->info.service = n->service;
		n->client = n->service = NULL;
		rxw_negotiated_free(n);
	}
	rxw_secret_free(n);
	return result;
}

static bool is_rxgk(uint8_t index)
{
	return index == RXW_RXGK_INDEX || index == RXW_RXGK_INDEX_YFS;
}

static int from_kerberos(rxw_token *token, const struct rxw_token_options *options, char *error,
			 size_t room)
{
	struct rxw_cell_ticket ticket;
	int result;

	if (!options->cell || !*options->cell ||
	    (options->source == RXW_TOKEN_KEYTAB && !options->keytab))
		return rxw_token_say(error, room,
				     "a token requires a cell, and a keytab if it comes from one",
				     -RXW_EINVAL);
	if (is_rxgk(options->index))
		return from_negotiation(token, options, error, room);
	if (options->index != RXW_RXKAD_INDEX)
		return rxw_token_say(error, room, "cannot make a token of that class",
				     -RXW_ENOTSUP);
	result = rxw_cell_ticket_get(options, &ticket, error, room);
	if (result < 0)
		return result;
	result = from_ticket(token, &ticket, error, room);
	rxw_cell_ticket_free(&ticket);
	return result;
}

static int print_rxkad(rxw_token *token, const struct rxw_token_options *options, char *error,
		       size_t room)
{
	const struct rxw_rxkad_print_options po = {
		.size = sizeof(po), .name = options->client, .lifetime_s = options->lifetime_s};
	struct rxw_rxkad_token kad = {.size = sizeof(kad)};
	int result = rxw_rxkad_print_token(options->keys, &po, &kad);

	if (result < 0)
		return rxw_token_say(error, room,
				     "cannot make an rxkad token with the service's keys", result);
	result = rxw_rxkad_client(&kad, token->info.level, &token->security);
	token->info.begins = kad.begins;
	token->info.expires = kad.expires;
	rxw_rxkad_token_free(&kad);
	return result < 0 ? rxw_token_say(error, room, "token", result) : 0;
}

static int print_rxgk(rxw_token *token, const struct rxw_token_options *options, char *error,
		      size_t room)
{
	const struct rxw_rxgk_print_options po = {.size = sizeof(po),
						  .level = options->level,
						  .lifetime_s = options->lifetime_s,
						  .name = options->client,
						  .index = options->index};
	struct rxw_rxgk_token *gk = rxw_secret_alloc(sizeof(*gk));
	int result;

	if (!gk)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
	gk->size = sizeof(*gk);
	result = rxw_rxgk_print_token(options->keys, &po, gk);
	if (result < 0) {
		rxw_secret_free(gk);
		return rxw_token_say(error, room,
				     "cannot make an rxgk token with the service's keys", result);
	}
	result = take_rxgk(token, gk, options->client, error, room);
	rxw_rxgk_token_free(gk);
	rxw_secret_free(gk);
	return result;
}

static int from_keys(rxw_token *token, const struct rxw_token_options *options, char *error,
		     size_t room)
{
	int result;

	if (!options->keys)
		return rxw_token_say(error, room, "a printed token requires the service's keys",
				     -RXW_EINVAL);
	token->info.local = true;
	if (options->index == RXW_RXKAD_INDEX)
		result = print_rxkad(token, options, error, room);
	else if (is_rxgk(options->index))
		result = print_rxgk(token, options, error, room);
	else
		return rxw_token_say(error, room, "cannot make a token of that class",
				     -RXW_ENOTSUP);
	if (result || !options->client)
		return result;
	token->info.client = strdup(options->client);
	if (!token->info.client)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
	return 0;
}

__attribute__((cold))
int rxw_token_create(const struct rxw_token_options *given, rxw_token **token, char *error,
		     size_t room)
{
	struct rxw_token_options options = {0};
	rxw_token *made;
	int result;
	NOT_CANCELLED;

	if (!error)
		room = 0;
	if (room)
		error[0] = '\0';
	if (!token)
		return rxw_token_say(error, room, "token", -RXW_EINVAL);
	*token = NULL;
	if (!given || !sized_read(&options, sizeof(options), given) ||
	    options.level > RXW_LEVEL_CRYPT)
		return rxw_token_say(error, room, "token", -RXW_EINVAL);
	made = calloc(1, sizeof(*made));
	if (!made)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
	atomic_init(&made->references, 1);
	made->info.size = sizeof(made->info);
	made->info.index = options.index;
	made->info.level = options.level;
	if (options.source == RXW_TOKEN_LOCAL)
		result = from_keys(made, &options, error, room);
	else
		result = from_kerberos(made, &options, error, room);
	if (result < 0) {
		rxw_token_unref(made);
		return result;
	}
	*token = made;
	return 0;
}

rxw_token *rxw_token_ref(rxw_token *token)
{
	if (token)
		atomic_fetch_add_explicit(&token->references, 1, memory_order_relaxed);
	return token;
}

void rxw_token_unref(rxw_token *token)
{
	if (!token || atomic_fetch_sub_explicit(&token->references, 1, memory_order_acq_rel) > 1)
		return;
	rxw_security_unref(token->security);
	free((char *)token->info.client);
	free((char *)token->info.service);
	free(token);
}

rxw_security *rxw_token_security(const rxw_token *token)
{
	return token ? token->security : NULL;
}

int rxw_token_info(const rxw_token *token, struct rxw_token_details *info)
{
	if (!token || !sized_valid(info))
		return -RXW_EINVAL;
	sized_write(info, &token->info, sizeof(token->info));
	return 0;
}
