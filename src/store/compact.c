/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A content with too many extents: the neighbours that are cheapest to copy become one object. So a
 * small write never waits for a copy of the whole file, however large that is.
 */
#include "store/writer.h"

#include <errno.h>

#define MERGED 3 /* extents that become one: more than a write adds */

/* Copy one extent to the object that the copy has so far; the bytes between two stay a hole. */
static int copy_extent(struct store_writer *writer, struct store_view *view,
		       const struct store_extent *extent)
{
	struct piece piece = {0};
	int result = writer_run(writer, &piece, &writer->compact, extent->start);

	if (!result)
		result = writer_copy(view, extent, piece.run);
	writer->core->bytes_copied += extent->end - extent->start;
	if (!result)
		result = writer_finish(writer, &piece);
	if (piece.made)
		writer->compact_made = piece.made;
	if (!result)
		writer->compact.tail_object = writer->compact_made;
	writer->compact.tail = extent->end;
	piece_end(&piece, !result);
	return result;
}

/* The first of the MERGED extents with the fewest bytes. */
static uint32_t cheapest(const struct store_content *content)
{
	uint64_t least = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t i = 0; i + MERGED <= content->count; i++) {
		uint64_t bytes = 0;

		for (uint32_t k = i; k < i + MERGED; k++)
			bytes += content->extent[k].end - content->extent[k].start;
		if (bytes < least) {
			least = bytes;
			best = i;
		}
	}
	return best;
}

/* writer->compact: the content with one extent, of the new object, in place of those of `window`. */
static int replace(struct store_writer *writer, const struct store_content *content,
		   const struct store_content *window)
{
	uint64_t end = window->extent[MERGED - 1].end;
	struct store_extent merged = {.start = window->extent[0].start,
				      .end = end,
				      .object = writer->compact_made};
	const struct store_content patch = {.extent = &merged, .count = 1};
	struct store_content result;
	int rc = store_content_copy(content, &result);

	if (!rc)
		rc = store_content_apply(&result, &patch, merged.start, end,
					 content->extent[content->count - 1].end);
	store_content_free(&writer->compact);
	if (rc)
		store_content_free(&result);
	else
		writer->compact = result;
	return rc;
}

static int copy_window(struct store_writer *writer, const struct found *found)
{
	const struct store_content *content = &found->version->content;
	struct store_content window = {.extent = content->extent + cheapest(content),
				       .count = MERGED};
	struct store_view *view;
	int result = store_view_open(writer->core->data, &writer->owner, &window,
				     found->version->v.length, &view);

	if (result)
		return result;
	for (uint32_t i = 0; i < window.count && !result; i++)
		result = copy_extent(writer, view, &window.extent[i]);
	store_view_close(view);
	return result ? result : replace(writer, content, &window);
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
	struct found found;
	int result;

	compact_drop(writer);
	result = lookup(writer->core, &writer->fid, &found);
	if (result)
		return result;
	if (found.version->content.count >= MERGED) {
		writer->compact_of = found.version->v.version;
		result = copy_window(writer, &found);
		/* Has another commit replaced this version? Then try again with the new one. */
		if (result == -ENOENT) {
			result = writer->missing_of == writer->compact_of ? -EIO : 0;
			writer->missing_of = writer->compact_of;
			writer->compact_of = 0;
		}
	}
	lookup_end(&found);
	return result;
}
