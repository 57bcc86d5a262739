/* SPDX-License-Identifier: BSD-2-Clause */
/* The preprocessor: comments, % lines, ends of files, and the resulting tokens. */
#include "rxwgen/pp/pp.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rxwgen/pp/pp_internal.h"

/* Classify a comment: after the last token, before the next one, or about the file. */
static void classify_comment(struct pp *pp, struct frame *f)
{
	struct comment c = {.source = f->source, .start = f->at};

	pp_skip_comment(pp, f);
	c.end = f->at;
	c.first_line = source_line(f->source, c.start);
	c.last_line = source_line(f->source, c.end - 1);
	if (pp->last_source == f->source && c.first_line == pp->last_line) {
		if (!pp->after.source)
			pp->after = c;
	} else if (!f->begun && c.first_line <= f->header_line) {
		f->header_line = c.last_line + 1;
	} else {
		pp->before = c;
	}
}

static void skip_file_blanks(struct pp *pp, struct frame *f)
{
	while (f->at < f->end) {
		char c = f->text[f->at];

		if (c == '\n')
			f->line_start = true;
		else if (c == '/' && f->text[f->at + 1] == '*') {
			classify_comment(pp, f);
			continue;
		} else if (c != ' ' && c != '\t' && c != '\v' && c != '\f' && c != '\r')
			return;
		f->at++;
	}
}

/* The text of a comment without delimiters, leading stars and trailing blanks. */
static const char *copy_comment_text(struct pp *pp, const struct comment *c)
{
	const char *p = c->source->text + c->start + 2, *end = c->source->text + c->end - 2;
	char *out, *start;
	size_t n = 0;
	bool first = true;

	if (end <= p)
		return NULL;
	/* Twice the size: a blank may be inserted before each star. */
	out = start = arena_alloc(pp->arena, 2 * (size_t)(end - p) + 1);
	/* Boxes of stars are decoration. */
	while (end > p && end[-1] == '*')
		end--;
	while (p < end) {
		size_t line;

		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		while (p < end && *p == '*')
			p++;
		if (p < end && *p == ' ')
			p++;
		if (first)
			while (p < end && (*p == ' ' || *p == '\t'))
				p++;
		first = false;
		line = n;
		for (; p < end && *p != '\n'; p++) {
			unsigned char ch = (unsigned char)(*p == '\t' ? ' ' : *p);

			/* Break up slash and star, which would nest comments in C. */
			if (ch == '*' && n > line && out[n - 1] == '/')
				out[n++] = ' ';
			if (ch >= ' ' && ch != 0x7f)
				out[n++] = (char)ch;
		}
		while (n > line && out[n - 1] == ' ')
			n--;
		if (p < end)
			p++;
		if (n || line)
			out[n++] = '\n';
	}
	while (n && (out[n - 1] == '\n' || out[n - 1] == ' '))
		n--;
	out[n] = '\0';
	while (*start == '\n' || *start == ' ')
		start++;
	return *start ? start : NULL;
}

/* Complete a token or % line: attach comments, record the position. */
static void finish_token(struct pp *pp, struct token *token)
{
	const struct source *source = token->loc.source;
	size_t line = source_line(source, token->loc.offset);
	struct comment *c = &pp->before;

	token->included = pp_top(pp)->separate;
	if (c->source == source && c->last_line + 1 >= line)
		token->before = copy_comment_text(pp, c);
	c = &pp->after;
	if (c->source && (token->kind == TOKEN_END || c->source != source || c->last_line < line))
		token->after = copy_comment_text(pp, c);
	pp->before.source = pp->after.source = NULL;
	pp->last_source = source;
	pp->last_line = line;
}

/* A % line; false if its file is compiled separately. */
static bool read_percent_line(struct pp *pp, struct frame *f, struct token *token)
{
	uint32_t from = f->at + 1;
	bool included = f->separate;

	*token = (struct token){.kind = TOKEN_LINE, .loc = pp_loc(pp, f->at)};
	while (f->at < f->end && f->text[f->at] != '\n')
		f->at++;
	macro_note_define(pp, f->text + from, f->at - from, false);
	if (!included)
		token->text = macro_line(pp, from, f->at);
	finish_token(pp, token);
	/* A comment after it is part of the line. */
	pp->last_source = NULL;
	return !included;
}

