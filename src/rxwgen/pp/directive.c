/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives, the lines that begin with '#', and the expressions of #if and #elif. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "rxwgen/pp/pp_internal.h"

/*
 * The line of a directive. Comments and line continuations are replaced by blanks of the same
 * length, so that offset 0 in `text` is offset `base` in the source.
 */
struct line {
	const char *text;
	uint32_t at, end;
	uint32_t base;
	const struct source *source;
};

static struct loc make_line_loc(const struct line *line, uint32_t offset)
{
	return (struct loc){.source = line->source, .offset = line->base + offset};
}

static void skip_line_blanks(struct line *line)
{
	while (line->at < line->end && strchr(" \t\v\f\r", line->text[line->at]))
		line->at++;
}

static void append_line_byte(struct pp *pp, size_t n, char c)
{
	pp->line = arena_grow(pp->arena, pp->line, n, &pp->line_room, 1);
	pp->line[n] = c;
}

/* Read a line, with its continuations, from the frame. */
static struct line read_directive_line(struct pp *pp)
{
	struct frame *f = pp_top(pp);
	struct line line = {.base = f->base + f->at, .source = f->source};
	bool quoted = false;
	size_t n = 0;

	while (f->at < f->end && f->text[f->at] != '\n') {
		char c = f->text[f->at], d = f->at + 1 < f->end ? f->text[f->at + 1] : '\n';

		if (!quoted && c == '/' && d == '*') {
			uint32_t from = f->at;

			pp_skip_comment(pp, f);
			for (; from < f->at; from++)
				append_line_byte(pp, n++, ' ');
			continue;
		}
		if (c == '"')
			quoted = !quoted;
		if (c == '\\' && d == '\n' && f->at + 1 < f->end) {
			append_line_byte(pp, n++, ' ');
			f->at++;
			c = ' ';
		}
		append_line_byte(pp, n++, c);
		f->at++;
	}
	if (f->at < f->end)
		f->at++;
	f->line_start = true;
	f->begun = true;
	append_line_byte(pp, n, '\0');
	line.text = pp->line;
	line.end = (uint32_t)n;
	return line;
}

bool pp_reading(const struct pp *pp)
{
	return !pp->condition_count || pp->conditions[pp->condition_count - 1].active;
}

static struct name *read_macro_name(struct pp *pp, struct line *line, const char *directive)
{
	uint32_t from;

	skip_line_blanks(line);
	from = line->at;
	if (from == line->end || !lex_is_name_start(line->text[from])) {
		diag_error(pp->diag, make_line_loc(line, from), "expected a name after #%s",
			   directive);
		return NULL;
	}
	while (line->at < line->end && lex_is_name(line->text[line->at]))
		line->at++;
	return names_get(pp->names, line->text + from, line->at - from);
}

static char peek_next_char(struct line *line)
{
	skip_line_blanks(line);
	return line->at < line->end ? line->text[line->at] : '\0';
}

static bool add_macro_parameter(struct pp *pp, struct macro *macro, const struct name *name,
				struct loc loc, size_t *room)
{
	assert(macro->param_count <= PARAMETERS_MAX);
	for (size_t i = 0; i < macro->param_count; i++)
		if (macro->params[i] == name)
			return diag_error(pp->diag, loc, "duplicate parameter '%s' of macro '%s'",
					  name->text, macro->name->text);
	if (macro->param_count == PARAMETERS_MAX)
		return diag_error(pp->diag, loc, "macro '%s' has more than %d parameters",
				  macro->name->text, PARAMETERS_MAX);
	macro->params = arena_grow(pp->arena, macro->params, macro->param_count, room,
				   sizeof(macro->params[0]));
	macro->params[macro->param_count++] = name;
	return true;
}

/* The parameters of a macro, from '(' to ')'. */
static bool read_macro_parameters(struct pp *pp, struct line *line, struct macro *macro)
{
	size_t room = 1;

	macro->params = arena_alloc(pp->arena, sizeof(macro->params[0]));
	do {
		const struct name *name;
		uint32_t from;

		line->at++;
		if (peek_next_char(line) == ')' && !macro->param_count)
			break;
		from = line->at;
		while (line->at < line->end && lex_is_name(line->text[line->at]))
			line->at++;
		if (line->at == from || !lex_is_name_start(line->text[from]))
			return diag_error(pp->diag, make_line_loc(line, from),
					  "expected the name of a parameter of macro '%s'",
					  macro->name->text);
		name = names_get(pp->names, line->text + from, line->at - from);
		if (!add_macro_parameter(pp, macro, name, make_line_loc(line, from), &room))
			return false;
	} while (peek_next_char(line) == ',');
	if (peek_next_char(line) != ')')
		return diag_error(pp->diag, make_line_loc(line, line->at),
				  "expected ',' or ')' after a parameter of macro '%s'",
				  macro->name->text);
	line->at++;
	return true;
}

