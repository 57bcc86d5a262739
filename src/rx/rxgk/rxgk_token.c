/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens: their contents, sealing and opening, and making one with a service key. */
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/error.h>
#include <rxwire/xdr.h>

#include "common/cancel.h"
#include "keys/keys.h"
#include "rxgk/rxgk_conn.h"
#include "rxgk/rxgk_token.h"

static int32_t parse_names(struct rxw_xdr *x, struct rxw_gk_body *body)
{
	uint32_t count;

	/* A name has at least three words. */
	if (!rxw_xdr_get_u32(x, &count) || count > rxw_xdr_left(x) / 12)
		return RXW_RPC_SS_UNMARSHAL;
	for (uint32_t i = 0; i < count; i++) {
		struct rxw_gk_name *n = &body->name;

		if (!rxw_xdr_get_i32(x, &n->kind) ||
		    !rxw_gk_get_opaque(x, &n->data, &n->data_length, RXW_GK_NAME_MAX) ||
		    !rxw_gk_get_opaque(x, &n->display, &n->display_length, RXW_GK_NAME_MAX))
			return RXW_RPC_SS_UNMARSHAL;
	}
	/* No bytes may remain: a token of another form must not be taken for one without a name. */
	if (rxw_xdr_left(x))
		return RXW_RPC_SS_UNMARSHAL;
	body->names = count;
	if (count > 1)
		return RXW_RXGK_INCONSISTENCY;
	if (count && body->name.kind != RXW_GK_NAME_KRB4 && body->name.kind != RXW_GK_NAME_GSS)
		return RXW_RXGK_INCONSISTENCY;
	return 0;
}

__attribute__((cold)) int32_t rxw_gk_body_parse(const uint8_t *text, size_t length, uint8_t index,
						struct rxw_gk_body *body)
{
	struct rxw_xdr x;
	const uint8_t *k0 = NULL;
	uint32_t k0_length = 0;
	int32_t enctype = 0, code;

	memset(body, 0, sizeof(*body));
	rxw_xdr_reader(&x, text, length);
	rxw_xdr_get_i32(&x, &enctype);
	rxw_gk_get_opaque(&x, &k0, &k0_length, 64);
	rxw_xdr_get_u32(&x, &body->level);
	if (index == RXW_RXGK_INDEX_YFS)
		rxw_xdr_get_i64(&x, &body->starts);
	rxw_xdr_get_u32(&x, &body->lifetime);
	rxw_xdr_get_u32(&x, &body->bytelife);
	rxw_xdr_get_i64(&x, &body->expires);
	if (!rxw_xdr_ok(&x))
		return RXW_RPC_SS_UNMARSHAL;
	code = parse_names(&x, body);
	if (code)
		return code;
	body->enctype = rxw_gk_enctype(enctype);
	if (!body->enctype)
		return RXW_RXGK_BADETYPE;
	if (k0_length != body->enctype->key_length)
		return RXW_RXGK_BAD_TOKEN;
	if (body->level > RXW_LEVEL_CRYPT)
		return RXW_RXGK_BADLEVEL;
	memcpy(body->k0, k0, k0_length);
	return 0;
}

__attribute__((cold)) int32_t rxw_gk_token_open(rxw_keys *keys, uint8_t index, uint8_t *token,
						size_t length, struct rxw_gk_body *body)
{
	struct rxw_xdr x;
	const struct rxw_gk_enctype *e;
	const uint8_t *text = NULL;
	uint32_t size = 0;
	int32_t kvno = 0, enctype = 0;
	uint8_t key[RXW_KEY_MAX];
	size_t key_length;
	int r;

	memset(body, 0, sizeof(*body));
	rxw_xdr_reader(&x, token, length);
	rxw_xdr_get_i32(&x, &kvno);
	rxw_xdr_get_i32(&x, &enctype);
	rxw_gk_get_opaque(&x, &text, &size, RXW_GK_TOKEN_MAX);
	if (!rxw_xdr_ok(&x))
		return RXW_RPC_SS_UNMARSHAL;
	if (kvno <= 0 || enctype <= 0)
		return RXW_RXGK_BAD_TOKEN;
	e = rxw_gk_enctype(enctype);
	if (!e)
		return RXW_RXGK_BADETYPE;
	r = rxw_keys_find(keys, RXW_KEY_RXGK, kvno, enctype, key, sizeof(key), &key_length);
	if (r || key_length != e->key_length)
		return RXW_RXGK_BADKEYNO;
	r = rxw_gk_decrypt_once(e, key, RXW_GK_SERVER_ENC_TOKEN, (uint8_t *)text, size);
	explicit_bzero(key, sizeof(key));
	if (r)
		return RXW_RXGK_SEALED_INCON;
	return rxw_gk_body_parse(text + RXW_GK_CONFOUNDER, size - RXW_GK_CONFOUNDER - e->mac_length,
				 index, body);
}

