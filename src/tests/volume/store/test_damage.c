/* SPDX-License-Identifier: BSD-2-Clause */
/* Damage of data and maps: it is an error for its range only, and no wrong byte is served, also after a restart. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "tests/asserts.h"
#include "tests/volume/store/state.h"
#include "tests/volume/store/store_fixture.h"
#include "volume/dump/dump.h"
#include "volume/store/data/data.h"
#include "volume/store/upkeep.h"
#include "volume/store/dir/pages.h"
#include "volume/store/transfer.h"
#include "volume/store/db/db.h"
#include "volume/store/disk/vfs.h"

#define BLOCKS 20u
#define LENGTH (BLOCKS * STORE_BLOCK - 1000)
#define FAR    (2ull * STORE_SLOT + 3 * STORE_BLOCK) /* another block, in a slot with a row */

static uint8_t bytes[LENGTH];
static struct store_fid file;

static void make_file(void)
{
	fixture_open(STORE_LAZY);
	make(&root, "d", STORE_DIR);
	file = make(&status.fid, "file", STORE_FILE);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	ck_assert_int_eq(try_write(&admin, &file, 0, bytes, LENGTH, 0), 0);
	ck_assert_int_eq(try_write(&admin, &file, FAR, bytes, 5000, UINT64_MAX), 0);
	ck_assert_int_eq(store_flush(store), 0);
	faults_expected = true;
}

/* -- changing files of the store -- */

static char largest[400];
static off_t largest_size;

static int note_largest(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (type == FTW_F && strstr(path, "/files/") && st->st_size > largest_size) {
		largest_size = st->st_size;
		snprintf(largest, sizeof(largest), "%s", path);
	}
	return 0;
}

static int open_largest(void)
{
	int fd;

	/* An object gets its name in the background. */
	do {
		largest_size = 0;
		nftw(fixture_path(), note_largest, 16, FTW_PHYS);
		fd = open(largest, O_RDWR);
	} while (fd < 0 && errno == ENOENT);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void flip(uint64_t offset, uint8_t bits)
{
	int fd = open_largest();
	uint8_t byte;

	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= bits;
	ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

/* As a disk that did not take the bytes. */
static void lose(uint64_t offset, size_t length)
{
	int fd = open_largest();
	void *zeros = calloc(1, length);

	ck_assert_int_eq(pwrite(fd, zeros, length, (off_t)offset), (ssize_t)length);
	free(zeros);
	close(fd);
}

/* -- reading -- */

static ssize_t read_at(uint64_t offset, void *got, size_t length, unsigned flags)
{
	struct store_reader *reader;
	struct iovec iov = {got, length};
	ssize_t n;

	ck_assert_int_eq(store->ops->read_begin(store, &admin, &file, &reader, &status), 0);
	n = store->ops->read(reader, &iov, 1, offset, flags);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	return n;
}

static void expect_good(uint64_t offset, size_t length)
{
	static uint8_t got[LENGTH];

	ck_assert_int_eq(read_at(offset, got, length, 0), (ssize_t)length);
	ck_assert_mem_eq(got, bytes + offset, length);
}

static void expect_error(uint64_t offset, size_t length)
{
	static uint8_t got[LENGTH];
	ssize_t n;

	ck_assert_int_eq(read_at(offset, got, length, 0), -EIO);
	/* Without the disk: an error, or what lies in front of it. */
	n = read_at(offset, got, length, STORE_CACHED);
	ck_assert_int_lt(n, (ssize_t)length);
	ck_assert(n < 0 || !memcmp(got, bytes + offset, (size_t)n));
}

/* One block is damaged, and all others can be read. */
static void expect_block(unsigned bad)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		uint64_t offset = (uint64_t)i * STORE_BLOCK;
		size_t length = i + 1 < BLOCKS ? STORE_BLOCK : LENGTH % STORE_BLOCK;

		if (i == bad) {
			expect_error(offset, length);
			expect_error(offset + 100, 1);
			expect_error(offset + length - 1, 1);
			expect_error(offset, 10);
		} else {
			expect_good(offset, length);
			expect_good(offset + 100, 1);
			expect_good(offset + length - 10, 10);
		}
	}
	if (bad < BLOCKS) {
		expect_error(0, LENGTH);
		if (bad)
			expect_error((uint64_t)bad * STORE_BLOCK - 10, 20);
	}
}

