/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros: definition, arguments, and expansion in ordinary lines and in % lines. */
#include <assert.h>
#include <string.h>

#include "rxwgen/pp/pp_internal.h"

/* -- definition -------------------------------------------------------------------------------- */

/* A copy without leading and trailing blanks; comments have been replaced by blanks. */
static const char *copy_trimmed(struct pp *pp, const char *text, size_t length, uint32_t *size)
{
	for (; length && strchr(" \t\v\f\r", *text); length--)
		text++;
	while (length && strchr(" \t\v\f\r", text[length - 1]))
		length--;
	*size = (uint32_t)length;
	return arena_copy(pp->arena, text, length);
}

static bool has_same_parameters(const struct macro *a, const struct macro *b)
{
	if (!a->params != !b->params || a->param_count != b->param_count)
		return false;
	for (size_t i = 0; i < a->param_count; i++)
		if (a->params[i] != b->params[i])
			return false;
	return true;
}

void macro_define(struct pp *pp, struct name *name, struct macro *macro, const char *text,
		  size_t length)
{
	const struct macro *old = name->macro;

	macro->text = copy_trimmed(pp, text, length, &macro->length);
	if (old && (strcmp(old->text, macro->text) || !has_same_parameters(old, macro))) {
		diag_warning(pp->diag, macro->loc, "the macro '%s' is redefined with another text",
			     name->text);
		diag_note(pp->diag, old->loc, "its first definition is here");
	}
	name->macro = macro;
}

/* -- text -------------------------------------------------------------------------------------- */

/* Text under construction, in the arena. */
struct text {
	char *bytes;
	size_t count, room;
};

static void put_text(struct pp *pp, struct text *text, const char *bytes, size_t count)
{
	while (count--) {
		text->bytes = arena_grow(pp->arena, text->bytes, text->count, &text->room, 1);
		text->bytes[text->count++] = *bytes++;
	}
}

/* Length of the text at the frame's position that is not expanded: a string, a number, … */
static uint32_t measure_verbatim(struct pp *pp, const struct frame *f)
{
	const char *text = f->text;
	uint32_t at = f->at, end = f->end, next;
	char c = text[at];

	if (pp->line_comment || (c == '/' && at + 1 < end && text[at + 1] == '*')) {
		/* A comment may continue in the next % line. */
		uint32_t from = pp->line_comment ? at - 2 : at;

		if (pp->line_comment) {
			next = end;
			for (uint32_t i = at; i + 1 < end; i++)
				if (text[i] == '*' && text[i + 1] == '/') {
					next = i + 2;
					pp->line_comment = false;
					break;
				}
			return next - at;
		}
		pp->line_comment = !lex_comment(text, from, end, &next);
		return next - at;
	}
	if (c == '"' || c == '\'') {
		for (uint32_t i = at + 1; i < end; i++) {
			if (text[i] == '\\')
				i++;
			else if (text[i] == c)
				return i + 1 - at;
		}
		return end - at;
	}
	if (c >= '0' && c <= '9') {
		for (uint32_t i = at + 1;; i++)
			if (i >= end || !(lex_is_name(text[i]) || text[i] == '.'))
				return i - at;
	}
	return 1;
}

/* -- arguments --------------------------------------------------------------------------------- */

/* The offset after blanks, ends of lines and comments. */
static uint32_t skip_argument_space(const struct frame *f)
{
	uint32_t at = f->at;

	for (;;) {
		while (at < f->end && strchr(" \t\v\f\r\n", f->text[at]))
			at++;
		if (at + 1 >= f->end || f->text[at] != '/' || f->text[at + 1] != '*' ||
		    !lex_comment(f->text, at, f->end, &at))
			return at;
	}
}

/*
 * Whether the arguments of a macro follow the name that was just read: the next character is '(',
 * behind blanks, comments, and ends of lines and of other macros.
 */
