/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storing changes. A pass stores what was dirty when it began, range by range; one runs at a time for a file, on the thread that
 * flushes or on one of the pool, while programs go on writing.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/data/filesteps.h"
#include "common/clock.h"
#include "common/grow.h"
#include "common/held.h"
#include "common/sigmask.h"

#define RETRY_NS      (5ull * NS_PER_S) /* after a failure; doubled each time */
#define RETRY_MOST_NS (60ull * NS_PER_S)
#define ROUND_NS      (200 * NS_PER_MS)	  /* between two tries to store all files */
#define GIVE_UP_NS    (600ull * NS_PER_S) /* after the last close (K-137) */

/* What is to be done after the lock is released. */
struct ending {
	struct writer *writers;
	bool drop, lost;
	uint64_t lost_bytes;
	int error;
};

bool error_is_permanent(int error)
{
	switch (-error) {
	case ENOSPC:
	case EDQUOT:
	case EACCES:
	case EPERM:
	case EROFS:
	case EFBIG:
	case ENOENT:
	case ESTALE:
	case ENODEV:
	case EINVAL:
		return true;
	default:
		return false;
	}
}

/* -- what is dirty -------------------------------------------------------------------------- */

bool file_is_dirty(struct cl_data_file *file)
{
	return atomic_load(&file->dirty) || file->cut != NO_CUT || file->next_cut != NO_CUT ||
	       file->time_pending || file->grow > file->version.length;
}

/* Makes an identity the first one of those that wrote. */
static int note_writer(struct cl_data_handle *handle)
{
	struct cl_data_file *file = handle->file;
	struct writer **at = &file->writers, *writer;

	while (*at && (*at)->who != handle->who)
		at = &(*at)->next;
	writer = *at;
	if (writer) {
		*at = writer->next;
	} else {
		writer = malloc(sizeof(*writer));
		if (!writer)
			return -ENOMEM;
		writer->who = handle->who;
		if (file->data->ops.hold_who)
			file->data->ops.hold_who(writer->who);
	}
	writer->next = file->writers;
	file->writers = writer;
	return 0;
}

int file_note_change(struct cl_data_handle *handle)
{
	struct cl_data_file *file = handle->file;
	struct cl_data *data = file->data;

	assert(mutex_is_held(&file->lock));
	if (note_writer(handle))
		return -ENOMEM;
	file->changes++;
	if (file->held)
		return 0;
	file->held = true;
	data->ops.hold(file->owner);
	file->dirty_since = monotonic_ns();
	pthread_mutex_lock(&data->lock);
	link_first(&data->dirties, &file->dirties);
	/* Else it looks at the files within a second. */
	if (data->tick_sleeps)
		pthread_cond_signal(&data->tick);
	pthread_mutex_unlock(&data->lock);
	return 0;
}

uint64_t file_drop_dirty(struct cl_data_file *file)
{
	uint64_t dropped = atomic_load(&file->dirty);

	assert(mutex_is_held(&file->lock));
	assert(!file->storing);
	for (size_t i = file->count; i-- > 0;) {
		struct block *block = file->blocks[i];

		if (!block->dirty.count)
			continue;
		block_cut(block, 0);
		if (!block->busy)
			block_remove(file, block);
	}
	file->cut = NO_CUT;
	file->grow = 0;
	file->time_pending = false;
	file->clean_to = file->synced_to = file->changes;
	return dropped;
}

/* Whether the changes are to be dropped: nobody is left who could be told (K-078, K-137). */
static bool must_give_up(const struct cl_data_file *file)
{
	if (file->abandoned)
		return true;
	return !file->handles && (error_is_permanent(atomic_load(&file->error)) ||
				  (file->give_up_at && monotonic_ns() >= file->give_up_at));
}