static int check_data(void)
{
	return store_check(store, &(struct store_checker){.data = true});
}

static void expect_line(unsigned bad)
{
	char offset[40];

	snprintf(offset, sizeof(offset), "offset %llu ", (unsigned long long)bad * STORE_BLOCK);
	ck_assert_msg(strstr(last_line, "volume v ") && strstr(last_line, "/d/file") &&
			      strstr(last_line, offset) && strstr(last_line, "restore the file"),
		      "%s", last_line);
}

static void expect_damage(unsigned bad)
{
	lines = 0;
	expect_block(bad);
	ck_assert_int_eq(lines, 1);
	expect_line(bad);
	ck_assert_int_eq(fixture_check(), 0);
	ck_assert_int_eq(check_data(), 1);
	lines = 0;
	fixture_reopen();
	expect_block(bad);
	ck_assert_int_eq(lines, 1);
	expect_line(bad);
	/* A part of it cannot be replaced, all of it can. */
	ck_assert_int_eq(
		try_write(&admin, &file, (uint64_t)bad * STORE_BLOCK + 5, "x", 1, UINT64_MAX),
		-EIO);
	expect_block(bad);
	ck_assert_int_eq(try_write(&admin, &file, (uint64_t)bad * STORE_BLOCK,
				   bytes + (size_t)bad * STORE_BLOCK,
				   bad + 1 < BLOCKS ? STORE_BLOCK : LENGTH % STORE_BLOCK,
				   UINT64_MAX),
			 0);
	expect_block(BLOCKS);
	ck_assert_int_eq(check_data(), 0);
}

/* A bit of each kind of place: the first block, one in the middle, the end of the last one. */
START_TEST(flipped_bit)
{
	static const struct {
		uint64_t offset;
		uint8_t bits;
	} place[] = {
		{0, 1}, {5 * STORE_BLOCK + 777, 128}, {6 * STORE_BLOCK - 1, 16}, {LENGTH - 1, 2}};

	make_file();
	flip(place[_i].offset, place[_i].bits);
	expect_damage((unsigned)(place[_i].offset / STORE_BLOCK));
}
END_TEST

/* The disk did not take a part of a write, and said nothing: no zeros are served for it. */
START_TEST(lost_flush)
{
	make_file();
	lose(3 * STORE_BLOCK + 4096, 4096);
	expect_damage(3);
}
END_TEST

/* The file is shorter. */
START_TEST(cut_file)
{
	int fd;

	make_file();
	fixture_close();
	fd = open_largest();
	ck_assert_int_eq(ftruncate(fd, 18 * STORE_BLOCK + 5), 0);
	close(fd);
	fixture_open_again();
	for (unsigned i = 0; i < 18; i++)
		expect_good((uint64_t)i * STORE_BLOCK, STORE_BLOCK);
	expect_error(18 * STORE_BLOCK, 5);
	expect_error(19 * STORE_BLOCK, 5);
	ck_assert_int_gt(check_data(), 0);
}
END_TEST

/* Bytes that were verified are read again without that, until the file is opened anew. */
START_TEST(damage_later)
{
	make_file();
	expect_block(BLOCKS);
	flip(7 * STORE_BLOCK + 9, 1);
	fixture_reopen();
	expect_block(7);
}
END_TEST

