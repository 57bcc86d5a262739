/* SPDX-License-Identifier: BSD-2-Clause */
/* Transactions: what operations read and change in memory. */
#include "volume/store/txn/work.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volume/store/txn/workwrite.h"

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
		result = STORE_VOFFLINE;
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

struct node *work_find(struct work *work, uint32_t group, uint32_t vnode)
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
	*node = work_find(work, volume->rec.group, vnode);
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

void work_object_dead(struct work *work, const struct db_object *object)
{
	note_object(work, &work->dead, object);
}

/* -- the transaction -- */

int work_write(struct work *work)
{
	int result = 0;

	for (struct node *node = work->first; node && !result; node = node->next)
		if (node->changed) {
			result = begin_database(work);
			if (!result)
				result = workwrite_node(work, node);
		}
	for (struct workvol *volume = work->volumes; volume && !result; volume = volume->next)
		if (volume->changed) {
			result = begin_database(work);
			if (!result)
				result = workwrite_volume(work, volume);
		}
	return result ? result : workwrite_objects(work);
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
