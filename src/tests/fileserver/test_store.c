/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of fileserver/store.c: records survive, subtrees go, transactions undo. */
#include "fixture.h"

static char *folder;

static struct fsd_store *open_store(void)
{
	struct fsd_store *store;

	if (!folder)
		folder = test_folder();
	ck_assert_int_eq(fsd_store_open(tree_path(folder, "store"), &store), 0);
	return store;
}

static struct fsd_txn *begin(struct fsd_store *store, bool write)
{
	struct fsd_txn *txn;

	ck_assert_int_eq(fsd_store_begin(store, write, &txn), 0);
	return txn;
}

static struct fsd_record record(uint32_t vnode, uint32_t parent, enum fsd_kind kind,
				const char *name)
{
	struct fsd_record r = {.vnode = vnode,
			       .unique = vnode + 100,
			       .parent = parent,
			       .parent_unique = parent + 100,
			       .kind = kind,
			       .version = 0x100000001ull,
			       .image_length = 4096,
			       .image_hash = 0xfedcba9876543210ull,
			       .links = 3};

	r.seen.inode = 0x1234567890ull;
	r.seen.size = 1ull << 40;
	r.seen.mtime_ns = 1700000000123456789ll;
	r.seen.ctime_ns = -5;
	snprintf(r.name, sizeof(r.name), "%s", name);
	return r;
}

START_TEST(survives_reopening)
{
	struct fsd_store *store = open_store();
	struct fsd_txn *txn = begin(store, true);
	struct fsd_record r = record(4, 1, FSD_FILE, "name with \xff bytes"), got;
	struct fsd_meta meta = {.volume = 5,
				.creation = 6,
				.next_file = 7,
				.next_dir = 9,
				.next_unique = 8,
				.root_device = 10,
				.root_inode = 11,
				.root = "/export"},
			meta2;
	uint32_t vnode;

	ck_assert_int_eq(fsd_store_get_meta(txn, &meta2), -ENOENT);
	ck_assert_int_eq(fsd_store_put(txn, &r), 0);
	ck_assert_int_eq(fsd_store_put_meta(txn, &meta), 0);
	ck_assert_int_eq(fsd_store_commit(txn), 0);
	fsd_store_close(store);

	store = open_store();
	txn = begin(store, false);
	ck_assert_int_eq(fsd_store_get(txn, 4, &got), 0);
	ck_assert_str_eq(got.name, r.name);
	ck_assert_uint_eq(got.version, r.version);
	ck_assert_uint_eq(got.image_hash, r.image_hash);
	ck_assert(got.seen.ctime_ns == -5 && got.seen.mtime_ns == r.seen.mtime_ns);
	ck_assert(fsd_stat_same(&got.seen, &(struct fsd_stat){.kind = FSD_FILE,
							      .inode = r.seen.inode,
							      .size = r.seen.size,
							      .mtime_ns = r.seen.mtime_ns,
							      .ctime_ns = -5}));
	ck_assert_int_eq(fsd_store_child(txn, 1, r.name, &vnode), 0);
	ck_assert_uint_eq(vnode, 4);
	ck_assert_int_eq(fsd_store_child(txn, 2, r.name, &vnode), -ENOENT);
	ck_assert_int_eq(fsd_store_get_meta(txn, &meta2), 0);
	ck_assert_str_eq(meta2.root, "/export");
	ck_assert_uint_eq(meta2.next_unique, 8);
	fsd_store_abort(txn);
	fsd_store_close(store);
	tree_remove(folder);
}
END_TEST

START_TEST(abort_undoes)
{
	struct fsd_store *store = open_store();
	struct fsd_txn *txn = begin(store, true);
	struct fsd_record r = record(4, 1, FSD_FILE, "x"), got;

	ck_assert_int_eq(fsd_store_put(txn, &r), 0);
	fsd_store_abort(txn);
	txn = begin(store, false);
	ck_assert_int_eq(fsd_store_get(txn, 4, &got), -ENOENT);
	fsd_store_abort(txn);
	fsd_store_close(store);
	tree_remove(folder);
}
END_TEST

