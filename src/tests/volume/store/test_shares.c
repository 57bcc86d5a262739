/* SPDX-License-Identifier: BSD-2-Clause */
/* One caller cannot take from others: the work of an operation in the commit is bounded, and space is shared. */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "volume/store/db/db.h"
#include "tests/main.h"
#include "tests/volume/store/spy.h"
#include "tests/volume/store/store_fixture.h"

/* -- directories are read before the transaction, once -- */

#define NAMES	 600 /* more than 16 pages */
#define TOGETHER 8

static void fill_directory(const struct store_fid *dir)
{
	char name[16];

	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		make(dir, name, STORE_FILE);
	}
}

static uint64_t directories_read(void)
{
	store_stats(store, &stats);
	return stats.directories;
}

static struct store_fid cold;
static pthread_barrier_t start;

static void *read_cold(void *arg)
{
	struct store_status seen;
	struct store_reader *reader;

	(void)arg;
	pthread_barrier_wait(&start);
	ck_assert_int_eq(store->ops->read_begin(store, &admin, &cold, &reader, &seen), 0);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	return NULL;
}

START_TEST(cold_directories)
{
	pthread_t thread[TOGETHER];
	struct store_fid other;

	fixture_open(STORE_LAZY);
	cold = make(&root, "d", STORE_DIR);
	other = make(&root, "e", STORE_DIR);
	fill_directory(&cold);
	/* The thread of the caller reads it; the transaction only finds what is in memory. */
	fixture_reopen();
	make(&cold, "one more", STORE_FILE);
	ck_assert_uint_eq(directories_read(), 1);
	make(&cold, "another", STORE_FILE);
	ck_assert_uint_eq(directories_read(), 1);
	/* Both directories of a rename. */
	fixture_reopen();
	ck_assert_int_eq(try_rename(&admin, &cold, "n1", &other, "n1"), 0);
	ck_assert_uint_eq(directories_read(), 2);
	fixture_reopen();
	ck_assert_int_eq(try_remove(&admin, &cold, "n2", STORE_FILE), 0);
	ck_assert_int_eq(try_remove(&admin, &cold, "n2", STORE_FILE), -ENOENT);
	ck_assert_uint_eq(directories_read(), 1);
	/* Readers at the same time share the work. */
	fixture_reopen();
	pthread_barrier_init(&start, NULL, TOGETHER);
	for (int i = 0; i < TOGETHER; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_cold, NULL), 0);
	for (int i = 0; i < TOGETHER; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&start);
	ck_assert_uint_eq(directories_read(), 1);
}
END_TEST

/* What an operation has read is there for its transaction, although the cache has no room for it. */
START_TEST(no_room_in_cache)
{
	struct store_fid dir;

	fixture_memory(16);
	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	fill_directory(&dir);
	fixture_reopen();
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(try_remove(&admin, &dir, "n7", STORE_FILE), i ? -ENOENT : 0);
	ck_assert_uint_ge(directories_read(), 1);
}
END_TEST

static size_t memory_of_caches(void)
{
	store_stats(store, &stats);
	return stats.memory;
}

/* A copy reads each small file once, and drives nothing out of the cache. */
START_TEST(small_contents_read_again)
{
	static const char text[3000] = "small";
	struct store_fid file;
	size_t before;

	fixture_open(STORE_LAZY);
	file = make(&root, "f", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, 0, text, sizeof(text), sizeof(text)), 0);
	fixture_reopen();
	ck_assert_int_eq(try_status(&admin, &file), 0);
	before = memory_of_caches();
	fixture_same(&file, text, sizeof(text));
	ck_assert_uint_eq(memory_of_caches(), before);
	for (int i = 0; i < 2; i++) {
		fixture_same(&file, text, sizeof(text));
		ck_assert_uint_ge(memory_of_caches(), before + sizeof(text));
		ck_assert_uint_lt(memory_of_caches(), before + 2 * sizeof(text));
	}
}
END_TEST

/* -- a submitted operation -- */

static struct store_later later;
static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t later_ended = PTHREAD_COND_INITIALIZER;
static bool has_ended;

static bool leave(struct store_later *of)
{
	(void)of;
	return true;
}

static void done(struct store_later *list)
{
	(void)list;
	pthread_mutex_lock(&later_lock);
	has_ended = true;
	pthread_cond_signal(&later_ended);
	pthread_mutex_unlock(&later_lock);
}

