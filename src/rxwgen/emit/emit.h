/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the code generators: output text, names, and wire representation of values. */
#ifndef RXWGEN_EMIT_H
#define RXWGEN_EMIT_H

#include <stdarg.h>

#include "rxwgen/ast.h"

struct emit_piece;

/*
 * One output under construction. After an allocation failure (`failed`) all functions do nothing,
 * so only xg_write() checks it.
 */
struct emit {
	const struct xg_file *file;
	const struct xg_options *options;
	char *text; /* NUL-terminated, or NULL */
	size_t length, room;
	unsigned depth;		   /* of indentation, in tabs */
	struct emit_piece *pieces; /* results of emit_format() */
	const char *index;	   /* loop variable of a stub; NULL: "i" */
	bool failed;
};

/* -- emit.c: text ------------------------------------------------------------------------------ */

/* A string that is valid until emit_forget(), called after each procedure and type. Never NULL. */
const char *emit_format(struct emit *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void emit_forget(struct emit *e);

/* A list under construction, ", a, &b". Initialize with `e`, the rest zero. */
struct emit_list {
	struct emit *e;
	char *text;
	size_t length, room;
};
void emit_list_add(struct emit_list *list, const char *mark, const char *text);
/* The complete list, "" if it is empty. Frees `list`. */
const char *emit_list_end(struct emit_list *list);
/* A line at the current indentation; broken if it is longer than 100 columns. */
void emit_line(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line without indentation and line breaks. */
void emit_raw(struct emit *e, const char *line);
/* An empty line, unless after another one or an opening brace. */
void emit_blank(struct emit *e);
/* Write the line, then indent; unindent, then write the line. */
void emit_open(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_close(struct emit *e, const char *line);
/* "if (!CALL) FAIL" */
void emit_check(struct emit *e, const char *call, const char *fail);
/* `text` as a comment on lines of its own; nothing if it is NULL or empty. */
void emit_comment(struct emit *e, const char *text);
/* `line`, followed by the comment `text`, or preceded if it is too long. NULL: no comment. */
void emit_commented(struct emit *e, const char *line, const char *text);
/* A row of a table and its number as a comment, which keeps clang-format from joining rows. */
void emit_row(struct emit *e, const char *line, int number);
/* The first line of every output. */
void emit_title(struct emit *e, const char *what);

/* -- align.c ------------------------------------------------------------------------------- */

/* Align values of macros and trailing comments. malloc'ed; NULL if memory is exhausted. */
char *emit_align(const char *text);
/* Width of a text in columns, with tabs of eight. */
size_t emit_columns(const char *text, size_t length);
/* White space from column `from` to `to`, with tabs. `out` has room for to - from + 1 bytes. */
size_t emit_space(char *out, size_t from, size_t to);

/* -- codes.c ------------------------------------------------------------------------------- */

/* The function for the texts of codes, if the interface has any: its prototype, its definition. */
void emit_code_prototype(struct emit *e, const struct xg_package *package);
void emit_code_text(struct emit *e, const struct xg_package *package);

/* -- names.c ------------------------------------------------------------------------------- */

/* The C name of a member or procedure: a keyword gets a '_' appended. */
const char *emit_member_name(struct emit *e, const char *name);
const char *emit_param_name(struct emit *e, const struct xg_param *param);
/* The name of a generated variable or parameter; '_' is appended while it is in use. */
const char *emit_local(struct emit *e, const struct xg_proc *proc, const char *name);
/* -P, package and procedure: "RXAFS_FetchStatus". */
const char *emit_proc_name(struct emit *e, const struct xg_proc *proc);
/* The prefix of names derived from a package, "RXAFS_" (always with '_'), with and without -P. */
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

/* -- view.c: wire representation ------------------------------------------------------------ */

enum emit_form {
	EMIT_VOID,
	EMIT_SCALAR,   /* one or two words, coded inline */
	EMIT_FLOATING, /* coded by a function of the runtime, as the next four */
	EMIT_UUID,
	EMIT_STRING,
	EMIT_OPAQUE, /* fixed */
	EMIT_BYTES,  /* counted opaque */
	EMIT_ARRAY,  /* fixed */
	EMIT_COUNTED,
	EMIT_POINTER, /* optional */
	EMIT_CALL     /* coded by the coder of a type */
};

struct emit_view {
	enum emit_form form;
	enum xg_kind kind;	    /* EMIT_SCALAR, EMIT_FLOATING: an enum is XG_INT */
	const struct xg_type *type; /* EMIT_CALL: whose coder */
	const struct xg_decl *decl; /* other forms: the bound and the type of elements */
};

/* The view of a declaration. A typedef is resolved unless its coder has to be called. */
struct emit_view emit_view(const struct xg_decl *decl);
/* The view of an element of an array, or of the target of a pointer. */
struct emit_view emit_element_view(const struct xg_decl *decl);
/* The view of a parameter: '*' means an address, not an optional value. */
struct emit_view emit_param_view(const struct xg_param *param);
bool emit_view_owns(const struct emit_view *view);
/* Passed by address in C. */
bool emit_aggregate(const struct emit_view *view);
uint64_t emit_element_min(const struct xg_decl *decl);
unsigned emit_scalar_size(enum xg_kind kind);
const char *emit_bound(struct emit *e, const struct xg_decl *decl);

/* Words of an element of an array; 0 unless it consists of int32_t, uint32_t and enums. */
uint64_t emit_element_words(const struct xg_decl *decl);
/* An expression for the words of `count` elements. */
const char *emit_words(struct emit *e, const struct xg_decl *decl, const char *count);
/* One call codes the value, so that emit_put_call() and emit_get_call() apply. */
bool emit_is_call(const struct emit_view *view);

/* The loop variable. */
const char *emit_loop(const struct emit *e);

/* Expressions for the address, a member and an element of a value. "*v" is simplified. */
const char *emit_address(struct emit *e, const char *value);
const char *emit_member(struct emit *e, const char *value, const char *name);
const char *emit_index(struct emit *e, const char *value, const char *index);

/* A value in a run. A run has a fixed size and is coded with one rxw_xdr_take(). */
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
/* A step of a coder: a run, or a single value. */
struct emit_step {
	struct emit_run run; /* size 0: the step is `value` */
	struct emit_view view;
	const char *value;
	const struct xg_decl *decl;
};
struct emit_steps {
	struct emit_step *steps;
	size_t count, room;
};
/*
 * Group members into steps. `value` is the struct; NULL if the only member is "*v" itself.
 * Free the result with emit_steps_free().
 */
void emit_plan(struct emit *e, const struct xg_decl *members, size_t count, const char *value,
	       struct emit_steps *plan);
void emit_steps_free(struct emit_steps *plan);
/* A run of one scalar, which a single call codes. */
bool emit_single(const struct emit_run *run);
/* Whether the steps need the pointer `p`. */
bool emit_takes(const struct emit_steps *plan);
/* The address `offset` bytes after `p`. */
const char *emit_place(struct emit *e, unsigned offset);
/* "case KV_CREATE" or "default" */
const char *emit_case(struct emit *e, const struct xg_type *type, const struct xg_arm *arm);

/* -- the outputs ------------------------------------------------------------------------------- */

/* type.c */
const char *emit_c_type(struct emit *e, const struct xg_decl *decl);
void emit_type(struct emit *e, const struct xg_item *item, size_t index);
/* "kv_entry *NAME": a pointer to an element of an array */
const char *emit_element_type(struct emit *e, const struct xg_decl *decl, const char *name);

/* params.c: parameters in C */
enum emit_role {
	EMIT_CLIENT,
	EMIT_START,
	EMIT_END,
	EMIT_MULTI,
	EMIT_REPLY,
	EMIT_HANDLER,
	EMIT_ANSWER /* results, passed like arguments */
};
bool emit_has(enum emit_role role, const struct xg_param *param);
/* ", const char *name, kv_entry *entry": the parameters of the role. */
const char *emit_params(struct emit *e, const struct xg_proc *proc, enum emit_role role);
/* ", name, entry": the arguments for a function with the parameters of the role. */
const char *emit_arguments(struct emit *e, const struct xg_proc *proc, enum emit_role role);
/* The operator, "&" or "(const T *)&", that makes a variable a pointer to const; "" for T x[n]. */
const char *emit_const_address(struct emit *e, const struct xg_param *param);
/* "char name[8]": a parameter as a variable. */
const char *emit_variable(struct emit *e, const struct xg_param *param, const char *name);
/* Calls that code a parameter. The cursor records a failure. */
void emit_put_param(struct emit *e, const struct xg_param *param, const char *x, const char *value);
void emit_get_param(struct emit *e, const struct xg_param *param, const char *x, const char *value);
/* The call as an expression, unless the parameter is an array. */
const char *emit_get_param_call(struct emit *e, const struct xg_param *param, const char *x,
				const char *value);
/* The initializer of the variable. */
const char *emit_initial(const struct xg_param *param);
/* Free the memory of the value; free and zero it; zero it without freeing. */
void emit_free_param(struct emit *e, const struct xg_param *param, const char *value);
void emit_clear_param(struct emit *e, const struct xg_param *param, const char *value);
void emit_zero_param(struct emit *e, const struct xg_param *param, const char *value);
/*
 * Heads of client functions: "int32_t KV_List(rxw_connection *connection, ...)". `options`: of
 * the variant with call options, KV_List_opt().
 */
const char *emit_client_head(struct emit *e, const struct xg_proc *proc, bool options);
const char *emit_start_head(struct emit *e, const struct xg_proc *proc);
const char *emit_end_head(struct emit *e, const struct xg_proc *proc);
/* The head of the function that answers a deferred call. */
const char *emit_answer_head(struct emit *e, const struct xg_proc *proc);
const char *emit_multi_head(struct emit *e, const struct xg_proc *proc, bool options);

/* xdr_put.c, xdr_get.c, xdr_free.c: `x` is the cursor */
void emit_put(struct emit *e, const struct xg_type *type);
void emit_get(struct emit *e, const struct xg_type *type);
void emit_free(struct emit *e, const struct xg_type *type);
void emit_copy(struct emit *e, const struct xg_type *type);
/* The call that codes a value; emit_is_call() must be true. */
const char *emit_put_call(struct emit *e, const struct emit_view *view, const char *x,
			  const char *value);
const char *emit_get_call(struct emit *e, const struct emit_view *view, const char *x,
			  const char *value);
/* Statements that free the memory of the value, if it owns any. */
void emit_free_value(struct emit *e, const struct emit_view *view, const char *value);
/* A statement that zeroes the value; `type` is its C type. */
void emit_zero(struct emit *e, const struct emit_view *view, const char *type, const char *value);
/* The value is a C array, which cannot be assigned. */
bool emit_is_array(const struct emit_view *view);
/* The initializer of a variable: "{0}", "0", "NULL". */
const char *emit_initializer(const struct emit_view *view);

void emit_header_output(struct emit *e);
void emit_xdr_output(struct emit *e);
void emit_client_output(struct emit *e);
void emit_server_output(struct emit *e);
void emit_multi(struct emit *e, const struct xg_proc *proc);
/* Copy a % line; false if the item is another one. */
bool emit_verbatim(struct emit *e, size_t index);
/* The package of this number in the file; NULL after the last one. */
const struct xg_package *emit_package(const struct emit *e, size_t number);

#endif
