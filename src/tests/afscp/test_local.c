/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afscp/local.c: complete files under their names, or none. */

#include "tests/tools/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "afscp/folder.h"
#include "afscp/local.h"

/* Names in a directory. */
static int count_names(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 4096);

	ck_assert_ptr_nonnull(f);
	text[fread(text, 1, 4095, f)] = 0;
	fclose(f);
	return text;
}

START_TEST(commit)
{
	char *folder = test_folder(), path[300], *text;
	char a[] = "world", b[] = "hello ";
	struct iovec iov[2] = {{b, 3}, {b + 3, 3}}, second = {a, 5};
	struct sink s;
	struct stat st;

	snprintf(path, sizeof(path), "%s/file", folder);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, path, false, 0640), 0);
	ck_assert(s.seekable);
	/* Parts may come in any order. */
	ck_assert_int_eq(sink_write(&s, &second, 1, 6), 0);
	ck_assert_int_eq(sink_write(&s, iov, 2, 0), 0);
	ck_assert_int_eq(access(path, F_OK), -1);
	/* Where the file system supports that, it has no name yet: SIGKILL leaves no file. */
	ck_assert_int_eq(count_names(folder), !s.nameless);
	ck_assert_int_eq(sink_commit(&s, 0640, 1000000000), 0);
	sink_abandon(&s);
	ck_assert_int_eq(count_names(folder), 1);
	text = read_all(path);
	ck_assert_str_eq(text, "hello world");
	free(text);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0640);
	ck_assert_int_eq(st.st_mtime, 1000000000);

	/* The name is taken: it shows the old file until the new one is complete. */
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, path, false, 0640), 0);
	ck_assert_int_eq(sink_write(&s, &(struct iovec){b, 5}, 1, 0), 0);
	ck_assert_int_eq(sink_commit(&s, 0600, 1000000000), 0);
	ck_assert_int_eq(count_names(folder), 1);
	text = read_all(path);
	ck_assert_str_eq(text, "hello");
	free(text);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	unlink(path);
	rmdir(folder);
	free(folder);
}
END_TEST

static bool is_not_longer(void *arg, int fd, uint64_t length, const char *name)
{
	(void)fd;
	ck_assert_ptr_nonnull(strstr(name, ".afscp-part"));
	return length <= *(uint64_t *)arg;
}

/* A file of `length` bytes whose part is ours unless it is longer. */
static int open_part(struct sink *s, const char *path, uint64_t version, uint64_t length,
		     bool resume)
{
	struct sink_part part = {
		.version = version, .resume = resume, .is_ours = is_not_longer, .arg = &length};

	return sink_open_part(s, AT_FDCWD, path, false, &part);
}

/* A part of an earlier run is continued if it is of the same version, and kept only on demand. */
START_TEST(parts)
{
	char *folder = test_folder(), path[300], *text;
	char a[] = "hello ", b[] = "world";
	struct iovec first = {a, 6}, second = {b, 5};
	struct sink s, other;

	snprintf(path, sizeof(path), "%s/file", folder);
	ck_assert_int_eq(open_part(&s, path, 7, 11, false), 0);
	ck_assert(s.part);
	ck_assert_int_eq(sink_write(&s, &first, 1, 0), 0);
	/* Another process has it: this one uses another file. */
	ck_assert_int_eq(open_part(&other, path, 7, 11, true), 0);
	ck_assert(!other.part);
	ck_assert_uint_eq(other.begun, 0);
	sink_abandon(&other);
	s.keep = true;
	sink_abandon(&s);
	ck_assert_int_eq(count_names(folder), 1);
	ck_assert_int_eq(open_part(&s, path, 8, 11, true), 0);
	ck_assert_uint_eq(s.begun, 0);
	sink_abandon(&s);
	ck_assert_int_eq(open_part(&s, path, 7, 5, true), 0);
	/* It is not ours, and stays as it is. */
	ck_assert(!s.part);
	ck_assert_uint_eq(s.begun, 0);
	sink_abandon(&s);
	ck_assert_int_eq(open_part(&s, path, 7, 5, false), 0);
	ck_assert(!s.part);
	sink_abandon(&s);
	ck_assert_int_eq(open_part(&s, path, 7, 11, true), 0);
	ck_assert_uint_eq(s.begun, 6);
	ck_assert_int_eq(sink_write(&s, &second, 1, 6), 0);
	ck_assert_int_eq(sink_commit(&s, 0640, 1000000000), 0);
	ck_assert_int_eq(count_names(folder), 1);
	text = read_all(path);
	ck_assert_str_eq(text, "hello world");
	free(text);
	/* After a restart it is no part of that version. */
	ck_assert_int_eq(open_part(&s, path, 7, 11, false), 0);
	ck_assert_int_eq(sink_restart(&s), 0);
	ck_assert(!s.part);
	s.keep = true;
	sink_abandon(&s);
	ck_assert_int_eq(count_names(folder), 1);
	unlink(path);
	rmdir(folder);
	free(folder);
}
END_TEST

