/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of store/data_*.c: writers, readers, flushing, names, damage. */
#include <sched.h>
#include <stdatomic.h>

#include "tests/volume/store/data_fixture.h"

#define KIB    1024u
#define GATHER (256 * KIB)
#define MOST   (200 * KIB) /* bytes of a version of the model */
#define PAST   24	   /* versions that are kept */

static uint32_t seed = 7;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

/* The object of the last block. */
static uint64_t last_object(const struct store_content *content)
{
	const struct store_slot *last = store_content_slot(content, content->count - 1);

	return last->block[last->count - 1].object;
}

/* Apply what a run wrote from `offset` on to a content, and end the run. */
static void commit(struct store_run *run, uint64_t offset, struct store_content *content)
{
	store_run_end(apply(run, offset, content), true);
}

/* Write a text over a content, which ends behind it. */
static void write_text(struct store_content *content, uint64_t offset, const char *text)
{
	struct store_run *run = begin(content, offset);

	put(run, text, strlen(text));
	commit(run, offset, content);
	ck_assert_int_eq(
		store_content_apply(content, offset + strlen(text), &(struct store_patch){0}), 0);
}

static ssize_t view_bytes(const struct store_content *content, uint64_t length, void *bytes,
			  size_t size, uint64_t offset)
{
	struct store_view *view;
	struct iovec iov = {bytes, size};
	int rc = store_view_open(data, &owner, content, length, &view);

	if (rc)
		return rc;
	ssize_t n = store_view_read(view, &iov, 1, offset, false);

	store_view_close(view);
	return n;
}

static void expect_text(const struct store_content *content, const char *text)
{
	char bytes[256];
	size_t length = strlen(text);

	ck_assert_int_eq(view_bytes(content, length, bytes, sizeof(bytes), 0), (ssize_t)length);
	ck_assert_mem_eq(bytes, text, length);
}

static const char *named(uint64_t object)
{
	static char path[96];

	snprintf(path, sizeof(path), "files/20000001/4/1234.ab.%llx", (unsigned long long)object);
	return path;
}

static const char *new_name(uint64_t object)
{
	static char path[96];

	snprintf(path, sizeof(path), "files/new/%llx", (unsigned long long)object);
	return path;
}

/* -- versions -- */

struct version {
	struct store_content content;
	uint8_t *bytes;
	uint32_t length;
};

static void free_version(struct version *version)
{
	store_content_free(&version->content);
	free(version->bytes);
}

static struct version copy_version(const struct version *from)
{
	struct version to = {.length = from->length, .bytes = calloc(1, MOST)};

	memcpy(to.bytes, from->bytes, MOST);
	store_content_copy(&from->content, &to.content);
	return to;
}

/* Cut bytes into buffers of random sizes. Returns how many. */
static int cut(uint8_t *bytes, uint32_t length, struct iovec *iov, int most)
{
	int count = 0;

	while (length) {
		uint32_t n = draw(3) ? draw(2000) : draw(length + 1);

		if (n > length || count == most - 1)
			n = length;
		iov[count++] = (struct iovec){bytes, n};
		bytes += n;
		length -= n;
	}
	return count;
}

static void expect_version(const struct version *version)
{
	static uint8_t got[MOST];
	uint32_t offset = draw(version->length + 100), want = draw(MOST);
	uint32_t there = offset < version->length ? version->length - offset : 0;
	struct store_view *view;
	struct iovec iov[64];

	if (want > there && draw(2))
		want = there;
	memset(got, 0xee, sizeof(got));
	ck_assert_int_eq(store_view_open(data, &owner, &version->content, version->length, &view),
			 0);
	store_view_ahead(view, offset, want);

	ssize_t n = store_view_read(view, iov, cut(got, want, iov, 64), offset, false);

	ck_assert_int_eq(n, want < there ? want : there);
	ck_assert(memcmp(got, version->bytes + offset, (size_t)n) == 0);
	ck_assert(want == n || got[n] == 0xee);

	/* From memory: the right bytes, however many. */
	memset(got, 0xee, sizeof(got));
	n = store_view_read(view, iov, cut(got, want, iov, 64), offset, true);
	ck_assert(n == -EAGAIN || (n >= 0 && n <= (ssize_t)there));
	ck_assert(n < 0 || memcmp(got, version->bytes + offset, (size_t)n) == 0);
	store_view_close(view);
}

/* One write to `now`, by a writer that knows only `known`, which may be an older version. */
static void random_write(struct version *now, const struct version *known)
{
	static uint8_t bytes[MOST];
	uint32_t offset = draw(4) ? known->length : draw(MOST), length = draw(30000);
	struct iovec iov[64];

	if (draw(6) == 0)
		length = draw(MOST);
	if (length > MOST - offset)
		length = MOST - offset;
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)draw(256);

	struct store_run *run = begin(&known->content, offset);
	int count = cut(bytes, length, iov, 64), first = count ? (int)draw((uint32_t)count) : 0;

	ck_assert_int_eq(store_run_write(run, iov, first), 0);
	if (draw(8) == 0) {
		store_run_end(run, false);
		return;
	}
	ck_assert_int_eq(store_run_write(run, iov + first, count - first), 0);

	commit(run, offset, &now->content);
	memcpy(now->bytes + offset, bytes, length);
	if (length && offset + length > now->length)
		now->length = offset + length;
}

