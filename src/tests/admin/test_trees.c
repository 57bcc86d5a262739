/* SPDX-License-Identifier: BSD-2-Clause */
/* import and export: limits, interruptions, trees that others change, names of any bytes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin/private.h"
#include "tests/admin/fixture.h"
#include "volume/store/transfer.h"

#define IMPORT "{\"command\": \"import\", \"volume\": \"v\"}"
#define EXPORT "{\"command\": \"export\", \"volume\": \"v\"}"

static void begin(struct fixture *f)
{
	fixture_open(f);
	fixture_do(f, "{\"command\": \"create\", \"name\": \"v\", \"id\": 77}");
}

static void end(struct fixture *f)
{
	fixture_do(f, "{\"command\": \"check\"}");
	fixture_close(f);
}

static uint64_t count(const json_t *result, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(result, name));
}

START_TEST(interrupted)
{
	struct fixture f;
	const char *tree;

	begin(&f);
	tree = fixture_directory(&f, "tree");
	fixture_shell("cd '%s' && seq 500 | xargs touch && head -c 5000000 /dev/zero > 000", tree);
	/* Within the first file, which does not stay, and between files. */
	for (unsigned i = 2; i < 300; i += 99) {
		f.stop_after = i;
		ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
		ck_assert_str_eq(json_string_value(json_object_get(f.last, "error")),
				 "interrupted");
		f.stop_after = 0;
		fixture_do(&f, "{\"command\": \"check\"}");
	}
	f.stop_after = 10;
	fixture_directory(&f, "back");
	fixture_refuses(&f, 1, "interrupted", EXPORT);
	f.stop_after = 1;
	fixture_refuses(&f, 1, "interrupted", "{\"command\": \"check\"}");
	ck_assert_uint_eq(f.faults, 0);
	f.stop_after = 0;
	fixture_do(&f, "{\"command\": \"check\"}");
	end(&f);
}
END_TEST

/* A file with some bytes after each of `count` holes. */
static void make_holes(int dir, const char *name, int count, off_t distance, off_t length)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	for (int i = 1; i <= count; i++)
		ck_assert_int_eq(pwrite(fd, name, 3, i * distance), 3);
	ck_assert_int_eq(ftruncate(fd, length), 0);
	close(fd);
}

/* Contents, modes, and of files the times and numbers of names. */
#define SAME_TREES                                                                           \
	"cd '%s' && diff -r --no-dereference tree back && for t in tree back; do (cd $t && " \
	"find . -type f -printf '%%m %%n %%T@ %%p\\n' -o -printf '%%m %%p %%l\\n' | "        \
	"sed 's/\\.[0-9]* / /' | sort > ../$t.list) || exit; done && cmp tree.list back.list"

/*
 * An import is killed at many points: within a file of many pieces, one of several MiB, and empty ones with several
 * names. The next import completes the files without a message, so repeated imports end with all of them.
 */
START_TEST(killed)
{
	struct fixture f;
	const char *tree;
	unsigned kills = 0;

	begin(&f);
	tree = fixture_directory(&f, "tree");
	fixture_shell(
		"cd '%s' && mkdir d && seq -f d/%%g 20 | xargs touch && seq 900000 > large && "
		"seq 5 > small && ln small small-too && touch -d @1000000000.25 small && "
		"ln -s small link && touch sticky && chmod 1644 sticky && chmod 400 large",
		tree);
	make_holes(f.directory, "holes", 20, 3000000, 70000000);
	while (fixture_kill(&f, ++kills, IMPORT)) {
		if (kills % 5 == 0)
			fixture_do(&f, "{\"command\": \"check\"}");
		if (kills % 9)
			continue;
		/* From the beginning again, so that a file is interrupted at each of its pieces. */
		fixture_do(&f, "{\"command\": \"remove\", \"volume\": \"v\"}");
		fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
		fixture_kill(&f, kills, IMPORT);
		fixture_do(&f, IMPORT);
		fixture_directory(&f, "back");
		fixture_do(&f, EXPORT);
		fixture_shell(SAME_TREES " && rm -r back", f.folder);
		fixture_directory(&f, "tree");
		fixture_do(&f, "{\"command\": \"remove\", \"volume\": \"v\"}");
		fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	}
	ck_assert_uint_gt(kills, 20);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell(SAME_TREES, f.folder);
	end(&f);
}
END_TEST

#define REPLACE "{\"command\": \"import\", \"volume\": \"v\", \"update\": true}"

