/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of service keys: look-up, refusals, and both with concurrent readers. */

#include "keys/keys.h"
#include "tests/rx/base/testing.h"

#include <rxwire/error.h>
#include <rxwire/keys.h>
#include <rxwire/token.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static rxw_keys *create(void)
{
	rxw_keys *keys;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	return keys;
}

START_TEST(found_by_three_numbers)
{
	rxw_keys *keys = create();
	uint8_t key[32], out[RXW_KEY_MAX];
	size_t length = 0;

	memset(key, 1, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 3, 18, key, 32), 0);
	memset(key, 2, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_RXGK, 3, 18, key, 32), 0);
	memset(key, 3, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 4, 18, key, 32), 0);
	memset(key, 4, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 3, 17, key, 16), 0);
	memset(key, 5, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_DES, 3, 1, key, 8), 0);

	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 3, 18, out, sizeof(out), &length), 0);
	ck_assert_uint_eq(length, 32);
	ck_assert_uint_eq(out[31], 1);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_RXGK, 3, 18, out, sizeof(out), &length), 0);
	ck_assert_uint_eq(out[31], 2);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 4, 18, out, sizeof(out), &length), 0);
	ck_assert_uint_eq(out[31], 3);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 3, 17, out, 16, &length), 0);
	ck_assert_uint_eq(length, 16);
	ck_assert_uint_eq(out[15], 4);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_DES, 3, 3, out, 8, &length), 0);
	ck_assert_uint_eq(length, 8);
	ck_assert_uint_eq(out[0], 5);

	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 5, 18, out, sizeof(out), &length),
			 -RXW_ENOKEY);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 3, 20, out, sizeof(out), &length),
			 -RXW_ENOKEY);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_RXGK, 4, 18, out, sizeof(out), &length),
			 -RXW_ENOKEY);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 3, 18, out, 31, &length), -RXW_ELIMIT);
	rxw_keys_unref(keys);
}
END_TEST

START_TEST(added_again_is_replaced)
{
	rxw_keys *keys = create();
	struct rxw_key_info info = { .size = sizeof(info) };
	uint8_t out[RXW_KEY_MAX];
	size_t length;

	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 3, 17, "0123456789abcdef", 16), 0);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 3, 17, "fedcba9876543210", 16), 0);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 3, 17, out, sizeof(out), &length), 0);
	ck_assert_mem_eq(out, "fedcba9876543210", 16);
	ck_assert_int_eq(rxw_keys_info(keys, 0, &info), 0);
	ck_assert_int_eq(info.type, RXW_KEY_KRB5);
	ck_assert_int_eq(info.kvno, 3);
	ck_assert_int_eq(info.enctype, 17);
	ck_assert_uint_eq(info.length, 16);
	ck_assert_int_eq(rxw_keys_info(keys, 1, &info), -RXW_ENOKEY);
	info.size = 0;
	ck_assert_int_eq(rxw_keys_info(keys, 0, &info), -RXW_EINVAL);
	rxw_keys_unref(keys);
}
END_TEST

START_TEST(best_is_newest_then_strongest)
{
	static const struct {
		int32_t kvno, enctype, best_kvno, best_enctype;
	} steps[] = {
		{3, 23, 3, 23}, {3, 16, 3, 16}, {3, 17, 3, 17}, {3, 18, 3, 18}, {3, 19, 3, 18},
		{3, 20, 3, 20}, {4, 17, 4, 17}, {2, 20, 4, 17}, {4, 19, 4, 19}, {4, 99, 4, 19},
	};
	rxw_keys *keys = create();
	uint8_t out[RXW_KEY_MAX];
	int32_t kvno, enctype;
	size_t length;

	ck_assert_int_eq(
		rxw_keys_best(keys, RXW_KEY_KRB5, &kvno, &enctype, out, sizeof(out), &length),
		-RXW_ENOKEY);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int32_t e = steps[i].enctype;
		size_t n = e == 16 ? 24 : e == 18 || e == 20 ? 32 : 16;

		memset(out, (int)i, sizeof(out));
		ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, steps[i].kvno, e, out, n), 0);
		ck_assert_int_eq(rxw_keys_best(keys, RXW_KEY_KRB5, &kvno, &enctype, out,
					       sizeof(out), &length),
				 0);
		ck_assert_int_eq(kvno, steps[i].best_kvno);
		ck_assert_int_eq(enctype, steps[i].best_enctype);
	}
	ck_assert_int_eq(rxw_keys_best(keys, RXW_KEY_KRB5, NULL, NULL, out, 15, &length),
			 -RXW_ELIMIT);
	ck_assert_int_eq(rxw_keys_best(keys, RXW_KEY_RXGK, NULL, NULL, out, 64, &length),
			 -RXW_ENOKEY);
	rxw_keys_unref(keys);
}
END_TEST

