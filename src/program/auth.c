/* SPDX-License-Identifier: BSD-2-Clause */
/* Authentication: the tokens of clients and their renewal, the keys and security classes of servers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/error.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "common/failure.h"
#include "program/auth.h"

#define KVNO	1
#define KEYTAB_MAGIC 5
#define ENCTYPE 18 /* aes256-cts-hmac-sha1-96, which OpenAFS and Linux also have */

/* Connections with our tokens change their keys after an hour, or 2^36 bytes. */
#define REKEY_S	    3600
#define REKEY_BYTES 36

const char *tools_class_name(unsigned index)
{
	switch (index) {
	case 0:
		return "null";
	case RXW_RXKAD_INDEX:
		return "rxkad";
	case RXW_RXGK_INDEX:
		return "rxgk";
	case RXW_RXGK_INDEX_YFS:
		return "yfs-rxgk";
	default:
		return "unknown";
	}
}

const char *tools_level_name(unsigned level)
{
	static const char *const names[] = {"clear", "auth", "crypt"};

	return level < 3 ? names[level] : "unknown";
}

char *tools_identity_text(const struct rxw_identity *identity, char *text, size_t size)
{
	const char *name = identity->name;

	if (!name)
		name = identity->local ? "the service itself" : "anonymous";
	if (identity->index == 0)
		snprintf(text, size, "%s", name);
	else
		snprintf(text, size, "%s (%s, %s)", name, tools_class_name(identity->index),
			 tools_level_name(identity->level));
	return text;
}

static bool has_keys_of_kind(rxw_keys *keys, bool rxgk)
{
	struct rxw_key_info info = {.size = sizeof(info)};

	for (size_t i = 0; rxw_keys_info(keys, i, &info) == 0; i++) {
		if ((info.type == RXW_KEY_RXGK) == rxgk)
			return true;
	}
	return false;
}

/*
 * Whether libkrb5 can have a use for the file of keys, unlike for a KeyFileExt or a KeyFile: these begin with other bytes, and
 * libkrb5 1.20 loses some memory of each that it is given as a keytab. Without a name it is the default keytab.
 */
static bool may_be_keytab(const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	uint8_t first = KEYTAB_MAGIC;

	if (fd >= 0 && read(fd, &first, 1) != 1)
		first = KEYTAB_MAGIC;
	if (fd >= 0)
		close(fd);
	return first == KEYTAB_MAGIC;
}

/* Open the negotiation service, if the file has its key. */
static int open_negotiation(struct tools_keys *keys, const struct tools_auth *auth, char *message,
			    size_t size)
{
	char service[256];
	struct rxw_rxgk_negotiation_options o = {
		.size = sizeof(o),
		.keys = keys->keys,
		.keytab = auth->key_file,
		.service = service,
		.level_min = auth->level < 0 ? RXW_LEVEL_CLEAR : (uint8_t)auth->level,
		.rekey_s = REKEY_S,
		.rekey_bytes = REKEY_BYTES};
	int n = auth->cell ? snprintf(service, sizeof(service), "afs-rxgk@_afs.%s", auth->cell) : 0,
	    rc;

	if (n <= 0 || (size_t)n >= sizeof(service) || auth->class == TOOLS_RXKAD ||
	    !may_be_keytab(auth->key_file))
		return 0;
	rc = rxw_rxgk_negotiation_create(&o, &keys->negotiation, NULL, 0);
	if (rc == -RXW_ENOKEY)
		return 0;
	/* A key version that no earlier run used, so that its tokens are recognised as old. */
	if (rc == 0 && !has_keys_of_kind(keys->keys, true))
		rc = rxw_keys_generate(keys->keys, RXW_KEY_RXGK, (int32_t)(time(NULL) & 0x7fffffff),
				       ENCTYPE);
	if (rc < 0)
		snprintf(message, size, "cannot issue rxgk tokens: %s", rxw_strerror(rc));
	return rc;
}

int tools_keys_open(struct tools_keys *keys, const struct tools_auth *auth, char *message,
		    size_t size)
{
	const char *whose = auth->principal ? auth->principal : auth->cell;
	int rc = rxw_keys_create(&keys->keys);

	keys->negotiation = NULL;
	if (rc < 0)
		return fail_with(-1, message, size, "no memory");
	rc = rxw_keys_load(keys->keys, auth->key_file, whose, message, size);
	if (rc < 0 && rc != -RXW_ENOKEY)
		goto fail;
	if (open_negotiation(keys, auth, message, size) < 0)
		goto fail;
	if (rc == 0)
		return 0;
	/* A keytab with only the key of rxgk is allowed. */
	if (keys->negotiation) {
		message[0] = '\0';
		return 0;
	}
fail:
	tools_keys_close(keys);
	return -1;
}

