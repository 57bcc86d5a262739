/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that a store is sound: the database, each volume and clone as it is shown, and the agreement of database and files. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/grow.h"
#include "volume/store/data/data_lost.h"
#include "volume/store/maint/maint.h"
#include "volume/store/upkeep.h"
#include "volume/store/txn/core.h"
#include "volume/store/txn/space.h"

#define LOOK_NS (50ull * NS_PER_MS) /* between two looks whether to stop */
#define SOME	256		    /* objects between two reports of the progress */

/* Numbers that were seen, sorted when they are searched. */
struct number_set {
	uint64_t *number;
	size_t count, room;
	size_t at; /* where the last search ended */
	bool sorted;
};

struct checking {
	struct core *core;
	struct db *db; /* each part of the check has a view that does not change: check_in_view() */
	struct db *fresh; /* for a second look at what may have changed since */
	uint64_t numbers; /* small contents with greater ones are newer than the check */
	const struct store_checker *checker;
	int faults;
	uint64_t looked_at, all; /* objects */
	/* Set by the watching thread: what follows is not complete, so that no fault is one. */
	atomic_bool stop;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ended;			   /* lock: the check has; signals `wake` */
	struct number_set smalls, maps;	   /* that rows refer to */
	struct number_set objects;	   /* each as often as slots refer to it */
};

/* -EINTR once the check is stopped, else 0. */
static int get_check_state(const struct checking *checking)
{
	return atomic_load_explicit(&checking->stop, memory_order_relaxed) ? -EINTR : 0;
}

__attribute__((format(printf, 2, 3))) static void report_fault(struct checking *checking,
							       const char *format, ...)
{
	char line[STORE_MESSAGE_MAX];
	va_list args;

	if (get_check_state(checking))
		return;
	checking->faults++;
	if (!checking->checker->each)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	checking->checker->each(checking->checker->arg, line);
}

/* Report the progress at the beginning and after some objects. */
static void report_progress(const struct checking *checking)
{
	const struct store_checker *checker = checking->checker;

	if (checker->progress && checking->looked_at % SOME == 0)
		checker->progress(checker->arg, checking->looked_at, checking->all);
}

/* -- sets -- */