static void random_truncate(struct version *now)
{
	uint32_t length = draw(MOST + 1);

	ck_assert_int_eq(store_content_apply(&now->content, length, &(struct store_patch){0}), 0);
	if (length < now->length)
		memset(now->bytes + length, 0, MOST - length);
	now->length = length;
}

/* Bytes of an older version stay as they are, also if writers know only older versions. */
START_TEST(versions)
{
	struct version now = {.bytes = calloc(1, MOST)}, past[PAST] = {0};

	setup(4);
	for (int i = 0; i < 1500; i++) {
		struct version *slot = &past[draw(PAST)];
		const struct version *known = &past[draw(PAST)];

		free_version(slot);
		*slot = copy_version(&now);
		if (draw(6) == 0)
			random_truncate(&now);
		else
			random_write(&now, draw(4) && known->bytes ? known : &now);
		if (draw(40) == 0)
			ck_assert_int_eq(store_data_sync(data), 0);
		if (now.content.count && draw(3) == 0)
			ck_assert_int_eq(store_data_settle(data, &owner, last_object(&now.content)),
					 0);
		expect_version(&now);
		known = &past[draw(PAST)];
		if (known->bytes)
			expect_version(known);
	}
	for (int i = 0; i < PAST; i++) {
		if (past[i].bytes)
			expect_version(&past[i]);
		free_version(&past[i]);
	}
	free_version(&now);
	/* Idle and dirty objects; a run, and two of a view, which are in no list. */
	ck_assert_uint_le(spy->most, 4 + 5 + 1 + 2);
	teardown();
}
END_TEST

/* A view opens an object when it is read. A read from memory alone may not wait for that. */
START_TEST(from_memory)
{
	struct store_content content = {0};
	struct store_view *view;
	char bytes[4];
	struct iovec iov = {bytes, sizeof(bytes)};

	setup(1);
	for (uint64_t i = 0; i < 8; i++) {
		struct store_run *run = begin(&(struct store_content){0}, STORE_BLOCK * i);

		put(run, "text", 4);
		commit(run, STORE_BLOCK * i, &content);
	}
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_int_eq(store_view_open(data, &owner, &content, end_of(&content), &view), 0);
	spy_reset(spy);
	for (uint64_t i = 1; i < 8; i++)
		ck_assert_int_eq(store_view_read(view, &iov, 1, STORE_BLOCK * i, true), -EAGAIN);
	ck_assert_uint_eq(spy->opens, 0);
	ck_assert_int_eq(store_view_read(view, &iov, 1, STORE_BLOCK * 3, false), 4);
	ck_assert_mem_eq(bytes, "text", 4);
	store_view_close(view);
	store_content_free(&content);
	teardown();
}
END_TEST

/* -- writers -- */

START_TEST(appending)
{
	struct store_content content = {0};

	setup(4);
	write_text(&content, 0, "one ");
	write_text(&content, 4, "two ");
	ck_assert_uint_eq(content.count, 1);
	ck_assert_uint_eq(atomic_load(&numbers), 1);
	/* Two writers: the second one gets an object of its own. */
	struct store_run *first = begin(&content, 8), *second = begin(&content, 8);

	put(first, "three ", 6);
	put(second, "THREE ", 6);
	commit(first, 8, &content);
	expect_text(&content, "one two three ");
	/* It has copied what was in front of its bytes, and has to do it again. */
	commit(second, 8, &content);
	expect_text(&content, "one two THREE ");
	ck_assert_uint_eq(atomic_load(&numbers), 3);
	/* Bytes of an aborted writer are cut off. */
	struct store_run *run = begin(&content, 14);

	put(run, "lost", 4);
	struct store_patch patch;

	ck_assert_int_eq(finish(run, &content, &patch), 0);
	ck_assert_uint_eq(patch.block[0].object, 3);
	store_run_end(run, false);
	uint64_t length;

	ck_assert_int_eq(store_data_stat(data, &owner, 3, &length), 0);
	ck_assert_uint_eq(length, 14);
	/* Others take their place, so that writers who give up cost no objects. */
	write_text(&content, 14, "four");
	expect_text(&content, "one two THREE four");
	ck_assert_uint_eq(last_object(&content), 3);
	/* A writer without bytes leaves nothing. */
	run = begin(&(struct store_content){0}, 5);
	ck_assert_int_eq(finish(run, &(struct store_content){0}, &patch), 0);
	ck_assert_uint_eq(patch.count, 0);
	store_run_end(run, true);
	ck_assert(spy_exists(spy, new_name(3)) && !spy_exists(spy, new_name(4)));
	store_content_free(&content);
	teardown();
}
END_TEST

static uint64_t no_number(void *arg)
{
	(void)arg;
	return 0;
}

