/* SPDX-License-Identifier: BSD-2-Clause */
/* Retries: servers that restart or do not answer, volumes that are busy or move, expired tokens. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/held.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/copy.h"

#define PAUSE_MS     200 /* before the second round; doubled each time */
#define PAUSE_MAX_MS 5000
#define START_MS     15000 /* for a location server that has never answered: it may restart */

/* Give the client of this thread the newest token. False: it has it. */
static bool adopt_newest_token(struct copy *copy)
{
	struct tools_renewal *renewal = &copy->run->renewal;
	uint64_t count = atomic_load(&renewal->count);
	struct afs_error error;

	assert(mutex_is_held(&copy->run->token_lock));
	if (count == copy->tokens ||
	    afs_client_renew(copy->client, tools_renewal_security(renewal), &error) < 0)
		return false;
	copy->tokens = count;
	return true;
}

void copy_fresh(struct copy *copy)
{
	pthread_mutex_lock(&copy->run->token_lock);
	tools_renewal_fresh(&copy->run->renewal);
	adopt_newest_token(copy);
	pthread_mutex_unlock(&copy->run->token_lock);
}

bool copy_again(struct copy *copy, const struct afs_error *error)
{
	struct tools_renewal *renewal = &copy->run->renewal;
	bool again = false;

	pthread_mutex_lock(&copy->run->token_lock);
	if (tools_renewal_expired(error->code, error->origin) ||
	    tools_renewal_refused(renewal, error->result))
		again = adopt_newest_token(copy) ||
			(tools_renewal_again(renewal) && adopt_newest_token(copy));
	pthread_mutex_unlock(&copy->run->token_lock);
	return again;
}

/* Wait. False: interrupted by a signal. */
static bool pause_ms(struct copy *copy, unsigned ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)ms * 1000000;

	pthread_mutex_lock(&copy->run->lock);
	while (!copy_interrupted(copy) && monotonic_ns() < until)
		monotonic_wait(&copy->run->wake, &copy->run->lock, until);
	pthread_mutex_unlock(&copy->run->lock);
	return !copy_interrupted(copy);
}

/* Whether no other thread has said within that time that it retries for as long. */
static bool first_to_tell(struct run *run, uint64_t now, uint64_t ms)
{
	uint64_t last = atomic_load(&run->told_ns);

	return (last == 0 || now - last > ms * 1000000) &&
	       atomic_compare_exchange_strong(&run->told_ns, &last, now);
}

/* Whether there is time for another round, at most `ms`; waits before each one except the first. */
static bool next_round(struct copy *copy, struct outage *o, struct afs_error *error, uint64_t ms)
{
	uint64_t now = monotonic_ns();

	if (copy->silent)
		return false;
	if (!o->since_ns) {
		o->since_ns = now;
		o->pause_ms = PAUSE_MS;
		if (ms == 0)
			return false;
		copy_explain(copy, error);
		if (!copy->set->quiet && first_to_tell(copy->run, now, ms))
			tools_error("%s; retrying for %llu s", error->text,
				    (unsigned long long)(ms + 999) / 1000);
	}
	if (now - o->since_ns >= ms * 1000000)
		return false;
	if (o->tries++ == 0)
		return true;
	if (!pause_ms(copy, o->pause_ms))
		return false;
	o->pause_ms = 2 * o->pause_ms < PAUSE_MAX_MS ? 2 * o->pause_ms : PAUSE_MAX_MS;
	return true;
}

bool copy_retry(struct copy *copy, struct outage *o, struct afs_error *error, bool *moved)
{
	if (error->interrupted)
		return false;
	if (copy_again(copy, error))
		return true;
	if (error->remedy == AFS_REMEDY_OTHER && afs_client_sites(copy->client) < 2)
		error->remedy = AFS_REMEDY_NONE;
	while (error->remedy != AFS_REMEDY_NONE && next_round(copy, o, error, copy->set->retry_ms)) {
		struct afs_error now = *error;

		if (afs_client_recover(copy->client, &copy->volume, error->remedy, &now) == 0) {
			if (moved)
				*moved = true;
			return true;
		}
		*error = now;
		if (copy_again(copy, error))
			return true;
	}
	if (copy_interrupted(copy) && !error->interrupted) {
		afs_error_text(error, "interrupted");
		error->interrupted = true;
	}
	return false;
}

