/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/dir.c: the worked example, large directories, malformed images. */
#include "tests/tools/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <rxwire/error.h>

#include "afs/dir.h"

struct expect {
	unsigned offset;
	const char *hex;
};

/* All bytes of the example's image that are not zero. */
static const struct expect example[] = {
	{0x0000, "000104d233ffff1f"},
	{0x00c4, "0012"},
	{0x0180, "0014"},
	{0x00dc, "0013"},
	{0x00e4, "0010"},
	{0x00fc, "000d"},
	{0x0128, "000e"},
	{0x01a0, "0100000000000001000000012e"},
	{0x01c0, "0100000000000001000000012e2e"},
	{0x01e0, "01000000000000020000000268656c6c6f2e747874"},
	{0x0200, "0100000000000004000000037369787465656e2d63686172732d6162"},
	{0x0240, "0100000f0000000600000004663937"},
	{0x0260, "010000000000000300000005737562"},
	{0x0280, "010000000000000800000006c3a9"},
};

static void add(struct afs_dir *dir, const char *name, uint32_t vnode, uint32_t unique)
{
	ck_assert_int_eq(afs_dir_add(dir, name, strlen(name), vnode, unique), 0);
}

START_TEST(worked_example)
{
	uint8_t want[AFS_DIR_PAGE] = {0}, *image;
	struct afs_dir dir;
	size_t length;

	want[0x20] = 0x2b;
	memset(want + 0x21, 0x40, 127);
	for (size_t i = 0; i < sizeof(example) / sizeof(example[0]); i++)
		for (size_t j = 0; example[i].hex[2 * j]; j++) {
			unsigned byte;

			sscanf(example[i].hex + 2 * j, "%2x", &byte);
			want[example[i].offset + j] = (uint8_t)byte;
		}
	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	add(&dir, "hello.txt", 2, 2);
	add(&dir, "sixteen-chars-ab", 4, 3);
	add(&dir, "f97", 6, 4);
	add(&dir, "sub", 3, 5);
	add(&dir, "\xc3\xa9", 8, 6);
	image = afs_dir_take(&dir, &length);
	ck_assert_uint_eq(length, sizeof(want));
	for (size_t i = 0; i < length; i++)
		ck_assert_msg(image[i] == want[i], "byte %zu: %02x, not %02x", i, image[i],
			      want[i]);
	free(image);
}
END_TEST

