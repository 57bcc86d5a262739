/* SPDX-License-Identifier: BSD-2-Clause */
/* Source files in memory, and the mapping from offsets to file, line and column. */
#ifndef RXWGEN_SOURCE_H
#define RXWGEN_SOURCE_H

#include "rxwgen/text/arena.h"
#include "rxwgen/ast.h"

/* Maximum bytes of one file, and of all files, each counted as often as it is included. */
#define SOURCE_MAX     (16u << 20)
#define SOURCE_ALL_MAX (64u << 20)
#define SOURCE_LINE    65536u

/* "# N" or #line: physical line `line` (from 1) and the following have numbers from `number` on. */
struct source_marker {
	unsigned line, number;
	const char *file;
};

/* A file without CR before LF. `text` ends in LF, unless it is empty, and a NUL follows. */
struct source {
	struct source *next;
	const char *name;   /* as given, or as found by #include */
	const char *folder; /* searched first for its includes: "", or "some/where/" */
	const char *text;
	uint32_t size;
	uint32_t *lines; /* offset of the first byte of each line */
	size_t line_count;
	struct source_marker *markers;
	size_t marker_count, marker_room;
	bool separate; /* included under -i: read only once */
	/* Offset of a NUL and of a line that is too long, or SIZE_MAX; reported by pp_load(). */
	size_t nul, long_line;
};

struct macro;

/* A source position. For text from a macro, the position of the macro's use. */
struct loc {
	const struct source *source;
	uint32_t offset;
	const struct macro *macro;
};

/* NULL with errno if the file cannot be read; EFBIG if it is larger than SOURCE_MAX. */
struct source *source_load(struct arena *arena, const char *path);
struct source *source_from(struct arena *arena, const char *name, const char *text, size_t size);

/* The physical line of an offset, from 0. */
size_t source_line(const struct source *source, uint32_t offset);
struct xg_place source_place(struct loc loc);
void source_mark(struct arena *arena, struct source *source, struct source_marker marker);

#endif
