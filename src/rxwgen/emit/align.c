/* SPDX-License-Identifier: BSD-2-Clause */
/* Alignment of the values of consecutive macros and of trailing comments. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

#define COLUMNS 100

size_t emit_columns(const char *text, size_t length)
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

size_t emit_space(char *out, size_t from, size_t to)
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
		size_t least = emit_columns(lines[i].text, lines[i].cut) + 1;

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
		tail = emit_columns(lines[i].text + lines[i].tail, lines[i].length - lines[i].tail);
		min = emit_columns(lines[i].text, lines[i].cut) + 1;
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
			used += emit_space(out + used, emit_columns(line->text, line->cut),
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
