/* SPDX-License-Identifier: BSD-2-Clause */
/* xdrfree_T(): free the memory that a decoder has allocated, and zero the value. */
#include "rxwgen/emit/emit.h"

#include <assert.h>

static void emit_free_elements(struct emit *e, const struct xg_decl *decl, const char *type,
			       const char *count, const char *value)
{
	struct emit_view element = emit_element_view(decl);
	const char *i = emit_loop(e);

	if (!emit_view_owns(&element))
		return;
	emit_open(e, "for (%s %s = 0; %s < %s; %s++)", type, i, i, count, i);
	emit_free_value(e, &element, emit_index(e, value, i));
	e->depth--;
}

static void emit_free_pointer(struct emit *e, const struct xg_decl *decl, const char *value)
{
	struct emit_view target = emit_element_view(decl);

	if (!emit_view_owns(&target)) {
		emit_line(e, "free(%s);", value);
		return;
	}
	emit_open(e, "if (%s) {", value);
	emit_free_value(e, &target, emit_format(e, "*%s", value));
	emit_line(e, "free(%s);", value);
	emit_close(e, "}");
}

void emit_free_value(struct emit *e, const struct emit_view *view, const char *value)
{
	const struct xg_decl *decl = view->decl;
	const char *val;

	switch (view->form) {
	case EMIT_STRING:
		emit_line(e, "free(%s);", value);
		break;
	case EMIT_BYTES:
		emit_line(e, "free(%s);", emit_member(e, value, emit_val(e, decl->name)));
		break;
	case EMIT_COUNTED:
		val = emit_member(e, value, emit_val(e, decl->name));
		emit_free_elements(e, decl, "uint32_t",
				   emit_member(e, value, emit_len(e, decl->name)), val);
		emit_line(e, "free(%s);", val);
		break;
	case EMIT_ARRAY:
		emit_free_elements(e, decl, "unsigned", emit_bound(e, decl), value);
		break;
	case EMIT_POINTER:
		emit_free_pointer(e, decl, value);
		break;
	case EMIT_CALL:
		if (emit_view_owns(view))
			emit_line(e, "xdrfree_%s(%s);", view->type->name, emit_address(e, value));
		break;
	default:
		break;
	}
}

/* The form of the zero of a type. */
enum zero {
	ZERO_NUMBER,
	ZERO_FALSE,
	ZERO_NULL,
	ZERO_STRUCT,
	ZERO_ARRAY
};

static enum zero choose_zero_form(const struct emit_view *view)
{
	struct emit_view alias;

	switch (view->form) {
	case EMIT_SCALAR:
		return view->kind == XG_BOOL ? ZERO_FALSE : ZERO_NUMBER;
	case EMIT_FLOATING:
		return ZERO_NUMBER;
	case EMIT_STRING:
	case EMIT_POINTER:
		return ZERO_NULL;
	case EMIT_OPAQUE:
	case EMIT_ARRAY:
		return ZERO_ARRAY;
	case EMIT_CALL:
		if (view->type->what != XG_TYPEDEF)
			return ZERO_STRUCT;
		alias = emit_view(&view->type->alias);
		return choose_zero_form(&alias);
	default:
		return ZERO_STRUCT;
	}
}

void emit_zero(struct emit *e, const struct emit_view *view, const char *type, const char *value)
{
	switch (choose_zero_form(view)) {
	case ZERO_NUMBER:
		emit_line(e, "%s = 0;", value);
		break;
	case ZERO_FALSE:
		emit_line(e, "%s = false;", value);
		break;
	case ZERO_NULL:
		emit_line(e, "%s = NULL;", value);
		break;
	case ZERO_ARRAY:
		emit_line(e, "memset(%s, 0, sizeof(%s));", value, value);
		break;
	default:
		emit_line(e, "%s = (%s){0};", value, type);
		break;
	}
}

bool emit_is_array(const struct emit_view *view)
{
	return choose_zero_form(view) == ZERO_ARRAY;
}

const char *emit_initializer(const struct emit_view *view)
{
	static const char *const texts[] = {"0", "false", "NULL", "{0}", "{0}"};

	return texts[choose_zero_form(view)];
}

static void emit_free_list(struct emit *e, const struct xg_type *type)
{
	const struct xg_decl *last = &type->members[type->member_count - 1];
	const char *next = emit_member(e, "*at", emit_member_name(e, last->name));

	assert(type->list && type->member_count > 0);
	emit_line(e, "%s *at = v;", type->name);
	emit_blank(e);
	emit_open(e, "do {");
	emit_line(e, "%s *next = %s;", type->name, next);
	emit_blank(e);
	for (size_t i = 0; i + 1 < type->member_count; i++) {
		struct emit_view view = emit_view(&type->members[i]);
		const char *name = emit_member_name(e, type->members[i].name);

		emit_free_value(e, &view, emit_member(e, "*at", name));
	}
	emit_open(e, "if (at != v)");
	emit_line(e, "free(at);");
	e->depth--;
	emit_line(e, "at = next;");
	emit_close(e, "} while (at);");
}

static void emit_free_union(struct emit *e, const struct xg_type *type)
{
	const char *d = emit_member_name(e, type->discriminant.name);
	const char *inside = emit_format(e, "v->%s", emit_arms(e, type));
	bool is_bool = emit_view(&type->discriminant).kind == XG_BOOL, others = false;

	assert(type->what == XG_UNION);
	if (!type->owns)
		return;
	for (size_t i = 0; i < type->arm_count; i++) {
		struct emit_view view = emit_view(&type->arms[i].decl);

		others = others || (!type->arms[i].text && emit_view_owns(&view));
	}
	emit_line(e, "switch (%sv->%s) {", is_bool ? "(int)" : "", d);
	for (size_t i = 0; i < type->arm_count; i++) {
		const struct xg_arm *arm = &type->arms[i];
		struct emit_view view = emit_view(&arm->decl);
		bool owns = emit_view_owns(&view);

		/* An arm without memory needs a case only if the default frees some. */
		if (!owns && !others)
			continue;
		emit_line(e, "%s:", emit_case(e, type, arm));
		e->depth++;
		if (owns)
			emit_free_value(
				e, &view,
				emit_member(e, inside, emit_member_name(e, arm->decl.name)));
		emit_line(e, "break;");
		e->depth--;
	}
	if (!others) {
		emit_line(e, "default:");
		emit_line(e, "\tbreak;");
	}
	emit_line(e, "}");
}

void emit_free(struct emit *e, const struct xg_type *type)
{
	struct emit_view view;

	emit_line(e, "void xdrfree_%s(%s *v)", type->name, type->name);
	emit_open(e, "{");
	if (type->what == XG_ENUM) {
		emit_line(e, "*v = 0;");
	} else if (type->what == XG_TYPEDEF) {
		view = emit_view(&type->alias);
		emit_free_value(e, &view, "*v");
		emit_zero(e, &view, type->name, "*v");
	} else {
		if (type->what == XG_UNION)
			emit_free_union(e, type);
		else if (type->list)
			emit_free_list(e, type);
		for (size_t i = 0; type->what == XG_STRUCT && !type->list && i < type->member_count;
		     i++) {
			const char *name = emit_member_name(e, type->members[i].name);

			view = emit_view(&type->members[i]);
			emit_free_value(e, &view, emit_member(e, "*v", name));
		}
		emit_line(e, "*v = (%s){0};", type->name);
	}
	emit_close(e, "}");
}
