/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and changing the contents of a file: what programs do. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/data/filesteps.h"
#include "common/clock.h"
#include "common/held.h"

#define LOAN_PARTS 16 /* of one loan or step of a read */

/* -- reading -------------------------------------------------------------------------------- */

/* Parts of a file in memory, pinned. */
struct cl_data_loan {
	struct buffer *buffers[LOAN_PARTS];
	unsigned count;
};

/* Never written. Not a constant, which would be 64 KiB of the library. */
static unsigned char zeros[64 * 1024];

static void give_back_parts(struct cl_data_loan *loan)
{
	for (unsigned i = 0; i < loan->count; i++)
		buffer_put(loan->buffers[i]);
	loan->count = 0;
}

/* The longest part from `at` on that is in one place. */
static struct iovec lend_part(struct cl_data_file *file, uint64_t at, size_t length,
			      struct cl_data_loan *loan)
{
	unsigned shift = file->data->block_shift;
	uint32_t start = (uint32_t)(at & (block_size(file->data) - 1)),
		 end = block_size(file->data);
	uint32_t gap, gap_end;
	struct block *block = block_find(file, at >> shift);

	if (end - start > length)
		end = start + (uint32_t)length;
	gap = block ? extents_gap(&block->valid, start, end, &gap_end) : start;
	if (!block)
		gap_end = end;
	if (gap > start) {
		block->used = true;
		loan->buffers[loan->count++] = block_lend(block, gap);
		return (struct iovec){block->buffer->bytes + start, gap - start};
	}
	if (gap_end - start > sizeof(zeros))
		gap_end = start + sizeof(zeros);
	return (struct iovec){(void *)(uintptr_t)zeros, gap_end - start};
}

/* Lends what is there from `offset` on, at most `length` bytes. With the lock held. */
static size_t lend_parts(struct cl_data_file *file, uint64_t offset, size_t length,
			 struct iovec *iov, unsigned room, unsigned *count,
			 struct cl_data_loan *loan)
{
	size_t lent = 0;

	for (*count = 0; lent < length && *count < room && loan->count < LOAN_PARTS; ++*count) {
		iov[*count] = lend_part(file, offset + lent, length - lent, loan);
		lent += iov[*count].iov_len;
	}
	return lent;
}

/* Makes bytes present. With the lock held. Their number, at most `length`; 0 at the end of the file. */
static ssize_t ready_bytes(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			   uint64_t offset, size_t length)
{
	struct cl_data_file *file = handle->file;
	uint64_t end = file_length(file);
	int error;

	assert(file->known);
	if (length > SSIZE_MAX)
		length = SSIZE_MAX;
	if (offset >= end || !length)
		return 0;
	if (length > end - offset)
		length = (size_t)(end - offset);
	if (!(wait && wait->only_try) || file_covers(file, offset, offset + length))
		file_read_ahead(handle, offset, offset + length);
	error = file_fetch(handle, wait, offset, offset + length);
	if (error)
		return error;
	/* The file may have become shorter meanwhile. */
	end = file_length(file);
	if (offset >= end)
		return 0;
	return (ssize_t)(length > end - offset ? end - offset : length);
}

/* A part of a read that is on disk and not in memory, within one block. */
struct disk_part {
	struct cl_disk_version version;
	uint64_t number;
	uint32_t start, length;
};

/* False: the bytes at `offset` are elsewhere. With the lock held. */
static bool find_disk_part(struct cl_data_file *file, uint64_t offset, size_t length,
			   struct disk_part *part)
{
	uint32_t size = block_size(file->data);
	uint64_t known = file_known_end(file);

	if (!file->disk || offset >= known)
		return false;
	part->number = offset >> file->data->block_shift;
	if (block_find(file, part->number) || !file_has_on_disk(file, part->number))
		return false;
	part->version = file_disk_version(file);
	part->start = (uint32_t)(offset & (size - 1));
	if (length > known - offset)
		length = (size_t)(known - offset);
	part->length = length < size - part->start ? (uint32_t)length : size - part->start;
	return true;
}

