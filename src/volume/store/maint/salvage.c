/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the trees of volumes consistent after records were lost: one group of a volume and its clones after another. */
#include "volume/store/maint/rebuild.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/grow.h"
#include "volume/store/txn/space.h"

#define LOST_AND_FOUND "lost+found"
#define DEPTH_MOST     100000
#define LATER_VERSIONS 131072 /* beyond what clients may have seen */
#define LATER_UNIQUES  (1u << 20)

/* A name of a directory. */
struct entry {
	uint32_t vnode, unique;
	bool kept; /* it leads to an object of the directory */
	char *name;
};

/* The newest version of a vnode of the read-write volume. */
struct item {
	uint32_t vnode, epoch;
	struct vnode v;
	uint32_t names; /* kept ones that lead to it */
	bool made;	/* it has no record yet */
	bool changed;	/* the record */
	bool moved;	/* its names are in another directory than its record says */
	/* Of a directory. */
	struct entry *entry;
	size_t count, room;
	uint32_t subdirs;
	bool renamed; /* its names or ".." are others than its pages have */
};

/* The work on one group. */
struct group {
	struct db *db;
	struct rebuild *rebuild;
	uint64_t lost;	   /* names whose object is gone */
	struct volrec rec; /* of the read-write volume */
	struct item *item; /* ascending by vnode */
	size_t count, room;
	uint32_t last_vnode[2], last_unique, last_epoch; /* of all rows; [1]: of directories */
	/* The directory for objects without a name, its name, and its pages; 0: none was needed yet, or it is full. */
	uint32_t found;
	char found_name[32];
	struct store_pages *found_pages;
	unsigned found_dirs; /* those that are full, or whose name is another object's */
};

/* -- the vnodes of a group -- */

static int append_item(struct group *group, uint32_t vnode, uint32_t epoch, const struct vnode *v)
{
	if (!grow_array(&group->item, &group->room, group->count, sizeof(*group->item)))
		return -ENOMEM;
	group->item[group->count++] = (struct item){.vnode = vnode, .epoch = epoch, .v = *v};
	return 0;
}

/* Rows come in the order of vnodes and epochs: the last one of a vnode counts. One that is damaged is none. */
static int collect_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	static const struct vnode none;
	struct group *group = arg;
	struct item *last = group->count ? &group->item[group->count - 1] : NULL;
	const struct vnode *v = version ? &version->v : &none;

	if (group->last_vnode[key->vnode & 1] < key->vnode)
		group->last_vnode[key->vnode & 1] = key->vnode;
	if (group->last_epoch < key->epoch)
		group->last_epoch = key->epoch;
	if (group->last_unique < v->unique)
		group->last_unique = v->unique;
	if (!last || last->vnode != key->vnode)
		return append_item(group, key->vnode, key->epoch, v);
	last->epoch = key->epoch;
	last->v = *v;
	return 0;
}

static void free_item(struct item *item)
{
	for (size_t i = 0; i < item->count; i++)
		free(item->entry[i].name);
	free(item->entry);
}

static void free_items(struct group *group)
{
	for (size_t i = 0; i < group->count; i++)
		free_item(&group->item[i]);
	free(group->item);
	store_pages_unref(group->found_pages);
}

/* Without the vnodes that are not in use. */
static void drop_unused_items(struct group *group)
{
	size_t kept = 0;

	for (size_t i = 0; i < group->count; i++)
		if (group->item[i].v.kind)
			group->item[kept++] = group->item[i];
	group->count = kept;
}

