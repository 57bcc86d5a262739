/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked syntax tree of one interface file: the front end's result for the code generators. */
#ifndef RXWGEN_AST_H
#define RXWGEN_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/* The four outputs. Each is produced by a separate pass over the input, with its macro defined. */
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

struct xg_file {
	const char *path; /* as given */
	const char *base; /* "rxafs" of "some/where/rxafs.xg" */
	enum xg_output output;
	const struct xg_item *items;
	size_t item_count;
	const struct xg_type **types; /* all, also those of included files */
	size_t type_count;
	const struct xg_package **packages;
	size_t package_count;
	/* Files read, the main file first; for -M. */
	const char **inputs;
	size_t input_count;
	void *arena;
};

/* Warnings already printed: the pass for each output finds the same ones. Initially empty. */
struct xg_printed {
	char **lines;
	size_t count;
};

/* -D and -U in the order given. */
struct xg_macro_option {
	bool undefine;
	const char *text; /* "NAME", or "NAME=text" to define */
};

/* Options of the command line; lists are in the order given. */
struct xg_options {
	const struct xg_macro_option *macros;
	const char **folders; /* -I */
	const char **limits;  /* -L: "NAME=n" or "TYPE.field=n" */
	size_t macro_count, folder_count, limit_count;
	bool skip_included;	    /* -i */
	bool warn_unbounded;	    /* -w */
	bool warn_direction;	    /* -W */
	bool short_fields;	    /* -b */
	bool statistics;	    /* -x */
	bool no_errno_swap;	    /* -n */
	bool copies;		    /* --copy */
	const char *prefix;	    /* -P; "" if not given */
	uint32_t request_max;	    /* -R; 1048576 if not given */
	bool tables_only;	    /* -y: the XDR output has only the name tables */
	FILE *messages;		    /* NULL: standard error */
	struct xg_printed *printed; /* NULL: every warning is printed */
};

/*
 * Preprocess, parse and check a file for one output. Diagnostics go to options->messages. Returns
 * NULL after an error, also if a file cannot be read. Release the result with xg_file_free().
 */
struct xg_file *xg_read(const char *path, const struct xg_options *options, enum xg_output output);
void xg_file_free(struct xg_file *file);

/*
 * Generate one output in memory: *text is malloc'ed and has *length bytes. Fails only for lack of
 * memory (false).
 */
bool xg_write(const struct xg_file *file, const struct xg_options *options, char **text,
	      size_t *length);

/*
 * The text of a code, a constant whose comment begins with "code:"; "" if there is none, and false if
 * the item is no code. Lines are joined. `room` is the size of `text`; longer texts are cut.
 */
#define XG_CODE_TEXT 512
bool xg_code_text(const struct xg_item *item, char *text, size_t room);
bool xg_has_codes(const struct xg_file *file);
/* No constant before this one is the same code. */
bool xg_code_is_first(const struct xg_file *file, size_t index);

/* The checked tree as JSON, malloc'ed; NULL if memory is exhausted. */
char *xg_json(const struct xg_file *file, size_t *length);
/* The checked tree as a Python module, malloc'ed; NULL if memory is exhausted. */
char *xg_python(const struct xg_file *file, const struct xg_options *options, size_t *length);
/*
 * The name of the Python module of an interface file, "afs_common" of "some/where/afs-common.xg".
 * `room` is the size of `name`, at least 2; longer names are cut.
 */
void xg_python_module(const char *file, char *name, size_t room);

/* Names with another meaning in generated code and the headers that it includes. */
enum xg_reserved {
	XG_RESERVED_NOT,
	XG_RESERVED_KEYWORD, /* of C++ or C23 */
	XG_RESERVED_MACRO,   /* of standard headers */
	XG_RESERVED_LIBRARY  /* functions and types that generated code uses */
};

/* The keywords of C17 are not included: name_is_c_word(). */
enum xg_reserved xg_reserved_kind(const char *name);
/* "a keyword of C++ or C23" */
const char *xg_reserved_text(enum xg_reserved kind);
/* All these names by number; NULL after the last one. */
const char *xg_reserved_name(size_t number);

#endif