/* Bytes read; 0: the bytes are not on the disk after all; -EAGAIN. Without the lock. */
static ssize_t read_disk_part(struct cl_data_file *file, const struct cl_data_wait *wait,
			      const struct disk_part *part, void *bytes)
{
	int64_t got = cl_disk_read_block(file->disk, &part->version, part->number, part->start,
					 bytes, part->length, wait && wait->only_try);

	return got > 0 || got == -EAGAIN ? (ssize_t)got : 0;
}

/* One step of a read, of at most LOAN_PARTS blocks. */
static ssize_t read_step(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			 uint64_t offset, unsigned char *bytes, size_t length)
{
	struct cl_data_file *file = handle->file;
	struct cl_data_loan loan = {.count = 0};
	struct iovec iov[LOAN_PARTS];
	struct disk_part part;
	unsigned count = 0;
	ssize_t present = 0;

	pthread_mutex_lock(&file->lock);
	if (find_disk_part(file, offset, length, &part)) {
		file_read_ahead(handle, offset, offset + part.length);
		pthread_mutex_unlock(&file->lock);
		present = read_disk_part(file, wait, &part, bytes);
		if (present)
			return present;
		pthread_mutex_lock(&file->lock);
	}
	present = ready_bytes(handle, wait, offset, length);
	if (present > 0)
		present = (ssize_t)lend_parts(file, offset, (size_t)present, iov, LOAN_PARTS,
					      &count, &loan);
	pthread_mutex_unlock(&file->lock);
	for (unsigned i = 0; i < count; i++) {
		memcpy(bytes, iov[i].iov_base, iov[i].iov_len);
		bytes += iov[i].iov_len;
	}
	give_back_parts(&loan);
	return present;
}

ssize_t cl_data_read(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		     uint64_t offset, void *bytes, size_t length)
{
	size_t done = 0, step = (LOAN_PARTS / 2) * (size_t)block_size(handle->file->data);
	ssize_t got = 1;

	while (done < length && got > 0) {
		got = read_step(handle, wait, offset + done, (unsigned char *)bytes + done,
				length - done < step ? length - done : step);
		if (got > 0)
			done += (size_t)got;
	}
	return done || got > 0 ? (ssize_t)done : got;
}

/* Lends a part that is on the disk, in a buffer of its own. The lock is held, and released meanwhile. 0: it is not there. */
static ssize_t lend_from_disk(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			      const struct disk_part *part, struct iovec *iov,
			      struct cl_data_loan *loan)
{
	struct cl_data_file *file = handle->file;
	uint64_t at = (part->number << file->data->block_shift) + part->start;
	struct buffer *buffer;
	ssize_t got;

	file_read_ahead(handle, at, at + part->length);
	pthread_mutex_unlock(&file->lock);
	buffer = buffer_make(file->data, part->length);
	got = buffer ? read_disk_part(file, wait, part, buffer->bytes) : 0;
	if (got > 0) {
		loan->buffers[loan->count++] = buffer;
		*iov = (struct iovec){buffer->bytes, (size_t)got};
	} else if (buffer) {
		buffer_put(buffer);
	}
	pthread_mutex_lock(&file->lock);
	return got;
}

/* Blocks that a sequential reader has had to their end. With the lock held. */
static void consume_blocks(struct cl_data_handle *handle, uint64_t offset, uint64_t end)
{
	struct cl_data_file *file = handle->file;
	unsigned shift = file->data->block_shift;
	bool at_end = end == file_known_end(file);

	if (!handle->window)
		return;
	for (uint64_t number = offset >> shift;
	     number < (end + (at_end ? block_size(file->data) : 0)) >> shift; number++) {
		struct block *block = block_find(file, number);

		if (block && !block->dirty.count)
			block_consume(block);
	}
}

/* A part of a loan. 0: the end of the file. */
static ssize_t lend_step(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			 uint64_t offset, size_t length, struct iovec *iov, unsigned room,
			 unsigned *count, struct cl_data_loan *loan)
{
	struct cl_data_file *file = handle->file;
	struct disk_part part;
	ssize_t present = 0;

	*count = 0;
	pthread_mutex_lock(&file->lock);
	if (find_disk_part(file, offset, length, &part)) {
		present = lend_from_disk(handle, wait, &part, iov, loan);
		*count = present > 0;
	}
	if (!present) {
		present = ready_bytes(handle, wait, offset, length);
		if (present > 0)
			present = (ssize_t)lend_parts(file, offset, (size_t)present, iov, room,
						      count, loan);
		if (present > 0)
			consume_blocks(handle, offset, offset + (uint64_t)present);
	}
	pthread_mutex_unlock(&file->lock);
	return present;
}

