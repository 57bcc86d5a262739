/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a transaction. A row that no clone shows is replaced; else a new row is made in the epoch
 * of the volume, so that clones keep the old one.
 */
#include "store/workwrite.h"

#include <errno.h>
#include <stdatomic.h>

/* -- what rows refer to -- */

struct mentions {
	const struct version *old;
	uint32_t epoch; /* of the row that is not counted */
	uint64_t small; /* 0: somebody else refers to it */
	uint64_t object[STORE_EXTENTS_MAX + 1];
	uint32_t objects;
};

static void add_object(struct mentions *mentions, uint64_t object)
{
	for (uint32_t i = mentions->objects; i--;)
		if (mentions->object[i] == object)
			return;
	mentions->object[mentions->objects++] = object;
}

static void list_mentions(struct mentions *mentions, const struct version *old)
{
	mentions->small = old->v.small;
	mentions->objects = 0;
	for (uint32_t i = 0; i < old->content.count; i++)
		add_object(mentions, old->content.extent[i].object);
	/* A truncated file may go on in an object of which it shows nothing any more. */
	if (old->content.tail_object)
		add_object(mentions, old->content.tail_object);
}

static bool refers(const struct version *version, uint64_t object)
{
	return version->content.tail_object == object ||
	       store_content_has(&version->content, object);
}

static void subtract(struct mentions *mentions, const struct version *other)
{
	uint32_t left = 0;

	if (other->v.small == mentions->small)
		mentions->small = 0;
	for (uint32_t i = 0; i < mentions->objects; i++)
		if (!refers(other, mentions->object[i]))
			mentions->object[left++] = mentions->object[i];
	mentions->objects = left;
}

static int subtract_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct mentions *mentions = arg;

	if (key->epoch != mentions->epoch)
		subtract(mentions, version);
	return 0;
}

static int kill_object(struct work *work, uint64_t id)
{
	struct db_object object;
	int result = db_object_get(work->base.db, id, &object);

	/* It was made in this transaction, and will be written as one without use. */
	if (result == -ENOENT)
		return 0;
	if (result)
		return result;
	object.dead = true;
	work_object_dead(work, &object);
	return db_object_put(work->base.db, &object);
}

int workwrite_release(struct work *work, const struct vnode_key *key, const struct version *old,
		      const struct version *now, bool others)
{
	struct mentions mentions = {.old = old, .epoch = key->epoch};
	unsigned damaged = 0;
	int result = 0;

	list_mentions(&mentions, old);
	if (now)
		subtract(&mentions, now);
	if (!mentions.small && !mentions.objects)
		return 0;
	if (others)
		result = db_vnode_rows(work->base.db, key->group, key->vnode, &damaged,
				       subtract_row, &mentions);
	/* The references of a damaged row are not known. */
	if (result || damaged)
		return result;
	if (mentions.small)
		result = db_small_delete(work->base.db, mentions.small);
	for (uint32_t i = 0; i < mentions.objects && !result; i++)
		result = kill_object(work, mentions.object[i]);
	return result;
}

/* -- vnodes -- */

static int count_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	(void)key;
	(void)version;
	++*(unsigned *)arg;
	return 0;
}

/* Whether the vnode has rows beside one. */
static int has_older(struct work *work, const struct vnode_key *key, const struct version *row,
		     bool *older)
{
	unsigned rows = 0, damaged = 0;
	int result = 0;

	if (row->v.flags & VNODE_OLDER)
		result = db_vnode_rows(work->base.db, key->group, key->vnode, &damaged, count_row,
				       &rows);
	*older = rows + damaged > 1;
	return result;
}

/* `tomb` is of the caller; what it becomes is the new base. */
static int write_tombstone(struct work *work, const struct vnode_key *key, bool insert,
			   struct version *tomb)
{
	tomb->epoch = key->epoch;
	tomb->v.flags = VNODE_OLDER;
	return insert ? db_vnode_insert(work->base.db, key, tomb)
		      : db_vnode_update(work->base.db, key, tomb);
}

