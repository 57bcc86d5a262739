/* SPDX-License-Identifier: BSD-2-Clause */
/* What things of an interface are called in C (rxgen.md 4.1), and what they must not be called. */
#include <string.h>

#include "rxgen/emit/emit.h"

/* Keywords of C and C++, and macros of some compilers. */
static const char *const keywords[] = {
	"alignas",   "alignof",	  "and",      "asm",	  "auto",	   "bool",	"break",
	"case",	     "catch",	  "char",     "class",	  "const",	   "constexpr", "continue",
	"decltype",  "default",	  "delete",   "do",	  "double",	   "else",	"enum",
	"explicit",  "export",	  "extern",   "false",	  "float",	   "for",	"friend",
	"goto",	     "if",	  "inline",   "int",	  "linux",	   "long",	"mutable",
	"namespace", "new",	  "noexcept", "not",	  "nullptr",	   "operator",	"or",
	"private",   "protected", "public",   "register", "requires",	   "restrict",	"return",
	"short",     "signed",	  "sizeof",   "static",	  "static_assert", "struct",	"switch",
	"template",  "this",	  "throw",    "true",	  "try",	   "typedef",	"typeid",
	"typename",  "typeof",	  "union",    "unix",	  "unsigned",	   "using",	"virtual",
	"void",	     "volatile",  "while",    "xor",
};

/* What the stubs use besides: no names for parameters. */
static const char *const used[] = {
	"NULL",	  "free",   "int16_t",	"int32_t",  "int64_t",	"int8_t",  "memcpy",
	"memset", "size_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "wchar_t",
};

static bool is_among(const char *const *words, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(name, words[i]))
			return true;
	}
	return false;
}

static bool is_keyword(const char *name)
{
	return is_among(keywords, sizeof(keywords) / sizeof(keywords[0]), name);
}

static bool is_used(const char *name)
{
	return is_among(used, sizeof(used) / sizeof(used[0]), name) || !strncmp(name, "rxw_", 4);
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
	return is_keyword(name) ? emit_format(e, "%s_", name) : name;
}

static bool is_renamed(const struct emit *e, const char *name)
{
	return is_keyword(name) || is_used(name) || is_global(e, name);
}

const char *emit_param_name(struct emit *e, const struct xg_param *param)
{
	const char *name = param->decl.name;

	return is_renamed(e, name) ? emit_format(e, "%s_", name) : name;
}

/* Whether the parameter is called so in C. */
static bool is_called(const struct emit *e, const struct xg_param *param, const char *name)
{
	const char *own = param->decl.name;
	size_t length = strlen(own);

	if (strncmp(own, name, length) || (name[length] && strcmp(name + length, "_")))
		return false;
	return is_renamed(e, own) == (name[length] == '_');
}

const char *emit_local(struct emit *e, const struct xg_proc *proc, const char *name)
{
	bool taken;

	do {
		taken = is_global(e, name);
		for (size_t i = 0; i < proc->param_count && !taken; i++)
			taken = is_called(e, &proc->params[i], name);
		if (taken)
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
