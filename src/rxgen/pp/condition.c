/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions of #if and #elif. */
#include <string.h>

#include "rxgen/pp/pp_internal.h"

/* A name that is not a macro has the value 0; the operand of `defined` is not expanded. */
struct reader {
	struct pp *pp;
	struct token token;
	size_t bottom; /* depth of the stack when the line is on top */
	unsigned depth;
	bool wrong; /* an error was reported; further ones are suppressed */
	bool raw;   /* do not expand macros: the operand of `defined` */
};

static void next(struct reader *r)
{
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

static int64_t fail(struct reader *r, const char *expected)
{
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
	r->wrong = true;
	return 0;
}

static int64_t logical_or(struct reader *r);

static int64_t defined(struct reader *r)
{
	bool parentheses;
	int64_t value = 0;

	r->raw = true;
	next(r);
	parentheses = r->token.kind == '(';
	if (parentheses)
		next(r);
	r->raw = false;
	if (!r->token.name)
		return fail(r, "a name after 'defined'");
	value = r->token.name->macro != NULL;
	next(r);
	if (parentheses) {
		if (r->token.kind != ')')
			return fail(r, "')'");
		next(r);
	}
	return value;
}

static int64_t unary(struct reader *r)
{
	int64_t value;

	if (r->wrong)
		return 0;
	if (r->token.name && !strcmp(r->token.name->text, "defined"))
		return defined(r);
	if (r->token.kind == TOKEN_NUMBER) {
		value = r->token.value;
		r->wrong |= r->token.wrong;
		next(r);
		return value;
	}
	if (r->token.name) {
		next(r);
		return 0;
	}
	if (r->token.kind != '!' && r->token.kind != '(')
		return fail(r, "a value");
	if (r->depth == CONDITION_DEPTH) {
		if (!r->wrong)
			diag_error(r->pp->diag, r->token.loc,
				   "'(' and '!' are nested more than %d deep", CONDITION_DEPTH);
		r->wrong = true;
		return 0;
	}
	r->depth++;
	if (r->token.kind == '!') {
		next(r);
		value = !unary(r);
	} else {
		next(r);
		value = logical_or(r);
		if (!r->wrong && r->token.kind != ')')
			fail(r, "')'");
		next(r);
	}
	r->depth--;
	return value;
}

static int64_t comparison(struct reader *r)
{
	int64_t left = unary(r), right;

	while (!r->wrong) {
		int kind = r->token.kind;

		if (kind != '<' && kind != '>' && (kind < TOKEN_EQUAL || kind > TOKEN_AT_LEAST))
			break;
		next(r);
		right = unary(r);
		switch (kind) {
		case '<':
			left = left < right;
			break;
		case '>':
			left = left > right;
			break;
		case TOKEN_EQUAL:
			left = left == right;
			break;
		case TOKEN_UNEQUAL:
			left = left != right;
			break;
		case TOKEN_AT_MOST:
			left = left <= right;
			break;
		default:
			left = left >= right;
			break;
		}
	}
	return left;
}

static int64_t logical_and(struct reader *r)
{
	int64_t left = comparison(r);

	while (!r->wrong && r->token.kind == TOKEN_AND) {
		next(r);
		left = (comparison(r) != 0) & (left != 0);
	}
	return left;
}

static int64_t logical_or(struct reader *r)
{
	int64_t left = logical_and(r);

	while (!r->wrong && r->token.kind == TOKEN_OR) {
		next(r);
		left = (logical_and(r) != 0) | (left != 0);
	}
	return left;
}

bool condition_value(struct pp *pp, const char *text, uint32_t end, uint32_t base)
{
	struct reader r = {.pp = pp};
	struct frame *f = pp_push(pp);
	int64_t value;

	f->kind = FRAME_LINE;
	f->text = text;
	f->end = end;
	f->source = f[-1].source;
	f->base = base;
	r.bottom = pp->depth;
	pp->in_condition = true;
	next(&r);
	value = logical_or(&r);
	if (!r.wrong && r.token.kind != TOKEN_END)
		fail(&r, "an operator or the end of the line");
	while (pp->depth > r.bottom)
		macro_leave(pp);
	pp->depth--;
	pp->in_condition = false;
	return value != 0 && !r.wrong;
}
