/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes with retries: a repeated call may find that its first try has succeeded. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "afs/numbers.h"
#include "program/message.h"
#include "afscp/change.h"
#include "afscp/partname.h"

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
	case CHANGE_LINK:
		return afs_client_link(client, &c->dir, c->name, &c->fid, c->label, error);
	case CHANGE_REMOVE:
	case CHANGE_RMDIR:
		return afs_client_remove(client, &c->dir, c->name, c->op == CHANGE_RMDIR, c->label,
					 error);
	case CHANGE_RENAME:
		return afs_client_rename(client, &c->dir, c->name, &c->new_dir, c->new_name,
					 c->label, error);
	case CHANGE_ACL:
		return afs_client_set_acl(client, &c->fid, c->label, c->text, error);
	case CHANGE_LOCK:
		return afs_client_lock(client, &c->fid, c->lock, c->label, error);
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
	if (renamed || c->op == CHANGE_LINK)
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

/*
 * Whether the change may have been made. No lock outlives the server that has set or released it.
 */
static bool is_unknown(const struct change *c, const struct afs_error *error)
{
	return afs_error_unknown(error) && !(c->op == CHANGE_LOCK && error->code == RXW_RESTARTING);
}

/* A second release may end the lock of somebody else. */
static bool may_repeat_release(const struct change *c)
{
	return !c->unknown || c->op != CHANGE_LOCK || c->lock != AFS_LOCK_RELEASE;
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
			c->unknown |= is_unknown(c, error);
			if (!may_repeat_release(c))
				return copy_judge(copy, error);
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

enum copy_result change_replace(struct copy *copy, struct change *change)
{
	struct change made = *change, gone = {.op = CHANGE_REMOVE, .label = change->label};
	struct change c = {.op = CHANGE_RENAME, .label = change->label, .dir = change->dir};
	struct afs_error error;
	char part[PART_NAME];
	enum copy_result rc;

	part_name_once(part, change->name);
	made.name = gone.name = c.name = part;
	gone.dir = c.new_dir = change->dir;
	rc = change_make(copy, &made);
	if (rc != COPY_GOOD)
		return rc;
	c.new_name = change->name;
	c.fid = made.made.fid;
	rc = change_make(copy, &c);
	if (rc != COPY_GOOD)
		change_try(copy, &gone, &error);
	return rc;
}
