/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the code generators: output text, names, parameters and coders. */
#ifndef RXWGEN_EMIT_H
#define RXWGEN_EMIT_H

#include <stdarg.h>

#include "rxwgen/xg.h"
#include "rxwgen/emit/view.h"

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
char *emit_vformat(struct emit *e, const char *format, va_list list);
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
/*
 * Lines of code, separated by LF. A brace at the end or the beginning of a line indents the lines between, and tabs at the
 * beginning of a line indent that line. An empty line is emit_blank(). A line of more than 100 columns is broken.
 */
void emit_line(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text as it is. */
void emit_text(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line without indentation and line breaks. */
void emit_raw(struct emit *e, const char *line);
/* An empty line, unless after another one or an opening brace. */
void emit_blank(struct emit *e);
/* "if (!CALL) FAIL" */
void emit_check(struct emit *e, const char *call, const char *fail);
/* `text` as a comment on lines of its own; nothing if it is NULL or empty. */
void emit_comment(struct emit *e, const char *text);
/* `line`, followed by the comment `text`, or preceded if it is too long. NULL: no comment. */
void emit_commented(struct emit *e, const char *line, const char *text);
/* Copy a % line; false if the item is another one. */
bool emit_verbatim(struct emit *e, size_t index);
/* The package of this number in the file; NULL after the last one. */
const struct xg_package *emit_package(const struct emit *e, size_t number);
/* A row of a table and its number as a comment, which keeps clang-format from joining rows. */
void emit_row(struct emit *e, const char *line, int number);
/* The first line of every output. */
void emit_title(struct emit *e, const char *what);
/* Align values of macros and trailing comments. malloc'ed; NULL if memory is exhausted. */
char *emit_align(const char *text);

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
/*
 * emit_line() for the stub of a procedure. In the format $NAME, $PACKAGE, $OPCODE and $FUNCTION are the texts of
 * emit_proc_name(), emit_package_name(), emit_opcode() and emit_function(). Other names, as $call, are those of emit_local().
 */
void emit_stub(struct emit *e, const struct xg_proc *proc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The text as a string. */
const char *emit_stub_format(struct emit *e, const struct xg_proc *proc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Fields of x<n>: "x_len", "x_val" or "len", "val". `name` is that of the type or member. */
const char *emit_len(struct emit *e, const char *name);
const char *emit_val(struct emit *e, const char *name);
/* The union in a union. */
const char *emit_arms(struct emit *e, const struct xg_type *type);
/* The type of a declaration, or of its elements. */
const char *emit_c_type(const struct xg_decl *decl);

/* -- the outputs ------------------------------------------------------------------------------- */

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
 * Heads of client functions: "int32_t KV_List(rxw_connection *connection, ...)", of the variant with
 * call options, KV_List_opt(), and of that for pools, KV_List_pool().
 */
enum emit_variant {
	EMIT_PLAIN,
	EMIT_OPT,
	EMIT_POOL
};
const char *emit_client_head(struct emit *e, const struct xg_proc *proc, enum emit_variant variant);
const char *emit_start_head(struct emit *e, const struct xg_proc *proc);
const char *emit_end_head(struct emit *e, const struct xg_proc *proc);
/* The head of the function that answers a deferred call. */
const char *emit_answer_head(struct emit *e, const struct xg_proc *proc);
const char *emit_multi_head(struct emit *e, const struct xg_proc *proc, enum emit_variant variant);

/* xdr.c, memory.c: `x` is the cursor */
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

void emit_header_output(struct emit *e);
void emit_client_output(struct emit *e);
void emit_server_output(struct emit *e);

#endif
