/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of objects. A run gathers those of one writer into few large writes to one object, and computes their checksums. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_private.h"
#include "volume/store/disk/crc.h"

#define WRITE_PIECES 256	/* buffers of one write */
#define CANDIDATES   16		/* objects that a run tries to go on in */
#define LOOKS	     256	/* blocks among which they are searched */
#define SEEN_BITS    4096

/* A block of the base: what a run has copied from it, or goes on from. */
struct kept_block {
	uint64_t object; /* 0: a hole; a small file: its number */
	uint32_t filled, summed;
};

/* One thread at a time. */
struct store_run {
	struct store_data *data;
	struct data_object *object;
	struct store_owner owner;
	uint64_t made;	 /* the number of the object, if it was made for this run; else 0 */
	bool alone;	 /* all that was in the object before is flushed, or is being flushed */
	bool grows;	 /* the first block goes on in its object */
	uint64_t before; /* length of the object when the run began */
	uint64_t start;	 /* the first byte of the run */
	uint64_t offset, end; /* the bytes that it was given */
	uint64_t at;	 /* what lies before it was handed to the layer */
	bool wrote; /* so were bytes behind it, if a write has failed; or space was taken there */
	uint64_t allocated; /* the end of what has space */
	size_t gather;	 /* bytes of a write, if the buffers allow it */
	uint8_t *buffer; /* bytes from `at` on; NULL: none yet */
	size_t filled;
	int error; /* the first one */
	struct kept_block head, tail;
	uint64_t copied;
	uint64_t summed; /* what lies before it is in the checksums */
	struct store_patch patch;
	uint32_t room; /* blocks */
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

/* -- checksums of a run -- */

static uint32_t sum_zeros(uint32_t crc, size_t bytes)
{
	static const uint8_t zeros[4096];

	for (size_t part; bytes; bytes -= part) {
		part = bytes < sizeof(zeros) ? bytes : sizeof(zeros);
		crc = store_crc(crc, zeros, part);
	}
	return crc;
}

static struct store_block *get_run_block(struct store_run *run, uint64_t index)
{
	struct store_patch *patch = &run->patch;

	assert(index <= patch->count);
	if (index == run->room) {
		uint32_t room = run->room ? 2 * run->room : 2;
		struct store_block *more = realloc(patch->block, room * sizeof(*more));

		if (!more)
			return NULL;
		patch->block = more;
		run->room = room;
	}
	if (index == patch->count)
		patch->block[patch->count++] = (struct store_block){.object = run->object->number};
	return &patch->block[index];
}

/* Go on with bytes, or with zeros if `bytes` is NULL. */
static int sum_run_bytes(struct store_run *run, const uint8_t *bytes, size_t length)
{
	while (length) {
		uint32_t within = (uint32_t)(run->summed % STORE_BLOCK);
		struct store_block *block =
			get_run_block(run, run->summed / STORE_BLOCK - run->patch.first);
		size_t part = STORE_BLOCK - within;

		if (!block)
			return -ENOMEM;
		if (part > length)
			part = length;
		block->crc =
			bytes ? store_crc(block->crc, bytes, part) : sum_zeros(block->crc, part);
		block->filled = block->summed = within + (uint32_t)part;
		run->summed += part;
		bytes += bytes ? part : 0;
		length -= part;
	}
	return 0;
}

/* -- beginning a run: the object -- */

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
	data_renew_marks(data, object);
	pthread_mutex_unlock(&data->lock);
}

/* An object that may take more bytes, and what its length is to be. */
struct candidate {
	uint64_t object, least, most;
};

