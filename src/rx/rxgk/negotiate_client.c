/* SPDX-License-Identifier: BSD-2-Clause */
/* GSSNegotiate, client side (rx-protocol 7.4.7); remedies for errors of Kerberos. */
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <krb5.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/error.h>

#include "common/cancel.h"
#include "keys/keys.h"
#include "rxgk/negotiate.h"

#define FLAGS (GSS_C_MUTUAL_FLAG | GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG)

/* Buffer for an error message. */
struct why {
	char *text;
	size_t room;
};

static int say_why(const struct why *why, int result, const char *text)
{
	if (why->text && why->room)
		snprintf(why->text, why->room, "%s", text);
	return result;
}

static int say_gss(const struct why *why, OM_uint32 major, OM_uint32 minor, int result)
{
	size_t used;

	if (!why->text || !why->room)
		return result;
	rxw_gk_gss_text(major, minor, why->text, why->room);
	used = strlen(why->text);
	snprintf(why->text + used, why->room - used, "%s", rxw_kerberos_advice((int32_t)minor));
	return result;
}

/*
 * An error of the server's GSSAPI: the minor code is one of Kerberos, which our GSSAPI cannot
 * translate.
 */
static int say_refused(const struct why *why, OM_uint32 major, OM_uint32 minor)
{
	char text[256];

	if (!minor)
		return say_gss(why, major, minor, -RXW_ECALL);
	if (why->text)
		snprintf(why->text, why->room, "the server does not accept the ticket: %s",
			 rxw_kerberos_text((int32_t)minor, text, sizeof(text)));
	return -RXW_ECALL;
}

static int say_code(const struct why *why, int32_t code, int result)
{
	if (code == RXW_INVALID_OPERATION)
		return say_why(why, result,
			       "the server issues no rxgk tokens: its keytab has no key of "
			       "afs-rxgk/_afs.CELL, or another server of the cell issues them");
	if (why->text && why->room)
		snprintf(why->text, why->room, "cannot get an rxgk token: %s", rxw_code_text(code));
	return result;
}

/* Call GSSNegotiate: `request` begins with its opcode; the reply is of rxw_secret_alloc(). Returns the code. */
static int32_t call_server(rxw_connection *connection, const uint8_t *request, size_t length,
			   uint8_t **reply, size_t *size)
{
	rxw_call *call;
	int32_t code = rxw_rpc_begin(connection, NULL, &call);

	*reply = NULL;
	if (code)
		return code;
	if (rxw_call_write(call, request, length) != (ssize_t)length)
		code = RXW_RPC_CC_MARSHAL;
	if (!code) {
		*reply = rxw_gk_read_all(call, RXW_GK_REPLY_MAX, size);
		if (!*reply)
			code = RXW_RPC_CC_UNMARSHAL;
	}
	code = rxw_rpc_end(call, code, &rxw_gk_interface, 0);
	if (code) {
		rxw_secret_free(*reply);
		*reply = NULL;
	}
	return code;
}

/* The credentials, from the given cache or keytab, or from the default ones. */
static OM_uint32 acquire_client_cred(const struct rxw_rxgk_negotiate_options *o,
				     gss_cred_id_t *cred, OM_uint32 *minor)
{
	gss_key_value_element_desc element[2];
	gss_key_value_set_desc store = {.elements = element};

	if (o->ccache)
		element[store.count++] = (gss_key_value_element_desc){"ccache", o->ccache};
	if (o->keytab)
		element[store.count++] = (gss_key_value_element_desc){"client_keytab", o->keytab};
	if (!store.count)
		return GSS_S_COMPLETE;
	return gss_acquire_cred_from(minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, GSS_C_NO_OID_SET,
				     GSS_C_INITIATE, &store, cred, NULL, NULL);
}

