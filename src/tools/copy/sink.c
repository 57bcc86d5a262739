/* SPDX-License-Identifier: BSD-2-Clause */
/* Destinations: files appear under their names only when they are complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/copy/sink.h"

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

/* "PATH/.NAME.0123abcd" of s->name. 0, or -1 with errno. */
static int choose_temporary(struct sink *s)
{
	size_t before;
	const char *base = last_part(s->name, &before);
	char name[224];

	sink_temp_name(name, sizeof(name), base);
	if (before + strlen(name) >= sizeof(s->temp)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(s->temp, s->name, before);
	strcpy(s->temp + before, name);
	return 0;
}

/*
 * Create a file without a name, which even SIGKILL cannot leave behind. -1: not supported here, or
 * it could not get a name later.
 */
static int open_nameless(struct sink *s)
{
	char folder[sizeof(s->temp)];
	size_t before;

	last_part(s->name, &before);
	if (before >= sizeof(folder) || access("/proc/self/fd", X_OK) < 0)
		return -1;
	memcpy(folder, s->name, before);
	strcpy(folder + before, ".");
	s->fd = openat(s->dir, folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
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

/* Give a nameless file the temporary name, which is renamed to the final one later. */
static int link_nameless(struct sink *s)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	for (int i = 0; i < ATTEMPTS; i++) {
		if (choose_temporary(s) < 0)
			return -1;
		if (linkat(AT_FDCWD, path, s->dir, s->temp, AT_SYMLINK_FOLLOW) == 0) {
			s->nameless = false;
			s->temporary = true;
			return 0;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

int sink_open(struct sink *s, int dir, const char *name, bool inside)
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
	return open_nameless(s) == 0 ? 0 : open_temporary(s);
}

void sink_stdout(struct sink *s)
{
	memset(s, 0, sizeof(*s));
	s->dir = AT_FDCWD;
	s->fd = STDOUT_FILENO;
	s->name = "-";
}

int sink_write(struct sink *s, struct iovec *iov, unsigned count, uint64_t offset)
{
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

int sink_restart(struct sink *s)
{
	if (!s->seekable) {
		errno = ESPIPE;
		return -1;
	}
	return ftruncate(s->fd, 0);
}

int sink_commit(struct sink *s, mode_t mode, uint32_t mtime)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)mtime}};
	int fd = s->fd;

	if (!s->owned)
		return 0;
	if (s->seekable && (fchmod(fd, mode) < 0 || futimens(fd, times) < 0))
		return -1;
	if (s->nameless && link_nameless(s) < 0)
		return -1;
	/* On network file systems close() may report that the disk is full. */
	s->owned = false;
	s->fd = -1;
	if (close(fd) < 0)
		return -1;
	if (!s->temporary)
		return 0;
	if (renameat(s->dir, s->temp, s->dir, s->name) < 0)
		return -1;
	s->temporary = false;
	return 0;
}

void sink_abandon(struct sink *s)
{
	int saved = errno;

	if (s->owned && s->fd >= 0)
		close(s->fd);
	if (s->temporary)
		unlinkat(s->dir, s->temp, 0);
	s->owned = s->temporary = s->nameless = false;
	s->fd = -1;
	errno = saved;
}