/* The place of a vnode, or of the one behind it. */
static size_t seek_item(const struct group *group, uint32_t vnode)
{
	size_t low = 0, high = group->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (group->item[middle].vnode < vnode)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct item *find_item(const struct group *group, uint32_t vnode)
{
	size_t at = seek_item(group, vnode);

	return at < group->count && group->item[at].vnode == vnode ? &group->item[at] : NULL;
}

static bool is_item_directory(const struct item *item)
{
	return item->v.kind == STORE_DIR;
}

static bool is_root_item(const struct item *item)
{
	return item->vnode == STORE_ROOT_VNODE;
}

/* -- reading names -- */

static int add_entry(struct item *dir, const char *name, const struct item *child, bool kept)
{
	struct entry entry = {child->vnode, child->v.unique, kept, strdup(name)};

	if (entry.name && grow_array(&dir->entry, &dir->room, dir->count, sizeof(*dir->entry))) {
		dir->entry[dir->count++] = entry;
		return 0;
	}
	free(entry.name);
	return -ENOMEM;
}

static struct store_pages *new_pages_of(const struct item *dir)
{
	return store_pages_new(dir->vnode, dir->v.unique, dir->v.parent, dir->v.parent_unique);
}

/* The names of one page that can be read. */
static int add_page_names(struct store_pages *pages, const uint8_t page[STORE_PAGE],
			  unsigned number)
{
	uint32_t vnode, unique;
	unsigned slot = 0;
	const char *name;
	int result = 0;

	while (!result && store_page_next(page, number, &slot, &name, &vnode, &unique)) {
		result = store_pages_add(pages, name, vnode, unique);
		if (result == -EEXIST || result == -EFBIG)
			result = 0;
	}
	return result;
}

/* Some pages are gone: the names of the others. */
static int load_sound_pages(struct group *group, struct item *dir, struct store_pages **pages)
{
	const struct vnode_key key = {group->rec.group, dir->vnode, dir->epoch};
	uint8_t page[STORE_PAGE];
	int result = 0;

	*pages = new_pages_of(dir);
	if (!*pages)
		return -ENOMEM;
	dir->renamed = true;
	for (unsigned i = 0; i < STORE_PAGES_MAX && i < dir->v.length / STORE_PAGE && !result;
	     i++) {
		result = db_page_get(group->db, &key, i, page);
		if (!result)
			result = add_page_names(*pages, page, i);
		if (result == -EIO)
			result = 0;
	}
	return result;
}

static int load_entries(struct group *group, struct item *dir)
{
	const struct vnode_key key = {group->rec.group, dir->vnode, dir->epoch};
	uint32_t cursor = 0, vnode, unique;
	struct store_pages *pages = NULL;
	const char *name;
	int result = db_directory_get(group->db, &key, dir->v.length, &pages);

	if (result == -EIO || result == -EBADMSG)
		result = load_sound_pages(group, dir, &pages);
	while (!result && store_pages_next(pages, &cursor, &name, &vnode, &unique)) {
		const struct item child = {.vnode = vnode, .v.unique = unique};

		if (!strcmp(name, ".."))
			dir->renamed |= vnode != dir->v.parent || unique != dir->v.parent_unique;
		else if (strcmp(name, ".") != 0)
			result = add_entry(dir, name, &child, false);
	}
	store_pages_unref(pages);
	return result;
}

static int load_directories(struct group *group)
{
	int result = 0;

	for (size_t i = 0; i < group->count && !result; i++)
		if (is_item_directory(&group->item[i]))
			result = load_entries(group, &group->item[i]);
	return result;
}

/* -- names that lead to something -- */

/* The object that a name leads to; NULL: it is lost. */
static struct item *find_named_item(const struct group *group, const struct entry *entry)
{
	struct item *item = find_item(group, entry->vnode);

	return item && item->v.unique == entry->unique && !is_root_item(item) ? item : NULL;
}

static bool is_parent(const struct item *dir, const struct item *item)
{
	return item->v.parent == dir->vnode && item->v.parent_unique == dir->v.unique;
}

static void set_parent(struct item *item, const struct item *dir)
{
	item->v.parent = dir->vnode;
	item->v.parent_unique = dir->v.unique;
	item->changed = true;
	item->renamed |= is_item_directory(item);
}

static void count_kept_name(struct item *dir, struct item *item)
{
	item->names++;
	dir->subdirs += is_item_directory(item);
}

/*
 * Keep the names of a directory that lead to something: where the record says so, or then, those of objects without a name. A
 * directory has one name, other objects several in one directory.
 */
static void keep_entries(struct group *group, struct item *dir, bool others)
{
	for (size_t i = 0; i < dir->count; i++) {
		struct entry *entry = &dir->entry[i];
		struct item *item = entry->kept ? NULL : find_named_item(group, entry);

		if (item && others && !item->names) {
			set_parent(item, dir);
			item->moved = true;
		}
		if (!item || item->moved != others || !is_parent(dir, item) ||
		    (is_item_directory(item) && item->names))
			continue;
		entry->kept = true;
		count_kept_name(dir, item);
	}
}

/* The path of a directory, as far as it has names. */
static void format_path(const struct group *group, const struct item *dir, char *path, size_t size)
{
	char *at = path + size - 1;

	*at = '\0';
	for (int depth = 0; !is_root_item(dir) && depth < DEPTH_MOST; depth++) {
		const struct item *above = find_item(group, dir->v.parent);
		const char *name = NULL;
		size_t length;

		for (size_t i = 0; above && i < above->count && !name; i++)
			if (above->entry[i].kept && above->entry[i].vnode == dir->vnode)
				name = above->entry[i].name;
		length = name ? strlen(name) : 0;
		if (!length || (size_t)(at - path) < length + 1)
			break;
		at -= length;
		memcpy(at, name, length);
		*--at = '/';
		dir = above;
	}
	memmove(path, at, strlen(at) + 1);
}

static void report_lost_entries(struct group *group, struct item *dir)
{
	char path[700] = "";
	bool known = false;

	for (size_t i = 0; i < dir->count; i++) {
		if (dir->entry[i].kept)
			continue;
		if (!known)
			format_path(group, dir, path, sizeof(path));
		known = dir->renamed = true;
		group->lost++;
		rebuild_tell(group->rebuild, "lost: %s:%s/%s", group->rec.name, path,
			     dir->entry[i].name);
	}
}

static void settle_entries(struct group *group)
{
	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < group->count; i++)
			keep_entries(group, &group->item[i], others);
	for (size_t i = 0; i < group->count; i++)
		report_lost_entries(group, &group->item[i]);
}