START_TEST(cold_and_submitted)
{
	struct store_caller caller = admin;
	struct store_fid dir;

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	fixture_reopen();
	later = (struct store_later){.leave = leave, .done = done};
	caller.later = &later;
	ck_assert_int_eq(store->ops->create(store, &caller, &dir, "f", STORE_FILE, NULL, &nothing,
					    &status, &dir_status, &changes),
			 STORE_LATER);
	pthread_mutex_lock(&later_lock);
	while (!has_ended)
		pthread_cond_wait(&later_ended, &later_lock);
	pthread_mutex_unlock(&later_lock);
	/* The thread of the commit has read nothing, and changed nothing. */
	ck_assert_int_eq(later.result, STORE_AGAIN);
	ck_assert_uint_eq(directories_read(), 0);
	make(&dir, "f", STORE_FILE);
}
END_TEST

/* -- space is promised a step ahead of the bytes that came -- */

#define DISK_KIB (64u << 10)
#define LOG_KIB	 64 /* that the log of the database grows meanwhile, at most */

static uint64_t disk_used; /* KiB */

static int small_disk(struct store_layer *layer, uint64_t *available, uint64_t *total)
{
	(void)layer;
	*total = (uint64_t)DISK_KIB << 10;
	*available = (DISK_KIB - disk_used) << 10;
	return 0;
}

static uint64_t available(void)
{
	struct store_space space;

	ck_assert_int_eq(store->ops->space(store, &space), 0);
	return space.available_kib;
}

static void send_some(struct store_writer *writer, size_t length)
{
	static uint8_t bytes[2 << 20];
	struct iovec iov = {bytes, length};

	ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	disk_used += length >> 10;
}

START_TEST(promised_disk)
{
	struct store_layer_ops ops;
	struct store_writer *greedy;
	struct store_fid file, other;
	struct spy *spy;
	uint64_t before;

	fixture_open(STORE_LAZY);
	fixture_close();
	spy = spy_on(fixture_path());
	ops = *spy->layer.ops;
	ops.space = small_disk;
	spy->layer.ops = &ops;
	fixture_layer(&spy->layer);
	fixture_open_again();
	file = make(&root, "f", STORE_FILE);
	other = make(&root, "g", STORE_FILE);
	before = available();
	/* A client announces all that is free, and sends nothing. */
	ck_assert_int_eq(try_begin(&admin, &file, 0, before << 10, 0, &greedy), 0);
	ck_assert_uint_ge(available(), before - 256 - LOG_KIB);
	make(&root, "h", STORE_FILE);
	/* Then it sends some: at most as much again is kept for it. */
	send_some(greedy, 2 << 20);
	ck_assert_uint_ge(available(), before - 2 * 2048 - LOG_KIB);
	ck_assert_uint_lt(available(), before - 2048);
	store->ops->write_abort(greedy);
	disk_used = 0;
	ck_assert_uint_ge(available(), before - LOG_KIB);
	/* What does not fit is refused before its bytes come. */
	ck_assert_int_eq(try_begin(&admin, &other, 0, (before + 1) << 10, 0, &greedy),
			 STORE_VDISKFULL);
	/* Holes need no space: a file may be longer than the disk. */
	ck_assert_int_eq(try_write(&admin, &other, (uint64_t)DISK_KIB << 20, "end", 3, 0), 0);
	ck_assert_uint_eq(status.length, ((uint64_t)DISK_KIB << 20) + 3);
	ck_assert_int_eq(try_write(&admin, &other, 0, "begin", 5, status.length), 0);
	ck_assert_uint_eq(status.length, ((uint64_t)DISK_KIB << 20) + 3);
	/* Nor if another client makes one of what was there. */
	ck_assert_int_eq(try_begin(&admin, &other, (uint64_t)DISK_KIB << 20, 3, status.length,
				   &greedy),
			 0);
	send_some(greedy, 3);
	ck_assert_int_eq(try_write(&admin, &other, 0, "", 0, 0), 0);
	ck_assert_int_eq(store->ops->write_commit(greedy, &status, &changes), 0);
	ck_assert_uint_eq(status.length, ((uint64_t)DISK_KIB << 20) + 3);
	fixture_close();
	spy_free(spy);
	fixture_layer(NULL);
	fixture_open_again();
}
END_TEST

