/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the client's cache costs: make src/tests/client/cache/cost. Time of a look-up of a name with the status of its object, of a status
 * alone, and of a break; memory of a cached object with its name. usage: cost [OBJECTS]
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "client/cache/listing.h"
#include "common/clock.h"

#define NAMES_EACH 20u /* of a directory */
#define ROUNDS	   2000000u
#define NOW	   (1000ull * NS_PER_S)
#define IDENTITY   7u

static struct cl_cache *cache;
static struct cl_object **directories;
static unsigned directory_count;

static void check(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "cost: %s\n", what);
	exit(1);
}

static struct cl_reply make_reply(void)
{
	return (struct cl_reply){.note = cl_cache_note(cache),
				 .sent = NOW,
				 .server = 1,
				 .identity = IDENTITY,
				 .sync = 5,
				 .lifetime = 14400};
}

static struct cl_object *make_object(uint32_t vnode, uint32_t type, uint64_t length,
				     AFSFetchStatus *status)
{
	struct rxafs_fid fid = {1, 100, vnode, vnode};
	struct cl_reply reply = make_reply();
	struct cl_object *object = cl_cache_get(cache, &fid);

	check(object != NULL, "no memory");
	*status = (AFSFetchStatus){.InterfaceVersion = 1,
				   .FileType = type,
				   .LinkCount = 1,
				   .UnixModeBits = 0644,
				   .CallerAccess = 127,
				   .AnonymousAccess = 9};
	afs_status_set_length(status, length);
	cl_cache_apply(object, &reply, status, NULL);
	return object;
}

static size_t make_name(unsigned number, char name[32])
{
	return (size_t)snprintf(name, 32, "a-file-%u.c", number);
}

/* A directory whose files are cached, too. */
static void make_directory(unsigned number)
{
	uint32_t first = 2 * NAMES_EACH * number + 2;
	struct cl_reply reply = make_reply();
	struct cl_object *directory;
	AFSFetchStatus status;
	struct afs_dir builder;
	const char *fault;
	uint8_t *image;
	size_t length;
	char name[32];

	check(afs_dir_begin(&builder, 1, 1, 1, 1) == 0, "no memory");
	for (unsigned i = 0; i < NAMES_EACH; i++) {
		uint32_t vnode = first + 2 * i;

		check(afs_dir_add(&builder, name, make_name(i, name), vnode, vnode) == 0,
		      "no memory");
		cl_object_put(make_object(vnode, RXAFS_FILE, 100, &status));
	}
	image = afs_dir_take(&builder, &length);
	directory = make_object(2 * number + 1, RXAFS_DIRECTORY, length, &status);
	check(cl_dir_load(directory, &reply, &status, image, length, NULL, &fault) == 0, "load");
	free(image);
	directories[number] = directory;
}

static char names[NAMES_EACH][32];
static size_t lengths[NAMES_EACH];

static void walk_name(unsigned directory, unsigned number)
{
	struct cl_status status;
	struct rxafs_fid fid;
	struct cl_object *object;

	check(cl_dir_find(directories[directory], names[number], lengths[number], NOW, &fid) == 0,
	      "a name is not there");
	object = cl_cache_get(cache, &fid);
	check(object && cl_object_status(object, NOW, &status) == 0, "no status");
	cl_object_put(object);
}

/* As a program does that goes through a tree. */
static void *walk_in_order(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg * 1000;

	for (unsigned i = 0; i < ROUNDS; i++)
		walk_name((first + i / NAMES_EACH) % directory_count, i % NAMES_EACH);
	return NULL;
}

/* The worst case: nothing is in the processor's caches. */
static void *walk_at_random(void *arg)
{
	unsigned random = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		walk_name((random >> 8) % directory_count, i % NAMES_EACH);
	}
	return NULL;
}

static void *look_at_statuses(void *arg)
{
	unsigned random = (unsigned)(uintptr_t)arg;
	struct cl_status status;
	uint32_t rights;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct cl_object *directory;

		random = random * 1664525 + 1013904223;
		directory = directories[(random >> 8) % directory_count];
		check(cl_object_status(directory, NOW, &status) == 0, "a status is not there");
		check(cl_object_rights(directory, IDENTITY, NOW, &rights) == 0, "no rights");
	}
	return NULL;
}

static void run_threads(const char *what, void *(*run)(void *), unsigned threads)
{
	uint64_t begin = monotonic_ns();
	int64_t cpu = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t ids[8];
	double wall, used;

	for (unsigned i = 0; i < threads; i++)
		check(pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)(i + 1)) == 0,
		      "thread");
	for (unsigned i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	wall = (double)(monotonic_ns() - begin);
	used = (double)(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	printf("%s, %u threads: %.0f ns of CPU time, %.1f million a second\n", what, threads,
	       used / ROUNDS / threads, 1e3 * ROUNDS * threads / wall);
}

static size_t used_memory(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

int main(int argc, char **argv)
{
	unsigned objects = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
	struct cl_cache_counts counts;
	size_t before, empty;

	directory_count = objects / (NAMES_EACH + 1) + 1;
	directories = calloc(directory_count, sizeof(struct cl_object *));
	check(directories != NULL, "no memory");
	before = used_memory();
	cache = cl_cache_create(&(struct cl_cache_limits){.objects = 2 * objects});
	check(cache != NULL, "no memory");
	empty = used_memory();
	for (unsigned i = 0; i < NAMES_EACH; i++)
		lengths[i] = make_name(i, names[i]);
	for (unsigned i = 0; i < directory_count; i++)
		make_directory(i);
	cl_cache_count(cache, &counts);
	printf("an empty cache: %zu bytes\n", empty - before);
	printf("%llu objects with names, %u in a directory: %.0f bytes each, %.0f of them for names\n",
	       (unsigned long long)counts.objects, NAMES_EACH,
	       (double)(used_memory() - empty) / (double)counts.objects,
	       (double)counts.name_bytes / (double)counts.objects);
	for (unsigned threads = 1; threads <= 2; threads++) {
		run_threads("name and status, in order", walk_in_order, threads);
		run_threads("name and status, at random", walk_at_random, threads);
		run_threads("status and rights", look_at_statuses, threads);
	}
	for (unsigned i = 0; i < directory_count; i++)
		cl_object_put(directories[i]);
	cl_cache_destroy(cache);
	free(directories);
	return 0;
}
