/* SPDX-License-Identifier: BSD-2-Clause */
/* Wire representation of values: typedefs are resolved, members of fixed size grouped into runs. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

#define BLOCK	1024 /* RXW_XDR_BLOCK of the runtime */
#define INLINED 8    /* values of a nested struct that is coded inline, at most */

static bool is_scalar_kind(enum xg_kind kind)
{
	return kind <= XG_UINT64;
}

static struct emit_view make_type_view(const struct xg_type *type, const struct xg_decl *decl)
{
	struct emit_view view = {.form = EMIT_CALL, .type = type, .decl = decl};

	if (type->what == XG_ENUM) {
		view.form = EMIT_SCALAR;
		view.kind = XG_INT;
	} else if (type->what == XG_TYPEDEF) {
		struct emit_view alias = emit_view(&type->alias);

		if (alias.form != EMIT_POINTER && alias.form != EMIT_COUNTED &&
		    (alias.form != EMIT_ARRAY || emit_element_view(alias.decl).form == EMIT_SCALAR))
			view = alias;
	}
	return view;
}

static struct emit_view make_value_view(const struct xg_decl *decl)
{
	struct emit_view view = {.form = EMIT_VOID, .kind = decl->kind, .decl = decl};

	if (decl->kind == XG_NAMED)
		return make_type_view(decl->type, decl);
	if (decl->kind == XG_UUID)
		view.form = EMIT_UUID;
	else if (decl->kind == XG_FLOAT || decl->kind == XG_DOUBLE)
		view.form = EMIT_FLOATING;
	else if (is_scalar_kind(decl->kind))
		view.form = EMIT_SCALAR;
	return view;
}

struct emit_view emit_view(const struct xg_decl *decl)
{
	struct emit_view view = {.kind = decl->kind, .decl = decl};

	if (decl->shape == XG_ONE)
		return make_value_view(decl);
	if (decl->shape == XG_POINTER)
		view.form = EMIT_POINTER;
	else if (decl->kind == XG_STRING)
		view.form = EMIT_STRING;
	else if (decl->kind == XG_OPAQUE)
		view.form = decl->shape == XG_FIXED ? EMIT_OPAQUE : EMIT_BYTES;
	else
		view.form = decl->shape == XG_FIXED ? EMIT_ARRAY : EMIT_COUNTED;
	return view;
}

/* Bytes and arrays in an array are coded by a call, which avoids nested loops. */
struct emit_view emit_element_view(const struct xg_decl *decl)
{
	struct emit_view view = make_value_view(decl);

	assert(decl->shape != XG_ONE);
	if (view.form == EMIT_ARRAY || view.form == EMIT_BYTES)
		return (struct emit_view){.form = EMIT_CALL, .type = decl->type, .decl = decl};
	return view;
}

struct emit_view emit_param_view(const struct xg_param *param)
{
	return param->decl.shape == XG_POINTER ? make_value_view(&param->decl)
					       : emit_view(&param->decl);
}

bool emit_view_owns(const struct emit_view *view)
{
	struct emit_view element;

	switch (view->form) {
	case EMIT_STRING:
	case EMIT_BYTES:
	case EMIT_COUNTED:
	case EMIT_POINTER:
		return true;
	case EMIT_ARRAY:
		element = emit_element_view(view->decl);
		return emit_view_owns(&element);
	case EMIT_CALL:
		return view->type->owns || view->type->customized;
	default:
		return false;
	}
}

bool emit_aggregate(const struct emit_view *view)
{
	return view->form != EMIT_SCALAR && view->form != EMIT_FLOATING &&
	       view->form != EMIT_STRING;
}

unsigned emit_scalar_size(enum xg_kind kind)
{
	assert(kind <= XG_DOUBLE);
	return kind == XG_INT64 || kind == XG_UINT64 || kind == XG_DOUBLE ? 8 : 4;
}

uint64_t emit_element_min(const struct xg_decl *decl)
{
	if (decl->kind == XG_NAMED)
		return decl->type->wire_min;
	return decl->kind == XG_UUID ? 44 : emit_scalar_size(decl->kind);
}

const char *emit_bound(struct emit *e, const struct xg_decl *decl)
{
	return decl->bound_text ? decl->bound_text : emit_format(e, "%u", (unsigned)decl->bound);
}

const char *emit_loop(const struct emit *e)
{
	return e->index ? e->index : "i";
}

const char *emit_address(struct emit *e, const char *value)
{
	return *value == '*' ? value + 1 : emit_format(e, "&%s", value);
}