START_TEST(promised_quota)
{
	static uint8_t bytes[2 << 20];
	struct store_volume values = {.quota_kib = 20 << 10};
	struct store_writer *one, *two;
	struct store_fid file, other;
	unsigned sent = 0;
	int result = 0;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store->ops->volume_set(store, &admin, volume, 1, &values), 0);
	file = make(&root, "f", STORE_FILE);
	other = make(&root, "g", STORE_FILE);
	ck_assert_int_eq(try_begin(&admin, &file, 0, 19 << 20, 0, &one), 0);
	ck_assert_int_eq(try_begin(&admin, &other, 0, 19 << 20, 0, &two), 0);
	store->ops->write_abort(two);
	ck_assert_int_eq(try_write(&admin, &other, 0, bytes, sizeof(bytes), 0), 0);
	/* So the first one does not fit any more. */
	for (int i = 0; i < 4; i++)
		send_some(one, 2 << 20);
	while (!result) {
		result = store->ops->write(one, &(struct iovec){bytes, 1 << 20}, 1);
		ck_assert_uint_lt(sent++, 11);
	}
	ck_assert_int_eq(result, STORE_VOVERQUOTA);
	store->ops->write_abort(one);
	fixture_volume(volume);
	ck_assert_uint_lt(about.used_kib, 3 << 10);
}
END_TEST

/* Of two writers that fit one by one, one is promised the space, whatever the order of their steps. */
static struct store_fid rivals[2];
static int fits;

static void *compete(void *arg)
{
	struct store_writer *writer;
	const struct store_fid *file = arg;

	for (int i = 0; i < 500; i++) {
		bool begun = !try_begin(&admin, file, 0, 900 << 10, 0, &writer);
		static uint8_t bytes[900 << 10];
		struct iovec iov = {bytes, sizeof(bytes)};
		struct store_changes told = {0};
		struct store_status seen;

		pthread_barrier_wait(&start);
		if (begun && !store->ops->write(writer, &iov, 1))
			__atomic_add_fetch(&fits, !store->ops->write_commit(writer, &seen, &told),
					   __ATOMIC_RELAXED);
		else if (begun)
			store->ops->write_abort(writer);
		pthread_barrier_wait(&start);
		if (file == &rivals[0]) {
			ck_assert_int_eq(fits, 1);
			fits = 0;
			for (int k = 0; k < 2; k++)
				ck_assert_int_eq(try_write(&admin, &rivals[k], 0, bytes, 0, 0), 0);
		}
		pthread_barrier_wait(&start);
	}
	return NULL;
}

START_TEST(rival_writers)
{
	struct store_volume values = {.quota_kib = 100};
	pthread_t thread;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store->ops->volume_set(store, &admin, volume, 1, &values), 0);
	rivals[0] = make(&root, "f", STORE_FILE);
	rivals[1] = make(&root, "g", STORE_FILE);
	pthread_barrier_init(&start, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, compete, &rivals[1]), 0);
	compete(&rivals[0]);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&start);
}
END_TEST

/* -- a slow reader keeps the objects of its own version only -- */

#define EXTENTS 80 /* more than a view opens at once */
#define STEP	(128u << 10)
#define LARGE	100000 /* bytes, which need an object */

static struct store_fid make_scattered(const char *name)
{
	struct store_fid file = make(&root, name, STORE_FILE);

	/* In descending order, so that each has an object of its own. */
	for (uint64_t i = EXTENTS; i--;)
		ck_assert_int_eq(try_write(&admin, &file, i * STEP, "x", 1, EXTENTS * STEP), 0);
	return file;
}

static int files; /* of objects, those in use as well */

static int count_object(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	files += type == FTW_F && strstr(path, "/files/");
	return 0;
}

/* Wait until there are so many: what nobody refers to is gone, but for what is kept. */
static void await_objects(int kept)
{
	do {
		ck_assert_int_eq(store_flush(store), 0);
		files = 0;
		nftw(fixture_path(), count_object, 16, FTW_PHYS);
	} while (files != kept);
}

