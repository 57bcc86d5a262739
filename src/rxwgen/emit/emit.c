/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of an output: lines, indentation, line breaks in the style of .clang-format, comments, columns. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

#define COLUMNS	     100
#define CONTINUATION 8 /* columns that a line moves in when it cannot be aligned */

struct emit_piece {
	struct emit_piece *next;
	char text[];
};

/* -- strings and raw text ---------------------------------------------------------------------- */

char *emit_vformat(struct emit *e, const char *format, va_list list)
{
	struct emit_piece *piece;
	va_list again;
	int length;

	va_copy(again, list);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	piece = length < 0 ? NULL : malloc(sizeof(*piece) + (size_t)length + 1);
	if (!piece) {
		e->failed = true;
		return (char *)"";
	}
	vsnprintf(piece->text, (size_t)length + 1, format, list);
	piece->next = e->pieces;
	e->pieces = piece;
	return piece->text;
}

const char *emit_format(struct emit *e, const char *format, ...)
{
	const char *text;
	va_list list;

	va_start(list, format);
	text = emit_vformat(e, format, list);
	va_end(list);
	return text;
}

void emit_forget(struct emit *e)
{
	while (e->pieces) {
		struct emit_piece *next = e->pieces->next;

		free(e->pieces);
		e->pieces = next;
	}
	e->index = NULL;
}

void emit_list_add(struct emit_list *list, const char *mark, const char *text)
{
	size_t need = strlen(mark) + strlen(text) + 3;

	if (list->room - list->length < need) {
		size_t room = 2 * list->room + need;
		char *more = realloc(list->text, room);

		if (!more) {
			list->e->failed = true;
			return;
		}
		list->text = more;
		list->room = room;
	}
	list->length += (size_t)sprintf(list->text + list->length, ", %s%s", mark, text);
}

const char *emit_list_end(struct emit_list *list)
{
	const char *text = list->text ? emit_format(list->e, "%s", list->text) : "";

	free(list->text);
	return text;
}

static void append_text(struct emit *e, const char *text, size_t length)
{
	assert(e->length <= e->room);
	if (e->failed)
		return;
	if (e->room - e->length <= length) {
		size_t room = 2 * e->room + length + 4096;
		char *more = realloc(e->text, room);

		if (!more) {
			e->failed = true;
			return;
		}
		e->text = more;
		e->room = room;
	}
	memcpy(e->text + e->length, text, length);
	e->length += length;
	e->text[e->length] = '\0';
}

/* Width of a text in columns, with tabs of eight. */
static size_t measure_columns(const char *text, size_t length)
{
	size_t column = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\t')
			column += 8 - column % 8;
		else
			column += ((unsigned char)text[i] & 0xc0) != 0x80;
	}
	return column;
}

/* White space from column `from` to `to`, with tabs. `out` has room for to - from + 1 bytes. */
static size_t fill_space(char *out, size_t from, size_t to)
{
	size_t length = 0;

	assert(from <= to);
	if (to - from > 1) {
		for (size_t next = from + 8 - from % 8; next <= to; next = from + 8) {
			out[length++] = '\t';
			from = next;
		}
	}
	while (from < to) {
		out[length++] = ' ';
		from++;
	}
	out[length] = '\0';
	return length;
}

static void append_indentation(struct emit *e, size_t columns)
{
	char space[512];

	if (columns >= sizeof(space))
		columns = sizeof(space) - 1;
	append_text(e, space, fill_space(space, 0, columns));
}

void emit_raw(struct emit *e, const char *line)
{
	append_text(e, line, strlen(line));
	append_text(e, "\n", 1);
}

void emit_blank(struct emit *e)
{
	size_t n = e->length;

	if (n < 2 || e->text[n - 2] == '\n' || (e->text[n - 2] == '{' && e->depth))
		return;
	append_text(e, "\n", 1);
}

/* -- line breaks ------------------------------------------------------------------------------- */

/*
 * A long line is broken after a comma, semicolon or logical operator: the last one that fits in the
 * outermost brackets. The rest is aligned with the bracket. The line is broken after an assignment
 * or the '(' of a call instead if the penalty is lower. Penalties are those of clang-format; each
 * level of brackets adds to them.
 */
