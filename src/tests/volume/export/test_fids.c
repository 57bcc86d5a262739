/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of fids.c and journal.c: objects, names, restarts, damage, full disks. */
#include "tests/fileserver/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "afs/numbers.h"
#include "volume/export/fids.h"
#include "tests/main.h"

static char *folder;
static const struct export_log silent;
static struct fids *fids;
static unsigned gone;

static void open_store(void)
{
	ck_assert_int_eq(fids_open(tree_path(folder, "store"), &silent, &fids), 0);
}

static void reopen(void)
{
	fids_close(fids);
	open_store();
}

static void setup(void)
{
	const struct fids_meta meta = {
		.volume = 7, .creation = 8, .root_inode = 99, .root = "/some/where"};
	const struct export_record root = {.vnode = STORE_ROOT_VNODE,
					   .unique = STORE_ROOT_UNIQUE,
					   .kind = STORE_DIR,
					   .version = 1000,
					   .inode = 99};

	folder = test_folder();
	open_store();
	ck_assert_int_eq(fids_start_anew(fids, &meta, &root), 0);
}

static void end(void)
{
	fids_close(fids);
	tree_remove(folder);
}

static void count_gone(void *arg, uint32_t vnode, uint32_t unique)
{
	(void)arg;
	(void)vnode;
	(void)unique;
	gone++;
}

/* A name in a listing, of an object with a record. */
static struct fids_name listed(const char *text, enum store_kind kind, uint64_t inode)
{
	return (struct fids_name){.name = (char *)(uintptr_t)text,
				  .kind = kind,
				  .inode = inode,
				  .now_inode = inode,
				  .now_birth = (uint32_t)inode + 1,
				  .now_seen = inode + 5000};
}

/* Asserts that a directory has exactly these names. */
static void list(struct store_fid dir, struct fids_name *names, size_t count)
{
	ck_assert_int_eq(fids_match(fids, dir.vnode, dir.unique, names, count), 0);
	ck_assert_int_eq(
		fids_assign(fids, dir.vnode, dir.unique, names, count, 77, count_gone, NULL), 0);
}

static const struct store_fid root = {7, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};

static struct store_fid fid_of(const struct fids_name *name)
{
	return (struct store_fid){7, name->vnode, name->unique};
}

static void at_path(struct store_fid fid, unsigned nth, const char *path)
{
	struct export_record r;
	char got[4096];

	ck_assert_int_eq(fids_find(fids, fid.vnode, fid.unique, nth, &r, got, sizeof(got)), 0);
	ck_assert_str_eq(got, path);
}

static int find(struct store_fid fid)
{
	struct export_record r;

	return fids_find(fids, fid.vnode, fid.unique, 0, &r, NULL, 0);
}

START_TEST(survives_reopening)
{
	struct fids_name names[3] = {listed("a \xff name", STORE_FILE, 5),
				     listed("sub", STORE_DIR, 6), listed("link", STORE_SYMLINK, 7)};
	struct fids_name inner = listed("inner", STORE_FILE, 8);
	struct export_record r, new;
	struct fids_meta meta;
	uint32_t vnode, unique;

	setup();
	list(root, names, 3);
	list(fid_of(&names[1]), &inner, 1);
	ck_assert_uint_eq(names[0].vnode % 2, 0);
	ck_assert_uint_eq(names[1].vnode % 2, 1);
	ck_assert_int_eq(fids_find(fids, inner.vnode, inner.unique, 0, &r, NULL, 0), 0);
	ck_assert_uint_eq(r.version, 77);
	new = r;
	new.version = 0x123456789abcull;
	new.seen = 0xfedcba9876543210ull;
	ck_assert_int_eq(fids_update(fids, &r, &new), 0);
	/* a record read before is outdated */
	ck_assert_int_eq(fids_update(fids, &r, &new), -EAGAIN);

	reopen();
	ck_assert_int_eq(fids_get_meta(fids, &meta), 0);
	ck_assert_uint_eq(meta.volume, 7);
	ck_assert_uint_eq(meta.creation, 8);
	ck_assert_str_eq(meta.root, "/some/where");
	at_path(root, 0, "");
	at_path(fid_of(&names[0]), 0, "a \xff name");
	at_path(fid_of(&inner), 0, "sub/inner");
	ck_assert_int_eq(fids_find(fids, inner.vnode, inner.unique, 0, &r, NULL, 0), 0);
	ck_assert_uint_eq(r.version, new.version);
	ck_assert_uint_eq(r.seen, new.seen);
	ck_assert_uint_eq(r.inode, 8);
	ck_assert_uint_eq(r.birth, 9);
	ck_assert_uint_eq(r.parent, names[1].vnode);
	ck_assert_int_eq(fids_find_child(fids, 1, 1, "link", &vnode, &unique), 0);
	ck_assert_uint_eq(vnode, names[2].vnode);
	ck_assert_uint_eq(unique, names[2].unique);
	ck_assert_int_eq(fids_find_child(fids, 1, 1, "inner", &vnode, &unique), -ENOENT);
	end();
}
END_TEST

