/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: in a volume, and below a directory of this machine, where no symbolic link is followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "admin/private.h"
#include "afs/dir.h"

/* ---- in a volume ---- */

#define CONTENTS_MAX ((uint64_t)AFS_DIR_PAGE * AFS_DIR_PAGES_MAX)

static bool read_volume_number(const char *text, uint32_t *number)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > UINT32_MAX)
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
	}
	*number = (uint32_t)n;
	return n <= UINT32_MAX;
}

int admin_seek_volume(struct admin_run *run, const char *name, struct store_volume *volume)
{
	uint32_t id;

	return read_volume_number(name, &id)
		       ? run->store->ops->volume(run->store, id, volume)
		       : run->store->ops->volume_by_name(run->store, name, volume);
}

int admin_find_named(struct admin_run *run, const char *name, struct store_volume *volume)
{
	int rc = admin_seek_volume(run, name, volume);

	return rc ? admin_fail_code(run, rc, "%.200s", name) : 0;
}

int admin_find_volume(struct admin_run *run, struct store_volume *volume)
{
	return admin_find_named(run, admin_get_text(run, "volume"), volume);
}

/* All bytes from a reader, which give up to `length`. 0 or a result. */
static int read_whole_contents(struct store *store, struct store_reader *reader, char *bytes,
			       size_t length)
{
	size_t done = 0;

	while (done < length) {
		struct iovec iov = {bytes + done, length - done};
		ssize_t n = store->ops->read(reader, &iov, 1, done, 0);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int admin_contents(struct store *store, const struct store_fid *fid, char **bytes, size_t *length,
		   struct store_status *status)
{
	struct store_reader *reader;
	int rc = store->ops->read_begin(store, &admin_caller, fid, &reader, status), end;

	*bytes = NULL;
	if (rc)
		return rc;
	rc = -EFBIG;
	if (status->length > CONTENTS_MAX)
		goto out;
	rc = -ENOMEM;
	*bytes = calloc(1, (size_t)status->length + 1);
	if (!*bytes)
		goto out;
	rc = read_whole_contents(store, reader, *bytes, (size_t)status->length);
out:
	end = store->ops->read_end(reader);
	rc = rc ? rc : end;
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	} else if (length)
		*length = (size_t)status->length;
	return rc;
}

int admin_snapshot_contents(struct store *store, struct store_snapshot *snapshot,
			    const struct store_vnode *vnode, char **bytes)
{
	struct store_reader *reader;
	int rc = store_snapshot_open(snapshot, &reader);

	*bytes = NULL;
	if (rc)
		return rc;
	rc = -EFBIG;
	if (vnode->length <= CONTENTS_MAX) {
		*bytes = calloc(1, (size_t)vnode->length + 1);
		rc = *bytes ? read_whole_contents(store, reader, *bytes, (size_t)vnode->length)
			    : -ENOMEM;
	}
	store->ops->read_end(reader);
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	}
	return rc;
}

int admin_lookup(struct store *store, const struct store_fid *dir, const char *name,
		 struct store_fid *fid)
{
	struct store_status status;
	char *image;
	size_t length;
	int rc = admin_contents(store, dir, &image, &length, &status);

	if (rc)
		return rc;
	if (status.kind != STORE_DIR)
		rc = -ENOTDIR;
	else
		rc = afs_dir_lookup((const uint8_t *)image, length, name, &fid->vnode,
				    &fid->unique);
	fid->volume = dir->volume;
	free(image);
	return rc == 1 ? 0 : rc == 0 ? -ENOENT : rc == -ENOTDIR ? rc : -EIO;
}

/* Remove empty names and those that are ".", in place. -1: there is a "..". */
static int clean_path(char *path)
{
	char *from = path, *to = path;

	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && !memcmp(from, "..", 2))
			return -1;
		if (n && !(n == 1 && *from == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n + (from[n] == '/');
	}
	*to = 0;
	return 0;
}

