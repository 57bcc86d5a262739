/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of queues: which function each of them is. */
#include <errno.h>
#include <stdlib.h>

#include "client/fs/events.h"

static int64_t do_lookup(struct rxafs_operation *op)
{
	return rxafs_lookup(op->object, &op->request, op->name, &op->found, &op->attributes);
}

static int64_t do_walk(struct rxafs_operation *op)
{
	return rxafs_walk(op->object, &op->request, op->name, op->flags, &op->found);
}

static int64_t do_getattr(struct rxafs_operation *op)
{
	return rxafs_getattr(op->object, &op->request, &op->attributes);
}

static int64_t do_setattr(struct rxafs_operation *op)
{
	return rxafs_setattr(op->object, &op->request, op->changes, &op->attributes);
}

static int64_t do_access(struct rxafs_operation *op)
{
	return rxafs_access(op->object, &op->request, op->flags);
}

static int64_t do_readlink(struct rxafs_operation *op)
{
	return rxafs_readlink(op->object, &op->request, &op->text);
}

static int64_t do_mkdir(struct rxafs_operation *op)
{
	return rxafs_mkdir(op->object, &op->request, op->name, op->mode, &op->found,
			   &op->attributes);
}

static int64_t do_symlink(struct rxafs_operation *op)
{
	return rxafs_symlink(op->object, &op->request, op->name, op->new_name, &op->found,
			     &op->attributes);
}

static int64_t do_link(struct rxafs_operation *op)
{
	return rxafs_link(op->object, &op->request, op->new_directory, op->new_name,
			  &op->attributes);
}

static int64_t do_unlink(struct rxafs_operation *op)
{
	return rxafs_unlink(op->object, &op->request, op->name);
}

static int64_t do_rmdir(struct rxafs_operation *op)
{
	return rxafs_rmdir(op->object, &op->request, op->name);
}

static int64_t do_rename(struct rxafs_operation *op)
{
	return rxafs_rename(op->object, &op->request, op->name, op->new_directory, op->new_name,
			    op->flags);
}

static int64_t do_getxattr(struct rxafs_operation *op)
{
	return rxafs_getxattr(op->object, &op->request, op->name, &op->text, &op->length);
}

static int64_t do_setxattr(struct rxafs_operation *op)
{
	return rxafs_setxattr(op->object, &op->request, op->name, op->buffer, op->length);
}

static int64_t do_statfs(struct rxafs_operation *op)
{
	return rxafs_statfs(op->object, &op->request, &op->space);
}

static int64_t do_open(struct rxafs_operation *op)
{
	return rxafs_open(op->object, &op->request, op->flags, &op->opened);
}

static int64_t do_create(struct rxafs_operation *op)
{
	return rxafs_create(op->object, &op->request, op->name, op->mode, op->flags, &op->found,
			    &op->attributes, &op->opened);
}

static int64_t do_read(struct rxafs_operation *op)
{
	return rxafs_read(op->file, &op->request, op->buffer, op->length, op->offset);
}

static int64_t do_write(struct rxafs_operation *op)
{
	return rxafs_write(op->file, &op->request, op->buffer, op->length, op->offset);
}

static int64_t do_flush(struct rxafs_operation *op)
{
	return rxafs_flush(op->file, &op->request, op->flags);
}

static int64_t do_truncate(struct rxafs_operation *op)
{
	return rxafs_truncate(op->file, &op->request, op->offset);
}

static int64_t do_set_lock(struct rxafs_operation *op)
{
	return rxafs_set_lock(op->file, &op->request, op->lock, op->flags);
}

static int64_t do_test_lock(struct rxafs_operation *op)
{
	return rxafs_test_lock(op->file, &op->request, op->lock);
}

static int64_t do_open_listing(struct rxafs_operation *op)
{
	return rxafs_open_listing(op->object, &op->request, &op->listing);
}

static int64_t do_read_listing(struct rxafs_operation *op)
{
	return rxafs_read_listing(op->listing, &op->request, &op->entry, &op->found,
				  &op->attributes);
}

/* What an operation needs, beside numbers. */
enum {
	OBJECT = 1,
	NAME = 2,
	NEW_NAME = 4,
	NEW_DIRECTORY = 8,
	FILE_ = 16,
	BUFFER = 32,
	LISTING = 64,
	CHANGES = 128,
	LOCK = 256,
	RUN = 512
};

