/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xdrfree_T(): frees the memory that a decoder has allocated, and zeroes the value. xdrcopy_T(): a
 * deep copy, whose memory xdrfree_T() frees; what is not copied yet is zero.
 */
#include "rxwgen/emit/emit.h"

#include <assert.h>

#define FAIL "goto fail;"

/* -- free -------------------------------------------------------------------------------------- */

static void emit_free_elements(struct emit *e, const struct xg_decl *decl, const char *type,
			       const char *count, const char *value)
{
	struct emit_view element = emit_element_view(decl);
	const char *i = emit_loop(e);

	if (!emit_view_owns(&element))
		return;
	emit_line(e, "for (%s %s = 0; %s < %s; %s++)", type, i, i, count, i);
	e->depth++;
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
	emit_line(e, "if (%s) {", value);
	emit_free_value(e, &target, emit_format(e, "*%s", value));
	emit_line(e, "free(%s);\n}", value);
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

static void emit_free_list(struct emit *e, const struct xg_type *type)
{
	const struct xg_decl *last = &type->members[type->member_count - 1];
	const char *next = emit_member(e, "*at", emit_member_name(e, last->name));

	assert(type->list && type->member_count > 0);
	emit_line(e, "%s *at = v;\n\ndo {\n%s *next = %s;\n\n", type->name, type->name, next);
	for (size_t i = 0; i + 1 < type->member_count; i++) {
		struct emit_view view = emit_view(&type->members[i]);
		const char *name = emit_member_name(e, type->members[i].name);

		emit_free_value(e, &view, emit_member(e, "*at", name));
	}
	emit_line(e, "if (at != v)\n\tfree(at);\nat = next;\n} while (at);");
}

static bool owns_arm(const struct xg_arm *arm)
{
	struct emit_view view = emit_view(&arm->decl);

	return emit_view_owns(&view);
}

/*
 * A switch over the arms of the union `v`; `emit_arm` emits the statements of one. With `all` each
 * arm has a case. Otherwise one without memory has a case only if the default has memory.
 */
static void emit_arm_switch(struct emit *e, const struct xg_type *type, const char *v, bool all,
			    void (*emit_arm)(struct emit *e, const struct xg_type *type,
					     const struct xg_arm *arm))
{
	bool is_bool = emit_view(&type->discriminant).kind == XG_BOOL, others = false;

	assert(type->what == XG_UNION);
	for (size_t i = 0; i < type->arm_count; i++)
		others = others || (!type->arms[i].text && (all || owns_arm(&type->arms[i])));
	emit_line(e, "switch (%s%s->%s) {", is_bool ? "(int)" : "", v,
		  emit_member_name(e, type->discriminant.name));
	for (size_t i = 0; i < type->arm_count; i++) {
		if (!all && !others && !owns_arm(&type->arms[i]))
			continue;
		emit_line(e, "%s:", emit_case(e, type, &type->arms[i]));
		emit_arm(e, type, &type->arms[i]);
		emit_line(e, "break;");
	}
	emit_line(e, others ? "}" : "default:\nbreak;\n}");
}

static void emit_free_arm(struct emit *e, const struct xg_type *type, const struct xg_arm *arm)
{
	struct emit_view view = emit_view(&arm->decl);

	if (emit_view_owns(&view))
		emit_free_value(e, &view,
				emit_format(e, "v->%s.%s", emit_arms(e, type),
					    emit_member_name(e, arm->decl.name)));
}

void emit_free(struct emit *e, const struct xg_type *type)
{
	struct emit_view view;

	emit_line(e, "\nvoid xdrfree_%s(%s *v)\n{", type->name, type->name);
	if (type->what == XG_ENUM) {
		emit_line(e, "*v = 0;");
	} else if (type->what == XG_TYPEDEF) {
		view = emit_view(&type->alias);
		emit_free_value(e, &view, "*v");
		emit_zero(e, &view, type->name, "*v");
	} else {
		if (type->what == XG_UNION && type->owns)
			emit_arm_switch(e, type, "v", false, emit_free_arm);
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
	emit_line(e, "}");
}

/* -- copy -------------------------------------------------------------------------------------- */

static void emit_copy_value(struct emit *e, const struct emit_view *view, const char *to,
			    const char *from);

/* A value without memory of its own. */
static void emit_plain_copy(struct emit *e, const struct emit_view *view, const char *to,
			    const char *from)
{
	if (emit_is_array(view))
		emit_line(e, "memcpy(%s, %s, sizeof(%s));", to, from, to);
	else
		emit_line(e, "%s = %s;", to, from);
}

static void emit_copy_elements(struct emit *e, const struct xg_decl *decl, const char *type,
			       const char *count, const char *to, const char *from)
{
	struct emit_view element = emit_element_view(decl);
	const char *i = emit_loop(e);

	emit_line(e, "for (%s %s = 0; %s < %s; %s++) {", type, i, i, count, i);
	emit_copy_value(e, &element, emit_index(e, to, i), emit_index(e, from, i));
	emit_line(e, "}");
}

/* Counted elements or bytes. */
static void emit_copy_counted(struct emit *e, const struct emit_view *view, const char *to,
			      const char *from)
{
	const struct xg_decl *decl = view->decl;
	const char *len = emit_member(e, to, emit_len(e, decl->name));
	const char *val = emit_member(e, to, emit_val(e, decl->name));
	const char *count = emit_member(e, from, emit_len(e, decl->name));
	const char *source = emit_member(e, from, emit_val(e, decl->name));
	struct emit_view element = emit_element_view(decl);

	emit_line(e, "if (%s) {\n%s = calloc(%s, sizeof(*%s));\nif (!%s)\n\t" FAIL "\n%s = %s;",
		  count, val, count, val, val, len, count);
	if (view->form == EMIT_COUNTED && emit_view_owns(&element))
		emit_copy_elements(e, decl, "uint32_t", count, val, source);
	else
		emit_line(e, "memcpy(%s, %s, %s * sizeof(*%s));", val, source, count, val);
	emit_line(e, "}");
}

static void emit_copy_pointer(struct emit *e, const struct xg_decl *decl, const char *to,
			      const char *from)
{
	struct emit_view target = emit_element_view(decl);

	assert(decl->shape == XG_POINTER);
	emit_line(e, "if (%s) {\n%s = calloc(1, sizeof(*%s));\nif (!%s)\n\t" FAIL, from, to, to,
		  to);
	emit_copy_value(e, &target, emit_format(e, "*%s", to), emit_format(e, "*%s", from));
	emit_line(e, "}");
}

static void emit_copy_value(struct emit *e, const struct emit_view *view, const char *to,
			    const char *from)
{
	if (!emit_view_owns(view)) {
		if (view->form != EMIT_VOID)
			emit_plain_copy(e, view, to, from);
		return;
	}
	switch (view->form) {
	case EMIT_STRING:
		emit_line(e,
			  "if (%s) {\n%s = malloc(strlen(%s) + 1);\nif (!%s)\n\t" FAIL
			  "\nmemcpy(%s, %s, strlen(%s) + 1);\n}",
			  from, to, from, to, to, from, from);
		break;
	case EMIT_BYTES:
	case EMIT_COUNTED:
		emit_copy_counted(e, view, to, from);
		break;
	case EMIT_ARRAY:
		emit_copy_elements(e, view->decl, "unsigned", emit_bound(e, view->decl), to, from);
		break;
	case EMIT_POINTER:
		emit_copy_pointer(e, view->decl, to, from);
		break;
	default:
		assert(view->form == EMIT_CALL);
		emit_check(e,
			   emit_format(e, "xdrcopy_%s(%s, %s)", view->type->name,
				       emit_address(e, to), emit_address(e, from)),
			   FAIL);
	}
}

static void emit_copy_members(struct emit *e, const struct xg_type *type, size_t count,
			      const char *to, const char *from)
{
	for (size_t i = 0; i < count; i++) {
		struct emit_view view = emit_view(&type->members[i]);
		const char *name = emit_member_name(e, type->members[i].name);

		emit_copy_value(e, &view, emit_member(e, to, name), emit_member(e, from, name));
	}
}

/* Elements are copied in a loop: a list is longer than recursion may be deep. */
static void emit_copy_list(struct emit *e, const struct xg_type *type)
{
	const struct xg_decl *last = &type->members[type->member_count - 1];
	const char *name = emit_member_name(e, last->name);
	const char *next = emit_member(e, "*at", name);

	assert(type->list && type->member_count > 0);
	emit_line(e, "for (;;) {");
	emit_copy_members(e, type, type->member_count - 1, "*at", "*from");
	emit_line(e,
		  "if (!from->%s)\n\treturn true;\n"
		  "%s = calloc(1, sizeof(*at));\nif (!%s)\n\t" FAIL "\n"
		  "at = %s;\nfrom = from->%s;\n}",
		  name, next, next, next, name);
}

static void emit_copy_arm(struct emit *e, const struct xg_type *type, const struct xg_arm *arm)
{
	struct emit_view view = emit_view(&arm->decl);
	const char *name;

	if (view.form == EMIT_VOID)
		return;
	name = emit_format(e, "%s.%s", emit_arms(e, type), emit_member_name(e, arm->decl.name));
	emit_copy_value(e, &view, emit_format(e, "to->%s", name), emit_format(e, "from->%s", name));
}

static void emit_copy_union(struct emit *e, const struct xg_type *type)
{
	const char *d = emit_member_name(e, type->discriminant.name);

	emit_line(e, "to->%s = from->%s;", d, d);
	emit_arm_switch(e, type, "from", true, emit_copy_arm);
}

/* The body, of a type with memory of its own. */
static void emit_deep_copy(struct emit *e, const struct xg_type *type)
{
	struct emit_view alias;

	if (type->list)
		emit_line(e, "%s *at = to;\n\n", type->name);
	if (type->what == XG_TYPEDEF) {
		alias = emit_view(&type->alias);
		emit_zero(e, &alias, type->name, "*to");
		emit_copy_value(e, &alias, "*to", "*from");
	} else {
		emit_line(e, "*to = (%s){0};", type->name);
		if (type->what == XG_UNION)
			emit_copy_union(e, type);
		else if (type->list)
			emit_copy_list(e, type);
		else
			emit_copy_members(e, type, type->member_count, "*to", "*from");
	}
	emit_line(e, "%sfail:\nxdrfree_%s(to);\nreturn false;", type->list ? "" : "return true;\n",
		  type->name);
}

void emit_copy(struct emit *e, const struct xg_type *type)
{
	struct emit_view alias;

	emit_line(e, "\nbool xdrcopy_%s(%s *to, const %s *from)\n{", type->name, type->name,
		  type->name);
	if (type->owns) {
		emit_deep_copy(e, type);
	} else if (type->what == XG_TYPEDEF) {
		alias = emit_view(&type->alias);
		emit_plain_copy(e, &alias, "*to", "*from");
		emit_line(e, "return true;");
	} else {
		emit_line(e, "*to = *from;\nreturn true;");
	}
	emit_line(e, "}");
}
