/* SPDX-License-Identifier: BSD-2-Clause */
/* What things of an interface are called in C (rxgen.md 4.1), and what they must not be called. */
#include <ctype.h>
#include <string.h>

#include "rxgen/emit/emit.h"

/* Keywords of C and C++, and what the stubs themselves use. Sorted by nothing: it is short. */
static const char *const reserved[] = {
	"NULL",	    "alignas",	 "alignof",   "and",	  "asm",      "auto",	  "bool",
	"break",    "case",	 "catch",     "char",	  "class",    "const",	  "constexpr",
	"continue", "decltype",	 "default",   "delete",	  "do",	      "double",	  "else",
	"enum",	    "explicit",	 "export",    "extern",	  "false",    "float",	  "for",
	"free",	    "friend",	 "goto",      "if",	  "inline",   "int",	  "int16_t",
	"int32_t",  "int64_t",	 "int8_t",    "linux",	  "long",     "memcpy",	  "memset",
	"mutable",  "namespace", "new",	      "noexcept", "not",      "nullptr",  "operator",
	"or",	    "private",	 "protected", "public",	  "register", "requires", "restrict",
	"return",   "short",	 "signed",    "size_t",	  "sizeof",   "static",	  "struct",
	"switch",   "template",	 "this",      "throw",	  "true",     "try",	  "typedef",
	"typeid",   "typename",	 "typeof",    "uint16_t", "uint32_t", "uint64_t", "uint8_t",
	"union",    "unix",	 "unsigned",  "using",	  "virtual",  "void",	  "volatile",
	"wchar_t",  "while",	 "xor",
};

static bool is_reserved(const char *name)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (!strcmp(name, reserved[i]))
			return true;
	}
	return !strncmp(name, "rxw_", 4);
}

/* A type, a constant or the value of an enum. */
static bool is_global(const struct emit *e, const char *name)
{
	for (size_t i = 0; i < e->file->type_count; i++) {
		const struct xg_type *type = e->file->types[i];

		if (!strcmp(name, type->name))
			return true;
		for (size_t j = 0; j < type->value_count; j++) {
			if (!strcmp(name, type->values[j].name))
				return true;
		}
	}
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (item->kind == XG_ITEM_CONST && !strcmp(name, item->name))
			return true;
	}
	return false;
}

const char *emit_member_name(struct emit *e, const char *name)
{
	return is_reserved(name) ? emit_format(e, "%s_", name) : name;
}

const char *emit_param_name(struct emit *e, const struct xg_param *param)
{
	const char *name = param->decl.name;

	return is_reserved(name) || is_global(e, name) ? emit_format(e, "%s_", name) : name;
}

const char *emit_local(struct emit *e, const struct xg_proc *proc, const char *name)
{
	bool taken;

	do {
		taken = is_global(e, name);
		for (size_t i = 0; i < proc->param_count && !taken; i++)
			taken = !strcmp(name, emit_param_name(e, &proc->params[i]));
		if (taken && !e->failed)
			name = emit_format(e, "%s_", name);
	} while (taken && !e->failed);
	return name;
}

static const char *underscored(struct emit *e, const char *prefix, const char *name)
{
	size_t length = strlen(name);

	return emit_format(e, "%s%s%s", prefix, name, length && name[length - 1] == '_' ? "" : "_");
}

const char *emit_package_name(struct emit *e, const struct xg_package *package)
{
	return underscored(e, e->options->prefix, package->name);
}

const char *emit_constant_name(struct emit *e, const struct xg_package *package)
{
	return underscored(e, "", package->name);
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