/* An update of files that have holes, or several names, is killed at many points: each has its old bytes, or its new ones. */
START_TEST(killed_update)
{
	struct fixture f;
	unsigned kills = 0;

	begin(&f);
	fixture_directory(&f, "tree");
	make_holes(f.directory, "holes", 6, 3000000, 21000000);
	fixture_shell("cd '%s/tree' && seq 5 > one && ln one two && touch -d @1000000000 *",
		      f.folder);
	fixture_do(&f, IMPORT);
	fixture_shell("cd '%s' && cp -a tree old && rm tree/holes && seq 6 > tree/one && "
		      "touch -d @1100000000 tree/one",
		      f.folder);
	fixture_directory(&f, "tree");
	make_holes(f.directory, "holes", 5, 3500000, 22000000);
	while (fixture_kill(&f, ++kills, REPLACE)) {
		fixture_directory(&f, "back");
		fixture_do(&f, EXPORT);
		fixture_shell("cd '%s' && for i in holes one two; do cmp -s back/$i old/$i || "
			      "cmp back/$i tree/$i || exit; done; rm -r back",
			      f.folder);
		fixture_directory(&f, "tree");
	}
	ck_assert_uint_gt(kills, 5);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell(SAME_TREES " && [ $(du -k back/holes | cut -f1) -lt 2000 ]", f.folder);
	fixture_do(&f, "{\"command\": \"check\"}");
	end(&f);
}
END_TEST

/* A file of the same size and time as its source is neither read nor reported; one that differs stays. */
START_TEST(there_already)
{
	struct fixture f;
	const json_t *result;

	begin(&f);
	fixture_shell("cd '%s' && mkdir d && echo one > d/one && echo two > two && ln two too && "
		      "ln -s two link && echo three > three && touch empty",
		      fixture_directory(&f, "tree"));
	fixture_do(&f, IMPORT);
	result = fixture_do(&f, IMPORT);
	ck_assert_uint_eq(f.skipped, 0);
	ck_assert_uint_eq(count(result, "unchanged"), 6);
	ck_assert_uint_eq(count(result, "objects"), 0);
	ck_assert_uint_eq(count(result, "bytes"), 0);
	/* Another size, another time, another text, another kind; and a new name of an old file. */
	fixture_shell("cd '%s/tree' && echo more >> three && touch -d @1000000000 empty && "
		      "ln -sf one link && rm d/one && mkdir d/one && ln two zzz",
		      f.folder);
	ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
	result = json_object_get(f.last, "result");
	ck_assert_uint_eq(f.skipped, 4);
	ck_assert_str_eq(
		f.reason,
		"exists in the volume already, and is not the same; remove it there first");
	ck_assert_uint_eq(count(result, "objects"), 1);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell(
		"cd '%s/back' && test \"$(cat d/one three)\" = \"$(printf 'one\\nthree')\" && "
		"test \"$(readlink link)\" = two && test \"$(stat -c %%h zzz)\" = 3",
		f.folder);
	end(&f);
}
END_TEST

START_TEST(progress)
{
	struct fixture f;
	const char *tree;

	begin(&f);
	tree = fixture_directory(&f, "tree");
	fixture_shell("cd '%s' && head -c 3000000 /dev/zero > a", tree);
	fixture_do(&f, IMPORT);
	ck_assert_uint_eq(f.progress, 0);
	fixture_do(
		&f,
		"{\"command\": \"import\", \"volume\": \"v\", \"path\": \"again\", \"progress\": true}");
	ck_assert_uint_ge(f.progress, 1);
	fixture_do(&f, "{\"command\": \"check\"}");
	ck_assert_uint_eq(f.progress, 0);
	fixture_do(&f, "{\"command\": \"check\", \"progress\": true}");
	ck_assert_uint_ge(f.progress, 1);
	end(&f);
}
END_TEST

/* All that is imported belongs to --owner: also what has no content, and links. */
START_TEST(owners)
{
	static const char *const names[] = {"empty", "file", "link", "dir"};
	struct store_volume about;
	struct store_status status;
	struct store_fid top, fid;
	struct fixture f;

	begin(&f);
	fixture_shell("cd '%s' && touch empty && echo x > file && ln -s file link && mkdir dir && "
		      "chmod 644 empty file",
		      fixture_directory(&f, "tree"));
	fixture_do(&f, "{\"command\": \"import\", \"volume\": \"v\", \"owner\": \"33\"}");
	ck_assert_int_eq(f.store->ops->volume_by_name(f.store, "v", &about), 0);
	top = (struct store_fid){about.id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(admin_lookup(f.store, &top, names[i], &fid), 0);
		ck_assert_int_eq(f.store->ops->status(f.store, &admin_caller, &fid, &status), 0);
		ck_assert_msg(status.owner == 33, "%s: %d", names[i], (int)status.owner);
	}
	end(&f);
}
END_TEST

