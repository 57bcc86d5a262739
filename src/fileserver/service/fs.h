/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the file service: a call in progress. */
#ifndef FILESERVER_FS_PRIVATE_H
#define FILESERVER_FS_PRIVATE_H

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "volume/export/export.h"
#include "fileserver/service/services.h"

#define FS_IDS	    32 /* ids of a caller that need no memory of their own */
#define FS_HOST_IDS 8  /* those of its machine */

/* The volume of an object. */
struct fs_place {
	struct store *store; /* NULL: none was found yet */
	struct store_fid fid;
	uint32_t sync;
	enum store_type type;
	bool constant; /* root.afs: never changes */
	bool whole;    /* only changes as a whole: there is one promise for the volume */
};

/* A change that is answered after its commit, by another thread than the handler's. */
struct fs_change {
	struct fs_place place;
	enum store_kind kind;
	struct store_set set;
	char name[STORE_NAME_MAX + 2]; /* longer ones are cut, and refused all the same */
	struct store_status status, dir_status;
	struct store_changes changes;
	/* StoreData: */
	struct store_writer *writer;
	uint64_t length, begin;
};

/* The objects of a call, for the audit log. */
struct fs_noted {
	AFSFid fid, to; /* volume 0: none */
	bool has_name, has_to_name;
	char name[FSD_AUDIT_NAME], to_name[FSD_AUDIT_NAME];
};

/*
 * A call; the `context` of its handler. A handler returns 0 or a result as in interface.h, a code of the RPC
 * layer (-455 ...), or FSD_LOST; fsd_fs_serve() translates it for the client. Or it returns
 * RXW_RPC_DEFERRED, and must not use the call any more: fs_later.c.
 */
struct fs_call {
	struct fsd_service *service;
	rxw_call *rx;
	/* For fs_later.c: */
	struct store_later later;
	bool *left; /* set when others may use the call; NULL from then on */
	bool deferred;
	/* Sends the reply and calls fs_end(), after the commit, when clients were told. */
	void (*reply)(struct fs_call *call, int result);
	/* Repeats the operation after STORE_AGAIN, on a thread that may wait. */
	int (*again)(struct fs_call *call);
	struct fs_change change;
	struct fetch *fetch; /* fs_fetch.c: without a thread */
	struct fsd_breaking *breaking; /* clients have to answer */
	bool told;		       /* nothing but fs_settle() is left before the reply */
	bool hasty;		       /* its thread must not wait */
	struct fsd_job job;	       /* of a thread that may wait */
	struct fsd_asker asker;	       /* who the caller is, or others in its ACL are */
	unsigned rounds;	       /* questions of the asker so far */
	AFSFid acl_fid;		       /* of FetchACL or StoreACL, which ask for names */
	char *acl_text;		       /* of StoreACL; to be freed */

	struct fsd_caller caller;
	struct fsd_who who;		/* anonymous if callers are not identified */
	bool unknown;			/* it has an identity, but nobody can say whose */
	int nameless;			/* the result of fs_identify() */
	struct export_viewer viewer;	/* who: that */
	struct store_caller self;	/* who: the viewer */
	int32_t ids[FS_IDS], host_ids[FS_HOST_IDS]; /* of `self` */
	int32_t *more_ids, *more_host_ids;	    /* in their place; to be freed */
	struct fs_place place;		/* of the last object that was looked up */
	/* The promise of fs_promise(). It is void if the call fails, even after its handler has returned. */
	struct fsd_given promised;
	struct fsd_change announced; /* what it has changed, until all clients know of it */
	AFSFid touched[3];	     /* objects that a call which changes something looks at */
	unsigned touched_count;
	uint64_t patience; /* when it stops to wait for changes of others; 0: it did not wait */
	struct fs_noted noted;
	bool reserved; /* a place in the audit log */
	struct fsd_running_call running;
};

/* -- fs_call.c: volumes, status, promises -- */

/*
 * Find the volume of an object: 0; -EINVAL: volume or vnode 0; 103 and others. fs_find_to_write():
 * -EROFS if nothing in the store can be written.
 */
int fs_find(struct fs_call *call, const AFSFid *fid, struct fs_place *place);
int fs_find_to_write(struct fs_call *call, const AFSFid *fid, struct fs_place *place);
/* All that is known of a volume. 0 or a result. */
int fs_volume(struct fs_call *call, uint32_t id, struct store_volume *volume);

/* The date of the volume of the last object, which every reply has. */
void fs_sync(const struct fs_call *call, AFSVolSync *sync);
/* A status as it is sent. */
void fs_fill(const struct fs_call *call, const struct store_status *status, AFSFetchStatus *st);

/*
 * Give a promise on an object before it is read, so that no change is missed. *cb is zero if there
 * is none. fs_unpromise(): the object could not be read, and the call does not fail. One for a call.
 */
