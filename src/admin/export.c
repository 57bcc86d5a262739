/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export: a tree of a volume, as it is at one moment, into a directory of this machine. An update replaces what differs there: a new
 * file gets its name when it is complete.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/attributes.h"
#include "admin/private.h"
#include "afs/dir.h"
#include "common/grow.h"

#define BUFFER	 ((size_t)1 << 20)
#define ZERO_RUN ((size_t)65536) /* so many bytes 0 at such an offset are not written */

/* A directory that was made, and gets its mode and time at the end. */
struct made {
	char *path;
	uint32_t vnode, unique;
	unsigned mode;
	uint32_t mtime;
};

/* The files of one directory that have several names. */
struct linked {
	uint32_t vnode;
	char *name;
};

/* One export. One thread. */
struct export
{
	struct admin_run *run;
	int at; /* descriptor of the directory that gets names now */
	char *buffer;
	struct store_snapshot *snapshot;
	bool set_id, update, remove;
	FILE *attributes; /* NULL: none are wanted */
	uint64_t total, bytes, objects, skipped, unchanged, removed;
	struct made *made;
	size_t count, room, next; /* made[next..count) still have to be filled */
	struct linked *linked;
	size_t linked_count, linked_room;
};

static void skip_object(struct export *export, const char *path, const char *reason)
{
	export->skipped++;
	admin_skipped(export->run, *path ? path : ".", reason);
}

/*
 * Set-id bits of the volume would give the rights of a user of this machine. They stay only if the request says so, and where the
 * file will belong to the same number.
 */
static unsigned choose_export_mode(const struct export *export, const struct store_vnode *vnode)
{
	bool same = vnode->owner >= 0 && (uid_t)vnode->owner == geteuid();

	return vnode->mode & (same && export->set_id ? 07777 : 01777);
}

/* Sets the times of the open file, or with `name` those of a link in that directory. 0 or -errno. */
static int set_exported_times(int fd, const char *name, uint32_t mtime)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)mtime}};
	int rc = name ? utimensat(fd, name, times, AT_SYMLINK_NOFOLLOW) : futimens(fd, times);

	return rc < 0 ? -errno : 0;
}

/* -- files -- */

/* Write, but leave holes where all is 0. 0 or -errno. */
static int write_sparse(int fd, const char *buffer, size_t length, uint64_t offset)
{
	static const char zeros[ZERO_RUN];

	for (size_t at = 0; at < length;) {
		size_t n = ZERO_RUN - (size_t)((offset + at) % ZERO_RUN);
		ssize_t written;

		if (n > length - at)
			n = length - at;
		if (!memcmp(buffer + at, zeros, n)) {
			at += n;
			continue;
		}
		written = pwrite(fd, buffer + at, n, (off_t)(offset + at));
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		at += (size_t)written;
	}
	return 0;
}

/* 0; -errno of the file; *code: a result of the store. */
static int copy_to_local_file(struct export *export, const char *path, int fd,
			      struct store_reader *reader, uint64_t length, int *code)
{
	struct store *store = export->run->store;
	uint64_t at = 0;

	*code = 0;
	while (at < length) {
		struct iovec iov = {export->buffer, BUFFER};
		ssize_t n = store->ops->read(reader, &iov, 1, at, 0);
		int rc;

		if (n <= 0) {
			*code = n < 0 ? (int)n : -EIO;
			return 0;
		}
		store->ops->read_ahead(reader, at + (uint64_t)n, BUFFER);
		rc = write_sparse(fd, export->buffer, (size_t)n, at);
		if (rc)
			return rc;
		at += (uint64_t)n;
		export->bytes += (uint64_t)n;
		admin_progress(export->run, path, export->bytes, export->total, export->objects);
		if (admin_stopped(export->run))
			return -EINTR;
	}
	return ftruncate(fd, (off_t)length) < 0 ? -errno : 0;
}

/* Errors of the disk that is written to end the export. */
static int local_error(struct export *export, const char *path, int rc)
{
	if (rc == -ENOSPC || rc == -EDQUOT || rc == -EIO || rc == -EROFS || rc == -EINTR) {
		admin_fail(export->run, 1, "%s: %s", path,
			   rc == -EINTR ? "interrupted" : strerror(-rc));
		return -1;
	}
	skip_object(export, path,
		    rc == -EEXIST ? "exists already; export to an empty directory" : strerror(-rc));
	return 0;
}