/* Ends the state of being dirty, if nothing is to be stored or the changes are given up. */
static void settle_file(struct cl_data_file *file, struct ending *ending)
{
	struct cl_data *data = file->data;

	assert(mutex_is_held(&file->lock));
	*ending = (struct ending){.drop = false};
	if (file->storing || !file->held)
		return;
	if (file_is_dirty(file) && must_give_up(file)) {
		ending->lost = true;
		ending->error = atomic_load(&file->error);
		ending->lost_bytes = file_drop_dirty(file);
		file_wake(file, true);
	}
	if (file_is_dirty(file) || file->flushing)
		return;
	ending->writers = file->writers;
	ending->drop = true;
	file->writers = NULL;
	file->held = false;
	file->dirty_since = file->retry_at = file->give_up_at = 0;
	file->retries = 0;
	atomic_store(&file->error, 0);
	pthread_mutex_lock(&data->lock);
	unlink_item(&file->dirties);
	if (data->room_waiters)
		pthread_cond_broadcast(&data->room);
	pthread_mutex_unlock(&data->lock);
}

/* Without the lock. The file may be gone afterwards. */
static void finish_settling(struct cl_data_file *file, struct ending *ending)
{
	const struct cl_data_ops *ops = &file->data->ops;
	void *owner = file->owner;

	if (ending->lost && ops->lost)
		ops->lost(owner, ending->error, ending->lost_bytes);
	for (struct writer *writer = ending->writers, *next; writer; writer = next) {
		next = writer->next;
		if (ops->drop_who)
			ops->drop_who(writer->who);
		free(writer);
	}
	if (ending->drop)
		ops->drop(owner);
}

/* -- one call ------------------------------------------------------------------------------- */

/* The bytes of a call, which stay as they were when it began. */
struct source {
	uint64_t first; /* number of the first block */
	unsigned shift;
	struct buffer **buffers;
	size_t count;
};

static int give_bytes(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	const struct source *source = arg;
	uint64_t size = 1ull << source->shift;

	for (unsigned i = 0; i < count; i++) {
		unsigned char *to = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		while (left) {
			uint64_t start = offset & (size - 1);
			size_t part = left < size - start ? left : (size_t)(size - start);
			size_t block = (size_t)((offset >> source->shift) - source->first);

			assert(block < source->count);
			memcpy(to, source->buffers[block]->bytes + start, part);
			to += part;
			left -= part;
			offset += part;
		}
	}
	return 0;
}

static void free_source(struct source *source)
{
	for (size_t i = 0; i < source->count; i++)
		buffer_put(source->buffers[i]);
	free(source->buffers);
}

/* Pins the dirty range of a call. */
static int make_source(struct cl_data_file *file, const struct cl_data_store *store,
		       struct source *source)
{
	unsigned shift = file->data->block_shift;
	uint64_t end = store->offset + store->length;

	*source = (struct source){.first = store->offset >> shift, .shift = shift};
	if (!store->length)
		return 0;
	source->buffers =
		calloc((size_t)(((end - 1) >> shift) - source->first + 1), sizeof(struct buffer *));
	if (!source->buffers)
		return -ENOMEM;
	for (uint64_t number = source->first; number << shift < end; number++) {
		uint64_t in_block = end - (number << shift);

		if (in_block > block_size(file->data))
			in_block = block_size(file->data);
		source->buffers[source->count++] =
			block_lend(block_find(file, number), (uint32_t)in_block);
	}
	return 0;
}

static bool is_refusal(int error)
{
	return error == -EACCES || error == -EPERM || error == -EKEYEXPIRED ||
	       error == -EKEYREJECTED || error == -EKEYREVOKED;
}

/* Identities that may store, the last one that wrote first: copies with references. */
static size_t copy_writers(struct cl_data_file *file, void ***whos)
{
	size_t count = 0, i = 0;

	for (struct writer *writer = file->writers; writer; writer = writer->next)
		count++;
	*whos = calloc(count ? count : 1, sizeof(void *));
	if (!*whos)
		return 0;
	for (struct writer *writer = file->writers; writer; writer = writer->next) {
		(*whos)[i++] = writer->who;
		if (file->data->ops.hold_who)
			file->data->ops.hold_who(writer->who);
	}
	return count;
}

/* Does the call for one identity after the other, until one may (K-081). Without the lock. */
static int call_store(struct cl_data_file *file, void **whos, size_t count,
		      const struct cl_data_store *store, struct source *source,
		      struct cl_data_version *known)
{
	const struct cl_data_ops *ops = &file->data->ops;
	int error = -EACCES;

	for (size_t i = 0; i < count && is_refusal(error); i++)
		error = ops->store(file->owner, whos[i], store, give_bytes, source, known);
	for (size_t i = 0; i < count && ops->drop_who; i++)
		ops->drop_who(whos[i]);
	return error;
}

