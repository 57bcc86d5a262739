/* SPDX-License-Identifier: BSD-2-Clause */
/* The compiler as functions: options, reading a file into its tree, and the outputs. */
#ifndef RXWGEN_XG_H
#define RXWGEN_XG_H

#include <stdio.h>

#include "rxwgen/ast.h"

/* The first parameter after `after` that has one of the directions. With `after` NULL the search begins with the first. */
static inline const struct xg_param *xg_next_param(const struct xg_proc *proc,
						   const struct xg_param *after, int directions)
{
	for (size_t i = after ? (size_t)(after - proc->params) + 1 : 0; i < proc->param_count; i++)
		if ((int)proc->params[i].direction & directions)
			return &proc->params[i];
	return NULL;
}

#define xg_for_params(param, proc, directions)                                            \
	for (const struct xg_param *param = xg_next_param(proc, NULL, directions); param; \
	     param = xg_next_param(proc, param, directions))

/* The four outputs. Each is produced by a separate pass over the input, with its macro defined. */
enum xg_output {
	XG_HEADER, /* RPC_HDR */
	XG_XDR,	   /* RPC_XDR */
	XG_CLIENT, /* RPC_CLIENT */
	XG_SERVER, /* RPC_SERVER */
	XG_OUTPUTS
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
	bool pools;		    /* --pool */
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