void fs_promise(struct fs_call *call, const struct fs_place *place, AFSCallBack *cb);
void fs_unpromise(struct fs_call *call);
/* The client returns a promise. */
void fs_return_promise(struct fs_call *call, const struct fs_place *place);
/*
 * Promise and status of an object, or of each of at most AFSCBMAX objects, all of which get a result. `in_line`: the
 * others have promises if one fails; else the call fails then, and there are none.
 */
int fs_status(struct fs_call *call, const AFSFid *fid, AFSFetchStatus *st, AFSCallBack *cb);
void fs_status_of_all(struct fs_call *call, bool in_line, const AFSFid *fids, uint32_t count,
		      AFSFetchStatus *sts, AFSCallBack *cbs, int *results);
/* Status and ACL without a promise, as if the caller were an administrator. */
int fs_peek(struct fs_call *call, const struct fs_place *place, struct store_acl *acl,
	    struct store_status *status);

/*
 * An operation has ended. If it changed something: count it, break the promises on that, and wait for
 * the clients that held them. In any case wait as fs_settled() for the objects that it looked at.
 * Returns `result`, or VBUSY in place of a failure that other clients might not understand yet.
 */
int fs_finish(struct fs_call *call, int result, const struct store_changes *changes);
/* The function of struct store_caller; the argument is the call. */
void fs_announce(void *call, const struct store_changes *changes);
/* An object that an operation will look at, besides that of fs_find_to_write(). */
void fs_touch(struct fs_call *call, const AFSFid *fid);
/*
 * Before a reply that shows the object's state: wait until all clients with promises on it know of its
 * changes. False: they did not answer in time, or it is changing and the call is `hasty`.
 */
bool fs_settled(struct fs_call *call, const AFSFid *fid);
/*
 * fs_finish() in steps, for call->change. fs_tell(): after a success; does not wait. True: no client
 * has to answer. Otherwise fs_await_told(). Then, in any case, fs_settle(), which waits unless
 * fs_all_settled().
 */
bool fs_tell(struct fs_call *call);
void fs_await_told(struct fs_call *call);
bool fs_all_settled(struct fs_call *call);
int fs_settle(struct fs_call *call, int result);

/*
 * The code that is sent for a result, of a call or of one of its objects. Once for each: failures of the machine are
 * counted and logged.
 */
int32_t fs_code(const struct fs_call *call, int result);
int32_t fs_code_of(const struct fs_call *call, const struct store_fid *fid, int result);

/* -- fs_caller.c -- */

/* Identify the caller: 0, -ENOMEM, or -EAGAIN, as in people.h. */
int fs_identify(struct fs_call *call, struct fsd_asker *asker);
/* Check that the caller may call at all: 0 or a result. Then fs_leave(). */
int fs_enter(struct fs_call *call, rxw_call *rx, int32_t opcode, int function);
void fs_leave(struct fs_call *call);
void fs_count(struct fs_call *call, int32_t code);
/* For the audit log: an object and a name in it, which may be NULL; another one. */
void fs_note(struct fs_call *call, const AFSFid *fid, const char *name);
void fs_note_other(struct fs_call *call, const AFSFid *fid, const char *name);
/*
 * Add the call to the audit log if it would change something, or was refused, or if reads are to be
 * added and an object was noted.
 */
void fs_audit(struct fs_call *call, int32_t code);

/* -- fs_later.c: changes that another thread answers after their commit -- */

/*
 * The caller of an operation of the store that may return STORE_LATER; then `reply` is called. `again`: the same
 * operation, which others may have to do again.
 */
const struct store_caller *fs_self_later(struct fs_call *call,
					 void (*reply)(struct fs_call *call, int result),
					 int (*again)(struct fs_call *call));
/* Others may use the call from now on, and answer it; then fs_end(). False: the handler has to. */
bool fs_defer(struct fs_call *call);
/* A deferred call that changed nothing is answered by a thread that may wait. */
void fs_answer_later(struct fs_call *call, int result,
		     void (*reply)(struct fs_call *call, int result));
/* The same with anything that is to be done for it. */
void fs_run_later(struct fs_call *call, void (*run)(struct fsd_job *job));
/* What is to be done once call->asker is ready. */
void fs_run_asked(struct fs_call *call, void (*run)(struct fsd_job *job));
/* The change of a deferred call has ended, with another result than STORE_LATER: tell the clients, and reply. */
void fs_end_change(struct fs_call *call, int result);
/* The events of a deferred call go there; NULL: nowhere, and none is on its way. On a thread that may wait. */
void fs_set_callback(struct fs_call *call, rxw_call_fn report, void *arg);
/* Ends the call after a reply. `code` is the code that the client got. */
void fs_end(struct fs_call *call, int32_t code);

#endif