static bool arguments_follow(struct pp *pp)
{
	for (size_t depth = pp->depth; depth--;) {
		const struct frame *f = &pp->frames[depth];
		uint32_t at = skip_argument_space(f);

		if (at < f->end)
			return f->text[at] == '(';
		if (f->kind != FRAME_MACRO)
			break;
	}
	return false;
}

/* Leave ended macros. False: the text that contains the use has ended. */
static bool leave_ended_macros(struct pp *pp)
{
	while (pp_top(pp)->at >= pp_top(pp)->end) {
		if (pp_top(pp)->kind != FRAME_MACRO)
			return false;
		macro_leave(pp);
	}
	return true;
}

/* At the end of a line in a file: a directive or % line cannot be part of an argument. */
static bool is_at_directive(const struct frame *f)
{
	uint32_t at = f->at;

	if (f->kind != FRAME_FILE || f->text[at++] != '\n')
		return false;
	if (at < f->end && f->text[at] == '%')
		return true;
	while (at < f->end && (f->text[at] == ' ' || f->text[at] == '\t'))
		at++;
	return at < f->end && f->text[at] == '#';
}

/*
 * The text of an argument, to the ',' or ')' after it, which becomes *end. A comment or an end of a
 * line is a blank. False: there is no end.
 */
static bool read_one_argument(struct pp *pp, struct loc use, struct text *text, char *end)
{
	unsigned depth = 0;

	while (leave_ended_macros(pp)) {
		struct frame *f = pp_top(pp);
		uint32_t n = 1;
		char c = f->text[f->at];

		if (is_at_directive(f))
			return false;
		if (c == '/' && f->at + 1 < f->end && f->text[f->at + 1] == '*') {
			if (!lex_comment(f->text, f->at, f->end, &f->at))
				return false;
			put_text(pp, text, " ", 1);
			continue;
		}
		if (!depth && (c == ',' || c == ')')) {
			f->at++;
			*end = c;
			return true;
		}
		depth += c == '(';
		depth -= c == ')';
		if (c == '"')
			n = measure_verbatim(pp, f);
		put_text(pp, text, c == '\n' ? " " : f->text + f->at, n);
		f->at += n;
		if (text->count > EXPANSION_MAX)
			diag_fatal(pp->diag, use,
				   "an argument of macro '%s' has more than %u bytes",
				   use.macro->name->text, EXPANSION_MAX);
	}
	return false;
}

/* Removes leading and trailing blanks. */
static struct text trim_argument(struct text text)
{
	while (text.count && strchr(" \t\v\f\r", *text.bytes)) {
		text.bytes++;
		text.count--;
	}
	while (text.count && strchr(" \t\v\f\r", text.bytes[text.count - 1]))
		text.count--;
	return text;
}

/* The argument with its macros expanded. */
static struct text expand_argument(struct pp *pp, struct text text, struct loc use)
{
	bool line_comment = pp->line_comment;
	struct frame *f = pp_push(pp);

	f->kind = FRAME_ARGUMENT;
	f->text = text.bytes;
	f->end = (uint32_t)text.count;
	f->use = use;
	f->separate = f[-1].separate;
	pp->line_comment = false;
	text.bytes = (char *)macro_expand(pp, &text.count);
	pp->line_comment = line_comment;
	return text;
}

/*
 * Read all arguments. Returns their number, of which the first `most` are stored; -1 after an
 * error. A macro without parameters has no arguments if there is nothing in the parentheses.
 */
static long read_all_arguments(struct pp *pp, const struct macro *macro, struct loc use,
			       struct text *arguments)
{
	size_t count = 0;
	char end = ',';

	leave_ended_macros(pp);
	pp_top(pp)->at = skip_argument_space(pp_top(pp)) + 1;
	while (end == ',') {
		struct text text = {NULL, 0, 0};

		if (!read_one_argument(pp, use, &text, &end)) {
			diag_error(pp->diag, use, "the arguments of macro '%s' have no ')'",
				   macro->name->text);
			return -1;
		}
		text = trim_argument(text);
		if (!text.count && end == ')' && !count && !macro->param_count)
			return 0;
		if (count < macro->param_count)
			arguments[count] = text;
		count++;
	}
	return (long)count;
}

