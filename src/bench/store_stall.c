/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long do the largest operations of a store keep another caller's small writes waiting? One thread writes small files all
 * the time. For each operation the program prints the longest delay of that thread, and the most expensive commit.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "afs/dir.h"
#include "common/clock.h"
#include "volume/dump/dump.h"
#include "volume/store/upkeep.h"

#define HELPERS	   16 /* threads that prepare an operation */
#define SETTLE_US  300000
#define FULL_NAMES 64000
#define NAME_ROOM  256

static struct store_options options = {.timed = true};
static struct store *store;
static const int32_t ids[] = {STORE_ADMINISTRATORS, 1};
static const struct store_caller caller = {
	.id = 1, .ids = ids, .id_count = 2, .administrator = true};
static const struct store_set nothing;
static unsigned long names_count = FULL_NAMES, extents_count = 65536, depth = 20000,
		     volumes_count = 10000, files_count = 1000000, directories_count = 50;

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "store_stall: %s: result %d (%s)\n", what, result,
		result < 0 ? strerror(-result) : "a code of AFS");
	exit(EXIT_FAILURE);
}

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "store_stall: %d: %s\n", level, line);
}

/* -- operations -- */

static struct store_fid make(const struct store_fid *dir, const char *name, enum store_kind kind)
{
	struct store_status status, dir_status;
	struct store_changes changes;

	must(store->ops->create(store, &caller, dir, name, kind, NULL, &nothing, &status,
				&dir_status, &changes),
	     name);
	return status.fid;
}

static void put(const struct store_fid *fid, uint64_t offset, size_t length, uint64_t file_length)
{
	static const uint8_t bytes[1 << 16];
	struct iovec iov = {(void *)(uintptr_t)bytes, length};
	struct store_writer *writer;
	struct store_status status;
	struct store_changes changes;

	must(store->ops->write_begin(store, &caller, fid, &nothing, offset, length, file_length,
				     &writer),
	     "write_begin");
	must(store->ops->write(writer, &iov, 1), "write");
	must(store->ops->write_commit(writer, &status, &changes), "write_commit");
}

static void drop(const struct store_fid *dir, const char *name, enum store_kind kind)
{
	struct store_status status;
	struct store_changes changes;

	must(store->ops->remove(store, &caller, dir, name, kind, &status, &changes), "remove");
}

static void add_link(const struct store_fid *dir, const char *name, const struct store_fid *file)
{
	struct store_status status, dir_status;
	struct store_changes changes;

	must(store->ops->link(store, &caller, dir, name, file, &status, &dir_status, &changes),
	     "link");
}

static int try_move(const struct store_fid *from, const char *name, const struct store_fid *to,
		    const char *new_name)
{
	struct store_status old_status, new_status;
	struct store_changes changes;

	return store->ops->rename(store, &caller, from, name, to, new_name, &old_status,
				  &new_status, &changes);
}

static void move(const struct store_fid *from, const char *name, const struct store_fid *to,
		 const char *new_name)
{
	must(try_move(from, name, to, new_name), "rename");
}

static void set_mode(const struct store_fid *fid)
{
	struct store_set set = {.mask = STORE_SET_MODE, .mode = 0700};
	struct store_status status;
	struct store_changes changes;

	must(store->ops->set_status(store, &caller, fid, &set, &status, &changes), "set_status");
}

static void read_some(const struct store_fid *fid)
{
	uint8_t buffer[4096];
	struct iovec iov = {buffer, sizeof(buffer)};
	struct store_reader *reader;
	struct store_status status;

	must(store->ops->read_begin(store, &caller, fid, &reader, &status), "read_begin");
	if (store->ops->read(reader, &iov, 1, 0, 0) < 0)
		must(-EIO, "read");
	must(store->ops->read_end(reader), "read_end");
}

static struct store_fid make_volume(const char *name)
{
	struct store_new_volume new = {.name = name, .owner = 1};
	struct store_fid root = {0, 1, 1};

	must(store_volume_create(store, &new, &root.volume), "volume");
	return root;
}

/* -- the writer -- */

