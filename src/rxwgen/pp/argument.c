/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments of macros. */
#include <assert.h>
#include <string.h>

#include "rxwgen/pp/pp_internal.h"
#include "rxwgen/text/macro.h"

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

bool argument_follows(struct pp *pp)
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
			text_put(pp, text, " ", 1);
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
			n = macro_verbatim_length(pp, f);
		text_put(pp, text, c == '\n' ? " " : f->text + f->at, n);
		f->at += n;
		if (text->count > EXPANSION_MAX)
			diag_fatal(pp->diag, use,
				   "an argument of macro '%s' has more than %u bytes",
				   use.macro->name->text, EXPANSION_MAX);
	}
	return false;
}

/* Without leading and trailing blanks. */
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
			n = macro_verbatim_length(pp, &f);
			text_put(pp, out, from, n);
			f.at += n;
			continue;
		}
		for (n = 1; f.at + n < f.end && lex_is_name(from[n]); n++)
			;
		name = names_get(pp->names, from, n);
		while (i < macro->param_count && macro->params[i] != name)
			i++;
		if (i < macro->param_count)
			text_put(pp, out, arguments[i].bytes, arguments[i].count);
		else
			text_put(pp, out, from, n);
		f.at += n;
	}
}

bool argument_substitute(struct pp *pp, const struct macro *macro, struct loc use,
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
	if ((size_t)count != macro->param_count) {
		diag_error(pp->diag, use, "macro '%s' takes %zu argument%s, not %ld",
			   macro->name->text, macro->param_count,
			   macro->param_count == 1 ? "" : "s", count);
		return false;
	}
	pp->argument_depth++;
	for (size_t i = 0; i < macro->param_count; i++)
		arguments[i] = expand_argument(pp, arguments[i], use);
	pp->argument_depth--;
	pp->line_comment = false;
	substitute_parameters(pp, macro, arguments, &out);
	pp->line_comment = line_comment;
	text_put(pp, &out, "", 1);
	*text = out.bytes;
	*length = out.count - 1;
	return true;
}