/* -- objects without a name -- */

/* A new directory, for which there is no record yet. */
static int make_item_directory(struct group *group, uint32_t vnode, uint32_t unique)
{
	const struct vnode v = {.kind = STORE_DIR,
				.mode = 0700,
				.unique = unique,
				.owner = group->rec.owner,
				.author = group->rec.owner,
				.parent = STORE_ROOT_VNODE,
				.parent_unique = STORE_ROOT_UNIQUE,
				.client_mtime = (uint32_t)time(NULL),
				.server_mtime = (uint32_t)time(NULL)};
	size_t at = seek_item(group, vnode);
	struct item made;

	if (append_item(group, vnode, group->rec.epoch, &v))
		return -ENOMEM;
	made = group->item[group->count - 1];
	made.made = made.changed = made.renamed = true;
	memmove(&group->item[at + 1], &group->item[at],
		(group->count - 1 - at) * sizeof(*group->item));
	group->item[at] = made;
	return 0;
}

/* Whether a directory hangs in the tree: else it is in a circle, or its own directory is gone. */
static bool is_connected(const struct group *group, const struct item *dir)
{
	for (int depth = 0; depth < DEPTH_MOST; depth++) {
		if (is_root_item(dir))
			return true;
		if (!dir->names)
			return false;
		dir = find_item(group, dir->v.parent);
		if (!dir || !is_item_directory(dir))
			return false;
	}
	return false;
}

static int make_lost_and_found(struct group *group)
{
	/* The root may be the only directory, and a new one. */
	uint32_t last = group->last_vnode[1] ? group->last_vnode[1] : STORE_ROOT_VNODE;
	uint32_t vnode = last + 2, unique = ++group->rec.next_unique;
	int result = make_item_directory(group, vnode, unique);
	struct item *root = find_item(group, STORE_ROOT_VNODE), *dir = find_item(group, vnode);

	if (!result)
		result = add_entry(root, group->found_name, dir, true);
	if (result)
		return result;
	root->renamed = true;
	count_kept_name(root, dir);
	group->last_vnode[1] = group->found = vnode;
	if (group->rec.fresh[1] < vnode + 2)
		group->rec.fresh[1] = vnode + 2;
	return 0;
}

