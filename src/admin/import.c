/* SPDX-License-Identifier: BSD-2-Clause */
/* import: a tree of this machine into a volume. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/import.h"
#include "afs/dir.h"
#include "common/grow.h"

void admin_import_skip(struct admin_import *import, const char *path, const char *reason)
{
	import->skipped++;
	admin_skipped(import->run, *path ? path : ".", reason);
}

/* Progress on the way, with a path that is being imported. */
static void admin_import_progress(struct admin_import *import, const char *path)
{
	admin_progress(import->run, path, import->bytes + import->passed, import->total,
		       import->objects + import->unchanged);
}

/* Results that concern the whole import rather than one object. */
static bool is_fatal(int rc)
{
	switch (rc) {
	case STORE_VSALVAGE:
	case STORE_VNOVNODE:
	case STORE_VNOVOL:
	case STORE_VDISKFULL:
	case STORE_VOVERQUOTA:
	case STORE_VBUSY:
	case -EIO:
	case -ENOMEM:
	case -EROFS:
	case -EMFILE:
	case -ENFILE:
		return true;
	default:
		return rc > 0;
	}
}

/* Handles a result of the store for an object. 0: the object was skipped; 1: the import ends. */
int admin_import_refused(struct admin_import *import, const char *path, int rc)
{
	if (is_fatal(rc)) {
		admin_fail(import->run, 1,
			   "%s: %s; %llu files, directories and links were imported",
			   *path ? path : admin_get_text(import->run, "volume"),
			   admin_code_text(rc), (unsigned long long)import->objects);
		return 1;
	}
	admin_import_skip(import, path,
			  rc == -EEXIST ? "exists in the volume already, and is not the same; "
					  "remove it there first"
					: admin_code_text(rc));
	return 0;
}

/* ---- contents of files ---- */

/* Pieces of one file, each of which is stored on its own: one for 128 KiB of its length, between these. */
#define PIECES_LEAST 128
#define PIECES_MOST  4096

static unsigned most_pieces(uint64_t size)
{
	uint64_t most = size >> 17;

	return most < PIECES_LEAST  ? PIECES_LEAST
	       : most > PIECES_MOST ? PIECES_MOST
				    : (unsigned)most;
}

/*
 * Where a file has data. Holes shorter than `gap` count as data. Returns the number of pieces, or
 * `most` + 1 if there are more.
 */
static unsigned find_pieces(int fd, uint64_t size, uint64_t gap, unsigned most,
			    struct admin_piece *piece)
{
	unsigned count = 0;
	off_t at = 0;

	while ((uint64_t)at < size) {
		off_t start = lseek(fd, at, SEEK_DATA), end;

		if (start < 0 && errno == ENXIO)
			break;
		end = start < 0 ? -1 : lseek(fd, start, SEEK_HOLE);
		/* A file system that cannot tell. */
		if (end < 0 || end <= start) {
			piece[0] = (struct admin_piece){0, size};
			return 1;
		}
		at = end;
		if ((uint64_t)start >= size)
			break;
		if ((uint64_t)end > size)
			end = (off_t)size;
		if (count && (uint64_t)start - piece[count - 1].end < gap) {
			piece[count - 1].end = (uint64_t)end;
			continue;
		}
		if (count == most)
			return most + 1;
		piece[count++] = (struct admin_piece){(uint64_t)start, (uint64_t)end};
	}
	return count;
}

/* Few enough pieces: short holes of a file with very many are filled. */
static unsigned choose_pieces(int fd, uint64_t size, struct admin_piece *piece)
{
	unsigned most = most_pieces(size), count = most + 1;

	for (uint64_t gap = 1; count > most; gap = gap < 65536 ? 65536 : gap * 4)
		count = find_pieces(fd, size, gap, most, piece);
	return count;
}

