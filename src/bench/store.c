/* SPDX-License-Identifier: BSD-2-Clause */
/* The store alone, without a network: operations per second, clones, restarts, memory. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "volume/store/upkeep.h"

static struct store *store;
static uint32_t volume;
static const int32_t ids[] = {STORE_ADMINISTRATORS, 1};
static const struct store_caller caller = {
	.id = 1, .ids = ids, .id_count = 2, .administrator = true};
static const struct store_set nothing;
static size_t file_bytes = 4096;
static double seconds = 3;

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "store: %s: result %d (%s)\n", what, result,
		result < 0 ? strerror(-result) : "a code of AFS");
	exit(EXIT_FAILURE);
}

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "store: %d: %s\n", level, line);
}

static void open_store(struct store_options *options)
{
	char message[STORE_MESSAGE_MAX] = "";

	options->log = log_line;
	if (store_open(options, &store, message)) {
		fprintf(stderr, "store: %s\n", message);
		exit(EXIT_FAILURE);
	}
}

static struct store_fid make(const struct store_fid *dir, const char *name, enum store_kind kind)
{
	struct store_status status, dir_status;
	struct store_changes changes;

	must(store->ops->create(store, &caller, dir, name, kind, NULL, &nothing, &status,
				&dir_status, &changes),
	     "create");
	return status.fid;
}

static void put_at(const struct store_fid *fid, uint64_t offset, size_t length,
		   uint64_t file_length)
{
	static const uint8_t bytes[1 << 20];
	struct store_writer *writer;
	struct store_status status;
	struct store_changes changes;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes};

	must(store->ops->write_begin(store, &caller, fid, &nothing, offset, length, file_length,
				     &writer),
	     "write_begin");
	for (size_t left = length; left; left -= iov.iov_len) {
		iov.iov_len = left < sizeof(bytes) ? left : sizeof(bytes);
		must(store->ops->write(writer, &iov, 1), "write");
	}
	must(store->ops->write_commit(writer, &status, &changes), "write_commit");
}

static void put(const struct store_fid *fid, size_t length)
{
	put_at(fid, 0, length, length);
}

static void drop(const struct store_fid *dir, const char *name)
{
	struct store_status status;
	struct store_changes changes;

	must(store->ops->remove(store, &caller, dir, name, STORE_FILE, &status, &changes),
	     "remove");
}

/* -- loads; each thread has a directory of its own, or all share one -- */

struct thread {
	pthread_t id;
	unsigned number;
	struct store_fid dir, file;
	uint64_t done;
};

static _Atomic bool stop;

static void triple(struct thread *thread)
{
	char name[32];
	struct store_fid fid;

	snprintf(name, sizeof(name), "t%u", thread->number);
	fid = make(&thread->dir, name, STORE_FILE);
	put(&fid, file_bytes);
	drop(&thread->dir, name);
}

static void create_only(struct thread *thread)
{
	char name[64];

	snprintf(name, sizeof(name), "c%u.%llu", thread->number, (unsigned long long)thread->done);
	make(&thread->dir, name, STORE_FILE);
}

static void overwrite(struct thread *thread)
{
	put(&thread->file, file_bytes);
}

static void get_status(struct thread *thread)
{
	struct store_status status;

	must(store->ops->status(store, &caller, &thread->file, &status), "status");
}

static void read_file(struct thread *thread)
{
	static _Thread_local uint8_t buffer[1 << 20];
	struct iovec iov = {.iov_base = buffer, .iov_len = sizeof(buffer)};
	struct store_reader *reader;
	struct store_status status;
	ssize_t got;

	must(store->ops->read_begin(store, &caller, &thread->file, &reader, &status), "read_begin");
	for (uint64_t at = 0; at < status.length; at += (uint64_t)got) {
		got = store->ops->read(reader, &iov, 1, at, 0);
		if (got <= 0)
			must(got ? (int)got : -EIO, "read");
	}
	must(store->ops->read_end(reader), "read_end");
}

static const struct load {
	const char *name;
	void (*once)(struct thread *thread);
} loads[] = {{"triple", triple},
	     {"create", create_only},
	     {"write", overwrite},
	     {"status", get_status},
	     {"read", read_file}};

struct start {
	struct thread *thread;
	const struct load *load;
};

static void *run_thread(void *arg)
{
	const struct start *start = arg;

	while (!stop) {
		start->load->once(start->thread);
		start->thread->done++;
	}
	return NULL;
}