/* A directory in the root with the name; 0: another object has it. */
static int find_lost_and_found(struct group *group)
{
	const struct item *root = find_item(group, STORE_ROOT_VNODE);

	for (size_t i = 0; i < root->count; i++)
		if (root->entry[i].kept && !strcmp(root->entry[i].name, group->found_name)) {
			const struct item *dir = find_item(group, root->entry[i].vnode);

			group->found = dir && is_item_directory(dir) ? dir->vnode : 0;
			return 0;
		}
	return make_lost_and_found(group);
}

static int build_pages(const struct item *dir, struct store_pages **pages)
{
	int result = 0;

	*pages = new_pages_of(dir);
	if (!*pages)
		return -ENOMEM;
	for (size_t i = 0; i < dir->count && !result; i++)
		if (dir->entry[i].kept)
			result = store_pages_add(*pages, dir->entry[i].name, dir->entry[i].vnode,
						 dir->entry[i].unique);
	return result;
}

/* "lost+found", then "lost+found.2" and so on: the one that is there, or a new one. */
static int need_lost_and_found(struct group *group)
{
	int result = 0;

	for (; !group->found && !result; group->found_dirs += !group->found) {
		snprintf(group->found_name, sizeof(group->found_name), LOST_AND_FOUND);
		if (group->found_dirs)
			snprintf(group->found_name, sizeof(group->found_name), LOST_AND_FOUND ".%u",
				 group->found_dirs + 1);
		result = find_lost_and_found(group);
	}
	if (!result && !group->found_pages)
		result = build_pages(find_item(group, group->found), &group->found_pages);
	return result;
}

/* A directory of a circle has a name, which goes. */
static void take_name_away(struct group *group, struct item *item)
{
	struct item *dir = item->names ? find_item(group, item->v.parent) : NULL;

	for (size_t i = 0; dir && i < dir->count; i++)
		if (dir->entry[i].kept && dir->entry[i].vnode == item->vnode) {
			dir->entry[i].kept = false;
			dir->renamed = true;
			dir->subdirs--;
		}
	item->names = 0;
}

/* In the present directory. -EFBIG: it is full. */
static int name_lost_item(struct group *group, uint32_t vnode)
{
	struct item *dir = find_item(group, group->found), *item = find_item(group, vnode);
	bool lost = item->v.flags & VNODE_LOST;
	char name[64];
	int result;

	snprintf(name, sizeof(name), "%s.%u.%u%s",
		 is_item_directory(item)	 ? "dir"
		 : item->v.kind == STORE_SYMLINK ? "link"
						 : "file",
		 (unsigned)item->vnode, (unsigned)item->v.unique, lost ? ".no-record" : "");
	result = store_pages_add(group->found_pages, name, vnode, item->v.unique);
	if (!result)
		result = add_entry(dir, name, item, true);
	if (result)
		return result;
	dir->renamed = true;
	take_name_away(group, item);
	set_parent(item, dir);
	count_kept_name(dir, item);
	group->rebuild->out->found++;
	rebuild_tell(group->rebuild, "found without a name: %s:/%s/%s", group->rec.name,
		     group->found_name, name);
	return 0;
}

static int find_lost_place(struct group *group, uint32_t vnode)
{
	int result = -EFBIG;

	while (result == -EFBIG) {
		result = need_lost_and_found(group);
		if (!result)
			result = name_lost_item(group, vnode);
		if (result != -EFBIG)
			break;
		store_pages_unref(group->found_pages);
		group->found_pages = NULL;
		group->found = 0;
		group->found_dirs++;
	}
	return result;
}

