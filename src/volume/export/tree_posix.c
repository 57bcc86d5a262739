/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree in a directory of this machine. Paths are resolved beneath it; no link is followed. */
#include "volume/export/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/clock.h"

#if defined(__has_include)
#	if __has_include(<linux/openat2.h>)
#		include <linux/openat2.h>
#		define HAVE_OPENAT2_H 1
#	endif
#endif

#define OVERLAY_MAGIC 0x794c7630ul
/* Four times vm.dirty_expire_centisecs as it is by default. */
#define PAGES_KEPT_S 120

struct posix_layer {
	struct export_layer base;
	int root; /* O_PATH of the tree */
	dev_t device;
	_Atomic int walk;     /* openat2() is missing or not wanted */
	_Atomic int no_statx; /* statx() is missing */
	bool overlay;	      /* an overlay: the pages belong to a file of a lower layer */
};

struct posix_file {
	struct export_file base;
	int fd;
};

static struct posix_layer *posix_layer(struct export_layer *layer)
{
	return (struct posix_layer *)layer;
}

static int posix_fd(struct export_file *file)
{
	return ((struct posix_file *)file)->fd;
}

/*
 * A directory of another file system does not belong to the tree. The device numbers of files are
 * not compared, because on some overlays they differ from those of directories. Returns fd or
 * -errno.
 */
static int same_device(const struct posix_layer *layer, int fd)
{
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (S_ISDIR(st.st_mode) && st.st_dev != layer->device)
		rc = -EXDEV;
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

/* Open one name at a time, each relative to the directory before it. */
static int open_walk(const struct posix_layer *layer, const char *path, int flags)
{
	int at = layer->root;

	for (;;) {
		char name[NAME_MAX + 1];
		const char *slash = strchrnul(path, '/');
		size_t n = (size_t)(slash - path);
		bool last = *slash == 0;
		int fd, saved;

		if (n > NAME_MAX)
			fd = -1, errno = ENAMETOOLONG;
		else if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && !memcmp(path, "..", 2)))
			fd = -1, errno = EINVAL;
		else {
			memcpy(name, path, n);
			name[n] = 0;
			fd = openat(at, name,
				    last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		saved = errno;
		if (at != layer->root)
			close(at);
		if (fd < 0)
			return -saved;
		fd = same_device(layer, fd);
		if (fd < 0 || last)
			return fd;
		at = fd;
		path = slash + 1;
	}
}

static int open_beneath(struct posix_layer *layer, const char *path, int flags)
{
	flags |= O_NOFOLLOW | O_CLOEXEC;
	if (*path == 0) {
		int fd = openat(layer->root, ".", flags | O_DIRECTORY);

		return fd < 0 ? -errno : fd;
	}
#ifdef HAVE_OPENAT2_H
	if (!atomic_load_explicit(&layer->walk, memory_order_relaxed)) {
		struct open_how how = {
			.flags = (uint64_t)flags,
			.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
				   RESOLVE_NO_XDEV,
		};

		/* EAGAIN: the kernel detected a rename during the lookup. */
		for (int tries = 0; tries < 64; tries++) {
			long fd = syscall(SYS_openat2, layer->root, path, &how, sizeof(how));

			if (fd >= 0)
				return (int)fd;
			if (errno != EAGAIN)
				break;
		}
		if (errno != ENOSYS && errno != EPERM)
			return -errno;
		atomic_store(&layer->walk, 1);
	}
#endif
	return open_walk(layer, path, flags);
}

static enum store_kind kind_of_mode(mode_t mode)
{
	return S_ISREG(mode)   ? STORE_FILE
	       : S_ISDIR(mode) ? STORE_DIR
	       : S_ISLNK(mode) ? STORE_SYMLINK
			       : EXPORT_OTHER;
}

static void fill_stat(const struct posix_layer *layer, const struct stat *in,
		      struct export_stat *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = kind_of_mode(in->st_mode);
	out->device = in->st_dev == layer->device ? 0 : in->st_dev;
	out->inode = in->st_ino;
	out->size = (uint64_t)in->st_size;
	out->mtime_ns = in->st_mtim.tv_sec * 1000000000LL + in->st_mtim.tv_nsec;
	out->ctime_ns = in->st_ctim.tv_sec * 1000000000LL + in->st_ctim.tv_nsec;
	out->mode = in->st_mode & 07777;
	out->uid = in->st_uid;
	out->gid = in->st_gid;
	out->links = (uint32_t)in->st_nlink;
}

/* The time of creation, which distinguishes objects that had the same inode number. 0: unknown. */
static int64_t birth_of(struct posix_layer *layer, int fd)
{
#ifdef STATX_BTIME
	struct statx sx;

	if (atomic_load_explicit(&layer->no_statx, memory_order_relaxed))
		return 0;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &sx) == 0)
		return sx.stx_mask & STATX_BTIME
			       ? sx.stx_btime.tv_sec * 1000000000LL + sx.stx_btime.tv_nsec
			       : 0;
	if (errno == ENOSYS || errno == EPERM)
		atomic_store(&layer->no_statx, 1);
#else
	(void)layer;
	(void)fd;
#endif
	return 0;
}

static int stat_fd(struct posix_layer *layer, int fd, struct export_stat *st)
{
	struct stat s;

	if (fstat(fd, &s) < 0)
		return -errno;
	fill_stat(layer, &s, st);
	st->born_ns = birth_of(layer, fd);
	return 0;
}

static int posix_stat_path(struct export_layer *layer, const char *path, struct export_stat *st)
{
	int fd = open_beneath(posix_layer(layer), path, O_PATH);
	int rc;

	if (fd < 0)
		return fd;
	rc = stat_fd(posix_layer(layer), fd, st);
	close(fd);
	return rc;
}

