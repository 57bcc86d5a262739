/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens: contents and container (rx-protocol 7.4.2, 7.4.8). */
#ifndef RXW_RXGK_TOKEN_H
#define RXW_RXGK_TOKEN_H

#include <rxwire/rxgk.h>

#include "rxgk/crypto.h"

#define RXW_GK_TOKEN_MAX 1048576 /* bytes of a token */
#define RXW_GK_NAME_MAX	 2048	 /* of each of the two strings of an identity */
/* Maximal body of our tokens: numbers, key, one identity, and the overhead of encryption. */
#define RXW_GK_BODY_MAX (64 + RXW_GK_KEY_MAX + 16 + 2 * RXW_GK_NAME_MAX)

enum rxw_gk_name_kind {
	RXW_GK_NAME_KRB4 = 1,
	RXW_GK_NAME_GSS = 2
};

struct rxw_gk_name {
	int32_t kind;
	const uint8_t *data, *display; /* within the parsed bytes; not terminated */
	uint32_t data_length, display_length;
};

/* The body. A secret. */
struct rxw_gk_body {
	const struct rxw_gk_enctype *enctype;
	uint8_t k0[RXW_GK_KEY_MAX];
	uint32_t level, lifetime, bytelife;
	int64_t starts,
		expires; /* 100 ns since 1970; starts: index 6 only, else 0; expires 0 = never */
	uint32_t names;	 /* 0: printed by a holder of the service key; else 1 */
	struct rxw_gk_name name;
};

/*
 * Encrypt a body under the service key (kvno, enctype, key) and put it into a container, which is
 * allocated by rxw_secret_alloc(). -RXW_EINVAL: the name is too long; -RXW_ENOMEM, -RXW_ESYS.
 */
int rxw_gk_token_seal(const struct rxw_gk_body *body, uint8_t index, int32_t kvno,
		      const struct rxw_gk_enctype *enctype, const uint8_t *key, void **token,
		      size_t *length);

/*
 * Open the token of a client: it is decrypted in place, and body->name points into it. 0 or the
 * code for the ABORT. The caller checks the expiration.
 */
int32_t rxw_gk_token_open(rxw_keys *keys, uint8_t index, uint8_t *token, size_t length,
			  struct rxw_gk_body *body);

/* Parse a decrypted body. 0 or a code. */
int32_t rxw_gk_body_parse(const uint8_t *text, size_t length, uint8_t index,
			  struct rxw_gk_body *body);

/*
 * The name as text: of an exported name of Kerberos (RFC 2743 3.2) the principal, of others the
 * display name. At most `room` - 1 bytes; false if there is none, it is too long, or it has a NUL
 * or control characters.
 */
bool rxw_gk_name_text(const struct rxw_gk_name *name, char *out, size_t room);

#endif
