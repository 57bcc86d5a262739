/* SPDX-License-Identifier: BSD-2-Clause */
/* Fetches from the server and from the disk: one in flight for a range, read-ahead, and saving to the disk. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/data/filesteps.h"
#include "common/held.h"

#define FETCH_MOST  (8u * 1024 * 1024) /* bytes of one call for read-ahead */
#define FETCH_SMALL (1024u * 1024)     /* files up to this size are fetched by one call */
#define FETCH_SHARE (1024u * 1024)     /* the least of one of those that several paths share */
#define SHARES_MOST 2u		       /* and at most what makes so many on each path */
#define LONG_FILE   (8u * 1024 * 1024) /* several paths bring its parts */
#define TRIES_MOST  16		       /* of one read whose file is changed by others meanwhile */

static struct fetch *find_fetch(const struct cl_data_file *file, uint64_t at)
{
	struct fetch *fetch = file->fetches;

	while (fetch && (at < fetch->start || at >= fetch->end || at >= fetch->limit))
		fetch = fetch->next;
	return fetch;
}

/* Pins the blocks of [start, end), or gives them back. -ENOMEM: none is pinned. */
static int pin_blocks(struct cl_data_file *file, uint64_t start, uint64_t end)
{
	unsigned shift = file->data->block_shift;

	for (uint64_t number = start >> shift; number << shift < end; number++) {
		struct block *block = block_get(file, number);

		if (block) {
			block->busy++;
			continue;
		}
		while (number-- > start >> shift)
			block_find(file, number)->busy--;
		return -ENOMEM;
	}
	return 0;
}

static void unpin_blocks(struct cl_data_file *file, uint64_t start, uint64_t end)
{
	unsigned shift = file->data->block_shift;

	for (uint64_t number = start >> shift; number << shift < end; number++) {
		struct block *block = block_find(file, number);

		assert(block && block->busy);
		block->busy--;
	}
}

/* Drops what a fetch has brought. */
static void undo_fetch(struct fetch *fetch)
{
	struct cl_data_file *file = fetch->file;
	unsigned shift = file->data->block_shift;
	uint64_t limit = fetch->limit;

	file_end_fetches(file, fetch->start, fetch->position);
	fetch->limit = limit;
	for (uint64_t number = fetch->start >> shift; number << shift < fetch->position; number++) {
		uint64_t base = number << shift, end = fetch->position - base;
		uint32_t start = fetch->start > base ? (uint32_t)(fetch->start - base) : 0;

		if (end > block_size(file->data))
			end = block_size(file->data);
		if (end > start)
			block_drop_clean(block_find(file, number), start, (uint32_t)end);
	}
	fetch->position = fetch->start;
}

/* Copies bytes to the blocks, where nothing is yet. */
static int fill_blocks(struct fetch *fetch, struct places *from, uint64_t length)
{
	struct cl_data_file *file = fetch->file;
	unsigned shift = file->data->block_shift;
	uint64_t end = fetch->position + length;

	while (fetch->position < end) {
		uint64_t number = fetch->position >> shift;
		uint32_t start = (uint32_t)(fetch->position - (number << shift));
		uint32_t part = block_size(file->data) - start;
		int error = 0;

		if (part > end - fetch->position)
			part = (uint32_t)(end - fetch->position);
		if (fetch->position >= fetch->limit)
			part = (uint32_t)(end - fetch->position);
		else if (part > fetch->limit - fetch->position)
			part = (uint32_t)(fetch->limit - fetch->position);
		if (fetch->position < fetch->limit)
			error = block_fill(block_find(file, number), start, from, part);
		else
			places_skip(from, part);
		if (error)
			return error;
		fetch->position += part;
	}
	return 0;
}

static int take_bytes(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct fetch *fetch = arg;
	struct cl_data_file *file = fetch->file;
	struct places from = {iov, 0};
	uint64_t length = 0;
	int error = 0;

	for (unsigned i = 0; i < count; i++)
		length += iov[i].iov_len;
	pthread_mutex_lock(&file->lock);
	if (offset < fetch->position && offset == fetch->start)
		undo_fetch(fetch);
	if (offset != fetch->position || length > fetch->end - fetch->position)
		error = -EIO;
	else
		error = fill_blocks(fetch, &from, length);
	file_wake(file, false);
	pthread_mutex_unlock(&file->lock);
	return error;
}