/* Another process finishes the part between open() and flock(): it must not be truncated. */
static const char *finish_as;
static char found_part[300];

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);

int __wrap_flock(int fd, int operation)
{
	if (finish_as)
		ck_assert_int_eq(rename(found_part, finish_as), 0);
	finish_as = NULL;
	return __real_flock(fd, operation);
}

/* A part that still has its name is locked. */
static unsigned locked;

static void note_lock(const char *name)
{
	int fd = open(name, O_WRONLY);

	if (fd < 0)
		return;
	locked += __real_flock(fd, LOCK_EX | LOCK_NB) < 0;
	close(fd);
}

int __wrap_renameat(int from, const char *old, int to, const char *new)
{
	note_lock(old);
	return __real_renameat(from, old, to, new);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	note_lock(name);
	return __real_unlinkat(dir, name, flags);
}

START_TEST(parts_of_two_processes)
{
	char *folder = test_folder(), path[300], *text;
	struct iovec first = {(char[]){"hello"}, 5};
	struct sink s;

	snprintf(path, sizeof(path), "%s/file", folder);
	ck_assert_int_eq(open_part(&s, path, 7, 5, false), 0);
	ck_assert_int_eq(sink_write(&s, &first, 1, 0), 0);
	snprintf(found_part, sizeof(found_part), "%s", s.temp);
	s.keep = true;
	sink_abandon(&s);
	finish_as = path;
	ck_assert_int_eq(open_part(&s, path, 7, 5, false), 0);
	ck_assert_ptr_null(finish_as);
	ck_assert(!s.part);
	sink_abandon(&s);
	text = read_all(path);
	ck_assert_str_eq(text, "hello");
	free(text);

	locked = 0;
	ck_assert_int_eq(open_part(&s, path, 7, 5, false), 0);
	sink_abandon(&s);
	ck_assert_uint_eq(locked, 1);
	ck_assert_int_eq(open_part(&s, path, 7, 5, false), 0);
	ck_assert_int_eq(sink_commit(&s, 0640, 1000000000), 0);
	ck_assert_uint_eq(locked, 2);
	ck_assert_int_eq(count_names(folder), 1);
	unlink(path);
	rmdir(folder);
	free(folder);
}
END_TEST

/* Zeros take no blocks; the length is right also if they are at the end. */
START_TEST(holes)
{
	char *folder = test_folder(), path[300], x[] = "x";
	static char zeros[1 << 20];
	struct stat st;
	struct sink s;

	snprintf(path, sizeof(path), "%s/file", folder);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, path, false, 0640), 0);
	ck_assert_int_eq(sink_write(&s, &(struct iovec){zeros, sizeof(zeros)}, 1, 0), 0);
	ck_assert_int_eq(sink_write(&s, &(struct iovec){x, 1}, 1, sizeof(zeros)), 0);
	ck_assert_int_eq(
		sink_write(&s, &(struct iovec){zeros, sizeof(zeros)}, 1, sizeof(zeros) + 1), 0);
	ck_assert_int_eq(sink_commit(&s, 0640, 1000000000), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 2 * sizeof(zeros) + 1);
	ck_assert_int_lt(st.st_blocks * 512, (int)sizeof(zeros));
	unlink(path);
	rmdir(folder);
	free(folder);
}
END_TEST

