/* SPDX-License-Identifier: BSD-2-Clause */
/* The negotiation service: functions of both sides. */
#include <gssapi/gssapi_ext.h>
#include <stdlib.h>
#include <string.h>

#include "keys/keys.h"
#include "rxgk/negotiate.h"

static const struct rxw_rpc_function functions[] = {
	{RXW_GK_NEGOTIATE, "RXGK_GSSNegotiate"},
	{RXW_GK_COMBINE, "RXGK_CombineTokens"},
	{RXW_GK_AFS_COMBINE, "RXGK_AFSCombineTokens"},
};

const struct rxw_rpc_interface rxw_gk_interface = {
	.name = "RXGK_", .count = 3, .functions = functions};

__attribute__((cold)) bool rxw_gk_get_list(struct rxw_xdr *x, struct rxw_gk_list *l)
{
	if (!rxw_xdr_get_u32(x, &l->count))
		return false;
	if (l->count > RXW_GK_LIST_MAX) {
		l->count = 0;
		return rxw_xdr_fail(x);
	}
	for (uint32_t i = 0; i < l->count; i++)
		if (!rxw_xdr_get_u32(x, &l->item[i]))
			return false;
	return true;
}

__attribute__((cold)) bool rxw_gk_put_list(struct rxw_xdr *x, const struct rxw_gk_list *l)
{
	rxw_xdr_put_u32(x, l->count);
	for (uint32_t i = 0; i < l->count; i++)
		rxw_xdr_put_u32(x, l->item[i]);
	return rxw_xdr_ok(x);
}

bool rxw_gk_get_bytes(struct rxw_xdr *x, struct rxw_gk_bytes *b, uint32_t max)
{
	return rxw_gk_get_opaque(x, &b->data, &b->length, max);
}

__attribute__((cold)) bool rxw_gk_get_start(struct rxw_xdr *x, struct rxw_gk_start *s)
{
	return rxw_gk_get_list(x, &s->enctypes) && rxw_gk_get_list(x, &s->levels) &&
	       rxw_xdr_get_u32(x, &s->lifetime) && rxw_xdr_get_u32(x, &s->bytelife) &&
	       rxw_gk_get_bytes(x, &s->nonce, RXW_GK_NONCE_MAX);
}

__attribute__((cold)) bool rxw_gk_put_start(struct rxw_xdr *x, const struct rxw_gk_start *s)
{
	return rxw_gk_put_list(x, &s->enctypes) && rxw_gk_put_list(x, &s->levels) &&
	       rxw_xdr_put_u32(x, s->lifetime) && rxw_xdr_put_u32(x, s->bytelife) &&
	       rxw_gk_put_opaque(x, s->nonce.data, s->nonce.length);
}

__attribute__((cold)) bool rxw_gk_get_info(struct rxw_xdr *x, struct rxw_gk_info *i)
{
	return rxw_xdr_get_i32(x, &i->error) && rxw_xdr_get_i32(x, &i->enctype) &&
	       rxw_xdr_get_u32(x, &i->level) && rxw_xdr_get_u32(x, &i->lifetime) &&
	       rxw_xdr_get_u32(x, &i->bytelife) && rxw_xdr_get_i64(x, &i->expires) &&
	       rxw_gk_get_bytes(x, &i->mic, RXW_GK_NONCE_MAX) &&
	       rxw_gk_get_bytes(x, &i->token, RXW_GK_TOKEN_MAX) &&
	       rxw_gk_get_bytes(x, &i->nonce, RXW_GK_NONCE_MAX);
}

__attribute__((cold)) bool rxw_gk_put_info(struct rxw_xdr *x, const struct rxw_gk_info *i)
{
	return rxw_xdr_put_u32(x, (uint32_t)i->error) && rxw_xdr_put_u32(x, (uint32_t)i->enctype) &&
	       rxw_xdr_put_u32(x, i->level) && rxw_xdr_put_u32(x, i->lifetime) &&
	       rxw_xdr_put_u32(x, i->bytelife) && rxw_xdr_put_u64(x, (uint64_t)i->expires) &&
	       rxw_gk_put_opaque(x, i->mic.data, i->mic.length) &&
	       rxw_gk_put_opaque(x, i->token.data, i->token.length) &&
	       rxw_gk_put_opaque(x, i->nonce.data, i->nonce.length);
}

bool rxw_gk_in_list(const struct rxw_gk_list *l, uint32_t item)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->item[i] == item)
			return true;
	return false;
}

/* Memory grows with the received data, not with the announced length. */
uint8_t *rxw_gk_read_all(rxw_call *call, size_t max, size_t *size)
{
	size_t room = 4096, used = 0;
	uint8_t *p = rxw_secret_alloc(room);

	while (p) {
		ssize_t n = rxw_call_read(call, p + used, room - used);
		uint8_t *larger;

		if (n < 0 || used + (size_t)n > max)
			break;
		used += (size_t)n;
		if (used < room) {
			*size = used;
			return p;
		}
		larger = rxw_secret_alloc(2 * room);
		if (larger)
			memcpy(larger, p, used);
		rxw_secret_free(p);
		p = larger;
		room *= 2;
	}
	rxw_secret_free(p);
	return NULL;
}

bool rxw_gk_k0(gss_ctx_id_t context, const struct rxw_gk_start *start,
	       const struct rxw_gk_bytes *server_nonce, const struct rxw_gk_enctype *enctype,
	       uint8_t out[RXW_GK_KEY_MAX])
{
	uint8_t seed[2 * RXW_GK_NONCE_MAX];
	gss_buffer_desc in = {.value = seed, .length = start->nonce.length + server_nonce->length};
	gss_buffer_desc prf = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	bool good;

	memcpy(seed, start->nonce.data, start->nonce.length);
	memcpy(seed + start->nonce.length, server_nonce->data, server_nonce->length);
	good = gss_pseudo_random(&minor, context, GSS_C_PRF_KEY_FULL, &in, enctype->key_length,
				 &prf) == GSS_S_COMPLETE &&
	       prf.length == enctype->key_length;
	if (good)
		memcpy(out, prf.value, prf.length);
	if (prf.value)
		explicit_bzero(prf.value, prf.length);
	gss_release_buffer(&minor, &prf);
	return good;
}

void rxw_gk_gss_text(OM_uint32 major, OM_uint32 minor, char *out, size_t room)
{
	const struct {
		OM_uint32 status;
		int type;
	} part[2] = {{major, GSS_C_GSS_CODE}, {minor, GSS_C_MECH_CODE}};
	size_t used = 0;

	if (!room)
		return;
	out[0] = 0;
	for (int i = 0; i < 2; i++) {
		gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
		OM_uint32 ignored, more = 0;

		if (!part[i].status ||
		    gss_display_status(&ignored, part[i].status, part[i].type, GSS_C_NO_OID, &more,
				       &text) != GSS_S_COMPLETE)
			continue;
		for (size_t k = 0; k < text.length && used + 3 < room; k++) {
			if (!k && used) {
				out[used++] = ':';
				out[used++] = ' ';
			}
			out[used++] = ((const char *)text.value)[k];
		}
		out[used] = 0;
		gss_release_buffer(&ignored, &text);
	}
}
