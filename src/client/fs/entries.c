/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that come and go. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/stream.h>

#include "afs/fetchstatus.h"
#include "client/fs/operate.h"
#include "client/fs/show.h"

/* What is made in a directory. */
struct making {
	rxafs_object *directory;
	struct rxafs_request *request;
	const char *name, *text;
	enum rxafs_kind kind;
	uint32_t mode;
	bool timed; /* its time is given: */
	uint32_t time;
	struct cl_made made;
	struct cl_status status; /* of the new object */
	struct fs_vnode *vnode;	 /* a reference */
	bool undone;		 /* an answer was lost, and nothing was done */
};

static int call_make(struct making *m, struct fs_change *c)
{
	AFSFid directory = fs_afs_fid(&c->directory->fid);
	AFSStoreStatus how = {.Mask = AFS_SETMODE | AFS_SETMODTIME,
			      .UnixModeBits = m->mode,
			      .ClientModTime = m->timed ? m->time : (uint32_t)time(NULL)};
	struct rxafs_failure *failure = &m->request->failure;

	if (m->kind == RXAFS_DIRECTORY)
		return cl_net_make_dir(c->directory->volume, &c->call.caller, &directory, m->name,
				       &how, &m->made, &c->call.stamp, failure);
	if (m->kind == RXAFS_SYMLINK)
		return cl_net_make_symlink(c->directory->volume, &c->call.caller, &directory,
					   m->name, m->text, &how, &m->made, &c->call.stamp,
					   failure);
	return cl_net_create_file(c->directory->volume, &c->call.caller, &directory, m->name, &how,
				  &m->made, &c->call.stamp, failure);
}

/* After success: the new object and its status. */
static int take_made(struct making *m, struct fs_change *c)
{
	struct rxafs_fid fid = {c->directory->fid.cell, m->made.fid.Volume, m->made.fid.Vnode,
				m->made.fid.Unique};

	m->vnode = fs_get_vnode(m->directory->client, c->directory->volume, &fid);
	if (!m->vnode)
		return -ENOMEM;
	cl_cache_apply(m->vnode->object, fs_reply(&c->call, &c->call.stamp.callback),
		       &m->made.status, &m->status);
	if (m->kind == RXAFS_DIRECTORY)
		cl_dir_load_new(m->vnode->object, c->directory->object);
	return 0;
}

/* Whether an object that has the name now is what the call without an answer has made. */
static bool is_ours(struct making *m)
{
	char *text;
	bool same;

	if (m->status.kind != m->kind)
		return false;
	if (m->kind == RXAFS_FILE)
		return !m->status.size && !m->status.version;
	if (m->kind == RXAFS_DIRECTORY)
		return true;
	if (fs_link_text(m->vnode, m->request, &m->status, &text))
		return false;
	same = !strcmp(text, m->text);
	free(text);
	return same;
}

/* The name did not exist before: `missing` says that this is known. 0 if it is ours now. */
static int find_made(struct making *m, struct fs_change *c, bool missing, int failed)
{
	struct rxafs_fid fid;
	int result;

	if (!missing)
		return failed;
	result = fs_look_again(c->directory, m->request, m->name, &fid);
	m->undone = result == -ENOENT && fs_may_repeat(m->request, failed);
	if (result)
		return failed;
	m->vnode = fs_get_vnode(m->directory->client, c->directory->volume, &fid);
	if (!m->vnode)
		return -ENOMEM;
	result = fs_status(m->vnode, m->request, &m->status);
	if (!result && is_ours(m))
		return 0;
	fs_put_vnode(m->vnode);
	m->vnode = NULL;
	return result ? result : -EEXIST;
}

static int try_to_make(struct making *m)
{
	struct fs_change c;
	struct rxafs_fid fid;
	bool missing;
	int result = fs_check_name(m->name);

	if (!result)
		result = fs_begin_change(&c, m->directory, NULL, m->request);
	if (result)
		return result;
	missing = cl_dir_find(c.directory->object, m->name, strlen(m->name), cl_net_now(), &fid) ==
		  -ENOENT;
	result = call_make(m, &c);
	c.edit = fs_edit(NULL, m->name, &m->made.fid);
	c.status = m->made.dir_status;
	fs_end_change(&c, result);
	if (!result)
		return take_made(m, &c);
	if (m->request->failure.maybe_done)
		return find_made(m, &c, missing, result);
	/* What is known of the name is wrong. */
	if (result == -EEXIST)
		cl_object_doubt(c.directory->object);
	return result;
}

/* Once more, if an answer was lost and nothing was done (K-094). */
static int make_named(struct making *m)
{
	int result = try_to_make(m);

	return result && m->undone ? try_to_make(m) : result;
}

