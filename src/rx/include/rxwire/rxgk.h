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
	uint32_t rekey_bytes; /* the same, in bytes: 1..62 = a power of two; 63 = none */
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

#ifdef __cplusplus
}
#endif
#endif
