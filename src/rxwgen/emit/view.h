/* SPDX-License-Identifier: BSD-2-Clause */
/* Wire representation of values: how a value is coded, and steps and runs of coders. */
#ifndef RXWGEN_VIEW_H
#define RXWGEN_VIEW_H

#include "rxwgen/ast.h"

struct emit;

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

/* A statement that zeroes the value; `type` is its C type. */
void emit_zero(struct emit *e, const struct emit_view *view, const char *type, const char *value);
/* The value is a C array, which cannot be assigned. */
bool emit_is_array(const struct emit_view *view);
/* The initializer of a variable: "{0}", "0", "NULL". */
const char *emit_initializer(const struct emit_view *view);

#endif
