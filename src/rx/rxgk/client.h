/* SPDX-License-Identifier: BSD-2-Clause */
/* The client side of rxgk: tokens, and what their holders do with them. Programs use rxw_token_create(). */
#ifndef RXW_RXGK_CLIENT_H
#define RXW_RXGK_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <rxwire/rxgk.h>

/*
 * A token, with the data that its holder needs. The token itself also contains level, lifetime
 * and bytelife, for the server. Created by rxw_rxgk_print_token() or by negotiation; free its
 * contents with rxw_rxgk_token_free(). The key is secret.
 */
struct rxw_rxgk_token {
	int32_t enctype;   /* 17, 18, 19 or 20 */
	uint8_t key[32];   /* K0, of the length that the enctype requires */
	uint32_t level;	   /* enum rxw_level of all connections with this token */
	uint32_t lifetime; /* advice: seconds until a new transport key; 0 = none */
	/* advice: bytes until a new transport key; 1..62 = power of two; 0, 63 = none */
	uint32_t bytelife;
	int64_t expires; /* 100 ns since 1970; 0 = never */
	void *token;	 /* encrypted for the server; allocated */
	size_t token_length;
};

/* Wipe and free the contents of a token, but not the structure. NULL is ignored. */
void rxw_rxgk_token_free(struct rxw_rxgk_token *token);

struct rxw_rxgk_print_options {
	int32_t enctype;      /* of K0; 0 = that of the service key */
	uint32_t level;	      /* enum rxw_level */
	uint32_t lifetime_s;  /* of the token; 0 = unlimited */
	uint32_t rekey_s;     /* advice; 0 = none */
	uint32_t rekey_bytes; /* advice, like `bytelife` above */
	/* "user@REALM"; NULL = no user: the service itself, the superuser (`local`) */
	const char *name;
	uint8_t index; /* RXW_RXGK_INDEX…; 0 = 4 */
};

/*
 * Create a token with the newest rxgk key of `keys`. -RXW_EINVAL; -RXW_ENOKEY: no rxgk key;
 * -RXW_ENOTSUP: the enctype is not 17..20; -RXW_ENOMEM; -RXW_ESYS: no random numbers. Any thread.
 */
RXW_MUST_USE
int rxw_rxgk_print_token(rxw_keys *keys, const struct rxw_rxgk_print_options *options,
			 struct rxw_rxgk_token *token);

struct rxw_rxgk_client_options {
	uint8_t index;			/* RXW_RXGK_INDEX…; 0 = 4 */
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = system clock */
	void *time_context;
	const char *client_name; /* for rxw_connection_identity(); NULL = unknown */
};

/*
 * The client side, for rxw_connection_create(). The token is copied; its level is that of the
 * connections. `options` may be NULL. The caller owns *security. -RXW_EINVAL; -RXW_ENOTSUP: unknown
 * enctype; -RXW_ENOMEM. Any thread.
 */
RXW_MUST_USE
int rxw_rxgk_client(const struct rxw_rxgk_token *token,
		    const struct rxw_rxgk_client_options *options, rxw_security **security);

struct rxw_rxgk_negotiate_options {
	const char *cell;   /* target afs-rxgk@_afs.CELL */
	const char *target; /* or another name: hostbased, or a principal with a slash */
	const char *ccache; /* credential cache; NULL = default cache */
	const char *keytab; /* keytab of the client, instead of a password; NULL = none */
	uint32_t level;	    /* enum rxw_level of the token */
	int32_t enctype;    /* of K0; 0 = the best that the server supports: 20, 19, 18, 17 */
	uint32_t rekey_s;   /* advice to request; 0 = chosen by the server */
	uint32_t rekey_bytes;
};

/*
 * Get a token over `connection`, which leads to the negotiation service with the null class. Waits
 * for the server and for the KDC. Free the token with rxw_rxgk_token_free(). -RXW_EINVAL;
 * -RXW_ENOKEY: no ticket; -RXW_ECALL: the call failed, or the server refused; -RXW_EDECODE: the
 * answer is invalid or not authentic; -RXW_ENOMEM, -RXW_ESYS. `error`, of `room` bytes, receives a
 * message; it may be NULL.
 */
RXW_MUST_USE
int rxw_rxgk_negotiate(rxw_connection *connection, const struct rxw_rxgk_negotiate_options *options,
		       struct rxw_rxgk_token *token, char *error, size_t room);

/* --- errors of Kerberos --- */

/*
 * "; renew it with kinit -R, ...", to be appended to the error's text; "" without a remedy. Static.
 */
const char *rxw_kerberos_advice(int32_t code);

/* Text and remedy for a code from another machine. Returns out. */
char *rxw_kerberos_text(int32_t code, char *out, size_t room);

#endif
