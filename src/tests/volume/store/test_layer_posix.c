/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of volume/store/disk/layer_posix.c: files, names, links that lead out, the lock. */
#include "tests/tools/testing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "volume/store/disk/layer.h"

#define LARGE (3u << 20)

static char *folder;
static struct store_layer *layer;

static void setup(void)
{
	folder = test_folder();
	ck_assert_int_eq(store_layer_posix(folder, &layer), 0);
}

static void teardown(void)
{
	char *command;

	layer->ops->destroy(layer);
	ck_assert_int_gt(asprintf(&command, "rm -rf '%s'", folder), 0);
	ck_assert_int_eq(system(command), 0);
	free(command);
	free(folder);
}

static char *path_of(const char *name)
{
	char *path;

	ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
	return path;
}

static struct store_file *open_file(const char *path, unsigned flags)
{
	struct store_file *file;

	ck_assert_int_eq(layer->ops->open(layer, path, flags, &file), 0);
	return file;
}

static int open_result(const char *path, unsigned flags)
{
	struct store_file *file;
	int rc = layer->ops->open(layer, path, flags, &file);

	if (rc == 0)
		layer->ops->close(file);
	return rc;
}

static void put(struct store_file *file, const void *bytes, size_t length, uint64_t offset)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, length};

	ck_assert_int_eq(layer->ops->pwritev(file, &iov, 1, offset), (ssize_t)length);
}

static ssize_t get(struct store_file *file, void *bytes, size_t length, uint64_t offset)
{
	struct iovec iov = {bytes, length};

	return layer->ops->preadv(file, &iov, 1, offset, false);
}

START_TEST(files)
{
	struct store_file *file;
	uint64_t size;
	char text[64];

	setup();
	ck_assert_int_eq(open_result("a", 0), -ENOENT);
	ck_assert_int_eq(open_result("a", STORE_OPEN_WRITE), -ENOENT);
	file = open_file("a", STORE_OPEN_WRITE | STORE_OPEN_CREATE | STORE_OPEN_EXCLUSIVE);
	ck_assert_int_eq(
		open_result("a", STORE_OPEN_WRITE | STORE_OPEN_CREATE | STORE_OPEN_EXCLUSIVE),
		-EEXIST);
	ck_assert_int_eq(open_result("a", STORE_OPEN_WRITE | STORE_OPEN_CREATE), 0);
	put(file, "hello", 5, 0);
	put(file, "world", 5, 10);
	ck_assert_int_eq(layer->ops->sync(file), 0);
	ck_assert_int_eq(layer->ops->size(file, &size), 0);
	ck_assert_uint_eq(size, 15);
	ck_assert_int_eq(get(file, text, sizeof(text), 0), 15);
	ck_assert_mem_eq(text, "hello\0\0\0\0\0world", 15);
	ck_assert_int_eq(get(file, text, sizeof(text), 15), 0);
	ck_assert_int_eq(get(file, text, 3, 11), 3);
	ck_assert_mem_eq(text, "orl", 3);
	ck_assert_int_eq(layer->ops->truncate(file, 7), 0);
	ck_assert_int_eq(layer->ops->size(file, &size), 0);
	ck_assert_uint_eq(size, 7);
	ck_assert_int_eq(layer->ops->will_need(file, 0, 7), 0);

	int rc = layer->ops->punch(file, 0, 3);

	ck_assert(rc == 0 || rc == -EOPNOTSUPP);
	ck_assert_int_eq(layer->ops->size(file, &size), 0);
	ck_assert_uint_eq(size, 7);
	if (rc == 0) {
		ck_assert_int_eq(get(file, text, 5, 0), 5);
		ck_assert_mem_eq(text, "\0\0\0lo", 5);
	}
	layer->ops->close(file);

	/* Read-only. */
	struct iovec iov = {text, 1};

	file = open_file("a", 0);
	ck_assert_int_eq(layer->ops->pwritev(file, &iov, 1, 0), -EBADF);
	layer->ops->close(file);

	/* For this user alone. */
	char *path = path_of("a");
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 077, 0);
	free(path);
	teardown();
}
END_TEST

