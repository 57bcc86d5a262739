/* SPDX-License-Identifier: BSD-2-Clause */
/* Renewal of the token of a long-running program. */
#include <assert.h>
#include <time.h>

#include <rxwire/error.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "common/held.h"
#include "program/renew.h"

#define AHEAD_S	  300	/* renew this long before the token expires */
#define LONGEST_S 86400 /* longest sleep of the thread without reading the clock */

/* Time of the renewal: five minutes, or a quarter of the lifetime, before the end. */
static void plan_renewal(struct tools_renewal *r)
{
	struct rxw_token_details info = {.size = sizeof(info)};
	int64_t now = time(NULL), left;

	if (!r->token || rxw_token_info(r->token, &info) < 0)
		info.expires = INT64_MAX;
	atomic_store(&r->ends, info.expires);
	r->at = INT64_MAX;
	if (info.expires == INT64_MAX)
		return;
	left = (info.expires - now) / 4;
	r->at = info.expires - (left < AHEAD_S ? left : AHEAD_S);
	if (r->at <= now)
		r->at = now + 1;
}

/* Replace the token by one that lasts longer. */
static bool replace_token(struct tools_renewal *r)
{
	struct rxw_token_details old = {.size = sizeof(old)}, info = {.size = sizeof(info)};
	char message[TOOLS_AUTH_MESSAGE];
	rxw_token *token;
	bool good;

	if (tools_auth_token(&r->auth, r->server, &token, message, sizeof(message)) < 0)
		return false;
	good = rxw_token_info(r->token, &old) == 0 && rxw_token_info(token, &info) == 0 &&
	       info.expires > old.expires && r->use(r->arg, token);
	if (!good) {
		rxw_token_unref(token);
		return false;
	}
	rxw_token_unref(r->token);
	r->token = token;
	atomic_fetch_add(&r->count, 1);
	return true;
}

int tools_renewal_open(struct tools_renewal *r, const struct tools_auth *auth,
		       const struct tools_address *server, tools_renewal_use *use, void *arg,
		       char *message, size_t size)
{
	*r = (struct tools_renewal){.auth = *auth,
				    .server = server,
				    .use = use,
				    .arg = arg,
				    .at = INT64_MAX,
				    .ends = INT64_MAX};
	if (tools_auth_token(auth, server, &r->token, message, size) < 0)
		return -1;
	plan_renewal(r);
	return 0;
}

void tools_renewal_close(struct tools_renewal *r)
{
	tools_renewal_stop(r);
	rxw_token_unref(r->token);
	r->token = NULL;
}

rxw_security *tools_renewal_security(const struct tools_renewal *r)
{
	return r->token ? rxw_token_security(r->token) : NULL;
}

void tools_renewal_fresh(struct tools_renewal *r)
{
	if (!r->token || time(NULL) < r->at)
		return;
	replace_token(r);
	plan_renewal(r);
}

bool tools_renewal_again(struct tools_renewal *r)
{
	bool found = r->token && replace_token(r);

	if (found)
		plan_renewal(r);
	return found;
}

bool tools_renewal_expired(int32_t code, enum rxw_origin origin)
{
	return origin == RXW_ORIGIN_PEER && (code == RXW_RXKAD_EXPIRED || code == RXW_RXGK_EXPIRED);
}

bool tools_renewal_refused(const struct tools_renewal *r, int result)
{
	int64_t ends = atomic_load(&r->ends);

	return result == -RXW_ECALL && ends && ends != INT64_MAX;
}

bool tools_renewal_over(const struct tools_renewal *r)
{
	return atomic_load(&r->ends) <= time(NULL);
}

/*
 * Wait until it is time, a request comes, or the thread is stopped. Returns the last request, 0 if
 * there is none.
 */
static uint64_t await_renewal(struct tools_renewal *r)
{
	assert(mutex_is_held(&r->lock));
	for (;;) {
		uint64_t asked = atomic_load(&r->asked);
		int64_t now = time(NULL), at = r->at - now < LONGEST_S ? r->at : now + LONGEST_S;
		struct timespec until = {.tv_sec = at};

		if (asked > atomic_load(&r->answered))
			return asked;
		if (r->stopping || now >= r->at)
			return 0;
		pthread_cond_timedwait(&r->wake, &r->lock, &until);
	}
}

static void *renew_until_stopped(void *arg)
{
	struct tools_renewal *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stopping) {
		uint64_t asked = await_renewal(r);

		if (r->stopping)
			break;
		pthread_mutex_unlock(&r->lock);
		replace_token(r);
		plan_renewal(r);
		/* Written after `count`, which shows whether the request succeeded. */
		if (asked)
			atomic_store(&r->answered, asked);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int tools_renewal_start(struct tools_renewal *r)
{
	int rc;

	if (!r->token || r->at == INT64_MAX)
		return 0;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	rc = pthread_create(&r->thread, NULL, renew_until_stopped, r);
	r->running = rc == 0;
	if (rc) {
		pthread_cond_destroy(&r->wake);
		pthread_mutex_destroy(&r->lock);
	}
	return rc;
}

void tools_renewal_stop(struct tools_renewal *r)
{
	if (!r->running)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	r->running = false;
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
}

bool tools_renewal_answered(struct tools_renewal *r, uint64_t count, uint64_t *question, bool *vain)
{
	bool over = !r->running || (*question && atomic_load(&r->answered) >= *question);

	/* Read after `answered`, because it is written before: a success is never missed. */
	*vain = false;
	if (atomic_load(&r->count) != count)
		return true;
	*vain = over;
	if (over || *question)
		return false;
	pthread_mutex_lock(&r->lock);
	*question = atomic_fetch_add(&r->asked, 1) + 1;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	return false;
}
