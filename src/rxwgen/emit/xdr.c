/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoders, xdr_put_T(), and decoders, xdr_get_T(). After a failure a decoded value is zero and owns no memory. */
#include "rxwgen/emit/emit.h"

#include <assert.h>

/* -- unions, of which encoders and decoders have the same switch --------------------------------- */

static bool has_pointer_step(const struct emit_steps *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (!plan->steps[i].run.size && plan->steps[i].view.form == EMIT_POINTER)
			return true;
	}
	return false;
}

/* Whether an arm needs the pointer `p`, and the number `there`. */
static void find_arm_variables(struct emit *e, const struct xg_type *type, bool *take, bool *there)
{
	assert(type->what == XG_UNION);
	*take = *there = false;
	for (size_t i = 0; i < type->arm_count; i++) {
		struct emit_steps plan;

		if (type->arms[i].decl.kind == XG_VOID)
			continue;
		emit_plan(e, &type->arms[i].decl, 1, "*v", &plan);
		*take |= emit_takes(&plan);
		*there |= has_pointer_step(&plan);
		emit_steps_free(&plan);
	}
}

/* The head of the switch, and the arms, of which empty ones share their code. Is there a default? */
static bool emit_arm_cases(struct emit *e, const struct xg_type *type, const char *discriminant,
			   void (*emit_arm)(struct emit *e, const struct xg_type *type,
					    const struct xg_arm *arm))
{
	bool number = emit_view(&type->discriminant).kind != XG_BOOL, others = false;

	emit_line(e, "switch (%s%s) {", number ? "" : "(int)", discriminant);
	for (size_t i = 0; i < type->arm_count; i++) {
		const struct xg_arm *arm = &type->arms[i];

		emit_line(e, "%s:", emit_case(e, type, arm));
		others = others || !arm->text;
		if (i + 1 < type->arm_count && arm->decl.kind == XG_VOID &&
		    arm[1].decl.kind == XG_VOID)
			continue;
		emit_arm(e, type, arm);
	}
	return others;
}

/* -- encoders ---------------------------------------------------------------------------------- */

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
		emit_line(e,
			  "for (unsigned i = 0; i < %s; i++)\n\trxw_xdr_store%u(%s + %u * i, %s);",
			  emit_bound(e, view->decl), 8 * size, emit_place(e, leaf->offset), size,
			  format_word(e, element.kind, emit_index(e, leaf->value, "i")));
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

	emit_line(e, "for (%s i = 0; i < %s; i++) {\nif (!%s)\n\treturn false;\n}", type, count,
		  emit_put_call(e, &element, "x", emit_index(e, value, "i")));
}

/* With `ends`, the last statement may return; true if it does. */
static bool emit_put_counted(struct emit *e, const struct xg_decl *decl, const char *value,
			     bool ends)
{
	const char *len = emit_member(e, value, emit_len(e, decl->name));
	const char *val = emit_member(e, value, emit_val(e, decl->name));
	const char *call;

	assert(decl->shape == XG_COUNTED);
	emit_line(e,
		  "if (%s > %s)\n\treturn rxw_xdr_fail(x);\n"
		  "if (!rxw_xdr_put_u32(x, %s))\n\treturn false;",
		  len, emit_bound(e, decl), len);
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
	emit_line(e, "if (!rxw_xdr_put_u32(x, %s != NULL))\n\treturn false;", value);
	if (target.form == EMIT_CALL && target.type->recursive)
		emit_line(e,
			  "if (%s) {\nif (!rxw_xdr_enter(x) || !%s)\n\treturn false;\n"
			  "rxw_xdr_leave(x);\n}",
			  value, call);
	else
		emit_line(e, "if (%s && !%s)\n\treturn false;", value, call);
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
	emit_line(e, "for (unsigned count = 1;; count++) {%s",
		  emit_takes(&plan) ? "\nuint8_t *p;\n\n" : "");
	emit_put_steps(e, &plan, false, false);
	emit_line(e,
		  "if (!rxw_xdr_put_u32(x, %s != NULL))\n\treturn false;\n"
		  "if (!%s)\n\treturn true;\n"
		  "if (count == RXW_XDR_LIST)\n\treturn rxw_xdr_fail(x);\n"
		  "v = %s;\n}",
		  next, next, next);
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
	bool take, there;

	find_arm_variables(e, type, &take, &there);
	emit_line(e, "%sif (!%s)\n\treturn false;", take ? "uint8_t *p;\n\n" : "",
		  emit_put_call(e, &view, "x", d));
	if (emit_arm_cases(e, type, d, emit_put_arm))
		emit_line(e, "}");
	else
		emit_line(e, "default:\nreturn rxw_xdr_fail(x);\n}");
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
	if (emit_takes(&plan))
		emit_line(e, "uint8_t *p = rxw_xdr_take(x, %u);\n\n", plan.steps[0].run.size);
	emit_put_steps(e, &plan, true, true);
	emit_steps_free(&plan);
}

