/* SPDX-License-Identifier: BSD-2-Clause */
/* compare: whether a tree of this machine has what a tree of a volume has at one moment. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/import.h"
#include "afs/dir.h"

/* One thread. */
struct comparison {
	struct admin_run *run;
	struct store_snapshot *snapshot;
	struct admin_attributes *attributes; /* or NULL */
	char *here, *there;		     /* ADMIN_BUFFER bytes */
	struct admin_pending *pending;
	uint64_t objects, bytes, differences;
};

/* Returns 0. */
static int report_difference(struct comparison *comparison, const char *path, const char *what)
{
	char line[ADMIN_PATH_MAX + 100];

	comparison->differences++;
	snprintf(line, sizeof(line), "%s: %s", *path ? path : ".", what);
	admin_fault(comparison->run, line);
	return 0;
}

/* Results of the store that end the comparison; others are differences. */
static int report_result(struct comparison *comparison, const char *path, int rc)
{
	if (rc != -ENOMEM && rc != STORE_VNOVOL)
		return report_difference(comparison, path, admin_code_text(rc));
	admin_fail_code(comparison->run, rc, "%s", path);
	return -1;
}

/* -- objects: 0, or -1 if the comparison ends -- */

static int compare_bytes(struct comparison *comparison, const char *path, int fd,
			 struct store_reader *reader, uint64_t length)
{
	for (uint64_t at = 0; at < length;) {
		struct iovec iov = {comparison->there, ADMIN_BUFFER};
		ssize_t n = comparison->run->store->ops->read(reader, &iov, 1, at, 0);

		if (admin_stopped(comparison->run)) {
			admin_fail(comparison->run, 1, "interrupted");
			return -1;
		}
		if (n <= 0)
			return report_result(comparison, path, n < 0 ? (int)n : -EIO);
		if (pread(fd, comparison->here, (size_t)n, (off_t)at) != n ||
		    memcmp(comparison->here, comparison->there, (size_t)n))
			return report_difference(comparison, path, "the contents differ");
		at += (uint64_t)n;
		comparison->bytes += (uint64_t)n;
		admin_progress(comparison->run, path, comparison->bytes, 0, comparison->objects);
	}
	return 0;
}

static int compare_files(struct comparison *comparison, const char *path, const struct stat *st,
			 const struct store_vnode *vnode)
{
	struct store_reader *reader;
	int rc, fd;

	assert(vnode->kind == STORE_FILE);
	if ((uint64_t)st->st_size != vnode->length)
		return report_difference(comparison, path, "the sizes differ");
	fd = admin_source_open(comparison->run, path, ADMIN_SOURCE_FILE);
	if (fd < 0)
		return report_difference(comparison, path, strerror(-fd));
	rc = store_snapshot_open(comparison->snapshot, &reader);
	if (rc) {
		rc = report_result(comparison, path, rc);
	} else {
		rc = compare_bytes(comparison, path, fd, reader, vnode->length);
		comparison->run->store->ops->read_end(reader);
	}
	close(fd);
	return rc;
}

static int compare_links(struct comparison *comparison, const char *path, int fd,
			 const struct store_vnode *vnode)
{
	char here[STORE_TEXT_MAX + 1], *there;
	ssize_t n = readlinkat(fd, "", here, sizeof(here));
	int rc = admin_snapshot_contents(comparison->run->store, comparison->snapshot, vnode,
					 &there);

	assert(vnode->kind == STORE_SYMLINK);
	if (rc)
		return report_result(comparison, path, rc);
	if (n < 0 || (size_t)n != strlen(there) || memcmp(here, there, (size_t)n))
		report_difference(comparison, path, "the links lead elsewhere");
	free(there);
	return 0;
}

static int push_compared(struct comparison *comparison, const char *path,
			 const struct store_vnode *vnode)
{
	const struct store_fid fid = {.vnode = vnode->vnode, .unique = vnode->unique};

	assert(vnode->kind == STORE_DIR);
	return admin_push_pending(comparison->run, &comparison->pending, path, &fid, true);
}

static void compare_attribute(struct comparison *comparison, const char *path,
			      const struct store_vnode *vnode)
{
	const struct admin_attribute *attribute =
		admin_attributes_find(comparison->attributes, path);

	if (!attribute)
		report_difference(comparison, path, "has no line in " ADMIN_ATTRIBUTES);
	else if (attribute->owner != vnode->owner || attribute->group != vnode->group)
		report_difference(comparison, path, "the owners differ");
	else if (attribute->mode != vnode->mode)
		report_difference(comparison, path, "the modes differ");
	else if (vnode->kind == STORE_DIR &&
		 (!attribute->listed || !admin_is_same_acl(&attribute->acl, &vnode->acl)))
		report_difference(comparison, path, "the access lists differ");
}

/* Fields of all kinds of objects. */
static void compare_status(struct comparison *comparison, const char *path, const struct stat *st,
			   const struct store_vnode *vnode)
{
	if (comparison->attributes)
		compare_attribute(comparison, path, vnode);
	else if (!S_ISLNK(st->st_mode) && (st->st_mode & 0777) != (vnode->mode & 0777))
		report_difference(comparison, path, "the modes differ");
	if (admin_store_time(st) != vnode->client_mtime)
		report_difference(comparison, path, "the times differ");
}

static bool is_same_kind(mode_t mode, enum store_kind kind)
{
	return S_ISDIR(mode)   ? kind == STORE_DIR
	       : S_ISLNK(mode) ? kind == STORE_SYMLINK
			       : S_ISREG(mode) && kind == STORE_FILE;
}