/* The range is at the server. True: clean bytes were dropped. */
static bool end_store(struct cl_data_file *file, const struct cl_data_store *store,
		      const struct cl_data_version *known)
{
	unsigned shift = file->data->block_shift;
	uint64_t end = store->offset + store->length;
	bool dropped;

	for (uint64_t number = store->offset >> shift; number << shift < end; number++) {
		struct block *block = block_find(file, number);
		uint64_t base = number << shift;
		uint64_t start = store->offset > base ? store->offset - base : 0;
		uint64_t stop =
			end - base < block_size(file->data) ? end - base : block_size(file->data);

		if (!block)
			continue;
		block_set_stored(block, (uint32_t)start, (uint32_t)stop);
		/* A program that writes much goes on: its next blocks need no new memory. */
		if (store->length >= STORE_CHUNK && !block->dirty.count)
			block_consume(block);
	}
	dropped = file_take_version(file, known, store->offset, end);
	file->unsynced = !store->durable;
	file->sent_end = 0;
	return dropped;
}

/* Takes back the marks of a call. */
static void clear_again(struct cl_data_file *file)
{
	for (size_t i = block_index(file, file->storing_from >> file->data->block_shift);
	     i < file->count &&
	     file->blocks[i]->number << file->data->block_shift < file->storing_to;
	     i++)
		extents_clear(&file->blocks[i]->again);
	file->storing_from = file->storing_to = 0;
}

/* With the lock held, which is released meanwhile. */
static int store_range(struct cl_data_file *file, const struct cl_data_store *store)
{
	struct cl_data_version known = {0};
	struct source source;
	void **whos = NULL;
	size_t count = copy_writers(file, &whos);
	bool dropped = false, timed = file->time_pending;
	int error = whos ? make_source(file, store, &source) : -ENOMEM;

	if (error) {
		free(whos);
		return error;
	}
	file->time_pending = false;
	file->storing_from = store->offset;
	file->storing_to = store->offset + store->length;
	if (file->sent_end < file->storing_to)
		file->sent_end = file->storing_to;
	file->calling = true;
	pthread_mutex_unlock(&file->lock);
	error = call_store(file, whos, count, store, &source, &known);
	free_source(&source);
	free(whos);
	pthread_mutex_lock(&file->lock);
	file->calling = false;
	if (!error && store->file_length != NO_CUT)
		file->cut = NO_CUT;
	if (file->next_cut < file->cut)
		file->cut = file->next_cut;
	file->next_cut = NO_CUT;
	if (!error) {
		dropped = end_store(file, store, &known);
	} else if (timed) {
		file->time_pending = true;
	}
	clear_again(file);
	if (!error)
		file_save_blocks(file, store->offset, store->offset + store->length);
	if (dropped && file->data->ops.changed) {
		pthread_mutex_unlock(&file->lock);
		file->data->ops.changed(file->owner);
		pthread_mutex_lock(&file->lock);
	}
	return error;
}

/* -- passes --------------------------------------------------------------------------------- */

/* The next call of a pass over [cursor, end); false: there is none. */
static bool plan_store(struct cl_data_file *file, uint64_t cursor, uint64_t end, bool durable,
		       struct cl_data_store *store)
{
	uint64_t from = 0, to = 0, next, ignored;
	bool found = file_find_dirty(file, cursor, &from, &to) && from < end;

	*store = (struct cl_data_store){
		.file_length = NO_CUT, .known_length = file_length(file), .mtime = file->mtime};
	if (to > end)
		to = end;
	if (file->cut != NO_CUT && !(found && from <= file->cut)) {
		store->offset = store->file_length = file->cut;
		return true;
	}
	if (found) {
		store->offset = from;
		store->length = to - from;
		if (file->cut != NO_CUT)
			store->file_length = file->cut > to ? file->cut : to;
		store->durable = durable &&
				 !(file_find_dirty(file, to, &next, &ignored) && next < end) &&
				 file->grow <= file->version.length && file->grow <= to;
		return true;
	}
	store->durable = durable;
	if (file->grow > file->version.length) {
		store->offset = file->grow;
		return true;
	}
	return file->time_pending || (durable && file->unsynced);
}