/* A cut leaves the checksum of the last block as it was; an extension of the file is zeros. */
START_TEST(cut_and_grown)
{
	static uint8_t got[STORE_BLOCK];
	uint64_t cut = 9 * STORE_BLOCK + 1234;

	make_file();
	ck_assert_int_eq(try_write(&admin, &file, cut, "", 0, cut), 0);
	expect_good(9 * STORE_BLOCK, 1234);
	expect_good(9 * STORE_BLOCK + 1000, 234);
	ck_assert_int_eq(try_write(&admin, &file, cut + 5000, "y", 1, UINT64_MAX), 0);
	memset(bytes + cut, 0, sizeof(bytes) - cut);
	bytes[cut + 5000] = 'y';
	expect_good(9 * STORE_BLOCK, 1234 + 5001);
	fixture_reopen();
	ck_assert_int_eq(read_at(cut, got, sizeof(got), 0), 5001);
	ck_assert_mem_eq(got, bytes + cut, 5001);
	ck_assert_int_eq(check_data(), 0);
	/* Cut to the middle of a block, and damaged behind the cut: that is noticed, since the whole block is verified. */
	ck_assert_int_eq(try_write(&admin, &file, 100, "", 0, 100), 0);
	expect_good(0, 100);
	ck_assert_int_eq(check_data(), 0);
}
END_TEST

/* -- maps -- */

static void expect_far_error(void)
{
	uint8_t byte;

	expect_block(BLOCKS);
	ck_assert_int_eq(read_at(FAR + 7, &byte, 1, 0), -EIO);
	ck_assert_int_gt(fixture_check(), 0);
	fixture_reopen();
	expect_block(BLOCKS);
	ck_assert_int_eq(read_at(FAR + 7, &byte, 1, 0), -EIO);
	/* Blocks of the known part can be written, those of the other cannot. */
	ck_assert_int_eq(try_write(&admin, &file, 5, bytes + 5, 10, UINT64_MAX), 0);
	ck_assert_int_eq(try_write(&admin, &file, FAR, "x", 1, UINT64_MAX), -EIO);
	expect_block(BLOCKS);
	/* It goes with the rest of the file. */
	ck_assert_int_eq(try_write(&admin, &file, LENGTH, "", 0, LENGTH), 0);
	expect_block(BLOCKS);
	ck_assert_int_eq(read_at(LENGTH, &byte, 1, 0), 0);
}

START_TEST(damaged_map)
{
	static const char *const change[] = {
		"UPDATE slot SET data=CAST(substr(data,1,9)||'x'||substr(data,11) AS BLOB)",
		"DELETE FROM slot", "UPDATE slot SET slot=1", "UPDATE slot SET epoch=epoch-1",
		"UPDATE slot SET data=x''"};

	make_file();
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM slot"), 1);
	fixture_sql(change[_i]);
	expect_far_error();
}
END_TEST

/* -- the search for damage -- */

/* How many rows the thread does not find any more. */
static atomic_int vanish_for_scrub;

int __real_db_vnode_get_whole(struct db *db, const struct vnode_key *key, struct version **version);
int __wrap_db_vnode_get_whole(struct db *db, const struct vnode_key *key, struct version **version);

int __wrap_db_vnode_get_whole(struct db *db, const struct vnode_key *key, struct version **version)
{
	char thread[16] = "";

	pthread_getname_np(pthread_self(), thread, sizeof(thread));
	if (!vanish_for_scrub || strcmp(thread, "store-scrub"))
		return __real_db_vnode_get_whole(db, key, version);
	vanish_for_scrub--;
	return -ENOENT;
}

static void await_pass(uint64_t passes)
{
	do {
		usleep(1000);
		store_stats(store, &stats);
	} while (stats.scrub_passes < passes);
}

