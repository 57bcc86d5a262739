/* SPDX-License-Identifier: BSD-2-Clause */
/* The security class: its creation, and its connections. */
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/error.h>

#include "common/sized.h"
#include "keys/keys.h"
#include "rxgk/rxgk_conn.h"

static int random_bytes(void *unused, void *out, size_t size)
{
	(void)unused;
	return RAND_bytes(out, (int)size) == 1 ? 0 : -RXW_ESYS;
}

static void class_free(void *data)
{
	struct rxw_gk_class *k = data;

	rxw_keys_unref(k->keys);
	rxw_secret_free(k->blob);
	free(k->client_name);
	rxw_secret_free(k);
}

static struct rxw_gk_class *class_new(uint8_t index, int64_t (*time)(void *), void *context)
{
	struct rxw_gk_class *k = rxw_secret_alloc(sizeof(*k));

	if (!k)
		return NULL;
	k->index = index;
	k->time = time ? time : rxw_gk_clock;
	k->time_context = context;
	k->random = random_bytes;
	return k;
}

__attribute__((cold)) int rxw_gk_class_server(const struct rxw_rxgk_server_options *given,
					      struct rxw_gk_class **klass)
{
	struct rxw_rxgk_server_options options = {0};
	struct rxw_gk_class *k;
	uint8_t index;

	if (!given || !sized_read(&options, sizeof(options), given) || !options.keys ||
	    options.level_min > RXW_LEVEL_CRYPT)
		return -RXW_EINVAL;
	index = options.index ? options.index : RXW_RXGK_INDEX;
	if (!rxw_gk_index_ok(index))
		return -RXW_EINVAL;
	k = class_new(index, options.time, options.time_context);
	if (!k)
		return -RXW_ENOMEM;
	k->server = true;
	k->keys = rxw_keys_ref(options.keys);
	k->level_min = options.level_min;
	*klass = k;
	return 0;
}

__attribute__((cold)) int rxw_gk_class_client(const struct rxw_rxgk_token *token,
					      const struct rxw_rxgk_client_options *options,
					      struct rxw_gk_class **klass)
{
	static const struct rxw_rxgk_client_options defaults;
	const struct rxw_gk_enctype *e;
	struct rxw_gk_class *k;
	uint8_t index;

	if (!options)
		options = &defaults;
	index = options->index ? options->index : RXW_RXGK_INDEX;
	if (token->level > RXW_LEVEL_CRYPT || !token->token || !token->token_length ||
	    token->token_length > RXW_GK_TOKEN_MAX || !rxw_gk_index_ok(index))
		return -RXW_EINVAL;
	e = rxw_gk_enctype(token->enctype);
	if (!e)
		return -RXW_ENOTSUP;
	k = class_new(index, options->time, options->time_context);
	if (!k)
		return -RXW_ENOMEM;
	k->blob = rxw_secret_alloc(token->token_length);
	if (!k->blob) {
		class_free(k);
		return -RXW_ENOMEM;
	}
	if (options->client_name && !(k->client_name = strdup(options->client_name))) {
		class_free(k);
		return -RXW_ENOMEM;
	}
	memcpy(k->blob, token->token, token->token_length);
	k->blob_length = token->token_length;
	k->token.enctype = e;
	memcpy(k->token.k0, token->key, e->key_length);
	k->token.level = token->level;
	k->token.lifetime = token->lifetime;
	k->token.bytelife = token->bytelife;
	k->token.expires = token->expires;
	*klass = k;
	return 0;
}

static void conn_destroy(void *conn)
{
	struct rxw_gk_conn *c = conn;

	rxw_gk_conn_forget(c);
	pthread_mutex_destroy(&c->lock);
	rxw_secret_free(c);
}

/* A client has its keys at once, a server after it has opened the token. */
static int conn_create(void *data, const struct rxw_security_id *id, void **conn)
{
	const struct rxw_gk_class *k = data;
	struct rxw_gk_conn *c;
	int r = 0;

	/* A server's class cannot call, a client's cannot serve. */
	if (id->client == k->server)
		return -RXW_EINVAL;
	c = rxw_secret_alloc(sizeof(*c));
	if (!c)
		return -RXW_ENOMEM;
	c->klass = k;
	c->id = *id;
	pthread_mutex_init(&c->lock, NULL);
	if (!k->server)
		r = rxw_gk_conn_ready(c, &k->token, k->time(k->time_context), 0);
	if (r) {
		conn_destroy(c);
		return r;
	}
	*conn = c;
	return 0;
}

/* A client only knows its own token, not its identity at the server. */
static int tell_identity(const void *conn, struct rxw_identity *identity)
{
	const struct rxw_gk_conn *c = conn;

	if (!atomic_load_explicit(&c->ready, memory_order_acquire))
		return -RXW_ESTATE;
	identity->level = (uint8_t)c->level;
	identity->local = c->klass->server && c->local;
	identity->name = c->klass->server ? c->name : c->klass->client_name;
	identity->rxkad_name = c->name_kind == RXW_GK_NAME_KRB4 ? c->name : NULL;
	identity->expires = c->expires ? c->expires / RXW_RXGK_SECOND : INT64_MAX;
	return 0;
}

/* Client and server operations. */
const struct rxw_security_class rxw_gk_table = {
	.size = sizeof(struct rxw_security_class),
	.name = "rxgk",
	.index = RXW_RXGK_INDEX,
	.flags = RXW_CLASS_SLOW,
	.broken = RXW_RXGK_SEALED_INCON,
	.weak = RXW_RXGK_BADLEVEL,
	.destroy = class_free,
	.conn_create = conn_create,
	.conn_destroy = conn_destroy,
	.room = rxw_gk_room,
	.identity = tell_identity,
	.seal = rxw_gk_seal,
	.renew = rxw_gk_renew,
	.unseal = rxw_gk_unseal,
	.verify = rxw_gk_verify,
	.challenge = rxw_gk_challenge,
	.respond = rxw_gk_respond,
	.check_response = rxw_gk_check_response,
};

__attribute__((cold)) static int publish_class(struct rxw_gk_class *k, rxw_security **security)
{
	struct rxw_security_class table = rxw_gk_table;
	int r;

	table.index = k->index;
	if (k->index == RXW_RXGK_INDEX_YFS)
		table.name = "yfs-rxgk";
	r = rxw_security_create(&table, k, security);
	if (r)
		class_free(k);
	return r;
}

int rxw_rxgk_server(const struct rxw_rxgk_server_options *options, rxw_security **security)
{
	struct rxw_gk_class *k;
	int r = security ? rxw_gk_class_server(options, &k) : -RXW_EINVAL;

	return r ? r : publish_class(k, security);
}

int rxw_rxgk_client(const struct rxw_rxgk_token *token,
		    const struct rxw_rxgk_client_options *options, rxw_security **security)
{
	struct rxw_gk_class *k;
	int r = security ? rxw_gk_class_client(token, options, &k) : -RXW_EINVAL;

	return r ? r : publish_class(k, security);
}