static size_t write_body(const struct rxw_gk_body *b, uint8_t index, uint8_t *out, size_t room)
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, out, room);
	rxw_xdr_put_u32(&x, (uint32_t)b->enctype->id);
	rxw_gk_put_opaque(&x, b->k0, b->enctype->key_length);
	rxw_xdr_put_u32(&x, b->level);
	if (index == RXW_RXGK_INDEX_YFS)
		rxw_xdr_put_u64(&x, (uint64_t)b->starts);
	rxw_xdr_put_u32(&x, b->lifetime);
	rxw_xdr_put_u32(&x, b->bytelife);
	rxw_xdr_put_u64(&x, (uint64_t)b->expires);
	rxw_xdr_put_u32(&x, b->names);
	if (b->names) {
		rxw_xdr_put_u32(&x, (uint32_t)b->name.kind);
		rxw_gk_put_opaque(&x, b->name.data, b->name.data_length);
		rxw_gk_put_opaque(&x, b->name.display, b->name.display_length);
	}
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

__attribute__((cold)) int rxw_gk_token_seal(const struct rxw_gk_body *body, uint8_t index,
					    int32_t kvno, const struct rxw_gk_enctype *enctype,
					    const uint8_t *key, void **token, size_t *length)
{
	const size_t room = 12 + RXW_GK_CONFOUNDER + RXW_GK_BODY_MAX + RXW_GK_MAC_MAX + 4;
	uint8_t *out = rxw_secret_alloc(room), *text = out + 12;
	size_t size;
	int r;

	if (!out)
		return -RXW_ENOMEM;
	r = -RXW_EINVAL;
	if (body->names && (body->name.data_length > RXW_GK_NAME_MAX ||
			    body->name.display_length > RXW_GK_NAME_MAX))
		goto fail;
	r = -RXW_ESYS;
	if (RAND_bytes(text, RXW_GK_CONFOUNDER) != 1)
		goto fail;
	size = RXW_GK_CONFOUNDER +
	       write_body(body, index, text + RXW_GK_CONFOUNDER, RXW_GK_BODY_MAX);
	r = rxw_gk_encrypt_once(enctype, key, RXW_GK_SERVER_ENC_TOKEN, text, size);
	if (r)
		goto fail;
	size += enctype->mac_length;
	rxw_xdr_store32(out, (uint32_t)kvno);
	rxw_xdr_store32(out + 4, (uint32_t)enctype->id);
	rxw_xdr_store32(out + 8, (uint32_t)size);
	memset(text + size, 0, 3);
	*token = out;
	*length = 12 + ((size + 3) & ~(size_t)3);
	return 0;
fail:
	rxw_secret_free(out);
	return r;
}

/* 04 01, length and DER of the object id of Kerberos, length of the name, the name. */
static bool kerberos_name(const struct rxw_gk_name *n, const uint8_t **text, size_t *length)
{
	static const uint8_t head[] = {0x04, 0x01, 0x00, 0x0b, 0x06, 0x09, 0x2a, 0x86,
				       0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02};

	if (n->kind != RXW_GK_NAME_GSS || n->data_length < sizeof(head) + 4 ||
	    memcmp(n->data, head, sizeof(head)))
		return false;
	*length = rxw_xdr_load32(n->data + sizeof(head));
	*text = n->data + sizeof(head) + 4;
	return *length == n->data_length - sizeof(head) - 4;
}

