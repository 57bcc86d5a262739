/* SPDX-License-Identifier: BSD-2-Clause */
/* C names and types of an interface's elements (rxgen.md 4.1, 5.1), and texts of its codes. */
#include <assert.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

/* Whether a member of this name would be a syntax error in C or C++, or be replaced as a macro. */
static bool is_keyword_or_macro(const char *name)
{
	enum xg_reserved kind = xg_reserved_kind(name);

	return kind == XG_RESERVED_KEYWORD || kind == XG_RESERVED_MACRO;
}

/* Call `visit` with the name of each type, constant and enum value. */
static void visit_globals(const struct emit *e, void (*visit)(void *arg, const char *name),
			  void *arg)
{
	for (size_t i = 0; i < e->file->type_count; i++) {
		const struct xg_type *type = e->file->types[i];

		visit(arg, type->name);
		for (size_t j = 0; j < type->value_count; j++)
			visit(arg, type->values[j].name);
	}
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (item->kind == XG_ITEM_CONST)
			visit(arg, item->name);
	}
}

/* A name without trailing underscores, and the numbers of underscores with which it is in use. */
struct family {
	const char *name;
	size_t length;
	bool any;
	size_t least, most;
};

static void note_family_name(void *arg, const char *name)
{
	struct family *f = arg;
	size_t more;

	if (strncmp(name, f->name, f->length))
		return;
	more = strspn(name + f->length, "_");
	if (name[f->length + more])
		return;
	if (!f->any || more < f->least)
		f->least = more;
	if (!f->any || more > f->most)
		f->most = more;
	f->any = true;
}

static bool is_global_name(const struct emit *e, const char *name)
{
	size_t length = strlen(name);
	struct family f = {.name = name, .length = length};

	visit_globals(e, note_family_name, &f);
	return f.any && f.least == 0;
}

const char *emit_member_name(struct emit *e, const char *name)
{
	return is_keyword_or_macro(name) ? emit_format(e, "%s_", name) : name;
}

/*
 * A reserved name gets an underscore appended. So does a name that already consists of a reserved
 * one and underscores, so that `size_t` and `size_t_` stay distinct.
 */
const char *emit_param_name(struct emit *e, const struct xg_param *param)
{
	const char *name = param->decl.name;
	struct family f = {.name = name, .length = strlen(name)};
	size_t own;

	while (f.length > 1 && name[f.length - 1] == '_')
		f.length--;
	own = strlen(name) - f.length;
	for (size_t i = 0; xg_reserved_name(i); i++)
		note_family_name(&f, xg_reserved_name(i));
	visit_globals(e, note_family_name, &f);
	if (!strncmp(name, "rxw_", 4)) /* reserved for the library */
		note_family_name(&f, emit_format(e, "%.*s", (int)f.length, name));
	if (!f.any || own < f.least)
		return name;
	for (size_t i = f.least; i <= f.most; i++)
		name = emit_format(e, "%s_", name);
	return name;
}

const char *emit_local(struct emit *e, const struct xg_proc *proc, const char *name)
{
	bool taken;

	do {
		taken = is_global_name(e, name);
		for (size_t i = 0; i < proc->param_count && !taken; i++)
			taken = !strcmp(emit_param_name(e, &proc->params[i]), name);
		if (taken)
			name = emit_format(e, "%s_", name);
	} while (taken && !e->failed);
	return name;
}

static const char *append_underscore(struct emit *e, const char *prefix, const char *name)
{
	size_t length = strlen(name);

	return emit_format(e, "%s%s%s", prefix, name, length && name[length - 1] == '_' ? "" : "_");
}

const char *emit_package_name(struct emit *e, const struct xg_package *package)
{
	return append_underscore(e, e->options->prefix, package->name);
}

const char *emit_constant_name(struct emit *e, const struct xg_package *package)
{
	return append_underscore(e, "", package->name);
}

const char *emit_proc_name(struct emit *e, const struct xg_proc *proc)
{
	return emit_format(e, "%s%s%s", e->options->prefix, proc->package->name, proc->name);
}

const char *emit_opcode(struct emit *e, const struct xg_proc *proc)
{
	return emit_format(e, "%sOP_%s", emit_constant_name(e, proc->package), proc->name);
}

const char *emit_function(struct emit *e, const struct xg_proc *proc)
{
	return emit_format(e, "%sFN_%s", emit_constant_name(e, proc->package), proc->name);
}

const char *emit_handler(struct emit *e, const struct xg_proc *proc)
{
	return emit_member_name(e, *proc->name ? proc->name : proc->package->name);
}

