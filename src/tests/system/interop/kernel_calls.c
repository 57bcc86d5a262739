/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls on files in the guest of `kernel_writes`, linked statically. Each argument is one
 * call; all run in one process, in their order, so that a later one can use what an earlier one
 * has opened. One line is printed: for each call "ok", a value, or the error's name.
 *
 *   calls 'open 1 bc /open/f' 'write 1 0 100 7' 'check 1 0 100 7' 'close 1' 'rmdir /open/f'
 *     prints: ok ok ok ok ENOTDIR
 *
 * SLOT is 0 to 9. Contents are a pattern that depends on SEED and the offset; SEED 0 is zeros.
 *
 *   open SLOT FLAGS PATH [MODE]       FLAGS: r w b (both), c t x a d, D (O_DIRECT)
 *   close|fsync SLOT                  size SLOT
 *   write|check SLOT OFFSET LENGTH SEED       check prints "differs@OFFSET" or "short@OFFSET"
 *   mapwrite|mapcheck SLOT OFFSET LENGTH SEED the same through a shared mapping, with msync
 *   append SLOT TEXT                  truncate PATH LENGTH, ftruncate SLOT LENGTH
 *   allocate|punch SLOT OFFSET LENGTH
 *   rename|link PATH PATH             exchange|fresh PATH PATH (rename with a flag)
 *   symlink TEXT PATH                 mkdir|rmdir|unlink|exists PATH
 *   chmod PATH MODE, lchmod           chown PATH USER GROUP, utime PATH SECONDS
 *   stat PATH                         prints kind:mode:size:links
 *   fifo|chdir PATH                         list PATH: number of names
 *   flock SLOT sh|ex|un [wait]        lock SLOT read|write|none START LENGTH [wait]
 *   getlock SLOT read|write START LENGTH      prints who would be in the way
 *   setxattr PATH NAME TEXT           with \n and \t in TEXT
 *   getxattr PATH NAME
 *   signal FILE                       makes an empty local file
 *   await FILE                        waits until it exists, at most 100 s
 *   drop                              drops the guest's caches
 *   bytes PATH                        makes and removes a file for each byte that a name may have
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "kernel_pattern.h"

#define WORDS	   8
#define SLOTS	   10
#define WAIT_TURNS 5000 /* of 20 ms */

static int slots[SLOTS];
static char value[9000]; /* what the call prints instead of "ok" */

static int fd_of(const char *word)
{
	return slots[(unsigned char)word[0] % SLOTS];
}

static long long number(const char *word)
{
	return word ? strtoll(word, NULL, 0) : 0;
}

static int do_open(char **w)
{
	static const struct {
		char letter;
		int flag;
	} flags[] = {{'r', O_RDONLY}, {'w', O_WRONLY}, {'b', O_RDWR},	{'c', O_CREAT},
		     {'t', O_TRUNC},  {'x', O_EXCL},   {'a', O_APPEND}, {'d', O_DIRECTORY},
		     {'D', O_DIRECT}};
	int all = 0, fd;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strchr(w[2], flags[i].letter))
			all |= flags[i].flag;
	fd = open(w[3], all, w[4] ? strtol(w[4], NULL, 8) : 0644);
	if (fd < 0)
		return -1;
	slots[(unsigned char)w[1][0] % SLOTS] = fd;
	return 0;
}

static int do_write(char **w)
{
	static char bytes[PATTERN_PART];
	long long at = number(w[2]), left = number(w[3]);

	while (left > 0) {
		size_t n = left < PATTERN_PART ? (size_t)left : PATTERN_PART;
		ssize_t done;

		pattern_fill(bytes, at, n, (unsigned)number(w[4]));
		done = pwrite(fd_of(w[1]), bytes, n, at);
		if (done <= 0)
			return -1;
		at += done, left -= done;
	}
	return 0;
}