/* After a pass: waiters, and when to try again. */
static void end_pass(struct cl_data_file *file, uint64_t changes, bool durable, int error)
{
	struct cl_data *data = file->data;
	uint64_t delay = RETRY_NS << (file->retries < 4 ? file->retries : 4);

	file->storing = false;
	atomic_store(&file->error, error);
	if (error) {
		file->errors++;
		file->retries++;
		file->retry_at = monotonic_ns() + (delay < RETRY_MOST_NS ? delay : RETRY_MOST_NS);
	} else {
		file->clean_to = changes;
		if (durable)
			file->synced_to = changes;
		file->retries = 0;
		file->retry_at = 0;
		file->dirty_since = monotonic_ns();
	}
	file_wake(file, true);
	pthread_mutex_lock(&data->lock);
	if (data->room_waiters)
		pthread_cond_broadcast(&data->room);
	pthread_mutex_unlock(&data->lock);
}

/* Stores what is dirty now. With the lock held, which is released meanwhile; nobody else stores. */
static int store_pass(struct cl_data_file *file, bool durable)
{
	uint64_t changes = file->changes, end = file_length(file), cursor = 0;
	struct cl_data_store store;
	int error = 0;

	assert(mutex_is_held(&file->lock));
	assert(!file->storing);
	file->storing = true;
	while (!error && !file->abandoned && plan_store(file, cursor, end, durable, &store)) {
		error = store_range(file, &store);
		if (store.length)
			cursor = store.offset + store.length;
		if (store.length && !error && atomic_load(&file->data->room_waiters)) {
			pthread_mutex_lock(&file->data->lock);
			pthread_cond_broadcast(&file->data->room);
			pthread_mutex_unlock(&file->data->lock);
		}
	}
	end_pass(file, changes, durable, error);
	return error;
}

static void run_store(struct job *job)
{
	struct cl_data_file *file =
		(struct cl_data_file *)(void *)((char *)job - offsetof(struct cl_data_file, job));
	const struct cl_data_ops *ops = &file->data->ops;
	void *owner = file->owner;
	struct ending ending;
	bool durable;

	pthread_mutex_lock(&file->lock);
	durable = file->durable_wanted;
	file->queued = file->durable_wanted = false;
	if (!file->storing && !must_give_up(file) &&
	    (file->clean_to < file->changes || file_is_dirty(file) ||
	     (durable && (file->held || !file->unsynced))))
		store_pass(file, durable);
	settle_file(file, &ending);
	file_store_if_large(file);
	pthread_mutex_unlock(&file->lock);
	finish_settling(file, &ending);
	ops->drop(owner);
}

void file_store_later(struct cl_data_file *file)
{
	assert(mutex_is_held(&file->lock));
	if (file->queued)
		return;
	file->queued = true;
	file->data->ops.hold(file->owner);
	file->job = (struct job){.run = run_store, .lane = file_lane(file)};
	jobs_add(&file->data->jobs, &file->job);
}

void file_store_if_large(struct cl_data_file *file)
{
	if (!file->storing && atomic_load(&file->dirty) >= STORE_CHUNK &&
	    !atomic_load(&file->error))
		file_store_later(file);
}

void store_for_room(struct cl_data *data, struct cl_data_file *file)
{
	pthread_mutex_lock(&file->lock);
	if (file_is_dirty(file) && !file->storing)
		file_store_later(file);
	pthread_mutex_unlock(&file->lock);
	if (atomic_load(&data->dirty) < data->options.dirty_most / 2)
		return;
	pthread_mutex_lock(&data->lock);
	for (struct link *at = data->dirties.previous; at != &data->dirties; at = at->previous) {
		struct cl_data_file *other =
			(struct cl_data_file *)(void *)((char *)at -
							offsetof(struct cl_data_file, dirties));

		if (pthread_mutex_trylock(&other->lock))
			continue;
		if (!other->storing && !atomic_load(&other->error))
			file_store_later(other);
		pthread_mutex_unlock(&other->lock);
	}
	pthread_mutex_unlock(&data->lock);
}

/* -- flush ---------------------------------------------------------------------------------- */

