/* SPDX-License-Identifier: BSD-2-Clause */
/* Packages and procedures. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rxwgen/parse/parse.h"

#define PACKAGES_MAX	 10
#define PROCEDURES_MAX	 500 /* of a package */
#define OPCODE_START_MAX 100000

/* A prefix of derived names, which ends in '_'. */
static const char *end_with_underscore(struct parser *p, const char *prefix, const char *name)
{
	size_t length = strlen(name);

	assert(length > 0);
	return arena_printf(p->arena, "%s%s%s", prefix, name, name[length - 1] == '_' ? "" : "_");
}

static void claim_package_names(struct parser *p, const struct package *package)
{
	static const char *const constants[] = {
		"STATINDEX",	    "LOWEST_OPCODE",  "HIGHEST_OPCODE",	 "NUMBER_OPCODES",
		"NO_OF_STAT_FUNCS", "function_names", "TranslateOpCode", "OpCodeIndex",
	};
	static const char *const objects[] = {"interface", "handlers", "service", "code_text"};
	const char *prefix = p->options->prefix ? p->options->prefix : "", *name;

	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		symbol_claim(p, arena_printf(p->arena, "%s%s", package->ast.name, constants[i]),
			     package->loc);
	name = end_with_underscore(p, prefix, package->ast.name);
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		symbol_claim(p, arena_printf(p->arena, "%s%s", name, objects[i]), package->loc);
	symbol_claim(p, arena_printf(p->arena, "%s%sExecuteRequest", prefix, package->ast.name),
		     package->loc);
}

/* A statement without ';' ends at its last token. */
bool parse_package(struct parser *p)
{
	const char *doc = p->token.before;
	struct package *package;
	struct name *name;
	bool again = false;
	size_t own = 0;

	parse_advance(p);
	name = parse_name(p, "a package");
	if (!name)
		return false;
	package = arena_alloc(p->arena, sizeof(*package));
	package->ast.name = name->text;
	package->loc = p->token.loc;
	package->ast.place = source_place(package->loc);
	package->included = p->included;
	for (size_t i = 0; i < p->package_count; i++) {
		const struct package *other = p->packages[i];

		own += other->included == p->included;
		if (strcmp(other->ast.name, name->text) != 0)
			continue;
		diag_error(p->diag, package->loc, "package '%s' is defined twice", name->text);
		diag_note(p->diag, other->loc, "the first one is here");
		again = true;
	}
	if (!again)
		claim_package_names(p, package);
	if (own >= PACKAGES_MAX)
		diag_error(p->diag, package->loc, "more than %d packages in a file", PACKAGES_MAX);
	p->packages = arena_grow(p->arena, p->packages, p->package_count, &p->package_room,
				 sizeof(package));
	p->packages[p->package_count++] = package;
	p->package = package;
	parse_done(p, (struct xg_item){.kind = XG_ITEM_PACKAGE, .package = &package->ast}, &doc);
	return true;
}

bool parse_prefix(struct parser *p)
{
	struct name *name;

	parse_advance(p);
	name = parse_name(p, "a prefix");
	if (!name)
		return false;
	p->prefix = name->text;
	parse_advance(p);
	return true;
}

bool parse_statindex(struct parser *p)
{
	struct loc loc = p->token.loc, value_loc;
	const char *text;
	int64_t value;
	bool known;

	parse_advance(p);
	value_loc = p->token.loc;
	if (!parse_bound(p, "statindex", &value, &text, &known))
		return false;
	if (known && (value < 0 || value > UINT32_MAX))
		diag_error(p->diag, value_loc, "statindex %" PRId64 " is out of range: 0 to %u",
			   value, UINT32_MAX);
	if (!p->package) {
		diag_error(p->diag, loc, "statindex before any package");
	} else if (p->package->ast.has_statindex) {
		diag_error(p->diag, loc, "statindex of package '%s' is set twice",
			   p->package->ast.name);
		diag_note(p->diag, p->package->statindex_loc, "the first one is here");
	} else {
		p->package->ast.has_statindex = true;
		p->package->ast.statindex = (uint32_t)value;
		p->package->statindex_loc = loc;
	}
	return true;
}

