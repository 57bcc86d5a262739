/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser, from tokens to the items of the file: recursive descent, one function for each
 * production.
 *
 * It is written by hand, not generated. One token of look-ahead suffices, so that a function reads
 * like its production. Error messages can say what was expected in each context. After a syntax
 * error the parser continues after the next ';' outside of braces. The build needs no generator.
 *
 * A function that returns false has reported a syntax error. A semantic error is reported, and the
 * construct replaced by a valid one, to avoid follow-up errors.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/parse/parse.h"

/* Skip to the token after the next ';' outside of braces. */
static void skip_broken_definition(struct parser *p)
{
	while (p->token.kind != TOKEN_END && (p->token.kind != ';' || p->depth))
		parse_advance(p);
	p->depth = 0;
	if (p->token.kind == ';')
		parse_advance(p);
	if (p->defining) {
		/* The name remains declared, so that its uses are not reported. */
		p->defining->broken = true;
		measure_type(p, p->defining, p->start);
		symbol_type_done(p, p->defining);
	}
	parse_flush_items(p);
}

static bool parse_definition(struct parser *p)
{
	switch (p->token.kind) {
	case TOKEN_CONST:
		return parse_const(p);
	case TOKEN_STRUCT:
	case TOKEN_CUSTOMIZED:
		return parse_struct(p);
	case TOKEN_UNION:
		return parse_union(p);
	case TOKEN_ENUM:
		return parse_enum(p);
	case TOKEN_TYPEDEF:
		return parse_typedef(p);
	case TOKEN_PACKAGE:
		return parse_package(p);
	case TOKEN_PREFIX:
		return parse_prefix(p);
	case TOKEN_STATINDEX:
		return parse_statindex(p);
	case TOKEN_STARTINGOPCODE:
		return parse_startingopcode(p);
	case TOKEN_SPLITPREFIX:
		return parse_splitprefix(p);
	case TOKEN_SPECIAL:
		return parse_special(p);
	case TOKEN_PROC:
	case TOKEN_NAME:
		return parse_proc(p);
	default:
		return parse_unexpected(p, "a definition");
	}
}

/* A package statement in a file that is compiled separately has no effect outside of it. */
static void track_included_file(struct parser *p)
{
	if (p->token.included == p->included)
		return;
	if (p->token.included) {
		p->outer_package = p->package;
		p->package = NULL;
	} else {
		p->package = p->outer_package;
	}
	p->included = p->token.included;
}

/* -L NAME=n */
static void read_limit_options(struct parser *p)
{
	const struct xg_options *options = p->options;

	p->limits = arena_alloc(p->arena, (options->limit_count + 1) * sizeof(p->limits[0]));
	for (size_t i = 0; i < options->limit_count; i++) {
		const char *text = options->limits[i], *equals = strchr(text, '=');

		p->limits[i].name =
			arena_copy(p->arena, text, equals ? (size_t)(equals - text) : strlen(text));
		p->limits[i].value = equals ? (uint32_t)strtoul(equals + 1, NULL, 0) : 0;
	}
}

static const char *copy_base_name(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	return arena_copy(arena, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
}

static struct xg_file *parse_file(struct arena *arena, struct diag *diag, const char *path,
				  const struct xg_options *options, enum xg_output output)
{
	struct xg_file *file = arena_alloc(arena, sizeof(*file));
	struct parser *p = arena_alloc(arena, sizeof(*p));

	p->arena = arena;
	p->diag = diag;
	p->options = options;
	p->output = output;
	p->names = arena_alloc(arena, sizeof(*p->names));
	names_init(p->names, arena);
	symbol_add_basic(p);
	read_limit_options(p);
	p->pp = pp_new(arena, diag, p->names, path, options, output);
	p->prefix = "";
	p->start_word = "Start";
	p->end_word = "End";
	parse_advance(p);
	while (p->token.kind != TOKEN_END) {
		track_included_file(p);
		parse_flush_items(p);
		p->start = p->token.loc;
		if (!parse_definition(p))
			skip_broken_definition(p);
		p->start.source = NULL;
		p->defining = NULL;
	}
	parse_flush_items(p);
	measure_file(p);
	for (size_t i = 0; i < options->limit_count; i++)
		if (!p->limits[i].used)
			diag_warning(diag, (struct loc){0},
				     "-L %s: no unbounded array has this name", p->limits[i].name);
	parse_finish_packages(p, file);
	file->path = arena_copy(arena, path, strlen(path));
	file->base = copy_base_name(arena, path);
	file->output = output;
	file->items = p->items;
	file->item_count = p->item_count;
	file->types = p->defined;
	file->type_count = p->defined_count;
	file->inputs = pp_inputs(p->pp, &file->input_count);
	file->arena = arena;
	return file;
}

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