ssize_t cl_data_lend(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		     uint64_t offset, size_t length, struct iovec *iov, unsigned *count,
		     struct cl_data_loan **made)
{
	struct cl_data_loan *loan = calloc(1, sizeof(*loan));
	size_t step = (LOAN_PARTS / 2) * (size_t)block_size(handle->file->data), lent = 0;
	unsigned room = *count, parts;
	ssize_t got = loan ? 1 : -ENOMEM;

	*count = 0;
	*made = NULL;
	while (got > 0 && lent < length) {
		if (*count == room || loan->count == LOAN_PARTS) {
			got = -E2BIG;
			break;
		}
		got = lend_step(handle, wait, offset + lent,
				length - lent < step ? length - lent : step, iov + *count,
				room - *count, &parts, loan);
		*count += parts;
		lent += got > 0 ? (size_t)got : 0;
	}
	if (got >= 0 && lent) {
		*made = loan;
		return (ssize_t)lent;
	}
	cl_data_give_back(loan);
	return got < 0 ? got : 0;
}

void cl_data_give_back(struct cl_data_loan *loan)
{
	if (!loan)
		return;
	give_back_parts(loan);
	free(loan);
}

int cl_data_lend_whole(struct cl_data_handle *handle, uint64_t *version,
		       struct cl_disk_whole **lent)
{
	struct cl_data_file *file = handle->file;
	struct cl_disk_version now = {0};
	uint64_t length = 0;
	int fd;

	pthread_mutex_lock(&file->lock);
	if (file->known && file->keep_whole && !file->dirty) {
		now = file_disk_version(file);
		length = file->version.length;
	}
	pthread_mutex_unlock(&file->lock);
	*version = now.version;
	if (!length)
		return -ENOENT;
	fd = cl_disk_lend_whole(file->disk, &now, length, lent);
	if (fd >= 0)
		return fd;
	pthread_mutex_lock(&file->lock);
	file_complete_whole(handle);
	pthread_mutex_unlock(&file->lock);
	return -ENOENT;
}

void cl_data_return_whole(struct cl_disk_whole *lent)
{
	cl_disk_return_whole(lent);
}

/* -- writing -------------------------------------------------------------------------------- */

/*
 * Whether more may be dirty. Files with few changes have a reserve, so that others whose server is away do not stop them. A write that is
 * larger than a limit waits until nothing else is dirty.
 */
static bool has_room(struct cl_data_file *file, size_t length)
{
	const struct cl_data_options *options = &file->data->options;
	uint64_t mine = atomic_load(&file->dirty), all = atomic_load(&file->data->dirty);
	uint64_t most = options->dirty_most;

	if (mine + length <= STORE_CHUNK)
		most *= 2;
	return (!mine || mine + length <= options->dirty_file_most) &&
	       (!all || all + length <= most);
}

/* Waits until changes were stored, if there are too many (K-071), or a store fails. */
static int await_dirty_room(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			    size_t length)
{
	struct cl_data_file *file = handle->file;
	struct cl_data *data = file->data;
	uint64_t errors = atomic_load(&file->errors);
	int error = 0;

	while (!has_room(file, length) && !error) {
		if (wait && wait->only_try)
			return -EAGAIN;
		store_for_room(data, file);
		pthread_mutex_lock(&data->lock);
		error = atomic_load(&file->errors) != errors ? atomic_load(&file->error) : 0;
		if (!error)
			error = wait_is_over(wait);
		if (!error && !has_room(file, length)) {
			uint64_t until = wait_until(wait), soon = monotonic_ns() + NS_PER_S;

			data->room_waiters++;
			monotonic_wait(&data->room, &data->lock, until < soon ? until : soon);
			data->room_waiters--;
		}
		pthread_mutex_unlock(&data->lock);
	}
	return error;
}

/* A permanent error of an earlier store, once for each handle (K-078). */
static int report_at_write(struct cl_data_handle *handle)
{
	struct cl_data_file *file = handle->file;
	int error = atomic_load(&file->error);

	if (handle->seen_errors == file->errors || !error_is_permanent(error))
		return 0;
	handle->seen_errors = file->errors;
	return error;
}

