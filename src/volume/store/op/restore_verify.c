/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of a restored volume is checked before others see it, in memory that depends only on the greatest number of a vnode. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "volume/store/op/restore.h"

#define NEAR 16 /* numbers between two vnodes, up to which reading all between them is cheap */

struct verification {
	struct store_restore *restore;
	struct core *core;
	struct view view;
	struct restore_bits named;     /* vnodes to which a name leads */
	struct restore_bits connected; /* directories from which ".." leads to the root */
	struct restore_bits path;      /* those on the way that is being gone */
	/* Files and directories to which the names of a directory lead, in order. */
	struct whole_scan scan[2];
	uint32_t last[2];
	char *message;
};

__attribute__((format(printf, 2, 3))) static int refuse_tree(const struct verification *check,
							     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->message, STORE_MESSAGE_MAX, format, args);
	va_end(args);
	return -EBADMSG;
}

static int find_version(const struct verification *check, uint32_t vnode, struct version **version)
{
	restore_note_cached(check->restore, 1);
	return lookup_version(check->core, &check->view, vnode, version);
}

/* The same in outline. Objects of a directory often have numbers in a row. */
static int find_outline(struct verification *check, uint32_t vnode, struct outline *outline)
{
	bool kind = vnode & 1,
	     near = vnode > check->last[kind] && vnode - check->last[kind] <= NEAR;
	struct version *version;
	int result;

	check->last[kind] = vnode;
	if (near) {
		result = whole_next(check->core, &check->view, &check->scan[kind], kind, vnode - 1,
				    outline);
		if (result || outline->vnode != vnode)
			return result && result != -ENOENT ? result : STORE_VNOVNODE;
		if (!outline->damaged)
			return 0;
	}
	result = find_version(check, vnode, &version);
	if (result)
		return result;
	*outline = (struct outline){.vnode = vnode,
				    .kind = version->v.kind,
				    .unique = version->v.unique,
				    .links = version->v.links,
				    .parent = version->v.parent,
				    .parent_unique = version->v.parent_unique};
	version_unref(version);
	return 0;
}

/* -- every directory is below the root -- */

static int find_directory_above(const struct verification *check, uint32_t directory,
				uint32_t *above)
{
	struct version *version;
	int result = find_version(check, directory, &version);

	if (result)
		return result;
	*above = version->v.parent;
	version_unref(version);
	result = *above & 1 && *above < STORE_RESTORE_VNODE_MAX
			 ? find_version(check, *above, &version)
			 : STORE_VNOVNODE;
	if (result == STORE_VNOVNODE)
		return refuse_tree(check, "directory %u is in directory %u, which did not come",
				   directory, *above);
	if (!result)
		version_unref(version);
	return result;
}

static int go_to_root(struct verification *check, uint32_t from)
{
	uint32_t at = from;
	bool was;
	int result = 0;

	while (!result && !restore_bit_get(&check->connected, at)) {
		result = restore_bit_set(&check->path, at, &was);
		if (!result && was)
			return refuse_tree(check, "directory %u is below itself", at);
		if (!result)
			result = find_directory_above(check, at, &at);
	}
	return result;
}

static int check_connected(struct verification *check, uint32_t from)
{
	uint32_t at = from;
	bool was;
	int result = go_to_root(check, from);

	while (!result && !restore_bit_get(&check->connected, at)) {
		restore_bit_clear(&check->path, at);
		result = restore_bit_set(&check->connected, at, &was);
		if (!result)
			result = find_directory_above(check, at, &at);
	}
	assert(result || restore_bit_get(&check->connected, from));
	return result;
}

/* -- names -- */

struct verified_name {
	uint32_t vnode, unique;
	const char *name; /* in the pages */
};

static int compare_verified(const void *a, const void *b)
{
	const struct verified_name *x = a, *y = b;

	if (x->vnode != y->vnode)
		return x->vnode < y->vnode ? -1 : 1;
	return x->unique < y->unique ? -1 : x->unique > y->unique;
}

