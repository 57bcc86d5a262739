/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several threads at one cache of the client: look-ups, replies, own changes, breaks, eviction. For sanitizers, and for what must hold at
 * any time: what is valid has a version that some reply had, and a counter that only rises never falls.
 */
#include "tests/tools/testing.h"

#include <pthread.h>
#include <stdatomic.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "client/cache/changes.h"
#include "client/cache/listing.h"

#define THREADS 4u
#define STEPS	40000u
#define VNODES	200u /* the odd ones are directories */
#define NOW	1000000000000ull
#define VOLUME	100u

static struct cl_cache *cache;
static atomic_uint dropped, set;
/* The server: versions rise by one with each change. */
static atomic_uint_fast64_t versions[VNODES];

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

static struct rxafs_fid make_fid(unsigned vnode)
{
	return (struct rxafs_fid){1, VOLUME + vnode % 3, vnode + 1, 1};
}

static struct cl_reply make_reply(uint64_t note, uint64_t random)
{
	return (struct cl_reply){.note = note,
				 .sent = NOW + random % 1000,
				 .server = (uint32_t)(random % 3),
				 .identity = (uint32_t)(random % 70),
				 .sync = 1,
				 .lifetime = (uint32_t)(random % 5 * 1000)};
}

static AFSFetchStatus make_status(unsigned vnode, uint64_t version)
{
	AFSFetchStatus status = {.InterfaceVersion = 1,
				 .FileType = vnode % 2 ? RXAFS_FILE : RXAFS_DIRECTORY,
				 .UnixModeBits = (uint32_t)version & 0777,
				 .AnonymousAccess = 9,
				 .ServerModTime = (uint32_t)version};

	afs_status_set_version(&status, version);
	afs_status_set_length(&status, AFS_DIR_PAGE);
	return status;
}

static void load_names(struct cl_object *object, const struct cl_reply *reply,
		       const AFSFetchStatus *status, uint64_t version)
{
	struct afs_dir dir;
	const char *fault;
	uint8_t *image;
	size_t length;

	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	ck_assert_int_eq(afs_dir_add(&dir, "child", 5, (uint32_t)(version % VNODES) + 1, 1), 0);
	image = afs_dir_take(&dir, &length);
	ck_assert_int_ne(cl_dir_load(object, reply, status, image, length, NULL, &fault), -EIO);
	free(image);
}

static void ask(struct cl_object *object, unsigned vnode, uint64_t random)
{
	uint64_t note = cl_cache_note(cache);
	uint64_t version = atomic_load(&versions[vnode]);
	struct cl_reply reply = make_reply(note, random);
	AFSFetchStatus status = make_status(vnode, version);
	struct cl_status known;

	cl_cache_apply(object, &reply, &status, &known);
	ck_assert_uint_le(known.version, atomic_load(&versions[vnode]));
	if (status.FileType == RXAFS_DIRECTORY)
		load_names(object, &reply, &status, version);
}

static void change(struct cl_object *object, unsigned vnode, uint64_t random)
{
	struct cl_edit edit = {.added = "new", .added_length = 3, .vnode = 1, .unique = 1};
	uint64_t note = cl_cache_note(cache);
	struct cl_reply reply = make_reply(note, random);
	struct cl_effect effect = {.outcome = (enum cl_outcome)(random % 3),
				   .reply = &reply,
				   .raised = 1,
				   .now = NOW - 1000000000000ull};
	AFSFetchStatus status;

	cl_change_begin(object);
	status = make_status(vnode, atomic_fetch_add(&versions[vnode], 1) + 1);
	effect.status = &status;
	if (status.FileType == RXAFS_DIRECTORY)
		effect.edit = &edit;
	cl_change_end(object, &effect, NULL);
}

static void look(struct cl_object *object, unsigned vnode)
{
	struct cl_entry entries[8];
	struct rxafs_fid fids[8];
	struct cl_status status;
	uint32_t rights;
	unsigned count;
	int result = cl_object_status(object, NOW, &status);

	ck_assert(result || status.mode == (status.version & 0777));
	ck_assert_uint_le(status.version, atomic_load(&versions[vnode]));
	ck_assert_uint_le(status.clean_from, status.version);
	cl_object_rights(object, vnode % 70, NOW, &rights);
	cl_dir_find(object, "child", 5, NOW, &fids[0]);
	cl_dir_next(object, 0, entries, 8, &count);
	cl_dir_neighbours(object, "child", 5, NOW, fids, 8);
}

static void end_promises(unsigned vnode, uint64_t random)
{
	struct rxafs_fid fid = make_fid(vnode), fids[8];
	struct cl_object *objects[64];
	uint64_t cursor = 0;
	uint32_t server;
	size_t count;
	bool whole;

	switch (random % 16) {
	case 0:
		cl_cache_reset(cache, (uint32_t)(random >> 8) % 3);
		break;
	case 1:
		fid.vnode = 0;
		cl_cache_break(cache, &fid, &whole);
		count = cl_cache_walk(cache, &cursor, &fid, objects, 64);
		while (count)
			cl_object_put(objects[--count]);
		break;
	case 2:
		count = cl_cache_give_up(cache, &server, fids, 8);
		cl_cache_gave_up(cache, fids, count, true, NOW);
		break;
	default:
		cl_object_put(cl_cache_break(cache, &fid, &whole));
	}
}

static void *run_thread(void *arg)
{
	uint64_t state = 88172645463325252ull + (uintptr_t)arg;

	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t random = next_random(&state);
		unsigned vnode = (unsigned)(random >> 16) % VNODES;
		struct rxafs_fid fid = make_fid(vnode);
		struct cl_object *object = cl_cache_get(cache, &fid);

		ck_assert_ptr_nonnull(object);
		if (!cl_object_user(object) && cl_object_set_user(object, &cache) == &cache)
			atomic_fetch_add(&set, cl_object_claim(object, CL_CLAIM_OTHER));
		if (random % 8 == 0)
			end_promises(vnode, random >> 4);
		else if (random % 8 == 1)
			change(object, vnode, random >> 4);
		else if (random % 8 < 4)
			ask(object, vnode, random >> 4);
		else
			look(object, vnode);
		cl_object_put(object);
	}
	return NULL;
}

static void count_drop(void *user)
{
	ck_assert_ptr_eq(user, &cache);
	atomic_fetch_add(&dropped, 1);
}

START_TEST(threads)
{
	struct cl_cache_limits limits = {
		.objects = 256, .name_bytes = 60000, .drop = count_drop, .key = {1, 2}};
	pthread_t ids[THREADS];
	struct cl_cache_counts counts;

	cache = cl_cache_create(&limits);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(cl_cache_set_readonly(cache, 1, VOLUME, true), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&ids[i], NULL, run_thread, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	cl_cache_count(cache, &counts);
	ck_assert_uint_le(counts.name_bytes, limits.name_bytes);
	ck_assert_uint_gt(counts.hits, 0);
	cl_cache_destroy(cache);
	ck_assert_uint_eq(atomic_load(&dropped), atomic_load(&set));
}
END_TEST

TEST_MAIN_WITHIN(120, "client cache threads", threads)
