/* SPDX-License-Identifier: BSD-2-Clause */
/* A Python module: types, clients and services for the package rxwire. doc/python.md */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/xg.h"

#define COLUMNS	    100
#define REQUEST_MAX 1048576 /* rxwire.rpc.REQUEST_MAX */

struct python {
	FILE *out;
	const struct xg_file *file;
	const struct xg_options *options;
	const struct xg_type *type;	  /* the class that is written, or NULL */
	const struct xg_package *package; /* or that of a package */
	bool block; /* the latest definition was a class, which two empty lines separate */
};

/* -- names ------------------------------------------------------------------------------------- */

static const char *const keywords[] = {
	"False", "None",     "True",  "and",	"as",	"assert", "async",  "await",	"break",
	"class", "continue", "def",   "del",	"elif", "else",	  "except", "finally",	"for",
	"from",	 "global",   "if",    "import", "in",	"is",	  "lambda", "nonlocal", "not",
	"or",	 "pass",     "raise", "return", "try",	"while",  "with",   "yield",	NULL};
/* Parameters of generated methods. */
static const char *const parameters[] = {"call", "deadline", "self", NULL};
/* A value of an enum cannot have this name. */
static const char *const values[] = {"mro", NULL};

/*
 * Whether `name` is one of `words`, or one with underscores at the end. Such names get one more
 * underscore, so that `class` and `class_` stay distinct.
 */
static bool is_reserved_word(const char *const *words, const char *name)
{
	for (; *words; words++) {
		size_t length = strlen(*words);

		if (!strncmp(name, *words, length) && !name[length + strspn(name + length, "_")])
			return true;
	}
	return false;
}

/* Names with two leading underscores have other meanings in classes. */
static void write_name(struct python *p, const char *name)
{
	fprintf(p->out, "%s%s%s", strncmp(name, "__", 2) ? "" : "x", name,
		is_reserved_word(keywords, name) ? "_" : "");
}

static void write_param_name(struct python *p, const char *name)
{
	write_name(p, name);
	if (is_reserved_word(parameters, name))
		putc('_', p->out);
}

static void write_value_name(struct python *p, const char *name)
{
	if (*name == '_' && strncmp(name, "__", 2))
		putc('x', p->out);
	write_name(p, name);
	if (is_reserved_word(values, name))
		putc('_', p->out);
}

static void write_method_name(struct python *p, const struct xg_proc *proc)
{
	const char *name = *proc->name ? proc->name : proc->package->name;

	if (*name == '_' && strncmp(name, "__", 2))
		putc('x', p->out);
	write_name(p, name);
}

static bool is_module_name(const struct xg_file *file, const char *name)
{
	for (size_t i = 0; i < file->type_count; i++) {
		const struct xg_type *type = file->types[i];

		if (!strcmp(type->name, name))
			return true;
		for (size_t j = 0; j < type->value_count; j++)
			if (!strcmp(type->values[j].name, name))
				return true;
	}
	for (size_t i = 0; i < file->item_count; i++)
		if (file->items[i].kind == XG_ITEM_CONST && !strcmp(file->items[i].name, name))
			return true;
	return false;
}

/* "KVClient" of the package "KV_" */
static void write_class_name(struct python *p, const struct xg_package *package, const char *role)
{
	size_t length = strlen(package->name);
	char name[256];

	while (length > 1 && package->name[length - 1] == '_')
		length--;
	snprintf(name, sizeof(name) - 16, "%.*s%s", (int)length, package->name, role);
	while (is_module_name(p->file, name) && strlen(name) < sizeof(name) - 1)
		strcat(name, "_");
	fputs(name, p->out);
}

/* "KV_" of "KV_" and of "KV" */
static void write_package_prefix(struct python *p, const struct xg_package *package)
{
	size_t length = strlen(package->name);

	assert(length > 0);
	fprintf(p->out, "%s%s", package->name, package->name[length - 1] == '_' ? "" : "_");
}

static void write_opcode(struct python *p, const struct xg_proc *proc)
{
	write_package_prefix(p, proc->package);
	fprintf(p->out, "OP_%s", proc->name);
}

static void write_procedure_name(struct python *p, const struct xg_proc *proc)
{
	fprintf(p->out, "rxw_proc_%s%s", proc->package->name, proc->name);
}

