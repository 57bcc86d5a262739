/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories of the client's cache, and its bounds of memory. */
#include "tests/client/cache/fixture.h"

/* -- directories --------------------------------------------------------------------------- */

static void load(struct cl_object *dir, uint64_t version, int want, struct cl_names **once)
{
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);
	struct cl_reply reply = make_reply();
	struct afs_dir builder;
	const char *fault;
	uint8_t *image;
	size_t length;

	ck_assert_int_eq(afs_dir_begin(&builder, 1, 1, 1, 1), 0);
	ck_assert_int_eq(afs_dir_add(&builder, "file", 4, 4, 9), 0);
	image = afs_dir_take(&builder, &length);
	afs_status_set_length(&status, length);
	ck_assert_int_eq(cl_dir_load(dir, &reply, &status, image, length, once, &fault), want);
	ck_assert_int_eq(cl_dir_load(dir, &reply, &status, image, length - 1, once, &fault), -EIO);
	free(image);
}

static int find(struct cl_object *dir, const char *name, struct rxafs_fid *fid)
{
	return cl_dir_find(dir, name, strlen(name), NOW, fid);
}

START_TEST(names_are_found)
{
	struct cl_object *dir = get(dir_fid), *child;
	struct cl_status status;
	struct rxafs_fid fid;

	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	cl_object_put(dir);
	dir = known_dir(5);
	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	load(dir, 5, 0, NULL);
	ck_assert(cl_dir_loaded(dir, NOW));
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert(rxafs_fid_same(&fid, &file_fid));
	ck_assert_int_eq(find(dir, "none", &fid), -ENOENT);
	ck_assert_int_eq(cl_object_status(child = get(file_fid), NOW, &status), -ESTALE);
	cl_object_put(child);
	cl_object_put(known_file());
	/* Others moved it, which breaks the promise of the directories alone: its rights come from here now. */
	child = get(file_fid);
	cl_object_moved(child, 77, 77);
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert_uint_eq(status_of(child).parent_vnode, dir_fid.vnode);
	cl_object_put(child);
	ck_assert_int_eq(cl_object_status(child = get(file_fid), NOW, &status), 0);
	ck_assert_uint_eq(status.version, 5);
	ck_assert_int_eq(find(child, "x", &fid), -ENOTDIR);
	cl_object_put(child);
	cl_object_doubt(dir);
	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	cl_object_put(dir);
}
END_TEST

START_TEST(other_versions_are_not_kept)
{
	struct cl_object *dir = known_dir(6);
	struct cl_names *once = NULL;
	uint32_t vnode, unique;

	load(dir, 5, -ESTALE, NULL);
	load(dir, 5, -ESTALE, &once);
	ck_assert_ptr_nonnull(once);
	ck_assert(cl_names_find(once, "file", 4, &vnode, &unique));
	cl_names_free(once);
	load(dir, 6, 0, NULL);
	cl_object_put(known_dir(7));
	ck_assert(!cl_dir_loaded(dir, NOW));
	cl_object_put(dir);
}
END_TEST

static const struct cl_edit add_new = {.added = "new", .added_length = 3, .vnode = 8, .unique = 8},
			    remove_file = {.removed = "file", .removed_length = 4};

static enum cl_verdict edit_dir(struct cl_object *dir, struct cl_reply reply, uint64_t version,
				const struct cl_edit *edit)
{
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);

	afs_status_set_length(&status, AFS_DIR_PAGE);
	return end_change(dir, reply, &status, 1, edit);
}

/* K-090. */
START_TEST(own_edits_keep_names)
{
	struct cl_object *dir = known_dir(5);
	struct rxafs_fid fid;

	load(dir, 5, 0, NULL);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, make_reply(), 6, &add_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "new", &fid), 0);
	ck_assert_uint_eq(fid.vnode, 8);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, make_reply(), 7, &remove_file), CL_KEEP);
	ck_assert_int_eq(find(dir, "file", &fid), -ENOENT);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, make_reply(), 9, &remove_file), CL_DROP_CLEAN);
	ck_assert_int_eq(find(dir, "new", &fid), -ESTALE);
	cl_object_put(dir);
}
END_TEST