static struct store_fid writer_root;
static volatile bool stop;
static uint64_t delays[3], writes; /* nanoseconds: create, store, remove */

static void note_delay(unsigned which, uint64_t *begun)
{
	uint64_t now = monotonic_ns();

	if (now - *begun > delays[which])
		delays[which] = now - *begun;
	*begun = now;
	writes++;
}

static void *write_small_files(void *arg)
{
	while (!stop) {
		uint64_t begun = monotonic_ns();
		struct store_fid file = make(&writer_root, "small", STORE_FILE);

		note_delay(0, &begun);
		put(&file, 0, 512, 512);
		note_delay(1, &begun);
		drop(&writer_root, "small", STORE_FILE);
		note_delay(2, &begun);
	}
	return arg;
}

static bool pruned(void)
{
	struct store_stats stats;

	store_stats(store, &stats);
	return !stats.pruning;
}

static double to_ms(uint64_t ns)
{
	return (double)ns / NS_PER_MS;
}

/* Run an operation beside the writer. `rest`: until what it left to the background is done. */
static void measure(const char *what, void (*operation)(void *arg), void *arg, bool rest)
{
	struct store_commit_costs costs;
	pthread_t writer;
	uint64_t begun, took, longest = 0;

	memset(delays, 0, sizeof(delays));
	writes = 0;
	stop = false;
	store_commit_costs(store, &costs);
	must(-pthread_create(&writer, NULL, write_small_files, NULL), "thread");
	usleep(SETTLE_US);
	begun = monotonic_ns();
	operation(arg);
	while (rest && !pruned())
		usleep(1000);
	took = monotonic_ns() - begun;
	usleep(SETTLE_US);
	stop = true;
	pthread_join(writer, NULL);
	store_commit_costs(store, &costs);
	for (int i = 0; i < 3; i++)
		longest = delays[i] > longest ? delays[i] : longest;
	printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %u | %.0f |\n", what, to_ms(took),
	       to_ms(longest), to_ms(costs.paused_ns), to_ms(costs.ns), to_ms(costs.cpu_ns),
	       costs.rows, (double)writes * 1e9 / (double)(took + 2 * SETTLE_US * 1000ull));
	fflush(stdout);
}

static void do_nothing(void *arg)
{
	(void)arg;
	usleep(3000000);
}

static void open_store(void)
{
	char message[STORE_MESSAGE_MAX] = "";
	struct store_volume volume;

	if (store_open(&options, &store, message)) {
		fprintf(stderr, "store_stall: %s\n", message);
		exit(EXIT_FAILURE);
	}
	if (store->ops->volume_by_name(store, "writer", &volume))
		writer_root = make_volume("writer");
	else
		writer_root = (struct store_fid){volume.id, 1, 1};
}

/* With cold caches. */
static void reopen(void)
{
	store->ops->close(store);
	open_store();
}

/* -- helpers that prepare -- */

struct helper {
	pthread_t thread;
	unsigned long number, count;
	void (*each)(unsigned long i, void *arg);
	void *arg;
};

static void *run_helper(void *arg)
{
	const struct helper *helper = arg;

	for (unsigned long i = helper->number; i < helper->count; i += HELPERS)
		helper->each(i, helper->arg);
	return NULL;
}

/* Call `each` for the numbers below `count`, with several threads. */
static void in_parallel(unsigned long count, void (*each)(unsigned long i, void *arg), void *arg)
{
	struct helper helper[HELPERS];

	for (unsigned i = 0; i < HELPERS; i++) {
		helper[i] =
			(struct helper){.number = i, .count = count, .each = each, .arg = arg};
		must(-pthread_create(&helper[i].thread, NULL, run_helper, &helper[i]), "thread");
	}
	for (unsigned i = 0; i < HELPERS; i++)
		pthread_join(helper[i].thread, NULL);
}

/* -- names -- */

struct big {
	struct store_fid root, dir, other, file;
	char (*name)[24];
};

static void name_plainly(struct big *big)
{
	for (unsigned long i = 0; i < names_count; i++)
		snprintf(big->name[i], sizeof(big->name[i]), "n%lu", i);
}