static int do_check(char **w)
{
	static char bytes[PATTERN_PART];
	long long at = number(w[2]), left = number(w[3]);

	while (left > 0) {
		size_t n = left < PATTERN_PART ? (size_t)left : PATTERN_PART, bad;
		ssize_t got = pread(fd_of(w[1]), bytes, n, at);

		if (got < 0)
			return -1;
		if (got == 0) {
			snprintf(value, sizeof(value), "short@%lld", at);
			return 0;
		}
		bad = pattern_differs(bytes, at, (size_t)got, (unsigned)number(w[4]));
		if (bad < (size_t)got) {
			snprintf(value, sizeof(value), "differs@%lld", at + (long long)bad);
			return 0;
		}
		at += got, left -= got;
	}
	return 0;
}

/* Maps the pages around [at, at + length); returns the address of the first page. */
static char *map_around(int fd, long long at, size_t length, int protection, size_t *size)
{
	*size = (size_t)(at % 4096) + length;
	return mmap(NULL, *size, protection, MAP_SHARED, fd, at - at % 4096);
}

static int do_mapwrite(char **w)
{
	long long at = number(w[2]);
	size_t length = (size_t)number(w[3]), size;
	char *map = map_around(fd_of(w[1]), at, length, PROT_READ | PROT_WRITE, &size);
	int result;

	if (map == MAP_FAILED)
		return -1;
	pattern_fill(map + at % 4096, at, length, (unsigned)number(w[4]));
	result = msync(map, size, MS_SYNC);
	munmap(map, size);
	return result;
}

static int do_mapcheck(char **w)
{
	long long at = number(w[2]);
	size_t length = (size_t)number(w[3]), size, bad;
	char *map = map_around(fd_of(w[1]), at, length, PROT_READ, &size);

	if (map == MAP_FAILED)
		return -1;
	bad = pattern_differs(map + at % 4096, at, length, (unsigned)number(w[4]));
	if (bad < length)
		snprintf(value, sizeof(value), "differs@%lld", at + (long long)bad);
	munmap(map, size);
	return 0;
}

static int do_close(char **w) { return close(fd_of(w[1])); }
static int do_fsync(char **w) { return fsync(fd_of(w[1])); }
static int do_truncate(char **w) { return truncate(w[1], number(w[2])); }
static int do_ftruncate(char **w) { return ftruncate(fd_of(w[1]), number(w[2])); }
static int do_rename(char **w) { return rename(w[1], w[2]); }
static int do_link(char **w) { return link(w[1], w[2]); }
static int do_symlink(char **w) { return symlink(w[1], w[2]); }
static int do_mkdir(char **w) { return mkdir(w[1], 0755); }
static int do_rmdir(char **w) { return rmdir(w[1]); }
static int do_unlink(char **w) { return unlink(w[1]); }
static int do_chdir(char **w) { return chdir(w[1]); }
static int do_exists(char **w) { return access(w[1], F_OK); }
static int do_chmod(char **w) { return chmod(w[1], (mode_t)strtol(w[2], NULL, 8)); }
static int do_fifo(char **w) { return mkfifo(w[1], 0644); }

static int do_chown(char **w)
{
	return lchown(w[1], (uid_t)number(w[2]), (gid_t)number(w[3]));
}

/* The mode of a symlink itself, by Linux 6.6's call. */
static int do_lchmod(char **w)
{
	return (int)syscall(452, AT_FDCWD, w[1], (mode_t)strtol(w[2], NULL, 8),
			    AT_SYMLINK_NOFOLLOW);
}

static int do_exchange(char **w)
{
	return renameat2(AT_FDCWD, w[1], AT_FDCWD, w[2], RENAME_EXCHANGE);
}

static int do_fresh(char **w)
{
	return renameat2(AT_FDCWD, w[1], AT_FDCWD, w[2], RENAME_NOREPLACE);
}

static int do_append(char **w)
{
	size_t n = strlen(w[2]);

	return write(fd_of(w[1]), w[2], n) == (ssize_t)n ? 0 : -1;
}

