/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the trees of volumes consistent after records were lost: one group of a volume and its clones after another. */
#include "volume/store/maint/rebuild.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volume/store/txn/space.h"

#define LOST_AND_FOUND "lost+found"
#define DEPTH_MOST     100000
#define LATER_VERSIONS 131072 /* beyond what clients may have seen */
#define LATER_UNIQUES  (1u << 20)

/* The newest version of a vnode of the read-write volume. */
struct item {
	struct vnode_key key;
	struct version *version; /* owned */
	struct store_pages *pages; /* of a directory; owned */
	char *name;		   /* of a directory; owned */
	uint32_t seen;		   /* names, in the directory that the record says */
	uint32_t subdirs;
	bool changed, pages_changed, all_pages;
	bool moved; /* its names are in another directory than its record says */
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
	unsigned
		found_dirs; /* directories for objects without a name that are full, or whose name is another object's */
	int result;
};

/* -- the vnodes of a group -- */

static int append_item(struct group *group, const struct vnode_key *key, struct version *version)
{
	if (group->count == group->room) {
		size_t room = group->room ? 2 * group->room : 1024;
		struct item *more = realloc(group->item, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		group->item = more;
		group->room = room;
	}
	group->item[group->count++] = (struct item){.key = *key, .version = version};
	return 0;
}

static void note_numbers(struct group *group, const struct vnode_key *key,
			 const struct version *version)
{
	uint32_t *last = &group->last_vnode[key->vnode & 1];

	if (*last < key->vnode)
		*last = key->vnode;
	if (group->last_epoch < key->epoch)
		group->last_epoch = key->epoch;
	if (version && group->last_unique < version->v.unique)
		group->last_unique = version->v.unique;
}

/* Rows come in the order of vnodes and epochs: the last one of a vnode counts. */
static int collect_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct group *group = arg;
	struct item *last = group->count ? &group->item[group->count - 1] : NULL;
	struct version *copy;

	note_numbers(group, key, version);
	copy = version ? version_copy(version) : version_new();
	if (!copy)
		return -ENOMEM;
	if (!last || last->key.vnode != key->vnode) {
		int result = append_item(group, key, copy);

		if (result)
			version_unref(copy);
		return result;
	}
	version_unref(last->version);
	last->version = copy;
	last->key = *key;
	return 0;
}

static void free_items(struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		version_unref(group->item[i].version);
		if (group->item[i].pages)
			store_pages_unref(group->item[i].pages);
		free(group->item[i].name);
	}
	free(group->item);
	group->item = NULL;
	group->count = group->room = 0;
}

/* Without the vnodes that are not in use. */
static void drop_unused_items(struct group *group)
{
	size_t kept = 0;

	for (size_t i = 0; i < group->count; i++)
		if (group->item[i].version->v.kind)
			group->item[kept++] = group->item[i];
		else
			version_unref(group->item[i].version);
	group->count = kept;
}

static struct item *find_item(const struct group *group, uint32_t vnode)
{
	size_t low = 0, high = group->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (group->item[middle].key.vnode < vnode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < group->count && group->item[low].key.vnode == vnode ? &group->item[low] : NULL;
}

static bool is_item_directory(const struct item *item)
{
	return item->version->v.kind == STORE_DIR;
}

static bool is_root_item(const struct item *item)
{
	return item->key.vnode == STORE_ROOT_VNODE;
}

/* -- directories -- */

static struct store_pages *new_pages_of(const struct item *dir)
{
	const struct vnode *v = &dir->version->v;

