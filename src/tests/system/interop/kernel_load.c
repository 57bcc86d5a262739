/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random work on files against a model in memory, in the guest of `kernel_writes`; linked
 * statically. Prints "ok ..." or what differs, with the latest operations.
 *
 *   load file PATH SEED OPERATIONS [BYTES [unmapped [undropped]]]
 *       one file of at most BYTES (262144): reads, writes, mappings, truncations, holes, fsync,
 *       closing, dropped caches. Unmapped: no mapping is written to. Undropped: caches are dropped
 *       at the end only
 *   load tree DIR SEED SECONDS FIRST PROCESSES
 *       processes FIRST, FIRST + 1, ... share the directories below DIR. Each owns the names that
 *       begin with its number, and knows their contents; "shared" names belong to all of them.
 *       Prints how many names it leaves there
 *   load count PATH ROUNDS [fcntl]
 *       adds 1 to the number in a file ROUNDS times, under a lock for each
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel_pattern.h"

#define RECENT 24 /* operations that are printed after a difference */

static uint64_t random_state;
static char recent[RECENT][120];
static unsigned long operation;

static unsigned draw(unsigned limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 20) % limit;
}

static void seed(unsigned n)
{
	random_state = (n + 1) * 0x9e3779b97f4a7c15u;
	for (int i = 0; i < 8; i++)
		draw(2);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	char *line = recent[operation % RECENT];
	va_list args;
	int n = snprintf(line, sizeof(recent[0]), "%lu ", operation);

	va_start(args, format);
	vsnprintf(line + n, sizeof(recent[0]) - (size_t)n, format, args);
	va_end(args);
}

__attribute__((format(printf, 1, 2), noreturn)) static void wrong(const char *format, ...)
{
	va_list args;

	printf("wrong: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("");
	for (unsigned long i = operation < RECENT ? 0 : operation - RECENT + 1; i <= operation; i++)
		printf("  %s\n", recent[i % RECENT]);
	fflush(stdout);
	_exit(1);
}

static void must(int holds, const char *call)
{
	if (!holds)
		wrong("%s: %s", call, strerrorname_np(errno));
}

static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (fd >= 0) {
		(void)!write(fd, "3", 1);
		close(fd);
	}
}

/* ---- one file ---- */

static struct {
	const char *path;
	char *model, *bytes; /* each of `most` bytes; model is zero behind the length */
	long most, length;
	int fd, holes, unmapped, undropped;
} file;

/* A stretch of the file of up to 64 KiB that begins before limit. */
static void stretch(long limit, long *at, long *n)
{
	long most = draw(4) ? 5000 : 65536;

	*at = limit ? (long)draw((unsigned)limit) : 0;
	*n = 1 + (long)draw((unsigned)most);
	if (*n > limit - *at)
		*n = limit - *at;
}

static void compare(const char *got, long at, long n, const char *how)
{
	for (long i = 0; i < n; i++)
		if (got[i] != file.model[at + i])
			wrong("%s: byte %ld is 0x%02x, not 0x%02x (length %ld)", how, at + i,
			      (unsigned char)got[i], (unsigned char)file.model[at + i],
			      file.length);
}

static void file_read(void)
{
	long at, n, left;

	stretch(file.most, &at, &n);
	left = at < file.length ? file.length - at : 0;
	note("read %ld+%ld", at, n);
	if (n > left) {
		must(pread(file.fd, file.bytes, (size_t)n, at) == left, "read across the end");
		n = left;
	} else {
		must(pread(file.fd, file.bytes, (size_t)n, at) == n, "read");
	}
	compare(file.bytes, at, n, "read");
}

static void fill_model(long at, long n)
{
	pattern_fill(file.model + at, at, (size_t)n, (unsigned)operation + 1);
	if (at + n > file.length)
		file.length = at + n;
}

static void file_write(void)
{
	long at, n;

	/* Most writes begin in the file or at its end. */
	stretch(draw(8) ? (file.length < file.most ? file.length + 1 : file.most) : file.most, &at,
		&n);
	if (at == file.length)
		n = 1 + (long)draw(file.most - at < 20000 ? (unsigned)(file.most - at) : 20000);
	if (at + n > file.most)
		return;
	note("write %ld+%ld", at, n);
	fill_model(at, n);
	must(pwrite(file.fd, file.model + at, (size_t)n, at) == n, "write");
}

static void file_map(int writes)
{
	long at, n, skip;
	char *map;

	stretch(file.length, &at, &n);
	if (n <= 0)
		return;
	skip = at % 4096;
	note("%s %ld+%ld", writes ? "mapwrite" : "mapread", at, n);
	map = mmap(NULL, (size_t)(skip + n), PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED,
		   file.fd, at - skip);
	must(map != MAP_FAILED, "mmap");
	compare(map, at - skip, skip + n, "mapping");
	if (writes) {
		fill_model(at, n);
		memcpy(map + skip, file.model + at, (size_t)n);
		if (draw(2))
			must(msync(map, (size_t)(skip + n), MS_SYNC) == 0, "msync");
	}
	munmap(map, (size_t)(skip + n));
}

