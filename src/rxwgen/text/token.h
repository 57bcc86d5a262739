/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens, the lexical units of the language. */
#ifndef RXWGEN_TOKEN_H
#define RXWGEN_TOKEN_H

#include "rxwgen/text/name.h"

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

const char *token_keyword(int kind);
/* The token for messages: "'package'", "end of file". Valid until the next use of `room`. */
const char *token_text(const struct token *token, char *room, size_t size);
/* A kind of token for messages: "';'", "a name". */
const char *token_kind_text(int kind, char *room, size_t size);

#endif
