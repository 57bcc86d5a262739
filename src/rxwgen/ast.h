/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked syntax tree of one interface file: the front end's result for the code generators. */
#ifndef RXWGEN_AST_H
#define RXWGEN_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All objects are owned by their file and freed only by xg_file_free(). The tree is complete and
 * has passed all checks of the language; generators assert and never report errors. Text is
 * NUL-terminated. Lists are arrays with a count.
 */

/* The position of a token. The file name is that of the command line or of #include. */
struct xg_place {
	const char *file;
	unsigned line, column; /* from 1; a column is a byte */
};

enum xg_kind {
	XG_INT,	   /* int, afs_int32, long: int32_t */
	XG_UINT,   /* uint32_t */
	XG_SHORT,  /* int16_t, one word on the wire */
	XG_USHORT, /* uint16_t */
	XG_CHAR,   /* char, sign-extended to a word */
	XG_UCHAR,  /* uint8_t */
	XG_BOOL,   /* bool */
	XG_INT64,  /* int64_t, also for afs_time64 */
	XG_UINT64, /* uint64_t */
	XG_FLOAT,
	XG_DOUBLE,
	XG_UUID,   /* struct rxw_uuid, 11 words */
	XG_OPAQUE, /* only with XG_FIXED or XG_COUNTED */
	XG_STRING, /* only with XG_COUNTED */
	XG_VOID,   /* only as a union's arm */
	XG_NAMED   /* a defined type, xg_decl.type */
};

enum xg_shape {
	XG_ONE,	    /* T x */
	XG_POINTER, /* T *x: optional in a struct, union or typedef; by address as a parameter */
	XG_FIXED,   /* T x[n] */
	XG_COUNTED  /* T x<n>, string x<n>, opaque x<n> */
};

struct xg_type;

/* One name with its type: a member, a union's arm or discriminant, a typedef, a parameter. */
struct xg_decl {
	struct xg_place place; /* of the name */
	const char *name;      /* NULL for void */
	enum xg_kind kind;
	const struct xg_type *type; /* XG_NAMED only */
	enum xg_shape shape;
	/*
	 * XG_FIXED, XG_COUNTED: number of elements or bytes, 1..2^31-1. If the input gives no
	 * bound, it is the default or the value of -L, and bound_text is NULL. Otherwise
	 * bound_text is the bound as written: "AFSNAMEMAX", "50".
	 */
	uint32_t bound;
	const char *bound_text;
	const char *doc; /* text of the comment before it, or after it on the same line; or NULL */
	/* Bytes of the declaration on the wire: the minimum, and the size if fixed, else 0. */
	uint64_t wire_min, wire_size;
	uint64_t c_size; /* sizeof of the C object on a 64-bit machine */
	bool owns;	 /* decoding may allocate memory */
};

enum xg_what {
	XG_STRUCT,
	XG_UNION,
	XG_ENUM,
	XG_TYPEDEF
};

struct xg_value { /* of an enum */
	struct xg_place place;
	const char *name;
	int32_t value;
	const char *doc;
};

struct xg_arm {
	struct xg_place place;
	const char *text; /* the case label as written; NULL = default */
	int64_t value;
	struct xg_decl decl; /* XG_VOID: an empty arm */
};

struct xg_type {
	struct xg_place place;
	enum xg_what what;
	const char *name;
	const char *doc;
	bool included;	 /* from an included file under -i: its code is generated separately */
	bool customized; /* the application provides the coder */
	bool parameter;	 /* implied by a parameter T x<n>; precedes the first such procedure */

	const struct xg_decl *members; /* struct */
	size_t member_count;
	struct xg_decl discriminant; /* union */
	const struct xg_arm *arms;
	size_t arm_count;
	const struct xg_value *values; /* enum */
	size_t value_count;
	struct xg_decl alias; /* typedef */

	uint64_t wire_min, wire_size; /* as in xg_decl */
	uint64_t c_size;
	bool owns;
	/*
	 * A struct whose last member is an optional pointer to itself, directly or by a typedef:
	 * encoded, decoded and freed by a loop of at most 65536 elements.
	 */
	bool list;
	/*
	 * The type reaches itself through a pointer other than a list's pointer to the next
	 * element. Coders limit the depth to 64.
	 */
	bool recursive;
};

enum xg_direction {
	XG_IN = 1,
	XG_OUT = 2,
	XG_INOUT = 3
};

struct xg_param {
	enum xg_direction direction;
	/*
	 * T x<n>, unless a string, is XG_NAMED and XG_ONE with the type that it implies. Such a
	 * type, and each struct, union and array, is passed by address in C.
	 */
	struct xg_decl decl;
	bool starred; /* written with '*' */
};

/* Parameters of a procedure. C guarantees 127, and stubs add some. */
#define XG_PARAMS_MAX 120

struct xg_package;

struct xg_proc {
	struct xg_place place;
	const struct xg_package *package;
	const char *name;	 /* "FetchStatus"; "" if the procedure has no name */
	const char *prefix;	 /* of the prefix statement: "S", or "" */
	const char *start, *end; /* of splitprefix; default "Start", "End" */
	const char *own_stub;	 /* name of the application's server stub, or NULL */
	const char *doc;
	const struct xg_param *params;
	size_t param_count;
	bool split, multi;
	int32_t opcode;
	unsigned index; /* in its package, from 0 */
};

struct xg_package {
	struct xg_place place;
	const char *name;
	bool has_statindex;
	uint32_t statindex;
	const struct xg_proc **procs; /* in order of declaration */
	size_t proc_count;
	int32_t lowest, highest; /* opcodes */
	bool dense;		 /* opcodes are consecutive */
};

enum xg_item_kind {
	XG_ITEM_CONST, /* name, and value or text */
	XG_ITEM_TYPE,
	XG_ITEM_PROC,
	XG_ITEM_PACKAGE, /* a package statement */
	XG_ITEM_LINE,	 /* a % line: text without the % */
	XG_ITEM_HEADER	 /* an included file under -i: text is the name of its header */
};

/* A definition or statement, in source order, without those of included files under -i. */
struct xg_item {
	enum xg_item_kind kind;
	const char *doc;
	const char *name;   /* const */
	const char *text;   /* const: its value as C; % line; name of a header */
	bool number;	    /* const: not a string */
	int64_t value;	    /* const: a number */
	const char *string; /* const: a string without quotes */
	const struct xg_type *type;
	const struct xg_proc *proc;
	const struct xg_package *package;
};

#endif
