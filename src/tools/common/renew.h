/* SPDX-License-Identifier: BSD-2-Clause */
/* The token of a program that runs for longer than one lasts. */
#ifndef TOOLS_RENEW_H
#define TOOLS_RENEW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/token.h>

#include "tools/common/address.h"
#include "tools/common/auth.h"

/*
 * Calls that begin from now on are to go on connections of that token. False: not all can, the
 * program stays with what it has and is asked again later.
 */
typedef bool tools_renewal_use(void *arg, rxw_token *token);

/*
 * A token, and the next one: looked for five minutes before its end, or when three quarters of it
 * are over, and where a call ended because its token had. There is one if kinit has renewed the
 * ticket, or a keytab gives another.
 *
 * By default it is looked for where the program says so, tools_renewal_fresh() and
 * tools_renewal_again(), on one thread. After tools_renewal_start() a thread does it, since looking
 * may take as long as the KDC does; what is said of any thread below is for that case.
 */
struct tools_renewal {
	struct tools_auth auth;
	const struct tools_address *server;
	rxw_token *token; /* NULL: the null class. Changed by who looks */
	int64_t at;	  /* who looks: when, seconds since 1970; INT64_MAX never */
	tools_renewal_use *use;
	void *arg;
	_Atomic int64_t ends; /* of the token, seconds since 1970; INT64_MAX never; 0 there is none */
	_Atomic uint64_t count; /* tokens that took the place of another, once use() has returned */
	_Atomic uint64_t asked, answered; /* questions so far; the last one whose look is over */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stopping;
};

/*
 * The first token, as tools_auth_token(); *server and the strings of *auth stay with the caller. 0,
 * or -1 with a line in message. tools_renewal_close() in any case, and on one that is all zeros,
 * too.
 */
int tools_renewal_open(struct tools_renewal *r, const struct tools_auth *auth,
		       const struct tools_address *server, tools_renewal_use *use, void *arg,
		       char *message, size_t size);
void tools_renewal_close(struct tools_renewal *r);
/* For rxw_connection_create(); NULL: the null class. Lives until another takes its place. */
rxw_security *tools_renewal_security(const struct tools_renewal *r);

/* Before a call: look for another token if it is time to. */
void tools_renewal_fresh(struct tools_renewal *r);
/*
 * After a call that ended for its token's end: true: there is another, so that it may be tried
 * again.
 */
bool tools_renewal_again(struct tools_renewal *r);
/* Whether that is what a call ended for. */
bool tools_renewal_expired(int32_t code, enum rxw_origin origin);
/*
 * Whether it may be why no call can begin, by the library's result: the connection is in error, and
 * nobody says which it was. Only of a token that has an end.
 */
bool tools_renewal_refused(const struct tools_renewal *r, int result);
/* Whether the token's end is over by our clock. Any thread. */
bool tools_renewal_over(const struct tools_renewal *r);

/*
 * From here on a thread looks and calls use(). 0, or an errno value. Nothing to do without a token
 * that ends.
 */
int tools_renewal_start(struct tools_renewal *r);
/* No more; use() has returned. Also done by tools_renewal_close(). */
void tools_renewal_stop(struct tools_renewal *r);
/*
 * A call that was begun when `count` was so much ended for its token's end: whether there is
 * another by now. If not, *question, 0 so far, is put to the thread; true in *vain: its answer was
 * no. Any thread, blocks for nothing.
 */
bool tools_renewal_answered(struct tools_renewal *r, uint64_t count, uint64_t *question,
			    bool *vain);

#endif
