/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of the preprocessor: the stack of frames, and the scanner, from characters to tokens. */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "rxwgen/pp/pp_internal.h"

/* -- frames ------------------------------------------------------------------------------------ */

struct frame *pp_top(struct pp *pp)
{
	assert(pp->depth > 0);
	return &pp->frames[pp->depth - 1];
}

struct loc pp_loc(struct pp *pp, uint32_t at)
{
	const struct frame *f = pp_top(pp);

	if (f->kind == FRAME_MACRO || f->kind == FRAME_ARGUMENT)
		return f->use;
	return (struct loc){.source = f->source, .offset = f->base + at};
}

struct frame *pp_push(struct pp *pp)
{
	pp->frames = arena_grow(pp->arena, pp->frames, pp->depth, &pp->frame_room,
				sizeof(pp->frames[0]));
	memset(&pp->frames[pp->depth], 0, sizeof(pp->frames[0]));
	return &pp->frames[pp->depth++];
}

struct source *pp_load(struct pp *pp, const char *path)
{
	struct source *source;
	struct loc loc;

	for (source = pp->sources; source; source = source->next)
		if (!strcmp(source->name, path))
			return source;
	source = source_load(pp->arena, path);
	if (!source)
		return NULL;
	source->next = pp->sources;
	pp->sources = source;
	pp->inputs = arena_grow(pp->arena, pp->inputs, pp->input_count, &pp->input_room,
				sizeof(pp->inputs[0]));
	pp->inputs[pp->input_count++] = source->name;
	loc = (struct loc){.source = source};
	if (source->nul != SIZE_MAX) {
		loc.offset = (uint32_t)source->nul;
		diag_fatal(pp->diag, loc, "a byte with the value 0; the input is not text");
	}
	if (source->long_line != SIZE_MAX) {
		loc.offset = (uint32_t)source->long_line;
		diag_fatal(pp->diag, loc, "the line has more than %u bytes", SOURCE_LINE);
	}
	return source;
}

void pp_enter(struct pp *pp, struct source *source, bool separate)
{
	struct frame *f;

	/* An empty file counts, too, since it takes time. */
	pp->entered += source->size + 1024;
	if (pp->entered > SOURCE_ALL_MAX)
		diag_fatal_file(pp->diag, source->name, "the input is larger than 64 MiB");
	f = pp_push(pp);
	f->kind = FRAME_FILE;
	f->text = source->text;
	f->end = source->size;
	f->source = source;
	f->line_start = true;
	f->separate = separate;
	f->conditions = (unsigned)pp->condition_count;
	pp->files++;
}

bool lex_comment(const char *text, uint32_t at, uint32_t end, uint32_t *next)
{
	for (uint32_t i = at + 2; i + 1 < end; i++)
		if (text[i] == '*' && text[i + 1] == '/') {
			*next = i + 2;
			return true;
		}
	*next = end;
	return false;
}

void pp_skip_comment(struct pp *pp, struct frame *f)
{
	struct loc loc = pp_loc(pp, f->at);

	if (!lex_comment(f->text, f->at, f->end, &f->at))
		diag_error(pp->diag, loc, "unterminated comment");
}

/* -- tokens ------------------------------------------------------------------------------------ */

static const char punctuation[] = ":;,=*[]{}()<>+-/%&|^~";

