/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about open files, and locks. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "rxafs/kernel.h"
#include "rxafs/task.h"
#include "rxafs/through.h"

/* So often a read is done again when others change the file meanwhile. */
#define READS_MOST 8u

/* The handle goes to the kernel with the answer. 0 or an errno: then the file is closed. */
static int make_handle(struct task *t, rxafs_object *object, fuse_ino_t node, struct handle **made,
		       enum through_way *way)
{
	struct handle *h = handle_create(t->mount, t->file, NULL);

	if (!h) {
		rxafs_close(t->file);
		return ENOMEM;
	}
	h->writable = (t->flags & O_ACCMODE) != O_RDONLY;
	/* The kernel would put what is appended into its pages where it believes the end to be. */
	h->direct = (t->flags & O_APPEND) != 0;
	*way = through_begin(h, object, node, t->flags, t->request.user);
	if (*way == THROUGH_AGAIN) {
		handle_release(h);
		return ESTALE;
	}
	*made = h;
	return 0;
}

/* The answer to open and create. */
static void fill_open(struct task *t, struct handle *h, rxafs_object *object,
		      struct fuse_file_info *fi)
{
	*fi = (struct fuse_file_info){
		.flags = t->flags, .fh = handle_number(h), .direct_io = h->direct};
	/* What was closed elsewhere before this open is seen through it: neither old pages nor an old size are used. */
	fi->keep_cache = pages_are_of(t->mount, object, rxafs_file_contents(t->file));
	flusher_refresh(t->mount, object);
	fi->noflush = !h->writable;
}

static int run_open(struct task *t)
{
	return rxafs_open(t->object, &t->request, t->flags, &t->file);
}

/* libfuse 3.14 has no place for the number. */
static int reply_through(fuse_req_t req, struct handle *h, enum through_way way)
{
	struct fuse_open_out answer = {.fh = handle_number(h),
				       .open_flags = THROUGH_OPEN | FOPEN_NOFLUSH};
	uint32_t number = through_number(h->through);

	if (way == THROUGH_DIRECT)
		answer.open_flags |= FOPEN_DIRECT_IO;
	/* The last member, whose name has changed. */
	memcpy((char *)&answer + sizeof answer - sizeof number, &number, sizeof number);
	return fuse_reply_iov(req, &(struct iovec){&answer, sizeof answer}, 1);
}

static void reply_open(struct task *t)
{
	struct fuse_file_info fi;
	enum through_way way;
	struct handle *h;
	int error = make_handle(t, t->object, t->node, &h, &way);

	if (error) {
		fuse_reply_err(t->req, error);
		return;
	}
	fill_open(t, h, t->object, &fi);
	if (way == THROUGH_PAGES ? fuse_reply_open(t->req, &fi) : reply_through(t->req, h, way))
		handle_release(h);
}

static void undo_open(struct task *t)
{
	rxafs_close(t->file);
}

void serve_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_open, .reply = reply_open, .undo = undo_open, .cancels = true};
	struct task t = task_of(req, &kind, node);

	if (atomic_load(&t.mount->stopping)) {
		fuse_reply_err(req, ENOTCONN);
		return;
	}
	t.flags = fi->flags;
	task_start(&t);
}

static int run_create(struct task *t)
{
	t->look = kernel_begin_look(t->mount, t->object);
	return rxafs_create(t->object, &t->request, t->name, t->mode, t->flags, &t->made,
			    &t->attributes, &t->file);
}

static void undo_create(struct task *t)
{
	rxafs_close(t->file);
	rxafs_release(t->made);
}

static void reply_create(struct task *t)
{
	struct kernel_look look = {t->object, t->name, t->look};
	struct fuse_file_info fi;
	struct fuse_entry_param entry;
	enum through_way way;
	struct handle *h;
	int error;

	kernel_fill_entry(t->mount, &look, t->made, &t->attributes, &entry);
	error = make_handle(t, t->made, entry.ino, &h, &way);
	if (error) {
		rxafs_release(t->made);
		fuse_reply_err(t->req, error);
		return;
	}
	assert(way == THROUGH_PAGES);
	fill_open(t, h, t->made, &fi);
	if (fuse_reply_create(t->req, &entry, &fi)) {
		handle_release(h);
		rxafs_release(t->made);
	}
}

