/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks on the complete file: undefined types, recursive types, lists, and types that reach an
 * unbounded array through a pointer.
 */
#include "rxwgen/parse/parse.h"

#include <assert.h>

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

void graph_finish(struct parser *p)
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
