/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Damaged metadata: each page in turn, and random sets of pages and files. No wrong byte is served, no sound volume is
 * withheld, and a rescue finds everything. With DAMAGE=all every page of 10,000 files, and 1,000 sets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"
#include "volume/store/cellvol.h"
#include "volume/store/disk/vfs.h"
#include "volume/store/upkeep.h"

#define PAGE	 STORE_DB_PAGE
#define FOLDERS	 20
#define LONGEST	 20000
#define SETS_MAX 100 /* damages of a set */

static unsigned file_count, page_cases, sets;
static struct store_fid *fids;
static uint32_t volume;
static struct crashdisk *base;
static char message[STORE_MESSAGE_MAX];
static unsigned lines;
static char told[1u << 20]; /* lines of the log and of a rescue */
static bool without_copy;   /* the next stores */
static unsigned recordless; /* files that were made of contents alone */
static bool refused; /* the last start */

/* -- the store -- */

static void take_rescue_line(void *arg, const char *line)
{
	size_t used = strlen(told);

	(void)arg;
	snprintf(told + used, sizeof(told) - used, "%s\n", line);
	/* Contents without a record are not in the new store. */
	ck_assert_msg(!strstr(line, "is unknown"), "%s", line);
}

static void count_line(void *arg, int level, const char *line)
{
	(void)level;
	take_rescue_line(arg, line);
	lines++;
}

static struct store *open_with(struct store_layer *layer, struct store_layer *copy)
{
	const struct store_options options = {.path = "disk",
					      .layer = layer,
					      .copy_layer = copy,
					      .no_reserve = true,
					      .scrub_kib = STORE_SCRUB_NEVER,
					      .log = count_line};
	struct store *store = NULL;

	lines = 0;
	return store_open(&options, &store, message) == 0 ? store : NULL;
}

static struct store *open_on(struct store_layer *layer)
{
	return open_with(layer, without_copy ? NULL : layer);
}

static unsigned length_of(unsigned i)
{
	return i % 50 == 0 ? LONGEST : i * 37 % 300;
}

static void make_file(struct store *store, unsigned i)
{
	char path[64];

	snprintf(path, sizeof(path), "d%u/file-%u", i % FOLDERS, i);
	ck_assert_int_eq(state_create(store, volume, path, STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_walk(store, volume, path, &fids[i]), 0);
	if (length_of(i))
		ck_assert_int_eq(state_write(store, volume, path, 0, length_of(i), 0, i), 0);
}

/* With its copy, closed. */
static void make_base(void)
{
	const struct store_new_volume new = {.name = "v"};
	struct store_options options = {.path = "disk"};
	struct store_layer *layer;
	struct store *store;
	bool all = getenv("DAMAGE") && !strcmp(getenv("DAMAGE"), "all");

	file_count = all ? 10000 : 1000;
	page_cases = all ? UINT32_MAX : 100;
	sets = all ? 1000 : 100;
	fids = calloc(file_count, sizeof(*fids));
	base = crashdisk_new();
	options.layer = layer = crashdisk_layer(base);
	ck_assert_int_eq(store_make(&options, message), 0);
	layer->ops->destroy(layer);
	layer = crashdisk_layer(base);
	store = open_on(layer);
	ck_assert_ptr_nonnull(store);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	for (unsigned i = 0; i < FOLDERS; i++) {
		char path[16];

		snprintf(path, sizeof(path), "d%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_DIR, NULL), 0);
	}
	for (unsigned i = 0; i < file_count; i++)
		make_file(store, i);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_killed(base);
}

/* -- reading: each file is right, or an error. `read`: by file, whether it is right; may be NULL. Returns how many are not. -- */

static bool read_file(struct store *store, unsigned i)
{
	static uint8_t want[LONGEST], got[LONGEST + 1];
	struct iovec iov = {got, sizeof(got)};
	struct store_reader *reader;
	struct store_status status;
	ssize_t n;

	if (store->ops->read_begin(store, &state_admin, &fids[i], &reader, &status))
		return false;
	n = store->ops->read(reader, &iov, 1, 0, 0);
	store->ops->read_end(reader);
	if (n < 0)
		return false;
	state_bytes(want, 0, length_of(i), i);
	ck_assert_msg((size_t)n == length_of(i) && !memcmp(want, got, (size_t)n),
		      "file %u is wrong", i);
	return true;
}

static unsigned read_all(struct store *store, bool *read)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < file_count; i++) {
		bool right = read_file(store, i);

		if (read)
			read[i] = right;
		failed += !right;
	}
	return failed;
}

/* Start a server. Returns how many files it does not serve; all of them if it does not start. */
static unsigned serve(struct crashdisk *disk, bool *read)
{
	struct store_layer *layer = crashdisk_layer(disk);
	struct store *store = open_on(layer);
	unsigned failed = file_count;

	refused = !store;
	if (store)
		failed = read_all(store, read);
	else
		ck_assert_msg(*message && !strchr(message, '\n'), "%s", message);
	if (!store && read)
		memset(read, 0, file_count * sizeof(*read));
	if (store)
		store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	return failed;
}

