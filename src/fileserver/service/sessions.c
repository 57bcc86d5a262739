/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of sessions. One belongs to the user who has begun it. It ends with its server, when its client sends nothing for a minute,
 * when a range or the end is refused for good, and in any case some time after its beginning.
 */
#include "fileserver/service/sessions.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "afs/numbers.h"
#include "base/hash.h"
#include "common/held.h"

bool fsd_sessions_init(struct fsd_sessions *all)
{
	uint64_t secret[2];

	pthread_mutex_init(&all->lock, NULL);
	return rxw_random(secret, sizeof(secret)) == 0 &&
	       fsd_shares_init(&all->callers, sizeof(struct fsd_session_caller), secret);
}

struct store_writer *fsd_session_take_writer(struct fsd_session *session)
{
	struct store_writer *writer;

	pthread_mutex_lock(&session->lock);
	writer = session->writer;
	session->writer = NULL;
	pthread_mutex_unlock(&session->lock);
	return writer;
}

/* It is open no more. */
static void close_session(struct fsd_session *session)
{
	struct fsd_session_caller *caller = session->caller;

	assert(session->state != FSD_SESSION_ENDED);
	assert(caller->open > 0 && caller->bytes >= session->length);
	caller->open--;
	caller->bytes -= session->length;
}

/* They are in no table. */
static void free_sessions(struct fsd_session *first)
{
	for (struct fsd_session *next; first; first = next) {
		next = first->next;
		assert(!first->users);
		if (first->writer)
			first->ops->write_abort(first->writer);
		pthread_mutex_destroy(&first->lock);
		free(first);
	}
}

void fsd_sessions_fini(struct fsd_sessions *all)
{
	for (struct fsd_session *s = all->first; s; s = s->next)
		fsd_share_give(&all->callers, &s->caller->share);
	free_sessions(all->first);
	fsd_shares_fini(&all->callers);
	pthread_mutex_destroy(&all->lock);
}

/* Move one from the table to a list. */
static void remove_session(struct fsd_sessions *all, struct fsd_session **at,
			   struct fsd_session **removed)
{
	struct fsd_session *session = *at;

	assert(mutex_is_held(&all->lock) && !session->users);
	*at = session->next;
	if (session->state != FSD_SESSION_ENDED)
		close_session(session);
	fsd_share_give(&all->callers, &session->caller->share);
	session->next = *removed;
	*removed = session;
}

/* One that is to end although calls use it; to be left. */
static struct fsd_session *begin_overdue_end(struct fsd_sessions *all, uint64_t now)
{
	struct fsd_session *session;

	pthread_mutex_lock(&all->lock);
	session = all->first;
	while (session && (session->state != FSD_SESSION_OPEN || now <= session->until))
		session = session->next;
	if (session) {
		session->state = FSD_SESSION_ENDING;
		session->users++;
	}
	pthread_mutex_unlock(&all->lock);
	return session;
}

static void end_overdue_sessions(struct fsd_sessions *all, uint64_t now)
{
	struct fsd_session *session;

	while ((session = begin_overdue_end(all, now)) != NULL) {
		fsd_session_drop(all, session, -ETIMEDOUT);
		fsd_session_leave(all, session, 0);
	}
}

bool fsd_sessions_look(struct fsd_sessions *all, uint64_t now)
{
	struct fsd_session *removed = NULL;
	bool some;

	end_overdue_sessions(all, now);
	pthread_mutex_lock(&all->lock);
	for (struct fsd_session **at = &all->first; *at;) {
		if (!(*at)->users && now > (*at)->used + FSD_SESSION_S)
			remove_session(all, at, &removed);
		else
			at = &(*at)->next;
	}
	some = all->first != NULL;
	pthread_mutex_unlock(&all->lock);
	free_sessions(removed);
	return some;
}

/* The one that has ended first. Its client has got the answer, or asks at once. */
static void remove_ended_session(struct fsd_sessions *all, struct fsd_session **removed)
{
	struct fsd_session **last = NULL;

	for (struct fsd_session **at = &all->first; *at; at = &(*at)->next)
		if ((*at)->state == FSD_SESSION_ENDED && !(*at)->users)
			last = at;
	if (last)
		remove_session(all, last, removed);
}

/* NULL: the caller has as many as are free. */
static struct fsd_session_caller *take_session_entry(struct fsd_sessions *all,
						     const struct fsd_share_key *key,
						     struct fsd_session **removed)
{
	struct fsd_share *share = fsd_share_take(&all->callers, key, FSD_SESSIONS_MAX);

	assert(mutex_is_held(&all->lock));
	if (!share) {
		remove_ended_session(all, removed);
		share = fsd_share_take(&all->callers, key, FSD_SESSIONS_MAX);
	}
	return (struct fsd_session_caller *)share;
}

