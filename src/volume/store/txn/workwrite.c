/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a transaction. A row that no clone shows is replaced; else a new row is made in the epoch
 * of the volume, so that clones keep the old one.
 */
#include "volume/store/txn/workwrite.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KILLED_AT_ONCE 64 /* objects of a version, in the transaction that drops it */

/* -- references of rows -- */

/* References of an old version that the new one does not have. */
struct mentions {
	uint32_t epoch; /* of the row that is not counted */
	uint64_t small; /* 0: another version refers to it */
	struct mention {
		uint64_t object;
		bool used; /* by another version */
	} *item; /* ascending */
	uint32_t count;
};

static int compare_mentions(const void *a, const void *b)
{
	uint64_t x = ((const struct mention *)a)->object, y = ((const struct mention *)b)->object;

	return x < y ? -1 : x > y;
}

static void sort_mentions(struct mentions *mentions)
{
	uint32_t kept = 0;

	if (!mentions->count)
		return;
	qsort(mentions->item, mentions->count, sizeof(*mentions->item), compare_mentions);
	for (uint32_t i = 1; i < mentions->count; i++)
		if (mentions->item[i].object != mentions->item[kept].object)
			mentions->item[++kept] = mentions->item[i];
	mentions->count = kept + 1;
}

/*
 * The objects of the extents that only the old list has. Returns how many extents; `item` may be
 * NULL.
 */
static uint32_t list_only_old(const struct store_content *old, const struct store_content *now,
			      struct mention *item)
{
	uint32_t at = 0, count = 0;

	for (uint32_t i = 0; i < old->count; i++) {
		const struct store_extent *extent = &old->extent[i];

		while (at < now->count && now->extent[at].start < extent->start)
			at++;
		if (at < now->count && !memcmp(extent, &now->extent[at], sizeof(*extent)))
			continue;
		if (item)
			item[count].object = extent->object;
		count++;
	}
	return count;
}

/* Extents that both versions have need no look. `now` may be NULL. */
static int list_mentions(struct mentions *mentions, const struct version *old,
			 const struct version *now)
{
	static const struct store_content nothing;
	const struct store_content *a = &old->content, *b = now ? &now->content : &nothing;

	mentions->small = old->v.small;
	mentions->count = list_only_old(a, b, NULL);
	mentions->item = calloc((size_t)mentions->count + 1, sizeof(*mentions->item));
	if (!mentions->item)
		return -ENOMEM;
	list_only_old(a, b, mentions->item);
	/* A truncated file may go on in an object of which it shows nothing any more. */
	if (a->tail_object)
		mentions->item[mentions->count++].object = a->tail_object;
	sort_mentions(mentions);
	return 0;
}

static bool refers_to_object(const struct version *version, uint64_t object)
{
	return version->content.tail_object == object ||
	       store_content_has(&version->content, object);
}

static void note_mention_use(struct mentions *mentions, uint64_t object)
{
	uint32_t low = 0, high = mentions->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (mentions->item[middle].object < object)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < mentions->count && mentions->item[low].object == object)
		mentions->item[low].used = true;
}

static void subtract_mentions(struct mentions *mentions, const struct version *other)
{
	uint32_t left = 0;

	if (other->v.small == mentions->small)
		mentions->small = 0;
	if (!mentions->count)
		return;
	note_mention_use(mentions, other->content.tail_object);
	for (uint32_t i = 0; i < other->content.count; i++)
		note_mention_use(mentions, other->content.extent[i].object);
	for (uint32_t i = 0; i < mentions->count; i++)
		if (!mentions->item[i].used)
			mentions->item[left++] = mentions->item[i];
	mentions->count = left;
}

static int subtract_row_mentions(void *arg, const struct vnode_key *key,
				 const struct version *version)
{
	struct mentions *mentions = arg;

	if (key->epoch != mentions->epoch)
		subtract_mentions(mentions, version);
	return 0;
}

int workwrite_kill(struct work *work, uint64_t id)
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

/*
 * A file may have 65,536 objects, and all writers wait for the commit: it notes them in a few rows, and the background goes
 * on in steps. Nothing can come to refer to them meanwhile, because a run adds only to an object of the newest version.
 */
