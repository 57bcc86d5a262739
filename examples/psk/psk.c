/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A security class without Kerberos: both ends share a key of 32 bytes.
 *
 * For each connection the client picks a salt of 16 random bytes. From the shared key, the salt and
 * the identifiers of the connection, both ends derive three keys: one for the proof in the
 * RESPONSE, and one for the DATA of each direction. Every DATA packet is sealed with AES-128-GCM.
 * The nonce consists of call number, sequence number and channel. No nonce is used twice with a
 * key, because a retransmission repeats the packet as it was sealed. The CHALLENGE asks for the
 * salt and for a fresh proof.
 *
 * Anyone who has the key can act as any client and as the server. If the key leaks, recorded
 * traffic can be decrypted. If that is not enough, use rxgk.
 */
#include "psk.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <rxwire/error.h>

#define PSK_VERSION	 1u
#define SALT	 16u
#define NONCE	 16u
#define TAG	 16u
#define DATA_KEY 16u
#define DIGEST	 32u

#define CHALLENGE_SIZE (4u + NONCE)
/* version, salt, call numbers, proof */
#define RESPONSE_SIZE (4u + SALT + 16u + DIGEST)

struct psk {
	uint8_t key[PSK_KEY];
	char name[128];
};

/* State of a connection. A server has the keys after a correct RESPONSE. */
struct conn {
	const struct psk *psk;
	struct rxw_security_id id;
	uint8_t salt[SALT];
	uint8_t nonce[NONCE]; /* server: its challenge */
	uint8_t proof_key[DIGEST];
	uint8_t data_key[2][DATA_KEY]; /* [1]: from the client */
};

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int digest(const uint8_t *key, size_t key_size, const uint8_t *data, size_t size,
		  uint8_t out[DIGEST])
{
	unsigned n = DIGEST;

	return HMAC(EVP_sha256(), key, (int)key_size, data, size, out, &n) ? 0 : -RXW_ENOMEM;
}

/* Derives the keys of a connection: one digest for the proof key, one for both data keys. */
static int derive(struct conn *c)
{
	uint8_t text[8 + SALT + 12], keys[DIGEST];
	int r;

	memcpy(text, "rxwpsk 0", 8);
	memcpy(text + 8, c->salt, SALT);
	put32(text + 8 + SALT, c->id.epoch);
	put32(text + 12 + SALT, c->id.cid);
	put32(text + 16 + SALT, (uint32_t)c->id.service << 16 | c->id.index);
	r = digest(c->psk->key, PSK_KEY, text, sizeof(text), c->proof_key);
	text[7] = '1';
	if (!r)
		r = digest(c->psk->key, PSK_KEY, text, sizeof(text), keys);
	if (!r)
		memcpy(c->data_key, keys, sizeof(c->data_key));
	OPENSSL_cleanse(keys, sizeof(keys));
	return r;
}

/* --- connections --- */

static void conn_destroy(void *conn)
{
	OPENSSL_cleanse(conn, sizeof(struct conn));
	free(conn);
}

static int conn_create(void *data, const struct rxw_security_id *id, void **conn)
{
	struct conn *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -RXW_ENOMEM;
	c->psk = data;
	c->id = *id;
	if (id->client)
		r = RAND_bytes(c->salt, SALT) == 1 ? derive(c) : -RXW_ENOMEM;
	else if (RAND_bytes(c->nonce, NONCE) != 1)
		r = -RXW_ENOMEM;
	if (r)
		conn_destroy(c);
	else
		*conn = c;
	return r;
}

static void room(const void *conn, struct rxw_security_room *out)
{
	(void)conn;
	out->tail = TAG;
}

static int identity(const void *conn, struct rxw_identity *out)
{
	const struct conn *c = conn;

	out->level = RXW_LEVEL_CRYPT;
	out->name = c->psk->name;
	out->expires = INT64_MAX;
	return 0;
}

/* --- packets --- */

/* `length` is the length of the data, without the tag that follows. Returns 0 or -1. */
static int crypt_one(EVP_CIPHER_CTX *ctx, bool seal, struct rxw_security_packet *p, uint32_t length)
{
	uint8_t nonce[12] = {0};
	int n;

	put32(nonce, p->call);
	put32(nonce + 4, p->seq);
	nonce[8] = p->channel;
	if (EVP_CipherInit_ex(ctx, NULL, NULL, NULL, nonce, seal) != 1)
		return -1;
	if (!seal && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, p->data + length) != 1)
		return -1;
	if (length && EVP_CipherUpdate(ctx, p->data, &n, p->data, (int)length) != 1)
		return -1;
	if (EVP_CipherFinal_ex(ctx, p->data + length, &n) != 1)
		return -1;
	if (seal && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, p->data + length) != 1)
		return -1;
	return 0;
}