START_TEST(slow_reader)
{
	static uint8_t bytes[LARGE];
	struct store_fid slow, other;
	struct store_reader *reader;
	struct iovec iov = {bytes, 1};

	fixture_open(STORE_LAZY);
	slow = make_scattered("slow");
	other = make(&root, "other", STORE_FILE);
	await_objects(EXTENTS);
	ck_assert_int_eq(store->ops->read_begin(store, &admin, &slow, &reader, &status), 0);
	/* Another file. */
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(try_write(&admin, &other, 0, bytes, LARGE, 0), 0);
	await_objects(EXTENTS + 1);
	/* And what the same file has had since. */
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(try_write(&admin, &slow, 0, bytes, LARGE, 0), 0);
	await_objects(EXTENTS + 2);
	ck_assert_int_eq(store->ops->read(reader, &iov, 1, STEP, 0), 1);
	ck_assert_int_eq(bytes[0], 'x');
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	await_objects(2);
}
END_TEST

/* -- what goes, goes in steps -- */

#define OBJECTS 600

static struct store_fid make_many(const char *name)
{
	struct store_fid file = make(&root, name, STORE_FILE);

	for (uint64_t i = OBJECTS; i--;)
		ck_assert_int_eq(try_write(&admin, &file, i * STEP, "x", 1, OBJECTS * STEP), 0);
	await_objects(OBJECTS);
	return file;
}

static uint64_t commits(void)
{
	store_stats(store, &stats);
	return stats.commits;
}

/* So many objects need several commits, to be dead, and to be forgotten. */
static void expect_steps(uint64_t before)
{
	fixture_pruned();
	await_objects(0);
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_uint_ge(commits(), before + 1 + 2 * (OBJECTS / 256));
}

START_TEST(many_objects)
{
	struct store_fid file;
	uint64_t before;
	uint32_t clone;

	fixture_open(STORE_LAZY);
	file = make_many("a");
	before = commits();
	ck_assert_int_eq(try_remove(&admin, &root, "a", STORE_FILE), 0);
	expect_steps(before);
	/* Cut to nothing, and written again. */
	file = make_many("b");
	before = commits();
	ck_assert_int_eq(try_write(&admin, &file, 0, "", 0, 0), 0);
	ck_assert_int_eq(try_write(&admin, &file, 0, "again", 5, 5), 0);
	expect_steps(before);
	fixture_same(&file, "again", 5);
	/* With a clone, which shows them until it goes. */
	file = make_many("c");
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &clone), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "c", STORE_FILE), 0);
	fixture_pruned();
	before = commits();
	ck_assert_int_eq(store_volume_remove(store, clone), 0);
	expect_steps(before);
	/* The server stops in between. */
	file = make_many("d");
	ck_assert_int_eq(try_remove(&admin, &root, "d", STORE_FILE), 0);
	fixture_reopen();
	fixture_pruned();
	await_objects(0);
}
END_TEST

/* -- what the background removes: no commit has more than a step -- */

#define ROWS_MOST 1200 /* of the database, in one commit */

static uint32_t most_rows(void)
{
	struct store_commit_costs costs;

	store_commit_costs(store, &costs);
	return costs.rows;
}

/* Names of 250 bytes: seven in a page. */
static void fill_pages(const struct store_fid *dir, unsigned pages)
{
	struct store_fid file = make(dir, "file", STORE_FILE);
	char name[256];

	for (unsigned i = 0; i < 7 * pages; i++) {
		snprintf(name, sizeof(name), "%0250u", i);
		ck_assert_int_eq(try_link(&admin, dir, name, &file), 0);
	}
}

START_TEST(large_directories)
{
	struct store_new_volume new = {.name = "large"};
	struct store_fid top = {0, 1, 1}, dir;
	char name[8];

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_create(store, &new, &top.volume), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		dir = make(&top, name, STORE_DIR);
		fill_pages(&dir, 400);
	}
	most_rows();
	ck_assert_int_eq(store_volume_remove(store, top.volume), 0);
	fixture_pruned();
	ck_assert_uint_lt(most_rows(), ROWS_MOST);
	/* The largest step is the one that was counted. */
	ck_assert_uint_gt(fixture_rows("SELECT count(*) FROM page"), 0);
	ck_assert_uint_lt(fixture_rows("SELECT count(*) FROM page"), 4);
}
END_TEST

#define CYCLES 100