/* Walks from the root to the object that the first `length` bytes of the path name. 0 or a result. */
static int walk_to_object(struct admin_run *run, struct admin_place *place, size_t length)
{
	size_t at = 0;

	place->fid = (struct store_fid){place->volume.id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	while (at < length) {
		char name[STORE_NAME_MAX + 1];
		size_t n = strcspn(place->path + at, "/");
		struct store_fid next;
		int rc;

		if (n > STORE_NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, place->path + at, n);
		name[n] = 0;
		rc = admin_lookup(run->store, &place->fid, name, &next);
		if (rc)
			return rc;
		place->fid = next;
		at += n + 1;
	}
	return run->store->ops->status(run->store, &admin_caller, &place->fid, &place->status);
}

/* Volume and cleaned path. 0, or the status after an error. */
static int begin_place(struct admin_run *run, struct admin_place *place)
{
	const char *text = admin_get_text(run, "path");

	place->path = NULL;
	if (admin_find_volume(run, &place->volume))
		return 1;
	place->path = admin_bytes(text ? text : "");
	if (!place->path)
		return admin_fail(run, 2, "%s:%s: not a path; write a backslash as \\x5c",
				  place->volume.name, text ? text : "");
	snprintf(place->name, sizeof(place->name), "%s:/%s", place->volume.name, place->path);
	if (clean_path(place->path) == 0) {
		snprintf(place->name, sizeof(place->name), "%s:/%s", place->volume.name,
			 place->path);
		return 0;
	}
	free(place->path);
	place->path = NULL;
	return admin_fail(run, 2, "%s: \"..\" cannot be in a path", place->name);
}

static int end_place(struct admin_run *run, struct admin_place *place, size_t length)
{
	int rc = walk_to_object(run, place, length);

	if (!rc)
		return 0;
	free(place->path);
	place->path = NULL;
	return admin_fail_code(run, rc, "%s", place->name);
}

int admin_find_place(struct admin_run *run, struct admin_place *place)
{
	int rc = begin_place(run, place);

	return rc ? rc : end_place(run, place, strlen(place->path));
}

int admin_find_parent(struct admin_run *run, struct admin_place *place, const char **last)
{
	int rc = begin_place(run, place);
	char *slash;

	if (rc)
		return rc;
	slash = strrchr(place->path, '/');
	*last = slash ? slash + 1 : place->path;
	return end_place(run, place, slash ? (size_t)(slash - place->path) : 0);
}

/* ---- directories that are still to be visited ---- */

int admin_push_pending(struct admin_run *run, struct admin_pending **stack, const char *path,
		       const struct store_fid *fid, bool existed)
{
	struct admin_pending *pending = malloc(sizeof(*pending));

	if (pending)
		*pending = (struct admin_pending){*stack, strdup(path), *fid, existed};
	if (!pending || !pending->path) {
		free(pending);
		admin_fail(run, 1, "no memory");
		return -1;
	}
	*stack = pending;
	return 0;
}

int admin_visit_pending(struct admin_pending **stack, int rc,
			int (*visit)(void *arg, const struct admin_pending *dir), void *arg)
{
	while (*stack) {
		struct admin_pending *dir = *stack;

		*stack = dir->next;
		if (!rc)
			rc = visit(arg, dir);
		free(dir->path);
		free(dir);
	}
	return rc;
}

/* ---- below a local directory ---- */

#if defined(__has_include)
#	if __has_include(<linux/openat2.h>)
#		include <linux/openat2.h>
#		define HAVE_OPENAT2 1
#	endif
#endif

/* The path may be that of another process, which has fewer rights than this one. */
static bool leads_up(const char *path)
{
	for (; path; path = strchr(path, '/')) {
		path += *path == '/';
		if (!strncmp(path, "..", 2) && (!path[2] || path[2] == '/'))
			return true;
	}
	return false;
}

/* One name at a time, for kernels without openat2(). */
static int open_name_by_name(int directory, const char *path, int flags, unsigned mode)
{
	int at = directory;

	for (;;) {
		char name[STORE_NAME_MAX + 1];
		size_t n = strcspn(path, "/");
		bool last = !path[n];
		int fd = -1, saved = ENAMETOOLONG;

		if (n <= STORE_NAME_MAX) {
			memcpy(name, path, n);
			name[n] = 0;
			fd = last ? openat(at, name, flags, mode)
				  : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			saved = errno;
		}
		if (at != directory)
			close(at);
		if (fd < 0 || last)
			return fd < 0 ? -saved : fd;
		at = fd;
		path += n + 1;
	}
}

int admin_open_beneath(int directory, const char *path, int flags, unsigned mode)
{
	int fd;

	flags |= O_NOFOLLOW | O_CLOEXEC;
	if (!*path)
		path = ".";
	if (leads_up(path))
		return -EXDEV;
#ifdef HAVE_OPENAT2
	struct open_how how = {
		.flags = (uint64_t)flags,
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
	if (fd >= 0)
		return fd;
	/* Filters of system calls answer EPERM to what they do not know. */
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
#endif
	fd = open_name_by_name(directory, path, flags, mode);
	return fd;
}

char *admin_join(const char *dir, const char *name)
{
	size_t a = strlen(dir), b = strlen(name);
	char *path;

	if (a + b + 2 > ADMIN_PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	path = malloc(a + b + 2);
	if (!path)
		return NULL;
	memcpy(path, dir, a);
	if (a)
		path[a++] = '/';
	memcpy(path + a, name, b + 1);
	return path;
}