/* A struct whose array is copied as words must have no padding. */
static void emit_words_assertion(struct emit *e, const struct xg_decl *decl)
{
	if (decl->kind != XG_NAMED || decl->type->what == XG_ENUM || !emit_element_words(decl) ||
	    (decl->shape != XG_COUNTED && decl->shape != XG_FIXED))
		return;
	emit_line(e, "\n_Static_assert(sizeof(%s) == %llu, \"%s: no padding\");", decl->type->name,
		  4 * (unsigned long long)emit_element_words(decl), decl->type->name);
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
	emit_line(e, "\nbool xdr_put_%s(struct rxw_xdr *x, const %s *v)\n{", type->name,
		  type->name);
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
	emit_line(e, "}");
}

/* -- decoders ---------------------------------------------------------------------------------- */

/* Statements after a failure. */
#define RETURN "return false;"
#define FAIL   "goto fail;"
/* Variables of a loop over counted elements. */
#define COUNT_VARIABLES "size_t room = 0;\nuint32_t count;\n\n"

/* Suffixes of the runtime's functions for scalars, and casts to narrow a word. */
static const char *const getters[] = {
	[XG_INT] = "i32",    [XG_UINT] = "u32",	   [XG_SHORT] = "i16",	   [XG_USHORT] = "u16",
	[XG_CHAR] = "char",  [XG_UCHAR] = "u8",	   [XG_BOOL] = "bool",	   [XG_INT64] = "i64",
	[XG_UINT64] = "u64", [XG_FLOAT] = "float", [XG_DOUBLE] = "double",
};
static const char *const casts[] = {
	[XG_INT] = "(int32_t)",	  [XG_UINT] = "",
	[XG_SHORT] = "(int16_t)", [XG_USHORT] = "(uint16_t)",
	[XG_CHAR] = "(char)",	  [XG_UCHAR] = "(uint8_t)",
	[XG_BOOL] = "",		  [XG_INT64] = "(int64_t)",
	[XG_UINT64] = "",
};

const char *emit_get_call(struct emit *e, const struct emit_view *view, const char *x,
			  const char *value)
{
	const struct xg_decl *decl = view->decl;
	const char *name = decl->name;

	assert(emit_is_call(view));
	switch (view->form) {
	case EMIT_SCALAR:
	case EMIT_FLOATING:
		return emit_format(e, "rxw_xdr_get_%s(%s, %s)", getters[view->kind], x,
				   emit_address(e, value));
	case EMIT_UUID:
		return emit_format(e, "rxw_xdr_get_uuid(%s, %s)", x, emit_address(e, value));
	case EMIT_STRING:
		return emit_format(e, "rxw_xdr_get_string(%s, %s, %s)", x, emit_bound(e, decl),
				   emit_address(e, value));
	case EMIT_OPAQUE:
		return emit_format(e, "rxw_xdr_get_opaque(%s, %s, %s)", x, value,
				   emit_bound(e, decl));
	case EMIT_ARRAY:
		return emit_format(e, "rxw_xdr_get_words(%s, %s, %s)", x, value,
				   emit_words(e, decl, emit_bound(e, decl)));
	case EMIT_BYTES:
		return emit_format(e, "rxw_xdr_get_bytes(%s, %s, &%s, &%s)", x, emit_bound(e, decl),
				   emit_member(e, value, emit_val(e, name)),
				   emit_member(e, value, emit_len(e, name)));
	default:
		return emit_format(e, "xdr_get_%s(%s, %s)", view->type->name, x,
				   emit_address(e, value));
	}
}

static const char *format_load(struct emit *e, enum xg_kind kind, const char *from)
{
	return emit_format(e, "%srxw_xdr_load%u(%s)%s", casts[kind], 8 * emit_scalar_size(kind),
			   from, kind == XG_BOOL ? " != 0" : "");
}