bool parse_startingopcode(struct parser *p)
{
	const char *text;
	struct loc loc;
	int64_t value;
	bool known;

	parse_advance(p);
	loc = p->token.loc;
	if (!parse_bound(p, "startingopcode", &value, &text, &known))
		return false;
	if (known && (value < 0 || value >= OPCODE_START_MAX)) {
		diag_error(p->diag, loc, "startingopcode %" PRId64 " is out of range: 0 to %d",
			   value, OPCODE_START_MAX - 1);
		known = false;
	}
	p->next_opcode = known ? value : 0;
	if (p->package)
		p->package->sequential = true;
	return true;
}

bool parse_splitprefix(struct parser *p)
{
	const char **word;
	struct name *name;

	parse_advance(p);
	while (p->token.kind == TOKEN_IN || p->token.kind == TOKEN_OUT) {
		word = p->token.kind == TOKEN_IN ? &p->start_word : &p->end_word;
		parse_advance(p);
		if (!parse_expect(p, '=', "in splitprefix"))
			return false;
		name = parse_name(p, "a prefix");
		if (!name)
			return false;
		*word = name->text;
		parse_advance(p);
	}
	return parse_expect(p, ';', "after splitprefix");
}

static bool is_same_array(const struct xg_decl *a, const struct xg_decl *b)
{
	return a->kind == b->kind && a->type == b->type && a->shape == b->shape &&
	       a->bound == b->bound;
}

/* T x<n> implies a struct type x; parameters with equal declarations share it. */
static void make_implied_type(struct parser *p, struct declared *d)
{
	const struct symbol *old = d->name->symbol;
	struct type *type;

	assert(d->ast.shape == XG_COUNTED);
	if (old && old->kind == SYMBOL_TYPE && old->type->ast.parameter &&
	    is_same_array(&old->type->ast.alias, &d->ast)) {
		type = old->type;
	} else {
		if (old && old->kind == SYMBOL_TYPE && old->type->ast.parameter) {
			diag_error(p->diag, d->loc,
				   "the array '%s' implies a type of this name, but another array "
				   "of this name differs",
				   d->name->text);
			diag_note(p->diag, old->loc, "the other one is here");
			type = old->type;
		} else {
			type = symbol_define_type(p, d->name, d->loc, XG_TYPEDEF);
			type->ast.alias = d->ast;
			type->ast.parameter = true;
			type->ast.included = p->included;
			type->unbounded = d->unbounded;
			type->unbounded_loc = d->loc;
			type->unbounded_name = d->name->text;
			measure_type(p, type, d->loc);
			symbol_type_done(p, type);
			if (!p->included)
				parse_add_item(p, (struct xg_item){.kind = XG_ITEM_TYPE,
								   .type = &type->ast});
		}
	}
	d->ast.kind = XG_NAMED;
	d->ast.type = &type->ast;
	d->ast.shape = XG_ONE;
	d->ast.bound = 0;
	d->ast.bound_text = NULL;
	measure_decl(p, d, DECL_PARAM);
}

static void report_unbounded_param(struct parser *p, struct loc loc, const char *name)
{
	static const char text[] = "'%s' is sent to the server and contains an unbounded array%s";

	if (p->options->warn_unbounded)
		diag_warning(p->diag, loc, text, name, "");
	else
		diag_error(p->diag, loc, text, name, "; add a bound, or use -w or -L");
}

static void add_in_param(struct parser *p, const struct declared *d)
{
	struct in_param param = {d->loc, d->ast.name, (const struct type *)d->ast.type};

	p->in_params = arena_grow(p->arena, p->in_params, p->in_param_count, &p->in_param_room,
				  sizeof(param));
	p->in_params[p->in_param_count++] = param;
}