/* New items keep the order, so that numbers and not places are kept between the steps. */
static int find_places(struct group *group)
{
	int result = 0;

	for (size_t i = 0; i < group->count && !result; i++) {
		const struct item *item = &group->item[i];

		if (is_root_item(item) ||
		    (is_item_directory(item) ? is_connected(group, item) : item->names))
			continue;
		result = find_lost_place(group, item->vnode);
	}
	return result;
}

/* -- writing -- */

/* The rights of the root, or of administrators only. */
static int choose_acl(struct group *group, const struct item *item, struct version *version)
{
	const struct vnode_key key = {group->rec.group, STORE_ROOT_VNODE, UINT32_MAX};
	struct version *root = NULL;
	int result = is_root_item(item) ? -ENOENT : db_vnode_get(group->db, &key, &root);

	version->acl = calloc(1, sizeof(*version->acl));
	if (!version->acl)
		result = -ENOMEM;
	else if (!result && root->acl)
		*version->acl = *root->acl;
	else
		store_acl_add(version->acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	version_unref(root);
	return result == -ENOENT ? 0 : result;
}

/* The record to be changed. */
static int get_record(struct group *group, const struct item *item, struct version **version)
{
	const struct vnode_key key = {group->rec.group, item->vnode, item->epoch};
	struct version *old = NULL;
	int result = item->made ? 0 : db_vnode_get(group->db, &key, &old);

	*version = result ? NULL : old ? version_copy(old) : version_new();
	version_unref(old);
	if (!result && !*version)
		result = -ENOMEM;
	return result || !item->made ? result : choose_acl(group, item, *version);
}

/* Rows that a clone shows stay as they are. */
static int write_item_record(struct group *group, struct item *item)
{
	struct vnode_key key = {group->rec.group, item->vnode, item->epoch};
	struct version *version = NULL;
	int result = get_record(group, item, &version);

	if (!result && item->epoch <= volrec_shared(&group->rec)) {
		key.epoch = item->epoch = group->rec.epoch;
		item->v.flags |= VNODE_OLDER;
	}
	if (!result)
		result = db_vnode_delete(group->db, &key);
	if (!result) {
		version->v = item->v;
		version->epoch = key.epoch;
		result = db_vnode_insert(group->db, &key, version);
	}
	version_unref(version);
	return result;
}

static int write_pages(struct group *group, const struct item *dir, const struct store_pages *pages)
{
	struct vnode_key key = {group->rec.group, dir->vnode, volrec_shared(&group->rec)};
	int result = db_pages_delete(group->db, &key);

	key.epoch = dir->epoch;
	for (unsigned i = 0; i < store_pages_count(pages) && !result; i++)
		result = db_page_put(group->db, &key, volrec_shared(&group->rec), i,
				     store_pages_page(pages, i));
	return result;
}

/* First the row, whose epoch is that of the pages. */
static int write_directory(struct group *group, struct item *dir)
{
	struct store_pages *pages;
	int result = build_pages(dir, &pages);

	if (!result) {
		dir->v.length = (uint64_t)store_pages_count(pages) * STORE_PAGE;
		dir->v.version += LATER_VERSIONS;
		dir->v.incarnation = group->rebuild->incarnation;
		result = write_item_record(group, dir);
	}
	if (!result)
		result = write_pages(group, dir, pages);
	store_pages_unref(pages);
	return result;
}

static int write_mended_item(struct group *group, struct item *item)
{
	uint32_t links = is_item_directory(item) ? 2 + item->subdirs : item->names;

	item->changed |= item->v.links != links || item->v.flags & VNODE_LOST;
	item->v.links = links;
	item->v.flags &= (uint8_t)~VNODE_LOST;
	if (item->renamed)
		return write_directory(group, item);
	return item->changed ? write_item_record(group, item) : 0;
}

static int write_items(struct group *group)
{
	int result = 0;

	group->rec.files = group->count;
	group->rec.used_kib = 0;
	for (size_t i = 0; i < group->count && !result; i++) {
		const struct vnode *v = &group->item[i].v;

		result = write_mended_item(group, &group->item[i]);
		group->rec.used_kib += space_blocks(v);
		group->rebuild->out->bytes += v->kind == STORE_FILE ? v->length : 0;
	}
	return result;
}

/* -- the tree of a group -- */

static int need_root(struct group *group)
{
	struct item *root = find_item(group, STORE_ROOT_VNODE);

	if (root && is_item_directory(root) && root->v.unique == STORE_ROOT_UNIQUE)
		return 0;
	rebuild_tell(group->rebuild, "lost: %s:/ (the root directory; a new one is in its place)",
		     group->rec.name);
	group->lost++;
	if (root) {
		free_item(root);
		memmove(root, root + 1,
			(size_t)(group->item + group->count - root - 1) * sizeof(*root));
		group->count--;
	}
	return make_item_directory(group, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE);
}

static int mend_tree(struct group *group)
{
	int result;

	drop_unused_items(group);
	result = load_directories(group);
	if (!result)
		result = need_root(group);
	if (!result)
		settle_entries(group);
	if (!result)
		result = find_places(group);
	return result ? result : write_items(group);
}

/* -- records of volumes -- */

struct volume_list {
	struct volrec *rec;
	size_t count, room;
	uint32_t last; /* the greatest id */
};

static int append_volume(void *arg, const struct volrec *volume, bool damaged)
{
	struct volume_list *list = arg;

	if (list->last < volume->id)
		list->last = volume->id;
	if (damaged)
		return 0;
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct volrec *more = realloc(list->rec, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->rec = more;
		list->room = room;
	}
	list->rec[list->count++] = *volume;
	return 0;
}

static struct volrec *find_volume_of(const struct volume_list *list, uint32_t group, uint8_t type)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->rec[i].group == group && list->rec[i].type == type)
			return &list->rec[i];
	return NULL;
}