static void file_truncate(void)
{
	long to = (long)draw((unsigned)(draw(3) ? file.length + 1 : file.most));

	note("truncate %ld to %ld", file.length, to);
	must((draw(2) ? ftruncate(file.fd, to) : truncate(file.path, to)) == 0, "truncate");
	if (to < file.length)
		memset(file.model + to, 0, (size_t)(file.length - to));
	file.length = to;
}

static void file_punch(void)
{
	long at, n;

	stretch(file.length, &at, &n);
	if (!file.holes || n <= 0)
		return;
	note("punch %ld+%ld", at, n);
	if (fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, n) < 0) {
		must(errno == EOPNOTSUPP, "fallocate");
		file.holes = 0;
		return;
	}
	memset(file.model + at, 0, (size_t)n);
}

static void file_reopen(void)
{
	int flags = draw(16) ? O_RDWR : O_RDWR | O_TRUNC;

	note(flags & O_TRUNC ? "close, open with O_TRUNC" : "close, open");
	must(close(file.fd) == 0, "close");
	file.fd = open(file.path, flags);
	must(file.fd >= 0, "open");
	if (flags & O_TRUNC) {
		memset(file.model, 0, (size_t)file.length);
		file.length = 0;
	}
}

static void file_drop(void)
{
	note("drop caches");
	must(fsync(file.fd) == 0, "fsync");
	drop_caches();
}

static void file_whole(void)
{
	struct stat st;

	note("compare all");
	must(fstat(file.fd, &st) == 0, "fstat");
	if (st.st_size != file.length)
		wrong("length %lld, not %ld", (long long)st.st_size, file.length);
	must(pread(file.fd, file.bytes, (size_t)file.most, 0) == file.length, "read of all");
	compare(file.bytes, 0, file.length, "all");
}

static void file_step(void)
{
	unsigned kind = draw(1000);

	if (kind < 250)
		file_read();
	else if (kind < 520)
		file_write();
	else if (kind < 640)
		file_map(0);
	else if (kind < 780)
		file_map(!file.unmapped);
	else if (kind < 860)
		file_truncate();
	else if (kind < 900)
		file_punch();
	else if (kind < 950)
		file_reopen();
	else if (kind < 970 || (kind < 976 && file.undropped))
		must((note("fsync"), fsync(file.fd)) == 0, "fsync");
	else if (kind < 976)
		file_drop();
	else
		file_whole();
}

static int run_file(char **argv)
{
	unsigned long operations = strtoul(argv[4], NULL, 10);

	seed((unsigned)strtoul(argv[3], NULL, 10));
	file.path = argv[2];
	file.most = argv[5] ? strtol(argv[5], NULL, 10) : 262144;
	file.model = calloc(1, (size_t)file.most + 65536);
	file.bytes = malloc((size_t)file.most + 65536);
	file.holes = 1;
	file.unmapped = argv[5] && argv[6];
	file.undropped = file.unmapped && argv[7];
	file.fd = open(file.path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(file.model && file.bytes && file.fd >= 0, "open");
	for (; operation < operations; operation++)
		file_step();
	file_reopen();
	file_drop();
	file_whole();
	printf("ok holes %s\n", file.holes ? "yes" : "no");
	return 0;
}

/* ---- a tree ---- */

#define OWN	48 /* names of a process */
#define FOLDERS 6
#define COMMON	5 /* names that all processes fight for, in each folder */
#define LARGEST 40000

/* A name that a process owns. Links to one file have the same `content`. */
struct own {
	int used, folder, is_dir;
	unsigned number;
	struct content {
		int links;
		long length;
		unsigned seed;
	} *content;
};

static struct {
	const char *top;
	int me, names;
	unsigned next;
	struct own own[OWN];
} tree;

static const char *path_of(const struct own *o)
{
	static char paths[4][300];
	static int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/d%d/%d-%u%s", tree.top, o->folder, tree.me, o->number,
		 o->number % 5 ? "" : "-with-a-name-that-is-longer-than-one-slot");
	return path;
}

/* An own name that is used, or one that is free; NULL if there is none. */
static struct own *pick(int used)
{
	unsigned from = draw(OWN);

	for (unsigned i = 0; i < OWN; i++)
		if (tree.own[(from + i) % OWN].used == used)
			return &tree.own[(from + i) % OWN];
	return NULL;
}

static struct own *pick_new(void)
{
	struct own *o = pick(0);