static int compare_kinds(struct comparison *comparison, const char *path, int fd,
			 const struct stat *st, const struct store_vnode *vnode)
{
	if (!is_same_kind(st->st_mode, vnode->kind))
		return report_difference(comparison, path, "the kinds differ");
	compare_status(comparison, path, st, vnode);
	if (S_ISDIR(st->st_mode))
		return push_compared(comparison, path, vnode);
	return S_ISLNK(st->st_mode) ? compare_links(comparison, path, fd, vnode)
				    : compare_files(comparison, path, st, vnode);
}

static int compare_object(struct comparison *comparison, const char *path, uint32_t number,
			  uint32_t unique)
{
	struct store_vnode vnode;
	struct stat st;
	int rc = store_snapshot_find(comparison->snapshot, number, unique, &vnode), fd;

	comparison->objects++;
	if (rc)
		return report_result(comparison, path, rc);
	fd = admin_source_open(comparison->run, path, ADMIN_SOURCE_LOOK);
	if (fd == -ENOENT)
		return report_difference(comparison, path, "is only in the volume");
	if (fd < 0 || fstat(fd, &st) < 0)
		report_difference(comparison, path, strerror(fd < 0 ? -fd : errno));
	else
		rc = compare_kinds(comparison, path, fd, &st, &vnode);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* -- directories -- */

/* Names of the directory that the volume does not have. */
static int compare_name_sets(struct comparison *comparison, const struct admin_pending *dir,
			     const char *image, size_t length)
{
	int fd = admin_source_open(comparison->run, dir->path, ADMIN_SOURCE_DIRECTORY);
	int count = fd < 0 ? fd : 0;
	uint32_t vnode, unique;
	char **names = NULL;

	if (fd >= 0) {
		count = admin_list_names(fd, &names);
		close(fd);
	}
	if (count < 0)
		return report_difference(comparison, dir->path, strerror(-count));
	for (int i = 0; i < count; i++) {
		char *path = admin_join(dir->path, names[i]);

		if (afs_dir_lookup((const uint8_t *)image, length, names[i], &vnode, &unique) !=
			    1 &&
		    !(path && admin_is_attributes(path)))
			report_difference(comparison, path ? path : dir->path,
					  "is only in the directory");
		free(path);
	}
	admin_free_names(names, count);
	return 0;
}

static int compare_image(struct comparison *comparison, const struct admin_pending *dir,
			 const char *image, size_t length)
{
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	int rc = 0;

	while (!rc && afs_dir_next((const uint8_t *)image, length, &cursor, &entry) == 1) {
		char *path;

		if (!strcmp(entry.name, ".") || !strcmp(entry.name, ".."))
			continue;
		path = admin_join(dir->path, entry.name);
		if (path)
			rc = compare_object(comparison, path, entry.vnode, entry.unique);
		else
			report_difference(comparison, dir->path, "has a path that is too long");
		free(path);
	}
	return rc;
}

static int compare_directory(void *arg, const struct admin_pending *dir)
{
	struct comparison *comparison = arg;
	struct store_vnode vnode;
	char *image;
	int rc = store_snapshot_find(comparison->snapshot, dir->fid.vnode, dir->fid.unique, &vnode);

	if (!rc)
		rc = admin_snapshot_contents(comparison->run->store, comparison->snapshot, &vnode,
					     &image);
	if (rc)
		return report_result(comparison, dir->path, rc);
	rc = compare_image(comparison, dir, image, (size_t)vnode.length);
	if (!rc)
		rc = compare_name_sets(comparison, dir, image, (size_t)vnode.length);
	free(image);
	return rc;
}

static int compare_all(struct comparison *comparison, const struct store_vnode *top)
{
	int rc = push_compared(comparison, "", top);

	if (!rc && comparison->attributes)
		compare_attribute(comparison, "", top);
	return admin_visit_pending(&comparison->pending, rc, compare_directory, comparison);
}

static int run_comparison(struct comparison *comparison, const struct admin_place *place)
{
	struct store_vnode vnode;
	int rc = store_snapshot_find(comparison->snapshot, place->fid.vnode, place->fid.unique,
				     &vnode);

	if (rc)
		return admin_fail_code(comparison->run, rc, "%s", place->name);
	if (vnode.kind != STORE_DIR)
		return admin_fail_code(comparison->run, -ENOTDIR, "%s", place->name);
	comparison->here = malloc(ADMIN_BUFFER);
	comparison->there = malloc(ADMIN_BUFFER);
	rc = comparison->here && comparison->there ? compare_all(comparison, &vnode)
						   : admin_fail(comparison->run, 1, "no memory");
	free(comparison->here);
	free(comparison->there);
	return rc ? 1 : 0;
}

int admin_compare(struct admin_run *run)
{
	struct comparison comparison = {.run = run};
	struct admin_place place;
	int rc = admin_find_place(run, &place), end;

	if (rc)
		return rc;
	free(place.path);
	rc = admin_attributes_load(run, &comparison.attributes);
	if (rc)
		return rc;
	rc = store_snapshot_take(run->store, place.volume.id, 0, &comparison.snapshot);
	if (rc) {
		admin_attributes_free(comparison.attributes);
		return admin_fail_snapshot(run, rc, place.volume.name);
	}
	rc = run_comparison(&comparison, &place);
	end = store_snapshot_end(comparison.snapshot);
	admin_attributes_free(comparison.attributes);
	if (rc)
		return rc;
	if (end)
		return admin_fail_snapshot(run, end, place.volume.name);
	return admin_done(run,
			  json_pack("{s:I, s:I, s:I}", "objects", (json_int_t)comparison.objects,
				    "bytes", (json_int_t)comparison.bytes, "differences",
				    (json_int_t)comparison.differences),
			  false, comparison.differences != 0);
}