/* All names but "." and "..", by vnode. */
static int list_names(const struct store_pages *pages, struct verified_name **list, size_t *count)
{
	uint32_t cursor = 0, vnode, unique;
	const char *name;
	size_t n = 0;

	*list = calloc((size_t)store_pages_entries(pages) + 1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	while (store_pages_next(pages, &cursor, &name, &vnode, &unique))
		if (name[0] != '.' || (name[1] && (name[1] != '.' || name[2])))
			(*list)[n++] = (struct verified_name){vnode, unique, name};
	qsort(*list, n, sizeof(**list), compare_verified);
	*count = n;
	return 0;
}

static int check_dots(const struct verification *check, const struct found *dir,
		      const struct store_pages *pages)
{
	uint32_t own = 0, own_unique = 0, up = 0, up_unique = 0;
	const struct vnode *v = &dir->version->v;
	struct version *above;
	int result = find_version(check, v->parent, &above);

	if (result)
		return result;
	store_pages_find(pages, ".", &own, &own_unique);
	store_pages_find(pages, "..", &up, &up_unique);
	if (own != dir->fid.vnode || own_unique != v->unique)
		result = refuse_tree(check, "directory %u: its \".\" leads to vnode %u",
				     dir->fid.vnode, own);
	else if (up != v->parent || up_unique != above->v.unique)
		result = refuse_tree(check,
				     "directory %u: its \"..\" leads to vnode %u.%u, but it is in "
				     "directory %u.%u",
				     dir->fid.vnode, up, up_unique, v->parent, above->v.unique);
	version_unref(above);
	return result;
}

static int correct_vnode(const struct verification *check, uint32_t vnode, uint32_t links,
			 uint32_t parent_unique)
{
	struct version *now;
	int result = find_version(check, vnode, &now);

	if (result)
		return result;
	result = restore_correct(check->restore, vnode, now, links, parent_unique);
	version_unref(now);
	return result;
}

/* The vnode to which `names` names of a directory lead. */
static int check_named(struct verification *check, const struct found *dir,
		       const struct verified_name *name, uint32_t names, const struct outline *now)
{
	bool directory = now->kind == STORE_DIR, was;
	uint32_t links = directory ? now->links : names;
	uint32_t parent_unique = dir->version->v.unique;
	int result;

	assert(names > 0 && now->vnode == name->vnode);
	if (now->unique != name->unique)
		return refuse_tree(check,
				   "directory %u: \"%.80s\" leads to vnode %u.%u, which has the "
				   "uniquifier %u",
				   dir->fid.vnode, name->name, name->vnode, name->unique,
				   now->unique);
	if (now->parent != dir->fid.vnode)
		return refuse_tree(check,
				   "directory %u: \"%.80s\" leads to vnode %u, which is in "
				   "directory %u",
				   dir->fid.vnode, name->name, name->vnode, now->parent);
	if (directory && names != 1)
		return refuse_tree(check, "directory %u has several names, such as \"%.80s\"",
				   name->vnode, name->name);
	result = restore_bit_set(&check->named, name->vnode, &was);
	if (!result && (links != now->links || parent_unique != now->parent_unique))
		result = correct_vnode(check, name->vnode, links, parent_unique);
	return result;
}

/* The names that lead to the vnode of the first one. *subdirs: counts directories. */
static int check_names_of_vnode(struct verification *check, const struct found *dir,
				const struct verified_name *name, uint32_t names, uint32_t *subdirs)
{
	struct outline now;
	int result = name->vnode < STORE_RESTORE_VNODE_MAX && name->vnode != STORE_ROOT_VNODE
			     ? find_outline(check, name->vnode, &now)
			     : STORE_VNOVNODE;

	if (result == STORE_VNOVNODE)
		return refuse_tree(check,
				   "directory %u: \"%.80s\" leads to vnode %u, which did not come",
				   dir->fid.vnode, name->name, name->vnode);
	if (result)
		return result;
	*subdirs += now.kind == STORE_DIR;
	return check_named(check, dir, name, names, &now);
}

static int check_all_names(struct verification *check, const struct found *dir,
			   const struct verified_name *list, size_t count)
{
	uint32_t subdirs = 0, names;
	int result = 0;

	for (size_t i = 0; i < count && !result; i += names) {
		names = 1;
		while (i + names < count && !compare_verified(&list[i + names], &list[i]))
			names++;
		result = check_names_of_vnode(check, dir, &list[i], names, &subdirs);
	}
	/* In one group with corrections of its own name: those do not change this count. */
	if (!result && dir->version->v.links != 2 + subdirs) {
		result = restore_flush(check->restore);
		if (!result)
			result = restore_correct(check->restore, dir->fid.vnode, dir->version,
						 2 + subdirs, dir->version->v.parent_unique);
		if (!result)
			result = restore_flush(check->restore);
	}
	return result;
}

static int check_directory_of(struct verification *check, const struct found *dir)
{
	struct verified_name *list = NULL;
	struct store_pages *pages;
	size_t count;
	int result = check_connected(check, dir->fid.vnode);

	assert(dir->fid.vnode & 1);
	if (!result)
		result = lookup_pages(check->core, dir, &pages);
	if (result)
		return result;
	result = check_dots(check, dir, pages);
	if (!result)
		result = list_names(pages, &list, &count);
	if (!result)
		result = check_all_names(check, dir, list, count);
	free(list);
	store_pages_unref(pages);
	return result;
}

static int check_all_directories(struct verification *check)
{
	struct whole_scan scan = {0};
	struct found dir = {.view = check->view};
	struct outline at = {0};
	int result = 0;

	while (!result &&
	       !(result = whole_next(check->core, &check->view, &scan, true, at.vnode, &at))) {
		/* What was corrected before is seen. */
		result = restore_flush(check->restore);
		if (!result)
			result = find_version(check, at.vnode, &dir.version);
		if (result)
			return result;
		dir.fid = (struct store_fid){check->view.volume, at.vnode, dir.version->v.unique};
		result = check_directory_of(check, &dir);
		version_unref(dir.version);
	}
	return result == -ENOENT ? 0 : result;
}

/* -- objects without a name -- */

static int check_all_named(struct verification *check, bool directories, uint64_t *lost)
{
	struct whole_scan scan = {0};
	struct outline at = {0};
	int result = 0;

	while (!result && !(result = whole_next(check->core, &check->view, &scan, directories,
						at.vnode, &at))) {
		assert((at.vnode & 1) == directories);
		if (at.vnode == STORE_ROOT_VNODE || restore_bit_get(&check->named, at.vnode))
			continue;
		if (directories)
			return refuse_tree(check, "no name leads to directory %u", at.vnode);
		++*lost;
		result = restore_remove(check->restore, at.vnode);
	}
	return result == -ENOENT ? 0 : result;
}

static int check_root(struct verification *check)
{
	struct version *root;
	bool was;
	int result = find_version(check, STORE_ROOT_VNODE, &root);

	if (result == STORE_VNOVNODE)
		return refuse_tree(check, "the root directory (vnode 1) did not come");
	if (result)
		return result;
	if (root->v.unique != STORE_ROOT_UNIQUE)
		result = refuse_tree(check, "the root directory has the uniquifier %u, not 1",
				     root->v.unique);
	version_unref(root);
	return result ? result : restore_bit_set(&check->connected, STORE_ROOT_VNODE, &was);
}

int restore_verify(struct store_restore *restore, uint64_t *lost, char *message)
{
	struct verification check = {.restore = restore,
				     .core = restore_core(restore),
				     .view = restore_view(restore),
				     .message = message};
	int result = check_root(&check);

	if (!result)
		result = check_all_directories(&check);
	if (!result)
		result = restore_flush(restore);
	if (!result)
		result = check_all_named(&check, true, lost);
	if (!result)
		result = check_all_named(&check, false, lost);
	free(check.named.byte);
	free(check.connected.byte);
	free(check.path.byte);
	return result;
}
