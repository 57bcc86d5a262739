/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and tokens of the language, macros, and constant expressions. */
#ifndef RXWGEN_TOKEN_H
#define RXWGEN_TOKEN_H

#include "rxwgen/text/source.h"

/* -- names: each identifier of the input once, with its meanings ------------------------------- */

#define NAME_LONGEST 127

struct symbol;
struct proc;

/* A line `%#define NAME number`. It is passed to C, but NAME may also be used as a bound. */
struct c_define {
	int64_t value;
	bool known;   /* false: lines with different values exist */
	bool skipped; /* found only in text that an #if excludes */
};

struct name {
	struct name *next; /* in the same slot */
	uint32_t hash, length;
	int keyword;	       /* enum token_kind, or 0 */
	struct macro *macro;   /* #define */
	struct symbol *symbol; /* type, constant, enum value */
	struct c_define *c_define;
	struct loc
		generated; /* package or procedure from which the C name is derived, or no source */
	struct loc field;  /* member or procedure of this name, which excludes a constant */
	unsigned scope;	   /* number of the last struct, union or parameter list with this name */
	struct loc member; /* position of the name in that scope */
	char text[];
};

struct names {
	struct arena *arena;
	struct name **slots;
	size_t slot_count, count;
};

void names_init(struct names *names, struct arena *arena);
struct name *names_get(struct names *names, const char *text, size_t length);

/* Whether the word is reserved in C and cannot be used as a name. */
bool name_is_c_word(const char *text);
/* Whether the generated code has a variable of this name in the scope of types and values. */
bool name_is_local(const char *text);
/* Whether it has another name that a constant, a macro in C, would replace. */
bool name_is_generated(const char *text);

/* A macro of the preprocessor. */
struct macro {
	const struct name *name;
	struct loc loc;		    /* of its definition */
	const struct name **params; /* of a macro with parameters, else NULL */
	size_t param_count;
	const char *text; /* without comments, leading and trailing blanks */
	uint32_t length;
	bool active; /* being expanded; not expanded again within itself */
};

/* -- tokens, the lexical units ----------------------------------------------------------------- */

/* A punctuation character is its own kind. */
enum token_kind {
	TOKEN_END = 256, /* of the input */
	TOKEN_NAME,
	TOKEN_NUMBER,
	TOKEN_STRING, /* text without its quotes */
	TOKEN_LINE,   /* a % line, text without the % */
	TOKEN_HEADER, /* an included file that is compiled separately; text names its header */

	TOKEN_SHIFT_LEFT,
	TOKEN_SHIFT_RIGHT,

	/* Only in #if lines. */
	TOKEN_AND,
	TOKEN_OR,
	TOKEN_EQUAL,
	TOKEN_UNEQUAL,
	TOKEN_AT_MOST,
	TOKEN_AT_LEAST,

	TOKEN_KEYWORDS,
	TOKEN_CONST = TOKEN_KEYWORDS,
	TOKEN_UNION,
	TOKEN_SWITCH,
	TOKEN_CASE,
	TOKEN_DEFAULT,
	TOKEN_STRUCT,
	TOKEN_TYPEDEF,
	TOKEN_ENUM,
	TOKEN_OPAQUE,
	TOKEN_BOOL,
	TOKEN_VOID,
	TOKEN_CHAR,
	TOKEN_INT,
	TOKEN_UNSIGNED,
	TOKEN_SHORT,
	TOKEN_AFS_INT32,
	TOKEN_FLOAT,
	TOKEN_DOUBLE,
	TOKEN_STRING_TYPE,
	TOKEN_PACKAGE,
	TOKEN_PREFIX,
	TOKEN_STATINDEX,
	TOKEN_SPECIAL,
	TOKEN_STARTINGOPCODE,
	TOKEN_CUSTOMIZED,
	TOKEN_PROC,
	TOKEN_SPLITPREFIX,
	TOKEN_SPLIT,
	TOKEN_MULTI,
	TOKEN_IN,
	TOKEN_OUT,
	TOKEN_INOUT,
	TOKEN_AFSUUID,
	TOKEN_KINDS
};

struct token {
	int kind;
	struct loc loc;
	const char *text;   /* spelling */
	struct name *name;  /* of a name or keyword */
	int64_t value;	    /* of a number */
	bool wrong;	    /* a number already reported as invalid */
	bool included;	    /* from a file that is compiled separately (-i) */
	const char *before; /* comment directly before the token, or NULL */
	const char *after;  /* comment after the previous token, on the line of that one, or NULL */
};

/* The token for messages: "'package'", "end of file". Valid until the next use of `room`. */
const char *token_text(const struct token *token, char *room, size_t size);
/* A kind of token for messages: "';'", "a name". */
const char *token_kind_text(int kind, char *room, size_t size);

/* -- expression.c: constants and #if lines, in signed arithmetic of 64 bits -------------------- */

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
