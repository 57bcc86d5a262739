/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal interfaces of the parser. */
#ifndef RXWGEN_PARSE_H
#define RXWGEN_PARSE_H

#include "rxwgen/pp/pp.h"

#define BOUND_MAX   INT32_MAX
#define NESTING_MAX 64 /* types within types, by value or as elements */

struct type {
	struct xg_type ast; /* first: each const struct xg_type * points to a struct type */
	struct loc loc;	    /* of its name; before the definition, of its first use */
	bool defined;
	bool open;   /* being defined */
	bool broken; /* an error was reported; further ones are suppressed */
	unsigned nesting;
	uint64_t align;
	/* An unbounded array in the type; measure_file() adds those reached through pointers. */
	bool unbounded;
	struct loc unbounded_loc;
	const char *unbounded_name;
	/* measure_file() */
	size_t number, low;
	bool on_stack;
};

enum symbol_kind {
	SYMBOL_CONST,
	SYMBOL_VALUE,
	SYMBOL_TYPE,
	SYMBOL_BASIC
};

struct symbol {
	enum symbol_kind kind;
	struct loc loc;
	bool number; /* constant: a number, not a string */
	bool wrong;  /* the value is invalid, which was reported */
	int64_t value;
	const char *text;  /* constant: a string */
	struct type *type; /* SYMBOL_TYPE */
	enum xg_kind basic;
};

/* The context of a declaration, which determines its valid forms. */
enum decl_of {
	DECL_MEMBER,
	DECL_ARM,
	DECL_SWITCH,
	DECL_TYPEDEF,
	DECL_PARAM
};

/* A declaration with data for the parser alone. */
struct declared {
	struct xg_decl ast;
	struct name *name;
	struct loc loc;	     /* of the name */
	struct loc type_loc; /* of the type */
	bool unbounded;	     /* x<> without an option -L */
};

/* An IN parameter, to be checked for unbounded arrays when all types are known. */
struct in_param {
	struct loc loc;
	const char *name;
	const struct type *type;
};

struct package {
	struct xg_package ast;
	struct loc loc, statindex_loc;
	bool sequential, included;
	size_t room;
};

struct proc {
	struct xg_proc ast;
	struct loc loc;
};

struct limit { /* an option -L */
	const char *name;
	uint32_t value;
	bool used;
};

struct parser {
	struct arena *arena;
	struct diag *diag;
	struct names *names;
	struct pp *pp;
	const struct xg_options *options;

	struct token token;
	unsigned depth; /* of braces */

	/* Results so far. `pending`: % lines that were read with the look-ahead token. */
	struct xg_item *items, *pending;
	size_t item_count, item_room, pending_count, pending_room;
	struct type **types; /* in order of first use */
	size_t type_count, type_room;
	const struct xg_type **defined; /* in order of definition */
	size_t defined_count, defined_room;
	struct package **packages;
	size_t package_count, package_room;
	struct in_param *in_params;
	size_t in_param_count, in_param_room;
	struct limit *limits;

	/* The current definition. */
	struct loc start;
	struct type *defining;
	unsigned scope;

	/* State that statements change. */
	struct package *package, *outer_package; /* outer: outside of included files under -i */
	bool included;
	const char *prefix, *start_word, *end_word;
	enum xg_direction direction; /* of the last parameter; 0: none yet */
	enum xg_output output;
	int64_t next_opcode;
};

/* parse.c */
void parse_advance(struct parser *p);
/* Skip a token of `kind`; otherwise report "expected KIND WHERE, found …" and return false. */
bool parse_expect(struct parser *p, int kind, const char *where);
/* Report "expected EXPECTED, found …"; always false. */
bool parse_unexpected(struct parser *p, const char *expected);
/* The token as the name of a new `what`; NULL if it is not a name (reported). Does not advance. */
struct name *parse_name(struct parser *p, const char *what);
/*
 * End a definition at its last token, which is ';' except for some statements: add its item and
 * advance. *doc is the comment before the definition; if it is NULL, the comment after it.
 */
void parse_done(struct parser *p, struct xg_item item, const char **doc);
void parse_add_item(struct parser *p, struct xg_item item);
/* Add the % lines and headers that were read with the look-ahead token. */
void parse_flush_items(struct parser *p);

/* parse_type.c */
bool parse_const(struct parser *p);
bool parse_struct(struct parser *p);
bool parse_union(struct parser *p);
bool parse_enum(struct parser *p);
bool parse_typedef(struct parser *p);
bool parse_special(struct parser *p);

/* parse_decl.c */
/* `owner`: the struct, union or procedure, for -L; or NULL. */
bool parse_decl(struct parser *p, enum decl_of of, const char *owner, struct declared *d);
/*
 * A constant expression. False: a syntax error. *known is false if the value is invalid (reported).
 * *text is the value as C: as written if it is a single number or name, else a number.
 */
bool parse_bound(struct parser *p, const char *what, int64_t *value, const char **text,
		 bool *known);

/* parse_proc.c */
bool parse_package(struct parser *p);
bool parse_prefix(struct parser *p);
bool parse_statindex(struct parser *p);
bool parse_startingopcode(struct parser *p);
bool parse_splitprefix(struct parser *p);
bool parse_proc(struct parser *p);
void parse_finish_packages(struct parser *p, struct xg_file *file);

/* symbol.c */
void symbol_add_basic(struct parser *p);
/* Declare a type, constant or enum value; NULL if the name is taken (reported). */
struct symbol *symbol_declare(struct parser *p, struct name *name, struct loc loc,
			      enum symbol_kind kind);
/* Begin to define a type. Never NULL: if the name is taken, the type has no symbol. */
struct type *symbol_define_type(struct parser *p, struct name *name, struct loc loc,
				enum xg_what what);
void symbol_type_done(struct parser *p, struct type *type);
/* A type that is used before its definition; `broken`: an error was reported. */
struct type *symbol_forward(struct parser *p, struct name *name, struct loc loc, bool broken);
/* Begin a scope of member names; declare a name in it, false if it is taken (reported). */
void symbol_scope(struct parser *p);
bool symbol_member(struct parser *p, struct name *name, struct loc loc, const char *what);
/* A member or procedure, whose name C must not replace as a macro. */
void symbol_field(struct parser *p, struct name *name, struct loc loc);
/* Reserve a C name derived from a package or procedure. False: it is taken (reported). */
bool symbol_claim(struct parser *p, const char *text, struct loc loc);
const char *symbol_what(const struct symbol *symbol);

/* measure.c: complete declarations and types; errors are reported at `loc`. */
void measure_decl(struct parser *p, struct declared *d, enum decl_of of);
void measure_type(struct parser *p, struct type *type, struct loc loc);
/* Checks on the complete file. */
void measure_file(struct parser *p);

#endif
