/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations: type, star, name, bound, and the valid combinations of these. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rxwgen/parse/parse.h"

/* Default bounds of x<>. */
#define DEFAULT_BYTES	 1048576
#define DEFAULT_ELEMENTS 65536

/* The value of a number or name; false if it is invalid (reported). */
static bool parse_value_of(struct parser *p, const struct token *token, const char *what,
			   int64_t *value)
{
	const struct name *name = token->name;
	const struct symbol *symbol;

	assert(token->kind == TOKEN_NUMBER || name);
	*value = token->value;
	if (token->kind == TOKEN_NUMBER)
		return !token->wrong;
	symbol = name->symbol;
	if (symbol && (symbol->kind == SYMBOL_VALUE || symbol->kind == SYMBOL_CONST)) {
		*value = symbol->value;
		if (symbol->number || symbol->wrong)
			return !symbol->wrong;
		diag_error(p->diag, token->loc, "'%s' is a string, not a %s", name->text, what);
		diag_note(p->diag, symbol->loc, "it is defined here");
		return false;
	}
	if (name->c_define && name->c_define->known) {
		*value = name->c_define->value;
		return true;
	}
	if (name->c_define)
		diag_error(p->diag, token->loc, "'%s' has several values in %%#define lines",
			   name->text);
	else if (symbol)
		diag_error(p->diag, token->loc, "'%s' is a type, not a %s", name->text, what);
	else
		diag_error(p->diag, token->loc, "unknown %s '%s'", what, name->text);
	return false;
}

static void advance_operand(void *parser)
{
	parse_advance(parser);
}

static bool report_unexpected(void *parser, const char *expected)
{
	return parse_unexpected(parser, expected);
}

/* An expression with the purpose of its value, for messages. */
struct constant {
	struct expression e;
	const char *what;
};

static bool read_bound_operand(struct expression *e, int64_t *value)
{
	struct parser *p = e->owner;
	const struct constant *constant = (const struct constant *)e;

	if (p->token.kind != TOKEN_NUMBER && p->token.kind != TOKEN_NAME)
		return parse_unexpected(p, "a constant");
	if (!parse_value_of(p, &p->token, constant->what, value))
		e->invalid = true;
	parse_advance(p);
	return true;
}

bool parse_bound(struct parser *p, const char *what, int64_t *value, const char **text, bool *known)
{
	const char *first = p->token.text;
	struct constant constant = {.what = what,
				    .e = {.diag = p->diag,
					  .token = &p->token,
					  .owner = p,
					  .advance = advance_operand,
					  .operand = read_bound_operand,
					  .unexpected = report_unexpected}};

	if (!expression_read(&constant.e, value))
		return false;
	*known = !constant.e.invalid;
	if (constant.e.tokens == 1)
		*text = first;
	else if (*value == INT64_MIN) /* C has no literal of this value */
		*text = "-9223372036854775807 - 1";
	else
		*text = arena_printf(p->arena, "%" PRId64, *value);
	return true;
}

/* "unsigned hyper" is a type if a name or '*' follows, else an unsigned with the name hyper. */
static void parse_unsigned_hyper(struct parser *p, struct declared *d)
{
	struct name *name = p->token.name;
	struct loc loc = p->token.loc;

	if (strcmp(name->text, "hyper") != 0)
		return;
	parse_advance(p);
	if (p->token.kind == TOKEN_NAME || p->token.kind == '*') {
		d->ast.kind = XG_UINT64;
	} else {
		d->name = name;
		d->loc = loc;
	}
}

/* The rest of a type after "unsigned". */
static void parse_unsigned(struct parser *p, struct declared *d)
{
	struct xg_decl *ast = &d->ast;

	ast->kind = XG_UINT;
	switch (p->token.kind) {
	case TOKEN_CHAR:
		ast->kind = XG_UCHAR;
		parse_advance(p);
		break;
	case TOKEN_SHORT:
		ast->kind = XG_USHORT;
		parse_advance(p);
		if (p->token.kind == TOKEN_INT)
			parse_advance(p);
		break;
	case TOKEN_AFS_INT32:
		parse_advance(p);
		if (p->token.kind == TOKEN_INT)
			parse_advance(p);
		break;
	case TOKEN_INT:
		parse_advance(p);
		break;
	case TOKEN_NAME:
		parse_unsigned_hyper(p, d);
		break;
	default:
		break;
	}
}

