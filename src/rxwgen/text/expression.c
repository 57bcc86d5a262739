/* SPDX-License-Identifier: BSD-2-Clause */
/* Constant expressions, by precedence climbing. */
#include "rxwgen/text/token.h"

#include <assert.h>
#include <inttypes.h>

struct operator
{
	int kind, precedence;
	bool condition; /* valid only in #if lines */
};

/* The precedence is that of C. */
static const struct operator operators[] = {
	{TOKEN_OR, 1, true},
	{TOKEN_AND, 2, true},
	{'|', 3, false},
	{'^', 4, false},
	{'&', 5, false},
	{TOKEN_EQUAL, 6, true},
	{TOKEN_UNEQUAL, 6, true},
	{'<', 7, true},
	{'>', 7, true},
	{TOKEN_AT_MOST, 7, true},
	{TOKEN_AT_LEAST, 7, true},
	{TOKEN_SHIFT_LEFT, 8, false},
	{TOKEN_SHIFT_RIGHT, 8, false},
	{'+', 9, false},
	{'-', 9, false},
	{'*', 10, false},
	{'/', 10, false},
	{'%', 10, false},
};

static const struct operator* find_binary_operator(const struct expression *e)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (operators[i].kind == e->token->kind &&
		    (e->condition || !operators[i].condition))
			return &operators[i];
	return NULL;
}

static void advance_expression(struct expression *e)
{
	e->tokens++;
	e->advance(e->owner);
}

/* Report an invalid value, unless it has no influence or an error was reported before. */
static void reject_value(struct expression *e, struct loc loc, const char *text)
{
	if (!e->invalid && !e->unevaluated) {
		diag_error(e->diag, loc, "%s", text);
		e->invalid = true;
	}
}

static void reject_overflow_of(struct expression *e, struct loc loc, int kind)
{
	char text[80], room[32];

	snprintf(text, sizeof(text), "the result of %s does not fit into 64 bits",
		 token_kind_text(kind, room, sizeof(room)));
	reject_value(e, loc, text);
}

static void compute_shift(struct expression *e, struct loc loc, int kind, int64_t *left,
			  int64_t count)
{
	char text[80];

	assert(kind == TOKEN_SHIFT_LEFT || kind == TOKEN_SHIFT_RIGHT);
	if (count < 0 || count > 63) {
		snprintf(text, sizeof(text), "a shift by %" PRId64 " is out of range: 0 to 63",
			 count);
		reject_value(e, loc, text);
	} else if (kind == TOKEN_SHIFT_RIGHT) {
		*left = *left < 0 ? ~(~*left >> count) : *left >> count;
	} else if (count == 63 && *left == -1) {
		*left = INT64_MIN;
	} else if ((count == 63 && *left) ||
		   __builtin_mul_overflow(*left, (int64_t)1 << count % 63, left)) {
		reject_overflow_of(e, loc, kind);
	}
}

static void compute_quotient(struct expression *e, struct loc loc, int kind, int64_t *left,
			     int64_t right)
{
	assert(kind == '/' || kind == '%');
	if (!right)
		reject_value(e, loc, "division by zero");
	else if (right == -1 && kind == '%')
		*left = 0;
	else if (right == -1 && *left == INT64_MIN)
		reject_overflow_of(e, loc, kind);
	else
		*left = kind == '/' ? *left / right : *left % right;
}

static bool compute_arithmetic(int kind, int64_t left, int64_t right, int64_t *result)
{
	switch (kind) {
	case '+':
		return !__builtin_add_overflow(left, right, result);
	case '-':
		return !__builtin_sub_overflow(left, right, result);
	default:
		return !__builtin_mul_overflow(left, right, result);
	}
}

static int64_t compute_comparison(int kind, int64_t left, int64_t right)
{
	switch (kind) {
	case '<':
		return left < right;
	case '>':
		return left > right;
	case TOKEN_AT_MOST:
		return left <= right;
	case TOKEN_AT_LEAST:
		return left >= right;
	case TOKEN_EQUAL:
		return left == right;
	default:
		return left != right;
	}
}

static void apply_operator(struct expression *e, struct loc loc, int kind, int64_t *left,
			   int64_t right)
{
	switch (kind) {
	case TOKEN_OR:
		*left = *left || right;
		break;
	case TOKEN_AND:
		*left = *left && right;
		break;
	case '|':
		*left |= right;
		break;
	case '^':
		*left ^= right;
		break;
	case '&':
		*left &= right;
		break;
	case '/':
	case '%':
		compute_quotient(e, loc, kind, left, right);
		break;
	case TOKEN_SHIFT_LEFT:
	case TOKEN_SHIFT_RIGHT:
		compute_shift(e, loc, kind, left, right);
		break;
	case '+':
	case '-':
	case '*':
		if (!compute_arithmetic(kind, *left, right, left))
			reject_overflow_of(e, loc, kind);
		break;
	default:
		*left = compute_comparison(kind, *left, right);
		break;
	}
}

static bool read_binary(struct expression *e, int least, int64_t *value);

/* Parentheses or a unary operator. */
static bool read_prefixed(struct expression *e, int kind, int64_t *value)
{
	struct loc loc = e->token->loc;

	if (e->depth == EXPRESSION_DEPTH)
		return diag_error(e->diag, loc,
				  "parentheses and operators are nested more than %d deep",
				  EXPRESSION_DEPTH);
	e->depth++;
	advance_expression(e);
	if (kind == '(') {
		if (!read_binary(e, 1, value))
			return false;
		if (e->token->kind != ')')
			return e->unexpected(e->owner, "')'");
		advance_expression(e);
	} else if (!read_binary(e, 11, value)) {
		return false;
	} else if (kind == '!') {
		*value = !*value;
	} else if (kind == '~') {
		*value = ~*value;
	} else if (kind == '-' && __builtin_sub_overflow((int64_t)0, *value, value)) {
		reject_overflow_of(e, loc, kind);
	}
	assert(e->depth > 0);
	e->depth--;
	return true;
}

static bool read_unary(struct expression *e, int64_t *value)
{
	int kind = e->token->kind;

	if (kind == '(' || kind == '-' || kind == '+' || kind == '~' ||
	    (kind == '!' && e->condition))
		return read_prefixed(e, kind, value);
	e->tokens++;
	return e->operand(e, value);
}

/* A sequence of operators with a precedence of at least `least`. */
static bool read_binary(struct expression *e, int least, int64_t *value)
{
	const struct operator* op;
	struct loc loc;
	int64_t right;
	bool decided;

	if (!read_unary(e, value))
		return false;
	while ((op = find_binary_operator(e)) && op->precedence >= least) {
		loc = e->token->loc;
		decided = (op->kind == TOKEN_AND && !*value) || (op->kind == TOKEN_OR && *value);
		advance_expression(e);
		e->unevaluated += decided;
		if (!read_binary(e, op->precedence + 1, &right))
			return false;
		e->unevaluated -= decided;
		apply_operator(e, loc, op->kind, value, right);
	}
	return true;
}

bool expression_read(struct expression *e, int64_t *value)
{
	*value = 0;
	return read_binary(e, 1, value);
}
