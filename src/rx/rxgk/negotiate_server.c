/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The negotiation service (7.4.7): GSSNegotiate, a token for a client with a Kerberos ticket for this service;
 * CombineTokens and AFSCombineTokens, a token made of two, which requires both keys.
 */
#include <rxwire/error.h>
#include <rxwire/stub.h>

#include <gssapi/gssapi_ext.h>
#include <krb5.h>
#include <openssl/rand.h>
#include <profile.h>
#include <stdlib.h>
#include <string.h>

#include "common/cancel.h"
#include "common/sized.h"
#include "keys/keys.h"
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

/*
 * Combine the opened tokens `a`, of the user, and `b`. The result is sealed with the newest key of
 * `keys`. 0 or a code; *token is of rxw_secret_alloc(), and `info` describes it.
 */
static int32_t rxw_gk_combine(rxw_keys *keys, uint8_t index, const struct rxw_gk_body *a,
			      const struct rxw_gk_body *b, const struct rxw_gk_list *enctypes,
			      const struct rxw_gk_list *levels, int64_t now, void **token,
			      size_t *length, struct rxw_gk_info *info)
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

static int32_t rxw_gk_serve_combine(rxw_call *call, const void *service)
{
	return serve_combining(call, service, false);
}

static int32_t rxw_gk_serve_afs_combine(rxw_call *call, const void *service)
{
	return serve_combining(call, service, true);
}

#define FLAGS	     (GSS_C_MUTUAL_FLAG | GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG)
#define EXPORTED_MAX RXW_GK_NAME_MAX
#define SKEW_S	     300 /* default clock skew of Kerberos */

/* A negotiation. Buffers of GSSAPI are released at its end. */
struct round {
	struct rxw_gk_start start;
	gss_ctx_id_t context;
	gss_name_t client;
	gss_buffer_desc output, exported, display, mic, wrapped;
	OM_uint32 major, minor, flags, seconds;
};

static void release_round(struct round *r)
{
	OM_uint32 ignored;

	gss_delete_sec_context(&ignored, &r->context, GSS_C_NO_BUFFER);
	gss_release_name(&ignored, &r->client);
	gss_release_buffer(&ignored, &r->output);
	gss_release_buffer(&ignored, &r->exported);
	gss_release_buffer(&ignored, &r->display);
	gss_release_buffer(&ignored, &r->mic);
	gss_release_buffer(&ignored, &r->wrapped);
}

/* Choose parameters that both sides support, in the order of the client, and that we allow. */
static int32_t choose_parameters(const struct rxw_gk_negotiation *n, const struct round *r,
				 struct rxw_gk_body *b)
{
	const struct rxw_rxgk_negotiation_options *o = &n->options;
	int64_t now = o->time(o->time_context), left = r->seconds;

	for (uint32_t i = 0; i < r->start.enctypes.count && !b->enctype; i++)
		b->enctype = rxw_gk_enctype((int32_t)r->start.enctypes.item[i]);
	if (!b->enctype)
		return RXW_RXGK_BADETYPE;
	b->level = RXW_LEVEL_CRYPT + 1;
	for (uint32_t i = 0; i < r->start.levels.count && b->level > RXW_LEVEL_CRYPT; i++)
		if (r->start.levels.item[i] >= o->level_min)
			b->level = r->start.levels.item[i];
	if (b->level > RXW_LEVEL_CRYPT)
		return RXW_RXGK_BADLEVEL;
	/* Without this an expired ticket would give tokens for the duration of the clock skew. */
	if (r->seconds != GSS_C_INDEFINITE)
		left -= n->skew_s;
	if (left <= 0)
		return RXW_RXGK_EXPIRED;
	if (o->lifetime_s && (r->seconds == GSS_C_INDEFINITE || left > o->lifetime_s))
		left = o->lifetime_s;
	b->starts = o->index == RXW_RXGK_INDEX_YFS ? now : 0;
	b->expires = now + left * RXW_RXGK_SECOND;
	b->lifetime = r->start.lifetime && (!o->rekey_s || r->start.lifetime < o->rekey_s)
			      ? r->start.lifetime
			      : o->rekey_s;
	b->bytelife =
		rxw_gk_byte_limit(r->start.bytelife) && (!rxw_gk_byte_limit(o->rekey_bytes) ||
							 rxw_gk_byte_limit(r->start.bytelife) <
								 rxw_gk_byte_limit(o->rekey_bytes))
			? r->start.bytelife
			: o->rekey_bytes;
	return 0;
}

