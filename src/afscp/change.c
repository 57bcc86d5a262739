/* SPDX-License-Identifier: BSD-2-Clause */
/* What users can do about a change that failed. */
#include <errno.h>
#include <stddef.h>

#include "afs/numbers.h"
#include "afscp/change.h"

/* The right that a change needs. */
static const char *explain_missing_right(enum change_op op)
{
	switch (op) {
	case CHANGE_CREATE:
	case CHANGE_MKDIR:
	case CHANGE_SYMLINK:
	case CHANGE_LINK:
		return "you need the right i (insert) on the directory; see afscp acl";
	case CHANGE_MOUNT:
		return "you need the rights i (insert) and a (administer) on the directory; see "
		       "afscp acl";
	case CHANGE_REMOVE:
	case CHANGE_RMDIR:
		return "you need the right d (delete) on the directory; see afscp acl";
	case CHANGE_RENAME:
		return "you need the right d (delete) on the old directory, and i (insert) on the "
		       "new one, with d if the name exists; see afscp acl";
	case CHANGE_STATUS:
	case CHANGE_STORE:
		return "you need the right w (write) on the directory, and the owner's write bit in "
		       "the mode; see afscp acl and chmod";
	case CHANGE_ACL:
		return "you need the right a (administer) on the directory; see afscp acl";
	default:
		return "you need the right k (lock) for a shared lock, and w (write) for the other "
		       "kind; see afscp acl";
	}
}

static bool makes_name(enum change_op op)
{
	return op == CHANGE_CREATE || op == CHANGE_MKDIR || op == CHANGE_SYMLINK ||
	       op == CHANGE_MOUNT || op == CHANGE_LINK || op == CHANGE_RENAME;
}

static const char *explain_name(enum change_op op, int number)
{
	switch (number) {
	case EEXIST:
		return op == CHANGE_RMDIR || op == CHANGE_RENAME
			       ? "the directory is not empty; remove what is in it, or use rm -r"
			       : "choose another name, or remove what has this one";
	case ENOTEMPTY:
		return "remove what is in it, or use rm -r";
	case ENOTDIR:
		return op == CHANGE_RENAME ? "a directory cannot replace something else"
					   : "name a directory";
	case EISDIR:
		return op == CHANGE_LINK     ? "only files can have several names"
		       : op == CHANGE_RENAME ? "only a directory can replace a directory"
					     : "name a file, or use -r";
	case EXDEV:
		return op == CHANGE_LINK ? "hard links stay in one directory; use ln -s"
					 : "copy it with get and put, and remove it then";
	default:
		return NULL;
	}
}

static const char *explain_invalid_change(enum change_op op)
{
	switch (op) {
	case CHANGE_RENAME:
		return "both are one file, the target is inside the source, or the server does not "
		       "accept the name";
	case CHANGE_ACL:
		return "the server knows no user or group of one of the names; its administrator "
		       "can add them, on rxfsd with rxpt";
	case CHANGE_CREATE:
	case CHANGE_MKDIR:
	case CHANGE_SYMLINK:
	case CHANGE_MOUNT:
	case CHANGE_LINK:
		return "the server does not accept the name; choose another one";
	default:
		return NULL;
	}
}

const char *change_remedy(enum change_op op, const struct afs_error *error)
{
	if (error->origin == RXW_ORIGIN_PEER && error->code == AFS_VNOVNODE)
		return "another client has removed it meanwhile";
	switch (error->number) {
	case EACCES:
		return explain_missing_right(op);
	case EPERM:
		return "only administrators may do this";
	case EDQUOT:
		return "the volume's quota is used up; remove files, or ask an administrator for a "
		       "larger quota";
	case ENOSPC:
		return "the server's partition is full; remove files, or ask an administrator";
	case EROFS:
		return "the volume is read-only; name the read-write volume, without .readonly and "
		       ".backup";
	case ENAMETOOLONG:
		return "choose a name of at most 255 bytes";
	case EFBIG:
		if (makes_name(op))
			return "the directory is full: use another one, or shorter names";
		return "the server cannot store a file of this length";
	case EAGAIN:
		return op == CHANGE_LOCK ? "somebody else has locked the file; try again later"
					 : NULL;
	case E2BIG:
		return op == CHANGE_ACL
			       ? "with the names of all users the list would be too long to be "
				 "fetched; give rights to groups in place of users"
			       : NULL;
	case EMSGSIZE: /* OpenAFS's number for a loop */
	case EINVAL:
		return explain_invalid_change(op);
	default:
		return explain_name(op, error->number);
	}
}