/* The end of a file; false if it is the main file. */
static bool leave_ended_file(struct pp *pp, struct token *token)
{
	struct frame *f = pp_top(pp);

	assert(f->kind == FRAME_FILE && f->at >= f->end);
	while (pp->condition_count > f->conditions)
		diag_error(pp->diag, pp->conditions[--pp->condition_count].loc,
			   "#if without #endif");
	if (pp->depth == 1) {
		*token = (struct token){.kind = TOKEN_END, .loc = pp_loc(pp, f->at)};
		finish_token(pp, token);
		return false;
	}
	pp->depth--;
	pp->files--;
	return true;
}

/*
 * Skip excluded text, blanks, comments and directives. True: the top frame is at a token. False: a
 * frame has ended or a directive was read; *ready is set if *token is complete.
 */
static bool reach_next_token(struct pp *pp, struct token *token, bool *ready)
{
	struct frame *f = pp_top(pp);

	if (!pp_reading(pp)) {
		directive_skip(pp);
		f = pp_top(pp);
	}
	skip_file_blanks(pp, f);
	if (f->at >= f->end) {
		*ready = !leave_ended_file(pp, token);
		return false;
	}
	if (f->line_start && f->text[f->at] == '#') {
		*ready = directive_read(pp, token);
		return false;
	}
	f->begun = true;
	if (f->line_start && f->text[f->at] == '%' && (!f->at || f->text[f->at - 1] == '\n')) {
		*ready = read_percent_line(pp, f, token);
		return false;
	}
	f->line_start = false;
	pp->line_comment = false;
	return true;
}

void pp_next(struct pp *pp, struct token *token)
{
	for (;;) {
		struct frame *f = pp_top(pp);
		bool ready = false;

		if (f->kind == FRAME_MACRO) {
			while (f->at < f->end && strchr(" \t\v\f\r", f->text[f->at]))
				f->at++;
			if (f->at >= f->end) {
				macro_leave(pp);
				continue;
			}
		} else if (!reach_next_token(pp, token, &ready)) {
			if (ready)
				return;
			continue;
		}
		if (!lex_scan(pp, token) || (token->name && macro_use(pp, token->name, token->loc)))
			continue;
		finish_token(pp, token);
		return;
	}
}

const char **pp_inputs(struct pp *pp, size_t *count)
{
	*count = pp->input_count;
	return pp->inputs;
}

/* -D and -U become a file of directives, which is read first. */
static void enter_command_line(struct pp *pp, enum xg_output output)
{
	static const char *const outputs[XG_OUTPUTS] = {"RPC_HDR", "RPC_XDR", "RPC_CLIENT",
							"RPC_SERVER"};
	const struct xg_options *options = pp->options;
	size_t room = 64;
	char *text;
	int n;

	for (size_t i = 0; i < options->macro_count; i++)
		room += strlen(options->macros[i].text) + 16;
	text = arena_alloc(pp->arena, room);
	n = snprintf(text, room, "#define %s 1\n", outputs[output]);
	for (size_t i = 0; i < options->macro_count; i++) {
		const char *macro = options->macros[i].text, *equals = strchr(macro, '=');
		int length = equals ? (int)(equals - macro) : (int)strlen(macro);
		int from = n;

		if (options->macros[i].undefine)
			n += snprintf(text + n, room - (size_t)n, "#undef %s", macro);
		else
			n += snprintf(text + n, room - (size_t)n, "#define %.*s %s", length, macro,
				      equals ? equals + 1 : "1");
		for (; from < n; from++)
			if (text[from] == '\n' || text[from] == '\\')
				text[from] = ' ';
		text[n++] = '\n';
	}
	pp_enter(pp, source_from(pp->arena, "<command line>", text, (size_t)n), false);
}

struct pp *pp_new(struct arena *arena, struct diag *diag, struct names *names, const char *path,
		  const struct xg_options *options, enum xg_output output)
{
	struct pp *pp = arena_alloc(arena, sizeof(*pp));
	struct source *source;

	pp->arena = arena;
	pp->diag = diag;
	pp->names = names;
	pp->options = options;
	source = pp_load(pp, path);
	if (!source)
		diag_fatal_file(diag, path, strerror(errno));
	pp_enter(pp, source, false);
	enter_command_line(pp, output);
	return pp;
}