/* How long the new name holds. */
static void show_made(struct making *m, rxafs_object *object, struct rxafs_attributes *attributes)
{
	struct fs_vnode *directory = fs_entered(m->directory);
	struct cl_status status;
	uint64_t now = cl_net_now();

	fs_show(object, m->request, &m->status, attributes);
	if (directory && !cl_object_status(directory->object, now, &status) &&
	    status.valid_until > now)
		attributes->name_valid_ns = status.valid_until - now;
}

static int make_object_named(struct making *m, rxafs_object **object,
			     struct rxafs_attributes *attributes)
{
	int result = make_named(m);

	if (result)
		return result;
	*object = fs_get_object(m->directory, m->vnode, m->kind, NULL);
	fs_put_vnode(m->vnode);
	if (!*object)
		return -ENOMEM;
	show_made(m, *object, attributes);
	return 0;
}

int rxafs_make_file(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    const struct rxafs_changes *set, rxafs_object **object,
		    struct rxafs_attributes *attributes)
{
	struct making m = {directory,
			   request,
			   .name = name,
			   .kind = RXAFS_FILE,
			   .mode = set->set & RXAFS_SET_MODE ? set->mode & 0777 : 0644,
			   .timed = set->set & RXAFS_SET_TIME,
			   .time = (uint32_t)fs_nearest_time(set->time)};

	return make_object_named(&m, object, attributes);
}

int rxafs_mkdir(rxafs_object *directory, struct rxafs_request *request, const char *name,
		uint32_t mode, rxafs_object **object, struct rxafs_attributes *attributes)
{
	struct making m = {directory, request, .name = name, .kind = RXAFS_DIRECTORY,
			   .mode = mode & 0777};

	return make_object_named(&m, object, attributes);
}

int fs_make_link(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 const char *text, const struct rxafs_changes *set, rxafs_object **object,
		 struct rxafs_attributes *attributes)
{
	struct making m = {directory,
			   request,
			   .name = name,
			   .text = text,
			   .kind = RXAFS_SYMLINK,
			   .mode = set->mode,
			   .timed = set->set & RXAFS_SET_TIME,
			   .time = (uint32_t)fs_nearest_time(set->time)};

	if (strlen(text) > AFSPATHMAX)
		return -ENAMETOOLONG;
	return make_object_named(&m, object, attributes);
}

/* Mode 0755: whatever the text, it is no mount point (K-016). */
int rxafs_make_link(rxafs_object *directory, struct rxafs_request *request, const char *name,
		    const char *text, const struct rxafs_changes *set, rxafs_object **object,
		    struct rxafs_attributes *attributes)
{
	struct rxafs_changes link = *set;

	link.mode = 0755;
	return fs_make_link(directory, request, name, text, &link, object, attributes);
}

int rxafs_symlink(rxafs_object *directory, struct rxafs_request *request, const char *name,
		  const char *text, rxafs_object **object, struct rxafs_attributes *attributes)
{
	static const struct rxafs_changes untimed;

	return rxafs_make_link(directory, request, name, text, &untimed, object, attributes);
}

static int open_existing(rxafs_object *directory, struct rxafs_request *request, const char *name,
			 int flags, rxafs_object **object, struct rxafs_attributes *attributes,
			 rxafs_file **file)
{
	int result = rxafs_lookup(directory, request, name, object, attributes);

	if (result)
		return result;
	result = rxafs_open(*object, request, flags & ~O_EXCL, file);
	if (result)
		goto out;
	/* O_TRUNC has changed it. */
	result = fs_show_now(*object, request, attributes);
	if (result)
		rxafs_close(*file);
out:
	if (result)
		rxafs_release(*object);
	return result;
}

int rxafs_create(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 uint32_t mode, int flags, rxafs_object **object,
		 struct rxafs_attributes *attributes, rxafs_file **file)
{
	struct making m = {directory, request, .name = name, .kind = RXAFS_FILE,
			   .mode = mode & 0777};
	int result;

	/* Another client may make it, or remove it, between two of our looks (K-101). */
	for (unsigned i = 0; i < 3; i++) {
		result = make_object_named(&m, object, attributes);
		if (!result) {
			result = fs_open_new(*object, request, flags, &m.status, file);
			if (result)
				rxafs_release(*object);
			return result;
		}
		if (result != -EEXIST || flags & O_EXCL)
			return result;
		result = open_existing(directory, request, name, flags, object, attributes, file);
		if (result != -ENOENT)
			return result;
	}
	return result;
}

