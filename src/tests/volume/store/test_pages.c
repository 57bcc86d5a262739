/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of volume/store/dir/pages.c: placement, versions, a model of names, malformed pages, limits. */
#include "tests/main.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>

#include "afs/dir.h"
#include "volume/store/dir/pages.h"

#define NAMES	 2000 /* of the model */
#define MANY	 64000
#define CAPACITY 64435 /* names of at most 15 bytes, beside "." and ".." */

typedef uint8_t image_page[STORE_PAGE];

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void add(struct store_pages *pages, const char *name, uint32_t vnode, uint32_t unique)
{
	ck_assert_int_eq(store_pages_add(pages, name, vnode, unique), 0);
}

static image_page *image_of(const struct store_pages *pages)
{
	image_page *image = calloc(store_pages_count(pages), sizeof(*image));

	ck_assert_ptr_nonnull(image);
	for (unsigned p = 0; p < store_pages_count(pages); p++)
		memcpy(image[p], store_pages_page(pages, p), STORE_PAGE);
	return image;
}

static void expect_image(const struct store_pages *pages, const uint8_t *image)
{
	for (unsigned p = 0; p < store_pages_count(pages); p++)
		ck_assert_msg(memcmp(store_pages_page(pages, p), image + p * (size_t)STORE_PAGE,
				     STORE_PAGE) == 0,
			      "page %u differs", p);
}

/* Loading the pages gives the same version. */
static void expect_sound(const struct store_pages *pages)
{
	image_page *image = image_of(pages);
	struct store_pages *again;

	ck_assert_int_eq(store_pages_load(image, store_pages_count(pages), &again), 0);
	ck_assert_uint_eq(store_pages_entries(again), store_pages_entries(pages));
	expect_image(again, image[0]);
	store_pages_unref(again);
	free(image);
}

static void expect_entry(const struct store_pages *pages, const char *name, uint32_t vnode,
			 uint32_t unique)
{
	uint32_t v, u;

	ck_assert_int_eq(store_pages_find(pages, name, &v, &u), 0);
	ck_assert_uint_eq(v, vnode);
	ck_assert_uint_eq(u, unique);
}

static void expect_missing(const struct store_pages *pages, const char *name)
{
	uint32_t v, u;

	ck_assert_int_eq(store_pages_find(pages, name, &v, &u), -ENOENT);
}

static struct store_pages *make_example(void)
{
	struct store_pages *pages = store_pages_new(1, 1, 1, 1);

	ck_assert_ptr_nonnull(pages);
	add(pages, "hello.txt", 2, 2);
	add(pages, "sixteen-chars-ab", 4, 3);
	add(pages, "f97", 6, 4);
	add(pages, "sub", 3, 5);
	add(pages, "\xc3\xa9", 8, 6);
	return pages;
}

START_TEST(worked_example)
{
	struct store_pages *pages = make_example();
	uint8_t digest[32];
	char hex[65];

	ck_assert_uint_eq(store_pages_count(pages), 1);
	ck_assert_uint_eq(store_pages_entries(pages), 7);
	ck_assert_int_eq(EVP_Digest(store_pages_page(pages, 0), STORE_PAGE, digest, NULL,
				    EVP_sha256(), NULL),
			 1);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	ck_assert_str_eq(hex, "82f788a57bc60669d1b296da3ca043501632d9d8d5ebe61ecff43760d361e871");
	expect_sound(pages);
	ck_assert_ptr_null(store_pages_page(pages, 1));
	store_pages_unref(pages);
}
END_TEST

/* A name of any length up to 255, most of them short; different for each number. */
static void make_name(uint32_t number, char name[256])
{
	uint32_t length = number % 7 == 0 ? 8 + number * 31 % 248 : 8 + number % 12;

	memset(name, 'a' + (int)(number % 26), length);
	name[length] = 0;
	snprintf(name, 9, "%08x", number);
	if (length > 8)
		name[8] = '-';
}

START_TEST(same_as_builder)
{
	struct store_pages *pages = store_pages_new(1, 1, 5, 6);
	struct afs_dir dir;
	char name[256];
	size_t length;
	uint8_t *image;

	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 5, 6), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		make_name(i, name);
		add(pages, name, 2 * i, 3 * i);
		ck_assert_int_eq(afs_dir_add(&dir, name, strlen(name), 2 * i, 3 * i), 0);
	}
	image = afs_dir_take(&dir, &length);
	ck_assert_uint_gt(store_pages_count(pages), 128);
	ck_assert_uint_eq(length, store_pages_count(pages) * (size_t)STORE_PAGE);
	expect_image(pages, image);
	expect_sound(pages);
	free(image);
	store_pages_unref(pages);
}
END_TEST