/* 0 or -ENOMEM. One that is there already counts again. */
static int add_number(struct number_set *set, uint64_t number)
{
	assert(set->count <= set->room);
	if (!grow_array(&set->number, &set->room, set->count, sizeof(*set->number)))
		return -ENOMEM;
	set->sorted = !set->count || (set->sorted && set->number[set->count - 1] <= number);
	set->number[set->count++] = number;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Numbers that are searched in ascending order are found at once. */
static bool has_number(struct number_set *set, uint64_t number)
{
	if (!set->sorted && set->count)
		qsort(set->number, set->count, sizeof(*set->number), compare_numbers);
	set->sorted = true;
	if (set->at && set->number[set->at - 1] >= number)
		set->at = 0;
	while (set->at < set->count && set->number[set->at] < number)
		set->at++;
	return set->at < set->count && set->number[set->at] == number;
}

/* -- one volume or clone, as it is shown -- */

/* A vnode, as the view shows it. */
struct entry {
	uint32_t vnode, unique, links, parent, parent_unique;
	uint32_t seen;	  /* names */
	uint32_t subdirs; /* of a directory */
	uint8_t kind;
};

struct tree {
	struct checking *checking;
	const struct volrec *volume;
	uint32_t epoch; /* the greatest that is shown */
	struct entry *entry;
	size_t count, room;
	uint64_t used_kib;
};

static int compare_shown_vnodes(const void *key, const void *item)
{
	uint32_t vnode = *(const uint32_t *)key, other = ((const struct entry *)item)->vnode;

	return vnode < other ? -1 : vnode > other;
}

static struct entry *find_shown_vnode(struct tree *tree, uint32_t vnode)
{
	return tree->count ? bsearch(&vnode, tree->entry, tree->count, sizeof(*tree->entry),
				     compare_shown_vnodes)
			   : NULL;
}

static int check_small_content(struct tree *tree, const struct vnode_key *key,
			       const struct version *version)
{
	struct db_small small = {.id = version->v.small, .group = key->group, .vnode = key->vnode};
	struct blob *blob = NULL;
	int result = db_small_get(tree->checking->db, &small, &blob);

	if (result == -ENOMEM || result == -EINTR)
		return result;
	if (result || blob->length != version->v.length)
		report_fault(tree->checking, "volume %u: the contents of vnode %u are %s",
			     tree->volume->id, key->vnode,
			     result == -ENOENT ? "missing" : "damaged");
	blob_unref(blob);
	return 0;
}

/* Whether the object is still in use: else it may be gone by now. */
static bool is_object_used(struct tree *tree, uint64_t id)
{
	struct db_object object;

	return !db_object_get(tree->checking->fresh, id, &object) && object.refs;
}

/* Blocks in a row that lie in one object. */
struct block_run {
	uint64_t object, end; /* `end`: the offset behind the last byte */
};

static int check_block_run(struct tree *tree, const struct vnode_key *key,
			   const struct version *version, const struct block_run *run)
{
	struct store_owner owner = {key->group, key->vnode, version->v.unique};
	struct db_object object;
	uint64_t length;
	int result = db_object_get(tree->checking->db, run->object, &object);

	if (result == -ENOMEM || result == -EINTR)
		return result;
	if (result || !object.refs || object.owner.group != owner.group ||
	    object.owner.vnode != owner.vnode || object.owner.unique != owner.unique) {
		report_fault(tree->checking,
			     "volume %u: vnode %u refers to object %llx, which is %s",
			     tree->volume->id, key->vnode, (unsigned long long)run->object,
			     result	    ? "unknown"
			     : !object.refs ? "dead"
					    : "another vnode's");
		return 0;
	}
	result = store_data_stat(tree->checking->core->data, &owner, run->object, &length);
	if (result == -ENOMEM)
		return result;
	if ((result || length < run->end) && is_object_used(tree, run->object))
		report_fault(tree->checking, "volume %u: object %llx of vnode %u %s%s",
			     tree->volume->id, (unsigned long long)run->object, key->vnode,
			     !result		 ? "is too short"
			     : result == -ENOENT ? "is missing"
						 : "cannot be read: ",
			     !result || result == -ENOENT ? "" : strerror(-result));
	return 0;
}

static int check_map(struct tree *tree, const struct vnode_key *key, const struct version *version)
{
	const struct store_content *content = &version->content;
	uint64_t blocks = (uint64_t)content->count * STORE_SLOT_BLOCKS;
	struct block_run run = {0};
	int result = 0;

	for (uint64_t i = 0, next; i <= blocks && !result; i = next) {
		const struct store_block *block = store_content_block(content, i);

		next = i < blocks ? store_content_next_block(content, i) : blocks + 1;
		if (i < blocks && next > blocks)
			next = blocks;
		if (i % STORE_SLOT_BLOCKS == 0 && store_content_damaged(content, i))
			report_fault(
				tree->checking,
				"volume %u: the map of vnode %u is damaged from offset %llu on",
				tree->volume->id, key->vnode, (unsigned long long)i * STORE_BLOCK);
		if (run.object && (!block || block->object != run.object)) {
			result = check_block_run(tree, key, version, &run);
			run.object = 0;
		}
		if (block)
			run = (struct block_run){block->object, i * STORE_BLOCK + block->filled};
	}
	if (store_data_is_lost(tree->checking->core->data, content))
		report_fault(tree->checking,
			     "volume %u: the disk did not take bytes of vnode %u, which are lost",
			     tree->volume->id, key->vnode);
	return result;
}

static int check_contents(struct tree *tree, const struct vnode_key *key,
			  const struct version *version)
{
	if (version->v.small && version->v.slots)
		report_fault(tree->checking, "volume %u: vnode %u has contents of two kinds",
			     tree->volume->id, key->vnode);
	if (version->v.small)
		return check_small_content(tree, key, version);
	return version->v.slots ? check_map(tree, key, version) : 0;
}

/* -- data -- */

struct data_check {
	struct tree *tree;
	const struct vnode_key *key;
	const struct version *version;
};

static int report_damaged_data(void *arg, uint64_t offset)
{
	const struct data_check *check = arg;

	if (scrub_confirm(check->tree->checking->fresh, check->key, check->version, offset))
		report_fault(check->tree->checking,
			     "volume %u: vnode %u: the bytes at offset %llu are damaged",
			     check->tree->volume->id, check->key->vnode,
			     (unsigned long long)offset);
	return 0;
}

static bool is_data_check_wanted(void *arg, uint64_t bytes)
{
	(void)bytes;
	return !get_check_state(((struct data_check *)arg)->tree->checking);
}

static int check_data(struct tree *tree, const struct vnode_key *key, const struct version *version)
{
	const struct store_owner owner = {key->group, key->vnode, version->v.unique};
	struct data_check check = {tree, key, version};
	const struct scrub_calls calls = {report_damaged_data, is_data_check_wanted, &check};
	int result = scrub_content(tree->checking->core, &owner, &version->content,
				   version->v.length, &calls);

	/* Another version has replaced it; if an object cannot be read, that was reported. */
	return result == -ENOENT || result == -EACCES ? 0 : result;
}

/* The same with all slots, which a row does not have. */
static int check_all_contents(struct tree *tree, const struct vnode_key *key,
			      const struct version *row)
{
	struct version *version;
	int result;

	if (!row->partial) {
		result = check_contents(tree, key, row);
		return result || !row->v.slots || !tree->checking->checker->data
			       ? result
			       : check_data(tree, key, row);
	}
	result = db_vnode_get_whole(tree->checking->db, key, &version);
	if (result)
		return result == -ENOENT || result == -EIO ? 0 : result;
	result = check_contents(tree, key, version);
	if (!result && tree->checking->checker->data)
		result = check_data(tree, key, version);
	version_unref(version);
	return result;
}

static int add_shown_vnode(struct tree *tree, const struct vnode_key *key,
			   const struct version *version)
{
	if (!grow_array(&tree->entry, &tree->room, tree->count, sizeof(*tree->entry)))
		return -ENOMEM;
	tree->entry[tree->count++] = (struct entry){.vnode = key->vnode,
						    .unique = version->v.unique,
						    .links = version->v.links,
						    .parent = version->v.parent,
						    .parent_unique = version->v.parent_unique,
						    .kind = version->v.kind};
	return 0;
}

/* The rows of a vnode that a clone shows come before those of later epochs: keep the last one. */
struct last_row {
	struct tree *tree;
	struct vnode_key key;
	struct version *version; /* NULL: none yet */
};

static int take_shown_row(struct last_row *last)
{
	struct tree *tree = last->tree;
	int result = 0;

	if (last->version && last->version->v.kind) {
		const struct vnode *v = &last->version->v;

		if ((v->kind == STORE_DIR) != (last->key.vnode & 1))
			report_fault(tree->checking, "volume %u: vnode %u has the wrong kind",
				     tree->volume->id, last->key.vnode);
		tree->checking->looked_at++;
		report_progress(tree->checking);
		tree->used_kib += space_blocks(v);
		result = check_all_contents(tree, &last->key, last->version);
		if (!result)
			result = add_shown_vnode(tree, &last->key, last->version);
	}
	version_unref(last->version);
	last->version = NULL;
	return result;
}

static int visit_group_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct last_row *last = arg;
	int result = get_check_state(last->tree->checking);

	if (!result && last->version && last->key.vnode != key->vnode)
		result = take_shown_row(last);
	if (result || key->epoch > last->tree->epoch || !version)
		return result;
	version_unref(last->version);
	last->key = *key;
	last->version = version_ref((struct version *)(uintptr_t)version);
	return 0;
}