START_TEST(no_object)
{
	struct store_content content = {0};
	const struct store_base none = {.content = &(struct store_content){0}};
	struct store_run *run;
	struct store_view *view;
	uint64_t length;

	setup(4);
	ck_assert_int_eq(store_run_begin(data, &owner, &none, 0, no_number, NULL, &run), -EIO);
	write_text(&content, 0, "text");
	atomic_store(&numbers, 0);
	/* A number that is in use. */
	ck_assert_int_eq(store_run_begin(data, &owner, &none, 0, next_number, NULL, &run), -EEXIST);
	content.first->block[0].object = 77;
	ck_assert_int_eq(store_view_open(data, &owner, &content, 4, &view), -ENOENT);
	ck_assert_int_eq(store_data_stat(data, &owner, 77, &length), -ENOENT);
	ck_assert_int_eq(store_data_settle(data, &owner, 77), -ENOENT);
	ck_assert_int_eq(store_data_remove(data, &owner, 77), 0);
	store_run_end(NULL, false);
	store_view_close(NULL);
	store_content_free(&content);
	teardown();
}
END_TEST

/* Writes but the last: aligned ends, and 256 KiB at least. */
static void expect_gathered(uint64_t start, uint64_t length)
{
	uint64_t at = start;

	for (unsigned i = 0; i < spy->writes; i++) {
		ck_assert_uint_eq(spy->write[i].offset, at);
		at += spy->write[i].length;
		if (i + 1 < spy->writes) {
			ck_assert_uint_ge(spy->write[i].length, GATHER);
			ck_assert_uint_eq(at % 4096, 0);
		}
	}
	ck_assert_uint_eq(at, start + length);
	ck_assert_uint_le(spy->writes, 1 + (length + GATHER - 1) / GATHER);
}

static void write_pieces(uint64_t start, uint8_t *bytes, uint32_t length, uint32_t piece,
			 uint32_t pieces)
{
	struct store_content content = {0};
	struct store_run *run = begin(&content, start);
	struct iovec *iov = calloc(pieces, sizeof(*iov));
	uint8_t *got = calloc(1, length);

	spy_reset(spy);
	for (uint32_t at = 0; at < length;) {
		uint32_t count = 0;

		for (; count < pieces && at < length; count++) {
			uint32_t n = length - at < piece ? length - at : piece;

			iov[count] = (struct iovec){bytes + at, n};
			at += n;
		}
		ck_assert_int_eq(store_run_write(run, iov, (int)count), 0);
	}
	commit(run, start, &content);
	expect_gathered(start, length);
	ck_assert_int_eq(view_bytes(&content, start + length, got, length, start), length);
	ck_assert(memcmp(got, bytes, length) == 0);
	store_content_free(&content);
	free(got);
	free(iov);
}

START_TEST(gathering)
{
	uint32_t length = 3 * 1024 * KIB + 777;
	uint8_t *bytes = calloc(1, length);

	setup(4);
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(i ^ i >> 8 ^ i >> 13);
	write_pieces(0, bytes, length, 1400, 20);      /* datagrams */
	write_pieces(5000, bytes, length, 1400, 1000); /* many at once */
	write_pieces(0, bytes, 100 * KIB, 1, 1);
	write_pieces(123, bytes, length, 300 * KIB, 1);
	write_pieces(1, bytes, length, 64 * KIB, 16);
	/* A large buffer is not copied: one write, and what is behind the last aligned offset. */
	write_pieces(0, bytes, 3 * 1024 * KIB, 3 * 1024 * KIB, 1);
	ck_assert_uint_eq(spy->writes, 1);
	write_pieces(0, bytes, length, length, 1);
	ck_assert_uint_eq(spy->writes, 2);
	free(bytes);
	teardown();
}
END_TEST

#define MANY 96 /* runs that gather as much as they can */

/* The memory of very many runs is bounded. */
START_TEST(gathering_of_many)
{
	struct store_content content = {0};
	struct store_run *run[MANY + 1];
	uint8_t bytes[1400] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};

	setup(4);
	for (unsigned i = 0; i <= MANY; i++) {
		run[i] = begin(&content, 0);
		ck_assert_int_eq(store_run_write(run[i], &iov, 1), 0);
	}
	ck_assert_uint_eq(spy->writes, 0);
	for (unsigned i = 1; i < 60; i++) {
		ck_assert_int_eq(store_run_write(run[0], &iov, 1), 0);
		ck_assert_uint_eq(spy->writes, 0);
	}
	for (unsigned i = 1; i < 60; i++)
		ck_assert_int_eq(store_run_write(run[MANY], &iov, 1), 0);
	ck_assert_uint_eq(spy->writes, 60 * sizeof(bytes) / (16 * KIB));
	for (unsigned i = 0; i < spy->writes; i++)
		ck_assert_uint_ge(spy->write[i].length, 16 * KIB);
	for (unsigned i = 0; i <= MANY; i++)
		store_run_end(run[i], false);
	/* Later ones gather as before. */
	run[0] = begin(&content, 0);
	spy_reset(spy);
	for (unsigned i = 0; i < 60; i++)
		ck_assert_int_eq(store_run_write(run[0], &iov, 1), 0);
	ck_assert_uint_eq(spy->writes, 0);
	store_run_end(run[0], false);
	teardown();
}
END_TEST

/* -- open files -- */

