/* SPDX-License-Identifier: BSD-2-Clause */
/* Directory contents of the client: images, each kind of damage, edits beside a model, stable offsets. */
#include "tests/tools/testing.h"

#include "afs/dir.h"
#include "afs/dirformat.h"
#include "client/cache/names.h"

#define MANY 60000u

static const uint64_t key[2] = {1, 2};

/* An image with "." and ".." and `count` names n0, n1, … with vnodes 2 · n + 2. */
static uint8_t *make_image(unsigned count, size_t *length)
{
	struct afs_dir dir;
	char name[32];

	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 3, 7), 0);
	for (unsigned i = 0; i < count; i++) {
		int n = snprintf(name, sizeof(name), "n%u", i);

		ck_assert_int_eq(afs_dir_add(&dir, name, (size_t)n, 2 * i + 2, i + 10), 0);
	}
	return afs_dir_take(&dir, length);
}

static struct cl_names *parse_image(const uint8_t *image, size_t length)
{
	const char *fault;
	struct cl_names *names = cl_names_parse(image, length, key, &fault);

	ck_assert_msg(names != NULL, "%s", fault ? fault : "no memory");
	return names;
}

static void expect(const struct cl_names *names, const char *name, uint32_t vnode, uint32_t unique)
{
	uint32_t v, u;

	ck_assert_msg(cl_names_find(names, name, strlen(name), &v, &u), "%s is missing", name);
	ck_assert_uint_eq(v, vnode);
	ck_assert_uint_eq(u, unique);
}

static void expect_absent(const struct cl_names *names, const char *name)
{
	uint32_t v, u;

	ck_assert_msg(!cl_names_find(names, name, strlen(name), &v, &u), "%s is present", name);
}

START_TEST(reads_images)
{
	static const unsigned counts[] = {0, 1, 49, 50, 51, 1000, MANY};

	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct cl_entry entry = {.next = 0};
		struct cl_names *names;
		unsigned seen = 0;
		uint8_t *image;
		size_t length;
		char name[32];

		image = make_image(counts[c], &length);
		names = parse_image(image, length);
		free(image);
		ck_assert_uint_eq(cl_names_count(names), counts[c] + 2);
		expect(names, ".", 1, 1);
		expect(names, "..", 3, 7);
		expect_absent(names, "n");
		expect_absent(names, "");
		for (unsigned i = 0; i < counts[c]; i++) {
			snprintf(name, sizeof(name), "n%u", i);
			expect(names, name, 2 * i + 2, i + 10);
		}
		while (cl_names_next(names, entry.next, &entry)) {
			ck_assert_uint_eq(entry.length, strlen(entry.name));
			expect(names, entry.name, entry.vnode, entry.unique);
			seen++;
		}
		ck_assert_uint_eq(seen, counts[c] + 2);
		cl_names_free(names);
	}
}
END_TEST

START_TEST(reads_long_names)
{
	char name[CL_NAME_MAX + 2];
	struct cl_names *names = cl_names_new(5, 6, 7, 8, key);

	ck_assert_ptr_nonnull(names);
	for (unsigned n = 1; n <= CL_NAME_MAX; n++) {
		memset(name, 'a' + (int)n % 26, n);
		name[n] = 0;
		ck_assert(cl_names_add(names, name, n, 2 * n, n));
		expect(names, name, 2 * n, n);
	}
	memset(name, 'x', CL_NAME_MAX + 1);
	ck_assert(!cl_names_add(names, name, CL_NAME_MAX + 1, 2, 2));
	ck_assert(!cl_names_add(names, "a/b", 3, 2, 2));
	ck_assert(!cl_names_add(names, "a\0b", 3, 2, 2));
	ck_assert(!cl_names_add(names, "", 0, 2, 2));
	ck_assert(!cl_names_remove(names, "none", 4));
	cl_names_free(names);
}
END_TEST

/* -- damage -------------------------------------------------------------------------------- */

/* The image that is damaged: slots 13 and 14 are the dots, n0 is in 15, n1 in 16, … ; 100 names need two pages. */
#define NAMES	     100u
#define SLOT(number) ((number)*AFS_DIR_SLOT)
#define BYTES	     4096u

struct damage {
	const char *fault;
	unsigned offset;
	int byte; /* -1: add one to the byte that is there */
};

static unsigned bucket_at(const char *name)
{
	return HASH_TABLE + 2 * afs_dir_hash(name, strlen(name));
}

static void expect_fault(const uint8_t *image, size_t length, const char *want)
{
	const char *fault = NULL;
	struct cl_names *names = cl_names_parse(image, length, key, &fault);

	ck_assert_msg(!names, "damage passes: %s", want);
	ck_assert_msg(fault && strstr(fault, want), "%s instead of %s", fault, want);
}