void xg_python_module(const char *file, char *name, size_t room)
{
	const char *slash = strrchr(file, '/'), *from = slash ? slash + 1 : file;
	const char *dot = strrchr(from, '.');
	size_t length = dot && dot != from ? (size_t)(dot - from) : strlen(from), at = 0;

	if (room > 1 && *from >= '0' && *from <= '9')
		name[at++] = '_';
	for (size_t i = 0; i < length && at + 1 < room; i++) {
		char c = from[i];
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '_';

		name[at++] = good ? c : '_';
	}
	name[at] = '\0';
	if (is_reserved_word(keywords, name) && at + 1 < room)
		strcat(name, "_");
}

/* -- texts ------------------------------------------------------------------------------------- */

/* Bytes of a character of UTF-8 at `text`; 0 if they are not valid. */
static size_t measure_character(const char *text)
{
	unsigned char c = (unsigned char)*text;
	size_t length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 0;

	for (size_t i = 1; i < length; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && (unsigned char)text[1] < 0xa0) ||
	    (c == 0xed && (unsigned char)text[1] >= 0xa0))
		return 0;
	return length;
}

/* Text between double quotes. Other bytes than characters of UTF-8 become '?'. */
static void write_escaped(struct python *p, const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t n = measure_character(text + i);

		if (text[i] == '"' || text[i] == '\\')
			putc('\\', p->out);
		if (!n || (n == 1 && (unsigned char)text[i] < ' ' && text[i] != '\t'))
			putc('?', p->out);
		else
			fwrite(text + i, 1, n, p->out);
		i += n ? n : 1;
	}
}

/* The first line of a comment at or after `text` without decoration; NULL if there is none. */
static const char *find_comment_line(const char *text, size_t *length, const char **next)
{
	size_t n;

	if (!*text)
		return NULL;
	text += strspn(text, " \t\r");
	text += strspn(text, "*");
	text += strspn(text, " \t\r");
	n = strcspn(text, "\n");
	*next = text + n + (text[n] ? 1 : 0);
	while (n && strchr(" \t\r", text[n - 1]))
		n--;
	*length = n;
	return text;
}

/* A comment before or after the line of a definition, "# text". */
static void write_comment(struct python *p, const char *indent, const char *text)
{
	const char *line;
	size_t length;

	while (text && (line = find_comment_line(text, &length, &text))) {
		if (!length)
			continue;
		fprintf(p->out, "%s# ", indent);
		write_escaped(p, line, length);
		putc('\n', p->out);
	}
}

/* A docstring; `other` if there is no comment. Returns whether one was written. */
static bool write_docstring(struct python *p, const char *indent, const char *text,
			    const char *other)
{
	const char *line, *at = text ? text : "";
	size_t length;
	bool any = false, gap = false;

	while ((line = find_comment_line(at, &length, &at))) {
		if (!length) {
			gap = any;
			continue;
		}
		if (any)
			fputs(gap ? "\n\n" : "\n", p->out);
		fprintf(p->out, "%s%s", indent, any ? "" : "\"\"\"");
		write_escaped(p, line, length);
		any = true;
		gap = false;
	}
	if (!any && !other)
		return false;
	if (!any)
		fprintf(p->out, "%s\"\"\"%s", indent, other);
	fputs("\"\"\"\n", p->out);
	return true;
}

/* -- types ------------------------------------------------------------------------------------- */

static const char *const scalar_types[] = {
	[XG_INT] = "rxw_xdr.INT",	[XG_UINT] = "rxw_xdr.UINT",
	[XG_SHORT] = "rxw_xdr.SHORT",	[XG_USHORT] = "rxw_xdr.USHORT",
	[XG_CHAR] = "rxw_xdr.CHAR",	[XG_UCHAR] = "rxw_xdr.UCHAR",
	[XG_BOOL] = "rxw_xdr.BOOL",	[XG_INT64] = "rxw_xdr.HYPER",
	[XG_UINT64] = "rxw_xdr.UHYPER", [XG_FLOAT] = "rxw_xdr.FLOAT",
	[XG_DOUBLE] = "rxw_xdr.DOUBLE", [XG_UUID] = "rxw_xdr.UUID"};

