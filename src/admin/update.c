/* SPDX-License-Identifier: BSD-2-Clause */
/* import --update: what exists in the volume gets the state of the tree. A file gets new contents in one step. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/import.h"
#include "afs/dir.h"

/* -- removing -- */

#define MOUNT_INSIDE \
	1000 /* beside results of the store: the directory has a mount point, which stays */

/* Only what was seen: another object may have got the name since. */
static int remove_volume_name(struct admin_import *import, const struct store_fid *dir,
			      const char *name, const struct store_fid *fid, bool directory)
{
	struct store *store = import->run->store;
	struct store_changes changes = {0};
	struct store_status status;
	int rc = store_remove_known(store, &admin_caller, dir, name, fid,
				    directory ? STORE_DIR : STORE_FILE, &status, &changes);

	if (!rc)
		admin_changed(import->run, &changes);
	import->removed += !rc;
	return rc;
}

/* Whether it is a link that leads to another volume: an administrator made it, and no tree of this machine has one. */
static bool is_mount_link(const struct store_status *status)
{
	return status->kind == STORE_SYMLINK && !(status->mode & 0111);
}

static int remove_volume_tree(struct admin_import *import, const struct store_fid *dir,
			      const char *name, const struct store_fid *fid, unsigned depth);

/* The entries of a directory, without mount points. */
static int remove_names_below(struct admin_import *import, const struct store_fid *dir,
			      unsigned depth)
{
	struct afs_dir_entry entry;
	struct store_status status;
	uint32_t cursor = 0;
	char *image = NULL;
	bool mounts = false;
	size_t length;
	int rc = admin_contents(import->run->store, dir, &image, &length, &status);

	while (!rc && afs_dir_next((const uint8_t *)image, length, &cursor, &entry) == 1) {
		struct store_fid below = {dir->volume, entry.vnode, entry.unique};

		if (admin_stopped(import->run))
			rc = -EINTR;
		else if (strcmp(entry.name, ".") && strcmp(entry.name, ".."))
			rc = remove_volume_tree(import, dir, entry.name, &below, depth);
		/* An object that is gone, or that somebody has replaced, is no hindrance here. */
		if (rc == STORE_VNOVNODE || rc == -ENOENT || rc == -ESTALE)
			rc = 0;
		mounts |= rc == MOUNT_INSIDE;
		rc = rc == MOUNT_INSIDE ? 0 : rc;
	}
	free(image);
	return !rc && mounts ? MOUNT_INSIDE : rc;
}

/* A name and all below it. 0 or a result. A path is as deep as ADMIN_PATH_MAX permits. */
static int remove_volume_tree(struct admin_import *import, const struct store_fid *dir,
			      const char *name, const struct store_fid *fid, unsigned depth)
{
	struct store *store = import->run->store;
	struct store_status status;
	int rc = store->ops->status(store, &admin_caller, fid, &status);

	if (!rc && depth && is_mount_link(&status))
		return MOUNT_INSIDE;
	if (rc || status.kind != STORE_DIR)
		return rc ? rc : remove_volume_name(import, dir, name, fid, false);
	if (depth > ADMIN_PATH_MAX / 2)
		return -ENAMETOOLONG;
	rc = remove_names_below(import, fid, depth + 1);
	return rc ? rc : remove_volume_name(import, dir, name, fid, true);
}

/* 0; 1: it stays, which was reported; -1. */
static int remove_or_report(struct admin_import *import, const struct store_fid *dir,
			    const char *path, const char *name, const struct store_fid *fid)
{
	int rc = remove_volume_tree(import, dir, name, fid, 0);

	if (rc == -EINTR) {
		admin_fail(import->run, 1, "interrupted");
		return -1;
	}
	if (rc == MOUNT_INSIDE || rc == -ESTALE || rc == STORE_VNOVNODE) {
		admin_import_skip(import, path,
				  rc == MOUNT_INSIDE ? "has mount points below, which stay"
						     : "was replaced meanwhile; import again");
		return 1;
	}
	if (!rc || rc == -ENOENT)
		return 0;
	return admin_import_refused(import, path, rc) ? -1 : 1;
}

int admin_update_clear(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name, const struct store_status *existing)
{
	if (existing->kind == STORE_DIR && !import->remove) {
		admin_import_skip(import, path,
				  "is a directory in the volume; --delete replaces it");
		return 1;
	}
	return remove_or_report(import, dir, path, name, &existing->fid);
}

static int compare_kept_names(const void *a, const void *b)
{
	return strcmp(a, *(char *const *)b);
}

