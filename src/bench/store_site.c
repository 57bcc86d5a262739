/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store of a large site: `make` writes volumes and files straight to the tables, in transactions of many rows; `measure`
 * opens such a store and prints what an opening, operations on files anywhere, and a check cost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "volume/store/db/db.h"
#include "volume/store/disk/vfs.h"
#include "volume/store/upkeep.h"

#define FIRST_ID    536870912u
#define OF_DIR	    50	   /* files of a directory */
#define BATCH	    100000 /* rows of a transaction */
#define SMALL_BYTES 300
#define SMALL_MOST  8192 /* bytes of a row */
#define LARGE_SHARE 10 /* the first volume has this part of all files */

/* What the numbers of volumes and files follow from. */
struct site {
	unsigned long volumes, files, bytes; /* bytes: of each file */
	bool closed;			     /* only administrators have rights */
};

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "store_site: %s: result %d (%s)\n", what, result,
		result < 0 ? strerror(-result) : "a code of AFS");
	exit(EXIT_FAILURE);
}

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "store_site: %d: %s\n", level, line);
}

/* -- which volume has which files -- */

static unsigned long files_of_volume(const struct site *site, unsigned long volume)
{
	unsigned long large = site->volumes > 1 ? site->files / LARGE_SHARE : site->files;

	if (!volume)
		return large;
	return (site->files - large) / (site->volumes - 1);
}

static uint32_t id_of_volume(unsigned long volume)
{
	return FIRST_ID + 3 * (uint32_t)volume;
}

static uint32_t count_dirs(unsigned long files)
{
	return (uint32_t)((files + OF_DIR - 1) / OF_DIR);
}

static struct store_fid fid_of_dir(unsigned long volume, uint32_t dir)
{
	return (struct store_fid){id_of_volume(volume), 3 + 2 * dir, 2 + dir};
}

static struct store_fid fid_of_file(const struct site *site, unsigned long volume, uint32_t file)
{
	uint32_t dirs = count_dirs(files_of_volume(site, volume));

	return (struct store_fid){id_of_volume(volume), 2 + 2 * file, 2 + dirs + file};
}

/* -- make -- */

struct maker {
	struct site site;
	struct db *db;
	struct version *file, *dir; /* filled for each row */
	struct blob *blob;
	uint64_t small, rows;
};

static struct version *new_template(enum store_kind kind)
{
	struct version *version = version_new();

	must(version ? 0 : -ENOMEM, "memory");
	version->v = (struct vnode){.kind = (uint8_t)kind,
				    .mode = kind == STORE_DIR ? 0755 : 0644,
				    .links = kind == STORE_DIR ? 2 : 1,
				    .author = 1,
				    .owner = 1,
				    .version = 1,
				    .client_mtime = 1700000000 - 1000,
				    .server_mtime = 1700000000 - 1000,
				    .incarnation = 1};
	return version;
}

static void count_row(struct maker *maker)
{
	if (++maker->rows % BATCH)
		return;
	must(db_commit(maker->db), "commit");
	must(db_checkpoint_all(maker->db), "checkpoint");
	must(db_begin(maker->db), "begin");
}

static void put_vnode(struct maker *maker, const struct store_fid *fid,
		      const struct store_fid *parent, struct version *version)
{
	struct vnode_key key = {fid->volume, fid->vnode, 1};

	version->v.unique = fid->unique;
	version->v.parent = parent->vnode;
	version->v.parent_unique = parent->unique;
	must(db_vnode_insert(maker->db, &key, version), "vnode");
	count_row(maker);
}

/* Returns the KiB that it is charged. */
static uint64_t put_dir(struct maker *maker, const struct store_fid *fid,
			const struct store_fid *parent, struct store_pages *pages, uint32_t subdirs)
{
	struct vnode_key key = {fid->volume, fid->vnode, 1};
	unsigned count = store_pages_count(pages);

	maker->dir->v.length = (uint64_t)count * STORE_PAGE;
	maker->dir->v.links = 2 + subdirs;
	put_vnode(maker, fid, parent, maker->dir);
	for (unsigned i = 0; i < count; i++) {
		must(db_page_put(maker->db, &key, 0, i, store_pages_page(pages, i)), "page");
		count_row(maker);
	}
	store_pages_unref(pages);
	return (uint64_t)count * STORE_PAGE / 1024;
}

static void put_file(struct maker *maker, const struct store_fid *fid,
		     const struct store_fid *parent)
{
	struct db_small small = {++maker->small, fid->volume, fid->vnode};

	maker->file->v.length = maker->site.bytes;
	maker->file->v.small = small.id;
	must(db_small_put(maker->db, &small, maker->blob), "contents");
	put_vnode(maker, fid, parent, maker->file);
}

