/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crash tests of the store: sequences of up to three operations, stopped at each call that changes the
 * disk. A killed process loses nothing that was acknowledged. A machine that restarts loses nothing in
 * strict mode, and in lazy mode nothing that was flushed. The result is always the state after one
 * of the operations, and the checker finds no fault in it.
 *
 * $STORE_CRASH: "all" tries every sequence, which takes about 10 minutes on two processors; else a part of those of two
 * and three operations, always the same one. Longer sequences: test_crash_random.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"
#include "volume/ranges.h"

#define LENGTH_MAX 3
#define LARGE	   20000
#define PARTS	   4 /* of a write, in which a process dies */

static uint32_t volume;
static unsigned damaged_page; /* of the database after each stop, counted from 0; 0: none */
static bool scattered; /* the blocks of "a" lie in several objects */

/* -- operations; the volume has at first the file "a" of LARGE bytes and the directory "d" -- */

static int op_create(struct store *s)
{
	return state_create(s, volume, "b", STORE_FILE, NULL);
}

static int op_small(struct store *s)
{
	return state_write(s, volume, "b", 0, 100, 100, 1);
}

static int op_large(struct store *s)
{
	return state_write(s, volume, "b", 0, LARGE, LARGE, 2);
}

static int op_middle(struct store *s)
{
	return state_write(s, volume, "a", 5000, 3000, LARGE, 3);
}

/* A part of the new contents of "a", which come in ranges. */
static int put_range(struct store *s, struct store_writer *of, uint64_t offset, uint64_t length)
{
	static uint8_t bytes[LARGE];
	struct iovec iov = {bytes, length};
	struct store_writer *range;
	uint64_t taken;
	int rc = s->ops->ranges->range(of, &state_admin, offset, length, &range);

	if (rc)
		return rc;
	state_bytes(bytes, offset, length, 5);
	rc = s->ops->write(range, &iov, 1);
	if (!rc)
		return s->ops->ranges->end_range(range, &taken);
	s->ops->write_abort(range);
	return rc;
}

static int op_ranges(struct store *s)
{
	const struct store_set fixed = {.mask = STORE_SET_MTIME, .mtime = 7};
	const uint64_t half = 10240;
	struct store_changes changes = {0};
	struct store_status status;
	struct store_writer *of;
	struct store_fid fid;
	int rc = state_walk(s, volume, "a", &fid);

	if (!rc)
		rc = s->ops->ranges->begin(s, &state_admin, &fid, &fixed, LARGE, &of);
	if (rc)
		return rc;
	rc = put_range(s, of, half, LARGE - half);
	if (!rc)
		rc = put_range(s, of, 0, half);
	if (!rc)
		return s->ops->ranges->commit(of, &state_admin, LARGE, &status, &changes);
	s->ops->write_abort(of);
	return rc;
}

static int op_cut(struct store *s)
{
	return state_write(s, volume, "a", 10, 0, 10, 0);
}

static int op_append(struct store *s)
{
	return state_write(s, volume, "a", LARGE, 9000, LARGE + 9000, 4);
}

static int op_replace(struct store *s)
{
	return state_rename(s, volume, "b", "a");
}

static int op_move(struct store *s)
{
	return state_rename(s, volume, "a", "d/a");
}

static int op_remove(struct store *s)
{
	return state_remove(s, volume, "a", STORE_FILE);
}

static int op_mkdir(struct store *s)
{
	return state_create(s, volume, "d/e", STORE_DIR, NULL);
}

static int op_rmdir(struct store *s)
{
	return state_remove(s, volume, "d", STORE_DIR);
}

static int op_link(struct store *s)
{
	return state_link(s, volume, "l", "a");
}

