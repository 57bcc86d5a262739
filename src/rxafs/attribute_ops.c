/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about attributes, rights, extended attributes and space. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "rxafs/kernel.h"
#include "rxafs/task.h"
#include "rxafs/through.h"

#define LOOKS_MOST 8u

static void reply_attributes(struct task *t)
{
	kernel_show_owner(t->mount, &t->attributes.stat);
	fuse_reply_attr(t->req, &t->attributes.stat,
			kernel_attribute_time(t->mount, &t->attributes));
}

static int run_getattr(struct task *t)
{
	uint64_t changes;
	unsigned tries = 0;
	int result;

	do {
		changes = kernel_begin_attributes(t->mount, t->object);
		result = rxafs_getattr(t->object, &t->request, &t->attributes);
	} while (!result && !kernel_end_attributes(t->mount, t->object, changes) &&
		 ++tries < LOOKS_MOST);
	if (!result)
		through_show(t->mount, t->object, t->node, &t->attributes);
	/* Others change it all the time. */
	if (tries == LOOKS_MOST)
		t->attributes.valid_ns = 0;
	return result;
}

void serve_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_getattr, .reply = reply_attributes, .cancels = true};
	struct task t = task_of(req, &kind, node);

	t.handle = handle_of(fi);
	task_start(&t);
}

/* The kernel takes them without regard to a notification meanwhile, so it must not keep them. */
static void reply_set(struct task *t)
{
	kernel_show_owner(t->mount, &t->attributes.stat);
	fuse_reply_attr(t->req, &t->attributes.stat, 0);
}

static int run_setattr(struct task *t)
{
	int result;

	/* ftruncate(2) has the rights of the descriptor. */
	if (t->changes.set & RXAFS_SET_SIZE && t->handle && t->handle->file) {
		result = rxafs_truncate(t->handle->file, &t->request, t->changes.size);
		if (result)
			return result;
		t->changes.set &= ~(unsigned)RXAFS_SET_SIZE;
	}
	return rxafs_setattr(t->object, &t->request, &t->changes, &t->attributes);
}

static void read_changes(struct rxafs_changes *changes, const struct stat *attr, int to_set)
{
	if (to_set & FUSE_SET_ATTR_MODE) {
		changes->set |= RXAFS_SET_MODE;
		changes->mode = attr->st_mode & 07777;
	}
	if (to_set & FUSE_SET_ATTR_UID) {
		changes->set |= RXAFS_SET_OWNER;
		changes->owner = attr->st_uid;
	}
	if (to_set & FUSE_SET_ATTR_GID) {
		changes->set |= RXAFS_SET_GROUP;
		changes->group = attr->st_gid;
	}
	if (to_set & FUSE_SET_ATTR_SIZE) {
		changes->set |= RXAFS_SET_SIZE;
		changes->size = (uint64_t)attr->st_size;
	}
	if (to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) {
		changes->set |= RXAFS_SET_TIME;
		changes->time = to_set & FUSE_SET_ATTR_MTIME_NOW ? time(NULL) : attr->st_mtime;
	}
}

void serve_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr, int to_set,
		   struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_setattr, .reply = reply_set, .never_quick = true, .holds = true};
	struct task t = task_of(req, &kind, node);

	t.handle = handle_of(fi);
	/* A file already is that of its user. */
	if (t.mount->own_files && attr->st_uid == getuid())
		to_set &= ~FUSE_SET_ATTR_UID;
	if (t.mount->own_files && attr->st_gid == getgid())
		to_set &= ~FUSE_SET_ATTR_GID;
	read_changes(&t.changes, attr, to_set);
	task_start(&t);
}

static int run_readlink(struct task *t)
{
	return rxafs_readlink(t->object, &t->request, &t->bytes);
}

static void undo_bytes(struct task *t)
{
	free(t->bytes);
}

static void reply_text(struct task *t)
{
	fuse_reply_readlink(t->req, t->bytes);
	free(t->bytes);
}

