/* SPDX-License-Identifier: BSD-2-Clause */
/* Constants and types. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/parse/parse.h"

/*
 * If a constant has a comment after it, a comment before it describes a group of constants and is
 * copied to the header unchanged.
 */
static void keep_group_comment(struct parser *p, const char *text, size_t index)
{
	size_t length = strlen(text);
	char *out = arena_alloc(p->arena, 4 * length + 16), *at = out;
	struct xg_item item = {.kind = XG_ITEM_LINE, .text = out}, moved;

	assert(index <= p->item_count);
	if (!strchr(text, '\n')) {
		sprintf(out, "/* %s */", text);
	} else {
		/* One item contains all lines. */
		at = stpcpy(at, "/*\n *");
		for (; *text; text++) {
			if (*text == '\n')
				at = stpcpy(at, "\n *");
			else
				at += sprintf(at, "%s%c",
					      at[-1] == '*' && at[-3] == '\n' ? " " : "", *text);
		}
		stpcpy(at, "\n */");
	}
	parse_add_item(p, item);
	/* Move it before the constant and the lines after that. */
	moved = p->items[p->item_count - 1];
	memmove(&p->items[index + 1], &p->items[index],
		(p->item_count - 1 - index) * sizeof(p->items[0]));
	p->items[index] = moved;
}

/* A repeated constant is accepted if it is the same. */
static bool is_same_constant(const struct symbol *old, const struct symbol *value)
{
	if (!old || old->kind != SYMBOL_CONST || old->number != value->number)
		return false;
	return value->number ? old->value == value->value : !strcmp(old->text, value->text);
}

/* The value of a constant. False: a syntax error. */
static bool parse_const_value(struct parser *p, struct symbol *out, const char **text)
{
	const struct token *token = &p->token;
	const struct symbol *other = token->kind == TOKEN_NAME ? token->name->symbol : NULL;
	bool known;

	if (other && other->kind == SYMBOL_CONST && !other->number) {
		out->text = other->text;
		*text = token->text;
		parse_advance(p);
		return true;
	}
	if (token->kind == TOKEN_STRING) {
		out->text = token->text;
		*text = arena_printf(p->arena, "\"%s\"", token->text);
		parse_advance(p);
		return true;
	}
	out->number = true;
	if (!parse_bound(p, "constant", &out->value, text, &known))
		return false;
	out->wrong = !known;
	return true;
}

/* The item of a constant, with the comments around it. */
static void add_constant_item(struct parser *p, struct xg_item item, const char *before)
{
	/* Pending lines precede it. */
	size_t index = p->item_count + p->pending_count;
	const char *after = NULL;

	parse_done(p, item, &after);
	if (p->included)
		return;
	if (!after)
		p->items[index].doc = before;
	else if (before && p->output == XG_HEADER)
		keep_group_comment(p, before, index);
}

bool parse_const(struct parser *p)
{
	const char *before = p->token.before, *text;
	struct symbol value = {.kind = SYMBOL_CONST}, *symbol;
	struct name *name;

	parse_advance(p);
	name = parse_name(p, "a constant");
	if (!name)
		return false;
	value.loc = p->token.loc;
	parse_advance(p);
	if (!parse_expect(p, '=', "after the constant's name") ||
	    !parse_const_value(p, &value, &text))
		return false;
	if (p->token.kind != ';')
		return parse_expect(p, ';', "after constant");
	if (!value.wrong && is_same_constant(name->symbol, &value)) {
		parse_advance(p);
		return true;
	}
	symbol = symbol_declare(p, name, value.loc, SYMBOL_CONST);
	if (symbol)
		*symbol = value;
	add_constant_item(p,
			  (struct xg_item){.kind = XG_ITEM_CONST,
					   .name = name->text,
					   .text = text,
					   .number = value.number,
					   .string = value.text,
					   .value = value.value},
			  before);
	return true;
}

/* Complete the definition of a type at its ';'. */
static bool finish_type_item(struct parser *p, struct type *type, const char *doc,
			     const char *where)
{
	if (p->token.kind != ';')
		return parse_expect(p, ';', where);
	measure_type(p, type, type->loc);
	type->ast.included = p->included;
	symbol_type_done(p, type);
	parse_done(p, (struct xg_item){.kind = XG_ITEM_TYPE, .type = &type->ast}, &doc);
	type->ast.doc = doc;
	return true;
}