const char *emit_member(struct emit *e, const char *value, const char *name)
{
	if (*value == '*')
		return emit_format(e, "%s->%s", value + 1, name);
	return emit_format(e, "%s.%s", value, name);
}

const char *emit_index(struct emit *e, const char *value, const char *index)
{
	return emit_format(e, *value == '*' ? "(%s)[%s]" : "%s[%s]", value, index);
}

/* -- words ------------------------------------------------------------------------------------- */

static uint64_t count_type_words(const struct xg_type *type);

uint64_t emit_element_words(const struct xg_decl *decl)
{
	if (decl->kind == XG_NAMED)
		return count_type_words(decl->type);
	return decl->kind == XG_INT || decl->kind == XG_UINT;
}

static uint64_t count_decl_words(const struct xg_decl *decl)
{
	if (decl->shape == XG_ONE)
		return emit_element_words(decl);
	return decl->shape == XG_FIXED ? decl->bound * emit_element_words(decl) : 0;
}

static uint64_t count_type_words(const struct xg_type *type)
{
	uint64_t words = 0;

	if (type->what == XG_ENUM)
		return 1;
	if (type->what == XG_TYPEDEF)
		return count_decl_words(&type->alias);
	if (type->what != XG_STRUCT || type->customized || !type->wire_size)
		return 0;
	for (size_t i = 0; i < type->member_count; i++) {
		uint64_t more = count_decl_words(&type->members[i]);

		if (!more)
			return 0;
		words += more;
	}
	return words;
}

bool emit_is_call(const struct emit_view *view)
{
	if (view->form == EMIT_ARRAY)
		return emit_element_words(view->decl) != 0;
	return view->form != EMIT_COUNTED && view->form != EMIT_POINTER;
}

const char *emit_words(struct emit *e, const struct xg_decl *decl, const char *count)
{
	uint64_t words = emit_element_words(decl);

	assert(words > 0);
	if (words == 1)
		return count;
	return emit_format(e, strchr(count, ' ') ? "%llu * (%s)" : "%llu * %s",
			   (unsigned long long)words, count);
}

/* -- runs -------------------------------------------------------------------------------------- */

static void add_run_leaf(struct emit_run *run, const struct emit_view *view, const char *value,
			 unsigned size)
{
	assert(run->count <= run->room);
	if (run->count == run->room) {
		size_t room = 2 * run->room + 8;
		struct emit_leaf *more = realloc(run->leaves, room * sizeof(*more));

		if (!more) {
			run->e->failed = true;
			return;
		}
		run->leaves = more;
		run->room = room;
	}
	run->leaves[run->count++] =
		(struct emit_leaf){.view = *view, .value = value, .offset = run->size};
	run->size += size;
}

static bool flatten_value(struct emit_run *run, const struct xg_decl *decl, const char *value,
			  unsigned limit);

static bool flatten_struct_members(struct emit_run *run, const struct xg_type *type,
				   const char *value, unsigned limit)
{
	if (type->what != XG_STRUCT || type->customized || type->list || !type->wire_size ||
	    type->wire_size > BLOCK || type->member_count > limit)
		return false;
	for (size_t i = 0; i < type->member_count; i++) {
		const struct xg_decl *decl = &type->members[i];

		if (!flatten_value(run, decl,
				   emit_member(run->e, value, emit_member_name(run->e, decl->name)),
				   limit))
			return false;
	}
	return run->count <= limit;
}

/* Append the value to the run, if its size is fixed. After a failure the run is invalid. */
static bool flatten_value(struct emit_run *run, const struct xg_decl *decl, const char *value,
			  unsigned limit)
{
	struct emit_view view = emit_view(decl), element;
	uint64_t size;

	switch (view.form) {
	case EMIT_SCALAR:
		size = emit_scalar_size(view.kind);
		break;
	case EMIT_OPAQUE:
		size = ((uint64_t)view.decl->bound + 3) & ~(uint64_t)3;
		break;
	case EMIT_ARRAY:
		element = emit_element_view(view.decl);
		if (element.form != EMIT_SCALAR)
			return false;
		size = (uint64_t)view.decl->bound * emit_scalar_size(element.kind);
		break;
	case EMIT_CALL:
		return flatten_struct_members(run, view.type, value, limit);
	default:
		return false;
	}
	if (size > BLOCK || run->size + size > BLOCK)
		return false;
	add_run_leaf(run, &view, value, (unsigned)size);
	assert(run->size <= BLOCK || run->e->failed);
	return true;
}

