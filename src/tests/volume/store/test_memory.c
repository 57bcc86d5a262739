/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store without memory: each allocation of an operation fails in turn, those of SQLite included;
 * then those of the thread in the background. The operation is done or reports -ENOMEM and has
 * changed nothing, the store goes on, the checker finds no fault, and all memory is given back.
 */
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"

#define LARGE 20000
#define MANY  60000 /* allocations of one operation: more than any has */

/* The thread sanitizer needs the better part of an hour for all of them, and few concern several threads. */
#ifdef __SANITIZE_THREAD__
#	define STEP 11
#else
#	define STEP 1
#endif
static long step = STEP; /* STORE_ALLOCATIONS=4: every fourth one fails in turn */

/* -- allocations: --wrap leads those of the store here -- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t most);
int __real_posix_memalign(void **memory, size_t align, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t items, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
int __wrap_posix_memalign(void **memory, size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *memory);

enum who {
	NOBODY,
	CALLER,
	OTHERS /* all threads but the caller */
};
static pthread_t caller;
static _Atomic enum who who;
static atomic_long left;   /* allocations that succeed before those that fail */
static atomic_long failed; /* how many did */
static long most;	   /* that fail */
static atomic_long blocks; /* in use */

static bool fails(void)
{
	enum who now = atomic_load(&who);

	if (now == NOBODY || crashdisk_allocates ||
	    (now == CALLER) != (pthread_equal(caller, pthread_self()) != 0) ||
	    atomic_fetch_sub(&left, 1) > 0 || atomic_load(&failed) >= most)
		return false;
	atomic_fetch_add(&failed, 1);
	return true;
}

static void *count(void *memory)
{
	if (memory)
		atomic_fetch_add(&blocks, 1);
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t items, size_t size)
{
	return fails() ? NULL : count(__real_calloc(items, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	if (fails())
		return NULL;
	return old ? __real_realloc(old, size) : count(__real_malloc(size));
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : count(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t length)
{
	return fails() ? NULL : count(__real_strndup(text, length));
}

int __wrap_posix_memalign(void **memory, size_t align, size_t size)
{
	int rc = fails() ? ENOMEM : __real_posix_memalign(memory, align, size);

	if (!rc)
		count(*memory);
	return rc;
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : count(__real_aligned_alloc(align, size));
}

void __wrap_free(void *memory)
{
	if (memory)
		atomic_fetch_sub(&blocks, 1);
	__real_free(memory);
}

static sqlite3_mem_methods sqlite;

static void *sqlite_malloc(int size)
{
	return fails() ? NULL : sqlite.xMalloc(size);
}

static void *sqlite_realloc(void *old, int size)
{
	return fails() ? NULL : sqlite.xRealloc(old, size);
}

static void wrap_sqlite(void)
{
	sqlite3_mem_methods methods;

	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite);
	methods = sqlite;
	methods.xMalloc = sqlite_malloc;
	methods.xRealloc = sqlite_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
	/* Every allocation, also small ones. */
	sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
}

static void arm(enum who whose, long succeed, long fail)
{
	caller = pthread_self();
	atomic_store(&left, succeed);
	atomic_store(&failed, 0);
	most = fail;
	atomic_store(&who, whose);
}

/* How many allocations failed. */
static long disarm(void)
{
	atomic_store(&who, NOBODY);
	return atomic_load(&failed);
}

/* -- the disk that every run begins with -- */

static uint32_t volume;
static bool scattered; /* the blocks of "a" lie in several objects */

static struct crashdisk *make_disk(void)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store *store = diskstore_make(disk, &layer, &volume);

	ck_assert_int_eq(state_create(store, volume, "a", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "a", 0, LARGE, LARGE, 9), 0);
	/* The same bytes. */
	for (uint64_t i = 0; scattered && i < 40; i++)
		ck_assert_int_eq(state_write(store, volume, "a", 500 * (i * 7 % 40) + 100, 100,
					     LARGE, 9),
				 0);
	ck_assert_int_eq(state_create(store, volume, "d", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_create(store, volume, "s", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "s", 0, 100, 100, 2), 0);
	for (unsigned i = 0; i < 20; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d/file-%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_FILE, NULL), 0);
	}
	diskstore_close(store, layer);
	return disk;
}

