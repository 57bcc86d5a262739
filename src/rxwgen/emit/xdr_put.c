/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoders: xdr_put_T(). */
#include "rxwgen/emit/emit.h"

#include <assert.h>

/* A scalar as one word or two. */
static const char *format_word(struct emit *e, enum xg_kind kind, const char *value)
{
	if (value[0] == '*' && value[1] == '*') /* would parse as a product */
		value = emit_format(e, "(%s)", value);
	switch (kind) {
	case XG_INT:
	case XG_SHORT:
		return emit_format(e, "(uint32_t)%s", value);
	case XG_CHAR: /* signed on the wire on all machines */
		return emit_format(e, "(uint32_t)(int8_t)%s", value);
	case XG_INT64:
		return emit_format(e, "(uint64_t)%s", value);
	default:
		return value;
	}
}

const char *emit_put_call(struct emit *e, const struct emit_view *view, const char *x,
			  const char *value)
{
	const struct xg_decl *decl = view->decl;
	const char *name = decl->name, *cast;

	assert(emit_is_call(view));
	switch (view->form) {
	case EMIT_SCALAR:
		return emit_format(e, "rxw_xdr_put_u%u(%s, %s)", 8 * emit_scalar_size(view->kind),
				   x, format_word(e, view->kind, value));
	case EMIT_FLOATING:
		return emit_format(e, "rxw_xdr_put_%s(%s, %s)",
				   view->kind == XG_FLOAT ? "float" : "double", x, value);
	case EMIT_UUID:
		return emit_format(e, "rxw_xdr_put_uuid(%s, %s)", x, emit_address(e, value));
	case EMIT_STRING:
		return emit_format(e, "rxw_xdr_put_string(%s, %s, %s)", x, value,
				   emit_bound(e, decl));
	case EMIT_OPAQUE:
		return emit_format(e, "rxw_xdr_put_opaque(%s, %s, %s)", x, value,
				   emit_bound(e, decl));
	case EMIT_ARRAY:
		return emit_format(e, "rxw_xdr_put_words(%s, %s, %s)", x, value,
				   emit_words(e, decl, emit_bound(e, decl)));
	case EMIT_BYTES:
		return emit_format(e, "rxw_xdr_put_bytes(%s, %s, %s, %s)", x,
				   emit_member(e, value, emit_val(e, name)),
				   emit_member(e, value, emit_len(e, name)), emit_bound(e, decl));
	default:
		/* Before C23 a pointer to an array of const needs a cast. */
		cast = emit_is_array(view) ? emit_format(e, "(const %s *)", view->type->name) : "";
		return emit_format(e, "xdr_put_%s(%s, %s%s)", view->type->name, x, cast,
				   emit_address(e, value));
	}
}

static void emit_put_opaque(struct emit *e, const struct emit_leaf *leaf)
{
	const char *bound = emit_bound(e, leaf->view.decl);
	unsigned padding = (4 - leaf->view.decl->bound % 4) % 4;

	emit_line(e, "memcpy(%s, %s, %s);", emit_place(e, leaf->offset), leaf->value, bound);
	if (padding)
		emit_line(e, "memset(p + %u, 0, %u);", leaf->offset + leaf->view.decl->bound,
			  padding);
}

static void emit_put_leaf(struct emit *e, const struct emit_leaf *leaf)
{
	const struct emit_view *view = &leaf->view;
	struct emit_view element;
	unsigned size;

	if (view->form == EMIT_OPAQUE) {
		emit_put_opaque(e, leaf);
	} else if (view->form == EMIT_ARRAY) {
		element = emit_element_view(view->decl);
		size = emit_scalar_size(element.kind);
		emit_open(e, "for (unsigned i = 0; i < %s; i++)", emit_bound(e, view->decl));
		emit_line(e, "rxw_xdr_store%u(%s + %u * i, %s);", 8 * size,
			  emit_place(e, leaf->offset), size,
			  format_word(e, element.kind, emit_index(e, leaf->value, "i")));
		e->depth--;
	} else {
		emit_line(e, "rxw_xdr_store%u(%s, %s);", 8 * emit_scalar_size(view->kind),
			  emit_place(e, leaf->offset), format_word(e, view->kind, leaf->value));
	}
}

/* A loop over elements; `count` is an expression. */
static void emit_put_elements(struct emit *e, const struct xg_decl *decl, const char *type,
			      const char *count, const char *value)
{
	struct emit_view element = emit_element_view(decl);

	emit_open(e, "for (%s i = 0; i < %s; i++) {", type, count);
	emit_check(e, emit_put_call(e, &element, "x", emit_index(e, value, "i")), "return false;");
	emit_close(e, "}");
}

