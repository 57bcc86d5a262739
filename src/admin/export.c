/* SPDX-License-Identifier: BSD-2-Clause */
/* export: a tree of a volume into a directory of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/private.h"
#include "afs/dir.h"

#define BUFFER	 ((size_t)1 << 20)
#define ZERO_RUN ((size_t)65536) /* so many bytes 0 at such an offset are not written */

/* A directory that was made, and gets its mode and time at the end. */
struct made {
	char *path;
	struct store_fid fid;
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
	bool set_id;
	uint64_t total, bytes, objects, skipped;
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
static unsigned choose_export_mode(const struct export *export, const struct store_status *status)
{
	bool same = status->owner >= 0 && (uid_t)status->owner == geteuid();

	return status->mode & (same && export->set_id ? 07777 : 01777);
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
static int fill_file(struct export *export, const char *path, int fd, const struct store_fid *fid,
		     int *code)
{
	struct store *store = export->run->store;
	struct store_status status;
	struct store_reader *reader;
	int rc;

	*code = store->ops->read_begin(store, &admin_caller, fid, &reader, &status);
	if (*code)
		return 0;
	rc = copy_to_local_file(export, path, fd, reader, status.length, code);
	store->ops->read_end(reader);
	if (rc || *code)
		return rc;
	if (fchmod(fd, choose_export_mode(export, &status)) < 0)
		return -errno;
	return set_exported_times(fd, NULL, status.client_mtime);
}

/* A further name of a file of the same directory: 1 if it was made. */
static bool export_linked(struct export *export, const char *name, uint32_t vnode)
{
	for (size_t i = 0; i < export->linked_count; i++)
		if (export->linked[i].vnode == vnode)
			return linkat(export->at, export->linked[i].name, export->at, name, 0) == 0;
	return false;
}

static void note_exported_link(struct export *export, const char *name, uint32_t vnode)
{
	if (export->linked_count == export->linked_room) {
		size_t room = export->linked_room ? export->linked_room * 2 : 16;
		struct linked *grown = realloc(export->linked, room * sizeof(*grown));

		if (!grown)
			return;
		export->linked = grown;
		export->linked_room = room;
	}
	export->linked[export->linked_count].vnode = vnode;
	export->linked[export->linked_count].name = strdup(name);
	if (export->linked[export->linked_count].name)
		export->linked_count++;
}

static int export_file(struct export *export, const char *path, const char *name,
		       const struct store_status *status)
{
	int code = 0, rc, fd;

	if (status->links > 1 && export_linked(export, name, status->fid.vnode)) {
		export->objects++;
		return 0;
	}
	fd = openat(export->at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return local_error(export, path, -errno);
	rc = fill_file(export, path, fd, &status->fid, &code);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (rc || code) {
		unlinkat(export->at, name, 0);
		return rc ? local_error(export, path, rc) : store_error(export, path, code);
	}
	export->objects++;
	if (status->links > 1)
		note_exported_link(export, name, status->fid.vnode);
	return 0;
}

/* -- links and directories -- */

static int export_symlink(struct export *export, const char *path, const char *name,
			  const struct store_status *status)
{
	struct store_status now;
	char *text;
	int rc = admin_contents(export->run->store, &status->fid, &text, NULL, &now);

	if (rc)
		return store_error(export, path, rc);
	rc = symlinkat(text, export->at, name) < 0 ? -errno : 0;
	free(text);
	if (!rc)
		rc = set_exported_times(export->at, name, status->client_mtime);
	if (rc)
		return local_error(export, path, rc);
	export->objects++;
	return 0;
}

/* Takes `path`. */
static int push_made_directory(struct export *export, char *path, const struct store_status *status)
{
	if (export->count == export->room) {
		size_t room = export->room ? export->room * 2 : 64;
		struct made *grown = realloc(export->made, room * sizeof(*grown));

		if (!grown) {
			free(path);
			admin_fail(export->run, 1, "no memory");
			return -1;
		}
		export->made = grown;
		export->room = room;
	}
	export->made[export->count++] = (struct made){
		path, status->fid, choose_export_mode(export, status), status->client_mtime};
	return 0;
}

static int export_directory(struct export *export, const char *path, const char *name,
			    const struct store_status *status)
{
	char *copy;

	if (mkdirat(export->at, name, 0700) < 0)
		return local_error(export, path, -errno);
	export->objects++;
	copy = strdup(path);
	if (!copy) {
		admin_fail(export->run, 1, "no memory");
		return -1;
	}
	return push_made_directory(export, copy, status);
}

static int export_object(struct export *export, const char *path, const char *name,
			 const struct store_fid *fid)
{
	struct store *store = export->run->store;
	struct store_status status;
	int rc = store->ops->status(store, &admin_caller, fid, &status);

	admin_progress(export->run, path, export->bytes, export->total, export->objects);
	if (rc)
		return store_error(export, path, rc);
	switch (status.kind) {
	case STORE_FILE:
		return export_file(export, path, name, &status);
	case STORE_SYMLINK:
		return export_symlink(export, path, name, &status);
	case STORE_DIR:
		return export_directory(export, path, name, &status);
	}
	return store_error(export, path, -EIO);
}

static int export_entry(struct export *export, const struct made *dir,
			const struct afs_dir_entry *entry)
{
	struct store_fid fid = {dir->fid.volume, entry->vnode, entry->unique};
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

/* All names of a directory. */
static int export_names(struct export *export, struct made dir)
{
	struct store_status status;
	char *image;
	size_t length;
	int rc = admin_contents(export->run->store, &dir.fid, &image, &length, &status);

	if (rc)
		return store_error(export, dir.path, rc);
	export->at = admin_open_beneath(export->run->output->directory, dir.path,
					O_RDONLY | O_DIRECTORY, 0);
	if (export->at < 0)
		rc = local_error(export, dir.path, export->at);
	else
		rc = export_image(export, &dir, image, length);
	if (export->at >= 0)
		close(export->at);
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

static int export_tree(struct export *export, struct admin_place *place)
{
	char *top = strdup("");
	int rc = top ? push_made_directory(export, top, &place->status) : -1;

	while (!rc && export->next < export->count)
		rc = export_names(export, export->made[export->next++]);
	if (!rc)
		finish_directories(export);
	while (export->count)
		free(export->made[--export->count].path);
	free(export->made);
	free(export->linked);
	return rc;
}

int admin_export(struct admin_run *run)
{
	struct export export = {.run = run, .set_id = admin_get_flag(run, "set_id")};
	struct admin_place place;
	int rc = admin_find_place(run, &place);

	if (rc)
		return rc;
	free(place.path);
	if (place.status.kind != STORE_DIR)
		return admin_fail_code(run, -ENOTDIR, "%s", place.name);
	export.total = place.fid.vnode == STORE_ROOT_VNODE ? place.volume.used_kib * 1024 : 0;
	export.buffer = malloc(BUFFER);
	if (!export.buffer)
		return admin_fail(run, 1, "no memory");
	rc = export_tree(&export, &place);
	free(export.buffer);
	if (rc)
		return 1;
	return admin_done(run,
			  json_pack("{s:I, s:I, s:I}", "objects", (json_int_t) export.objects,
				    "bytes", (json_int_t) export.bytes, "skipped",
				    (json_int_t) export.skipped),
			  false, export.skipped != 0);
}
