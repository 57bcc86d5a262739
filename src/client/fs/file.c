/* SPDX-License-Identifier: BSD-2-Clause */
/* Open files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "client/fs/operate.h"
#include "client/fs/serverlock.h"

static bool is_for_reading(int flags)
{
	return (flags & O_ACCMODE) != O_WRONLY;
}

static bool is_for_writing(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

static rxafs_file *make_open_file(rxafs_object *object, struct fs_vnode *v,
				  struct rxafs_request *request, int flags)
{
	rxafs_file *file = calloc(1, sizeof *file);
	struct cl_data_file *data;
	int result = -ENOMEM;

	if (!file)
		return NULL;
	file->vnode = v;
	file->flags = flags;
	file->user = rxafs_hold_user(request->user);
	file->opener = is_for_writing(flags) ? fs_hold_opener(file->user, v->fid.cell)
					     : rxafs_hold_user(file->user);
	if (file->opener || !file->user)
		result = fs_contents(v, &data);
	if (!result)
		result = cl_data_open(data, file->opener, &file->handle);
	if (result) {
		rxafs_put_user(file->opener);
		rxafs_put_user(file->user);
		free(file);
		return NULL;
	}
	file->object = rxafs_hold(object);
	return file;
}

static int check_open(rxafs_object *object, struct rxafs_request *request, int flags)
{
	int mode = flags & O_ACCMODE, mask = mode != O_WRONLY ? R_OK : 0;

	if (object->kind == RXAFS_DIRECTORY)
		return -EISDIR;
	if (object->kind == RXAFS_SYMLINK)
		return -ELOOP;
	if (is_for_writing(flags) || flags & O_TRUNC)
		mask |= W_OK;
	/* The kernel opens a program that it executes with this flag. */
	return rxafs_access(object, request, flags & 040 ? X_OK : mask);
}

/* What depends on the present length needs the present version: another client may have changed it. */
static int learn_present(rxafs_file *file, struct rxafs_request *request)
{
	struct cl_status status;
	int result = fs_status(file->vnode, request, &status);

	if (!result)
		fs_learned(file->vnode, &status);
	return result;
}

int rxafs_refresh(rxafs_file *file, struct rxafs_request *request)
{
	return learn_present(file, request);
}

static int truncate_opened(rxafs_file *file, struct rxafs_request *request, uint64_t size)
{
	struct cl_data_wait wait = fs_wait(file->vnode->client, request);
	int result = learn_present(file, request);

	return result ? result : cl_data_truncate(file->handle, &wait, size);
}

int rxafs_open(rxafs_object *object, struct rxafs_request *request, int flags, rxafs_file **out)
{
	rxafs_file *file;
	int result = check_open(object, request, flags);

	if (!result)
		result = fs_note_open(object->vnode, request);
	if (result)
		return result;
	file = make_open_file(object, object->vnode, request, flags);
	if (!file) {
		fs_note_close(object->vnode);
		return -ENOMEM;
	}
	result = flags & O_TRUNC ? truncate_opened(file, request, 0) : learn_present(file, request);
	if (result) {
		rxafs_close(file);
		return result == -EAGAIN ? RXAFS_WOULD_WAIT : result;
	}
	*out = file;
	return 0;
}

/* The file was made just now: it is empty, and no rights are checked (K-082). */
int fs_open_new(rxafs_object *object, struct rxafs_request *request, int flags,
		const struct cl_status *status, rxafs_file **out)
{
	rxafs_file *file = make_open_file(object, object->vnode, request, flags);

	if (!file)
		return -ENOMEM;
	fs_note_open_new(file->vnode);
	fs_learned(file->vnode, status);
	*out = file;
	return 0;
}

rxafs_object *rxafs_file_object(const rxafs_file *file)
{
	return file->object;
}

uint64_t rxafs_file_contents(const rxafs_file *file)
{
	return atomic_load(&file->vnode->contents);
}

uint64_t rxafs_contents(const rxafs_object *object)
{
	return object->vnode ? atomic_load(&object->vnode->contents) : 0;
}

int rxafs_lend_whole(rxafs_file *file, uint64_t *version, rxafs_whole **lent)
{
	return cl_data_lend_whole(file->handle, version, lent);
}

void rxafs_return_whole(rxafs_whole *lent)
{
	cl_data_return_whole(lent);
}

