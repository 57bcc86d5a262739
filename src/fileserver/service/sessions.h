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
#define FSD_SESSION_S 60u /* seconds without bytes that count, after which one is dropped */
/* One ends this long after its beginning, in seconds, and however slowly its bytes come */
#define FSD_SESSION_WHOLE_S    600u
#define FSD_SESSION_LEAST_RATE 65536u /* bytes a second, beside that */
/* Open sessions of one user, and the bytes of their contents; of all callers without a name together. */
#define FSD_SESSIONS_OPEN	   64u
#define FSD_SESSIONS_OPEN_NAMELESS 16u
#define FSD_SESSION_BYTES	   ((uint64_t)64 << 30)
#define FSD_SESSION_BYTES_NAMELESS ((uint64_t)1 << 30)

enum fsd_session_state {
	FSD_SESSION_OPEN,
	FSD_SESSION_ENDING, /* a call makes the version */
	FSD_SESSION_ENDED
};

/* What one user has, or all callers without a name. The lock of the table covers it. */
struct fsd_session_caller {
	struct fsd_share share; /* of the entries */
	unsigned open;
	uint64_t bytes; /* of the contents of open ones */
};

struct fsd_session {
	/* constant once it is in the table */
	StoreSession id;
	int32_t user;
	AFSFid fid;
	uint64_t length; /* of the contents */
	uint64_t until;	 /* fsd_now() when it ends in any case */
	struct fsd_session_caller *caller;
	const struct store_ops *ops;

	pthread_mutex_t lock;	     /* covers `writer`, also while a range begins */
	struct store_writer *writer; /* NULL: no range begins any more */

	/* The lock of the table covers these: */
	struct fsd_session *next;
	enum fsd_session_state state;
	unsigned users;
	uint64_t used; /* fsd_now() when bytes came last, or when it ended */
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
/* Every second: ends those that are too slow. `now`: fsd_now(). False: there are none. */
bool fsd_sessions_look(struct fsd_sessions *all, uint64_t now);

/* Add one for a writer, which is taken over. 0, -ENOMEM; -EUSERS: the caller has as many, or as large ones, as it may have. */
int fsd_session_add(struct fsd_sessions *all, const struct fsd_session *like, StoreSession *id);
/* That of a user, to be left. NULL: there is none, or it is not his. */
struct fsd_session *fsd_session_find(struct fsd_sessions *all, const StoreSession *id,
				     int32_t user);
/* `taken`: bytes of a range that count. */
void fsd_session_leave(struct fsd_sessions *all, struct fsd_session *session, uint64_t taken);
/* A writer of one range. 0; -EBADF: it ends or has ended; or a result of the store. */
int fsd_session_range(struct fsd_session *session, const struct store_caller *caller,
		      uint64_t offset, uint64_t length, struct store_writer **writer);
/* The result of a range. One that says that there will be no version ends the session. */
void fsd_session_judge(struct fsd_sessions *all, struct fsd_session *session, int result);
/* Whether a result says that there will be no version, also if the call comes again. */
bool fsd_session_is_refused(int result);
/* Whether this call is the one that ends it. Otherwise *result is its result, or AFS_VBUSY. */
bool fsd_session_begin_end(struct fsd_sessions *all, struct fsd_session *session, int *result);
/* No range begins any more, and none is beginning. For the call that ends it. */
struct store_writer *fsd_session_take_writer(struct fsd_session *session);
/* It has ended without a version. For the call that ends it. */
void fsd_session_drop(struct fsd_sessions *all, struct fsd_session *session, int result);
/* It has ended; or it is open again. */
void fsd_session_set(struct fsd_sessions *all, struct fsd_session *session,
		     enum fsd_session_state state, int result);

#endif