/* A parameter that is sent to the server must be bounded. */
static void check_param_bounds(struct parser *p, const struct declared *d,
			       enum xg_direction direction)
{
	if (!(direction & XG_IN))
		return;
	if (d->unbounded)
		report_unbounded_param(p, d->loc, d->ast.name);
	else if (d->ast.type)
		add_in_param(p, d);
}

/* The direction of this parameter; without a keyword, that of the previous one. */
static enum xg_direction parse_direction(struct parser *p, bool first)
{
	enum xg_direction given = p->token.kind == TOKEN_IN	 ? XG_IN
				  : p->token.kind == TOKEN_OUT	 ? XG_OUT
				  : p->token.kind == TOKEN_INOUT ? XG_INOUT
								 : 0;

	if (given) {
		p->direction = given;
		parse_advance(p);
	} else if (!p->direction) {
		diag_error(p->diag, p->token.loc,
			   "the first parameter of a file needs IN, OUT or INOUT");
		p->direction = XG_IN;
	} else if (first && p->options->warn_direction && !p->included) {
		diag_warning(p->diag, p->token.loc,
			     "this parameter inherits its direction, %s, from another procedure",
			     p->direction == XG_IN    ? "IN"
			     : p->direction == XG_OUT ? "OUT"
						      : "INOUT");
	}
	return p->direction;
}

static bool parse_params(struct parser *p, struct proc *proc)
{
	struct xg_param *params = NULL;
	size_t count = 0, room = 0;
	struct declared d;

	symbol_scope(p);
	while (p->token.kind != ')') {
		struct xg_param param = {0};

		if (count && !parse_expect(p, ',', "or ')' after a parameter"))
			return false;
		param.direction = parse_direction(p, !count);
		if (!parse_decl(p, DECL_PARAM, proc->ast.name, &d))
			return false;
		symbol_member(p, d.name, d.loc, "parameter");
		param.starred = d.ast.shape == XG_POINTER;
		check_param_bounds(p, &d, param.direction);
		if (d.ast.shape == XG_COUNTED && d.ast.kind != XG_STRING)
			make_implied_type(p, &d);
		param.decl = d.ast;
		if (count == XG_PARAMS_MAX)
			return diag_error(p->diag, d.loc,
					  "more than %d parameters in procedure '%s'",
					  XG_PARAMS_MAX, proc->ast.name);
		params = arena_grow(p->arena, params, count, &room, sizeof(params[0]));
		params[count++] = param;
	}
	parse_advance(p);
	proc->ast.params = params;
	proc->ast.param_count = count;
	return true;
}

static void claim_proc_names(struct parser *p, const struct proc *proc, struct loc second)
{
	const char *prefix = p->options->prefix ? p->options->prefix : "", *name, *constant;

	assert(p->package);
	name = arena_printf(p->arena, "%s%s%s", prefix, p->package->ast.name, proc->ast.name);
	constant = end_with_underscore(p, "", p->package->ast.name);
	if (!symbol_claim(p, name, proc->loc))
		return;
	symbol_claim(p, arena_printf(p->arena, "%s%s", proc->ast.start, name), proc->loc);
	symbol_claim(p, arena_printf(p->arena, "%s%s", proc->ast.end, name), proc->loc);
	symbol_claim(p, arena_printf(p->arena, "%sOP_%s", constant, proc->ast.name), proc->loc);
	symbol_claim(p, arena_printf(p->arena, "%sFN_%s", constant, proc->ast.name), proc->loc);
	if (!proc->ast.split)
		symbol_claim(p, arena_printf(p->arena, "%s_opt", name), proc->loc);
	if (!proc->ast.split && p->options->pools) {
		symbol_claim(p, arena_printf(p->arena, "%s_pool", name), proc->loc);
		symbol_claim(p, arena_printf(p->arena, "run_%s", name), proc->loc);
	}
	if (!proc->ast.own_stub)
		symbol_claim(p, arena_printf(p->arena, "%s_reply", name), proc->loc);
	if (proc->ast.multi) {
		symbol_claim(p, arena_printf(p->arena, "multi_%s", name), proc->loc);
		symbol_claim(p, arena_printf(p->arena, "multi_%s_opt", name), proc->loc);
		if (p->options->pools) {
			symbol_claim(p, arena_printf(p->arena, "multi_%s_pool", name), proc->loc);
			symbol_claim(p, arena_printf(p->arena, "collect_%s", name), proc->loc);
		}
		symbol_claim(p, arena_printf(p->arena, "%s_reply_fn", name), proc->loc);
	}
	if (proc->ast.own_stub)
		symbol_claim(p, proc->ast.own_stub, second);
}

