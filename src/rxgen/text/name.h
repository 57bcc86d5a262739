/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of names: each name of the input once, with its meanings. */
#ifndef RXGEN_NAME_H
#define RXGEN_NAME_H

#include <stdint.h>

#include "rxgen/text/source.h"

#define NAME_LONGEST 127

struct symbol;
struct proc;

/* A `%#define NAME number` line: C's, but a bound may say it. */
struct noted {
	int64_t value;
	bool known;   /* two lines disagree if not */
	bool skipped; /* seen only where an #if of ours left it out */
};

struct name {
	struct name *next; /* of the same slot */
	uint32_t hash, length;
	int keyword;	       /* enum token_kind, or 0 */
	struct macro *macro;   /* #define */
	struct symbol *symbol; /* type, constant, enum value */
	struct noted *noted;
	struct loc made;   /* where a package or procedure makes a C name of this; or no source */
	struct loc field;  /* where a member or procedure is called so: no constant may be */
	unsigned scope;	   /* last struct, union or parameter list with a member of this name… */
	struct loc member; /* …and where */
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

#endif