static bool has_mount_link(struct admin_import *import, const struct store_fid *fid)
{
	struct store *store = import->run->store;
	struct store_status status;

	return !store->ops->status(store, &admin_caller, fid, &status) && is_mount_link(&status);
}

int admin_update_delete(struct admin_import *import, const struct store_fid *dir, const char *path,
			char **names, size_t count)
{
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	int rc = 0;

	while (import->image && rc >= 0 &&
	       afs_dir_next((const uint8_t *)import->image, import->image_length, &cursor,
			    &entry) == 1) {
		struct store_fid fid = {dir->volume, entry.vnode, entry.unique};
		char *below;

		if (!strcmp(entry.name, ".") || !strcmp(entry.name, "..") ||
		    (count &&
		     bsearch(entry.name, names, count, sizeof(*names), compare_kept_names)) ||
		    has_mount_link(import, &fid))
			continue;
		below = admin_join(path, entry.name);
		rc = remove_or_report(import, dir, below ? below : path, entry.name, &fid);
		free(below);
	}
	return rc < 0 ? -1 : 0;
}

/* -- files -- */

/* Whether the volume has the bytes of the file. 1, 0, or -1: the import ends. */
static int has_same_bytes(struct admin_import *import, const struct admin_source *source,
			  const struct store_fid *fid)
{
	struct store *store = import->run->store;
	char *there = malloc(ADMIN_BUFFER);
	struct store_reader *reader;
	struct store_status status;
	uint64_t at = 0;
	int same = 1;

	if (!there || store->ops->read_begin(store, &admin_caller, fid, &reader, &status)) {
		free(there);
		return 0;
	}
	while (same == 1 && at < source->size) {
		struct iovec iov = {there, ADMIN_BUFFER};
		ssize_t n = store->ops->read(reader, &iov, 1, at, 0);

		if (n > 0 && (uint64_t)n > source->size - at)
			n = (ssize_t)(source->size - at);
		if (n <= 0 || pread(source->fd, import->buffer, (size_t)n, (off_t)at) != n ||
		    memcmp(import->buffer, there, (size_t)n))
			same = 0;
		at += n > 0 ? (uint64_t)n : 0;
		if (admin_stopped(import->run)) {
			admin_fail(import->run, 1, "interrupted");
			same = -1;
		}
	}
	store->ops->read_end(reader);
	free(there);
	return same;
}

/* The owner of an existing object stays, unless the request names one. */
static struct store_set choose_update_set(const struct admin_import *import, const char *path,
					  const struct store_set *set,
					  const struct store_status *existing)
{
	struct store_set chosen = *set;

	if (!import->owned && !admin_attributes_find(import->attributes, path))
		chosen.owner = existing->owner;
	return chosen;
}

static bool has_same_status(const struct store_status *status, const struct store_set *set)
{
	return status->client_mtime == set->mtime && status->owner == set->owner &&
	       (status->kind == STORE_SYMLINK || status->mode == set->mode) &&
	       (!(set->mask & STORE_SET_GROUP) || status->group == set->group);
}

/* The name is reserved for one file of its directory: what an import that was killed has left goes. */
static int remove_left_copy(struct admin_import *import, const struct store_fid *dir,
			    const char *path, const char *name)
{
	int rc = admin_import_take_back(import, dir, name);

	return !rc || rc == -ENOENT ? 0 : admin_import_refused(import, path, rc) ? -1 : 1;
}

/* Holes are kept by pieces, each of which is a transaction. So the pieces go to another file, which gets the name in one step. 1 or -1. */
static int replace_by_copy(struct admin_import *import, const struct store_fid *dir,
			   const char *path, const char *name, const struct admin_source *source,
			   struct store_status *status)
{
	struct store *store = import->run->store;
	struct store_changes changes = {0};
	struct store_status dir_status, old_dir_status;
	char copy[40];
	int rc;

	snprintf(copy, sizeof(copy), ".rxvol-update-%u", (unsigned)status->fid.vnode);
	rc = remove_left_copy(import, dir, path, copy);
	if (!rc)
		rc = admin_import_bytes(import, dir, path, copy, source, status);
	if (rc)
		return rc;
	rc = store->ops->rename(store, &admin_caller, dir, copy, dir, name, &old_dir_status,
				&dir_status, &changes);
	if (!rc) {
		admin_changed(import->run, &changes);
		return 1;
	}
	import->objects--;
	admin_import_take_back(import, dir, copy);
	*status = (struct store_status){0};
	return admin_import_result(import, path, rc);
}

static bool has_holes(const struct admin_source *source)
{
	off_t hole = lseek(source->fd, 0, SEEK_HOLE);

	return hole >= 0 && (uint64_t)hole < source->size;
}

