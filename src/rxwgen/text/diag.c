/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnostics: position, text, the source line and a caret below it. */
#include "rxwgen/text/source.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/text/token.h"

/* Bytes of a long line shown before the caret, and in total. */
#define SHOWN_BEFORE 100
#define SHOWN	     160

/* A continuation byte of UTF-8, which has no width on the screen. */
static bool is_continuation_byte(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Control characters become '?'. */
static void print_clean_text(FILE *out, const char *text, size_t length)
{
	for (; length; text++, length--) {
		unsigned char c = (unsigned char)*text;

		fputc(c == '\t' || (c >= ' ' && c != 0x7f) ? c : '?', out);
	}
}

static void print_source_line(FILE *out, struct loc loc)
{
	const struct source *source = loc.source;
	const char *text = source->text, *end;
	uint32_t start, at = loc.offset;

	if (at >= source->size)
		return;
	start = source->lines[source_line(source, at)];
	end = memchr(text + start, '\n', source->size - start);
	assert(start <= at);
	if (at - start > SHOWN_BEFORE)
		start = at - SHOWN_BEFORE;
	if (end - (text + start) > SHOWN)
		end = text + start + SHOWN;
	print_clean_text(out, text + start, (size_t)(end - (text + start)));
	fputc('\n', out);
	for (const char *p = text + start; p < text + at; p++)
		if (!is_continuation_byte(*p))
			fputc(*p == '\t' ? '\t' : ' ', out);
	fputs("^\n", out);
}

static void print_message(struct diag *diag, struct loc loc, const char *kind, const char *text)
{
	struct xg_place place;

	if (!loc.source) {
		fprintf(diag->out, "rxwgen: %s: %s\n", kind, text);
		return;
	}
	place = source_place(loc);
	fprintf(diag->out, "%s:%u:%u: %s: ", place.file, place.line, place.column, kind);
	print_clean_text(diag->out, text, strlen(text));
	fputc('\n', diag->out);
	print_source_line(diag->out, loc);
	if (loc.macro)
		diag_note(diag, loc.macro->loc, "the macro '%s' was defined here",
			  loc.macro->name->text);
}

/* Whether a warning was printed in an earlier pass; records it if not. */
static bool was_warning_printed(struct diag *diag, struct loc loc, const char *text)
{
	struct xg_place place = loc.source ? source_place(loc) : (struct xg_place){"rxwgen", 0, 0};
	char *line = NULL, **lines;

	if (!diag->printed ||
	    asprintf(&line, "%s:%u:%u: %s", place.file, place.line, place.column, text) < 0)
		return false;
	for (size_t i = 0; i < diag->printed->count; i++)
		if (!strcmp(diag->printed->lines[i], line)) {
			free(line);
			return true;
		}
	lines = realloc(diag->printed->lines, (diag->printed->count + 1) * sizeof(*lines));
	if (!lines) {
		free(line);
		return false;
	}
	diag->printed->lines = lines;
	lines[diag->printed->count++] = line;
	return false;
}

#define MESSAGE 1024
#define FORMAT(text, format)                                 \
	do {                                                 \
		va_list args;                                \
		va_start(args, format);                      \
		vsnprintf(text, sizeof(text), format, args); \
		va_end(args);                                \
	} while (0)

bool diag_error(struct diag *diag, struct loc loc, const char *format, ...)
{
	char text[MESSAGE];

	FORMAT(text, format);
	if (diag->errors >= DIAG_ERRORS) {
		fprintf(diag->out, "rxwgen: stopped after %u errors\n", diag->errors);
		longjmp(*diag->stop, 1);
	}
	diag->errors++;
	diag->quiet = false;
	print_message(diag, loc, "error", text);
	return false;
}

void diag_warning(struct diag *diag, struct loc loc, const char *format, ...)
{
	char text[MESSAGE];

	FORMAT(text, format);
	diag->quiet = diag->warnings == DIAG_WARNINGS || was_warning_printed(diag, loc, text);
	if (diag->quiet)
		return;
	diag->warnings++;
	print_message(diag, loc, "warning", text);
}

void diag_note(struct diag *diag, struct loc loc, const char *format, ...)
{
	char text[MESSAGE];

	FORMAT(text, format);
	loc.macro = NULL;
	if (!diag->quiet)
		print_message(diag, loc, "note", text);
}

void diag_fatal(struct diag *diag, struct loc loc, const char *format, ...)
{
	char text[MESSAGE];

	assert(diag->stop);
	FORMAT(text, format);
	diag->errors++;
	diag->quiet = false;
	print_message(diag, loc, "error", text);
	longjmp(*diag->stop, 1);
}

void diag_fatal_file(struct diag *diag, const char *what, const char *why)
{
	assert(diag->stop);
	diag->errors++;
	fprintf(diag->out, "%s: %s\n", what, why);
	longjmp(*diag->stop, 1);
}