/* With `ends`, the last statement may return; true if it does. */
static bool emit_put_counted(struct emit *e, const struct xg_decl *decl, const char *value,
			     bool ends)
{
	const char *len = emit_member(e, value, emit_len(e, decl->name));
	const char *val = emit_member(e, value, emit_val(e, decl->name));
	const char *call;

	assert(decl->shape == XG_COUNTED);
	emit_open(e, "if (%s > %s)", len, emit_bound(e, decl));
	emit_line(e, "return rxw_xdr_fail(x);");
	e->depth--;
	emit_check(e, emit_format(e, "rxw_xdr_put_u32(x, %s)", len), "return false;");
	if (!emit_element_words(decl)) {
		emit_put_elements(e, decl, "uint32_t", len, val);
		return false;
	}
	call = emit_format(e, "rxw_xdr_put_words(x, %s, %s)", val, emit_words(e, decl, len));
	if (ends)
		emit_line(e, "return %s;", call);
	else
		emit_check(e, call, "return false;");
	return ends;
}

static void emit_put_pointer(struct emit *e, const struct xg_decl *decl, const char *value)
{
	struct emit_view target = emit_element_view(decl);
	const char *call = emit_put_call(e, &target, "x", emit_format(e, "*%s", value));

	assert(decl->shape == XG_POINTER);
	emit_check(e, emit_format(e, "rxw_xdr_put_u32(x, %s != NULL)", value), "return false;");
	if (target.form == EMIT_CALL && target.type->recursive) {
		emit_open(e, "if (%s) {", value);
		emit_open(e, "if (!rxw_xdr_enter(x) || !%s)", call);
		emit_line(e, "return false;");
		e->depth--;
		emit_line(e, "rxw_xdr_leave(x);");
		emit_close(e, "}");
	} else {
		emit_open(e, "if (%s && !%s)", value, call);
		emit_line(e, "return false;");
		e->depth--;
	}
}

/* `ends` and the result are as in emit_put_counted(). */
static bool emit_put_value(struct emit *e, const struct emit_view *view, const char *value,
			   bool ends)
{
	if (view->form == EMIT_COUNTED)
		return emit_put_counted(e, view->decl, value, ends);
	if (view->form == EMIT_ARRAY)
		emit_put_elements(e, view->decl, "unsigned", emit_bound(e, view->decl), value);
	else
		emit_put_pointer(e, view->decl, value);
	return false;
}

/* The call that codes a step, or NULL if it takes more than one. */
static const char *format_step_call(struct emit *e, const struct emit_step *step)
{
	if (step->run.size) {
		const struct emit_leaf *leaf = &step->run.leaves[0];

		return emit_single(&step->run) ? emit_put_call(e, &leaf->view, "x", leaf->value)
					       : NULL;
	}
	return emit_is_call(&step->view) ? emit_put_call(e, &step->view, "x", step->value) : NULL;
}

/*
 * Code all steps. `taken`: `p` is already set for the first one. `ends`: return true after the last
 * one.
 */
static void emit_put_steps(struct emit *e, const struct emit_steps *plan, bool taken, bool ends)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct emit_step *step = &plan->steps[i];
		const char *call = format_step_call(e, step);

		if (call && ends && i + 1 == plan->count) {
			emit_line(e, "return %s;", call);
			return;
		}
		if (call) {
			emit_check(e, call, "return false;");
		} else if (step->run.size) {
			if (!taken || i)
				emit_line(e, "p = rxw_xdr_take(x, %u);", step->run.size);
			emit_check(e, "p", "return false;");
			for (size_t j = 0; j < step->run.count; j++)
				emit_put_leaf(e, &step->run.leaves[j]);
		} else if (emit_put_value(e, &step->view, step->value,
					  ends && i + 1 == plan->count)) {
			return;
		}
	}
	if (ends)
		emit_line(e, "return true;");
}

static void emit_put_struct(struct emit *e, const struct xg_type *type)
{
	struct emit_steps plan;
	bool first;

	emit_plan(e, type->members, type->member_count, "*v", &plan);
	first = plan.count && plan.steps[0].run.size && !emit_single(&plan.steps[0].run);
	if (first)
		emit_line(e, "uint8_t *p = rxw_xdr_take(x, %u);", plan.steps[0].run.size);
	else if (emit_takes(&plan))
		emit_line(e, "uint8_t *p;");
	if (emit_takes(&plan))
		emit_blank(e);
	emit_put_steps(e, &plan, first, true);
	emit_steps_free(&plan);
}

/* Encode a list in a loop, without recursion. */
static void emit_put_list(struct emit *e, const struct xg_type *type)
{
	const struct xg_decl *last = &type->members[type->member_count - 1];
	const char *next = emit_member(e, "*v", emit_member_name(e, last->name));
	struct emit_steps plan;

	assert(type->list && type->member_count > 0);
	emit_plan(e, type->members, type->member_count - 1, "*v", &plan);
	emit_open(e, "for (unsigned count = 1;; count++) {");
	if (emit_takes(&plan)) {
		emit_line(e, "uint8_t *p;");
		emit_blank(e);
	}
	emit_put_steps(e, &plan, false, false);
	emit_check(e, emit_format(e, "rxw_xdr_put_u32(x, %s != NULL)", next), "return false;");
	emit_open(e, "if (!%s)", next);
	emit_line(e, "return true;");
	e->depth--;
	emit_open(e, "if (count == RXW_XDR_LIST)");
	emit_line(e, "return rxw_xdr_fail(x);");
	e->depth--;
	emit_line(e, "v = %s;", next);
	emit_close(e, "}");
	emit_steps_free(&plan);
}