static int collect_shown_vnodes(struct tree *tree)
{
	struct last_row last = {.tree = tree};
	struct vnode_key from = {.group = tree->volume->group};
	int result = db_group_rows(tree->checking->db, &from, visit_group_row, &last);

	if (!result)
		result = take_shown_row(&last);
	version_unref(last.version);
	return result;
}

static void check_entry_name(struct tree *tree, struct entry *dir, const char *name, uint32_t vnode,
			     uint32_t unique)
{
	struct entry *entry = find_shown_vnode(tree, vnode);

	if (!entry || entry->unique != unique) {
		report_fault(tree->checking, "volume %u: \"%s\" in directory %u names vnode %u, %s",
			     tree->volume->id, name, dir->vnode, vnode,
			     entry ? "which is another one" : "which is missing");
		return;
	}
	entry->seen++;
	if (entry->parent != dir->vnode || entry->parent_unique != dir->unique)
		report_fault(tree->checking,
			     "volume %u: vnode %u (\"%s\") is in directory %u but says %u",
			     tree->volume->id, vnode, name, dir->vnode, entry->parent);
	dir->subdirs += entry->kind == STORE_DIR;
}

static void check_dot_entries(struct tree *tree, const struct entry *dir,
			      const struct store_pages *pages)
{
	uint32_t own = 0, own_unique = 0, up = 0, up_unique = 0;

	store_pages_find(pages, ".", &own, &own_unique);
	store_pages_find(pages, "..", &up, &up_unique);
	if (own != dir->vnode || own_unique != dir->unique || up != dir->parent ||
	    up_unique != dir->parent_unique)
		report_fault(tree->checking, "volume %u: \".\" or \"..\" of directory %u is wrong",
			     tree->volume->id, dir->vnode);
}

