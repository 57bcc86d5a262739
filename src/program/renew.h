/* SPDX-License-Identifier: BSD-2-Clause */
/* Renewal of the token of a long-running program. */
#ifndef TOOLS_RENEW_H
#define TOOLS_RENEW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/token.h>

#include "program/address.h"
#include "program/auth.h"

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

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stopping;
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