/* Clones are replaced faster than the background prunes: it does nothing meanwhile. */
START_TEST(many_clones)
{
	struct store_fid file;
	struct spy *spy;
	uint32_t clone;

	fixture_open(STORE_LAZY);
	fixture_close();
	spy = spy_on(fixture_path());
	fixture_layer(&spy->layer);
	fixture_open_again();
	file = make(&root, "f", STORE_FILE);
	spy_hold(spy, SPY_FILES);
	spy_await_held(spy);
	most_rows();
	for (int i = 0; i < CYCLES; i++) {
		ck_assert_int_eq(try_write(&admin, &file, 0, "x", 1, 0), 0);
		ck_assert_int_eq(
			store_volume_clone(store, volume, i & 1 ? STORE_BACKUP : STORE_RO, &clone),
			0);
	}
	ck_assert_int_eq(try_remove(&admin, &root, "f", STORE_FILE), 0);
	spy_hold(spy, 0);
	fixture_pruned();
	ck_assert_uint_lt(most_rows(), ROWS_MOST);
	fixture_close();
	spy_free(spy);
	fixture_layer(NULL);
	fixture_open_again();
	/* Two clones, which have the file, and what says that it is gone. */
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM vnode WHERE vnode=2"), 3);
}
END_TEST

static atomic_bool enough;

/* Others have commits, too, so that the background is woken late. */
static void *change_little(void *arg)
{
	while (!enough) {
		make(&root, "little", STORE_FILE);
		ck_assert_int_eq(try_remove(&admin, &root, "little", STORE_FILE), 0);
	}
	return arg;
}

static void recreate_volume(struct store_new_volume *new)
{
	int result;

	ck_assert_int_eq(store_volume_remove(store, new->id), 0);
	do {
		result = store_volume_create(store, new, &new->id);
	} while (result == STORE_VBUSY);
	ck_assert_int_eq(result, 0);
}

/* A new volume with the number of a removed one, of which the cache has more than a step. */
START_TEST(cached_volume_again)
{
	struct store_new_volume new = {.name = "again"};
	struct store_fid top = {0, 1, 1}, dir, file;
	pthread_t thread;

	fixture_open(STORE_LAZY);
	ck_assert_int_eq(store_volume_create(store, &new, &top.volume), 0);
	new.id = top.volume;
	for (int i = 0; i < 40; i++) {
		char name[8];

		snprintf(name, sizeof(name), "d%d", i);
		dir = make(&top, name, STORE_DIR);
		fill_directory(&dir);
	}
	file = make(&dir, "f", STORE_FILE);
	recreate_volume(&new);
	fixture_pruned();
	store_stats(store, &stats);
	ck_assert_uint_lt(stats.memory, 1u << 20);
	ck_assert_int_eq(try_status(&admin, &file), STORE_VNOVNODE);
	ck_assert_int_eq(try_status(&admin, &top), 0);
	ck_assert_uint_eq(status.links, 2);
	/* Nothing was ever made in these. */
	new = (struct store_new_volume){.name = "empty"};
	ck_assert_int_eq(store_volume_create(store, &new, &new.id), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, change_little, NULL), 0);
	for (int i = 0; i < 200; i++)
		recreate_volume(&new);
	enough = true;
	pthread_join(thread, NULL);
}
END_TEST

/* The removal of a volume without rows waits behind others, while its number is used again. */
START_TEST(removed_volume_again)
{
	struct store_new_volume new = {.name = "again", .id = 1600};
	struct store_fid top = {1600, 1, 1};

	fixture_open(STORE_LAZY);
	fixture_sql(
		"WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1600) "
		"INSERT INTO prune(grp, epoch, done_epoch, done_vnode) SELECT i, 0, 0, 0 FROM n");
	ck_assert_int_eq(store_volume_create(store, &new, &new.id), 0);
	fixture_pruned();
	fixture_reopen();
	ck_assert_int_eq(try_status(&admin, &top), 0);
}
END_TEST

/* -- the parts of a check see different versions of the store -- */

