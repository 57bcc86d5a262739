/* SPDX-License-Identifier: BSD-2-Clause */
/* Source files in memory, and the mapping from offsets to file, line and column. */
#ifndef RXGEN_SOURCE_H
#define RXGEN_SOURCE_H

#include "rxgen/text/arena.h"
#include "rxgen/ast.h"

/* Bytes of one file; and of all, each counted as often as it is included. */
#define SOURCE_MAX     (16u << 20)
#define SOURCE_ALL_MAX (64u << 20)
#define SOURCE_LINE    65536u

/* "# N" or #line: from physical line `line` on (from 1), lines count from `said`. */
struct source_marker {
	unsigned line, said;
	const char *file;
};

/* CR before LF is gone; `text` ends in LF, unless it is empty, and in a NUL behind its size. */
struct source {
	struct source *next;
	const char *name;   /* as given, or as #include found it */
	const char *folder; /* what its own includes are looked for in: "", or "some/where/" */
	const char *text;
	uint32_t size;
	uint32_t *lines; /* offset of each line's first byte */
	size_t line_count;
	struct source_marker *markers;
	size_t marker_count, marker_room;
	bool by_itself; /* included under -i: once is enough */
	/* Offset of a forbidden byte, or SIZE_MAX; the caller that loads the source reports it. */
	size_t nul, long_line;
};

struct macro;

/* A source position. `macro`: the position of its use; the text comes from the macro. */
struct loc {
	const struct source *source;
	uint32_t offset;
	const struct macro *macro;
};

/* NULL with errno if it cannot be read; EFBIG if it is larger than SOURCE_MAX. */
struct source *source_load(struct arena *arena, const char *path);
struct source *source_from(struct arena *arena, const char *name, const char *text, size_t size);

/* The physical line of an offset, from 0. */
size_t source_line(const struct source *source, uint32_t offset);
struct xg_place source_place(struct loc loc);
void source_mark(struct arena *arena, struct source *source, struct source_marker marker);

#endif