static void emit_get_leaf(struct emit *e, const struct emit_leaf *leaf)
{
	const struct emit_view *view = &leaf->view;
	const char *from = emit_place(e, leaf->offset);
	struct emit_view element;

	if (view->form == EMIT_OPAQUE) {
		emit_line(e, "memcpy(%s, %s, %s);", leaf->value, from, emit_bound(e, view->decl));
	} else if (view->form == EMIT_ARRAY) {
		element = emit_element_view(view->decl);
		from = emit_format(e, "%s + %u * i", from, emit_scalar_size(element.kind));
		emit_line(e, "for (unsigned i = 0; i < %s; i++)\n\t%s = %s;",
			  emit_bound(e, view->decl), emit_index(e, leaf->value, "i"),
			  format_load(e, element.kind, from));
	} else {
		emit_line(e, "%s = %s;", leaf->value, format_load(e, view->kind, from));
	}
}

/* Decode elements; memory is allocated in steps as they arrive. */
static void emit_get_elements(struct emit *e, const struct xg_decl *decl, const char *value,
			      const char *fail)
{
	const char *len = emit_member(e, value, emit_len(e, decl->name));
	const char *val = emit_member(e, value, emit_val(e, decl->name));
	struct emit_view element = emit_element_view(decl);

	assert(decl->shape == XG_COUNTED);
	emit_line(e,
		  "while (%s < count) {\n"
		  "%s *val = rxw_xdr_grow(x, %s, &room, count, sizeof(*val));\n\n"
		  "if (!val)\n\t%s\n%s = val;",
		  len, emit_c_type(decl), val, fail, val);
	if (emit_element_words(decl)) {
		const char *words = emit_words(e, decl, emit_format(e, "room - %s", len));

		emit_check(e, emit_format(e, "rxw_xdr_get_words(x, &val[%s], %s)", len, words),
			   fail);
		emit_line(e, "%s = (uint32_t)room;", len);
	} else {
		emit_line(e, "for (; %s < room; %s++) {\nif (!%s)\n\t%s\n}", len, len,
			  emit_get_call(e, &element, "x", emit_index(e, "val", len)), fail);
	}
	emit_line(e, "}");
}

static const char *format_count_call(struct emit *e, const struct xg_decl *decl)
{
	return emit_format(e, "rxw_xdr_get_count(x, %s, %llu, &count)", emit_bound(e, decl),
			   (unsigned long long)emit_element_min(decl));
}

/* The decoder of a counted array that is a member: get_STRUCT_MEMBER(). */
static void emit_member_decoder(struct emit *e, const struct xg_type *type,
				const struct xg_decl *decl, const char *value)
{
	if (emit_view(decl).form != EMIT_COUNTED)
		return;
	emit_line(e,
		  "\nstatic bool get_%s_%s(struct rxw_xdr *x, %s *v)\n{\n" COUNT_VARIABLES
		  "if (!%s)\n\t" RETURN,
		  type->name, decl->name, type->name, format_count_call(e, decl));
	emit_get_elements(e, decl, value, RETURN);
	emit_line(e, "return true;\n}");
}

static void emit_get_pointer(struct emit *e, const struct xg_decl *decl, const char *value)
{
	struct emit_view target = emit_element_view(decl);
	const char *call = emit_get_call(e, &target, "x", emit_format(e, "*%s", value));
	bool deep = target.form == EMIT_CALL && target.type->recursive;

	assert(decl->shape == XG_POINTER);
	emit_line(e,
		  "if (!rxw_xdr_get_u32(x, &there))\n\t" FAIL "\n"
		  "if (there) {\n%s = rxw_xdr_new(x, sizeof(*%s));\nif (!%s%s || !%s)\n\t" FAIL
		  "%s\n}",
		  value, value, value, deep ? " || !rxw_xdr_enter(x)" : "", call,
		  deep ? "\nrxw_xdr_leave(x);" : "");
}

static void emit_get_value(struct emit *e, const struct xg_type *type, const struct emit_step *step)
{
	const struct emit_view *view = &step->view;
	struct emit_view element;

	if (emit_is_call(view)) {
		emit_check(e, emit_get_call(e, view, "x", step->value), FAIL);
	} else if (view->form == EMIT_ARRAY) {
		element = emit_element_view(view->decl);
		emit_line(e, "for (unsigned i = 0; i < %s; i++) {\nif (!%s)\n\t" FAIL "\n}",
			  emit_bound(e, view->decl),
			  emit_get_call(e, &element, "x", emit_index(e, step->value, "i")));
	} else if (view->form == EMIT_COUNTED) {
		emit_line(e, "if (!get_%s_%s(x, %s))\n\t" FAIL, type->name, step->decl->name,
			  type->list ? "at" : "v");
	} else {
		emit_get_pointer(e, view->decl, step->value);
	}
}