START_TEST(freed_slots)
{
	struct store_pages *pages = make_example(), *before = store_pages_fork(pages);
	static const uint8_t zeros[64];

	/* The lowest run that is long enough is used again, and nothing stays in freed slots. */
	ck_assert_int_eq(store_pages_remove(pages, "sixteen-chars-ab"), 0);
	ck_assert_int_eq(store_pages_remove(pages, "sixteen-chars-ab"), -ENOENT);
	ck_assert_mem_eq(store_pages_page(pages, 0) + 16 * 32, zeros, 64);
	add(pages, "short", 10, 7);
	ck_assert_str_eq((const char *)store_pages_page(pages, 0) + 16 * 32 + 12, "short");
	add(pages, "a-name-of-two-slots", 12, 8);
	ck_assert_str_eq((const char *)store_pages_page(pages, 0) + 21 * 32 + 12,
			 "a-name-of-two-slots");
	add(pages, "s", 14, 9);
	ck_assert_str_eq((const char *)store_pages_page(pages, 0) + 17 * 32 + 12, "s");
	expect_sound(pages);

	/* All that was added can be removed again: the same bytes as at the beginning. */
	for (const char *const *name =
		     (const char *const[]){"s", "a-name-of-two-slots", "short", "hello.txt",
					   "\xc3\xa9", "f97", "sub", NULL};
	     *name; name++)
		ck_assert_int_eq(store_pages_remove(pages, *name), 0);
	struct store_pages *empty = store_pages_new(1, 1, 1, 1);

	expect_image(pages, store_pages_page(empty, 0));
	expect_entry(before, "sixteen-chars-ab", 4, 3);
	store_pages_unref(empty);
	store_pages_unref(before);
	store_pages_unref(pages);
}
END_TEST

START_TEST(names_refused)
{
	struct store_pages *pages = make_example();
	char name[258];

	memset(name, 'x', 257);
	name[256] = 0;
	ck_assert_int_eq(store_pages_add(pages, name, 1, 1), -EINVAL);
	ck_assert_int_eq(store_pages_add(pages, "", 1, 1), -EINVAL);
	ck_assert_int_eq(store_pages_add(pages, "a/b", 1, 1), -EINVAL);
	ck_assert_int_eq(store_pages_add(pages, "sub", 1, 1), -EEXIST);
	ck_assert_int_eq(store_pages_add(pages, "..", 1, 1), -EEXIST);
	ck_assert_int_eq(store_pages_set(pages, "nothing", 1, 1), -ENOENT);
	ck_assert_int_eq(store_pages_remove(pages, "nothing"), -ENOENT);
	/* "." and ".." stay where the format wants them. */
	ck_assert_int_eq(store_pages_remove(pages, "."), -ENOENT);
	ck_assert_int_eq(store_pages_remove(pages, ".."), -ENOENT);
	name[255] = 0;
	add(pages, name, 20, 21);
	expect_entry(pages, name, 20, 21);
	ck_assert_int_eq(store_pages_set(pages, "..", 77, 78), 0);
	expect_entry(pages, "..", 77, 78);
	expect_sound(pages);
	store_pages_unref(pages);
}
END_TEST

/* -- a model: which names are there -- */

struct model {
	uint32_t vnode[NAMES], unique[NAMES]; /* vnode 0: the name is not there */
	uint32_t count;
};

static void expect_model(const struct store_pages *pages, const struct model *model)
{
	uint32_t cursor = 0, vnode, unique, seen = 0;
	const char *name;
	char made[256];

	ck_assert_uint_eq(store_pages_entries(pages), model->count + 2);
	while (store_pages_next(pages, &cursor, &name, &vnode, &unique) == 1) {
		seen++;
		if (name[0] == '.')
			continue;
		uint32_t n = (uint32_t)strtoul((char[]){name[0], name[1], name[2], name[3], name[4],
							name[5], name[6], name[7], 0},
					       NULL, 16);

		ck_assert_uint_lt(n, NAMES);
		make_name(n, made);
		ck_assert_str_eq(name, made);
		ck_assert_uint_eq(vnode, model->vnode[n]);
		ck_assert_uint_eq(unique, model->unique[n]);
	}
	ck_assert_uint_eq(seen, model->count + 2);
	for (uint32_t n = 0; n < NAMES; n++) {
		make_name(n, made);
		if (model->vnode[n])
			expect_entry(pages, made, model->vnode[n], model->unique[n]);
		else
			expect_missing(pages, made);
	}
	expect_sound(pages);
}

