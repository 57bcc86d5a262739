/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The changes of a transaction: what operations read and change in memory, and the rows that are written for it. A row that no
 * clone shows is replaced; else a new row is made in the epoch of the volume, so that clones keep the old one.
 */
#include "volume/store/txn/work.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/grow.h"

#define DROPPED_AT_ONCE 4   /* rows of slots */
#define DROPPED_ROWS	64  /* in a transaction */
#define DROPPED_REFS	 256 /* to objects, after which it ends */
#define VNODE_TOP	 0x7ffffffeu
#define FIRST_FILE	 2
#define FIRST_DIRECTORY	 3
#define TRIES_FULL	 4096 /* to find a free vnode when no number is left that was never used */
#define RESTART_VERSIONS 131072u

static uint64_t hash_node_key(uint32_t group, uint32_t vnode)
{
	uint64_t hash = ((uint64_t)group << 32 | vnode) * 0x9e3779b97f4a7c15u;

	return hash ^ hash >> 32;
}

static uint64_t hash_work_node(const void *item, const uint64_t key[2])
{
	const struct node *node = item;

	(void)key;
	return hash_node_key(node->vol->rec.group, node->vnode);
}

int work_init(struct work *work, const struct work_base *base)
{
	*work = (struct work){.base = *base};
	work->last = &work->first;
	return htable_init(&work->nodes, offsetof(struct node, chain), hash_work_node, NULL, 1024)
		       ? 0
		       : -ENOMEM;
}

void work_fini(struct work *work)
{
	work_reset(work);
	htable_fini(&work->nodes, NULL);
	free(work->made.item);
	free(work->dead.item);
	free(work->refs);
}

/* -- vnodes -- */

static int begin_database(struct work *work)
{
	int result = work->begun ? 0 : db_begin(work->base.db);

	if (!result)
		work->begun = true;
	return result;
}

/* The newest row. */
static int load_newest_row(struct work *work, struct node *node)
{
	const struct volrec *rec = &node->vol->rec;
	struct cache_key cached = {.group = rec->group, .epoch = CACHE_HEAD, .vnode = node->vnode};
	struct vnode_key key = {.group = rec->group, .vnode = node->vnode, .epoch = CACHE_HEAD};
	int result;

	node->base = cache_find(work->base.cache, &cached);
	if (!node->base) {
		result = begin_database(work);
		if (!result)
			result = db_vnode_get(work->base.db, &key, &node->base);
		if (result && result != -ENOENT)
			return result;
	}
	if (node->base && node->base->v.kind)
		node->now = node->base;
	return 0;
}

/* A vnode that the transaction has used, or NULL. */
static struct node *find_work_node(struct work *work, uint32_t group, uint32_t vnode)
{
	struct node *node = htable_first(&work->nodes, hash_node_key(group, vnode));

	while (node && (node->vnode != vnode || node->vol->rec.group != group))
		node = node->chain;
	return node;
}

/* `fresh`: the vnode was never used. */
static int add_work_node(struct work *work, struct workvol *volume, uint32_t vnode, bool fresh,
			 struct node **out)
{
	struct node *node = calloc(1, sizeof(*node));
	int result;

	if (!node)
		return -ENOMEM;
	node->vol = volume;
	node->vnode = vnode;
	result = fresh ? 0 : load_newest_row(work, node);
	if (result) {
		free(node);
		return result;
	}
	htable_add(&work->nodes, node);
	*work->last = node;
	work->last = &node->next;
	*out = node;
	return 0;
}

int work_node(struct work *work, struct workvol *volume, uint32_t vnode, struct node **node)
{
	uint32_t fresh = volume->rec.fresh[vnode & 1];

	*node = find_work_node(work, volume->rec.group, vnode);
	return *node ? 0
		     : add_work_node(work, volume, vnode, fresh >= FIRST_FILE && vnode >= fresh,
				     node);
}

int work_live(struct work *work, struct workvol *volume, uint32_t vnode, uint32_t unique,
	      struct node **node)
{
	int result = work_node(work, volume, vnode, node);

	if (!result && (!(*node)->now || (*node)->now->v.unique != unique))
		result = STORE_VNOVNODE;
	return result;
}

/* The next number that was used before. *node: NULL if it is in use again. */
static int try_used_number(struct work *work, struct workvol *volume, bool directory,
			   struct node **node)
{
	struct volrec *rec = &volume->rec;
	uint32_t at = rec->cursor[directory];
	int result;

