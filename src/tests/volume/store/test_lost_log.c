/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process is killed, and then a part of the log of the metadata is lost, behind a checkpoint that has moved some of it. The next
 * start never serves rows of two moments: the checker finds no fault; and with a copy of the metadata that follows, the store is
 * as after one of the operations, with a line if that is not the last one.
 *
 * $STORE_LOSSES: how often; default 18, and some that have failed once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/model.h"
#include "tests/volume/store/state.h"
#include "volume/store/upkeep.h"

#define WRITERS 4
#define OPS	900 /* of a round, at most: the log begins anew on the way */

/* All writers after a number of operations. */
struct moment {
	struct model model[WRITERS];
	uint32_t next[WRITERS]; /* numbers of their next operations */
};

struct run {
	struct crashdisk *disk,
		*apart; /* apart: with the copy; may be the same; NULL: there is none */
	struct store_layer *layer, *copy;
	struct store *store;
	char told[4096], message[STORE_MESSAGE_MAX];
	uint32_t volume;
	uint64_t random;
	struct moment moment[OPS + 2];
	int done;
	char what[200];
	bool whole; /* the copy follows */
};

static unsigned refused, older, remade, mixed, failures;

static uint64_t draw(struct run *run, uint64_t below)
{
	return crashdisk_random(&run->random) % below;
}

/* -- the store -- */

static void take_line(void *arg, int level, const char *line)
{
	struct run *run = arg;
	size_t used = strlen(run->told);

	(void)level;
	snprintf(run->told + used, sizeof(run->told) - used, "%s\n", line);
}

static bool open_store(struct run *run, enum store_durability durability)
{
	struct store_options options = {.path = "disk",
					.durability = durability,
					.no_reserve = true,
					.scrub_kib = STORE_SCRUB_NEVER,
					.log = take_line,
					.arg = run};

	run->told[0] = '\0';
	run->store = NULL;
	options.layer = run->layer = crashdisk_layer(run->disk);
	run->copy = run->apart && run->apart != run->disk ? crashdisk_layer(run->apart) : NULL;
	options.copy_layer = run->copy ? run->copy : run->apart ? run->layer : NULL;
	return store_open(&options, &run->store, run->message) == 0;
}

static void close_store(struct run *run)
{
	if (run->store)
		run->store->ops->close(run->store);
	run->layer->ops->destroy(run->layer);
	if (run->copy)
		run->copy->ops->destroy(run->copy);
}

/* -- writing, until the process is killed -- */

static void make_store(struct run *run)
{
	run->store = diskstore_make(run->disk, &run->layer, &run->volume);
	diskstore_close(run->store, run->layer);
	ck_assert_msg(open_store(run, STORE_LAZY), "%s", run->message);
	for (unsigned i = 0; i < WRITERS; i++) {
		char path[8];

		snprintf(path, sizeof(path), "w%u", i);
		ck_assert_int_eq(state_create(run->store, run->volume, path, STORE_DIR, NULL), 0);
		model_begin(&run->moment[0].model[i]);
	}
	close_store(run);
}

/* False: the disk has stopped in it; then it may be there nevertheless. */
static bool operate(struct run *run)
{
	struct moment *now = &run->moment[run->done], *after = now + 1;
	unsigned writer = (unsigned)draw(run, WRITERS);
	int result;

	*after = *now;
	result = model_perform(run->store, run->volume, &after->model[writer], writer,
			       now->next[writer]);
	if (result) {
		ck_assert_msg(crashdisk_stopped(run->disk), "result %d", result);
		*after = *now;
		model_skip(&after->model[writer], writer, now->next[writer]);
	}
	after->next[writer]++;
	run->done += !result;
	return !result;
}

/* Most stops are in the checkpoint with which the store is closed. */
static void write_until_killed(struct run *run, enum store_durability durability)
{
	int ops = 20 + (int)draw(run, draw(run, 3) ? 100 : OPS - 20);
	bool goes_on = true;

	ck_assert_msg(open_store(run, durability), "%s", run->message);
	if (!draw(run, 4))
		crashdisk_stop_at(run->disk, crashdisk_calls(run->disk) + draw(run, 3000),
				  run->random);
	while (goes_on && run->done < ops) {
		goes_on = operate(run);
		if (goes_on && !draw(run, 60))
			goes_on = !store_flush(run->store);
	}
	if (goes_on)
		crashdisk_stop_at(run->disk, crashdisk_calls(run->disk) + draw(run, 120),
				  run->random);
	close_store(run);
	crashdisk_killed(run->disk);
	crashdisk_stop_at(run->disk, UINT64_MAX, 0);
	if (run->apart && run->apart != run->disk)
		crashdisk_killed(run->apart);
}

/* -- what is lost -- */

static void remove_file(struct crashdisk *disk, const char *path)
{
	struct store_layer *layer = crashdisk_layer(disk);

	layer->ops->unlink(layer, path);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
}