static void change_everything(unsigned i)
{
	static uint8_t bytes[LARGE];
	struct store_new_volume new = {.name = "short-lived"};
	struct store_fid top = {0, 1, 1}, dir, file, other;
	uint32_t clone;

	ck_assert_int_eq(store_volume_create(store, &new, &top.volume), 0);
	dir = make(&top, "d", STORE_DIR);
	file = make(&dir, "f", STORE_FILE);
	other = make(&root, "f", STORE_FILE);
	for (int k = 0; k < 3; k++) {
		ck_assert_int_eq(try_write(&admin, &file, 0, bytes, LARGE, 0), 0);
		ck_assert_int_eq(try_write(&admin, &other, 0, bytes, 100, 0), 0);
		ck_assert_int_eq(store_volume_clone(store, k & 1 ? volume : top.volume,
						    i & 1 ? STORE_RO : STORE_BACKUP, &clone),
				 0);
		ck_assert_int_eq(try_set(&admin, &other, STORE_SET_MODE, 0600), 0);
	}
	ck_assert_int_eq(try_rename(&admin, &root, "f", &root, "g"), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "g", STORE_FILE), 0);
	ck_assert_int_eq(try_remove(&admin, &dir, "f", STORE_FILE), 0);
	ck_assert_int_eq(store_volume_remove(store, clone), 0);
	ck_assert_int_eq(store_volume_remove(store, top.volume), 0);
}

static void *change_until_enough(void *arg)
{
	for (unsigned i = 0; !enough; i++)
		change_everything(i);
	return arg;
}

START_TEST(check_beside_changes)
{
	pthread_t thread;
	char name[8];

	fixture_open(STORE_LAZY);
	for (int i = 0; i < 20; i++) {
		struct store_new_volume new = {.name = name};
		struct store_fid top = {0, 1, 1};

		snprintf(name, sizeof(name), "v%d", i);
		ck_assert_int_eq(store_volume_create(store, &new, &top.volume), 0);
		make(&top, "f", STORE_FILE);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, change_until_enough, NULL), 0);
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(fixture_check(), 0);
	enough = true;
	pthread_join(thread, NULL);
}
END_TEST

/* -- a deep tree is not walked in the transaction -- */

#define DEPTH 400

START_TEST(deep_rename)
{
	struct store_fid dir[DEPTH], other;
	uint64_t misses;

	fixture_open(STORE_LAZY);
	dir[0] = make(&root, "top", STORE_DIR);
	for (int i = 1; i < DEPTH; i++)
		dir[i] = make(&dir[i - 1], "d", STORE_DIR);
	other = make(&root, "other", STORE_DIR);
	make(&other, "a", STORE_DIR);
	make(&other, "b", STORE_DIR);
	fixture_reopen();
	ck_assert_int_eq(try_rename(&admin, &other, "a", &dir[DEPTH - 1], "a"), 0);
	/* Readers have the tree in their cache by now; the walks of a transaction are forgotten. */
	store_stats(store, &stats);
	misses = stats.status_misses;
	ck_assert_int_eq(try_rename(&admin, &other, "b", &dir[DEPTH - 1], "b"), 0);
	store_stats(store, &stats);
	ck_assert_uint_lt(stats.status_misses - misses, 100);
	/* Below itself, near and far. */
	ck_assert_int_eq(try_rename(&admin, &dir[DEPTH - 9], "d", &dir[DEPTH - 1], "x"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &root, "top", &dir[DEPTH - 1], "x"), -EINVAL);
	ck_assert_int_eq(try_rename(&admin, &dir[3], "d", &dir[DEPTH - 1], "x"), -EINVAL);
	/* Somewhere else it is allowed, whatever was found before. */
	ck_assert_int_eq(try_rename(&admin, &dir[100], "d", &root, "half"), 0);
	ck_assert_int_eq(try_rename(&admin, &root, "top", &dir[DEPTH - 1], "x"), 0);
	ck_assert_int_eq(try_rename(&admin, &root, "half", &dir[100], "x"), -EINVAL);
}
END_TEST

/* -- two directories, each below the other -- */

#define ROUNDS 200
#define BELOW  100

struct mover {
	struct store_fid to;
	const char *name, *new_name; /* in the root; below `to` */
	int result;
};

/* After the commit, before others see it. */
static void linger(void *arg, const struct store_changes *changed)
{
	(void)arg;
	(void)changed;
	usleep(2000);
}

static void *move(void *arg)
{
	struct store_caller caller = admin;
	struct store_status from, to;
	struct store_changes changed;
	struct mover *mover = arg;

	caller.changed = linger;
	pthread_barrier_wait(&start);
	mover->result = store->ops->rename(store, &caller, &root, mover->name, &mover->to,
					   mover->new_name, &from, &to, &changed);
	return NULL;
}