static void put_record(struct maker *maker, unsigned long volume, uint32_t dirs, uint64_t kib)
{
	unsigned long files = files_of_volume(&maker->site, volume);
	uint32_t id = id_of_volume(volume);
	struct volrec record = {.id = id,
				.group = id,
				.type = STORE_RW,
				.epoch = 1,
				.clone_id = {id + 1, id + 2},
				.used_kib = kib,
				.files = 1 + dirs + files,
				.created = 1700000000,
				.copied = 1700000000,
				.updated = 1700000000,
				.owner = 1,
				.next_unique = (uint32_t)(2 + dirs + files),
				.incarnation = 1,
				.fresh = {(uint32_t)(2 + 2 * files), 3 + 2 * dirs}};

	snprintf(record.name, sizeof(record.name), "user.%05lu", volume);
	must(db_volume_put(maker->db, &record), "volume");
	count_row(maker);
}

static void put_volume(struct maker *maker, unsigned long volume)
{
	const struct site *site = &maker->site;
	unsigned long files = files_of_volume(site, volume);
	uint32_t dirs = count_dirs(files);
	struct store_fid root = {id_of_volume(volume), 1, 1};
	struct store_pages *top = store_pages_new(1, 1, 1, 1);
	uint64_t kib = files; /* one for each */
	char name[32];

	for (uint32_t d = 0; d < dirs; d++) {
		struct store_fid dir = fid_of_dir(volume, d);
		struct store_pages *pages = store_pages_new(dir.vnode, dir.unique, 1, 1);

		snprintf(name, sizeof(name), "dir%u", d);
		must(store_pages_add(top, name, dir.vnode, dir.unique), "name");
		for (uint32_t f = d * OF_DIR; f < files && f < (d + 1) * OF_DIR; f++) {
			struct store_fid file = fid_of_file(site, volume, f);

			snprintf(name, sizeof(name), "file%u", f);
			must(store_pages_add(pages, name, file.vnode, file.unique), "name");
			put_file(maker, &file, &dir);
		}
		kib += put_dir(maker, &dir, &root, pages, 0);
	}
	kib += put_dir(maker, &root, &root, top, dirs);
	put_record(maker, volume, dirs, kib);
}

static void fill_tables(const struct site *site, struct db *db)
{
	struct maker maker = {.site = *site,
			      .db = db,
			      .file = new_template(STORE_FILE),
			      .dir = new_template(STORE_DIR),
			      .blob = blob_new(site->bytes)};

	must(maker.blob ? 0 : -ENOMEM, "memory");
	memset(maker.blob->bytes, 'x', site->bytes);
	maker.dir->acl = calloc(1, sizeof(*maker.dir->acl));
	must(maker.dir->acl ? 0 : -ENOMEM, "memory");
	store_acl_add(maker.dir->acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	/* So that a server of the store can be measured as well. */
	if (!site->closed)
		store_acl_add(maker.dir->acl, false, STORE_ANYUSER, STORE_ALL);
	must(db_begin(db), "begin");
	for (unsigned long i = 0; i < site->volumes; i++)
		put_volume(&maker, i);
	must(db_number_put(db, "volume", id_of_volume(site->volumes)), "number");
	must(db_commit(db), "commit");
	blob_unref(maker.blob);
	version_unref(maker.file);
	version_unref(maker.dir);
}

static int flush_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void make_site(const char *folder, const struct site *site)
{
	struct store_options options = {.path = folder, .log = log_line};
	struct db_options connection = {
		.path = "meta/db", .cache_kib = 256 << 10, .vfs_errno = store_vfs_errno};
	char message[STORE_MESSAGE_MAX];
	struct store_layer *layer;
	struct store_vfs *vfs;
	enum store_past past;
	uint64_t begun = monotonic_ns();
	struct db *db;

	if (store_make(&options, message)) {
		fprintf(stderr, "store_site: %s\n", message);
		exit(EXIT_FAILURE);
	}
	must(store_layer_posix(folder, &layer), "layer");
	must(store_vfs_create(layer, flush_nothing, NULL, &vfs), "vfs");
	connection.vfs = store_vfs_name(vfs);
	must(store_vfs_recover(vfs, &past), "recover");
	must(store_vfs_begin(vfs, true), "begin");
	must(db_open(&connection, &db), "database");
	fill_tables(site, db);
	must(db_checkpoint_all(db), "checkpoint");
	db_close(db);
	must(store_vfs_end(vfs), "end");
	store_vfs_destroy(vfs);
	layer->ops->destroy(layer);
	printf("made %lu volumes and %lu files in %.0f s\n", site->volumes, site->files,
	       (double)(monotonic_ns() - begun) / NS_PER_S);
}

/* -- measure -- */

static struct store *store;
static const int32_t ids[] = {STORE_ADMINISTRATORS, 1};
static const struct store_caller caller = {
	.id = 1, .ids = ids, .id_count = 2, .administrator = true};
static const struct store_set nothing;

static uint64_t read_memory(const char *which)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, which, strlen(which)))
			kib = strtoull(line + strlen(which) + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib / 1024;
}