static void check_directory_names(struct tree *tree, struct entry *dir,
				  const struct store_pages *pages)
{
	uint32_t cursor = 0, vnode, unique;
	const char *name;

	check_dot_entries(tree, dir, pages);
	while (store_pages_next(pages, &cursor, &name, &vnode, &unique))
		if (name[0] != '.' || (name[1] && (name[1] != '.' || name[2])))
			check_entry_name(tree, dir, name, vnode, unique);
}

static int load_shown_pages(struct tree *tree, const struct entry *dir, struct store_pages **pages)
{
	struct vnode_key key = {
		.group = tree->volume->group, .vnode = dir->vnode, .epoch = tree->epoch};
	struct version *version = NULL;
	int result = db_vnode_get(tree->checking->db, &key, &version);

	if (!result)
		result = db_directory_get(tree->checking->db, &key, version->v.length, pages);
	version_unref(version);
	return result;
}

static int check_directory(struct tree *tree, struct entry *dir)
{
	struct store_pages *pages;
	int result = load_shown_pages(tree, dir, &pages);

	if (result == -EIO || result == -EBADMSG) {
		report_fault(tree->checking, "volume %u: directory %u is damaged", tree->volume->id,
			     dir->vnode);
		return 0;
	}
	if (result)
		return result;
	check_directory_names(tree, dir, pages);
	store_pages_unref(pages);
	return get_check_state(tree->checking);
}

static int check_directories(struct tree *tree)
{
	int result = 0;

	for (size_t i = 0; i < tree->count && !result; i++)
		if (tree->entry[i].kind == STORE_DIR)
			result = check_directory(tree, &tree->entry[i]);
	return result;
}

static void check_links(struct tree *tree, const struct entry *entry)
{
	bool root = entry->vnode == STORE_ROOT_VNODE;
	uint32_t names = entry->kind == STORE_DIR ? !root : entry->links;

	if (entry->seen != names)
		report_fault(tree->checking, "volume %u: vnode %u has %u names in place of %u",
			     tree->volume->id, entry->vnode, entry->seen, names);
	if (entry->kind == STORE_DIR && entry->links != 2 + entry->subdirs)
		report_fault(tree->checking,
			     "volume %u: directory %u has %u subdirectories, and %u links",
			     tree->volume->id, entry->vnode, entry->subdirs, entry->links);
}