	if (o)
		*o = (struct own){.folder = (int)draw(FOLDERS), .number = tree.next++};
	return o;
}

static void write_at(const struct own *o, long at, long n, int flags)
{
	static char bytes[LARGEST];
	int fd = open(path_of(o), flags, 0644);

	must(fd >= 0, "open to write");
	pattern_fill(bytes, at, (size_t)n, o->content->seed);
	must(pwrite(fd, bytes, (size_t)n, at) == n, "write");
	must(close(fd) == 0, "close");
}

static void tree_create(void)
{
	struct own *o = pick_new();

	if (!o)
		return;
	note("create %s", path_of(o));
	if (draw(8) == 0) {
		must(mkdir(path_of(o), 0755) == 0, "mkdir");
		o->is_dir = 1;
	} else {
		o->content = calloc(1, sizeof(*o->content));
		*o->content = (struct content){1, (long)draw(LARGEST), draw(100000) + 1};
		write_at(o, 0, o->content->length, O_WRONLY | O_CREAT | O_EXCL);
	}
	o->used = 1;
	tree.names++;
}

static void tree_grow(void)
{
	struct own *o = pick(1);
	long more = 1 + (long)draw(5000), from;

	if (!o || o->is_dir || o->content->length + more > LARGEST)
		return;
	note("grow %s from %ld by %ld", path_of(o), o->content->length, more);
	from = o->content->length;
	write_at(o, from, more, O_WRONLY);
	o->content->length += more;
}

static void tree_shrink(void)
{
	struct own *o = pick(1);
	long to;

	if (!o || o->is_dir)
		return;
	to = (long)draw((unsigned)o->content->length + 1);
	note("shrink %s from %ld to %ld", path_of(o), o->content->length, to);
	must(truncate(path_of(o), to) == 0, "truncate");
	o->content->length = to;
}

static void tree_verify(const struct own *o)
{
	static char bytes[LARGEST + 1];
	struct stat st;
	size_t bad;
	int fd;

	must(lstat(path_of(o), &st) == 0, "lstat of an own name");
	if (!S_ISDIR(st.st_mode) != !o->is_dir)
		wrong("%s has another kind", path_of(o));
	if (o->is_dir)
		return;
	fd = open(path_of(o), O_RDONLY);
	must(fd >= 0, "open to read");
	if (pread(fd, bytes, sizeof(bytes), 0) != o->content->length)
		wrong("%s is not %ld long", path_of(o), o->content->length);
	bad = pattern_differs(bytes, 0, (size_t)o->content->length, o->content->seed);
	if (bad < (size_t)o->content->length)
		wrong("%s differs at %zu of %ld", path_of(o), bad, o->content->length);
	close(fd);
	must(fstatat(AT_FDCWD, path_of(o), &st, 0) == 0, "stat");
	if ((int)st.st_nlink != o->content->links)
		wrong("%s has %d links, not %d", path_of(o), (int)st.st_nlink, o->content->links);
}

static void tree_read(void)
{
	struct own *o = pick(1);

	if (!o)
		return;
	note("read %s", path_of(o));
	tree_verify(o);
}

static void gone(const struct own *o)
{
	if (access(path_of(o), F_OK) == 0)
		wrong("%s is still there", path_of(o));
	must(errno == ENOENT, "a name that is gone");
}

/* To a new name; at times over another name of the same kind. */
static void tree_rename(void)
{
	struct own *o = pick(1), *over = draw(3) ? NULL : pick(1), to, was;

	if (!o || (over && (over == o || over->is_dir != o->is_dir)))
		return;
	/* Two names of one file: rename() does nothing. */
	if (over && over->content && over->content == o->content)
		return;
	was = *o;
	to = over ? *over : (struct own){.folder = (int)draw(FOLDERS), .number = tree.next++};
	/* A file with several links stays in its directory. */
	if (o->content && o->content->links > 1) {
		if (over && over->folder != o->folder)
			return;
		to.folder = o->folder;
	}
	note("rename %s %s", path_of(o), path_of(&to));
	must(rename(path_of(o), path_of(&to)) == 0, "rename");
	if (over && over->content && --over->content->links == 0)
		free(over->content);
	if (over) {
		over->used = 0;
		tree.names--;
	}
	o->folder = to.folder;
	o->number = to.number;
	gone(&was);
}

static void tree_link(void)
{
	struct own *o = pick(1), *new = pick_new();

	if (!o || !new || o->is_dir)
		return;
	new->folder = o->folder;
	note("link %s %s", path_of(o), path_of(new));
	must(link(path_of(o), path_of(new)) == 0, "link");
	new->content = o->content;
	new->content->links++;
	new->used = 1;
	tree.names++;
}

