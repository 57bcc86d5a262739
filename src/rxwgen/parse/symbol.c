/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols: one scope for types, constants and enum values, and one for each list of members. */
#include <assert.h>
#include <string.h>

#include "rxwgen/parse/parse.h"

void symbol_add_basic(struct parser *p)
{
	static const struct {
		const char *name;
		enum xg_kind kind;
	} basic[] = {
		{"afs_uint32", XG_UINT},  {"afs_int64", XG_INT64}, {"afs_uint64", XG_UINT64},
		{"afs_time64", XG_INT64}, {"u_int", XG_UINT},	   {"u_short", XG_USHORT},
		{"hyper", XG_INT64},	  {"u_char", XG_UCHAR},	   {"long", XG_INT},
		{"u_long", XG_UINT},
	};

	for (size_t i = 0; i < sizeof(basic) / sizeof(basic[0]); i++) {
		struct name *name = names_get(p->names, basic[i].name, strlen(basic[i].name));

		name->symbol = arena_alloc(p->arena, sizeof(*name->symbol));
		name->symbol->kind = SYMBOL_BASIC;
		name->symbol->basic = basic[i].kind;
	}
}

const char *symbol_what(const struct symbol *symbol)
{
	switch (symbol->kind) {
	case SYMBOL_CONST:
		return "a constant";
	case SYMBOL_VALUE:
		return "a value of an enum";
	default:
		return "a type";
	}
}

static void report_taken_name(struct parser *p, const struct name *name, struct loc loc)
{
	const struct symbol *old = name->symbol;

	if (!old) {
		diag_error(p->diag, loc, "'%s' would be the C name of two definitions", name->text);
		diag_note(p->diag, name->generated, "the other one is derived here");
	} else if (old->kind == SYMBOL_BASIC) {
		diag_error(p->diag, loc, "redefinition of the built-in type '%s'", name->text);
	} else {
		diag_error(p->diag, loc, "redefinition of '%s'", name->text);
		diag_note(p->diag, old->loc, "its first definition, as %s, is here",
			  symbol_what(old));
	}
}

/* The parameters of xdrcopy_T() would hide a type of their name. */
static bool is_hidden_in_copies(const struct parser *p, const char *name)
{
	return p->options->copies && (!strcmp(name, "to") || !strcmp(name, "from"));
}

/* A type, constant or enum value must have a name without another meaning in generated code. */
static void check_reserved_name(struct parser *p, const struct name *name, struct loc loc,
				enum symbol_kind symbol)
{
	enum xg_reserved kind = xg_reserved_kind(name->text);

	if (name_is_local(name->text) ||
	    (symbol == SYMBOL_CONST && name_is_generated(name->text)) ||
	    (symbol == SYMBOL_TYPE && is_hidden_in_copies(p, name->text)))
		diag_error(p->diag, loc, "the name '%s' is reserved for the generated code",
			   name->text);
	if (kind)
		diag_error(p->diag, loc, "'%s' is %s; choose another name, such as '%s_'",
			   name->text, xg_reserved_text(kind), name->text);
}

static void report_replaced_name(struct parser *p, const struct name *name, struct loc loc)
{
	diag_error(p->diag, loc, "'%s' cannot be both a constant and a member or procedure",
		   name->text);
}

void symbol_field(struct parser *p, struct name *name, struct loc loc)
{
	name->field = loc;
	if (name->symbol && name->symbol->kind == SYMBOL_CONST) {
		report_replaced_name(p, name, loc);
		diag_note(p->diag, name->symbol->loc, "the constant is here");
	}
}

bool symbol_claim(struct parser *p, const char *text, struct loc loc)
{
	struct name *name = names_get(p->names, text, strlen(text));
	const struct symbol *symbol = name->symbol;

	if (!name->generated.source && (!symbol || symbol->kind == SYMBOL_BASIC)) {
		name->generated = loc;
		return true;
	}
	diag_error(p->diag, loc, "'%s' would be the C name of two definitions", text);
	diag_note(p->diag, symbol ? symbol->loc : name->generated, "the other one is here");
	return false;
}

