/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of objects. A run gathers those of one writer into few large writes to one object, and computes their checksums; a view
 * reads those of one version of a content, and verifies each block.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_private.h"
#include "volume/store/disk/crc.h"

#define WRITE_PIECES 256	/* buffers of one write */
#define READ_PIECES  128	/* of one read */
#define READ_BYTES   (1u << 20) /* of one read */
#define CANDIDATES   16		/* objects that a run tries to go on in */
#define LOOKS	     256	/* blocks among which they are searched */
#define SEEN_BITS    4096

/* -- views -- */

/* Constant: any number of threads may read. */
struct store_view {
	struct store_data *data;
	struct store_owner owner;
	uint64_t length;
	struct store_content content;
	struct data_object *object;	  /* of the first block; NULL: holes only */
	struct store_view *older, *newer; /* data->lock */
};

static struct store_view **find_view_list(struct store_data *data, const struct store_owner *owner)
{
	return &data->views[owner->vnode % DATA_VIEWS];
}

static void link_view(struct store_view *view)
{
	struct store_view **list = find_view_list(view->data, &view->owner);

	pthread_mutex_lock(&view->data->lock);
	view->older = *list;
	if (view->older)
		view->older->newer = view;
	*list = view;
	pthread_mutex_unlock(&view->data->lock);
}

static void unlink_view(struct store_view *view)
{
	pthread_mutex_lock(&view->data->lock);
	if (view->older)
		view->older->newer = view->newer;
	*(view->newer ? &view->newer->older : find_view_list(view->data, &view->owner)) =
		view->older;
	pthread_mutex_unlock(&view->data->lock);
}

bool store_data_shown(struct store_data *data, const struct store_owner *owner, uint64_t object,
		      uint64_t first, uint32_t count)
{
	const struct store_view *view;

	pthread_mutex_lock(&data->lock);
	for (view = *find_view_list(data, owner); view; view = view->older)
		if (view->owner.vnode == owner->vnode && view->owner.group == owner->group &&
		    view->owner.unique == owner->unique &&
		    store_content_may_show(&view->content, object, first, count))
			break;
	pthread_mutex_unlock(&data->lock);
	return view != NULL;
}

void store_view_close(struct store_view *view)
{
	if (!view)
		return;
	unlink_view(view);
	if (view->object)
		data_read_end(view->data, view->object);
	free(view);
}

/* The object of the first block, or 0. */
static uint64_t find_first_object(const struct store_content *content)
{
	for (uint32_t at = 0; store_content_next(content, &at); at++) {
		const struct store_slot *slot = store_content_slot(content, at);

		for (uint32_t k = 0; k < slot->count; k++)
			if (slot->block[k].object)
				return slot->block[k].object;
	}
	return 0;
}

int store_view_open(struct store_data *data, const struct store_owner *owner,
		    const struct store_content *content, uint64_t length, struct store_view **out)
{
	struct store_view *view = calloc(1, sizeof(*view));
	uint64_t object = find_first_object(content);
	int rc;

	if (!view)
		return -ENOMEM;
	view->data = data;
	view->owner = *owner;
	view->length = length;
	view->content = *content;
	link_view(view);
	rc = object ? data_read(data, owner, object, false, &view->object) : 0;
	if (rc) {
		view->object = NULL;
		store_view_close(view);
		return rc;
	}
	*out = view;
	return 0;
}

static int get_view_object(const struct store_view *view, uint64_t number, bool cached,
			   struct data_object **object)
{
	if (view->object->number == number) {
		*object = view->object;
		return 0;
	}
	return data_read(view->data, &view->owner, number, cached, object);
}