	if (at < (directory ? FIRST_DIRECTORY : FIRST_FILE) || at >= rec->fresh[directory])
		at = directory ? FIRST_DIRECTORY : FIRST_FILE;
	*node = NULL;
	rec->cursor[directory] = at + 2;
	if (at >= rec->fresh[directory])
		return 0;
	result = work_node(work, volume, at, node);
	if (result == -EIO || (!result && (*node)->now)) {
		*node = NULL;
		result = 0;
	}
	return result;
}

/*
 * Numbers are used again, but each operation looks at one only: so none takes long, and all are
 * looked at in turn.
 */
int work_free(struct work *work, struct workvol *volume, bool directory, struct node **node)
{
	struct volrec *rec = &volume->rec;
	unsigned tries = rec->fresh[directory] > VNODE_TOP ? TRIES_FULL : 1;
	int result = 0;

	volume->changed = true;
	if (rec->fresh[directory] < FIRST_FILE)
		rec->fresh[directory] = directory ? FIRST_DIRECTORY : FIRST_FILE;
	for (*node = NULL; tries-- && !*node && !result;)
		result = try_used_number(work, volume, directory, node);
	if (result || *node)
		return result;
	if (rec->fresh[directory] > VNODE_TOP)
		return -ENOSPC;
	result = add_work_node(work, volume, rec->fresh[directory], true, node);
	if (!result)
		rec->fresh[directory] += 2;
	return result;
}

int work_edit(struct work *work, struct node *node)
{
	struct version *copy;

	assert(node->now);
	(void)work;
	if (node->now != node->base)
		return 0;
	copy = version_copy(node->now);
	if (!copy)
		return -ENOMEM;
	node->now = copy;
	node->changed = true;
	return 0;
}

/* What the caller has loaded, if it is this version. NULL. */
static const struct version *find_loaded_version(const struct work_loaded *loaded,
						 const struct node *node)
{
	for (unsigned i = 0; i < WORK_LOADED; i++) {
		const struct work_entries *of = &loaded->entries[i];

		if (of->version && of->vnode == node->vnode && of->group == node->vol->rec.group &&
		    of->version->v.unique == node->now->v.unique &&
		    of->version->v.version == node->now->v.version)
			return of->version;
	}
	return NULL;
}

static int ask_for_loading(struct work_loaded *loaded, const struct node *node)
{
	loaded->missing = (struct store_fid){node->vol->rec.id, node->vnode, node->now->v.unique};
	return WORK_MISSING;
}

int work_content(struct work *work, struct node *node, const struct store_content **content)
{
	const struct version *found;

	*content = version_content(node->now);
	if (*content)
		return 0;
	assert(work->loaded && node->base && node->base->v.map == node->now->v.map);
	found = find_loaded_version(work->loaded, node);
	*content = found ? version_content(found) : NULL;
	if (!*content)
		return ask_for_loading(work->loaded, node);
	/* An earlier change of the transaction left it as it is in the base, whose rows are compared. */
	if (!version_content(node->base) && !version_attach_content(node->base, *content))
		return -ENOMEM;
	if (node->now != node->base && !version_attach_content(node->now, *content))
		return -ENOMEM;
	*content = version_content(node->now);
	return 0;
}

int work_pages(struct work *work, struct node *node, struct store_pages **pages)
{
	const struct version *found;

	*pages = atomic_load(&node->now->pages);
	if (*pages)
		return 0;
	assert(work->loaded);
	found = find_loaded_version(work->loaded, node);
	if (!found)
		return ask_for_loading(work->loaded, node);
	*pages = store_pages_ref(atomic_load(&found->pages));
	*pages = version_attach_pages(node->now, *pages);
	return 0;
}

int work_edit_pages(struct work *work, struct node *node, struct store_pages **pages)
{
	struct store_pages *own;
	int result = work_pages(work, node, pages);

	assert(node->now->v.kind == STORE_DIR);
	if (result || node->pages_forked)
		return result;
	own = store_pages_fork(*pages);
	if (!own)
		return -ENOMEM;
	result = work_edit(work, node);
	if (result) {
		store_pages_unref(own);
		return result;
	}
	store_pages_unref(atomic_exchange(&node->now->pages, own));
	node->pages_forked = true;
	*pages = own;
	return 0;
}

