/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry of the front end: one pass over the input. */
#include "rxwgen/ast.h"
#include "rxwgen/parse/parse.h"

/* Memory limit of one pass. The size of the input has a limit of its own (source.h). */
#define MEMORY_MAX ((size_t)512 << 20)

/*
 * Functions between setjmp() and longjmp() own only memory of the arena, so that a jump leaks
 * nothing.
 */
struct xg_file *xg_read(const char *path, const struct xg_options *options, enum xg_output output)
{
	struct arena *arena = arena_new(MEMORY_MAX);
	struct diag diag = {.out = options->messages ? options->messages : stderr,
			    .printed = options->printed};
	struct xg_file *volatile file = NULL;
	jmp_buf empty, stop;

	if (!arena) {
		fprintf(diag.out, "%s: memory is exhausted\n", path);
		return NULL;
	}
	arena_on_empty(arena, &empty);
	diag.stop = &stop;
	if (setjmp(empty)) {
		fprintf(diag.out, "%s: memory is exhausted, or the file is larger than %zu MiB\n",
			path, MEMORY_MAX >> 20);
		file = NULL;
	} else if (!setjmp(stop)) {
		file = parse_file(arena, &diag, path, options, output);
		if (diag.errors)
			file = NULL;
	}
	if (!file)
		arena_free(arena);
	return file;
}

void xg_file_free(struct xg_file *file)
{
	if (file)
		arena_free(file->arena);
}
