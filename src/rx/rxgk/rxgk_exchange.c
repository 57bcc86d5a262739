/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE (rx-protocol 7.4.4). */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/error.h>

#include "keys/keys.h"
#include "rxgk/rxgk_conn.h"

#define CALLS 4 /* call numbers in an authenticator, one per channel */
/* Nonce, no application data, level, epoch, cid, count and numbers of calls. */
#define AUTH_PLAIN (RXW_GK_NONCE + 4 + 4 + 4 + 4 + 4 + 4 * CALLS)

int rxw_gk_challenge(void *conn, uint8_t *out, size_t room)
{
	struct rxw_gk_conn *c = conn;

	if (room < RXW_GK_NONCE)
		return -RXW_ELIMIT;
	if (!c->nonce_made && c->klass->random(c->klass->random_context, c->nonce, RXW_GK_NONCE))
		return -RXW_ESYS;
	c->nonce_made = true;
	memcpy(out, c->nonce, RXW_GK_NONCE);
	return RXW_GK_NONCE;
}

/* The plain text of an authenticator for `nonce`. */
static size_t write_authenticator(const struct rxw_gk_conn *c, const uint8_t *nonce,
				  const uint32_t calls[4], uint8_t out[AUTH_PLAIN])
{
	uint8_t *p = out + RXW_GK_NONCE;

	memcpy(out, nonce, RXW_GK_NONCE);
	rxw_xdr_store32(p, 0);
	rxw_xdr_store32(p + 4, c->level);
	rxw_xdr_store32(p + 8, c->id.epoch);
	rxw_xdr_store32(p + 12, c->id.cid);
	rxw_xdr_store32(p + 16, CALLS);
	for (int i = 0; i < CALLS; i++)
		rxw_xdr_store32(p + 20 + 4 * i, calls[i]);
	return AUTH_PLAIN;
}

int rxw_gk_respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		   uint8_t *out, size_t room, size_t *written, uint16_t *spare)
{
	struct rxw_gk_conn *c = conn;
	const struct rxw_gk_class *k = c->klass;
	uint8_t auth[RXW_GK_CONFOUNDER + AUTH_PLAIN + RXW_GK_MAC_MAX], tk[RXW_GK_KEY_MAX];
	uint32_t number = rxw_gk_current(c);
	size_t length;
	struct rxw_xdr x;
	int r;

	if (size < RXW_GK_NONCE)
		return -RXW_EDECODE;
	r = k->random(k->random_context, auth, RXW_GK_CONFOUNDER);
	if (r)
		return r;
	length = RXW_GK_CONFOUNDER +
		 write_authenticator(c, challenge, calls, auth + RXW_GK_CONFOUNDER);
	r = rxw_gk_transport_key(c->enctype, c->k0, c->id.epoch, c->id.cid, c->start_time, number,
				 tk);
	if (!r)
		r = rxw_gk_encrypt_once(c->enctype, tk, RXW_GK_CLIENT_ENC_RESPONSE, auth, length);
	explicit_bzero(tk, sizeof(tk));
	if (r)
		return r;
	rxw_xdr_writer(&x, out, room);
	rxw_xdr_put_u64(&x, (uint64_t)c->start_time);
	rxw_gk_put_opaque(&x, k->blob, k->blob_length);
	rxw_gk_put_opaque(&x, auth, length + c->enctype->mac_length);
	if (!rxw_xdr_ok(&x))
		return -RXW_ELIMIT;
	*written = rxw_xdr_used(&x);
	*spare = (uint16_t)number;
	return 0;
}

/*
 * Whether the authenticator `text` matches the connection. Everything is compared in one operation,
 * in constant time. `text` has been decrypted with the right key.
 */
static int32_t compare_authenticator(const struct rxw_gk_conn *c, uint32_t level,
				     const uint8_t *text, size_t length, uint32_t calls[4])
{
	struct rxw_xdr x;
	const uint8_t *nonce, *appdata = NULL;
	uint32_t appdata_length = 0, count = 0;
	uint8_t given[12], expected[12];

	rxw_xdr_reader(&x, text, length);
	nonce = rxw_xdr_take(&x, RXW_GK_NONCE);
	rxw_gk_get_opaque(&x, &appdata, &appdata_length, RXW_GK_AUTH_MAX);
	for (int i = 0; i < 3; i++) {
		uint32_t word = 0;

		rxw_xdr_get_u32(&x, &word);
		rxw_xdr_store32(given + 4 * i, word);
	}
	rxw_xdr_get_u32(&x, &count);
	if (!rxw_xdr_ok(&x))
		return RXW_RXGK_BADCHALLENGE;
	rxw_xdr_store32(expected, level);
	rxw_xdr_store32(expected + 4, c->id.epoch);
	rxw_xdr_store32(expected + 8, c->id.cid);
	if (CRYPTO_memcmp(nonce, c->nonce, RXW_GK_NONCE) | CRYPTO_memcmp(given, expected, 12))
		return RXW_RXGK_BADCHALLENGE;
	if (count != CALLS)
		return RXW_RXGK_BADCHALLENGE;
	for (int i = 0; i < CALLS; i++)
		if (!rxw_xdr_get_u32(&x, &calls[i]))
			return RXW_RXGK_BADCHALLENGE;
	return 0;
}

