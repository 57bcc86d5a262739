/* SPDX-License-Identifier: BSD-2-Clause */
/* The security class rxgk: tokens, client and server side (rx-protocol 7.4). */
#ifndef RXWIRE_RXGK_H
#define RXWIRE_RXGK_H

#include <rxwire/keys.h>
#include <rxwire/security.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Security indexes. The second is AuriStor's: the same but for the body of the token. */
#define RXW_RXGK_INDEX     4
#define RXW_RXGK_INDEX_YFS 6

/* Codes of calls and connections (7.4.9). */
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

/* Times of rxgk: 100 ns since 1970-01-01 UTC. */
#define RXW_RXGK_SECOND INT64_C(10000000)

/*
 * A token and what its holder must know of it. Level, lifetime and bytelife are inside the token too,
 * where the server reads them. Made by rxw_rxgk_print_token() or by negotiation; given back with
 * rxw_rxgk_token_free(). The key is a secret.
 */
struct rxw_rxgk_token {
	size_t size;
	int32_t enctype;   /* 17, 18, 19 or 20 */
	uint8_t key[32];   /* K0; as many bytes as the enctype has */
	uint32_t level;    /* enum rxw_level: of every connection that is made with it */
	uint32_t lifetime; /* advice: seconds until a new transport key; 0 = none */
	uint32_t bytelife; /* advice: bytes until then: 1..62 as a power of two, more as they are; 0, 63 none */
	int64_t expires;   /* 100 ns since 1970; 0 never */
	void *token;       /* what the server opens; allocated */
	size_t token_length;
};

/* Wipe and free what the token holds, not the structure. NULL is allowed. */
void rxw_rxgk_token_free(struct rxw_rxgk_token *token);

/* Zero, set `size`, then fill. */
struct rxw_rxgk_print_options {
	size_t size;
	int32_t enctype;      /* of K0; 0 = that of the service key */
	uint32_t level;       /* enum rxw_level */
	uint32_t lifetime_s;  /* until the token expires; 0 = never */
	uint32_t rekey_s;     /* advice; 0 = none */
	uint32_t rekey_bytes; /* advice, as `bytelife` above */
	/* who it is for, "user@REALM"; NULL = nobody: the server's own, the superuser (`local`) */
	const char *name;
	uint8_t index;        /* RXW_RXGK_INDEX… whose form it has; 0 = 4 */
};

/*
 * Make a token with the newest rxgk key of `keys`, as who holds a service's keys may. -RXW_EINVAL,
 * -RXW_ENOKEY: no rxgk key; -RXW_ENOTSUP: of an enctype that is not 17..20; -RXW_ENOMEM; -RXW_ESYS: no
 * random bytes. Any thread.
 */
int rxw_rxgk_print_token(rxw_keys *keys, const struct rxw_rxgk_print_options *options,
			 struct rxw_rxgk_token *token);

/* Zero, set `size`, then fill. */
struct rxw_rxgk_server_options {
	size_t size;
	rxw_keys *keys;    /* those of type RXW_KEY_RXGK open tokens; a reference is taken */
	uint8_t level_min; /* enum rxw_level: tokens of a lower level are refused with BADLEVEL */
	uint8_t index;     /* RXW_RXGK_INDEX…; 0 = 4 */
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = the system's clock */
	void *time_context;
};

/*
 * The server side, for struct rxw_service_options. Keys are looked up whenever a connection is
 * authenticated, so those that come later count. -RXW_EINVAL, -RXW_ENOMEM.
 */
int rxw_rxgk_server(const struct rxw_rxgk_server_options *options, rxw_security **security);

/* Zero, set `size`, then fill. */
struct rxw_rxgk_client_options {
	size_t size;
	uint8_t index; /* RXW_RXGK_INDEX…; 0 = 4 */
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = the system's clock */
	void *time_context;
	const char *client_name; /* for rxw_connection_identity(): who the token is for; NULL = not known */
};

/*
 * The client side, for rxw_connection_create(): the token is copied, its level is that of the
 * connections. `options` may be NULL. -RXW_EINVAL; -RXW_ENOTSUP: no such enctype; -RXW_ENOMEM.
 */
int rxw_rxgk_client(const struct rxw_rxgk_token *token, const struct rxw_rxgk_client_options *options,
		    rxw_security **security);

/* -- The negotiation service (7.4.7): tokens for who has a ticket of Kerberos ------------------------ */