/*
 * -- rescue: what a server can read must be in the new store, and the other way round; `read`: what it can; or NULL. Returns how
 * many files are not. --
 */

/* Only a rescue makes files of contents whose record is lost, and names them so. */
static bool has_no_record(unsigned i)
{
	char name[64];

	snprintf(name, sizeof(name), "file.%u.%u.no-record", fids[i].vnode, fids[i].unique);
	return strstr(told, name) != NULL;
}

static unsigned rescue(struct crashdisk *disk, const bool *read, struct store_rescue *result)
{
	struct crashdisk *target = crashdisk_new();
	struct store_layer *source = crashdisk_layer(disk), *made = crashdisk_layer(target);
	struct store *store;
	unsigned failed = 0;

	*result = (struct store_rescue){.source = "disk",
					.target = "new",
					.layers = {source, made},
					.line = take_rescue_line};
	told[0] = '\0';
	ck_assert_msg(store_rescue(result, message) == 0, "%s", message);
	source->ops->destroy(source);
	made->ops->destroy(made);
	crashdisk_killed(target);
	made = crashdisk_layer(target);
	store = open_on(made);
	ck_assert_msg(store != NULL, "%s", message);
	for (unsigned i = 0; i < file_count; i++) {
		bool right = read_file(store, i), found = has_no_record(i);

		ck_assert_msg(!found || right, "file %u has no record, and cannot be read", i);
		ck_assert_msg(!read || right == read[i] || (found && !read[i]), "file %u is %s", i,
			      right ? "rescued, and not served" : "served, and not rescued");
		recordless += found;
		failed += !right;
	}
	store->ops->close(store);
	made->ops->destroy(made);
	crashdisk_free(target);
	return failed;
}

/* -- damage -- */

static void write_bytes_at(struct crashdisk *disk, const char *path, uint64_t offset,
			   const void *bytes, size_t length)
{
	struct store_layer *layer = crashdisk_layer(disk);
	const struct iovec iov = {(void *)(uintptr_t)bytes, length};
	struct store_file *file;

	ck_assert_int_eq(layer->ops->open(layer, path, STORE_OPEN_WRITE, &file), 0);
	ck_assert_int_eq(layer->ops->pwritev(file, &iov, 1, offset), (ssize_t)length);
	layer->ops->sync(file);
	layer->ops->close(file);
	layer->ops->destroy(layer);
}

static void copy_file_to(struct crashdisk *from, struct crashdisk *to, const char *path)
{
	struct store_layer *layer = crashdisk_layer(from);
	uint64_t length = crashdisk_length(from, path);
	uint8_t *bytes = malloc(length);
	const struct iovec iov = {bytes, length};
	struct store_file *file;

	ck_assert_ptr_nonnull(bytes);
	ck_assert_int_eq(layer->ops->open(layer, path, 0, &file), 0);
	ck_assert_int_eq(layer->ops->preadv(file, &iov, 1, 0, false), (ssize_t)length);
	layer->ops->close(file);
	layer->ops->destroy(layer);
	write_bytes_at(to, path, 0, bytes, length);
	free(bytes);
}

/* Zeros, random bytes, a flipped bit, or another page. */
static void damage_page(struct crashdisk *disk, const char *path, uint64_t page, uint64_t *random)
{
	uint64_t length = crashdisk_length(disk, path), at = page * PAGE;
	uint8_t bytes[PAGE] = {0};
	size_t size = length - at < PAGE ? (size_t)(length - at) : PAGE;

	switch (crashdisk_random(random) % 4) {
	case 0:
		break;
	case 1:
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)crashdisk_random(random);
		break;
	case 2:
		ck_assert(crashdisk_flip(disk, path,
					 at * 8 + crashdisk_random(random) % (size * 8)));
		return;
	default:
		memset(bytes, 10, sizeof(bytes));
	}
	write_bytes_at(disk, path, at, bytes, size);
}