/* Record the first unbounded array of a type. */
static void note_unbounded_array(struct type *type, const struct declared *d)
{
	const struct type *inner = (const struct type *)d->ast.type;

	if (type->unbounded)
		return;
	if (d->unbounded) {
		type->unbounded = true;
		type->unbounded_loc = d->loc;
		type->unbounded_name = d->ast.name;
	} else if (inner && inner->unbounded && d->ast.shape != XG_POINTER) {
		type->unbounded = true;
		type->unbounded_loc = inner->unbounded_loc;
		type->unbounded_name = inner->unbounded_name;
	}
}

bool parse_struct(struct parser *p)
{
	const char *doc = p->token.before, *before;
	bool customized = p->token.kind == TOKEN_CUSTOMIZED;
	struct xg_decl *members = NULL;
	size_t count = 0, room = 0;
	struct declared d;
	struct type *type;
	struct name *name;

	parse_advance(p);
	if (customized && !parse_expect(p, TOKEN_STRUCT, "after 'customized'"))
		return false;
	name = parse_name(p, "a struct");
	if (!name)
		return false;
	type = symbol_define_type(p, name, p->token.loc, XG_STRUCT);
	type->ast.customized = customized;
	parse_advance(p);
	if (!parse_expect(p, '{', "after the struct's name"))
		return false;
	if (!doc)
		doc = p->token.after;
	if (p->token.kind == '}')
		diag_error(p->diag, p->token.loc, "struct '%s' has no members", name->text);
	symbol_scope(p);
	while (p->token.kind != '}') {
		before = p->token.before;
		if (!parse_decl(p, DECL_MEMBER, name->text, &d) ||
		    !parse_expect(p, ';', "after member"))
			return false;
		symbol_member(p, d.name, d.loc, "member");
		symbol_field(p, d.name, d.loc);
		note_unbounded_array(type, &d);
		d.ast.doc = p->token.after ? p->token.after : before;
		members = arena_grow(p->arena, members, count, &room, sizeof(members[0]));
		members[count++] = d.ast;
	}
	type->ast.members = members;
	type->ast.member_count = count;
	parse_advance(p);
	return finish_type_item(p, type, doc, "after struct");
}

/* Check the type of a discriminant. */
static void check_switch_type(struct parser *p, const struct declared *d)
{
	const struct xg_decl *ast = &d->ast;
	const struct type *type = (const struct type *)ast->type;

	if (ast->shape == XG_ONE &&
	    (ast->kind == XG_INT || ast->kind == XG_UINT || ast->kind == XG_BOOL ||
	     (ast->kind == XG_NAMED && (type->broken || type->ast.what == XG_ENUM))))
		return;
	diag_error(p->diag, d->type_loc,
		   "the discriminant of a union must be int, unsigned int, bool or an enum; "
		   "'%s' is not",
		   ast->name);
}

static void check_case_range(struct parser *p, const struct xg_decl *on, struct loc loc,
			     int64_t value)
{
	int64_t low = INT32_MIN, high = INT32_MAX;

	if (on->kind == XG_UINT) {
		low = 0;
		high = UINT32_MAX;
	} else if (on->kind == XG_BOOL) {
		low = 0;
		high = 1;
	}
	if (value < low || value > high)
		diag_error(p->diag, loc,
			   "case %" PRId64 " is out of range: %" PRId64 " to %" PRId64, value, low,
			   high);
}

/* An arm with its position, to find duplicates. */
struct arm {
	struct xg_arm ast;
	struct loc loc;
	bool known;
};