#define RXW_RXGK_NEGOTIATION_SERVICE 34567 /* service id; the null class */

typedef struct rxw_gk_negotiation rxw_rxgk_negotiation;

/* Zero, set `size`, then fill. */
struct rxw_rxgk_negotiation_options {
	size_t size;
	rxw_keys *keys;       /* tokens are sealed with the newest rxgk key; a reference is taken */
	const char *keytab;   /* the service's key of Kerberos; NULL = Kerberos's default keytab */
	const char *service;  /* "afs-rxgk@_afs.cell" or a principal; NULL = any of the keytab */
	uint8_t level_min;    /* tokens of a lower level are not given */
	uint8_t index;        /* RXW_RXGK_INDEX…; 0 = 4 */
	uint32_t lifetime_s;  /* a token ends with its ticket, or after so long; 0 = with the ticket */
	uint32_t rekey_s;     /* advice in tokens, unless the client asks for less; 0 = none */
	uint32_t rekey_bytes; /* the same, as `bytelife` of struct rxw_rxgk_token */
	/*
	 * AFSCombineTokens: the keys of the file server with this UUID (16 bytes, network order), or
	 * NULL: it is unknown. The keys stay the application's. Not set: `keys` serve for all.
	 */
	rxw_keys *(*server_keys)(void *context, const uint8_t *uuid);
	void *server_keys_context;
	int64_t (*time)(void *context); /* 100 ns since 1970; NULL = the system's clock */
	void *time_context;
};

/*
 * Prepare the service. -RXW_EINVAL, -RXW_ENOMEM, -RXW_ENOKEY: GSSAPI has no key for it, and `error`
 * (of `room` bytes, may be NULL) says why. Destroy it when the endpoints that it was added to are gone.
 */
int rxw_rxgk_negotiation_create(const struct rxw_rxgk_negotiation_options *options,
				rxw_rxgk_negotiation **negotiation, char *error, size_t room);
/* NULL is allowed. */
void rxw_rxgk_negotiation_destroy(rxw_rxgk_negotiation *negotiation);
/* Offer it on an endpoint; `service` may be NULL. As rxw_service_add(). */
int rxw_rxgk_negotiation_add(rxw_rxgk_negotiation *negotiation, rxw_endpoint *endpoint,
			     rxw_service **service);

/* Zero, set `size`, then fill. */
struct rxw_rxgk_negotiate_options {
	size_t size;
	const char *cell;     /* whose service: afs-rxgk@_afs.CELL */
	const char *target;   /* or its name: hostbased, or a principal with a slash */
	const char *ccache;   /* credential cache; NULL = Kerberos's default */
	const char *keytab;   /* a client's keytab, instead of a password; NULL = none */
	uint32_t level;       /* enum rxw_level, which the token must have */
	int32_t enctype;      /* of K0; 0 = the best that the server knows: 20, 19, 18, 17 */
	uint32_t rekey_s;     /* advice that is asked for; 0 = as the server likes */
	uint32_t rekey_bytes;
};

/*
 * Get a token over `connection`, which leads to the negotiation service with the null class. Waits for
 * the server, and for the KDC. -RXW_EINVAL; -RXW_ENOKEY: no ticket; -RXW_ECALL: the call failed, or the
 * server refused; -RXW_EDECODE: its answer is not to be believed; -RXW_ENOMEM, -RXW_ESYS. A sentence goes
 * to `error`, of `room` bytes; it may be NULL.
 */
int rxw_rxgk_negotiate(rxw_connection *connection, const struct rxw_rxgk_negotiate_options *options,
		       struct rxw_rxgk_token *token, char *error, size_t room);

/*
 * Combine a user's token with a cache manager's, at a level that is not below either: whoever uses it
 * has both. `server_uuid` (16 bytes) names the file server that it is for (AFSCombineTokens); NULL: that
 * of the connection (CombineTokens). -RXW_EINVAL, -RXW_ENOMEM, -RXW_EDECODE, or -RXW_ECALL with the
 * server's code in *code, which may be NULL.
 */
int rxw_rxgk_combine(rxw_connection *connection, const struct rxw_rxgk_token *user,
		     const struct rxw_rxgk_token *cm, uint32_t level, const uint8_t *server_uuid,
		     struct rxw_rxgk_token *token, int32_t *code);

#ifdef __cplusplus
}
#endif
#endif