static void handle_define(struct pp *pp, struct line *line)
{
	struct name *name = read_macro_name(pp, line, "define");
	struct macro *macro;
	uint32_t from;
	char c;

	if (!name)
		return;
	from = line->at - name->length;
	macro = arena_alloc(pp->arena, sizeof(*macro));
	macro->name = name;
	macro->loc = make_line_loc(line, from);
	c = line->at < line->end ? line->text[line->at] : ' ';
	if (c == '(') {
		if (!read_macro_parameters(pp, line, macro))
			return;
		if (memchr(line->text + line->at, '#', line->end - line->at)) {
			diag_error(pp->diag, macro->loc,
				   "'#' and '##' are not supported in a macro with parameters");
			return;
		}
	} else if (!strchr(" \t\v\f\r", c)) {
		diag_error(pp->diag, make_line_loc(line, line->at),
			   "expected a blank after the macro's name");
		return;
	}
	if (!strcmp(name->text, "defined"))
		diag_error(pp->diag, make_line_loc(line, from), "'defined' cannot be a macro");
	else
		macro_define(pp, name, macro, line->text + line->at, line->end - line->at);
}

static void handle_undef(struct pp *pp, struct line *line)
{
	struct name *name = read_macro_name(pp, line, "undef");

	if (name)
		name->macro = NULL;
}

/* Search the folder of the including file, then those of -I. */
static struct source *find_include_file(struct pp *pp, struct line *line, uint32_t from,
					uint32_t to)
{
	const char *name = arena_copy(pp->arena, line->text + from, to - from), *path;
	size_t count = name[0] == '/' ? 0 : pp->options->folder_count;
	struct source *source;

	for (size_t i = 0; i <= count; i++) {
		const char *folder = i ? pp->options->folders[i - 1] : line->source->folder;
		size_t length = strlen(folder);

		if (name[0] == '/')
			path = name;
		else if (!length || folder[length - 1] == '/')
			path = arena_printf(pp->arena, "%s%s", folder, name);
		else
			path = arena_printf(pp->arena, "%s/%s", folder, name);
		source = pp_load(pp, path);
		if (source)
			return source;
		if (errno != ENOENT && errno != ENOTDIR)
			diag_fatal(pp->diag, make_line_loc(line, from - 1), "cannot read '%s': %s",
				   path, strerror(errno));
	}
	diag_fatal(pp->diag, make_line_loc(line, from - 1), "cannot find the include file '%s'",
		   name);
}

/* The header of an included .xg file, "afs-common.h", with the folder as written. */
static const char *name_included_header(struct pp *pp, const char *name, uint32_t length)
{
	assert(length > 3);
	return arena_printf(pp->arena, "%.*s.h", (int)length - 3, name);
}

static bool handle_include(struct pp *pp, struct line *line, struct token *token)
{
	uint32_t from, to;
	struct source *source;
	bool separate, before;
	char close;

	skip_line_blanks(line);
	from = line->at + 1;
	close = line->at == line->end ? '\0' : line->text[line->at];
	close = close == '"' ? '"' : close == '<' ? '>' : '\0';
	for (to = from; to < line->end && line->text[to] != close; to++)
		;
	if (!close || to >= line->end || to == from)
		return diag_error(pp->diag, make_line_loc(line, line->at),
				  "expected \"file\" or <file> after #include");
	if (pp->files > INCLUDE_DEPTH)
		diag_fatal(pp->diag, make_line_loc(line, line->at),
			   "includes are nested more than %d deep", INCLUDE_DEPTH);
	source = find_include_file(pp, line, from, to);
	before = pp_top(pp)->separate;
	separate = pp->options->skip_included && to - from > 3 &&
		   !memcmp(line->text + to - 3, ".xg", 3);
	if (separate) {
		if (source->separate)
			return false;
		source->separate = true;
		*token = (struct token){.kind = TOKEN_HEADER, .loc = make_line_loc(line, line->at)};
		token->text = name_included_header(pp, line->text + from, to - from);
	}
	pp_enter(pp, source, separate || before);
	return separate && !before;
}