static void change_model(struct store_pages *pages, struct model *model)
{
	uint32_t n = draw(NAMES), vnode = 1 + draw(1000000), unique = draw(1000000);
	bool there = model->vnode[n];
	char name[256];

	make_name(n, name);
	switch (draw(5)) {
	case 0:
	case 1:
		ck_assert_int_eq(store_pages_add(pages, name, vnode, unique), there ? -EEXIST : 0);
		if (there)
			return;
		model->count++;
		break;
	case 2:
	case 3:
		ck_assert_int_eq(store_pages_remove(pages, name), there ? 0 : -ENOENT);
		if (there)
			model->count--;
		vnode = 0;
		break;
	default:
		ck_assert_int_eq(store_pages_set(pages, name, vnode, unique), there ? 0 : -ENOENT);
		if (!there)
			return;
	}
	model->vnode[n] = vnode;
	model->unique[n] = unique;
}

/* Pages that differ from the version before are those that are said to have changed. */
static void expect_changed(const struct store_pages *pages, const struct store_pages *before)
{
	for (unsigned p = 0; p < store_pages_count(pages); p++) {
		const uint8_t *old = store_pages_page(before, p), *now = store_pages_page(pages, p);

		if (store_pages_changed(pages, p))
			ck_assert_ptr_ne(now, old);
		else
			ck_assert_ptr_eq(now, old);
	}
}

START_TEST(random_changes)
{
	static struct model model, past;
	struct store_pages *pages = store_pages_new(9, 9, 1, 1), *old = NULL;

	for (int version = 0; version < 600; version++) {
		struct store_pages *fork = store_pages_fork(pages);
		uint32_t changes = 1 + draw(version % 10 == 0 ? 500 : 4);

		ck_assert_ptr_nonnull(fork);
		for (uint32_t i = 0; i < changes; i++)
			change_model(fork, &model);
		expect_changed(fork, pages);
		if (version % 10 == 0)
			expect_model(fork, &model);
		if (version == 300) {
			old = store_pages_ref(fork);
			past = model;
		}
		store_pages_unref(pages);
		pages = fork;
	}
	ck_assert_uint_gt(store_pages_count(pages), 16); /* large enough for an index */
	expect_model(pages, &model);
	expect_model(old, &past); /* whatever happened later */
	store_pages_unref(old);
	store_pages_unref(pages);
}
END_TEST

/* -- malformed pages -- */

/* Whatever was loaded can be listed, searched, changed and loaded again. */
static void use(struct store_pages *pages)
{
	uint32_t cursor = 0, vnode, unique, seen = 0;
	const char *name;
	char copy[256];

	expect_sound(pages);
	while (store_pages_next(pages, &cursor, &name, &vnode, &unique) == 1) {
		expect_entry(pages, name, vnode, unique);
		seen++;
	}
	ck_assert_uint_eq(seen, store_pages_entries(pages));
	ck_assert_int_eq(store_pages_add(pages, "one more", 98, 99), 0);
	for (cursor = 15; store_pages_next(pages, &cursor, &name, &vnode, &unique) == 1;) {
		strcpy(copy, name);
		ck_assert_int_eq(store_pages_remove(pages, copy), 0);
	}
	ck_assert_uint_eq(store_pages_entries(pages), 2);
	expect_sound(pages);
}

/*
 * The format leaves open numbers of vnodes and uniques, and names as long as they belong to the
 * same chain.
 */
static void mark_open(const struct store_pages *pages, image_page *open)
{
	uint32_t cursor = 0, vnode, unique;
	const char *name;

	memset(open, 0, store_pages_count(pages) * sizeof(*open));
	while (store_pages_next(pages, &cursor, &name, &vnode, &unique) == 1) {
		unsigned p = (cursor - 1) / 64;
		ptrdiff_t at = (const uint8_t *)name - store_pages_page(pages, p);

		memset(open[p] + at - 8, 0xff, 8 + strlen(name) + 1);
	}
}

