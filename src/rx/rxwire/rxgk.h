/* SPDX-License-Identifier: BSD-2-Clause */
/* Security class rxgk (rx-protocol 7.4). See rxw_rxgk(3). */
#ifndef RXWIRE_RXGK_H
#define RXWIRE_RXGK_H

#include <rxwire/keys.h>
#include <rxwire/security.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Security indexes. The second is AuriStor's yfs-rxgk, which differs only in the body of tokens. */
#define RXW_RXGK_INDEX	   4
#define RXW_RXGK_INDEX_YFS 6

/* Codes of calls and connections (rx-protocol 7.4.9). */
#define RXW_RXGK_INCONSISTENCY 1233242880
#define RXW_RXGK_PACKETSHORT   1233242881
#define RXW_RXGK_BADCHALLENGE  1233242882
#define RXW_RXGK_BADETYPE      1233242883
#define RXW_RXGK_BADLEVEL      1233242884
#define RXW_RXGK_BADKEYNO      1233242885
#define RXW_RXGK_EXPIRED       1233242886
#define RXW_RXGK_NOTAUTH       1233242887
#define RXW_RXGK_BAD_TOKEN     1233242888
#define RXW_RXGK_SEALED_INCON  1233242889
#define RXW_RXGK_DATA_LEN      1233242890
#define RXW_RXGK_BAD_QOP       1233242891

/* Times of rxgk are in units of 100 ns since 1970-01-01 UTC. */
#define RXW_RXGK_SECOND INT64_C(10000000)

/*
 * A token, with the data that its holder needs. The token itself also contains level, lifetime
 * and bytelife, for the server. Created by rxw_rxgk_print_token() or by negotiation; free its
 * contents with rxw_rxgk_token_free(). The key is secret.
 */