static const struct {
	int64_t (*run)(struct rxafs_operation *op);
	unsigned needs;
	bool repeats;
} operations[] = {
	[RXAFS_OP_RUN] = {NULL, RUN, false},
	[RXAFS_OP_LOOKUP] = {do_lookup, OBJECT | NAME, true},
	[RXAFS_OP_WALK] = {do_walk, OBJECT | NAME, true},
	[RXAFS_OP_GETATTR] = {do_getattr, OBJECT, true},
	[RXAFS_OP_SETATTR] = {do_setattr, OBJECT | CHANGES, false},
	[RXAFS_OP_ACCESS] = {do_access, OBJECT, true},
	[RXAFS_OP_READLINK] = {do_readlink, OBJECT, true},
	[RXAFS_OP_MKDIR] = {do_mkdir, OBJECT | NAME, false},
	[RXAFS_OP_SYMLINK] = {do_symlink, OBJECT | NAME | NEW_NAME, false},
	[RXAFS_OP_LINK] = {do_link, OBJECT | NEW_DIRECTORY | NEW_NAME, false},
	[RXAFS_OP_UNLINK] = {do_unlink, OBJECT | NAME, false},
	[RXAFS_OP_RMDIR] = {do_rmdir, OBJECT | NAME, false},
	[RXAFS_OP_RENAME] = {do_rename, OBJECT | NAME | NEW_DIRECTORY | NEW_NAME, false},
	[RXAFS_OP_GETXATTR] = {do_getxattr, OBJECT | NAME, true},
	[RXAFS_OP_SETXATTR] = {do_setxattr, OBJECT | NAME | BUFFER, false},
	[RXAFS_OP_STATFS] = {do_statfs, OBJECT, true},
	[RXAFS_OP_OPEN] = {do_open, OBJECT, true},
	[RXAFS_OP_CREATE] = {do_create, OBJECT | NAME, false},
	[RXAFS_OP_READ] = {do_read, FILE_ | BUFFER, true},
	[RXAFS_OP_WRITE] = {do_write, FILE_ | BUFFER, true},
	[RXAFS_OP_FLUSH] = {do_flush, FILE_, true},
	[RXAFS_OP_TRUNCATE] = {do_truncate, FILE_, false},
	[RXAFS_OP_SET_LOCK] = {do_set_lock, FILE_ | LOCK, true},
	[RXAFS_OP_TEST_LOCK] = {do_test_lock, FILE_ | LOCK, true},
	[RXAFS_OP_OPEN_LISTING] = {do_open_listing, OBJECT, true},
	[RXAFS_OP_READ_LISTING] = {do_read_listing, LISTING, true},
};

bool fs_operation_valid(const struct rxafs_operation *op)
{
	unsigned code = (unsigned)op->code, has;

	if (op->size != sizeof *op || !code || code >= sizeof operations / sizeof operations[0])
		return false;
	has = (op->object ? OBJECT : 0) | (op->name ? NAME : 0) | (op->new_name ? NEW_NAME : 0) |
	      (op->new_directory ? NEW_DIRECTORY : 0) | (op->file ? FILE_ : 0) |
	      (op->buffer || !op->length ? BUFFER : 0) | (op->listing ? LISTING : 0) |
	      (op->changes ? CHANGES : 0) | (op->lock ? LOCK : 0) | (op->run ? RUN : 0);
	return !(operations[code].needs & ~has);
}

bool fs_operation_repeats(const struct rxafs_operation *op)
{
	return operations[op->code].repeats;
}

int64_t fs_do_operation(struct rxafs_operation *op)
{
	return op->code == RXAFS_OP_RUN ? op->run(op) : operations[op->code].run(op);
}

void fs_drop_results(struct rxafs_operation *op)
{
	if (op->opened)
		rxafs_close(op->opened);
	if (op->found)
		rxafs_release(op->found);
	if (op->code == RXAFS_OP_OPEN_LISTING && op->listing)
		rxafs_close_listing(op->listing);
	free(op->text);
	op->opened = NULL;
	op->found = NULL;
	op->text = NULL;
}