/* Changes of every bit of a directory are noticed, or lead to another sound directory. */
static void flip_bits(const struct store_pages *pages)
{
	unsigned count = store_pages_count(pages);
	image_page *image = image_of(pages), *open = image_of(pages);

	mark_open(pages, open);
	for (size_t bit = 0; bit < 8u * STORE_PAGE * count; bit++) {
		uint8_t mask = (uint8_t)(1u << bit % 8), *at = image[0] + bit / 8;
		struct store_pages *loaded = NULL;

		*at ^= mask;
		int rc = store_pages_load(image, count, &loaded);

		*at ^= mask;
		ck_assert_msg(rc == -EBADMSG || (rc == 0 && (*(open[0] + bit / 8) & mask)),
			      "bit %zu: %d", bit, rc);
		if (rc == 0) {
			use(loaded);
			store_pages_unref(loaded);
		}
	}
	free(open);
	free(image);
}

START_TEST(flipped_bits)
{
	struct store_pages *pages = make_example();
	char name[256];

	flip_bits(pages);
	for (uint32_t i = 0; i < 60; i++) {
		make_name(i, name);
		add(pages, name, i, i);
	}
	ck_assert_uint_eq(store_pages_count(pages), 2);
	flip_bits(pages);
	store_pages_unref(pages);
}
END_TEST

START_TEST(random_damage)
{
	struct store_pages *pages = make_example();
	char name[256];

	for (uint32_t i = 0; i < 150; i++) {
		make_name(i, name);
		add(pages, name, i, i);
	}
	unsigned count = store_pages_count(pages);
	image_page *image = image_of(pages), *hurt = calloc(count, sizeof(*hurt));

	for (int round = 0; round < 20000; round++) {
		struct store_pages *loaded = NULL;

		memcpy(hurt, image, count * sizeof(*hurt));
		for (uint32_t n = 1 + draw(4); n; n--) {
			/* A word of one place at another one, or noise. */
			uint8_t *at = hurt[0] + 2 * draw(count * STORE_PAGE / 2);

			memcpy(at, hurt[0] + 2 * draw(count * STORE_PAGE / 2), 2);
			if (draw(2))
				*at = (uint8_t)draw(256);
		}
		if (store_pages_load(hurt, 1 + draw(count), &loaded) == 0) {
			use(loaded);
			store_pages_unref(loaded);
		}
	}
	ck_assert_int_eq(store_pages_load(image, 0, &(struct store_pages *){NULL}), -EBADMSG);
	ck_assert_int_eq(store_pages_load(image, count - 1, &(struct store_pages *){NULL}),
			 -EBADMSG);
	free(hurt);
	free(image);
	store_pages_unref(pages);
}
END_TEST

static void put16(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* Damage that leaves every single field plausible. */
START_TEST(crafted_pages)
{
	struct store_pages *pages = make_example(), *loaded;
	image_page *image = image_of(pages);

	/* The chain of f97 leads back to itself. */
	put16(image[0] + 18 * 32 + 2, 18);
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), -EBADMSG);
	/* ... into the second slot of another entry. */
	put16(image[0] + 18 * 32 + 2, 17);
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), -EBADMSG);
	/* ... to nothing, so that hello.txt is in no chain. */
	put16(image[0] + 18 * 32 + 2, 0);
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), -EBADMSG);
	/* ... to a page that does not exist. */
	put16(image[0] + 18 * 32 + 2, 64);
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), -EBADMSG);
	put16(image[0] + 18 * 32 + 2, 15);
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), 0);
	store_pages_unref(loaded);

	/* A name twice: an entry for "sub" in a free slot, in the same chain. */
	uint8_t *twin = image[0] + 30 * 32;

	memcpy(twin, image[0] + 19 * 32, 32);
	put16(twin + 2, 19);
	put16(image[0] + 160 + 2 * 30, 30);
	image[0][5 + 3] |= 1 << 6;
	image[0][32]--;
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), -EBADMSG);
	/* The same with another name of that chain is a sound directory. */
	memcpy(twin + 12, "\x01", 2);
	for (unsigned i = 1; afs_dir_hash((char *)twin + 12, strlen((char *)twin + 12)) != 30; i++)
		snprintf((char *)twin + 12, 8, "n%u", i);
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), 0);
	use(loaded);
	store_pages_unref(loaded);
	free(image);

	/* A name of 16 bytes in the last slot of a page has its NUL there, but needs two slots. */
	image = image_of(pages);
	uint8_t *last = image[0] + 63 * 32;

	memcpy(last, image[0] + 16 * 32, 32);
	put16(image[0] + 160 + 2 * 34, 63);
	memset(image[0] + 16 * 32, 0, 64);
	image[0][5 + 2] &= 0xfc;
	image[0][5 + 7] |= 0x80;
	image[0][32]++;
	ck_assert_int_eq(store_pages_load(image, 1, &loaded), -EBADMSG);
	free(image);
	store_pages_unref(pages);
}
END_TEST

