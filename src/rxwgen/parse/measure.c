/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that need complete types: their sizes on the wire, and in memory on a 64-bit machine; and,
 * on the complete file, undefined types, recursive types, lists, and unbounded arrays that are
 * reached through a pointer.
 */
#include "rxwgen/parse/parse.h"

#include <assert.h>

struct size {
	uint64_t wire_min, wire_size; /* wire_size 0: variable */
	uint64_t c_size, align;
	bool owns;
};

static struct size make_fixed_size(uint64_t wire, uint64_t c, uint64_t align)
{
	return (struct size){wire, wire, c, align, false};
}

static struct size measure_element(const struct xg_decl *d)
{
	const struct type *type;

	switch (d->kind) {
	case XG_INT:
	case XG_UINT:
	case XG_FLOAT:
		return make_fixed_size(4, 4, 4);
	case XG_SHORT:
	case XG_USHORT:
		return make_fixed_size(4, 2, 2);
	case XG_CHAR:
	case XG_UCHAR:
	case XG_BOOL:
		return make_fixed_size(4, 1, 1);
	case XG_INT64:
	case XG_UINT64:
	case XG_DOUBLE:
		return make_fixed_size(8, 8, 8);
	case XG_UUID:
		return make_fixed_size(44, 16, 4);
	case XG_OPAQUE:
	case XG_STRING:
		return make_fixed_size(1, 1, 1);
	case XG_VOID:
		return make_fixed_size(0, 0, 1);
	default:
		type = (const struct type *)d->type;
		/* A type with an error has no size. */
		if (!type->align)
			return make_fixed_size(4, 4, 4);
		return (struct size){type->ast.wire_min, type->ast.wire_size, type->ast.c_size,
				     type->align, type->ast.owns};
	}
}

static struct size measure_value(const struct xg_decl *d)
{
	struct size s;

	if (d->shape == XG_POINTER)
		return (struct size){4, 0, 8, 8, true};
	if (d->shape == XG_COUNTED)
		return (struct size){4, 0, d->kind == XG_STRING ? 8 : 16, 8, true};
	s = measure_element(d);
	if (d->shape == XG_FIXED && d->kind == XG_OPAQUE) {
		s.wire_min = s.wire_size = (d->bound + 3ull) / 4 * 4;
		s.c_size = d->bound;
	} else if (d->shape == XG_FIXED) {
		s.wire_min *= d->bound;
		s.wire_size *= d->bound;
		s.c_size *= d->bound;
	}
	return s;
}

void measure_decl(struct parser *p, struct declared *d, enum decl_of of)
{
	struct xg_decl *ast = &d->ast;
	struct size element = {0}, s;
	uint64_t most;

	if (ast->shape == XG_FIXED || ast->shape == XG_COUNTED) {
		element = measure_element(ast);
		most = ast->kind == XG_STRING ? BOUND_MAX - 1 : BOUND_MAX / element.c_size;
		if (ast->shape == XG_FIXED && ast->bound > most) {
			diag_error(p->diag, d->loc, "array '%s' is larger than 2^31 - 1 bytes",
				   ast->name);
			ast->bound = 1;
		}
		/* An array that does not fit into memory needs no error: decoding it fails. */
		if (ast->bound > most)
			ast->bound = (uint32_t)most;
	}
	s = measure_value(ast);
	/* The star of a parameter has no effect on the wire. */
	if (of == DECL_PARAM && ast->shape == XG_POINTER)
		s = measure_element(ast);
	ast->wire_min = s.wire_min;
	ast->wire_size = s.wire_size;
	ast->c_size = s.c_size;
	ast->owns = s.owns;
}

static unsigned get_nesting(const struct xg_decl *d)
{
	if (d->kind != XG_NAMED || d->shape == XG_POINTER)
		return 0;
	return ((const struct type *)d->type)->nesting;
}

static uint64_t round_up_to(uint64_t n, uint64_t to)
{
	assert(to > 0);
	return (n + to - 1) / to * to;
}