START_TEST(each_page)
{
	uint64_t random = 7;
	uint32_t pages;

	make_base();
	pages = (uint32_t)(crashdisk_length(base, "meta/db") / PAGE);
	for (uint32_t i = 0; i < pages; i++) {
		struct crashdisk *disk;
		struct store_rescue result;
		unsigned before;

		/* The first ones are the roots of the tables. */
		if (page_cases < pages && i >= 20 && i % (pages / (page_cases - 20) + 1))
			continue;
		disk = crashdisk_copy(base);
		damage_page(disk, "meta/db", i, &random);
		ck_assert_msg(!rescue(disk, NULL, &result), "page %u: rescue", i + 1);
		ck_assert_msg(!result.lost && !result.found && !result.unread, "page %u: losses", i + 1);
		before = serve(disk, NULL);
		ck_assert_uint_lt(before, file_count);
		/* The next start repairs what this one has met. */
		ck_assert_msg(!serve(disk, NULL), "page %u is not repaired", i + 1);
		crashdisk_free(disk);
	}
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* Which pages a set has damaged, and what else. */
struct damages {
	uint8_t *in_database, *in_copy;
	bool both;   /* a page in both */
	bool beside; /* files on which the certainty of the copy depends */
	bool objects;
};

static void remove_file(struct crashdisk *disk, const char *path)
{
	struct store_layer *layer = crashdisk_layer(disk);

	layer->ops->unlink(layer, path);
	layer->ops->sync_dir(layer, strncmp(path, "meta", 4) ? "copy" : "meta");
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
}

static void damage_once(struct crashdisk *disk, struct damages *damages, uint32_t pages,
			uint64_t *random)
{
	static const char *const beside[] = {"meta/mark", "copy/state", "FORMAT", "copy/FORMAT"};
	unsigned kind = crashdisk_random(random) % 100;
	uint32_t page = (uint32_t)(crashdisk_random(random) % pages);
	const char *path = beside[crashdisk_random(random) % 4];

	if (kind < 48) {
		damage_page(disk, "meta/db", page, random);
		damages->in_database[page] = true;
	} else if (kind < 96) {
		damage_page(disk, "copy/db", page, random);
		damages->in_copy[page] = true;
	} else if (crashdisk_length(disk, path) != UINT64_MAX && crashdisk_length(disk, path)) {
		damages->beside |= path != beside[3] && path != beside[2];
		if (kind < 98)
			damage_page(disk, path, 0, random);
		else if (path != beside[2])
			remove_file(disk, path);
	}
	damages->both |= damages->in_database[page] && damages->in_copy[page];
}

START_TEST(random_sets)
{
	uint64_t random = 11;
	unsigned refusals = 0, doubles = 0;
	uint32_t pages;
	bool *read;

	make_base();
	read = calloc(file_count, sizeof(*read));
	pages = (uint32_t)(crashdisk_length(base, "meta/db") / PAGE);
	ck_assert_uint_eq(crashdisk_length(base, "copy/db"), (uint64_t)pages * PAGE);
	for (unsigned set = 0; set < sets; set++) {
		struct damages damages = {calloc(pages, 1), calloc(pages, 1), false, false, false};
		struct crashdisk *disk = crashdisk_copy(base), *same;
		unsigned count = 1 + (unsigned)(crashdisk_random(&random) % SETS_MAX), left;
		struct store_rescue result;
		bool once;

		for (unsigned i = 0; i < count; i++)
			damage_once(disk, &damages, pages, &random);
		same = crashdisk_copy(disk);
		serve(disk, NULL);
		once = refused;
		left = serve(disk, read);
		once |= refused;
		refusals += once;
		doubles += damages.both;
		ck_assert_msg(!left || damages.both || damages.beside, "set %u: %u files are not served",
			      set, left);
		left = rescue(same, read, &result);
		ck_assert_msg(!once || !result.volumes, "set %u: a start is refused", set);
		ck_assert_msg(!left || damages.both, "set %u: %u files are not rescued", set, left);
		crashdisk_free(disk);
		crashdisk_free(same);
		free(damages.in_database);
		free(damages.in_copy);
	}
	printf("%u sets: %u with a page that is damaged twice, %u starts refused, %u files without a record\n",
	       sets, doubles, refusals, recordless);
	ck_assert_uint_gt(recordless, 0);
	crashdisk_free(base);
	free(fids);
	free(read);
}
END_TEST

/* -- the copy in the place of the database -- */

static int use_copy(struct crashdisk *disk, bool *stopped)
{
	struct store_layer *layer = crashdisk_layer(disk);
	const struct store_options options = {.path = "disk", .layer = layer, .copy_layer = layer};
	int result = store_use_copy(&options, message);

	*stopped = crashdisk_stopped(disk);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	return result;
}

static uint8_t *read_whole(struct crashdisk *disk, const char *path, uint64_t length)
{
	struct store_layer *layer = crashdisk_layer(disk);
	uint8_t *bytes = malloc(length);
	const struct iovec iov = {bytes, length};
	struct store_file *file;

	ck_assert_msg(layer->ops->open(layer, path, 0, &file) == 0, "%s is missing", path);
	ck_assert_int_eq(layer->ops->preadv(file, &iov, 1, 0, false), (ssize_t)length);
	layer->ops->close(file);
	layer->ops->destroy(layer);
	return bytes;
}

/* Killed in each call in turn, and repeated: the damaged database is kept as it was, and every file is served. */
START_TEST(use_interrupted)
{
	uint8_t garbage[PAGE], *want;
	bool stopped = true, again;
	uint64_t length;
	unsigned kills = 0;

	make_base();
	memset(garbage, 'x', sizeof(garbage));
	write_bytes_at(base, "meta/db", 0, garbage, sizeof(garbage));
	length = crashdisk_length(base, "meta/db");
	want = read_whole(base, "meta/db", length);
	for (; stopped; kills++) {
		struct crashdisk *disk = crashdisk_copy(base);
		uint8_t *kept;
		int result;

		crashdisk_stop_at(disk, crashdisk_calls(disk) + 1 + kills, kills);
		result = use_copy(disk, &stopped);
		ck_assert_msg(stopped || !result, "%s", message);
		crashdisk_stop_at(disk, UINT64_MAX, 0);
		if (stopped)
			ck_assert_msg(use_copy(disk, &again) == 0, "call %u: %s", kills, message);
		ck_assert_uint_eq(crashdisk_length(disk, "meta/db.damaged"), length);
		kept = read_whole(disk, "meta/db.damaged", length);
		ck_assert_msg(!memcmp(kept, want, length), "call %u", kills);
		ck_assert_msg(!serve(disk, NULL), "call %u", kills);
		free(kept);
		crashdisk_free(disk);
	}
	ck_assert_uint_gt(kills, 10);
	crashdisk_free(base);
	free(fids);
	free(want);
}
END_TEST

/* -- a start that makes the database anew, and is stopped on the way: the next one does it, or goes on -- */

/* What every start reads, in both. */
static struct crashdisk *damage_first_pages(void)
{
	static const uint8_t zeros[2 * PAGE];
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;

	write_bytes_at(disk, "meta/db", 0, zeros, sizeof(zeros));
	write_bytes_at(disk, "copy/db", 0, zeros, sizeof(zeros));
	/* What the start before has left is not lost: only what this one does. */
	layer = crashdisk_layer(disk);
	ck_assert_int_eq(layer->ops->sync_all(layer), 0);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	return disk;
}

/* Calls until the store is open; it is stopped in one of them. */
static uint64_t start_until(struct crashdisk *disk, uint64_t call, uint64_t *random)
{
	struct store_layer *layer = crashdisk_layer(disk);
	uint64_t before = crashdisk_calls(disk), calls;
	struct store *store;

	if (call != UINT64_MAX)
		crashdisk_stop_at(disk, before + call, crashdisk_random(random));
	store = open_on(layer);
	calls = crashdisk_calls(disk) - before;
	crashdisk_stop_at(disk, 0, 0);
	if (store)
		store->ops->close(store);
	layer->ops->destroy(layer);
	return calls;
}

/* How many of the files of before are kept; `line` names them, up to a semicolon. */
static unsigned count_kept(const struct crashdisk *disk, const char *line)
{
	static const char *const paths[] = {"meta/db", "meta/db-wal", "meta/mark",
					    "copy/db", "copy/db-wal", "copy/state"};
	size_t named = strcspn(line, ";"), length = 0;
	unsigned kept = 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s.damaged", paths[i]);
		if (crashdisk_length(disk, name) == UINT64_MAX)
			continue;
		ck_assert_msg(strstr(line, paths[i]) != NULL, "no %s: %s", paths[i], line);
		length += strlen(paths[i]) + 2 * (kept++ > 0);
	}
	ck_assert_msg(named == length, "other files: %s", line);
	return kept;
}

