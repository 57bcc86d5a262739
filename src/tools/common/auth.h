/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a program is to its servers, and what a server asks of its clients. */
#ifndef TOOLS_AUTH_H
#define TOOLS_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/rxwire.h>
#include <rxwire/token.h>

#include "tools/common/address.h"

/* Choices of -x; -1 = not given. */
#define TOOLS_CLASSES "null|rxkad|rxgk"
enum tools_class {
	TOOLS_NULL,
	TOOLS_RXKAD,
	TOOLS_RXGK
};
/* Choices of --level, as enum rxw_level. */
#define TOOLS_LEVELS	   "clear|auth|crypt"

#define TOOLS_AUTH_MESSAGE 512
#define TOOLS_IDENTITY	   320

/* What a command line says. Strings are NULL where they are not given. */
struct tools_auth {
	int class;	      /* enum tools_class, or -1 */
	int level;	      /* enum rxw_level, or -1 */
	const char *key_file; /* keys of the service: keytab, KeyFileExt or KeyFile */
	const char *keytab;   /* key of the client's own */
	const char *cell, *realm, *principal;
	bool single_des; /* server: take tickets that single DES protects */
};

/*
 * The token of a client: from --key-file (made with the service's keys), --keytab or the credential cache (both
 * need --cell). server: who is asked for tokens of rxgk. *token is NULL for the null class. 0, or -1 with a line
 * in message.
 */
int tools_auth_token(const struct tools_auth *auth, const struct tools_address *server,
		     rxw_token **token, char *message, size_t size);

/*
 * The keys of a server, and what gives tokens of rxgk to who has a Kerberos ticket: NULL unless auth->cell is given
 * and the file is a keytab with the key of afs-rxgk/_afs.CELL. Tokens are then sealed with the newest rxgk key
 * that is loaded; without one, with a key that is made here and ends with the process.
 */
struct tools_keys {
	rxw_keys *keys;
	rxw_rxgk_negotiation *negotiation;
};

/*
 * From auth->key_file, those of auth->principal or auth->cell. 0, or -1 with a line in message; after
 * success it is empty or has a warning.
 */
int tools_keys_open(struct tools_keys *keys, const struct tools_auth *auth, char *message,
		    size_t size);
/* Only when the endpoints that have the negotiation service are gone. */
void tools_keys_close(struct tools_keys *keys);
/* Offer the negotiation service there, if there is one. 0 or a negative result of the library. */
int tools_keys_offer(const struct tools_keys *keys, rxw_endpoint *endpoint);

/* The keys of a server and the classes that it offers with them. */
struct tools_guard {
	rxw_keys *keys;			   /* NULL: the null class alone */
	rxw_rxgk_negotiation *negotiation; /* of tools_guard_open() only; NULL: none */
	rxw_security *classes[3];
	size_t count;
};

/*
 * The classes of a server: the one of auth->class, or (-1) all for which there are keys, with the null class if
 * that is allowed. auth->level is the least that each accepts. 0, or -1 with a line in message; with keys it has a
 * warning after success, or is empty.
 */
int tools_guard_open(struct tools_guard *guard, const struct tools_auth *auth, bool null,
		     char *message, size_t size);
/* The same with keys that are loaded: several services share them. A reference is taken; NULL: none. */
int tools_guard_with(struct tools_guard *guard, rxw_keys *keys, const struct tools_auth *auth,
		     bool null, char *message, size_t size);
/* The negotiation service of the guard, if it has one. 0 or a negative result of the library. */
int tools_guard_offer(const struct tools_guard *guard, rxw_endpoint *endpoint);
void tools_guard_close(struct tools_guard *guard);

/*
 * A file of keys for a run, of rxkad and rxgk, if there is none of that name; only its owner can read it. 0, or -1
 * with a line in message.
 */
int tools_make_keys(const char *path, char *message, size_t size);

/* "rxkad", "auth": static. */
const char *tools_class_name(unsigned index);
const char *tools_level_name(unsigned level);
/* "alice@EXAMPLE.ORG (rxkad, crypt)", "the service itself (…)" or "anonymous"; cut at size. Returns text. */
char *tools_identity_text(const struct rxw_identity *identity, char *text, size_t size);

#endif