enum {
	PENALTY_ASSIGNMENT = 2,
	PENALTY_BREAK = 1,
	PENALTY_INSIDE = 19,
	PENALTY_INSIDE_HEAD = 100,
	PENALTY_RETURN_TYPE = 60,
	PENALTY_LEVEL = 20,
	PENALTY_OVERFLOW = 1000000
};

struct brackets {
	size_t column[32];
	size_t depth;
};

/* Track brackets in text[0..length), which begins at `column`. */
static void track_brackets(struct brackets *open, const char *text, size_t length, size_t column)
{
	bool quoted = false;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		if (quoted)
			continue;
		if (strchr("({[", text[i])) {
			if (open->depth < 32)
				open->column[open->depth] = column + i + 1;
			open->depth++;
		} else if (strchr(")}]", text[i]) && open->depth) {
			open->depth--;
		}
	}
}

static bool may_break_at(const char *text, size_t i)
{
	if (text[i] != ' ' || i < 2)
		return false;
	return text[i - 1] == ',' || text[i - 1] == ';' || !memcmp(text + i - 2, "||", 2) ||
	       !memcmp(text + i - 2, "&&", 2);
}

/* The offset of the blank to replace by a line break; 0: none. `text` begins at `column`. */
static size_t find_break(const struct brackets *before, const char *text, size_t column)
{
	struct brackets open = *before;
	size_t best = 0, best_depth = 32;

	for (size_t i = 0; text[i] && column + i <= COLUMNS; i++) {
		track_brackets(&open, text + i, 1, column + i);
		if (may_break_at(text, i) && open.depth && open.depth <= best_depth &&
		    open.depth < 32) {
			best = i;
			best_depth = open.depth;
		}
	}
	return best;
}

/* Break `text`, which begins at `column`, into lines; returns the penalty. */
static unsigned lay_out_line(struct emit *e, struct brackets open, const char *text, size_t column,
			     bool print)
{
	unsigned penalty = 0;

	while (column + strlen(text) > COLUMNS) {
		size_t at = find_break(&open, text, column);

		if (!at)
			break;
		track_brackets(&open, text, at, column);
		if (print)
			append_text(e, text, at);
		text += at + 1;
		assert(open.depth > 0 && open.depth <= 32);
		column = open.column[open.depth - 1];
		if (print) {
			append_text(e, "\n", 1);
			append_indentation(e, column);
		}
		penalty += PENALTY_BREAK + PENALTY_LEVEL * (unsigned)open.depth;
	}
	if (print)
		append_text(e, text, strlen(text));
	return column + strlen(text) > COLUMNS ? penalty + PENALTY_OVERFLOW : penalty;
}

/*
 * The best break after a '(': its offset in `text`, 0 if there is none. *open and *to are the
 * brackets and the column after the break.
 */
static size_t find_best_inside(struct emit *e, const char *text, size_t column,
			       struct brackets *open, size_t *to, unsigned *penalty)
{
	const unsigned base = e->depth ? PENALTY_INSIDE : PENALTY_INSIDE_HEAD;
	size_t best = 0;

	for (size_t i = 1; text[i]; i++) {
		struct brackets now = {.depth = 0};
		size_t in = column + CONTINUATION;
		unsigned sum;

		if (text[i - 1] != '(' || text[i] == ')' || column + i > COLUMNS)
			continue;
		track_brackets(&now, text, i, column);
		if (!now.depth || now.depth > 32)
			continue;
		if (now.depth > 1)
			in = now.column[now.depth - 2] + CONTINUATION;
		now.column[now.depth - 1] = in;
		sum = base + PENALTY_LEVEL * (unsigned)now.depth +
		      lay_out_line(e, now, text + i, in, false);
		if (sum < *penalty) {
			*penalty = sum;
			*open = now;
			*to = in;
			best = i;
		}
	}
	return best;
}

/* Length of a function's return type if it goes on a line of its own, else 0. */
static size_t measure_return_type(struct emit *e, const char *text, unsigned *penalty)
{
	const struct brackets none = {.depth = 0};
	size_t at = strcspn(text, "(");
	unsigned sum;

	while (at && text[at - 1] != ' ')
		at--;
	if (e->depth || !at || *text == '#')
		return 0;
	sum = PENALTY_RETURN_TYPE + lay_out_line(e, none, text + at, 0, false);
	if (sum >= *penalty)
		return 0;
	*penalty = sum;
	return at;
}

