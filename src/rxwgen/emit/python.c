/* SPDX-License-Identifier: BSD-2-Clause */
/* A Python module: types, clients and services for the package rxwire. doc/python.md */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

#define COLUMNS	    100
#define REQUEST_MAX 1048576 /* rxwire.rpc.REQUEST_MAX */

/* A module under construction. Its text and strings are those of an output in C. */
struct python {
	struct emit e;
	const struct xg_type *type;	  /* the class that is written, or NULL */
	const struct xg_package *package; /* or that of a package */
	bool block; /* the latest definition was a class, which two empty lines separate */
};

#define FORMAT(...) emit_format(&p->e, __VA_ARGS__)
#define WRITE(...)  emit_text(&p->e, __VA_ARGS__)

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
static const char *format_name(struct python *p, const char *name)
{
	return FORMAT("%s%s%s", strncmp(name, "__", 2) ? "" : "x", name,
		      is_reserved_word(keywords, name) ? "_" : "");
}

static const char *format_param_name(struct python *p, const char *name)
{
	return FORMAT("%s%s", format_name(p, name), is_reserved_word(parameters, name) ? "_" : "");
}

/* The name of a value or a method, which may not begin with an underscore. */
static const char *format_public_name(struct python *p, const char *name)
{
	return FORMAT("%s%s", *name == '_' && strncmp(name, "__", 2) ? "x" : "",
		      format_name(p, name));
}

static const char *format_value_name(struct python *p, const char *name)
{
	return FORMAT("%s%s", format_public_name(p, name),
		      is_reserved_word(values, name) ? "_" : "");
}

