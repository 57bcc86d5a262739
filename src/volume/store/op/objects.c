/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects by their numbers: one, or all of some kinds that a volume shows. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "volume/store/txn/core.h"
#include "volume/store/txn/lookup.h"

#define STEP_ROWS \
	4096 /* that one statement reads, and a few more: those of one vnode stay together */
#define STEP_FOUND  256 /* versions that are kept until it has ended */
#define VNODE_FIRST 1

static struct store_object describe_object(const struct view *view, uint32_t vnode,
					   const struct version *version)
{
	const struct vnode *v = &version->v;

	return (struct store_object){
		.fid = {view->volume, vnode, v->unique},
		.kind = v->kind,
		.mode = v->mode,
		.parent = {view->volume, v->parent, v->parent_unique},
		.text = version->text,
	};
}

/* Off-line volumes as well. */
static int find_object_view(struct core *core, uint32_t volume, struct view *view)
{
	int result = volumes_view(&core->volumes, volume, view);

	return result == STORE_VOFFLINE ? 0 : result;
}

int store_object(struct store *store, uint32_t volume, uint32_t vnode, struct store_object *object)
{
	struct version *version;
	struct view view;
	int result = find_object_view(core_of(store), volume, &view);

	if (!result)
		result = lookup_version(core_of(store), &view, vnode, &version);
	if (result)
		return result;
	*object = describe_object(&view, vnode, version);
	object->text = NULL;
	version_unref(version);
	return 0;
}

/* -- all of them, in steps: no statement and no connection stays in use while others are called -- */

struct object_scan {
	const struct store_object_scan *scan;
	struct view view;
	struct vnode_key next; /* the next step begins with all rows of this vnode */
	unsigned rows, count;
	bool full;
	struct {
		uint32_t vnode;
		struct version *version;
	} found[STEP_FOUND];
};

/* Rows of a vnode come from the oldest to the newest: the last one that the view shows counts. */
static int take_object_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct object_scan *s = arg;
	bool again = s->count && s->found[s->count - 1].vnode == key->vnode;

	s->rows++;
	assert(s->count <= STEP_FOUND);
	if (key->vnode != s->next.vnode && (s->rows > STEP_ROWS || s->count == STEP_FOUND)) {
		s->next.vnode = key->vnode;
		s->full = true;
		return 1;
	}
	s->next.vnode = key->vnode;
	if (key->epoch > s->view.epoch)
		return 0;
	if (again)
		version_unref(s->found[--s->count].version);
	if (!version || !(s->scan->kinds & 1u << version->v.kind) || !version->v.kind)
		return 0;
	assert(s->count < STEP_FOUND);
	s->found[s->count].vnode = key->vnode;
	s->found[s->count++].version = version_ref((struct version *)(uintptr_t)version);
	return 0;
}

static int read_object_rows(struct core *core, struct object_scan *s)
{
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	/* Versions of the step before are given back. */
	assert(!s->count);
	s->rows = s->count = 0;
	s->full = false;
	result = db_group_rows(db, &s->next, take_object_row, s);
	readers_put(core->readers, db);
	return s->full ? 0 : result;
}

/* Tell of what a step has found. Nonzero stops. */
static int tell_objects(struct object_scan *s)
{
	int result = 0;

	for (unsigned i = 0; i < s->count; i++) {
		struct store_object object =
			describe_object(&s->view, s->found[i].vnode, s->found[i].version);

		if (!result)
			result = s->scan->each(s->scan->arg, &object);
		version_unref(s->found[i].version);
	}
	s->count = 0;
	return result;
}

/* A clone that was replaced meanwhile has lost rows. */
static int check_object_view(struct core *core, const struct object_scan *s)
{
	struct view now;
	int result = find_object_view(core, s->view.volume, &now);

	return result ? result : now.epoch == s->view.epoch ? 0 : STORE_VBUSY;
}

int store_objects(struct store *store, uint32_t volume, const struct store_object_scan *scan)
{
	struct core *core = core_of(store);
	struct object_scan *s = calloc(1, sizeof(*s));
	int result = s ? find_object_view(core, volume, &s->view) : -ENOMEM;

	if (result)
		goto out;
	s->scan = scan;
	s->next = (struct vnode_key){.group = s->view.group, .vnode = VNODE_FIRST};
	do {
		int told;

		result = scan->stopped && scan->stopped(scan->arg) ? -EINTR
								   : read_object_rows(core, s);
		if (!result)
			result = check_object_view(core, s);
		told = tell_objects(s);
		result = result ? result : told;
	} while (!result && s->full);
out:
	free(s);
	return result;
}