int work_blob(struct work *work, const struct node *node, struct blob **blob)
{
	struct db_small small = {
		.id = node->now->v.small, .group = node->vol->rec.group, .vnode = node->vnode};
	int result;

	assert(node->now->v.small);
	*blob = blob_ref(atomic_load(&node->now->blob));
	if (*blob)
		return 0;
	result = begin_database(work);
	if (!result)
		result = db_small_get(work->base.db, &small, blob);
	if (result == -ENOENT || (!result && (*blob)->length != node->now->v.length)) {
		report_damage(work->base.report,
			      "the contents of vnode %u of volume %u are missing: restore the file",
			      node->vnode, node->vol->rec.id);
		blob_unref(result ? NULL : *blob);
		result = -EIO;
	}
	return result;
}

void work_create(struct work *work, struct node *node, struct version *version)
{
	assert(!node->now);
	(void)work;
	node->now = version;
	node->changed = true;
	node->pages_forked = true;
}

void work_remove(struct work *work, struct node *node)
{
	assert(node->now);
	(void)work;
	if (node->now != node->base)
		version_unref(node->now);
	node->now = NULL;
	node->changed = true;
	node->pages_forked = false;
}

uint64_t work_number(struct work *work)
{
	return ++*work->base.numbers;
}

void work_new_version(struct work *work, struct version *version)
{
	/* After a restart of the machine, clients may have seen versions that were forgotten. */
	version->v.version +=
		version->v.incarnation == work->base.incarnation ? 1 : RESTART_VERSIONS;
	version->v.incarnation = work->base.incarnation;
}

/* -- objects -- */

void work_note_object(struct work *work, struct object_list *list, const struct db_object *object)
{
	if (grow_array(&list->item, &list->room, list->count, sizeof(*list->item)))
		list->item[list->count++] = *object;
	else
		work->broken = true;
}

void work_object_made(struct work *work, const struct db_object *object)
{
	work_note_object(work, &work->made, object);
}

/* -- references of slots to objects -- */

static void note_ref(struct work *work, uint64_t object, int delta)
{
	if (grow_array(&work->refs, &work->ref_room, work->ref_count, sizeof(*work->refs)))
		work->refs[work->ref_count++] = (struct ref_change){object, delta};
	else
		work->broken = true;
}

/* The objects of the first slot that the second one does not have. Each may be NULL. */
static void note_slot_refs(struct work *work, const struct store_slot *slot,
			   const struct store_slot *other, int delta)
{
	for (uint32_t i = 0; slot && i < slot->count; i++) {
		uint64_t object = slot->block[i].object;

		if (object == store_slot_object(other, i) || !store_slot_is_first(slot, i))
			continue;
		if (!store_slot_has(other, object))
			note_ref(work, object, delta);
	}
}

/* The row of a slot gets another content; `old` NULL: it is a new row; `now` NULL: it goes. */
static void change_slot_refs(struct work *work, const struct store_slot *old,
			     const struct store_slot *now)
{
	if (old == now)
		return;
	note_slot_refs(work, now, old, 1);
	note_slot_refs(work, old, now, -1);
}

/* -- changes of references -- */

static int compare_refs(const void *a, const void *b)
{
	uint64_t x = ((const struct ref_change *)a)->object;
	uint64_t y = ((const struct ref_change *)b)->object;

	return x < y ? -1 : x > y;
}

static void sum_refs(struct work *work)
{
	size_t kept = 0;

	if (!work->ref_count)
		return;
	qsort(work->refs, work->ref_count, sizeof(*work->refs), compare_refs);
	for (size_t i = 1; i < work->ref_count; i++) {
		if (work->refs[i].object == work->refs[kept].object)
			work->refs[kept].delta += work->refs[i].delta;
		else
			work->refs[++kept] = work->refs[i];
	}
	work->ref_count = kept + 1;
}

static struct ref_change *find_ref_change(struct work *work, uint64_t object)
{
	const struct ref_change key = {.object = object};

	return work->ref_count
		       ? bsearch(&key, work->refs, work->ref_count, sizeof(key), compare_refs)
		       : NULL;
}

static int compare_dead(const void *a, const void *b)
{
	const struct db_object *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->count != 0) - (y->count != 0);
}