static const char *format_method_name(struct python *p, const struct xg_proc *proc)
{
	return format_public_name(p, *proc->name ? proc->name : proc->package->name);
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
static const char *format_class_name(struct python *p, const struct xg_package *package,
				     const char *role)
{
	size_t length = strlen(package->name);
	const char *name;

	while (length > 1 && package->name[length - 1] == '_')
		length--;
	name = FORMAT("%.*s%s", (int)length, package->name, role);
	while (is_module_name(p->e.file, name))
		name = FORMAT("%s_", name);
	return name;
}

static const char *format_procedure_name(struct python *p, const struct xg_proc *proc)
{
	return FORMAT("rxw_proc_%s%s", proc->package->name, proc->name);
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

		if (!n || (n == 1 && (unsigned char)text[i] < ' ' && text[i] != '\t'))
			WRITE("?");
		else
			WRITE("%s%.*s", text[i] == '"' || text[i] == '\\' ? "\\" : "", (int)n,
			      text + i);
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
		WRITE("%s# ", indent);
		write_escaped(p, line, length);
		WRITE("\n");
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
		WRITE("%s%s%s", !any ? "" : gap ? "\n\n" : "\n", indent, any ? "" : "\"\"\"");
		write_escaped(p, line, length);
		any = true;
		gap = false;
	}
	if (!any && !other)
		return false;
	if (!any)
		WRITE("%s\"\"\"%s", indent, other);
	WRITE("\"\"\"\n");
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

static const char *format_kind(struct python *p, const struct xg_decl *decl)
{
	assert(decl->kind == XG_NAMED || scalar_types[decl->kind]);
	return decl->kind == XG_NAMED ? format_name(p, decl->type->name) : scalar_types[decl->kind];
}

/* The type object of a declaration. The '*' of a parameter means nothing: XG_ONE. */
static const char *format_type_object(struct python *p, const struct xg_decl *decl,
				      enum xg_shape shape)
{
	const char *container = shape == XG_FIXED ? "array" : "sequence";
	unsigned bound = (unsigned)decl->bound;
	bool named = decl->kind == XG_NAMED;

	assert(decl->kind != XG_VOID);
	if (decl->kind == XG_STRING)
		return FORMAT("rxw_xdr.string(%u)", bound);
	if (decl->kind == XG_OPAQUE)
		return FORMAT("rxw_xdr.%s(%u)", shape == XG_FIXED ? "fixed_opaque" : "opaque",
			      bound);
	if (shape == XG_ONE)
		return format_kind(p, decl);
	if (shape == XG_POINTER)
		return FORMAT("rxw_xdr.optional(%s%s%s)", named ? "lambda: " : "",
			      format_kind(p, decl),
			      named && decl->type->recursive ? ", deep=True" : "");
	return FORMAT("rxw_xdr.%s(%s, %u)", container, format_kind(p, decl), bound);
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
	return is_module_name(p->e.file, name);
}

static const char *format_builtin(struct python *p, const char *name)
{
	return FORMAT("%s%s", is_builtin_shadowed(p, name) ? "rxw_builtins." : "", name);
}

/* The annotation of a value. */
static const char *format_type_hint(struct python *p, const struct xg_decl *decl,
				    enum xg_shape shape)
{
	const char *kind;

	if (decl->kind == XG_STRING || decl->kind == XG_OPAQUE)
		return format_builtin(p, decl->kind == XG_STRING ? "str" : "bytes");
	if (decl->kind == XG_NAMED && decl->type->what == XG_TYPEDEF)
		kind = format_type_hint(p, &decl->type->alias, decl->type->alias.shape);
	else if (decl->kind == XG_NAMED)
		kind = format_name(p, decl->type->name);
	else if (decl->kind == XG_UUID)
		kind = "rxw_uuid.UUID";
	else if (decl->kind == XG_BOOL)
		kind = format_builtin(p, "bool");
	else
		kind = format_builtin(p, decl->kind == XG_FLOAT || decl->kind == XG_DOUBLE ? "float"
											   : "int");
	if (shape == XG_FIXED || shape == XG_COUNTED)
		return FORMAT("%s[%s]", format_builtin(p, "list"), kind);
	return shape == XG_POINTER ? FORMAT("%s | None", kind) : kind;
}

/* "NAME: HINT" */
static const char *format_field_hint(struct python *p, const struct xg_decl *decl)
{
	return FORMAT("%s: %s", format_name(p, decl->name), format_type_hint(p, decl, decl->shape));
}

/* "("NAME", TYPE)," */
static const char *format_field_type(struct python *p, const struct xg_decl *decl,
				     enum xg_shape shape)
{
	return FORMAT("(\"%s\", %s),", format_name(p, decl->name),
		      format_type_object(p, decl, shape));
}

static void write_enum_class(struct python *p, const struct xg_type *type)
{
	const char *name = format_name(p, type->name);

	assert(type->what == XG_ENUM);
	WRITE("\n\nclass %s(rxw_enum.IntEnum):\n", name);
	if (write_docstring(p, "    ", type->doc, NULL))
		WRITE("\n");
	for (size_t i = 0; i < type->value_count; i++) {
		write_comment(p, "    ", type->values[i].doc);
		WRITE("    %s = %d\n", format_value_name(p, type->values[i].name),
		      (int)type->values[i].value);
	}
	WRITE("\n\n");
	for (size_t i = 0; i < type->value_count; i++)
		WRITE("%s = %s.%s\n", format_name(p, type->values[i].name), name,
		      format_value_name(p, type->values[i].name));
}

static void write_struct_class(struct python *p, const struct xg_type *type)
{
	const char *name = format_name(p, type->name);

	assert(type->what == XG_STRUCT);
	WRITE("\n\n@rxw_xdr.structure(");
	for (size_t i = 0; i < type->member_count; i++)
		WRITE("\n    %s", format_field_type(p, &type->members[i], type->members[i].shape));
	WRITE("\n%s)\nclass %s:\n", type->list ? "    linked=True,\n" : "", name);
	if (write_docstring(p, "    ", type->doc, NULL))
		WRITE("\n");
	for (size_t i = 0; i < type->member_count; i++) {
		write_comment(p, "    ", type->members[i].doc);
		WRITE("    %s\n", format_field_hint(p, &type->members[i]));
	}
	/* Declare the methods that the decorator adds, for type checkers. */
	WRITE("\n    if rxw_typing.TYPE_CHECKING:\n\n        def __init__(\n            rxw_self,\n");
	for (size_t i = 0; i < type->member_count; i++)
		WRITE("            %s = ...,\n", format_field_hint(p, &type->members[i]));
	WRITE("        ) -> None: ...\n");
	if (type->list)
		WRITE("\n        def __iter__(self) -> rxw_typing.Iterator[%s]: ...\n", name);
}

static void write_union_hints(struct python *p, const struct xg_type *type)
{
	const struct xg_decl *discriminant = &type->discriminant;
	const char *hint = format_type_hint(p, discriminant, discriminant->shape);

	WRITE("\n    if rxw_typing.TYPE_CHECKING:\n        %s\n",
	      format_field_hint(p, discriminant));
	for (size_t i = 0; i < type->arm_count; i++) {
		const struct xg_decl *arm = &type->arms[i].decl;
		bool known = arm->kind == XG_VOID;

		for (size_t k = 0; k < i && !known; k++)
			known = type->arms[k].decl.kind != XG_VOID &&
				!strcmp(type->arms[k].decl.name, arm->name);
		if (!known)
			WRITE("        %s\n", format_field_hint(p, arm));
	}
	WRITE("        _case_: %s\n        _content_: rxw_typing.Any\n\n"
	      "        def __init__(self, case: %s = ..., value: rxw_typing.Any = ...) -> None: ...\n",
	      hint, hint);
}

static void write_union_arm(struct python *p, const struct xg_arm *arm)
{
	const char *value = arm->text ? FORMAT("%lld", (long long)arm->value) : "None";

	write_comment(p, "    ", arm->decl.doc);
	if (arm->decl.kind == XG_VOID)
		WRITE("    (%s, None, None),\n", value);
	else
		WRITE("    (%s, \"%s\", %s),\n", value, format_name(p, arm->decl.name),
		      format_type_object(p, &arm->decl, arm->decl.shape));
}

static void write_union_class(struct python *p, const struct xg_type *type)
{
	assert(type->what == XG_UNION);
	WRITE("\n\n@rxw_xdr.union(\n    %s\n",
	      format_field_type(p, &type->discriminant, type->discriminant.shape));
	for (size_t i = 0; i < type->arm_count; i++)
		write_union_arm(p, &type->arms[i]);
	WRITE(")\nclass %s:\n", format_name(p, type->name));
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
		WRITE(item->kind == XG_ITEM_TYPE && item->type->what == XG_ENUM ? "" : "\n\n");
		p->block = false;
	}
	p->block = p->block || is_class_item(item);
	if (item->kind == XG_ITEM_CONST) {
		write_comment(p, "", item->doc);
		WRITE("%s = ", format_name(p, item->name));
		if (item->number) {
			WRITE("%lld\n", (long long)item->value);
		} else {
			WRITE("\"");
			write_escaped(p, item->string, strlen(item->string));
			WRITE("\"\n");
		}
	} else if (item->kind == XG_ITEM_HEADER) {
		char name[256];

		xg_python_module(item->text, name, sizeof(name));
		WRITE("from %s import *\n", name);
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
		WRITE("%s = %s\n", format_name(p, item->type->name),
		      format_type_object(p, &item->type->alias, item->type->alias.shape));
	}
}