static void write_kind(struct python *p, const struct xg_decl *decl)
{
	assert(decl->kind == XG_NAMED || scalar_types[decl->kind]);
	if (decl->kind == XG_NAMED)
		write_name(p, decl->type->name);
	else
		fputs(scalar_types[decl->kind], p->out);
}

/* The type object of a declaration. The '*' of a parameter means nothing: XG_ONE. */
static void write_type_object(struct python *p, const struct xg_decl *decl, enum xg_shape shape)
{
	const char *open = shape == XG_FIXED ? "rxw_xdr.array(" : "rxw_xdr.sequence(";

	assert(decl->kind != XG_VOID);
	if (decl->kind == XG_STRING) {
		fprintf(p->out, "rxw_xdr.string(%u)", (unsigned)decl->bound);
	} else if (decl->kind == XG_OPAQUE) {
		fprintf(p->out, "rxw_xdr.%s(%u)", shape == XG_FIXED ? "fixed_opaque" : "opaque",
			(unsigned)decl->bound);
	} else if (shape == XG_ONE) {
		write_kind(p, decl);
	} else if (shape == XG_POINTER) {
		bool named = decl->kind == XG_NAMED;

		fputs(named ? "rxw_xdr.optional(lambda: " : "rxw_xdr.optional(", p->out);
		write_kind(p, decl);
		fputs(named && decl->type->recursive ? ", deep=True)" : ")", p->out);
	} else {
		fputs(open, p->out);
		write_kind(p, decl);
		fprintf(p->out, ", %u)", (unsigned)decl->bound);
	}
}

/* Has the class that is written, or the module, another object of this name? */
static bool is_builtin_shadowed(const struct python *p, const char *name)
{
	const struct xg_type *type = p->type;

	for (size_t i = 0; p->package && i < p->package->proc_count; i++)
		if (!strcmp(p->package->procs[i]->name, name))
			return true;
	for (size_t i = 0; type && i < type->member_count; i++)
		if (!strcmp(type->members[i].name, name))
			return true;
	for (size_t i = 0; type && i < type->arm_count; i++)
		if (type->arms[i].decl.name && !strcmp(type->arms[i].decl.name, name))
			return true;
	if (type && type->what == XG_UNION && !strcmp(type->discriminant.name, name))
		return true;
	return is_module_name(p->file, name);
}

static void write_builtin(struct python *p, const char *name)
{
	fprintf(p->out, "%s%s", is_builtin_shadowed(p, name) ? "rxw_builtins." : "", name);
}

static void write_type_hint(struct python *p, const struct xg_decl *decl, enum xg_shape shape);

static void write_kind_hint(struct python *p, const struct xg_decl *decl)
{
	if (decl->kind == XG_NAMED && decl->type->what == XG_TYPEDEF)
		write_type_hint(p, &decl->type->alias, decl->type->alias.shape);
	else if (decl->kind == XG_NAMED)
		write_name(p, decl->type->name);
	else if (decl->kind == XG_UUID)
		fputs("rxw_uuid.UUID", p->out);
	else if (decl->kind == XG_BOOL)
		write_builtin(p, "bool");
	else
		write_builtin(p,
			      decl->kind == XG_FLOAT || decl->kind == XG_DOUBLE ? "float" : "int");
}

/* The annotation of a value. */
static void write_type_hint(struct python *p, const struct xg_decl *decl, enum xg_shape shape)
{
	if (decl->kind == XG_STRING || decl->kind == XG_OPAQUE) {
		write_builtin(p, decl->kind == XG_STRING ? "str" : "bytes");
		return;
	}
	if (shape == XG_FIXED || shape == XG_COUNTED) {
		write_builtin(p, "list");
		putc('[', p->out);
	}
	write_kind_hint(p, decl);
	if (shape == XG_FIXED || shape == XG_COUNTED)
		putc(']', p->out);
	else if (shape == XG_POINTER)
		fputs(" | None", p->out);
}

/* "NAME: HINT" with the text around it. */
static void write_field_hint(struct python *p, const char *before, const struct xg_decl *decl,
			     const char *after)
{
	fputs(before, p->out);
	write_name(p, decl->name);
	fputs(": ", p->out);
	write_type_hint(p, decl, decl->shape);
	fputs(after, p->out);
}