const char *emit_len(struct emit *e, const char *name)
{
	return e->options->short_fields ? "len" : emit_format(e, "%s_len", name);
}

const char *emit_val(struct emit *e, const char *name)
{
	return e->options->short_fields ? "val" : emit_format(e, "%s_val", name);
}

const char *emit_arms(struct emit *e, const struct xg_type *type)
{
	const char *name = e->options->short_fields ? "u" : emit_format(e, "%s_u", type->name);

	return strcmp(name, type->discriminant.name) ? name : emit_format(e, "%s_", name);
}

/* The text of a name in the format of emit_stub(), which begins with a capital letter unless it is a variable. */
static const char *resolve_stub_name(struct emit *e, const struct xg_proc *proc, const char *name)
{
	if (!strcmp(name, "NAME"))
		return emit_proc_name(e, proc);
	if (!strcmp(name, "PACKAGE"))
		return emit_package_name(e, proc->package);
	if (!strcmp(name, "OPCODE"))
		return emit_opcode(e, proc);
	if (!strcmp(name, "FUNCTION"))
		return emit_function(e, proc);
	return emit_local(e, proc, name);
}

/* The format with the names in place. */
static const char *expand_stub_names(struct emit *e, const struct xg_proc *proc, const char *format)
{
	const char *text = "", *name;

	for (size_t n; *format; format += n) {
		n = strcspn(format, "$");
		text = emit_format(e, "%s%.*s", text, (int)n, format);
		if (!format[n])
			break;
		format += n + 1;
		n = strspn(format, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
		name = emit_format(e, "%.*s", (int)n, format);
		text = emit_format(e, "%s%s", text, resolve_stub_name(e, proc, name));
	}
	return text;
}

const char *emit_stub_format(struct emit *e, const struct xg_proc *proc, const char *format, ...)
{
	const char *text;
	va_list list;

	va_start(list, format);
	text = emit_vformat(e, expand_stub_names(e, proc, format), list);
	va_end(list);
	return text;
}

void emit_stub(struct emit *e, const struct xg_proc *proc, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	emit_line(e, "%s", emit_vformat(e, expand_stub_names(e, proc, format), list));
	va_end(list);
}

static const char *const scalars[] = {
	[XG_INT] = "int32_t",	  [XG_UINT] = "uint32_t", [XG_SHORT] = "int16_t",
	[XG_USHORT] = "uint16_t", [XG_CHAR] = "char",	  [XG_UCHAR] = "uint8_t",
	[XG_BOOL] = "bool",	  [XG_INT64] = "int64_t", [XG_UINT64] = "uint64_t",
	[XG_FLOAT] = "float",	  [XG_DOUBLE] = "double", [XG_UUID] = "struct rxw_uuid",
	[XG_OPAQUE] = "char",	  [XG_STRING] = "char",	  [XG_VOID] = "void",
};

const char *emit_c_type(const struct xg_decl *decl)
{
	return decl->kind == XG_NAMED ? decl->type->name : scalars[decl->kind];
}

/* -- codes: constants whose comment begins with "code:" ----------------------------------------- */

#define MARK "code:"

/* Skips white space and the asterisks at the beginnings of lines. */
static const char *skip_comment_decoration(const char *text)
{
	return text + strspn(text, " \t\r\n*");
}

bool xg_code_text(const struct xg_item *item, char *text, size_t room)
{
	const char *from = item->doc ? skip_comment_decoration(item->doc) : "";
	size_t n = 0;

	if (item->kind != XG_ITEM_CONST || !item->number || item->value != (int32_t)item->value ||
	    strncmp(from, MARK, strlen(MARK)) != 0)
		return false;
	from = skip_comment_decoration(from + strlen(MARK));
	while (*from && n + 2 < room) {
		if (*from != '\n' && *from != '\r') {
			text[n++] = *from++;
			continue;
		}
		/* The next line follows after a space. */
		from = skip_comment_decoration(from);
		text[n++] = ' ';
	}
	while (n && strchr(" \t", text[n - 1]))
		n--;
	text[n] = '\0';
	return true;
}

bool xg_has_codes(const struct xg_file *file)
{
	char text[8];

	for (size_t i = 0; i < file->item_count; i++)
		if (xg_code_text(&file->items[i], text, sizeof(text)))
			return true;
	return false;
}

bool xg_code_is_first(const struct xg_file *file, size_t index)
{
	char text[8];

	for (size_t i = 0; i < index; i++)
		if (xg_code_text(&file->items[i], text, sizeof(text)) &&
		    file->items[i].value == file->items[index].value)
			return false;
	return true;
}
