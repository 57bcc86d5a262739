/* SPDX-License-Identifier: BSD-2-Clause */
/* Keywords, and tokens as text. */
#include "rxwgen/text/token.h"

#include <assert.h>
#include <stdio.h>

static const char *const keywords[TOKEN_KINDS - TOKEN_KEYWORDS] = {
#define WORD(kind, text) [kind - TOKEN_KEYWORDS] = text
	WORD(TOKEN_CONST, "const"),
	WORD(TOKEN_UNION, "union"),
	WORD(TOKEN_SWITCH, "switch"),
	WORD(TOKEN_CASE, "case"),
	WORD(TOKEN_DEFAULT, "default"),
	WORD(TOKEN_STRUCT, "struct"),
	WORD(TOKEN_TYPEDEF, "typedef"),
	WORD(TOKEN_ENUM, "enum"),
	WORD(TOKEN_OPAQUE, "opaque"),
	WORD(TOKEN_BOOL, "bool"),
	WORD(TOKEN_VOID, "void"),
	WORD(TOKEN_CHAR, "char"),
	WORD(TOKEN_INT, "int"),
	WORD(TOKEN_UNSIGNED, "unsigned"),
	WORD(TOKEN_SHORT, "short"),
	WORD(TOKEN_AFS_INT32, "afs_int32"),
	WORD(TOKEN_FLOAT, "float"),
	WORD(TOKEN_DOUBLE, "double"),
	WORD(TOKEN_STRING_TYPE, "string"),
	WORD(TOKEN_PACKAGE, "package"),
	WORD(TOKEN_PREFIX, "prefix"),
	WORD(TOKEN_STATINDEX, "statindex"),
	WORD(TOKEN_SPECIAL, "special"),
	WORD(TOKEN_STARTINGOPCODE, "startingopcode"),
	WORD(TOKEN_CUSTOMIZED, "customized"),
	WORD(TOKEN_PROC, "proc"),
	WORD(TOKEN_SPLITPREFIX, "splitprefix"),
	WORD(TOKEN_SPLIT, "split"),
	WORD(TOKEN_MULTI, "multi"),
	WORD(TOKEN_IN, "IN"),
	WORD(TOKEN_OUT, "OUT"),
	WORD(TOKEN_INOUT, "INOUT"),
	WORD(TOKEN_AFSUUID, "afsUUID"),
};

const char *token_keyword(int kind)
{
	assert(kind >= TOKEN_KEYWORDS && kind < TOKEN_KINDS);
	return keywords[kind - TOKEN_KEYWORDS];
}

const char *token_kind_text(int kind, char *room, size_t size)
{
	switch (kind) {
	case TOKEN_END:
		return "end of file";
	case TOKEN_NAME:
		return "a name";
	case TOKEN_NUMBER:
		return "a number";
	case TOKEN_STRING:
		return "a string";
	case TOKEN_SHIFT_LEFT:
		return "'<<'";
	case TOKEN_SHIFT_RIGHT:
		return "'>>'";
	default:
		if (kind >= TOKEN_KEYWORDS)
			snprintf(room, size, "'%s'", token_keyword(kind));
		else
			snprintf(room, size, "'%c'", kind);
		return room;
	}
}

const char *token_text(const struct token *token, char *room, size_t size)
{
	switch (token->kind) {
	case TOKEN_NAME:
	case TOKEN_NUMBER:
		snprintf(room, size, "'%s'", token->text);
		return room;
	case TOKEN_STRING:
		snprintf(room, size, "\"%s\"", token->text);
		return room;
	default:
		return token_kind_text(token->kind, room, size);
	}
}