static int doom_mentions(struct work *work, const struct mentions *mentions)
{
	struct db_doomed doomed = {0};
	int result = 0;

	for (uint32_t i = 0; i < mentions->count && !result; i++) {
		doomed.object[doomed.count++] = mentions->item[i].object;
		if (doomed.count < DB_DOOMED && i + 1 < mentions->count)
			continue;
		result = db_doomed_put(work->base.db, &doomed);
		doomed.count = 0;
	}
	work->dead.more = true;
	return result;
}

static int kill_mentions(struct work *work, const struct mentions *mentions)
{
	int result = mentions->small ? db_small_delete(work->base.db, mentions->small) : 0;

	if (!result && mentions->count > KILLED_AT_ONCE)
		return doom_mentions(work, mentions);
	for (uint32_t i = 0; i < mentions->count && !result; i++)
		result = workwrite_kill(work, mentions->item[i].object);
	return result;
}

int workwrite_release(struct work *work, const struct vnode_key *key, const struct version *old,
		      const struct version *now, bool others)
{
	struct mentions mentions = {.epoch = key->epoch};
	unsigned damaged = 0;
	int result = list_mentions(&mentions, old, now);

	if (!result && now)
		subtract_mentions(&mentions, now);
	if (!result && others && (mentions.small || mentions.count))
		result = db_vnode_rows(work->base.db, key->group, key->vnode, &damaged,
				       subtract_row_mentions, &mentions);
	/* The references of a damaged row are not known. */
	if (!result && !damaged)
		result = kill_mentions(work, &mentions);
	free(mentions.item);
	return result;
}

/* -- vnodes -- */

/* The rows of a vnode beside the one with `epoch`. */
struct others {
	uint32_t epoch, before; /* the greatest epoch below that; 0: there is none */
	unsigned rows;
};

static int note_other_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct others *others = arg;

	(void)version;
	if (key->epoch < others->epoch && key->epoch > others->before)
		others->before = key->epoch;
	others->rows++;
	return 0;
}

/* Whether the vnode has rows beside one. *before: the epoch of the one before it, or 0. */
static int find_older_rows(struct work *work, const struct vnode_key *key,
			   const struct version *row, bool *older, uint32_t *before)
{
	struct others others = {.epoch = key->epoch};
	unsigned damaged = 0;
	int result = 0;

	if (row->v.flags & VNODE_OLDER)
		result = db_vnode_rows(work->base.db, key->group, key->vnode, &damaged,
				       note_other_row, &others);
	*older = others.rows + damaged > 1;
	/* A damaged row may be the one before it. */
	*before = *older && damaged ? key->epoch : others.before;
	return result;
}

/*
 * The parts of the list of a row that goes, or gets another list. Those up to `before` may be
 * shared.
 */
static int delete_list_rows(struct work *work, const struct vnode_key *key, uint32_t before)
{
	struct vnode_key above = {key->group, key->vnode, before};

	return db_pages_delete(work->base.db, &above);
}

/* Turn `tomb`, which belongs to the caller, into the new base. */
static int write_tombstone(struct work *work, const struct vnode_key *key, bool insert,
			   struct version *tomb)
{
	assert(!tomb->v.kind);
	tomb->epoch = key->epoch;
	tomb->v.flags = VNODE_OLDER;
	return insert ? db_vnode_insert(work->base.db, key, tomb)
		      : db_vnode_update(work->base.db, key, tomb);
}