static bool may_open_session(const struct fsd_session_caller *caller, int32_t user, uint64_t length)
{
	bool nameless = user == STORE_ANONYMOUS;
	uint64_t most = nameless ? FSD_SESSION_BYTES_NAMELESS : FSD_SESSION_BYTES;

	return caller->open < (nameless ? FSD_SESSIONS_OPEN_NAMELESS : FSD_SESSIONS_OPEN) &&
	       length <= most && caller->bytes <= most - length;
}

/* False: the caller may have no further one. Those without a name share, whatever their addresses are. */
static bool enter_session(struct fsd_sessions *all, struct fsd_session *session)
{
	struct fsd_session *removed = NULL;
	struct fsd_session_caller *caller;
	struct fsd_share_key key;
	bool may;

	fsd_share_of_user(session->user, &key);
	pthread_mutex_lock(&all->lock);
	caller = take_session_entry(all, &key, &removed);
	may = caller && may_open_session(caller, session->user, session->length);
	if (may) {
		session->caller = caller;
		caller->open++;
		caller->bytes += session->length;
		session->next = all->first;
		all->first = session;
	} else if (caller) {
		fsd_share_give(&all->callers, &caller->share);
	}
	pthread_mutex_unlock(&all->lock);
	free_sessions(removed);
	return may;
}

int fsd_session_add(struct fsd_sessions *all, const struct fsd_session *like, StoreSession *id)
{
	struct fsd_session *session = calloc(1, sizeof(*session));
	int result = -EUSERS;

	if (!session || rxw_random(id, sizeof(*id))) {
		free(session);
		like->ops->write_abort(like->writer);
		return -ENOMEM;
	}
	session->id = *id;
	session->user = like->user;
	session->fid = like->fid;
	session->ops = like->ops;
	session->writer = like->writer;
	session->length = like->length;
	session->used = fsd_now();
	session->until =
		session->used + FSD_SESSION_WHOLE_S + session->length / FSD_SESSION_LEAST_RATE;
	pthread_mutex_init(&session->lock, NULL);
	if (enter_session(all, session))
		result = 0;
	else
		free_sessions(session);
	return result;
}

struct fsd_session *fsd_session_find(struct fsd_sessions *all, const StoreSession *id, int32_t user)
{
	struct fsd_session *found;

	pthread_mutex_lock(&all->lock);
	found = all->first;
	while (found && (found->id.high != id->high || found->id.low != id->low))
		found = found->next;
	if (found && found->user != user)
		found = NULL;
	if (found)
		found->users++;
	pthread_mutex_unlock(&all->lock);
	return found;
}

void fsd_session_leave(struct fsd_sessions *all, struct fsd_session *session, uint64_t taken)
{
	pthread_mutex_lock(&all->lock);
	assert(session->users > 0);
	session->users--;
	if (taken)
		session->used = fsd_now();
	pthread_mutex_unlock(&all->lock);
}

int fsd_session_range(struct fsd_session *session, const struct store_caller *caller,
		      uint64_t offset, uint64_t length, struct store_writer **writer)
{
	int result = -EBADF;

	pthread_mutex_lock(&session->lock);
	if (session->writer)
		result = session->ops->ranges->range(session->writer, caller, offset, length,
						     writer);
	pthread_mutex_unlock(&session->lock);
	return result;
}

bool fsd_session_is_refused(int result)
{
	switch (result) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
	case -EISDIR:
	case -ESTALE: /* of a volume whose contents were replaced */
	case -ENOSPC:
	case STORE_VSALVAGE:
	case STORE_VNOVNODE:
	case STORE_VNOVOL:
	case STORE_VOVERQUOTA:
	case STORE_VDISKFULL:
	case STORE_VMOVED:
		return true;
	default:
		return false;
	}
}

void fsd_session_drop(struct fsd_sessions *all, struct fsd_session *session, int result)
{
	session->ops->write_abort(fsd_session_take_writer(session));
	fsd_session_set(all, session, FSD_SESSION_ENDED, result);
}

void fsd_session_judge(struct fsd_sessions *all, struct fsd_session *session, int result)
{
	int other;

	if (fsd_session_is_refused(result) && fsd_session_begin_end(all, session, &other))
		fsd_session_drop(all, session, result);
}

bool fsd_session_begin_end(struct fsd_sessions *all, struct fsd_session *session, int *result)
{
	bool open;

	pthread_mutex_lock(&all->lock);
	open = session->state == FSD_SESSION_OPEN;
	if (open)
		session->state = FSD_SESSION_ENDING;
	else
		*result = session->state == FSD_SESSION_ENDED ? session->result : AFS_VBUSY;
	pthread_mutex_unlock(&all->lock);
	return open;
}

void fsd_session_set(struct fsd_sessions *all, struct fsd_session *session,
		     enum fsd_session_state state, int result)
{
	pthread_mutex_lock(&all->lock);
	assert(session->state == FSD_SESSION_ENDING);
	if (state == FSD_SESSION_ENDED) {
		close_session(session);
		session->used = fsd_now();
	}
	session->state = state;
	session->result = result;
	pthread_mutex_unlock(&all->lock);
}