/* -- procedures -------------------------------------------------------------------------------- */

static enum xg_shape get_param_shape(const struct xg_param *param)
{
	return param->decl.shape == XG_POINTER ? XG_ONE : param->decl.shape;
}

/* The arguments or the results: a tuple of names and types. */
static void write_field_types(struct python *p, const struct xg_proc *proc,
			      enum xg_direction direction)
{
	WRITE("    (");
	xg_for_params(param, proc, direction)
		WRITE("\n        %s", format_field_type(p, &param->decl, get_param_shape(param)));
	WRITE(xg_next_param(proc, NULL, direction) ? "\n    ),\n" : "),\n");
}

/* The texts of codes, for exceptions. */
static void write_code_texts(struct python *p)
{
	char text[XG_CODE_TEXT];

	if (!xg_has_codes(p->e.file))
		return;
	WRITE("\n\nrxw_codes = {\n");
	for (size_t i = 0; i < p->e.file->item_count; i++) {
		const struct xg_item *item = &p->e.file->items[i];
		const char *from;

		if (!xg_code_text(item, text, sizeof(text)) || !xg_code_is_first(p->e.file, i))
			continue;
		WRITE("    %s: \"", format_name(p, item->name));
		from = *text ? text : item->name;
		write_escaped(p, from, strlen(from));
		WRITE("\",\n");
	}
	WRITE("}\n");
}