static void check_sums(struct tree *tree)
{
	const struct volrec *volume = tree->volume;
	const struct entry *root = find_shown_vnode(tree, STORE_ROOT_VNODE);

	for (size_t i = 0; i < tree->count; i++)
		check_links(tree, &tree->entry[i]);
	if (!(volume->cell & VOLUME_TEMPORARY) && (!root || root->unique != STORE_ROOT_UNIQUE))
		report_fault(tree->checking, "volume %u has no root directory", volume->id);
	if (tree->count != volume->files)
		report_fault(tree->checking, "volume %u has %zu vnodes in place of %llu",
			     volume->id, tree->count, (unsigned long long)volume->files);
	if (tree->used_kib != volume->used_kib)
		report_fault(tree->checking, "volume %u uses %llu KiB in place of %llu", volume->id,
			     (unsigned long long)tree->used_kib,
			     (unsigned long long)volume->used_kib);
}

/* Vnodes, directories, links, quota, contents. 0 or -errno. */
static int check_shown_volume(struct checking *checking, const struct volrec *volume)
{
	struct tree tree = {.checking = checking,
			    .volume = volume,
			    .epoch = volume->type == STORE_RW ? UINT32_MAX : volume->epoch};
	int result = collect_shown_vnodes(&tree);

	if (!result)
		result = check_directories(&tree);
	if (!result)
		check_sums(&tree);
	free(tree.entry);
	return result;
}

/*
 * -- views: each part of the check has one, because the log of the database cannot start again before the view ends. What
 * has changed between two parts gets a second look --
 */

static int check_in_view(struct checking *checking,
			 int (*check)(struct checking *checking, void *arg), void *arg)
{
	int result = db_begin_read(checking->db);

	if (result)
		return result;
	result = check(checking, arg);
	db_end_read(checking->db);
	return result ? result : get_check_state(checking);
}

/* -- all rows of all groups: their records and references -- */

#define VIEW_ROWS 100000 /* that one view has, and as many as the last vnode has more */

/* A walk through the rows of a group. */
struct group_walk {
	struct checking *checking;
	struct vnode_key from, last; /* last: of the row before; vnode 0: there is none */
	unsigned rows;		     /* in this view */
};

/* Each object of a slot once. */
static int add_slot_references(struct checking *checking, const struct store_slot *slot)
{
	int result = 0;

	for (uint32_t i = 0; slot && i < slot->count && !result; i++)
		if (store_slot_is_first(slot, i))
			result = add_number(&checking->objects, slot->block[i].object);
	return result;
}

static int note_version_references(struct checking *checking, const struct version *version)
{
	int result = version->v.small ? add_number(&checking->smalls, version->v.small) : 0;

	if (!result && version->v.map)
		result = add_number(&checking->maps, version->v.map);
	if (!result && version->content.first)
		result = add_slot_references(checking, version->content.first);
	return result;
}

/* Rows belong to a volume, or to one that is being removed. */
static int check_volume_of_group(struct checking *checking, uint32_t group)
{
	struct volrec volume;
	bool damaged, found;
	int result = db_volume_get(checking->db, group, &volume, &damaged);

	if (result != -ENOENT)
		return result;
	result = db_prune_has(checking->db, group, &found);
	if (!result && !found)
		report_fault(checking, "group %u has vnodes but no volume", group);
	return result;
}

/* 1: the walk goes on in another view. All rows of a vnode are seen in one, since contents may move from one to another. */
static int note_row_references(void *arg, const struct vnode_key *key,
			       const struct version *version)
{
	struct group_walk *walk = arg;
	struct checking *checking = walk->checking;
	int result = get_check_state(checking);

	if (!result && !walk->last.vnode)
		result = check_volume_of_group(checking, key->group);
	if (result)
		return result;
	if (walk->rows++ >= VIEW_ROWS && key->vnode != walk->last.vnode) {
		walk->from = *key;
		return 1;
	}
	walk->last = *key;
	if (version)
		return note_version_references(checking, version);
	report_fault(checking, "volume %u: the record of vnode %u (epoch %u) is damaged",
		     key->group, key->vnode, key->epoch);
	return 0;
}

static int check_some_rows(struct checking *checking, void *arg)
{
	struct group_walk *walk = arg;

	walk->rows = 0;
	return db_group_rows(checking->db, &walk->from, note_row_references, walk);
}