void serve_readlink(fuse_req_t req, fuse_ino_t node)
{
	static const struct task_kind kind = {
		.run = run_readlink, .reply = reply_text, .undo = undo_bytes, .cancels = true};
	struct task t = task_of(req, &kind, node);

	task_start(&t);
}

static int run_access(struct task *t)
{
	return rxafs_access(t->object, &t->request, t->flags);
}

static void reply_nothing(struct task *t)
{
	fuse_reply_err(t->req, 0);
}

void serve_access(fuse_req_t req, fuse_ino_t node, int mask)
{
	static const struct task_kind kind = {
		.run = run_access, .reply = reply_nothing, .cancels = true};
	struct task t = task_of(req, &kind, node);

	t.flags = mask;
	task_start(&t);
}

static int run_statfs(struct task *t)
{
	/* df(1) must not wait for a dead server (K-120). */
	t->request.deadline = rxafs_now() + UINT64_C(5000000000);
	return rxafs_statfs(t->object, &t->request, &t->space);
}

static void reply_space(struct task *t)
{
	struct statvfs vfs = {.f_bsize = 4096,
			      .f_frsize = 1024,
			      .f_blocks = t->space.total,
			      .f_bfree = t->space.free,
			      .f_bavail = t->space.free,
			      .f_namemax = 255};

	fuse_reply_statfs(t->req, &vfs);
}

void serve_statfs(fuse_req_t req, fuse_ino_t node)
{
	static const struct task_kind kind = {
		.run = run_statfs, .reply = reply_space, .cancels = true};
	struct task t = task_of(req, &kind, node ? node : FUSE_ROOT_ID);

	task_start(&t);
}

/* -- extended attributes ------------------------------------------------------------------ */

static int run_getxattr(struct task *t)
{
	size_t length = 0;
	int result = rxafs_getxattr(t->object, &t->request, t->name, &t->bytes, &length);

	t->count = (int64_t)length;
	return result;
}

static void reply_value(struct task *t)
{
	size_t length = (size_t)t->count;

	if (!t->size)
		fuse_reply_xattr(t->req, length);
	else if (t->size < length)
		fuse_reply_err(t->req, ERANGE);
	else
		fuse_reply_buf(t->req, t->bytes, length);
	free(t->bytes);
}

/* The kernel asks for security.capability before the first write(2) to a file; before Linux 5.11, before each. */
static int refuse_xattr(const char *name)
{
	if (!strncmp(name, "afs.", 4))
		return 0;
	return strncmp(name, "security.", 9) ? EOPNOTSUPP : ENODATA;
}

void serve_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size)
{
	static const struct task_kind kind = {
		.run = run_getxattr, .reply = reply_value, .undo = undo_bytes, .cancels = true};
	struct task t = task_of(req, &kind, node);
	int error = refuse_xattr(name);

	if (error) {
		fuse_reply_err(req, error);
		return;
	}
	t.name = name;
	t.size = size;
	task_start(&t);
}

static int run_setxattr(struct task *t)
{
	return rxafs_setxattr(t->object, &t->request, t->name, t->data, t->size);
}

void serve_setxattr(fuse_req_t req, fuse_ino_t node, const char *name, const char *value,
		    size_t size, int flags)
{
	static const struct task_kind kind = {
		.run = run_setxattr, .reply = reply_nothing, .never_quick = true, .holds = true};
	struct task t = task_of(req, &kind, node);

	(void)flags;
	if (refuse_xattr(name)) {
		fuse_reply_err(req, EOPNOTSUPP);
		return;
	}
	t.name = name;
	t.data = value;
	t.size = size;
	task_start(&t);
}

/* None are listed, so that copies of trees do not take access lists along by accident. */
void serve_listxattr(fuse_req_t req, fuse_ino_t node, size_t size)
{
	(void)node;
	if (size)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_xattr(req, 0);
}

void serve_removexattr(fuse_req_t req, fuse_ino_t node, const char *name)
{
	(void)node;
	fuse_reply_err(req, refuse_xattr(name) == ENODATA ? ENODATA : EOPNOTSUPP);
}
