/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of objects that are known by number. */
#include "admin/locate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "common/grow.h"

#define TRIES	  10	/* while others move the object or a directory above it */
#define PATH_MOST 65536 /* bytes */

/* -- one directory: its names in the order of numbers -- */

static int compare_children(const void *a, const void *b)
{
	const struct locate_name *x = a, *y = b;

	return x->vnode != y->vnode ? (x->vnode < y->vnode ? -1 : 1) : strcmp(x->name, y->name);
}

/* 0 or a result. */
static int index_directory(struct locate_directory *dir, size_t length)
{
	const uint8_t *image = (const uint8_t *)dir->image;
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	size_t room = 0;
	int rc;

	assert(!dir->name);
	dir->count = 0;
	while ((rc = afs_dir_next(image, length, &cursor, &entry)) == 1) {
		if (!strcmp(entry.name, ".") || !strcmp(entry.name, ".."))
			continue;
		if (!grow_array(&dir->name, &room, dir->count, sizeof(*dir->name)))
			return -ENOMEM;
		dir->name[dir->count++] = (struct locate_name){entry.vnode, entry.name};
	}
	if (dir->count)
		qsort(dir->name, dir->count, sizeof(*dir->name), compare_children);
	return rc ? -EIO : 0;
}

void locate_forget(struct locate_directory *dir)
{
	free(dir->image);
	free(dir->name);
	free(dir->path);
	*dir = (struct locate_directory){.image = NULL};
}

/* Its names, without its path. 0 or a result. */
static int read_directory(struct store *store, const struct store_fid *fid,
			  struct locate_directory *dir)
{
	struct store_status status;
	size_t length = 0;
	int rc;

	locate_forget(dir);
	rc = admin_contents(store, fid, &dir->image, &length, &status);
	if (!rc && status.kind != STORE_DIR)
		rc = -EIO;
	if (!rc)
		rc = index_directory(dir, length);
	if (rc)
		locate_forget(dir);
	else
		dir->fid = *fid;
	return rc;
}

const struct locate_name *locate_find(const struct locate_directory *dir, uint32_t vnode)
{
	size_t low = 0, high = dir->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (dir->name[middle].vnode < vnode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < dir->count && dir->name[low].vnode == vnode ? &dir->name[low] : NULL;
}

/* -- paths, from the object to the root -- */

static bool is_root(const struct store_fid *fid)
{
	return fid->vnode == STORE_ROOT_VNODE;
}

/* "NAME" or "NAME/PATH" in place of *path. 0 or a result. */
static int prepend_name(char **path, const char *name)
{
	size_t length = strlen(name), rest = *path ? strlen(*path) : 0;
	char *longer;

	if (length + rest + 2 > PATH_MOST)
		return -ENAMETOOLONG;
	longer = malloc(length + rest + 2);
	if (!longer)
		return -ENOMEM;
	memcpy(longer, name, length + 1);
	if (*path) {
		longer[length] = '/';
		memcpy(longer + length + 1, *path, rest + 1);
	}
	free(*path);
	*path = longer;
	return 0;
}

/* The path of a directory, once. 0; -EAGAIN: something was moved meanwhile; or a result. */
static int walk_up(struct store *store, struct store_fid fid, char **path)
{
	struct locate_directory above = {.image = NULL};
	int rc = 0;

	*path = NULL;
	while (!rc && !is_root(&fid)) {
		const struct locate_name *found = NULL;
		struct store_object object;

		rc = store_object(store, fid.volume, fid.vnode, &object);
		if (!rc)
			rc = read_directory(store, &object.parent, &above);
		if (!rc)
			found = locate_find(&above, fid.vnode);
		if (!rc)
			rc = found ? prepend_name(path, found->name) : -EAGAIN;
		fid = object.parent;
	}
	if (!rc && !*path)
		rc = (*path = strdup("")) ? 0 : -ENOMEM;
	locate_forget(&above);
	if (rc) {
		free(*path);
		*path = NULL;
	}
	return rc == STORE_VNOVNODE ? -EAGAIN : rc;
}

int locate_directory(struct store *store, const struct store_fid *fid, struct locate_directory *dir)
{
	int rc = -EAGAIN;

	for (unsigned i = 0; i < TRIES && rc == -EAGAIN; i++) {
		rc = read_directory(store, fid, dir);
		if (!rc)
			rc = walk_up(store, *fid, &dir->path);
	}
	assert(rc || dir->path);
	if (rc)
		locate_forget(dir);
	return rc;
}

char *locate_join(const struct store_volume *volume, const struct locate_directory *dir,
		  const char *name)
{
	const char *path = dir ? dir->path : "";
	size_t size = strlen(volume->name) + strlen(path) + strlen(name) + 4;
	char *text = malloc(size);

	if (text)
		snprintf(text, size, "%s:/%s%s%s", volume->name, path, *path && *name ? "/" : "",
			 name);
	return text;
}