/* What is noted of an object that goes as a whole is of no use; and others need their owner. */
static int conclude_dead_blocks(struct work *work)
{
	struct object_list *dead = &work->dead;
	struct db_object object = {0};
	size_t kept = 0;
	int result = 0;

	if (dead->count)
		qsort(dead->item, dead->count, sizeof(*dead->item), compare_dead);
	for (size_t i = 0; i < dead->count && !result; i++) {
		struct db_object *item = &dead->item[i];

		if (item->count && (object.id != item->id || !object.owner.group)) {
			object = (struct db_object){.id = item->id};
			result = db_object_get(work->base.db, item->id, &object);
			result = result == -ENOENT ? 0 : result;
		} else if (!item->count) {
			object = (struct db_object){.id = item->id};
		}
		item->owner = item->count ? object.owner : item->owner;
		if (!item->count || object.refs)
			dead->item[kept++] = *item;
	}
	dead->count = kept;
	return result;
}

static int apply_ref_change(struct work *work, const struct ref_change *change)
{
	struct db_object object;
	int result =
		change->delta ? db_object_get(work->base.db, change->object, &object) : -ENOENT;

	if (result)
		return result == -ENOENT ? 0 : result;
	if (change->delta < 0 && (uint64_t)-change->delta > object.refs)
		return 0; /* the row is damaged: the object stays */
	object.refs += (uint64_t)change->delta;
	if (!object.refs)
		work_note_object(work, &work->dead, &object);
	return db_object_put(work->base.db, &object);
}

/* The objects that were made, and the references that changed, since the last call. */
static int write_object_rows(struct work *work)
{
	bool any = work->ref_count > 0;
	int result = 0;

	assert(work->made_written <= work->made.count);
	sum_refs(work);
	while (work->made_written < work->made.count && !result) {
		struct db_object *object = &work->made.item[work->made_written++];
		struct ref_change *change = find_ref_change(work, object->id);

		/* A later operation of the transaction may have replaced it. */
		object->refs = change && change->delta > 0 ? (uint64_t)change->delta : 0;
		if (change)
			change->delta = 0;
		result = db_object_put(work->base.db, object);
		if (!object->refs)
			work_note_object(work, &work->dead, object);
	}
	for (size_t i = 0; i < work->ref_count && !result; i++)
		result = apply_ref_change(work, &work->refs[i]);
	work->ref_count = 0;
	return !result && any ? conclude_dead_blocks(work) : result;
}

/* -- rows that go -- */

struct small_use {
	uint32_t epoch; /* of the row that is not counted */
	uint64_t small; /* 0: another version refers to it */
};

static int note_small_use(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct small_use *use = arg;

	if (key->epoch != use->epoch && version->v.small == use->small)
		use->small = 0;
	return 0;
}

/* The contents of a small file, unless another row has them. */
static int release_small(struct work *work, const struct vnode_key *key, uint64_t small,
			 bool others)
{
	struct small_use use = {.epoch = key->epoch, .small = small};
	unsigned damaged = 0;
	int result = 0;

	if (small && others)
		result = db_vnode_rows(work->base.db, key->group, key->vnode, &damaged,
				       note_small_use, &use);
	/* The references of a damaged row are not known. */
	if (result || damaged || !use.small)
		return result;
	return db_small_delete(work->base.db, use.small);
}

static struct store_slot *get_first_slot(const struct version *version)
{
	return version->content.first;
}

int work_release(struct work *work, const struct vnode_key *key, const struct version *old,
		 bool others)
{
	int result;

	change_slot_refs(work, get_first_slot(old), NULL);
	result = work_first_dead_blocks(work, key, others, get_first_slot(old), NULL);
	return result ? result : release_small(work, key, old->v.small, others);
}

static int release_slot_row(void *arg, const struct db_slot_key *key, const struct store_slot *slot)
{
	change_slot_refs(arg, slot, NULL);
	return work_dead_blocks(arg, key, true, slot, NULL);
}

int work_drop(struct work *work, struct db_drop *drop)
{
	size_t refs = work->ref_count + DROPPED_REFS;
	bool more = true;
	int result = 0;

	/* All writers wait for the commit. */
	for (unsigned rows = 0; more && !result && rows < DROPPED_ROWS && work->ref_count < refs;
	     rows += DROPPED_AT_ONCE)
		result = db_slots_drop(work->base.db, drop, DROPPED_AT_ONCE, &more,
				       release_slot_row, work);
	if (!result && more) {
		work->dead.more = true;
		return db_drop_put(work->base.db, drop);
	}
	return result || !drop->id ? result : db_drop_delete(work->base.db, drop->id);
}

/* -- rows of vnodes -- */

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

