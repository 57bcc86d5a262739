/* SPDX-License-Identifier: BSD-2-Clause */
/* Constant expressions of declarations and of #if lines, in signed arithmetic of 64 bits. */
#ifndef RXWGEN_EXPRESSION_H
#define RXWGEN_EXPRESSION_H

#include "rxwgen/text/diag.h"
#include "rxwgen/text/token.h"

/* Maximum nesting of parentheses and unary operators. */
#define EXPRESSION_DEPTH 64

/* An expression that is being read. The owner sets the first members, the rest is zero. */
struct expression {
	struct diag *diag;
	const struct token *token; /* the current token */
	void *owner;
	void (*advance)(void *owner);
	/*
	 * Read an operand at the current token, which is neither an operator nor a parenthesis. False:
	 * a syntax error, which has been reported.
	 */
	bool (*operand)(struct expression *e, int64_t *value);
	/* Report "expected EXPECTED, found …"; always false. */
	bool (*unexpected)(void *owner, const char *expected);
	bool condition; /* of #if: comparisons and logical operators are valid */

	bool invalid;	      /* the value is invalid, which was reported */
	unsigned unevaluated; /* > 0: in an operand of && or || without influence */
	unsigned depth, tokens;
};

/* Read an expression. False: a syntax error. The value counts unless e->invalid is set. */
bool expression_read(struct expression *e, int64_t *value);

#endif