/* Replaces the contents of an existing file all at once, so that nobody sees a part of them. The source has no holes. */
static int replace_contents(struct admin_import *import, const char *path,
			    const struct admin_source *source, const struct store_fid *fid)
{
	const struct store_set again = {.mask = STORE_SET_MTIME};
	const struct admin_piece whole = {0, source->size};
	struct stat before;
	int rc;

	if (fstat(source->fd, &before) < 0 || !before.st_size)
		return admin_import_unsized(import, path, source->fd, source->size, fid,
					    source->set);
	rc = admin_import_result(import, path,
				 admin_import_piece(import, path, source->fd, source->size, &whole,
						    fid, source->set));
	if (rc || !admin_import_changed(import, path, source->fd, &before))
		return rc;
	/* The next update shall find a difference. */
	return admin_import_status(import, path, fid, &again) ? -1 : 1;
}

/* The file stays; its contents and status become those of the source. 1 or -1. */
static int update_in_place(struct admin_import *import, const char *path,
			   const struct admin_source *source, const struct store_status *existing,
			   bool same)
{
	int rc;

	assert(existing->kind == STORE_FILE);
	if (same && has_same_status(existing, source->set)) {
		import->unchanged++;
		import->passed += source->size;
		return 1;
	}
	rc = same ? admin_import_status(import, path, &existing->fid, source->set) ? -1 : 0
		  : replace_contents(import, path, source, &existing->fid);
	import->objects += rc == 0;
	return rc < 0 ? -1 : 1;
}

int admin_update_file(struct admin_import *import, const struct store_fid *dir, const char *path,
		      const char *name, const struct admin_source *source,
		      struct store_status *status)
{
	struct store_status existing;
	struct store_set chosen;
	int same, rc;

	assert(import->update);
	if (!admin_import_existing(import, dir, name, &existing))
		return 0;
	if (admin_is_unfinished(&existing)) {
		rc = admin_import_take_back(import, dir, name);
		return rc && rc != -ENOENT ? admin_import_refused(import, path, rc) ? -1 : 1 : 0;
	}
	if (existing.kind != STORE_FILE)
		return admin_update_clear(import, dir, path, name, &existing);
	if (source->first && existing.fid.vnode == source->first->vnode &&
	    existing.fid.unique == source->first->unique) {
		import->unchanged++;
		return 1;
	}
	same = existing.length == source->size && existing.client_mtime == source->set->mtime;
	if (same && import->compare)
		same = has_same_bytes(import, source, &existing.fid);
	if (same < 0)
		return -1;
	if (source->first)
		return admin_update_clear(import, dir, path, name, &existing);
	*status = existing;
	chosen = choose_update_set(import, path, source->set, &existing);
	const struct admin_source update = {source->fd, source->size, &chosen, NULL};

	/* Other names of the file there need not change with this one. */
	if (!same && (existing.links > 1 || has_holes(source)))
		return replace_by_copy(import, dir, path, name, &update, status);
	return update_in_place(import, path, &update, &existing, same);
}

/* -- directories -- */

static int update_acl(struct admin_import *import, const char *path, const struct store_fid *dir,
		      const struct store_acl *now, const struct store_acl *acl)
{
	struct store *store = import->run->store;
	struct store_changes changes = {0};
	struct store_status status;
	int rc;

	if (admin_is_same_acl(now, acl))
		return 0;
	if (admin_acl_permit(import->run, acl, *path ? path : "."))
		return -1;
	rc = store->ops->set_acl(store, &admin_caller, dir, acl, &status, &changes);
	if (rc)
		return admin_import_refused(import, path, rc) ? -1 : 0;
	admin_changed(import->run, &changes);
	return 0;
}

int admin_update_directory(struct admin_import *import, const char *path,
			   const struct store_fid *dir, const struct store_set *set)
{
	const struct admin_attribute *attribute = admin_attributes_find(import->attributes, path);
	struct store *store = import->run->store;
	struct store_status status;
	struct store_set chosen;
	struct store_acl acl;
	int rc = store->ops->acl(store, &admin_caller, dir, &acl, &status);

	if (rc)
		return admin_import_refused(import, path, rc) ? -1 : 0;
	if (attribute && attribute->listed && update_acl(import, path, dir, &acl, &attribute->acl))
		return -1;
	chosen = import->update ? choose_update_set(import, path, set, &status) : *set;
	if (has_same_status(&status, &chosen))
		return 0;
	return admin_import_status(import, path, dir, &chosen) ? -1 : 0;
}
