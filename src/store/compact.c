/* SPDX-License-Identifier: BSD-2-Clause */
/* A content with too many extents becomes one object. */
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>

#define COPY_BYTES (1u << 20)

/* Copy one extent to the object that the copy has so far; the bytes between two stay a hole. */
static int copy_extent(struct store_writer *writer, struct store_view *view,
		       const struct store_extent *extent, uint8_t *buffer)
{
	struct piece piece = {0};
	uint64_t at = extent->start;
	int result = writer_run(writer, &piece, &writer->compact, at);

	while (!result && at < extent->end) {
		uint64_t left = extent->end - at;
		struct iovec iov = {.iov_base = buffer,
				    .iov_len = left < COPY_BYTES ? left : COPY_BYTES};
		ssize_t got = store_view_read(view, &iov, 1, at, false);

		if (got <= 0)
			result = got ? (int)got : -EIO;
		else
			result = writer_put(piece.run, buffer, (uint64_t)got);
		at += got > 0 ? (uint64_t)got : 0;
	}
	if (!result)
		result = writer_finish(writer, &piece);
	if (piece.made)
		writer->compact_made = piece.made;
	if (!result && writer->compact_made && !writer->compact.tail_object)
		writer->compact.tail_object = writer->compact_made;
	writer->compact.tail = at;
	piece_end(&piece, !result);
	return result;
}

static int copy_all(struct store_writer *writer, const struct found *found, struct store_view *view)
{
	const struct store_content *content = &found->version->content;
	uint8_t *buffer = malloc(COPY_BYTES);
	int result = buffer ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < content->count && !result; i++)
		result = copy_extent(writer, view, &content->extent[i], buffer);
	free(buffer);
	if (result)
		return result;
	writer->compact.extent = malloc(sizeof(*writer->compact.extent));
	if (!writer->compact.extent)
		return -ENOMEM;
	writer->compact.count = 1;
	writer->compact.extent[0] =
		(struct store_extent){.start = content->extent[0].start,
				      .end = content->extent[content->count - 1].end,
				      .object = writer->compact_made};
	return 0;
}

void compact_drop(struct store_writer *writer)
{
	store_content_free(&writer->compact);
	if (writer->compact_made)
		store_data_remove_new(writer->core->data, writer->compact_made);
	writer->compact_of = writer->compact_made = 0;
}

int compact_content(struct store_writer *writer)
{
	struct store_view *view = NULL;
	struct found found;
	int result;

	compact_drop(writer);
	result = lookup(writer->core, &writer->fid, &found);
	if (result)
		return result;
	if (found.version->content.count > 1) {
		result = store_view_open(writer->core->data, &writer->owner,
					 &found.version->content, found.version->v.length, &view);
		if (!result) {
			writer->compact_of = found.version->v.version;
			result = copy_all(writer, &found, view);
			store_view_close(view);
		} else if (result == -ENOENT) {
			result = 0;
		}
	}
	lookup_end(&found);
	return result;
}