static void run_load(const struct load *load, unsigned threads, bool shared)
{
	struct store_fid root = {volume, 1, 1};
	struct thread *thread = calloc(threads, sizeof(*thread));
	struct start *start = calloc(threads, sizeof(*start));
	struct store_stats before, after;
	uint64_t done = 0, begun;
	double elapsed;
	static unsigned run;
	char name[64];

	run++;
	for (unsigned i = 0; i < threads; i++) {
		snprintf(name, sizeof(name), "d%ld.%u.%u", (long)getpid(), run, i);
		thread[i].number = i;
		thread[i].dir = i && shared ? thread[0].dir : make(&root, name, STORE_DIR);
		snprintf(name, sizeof(name), "f%u", i);
		thread[i].file = make(&thread[i].dir, name, STORE_FILE);
		put(&thread[i].file, file_bytes);
		start[i] = (struct start){&thread[i], load};
	}
	stop = false;
	store_stats(store, &before);
	begun = monotonic_ns();
	for (unsigned i = 0; i < threads; i++)
		must(-pthread_create(&thread[i].id, NULL, run_thread, &start[i]), "thread");
	usleep((useconds_t)(seconds * 1e6));
	stop = true;
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i].id, NULL);
		done += thread[i].done;
	}
	elapsed = (double)(monotonic_ns() - begun) / NS_PER_S;
	store_stats(store, &after);
	printf("%-7s %6zu bytes %3u threads %-8s %12.0f /s %9.2f us each  %6.1f operations per commit\n",
	       load->name, file_bytes, threads, shared ? "shared" : "separate",
	       (double)done / elapsed, elapsed * threads * 1e6 / (double)done,
	       after.commits > before.commits ? (double)(after.operations - before.operations) /
							(double)(after.commits - before.commits)
					      : 0);
	fflush(stdout);
	free(thread);
	free(start);
}

/* -- many vnodes -- */

static uint64_t resident_kib(void)
{
	unsigned long pages = 0, all;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file)
		return 0;
	if (fscanf(file, "%lu %lu", &all, &pages) != 2)
		pages = 0;
	fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

struct filler {
	pthread_t id;
	unsigned number, dirs, each;
};

static void *fill_thread(void *arg)
{
	const struct filler *filler = arg;
	struct store_fid root = {volume, 1, 1};
	char name[32];

	for (unsigned i = 0; i < filler->dirs; i++) {
		struct store_fid dir;

		snprintf(name, sizeof(name), "m%u.%u", filler->number, i);
		dir = make(&root, name, STORE_DIR);
		for (unsigned k = 0; k < filler->each; k++) {
			snprintf(name, sizeof(name), "file%u", k);
			make(&dir, name, STORE_FILE);
		}
	}
	return NULL;
}

#define FILLERS 16

static void fill(unsigned long vnodes)
{
	struct filler filler[FILLERS];
	uint64_t begun = monotonic_ns();
	double elapsed;

	for (unsigned i = 0; i < FILLERS; i++) {
		filler[i] = (struct filler){
			.number = i, .each = 1000, .dirs = (unsigned)(vnodes / 1000 / FILLERS)};
		must(-pthread_create(&filler[i].id, NULL, fill_thread, &filler[i]), "thread");
	}
	for (unsigned i = 0; i < FILLERS; i++)
		pthread_join(filler[i].id, NULL);
	elapsed = (double)(monotonic_ns() - begun) / NS_PER_S;
	printf("filled with %lu vnodes in %.1f s, resident %llu MiB\n", vnodes, elapsed,
	       (unsigned long long)resident_kib() / 1024);
}

static double milliseconds(uint64_t begun)
{
	return (double)(monotonic_ns() - begun) / NS_PER_MS;
}

static void clone_often(void)
{
	uint64_t begun;
	uint32_t clone;
	double best = 1e9, worst = 0;

	for (int i = 0; i < 10; i++) {
		double took;

		begun = monotonic_ns();
		must(store_volume_clone(store, volume, i & 1 ? STORE_RO : STORE_BACKUP, &clone),
		     "clone");
		took = milliseconds(begun);
		best = took < best ? took : best;
		worst = took > worst ? took : worst;
	}
	printf("clone: %.2f to %.2f ms\n", best, worst);
}

static void print_fault(void *arg, const char *line)
{
	(void)arg;
	printf("FAULT: %s\n", line);
}

static void check(void)
{
	uint64_t begun = monotonic_ns();
	int faults = store_check(store, &(struct store_checker){.fast = true, .each = print_fault});

	printf("fast check: %d faults, %.0f ms\n", faults, milliseconds(begun));
	begun = monotonic_ns();
	faults = store_check(store, &(struct store_checker){.each = print_fault});
	printf("full check: %d faults, %.0f ms\n", faults, milliseconds(begun));
}

