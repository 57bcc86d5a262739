/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the parsers of rxgk. The first byte selects the format of the rest: a token's body,
 * a token, a RESPONSE, and so on. Where a key would reject mutations, the target seals the rest
 * with it.
 */

#include "fuzz.h"

#include <string.h>

#include <rxwire/error.h>

#include "rxgk/negotiate.h"

const char fuzz_name[] = "rxgk";
const size_t fuzz_max = 600;
const unsigned fuzz_cost = 40;

enum kind { BODY, BODY_YFS, TOKEN, SEALED_BODY, RESPONSE, AUTHENTICATOR, PACKET, SEALED_PACKET, START, INFO,
	    KINDS };

#define MOST 4096
#define K0   "fedcba9876543210"

static const uint8_t service_key[32] = {1, 2, 3};
static const uint8_t k0[RXW_GK_KEY_MAX] = K0;
static rxw_keys *keys;
static uint8_t nonce[RXW_GK_NONCE];

static int64_t now(void *context)
{
	(void)context;
	return RXW_RXGK_SECOND;
}

static int zeros(void *context, void *out, size_t size)
{
	(void)context;
	memset(out, 0, size);
	return 0;
}

static struct rxw_gk_conn *server(void)
{
	struct rxw_rxgk_server_options o = {.size = sizeof(o), .time = now};
	struct rxw_security_id id = {.epoch = 7, .cid = 8, .index = 4};
	struct rxw_gk_class *k;
	void *conn;

	if (!keys) {
		FUZZ_CHECK(!rxw_keys_create(&keys));
		FUZZ_CHECK(!rxw_keys_add(keys, RXW_KEY_RXGK, 5, 18, service_key, 32));
	}
	o.keys = keys;
	FUZZ_CHECK(!rxw_gk_class_server(&o, &k));
	k->random = zeros;
	FUZZ_CHECK(!rxw_gk_table.conn_create(k, &id, &conn));
	FUZZ_CHECK(rxw_gk_table.challenge(conn, nonce, sizeof(nonce)) == sizeof(nonce));
	return conn;
}

static void done(struct rxw_gk_conn *c)
{
	void *k = (void *)c->klass;

	rxw_gk_table.conn_destroy(c);
	rxw_gk_table.destroy(k);
}

/* Accepted values satisfy 7.4.2. */
static void judge_body(int32_t code, const struct rxw_gk_body *b)
{
	char name[RXW_GK_NAME_ROOM];

	if (code)
		return;
	FUZZ_CHECK(b->enctype && b->level <= 2 && b->names <= 1);
	if (!b->names)
		return;
	FUZZ_CHECK(b->name.kind == 1 || b->name.kind == 2);
	FUZZ_CHECK(b->name.data_length <= RXW_GK_NAME_MAX && b->name.display_length <= RXW_GK_NAME_MAX);
	if (rxw_gk_name_text(&b->name, name, sizeof(name)))
		FUZZ_CHECK(strlen(name) > 0);
}

static size_t container(uint8_t *out, const uint8_t *body, size_t size)
{
	size_t sealed = 16 + size + 12;

	memset(out, 0, 12 + 16);
	memcpy(out + 28, body, size);
	FUZZ_CHECK(!rxw_gk_encrypt_once(rxw_gk_enctype(18), service_key, RXW_GK_SERVER_ENC_TOKEN, out + 12,
					16 + size));
	rxw_xdr_store32(out, 5);
	rxw_xdr_store32(out + 4, 18);
	rxw_xdr_store32(out + 8, (uint32_t)sealed);
	memset(out + 12 + sealed, 0, 3);
	return 12 + ((sealed + 3) & ~(size_t)3);
}

static void try_token(enum kind kind, const uint8_t *data, size_t size)
{
	uint8_t token[MOST];
	struct rxw_gk_body b;

	if (kind == SEALED_BODY)
		size = container(token, data, size);
	else
		memcpy(token, data, size);
	judge_body(rxw_gk_token_open(keys, 4, token, size, &b), &b);
}

/* A RESPONSE with a valid token, whose authenticator is `text` under the right key. */
static size_t response(uint8_t *out, const uint8_t *text, size_t size)
{
	static const struct rxw_gk_enctype *e;
	uint8_t body[128], token[512], auth[MOST], tk[RXW_GK_KEY_MAX];
	struct rxw_xdr x;
	size_t length;

	e = rxw_gk_enctype(17);
	rxw_xdr_writer(&x, body, sizeof(body));
	rxw_xdr_put_u32(&x, 17);
	rxw_gk_put_opaque(&x, k0, 16);
	rxw_xdr_put_u32(&x, 2);
	rxw_xdr_put_u64(&x, 0); /* lifetime, bytelife */
	rxw_xdr_put_u64(&x, 0);
	rxw_xdr_put_u32(&x, 0);
	length = container(token, body, rxw_xdr_used(&x));
	memset(auth, 0, 16);
	memcpy(auth + 16, text, size);
	FUZZ_CHECK(!rxw_gk_transport_key(e, k0, 7, 8, 9, 0, tk));
	FUZZ_CHECK(!rxw_gk_encrypt_once(e, tk, RXW_GK_CLIENT_ENC_RESPONSE, auth, 16 + size));
	rxw_xdr_writer(&x, out, MOST);
	rxw_xdr_put_u64(&x, 9);
	rxw_gk_put_opaque(&x, token, length);
	rxw_gk_put_opaque(&x, auth, 16 + size + 12);
	FUZZ_CHECK(rxw_xdr_ok(&x));
	return rxw_xdr_used(&x);
}