/* K-050: the name is made and removed again; the replies come the other way round. */
START_TEST(edits_in_the_order_of_versions)
{
	static const struct cl_edit remove_new = {.removed = "new", .removed_length = 3};
	struct cl_object *dir = known_dir(5);
	struct cl_reply first = make_reply(), second = make_reply();
	struct rxafs_fid fid;

	load(dir, 5, 0, NULL);
	cl_change_begin(dir);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, second, 7, &remove_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	ck_assert_int_eq(edit_dir(dir, first, 6, &add_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert_int_eq(find(dir, "new", &fid), -ENOENT);
	cl_object_put(dir);
}
END_TEST

/* An image that has the change already is not edited again. */
START_TEST(loads_between_edits)
{
	struct cl_object *dir = known_dir(5);
	struct cl_reply change = make_reply(), reply;
	AFSFetchStatus six = make_status(RXAFS_DIRECTORY, 6);
	struct rxafs_fid fid;

	load(dir, 5, 0, NULL);
	cl_change_begin(dir);
	reply = make_reply();
	afs_status_set_length(&six, AFS_DIR_PAGE);
	apply(dir, &reply, &six);
	load(dir, 6, 0, NULL);
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert_int_eq(edit_dir(dir, change, 6, &add_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "new", &fid), -ENOENT);
	cl_object_put(dir);
}
END_TEST

static void lose_answer(struct cl_object *dir, const struct cl_edit *edit)
{
	struct cl_effect effect = {.outcome = CL_UNKNOWN, .now = NOW, .edit = edit};

	cl_change_begin(dir);
	cl_change_end(dir, &effect, NULL);
	ck_assert(!is_valid(dir));
}

static bool is_promised(struct cl_object *dir, uint64_t version, uint64_t sent)
{
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);
	struct cl_reply reply = make_reply();

	reply.sent = sent;
	afs_status_set_length(&status, AFS_DIR_PAGE);
	apply(dir, &reply, &status);
	return is_valid(dir);
}

/* A change of a name without an answer: the names tell that it was done, or that nothing is left to do. */
START_TEST(names_end_doubts)
{
	static const struct cl_edit add_file = {.added = "file", .added_length = 4},
				    remove_old = {.removed = "old", .removed_length = 3};
	struct cl_object *dir = known_dir(5);
	struct rxafs_fid fid;

	lose_answer(dir, &add_file);
	lose_answer(dir, &remove_old);
	ck_assert(!is_promised(dir, 6, NOW));
	load(dir, 6, 0, NULL);
	ck_assert(is_promised(dir, 6, NOW));
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert_int_eq(find(dir, "old", &fid), -ENOENT);
	/* Others change something, perhaps this name. */
	ck_assert(!is_promised(dir, 7, NOW));
	load(dir, 7, 0, NULL);
	ck_assert(is_promised(dir, 7, NOW));
	cl_object_put(dir);
}
END_TEST

/* What was not done may still come, and what is undone may come again. */
START_TEST(doubts_last_while_names_can_change)
{
	struct cl_object *dir = known_dir(5);

	load(dir, 5, 0, NULL);
	lose_answer(dir, &remove_file);
	ck_assert(!is_promised(dir, 5, NOW));
	cl_change_begin(dir);
	edit_dir(dir, make_reply(), 6, &remove_file);
	ck_assert(is_promised(dir, 6, NOW));
	cl_change_begin(dir);
	edit_dir(dir, make_reply(), 7, &add_new);
	ck_assert(is_valid(dir));
	cl_change_begin(dir);
	edit_dir(dir, make_reply(), 8,
		 &(struct cl_edit){.added = "file", .added_length = 4, .vnode = 10, .unique = 10});
	ck_assert(!is_valid(dir));
	ck_assert(!is_promised(dir, 8, NOW));
	ck_assert(is_promised(dir, 8, NOW + 120 * SECOND));
	cl_object_put(dir);
}
END_TEST

/* However many there are, each counts; and one that is no change of a name ends by time alone. */
START_TEST(many_doubts_of_one_directory)
{
	static const struct cl_edit add_file = {.added = "file", .added_length = 4};
	struct cl_object *dir = known_dir(5);

	load(dir, 5, 0, NULL);
	for (unsigned i = 0; i < 16; i++)
		lose_answer(dir, &add_file);
	ck_assert(is_promised(dir, 5, NOW));
	lose_answer(dir, &add_file);
	ck_assert(!is_promised(dir, 5, NOW + 119 * SECOND));
	ck_assert(is_promised(dir, 5, NOW + 120 * SECOND));
	lose_answer(dir, NULL);
	ck_assert(!is_promised(dir, 5, NOW + 119 * SECOND));
	cl_object_put(dir);
}
END_TEST

START_TEST(new_directories_are_known)
{
	struct cl_object *dir = known_dir(5), *made = get((struct rxafs_fid){1, 100, 3, 3});
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, 0);
	struct cl_reply reply = make_reply();
	struct rxafs_fid fid;

	afs_status_set_length(&status, AFS_DIR_PAGE);
	apply(made, &reply, &status);
	ck_assert_int_eq(cl_dir_load_new(made, dir), 0);
	ck_assert_int_eq(find(made, "..", &fid), 0);
	ck_assert(rxafs_fid_same(&fid, &dir_fid));
	ck_assert_int_eq(find(made, "x", &fid), -ENOENT);
	cl_object_moved(made, 5, 5);
	ck_assert_int_eq(find(made, "..", &fid), 0);
	ck_assert_uint_eq(fid.vnode, 5);
	cl_object_put(made);
	cl_object_put(dir);
}
END_TEST