/* Whether a version is one of those whose contents the file holds. */
static bool is_of_file(const struct cl_data_file *file, uint64_t version, uint32_t incarnation)
{
	return file->known && incarnation == file->version.incarnation &&
	       version >= file->version.clean_from && version <= file->version.version;
}

/* Whether the bytes count, now that the reply has told their version. True in *changed: others were given to readers. */
static int confirm_fetch(struct fetch *fetch, uint64_t read, const struct cl_data_version *known,
			 bool *changed)
{
	struct cl_data_file *file = fetch->file;
	uint64_t expected = fetch->end;

	if (!is_of_file(file, read, known->incarnation))
		*changed = file_take_version(file, known, fetch->start, fetch->position);
	if (!is_of_file(file, read, known->incarnation)) {
		*changed = true;
		undo_fetch(fetch);
		return 0;
	}
	/* The length of an earlier version, which own stores have changed, is not known: what is missing is fetched again. */
	if (expected > file->version.length)
		expected = file->version.length;
	if (fetch->position >= expected || read != file->version.version)
		return 0;
	undo_fetch(fetch);
	return -EIO;
}

/* Tells those who wait for this fetch, and takes it from the list. */
static void retire_fetch(struct fetch *fetch, int error)
{
	struct cl_data_file *file = fetch->file;
	struct fetch **at = &file->fetches;

	assert(mutex_is_held(&file->lock));
	while (*at != fetch)
		at = &(*at)->next;
	*at = fetch->next;
	for (struct waiter *waiter = file->waiters; waiter; waiter = waiter->next) {
		if (waiter->fetch != fetch || waiter->woken)
			continue;
		waiter->error = error;
		waiter->woken = true;
		pthread_cond_signal(&waiter->cond);
	}
	unpin_blocks(file, fetch->start, fetch->end);
	file_wake(file, false);
	atomic_fetch_sub(&file->data->ahead, fetch->ahead);
}

/* Does the call. The fetch is in the list of the file, which has no other reference to it afterwards. */
static int do_fetch(struct fetch *fetch)
{
	struct cl_data_file *file = fetch->file;
	const struct cl_data_ops *ops = &file->data->ops;
	struct cl_data_version known = {0};
	uint64_t read = fetch->version;
	bool changed = false;
	int error = ops->fetch(file->owner, fetch->who, fetch->start, fetch->end - fetch->start,
			       take_bytes, fetch, &read, &known);
	uint64_t share = 0;
	unsigned paths = 1;

	if (ops->paths && known.length >= LONG_FILE)
		paths = ops->paths(file->owner, &share);
	pthread_mutex_lock(&file->lock);
	file->paths = paths;
	file->share = share;
	if (error)
		undo_fetch(fetch);
	else
		error = confirm_fetch(fetch, read, &known, &changed);
	retire_fetch(fetch, error);
	if (!error)
		file_save_blocks(file, fetch->start, fetch->position);
	pthread_mutex_unlock(&file->lock);
	if (changed && ops->changed)
		ops->changed(file->owner);
	return error;
}

static void run_fetch(struct job *job)
{
	struct fetch *fetch = (struct fetch *)(void *)((char *)job - offsetof(struct fetch, job));
	const struct cl_data_ops *ops = &fetch->file->data->ops;
	void *owner = fetch->file->owner, *who = fetch->who;

	do_fetch(fetch);
	free(fetch);
	if (ops->drop_who)
		ops->drop_who(who);
	ops->drop(owner);
}

/* Puts a fetch into the list of the file. -ENOMEM. */
static int begin_fetch(struct fetch *fetch, struct cl_data_handle *handle, uint64_t start,
		       uint64_t end)
{
	struct cl_data_file *file = handle->file;

	assert(mutex_is_held(&file->lock));
	assert(start < end);
	*fetch = (struct fetch){.file = file,
				.who = handle->who,
				.start = start,
				.end = end,
				.position = start,
				.limit = UINT64_MAX,
				.version = file->known ? file->version.version : 0,
				.job = {.run = run_fetch, .lane = file_lane(file)}};
	if (pin_blocks(file, start, end))
		return -ENOMEM;
	fetch->next = file->fetches;
	file->fetches = fetch;
	return 0;
}

