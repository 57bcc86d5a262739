/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The changes of a transaction: what operations read and change in memory, and the rows that are written for it. A row that no
 * clone shows is replaced; else a new row is made in the epoch of the volume, so that clones keep the old one.
 */
#include "volume/store/txn/work.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KILLED_AT_ONCE	 64 /* objects of a version, in the transaction that drops it */
#define VNODE_TOP	 0x7ffffffeu
#define FIRST_FILE	 2
#define FIRST_DIRECTORY	 3
#define TRIES_FULL	 4096 /* to find a free vnode when no number is left that was never used */
#define RESTART_UNIQUES	 (1u << 20) /* more than can have been used and forgotten */
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
}

/* -- volumes -- */

int work_any_volume(struct work *work, uint32_t id, struct workvol **out)
{
	struct workvol *volume = work->volumes;
	int result;

	while (volume && volume->rec.id != id)
		volume = volume->next;
	if (volume && volume->gone)
		return STORE_VNOVOL;
	if (!volume) {
		volume = calloc(1, sizeof(*volume));
		if (!volume)
			return -ENOMEM;
		result = volumes_get(work->base.volumes, id, &volume->rec);
		if (result) {
			free(volume);
			return result;
		}
		volume->next = work->volumes;
		work->volumes = volume;
	}
	*out = volume;
	return 0;
}

int work_volume(struct work *work, uint32_t id, struct workvol **volume)
{
	int result = work_any_volume(work, id, volume);

	if (!result && (*volume)->rec.offline)
		result = (*volume)->rec.offline & VOLUME_BUSY ? STORE_VBUSY : STORE_VOFFLINE;
	return result;
}

/* Whether another volume has this name, or will have it. */
static bool is_name_taken(struct work *work, const char *name)
{
	struct volrec other;
	const struct workvol *volume = work->volumes;

	for (; volume; volume = volume->next)
		if (!volume->gone && strcmp(volume->rec.name, name) == 0)
			return true;
	if (!volumes_has_name(work->base.volumes, name))
		return false;
	if (volumes_by_name(work->base.volumes, name, &other))
		return true;
	for (volume = work->volumes; volume; volume = volume->next)
		if (volume->rec.id == other.id)
			return false; /* it is gone, or has another name by now */
	return true;
}

/* After the commit there must be room for the new volumes of the transaction. */
static int reserve_volume_room(struct work *work)
{
	unsigned count = 1;

	for (const struct workvol *volume = work->volumes; volume; volume = volume->next)
		count++;
	return volumes_reserve(work->base.volumes, count);
}

int work_volume_add(struct work *work, const struct volrec *record)
{
	struct workvol *volume = work->volumes;

	if (is_name_taken(work, record->name))
		return -EEXIST;
	if (reserve_volume_room(work))
		return -ENOMEM;
	while (volume && volume->rec.id != record->id)
		volume = volume->next;
	if (volume ? !volume->gone : volumes_has(work->base.volumes, record->id))
		return STORE_VVOLEXISTS;
	if (!volume) {
		volume = calloc(1, sizeof(*volume));
		if (!volume)
			return -ENOMEM;
		volume->next = work->volumes;
		work->volumes = volume;
	}
	volume->rec = *record;
	volume->changed = volume->named = true;
	volume->gone = false;
	return 0;
}

int work_volume_rename(struct work *work, struct workvol *volume, const char *name)
{
	if (is_name_taken(work, name))
		return -EEXIST;
	snprintf(volume->rec.name, sizeof(volume->rec.name), "%s", name);
	volume->changed = volume->named = true;
	return 0;
}

void work_volume_remove(struct work *work, struct workvol *volume)
{
	(void)work;
	volume->changed = volume->gone = true;
}

void work_volume_changed(struct work *work, struct workvol *volume)
{
	volume->rec.updated = work->now;
	volume->changed = true;
}