/* A process that fills the store, and is killed; the next one opens it. */
static void many(struct store_options *options, unsigned long vnodes)
{
	struct store_volume about;
	struct store_status status;
	struct store_fid root = {0, 1, 1};
	uint64_t begun;
	pid_t child;
	int state;

	fflush(stdout);
	child = fork();
	if (!child) {
		open_store(options);
		must(store->ops->volume_next(store, 0, &about), "volume");
		volume = about.id;
		fill(vnodes);
		clone_often();
		run_load(&loads[0], 16, false);
		printf("resident %llu MiB\n", (unsigned long long)resident_kib() / 1024);
		fflush(stdout);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &state, 0);
	begun = monotonic_ns();
	open_store(options);
	must(store->ops->volume_next(store, 0, &about), "volume");
	root.volume = volume = about.id;
	must(store->ops->status(store, &caller, &root, &status), "status");
	printf("first status after kill -9: %.1f ms\n", milliseconds(begun));
	run_load(&loads[0], 16, false);
	check();
	printf("resident %llu MiB\n", (unsigned long long)resident_kib() / 1024);
	store->ops->close(store);
}

/* -- pages of a large file -- */

#define PAGE 4096u

static unsigned long stores = 1000;

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of this thread, in nanoseconds. */
static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Pages anywhere in the file, one at a time. The CPU time of a call does not depend on other programs. */
static void store_pages(const struct store_fid *fid, uint64_t length, const char *what)
{
	uint64_t *took = calloc(stores, sizeof(*took)), random = 1, longest = 0;
	struct store_stats before, after;

	must(took ? 0 : -ENOMEM, "memory");
	store_stats(store, &before);
	for (unsigned long i = 0; i < stores; i++) {
		uint64_t begun, cpu = cpu_time();

		random = random * 6364136223846793005u + 1442695040888963407u;
		begun = monotonic_ns();
		put_at(fid, (random >> 20) % (length / PAGE) * PAGE, PAGE, length);
		took[i] = monotonic_ns() - begun;
		cpu = cpu_time() - cpu;
		longest = cpu > longest ? cpu : longest;
	}
	store_stats(store, &after);
	qsort(took, stores, sizeof(took[0]), by_value);
	printf("%lu pages to a file of %llu MiB, %s: median %.0f us, 99 %% %.0f us, "
	       "99.9 %% %.0f us, longest %.0f us; "
	       "at most %.0f us of the CPU; %.0f KiB copied for each\n",
	       stores, (unsigned long long)(length >> 20), what, (double)took[stores / 2] / 1e3,
	       (double)took[stores * 99 / 100] / 1e3, (double)took[stores * 999 / 1000] / 1e3,
	       (double)took[stores - 1] / 1e3, (double)longest / 1e3,
	       (double)(after.bytes_copied - before.bytes_copied) / 1024 / (double)stores);
	fflush(stdout);
	free(took);
}

static bool settles, sparse;

/* A file of that length, all of which was written, or its last page only. */
static struct store_fid make_long(const char *name, uint64_t length)
{
	struct store_fid root = {volume, 1, 1}, fid = make(&root, name, STORE_FILE);

	if (sparse)
		put_at(&fid, length - PAGE, PAGE, length);
	else
		put(&fid, length);
	must(store_flush(store), "flush");
	return fid;
}

/* Files below "files", as a shell counts them. */
static void count_objects(const char *folder)
{
	char command[600];

	snprintf(command, sizeof(command),
		 "find '%s/files' -type f | wc -l | sed 's/$/ files of the store/'", folder);
	fflush(stdout);
	if (system(command))
		fprintf(stderr, "store: the files cannot be counted\n");
}

static void read_whole(const struct store_fid *fid, const char *when)
{
	struct thread thread = {.file = *fid};
	struct store_status status;
	uint64_t begun = monotonic_ns();

	read_file(&thread);
	must(store->ops->status(store, &caller, fid, &status), "status");
	printf("read %s: %.0f MB/s\n", when,
	       (double)status.length * 1e3 / (double)(monotonic_ns() - begun));
}

/* Objects of no use go after flushes, some at a time. */
static void settle(void)
{
	for (int i = 0; i < 20; i++) {
		must(store_flush(store), "flush");
		usleep(100000);
	}
}

static void wait_settled(const struct store_fid *fid, const char *folder)
{
	must(store_flush(store), "flush");
	count_objects(folder);
	read_whole(fid, "at once");
	settle();
	count_objects(folder);
	read_whole(fid, "later");
}

