/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens without a KDC: made with the service's keys, refused with a reason; the encrypted part of
 * a ticket.
 */

#include "tests/rx/base/testing.h"

#include "token/cell_ticket.h"

#include <netinet/in.h>
#include <rxwire/rxwire.h>

static char error[300];

static int create(struct rxw_token_options *options, rxw_token **token)
{
	options->size = sizeof(*options);
	return rxw_token_create(options, token, error, sizeof(error));
}

START_TEST(made_with_service_keys)
{
	static const uint8_t indexes[] = { 2, 4 };
	rxw_keys *keys;
	rxw_token *token;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 1, 18), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, 1, 20), 0);
	for (int i = 0; i < 2; i++) {
		struct rxw_token_options o = {
			.source = RXW_TOKEN_LOCAL, .index = indexes[i], .level = 2, .keys = keys};
		struct rxw_token_details info = { .size = sizeof(info) };

		ck_assert_msg(create(&o, &token) == 0, "%s", error);
		ck_assert_ptr_nonnull(rxw_token_security(token));
		ck_assert_int_eq(rxw_token_info(token, &info), 0);
		ck_assert_uint_eq(info.index, indexes[i]);
		ck_assert_uint_eq(info.level, 2);
		ck_assert(info.local);
		ck_assert_ptr_null(info.client);
		rxw_token_unref(rxw_token_ref(token));
		rxw_token_unref(token);

		o.client = "alice@EXAMPLE.ORG";
		o.lifetime_s = 600;
		ck_assert_msg(create(&o, &token) == 0, "%s", error);
		ck_assert_int_eq(rxw_token_info(token, &info), 0);
		ck_assert_str_eq(info.client, "alice@EXAMPLE.ORG");
		ck_assert_int_ne(info.expires, INT64_MAX);
		rxw_token_unref(token);
	}
	rxw_keys_unref(keys);
}
END_TEST

START_TEST(refused_with_a_reason)
{
	const struct sockaddr_in nobody = { .sin_family = AF_INET };
	struct rxw_token_options o = { .source = RXW_TOKEN_LOCAL, .index = 2 };
	rxw_keys *keys;
	rxw_token *token;

	/* Without this machine's Kerberos configuration. */
	setenv("KRB5_CONFIG", "/dev/null", 1);
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(create(&o, &token), -RXW_EINVAL);
	ck_assert_ptr_null(token);
	o.keys = keys;
	ck_assert_int_eq(create(&o, &token), -RXW_ENOKEY);
	o.index = 4;
	ck_assert_int_eq(create(&o, &token), -RXW_ENOKEY);
	o.index = 9;
	ck_assert_int_eq(create(&o, &token), -RXW_ENOTSUP);
	o.level = 3;
	ck_assert_int_eq(create(&o, &token), -RXW_EINVAL);
	o = (struct rxw_token_options){
		.index = 2, .cell = "example.org", .cache = "FILE:/nonexistent/cache"};
	ck_assert_int_eq(create(&o, &token), -RXW_ENOKEY);
	ck_assert_msg(strstr(error, "kinit") != NULL, "%s", error);
	/* rxgk needs the address of the negotiation service, then the same tickets. */
	o.index = 4;
	ck_assert_int_eq(create(&o, &token), -RXW_EINVAL);
	ck_assert_msg(strstr(error, "negotiation service") != NULL, "%s", error);
	o.server = (struct sockaddr *)&nobody;
	o.server_len = sizeof(nobody);
	ck_assert_int_eq(create(&o, &token), -RXW_ENOKEY);
	ck_assert_msg(strstr(error, "kinit") != NULL, "%s", error);
	o.index = 2;
	o.cell = NULL;
	ck_assert_int_eq(create(&o, &token), -RXW_EINVAL);
	o.cell = "example.org";
	o.source = RXW_TOKEN_KEYTAB;
	ck_assert_int_eq(create(&o, &token), -RXW_EINVAL);
	o.keytab = "/nonexistent/keytab";
	ck_assert_int_eq(create(&o, &token), -RXW_ENOKEY);
	ck_assert_msg(strstr(error, "/nonexistent/keytab") != NULL, "%s", error);
	ck_assert_int_eq(rxw_token_create(&(struct rxw_token_options){.size = 0}, &token, NULL, 0),
			 -RXW_EINVAL);
	rxw_token_unref(NULL);
	rxw_keys_unref(keys);
}
END_TEST

START_TEST(encrypted_part)
{
	/* [APPLICATION 1] SEQUENCE { [0] 5, [1] "R", [2] {}, [3] "enc" } */
	static const uint8_t good[] = {0x61, 0x13, 0x30, 0x11, 0xa0, 0x03, 2,
				       1,    5,	   0xa1, 0x03, 0x1b, 1,	   'R',
				       0xa2, 0x00, 0xa3, 0x03, 'e',  'n',  'c'};
	const uint8_t *part;
	uint8_t copy[sizeof(good)], *cut;
	size_t length;

	ck_assert(rxw_ticket_encrypted_part(good, sizeof(good), &part, &length));
	ck_assert_uint_eq(length, 3);
	ck_assert_mem_eq(part, "enc", 3);
	for (size_t n = 0; n < sizeof(good); n++) {
		cut = malloc(n ? n : 1);
		memcpy(cut, good, n);
		ck_assert(!rxw_ticket_encrypted_part(cut, n, &part, &length));
		free(cut);
	}
	for (size_t i = 0; i < 8 * sizeof(good); i++) {
		memcpy(copy, good, sizeof(good));
		copy[i / 8] ^= (uint8_t)(1 << i % 8);
		if (rxw_ticket_encrypted_part(copy, sizeof(copy), &part, &length))
			ck_assert(part >= copy && length <= sizeof(copy) - (size_t)(part - copy));
	}
}
END_TEST

TEST_MAIN("token", made_with_service_keys, refused_with_a_reason, encrypted_part)
