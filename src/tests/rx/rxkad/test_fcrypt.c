/* SPDX-License-Identifier: BSD-2-Clause */
/* fcrypt: the recorded vectors, and many blocks against a plain implementation. */
#include "vectors.h"

#include "base/hash.h"
#include "rxkad/fcrypt.h"

static uint64_t state = 0x7278776972652066ull;

static void fill(uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)rxw_prng(&state);
}

/* A direct implementation of 7.3.8 with the tables of the vectors: the reference. */
static uint8_t box[4][256];

static void load_boxes(void)
{
	json_t *root = vectors_load("rxkad-primitives.json"), *s = member(root, "fcryptSboxes");
	static const char *const names[] = {"S0", "S1", "S2", "S3"};

	for (unsigned i = 0; i < 4; i++)
		bytes_of(s, names[i], box[i], 256);
	json_decref(root);
}

static uint32_t plain_f(uint32_t x)
{
	uint32_t w = (uint32_t)box[3][x & 0xff] << 24 | (uint32_t)box[2][x >> 8 & 0xff] << 16 |
		     (uint32_t)box[0][x >> 24] << 8 | box[1][x >> 16 & 0xff];

	return w >> 5 | w << 27;
}

static void plain_block(const struct rxw_fcrypt *f, const uint8_t in[8], uint8_t out[8])
{
	uint32_t l = 0, r = 0;

	for (unsigned i = 0; i < 4; i++) {
		l = l << 8 | in[i];
		r = r << 8 | in[4 + i];
	}
	for (unsigned i = 0; i < 16; i += 2) {
		l ^= plain_f(f->k[i] ^ r);
		r ^= plain_f(f->k[i + 1] ^ l);
	}
	for (unsigned i = 0; i < 4; i++) {
		out[i] = (uint8_t)(l >> (24 - 8 * i));
		out[4 + i] = (uint8_t)(r >> (24 - 8 * i));
	}
}

static void plain_pcbc(const struct rxw_fcrypt *f, const uint8_t iv[8], uint8_t *p, size_t blocks)
{
	uint8_t x[8], in[8];

	memcpy(x, iv, 8);
	for (; blocks > 0; blocks--, p += 8) {
		for (unsigned i = 0; i < 8; i++) {
			in[i] = p[i] ^ x[i];
			x[i] = p[i];
		}
		plain_block(f, in, p);
		for (unsigned i = 0; i < 8; i++)
			x[i] ^= p[i];
	}
}

static uint64_t number_of(const uint8_t p[8])
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

START_TEST(key_schedule)
{
	json_t *root = vectors_load("rxkad-primitives.json"), *v;
	size_t i;

	json_array_foreach(member(root, "fcryptKeySchedule"), i, v) {
		struct rxw_fcrypt f;
		uint8_t key[8];
		json_t *words = member(v, "words");

		bytes_of(v, "key", key, 8);
		rxw_fcrypt_key(&f, key);
		ck_assert_uint_eq(json_array_size(words), 16);
		for (unsigned r = 0; r < 16; r++)
			ck_assert_uint_eq(
				strtoul(json_string_value(json_array_get(words, r)), NULL, 16),
				f.k[r]);
	}
	ck_assert_uint_eq(i, 2);
	json_decref(root);
}
END_TEST

/* Parity bits of a key make no difference. */
START_TEST(key_parity_is_ignored)
{
	struct rxw_fcrypt a, b;
	uint8_t key[8];

	fill(key, sizeof(key));
	rxw_fcrypt_key(&a, key);
	for (unsigned i = 0; i < 8; i++)
		key[i] ^= 1;
	rxw_fcrypt_key(&b, key);
	ck_assert_mem_eq(&a, &b, sizeof(a));
}
END_TEST

START_TEST(ecb_vectors)
{
	json_t *root = vectors_load("rxkad-primitives.json"), *v;
	size_t i;

	json_array_foreach(member(root, "fcryptEcb"), i, v) {
		struct rxw_fcrypt f;
		uint8_t key[8], plain[8], cipher[8], got[8];

		bytes_of(v, "key", key, 8);
		bytes_of(v, "plain", plain, 8);
		bytes_of(v, "cipher", cipher, 8);
		rxw_fcrypt_key(&f, key);
		memcpy(got, plain, 8);
		rxw_fcrypt_encrypt(&f, got, 1);
		ck_assert_mem_eq(got, cipher, 8);
		rxw_fcrypt_decrypt(&f, got, 1);
		ck_assert_mem_eq(got, plain, 8);
	}
	ck_assert_uint_eq(i, 20);
	json_decref(root);
}
END_TEST