/* Several threads may seal and verify for one connection, so each call has a context of its own. */
static EVP_CIPHER_CTX *cipher(const struct conn *c, bool seal)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const uint8_t *key = c->data_key[seal == c->id.client];

	if (ctx && EVP_CipherInit_ex(ctx, EVP_aes_128_gcm(), NULL, key, NULL, seal) != 1) {
		EVP_CIPHER_CTX_free(ctx);
		ctx = NULL;
	}
	return ctx;
}

static int seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	EVP_CIPHER_CTX *ctx = cipher(conn, true);
	int r = ctx ? 0 : -RXW_ENOMEM;

	for (size_t i = 0; !r && i < count; i++) {
		packets[i].spare = 0;
		if (crypt_one(ctx, true, &packets[i], packets[i].length))
			r = -RXW_ENOMEM;
	}
	EVP_CIPHER_CTX_free(ctx);
	return r;
}

static void verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	EVP_CIPHER_CTX *ctx = cipher(conn, false);

	for (size_t i = 0; i < count; i++) {
		struct rxw_security_packet *p = &packets[i];

		p->result = -1;
		if (!ctx || p->spare || p->length < TAG)
			continue;
		if (crypt_one(ctx, false, p, p->length - TAG))
			continue;
		p->length -= TAG;
		p->result = 0;
	}
	EVP_CIPHER_CTX_free(ctx);
}

/* --- the exchange --- */

static int challenge(void *conn, uint8_t *out, size_t size)
{
	const struct conn *c = conn;

	if (size < CHALLENGE_SIZE)
		return -RXW_ELIMIT;
	put32(out, PSK_VERSION);
	memcpy(out + 4, c->nonce, NONCE);
	return CHALLENGE_SIZE;
}

/* The proof covers the server's nonce and the part of the RESPONSE before the proof. */
static int prove(const struct conn *c, const uint8_t *nonce, const uint8_t *response,
		 uint8_t proof[DIGEST])
{
	uint8_t text[NONCE + RESPONSE_SIZE - DIGEST];

	memcpy(text, nonce, NONCE);
	memcpy(text + NONCE, response, RESPONSE_SIZE - DIGEST);
	return digest(c->proof_key, DIGEST, text, sizeof(text), proof);
}

static int respond(void *conn, const uint8_t *asked, size_t size, const uint32_t calls[4],
		   uint8_t *out, size_t out_size, size_t *written, uint16_t *spare)
{
	const struct conn *c = conn;

	if (size != CHALLENGE_SIZE || get32(asked) != PSK_VERSION)
		return -RXW_EINVAL;
	if (out_size < RESPONSE_SIZE)
		return -RXW_ELIMIT;
	put32(out, PSK_VERSION);
	memcpy(out + 4, c->salt, SALT);
	for (unsigned i = 0; i < 4; i++)
		put32(out + 4 + SALT + 4 * i, calls[i]);
	*written = RESPONSE_SIZE;
	*spare = 0;
	return prove(c, asked + 4, out, out + RESPONSE_SIZE - DIGEST);
}

static int32_t check_response(void *conn, const uint8_t *response, size_t size, uint16_t spare,
			      uint32_t calls[4])
{
	struct conn *c = conn;
	uint8_t proof[DIGEST];

	if (size != RESPONSE_SIZE || spare || get32(response) != PSK_VERSION)
		return PSK_BAD_RESPONSE;
	memcpy(c->salt, response + 4, SALT);
	if (derive(c) || prove(c, c->nonce, response, proof))
		return PSK_BAD_RESPONSE;
	if (CRYPTO_memcmp(proof, response + RESPONSE_SIZE - DIGEST, DIGEST))
		return PSK_WRONG_KEY;
	for (unsigned i = 0; i < 4; i++)
		calls[i] = get32(response + 4 + SALT + 4 * i);
	return 0;
}

/* --- the object --- */

static void destroy(void *data)
{
	OPENSSL_cleanse(data, sizeof(struct psk));
	free(data);
}

int psk_create(const uint8_t key[PSK_KEY], const char *name, rxw_security **security)
{
	static const struct rxw_security_class class = {
		.size = sizeof(class),
		.name = "psk",
		.index = PSK_INDEX,
		.broken = PSK_WRONG_KEY,
		.destroy = destroy,
		.conn_create = conn_create,
		.conn_destroy = conn_destroy,
		.room = room,
		.identity = identity,
		.seal = seal,
		.verify = verify,
		.challenge = challenge,
		.respond = respond,
		.check_response = check_response,
	};
	struct psk *psk = calloc(1, sizeof(*psk));
	int r;

	if (!psk)
		return -RXW_ENOMEM;
	memcpy(psk->key, key, PSK_KEY);
	strncpy(psk->name, name, sizeof(psk->name) - 1);
	r = rxw_security_create(&class, psk, security);
	if (r)
		destroy(psk);
	return r;
}
