/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of the security class rxkad: their keys and identity (rx-protocol 7.3). */
#include <stdlib.h>
#include <time.h>

#include "keys/secret.h"
#include "rxkad/rxkad_conn.h"
#include "rxkad/derive.h"
#include "rxwire/error.h"

int64_t rxw_rxkad_now(const struct rxw_rxkad *side)
{
	return side->time ? side->time(side->time_context) : (int64_t)time(NULL);
}

void rxw_rxkad_set_key(struct rxw_rxkad_conn *c, const uint8_t key[8])
{
	rxw_fcrypt_key(&c->cipher, key);
	c->key = rxw_rxkad_number(key);
	c->preseq = rxw_rxkad_preseq(&c->cipher, c->key, c->epoch, c->cid, c->index);
}

int rxw_rxkad_conn_create(void *data, const struct rxw_security_id *id, void **conn)
{
	const struct rxw_rxkad *side = data;
	struct rxw_rxkad_conn *c;

	/* A server's class cannot call, a client's cannot serve. */
	if (id->client == side->server)
		return -RXW_EINVAL;
	c = rxw_secret_alloc(sizeof(*c));
	if (c == NULL)
		return -RXW_ENOMEM;
	c->side = side;
	c->epoch = id->epoch;
	c->cid = id->cid;
	c->index = id->index;
	c->client = id->client;
	if (id->client) {
		c->level = side->level;
		c->expires = side->expires;
		c->local = side->local;
		c->kvno = side->kvno;
		rxw_rxkad_set_key(c, side->session_key);
		c->ready = true;
	}
	*conn = c;
	return 0;
}

void rxw_rxkad_conn_destroy(void *conn)
{
	struct rxw_rxkad_conn *c = conn;

	free(c->name);
	free(c->rxkad_name);
	rxw_secret_free(c);
}

int rxw_rxkad_identity(const void *conn, struct rxw_identity *id)
{
	const struct rxw_rxkad_conn *c = conn;

	if (!c->ready)
		return -RXW_ESTATE;
	id->level = c->level;
	id->local = c->local;
	id->name = c->client ? c->side->client_name : c->name;
	id->rxkad_name = c->rxkad_name;
	id->expires = c->expires;
	id->rxkad_primary = c->primary;
	id->rxkad_instance = c->instance;
	id->rxkad_cell = c->cell;
	id->rxkad_kvno = (int32_t)c->kvno;
	return 0;
}