/* Add a member after the previous ones. */
static void measure_member(struct type *type, const struct xg_decl *d, bool *same_size)
{
	struct xg_type *ast = &type->ast;
	struct size s = measure_value(d);

	assert(s.align > 0);
	ast->c_size = round_up_to(ast->c_size, s.align) + s.c_size;
	ast->wire_min += s.wire_min;
	*same_size &= s.wire_min == s.wire_size;
	ast->owns |= s.owns;
	if (s.align > type->align)
		type->align = s.align;
	if (get_nesting(d) > type->nesting)
		type->nesting = get_nesting(d);
}

static void measure_union(struct type *type, bool *same_size)
{
	struct xg_type *ast = &type->ast;
	uint64_t least = UINT64_MAX, most = 0, c_size = 0, align = 4, start;

	*same_size = true;
	for (size_t i = 0; i < ast->arm_count; i++) {
		const struct xg_decl *d = &ast->arms[i].decl;
		struct size s = measure_value(d);

		least = s.wire_min < least ? s.wire_min : least;
		most = s.wire_min > most ? s.wire_min : most;
		*same_size &= s.wire_min == s.wire_size;
		c_size = s.c_size > c_size ? s.c_size : c_size;
		align = s.align > align ? s.align : align;
		ast->owns |= s.owns;
		if (get_nesting(d) > type->nesting)
			type->nesting = get_nesting(d);
	}
	*same_size &= least == most;
	start = ast->discriminant.kind == XG_BOOL ? 1 : 4;
	ast->wire_min = 4 + (ast->arm_count ? least : 0);
	ast->c_size = round_up_to(start, align) + round_up_to(c_size, align);
	type->align = align;
}

void measure_type(struct parser *p, struct type *type, struct loc loc)
{
	struct xg_type *ast = &type->ast;
	bool same_size = true;

	type->align = 1;
	switch (ast->what) {
	case XG_ENUM:
		ast->wire_min = ast->c_size = type->align = 4;
		break;
	case XG_UNION:
		measure_union(type, &same_size);
		break;
	case XG_TYPEDEF:
		measure_member(type, &ast->alias, &same_size);
		break;
	case XG_STRUCT:
		for (size_t i = 0; i < ast->member_count; i++)
			measure_member(type, &ast->members[i], &same_size);
		break;
	}
	/* A type without members, which was reported, must not have the size 0. */
	if (!ast->c_size)
		ast->wire_min = ast->c_size = type->align = 4;
	ast->c_size = round_up_to(ast->c_size, type->align);
	ast->wire_size = same_size ? ast->wire_min : 0;
	/* The coder of the application may allocate memory. */
	ast->owns |= ast->customized;
	type->nesting++;
	if (ast->c_size > BOUND_MAX) {
		diag_error(p->diag, loc, "'%s' is larger than 2^31 - 1 bytes", ast->name);
		ast->c_size = type->align;
		ast->wire_min = ast->wire_size = 4;
	}
	if (type->nesting > NESTING_MAX) {
		diag_error(p->diag, loc, "types of '%s' are nested more than %d deep", ast->name,
			   NESTING_MAX);
		type->nesting = 1;
	}
}

/* -- the complete file ------------------------------------------------------------------------- */

/* The declaration of this number in a type, or NULL after the last one. */
static const struct xg_decl *get_type_decl(const struct type *type, size_t number)
{
	const struct xg_type *ast = &type->ast;

	switch (ast->what) {
	case XG_STRUCT:
		return number < ast->member_count ? &ast->members[number] : NULL;
	case XG_UNION:
		return number < ast->arm_count ? &ast->arms[number].decl : NULL;
	case XG_TYPEDEF:
		return number ? NULL : &ast->alias;
	default:
		return NULL;
	}
}

/* The type at the end of a chain of plain typedefs. */
static const struct xg_type *resolve_typedefs(const struct xg_type *type)
{
	while (type && type->what == XG_TYPEDEF && type->alias.kind == XG_NAMED &&
	       type->alias.shape == XG_ONE)
		type = type->alias.type;
	return type;
}