/* -- operations that change something -- */

static int op_create(struct store *s)
{
	return state_create(s, volume, "d/b", STORE_FILE, NULL);
}

static int op_symlink(struct store *s)
{
	return state_create(s, volume, "l", STORE_SYMLINK, "some/where");
}

static int op_mkdir(struct store *s)
{
	return state_create(s, volume, "d/e", STORE_DIR, NULL);
}

static int op_small(struct store *s)
{
	return state_write(s, volume, "s", 50, 100, 150, 1);
}

static int op_grow(struct store *s)
{
	return state_write(s, volume, "s", 50, LARGE, LARGE, 1);
}

static int op_middle(struct store *s)
{
	return state_write(s, volume, "a", 5000, 3000, LARGE, 3);
}

static int op_append(struct store *s)
{
	return state_write(s, volume, "a", LARGE, 9000, LARGE + 9000, 4);
}

static int op_cut(struct store *s)
{
	return state_write(s, volume, "a", 10, 0, 10, 0);
}

static int op_replace(struct store *s)
{
	return state_rename(s, volume, "d/file-3", "a");
}

static int op_remove(struct store *s)
{
	return state_remove(s, volume, "a", STORE_FILE);
}

static int op_link(struct store *s)
{
	return state_link(s, volume, "other", "a");
}

static int op_chmod(struct store *s)
{
	return state_chmod(s, volume, "a", 0600);
}

static int op_acl(struct store *s)
{
	return state_acl(s, volume, "d", STORE_ANYUSER, STORE_READ | STORE_LOOKUP);
}

static int op_clone(struct store *s)
{
	uint32_t clone;

	return store_volume_clone(s, volume, STORE_RO, &clone);
}

static int op_volume(struct store *s)
{
	const struct store_new_volume new = {.name = "w"};
	uint32_t id;

	return store_volume_create(s, &new, &id);
}

static int op_rename_volume(struct store *s)
{
	return store_volume_rename(s, volume, "x");
}

static int op_remove_volume(struct store *s)
{
	return store_volume_remove(s, volume);
}

static int (*const ops[])(struct store *) = {
	op_create, op_symlink, op_mkdir,   op_small,	     op_grow,	       op_middle,
	op_append, op_cut,     op_replace, op_remove,	     op_link,	       op_chmod,
	op_acl,	   op_clone,   op_volume,  op_rename_volume, op_remove_volume,
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

/* Two dumps, which are freed, are the same or not. */
static void compare(char *before, char *after, bool same, const char *what)
{
	bool are = strcmp(before, after) == 0;

	if (are != same)
		fprintf(stderr, "%s:\n%s\nbecame\n%s\n", what, before, after);
	/* The C library has allocated them. */
	__real_free(before);
	__real_free(after);
	ck_assert_msg(are == same, "%s", what);
}

static void expect_blocks(long used, const char *what)
{
	long now = atomic_load(&blocks);

	ck_assert_msg(now == used, "%s: %ld blocks of memory are lost", what, now - used);
}

/* The next operation is fine, so is the store, and it is as before after it was opened again. */
static void verify(struct crashdisk *disk, struct store *store, struct store_layer *layer,
		   enum store_durability durability, const char *what)
{
	int faults = diskstore_faults(store, what);
	char *before, text[160];

	ck_assert_msg(faults == 0, "%s: %d faults", what, faults);
	before = diskstore_dump(store, what);
	diskstore_close(store, layer);
	store = diskstore_open(disk, durability, &layer);
	ck_assert_msg(store != NULL, "%s: %s", what, diskstore_message);
	snprintf(text, sizeof(text), "%s: after closing", what);
	compare(before, diskstore_dump(store, text), true, text);
	ck_assert_msg(diskstore_faults(store, text) == 0, "%s", text);
	diskstore_close(store, layer);
}

/* The next `fail` allocations after `succeed`. False: the operation has fewer. */
static bool starve(const struct crashdisk *base, enum store_durability durability, unsigned op,
		   long succeed, long fail, const char *before)
{
	long used = atomic_load(&blocks), starved;
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, durability, &layer);
	char what[100], text[140];
	int rc;

	snprintf(what, sizeof(what), "operation %u, allocation %ld and %ld more", op, succeed,
		 fail - 1);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	arm(CALLER, succeed, fail);
	rc = ops[op](store);
	starved = disarm();
	ck_assert_msg(rc == 0 || (starved && rc == -ENOMEM), "%s: result %d", what, rc);
	snprintf(text, sizeof(text), "%s: result %d", what, rc);
	/* Merging changes nothing that users can see. */
	compare(__real_strdup(before), diskstore_dump(store, what), rc != 0, text);
	ck_assert_msg(rc == 0 || ops[op](store) == 0, "%s: not afterwards", what);
	verify(disk, store, layer, durability, what);
	crashdisk_free(disk);
	expect_blocks(used, what);
	return starved > 0;
}