/* Copies a change to the blocks. On failure nothing counts that was not there before. */
static ssize_t write_blocks(struct cl_data_file *file, uint64_t offset, const unsigned char *bytes,
			    size_t length)
{
	unsigned shift = file->data->block_shift;

	for (size_t done = 0; done < length;) {
		uint64_t at = offset + done, number = at >> shift;
		uint32_t start = (uint32_t)(at & (block_size(file->data) - 1));
		uint32_t part = block_size(file->data) - start;
		struct block *block = block_get(file, number);
		int error;

		if (part > length - done)
			part = (uint32_t)(length - done);
		if (!block)
			return done ? (ssize_t)done : -ENOMEM;
		if (file->disk && !block->dirty.count) {
			cl_disk_drop_blocks(file->disk, number, 1);
			block->on_disk = false;
		}
		error = block_change(block, start, bytes + done, part);
		if (error)
			return done ? (ssize_t)done : error;
		done += part;
	}
	return (ssize_t)length;
}

/* *offset is where to write, or UINT64_MAX: the end of the file, which is stored. */
static ssize_t write_at(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			uint64_t *offset, const void *bytes, size_t length)
{
	struct cl_data_file *file = handle->file;
	ssize_t result;
	int error = await_dirty_room(handle, wait, length);

	pthread_mutex_lock(&file->lock);
	if (*offset == UINT64_MAX)
		*offset = file_length(file);
	result = report_at_write(handle);
	if (!result)
		result = error;
	if (!result && length && (*offset > INT64_MAX || length > INT64_MAX - *offset))
		result = -EFBIG;
	if (!result && length)
		result = file_note_change(handle);
	if (!result && length)
		result = write_blocks(file, *offset, bytes, length);
	if (result > 0) {
		file->mtime = time(NULL);
		file_wake(file, false);
		file_store_if_large(file);
	}
	pthread_mutex_unlock(&file->lock);
	return result;
}

ssize_t cl_data_write(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		      uint64_t offset, const void *bytes, size_t length)
{
	return offset > INT64_MAX ? -EFBIG : write_at(handle, wait, &offset, bytes, length);
}

ssize_t cl_data_append(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		       const void *bytes, size_t length, uint64_t *offset)
{
	*offset = UINT64_MAX;
	return write_at(handle, wait, offset, bytes, length);
}

/* Drops everything from `length` on. */
static void cut_blocks(struct cl_data_file *file, uint64_t length)
{
	unsigned shift = file->data->block_shift;
	uint32_t inside = (uint32_t)(length & (block_size(file->data) - 1));

	for (size_t i = file->count; i-- > 0;) {
		struct block *block = file->blocks[i];

		if (block->number < length >> shift)
			break;
		block_cut(block, block->number == length >> shift ? inside : 0);
		block->on_disk = false;
		if (!block->busy && !block->valid.count)
			block_remove(file, block);
	}
	for (struct fetch *fetch = file->fetches; fetch; fetch = fetch->next)
		if (fetch->limit > length)
			fetch->limit = length;
	if (file->disk)
		cl_disk_drop_blocks(file->disk, length >> shift, UINT64_MAX);
}

int cl_data_truncate(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		     uint64_t length)
{
	struct cl_data_file *file = handle->file;
	uint64_t old;
	int error;

	(void)wait;
	if (length > INT64_MAX)
		return -EFBIG;
	pthread_mutex_lock(&file->lock);
	old = file_length(file);
	error = report_at_write(handle);
	if (!error)
		error = file_note_change(handle);
	if (error)
		goto out;
	if (length < old)
		cut_blocks(file, length);
	if (length < file_known_end(file) || length < file->sent_end) {
		uint64_t *cut = file->calling ? &file->next_cut : &file->cut;

		if (*cut > length)
			*cut = length;
	}
	file->grow = length > file_known_end(file) ? length : 0;
	file->mtime = time(NULL);
	/* Perhaps the server has this length already, but an older time. */
	file->time_pending = true;
	file_wake(file, false);
out:
	pthread_mutex_unlock(&file->lock);
	return error;
}