static struct store_fid make_chain(const char *name)
{
	struct store_fid dir = make(&root, name, STORE_DIR);

	for (int i = 0; i < BELOW; i++)
		dir = make(&dir, "d", STORE_DIR);
	return dir;
}

START_TEST(crossed_renames)
{
	struct mover mover[2] = {{.name = "a", .new_name = "x"}, {.name = "b", .new_name = "y"}};
	pthread_t thread[2];

	fixture_open(STORE_LAZY);
	mover[1].to = make_chain("a");
	mover[0].to = make_chain("b");
	for (int i = 0; i < ROUNDS; i++) {
		int won;

		pthread_barrier_init(&start, NULL, 2);
		for (int k = 0; k < 2; k++)
			ck_assert_int_eq(pthread_create(&thread[k], NULL, move, &mover[k]), 0);
		for (int k = 0; k < 2; k++)
			pthread_join(thread[k], NULL);
		pthread_barrier_destroy(&start);
		won = mover[0].result ? 1 : 0;
		ck_assert_int_eq(mover[won].result, 0);
		ck_assert_int_ne(mover[!won].result, 0);
		ck_assert_int_eq(try_rename(&admin, &mover[won].to, mover[won].new_name, &root,
					    mover[won].name),
				 0);
	}
}
END_TEST

/* -- volumes, by id -- */

static void expect_volumes(uint32_t read_only)
{
	struct store_volume by_place;
	struct store_totals totals, counted = {0};

	about.id = 0;
	while (!store->ops->volume_next(store, about.id, &about)) {
		ck_assert_uint_gt(about.id, counted.last);
		ck_assert_int_eq(store->ops->volume_at(store, counted.count, &by_place), 0);
		ck_assert_uint_eq(by_place.id, about.id);
		counted.count++;
		counted.of_type[about.type]++;
		counted.last = about.id;
	}
	ck_assert_int_eq(store->ops->volume_at(store, counted.count, &by_place), STORE_VNOVOL);
	counted.plain = counted.count;
	store->ops->totals(store, &totals);
	ck_assert_mem_eq(&totals, &counted, sizeof(totals));
	ck_assert_uint_eq(totals.of_type[STORE_RO], read_only);
}

START_TEST(ordered_volumes)
{
	struct store_new_volume new = {.name = "n"};
	char name[16];
	uint32_t id, first, clone;

	fixture_open(STORE_LAZY);
	/* In no order, and among them ids that are kept for clones of others, which are refused. */
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		new.name = name;
		new.id = 1 + i * 17 % 41;
		ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	}
	new.name = "first";
	new.id = 0;
	ck_assert_int_eq(store_volume_create(store, &new, &first), 0);
	new.name = "kept";
	for (uint32_t i = 0; i < 3; i++) {
		new.id = first + i;
		ck_assert_int_eq(store_volume_create(store, &new, &id), STORE_VVOLEXISTS);
	}
	new.id = first + 3;
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	expect_volumes(0);
	ck_assert_int_eq(store_volume_clone(store, first, STORE_RO, &clone), 0);
	ck_assert_int_eq(store_volume_clone(store, 7, STORE_RO, &id), 0);
	ck_assert_uint_eq(clone, first + 1);
	expect_volumes(2);
	fixture_reopen();
	expect_volumes(2);
	ck_assert_int_eq(store_volume_remove(store, clone), 0);
	ck_assert_int_eq(store_volume_remove(store, first), 0);
	expect_volumes(1);
	/* Its ids are free again. */
	fixture_pruned();
	new.name = "again";
	new.id = clone;
	ck_assert_int_eq(store_volume_create(store, &new, &id), 0);
	expect_volumes(1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		cold_directories,     no_room_in_cache,	   small_contents_read_again,
		cold_and_submitted,   promised_disk,	   promised_quota,
		rival_writers,	      slow_reader,	   ordered_volumes,
		many_objects,	      deep_rename,	   crossed_renames,
		large_directories,    many_clones,	   cached_volume_again,
		removed_volume_again, check_beside_changes};
	Suite *suite = suite_create("shares");
	TCase *tcase = tcase_create("shares");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