/* The text of the macro with the arguments in place of parameters. */
static void substitute_parameters(struct pp *pp, const struct macro *macro,
				  const struct text *arguments, struct text *out)
{
	struct frame f = {.kind = FRAME_MACRO, .text = macro->text, .end = macro->length};

	while (f.at < f.end && out->count <= EXPANSION_MAX) {
		const char *from = f.text + f.at;
		const struct name *name;
		size_t i = 0;
		uint32_t n;

		if (!lex_is_name_start(*from)) {
			n = measure_verbatim(pp, &f);
			put_text(pp, out, from, n);
			f.at += n;
			continue;
		}
		for (n = 1; f.at + n < f.end && lex_is_name(from[n]); n++)
			;
		name = names_get(pp->names, from, n);
		while (i < macro->param_count && macro->params[i] != name)
			i++;
		if (i < macro->param_count)
			put_text(pp, out, arguments[i].bytes, arguments[i].count);
		else
			put_text(pp, out, from, n);
		f.at += n;
	}
}

/*
 * Read the arguments of a use of `macro` and put them into its text, which goes to *text. False: an
 * error, which has been reported.
 */
static bool substitute_arguments(struct pp *pp, const struct macro *macro, struct loc use,
				 const char **text, size_t *length)
{
	struct text arguments[PARAMETERS_MAX], out = {NULL, 0, 0};
	bool line_comment = pp->line_comment;
	long count;

	assert(macro->params);
	if (pp->argument_depth == ARGUMENT_DEPTH)
		diag_fatal(pp->diag, use,
			   "macros in arguments of macros are nested more than %d deep",
			   ARGUMENT_DEPTH);
	count = read_all_arguments(pp, macro, use, arguments);
	if (count < 0)
		return false;
	if ((size_t)count != macro->param_count)
		return diag_error(pp->diag, use, "macro '%s' takes %zu argument%s, not %ld",
				  macro->name->text, macro->param_count,
				  macro->param_count == 1 ? "" : "s", count);
	pp->argument_depth++;
	for (size_t i = 0; i < macro->param_count; i++)
		arguments[i] = expand_argument(pp, arguments[i], use);
	pp->argument_depth--;
	pp->line_comment = false;
	substitute_parameters(pp, macro, arguments, &out);
	pp->line_comment = line_comment;
	put_text(pp, &out, "", 1);
	*text = out.bytes;
	*length = out.count - 1;
	return true;
}

/* -- expansion --------------------------------------------------------------------------------- */

/* Count the bytes of an expansion. An empty expansion counts, too, since it takes time. */
static void charge_expansion(struct pp *pp, struct loc use, size_t length)
{
	assert(use.macro);
	pp->expanded += length + 1;
	pp->expanded_all += length + 1;
	if (pp->expanded > EXPANSION_MAX)
		diag_fatal(pp->diag, use, "the macro '%s' expands to more than %u bytes",
			   use.macro->name->text, EXPANSION_MAX);
	if (pp->expanded_all > EXPANSION_ALL)
		diag_fatal(pp->diag, use, "all macros together expand to more than %u bytes",
			   EXPANSION_ALL);
}

bool macro_use(struct pp *pp, const struct name *name, struct loc loc)
{
	struct macro *macro = name->macro;
	const struct frame *top = pp_top(pp);
	const char *text;
	size_t length;
	struct frame *f;
	struct loc use = loc;

	if (!macro || macro->active || (macro->params && !arguments_follow(pp)))
		return false;
	if (top->kind == FRAME_MACRO || top->kind == FRAME_ARGUMENT) {
		use = top->use;
	} else {
		use.macro = macro;
		pp->expanded = 0;
	}
	text = macro->text;
	length = macro->length;
	if (macro->params && !substitute_arguments(pp, macro, use, &text, &length))
		return true;
	charge_expansion(pp, use, length);
	macro->active = true;
	f = pp_push(pp);
	f->kind = FRAME_MACRO;
	f->text = text;
	f->end = (uint32_t)length;
	f->macro = macro;
	f->use = use;
	f->separate = f[-1].separate;
	return true;
}