static void pages(uint64_t length, const char *folder)
{
	struct store_fid fid = make_long("alone", length);
	uint32_t clone;

	store_pages(&fid, length, "alone");
	if (settles)
		wait_settled(&fid, folder);
	fid = make_long("shared", length);
	must(store_volume_clone(store, volume, STORE_BACKUP, &clone), "clone");
	store_pages(&fid, length, "shared with a clone");
	if (settles)
		wait_settled(&fid, folder);
}

/* -- contents of large files: what a user does with them -- */

static uint64_t next_random(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return *random >> 20;
}

/* Bytes that the disk has for the store, and its files. */
static void print_space(const char *folder, const char *what)
{
	char command[700];

	snprintf(
		command, sizeof(command),
		"echo \"%s: $(du -sk '%s/files' | cut -f1) KiB in $(find '%s/files' -type f | wc -l) files, "
		"database $(du -sk '%s/meta' | cut -f1) KiB\"",
		what, folder, folder, folder);
	fflush(stdout);
	if (system(command))
		fprintf(stderr, "store: the space cannot be measured\n");
}

struct series {
	const char *what;
	uint64_t *took, begun, cpu;
	unsigned long count;
	uint64_t bytes;
};

static void begin_series(struct series *series, const char *what, unsigned long room)
{
	*series = (struct series){.what = what, .took = calloc(room, sizeof(uint64_t))};
	must(series->took ? 0 : -ENOMEM, "memory");
	series->cpu = cpu_time();
	series->begun = monotonic_ns();
}

static void note_write(struct series *series, const struct store_fid *fid, uint64_t offset,
		       size_t length, uint64_t file_length)
{
	uint64_t begun = monotonic_ns();

	put_at(fid, offset, length, file_length);
	series->took[series->count++] = monotonic_ns() - begun;
	series->bytes += length;
}

static void end_series(struct series *series)
{
	uint64_t cpu = cpu_time() - series->cpu, wall = monotonic_ns() - series->begun;
	unsigned long n = series->count;

	qsort(series->took, n, sizeof(series->took[0]), by_value);
	printf("%-28s %7lu calls: median %7.1f us, 99 %% %8.1f us, CPU %7.1f us, wall %7.1f us each, %7.0f MB/s\n",
	       series->what, n, (double)series->took[n / 2] / 1e3,
	       (double)series->took[n * 99 / 100] / 1e3, (double)cpu / 1e3 / (double)n,
	       (double)wall / 1e3 / (double)n, (double)series->bytes * 1e3 / (double)wall);
	fflush(stdout);
	free(series->took);
}

/* Lines of 4 KiB to a log. */
static void append_pages(uint64_t length)
{
	struct store_fid root = {volume, 1, 1}, fid = make(&root, "log", STORE_FILE);
	struct series series;

	begin_series(&series, "append 4 KiB", length / PAGE);
	for (uint64_t at = 0; at < length; at += PAGE)
		note_write(&series, &fid, at, PAGE, at + PAGE);
	end_series(&series);
}

/* Writes of 4 to 16 KiB anywhere in a file, as a database or a virtual machine makes them. */
static void random_writes(const char *name, uint64_t length, unsigned most, const char *what)
{
	struct store_fid root = {volume, 1, 1}, fid = make(&root, name, STORE_FILE);
	struct series series;
	uint64_t random = 1;
	uint32_t clone;

	put(&fid, length);
	must(store_flush(store), "flush");
	if (name[0] == 's')
		must(store_volume_clone(store, volume, STORE_BACKUP, &clone), "clone");
	begin_series(&series, what, stores);
	for (unsigned long i = 0; i < stores; i++) {
		size_t size = PAGE * (1 + next_random(&random) % most);

		note_write(&series, &fid, next_random(&random) % ((length - size) / PAGE) * PAGE,
			   size, length);
	}
	end_series(&series);
}

/* Files that are written and read from the beginning to the end. */
static void sequential(uint64_t length)
{
	struct store_fid root = {volume, 1, 1}, fid = make(&root, "film", STORE_FILE);
	struct thread thread = {.file = fid};
	struct series series;

	begin_series(&series, "store all", 4);
	for (int i = 0; i < 4; i++)
		note_write(&series, &fid, 0, length, length);
	end_series(&series);
	for (int again = 0; again < 2; again++) {
		begin_series(&series, again ? "fetch all again" : "fetch all", 4);
		for (int i = 0; i < (again ? 4 : 1); i++) {
			uint64_t begun = monotonic_ns();

			read_file(&thread);
			series.took[series.count++] = monotonic_ns() - begun;
			series.bytes += length;
		}
		end_series(&series);
	}
}

