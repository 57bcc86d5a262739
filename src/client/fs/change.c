/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that change names: what they do to the cache, and what became of a call whose answer was lost (K-094). */
#include <errno.h>
#include <string.h>

#include "client/fs/operate.h"

int fs_check_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	return length > CL_NAME_MAX ? -ENAMETOOLONG : 0;
}

struct cl_edit fs_edit(const char *removed, const char *added, const AFSFid *fid)
{
	return (struct cl_edit){.removed = removed,
				.added = added,
				.removed_length = removed ? strlen(removed) : 0,
				.added_length = added ? strlen(added) : 0,
				.vnode = fid ? fid->Vnode : 0,
				.unique = fid ? fid->Unique : 0};
}

int fs_begin_change(struct fs_change *c, rxafs_object *directory, rxafs_object *other,
		    struct rxafs_request *request)
{
	int result = fs_enter_to_change(directory, request, &c->directory);

	c->other = NULL;
	if (!result && other)
		result = fs_enter_to_change(other, request, &c->other);
	if (result)
		return result;
	if (c->other && c->other->volume != c->directory->volume &&
	    cl_volume_id(c->other->volume) != cl_volume_id(c->directory->volume))
		return -EXDEV;
	c->through = directory;
	c->other_through = other;
	cl_change_begin(c->directory->object);
	if (c->other && c->other != c->directory)
		cl_change_begin(c->other->object);
	fs_begin_call(&c->call, directory->client, request);
	return 0;
}

static void end_one(struct fs_change *c, struct fs_vnode *directory, const struct cl_edit *edit,
		    const AFSFetchStatus *status, int result)
{
	struct cl_effect effect = {.outcome = CL_NOT_DONE, .raised = 1, .edit = edit};
	struct cl_status known;

	if (!result) {
		effect.outcome = CL_DONE;
		effect.reply = fs_reply(&c->call, NULL);
		effect.status = status;
	} else if (c->call.request->failure.maybe_done) {
		effect.outcome = CL_UNKNOWN;
		effect.now = cl_net_now();
		/* Whether a rename can still be done depends on the old name, which may be in the other directory. */
		if (directory != c->directory)
			effect.edit = NULL;
	}
	cl_change_end(directory->object, &effect, &known);
	/* The caller of the library knows of the change where it was made, not at other mount points. */
	fs_tell(directory, RXAFS_CHANGED_NAMES | RXAFS_CHANGED_STATUS,
		directory == c->directory ? c->through : c->other_through);
}

int fs_end_change(struct fs_change *c, int result)
{
	end_one(c, c->directory, &c->edit, &c->status, result);
	if (c->other && c->other != c->directory)
		end_one(c, c->other, &c->other_edit, &c->other_status, result);
	return result;
}

int fs_look_again(struct fs_vnode *directory, const struct rxafs_request *request, const char *name,
		  struct rxafs_fid *fid)
{
	struct rxafs_request again = *request;

	again.deadline = 0;
	cl_object_doubt(directory->object);
	return fs_find(directory, &again, name, fid, NULL);
}

bool fs_may_repeat(const struct rxafs_request *request, int failed)
{
	return failed == -ETIMEDOUT && request->failure.code != RXW_CALL_TIMEOUT;
}

/* *undone: the answer was lost, and the directory shows that nothing was done. */
static int try_to_remove(rxafs_object *directory, struct rxafs_request *request, const char *name,
			 bool *undone)
{
	struct fs_change c;
	struct rxafs_fid before, now;
	int known, result = fs_begin_change(&c, directory, NULL, request);
	AFSFid fid;

	if (result)
		return result;
	fid = fs_afs_fid(&c.directory->fid);
	known = cl_dir_find(c.directory->object, name, strlen(name), cl_net_now(), &before);
	c.edit = fs_edit(name, NULL, NULL);
	result = cl_net_remove_file(c.directory->volume, &c.call.caller, &fid, name, &c.status,
				    &c.call.stamp, &request->failure);
	fs_end_change(&c, result);
	if (result && request->failure.maybe_done) {
		int found = fs_look_again(c.directory, request, name, &now);
		bool same = !found && !known && rxafs_fid_same(&before, &now);

		if (found == -ENOENT || (!found && !known && !same))
			return 0;
		*undone = same && fs_may_repeat(request, result);
	}
	return result;
}

int fs_remove_file(rxafs_object *directory, struct rxafs_request *request, const char *name)
{
	bool undone = false;
	int result = try_to_remove(directory, request, name, &undone);

	return undone ? try_to_remove(directory, request, name, &undone) : result;
}

/* *undone: as of try_to_remove(). */
static int try_to_rename(rxafs_object *directory, struct rxafs_request *request, const char *name,
			 rxafs_object *new_directory, const char *new_name,
			 const struct rxafs_fid *fid, bool *undone)
{
	struct fs_change c;
	struct rxafs_fid now;
	AFSFid from, to, moved = fs_afs_fid(fid);
	int result = fs_begin_change(&c, directory, new_directory, request);

	if (result)
		return result;
	from = fs_afs_fid(&c.directory->fid);
	to = fs_afs_fid(&c.other->fid);
	if (c.other == c.directory) {
		c.edit = fs_edit(name, new_name, &moved);
	} else {
		c.edit = fs_edit(name, NULL, NULL);
		c.other_edit = fs_edit(NULL, new_name, &moved);
	}
	result = cl_net_rename(c.directory->volume, &c.call.caller, &from, name, &to, new_name,
			       &c.status, &c.other_status, &c.call.stamp, &request->failure);
	fs_end_change(&c, result);
	if (!result || !request->failure.maybe_done)
		return result;
	if (!fs_look_again(c.other, request, new_name, &now) && rxafs_fid_same(&now, fid))
		return fs_look_again(c.directory, request, name, &now) == -ENOENT ? 0 : result;
	*undone = fs_may_repeat(request, result) &&
		  !fs_look_again(c.directory, request, name, &now) && rxafs_fid_same(&now, fid);
	return result;
}

/* `fid` is the object's, which takes the place of whatever has the new name. */
int fs_rename(rxafs_object *directory, struct rxafs_request *request, const char *name,
	      rxafs_object *new_directory, const char *new_name, const struct rxafs_fid *fid)
{
	bool undone = false;
	int result = try_to_rename(directory, request, name, new_directory, new_name, fid, &undone);

	if (undone)
		result = try_to_rename(directory, request, name, new_directory, new_name, fid,
				       &undone);
	return result;
}