/* After a lost answer. 0: it was done; *undone: it was not. */
static int find_linked(struct fs_vnode *directory, const rxafs_object *object,
		       const struct rxafs_request *request, const char *name, int failed,
		       bool *undone)
{
	struct rxafs_fid now;
	int found = fs_look_again(directory, request, name, &now);

	*undone = found == -ENOENT && fs_may_repeat(request, failed);
	return !found && rxafs_fid_same(&now, &object->fid) ? 0 : failed;
}

static int try_to_link(rxafs_object *object, struct rxafs_request *request, rxafs_object *directory,
		       const char *name, struct rxafs_attributes *attributes, bool *undone)
{
	struct fs_change c;
	struct cl_made made = {0};
	AFSFid to, fid;
	int result = fs_check_name(name);

	if (object->kind != RXAFS_FILE)
		return -EPERM;
	if (!result)
		result = fs_begin_change(&c, directory, NULL, request);
	if (result)
		return result;
	to = fs_afs_fid(&c.directory->fid);
	fid = fs_afs_fid(&object->fid);
	c.edit = fs_edit(NULL, name, &fid);
	if (cl_volume_id(c.directory->volume) != cl_volume_id(object->vnode->volume)) {
		request->failure = (struct rxafs_failure){0};
		return fs_end_change(&c, -EXDEV);
	}
	cl_change_begin_quiet(object->vnode->object);
	result = cl_net_make_link(c.directory->volume, &c.call.caller, &to, name, &fid, &made,
				  &c.call.stamp, &request->failure);
	c.status = made.dir_status;
	fs_end_change(&c, result);
	struct cl_effect effect = {.outcome = !result			    ? CL_DONE
					      : request->failure.maybe_done ? CL_UNKNOWN
									    : CL_NOT_DONE,
				   .now = cl_net_now(),
				   .reply = &c.call.reply,
				   .status = result ? NULL : &made.status};
	struct cl_status known;
	cl_change_end(object->vnode->object, &effect, &known);
	/* A server may know no links between directories. */
	if (result == -EISDIR)
		return -EPERM;
	if (result && request->failure.maybe_done)
		result = find_linked(c.directory, object, request, name, result, undone);
	return result ? result : fs_show_now(object, request, attributes);
}

int rxafs_link(rxafs_object *object, struct rxafs_request *request, rxafs_object *directory,
	       const char *name, struct rxafs_attributes *attributes)
{
	bool undone = false;
	int result = try_to_link(object, request, directory, name, attributes, &undone);

	return undone ? try_to_link(object, request, directory, name, attributes, &undone) : result;
}

/* -- names that go ------------------------------------------------------------------------ */

/* A directory without a name. Who has it open still sees what it was. */
static void note_removed(struct fs_vnode *v)
{
	atomic_store(&v->removed, true);
	cl_object_gone(v->object);
}

int rxafs_unlink(rxafs_object *directory, struct rxafs_request *request, const char *name)
{
	struct rxafs_attributes attributes;
	rxafs_object *object;
	bool leaving = false, last;
	int result = fs_check_name(name);

	if (result)
		return result;
	if (directory->what == FS_ROOT)
		return -EROFS;
	result = rxafs_lookup(directory, request, name, &object, &attributes);
	if (result)
		return result;
	last = object->kind == RXAFS_FILE && attributes.stat.st_nlink <= 1;
	if (last)
		leaving = fs_begin_leaving(object->vnode);
	if (object->kind == RXAFS_DIRECTORY && object->what == FS_PLAIN)
		result = -EISDIR;
	else if (last && !leaving)
		result = fs_hide(directory, request, name, object->vnode);
	else
		result = fs_remove_file(directory, request, name);
	if (!result && object->vnode) {
		/* Its number of names has changed, or it is gone. */
		cl_object_doubt(object->vnode->object);
		if (attributes.stat.st_nlink > 1)
			fs_tell(object->vnode, RXAFS_CHANGED_STATUS, NULL);
	}
	if (leaving)
		fs_end_leaving(object->vnode);
	rxafs_release(object);
	return result;
}