void tools_keys_close(struct tools_keys *keys)
{
	rxw_rxgk_negotiation_destroy(keys->negotiation);
	rxw_keys_unref(keys->keys);
	*keys = (struct tools_keys){0};
}

int tools_keys_offer(const struct tools_keys *keys, rxw_endpoint *endpoint)
{
	return keys->negotiation ? rxw_rxgk_negotiation_add(keys->negotiation, endpoint, NULL) : 0;
}

/*
 * The token of a client: from --key-file (made with the service's keys), --keytab or the credential
 * cache (both need --cell). server: negotiates tokens of rxgk. *token is NULL for the null class.
 * 0, or -1 with a line in message.
 */
static int tools_auth_token(const struct tools_auth *auth, const struct tools_address *server,
			    rxw_token **token, char *message, size_t size)
{
	const struct tools_auth own = {.key_file = auth->key_file};
	struct tools_keys keys = {0};
	struct rxw_token_options o = {.size = sizeof(o),
				      .level = auth->level < 0 ? RXW_LEVEL_CRYPT
							       : (uint8_t)auth->level,
				      .cell = auth->cell,
				      .realm = auth->realm,
				      .keytab = auth->keytab,
				      .client = auth->principal,
				      .server = (const struct sockaddr *)&server->sa,
				      .server_len = server->len};
	int rc;

	*token = NULL;
	if (auth->class <= TOOLS_NULL) {
		if (auth->level > RXW_LEVEL_CLEAR)
			return fail_with(-1, message, size, "--level %s needs -x rxkad or rxgk",
					 tools_level_name((unsigned)auth->level));
		return 0;
	}
	o.index = auth->class == TOOLS_RXKAD ? RXW_RXKAD_INDEX : RXW_RXGK_INDEX;
	if (!auth->key_file && !auth->cell)
		return fail_with(-1, message, size,
				 "-x %s needs keys: --key-file, or --cell and a Kerberos ticket",
				 tools_class_name(o.index));
	if (auth->key_file) {
		o.source = RXW_TOKEN_LOCAL;
		if (tools_keys_open(&keys, &own, message, size) < 0)
			return -1;
		o.keys = keys.keys;
	} else {
		o.source = auth->keytab ? RXW_TOKEN_KEYTAB : RXW_TOKEN_CACHE;
	}
	rc = rxw_token_create(&o, token, message, size);
	tools_keys_close(&keys);
	return rc < 0 ? -1 : 0;
}

/* Offer one of the classes that need keys. */
static int offer_class(struct tools_guard *guard, const struct tools_auth *auth, int class,
		       char *message, size_t size)
{
	struct rxw_rxkad_server_options kad = {.size = sizeof(kad), .keys = guard->keys};
	struct rxw_rxgk_server_options gk = {.size = sizeof(gk), .keys = guard->keys};
	int rc;

	kad.level_min = gk.level_min = auth->level < 0 ? RXW_LEVEL_CLEAR : (uint8_t)auth->level;
	kad.allow_single_des = auth->single_des;
	kad.local_realm = auth->realm;
	if (class == TOOLS_RXKAD)
		rc = rxw_rxkad_server(&kad, &guard->classes[guard->count]);
	else
		rc = rxw_rxgk_server(&gk, &guard->classes[guard->count]);
	if (rc < 0)
		return fail_with(-1, message, size, "class %s: %s",
				 class == TOOLS_RXKAD ? "rxkad" : "rxgk", rxw_strerror(rc));
	guard->count++;
	return 0;
}

/*
 * Create the classes with loaded keys, which several services may share. Takes a reference. NULL:
 * no keys.
 */
static int tools_guard_with(struct tools_guard *guard, rxw_keys *keys,
			    const struct tools_auth *auth, bool null, char *message, size_t size)
{
	*guard = (struct tools_guard){0};
	if (null)
		guard->classes[guard->count++] = rxw_security_null();
	if (!keys)
		return 0;
	guard->keys = rxw_keys_ref(keys);
	for (int class = TOOLS_RXKAD; class <= TOOLS_RXGK; class ++) {
		bool there = has_keys_of_kind(keys, class == TOOLS_RXGK);

		if (auth->class == class && !there) {
			snprintf(message, size, "%s: no key for %s", auth->key_file,
				 class == TOOLS_RXKAD ? "rxkad" : "rxgk");
			tools_guard_close(guard);
			return -1;
		}
		if (!there || (auth->class >= 0 && auth->class != class))
			continue;
		if (offer_class(guard, auth, class, message, size) < 0) {
			tools_guard_close(guard);
			return -1;
		}
	}
	return 0;
}