uint32_t work_unique(struct work *work, struct workvol *volume)
{
	struct volrec *rec = &volume->rec;

	/* After a restart of the machine, numbers may have been used that were forgotten. */
	if (rec->incarnation != work->base.incarnation) {
		rec->next_unique += RESTART_UNIQUES;
		rec->incarnation = work->base.incarnation;
	}
	if (rec->next_unique < 2)
		rec->next_unique = 2;
	volume->changed = true;
	return rec->next_unique++;
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
	*node = find_work_node(work, volume->rec.group, vnode);
	return *node ? 0 : add_work_node(work, volume, vnode, false, node);
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

/* The entries that the caller has loaded, if they are those of this version. A reference, or NULL. */
static struct store_pages *find_loaded_pages(const struct work_loaded *loaded,
					     const struct node *node)
{
	for (unsigned i = 0; i < WORK_LOADED; i++) {
		const struct work_entries *of = &loaded->entries[i];

		if (of->version && of->vnode == node->vnode && of->group == node->vol->rec.group &&
		    of->version->v.unique == node->now->v.unique &&
		    of->version->v.version == node->now->v.version)
			return store_pages_ref(atomic_load(&of->version->pages));
	}
	return NULL;
}

int work_pages(struct work *work, struct node *node, struct store_pages **pages)
{
	struct work_loaded *loaded = work->loaded;

	*pages = atomic_load(&node->now->pages);
	if (*pages)
		return 0;
	assert(loaded);
	*pages = find_loaded_pages(loaded, node);
	if (!*pages) {
		loaded->missing =
			(struct store_fid){node->vol->rec.id, node->vnode, node->now->v.unique};
		return WORK_MISSING;
	}
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

static void note_object(struct work *work, struct object_list *list, const struct db_object *object)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct db_object *item = realloc(list->item, room * sizeof(*item));

		if (!item) {
			work->broken = true;
			return;
		}
		list->item = item;
		list->room = room;
	}
	list->item[list->count++] = *object;
}

void work_object_made(struct work *work, const struct db_object *object)
{
	note_object(work, &work->made, object);
}

/* -- rows: what only the old one refers to -- */

/* References of an old version that the new one does not have. */
struct mentions {
	uint32_t epoch; /* of the row that is not counted */
	uint64_t small; /* 0: another version refers to it */
	struct mention {
		uint64_t object;
		bool used; /* by another version */
	} * item;	   /* ascending */
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

int work_kill(struct work *work, uint64_t id)
{
	struct db_object object;
	int result = db_object_get(work->base.db, id, &object);

	/* It was made in this transaction, and will be written as one without use. */
	if (result == -ENOENT)
		return 0;
	if (result)
		return result;
	object.dead = true;
	note_object(work, &work->dead, &object);
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
		result = work_kill(work, mentions->item[i].object);
	return result;
}

int work_release(struct work *work, const struct vnode_key *key, const struct version *old,
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
		result = work_release(work, &key, node->base, NULL, older);
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
		result = work_release(work, &key, base, now, base->v.flags & VNODE_OLDER);
	return result;
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

/* The objects that were noted since the last call. */
static int write_object_rows(struct work *work)
{
	int result = 0;

	assert(work->made_written <= work->made.count);
	while (work->made_written < work->made.count && !result) {
		struct db_object *object = &work->made.item[work->made_written++];
		const struct node *node =
			find_work_node(work, object->owner.group, object->owner.vnode);

		/* A later operation of the transaction may have replaced it. */
		object->dead = !node || !node->now || !refers_to_object(node->now, object->id);
		result = db_object_put(work->base.db, object);
		if (object->dead)
			note_object(work, &work->dead, object);
	}
	return result;
}

/* -- the transaction -- */

int work_write(struct work *work)
{
	int result = 0;

	for (struct node *node = work->first; node && !result; node = node->next)
		if (node->changed) {
			result = begin_database(work);
			if (!result)
				result = write_node_row(work, node);
		}
	for (struct workvol *volume = work->volumes; volume && !result; volume = volume->next)
		if (volume->changed) {
			result = begin_database(work);
			if (!result)
				result = write_volume_row(work, volume);
		}
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
	work->made.count = work->dead.count = work->made_written = 0;
	work->dead.more = false;
	work->begun = work->written = work->broken = work->refers = false;
}
