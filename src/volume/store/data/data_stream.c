/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of objects. A run gathers those of one writer into few large writes to one object; a view reads those of one version of
 * a content, from the files that it refers to.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_private.h"

#define WRITE_PIECES 256 /* buffers of one write */
#define READ_PIECES  128 /* of one read */
#define CANDIDATES 16  /* objects that a run tries to go on in */
#define LOOKS	   256 /* extents among which they are searched */
#define SEEN_BITS  4096
#define COPY_BYTES (1u << 20)

/* -- views -- */

/* Constant: any number of threads may read. */
struct store_view {
	struct store_data *data;
	struct store_owner owner;
	uint64_t length;
	const struct store_extent *extent;
	uint32_t count;
	uint32_t objects;	      /* that are open; 0: each is opened when it is read */
	struct data_object *object[]; /* of the extents */
};

void store_view_close(struct store_view *view)
{
	if (!view)
		return;
	for (uint32_t i = 0; i < view->objects; i++)
		data_read_end(view->data, view->object[i]);
	free(view);
}

int store_view_open(struct store_data *data, const struct store_owner *owner,
		    const struct store_content *content, uint64_t length, struct store_view **out)
{
	uint32_t open = content->count <= STORE_VIEW_OPEN ? content->count : 0;
	struct store_view *view = calloc(1, sizeof(*view) + open * sizeof(view->object[0]));

	if (!view)
		return -ENOMEM;
	view->data = data;
	view->owner = *owner;
	view->length = length;
	view->extent = content->extent;
	view->count = content->count;
	while (view->count && view->extent[view->count - 1].start >= length)
		view->count--;
	for (; open && view->objects < view->count; view->objects++) {
		int rc = data_read(data, owner, view->extent[view->objects].object,
				   &view->object[view->objects]);

		if (rc) {
			store_view_close(view);
			return rc;
		}
	}
	*out = view;
	return 0;
}

/*
 * Get the object of an extent, which release_extent_object() gives back. An object that is pinned is
 * never missing.
 */
static int get_extent_object(const struct store_view *view, uint32_t at,
			     struct data_object **object)
{
	int rc;

	assert(at < view->count);
	if (view->objects) {
		*object = view->object[at];
		return 0;
	}
	rc = data_read(view->data, &view->owner, view->extent[at].object, object);
	return rc == -ENOENT ? -EIO : rc;
}

static void release_extent_object(const struct store_view *view, struct data_object *object)
{
	if (!view->objects)
		data_read_end(view->data, object);
}