START_TEST(found_in_background)
{
	uint32_t clone;

	fixture_scrub(3600000);
	make_file();
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &clone), 0);
	ck_assert_int_eq(try_write(&admin, &file, 4 * STORE_BLOCK, "new", 3, UINT64_MAX), 0);
	fixture_close();
	fixture_scrub(1);
	fixture_open_again();
	await_pass(1);
	ck_assert_uint_eq(stats.scrub_damaged, 0);
	/* Both versions, and zeros between. */
	ck_assert_uint_ge(stats.scrubbed_bytes, 2 * LENGTH);
	ck_assert_uint_ne(stats.scrub_last, 0);
	ck_assert_ptr_nonnull(strstr(last_line, "all data were verified"));
	fixture_close();
	flip(8 * STORE_BLOCK + 1, 4);
	/* A week has gone by. */
	fixture_scrub(3600000);
	fixture_open_again();
	fixture_sql("UPDATE number SET value=1 WHERE name='scrub begun'");
	fixture_close();
	fixture_scrub(1);
	fixture_open_again();
	await_pass(1);
	/* Both show it; it is logged once. */
	ck_assert_uint_eq(stats.scrub_damaged, 2);
	ck_assert_int_eq(check_data(), 2);
	ck_assert_ptr_nonnull(strstr(last_line, "2 damaged blocks"));
}
END_TEST

/* -- what cannot be ended -- */

/* The contents that a file is to get back are lost: its volume stays busy, and the store opens with the others. */
START_TEST(half_reverted)
{
	const struct store_new_volume new = {.name = "w"};
	struct store_fid other = {.vnode = STORE_ROOT_VNODE, .unique = STORE_ROOT_UNIQUE}, small;
	uint32_t clone;

	make_file();
	small = make(&root, "small", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &small, 0, "before", 6, UINT64_MAX), 0);
	ck_assert_int_eq(store_volume_create(store, &new, &other.volume), 0);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &clone), 0);
	ck_assert_int_eq(try_write(&admin, &small, 0, "after", 5, UINT64_MAX), 0);
	fixture_sql("DELETE FROM small");
	ck_assert_int_eq(store_volume_revert(store, clone), -EIO);
	for (int i = 0; i < 2; i++) {
		fixture_reopen();
		ck_assert_ptr_nonnull(strstr(last_line, "could not be ended"));
		ck_assert_int_eq(try_status(&user, &root), STORE_VBUSY);
		ck_assert_int_eq(try_status(&admin, &other), 0);
		make(&other, i ? "b" : "a", STORE_FILE);
	}
	/* A dump brings it back. */
	ck_assert_int_eq(store_volume_remove(store, clone), STORE_VBUSY);
	ck_assert_int_eq(store_volume_remove(store, volume), 0);
	fixture_reopen();
	ck_assert_int_eq(try_status(&admin, &root), STORE_VNOVOL);
	ck_assert_int_eq(store_volume_remove(store, clone), STORE_VNOVOL);
	faults_expected = false;
}
END_TEST

/* -- more nameless files than a directory has room for -- */

#define NAMELESS 40000u

static void make_nameless(void)
{
	struct store_fid dir;
	char change[80];

	fixture_open(STORE_LAZY);
	file = make(&root, "lost+found", STORE_FILE);
	dir = make(&root, "d", STORE_DIR);
	for (unsigned i = 0; i < NAMELESS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		file = make(&dir, name, STORE_FILE);
	}
	snprintf(change, sizeof(change), "UPDATE page SET data=zeroblob(2048) WHERE vnode=%u",
		 dir.vnode);
	fixture_sql(change);
	fixture_close();
}

/* Entries of a directory of the root; 0: it is missing. */
static uint64_t measure_names(const char *name)
{
	struct store_status found;
	struct store_fid fid = root;

	if (state_walk(store, volume, name, &fid) ||
	    store->ops->status(store, &admin, &fid, &found) || found.kind != STORE_DIR)
		return 0;
	return found.length / STORE_PAGE;
}