void macro_leave(struct pp *pp)
{
	assert(pp_top(pp)->kind == FRAME_MACRO && pp_top(pp)->macro->active);
	pp_top(pp)->macro->active = false;
	pp->depth--;
}

const char *macro_expand(struct pp *pp, size_t *length)
{
	struct text out = {NULL, 0, 0};
	const size_t bottom = pp->depth;
	uint32_t n;

	for (;;) {
		struct frame *f = pp_top(pp);

		if (f->at >= f->end) {
			if (pp->depth == bottom)
				break;
			macro_leave(pp);
			continue;
		}
		if (!pp->line_comment && lex_is_name_start(f->text[f->at])) {
			struct loc loc = pp_loc(pp, f->at);
			struct name *name;

			for (n = 1; f->at + n < f->end && lex_is_name(f->text[f->at + n]); n++)
				;
			name = names_get(pp->names, f->text + f->at, n);
			f->at += n;
			if (!macro_use(pp, name, loc))
				put_text(pp, &out, name->text, name->length);
			continue;
		}
		n = measure_verbatim(pp, f);
		put_text(pp, &out, f->text + f->at, n);
		f->at += n;
	}
	pp->depth--;
	*length = out.count;
	put_text(pp, &out, "", 1);
	return out.bytes;
}

const char *macro_line(struct pp *pp, uint32_t at, uint32_t end)
{
	struct frame *line = pp_push(pp);
	const struct frame *f = line - 1;
	size_t length;

	line->kind = FRAME_LINE;
	line->text = f->text + at;
	line->end = end - at;
	line->source = f->source;
	line->base = f->base + at;
	return macro_expand(pp, &length);
}

static const char *skip_define_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static const char *skip_define_name(const char *p, const char *end)
{
	if (p < end && lex_is_name_start(*p))
		while (p < end && lex_is_name(*p))
			p++;
	return p;
}

/*
 * `text` is a % line without the %. The number of a "#define NAME number" may be in parentheses and
 * have a suffix of C, or be a name recorded before. Other lines are ignored.
 */
void macro_note_define(struct pp *pp, const char *text, size_t length, bool skipped)
{
	const char *end = text + length, *p = skip_define_blanks(text, end), *from;
	struct c_define define = {.known = true, .skipped = skipped}, *old;
	struct name *name;
	bool large;

	if (p == end || *p != '#')
		return;
	p = skip_define_blanks(p + 1, end);
	if (end - p < 7 || memcmp(p, "define", 6) || lex_is_name(p[6]))
		return;
	from = p = skip_define_blanks(p + 6, end);
	p = skip_define_name(p, end);
	if (p == from || p == end || (*p != ' ' && *p != '\t'))
		return;
	name = names_get(pp->names, from, (size_t)(p - from));
	p = skip_define_blanks(p, end);
	while (p < end && (*p == '(' || *p == ' '))
		p++;
	from = p;
	while (p < end && lex_is_name(*p))
		p++;
	while (p > from + 1 && strchr("uUlL", p[-1]))
		p--;
	if (!lex_number(from, (size_t)(p - from), &define.value, &large) || large) {
		const struct name *other = names_get(pp->names, from, (size_t)(p - from));

		if (p == from || !lex_is_name_start(*from) || !other->c_define)
			return;
		define.value = other->c_define->value;
		define.known = other->c_define->known;
	}
	p += strspn(p, "uUlL");
	while (p < end && (*p == ')' || *p == ' ' || *p == '\t'))
		p++;
	if (p < end && (*p != '/' || end - p < 2 || p[1] != '*'))
		return;
	old = name->c_define;
	if (old && old->skipped <= skipped) {
		if (old->skipped == skipped && old->value != define.value)
			old->known = false;
		return;
	}
	name->c_define = arena_alloc(pp->arena, sizeof(define));
	*name->c_define = define;
}
