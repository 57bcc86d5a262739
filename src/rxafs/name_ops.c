/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about names. */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "rxafs/kernel.h"
#include "rxafs/task.h"

/* The name is in `object`, or that of a new link in `other`. */
static struct kernel_look look_of(struct task *t)
{
	return (struct kernel_look){t->other ? t->other : t->object, t->name, t->look};
}

static void give_entry(struct task *t)
{
	struct kernel_look look = look_of(t);
	struct fuse_entry_param entry;

	kernel_fill_entry(t->mount, &look, t->made, &t->attributes, &entry);
	/* The kernel takes attributes of a new link without regard to a notification meanwhile. */
	if (t->other)
		entry.attr_timeout = 0;
	/* The kernel counts a look-up only if it takes the answer. */
	if (fuse_reply_entry(t->req, &entry))
		rxafs_release(t->made);
}

static void undo_entry(struct task *t)
{
	rxafs_release(t->made);
}

static int run_lookup(struct task *t)
{
	int result;

	t->look = kernel_begin_look(t->mount, t->object);
	t->made = NULL;
	result = rxafs_lookup(t->object, &t->request, t->name, &t->made, &t->attributes);
	/* A missing name is an answer as well, which may be kept. */
	return result == -ENOENT ? 0 : result;
}

static void reply_lookup(struct task *t)
{
	struct kernel_look look = look_of(t);
	struct fuse_entry_param none = {.ino = 0};

	if (t->made) {
		give_entry(t);
		return;
	}
	none.entry_timeout = kernel_missing_time(t->mount, &look, &t->attributes);
	if (none.entry_timeout > 0)
		fuse_reply_entry(t->req, &none);
	else
		fuse_reply_err(t->req, ENOENT);
}

static void undo_lookup(struct task *t)
{
	if (t->made)
		rxafs_release(t->made);
}

void serve_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	static const struct task_kind kind = {.run = run_lookup,
					      .reply = reply_lookup,
					      .undo = undo_lookup,
					      .cancels = true,
					      .holds = true};
	struct task t = task_of(req, &kind, parent);

	t.name = name;
	task_start(&t);
}

static int run_make_directory(struct task *t)
{
	t->look = kernel_begin_look(t->mount, t->object);
	return rxafs_mkdir(t->object, &t->request, t->name, t->mode, &t->made, &t->attributes);
}

void serve_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	static const struct task_kind kind = {.run = run_make_directory,
					      .reply = give_entry,
					      .undo = undo_entry,
					      .never_quick = true,
					      .holds = true};
	struct task t = task_of(req, &kind, parent);

	t.name = name;
	t.mode = mode & 07777;
	task_start(&t);
}

static int run_mknod(struct task *t)
{
	rxafs_file *file;
	int result;

	t->look = kernel_begin_look(t->mount, t->object);
	result = rxafs_create(t->object, &t->request, t->name, t->mode, O_EXCL | O_RDONLY, &t->made,
			      &t->attributes, &file);
	if (!result)
		rxafs_close(file);
	return result;
}

/* Only plain files: AFS has no others. */
void serve_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	static const struct task_kind kind = {.run = run_mknod,
					      .reply = give_entry,
					      .undo = undo_entry,
					      .never_quick = true,
					      .holds = true};
	struct task t = task_of(req, &kind, parent);

	(void)device;
	if (!S_ISREG(mode)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	t.name = name;
	t.mode = mode & 07777;
	task_start(&t);
}

static int run_symlink(struct task *t)
{
	t->look = kernel_begin_look(t->mount, t->object);
	return rxafs_symlink(t->object, &t->request, t->name, t->new_name, &t->made,
			     &t->attributes);
}

void serve_symlink(fuse_req_t req, const char *text, fuse_ino_t parent, const char *name)
{
	static const struct task_kind kind = {.run = run_symlink,
					      .reply = give_entry,
					      .undo = undo_entry,
					      .never_quick = true,
					      .holds = true};
	struct task t = task_of(req, &kind, parent);

	t.name = name;
	t.new_name = text;
	task_start(&t);
}

static int run_link(struct task *t)
{
	int result;

	t->look = kernel_begin_look(t->mount, t->other);
	result = rxafs_link(t->object, &t->request, t->other, t->name, &t->attributes);
	if (!result)
		t->made = rxafs_hold(t->object);
	return result;
}

void serve_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t new_parent, const char *new_name)
{
	static const struct task_kind kind = {.run = run_link,
					      .reply = give_entry,
					      .undo = undo_entry,
					      .never_quick = true,
					      .holds = true};
	struct task t = task_of(req, &kind, node);

	t.other = node_object(t.mount, new_parent);
	t.name = new_name;
	task_start(&t);
}

static void reply_done(struct task *t)
{
	fuse_reply_err(t->req, 0);
}

static int run_unlink(struct task *t)
{
	return rxafs_unlink(t->object, &t->request, t->name);
}

void serve_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	static const struct task_kind kind = {
		.run = run_unlink, .reply = reply_done, .never_quick = true, .holds = true};
	struct task t = task_of(req, &kind, parent);

	t.name = name;
	task_start(&t);
}

static int run_rmdir(struct task *t)
{
	return rxafs_rmdir(t->object, &t->request, t->name);
}

void serve_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	static const struct task_kind kind = {
		.run = run_rmdir, .reply = reply_done, .never_quick = true, .holds = true};
	struct task t = task_of(req, &kind, parent);

	t.name = name;
	task_start(&t);
}

/* The kernel moves what it keeps of the name along. */
static void note_renamed(struct task *t)
{
	struct rxafs_request request = {.user = t->request.user, .quick = true};
	struct rxafs_attributes attributes;
	rxafs_object *object;

	if (rxafs_lookup(t->other, &request, t->new_name, &object, &attributes)) {
		kernel_note_name(t->mount, t->other, t->new_name, t->mount->can_expire);
		return;
	}
	kernel_note_name(t->mount, t->other, t->new_name, S_ISDIR(attributes.stat.st_mode));
	rxafs_release(object);
}

static int run_rename(struct task *t)
{
	int result = rxafs_rename(t->object, &t->request, t->name, t->other, t->new_name,
				  t->flags & RENAME_NOREPLACE);

	if (!result)
		note_renamed(t);
	return result;
}

void serve_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		  const char *new_name, unsigned flags)
{
	static const struct task_kind kind = {
		.run = run_rename, .reply = reply_done, .never_quick = true, .holds = true};
	struct task t = task_of(req, &kind, parent);

	if (flags & ~(unsigned)RENAME_NOREPLACE) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	t.other = node_object(t.mount, new_parent);
	t.name = name;
	t.new_name = new_name;
	t.flags = (int)flags;
	task_start(&t);
}