static int write_vnode_removal(struct work *work, struct node *node, struct version **tomb)
{
	uint32_t shared = volrec_shared(&node->vol->rec);
	struct vnode_key key = {.group = node->vol->rec.group, .vnode = node->vnode};
	uint32_t before = 0;
	bool own, older = true;
	int result = 0;

	assert(!node->now);
	if (!node->base || !node->base->v.kind)
		return 0;
	own = node->base->epoch > shared;
	key.epoch = own ? node->base->epoch : node->vol->rec.epoch;
	if (own)
		result = find_older_rows(work, &key, node->base, &older, &before);
	if (!result && own)
		result = workwrite_release(work, &key, node->base, NULL, older);
	if (!result && own && node->base->parts.count)
		result = delete_list_rows(work, &key, before);
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

static int write_changed_pages(struct work *work, const struct node *node,
			       const struct vnode_key *key)
{
	const struct store_pages *pages = atomic_load(&node->now->pages);
	int result = 0;

	for (unsigned i = 0; i < store_pages_count(pages) && !result; i++)
		if (store_pages_changed(pages, i))
			result = db_page_put(work->base.db, key, volrec_shared(&node->vol->rec), i,
					     store_pages_page(pages, i));
	return result;
}

/* The base has the list from which that of a new version goes on. */
static bool continues_old_list(const struct node *node)
{
	return node->base && node->base->parts.count && node->base->v.unique == node->now->v.unique;
}

static int divide_extent_list(struct work *work, struct node *node)
{
	static const struct parts no_parts;
	static const struct store_content no_content;
	bool goes_on = continues_old_list(node);
	struct parts parts;
	int result = parts_divide(goes_on ? &node->base->parts : &no_parts,
				  goes_on ? &node->base->content : &no_content, &node->now->content,
				  work->base.extents, &parts);

	if (result)
		return result;
	parts_free(&node->now->parts);
	node->now->parts = parts;
	return 0;
}

/* Before the row of the base is replaced: its list goes, unless the new one goes on from it. */
static int drop_replaced_list(struct work *work, const struct node *node,
			      const struct vnode_key *key)
{
	const struct version *base = node->base;
	uint32_t before;
	bool older;
	int result;

	if (!base->parts.count ||
	    (continues_old_list(node) && node->now->parts.count >= base->parts.count))
		return 0;
	result = find_older_rows(work, key, base, &older, &before);
	return result ? result : delete_list_rows(work, key, before);
}

/*
 * A row replaces the one of its own epoch only: older ones belong to older rows of the vnode,
 * perhaps to some that wait to be pruned.
 */
static int write_list_rows(struct work *work, const struct node *node, const struct vnode_key *key)
{
	const struct version *now = node->now;
	uint8_t row[STORE_PAGE];
	int result = 0;

	for (uint32_t i = 0; i < now->parts.count && !result; i++)
		if (now->parts.part[i].changed) {
			assert(now->parts.part[i].slot < now->parts.count);
			part_encode(&now->parts, i, &now->content, row);
			result = db_page_put(work->base.db, key, key->epoch - 1,
					     now->parts.part[i].slot, row);
		}
	return result;
}

/* The parts of a version that have rows of their own. */
static int write_version_parts(struct work *work, const struct node *node,
			       const struct vnode_key *key)
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
		result = write_changed_pages(work, node, key);
	return result;
}

static int write_version_row(struct work *work, struct node *node)
{
	struct version *base = node->base, *now = node->now;
	bool own = base && base->epoch > volrec_shared(&node->vol->rec);
	struct vnode_key key = {.group = node->vol->rec.group,
				.vnode = node->vnode,
				.epoch = own ? base->epoch : node->vol->rec.epoch};
	int result = divide_extent_list(work, node);

	assert(node->now != node->base);
	if (!result && own)
		result = drop_replaced_list(work, node, &key);
	if (result)
		return result;
	now->epoch = key.epoch;
	now->v.flags = (uint8_t)(own ? base->v.flags : base ? VNODE_OLDER : 0);
	result = own ? db_vnode_update(work->base.db, &key, now)
		     : db_vnode_insert(work->base.db, &key, now);
	if (!result)
		result = write_version_parts(work, node, &key);
	if (!result)
		result = write_list_rows(work, node, &key);
	if (!result && own && base->v.kind)
		result = workwrite_release(work, &key, base, now, base->v.flags & VNODE_OLDER);
	return result;
}

int workwrite_node(struct work *work, struct node *node)
{
	struct version *tomb = NULL, *next;
	int result =
		node->now ? write_version_row(work, node) : write_vnode_removal(work, node, &tomb);

	assert(node->changed);
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

	assert(volume->changed);
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

	assert(work->made_written <= work->made.count);
	while (work->made_written < work->made.count && !result) {
		struct db_object *object = &work->made.item[work->made_written++];
		const struct node *node = work_find(work, object->owner.group, object->owner.vnode);

		/* A later operation of the transaction may have replaced it. */
		object->dead = !node || !node->now || !refers_to_object(node->now, object->id);
		result = db_object_put(work->base.db, object);
		if (object->dead)
			work_object_dead(work, object);
	}
	return result;
}
