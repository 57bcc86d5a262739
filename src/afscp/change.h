/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes, and what users can do about failed ones. */
#ifndef COPY_CHANGE_H
#define COPY_CHANGE_H

#include "afscp/failure.h"

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

/* The remedy for the error, a text without a full stop; NULL: none is known. */
const char *change_remedy(enum change_op op, const struct afs_error *error);

#endif
