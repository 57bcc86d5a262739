/* SPDX-License-Identifier: BSD-2-Clause */
/* Session keys, parity, weak keys and checksums: the vectors, and cases that they lack. */
#include "vectors.h"

#include "base/wire.h"
#include "rxkad/rxkad_conn.h"
#include "rxkad/derive.h"
#include "rxwire/error.h"

static json_t *root;

static void setup(void)
{
	root = vectors_load("rxkad-primitives.json");
}

static void teardown(void)
{
	json_decref(root);
}

START_TEST(C_054_session_keys)
{
	json_t *v;
	size_t i;

	json_array_foreach(member(root, "rxkadKdf"), i, v)
	{
		uint8_t want[8], got[8], *key;
		size_t size;

		key = bytes(v, "ticketSessionKey", &size);
		bytes_of(v, "desKey", want, 8);
		ck_assert_int_eq(rxw_rxkad_session_key(size == 16 ? 17 : 18, key, size, got), 0);
		ck_assert_mem_eq(got, want, 8);
		ck_assert(rxw_des_key_usable(got));
		free(key);
	}
	ck_assert_uint_eq(i, 5);
}
END_TEST

/* Enctypes from which keys are derived, those used directly, and refused ones. */
START_TEST(C_054_enctypes)
{
	uint8_t key[32], got[8], other[8];

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(3 * i + 1);
	for (int32_t enctype = -3; enctype <= 40; enctype++) {
		bool des = enctype >= 1 && enctype <= 3;
		bool des3 = enctype == 5 || enctype == 7 || enctype == 16;
		int want = des || des3 || enctype > 16 ? 0 : -RXW_ENOTSUP;

		ck_assert_int_eq(rxw_rxkad_session_key(enctype, key,
						       des    ? 8
						       : des3 ? 24
							      : 16,
						       got),
				 want);
		if (des)
			ck_assert_mem_eq(got, key, 8);
		if (want == 0)
			ck_assert_int_eq(rxw_rxkad_session_key(enctype, key,
							       des    ? 7
							       : des3 ? 23
								      : 6,
							       got),
					 -RXW_EINVAL);
	}
	/* Parity bits of triple DES do not count; the upper seven bits of the eighth byte do. */
	ck_assert_int_eq(rxw_rxkad_session_key(16, key, 24, got), 0);
	for (unsigned i = 0; i < 24; i += 8) {
		for (unsigned j = 0; j < 7; j++)
			key[i + j] ^= 1;
		key[i + 7] ^= 1;
	}
	ck_assert_int_eq(rxw_rxkad_session_key(16, key, 24, other), 0);
	ck_assert_mem_eq(got, other, 8);
	key[7] ^= 2;
	ck_assert_int_eq(rxw_rxkad_session_key(16, key, 24, other), 0);
	ck_assert_mem_ne(got, other, 8);
}
END_TEST

START_TEST(parity)
{
	json_t *v;
	size_t i;

	json_array_foreach(member(root, "oddParity"), i, v)
	{
		uint8_t key[8], want[8];

		bytes_of(v, "input", key, 8);
		bytes_of(v, "output", want, 8);
		rxw_des_set_parity(key);
		ck_assert_mem_eq(key, want, 8);
	}
	ck_assert_uint_eq(i, 3);
}
END_TEST

START_TEST(C_054_weak_keys)
{
	json_t *v, *keys = member(root, "weakDesKeys");
	uint8_t key[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
	size_t i;

	ck_assert(rxw_des_key_usable(key));
	for (unsigned bit = 0; bit < 8; bit++) {
		key[bit] ^= 1;
		ck_assert(!rxw_des_key_usable(key));
		key[bit] ^= 1;
	}
	json_array_foreach(keys, i, v)
	{
		size_t size;
		uint8_t *weak = unhex(json_string_value(v), &size);

		ck_assert_uint_eq(size, 8);
		ck_assert(!rxw_des_key_usable(weak));
		/* The key is refused, not its parity. */
		weak[3] ^= 0x06;
		ck_assert(rxw_des_key_usable(weak));
		free(weak);
	}
	ck_assert_uint_eq(i, 16);
}
END_TEST

START_TEST(header_checksums)
{
	json_t *v;
	size_t i;

	json_array_foreach(member(root, "headerChecksum"), i, v)
	{
		struct rxw_security_packet packet = {.channel = hex_number(v, "cid") & 3};
		struct rxw_rxkad_conn c = {.index = (uint32_t)number(v, "securityIndex"),
					   .epoch = hex_number(v, "epoch"),
					   .cid = hex_number(v, "cid") & ~3u};
		uint8_t key[8], preseq[8];

		bytes_of(v, "key", key, 8);
		bytes_of(v, "preSeq", preseq, 8);
		rxw_rxkad_set_key(&c, key);
		ck_assert_uint_eq(c.preseq, rxw_rxkad_number(preseq));
		packet.call = (uint32_t)number(v, "callNumber");
		packet.seq = (uint32_t)number(v, "seq");
		ck_assert_int_eq(rxw_rxkad_seal(&c, &packet, 1), 0);
		ck_assert_uint_eq(packet.spare, hex_number(v, "checksum"));
	}
	ck_assert_uint_eq(i, 12);
}
END_TEST

START_TEST(response_checksums)
{
	json_t *v;
	size_t i;

	json_array_foreach(member(root, "responseChecksum"), i, v)
	{
		uint8_t in[56], same[56];

		bytes_of(v, "input", in, sizeof(in));
		memcpy(same, in, sizeof(in));
		memset(same + 16, 0, 4);
		/* The field itself does not count. */
		ck_assert_uint_eq(rxw_rxkad_response_checksum(in),
				  rxw_rxkad_response_checksum(same));
		if (memcmp(in, same, sizeof(in)) == 0)
			ck_assert_uint_eq(rxw_rxkad_response_checksum(in),
					  hex_number(v, "checksum"));
	}
	ck_assert_uint_eq(i, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("derive");
	TCase *tc = tcase_create("derive");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, C_054_session_keys);
	tcase_add_test(tc, C_054_enctypes);
	tcase_add_test(tc, parity);
	tcase_add_test(tc, C_054_weak_keys);
	tcase_add_test(tc, header_checksums);
	tcase_add_test(tc, response_checksums);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