/* A fetch on a thread of the pool. NULL: no memory. */
static struct fetch *queue_fetch(struct cl_data_handle *handle, uint64_t start, uint64_t end,
				 bool ahead)
{
	struct cl_data_file *file = handle->file;
	struct fetch *fetch = malloc(sizeof(*fetch));

	if (!fetch || begin_fetch(fetch, handle, start, end)) {
		free(fetch);
		return NULL;
	}
	/* One call fills a path; with one more a path that is done need not wait. More of them would compete, and what is needed first come late. */
	if (file->share)
		fetch->job.most = file->paths + 1;
	if (ahead) {
		fetch->ahead = end - start;
		atomic_fetch_add(&file->data->ahead, fetch->ahead);
	}
	file->data->ops.hold(file->owner);
	if (file->data->ops.hold_who)
		file->data->ops.hold_who(handle->who);
	jobs_add(&file->data->jobs, &fetch->job);
	return fetch;
}

/* -- what to fetch -------------------------------------------------------------------------- */

bool file_has_on_disk(struct cl_data_file *file, uint64_t number)
{
	struct cl_disk_version version = file_disk_version(file);

	return file->disk && cl_disk_has_block(file->disk, &version, number);
}

/* The end of the part of [start, end) that is missing and neither in flight nor on disk. `start` is missing. */
static uint64_t clip_fetch(struct cl_data_file *file, uint64_t start, uint64_t end)
{
	unsigned shift = file->data->block_shift;
	uint64_t known = file_known_end(file), from, to;

	if (end > known)
		end = known;
	for (const struct fetch *fetch = file->fetches; fetch; fetch = fetch->next)
		if (fetch->start > start && fetch->start < end)
			end = fetch->start;
	for (uint64_t number = (start >> shift) + 1; number << shift < end; number++) {
		uint64_t base = number << shift;

		if (file_has_on_disk(file, number) ||
		    !file_find_missing(file, base, base + block_size(file->data), &from, &to))
			return base;
	}
	return end;
}

/* What a call for the missing byte `from` of a read up to `end` asks for. */
static void plan_fetch(struct cl_data_file *file, uint64_t from, uint64_t end, uint64_t *start,
		       uint64_t *stop)
{
	uint64_t mask = block_size(file->data) - 1, lowest = from & ~mask, ignored;

	for (const struct fetch *fetch = file->fetches; fetch; fetch = fetch->next)
		if (fetch->end > lowest && fetch->end <= from)
			lowest = fetch->end;
	/* The whole block, for the disk, in whole pages. */
	file_find_missing(file, lowest, from + 1, start, &ignored);
	if ((*start & ~(uint64_t)(BLOCK_MIN - 1)) >= lowest)
		*start &= ~(uint64_t)(BLOCK_MIN - 1);
	*stop = (end + mask) & ~mask;
	if (*start == 0 && file_known_end(file) <= FETCH_SMALL)
		*stop = file_known_end(file);
	*stop = clip_fetch(file, from, *stop);
}

/* -- the disk ------------------------------------------------------------------------------- */

static int fill_from_disk(struct block *block, unsigned char *bytes, int64_t got)
{
	if (got <= 0)
		return got < 0 ? (int)got : -ENOENT;
	return block_fill(block, 0, &(struct places){&(struct iovec){bytes, (size_t)got}, 0},
			  (uint32_t)got);
}

/* Reads a block that is on the disk. With the lock held, which is released meanwhile. */
static int load_from_disk(struct cl_data_handle *handle, uint64_t number, bool now)
{
	struct cl_data_file *file = handle->file;
	struct cl_disk_version version = file_disk_version(file);
	uint64_t base = number << file->data->block_shift;
	uint32_t size = block_size(file->data);
	unsigned char *bytes = aligned_alloc(BLOCK_MIN, size);
	struct fetch fetch;
	int64_t got;
	int error;

	if (!bytes || begin_fetch(&fetch, handle, base, base + size)) {
		free(bytes);
		return -ENOMEM;
	}
	pthread_mutex_unlock(&file->lock);
	got = cl_disk_read_block(file->disk, &version, number, 0, bytes, size, now);
	pthread_mutex_lock(&file->lock);
	if (got > 0 && base + (uint64_t)got > fetch.limit)
		got = fetch.limit > base ? (int64_t)(fetch.limit - base) : 0;
	if (!is_of_file(file, version.version, version.incarnation))
		got = 0;
	error = fill_from_disk(block_find(file, number), bytes, got);
	if (!error)
		block_find(file, number)->on_disk = true;
	retire_fetch(&fetch, 0);
	free(bytes);
	return error;
}

/* A block on its way to the disk. */
struct save {
	struct job job;
	struct cl_data_file *file;
	uint64_t number;
};

