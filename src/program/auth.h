/* SPDX-License-Identifier: BSD-2-Clause */
/* Authentication: the tokens of clients, and the keys and security classes of servers. */
#ifndef TOOLS_AUTH_H
#define TOOLS_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/rxwire.h>
#include <rxwire/token.h>

#include "program/address.h"

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

/* Options of the command line. Strings that were not given are NULL. */
struct tools_auth {
	int class;	      /* enum tools_class, or -1 */
	int level;	      /* enum rxw_level, or -1 */
	const char *key_file; /* keys of the service: keytab, KeyFileExt or KeyFile */
	const char *keytab;   /* the client's own key */
	const char *cell, *realm, *principal;
	bool single_des; /* server: accept tickets under single DES */
};

/*
 * The token of a client: from --key-file (made with the service's keys), --keytab or the credential
 * cache (both need --cell). server: negotiates tokens of rxgk. *token is NULL for the null class.
 * 0, or -1 with a line in message.
 */
int tools_auth_token(const struct tools_auth *auth, const struct tools_address *server,
		     rxw_token **token, char *message, size_t size);

/*
 * The keys of a server, and its negotiation service for rxgk: NULL unless auth->cell is given and
 * the file is a keytab with the key of afs-rxgk/_afs.CELL. Tokens are sealed with the newest rxgk
 * key that is loaded; without one, with a random key that exists only in this process.
 */
struct tools_keys {
	rxw_keys *keys;
	rxw_rxgk_negotiation *negotiation;
};

/*
 * Load the keys of auth->principal or auth->cell from auth->key_file. 0, or -1 with a line in
 * message; after success it is empty or a warning.
 */
int tools_keys_open(struct tools_keys *keys, const struct tools_auth *auth, char *message,
		    size_t size);
/* Free the keys. The endpoints that offer the negotiation service must be destroyed. */
void tools_keys_close(struct tools_keys *keys);
/*
 * Offer the negotiation service on the endpoint, if there is one. 0 or a negative result of the
 * library.
 */
int tools_keys_offer(const struct tools_keys *keys, rxw_endpoint *endpoint);

/* The keys of a server and the classes that it offers with them. */
struct tools_guard {
	rxw_keys *keys;			   /* NULL: only the null class */
	rxw_rxgk_negotiation *negotiation; /* of tools_guard_open() only; NULL: none */
	rxw_security *classes[3];
	size_t count;
};

/*
 * Create the classes of a server: the one that auth->class names or, if that is -1, all classes
 * with keys. `null` adds the null class. auth->level is the minimal level of each. 0, or -1 with a
 * line in message, which is empty or a warning after success with keys.
 */
int tools_guard_open(struct tools_guard *guard, const struct tools_auth *auth, bool null,
		     char *message, size_t size);
/*
 * Create the classes with loaded keys, which several services may share. Takes a reference. NULL:
 * no keys.
 */
int tools_guard_with(struct tools_guard *guard, rxw_keys *keys, const struct tools_auth *auth,
		     bool null, char *message, size_t size);
/* Offer the negotiation service, if the guard has one. 0 or a negative result of the library. */
int tools_guard_offer(const struct tools_guard *guard, rxw_endpoint *endpoint);
void tools_guard_close(struct tools_guard *guard);

/*
 * Create a file with keys of rxkad and rxgk, readable only by its owner, unless it exists. 0, or -1
 * with a line in message.
 */
int tools_make_keys(const char *path, char *message, size_t size);

/* "rxkad", "auth": static. */
const char *tools_class_name(unsigned index);
const char *tools_level_name(unsigned level);
/*
 * "alice@EXAMPLE.ORG (rxkad, crypt)", "the service itself (…)" or "anonymous"; cut at size. Returns
 * text.
 */
char *tools_identity_text(const struct rxw_identity *identity, char *text, size_t size);

#endif
