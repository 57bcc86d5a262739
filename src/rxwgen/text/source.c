/* SPDX-License-Identifier: BSD-2-Clause */
/* Source files in memory, and the mapping from offsets to file, line and column. */
#include "rxwgen/text/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Remove CR before LF, record the lines, find NUL and lines that are too long. */
static void record_lines(struct arena *arena, struct source *source, char *text, size_t size)
{
	size_t out = 0, start = 0, room = 0;

	source->nul = source->long_line = SIZE_MAX;
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\r' && i + 1 < size && text[i + 1] == '\n')
			continue;
		if (!text[i] && source->nul == SIZE_MAX)
			source->nul = out;
		text[out++] = text[i];
		if (text[i] == '\n' || i + 1 == size) {
			source->lines = arena_grow(arena, source->lines, source->line_count, &room,
						   sizeof(source->lines[0]));
			source->lines[source->line_count++] = (uint32_t)start;
			if (out - start > SOURCE_LINE && source->long_line == SIZE_MAX)
				source->long_line = start;
			start = out;
		}
	}
	if (out && text[out - 1] != '\n')
		text[out++] = '\n';
	text[out] = '\0';
	assert(start <= out);
	source->text = text;
	source->size = (uint32_t)out;
}

struct source *source_from(struct arena *arena, const char *name, const char *text, size_t size)
{
	struct source *source = arena_alloc(arena, sizeof(*source));
	const char *slash = strrchr(name, '/');
	char *copy = arena_alloc(arena, size + 2);

	if (size)
		memcpy(copy, text, size);
	source->name = arena_copy(arena, name, strlen(name));
	source->folder = arena_copy(arena, name, slash ? (size_t)(slash - name) + 1 : 0);
	record_lines(arena, source, copy, size);
	return source;
}

/* Read a file to its end; returns its size, or -1 with errno. A pipe has no size in advance. */
static ssize_t read_whole_file(struct arena *arena, int fd, char **text)
{
	size_t size = 0, room = 0;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < SOURCE_MAX)
		room = (size_t)st.st_size;
	room += 4096;
	*text = arena_alloc(arena, room);
	for (;;) {
		n = read(fd, *text + size, room - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			return (ssize_t)size;
		size += (size_t)n;
		if (size > SOURCE_MAX) {
			errno = EFBIG;
			return -1;
		}
		if (size == room) {
			char *larger = arena_alloc(arena, room * 2);

			memcpy(larger, *text, size);
			*text = larger;
			room *= 2;
		}
	}
}

struct source *source_load(struct arena *arena, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	ssize_t size;
	char *text;

	if (fd < 0)
		return NULL;
	/* If the arena is exhausted, the descriptor stays open until the program ends. */
	size = read_whole_file(arena, fd, &text);
	error = errno;
	close(fd);
	errno = error;
	return size < 0 ? NULL : source_from(arena, path, text, (size_t)size);
}

size_t source_line(const struct source *source, uint32_t offset)
{
	size_t low = 0, high = source->line_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (source->lines[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct xg_place source_place(struct loc loc)
{
	const struct source *source = loc.source;
	struct xg_place place = {source->name, 1, 1};
	size_t line = source_line(source, loc.offset), low = 0, high = source->marker_count;
	uint32_t start = source->line_count ? source->lines[line] : 0;

	place.line = (unsigned)line + 1;
	place.column = loc.offset - start + 1;
	if (source->size && loc.offset >= source->size) {
		/* The end of the file, after its last line. */
		place.line++;
		place.column = 1;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (source->markers[middle].line <= place.line)
			low = middle + 1;
		else
			high = middle;
	}
	if (low) {
		const struct source_marker *marker = &source->markers[low - 1];

		place.file = marker->file ? marker->file : source->name;
		place.line = marker->number + (place.line - marker->line);
	}
	return place;
}

void source_mark(struct arena *arena, struct source *source, struct source_marker marker)
{
	struct source_marker *last;

	if (source->marker_count) {
		/* The markers of a file that is included again are already recorded. */
		last = &source->markers[source->marker_count - 1];
		if (last->line >= marker.line)
			return;
		if (!marker.file)
			marker.file = last->file;
	}
	source->markers = arena_grow(arena, source->markers, source->marker_count,
				     &source->marker_room, sizeof(marker));
	source->markers[source->marker_count++] = marker;
}