/* Names of one chain of the directory's hash table. */
static void name_colliding(struct big *big)
{
	unsigned long number = 0;

	for (unsigned long i = 0; i < names_count; number++) {
		int length = snprintf(big->name[i], sizeof(big->name[i]), "c%lu", number);

		i += afs_dir_hash(big->name[i], (size_t)length) == 7;
	}
}

static void link_name(unsigned long i, void *arg)
{
	struct big *big = arg;

	add_link(&big->dir, big->name[i], &big->file);
}

static void drop_name(unsigned long i, void *arg)
{
	struct big *big = arg;

	drop(&big->dir, big->name[i], STORE_FILE);
}

static void create_in(void *arg)
{
	struct big *big = arg;

	make(&big->dir, "one more", STORE_FILE);
}

static void change_often(void *arg)
{
	struct big *big = arg;

	for (int i = 0; i < 300; i++) {
		drop(&big->dir, big->name[i * 7], STORE_FILE);
		add_link(&big->dir, big->name[i * 7], &big->file);
	}
}

static void remove_cold(void *arg)
{
	struct big *big = arg;

	drop(&big->dir, "one more", STORE_FILE);
}

static void rename_in(void *arg)
{
	struct big *big = arg;

	for (int i = 0; i < 100; i++) {
		move(&big->dir, big->name[i], &big->dir, "renamed");
		move(&big->dir, "renamed", &big->dir, big->name[i]);
	}
}

static void list(void *arg)
{
	struct big *big = arg;

	read_some(&big->dir);
}

static void move_large_directory(void *arg)
{
	struct big *big = arg;

	move(&big->root, "d", &big->other, "d");
	move(&big->other, "d", &big->root, "d");
}

