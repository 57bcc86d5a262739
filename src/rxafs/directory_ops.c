/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that list directories. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rxafs/kernel.h"
#include "rxafs/task.h"

static int run_opendir(struct task *t)
{
	return rxafs_open_listing(t->object, &t->request, &t->listing);
}

static void undo_opendir(struct task *t)
{
	rxafs_close_listing(t->listing);
}

static void reply_opendir(struct task *t)
{
	struct handle *h = handle_create(t->mount, NULL, t->listing);
	struct fuse_file_info fi = {.fh = handle_number(h)};

	if (!h) {
		undo_opendir(t);
		fuse_reply_err(t->req, ENOMEM);
	} else if (fuse_reply_open(t->req, &fi)) {
		handle_release(h);
	}
}

void serve_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_opendir, .reply = reply_opendir, .undo = undo_opendir, .cancels = true};
	struct task t = task_of(req, &kind, node);

	(void)fi;
	task_start(&t);
}

/* One entry with its name only; its bytes in the buffer. */
static size_t put_name(struct task *t, size_t used, const struct rxafs_entry *entry)
{
	struct stat stat = {.st_ino = entry->inode, .st_mode = DTTOIF(entry->type)};

	return fuse_add_direntry(t->req, t->bytes + used, t->size - used, entry->name, &stat,
				 (off_t)entry->next);
}

/*
 * The same with attributes if they are at hand, and 0 if a server must be asked for them. An entry that does not fit
 * does not count as a look-up.
 */
static size_t put_object(struct task *t, size_t used, const struct rxafs_entry *entry)
{
	struct fuse_entry_param param = {
		.ino = 0, .attr = {.st_ino = entry->inode, .st_mode = DTTOIF(entry->type)}};
	struct kernel_look look = {t->object, entry->name, t->look};
	struct rxafs_attributes attributes;
	rxafs_object *object = NULL;
	size_t bytes;

	if (strcmp(entry->name, ".") && strcmp(entry->name, "..")) {
		int result;

		result = rxafs_entry_object(t->handle->listing, &t->request, entry, &object,
					    &attributes);
		if (result == RXAFS_WOULD_WAIT)
			return 0;
		if (!result)
			kernel_fill_entry(t->mount, &look, object, &attributes, &param);
	}
	bytes = fuse_add_direntry_plus(t->req, t->bytes + used, t->size - used, entry->name, &param,
				       (off_t)entry->next);
	if (object && bytes > t->size - used)
		rxafs_release(object);
	else if (object)
		t->listed[t->listed_count++] = object;
	return bytes;
}

static int fill_listing(struct task *t,
			size_t (*put)(struct task *t, size_t used, const struct rxafs_entry *entry))
{
	uint64_t offset = t->offset;
	struct rxafs_entry entry;

	while ((size_t)t->count < t->size) {
		int more = rxafs_next_entry(t->handle->listing, &t->request, offset, &entry);
		size_t bytes;

		if (more < 0)
			return t->count ? 0 : more;
		if (!more)
			return 0;
		bytes = put(t, (size_t)t->count, &entry);
		if (!bytes)
			return t->count ? 0 : RXAFS_WOULD_WAIT;
		if (bytes > t->size - (size_t)t->count)
			return 0;
		t->count += (int64_t)bytes;
		offset = entry.next;
	}
	return 0;
}

static int list_into_buffer(struct task *t, size_t (*put)(struct task *t, size_t used,
							  const struct rxafs_entry *entry))
{
	int result;

	if (t->request.quick) {
		if (pthread_mutex_trylock(&t->handle->reading))
			return RXAFS_WOULD_WAIT;
	} else {
		pthread_mutex_lock(&t->handle->reading);
	}
	t->count = 0;
	t->bytes = malloc(t->size);
	result = t->bytes ? fill_listing(t, put) : -ENOMEM;
	pthread_mutex_unlock(&t->handle->reading);
	if (result) {
		free(t->bytes);
		t->bytes = NULL;
	}
	return result;
}

static int run_readdir(struct task *t)
{
	return list_into_buffer(t, put_name);
}

/* No entry with attributes is shorter than those. */
static int run_readdirplus(struct task *t)
{
	int result;

	t->listed_count = 0;
	t->look = kernel_begin_look(t->mount, t->object);
	t->listed = calloc(t->size / sizeof(struct stat) + 1, sizeof(rxafs_object *));
	if (!t->listed)
		return -ENOMEM;
	result = list_into_buffer(t, put_object);
	if (result) {
		free(t->listed);
		t->listed = NULL;
	}
	return result;
}

static void undo_objects(struct task *t)
{
	for (size_t i = 0; i < t->listed_count; i++)
		rxafs_release(t->listed[i]);
	free(t->listed);
	free(t->bytes);
}

static void reply_objects(struct task *t)
{
	if (!fuse_reply_buf(t->req, t->bytes, (size_t)t->count))
		t->listed_count = 0;
	t->look = kernel_begin_look(t->mount, t->object);
	undo_objects(t);
}

static void reply_entries(struct task *t)
{
	fuse_reply_buf(t->req, t->bytes, (size_t)t->count);
	free(t->bytes);
}

static void undo_entries(struct task *t)
{
	free(t->bytes);
}

static void start_listing(fuse_req_t req, const struct task_kind *kind, fuse_ino_t node,
			  size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct task t = task_of(req, kind, node);

	t.handle = handle_of(fi);
	t.size = size;
	t.offset = (uint64_t)offset;
	task_start(&t);
}

void serve_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	static const struct task_kind kind = {.run = run_readdir,
					      .reply = reply_entries,
					      .undo = undo_entries,
					      .cancels = true,
					      .holds = true};

	start_listing(req, &kind, node, size, offset, fi);
}

void serve_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	static const struct task_kind kind = {.run = run_readdirplus,
					      .reply = reply_objects,
					      .undo = undo_objects,
					      .holds = true};

	start_listing(req, &kind, node, size, offset, fi);
}

void serve_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	(void)node;
	fuse_reply_err(req, 0);
	handle_release(handle_of(fi));
}

/* Changes of names are at the server before they return. */
void serve_fsyncdir(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi)
{
	(void)node, (void)data_only, (void)fi;
	fuse_reply_err(req, 0);
}
