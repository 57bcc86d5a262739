/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A content with too many extents: the neighbours that are cheapest to copy become one extent. So a
 * small write never waits for a copy of the whole file, however large that is.
 */
#include "store/writer.h"

#include <errno.h>

#define MERGED 3 /* extents that become one: more than a write adds */

/* The first of the MERGED extents with the fewest bytes, holes included: those become zeros. */
static uint32_t cheapest(const struct store_content *content)
{
	uint64_t least = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t i = 0; i + MERGED <= content->count; i++) {
		uint64_t bytes = content->extent[i + MERGED - 1].end - content->extent[i].start;

		if (bytes < least) {
			least = bytes;
			best = i;
		}
	}
	return best;
}

/* writer->list: the content with the extent that was written in place of those that it covers. */
static int replace(struct store_writer *writer, const struct store_content *content)
{
	const struct store_extent *merged = writer->compact.patch.extent;
	const struct store_content patch = {.extent = writer->compact.patch.extent, .count = 1};
	int result = store_content_copy(content, &writer->list);

	if (result)
		return result;
	return store_content_apply(&writer->list, &patch, merged->start, merged->end,
				   content->extent[content->count - 1].end, UINT32_MAX);
}

static int copy_window(struct store_writer *writer, const struct found *found)
{
	const struct store_content *content = &found->version->content;
	struct store_content window = {.extent = content->extent + cheapest(content),
				       .count = MERGED};
	const struct store_extent whole = {.start = window.extent[0].start,
					   .end = window.extent[MERGED - 1].end};
	struct store_view *view;
	int result = store_view_open(writer->core->data, &writer->owner, &window,
				     found->version->v.length, &view);

	if (result)
		return result;
	result = writer_run(writer, &writer->compact, content, whole.start);
	if (!result)
		result = writer_copy(view, &whole, writer->compact.run);
	writer->core->bytes_copied += whole.end - whole.start;
	store_view_close(view);
	if (!result)
		result = writer_finish(writer, &writer->compact);
	return result ? result : replace(writer, content);
}

void compact_drop(struct store_writer *writer)
{
	piece_end(&writer->compact, false);
	store_content_free(&writer->list);
	writer->compact_of = 0;
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