START_TEST(open_files)
{
	struct store_content content[40] = {0};

	setup(6);
	for (int i = 0; i < 40; i++) {
		write_text(&content[i], 0, "some text");
		ck_assert_uint_le(spy->open, 6 + 6 + 1);
	}
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_le(spy->open, 6);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 40; i++)
			expect_text(&content[i], "some text");
	ck_assert_uint_le(spy->most, 6 + 6 + 1);
	/* The ones used last are still open. */
	spy_reset(spy);
	for (int i = 34; i < 40; i++)
		expect_text(&content[i], "some text");
	ck_assert_uint_eq(spy->opens, 0);
	/* Out of descriptors: others are closed. */
	spy->open_limit = 3;
	store_data_close(data);
	ck_assert_int_eq(store_data_open(&spy->layer, 100, &data), 0);
	for (int i = 0; i < 40; i++)
		expect_text(&content[i], "some text");
	ck_assert_uint_le(spy->open, 3);
	for (int i = 0; i < 40; i++)
		store_content_free(&content[i]);
	teardown();
}
END_TEST

/* -- flushing -- */

static bool synced_dir(const char *path)
{
	for (unsigned i = 0; i < spy->dir_syncs && i < 64; i++)
		if (strcmp(spy->synced_dir[i], path) == 0)
			return true;
	return false;
}

START_TEST(flushing)
{
	struct store_content a = {0}, b = {0};

	setup(8);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs + spy->dir_syncs, 0);
	write_text(&a, 0, "a");
	write_text(&b, 0, "b");
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs, 2);
	ck_assert_uint_eq(spy->dir_syncs, 1);
	ck_assert(synced_dir("files/new"));
	/* Nothing is left to be done. */
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs + spy->dir_syncs, 3);

	/* A name that was flushed may change: the object is found at either place. */
	spy_reset(spy);
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	ck_assert(spy_exists(spy, named(1)));
	ck_assert(!spy_exists(spy, new_name(1)));
	ck_assert(synced_dir("files") && synced_dir("files/20000001"));
	spy_reset(spy);
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs + spy->dir_syncs, 0);

	/* Appended bytes: no name is new. */
	write_text(&a, 1, "aa");
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs, 1);
	ck_assert_uint_eq(spy->dir_syncs, 0);

	/* An object that got its name before the first flush. */
	write_text(&b, 0, "bb");
	ck_assert_int_eq(store_data_settle(data, &owner, last_object(&b)), 0);
	spy_reset(spy);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs, 1);
	ck_assert_uint_eq(spy->dir_syncs, 1);
	ck_assert(synced_dir("files/20000001/4"));

	/* One that is gone need not be flushed. */
	write_text(&b, 0, "bbb");
	ck_assert_int_eq(store_data_remove(data, &owner, last_object(&b)), 0);
	spy->fail_sync_dir = -EIO;
	ck_assert_int_eq(store_data_sync(data), 0);
	store_content_free(&a);
	store_content_free(&b);
	teardown();
}
END_TEST

/* A writer flushes its own bytes; what others wait for is the new name alone. */
START_TEST(own_flush)
{
	struct store_content content = {0};
	struct store_patch patch;

	setup(8);
	struct store_run *run = begin(&content, 0);

	put(run, "text", 4);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	ck_assert_int_eq(store_run_sync(run), 0);
	ck_assert_uint_eq(spy->syncs, 1);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->syncs, 1);
	ck_assert_uint_eq(spy->dir_syncs, 1);
	ck_assert_int_eq(store_content_apply(&content, UINT64_MAX, &patch), 0);
	store_run_end(run, true);
	/* It fails: told to the writer alone, because no other bytes are lost. */
	run = begin(&content, 4);
	put(run, " more", 5);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	spy->fail_sync = -EIO;
	ck_assert_int_eq(store_run_sync(run), -EIO);
	spy->fail_sync = 0;
	ck_assert_int_eq(store_run_sync(run), -EIO);
	ck_assert_int_eq(store_run_check(run), -EIO);
	store_run_end(run, false);
	ck_assert_int_eq(store_data_sync(data), 0);
	expect_text(&content, "text");
	store_content_free(&content);
	teardown();
}
END_TEST

static void *sync_thread(void *arg)
{
	*(int *)arg = store_data_sync(data);
	return NULL;
}

/*
 * While a flush goes on, others arrive: one more round does for all of them, and it begins after
 * they came.
 */
START_TEST(shared_flush)
{
	struct store_content a = {0}, b = {0};
	pthread_t thread[9];
	int result[9];

	setup(8);
	write_text(&a, 0, "a");
	spy_hold(spy, SPY_FILES);
	ck_assert_int_eq(pthread_create(&thread[0], NULL, sync_thread, &result[0]), 0);
	spy_await_held(spy);
	/* These bytes are not part of the flush that goes on. */
	write_text(&b, 0, "b");
	for (int i = 1; i < 9; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, sync_thread, &result[i]), 0);
	spy_hold(spy, 0);
	for (int i = 0; i < 9; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		ck_assert_int_eq(result[i], 0);
	}
	ck_assert_uint_eq(spy->syncs, 2);
	store_content_free(&a);
	store_content_free(&b);
	teardown();
}
END_TEST