/* More buffers than one system call takes, empty ones among them. */
START_TEST(many_buffers)
{
	static uint8_t out[LARGE], in[LARGE];
	static struct iovec iov[5000];
	struct store_file *file;
	size_t at = 0;

	setup();
	for (size_t i = 0; i < LARGE; i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t i = 0; i < 5000; i++) {
		size_t n = i == 4999 ? LARGE - at : i % 5 == 0 ? 0 : i * 37 % 600;

		iov[i] = (struct iovec){out + at, n};
		at += n;
	}
	file = open_file("b", STORE_OPEN_WRITE | STORE_OPEN_CREATE);
	ck_assert_int_eq(layer->ops->pwritev(file, iov, 5000, 3), LARGE);
	for (size_t i = 0; i < 5000; i++)
		iov[i].iov_base = in + ((uint8_t *)iov[i].iov_base - out);
	ck_assert_int_eq(layer->ops->preadv(file, iov, 5000, 3, false), LARGE);
	ck_assert(memcmp(in, out, LARGE) == 0);
	memset(in, 0, LARGE);
	ck_assert_int_eq(layer->ops->preadv(file, iov, 5000, 1003, false), LARGE - 1000);
	ck_assert(memcmp(in, out + 1000, LARGE - 1000) == 0);
	ck_assert_int_eq(layer->ops->preadv(file, iov, 0, 0, false), 0);

	/* From memory alone: the right bytes, perhaps fewer, or none. */
	memset(in, 0, LARGE);
	ssize_t n = layer->ops->preadv(file, iov, 5000, 3, true);

	ck_assert(n == -EAGAIN || (n > 0 && memcmp(in, out, (size_t)n) == 0));
	layer->ops->close(file);
	teardown();
}
END_TEST

/* A limit on the size of files makes the second half of a write fail: an error, no short count. */
START_TEST(write_fails)
{
	static uint8_t bytes[LARGE];
	struct iovec iov = {bytes, LARGE};
	struct rlimit limit = {LARGE / 2, LARGE};
	struct store_file *file;

	setup();
	file = open_file("c", STORE_OPEN_WRITE | STORE_OPEN_CREATE);
	signal(SIGXFSZ, SIG_IGN);
	asserts_unrecorded();
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(layer->ops->pwritev(file, &iov, 1, 0), -EFBIG);
	layer->ops->close(file);
	teardown();
}
END_TEST

struct names {
	unsigned files, directories;
	char last[64];
	int stop;
};

static int note(void *arg, const char *name, bool directory)
{
	struct names *names = arg;

	if (directory)
		names->directories++;
	else
		names->files++;
	snprintf(names->last, sizeof(names->last), "%s", name);
	return names->stop;
}

START_TEST(names)
{
	struct names seen = {0};

	setup();
	ck_assert_int_eq(layer->ops->mkdir(layer, "d"), 0);
	ck_assert_int_eq(layer->ops->mkdir(layer, "d"), -EEXIST);
	ck_assert_int_eq(layer->ops->mkdir(layer, "d/e"), 0);
	ck_assert_int_eq(layer->ops->mkdir(layer, "x/y"), -ENOENT);
	ck_assert_int_eq(open_result("d/f", STORE_OPEN_WRITE | STORE_OPEN_CREATE), 0);
	ck_assert_int_eq(layer->ops->sync_dir(layer, "d"), 0);
	ck_assert_int_eq(layer->ops->sync_dir(layer, "."), 0);
	ck_assert_int_eq(layer->ops->sync_dir(layer, "x"), -ENOENT);
	ck_assert_int_eq(layer->ops->rename(layer, "d/f", "d/e/g"), 0);
	ck_assert_int_eq(layer->ops->rename(layer, "d/f", "d/e/g"), -ENOENT);
	ck_assert_int_eq(open_result("d/h", STORE_OPEN_WRITE | STORE_OPEN_CREATE), 0);
	ck_assert_int_eq(layer->ops->list(layer, "d", note, &seen), 0);
	ck_assert_uint_eq(seen.files, 1);
	ck_assert_uint_eq(seen.directories, 1);
	seen = (struct names){.stop = 77};
	ck_assert_int_eq(layer->ops->list(layer, "d", note, &seen), 77);
	ck_assert_uint_eq(seen.files + seen.directories, 1);
	ck_assert_int_eq(layer->ops->list(layer, "x", note, &seen), -ENOENT);
	ck_assert_int_eq(layer->ops->rmdir(layer, "d/e"), -ENOTEMPTY);
	ck_assert_int_eq(layer->ops->unlink(layer, "d/e/g"), 0);
	ck_assert_int_eq(layer->ops->unlink(layer, "d/e/g"), -ENOENT);
	ck_assert_int_eq(layer->ops->rmdir(layer, "d/e"), 0);
	teardown();
}
END_TEST