bool copy_retry_or_complain(struct copy *copy, struct outage *outage, struct afs_error *error)
{
	if (copy_retry(copy, outage, error, NULL))
		return true;
	copy_complain(copy, error);
	return false;
}

void copy_format_label(const struct copy *copy, char label[COPY_LABEL])
{
	snprintf(label, COPY_LABEL, "%s:%.250s", copy->volume.name, copy->path);
}

char *copy_join_label(const char *label, const char *name)
{
	size_t length = strlen(label);
	char *path;

	if (asprintf(&path, "%s%s%s", label, length && label[length - 1] == '/' ? "" : "/", name) >=
	    0)
		return path;
	tools_error("no memory");
	return NULL;
}

int copy_locate(struct copy *copy, const struct copy_source *source)
{
	struct afs_error error;
	struct outage o = {0};

	copy->path = source->path;
	/* The previous source was in the same volume. */
	if (strcmp(copy->volume.name, source->volume) == 0)
		return 0;
	while (afs_client_volume(copy->client, source->volume, &copy->volume, &error) < 0) {
		/*
		 * Do not wait long for a server that has never answered: its address may be wrong.
		 */
		bool known = error.origin == RXW_ORIGIN_PEER || atomic_load(&copy->run->located);
		uint64_t ms = copy->set->retry_ms;

		/* This client may have its first call long after the program got its token. */
		if (copy_again(copy, &error))
			continue;
		if (!known && ms > START_MS)
			ms = START_MS;
		if (!error.interrupted && error.remedy == AFS_REMEDY_WAIT &&
		    next_round(copy, &o, &error, ms))
			continue;
		copy_complain(copy, &error);
		return -1;
	}
	atomic_store(&copy->run->located, true);
	return 0;
}

int copy_each_source(struct copy *copy, enum copy_result (*one)(struct copy *copy))
{
	enum copy_result rc = COPY_GOOD;
	bool all = true;

	for (size_t i = 0; i < copy->run->source_count && rc != COPY_STOP; i++) {
		rc = copy_locate(copy, &copy->run->sources[i]) < 0 ? COPY_FAILED : one(copy);
		if (copy_interrupted(copy))
			rc = COPY_STOP;
		all &= rc == COPY_GOOD;
	}
	return all ? 0 : TOOLS_EXIT_FAILURE;
}

int copy_walk_try(struct copy *copy, bool follow, struct afs_object *object,
		  struct afs_error *error)
{
	struct outage o = {0};

	copy_fresh(copy);
	while (afs_client_walk(copy->client, &copy->volume, copy->path, follow, object, error) < 0)
		if (!copy_retry(copy, &o, error, NULL))
			return -1;
	return 0;
}

int copy_walk(struct copy *copy, bool follow, struct afs_object *object)
{
	struct afs_error error;
	int rc = copy_walk_try(copy, follow, object, &error);

	if (rc < 0)
		copy_complain(copy, &error);
	return rc;
}

enum copy_result copy_judge(const struct copy *copy, const struct afs_error *error)
{
	if (copy_interrupted(copy))
		return COPY_STOP;
	if (copy->set->keep_going)
		return COPY_FAILED;
	if (error->result != 0 || error->remedy != AFS_REMEDY_NONE ||
	    tools_renewal_expired(error->code, error->origin))
		return COPY_STOP;
	/* A volume that is full or read-only is so for the others. */
	if (error->number == ENOSPC || error->number == EDQUOT || error->number == EROFS)
		return COPY_STOP;
	/* An answer, even an invalid one, concerns this object; no answer concerns them all. */
	if (error->origin == RXW_ORIGIN_PEER)
		return COPY_FAILED;
	return error->code == 0 || error->code == RXW_RPC_CC_UNMARSHAL ? COPY_FAILED : COPY_STOP;
}
