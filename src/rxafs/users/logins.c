/* SPDX-License-Identifier: BSD-2-Clause */
/* Logins in progress. A thread forgets what was handed over and not used. */
#include "rxafs/users/logins.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/background.h"

/* Handed over and not used yet: of one user, and of all. */
#define SECRETS_OF_USER 4u
#define SECRETS_MOST	64u
#define SECRET_NS	(30 * (uint64_t)NS_PER_S)
/* That make a token: of one user, and of all but root. */
#define MAKING_OF_USER 4u
#define MAKING_MOST    32u

struct secret {
	struct secret *next; /* in the order of their beginning */
	const void *handle;
	uid_t uid;
	uint8_t *data;
	size_t size;
	uint64_t since; /* monotonic_ns() */
};

struct logins {
	struct background background; /* its lock covers the rest */
	struct secret *secrets;
	uid_t making[MAKING_MOST + MAKING_OF_USER]; /* the users whose logins make a token */
	unsigned making_count;
};

void free_secret(uint8_t *data, size_t size)
{
	if (data)
		explicit_bzero(data, size);
	free(data);
}

/* With the lock. The list goes on behind it. */
static void drop_secret(struct logins *logins, struct secret **at)
{
	struct secret *s = *at;

	assert(mutex_is_held(&logins->background.lock));
	*at = s->next;
	free_secret(s->data, s->size);
	free(s);
}

static struct secret **find_secret(struct logins *logins, const void *handle)
{
	struct secret **at = &logins->secrets;

	assert(mutex_is_held(&logins->background.lock));
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

/* The oldest one goes, of this user, or else of all. */
static void make_room(struct logins *logins, uid_t uid)
{
	struct secret **oldest = NULL;
	unsigned count = 0, own = 0;

	for (struct secret **at = &logins->secrets; *at; at = &(*at)->next, count++)
		if ((*at)->uid == uid && !own++)
			oldest = at;
	if (own >= SECRETS_OF_USER)
		drop_secret(logins, oldest);
	else if (count >= SECRETS_MOST)
		drop_secret(logins, &logins->secrets);
}

/* An empty one at the end. NULL: no memory. */
static struct secret *begin_secret(struct logins *logins, const void *handle, uid_t uid)
{
	struct secret *s = calloc(1, sizeof *s), **end;

	if (!s)
		return NULL;
	make_room(logins, uid);
	s->handle = handle;
	s->uid = uid;
	s->since = monotonic_ns();
	end = find_secret(logins, NULL);
	assert(!*end);
	*end = s;
	if (logins->secrets == s)
		wake_background(&logins->background);
	return s;
}

/* Not realloc(): it would leave a copy in freed memory. */
static int extend_secret(struct secret *s, const void *data, size_t size)
{
	uint8_t *more = malloc(s->size + size + 1);

	if (!more)
		return -ENOMEM;
	if (s->size)
		memcpy(more, s->data, s->size);
	memcpy(more + s->size, data, size);
	free_secret(s->data, s->size);
	s->data = more;
	s->size += size;
	return 0;
}

int logins_add(struct logins *logins, const void *handle, uid_t uid, size_t offset,
	       const void *data, size_t size)
{
	struct secret **at, *s;
	int result = -EINVAL;

	if (size > LOGIN_SECRET_MOST || offset > LOGIN_SECRET_MOST - size)
		return -EINVAL;
	pthread_mutex_lock(&logins->background.lock);
	at = find_secret(logins, handle);
	if (!offset && *at)
		drop_secret(logins, at);
	s = offset ? *at : begin_secret(logins, handle, uid);
	if (!s)
		result = offset ? -EINVAL : -ENOMEM;
	else if (s->size == offset && s->uid == uid)
		result = extend_secret(s, data, size);
	pthread_mutex_unlock(&logins->background.lock);
	return result;
}

void logins_forget(struct logins *logins, const void *handle)
{
	struct secret **at;

	pthread_mutex_lock(&logins->background.lock);
	at = find_secret(logins, handle);
	if (*at)
		drop_secret(logins, at);
	pthread_mutex_unlock(&logins->background.lock);
}

uint8_t *logins_take(struct logins *logins, const void *handle, size_t *size)
{
	struct secret **at;
	uint8_t *data = NULL;

	pthread_mutex_lock(&logins->background.lock);
	at = find_secret(logins, handle);
	if (*at) {
		data = (*at)->data;
		*size = (*at)->size;
		(*at)->data = NULL;
		(*at)->size = 0;
		drop_secret(logins, at);
	}
	pthread_mutex_unlock(&logins->background.lock);
	return data;
}

int logins_enter(struct logins *logins, uid_t uid)
{
	unsigned own = 0, others = 0;
	int result = 0;

	pthread_mutex_lock(&logins->background.lock);
	for (unsigned i = 0; i < logins->making_count; i++) {
		own += logins->making[i] == uid;
		others += logins->making[i] != 0;
	}
	if (own >= MAKING_OF_USER)
		result = -EUSERS;
	else if (uid && others >= MAKING_MOST)
		result = -EBUSY;
	else
		logins->making[logins->making_count++] = uid;
	pthread_mutex_unlock(&logins->background.lock);
	return result;
}

void logins_leave(struct logins *logins, uid_t uid)
{
	unsigned i = 0;

	pthread_mutex_lock(&logins->background.lock);
	while (i < logins->making_count && logins->making[i] != uid)
		i++;
	assert(i < logins->making_count);
	logins->making[i] = logins->making[--logins->making_count];
	pthread_mutex_unlock(&logins->background.lock);
}

static void *forget_old_secrets(void *arg)
{
	struct logins *logins = arg;

	pthread_mutex_lock(&logins->background.lock);
	while (!logins->background.stop) {
		while (logins->secrets && logins->secrets->since + SECRET_NS <= monotonic_ns())
			drop_secret(logins, &logins->secrets);
		sleep_in_background(&logins->background,
				    logins->secrets ? logins->secrets->since + SECRET_NS
						    : UINT64_MAX);
	}
	while (logins->secrets)
		drop_secret(logins, &logins->secrets);
	pthread_mutex_unlock(&logins->background.lock);
	return NULL;
}

struct logins *logins_start(void)
{
	struct logins *logins = calloc(1, sizeof *logins);

	if (logins && start_background(&logins->background, forget_old_secrets, logins)) {
		free(logins);
		return NULL;
	}
	return logins;
}

void logins_stop(struct logins *logins)
{
	if (!logins)
		return;
	stop_background(&logins->background);
	assert(!logins->secrets && !logins->making_count);
	free(logins);
}