/* ENOSPC and EDQUOT have other codes on the wire (rx-protocol 9.4). */
static bool swaps_errno(const struct python *p, const struct xg_package *package)
{
	return package->dense && !p->e.options->no_errno_swap;
}

static void write_definition(struct python *p, const struct xg_proc *proc)
{
	WRITE("%s = rxw_rpc.Procedure(\n    \"%s%s\",\n    %s,\n", format_procedure_name(p, proc),
	      proc->package->name, proc->name, emit_opcode(&p->e, proc));
	write_field_types(p, proc, XG_IN);
	write_field_types(p, proc, XG_OUT);
	WRITE("%s%s%s)\n", proc->split ? "    split=True,\n" : "",
	      swaps_errno(p, proc->package) ? "    swap_errno=True,\n" : "",
	      xg_has_codes(p->e.file) ? "    codes=rxw_codes,\n" : "");
}

/* The annotation of the result of a method. */
static const char *format_result_hint(struct python *p, const struct xg_proc *proc)
{
	const char *text = NULL;
	bool several = false;

	xg_for_params(param, proc, XG_OUT) {
		const char *hint = format_type_hint(p, &param->decl, get_param_shape(param));

		several = text != NULL;
		text = text ? FORMAT("%s, %s", text, hint) : hint;
	}
	if (several)
		return FORMAT("%s[%s]", format_builtin(p, "tuple"), text);
	return text ? text : "None";
}

enum role {
	CLIENT,
	ASYNC_CLIENT,
	SERVICE
};

/* "self, key: str, *, deadline: float | None = None" */
static const char *format_method_params(struct python *p, const struct xg_proc *proc,
					enum role role, const char *between)
{
	const char *text = "self";

	if (role == SERVICE)
		text = FORMAT("%s,%scall: rxw_rpc.ServerCall", text, between);
	xg_for_params(param, proc, XG_IN)
		text = FORMAT("%s,%s%s: %s", text, between, format_param_name(p, param->decl.name),
			      format_type_hint(p, &param->decl, get_param_shape(param)));
	if (role == SERVICE)
		return text;
	return FORMAT("%s,%s*,%sdeadline: %s | None = None", text, between, between,
		      format_builtin(p, "float"));
}

/* The line of `def`; with a line for each parameter if it would be too long. */
static void write_method_head(struct python *p, const struct xg_proc *proc, enum role role)
{
	const char *name = format_method_name(p, proc), *result, *line;
	const char *async = role == ASYNC_CLIENT && !proc->split ? "async " : "";

	if (!proc->split || role == SERVICE)
		result = format_result_hint(p, proc);
	else
		result = role == CLIENT ? "rxw_rpc.Stream" : "rxw_aio.Opening";
	line = FORMAT("    %sdef %s(%s) -> %s:\n", async, name,
		      format_method_params(p, proc, role, " "), result);
	if (strlen(line) > COLUMNS)
		line = FORMAT("    %sdef %s(\n        %s,\n    ) -> %s:\n", async, name,
			      format_method_params(p, proc, role, "\n        "), result);
	WRITE("%s", line);
}

