/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of stores whose ranges come over several paths: the contents of one file until they become a version. */
#ifndef FILESERVER_SERVICE_SESSIONS_H
#define FILESERVER_SERVICE_SESSIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "afs/rxafs.h"
#include "fileserver/base/base.h"
#include "volume/ranges.h"

#define FSD_SESSIONS_MAX \
	1024u /* with those that have ended, whose results are kept for clients that ask again */
#define FSD_SESSION_S 60u /* seconds without a call, after which one is dropped */

enum fsd_session_state {
	FSD_SESSION_OPEN,
	FSD_SESSION_ENDING, /* a call makes the version */
	FSD_SESSION_ENDED
};

struct fsd_session {
	/* constant once it is in the table */
	StoreSession id;
	int32_t user;
	AFSFid fid;
	struct fsd_share *share;
	const struct store_ops *ops;

	pthread_mutex_t lock;	     /* covers `writer`, also while a range begins */
	struct store_writer *writer; /* NULL: no range begins any more */

	/* The lock of the table covers these: */
	struct fsd_session *next;
	enum fsd_session_state state;
	unsigned users;
	uint64_t used; /* fsd_now() at the end of the last call */
	/* FSD_SESSION_ENDED; written by the call that ends it, before: */
	int result;
	AFSFetchStatus st;
	AFSVolSync sync;
};

struct fsd_sessions {
	pthread_mutex_t lock;
	struct fsd_session *first; /* the newest */
	struct fsd_shares callers;
};

/* False: no memory. */
bool fsd_sessions_init(struct fsd_sessions *all);
/* Drops them. No call runs. */
void fsd_sessions_fini(struct fsd_sessions *all);
/* Every second: drops those without a call. `now`: fsd_now(). False: there are none. */
bool fsd_sessions_look(struct fsd_sessions *all, uint64_t now);

/* Add one for a writer, which is taken over. 0, -ENOMEM; AFS_VBUSY: the caller has as many as are free. */
int fsd_session_add(struct fsd_sessions *all, const struct fsd_share_key *caller,
		    const struct fsd_session *like, StoreSession *id);
/* That of a user, to be left. NULL: there is none, or it is not his. */
struct fsd_session *fsd_session_find(struct fsd_sessions *all, const StoreSession *id,
				     int32_t user);
void fsd_session_leave(struct fsd_sessions *all, struct fsd_session *session);
/* A writer of one range. 0; -EBADF: it ends or has ended; or a result of the store. */
int fsd_session_range(struct fsd_session *session, uint64_t offset, uint64_t length,
		      struct store_writer **writer);
/* Whether this call is the one that ends it. Otherwise *result is its result, or AFS_VBUSY. */
bool fsd_session_begin_end(struct fsd_sessions *all, struct fsd_session *session, int *result);
/* No range begins any more, and none is beginning. For the call that ends it. */
struct store_writer *fsd_session_take_writer(struct fsd_session *session);
/* It has ended; or it is open again. */
void fsd_session_set(struct fsd_sessions *all, struct fsd_session *session,
		     enum fsd_session_state state, int result);

#endif
