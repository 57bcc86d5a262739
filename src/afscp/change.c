/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes with retries: a repeated call may find that its first try has succeeded. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "afs/numbers.h"
#include "program/message.h"
#include "afscp/change.h"
#include "afscp/local.h"

/* ---- decisions after a failed change, from its error alone ---- */

enum decision change_decide(enum change_op op, bool unknown, const struct afs_error *error)
{
	/* The new name tells by its FID. */
	if (op == CHANGE_RENAME && error->number == ENOENT)
		return DECIDE_LOOK;
	/*
	 * A server that is killed and started again carries out a request twice if its packets are
	 * sent again. A file that exists is none of these cases: two puts of a source make the
	 * same.
	 */
	if (!unknown && (!error->resent || op == CHANGE_CREATE))
		return DECIDE_FAIL;
	switch (op) {
	case CHANGE_CREATE:
	case CHANGE_MKDIR:
	case CHANGE_SYMLINK:
	case CHANGE_MOUNT:
	case CHANGE_LINK:
		return error->number == EEXIST ? DECIDE_LOOK : DECIDE_FAIL;
	case CHANGE_REMOVE:
	case CHANGE_RMDIR:
		/* It was there: nothing is removed that was not looked up before. */
		return error->number == ENOENT ? DECIDE_DONE : DECIDE_FAIL;
	default:
		/* The other changes can be repeated. */
		return DECIDE_FAIL;
	}
}

bool change_is_ours(enum change_op op, const AFSStoreStatus *how, const AFSFetchStatus *found)
{
	/* The upper bits of a mode are lost without a message. */
	if ((how->Mask & AFS_SETMODTIME && found->ClientModTime != how->ClientModTime) ||
	    (how->Mask & AFS_SETMODE && (found->UnixModeBits ^ how->UnixModeBits) & 0777))
		return false;
	if (op == CHANGE_CREATE)
		return found->FileType == AFS_TYPE_FILE && found->Length == 0 &&
		       found->Length_hi == 0 && found->LinkCount == 1;
	return found->FileType == AFS_TYPE_DIR && found->LinkCount == 2;
}

bool change_may_repeat(const struct afs_error *error)
{
	return error->remedy == AFS_REMEDY_WAIT ||
	       (error->remedy == AFS_REMEDY_OTHER && error->code == RXW_CALL_TIMEOUT);
}

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

/* ---- changes ---- */

AFSStoreStatus change_status(uint32_t mtime, mode_t mode)
{
	AFSStoreStatus how = {.Mask = AFS_SETMODTIME, .ClientModTime = mtime};

	if (mode != (mode_t)-1) {
		how.Mask |= AFS_SETMODE;
		how.UnixModeBits = mode & 07777;
	}
	return how;
}

/* The text of EFBIG is about files: leave the name. */
static void cut_reason(char *text)
{
	char *reason = strstr(text, ": File too large");

	if (reason)
		*reason = 0;
}

void change_complain(struct copy *copy, enum change_op op, const struct afs_error *error)
{
	const char *remedy = change_remedy(op, error);
	struct afs_error told = *error;

	if (error->number == EFBIG && op != CHANGE_STORE && op != CHANGE_STATUS)
		cut_reason(told.text);
	if (remedy)
		tools_error("%s: %s%s", told.text, remedy,
			    error->number == EACCES ? copy_authentication(copy) : "");
	else
		copy_complain(copy, error);
}

bool change_is_gone(const struct afs_error *error)
{
	return error->origin == RXW_ORIGIN_PEER && error->code == AFS_VNOVNODE;
}

bool change_retry(struct copy *copy, struct outage *outage, struct afs_error *error, bool *moved)
{
	/* The only server of the volume may only be slow. */
	if (change_may_repeat(error))
		error->remedy = AFS_REMEDY_WAIT;
	return copy_retry(copy, outage, error, moved);
}

/* One call. 0, or -1 and *error. */
static int call_once(struct afs_client *client, struct change *c, struct afs_error *error)
{
	switch (c->op) {
	case CHANGE_CREATE:
		return afs_client_create(client, &c->dir, c->name, &c->how, c->label, &c->made,
					 error);
	case CHANGE_MKDIR:
		return afs_client_mkdir(client, &c->dir, c->name, &c->how, c->label, &c->made,
					error);
	case CHANGE_SYMLINK:
	case CHANGE_MOUNT:
		return afs_client_symlink(client, &c->dir, c->name, c->text, &c->how, c->label,
					  &c->made, error);
	case CHANGE_REMOVE:
	case CHANGE_RMDIR:
		return afs_client_remove(client, &c->dir, c->name, c->op == CHANGE_RMDIR, c->label,
					 error);
	case CHANGE_RENAME:
		return afs_client_rename(client, &c->dir, c->name, &c->new_dir, c->new_name,
					 c->label, error);
	default:
		return afs_client_set_status(client, &c->fid, &c->how, c->label, &c->made.status,
					     error);
	}
}

/*
 * Whether the object that has the name now is the one that the change would have made. 1, 0, or -1
 * and *error.
 */
static int look_once(struct afs_client *client, struct change *c, struct afs_error *error)
{
	bool renamed = c->op == CHANGE_RENAME;
	char text[AFSPATHMAX + 1];
	AFSFid found;
	int rc = afs_client_lookup(client, renamed ? &c->new_dir : &c->dir,
				   renamed ? c->new_name : c->name, c->label, &found, error);

	if (rc <= 0)
		return rc;
	if (renamed)
		return found.Vnode == c->fid.Vnode && found.Unique == c->fid.Unique;
	c->made.fid = found;
	if (afs_client_status(client, &found, c->label, &c->made.status, error) < 0)
		return -1;
	if (c->op == CHANGE_CREATE || c->op == CHANGE_MKDIR)
		return change_is_ours(c->op, &c->how, &c->made.status);
	if (c->made.status.FileType != AFS_TYPE_SYMLINK)
		return 0;
	if (afs_client_readlink(client, &found, c->label, text, error) < 0)
		return -1;
	return strcmp(text, c->text) == 0;
}

/* Whether the change was made, found out with retries. */
static bool was_made(struct copy *copy, struct change *c, struct outage *outage)
{
	struct afs_error error;
	int rc;

	while ((rc = look_once(copy->client, c, &error)) < 0)
		if (!change_retry(copy, outage, &error, NULL))
			return false;
	return rc > 0;
}

enum copy_result change_try(struct copy *copy, struct change *c, struct afs_error *error)
{
	struct outage outage = {0};

	copy_fresh(copy);
	while (call_once(copy->client, c, error) < 0) {
		switch (change_decide(c->op, c->unknown, error)) {
		case DECIDE_DONE:
			return COPY_GOOD;
		case DECIDE_LOOK:
			return was_made(copy, c, &outage) ? COPY_GOOD : copy_judge(copy, error);
		default:
			c->unknown |= afs_error_unknown(error);
			if (!change_retry(copy, &outage, error, NULL))
				return copy_judge(copy, error);
		}
	}
	return COPY_GOOD;
}

enum copy_result change_make(struct copy *copy, struct change *c)
{
	struct afs_error error;
	enum copy_result rc = change_try(copy, c, &error);

	if (rc != COPY_GOOD)
		change_complain(copy, c->op, &error);
	return rc;
}
