/* SPDX-License-Identifier: BSD-2-Clause */
/* Authentication: the tokens of clients and their renewal, the keys and security classes of servers. */
#ifndef TOOLS_AUTH_H
#define TOOLS_AUTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/rxwire.h>
#include <rxwire/token.h>

#include "common/background.h"
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

/*
 * Use this token for calls that begin from now on. False: that failed, the old token stays in use,
 * and the function is called again later.
 */
typedef bool tools_renewal_use(void *arg, rxw_token *token);

/*
 * A token and its successor. The successor is looked for five minutes before the token expires, or
 * when three quarters of its lifetime are over; also when a call failed because the token expired.
 * There is one if kinit has renewed the ticket, or if a keytab provides another.
 *
 * By default this happens in tools_renewal_fresh() and tools_renewal_again(), on one thread. After
 * tools_renewal_start() a separate thread does it, because a KDC may be slow. "Any thread" below
 * applies to that case.
 */
struct tools_renewal {
	struct tools_auth auth;
	const struct tools_address *server;
	rxw_token *token; /* NULL: the null class. Changed by the thread that renews */
	int64_t at;	  /* of that thread: next attempt, seconds since 1970; INT64_MAX never */
	tools_renewal_use *use;
	void *arg;
	_Atomic int64_t
		ends; /* end of the token, seconds since 1970; INT64_MAX never; 0: no token */
	_Atomic uint64_t count;		  /* successful renewals; use() has returned */
	_Atomic uint64_t asked, answered; /* requests so far; the last one that is completed */

	struct background thread;
	bool running;
};

/*
 * Get the first token, like tools_auth_token(); *server and the strings of *auth stay owned by the
 * caller. 0, or -1 with a line in message. Call tools_renewal_close() in either case; it also
 * accepts a structure of zeros.
 */
int tools_renewal_open(struct tools_renewal *r, const struct tools_auth *auth,
		       const struct tools_address *server, tools_renewal_use *use, void *arg,
		       char *message, size_t size);
void tools_renewal_close(struct tools_renewal *r);
/* The class for rxw_connection_create(), valid until the next renewal. NULL: the null class. */
rxw_security *tools_renewal_security(const struct tools_renewal *r);

/* Renew the token before a call if it is time. */
void tools_renewal_fresh(struct tools_renewal *r);
/*
 * Look for a new token after a call that failed because its token expired. True: there is one, so
 * the call may be repeated.
 */
bool tools_renewal_again(struct tools_renewal *r);
/* Whether a call failed because its token expired. */
bool tools_renewal_expired(int32_t code, enum rxw_origin origin);
/*
 * Whether an expired token may be the reason why a call cannot begin, judging by the result of the
 * library: the connection is in error for an unknown reason. False for a token without an end.
 */
bool tools_renewal_refused(const struct tools_renewal *r, int result);
/* Whether the token has expired by the local clock. Any thread. */
bool tools_renewal_over(const struct tools_renewal *r);

/*
 * Start a thread that renews the token and calls use(). 0, or an errno value. Does nothing without
 * a token that expires.
 */
int tools_renewal_start(struct tools_renewal *r);
/* Stop that thread; use() has returned. tools_renewal_close() does this, too. */
void tools_renewal_stop(struct tools_renewal *r);
/*
 * A call that began when the renewals were `count` failed because its token expired: whether there
 * is a new token by now. If not, the thread is asked to renew, and *question, initially 0, stores
 * that request. *vain: the request was completed without success. Any thread; does not block.
 */
bool tools_renewal_answered(struct tools_renewal *r, uint64_t count, uint64_t *question,
			    bool *vain);

#endif