static OM_uint32 import_target(const struct rxw_rxgk_negotiate_options *o, gss_name_t *name,
			       OM_uint32 *minor)
{
	char text[512];
	gss_buffer_desc b = {.value = text};
	int n = o->target ? snprintf(text, sizeof(text), "%s", o->target)
			  : snprintf(text, sizeof(text), "afs-rxgk@_afs.%s", o->cell);

	if (n < 0 || (size_t)n >= sizeof(text))
		return GSS_S_BAD_NAME;
	b.length = (size_t)n;
	return gss_import_name(minor, &b,
			       strchr(text, '/') ? (gss_OID)GSS_KRB5_NT_PRINCIPAL_NAME
						 : GSS_C_NT_HOSTBASED_SERVICE,
			       name);
}

/* Encode the request. */
static int fill_start(const struct rxw_rxgk_negotiate_options *o, uint8_t nonce[RXW_GK_NONCE],
		      struct rxw_gk_start *s)
{
	memset(s, 0, sizeof(*s));
	if (o->enctype) {
		s->enctypes.item[s->enctypes.count++] = (uint32_t)o->enctype;
	} else {
		for (const int32_t *e = rxw_gk_enctypes; *e; e++)
			s->enctypes.item[s->enctypes.count++] = (uint32_t)*e;
	}
	s->levels.item[s->levels.count++] = o->level;
	s->lifetime = o->rekey_s;
	s->bytelife = o->rekey_bytes;
	s->nonce = (struct rxw_gk_bytes){nonce, RXW_GK_NONCE};
	return RAND_bytes(nonce, RXW_GK_NONCE) == 1 ? 0 : -RXW_ESYS;
}

/* Check the server's unwrapped reply against the request, and its signature. */
static int check_reply(gss_ctx_id_t context, const struct rxw_gk_start *start,
		       const struct rxw_gk_info *i, const struct why *why)
{
	uint8_t text[16 + 8 * RXW_GK_LIST_MAX + RXW_GK_NONCE_MAX + 16];
	gss_buffer_desc plain = {.value = text},
			mic = {.value = (void *)i->mic.data, .length = i->mic.length};
	struct rxw_xdr x;
	OM_uint32 major, minor;

	if (i->error)
		return say_code(why, i->error, -RXW_ECALL);
	rxw_xdr_writer(&x, text, sizeof(text));
	rxw_gk_put_start(&x, start);
	plain.length = rxw_xdr_used(&x);
	major = gss_verify_mic(&minor, context, &plain, &mic, NULL);
	if (major != GSS_S_COMPLETE)
		return say_why(why, -RXW_EDECODE, "the request was modified in transit");
	if (!rxw_gk_in_list(&start->enctypes, (uint32_t)i->enctype) ||
	    !rxw_gk_enctype(i->enctype) || !rxw_gk_in_list(&start->levels, i->level))
		return say_why(why, -RXW_EDECODE,
			       "the server chose a parameter that was not offered");
	if (!i->token.length || !i->nonce.length)
		return say_why(why, -RXW_EDECODE, "the server sent no token");
	return 0;
}

static int take_token(gss_ctx_id_t context, const struct rxw_gk_start *start,
		      const struct rxw_gk_bytes *wrapped, struct rxw_rxgk_token *token,
		      const struct why *why)
{
	gss_buffer_desc in = {.value = (void *)wrapped->data, .length = wrapped->length};
	gss_buffer_desc out = GSS_C_EMPTY_BUFFER;
	struct rxw_gk_info i = {0};
	OM_uint32 major, minor;
	int confidential = 0, r;
	struct rxw_xdr x;

	major = gss_unwrap(&minor, context, &in, &out, &confidential, NULL);
	if (major != GSS_S_COMPLETE)
		return say_gss(why, major, minor, -RXW_EDECODE);
	rxw_xdr_reader(&x, out.value, out.length);
	if (!confidential || !rxw_gk_get_info(&x, &i)) {
		r = say_why(why, -RXW_EDECODE, "the server sent a malformed answer");
		goto out;
	}
	r = check_reply(context, start, &i, why);
	if (r)
		goto out;
	memset(token, 0, sizeof(*token));
	token->token = rxw_secret_alloc(i.token.length);
	if (!token->token) {
		r = -RXW_ENOMEM;
		goto out;
	}
	token->enctype = i.enctype;
	token->level = i.level;
	token->lifetime = i.lifetime;
	token->bytelife = i.bytelife;
	token->expires = i.expires;
	memcpy(token->token, i.token.data, i.token.length);
	token->token_length = i.token.length;
	if (!rxw_gk_k0(context, start, &i.nonce, rxw_gk_enctype(i.enctype), token->key)) {
		rxw_rxgk_token_free(token);
		r = say_why(why, -RXW_EDECODE, "cannot derive a token key from the ticket's key");
	}
out:
	if (out.value)
		explicit_bzero(out.value, out.length);
	gss_release_buffer(&minor, &out);
	return r;
}