static bool begin_in_object(struct store_run *run, const struct candidate *candidate)
{
	struct store_data *data = run->data;
	uint64_t size;

	if (data_acquire(data, &run->owner, candidate->object, &run->object) < 0)
		return false;
	if (claim_object(data, run->object)) {
		if (data->layer->ops->size(run->object->file, &size) == 0 &&
		    size >= candidate->least && size <= candidate->most) {
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
 * The objects whose blocks are closest to `first`, but not behind it, the closest one first. So n blocks
 * that are written in any order need about 2 * sqrt(n) objects.
 */
static unsigned find_run_candidates(const struct store_base *base, uint64_t first,
				    struct candidate candidate[CANDIDATES])
{
	struct seen seen = {{0}};
	uint64_t blocks = (base->kept + STORE_BLOCK - 1) / STORE_BLOCK, bit, *word;
	unsigned count = 0;

	if (base->small)
		return 0;
	for (uint64_t i = first; i < blocks && i < first + LOOKS; i++) {
		const struct store_block *block = store_content_block(base->content, i);

		word = locate_seen_word(&seen, block ? block->object : 0, &bit);
		*word |= block ? bit : 0;
	}
	for (uint64_t i = first < blocks ? first : blocks, looks = 0;
	     i && count < CANDIDATES && looks < LOOKS; i--, looks++) {
		const struct store_block *block = store_content_block(base->content, i - 1);

		if (!block)
			continue;
		word = locate_seen_word(&seen, block->object, &bit);
		if (!(*word & bit))
			candidate[count++] = (struct candidate){
				block->object, (i - 1) * STORE_BLOCK + block->summed,
				first * STORE_BLOCK};
		*word |= bit;
	}
	return count;
}

static bool begin_in_candidate(struct store_run *run, const struct store_base *base)
{
	struct candidate candidate[CANDIDATES];
	unsigned count = find_run_candidates(base, run->patch.first, candidate);

	for (unsigned i = 0; i < count; i++)
		if (begin_in_object(run, &candidate[i]))
			return true;
	return false;
}

static struct kept_block find_kept_block(const struct store_base *base, uint64_t index)
{
	uint64_t start = index * STORE_BLOCK;
	const struct store_block *block;
	struct kept_block kept = {0};

	if (base->kept <= start)
		return kept;
	if (base->small) {
		kept.object = base->small;
		kept.filled = base->kept - start < STORE_BLOCK ? (uint32_t)(base->kept - start)
							       : STORE_BLOCK;
		kept.summed = kept.filled;
		return kept;
	}
	block = store_content_block(base->content, index);
	if (!block)
		return kept;
	kept = (struct kept_block){block->object, block->filled, block->summed};
	if (kept.filled > base->kept - start)
		kept.filled = (uint32_t)(base->kept - start);
	return kept;
}

/* Go on behind the last byte of a block, in its object. */
static bool begin_in_block(struct store_run *run, const struct store_base *base)
{
	uint64_t start = run->patch.first * STORE_BLOCK, end = start + run->head.filled;
	struct candidate candidate = {run->head.object, end, end};

	if (base->small || !run->head.object || run->head.filled != run->head.summed ||
	    end > run->offset || run->offset == start || !begin_in_object(run, &candidate))
		return false;
	run->grows = true;
	run->start = run->at = run->offset;
	return true;
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

/* -- copying what a run does not replace -- */

static int append_to_run(struct store_run *run, const struct iovec *iov, int count);

static int append_bytes(struct store_run *run, const void *bytes, size_t length)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};

	return length ? append_to_run(run, &iov, 1) : 0;
}

/* At most a block. */
static int copy_base_bytes(struct store_run *run, const struct store_base *base, uint64_t from,
			   uint64_t to)
{
	struct iovec iov = {.iov_len = (size_t)(to - from)};
	struct store_view *view;
	ssize_t got = 0;
	int rc;

	assert(from < to && to - from <= STORE_BLOCK);
	run->copied += to - from;
	if (base->small)
		return append_bytes(run, (const uint8_t *)base->bytes + from, iov.iov_len);
	iov.iov_base = malloc(iov.iov_len);
	if (!iov.iov_base)
		return -ENOMEM;
	rc = store_view_open(run->data, &run->owner, base->content, base->kept, &view);
	if (!rc) {
		got = store_view_read(view, &iov, 1, from, false);
		/* What was read in front of a damaged block is of no use. */
		rc = got < 0 ? (int)got : (size_t)got < iov.iov_len ? -EBADMSG : 0;
		store_view_close(view);
	}
	if (!rc)
		rc = append_bytes(run, iov.iov_base, iov.iov_len);
	free(iov.iov_base);
	return rc;
}

/* Zeros up to `offset`. At the beginning of the run, or behind the object, they need no space. */
static int append_zeros(struct store_run *run, uint64_t offset)
{
	static const uint8_t zeros[4096];
	int rc = 0;

	if (run->at == run->start && !run->filled) {
		rc = sum_run_bytes(run, NULL, (size_t)(offset - run->summed));
		run->start = run->at = offset;
	}
	while (!rc && run->summed < offset)
		rc = append_bytes(run, zeros,
				  offset - run->summed < sizeof(zeros)
					  ? (size_t)(offset - run->summed)
					  : sizeof(zeros));
	return rc;
}

/* The bytes of the block in front of the first one. */
static int begin_first_block(struct store_run *run, const struct store_base *base)
{
	uint64_t start = run->patch.first * STORE_BLOCK, kept = start + run->head.filled;
	int rc = 0;

	run->summed = start;
	if (run->grows) {
		struct store_block *block = get_run_block(run, 0);

		if (!block)
			return -ENOMEM;
		*block = *store_content_block(base->content, run->patch.first);
		run->summed = kept;
	} else if (kept > start && run->offset > start) {
		rc = copy_base_bytes(run, base, start, kept < run->offset ? kept : run->offset);
	}
	return rc ? rc : append_zeros(run, run->offset);
}

static int find_run_object(struct store_run *run, const struct store_base *base,
			   uint64_t (*number)(void *arg), void *arg)
{
	struct store_data *data = run->data;

	if (begin_in_block(run, base) || begin_in_candidate(run, base)) {
		note_safe_bytes(run);
		pthread_mutex_lock(&data->lock);
		run->alone = !run->object->unflushed;
		pthread_mutex_unlock(&data->lock);
		return 0;
	}
	run->alone = true;
	run->made = number(arg);
	return run->made ? data_create(data, &run->owner, run->made, &run->object) : -EIO;
}

int store_run_begin(struct store_data *data, const struct store_owner *owner,
		    const struct store_base *base, uint64_t offset, uint64_t (*number)(void *arg),
		    void *arg, struct store_run **out)
{
	struct store_run *run = calloc(1, sizeof(*run));
	int rc;

	if (!run)
		return -ENOMEM;
	run->data = data;
	run->owner = *owner;
	run->gather = DATA_GATHER;
	run->patch.first = offset / STORE_BLOCK;
	run->offset = offset;
	run->start = run->at = run->patch.first * STORE_BLOCK;
	run->head = find_kept_block(base, run->patch.first);
	rc = find_run_object(run, base, number, arg);
	if (rc) {
		free(run);
		return rc;
	}
	rc = begin_first_block(run, base);
	if (rc) {
		store_run_end(run, false);
		return rc;
	}
	*out = run;
	return 0;
}

uint64_t store_run_made(const struct store_run *run)
{
	return run->made;
}

uint64_t store_run_object(const struct store_run *run)
{
	return run->object->number;
}

uint64_t store_run_copied(const struct store_run *run)
{
	return run->copied;
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
	ssize_t n;

	run->wrote = true;
	n = run->data->layer->ops->pwritev(run->object->file, part, parts, run->at);
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
	int used = 0, rc = 0;

	while (used < parts && sum < total)
		sum += part[used++].iov_len;
	assert(used > 0);
	part[used - 1].iov_len -= sum - total;
	for (int i = run->filled ? 1 : 0; i < used && !rc; i++)
		rc = sum_run_bytes(run, part[i].iov_base, part[i].iov_len);
	store_cursor_skip(input, bytes);
	return rc ? rc : write_run_parts(run, part, used, total);
}

/* Each buffer is summed and copied while it is in the processor's cache. */
static int gather_input(struct store_run *run, struct store_cursor *input, const struct iovec *part,
			int parts, size_t bytes)
{
	assert(run->filled + bytes <= run->gather + DATA_ALIGN);
	for (int i = run->filled ? 1 : 0; i < parts; i++) {
		int rc = sum_run_bytes(run, part[i].iov_base, part[i].iov_len);

		if (rc)
			return rc;
		if (part[i].iov_len)
			memcpy(run->buffer + run->filled, part[i].iov_base, part[i].iov_len);
		run->filled += part[i].iov_len;
	}
	store_cursor_skip(input, bytes);
	return 0;
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
	return gather_input(run, input, part, parts, bytes);
}

static int append_to_run(struct store_run *run, const struct iovec *iov, int count)
{
	struct store_cursor input = {.iov = iov, .count = count};

	store_cursor_skip(&input, 0);
	while (input.count && !run->error)
		run->error = write_run_step(run, &input);
	return run->error;
}

int store_run_write(struct store_run *run, const struct iovec *iov, int count)
{
	return append_to_run(run, iov, count);
}

int store_run_put(struct store_run *run, const void *bytes, uint64_t length)
{
	return append_bytes(run, bytes, (size_t)length);
}

bool store_run_allocate(struct store_run *run, uint64_t end)
{
	const struct store_layer_ops *ops = run->data->layer->ops;
	uint64_t from = run->allocated > run->at ? run->allocated : run->at;

	if (!ops->allocate || end < from + DATA_GATHER || run->error)
		return false;
	run->wrote = true;
	if (ops->allocate(run->object->file, from, end - from))
		return false;
	run->allocated = end;
	return true;
}

/* A block of a finished run as it was written: -EBADMSG. */
static int read_run_block(const struct store_run *run, uint32_t index, uint8_t *buffer)
{
	const struct store_block *block = &run->patch.block[index];
	struct iovec iov = {buffer, block->summed};
	uint64_t start = (run->patch.first + index) * STORE_BLOCK;
	ssize_t got;

	assert(index < run->patch.count && block->summed <= STORE_BLOCK);
	got = run->data->layer->ops->preadv(run->object->file, &iov, 1, start, false);
	if (got < 0)
		return (int)got;
	if ((size_t)got < iov.iov_len || store_crc(0, buffer, iov.iov_len) != block->crc)
		return -EBADMSG;
	return 0;
}

int store_run_copy(struct store_run *from, struct store_run *to)
{
	uint8_t *buffer = malloc(STORE_BLOCK);
	uint64_t at = from->offset, start, end;
	int rc = buffer ? 0 : -ENOMEM;

	for (uint32_t i = 0; at < from->end && !rc; i++, at = end) {
		start = (from->patch.first + i) * STORE_BLOCK;
		end = start + STORE_BLOCK < from->end ? start + STORE_BLOCK : from->end;
		rc = read_run_block(from, i, buffer);
		if (!rc)
			rc = store_run_put(to, buffer + (at - start), end - at);
	}
	free(buffer);
	return rc;
}

/* -- ending -- */

/* The bytes of the block behind the last one. */
static int copy_rest_of_block(struct store_run *run, const struct store_base *base)
{
	uint64_t index = run->end / STORE_BLOCK, kept;

	run->tail = find_kept_block(base, index);
	kept = index * STORE_BLOCK + run->tail.filled;
	if (run->end % STORE_BLOCK == 0 || kept <= run->end)
		return 0;
	return copy_base_bytes(run, base, run->end, kept);
}

int store_run_finish(struct store_run *run, const struct store_base *base,
		     struct store_patch *patch)
{
	int rc;

	run->end = run->summed;
	rc = run->error ? run->error : copy_rest_of_block(run, base);
	/* Also if the base is outdated: store_run_copy() needs them. */
	if (run->filled && !run->error)
		run->error = write_run_parts(run, &(struct iovec){run->buffer, run->filled}, 1,
					     run->filled);
	if (!run->error)
		run->error = rc;
	return_gather_buffer(run);
	memset(patch, 0, sizeof(*patch));
	if (run->error || run->at == run->start)
		return run->error;
	data_dirty(run->data, run->object, run->at);
	run->error = store_run_check(run);
	if (!run->error)
		*patch = run->patch;
	return run->error;
}

bool store_run_fits(const struct store_run *run, const struct store_base *base)
{
	struct kept_block head = find_kept_block(base, run->offset / STORE_BLOCK);
	struct kept_block tail = find_kept_block(base, run->end / STORE_BLOCK);

	if ((run->grows || run->offset % STORE_BLOCK) &&
	    (head.object != run->head.object || head.filled != run->head.filled))
		return false;
	return run->end % STORE_BLOCK == 0 ||
	       (tail.object == run->tail.object && tail.filled == run->tail.filled);
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
	if (!kept && !run->made && run->wrote)
		cut_object_tail(data, object, run->before);
	unclaim_object(data, object);
	/* An object that nothing refers to is of no use. */
	if (run->made && (!kept || empty))
		store_data_remove(data, &object->owner, object->number);
	data_release(data, object);
	free(run->patch.block);
	free(run);
	limit_dirty_objects(data);
}