static int write_removal(struct work *work, struct node *node, struct version **tomb)
{
	uint32_t shared = volrec_shared(&node->vol->rec);
	struct vnode_key key = {.group = node->vol->rec.group, .vnode = node->vnode};
	bool own, older = true;
	int result = 0;

	if (!node->base || !node->base->v.kind)
		return 0;
	own = node->base->epoch > shared;
	key.epoch = own ? node->base->epoch : node->vol->rec.epoch;
	if (own)
		result = has_older(work, &key, node->base, &older);
	if (!result && own)
		result = workwrite_release(work, &key, node->base, NULL, older);
	if (!result && node->base->v.kind == STORE_DIR) {
		struct vnode_key above = {key.group, key.vnode, shared};

		result = db_pages_delete(work->base.db, &above);
	}
	if (result)
		return result;
	if (!older)
		return db_vnode_delete(work->base.db, &key);
	*tomb = version_new();
	return *tomb ? write_tombstone(work, &key, !own, *tomb) : -ENOMEM;
}

static int write_pages(struct work *work, const struct node *node, const struct vnode_key *key)
{
	const struct store_pages *pages = atomic_load(&node->now->pages);
	int result = 0;

	for (unsigned i = 0; i < store_pages_count(pages) && !result; i++)
		if (store_pages_changed(pages, i))
			result = db_page_put(work->base.db, key, volrec_shared(&node->vol->rec), i,
					     store_pages_page(pages, i));
	return result;
}

/* The parts of a version that have rows of their own. */
static int write_parts(struct work *work, const struct node *node, const struct vnode_key *key)
{
	const struct version *base = node->base, *now = node->now;
	struct db_small small = {.id = now->v.small, .group = key->group, .vnode = key->vnode};
	int result = 0;

	if (now->v.small && (!base || now->v.small != base->v.small))
		result = db_small_put(work->base.db, &small, atomic_load(&now->blob));
	/* A directory in place of another one, which had more pages. */
	if (!result && now->v.kind == STORE_DIR && base && base->v.unique != now->v.unique) {
		struct vnode_key above = {key->group, key->vnode, volrec_shared(&node->vol->rec)};

		result = db_pages_delete(work->base.db, &above);
	}
	if (!result && node->pages_forked && now->v.kind == STORE_DIR)
		result = write_pages(work, node, key);
	return result;
}

static int write_version(struct work *work, struct node *node)
{
	struct version *base = node->base, *now = node->now;
	bool own = base && base->epoch > volrec_shared(&node->vol->rec);
	struct vnode_key key = {.group = node->vol->rec.group,
				.vnode = node->vnode,
				.epoch = own ? base->epoch : node->vol->rec.epoch};
	int result;

	now->epoch = key.epoch;
	now->v.flags = (uint8_t)(own ? base->v.flags : base ? VNODE_OLDER : 0);
	result = own ? db_vnode_update(work->base.db, &key, now)
		     : db_vnode_insert(work->base.db, &key, now);
	if (!result)
		result = write_parts(work, node, &key);
	if (!result && own && base->v.kind)
		result = workwrite_release(work, &key, base, now, base->v.flags & VNODE_OLDER);
	return result;
}

int workwrite_node(struct work *work, struct node *node)
{
	struct version *tomb = NULL, *next;
	int result = node->now ? write_version(work, node) : write_removal(work, node, &tomb);

	if (result) {
		version_unref(tomb);
		return result;
	}
	next = node->now ? node->now : tomb;
	if (next || (node->base && node->base->v.kind)) {
		if (next != node->base)
			version_unref(node->base);
		node->base = next;
	}
	node->changed = node->pages_forked = false;
	node->publish = true;
	return 0;
}

int workwrite_volume(struct work *work, struct workvol *volume)
{
	int result;

	if (volume->gone)
		result = db_volume_delete(work->base.db, volume->rec.id);
	else if (volume->named)
		result = db_volume_put(work->base.db, &volume->rec);
	else
		result = db_volume_update(work->base.db, &volume->rec);
	if (result)
		return result;
	volume->changed = volume->named = false;
	volume->publish = true;
	return 0;
}

int workwrite_objects(struct work *work)
{
	int result = 0;

	while (work->made_written < work->made.count && !result) {
		struct db_object *object = &work->made.item[work->made_written++];
		const struct node *node = work_find(work, object->owner.group, object->owner.vnode);

		/* A later operation of the transaction may have replaced it. */
		object->dead = !node || !node->now || !refers(node->now, object->id);
		result = db_object_put(work->base.db, object);
		if (object->dead)
			work_object_dead(work, object);
	}
	return result;
}
