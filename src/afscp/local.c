/* SPDX-License-Identifier: BSD-2-Clause */
/* Local files, which appear under their names only when they are complete, and deep trees of folders. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/local.h"

/* ---- reading ---- */

#define SLICES	   64u	      /* at a time */

/* The first `done` bytes of iov[0..*count) are there. */
static void skip_filled(struct iovec *iov, unsigned *count, size_t done)
{
	unsigned i = 0;

	for (; i < *count && done >= iov[i].iov_len; i++)
		done -= iov[i].iov_len;
	*count -= i;
	memmove(iov, iov + i, *count * sizeof(*iov));
	if (*count) {
		iov->iov_base = (char *)iov->iov_base + done;
		iov->iov_len -= done;
	}
}

/* At most SLICES of them. */
static int read_some_slices(int fd, uint64_t offset, const struct iovec *iov, unsigned count)
{
	struct iovec left[SLICES];

	assert(count <= SLICES);
	memcpy(left, iov, count * sizeof(*iov));
	while (count) {
		ssize_t n = preadv(fd, left, (int)count, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 1;
		offset += (size_t)n;
		skip_filled(left, &count, (size_t)n);
	}
	return 0;
}

int read_slices(int fd, uint64_t offset, const struct iovec *iov, unsigned count)
{
	int result = 0;

	while (!result && count) {
		unsigned n = count < SLICES ? count : SLICES;

		result = read_some_slices(fd, offset, iov, n);
		for (; n; n--, count--)
			offset += iov++->iov_len;
	}
	return result;
}

/* Bytes from `at` on, where there are data, to the next hole that is worth it; at most `most`. */
static uint64_t measure_data(int fd, uint64_t at, uint64_t most, uint64_t size)
{
	off_t hole = lseek(fd, (off_t)at, SEEK_HOLE), data;

	while (hole > 0 && (uint64_t)hole - at < most) {
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			break;
		if ((data < 0 ? size : (uint64_t)data) - (uint64_t)hole >= HOLE_LEAST)
			return (uint64_t)hole - at;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
	}
	return most;
}

uint64_t find_data(int fd, uint64_t *at, uint64_t size, uint64_t most, bool clear)
{
	off_t data = lseek(fd, (off_t)*at, SEEK_DATA);
	uint64_t left;

	assert(*at <= size);
	if (data < 0 && errno == ENXIO) {
		if (clear)
			*at = size;
		return 0;
	}
	if (data >= 0 && (uint64_t)data - *at >= HOLE_LEAST && (uint64_t)data < size) {
		if (!clear)
			return 0;
		*at = (uint64_t)data;
	}
	left = size - *at < most ? size - *at : most;
	return data < 0 ? left : measure_data(fd, *at, left, size);
}

/* ---- names of files that are not complete yet ---- */

#define SUFFIX	".afscp-part"
#define CUT_MAX 220 /* bytes of a name beside a version */

uint64_t part_version(uint64_t version, uint64_t number)
{
	/* FNV-1a. It only has to tell versions apart that one user meets. */
	version = version ? version : 0xcbf29ce484222325u;
	for (int i = 0; i < 8; i++, number >>= 8)
		version = (version ^ (number & 0xff)) * 0x100000001b3u;
	return version ? version : 1;
}

void part_name(char part[PART_NAME], const char *name, uint64_t version)
{
	assert(version);
	for (const char *p = name; *p; p++)
		version = part_version(version, (unsigned char)*p);
	snprintf(part, PART_NAME, ".%.*s.%016llx" SUFFIX, CUT_MAX, name,
		 (unsigned long long)version);
}

void part_name_once(char part[PART_NAME], const char *name)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint64_t)time(NULL) << 32 | (uint32_t)getpid();
	part_name(part, name, part_version(0, number));
}