static void append_line(struct emit *e, const char *text)
{
	const struct brackets none = {.depth = 0};
	struct brackets open = none;
	size_t column = (size_t)e->depth * 8, at = 0, to = column;
	const char *assign = strstr(text, " = ");
	unsigned penalty = lay_out_line(e, none, text, column, false);

	if (penalty && assign && assign[3] != '{') {
		unsigned other = PENALTY_ASSIGNMENT +
				 lay_out_line(e, none, assign + 3, column + CONTINUATION, false);

		if (other < penalty) {
			penalty = other;
			at = (size_t)(assign - text) + 3;
			to = column + CONTINUATION;
		}
	}
	/* A function pointer is not broken in other places. */
	if (penalty && !strstr(text, " (*")) {
		size_t alone = measure_return_type(e, text, &penalty);
		size_t inside = find_best_inside(e, text, column, &open, &to, &penalty);

		at = inside ? inside : alone ? alone : at;
	}
	append_indentation(e, column);
	if (at) {
		append_text(e, text, text[at - 1] == ' ' ? at - 1 : at);
		append_text(e, "\n", 1);
		append_indentation(e, to);
	}
	lay_out_line(e, at ? open : none, text + at, to, true);
	append_text(e, "\n", 1);
}

/* Is it the label of a goto? */
static bool is_goto_label(const char *line)
{
	size_t length = strcspn(line, " :");

	return !strcmp(line + length, ":") && strcmp(line, "default:") != 0;
}

/* The lines of `text`, which it changes. Braces indent the lines between them. */
static void append_code(struct emit *e, char *text)
{
	for (char *line; !e->failed && (line = strsep(&text, "\n"));) {
		unsigned depth = e->depth, tabs = (unsigned)strspn(line, "\t");

		line += tabs;
		if (!*line) {
			emit_blank(e);
			continue;
		}
		if (is_goto_label(line)) {
			emit_raw(e, line);
			continue;
		}
		assert(depth > 0 || *line != '}');
		depth -= *line == '}';
		e->depth = depth + tabs;
		if (!strncmp(line, "case ", 5) || !strcmp(line, "default:"))
			e->depth--;
		append_line(e, line);
		e->depth = depth + (line[strlen(line) - 1] == '{');
	}
}

void emit_line(struct emit *e, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	append_code(e, emit_vformat(e, format, list));
	va_end(list);
}

void emit_text(struct emit *e, const char *format, ...)
{
	const char *text;
	va_list list;

	va_start(list, format);
	text = emit_vformat(e, format, list);
	append_text(e, text, strlen(text));
	va_end(list);
}

void emit_check(struct emit *e, const char *call, const char *fail)
{
	emit_line(e, "if (!%s)\n\t%s", call, fail);
}

/* -- comments ---------------------------------------------------------------------------------- */

/*
 * The text of a comment without decoration, control characters, nested delimiters, and empty lines
 * at the start and the end.
 */
static char *clean_comment_text(struct emit *e, const char *text)
{
	char *copy = strdup(text), *to = copy;

	if (!copy) {
		e->failed = true;
		return NULL;
	}
	while (*text) {
		text += strspn(text, " \t\r");
		while (*text == '*')
			text++;
		text += strspn(text, " \t\r");
		for (; *text && *text != '\n'; text++) {
			char c = *text == '\t' ? ' ' : *text;

			if ((unsigned char)c < ' ' || (c == '*' && to > copy && to[-1] == '/'))
				continue;
			*to++ = c;
		}
		while (to > copy && to[-1] == ' ')
			to--;
		if (*text)
			text++;
		if (to > copy)
			*to++ = '\n';
	}
	while (to > copy && to[-1] == '\n')
		to--;
	*to = '\0';
	return copy;
}