static struct emit_step *add_plan_step(struct emit *e, struct emit_steps *plan)
{
	if (plan->count == plan->room) {
		size_t room = 2 * plan->room + 8;
		struct emit_step *more = realloc(plan->steps, room * sizeof(*more));

		if (!more) {
			e->failed = true;
			return NULL;
		}
		plan->steps = more;
		plan->room = room;
	}
	plan->steps[plan->count] = (struct emit_step){.run.e = e};
	return &plan->steps[plan->count++];
}

/* Append `from` to `to`. */
static void append_run_leaves(struct emit_run *to, const struct emit_run *from)
{
	unsigned base = to->size;

	for (size_t i = 0; i < from->count; i++) {
		to->size = base + from->leaves[i].offset;
		add_run_leaf(to, &from->leaves[i].view, from->leaves[i].value, 0);
	}
	to->size = base + from->size;
}

void emit_plan(struct emit *e, const struct xg_decl *members, size_t count, const char *value,
	       struct emit_steps *plan)
{
	struct emit_step *step = NULL;

	*plan = (struct emit_steps){0};
	for (size_t i = 0; i < count && !e->failed; i++) {
		struct emit_run part = {.e = e};
		const char *name = emit_member_name(e, members[i].name);
		const char *member = value ? emit_member(e, value, name) : "*v";

		if (flatten_value(&part, &members[i], member, INLINED)) {
			if (!step || !step->run.size || step->run.size + part.size > BLOCK)
				step = add_plan_step(e, plan);
			if (step)
				append_run_leaves(&step->run, &part);
		} else {
			step = add_plan_step(e, plan);
			if (step) {
				step->view = emit_view(&members[i]);
				step->value = member;
				step->decl = &members[i];
			}
		}
		free(part.leaves);
	}
	if (e->failed) /* a plan is complete or empty */
		emit_steps_free(plan);
}

void emit_steps_free(struct emit_steps *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		free(plan->steps[i].run.leaves);
	free(plan->steps);
	*plan = (struct emit_steps){0};
}

bool emit_single(const struct emit_run *run)
{
	return run->count == 1 && run->leaves[0].view.form == EMIT_SCALAR;
}

bool emit_takes(const struct emit_steps *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->steps[i].run.size && !emit_single(&plan->steps[i].run))
			return true;
	}
	return false;
}

const char *emit_place(struct emit *e, unsigned offset)
{
	return offset ? emit_format(e, "p + %u", offset) : "p";
}

const char *emit_case(struct emit *e, const struct xg_type *type, const struct xg_arm *arm)
{
	if (!arm->text)
		return "default";
	if (emit_view(&type->discriminant).kind == XG_BOOL)
		return emit_format(e, "case %d", arm->value != 0);
	return emit_format(e, "case %s", arm->text);
}

/* -- zero -------------------------------------------------------------------------------------- */

/* The form of the zero of a type. */
enum zero {
	ZERO_NUMBER,
	ZERO_FALSE,
	ZERO_NULL,
	ZERO_STRUCT,
	ZERO_ARRAY
};

static enum zero choose_zero_form(const struct emit_view *view)
{
	struct emit_view alias;

	switch (view->form) {
	case EMIT_SCALAR:
		return view->kind == XG_BOOL ? ZERO_FALSE : ZERO_NUMBER;
	case EMIT_FLOATING:
		return ZERO_NUMBER;
	case EMIT_STRING:
	case EMIT_POINTER:
		return ZERO_NULL;
	case EMIT_OPAQUE:
	case EMIT_ARRAY:
		return ZERO_ARRAY;
	case EMIT_CALL:
		if (view->type->what != XG_TYPEDEF)
			return ZERO_STRUCT;
		alias = emit_view(&view->type->alias);
		return choose_zero_form(&alias);
	default:
		return ZERO_STRUCT;
	}
}

void emit_zero(struct emit *e, const struct emit_view *view, const char *type, const char *value)
{
	switch (choose_zero_form(view)) {
	case ZERO_NUMBER:
		emit_line(e, "%s = 0;", value);
		break;
	case ZERO_FALSE:
		emit_line(e, "%s = false;", value);
		break;
	case ZERO_NULL:
		emit_line(e, "%s = NULL;", value);
		break;
	case ZERO_ARRAY:
		emit_line(e, "memset(%s, 0, sizeof(%s));", value, value);
		break;
	default:
		emit_line(e, "%s = (%s){0};", value, type);
		break;
	}
}

bool emit_is_array(const struct emit_view *view)
{
	return choose_zero_form(view) == ZERO_ARRAY;
}

const char *emit_initializer(const struct emit_view *view)
{
	static const char *const texts[] = {"0", "false", "NULL", "{0}", "{0}"};

	return texts[choose_zero_form(view)];
}