struct rxw_rxgk_token {
	size_t size;
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

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxgk_print_options {
	size_t size;
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
 * Create a token with the newest rxgk key of `keys`. Set token->size before. -RXW_EINVAL;
 * -RXW_ENOKEY: no rxgk key; -RXW_ENOTSUP: the enctype is not 17..20; -RXW_ENOMEM; -RXW_ESYS: no
 * random numbers. Any thread.
 */
RXW_MUST_USE
int rxw_rxgk_print_token(rxw_keys *keys, const struct rxw_rxgk_print_options *options,
			 struct rxw_rxgk_token *token);

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxgk_server_options {
	size_t size;
	rxw_keys *keys;	   /* keys of type RXW_KEY_RXGK decrypt tokens; a reference is taken */
	uint8_t level_min; /* enum rxw_level; tokens of a lower level are refused (BADLEVEL) */
	uint8_t index;	   /* RXW_RXGK_INDEX…; 0 = 4 */
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = system clock */
	void *time_context;
};

/*
 * The server side, for struct rxw_service_options. Keys are looked up at each authentication, so
 * keys that are loaded later are used. The caller owns *security. -RXW_EINVAL, -RXW_ENOMEM. Any
 * thread.
 */
RXW_MUST_USE
int rxw_rxgk_server(const struct rxw_rxgk_server_options *options, rxw_security **security);

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxgk_client_options {
	size_t size;
	uint8_t index;			/* RXW_RXGK_INDEX…; 0 = 4 */
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = system clock */
	void *time_context;
	const char *client_name; /* for rxw_connection_identity(); NULL = unknown */
};

/*
 * The client side, for rxw_connection_create(). The token is copied; its level is that of the
 * connections. `options` may be NULL. The caller owns *security. -RXW_EINVAL; -RXW_ENOTSUP:
 * unknown enctype; -RXW_ENOMEM. Any thread.
 */
RXW_MUST_USE
int rxw_rxgk_client(const struct rxw_rxgk_token *token,
		    const struct rxw_rxgk_client_options *options, rxw_security **security);

/*
 * -- Negotiation service: tokens for holders of Kerberos tickets (rx-protocol 7.4.7)
 * -----------------
 */

#define RXW_RXGK_NEGOTIATION_SERVICE 34567 /* service id; null class */

typedef struct rxw_gk_negotiation rxw_rxgk_negotiation;

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxgk_negotiation_options {
	size_t size;
	rxw_keys *keys;	      /* the newest rxgk key seals tokens; a reference is taken */
	const char *keytab;   /* Kerberos key of the service; NULL = default keytab */
	const char *service;  /* "afs-rxgk@_afs.cell" or a principal; NULL = any of the keytab */
	uint8_t level_min;    /* tokens of a lower level are not issued */
	uint8_t index;	      /* RXW_RXGK_INDEX…; 0 = 4 */
	uint32_t lifetime_s;  /* maximum lifetime of a token; 0 = that of the ticket */
	uint32_t rekey_s;     /* advice in tokens, unless the client asks for less; 0 = none */
	uint32_t rekey_bytes; /* the same, like `bytelife` of struct rxw_rxgk_token */
	/*
	 * AFSCombineTokens: returns the keys of the file server with this UUID (16 bytes, network
	 * byte order), which the application continues to own, or NULL if it is unknown. If the
	 * function is NULL, `keys` is used for all servers.
	 */
	rxw_keys *(*server_keys)(void *context, const uint8_t *uuid);
	void *server_keys_context;
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = system clock */
	void *time_context;
};

/*
 * Prepare the service. Destroy it after the endpoints to which it was added. -RXW_EINVAL,
 * -RXW_ENOMEM; -RXW_ENOKEY: GSSAPI has no key for the service; `error` (of `room` bytes, may be
 * NULL) has the reason.
 */
RXW_MUST_USE
int rxw_rxgk_negotiation_create(const struct rxw_rxgk_negotiation_options *options,
				rxw_rxgk_negotiation **negotiation, char *error, size_t room);
/* NULL is ignored. */
void rxw_rxgk_negotiation_destroy(rxw_rxgk_negotiation *negotiation);
/* Offer it at an endpoint; `service` may be NULL. Errors as rxw_service_add(). */
int rxw_rxgk_negotiation_add(rxw_rxgk_negotiation *negotiation, rxw_endpoint *endpoint,
			     rxw_service **service);

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxgk_negotiate_options {
	size_t size;
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
 * Get a token over `connection`, which leads to the negotiation service with the null class.
 * Waits for the server and for the KDC. Set token->size before. Free the token with
 * rxw_rxgk_token_free(). -RXW_EINVAL; -RXW_ENOKEY: no ticket; -RXW_ECALL: the call failed, or the
 * server refused; -RXW_EDECODE: the answer is invalid or not authentic; -RXW_ENOMEM, -RXW_ESYS.
 * `error`, of `room` bytes, receives a message; it may be NULL.
 */
RXW_MUST_USE
int rxw_rxgk_negotiate(rxw_connection *connection, const struct rxw_rxgk_negotiate_options *options,
		       struct rxw_rxgk_token *token, char *error, size_t room);

/*
 * Combine the token of a user with that of a cache manager, at a level that is not below either;
 * using the result requires both keys. `server_uuid` (16 bytes) is the file server that the token
 * is for (AFSCombineTokens); NULL: that of the connection (CombineTokens). Set token->size before.
 * Free the token with rxw_rxgk_token_free(). -RXW_EINVAL, -RXW_ENOMEM, -RXW_EDECODE, or -RXW_ECALL
 * with the code of the server in *code, which may be NULL.
 */
RXW_MUST_USE
int rxw_rxgk_combine(rxw_connection *connection, const struct rxw_rxgk_token *user,
		     const struct rxw_rxgk_token *cm, uint32_t level, const uint8_t *server_uuid,
		     struct rxw_rxgk_token *token, rxw_code *code);

#ifdef __cplusplus
}
#endif
#endif