/* A line of a block comment, broken if it is too long. */
static void append_comment_line(struct emit *e, const char *text, size_t length)
{
	size_t room = COLUMNS - (size_t)e->depth * 8 - 3;

	assert((size_t)e->depth * 8 + 3 < COLUMNS);
	do {
		size_t take = length, blank;

		while (measure_columns(text, take) > room) {
			for (blank = take - 1; blank && text[blank] != ' ';)
				blank--;
			if (!blank)
				break;
			take = blank;
		}
		append_indentation(e, (size_t)e->depth * 8);
		append_text(e, length ? " * " : " *", length ? 3 : 2);
		append_text(e, text, take);
		append_text(e, "\n", 1);
		while (take < length && text[take] == ' ')
			take++;
		text += take;
		length -= take;
	} while (length);
}

void emit_comment(struct emit *e, const char *text)
{
	char *copy = text ? clean_comment_text(e, text) : NULL;

	if (copy && *copy) {
		size_t length = strlen(copy);

		if (!strchr(copy, '\n') &&
		    (size_t)e->depth * 8 + measure_columns(copy, length) + 6 <= COLUMNS) {
			append_indentation(e, (size_t)e->depth * 8);
			append_text(e, "/* ", 3);
			append_text(e, copy, length);
			append_text(e, " */\n", 4);
		} else {
			emit_line(e, "/*");
			for (const char *line = copy;; line++) {
				size_t n = strcspn(line, "\n");

				append_comment_line(e, line, n);
				line += n;
				if (!*line)
					break;
			}
			emit_line(e, " */");
		}
	}
	free(copy);
}

void emit_commented(struct emit *e, const char *line, const char *text)
{
	char *copy = text ? clean_comment_text(e, text) : NULL;

	/* A comment before a closing brace is indented as the brace. */
	e->depth -= *line == '}' && !e->failed;
	if (copy && *copy && !strchr(copy, '\n') &&
	    (size_t)e->depth * 8 + strlen(line) + measure_columns(copy, strlen(copy)) + 7 <=
		    COLUMNS) {
		append_indentation(e, (size_t)e->depth * 8);
		append_text(e, line, strlen(line));
		append_text(e, " /* ", 4);
		append_text(e, copy, strlen(copy));
		append_text(e, " */\n", 4);
	} else {
		emit_comment(e, copy);
		append_line(e, line);
	}
	free(copy);
}

void emit_row(struct emit *e, const char *line, int number)
{
	const char *whole = emit_format(e, "%s /* %d */", line, number);

	emit_line(e, "%s", (size_t)e->depth * 8 + strlen(whole) > COLUMNS ? line : whole);
}

void emit_title(struct emit *e, const char *what)
{
	const char *name = strrchr(e->file->path, '/');

	emit_comment(e, emit_format(e, "Made by rxwgen from %s: %s. Do not edit.",
				    name ? name + 1 : e->file->path, what));
}

bool emit_verbatim(struct emit *e, size_t index)
{
	const struct xg_item *item = &e->file->items[index];

	if (item->kind != XG_ITEM_LINE)
		return false;
	if (!index || item[-1].kind != XG_ITEM_LINE)
		emit_blank(e);
	emit_raw(e, item->text);
	return true;
}

const struct xg_package *emit_package(const struct emit *e, size_t number)
{
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (item->kind == XG_ITEM_PACKAGE && !number--)
			return item->package;
	}
	return NULL;
}

/* -- columns: values of consecutive macros, and trailing comments ------------------------------ */

/* A line without its LF. Alignment replaces the white space from `cut` to `tail`. */
struct line {
	const char *text;
	size_t length;
	size_t cut, tail; /* tail 0: nothing to align */
	size_t column;	  /* target column of the tail */
};

/* #define NAME VALUE */
static void find_macro_value(struct line *line)
{
	const char *text = line->text;
	size_t i;

	line->cut = line->tail = 0;
	if (line->length < 8 || memcmp(text, "#define ", 8))
		return;
	for (i = 8; i < line->length && !strchr(" \t(", text[i]);)
		i++;
	if (i < line->length && text[i] == '(') {
		while (i < line->length && text[i] != ')')
			i++;
		i++;
	}
	if (i >= line->length)
		return;
	line->cut = i;
	while (i < line->length && (text[i] == ' ' || text[i] == '\t'))
		i++;
	if (i < line->length && text[i] != '\\')
		line->tail = i;
	else
		line->cut = 0;
}