/* The first extent that ends behind an offset. */
static uint32_t find_view_extent(const struct store_view *view, uint64_t offset)
{
	uint32_t low = 0, high = view->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (view->extent[middle].end > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* -- buffers of a view -- */

/* Buffers for at most `want` bytes. *bytes: how many they are, at least one. */
static int slice_output(const struct store_cursor *output, uint64_t want, struct iovec part[READ_PIECES],
			size_t *bytes)
{
	int parts = 0;

	*bytes = 0;
	for (int i = 0; i < output->count && parts < READ_PIECES && *bytes < want; i++) {
		size_t skip = i == 0 ? output->skip : 0, n = output->iov[i].iov_len - skip;

		if (n > want - *bytes)
			n = (size_t)(want - *bytes);
		part[parts++] = (struct iovec){(char *)output->iov[i].iov_base + skip, n};
		*bytes += n;
	}
	assert(*bytes > 0);
	return parts;
}

static uint64_t sum_output_lengths(const struct iovec *iov, int count)
{
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Bytes of an extent, perhaps fewer than wanted, or -EAGAIN with `cached`. */
static ssize_t read_extent_bytes(const struct store_view *view, uint32_t at,
				 const struct iovec *part, int parts, size_t bytes, uint64_t offset,
				 bool cached)
{
	struct data_object *object;
	ssize_t n = get_extent_object(view, at, &object);

	if (n)
		return n;
	if (data_lost(object, offset + bytes))
		n = -EIO;
	else
		n = view->data->layer->ops->preadv(object->file, part, parts, offset, cached);
	release_extent_object(view, object);
	/* The end of the file is not that of the extent. */
	return n == 0 ? -EIO : n;
}

/* The next bytes: of one extent or one hole, up to `want`. */
static ssize_t read_next_bytes(const struct store_view *view, uint32_t at,
			       const struct store_cursor *output, uint64_t want, uint64_t offset,
			       bool cached)
{
	const struct store_extent *extent = at < view->count ? &view->extent[at] : NULL;
	struct iovec part[READ_PIECES];
	bool hole = !extent || offset < extent->start;
	size_t bytes;

	if (hole && extent && extent->start - offset < want)
		want = extent->start - offset;
	if (!hole && extent->end - offset < want)
		want = extent->end - offset;

	int parts = slice_output(output, want, part, &bytes);

	if (!hole)
		return read_extent_bytes(view, at, part, parts, bytes, offset, cached);
	for (int i = 0; i < parts; i++)
		if (part[i].iov_len)
			memset(part[i].iov_base, 0, part[i].iov_len);
	return (ssize_t)bytes;
}

ssize_t store_view_read(struct store_view *view, const struct iovec *iov, int count,
			uint64_t offset, bool cached)
{
	struct store_cursor output = {.iov = iov, .count = count};
	uint64_t want = sum_output_lengths(iov, count), done = 0;
	uint32_t at = find_view_extent(view, offset);

	if (offset >= view->length)
		return 0;
	/* To open an object may need the disk. */
	if (cached && view->objects < view->count)
		return -EAGAIN;
	if (want > view->length - offset)
		want = view->length - offset;
	store_cursor_skip(&output, 0);
	while (done < want) {
		ssize_t n = read_next_bytes(view, at, &output, want - done, offset + done, cached);

		if (n == -EAGAIN && done)
			break;
		if (n < 0)
			return n;
		done += (uint64_t)n;
		store_cursor_skip(&output, (size_t)n);
		if (at < view->count && offset + done >= view->extent[at].end)
			at++;
	}
	return (ssize_t)done;
}

void store_view_ahead(struct store_view *view, uint64_t offset, uint64_t length)
{
	const struct store_layer_ops *ops = view->data->layer->ops;
	uint64_t end = length < view->length ? offset + length : view->length;

	if (offset >= view->length)
		return;
	if (end > view->length)
		end = view->length;
	for (uint32_t i = find_view_extent(view, offset);
	     i < view->count && view->extent[i].start < end; i++) {
		const struct store_extent *extent = &view->extent[i];
		uint64_t from = extent->start > offset ? extent->start : offset;
		uint64_t to = extent->end < end ? extent->end : end;
		struct data_object *object;

		if (get_extent_object(view, i, &object))
			continue;
		ops->will_need(object->file, from, to - from);
		release_extent_object(view, object);
	}
}

/* -- runs -- */

/* One thread at a time. */
struct store_run {
	struct store_data *data;
	struct data_object *object;
	uint64_t made;	 /* the number of the object, if it was made for this run; else 0 */
	bool alone;	 /* all that was in the object before is flushed, or is being flushed */
	uint64_t before; /* length of the object when the run began */
	uint64_t start;	 /* the first byte of the run */
	uint64_t at;	 /* what lies before it was handed to the layer */
	size_t gather;	 /* bytes of a write, if the buffers allow it */
	uint8_t *buffer; /* bytes from `at` on; NULL: none yet */
	size_t filled;
	int error; /* the first one */
};

/* A client may take its time to fill it: many have small ones. */
static int take_gather_buffer(struct store_run *run)
{
	struct store_data *data = run->data;
	void *buffer = NULL;

	pthread_mutex_lock(&data->lock);
	run->gather = data->gathering++ < DATA_RUNS ? DATA_GATHER : DATA_LESS;
	if (run->gather == DATA_GATHER && data->buffers)
		buffer = data->buffer[--data->buffers];
	pthread_mutex_unlock(&data->lock);
	if (!buffer && posix_memalign(&buffer, DATA_ALIGN, run->gather + DATA_ALIGN)) {
		pthread_mutex_lock(&data->lock);
		data->gathering--;
		pthread_mutex_unlock(&data->lock);
		return -ENOMEM;
	}
	run->buffer = buffer;
	return 0;
}

static void return_gather_buffer(struct store_run *run)
{
	struct store_data *data = run->data;
	bool kept;

	if (!run->buffer)
		return;
	pthread_mutex_lock(&data->lock);
	assert(data->gathering > 0);
	data->gathering--;
	kept = run->gather == DATA_GATHER && data->buffers < DATA_BUFFERS;
	if (kept)
		data->buffer[data->buffers++] = run->buffer;
	pthread_mutex_unlock(&data->lock);
	if (!kept)
		free(run->buffer);
	run->buffer = NULL;
}

/* -- beginning a run -- */

/* Take an object that others may have, too. False: another run has it, or it must not grow. */
static bool claim_object(struct store_data *data, struct data_object *object)
{
	bool ours;

	pthread_mutex_lock(&data->lock);
	ours = !object->writing && !object->sealed && !object->removed &&
	       !atomic_load(&object->failed);
	if (ours)
		object->writing = true;
	pthread_mutex_unlock(&data->lock);
	return ours;
}

static void unclaim_object(struct store_data *data, struct data_object *object)
{
	pthread_mutex_lock(&data->lock);
	assert(object->writing);
	object->writing = false;
	pthread_mutex_unlock(&data->lock);
}

/*
 * Truncate a claimed object to `length`. A flush that has begun knows the bytes behind it, and must
 * not take those that come in their place for safe.
 */
static void cut_object_tail(struct store_data *data, struct data_object *object, uint64_t length)
{
	int rc = data->layer->ops->truncate(object->file, length);

	pthread_mutex_lock(&data->lock);
	assert(object->writing);
	object->sealed |= rc != 0;
	if (object->end > length)
		object->end = length;
	if (object->flushed_end > length)
		object->flushed_end = length;
	if (atomic_load(&object->safe) > length)
		atomic_store(&object->safe, length);
	pthread_mutex_unlock(&data->lock);
}

/* An object that may take more bytes, and where those of the caller's version end. */
struct candidate {
	uint64_t object, end;
};

/*
 * Go on in an old object, if it ends in front of the first byte. Bytes of the object behind its end in
 * the caller's version may belong to a later version.
 */
static bool begin_in_object(struct store_run *run, const struct store_owner *owner,
			    const struct candidate *candidate)
{
	struct store_data *data = run->data;
	uint64_t size;

	if (data_acquire(data, owner, candidate->object, &run->object) < 0)
		return false;
	if (claim_object(data, run->object)) {
		if (data->layer->ops->size(run->object->file, &size) == 0 && size <= run->start &&
		    size >= candidate->end) {
			run->before = size;
			return true;
		}
		unclaim_object(data, run->object);
	}
	data_release(data, run->object);
	return false;
}

/* A set of objects, which may seem to have some more. */
struct seen {
	uint64_t bits[SEEN_BITS / 64];
};

static uint64_t *locate_seen_word(struct seen *seen, uint64_t object, uint64_t *bit)
{
	uint64_t hash = object * 0x9e3779b97f4a7c15ull >> 32;

	*bit = 1ull << hash % 64;
	return &seen->bits[hash / 64 % (SEEN_BITS / 64)];
}

/*
 * The objects whose last bytes are closest to `offset`, but not behind it, the closest one first.
 * So n pages that are written in any order need about 2 * sqrt(n) objects.
 */
static unsigned find_run_candidates(const struct store_content *content, uint64_t offset,
				    struct candidate candidate[CANDIDATES])
{
	struct seen seen = {{0}};
	uint32_t i = content->count, looks = 0;
	unsigned count = 0;
	uint64_t bit, *word;

	for (; i && content->extent[i - 1].end > offset; i--) {
		word = locate_seen_word(&seen, content->extent[i - 1].object, &bit);
		*word |= bit;
	}
	for (; i && count < CANDIDATES && looks < LOOKS; i--, looks++) {
		const struct store_extent *extent = &content->extent[i - 1];

		word = locate_seen_word(&seen, extent->object, &bit);
		if (!(*word & bit))
			candidate[count++] = (struct candidate){extent->object, extent->end};
		*word |= bit;
	}
	return count;
}

static bool begin_in_candidate(struct store_run *run, const struct store_owner *owner,
			       const struct store_content *content)
{
	struct candidate tail = {content->tail_object, content->tail}, candidate[CANDIDATES];
	bool tried = !tail.object || tail.end > run->start;
	unsigned count = find_run_candidates(content, run->start, candidate);

	for (unsigned i = 0; i < count; i++) {
		if (!tried && tail.end >= candidate[i].end) {
			tried = true;
			if (begin_in_object(run, owner, &tail))
				return true;
		}
		if ((!tail.object || candidate[i].object != tail.object) &&
		    begin_in_object(run, owner, &candidate[i]))
			return true;
	}
	return !tried && begin_in_object(run, owner, &tail);
}

/* Mark the present bytes of a claimed object as safe, unless they are dirty. */
static void note_safe_bytes(struct store_run *run)
{
	struct data_object *object = run->object;

	pthread_mutex_lock(&run->data->lock);
	assert(object->writing);
	if (object->end == 0 && run->before) {
		object->end = run->before;
		atomic_store(&object->safe, run->before);
	}
	pthread_mutex_unlock(&run->data->lock);
}

int store_run_begin(struct store_data *data, const struct store_owner *owner,
		    const struct store_content *content, uint64_t offset,
		    uint64_t (*number)(void *arg), void *arg, struct store_run **out)
{
	struct store_run *run = calloc(1, sizeof(*run));

	if (!run)
		return -ENOMEM;
	run->data = data;
	run->gather = DATA_GATHER;
	run->start = run->at = offset;
	if (begin_in_candidate(run, owner, content)) {
		note_safe_bytes(run);
		pthread_mutex_lock(&data->lock);
		run->alone = !run->object->unflushed;
		pthread_mutex_unlock(&data->lock);
	} else {
		int rc;

		run->made = number(arg);
		rc = run->made ? data_create(data, owner, run->made, &run->object) : -EIO;

		if (rc) {
			free(run);
			return rc;
		}
		run->alone = true;
	}
	*out = run;
	return 0;
}

uint64_t store_run_made(const struct store_run *run)
{
	return run->made;
}

/* -- writing -- */

/* The gathered bytes, then input. Returns how many buffers; *bytes: how many bytes of input. */
static int collect_write_parts(const struct store_run *run, const struct store_cursor *input,
			       struct iovec part[WRITE_PIECES + 1], size_t *bytes)
{
	int parts = 0;

	*bytes = 0;
	if (run->filled)
		part[parts++] = (struct iovec){run->buffer, run->filled};
	for (int i = 0; i < input->count && i < WRITE_PIECES; i++) {
		size_t skip = i == 0 ? input->skip : 0;

		part[parts] = input->iov[i];
		part[parts].iov_base = (char *)part[parts].iov_base + skip;
		part[parts].iov_len -= skip;
		*bytes += part[parts++].iov_len;
	}
	return parts;
}

static int write_run_parts(struct store_run *run, const struct iovec *part, int parts, size_t bytes)
{
	ssize_t n = run->data->layer->ops->pwritev(run->object->file, part, parts, run->at);

	if (n < 0)
		return (int)n;
	run->at += bytes;
	run->filled = 0;
	return 0;
}

/* Write the gathered bytes and `bytes` bytes of input, of which the last buffers may be cut. */
static int write_gathered_input(struct store_run *run, struct store_cursor *input, struct iovec *part,
				int parts, size_t bytes)
{
	size_t total = run->filled + bytes, sum = 0;
	int used = 0;

	while (used < parts && sum < total)
		sum += part[used++].iov_len;
	assert(used > 0);
	part[used - 1].iov_len -= sum - total;
	store_cursor_skip(input, bytes);
	return write_run_parts(run, part, used, total);
}

static void gather_input(struct store_run *run, struct store_cursor *input, const struct iovec *part,
			 int parts, size_t bytes)
{
	assert(run->filled + bytes <= run->gather + DATA_ALIGN);
	for (int i = run->filled ? 1 : 0; i < parts; i++) {
		if (part[i].iov_len)
			memcpy(run->buffer + run->filled, part[i].iov_base, part[i].iov_len);
		run->filled += part[i].iov_len;
	}
	store_cursor_skip(input, bytes);
}

/* One step: a write that ends at an aligned offset, or a copy to the buffer, which is taken before. */
static int write_run_step(struct store_run *run, struct store_cursor *input)
{
	struct iovec part[WRITE_PIECES + 1];
	size_t bytes;
	int parts = collect_write_parts(run, input, part, &bytes);
	uint64_t end = (run->at + run->filled + bytes) & ~(uint64_t)(DATA_ALIGN - 1);

	if (end >= run->at + run->gather)
		return write_gathered_input(run, input, part, parts,
					    (size_t)(end - run->at) - run->filled);
	if (!run->buffer)
		return take_gather_buffer(run);
	gather_input(run, input, part, parts, bytes);
	return 0;
}

int store_run_write(struct store_run *run, const struct iovec *iov, int count)
{
	struct store_cursor input = {.iov = iov, .count = count};

	store_cursor_skip(&input, 0);
	while (input.count && !run->error)
		run->error = write_run_step(run, &input);
	return run->error;
}

int store_run_put(struct store_run *run, const void *bytes, uint64_t length)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};

	return length ? store_run_write(run, &iov, 1) : 0;
}

int store_run_copy(struct store_view *view, const struct store_extent *extent,
		   struct store_run *run)
{
	uint64_t at = extent->start, size = extent->end - extent->start;
	uint8_t *buffer = malloc(size < COPY_BYTES ? size : COPY_BYTES);
	int result = buffer ? 0 : -ENOMEM;

	assert(extent->start < extent->end);
	while (!result && at < extent->end) {
		uint64_t left = extent->end - at;
		struct iovec iov = {.iov_base = buffer,
				    .iov_len = left < COPY_BYTES ? left : COPY_BYTES};
		ssize_t got = store_view_read(view, &iov, 1, at, false);

		if (got <= 0)
			result = got ? (int)got : -EIO;
		else
			result = store_run_put(run, buffer, (uint64_t)got);
		at += got > 0 ? (uint64_t)got : 0;
	}
	free(buffer);
	return result;
}

/* -- ending -- */

int store_run_finish(struct store_run *run, struct store_content *patch)
{
	if (run->filled && !run->error)
		run->error = write_run_parts(run, &(struct iovec){run->buffer, run->filled}, 1,
					     run->filled);
	return_gather_buffer(run);
	memset(patch, 0, sizeof(*patch));
	if (run->error || run->at == run->start)
		return run->error;
	data_dirty(run->data, run->object, run->at);
	run->error = store_run_check(run);
	if (run->error)
		return run->error;
	patch->extent = malloc(sizeof(*patch->extent));
	if (!patch->extent)
		return run->error = -ENOMEM;
	patch->extent[0] = (struct store_extent){run->start, run->at, run->object->number};
	patch->count = 1;
	patch->tail_object = run->object->number;
	patch->tail = run->at;
	return 0;
}

int store_run_sync(struct store_run *run)
{
	struct store_data *data = run->data;
	struct data_object *object = run->object;
	int rc = store_run_check(run);

	if (rc || run->at == run->start)
		return rc;
	rc = data_flush(data, object);
	pthread_mutex_lock(&data->lock);
	if (rc) {
		if (!run->alone)
			data->unreported = rc;
	} else if (!atomic_load(&object->failed) && !object->closed && !object->flushed_closed) {
		/* No other run has it: nothing was added meanwhile. */
		object->unflushed = false;
		atomic_store(&object->safe, run->at);
	}
	pthread_mutex_unlock(&data->lock);
	return rc ? rc : store_run_check(run);
}

int store_run_check(const struct store_run *run)
{
	return data_lost(run->object, run->at);
}

/*
 * So many files wait to be flushed that they would take a lot of memory. The error is for the next
 * one who asks.
 */
static void limit_dirty_objects(struct store_data *data)
{
	bool many;

	pthread_mutex_lock(&data->lock);
	many = data->dirty_count / STORE_WAITING >= data->files;
	pthread_mutex_unlock(&data->lock);
	if (many)
		data_sync_unasked(data);
}

void store_run_end(struct store_run *run, bool kept)
{
	if (!run)
		return;

	struct store_data *data = run->data;
	struct data_object *object = run->object;
	bool empty = run->at == run->start;

	return_gather_buffer(run);
	if (!kept && !run->made && !empty)
		cut_object_tail(data, object, run->before);
	unclaim_object(data, object);
	/* An object that nothing refers to is of no use. */
	if (run->made && (!kept || empty))
		store_data_remove(data, &object->owner, object->number);
	data_release(data, object);
	free(run);
	limit_dirty_objects(data);
}