int part_claim(uint64_t version)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), length;

	if (fd < 0)
		return -1;
	/* An abstract address is free again when the process ends, and needs no file. */
	length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rxwire/afscp-part/%016llx",
			  (unsigned long long)version);
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* ---- destinations ---- */

#define ATTEMPTS 16

void sink_temp_name(char *temp, size_t size, const char *name)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint32_t)getpid();
	/* 200 + 10 bytes fit every file system. */
	snprintf(temp, size, ".%.200s.%08x", name, number);
}

/* Last part of a path, and the length of what is before it. */
static const char *last_part(const char *path, size_t *before)
{
	const char *slash = strrchr(path, '/');

	*before = slash ? (size_t)(slash - path) + 1 : 0;
	return path + *before;
}

/* Use a name in the directory of s->name. 0, or -1 with errno. */
static int set_temporary(struct sink *s, const char *name)
{
	size_t before;

	last_part(s->name, &before);
	if (before + strlen(name) >= sizeof(s->temp)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(s->temp, s->name, before);
	strcpy(s->temp + before, name);
	return 0;
}

/* "PATH/.NAME.0123abcd" of s->name. 0, or -1 with errno. */
static int choose_temporary(struct sink *s)
{
	size_t before;
	char name[224];

	sink_temp_name(name, sizeof(name), last_part(s->name, &before));
	return set_temporary(s, name);
}

static bool can_link;

/* A file without a name gets one by this folder, where the kernel does not take the descriptor itself. */
static void look_for_descriptors(void)
{
	can_link = access("/proc/self/fd", X_OK) == 0;
}

/* Linux before 6.10 takes the descriptor only from a privileged process. */
static int link_descriptor(int fd, int dir, const char *name)
{
	static atomic_bool refused;
	char path[32];

	if (!atomic_load(&refused)) {
		if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
			return 0;
		if (errno == EEXIST)
			return -1;
		atomic_store(&refused, true);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW);
}

/*
 * Create a file without a name, which even SIGKILL cannot leave behind. -1: not supported here, or
 * it could not get a name later.
 */
static int open_nameless(struct sink *s, mode_t mode)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char folder[sizeof(s->temp)];
	size_t before;

	last_part(s->name, &before);
	pthread_once(&once, look_for_descriptors);
	if (before >= sizeof(folder) || !can_link)
		return -1;
	memcpy(folder, s->name, before);
	strcpy(folder + before, ".");
	s->fd = openat(s->dir, folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
	if (s->fd < 0)
		return -1;
	s->nameless = s->owned = s->seekable = true;
	return 0;
}

static int open_temporary(struct sink *s)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		if (choose_temporary(s) < 0)
			return -1;
		s->fd = openat(s->dir, s->temp,
			       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (s->fd >= 0) {
			s->temporary = s->owned = s->seekable = true;
			return 0;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Give a nameless file its name, or a temporary one if that exists, which is renamed later. */
static int link_nameless(struct sink *s)
{
	assert(s->nameless && s->fd >= 0);
	if (link_descriptor(s->fd, s->dir, s->name) == 0) {
		s->nameless = false;
		return 0;
	}
	if (errno != EEXIST)
		return -1;
	for (int i = 0; i < ATTEMPTS; i++) {
		if (choose_temporary(s) < 0)
			return -1;
		if (link_descriptor(s->fd, s->dir, s->temp) == 0) {
			s->nameless = false;
			s->temporary = true;
			return 0;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/*
 * Lock the part that was opened. False: it cannot be trusted, or another process uses it or has
 * renamed it.
 */
static bool lock_part(struct sink *s, struct stat *st)
{
	struct stat named;

	assert(s->fd >= 0);
	return flock(s->fd, LOCK_EX | LOCK_NB) == 0 && fstat(s->fd, st) == 0 &&
	       S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 &&
	       fstatat(s->dir, s->temp, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == st->st_dev && named.st_ino == st->st_ino;
}

/* Open the part. -1: it is somebody else's, or cannot be made: a temporary file does as well. */
static int open_sink_part(struct sink *s, const struct sink_part *part)
{
	char name[PART_NAME];
	struct stat st;
	size_t before;

	part_name(name, last_part(s->name, &before), part->version);
	if (set_temporary(s, name) < 0)
		return -1;
	s->fd = openat(s->dir, s->temp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		       0600);
	if (s->fd < 0)
		return -1;
	if (!lock_part(s, &st) ||
	    (st.st_size && !part->is_ours(part->arg, s->fd, (uint64_t)st.st_size, s->temp))) {
		close(s->fd);
		s->fd = -1;
		return -1;
	}
	s->begun = part->resume ? (uint64_t)st.st_size : 0;
	/* ext4 writes a file to the disk when it is closed if it was ever cut to nothing. */
	if ((uint64_t)st.st_size != s->begun && ftruncate(s->fd, (off_t)s->begun) < 0)
		s->begun = 0;
	s->end = s->begun;
	s->part = s->temporary = s->owned = s->seekable = true;
	return 0;
}

/* 0: opened, since it is no regular file. 1: it is, or will be. -1 with errno. */
static int open_special(struct sink *s, int dir, const char *name, bool inside)
{
	struct stat st;
	size_t before;

	memset(s, 0, sizeof(*s));
	s->dir = dir;
	s->name = name;
	s->fd = -1;
	if (*last_part(name, &before) == 0) {
		errno = EISDIR;
		return -1;
	}
	if (!inside && fstatat(dir, name, &st, 0) == 0) {
		if (S_ISDIR(st.st_mode)) {
			errno = EISDIR;
			return -1;
		}
		if (!S_ISREG(st.st_mode)) {
			s->fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
			s->owned = true;
			return s->fd < 0 ? -1 : 0;
		}
	}
	return 1;
}

int sink_open(struct sink *s, int dir, const char *name, bool inside, mode_t mode)
{
	int rc = open_special(s, dir, name, inside);

	if (rc <= 0)
		return rc;
	return open_nameless(s, mode) == 0 ? 0 : open_temporary(s);
}

int sink_open_part(struct sink *s, int dir, const char *name, bool inside,
		   const struct sink_part *part)
{
	int rc = open_special(s, dir, name, inside);

	if (rc <= 0)
		return rc;
	if (open_sink_part(s, part) == 0 || open_nameless(s, 0600) == 0)
		return 0;
	return open_temporary(s);
}

void sink_stdout(struct sink *s)
{
	memset(s, 0, sizeof(*s));
	s->dir = AT_FDCWD;
	s->fd = STDOUT_FILENO;
	s->name = "-";
}

static bool is_zero(const struct iovec *iov, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const char *bytes = iov[i].iov_base;
		size_t length = iov[i].iov_len;

		if (length && (*bytes || memcmp(bytes, bytes + 1, length - 1) != 0))
			return false;
	}
	return true;
}

int sink_write(struct sink *s, struct iovec *iov, unsigned count, uint64_t offset)
{
	uint64_t end = offset;

	for (unsigned i = 0; i < count; i++)
		end += iov[i].iov_len;
	if (end > s->end)
		s->end = end;
	/* Nothing was there before. */
	if (s->seekable && is_zero(iov, count))
		return 0;
	while (count > 0) {
		ssize_t n = s->seekable ? pwritev(s->fd, iov, (int)count, (off_t)offset)
					: writev(s->fd, iov, (int)count);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if (n == 0) {
			errno = ENOSPC;
			return -1;
		}
		offset += (uint64_t)n;
		while (count > 0 && (size_t)n >= iov->iov_len) {
			n -= (ssize_t)iov->iov_len;
			iov++;
			count--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

int sink_scatter(struct sink *s)
{
	char old[sizeof(s->temp)];

	if (!s->part)
		return 0;
	strcpy(old, s->temp);
	s->part = s->keep = false;
	if (choose_temporary(s) == 0 && renameat(s->dir, old, s->dir, s->temp) == 0)
		return 0;
	strcpy(s->temp, old);
	return -1;
}

int sink_restart(struct sink *s)
{
	if (!s->seekable) {
		errno = ESPIPE;
		return -1;
	}
	s->begun = s->end = 0;
	/* The name of a part belongs to the other version. */
	return sink_scatter(s) < 0 ? -1 : ftruncate(s->fd, 0);
}

/* Size, mode and time of a file that is complete. */
static int set_attributes(struct sink *s, mode_t mode, uint32_t mtime)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)mtime}};
	struct stat st;

	/* Each change is a transaction of the file system: most files need only that of the time. */
	if (fstat(s->fd, &st) < 0 ||
	    (st.st_size != (off_t)s->end && ftruncate(s->fd, (off_t)s->end) < 0) ||
	    ((st.st_mode & 07777) != mode && fchmod(s->fd, mode) < 0))
		return -1;
	return futimens(s->fd, times);
}

/* What close() reports, for example that the disk of a network file system is full. */
static int flush_descriptor(int fd)
{
	int same = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return same < 0 ? -1 : close(same);
}

int sink_commit(struct sink *s, mode_t mode, uint32_t mtime)
{
	assert(!(s->nameless && s->temporary));
	if (!s->owned)
		return 0;
	if (s->seekable && set_attributes(s, mode, mtime) < 0)
		return -1;
	if (flush_descriptor(s->fd) < 0 || (s->nameless && link_nameless(s) < 0) ||
	    (s->temporary && renameat(s->dir, s->temp, s->dir, s->name) < 0))
		return -1;
	/* Only now may another process take the part, whose lock ends. */
	close(s->fd);
	s->owned = s->temporary = false;
	s->fd = -1;
	return 0;
}

void sink_abandon(struct sink *s)
{
	int saved = errno;

	/* The part is removed before its lock ends. */
	if (s->temporary && !(s->part && s->keep))
		unlinkat(s->dir, s->temp, 0);
	if (s->owned && s->fd >= 0)
		close(s->fd);
	s->owned = s->temporary = s->nameless = false;
	s->fd = -1;
	errno = saved;
}

/* ---- deep trees ---- */

bool climb_down(int *fd, unsigned depth, struct stat *left)
{
	if (depth <= CLIMB_OPEN || fstat(*fd, left) < 0)
		return false;
	close(*fd);
	*fd = -1;
	return true;
}

int climb_up(int *fd, int below, const struct stat *left, const char *label)
{
	struct stat now;

	/* A folder further down has been told. */
	if (below < 0)
		return -1;
	*fd = openat(below, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0 && fstat(*fd, &now) == 0 && now.st_dev == left->st_dev &&
	    now.st_ino == left->st_ino)
		return 0;
	tools_error("%s: cannot go back from it: %s", label,
		    *fd < 0 ? strerror(errno) : "somebody has moved it meanwhile");
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -1;
}

/* ---- directories ---- */

/* Let the owner of a directory use it. 0 and its old mode in *mode, or -1 with errno. */
static int permit_owner(int dir, const char *name, int flags, mode_t *mode)
{
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags), rc = -1, saved;
	char path[32];
	struct stat st;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == 0)
		rc = chmod(path, (st.st_mode & 07777) | 0700);
	saved = errno;
	close(fd);
	errno = saved;
	if (rc == 0)
		*mode = st.st_mode & 07777;
	return rc;
}

int open_usable_directory(int dir, const char *name, int flags, mode_t *mode)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	struct stat st;

	if (fd < 0 && errno == EACCES && permit_owner(dir, name, flags, mode) == 0)
		return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0700) == 0700)
		return fd;
	if (fchmod(fd, (st.st_mode & 07777) | 0700) == 0)
		*mode = st.st_mode & 07777;
	return fd;
}