/* The bytes of a piece go to a writer. 0, a result of the store, or 1000 + errno of the file. */
#define SOURCE_ERROR 1000
static int copy_piece_to_writer(struct admin_import *import, const char *path, int fd,
				const struct admin_piece *piece, struct store_writer *writer)
{
	uint64_t at = piece->start;

	assert(piece->start <= piece->end);
	while (at < piece->end) {
		size_t want =
			piece->end - at < ADMIN_BUFFER ? (size_t)(piece->end - at) : ADMIN_BUFFER;
		ssize_t n = pread(fd, import->buffer, want, (off_t)at);
		struct iovec iov = {import->buffer, (size_t)n};
		int rc;

		if (n <= 0)
			return SOURCE_ERROR + (n < 0 ? errno : 0);
		rc = import->run->store->ops->write(writer, &iov, 1);
		if (rc)
			return rc;
		at += (uint64_t)n;
		import->bytes += (uint64_t)n;
		admin_import_progress(import, path);
		if (admin_stopped(import->run))
			return SOURCE_ERROR + EINTR;
	}
	return 0;
}

int admin_import_piece(struct admin_import *import, const char *path, int fd, uint64_t size,
		       const struct admin_piece *piece, const struct store_fid *fid,
		       const struct store_set *set)
{
	struct store *store = import->run->store;
	struct store_writer *writer;
	struct store_status status;
	struct store_changes changes = {0};
	int rc = store->ops->write_begin(store, &admin_caller, fid, set, piece->start,
					 piece->end - piece->start, size, &writer);

	if (rc)
		return rc;
	rc = copy_piece_to_writer(import, path, fd, piece, writer);
	if (rc) {
		store->ops->write_abort(writer);
		return rc;
	}
	rc = store->ops->write_commit(writer, &status, &changes);
	if (!rc)
		admin_changed(import->run, &changes);
	return rc;
}

int admin_import_result(struct admin_import *import, const char *path, int rc)
{
	if (rc == SOURCE_ERROR + EINTR && admin_stopped(import->run)) {
		admin_fail(import->run, 1, "interrupted");
		return -1;
	}
	if (rc >= SOURCE_ERROR) {
		admin_import_skip(import, path,
				  rc == SOURCE_ERROR ? "became shorter while it was read"
						     : strerror(rc - SOURCE_ERROR));
		return 1;
	}
	return rc ? admin_import_refused(import, path, rc) ? -1 : 1 : 0;
}

/*
 * The `size` bytes of an open file, at least one, become the content of a new one; holes stay holes. The transaction
 * that completes it sets what `set` says, and each one before that only the time 0. 0; 1: the file was skipped; -1:
 * the import ends, after an error.
 */
int admin_import_data(struct admin_import *import, const char *path, int fd, uint64_t size,
		      const struct store_fid *fid, const struct store_set *set)
{
	static const struct store_set unfinished = {.mask = STORE_SET_MTIME};
	struct admin_piece piece[PIECES_MOST + 1];
	unsigned count = choose_pieces(fd, size, piece);
	int rc = 0;

	assert(count <= PIECES_MOST);
	/* A hole at the end. */
	if (!count || piece[count - 1].end < size)
		piece[count++] = (struct admin_piece){size, size};
	for (unsigned i = 0; !rc && i < count; i++)
		rc = admin_import_piece(import, path, fd, size, &piece[i], fid,
					i + 1 < count ? &unfinished : set);
	return admin_import_result(import, path, rc);
}

/*
 * Some file systems of the kernel have files that say they are empty, but have bytes. *size is set to how many, and these are in the
 * buffer. 0; 1: the file was skipped, because they are more.
 */
static int admin_import_measure(struct admin_import *import, const char *path, int fd,
				uint64_t *size)
{
	ssize_t n = 0;

	*size = 0;
	while (*size < ADMIN_BUFFER) {
		n = pread(fd, import->buffer + *size, ADMIN_BUFFER - *size, (off_t)*size);
		if (n <= 0)
			break;
		*size += (uint64_t)n;
	}
	if (n == 0)
		return 0;
	admin_import_skip(
		import, path,
		n < 0 ? strerror(errno)
		      : "says that it is empty, but has more than 1 MiB; copy it to a file first");
	return 1;
}

/*
 * As admin_import_data(), of such a file, or of one that was cut to nothing since it had `size` bytes. The buffer may have others
 * by now, so the file is read again.
 */
