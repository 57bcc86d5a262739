/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of sessions. One belongs to the user who has begun it, ends with its server, and when its client makes no call for a minute.
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
	       fsd_shares_init(&all->callers, sizeof(struct fsd_share), secret);
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
		fsd_share_give(&all->callers, s->share);
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
	fsd_share_give(&all->callers, session->share);
	session->next = *removed;
	*removed = session;
}

bool fsd_sessions_look(struct fsd_sessions *all, uint64_t now)
{
	struct fsd_session *removed = NULL;
	bool some;

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

/* False: the caller has as many as are free. */
static bool enter_session(struct fsd_sessions *all, struct fsd_session *session,
			  const struct fsd_share_key *caller)
{
	struct fsd_session *removed = NULL;

	pthread_mutex_lock(&all->lock);
	session->share = fsd_share_take(&all->callers, caller, FSD_SESSIONS_MAX);
	if (!session->share) {
		remove_ended_session(all, &removed);
		session->share = fsd_share_take(&all->callers, caller, FSD_SESSIONS_MAX);
	}
	if (session->share) {
		session->next = all->first;
		all->first = session;
	}
	pthread_mutex_unlock(&all->lock);
	free_sessions(removed);
	return session->share != NULL;
}

int fsd_session_add(struct fsd_sessions *all, const struct fsd_share_key *caller,
		    const struct fsd_session *like, StoreSession *id)
{
	struct fsd_session *session = calloc(1, sizeof(*session));
	int result = AFS_VBUSY;

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
	session->used = fsd_now();
	pthread_mutex_init(&session->lock, NULL);
	if (enter_session(all, session, caller))
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

void fsd_session_leave(struct fsd_sessions *all, struct fsd_session *session)
{
	pthread_mutex_lock(&all->lock);
	assert(session->users > 0);
	session->users--;
	session->used = fsd_now();
	pthread_mutex_unlock(&all->lock);
}

int fsd_session_range(struct fsd_session *session, uint64_t offset, uint64_t length,
		      struct store_writer **writer)
{
	int result = -EBADF;

	pthread_mutex_lock(&session->lock);
	if (session->writer)
		result = session->ops->ranges->range(session->writer, offset, length, writer);
	pthread_mutex_unlock(&session->lock);
	return result;
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
	session->state = state;
	session->result = result;
	pthread_mutex_unlock(&all->lock);
}