static void check_proc_names(struct parser *p, struct proc *proc, struct loc second)
{
	const struct xg_package *package = &p->package->ast;

	for (size_t i = 0; i < package->proc_count; i++) {
		const struct proc *other = (const struct proc *)package->procs[i];

		if (strcmp(other->ast.name, proc->ast.name) != 0)
			continue;
		diag_error(p->diag, proc->loc, "procedure '%s' is defined twice in package '%s'",
			   proc->ast.name, package->name);
		diag_note(p->diag, other->loc, "the first one is here");
		return;
	}
	claim_proc_names(p, proc, second);
}

/* [ "=" BOUND ]; without it, the next number in the file. */
static bool parse_opcode(struct parser *p, struct proc *proc)
{
	struct loc loc = proc->loc;
	int64_t value = p->next_opcode;
	const char *text;
	bool known;

	if (p->token.kind == '=') {
		parse_advance(p);
		loc = p->token.loc;
		if (!parse_bound(p, "opcode", &value, &text, &known))
			return false;
		if (known && (value < 0 || value > INT32_MAX)) {
			diag_error(p->diag, loc, "opcode %" PRId64 " is out of range: 0 to %d",
				   value, INT32_MAX);
			known = false;
		}
		if (p->package && p->package->sequential)
			diag_error(p->diag, loc,
				   "an explicit opcode in a package with "
				   "startingopcode");
		if (!known) {
			proc->ast.opcode = -1;
			return true;
		}
	} else if (p->package) {
		if (!p->package->ast.proc_count)
			p->package->sequential = true;
		p->next_opcode++;
	}
	proc->ast.opcode = (int32_t)value;
	if (!p->package)
		return true;
	for (size_t i = 0; i < p->package->ast.proc_count; i++) {
		const struct proc *other = (const struct proc *)p->package->ast.procs[i];

		if (other->ast.opcode != value)
			continue;
		diag_error(p->diag, loc, "opcode %" PRId64 " is already that of '%s'", value,
			   other->ast.name);
		diag_note(p->diag, other->loc, "that procedure is here");
		break;
	}
	return true;
}

static void add_to_package(struct parser *p, struct proc *proc)
{
	struct package *package = p->package;

	if (package->ast.proc_count == PROCEDURES_MAX)
		diag_error(p->diag, proc->loc, "more than %d procedures in package '%s'",
			   PROCEDURES_MAX, package->ast.name);
	if (package->ast.proc_count >= PROCEDURES_MAX)
		return;
	proc->ast.package = &package->ast;
	proc->ast.index = (unsigned)package->ast.proc_count;
	package->ast.procs = arena_grow(p->arena, package->ast.procs, package->ast.proc_count,
					&package->room, sizeof(package->ast.procs[0]));
	package->ast.procs[package->ast.proc_count++] = &proc->ast;
}

