/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that are kept as a whole: each in a file of its own in the folder, which the kernel can read by itself (K-172). Bytes are written
 * where it has none and never changed, since processes may have mapped it: another version gets another file. It also goes as a
 * whole, once nobody has borrowed it.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/disk/folder.h"
#include "client/disk/sum.h"
#include "client/disk/whole.h"
#include "common/grow.h"
#include "common/held.h"

/* A file that takes a larger part of the cache is kept in blocks, of which some can go. */
#define SHARE_MOST 4u

int whole_open(const struct cl_disk *disk, uint32_t number, int flags)
{
	char name[WHOLE_NAME];

	format_whole(number, name);
	return openat(disk->folder, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void whole_drop(struct cl_disk_whole *whole)
{
	log_version(whole->disk, whole->file);
	place_free_whole(whole->disk, whole);
	table_forget_whole(whole);
}

/* -- keeping -------------------------------------------------------------------------------- */

void cl_disk_keep_whole(struct cl_disk_file *file, uint64_t length)
{
	pthread_mutex_lock(&file->disk->lock);
	file->whole_length = length;
	pthread_mutex_unlock(&file->disk->lock);
}

struct cl_disk_whole *whole_hold(struct cl_disk_file *file)
{
	struct cl_disk *disk = file->disk;
	struct cl_disk_whole *whole = file->whole;

	assert(mutex_is_held(&disk->lock));
	if (!whole && !file->count && file->whole_length > disk->options.block &&
	    file->whole_length <= disk->options.bytes_most / SHARE_MOST) {
		whole = table_add_whole(file, disk->last_whole + 1);
		if (whole && !place_claim_whole(disk, whole)) {
			table_forget_whole(whole);
			whole = NULL;
		}
		if (whole)
			log_whole(disk, file);
	}
	if (whole)
		whole->references++;
	return whole;
}

static int write_whole(const struct cl_disk_whole *whole, uint64_t at, const unsigned char *bytes,
		       uint32_t length)
{
	int fd = whole_open(whole->disk, whole->number, O_WRONLY | O_CREAT), error = 0;

	if (fd < 0)
		return -errno;
	while (length && !error) {
		ssize_t put = pwrite(fd, bytes, length, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			error = put < 0 ? -errno : -EIO;
			break;
		}
		bytes += put;
		at += (uint64_t)put;
		length -= (uint32_t)put;
	}
	close(fd);
	return error;
}

/* With the lock. */
static int enter_into_whole(struct cl_disk_whole *whole, uint64_t number, uint32_t length,
			    uint64_t sum)
{
	struct cl_disk_file *file = whole->file;
	struct kept *kept;

	/* Others have written the same bytes meanwhile. */
	if (table_find(file, number))
		return 0;
	kept = table_add(file, number, length, sum);
	if (!kept)
		return -ENOMEM;
	kept->place = whole->number;
	kept->in_whole = kept->used = true;
	table_set_verified(kept);
	whole->disk->statistics.written++;
	log_block(whole->disk, kept);
	return 0;
}

int whole_write_block(struct cl_disk_whole *whole, uint64_t number, const void *bytes,
		      uint32_t length)
{
	struct cl_disk *disk = whole->disk;
	uint32_t room = (length + PAGE - 1) & ~(PAGE - 1);
	uint64_t sum;
	int error = 0;

	pthread_mutex_lock(&disk->lock);
	if (whole->file && table_find(whole->file, number))
		goto out;
	if (!place_make_room(disk, room)) {
		error = -ENOSPC;
		goto out;
	}
	whole->bytes += room;
	pthread_mutex_unlock(&disk->lock);
	sum = disk_sum(0, bytes, length);
	error = write_whole(whole, number << disk->shift, bytes, length);
	pthread_mutex_lock(&disk->lock);
	if (error) {
		disk->statistics.failed++;
		place_fail(disk, error);
	} else {
		/* Without a file it was dropped meanwhile. */
		error = whole->file ? enter_into_whole(whole, number, length, sum) : -EAGAIN;
	}
out:
	table_put_whole(whole);
	place_bury(disk);
	pthread_mutex_unlock(&disk->lock);
	log_write(disk, true);
	return error;
}

/* -- lending -------------------------------------------------------------------------------- */

/* With the lock: whether all blocks are there and were seen to be sound in this run. */
static bool is_complete(struct cl_disk_file *file, uint64_t length)
{
	const struct cl_disk *disk = file->disk;
	uint64_t blocks = (length + disk->options.block - 1) >> disk->shift;
	const struct kept *last = file->whole && blocks ? table_find(file, blocks - 1) : NULL;

	return last && file->count == blocks && file->verified == blocks &&
	       ((blocks - 1) << disk->shift) + last->length == length;
}

struct cl_disk_share cl_disk_share_of_whole(struct cl_disk_file *file,
					    const struct cl_disk_version *version)
{
	struct cl_disk_share share = {0};

	pthread_mutex_lock(&file->disk->lock);
	if (file->whole && is_version(file, version))
		share = (struct cl_disk_share){file->count, file->verified};
	pthread_mutex_unlock(&file->disk->lock);
	return share;
}

int cl_disk_lend_whole(struct cl_disk_file *file, const struct cl_disk_version *version,
		       uint64_t length, struct cl_disk_whole **lent)
{
	struct cl_disk *disk = file->disk;
	struct cl_disk_whole *whole = NULL;
	struct stat st;
	int fd;

	pthread_mutex_lock(&disk->lock);
	if (is_version(file, version) && is_complete(file, length)) {
		whole = file->whole;
		whole->used = true;
		whole->references++;
	}
	pthread_mutex_unlock(&disk->lock);
	if (!whole)
		return -ENOENT;
	fd = whole_open(disk, whole->number, O_RDONLY);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == length) {
		*lent = whole;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	cl_disk_return_whole(whole);
	return -ENOENT;
}

void cl_disk_return_whole(struct cl_disk_whole *whole)
{
	struct cl_disk *disk = whole->disk;

	pthread_mutex_lock(&disk->lock);
	table_put_whole(whole);
	place_bury(disk);
	pthread_mutex_unlock(&disk->lock);
}

/* -- at the start --------------------------------------------------------------------------- */

static int compare_wholes(const void *a, const void *b)
{
	uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;

	return (p > q) - (p < q);
}

/* What a killed program has left, or made and did not enter. */
static void remove_unknown(struct cl_disk *disk, const uint32_t *numbers, size_t count)
{
	int fd = openat(disk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!folder && fd >= 0)
		close(fd);
	while (folder && (entry = readdir(folder))) {
		char *end = NULL;
		unsigned long number;
		uint32_t key;

		if (strncmp(entry->d_name, WHOLE_PREFIX, strlen(WHOLE_PREFIX)))
			continue;
		number = strtoul(entry->d_name + strlen(WHOLE_PREFIX), &end, 10);
		key = (uint32_t)number;
		if (*end || number >= NO_PLACE ||
		    (count && bsearch(&key, numbers, count, sizeof(key), compare_wholes)))
			continue;
		unlinkat(disk->folder, entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

/* With the lock. False: there is no such file, or no memory. */
static bool has_file(struct cl_disk_whole *whole)
{
	char name[WHOLE_NAME];
	struct stat st;

	format_whole(whole->number, name);
	return !fstatat(whole->disk->folder, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(st.st_mode) && place_claim_whole(whole->disk, whole);
}

/* With the lock: all that the index has named. A walk may come by twice. False: no memory. */
static bool list_wholes(struct cl_disk *disk, struct cl_disk_whole ***list, size_t *count)
{
	size_t room = 0;

	for (size_t i = 0; i < disk->files.size; i++)
		for (struct cl_disk_file *file = *htable_chain(&disk->files, i); file;
		     file = file->link) {
			if (!file->whole || !file->whole->used)
				continue;
			if (!grow_array(list, &room, *count, sizeof(**list)))
				return false;
			file->whole->used = false;
			(*list)[(*count)++] = file->whole;
		}
	return true;
}

void wholes_tidy(struct cl_disk *disk)
{
	struct cl_disk_whole **list = NULL;
	size_t count = 0, kept = 0;
	uint32_t *numbers;
	bool all;

	pthread_mutex_lock(&disk->lock);
	all = list_wholes(disk, &list, &count);
	numbers = calloc(count + 1, sizeof(*numbers));
	for (size_t i = 0; i < count; i++) {
		if (numbers)
			numbers[kept++] = list[i]->number;
		if (!has_file(list[i]))
			whole_drop(list[i]);
	}
	place_bury(disk);
	pthread_mutex_unlock(&disk->lock);
	free(list);
	if (all && numbers) {
		qsort(numbers, kept, sizeof(*numbers), compare_wholes);
		remove_unknown(disk, numbers, kept);
	}
	free(numbers);
}