static int do_size(char **w)
{
	struct stat st;

	if (fstat(fd_of(w[1]), &st) < 0)
		return -1;
	snprintf(value, sizeof(value), "%lld", (long long)st.st_size);
	return 0;
}

static int do_stat(char **w)
{
	struct stat st;

	if (lstat(w[1], &st) < 0)
		return -1;
	snprintf(value, sizeof(value), "%s:%o:%lld:%lu",
		 S_ISDIR(st.st_mode) ? "dir" : S_ISLNK(st.st_mode) ? "link" : "file",
		 st.st_mode & 07777, (long long)st.st_size, (unsigned long)st.st_nlink);
	return 0;
}

static int do_allocate(char **w)
{
	return fallocate(fd_of(w[1]), 0, number(w[2]), number(w[3]));
}

static int do_punch(char **w)
{
	return fallocate(fd_of(w[1]), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, number(w[2]),
			 number(w[3]));
}

static int do_utime(char **w)
{
	const struct timespec times[2] = {{.tv_sec = number(w[2])}, {.tv_sec = number(w[2])}};

	return utimensat(AT_FDCWD, w[1], times, AT_SYMLINK_NOFOLLOW);
}

static int do_list(char **w)
{
	DIR *dir = opendir(w[1]);
	long names = 0;

	if (!dir)
		return -1;
	errno = 0;
	while (readdir(dir))
		names++;
	closedir(dir);
	if (errno)
		return -1;
	snprintf(value, sizeof(value), "%ld", names - 2);
	return 0;
}

static int do_flock(char **w)
{
	int kind = w[2][0] == 's' ? LOCK_SH : w[2][0] == 'e' ? LOCK_EX : LOCK_UN;

	return flock(fd_of(w[1]), w[3] ? kind : kind | LOCK_NB);
}

static struct flock region(char **w)
{
	short type = w[2][0] == 'r' ? F_RDLCK : w[2][0] == 'w' ? F_WRLCK : F_UNLCK;

	return (struct flock){.l_type = type,
			      .l_whence = SEEK_SET,
			      .l_start = number(w[3]),
			      .l_len = number(w[4])};
}

static int do_lock(char **w)
{
	struct flock r = region(w);

	return fcntl(fd_of(w[1]), w[5] ? F_SETLKW : F_SETLK, &r);
}

static int do_getlock(char **w)
{
	struct flock r = region(w);

	if (fcntl(fd_of(w[1]), F_GETLK, &r) < 0)
		return -1;
	snprintf(value, sizeof(value), "%s",
		 r.l_type == F_UNLCK ? "nobody" : r.l_type == F_RDLCK ? "reader" : "writer");
	return 0;
}

static int do_setxattr(char **w)
{
	char text[2000], *to = text;

	for (const char *p = w[3]; *p && to < text + sizeof(text) - 1; p++) {
		if (p[0] == '\\' && p[1])
			*to++ = *++p == 'n' ? '\n' : '\t';
		else
			*to++ = *p;
	}
	*to = 0;
	/* The text of an ACL ends with a NUL. */
	return setxattr(w[1], w[2], text, (size_t)(to - text) + 1, 0);
}

static int do_getxattr(char **w)
{
	ssize_t n = getxattr(w[1], w[2], value, sizeof(value) - 1);

	if (n < 0)
		return -1;
	value[n] = 0;
	for (char *p = value; *p; p++)
		if (*p == '\n' || *p == '\t' || *p == ' ')
			*p = *p == '\n' ? '/' : ':';
	return 0;
}

