/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths below a directory of this machine; no symbolic link is followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "admin/private.h"

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