START_TEST(pcbc_vectors)
{
	json_t *root = vectors_load("rxkad-primitives.json"), *v;
	size_t i;

	json_array_foreach(member(root, "fcryptPcbc"), i, v) {
		struct rxw_fcrypt f;
		uint8_t key[8], iv[8];
		size_t size, same;
		uint8_t *plain = bytes(v, "plain", &size), *cipher = bytes(v, "cipher", &same);
		uint8_t *got = malloc(size);
		struct rxw_fcrypt_text t = {got, size / 8, 0};

		bytes_of(v, "key", key, 8);
		bytes_of(v, "iv", iv, 8);
		ck_assert_uint_eq(size, same);
		rxw_fcrypt_key(&f, key);
		memcpy(got, plain, size);
		t.x = number_of(iv);
		rxw_fcrypt_pcbc_encrypt(&f, &t, 1);
		ck_assert_mem_eq(got, cipher, size);
		t = (struct rxw_fcrypt_text){got, size / 8, number_of(iv)};
		rxw_fcrypt_pcbc_decrypt(&f, &t, 1);
		ck_assert_mem_eq(got, plain, size);
		free(plain);
		free(cipher);
		free(got);
	}
	ck_assert_uint_eq(i, 5);
	json_decref(root);
}
END_TEST

/* Every count around the number of parallel chains, at an odd address. */
START_TEST(blocks_of_any_count)
{
	enum { MOST = 200 };
	static uint8_t in[8 * MOST + 1], out[8 * MOST + 2], want[8 * MOST];

	for (size_t blocks = 0; blocks <= MOST; blocks++) {
		struct rxw_fcrypt f;
		uint8_t key[8];

		fill(key, sizeof(key));
		fill(in, sizeof(in));
		rxw_fcrypt_key(&f, key);
		for (size_t b = 0; b < blocks; b++)
			plain_block(&f, in + 1 + 8 * b, want + 8 * b);
		memset(out, 0xa5, sizeof(out));
		memcpy(out + 1, in + 1, 8 * blocks);
		rxw_fcrypt_encrypt(&f, out + 1, blocks);
		ck_assert_mem_eq(out + 1, want, 8 * blocks);
		ck_assert_uint_eq(out[0], 0xa5);
		ck_assert_uint_eq(out[1 + 8 * blocks], 0xa5);
		rxw_fcrypt_decrypt(&f, out + 1, blocks);
		ck_assert_mem_eq(out + 1, in + 1, 8 * blocks);
		ck_assert_uint_eq(out[1 + 8 * blocks], 0xa5);
	}
}
END_TEST

/*
 * Many texts of mixed lengths, each in its own allocation, so that sanitizers detect reads beyond
 * it.
 */
START_TEST(texts_of_any_length)
{
	enum { MOST = 150 };
	struct rxw_fcrypt_text texts[MOST];
	uint8_t *data[MOST], *plain[MOST], *want[MOST], iv[MOST][8];
	size_t blocks[MOST];

	for (unsigned turn = 0; turn < 60; turn++) {
		size_t count = turn < 20 ? turn : rxw_prng(&state) % (MOST + 1);
		bool alike = turn % 3 == 0;
		struct rxw_fcrypt f;
		uint8_t key[8];

		fill(key, sizeof(key));
		rxw_fcrypt_key(&f, key);
		for (size_t i = 0; i < count; i++) {
			blocks[i] = alike ? 37 : rxw_prng(&state) % 40;
			data[i] = malloc(8 * blocks[i] + 1);
			plain[i] = malloc(8 * blocks[i] + 1);
			want[i] = malloc(8 * blocks[i] + 1);
			fill(plain[i], 8 * blocks[i]);
			fill(iv[i], 8);
			memcpy(want[i], plain[i], 8 * blocks[i]);
			plain_pcbc(&f, iv[i], want[i], blocks[i]);
			memcpy(data[i], plain[i], 8 * blocks[i]);
			texts[i] = (struct rxw_fcrypt_text){data[i], blocks[i], number_of(iv[i])};
		}
		rxw_fcrypt_pcbc_encrypt(&f, texts, count);
		for (size_t i = 0; i < count; i++) {
			ck_assert_mem_eq(data[i], want[i], 8 * blocks[i]);
			texts[i] = (struct rxw_fcrypt_text){data[i], blocks[i], number_of(iv[i])};
		}
		rxw_fcrypt_pcbc_decrypt(&f, texts, count);
		for (size_t i = 0; i < count; i++) {
			ck_assert_mem_eq(data[i], plain[i], 8 * blocks[i]);
			free(data[i]);
			free(plain[i]);
			free(want[i]);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fcrypt");
	TCase *tc = tcase_create("fcrypt");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_unchecked_fixture(tc, load_boxes, NULL);
	tcase_add_test(tc, key_schedule);
	tcase_add_test(tc, key_parity_is_ignored);
	tcase_add_test(tc, ecb_vectors);
	tcase_add_test(tc, pcbc_vectors);
	tcase_add_test(tc, blocks_of_any_count);
	tcase_add_test(tc, texts_of_any_length);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
