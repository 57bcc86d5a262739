/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs of bytes that wait for the commit of their writer. */
#include "volume/store/txn/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define COPY_BYTES (1u << 20)

/* The number for a new object of the piece. */
struct numbering {
	struct core *core;
	struct piece *piece;
};

static uint64_t take_object_number(void *arg)
{
	struct numbering *numbering = arg;

	numbering->piece->made = ++numbering->core->numbers;
	return numbering->piece->made;
}

int writer_run(struct store_writer *writer, struct piece *piece,
	       const struct store_content *content, uint64_t offset)
{
	struct numbering numbering = {.core = writer->core, .piece = piece};

	assert(!piece->run);
	return store_run_begin(writer->core->data, &writer->owner, content, offset,
			       take_object_number, &numbering, &piece->run);
}

int writer_put(struct store_run *run, const void *bytes, uint64_t length)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};

	return length ? store_run_write(run, &iov, 1) : 0;
}

int writer_finish(struct store_writer *writer, struct piece *piece)
{
	int result = store_run_finish(piece->run, &piece->patch);

	assert(piece->run);
	/* Here, beside other writers, rather than in the transaction, for which all wait. */
	if (!result && writer->core->durability == STORE_STRICT)
		result = store_run_sync(piece->run);
	return result;
}

int writer_copy(struct store_view *view, const struct store_extent *extent, struct store_run *run)
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
			result = writer_put(run, buffer, (uint64_t)got);
		at += got > 0 ? (uint64_t)got : 0;
	}
	free(buffer);
	return result;
}

void piece_end(struct piece *piece, bool kept)
{
	store_content_free(&piece->patch);
	store_run_end(piece->run, kept);
	*piece = (struct piece){0};
}