static void set_acl(void *arg)
{
	struct big *big = arg;
	struct store_acl acl = {0};
	struct store_status status;
	struct store_changes changes;

	store_acl_add(&acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	for (int i = 1; i < STORE_ACL_MAX; i++)
		store_acl_add(&acl, false, 1000 + i, STORE_ALL);
	must(store->ops->set_acl(store, &caller, &big->dir, &acl, &status, &changes), "set_acl");
	set_mode(&big->dir);
}

static void clone_volume(void *arg)
{
	const struct store_fid *root = arg;
	uint32_t clone;

	must(store_volume_clone(store, root->volume, STORE_BACKUP, &clone), "clone");
}

static void remove_names(void *arg)
{
	in_parallel(names_count, drop_name, arg);
}

static void remove_directory(void *arg)
{
	struct big *big = arg;

	drop(&big->dir, "first", STORE_FILE);
	drop(&big->root, "d", STORE_DIR);
}

static void names(const char *what, void (*choose)(struct big *big))
{
	char line[80];
	struct big big = {.root = make_volume(what)};

	big.name = calloc(names_count, sizeof(*big.name));
	must(big.name ? 0 : -ENOMEM, "memory");
	choose(&big);
	big.dir = make(&big.root, "d", STORE_DIR);
	big.other = make(&big.root, "e", STORE_DIR);
	big.file = make(&big.dir, "first", STORE_FILE);
	in_parallel(names_count, link_name, &big);
#define STEP(text, operation) \
	(snprintf(line, sizeof(line), "%s names, " text, what), \
	 measure(line, operation, &big, true))
	reopen();
	STEP("create, cold", create_in);
	reopen();
	STEP("remove, cold", remove_cold);
	reopen();
	STEP("list, cold", list);
	STEP("300 links and removals", change_often);
	STEP("200 renames", rename_in);
	STEP("the directory moved", move_large_directory);
	STEP("ACL", set_acl);
	STEP("clone", clone_volume);
	STEP("300 links and removals after a clone", change_often);
	STEP("all removed", remove_names);
	STEP("directory removed", remove_directory);
	free(big.name);
}

static void plain_names(void)
{
	names("plain", name_plainly);
}

static void colliding_names(void)
{
	names("colliding", name_colliding);
}

/* -- extents of a file of 1 TiB -- */

#define TIB (1ull << 40)

static void overwrite(void *arg)
{
	const struct store_fid *file = arg;

	for (unsigned i = 0; i < 100; i++)
		put(file, TIB / 128 * i + 77, 100, TIB);
}

static void truncate_file(void *arg)
{
	put(arg, 0, 0, TIB / 2);
}

static void read_file(void *arg)
{
	read_some(arg);
}

static void change_status(void *arg)
{
	set_mode(arg);
}

static struct store_fid file_parent;

static void remove_file(void *arg)
{
	(void)arg;
	drop(&file_parent, "large", STORE_FILE);
}

static void extents(void)
{
	struct store_fid root = make_volume("extents"), file = make(&root, "large", STORE_FILE);

	file_parent = root;
	for (unsigned long i = extents_count; i--;)
		put(&file, TIB / extents_count * i, 1, TIB);
	reopen();
	measure("1 TiB file: status, cold", change_status, &file, true);
	reopen();
	measure("1 TiB file: 100 stores, cold", overwrite, &file, true);
	reopen();
	measure("1 TiB file: read, cold", read_file, &file, true);
	measure("1 TiB file: 100 stores", overwrite, &file, true);
	measure("1 TiB file: clone", clone_volume, &root, true);
	measure("1 TiB file: 100 stores after a clone", overwrite, &file, true);
	measure("1 TiB file: second clone, pruning", clone_volume, &root, true);
	measure("1 TiB file: truncate", truncate_file, &file, true);
	measure("1 TiB file: remove", remove_file, NULL, true);
	measure("1 TiB file: clone of nothing, pruning", clone_volume, &root, true);
}

/* -- depth -- */

struct deep {
	struct store_fid root, bottom, side;
};

static void move_down(void *arg)
{
	struct deep *deep = arg;

	move(&deep->root, "side", &deep->bottom, "side");
}

static void move_up(void *arg)
{
	struct deep *deep = arg;

	move(&deep->bottom, "side", &deep->root, "side");
}

static void move_below_itself(void *arg)
{
	struct deep *deep = arg;

	if (try_move(&deep->root, "0", &deep->bottom, "0") != -EINVAL)
		must(-EINVAL, "a directory below itself");
}

static void deep_tree(void)
{
	struct deep deep = {.root = make_volume("depth")};

	deep.side = make(&deep.root, "side", STORE_DIR);
	deep.bottom = deep.root;
	for (unsigned long i = 0; i < depth; i++)
		deep.bottom = make(&deep.bottom, "0", STORE_DIR);
	reopen();
	measure("depth: moved to the bottom, cold", move_down, &deep, true);
	reopen();
	measure("depth: moved to the top, cold", move_up, &deep, true);
	measure("depth: moved to the bottom", move_down, &deep, true);
	reopen();
	measure("depth: below itself, cold", move_below_itself, &deep, true);
}

/* -- volumes -- */

static struct store_fid *roots;

static void create_volume(unsigned long i, void *arg)
{
	char name[32];

	(void)arg;
	snprintf(name, sizeof(name), "vol%lu", i);
	roots[i] = make_volume(name);
}

static void create_volumes(void *arg)
{
	in_parallel(volumes_count, create_volume, arg);
}

static void list_volumes(void *arg)
{
	struct store_volume volume = {0};
	unsigned long count = 0;

	(void)arg;
	while (!store->ops->volume_next(store, volume.id, &volume))
		count++;
	if (count < volumes_count)
		must(-EINVAL, "volumes");
}

static void one_more_volume(void *arg)
{
	struct store_fid root = make_volume("onemore");
	struct store_volume values = {.quota_kib = 1000};

	(void)arg;
	must(store->ops->volume_set(store, &caller, root.volume, 1, &values), "quota");
	must(store_volume_offline(store, root.volume, "away"), "offline");
	must(store_volume_online(store, root.volume, NULL, NULL), "online");
	must(store_volume_rename(store, root.volume, "another"), "rename");
	must(store_volume_remove(store, root.volume), "remove");
}

/* A new volume with the id of a removed one. */
static void reuse_volume_id(void *arg)
{
	struct store_fid root = make_volume("again");
	struct store_new_volume new = {.name = "again", .owner = 1, .id = root.volume};
	uint32_t id;
	int result;

	(void)arg;
	must(store_volume_remove(store, root.volume), "remove");
	do {
		result = store_volume_create(store, &new, &id);
	} while (result == STORE_VBUSY);
	must(result, "volume");
	must(store_volume_remove(store, id), "remove");
}

static void change_volume(unsigned long i, void *arg)
{
	(void)arg;
	set_mode(&roots[i]);
}

static void clone_one(unsigned long i, void *arg)
{
	(void)arg;
	clone_volume(&roots[i]);
}

static void clone_volumes(void *arg)
{
	in_parallel(volumes_count, clone_one, arg);
}

static void drop_volume(unsigned long i, void *arg)
{
	uint32_t id;
	struct store_volume volume;

	(void)arg;
	must(store->ops->volume(store, roots[i].volume, &volume), "volume");
	id = volume.backup;
	must(store_volume_remove(store, id), "remove clone");
	must(store_volume_remove(store, roots[i].volume), "remove volume");
}

static void drop_volumes(void *arg)
{
	in_parallel(volumes_count, drop_volume, arg);
}

static void print_fault(void *arg, const char *line)
{
	(void)arg;
	printf("FAULT: %s\n", line);
}

static void check(void *arg)
{
	(void)arg;
	if (store_check(store, &(struct store_checker){.each = print_fault}))
		must(-EIO, "check");
}

static void volumes(void)
{
	roots = calloc(volumes_count, sizeof(*roots));
	must(roots ? 0 : -ENOMEM, "memory");
	measure("volumes created", create_volumes, NULL, true);
	measure("volumes listed", list_volumes, NULL, true);
	measure("one more volume, and its settings", one_more_volume, NULL, true);
	measure("a volume id again", reuse_volume_id, NULL, true);
	measure("volumes cloned", clone_volumes, NULL, true);
	in_parallel(volumes_count, change_volume, NULL);
	measure("volumes cloned again, pruned", clone_volumes, NULL, true);
	measure("check of these volumes", check, NULL, true);
	measure("volumes removed", drop_volumes, NULL, true);
	free(roots);
}

/* -- many clones of one volume, while pruning is busy elsewhere -- */

static struct store_fid hot_root, hot_file;

static void clone_hot(void *arg)
{
	(void)arg;
	for (unsigned long i = 0; i < volumes_count; i++) {
		put(&hot_file, 0, 100, 100);
		clone_volume(&hot_root);
	}
}

static void store_hot(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++)
		put(&hot_file, 0, 100, 100);
}

