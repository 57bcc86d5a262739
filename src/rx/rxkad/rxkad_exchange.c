/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of the security class rxkad: their keys, identity, and exchange (rx-protocol 7.3). */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/wire.h"
#include "keys/keys.h"
#include "rxkad/derive.h"
#include "rxkad/rxkad_conn.h"
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

#define RESPONSE_VERSION 2u
#define CHALLENGE_SIZE	 16u
/* Offsets in a RESPONSE. */
enum {
	AT_SEALED = 8,
	AT_EPOCH = 8,
	AT_CID = 12,
	AT_CHECKSUM = 16,
	AT_INDEX = 20,
	AT_CALLS = 24,
	AT_NONCE = 40,
	AT_LEVEL = 44,
	AT_KVNO = 48,
	AT_LENGTH = 52,
	AT_TICKET = 56
};
#define SEALED_BLOCKS 5u

int rxw_rxkad_challenge(void *conn, uint8_t *out, size_t room)
{
	struct rxw_rxkad_conn *c = conn;

	if (room < CHALLENGE_SIZE)
		return -RXW_ELIMIT;
	if (rxw_random(&c->nonce, sizeof(c->nonce)))
		return -RXW_ESYS;
	rxw_put32(out, RESPONSE_VERSION);
	rxw_put32(out + 4, c->nonce);
	rxw_put32(out + 8, c->side->level_min);
	rxw_put32(out + 12, 0);
	return CHALLENGE_SIZE;
}

int rxw_rxkad_respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		      uint8_t *out, size_t room, size_t *written, uint16_t *spare)
{
	const struct rxw_rxkad_conn *c = conn;
	const struct rxw_rxkad *side = c->side;
	struct rxw_fcrypt_text sealed = {out + AT_SEALED, SEALED_BLOCKS, c->key};

	/*
	 * Answer a level above ours, too, and let the server refuse it: a CHALLENGE, which anyone
	 * can forge, must not end the connection.
	 */
	if (size < CHALLENGE_SIZE || rxw_get32(challenge) != RESPONSE_VERSION)
		return -RXW_EDECODE;
	if (room < AT_TICKET + side->ticket_length)
		return -RXW_ELIMIT;
	memset(out, 0, AT_TICKET);
	rxw_put32(out, RESPONSE_VERSION);
	rxw_put32(out + AT_EPOCH, c->epoch);
	rxw_put32(out + AT_CID, c->cid);
	rxw_put32(out + AT_INDEX, c->index);
	for (unsigned i = 0; i < 4; i++)
		rxw_put32(out + AT_CALLS + 4 * i, calls[i]);
	rxw_put32(out + AT_NONCE, rxw_get32(challenge + 4) + 1);
	rxw_put32(out + AT_LEVEL, c->level);
	rxw_put32(out + AT_KVNO, side->kvno);
	rxw_put32(out + AT_LENGTH, (uint32_t)side->ticket_length);
	rxw_put32(out + AT_CHECKSUM, rxw_rxkad_response_checksum(out));
	rxw_fcrypt_pcbc_encrypt(&c->cipher, &sealed, 1);
	memcpy(out + AT_TICKET, side->ticket, side->ticket_length);
	*written = AT_TICKET + side->ticket_length;
	*spare = 0;
	return 0;
}

/* The names of a client, in one allocation: "name.instance@cell" without empty parts, then each part. */
static bool set_names(struct rxw_rxkad_conn *c, const struct rxw_rxkad_ticket *t)
{
	size_t name = strlen(t->name) + 1, instance = strlen(t->instance) + 1,
	       cell = strlen(t->cell) + 1;
	char *text = malloc(2 * (name + instance + cell)), *p = text;

	if (text == NULL)
		return false;
	p = stpcpy(p, t->name);
	if (t->instance[0]) {
		*p++ = '.';
		p = stpcpy(p, t->instance);
	}
	if (t->cell[0]) {
		*p++ = '@';
		p = stpcpy(p, t->cell);
	}
	p++;
	c->rxkad_name = text;
	c->primary = memcpy(p, t->name, name);
	c->instance = memcpy(p + name, t->instance, instance);
	c->cell = memcpy(p + name + instance, t->cell, cell);
	return true;
}