/* CODE, then a comment */
static void find_trailing_comment(struct line *line)
{
	const char *text = line->text;
	size_t i, code = 0;
	bool quoted = false;

	line->cut = line->tail = 0;
	if (line->length < 4 || memcmp(text + line->length - 2, "*/", 2))
		return;
	for (i = 0; i + 1 < line->length; i++) {
		if (text[i] == '"' && (!i || text[i - 1] != '\\'))
			quoted = !quoted;
		if (!quoted && text[i] == '/' && text[i + 1] == '*')
			break;
		if (text[i] != ' ' && text[i] != '\t')
			code = i + 1;
	}
	if (i + 1 >= line->length || !code || text[0] == '*' ||
	    memcmp(text + code - 1, "*/", 2) == 0)
		return;
	line->cut = code;
	line->tail = i;
}

/* Align lines[from..to) to the first column that all of them allow. */
static void align_line_group(struct line *lines, size_t from, size_t to)
{
	size_t column = 0;

	assert(from <= to);
	for (size_t i = from; i < to; i++) {
		size_t least = measure_columns(lines[i].text, lines[i].cut) + 1;

		if (least > column)
			column = least;
	}
	for (size_t i = from; i < to; i++)
		lines[i].column = column;
}

/* An empty line does not end a group of macros. */
static void align_macro_values(struct line *lines, size_t count)
{
	size_t from = 0;

	for (size_t i = 0; i <= count; i++) {
		if (i < count && lines[i].tail)
			continue;
		if (i < count && !lines[i].length && i > from)
			continue;
		align_line_group(lines, from, i);
		from = i + 1;
	}
}

/* A group ends before a line whose comment would exceed the last column. */
static void align_trailing_comments(struct line *lines, size_t count)
{
	size_t from = 0, least = 0, most = COLUMNS;

	for (size_t i = 0; i <= count; i++) {
		size_t min, max, tail;

		if (i == count || !lines[i].tail) {
			align_line_group(lines, from, i);
			from = i + 1;
			least = 0;
			most = COLUMNS;
			continue;
		}
		tail = measure_columns(lines[i].text + lines[i].tail,
				       lines[i].length - lines[i].tail);
		min = measure_columns(lines[i].text, lines[i].cut) + 1;
		max = tail < COLUMNS ? COLUMNS - tail : 0;
		if (max < min)
			max = min;
		if (i > from && (min > most || max < least)) {
			align_line_group(lines, from, i);
			from = i;
			least = 0;
			most = COLUMNS;
		}
		if (min > least)
			least = min;
		if (max < most)
			most = max;
	}
}

/* Align one kind of column in the text. */
static char *align_one_kind(const char *text, void (*find)(struct line *),
			    void (*align)(struct line *, size_t))
{
	size_t count = 0, room = 1, used = 0;
	struct line *lines;
	char *out;

	for (const char *at = text; *at; at++)
		count += *at == '\n';
	lines = calloc(count + 1, sizeof(*lines));
	if (!lines)
		return NULL;
	count = 0;
	for (const char *at = text; *at; at += lines[count++].length + 1) {
		lines[count].text = at;
		lines[count].length = strcspn(at, "\n");
		find(&lines[count]);
	}
	align(lines, count);
	for (size_t i = 0; i < count; i++)
		room += lines[i].length + 1 + (lines[i].tail ? lines[i].column : 0);
	out = malloc(room);
	for (size_t i = 0; out && i < count; i++) {
		const struct line *line = &lines[i];

		if (line->tail) {
			memcpy(out + used, line->text, line->cut);
			used += line->cut;
			used += fill_space(out + used, measure_columns(line->text, line->cut),
					   line->column);
		}
		memcpy(out + used, line->text + line->tail, line->length - line->tail);
		used += line->length - line->tail;
		out[used++] = '\n';
	}
	if (out)
		out[used] = '\0';
	free(lines);
	return out;
}

char *emit_align(const char *text)
{
	char *values = align_one_kind(text, find_macro_value, align_macro_values), *all = NULL;

	if (values)
		all = align_one_kind(values, find_trailing_comment, align_trailing_comments);
	free(values);
	return all;
}