static void chunks(uint64_t length, size_t size, const char *what)
{
	struct store_fid root = {volume, 1, 1}, fid = make(&root, what, STORE_FILE);
	struct series series;

	begin_series(&series, what, length / size);
	for (uint64_t at = 0; at < length; at += size)
		note_write(&series, &fid, at, size, at + size);
	end_series(&series);
}

/* In a virtual machine, pages that were never used cost several times as much as others. */
static void use_memory(uint64_t length, const char *folder)
{
	static const uint8_t bytes[1 << 20] = {1};
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/memory", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	must(fd < 0 ? -errno : 0, path);
	for (uint64_t at = 0; at < length; at += sizeof(bytes))
		must(pwrite(fd, bytes, sizeof(bytes), (off_t)at) < 0 ? -errno : 0, path);
	close(fd);
	must(unlink(path) < 0 ? -errno : 0, path);
}

static void contents(uint64_t length, const char *folder)
{
	use_memory(6 * length, folder);
	sequential(length);
	chunks(length, 64u << 10, "store in 64 KiB");
	chunks(length, 1u << 20, "store in 1 MiB");
	settle();
	print_space(folder, "after sequences");
	append_pages(length / 4);
	settle();
	print_space(folder, "after appends");
	random_writes("disk", length, 4, "random 4 to 16 KiB");
	settle();
	print_space(folder, "after random writes");
	random_writes("pages", length, 1, "random 4 KiB");
	random_writes("shared", length, 1, "random 4 KiB, shared");
	settle();
	print_space(folder, "after small overwrites");
}

int main(int argc, char **argv)
{
	struct store_options options = {0};
	struct store_new_volume new = {.name = "bench", .owner = 1};
	unsigned long vnodes = 0, threads = 0, mib = 0, large = 0;
	const char *only = NULL;
	char message[STORE_MESSAGE_MAX];
	int option;

	while ((option = getopt(argc, argv, "sCb:t:m:l:v:k:p:n:wSc:")) != -1)
		switch (option) {
		case 's':
			options.durability = STORE_STRICT;
			break;
		case 'C':
			options.no_copy = true;
			break;
		case 'b':
			file_bytes = strtoul(optarg, NULL, 10);
			break;
		case 't':
			seconds = strtod(optarg, NULL);
			break;
		case 'm':
			options.small = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'l':
			only = optarg;
			break;
		case 'k':
			threads = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			mib = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			stores = strtoul(optarg, NULL, 10);
			stores += stores == 0;
			break;
		case 'w':
			settles = true;
			break;
		case 'S':
			sparse = true;
			break;
		case 'c':
			large = strtoul(optarg, NULL, 10);
			break;
		case 'v':
			vnodes = strtoul(optarg, NULL, 10);
			break;
		default:
			optind = argc;
		}
	if (optind != argc - 1) {
		fprintf(stderr,
			"usage: store [-s] [-C] [-b BYTES] [-t SECONDS] [-m LIMIT OF SMALL FILES] "
			"[-l LOAD] [-k THREADS] [-v VNODES] "
			"[-p MIB OF A FILE [-n PAGES] [-S] [-w] | -c MIB OF A FILE [-n WRITES]] EMPTY-DIRECTORY\n");
		return EXIT_FAILURE;
	}
	options.path = argv[optind];
	if (store_make(&options, message)) {
		fprintf(stderr, "store: %s\n", message);
		return EXIT_FAILURE;
	}
	open_store(&options);
	must(store_volume_create(store, &new, &volume), "volume");
	if (vnodes) {
		store->ops->close(store);
		many(&options, vnodes);
		return EXIT_SUCCESS;
	}
	if (mib) {
		pages((uint64_t)mib << 20, argv[optind]);
		store->ops->close(store);
		return EXIT_SUCCESS;
	}
	if (large) {
		contents((uint64_t)large << 20, argv[optind]);
		store->ops->close(store);
		return EXIT_SUCCESS;
	}
	printf("%s, small files up to %u bytes\n",
	       options.durability == STORE_STRICT ? "strict" : "lazy",
	       options.small ? options.small : 8192);
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (only && strcmp(only, loads[i].name) != 0)
			continue;
		for (unsigned k = threads ? (unsigned)threads : 1; k <= (threads ? threads : 16);
		     k *= 4)
			run_load(&loads[i], k, false);
		run_load(&loads[i], threads ? (unsigned)threads : 16, true);
	}
	store->ops->close(store);
	return EXIT_SUCCESS;
}
