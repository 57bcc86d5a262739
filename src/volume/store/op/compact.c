/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A content with too many extents: the neighbours that are cheapest to copy become one extent. So a
 * small write never waits for a copy of the whole file, however large that is.
 */
#include "volume/store/txn/writer.h"

#include <assert.h>
#include <errno.h>

#define MERGED 3   /* extents that become one: more than a write adds */
#define TRIES  100 /* against endless races, which only a fault could cause */

/* The first of the MERGED extents with the fewest bytes, holes included: those become zeros. */
static uint32_t find_cheapest_window(const struct store_content *content)
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

static int copy_cheapest_window(struct store_writer *writer, const struct found *found)
{
	const struct store_content *content = &found->version->content;
	const struct store_content window = {
		.extent = content->extent + find_cheapest_window(content), .count = MERGED};
	const struct store_extent whole = {.start = window.extent[0].start,
					   .end = window.extent[MERGED - 1].end};
	struct store_view *view;
	int result = store_view_open(writer->core->data, &writer->owner, &window,
				     found->version->v.length, &view);

	assert(content->count >= MERGED);
	if (result)
		return result;
	result = writer_run(writer, &writer->compact, content, whole.start);
	if (!result)
		result = writer_copy(view, &whole, writer->compact.run);
	writer->core->bytes_copied += whole.end - whole.start;
	store_view_close(view);
	if (!result)
		result = writer_finish(writer, &writer->compact);
	return result ? result : store_content_copy(&window, &writer->window);
}

int compact_content(struct store_writer *writer)
{
	struct found found;
	int result;

	piece_end(&writer->compact, false);
	store_content_free(&writer->window);
	result = lookup(writer->core, &writer->caller, &writer->fid, &found);
	if (result)
		return result;
	if (found.version->content.count >= MERGED)
		result = copy_cheapest_window(writer, &found);
	lookup_end(&found);
	/* Another commit has replaced that version: try again with the new one. */
	if (result == -ENOENT)
		result = ++writer->missing < TRIES ? 0 : -EIO;
	return result;
}