int admin_import_unsized(struct admin_import *import, const char *path, int fd, uint64_t size,
			 const struct store_fid *fid, const struct store_set *set)
{
	struct store *store = import->run->store;
	struct iovec iov = {.iov_base = import->buffer};
	struct store_changes changes = {0};
	struct store_writer *writer;
	struct store_status status;
	uint64_t now;
	int rc = admin_import_measure(import, path, fd, &now);

	if (!rc && size && !now) {
		admin_import_skip(import, path, "changed while it was read; import again");
		rc = 1;
	}
	if (rc)
		return rc;
	assert(now <= ADMIN_BUFFER);
	iov.iov_len = (size_t)now;
	rc = store->ops->write_begin(store, &admin_caller, fid, set, 0, now, now, &writer);
	if (rc)
		goto out;
	rc = store->ops->write(writer, &iov, 1);
	if (rc) {
		store->ops->write_abort(writer);
		goto out;
	}
	rc = store->ops->write_commit(writer, &status, &changes);
	if (rc)
		goto out;
	admin_changed(import->run, &changes);
	import->bytes += now;
out:
	return admin_import_result(import, path, rc);
}

/* ---- names and kinds ---- */

/*
 * Set-id bits give the rights of an owner here, whose number means somebody else in the volume: they stay if the request says whose
 * the files are.
 */
static uint32_t choose_import_mode(struct admin_import *import, const struct stat *st)
{
	uint32_t mode = st->st_mode & 07777;

	if (import->owned || !(mode & (S_ISUID | S_ISGID)))
		return mode;
	import->cleared += !S_ISLNK(st->st_mode);
	return mode & ~(uint32_t)(S_ISUID | S_ISGID);
}

static struct store_set choose_set(struct admin_import *import, const char *path,
				   const struct stat *st)
{
	const struct admin_attribute *attribute = admin_attributes_find(import->attributes, path);
	uint32_t mtime = admin_store_time(st);

	/* The owner of the set-id bits is known then. */
	if (attribute)
		return (struct store_set){
			.mask = STORE_SET_MTIME | STORE_SET_OWNER | STORE_SET_GROUP |
				STORE_SET_MODE,
			.mtime = mtime,
			.owner = attribute->owner,
			.group = attribute->group,
			.mode = attribute->mode,
		};
	return (struct store_set){
		.mask = STORE_SET_MTIME | STORE_SET_OWNER | STORE_SET_MODE,
		.mtime = mtime,
		.owner = import->owner,
		.mode = choose_import_mode(import, st),
	};
}

/* Mode, time and owner of an object. 0, or 1 after an error. */
int admin_import_status(struct admin_import *import, const char *path, const struct store_fid *fid,
			const struct store_set *set)
{
	struct store *store = import->run->store;
	struct store_status status;
	struct store_changes changes = {0};
	int rc = store->ops->set_status(store, &admin_caller, fid, set, &status, &changes);

	if (rc)
		return admin_import_refused(import, path, rc);
	admin_changed(import->run, &changes);
	return 0;
}

/*
 * Make an object. 0 and *status; 1: it was refused, and that was reported; -1: the import ends.
 */
static int create_imported(struct admin_import *import, const struct store_fid *dir,
			   const char *path, const char *name, enum store_kind kind,
			   const char *text, const struct store_set *set,
			   struct store_status *status)
{
	struct store *store = import->run->store;
	struct store_caller caller = admin_caller;
	struct store_status dir_status;
	struct store_changes changes = {0};
	int rc;

	caller.id = set->mask & STORE_SET_OWNER ? set->owner : import->owner;
	rc = store->ops->create(store, &caller, dir, name, kind, text, set, status, &dir_status,
				&changes);

	if (rc == -EFBIG || rc == -ENOSPC) {
		import->full = true;
		admin_import_skip(import, path, "the directory has no room for more names");
		return 1;
	}
	if (rc)
		return admin_import_refused(import, path, rc) ? -1 : 1;
	admin_changed(import->run, &changes);
	import->objects++;
	return 0;
}

/* -- hard links within one directory -- */

struct linked {
	dev_t device;
	ino_t inode;
	struct store_fid fid;
};