START_TEST(hashes)
{
	static const struct {
		const char *name;
		unsigned bucket;
	} list[] = {
		{".", 46},
		{"..", 68},
		{"a", 97},
		{"sub", 30},
		{"hello.txt", 18},
		{"f97", 18},
		{"sixteen-chars-ab", 34},
		{"\xc3\xa9", 112},
		{"\xff", 127},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ck_assert_uint_eq(afs_dir_hash(list[i].name, strlen(list[i].name)), list[i].bucket);
}
END_TEST

/* The checks of a salvager. */
static void check_consistent(const uint8_t *image, size_t length)
{
	size_t pages = length / AFS_DIR_PAGE, entries = 0, chained = 0;
	struct afs_dir_entry entry;
	uint32_t cursor = 0;

	ck_assert_int_eq(afs_dir_check(image, length), 0);
	ck_assert_uint_eq((unsigned)image[0] << 8 | image[1], pages);
	for (size_t p = 0; p < 128; p++) {
		unsigned used = 0;

		for (int b = 0; p < pages && b < 8; b++)
			used += (unsigned)__builtin_popcount(image[p * AFS_DIR_PAGE + 5 + b]);
		ck_assert_uint_eq(image[32 + p], 64 - used);
	}
	while (afs_dir_next(image, length, &cursor, &entry) == 1) {
		uint32_t vnode, unique;
		char name[300];

		memcpy(name, entry.name, entry.length + 1);
		ck_assert_int_eq(afs_dir_lookup(image, length, name, &vnode, &unique), 1);
		ck_assert_uint_eq(vnode, entry.vnode);
		ck_assert_uint_eq(unique, entry.unique);
		entries++;
	}
	for (unsigned b = 0; b < 128; b++) {
		unsigned slot = (unsigned)image[160 + 2 * b] << 8 | image[161 + 2 * b];

		for (unsigned steps = 0; slot; steps++) {
			const uint8_t *e = image + slot / 64 * AFS_DIR_PAGE + slot % 64 * 32;

			ck_assert_uint_lt(steps, 70000);
			ck_assert_uint_eq(e[0], 1);
			ck_assert_uint_eq(
				afs_dir_hash((const char *)e + 12, strlen((const char *)e + 12)),
				b);
			slot = (unsigned)e[2] << 8 | e[3];
			chained++;
		}
	}
	ck_assert_uint_eq(chained, entries);
}

START_TEST(five_thousand_names)
{
	struct afs_dir dir;
	size_t length;
	uint8_t *image;
	uint32_t v, u;

	ck_assert_int_eq(afs_dir_begin(&dir, 3, 7, 1, 1), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		char name[256];
		int n = snprintf(name, sizeof(name), "entry-%u-", i);
		size_t pad = i % 7 ? i % 40 : 240;

		memset(name + n, 'x', pad);
		name[(size_t)n + pad] = 0;
		add(&dir, name, 2 * i + 2, i + 2);
	}
	image = afs_dir_take(&dir, &length);
	check_consistent(image, length);
	ck_assert_int_eq(afs_dir_lookup(image, length, "entry-1-x", &v, &u), 1);
	ck_assert_uint_eq(v, 4);
	ck_assert_int_eq(afs_dir_lookup(image, length, "entry-1-", &v, &u), 0);
	ck_assert_int_eq(afs_dir_lookup(image, length, "..", &v, &u), 1);
	ck_assert_uint_eq(v, 1);
	free(image);
}
END_TEST

START_TEST(limit_of_pages)
{
	struct afs_dir dir;
	uint32_t i = 0;
	int rc = afs_dir_begin(&dir, 1, 1, 1, 1);

	for (; rc == 0 && i < 70000; i++) {
		char name[16];
		int n = snprintf(name, sizeof(name), "%u", i);

		rc = afs_dir_add(&dir, name, (size_t)n, 2, 2);
	}
	ck_assert_int_eq(rc, -RXW_ELIMIT);
	ck_assert_uint_eq(dir.entries, 64435 + 2);
	ck_assert_uint_eq(dir.pages, AFS_DIR_PAGES_MAX);
	afs_dir_destroy(&dir);
}
END_TEST

START_TEST(names_refused)
{
	struct afs_dir dir;
	char name[257];

	memset(name, 'n', sizeof(name));
	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	ck_assert_int_eq(afs_dir_add(&dir, "", 0, 2, 2), -RXW_EINVAL);
	ck_assert_int_eq(afs_dir_add(&dir, "a/b", 3, 2, 2), -RXW_EINVAL);
	ck_assert_int_eq(afs_dir_add(&dir, "a\0b", 3, 2, 2), -RXW_EINVAL);
	ck_assert_int_eq(afs_dir_add(&dir, name, 256, 2, 2), -RXW_EINVAL);
	ck_assert_int_eq(afs_dir_add(&dir, name, 255, 2, 2), 0);
	afs_dir_destroy(&dir);
}
END_TEST

static uint8_t *sample(size_t *length)
{
	struct afs_dir dir;

	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	add(&dir, "one", 2, 2);
	add(&dir, "a-name-that-needs-two-slots", 4, 3);
	return afs_dir_take(&dir, length);
}

START_TEST(malformed_images)
{
	struct afs_dir_entry entry;
	uint32_t cursor, v, u;
	size_t length;
	uint8_t *image = sample(&length);

	ck_assert_int_eq(afs_dir_check(image, 0), -RXW_EDECODE);
	ck_assert_int_eq(afs_dir_check(image, length - 1), -RXW_EDECODE);
	image[3] ^= 1; /* tag */
	ck_assert_int_eq(afs_dir_check(image, length), -RXW_EDECODE);
	image[3] ^= 1;

	/* a chain with a loop ends */
	uint8_t *bucket = image + 160 + 2 * afs_dir_hash("zz", 2);

	bucket[1] = 15;
	image[15 * 32 + 3] = 15;
	ck_assert_int_eq(afs_dir_lookup(image, length, "zz", &v, &u), -RXW_EDECODE);
	/* one that points outside the image */
	bucket[0] = 0xff;
	ck_assert_int_eq(afs_dir_lookup(image, length, "zz", &v, &u), -RXW_EDECODE);

	/* a name with a slash, and one without an end */
	image[15 * 32 + 13] = '/';
	cursor = 15;
	ck_assert_int_eq(afs_dir_next(image, length, &cursor, &entry), -RXW_EDECODE);
	free(image);

	image = sample(&length);
	image[5 + 7] |= 0x80; /* slot 63 in use */
	image[63 * 32] = 1;
	memset(image + 63 * 32 + 12, 'x', 20);
	cursor = 63;
	ck_assert_int_eq(afs_dir_next(image, length, &cursor, &entry), -RXW_EDECODE);
	free(image);
}
END_TEST

START_TEST(random_images_read_in_bounds)
{
	uint64_t state = 88172645463325252ull;

	for (int round = 0; round < 2000; round++) {
		size_t length;
		uint8_t *image = sample(&length), *exact = malloc(length);
		struct afs_dir_entry entry;
		uint32_t cursor = 0, v, u;

		for (int i = 0; i < 12; i++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			image[state % 700] = (uint8_t)(state >> 32);
		}
		memcpy(exact, image, length);
		for (int n = 0; n < 100 && afs_dir_next(exact, length, &cursor, &entry) == 1; n++)
			ck_assert_uint_le(entry.length, 256);
		afs_dir_lookup(exact, length, "one", &v, &u);
		free(exact);
		free(image);
	}
}
END_TEST

TEST_MAIN("afs directories", worked_example, hashes, five_thousand_names, limit_of_pages,
	  names_refused, malformed_images, random_images_read_in_bounds)