START_TEST(numbers_do_not_repeat)
{
	struct fids_name a = listed("a", STORE_FILE, 5), b = listed("b", STORE_FILE, 6);

	setup();
	list(root, &a, 1);
	reopen();
	list(root, &b, 1);
	ck_assert_int_eq(find(fid_of(&a)), -ENOENT);
	ck_assert(a.vnode != b.vnode || a.unique != b.unique);
	end();
}
END_TEST

START_TEST(hard_links_have_one_fid)
{
	struct fids_name names[3] = {listed("one", STORE_FILE, 5), listed("two", STORE_FILE, 5),
				     listed("sub", STORE_DIR, 6)};
	struct fids_name third = listed("three", STORE_FILE, 5);
	struct fids_name rest[2] = {listed("sub", STORE_DIR, 6), listed("two", STORE_FILE, 5)};

	setup();
	list(root, names, 3);
	list(fid_of(&names[2]), &third, 1);
	ck_assert_uint_eq(names[0].vnode, names[1].vnode);
	ck_assert_uint_eq(names[0].unique, third.unique);
	reopen();
	gone = 0;
	list(root, rest, 2);
	ck_assert_uint_eq(gone, 1); /* its status has changed */
	ck_assert_uint_eq(rest[1].vnode, third.vnode);
	ck_assert_int_eq(find(fid_of(&third)), 0);
	list(root, rest, 1);
	at_path(fid_of(&third), 0, "sub/three");
	list(root, NULL, 0);
	ck_assert_int_eq(find(fid_of(&third)), -ENOENT);
	end();
}
END_TEST

START_TEST(another_object_gets_another_fid)
{
	struct fids_name a = listed("x", STORE_FILE, 5), b = listed("x", STORE_FILE, 6);
	struct fids_name again = listed("x", STORE_FILE, 6), link = listed("x", STORE_SYMLINK, 6);
	struct fids_name other = listed("x", STORE_SYMLINK, 6),
			 moved = listed("y", STORE_SYMLINK, 6);

	setup();
	list(root, &a, 1);
	list(root, &b, 1);
	ck_assert_int_eq(find(fid_of(&a)), -ENOENT);
	ck_assert_uint_ne(a.unique, b.unique);
	again.now_birth++; /* the inode number has been used again */
	again.inode++;
	list(root, &again, 1);
	ck_assert_uint_ne(again.unique, b.unique);
	list(root, &link, 1);
	ck_assert_uint_ne(link.unique, again.unique);
	other.now_seen++;
	list(root, &other, 1);
	ck_assert_uint_ne(other.unique, link.unique);
	moved.now_seen++;
	list(root, &moved, 1);
	ck_assert_uint_eq(moved.unique, other.unique);
	end();
}
END_TEST

