/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a store as those of the operating system, below one directory. */
#include "volume/store/disk/layer.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"

#if defined(__has_include)
#	if __has_include(<linux/openat2.h>) && defined(SYS_openat2)
#		include <linux/openat2.h>
#		define HAVE_OPENAT2 1
#	endif
#endif
#ifndef HAVE_OPENAT2
#	define HAVE_OPENAT2 0
#endif

#define PIECES	  1024 /* buffers of one system call: IOV_MAX of Linux */
#define FILE_MODE 0600
#define DIR_MODE  0700
#define BOOT_ID	  "/proc/sys/kernel/random/boot_id"
#define SPACE_NS   (10 * NS_PER_MS)
#define SPACE_MUCH ((uint64_t)4 << 30)

/* Constant but for `locked`, which one thread sets, and what is atomic. */
struct posix_layer {
	struct store_layer layer;
	int dir;
	_Atomic uint64_t asked;		   /* time of the last look at the space, in SPACE_NS; */
	_Atomic uint64_t available, total; /* and what it showed, if there was much */
	int locked;	     /* descriptor of the lock, or -1 */
	atomic_bool beneath; /* the kernel has openat2() and lets us use it */
};

/* Constant. */
struct posix_file {
	struct store_file file;
	int fd;
};

static struct posix_layer *get_posix_layer(struct store_layer *layer)
{
	return (struct posix_layer *)(void *)layer;
}

static int get_descriptor(struct store_file *file)
{
	return ((struct posix_file *)(void *)file)->fd;
}

/* A relative path without ".." in it. */
static bool is_valid_path(const char *path)
{
	if (*path == '/' || *path == 0)
		return false;
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			return false;
		path += n + (path[n] == '/');
	}
	return true;
}