/* The length of a block whose bytes are all there and of the file's version; 0 if it cannot be saved. */
static uint32_t savable_length(struct cl_data_file *file, const struct block *block)
{
	uint64_t base = block->number << file->data->block_shift,
		 end = base + block_size(file->data);

	if (end > file_known_end(file))
		end = file_known_end(file);
	if (!block->buffer || block->dirty.count || end <= base ||
	    !extents_cover(&block->valid, 0, (uint32_t)(end - base)))
		return 0;
	for (const struct fetch *fetch = file->fetches; fetch; fetch = fetch->next)
		if (fetch->start < end && fetch->end > base)
			return 0;
	return (uint32_t)(end - base);
}

/* -EAGAIN: the file changed meanwhile. With the lock held, which is released meanwhile. */
static int save_block(struct cl_data_file *file, struct block *block)
{
	uint32_t length = savable_length(file, block);
	struct cl_disk_version version = file_disk_version(file);
	struct buffer *buffer;
	uint64_t ticket;
	int error;

	if (!length)
		return -EBUSY;
	ticket = cl_disk_take_ticket(file->disk);
	buffer = block_lend(block, length);
	pthread_mutex_unlock(&file->lock);
	error = cl_disk_write_block(file->disk, &version, ticket, block->number, buffer->bytes,
				    length);
	buffer_put(buffer);
	pthread_mutex_lock(&file->lock);
	return error;
}

static void run_save(struct job *job)
{
	struct save *save = (struct save *)(void *)((char *)job - offsetof(struct save, job));
	struct cl_data_file *file = save->file;
	struct cl_data *data = file->data;
	struct block *block;
	void *owner = file->owner;
	int error = -EAGAIN;

	pthread_mutex_lock(&file->lock);
	block = block_find(file, save->number);
	for (unsigned i = 0; i < 3 && error == -EAGAIN; i++)
		error = save_block(file, block);
	block->on_disk = !error;
	block->busy--;
	pthread_mutex_unlock(&file->lock);
	atomic_fetch_sub(&data->saving, block_size(data));
	free(save);
	data->ops.drop(owner);
}

void file_save_blocks(struct cl_data_file *file, uint64_t start, uint64_t end)
{
	struct cl_data *data = file->data;
	unsigned shift = data->block_shift;

	assert(mutex_is_held(&file->lock));
	if (!file->disk)
		return;
	for (size_t i = block_index(file, start >> shift);
	     i < file->count && file->blocks[i]->number << shift < end; i++) {
		struct block *block = file->blocks[i];
		struct save *save;

		if (block->on_disk || !savable_length(file, block) ||
		    atomic_load(&data->saving) >
			    data->options.memory_most / (file->keep_whole ? 2 : 4))
			continue;
		save = malloc(sizeof(*save));
		if (!save)
			return;
		*save = (struct save){.file = file,
				      .number = block->number,
				      .job = {.run = run_save, .lane = UINT64_MAX, .most = 2}};
		block->on_disk = true;
		block->busy++;
		atomic_fetch_add(&data->saving, block_size(data));
		data->ops.hold(file->owner);
		jobs_add(&data->jobs, &save->job);
	}
}

/* -- reading -------------------------------------------------------------------------------- */

/* The length of one of the calls that bring `all` bytes. */
static uint64_t limit_unit(const struct cl_data_file *file, uint64_t unit, uint64_t all)
{
	uint64_t most = FETCH_MOST, mask = block_size(file->data) - 1;

	if (file->share && all > FETCH_SHARE) {
		most = all / (file->paths * SHARES_MOST);
		if (most > file->share)
			most = file->share;
		most = ((most < FETCH_SHARE ? FETCH_SHARE : most) + mask) & ~mask;
	}
	return unit < most && unit ? unit : most;
}

/* Several paths share a long fetch: threads of the pool get what is left to them. */
static void share_fetch(struct cl_data_handle *handle, uint64_t start, uint64_t *stop)
{
	struct cl_data_file *file = handle->file;
	uint64_t unit = limit_unit(file, 0, *stop - start), mask = block_size(file->data) - 1;

	if (!file->share)
		return;
	while (*stop - start > unit) {
		uint64_t last = (start + (*stop - start - 1) / unit * unit) & ~mask;

		if (last <= start || !queue_fetch(handle, last, *stop, false))
			return;
		*stop = last;
	}
}

