/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions of #if and #elif. */
#include <assert.h>
#include <string.h>

#include "rxwgen/pp/pp_internal.h"
#include "rxwgen/text/expression.h"

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

bool condition_value(struct pp *pp, const char *text, uint32_t end, uint32_t base)
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