/* 0, or a code: expired, not yet valid, or of a lower level than the service requires. */
static int32_t admit_token(const struct rxw_gk_conn *c, const struct rxw_gk_body *token)
{
	const struct rxw_gk_class *k = c->klass;
	int64_t now = k->time(k->time_context);

	if (token->expires && now > token->expires)
		return RXW_RXGK_EXPIRED;
	if (token->starts && token->starts > now + RXW_GK_SKEW_S * RXW_RXGK_SECOND)
		return RXW_RXGK_NOTAUTH;
	if (token->level < k->level_min)
		return RXW_RXGK_BADLEVEL;
	return 0;
}

/* After opening the token: check key number and authenticator, then set the keys. */
static int32_t check_authenticator(struct rxw_gk_conn *c, const struct rxw_gk_body *token,
				   int64_t start_time, uint8_t *auth, uint32_t auth_length,
				   uint16_t spare, uint32_t calls[4])
{
	uint8_t tk[RXW_GK_KEY_MAX];
	uint32_t number;
	int32_t code;
	int r;

	/* A server begins with key 0, so a client may be one ahead. */
	if (!rxw_gk_whole_number(0, spare, &number))
		return RXW_RXGK_BADKEYNO;
	r = rxw_gk_transport_key(token->enctype, token->k0, c->id.epoch, c->id.cid, start_time,
				 number, tk);
	if (!r)
		r = rxw_gk_decrypt_once(token->enctype, tk, RXW_GK_CLIENT_ENC_RESPONSE, auth,
					auth_length);
	explicit_bzero(tk, sizeof(tk));
	if (r)
		return RXW_RXGK_SEALED_INCON;
	code = compare_authenticator(c, token->level, auth + RXW_GK_CONFOUNDER,
				     auth_length - RXW_GK_CONFOUNDER - token->enctype->mac_length,
				     calls);
	if (code)
		return code;
	return rxw_gk_conn_ready(c, token, start_time, number) ? RXW_RXGK_INCONSISTENCY : 0;
}

__attribute__((cold)) int32_t rxw_gk_check_response(void *conn, const uint8_t *response,
						    size_t size, uint16_t spare, uint32_t calls[4])
{
	struct rxw_gk_conn *c = conn;
	struct rxw_xdr x;
	const uint8_t *token = NULL, *auth = NULL;
	uint32_t token_length = 0, auth_length = 0;
	int64_t start_time = 0;
	struct rxw_gk_body body;
	uint8_t *copy;
	int32_t code;

	if (!c->nonce_made || atomic_load_explicit(&c->ready, memory_order_acquire))
		return RXW_RXGK_INCONSISTENCY;
	/* The rest is ignored. */
	rxw_xdr_reader(&x, response, size);
	rxw_xdr_get_i64(&x, &start_time);
	rxw_gk_get_opaque(&x, &token, &token_length, RXW_GK_TOKEN_MAX);
	rxw_gk_get_opaque(&x, &auth, &auth_length, RXW_GK_AUTH_MAX);
	if (!rxw_xdr_ok(&x))
		return RXW_RXGK_PACKETSHORT;
	copy = rxw_secret_alloc((size_t)token_length + auth_length + 1);
	if (!copy)
		return RXW_RXGK_INCONSISTENCY;
	memcpy(copy, token, token_length);
	memcpy(copy + token_length, auth, auth_length);
	code = rxw_gk_token_open(c->klass->keys, c->klass->index, copy, token_length, &body);
	if (code)
		goto out;
	code = admit_token(c, &body);
	if (code)
		goto out;
	code = check_authenticator(c, &body, start_time, copy + token_length, auth_length, spare,
				   calls);
out:
	explicit_bzero(&body, sizeof(body));
	rxw_secret_free(copy);
	return code;
}