START_TEST(finds_damage)
{
	const struct damage damages[] = {
		{"number of pages", 1, 3},
		{"number of pages", 1, 1},
		{"number of pages", 0, 1},
		{"tag", 2, 5},
		{"tag", AFS_DIR_PAGE + 3, 0},
		{"header in free", USED_MAP, 0xfe},
		{"header in free", USED_MAP + 1, 0xf7},
		{"header in free", AFS_DIR_PAGE + USED_MAP, 0xfe},
		{"without an entry", SLOT(15), 0},
		{"without an entry", SLOT(15), 2},
		{"impossible name", SLOT(15) + NAME, 0},
		{"impossible name", SLOT(15) + NAME, '/'},
		{"without a vnode", SLOT(15) + VNODE + 3, 0},
		{"wrong chain", SLOT(15) + NAME, 'm'},
		{"leads to no entry", bucket_at("n0") + 1, 3},
		{"leads to no entry", bucket_at("n0"), 0xff},
		{"leads to no entry", SLOT(15) + NEXT, 0x40},
		{"no chain", bucket_at(".") + 1, 0},
	};
	uint8_t *image, copy[BYTES];
	size_t length;

	image = make_image(NAMES, &length);
	ck_assert_uint_eq(length, BYTES);
	for (unsigned i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		memcpy(copy, image, BYTES);
		copy[damages[i].offset] = (uint8_t)damages[i].byte;
		expect_fault(copy, BYTES, damages[i].fault);
	}
	free(image);
}
END_TEST

START_TEST(finds_damaged_chains)
{
	uint8_t *image, copy[BYTES];
	size_t length;
	unsigned slot;

	image = make_image(NAMES, &length);
	/* An entry that follows itself, and one that leads to a member of its own chain. */
	memcpy(copy, image, BYTES);
	slot = get16(copy + bucket_at("n0"));
	put16(copy + SLOT(slot) + NEXT, slot);
	expect_fault(copy, BYTES, "chains that meet");
	/* A chain into another one. */
	memcpy(copy, image, BYTES);
	put16(copy + SLOT(slot) + NEXT, get16(copy + bucket_at(".")));
	expect_fault(copy, BYTES, "wrong chain");
	/* A name twice, each in the chain of its hash. */
	memcpy(copy, image, BYTES);
	memcpy(copy + SLOT(15) + NAME, "twice", 6);
	memcpy(copy + SLOT(16) + NAME, "twice", 6);
	expect_fault(copy, BYTES, "chain");
	free(image);
}
END_TEST

START_TEST(finds_equal_names)
{
	struct afs_dir dir;
	uint8_t *image;
	size_t length;

	/* The builder leaves it to its caller that names differ. */
	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	ck_assert_int_eq(afs_dir_add(&dir, "same", 4, 2, 2), 0);
	ck_assert_int_eq(afs_dir_add(&dir, "same", 4, 4, 4), 0);
	image = afs_dir_take(&dir, &length);
	expect_fault(image, length, "a name twice");
	free(image);
}
END_TEST

/* Another name of the same hash in the place of ".". */
START_TEST(finds_missing_dots)
{
	uint8_t *image;
	size_t length;

	image = make_image(NAMES, &length);
	memcpy(image + SLOT(13) + NAME, "\1\1", 3);
	ck_assert_uint_eq(bucket_at("."), bucket_at("\1\1"));
	expect_fault(image, length, "no \".\"");
	free(image);
}
END_TEST

START_TEST(finds_wrong_lengths)
{
	static uint8_t huge[(size_t)1025 * AFS_DIR_PAGE];
	uint8_t *image;
	size_t length;

	image = make_image(NAMES, &length);
	expect_fault(image, 0, "length");
	expect_fault(image, 1, "length");
	expect_fault(image, AFS_DIR_PAGE - 1, "length");
	expect_fault(image, BYTES - 1, "length");
	expect_fault(image, AFS_DIR_PAGE, "number of pages");
	expect_fault(huge, sizeof(huge), "length");
	free(image);
}
END_TEST

/* A name that does not end in the last bytes of a page. */
START_TEST(finds_endless_names)
{
	uint8_t page[AFS_DIR_PAGE] = {0};

	put16(page, 1);
	put16(page + 2, TAG);
	memset(page + USED_MAP, 0xff, 8);
	for (unsigned slot = FIRST_SLOT; slot < SLOTS; slot++) {
		page[SLOT(slot)] = 1;
		put32(page + SLOT(slot) + VNODE, 1);
		memset(page + SLOT(slot) + NAME, 'x', AFS_DIR_SLOT - NAME);
		page[SLOT(slot) + NAME + 15] = 0;
	}
	memset(page + SLOT(SLOTS - 1) + NAME, 'x', AFS_DIR_SLOT - NAME);
	expect_fault(page, sizeof(page), "end in its page");
}
END_TEST

/* Every byte of an image in turn: never a crash, and an image that passes is complete. */
START_TEST(survives_each_byte)
{
	uint8_t *image, copy[BYTES];
	size_t length;

	image = make_image(NAMES, &length);
	for (unsigned at = 0; at < BYTES; at++)
		for (unsigned bit = 0; bit < 8; bit += 3) {
			const char *fault;
			struct cl_names *names;

			memcpy(copy, image, BYTES);
			copy[at] ^= (uint8_t)(1u << bit);
			names = cl_names_parse(copy, BYTES, key, &fault);
			if (names)
				ck_assert_uint_eq(cl_names_count(names), NAMES + 2);
			else
				ck_assert_ptr_nonnull(fault);
			cl_names_free(names);
		}
	free(image);
}
END_TEST