/*
 * A flush that had begun before a call has bytes that the caller wants to be flushed: the caller is
 * told of its error.
 */
START_TEST(failed_before)
{
	struct store_content content = {0};
	pthread_t thread[2];
	int result[2];
	bool waits = false;

	setup(8);
	write_text(&content, 0, "lost");
	spy_hold(spy, SPY_FILES);
	spy->fail_sync = -EIO;
	ck_assert_int_eq(pthread_create(&thread[0], NULL, sync_thread, &result[0]), 0);
	spy_await_held(spy);
	ck_assert_int_eq(pthread_create(&thread[1], NULL, sync_thread, &result[1]), 0);
	while (!waits) {
		pthread_mutex_lock(&data->lock);
		waits = data->next_round != NULL;
		pthread_mutex_unlock(&data->lock);
		sched_yield();
	}
	spy_hold(spy, 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		ck_assert_int_eq(result[i], -EIO);
	}
	ck_assert_uint_eq(spy->syncs, 1);
	ck_assert_int_eq(store_data_sync(data), 0);
	store_content_free(&content);
	teardown();
}
END_TEST

/* An object that gets its name while the old one is flushed: both directories are. */
START_TEST(moved_meanwhile)
{
	struct store_content content = {0};
	pthread_t thread;
	int result;

	setup(8);
	write_text(&content, 0, "text");
	/* The directories exist already. */
	ck_assert_int_eq(spy->layer.ops->mkdir(&spy->layer, "files/20000001"), 0);
	ck_assert_int_eq(spy->layer.ops->mkdir(&spy->layer, "files/20000001/4"), 0);
	spy_hold(spy, SPY_DIRS);
	ck_assert_int_eq(pthread_create(&thread, NULL, sync_thread, &result), 0);
	spy_await_held(spy);
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	spy_hold(spy, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(spy->dir_syncs, 2);
	ck_assert(synced_dir("files/20000001/4"));
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->dir_syncs, 2);
	store_content_free(&content);
	teardown();
}
END_TEST