static void starve_all(enum store_durability durability, long fail)
{
	struct crashdisk *base = make_disk();
	struct store_layer *layer;
	struct store *store = diskstore_open(base, durability, &layer);
	unsigned points = 0;
	char *before;

	ck_assert_msg(store != NULL, "%s", diskstore_message);
	before = diskstore_dump(store, "at first");
	diskstore_close(store, layer);
	for (unsigned op = 0; op < OPS; op++)
		for (long n = 0; starve(base, durability, op, n, fail, before); n += step, points++)
			ck_assert_int_lt(n, MANY);
	printf("%u allocations\n", points);
	ck_assert_uint_gt(points, 200 / step);
	__real_free(before);
	crashdisk_free(base);
}

START_TEST(once)
{
	starve_all(STORE_LAZY, 1);
}
END_TEST

START_TEST(once_scattered)
{
	scattered = true;
	starve_all(STORE_LAZY, 1);
}
END_TEST

START_TEST(from_then_on)
{
	starve_all(STORE_STRICT, MANY);
}
END_TEST

/* -- opening and reading -- */

START_TEST(opening)
{
	struct crashdisk *base = make_disk();
	bool more = true;

	for (long n = 0; more; n += step) {
		long used = atomic_load(&blocks);
		struct crashdisk *disk = crashdisk_copy(base);
		struct store_layer *layer;
		struct store *store;
		char what[60];

		snprintf(what, sizeof(what), "opening, allocation %ld", n);
		arm(CALLER, n, 1);
		store = diskstore_open(disk, STORE_LAZY, &layer);
		more = disarm() > 0;
		ck_assert_msg(more || store, "%s: %s", what, diskstore_message);
		ck_assert_msg(store || *diskstore_message, "%s: no message", what);
		if (!store) {
			layer->ops->destroy(layer);
			store = diskstore_open(disk, STORE_LAZY, &layer);
			ck_assert_msg(store != NULL, "%s: not afterwards: %s", what,
				      diskstore_message);
		}
		ck_assert_msg(op_middle(store) == 0, "%s", what);
		verify(disk, store, layer, STORE_LAZY, what);
		crashdisk_free(disk);
		expect_blocks(used, what);
		ck_assert_int_lt(n, MANY);
	}
	crashdisk_free(base);
}
END_TEST

static const char *const readable[] = {"a", "s", "d", "d/file-1", ""};

/* 0 or a result of the store. */
static int read_one(struct store *store, const char *path)
{
	static uint8_t want[LARGE], got[LARGE];
	struct iovec iov = {got, sizeof(got)};
	struct store_reader *reader;
	struct store_status status;
	struct store_acl acl;
	struct store_fid fid;
	ssize_t n;
	int rc = state_walk(store, volume, path, &fid);

	if (!rc)
		rc = store->ops->acl(store, &state_admin, &fid, &acl, &status);
	if (!rc)
		rc = store->ops->read_begin(store, &state_admin, &fid, &reader, &status);
	if (rc)
		return rc;
	n = store->ops->read(reader, &iov, 1, 0, 0);
	rc = store->ops->read_end(reader);
	if (n < 0)
		return (int)n;
	ck_assert_int_eq(n, status.length);
	state_bytes(want, 0, LARGE, 9);
	ck_assert(strcmp(path, "a") || memcmp(want, got, LARGE) == 0);
	return rc;
}

