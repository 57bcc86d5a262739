/* SPDX-License-Identifier: BSD-2-Clause */
/* Readers: one version of a content, with the files that it refers to. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_private.h"

#define PIECES 128 /* buffers of one read */

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

/* -- buffers -- */

struct output {
	const struct iovec *iov;
	int count;
	size_t skip; /* bytes of iov[0] that are done */
};

static void skip_view_output(struct output *output, size_t bytes)
{
	bytes += output->skip;
	while (output->count && bytes >= output->iov->iov_len) {
		bytes -= output->iov->iov_len;
		output->iov++;
		output->count--;
	}
	assert(output->count || !bytes);
	output->skip = bytes;
}

/* Buffers for at most `want` bytes. *bytes: how many they are, at least one. */
static int slice_output(const struct output *output, uint64_t want, struct iovec part[PIECES],
			size_t *bytes)
{
	int parts = 0;

	*bytes = 0;
	for (int i = 0; i < output->count && parts < PIECES && *bytes < want; i++) {
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

/* -- reading -- */

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
			       const struct output *output, uint64_t want, uint64_t offset,
			       bool cached)
{
	const struct store_extent *extent = at < view->count ? &view->extent[at] : NULL;
	struct iovec part[PIECES];
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
	struct output output = {.iov = iov, .count = count};
	uint64_t want = sum_output_lengths(iov, count), done = 0;
	uint32_t at = find_view_extent(view, offset);

	if (offset >= view->length)
		return 0;
	/* To open an object may need the disk. */
	if (cached && view->objects < view->count)
		return -EAGAIN;
	if (want > view->length - offset)
		want = view->length - offset;
	skip_view_output(&output, 0);
	while (done < want) {
		ssize_t n = read_next_bytes(view, at, &output, want - done, offset + done, cached);

		if (n == -EAGAIN && done)
			break;
		if (n < 0)
			return n;
		done += (uint64_t)n;
		skip_view_output(&output, (size_t)n);
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