/* "("NAME", TYPE)," with the text before it. */
static void write_field_type(struct python *p, const char *before, const struct xg_decl *decl,
			     enum xg_shape shape)
{
	fprintf(p->out, "%s(\"", before);
	write_name(p, decl->name);
	fputs("\", ", p->out);
	write_type_object(p, decl, shape);
	fputs("),", p->out);
}

static void write_enum_class(struct python *p, const struct xg_type *type)
{
	assert(type->what == XG_ENUM);
	fputs("\n\nclass ", p->out);
	write_name(p, type->name);
	fputs("(rxw_enum.IntEnum):\n", p->out);
	if (write_docstring(p, "    ", type->doc, NULL))
		putc('\n', p->out);
	for (size_t i = 0; i < type->value_count; i++) {
		write_comment(p, "    ", type->values[i].doc);
		fputs("    ", p->out);
		write_value_name(p, type->values[i].name);
		fprintf(p->out, " = %d\n", (int)type->values[i].value);
	}
	fputs("\n\n", p->out);
	for (size_t i = 0; i < type->value_count; i++) {
		write_name(p, type->values[i].name);
		fputs(" = ", p->out);
		write_name(p, type->name);
		putc('.', p->out);
		write_value_name(p, type->values[i].name);
		putc('\n', p->out);
	}
}

/* Declare the methods that the decorator adds, for type checkers. */
static void write_struct_hints(struct python *p, const struct xg_type *type)
{
	fputs("\n    if rxw_typing.TYPE_CHECKING:\n\n        def __init__(\n            rxw_self,\n",
	      p->out);
	for (size_t i = 0; i < type->member_count; i++)
		write_field_hint(p, "            ", &type->members[i], " = ...,\n");
	fputs("        ) -> None: ...\n", p->out);
	if (!type->list)
		return;
	fputs("\n        def __iter__(self) -> rxw_typing.Iterator[", p->out);
	write_name(p, type->name);
	fputs("]: ...\n", p->out);
}

static void write_union_hints(struct python *p, const struct xg_type *type)
{
	write_field_hint(p, "\n    if rxw_typing.TYPE_CHECKING:\n        ", &type->discriminant,
			 "\n");
	for (size_t i = 0; i < type->arm_count; i++) {
		const struct xg_decl *arm = &type->arms[i].decl;
		bool known = arm->kind == XG_VOID;

		for (size_t k = 0; k < i && !known; k++)
			known = type->arms[k].decl.kind != XG_VOID &&
				!strcmp(type->arms[k].decl.name, arm->name);
		if (!known)
			write_field_hint(p, "        ", arm, "\n");
	}
	fputs("        _case_: ", p->out);
	write_type_hint(p, &type->discriminant, type->discriminant.shape);
	fputs("\n        _content_: rxw_typing.Any\n\n        def __init__(self, case: ", p->out);
	write_type_hint(p, &type->discriminant, type->discriminant.shape);
	fputs(" = ..., value: rxw_typing.Any = ...) -> None: ...\n", p->out);
}

static void write_struct_class(struct python *p, const struct xg_type *type)
{
	assert(type->what == XG_STRUCT);
	fputs("\n\n@rxw_xdr.structure(", p->out);
	for (size_t i = 0; i < type->member_count; i++)
		write_field_type(p, "\n    ", &type->members[i], type->members[i].shape);
	fprintf(p->out, "\n%s)\nclass ", type->list ? "    linked=True,\n" : "");
	write_name(p, type->name);
	fputs(":\n", p->out);
	if (write_docstring(p, "    ", type->doc, NULL))
		putc('\n', p->out);
	for (size_t i = 0; i < type->member_count; i++) {
		write_comment(p, "    ", type->members[i].doc);
		write_field_hint(p, "    ", &type->members[i], "\n");
	}
	write_struct_hints(p, type);
}

static void write_union_arm(struct python *p, const struct xg_arm *arm)
{
	write_comment(p, "    ", arm->decl.doc);
	if (arm->text)
		fprintf(p->out, "    (%lld, ", (long long)arm->value);
	else
		fputs("    (None, ", p->out);
	if (arm->decl.kind == XG_VOID) {
		fputs("None, None),\n", p->out);
		return;
	}
	putc('"', p->out);
	write_name(p, arm->decl.name);
	fputs("\", ", p->out);
	write_type_object(p, &arm->decl, arm->decl.shape);
	fputs("),\n", p->out);
}