START_TEST(neighbours_are_those_to_ask)
{
	struct cl_object *dir = known_dir(5), *some;
	AFSFetchStatus status = make_status(RXAFS_FILE, 1);
	struct cl_reply reply = make_reply();
	struct cl_entry entries[7];
	struct rxafs_fid fids[50];
	uint64_t offset = 0;
	unsigned count, all = 0;
	char name[16];

	load(dir, 5, 0, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		struct cl_edit edit = {.added = name, .vnode = 100 + 2 * i, .unique = i};

		edit.added_length = (size_t)snprintf(name, sizeof(name), "n%u", i);
		cl_change_begin(dir);
		edit_dir(dir, make_reply(), 6 + i, &edit);
	}
	some = get((struct rxafs_fid){1, 100, 102, 1});
	apply(some, &reply, &status);
	count = cl_dir_neighbours(dir, "n0", 2, NOW, fids, 50);
	ck_assert_uint_eq(count, 50);
	ck_assert_uint_eq(fids[0].vnode, 100);
	ck_assert_uint_eq(fids[1].vnode, 104); /* n1 is known */
	ck_assert_uint_eq(cl_dir_neighbours(dir, "n99", 3, NOW, fids, 50), 1);
	ck_assert_uint_eq(cl_dir_neighbours(dir, "none", 4, NOW, fids, 50), 0);
	do {
		ck_assert_int_eq(cl_dir_next(dir, offset, entries, 7, &count), 0);
		all += count;
		offset = count ? entries[count - 1].next : 0;
	} while (count);
	ck_assert_uint_eq(all, 103);
	cl_object_put(some);
	cl_object_put(dir);
}
END_TEST

/* -- memory -------------------------------------------------------------------------------- */

static unsigned dropped;

static void count_drop(void *user)
{
	dropped += user != NULL;
}

START_TEST(objects_are_bounded)
{
	struct cl_cache_limits limits = {.objects = 1000, .drop = count_drop, .key = {5, 6}};
	struct cl_object *held[100], *batch[64];
	AFSFetchStatus status = make_status(RXAFS_FILE, 1);
	struct rxafs_fid fids[50], volume = {1, 100, 0, 0};
	struct cl_cache_counts counts;
	struct cl_reply reply;
	uint64_t cursor = 0;
	size_t count, given = 0;
	uint32_t server;

	teardown();
	dropped = 0;
	cache = cl_cache_create(&limits);
	reply = make_reply();
	for (uint32_t i = 0; i < 5000; i++) {
		struct cl_object *object = get((struct rxafs_fid){1, 100, 2 * i + 2, i});

		ck_assert_ptr_eq(cl_object_set_user(object, &limits), &limits);
		apply(object, &reply, &status);
		if (i < 100)
			held[i] = object;
		else
			cl_object_put(object);
	}
	cl_cache_count(cache, &counts);
	ck_assert_uint_le(counts.objects, 1100);
	ck_assert_uint_eq(counts.evicted, 5000 - counts.objects);
	ck_assert_uint_eq(dropped, counts.evicted);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert(is_valid(held[i]));
		cl_object_put(held[i]);
	}
	while ((count = cl_cache_walk(cache, &cursor, &volume, batch, 64)) > 0) {
		given += count;
		while (count)
			cl_object_put(batch[--count]);
	}
	cl_cache_count(cache, &counts);
	ck_assert_uint_eq(given, counts.objects);
	given = 0;
	while ((count = cl_cache_give_up(cache, &server, fids, 50)) > 0) {
		ck_assert_uint_eq(server, SERVER);
		cl_cache_gave_up(cache, fids, count, true, NOW);
		given += count;
	}
	ck_assert_uint_gt(given, 900);
}
END_TEST