static int op_symlink(struct store *s)
{
	return state_create(s, volume, "s", STORE_SYMLINK, "some/where");
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

static int (*const ops[])(struct store *) = {
	op_create,  op_small, op_large,	  op_middle, op_cut,   op_append,
	op_replace, op_move,  op_remove,  op_ranges, op_clone, op_mkdir,
	op_rmdir,   op_link,  op_symlink, op_chmod,  op_acl,
};
#define OPS	 ((int)(sizeof(ops) / sizeof(ops[0])))
#define FILE_OPS 11 /* the first ones: what matters to the contents of a file */

/* The disk that every run begins with. */
static struct crashdisk *make_disk(void)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store *store = diskstore_make(disk, &layer, &volume);

	ck_assert_int_eq(state_create(store, volume, "a", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "a", 0, LARGE, LARGE, 9), 0);
	for (uint64_t i = 0; scattered && i < 7; i++)
		ck_assert_int_eq(state_write(store, volume, "a", 2500 * (i * 3 % 7) + 700, 300,
					     LARGE, (uint32_t)i),
				 0);
	ck_assert_int_eq(state_create(store, volume, "d", STORE_DIR, NULL), 0);
	diskstore_close(store, layer);
	return disk;
}

/* -- one sequence -- */

struct sequence {
	const struct crashdisk *base;
	int op[LENGTH_MAX], length;
	char *dump[LENGTH_MAX + 1]; /* before the first operation, and after each one */
	uint64_t points, refused;   /* crashes so far; of them, starts that were refused */
};