static void write_union_class(struct python *p, const struct xg_type *type)
{
	assert(type->what == XG_UNION);
	write_field_type(p, "\n\n@rxw_xdr.union(\n    ", &type->discriminant,
			 type->discriminant.shape);
	putc('\n', p->out);
	for (size_t i = 0; i < type->arm_count; i++)
		write_union_arm(p, &type->arms[i]);
	fputs(")\nclass ", p->out);
	write_name(p, type->name);
	fputs(":\n", p->out);
	write_docstring(p, "    ", type->doc, "A case and the value of its arm.");
	write_union_hints(p, type);
}

static bool is_class_item(const struct xg_item *item)
{
	return item->kind == XG_ITEM_TYPE &&
	       (item->type->what == XG_STRUCT || item->type->what == XG_UNION);
}

static void write_item(struct python *p, const struct xg_item *item)
{
	if (p->block && !is_class_item(item) &&
	    (item->kind == XG_ITEM_CONST || item->kind == XG_ITEM_TYPE)) {
		fputs(item->kind == XG_ITEM_TYPE && item->type->what == XG_ENUM ? "" : "\n\n",
		      p->out);
		p->block = false;
	}
	p->block = p->block || is_class_item(item);
	if (item->kind == XG_ITEM_CONST) {
		write_comment(p, "", item->doc);
		write_name(p, item->name);
		if (item->number) {
			fprintf(p->out, " = %lld\n", (long long)item->value);
		} else {
			fputs(" = \"", p->out);
			write_escaped(p, item->string, strlen(item->string));
			fputs("\"\n", p->out);
		}
	} else if (item->kind == XG_ITEM_HEADER) {
		char name[256];

		xg_python_module(item->text, name, sizeof(name));
		fprintf(p->out, "from %s import *\n", name);
	} else if (item->kind == XG_ITEM_TYPE && item->type->what == XG_ENUM) {
		write_enum_class(p, item->type);
	} else if (is_class_item(item)) {
		p->type = item->type;
		if (item->type->what == XG_STRUCT)
			write_struct_class(p, item->type);
		else
			write_union_class(p, item->type);
		p->type = NULL;
	} else if (item->kind == XG_ITEM_TYPE) {
		write_comment(p, "", item->type->doc);
		write_name(p, item->type->name);
		fputs(" = ", p->out);
		write_type_object(p, &item->type->alias, item->type->alias.shape);
		putc('\n', p->out);
	}
}

/* -- procedures -------------------------------------------------------------------------------- */

static enum xg_shape get_param_shape(const struct xg_param *param)
{
	return param->decl.shape == XG_POINTER ? XG_ONE : param->decl.shape;
}

static size_t count_directed(const struct xg_proc *proc, enum xg_direction direction)
{
	size_t n = 0;

	for (size_t i = 0; i < proc->param_count; i++)
		n += (proc->params[i].direction & direction) != 0;
	return n;
}

/* The arguments or the results: a tuple of names and types. */
static void write_field_types(struct python *p, const struct xg_proc *proc,
			      enum xg_direction direction)
{
	fputs("    (", p->out);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & direction)
			write_field_type(p, "\n        ", &param->decl, get_param_shape(param));
	}
	fputs(count_directed(proc, direction) ? "\n    ),\n" : "),\n", p->out);
}

/* The texts of codes, for exceptions. */
static void write_code_texts(struct python *p)
{
	char text[XG_CODE_TEXT];

	if (!xg_has_codes(p->file))
		return;
	fputs("\n\nrxw_codes = {\n", p->out);
	for (size_t i = 0; i < p->file->item_count; i++) {
		const struct xg_item *item = &p->file->items[i];
		const char *from;

		if (!xg_code_text(item, text, sizeof(text)) || !xg_code_is_first(p->file, i))
			continue;
		fputs("    ", p->out);
		write_name(p, item->name);
		fputs(": \"", p->out);
		from = *text ? text : item->name;
		write_escaped(p, from, strlen(from));
		fputs("\",\n", p->out);
	}
	fputs("}\n", p->out);
}