/* Nothing leads out of the directory, neither names nor links. */
START_TEST(outside)
{
	char *link, *through;
	struct store_layer *other;

	setup();
	static const char *const bad[] = {"..", "../x", "a/../../x", "/etc/passwd", "a/..", ""};

	ck_assert_int_eq(layer->ops->mkdir(layer, "a"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(open_result(bad[i], 0), -EINVAL);
		ck_assert_int_eq(layer->ops->unlink(layer, bad[i]), -EINVAL);
		ck_assert_int_eq(layer->ops->mkdir(layer, bad[i]), -EINVAL);
		ck_assert_int_eq(layer->ops->rmdir(layer, bad[i]), -EINVAL);
		ck_assert_int_eq(layer->ops->rename(layer, bad[i], "z"), -EINVAL);
		ck_assert_int_eq(layer->ops->rename(layer, "z", bad[i]), -EINVAL);
		ck_assert_int_eq(layer->ops->sync_dir(layer, bad[i]), -EINVAL);
	}
	ck_assert_int_eq(open_result("a/..x", STORE_OPEN_WRITE | STORE_OPEN_CREATE), 0);
	link = path_of("link");
	ck_assert_int_eq(symlink("/etc/passwd", link), 0);
	ck_assert_int_eq(open_result("link", 0), -ELOOP);
	through = path_of("through");
	ck_assert_int_eq(symlink("a", through), 0);
	ck_assert_int_eq(layer->ops->sync_dir(layer, "through") < 0, 1);

	/* The directory itself: no link, and nobody else may use it. */
	ck_assert_int_lt(store_layer_posix(through, &other), 0);
	ck_assert_int_lt(store_layer_posix(link, &other), 0);
	ck_assert_int_eq(chmod(folder, 0750), 0);
	ck_assert_int_eq(store_layer_posix(folder, &other), -EPERM);
	ck_assert_int_eq(chmod(folder, 0700), 0);
	ck_assert_int_eq(store_layer_posix("/nonexistent/folder", &other), -ENOENT);
	free(link);
	free(through);
	teardown();
}
END_TEST

/* Space that is taken ahead does not change the length, and a cut gives it back. */
START_TEST(space_ahead)
{
	struct store_file *file;
	struct stat st;
	uint64_t size;
	char *path;
	int rc;

	setup();
	path = path_of("a");
	file = open_file("a", STORE_OPEN_WRITE | STORE_OPEN_CREATE);
	put(file, "hello", 5, 0);
	rc = layer->ops->allocate(file, 5, LARGE);
	ck_assert(rc == 0 || rc == -EOPNOTSUPP);
	ck_assert_int_eq(layer->ops->size(file, &size), 0);
	ck_assert_uint_eq(size, 5);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert(rc || st.st_blocks >= LARGE / 512);
	ck_assert_int_eq(layer->ops->truncate(file, 5), 0);
	ck_assert_int_eq(layer->ops->sync(file), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_lt(st.st_blocks, LARGE / 512);
	layer->ops->close(file);
	free(path);
	teardown();
}
END_TEST

/* The result of another process that locks the same directory. */
static int lock_elsewhere(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct store_layer *other;
		int rc = store_layer_posix(folder, &other);

		if (rc == 0)
			rc = other->ops->lock(other, "lock");
		_exit(-rc);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

START_TEST(locking)
{
	struct store_layer *other;

	setup();
	ck_assert_int_eq(lock_elsewhere(), 0);
	ck_assert_int_eq(layer->ops->lock(layer, "lock"), 0);
	ck_assert_int_eq(lock_elsewhere(), -EBUSY);
	/* A second store of this process, which then gives up, takes nothing away. */
	ck_assert_int_eq(store_layer_posix(folder, &other), 0);
	ck_assert_int_eq(other->ops->lock(other, "lock"), -EBUSY);
	other->ops->destroy(other);
	ck_assert_int_eq(lock_elsewhere(), -EBUSY);
	layer->ops->destroy(layer);
	ck_assert_int_eq(lock_elsewhere(), 0);
	ck_assert_int_eq(store_layer_posix(folder, &layer), 0);
	ck_assert_int_eq(layer->ops->lock(layer, "lock"), 0);
	teardown();
}
END_TEST

START_TEST(machine)
{
	uint64_t available, total;
	char id[64], again[64];

	setup();
	ck_assert_int_eq(layer->ops->space(layer, &available, &total), 0);
	ck_assert_uint_gt(total, 0);
	ck_assert_uint_le(available, total);
	ck_assert_int_eq(layer->ops->boot(layer, id), 0);
	ck_assert_int_eq(layer->ops->boot(layer, again), 0);
	ck_assert_str_eq(id, again);
	ck_assert_uint_eq(strlen(id), 36);
	teardown();
}
END_TEST

TEST_MAIN("layer_posix", files, many_buffers, write_fails, names, outside, space_ahead, locking,
	  machine)