/* While a promise is being given back a new one for the same FID does not count: the server may take it back at once. */
START_TEST(promises_are_given_back)
{
	struct cl_cache_limits limits = {.objects = 1, .key = {5, 6}};
	AFSFetchStatus status = make_status(RXAFS_FILE, 1);
	struct cl_object *object;
	struct rxafs_fid fids[50];
	struct cl_reply reply;
	uint32_t server;
	size_t count;

	teardown();
	cache = cl_cache_create(&limits);
	reply = make_reply();
	for (uint32_t i = 0; i < 1000; i++) {
		object = get((struct rxafs_fid){1, 100, 2 * i + 2, i});
		apply(object, &reply, &status);
		cl_object_put(object);
	}
	count = cl_cache_give_up(cache, &server, fids, 50);
	ck_assert_uint_gt(count, 0);
	object = get(fids[0]);
	reply = make_reply();
	apply(object, &reply, &status);
	ck_assert(!is_valid(object));
	cl_cache_gave_up(cache, fids, count, true, NOW);
	apply(object, &reply, &status);
	ck_assert(!is_valid(object));
	reply = make_reply();
	apply(object, &reply, &status);
	ck_assert(is_valid(object));
	cl_object_put(object);
}
END_TEST

START_TEST(names_are_bounded)
{
	struct cl_cache_limits limits = {.name_bytes = 100000, .key = {5, 6}};
	struct cl_object *dirs[200], *parent;
	struct cl_cache_counts counts;
	unsigned loaded = 0;

	teardown();
	cache = cl_cache_create(&limits);
	parent = known_dir(1);
	for (uint32_t i = 0; i < 200; i++) {
		AFSFetchStatus status = make_status(RXAFS_DIRECTORY, 0);
		struct cl_reply reply = make_reply();

		dirs[i] = get((struct rxafs_fid){1, 100, 2 * i + 3, i});
		apply(dirs[i], &reply, &status);
		ck_assert_int_eq(cl_dir_load_new(dirs[i], parent), 0);
		ck_assert(cl_dir_loaded(dirs[i], NOW));
	}
	cl_cache_count(cache, &counts);
	ck_assert_uint_le(counts.name_bytes, limits.name_bytes);
	for (unsigned i = 0; i < 200; i++) {
		loaded += cl_dir_loaded(dirs[i], NOW);
		cl_object_put(dirs[i]);
	}
	ck_assert_uint_ge(loaded, 30);
	ck_assert_uint_le(loaded, 50);
	cl_object_put(parent);
}
END_TEST

START_TEST(claims_exclude)
{
	struct cl_object *file = get(file_fid);

	ck_assert(cl_object_claim(file, CL_CLAIM_STATUS));
	ck_assert(!cl_object_claim(file, CL_CLAIM_STATUS));
	ck_assert(cl_object_claim(file, CL_CLAIM_NAMES));
	ck_assert(!cl_object_claim(file, CL_CLAIM_STATUS | CL_CLAIM_PREFETCH));
	cl_object_unclaim(file, CL_CLAIM_STATUS);
	ck_assert(cl_object_claim(file, CL_CLAIM_STATUS | CL_CLAIM_PREFETCH));
	cl_object_put(file);
}
END_TEST

CACHE_TEST_MAIN("client directories", names_are_found, other_versions_are_not_kept,
		own_edits_keep_names, edits_in_the_order_of_versions, loads_between_edits,
		names_end_doubts, doubts_last_while_names_can_change,
		many_doubts_of_one_directory, new_directories_are_known, neighbours_are_those_to_ask, objects_are_bounded,
		promises_are_given_back, names_are_bounded, claims_exclude)