/* Send a message of GSSAPI; the answer points into *reply. */
static int one_round(rxw_connection *connection, const struct rxw_gk_start *start,
		     const gss_buffer_desc *message, uint8_t **reply, struct rxw_gk_bytes *answer,
		     struct rxw_gk_bytes *wrapped, const struct why *why)
{
	size_t room = message->length + 8192, size = 0;
	uint8_t *request = malloc(room);
	struct rxw_gk_bytes opaque;
	uint32_t major = 0, minor = 0;
	struct rxw_xdr x;
	int32_t code;

	if (!request)
		return -RXW_ENOMEM;
	rxw_xdr_writer(&x, request, room);
	rxw_xdr_put_u32(&x, RXW_GK_NEGOTIATE);
	rxw_gk_put_start(&x, start);
	rxw_gk_put_opaque(&x, message->value, message->length);
	rxw_gk_put_opaque(&x, NULL, 0);
	code = call_server(connection, request, rxw_xdr_used(&x), reply, &size);
	free(request);
	if (code)
		return say_code(why, code, -RXW_ECALL);
	rxw_xdr_reader(&x, *reply, size);
	if (!rxw_gk_get_bytes(&x, answer, RXW_GK_REPLY_MAX) ||
	    !rxw_gk_get_bytes(&x, &opaque, RXW_GK_REPLY_MAX) || !rxw_xdr_get_u32(&x, &major) ||
	    !rxw_xdr_get_u32(&x, &minor) || !rxw_gk_get_bytes(&x, wrapped, RXW_GK_REPLY_MAX))
		return say_why(why, -RXW_EDECODE, "the server sent a malformed answer");
	return GSS_ERROR(major) ? say_refused(why, major, minor) : 0;
}

/* Kerberos needs one round; a second one is not supported. */
static int negotiate_token(rxw_connection *connection, gss_cred_id_t cred, gss_name_t target,
			   const struct rxw_gk_start *start, struct rxw_rxgk_token *token,
			   const struct why *why)
{
	gss_ctx_id_t context = GSS_C_NO_CONTEXT;
	gss_buffer_desc out = GSS_C_EMPTY_BUFFER, in;
	struct rxw_gk_bytes answer, wrapped;
	uint8_t *reply = NULL;
	OM_uint32 major, minor, ignored, flags = 0;
	int r;

	major = gss_init_sec_context(&minor, cred, &context, target, (gss_OID)gss_mech_krb5, FLAGS,
				     0, GSS_C_NO_CHANNEL_BINDINGS, GSS_C_NO_BUFFER, NULL, &out,
				     NULL, NULL);
	if (major != GSS_S_CONTINUE_NEEDED) {
		r = say_gss(why, major, minor, -RXW_ENOKEY);
		goto end;
	}
	r = one_round(connection, start, &out, &reply, &answer, &wrapped, why);
	if (r)
		goto end;
	gss_release_buffer(&ignored, &out);
	in = (gss_buffer_desc){.value = (void *)answer.data, .length = answer.length};
	major = gss_init_sec_context(&minor, cred, &context, target, (gss_OID)gss_mech_krb5, FLAGS,
				     0, GSS_C_NO_CHANNEL_BINDINGS, &in, NULL, &out, &flags, NULL);
	if (GSS_ERROR(major))
		r = say_gss(why, major, minor, -RXW_EDECODE);
	else if (major != GSS_S_COMPLETE || (flags & FLAGS) != FLAGS)
		r = say_why(why, -RXW_EDECODE, "the server did not authenticate itself");
	else
		r = take_token(context, start, &wrapped, token, why);
end:
	rxw_secret_free(reply);
	gss_release_buffer(&ignored, &out);
	gss_delete_sec_context(&ignored, &context, GSS_C_NO_BUFFER);
	return r;
}