/* Make a token for the client of a complete context, and its ClientInfo; returns the code in it. */
static int32_t make_token(const struct rxw_gk_negotiation *n, struct round *r,
			  const struct rxw_gk_bytes *nonce, struct rxw_gk_info *info, void **token,
			  size_t *length)
{
	const struct rxw_rxgk_negotiation_options *o = &n->options;
	struct rxw_gk_body b = {0};
	const struct rxw_gk_enctype *e;
	uint8_t key[RXW_KEY_MAX];
	int32_t kvno, enctype, code = choose_parameters(n, r, &b);
	size_t key_length;

	if (code)
		return code;
	b.names = 1;
	b.name = (struct rxw_gk_name){.kind = RXW_GK_NAME_GSS,
				      .data = r->exported.value,
				      .data_length = (uint32_t)r->exported.length,
				      .display = r->display.value,
				      .display_length = (uint32_t)r->display.length};
	if (r->exported.length > EXPORTED_MAX || r->display.length > EXPORTED_MAX ||
	    rxw_keys_best(o->keys, RXW_KEY_RXGK, &kvno, &enctype, key, sizeof(key), &key_length))
		return RXW_RXGK_INCONSISTENCY;
	e = rxw_gk_enctype(enctype);
	if (!e || e->key_length != key_length || kvno <= 0 ||
	    !rxw_gk_k0(r->context, &r->start, nonce, b.enctype, b.k0) ||
	    rxw_gk_token_seal(&b, o->index, kvno, e, key, token, length))
		code = RXW_RXGK_INCONSISTENCY;
	info->enctype = b.enctype->id;
	info->level = b.level;
	info->lifetime = b.lifetime;
	info->bytelife = b.bytelife;
	info->expires = b.expires;
	info->token = (struct rxw_gk_bytes){*token, (uint32_t)*length};
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&b, sizeof(b));
	return code;
}

/* The context is complete: sign the request, and wrap the reply. */
static int32_t finish_round(const struct rxw_gk_negotiation *n, struct round *r)
{
	static const size_t start_room = 16 + 8 * (size_t)RXW_GK_LIST_MAX + RXW_GK_NONCE_MAX + 16;
	uint8_t server_nonce[RXW_GK_NONCE], *text;
	struct rxw_gk_info info = {.nonce = {server_nonce, sizeof(server_nonce)}};
	size_t length = 0, room;
	void *token = NULL;
	struct rxw_xdr x;
	gss_buffer_desc plain;
	OM_uint32 minor;
	int confidential = 0;
	int32_t code = RXW_RXGK_INCONSISTENCY;

	if ((r->flags & FLAGS) != FLAGS ||
	    gss_export_name(&minor, r->client, &r->exported) != GSS_S_COMPLETE ||
	    gss_display_name(&minor, r->client, &r->display, NULL) != GSS_S_COMPLETE ||
	    RAND_bytes(server_nonce, sizeof(server_nonce)) != 1)
		return RXW_RXGK_NOTAUTH;
	info.error = make_token(n, r, &info.nonce, &info, &token, &length);
	room = start_room + length + 4096;
	text = rxw_secret_alloc(room);
	if (!text)
		goto out;
	rxw_xdr_writer(&x, text, room);
	rxw_gk_put_start(&x, &r->start);
	plain = (gss_buffer_desc){.value = text, .length = rxw_xdr_used(&x)};
	if (!rxw_xdr_ok(&x) ||
	    gss_get_mic(&minor, r->context, GSS_C_QOP_DEFAULT, &plain, &r->mic) != GSS_S_COMPLETE)
		goto out;
	info.mic = (struct rxw_gk_bytes){r->mic.value, (uint32_t)r->mic.length};
	rxw_xdr_writer(&x, text, room);
	rxw_gk_put_info(&x, &info);
	plain.length = rxw_xdr_used(&x);
	if (rxw_xdr_ok(&x) &&
	    gss_wrap(&minor, r->context, 1, GSS_C_QOP_DEFAULT, &plain, &confidential,
		     &r->wrapped) == GSS_S_COMPLETE &&
	    confidential)
		code = 0;
out:
	rxw_secret_free(text);
	rxw_secret_free(token);
	return code;
}

