/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ground of the front end: an arena, the only memory that it uses; source files and positions in
 * them; messages.
 */
#ifndef RXWGEN_SOURCE_H
#define RXWGEN_SOURCE_H

#include <setjmp.h>

#include "rxwgen/xg.h"

/* -- arena.c: memory with a limit that is freed all at once ------------------------------------ */

struct arena;

/* NULL if memory is exhausted. The arena takes at most `limit` bytes from the system. */
struct arena *arena_new(size_t limit);
void arena_free(struct arena *arena);

/* Target of the jump when memory or the limit is exhausted; set it before the first allocation. */
void arena_on_empty(struct arena *arena, jmp_buf *to);

/* Zeroed memory, aligned for anything; never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_copy(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Make room for an element after `count` elements of `size` bytes each. Returns `old`, or a copy
 * with twice its capacity. *room is the capacity; start with NULL and 0.
 */
void *arena_grow(struct arena *arena, void *old, size_t count, size_t *room, size_t size);

/* -- source.c: files in memory, and the mapping from offsets to file, line and column ---------- */

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

/* -- diag.c: messages with position, source line and a caret ----------------------------------- */

/* The run stops after this number of errors. */
#define DIAG_ERRORS 20
/* Maximum number of warnings printed. */
#define DIAG_WARNINGS 100

struct diag {
	FILE *out;
	struct xg_printed *printed; /* warnings of earlier passes, or NULL */
	unsigned errors, warnings;
	bool quiet; /* the last message was suppressed, and so are its notes */
	jmp_buf *stop;
};

/*
 * Print "FILE:LINE:COLUMN: error: text". Without a source the message concerns the command line.
 * Jumps to diag->stop after DIAG_ERRORS errors. An error returns false.
 */
bool diag_error(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void diag_warning(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A note on the previous message. */
void diag_note(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A fatal error: jumps to diag->stop. */
_Noreturn void diag_fatal(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, without a position: "what: why". */
_Noreturn void diag_fatal_file(struct diag *diag, const char *what, const char *why);

#endif