/* They are in several directories, beside a file that has the name of the first one. */
START_TEST(many_nameless)
{
	char source[300], target[300], copy[300];
	struct store_rescue rescue = {.source = source, .target = target, .copy = copy};
	const struct store_options options = {.path = target, .no_reserve = true};

	make_nameless();
	snprintf(source, sizeof(source), "%s", fixture_path());
	snprintf(target, sizeof(target), "%s/../target", fixture_path());
	/* The copy has the names, so it is lost as well. */
	snprintf(copy, sizeof(copy), "%s/../nothing", fixture_path());
	ck_assert_int_eq(mkdir(copy, 0700), 0);
	ck_assert_msg(store_rescue(&rescue, message) == 0, "%s", message);
	ck_assert_uint_eq(rescue.found, NAMELESS);
	ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
	ck_assert_uint_eq(measure_names("lost+found"), 0);
	ck_assert_uint_gt(measure_names("lost+found.2"), 900);
	ck_assert_uint_gt(measure_names("lost+found.3"), 1);
	ck_assert_uint_eq(measure_names("lost+found.4"), 0);
	ck_assert_int_eq(try_status(&admin, &file), 0);
	faults_expected = false;
}
END_TEST

/* A page in the way to the rows of vnodes, far from the first ones. */
static uint32_t find_vnode_leaf(void)
{
	uint32_t page =
		(uint32_t)fixture_rows("SELECT rootpage FROM sqlite_master WHERE name='vnode'");
	char database[400];
	uint8_t node[4096];
	int fd;

	snprintf(database, sizeof(database), "%s/meta/db", fixture_path());
	fixture_close();
	fd = open(database, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	for (;;) {
		unsigned cell, middle;

		ck_assert_int_eq(pread(fd, node, sizeof(node), (off_t)(page - 1) * 4096), 4096);
		/* Of an index or a table, with pages below it. */
		if (node[0] != 2 && node[0] != 5)
			break;
		middle = get16(node + 3) / 2;
		cell = get16(node + 12 + 2 * middle);
		page = get32(node + cell);
	}
	close(fd);
	return page;
}

static void spoil_page(const char *name, uint32_t page)
{
	char database[400];
	int fd;

	snprintf(database, sizeof(database), "%s/%s", fixture_path(), name);
	fd = open(database, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, "xxxxxxxx", 8, (off_t)(page - 1) * 4096 + 2000), 8);
	close(fd);
}

#define MANY 600

/* A page of the table of vnodes is damaged, also in the copy: the pass goes on behind it. */
START_TEST(page_of_vnodes)
{
	struct store_fid last;
	uint32_t page;

	fixture_scrub(3600000);
	make_file();
	for (unsigned i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		last = make(&root, name, STORE_FILE);
	}
	ck_assert_int_eq(try_write(&admin, &last, 0, bytes, LENGTH, 0), 0);
	ck_assert_int_eq(store_flush(store), 0);
	page = find_vnode_leaf();
	spoil_page("meta/db", page);
	spoil_page("copy/db", page);
	fixture_scrub(1);
	fixture_open_again();
	await_pass(1);
	/* Its rows count once. One in a page above may count as well, if the search for it goes through the page. */
	ck_assert_uint_ge(stats.scrub_damaged, 1);
	ck_assert_uint_le(stats.scrub_damaged, 2);
	/* The first file, and the last one. */
	ck_assert_uint_ge(stats.scrubbed_bytes, 2 * LENGTH);
}
END_TEST

/* A row is removed between its being found and its being read: that is not the end of the rows. */
/* -- a circle of directories -- */