static void make_file(unsigned long i, void *arg)
{
	const struct store_fid *dir = arg;
	char name[32];

	snprintf(name, sizeof(name), "f%lu", i);
	make(dir, name, STORE_FILE);
}

static void fill_volume(const struct store_fid *root, unsigned long files)
{
	char name[32];

	for (unsigned long done = 0; done < files; done += 10000) {
		struct store_fid dir;

		snprintf(name, sizeof(name), "d%lu", done);
		dir = make(root, name, STORE_DIR);
		in_parallel(files - done < 10000 ? files - done : 10000, make_file, &dir);
	}
}

static void hot(void)
{
	struct store_fid busy = make_volume("busy");

	hot_root = make_volume("hot");
	hot_file = make(&hot_root, "f", STORE_FILE);
	fill_volume(&busy, files_count / 4);
	must(store_volume_remove(store, busy.volume), "remove");
	measure("clones of one volume", clone_hot, NULL, false);
	measure("stores to its file", store_hot, NULL, true);
}

/* -- a large volume -- */

static int count_change(void *arg, uint32_t vnode, bool gone)
{
	(void)vnode, (void)gone;
	++*(unsigned long *)arg;
	return 0;
}

static void list_changes(void *arg)
{
	struct store_volume volume;
	const struct store_fid *root = arg;
	unsigned long count = 0;

	must(store->ops->volume(store, root->volume, &volume), "volume");
	must(store_volume_changes(store, volume.backup, count_change, &count), "changes");
}