static int count_child(void *arg, const char *name, uint32_t vnode)
{
	(void)name;
	(void)vnode;
	++*(unsigned *)arg;
	return 0;
}

START_TEST(subtree_goes_with_its_directory)
{
	struct fsd_store *store = open_store();
	struct fsd_txn *txn = begin(store, true);
	struct fsd_record root = record(1, 1, FSD_DIR, ""), sub = record(3, 1, FSD_DIR, "sub");
	struct fsd_record deep = record(5, 3, FSD_DIR, "deep"), got;
	struct fsd_record files[3] = {record(2, 1, FSD_FILE, "stays"), record(4, 3, FSD_FILE, "a"),
				      record(6, 5, FSD_SYMLINK, "b")};
	unsigned n = 0;

	fsd_store_put(txn, &root);
	fsd_store_put(txn, &sub);
	fsd_store_put(txn, &deep);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fsd_store_put(txn, &files[i]), 0);
	ck_assert_int_eq(fsd_store_children(txn, 1, count_child, &n), 0);
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(fsd_store_remove(txn, &sub), 0);
	ck_assert_int_eq(fsd_store_commit(txn), 0);
	txn = begin(store, false);
	for (uint32_t v = 3; v <= 6; v++)
		ck_assert_int_eq(fsd_store_get(txn, v, &got), -ENOENT);
	ck_assert_int_eq(fsd_store_get(txn, 2, &got), 0);
	for (uint32_t parent = 3; parent <= 5; parent += 2) {
		n = 0;
		fsd_store_children(txn, parent, count_child, &n);
		ck_assert_uint_eq(n, 0);
	}
	fsd_store_abort(txn);
	fsd_store_close(store);
	tree_remove(folder);
}
END_TEST

START_TEST(name_taken_over_stays)
{
	struct fsd_store *store = open_store();
	struct fsd_txn *txn = begin(store, true);
	struct fsd_record old = record(4, 1, FSD_FILE, "x"), new = record(6, 1, FSD_FILE, "x");
	uint32_t vnode;

	fsd_store_put(txn, &old);
	fsd_store_put(txn, &new);
	ck_assert_int_eq(fsd_store_remove(txn, &old), 0);
	ck_assert_int_eq(fsd_store_child(txn, 1, "x", &vnode), 0);
	ck_assert_uint_eq(vnode, 6);
	fsd_store_abort(txn);
	fsd_store_close(store);
	tree_remove(folder);
}
END_TEST

START_TEST(longest_name)
{
	struct fsd_store *store = open_store();
	struct fsd_txn *txn = begin(store, true);
	struct fsd_record r = record(4, 1, FSD_FILE, ""), got;
	char longer[300];
	uint32_t vnode;

	memset(r.name, 'n', FSD_NAME_MAX);
	r.name[FSD_NAME_MAX] = 0;
	ck_assert_int_eq(fsd_store_put(txn, &r), 0);
	ck_assert_int_eq(fsd_store_get(txn, 4, &got), 0);
	ck_assert_str_eq(got.name, r.name);
	memset(longer, 'n', 299);
	longer[299] = 0;
	ck_assert_int_eq(fsd_store_child(txn, 1, longer, &vnode), -ENAMETOOLONG);
	fsd_store_abort(txn);
	fsd_store_close(store);
	tree_remove(folder);
}
END_TEST

START_TEST(impossible_place)
{
	struct fsd_store *store;

	ck_assert_int_eq(fsd_store_open("/nonexistent/place/store", &store), -ENOENT);
}
END_TEST

TEST_MAIN("volume store", survives_reopening, abort_undoes, subtree_goes_with_its_directory,
	  name_taken_over_stays, longest_name, impossible_place)