static int do_signal(char **w)
{
	int fd = open(w[1], O_WRONLY | O_CREAT, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int do_await(char **w)
{
	const struct timespec turn = {.tv_nsec = 20 * 1000 * 1000};

	for (int i = 0; i < WAIT_TURNS; i++) {
		if (access(w[1], F_OK) == 0)
			return 0;
		nanosleep(&turn, NULL);
	}
	errno = ETIMEDOUT;
	return -1;
}

static int do_drop(char **w)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	ssize_t n = fd < 0 ? -1 : write(fd, "3", 1);

	(void)w;
	if (fd >= 0)
		close(fd);
	return n == 1 ? 0 : -1;
}

/* A name of two bytes for each value, because "." is no name for a file. */
static int do_bytes(char **w)
{
	char path[PATH_MAX];
	int dir = open(w[1], O_RDONLY | O_DIRECTORY), made = 0, found = 0, removed = 0;

	for (int b = 1; b < 256; b++) {
		char name[3] = {'n', (char)b, 0};
		int fd = b == '/' ? -1 : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

		if (fd >= 0 && ++made)
			close(fd);
	}
	do_drop(w);
	for (int b = 1; b < 256; b++) {
		snprintf(path, sizeof(path), "%s/n%c", w[1], b);
		found += b != '/' && access(path, F_OK) == 0;
	}
	for (int b = 1; b < 256; b++) {
		snprintf(path, sizeof(path), "%s/n%c", w[1], b);
		removed += b != '/' && unlink(path) == 0;
	}
	snprintf(value, sizeof(value), "%d/%d/%d", made, found, removed);
	return dir < 0 ? -1 : close(dir);
}

static const struct {
	const char *name;
	int words; /* least number, its own name included */
	int (*run)(char **words);
} calls[] = {
	{"open", 4, do_open},	      {"close", 2, do_close},	    {"fsync", 2, do_fsync},
	{"write", 5, do_write},	      {"check", 5, do_check},	    {"mapwrite", 5, do_mapwrite},
	{"mapcheck", 5, do_mapcheck}, {"append", 3, do_append},	    {"truncate", 3, do_truncate},
	{"ftruncate", 3, do_ftruncate}, {"allocate", 4, do_allocate}, {"punch", 4, do_punch},
	{"rename", 3, do_rename},     {"exchange", 3, do_exchange}, {"fresh", 3, do_fresh},
	{"link", 3, do_link},	      {"symlink", 3, do_symlink},   {"mkdir", 2, do_mkdir},
	{"rmdir", 2, do_rmdir},	      {"unlink", 2, do_unlink},	    {"exists", 2, do_exists},
	{"chmod", 3, do_chmod},	      {"lchmod", 3, do_lchmod},	    {"chown", 4, do_chown},
	{"utime", 3, do_utime},	      {"stat", 2, do_stat},	    {"size", 2, do_size},
	{"fifo", 2, do_fifo},	      {"chdir", 2, do_chdir},	      {"list", 2, do_list},	    {"flock", 3, do_flock},
	{"lock", 5, do_lock},	      {"getlock", 5, do_getlock},   {"setxattr", 4, do_setxattr},
	{"getxattr", 3, do_getxattr}, {"signal", 2, do_signal},	    {"await", 2, do_await},
	{"drop", 1, do_drop},	      {"bytes", 2, do_bytes},
};

/* Splits a call at its spaces and makes it; prints the result. */
static void make(char *text, const char *separator)
{
	char *words[WORDS + 1] = {NULL};
	int n = 0, result = -1;
	const char *name;

	for (char *p = strtok(text, " "); p && n < WORDS; p = strtok(NULL, " "))
		words[n++] = p;
	value[0] = 0;
	errno = ENOSYS;
	for (size_t i = 0; n && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, words[0]) && n >= calls[i].words)
			result = calls[i].run(words);
	name = result < 0 ? strerrorname_np(errno) : value[0] ? value : "ok";
	printf("%s%s", separator, name ? name : "?");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	memset(slots, -1, sizeof(slots));
	for (int i = 1; i < argc; i++)
		make(argv[i], i > 1 ? " " : "");
	putchar('\n');
	return 0;
}
