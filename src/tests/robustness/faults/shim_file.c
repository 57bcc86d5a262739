/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrappers (the linker's --wrap) of functions for files, folders and strings. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim_private.h"

/* --- strings --- */

WRAP(char *, strdup, const char *text)
{
	return shim_fails(SHIM_MEMORY) ? NULL : shim_remember(__real_strdup(text));
}

WRAP(char *, strndup, const char *text, size_t length)
{
	return shim_fails(SHIM_MEMORY) ? NULL : shim_remember(__real_strndup(text, length));
}

static int print_or_fail(char **text, const char *format, va_list ap)
{
	int n;

	if (shim_fails(SHIM_MEMORY)) {
		*text = NULL;
		return -1;
	}
	n = vasprintf(text, format, ap);
	if (n >= 0)
		shim_remember(*text);
	return n;
}

WRAP(int, asprintf, char **text, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = print_or_fail(text, format, ap);
	va_end(ap);
	return n;
}

/* The same under -D_FORTIFY_SOURCE. */
int __wrap___asprintf_chk(char **text, int flag, const char *format, ...);

int __wrap___asprintf_chk(char **text, int flag, const char *format, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, format);
	n = print_or_fail(text, format, ap);
	va_end(ap);
	return n;
}

void *__wrap_realloc(void *p, size_t size);

WRAP(void *, reallocarray, void *p, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(p, bytes);
}

/* --- files --- */

/*
 * The mode is present only with flags that may create a file; otherwise the value read is ignored.
 */
WRAP(int, open, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (shim_refuses(SHIM_OPEN))
		return -1;
	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return shim_opened(__real_open(path, flags, mode));
}

WRAP(int, openat, int folder, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (shim_refuses(SHIM_OPEN))
		return -1;
	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return shim_opened(__real_openat(folder, path, flags, mode));
}

/*
 * With -D_FORTIFY_SOURCE, an open() or openat() whose flags are not constant calls these; they
 * abort if O_CREAT is set. Declared here because the headers declare them only for their own use.
 */
int __wrap___open_2(const char *path, int flags);
int __wrap___openat_2(int folder, const char *path, int flags);

int __wrap___open_2(const char *path, int flags)
{
	return __wrap_open(path, flags);
}

int __wrap___openat_2(int folder, const char *path, int flags)
{
	return __wrap_openat(folder, path, flags);
}

/* syscall() is used for openat2() only, which has four arguments. */
WRAP(long, syscall, long number, ...)
{
	long a[4];
	va_list ap;

	va_start(ap, number);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number != SYS_openat2)
		abort();
	if (shim_refuses(SHIM_OPEN))
		return -1;
	return shim_opened((int)__real_syscall(number, a[0], a[1], a[2], a[3]));
}

WRAP(FILE *, fopen, const char *path, const char *mode)
{
	return shim_refuses(SHIM_OPEN) ? NULL : __real_fopen(path, mode);
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
	return shim_refuses(SHIM_OPEN) ? -1 : __real_mkdir(path, mode);
}

WRAP(int, rename, const char *from, const char *to)
{
	return shim_refuses(SHIM_OPEN) ? -1 : __real_rename(from, to);
}

WRAP(int, pipe2, int fd[2], int flags)
{
	int r = shim_refuses(SHIM_OPEN) ? -1 : __real_pipe2(fd, flags);

	if (!r) {
		shim_opened(fd[0]);
		shim_opened(fd[1]);
	}
	return r;
}

/* The descriptor belongs to the stream, which closes it. */
WRAP(DIR *, fdopendir, int fd)
{
	return shim_refuses(SHIM_OPEN) ? NULL : __real_fdopendir(fd);
}

WRAP(DIR *, opendir, const char *path)
{
	DIR *dir = shim_refuses(SHIM_OPEN) ? NULL : __real_opendir(path);

	if (dir)
		shim_opened(dirfd(dir));
	return dir;
}

WRAP(int, closedir, DIR *dir)
{
	return shim_closed(__real_closedir(dir));
}

WRAP(int, fstat, int fd, struct stat *st)
{
	return shim_refuses(SHIM_STAT) ? -1 : __real_fstat(fd, st);
}

WRAP(int, fstatat, int fd, const char *path, struct stat *st, int flags)
{
	return shim_refuses(SHIM_STAT) ? -1 : __real_fstatat(fd, path, st, flags);
}

WRAP(int, fstatvfs, int fd, struct statvfs *st)
{
	return shim_refuses(SHIM_STAT) ? -1 : __real_fstatvfs(fd, st);
}

WRAP(ssize_t, readlinkat, int fd, const char *path, char *text, size_t room)
{
	return shim_refuses(SHIM_STAT) ? -1 : __real_readlinkat(fd, path, text, room);
}

WRAP(ssize_t, preadv, int fd, const struct iovec *iov, int count, off_t at)
{
	return shim_refuses(SHIM_FILE) ? -1 : __real_preadv(fd, iov, count, at);
}

#ifdef RWF_NOWAIT /* absent in musl, where no caller needs it */
WRAP(ssize_t, preadv2, int fd, const struct iovec *iov, int count, off_t at, int flags)
{
	return shim_refuses(SHIM_FILE) ? -1 : __real_preadv2(fd, iov, count, at, flags);
}
#endif

/* A duplicate counts as a file that was opened. */
WRAP(int, fcntl, int fd, int command, ...)
{
	bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
	va_list ap;
	void *arg;
	int r;

	if (duplicates && shim_refuses(SHIM_OPEN))
		return -1;
	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	r = __real_fcntl(fd, command, arg);
	return duplicates ? shim_opened(r) : r;
}

WRAP(int, fsync, int fd)
{
	return shim_refuses(SHIM_FILE) ? -1 : __real_fsync(fd);
}

/* --- notification of changes --- */

WRAP(int, inotify_init1, int flags)
{
	return shim_refuses(SHIM_NOTIFY) ? -1 : shim_opened(__real_inotify_init1(flags));
}

WRAP(int, inotify_add_watch, int fd, const char *path, uint32_t mask)
{
	return shim_refuses(SHIM_NOTIFY) ? -1 : __real_inotify_add_watch(fd, path, mask);
}

#ifdef SHIM_LARGE_FILES
/* libcheck's own functions, built without the wrappers and not under test. */
#undef __wrap_fopen
#undef __real_fopen
WRAP(FILE *, fopen, const char *path, const char *mode)
{
	return __real_fopen(path, mode);
}
#endif
