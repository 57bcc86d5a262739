/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of layer_posix.c: no path leaves the tree, with either method of resolving. */
#include "tests/fileserver/fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static struct export_layer *layer;
static char *root;

static void setup(unsigned flags)
{
	root = tree_make();
	tree_text(root, "file", "hello");
	tree_dir(root, "sub", 0755);
	tree_text(root, "sub/inner", "inner");
	tree_link(root, "out", "/etc");
	tree_link(root, "passwd", "/etc/passwd");
	tree_link(root, "up", "..");
	tree_link(root, "sub/back", "../file");
	tree_link(root, "loop", "loop");
	ck_assert_int_eq(export_layer_posix(root, flags, &layer), 0);
}

static void teardown(void)
{
	layer->ops->destroy(layer);
	tree_remove(root);
}

static ssize_t read_all(const char *path, char *text, size_t size)
{
	struct iovec iov = {text, size};
	struct export_file *file;
	int rc = layer->ops->open(layer, path, &file);

	if (rc)
		return rc;
	ssize_t n = layer->ops->preadv(file, &iov, 1, 0, 0);

	layer->ops->close(file);
	return n;
}

static const unsigned ways[] = {0, EXPORT_LAYER_WALK};

START_TEST(reads_files)
{
	char text[16];
	struct export_stat st;

	setup(ways[_i]);
	ck_assert_int_eq(read_all("file", text, sizeof(text)), 5);
	ck_assert_mem_eq(text, "hello", 5);
	ck_assert_int_eq(read_all("sub/inner", text, sizeof(text)), 5);
	ck_assert_int_eq(layer->ops->stat_path(layer, "sub", &st), 0);
	ck_assert_int_eq(st.kind, STORE_DIR);
	ck_assert_int_eq(layer->ops->stat_path(layer, "", &st), 0);
	ck_assert_int_eq(st.kind, STORE_DIR);
	ck_assert_int_eq(layer->ops->stat_path(layer, "sub/none", &st), -ENOENT);
	ck_assert_int_eq(layer->ops->stat_path(layer, "file/x", &st), -ENOTDIR);
	teardown();
}
END_TEST

START_TEST(links_not_followed)
{
	char text[64];
	struct export_stat st;
	ssize_t n;

	setup(ways[_i]);
	ck_assert_int_lt(read_all("passwd", text, sizeof(text)), 0);
	ck_assert_int_lt(read_all("out/passwd", text, sizeof(text)), 0);
	ck_assert_int_lt(read_all("up/anything", text, sizeof(text)), 0);
	ck_assert_int_lt(read_all("sub/back", text, sizeof(text)), 0);
	ck_assert_int_lt(layer->ops->stat_path(layer, "out/passwd", &st), 0);
	ck_assert_int_lt(layer->ops->stat_path(layer, "loop/x", &st), 0);
	ck_assert_int_eq(layer->ops->stat_path(layer, "passwd", &st), 0);
	ck_assert_int_eq(st.kind, STORE_SYMLINK);
	n = layer->ops->readlink(layer, "passwd", text, sizeof(text));
	ck_assert_int_eq(n, 11);
	ck_assert_mem_eq(text, "/etc/passwd", 11);
	ck_assert_int_lt(layer->ops->readlink(layer, "out/mtab", text, sizeof(text)), 0);
	teardown();
}
END_TEST

