/* SPDX-License-Identifier: BSD-2-Clause */
/* Types in the header (rxgen.md 5.1). */
#include <assert.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

static const char *const scalars[] = {
	[XG_INT] = "int32_t",	  [XG_UINT] = "uint32_t", [XG_SHORT] = "int16_t",
	[XG_USHORT] = "uint16_t", [XG_CHAR] = "char",	  [XG_UCHAR] = "uint8_t",
	[XG_BOOL] = "bool",	  [XG_INT64] = "int64_t", [XG_UINT64] = "uint64_t",
	[XG_FLOAT] = "float",	  [XG_DOUBLE] = "double", [XG_UUID] = "struct rxw_uuid",
	[XG_OPAQUE] = "char",	  [XG_STRING] = "char",	  [XG_VOID] = "void",
};

const char *emit_c_type(struct emit *e, const struct xg_decl *decl)
{
	(void)e;
	return decl->kind == XG_NAMED ? decl->type->name : scalars[decl->kind];
}

const char *emit_element_type(struct emit *e, const struct xg_decl *decl, const char *name)
{
	return emit_format(e, "%s *%s", emit_c_type(e, decl), name);
}

/* Whether C knows the type before the item. */
static bool is_type_defined(const struct emit *e, const struct xg_type *type, size_t before)
{
	if (type->included)
		return true;
	for (size_t i = 0; i < before; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (item->kind == XG_ITEM_TYPE && item->type == type)
			return true;
	}
	return false;
}

/* "T *", or "struct T *" before the typedef. */
static const char *format_pointer_type(struct emit *e, const struct xg_decl *decl, size_t index)
{
	bool tag = decl->kind == XG_NAMED && !is_type_defined(e, decl->type, index);

	return emit_format(e, "%s%s *", tag ? "struct " : "", emit_c_type(e, decl));
}

/* A note on the values that C's type does not express, or "". */
static const char *describe_limit(struct emit *e, const struct xg_decl *decl)
{
	const char *bound = emit_bound(e, decl);

	if (decl->shape == XG_POINTER)
		return "or NULL";
	if (decl->shape != XG_COUNTED)
		return "";
	if (decl->kind == XG_STRING || decl->kind == XG_OPAQUE)
		return emit_format(e, "at most %s bytes", bound);
	return emit_format(e, "at most %s", bound);
}

static const char *join_notes(struct emit *e, const char *first, const char *second)
{
	if (!first || !*first)
		return second;
	if (!second || !*second)
		return first;
	return emit_format(e, "%s; %s", first, second);
}

/* A declaration as a member or, with the keyword "typedef ", a type. `note`: label of an arm. */
static void emit_type_member(struct emit *e, const char *keyword, const struct xg_decl *decl,
			     const char *note, size_t index)
{
	const char *type = emit_c_type(e, decl), *name = decl->name;
	const char *c_name = emit_member_name(e, name), *text;
	bool bytes = decl->kind == XG_OPAQUE && decl->shape == XG_COUNTED;
	bool counted = decl->shape == XG_COUNTED && decl->kind != XG_STRING;

	note = join_notes(e, note, decl->doc);
	if (counted && !(bytes && e->options->short_fields)) {
		emit_open(e, "%sstruct %s{", keyword,
			  *keyword ? emit_format(e, "%s ", c_name) : "");
		emit_commented(e, emit_format(e, "uint32_t %s;", emit_len(e, name)),
			       describe_limit(e, decl));
		emit_line(e, "%s%s;", format_pointer_type(e, decl, index), emit_val(e, name));
		e->depth--;
		emit_commented(e, emit_format(e, "} %s;", c_name), *keyword ? NULL : note);
		return;
	}
	if (counted)
		text = emit_format(e, "%sstruct rxw_opaque %s;", keyword, c_name);
	else if (decl->kind == XG_STRING)
		text = emit_format(e, "%schar *%s;", keyword, c_name);
	else if (decl->shape == XG_POINTER)
		text = emit_format(e, "%s%s%s;", keyword, format_pointer_type(e, decl, index),
				   c_name);
	else if (decl->shape == XG_FIXED)
		text = emit_format(e, "%s%s %s[%s];", keyword, type, c_name, emit_bound(e, decl));
	else
		text = emit_format(e, "%s%s %s;", keyword, type, c_name);
	emit_commented(e, text, join_notes(e, *keyword ? NULL : note, describe_limit(e, decl)));
}

static void emit_union_type(struct emit *e, const struct xg_type *type, size_t index)
{
	bool any = false;

	assert(type->what == XG_UNION);
	emit_open(e, "typedef struct %s {", type->name);
	emit_type_member(e, "", &type->discriminant, NULL, index);
	for (size_t i = 0; i < type->arm_count; i++)
		any = any || type->arms[i].decl.kind != XG_VOID;
	if (any) {
		emit_open(e, "union {");
		for (size_t i = 0; i < type->arm_count; i++) {
			const struct xg_arm *arm = &type->arms[i];
			const char *note = arm->text ? arm->text : "any other";

			if (arm->decl.kind != XG_VOID)
				emit_type_member(e, "", &arm->decl, note, index);
		}
		emit_close(e, emit_format(e, "} %s;", emit_arms(e, type)));
	}
	emit_close(e, emit_format(e, "} %s;", type->name));
}

static void emit_enum_type(struct emit *e, const struct xg_type *type)
{
	assert(type->what == XG_ENUM);
	emit_line(e, "typedef int32_t %s;", type->name);
	emit_open(e, "enum {");
	for (size_t i = 0; i < type->value_count; i++) {
		const struct xg_value *value = &type->values[i];

		emit_commented(e, emit_format(e, "%s = %d,", value->name, (int)value->value),
			       value->doc);
	}
	emit_close(e, "};");
}

void emit_type(struct emit *e, const struct xg_item *item, size_t index)
{
	const struct xg_type *type = item->type;

	emit_blank(e);
	emit_comment(e, type->doc ? type->doc : item->doc);
	if (type->what == XG_TYPEDEF) {
		emit_type_member(e, "typedef ", &type->alias, NULL, index);
	} else if (type->what == XG_ENUM) {
		emit_enum_type(e, type);
	} else if (type->what == XG_UNION) {
		emit_union_type(e, type, index);
	} else {
		emit_open(e, "typedef struct %s {", type->name);
		for (size_t i = 0; i < type->member_count; i++)
			emit_type_member(e, "", &type->members[i], NULL, index);
		emit_close(e, emit_format(e, "} %s;", type->name));
	}
	if (type->customized)
		emit_comment(e, "The application provides these functions.");
	emit_line(e, "bool xdr_put_%s(struct rxw_xdr *x, const %s *v);", type->name, type->name);
	emit_line(e, "bool xdr_get_%s(struct rxw_xdr *x, %s *v);", type->name, type->name);
	emit_line(e, "void xdrfree_%s(%s *v);", type->name, type->name);
	if (e->options->copies)
		emit_line(e, "bool xdrcopy_%s(%s *to, const %s *from);", type->name, type->name,
			  type->name);
}