static int store_error(struct export *export, const char *path, int code)
{
	if (code == STORE_VNOVOL || code == -ENOMEM) {
		admin_fail_code(export->run, code, "%s", path);
		return -1;
	}
	skip_object(export, path, admin_code_text(code));
	return 0;
}

/* Bytes, mode and time of a new file. 0 or -errno, *code as above. */
static int fill_file(struct export *export, const char *path, int fd,
		     const struct store_vnode *vnode, int *code)
{
	struct store_reader *reader;
	int rc;

	*code = store_snapshot_open(export->snapshot, &reader);
	if (*code)
		return 0;
	rc = copy_to_local_file(export, path, fd, reader, vnode->length, code);
	export->run->store->ops->read_end(reader);
	if (rc || *code)
		return rc;
	if (fchmod(fd, choose_export_mode(export, vnode)) < 0)
		return -errno;
	return set_exported_times(fd, NULL, vnode->client_mtime);
}

/* -- what is there already -- */

#define NEW_NAME ".rxvol-new" /* of a file or link until it is complete */

/* A directory, unless it is a link, or another file system or part of one is mounted there: -EXDEV. A descriptor or -errno. */
static int open_unmounted(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statx above, below;

	if (fd < 0)
		return -errno;
	if (!statx(at, "", AT_EMPTY_PATH, 0, &above) && !statx(fd, "", AT_EMPTY_PATH, 0, &below) &&
	    above.stx_dev_major == below.stx_dev_major &&
	    above.stx_dev_minor == below.stx_dev_minor &&
	    !(below.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return fd;
	close(fd);
	return -EXDEV;
}

/* Remove a name and all that is below it, without following links or entering other file systems. 0 or -errno. */
static int remove_local(int at, const char *name)
{
	const struct dirent *entry;
	int rc = 0, fd;
	DIR *stream;

	if (!unlinkat(at, name, 0) || errno == ENOENT)
		return 0;
	fd = open_unmounted(at, name);
	if (fd < 0)
		return fd;
	stream = fdopendir(fd);
	if (!stream) {
		rc = -errno;
		close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			rc = remove_local(fd, entry->d_name);
	closedir(stream);
	return rc ? rc : unlinkat(at, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Make room for another kind of object. 0 or -errno; -EISDIR: only --delete removes a directory. */
static int clear_local(struct export *export, const char *name, const struct stat *st)
{
	assert(export->update);
	if (S_ISDIR(st->st_mode) && !export->remove)
		return -EISDIR;
	return remove_local(export->at, name);
}

/* Whether a file is there with this size, time and mode; the mode is corrected. */
static bool is_unchanged_file(struct export *export, const char *name, const struct stat *st,
			      const struct store_vnode *vnode)
{
	unsigned mode = choose_export_mode(export, vnode);
	bool same;
	int fd;

	if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != vnode->length ||
	    st->st_mtime != (time_t)vnode->client_mtime)
		return false;
	if ((st->st_mode & 07777) == mode)
		return true;
	fd = openat(export->at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	same = fd >= 0 && fchmod(fd, mode) == 0;
	if (fd >= 0)
		close(fd);
	return same;
}

/* A complete object gets its name, in place of another one if it is an update. 0 or -errno. */
static int name_new(struct export *export, const char *name)
{
	struct stat st;
	int rc;

	if (export->update && !fstatat(export->at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISDIR(st.st_mode)) {
		rc = clear_local(export, name, &st);
		if (rc)
			return rc;
	}
	rc = renameat2(export->at, NEW_NAME, export->at, name,
		       export->update ? 0 : RENAME_NOREPLACE);
	return rc < 0 ? -errno : 0;
}

/* The name of a new file or link: with an update, one that nobody else uses. */
static const char *choose_new_name(const struct export *export, const char *name)
{
	if (!export->update)
		return name;
	unlinkat(export->at, NEW_NAME, 0);
	return NEW_NAME;
}

/* Whether two names in the directory are those of one file. */
static bool is_one_file(const struct export *export, const char *name, const char *other)
{
	struct stat a, b;

	return !fstatat(export->at, name, &a, AT_SYMLINK_NOFOLLOW) &&
	       !fstatat(export->at, other, &b, AT_SYMLINK_NOFOLLOW) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* A further name of a file of the same directory: 1 if it was made. */
static bool export_linked(struct export *export, const char *name, uint32_t vnode)
{
	const char *new;
	size_t i = 0;

	while (i < export->linked_count && export->linked[i].vnode != vnode)
		i++;
	if (i == export->linked_count)
		return false;
	if (export->update && is_one_file(export, name, export->linked[i].name)) {
		export->unchanged++;
		return true;
	}
	new = choose_new_name(export, name);
	if (linkat(export->at, export->linked[i].name, export->at, new, 0) < 0 ||
	    (export->update && name_new(export, name)))
		return false;
	export->objects++;
	return true;
}

static void note_exported_link(struct export *export, const char *name, uint32_t vnode)
{
	if (!grow_array(&export->linked, &export->linked_room, export->linked_count,
			sizeof(*export->linked)))
		return;
	export->linked[export->linked_count].vnode = vnode;
	export->linked[export->linked_count].name = strdup(name);
	if (export->linked[export->linked_count].name)
		export->linked_count++;
}

/* 0; -1: the export ends. *made: there is a new one. */
static int write_exported_file(struct export *export, const char *path, const char *name,
			       const struct store_vnode *vnode, bool *made)
{
	const char *new = choose_new_name(export, name);
	int code = 0, rc, fd;

	fd = openat(export->at, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return local_error(export, path, -errno);
	rc = fill_file(export, path, fd, vnode, &code);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && !code && export->update)
		rc = name_new(export, name);
	*made = !rc && !code;
	if (*made)
		return 0;
	unlinkat(export->at, new, 0);
	return rc ? local_error(export, path, rc) : store_error(export, path, code);
}

static int export_file(struct export *export, const char *path, const char *name,
		       const struct store_vnode *vnode)
{
	struct stat st;
	bool made = true;
	int rc;

	if (vnode->links > 1 && export_linked(export, name, vnode->vnode))
		return 0;
	if (export->update && !fstatat(export->at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    is_unchanged_file(export, name, &st, vnode)) {
		export->unchanged++;
	} else {
		rc = write_exported_file(export, path, name, vnode, &made);
		if (rc || !made)
			return rc;
		export->objects++;
	}
	if (vnode->links > 1)
		note_exported_link(export, name, vnode->vnode);
	return 0;
}

/* -- links and directories -- */

static bool is_same_symlink(const struct export *export, const char *name, const char *text)
{
	char there[STORE_TEXT_MAX + 1];
	ssize_t n = readlinkat(export->at, name, there, sizeof(there));

	return n >= 0 && (size_t)n == strlen(text) && !memcmp(there, text, (size_t)n);
}

static int export_symlink(struct export *export, const char *path, const char *name,
			  const struct store_vnode *vnode)
{
	const char *new;
	char *text;
	int rc = admin_snapshot_contents(export->run->store, export->snapshot, vnode, &text);

	if (rc)
		return store_error(export, path, rc);
	if (export->update && is_same_symlink(export, name, text)) {
		free(text);
		export->unchanged++;
		return 0;
	}
	new = choose_new_name(export, name);
	rc = symlinkat(text, export->at, new) < 0 ? -errno : 0;
	free(text);
	if (!rc)
		rc = set_exported_times(export->at, new, vnode->client_mtime);
	if (!rc && export->update)
		rc = name_new(export, name);
	if (rc)
		return local_error(export, path, rc);
	export->objects++;
	return 0;
}

/* The function takes `path`. */
static int push_made_directory(struct export *export, char *path, const struct store_vnode *vnode)
{
	assert(vnode->kind == STORE_DIR);
	if (!grow_array(&export->made, &export->room, export->count, sizeof(*export->made))) {
		free(path);
		admin_fail(export->run, 1, "no memory");
		return -1;
	}
	export->made[export->count++] =
		(struct made){path, vnode->vnode, vnode->unique, choose_export_mode(export, vnode),
			      vnode->client_mtime};
	return 0;
}

/* 0 or -errno. One that is there stays in an update, and can be written to until the end. */
static int make_local_directory(struct export *export, const char *name)
{
	struct stat st;
	int rc;

	if (export->update && !fstatat(export->at, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (S_ISDIR(st.st_mode)) {
			int fd = openat(export->at, name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			rc = fd < 0 || fchmod(fd, st.st_mode | 0700) < 0 ? -errno : 0;
			if (fd >= 0)
				close(fd);
			export->unchanged += !rc;
			return rc;
		}
		rc = clear_local(export, name, &st);
		if (rc)
			return rc;
	}
	if (mkdirat(export->at, name, 0700) < 0)
		return -errno;
	export->objects++;
	return 0;
}

static int export_directory(struct export *export, const char *path, const char *name,
			    const struct store_vnode *vnode)
{
	char *copy;
	int rc = make_local_directory(export, name);

	if (rc)
		return local_error(export, path, rc);
	copy = strdup(path);
	if (!copy) {
		admin_fail(export->run, 1, "no memory");
		return -1;
	}
	return push_made_directory(export, copy, vnode);
}

static int export_object(struct export *export, const char *path, const char *name,
			 const struct store_fid *fid)
{
	struct store_vnode vnode;
	int rc = store_snapshot_find(export->snapshot, fid->vnode, fid->unique, &vnode);

	admin_progress(export->run, path, export->bytes, export->total, export->objects);
	if (rc)
		return store_error(export, path, rc);
	if (export->attributes && admin_attributes_write(export->attributes, path, &vnode))
		return local_error(export, ADMIN_ATTRIBUTES, -errno);
	switch (vnode.kind) {
	case STORE_FILE:
		return export_file(export, path, name, &vnode);
	case STORE_SYMLINK:
		return export_symlink(export, path, name, &vnode);
	case STORE_DIR:
		return export_directory(export, path, name, &vnode);
	}
	return store_error(export, path, -EIO);
}

static int export_entry(struct export *export, const struct made *dir,
			const struct afs_dir_entry *entry)
{
	struct store_fid fid = {0, entry->vnode, entry->unique};
	char *path;
	int rc;

	if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
		return 0;
	if (admin_stopped(export->run))
		return local_error(export, dir->path, -EINTR);
	path = admin_join(dir->path, entry->name);
	if (!path) {
		skip_object(export, dir->path, "has names whose paths exceed 4095 bytes");
		return 0;
	}
	rc = export_object(export, path, entry->name, &fid);
	free(path);
	return rc;
}

static void forget_linked(struct export *export)
{
	while (export->linked_count)
		free(export->linked[--export->linked_count].name);
}

static int export_image(struct export *export, const struct made *dir, const char *image,
			size_t length)
{
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	int rc = 0, more = 1;

	while (!rc && (more = afs_dir_next((const uint8_t *)image, length, &cursor, &entry)) == 1)
		rc = export_entry(export, dir, &entry);
	forget_linked(export);
	return !rc && more < 0 ? store_error(export, dir->path, -EIO) : rc;
}

/* Names that the directory of the volume does not have. 0, or -1: the export ends. */
static int remove_others(struct export *export, const struct made *dir, const char *image,
			 size_t length)
{
	int copy = fcntl(export->at, F_DUPFD_CLOEXEC, 0), rc = 0;
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	uint32_t vnode, unique;

	if (!stream) {
		rc = -errno;
		if (copy >= 0)
			close(copy);
		return local_error(export, dir->path, rc);
	}
	while (!rc && (entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    (!*dir->path && admin_is_attributes(entry->d_name)) ||
		    afs_dir_lookup((const uint8_t *)image, length, entry->d_name, &vnode,
				   &unique) == 1)
			continue;
		rc = remove_local(export->at, entry->d_name);
		export->removed += !rc;
		rc = rc ? local_error(export, dir->path, rc) : 0;
	}
	closedir(stream);
	return rc;
}

/* All names of a directory. */
static int export_names(struct export *export, struct made dir)
{
	struct store_vnode vnode;
	char *image;
	int rc = store_snapshot_find(export->snapshot, dir.vnode, dir.unique, &vnode);

	if (!rc)
		rc = admin_snapshot_contents(export->run->store, export->snapshot, &vnode, &image);
	if (rc)
		return store_error(export, dir.path, rc);
	export->at = admin_open_beneath(export->run->output->directory, dir.path,
					O_RDONLY | O_DIRECTORY, 0);
	if (export->at < 0) {
		rc = local_error(export, dir.path, export->at);
	} else {
		rc = export_image(export, &dir, image, (size_t)vnode.length);
		if (!rc && export->remove)
			rc = remove_others(export, &dir, image, (size_t)vnode.length);
		close(export->at);
	}
	free(image);
	return rc;
}

/* Modes and times of directories, those below others first. */
static void finish_directories(struct export *export)
{
	for (size_t i = export->count; i--;) {
		const struct made *dir = &export->made[i];
		int fd = admin_open_beneath(export->run->output->directory, dir->path,
					    O_RDONLY | O_DIRECTORY, 0);
		int rc = fd < 0 ? fd : set_exported_times(fd, NULL, dir->mtime);

		if (!rc && fchmod(fd, dir->mode) < 0)
			rc = -errno;
		if (fd >= 0)
			close(fd);
		if (rc)
			skip_object(export, dir->path, strerror(-rc));
	}
}

static int export_tree(struct export *export, const struct store_vnode *vnode)
{
	char *top = strdup("");
	int rc = top ? push_made_directory(export, top, vnode) : -1;

	if (!rc && export->attributes && admin_attributes_write(export->attributes, "", vnode))
		rc = local_error(export, ADMIN_ATTRIBUTES, -errno);
	while (!rc && export->next < export->count)
		rc = export_names(export, export->made[export->next++]);
	/* This is done before the time of the directory that has the file is set. */
	if (!rc && export->attributes) {
		int error =
			admin_attributes_close(export->attributes, export->run->output->directory);

		export->attributes = NULL;
		rc = error ? local_error(export, ADMIN_ATTRIBUTES, error) : 0;
	}
	if (!rc)
		finish_directories(export);
	while (export->count)
		free(export->made[--export->count].path);
	free(export->made);
	free(export->linked);
	return rc;
}

/* The snapshot has been taken. 0; 1 after an error. */
static int run_export(struct export *export, const struct admin_place *place)
{
	struct admin_run *run = export->run;
	struct store_vnode vnode;
	int rc = store_snapshot_find(export->snapshot, place->fid.vnode, place->fid.unique, &vnode);

	if (rc)
		return admin_fail_code(run, rc, "%s", place->name);
	export->buffer = malloc(BUFFER);
	if (!export->buffer)
		return admin_fail(run, 1, "no memory");
	if (admin_get_flag(run, "attributes")) {
		export->attributes = admin_attributes_create(run->output->directory);
		if (!export->attributes) {
			free(export->buffer);
			return admin_fail(run, 1, "%s: %s", ADMIN_ATTRIBUTES, strerror(errno));
		}
	}
	rc = export_tree(export, &vnode);
	if (export->attributes)
		fclose(export->attributes);
	free(export->buffer);
	return rc ? 1 : 0;
}

int admin_export(struct admin_run *run)
{
	struct export export = {.run = run,
				.set_id = admin_get_flag(run, "set_id"),
				.update = admin_get_flag(run, "update"),
				.remove = admin_get_flag(run, "delete")};
	struct admin_place place;
	int rc = admin_find_place(run, &place), end;

	if (rc)
		return rc;
	free(place.path);
	if (place.status.kind != STORE_DIR)
		return admin_fail_code(run, -ENOTDIR, "%s", place.name);
	if (export.remove && !export.update)
		return admin_fail(run, 2, "--delete is for an update; add --update");
	export.total = place.fid.vnode == STORE_ROOT_VNODE ? place.volume.used_kib * 1024 : 0;
	rc = store_snapshot_take(run->store, place.volume.id, 0, &export.snapshot);
	if (rc)
		return admin_fail_snapshot(run, rc, place.volume.name);
	rc = run_export(&export, &place);
	end = store_snapshot_end(export.snapshot);
	if (rc)
		return 1;
	if (end)
		return admin_fail_snapshot(run, end, place.volume.name);
	return admin_done(run,
			  json_pack("{s:I, s:I, s:I, s:I, s:I}", "objects",
				    (json_int_t) export.objects, "bytes", (json_int_t) export.bytes,
				    "unchanged", (json_int_t) export.unchanged, "removed",
				    (json_int_t) export.removed, "skipped",
				    (json_int_t) export.skipped),
			  false, export.skipped != 0);
}