__attribute__((cold)) int rxw_rxgk_negotiate(rxw_connection *connection,
					     const struct rxw_rxgk_negotiate_options *options,
					     struct rxw_rxgk_token *token, char *error, size_t room)
{
	struct why why = {error, room};
	gss_cred_id_t cred = GSS_C_NO_CREDENTIAL;
	gss_name_t target = GSS_C_NO_NAME;
	uint8_t nonce[RXW_GK_NONCE];
	struct rxw_gk_start start;
	OM_uint32 major, minor = 0, ignored;
	int r;
	NOT_CANCELLED;

	if (error && room)
		error[0] = 0;
	if ((!options->target && !options->cell) || options->level > RXW_LEVEL_CRYPT ||
	    (options->enctype && !rxw_gk_enctype(options->enctype)))
		return say_why(&why, -RXW_EINVAL, "an argument is missing or out of range");
	r = fill_start(options, nonce, &start);
	if (r)
		return say_why(&why, r, "cannot get random bytes");
	major = acquire_client_cred(options, &cred, &minor);
	if (major == GSS_S_COMPLETE)
		major = import_target(options, &target, &minor);
	if (major == GSS_S_COMPLETE)
		r = negotiate_token(connection, cred, target, &start, token, &why);
	else
		r = say_gss(&why, major, minor, -RXW_ENOKEY);
	gss_release_cred(&ignored, &cred);
	gss_release_name(&ignored, &target);
	return r;
}

/* --- errors of Kerberos --- */

const char *rxw_kerberos_advice(int32_t code)
{
	switch (code) {
	case KRB5KRB_AP_ERR_TKT_EXPIRED:
	case KRB5KDC_ERR_NAME_EXP:
		return "; get new tickets with kinit (or kinit -R, before they expire)";
	case KRB5KRB_AP_ERR_TKT_NYV:
	case KRB5KDC_ERR_NEVER_VALID:
	case KRB5KRB_AP_ERR_SKEW:
	case KRB5_KDCREP_SKEW:
		return "; the clocks of this host, the server and the KDC must agree: use NTP";
	case KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return "; check the cell's name, or give its realm";
	case KRB5_REALM_UNKNOWN:
	case KRB5_REALM_CANT_RESOLVE:
	case KRB5_KDC_UNREACH:
	case KRB5KDC_ERR_WRONG_REALM:
		return "; krb5.conf must name the realm's KDC, with trust between the realms";
	case KRB5KRB_AP_ERR_BADKEYVER:
	case KRB5KRB_AP_ERR_NOKEY:
	case KRB5KRB_AP_ERR_BAD_INTEGRITY:
	case KRB5KRB_AP_ERR_MODIFIED:
	case KRB5KRB_AP_WRONG_PRINC:
	case KRB5KRB_AP_ERR_NOT_US:
	case KRB5_KT_NOTFOUND:
	case KRB5_KT_KVNONOTFOUND:
		return "; the server's keytab lacks the ticket's key: run kinit again, or add it";
	case KRB5KDC_ERR_ETYPE_NOSUPP:
	case KRB5_PROG_ETYPE_NOSUPP:
		return "; KDC, server and this host must permit a common encryption type";
	default:
		return "";
	}
}

char *rxw_kerberos_text(int32_t code, char *out, size_t room)
{
	krb5_context context;
	const char *text;

	if (krb5_init_context(&context)) {
		snprintf(out, room, "Kerberos error %d%s", (int)code, rxw_kerberos_advice(code));
		return out;
	}
	text = krb5_get_error_message(context, code);
	snprintf(out, room, "%s%s", text, rxw_kerberos_advice(code));
	krb5_free_error_message(context, text);
	krb5_free_context(context);
	return out;
}