/* An object that is removed while its directory is flushed, which goes as well. */
START_TEST(removed_meanwhile)
{
	struct store_content content = {0};
	pthread_t thread;
	int result;

	setup(8);
	write_text(&content, 0, "text");
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	spy_hold(spy, SPY_DIRS);
	ck_assert_int_eq(pthread_create(&thread, NULL, sync_thread, &result), 0);
	spy_await_held(spy);
	ck_assert_int_eq(store_data_remove(data, &owner, 1), 0);
	spy->fail_sync_dir = -ENOENT;
	spy_hold(spy, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(spy->open, 0);
	store_content_free(&content);
	teardown();
}
END_TEST

/* A flush that fails is told to those who wait for it, to the writer, and to readers. */
START_TEST(failed_flush)
{
	struct store_content content = {0}, other = {0}, older = {0};
	struct store_patch patch;
	char byte;

	setup(2);
	write_text(&content, 0, "safe");
	ck_assert_int_eq(store_data_sync(data), 0);
	store_content_copy(&content, &older);

	struct store_run *run = begin(&content, 4);

	put(run, "lost", 4);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	ck_assert_int_eq(store_run_check(run), 0);
	spy->fail_sync = -ENOSPC;
	ck_assert_int_eq(store_data_sync(data), -ENOSPC);
	spy->fail_sync = 0;
	/* The kernel has dropped the bytes: that later flushes succeed means nothing. */
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_int_eq(store_run_check(run), -ENOSPC);
	ck_assert_int_eq(store_content_apply(&content, UINT64_MAX, &patch), 0);
	store_run_end(run, true);
	for (int i = 0; i < 10; i++) {
		store_content_free(&other);
		write_text(&other, 0, "other");
	}
	ck_assert_int_eq(store_data_sync(data), 0);
	expect_text(&other, "other");
	ck_assert_int_eq(view_bytes(&content, 8, &byte, 1, 7), -EIO);
	/* Bytes that were flushed before can still be read. */
	expect_text(&older, "safe");
	/* Nothing is added to that block any more; the next one goes to another object. */
	ck_assert_int_eq(store_run_begin(data, &owner, &(struct store_base){&content, .kept = 8}, 8,
					 next_number, NULL, &run),
			 -EIO);
	write_text(&content, STORE_BLOCK, "new");
	ck_assert(!store_slot_has(content.first, 1) || last_object(&content) != 1);
	ck_assert_int_eq(view_bytes(&content, STORE_BLOCK + 3, &byte, 1, STORE_BLOCK), 1);
	ck_assert_int_eq(byte, 'n');
	ck_assert_int_eq(view_bytes(&content, STORE_BLOCK + 3, &byte, 1, 7), -EIO);
	store_content_free(&content);
	store_content_free(&older);
	store_content_free(&other);
	teardown();
}
END_TEST

/* Add to what was written at 0, of which an error is told once: to this thread or another one. */
static struct store_run *begin_more(const struct store_content *content)
{
	struct store_run *run = begin(content, 4);

	put(run, "more", 4);
	return run;
}

static void expect_lost(struct store_content *content, struct store_run *run)
{
	char byte;

	ck_assert_int_eq(store_run_check(run), -EIO);
	store_run_end(run, false);
	ck_assert_int_eq(view_bytes(content, 4, &byte, 1, 0), -EIO);
	ck_assert_int_eq(store_data_sync(data), 0);
	store_content_free(content);
}

/* A flush fails. Before it ends, the kernel tells a writer of the same object of no error. */
START_TEST(told_to_flush)
{
	struct store_content content = {0}, other = {0};
	struct store_patch patch;
	struct store_run *run;
	pthread_t thread;
	int result, own;

	setup(8);
	run = begin(&other, 0);
	put(run, "text", 4);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	ck_assert_int_eq(store_run_sync(run), 0);
	store_run_end(run, true);
	write_text(&content, 0, "lost");
	run = begin_more(&content);
	spy->fail_sync = -EIO;
	/* The name of the other object is the last that is flushed. */
	spy_hold(spy, SPY_DIRS);
	ck_assert_int_eq(pthread_create(&thread, NULL, sync_thread, &result), 0);
	spy_await_held(spy);
	spy->fail_sync = 0;
	own = finish(run, &content, &patch);
	ck_assert_int_eq(own ? own : store_run_sync(run), -EIO);
	spy_hold(spy, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, -EIO);
	expect_lost(&content, run);
	teardown();
}
END_TEST

/* The writer is told, and the flush that has the object as well is not: it fails nevertheless. */
START_TEST(told_to_writer)
{
	struct store_content content = {0}, other = {0};
	struct store_patch patch;
	struct store_run *run;
	pthread_t thread;
	int result;

	setup(8);
	write_text(&content, 0, "lost");
	write_text(&other, 0, "text");
	/* The last one is the first to be flushed. */
	spy_hold(spy, SPY_FILES);
	ck_assert_int_eq(pthread_create(&thread, NULL, sync_thread, &result), 0);
	spy_await_held(spy);
	spy_pass(spy);
	run = begin_more(&content);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	spy->fail_sync = -EIO;
	ck_assert_int_eq(store_run_sync(run), -EIO);
	spy->fail_sync = 0;
	spy_hold(spy, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, -EIO);
	expect_lost(&content, run);
	expect_text(&other, "text");
	store_content_free(&other);
	teardown();
}
END_TEST

/*
 * A flush has begun when a run is given up, whose bytes it knows. They are not those that came in
 * their place, which the next flush loses.
 */
START_TEST(cut_meanwhile)
{
	struct store_content content = {0}, older;
	struct store_patch patch;
	struct store_run *run;
	pthread_t thread;
	char bytes[12];
	int result;

	setup(8);
	write_text(&content, 0, "safe");
	store_content_copy(&content, &older);
	run = begin(&content, 4);
	put(run, "given up", 8);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	spy_hold(spy, SPY_DIRS);
	ck_assert_int_eq(pthread_create(&thread, NULL, sync_thread, &result), 0);
	spy_await_held(spy);
	store_run_end(run, false);
	write_text(&content, 4, " lost");
	ck_assert_uint_eq(content.count, 1);
	spy_hold(spy, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, 0);
	spy->fail_sync = -EIO;
	ck_assert_int_eq(store_data_sync(data), -EIO);
	expect_text(&older, "safe");
	ck_assert_int_eq(view_bytes(&content, 9, bytes, 5, 4), -EIO);
	store_content_free(&content);
	store_content_free(&older);
	teardown();
}
END_TEST

/*
 * A file that was closed before it was flushed, and is open again, may not know that its bytes were
 * lost meanwhile, but the file system does.
 */
START_TEST(opened_again)
{
	struct store_content content = {0};
	struct store_patch patch;
	struct store_run *run;

	setup(1);
	for (int i = 0; i < 2; i++) {
		store_content_free(&content);
		write_text(&content, 0, "text");
	}
	run = begin(&content, 4);
	put(run, "more", 4);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	ck_assert_int_eq(store_run_sync(run), 0);
	store_run_end(run, false);
	spy_reset(spy);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->all_syncs, 1);
	ck_assert_uint_eq(spy->syncs, 0);
	store_content_free(&content);
	teardown();
}
END_TEST

/* A name that cannot be flushed is a lost object, too. */
static void name_fails(bool safe_bytes)
{
	struct store_patch patch;

	setup(2);
	struct store_run *run = begin(&(struct store_content){0}, 0);

	put(run, "lost", 4);
	ck_assert_int_eq(finish(run, &(struct store_content){0}, &patch), 0);
	if (safe_bytes)
		ck_assert_int_eq(store_run_sync(run), 0);
	spy->fail_sync_dir = -EIO;
	ck_assert_int_eq(store_data_sync(data), -EIO);
	spy->fail_sync_dir = 0;
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_int_eq(store_run_check(run), -EIO);
	store_run_end(run, false);
	ck_assert(!spy_exists(spy, new_name(1)));
	teardown();
}

/* Also if the writer has flushed the bytes, as in strict mode. */
START_TEST(failed_name)
{
	name_fails(false);
	name_fails(true);
}
END_TEST

