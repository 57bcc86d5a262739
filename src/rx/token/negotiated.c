/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of rxgk for a Kerberos ticket: finding the negotiation service (rx-protocol 7.4.7). */

#include "base/ascii.h"
#include "token/negotiated.h"
#include "token/cell_ticket.h"

#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ROOM 560

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
		       const struct rxw_cell_client *client, struct rxw_negotiated *n, char *error,
		       size_t room)
{
	struct rxw_rxgk_negotiate_options o = {.size = sizeof(o),
					       .cell = options->cell,
					       .ccache = client->where,
					       .level = options->level};
	char name[NAME_ROOM], ignored[8];
	int length, result;

	snprintf(name, sizeof(name), "afs-rxgk/_afs.%s%s%s", options->cell,
		 options->realm ? "@" : "", options->realm ? options->realm : "");
	if (options->realm)
		o.target = name;
	n->token.size = sizeof(n->token);
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

__attribute__((cold)) int rxw_token_negotiate(const struct rxw_token_options *options,
					      struct rxw_negotiated *result, char *error,
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
		rxw_negotiated_free(result);
	return rc;
}

void rxw_negotiated_free(struct rxw_negotiated *result)
{
	rxw_rxgk_token_free(&result->token);
	free(result->client);
	free(result->service);
	result->client = result->service = NULL;
}