static uint32_t mode_in(struct fixture *f, const char *name)
{
	struct store_volume about;
	struct store_status status;
	struct store_fid top, fid;

	ck_assert_int_eq(f->store->ops->volume_by_name(f->store, "v", &about), 0);
	top = (struct store_fid){about.id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	ck_assert_int_eq(admin_lookup(f->store, &top, name, &fid), 0);
	ck_assert_int_eq(f->store->ops->status(f->store, &admin_caller, &fid, &status), 0);
	return status.mode;
}

/* They would be given to another owner: in the volume unless the request says to whom, and here unless it asks for them. */
START_TEST(set_id)
{
	struct fixture f;

	begin(&f);
	fixture_shell(
		"cd '%s' && echo x > file && touch empty && mkdir dir && chmod 4755 file && chmod 6755 empty && "
		"chmod 2755 dir",
		fixture_directory(&f, "tree"));
	ck_assert_uint_eq(count(fixture_do(&f, IMPORT), "cleared"), 3);
	ck_assert_uint_eq(mode_in(&f, "file"), 0755);
	ck_assert_uint_eq(mode_in(&f, "empty"), 0755);
	ck_assert_uint_eq(mode_in(&f, "dir"), 0755);
	fixture_do(&f, "{\"command\": \"remove\", \"volume\": \"v\"}");
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	ck_assert_uint_eq(
		count(fixture_do(&f,
				 "{\"command\": \"import\", \"volume\": \"v\", \"owner\": \"%u\"}",
				 (unsigned)geteuid()),
		      "cleared"),
		0);
	ck_assert_uint_eq(mode_in(&f, "file"), 04755);
	ck_assert_uint_eq(mode_in(&f, "empty"), 06755);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell(
		"cd '%s/back' && test \"$(stat -c %%a file empty dir | tr '\\n' ' ')\" = '755 755 755 '",
		f.folder);
	fixture_directory(&f, "again");
	fixture_do(&f, "{\"command\": \"export\", \"volume\": \"v\", \"set_id\": true}");
	fixture_shell(
		"cd '%s/again' && test \"$(stat -c %%a file empty dir | tr '\\n' ' ')\" = '4755 6755 2755 '",
		f.folder);
	end(&f);
}
END_TEST

/* A user's file of mode 0 and time 0 is no remains of an import. */
START_TEST(not_unfinished)
{
	const struct store_set set = {.mask = STORE_SET_MODE | STORE_SET_MTIME};
	struct store_changes changes = {0};
	struct store_volume about;
	struct store_status status;
	struct store_fid top, fid;
	struct fixture f;

	begin(&f);
	fixture_shell("cd '%s' && echo first > file", fixture_directory(&f, "tree"));
	fixture_do(&f, IMPORT);
	ck_assert_int_eq(f.store->ops->volume_by_name(f.store, "v", &about), 0);
	top = (struct store_fid){about.id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	ck_assert_int_eq(admin_lookup(f.store, &top, "file", &fid), 0);
	ck_assert_int_eq(
		f.store->ops->set_status(f.store, &admin_caller, &fid, &set, &status, &changes), 0);
	fixture_shell("echo second > '%s/tree/file'", f.folder);
	ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
	ck_assert_uint_eq(f.skipped, 1);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell("chmod 600 '%s/back/file' && test \"$(cat '%s/back/file')\" = first",
		      f.folder, f.folder);
	end(&f);
}
END_TEST

/* A file that is written while it is read would be stored in a state that it never had. */
START_TEST(changing)
{
	struct fixture f;
	char path[160];

	begin(&f);
	fixture_shell("cd '%s' && head -c 5000000 /dev/zero > file && touch -d @1000000000 file",
		      fixture_directory(&f, "tree"));
	snprintf(path, sizeof(path), "%s/tree/file", f.folder);
	f.touched = path;
	ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
	ck_assert_str_eq(f.reason, "changed while it was read; import again");
	f.touched = NULL;
	ck_assert_uint_eq(count(fixture_do(&f, IMPORT), "objects"), 1);
	end(&f);
}
END_TEST

/* Files of /proc say that they are empty. */
START_TEST(unsized)
{
	struct fixture f;
	int proc = open("/proc/sys/kernel/random", O_RDONLY | O_DIRECTORY);

	if (proc < 0)
		return;
	begin(&f);
	fixture_directory(&f, "tree");
	ck_assert_int_ge(dup2(proc, f.directory), 0);
	close(proc);
	fixture_ask(&f, IMPORT);
	ck_assert_uint_gt(count(json_object_get(f.last, "result"), "bytes"), 36);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell("cmp /proc/sys/kernel/random/boot_id '%s/back/boot_id'", f.folder);
	end(&f);
}
END_TEST

/* Holes beyond the number that one file may have are filled, and the content is the same. */
START_TEST(many_holes)
{
	struct fixture f;
	struct stat st;
	char path[160];

	begin(&f);
	fixture_directory(&f, "tree");
	make_holes(f.directory, "holes", 1000, 20000, 30000000);
	make_holes(f.directory, "one", 1, 9000000, 10000000);
	make_holes(f.directory, "far", 300, 1000000, 300000001);
	ck_assert_uint_eq(count(fixture_do(&f, IMPORT), "objects"), 3);
	/* Holes that are worth it take no space. */
	fixture_shell("test $(du -sk '%s/store' | cut -f 1) -lt 100000", f.folder);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell("cd '%s' && cmp tree/holes back/holes && cmp tree/one back/one && "
		      "cmp tree/far back/far",
		      f.folder);
	snprintf(path, sizeof(path), "%s/back/one", f.folder);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_lt(st.st_blocks, 1000);
	end(&f);
}
END_TEST

/* A directory of a volume takes about 7,000 names of 240 bytes: the rest is counted, and the import goes on. */
START_TEST(too_many_names)
{
	struct fixture f;
	const json_t *result;

	begin(&f);
	fixture_shell(
		"cd '%s' && mkdir big z && echo x > z/file && cd big && seq -f %%0240.0f 10000 | xargs touch",
		fixture_directory(&f, "tree"));
	ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
	result = json_object_get(f.last, "result");
	ck_assert_uint_gt(count(result, "objects"), 6000);
	ck_assert_uint_eq(count(result, "objects") + count(result, "skipped"), 10003);
	ck_assert_uint_eq(f.skipped, 2);
	ck_assert(strstr(f.reason, "more names do not fit") != NULL);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	fixture_shell("cmp '%s/tree/z/file' '%s/back/z/file'", f.folder, f.folder);
	end(&f);
}
END_TEST

/* Links that lead out of the directory are not followed, neither in the tree nor at the place of export. */
START_TEST(outside)
{
	struct fixture f;
	struct stat st;
	char path[160];

	begin(&f);
	fixture_shell(
		"cd '%s' && mkdir ../outside && ln -s ../outside out && mkdir in && echo x > in/file",
		fixture_directory(&f, "tree"));
	fixture_do(&f, IMPORT);
	fixture_shell("cd '%s' && ln -s ../outside in", fixture_directory(&f, "back"));
	ck_assert_int_eq(fixture_ask(&f, EXPORT), 1);
	snprintf(path, sizeof(path), "%s/outside/file", f.folder);
	ck_assert(lstat(path, &st) < 0 && errno == ENOENT);
	end(&f);
}
END_TEST

#define UPDATE "{\"command\": \"import\", \"volume\": \"v\", \"update\": true, \"delete\": true}"

/* Mount points stay where an update removes or replaces the directories above them, and the rest goes. */
START_TEST(mount_points_stay)
{
	static const char *const mounts[] = {"m", "gone/m", "gone/deep/m", "kept/m", "file/m"};
	struct fixture f;
	const char *tree;

	begin(&f);
	tree = fixture_directory(&f, "tree");
	fixture_shell("cd '%s' && mkdir -p gone/deep kept file plain/deep && "
		      "touch gone/x gone/deep/x file/x plain/deep/x",
		      tree);
	fixture_do(&f, IMPORT);
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
		fixture_do(&f,
			   "{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"%s\", "
			   "\"target\": \"v\"}",
			   mounts[i]);
	fixture_shell("cd '%s' && rm -r gone file plain && echo y > file", tree);
	ck_assert_int_eq(fixture_ask(&f, UPDATE), 1);
	ck_assert_uint_eq(f.skipped, 2);
	ck_assert(strstr(f.reason, "has mount points below, which stay") != NULL);
	/* gone/x, gone/deep/x, file/x, and "plain" with all that is below. */
	ck_assert_uint_eq(count(json_object_get(f.last, "result"), "removed"), 6);
	fixture_do(&f, "{\"command\": \"mounts\", \"volume\": \"v\"}");
	ck_assert_uint_eq(f.mounts, 5);
	end(&f);
}
END_TEST

/* The name leads to another object by then: it stays. */
START_TEST(made_meanwhile)
{
	const struct store_caller caller = {.id = 1, .administrator = true, .unrestricted = true};
	struct store_fid root = {77, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE}, before;
	const struct store_set set = {0};
	struct store_status made, dir;
	struct store_changes changes;
	struct fixture f;

	begin(&f);
	ck_assert_int_eq(f.store->ops->create(f.store, &caller, &root, "a", STORE_FILE, NULL, &set,
					      &made, &dir, &changes),
			 0);
	before = made.fid;
	ck_assert_int_eq(
		f.store->ops->remove(f.store, &caller, &root, "a", STORE_FILE, &dir, &changes), 0);
	ck_assert_int_eq(f.store->ops->create(f.store, &caller, &root, "a", STORE_FILE, NULL, &set,
					      &made, &dir, &changes),
			 0);
	ck_assert_int_eq(store_remove_known(f.store, &caller, &root, "a", &before, STORE_FILE, &dir,
					    &changes),
			 -ESTALE);
	ck_assert_int_eq(f.store->ops->status(f.store, &caller, &made.fid, &dir), 0);
	ck_assert_int_eq(store_remove_known(f.store, &caller, &root, "a", &made.fid, STORE_FILE,
					    &dir, &changes),
			 0);
	end(&f);
}
END_TEST

/* In a namespace of its own: 0; 77 if there can be none. `kind`: another file system, or a part of the same one. */
static int export_beside_mount(struct fixture *f, const char *back, int kind)
{
	char from[200], at[200], file[220];
	uid_t user = getuid();
	FILE *map;

	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 77;
	map = fopen("/proc/self/uid_map", "w");
	if (map && user) {
		fprintf(map, "%u %u 1", user, user);
		fclose(map);
	}
	snprintf(from, sizeof(from), "%s/from", f->folder);
	snprintf(at, sizeof(at), "%s/other/mounted", back);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    (kind ? mount(from, at, NULL, MS_BIND, NULL) : mount("none", at, "tmpfs", 0, NULL)) < 0)
		return 77;
	snprintf(file, sizeof(file), "%s/file", at);
	if (!kind)
		close(open(file, O_WRONLY | O_CREAT | O_EXCL, 0600));
	/* The process has several threads from here on, and sees what is mounted. */
	fixture_again(f);
	fixture_directory(f, "back");
	fixture_ask(f, "{\"command\": \"export\", \"volume\": \"v\", \"update\": true, "
		       "\"delete\": true}");
	f->store->ops->close(f->store);
	return access(file, F_OK) < 0 || !f->skipped ? 1 : 0;
}

/* An update of an export removes only files on the file system of its directory. */
START_TEST(mounted_below)
{
	struct fixture f;
	const char *back;
	int status;

	begin(&f);
	fixture_directory(&f, "tree");
	fixture_do(&f, IMPORT);
	back = fixture_directory(&f, "back");
	for (int kind = 0; kind < 2; kind++) {
		pid_t child;

		fixture_shell("cd '%s' && mkdir -p other/mounted ../from && touch ../from/file",
			      back);
		f.store->ops->close(f.store);
		child = fork();
		if (!child) {
			_exit(export_beside_mount(&f, back, kind));
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		fixture_again(&f);
		if (WEXITSTATUS(status) == 77)
			printf("nothing can be mounted here\n");
		else
			ck_assert_int_eq(status, 0);
	}
	end(&f);
}
END_TEST

/* A path in a request can have any bytes, and answers are text nevertheless. */
START_TEST(any_bytes)
{
	struct fixture f;

	begin(&f);
	fixture_shell(
		"cd '%s' && mkdir \"$(printf 'a\\377\\n\\\\b')\" && mkfifo \"$(printf 'f\\376')\"",
		fixture_directory(&f, "tree"));
	ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
	ck_assert_uint_eq(f.skipped, 1);
	fixture_do(
		&f,
		"{\"command\": \"acl\", \"volume\": \"v\", \"path\": \"a\\\\xff\\\\x0a\\\\x5cb\"}");
	fixture_refuses(&f, 1, "v:/a\\xfe",
			"{\"command\": \"acl\", \"volume\": \"v\", \"path\": \"a\\\\xfe\"}");
	end(&f);
}
END_TEST

static void make_deep(int dir, int depth)
{
	int at = dup(dir);

	for (int i = 0; i < depth; i++) {
		int next;

		ck_assert_int_eq(mkdirat(at, "ddd", 0700), 0);
		next = openat(at, "ddd", O_RDONLY | O_DIRECTORY);
		ck_assert_int_ge(next, 0);
		close(at);
		at = next;
	}
	close(at);
}

START_TEST(deep)
{
	struct fixture f;

	begin(&f);
	fixture_directory(&f, "tree");
	make_deep(f.directory, 1100);
	/* 4095 bytes of path are 1,024 directories. */
	ck_assert_int_eq(fixture_ask(&f, IMPORT), 1);
	ck_assert_uint_eq(f.skipped, 1);
	ck_assert_uint_eq(count(json_object_get(f.last, "result"), "objects"), 1024);
	fixture_directory(&f, "back");
	fixture_do(&f, EXPORT);
	end(&f);
}
END_TEST

START_TEST(full)
{
	struct fixture f;

	begin(&f);
	fixture_do(&f, "{\"command\": \"quota\", \"volume\": \"v\", \"quota\": 100000}");
	fixture_shell("cd '%s' && echo x > a && head -c 3000000 /dev/zero > b",
		      fixture_directory(&f, "tree"));
	fixture_refuses(&f, 1, "b: the volume's quota is used up", IMPORT);
	/* A file that could not be stored is missing. */
	fixture_refuses(&f, 1, "v:/b: No such file",
			"{\"command\": \"acl\", \"volume\": \"v\", \"path\": \"b\"}");
	end(&f);
}
END_TEST

/* The system call that keeps a path below a directory is not there, or is filtered. */
static void forbid_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static pid_t lend(int end, int directory, bool filtered)
{
	pid_t child = fork();

	if (child < 0)
		ck_abort_msg("fork failed");
	if (child)
		return child;
	if (filtered)
		forbid_openat2();
	admin_lend(end, directory);
	_exit(0);
}

/* A process that borrows gets no more than files and directories below. */
START_TEST(lent)
{
	struct fixture f;
	const char *tree;

	begin(&f);
	fixture_shell("echo secret > '%s'/secret", fixture_directory(&f, "outside"));
	tree = fixture_directory(&f, "tree");
	fixture_shell("cd '%s' && mkdir d && echo x > d/file && mkfifo pipe", tree);
	for (int filtered = 0; filtered < 2; filtered++) {
		int pair[2], directory = open(tree, O_RDONLY | O_DIRECTORY), fd;
		struct admin_output output = {0};
		const struct admin_run run = {.output = &output};
		pid_t child;

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		child = lend(pair[1], directory, filtered);
		close(pair[1]);
		close(directory);
		output.directory = pair[0];
		fd = admin_source_open(&run, "d/file", ADMIN_SOURCE_FILE);
		ck_assert_int_ge(fd, 0);
		close(fd);
		ck_assert_int_lt(admin_source_open(&run, "../outside/secret", ADMIN_SOURCE_FILE),
				 0);
		ck_assert_int_lt(admin_source_open(&run, "d/../../outside", ADMIN_SOURCE_LOOK), 0);
		ck_assert_int_lt(admin_source_open(&run, "d/../..", ADMIN_SOURCE_DIRECTORY), 0);
		ck_assert_int_lt(admin_source_open(&run, "/", ADMIN_SOURCE_DIRECTORY), 0);
		ck_assert_int_lt(admin_source_open(&run, "pipe", ADMIN_SOURCE_FILE), 0);
		shutdown(pair[0], SHUT_RDWR);
		close(pair[0]);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
	}
	end(&f);
}
END_TEST

TEST_MAIN_WITHIN(300, "administration of a store: trees", interrupted, killed, killed_update,
		 there_already, progress, owners, set_id, not_unfinished, changing, unsized,
		 many_holes, too_many_names, outside, mount_points_stay, made_meanwhile,
		 mounted_below, lent, any_bytes, deep, full)
