/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens made with a service key, without a KDC (rx-protocol 7.3.9). */
#include <krb5.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cancel.h"
#include "common/sized.h"
#include "base/hash.h"
#include "keys/keys.h"
#include "rxkad/ticket.h"
#include "rxkad/derive.h"
#include "rxwire/error.h"
#include "rxwire/afs.h"

/* The end of OpenAFS's: 2038-01-19 03:14:07. */
#define OPENAFS_END 0x7fffffffll
#define LONGEST	    (30 * 86400)
#define USAGE	    2
/* More than the longest encoding. */
#define CLEAR_MAX 1024u

/* A random key with odd parity that is not weak. */
static int fresh_key(uint8_t key[8])
{
	do {
		if (rxw_random(key, 8))
			return -RXW_ESYS;
		rxw_des_set_parity(key);
	} while (!rxw_des_key_usable(key));
	return 0;
}

/* The realm begins after the last '@', the instance after the first '/'. */
static int put_client(struct rxw_der_out *o, const char *name)
{
	const char *at = strrchr(name, '@'), *end = at ? at : name + strlen(name);
	const char *slash = memchr(name, '/', (size_t)(end - name));
	const char *first_end = slash ? slash : end;
	const uint8_t *list = o->p;

	if (strchr(name, '\\') != NULL || first_end == name || strlen(name) > CLEAR_MAX / 2 ||
	    (slash && memchr(slash + 1, '/', (size_t)(end - slash - 1)) != NULL))
		return -RXW_EINVAL;
	if (slash) {
		const uint8_t *second = o->p;

		rxw_der_put_bytes(o, slash + 1, (size_t)(end - slash - 1));
		rxw_der_put_header(o, RXW_DER_GENERAL_STRING, second);
	}
	{
		const uint8_t *first = o->p;

		rxw_der_put_bytes(o, name, (size_t)(first_end - name));
		rxw_der_put_header(o, RXW_DER_GENERAL_STRING, first);
	}
	rxw_der_put_header(o, RXW_DER_SEQUENCE, list);
	rxw_der_put_header(o, RXW_DER_CONTEXT(1), list);
	rxw_der_put_integer(o, 0, 1); /* a user's principal */
	rxw_der_put_header(o, RXW_DER_SEQUENCE, list);
	rxw_der_put_header(o, RXW_DER_CONTEXT(3), list);
	rxw_der_put_in(o, 2, RXW_DER_GENERAL_STRING, at ? at + 1 : "", at ? strlen(at + 1) : 0);
	return 0;
}

int rxw_rxkad_print_clear(const uint8_t session_key[8], const char *name, int64_t start,
			  int64_t end, uint8_t *out, size_t room, size_t *size)
{
	static const uint8_t flags[5] = {0, 0x00, 0x08, 0x00, 0x00}; /* transited policy checked */
	struct rxw_der_out o = {out, out + room, out + room, false};
	const uint8_t *mark;
	int result;

	if (!rxw_der_put_time(&o, 7, end) || !rxw_der_put_time(&o, 5, start))
		return -RXW_EINVAL;
	mark = o.p;
	rxw_der_put_in(&o, 1, RXW_DER_OCTET_STRING, "", 0);
	rxw_der_put_integer(&o, 0, 0);
	rxw_der_put_header(&o, RXW_DER_SEQUENCE, mark);
	rxw_der_put_header(&o, RXW_DER_CONTEXT(4), mark);
	result = put_client(&o, name);
	if (result)
		return result;
	mark = o.p;
	rxw_der_put_in(&o, 1, RXW_DER_OCTET_STRING, session_key, 8);
	rxw_der_put_integer(&o, 0, 1); /* DES: as it is */
	rxw_der_put_header(&o, RXW_DER_SEQUENCE, mark);
	rxw_der_put_header(&o, RXW_DER_CONTEXT(1), mark);
	rxw_der_put_in(&o, 0, RXW_DER_BIT_STRING, flags, sizeof(flags));
	rxw_der_put_header(&o, RXW_DER_SEQUENCE, o.end);
	rxw_der_put_header(&o, RXW_DER_APPLICATION(3), o.end);
	if (o.full)
		return -RXW_EINVAL;
	*size = (size_t)(o.end - o.p);
	memmove(out, o.p, *size);
	return 0;
}

/* EncryptedData of the clear text, on the heap. */
static int seal_ticket(krb5_keyblock *key, int32_t kvno, uint8_t *clear, size_t size, void **ticket,
		       size_t *ticket_length)
{
	size_t sealed_size = 0, room;
	krb5_data in = {.magic = KV5M_DATA, .length = (unsigned)size, .data = (char *)clear};
	krb5_enc_data sealed = {.magic = KV5M_ENC_DATA};
	struct rxw_der_out o;
	uint8_t *cipher = NULL, *all = NULL;
	int result = -RXW_ENOTSUP;

	if (krb5_c_encrypt_length(NULL, key->enctype, size, &sealed_size) || sealed_size > 65000)
		return -RXW_ENOTSUP;
	room = sealed_size + 64;
	cipher = malloc(sealed_size);
	all = malloc(room);
	if (cipher == NULL || all == NULL) {
		result = -RXW_ENOMEM;
		goto out;
	}
	sealed.ciphertext.data = (char *)cipher;
	sealed.ciphertext.length = (unsigned)sealed_size;
	if (krb5_c_encrypt(NULL, key, USAGE, NULL, &in, &sealed))
		goto out;
	o = (struct rxw_der_out){all, all + room, all + room, false};
	rxw_der_put_in(&o, 2, RXW_DER_OCTET_STRING, cipher, sealed.ciphertext.length);
	rxw_der_put_integer(&o, 1, (uint32_t)kvno);
	rxw_der_put_integer(&o, 0, (uint32_t)key->enctype);
	rxw_der_put_header(&o, RXW_DER_SEQUENCE, o.end);
	*ticket_length = (size_t)(o.end - o.p);
	memmove(all, o.p, *ticket_length);
	*ticket = all;
	all = NULL;
	result = 0;
out:
	free(cipher);
	free(all);
	return result;
}