struct symbol *symbol_declare(struct parser *p, struct name *name, struct loc loc,
			      enum symbol_kind kind)
{
	if (name->symbol || name->generated.source) {
		report_taken_name(p, name, loc);
		return NULL;
	}
	check_reserved_name(p, name, loc, kind);
	if (kind == SYMBOL_CONST && name->field.source) {
		report_replaced_name(p, name, loc);
		diag_note(p->diag, name->field, "'%s' is also used here", name->text);
	}
	name->symbol = arena_alloc(p->arena, sizeof(*name->symbol));
	name->symbol->kind = kind;
	name->symbol->loc = loc;
	return name->symbol;
}

static struct type *add_new_type(struct parser *p, const struct name *name, struct loc loc)
{
	struct type *type = arena_alloc(p->arena, sizeof(*type));

	type->loc = loc;
	type->ast.name = name->text;
	type->ast.place = source_place(loc);
	p->types = arena_grow(p->arena, p->types, p->type_count, &p->type_room, sizeof(type));
	p->types[p->type_count++] = type;
	return type;
}

struct type *symbol_forward(struct parser *p, struct name *name, struct loc loc, bool broken)
{
	struct symbol *symbol = arena_alloc(p->arena, sizeof(*symbol));

	assert(!name->symbol);
	symbol->kind = SYMBOL_TYPE;
	symbol->loc = loc;
	symbol->type = add_new_type(p, name, loc);
	symbol->type->broken = broken;
	name->symbol = symbol;
	return symbol->type;
}

struct type *symbol_define_type(struct parser *p, struct name *name, struct loc loc,
				enum xg_what what)
{
	struct symbol *symbol = name->symbol;
	struct type *type;

	if (symbol && symbol->kind == SYMBOL_TYPE && !symbol->type->defined &&
	    !symbol->type->open) {
		type = symbol->type;
		if (!type->broken && what != XG_STRUCT && what != XG_UNION) {
			diag_error(p->diag, loc,
				   "'%s' was used before this definition; only a struct or a "
				   "union can be",
				   name->text);
			diag_note(p->diag, type->loc, "its first use is here");
			type->broken = true;
		}
		check_reserved_name(p, name, loc, SYMBOL_TYPE);
		symbol->loc = type->loc = loc;
		type->ast.place = source_place(loc);
	} else {
		symbol = symbol_declare(p, name, loc, SYMBOL_TYPE);
		type = add_new_type(p, name, loc);
		if (symbol)
			symbol->type = type;
		else
			type->broken = true;
	}
	type->ast.what = what;
	type->open = true;
	p->defining = type;
	return type;
}

void symbol_type_done(struct parser *p, struct type *type)
{
	assert(type->open && !type->defined);
	type->open = false;
	type->defined = true;
	p->defining = NULL;
	p->defined = arena_grow(p->arena, p->defined, p->defined_count, &p->defined_room,
				sizeof(p->defined[0]));
	p->defined[p->defined_count++] = &type->ast;
}

void symbol_scope(struct parser *p)
{
	p->scope++;
}

/* A reserved name gets a '_' in C (emit/names.c), which must not be the name of another member. */
static bool declare_renamed_member(struct parser *p, const struct name *name, struct loc loc,
				   const char *what)
{
	enum xg_reserved kind = xg_reserved_kind(name->text);
	const char *text;

	if (!strcmp(what, "parameter") || kind == XG_RESERVED_NOT || kind == XG_RESERVED_LIBRARY)
		return true;
	text = arena_printf(p->arena, "%s_", name->text);
	return symbol_member(p, names_get(p->names, text, name->length + 1), loc, what);
}

bool symbol_member(struct parser *p, struct name *name, struct loc loc, const char *what)
{
	if (name->scope == p->scope) {
		diag_error(p->diag, loc, "duplicate %s '%s'", what, name->text);
		diag_note(p->diag, name->member, "the first one is here");
		return false;
	}
	name->scope = p->scope;
	name->member = loc;
	return declare_renamed_member(p, name, loc, what);
}