int64_t rxafs_read(rxafs_file *file, struct rxafs_request *request, void *buffer, size_t length,
		   uint64_t offset)
{
	struct cl_data_wait wait = fs_wait(file->vnode->client, request);
	struct cl_status status;
	ssize_t count;
	int result =
		is_for_reading(file->flags) ? fs_status(file->vnode, request, &status) : -EBADF;

	if (result)
		return result;
	fs_learned(file->vnode, &status);
	atomic_store(&file->vnode->forgotten, false);
	count = cl_data_read(file->handle, &wait, offset, buffer, length);
	return count == -EAGAIN && request->quick ? RXAFS_WOULD_WAIT : count;
}

int64_t rxafs_lend(rxafs_file *file, struct rxafs_request *request, size_t length, uint64_t offset,
		   struct iovec *iov, unsigned *count, rxafs_loan **loan)
{
	struct cl_data_wait wait = fs_wait(file->vnode->client, request);
	struct cl_data_loan *lent = NULL;
	struct cl_status status;
	ssize_t got;
	int result =
		is_for_reading(file->flags) ? fs_status(file->vnode, request, &status) : -EBADF;

	*loan = NULL;
	if (result)
		return result;
	fs_learned(file->vnode, &status);
	atomic_store(&file->vnode->forgotten, false);
	got = cl_data_lend(file->handle, &wait, offset, length, iov, count, &lent);
	*loan = (rxafs_loan *)lent;
	return got == -EAGAIN && request->quick ? RXAFS_WOULD_WAIT : got;
}

void rxafs_give_back(rxafs_loan *loan)
{
	cl_data_give_back((struct cl_data_loan *)loan);
}

/* Whoever keeps pages has put the bytes where he believed the end to be. */
static ssize_t append_to_contents(rxafs_file *file, struct rxafs_request *request,
				  const struct cl_data_wait *wait, const void *data, size_t length,
				  uint64_t believed)
{
	uint64_t offset = believed;
	int result = learn_present(file, request);
	ssize_t count;

	if (result)
		return result;
	count = cl_data_append(file->handle, wait, data, length, &offset);
	if (count > 0 && offset != believed) {
		atomic_fetch_add(&file->vnode->contents, 1);
		fs_tell(file->vnode, RXAFS_CHANGED_DATA | RXAFS_CHANGED_STATUS, NULL);
	}
	return count;
}

int rxafs_check_locks(const rxafs_file *file)
{
	return file->locked && atomic_load(&file->vnode->lock_lost) ? -EIO : 0;
}

int64_t rxafs_write(rxafs_file *file, struct rxafs_request *request, const void *data,
		    size_t length, uint64_t offset)
{
	struct cl_data_wait wait = fs_wait(file->vnode->client, request);
	ssize_t count;

	if (!is_for_writing(file->flags))
		return -EBADF;
	if (rxafs_check_locks(file))
		return fs_fail(request, -EIO, "the lock of the file was lost");
	/* Two steps, which must not be begun again when the second would wait. */
	if (request->quick && file->flags & (O_SYNC | O_DSYNC))
		return RXAFS_WOULD_WAIT;
	if (file->flags & O_APPEND)
		count = append_to_contents(file, request, &wait, data, length, offset);
	else
		count = cl_data_write(file->handle, &wait, offset, data, length);
	if (count == -EAGAIN && request->quick)
		return RXAFS_WOULD_WAIT;
	if (count > 0 && file->flags & (O_SYNC | O_DSYNC)) {
		int result = cl_data_flush(file->handle, &wait, true);

		if (result)
			return result;
	}
	return count;
}

int rxafs_truncate(rxafs_file *file, struct rxafs_request *request, uint64_t size)
{
	if (!is_for_writing(file->flags))
		return -EINVAL;
	return truncate_opened(file, request, size);
}

int rxafs_flush(rxafs_file *file, struct rxafs_request *request, bool durable)
{
	struct cl_data_wait wait = fs_wait(file->vnode->client, request);
	int result = cl_data_flush(file->handle, &wait, durable);

	return result == -EAGAIN && request->quick ? RXAFS_WOULD_WAIT : result;
}

void rxafs_close(rxafs_file *file)
{
	if (!file)
		return;
	if (file->locked)
		fs_drop_locks_of(file);
	cl_data_close(file->handle);
	fs_note_close(file->vnode);
	rxafs_put_user(file->opener);
	rxafs_put_user(file->user);
	rxafs_release(file->object);
	free(file);
}