static int compare_linked(const void *a, const void *b)
{
	const struct linked *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* The object that has the first name of this file in this directory, if it has more names. */
static struct linked *find_linked(struct admin_import *import, const struct stat *st)
{
	struct linked key = {.device = st->st_dev, .inode = st->st_ino};
	struct linked **found =
		st->st_nlink > 1 ? tfind(&key, &import->linked, compare_linked) : NULL;

	return found ? *found : NULL;
}

static void note_imported_link(struct admin_import *import, const struct stat *st,
			       const struct store_fid *fid)
{
	struct linked *entry = st->st_nlink > 1 ? malloc(sizeof(*entry)) : NULL;

	if (!entry)
		return;
	*entry = (struct linked){st->st_dev, st->st_ino, *fid};
	if (!tsearch(entry, &import->linked, compare_linked))
		free(entry);
}

/* Another name. 0, or -1: the import ends. */
static int import_link(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name, const struct store_fid *fid)
{
	struct store *store = import->run->store;
	struct store_status status, dir_status;
	struct store_changes changes = {0};
	int rc = store->ops->link(store, &admin_caller, dir, name, fid, &status, &dir_status,
				  &changes);

	if (rc)
		return admin_import_refused(import, path, rc) ? -1 : 0;
	admin_changed(import->run, &changes);
	import->objects++;
	return 0;
}

/* -- names that exist in the volume already -- */

/* Whether the directory had a name, and the status of that object. */
bool admin_import_existing(struct admin_import *import, const struct store_fid *dir,
			   const char *name, struct store_status *status)
{
	struct store *store = import->run->store;
	struct store_fid fid = {.volume = dir->volume};

	return import->image &&
	       afs_dir_lookup((const uint8_t *)import->image, import->image_length, name,
			      &fid.vnode, &fid.unique) == 1 &&
	       !store->ops->status(store, &admin_caller, &fid, status);
}

/* An incomplete file is removed. 0 or a result. */
int admin_import_take_back(struct admin_import *import, const struct store_fid *dir,
			   const char *name)
{
	struct store *store = import->run->store;
	struct store_status status;
	struct store_changes changes = {0};
	int rc = store->ops->remove(store, &admin_caller, dir, name, STORE_FILE, &status, &changes);

	if (!rc)
		admin_changed(import->run, &changes);
	return rc;
}

/*
 * Looks for a file that an earlier import left. 0: nothing now; 1: there is something, `*status` if it is all; -1: the
 * import ends.
 */
static int pass_existing(struct admin_import *import, const struct store_fid *dir, const char *path,
			 const char *name, uint64_t size, const struct store_set *set,
			 struct store_status *status)
{
	struct store_status existing;
	int rc;

	if (!admin_import_existing(import, dir, name, &existing))
		return 0;
	if (admin_is_unfinished(&existing)) {
		rc = admin_import_take_back(import, dir, name);
		return rc && rc != -ENOENT ? admin_import_refused(import, path, rc) ? -1 : 1 : 0;
	}
	if (existing.kind != STORE_FILE || existing.length != size ||
	    existing.client_mtime != set->mtime)
		return admin_import_refused(import, path, -EEXIST) ? -1 : 1;
	import->unchanged++;
	import->passed += size;
	*status = existing;
	return 1;
}

/* -- objects of each kind: 0, or -1 if the import ends -- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool admin_import_changed(struct admin_import *import, const char *path, int fd,
			  const struct stat *before)
{
	struct stat after;

	if (!fstat(fd, &after) && after.st_size == before->st_size &&
	    same_time(&after.st_mtim, &before->st_mtim) &&
	    same_time(&after.st_ctim, &before->st_ctim))
		return false;
	admin_import_skip(import, path, "changed while it was read; import again");
	return true;
}

/* The result is that of admin_import_data(). A copy of a file that others write meanwhile has a state that the file never had. */
static int import_contents(struct admin_import *import, const char *path, int fd, uint64_t size,
			   const struct store_fid *fid, const struct store_set *set)
{
	struct stat before;
	int rc;

	if (fstat(fd, &before) < 0 || !before.st_size)
		return admin_import_unsized(import, path, fd, size, fid, set);
	rc = admin_import_data(import, path, fd, size, fid, set);
	return rc ? rc : admin_import_changed(import, path, fd, &before);
}

int admin_import_bytes(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name, const struct admin_source *source,
		       struct store_status *status)
{
	const struct store_set *set = source->set;
	const struct store_set unfinished = {.mask = STORE_SET_MTIME | STORE_SET_MODE |
						     STORE_SET_OWNER,
					     .owner = ADMIN_UNFINISHED_OWNER,
					     .mode = ADMIN_UNFINISHED_MODE};
	/* Creation gives it the owner, and the lower bits of the mode. */
	bool whole = !source->size && !(set->mode & ~0777u);
	int rc = create_imported(import, dir, path, name, STORE_FILE, NULL,
				 whole ? set : &unfinished, status);

	if (rc || whole)
		return rc;
	if (source->size)
		rc = import_contents(import, path, source->fd, source->size, &status->fid, set);
	else if (admin_import_status(import, path, &status->fid, set))
		rc = -1;
	if (rc) {
		admin_import_take_back(import, dir, name);
		import->objects--;
		*status = (struct store_status){0};
	}
	return rc;
}

static int import_open(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name, int fd, const struct stat *st)
{
	struct linked *first = find_linked(import, st);
	struct store_set set = choose_set(import, path, st);
	struct store_status status = {0};
	struct admin_source source;
	uint64_t size = (uint64_t)st->st_size;
	int rc = size ? 0 : admin_import_measure(import, path, fd, &size);

	if (rc)
		goto out;
	source = (struct admin_source){fd, size, &set, first ? &first->fid : NULL};
	rc = import->update ? admin_update_file(import, dir, path, name, &source, &status)
			    : pass_existing(import, dir, path, name, size, &set, &status);
	if (rc)
		goto out;
	if (first)
		return import_link(import, dir, path, name, &first->fid);
	rc = admin_import_bytes(import, dir, path, name, &source, &status);
out:
	/* Also for an object that existed before: its other names become links. */
	if (!first && rc >= 0 && status.fid.vnode)
		note_imported_link(import, st, &status.fid);
	return rc < 0 ? -1 : 0;
}

static int import_file(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name)
{
	int fd = admin_source_open(import->run, path, ADMIN_SOURCE_FILE), rc = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		admin_import_skip(import, path, fd < 0 ? strerror(-fd) : "no longer a file");
	else
		rc = import_open(import, dir, path, name, fd, &st);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Whether a link has this text. */
static bool is_same_link(struct admin_import *import, const struct store_status *existing,
			 const char *text)
{
	struct store_status status;
	char *contents;
	bool same;

	if (existing->kind != STORE_SYMLINK ||
	    admin_contents(import->run->store, &existing->fid, &contents, NULL, &status))
		return false;
	same = !strcmp(contents, text);
	free(contents);
	return same;
}

static int import_symlink(struct admin_import *import, const struct store_fid *dir,
			  const char *path, const char *name, int fd, const struct stat *st)
{
	struct store_set set = choose_set(import, path, st);
	struct store_status status;
	char text[STORE_TEXT_MAX + 2];
	ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);

	if (n < 0 || n > STORE_TEXT_MAX) {
		admin_import_skip(import, path,
				  n < 0 ? strerror(errno)
					: "the text of the link has more than 1024 bytes");
		return 0;
	}
	text[n] = 0;
	if (admin_import_existing(import, dir, name, &status)) {
		if (is_same_link(import, &status, text)) {
			import->unchanged++;
			return 0;
		}
		if (import->update) {
			int rc = admin_update_clear(import, dir, path, name, &status);

			if (rc)
				return rc < 0 ? -1 : 0;
		}
	}
	return create_imported(import, dir, path, name, STORE_SYMLINK, text, &set, &status) < 0 ? -1
												: 0;
}

static int import_directory(struct admin_import *import, const struct store_fid *dir,
			    const char *path, const char *name)
{
	struct store_set set = {.mask = STORE_SET_MODE, .mode = 0755};
	struct store_status status;
	int rc;

	/* An existing directory gets the names in addition. */
	if (admin_import_existing(import, dir, name, &status)) {
		if (status.kind == STORE_DIR)
			return admin_push_pending(import->run, &import->pending, path, &status.fid,
						  true);
		rc = import->update ? admin_update_clear(import, dir, path, name, &status) : 0;
		if (rc)
			return rc < 0 ? -1 : 0;
	}
	rc = create_imported(import, dir, path, name, STORE_DIR, NULL, &set, &status);
	if (rc)
		return rc > 0 ? 0 : -1;
	return admin_push_pending(import->run, &import->pending, path, &status.fid, false);
}

/* Why a name or kind cannot be imported; NULL: it can. */
static const char *explain_unfit_name(const char *name, mode_t mode)
{
	size_t length = strlen(name);

	if (length > STORE_NAME_MAX)
		return "the name has more than 255 bytes";
	if (length >= 4 && !strcmp(name + length - 4, "@sys"))
		return "clients replace \"@sys\" at the end of a name; rename it";
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
		return NULL;
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFBLK:
	case S_IFCHR:
		return "a device";
	default:
		return "neither a file, nor a directory, nor a link";
	}
}