/* `taken`: `p` is already set for the first step. */
static void emit_get_steps(struct emit *e, const struct xg_type *type,
			   const struct emit_steps *plan, bool taken)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct emit_step *step = &plan->steps[i];
		const struct emit_leaf *leaf = step->run.leaves;

		if (!step->run.size) {
			emit_get_value(e, type, step);
		} else if (emit_single(&step->run)) {
			emit_check(e, emit_get_call(e, &leaf->view, "x", leaf->value), FAIL);
		} else {
			if (!taken || i)
				emit_line(e, "p = rxw_xdr_take(x, %u);", step->run.size);
			emit_check(e, "p", FAIL);
			for (size_t j = 0; j < step->run.count; j++)
				emit_get_leaf(e, &step->run.leaves[j]);
		}
	}
}

/*
 * Declare variables for steps; false if none is needed. `first`: initialize `p` for the first step.
 */
static bool emit_get_variables(struct emit *e, const struct emit_steps *plan, bool first)
{
	if (first)
		emit_line(e, "const uint8_t *p = rxw_xdr_take(x, %u);", plan->steps[0].run.size);
	else if (emit_takes(plan))
		emit_line(e, "const uint8_t *p;");
	if (has_pointer_step(plan))
		emit_line(e, "uint32_t there;");
	return emit_takes(plan) || has_pointer_step(plan);
}

/* The end of a decoder, behind the statement that returns true. */
static void emit_get_end(struct emit *e, const struct xg_type *type)
{
	emit_line(e, "fail:\nxdrfree_%s(v);\nreturn false;", type->name);
}

/* Decode a value that is a single run; false if it is not. */
static bool emit_get_flat(struct emit *e, const struct emit_steps *plan, bool array,
			  const char *name)
{
	const struct emit_step *step = &plan->steps[0];

	if (plan->count != 1 || !step->run.size)
		return false;
	emit_line(e, "const uint8_t *p = rxw_xdr_take(x, %u);\n\nif (!p) {\n%s\nreturn false;\n}",
		  step->run.size,
		  array ? "memset(*v, 0, sizeof(*v));" : emit_format(e, "*v = (%s){0};", name));
	for (size_t i = 0; i < step->run.count; i++)
		emit_get_leaf(e, &step->run.leaves[i]);
	emit_line(e, "return true;");
	return true;
}

/* Whether a failed decoder zeroes the value. */
static bool decoder_zeroes_value(const struct emit_view *view)
{
	return view->form == EMIT_STRING || view->form == EMIT_BYTES || view->form == EMIT_CALL;
}

static void emit_get_struct(struct emit *e, const struct xg_type *type)
{
	struct emit_steps plan;

	emit_plan(e, type->members, type->member_count, "*v", &plan);
	if (plan.count == 1 && decoder_zeroes_value(&plan.steps[0].view)) {
		emit_line(e, "return %s;",
			  emit_get_call(e, &plan.steps[0].view, "x", plan.steps[0].value));
	} else if (!emit_get_flat(e, &plan, false, type->name)) {
		bool first =
			plan.count && plan.steps[0].run.size && !emit_single(&plan.steps[0].run);

		if (emit_get_variables(e, &plan, first))
			emit_blank(e);
		if (type->owns)
			emit_line(e, "*v = (%s){0};", type->name);
		emit_get_steps(e, type, &plan, first);
		emit_line(e, "return true;");
		emit_get_end(e, type);
	}
	emit_steps_free(&plan);
}

static void emit_get_list(struct emit *e, const struct xg_type *type)
{
	const struct xg_decl *last = &type->members[type->member_count - 1];
	const char *next = emit_member(e, "*at", emit_member_name(e, last->name));
	struct emit_steps plan;

	assert(type->list && type->member_count > 0);
	emit_plan(e, type->members, type->member_count - 1, "*at", &plan);
	emit_line(e, "%s *at = v;", type->name);
	emit_get_variables(e, &plan, false);
	if (!has_pointer_step(&plan))
		emit_line(e, "uint32_t there;");
	emit_line(e, "\n*v = (%s){0};\nfor (unsigned count = 1;; count++) {", type->name);
	emit_get_steps(e, type, &plan, false);
	emit_line(e,
		  "if (!rxw_xdr_get_u32(x, &there))\n\t" FAIL "\n"
		  "if (!there)\n\treturn true;\n"
		  "if (count == RXW_XDR_LIST)\n\tbreak;\n"
		  "%s = rxw_xdr_new(x, sizeof(*%s));\nif (!%s)\n\t" FAIL "\n"
		  "at = %s;\n}\nrxw_xdr_fail(x);",
		  next, next, next, next);
	emit_get_end(e, type);
	emit_steps_free(&plan);
}