bool rxw_gk_name_text(const struct rxw_gk_name *name, char *out, size_t room)
{
	const uint8_t *text = name->display;
	size_t length = name->display_length;

	if (name->kind == RXW_GK_NAME_KRB4) {
		text = name->data;
		length = name->data_length;
	} else if (!kerberos_name(name, &text, &length)) {
		text = name->display;
		length = name->display_length;
	}
	if (!length || length >= room)
		return false;
	for (size_t i = 0; i < length; i++)
		if (text[i] < 0x20 || text[i] == 0x7f)
			return false;
	memcpy(out, text, length);
	out[length] = 0;
	return true;
}

void rxw_rxgk_token_free(struct rxw_rxgk_token *token)
{
	if (!token)
		return;
	rxw_secret_free(token->token);
	token->token = NULL;
	token->token_length = 0;
	explicit_bzero(token->key, sizeof(token->key));
}

/* Encode a Kerberos principal as an exported name; its size, 0 if it is too long. */
static size_t export_name(const char *name, uint8_t *out, size_t room)
{
	static const uint8_t head[] = {0x04, 0x01, 0x00, 0x0b, 0x06, 0x09, 0x2a, 0x86,
				       0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02};
	size_t length = strlen(name);

	if (!length || length > room - sizeof(head) - 4)
		return 0;
	memcpy(out, head, sizeof(head));
	rxw_xdr_store32(out + sizeof(head), (uint32_t)length);
	memcpy(out + sizeof(head) + 4, name, length);
	return sizeof(head) + 4 + length;
}

__attribute__((cold)) int rxw_rxgk_print_token(rxw_keys *keys,
					       const struct rxw_rxgk_print_options *options,
					       struct rxw_rxgk_token *token)
{
	uint8_t key[RXW_KEY_MAX], name[RXW_GK_NAME_MAX];
	uint8_t index;
	const struct rxw_gk_enctype *e;
	struct rxw_gk_body b = {0};
	size_t length;
	int32_t kvno, enctype;
	int64_t now;
	int r;
	NOT_CANCELLED;

	index = options->index ? options->index : RXW_RXGK_INDEX;
	if (options->level > RXW_LEVEL_CRYPT || !rxw_gk_index_ok(index))
		return -RXW_EINVAL;
	r = rxw_keys_best(keys, RXW_KEY_RXGK, &kvno, &enctype, key, sizeof(key), &length);
	if (r)
		return r;
	e = rxw_gk_enctype(enctype);
	b.enctype = options->enctype ? rxw_gk_enctype(options->enctype) : e;
	if (!e || !b.enctype || length != e->key_length || kvno <= 0) {
		r = -RXW_ENOTSUP;
		goto out;
	}
	now = rxw_gk_clock(NULL);
	b.level = options->level;
	b.lifetime = options->rekey_s;
	b.bytelife = options->rekey_bytes;
	b.starts = index == RXW_RXGK_INDEX_YFS ? now : 0;
	b.expires = options->lifetime_s ? now + options->lifetime_s * RXW_RXGK_SECOND : 0;
	if (options->name) {
		b.names = 1;
		b.name.kind = RXW_GK_NAME_GSS;
		b.name.data = name;
		b.name.data_length = (uint32_t)export_name(options->name, name, sizeof(name));
		b.name.display = (const uint8_t *)options->name;
		b.name.display_length = (uint32_t)strlen(options->name);
		if (!b.name.data_length) {
			r = -RXW_EINVAL;
			goto out;
		}
	}
	r = RAND_bytes(b.k0, b.enctype->key_length) == 1 ? 0 : -RXW_ESYS;
	if (r)
		goto out;
	*token = (struct rxw_rxgk_token){.enctype = b.enctype->id,
					 .level = b.level,
					 .lifetime = b.lifetime,
					 .bytelife = b.bytelife,
					 .expires = b.expires};
	r = rxw_gk_token_seal(&b, index, kvno, e, key, &token->token, &token->token_length);
	if (!r)
		memcpy(token->key, b.k0, b.enctype->key_length);
out:
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&b, sizeof(b));
	return r;
}