/* Memory for making a token; a secret. */
struct workspace {
	uint8_t key[RXW_KEY_MAX];
	uint8_t clear[CLEAR_MAX];
};

/* The service key: that of the options, or the newest of the table. 0 or a negative result. */
static int choose_key(rxw_keys *keys, const struct rxw_rxkad_print_options *o, uint8_t *key,
		      size_t *length, int32_t *kvno, int32_t *enctype)
{
	size_t want;

	if (o->key == NULL)
		return rxw_keys_best(keys, RXW_KEY_KRB5, kvno, enctype, key, RXW_KEY_MAX, length);
	if (krb5_c_keylengths(NULL, o->enctype, NULL, &want))
		return -RXW_ENOTSUP;
	if (o->key_length != want || want > RXW_KEY_MAX)
		return -RXW_EINVAL;
	memcpy(key, o->key, want);
	*length = want;
	*kvno = o->kvno;
	*enctype = o->enctype;
	return 0;
}

static void set_token_times(const struct rxw_rxkad_print_options *o, struct rxw_rxkad_token *token)
{
	token->expires = OPENAFS_END;
	if (o->expires > 0) {
		token->begins = o->begins;
		token->expires = o->expires;
	} else if (o->lifetime_s > 0) {
		token->begins = o->time ? o->time(o->time_context) : (int64_t)time(NULL);
		token->expires = token->begins + o->lifetime_s;
	}
}

static int set_session_key(const struct rxw_rxkad_print_options *o, uint8_t key[8])
{
	if (o->session_key == NULL)
		return fresh_key(key);
	memcpy(key, o->session_key, 8);
	return rxw_des_key_usable(key) ? 0 : -RXW_EINVAL;
}

static int print_ticket(rxw_keys *keys, const struct rxw_rxkad_print_options *options,
			struct workspace *w, struct rxw_rxkad_token *token)
{
	const char *name = options->name ? options->name : "afs";
	krb5_keyblock block = {.magic = KV5M_KEYBLOCK, .contents = w->key};
	int32_t kvno, enctype;
	size_t key_length, size;
	int result;

	result = choose_key(keys, options, w->key, &key_length, &kvno, &enctype);
	if (result)
		return result;
	set_token_times(options, token);
	token->local = options->name == NULL;
	token->kvno = RXW_RXKAD_KVNO_ENCPART;
	token->client_name = strdup(name);
	if (token->client_name == NULL)
		return -RXW_ENOMEM;
	result = set_session_key(options, token->session_key);
	if (result)
		return result;
	result = rxw_rxkad_print_clear(token->session_key, name, token->begins, token->expires,
				       w->clear, sizeof(w->clear), &size);
	if (result)
		return result;
	block.enctype = enctype;
	block.length = (unsigned)key_length;
	return seal_ticket(&block, kvno, w->clear, size, &token->ticket, &token->ticket_length);
}

/* Are the options consistent? */
static bool are_consistent(rxw_keys *keys, const struct rxw_rxkad_print_options *o)
{
	if (o->key ? o->kvno < 0 || o->enctype <= 0 : keys == NULL)
		return false;
	if (o->expires == 0)
		return o->begins == 0 && o->lifetime_s <= LONGEST;
	return o->begins >= 0 && o->begins < o->expires && o->lifetime_s == 0;
}

__attribute__((cold)) int rxw_rxkad_print_token(rxw_keys *keys,
						const struct rxw_rxkad_print_options *given,
						struct rxw_rxkad_token *token)
{
	struct rxw_rxkad_print_options options = {0};
	struct rxw_rxkad_token made = {.size = sizeof(made)};
	struct workspace *w;
	int result;
	NOT_CANCELLED;

	if (!sized_valid(token) ||
	    (given != NULL && !sized_read(&options, sizeof(options), given)) ||
	    !are_consistent(keys, &options))
		return -RXW_EINVAL;
	w = rxw_secret_alloc(sizeof(*w));
	if (w == NULL)
		return -RXW_ENOMEM;
	result = print_ticket(keys, &options, w, &made);
	if (result)
		rxw_rxkad_token_free(&made);
	sized_write(token, &made, sizeof(made));
	explicit_bzero(&made, sizeof(made));
	rxw_secret_free(w);
	return result;
}

void rxw_rxkad_token_free(struct rxw_rxkad_token *token)
{
	if (token == NULL)
		return;
	if (token->ticket != NULL)
		explicit_bzero(token->ticket, token->ticket_length);
	free(token->ticket);
	free(token->client_name);
	explicit_bzero(token->session_key, sizeof(token->session_key));
	token->ticket = NULL;
	token->ticket_length = 0;
	token->client_name = NULL;
}
