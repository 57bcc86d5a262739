/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the code generators: output text, names, and wire representation of values. */
#ifndef RXGEN_EMIT_H
#define RXGEN_EMIT_H

#include <stdarg.h>

#include "rxgen/ast.h"

struct emit_piece;

/*
 * One output under construction. After an allocation failure (`failed`) all functions do nothing,
 * so only xg_write() checks it.
 */
struct emit {
	const struct xg_file *file;
	const struct xg_options *options;
	char *text; /* always NUL-terminated once not NULL */
	size_t length, room;
	unsigned depth;		   /* of indentation, in tabs */
	struct emit_piece *pieces; /* strings of emit_format() */
	const char *index;	   /* what loops of a stub count with; NULL: "i" */
	bool failed;
};

/* -- emit.c: text ------------------------------------------------------------------------------- */

/* A string that lives until emit_forget(), between one procedure or type and the next. Never NULL. */
const char *emit_format(struct emit *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void emit_forget(struct emit *e);

/* ", a, &b": a list under construction. Set `e`, the rest zero. */
struct emit_list {
	struct emit *e;
	char *text;
	size_t length, room;
};
void emit_list_add(struct emit_list *list, const char *mark, const char *text);
/* The whole, "" if there is nothing in it; `list` is done with. */
const char *emit_list_end(struct emit_list *list);
/* One logical line at the depth of now; broken where it is longer than 100 columns. */
void emit_line(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line as it is. */
void emit_raw(struct emit *e, const char *line);
/* An empty line, but never two and none behind an opening brace. */
void emit_blank(struct emit *e);
/* The line, then one tab deeper; and back, then the line. */
void emit_open(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_close(struct emit *e, const char *line);
/* if (!(...)) FAIL, for a condition that is one call. */
void emit_check(struct emit *e, const char *call, const char *fail);
/* `text` as a comment of its own; nothing if it is NULL or empty. */
void emit_comment(struct emit *e, const char *text);
/* `line` with `text` as a comment behind it, or above it where there is no room; NULL: none. */
void emit_commented(struct emit *e, const char *line, const char *text);
/* A row of a table with its number behind it, which keeps clang-format from joining rows. */
void emit_row(struct emit *e, const char *line, int number);
/* The first line of every output. */
void emit_title(struct emit *e, const char *what);

/* -- align.c ------------------------------------------------------------------------------- */

/* Values of macros and comments behind code in columns. malloc'ed; NULL without memory. */
char *emit_align(const char *text);
/* Columns of a line with its tabs. */
size_t emit_columns(const char *text, size_t length);
/* White space from column `from` to column `to`, tabs where possible. `out` takes to - from + 1. */
size_t emit_space(char *out, size_t from, size_t to);

/* -- names.c ------------------------------------------------------------------------------- */

/* The name of a member or procedure in C: with a '_' if it is a keyword. */
const char *emit_member_name(struct emit *e, const char *name);
const char *emit_param_name(struct emit *e, const struct xg_param *param);
/* A name for a local variable or a parameter of ours: with '_' if one of the procedure has it. */
const char *emit_local(struct emit *e, const struct xg_proc *proc, const char *name);
/* -P, package and procedure: "RXAFS_FetchStatus". */
const char *emit_proc_name(struct emit *e, const struct xg_proc *proc);
/* For what is named by the package: "RXAFS_" (with a '_' in any case), with and without -P. */
const char *emit_package_name(struct emit *e, const struct xg_package *package);
const char *emit_constant_name(struct emit *e, const struct xg_package *package);
const char *emit_opcode(struct emit *e, const struct xg_proc *proc);
const char *emit_function(struct emit *e, const struct xg_proc *proc);
/* The member of struct PACKAGE_handlers. */
const char *emit_handler(struct emit *e, const struct xg_proc *proc);
/* Fields of x<n>: "x_len", "x_val" or "len", "val". `name` is that of the type or member. */
const char *emit_len(struct emit *e, const char *name);
const char *emit_val(struct emit *e, const char *name);
/* The union in a union. */
const char *emit_arms(struct emit *e, const struct xg_type *type);

/* -- view.c: how a value travels ------------------------------------------------------------ */

enum emit_form {
	EMIT_VOID,
	EMIT_SCALAR,   /* a word or two, by shifts */
	EMIT_FLOATING, /* by a function of the runtime, as the next four */
	EMIT_UUID,
	EMIT_STRING,
	EMIT_OPAQUE, /* fixed */
	EMIT_BYTES,  /* counted opaque */
	EMIT_ARRAY,  /* fixed */
	EMIT_COUNTED,
	EMIT_POINTER, /* optional */
	EMIT_CALL     /* by the coder of a type */
};

struct emit_view {
	enum emit_form form;
	enum xg_kind kind;	    /* EMIT_SCALAR, EMIT_FLOATING: an enum is XG_INT */
	const struct xg_type *type; /* EMIT_CALL: whose coder */
	const struct xg_decl *decl; /* others: the bound, and what elements are */
};

/* What a declaration is, seen through typedefs where their coder need not be called. */
struct emit_view emit_view(const struct xg_decl *decl);
/* One element of an array, or what a pointer points to. */
struct emit_view emit_element_view(const struct xg_decl *decl);
/* A parameter: '*' means an address, not an option. */
struct emit_view emit_param_view(const struct xg_param *param);
bool emit_view_owns(const struct emit_view *view);
/* Travels by address in C. */
bool emit_aggregate(const struct emit_view *view);
uint64_t emit_element_min(const struct xg_decl *decl);
unsigned emit_scalar_size(enum xg_kind kind);
const char *emit_bound(struct emit *e, const struct xg_decl *decl);

/* Words of one element of an array; 0 if it has others than int32_t, uint32_t and enums. */
uint64_t emit_element_words(const struct xg_decl *decl);
/* Words of `count` elements, which are words. */
const char *emit_words(struct emit *e, const struct xg_decl *decl, const char *count);
/* One call codes it, so that emit_put_call() and emit_get_call() may be asked. */
bool emit_is_call(const struct emit_view *view);

/* The variable that a loop counts with. */
const char *emit_loop(const struct emit *e);

/* Expressions: address, member and element of one; "*v" is known for what it is. */
const char *emit_address(struct emit *e, const char *value);
const char *emit_member(struct emit *e, const char *value, const char *name);
const char *emit_index(struct emit *e, const char *value, const char *index);

/* A value in a run of fixed size, coded with one rxw_xdr_take(). */
struct emit_leaf {
	struct emit_view view;
	const char *value;
	unsigned offset;
};
struct emit_run {
	struct emit_leaf *leaves;
	size_t count, room;
	unsigned size;
	struct emit *e;
};
/* Members in turn: a run, or one value that is none. */
struct emit_step {
	struct emit_run run; /* size 0: `view` of `value` */
	struct emit_view view;
	const char *value;
	const struct xg_decl *decl;
};
struct emit_steps {
	struct emit_step *steps;
	size_t count, room;
};
/*
 * Cut members into steps; `value` is what they are members of, NULL for one that is "*v" itself.
 * Free with emit_steps_free().
 */
void emit_plan(struct emit *e, const struct xg_decl *members, size_t count, const char *value,
	       struct emit_steps *plan);
void emit_steps_free(struct emit_steps *plan);
/* A run of one word, for which a single call is shorter. */
bool emit_single(const struct emit_run *run);
/* Whether the steps need the pointer `p`. */
bool emit_takes(const struct emit_steps *plan);
/* Memory at `p`, some bytes further. */
const char *emit_place(struct emit *e, unsigned offset);
/* "case KV_CREATE" or "default" */
const char *emit_case(struct emit *e, const struct xg_type *type, const struct xg_arm *arm);

/* -- the outputs ---------------------------------------------------------------------------------- */

/* type.c */
const char *emit_c_type(struct emit *e, const struct xg_decl *decl);
void emit_type(struct emit *e, const struct xg_item *item, size_t index);
/* "kv_entry *more": of an element of an array */
const char *emit_element_type(struct emit *e, const struct xg_decl *decl, const char *name);

/* params.c: parameters as they stand in C */
enum emit_role {
	EMIT_CLIENT,
	EMIT_START,
	EMIT_END,
	EMIT_MULTI,
	EMIT_REPLY,
	EMIT_HANDLER
};
bool emit_has(enum emit_role role, const struct xg_param *param);
/* ", const char *name, kv_entry *entry" of those that the role has. */
const char *emit_params(struct emit *e, const struct xg_proc *proc, enum emit_role role);
/* ", name, entry": what a stub hands from its own parameters to those of another. */
const char *emit_arguments(struct emit *e, const struct xg_proc *proc, enum emit_role role);
/* "char name[8]": a parameter as a variable. */
const char *emit_variable(struct emit *e, const struct xg_param *param, const char *name);
/* Calls that code a parameter; failure is the cursor's to remember. */
void emit_put_param(struct emit *e, const struct xg_param *param, const char *x, const char *value);
void emit_get_param(struct emit *e, const struct xg_param *param, const char *x, const char *value);
/* The call alone, of what is no array. */
const char *emit_get_param_call(struct emit *e, const struct xg_param *param, const char *x,
				const char *value);
/* What initializes the variable. */
const char *emit_initial(const struct xg_param *param);
/* Frees what it owns; and zeroes it; or zeroes it without freeing. */
void emit_free_param(struct emit *e, const struct xg_param *param, const char *value);
void emit_clear_param(struct emit *e, const struct xg_param *param, const char *value);
void emit_zero_param(struct emit *e, const struct xg_param *param, const char *value);
/*
 * How the client's functions begin: "int32_t KV_List(rxw_connection *connection, ...)"; with
 * `options` that which takes some: KV_List_opt().
 */
const char *emit_client_head(struct emit *e, const struct xg_proc *proc, bool options);
const char *emit_start_head(struct emit *e, const struct xg_proc *proc);
const char *emit_end_head(struct emit *e, const struct xg_proc *proc);
const char *emit_multi_head(struct emit *e, const struct xg_proc *proc, bool options);

/* xdr_put.c, xdr_get.c, xdr_free.c: `x` is the cursor */
void emit_put(struct emit *e, const struct xg_type *type);
void emit_get(struct emit *e, const struct xg_type *type);
void emit_free(struct emit *e, const struct xg_type *type);
/* One call that codes the value, of which emit_is_call() is true. */
const char *emit_put_call(struct emit *e, const struct emit_view *view, const char *x,
			  const char *value);
const char *emit_get_call(struct emit *e, const struct emit_view *view, const char *x,
			  const char *value);
/* Statements that free the value; nothing if it owns nothing. */
void emit_free_value(struct emit *e, const struct emit_view *view, const char *value);
/* A statement that makes it zero; `type` is its name in C. */
void emit_zero(struct emit *e, const struct emit_view *view, const char *type, const char *value);
/* An array in C, which cannot be assigned. */
bool emit_is_array(const struct emit_view *view);
/* "{0}", "0", "NULL": what initializes a variable of it. */
const char *emit_initializer(const struct emit_view *view);

void emit_header_output(struct emit *e);
void emit_xdr_output(struct emit *e);
void emit_client_output(struct emit *e);
void emit_server_output(struct emit *e);
void emit_multi(struct emit *e, const struct xg_proc *proc);
/* Lines with % of all outputs but the header, which has more at its place. True if it was one. */
bool emit_verbatim(struct emit *e, size_t index);
/* Packages whose statement is in this file, in order; NULL behind the last. */
const struct xg_package *emit_package(const struct emit *e, size_t number);

#endif