/* The log names the files that are kept, and no others. */
START_TEST(kept_files)
{
	static const char *const text = "with .damaged behind their names: ";
	uint64_t random = 5;

	make_base();
	for (int with_copy = 0; with_copy < 2; with_copy++) {
		struct crashdisk *disk = damage_first_pages();
		const char *line;

		if (!with_copy)
			remove_file(disk, "copy/db");
		told[0] = '\0';
		start_until(disk, UINT64_MAX, &random);
		line = strstr(told, text);
		ck_assert_msg(line != NULL, "%s", told);
		ck_assert_uint_ge(count_kept(disk, line + strlen(text)), with_copy ? 2 : 1);
		crashdisk_free(disk);
	}
	crashdisk_free(base);
	free(fids);
}
END_TEST

START_TEST(stopped_on_the_way)
{
	uint64_t random = 5, calls;
	struct crashdisk *disk;
	bool all;

	make_base();
	all = page_cases == UINT32_MAX;
	disk = damage_first_pages();
	calls = start_until(disk, UINT64_MAX, &random);
	ck_assert_uint_gt(calls, 40);
	crashdisk_free(disk);
	for (uint64_t call = 0; call < calls; call += all || call + 60 > calls ? 1 : 5) {
		disk = damage_first_pages();
		start_until(disk, call, &random);
		if (call % 3)
			crashdisk_crashed(disk, crashdisk_random_keep(&random), call & 1, random);
		else
			crashdisk_killed(disk);
		ck_assert_msg(!serve(disk, NULL), "call %u: %s", (unsigned)call, message);
		ck_assert_msg(crashdisk_length(disk, "meta/db.damaged") != UINT64_MAX &&
				      crashdisk_length(disk, "copy/db.damaged") != UINT64_MAX,
			      "call %u of %u: the damaged files are not kept", (unsigned)call,
			      (unsigned)calls);
		ck_assert_uint_eq(crashdisk_length(disk, "meta/db.damaged.2"), UINT64_MAX);
		ck_assert_msg(!serve(disk, NULL), "call %u, once more: %s", (unsigned)call,
			      message);
		crashdisk_free(disk);
	}
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* The copy may lack changes: an administrator decides, and nothing is changed before. */
START_TEST(older_copy)
{
	uint64_t random = 3;
	struct crashdisk *disk, *same;
	struct store_layer *layer;
	struct store *store;

	make_base();
	disk = crashdisk_copy(base);
	layer = crashdisk_layer(disk);
	store = open_on(layer);
	ck_assert_ptr_nonnull(store);
	ck_assert_int_eq(state_create(store, volume, "late", STORE_FILE, NULL), 0);
	ck_assert_int_eq(store_flush(store), 0);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	/* As if the copy had been on a disk that was away. */
	same = crashdisk_copy(base);
	copy_file_to(same, disk, "copy/db");
	copy_file_to(same, disk, "copy/state");
	damage_page(disk, "meta/db", 0, &random);
	ck_assert_uint_eq(serve(disk, NULL), file_count);
	ck_assert(refused);
	ck_assert_msg(strstr(message, "use-copy"), "%s", message);
	ck_assert_uint_eq(crashdisk_length(disk, "meta/db.damaged"), UINT64_MAX);
	crashdisk_free(same);
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* -- logs. Files that only the log has: -- */

#define LATE 6

static void make_late_file(struct store *store, const char *name, uint32_t seed)
{
	ck_assert_int_eq(state_create(store, volume, name, STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, name, 0, 100, 0, seed), 0);
}

/* The copy has all that the log has. */
static void wait_for_copy(struct crashdisk *disk, struct store *store)
{
	ck_assert_int_eq(store_flush(store), 0);
	while (!without_copy &&
	       crashdisk_length(disk, "copy/db-wal") != crashdisk_length(disk, "meta/db-wal"))
		usleep(1000);
}

static struct store *open_late(struct crashdisk *disk, struct store_layer **layer)
{
	struct store *store;
	char name[16];

	*layer = crashdisk_layer(disk);
	store = open_on(*layer);
	ck_assert_msg(store != NULL, "%s", message);
	for (unsigned i = 0; i < LATE; i++) {
		snprintf(name, sizeof(name), "late-%u", i);
		make_late_file(store, name, i);
	}
	wait_for_copy(disk, store);
	return store;
}

static void kill_store(struct crashdisk *disk, struct store *store, struct store_layer *layer)
{
	crashdisk_stop_at(disk, crashdisk_calls(disk) + 1, 0);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	crashdisk_stop_at(disk, UINT64_MAX, 0);
}

/* A store that was killed. */
static struct crashdisk *make_late(void)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = open_late(disk, &layer);

	kill_store(disk, store, layer);
	ck_assert_uint_gt(crashdisk_length(disk, "meta/db-wal"), PAGE);
	return disk;
}

static bool has_late_file(struct store *store, const char *name, uint32_t seed)
{
	uint8_t want[100], got[101];
	struct iovec iov = {got, sizeof(got)};
	struct store_reader *reader;
	struct store_status status;
	struct store_fid fid;
	ssize_t n;

	if (state_walk(store, volume, name, &fid) ||
	    store->ops->read_begin(store, &state_admin, &fid, &reader, &status))
		return false;
	n = store->ops->read(reader, &iov, 1, 0, 0);
	store->ops->read_end(reader);
	state_bytes(want, 0, sizeof(want), seed);
	ck_assert(n < 0 || n == 0 || (n == sizeof(want) && !memcmp(want, got, sizeof(want))));
	return n == sizeof(want);
}

/* Start a server, and end it. */
static unsigned count_late(struct crashdisk *disk)
{
	struct store_layer *layer = crashdisk_layer(disk);
	struct store *store;
	unsigned count = 0;
	char name[16];

	told[0] = '\0';
	store = open_on(layer);
	for (unsigned i = 0; store && i < LATE; i++) {
		snprintf(name, sizeof(name), "late-%u", i);
		count += has_late_file(store, name, i);
	}
	if (store)
		store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
	return count;
}

static void cut_to_nothing(struct crashdisk *disk, const char *path)
{
	struct store_layer *layer = crashdisk_layer(disk);
	struct store_file *file;

	ck_assert_int_eq(layer->ops->open(layer, path, STORE_OPEN_WRITE, &file), 0);
	ck_assert_int_eq(layer->ops->truncate(file, 0), 0);
	ck_assert_int_eq(layer->ops->sync(file), 0);
	layer->ops->close(file);
	layer->ops->destroy(layer);
}

static void free_late(struct crashdisk *disk)
{
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}

static void rescue_shortened(bool with_copy, struct store_rescue *result)
{
	struct crashdisk *disk = crashdisk_copy(base), *target = crashdisk_new();
	struct store_layer *source, *made;
	struct store_file *file;

	if (!with_copy)
		remove_file(disk, "copy/db");
	source = crashdisk_layer(disk);
	made = crashdisk_layer(target);
	ck_assert_int_eq(source->ops->open(source, "meta/db", STORE_OPEN_WRITE, &file), 0);
	ck_assert_int_eq(source->ops->truncate(file, 2ull * PAGE), 0);
	source->ops->close(file);
	*result = (struct store_rescue){.source = "disk",
					.target = "new",
					.layers = {source, made},
					.line = take_rescue_line};
	ck_assert_msg(store_rescue(result, message) == 0, "%s", message);
	source->ops->destroy(source);
	made->ops->destroy(made);
	crashdisk_free(target);
	crashdisk_free(disk);
}

/* The database became shorter, and every page that is left is sound: the copy has the others. Else contents are found. */
START_TEST(shortened_database)
{
	struct store_rescue result;
	uint64_t bytes = 0;

	make_base();
	rescue_shortened(true, &result);
	ck_assert_uint_gt(result.volumes, 0);
	ck_assert_uint_gt(result.damaged_pages, 0);
	ck_assert_uint_eq(result.lost, 0);
	/* The sum of the lengths of the files, wherever their contents are. */
	for (unsigned i = 0; i < file_count; i++)
		bytes += length_of(i);
	ck_assert_uint_eq(result.bytes, bytes);
	rescue_shortened(false, &result);
	ck_assert_uint_gt(result.volumes, 0);
	ck_assert_uint_gt(result.damaged_pages, 0);
	ck_assert_uint_gt(result.found, 0);
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* No page is damaged, but the log is gone: a rescue reads that of the copy, and says so. */
START_TEST(lost_log)
{
	struct crashdisk *disk, *target = crashdisk_new();
	struct store_layer *source, *made;
	struct store_rescue result;

	make_base();
	disk = make_late();
	remove_file(disk, "meta/db-wal");
	source = crashdisk_layer(disk);
	made = crashdisk_layer(target);
	result = (struct store_rescue){.source = "disk",
				       .target = "new",
				       .layers = {source, made},
				       .line = take_rescue_line};
	ck_assert_msg(store_rescue(&result, message) == 0, "%s", message);
	source->ops->destroy(source);
	made->ops->destroy(made);
	crashdisk_killed(target);
	ck_assert_msg(strstr(told, "that of the copy is used") != NULL, "%s", told);
	ck_assert_msg(strstr(told, "lost") == NULL, "%s", told);
	ck_assert_uint_eq(result.lost, 0);
	ck_assert_uint_eq(count_late(target), LATE);
	crashdisk_free(target);
	free_late(disk);
}
END_TEST

/* Rows of a copy that is older have a line each. */
START_TEST(older_rows)
{
	uint64_t random = 3;
	struct crashdisk *disk, *old;
	struct store_rescue result;

	make_base();
	disk = crashdisk_copy(base);
	count_late(disk);
	old = make_late();
	ck_assert_uint_eq(count_late(old), LATE);
	copy_file_to(disk, old, "copy/db");
	copy_file_to(disk, old, "copy/state");
	for (unsigned page = 30; page < 60; page++)
		damage_page(old, "meta/db", page, &random);
	rescue(old, NULL, &result);
	ck_assert_uint_gt(result.older, 0);
	ck_assert(!result.copy_only);
	ck_assert_msg(strstr(told, "disk is read, which had all changes until 20") != NULL, "%s",
		      told);
	ck_assert_msg(strstr(told, "is as the older copy has it") != NULL, "%s", told);
	crashdisk_free(disk);
	free_late(old);
}
END_TEST

/* Without the mark nobody knows how long the log was, but a damaged one is not taken for a short one. */
START_TEST(lost_mark)
{
	struct crashdisk *disk, *alone;

	make_base();
	disk = make_late();
	cut_to_nothing(disk, "meta/mark");
	ck_assert(crashdisk_flip(disk, "meta/db-wal", 8 * 1000));
	alone = crashdisk_copy(disk);
	ck_assert_uint_eq(count_late(disk), LATE);
	ck_assert_msg(strstr(told, "the copy has of it was taken") != NULL, "%s", told);
	remove_file(alone, "copy/db-wal");
	ck_assert_uint_eq(count_late(alone), 0);
	ck_assert_msg(strstr(told, "the last changes before the last stop are lost") != NULL, "%s",
		      told);
	ck_assert(!serve(alone, NULL));
	crashdisk_free(alone);
	free_late(disk);
}
END_TEST

/* SQLite removes the log of an empty database. */
START_TEST(empty_database)
{
	struct crashdisk *disk, *alone;

	make_base();
	disk = make_late();
	cut_to_nothing(disk, "meta/db");
	alone = crashdisk_copy(disk);
	ck_assert_uint_eq(count_late(disk), LATE);
	ck_assert(!serve(disk, NULL));
	remove_file(alone, "copy/db-wal");
	remove_file(alone, "copy/state");
	remove_file(alone, "copy/db");
	count_late(alone);
	ck_assert_msg(crashdisk_length(alone, "meta/db-wal") + 1 > PAGE ||
			      crashdisk_length(alone, "meta/db-wal.damaged") + 1 > PAGE,
		      "the log is gone: %s", told);
	crashdisk_free(alone);
	free_late(disk);
}
END_TEST

/* A damaged page of the log is not copied to the database, where it would get a good checksum. */
START_TEST(damaged_frame)
{
	for (unsigned i = 0; i < 2; i++) {
		struct crashdisk *disk;
		struct store_layer *layer;
		struct store *store;

		make_base();
		disk = crashdisk_copy(base);
		without_copy = i;
		store = open_late(disk, &layer);
		told[0] = '\0';
		ck_assert(crashdisk_flip(disk, "meta/db-wal",
					 8 * (crashdisk_length(disk, "meta/db-wal") - 2000)));
		store->ops->close(store);
		layer->ops->destroy(layer);
		crashdisk_killed(disk);
		ck_assert_msg(strstr(told, i ? "is damaged, and cannot be read"
					     : "was repaired from the copy") != NULL,
			      "%s", told);
		if (i)
			ck_assert_uint_gt(crashdisk_length(disk, "meta/db-wal"), PAGE);
		else
			ck_assert_uint_eq(count_late(disk), LATE);
		ck_assert(!serve(disk, NULL));
		free_late(disk);
	}
}
END_TEST

static struct crashdisk *add_file(const struct crashdisk *killed, const char *name)
{
	struct crashdisk *disk = crashdisk_copy(killed);
	struct store_layer *layer = crashdisk_layer(disk);
	struct store *store = open_on(layer);

	ck_assert_msg(store != NULL, "%s", message);
	make_late_file(store, name, 1);
	wait_for_copy(disk, store);
	kill_store(disk, store, layer);
	return disk;
}

/* The copy's log is as long as that of the database, but ends otherwise: the copy does not go on from there. */
START_TEST(other_log)
{
	struct crashdisk *killed, *x, *y;
	struct store_layer *layer;
	struct store *store;
	bool stopped;

	make_base();
	killed = make_late();
	x = add_file(killed, "x");
	y = add_file(killed, "y");
	ck_assert_uint_eq(crashdisk_length(x, "meta/db-wal"), crashdisk_length(y, "meta/db-wal"));
	copy_file_to(x, y, "copy/db-wal");
	copy_file_to(x, y, "copy/state");
	ck_assert_uint_eq(count_late(y), LATE);
	ck_assert_msg(use_copy(y, &stopped) == 0, "%s", message);
	layer = crashdisk_layer(y);
	store = open_on(layer);
	ck_assert_msg(store != NULL, "%s", message);
	ck_assert(has_late_file(store, "y", 1));
	ck_assert(!has_late_file(store, "x", 1));
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_free(x);
	crashdisk_free(y);
	free_late(killed);
}
END_TEST

/* -- the copy in another directory -- */

/* A store whose copy is on the disk `base`, and not in the store. */
static struct crashdisk *make_apart(void)
{
	static const char *const names[] = {"copy/db-wal", "copy/state", "copy/db", "copy/FORMAT"};
	struct crashdisk *disk;

	make_base();
	disk = crashdisk_copy(base);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove_file(disk, names[i]);
	return disk;
}

static void remove_metadata(struct crashdisk *disk)
{
	static const char *const names[] = {"meta/db-wal", "meta/mark", "meta/db", "meta/damaged"};
	struct store_layer *layer;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove_file(disk, names[i]);
	layer = crashdisk_layer(disk);
	ck_assert_int_eq(layer->ops->rmdir(layer, "meta"), 0);
	layer->ops->destroy(layer);
}

/* A program that does not know the directory makes no database of the damaged one alone. */
START_TEST(copy_apart)
{
	static const uint8_t zeros[3 * PAGE];
	struct crashdisk *disk = make_apart();
	struct store_layer *layer, *copy;
	struct store *store;

	write_bytes_at(disk, "meta/db", 0, zeros, sizeof(zeros));
	ck_assert_uint_eq(serve(disk, NULL), file_count);
	ck_assert_msg(refused && strstr(message, "--copy"), "%s", message);
	ck_assert_uint_eq(crashdisk_length(disk, "meta/db.damaged"), UINT64_MAX);
	layer = crashdisk_layer(disk);
	copy = crashdisk_layer(base);
	store = open_with(layer, copy);
	ck_assert_msg(store != NULL, "%s", message);
	ck_assert_uint_eq(read_all(store, NULL), 0);
	store->ops->close(store);
	layer->ops->destroy(layer);
	copy->ops->destroy(copy);
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* All metadata are gone: the copy is used without a command, unless changes may have been made that it does not have. */
START_TEST(lost_folder)
{
	struct crashdisk *disk;

	make_base();
	disk = crashdisk_copy(base);
	remove_metadata(disk);
	ck_assert_msg(!serve(disk, NULL), "%s", message);
	ck_assert_msg(strstr(told, "were repaired from the copy") != NULL, "%s", told);
	remove_metadata(disk);
	ck_assert_msg(!serve(disk, NULL), "%s", message);
	without_copy = true;
	ck_assert(!serve(disk, NULL));
	without_copy = false;
	remove_metadata(disk);
	ck_assert_uint_eq(serve(disk, NULL), file_count);
	ck_assert_msg(refused && strstr(message, "use-copy"), "%s", message);
	crashdisk_free(disk);
	/* One that was killed. */
	disk = make_late();
	remove_metadata(disk);
	ck_assert_uint_eq(serve(disk, NULL), file_count);
	ck_assert_msg(refused && strstr(message, "use-copy"), "%s", message);
	free_late(disk);
}
END_TEST

/* A damaged copy does not take the place of the database. */
START_TEST(use_damaged)
{
	struct crashdisk *disk;
	uint64_t random = 5;
	bool stopped;

	make_base();
	disk = crashdisk_copy(base);
	damage_page(disk, "copy/db", 40, &random);
	ck_assert_int_eq(use_copy(disk, &stopped), -EBADMSG);
	ck_assert_msg(strstr(message, "(pages: 1 of") && strstr(message, "rxvol rescue disk "),
		      "%s", message);
	ck_assert_uint_eq(crashdisk_length(disk, "meta/db.damaged"), UINT64_MAX);
	ck_assert_uint_eq(crashdisk_length(disk, "remade/db"), UINT64_MAX);
	ck_assert(!serve(disk, NULL));
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* The folder of the metadata is gone with all that is in it. */
START_TEST(use_apart)
{
	struct crashdisk *disk = make_apart();
	struct store_layer *layer, *copy;
	struct store_options options = {.path = "disk"};

	remove_metadata(disk);
	ck_assert_uint_eq(serve(disk, NULL), file_count);
	ck_assert_msg(refused && strstr(message, "--copy"), "%s", message);
	options.layer = layer = crashdisk_layer(disk);
	options.copy_layer = copy = crashdisk_layer(base);
	ck_assert_msg(store_use_copy(&options, message) == 0, "%s", message);
	layer->ops->destroy(layer);
	copy->ops->destroy(copy);
	crashdisk_killed(disk);
	ck_assert_uint_eq(serve(disk, NULL), 0);
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}
END_TEST

/* Neither metadata nor a copy: files of contents alone, in a volume that takes directories as any other. */
START_TEST(contents_alone)
{
	const struct store_checker checker = {.each = take_rescue_line, .data = true};
	struct crashdisk *disk = make_apart(), *target = crashdisk_new();
	struct store_layer *source, *made;
	struct store_rescue result = {.source = "disk", .target = "new", .line = take_rescue_line};
	struct store *store;

	remove_metadata(disk);
	result.layers[0] = source = crashdisk_layer(disk);
	result.layers[1] = made = crashdisk_layer(target);
	told[0] = '\0';
	ck_assert_msg(store_rescue(&result, message) == 0, "%s", message);
	ck_assert_uint_eq(result.pages, 0);
	ck_assert_uint_eq(result.volumes, 1);
	ck_assert_uint_gt(result.found, 0);
	store = open_on(made);
	ck_assert_msg(store != NULL, "%s", message);
	ck_assert_int_eq(state_create(store, volume, "one", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_create(store, volume, "one/two", STORE_DIR, NULL), 0);
	ck_assert_int_eq(store_check(store, &checker), 0);
	store->ops->close(store);
	source->ops->destroy(source);
	made->ops->destroy(made);
	crashdisk_free(target);
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}
END_TEST

static int take_location(void *arg, uint32_t id, const void *entry, size_t length)
{
	unsigned *count = arg;

	ck_assert_uint_eq(id, 0xffffff00u + *count);
	ck_assert_uint_eq(length, 100 + *count);
	ck_assert_uint_eq(*(const uint8_t *)entry, *count);
	++*count;
	return 0;
}

static void check_locations(struct crashdisk *disk)
{
	struct store_layer *layer = crashdisk_layer(disk);
	struct store *store = open_on(layer);
	unsigned count = 0;

	ck_assert_msg(store != NULL, "%s", message);
	ck_assert_int_eq(cellvol_locations(store, take_location, &count), 0);
	ck_assert_uint_eq(count, 200);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_killed(disk);
}

/* What the location service keeps is in the rescued store, from the database and from the copy. */
START_TEST(locations)
{
	struct store_rescue result = {.source = "disk", .target = "new", .line = take_rescue_line};
	struct crashdisk *disk, *target;
	struct store *store;
	uint8_t entry[300];

	make_base();
	disk = crashdisk_copy(base);
	result.layers[0] = crashdisk_layer(disk);
	store = open_on(result.layers[0]);
	for (unsigned i = 0; i < 200; i++) {
		memset(entry, (int)i, sizeof(entry));
		ck_assert_int_eq(cellvol_put_location(store, 0xffffff00u + i, entry, 100 + i), 0);
	}
	store->ops->close(store);
	result.layers[0]->ops->destroy(result.layers[0]);
	crashdisk_killed(disk);
	for (int copied = 0; copied < 2; copied++) {
		target = crashdisk_new();
		if (copied)
			cut_to_nothing(disk, "meta/db");
		result.layers[0] = crashdisk_layer(disk);
		result.layers[1] = crashdisk_layer(target);
		ck_assert_msg(store_rescue(&result, message) == 0, "%s", message);
		result.layers[0]->ops->destroy(result.layers[0]);
		result.layers[1]->ops->destroy(result.layers[1]);
		crashdisk_killed(target);
		check_locations(target);
		crashdisk_free(target);
	}
	crashdisk_free(disk);
	crashdisk_free(base);
	free(fids);
}
END_TEST

TEST_MAIN_WITHIN(3600, "damage", each_page, random_sets, use_interrupted, kept_files,
		 stopped_on_the_way, older_copy, lost_log, shortened_database, older_rows,
		 lost_mark, empty_database, damaged_frame, other_log, copy_apart, use_apart,
		 lost_folder, use_damaged, contents_alone, locations)
