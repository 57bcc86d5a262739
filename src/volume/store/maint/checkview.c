/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking one volume or clone as it is shown. */
#include "volume/store/maint/checking.h"

#include <stdlib.h>

#include "volume/store/data/data_lost.h"
#include "volume/store/txn/space.h"

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

static struct entry *find_shown_vnode(struct tree *tree, uint32_t vnode)
{
	size_t low = 0, high = tree->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tree->entry[middle].vnode < vnode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tree->count && tree->entry[low].vnode == vnode ? &tree->entry[low] : NULL;
}

/* -- contents -- */

static int check_small_content(struct tree *tree, const struct vnode_key *key,
			       const struct version *version)
{
	struct db_small small = {.id = version->v.small, .group = key->group, .vnode = key->vnode};
	struct blob *blob = NULL;
	int result = db_small_get(tree->checking->db, &small, &blob);

	if (result == -ENOMEM || result == -EINTR)
		return result;
	if (result || blob->length != version->v.length)
		checking_fault(tree->checking, "volume %u: the contents of vnode %u are %s",
			       tree->volume->id, key->vnode,
			       result == -ENOENT ? "missing" : "damaged");
	blob_unref(blob);
	return 0;
}

/* Whether the object is still in use: else it may be gone by now. */
static bool is_object_used(struct tree *tree, uint64_t id)
{
	struct db_object object;

	return !db_object_get(tree->checking->fresh, id, &object) && !object.dead;
}

static int check_extent(struct tree *tree, const struct vnode_key *key,
			const struct version *version, const struct store_extent *extent)
{
	struct store_owner owner = {key->group, key->vnode, version->v.unique};
	const struct store_content lost = {.extent = (struct store_extent *)(uintptr_t)extent,
					   .count = 1};
	struct db_object object;
	uint64_t length;
	int result = db_object_get(tree->checking->db, extent->object, &object);

	if (result == -ENOMEM || result == -EINTR)
		return result;
	if (result || object.dead || object.owner.group != owner.group ||
	    object.owner.vnode != owner.vnode || object.owner.unique != owner.unique) {
		checking_fault(tree->checking,
			       "volume %u: vnode %u refers to object %llx, which is %s",
			       tree->volume->id, key->vnode, (unsigned long long)extent->object,
			       result	     ? "unknown"
			       : object.dead ? "dead"
					     : "another vnode's");
		return 0;
	}
	if (store_data_is_lost(tree->checking->core->data, &lost) &&
	    is_object_used(tree, extent->object))
		checking_fault(
			tree->checking,
			"volume %u: the disk did not take bytes of object %llx of vnode %u, which are lost",
			tree->volume->id, (unsigned long long)extent->object, key->vnode);
	result = store_data_stat(tree->checking->core->data, &owner, extent->object, &length);
	if (result == -ENOMEM)
		return result;
	if ((result || length < extent->end) && is_object_used(tree, extent->object))
		checking_fault(tree->checking, "volume %u: object %llx of vnode %u is %s",
			       tree->volume->id, (unsigned long long)extent->object, key->vnode,
			       result ? "missing" : "too short");
	return 0;
}

static int check_contents(struct tree *tree, const struct vnode_key *key,
			  const struct version *version)
{
	int result = 0;

	if (version->v.small && version->content.count)
		checking_fault(tree->checking, "volume %u: vnode %u has contents of two kinds",
			       tree->volume->id, key->vnode);
	if (version->v.small)
		result = check_small_content(tree, key, version);
	for (uint32_t i = 0; i < version->content.count && !result; i++)
		result = check_extent(tree, key, version, &version->content.extent[i]);
	return result;
}

/* -- collecting -- */