START_TEST(abandon)
{
	char *folder = test_folder(), path[300], *text, data[] = "new";
	struct iovec iov = {data, 3};
	struct sink s;
	FILE *f;

	snprintf(path, sizeof(path), "%s/file", folder);
	f = fopen(path, "w");
	fputs("old", f);
	fclose(f);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, path, false, 0640), 0);
	ck_assert_int_eq(sink_write(&s, &iov, 1, 0), 0);
	errno = EIO;
	sink_abandon(&s);
	ck_assert_int_eq(errno, EIO);
	text = read_all(path);
	ck_assert_str_eq(text, "old");
	free(text);
	ck_assert_int_eq(count_names(folder), 1);
	unlink(path);
	rmdir(folder);
	free(folder);
}
END_TEST

START_TEST(disk_full)
{
	char data[] = "x";
	struct iovec iov = {data, 1};
	struct sink s;

	if (sink_open(&s, AT_FDCWD, "/dev/full", false, 0640) < 0)
		return; /* no such device here: nothing to test */
	ck_assert(!s.temporary);
	ck_assert_int_eq(sink_write(&s, &iov, 1, 0), -1);
	ck_assert_int_eq(errno, ENOSPC);
	sink_abandon(&s);
	ck_assert_int_eq(access("/dev/full", F_OK), 0);
}
END_TEST

START_TEST(not_files)
{
	char *folder = test_folder(), path[300], link[300];
	struct sink s;
	struct stat st;

	ck_assert_int_eq(sink_open(&s, AT_FDCWD, "/dev/null", false, 0640), 0);
	ck_assert(!s.temporary && !s.seekable);
	ck_assert_int_eq(sink_commit(&s, 0600, 0), 0);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, folder, false, 0640), -1);
	ck_assert_int_eq(errno, EISDIR);
	snprintf(path, sizeof(path), "%s/none/file", folder);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, path, false, 0640), -1);
	ck_assert_int_eq(errno, ENOENT);
	snprintf(path, sizeof(path), "%s/", folder);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, path, false, 0640), -1);
	/*
	 * A name that the server chose: an existing file is replaced, and a link is never followed.
	 */
	snprintf(link, sizeof(link), "%s/link", folder);
	ck_assert_int_eq(symlink("/dev/null", link), 0);
	ck_assert_int_eq(sink_open(&s, AT_FDCWD, link, true, 0640), 0);
	ck_assert(s.temporary || s.nameless);
	ck_assert_int_eq(sink_commit(&s, 0600, 0), 0);
	ck_assert_int_eq(lstat(link, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	unlink(link);
	rmdir(folder);
	free(folder);
}
END_TEST

START_TEST(long_names)
{
	char name[300], temp[256];

	memset(name, 'n', 255);
	name[255] = 0;
	sink_temp_name(temp, sizeof(temp), name);
	ck_assert_uint_le(strlen(temp), 255);
	ck_assert_int_eq(temp[0], '.');
}
END_TEST

/* Since a directory was read, a name in it may have become a link to a file elsewhere. */
START_TEST(modes_of_links)
{
	char *folder = test_folder(), target[300], name[] = "link";
	const struct item item = {.name = name, .kind = ITEM_FILE, .mode = 0600};
	const struct looks looks = {
		.set_mode = true, .set_time = true, .mode = 0777, .mtime = 1000000000};
	struct folder f;
	struct stat st;

	snprintf(target, sizeof(target), "%s/target", folder);
	close(open(target, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(open_local_folder(NULL, folder, &f), 0);
	ck_assert_int_eq(symlinkat("target", f.fd, name), 0);
	f.ops->set_looks(&f, &item, &looks, name);
	ck_assert_int_eq(stat(target, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_ne(st.st_mtime, 1000000000);
	f.ops->leave(&f);
}
END_TEST

TEST_MAIN("sink", commit, parts, parts_of_two_processes, holes, abandon, disk_full, not_files,
	  long_names, modes_of_links)