	return store_pages_new(dir->key.vnode, v->unique, v->parent, v->parent_unique);
}

/* The names of a page that can be read. */
static int add_page_names(struct item *dir, const uint8_t page[STORE_PAGE], unsigned number)
{
	uint32_t vnode, unique;
	unsigned slot = 0;
	const char *name;
	int result = 0;

	while (!result && store_page_next(page, number, &slot, &name, &vnode, &unique)) {
		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		result = store_pages_add(dir->pages, name, vnode, unique);
		if (result == -EEXIST || result == -EFBIG)
			result = 0;
	}
	return result;
}

/* Some pages are gone: a new directory of the names of the others. */
static int rebuild_item_pages(struct group *group, struct item *dir, unsigned count)
{
	uint8_t page[STORE_PAGE];
	int result = 0;

	dir->pages = new_pages_of(dir);
	if (!dir->pages)
		return -ENOMEM;
	dir->changed = dir->pages_changed = dir->all_pages = true;
	for (unsigned i = 0; i < count && !result; i++) {
		result = db_page_get(group->db, &dir->key, i, page);
		if (!result)
			result = add_page_names(dir, page, i);
		if (result == -EIO)
			result = 0;
	}
	return result;
}

static int load_item_pages(struct group *group, struct item *dir, uint8_t (*page)[STORE_PAGE])
{
	uint64_t length = dir->version->v.length;
	unsigned count = (unsigned)(length / STORE_PAGE);
	int result = -EBADMSG;

	if (length % STORE_PAGE == 0 && count && length / STORE_PAGE <= STORE_PAGES_MAX)
		result = db_pages_get(group->db, &dir->key, count, page);
	else
		count = 0;
	if (!result)
		result = store_pages_load(page, count, &dir->pages);
	return result == -EIO || result == -EBADMSG ? rebuild_item_pages(group, dir, count)
						    : result;
}

static int load_directories(struct group *group)
{
	uint8_t(*page)[STORE_PAGE] = malloc((size_t)STORE_PAGES_MAX * STORE_PAGE);
	int result = page ? 0 : -ENOMEM;

	for (size_t i = 0; i < group->count && !result; i++)
		if (is_item_directory(&group->item[i]))
			result = load_item_pages(group, &group->item[i], page);
	free(page);
	return result;
}

/* A new directory, with the rights of the root, or of administrators only. */
static int make_item_directory(struct group *group, uint32_t vnode, uint32_t unique)
{
	struct vnode_key key = {.group = group->rec.group, .vnode = vnode, .epoch = group->rec.epoch};
	struct version *version = version_new();
	const struct item *root;
	struct item *item;
	size_t at;

	if (version)
		version->acl = calloc(1, sizeof(*version->acl));
	if (!version || !version->acl || append_item(group, &key, version)) {
		version_unref(version);
		return -ENOMEM;
	}
	root = vnode == STORE_ROOT_VNODE ? NULL : find_item(group, STORE_ROOT_VNODE);
	if (root)
		*version->acl = *root->version->acl;
	else
		store_acl_add(version->acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	version->epoch = key.epoch;
	version->v = (struct vnode){.kind = STORE_DIR,
				    .mode = 0700,
				    .unique = unique,
				    .length = STORE_PAGE,
				    .owner = group->rec.owner,
				    .author = group->rec.owner,
				    .parent = STORE_ROOT_VNODE,
				    .parent_unique = STORE_ROOT_UNIQUE,
				    .client_mtime = (uint32_t)time(NULL),
				    .server_mtime = (uint32_t)time(NULL),
				    .incarnation = group->rebuild->incarnation,
				    .version = LATER_VERSIONS};
	item = &group->item[group->count - 1];
	item->pages = new_pages_of(item);
	if (!item->pages)
		return -ENOMEM;
	item->changed = item->pages_changed = item->all_pages = true;
	/* Keep the order. */
	for (at = group->count - 1; at && group->item[at - 1].key.vnode > vnode; at--) {
		struct item moved = group->item[at];

		group->item[at] = group->item[at - 1];
		group->item[at - 1] = moved;
	}
	return 0;
}

/* -- names -- */

/* The path of a directory, as far as it has names. */
static void format_path(const struct group *group, const struct item *dir, char *path, size_t size)
{
	char *at = path + size - 1;

	*at = '\0';
	for (int depth = 0; !is_root_item(dir) && dir->name && depth < DEPTH_MOST; depth++) {
		size_t length = strlen(dir->name);

		if ((size_t)(at - path) < length + 1)
			break;
		at -= length;
		memcpy(at, dir->name, length);
		*--at = '/';
		dir = find_item(group, dir->version->v.parent);
		if (!dir)
			break;
	}
	memmove(path, at, strlen(at) + 1);
}

static void tell_lost_name(struct group *group, const struct item *dir, const char *name)
{
	char path[700];

	group->lost++;
	format_path(group, dir, path, sizeof(path));
	rebuild_tell(group->rebuild, "lost: %s:%s/%s", group->rec.name, path, name);
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The object that a name leads to; NULL: it is lost. */
static struct item *find_named_item(const struct group *group, uint32_t vnode, uint32_t unique)
{
	struct item *item = find_item(group, vnode);

	return item && item->version->v.unique == unique && !is_root_item(item) ? item : NULL;
}

static bool is_parent(const struct item *dir, const struct item *item)
{
	return item->version->v.parent == dir->key.vnode &&
	       item->version->v.parent_unique == dir->version->v.unique;
}

static void set_parent(struct item *item, const struct item *dir)
{
	item->version->v.parent = dir->key.vnode;
	item->version->v.parent_unique = dir->version->v.unique;
	item->changed = true;
}

/* A directory has one name, other objects several in one directory. */
static bool may_have_name(const struct item *dir, const struct item *item, const char *name)
{
	if (!is_parent(dir, item))
		return false;
	return !is_item_directory(item) || !item->name || !strcmp(item->name, name);
}

static int count_name(struct item *dir, struct item *item, const char *name)
{
	item->seen++;
	if (!is_item_directory(item))
		return 0;
	dir->subdirs++;
	item->name = strdup(name);
	return item->name ? 0 : -ENOMEM;
}

/*
 * Count the names that lead to something. `strict`: where the record says so. Then objects without a name get that which
 * they have at another place.
 */
static int count_names(struct group *group, struct item *dir, bool strict)
{
	uint32_t cursor = 0, vnode, unique;
	const char *name;
	int result = 0;

	while (!result && store_pages_next(dir->pages, &cursor, &name, &vnode, &unique)) {
		struct item *item = is_dots(name) ? NULL : find_named_item(group, vnode, unique);

		if (!item || (!strict && item->seen && !item->moved))
			continue;
		if (!strict && !item->seen) {
			set_parent(item, dir);
			item->moved = true;
		}
		if (may_have_name(dir, item, name) && (!item->name || !is_item_directory(item)))
			result = count_name(dir, item, name);
	}
	return result;
}

static int fork_item_pages(struct item *dir)
{
	struct store_pages *now;

	if (dir->pages_changed)
		return 0;
	now = store_pages_fork(dir->pages);
	if (!now)
		return -ENOMEM;
	store_pages_unref(dir->pages);
	dir->pages = now;
	dir->changed = dir->pages_changed = true;
	return 0;
}

/* The first name that leads to nothing, in a copy; false: there is none. */
static bool find_lost_name(struct group *group, const struct item *dir, uint32_t *cursor,
			   char name[STORE_NAME_MAX + 2])
{
	uint32_t vnode, unique;
	const char *found;

	while (store_pages_next(dir->pages, cursor, &found, &vnode, &unique)) {
		const struct item *item;

		if (is_dots(found))
			continue;
		item = find_named_item(group, vnode, unique);
		if (item && may_have_name(dir, item, found))
			continue;
		snprintf(name, STORE_NAME_MAX + 2, "%s", found);
		return true;
	}
	return false;
}

static int drop_lost_names(struct group *group, struct item *dir)
{
	char name[STORE_NAME_MAX + 2];
	uint32_t cursor = 0;
	int result = 0;

	while (!result && find_lost_name(group, dir, &cursor, name)) {
		tell_lost_name(group, dir, name);
		result = fork_item_pages(dir);
		if (!result)
			result = store_pages_remove(dir->pages, name);
	}
	return result;
}

/* -- objects without a name -- */

/* Whether a directory hangs in the tree: else it is in a circle, or its own directory is gone. */
static bool is_connected(const struct group *group, const struct item *dir)
{
	for (int depth = 0; depth < DEPTH_MOST; depth++) {
		if (is_root_item(dir))
			return true;
		if (!dir->seen)
			return false;
		dir = find_item(group, dir->version->v.parent);
		if (!dir || !is_item_directory(dir))
			return false;
	}
	return false;
}

static const char *name_kind(const struct item *item)
{
	return is_item_directory(item)		       ? "dir"
	       : item->version->v.kind == STORE_SYMLINK ? "link"
							: "file";
}

/* "lost+found", then "lost+found.2" and so on. */
static void name_lost_and_found(const struct group *group, char name[32])
{
	if (group->found_dirs)
		snprintf(name, 32, LOST_AND_FOUND ".%u", group->found_dirs + 1);
	else
		snprintf(name, 32, LOST_AND_FOUND);
}

/* A new directory in the root. NULL: group->result. */
static struct item *make_lost_and_found(struct group *group, const char *name)
{
	/* The root may be the only directory, and a new one. */
	uint32_t last = group->last_vnode[1] ? group->last_vnode[1] : STORE_ROOT_VNODE;
	uint32_t vnode = last + 2, unique = ++group->rec.next_unique;
	struct item *root, *dir;

	group->last_vnode[1] = vnode;
	if (group->rec.fresh[1] < vnode + 2)
		group->rec.fresh[1] = vnode + 2;
	group->result = make_item_directory(group, vnode, unique);
	if (group->result)
		return NULL;
	root = find_item(group, STORE_ROOT_VNODE);
	dir = find_item(group, vnode);
	group->result = fork_item_pages(root);
	if (!group->result)
		group->result = store_pages_add(root->pages, name, vnode, unique);
	if (!group->result)
		group->result = count_name(root, dir, name);
	return group->result ? NULL : dir;
}

/* The directory for them: the one that is there, or a new one. NULL: group->result. */
static struct item *need_lost_and_found(struct group *group, char name[32])
{
	const struct item *root = find_item(group, STORE_ROOT_VNODE);
	uint32_t vnode, unique;

	name_lost_and_found(group, name);
	while (store_pages_find(root->pages, name, &vnode, &unique) == 0) {
		struct item *dir = find_named_item(group, vnode, unique);

		if (dir && is_item_directory(dir))
			return dir;
		group->found_dirs++;
		name_lost_and_found(group, name);
	}
	return make_lost_and_found(group, name);
}

/* Give an item a name there. *full: there is no room for more. */
static int name_lost_item(struct group *group, uint32_t vnode, bool *full)
{
	char folder[32], name[64];
	struct item *dir = need_lost_and_found(group, folder), *item;
	bool lost;
	int result;

	*full = false;
	if (!dir)
		return group->result;
	item = find_item(group, vnode);
	lost = item->version->v.flags & VNODE_LOST;
	snprintf(name, sizeof(name), "%s.%u.%u%s", name_kind(item), (unsigned)item->key.vnode,
		 (unsigned)item->version->v.unique, lost ? ".no-record" : "");
	result = fork_item_pages(dir);
	if (!result)
		result =
			store_pages_add(dir->pages, name, item->key.vnode, item->version->v.unique);
	*full = result == -EFBIG;
	if (result)
		return *full ? 0 : result;
	set_parent(item, dir);
	item->seen = 0;
	item->changed |= lost;
	group->rebuild->out->found++;
	rebuild_tell(group->rebuild, "found without a name: %s:/%s/%s", group->rec.name, folder,
		     name);
	return count_name(dir, item, name);
}

static int add_to_lost_and_found(struct group *group, uint32_t vnode)
{
	bool full;
	int result = name_lost_item(group, vnode, &full);

	while (!result && full) {
		group->found_dirs++;
		result = name_lost_item(group, vnode, &full);
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
		    (is_item_directory(item) ? is_connected(group, item) : item->seen))
			continue;
		result = add_to_lost_and_found(group, item->key.vnode);
	}
	return result;
}

/* -- writing -- */

/* Rows that a clone shows stay as they are. */
static int write_version(struct group *group, struct item *item)
{
	int result;

	if (item->key.epoch <= volrec_shared(&group->rec)) {
		item->key.epoch = item->version->epoch = group->rec.epoch;
		item->version->v.flags |= VNODE_OLDER;
	}
	result = db_vnode_delete(group->db, &item->key);
	return result ? result : db_vnode_insert(group->db, &item->key, item->version);
}

static int write_pages(struct group *group, const struct item *dir)
{
	uint32_t shared = volrec_shared(&group->rec);
	int result = 0;

	for (unsigned i = 0; i < store_pages_count(dir->pages) && !result; i++)
		if (dir->all_pages || store_pages_changed(dir->pages, i))
			result = db_page_put(group->db, &dir->key, shared, i,
					     store_pages_page(dir->pages, i));
	return result;
}

/* "..", and the counts of links. */
static int settle_links(struct item *item)
{
	struct vnode *v = &item->version->v;
	uint32_t links = is_item_directory(item) ? 2 + item->subdirs : item->seen;
	uint32_t up = 0, up_unique = 0;
	int result;

	item->changed |= v->links != links;
	v->links = links;
	if (!is_item_directory(item))
		return 0;
	store_pages_find(item->pages, "..", &up, &up_unique);
	if (up == v->parent && up_unique == v->parent_unique)
		return 0;
	result = fork_item_pages(item);
	return result ? result : store_pages_set(item->pages, "..", v->parent, v->parent_unique);
}

static int write_salvaged_item(struct group *group, struct item *item)
{
	struct vnode *v = &item->version->v;
	int result = settle_links(item);

	v->flags &= (uint8_t)~VNODE_LOST;
	if (result || !item->changed)
		return result;
	if (item->pages_changed) {
		v->length = (uint64_t)store_pages_count(item->pages) * STORE_PAGE;
		v->version += LATER_VERSIONS;
		v->incarnation = group->rebuild->incarnation;
	}
	/* First the row, whose epoch is that of the pages. */
	result = write_version(group, item);
	return result || !item->pages_changed ? result : write_pages(group, item);
}

static int write_items(struct group *group)
{
	int result = 0;

	group->rec.files = group->count;
	group->rec.used_kib = 0;
	for (size_t i = 0; i < group->count && !result; i++) {
		result = write_salvaged_item(group, &group->item[i]);
		group->rec.used_kib += space_blocks(&group->item[i].version->v);
		if (group->item[i].version->v.kind == STORE_FILE)
			group->rebuild->out->bytes += group->item[i].version->v.length;
	}
	return result;
}

/* -- the tree of a group -- */

static int need_root(struct group *group)
{
	struct item *root = find_item(group, STORE_ROOT_VNODE);

	if (root && is_item_directory(root) && root->version->v.unique == STORE_ROOT_UNIQUE)
		return 0;
	rebuild_tell(group->rebuild, "lost: %s:/ (the root directory; a new one is in its place)",
		     group->rec.name);
	group->lost++;
	if (root) {
		version_unref(root->version);
		memmove(root, root + 1,
			(size_t)(group->item + group->count - root - 1) * sizeof(*root));
		group->count--;
	}
	return make_item_directory(group, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE);
}

static int for_directories(struct group *group, int (*step)(struct group *group, struct item *dir))
{
	int result = 0;

	for (size_t i = 0; i < group->count && !result; i++)
		if (is_item_directory(&group->item[i]))
			result = step(group, &group->item[i]);
	return result;
}

static int count_right_names(struct group *group, struct item *dir)
{
	return count_names(group, dir, true);
}

static int count_other_names(struct group *group, struct item *dir)
{
	return count_names(group, dir, false);
}

static int mend_tree(struct group *group)
{
	int result;

	drop_unused_items(group);
	result = load_directories(group);
	if (!result)
		result = need_root(group);
	if (!result)
		result = for_directories(group, count_right_names);
	if (!result)
		result = for_directories(group, count_other_names);
	if (!result)
		result = for_directories(group, drop_lost_names);
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
