/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked syntax tree of one interface file: the front end's result for the code generators. */
#ifndef RXGEN_AST_H
#define RXGEN_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * All objects are owned by their file and freed only by xg_file_free(). The tree is complete and
 * has passed all checks of the language; generators assert and never report errors. Text is
 * NUL-terminated. Lists are arrays with a count.
 */

/* Where a token was written: a file name as the user gave it or #include found it, from 1. */
struct xg_place {
	const char *file;
	unsigned line, column;
};

/* The four outputs; each comes from a run of its own over the input, with RPC_… defined. */
enum xg_output {
	XG_HEADER, /* RPC_HDR */
	XG_XDR,	   /* RPC_XDR */
	XG_CLIENT, /* RPC_CLIENT */
	XG_SERVER, /* RPC_SERVER */
	XG_OUTPUTS
};

enum xg_kind {
	XG_INT,	   /* int, afs_int32, long: int32_t */
	XG_UINT,   /* uint32_t */
	XG_SHORT,  /* int16_t, one word on the wire */
	XG_USHORT, /* uint16_t */
	XG_CHAR,   /* char, sign-extended to a word */
	XG_UCHAR,  /* uint8_t */
	XG_BOOL,   /* bool */
	XG_INT64,  /* int64_t; afs_time64 too */
	XG_UINT64, /* uint64_t */
	XG_FLOAT,
	XG_DOUBLE,
	XG_UUID,   /* struct rxw_uuid, 11 words */
	XG_OPAQUE, /* only with XG_FIXED or XG_COUNTED */
	XG_STRING, /* only with XG_COUNTED */
	XG_VOID,   /* only as a union's arm */
	XG_NAMED   /* decl.type says which */
};

enum xg_shape {
	XG_ONE,	    /* T x */
	XG_POINTER, /* T *x: optional in a struct, union or typedef; by address in a parameter */
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
	 * XG_FIXED, XG_COUNTED: elements or bytes, 1..2^31-1; the default or the one of -L if none
	 * was written. bound_text is how it was written ("AFSNAMEMAX", "50"), NULL if it was not.
	 */
	uint32_t bound;
	const char *bound_text;
	const char *doc; /* comment before it or behind it on its line, without marks; or NULL */
	/* Bytes on the wire: least, and all if that is fixed, else 0. Of the whole decl. */
	uint64_t wire_min, wire_size;
	uint64_t c_size; /* sizeof of what the decl declares in C on a 64-bit machine */
	bool owns;	 /* decoding it may allocate */
};

enum xg_what { XG_STRUCT, XG_UNION, XG_ENUM, XG_TYPEDEF };

struct xg_value { /* of an enum */
	struct xg_place place;
	const char *name;
	int32_t value;
	const char *doc;
};

struct xg_arm {
	struct xg_place place;
	const char *text; /* of the case as written; NULL = default */
	int64_t value;
	struct xg_decl decl; /* kind XG_VOID: nothing */
};

struct xg_type {
	struct xg_place place;
	enum xg_what what;
	const char *name;
	const char *doc;
	bool included;	 /* came from an #include under -i: somebody else generates it */
	bool customized; /* the application has its coder */
	bool parameter;	 /* made by a parameter T x<n>; stands before the first such procedure */

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
	 * coded and freed by a loop of at most 65536 elements.
	 */
	bool list;
	/*
	 * It can reach itself through a pointer, other than a list's pointer to the next element:
	 * coders count the depth, at most 64.
	 */
	bool recursive;
};

enum xg_direction { XG_IN = 1, XG_OUT = 2, XG_INOUT = 3 };

struct xg_param {
	enum xg_direction direction;
	/*
	 * T x<n> of anything but a string is XG_NAMED here, with the type it made, shape XG_ONE;
	 * that and every struct, union, array or 64-bit number travels by address in C.
	 */
	struct xg_decl decl;
	bool starred; /* written with '*' */
};

/* Of a procedure: C promises a function 127. */
#define XG_PARAMS_MAX 120

struct xg_package;

struct xg_proc {
	struct xg_place place;
	const struct xg_package *package;
	const char *name;	  /* "FetchStatus"; "" for a procedure without one */
	const char *prefix;	  /* in effect: "S", or "" */
	const char *start, *end;  /* of splitprefix: "Start", "End" unless changed */
	const char *own_stub;	  /* the second name, or NULL */
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
	bool dense;		 /* no holes in the opcodes */
};

enum xg_item_kind {
	XG_ITEM_CONST,	/* name, and value or text */
	XG_ITEM_TYPE,
	XG_ITEM_PROC,
	XG_ITEM_PACKAGE, /* stands where the package statement stands */
	XG_ITEM_LINE,	 /* a % line: text without the % */
	XG_ITEM_HEADER	 /* -i: #include "text" stands for the definitions of that file */
};

/* What the file holds, in its order, less what -i left out. */
struct xg_item {
	enum xg_item_kind kind;
	const char *doc;
	const char *name; /* const */
	const char *text; /* const: right side as C; % line; header's name */
	const struct xg_type *type;
	const struct xg_proc *proc;
	const struct xg_package *package;
};

struct xg_file {
	const char *path; /* as given */
	const char *base; /* "rxafs" of "some/where/rxafs.xg" */
	enum xg_output output;
	const struct xg_item *items;
	size_t item_count;
	const struct xg_type **types; /* all, included ones too */
	size_t type_count;
	const struct xg_package **packages;
	size_t package_count;
	/* Files read, the main one first; for -M. */
	const char **inputs;
	size_t input_count;
	void *arena;
};

/* Warnings that were printed: a run for each output finds the same again. Empty at first. */
struct xg_said {
	char **lines;
	size_t count;
};

/* -D and -U in the order given. */
struct xg_macro_option {
	bool undefine;
	const char *text; /* "NAME", or "NAME=text" to define */
};

/* What the command line asks for, each list in the order given. */
struct xg_options {
	const struct xg_macro_option *macros;
	const char **folders; /* -I */
	const char **limits;  /* -L: "NAME=n" or "TYPE.field=n" */
	size_t macro_count, folder_count, limit_count;
	bool skip_included;   /* -i */
	bool warn_unbounded;  /* -w */
	bool warn_direction;  /* -W */
	bool short_fields;    /* -b */
	bool statistics;      /* -x */
	bool no_errno_swap;   /* -n */
	const char *prefix;   /* -P; "" if not given */
	uint32_t request_max; /* -R; 1048576 if not given */
	bool tables_only;     /* -y: of the XDR output only the name tables */
	FILE *messages;	      /* NULL: standard error */
	struct xg_said *said; /* NULL: every warning is printed */
};

/*
 * Read, preprocess, parse and check for one output. Diagnostics go to options->messages. NULL if
 * there was an error (or a file that cannot be read), else free it.
 */
struct xg_file *xg_read(const char *path, const struct xg_options *options, enum xg_output output);
void xg_file_free(struct xg_file *file);

/*
 * Write one output as C into memory: *text is malloc'ed, *length its bytes. Never fails but for
 * memory (false).
 */
bool xg_write(const struct xg_file *file, const struct xg_options *options, char **text,
	      size_t *length);

#endif