/*
 * Objects wait for their flush without an open file if they are more than a few. Very many make a
 * writer flush: an error is for the next one who asks.
 */
START_TEST(unasked_flush)
{
	struct store_content content = {0};
	char byte = 0;

	setup(2);
	for (int i = 0; i < 2 * STORE_WAITING - 1; i++) {
		store_content_free(&content);
		write_text(&content, 0, "text");
	}
	ck_assert_uint_le(spy->most, 5);
	ck_assert_int_eq(view_bytes(&content, 4, &byte, 1, 0), 1);
	ck_assert_int_eq(byte, 't');
	ck_assert_uint_eq(spy->syncs + spy->all_syncs, 0);
	spy->fail_sync = -EIO;
	store_content_free(&content);
	write_text(&content, 0, "text");
	/* Each is asked then, because the error may be that of another file. */
	ck_assert_uint_eq(spy->all_syncs, 1);
	ck_assert_uint_eq(spy->syncs, 2 * STORE_WAITING);
	ck_assert_uint_le(spy->most, 5);
	spy->fail_sync = 0;
	ck_assert_int_eq(store_data_sync(data), -EIO);
	ck_assert_int_eq(store_data_sync(data), 0);
	store_content_free(&content);
	teardown();
}
END_TEST

/* -- names, removal, damage -- */

struct found {
	unsigned count;
	uint64_t object;
	struct store_owner owner;
	int stop;
};

static int found_new(void *arg, uint64_t object)
{
	struct found *found = arg;

	found->count++;
	found->object = object;
	return found->stop;
}

static int found_named(void *arg, const struct store_owner *of, uint64_t object)
{
	((struct found *)arg)->owner = *of;
	return found_new(arg, object);
}

START_TEST(listing)
{
	static const struct store_owner high = {0xffffffff, 0xffffffff, 0xffffffff};
	struct store_content content = {0}, other = {0};
	struct store_run *run;
	struct found found = {0};

	setup(4);
	atomic_store(&numbers, UINT64_MAX - 3);
	write_text(&content, 0, "one");
	ck_assert_int_eq(store_data_settle(data, &owner, UINT64_MAX - 2), 0);
	ck_assert_int_eq(store_run_begin(data, &high, &(struct store_base){&other, .kept = 0}, 0,
					 next_number, NULL, &run),
			 0);
	put(run, "x", 1);
	commit(run, 0, &other);
	store_content_free(&other);
	ck_assert_int_eq(store_data_list_new(data, found_new, &found), 0);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_uint_eq(found.object, UINT64_MAX - 1);
	ck_assert_int_eq(store_data_settle(data, &high, UINT64_MAX - 1), 0);
	found.count = 0;
	ck_assert_int_eq(store_data_list_new(data, found_new, &found), 0);
	ck_assert_uint_eq(found.count, 0);

	/* Names of others are left alone. */
	static const char *const strange[] = {"files/new/xyz",
					      "files/new/01",
					      "files/20000001/4/note",
					      "files/20000001/4/1234.ab",
					      "files/20000001/4/1234.ab.1.2",
					      "files/20000001/4/99999.1.1",
					      "files/readme"};
	struct store_file *file;

	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		ck_assert_int_eq(spy->layer.ops->open(&spy->layer, strange[i],
						      STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file),
				 0);
		spy->layer.ops->close(file);
	}
	ck_assert_int_eq(store_data_list_new(data, found_new, &found), 0);
	ck_assert_uint_eq(found.count, 0);
	ck_assert_int_eq(store_data_list(data, found_named, &found), 0);
	ck_assert_uint_eq(found.count, 2);
	found = (struct found){.stop = -ENOENT};
	ck_assert_int_eq(store_data_list(data, found_named, &found), -ENOENT);
	ck_assert_uint_eq(found.count, 1);

	/* The last object of a directory takes it along. */
	ck_assert_int_eq(store_data_remove(data, &high, UINT64_MAX - 1), 0);
	ck_assert_int_eq(spy->layer.ops->sync_dir(&spy->layer, "files/ffffffff"), -ENOENT);
	found = (struct found){0};
	ck_assert_int_eq(store_data_list(data, found_named, &found), 0);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_uint_eq(found.object, UINT64_MAX - 2);
	ck_assert_mem_eq(&found.owner, &owner, sizeof(owner));
	store_content_free(&content);
	teardown();
}
END_TEST