/* The directory gets another one above it, and that one the name. */
static void hang_below(struct db *db, const struct store_fid *dir, const struct store_fid *above)
{
	struct vnode_key key = {volume, dir->vnode, UINT32_MAX};
	struct version *version, *changed;
	struct store_pages *pages, *more;

	ck_assert_int_eq(db_vnode_get(db, &key, &version), 0);
	changed = version_copy(version);
	changed->v.parent = above->vnode;
	changed->v.parent_unique = above->unique;
	key.epoch = version->epoch;
	ck_assert_int_eq(db_vnode_update(db, &key, changed), 0);
	version_unref(version);
	version_unref(changed);
	key = (struct vnode_key){volume, above->vnode, UINT32_MAX};
	ck_assert_int_eq(db_directory_get(db, &key, STORE_PAGE, &pages), 0);
	more = store_pages_fork(pages);
	ck_assert_int_eq(store_pages_add(more, "circle", dir->vnode, dir->unique), 0);
	ck_assert_int_eq(db_page_put(db, &key, 0, 0, store_pages_page(more, 0)), 0);
	store_pages_unref(pages);
	store_pages_unref(more);
}

static void make_circle(const struct store_fid *dir, const struct store_fid *below)
{
	struct report report;
	struct store_layer *layer;
	struct store_vfs *vfs;
	struct db_options options = {.path = "meta/db", .cache_kib = 1024, .report = &report};
	struct db *db;

	report_init(&report, NULL, NULL);
	ck_assert_int_eq(store_layer_posix(fixture_path(), &layer), 0);
	ck_assert_int_eq(store_vfs_create(layer, NULL, NULL, &vfs), 0);
	options.vfs = store_vfs_name(vfs);
	options.vfs_errno = store_vfs_errno;
	ck_assert_int_eq(db_open(&options, &db), 0);
	hang_below(db, dir, below);
	db_close(db);
	store_vfs_destroy(vfs);
	layer->ops->destroy(layer);
	report_fini(&report);
}

/* One of them gets a name in lost+found, and loses the other one. */
START_TEST(circle)
{
	char source[300], target[300];
	struct store_rescue rescue = {.source = source, .target = target};
	const struct store_options options = {.path = target, .no_reserve = true};
	struct store_fid dir, below;

	fixture_open(STORE_LAZY);
	dir = make(&root, "dir", STORE_DIR);
	below = make(&dir, "below", STORE_DIR);
	make(&below, "file", STORE_FILE);
	fixture_close();
	make_circle(&dir, &below);
	snprintf(source, sizeof(source), "%s", fixture_path());
	snprintf(target, sizeof(target), "%s/../target", fixture_path());
	ck_assert_msg(store_rescue(&rescue, message) == 0, "%s", message);
	ck_assert_uint_eq(rescue.unread, 0); /* faults of the new store */
	ck_assert_uint_eq(rescue.found, 1);
	ck_assert_uint_eq(rescue.lost, 1);
	ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
	snprintf(source, sizeof(source), "lost+found/dir.%u.%u/below/file", dir.vnode, dir.unique);
	ck_assert_int_eq(state_walk(store, volume, source, &file), 0);
	faults_expected = false;
}
END_TEST

/* -- dumps without what is damaged -- */

static struct store_snapshot *dumped;
static uint8_t stream[65536];
static size_t stream_length, stream_at;

static int write_stream(void *arg, const void *from, size_t length)
{
	(void)arg;
	ck_assert_uint_le(stream_length + length, sizeof(stream));
	memcpy(stream + stream_length, from, length);
	stream_length += length;
	return 0;
}

static ssize_t read_stream(void *arg, void *to, size_t length)
{
	size_t part = stream_length - stream_at < length ? stream_length - stream_at : length;

	(void)arg;
	memcpy(to, stream + stream_at, part);
	stream_at += part;
	return (ssize_t)part;
}

static int dump_damaged(const struct dump_damage *without)
{
	const struct dump_output output = {.write = write_stream};
	const struct dump_base base = {.without = without};
	struct dump_counts counts;
	bool local;
	int result = dump_write(store, dumped, &base, &output, &counts, &local);

	ck_assert(!local);
	return result;
}

