/* SPDX-License-Identifier: BSD-2-Clause */
/* Failed changes: whether an earlier try has made them, and remedies. */
#ifndef COPY_CHANGE_ERROR_H
#define COPY_CHANGE_ERROR_H

#include <stdbool.h>

#include "afs/client/error.h"
#include "afs/rxafs.h"

enum change_op {
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

#endif