static void write_method(struct python *p, const struct xg_proc *proc, enum role role)
{
	const char *arguments = "";
	size_t n = 0;

	WRITE("\n");
	write_method_head(p, proc, role);
	write_docstring(p, "        ", proc->doc, NULL);
	if (role == SERVICE) {
		WRITE("        rxw_rpc.refuse(call)\n");
		return;
	}
	xg_for_params(param, proc, XG_IN)
		arguments = FORMAT("%s%s%s", arguments, n++ ? ", " : "",
				   format_param_name(p, param->decl.name));
	WRITE("        %s%sself.rxw_%s(%s, (%s%s), deadline)\n",
	      xg_next_param(proc, NULL, XG_OUT) || proc->split ? "return " : "",
	      role == ASYNC_CLIENT && !proc->split ? "await " : "", proc->split ? "stream" : "call",
	      format_procedure_name(p, proc), arguments, n == 1 ? "," : "");
}

/* The dictionary by which a service finds its procedures. */
static void write_procedure_table(struct python *p, const struct xg_package *package)
{
	WRITE("\n    rxw_procedures = {\n");
	for (size_t i = 0; i < package->proc_count; i++) {
		const struct xg_proc *proc = package->procs[i];

		WRITE("        %s: (%s, \"%s\"),\n", emit_opcode(&p->e, proc),
		      format_procedure_name(p, proc), format_method_name(p, proc));
	}
	WRITE("    }\n%s", swaps_errno(p, package) ? "    rxw_swap_errno = True\n" : "");
	if (p->e.options->request_max != REQUEST_MAX)
		WRITE("    rxw_request_max = %u\n", (unsigned)p->e.options->request_max);
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

	WRITE("\n\nclass %s(%s):\n    \"\"\"", format_class_name(p, package, names[role]),
	      bases[role]);
	WRITE(docs[role], package->name);
	WRITE("\"\"\"\n");
	if (role == SERVICE)
		write_procedure_table(p, package);
	for (size_t i = 0; i < package->proc_count; i++)
		write_method(p, package->procs[i], role);
}

static void write_package(struct python *p, const struct xg_package *package)
{
	WRITE("\n\n");
	if (package->has_statindex)
		WRITE("%sSTATINDEX = %u\n", emit_constant_name(&p->e, package),
		      (unsigned)package->statindex);
	for (size_t i = 0; i < package->proc_count; i++)
		WRITE("%s = %d\n", emit_opcode(&p->e, package->procs[i]),
		      (int)package->procs[i]->opcode);
	WRITE("\n");
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
	const struct xg_file *file = p->e.file;
	const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;

	WRITE("# Made by rxwgen from ");
	write_escaped(p, name, strlen(name));
	WRITE(". Do not edit.\nfrom __future__ import annotations\n\n"
	      "import builtins as rxw_builtins\nimport enum as rxw_enum\n"
	      "import typing as rxw_typing\nimport uuid as rxw_uuid\n\n"
	      "from rxwire import aio as rxw_aio\nfrom rxwire import rpc as rxw_rpc\n"
	      "from rxwire import xdr as rxw_xdr\n\n");
	for (size_t i = 0; i < file->item_count; i++) {
		write_item(p, &file->items[i]);
		emit_forget(&p->e);
	}
	write_code_texts(p);
	for (size_t i = 0; i < file->item_count; i++)
		if (file->items[i].kind == XG_ITEM_PACKAGE && file->items[i].package->proc_count)
			write_package(p, file->items[i].package);
}

char *xg_python(const struct xg_file *file, const struct xg_options *options, size_t *length)
{
	struct python p = {.e = {.file = file, .options = options}};

	write_module(&p);
	emit_forget(&p.e);
	if (p.e.failed) {
		free(p.e.text);
		return NULL;
	}
	*length = p.e.length;
	return p.e.text;
}
