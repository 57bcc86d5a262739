/* SPDX-License-Identifier: BSD-2-Clause */
/* CombineTokens, AFSCombineTokens: a token made of two; using it requires both keys. */
#include <stdlib.h>
#include <string.h>

#include <rxwire/error.h>

#include "keys/keys.h"
#include "keys/secret.h"
#include "rxgk/negotiate.h"

static uint32_t lesser_nonzero(uint32_t a, uint32_t b)
{
	return !a ? b : !b || a < b ? a : b;
}

/* The stricter of two byte limits, in their encoding. */
static uint32_t stricter_limit(uint32_t a, uint32_t b)
{
	uint64_t la = rxw_gk_byte_limit(a), lb = rxw_gk_byte_limit(b);

	return !la ? b : !lb || la < lb ? a : b;
}

/* Whether this token may be combined: it must expire, and have a name. */
static int32_t check_combinable(const struct rxw_gk_body *t, int64_t now)
{
	if (!t->names || !t->expires)
		return RXW_RXGK_BAD_TOKEN;
	return now > t->expires ? RXW_RXGK_EXPIRED : 0;
}

/* The client's first choice that we support and that is at least the level of both tokens. */
static int32_t choose_combined(const struct rxw_gk_body *a, const struct rxw_gk_body *b,
			       const struct rxw_gk_list *enctypes, const struct rxw_gk_list *levels,
			       struct rxw_gk_body *out)
{
	uint32_t least = a->level > b->level ? a->level : b->level;

	for (uint32_t i = 0; i < enctypes->count && !out->enctype; i++)
		out->enctype = rxw_gk_enctype((int32_t)enctypes->item[i]);
	if (!out->enctype)
		return RXW_RXGK_BADETYPE;
	for (uint32_t i = 0; i < levels->count; i++)
		if (levels->item[i] >= least && levels->item[i] <= RXW_LEVEL_CRYPT) {
			out->level = levels->item[i];
			return 0;
		}
	return RXW_RXGK_BADLEVEL;
}

int32_t rxw_gk_combine(rxw_keys *keys, uint8_t index, const struct rxw_gk_body *a,
		       const struct rxw_gk_body *b, const struct rxw_gk_list *enctypes,
		       const struct rxw_gk_list *levels, int64_t now, void **token, size_t *length,
		       struct rxw_gk_info *info)
{
	struct rxw_gk_body n = {0};
	const struct rxw_gk_enctype *e;
	uint8_t key[RXW_KEY_MAX];
	int32_t kvno, enctype, code = check_combinable(a, now);
	size_t key_length;

	if (code)
		return code;
	code = check_combinable(b, now);
	if (code)
		return code;
	code = choose_combined(a, b, enctypes, levels, &n);
	if (code)
		return code;
	n.lifetime = lesser_nonzero(a->lifetime, b->lifetime);
	n.bytelife = stricter_limit(a->bytelife, b->bytelife);
	n.starts = a->starts > b->starts ? a->starts : b->starts;
	n.expires = a->expires < b->expires ? a->expires : b->expires;
	/*
	 * Only the user's name: servers refuse tokens with two. The consent of the cache manager is
	 * in the key, which depends on both.
	 */
	n.names = 1;
	n.name = a->name;
	if (rxw_keys_best(keys, RXW_KEY_RXGK, &kvno, &enctype, key, sizeof(key), &key_length))
		return RXW_RXGK_BADKEYNO;
	e = rxw_gk_enctype(enctype);
	code = RXW_RXGK_INCONSISTENCY;
	if (!e || key_length != e->key_length || kvno <= 0 ||
	    rxw_gk_combine_keys(a->enctype, a->k0, b->enctype, b->k0, n.enctype, n.k0) ||
	    rxw_gk_token_seal(&n, index, kvno, e, key, token, length))
		goto out;
	*info = (struct rxw_gk_info){.enctype = n.enctype->id,
				     .level = n.level,
				     .lifetime = n.lifetime,
				     .bytelife = n.bytelife,
				     .expires = n.expires};
	code = 0;
out:
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&n, sizeof(n));
	return code;
}

/* The arguments of both procedures. */
struct request {
	uint8_t *memory;
	struct rxw_gk_bytes token[2];
	struct rxw_gk_list enctypes, levels;
	uint8_t uuid[16];
};