START_TEST(moved_directory_keeps_contents)
{
	struct fids_name names[2] = {listed("a", STORE_DIR, 5), listed("b", STORE_DIR, 6)};
	struct fids_name inner = listed("inner", STORE_FILE, 8), moved = listed("a2", STORE_DIR, 5);
	struct export_record r;

	setup();
	list(root, names, 2);
	list(fid_of(&names[0]), &inner, 1);
	list(fid_of(&names[1]), &moved, 1);
	ck_assert_uint_eq(moved.vnode, names[0].vnode);
	at_path(fid_of(&inner), 0, "b/a2/inner");
	/* its image, which names its parent, is regenerated */
	ck_assert_int_eq(fids_find(fids, moved.vnode, moved.unique, 0, &r, NULL, 0), 0);
	ck_assert_uint_eq(r.image_length, 0);
	/* never below itself, whatever a listing says */
	struct fids_name odd = listed("odd", STORE_DIR, 6);

	list(fid_of(&moved), &odd, 1);
	ck_assert_uint_ne(odd.vnode, names[1].vnode);
	reopen();
	list(root, names + 1, 1);
	at_path(fid_of(&moved), 0, "b/a2");
	gone = 0;
	list(root, NULL, 0);
	ck_assert_uint_eq(gone, 3);
	ck_assert_int_eq(find(fid_of(&moved)), -ENOENT);
	end();
}
END_TEST

START_TEST(swapped_names)
{
	struct fids_name names[2] = {listed("a", STORE_DIR, 5), listed("b", STORE_DIR, 6)};
	struct fids_name swapped[2] = {listed("a", STORE_DIR, 6), listed("b", STORE_DIR, 5)};
	struct fids_name inner = listed("inner", STORE_FILE, 8);

	setup();
	list(root, names, 2);
	list(fid_of(&names[0]), &inner, 1);
	list(root, swapped, 2);
	ck_assert_uint_eq(swapped[1].vnode, names[0].vnode);
	ck_assert_uint_eq(swapped[0].vnode, names[1].vnode);
	at_path(fid_of(&inner), 0, "b/inner");
	reopen();
	at_path(fid_of(&inner), 0, "b/inner");
	at_path(fid_of(&names[1]), 0, "a");
	end();
}
END_TEST

START_TEST(name_is_dropped)
{
	struct fids_name sub = listed("sub", STORE_DIR, 5), inner = listed("inner", STORE_FILE, 8);

	setup();
	list(root, &sub, 1);
	list(fid_of(&sub), &inner, 1);
	fids_unname(fids, 1, 1, "sub", sub.vnode + 2, NULL, NULL); /* not of this one */
	at_path(fid_of(&inner), 0, "sub/inner");
	fids_unname(fids, 1, 1, "sub", sub.vnode, NULL, NULL);
	ck_assert_int_eq(find(fid_of(&inner)), -ENOENT);
	reopen();
	ck_assert_int_eq(find(fid_of(&sub)), -ENOENT);
	ck_assert_int_eq(find(fid_of(&inner)), -ENOENT);
	end();
}
END_TEST

START_TEST(longest_name_and_path)
{
	struct export_record r;
	char name[STORE_NAME_MAX + 1], path[4096];
	struct store_fid dir = root;

	setup();
	memset(name, 'n', STORE_NAME_MAX);
	name[STORE_NAME_MAX] = 0;
	for (uint64_t depth = 1; depth <= 17; depth++) {
		struct fids_name sub = listed(name, STORE_DIR, 100 + depth);

		list(dir, &sub, 1);
		dir = fid_of(&sub);
		ck_assert_int_eq(fids_find(fids, dir.vnode, dir.unique, 0, &r, path, sizeof(path)),
				 depth * 256 - 1 < sizeof(path) ? 0 : -ENAMETOOLONG);
	}
	reopen();
	ck_assert_int_eq(find(dir), 0);
	end();
}
END_TEST

