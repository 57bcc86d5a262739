/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long random sequences of operations on one store, which is stopped again and again: the process is killed,
 * or the machine restarts and loses, tears and reorders what was not flushed. Modes take turns. The store
 * is always as after one of the operations: after each acknowledged one if the process was killed or the mode
 * is strict, else not before the last flush. The checker finds no fault, and the sequence goes on from there.
 *
 * $STORE_SEEDS: how many sequences; default 8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/model.h"
#include "tests/volume/store/state.h"

#define WRITERS 4   /* their directories; one operation at a time */
#define ROUNDS	12  /* of a sequence: each ends with a stop */
#define OPS	250 /* of a round, at most */
#define CALLS	900 /* that change the disk, in a round */

/* All writers after a number of operations. */
struct moment {
	struct model model[WRITERS];
	uint32_t next[WRITERS]; /* numbers of their next operations */
};

struct run {
	struct crashdisk *disk;
	uint32_t volume;
	uint64_t random;
	struct moment moment[OPS + 1]; /* of this round; the first one is the beginning */
	int done;		       /* operations that were acknowledged */
	int flushed;		       /* of these, those before a flush */
	bool clone;		       /* there may be one */
	unsigned stops;
};

static uint64_t draw(struct run *run, uint64_t below)
{
	return crashdisk_random(&run->random) % below;
}

static void make(struct run *run)
{
	struct store_layer *layer;
	struct store *store = diskstore_make(run->disk = crashdisk_new(), &layer, &run->volume);

	for (unsigned i = 0; i < WRITERS; i++) {
		char path[8];

		snprintf(path, sizeof(path), "w%u", i);
		ck_assert_int_eq(state_create(store, run->volume, path, STORE_DIR, NULL), 0);
		model_begin(&run->moment[0].model[i]);
	}
	diskstore_close(store, layer);
}

/* One more operation of a writer. False: the disk has stopped in it. */
static bool operate(struct run *run, struct store *store)
{
	struct moment *now = &run->moment[run->done], *after = now + 1;
	unsigned writer = (unsigned)draw(run, WRITERS);
	int result;

	*after = *now;
	result =
		model_perform(store, run->volume, &after->model[writer], writer, now->next[writer]);
	if (result) {
		ck_assert_msg(crashdisk_stopped(run->disk), "result %d", result);
		/* It may be there nevertheless. */
		*after = *now;
		model_skip(&after->model[writer], writer, now->next[writer]);
	}
	after->next[writer]++;
	run->done += !result;
	return !result;
}

/* Work that clients do not see: a flush, a clone that is made or removed. */
static bool maintain(struct run *run, struct store *store)
{
	uint32_t id;
	int result;

	switch (draw(run, 3)) {
	case 0:
		result = store_volume_clone(store, run->volume, STORE_RO, &id);
		run->clone = true;
		break;
	case 1:
		result = run->clone ? store_volume_remove(store, run->volume + 1) : 0;
		run->clone = false;
		result = result == STORE_VNOVOL ? 0 : result;
		break;
	default:
		result = store_flush(store);
		run->flushed = result ? run->flushed : run->done;
	}
	ck_assert_msg(!result || crashdisk_stopped(run->disk), "result %d", result);
	return !result;
}

static void work(struct run *run, enum store_durability durability)
{
	struct store_layer *layer;
	struct store *store = diskstore_open(run->disk, durability, &layer);
	bool goes_on = true;

	ck_assert_msg(store != NULL, "%s", diskstore_message);
	crashdisk_stop_at(run->disk, crashdisk_calls(run->disk) + draw(run, CALLS), run->random);
	while (goes_on && run->done < OPS - 1)
		goes_on = draw(run, 12) ? operate(run, store) : maintain(run, store);
	/* Background threads and the close come after the stop. */
	crashdisk_stop_at(run->disk, 0, 0);
	diskstore_close(store, layer);
}

static bool is_at(const struct run *run, struct store *store, int moment)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (!model_matches(store, run->volume, &run->moment[moment].model[i], i))
			return false;
	return true;
}

/* The store is as after an allowed number of operations. The next round begins there. */
static void verify(struct run *run, int least, const char *what)
{
	struct store_layer *layer;
	struct store *store = diskstore_open(run->disk, STORE_LAZY, &layer);
	int at = run->done + 1;

	ck_assert_msg(store != NULL, "%s: %s", what, diskstore_message);
	while (at >= least && !is_at(run, store, at))
		at--;
	ck_assert_msg(at >= least, "%s: no state from %d to %d", what, least, run->done + 1);
	ck_assert_msg(diskstore_faults(store, what) == 0, "%s", what);
	run->moment[0] = run->moment[at];
	diskstore_close(store, layer);
}

static void round_of(struct run *run, unsigned seed, unsigned number)
{
	enum store_durability durability = draw(run, 3) ? STORE_LAZY : STORE_STRICT;
	bool killed = draw(run, 3) == 0;
	char what[80];

	run->done = run->flushed = 0;
	run->moment[1] = run->moment[0];
	work(run, durability);
	/* Without a stop in an operation the next moment is the same. */
	if (crashdisk_stopped(run->disk))
		run->stops++;
	snprintf(what, sizeof(what), "seed %u, round %u: %s, %s", seed, number,
		 durability == STORE_STRICT ? "strict" : "lazy", killed ? "killed" : "crashed");
	if (killed)
		crashdisk_killed(run->disk);
	else
		crashdisk_crashed(run->disk, crashdisk_random_keep(&run->random), draw(run, 2),
				  run->random);
	verify(run, killed || durability == STORE_STRICT ? run->done : run->flushed, what);
}

START_TEST(sequences)
{
	const char *text = getenv("STORE_SEEDS");
	unsigned seeds = text ? (unsigned)atoi(text) : 8, stops = 0;

	for (unsigned seed = 0; seed < seeds; seed++) {
		struct run *run = calloc(1, sizeof(*run));

		ck_assert_ptr_nonnull(run);
		run->random = seed + 1;
		/* The copy of the metadata may never win over a newer database. */
		diskstore_copy = seed % 2;
		make(run);
		for (unsigned i = 0; i < ROUNDS; i++)
			round_of(run, seed, i);
		stops += run->stops;
		crashdisk_free(run->disk);
		free(run);
	}
	printf("%u stops\n", stops);
	diskstore_copy = false;
	ck_assert_uint_gt(stops, seeds);
}
END_TEST

#define TRIES 20

/* Lazy: what was acknowledged is flushed within a second. One of some tries, for a busy machine. */
START_TEST(within_a_second)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store_stats before, now;
	uint64_t best = UINT64_MAX;
	uint32_t volume;
	struct store *store = diskstore_make(disk, &layer, &volume);

	ck_assert_int_eq(store_flush(store), 0);
	for (int i = 0; i < TRIES && best >= NS_PER_S; i++) {
		char name[16];
		uint64_t begun = monotonic_ns(), took;

		snprintf(name, sizeof(name), "f%d", i);
		store_stats(store, &before);
		ck_assert_int_eq(state_create(store, volume, name, STORE_FILE, NULL), 0);
		do {
			usleep(5000);
			store_stats(store, &now);
		} while (now.flushes == before.flushes);
		took = monotonic_ns() - begun;
		best = took < best ? took : best;
	}
	ck_assert_uint_lt(best, NS_PER_S);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

TEST_MAIN_WITHIN(1800, "crashes in random sequences", sequences, within_a_second)
