/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encryption types against libkrb5: each decrypts the other's messages, and derived keys agree.
 */
#include "tests/rx/base/testing.h"

#include <krb5.h>

#include "rxgk/crypto.h"

#define LENGTH_MAX 2000

static const krb5_cksumtype checksums[] = {
	CKSUMTYPE_HMAC_SHA1_96_AES128, CKSUMTYPE_HMAC_SHA1_96_AES256,
	CKSUMTYPE_HMAC_SHA256_128_AES128, CKSUMTYPE_HMAC_SHA384_192_AES256};

static krb5_keyblock block(const struct rxw_gk_enctype *e, const uint8_t *key)
{
	return (krb5_keyblock){.enctype = e->id, .length = e->key_length, .contents = (void *)key};
}

static krb5_data data_of(void *p, size_t length)
{
	return (krb5_data){.data = (char *)p, .length = (unsigned)length};
}

/* Encrypts with one, decrypts with the other, both ways; MICs are equal. */
static void one_message(uint64_t *seed, const struct rxw_gk_enctype *e, size_t length)
{
	uint8_t key[32], plain[LENGTH_MAX], text[LENGTH_MAX + 64], out[LENGTH_MAX], mic[24];
	uint32_t usage = (uint32_t)(1026 + test_below(seed, 11));
	size_t size = 16 + length + e->mac_length;
	krb5_keyblock k = block(e, key);
	krb5_enc_data enc = {.enctype = e->id, .ciphertext = data_of(text, size)};
	krb5_data p = data_of(plain, length), o = data_of(out, length);
	krb5_checksum sum;
	struct rxw_gk_protect kc;
	size_t half = length / 2;

	test_fill(seed, key, sizeof(key));
	test_fill(seed, plain, length);
	test_fill(seed, text, 16);
	memcpy(text + 16, plain, length);
	ck_assert_int_eq(rxw_gk_encrypt_once(e, key, usage, text, 16 + length), 0);
	ck_assert_int_eq(krb5_c_decrypt(NULL, &k, (krb5_keyusage)usage, NULL, &enc, &o), 0);
	ck_assert_uint_eq(o.length, length);
	ck_assert_int_eq(memcmp(out, plain, length), 0);

	ck_assert_int_eq(krb5_c_encrypt(NULL, &k, (krb5_keyusage)usage, NULL, &p, &enc), 0);
	ck_assert_uint_eq(enc.ciphertext.length, size);
	ck_assert_int_eq(rxw_gk_decrypt_once(e, key, usage, text, size), 0);
	ck_assert_int_eq(memcmp(text + 16, plain, length), 0);

	ck_assert_int_eq(krb5_c_make_checksum(NULL, checksums[e->id - 17], &k,
					      (krb5_keyusage)usage, &p, &sum), 0);
	ck_assert_int_eq(rxw_gk_protect_init(&kc, e, key, usage, false), 0);
	rxw_gk_mic(&kc, plain, half, plain + half, length - half, mic);
	ck_assert_uint_eq(sum.length, e->mac_length);
	ck_assert_int_eq(memcmp(sum.contents, mic, sum.length), 0);
	krb5_free_checksum_contents(NULL, &sum);
}

/* libkrb5 makes no message without plain text, so the minimum is one byte. */
START_TEST(messages_of_libkrb5)
{
	uint64_t seed = test_seed();

	for (const int32_t *id = rxw_gk_enctypes; *id; id++) {
		const struct rxw_gk_enctype *e = rxw_gk_enctype(*id);

		ck_assert_int_eq(e->id, *id);
		for (size_t length = 1; length < 100; length++)
			one_message(&seed, e, length);
		for (int i = 0; i < 50; i++)
			one_message(&seed, e, 1 + test_below(&seed, LENGTH_MAX - 1));
	}
}
END_TEST

START_TEST(other_types_are_unknown)
{
	for (int32_t id = -3; id < 40; id++)
		ck_assert_int_eq(rxw_gk_enctype(id) != NULL, id >= 17 && id <= 20);
	ck_assert_ptr_null(rxw_gk_enctype(INT32_MAX));
	ck_assert_ptr_null(rxw_gk_enctype(INT32_MIN));
}
END_TEST

