/* SPDX-License-Identifier: BSD-2-Clause */
/* The security class rxkad: Kerberos tickets and fcrypt, both sides (rx-protocol 7.3). */
#ifndef RXWIRE_RXKAD_H
#define RXWIRE_RXKAD_H

#include <rxwire/keys.h>
#include <rxwire/security.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RXW_RXKAD_INDEX 2

/* Codes of calls and connections (7.3.10). */
#define RXW_RXKAD_INCONSISTENCY 19270400
#define RXW_RXKAD_PACKETSHORT	19270401
#define RXW_RXKAD_LEVELFAIL	19270402
#define RXW_RXKAD_TICKETLEN	19270403
#define RXW_RXKAD_OUTOFSEQUENCE 19270404
#define RXW_RXKAD_NOAUTH	19270405
#define RXW_RXKAD_BADKEY	19270406
#define RXW_RXKAD_BADTICKET	19270407
#define RXW_RXKAD_UNKNOWNKEY	19270408
#define RXW_RXKAD_EXPIRED	19270409
#define RXW_RXKAD_SEALEDINCON	19270410
#define RXW_RXKAD_DATALEN	19270411
#define RXW_RXKAD_ILLEGALLEVEL	19270412

/* Forms of tickets beside those of Kerberos 4, which have the number of their key (7.3.5). */
#define RXW_RXKAD_KVNO_ENCPART 213 /* the EncryptedData of a Kerberos 5 ticket */
#define RXW_RXKAD_KVNO_TICKET  256 /* a whole Kerberos 5 ticket */
/* Bytes of a ticket. */
#define RXW_RXKAD_TICKET_MIN 32
#define RXW_RXKAD_TICKET_MAX 12000

/*
 * A ticket and what its holder must know of it. Made by rxw_rxkad_print_token(), or filled by who
 * got the ticket from elsewhere; what is allocated is given back with rxw_rxkad_token_free(). The
 * session key is a secret.
 */
struct rxw_rxkad_token {
	size_t size;
	int32_t kvno;		/* form, above, or the version of a Kerberos 4 ticket's key */
	uint8_t session_key[8]; /* of a Kerberos 5 ticket: by rxw_rxkad_session_key() */
	bool local;		/* made with the service's own key */
	void *ticket;		/* malloc() */
	size_t ticket_length;	/* RXW_RXKAD_TICKET_MIN..MAX */
	int64_t begins;		/* seconds since 1970; 0 since ever */
	int64_t expires;	/* the same; INT64_MAX never */
	char *client_name;	/* "user@REALM", malloc(); NULL where it is not known */
};

/* Wipe and free what the token holds, not the structure. NULL is allowed. */
void rxw_rxkad_token_free(struct rxw_rxkad_token *token);

/*
 * The session key of rxkad that goes with the session key of a Kerberos 5 ticket (7.3.6).
 * -RXW_ENOTSUP: an enctype that rxkad does not use; -RXW_EINVAL: a length that it cannot have;
 * -RXW_ESYS: libcrypto would not. Any thread.
 */
int rxw_rxkad_session_key(int32_t enctype, const void *key, size_t length, uint8_t session_key[8]);

/* Zero, set `size`, then fill. */
struct rxw_rxkad_print_options {
	size_t size;
	/*
	 * Whom the ticket is for, "user@REALM" or "user/instance@REALM", without '\'; NULL: "afs"
	 * of no realm, the service itself, whom servers take for the superuser.
	 */
	const char *name;
	uint32_t lifetime_s; /* from now on, up to 30 days; 0: from 1970 to 2038, as OpenAFS does */
	int64_t (*time)(void *context); /* seconds since 1970; NULL = the system's clock */
	void *time_context;
};

/*
 * Make a token with the newest Kerberos key of `keys`, as who holds a service's keys may (7.3.9);
 * `options` may be NULL. Set token->size before. -RXW_EINVAL; -RXW_ENOKEY: no RXW_KEY_KRB5 key;
 * -RXW_ENOTSUP: libkrb5 does not know its enctype; -RXW_ENOMEM; -RXW_ESYS: no random bytes. Any
 * thread.
 */
int rxw_rxkad_print_token(rxw_keys *keys, const struct rxw_rxkad_print_options *options,
			  struct rxw_rxkad_token *token);

/* Zero, set `size`, then fill. */
struct rxw_rxkad_server_options {
	size_t size;
	rxw_keys
		*keys; /* those of types RXW_KEY_KRB5 and _DES open tickets; a reference is taken */
	uint8_t level_min; /* enum rxw_level: what clients ask for must be as strong */
	/*
	 * Take tickets of Kerberos 4 and tickets under single DES keys: who has seen one can find
	 * the service's key in hours.
	 */
	bool allow_single_des;
	bool allow_dotted; /* principals with a dot in their first component: "a.b" is also a/b */
	/* A principal "afs" of this realm is the service itself, as that of no realm. NULL: none */
	const char *local_realm;
	int64_t (*time)(void *context); /* seconds since 1970; NULL = the system's clock */
	void *time_context;
};

/*
 * The server side, for struct rxw_service_options. Keys are looked up whenever a connection is
 * authenticated, so those that come later count. -RXW_EINVAL; -RXW_ENOTSUP: single DES is asked for
 * and libcrypto's legacy provider is not there; -RXW_ENOMEM.
 */
int rxw_rxkad_server(const struct rxw_rxkad_server_options *options, rxw_security **security);

/*
 * The client side, for rxw_connection_create(): the token is copied; `level` (enum rxw_level) is
 * that of the connections. -RXW_EINVAL: a level or a ticket's length that cannot be; -RXW_ENOMEM.
 * A server that wants a stronger level ends the connection with RXW_RXKAD_LEVELFAIL.
 */
int rxw_rxkad_client(const struct rxw_rxkad_token *token, uint8_t level, rxw_security **security);

#ifdef __cplusplus
}
#endif
#endif