static void make_volume_record(struct group *group, uint32_t id)
{
	group->rec = (struct volrec){.id = id,
				     .group = id,
				     .type = STORE_RW,
				     .epoch = 1,
				     .created = (uint32_t)time(NULL),
				     .copied = (uint32_t)time(NULL),
				     .updated = (uint32_t)time(NULL)};
	snprintf(group->rec.name, sizeof(group->rec.name), "rescued.%u", (unsigned)id);
	rebuild_tell(group->rebuild,
		     "the record of volume %u is lost: it is named %s now, and has no quota",
		     (unsigned)id, group->rec.name);
}

/* What the record says must not be behind what there is. */
static void raise_record_numbers(struct group *group, struct volume_list *list)
{
	static const uint8_t types[2] = {STORE_RO, STORE_BACKUP};
	struct volrec *rec = &group->rec;

	if (rec->epoch < group->last_epoch)
		rec->epoch = group->last_epoch;
	/* Directories have odd numbers, also where no row of one is left. */
	if (group->last_vnode[1] < STORE_ROOT_VNODE)
		group->last_vnode[1] = STORE_ROOT_VNODE;
	for (int i = 0; i < 2; i++) {
		const struct volrec *clone = find_volume_of(list, rec->group, types[i]);

		if (clone) {
			rec->clone_id[i] = clone->id;
			rec->clone_epoch[i] = clone->epoch;
		} else if (!rec->clone_id[i]) {
			rec->clone_id[i] = ++list->last;
		}
		if (rec->epoch <= rec->clone_epoch[i])
			rec->epoch = rec->clone_epoch[i] + 1;
		if (rec->fresh[i] < group->last_vnode[i] + 2)
			rec->fresh[i] = group->last_vnode[i] + 2;
	}
	if (rec->next_unique <= group->last_unique)
		rec->next_unique = group->last_unique + LATER_UNIQUES;
}

/* -- clones -- */

struct measured {
	uint32_t epoch, vnode;
	uint64_t last_kib; /* of the vnode; 0: it is not in use */
	uint64_t files, kib;
};

