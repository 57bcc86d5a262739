/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser's inside. parse.c: the file and what all definitions share; parse_type.c: constants
 * and types; parse_decl.c: one declaration; parse_proc.c: packages and procedures; symbol.c: names;
 * measure.c: sizes; graph.c: what only the whole file shows.
 */
#ifndef RXGEN_PARSE_H
#define RXGEN_PARSE_H

#include "rxgen/pp/pp.h"

#define PACKAGES_MAX	 10
#define PROCEDURES_MAX	 500 /* of a package */
#define OPCODE_START_MAX 100000
#define BOUND_MAX	 INT32_MAX
#define NESTING_MAX	 64 /* types inside types, by value or as elements */

/* Bounds of x<> where none is given. */
#define DEFAULT_BYTES	 1048576
#define DEFAULT_ELEMENTS 65536

struct type {
	struct xg_type ast; /* first: a const struct xg_type * is one of these */
	struct loc loc;	    /* of its name; until it is defined, of its first use */
	bool defined;
	bool open;   /* being defined */
	bool broken; /* reported: nothing more is said about it */
	unsigned nesting;
	uint64_t align;
	/* An unbounded array in it, by value: graph.c adds what it points to. */
	bool unbounded;
	struct loc unbounded_loc;
	const char *unbounded_name;
	/* graph.c */
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
	bool number; /* of a constant: not a string */
	bool wrong;  /* its value was reported: nothing more is said about it */
	int64_t value;
	const char *text;  /* of a string */
	struct type *type; /* SYMBOL_TYPE */
	enum xg_kind basic;
};

/* Where a declaration stands decides what it may be. */
enum decl_of {
	DECL_MEMBER,
	DECL_ARM,
	DECL_SWITCH,
	DECL_TYPEDEF,
	DECL_PARAM
};

/* A declaration with what only the parser needs. */
struct declared {
	struct xg_decl ast;
	struct name *name;
	struct loc loc;	     /* of the name */
	struct loc type_loc; /* of the type */
	bool unbounded;	     /* x<>, and no -L says more */
};

/* An IN parameter, to be looked at when all types are known. */
struct late {
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

/* -L, taken apart. */
struct limit {
	const char *name; /* "NAME" or "TYPE.field" */
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

	/* Done so far; `pending`: lines that were read ahead of what they stand before. */
	struct xg_item *items, *pending;
	size_t item_count, item_room, pending_count, pending_room;
	struct type **types; /* in order of their names' first use */
	size_t type_count, type_room;
	const struct xg_type **defined; /* in order of definition */
	size_t defined_count, defined_room;
	struct package **packages;
	size_t package_count, package_room;
	struct late *late;
	size_t late_count, late_room;
	struct limit *limits;

	/* The definition in work. */
	struct loc start;
	struct type *defining;
	unsigned scope;

	/* What holds from here on. */
	struct package *package, *outer_package; /* …and outside of what -i leaves out */
	bool included;
	const char *prefix, *start_word, *end_word;
	enum xg_direction direction; /* 0: none yet */
	enum xg_output output;
	int64_t next_opcode;
};

/* parse.c */
struct xg_file *parse_file(struct arena *arena, struct diag *diag, const char *path,
			   const struct xg_options *options, enum xg_output output);
void parse_advance(struct parser *p);
/* True and past it if the token is `kind`; else an error, "expected KIND WHERE, found …". */
bool parse_expect(struct parser *p, int kind, const char *where);
/* Report that `expected` should stand here; always false. */
bool parse_unexpected(struct parser *p, const char *expected);
/* A name that something of the user's gets; NULL if there is none (reported). */
struct name *parse_name(struct parser *p, const char *what);
/*
 * The definition ends with this token: ';', or the last one of a statement without. Adds the item
 * and goes on. `*doc` is what was written before it; a comment behind it counts if there is none.
 */
void parse_done(struct parser *p, struct xg_item item, const char **doc);
void parse_add_item(struct parser *p, struct xg_item item);

/* parse_type.c */
bool parse_const(struct parser *p);
bool parse_struct(struct parser *p);
bool parse_union(struct parser *p);
bool parse_enum(struct parser *p);
bool parse_typedef(struct parser *p);
bool parse_special(struct parser *p);

/* parse_decl.c */
/* `owner`: of what, for -L: the struct's, union's or procedure's name, or NULL. */
bool parse_decl(struct parser *p, enum decl_of of, const char *owner, struct declared *d);
/* NUMBER or NAME. False: a syntax error. *known is false if the value was reported as wrong. */
bool parse_bound(struct parser *p, const char *what, int64_t *value, const char **text,
		 bool *known);
/* parse_bound() without the token: what a name stands for. */
bool parse_value_of(struct parser *p, const struct token *token, const char *what, int64_t *value);

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
/* A new name in the one space of types, constants and values; NULL if it is taken (reported). */
struct symbol *symbol_declare(struct parser *p, struct name *name, struct loc loc,
			      enum symbol_kind kind);
/* Begin to define a type. Never NULL: one that nobody can find if the name is taken. */
struct type *symbol_define_type(struct parser *p, struct name *name, struct loc loc,
				enum xg_what what);
void symbol_type_done(struct parser *p, struct type *type);
/* A type that is not defined (yet); `broken`: that was reported. */
struct type *symbol_forward(struct parser *p, struct name *name, struct loc loc, bool broken);
/* Member names are one space per struct: begin one, and enter a name (false: taken, reported). */
void symbol_scope(struct parser *p);
bool symbol_member(struct parser *p, struct name *name, struct loc loc, const char *what);
/* A member of a struct or union, or a procedure: its name stays a name in C. */
void symbol_field(struct parser *p, struct name *name, struct loc loc);
/* A C name that a package or procedure makes. False: something else has it (reported). */
bool symbol_claim(struct parser *p, const char *text, struct loc loc);
const char *symbol_what(const struct symbol *symbol);

/* measure.c: sizes of what is complete; errors about them go to `loc`. */
void measure_decl(struct parser *p, struct declared *d, enum decl_of of);
void measure_type(struct parser *p, struct type *type, struct loc loc);

/* graph.c */
void graph_finish(struct parser *p);

#endif