/* Fetches the missing byte `from`, and more. With the lock held, which is released meanwhile. */
static int fetch_missing(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			 uint64_t from, uint64_t end)
{
	struct cl_data_file *file = handle->file;
	struct block *block;
	struct fetch fetch;
	uint64_t start, stop;
	int error;

	block = block_find(file, from >> file->data->block_shift);
	/* A block that was loaded and lacks bytes is shorter than the file is now. */
	if (!(block && block->on_disk) && file_has_on_disk(file, from >> file->data->block_shift)) {
		error = load_from_disk(handle, from >> file->data->block_shift,
				       wait && wait->only_try);
		if (!error || error == -EAGAIN || error == -ENOMEM)
			return error;
		cl_disk_drop_blocks(file->disk, from >> file->data->block_shift, 1);
		return 0;
	}
	if (wait && wait->only_try)
		return -EAGAIN;
	plan_fetch(file, from, end, &start, &stop);
	share_fetch(handle, start, &stop);
	if (wait_is_bounded(wait))
		return queue_fetch(handle, start, stop, false) ? 0 : -ENOMEM;
	error = begin_fetch(&fetch, handle, start, stop);
	if (error)
		return error;
	pthread_mutex_unlock(&file->lock);
	error = do_fetch(&fetch);
	pthread_mutex_lock(&file->lock);
	return error;
}

/* Waits for a fetch of somebody. */
static int join_fetch(struct cl_data_handle *handle, const struct cl_data_wait *wait,
		      const struct fetch *fetch, uint64_t from, uint64_t to)
{
	void *who = fetch->who;
	struct waiter waiter = {
		.start = from, .end = to < fetch->end ? to : fetch->end, .fetch = fetch};
	int error;

	if (wait && wait->only_try)
		return -EAGAIN;
	error = file_wait(handle->file, wait, &waiter);
	/* What another identity may not do says nothing. */
	return waiter.error && who != handle->who ? 0 : error;
}

/* Until nothing is missing. The blocks are pinned. */
static int fetch_until_there(struct cl_data_handle *handle, const struct cl_data_wait *wait,
			     uint64_t start, uint64_t end)
{
	struct cl_data_file *file = handle->file;
	uint64_t from, to;
	int error = 0;

	for (unsigned tries = 0; !error && file_find_missing(file, start, end, &from, &to);) {
		const struct fetch *fetch = find_fetch(file, from);

		if (fetch) {
			error = join_fetch(handle, wait, fetch, from, to);
			continue;
		}
		if (++tries > TRIES_MOST + ((end - start) >> file->data->block_shift))
			return -EIO;
		error = fetch_missing(handle, wait, from, end);
	}
	return error;
}

int file_fetch(struct cl_data_handle *handle, const struct cl_data_wait *wait, uint64_t start,
	       uint64_t end)
{
	struct cl_data_file *file = handle->file;
	int error;

	assert(mutex_is_held(&file->lock));
	if (file_covers(file, start, end))
		return 0;
	/* The first bytes must not be evicted while the last ones come. */
	if (pin_blocks(file, start, end))
		return -ENOMEM;
	error = fetch_until_there(handle, wait, start, end);
	unpin_blocks(file, start, end);
	return error;
}

/* -- files that are kept as a whole --------------------------------------------------------- */

#define LACKING_SHARE 4u /* a larger part is not fetched for it */

struct completion {
	struct job job;
	struct cl_data_handle handle; /* for its calls */
};

/* Reads a block that is on the disk, to see whether it is sound. With the lock held, which is released meanwhile. */
static int check_block(struct cl_data_file *file, uint64_t number)
{
	struct cl_disk_version version = file_disk_version(file);
	uint32_t size = block_size(file->data);
	unsigned char *bytes = malloc(size);
	int64_t got;

	if (!bytes)
		return -ENOMEM;
	pthread_mutex_unlock(&file->lock);
	got = cl_disk_read_block(file->disk, &version, number, 0, bytes, size, false);
	pthread_mutex_lock(&file->lock);
	free(bytes);
	return got > 0 ? 0 : -EIO;
}

/* The same for one that is not: it is fetched, and saved. */
static int fetch_and_save_block(struct cl_data_handle *handle, uint64_t start, uint64_t end)
{
	struct cl_data_file *file = handle->file;
	int error = pin_blocks(file, start, end);

	if (error)
		return error;
	error = fetch_until_there(handle, NULL, start, end);
	if (!error && !file_has_on_disk(file, start >> file->data->block_shift))
		error = save_block(file, block_find(file, start >> file->data->block_shift));
	unpin_blocks(file, start, end);
	return error;
}

