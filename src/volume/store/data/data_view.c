/* SPDX-License-Identifier: BSD-2-Clause */
/* Views: each reads the bytes of one version of a content, and verifies each block. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_private.h"
#include "volume/store/disk/crc.h"

#define READ_PIECES 128	       /* of one read */
#define READ_BYTES  (16 * STORE_BLOCK) /* of one object, at a time */

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
static int slice_output(const struct store_cursor *output, uint64_t want,
			struct iovec part[READ_PIECES], size_t *bytes)
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

/* -- reading -- */

/* As preadv(), but what is behind the end of the object are zeros: the checksum knows whether they are right. */
static ssize_t read_object_bytes(const struct store_view *view, const struct data_object *object,
				 const struct iovec *part, int parts, size_t bytes, uint64_t offset,
				 bool cached)
{
	struct store_cursor at = {.iov = part, .count = parts};
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

/* Bytes of one object to be read: those that the caller wants, and the rest of blocks without marks. */
struct plan {
	size_t front, want, back;
	uint32_t unmarked; /* a bit for each block */
	uint8_t *rest;	   /* front + back bytes; NULL: none */
	const struct iovec *iov;
	int count;
	struct iovec part[READ_PIECES + 2];
};

/*
 * Blocks without marks are read as a whole. What a run of packets takes ends within a block, whose rest is read for its
 * checksum only: to end where a block does would need more runs, which cost more than the bytes that are read again.
 */
static void choose_blocks(const struct store_view *view, const struct data_object *object,
			  uint64_t offset, struct plan *plan)
{
	uint64_t end = offset + plan->want, first = offset / STORE_BLOCK;
	struct shown_block block;

	plan->front = plan->back = 0;
	plan->unmarked = 0;
	for (uint64_t at = offset; at < end; at = block.start + STORE_BLOCK) {
		block = find_shown_block(view, at);
		if (data_is_verified(view->data, object, block.number, block.crc))
			continue;
		assert(block.number - first < 32);
		plan->unmarked |= 1u << (block.number - first);
		if (block.start < offset)
			plan->front = (size_t)(offset - block.start);
		if (block.summed > end)
			plan->back = (size_t)(block.summed - end);
	}
}

/* `all`: the bytes of the buffers. */
static int plan_read(const struct store_view *view, const struct data_object *object,
		     const struct store_cursor *output, uint64_t all, uint64_t offset, size_t want,
		     struct plan *plan)
{
	struct iovec *part = plan->part;

	plan->want = want;
	plan->rest = NULL;
	plan->iov = output->iov;
	plan->count = output->count;
	if (want < all || output->skip || output->count > READ_PIECES) {
		plan->iov = part;
		plan->count = slice_output(output, want, part, &plan->want);
	}
	choose_blocks(view, object, offset, plan);
	if (!plan->front && !plan->back)
		return 0;
	plan->rest = malloc(plan->front + plan->back);
	if (!plan->rest)
		return -ENOMEM;
	plan->iov = part;
	if (plan->front)
		*part++ = (struct iovec){plan->rest, plan->front};
	part += slice_output(output, plan->want, part, &plan->want);
	if (plan->back)
		*part++ = (struct iovec){plan->rest + plan->front, plan->back};
	plan->count = (int)(part - plan->part);
	return 0;
}

/* How many of `bytes` that were read from `offset` on are good, or -EBADMSG. */
static ssize_t verify_bytes(const struct store_view *view, const struct data_object *object,
			    const struct plan *plan, uint64_t offset, size_t bytes)
{
	struct store_cursor at = {.iov = plan->iov, .count = plan->count};
	uint64_t first = offset / STORE_BLOCK, end = offset + bytes;
	struct shown_block block;

	for (uint64_t from = offset, to; from < end; from = to) {
		block = find_shown_block(view, from);
		to = block.summed < end ? block.summed : end;
		if (plan->unmarked >> (block.number - first) & 1) {
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

/* 0: the cache has nothing that is wanted and can be verified. */
static ssize_t carry_plan_out(const struct store_view *view, const struct data_object *object,
			      const struct plan *plan, uint64_t offset, bool cached)
{
	uint64_t begin = offset - plan->front;
	size_t bytes = plan->front + plan->want + plan->back, good;
	ssize_t n = read_object_bytes(view, object, plan->iov, plan->count, bytes, begin, cached);

	if (n > 0 && plan->unmarked)
		n = verify_bytes(view, object, plan, begin, (size_t)n);
	if (n < 0)
		return n;
	good = (size_t)n > plan->front ? (size_t)n - plan->front : 0;
	return (ssize_t)(good < plan->want ? good : plan->want);
}

static ssize_t read_verified_bytes(const struct store_view *view, const struct data_object *object,
				   const struct store_cursor *output, uint64_t all, uint64_t offset,
				   size_t want, bool cached)
{
	struct plan plan;
	ssize_t n = plan_read(view, object, output, all, offset, want, &plan);

	if (n)
		return n;
	n = carry_plan_out(view, object, &plan, offset, cached);
	free(plan.rest);
	assert(n || cached);
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

/* `all`: the bytes of the buffers; of these, those that lie together are read. */
static ssize_t read_next_bytes(const struct store_view *view, const struct store_cursor *output,
			       uint64_t all, uint64_t want, uint64_t offset, bool cached)
{
	struct data_object *object;
	uint64_t number;
	ssize_t n;

	want = measure_stored_bytes(view, offset, want, &number);
	if (!number) {
		if (store_content_damaged(&view->content, offset / STORE_BLOCK))
			return -EBADMSG;
		clear_parts(output, want);
		return (ssize_t)want;
	}
	n = get_view_object(view, number, cached, &object);
	if (n)
		return n;
	n = read_verified_bytes(view, object, output, all, offset, (size_t)want, cached);
	release_view_object(view, object);
	return n;
}

ssize_t store_view_read(struct store_view *view, const struct iovec *iov, int count,
			uint64_t offset, bool cached)
{
	struct store_cursor output = {.iov = iov, .count = count};
	uint64_t all = sum_output_lengths(iov, count), want = all, done = 0;

	if (offset >= view->length)
		return 0;
	if (want > view->length - offset)
		want = view->length - offset;
	store_cursor_skip(&output, 0);
	while (done < want) {
		ssize_t n = read_next_bytes(view, &output, all - done, want - done, offset + done,
					    cached);

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
	ssize_t n = read_object_bytes(view, object, &iov, 1, iov.iov_len, *offset, false);
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