static void emit_put_arm(struct emit *e, const struct xg_type *type, const struct xg_arm *arm)
{
	struct emit_steps plan;

	if (arm->decl.kind == XG_VOID) {
		emit_line(e, "return true;");
		return;
	}
	emit_plan(e, &arm->decl, 1, emit_format(e, "v->%s", emit_arms(e, type)), &plan);
	emit_put_steps(e, &plan, false, true);
	emit_steps_free(&plan);
}

static void emit_put_union(struct emit *e, const struct xg_type *type)
{
	const char *d = emit_member(e, "*v", emit_member_name(e, type->discriminant.name));
	struct emit_view view = emit_view(&type->discriminant);
	bool others = false, take = false;

	assert(type->what == XG_UNION);
	for (size_t i = 0; i < type->arm_count; i++) {
		struct emit_steps plan;

		if (type->arms[i].decl.kind == XG_VOID)
			continue;
		emit_plan(e, &type->arms[i].decl, 1, "*v", &plan);
		take = take || emit_takes(&plan);
		emit_steps_free(&plan);
	}
	if (take) {
		emit_line(e, "uint8_t *p;");
		emit_blank(e);
	}
	emit_check(e, emit_put_call(e, &view, "x", d), "return false;");
	emit_line(e, "switch (%s%s) {", view.kind == XG_BOOL ? "(int)" : "", d);
	for (size_t i = 0; i < type->arm_count; i++) {
		const struct xg_arm *arm = &type->arms[i];

		emit_line(e, "%s:", emit_case(e, type, arm));
		others = others || !arm->text;
		if (i + 1 < type->arm_count && arm->decl.kind == XG_VOID &&
		    arm[1].decl.kind == XG_VOID)
			continue;
		e->depth++;
		emit_put_arm(e, type, arm);
		e->depth--;
	}
	if (!others) {
		emit_line(e, "default:");
		emit_line(e, "\treturn rxw_xdr_fail(x);");
	}
	emit_line(e, "}");
}

static void emit_put_alias(struct emit *e, const struct xg_type *type)
{
	/* Plan it like a member, so that an array becomes a run. */
	struct emit_view view = emit_view(&type->alias);
	struct emit_steps plan;

	if (view.form < EMIT_ARRAY || view.form == EMIT_CALL) {
		emit_line(e, "return %s;", emit_put_call(e, &view, "x", "*v"));
		return;
	}
	emit_plan(e, &type->alias, 1, NULL, &plan);
	if (emit_takes(&plan)) {
		emit_line(e, "uint8_t *p = rxw_xdr_take(x, %u);", plan.steps[0].run.size);
		emit_blank(e);
	}
	emit_put_steps(e, &plan, true, true);
	emit_steps_free(&plan);
}

/* A struct whose array is copied as words must have no padding. */
static void emit_words_assertion(struct emit *e, const struct xg_decl *decl)
{
	if (decl->kind != XG_NAMED || decl->type->what == XG_ENUM || !emit_element_words(decl) ||
	    (decl->shape != XG_COUNTED && decl->shape != XG_FIXED))
		return;
	emit_line(e, "_Static_assert(sizeof(%s) == %llu, \"%s: no padding\");", decl->type->name,
		  4 * (unsigned long long)emit_element_words(decl), decl->type->name);
	emit_blank(e);
}

static void emit_member_assertions(struct emit *e, const struct xg_type *type)
{
	if (type->what == XG_TYPEDEF)
		emit_words_assertion(e, &type->alias);
	for (size_t i = 0; type->what == XG_STRUCT && i < type->member_count; i++)
		emit_words_assertion(e, &type->members[i]);
	for (size_t i = 0; type->what == XG_UNION && i < type->arm_count; i++) {
		if (type->arms[i].decl.kind != XG_VOID)
			emit_words_assertion(e, &type->arms[i].decl);
	}
}

void emit_put(struct emit *e, const struct xg_type *type)
{
	emit_member_assertions(e, type);
	emit_line(e, "bool xdr_put_%s(struct rxw_xdr *x, const %s *v)", type->name, type->name);
	emit_open(e, "{");
	if (type->what == XG_TYPEDEF)
		emit_put_alias(e, type);
	else if (type->what == XG_ENUM)
		emit_line(e, "return rxw_xdr_put_u32(x, (uint32_t)*v);");
	else if (type->what == XG_UNION)
		emit_put_union(e, type);
	else if (type->list)
		emit_put_list(e, type);
	else
		emit_put_struct(e, type);
	emit_close(e, "}");
}