static void emit_get_arm(struct emit *e, const struct xg_type *type, const struct xg_arm *arm)
{
	struct emit_steps plan;

	if (arm->decl.kind != XG_VOID) {
		emit_plan(e, &arm->decl, 1, emit_format(e, "v->%s", emit_arms(e, type)), &plan);
		emit_get_steps(e, type, &plan, false);
		emit_steps_free(&plan);
	}
	emit_line(e, "return true;");
}

static void emit_get_union(struct emit *e, const struct xg_type *type)
{
	const char *d = emit_member(e, "*v", emit_member_name(e, type->discriminant.name));
	struct emit_view view = emit_view(&type->discriminant);
	bool take, there;

	find_arm_variables(e, type, &take, &there);
	if (take)
		emit_line(e, "const uint8_t *p;");
	if (there)
		emit_line(e, "uint32_t there;");
	if (take || there)
		emit_blank(e);
	emit_line(e, "*v = (%s){0};\nif (!%s)\n\t" FAIL, type->name,
		  emit_get_call(e, &view, "x", d));
	if (emit_arm_cases(e, type, d, emit_get_arm))
		emit_line(e, "}");
	else
		emit_line(e, "default:\nrxw_xdr_fail(x);\nbreak;\n}");
	emit_get_end(e, type);
}

static void emit_get_alias(struct emit *e, const struct xg_type *type)
{
	struct emit_view view = emit_view(&type->alias);
	struct emit_steps plan;

	switch (view.form) {
	case EMIT_SCALAR:
	case EMIT_FLOATING:
		emit_line(e, "*v = %s;\nreturn %s;", view.kind == XG_BOOL ? "false" : "0",
			  emit_get_call(e, &view, "x", "*v"));
		return;
	case EMIT_UUID:
		emit_line(e, "*v = (%s){0};\nreturn %s;", type->name,
			  emit_get_call(e, &view, "x", "*v"));
		return;
	case EMIT_STRING:
	case EMIT_BYTES:
	case EMIT_CALL: /* after a failure they zero the value */
		emit_line(e, "return %s;", emit_get_call(e, &view, "x", "*v"));
		return;
	case EMIT_COUNTED:
		emit_line(e, COUNT_VARIABLES "*v = (%s){0};\nif (!%s)\n\t" RETURN, type->name,
			  format_count_call(e, view.decl));
		emit_get_elements(e, view.decl, "*v", FAIL);
		emit_line(e, "return true;");
		emit_get_end(e, type);
		return;
	default:
		emit_plan(e, &type->alias, 1, NULL, &plan);
		if (!emit_get_flat(e, &plan, true, type->name)) {
			if (emit_get_variables(e, &plan, false))
				emit_blank(e);
			if (view.form == EMIT_POINTER)
				emit_line(e, "*v = NULL;");
			else if (emit_view_owns(&view))
				emit_line(e, "memset(*v, 0, sizeof(*v));");
			emit_get_steps(e, type, &plan, false);
			emit_line(e, "return true;");
			emit_get_end(e, type);
		}
		emit_steps_free(&plan);
	}
}

/* Decoders of the counted arrays that are members of a struct or arms of a union. */
static void emit_member_decoders(struct emit *e, const struct xg_type *type)
{
	if (type->what == XG_STRUCT) {
		for (size_t i = 0; i < type->member_count; i++) {
			const struct xg_decl *decl = &type->members[i];
			const char *name = emit_member_name(e, decl->name);

			emit_member_decoder(e, type, decl, emit_member(e, "*v", name));
		}
	} else if (type->what == XG_UNION) {
		for (size_t i = 0; i < type->arm_count; i++) {
			const struct xg_decl *decl = &type->arms[i].decl;

			if (decl->kind == XG_VOID)
				continue;
			emit_member_decoder(e, type, decl,
					    emit_format(e, "v->%s.%s", emit_arms(e, type),
							emit_member_name(e, decl->name)));
		}
	}
}

void emit_get(struct emit *e, const struct xg_type *type)
{
	emit_member_decoders(e, type);
	emit_line(e, "\nbool xdr_get_%s(struct rxw_xdr *x, %s *v)\n{", type->name, type->name);
	if (type->what == XG_TYPEDEF)
		emit_get_alias(e, type);
	else if (type->what == XG_UNION)
		emit_get_union(e, type);
	else if (type->what == XG_STRUCT && type->list)
		emit_get_list(e, type);
	else if (type->what == XG_STRUCT)
		emit_get_struct(e, type);
	else
		emit_line(e, "*v = 0;\nreturn rxw_xdr_get_i32(x, v);");
	emit_line(e, "}");
}