static bool is_list_type(const struct xg_type *type)
{
	const struct xg_decl *last;
	const struct xg_type *alias;

	if (type->what != XG_STRUCT || !type->member_count)
		return false;
	last = &type->members[type->member_count - 1];
	if (last->kind == XG_NAMED && last->shape == XG_ONE) {
		alias = resolve_typedefs(last->type);
		if (!alias || alias->what != XG_TYPEDEF)
			return false;
		last = &alias->alias;
	}
	return last->kind == XG_NAMED && last->shape == XG_POINTER &&
	       resolve_typedefs(last->type) == type;
}

/*
 * Tarjan's algorithm for strongly connected components, without recursion, whose depth the input
 * would determine. A component is complete after all components that it reaches.
 */
struct walk {
	struct type **path; /* types on the current path */
	size_t *next;	    /* number of the next declaration of each */
	size_t depth;
	struct type **stack; /* visited types whose component is incomplete */
	size_t count;
	size_t number;
};

/* The successor by a declaration. A list's pointer to its next element is not an edge. */
static struct type *find_edge_target(const struct type *type, size_t number,
				     const struct xg_decl *d)
{
	if (d->kind != XG_NAMED || (type->ast.list && number + 1 == type->ast.member_count))
		return NULL;
	return (struct type *)d->type;
}

static void copy_unbounded_mark(struct type *type, const struct type *from)
{
	if (type->unbounded || !from->unbounded)
		return;
	type->unbounded = true;
	type->unbounded_loc = from->unbounded_loc;
	type->unbounded_name = from->unbounded_name;
}

static void enter_type(struct walk *w, struct type *type)
{
	assert(!type->number);
	type->number = type->low = ++w->number;
	type->on_stack = true;
	w->stack[w->count++] = type;
	w->path[w->depth] = type;
	w->next[w->depth++] = 0;
}

static void leave_type(struct walk *w, struct type *type)
{
	size_t from = w->count;
	bool itself = false;

	assert(w->depth > 0 && w->path[w->depth - 1] == type && from > 0);
	w->depth--;
	if (w->depth) {
		struct type *before = w->path[w->depth - 1];

		if (type->low < before->low)
			before->low = type->low;
	}
	if (type->low != type->number) {
		if (w->depth)
			copy_unbounded_mark(w->path[w->depth - 1], type);
		return;
	}
	while (w->stack[--from] != type)
		;
	if (w->count - from == 1) {
		const struct xg_decl *d;

		for (size_t i = 0; (d = get_type_decl(type, i)); i++)
			itself |= find_edge_target(type, i, d) == type;
	}
	for (size_t i = from; i < w->count; i++) {
		copy_unbounded_mark(type, w->stack[i]);
		w->stack[i]->ast.recursive = w->count - from > 1 || itself;
		w->stack[i]->on_stack = false;
	}
	for (size_t i = from; i < w->count; i++)
		copy_unbounded_mark(w->stack[i], type);
	w->count = from;
	if (w->depth)
		copy_unbounded_mark(w->path[w->depth - 1], type);
}

static void walk_from_type(struct walk *w, struct type *root)
{
	enter_type(w, root);
	while (w->depth) {
		struct type *type = w->path[w->depth - 1], *to;
		size_t number = w->next[w->depth - 1]++;
		const struct xg_decl *d = get_type_decl(type, number);

		if (!d) {
			leave_type(w, type);
			continue;
		}
		to = find_edge_target(type, number, d);
		if (!to)
			continue;
		if (!to->number) {
			enter_type(w, to);
		} else {
			if (to->on_stack && to->number < type->low)
				type->low = to->number;
			copy_unbounded_mark(type, to);
		}
	}
}

void measure_file(struct parser *p)
{
	size_t count = p->type_count + 1;
	struct walk w = {
		.path = arena_alloc(p->arena, count * sizeof(w.path[0])),
		.next = arena_alloc(p->arena, count * sizeof(w.next[0])),
		.stack = arena_alloc(p->arena, count * sizeof(w.stack[0])),
	};

	for (size_t i = 0; i < p->type_count; i++) {
		struct type *type = p->types[i];

		if (!type->defined && !type->broken)
			diag_error(p->diag, type->loc, "unknown type '%s'", type->ast.name);
		type->ast.list = is_list_type(&type->ast);
	}
	for (size_t i = 0; i < p->type_count; i++)
		if (!p->types[i]->number)
			walk_from_type(&w, p->types[i]);
}