/* An afsUUID: eleven words, which hold 4, 2, 2 and eight times 1 significant bytes. */
static void get_afs_uuid(struct rxw_xdr *x, uint8_t out[16])
{
	const uint8_t *p = rxw_xdr_take(x, RXW_GK_UUID);

	if (!p)
		return;
	memcpy(out, p, 4);
	memcpy(out + 4, p + 6, 2);
	memcpy(out + 6, p + 10, 2);
	for (int i = 0; i < 8; i++)
		out[8 + i] = p[15 + 4 * i];
}

static int32_t read_combine_request(rxw_call *call, bool afs, struct request *q)
{
	struct rxw_xdr x;
	size_t size;

	memset(q, 0, sizeof(*q));
	q->memory = rxw_gk_read_all(call, RXW_GK_REQUEST_MAX, &size);
	if (!q->memory)
		return RXW_RPC_SS_UNMARSHAL;
	rxw_xdr_reader(&x, q->memory, size);
	rxw_gk_get_bytes(&x, &q->token[0], RXW_GK_TOKEN_MAX);
	rxw_gk_get_bytes(&x, &q->token[1], RXW_GK_TOKEN_MAX);
	rxw_gk_get_list(&x, &q->enctypes);
	rxw_gk_get_list(&x, &q->levels);
	if (afs)
		get_afs_uuid(&x, q->uuid);
	return rxw_xdr_ok(&x) ? 0 : RXW_RPC_SS_UNMARSHAL;
}

static int32_t reply_combined(rxw_call *call, const void *token, size_t length,
			      const struct rxw_gk_info *i)
{
	size_t room = length + 64;
	uint8_t *out = rxw_secret_alloc(room);
	struct rxw_xdr x;
	bool sent;

	if (!out)
		return RXW_RPC_SS_MARSHAL;
	rxw_xdr_writer(&x, out, room);
	rxw_gk_put_opaque(&x, token, length);
	rxw_xdr_put_u32(&x, (uint32_t)i->enctype);
	rxw_xdr_put_u32(&x, i->level);
	rxw_xdr_put_u32(&x, i->lifetime);
	rxw_xdr_put_u32(&x, i->bytelife);
	rxw_xdr_put_u64(&x, (uint64_t)i->expires);
	sent = rxw_xdr_ok(&x) &&
	       rxw_call_write(call, out, rxw_xdr_used(&x)) == (ssize_t)rxw_xdr_used(&x);
	rxw_secret_free(out);
	return sent ? 0 : RXW_RPC_SS_MARSHAL;
}

static int32_t serve_combining(rxw_call *call, const struct rxw_gk_negotiation *to, bool afs)
{
	const struct rxw_rxgk_negotiation_options *o = &to->options;
	rxw_keys *keys = o->keys;
	struct request q;
	struct rxw_gk_body body[2] = {0};
	struct rxw_gk_info info;
	void *token = NULL;
	size_t length = 0;
	int32_t code = read_combine_request(call, afs, &q);

	if (code)
		goto out;
	/* The tokens are opened in place, within the request. */
	for (int i = 0; i < 2; i++) {
		code = rxw_gk_token_open(o->keys, o->index, (uint8_t *)q.token[i].data,
					 q.token[i].length, &body[i]);
		if (code)
			goto out;
	}
	if (afs && o->server_keys)
		keys = o->server_keys(o->server_keys_context, q.uuid);
	code = RXW_RXGK_BADKEYNO;
	if (!keys)
		goto out;
	code = rxw_gk_combine(keys, o->index, &body[0], &body[1], &q.enctypes, &q.levels,
			      o->time(o->time_context), &token, &length, &info);
	if (code)
		goto out;
	code = reply_combined(call, token, length, &info);
out:
	explicit_bzero(body, sizeof(body));
	rxw_secret_free(token);
	rxw_secret_free(q.memory);
	return code;
}

int32_t rxw_gk_serve_combine(rxw_call *call, const void *service)
{
	return serve_combining(call, service, false);
}

int32_t rxw_gk_serve_afs_combine(rxw_call *call, const void *service)
{
	return serve_combining(call, service, true);
}