static void handle_line_marker(struct pp *pp, struct line *line)
{
	struct source_marker marker = {0};
	struct loc loc;
	uint32_t from;
	int64_t value;
	bool large;

	skip_line_blanks(line);
	from = line->at;
	loc = make_line_loc(line, from);
	while (line->at < line->end && lex_is_name(line->text[line->at]))
		line->at++;
	if (!lex_number(line->text + from, line->at - from, &value, &large) || large || value < 1 ||
	    value > INT32_MAX) {
		diag_error(pp->diag, loc, "expected a line number, 1 or more");
		return;
	}
	skip_line_blanks(line);
	if (line->at < line->end) {
		const char *end = NULL, *begin = line->text + line->at + 1;

		if (line->text[line->at] == '"')
			end = memchr(begin, '"', line->end - line->at - 1);
		if (!end) {
			diag_error(pp->diag, make_line_loc(line, line->at),
				   "expected a file name in quotes");
			return;
		}
		marker.file = arena_copy(pp->arena, begin, (size_t)(end - begin));
	}
	marker.number = (unsigned)value;
	/* It gives the number of the next line. */
	marker.line = (unsigned)source_line(line->source, pp_top(pp)->base + pp_top(pp)->at) + 1;
	source_mark(pp->arena, pp_top(pp)->source, marker);
}

/* -- conditions -------------------------------------------------------------------------------- */

/* A name that is not a macro has the value 0; the operand of `defined` is not expanded. */
struct reader {
	struct pp *pp;
	struct token token;
	size_t bottom; /* depth of the stack when the line is on top */
	bool wrong;    /* an error was reported; further ones are suppressed */
	bool raw;      /* do not expand macros: the operand of `defined` */
};

static void read_next_token(void *reader)
{
	struct reader *r = reader;
	struct pp *pp = r->pp;

	for (;;) {
		struct frame *f = pp_top(pp);

		while (f->at < f->end && strchr(" \t\v\f\r\n", f->text[f->at]))
			f->at++;
		if (f->at >= f->end) {
			if (pp->depth == r->bottom) {
				r->token =
					(struct token){.kind = TOKEN_END, .loc = pp_loc(pp, f->at)};
				return;
			}
			macro_leave(pp);
			continue;
		}
		if (!lex_scan(pp, &r->token)) {
			r->wrong = true;
			continue;
		}
		if (r->token.name && !r->raw && strcmp(r->token.name->text, "defined") &&
		    macro_use(pp, r->token.name, r->token.loc))
			continue;
		return;
	}
}

static bool report_unexpected_token(void *reader, const char *expected)
{
	struct reader *r = reader;
	char room[NAME_LONGEST + 20];

	if (!r->wrong) {
		if (r->token.kind == TOKEN_END)
			diag_error(r->pp->diag, r->token.loc, "expected %s, found end of line",
				   expected);
		else
			diag_error(r->pp->diag, r->token.loc, "expected %s, found '%.60s'",
				   expected,
				   r->token.text ? r->token.text
						 : token_text(&r->token, room, sizeof(room)));
	}
	return false;
}

static bool read_defined_operand(struct reader *r, int64_t *value)
{
	bool parentheses;

	r->raw = true;
	read_next_token(r);
	parentheses = r->token.kind == '(';
	if (parentheses)
		read_next_token(r);
	r->raw = false;
	if (!r->token.name)
		return report_unexpected_token(r, "a name after 'defined'");
	*value = r->token.name->macro != NULL;
	read_next_token(r);
	if (parentheses) {
		if (r->token.kind != ')')
			return report_unexpected_token(r, "')'");
		read_next_token(r);
	}
	return true;
}

static bool read_condition_operand(struct expression *e, int64_t *value)
{
	struct reader *r = e->owner;

	if (r->token.name && !strcmp(r->token.name->text, "defined"))
		return read_defined_operand(r, value);
	if (!r->token.name && r->token.kind != TOKEN_NUMBER)
		return report_unexpected_token(r, "a value");
	*value = r->token.name ? 0 : r->token.value;
	r->wrong |= r->token.wrong;
	read_next_token(r);
	return true;
}

/* The value of the expression text[0..end), at offset `base` of the top frame. */
static bool evaluate_condition(struct pp *pp, const char *text, uint32_t end, uint32_t base)
{
	struct reader r = {.pp = pp};
	struct expression e = {.diag = pp->diag,
			       .token = &r.token,
			       .owner = &r,
			       .advance = read_next_token,
			       .operand = read_condition_operand,
			       .unexpected = report_unexpected_token,
			       .condition = true};
	struct frame *f = pp_push(pp);
	int64_t value;
	bool good;

	f->kind = FRAME_LINE;
	f->text = text;
	f->end = end;
	f->source = f[-1].source;
	f->base = base;
	r.bottom = pp->depth;
	pp->in_condition = true;
	read_next_token(&r);
	good = expression_read(&e, &value);
	if (good && r.token.kind != TOKEN_END && !e.invalid)
		good = report_unexpected_token(&r, "an operator or the end of the line");
	while (pp->depth > r.bottom)
		macro_leave(pp);
	pp->depth--;
	assert(pp->depth == r.bottom - 1);
	pp->in_condition = false;
	return good && value != 0 && !r.wrong && !e.invalid;
}