/* *undone: the answer was lost, and the directory is still there. */
static int try_to_rmdir(rxafs_object *directory, struct rxafs_request *request, const char *name,
			bool *undone)
{
	struct rxafs_attributes attributes;
	struct fs_change c;
	struct rxafs_fid now;
	rxafs_object *object;
	AFSFid fid;
	int result = fs_check_name(name);

	if (result)
		return result == -EINVAL && !strcmp(name, "..") ? -ENOTEMPTY : result;
	if (directory->what == FS_ROOT)
		return -EROFS;
	result = rxafs_lookup(directory, request, name, &object, &attributes);
	if (result)
		return result;
	if (object->what != FS_PLAIN)
		result = -EBUSY;
	else if (object->kind != RXAFS_DIRECTORY)
		result = -ENOTDIR;
	if (!result)
		result = fs_begin_change(&c, directory, NULL, request);
	if (result)
		goto out;
	fid = fs_afs_fid(&c.directory->fid);
	c.edit = fs_edit(name, NULL, NULL);
	result = cl_net_remove_dir(c.directory->volume, &c.call.caller, &fid, name, &c.status,
				   &c.call.stamp, &request->failure);
	fs_end_change(&c, result);
	if (result && request->failure.maybe_done) {
		int found = fs_look_again(c.directory, request, name, &now);

		*undone = !found && rxafs_fid_same(&now, &object->fid) &&
			  fs_may_repeat(request, result);
		if (found == -ENOENT || (!found && !rxafs_fid_same(&now, &object->fid)))
			result = 0;
	}
	if (!result)
		note_removed(object->vnode);
	if (result == -EEXIST)
		result = -ENOTEMPTY;
out:
	rxafs_release(object);
	return result;
}

int rxafs_rmdir(rxafs_object *directory, struct rxafs_request *request, const char *name)
{
	bool undone = false;
	int result = try_to_rmdir(directory, request, name, &undone);

	return undone ? try_to_rmdir(directory, request, name, &undone) : result;
}

/* -- rename ---------------------------------------------------------------------------------- */

/* What had the new name. */
struct replaced {
	rxafs_object
		*object; /* a reference to a directory or a file that was not open; NULL: neither */
	bool leaving;	 /* such a file */
};

/* What is at the new name gives way; 1: nothing is to be done, since both names are of one file. */
static int clear_target(rxafs_object *object, rxafs_object *new_directory,
			struct rxafs_request *request, const char *new_name, bool no_replace,
			struct replaced *replaced)
{
	struct rxafs_attributes attributes;
	rxafs_object *target;
	int result = rxafs_lookup(new_directory, request, new_name, &target, &attributes);

	*replaced = (struct replaced){NULL};
	if (result)
		return result == -ENOENT ? 0 : result;
	if (no_replace)
		result = -EEXIST;
	else if (target == object)
		result = 1;
	else if (target->kind == RXAFS_DIRECTORY && object->kind != RXAFS_DIRECTORY)
		result = -EISDIR;
	/* To the server a mount point is a link. */
	else if (target->kind != RXAFS_DIRECTORY && object->kind == RXAFS_DIRECTORY &&
		 object->what == FS_PLAIN)
		result = -ENOTDIR;
	else if (target->kind == RXAFS_FILE && attributes.stat.st_nlink <= 1) {
		replaced->leaving = fs_begin_leaving(target->vnode);
		if (!replaced->leaving)
			result = fs_hide(new_directory, request, new_name, target->vnode);
	}
	if (!result && target->vnode)
		cl_object_doubt(target->vnode->object);
	if (replaced->leaving ||
	    (!result && target->what == FS_PLAIN && target->kind == RXAFS_DIRECTORY))
		replaced->object = target;
	else
		rxafs_release(target);
	return result;
}

int rxafs_rename(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 rxafs_object *new_directory, const char *new_name, bool no_replace)
{
	struct rxafs_attributes attributes;
	struct fs_vnode *from, *to;
	rxafs_object *object;
	struct replaced replaced;
	int result = fs_check_name(name);

	if (!result)
		result = fs_check_name(new_name);
	if (!result)
		result = fs_enter_to_change(directory, request, &from);
	if (!result)
		result = fs_enter_to_change(new_directory, request, &to);
	if (result)
		return result;
	if (cl_volume_id(from->volume) != cl_volume_id(to->volume) ||
	    from->fid.cell != to->fid.cell)
		return -EXDEV;
	result = rxafs_lookup(directory, request, name, &object, &attributes);
	if (result)
		return result;
	result = clear_target(object, new_directory, request, new_name, no_replace, &replaced);
	if (!result)
		result = fs_rename(directory, request, name, new_directory, new_name, &object->fid);
	if (!result && from != to && object->vnode)
		cl_object_moved(object->vnode->object, to->fid.vnode, to->fid.unique);
	if (replaced.leaving)
		fs_end_leaving(replaced.object->vnode);
	else if (replaced.object && !result)
		note_removed(replaced.object->vnode);
	if (replaced.object)
		rxafs_release(replaced.object);
	rxafs_release(object);
	if (result == -EEXIST && !no_replace)
		result = -ENOTEMPTY;
	return result == 1 ? 0 : result == -EREMOTEIO ? -EXDEV : result;
}