START_TEST(dots_stay_inside)
{
	static const char *const bad[] = {"../etc/passwd", "sub/../../etc/passwd", "..",
					  "/etc/passwd", "sub//../..//etc/passwd"};
	struct export_stat st;
	char text[64];

	setup(ways[_i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(read_all(bad[i], text, sizeof(text)) < 0, "read %s", bad[i]);
		ck_assert_msg(layer->ops->stat_path(layer, bad[i], &st) < 0, "saw %s", bad[i]);
	}
	teardown();
}
END_TEST

struct names {
	unsigned files, dirs, links, others;
};

static int count_name(void *arg, const char *name, size_t length, enum store_kind kind,
		      uint64_t inode)
{
	struct names *names = arg;

	ck_assert_uint_eq(strlen(name), length);
	ck_assert_uint_ne(inode, 0);
	names->files += kind == STORE_FILE;
	names->dirs += kind == STORE_DIR;
	names->links += kind == STORE_SYMLINK;
	names->others += kind == EXPORT_OTHER;
	return 0;
}

START_TEST(only_files_are_opened)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct names names = {0};
	struct export_file *file;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	setup(ways[_i]);
	ck_assert_int_eq(mkfifo(tree_path(root, "fifo"), 0666), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/sock", root);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	/* neither waits for a writer nor succeeds */
	ck_assert_int_eq(layer->ops->open(layer, "fifo", &file), -EINVAL);
	ck_assert_int_lt(layer->ops->open(layer, "sock", &file), 0);
	ck_assert_int_eq(layer->ops->list(layer, "", count_name, &names), 0);
	ck_assert_uint_eq(names.files, 1);
	ck_assert_uint_eq(names.dirs, 1);
	ck_assert_uint_eq(names.links, 4);
	ck_assert_uint_eq(names.others, 2);
	ck_assert_int_lt(layer->ops->list(layer, "up", count_name, &names), 0);
	ck_assert_int_lt(layer->ops->list(layer, "file", count_name, &names), 0);
	close(fd);
	teardown();
}
END_TEST

/*
 * Another process keeps replacing a directory by a link to another folder: that folder must never
 * be read.
 */
struct swapper {
	pthread_t thread;
	_Atomic int stop;
};

static void *swap(void *arg)
{
	struct swapper *s = arg;
	char dir[4096], aside[4096];

	snprintf(dir, sizeof(dir), "%s/swap", root);
	snprintf(aside, sizeof(aside), "%s/aside", root);
	while (!s->stop) {
		ck_assert_int_eq(rename(dir, aside), 0);
		ck_assert_int_eq(symlink("elsewhere", dir), 0);
		ck_assert_int_eq(unlink(dir), 0);
		ck_assert_int_eq(rename(aside, dir), 0);
	}
	return NULL;
}

START_TEST(races_stay_inside)
{
	struct swapper s = {.stop = 0};
	unsigned seen = 0, refused = 0;
	char text[16];

	setup(ways[_i]);
	tree_dir(root, "swap", 0755);
	tree_text(root, "swap/f", "right");
	tree_dir(root, "elsewhere", 0755);
	tree_text(root, "elsewhere/f", "WRONG");
	pthread_create(&s.thread, NULL, swap, &s);
	for (int i = 0; i < 20000; i++) {
		ssize_t n = read_all("swap/f", text, sizeof(text));

		if (n < 0) {
			refused++;
			continue;
		}
		ck_assert_int_eq(n, 5);
		ck_assert_mem_eq(text, "right", 5);
		seen++;
	}
	s.stop = 1;
	pthread_join(s.thread, NULL);
	ck_assert_uint_gt(seen + refused, 0);
	teardown();
}
END_TEST

/*
 * A file system mounted inside the tree is left out. Runs in its own namespaces, where permitted.
 */
static bool write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool become_root_inside(void)
{
	char uid[64], gid[64];

	snprintf(uid, sizeof(uid), "0 %u 1", (unsigned)getuid());
	snprintf(gid, sizeof(gid), "0 %u 1", (unsigned)getgid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       write_map("/proc/self/setgroups", "deny") && write_map("/proc/self/uid_map", uid) &&
	       write_map("/proc/self/gid_map", gid);
}

static int in_namespace(unsigned flags)
{
	struct names names = {0};
	struct export_stat st;

	if (unshare(CLONE_NEWNS) < 0 && !become_root_inside())
		return 77;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", tree_path(root, "sub"), "tmpfs", 0, NULL) < 0)
		return 77;
	tree_text(root, "sub/inner", "other file system");
	layer->ops->destroy(layer);
	if (export_layer_posix(root, flags, &layer))
		return 1;
	if (layer->ops->stat_path(layer, "sub", &st) != -EXDEV)
		return 2;
	if (layer->ops->stat_path(layer, "sub/inner", &st) != -EXDEV)
		return 3;
	if (layer->ops->list(layer, "", count_name, &names) || names.dirs != 0)
		return 4;
	return 0;
}

START_TEST(mounts_left_out)
{
	int status;
	pid_t pid;

	setup(ways[_i]);
	pid = fork();
	if (pid == 0)
		_exit(in_namespace(ways[_i]));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("mounts_left_out: mount namespaces are not available, not tested\n");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	teardown();
}
END_TEST

START_TEST(cached_reads)
{
	char text[16];
	struct iovec iov[2] = {{text, 2}, {text + 2, 10}};
	struct export_file *file;
	ssize_t n;

	setup(0);
	ck_assert_int_eq(layer->ops->open(layer, "file", &file), 0);
	n = layer->ops->preadv(file, iov, 2, 0, STORE_CACHED);
	ck_assert(n == 5 || n == -EAGAIN);
	ck_assert_int_eq(layer->ops->preadv(file, iov, 2, 5, 0), 0);
	ck_assert_int_eq(layer->ops->preadv(file, iov, 2, 1ull << 40, 0), 0);
	layer->ops->close(file);
	teardown();
}
END_TEST

START_TEST(no_such_root)
{
	struct export_layer *none;

	ck_assert_int_eq(export_layer_posix("/nonexistent/place", 0, &none), -ENOENT);
	ck_assert_int_eq(export_layer_posix("/etc/passwd", 0, &none), -ENOTDIR);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file layer");
	TCase *tcase = tcase_create("file layer");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, reads_files, 0, 2);
	tcase_add_loop_test(tcase, links_not_followed, 0, 2);
	tcase_add_loop_test(tcase, dots_stay_inside, 0, 2);
	tcase_add_loop_test(tcase, only_files_are_opened, 0, 2);
	tcase_add_loop_test(tcase, races_stay_inside, 0, 2);
	tcase_add_loop_test(tcase, mounts_left_out, 0, 2);
	tcase_add_test(tcase, cached_reads);
	tcase_add_test(tcase, no_such_root);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