int tools_guard_open(struct tools_guard *guard, const struct tools_auth *auth, bool null,
		     char *message, size_t size)
{
	struct tools_keys keys = {0};

	*guard = (struct tools_guard){0};
	if (auth->key_file) {
		if (tools_keys_open(&keys, auth, message, size) < 0)
			return -1;
	} else if (!null || auth->class > TOOLS_NULL) {
		return fail_with(-1, message, size, "authenticated clients need service keys");
	}
	if (tools_guard_with(guard, keys.keys, auth, null, message, size) < 0) {
		tools_keys_close(&keys);
		return -1;
	}
	guard->negotiation = keys.negotiation;
	rxw_keys_unref(keys.keys);
	return 0;
}

int tools_guard_offer(const struct tools_guard *guard, rxw_endpoint *endpoint)
{
	return guard->negotiation ? rxw_rxgk_negotiation_add(guard->negotiation, endpoint, NULL)
				  : 0;
}

void tools_guard_close(struct tools_guard *guard)
{
	for (size_t i = 0; i < guard->count; i++)
		rxw_security_unref(guard->classes[i]);
	rxw_rxgk_negotiation_destroy(guard->negotiation);
	rxw_keys_unref(guard->keys);
	*guard = (struct tools_guard){0};
}

int tools_make_keys(const char *path, char *message, size_t size)
{
	rxw_keys *keys;
	int rc;

	if (access(path, F_OK) == 0)
		return 0;
	rc = rxw_keys_create(&keys);
	if (rc < 0)
		return fail_with(-1, message, size, "no memory");
	if ((rc = rxw_keys_generate(keys, RXW_KEY_KRB5, KVNO, ENCTYPE)) < 0 ||
	    (rc = rxw_keys_generate(keys, RXW_KEY_RXGK, KVNO, ENCTYPE)) < 0) {
		snprintf(message, size, "keys: %s", rxw_strerror(rc));
		goto out;
	}
	rc = rxw_keys_write(keys, path, 0, message, size);
	/* Another server has created the file meanwhile: use its keys. */
	if (rc == -RXW_ESYS && errno == EEXIST)
		rc = 0;
out:
	rxw_keys_unref(keys);
	return rc < 0 ? -1 : 0;
}

/* ---- renewal of the token of a long-running program ---- */

#define AHEAD_S	  300	/* renew this long before the token expires */
#define LONGEST_S \
	60 /* longest sleep of the thread without a look at the wall clock, which may be set */

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
	for (;;) {
		uint64_t asked = atomic_load(&r->asked);
		int64_t left = r->at - time(NULL);

		if (asked > atomic_load(&r->answered))
			return asked;
		if (r->thread.stop || left <= 0)
			return 0;
		left = left < LONGEST_S ? left : LONGEST_S;
		sleep_in_background(&r->thread, monotonic_ns() + (uint64_t)left * NS_PER_S);
	}
}

static void *renew_until_stopped(void *arg)
{
	struct tools_renewal *r = arg;

	pthread_mutex_lock(&r->thread.lock);
	while (!r->thread.stop) {
		uint64_t asked = await_renewal(r);

		if (r->thread.stop)
			break;
		pthread_mutex_unlock(&r->thread.lock);
		replace_token(r);
		plan_renewal(r);
		/* Written after `count`, which shows whether the request succeeded. */
		if (asked)
			atomic_store(&r->answered, asked);
		pthread_mutex_lock(&r->thread.lock);
	}
	pthread_mutex_unlock(&r->thread.lock);
	return NULL;
}

int tools_renewal_start(struct tools_renewal *r)
{
	int rc;

	if (!r->token || r->at == INT64_MAX)
		return 0;
	rc = start_background(&r->thread, renew_until_stopped, r);
	r->running = rc == 0;
	return rc;
}

void tools_renewal_stop(struct tools_renewal *r)
{
	if (r->running)
		stop_background(&r->thread);
	r->running = false;
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
	pthread_mutex_lock(&r->thread.lock);
	*question = atomic_fetch_add(&r->asked, 1) + 1;
	wake_background(&r->thread);
	pthread_mutex_unlock(&r->thread.lock);
	return false;
}