/* The rows of slots that only one row of a vnode shows: those of its map above the epoch of the row before. */
static int drop_own_slots(struct work *work, const struct vnode_key *key,
			  const struct version *version, uint32_t before)
{
	struct db_drop drop = {.map = version->v.map, .hidden = {before, key->epoch, 0}};

	return drop.map ? work_drop(work, &drop) : 0;
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
		result = work_release(work, &key, node->base, older);
	if (!result && own)
		result = drop_own_slots(work, &key, node->base, before);
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

/* -- rows of slots -- */

/* Whether a version goes on in the rows of the base. Rows that are not known cannot be changed. */
static bool goes_on_in_map(const struct version *base, const struct version *now)
{
	return base && base->v.map && base->v.map == now->v.map &&
	       (now->partial || version_content(base));
}

/* What is dropped is much more than what stays: its rows go in the background, under the old number. */
static bool prefers_new_map(const struct version *base, const struct version *now)
{
	return base->v.slots > now->content.count + WORK_ROWS && now->content.count <= WORK_ROWS;
}

static void choose_map(struct work *work, const struct version *base, struct version *now)
{
	if (now->partial)
		return; /* it is that of the base */
	now->v.slots = now->content.count;
	now->v.rows = store_content_rows(&now->content);
	/* That of an older version, to which a volume goes back, may have rows that the background deletes. */
	if (!goes_on_in_map(base, now) || prefers_new_map(base, now))
		now->v.map = 0;
	if (now->v.rows && !now->v.map)
		now->v.map = work_number(work);
}

struct slot_write {
	struct vnode_key key; /* of the row of the vnode */
	bool older;	      /* there may be older rows of the vnode */
};

/* Other versions may share a slot that has an epoch, which is that of its row in another map: it keeps it. */
static int set_slot_epoch(struct store_content *content, uint32_t at, uint32_t epoch)
{
	struct store_slot *slot = store_content_slot(content, at);

	assert(epoch);
	if (!slot || slot->epoch == epoch)
		return 0;
	if (!slot->epoch) {
		slot->epoch = epoch;
		return 0;
	}
	slot = store_slot_copy(slot, 0);
	if (!slot)
		return -ENOMEM;
	slot->epoch = epoch;
	return store_content_set(content, at, slot);
}

static int write_slot_row(struct work *work, const struct slot_write *write, uint64_t map,
			  uint32_t at, const struct store_slot *old, const struct store_slot *now)
{
	struct db_slot_key key = {map, at, write->key.epoch};
	bool own = old && old->epoch == key.epoch;
	int result;

	change_slot_refs(work, own ? old : NULL, now);
	result = own ? work_dead_blocks(work, &key, write->older, old, now) : 0;
	if (result)
		return result;
	if (!now && own && !write->older)
		return db_slot_delete(work->base.db, &key);
	return db_slot_put(work->base.db, &key, now);
}

/* A row of its own epoch is replaced only: older ones belong to older rows of the vnode. */
static int write_slot_rows(struct work *work, const struct slot_write *write,
			   const struct version *base, struct version *now)
{
	static const struct store_content none;
	const struct store_content *before =
		goes_on_in_map(base, now) ? version_content(base) : &none;
	int result = 0;

	if (now->partial)
		return 0;
	for (uint32_t at = 1; !result && store_content_differ(before, &now->content, &at); at++) {
		const struct store_slot *slot = store_content_slot(&now->content, at);

		if (slot && slot->damaged)
			continue;
		result = set_slot_epoch(&now->content, at, write->key.epoch);
		if (!result)
			result = write_slot_row(work, write, now->v.map, at,
						store_content_slot(before, at),
						store_content_slot(&now->content, at));
	}
	return result;
}

/* The rows of a version that does not go on from the base, which is replaced. */
static int drop_replaced_slots(struct work *work, const struct vnode_key *key,
			       const struct version *base, const struct version *now)
{
	uint32_t before = 0;
	bool older;
	int result;

	if (!base->v.map || goes_on_in_map(base, now))
		return 0;
	result = find_older_rows(work, key, base, &older, &before);
	return result ? result : drop_own_slots(work, key, base, before);
}

static int write_contents(struct work *work, struct node *node, const struct vnode_key *key,
			  bool own)
{
	struct version *base = node->base, *now = node->now;
	struct slot_write write = {.key = *key, .older = !own || base->v.flags & VNODE_OLDER};
	struct store_slot *first = get_first_slot(now), *old = base ? get_first_slot(base) : NULL;
	int result;

	change_slot_refs(work, own ? old : NULL, first);
	result = own ? work_first_dead_blocks(work, key, write.older, old, first) : 0;
	if (!result)
		result = write_slot_rows(work, &write, base, now);
	if (!result && own && base->v.kind)
		result = drop_replaced_slots(work, key, base, now);
	if (!result && own && base->v.small && base->v.small != now->v.small)
		result = release_small(work, key, base->v.small, base->v.flags & VNODE_OLDER);
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
	int result;

	assert(node->now != node->base);
	choose_map(work, base, now);
	now->epoch = key.epoch;
	now->v.flags = (uint8_t)(own ? base->v.flags : base ? VNODE_OLDER : 0);
	result = own ? db_vnode_update(work->base.db, &key, now)
		     : db_vnode_insert(work->base.db, &key, now);
	if (!result)
		result = write_contents(work, node, &key, own);
	return result ? result : write_version_parts(work, node, &key);
}

/* The written version is the base of later changes in the transaction. */
static int write_node_row(struct work *work, struct node *node)
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

static int write_volume_row(struct work *work, struct workvol *volume)
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

/* -- the transaction -- */

static int write_volume_rows(struct work *work, bool gone)
{
	int result = 0;

	for (struct workvol *volume = work->volumes; volume && !result; volume = volume->next) {
		if (!volume->changed || volume->gone != gone)
			continue;
		result = begin_database(work);
		if (!result)
			result = write_volume_row(work, volume);
	}
	return result;
}

static int write_node_rows(struct work *work, bool removed)
{
	int result = 0;

	for (struct node *node = work->first; node && !result; node = node->next)
		if (node->changed && !node->now == removed) {
			result = begin_database(work);
			if (!result)
				result = write_node_row(work, node);
		}
	return result;
}

/* Removals are first: the pages that they give back are taken again, and need not be written as unused ones. */
int work_write(struct work *work)
{
	int result = write_node_rows(work, true);

	if (!result)
		result = write_node_rows(work, false);
	/* Those that are gone first: others may have their names. */
	if (!result)
		result = write_volume_rows(work, true);
	if (!result)
		result = write_volume_rows(work, false);
	if (!result && (work->ref_count || work->made_written < work->made.count))
		result = begin_database(work);
	return result ? result : write_object_rows(work);
}

void work_begin(struct work *work)
{
	assert(!work->first && !work->volumes && !work->begun && !work->broken);
	work->now = (uint32_t)time(NULL);
}

int work_db(struct work *work, struct db **db)
{
	int result = begin_database(work);

	if (!result)
		result = work_write(work);
	work->written = true;
	*db = work->base.db;
	return result;
}

int work_commit(struct work *work)
{
	int result = work->begun ? db_commit(work->base.db) : 0;

	if (!result)
		work->begun = false;
	return result;
}

void work_publish(struct work *work)
{
	assert(!work->begun);
	for (const struct node *node = work->first; node; node = node->next) {
		struct cache_key key = {
			.group = node->vol->rec.group, .epoch = CACHE_HEAD, .vnode = node->vnode};

		if (node->publish)
			cache_publish(work->base.cache, &key, node->now);
		else if (node->now)
			cache_charge(work->base.cache, &key, node->now);
	}
	/* After the versions: a look at the tree that follows sees them, and one before is told of them. */
	for (const struct workvol *volume = work->volumes; volume; volume = volume->next)
		if (volume->moves)
			volumes_moved(work->base.volumes, volume->rec.id);
	for (const struct workvol *volume = work->volumes; volume; volume = volume->next)
		if (volume->publish && volume->gone)
			volumes_drop(work->base.volumes, volume->rec.id);
		else if (volume->publish && volumes_put(work->base.volumes, &volume->rec, false))
			report_line(work->base.report, REPORT_ERROR,
				    "no memory for volume %u: restart the server", volume->rec.id);
}

void work_reset(struct work *work)
{
	struct node *node = work->first, *next;
	struct workvol *volume = work->volumes, *following;

	if (work->begun)
		db_rollback(work->base.db);
	for (; node; node = next) {
		next = node->next;
		htable_remove(&work->nodes, node);
		if (node->now != node->base)
			version_unref(node->now);
		version_unref(node->base);
		free(node);
	}
	for (; volume; volume = following) {
		following = volume->next;
		free(volume);
	}
	work->first = NULL;
	work->last = &work->first;
	work->volumes = NULL;
	work->made.count = work->dead.count = work->made_written = work->ref_count = 0;
	work->dead.more = false;
	work->begun = work->written = work->broken = work->refers = false;
}