static int find_next_group(struct checking *checking, void *group)
{
	return db_group_next(checking->db, group);
}

static int check_groups(struct checking *checking)
{
	uint32_t group = 0;
	int result;

	while (!(result = check_in_view(checking, find_next_group, &group))) {
		struct group_walk walk = {.checking = checking, .from.group = group};

		do {
			result = check_in_view(checking, check_some_rows, &walk);
		} while (result == 1);
		if (result)
			return result;
	}
	return result == -ENOENT ? 0 : result;
}

/* -- contents that nothing refers to -- */

struct small_walk {
	struct checking *checking;
	uint64_t last;
	unsigned rows; /* in this view */
};

static int check_small_referenced(void *arg, uint64_t id)
{
	struct small_walk *walk = arg;
	struct checking *checking = walk->checking;

	walk->last = id;
	if (id <= checking->numbers && !has_number(&checking->smalls, id))
		report_fault(checking, "the contents %llx belong to no vnode",
			     (unsigned long long)id);
	return ++walk->rows >= VIEW_ROWS ? 1 : get_check_state(checking);
}

static int check_some_smalls(struct checking *checking, void *arg)
{
	struct small_walk *walk = arg;

	walk->rows = 0;
	return db_smalls(checking->db, walk->last, check_small_referenced, walk);
}

static int check_smalls(struct checking *checking)
{
	struct small_walk walk = {.checking = checking};
	int result;

	do {
		result = check_in_view(checking, check_some_smalls, &walk);
	} while (result == 1);
	return result;
}

/* -- maps -- */

static int add_dropped_map(void *arg, const struct db_drop *drop)
{
	return add_number(&((struct checking *)arg)->maps, drop->map);
}

static int note_slot_row(void *arg, const struct db_slot_key *key, const struct store_slot *slot)
{
	struct checking *checking = arg;

	if (!slot)
		report_fault(checking, "the part %u (epoch %u) of map %llx is damaged", key->slot,
			     key->epoch, (unsigned long long)key->map);
	return slot ? add_slot_references(checking, slot) : get_check_state(checking);
}

/* A map that is newer than the check belongs to a version that it has not seen. */
static int check_next_map(struct checking *checking, void *map)
{
	int result = db_map_next(checking->db, map);

	if (result)
		return result;
	if (*(uint64_t *)map <= checking->numbers && !has_number(&checking->maps, *(uint64_t *)map))
		report_fault(checking, "the map %llx belongs to no version",
			     (unsigned long long)*(uint64_t *)map);
	return db_slots_each(checking->db, *(uint64_t *)map, note_slot_row, checking);
}

static int check_dropped(struct checking *checking, void *arg)
{
	(void)arg;
	return db_drop_each(checking->db, add_dropped_map, checking);
}

static int check_maps(struct checking *checking)
{
	uint64_t map = 0;
	int result = check_in_view(checking, check_dropped, NULL);

	while (!result)
		result = check_in_view(checking, check_next_map, &map);
	return result == -ENOENT ? 0 : result;
}

/* -- objects: how many slots refer to each -- */

static uint64_t count_number(struct number_set *set, uint64_t number)
{
	size_t first;

	if (!has_number(set, number))
		return 0;
	for (first = set->at; first < set->count && set->number[first] == number; first++)
		;
	return first - set->at;
}

struct reference_count {
	uint64_t id, refs;
	uint64_t map[16]; /* of its vnode */
	unsigned maps;
	bool many;
};

static uint64_t count_slot(const struct store_slot *slot, uint64_t id)
{
	return store_slot_has(slot, id);
}

static int count_row_references(void *arg, const struct vnode_key *key,
				const struct version *version)
{
	struct reference_count *count = arg;
	bool known = !version->v.map;

	(void)key;
	if (version->content.first)
		count->refs += count_slot(version->content.first, count->id);
	for (unsigned i = 0; i < count->maps; i++)
		known |= count->map[i] == version->v.map;
	if (!known && count->maps == sizeof(count->map) / sizeof(count->map[0]))
		count->many = true;
	else if (!known)
		count->map[count->maps++] = version->v.map;
	return 0;
}

