/* SPDX-License-Identifier: BSD-2-Clause */
/* The disk cache: opening the folder, reading and keeping blocks. */
#include "client/disk/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/disk/folder.h"
#include "client/disk/sum.h"
#include "client/disk/whole.h"
#include "common/failure.h"

#define FILL_MOST 90

/* -- opening -------------------------------------------------------------------------------- */

/* The folder, made if it is missing, of this user alone. */
static int open_folder(struct cl_disk *disk, char *message, size_t size)
{
	const char *path = disk->options.folder;
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return fail_with(-errno, message, size, "cannot make the folder %s: %s", path,
				 strerror(errno));
	disk->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (disk->folder < 0 || fstat(disk->folder, &st))
		return fail_with(-errno, message, size, "cannot open the folder %s: %s", path,
				 strerror(errno));
	if (st.st_uid != geteuid())
		return fail_with(-EPERM, message, size, "the folder %s belongs to another user",
				 path);
	if (st.st_mode & 022)
		return fail_with(-EACCES, message, size, "others may write to the folder %s", path);
	if (st.st_mode & 077 && fchmod(disk->folder, 0700))
		return fail_with(-errno, message, size, "cannot change the mode of %s: %s", path,
				 strerror(errno));
	return 0;
}

static int open_lock_and_blocks(struct cl_disk *disk, char *message, size_t size)
{
	const char *path = disk->options.folder;

	disk->lock_fd =
		openat(disk->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (disk->lock_fd < 0)
		return fail_with(-errno, message, size, "cannot open %s/lock: %s", path,
				 strerror(errno));
	if (flock(disk->lock_fd, LOCK_EX | LOCK_NB))
		return fail_with(errno == EWOULDBLOCK ? -EBUSY : -errno, message, size,
				 "another program uses the folder %s", path);
	disk->blocks_fd =
		openat(disk->folder, "blocks", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (disk->blocks_fd < 0)
		return fail_with(-errno, message, size, "cannot open %s/blocks: %s", path,
				 strerror(errno));
	return 0;
}

static void close_files(struct cl_disk *disk)
{
	if (disk->blocks_fd >= 0)
		close(disk->blocks_fd);
	if (disk->lock_fd >= 0)
		close(disk->lock_fd);
	if (disk->folder >= 0)
		close(disk->folder);
}

static void free_disk(struct cl_disk *disk)
{
	table_fini(disk);
	close_files(disk);
	free(disk->places);
	pthread_mutex_destroy(&disk->lock);
	pthread_mutex_destroy(&disk->log_lock);
	free(disk);
}

int cl_disk_open(const struct cl_disk_options *options, struct cl_disk **made, char *message,
		 size_t size)
{
	struct cl_disk *disk = calloc(1, sizeof(*disk));
	int error;

	assert(options->block >= PAGE && options->block <= PAGE << (RANK_MOST - 1));
	assert(!(options->block & (options->block - 1)));
	if (!disk)
		return fail_with(-ENOMEM, message, size, "no memory");
	disk->options = *options;
	if (!disk->options.fill_most)
		disk->options.fill_most = FILL_MOST;
	disk->shift = (unsigned)__builtin_ctz(options->block);
	disk->folder = disk->lock_fd = disk->blocks_fd = disk->log.fd = -1;
	for (unsigned rank = 0; rank <= RANK_MOST; rank++)
		disk->free[rank] = NO_PLACE;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_mutex_init(&disk->log_lock, NULL);
	if (getrandom(disk->key, sizeof(disk->key), 0) != sizeof(disk->key) || table_init(disk)) {
		free_disk(disk);
		return fail_with(-ENOMEM, message, size, "no memory");
	}
	error = open_folder(disk, message, size);
	if (!error)
		error = open_lock_and_blocks(disk, message, size);
	if (!error) {
		error = log_open(disk);
		if (error)
			snprintf(message, size, "cannot read the index in %s: %s", options->folder,
				 strerror(-error));
	}
	if (error) {
		free_disk(disk);
		return error;
	}
	wholes_tidy(disk);
	places_tidy(disk);
	*made = disk;
	return 0;
}

void cl_disk_close(struct cl_disk *disk)
{
	log_close(disk);
	free_disk(disk);
}

void cl_disk_read_statistics(struct cl_disk *disk, struct cl_disk_statistics *statistics)
{
	pthread_mutex_lock(&disk->lock);
	*statistics = disk->statistics;
	statistics->bytes = disk->allocated + disk->log.length;
	pthread_mutex_unlock(&disk->lock);
}

/* -- files ---------------------------------------------------------------------------------- */

struct cl_disk_file *cl_disk_get_file(struct cl_disk *disk, const char *name, uint32_t volume,
				      uint32_t vnode, uint32_t unique)
{
	struct cl_disk_file *file = NULL;
	struct cell *cell;

	pthread_mutex_lock(&disk->lock);
	cell = table_get_cell(disk, name);
	if (cell)
		file = table_get_file(disk, cell, volume, vnode, unique);
	if (file)
		file->references++;
	pthread_mutex_unlock(&disk->lock);
	return file;
}

void cl_disk_put_file(struct cl_disk_file *file)
{
	struct cl_disk *disk = file->disk;

	pthread_mutex_lock(&disk->lock);
	assert(file->references);
	file->references--;
	table_drop_file(file);
	pthread_mutex_unlock(&disk->lock);
}

/* Takes a block out. With the lock held; somebody holds the file. */
static void drop_kept(struct kept *kept)
{
	struct cl_disk *disk = kept->file->disk;
	uint32_t place = kept->place;

	assert(!kept->in_whole);
	table_remove(kept);
	place_free(disk, place);
}

/* The same, or all blocks of a whole, and the index is told. */
static void drop_and_log(struct kept *kept)
{
	if (kept->in_whole) {
		whole_drop(kept->file->whole);
		return;
	}
	log_drop(kept->file->disk, kept);
	drop_kept(kept);
}

void cl_disk_set_version(struct cl_disk_file *file, const struct cl_disk_version *version)
{
	struct cl_disk *disk = file->disk;

	pthread_mutex_lock(&disk->lock);
	if (!is_version(file, version)) {
		if (file->whole)
			whole_drop(file->whole);
		while (file->blocks)
			drop_kept(file->blocks);
		file->version = *version;
		file->ticket++;
		log_version(disk, file);
		place_bury(disk);
	}
	pthread_mutex_unlock(&disk->lock);
}

void cl_disk_move_version(struct cl_disk_file *file, const struct cl_disk_version *from,
			  const struct cl_disk_version *to)
{
	struct cl_disk *disk = file->disk;
	bool same;

	pthread_mutex_lock(&disk->lock);
	same = is_version(file, from) && !file->whole;
	if (same && !is_version(file, to)) {
		file->version = *to;
		file->ticket++;
		log_move(disk, file);
	}
	pthread_mutex_unlock(&disk->lock);
	if (!same)
		cl_disk_set_version(file, to);
	log_write(disk, false);
}

void cl_disk_drop_blocks(struct cl_disk_file *file, uint64_t number, uint64_t count)
{
	struct cl_disk *disk = file->disk;

	pthread_mutex_lock(&disk->lock);
	file->ticket++;
	if (count == 1 || file->count > count) {
		for (uint64_t i = 0; i < count && file->count; i++) {
			struct kept *kept = table_find(file, number + i);

			if (kept)
				drop_and_log(kept);
		}
	} else if (file->whole) {
		whole_drop(file->whole);
	} else {
		for (struct kept *kept = file->blocks, *next; kept; kept = next) {
			next = kept->next;
			if (kept->number >= number && kept->number - number < count)
				drop_and_log(kept);
		}
	}
	place_bury(disk);
	pthread_mutex_unlock(&disk->lock);
	log_write(disk, false);
}

uint64_t cl_disk_take_ticket(struct cl_disk_file *file)
{
	uint64_t ticket;

	pthread_mutex_lock(&file->disk->lock);
	ticket = file->ticket;
	pthread_mutex_unlock(&file->disk->lock);
	return ticket;
}

/* -- reading -------------------------------------------------------------------------------- */

bool cl_disk_has_block(struct cl_disk_file *file, const struct cl_disk_version *version,
		       uint64_t number)
{
	bool has;

	pthread_mutex_lock(&file->disk->lock);
	has = file->count && is_version(file, version) && table_find(file, number);
	pthread_mutex_unlock(&file->disk->lock);
	return has;
}

bool cl_disk_block_is_sound(struct cl_disk_file *file, const struct cl_disk_version *version,
			    uint64_t number)
{
	const struct kept *kept;
	bool sound;

	pthread_mutex_lock(&file->disk->lock);
	kept = is_version(file, version) ? table_find(file, number) : NULL;
	sound = kept && kept->verified;
	pthread_mutex_unlock(&file->disk->lock);
	return sound;
}

/* -EAGAIN: the disk would be waited for. */
static int read_at(int fd, off_t start, unsigned char *bytes, uint32_t length, bool now)
{
	uint32_t done = 0;

	while (done < length) {
		struct iovec iov = {bytes + done, length - done};
		ssize_t got = preadv2(fd, &iov, 1, start + done, now ? RWF_NOWAIT : 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && now && errno != EAGAIN)
			return -EAGAIN;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		done += (uint32_t)got;
	}
	return 0;
}

static int read_fully(const struct cl_disk *disk, const struct kept *kept, uint32_t offset,
		      unsigned char *bytes, uint32_t length, bool now)
{
	uint64_t place = kept->in_whole ? kept->number : kept->place;
	off_t start = (off_t)(place << disk->shift) + offset;
	int fd, error;

	if (!kept->in_whole)
		return read_at(disk->blocks_fd, start, bytes, length, now);
	fd = whole_open(disk, kept->place, O_RDONLY);
	if (fd < 0)
		return -errno;
	error = read_at(fd, start, bytes, length, now);
	close(fd);
	return error;
}

/* The block as it was, if it is still there. With the lock held. */
static struct kept *find_again(struct cl_disk_file *file, const struct kept *was)
{
	struct kept *kept = table_find(file, was->number);

	return kept && kept->birth == was->birth ? kept : NULL;
}

/* Counts what a read of a block has shown. With the lock held. True: the bytes count. */
static bool judge_read(struct cl_disk_file *file, const struct kept *was, int error, bool whole,
		       bool sound)
{
	struct cl_disk *disk = file->disk;
	struct kept *kept = find_again(file, was);

	if (!kept)
		return false; /* its place has other bytes perhaps */
	if (error || !sound) {
		disk->statistics.failed += error != 0;
		disk->statistics.torn += !error;
		drop_and_log(kept);
		place_bury(disk);
		return false;
	}
	if (whole)
		table_set_verified(kept);
	if (kept->in_whole)
		file->whole->used = true;
	kept->used = true;
	disk->statistics.hits++;
	return true;
}

/* Reads a whole block to see whether it is sound, before parts of it are read. */
static int verify_block(struct cl_disk_file *file, const struct kept *was, bool now)
{
	struct cl_disk *disk = file->disk;
	unsigned char *bytes = malloc(was->length);
	bool sound, counts;
	int error;

	if (!bytes)
		return -ENOMEM;
	error = read_fully(disk, was, 0, bytes, was->length, now);
	sound = !error && disk_sum(0, bytes, was->length) == was->sum;
	free(bytes);
	if (error == -EAGAIN)
		return error;
	pthread_mutex_lock(&disk->lock);
	counts = judge_read(file, was, error, true, sound);
	pthread_mutex_unlock(&disk->lock);
	return counts ? 0 : -ENOENT;
}

/* Finds a block, and copies what is known of it. */
static bool look_up_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			  uint64_t number, struct kept *was)
{
	struct kept *kept;

	pthread_mutex_lock(&file->disk->lock);
	kept = is_version(file, version) ? table_find(file, number) : NULL;
	if (kept)
		*was = *kept;
	else
		file->disk->statistics.misses++;
	pthread_mutex_unlock(&file->disk->lock);
	return kept != NULL;
}

int64_t cl_disk_read_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			   uint64_t number, uint32_t offset, void *bytes, uint32_t length, bool now)
{
	struct cl_disk *disk = file->disk;
	struct kept was;
	bool whole, sound, counts;
	int error;

	if (!look_up_block(file, version, number, &was))
		return -ENOENT;
	if (offset >= was.length)
		return 0;
	if (length > was.length - offset)
		length = was.length - offset;
	whole = length == was.length;
	if (!whole && !was.verified) {
		error = verify_block(file, &was, now);
		if (error)
			return error;
	}
	error = read_fully(disk, &was, offset, bytes, length, now);
	if (error == -EAGAIN)
		return error;
	sound = !whole || (!error && disk_sum(0, bytes, length) == was.sum);
	pthread_mutex_lock(&disk->lock);
	counts = judge_read(file, &was, error, whole, sound);
	pthread_mutex_unlock(&disk->lock);
	return counts ? (int64_t)length : error ? error : -ENOENT;
}