static int compare_arms(const void *a, const void *b)
{
	const struct arm *x = *(const struct arm *const *)a, *y = *(const struct arm *const *)b;

	if (x->ast.value != y->ast.value)
		return x->ast.value < y->ast.value ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void check_duplicate_cases(struct parser *p, struct arm *arms, size_t count)
{
	struct arm **sorted = arena_alloc(p->arena, (count + 1) * sizeof(sorted[0]));
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (arms[i].known)
			sorted[n++] = &arms[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_arms);
	for (size_t i = 1; i < n; i++)
		if (sorted[i]->ast.value == sorted[i - 1]->ast.value) {
			diag_error(p->diag, sorted[i]->loc, "case %s occurs twice",
				   sorted[i]->ast.text);
			diag_note(p->diag, sorted[i - 1]->loc, "the first one is here");
		}
}

/* The declaration of an arm, with its ';'. */
static bool parse_arm_decl(struct parser *p, struct type *type, struct arm *arm, const char *before)
{
	struct declared d = {0};

	if (p->token.kind == TOKEN_VOID) {
		d.ast.kind = XG_VOID;
		d.ast.place = source_place(p->token.loc);
		parse_advance(p);
	} else {
		if (p->token.kind == TOKEN_CASE || p->token.kind == TOKEN_DEFAULT)
			return parse_unexpected(p, "a declaration or 'void' for this case");
		if (!parse_decl(p, DECL_ARM, type->ast.name, &d))
			return false;
		symbol_member(p, d.name, d.loc, "arm");
		symbol_field(p, d.name, d.loc);
		note_unbounded_array(type, &d);
	}
	if (!parse_expect(p, ';', "after the arm"))
		return false;
	d.ast.doc = p->token.after ? p->token.after : before;
	arm->ast.decl = d.ast;
	return true;
}

/* The value of a case. TRUE and FALSE are known if the discriminant is a bool. */
static bool parse_label(struct parser *p, const struct type *type, struct arm *arm)
{
	const struct token *token = &p->token;

	if (token->kind == TOKEN_NAME && type->ast.discriminant.kind == XG_BOOL &&
	    !token->name->symbol &&
	    (!strcmp(token->text, "TRUE") || !strcmp(token->text, "FALSE"))) {
		arm->ast.text = token->text;
		arm->ast.value = token->text[0] == 'T';
		arm->known = true;
		parse_advance(p);
		return true;
	}
	return parse_bound(p, "value", &arm->ast.value, &arm->ast.text, &arm->known);
}

/* "case N:" or "default:", and the declaration. */
static bool parse_arm(struct parser *p, struct type *type, struct arm *arm)
{
	const char *before = p->token.before;

	memset(arm, 0, sizeof(*arm));
	if (p->token.kind == TOKEN_DEFAULT) {
		arm->loc = p->token.loc;
		arm->ast.place = source_place(arm->loc);
		parse_advance(p);
	} else {
		if (!parse_expect(p, TOKEN_CASE, "or '}' in a union"))
			return false;
		arm->loc = p->token.loc;
		arm->ast.place = source_place(arm->loc);
		if (!parse_label(p, type, arm))
			return false;
		if (arm->known)
			check_case_range(p, &type->ast.discriminant, arm->loc, arm->ast.value);
	}
	return parse_expect(p, ':', "after the case") && parse_arm_decl(p, type, arm, before);
}

static bool parse_arms(struct parser *p, struct type *type)
{
	struct xg_arm *out;
	struct arm *arms = NULL;
	size_t count = 0, room = 0;
	bool had_default = false;

	if (p->token.kind == '}')
		diag_error(p->diag, p->token.loc, "union '%s' has no arms", type->ast.name);
	symbol_scope(p);
	while (p->token.kind != '}') {
		if (had_default)
			return parse_unexpected(p, "'}' after the default");
		had_default = p->token.kind == TOKEN_DEFAULT;
		arms = arena_grow(p->arena, arms, count, &room, sizeof(arms[0]));
		if (!parse_arm(p, type, &arms[count++]))
			return false;
	}
	check_duplicate_cases(p, arms, count);
	out = arena_alloc(p->arena, (count + 1) * sizeof(out[0]));
	for (size_t i = 0; i < count; i++)
		out[i] = arms[i].ast;
	type->ast.arms = out;
	type->ast.arm_count = count;
	return true;
}

bool parse_union(struct parser *p)
{
	const char *doc = p->token.before;
	struct declared d;
	struct type *type;
	struct name *name;

	parse_advance(p);
	name = parse_name(p, "a union");
	if (!name)
		return false;
	type = symbol_define_type(p, name, p->token.loc, XG_UNION);
	parse_advance(p);
	if (!parse_expect(p, TOKEN_SWITCH, "after the union's name") ||
	    !parse_expect(p, '(', "after 'switch'") ||
	    !parse_decl(p, DECL_SWITCH, type->ast.name, &d) ||
	    !parse_expect(p, ')', "after the discriminant of the union"))
		return false;
	check_switch_type(p, &d);
	symbol_field(p, d.name, d.loc);
	type->ast.discriminant = d.ast;
	if (!parse_expect(p, '{', "after 'switch (…)'"))
		return false;
	if (!doc)
		doc = p->token.after;
	if (!parse_arms(p, type))
		return false;
	parse_advance(p);
	return finish_type_item(p, type, doc, "after union");
}

/* NAME [ = BOUND ]; *next is the default value. */
static bool parse_enum_value(struct parser *p, struct xg_value *out, int64_t *next)
{
	struct name *name = parse_name(p, "a value");
	struct symbol *symbol;
	const char *text;
	struct loc loc, value_loc;
	bool known = true;

	if (!name)
		return false;
	loc = value_loc = p->token.loc;
	out->doc = p->token.before;
	out->name = name->text;
	out->place = source_place(loc);
	parse_advance(p);
	if (p->token.kind == '=') {
		parse_advance(p);
		value_loc = p->token.loc;
		if (!parse_bound(p, "value", next, &text, &known))
			return false;
	}
	if (!known)
		*next = 0;
	if (*next < INT32_MIN || *next > INT32_MAX) {
		diag_error(p->diag, value_loc, "'%s' is %" PRId64 ", out of range: %d to %d",
			   name->text, *next, INT32_MIN, INT32_MAX);
		*next = 0;
		known = false;
	}
	out->value = (int32_t)(*next)++;
	symbol = symbol_declare(p, name, loc, SYMBOL_VALUE);
	if (symbol) {
		symbol->number = true;
		symbol->wrong = !known;
		symbol->value = out->value;
	}
	return true;
}

bool parse_enum(struct parser *p)
{
	const char *doc = p->token.before;
	struct xg_value *values = NULL;
	size_t count = 0, room = 0;
	struct type *type;
	struct name *name;
	int64_t next = 0;

	parse_advance(p);
	name = parse_name(p, "an enum");
	if (!name)
		return false;
	type = symbol_define_type(p, name, p->token.loc, XG_ENUM);
	parse_advance(p);
	if (!parse_expect(p, '{', "after the enum's name"))
		return false;
	if (!doc)
		doc = p->token.after;
	if (p->token.kind == '}')
		diag_error(p->diag, p->token.loc, "enum '%s' has no values", name->text);
	while (p->token.kind != '}') {
		values = arena_grow(p->arena, values, count, &room, sizeof(values[0]));
		if (!parse_enum_value(p, &values[count++], &next))
			return false;
		if (p->token.kind == ',') {
			parse_advance(p);
			if (p->token.kind == '}')
				return parse_unexpected(p, "the name of a value");
		} else if (p->token.kind != '}') {
			return parse_unexpected(p, "',' or '}' after a value");
		}
		if (p->token.after)
			values[count - 1].doc = p->token.after;
	}
	type->ast.values = values;
	type->ast.value_count = count;
	parse_advance(p);
	return finish_type_item(p, type, doc, "after enum");
}

bool parse_typedef(struct parser *p)
{
	const char *doc = p->token.before;
	struct declared d;
	struct type *type;

	parse_advance(p);
	if (!parse_decl(p, DECL_TYPEDEF, NULL, &d))
		return false;
	type = symbol_define_type(p, d.name, d.loc, XG_TYPEDEF);
	type->ast.alias = d.ast;
	note_unbounded_array(type, &d);
	return finish_type_item(p, type, doc, "after typedef");
}

/* Accepted without effect: another compiler needs it to free members. */
bool parse_special(struct parser *p)
{
	struct declared d = {0};

	parse_advance(p);
	if (p->token.kind == TOKEN_STRUCT || p->token.kind == TOKEN_UNION ||
	    p->token.kind == TOKEN_ENUM)
		parse_advance(p);
	if (p->token.kind != TOKEN_NAME && p->token.kind < TOKEN_KEYWORDS)
		return parse_unexpected(p, "a type after 'special'");
	do {
		parse_advance(p);
		d.name = parse_name(p, "a member");
		if (!d.name)
			return false;
		parse_advance(p);
	} while (p->token.kind == ',');
	return parse_expect(p, ';', "after 'special'");
}