/* ENOSPC and EDQUOT have other codes on the wire (rx-protocol 9.4). */
static bool swaps_errno(const struct python *p, const struct xg_package *package)
{
	return package->dense && !p->options->no_errno_swap;
}

static void write_definition(struct python *p, const struct xg_proc *proc)
{
	write_procedure_name(p, proc);
	fprintf(p->out, " = rxw_rpc.Procedure(\n    \"%s%s\",\n    ", proc->package->name,
		proc->name);
	write_opcode(p, proc);
	fputs(",\n", p->out);
	write_field_types(p, proc, XG_IN);
	write_field_types(p, proc, XG_OUT);
	fprintf(p->out, "%s%s%s)\n", proc->split ? "    split=True,\n" : "",
		swaps_errno(p, proc->package) ? "    swap_errno=True,\n" : "",
		xg_has_codes(p->file) ? "    codes=rxw_codes,\n" : "");
}

/* The annotation of the result of a method. */
static void write_result_hint(struct python *p, const struct xg_proc *proc)
{
	size_t results = count_directed(proc, XG_OUT), n = 0;

	if (results > 1)
		write_builtin(p, "tuple");
	fputs(results > 1 ? "[" : results ? "" : "None", p->out);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (!(param->direction & XG_OUT))
			continue;
		fputs(n++ ? ", " : "", p->out);
		write_type_hint(p, &param->decl, get_param_shape(param));
	}
	fputs(results > 1 ? "]" : "", p->out);
}

enum role {
	CLIENT,
	ASYNC_CLIENT,
	SERVICE
};

/* "self, key: str, *, deadline: float | None = None" */
static void write_method_params(struct python *p, const struct xg_proc *proc, enum role role,
				const char *between)
{
	fprintf(p->out, "self%s", role == SERVICE ? "," : "");
	if (role == SERVICE)
		fprintf(p->out, "%scall: rxw_rpc.ServerCall", between);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (!(param->direction & XG_IN))
			continue;
		fprintf(p->out, ",%s", between);
		write_param_name(p, param->decl.name);
		fputs(": ", p->out);
		write_type_hint(p, &param->decl, get_param_shape(param));
	}
	if (role == SERVICE)
		return;
	fprintf(p->out, ",%s*,%sdeadline: ", between, between);
	write_builtin(p, "float");
	fputs(" | None = None", p->out);
}

/* The line of `def`; with a line for each parameter if it would be too long. */
static void write_method_head(struct python *p, const struct xg_proc *proc, enum role role)
{
	const char *between = " ";
	long start = ftell(p->out), end;

	for (int i = 0; i < 2; i++) {
		fputs(role == ASYNC_CLIENT && !proc->split ? "    async def " : "    def ", p->out);
		write_method_name(p, proc);
		fputs(*between == ' ' ? "(" : "(\n        ", p->out);
		write_method_params(p, proc, role, between);
		fputs(*between == ' ' ? ") -> " : ",\n    ) -> ", p->out);
		if (!proc->split || role == SERVICE)
			write_result_hint(p, proc);
		else
			fputs(role == CLIENT ? "rxw_rpc.Stream" : "rxw_aio.Opening", p->out);
		fputs(":\n", p->out);
		end = ftell(p->out);
		if (end - start <= COLUMNS || *between != ' ')
			break;
		fseek(p->out, start, SEEK_SET);
		between = "\n        ";
	}
}

static void write_method(struct python *p, const struct xg_proc *proc, enum role role)
{
	size_t n = 0;

	putc('\n', p->out);
	write_method_head(p, proc, role);
	write_docstring(p, "        ", proc->doc, NULL);
	if (role == SERVICE) {
		fputs("        rxw_rpc.refuse(call)\n", p->out);
		return;
	}
	fprintf(p->out, "        %s%sself.rxw_%s(",
		count_directed(proc, XG_OUT) || proc->split ? "return " : "",
		role == ASYNC_CLIENT && !proc->split ? "await " : "",
		proc->split ? "stream" : "call");
	write_procedure_name(p, proc);
	fputs(", (", p->out);
	for (size_t i = 0; i < proc->param_count; i++) {
		if (!(proc->params[i].direction & XG_IN))
			continue;
		fputs(n++ ? ", " : "", p->out);
		write_param_name(p, proc->params[i].decl.name);
	}
	fputs(n == 1 ? "," : "", p->out);
	fputs("), deadline)\n", p->out);
}