/* Words that begin a description for another compiler. */
static void hint_at_language(struct parser *p, const struct proc *proc)
{
	static const char *const rpcgen[] = {"program", "version", NULL};
	static const char *const proto[] = {"service", "message", "rpc", "syntax", "import", NULL};
	static const struct {
		const char *const *words;
		const char *what;
	} languages[] = {{rpcgen, "a program of rpcgen (ONC RPC)"},
			 {proto, "a file of protoc (gRPC)"}};

	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		for (const char *const *word = languages[i].words; *word; word++)
			if (!strcmp(proc->ast.name, *word))
				diag_note(p->diag, proc->loc,
					  "this looks like %s: in .xg, procedures follow a line "
					  "'package NAME_', see rxwgen(1)",
					  languages[i].what);
}

bool parse_proc(struct parser *p)
{
	const char *doc = p->token.before;
	struct proc *proc = arena_alloc(p->arena, sizeof(*proc));
	struct loc second = {0};
	struct name *name;

	if (p->token.kind == TOKEN_PROC)
		parse_advance(p);
	proc->loc = p->token.loc;
	proc->ast.place = source_place(proc->loc);
	proc->ast.name = "";
	if (p->token.kind != '(') {
		name = parse_name(p, "a procedure");
		if (!name)
			return false;
		proc->ast.name = name->text;
		symbol_field(p, name, proc->loc);
		parse_advance(p);
	}
	if (p->token.kind == TOKEN_NAME) {
		second = p->token.loc;
		name = parse_name(p, "a stub");
		proc->ast.own_stub = name->text;
		parse_advance(p);
	}
	if (!parse_expect(p, '(', "after the name of a procedure")) {
		hint_at_language(p, proc);
		return false;
	}
	if (!p->package)
		diag_error(p->diag, proc->loc, "procedure '%s' before any package", proc->ast.name);
	proc->ast.prefix = p->prefix;
	proc->ast.start = p->start_word;
	proc->ast.end = p->end_word;
	if (!parse_params(p, proc))
		return false;
	proc->ast.split = p->token.kind == TOKEN_SPLIT;
	proc->ast.multi = p->token.kind == TOKEN_MULTI;
	if (proc->ast.split || proc->ast.multi)
		parse_advance(p);
	if (!parse_opcode(p, proc))
		return false;
	if (p->token.kind != ';')
		return parse_expect(p, ';', "after procedure");
	if (!p->package) {
		parse_advance(p);
		return true;
	}
	check_proc_names(p, proc, second);
	add_to_package(p, proc);
	parse_done(p, (struct xg_item){.kind = XG_ITEM_PROC, .proc = &proc->ast}, &doc);
	proc->ast.doc = doc;
	return true;
}

/* Compute the range of opcodes when all procedures are known. */
static void compute_opcode_range(struct xg_package *package)
{
	int64_t low = INT64_MAX, high = 0;

	for (size_t i = 0; i < package->proc_count; i++) {
		int64_t opcode = package->procs[i]->opcode;

		low = opcode < low ? opcode : low;
		high = opcode > high ? opcode : high;
	}
	if (!package->proc_count)
		low = 0;
	package->lowest = (int32_t)low;
	package->highest = (int32_t)high;
	package->dense = (size_t)(high - low) + 1 == package->proc_count;
}

void parse_finish_packages(struct parser *p, struct xg_file *file)
{
	file->packages = arena_alloc(p->arena, (p->package_count + 1) * sizeof(file->packages[0]));
	for (size_t i = 0; i < p->package_count; i++) {
		compute_opcode_range(&p->packages[i]->ast);
		if (!p->packages[i]->included)
			file->packages[file->package_count++] = &p->packages[i]->ast;
	}
	for (size_t i = 0; i < p->in_param_count; i++) {
		const struct in_param *param = &p->in_params[i];

		if (!param->type->unbounded)
			continue;
		report_unbounded_param(p, param->loc, param->name);
		diag_note(p->diag, param->type->unbounded_loc, "the unbounded '%s' is here",
			  param->type->unbounded_name);
	}
}