/* An object of this kind. */
static int import_kind(struct admin_import *import, const struct admin_pending *dir,
		       const char *path, const char *name, int fd, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return import_directory(import, &dir->fid, path, name);
	if (S_ISLNK(st->st_mode))
		return import_symlink(import, &dir->fid, path, name, fd, st);
	return import_file(import, &dir->fid, path, name);
}

static int import_name(struct admin_import *import, const struct admin_pending *dir,
		       const char *name)
{
	char *path = admin_join(dir->path, name);
	const char *reason;
	struct stat st;
	int fd, rc = 0;

	if (!path) {
		admin_import_skip(import, dir->path, "has names whose paths exceed 4095 bytes");
		return 0;
	}
	fd = admin_source_open(import->run, path, ADMIN_SOURCE_LOOK);
	if (fd < 0 || fstat(fd, &st) < 0)
		admin_import_skip(import, path, strerror(fd < 0 ? -fd : errno));
	else if (import->attributes && !*dir->path && !strcmp(name, ADMIN_ATTRIBUTES))
		rc = 0;
	else if ((reason = explain_unfit_name(name, st.st_mode)))
		admin_import_skip(import, path, reason);
	else
		rc = import_kind(import, dir, path, name, fd, &st);
	if (fd >= 0)
		close(fd);
	admin_import_progress(import, path);
	free(path);
	return rc;
}