static void parse_named_type(struct parser *p, struct declared *d, struct name **forward)
{
	const struct symbol *symbol = p->token.name->symbol;

	d->ast.kind = XG_NAMED;
	if (symbol && symbol->kind == SYMBOL_BASIC) {
		d->ast.kind = symbol->basic;
	} else if (symbol && symbol->kind == SYMBOL_TYPE) {
		d->ast.type = &symbol->type->ast;
	} else if (symbol) {
		diag_error(p->diag, d->type_loc, "'%s' is %s, not a type", p->token.name->text,
			   symbol_what(symbol));
		diag_note(p->diag, symbol->loc, "it is defined here");
		d->ast.kind = XG_INT;
	} else {
		*forward = p->token.name;
	}
	parse_advance(p);
}

/* struct, enum or union before the name of a type must agree with its definition, if known. */
static void check_type_word(struct parser *p, int word, const struct declared *d)
{
	static const char *const whats[] = {"a struct", "a union", "an enum", "a typedef"};
	const struct type *type = (const struct type *)d->ast.type;
	enum xg_what what = word == TOKEN_STRUCT  ? XG_STRUCT
			    : word == TOKEN_UNION ? XG_UNION
						  : XG_ENUM;

	if (!type || !type->defined || type->broken || type->ast.what == XG_TYPEDEF ||
	    type->ast.what == what)
		return;
	diag_error(p->diag, d->type_loc, "'%s' is %s, not %s", type->ast.name,
		   whats[type->ast.what], whats[what]);
	diag_note(p->diag, type->loc, "it is defined here");
}

/* *forward: the name, if it is unknown. */
static bool parse_decl_type(struct parser *p, enum decl_of of, struct declared *d,
			    struct name **forward)
{
	static const struct {
		int token;
		enum xg_kind kind;
	} simple[] = {
		{TOKEN_CHAR, XG_CHAR},
		{TOKEN_SHORT, XG_SHORT},
		{TOKEN_INT, XG_INT},
		{TOKEN_AFS_INT32, XG_INT},
		{TOKEN_BOOL, XG_BOOL},
		{TOKEN_FLOAT, XG_FLOAT},
		{TOKEN_DOUBLE, XG_DOUBLE},
		{TOKEN_OPAQUE, XG_OPAQUE},
		{TOKEN_STRING_TYPE, XG_STRING},
		{TOKEN_AFSUUID, XG_UUID},
	};
	int token = p->token.kind;

	d->type_loc = p->token.loc;
	if (token == TOKEN_STRUCT || token == TOKEN_ENUM || token == TOKEN_UNION) {
		parse_advance(p);
		d->type_loc = p->token.loc;
		if (p->token.kind != TOKEN_NAME)
			return parse_unexpected(p, "the name of a type");
		parse_named_type(p, d, forward);
		check_type_word(p, token, d);
		return true;
	}
	if (token == TOKEN_NAME) {
		parse_named_type(p, d, forward);
		return true;
	}
	if (token == TOKEN_UNSIGNED) {
		parse_advance(p);
		parse_unsigned(p, d);
		return true;
	}
	for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++)
		if (token == simple[i].token) {
			d->ast.kind = simple[i].kind;
			parse_advance(p);
			if ((token == TOKEN_SHORT || token == TOKEN_AFS_INT32) &&
			    p->token.kind == TOKEN_INT)
				parse_advance(p);
			return true;
		}
	if (token == TOKEN_VOID) {
		diag_error(p->diag, p->token.loc, "void is valid only as an arm of a union");
		d->ast.kind = XG_INT;
		parse_advance(p);
		return true;
	}
	return parse_unexpected(p, of == DECL_MEMBER ? "the type of a member or '}'" : "a type");
}

/*
 * An incomplete type is valid only with '*', and not in a parameter. After an error the declaration
 * gets the type int: otherwise a later typedef could form a cycle.
 */
static void resolve_decl_type(struct parser *p, enum decl_of of, struct declared *d,
			      struct name *forward)
{
	bool may_wait = d->ast.shape == XG_POINTER && of != DECL_PARAM;
	struct type *type = (struct type *)d->ast.type;

	if (forward) {
		if (!may_wait)
			diag_error(p->diag, d->type_loc, "unknown type '%s'", forward->text);
		type = symbol_forward(p, forward, d->type_loc, !may_wait);
		d->ast.type = &type->ast;
	}
	if (d->ast.kind != XG_NAMED || type->defined || may_wait)
		return;
	if (type->broken) {
		/* reported before */
	} else if (type->open) {
		diag_error(p->diag, d->type_loc, "'%s' contains itself, which requires '*'",
			   type->ast.name);
	} else {
		diag_error(p->diag, d->type_loc,
			   "unknown type '%s': so far it was used only with '*'", type->ast.name);
		diag_note(p->diag, type->loc, "it was used here");
	}
	d->ast.kind = XG_INT;
	d->ast.type = NULL;
}