START_TEST(refused_files)
{
	static const char lmdb[64] = {[16] = (char)0xde, (char)0xc0, (char)0xef, (char)0xbe};
	char bytes[24];
	int fd;

	ck_assert_int_eq(fids_open("/nonexistent/place/store", &silent, &fids), -ENOENT);
	setup();
	fids_close(fids);
	fd = open(tree_path(folder, "store"), O_RDWR);
	ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	bytes[20] ^= 1;
	ck_assert_int_eq(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(fids_open(tree_path(folder, "store"), &silent, &fids), -EBADMSG);
	ck_assert_int_eq(pwrite(fd, lmdb, sizeof(lmdb), 0), sizeof(lmdb));
	ck_assert_int_eq(fids_open(tree_path(folder, "store"), &silent, &fids), -EILSEQ);
	close(fd);
	tree_remove(folder);
}
END_TEST

START_TEST(file_size_bounded)
{
	struct fids_name name = listed("x", STORE_FILE, 5);
	struct export_record r, new;
	struct stat st;

	setup();
	list(root, &name, 1);
	ck_assert_int_eq(fids_find(fids, name.vnode, name.unique, 0, &r, NULL, 0), 0);
	for (int i = 0; i < 120000; i++) {
		new = r;
		new.version++;
		ck_assert_int_eq(fids_update(fids, &r, &new), 0);
		r = new;
	}
	ck_assert_int_eq(stat(tree_path(folder, "store"), &st), 0);
	ck_assert_int_lt(st.st_size, 5 << 20);
	reopen();
	ck_assert_int_eq(fids_find(fids, name.vnode, name.unique, 0, &new, NULL, 0), 0);
	ck_assert_uint_eq(new.version, r.version);
	at_path(fid_of(&name), 0, "x");
	end();
}
END_TEST

/* -- damage -- */

#define DAMAGE_DIRS  8
#define DAMAGE_FILES 40

static struct store_fid damage_dirs[DAMAGE_DIRS], damage_files[DAMAGE_DIRS][DAMAGE_FILES];

static struct fids_name *damage_names(unsigned dir, char texts[DAMAGE_FILES][32], unsigned round)
{
	static struct fids_name names[DAMAGE_FILES];

	for (unsigned i = 0; i < DAMAGE_FILES; i++) {
		snprintf(texts[i], 32, "file %u %u", i, round);
		names[i] = listed(texts[i], STORE_FILE, 1000 + dir * 100 + i);
	}
	return names;
}

static void damage_fill(void)
{
	struct fids_name dirs[DAMAGE_DIRS];
	char names[DAMAGE_DIRS][16], texts[DAMAGE_FILES][32];

	for (unsigned i = 0; i < DAMAGE_DIRS; i++) {
		snprintf(names[i], sizeof(names[i]), "dir %u", i);
		dirs[i] = listed(names[i], STORE_DIR, 100 + i);
	}
	list(root, dirs, DAMAGE_DIRS);
	/* twice, so that some names are added and removed */
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < DAMAGE_DIRS; i++) {
			struct fids_name *files = damage_names(i, texts, round);

			list(damage_dirs[i] = fid_of(&dirs[i]), files, DAMAGE_FILES);
			for (unsigned j = 0; j < DAMAGE_FILES; j++)
				damage_files[i][j] = fid_of(&files[j]);
		}
}

/* In a child: 0 served, 1 refused; records that are found are unchanged. */
static int damage_use(void)
{
	char texts[DAMAGE_FILES][32], path[4096], expected[64];
	struct export_record r;
	int rc = fids_open(tree_path(folder, "store"), &silent, &fids);

	if (rc)
		return rc == -EBADMSG || rc == -EILSEQ ? 1 : 2;
	for (unsigned i = 0; i < DAMAGE_DIRS; i++)
		for (unsigned j = 0; j < DAMAGE_FILES; j++) {
			struct store_fid fid = damage_files[i][j];

			if (fids_find(fids, fid.vnode, fid.unique, 0, &r, path, sizeof(path)))
				continue;
			snprintf(expected, sizeof(expected), "dir %u/file %u ", i, j);
			if (strncmp(path, expected, strlen(expected)) != 0 ||
			    r.inode != 1000 + i * 100 + j)
				return 3;
		}
	/* the store works, and newly written records are intact */
	damage_fill();
	fids_close(fids);
	if (fids_open(tree_path(folder, "store"), &silent, &fids))
		return 4;
	for (unsigned i = 0; i < DAMAGE_DIRS; i++) {
		damage_names(i, texts, 1);
		for (unsigned j = 0; j < DAMAGE_FILES; j++) {
			struct store_fid fid = damage_files[i][j];

			snprintf(expected, sizeof(expected), "dir %u/%.31s", i, texts[j]);
			if (fids_find(fids, fid.vnode, fid.unique, 0, &r, path, sizeof(path)) ||
			    strcmp(path, expected) != 0)
				return 5;
		}
	}
	fids_close(fids);
	return 0;
}