START_TEST(refused)
{
	rxw_keys *keys = create();
	uint8_t key[RXW_KEY_MAX + 1] = { 0 };

	ck_assert_int_eq(rxw_keys_add(keys, (enum rxw_key_type)3, 1, 18, key, 32), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, -1, 18, key, 32), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 1, 0, key, 32), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 1, 18, key, 16), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 1, 99, key, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 1, 99, key, RXW_KEY_MAX + 1),
			 -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_DES, 1, 0, key, 7), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_DES, 1, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 1, 16), -RXW_EINVAL);
	for (int32_t i = 0; i < RXW_KEYS_MAX; i++)
		ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, i, 17 + i % 4), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, RXW_KEYS_MAX, 18), -RXW_ELIMIT);
	rxw_keys_unref(keys);
	rxw_keys_unref(NULL);
}
END_TEST

static atomic_bool stop;

/* A look-up returns a complete key of either version: all of its bytes are equal. */
static void *look(void *context)
{
	rxw_keys *keys = context;
	uint8_t out[32];
	size_t length;

	do {
		int result = rxw_keys_find(keys, RXW_KEY_KRB5, 7, 18, out, sizeof(out), &length);

		if (result != 0 || length != 32)
			return "not found";
		for (size_t i = 1; i < 32; i++) {
			if (out[i] != out[0])
				return "a mixture of two keys";
		}
	} while (!atomic_load(&stop));
	rxw_keys_unref(keys);
	return NULL;
}

START_TEST(changed_during_lookups)
{
	rxw_keys *keys = create();
	pthread_t thread[3];
	uint8_t key[32];
	void *wrong;

	memset(key, 0, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 7, 18, key, 32), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, look, rxw_keys_ref(keys)), 0);
	for (int i = 0; i < 2000; i++) {
		memset(key, i, sizeof(key));
		ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 7, 18, key, 32), 0);
		if (i < 500)
			ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, i, 20), 0);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &wrong);
		ck_assert_msg(!wrong, "%s", (char *)wrong);
	}
	rxw_keys_unref(keys);
}
END_TEST

/* Missing arguments are refused, or nothing is done. */
START_TEST(missing_arguments)
{
	struct rxw_key_info info = { .size = sizeof(info) };
	struct rxw_token_options options = { .size = sizeof(options) };
	struct rxw_token_details token_info = { .size = sizeof(token_info) };
	rxw_keys *keys = create();
	uint8_t key[32] = { 0 };
	rxw_token *token;
	char error[64];
	size_t length;

	ck_assert_int_eq(rxw_keys_create(NULL), -RXW_EINVAL);
	ck_assert_ptr_null(rxw_keys_ref(NULL));
	rxw_keys_unref(NULL);
	ck_assert_int_eq(rxw_keys_add(NULL, RXW_KEY_KRB5, 1, 18, key, 32), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 1, 18, NULL, 32), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_generate(NULL, RXW_KEY_KRB5, 1, 18), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_find(NULL, RXW_KEY_KRB5, 1, 18, key, 32, &length), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 1, 18, NULL, 32, &length), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 1, 18, key, 32, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_best(NULL, RXW_KEY_KRB5, NULL, NULL, key, 32, &length),
			 -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_best(keys, RXW_KEY_KRB5, NULL, NULL, NULL, 32, &length),
			 -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_best(keys, RXW_KEY_KRB5, NULL, NULL, key, 32, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_info(NULL, 0, &info), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_info(keys, 0, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_load(NULL, "x", NULL, error, sizeof(error)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_load(keys, NULL, NULL, error, sizeof(error)), -RXW_EINVAL);
	ck_assert_int_lt(rxw_keys_load(keys, "/nonexistent/keys", NULL, NULL, 10), 0);
	ck_assert_int_eq(rxw_keys_reload(NULL, error, sizeof(error)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_write(NULL, "x", 0, error, sizeof(error)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_keys_write(keys, NULL, 0, error, sizeof(error)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_token_create(&options, NULL, error, sizeof(error)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_token_create(NULL, &token, NULL, sizeof(error)), -RXW_EINVAL);
	ck_assert_ptr_null(rxw_token_ref(NULL));
	rxw_token_unref(NULL);
	ck_assert_ptr_null(rxw_token_security(NULL));
	ck_assert_int_eq(rxw_token_info(NULL, &token_info), -RXW_EINVAL);
	rxw_keys_unref(keys);
}
END_TEST

TEST_MAIN("keys", missing_arguments, found_by_three_numbers, added_again_is_replaced,
	  best_is_newest_then_strongest, refused, changed_during_lookups)