void serve_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		  struct fuse_file_info *fi)
{
	static const struct task_kind kind = {.run = run_create,
					      .reply = reply_create,
					      .undo = undo_create,
					      .never_quick = true,
					      .holds = true};
	struct task t = task_of(req, &kind, parent);

	if (atomic_load(&t.mount->stopping)) {
		fuse_reply_err(req, ENOTCONN);
		return;
	}
	t.name = name;
	t.mode = mode & 07777;
	t.flags = fi->flags;
	task_start(&t);
}

static int read_once(struct task *t)
{
	t->places = READ_PLACES;
	t->count = rxafs_lend(t->handle->file, &t->request, t->size, t->offset, t->iov, &t->places,
			      &t->loan);
	if (t->count >= 0)
		return 0;
	if (t->count != -E2BIG)
		return (int)t->count;
	t->bytes = malloc(t->size);
	if (!t->bytes)
		return -ENOMEM;
	t->count = rxafs_read(t->handle->file, &t->request, t->bytes, t->size, t->offset);
	t->iov[0] = (struct iovec){t->bytes, t->count > 0 ? (size_t)t->count : 0};
	t->places = 1;
	if (t->count >= 0)
		return 0;
	free(t->bytes);
	t->bytes = NULL;
	return (int)t->count;
}

static void undo_read(struct task *t)
{
	rxafs_give_back(t->loan);
	free(t->bytes);
	t->loan = NULL;
	t->bytes = NULL;
}

/* What is given to the kernel's pages must not have been changed by others since, as they might already be told that it is gone. */
static int run_read(struct task *t)
{
	rxafs_file *file = t->handle->file;

	if (!t->fills_pages)
		return read_once(t);
	for (unsigned tries = 1;; tries++) {
		struct pages_look look =
			pages_begin_read(t->mount, t->object, rxafs_file_contents(file));
		int result = read_once(t);

		if (result ||
		    pages_end_read(t->mount, t->object, &look, t->reading, tries == READS_MOST))
			return result;
		undo_read(t);
	}
}

static void reply_bytes(struct task *t)
{
	fuse_reply_iov(t->req, t->iov, (int)t->places);
	undo_read(t);
}

void serve_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_read, .reply = reply_bytes, .undo = undo_read, .cancels = true};
	struct task t = task_of(req, &kind, node);

	t.handle = handle_of(fi);
	t.size = size;
	t.offset = (uint64_t)offset;
	t.fills_pages = !t.handle->direct && !(fi->flags & O_DIRECT);
	task_start(&t);
}

/* So long a write waits for a promise of what it leaves in the kernel's pages. Without one they do not stay. */
#define PROMISE_NS UINT64_C(1000000000)

static int get_promise(struct task *t)
{
	struct rxafs_request request = t->request;
	int result;

	if (t->handle->direct || rxafs_is_promised(t->object))
		return 0;
	request.deadline = rxafs_now() + PROMISE_NS;
	result = rxafs_refresh(t->handle->file, &request);
	t->request.awaited = request.awaited;
	return result == RXAFS_WOULD_WAIT ? result : 0;
}

/*
 * What others had appended is told to the kernel before the answer. Later it would come between a question for the size and its
 * answer, which the kernel then ignores. A direct write holds no pages.
 */
static void settle_append(struct task *t, uint64_t contents)
{
	if (rxafs_file_contents(t->handle->file) != contents)
		flusher_await(t->mount, t->object);
}

static int run_write(struct task *t)
{
	uint64_t contents = rxafs_file_contents(t->handle->file);
	int result = get_promise(t);

	if (result)
		return result;
	/* It may wait below. */
	if (t->request.quick && t->handle->direct)
		return RXAFS_WOULD_WAIT;
	t->count = rxafs_write(t->handle->file, &t->request, t->data, t->size, t->offset);
	if (t->count < 0)
		return (int)t->count;
	if (t->handle->direct)
		settle_append(t, contents);
	else
		pages_note_write(t->mount, t->object, contents);
	return 0;
}

static void reply_count(struct task *t)
{
	fuse_reply_write(t->req, (size_t)t->count);
}

void serve_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset,
		 struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_write, .reply = reply_count, .holds = true};
	struct task t = task_of(req, &kind, node);

	t.handle = handle_of(fi);
	t.data = data;
	t.size = size;
	t.offset = (uint64_t)offset;
	task_start(&t);
}