static bool read_condition_line(struct pp *pp, struct line *line)
{
	return evaluate_condition(pp, line->text + line->at, line->end - line->at,
				  line->base + line->at);
}

/* #if, #ifdef, #ifndef */
static void handle_if(struct pp *pp, struct line *line, const char *directive)
{
	struct condition c = {.loc = make_line_loc(line, 0), .outer = pp_reading(pp)};
	struct name *name;

	if (c.outer && !strcmp(directive, "if")) {
		c.active = read_condition_line(pp, line);
	} else if (c.outer) {
		name = read_macro_name(pp, line, directive);
		c.active = name && (name->macro != NULL) == !strcmp(directive, "ifdef");
	}
	c.done = c.active || !c.outer;
	pp->conditions = arena_grow(pp->arena, pp->conditions, pp->condition_count,
				    &pp->condition_room, sizeof(c));
	pp->conditions[pp->condition_count++] = c;
}

/* #elif, #else, #endif. Text after the last two is ignored, since old files have it. */
static void handle_branch(struct pp *pp, struct line *line, const char *directive)
{
	struct condition *c;

	if (pp->condition_count == pp_top(pp)->conditions) {
		diag_error(pp->diag, make_line_loc(line, 0), "#%s without an #if in this file",
			   directive);
		return;
	}
	c = &pp->conditions[pp->condition_count - 1];
	if (!strcmp(directive, "endif")) {
		pp->condition_count--;
		return;
	}
	if (c->had_else) {
		diag_error(pp->diag, make_line_loc(line, 0), "#%s after #else", directive);
		diag_note(pp->diag, c->loc, "the #if is here");
		return;
	}
	if (!strcmp(directive, "else")) {
		c->had_else = true;
		c->active = !c->done;
	} else {
		c->active = !c->done && read_condition_line(pp, line);
	}
	c->done |= c->active;
}

/* Handle a conditional directive; false if it is another one. */
static bool handle_conditional(struct pp *pp, struct line *line, const char *directive)
{
	if (!strcmp(directive, "if") || !strcmp(directive, "ifdef") || !strcmp(directive, "ifndef"))
		handle_if(pp, line, directive);
	else if (!strcmp(directive, "elif") || !strcmp(directive, "else") ||
		 !strcmp(directive, "endif"))
		handle_branch(pp, line, directive);
	else
		return false;
	return true;
}

bool directive_read(struct pp *pp, struct token *token)
{
	struct line line = read_directive_line(pp);
	char directive[16];
	uint32_t from, length;

	pp->before.source = NULL;
	line.at = 1;
	skip_line_blanks(&line);
	if (line.at == line.end)
		return false;
	from = line.at;
	if (line.text[from] >= '0' && line.text[from] <= '9') {
		if (pp_reading(pp))
			handle_line_marker(pp, &line);
		return false;
	}
	while (line.at < line.end && lex_is_name(line.text[line.at]))
		line.at++;
	length = line.at - from;
	if (length >= sizeof(directive))
		length = 0;
	memcpy(directive, line.text + from, length);
	directive[length] = '\0';
	if (handle_conditional(pp, &line, directive) || !pp_reading(pp))
		return false;
	if (!strcmp(directive, "include"))
		return handle_include(pp, &line, token);
	if (!strcmp(directive, "define"))
		handle_define(pp, &line);
	else if (!strcmp(directive, "undef"))
		handle_undef(pp, &line);
	else if (!strcmp(directive, "line"))
		handle_line_marker(pp, &line);
	else if (!strcmp(directive, "error"))
		diag_error(pp->diag, make_line_loc(&line, 0), "#error%.500s", line.text + line.at);
	else if (strcmp(directive, "pragma") != 0)
		diag_error(pp->diag, make_line_loc(&line, 0), "unknown directive '#%.60s'",
			   line.text + from);
	return false;
}

void directive_skip(struct pp *pp)
{
	struct token none;

	while (!pp_reading(pp)) {
		struct frame *f = pp_top(pp);
		bool start = true, quoted = false;
		uint32_t line = f->at;

		/* One line, or several that a comment connects. */
		while (f->at < f->end && f->text[f->at] != '\n') {
			char c = f->text[f->at];

			if (start && c == '%' && f->at == line) {
				while (f->text[f->at] != '\n')
					f->at++;
				macro_note_define(pp, f->text + line + 1, f->at - line - 1, true);
				break;
			}
			if (start && c == '#')
				break;
			if (!quoted && c == '/' && f->text[f->at + 1] == '*') {
				pp_skip_comment(pp, f);
				continue;
			}
			start &= c == ' ' || c == '\t';
			quoted ^= c == '"';
			f->at++;
		}
		if (f->at >= f->end)
			return;
		if (f->text[f->at] == '\n')
			f->at++;
		else
			directive_read(pp, &none);
	}
}