/* The dictionary by which a service finds its procedures. */
static void write_procedure_table(struct python *p, const struct xg_package *package)
{
	fputs("\n    rxw_procedures = {\n", p->out);
	for (size_t i = 0; i < package->proc_count; i++) {
		fputs("        ", p->out);
		write_opcode(p, package->procs[i]);
		fputs(": (", p->out);
		write_procedure_name(p, package->procs[i]);
		fputs(", \"", p->out);
		write_method_name(p, package->procs[i]);
		fputs("\"),\n", p->out);
	}
	fputs("    }\n", p->out);
	if (swaps_errno(p, package))
		fputs("    rxw_swap_errno = True\n", p->out);
	if (p->options->request_max != REQUEST_MAX)
		fprintf(p->out, "    rxw_request_max = %u\n", (unsigned)p->options->request_max);
}

static void write_package_class(struct python *p, const struct xg_package *package, enum role role)
{
	static const char *const names[] = {"Client", "AsyncClient", "Service"};
	static const char *const bases[] = {"rxw_rpc.Client", "rxw_aio.AsyncClient",
					    "rxw_rpc.Service"};
	static const char *const docs[] = {
		"Blocking calls of the package %s on a Connection or a Pool.",
		"Calls of the package %s with asyncio, on a Pool.",
		"The package %s as a service: override its methods, then Endpoint.add_service()."};

	fputs("\n\nclass ", p->out);
	write_class_name(p, package, names[role]);
	fprintf(p->out, "(%s):\n    \"\"\"", bases[role]);
	fprintf(p->out, docs[role], package->name);
	fputs("\"\"\"\n", p->out);
	if (role == SERVICE)
		write_procedure_table(p, package);
	for (size_t i = 0; i < package->proc_count; i++)
		write_method(p, package->procs[i], role);
}

static void write_package(struct python *p, const struct xg_package *package)
{
	fputs("\n\n", p->out);
	if (package->has_statindex) {
		write_package_prefix(p, package);
		fprintf(p->out, "STATINDEX = %u\n", (unsigned)package->statindex);
	}
	for (size_t i = 0; i < package->proc_count; i++) {
		write_opcode(p, package->procs[i]);
		fprintf(p->out, " = %d\n", (int)package->procs[i]->opcode);
	}
	putc('\n', p->out);
	for (size_t i = 0; i < package->proc_count; i++)
		write_definition(p, package->procs[i]);
	p->package = package;
	write_package_class(p, package, CLIENT);
	write_package_class(p, package, ASYNC_CLIENT);
	write_package_class(p, package, SERVICE);
	p->package = NULL;
}

/* -- the module -------------------------------------------------------------------------------- */

static void write_module(struct python *p)
{
	const char *slash = strrchr(p->file->path, '/');
	const char *name = slash ? slash + 1 : p->file->path;

	fputs("# Made by rxwgen from ", p->out);
	write_escaped(p, name, strlen(name));
	fputs(". Do not edit.\nfrom __future__ import annotations\n\n"
	      "import builtins as rxw_builtins\nimport enum as rxw_enum\nimport typing as rxw_typing\nimport uuid as rxw_uuid\n\n"
	      "from rxwire import aio as rxw_aio\nfrom rxwire import rpc as rxw_rpc\n"
	      "from rxwire import xdr as rxw_xdr\n\n",
	      p->out);
	for (size_t i = 0; i < p->file->item_count; i++)
		write_item(p, &p->file->items[i]);
	write_code_texts(p);
	for (size_t i = 0; i < p->file->item_count; i++)
		if (p->file->items[i].kind == XG_ITEM_PACKAGE &&
		    p->file->items[i].package->proc_count)
			write_package(p, p->file->items[i].package);
}

char *xg_python(const struct xg_file *file, const struct xg_options *options, size_t *length)
{
	struct python p = {.file = file, .options = options};
	char *text = NULL;
	bool failed;

	p.out = open_memstream(&text, length);
	if (!p.out)
		return NULL;
	write_module(&p);
	failed = ferror(p.out) != 0;
	if (fclose(p.out) || failed) {
		free(text);
		return NULL;
	}
	*length = strlen(text);
	return text;
}