static void reply_flushed(struct task *t)
{
	fuse_reply_err(t->req, 0);
}

static int run_flush(struct task *t)
{
	/* close(2) gives up the process's locks on ranges. What was written under them is stored first. */
	int result = rxafs_flush(t->handle->file, &t->request, false);

	if (result == RXAFS_WOULD_WAIT)
		return result;
	/* Also those that it took by another descriptor. */
	rxafs_drop_locks(t->handle->file, t->lock.owner, false);
	return result;
}

void serve_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	static const struct task_kind kind = {.run = run_flush, .reply = reply_flushed};
	struct task t = task_of(req, &kind, node);

	t.handle = handle_of(fi);
	t.lock.owner = fi->lock_owner;
	task_start(&t);
}

static int run_fsync(struct task *t)
{
	return rxafs_flush(t->handle->file, &t->request, true);
}

void serve_fsync(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi)
{
	static const struct task_kind kind = {
		.run = run_fsync, .reply = reply_flushed, .holds = true};
	struct task t = task_of(req, &kind, node);

	(void)data_only;
	t.handle = handle_of(fi);
	task_start(&t);
}

void serve_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	(void)node;
	fuse_reply_err(req, 0);
	/*
	 * Locks of the open file end with it. They are not looked for by their owner: its number may already be that of another open file,
	 * since close() does not wait for this request.
	 */
	handle_release(handle_of(fi));
}

/* -- locks -------------------------------------------------------------------------------- */

static int run_getlk(struct task *t)
{
	return rxafs_test_lock(t->handle->file, &t->request, &t->lock);
}

static void reply_lock(struct task *t)
{
	struct flock lock = {
		.l_type = (short)t->lock.type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)t->lock.start,
		.l_len = t->lock.end >= INT64_MAX ? 0 : (off_t)(t->lock.end - t->lock.start + 1),
		.l_pid = t->lock.pid};

	fuse_reply_lock(t->req, &lock);
}

static void read_lock(struct rxafs_lock *to, const struct flock *lock, uint64_t owner)
{
	*to = (struct rxafs_lock){.owner = owner,
				  .type = lock->l_type,
				  .pid = lock->l_pid,
				  .start = (uint64_t)lock->l_start,
				  .end = lock->l_len ? (uint64_t)(lock->l_start + lock->l_len - 1)
						     : UINT64_MAX};
}

void serve_getlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, struct flock *lock)
{
	static const struct task_kind kind = {.run = run_getlk, .reply = reply_lock};
	struct task t = task_of(req, &kind, node);

	t.handle = handle_of(fi);
	read_lock(&t.lock, lock, fi->lock_owner);
	task_start(&t);
}

static int run_setlk(struct task *t)
{
	int result = rxafs_set_lock(t->handle->file, &t->request, &t->lock, t->flags);

	/* The kernel holds nothing for this request, so the holder can wait until it has only what is right. */
	if (!result && !t->request.quick && t->lock.type != F_UNLCK)
		flusher_await(t->mount, t->object);
	return result;
}

static void undo_lock(struct task *t)
{
	struct rxafs_lock unlock = t->lock;

	unlock.type = F_UNLCK;
	rxafs_set_lock(t->handle->file, &t->request, &unlock, false);
}

static const struct task_kind lock_kind = {.run = run_setlk,
					   .reply = reply_flushed,
					   .undo = undo_lock,
					   .cancels = true,
					   .any_signal = true};

void serve_setlk(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, struct flock *lock,
		 int sleep)
{
	struct task t = task_of(req, &lock_kind, node);

	t.handle = handle_of(fi);
	t.flags = sleep;
	read_lock(&t.lock, lock, fi->lock_owner);
	task_start(&t);
}

void serve_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi, int op)
{
	struct task t = task_of(req, &lock_kind, node);

	t.handle = handle_of(fi);
	t.flags = !(op & LOCK_NB);
	t.lock = (struct rxafs_lock){.owner = fi->lock_owner,
				     .end = UINT64_MAX,
				     .whole = true,
				     .type = op & LOCK_UN   ? F_UNLCK
					     : op & LOCK_EX ? F_WRLCK
							    : F_RDLCK};
	task_start(&t);
}