static void read_all(void)
{
	struct crashdisk *base = make_disk();
	unsigned points = 0;

	for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
		bool more = true;

		for (long n = 0; more; n += step, points++) {
			struct crashdisk *disk = crashdisk_copy(base);
			struct store_layer *layer;
			struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
			int rc;

			ck_assert_ptr_nonnull(store);
			arm(CALLER, n, 1);
			rc = read_one(store, readable[i]);
			more = disarm() > 0;
			ck_assert_msg(rc == 0 || (more && rc == -ENOMEM),
				      "\"%s\", allocation %ld: result %d", readable[i], n, rc);
			ck_assert_int_eq(read_one(store, readable[i]), 0);
			/* Nothing is damaged, so nothing is said. */
			ck_assert_uint_eq(diskstore_lines, 0);
			diskstore_close(store, layer);
			crashdisk_free(disk);
		}
	}
	ck_assert_uint_gt(points, 20 / step);
	crashdisk_free(base);
}

START_TEST(reading)
{
	read_all();
	scattered = true;
	read_all();
}
END_TEST

/* A check without memory says so, and does not report faults that are not there. */
START_TEST(checking)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	bool more = true;

	ck_assert_ptr_nonnull(store);
	for (long n = 0; more; n += step) {
		int faults;

		arm(CALLER, n, 1);
		faults = diskstore_faults(store, "checking");
		more = disarm() > 0;
		ck_assert_msg(faults == 0 || (more && faults == -ENOMEM), "allocation %ld: %d", n,
			      faults);
	}
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

/* -- the thread in the background, and closing -- */

static int (*const changes[])(struct store *) = {op_clone, op_middle, op_grow, op_clone,
						  op_replace};

/*
 * Whatever fails there, what was acknowledged is there after the next opening. That thread may
 * execute operations of the others, too.
 */
START_TEST(background)
{
	struct crashdisk *base;
	bool more = true;

	scattered = _i > 1;
	base = make_disk();

	for (long n = 0; more; n += step) {
		struct crashdisk *disk = crashdisk_copy(base);
		struct store_layer *layer;
		struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
		char what[60], *before;

		snprintf(what, sizeof(what), "in the background, allocation %ld", n);
		ck_assert_ptr_nonnull(store);
		arm(OTHERS, n, _i & 1 ? MANY : 1);
		for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
			int rc = changes[i](store);

			ck_assert_msg(rc == 0 || rc == -ENOMEM, "%s: result %d", what, rc);
		}
		store_flush(store);
		more = disarm() > 0;
		before = diskstore_dump(store, what);
		/* Closing, too. */
		arm(CALLER, n, 1);
		diskstore_close(store, layer);
		more = disarm() > 0 || more;
		store = diskstore_open(disk, STORE_LAZY, &layer);
		ck_assert_msg(store != NULL, "%s: %s", what, diskstore_message);
		compare(before, diskstore_dump(store, what), true, what);
		ck_assert_int_eq(op_cut(store), 0);
		verify(disk, store, layer, STORE_LAZY, what);
		crashdisk_free(disk);
		ck_assert_int_lt(n, MANY);
	}
	crashdisk_free(base);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *tcase = tcase_create("memory");
	SRunner *runner;
	const char *every = getenv("STORE_ALLOCATIONS");
	int failures;

	if (every && atol(every) > step)
		step = atol(every);
	wrap_sqlite();
	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, once);
	tcase_add_test(tcase, once_scattered);
	tcase_add_test(tcase, from_then_on);
	tcase_add_test(tcase, opening);
	tcase_add_test(tcase, reading);
	tcase_add_test(tcase, checking);
	tcase_add_loop_test(tcase, background, 0, 4);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