static int count_slot_references(void *arg, const struct db_slot_key *key,
				 const struct store_slot *slot)
{
	struct reference_count *count = arg;

	(void)key;
	count->refs += count_slot(slot, count->id);
	return 0;
}

/* Only the rows of maps that are to go are known. */
static int count_drop_references(void *arg, const struct db_drop *drop)
{
	struct reference_count *count = arg;

	for (unsigned i = 0; i < count->maps; i++)
		if (count->map[i] == drop->map)
			return 0;
	if (count->maps == sizeof(count->map) / sizeof(count->map[0]))
		count->many = true;
	else
		count->map[count->maps++] = drop->map;
	return 0;
}

/* The second look, in one view: what has changed since the first one is no fault. */
static int check_object_now(struct checking *checking, const struct db_object *object)
{
	struct reference_count count = {.id = object->id};
	struct db_object now;
	unsigned damaged = 0;
	int result = db_object_get(checking->fresh, object->id, &now);

	if (result)
		return result == -ENOENT ? 0 : result;
	result = db_vnode_rows(checking->fresh, object->owner.group, object->owner.vnode, &damaged,
			       count_row_references, &count);
	if (!result)
		result = db_drop_each(checking->fresh, count_drop_references, &count);
	for (unsigned i = 0; i < count.maps && !result; i++)
		result =
			db_slots_each(checking->fresh, count.map[i], count_slot_references, &count);
	if (!result && !count.many && count.refs != now.refs)
		report_fault(
			checking,
			"object %llx of vnode %u of volume %u has %llu references in place of %llu",
			(unsigned long long)object->id, object->owner.vnode, object->owner.group,
			(unsigned long long)now.refs, (unsigned long long)count.refs);
	return result;
}

static int check_object_references(void *arg, const struct db_object *object)
{
	struct checking *checking = arg;
	int result = 0;

	if (object->refs != count_number(&checking->objects, object->id)) {
		result = db_begin_read(checking->fresh);
		if (result)
			return result;
		result = check_object_now(checking, object);
		db_end_read(checking->fresh);
	}
	return result ? result : get_check_state(checking);
}

static int check_objects(struct checking *checking, void *arg)
{
	(void)arg;
	return db_objects(checking->db, false, check_object_references, checking);
}

/* A file without a row in the present database would never be removed. */
static int check_file_known(void *arg, const struct store_owner *owner, uint64_t id)
{
	struct checking *checking = arg;
	struct db_object object;
	int result = db_object_get(checking->fresh, id, &object);

	if (result == -ENOENT && !store_data_stat(checking->core->data, owner, id, &(uint64_t){0}))
		report_fault(checking,
			     "the file of object %llx of vnode %u of volume %u is unknown",
			     (unsigned long long)id, owner->vnode, owner->group);
	return result == -ENOENT ? get_check_state(checking) : result;
}

/* -- volumes -- */

/* It may have been removed meanwhile. */
static int check_one_volume(struct checking *checking, void *arg)
{
	const uint32_t *id = arg;
	struct volrec volume;
	bool damaged;
	int result = db_volume_get(checking->db, *id, &volume, &damaged);

	if (result)
		return result == -ENOENT ? 0 : result;
	if (!damaged)
		return check_shown_volume(checking, &volume);
	report_fault(checking, "volume %u: its record is damaged", volume.id);
	return 0;
}

static int check_all_volumes(struct checking *checking)
{
	struct volrec volume = {0};
	int result = 0;

	while (!result &&
	       volumes_next(&checking->core->volumes, volume.id, &volume) != STORE_VNOVOL)
		result = check_in_view(checking, check_one_volume, &volume.id);
	return result;
}

static int report_damaged_volume(void *arg, const struct volrec *volume, bool damaged)
{
	if (damaged)
		report_fault(arg, "volume %u: its record is damaged", volume->id);
	return 0;
}

static int count_objects(void *arg, const struct volrec *volume, bool damaged)
{
	struct checking *checking = arg;

	checking->all += damaged ? 0 : volume->files;
	return 0;
}

