/* SPDX-License-Identifier: BSD-2-Clause */
/* The security class rxkad: objects of both sides, table of the class (rx-protocol 7.3). */
#include <stdlib.h>
#include <string.h>

#include "common/sized.h"
#include "keys/keys.h"
#include "rxkad/rxkad_conn.h"
#include "rxkad/derive.h"
#include "rxwire/error.h"

void rxw_rxkad_side_destroy(void *data)
{
	struct rxw_rxkad *side = data;

	if (side->find_destroy)
		side->find_destroy(side->find_context);
	rxw_keys_unref(side->keys);
	rxw_secret_free(side->ticket);
	free(side->client_name);
	rxw_secret_free(side);
}

int rxw_rxkad_server_side(const struct rxw_rxkad_server_options *given, struct rxw_rxkad **result)
{
	struct rxw_rxkad_server_options known = {0}, *options = &known;
	struct rxw_rxkad *side;

	if (given == NULL || !sized_read(&known, sizeof(known), given) ||
	    (options->keys == NULL && options->find_key == NULL) ||
	    options->level_min > RXW_LEVEL_CRYPT ||
	    (options->local_realm != NULL && strlen(options->local_realm) >= RXW_RXKAD_NAME))
		return -RXW_EINVAL;
	if (options->allow_single_des && !rxw_des_ready())
		return -RXW_ENOTSUP;
	side = rxw_secret_alloc(sizeof(*side));
	if (side == NULL)
		return -RXW_ENOMEM;
	side->server = true;
	side->keys = rxw_keys_ref(options->keys);
	side->find_key = options->find_key;
	side->find_context = options->find_context;
	side->find_destroy = options->find_destroy;
	side->level_min = options->level_min;
	side->allow_single_des = options->allow_single_des;
	atomic_init(&side->allow_dotted, options->allow_dotted);
	if (options->local_realm != NULL)
		memcpy(side->local_realm, options->local_realm, strlen(options->local_realm) + 1);
	side->time = options->time;
	side->time_context = options->time_context;
	*result = side;
	return 0;
}

static int client_side(const struct rxw_rxkad_token *token, uint8_t level,
		       struct rxw_rxkad **result)
{
	struct rxw_rxkad *side;

	if (level > RXW_LEVEL_CRYPT || token->ticket == NULL || token->kvno < 0 ||
	    token->ticket_length < RXW_RXKAD_TICKET_MIN ||
	    token->ticket_length > RXW_RXKAD_TICKET_MAX)
		return -RXW_EINVAL;
	side = rxw_secret_alloc(sizeof(*side));
	if (side == NULL)
		return -RXW_ENOMEM;
	side->level = level;
	memcpy(side->session_key, token->session_key, sizeof(side->session_key));
	side->kvno = (uint32_t)token->kvno;
	side->local = token->local;
	side->expires = token->expires;
	side->ticket_length = token->ticket_length;
	side->ticket = rxw_secret_alloc(token->ticket_length);
	if (token->client_name != NULL)
		side->client_name = strdup(token->client_name);
	if (side->ticket == NULL || (token->client_name != NULL && side->client_name == NULL)) {
		rxw_rxkad_side_destroy(side);
		return -RXW_ENOMEM;
	}
	memcpy(side->ticket, token->ticket, token->ticket_length);
	*result = side;
	return 0;
}

int rxw_rxkad_client_side(const struct rxw_rxkad_token *token, uint8_t level,
			  struct rxw_rxkad **result)
{
	struct rxw_rxkad_token known = {0};
	int r = -RXW_EINVAL;

	if (token != NULL && sized_read(&known, sizeof(known), token))
		r = client_side(&known, level, result);
	explicit_bzero(&known, sizeof(known));
	return r;
}

static int create_class(struct rxw_rxkad *side, rxw_security **security)
{
	struct rxw_security_class class = {
		.size = sizeof(class),
		.name = "rxkad",
		.index = RXW_RXKAD_INDEX,
		.flags = side->server || side->level == RXW_LEVEL_CRYPT ? RXW_CLASS_SLOW : 0,
		.broken = RXW_RXKAD_SEALEDINCON,
		.weak = RXW_RXKAD_LEVELFAIL,
		.destroy = rxw_rxkad_side_destroy,
		.conn_create = rxw_rxkad_conn_create,
		.conn_destroy = rxw_rxkad_conn_destroy,
		.room = rxw_rxkad_room,
		.identity = rxw_rxkad_identity,
		.seal = rxw_rxkad_seal,
		.unseal = rxw_rxkad_unseal,
		.verify = rxw_rxkad_verify,
		.challenge = rxw_rxkad_challenge,
		.respond = rxw_rxkad_respond,
		.check_response = rxw_rxkad_check_response,
	};
	int result = rxw_security_create(&class, side, security);

	if (result) {
		side->find_destroy = NULL;
		rxw_rxkad_side_destroy(side);
	}
	return result;
}

int rxw_rxkad_server(const struct rxw_rxkad_server_options *options, rxw_security **security)
{
	struct rxw_rxkad *side;
	int result = security ? rxw_rxkad_server_side(options, &side) : -RXW_EINVAL;

	return result ? result : create_class(side, security);
}

int rxw_rxkad_allow_dotted(rxw_security *security, int allow)
{
	struct rxw_rxkad *side = rxw_security_data(security, rxw_rxkad_side_destroy);

	if (side == NULL || !side->server)
		return -RXW_EINVAL;
	atomic_store_explicit(&side->allow_dotted, allow != 0, memory_order_relaxed);
	return 0;
}

int rxw_rxkad_client(const struct rxw_rxkad_token *token, uint8_t level, rxw_security **security)
{
	struct rxw_rxkad *side;
	int result = security ? rxw_rxkad_client_side(token, level, &side) : -RXW_EINVAL;

	return result ? result : create_class(side, security);
}