static void release_view_object(const struct store_view *view, struct data_object *object)
{
	if (object != view->object)
		data_read_end(view->data, object);
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

static uint32_t sum_parts(uint32_t crc, const struct store_cursor *at, size_t bytes)
{
	struct iovec part[READ_PIECES];

	for (struct store_cursor from = *at; bytes;) {
		size_t done;
		int parts = slice_output(&from, bytes, part, &done);

		for (int i = 0; i < parts; i++)
			crc = store_crc(crc, part[i].iov_base, part[i].iov_len);
		store_cursor_skip(&from, done);
		bytes -= done;
	}
	return crc;
}

static void clear_parts(const struct store_cursor *at, size_t bytes)
{
	struct iovec part[READ_PIECES];

	for (struct store_cursor from = *at; bytes;) {
		size_t done;
		int parts = slice_output(&from, bytes, part, &done);

		for (int i = 0; i < parts; i++)
			if (part[i].iov_len)
				memset(part[i].iov_base, 0, part[i].iov_len);
		store_cursor_skip(&from, done);
		bytes -= done;
	}
}

/* A block as a version shows it, with offsets in the content. */
struct shown_block {
	uint64_t number;
	uint64_t start, filled, summed;
	uint32_t crc;
};

/* The offset is in no hole. */
static struct shown_block find_shown_block(const struct store_view *view, uint64_t offset)
{
	uint64_t number = offset / STORE_BLOCK, start = number * STORE_BLOCK;
	const struct store_block *block = store_content_block(&view->content, number);

	assert(block);
	return (struct shown_block){number, start, start + block->filled, start + block->summed,
				    block->crc};
}

static bool is_block_verified(struct store_data *data, const struct data_object *object,
			      const struct shown_block *block)
{
	return data_is_verified(data, object, block->number, block->crc);
}

/* -- reading -- */

/* As preadv(), but what is behind the end of the object are zeros: the checksum knows whether they are right. */
static ssize_t read_object_bytes(const struct store_view *view, const struct data_object *object,
				 const struct iovec *part, int parts, uint64_t offset, bool cached)
{
	struct store_cursor at = {.iov = part, .count = parts};
	size_t bytes = (size_t)sum_output_lengths(part, parts);
	ssize_t n;

	if (data_lost(object, offset + bytes))
		return -EIO;
	n = view->data->layer->ops->preadv(object->file, part, parts, offset, cached);
	if (n < 0 || cached || (size_t)n == bytes)
		return n;
	store_cursor_skip(&at, (size_t)n);
	clear_parts(&at, bytes - (size_t)n);
	return (ssize_t)bytes;
}

/* Bytes to be read: those that the caller wants, and the rest of their block if it has no mark. */
struct plan {
	size_t front, want, back;
	uint8_t *rest; /* front + back bytes; NULL: none */
	struct iovec part[READ_PIECES + 2];
	int parts;
};

/* The first block as a whole, and of those behind it as much as needs no more than what is wanted. */
static void choose_blocks(const struct store_view *view, const struct data_object *object,
			  uint64_t offset, size_t want, struct plan *plan)
{
	struct shown_block first = find_shown_block(view, offset);
	struct shown_block last = find_shown_block(view, offset + want - 1);
	bool marked = is_block_verified(view->data, object, &first);

	plan->front = marked ? 0 : (size_t)(offset - first.start);
	plan->back = 0;
	if (last.number > first.number && offset + want < last.summed &&
	    !is_block_verified(view->data, object, &last))
		want = (size_t)(last.start - offset);
	else if (last.number == first.number && !marked)
		plan->back = (size_t)(last.summed - offset - want);
	plan->want = want;
}

static int plan_read(const struct store_view *view, const struct data_object *object,
		     const struct store_cursor *output, uint64_t offset, size_t want,
		     struct plan *plan)
{
	size_t bytes;

	choose_blocks(view, object, offset, want, plan);
	plan->rest = NULL;
	if (plan->front + plan->back) {
		plan->rest = malloc(plan->front + plan->back);
		if (!plan->rest)
			return -ENOMEM;
	}
	plan->parts = 0;
	if (plan->front)
		plan->part[plan->parts++] = (struct iovec){plan->rest, plan->front};
	plan->parts += slice_output(output, plan->want, plan->part + plan->parts, &bytes);
	assert(bytes == plan->want);
	if (plan->back)
		plan->part[plan->parts++] = (struct iovec){plan->rest + plan->front, plan->back};
	return 0;
}

/* Verify the blocks of bytes that were read: how many bytes are good, or -EBADMSG. */
static ssize_t verify_bytes(const struct store_view *view, const struct data_object *object,
			    const struct iovec *part, int parts, uint64_t offset, size_t bytes)
{
	struct store_cursor at = {.iov = part, .count = parts};
	uint64_t end = offset + bytes;

	for (uint64_t from = offset, to; from < end; from = to) {
		struct shown_block block = find_shown_block(view, from);

		to = block.summed < end ? block.summed : end;
		if (!is_block_verified(view->data, object, &block)) {
			if (from > block.start || to < block.summed)
				return (ssize_t)(from - offset);
			if (sum_parts(0, &at, (size_t)(to - from)) != block.crc)
				return from > offset ? (ssize_t)(from - offset) : -EBADMSG;
			data_note_verified(view->data, object, block.number, block.crc);
		}
		store_cursor_skip(&at, (size_t)(to - from));
	}
	return (ssize_t)bytes;
}

/* 0: nothing that is wanted can be verified. */
static ssize_t carry_plan_out(const struct store_view *view, const struct data_object *object,
			      const struct plan *plan, uint64_t offset, bool cached)
{
	uint64_t begin = offset - plan->front;
	size_t good;
	ssize_t n = read_object_bytes(view, object, plan->part, plan->parts, begin, cached);

	if (n > 0)
		n = verify_bytes(view, object, plan->part, plan->parts, begin, (size_t)n);
	if (n < 0)
		return n;
	good = (size_t)n > plan->front ? (size_t)n - plan->front : 0;
	return (ssize_t)(good < plan->want ? good : plan->want);
}

static ssize_t read_verified_bytes(const struct store_view *view, const struct data_object *object,
				   const struct store_cursor *output, size_t want, uint64_t offset,
				   bool cached)
{
	struct plan plan;
	ssize_t n;

	/* Again if marks of other blocks have replaced that of a block of which a part was read. */
	do {
		n = plan_read(view, object, output, offset, want, &plan);
		if (n)
			return n;
		n = carry_plan_out(view, object, &plan, offset, cached);
		free(plan.rest);
	} while (!n && !cached);
	return n ? n : -EAGAIN;
}

/* How many bytes from `offset` on lie in one object; or in holes: *object is 0. */
static uint64_t measure_stored_bytes(const struct store_view *view, uint64_t offset, uint64_t want,
				     uint64_t *object)
{
	const struct store_block *block = store_content_block(&view->content, offset / STORE_BLOCK);
	uint64_t within = offset % STORE_BLOCK, end = offset - within + STORE_BLOCK;

	*object = 0;
	if (!block || within >= block->filled)
		return want < end - offset ? want : end - offset;
	*object = block->object;
	if (want > READ_BYTES)
		want = READ_BYTES;
	while (block->filled == STORE_BLOCK && end < offset + want) {
		const struct store_block *next =
			store_content_block(&view->content, end / STORE_BLOCK);

		if (!next || next->object != block->object)
			break;
		block = next;
		end += STORE_BLOCK;
	}
	end = end - STORE_BLOCK + block->filled;
	return want < end - offset ? want : end - offset;
}

static ssize_t read_next_bytes(const struct store_view *view, const struct store_cursor *output,
			       uint64_t want, uint64_t offset, bool cached)
{
	struct data_object *object;
	struct iovec part[READ_PIECES];
	uint64_t number;
	size_t bytes;
	ssize_t n;

	want = measure_stored_bytes(view, offset, want, &number);
	slice_output(output, want, part, &bytes);
	if (!number) {
		if (store_content_damaged(&view->content, offset / STORE_BLOCK))
			return -EBADMSG;
		clear_parts(output, bytes);
		return (ssize_t)bytes;
	}
	n = get_view_object(view, number, cached, &object);
	if (n)
		return n;
	n = read_verified_bytes(view, object, output, bytes, offset, cached);
	release_view_object(view, object);
	return n;
}

ssize_t store_view_read(struct store_view *view, const struct iovec *iov, int count,
			uint64_t offset, bool cached)
{
	struct store_cursor output = {.iov = iov, .count = count};
	uint64_t want = sum_output_lengths(iov, count), done = 0;

	if (offset >= view->length)
		return 0;
	if (want > view->length - offset)
		want = view->length - offset;
	store_cursor_skip(&output, 0);
	while (done < want) {
		ssize_t n = read_next_bytes(view, &output, want - done, offset + done, cached);

		/* The caller comes again for the rest, and is told then. */
		if (n < 0 && done && (n == -EAGAIN || n == -EBADMSG))
			break;
		if (n < 0)
			return n;
		done += (uint64_t)n;
		store_cursor_skip(&output, (size_t)n);
	}
	return (ssize_t)done;
}

void store_view_ahead(struct store_view *view, uint64_t offset, uint64_t length)
{
	const struct store_layer_ops *ops = view->data->layer->ops;
	uint64_t end = length < view->length ? offset + length : view->length;
	uint64_t bytes, number;

	if (offset >= view->length)
		return;
	if (end > view->length)
		end = view->length;
	for (; offset < end; offset += bytes) {
		struct data_object *object;

		bytes = measure_stored_bytes(view, offset, end - offset, &number);
		if (!number || get_view_object(view, number, false, &object))
			continue;
		ops->will_need(object->file, offset, bytes);
		release_view_object(view, object);
	}
}

/* The blocks that were read: how many bytes are good; 0: the first one is not. */
static uint64_t count_sound_bytes(const struct store_view *view, uint64_t offset,
				  const uint8_t *bytes, uint64_t length)
{
	uint64_t end = offset + length, at = offset;

	while (at < end) {
		struct shown_block block = find_shown_block(view, at);
		uint64_t summed = block.summed - at;

		if (summed > end - at || store_crc(0, bytes + (at - offset), summed) != block.crc)
			break;
		at = block.start + STORE_BLOCK < end ? block.start + STORE_BLOCK : end;
	}
	return at - offset;
}

/* Whole blocks, with what a cut has left behind the last byte. */
static int verify_stored_bytes(const struct store_view *view, struct data_object *object,
			       uint64_t *offset, uint64_t end, void *buffer)
{
	struct shown_block last = find_shown_block(view, end - 1);
	struct iovec iov = {buffer, (size_t)((end < last.filled ? end : last.summed) - *offset)};
	ssize_t n = read_object_bytes(view, object, &iov, 1, *offset, false);
	uint64_t good;

	if (n < 0)
		return (int)n;
	good = count_sound_bytes(view, *offset, buffer, iov.iov_len);
	if (!good)
		return -EBADMSG;
	*offset += good < end - *offset ? good : end - *offset;
	return 0;
}

int store_view_verify(struct store_view *view, uint64_t *offset, void *buffer, size_t size)
{
	uint64_t number, bytes = measure_stored_bytes(view, *offset, size, &number);
	struct data_object *object;
	int rc;

	assert(*offset % STORE_BLOCK == 0 && size >= STORE_BLOCK && size % STORE_BLOCK == 0);
	if (!number) {
		if (store_content_damaged(&view->content, *offset / STORE_BLOCK))
			return -EBADMSG;
		*offset = store_content_next_block(&view->content, *offset / STORE_BLOCK) *
			  STORE_BLOCK;
		return 0;
	}
	rc = get_view_object(view, number, false, &object);
	if (rc)
		return rc;
	rc = verify_stored_bytes(view, object, offset, *offset + bytes, buffer);
	release_view_object(view, object);
	*offset = rc ? *offset : (*offset + STORE_BLOCK - 1) / STORE_BLOCK * STORE_BLOCK;
	return rc;
}

/* -- runs -- */

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
	bool wrote;	 /* so were bytes behind it, if a write has failed */
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

static int append_to_run(struct store_run *run, const struct iovec *iov, int count)
{
	struct store_cursor input = {.iov = iov, .count = count};

	for (int i = 0; i < count && !run->error; i++)
		run->error = sum_run_bytes(run, iov[i].iov_base, iov[i].iov_len);
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