static void remove_volume(void *arg)
{
	const struct store_fid *root = arg;

	must(store_volume_remove(store, root->volume), "remove");
}

static void remove_clone(void *arg)
{
	struct store_volume volume;
	const struct store_fid *root = arg;

	must(store->ops->volume(store, root->volume, &volume), "volume");
	must(store_volume_remove(store, volume.backup), "remove");
}

static int write_stream(void *arg, const void *bytes, size_t length)
{
	return fwrite(bytes, 1, length, arg) == length ? 0 : -EIO;
}

static ssize_t read_stream(void *arg, void *bytes, size_t length)
{
	return (ssize_t)fread(bytes, 1, length, arg);
}

static FILE *stream;

static void dump_all(void *arg)
{
	const struct dump_output output = {.write = write_stream, .arg = stream};
	const struct dump_base base = {0};
	const struct store_fid *root = arg;
	struct store_snapshot *snapshot;
	struct dump_counts counts;
	bool local;

	must(store_snapshot_take(store, root->volume, 0, &snapshot), "snapshot");
	must(dump_write(store, snapshot, &base, &output, &counts, &local), "dump");
	must(store_snapshot_end(snapshot), "end of the snapshot");
}

/* `onto`: the volume that is replaced; NULL: a new one is made, and removed again. */
static void restore_stream(struct store_fid *onto)
{
	const struct dump_input input = {.read = read_stream, .arg = stream};
	char message[STORE_MESSAGE_MAX];
	struct store_restore *restore;
	struct dump_reader *reader;
	struct dump_counts counts;
	struct dump_info info;
	uint64_t lost;
	uint32_t id;

	rewind(stream);
	must(dump_read_begin(store, &input, &reader, &info, message), "dump");
	must(onto ? store_restore_onto(store, onto->volume, &restore)
		  : store_restore_begin(store, "restored", 0, &restore),
	     "restore");
	must(dump_read_vnodes(reader, restore, &info, &counts), "vnodes");
	must(store_restore_finish(restore, &info.header, &lost, message), "end of the restore");
	id = store_restore_id(restore);
	must(store_restore_end(restore), "end");
	dump_read_end(reader);
	if (!onto)
		must(store_volume_remove(store, id), "remove");
}

static void restore_new(void *arg)
{
	(void)arg;
	restore_stream(NULL);
}

static void restore_again(void *arg)
{
	restore_stream(arg);
}

static void whole(void)
{
	struct store_fid root = make_volume("whole");

	stream = tmpfile();
	must(stream ? 0 : -errno, "temporary file");
	fill_volume(&root, files_count);
	measure("many files: clone", clone_volume, &root, true);
	measure("many files: clone again", clone_volume, &root, true);
	measure("many files: dump", dump_all, &root, true);
	measure("many files: restore", restore_new, NULL, true);
	measure("many files: restore of the same", restore_again, &root, true);
	fclose(stream);
}

static void million(void)
{
	struct store_fid root = make_volume("million");

	clone_volume(&root);
	fill_volume(&root, files_count);
	measure("changes of many files listed", list_changes, &root, true);
	measure("check of many files", check, NULL, true);
	measure("clone of many files replaced, pruned", clone_volume, &root, true);
	measure("clone of many files removed", remove_clone, &root, true);
	measure("volume of many files removed", remove_volume, &root, true);
}

/* -- a volume of large directories -- */

static void make_long_name(unsigned long i, void *arg)
{
	struct big *big = arg;
	char name[NAME_ROOM];

	snprintf(name, sizeof(name), "%0250lu", i);
	add_link(&big->dir, name, &big->file);
}

static void directories(void)
{
	struct big big = {.root = make_volume("dirs")};
	char name[32];

	for (unsigned long i = 0; i < directories_count; i++) {
		snprintf(name, sizeof(name), "d%lu", i);
		big.dir = make(&big.root, name, STORE_DIR);
		big.file = make(&big.dir, "f", STORE_FILE);
		in_parallel(1000 * 7, make_long_name, &big);
	}
	measure("large directories: clone", clone_volume, &big.root, true);
	measure("large directories: check", check, NULL, true);
	measure("large directories: clone removed", remove_clone, &big.root, true);
	measure("large directories: volume removed", remove_volume, &big.root, true);
}