/* Steps 7 to 11: `clear` is the first 56 bytes of the RESPONSE, decrypted. */
static int32_t check_sealed(const struct rxw_rxkad_conn *c, const uint8_t *clear, uint32_t calls[4],
			    uint32_t *level)
{
	uint8_t want[16], got[16];
	bool good;

	rxw_put32(want, rxw_rxkad_response_checksum(clear));
	rxw_put32(want + 4, c->epoch);
	rxw_put32(want + 8, c->cid);
	rxw_put32(want + 12, c->index);
	memcpy(got, clear + AT_CHECKSUM, 4);
	memcpy(got + 4, clear + AT_EPOCH, 8);
	memcpy(got + 12, clear + AT_INDEX, 4);
	good = CRYPTO_memcmp(want, got, sizeof(want)) == 0;
	for (unsigned i = 0; i < 4; i++) {
		calls[i] = rxw_get32(clear + AT_CALLS + 4 * i);
		good &= calls[i] < 0x80000000u;
	}
	if (!good)
		return RXW_RXKAD_SEALEDINCON;
	rxw_put32(want, c->nonce + 1);
	if (CRYPTO_memcmp(want, clear + AT_NONCE, 4) != 0)
		return RXW_RXKAD_OUTOFSEQUENCE;
	*level = rxw_get32(clear + AT_LEVEL);
	if (*level < c->side->level_min || *level > RXW_LEVEL_CRYPT)
		return RXW_RXKAD_LEVELFAIL;
	return 0;
}

/*
 * After opening the ticket: check the rest with a temporary connection, which is copied on success.
 */
static int32_t check_rest(struct rxw_rxkad_conn *c, const struct rxw_rxkad_ticket *ticket,
			  const uint8_t *response, uint32_t calls[4])
{
	struct rxw_rxkad_conn fresh = *c;
	uint8_t clear[AT_TICKET];
	struct rxw_fcrypt_text sealed = {clear + AT_SEALED, SEALED_BLOCKS, 0};
	uint32_t level = 0;
	int32_t code;

	memcpy(clear, response, sizeof(clear));
	rxw_rxkad_set_key(&fresh, ticket->session_key);
	sealed.x = fresh.key;
	rxw_fcrypt_pcbc_decrypt(&fresh.cipher, &sealed, 1);
	code = check_sealed(&fresh, clear, calls, &level);
	if (code)
		goto out;
	fresh.name = strdup(ticket->principal);
	if (fresh.name == NULL || !set_names(&fresh, ticket)) {
		free(fresh.name);
		code = RXW_RXKAD_INCONSISTENCY;
		goto out;
	}
	fresh.level = (uint8_t)level;
	fresh.expires = ticket->end;
	fresh.local = ticket->local;
	fresh.kvno = rxw_get32(response + AT_KVNO);
	fresh.ready = true;
	free(c->name);
	free(c->rxkad_name);
	*c = fresh;
out:
	explicit_bzero(&fresh, sizeof(fresh));
	explicit_bzero(clear, sizeof(clear));
	return code;
}

__attribute__((cold)) int32_t rxw_rxkad_check_response(void *conn, const uint8_t *response,
						       size_t size, uint16_t spare,
						       uint32_t calls[4])
{
	struct rxw_rxkad_conn *c = conn;
	const struct rxw_rxkad *side = c->side;
	struct rxw_rxkad_opener opener = {.keys = side->keys,
					  .find_key = side->find_key,
					  .find_context = side->find_context,
					  .allow_single_des = side->allow_single_des};
	struct rxw_rxkad_ticket *ticket;
	uint32_t length;
	int32_t code;

	(void)spare;
	if (size < AT_TICKET)
		return RXW_RXKAD_PACKETSHORT;
	if (rxw_get32(response) != RESPONSE_VERSION)
		return RXW_RXKAD_INCONSISTENCY;
	length = rxw_get32(response + AT_LENGTH);
	if (length > size - AT_TICKET)
		return RXW_RXKAD_PACKETSHORT;
	opener.local_realm = side->local_realm[0] ? side->local_realm : NULL;
	opener.now = rxw_rxkad_now(side);
	opener.allow_dotted = atomic_load_explicit(&side->allow_dotted, memory_order_relaxed);
	ticket = rxw_secret_alloc(sizeof(*ticket));
	if (ticket == NULL)
		return RXW_RXKAD_INCONSISTENCY;
	code = rxw_rxkad_ticket_open(&opener, rxw_get32(response + AT_KVNO), response + AT_TICKET,
				     length, ticket);
	if (code == 0)
		code = check_rest(c, ticket, response, calls);
	rxw_secret_free(ticket);
	return code;
}