#if HAVE_OPENAT2
/* Follows no link in any part of the path. -ENOSYS: not possible here. */
static int open_without_links(struct posix_layer *posix, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags,
			       .mode = flags & O_CREAT ? FILE_MODE : 0,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

	if (!atomic_load_explicit(&posix->beneath, memory_order_relaxed))
		return -ENOSYS;
	for (int tries = 0;; tries++) {
		int fd = (int)syscall(SYS_openat2, posix->dir, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		/* EAGAIN: something was renamed meanwhile, so that the kernel could not tell. */
		if (errno != EINTR && !(errno == EAGAIN && tries < 100))
			return -errno;
	}
}
#endif

/* A descriptor, or -errno. */
static int open_path(struct posix_layer *posix, const char *path, int flags)
{
	int fd;

	if (!is_valid_path(path))
		return -EINVAL;
	flags |= O_CLOEXEC | O_NOFOLLOW;
#if HAVE_OPENAT2
	fd = open_without_links(posix, path, flags);
	/* A sandbox that does not know the call answers EPERM, which else stands for a file. */
	if (fd != -ENOSYS && fd != -EPERM)
		return fd;
	if (fd == -ENOSYS)
		atomic_store_explicit(&posix->beneath, false, memory_order_relaxed);
#endif
	do
		fd = openat(posix->dir, path, flags, FILE_MODE);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

static void layer_destroy(struct store_layer *layer)
{
	struct posix_layer *posix = get_posix_layer(layer);

	if (posix->locked >= 0)
		close(posix->locked);
	close(posix->dir);
	free(posix);
}

static int layer_open(struct store_layer *layer, const char *path, unsigned flags,
		      struct store_file **file)
{
	struct posix_file *made = calloc(1, sizeof(*made));
	int how = flags & STORE_OPEN_WRITE ? O_RDWR : O_RDONLY;

	if (!made)
		return -ENOMEM;
	if (flags & STORE_OPEN_CREATE)
		how |= O_CREAT | (flags & STORE_OPEN_EXCLUSIVE ? O_EXCL : 0);
	made->fd = open_path(get_posix_layer(layer), path, how);
	if (made->fd < 0) {
		int rc = made->fd;

		free(made);
		return rc;
	}
	made->file.layer = layer;
	*file = &made->file;
	return 0;
}

static void layer_close(struct store_file *file)
{
	close(get_descriptor(file));
	free(file);
}

/* -- reading and writing -- */

/* The next buffers for one system call. */
static int collect_next_parts(const struct store_cursor *at, struct iovec part[PIECES])
{
	int count = at->count < PIECES ? at->count : PIECES;

	assert(at->count > 0);
	memcpy(part, at->iov, (size_t)count * sizeof(*part));
	part[0].iov_base = (char *)part[0].iov_base + at->skip;
	part[0].iov_len -= at->skip;
	return count;
}

static ssize_t read_into_parts(int fd, const struct iovec *iov, int count, uint64_t offset,
			       bool cached)
{
	ssize_t n;

	do
		n = cached ? preadv2(fd, iov, count, (off_t)offset, RWF_NOWAIT)
			   : preadv(fd, iov, count, (off_t)offset);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	/* Some file systems cannot tell what is in memory. */
	return cached && (errno == EOPNOTSUPP || errno == ENOSYS) ? -EAGAIN : -errno;
}

static ssize_t layer_preadv(struct store_file *file, const struct iovec *iov, int count,
			    uint64_t offset, bool cached)
{
	struct store_cursor at = {.iov = iov, .count = count};
	struct iovec part[PIECES];
	size_t done = 0;

	store_cursor_skip(&at, 0);
	while (at.count) {
		int parts = collect_next_parts(&at, part);
		ssize_t n =
			read_into_parts(get_descriptor(file), part, parts, offset + done, cached);

		if (n == 0 || (n == -EAGAIN && done))
			break;
		if (n < 0)
			return n;
		done += (size_t)n;
		store_cursor_skip(&at, (size_t)n);
	}
	return (ssize_t)done;
}

static ssize_t layer_pwritev(struct store_file *file, const struct iovec *iov, int count,
			     uint64_t offset)
{
	struct store_cursor at = {.iov = iov, .count = count};
	struct iovec part[PIECES];
	size_t done = 0;

	store_cursor_skip(&at, 0);
	while (at.count) {
		int parts = collect_next_parts(&at, part);
		ssize_t n = pwritev(get_descriptor(file), part, parts, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
		store_cursor_skip(&at, (size_t)n);
	}
	return (ssize_t)done;
}

/* -- other operations on files -- */

static int layer_truncate(struct store_file *file, uint64_t length)
{
	int rc;

	do
		rc = ftruncate(get_descriptor(file), (off_t)length);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

static int change_space(struct store_file *file, int how, uint64_t offset, uint64_t length)
{
	int rc;

	do
		rc = fallocate(get_descriptor(file), how | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			       (off_t)length);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

static int layer_punch(struct store_file *file, uint64_t offset, uint64_t length)
{
	return change_space(file, FALLOC_FL_PUNCH_HOLE, offset, length);
}

static int layer_allocate(struct store_file *file, uint64_t offset, uint64_t length)
{
	return change_space(file, 0, offset, length);
}

static int layer_size(struct store_file *file, uint64_t *length)
{
	struct stat st;

	if (fstat(get_descriptor(file), &st) < 0)
		return -errno;
	*length = (uint64_t)st.st_size;
	return 0;
}

static int layer_sync(struct store_file *file)
{
	int rc;

	do
		rc = fdatasync(get_descriptor(file));
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

static int layer_will_need(struct store_file *file, uint64_t offset, uint64_t length)
{
	return -posix_fadvise(get_descriptor(file), (off_t)offset, (off_t)length,
			      POSIX_FADV_WILLNEED);
}

/* -- names -- */

static int layer_rename(struct store_layer *layer, const char *from, const char *to)
{
	int dir = get_posix_layer(layer)->dir;

	if (!is_valid_path(from) || !is_valid_path(to))
		return -EINVAL;
	return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

static int layer_unlink(struct store_layer *layer, const char *path)
{
	if (!is_valid_path(path))
		return -EINVAL;
	return unlinkat(get_posix_layer(layer)->dir, path, 0) < 0 ? -errno : 0;
}

static int layer_mkdir(struct store_layer *layer, const char *path)
{
	if (!is_valid_path(path))
		return -EINVAL;
	return mkdirat(get_posix_layer(layer)->dir, path, DIR_MODE) < 0 ? -errno : 0;
}

static int layer_rmdir(struct store_layer *layer, const char *path)
{
	if (!is_valid_path(path))
		return -EINVAL;
	return unlinkat(get_posix_layer(layer)->dir, path, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static bool is_directory_entry(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int list_directory_stream(DIR *stream, store_list_fn fn, void *arg)
{
	struct dirent *entry;
	int rc = 0;

	while (rc == 0 && (errno = 0, entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = fn(arg, entry->d_name, is_directory_entry(dirfd(stream), entry));
	return rc ? rc : -errno;
}

static int layer_list(struct store_layer *layer, const char *path, store_list_fn fn, void *arg)
{
	int fd = open_path(get_posix_layer(layer), path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;

	DIR *stream = fdopendir(fd);

	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	int rc = list_directory_stream(stream, fn, arg);

	closedir(stream);
	return rc;
}

static int layer_sync_dir(struct store_layer *layer, const char *path)
{
	int fd = open_path(get_posix_layer(layer), path, O_RDONLY | O_DIRECTORY), rc;

	if (fd < 0)
		return fd;
	do
		rc = fsync(fd) < 0 ? -errno : 0;
	while (rc == -EINTR);
	close(fd);
	return rc;
}

static int layer_sync_all(struct store_layer *layer)
{
	return syncfs(get_posix_layer(layer)->dir) < 0 ? -errno : 0;
}

/* -- the whole -- */

/* Each small write asks. Where nobody can fill the disk so soon, the answer is that of a moment ago. */
static int layer_space(struct store_layer *layer, uint64_t *available, uint64_t *total)
{
	struct posix_layer *posix = get_posix_layer(layer);
	uint64_t now = (uint64_t)read_clock_ns(CLOCK_MONOTONIC_COARSE) / SPACE_NS;
	struct statvfs st;

	*available = atomic_load(&posix->available);
	*total = atomic_load(&posix->total);
	if (*available > SPACE_MUCH && atomic_load(&posix->asked) == now)
		return 0;
	if (fstatvfs(posix->dir, &st) < 0)
		return -errno;
	*available = (uint64_t)st.f_bavail * st.f_frsize;
	*total = (uint64_t)st.f_blocks * st.f_frsize;
	atomic_store(&posix->available, *available);
	atomic_store(&posix->total, *total);
	atomic_store(&posix->asked, now);
	return 0;
}

static int layer_boot(struct store_layer *layer, char id[64])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC), rc;
	ssize_t n;

	(void)layer;
	if (fd < 0)
		return -errno;
	n = read(fd, id, 63);
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (n <= 0)
		return rc ? rc : -EIO;
	id[n] = 0;
	id[strcspn(id, "\n")] = 0;
	return 0;
}

/* A lock of the open file, not of the process: a second store in this process is kept out, too. */
static int layer_lock(struct store_layer *layer, const char *path)
{
	struct posix_layer *posix = get_posix_layer(layer);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (posix->locked >= 0)
		return -EBUSY;

	int fd = open_path(posix, path, O_RDWR | O_CREAT);

	if (fd < 0)
		return fd;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		int rc = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;

		close(fd);
		return rc;
	}
	posix->locked = fd;
	return 0;
}

static const struct store_layer_ops posix_ops = {
	.destroy = layer_destroy,
	.open = layer_open,
	.close = layer_close,
	.preadv = layer_preadv,
	.pwritev = layer_pwritev,
	.truncate = layer_truncate,
	.punch = layer_punch,
	.allocate = layer_allocate,
	.size = layer_size,
	.sync = layer_sync,
	.will_need = layer_will_need,
	.rename = layer_rename,
	.unlink = layer_unlink,
	.mkdir = layer_mkdir,
	.rmdir = layer_rmdir,
	.list = layer_list,
	.sync_dir = layer_sync_dir,
	.sync_all = layer_sync_all,
	.space = layer_space,
	.boot = layer_boot,
	.lock = layer_lock,
};

/* A descriptor of a directory that only this user can use, or -errno. */
static int open_private_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	int rc = fstat(fd, &st) < 0 ? -errno : 0;

	if (rc == 0 && (st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO))))
		rc = -EPERM;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int store_layer_posix(const char *path, struct store_layer **layer)
{
	struct posix_layer *posix = calloc(1, sizeof(*posix));

	if (!posix)
		return -ENOMEM;
	posix->layer.ops = &posix_ops;
	posix->locked = -1;
	atomic_init(&posix->beneath, true);
	posix->dir = open_private_directory(path);
	if (posix->dir < 0) {
		int rc = posix->dir;

		free(posix);
		return rc;
	}
	*layer = &posix->layer;
	return 0;
}