/* Until all changes that were made before are stored. With the lock held, which is released meanwhile. */
static int flush_file(struct cl_data_file *file, const struct cl_data_wait *wait, bool durable)
{
	uint64_t target = file->changes, errors = file->errors;
	int error = 0;

	file->flushing++;
	while (!error && (durable ? file->synced_to : file->clean_to) < target) {
		struct waiter waiter = {.start = 0};

		if (file->errors != errors && atomic_load(&file->error)) {
			error = atomic_load(&file->error);
			break;
		}
		if (!file->storing && !wait_is_bounded(wait)) {
			error = store_pass(file, durable);
			continue;
		}
		if (!file->storing) {
			file->durable_wanted |= durable;
			file_store_later(file);
		}
		error = file_wait(file, wait, &waiter);
	}
	file->flushing--;
	return error;
}

int cl_data_flush(struct cl_data_handle *handle, const struct cl_data_wait *wait, bool durable)
{
	struct cl_data_file *file = handle->file;
	struct ending ending;
	int error = 0;

	pthread_mutex_lock(&file->lock);
	if (durable && file->unsynced && !file->held)
		error = file_note_change(handle);
	if (error)
		error = -ENOMEM;
	else if (wait && wait->only_try)
		error = (durable ? file->synced_to : file->clean_to) < file->changes ? -EAGAIN : 0;
	else
		error = flush_file(file, wait, durable);
	settle_file(file, &ending);
	pthread_mutex_unlock(&file->lock);
	finish_settling(file, &ending);
	return error;
}

void cl_data_close(struct cl_data_handle *handle)
{
	struct cl_data_file *file = handle->file;
	struct cl_data *data = file->data;
	struct cl_data_handle **at = &file->handles;
	struct ending ending;

	pthread_mutex_lock(&file->lock);
	while (*at != handle)
		at = &(*at)->next;
	*at = handle->next;
	if (!file->handles && file_is_dirty(file))
		file->give_up_at = monotonic_ns() + GIVE_UP_NS;
	settle_file(file, &ending);
	if (!file->handles && file->held && !file->storing && !atomic_load(&file->error))
		file_store_later(file);
	pthread_mutex_unlock(&file->lock);
	finish_settling(file, &ending);
	if (data->ops.drop_who)
		data->ops.drop_who(handle->who);
	data->ops.drop(file->owner);
	free(handle);
}

bool cl_data_is_dirty(struct cl_data_file *file, int64_t *mtime)
{
	bool dirty;

	pthread_mutex_lock(&file->lock);
	dirty = file_is_dirty(file);
	*mtime = file->mtime;
	pthread_mutex_unlock(&file->lock);
	return dirty;
}

bool cl_data_set_mtime(struct cl_data_file *file, int64_t mtime)
{
	bool dirty;

	pthread_mutex_lock(&file->lock);
	dirty = file_is_dirty(file);
	if (dirty) {
		file->mtime = mtime;
		file->changes++;
		/* The call that runs has the old time. */
		file->time_pending |= file->storing;
	}
	pthread_mutex_unlock(&file->lock);
	return dirty;
}

/* -- all files ------------------------------------------------------------------------------ */

/* Files with changes, each held. */
static size_t collect_dirty(struct cl_data *data, uint32_t cell, uint32_t volume,
			    struct cl_data_file ***files)
{
	size_t count = 0, room = 0;

	*files = NULL;
	pthread_mutex_lock(&data->lock);
	for (struct link *at = data->dirties.previous; at != &data->dirties; at = at->previous) {
		struct cl_data_file *file =
			(struct cl_data_file *)(void *)((char *)at -
							offsetof(struct cl_data_file, dirties));

		if (volume && (file->fid.volume != volume || file->fid.cell != cell))
			continue;
		if (!grow_array(files, &room, count, sizeof(struct cl_data_file *)))
			break;
		data->ops.hold(file->owner);
		(*files)[count++] = file;
	}
	pthread_mutex_unlock(&data->lock);
	return count;
}

static void queue_stores(struct cl_data_file **files, size_t count, bool durable)
{
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&files[i]->lock);
		if (files[i]->held) {
			files[i]->durable_wanted |= durable;
			if (!files[i]->storing)
				file_store_later(files[i]);
		}
		pthread_mutex_unlock(&files[i]->lock);
	}
}

/* One round over all files. */
struct round {
	int passing, permanent; /* the first errors that may pass and that do not */
};