static void tree_remove(void)
{
	struct own *o = pick(1);

	if (!o)
		return;
	note("remove %s", path_of(o));
	must((o->is_dir ? rmdir(path_of(o)) : unlink(path_of(o))) == 0, "remove");
	gone(o);
	if (o->content && --o->content->links == 0)
		free(o->content);
	o->used = 0;
	tree.names--;
}

/* Names that others make and remove at the same time: what must not happen is another error. */
static void tree_common(void)
{
	char a[300], b[300];
	int result, fd;

	snprintf(a, sizeof(a), "%s/d%u/shared-%u", tree.top, draw(FOLDERS), draw(COMMON));
	snprintf(b, sizeof(b), "%s/d%u/shared-%u", tree.top, draw(FOLDERS), draw(COMMON));
	switch (draw(4)) {
	case 0:
		note("exclusive %s", a);
		fd = open(a, O_WRONLY | O_CREAT | O_EXCL, 0644);
		must(fd >= 0 || errno == EEXIST, "creation of a shared name");
		if (fd >= 0)
			close(fd);
		return;
	case 1:
		note("unlink %s", a);
		result = unlink(a);
		break;
	case 2:
		note("rename %s %s", a, b);
		result = rename(a, b);
		break;
	default:
		note("stat %s", a);
		result = access(a, F_OK);
	}
	must(result == 0 || errno == ENOENT || errno == ESTALE, "a shared name");
}

static void tree_step(void)
{
	unsigned kind = draw(100);

	if (kind < 22)
		tree_create();
	else if (kind < 34)
		tree_grow();
	else if (kind < 40)
		tree_shrink();
	else if (kind < 58)
		tree_read();
	else if (kind < 70)
		tree_rename();
	else if (kind < 76)
		tree_link();
	else if (kind < 90)
		tree_remove();
	else
		tree_common();
}

/* The report of a process to its parent, in one write. */
struct result {
	int names;
	unsigned long operations;
};

static int run_process(int me, unsigned with, long seconds, int to)
{
	struct result result;
	time_t end = time(NULL) + seconds;

	seed(with * 1000 + (unsigned)me);
	tree.me = me;
	for (; time(NULL) < end; operation++)
		tree_step();
	drop_caches();
	for (int i = 0; i < OWN; i++)
		if (tree.own[i].used)
			tree_verify(&tree.own[i]);
	note("end");
	result = (struct result){tree.names, operation};
	must(write(to, &result, sizeof(result)) == sizeof(result), "result");
	return 0;
}

static int run_tree(char **argv)
{
	int first = atoi(argv[5]), count = atoi(argv[6]), failed = 0, status, ends[2];
	struct result one, sum = {0};
	char path[300];

	tree.top = argv[2];
	for (int i = 0; i < FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/d%d", tree.top, i);
		must(mkdir(path, 0755) == 0 || errno == EEXIST, "mkdir");
	}
	must(pipe(ends) == 0, "pipe");
	fflush(stdout);
	for (int i = 0; i < count; i++)
		if (fork() == 0)
			_exit(run_process(first + i, (unsigned)atoi(argv[3]), atol(argv[4]),
					  ends[1]));
	while (wait(&status) > 0)
		failed += status != 0;
	close(ends[1]);
	if (failed)
		return 1;
	for (int i = 0; i < count; i++) {
		must(read(ends[0], &one, sizeof(one)) == sizeof(one), "result");
		sum.names += one.names;
		sum.operations += one.operations;
	}
	printf("ok names %d operations %lu\n", sum.names, sum.operations);
	return 0;
}

/* ---- a number ---- */

static int run_count(char **argv)
{
	int by_fcntl = argv[4] != NULL, fd = open(argv[2], O_RDWR);
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[32];

	must(fd >= 0, "open");
	for (long rounds = strtol(argv[3], NULL, 10); rounds; rounds--, operation++) {
		whole.l_type = F_WRLCK;
		must((by_fcntl ? fcntl(fd, F_SETLKW, &whole) : flock(fd, LOCK_EX)) == 0, "lock");
		must(pread(fd, text, 9, 0) == 9, "read");
		text[9] = 0;
		note("%s", text);
		snprintf(text, sizeof(text), "%08ld\n", strtol(text, NULL, 10) + 1);
		must(pwrite(fd, text, 9, 0) == 9, "write");
		must(fsync(fd) == 0, "fsync");
		whole.l_type = F_UNLCK;
		must((by_fcntl ? fcntl(fd, F_SETLK, &whole) : flock(fd, LOCK_UN)) == 0, "unlock");
	}
	must(close(fd) == 0, "close");
	puts("ok");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && argc <= 8 && !strcmp(argv[1], "file"))
		return run_file(argv);
	if (argc == 7 && !strcmp(argv[1], "tree"))
		return run_tree(argv);
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "count"))
		return run_count(argv);
	fprintf(stderr, "load: usage: see the source\n");
	return 99;
}