/* -- limits -- */

START_TEST(many_names)
{
	struct store_pages *pages = store_pages_new(1, 1, 1, 1), *before;
	char name[32];

	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add(pages, name, i, i + 1);
	}
	expect_sound(pages);
	before = pages;
	pages = store_pages_fork(before);
	for (uint32_t i = 0; i < MANY; i += 2) {
		snprintf(name, sizeof(name), "f%u", i);
		ck_assert_int_eq(store_pages_remove(pages, name), 0);
	}
	expect_sound(pages);
	ck_assert_uint_eq(store_pages_entries(pages), MANY / 2 + 2);
	ck_assert_uint_eq(store_pages_count(pages), store_pages_count(before));
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		expect_entry(before, name, i, i + 1);
		if (i % 2)
			expect_entry(pages, name, i, i + 1);
		else
			expect_missing(pages, name);
	}
	store_pages_unref(before);
	store_pages_unref(pages);
}
END_TEST

START_TEST(full)
{
	struct store_pages *pages = store_pages_new(1, 1, 1, 1);
	char name[32];
	uint32_t i;

	for (i = 0; i < CAPACITY; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add(pages, name, i, i);
	}
	ck_assert_uint_eq(store_pages_count(pages), STORE_PAGES_MAX);
	ck_assert_int_eq(store_pages_add(pages, "one more", i, i), -EFBIG);
	ck_assert(store_pages_fits_after(pages, "f5000", "one more"));
	ck_assert(!store_pages_fits_after(pages, "f5000", "needs-two-slots--"));
	ck_assert(!store_pages_fits_after(pages, "none", "one more"));
	ck_assert_int_eq(store_pages_remove(pages, "f5000"), 0);
	ck_assert_int_eq(store_pages_add(pages, "needs-two-slots--", i, i), -EFBIG);
	/* Beside the free slot, which lies before one of these, or not. */
	ck_assert_int_eq(store_pages_fits_after(pages, "f4999", "needs-two-slots--") +
				 store_pages_fits_after(pages, "f5001", "needs-two-slots--"),
			 2);
	add(pages, "one more", i, i);
	expect_sound(pages);
	store_pages_unref(pages);
}
END_TEST

/* An edit of a large directory copies the pages that it changes, and no others. */
START_TEST(sharing)
{
	struct store_pages *pages = store_pages_new(1, 1, 1, 1), *fork;
	char name[32];
	unsigned changed = 0;

	for (uint32_t i = 0; i < 30000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add(pages, name, i, i);
	}
	ck_assert_uint_gt(store_pages_memory(pages), store_pages_count(pages) * (size_t)STORE_PAGE);
	fork = store_pages_fork(pages);
	ck_assert_int_eq(store_pages_set(fork, "f29000", 5, 5), 0);
	for (unsigned p = 0; p < store_pages_count(fork); p++)
		changed += store_pages_changed(fork, p);
	ck_assert_uint_eq(changed, 1);
	add(fork, "new", 6, 6);
	expect_changed(fork, pages);
	for (unsigned p = changed = 0; p < store_pages_count(fork); p++)
		changed += store_pages_changed(fork, p);
	ck_assert_uint_eq(changed, 3); /* page 0 has the hash table */
	store_pages_unref(pages);
	expect_entry(fork, "f29000", 5, 5);
	store_pages_unref(fork);
}
END_TEST

/* -- threads -- */

static struct {
	pthread_mutex_t lock;
	struct store_pages *pages; /* the version that was published last */
	bool done;
} current = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *reader_thread(void *arg)
{
	bool done = false;

	(void)arg;
	while (!done) {
		uint32_t cursor = 0, vnode, unique, seen = 0;
		struct store_pages *pages;
		const char *name;

		pthread_mutex_lock(&current.lock);
		pages = store_pages_ref(current.pages);
		done = current.done;
		pthread_mutex_unlock(&current.lock);
		while (store_pages_next(pages, &cursor, &name, &vnode, &unique) == 1) {
			if (seen++ % 16 == 0)
				expect_entry(pages, name, vnode, unique);
		}
		ck_assert_uint_eq(seen, store_pages_entries(pages));
		store_pages_unref(pages);
	}
	return NULL;
}

