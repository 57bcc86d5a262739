/* SPDX-License-Identifier: BSD-2-Clause */
/* Credentials of a client, from Kerberos tickets, a keytab or service keys. See rxw_token(3). */
#ifndef RXWIRE_TOKEN_H
#define RXWIRE_TOKEN_H

#include <stdbool.h>

#include <rxwire/keys.h>
#include <rxwire/security.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Authenticates a client to the servers of a cell. Reference counted; any thread. */
typedef struct rxw_token rxw_token;

/* Origin of a token. */
enum rxw_token_source {
	RXW_TOKEN_CACHE,  /* a ticket for the cell, obtained with a credential cache */
	RXW_TOKEN_KEYTAB, /* a ticket for the cell, obtained with a key of a principal */
	RXW_TOKEN_LOCAL	  /* made with the service keys, as servers of the cell do ("localauth") */
};

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_token_options {
	size_t size;
	enum rxw_token_source source;
	uint8_t index; /* RXW_RXKAD_INDEX (2), RXW_RXGK_INDEX (4) or RXW_RXGK_INDEX_YFS (6) */
	uint8_t level; /* enum rxw_level of the connections */
	/*
	 * "example.org". The ticket is for afs/CELL, or for afs in the realm that is named like
	 * the cell or given below; with rxgk for afs-rxgk/_afs.CELL.
	 */
	const char *cell;
	/*
	 * NULL: these are tried in order: the realm in the Kerberos configuration, CELL in
	 * capitals, the realm of the client.
	 */
	const char *realm;
	const char *cache;  /* credential cache, "FILE:/tmp/…"; NULL = default cache */
	const char *keytab; /* RXW_TOKEN_KEYTAB: a file */
	/*
	 * RXW_TOKEN_KEYTAB: principal of the key, NULL = first entry. RXW_TOKEN_LOCAL:
	 * "user@REALM", NULL = the service itself, which servers treat as superuser.
	 */
	const char *client;
	rxw_keys *keys;	     /* RXW_TOKEN_LOCAL */
	uint32_t lifetime_s; /* RXW_TOKEN_LOCAL; 0 = never expires (rxgk), until 2038 (rxkad) */
	/*
	 * rxgk, except for RXW_TOKEN_LOCAL: address of the negotiation service of the cell, which
	 * issues a token for the ticket. Required. Servers that have a key for it offer it on
	 * their own ports.
	 */
	const struct sockaddr *server;
	socklen_t server_len;
	rxw_endpoint *endpoint; /* calls the negotiation service; NULL = a temporary one */
};

/*
 * Get a token. May wait for the KDC, as long as libkrb5 does, and for the negotiation service.
 * With RXW_TOKEN_CACHE the ticket is taken from the cache, or stored there. The caller owns
 * *token.
 *
 * -RXW_ENOKEY: no such ticket or key, it has expired, or the KDC knows none of the principals;
 * -RXW_ENOTSUP: the class cannot use the enctype; -RXW_ECALL: the negotiation service refused or
 * did not answer; -RXW_EDECODE: its answer is invalid or not authentic; -RXW_EINVAL; -RXW_ENOMEM;
 * -RXW_ESYS. On failure `error`, of `room` bytes unless that is 0, receives a message, which
 * never contains a key.
 */
RXW_MUST_USE
int rxw_token_create(const struct rxw_token_options *options, rxw_token **token, char *error,
		     size_t room);
rxw_token *rxw_token_ref(rxw_token *token);
/* NULL is ignored. Connections that use the token are not affected. */
void rxw_token_unref(rxw_token *token);

/* For rxw_connection_create(), which takes a reference of its own. Valid as long as the token. */
rxw_security *rxw_token_security(const rxw_token *token);

/*
 * Description of a token. Set `size` before the call. The strings are valid as long as the token.
 */
struct rxw_token_details {
	size_t size;
	uint8_t index, level; /* as in the options */
	bool local;	      /* made with the service keys */
	int32_t enctype;      /* of the session key; 0 = unknown */
	const char *client;   /* "user@REALM"; NULL = the service itself */
	/* "afs/example.org@REALM", "afs-rxgk/_afs.example.org"; NULL for RXW_TOKEN_LOCAL */
	const char *service;
	int64_t begins;	 /* seconds since 1970; 0 = no start time */
	int64_t expires; /* seconds since 1970; INT64_MAX = never; get another token before */
};
/* 0, or -RXW_EINVAL: `size` is not set. */
int rxw_token_info(const rxw_token *token, struct rxw_token_details *info);

#ifdef __cplusplus
}
#endif
#endif
