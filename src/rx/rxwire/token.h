/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of a client: from Kerberos tickets, a keytab or a service's own keys to a security class. */
#ifndef RXWIRE_TOKEN_H
#define RXWIRE_TOKEN_H

#include <stdbool.h>

#include <rxwire/keys.h>
#include <rxwire/security.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What proves to the servers of a cell who we are. Counted; any thread. */
typedef struct rxw_token rxw_token;

/* Where a token comes from. */
enum rxw_token_source {
	RXW_TOKEN_CACHE,  /* a ticket for the cell, got with the tickets of a credential cache */
	RXW_TOKEN_KEYTAB, /* a ticket for the cell, got with a key of a principal's own */
	RXW_TOKEN_LOCAL   /* made with the service's keys, as its own servers and tools do ("localauth") */
};

/* Zero, set `size`, then fill. */
struct rxw_token_options {
	size_t size;
	enum rxw_token_source source;
	uint8_t index; /* class: RXW_RXKAD_INDEX (2), RXW_RXGK_INDEX (4) or RXW_RXGK_INDEX_YFS (6) */
	uint8_t level; /* enum rxw_level, of the connections */
	/*
	 * "example.org"; the ticket is for afs/CELL, else (of the realm called like it, or given) afs; with
	 * rxgk for afs-rxgk/_afs.CELL
	 */
	const char *cell;
	/* NULL: tried in turn, that which the configuration says, CELL in capitals, the client's own */
	const char *realm;
	const char *cache;  /* credential cache, "FILE:/tmp/…"; NULL = the default one */
	const char *keytab; /* RXW_TOKEN_KEYTAB: a file */
	/*
	 * RXW_TOKEN_KEYTAB: whose key, NULL = of the first entry. RXW_TOKEN_LOCAL: for whom, "user@REALM",
	 * NULL = the service itself, whom its servers take for the superuser.
	 */
	const char *client;
	rxw_keys *keys;      /* RXW_TOKEN_LOCAL */
	uint32_t lifetime_s; /* RXW_TOKEN_LOCAL; 0 = as long as it goes */
	/*
	 * rxgk, but for RXW_TOKEN_LOCAL: where the negotiation service of the cell is, which gives a token for
	 * the ticket. Needed; servers that have a key for it offer it on their own ports.
	 */
	const struct sockaddr *server;
	socklen_t server_len;
	rxw_endpoint *endpoint; /* that asks it; NULL = one of its own for as long as that takes */
};

/*
 * Get a token; may ask the KDC, and then takes as long as libkrb5 waits for it. With RXW_TOKEN_CACHE the ticket is
 * the one that the cache has, or is put there.
 *
 * -RXW_ENOKEY: there is no such ticket or key, it has expired, or the KDC knows none of the names; -RXW_ENOTSUP:
 * one of an enctype that the class cannot use; -RXW_ECALL: the negotiation service refuses or does not answer;
 * -RXW_EDECODE: its answer is not to be believed; -RXW_EINVAL; -RXW_ENOMEM; -RXW_ESYS. error, of room bytes if room
 * is not 0, then has a sentence that says what is missing; it never has a key in it.
 */
int rxw_token_create(const struct rxw_token_options *options, rxw_token **token, char *error, size_t room);
rxw_token *rxw_token_ref(rxw_token *token);
/* NULL is allowed. Connections that were made with it go on. */
void rxw_token_unref(rxw_token *token);

/* For rxw_connection_create(), which takes a reference of its own; lives as long as the token. */
rxw_security *rxw_token_security(const rxw_token *token);

/* What a token is; set `size` before asking. Strings live as long as the token. */
struct rxw_token_info {
	size_t size;
	uint8_t index, level; /* as in the options */
	bool local;	      /* made with the service's own keys */
	int32_t enctype;      /* of the ticket's session key; 0 = not known */
	const char *client;   /* "user@REALM"; NULL: the service itself */
	/* "afs/example.org@REALM", "afs-rxgk/_afs.example.org"; NULL for RXW_TOKEN_LOCAL */
	const char *service;
	int64_t begins;	      /* seconds since 1970, 0 since ever */
	int64_t expires;      /* the same, INT64_MAX never; get another one, and new connections, before */
};
/* -RXW_EINVAL: no size. */
int rxw_token_info(const rxw_token *token, struct rxw_token_info *info);

#ifdef __cplusplus
}
#endif
#endif