/* Readers of a version notice nothing of those that follow. */
START_TEST(readers)
{
	static struct model model;
	pthread_t reader[3];

	current.pages = store_pages_new(1, 1, 1, 1);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, reader_thread, NULL), 0);
	for (int version = 0; version < 3000; version++) {
		struct store_pages *fork = store_pages_fork(current.pages), *old;

		for (int i = 0; i < 3; i++)
			change_model(fork, &model);
		pthread_mutex_lock(&current.lock);
		old = current.pages;
		current.pages = fork;
		current.done = version == 2999;
		pthread_mutex_unlock(&current.lock);
		store_pages_unref(old);
	}
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_join(reader[i], NULL), 0);
	expect_model(current.pages, &model);
	store_pages_unref(current.pages);
}
END_TEST

/* -- names that somebody has chosen for the sake of one value of a hash without a key (FNV-1a) -- */

#define STAGES	12 /* each doubles the number of names */
#define BLOCK	8
#define SAMPLES 300000

static unsigned long compared; /* calls of strcmp() in the program */

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
	compared++;
	return __real_strcmp(a, b);
}

static uint32_t fnv(uint32_t h, const char *bytes, size_t length)
{
	while (length--)
		h = (h ^ (uint8_t)*bytes++) * 16777619u;
	return h;
}

static void number_block(uint32_t number, char *block)
{
	uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;

	mixed ^= mixed >> 29;
	for (int i = 0; i < BLOCK; i++, mixed /= 26)
		block[i] = (char)('a' + mixed % 26);
}

struct sample {
	uint32_t hash, number;
};

static int by_hash(const void *a, const void *b)
{
	uint32_t x = ((const struct sample *)a)->hash, y = ((const struct sample *)b)->hash;

	return x < y ? -1 : x > y;
}

/* Two blocks that lead from one state to one other, which is returned. */
static uint32_t find_twins(uint32_t state, char twins[2][BLOCK])
{
	struct sample *sample = calloc(SAMPLES, sizeof(*sample));
	char block[BLOCK];
	uint32_t i = 1;

	ck_assert_ptr_nonnull(sample);
	for (uint32_t n = 0; n < SAMPLES; n++) {
		number_block(n, block);
		sample[n] = (struct sample){fnv(state, block, BLOCK), n};
	}
	qsort(sample, SAMPLES, sizeof(*sample), by_hash);
	while (i < SAMPLES && sample[i].hash != sample[i - 1].hash)
		i++;
	ck_assert_uint_lt(i, SAMPLES);
	number_block(sample[i - 1].number, twins[0]);
	number_block(sample[i].number, twins[1]);
	state = sample[i].hash;
	free(sample);
	return state;
}

/* Loading a directory of n such names compares fewer than n names, not n * n / 2. */
START_TEST(chosen_names)
{
	struct store_pages *pages = store_pages_new(1, 1, 1, 1), *again;
	char twins[STAGES][2][BLOCK], name[STAGES * BLOCK + 1] = "";
	uint32_t state = 2166136261u, first = 0;
	image_page *image;

	for (int i = 0; i < STAGES; i++)
		state = find_twins(state, twins[i]);
	for (uint32_t n = 0; n < 1u << STAGES; n++) {
		for (int i = 0; i < STAGES; i++)
			memcpy(name + i * BLOCK, twins[i][n >> i & 1], BLOCK);
		if (!n)
			first = fnv(2166136261u, name, strlen(name));
		ck_assert_uint_eq(fnv(2166136261u, name, strlen(name)), first);
		add(pages, name, 2 * n + 2, n + 2);
	}
	image = image_of(pages);
	compared = 0;
	ck_assert_int_eq(store_pages_load(image, store_pages_count(pages), &again), 0);
	ck_assert_uint_lt(compared, 1u << STAGES);
	store_pages_unref(again);
	store_pages_unref(pages);
	free(image);
}
END_TEST

TEST_MAIN_WITHIN(120, "pages", worked_example, same_as_builder, freed_slots, names_refused,
		 random_changes, flipped_bits, random_damage, crafted_pages, many_names, full,
		 sharing, readers, chosen_names)
