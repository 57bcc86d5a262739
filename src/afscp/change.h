/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a volume with retries. */
#ifndef COPY_CHANGE_H
#define COPY_CHANGE_H

#include <stdbool.h>

#include "afs/client/change.h"
#include "afs/client/error.h"
#include "afs/rxafs.h"
#include "afscp/copy.h"

enum change_op {
	CHANGE_NONE = -1, /* something is read */
	CHANGE_CREATE,
	CHANGE_MKDIR,
	CHANGE_SYMLINK,
	CHANGE_MOUNT, /* a symbolic link, too */
	CHANGE_LINK,
	CHANGE_REMOVE,
	CHANGE_RMDIR,
	CHANGE_RENAME,
	CHANGE_STATUS,
	CHANGE_STORE,
	CHANGE_ACL,
	CHANGE_LOCK
};

/*
 * A call fails. `unknown`: the server may have carried out an earlier try, whose answer was lost;
 * so it may have if packets of this one were sent again.
 */
enum decision {
	DECIDE_FAIL, /* the error is the result */
	DECIDE_DONE, /* an earlier try has done it */
	DECIDE_LOOK  /* look at the object to find out whether an earlier try has done it */
};
enum decision change_decide(enum change_op op, bool unknown, const struct afs_error *error);

/*
 * Whether an object that exists under the name is the one that CreateFile or MakeDir with the
 * status `how` would have made, without a change since.
 */
bool change_is_ours(enum change_op op, const AFSStoreStatus *how, const AFSFetchStatus *found);

/* Whether a write may be repeated although the error has no remedy for reads. */
bool change_may_repeat(const struct afs_error *error);

/* The remedy for the error, a text without a full stop; NULL: none is known. */
const char *change_remedy(enum change_op op, const struct afs_error *error);

/* One change. The members that it needs depend on `op`; the rest is zero. */
struct change {
	enum change_op op;
	const char *label; /* names the object in messages */
	AFSFid dir;	   /* and name: of the object, or the old ones */
	const char *name;
	AFSFid new_dir; /* rename */
	const char *new_name;
	AFSFid fid;	  /* rename: the object; status */
	const char *text; /* symlink */
	AFSStoreStatus how;

	struct afs_object made; /* result of create, mkdir, symlink; status */
	bool unknown;		/* an earlier try may have made the change */
};

/*
 * Make the change. Repeats the call for the time of --retry if that may help, and finds out whether
 * an earlier try has succeeded. COPY_GOOD, or another result with *error, without a message.
 */
enum copy_result change_try(struct copy *copy, struct change *change, struct afs_error *error);
/* Make the change as change_try() does, and report a failure. */
enum copy_result change_make(struct copy *copy, struct change *change);
/* Print an error of a change with its remedy. */
void change_complain(struct copy *copy, enum change_op op, const struct afs_error *error);

/* Whether the object of a call does not exist any more. */
bool change_is_gone(const struct afs_error *error);

/* As copy_retry(), for calls that write: no other server has the volume. */
bool change_retry(struct copy *copy, struct outage *outage, struct afs_error *error, bool *moved);

/* Status to set: the time, and the mode unless `mode` is (mode_t)-1. */
AFSStoreStatus change_status(uint32_t mtime, mode_t mode);

#endif