static void report_database_fault(void *arg, const char *line)
{
	report_fault(arg, "the database: %s", line);
}

static int check_database(struct checking *checking, void *arg)
{
	bool fast = checking->checker->fast;
	int result = db_volumes(checking->db, count_objects, checking);

	(void)arg;
	if (!result) {
		report_progress(checking);
		result = db_integrity(checking->db, fast, report_database_fault, checking);
	}
	if (!result && fast)
		result = db_volumes(checking->db, report_damaged_volume, checking);
	return result;
}

static int check_whole_store(struct checking *checking, bool fast)
{
	struct core *core = checking->core;
	int result = check_in_view(checking, check_database, NULL);

	if (result || fast)
		return result;
	/* No commit runs that has a number and is not visible yet. */
	txn_pause(core->txn);
	checking->numbers = core->numbers;
	txn_resume(core->txn);
	result = check_all_volumes(checking);
	if (!result)
		result = check_groups(checking);
	if (!result)
		result = check_maps(checking);
	if (!result)
		result = check_smalls(checking);
	if (!result)
		result = check_in_view(checking, check_objects, NULL);
	if (!result)
		result = store_data_list(core->data, check_file_known, checking);
	return result;
}

/* -- stopping -- */

/* Interrupts the database repeatedly, since an interrupt between two statements has no effect. */
static void *watch_for_stop(void *arg)
{
	struct checking *checking = arg;
	const struct store_checker *checker = checking->checker;

	pthread_mutex_lock(&checking->lock);
	do {
		if (checker->stopped(checker->arg))
			atomic_store(&checking->stop, true);
		if (get_check_state(checking))
			db_interrupt(checking->db);
		if (!checking->ended)
			monotonic_wait(&checking->wake, &checking->lock, monotonic_ns() + LOOK_NS);
	} while (!checking->ended);
	pthread_mutex_unlock(&checking->lock);
	return NULL;
}

/* The check, and beside it the thread that asks whether to stop. */
static int check_with_watcher(struct checking *checking)
{
	bool fast = checking->checker->fast;
	pthread_t watcher;
	int result;

	if (!checking->checker->stopped)
		return check_whole_store(checking, fast);
	result = pthread_create(&watcher, NULL, watch_for_stop, checking);
	if (result)
		return -result;
	result = check_whole_store(checking, fast);
	pthread_mutex_lock(&checking->lock);
	checking->ended = true;
	pthread_cond_signal(&checking->wake);
	pthread_mutex_unlock(&checking->lock);
	pthread_join(watcher, NULL);
	return get_check_state(checking) ? -EINTR : result;
}

/* Parts that SQLite cannot read are a finding. */
static int check_readable_store(struct checking *checking)
{
	int result = check_with_watcher(checking);

	if (result == -EIO) {
		report_fault(checking, "the database cannot be read completely");
		result = 0;
	}
	return result;
}

static int check_with_readers(struct core *core, const struct store_checker *checker)
{
	struct checking checking = {.core = core, .checker = checker};
	int result = readers_get(core->readers, &checking.db);

	if (result)
		return result > 0 ? -ENOSPC : result;
	pthread_mutex_init(&checking.lock, NULL);
	monotonic_cond_init(&checking.wake);
	result = readers_get(core->readers, &checking.fresh);
	if (!result) {
		result = check_readable_store(&checking);
		readers_put(core->readers, checking.fresh);
	}
	readers_put(core->readers, checking.db);
	pthread_cond_destroy(&checking.wake);
	pthread_mutex_destroy(&checking.lock);
	free(checking.smalls.number);
	free(checking.objects.number);
	free(checking.maps.number);
	return result ? (result > 0 ? -EIO : result) : checking.faults;
}

/* Several at once would have all readers, or wait for each other's. */
int store_check(struct store *store, const struct store_checker *checker)
{
	struct core *core = core_of(store);
	int result;

	pthread_mutex_lock(&core->checking);
	result = check_with_readers(core, checker);
	pthread_mutex_unlock(&core->checking);
	return result;
}