START_TEST(removal)
{
	struct store_content content = {0};
	struct store_view *view, *none;
	char bytes[8] = "";
	struct iovec iov = {bytes, 4};

	setup(4);
	write_text(&content, 0, "text");
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	ck_assert_int_eq(store_view_open(data, &owner, &content, 4, &view), 0);
	/* A reader has it: the last close of a large file without a name would take that thread long. */
	ck_assert_int_eq(store_data_remove(data, &owner, 1), -EBUSY);
	ck_assert(spy_exists(spy, named(1)));
	ck_assert_int_eq(store_view_read(view, &iov, 1, 0, false), 4);
	ck_assert_str_eq(bytes, "text");
	store_view_close(view);
	ck_assert_int_eq(store_data_remove(data, &owner, 1), 0);
	ck_assert(!spy_exists(spy, named(1)));
	ck_assert_int_eq(store_view_open(data, &owner, &content, 4, &none), -ENOENT);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_eq(spy->open, 0);
	ck_assert_int_eq(store_data_remove(data, &owner, 1), 0);

	/* While a writer has it, a commit may come to refer to it. */
	store_content_free(&content);
	write_text(&content, 0, "text");
	struct store_run *run = begin(&content, 4);

	put(run, " more", 5);
	ck_assert_int_eq(store_data_remove(data, &owner, 2), -EBUSY);
	commit(run, 4, &content);
	expect_text(&content, "text more");
	ck_assert_int_eq(store_data_remove_new(data, 2), 0);
	ck_assert(!spy_exists(spy, new_name(2)));
	ck_assert_int_eq(store_data_remove_new(data, 2), 0);
	store_content_free(&content);
	teardown();
}
END_TEST

/* The names of removed objects are flushed: one directory at a time, or the one above a directory that is gone. */
START_TEST(removed_names)
{
	struct store_content content = {0}, more = {0};
	struct store_owner other = owner;

	setup(4);
	write_text(&content, 0, "text");
	write_text(&more, 0, "more");
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	ck_assert_int_eq(store_data_settle(data, &owner, 2), 0);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_int_eq(store_data_remove(data, &owner, 1), 0);
	spy_reset(spy);
	ck_assert_int_eq(store_data_sync_removed(data), 0);
	ck_assert_uint_eq(spy->dir_syncs, 1);
	ck_assert_str_eq(spy->synced_dir[0], "files/20000001/4");
	ck_assert_int_eq(store_data_sync_removed(data), 0);
	ck_assert_uint_eq(spy->dir_syncs, 1);
	/* The last one takes the directories along. */
	ck_assert_int_eq(store_data_remove(data, &owner, 2), 0);
	spy_reset(spy);
	ck_assert_int_eq(store_data_sync_removed(data), 0);
	ck_assert_str_eq(spy->synced_dir[spy->dir_syncs - 1], "files");
	/* An error is told; the caller removes them again. */
	ck_assert_int_eq(store_data_remove(data, &owner, 2), 0);
	spy->fail_sync_dir = -EIO;
	ck_assert_int_eq(store_data_sync_removed(data), -EIO);
	spy->fail_sync_dir = 0;
	/* Many directories are flushed together. */
	for (unsigned i = 0; i <= DATA_REMOVED; i++) {
		other.group = owner.group + i;
		ck_assert_int_eq(store_data_remove(data, &other, 2), 0);
	}
	spy_reset(spy);
	ck_assert_int_eq(store_data_sync_removed(data), 0);
	ck_assert_uint_eq(spy->dir_syncs, 0);
	ck_assert_uint_eq(spy->all_syncs, 1);
	store_content_free(&content);
	store_content_free(&more);
	teardown();
}
END_TEST

/* After a restart: what was left in "files/new" is read, gets its name, or is removed. */
START_TEST(reopened)
{
	struct store_content content = {0};

	setup(4);
	write_text(&content, 0, "text");
	store_data_close(data);
	ck_assert_int_eq(store_data_open(&spy->layer, 4, &data), 0);
	expect_text(&content, "text");
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	ck_assert(spy_exists(spy, named(1)));
	store_data_close(data);
	ck_assert_int_eq(store_data_open(&spy->layer, 4, &data), 0);
	ck_assert_int_eq(store_data_settle(data, &owner, 1), 0);
	write_text(&content, 4, " more");
	ck_assert_uint_eq(content.count, 1);
	expect_text(&content, "text more");
	store_content_free(&content);
	teardown();
}
END_TEST

START_TEST(short_object)
{
	struct store_content content = {0};
	struct store_run *run;
	char bytes[16];

	setup(4);
	write_text(&content, 0, "text");
	write_text(&content, 4, " more");
	spy_truncate(spy, new_name(1), 6);
	ck_assert_int_eq(view_bytes(&content, 9, bytes, 6, 0), -EBADMSG);
	ck_assert_int_eq(view_bytes(&content, 9, bytes, 9, 6), -EBADMSG);
	/* Nothing is added to an object that lost bytes, and the block cannot be copied. */
	ck_assert_int_eq(store_run_begin(data, &owner, &(struct store_base){&content, .kept = 9}, 9,
					 next_number, NULL, &run),
			 -EBADMSG);
	/* Another block can be written. */
	write_text(&content, STORE_BLOCK, "!");
	ck_assert_int_eq(view_bytes(&content, STORE_BLOCK + 1, bytes, 1, STORE_BLOCK), 1);
	ck_assert_int_eq(view_bytes(&content, STORE_BLOCK + 1, bytes, 9, 0), -EBADMSG);
	store_content_free(&content);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "data", versions, from_memory, appending, no_object, gathering,
		 gathering_of_many, open_files, flushing, own_flush, shared_flush, failed_before,
		 moved_meanwhile, removed_meanwhile, failed_flush, failed_name, told_to_flush,
		 told_to_writer, cut_meanwhile, opened_again, unasked_flush, listing, removal,
		 removed_names, reopened, short_object)