static int measure_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct measured *measured = arg;

	if (measured->vnode != key->vnode) {
		measured->files += measured->last_kib != 0;
		measured->kib += measured->last_kib;
		measured->last_kib = 0;
		measured->vnode = key->vnode;
	}
	if (key->epoch <= measured->epoch && version)
		measured->last_kib = version->v.kind ? space_blocks(&version->v) : 0;
	return 0;
}

/* The record of a clone, made from that of the read-write volume if it is lost. */
static int mend_clone(struct group *group, const struct volume_list *list, int which)
{
	static const uint8_t types[2] = {STORE_RO, STORE_BACKUP};
	static const char *const suffixes[2] = {".readonly", ".backup"};
	const struct volrec *found = find_volume_of(list, group->rec.group, types[which]);
	struct volrec clone = found ? *found : group->rec;
	struct measured measured = {.epoch = group->rec.clone_epoch[which]};
	struct vnode_key from = {.group = group->rec.group};
	int result = db_group_rows(group->db, &from, measure_row, &measured);

	if (result)
		return result;
	measure_row(&measured, &(struct vnode_key){.vnode = UINT32_MAX}, NULL);
	if (!found) {
		clone.id = group->rec.clone_id[which];
		clone.type = types[which];
		clone.epoch = measured.epoch;
		memset(clone.clone_id, 0, sizeof(clone.clone_id));
		memset(clone.clone_epoch, 0, sizeof(clone.clone_epoch));
		snprintf(clone.name, sizeof(clone.name), "%.64s%s", group->rec.name,
			 suffixes[which]);
	} else if (clone.files == measured.files && clone.used_kib == measured.kib) {
		return 0;
	}
	clone.files = measured.files;
	clone.used_kib = measured.kib;
	return db_volume_put(group->db, &clone);
}

static int mend_clones(struct group *group, const struct volume_list *list)
{
	int result = 0;

	for (int i = 0; i < 2 && !result; i++)
		if (group->rec.clone_epoch[i])
			result = mend_clone(group, list, i);
	return result;
}

/* -- groups -- */

static int mend_group(struct group *group, struct volume_list *list, uint32_t id)
{
	struct vnode_key from = {.group = id};
	const struct volrec *rec = find_volume_of(list, id, STORE_RW);
	int result;

	if (rec)
		group->rec = *rec;
	else
		make_volume_record(group, id);
	/* Clones are shown as they are, before the trees of read-write volumes get other rows. */
	result = db_group_rows(group->db, &from, collect_row, group);
	if (result)
		return result;
	raise_record_numbers(group, list);
	result = mend_clones(group, list);
	if (!result)
		result = mend_tree(group);
	group->rebuild->out->files += group->count;
	group->rebuild->out->volumes++;
	return result ? result : db_volume_put(group->db, &group->rec);
}

static int mend_one_group(struct rebuild *rebuild, struct db *db, struct volume_list *list,
			  uint32_t id, uint64_t *lost)
{
	struct group group = {.db = db, .rebuild = rebuild};
	bool removed;
	int result = db_prune_has(db, id, &removed);

	if (!result && !removed)
		result = mend_group(&group, list, id);
	*lost += group.lost;
	free_items(&group);
	return result;
}

int rebuild_trees(struct rebuild *rebuild, struct db *db, uint64_t *lost)
{
	struct volume_list list = {0};
	uint32_t id = 0;
	int result = db_volumes(db, append_volume, &list);

	while (!result && !(result = db_group_next(db, &id)))
		result = mend_one_group(rebuild, db, &list, id, lost);
	if (result == -ENOENT)
		result = 0;
	/* Those of which no vnode is left. */
	for (size_t i = 0; i < list.count && !result; i++) {
		id = list.rec[i].group - 1;
		if (list.rec[i].type != STORE_RW ||
		    (!db_group_next(db, &id) && id == list.rec[i].group))
			continue;
		result = mend_one_group(rebuild, db, &list, list.rec[i].group, lost);
	}
	free(list.rec);
	return result;
}