static void print_memory(const char *when)
{
	struct store_stats stats;

	store_stats(store, &stats);
	printf("memory %s: %" PRIu64 " MiB resident, %" PRIu64 " MiB at most, caches %zu MiB\n",
	       when, read_memory("VmRSS"), read_memory("VmHWM"), stats.memory >> 20);
}

static uint64_t read_cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* An object somewhere in the store. */
struct pick {
	struct store_fid dir, file;
};

static void pick_object(const struct site *site, uint64_t *random, struct pick *pick)
{
	uint64_t number;
	unsigned long volume, files;

	do {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		number = *random >> 20;
		volume = number % site->volumes;
		files = files_of_volume(site, volume);
	} while (!files);
	number = (number / site->volumes) % files;
	pick->file = fid_of_file(site, volume, (uint32_t)number);
	pick->dir = fid_of_dir(volume, (uint32_t)number / OF_DIR);
}

static void get_status(const struct pick *pick)
{
	struct store_status status;

	must(store->ops->status(store, &caller, &pick->file, &status), "status");
}

static void read_object(const struct store_fid *fid)
{
	uint8_t bytes[4096];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct store_reader *reader;
	struct store_status status;

	must(store->ops->read_begin(store, &caller, fid, &reader, &status), "read_begin");
	if (store->ops->read(reader, &iov, 1, 0, 0) <= 0)
		must(-EIO, "read");
	must(store->ops->read_end(reader), "read_end");
}

static void read_file(const struct pick *pick)
{
	read_object(&pick->file);
}

static void read_dir(const struct pick *pick)
{
	read_object(&pick->dir);
}

static void store_file(const struct pick *pick)
{
	static uint8_t bytes[SMALL_BYTES];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct store_writer *writer;
	struct store_status status;
	struct store_changes changes;

	must(store->ops->write_begin(store, &caller, &pick->file, &nothing, 0, SMALL_BYTES,
				     SMALL_BYTES, &writer),
	     "write_begin");
	must(store->ops->write(writer, &iov, 1), "write");
	must(store->ops->write_commit(writer, &status, &changes), "write_commit");
}

static void create_and_remove(const struct pick *pick)
{
	struct store_status status, dir_status;
	struct store_changes changes;

	must(store->ops->create(store, &caller, &pick->dir, "new", STORE_FILE, NULL, &nothing,
				&status, &dir_status, &changes),
	     "create");
	must(store->ops->remove(store, &caller, &pick->dir, "new", STORE_FILE, &dir_status,
				&changes),
	     "remove");
}

static void rename_there_and_back(const struct pick *pick)
{
	static const char *const name[] = {"a", "b"};
	struct store_status status, dir_status;
	struct store_changes changes;

	must(store->ops->create(store, &caller, &pick->dir, name[0], STORE_FILE, NULL, &nothing,
				&status, &dir_status, &changes),
	     "create");
	for (int i = 0; i < 2; i++)
		must(store->ops->rename(store, &caller, &pick->dir, name[i], &pick->dir, name[!i],
					&status, &dir_status, &changes),
		     "rename");
	must(store->ops->remove(store, &caller, &pick->dir, name[0], STORE_FILE, &dir_status,
				&changes),
	     "remove");
}

static const struct operation {
	const char *name;
	void (*run)(const struct pick *pick);
} operations[] = {{"status", get_status},
		  {"read", read_file},
		  {"list", read_dir},
		  {"store", store_file},
		  {"create, remove", create_and_remove},
		  {"create, rename twice, remove", rename_there_and_back}};

/* Of objects anywhere, and of a thousand objects that the caches have by then. */
static void measure_operation(const struct site *site, const struct operation *operation,
			      unsigned count)
{
	struct pick *picks = calloc(count, sizeof(*picks));
	static uint64_t random = 1;
	uint64_t begun, cpu, took[2], used[2];
	unsigned few = count < 1000 ? count : 1000;

	must(picks ? 0 : -ENOMEM, "memory");
	for (unsigned i = 0; i < count; i++)
		pick_object(site, &random, &picks[i]);
	for (int warm = 0; warm < 2; warm++) {
		for (unsigned i = 0; warm && i < few; i++)
			operation->run(&picks[i]);
		begun = monotonic_ns();
		cpu = read_cpu_time();
		for (unsigned i = 0; i < count; i++)
			operation->run(&picks[warm ? i % few : i]);
		used[warm] = read_cpu_time() - cpu;
		took[warm] = monotonic_ns() - begun;
	}
	printf("| %s | %.1f | %.1f | %.1f | %.1f |\n", operation->name,
	       (double)used[0] / 1e3 / count, (double)took[0] / 1e3 / count,
	       (double)used[1] / 1e3 / count, (double)took[1] / 1e3 / count);
	fflush(stdout);
	free(picks);
}