static int add_shown_vnode(struct tree *tree, const struct vnode_key *key,
			   const struct version *version)
{
	if (tree->count == tree->room) {
		size_t room = tree->room ? 2 * tree->room : 1024;
		struct entry *more = realloc(tree->entry, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		tree->entry = more;
		tree->room = room;
	}
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
			checking_fault(tree->checking, "volume %u: vnode %u has the wrong kind",
				       tree->volume->id, last->key.vnode);
		tree->checking->looked_at++;
		checking_progress(tree->checking);
		tree->used_kib += space_blocks(v);
		result = check_contents(tree, &last->key, last->version);
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
	int result = checking_stopped(last->tree->checking);

	if (!result && last->version && last->key.vnode != key->vnode)
		result = take_shown_row(last);
	if (result || key->epoch > last->tree->epoch || !version)
		return result;
	version_unref(last->version);
	last->key = *key;
	last->version = version_copy(version);
	return last->version ? 0 : -ENOMEM;
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

/* -- directories -- */

static void check_entry_name(struct tree *tree, struct entry *dir, const char *name, uint32_t vnode,
			     uint32_t unique)
{
	struct entry *entry = find_shown_vnode(tree, vnode);

	if (!entry || entry->unique != unique) {
		checking_fault(tree->checking,
			       "volume %u: \"%s\" in directory %u names vnode %u, %s",
			       tree->volume->id, name, dir->vnode, vnode,
			       entry ? "which is another one" : "which is missing");
		return;
	}
	entry->seen++;
	if (entry->parent != dir->vnode || entry->parent_unique != dir->unique)
		checking_fault(tree->checking,
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
		checking_fault(tree->checking,
			       "volume %u: \".\" or \"..\" of directory %u is wrong",
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

static int load_shown_pages(struct tree *tree, const struct entry *dir, uint8_t (*page)[STORE_PAGE],
			    struct store_pages **pages)
{
	struct vnode_key key = {
		.group = tree->volume->group, .vnode = dir->vnode, .epoch = tree->epoch};
	struct version *version;
	unsigned count;
	int result = db_vnode_get(tree->checking->db, &key, &version);

	if (result)
		return result;
	count = (unsigned)(version->v.length / STORE_PAGE);
	if (version->v.length % STORE_PAGE || !count || count > STORE_PAGES_MAX)
		result = -EBADMSG;
	version_unref(version);
	if (!result)
		result = db_pages_get(tree->checking->db, &key, count, page);
	return result ? result : store_pages_load(page, count, pages);
}

static int check_directory(struct tree *tree, struct entry *dir, uint8_t (*page)[STORE_PAGE])
{
	struct store_pages *pages;
	int result = load_shown_pages(tree, dir, page, &pages);

	if (result == -EIO || result == -EBADMSG) {
		checking_fault(tree->checking, "volume %u: directory %u is damaged",
			       tree->volume->id, dir->vnode);
		return 0;
	}
	if (result)
		return result;
	check_directory_names(tree, dir, pages);
	store_pages_unref(pages);
	return checking_stopped(tree->checking);
}

static int check_directories(struct tree *tree)
{
	uint8_t(*page)[STORE_PAGE] = malloc((size_t)STORE_PAGES_MAX * STORE_PAGE);
	int result = page ? 0 : -ENOMEM;

	for (size_t i = 0; i < tree->count && !result; i++)
		if (tree->entry[i].kind == STORE_DIR)
			result = check_directory(tree, &tree->entry[i], page);
	free(page);
	return result;
}

/* -- the sums -- */

static void check_links(struct tree *tree, const struct entry *entry)
{
	bool root = entry->vnode == STORE_ROOT_VNODE;
	uint32_t names = entry->kind == STORE_DIR ? !root : entry->links;

	if (entry->seen != names)
		checking_fault(tree->checking, "volume %u: vnode %u has %u names in place of %u",
			       tree->volume->id, entry->vnode, entry->seen, names);
	if (entry->kind == STORE_DIR && entry->links != 2 + entry->subdirs)
		checking_fault(tree->checking,
			       "volume %u: directory %u has %u subdirectories, and %u links",
			       tree->volume->id, entry->vnode, entry->subdirs, entry->links);
}

static void check_sums(struct tree *tree)
{
	const struct volrec *volume = tree->volume;
	const struct entry *root = find_shown_vnode(tree, STORE_ROOT_VNODE);

	for (size_t i = 0; i < tree->count; i++)
		check_links(tree, &tree->entry[i]);
	if (!root || root->unique != STORE_ROOT_UNIQUE)
		checking_fault(tree->checking, "volume %u has no root directory", volume->id);
	if (tree->count != volume->files)
		checking_fault(tree->checking, "volume %u has %zu vnodes in place of %llu",
			       volume->id, tree->count, (unsigned long long)volume->files);
	if (tree->used_kib != volume->used_kib)
		checking_fault(tree->checking, "volume %u uses %llu KiB in place of %llu",
			       volume->id, (unsigned long long)tree->used_kib,
			       (unsigned long long)volume->used_kib);
}

int checkview(struct checking *checking, const struct volrec *volume)
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