/* The bound of x<>: that of -L, or the default. */
static void set_default_bound(struct parser *p, const char *owner, struct declared *d)
{
	struct xg_decl *ast = &d->ast;
	const char *full = NULL;

	assert(ast->shape == XG_COUNTED);
	ast->bound =
		ast->kind == XG_OPAQUE || ast->kind == XG_STRING ? DEFAULT_BYTES : DEFAULT_ELEMENTS;
	d->unbounded = true;
	if (p->options->limit_count && owner)
		full = arena_printf(p->arena, "%s.%s", owner, ast->name);
	for (size_t i = 0; i < p->options->limit_count; i++) {
		struct limit *limit = &p->limits[i];

		if (strcmp(limit->name, ast->name) != 0 &&
		    (!full || strcmp(limit->name, full) != 0))
			continue;
		limit->used = true;
		ast->bound = limit->value;
		d->unbounded = false;
	}
}

static bool parse_brackets(struct parser *p, const char *owner, struct declared *d)
{
	struct xg_decl *ast = &d->ast;
	bool counted = p->token.kind == '<', known = false;
	struct loc loc;
	int64_t value;

	ast->shape = counted ? XG_COUNTED : XG_FIXED;
	parse_advance(p);
	if (counted && p->token.kind == '>') {
		set_default_bound(p, owner, d);
		parse_advance(p);
		return true;
	}
	loc = p->token.loc;
	if (!parse_bound(p, "bound", &value, &ast->bound_text, &known))
		return false;
	if (known && (value < 1 || value > BOUND_MAX)) {
		diag_error(p->diag, loc, "a bound of %" PRId64 " is out of range: 1 to %d", value,
			   BOUND_MAX);
		known = false;
	}
	ast->bound = known ? (uint32_t)value : 1;
	return parse_expect(p, counted ? '>' : ']', "after the bound");
}

/* Check that the kind may have the shape; `star` is the position of a '*'. */
static void check_decl_shape(struct parser *p, enum decl_of of, struct declared *d, bool starred,
			     struct loc star)
{
	struct xg_decl *ast = &d->ast;
	const char *name = ast->name;

	if (starred && of == DECL_PARAM && ast->shape == XG_COUNTED) {
		diag_error(p->diag, star,
			   "'*' and a bound cannot be combined; write '%s<%s>' without '*', also "
			   "for OUT and INOUT",
			   name, ast->bound_text ? ast->bound_text : "");
		return;
	}
	if (starred && (ast->shape == XG_FIXED || ast->shape == XG_COUNTED)) {
		diag_error(p->diag, star,
			   "'*' and a bound cannot be combined; use a typedef for one of them");
		return;
	}
	if (ast->kind == XG_OPAQUE && ast->shape != XG_FIXED && ast->shape != XG_COUNTED) {
		diag_error(p->diag, d->loc, "opaque '%s' needs a length: [n] or <n>", name);
		ast->kind = XG_CHAR;
	} else if (ast->kind == XG_STRING && ast->shape != XG_COUNTED) {
		diag_error(p->diag, d->loc, "string '%s' needs <n> or <>", name);
		ast->shape = XG_COUNTED;
		ast->bound = 1;
	}
}

bool parse_decl(struct parser *p, enum decl_of of, const char *owner, struct declared *d)
{
	static const char *const whats[] = {"a member", "an arm", "the discriminant of the union",
					    "a type", "a parameter"};
	struct name *forward = NULL;
	bool starred = false;
	struct loc star = {0};

	memset(d, 0, sizeof(*d));
	if (!parse_decl_type(p, of, d, &forward))
		return false;
	if (p->token.kind == '*') {
		starred = true;
		star = p->token.loc;
		d->ast.shape = XG_POINTER;
		parse_advance(p);
	}
	if (!d->name) {
		d->name = parse_name(p, whats[of]);
		if (!d->name)
			return false;
		d->loc = p->token.loc;
		parse_advance(p);
	}
	d->ast.name = d->name->text;
	d->ast.place = source_place(d->loc);
	if ((p->token.kind == '[' || p->token.kind == '<') && !parse_brackets(p, owner, d))
		return false;
	check_decl_shape(p, of, d, starred, star);
	resolve_decl_type(p, of, d, forward);
	measure_decl(p, d, of);
	return true;
}