static int complete_block(struct cl_data_handle *handle, uint64_t start)
{
	struct cl_data_file *file = handle->file;
	struct cl_disk_version version = file_disk_version(file);
	uint64_t number = start >> file->data->block_shift, end = start + block_size(file->data);

	if (cl_disk_block_is_sound(file->disk, &version, number))
		return 0;
	if (file_has_on_disk(file, number))
		return check_block(file, number);
	if (end > file_known_end(file))
		end = file_known_end(file);
	return fetch_and_save_block(handle, start, end);
}

static void run_whole(struct job *job)
{
	struct completion *completion = (struct completion *)(void *)job;
	struct cl_data_handle *handle = &completion->handle;
	struct cl_data_file *file = handle->file;
	const struct cl_data_ops *ops = &file->data->ops;
	uint64_t version, start;
	int error = 0;

	pthread_mutex_lock(&file->lock);
	version = file->version.version;
	for (start = 0; !error && start < file_known_end(file); start += block_size(file->data)) {
		if (file->version.version != version || atomic_load(&file->data->stopped))
			break;
		error = complete_block(handle, start);
	}
	file->completing = false;
	pthread_mutex_unlock(&file->lock);
	if (ops->drop_who)
		ops->drop_who(handle->who);
	ops->drop(file->owner);
	free(completion);
}

void file_complete_whole(struct cl_data_handle *handle)
{
	struct cl_data_file *file = handle->file;
	struct cl_disk_version version = file_disk_version(file);
	uint64_t blocks =
		(file_known_end(file) + block_size(file->data) - 1) >> file->data->block_shift;
	struct cl_disk_share share = cl_disk_share_of_whole(file->disk, &version);
	struct completion *completion;

	assert(mutex_is_held(&file->lock));
	if (file->completing || share.present + blocks / LACKING_SHARE < blocks ||
	    share.sound == blocks || !share.present)
		return;
	completion = calloc(1, sizeof(*completion));
	if (!completion)
		return;
	*completion =
		(struct completion){.job = {.run = run_whole, .lane = file_lane(file), .most = 2},
				    .handle = {.file = file, .who = handle->who}};
	file->completing = true;
	file->data->ops.hold(file->owner);
	if (file->data->ops.hold_who)
		file->data->ops.hold_who(handle->who);
	jobs_add(&file->data->jobs, &completion->job);
}

/* -- reading ahead -------------------------------------------------------------------------- */

/* How much is read ahead of a handle that reads [start, end) now; 0: nothing. */
static uint64_t widen_read_ahead(struct cl_data_handle *handle, uint64_t start, uint64_t end)
{
	struct cl_data_file *file = handle->file;
	uint64_t block = block_size(file->data), back = start + block;

	/* Several reads may be under way, and overtake each other. */
	if (back < handle->position || start > handle->position + handle->window) {
		handle->window = 0;
		handle->ahead = 0;
		handle->position = end;
		return 0;
	}
	if (start && !handle->window)
		handle->window = block;
	else if (handle->window && !file_covers(file, start, end))
		handle->window *= file->share ? 4 : 2;
	if (handle->window > file->data->options.ahead_most)
		handle->window = file->data->options.ahead_most;
	if (handle->position < end)
		handle->position = end;
	return handle->window;
}

void file_read_ahead(struct cl_data_handle *handle, uint64_t start, uint64_t end)
{
	struct cl_data_file *file = handle->file;
	struct cl_data *data = file->data;
	uint64_t mask = block_size(data) - 1, window = widen_read_ahead(handle, start, end);
	uint64_t unit = window / 2, at = (end + mask) & ~mask, from, to;
	uint64_t stop = (handle->position + window + mask) & ~mask;

	if (!window || handle->ahead > handle->position + window / 2)
		return;
	unit = limit_unit(file, unit <= mask ? mask + 1 : unit, window);
	if (at < handle->ahead)
		at = handle->ahead;
	handle->ahead = stop;
	for (; at < stop && file_find_missing(file, at, stop, &from, &to); at = to) {
		from &= ~mask;
		if (from < at)
			from = at;
		to = clip_fetch(file, from, from + unit);
		if (find_fetch(file, from) || file_has_on_disk(file, from >> data->block_shift))
			to = from + mask + 1;
		else if (atomic_load(&data->ahead) + unit > data->options.memory_most / 2 ||
			 !queue_fetch(handle, from, to, true)) {
			handle->ahead = at;
			break;
		}
	}
}