/* Any changed bit and any truncation is refused. */
START_TEST(changed_messages)
{
	uint64_t seed = test_seed();

	for (const int32_t *id = rxw_gk_enctypes; *id; id++) {
		const struct rxw_gk_enctype *e = rxw_gk_enctype(*id);
		uint8_t key[32], text[128], copy[128];
		struct rxw_gk_protect p;
		EVP_CIPHER_CTX *enc, *dec;
		size_t size = 16 + 24 + 5 + e->mac_length;

		test_fill(&seed, key, sizeof(key));
		test_fill(&seed, text, sizeof(text));
		ck_assert_int_eq(rxw_gk_protect_init(&p, e, key, 1026, true), 0);
		enc = rxw_gk_cipher_new(&p, true);
		dec = rxw_gk_cipher_new(&p, false);
		ck_assert(enc && dec);
		ck_assert_int_eq(rxw_gk_encrypt(&p, enc, text, 16 + 24 + 5), 0);
		for (size_t bit = 0; bit < 8 * size; bit++) {
			memcpy(copy, text, size);
			copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
			ck_assert_int_lt(rxw_gk_decrypt(&p, dec, copy, size), 0);
		}
		for (size_t less = 0; less < size; less++) {
			memcpy(copy, text, size);
			ck_assert_int_lt(rxw_gk_decrypt(&p, dec, copy, less), 0);
		}
		/* The context works as before afterwards. */
		memcpy(copy, text, size);
		ck_assert_int_eq(rxw_gk_decrypt(&p, dec, copy, size), 0);
		EVP_CIPHER_CTX_free(enc);
		EVP_CIPHER_CTX_free(dec);
	}
}
END_TEST

/* The same message is another one under another usage. */
START_TEST(usages_differ)
{
	uint8_t key[32] = {7}, text[64] = {1};
	const struct rxw_gk_enctype *e = rxw_gk_enctype(20);

	ck_assert_int_eq(rxw_gk_encrypt_once(e, key, RXW_GK_CLIENT_ENC_PACKET, text, 40), 0);
	ck_assert_int_lt(rxw_gk_decrypt_once(e, key, RXW_GK_SERVER_ENC_PACKET, text, 64), 0);
}
END_TEST

START_TEST(prf_of_libkrb5)
{
	uint64_t seed = test_seed();

	for (const int32_t *id = rxw_gk_enctypes; *id; id++) {
		const struct rxw_gk_enctype *e = rxw_gk_enctype(*id);

		for (size_t length = 1; length <= 64; length++) {
			uint8_t key[32], text[64], ours[48], theirs[48];
			krb5_keyblock k = block(e, key);
			krb5_data in = data_of(text, length), out = data_of(theirs, e->prf_length);
			size_t prf;

			test_fill(&seed, key, sizeof(key));
			test_fill(&seed, text, length);
			ck_assert_int_eq(krb5_c_prf_length(NULL, e->id, &prf), 0);
			ck_assert_uint_eq(prf, e->prf_length);
			ck_assert_int_eq(krb5_c_prf(NULL, &k, &in, &out), 0);
			ck_assert_int_eq(rxw_gk_prf(e, key, text, length, ours), 0);
			ck_assert_int_eq(memcmp(ours, theirs, prf), 0);
		}
	}
}
END_TEST

/* Every pair of types; the combined key has the first one's type in libkrb5. */
START_TEST(combined_keys_of_libkrb5)
{
	uint64_t seed = test_seed();
	char pepper0[] = "AFS", pepper1[] = "rxgk";

	for (int32_t a = 17; a <= 20; a++) {
		for (int32_t b = 17; b <= 20; b++) {
			const struct rxw_gk_enctype *ta = rxw_gk_enctype(a),
						    *tb = rxw_gk_enctype(b);
			uint8_t ka[32], kb[32], ours[32];
			krb5_keyblock k0 = block(ta, ka), k1 = block(tb, kb), *out;

			test_fill(&seed, ka, sizeof(ka));
			test_fill(&seed, kb, sizeof(kb));
			ck_assert_int_eq(krb5_c_fx_cf2_simple(NULL, &k0, pepper0, &k1, pepper1,
							      &out), 0);
			ck_assert_int_eq(rxw_gk_combine_keys(ta, ka, tb, kb, ta, ours), 0);
			ck_assert_uint_eq(out->length, ta->key_length);
			ck_assert_int_eq(memcmp(out->contents, ours, out->length), 0);
			krb5_free_keyblock(NULL, out);
		}
	}
}
END_TEST

TEST_MAIN("rxgk_crypto", messages_of_libkrb5, other_types_are_unknown, changed_messages,
	  usages_differ, prf_of_libkrb5, combined_keys_of_libkrb5)
