/* SPDX-License-Identifier: BSD-2-Clause */
/* The client side of combining tokens, which only tests need: cache managers do it with their own code. */
#include <check.h>
#include <stdlib.h>

#include "combine.h"
#include "keys/keys.h"
#include "rxgk/negotiate.h"

/* Encode the request of either procedure; its length, 0 if it does not fit. */
static size_t write_combine(const struct rxw_rxgk_token *user, const struct rxw_rxgk_token *cm,
			    uint32_t level, const uint8_t *uuid, uint8_t *out, size_t room)
{
	struct rxw_gk_list types = {0}, levels = {.count = 1, .item = {level}};
	struct rxw_xdr x;

	for (const int32_t *e = rxw_gk_enctypes; *e; e++)
		types.item[types.count++] = (uint32_t)*e;
	rxw_xdr_writer(&x, out, room);
	rxw_xdr_put_u32(&x, uuid ? RXW_GK_AFS_COMBINE : RXW_GK_COMBINE);
	rxw_gk_put_opaque(&x, user->token, user->token_length);
	rxw_gk_put_opaque(&x, cm->token, cm->token_length);
	rxw_gk_put_list(&x, &types);
	rxw_gk_put_list(&x, &levels);
	if (uuid) {
		rxw_xdr_put_u32(&x, rxw_xdr_load32(uuid));
		rxw_xdr_put_u32(&x, (uint32_t)uuid[4] << 8 | uuid[5]);
		rxw_xdr_put_u32(&x, (uint32_t)uuid[6] << 8 | uuid[7]);
		for (int i = 8; i < 16; i++) /* sign-extended characters */
			rxw_xdr_put_u32(&x, (uint32_t)(int32_t)(int8_t)uuid[i]);
	}
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

static void read_combined(const uint8_t *reply, size_t size, const struct rxw_rxgk_token *user,
			  const struct rxw_rxgk_token *cm, uint32_t level,
			  struct rxw_rxgk_token *token)
{
	const struct rxw_gk_enctype *e;
	struct rxw_gk_bytes blob = {0};
	struct rxw_xdr x;

	*token = (struct rxw_rxgk_token){0};
	rxw_xdr_reader(&x, reply, size);
	rxw_gk_get_bytes(&x, &blob, RXW_GK_TOKEN_MAX);
	rxw_xdr_get_i32(&x, &token->enctype);
	rxw_xdr_get_u32(&x, &token->level);
	rxw_xdr_get_u32(&x, &token->lifetime);
	rxw_xdr_get_u32(&x, &token->bytelife);
	rxw_xdr_get_i64(&x, &token->expires);
	e = rxw_gk_enctype(token->enctype);
	ck_assert(rxw_xdr_ok(&x) && e && blob.length);
	ck_assert_uint_eq(token->level, level);
	ck_assert_int_eq(rxw_gk_combine_keys(rxw_gk_enctype(user->enctype), user->key,
					     rxw_gk_enctype(cm->enctype), cm->key, e, token->key), 0);
	token->token = rxw_secret_alloc(blob.length);
	ck_assert_ptr_nonnull(token->token);
	memcpy(token->token, blob.data, blob.length);
	token->token_length = blob.length;
}

int32_t combine_tokens(rxw_connection *connection, const struct rxw_rxgk_token *user,
		       const struct rxw_rxgk_token *cm, uint32_t level, const uint8_t *server_uuid,
		       struct rxw_rxgk_token *token)
{
	size_t room = user->token_length + cm->token_length + 256, length, size;
	uint8_t *request = malloc(room), *reply = NULL;
	rxw_call *call;
	int32_t code;

	ck_assert_ptr_nonnull(request);
	length = write_combine(user, cm, level, server_uuid, request, room);
	ck_assert_uint_gt(length, 0);
	ck_assert_int_eq(rxw_rpc_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, request, length), (ssize_t)length);
	reply = rxw_gk_read_all(call, RXW_GK_REPLY_MAX, &size);
	code = rxw_rpc_end(call, 0, &rxw_gk_interface, server_uuid ? 2 : 1);
	if (!code) {
		ck_assert_ptr_nonnull(reply);
		read_combined(reply, size, user, cm, level, token);
	}
	rxw_secret_free(reply);
	free(request);
	return code;
}