/* All names of a directory; the rest is left out once the directory in the volume is full. */
static int import_names(struct admin_import *import, const struct admin_pending *dir, char **names,
			int count)
{
	int rc = 0, i = 0;

	import->full = false;
	for (; !rc && i < count && !import->full; i++) {
		if (admin_stopped(import->run)) {
			admin_fail(import->run, 1, "interrupted");
			rc = -1;
		} else {
			rc = import_name(import, dir, names[i]);
		}
	}
	if (!rc && import->full && i < count) {
		char reason[96];

		import->skipped += (uint64_t)(count - i) - 1;
		snprintf(reason, sizeof(reason), "%d more names do not fit into the directory",
			 count - i);
		admin_import_skip(import, dir->path, reason);
	}
	tdestroy(import->linked, free);
	import->linked = NULL;
	return rc;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void admin_free_names(char **names, int count)
{
	while (count > 0)
		free(names[--count]);
	free(names);
}

/* The rest of the names in an open directory. Their number, or -errno. */
static int read_names(DIR *stream, char ***out)
{
	char **names = NULL;
	const struct dirent *entry;
	size_t room = 0;
	int count = 0;

	while ((errno = 0, entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!grow_array(&names, &room, (size_t)count, sizeof(*names)))
			goto fail;
		names[count] = strdup(entry->d_name);
		if (!names[count])
			goto fail;
		count++;
	}
	if (errno)
		goto fail;
	*out = names;
	return count;
fail:
	admin_free_names(names, count);
	return -(errno ? errno : ENOMEM);
}

int admin_list_names(int fd, char ***names)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), count;
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);

	if (!stream) {
		count = -errno;
		if (copy >= 0)
			close(copy);
		return count;
	}
	count = read_names(stream, names);
	closedir(stream);
	if (count > 0)
		qsort(*names, (size_t)count, sizeof(**names), by_bytes);
	return count;
}

/* Loads the names that the directory in the volume has already. 0, or -1: the import ends, after an error. */
static int load_existing(struct admin_import *import, const struct admin_pending *dir)
{
	struct store_status status;
	int rc = dir->existed ? admin_contents(import->run->store, &dir->fid, &import->image,
					       &import->image_length, &status)
			      : 0;

	return rc && admin_import_refused(import, dir->path, rc) ? -1 : 0;
}