static void print_fault(void *arg, const char *line)
{
	(void)arg;
	printf("FAULT: %s\n", line);
}

static double seconds_since(uint64_t begun)
{
	return (double)(monotonic_ns() - begun) / NS_PER_S;
}

static void open_site(const char *folder, bool no_copy)
{
	struct store_options options = {.path = folder, .log = log_line, .no_copy = no_copy};
	char message[STORE_MESSAGE_MAX];
	uint64_t begun = monotonic_ns(), cpu = read_cpu_time();
	struct store_fid root = {FIRST_ID, 1, 1};
	struct store_status status;

	if (store_open(&options, &store, message)) {
		fprintf(stderr, "store_site: %s\n", message);
		exit(EXIT_FAILURE);
	}
	must(store->ops->status(store, &caller, &root, &status), "status");
	printf("opened, first status after %.3f s, CPU time %.3f s\n", seconds_since(begun),
	       (double)(read_cpu_time() - cpu) / NS_PER_S);
	print_memory("after opening");
}

static void list_site(void)
{
	struct store_volume volume = {0};
	uint64_t begun = monotonic_ns();
	unsigned long count = 0;

	while (!store->ops->volume_next(store, volume.id, &volume))
		count++;
	printf("listed %lu volumes in %.3f s\n", count, seconds_since(begun));
}

static void check_site(void)
{
	uint64_t begun = monotonic_ns(), cpu = read_cpu_time();
	int faults = store_check(store, &(struct store_checker){.each = print_fault});

	printf("check: %d faults, %.1f s, CPU time %.1f s\n", faults, seconds_since(begun),
	       (double)(read_cpu_time() - cpu) / NS_PER_S);
	print_memory("after the check");
}

/* What `measure` does. */
struct plan {
	unsigned count;
	const char *only; /* one operation; NULL: all */
	bool check, no_copy;
};

static void measure_site(const char *folder, const struct site *site, const struct plan *plan)
{
	open_site(folder, plan->no_copy);
	list_site();
	printf("| operation | CPU us, anywhere | us | CPU us, of 1,000 | us |\n"
	       "| --- | ---: | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!plan->only || !strcmp(plan->only, operations[i].name))
			measure_operation(site, &operations[i], plan->count);
	print_memory("after these operations");
	if (plan->check)
		check_site();
	store->ops->close(store);
}

int main(int argc, char **argv)
{
	struct site site = {.volumes = 20000, .files = 1000000, .bytes = SMALL_BYTES};
	struct plan plan = {.count = 20000};
	int option;

	while ((option = getopt(argc, argv, "v:f:b:n:o:pcC")) != -1)
		switch (option) {
		case 'v':
			site.volumes = strtoul(optarg, NULL, 10);
			break;
		case 'f':
			site.files = strtoul(optarg, NULL, 10);
			break;
		case 'b':
			site.bytes = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			plan.count = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'o':
			plan.only = optarg;
			break;
		case 'p':
			site.closed = true;
			break;
		case 'c':
			plan.check = true;
			break;
		case 'C':
			plan.no_copy = true;
			break;
		default:
			optind = argc;
		}
	if (optind + 2 != argc || !site.volumes || site.files < site.volumes || !site.bytes ||
	    site.bytes > SMALL_MOST ||
	    (strcmp(argv[optind], "make") && strcmp(argv[optind], "measure"))) {
		fprintf(stderr,
			"usage: store_site [-v VOLUMES] [-f FILES] [-b BYTES] [-p] make EMPTY-FOLDER\n"
			"       store_site [-v VOLUMES] [-f FILES] [-n OPERATIONS] [-o OPERATION] [-c] [-C] measure FOLDER\n"
			"-p: nobody but administrators has rights; -c: check as well; -C: without the copy of the metadata, which the first opening makes; VOLUMES and FILES are those that the store was made with\n");
		return EXIT_FAILURE;
	}
	if (!strcmp(argv[optind], "make"))
		make_site(argv[optind + 1], &site);
	else
		measure_site(argv[optind + 1], &site, &plan);
	return EXIT_SUCCESS;
}
