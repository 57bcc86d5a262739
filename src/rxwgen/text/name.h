/* SPDX-License-Identifier: BSD-2-Clause */
/* The name table: each identifier of the input once, with its meanings. */
#ifndef RXWGEN_NAME_H
#define RXWGEN_NAME_H

#include <stdint.h>

#include "rxwgen/text/source.h"

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

#endif