bool lex_is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool lex_is_name(char c)
{
	return lex_is_name_start(c) || (c >= '0' && c <= '9');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int read_hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool lex_number(const char *text, size_t length, int64_t *value, bool *large)
{
	bool hex = length > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t sum = 0, base = hex ? 16 : 10;
	size_t i = hex ? 2 : 0;

	*large = false;
	*value = 0;
	if (i == length || (!hex && text[0] == '0' && length > 1))
		return false;
	for (; i < length; i++) {
		int digit = read_hex_digit(text[i]);

		if (digit < 0 || (uint64_t)digit >= base)
			return false;
		if (sum > (INT64_MAX - (uint64_t)digit) / base)
			*large = true;
		else
			sum = sum * base + (uint64_t)digit;
	}
	*value = (int64_t)sum;
	return true;
}

static void scan_name_token(struct pp *pp, struct token *token)
{
	struct frame *f = pp_top(pp);
	uint32_t from = f->at;

	while (f->at < f->end && lex_is_name(f->text[f->at]))
		f->at++;
	if (f->at - from > NAME_LONGEST)
		diag_error(pp->diag, token->loc, "the name has %u characters; the maximum is %d",
			   f->at - from, NAME_LONGEST);
	token->name = names_get(pp->names, f->text + from, f->at - from);
	token->kind = token->name->keyword ? token->name->keyword : TOKEN_NAME;
	token->text = token->name->text;
}

static void scan_number_token(struct pp *pp, struct token *token)
{
	struct frame *f = pp_top(pp);
	uint32_t from = f->at++;
	size_t length, digits;
	bool large;

	while (f->at < f->end && (lex_is_name(f->text[f->at]) || f->text[f->at] == '.'))
		f->at++;
	length = digits = f->at - from;
	token->kind = TOKEN_NUMBER;
	token->text = arena_copy(pp->arena, f->text + from, length);
	/* Suffixes of C are valid in #if lines. */
	while (pp->in_condition && digits > 1 && strchr("uUlL", token->text[digits - 1]))
		digits--;
	if (!lex_number(token->text, digits, &token->value, &large)) {
		token->wrong = true;
		if (strspn(token->text, "0123456789") == length)
			diag_error(pp->diag, token->loc,
				   "bad number '%.60s': a leading 0 would mean octal in C",
				   token->text);
		else
			diag_error(pp->diag, token->loc, "bad number '%.60s'", token->text);
	} else if (large) {
		token->wrong = true;
		diag_error(pp->diag, token->loc, "number '%.60s' is out of range", token->text);
	}
}

static void scan_string_token(struct pp *pp, struct token *token)
{
	struct frame *f = pp_top(pp);
	uint32_t from = ++f->at, backslashes = 0;

	while (f->at < f->end && f->text[f->at] != '"' && f->text[f->at] != '\n') {
		backslashes = f->text[f->at] == '\\' ? backslashes + 1 : 0;
		f->at++;
	}
	token->kind = TOKEN_STRING;
	token->text = arena_copy(pp->arena, f->text + from, f->at - from);
	if (f->at == f->end || f->text[f->at] != '"')
		diag_error(pp->diag, token->loc, "string without a closing quote on its line");
	else
		f->at++;
	if (backslashes % 2)
		diag_error(pp->diag, token->loc,
			   "string ends in a backslash, which would escape its closing quote in "
			   "C");
}

/* Operators of several characters, and those of #if lines. */
static bool scan_operator_token(struct pp *pp, struct token *token)
{
	static const struct {
		char text[3];
		int kind;
	} operators[] = {
		{"<<", TOKEN_SHIFT_LEFT}, {">>", TOKEN_SHIFT_RIGHT}, {"&&", TOKEN_AND},
		{"||", TOKEN_OR},	  {"==", TOKEN_EQUAL},	     {"!=", TOKEN_UNEQUAL},
		{"<=", TOKEN_AT_MOST},	  {">=", TOKEN_AT_LEAST},
	};
	struct frame *f = pp_top(pp);
	const char *p = f->text + f->at;

	for (size_t i = 0; i < (pp->in_condition ? sizeof(operators) / sizeof(operators[0]) : 2);
	     i++)
		if (f->end - f->at > 1 && p[0] == operators[i].text[0] &&
		    p[1] == operators[i].text[1]) {
			token->kind = operators[i].kind;
			token->text = operators[i].text;
			f->at += 2;
			return true;
		}
	if (*p != '!' || !pp->in_condition)
		return false;
	token->kind = '!';
	token->text = "!";
	f->at++;
	return true;
}

/* Characters that begin no token. */
static bool is_illegal_character(const struct frame *f, uint32_t at)
{
	char c = f->text[at];

	if (at + 1 < f->end && ((c == '/' && (f->text[at + 1] == '*' || f->text[at + 1] == '/')) ||
				(c == '@' && f->text[at + 1] == '{')))
		return false;
	return !lex_is_name(c) && !strchr(punctuation, c) && !strchr(" \t\n\v\f\r\"", c);
}

static void skip_illegal_text(struct pp *pp, struct loc loc)
{
	struct frame *f = pp_top(pp);
	unsigned char c = (unsigned char)f->text[f->at];
	uint32_t end;

	if (c == '/' && f->at + 1 < f->end && f->text[f->at + 1] == '/') {
		while (f->at < f->end && f->text[f->at] != '\n')
			f->at++;
		diag_error(pp->diag, loc, "'//' does not begin a comment; use /* and */");
		return;
	}
	if (c == '@' && f->at + 1 < f->end && f->text[f->at + 1] == '{') {
		for (end = f->at + 2; end < f->end; end++)
			if (f->text[end - 1] == '@' && f->text[end] == '}')
				break;
		f->at = end < f->end ? end + 1 : f->end;
		diag_error(pp->diag, loc,
			   "'@{': verbatim text is not supported; use lines that begin with %%");
		return;
	}
	do
		f->at++;
	while (f->at < f->end && is_illegal_character(f, f->at));
	if (c > ' ' && c < 0x7f)
		diag_error(pp->diag, loc, "illegal character '%c'", c);
	else
		diag_error(pp->diag, loc, "illegal character with the code 0x%02x", c);
}

bool lex_scan(struct pp *pp, struct token *token)
{
	struct frame *f = pp_top(pp);
	char c = f->text[f->at];

	assert(f->at < f->end);
	*token = (struct token){.loc = pp_loc(pp, f->at)};
	if (lex_is_name_start(c)) {
		scan_name_token(pp, token);
	} else if (is_digit(c)) {
		scan_number_token(pp, token);
	} else if (c == '"') {
		scan_string_token(pp, token);
	} else if (scan_operator_token(pp, token)) {
		return true;
	} else if (c && strchr(punctuation, c) &&
		   !(c == '/' && f->at + 1 < f->end && f->text[f->at + 1] == '/')) {
		token->kind = c;
		token->text = arena_copy(pp->arena, &c, 1);
		f->at++;
	} else {
		skip_illegal_text(pp, token->loc);
		return false;
	}
	return true;
}