static uint32_t restore_stream(void)
{
	const struct dump_input input = {.read = read_stream};
	struct dump_reader *reader;
	struct store_restore *restore;
	struct dump_counts counts;
	struct dump_info info;
	uint64_t nameless;
	uint32_t id;

	ck_assert_msg(!dump_read_begin(store, &input, &reader, &info, message), "%s", message);
	ck_assert_int_eq(store_restore_begin(store, "rest", 0, &restore), 0);
	id = store_restore_id(restore);
	ck_assert_msg(!dump_read_vnodes(reader, restore, &info, &counts), "%s", message);
	ck_assert_msg(!store_restore_finish(restore, &info.header, &nameless, message), "%s",
		      message);
	ck_assert_uint_eq(nameless, 0);
	ck_assert_int_eq(store_restore_end(restore), 0);
	dump_read_end(reader);
	return id;
}

/* What is in a damaged directory goes with it, at any depth; the rest stays. A damaged record is one of an object. */
START_TEST(dump_of_the_rest)
{
	struct dump_damage damage;
	const struct dump_output output = {.write = write_stream};
	struct store_fid dir, below, deep, other, record;
	char change[160];
	uint32_t rest;

	fixture_open(STORE_LAZY);
	other = make(&root, "other", STORE_DIR);
	make(&other, "kept", STORE_FILE);
	record = make(&other, "record", STORE_FILE);
	dir = make(&root, "dir", STORE_DIR);
	below = make(&dir, "below", STORE_DIR);
	deep = make(&below, "deep", STORE_DIR);
	file = make(&deep, "file", STORE_FILE);
	snprintf(change, sizeof(change),
		 "UPDATE page SET data=zeroblob(2048) WHERE vnode=%u;"
		 "UPDATE vnode SET record=zeroblob(80) WHERE vnode=%u",
		 dir.vnode, record.vnode);
	fixture_sql(change);
	ck_assert_int_eq(store_snapshot_take(store, volume, 0, &dumped), 0);
	ck_assert_int_eq(dump_damaged(NULL), -EIO);
	ck_assert_int_eq(dump_find_damage(store, dumped, &output, &damage), 0);
	ck_assert_uint_eq(damage.count, 5);
	ck_assert(dump_is_damaged(&damage, dir.vnode) && dump_is_damaged(&damage, below.vnode));
	ck_assert(dump_is_damaged(&damage, deep.vnode) && dump_is_damaged(&damage, file.vnode));
	ck_assert(dump_is_damaged(&damage, record.vnode));
	stream_length = 0;
	ck_assert_int_eq(dump_damaged(&damage), 0);
	dump_forget_damage(&damage);
	ck_assert_int_eq(store_snapshot_end(dumped), 0);
	rest = restore_stream();
	ck_assert_int_eq(state_walk(store, rest, "other/kept", &file), 0);
	ck_assert_int_eq(state_walk(store, rest, "other/record", &file), -ENOENT);
	ck_assert_int_eq(state_walk(store, rest, "dir", &file), -ENOENT);
	ck_assert_int_eq(store_volume_remove(store, volume), 0);
	fixture_pruned();
	faults_expected = false;
}
END_TEST

START_TEST(row_removed_meanwhile)
{
	fixture_scrub(3600000);
	make_file();
	fixture_close();
	vanish_for_scrub = 1; /* the root directory */
	fixture_scrub(1);
	fixture_open_again();
	await_pass(1);
	ck_assert_int_eq(vanish_for_scrub, 0);
	ck_assert_uint_ge(stats.scrubbed_bytes, LENGTH);
	ck_assert_uint_eq(stats.scrub_damaged, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {lost_flush,
				      cut_file,
				      damage_later,
				      cut_and_grown,
				      found_in_background,
				      half_reverted,
				      many_nameless,
				      page_of_vnodes,
				      row_removed_meanwhile,
				      dump_of_the_rest,
				      circle};
	Suite *suite = suite_create("damage");
	TCase *tcase = tcase_create("damage");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, flipped_bit, 0, 4);
	tcase_add_loop_test(tcase, damaged_map, 0, 5);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