/* The RESPONSE is valid exactly if this is its text. */
static size_t right_text(uint8_t out[64])
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, out, 64);
	memcpy(rxw_xdr_take(&x, 20), nonce, 20);
	rxw_xdr_put_u32(&x, 0);
	rxw_xdr_put_u32(&x, 2);
	rxw_xdr_put_u32(&x, 7);
	rxw_xdr_put_u32(&x, 8);
	rxw_xdr_put_u32(&x, 4);
	return rxw_xdr_used(&x);
}

static void try_response(enum kind kind, const uint8_t *data, size_t size)
{
	struct rxw_gk_conn *c = server();
	uint8_t out[MOST], right[64];
	uint32_t calls[4] = {0};
	size_t head = right_text(right), length = size;
	int32_t code;

	memcpy(out, data, size);
	if (kind == AUTHENTICATOR)
		length = response(out, data, size);
	code = rxw_gk_table.check_response(c, out, length, 0, calls);
	if (kind == RESPONSE)
		FUZZ_CHECK(code != 0);
	else if (!code)
		FUZZ_CHECK(size >= head + 16 &&
			   (!memcmp(data, right, 24) || rxw_xdr_load32(data + 20)));
	done(c);
}

static void try_packet(enum kind kind, const uint8_t *data, size_t size)
{
	struct rxw_gk_conn *c = server();
	uint8_t out[MOST], right[80], tk[RXW_GK_KEY_MAX];
	struct rxw_security_packet p = {.data = out, .call = 1, .seq = 1, .result = -1};
	uint32_t calls[4];
	size_t length = right_text(right);

	memset(right + length, 0, 16);
	length = response(out, right, length + 16);
	FUZZ_CHECK(!rxw_gk_table.check_response(c, out, length, 0, calls));
	if (kind == PACKET) {
		memcpy(out, data, size);
		p.length = (uint32_t)size;
	} else {
		FUZZ_CHECK(!rxw_gk_transport_key(rxw_gk_enctype(17), k0, 7, 8, 9, 0, tk));
		memset(out, 0, 16);
		memcpy(out + 16, data, size);
		FUZZ_CHECK(!rxw_gk_encrypt_once(rxw_gk_enctype(17), tk, RXW_GK_CLIENT_ENC_PACKET, out,
						16 + size));
		p.length = (uint32_t)(16 + size + 12);
	}
	length = p.length;
	rxw_gk_table.verify(c, &p, 1);
	FUZZ_CHECK(p.result == 0 || p.result == -1);
	if (!p.result)
		FUZZ_CHECK(kind == SEALED_PACKET && 40 + p.length + 12 <= length);
	done(c);
}

/* Decoded values are encoded again, and decode to the same values. */
static void try_start(const uint8_t *data, size_t size)
{
	struct rxw_gk_start a, b;
	uint8_t one[MOST], two[MOST];
	struct rxw_xdr x, y;

	memset(&a, 0, sizeof(a));
	rxw_xdr_reader(&x, data, size);
	if (!rxw_gk_get_start(&x, &a))
		return;
	rxw_xdr_writer(&y, one, sizeof(one));
	FUZZ_CHECK(rxw_gk_put_start(&y, &a));
	FUZZ_CHECK(rxw_xdr_used(&y) == rxw_xdr_used(&x));
	rxw_xdr_reader(&x, one, rxw_xdr_used(&y));
	FUZZ_CHECK(rxw_gk_get_start(&x, &b));
	rxw_xdr_writer(&y, two, sizeof(two));
	FUZZ_CHECK(rxw_gk_put_start(&y, &b));
	FUZZ_CHECK(!memcmp(one, two, rxw_xdr_used(&y)));
}

static void try_info(const uint8_t *data, size_t size)
{
	struct rxw_gk_info i;
	uint8_t out[MOST];
	struct rxw_xdr x, y;

	memset(&i, 0, sizeof(i));
	rxw_xdr_reader(&x, data, size);
	if (!rxw_gk_get_info(&x, &i))
		return;
	rxw_xdr_writer(&y, out, sizeof(out));
	FUZZ_CHECK(rxw_gk_put_info(&y, &i));
	FUZZ_CHECK(rxw_xdr_used(&y) == rxw_xdr_used(&x));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rxw_gk_body b;
	enum kind kind;

	if (!size || size > fuzz_max)
		return 0;
	kind = (enum kind)(data[0] % KINDS);
	data++;
	size--;
	if (!keys)
		done(server());
	switch (kind) {
	case BODY:
	case BODY_YFS:
		judge_body(rxw_gk_body_parse(data, size, kind == BODY ? 4 : 6, &b), &b);
		break;
	case TOKEN:
	case SEALED_BODY:
		try_token(kind, data, size);
		break;
	case RESPONSE:
	case AUTHENTICATOR:
		try_response(kind, data, size);
		break;
	case PACKET:
	case SEALED_PACKET:
		try_packet(kind, data, size);
		break;
	case START:
		try_start(data, size);
		break;
	default:
		try_info(data, size);
		break;
	}
	return 0;
}