static void flush_each(struct cl_data_file **files, size_t count, bool durable,
		       const struct cl_data_wait *wait, struct round *round)
{
	round->passing = 0;
	for (size_t i = 0; i < count; i++) {
		struct ending ending;
		int error;

		pthread_mutex_lock(&files[i]->lock);
		/* What was stored meanwhile has no writer any more in whose name it could be synced. */
		error = flush_file(files[i], wait, durable && files[i]->held);
		settle_file(files[i], &ending);
		pthread_mutex_unlock(&files[i]->lock);
		finish_settling(files[i], &ending);
		if (error_is_permanent(error))
			round->permanent = round->permanent ? round->permanent : error;
		else
			round->passing = round->passing ? round->passing : error;
	}
}

/* False: the wait is over, or has no limit. */
static bool pause_rounds(const struct cl_data_wait *wait)
{
	const struct timespec pause = {.tv_nsec = ROUND_NS};

	if (!wait || !wait->deadline || wait_is_over(wait))
		return false;
	nanosleep(&pause, NULL);
	return !wait_is_over(wait);
}

/* A server that is away may come back, so what failed is tried again as long as the wait lasts. */
int cl_data_flush_all(struct cl_data *data, uint32_t cell, uint32_t volume, bool durable,
		      const struct cl_data_wait *wait)
{
	struct cl_data_file **files;
	size_t count = collect_dirty(data, cell, volume, &files);
	struct round round = {.permanent = 0};

	do {
		queue_stores(files, count, durable);
		flush_each(files, count, durable, wait, &round);
	} while (round.passing && pause_rounds(wait));
	for (size_t i = 0; i < count; i++)
		data->ops.drop(files[i]->owner);
	free(files);
	return round.permanent ? round.permanent : round.passing;
}

void cl_data_give_up(struct cl_data *data)
{
	struct cl_data_file **files;
	size_t count = collect_dirty(data, 0, 0, &files);

	for (size_t i = 0; i < count; i++) {
		struct cl_data_file *file = files[i];
		struct ending ending;

		pthread_mutex_lock(&file->lock);
		file->abandoned = true;
		settle_file(file, &ending);
		pthread_mutex_unlock(&file->lock);
		finish_settling(file, &ending);
		data->ops.drop(file->owner);
	}
	free(files);
}

/* -- by time -------------------------------------------------------------------------------- */

/* Whether it is time to store a file, to try again or to give up. */
static bool is_due(const struct cl_data_file *file, uint64_t now)
{
	uint64_t after = (uint64_t)file->data->options.store_after_s * NS_PER_S;
	int error = atomic_load(&file->error);

	if (file->storing || file->queued)
		return false;
	if (!file->handles && file->give_up_at && now >= file->give_up_at)
		return true;
	if (error)
		return !error_is_permanent(error) && now >= file->retry_at;
	return now >= file->dirty_since + after;
}

static void *run_ticker(void *arg)
{
	struct cl_data *data = arg;

	pthread_mutex_lock(&data->lock);
	while (!data->stop) {
		uint64_t now = monotonic_ns();

		for (struct link *at = data->dirties.next; at != &data->dirties; at = at->next) {
			struct cl_data_file *file =
				(struct cl_data_file *)(void *)((char *)at -
								offsetof(struct cl_data_file,
									 dirties));

			if (pthread_mutex_trylock(&file->lock))
				continue;
			if (is_due(file, now))
				file_store_later(file);
			pthread_mutex_unlock(&file->lock);
		}
		data->tick_sleeps = data->dirties.next == &data->dirties;
		if (data->tick_sleeps)
			pthread_cond_wait(&data->tick, &data->lock);
		else
			monotonic_wait(&data->tick, &data->lock, now + NS_PER_S);
	}
	pthread_mutex_unlock(&data->lock);
	return NULL;
}

int ticker_start(struct cl_data *data)
{
	int error;

	monotonic_cond_init(&data->tick);
	error = create_thread_without_signals(&data->ticker, run_ticker, data);
	if (error)
		pthread_cond_destroy(&data->tick);
	return -error;
}

void ticker_stop(struct cl_data *data)
{
	pthread_mutex_lock(&data->lock);
	data->stop = true;
	pthread_cond_signal(&data->tick);
	pthread_mutex_unlock(&data->lock);
	pthread_join(data->ticker, NULL);
	pthread_cond_destroy(&data->tick);
}