/* -- edits --------------------------------------------------------------------------------- */

#define POOL 400u

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* Names of many lengths. */
static size_t pool_name(unsigned i, char name[CL_NAME_MAX + 1])
{
	size_t length = (size_t)snprintf(name, CL_NAME_MAX + 1, "%u-", i);

	for (size_t end = i * 7 % 200; length < end; length++)
		name[length] = 'a';
	name[length] = 0;
	return length;
}

START_TEST(edits_follow_a_model)
{
	uint32_t model[POOL] = {0}; /* vnode, 0 = absent */
	struct cl_names *names = cl_names_new(1, 1, 1, 1, key);
	uint64_t state = 88172645463325252ull;
	char name[CL_NAME_MAX + 1];
	unsigned count = 2;

	for (unsigned step = 0; step < 30000; step++) {
		unsigned i = (unsigned)(next_random(&state) % POOL);
		size_t length = pool_name(i, name);

		if (next_random(&state) % 2) {
			count += !model[i];
			model[i] = step + 1;
			ck_assert(cl_names_add(names, name, length, step + 1, i));
		} else {
			ck_assert_int_eq(cl_names_remove(names, name, length), model[i] != 0);
			count -= model[i] != 0;
			model[i] = 0;
		}
		ck_assert_uint_eq(cl_names_count(names), count);
		if (step % 500)
			continue;
		for (i = 0; i < POOL; i++) {
			pool_name(i, name);
			if (model[i])
				expect(names, name, model[i], i);
			else
				expect_absent(names, name);
		}
	}
	cl_names_free(names);
}
END_TEST

/* K-096: entries that stay are seen once, whatever is added and removed during a scan. */
START_TEST(scans_survive_edits)
{
	struct cl_names *names = cl_names_new(1, 1, 1, 1, key);
	uint64_t state = 4711;
	char name[CL_NAME_MAX + 1];

	for (unsigned i = 0; i < POOL; i++)
		ck_assert(cl_names_add(names, name, pool_name(i, name), 2 * i + 2, i));
	for (unsigned round = 0; round < 20; round++) {
		unsigned seen[POOL] = {0};
		struct cl_entry entry = {.next = 0};

		while (cl_names_next(names, entry.next, &entry)) {
			unsigned i = (unsigned)(next_random(&state) % (POOL / 2)) * 2 + 1;
			size_t length = pool_name(i, name);

			if (entry.vnode != 1)
				seen[entry.unique]++;
			/* Only odd ones come and go. */
			if (!cl_names_remove(names, name, length))
				ck_assert(cl_names_add(names, name, length, 2 * i + 2, i));
		}
		for (unsigned i = 0; i < POOL; i += 2)
			ck_assert_uint_eq(seen[i], 1);
	}
	cl_names_free(names);
}
END_TEST

/* Added entries are where the server puts them: the same offsets after the next fetch. */
START_TEST(places_are_the_servers)
{
	struct cl_names *names = cl_names_new(1, 1, 1, 1, key);
	struct cl_names *server;
	char name[CL_NAME_MAX + 1];
	struct afs_dir dir;
	uint8_t *image;
	size_t length;

	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	for (unsigned i = 0; i < POOL; i++) {
		length = pool_name(i, name);
		ck_assert(cl_names_add(names, name, length, i + 2, i));
		ck_assert_int_eq(afs_dir_add(&dir, name, length, i + 2, i), 0);
	}
	image = afs_dir_take(&dir, &length);
	server = parse_image(image, length);
	for (unsigned i = 0; i < POOL; i++) {
		length = pool_name(i, name);
		ck_assert_uint_eq(cl_names_place(names, name, length),
				  cl_names_place(server, name, length));
	}
	cl_names_free(server);
	cl_names_free(names);
	free(image);
}
END_TEST

START_TEST(full_directories_refuse)
{
	struct cl_names *names = cl_names_new(1, 1, 1, 1, key);
	unsigned count = 0;
	char name[32];

	for (;; count++) {
		int length = snprintf(name, sizeof(name), "n%u", count);

		if (!cl_names_add(names, name, (size_t)length, 2, 2))
			break;
	}
	ck_assert_uint_eq(count, 51 + 1022 * 63 - 2);
	ck_assert(cl_names_remove(names, "n100", 4));
	ck_assert(cl_names_add(names, "more", 4, 2, 2));
	ck_assert(!cl_names_add(names, "again", 5, 2, 2));
	cl_names_free(names);
}
END_TEST

TEST_MAIN_WITHIN(60, "client names", reads_images, reads_long_names, finds_damage,
		 finds_damaged_chains, finds_equal_names, finds_missing_dots, finds_wrong_lengths,
		 finds_endless_names, survives_each_byte, edits_follow_a_model, scans_survive_edits,
		 places_are_the_servers, full_directories_refuse)