static void change_file(struct crashdisk *disk, const char *path, uint64_t at, uint64_t zeros)
{
	struct store_layer *layer = crashdisk_layer(disk);
	uint8_t *bytes = calloc(1, zeros + 1);
	const struct iovec iov = {bytes, zeros};
	struct store_file *file;

	ck_assert_int_eq(layer->ops->open(layer, path, STORE_OPEN_WRITE, &file), 0);
	if (zeros)
		ck_assert_int_eq(layer->ops->pwritev(file, &iov, 1, at), (ssize_t)zeros);
	else
		ck_assert_int_eq(layer->ops->truncate(file, at), 0);
	layer->ops->close(file);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	free(bytes);
}

static void lose_part(struct run *run, const char *path)
{
	static const char *const names[] = {"removed", "cut", "flipped", "zeros"};
	struct crashdisk *disk = strncmp(path, "copy", 4) ? run->disk : run->apart;
	unsigned kind = (unsigned)draw(run, 4);
	uint64_t length = disk ? crashdisk_length(disk, path) : 0, at;
	size_t used = strlen(run->what);

	if (!length || length == UINT64_MAX)
		return;
	at = draw(run, length);
	snprintf(run->what + used, sizeof(run->what) - used, ", %s %s at %llu of %llu", path,
		 names[kind], (unsigned long long)at, (unsigned long long)length);
	if (kind == 0)
		remove_file(disk, path);
	else if (kind == 1)
		change_file(disk, path, at, 0);
	else if (kind == 2)
		ck_assert(crashdisk_flip(disk, path, at * 8 + 3));
	else
		change_file(disk, path, at, length - at < 5000 ? length - at : 5000);
}

/* -- the next start -- */

static bool is_at(struct run *run, int moment)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (!model_matches(run->store, run->volume, &run->moment[moment].model[i], i))
			return false;
	return true;
}

/*
 * Files of contents that the state did not have yet stay, without a record. Without a copy, contents are gone that later changes
 * have removed.
 */
static void take_fault(void *arg, const char *line)
{
	struct run *run = arg;

	if (strstr(line, " is unknown") ||
	    (!run->whole && strstr(line, " missing") && !strstr(line, "which is missing")))
		return;
	fprintf(stderr, "%s: %s\n", run->what, line);
	failures++;
}

static void expect(const struct run *run, bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "%s: %s\n%s", run->what, what, run->told);
	failures++;
}

static void verify_start(struct run *run)
{
	const struct store_checker checker = {.each = take_fault, .arg = run};
	int at = run->done + 1;
	bool told;

	if (!open_store(run, STORE_LAZY)) {
		expect(run, !run->whole, run->message);
		close_store(run);
		refused++;
		return;
	}
	told = *run->told;
	ck_assert_int_ge(store_check(run->store, &checker), 0);
	while (at >= 0 && !is_at(run, at))
		at--;
	expect(run, at >= 0 || !run->whole, "is as after no operation");
	expect(run, at >= run->done || told, "lacks changes, without a line");
	older += at >= 0 && at < run->done;
	mixed += at < 0;
	remade += crashdisk_length(run->disk, "meta/db.damaged") != UINT64_MAX;
	close_store(run);
}

static void lose_once(unsigned number)
{
	static const char *const beside[] = {"meta/mark", "copy/db-wal", "copy/state"};
	struct run *run = calloc(1, sizeof(*run));
	enum store_durability durability;
	bool two;

	ck_assert_ptr_nonnull(run);
	run->random = number + 1;
	durability = draw(run, 2) ? STORE_LAZY : STORE_STRICT;
	run->disk = crashdisk_new();
	run->apart = draw(run, 3) ? run->disk : draw(run, 2) ? crashdisk_new() : NULL;
	make_store(run);
	run->moment[1] = run->moment[0];
	write_until_killed(run, durability);
	snprintf(run->what, sizeof(run->what), "%u: %s%s, %d operations", number,
		 durability == STORE_STRICT ? "strict" : "lazy",
		 !run->apart		   ? ""
		 : run->apart == run->disk ? ", copy"
					   : ", copy apart",
		 run->done);
	lose_part(run, "meta/db-wal");
	two = !draw(run, 4);
	if (two)
		lose_part(run, beside[draw(run, 3)]);
	run->whole = run->apart && !two;
	verify_start(run);
	if (run->apart && run->apart != run->disk)
		crashdisk_free(run->apart);
	crashdisk_free(run->disk);
	free(run);
}

START_TEST(losses)
{
	/* These have failed. */
	static const unsigned known[] = {205, 442, 1177, 1539, 3643, 4359};
	const char *text = getenv("STORE_LOSSES"), *first = getenv("STORE_FIRST");
	unsigned count = text ? (unsigned)atoi(text) : 18, from = first ? (unsigned)atoi(first) : 0;

	for (unsigned i = from; i < from + count; i++)
		lose_once(i);
	for (unsigned i = 0; !text && i < sizeof(known) / sizeof(known[0]); i++)
		lose_once(known[i]);
	printf("%u losses: %u starts with an older state, %u with one that never was, %u with new metadata, %u refused\n",
	       count, older, mixed, remade, refused);
	ck_assert_uint_eq(failures, 0);
}
END_TEST

TEST_MAIN_WITHIN(3600, "lost logs", losses)