/* -- long files -- */

#define LONG_BYTES (256ull << 20)

static void store_long_files(void *arg)
{
	const struct store_fid *root = arg;
	static const uint8_t bytes[1 << 20] = {1};
	struct store_writer *writer;
	struct store_status status;
	struct store_changes changes;
	char name[32];

	for (int i = 0; i < 8; i++) {
		struct store_fid file;

		snprintf(name, sizeof(name), "f%d", i);
		file = make(root, name, STORE_FILE);
		must(store->ops->write_begin(store, &caller, &file, &nothing, 0, LONG_BYTES,
					     LONG_BYTES, &writer),
		     "write_begin");
		for (uint64_t at = 0; at < LONG_BYTES; at += sizeof(bytes)) {
			struct iovec iov = {(void *)(uintptr_t)bytes, sizeof(bytes)};

			must(store->ops->write(writer, &iov, 1), "write");
		}
		must(store->ops->write_commit(writer, &status, &changes), "write_commit");
	}
}

static void remove_long_files(void *arg)
{
	char name[32];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		drop(arg, name, STORE_FILE);
	}
}

static void long_files(void)
{
	struct store_fid root = make_volume("long");

	measure("8 files of 256 MiB stored", store_long_files, &root, true);
	measure("8 files of 256 MiB removed", remove_long_files, &root, true);
}

static const struct scenario {
	const char *name;
	void (*run)(void);
} scenarios[] = {{"names", plain_names}, {"colliding", colliding_names}, {"extents", extents},
		 {"depth", deep_tree},	 {"volumes", volumes},		 {"clones", hot},
		 {"files", million},	 {"directories", directories},	 {"long", long_files},
		 {"whole", whole}};

static void run_scenario(const struct scenario *scenario)
{
	char message[STORE_MESSAGE_MAX], command[600];

	if (store_make(&options, message)) {
		fprintf(stderr, "store_stall: %s\n", message);
		exit(EXIT_FAILURE);
	}
	open_store();
	measure("nothing, for 3 s", do_nothing, NULL, true);
	scenario->run();
	store->ops->close(store);
	snprintf(command, sizeof(command), "rm -rf '%s'", options.path);
	if (system(command))
		fprintf(stderr, "store_stall: %s cannot be removed\n", options.path);
}

int main(int argc, char **argv)
{
	int option;

	options.log = log_line;
	while ((option = getopt(argc, argv, "se:d:f:v:n:g:")) != -1)
		switch (option) {
		case 's':
			options.durability = STORE_STRICT;
			break;
		case 'e':
			extents_count = strtoul(optarg, NULL, 10);
			break;
		case 'd':
			depth = strtoul(optarg, NULL, 10);
			break;
		case 'f':
			files_count = strtoul(optarg, NULL, 10);
			break;
		case 'v':
			volumes_count = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			names_count = strtoul(optarg, NULL, 10);
			break;
		case 'g':
			directories_count = strtoul(optarg, NULL, 10);
			break;
		default:
			optind = argc;
		}
	if (optind >= argc) {
		fprintf(stderr,
			"usage: store_stall [-s] [-n NAMES] [-e EXTENTS] [-d DEPTH] [-v VOLUMES] [-f FILES] "
			"[-g DIRECTORIES] FOLDER [names | colliding | extents | depth | volumes | clones | "
			"files | directories | long | whole]...\n"
			"FOLDER is made and removed\n");
		return EXIT_FAILURE;
	}
	options.path = argv[optind++];
	printf("| operation | took, ms | longest wait of a writer, ms | longest pause, ms | longest commit, ms | its CPU time, ms | rows | writes/s |\n"
	       "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		bool wanted = optind == argc;

		for (int k = optind; k < argc; k++)
			wanted |= strcmp(argv[k], scenarios[i].name) == 0;
		if (wanted)
			run_scenario(&scenarios[i]);
	}
	return EXIT_SUCCESS;
}
