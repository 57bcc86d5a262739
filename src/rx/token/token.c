/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of clients: of a Kerberos ticket, and of the negotiation service of a cell (rx-protocol 7.4.7). */
#include <rxwire/afs.h>
#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/token.h>

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "common/cancel.h"
#include "common/sized.h"
#include "keys/keys.h"
#include "rxgk/client.h"
#include "token/cell_ticket.h"

#define NAME_ROOM 560

/*
 * The result, in memory of rxw_secret_alloc(); strings of malloc(). Freed by free_negotiated().
 */
struct negotiated {
	struct rxw_rxgk_token token;
	char *client, *service;
};

/*
 * A connection to the negotiation service; engine and endpoint are NULL if they are the caller's.
 */
struct way {
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *connection;
};

static void way_close(struct way *way)
{
	if (way->connection)
		rxw_connection_release(way->connection);
	if (way->endpoint)
		rxw_endpoint_destroy(way->endpoint);
	if (way->engine)
		rxw_engine_destroy(way->engine);
}

static int way_open(const struct rxw_token_options *options, struct way *way)
{
	struct sockaddr_storage any = {.ss_family = options->server->sa_family};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&any,
					  .address_len = any.ss_family == AF_INET6
								 ? sizeof(struct sockaddr_in6)
								 : sizeof(struct sockaddr_in)};
	rxw_endpoint *endpoint = options->endpoint;
	int result;

	*way = (struct way){0};
	if (!endpoint) {
		result = rxw_engine_create(NULL, &way->engine);
		if (result < 0)
			goto fail;
		result = rxw_endpoint_create(way->engine, &eo, &way->endpoint);
		if (result < 0)
			goto fail;
		endpoint = way->endpoint;
	}
	result = rxw_connection_create(endpoint, options->server, options->server_len,
				       RXW_RXGK_NEGOTIATION_SERVICE, NULL, &way->connection);
	if (result < 0)
		goto fail;
	return 0;
fail:
	way_close(way);
	return result;
}

/*
 * Try the name of the service in the realm of Kerberos' configuration, then in the realm named like
 * the cell. The first error is reported.
 */
static int ask_service(const struct rxw_token_options *options, struct way *way,
		       const struct rxw_cell_client *client, struct negotiated *n, char *error,
		       size_t room)
{
	struct rxw_rxgk_negotiate_options o = {
		.cell = options->cell, .ccache = client->where, .level = options->level};
	char name[NAME_ROOM], ignored[8];
	int length, result;

	snprintf(name, sizeof(name), "afs-rxgk/_afs.%s%s%s", options->cell,
		 options->realm ? "@" : "", options->realm ? options->realm : "");
	if (options->realm)
		o.target = name;
	result = rxw_rxgk_negotiate(way->connection, &o, &n->token, error, room);
	if (result == -RXW_ENOKEY && !options->realm) {
		length = snprintf(name, sizeof(name), "afs-rxgk/_afs.%s@%s", options->cell,
				  options->cell);
		if (length < 0 || (size_t)length >= sizeof(name))
			return result;
		for (char *p = strchr(name, '@'); *p; p++)
			*p = rxw_ascii_upper(*p);
		o.target = name;
		if (rxw_rxgk_negotiate(way->connection, &o, &n->token, ignored, sizeof(ignored)) ==
		    0) {
			result = 0;
			if (room)
				error[0] = '\0';
		}
	}
	if (result == 0) {
		n->service = strdup(name);
		n->client = strdup(client->name);
		if (!n->service || !n->client)
			result = rxw_token_say(error, room, "token", -RXW_ENOMEM);
	}
	return result;
}

static void free_negotiated(struct negotiated *result)
{
	rxw_rxgk_token_free(&result->token);
	free(result->client);
	free(result->service);
	result->client = result->service = NULL;
}

/* According to the options (RXW_TOKEN_CACHE, RXW_TOKEN_KEYTAB). Results as of rxw_token_create(). */
__attribute__((cold)) static int negotiate_token(const struct rxw_token_options *options,
						 struct negotiated *result, char *error,
						 size_t room)
{
	struct rxw_cell_client client;
	struct way way;
	int rc;

	memset(result, 0, sizeof(*result));
	if (!options->server || !options->server_len)
		return rxw_token_say(
			error, room,
			"an rxgk token requires the address of the cell's negotiation service",
			-RXW_EINVAL);
	rc = rxw_cell_client_open(options, &client, error, room);
	if (rc < 0)
		return rc;
	rc = way_open(options, &way);
	if (rc < 0) {
		rxw_token_say(error, room, "cannot connect to the negotiation service", rc);
	} else {
		rc = ask_service(options, &way, &client, result, error, room);
		way_close(&way);
	}
	rxw_cell_client_close(&client);
	if (rc < 0)
		free_negotiated(result);
	return rc;
}

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
	const struct rxw_rxgk_client_options co = {.index = token->info.index,
						   .client_name = client};
	int result = rxw_rxgk_client(gk, &co, &token->security);

	token->info.enctype = gk->enctype;
	token->info.expires = gk->expires ? gk->expires / RXW_RXGK_SECOND : INT64_MAX;
	return result < 0 ? rxw_token_say(error, room, "token", result) : 0;
}

static int from_negotiation(rxw_token *token, const struct rxw_token_options *options, char *error,
			    size_t room)
{
	struct negotiated *n = rxw_secret_alloc(sizeof(*n));
	int result;

	if (!n)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
	result = negotiate_token(options, n, error, room);
	if (result == 0) {
		result = take_rxgk(token, &n->token, n->client, error, room);
		token->info.client = n->client;
		token->info.service = n->service;
		n->client = n->service = NULL;
		free_negotiated(n);
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
	const struct rxw_rxgk_print_options po = {.level = options->level,
						  .lifetime_s = options->lifetime_s,
						  .name = options->client,
						  .index = options->index};
	struct rxw_rxgk_token *gk = rxw_secret_alloc(sizeof(*gk));
	int result;

	if (!gk)
		return rxw_token_say(error, room, "token", -RXW_ENOMEM);
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
