/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions for AFS and for programs of classic Rx: rxfsd and librxwire-classic call them. They, and
 * those of rpcstats.h, have a version of their own, RXWIRE_AFS_0. See rxw_rxkad(3),
 * rxw_connection_create(3), rxw_call_begin(3), rxw_rpcstats(3).
 */
#ifndef RXWIRE_AFS_H
#define RXWIRE_AFS_H

#include <rxwire/rpcstats.h>
#include <rxwire/rxkad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- packets and addresses ------------------------------------------------------------------ */

/* Status byte of packets to send, and of the latest packet of the peer (rx-protocol 1.10). */
void rxw_call_set_status(rxw_call *call, uint8_t status);
uint8_t rxw_call_peer_status(const rxw_call *call);

/*
 * Send from this address of the machine, whatever routing would choose; the port is that of the
 * endpoint. A server that listens on all addresses calls a client back from the one that the client
 * knows (rxw_call_local()). No effect if the endpoint has one address. Before the first call of the
 * connection, which fails if the machine does not have the address, and before
 * rxw_connection_set_nat_ping(); afterwards -RXW_ESTATE. -RXW_EINVAL: also for a connection of a server,
 * or an address of another family than that of the peer. Any thread.
 */
int rxw_connection_set_local(rxw_connection *connection, const struct sockaddr *local,
			     socklen_t local_len);

/*
 * Send a packet of 29 bytes to the server every so many seconds (1 to 3,600), also without calls, as
 * long as the connection is owned and not in error (rx-protocol 6.5). A NAT then keeps its mapping, and
 * calls of the server reach this endpoint, such as callbacks. Servers do not answer it. 0, the
 * default: none. During a call the library sends keepalives anyway. -RXW_EINVAL, also for a
 * connection of a server. Any thread, until the connection is released.
 */
int rxw_connection_set_nat_ping(rxw_connection *connection, unsigned seconds);

/* -- tickets of rxkad from elsewhere; rxw_token_create() gets them from Kerberos ------------ */

/*
 * A ticket, with the data that its holder needs. Created by rxw_rxkad_print_token(), or filled in
 * by the application with a ticket from elsewhere. Free its contents with rxw_rxkad_token_free().
 * The session key is secret.
 */
struct rxw_rxkad_token {
	size_t size;
	int32_t kvno;		/* form, see above, or key version of a Kerberos 4 ticket */
	uint8_t session_key[8]; /* of a Kerberos 5 ticket: from rxw_rxkad_session_key() */
	bool local;		/* made with the service key */
	void *ticket;		/* malloc() */
	size_t ticket_length;	/* RXW_RXKAD_TICKET_MIN..MAX */
	int64_t begins;		/* seconds since 1970; 0 = no start time */
	int64_t expires;	/* seconds since 1970; INT64_MAX = never */
	char *client_name;	/* "user@REALM", malloc(); NULL = unknown */
};

/* Wipe and free the contents of a token, but not the structure. NULL is ignored. */
void rxw_rxkad_token_free(struct rxw_rxkad_token *token);

/*
 * Derive the session key of rxkad from that of a Kerberos 5 ticket (rx-protocol 7.3.6).
 * -RXW_ENOTSUP: rxkad does not support the enctype; -RXW_EINVAL: wrong length; -RXW_ESYS:
 * libcrypto failed. Any thread.
 */
RXW_MUST_USE
int rxw_rxkad_session_key(int32_t enctype, const void *key, size_t length, uint8_t session_key[8]);

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxkad_print_options {
	size_t size;
	/*
	 * "user@REALM" or "user/instance@REALM", without '\'. NULL: "afs" without a realm, the
	 * service itself, which servers treat as superuser.
	 */
	const char *name;
	uint32_t lifetime_s;		/* up to 30 days; 0: from 1970 to 2038, as OpenAFS does */
	int64_t (*time)(void *context); /* seconds since 1970; NULL = system clock */
	void *time_context;
	/*
	 * The service key to seal the ticket with, of `key_length` bytes, and its numbers. Not of
	 * single DES. NULL: the newest of `keys`.
	 */
	const void *key;
	size_t key_length;
	int32_t kvno, enctype;
	/* 8 bytes: a DES key with odd parity that is not weak; NULL: a random one */
	const void *session_key;
	/*
	 * Seconds since 1970, and lifetime_s must be 0. Servers refuse a ticket of more than 30
	 * days unless `begins` is 0. `expires` 0: by lifetime_s.
	 */
	int64_t begins, expires;
};

/*
 * Create a token with the newest Kerberos key of `keys` (rx-protocol 7.3.9), or with that of the
 * options; `keys` may then be NULL. `options` may be NULL. Set token->size before. -RXW_EINVAL;
 * -RXW_ENOKEY: no RXW_KEY_KRB5 key; -RXW_ENOTSUP: libkrb5 does not support its enctype;
 * -RXW_ENOMEM; -RXW_ESYS: no random numbers. Any thread.
 */
RXW_MUST_USE
int rxw_rxkad_print_token(rxw_keys *keys, const struct rxw_rxkad_print_options *options,
			  struct rxw_rxkad_token *token);

/*
 * Change `allow_dotted` of a server side that exists, for clients that authenticate from now on.
 * -RXW_EINVAL: NULL, or not made by rxw_rxkad_server(). Any thread.
 */
int rxw_rxkad_allow_dotted(rxw_security *security, int allow);

/*
 * The client side, for rxw_connection_create(). The token is copied; `level` (enum rxw_level) is
 * that of the connections. If the server requires a stronger level, the connection ends with
 * RXW_RXKAD_LEVELFAIL. The caller owns *security. -RXW_EINVAL: the level or the ticket length is
 * invalid; -RXW_ENOMEM. Any thread.
 */
RXW_MUST_USE
int rxw_rxkad_client(const struct rxw_rxkad_token *token, uint8_t level, rxw_security **security);

#ifdef __cplusplus
}
#endif
#endif
