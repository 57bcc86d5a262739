/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses the disk cache is killed at random moments. What the server has is in memory that survives; after each kill, every
 * block that the cache offers for the server's version must have the server's bytes. Usage: test_disk_kills [KILLS [SEED]].
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/disk/disk.h"
#include "tests/asserts.h"
#include "tests/main.h"

#define BLOCK  (16u * 1024)
#define FILES  6u
#define BLOCKS 8u
#define MOST   (560u * 1024) /* of the cache: not all blocks fit */

/* The server: shared with the programs that are killed. */
static struct server {
	struct {
		_Atomic uint64_t version;
		_Atomic uint32_t contents[BLOCKS]; /* the seed of the bytes */
		_Atomic uint32_t length[BLOCKS];
	} files[FILES];
	_Atomic uint32_t seeds;
	_Atomic uint64_t kept, offered;
} * server;

static char folder[64];
static struct cl_disk *disk;
static unsigned kills = 100, first_seed = 1;

static void fill(unsigned char *bytes, uint32_t seed, uint32_t length)
{
	uint32_t word = seed * 2654435761u + 1;

	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)((word = word * 1664525u + 1013904223u) >> 24);
}

static int open_disk(char *message, size_t size)
{
	struct cl_disk_options options = {
		.folder = folder, .bytes_most = MOST, .block = BLOCK, .fill_most = 100};

	return cl_disk_open(&options, &disk, message, size);
}

/* One step of a client with one file: the order of its calls is that of the contents of files. */
static void use_file(struct cl_disk_file *file, unsigned i, unsigned *state)
{
	static _Thread_local unsigned char bytes[BLOCK];
	unsigned what = (unsigned)rand_r(state) % 16, number = (unsigned)rand_r(state) % BLOCKS;
	struct cl_disk_version version = {atomic_load(&server->files[i].version), 1},
			       next = version;
	uint64_t ticket;
	uint32_t length;

	next.version++;
	if (what < 8) {
		ticket = cl_disk_take_ticket(file);
		length = atomic_load(&server->files[i].length[number]);
		fill(bytes, atomic_load(&server->files[i].contents[number]), length);
		if (!cl_disk_write_block(file, &version, ticket, number, bytes, length))
			atomic_fetch_add(&server->kept, 1);
	} else if (what < 10) {
		cl_disk_read_block(file, &version, number, 0, bytes, BLOCK, false);
	} else if (what < 14) {
		/* An own store. The version comes first: a kill in between must not look like the old one. */
		cl_disk_drop_blocks(file, number, 1);
		length = 1 + (unsigned)rand_r(state) % BLOCK;
		atomic_store(&server->files[i].version, next.version);
		atomic_store(&server->files[i].contents[number],
			     atomic_fetch_add(&server->seeds, 1) + 1);
		atomic_store(&server->files[i].length[number], length);
		cl_disk_move_version(file, &version, &next);
	} else {
		/* Somebody else's. */
		atomic_store(&server->files[i].version, next.version);
		atomic_store(&server->files[i].contents[number],
			     atomic_fetch_add(&server->seeds, 1) + 1);
		cl_disk_set_version(file, &next);
	}
}

static void *use_files(void *arg)
{
	unsigned first = *(unsigned *)arg, state = first * 7919 + (unsigned)getpid();
	struct cl_disk_file *files[FILES];

	for (unsigned i = first; i < FILES; i += 2) {
		struct cl_disk_version version = {atomic_load(&server->files[i].version), 1};

		files[i] = cl_disk_get_file(disk, "example.org", 5, i, 1);
		cl_disk_set_version(files[i], &version);
		/* Files of the second thread. */
		cl_disk_keep_whole(files[i], first ? BLOCKS * BLOCK : 0);
	}
	while (1) {
		unsigned i = first + 2 * ((unsigned)rand_r(&state) % (FILES / 2));

		use_file(files[i], i, &state);
	}
	return NULL;
}

/* The program that is killed. */
static void run_victim(int ready)
{
	static unsigned firsts[2] = {0, 1};
	char message[300];
	pthread_t thread;

	if (open_disk(message, sizeof(message)))
		_exit(1);
	if (write(ready, "x", 1) != 1 || pthread_create(&thread, NULL, use_files, &firsts[1]))
		_exit(1);
	use_files(&firsts[0]);
}

static void check_offers(void)
{
	static unsigned char bytes[BLOCK], got[BLOCK];
	char message[300];

	if (open_disk(message, sizeof(message)))
		ck_abort_msg("%s", message);
	for (unsigned i = 0; i < FILES; i++) {
		struct cl_disk_file *file = cl_disk_get_file(disk, "example.org", 5, i, 1);
		struct cl_disk_version version = {atomic_load(&server->files[i].version), 1};

		for (unsigned number = 0; number < BLOCKS; number++) {
			uint32_t length = atomic_load(&server->files[i].length[number]);
			int64_t read =
				cl_disk_read_block(file, &version, number, 0, got, BLOCK, false);

			ck_assert(read > 0 || read == -ENOENT);
			if (read <= 0)
				continue;
			fill(bytes, atomic_load(&server->files[i].contents[number]), length);
			ck_assert_int_eq(read, length);
			ck_assert_int_eq(memcmp(bytes, got, length), 0);
			atomic_fetch_add(&server->offered, 1);
		}
		cl_disk_put_file(file);
	}
	cl_disk_close(disk);
}

static void kill_one(unsigned *state)
{
	struct timespec pause = {0, 1000 * (long)((unsigned)rand_r(state) % 4000)};
	int pipes[2], status;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid)
		run_victim(pipes[1]);
	close(pipes[1]);
	ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	nanosleep(&pause, NULL);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

static void remove_folder(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(kill_at_random)
{
	unsigned state = first_seed;

	strcpy(folder, "/tmp/test-kills.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	server = mmap(NULL, sizeof(*server), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	for (unsigned i = 0; i < FILES; i++)
		for (unsigned number = 0; number < BLOCKS; number++)
			atomic_store(&server->files[i].length[number], BLOCK);
	for (unsigned i = 0; i < kills; i++) {
		kill_one(&state);
		check_offers();
	}
	printf("%u kills: %llu blocks kept, %llu offered and right afterwards\n", kills,
	       (unsigned long long)server->kept, (unsigned long long)server->offered);
	ck_assert_uint_gt(server->offered, kills);
	remove_folder();
}
END_TEST

int main(int argc, char **argv)
{
	const TTest *const tests[] = {kill_at_random};

	if (argc > 1)
		kills = (unsigned)atoi(argv[1]);
	if (argc > 2)
		first_seed = (unsigned)atoi(argv[2]);
	return test_main("kills of the disk cache", 100 + kills, tests, 1);
}