/* -- keeping -------------------------------------------------------------------------------- */

static int write_to_place(struct cl_disk *disk, uint32_t place, const unsigned char *bytes,
			  uint32_t length)
{
	uint32_t done = 0;

	while (done < length) {
		ssize_t put = pwrite(disk->blocks_fd, bytes + done, length - done,
				     ((off_t)place << disk->shift) + done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		done += (uint32_t)put;
	}
	return 0;
}

static bool is_current(const struct cl_disk_file *file, const struct cl_disk_version *version,
		       uint64_t ticket)
{
	return file->ticket == ticket && is_version(file, version);
}

/* Enters a block that was written. With the lock held. */
static int enter_block(struct cl_disk_file *file, uint64_t number, uint32_t place, uint32_t length,
		       uint64_t sum)
{
	struct cl_disk *disk = file->disk;
	struct kept *kept = table_find(file, number);

	if (kept)
		drop_and_log(kept);
	kept = table_add(file, number, length, sum);
	if (!kept)
		return -ENOMEM;
	kept->place = place;
	kept->used = true;
	table_set_verified(kept);
	disk->places[place].kept = kept;
	disk->statistics.written++;
	log_block(disk, kept);
	return 0;
}

int cl_disk_write_block(struct cl_disk_file *file, const struct cl_disk_version *version,
			uint64_t ticket, uint64_t number, const void *bytes, uint32_t length)
{
	struct cl_disk *disk = file->disk;
	struct cl_disk_whole *whole = NULL;
	uint32_t place = NO_PLACE;
	uint64_t sum;
	int error = 0;

	assert(length && length <= disk->options.block);
	pthread_mutex_lock(&disk->lock);
	if (!is_current(file, version, ticket))
		error = -EAGAIN;
	else if ((whole = whole_hold(file)))
		error = 0;
	else if ((place = place_take(disk, length)) == NO_PLACE)
		error = -ENOSPC;
	pthread_mutex_unlock(&disk->lock);
	if (error)
		return error;
	if (whole)
		return whole_write_block(whole, number, bytes, length);
	sum = disk_sum(0, bytes, length);
	error = write_to_place(disk, place, bytes, length);
	pthread_mutex_lock(&disk->lock);
	if (error) {
		disk->statistics.failed++;
		place_fail(disk, error);
	} else if (!is_current(file, version, ticket)) {
		error = -EAGAIN;
	} else {
		error = enter_block(file, number, place, length, sum);
	}
	if (error)
		place_free(disk, place);
	pthread_mutex_unlock(&disk->lock);
	log_write(disk, true);
	return error;
}