/* A directory that exists in the volume: its names, then its own status. */
static int import_pending(void *arg, const struct admin_pending *dir)
{
	struct admin_import *import = arg;
	int fd = admin_source_open(import->run, dir->path, ADMIN_SOURCE_DIRECTORY);
	char **names = NULL;
	struct store_set set;
	struct stat st;
	int count, rc;

	count = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : admin_list_names(fd, &names);
	if (count < 0) {
		admin_import_skip(import, dir->path, strerror(-count));
		if (fd >= 0)
			close(fd);
		return 0;
	}
	rc = load_existing(import, dir);
	if (!rc)
		rc = import_names(import, dir, names, count);
	if (!rc && import->remove && !import->full)
		rc = admin_update_delete(import, &dir->fid, dir->path, names, (size_t)count);
	free(import->image);
	import->image = NULL;
	admin_free_names(names, count);
	close(fd);
	if (rc)
		return -1;
	set = choose_set(import, dir->path, &st);
	return admin_update_directory(import, dir->path, &dir->fid, &set);
}

/* Makes a directory of the volume. 0 and *fid, or a result of the store. */
static int make_destination(struct admin_import *import, const struct store_fid *dir,
			    const char *name, struct store_fid *fid)
{
	const struct store_set set = {.mask = STORE_SET_MODE, .mode = 0755};
	struct store *store = import->run->store;
	struct store_status status, dir_status;
	struct store_changes changes = {0};
	int rc = store->ops->create(store, &admin_caller, dir, name, STORE_DIR, NULL, &set, &status,
				    &dir_status, &changes);

	if (rc)
		return rc;
	*fid = status.fid;
	admin_changed(import->run, &changes);
	return 0;
}

/* Finds the directory in the volume, and makes it if only its last name is missing. */
static int find_import_directory(struct admin_import *import, struct store_fid *fid, bool *existed)
{
	struct admin_place place;
	struct store_status status;
	const char *last;
	int rc = admin_find_parent(import->run, &place, &last);

	if (rc)
		return rc;
	*fid = place.fid;
	rc = *last ? admin_lookup(import->run->store, &place.fid, last, fid) : 0;
	*existed = rc != -ENOENT;
	if (!*existed)
		rc = make_destination(import, &place.fid, last, fid);
	else if (!rc)
		rc = import->run->store->ops->status(import->run->store, &admin_caller, fid,
						     &status);
	free(place.path);
	if (!rc && *existed && status.kind != STORE_DIR)
		rc = -ENOTDIR;
	return rc ? admin_fail_code(import->run, rc, "%s", place.name) : 0;
}

static int run_import(struct admin_import *import)
{
	struct admin_run *run = import->run;
	struct store_fid fid;
	bool existed;
	int rc = find_import_directory(import, &fid, &existed);

	if (rc)
		return rc;
	if (admin_get_flag(run, "progress"))
		import->total = admin_source_bytes(run);
	import->buffer = malloc(ADMIN_BUFFER);
	if (!import->buffer)
		return admin_fail(run, 1, "no memory");
	rc = admin_push_pending(run, &import->pending, "", &fid, existed);
	rc = admin_visit_pending(&import->pending, rc, import_pending, import);
	free(import->buffer);
	if (rc)
		return 1;
	return admin_done(run,
			  json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "objects",
				    (json_int_t)import->objects, "bytes", (json_int_t)import->bytes,
				    "unchanged", (json_int_t)import->unchanged, "removed",
				    (json_int_t)import->removed, "cleared",
				    (json_int_t)import->cleared, "skipped",
				    (json_int_t)import->skipped),
			  true, import->skipped != 0);
}

int admin_import(struct admin_run *run)
{
	struct admin_import import = {.run = run,
				      .owned = admin_get_text(run, "owner") != NULL,
				      .update = admin_get_flag(run, "update"),
				      .compare = admin_get_flag(run, "compare"),
				      .remove = admin_get_flag(run, "delete")};
	int rc = admin_owner(run, 0, &import.owner);

	if (!rc && !import.update && (import.remove || import.compare))
		return admin_fail(run, 2, "--delete and --compare are for an update; add --update");
	if (!rc)
		rc = admin_attributes_load(run, &import.attributes);
	if (!rc)
		rc = run_import(&import);
	admin_attributes_free(import.attributes);
	return rc;
}