/* The states in order, undisturbed. False: an operation does not apply here. */
static bool rehearse(struct sequence *q)
{
	struct crashdisk *disk = crashdisk_copy(q->base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	bool applies = true;
	int i;

	ck_assert_msg(store != NULL, "%s", diskstore_message);
	q->dump[0] = diskstore_dump(store, "at first");
	for (i = 0; i < q->length && applies; i++) {
		applies = ops[q->op[i]](store) == 0;
		q->dump[i + 1] = applies ? diskstore_dump(store, "rehearsal") : NULL;
	}
	for (; i < LENGTH_MAX; i++)
		q->dump[i + 1] = NULL;
	diskstore_close(store, layer);
	crashdisk_free(disk);
	return applies;
}

static void forget(struct sequence *q)
{
	for (int i = 0; i <= LENGTH_MAX; i++)
		free(q->dump[i]);
}

static void describe(const struct sequence *q, const char *how, uint64_t call, uint64_t keep,
		     char text[200])
{
	int n = snprintf(text, 200, "operations");

	for (int i = 0; i < q->length; i++)
		n += snprintf(text + n, 200 - (size_t)n, " %d", q->op[i]);
	snprintf(text + n, 200 - (size_t)n, ", %s at call %llu, keep %llx", how,
		 (unsigned long long)call, (unsigned long long)keep);
}

/* The state is one of those after `least` to `most` operations, sound, and can be changed. */
static void verify(struct sequence *q, struct crashdisk *disk, enum store_durability durability,
		   int least, int most, const char *what)
{
	struct store_layer *layer;
	struct store *store;
	bool found = false;
	char *now;

	/* The copy repairs this page, unless it may be older: then the start is refused. */
	if (damaged_page)
		crashdisk_flip(disk, "meta/db", damaged_page * 4096ull * 8 + 777);
	store = diskstore_open(disk, durability, &layer);
	q->refused += damaged_page && !store;
	if (damaged_page && !store) {
		ck_assert_msg(strstr(diskstore_message, "use-copy"), "%s", diskstore_message);
		diskstore_close(NULL, layer);
		return;
	}
	ck_assert_msg(store != NULL, "%s: %s", what, diskstore_message);
	now = diskstore_dump(store, what);
	for (int i = least; i <= most; i++)
		found |= strcmp(now, q->dump[i]) == 0;
	ck_assert_msg(found, "%s: neither of the states %d to %d:\n%s\nbut\n%s", what, least, most,
		      q->dump[most], now);
	ck_assert_msg(diskstore_faults(store, what) == 0, "%s", what);
	ck_assert_msg(state_create(store, volume, "new", STORE_FILE, NULL) == 0, "%s", what);
	ck_assert_msg(state_write(store, volume, "new", 0, 6000, 6000, 1) == 0, "%s", what);
	free(now);
	diskstore_close(store, layer);
	q->points++;
}

/* How a run ends. */
enum end {
	KILL_LAZY,
	CRASH_STRICT,
	CRASH_LAZY,
	CRASH_FLUSHED, /* lazy, with a flush before the last operation */
	ENDS
};

/* The states that an end may leave, if the last operation was acknowledged or not. */
static void allowed(const struct sequence *q, enum end end, bool done, int *least)
{
	switch (end) {
	case KILL_LAZY:
	case CRASH_STRICT:
		*least = done ? q->length : q->length - 1;
		return;
	case CRASH_FLUSHED:
		*least = q->length - 1;
		return;
	default:
		*least = 0;
	}
}

/*
 * Which items to keep in crash number `n`: every choice of a few; else none, all, all but each one, and
 * some at random. False: there are no more.
 */
static bool choose(unsigned pending, unsigned n, uint64_t *random, uint64_t *keep, bool *torn)
{
	unsigned singles = pending < 24 ? pending : 24;

	*torn = false;
	if (pending <= 3) {
		*keep = n;
		return n < 1u << pending;
	}
	if (n < 2) {
		*keep = n ? UINT64_MAX : 0;
	} else if (n < 2 + singles) {
		*keep = ~(1ull << (pending - 1 - (n - 2)) % 64);
	} else {
		*torn = n % 2;
		*keep = crashdisk_random_keep(random);
	}
	return n < 2 + singles + 4;
}

static void end_run(struct sequence *q, struct crashdisk *disk, enum end end, uint64_t call,
		    bool done, uint64_t *random)
{
	enum store_durability durability = end == CRASH_STRICT ? STORE_STRICT : STORE_LAZY;
	unsigned pending = crashdisk_pending(disk);
	uint64_t keep;
	char what[200];
	bool torn;
	int least;

	allowed(q, end, done, &least);
	if (end == KILL_LAZY) {
		crashdisk_killed(disk);
		describe(q, "kill", call, 0, what);
		verify(q, disk, durability, least, q->length, what);
		return;
	}
	for (unsigned n = 0; choose(pending, n, random, &keep, &torn); n++) {
		struct crashdisk *copy = crashdisk_copy(disk);

		crashdisk_crashed(copy, keep, torn, crashdisk_random(random));
		describe(q, end == CRASH_STRICT ? "strict crash" : "lazy crash", call, keep, what);
		verify(q, copy, durability, least, q->length, what);
		crashdisk_free(copy);
	}
}

/* Stop in call number `call` of the last operation. False: it has fewer calls. */
static bool stop(struct sequence *q, enum end end, uint64_t call, uint64_t *random)
{
	enum store_durability durability = end == CRASH_STRICT ? STORE_STRICT : STORE_LAZY;
	struct crashdisk *disk = crashdisk_copy(q->base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, durability, &layer);
	bool done, stopped;

	ck_assert_msg(store != NULL, "%s", diskstore_message);
	for (int i = 0; i < q->length - 1; i++)
		ck_assert_int_eq(ops[q->op[i]](store), 0);
	if (end == CRASH_FLUSHED)
		ck_assert_int_eq(store_flush(store), 0);
	crashdisk_stop_at(disk, crashdisk_calls(disk) + call, crashdisk_random(random));
	done = ops[q->op[q->length - 1]](store) == 0;
	stopped = crashdisk_stopped(disk);
	/* Background threads and the close come after the stop. */
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(store, layer);
	end_run(q, disk, end, call, done, random);
	crashdisk_free(disk);
	return stopped;
}

/* All frames of a transaction are one write, which is done up to another byte each time. */
static void crash_sequence(struct sequence *q, enum end end, uint64_t *random)
{
	bool more = true;

	for (uint64_t call = 0; more; call++) {
		ck_assert_uint_lt(call, 500);
		for (unsigned i = 0; i < PARTS && more; i++)
			more = stop(q, end, call, random);
	}
}

/* The operations that concern the contents of a file. */
static bool concerns_file(const struct sequence *q)
{
	for (int i = 0; i < q->length; i++)
		if (q->op[i] >= FILE_OPS)
			return false;
	return true;
}

/* All sequences of `length`, or one of `each`, that do not fail. */
static uint64_t crash_all(enum end end, int length, unsigned each)
{
	struct crashdisk *base = make_disk();
	struct sequence q = {.base = base, .length = length};
	unsigned total = 1;
	uint64_t random = (uint64_t)end * 1000 + (uint64_t)length;

	for (int i = 0; i < length; i++)
		total *= (unsigned)OPS;
	for (unsigned n = 0; n < total; n++) {
		unsigned code = n;

		if (each > 1 && crashdisk_random(&random) % each)
			continue;
		for (int i = 0; i < length; i++, code /= (unsigned)OPS)
			q.op[i] = (int)(code % (unsigned)OPS);
		if (scattered && !concerns_file(&q))
			continue;
		if (rehearse(&q))
			crash_sequence(&q, end, &random);
		forget(&q);
	}
	crashdisk_free(base);
	if (damaged_page)
		printf("%llu starts refused\n", (unsigned long long)q.refused);
	return q.points;
}

static void crash(enum end end)
{
	const char *how = getenv("STORE_CRASH");
	bool all = how && strcmp(how, "all") == 0;
	uint64_t points = crash_all(end, 1, 1);

	points += crash_all(end, 2, all ? 1 : scattered ? 30 : 80);
	points += crash_all(end, 3, all ? 1 : scattered ? 300 : 1500);
	printf("%llu crash points\n", (unsigned long long)points);
	ck_assert_uint_ge(points, 50);
}

START_TEST(killed)
{
	crash(KILL_LAZY);
}
END_TEST

START_TEST(crashed_strict)
{
	crash(CRASH_STRICT);
}
END_TEST

START_TEST(crashed_lazy)
{
	crash(CRASH_LAZY);
}
END_TEST

START_TEST(crashed_after_flush)
{
	crash(CRASH_FLUSHED);
}
END_TEST

/* The acknowledged changes of a killed process are flushed soon, even if the next one has nothing to do. */
START_TEST(killed_then_idle)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	struct store_stats stats;
	char *want, *now;

	ck_assert_ptr_nonnull(store);
	ck_assert_int_eq(state_create(store, volume, "last", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "last", 0, LARGE, LARGE, 9), 0);
	want = diskstore_dump(store, "killed");
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(store, layer);
	crashdisk_killed(disk);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_ptr_nonnull(store);
	do {
		usleep(1000);
		store_stats(store, &stats);
	} while (!stats.flushes);
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(store, layer);
	crashdisk_crashed(disk, 0, false, 1);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_ptr_nonnull(store);
	now = diskstore_dump(store, "idle");
	ck_assert_str_eq(now, want);
	ck_assert_int_eq(diskstore_faults(store, "idle"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free(now);
	free(want);
}
END_TEST

/* All of them again, with a file in several objects. */
START_TEST(several_objects)
{
	scattered = true;
	for (int end = 0; end < ENDS; end++)
		crash((enum end)end);
}
END_TEST

/* With a copy of the metadata, which may never win over a newer database. */
START_TEST(with_copy)
{
	uint64_t points = 0;

	diskstore_copy = true;
	for (int end = 0; end < ENDS; end++)
		points += crash_all((enum end)end, 2, 40);
	for (int end = 0; end < ENDS; end++) {
		/* The number of openings, which each start has changed; the volumes. */
		for (damaged_page = 1; damaged_page <= 2; damaged_page++)
			points += crash_all((enum end)end, 2, 120);
		damaged_page = 0;
	}
	diskstore_copy = false;
	printf("%llu crash points with a copy\n", (unsigned long long)points);
	ck_assert_uint_ge(points, 50);
}
END_TEST

TEST_MAIN_WITHIN(1800, "crash", killed_then_idle, killed, crashed_strict, crashed_lazy,
		 crashed_after_flush, several_objects, with_copy)