static int32_t reply_negotiated(rxw_call *call, const struct round *r)
{
	size_t room = r->output.length + r->wrapped.length + 64;
	uint8_t *out = malloc(room);
	struct rxw_xdr x;
	bool sent;

	if (!out)
		return RXW_RPC_SS_MARSHAL;
	rxw_xdr_writer(&x, out, room);
	rxw_gk_put_opaque(&x, r->output.value, r->output.length);
	rxw_gk_put_opaque(&x, NULL, 0);
	rxw_xdr_put_u32(&x, r->major);
	rxw_xdr_put_u32(&x, r->minor);
	rxw_gk_put_opaque(&x, r->wrapped.value, r->wrapped.length);
	sent = rxw_xdr_ok(&x) &&
	       rxw_call_write(call, out, rxw_xdr_used(&x)) == (ssize_t)rxw_xdr_used(&x);
	free(out);
	return sent ? 0 : RXW_RPC_SS_MARSHAL;
}

/*
 * A context must be complete after one message, as with Kerberos, so that the server keeps no state
 * between calls, which unauthenticated clients could exhaust. opaque_in is ignored.
 */
__attribute__((cold))
static int32_t serve_negotiate(rxw_call *call, const void *service)
{
	const struct rxw_gk_negotiation *to = service;
	struct rxw_gk_bytes token = {0}, opaque = {0};
	struct round r = {0};
	gss_buffer_desc input;
	struct rxw_xdr x;
	size_t size;
	uint8_t *in = rxw_gk_read_all(call, RXW_GK_REQUEST_MAX, &size);
	int32_t code = 0;

	if (!in)
		return RXW_RPC_SS_UNMARSHAL;
	rxw_xdr_reader(&x, in, size);
	rxw_gk_get_start(&x, &r.start);
	rxw_gk_get_bytes(&x, &token, RXW_GK_REQUEST_MAX);
	rxw_gk_get_bytes(&x, &opaque, RXW_GK_REQUEST_MAX);
	if (!rxw_xdr_ok(&x)) {
		rxw_secret_free(in);
		return RXW_RPC_SS_UNMARSHAL;
	}
	input = (gss_buffer_desc){.value = (void *)token.data, .length = token.length};
	r.major = gss_accept_sec_context(&r.minor, &r.context, to->cred, &input,
					 GSS_C_NO_CHANNEL_BINDINGS, &r.client, NULL, &r.output,
					 &r.flags, &r.seconds, NULL);
	if (r.major == GSS_S_CONTINUE_NEEDED)
		r.major = GSS_S_UNAVAILABLE;
	if (r.major == GSS_S_COMPLETE)
		code = finish_round(to, &r);
	if (code)
		goto out;
	code = reply_negotiated(call, &r);
out:
	release_round(&r);
	rxw_secret_free(in);
	return code;
}

static const struct rxw_rpc_entry entries[] = {
	{RXW_GK_NEGOTIATE, 0, serve_negotiate},
	{RXW_GK_COMBINE, 1, rxw_gk_serve_combine},
	{RXW_GK_AFS_COMBINE, 2, rxw_gk_serve_afs_combine},
};

static const struct rxw_rpc_table table = {
	.interface = &rxw_gk_interface, .entries = entries, .count = 3};