static int posix_stat_file(struct export_file *file, struct export_stat *st)
{
	return stat_fd(posix_layer(file->layer), posix_fd(file), st);
}

static int posix_open(struct export_layer *layer, const char *path, struct export_file **out)
{
	/* Without O_NONBLOCK the open of a FIFO would wait for its writer. */
	int fd = open_beneath(posix_layer(layer), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		rc = -EINVAL;
	struct posix_file *file = rc ? NULL : malloc(sizeof(*file));

	if (!file) {
		close(fd);
		return rc ? rc : -ENOMEM;
	}
	file->base.layer = layer;
	file->fd = fd;
	*out = &file->base;
	return 0;
}

static void posix_file_close(struct export_file *file)
{
	close(posix_fd(file));
	free(file);
}

static ssize_t posix_preadv(struct export_file *file, const struct iovec *iov, int count,
			    uint64_t offset, unsigned flags)
{
	ssize_t n;

	do {
		if (flags & STORE_CACHED) {
#ifdef RWF_NOWAIT
			n = preadv2(posix_fd(file), iov, count, (off_t)offset, RWF_NOWAIT);
			if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
				return -EAGAIN; /* not supported by this file system */
#else
			return -EAGAIN;
#endif
		} else {
			n = preadv(posix_fd(file), iov, count, (off_t)offset);
		}
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * A page that has been written through a mapping stays writable until it goes to the disk, and
 * further writes to it change no time stamp. A file that has not changed for longer than the kernel
 * keeps such pages has none.
 */
static void posix_write_back(struct export_file *file)
{
	int fd = posix_fd(file);
	struct stat st;

	if (!posix_layer(file->layer)->overlay) {
		sync_file_range(fd, 0, 0,
				SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					SYNC_FILE_RANGE_WAIT_AFTER);
		return;
	}
	/*
	 * Only fdatasync() reaches the file of the lower layer; it also flushes the disk's cache.
	 */
	if (fstat(fd, &st) == 0 && wall_ns() / NS_PER_S - st.st_ctim.tv_sec < PAGES_KEPT_S)
		fdatasync(fd);
}

static void posix_advise(struct export_file *file, uint64_t offset, uint64_t length)
{
	posix_fadvise(posix_fd(file), (off_t)offset, (off_t)length, POSIX_FADV_WILLNEED);
}

static ssize_t posix_readlink(struct export_layer *layer, const char *path, char *text, size_t size)
{
	int fd = open_beneath(posix_layer(layer), path, O_PATH);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = readlinkat(fd, "", text, size);
	if (n < 0)
		n = -errno;
	close(fd);
	return n;
}

static enum store_kind file_kind(const struct posix_layer *layer, DIR *dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type == DT_REG)
		return STORE_FILE;
	if (d->d_type == DT_LNK)
		return STORE_SYMLINK;
	if (d->d_type != DT_DIR && d->d_type != DT_UNKNOWN)
		return EXPORT_OTHER;
	/* Directories need fstatat(), too: one may be the root of another file system. */
	if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
	    st.st_dev != layer->device)
		return EXPORT_OTHER;
	return kind_of_mode(st.st_mode);
}

static int posix_list(struct export_layer *layer, const char *path, export_list_fn fn, void *arg)
{
	int fd = open_beneath(posix_layer(layer), path, O_RDONLY | O_DIRECTORY);
	struct dirent *d;
	DIR *dir;
	int rc = 0;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		rc = -errno;
		close(fd);
		return rc;
	}
	while (!rc) {
		errno = 0;
		d = readdir(dir);
		if (!d) {
			rc = -errno;
			break;
		}
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		rc = fn(arg, d->d_name, strlen(d->d_name), file_kind(posix_layer(layer), dir, d),
			d->d_ino);
	}
	closedir(dir);
	return rc;
}

static int posix_space(struct export_layer *layer, struct store_space *space)
{
	struct statvfs v;

	if (fstatvfs(posix_layer(layer)->root, &v) < 0)
		return -errno;
	space->total_kib = (uint64_t)v.f_blocks * v.f_frsize / 1024;
	space->available_kib = (uint64_t)v.f_bavail * v.f_frsize / 1024;
	return 0;
}

static int posix_watch(struct export_layer *layer, const char *path, int inotify_fd, uint32_t mask)
{
	int fd = open_beneath(posix_layer(layer), path, O_PATH | O_DIRECTORY);
	char name[64];
	int wd;

	if (fd < 0)
		return fd;
	/*
	 * The link of the descriptor leads to the object that was resolved, even if the path has
	 * changed.
	 */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(inotify_fd, name, mask);
	if (wd < 0)
		wd = -errno;
	close(fd);
	return wd;
}

static void posix_destroy(struct export_layer *layer)
{
	close(posix_layer(layer)->root);
	free(layer);
}

static const struct export_layer_ops posix_ops = {
	.open = posix_open,
	.close = posix_file_close,
	.stat_path = posix_stat_path,
	.stat_file = posix_stat_file,
	.preadv = posix_preadv,
	.write_back = posix_write_back,
	.advise = posix_advise,
	.readlink = posix_readlink,
	.list = posix_list,
	.space = posix_space,
	.watch = posix_watch,
	.destroy = posix_destroy,
};

int export_layer_posix(const char *root, unsigned flags, struct export_layer **out)
{
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct posix_layer *layer;
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return -errno;
	layer = fstat(fd, &st) < 0 ? NULL : calloc(1, sizeof(*layer));
	if (!layer) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	layer->base.ops = &posix_ops;
	layer->root = fd;
	layer->device = st.st_dev;
	layer->walk = !!(flags & EXPORT_LAYER_WALK);
	layer->overlay = fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == OVERLAY_MAGIC;
	*out = &layer->base;
	return 0;
}