static unsigned served, refused;

static void damaged(const uint8_t *bytes, size_t length, const char *what, size_t where)
{
	int status, fd = open(tree_path(folder, "store"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	pid_t pid;

	ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
	close(fd);
	pid = fork();
	if (pid == 0) {
		fsd_log_level(RXW_LOG_ERROR);
		_exit(damage_use());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "%s at %zu: %s %d", what, where,
		      WIFEXITED(status) ? "state" : "signal",
		      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	served += WEXITSTATUS(status) == 0;
	refused += WEXITSTATUS(status) == 1;
}

/* Truncated at each page and at odd places, single bytes changed, ranges of zeros, of old bytes. */
START_TEST(damage_detected)
{
	static const uint8_t masks[3] = {0x01, 0x80, 0xff};
	uint64_t random = 12345;
	uint8_t *bytes, *copy;
	struct stat st;
	size_t length;
	int fd;

	setup();
	damage_fill();
	fids_close(fids);
	fd = open(tree_path(folder, "store"), O_RDONLY);
	ck_assert_int_eq(fstat(fd, &st), 0);
	length = (size_t)st.st_size;
	bytes = malloc(length);
	copy = malloc(length);
	ck_assert_int_eq(read(fd, bytes, length), (ssize_t)length);
	close(fd);
	damaged(bytes, length, "nothing", 0);
	ck_assert_uint_eq(served, 1);
	for (size_t at = 512; at < length; at += 512)
		damaged(bytes, at, "cut", at);
	for (size_t at = 0; at < 64; at++)
		damaged(bytes, at, "cut", at);
	for (int i = 0; i < 200; i++) {
		random = mix_hash(random, (uint64_t)i);

		size_t at = i < 60 ? (size_t)i : (size_t)(random % length);
		size_t n = i % 4 == 3 ? 4096 : i % 4 == 2 ? 60 : 1;

		memcpy(copy, bytes, length);
		if (n > length - at)
			n = length - at;
		for (size_t j = 0; j < n; j++)
			copy[at + j] = n == 1  ? (uint8_t)(copy[at] ^ masks[i % 3])
				       : i & 8 ? 0
					       : bytes[(at + j + 4096) % length];
		damaged(copy, length, n == 1 ? "changed" : "stretch", at);
	}
	ck_assert_uint_gt(served, refused);
	ck_assert_uint_gt(refused, 20);
	free(bytes);
	free(copy);
	tree_remove(folder);
}
END_TEST

/* The file may shrink or change under a running server. */
START_TEST(damage_while_running)
{
	struct fids_name a = listed("a", STORE_FILE, 5), both[2];

	setup();
	list(root, &a, 1);
	ck_assert_int_eq(truncate(tree_path(folder, "store"), 0), 0);
	at_path(fid_of(&a), 0, "a");
	both[0] = listed("a", STORE_FILE, 5);
	both[1] = listed("b", STORE_FILE, 6);
	list(root, both, 2);
	at_path(fid_of(&both[1]), 0, "b");
	end();
}
END_TEST

/* -- a full disk; limits of address space -- */

static void limit_file(rlim_t bytes)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(full_disk)
{
	struct fids_name a = listed("a", STORE_FILE, 5), names[3];
	struct export_record r, new;
	struct stat st;

	signal(SIGXFSZ, SIG_IGN);
	asserts_unrecorded();
	setup();
	list(root, &a, 1);
	ck_assert_int_eq(stat(tree_path(folder, "store"), &st), 0);
	limit_file((rlim_t)st.st_size + 10);
	for (int i = 0; i < 3; i++) {
		names[0] = listed("a", STORE_FILE, 5);
		names[1] = listed("b", STORE_FILE, 6);
		names[2] = listed("c", STORE_FILE, 7);
		list(root, names, i + 1 > 3 ? 3 : (size_t)i + 1);
		at_path(fid_of(&a), 0, "a");
		ck_assert_int_eq(fids_find(fids, a.vnode, a.unique, 0, &r, NULL, 0), 0);
		new = r;
		new.version++;
		ck_assert_int_eq(fids_update(fids, &r, &new), 0);
	}
	at_path(fid_of(&names[2]), 0, "c");
	limit_file(RLIM_INFINITY);
	reopen(); /* the last opportunity to write it */
	at_path(fid_of(&names[2]), 0, "c");
	ck_assert_int_eq(fids_find(fids, a.vnode, a.unique, 0, &r, NULL, 0), 0);
	ck_assert_uint_eq(r.version, new.version);
	/* if that fails, earlier writes are intact */
	limit_file(10);
	names[0] = listed("d", STORE_FILE, 8);
	list(root, names, 1);
	fids_close(fids);
	limit_file(RLIM_INFINITY);
	open_store();
	at_path(fid_of(&a), 0, "a");
	ck_assert_int_eq(find(fid_of(&names[0])), -ENOENT);
	end();
}
END_TEST

/* -- threads -- */

static void *lister(void *arg)
{
	const struct store_fid *dir = arg;
	char texts[100][16];

	for (int round = 0; round < 60; round++) {
		struct fids_name names[100];

		for (int i = 0; i < 100; i++) {
			snprintf(texts[i], sizeof(texts[i]), "%d", (i + round) % 150);
			names[i] = listed(texts[i], STORE_FILE,
					  dir->vnode * 1000u + (unsigned)((i + round) % 150));
		}
		ck_assert_int_eq(fids_match(fids, dir->vnode, dir->unique, names, 100), 0);
		ck_assert_int_eq(
			fids_assign(fids, dir->vnode, dir->unique, names, 100, 77, NULL, NULL), 0);
		for (int i = 0; i < 100; i++) {
			struct export_record r;
			char path[64];

			ck_assert_int_eq(fids_find(fids, names[i].vnode, names[i].unique, 0, &r,
						   path, sizeof(path)),
					 0);
			ck_assert_str_eq(strrchr(path, '/') + 1, texts[i]);
		}
	}
	return NULL;
}

START_TEST(many_threads)
{
	struct fids_name dirs[4] = {listed("a", STORE_DIR, 1), listed("b", STORE_DIR, 2),
				    listed("c", STORE_DIR, 3), listed("d", STORE_DIR, 4)};
	pthread_t threads[4];
	struct store_fid dir[4];

	setup();
	list(root, dirs, 4);
	for (int i = 0; i < 4; i++) {
		dir[i] = fid_of(&dirs[i]);
		ck_assert_int_eq(pthread_create(&threads[i], NULL, lister, &dir[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	reopen();
	for (int i = 0; i < 4; i++) {
		uint32_t vnode, unique;

		ck_assert_int_eq(
			fids_find_child(fids, dir[i].vnode, dir[i].unique, "100", &vnode, &unique),
			0);
		ck_assert_int_eq(
			fids_find_child(fids, dir[i].vnode, dir[i].unique, "20", &vnode, &unique),
			-ENOENT);
	}
	end();
}
END_TEST

TEST_MAIN_WITHIN(120, "volume store", survives_reopening, numbers_do_not_repeat,
		 hard_links_have_one_fid, another_object_gets_another_fid,
		 moved_directory_keeps_contents, swapped_names, name_is_dropped,
		 longest_name_and_path, refused_files, file_size_bounded, damage_detected,
		 damage_while_running, full_disk, many_threads)