static int32_t serve_negotiation(rxw_call *call, void *context)
{
	struct rxw_gk_negotiation *n = context;

	return rxw_rpc_serve(call, &table, &n->base, n);
}

/* The credentials of the service, from the given keytab or the default one. */
static OM_uint32 acquire_server_cred(const struct rxw_rxgk_negotiation_options *o,
				     gss_cred_id_t *cred, OM_uint32 *minor)
{
	gss_key_value_element_desc element = {.key = "keytab", .value = o->keytab};
	gss_key_value_set_desc store = {.count = o->keytab ? 1 : 0, .elements = &element};
	gss_buffer_desc text = {.value = (void *)o->service,
				.length = o->service ? strlen(o->service) : 0};
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 major = GSS_S_COMPLETE, ignored;

	if (o->service)
		major = gss_import_name(
			minor, &text,
			strchr(o->service, '/') ? GSS_C_NO_OID : GSS_C_NT_HOSTBASED_SERVICE, &name);
	if (major == GSS_S_COMPLETE)
		major = gss_acquire_cred_from(minor, name, GSS_C_INDEFINITE, GSS_C_NO_OID_SET,
					      GSS_C_ACCEPT, o->keytab ? &store : NULL, cred, NULL,
					      NULL);
	gss_release_name(&ignored, &name);
	return major;
}

/* The clock skew of the configuration of Kerberos. */
static int64_t read_skew(void)
{
	profile_t profile;
	krb5_context context;
	int skew = SKEW_S;

	if (krb5_init_context(&context))
		return skew;
	if (krb5_get_profile(context, &profile) == 0) {
		profile_get_integer(profile, "libdefaults", "clockskew", NULL, SKEW_S, &skew);
		profile_release(profile);
	}
	krb5_free_context(context);
	return skew;
}

__attribute__((cold)) int
rxw_rxgk_negotiation_create(const struct rxw_rxgk_negotiation_options *given,
			    rxw_rxgk_negotiation **negotiation, char *error, size_t room)
{
	struct rxw_rxgk_negotiation_options known = {0}, *options = &known;
	struct rxw_gk_negotiation *n;
	OM_uint32 major, minor = 0;
	NOT_CANCELLED;

	if (error && room)
		error[0] = 0;
	if (!negotiation || !given || !sized_read(&known, sizeof(known), given) ||
	    !options->keys ||
	    options->level_min > RXW_LEVEL_CRYPT ||
	    (options->index && !rxw_gk_index_ok(options->index)))
		return -RXW_EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -RXW_ENOMEM;
	n->options = *options;
	n->skew_s = read_skew();
	major = acquire_server_cred(options, &n->cred, &minor);
	if (major != GSS_S_COMPLETE) {
		if (error)
			rxw_gk_gss_text(major, minor, error, room);
		free(n);
		return -RXW_ENOKEY;
	}
	n->options.keytab = n->options.service = NULL; /* owned by the caller */
	if (!n->options.index)
		n->options.index = RXW_RXGK_INDEX;
	if (!n->options.time)
		n->options.time = rxw_gk_clock;
	rxw_keys_ref(n->options.keys);
	*negotiation = n;
	return 0;
}

void rxw_rxgk_negotiation_destroy(rxw_rxgk_negotiation *negotiation)
{
	OM_uint32 minor;

	if (!negotiation)
		return;
	gss_release_cred(&minor, &negotiation->cred);
	rxw_keys_unref(negotiation->options.keys);
	free(negotiation);
}

int rxw_rxgk_negotiation_add(rxw_rxgk_negotiation *negotiation, rxw_endpoint *endpoint,
			     rxw_service **service)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = RXW_RXGK_NEGOTIATION_SERVICE,
					.name = "rxgk",
					.handler = serve_negotiation,
					.context = negotiation};
	rxw_service *made;

	if (!negotiation || !endpoint)
		return -RXW_EINVAL;
	return rxw_service_add(endpoint, &o, service ? service : &made);
}
