/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets: printed and opened again under each enctype, times, names, and hostile input. */
#include "vectors.h"

#include <openssl/evp.h>
#include <openssl/err.h>
#include <openssl/provider.h>

#include "base/hash.h"
#include "rxkad/ticket.h"
#include "rxkad/derive.h"
#include "rxwire/error.h"

#define NOW 1795229458
#define DAY 86400

static rxw_keys *keys;
static struct rxw_rxkad_opener opener;
static struct rxw_rxkad_ticket ticket;

static void setup(void)
{
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	opener = (struct rxw_rxkad_opener){.keys = keys, .now = NOW};
	memset(&ticket, 0, sizeof(ticket));
}

static void teardown(void)
{
	rxw_keys_unref(keys);
}

/* The text that OpenAFS prints for itself, byte for byte. */
START_TEST(printed_clear)
{
	json_t *root = vectors_load("rxkad-exchanges.json");

	for (size_t i = 0; i < 4; i++) {
		json_t *info = member(json_array_get(member(root, "exchanges"), i), "rxkad");
		size_t size, got;
		uint8_t *want = bytes(member(info, "ticketContents"), "encTicketPart", &size);
		uint8_t key[8], out[1024];

		bytes_of(info, "connectionSessionKey", key, 8);
		ck_assert_int_eq(
			rxw_rxkad_print_clear(key, "afs", 0, 0x7fffffff, out, sizeof(out), &got),
			0);
		ck_assert_uint_eq(got, size);
		ck_assert_mem_eq(out, want, size);
		free(want);
	}
	json_decref(root);
}
END_TEST

static const int32_t enctypes[] = {16, 17, 18, 19, 20, 23, 25, 26};

/* A token under a key of each enctype opens to its contents; with another key it does not open. */
START_TEST(print_and_open)
{
	struct rxw_rxkad_print_options options = {.size = sizeof(options),
						  .name = "carol/admin@RXWIRE.TEST"};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	int32_t enctype = enctypes[_i];
	size_t length = enctype == 16					  ? 24
			: enctype == 18 || enctype == 20 || enctype == 26 ? 32
									  : 16;
	uint8_t key[32];

	for (size_t i = 0; i < length; i++)
		key[i] = (uint8_t)(i * 11 + 2);
	/* libkrb5 requires it for triple DES. */
	for (size_t i = 0; enctype == 16 && i < length; i += 8)
		rxw_des_set_parity(key + i);
	if (rxw_keys_add(keys, RXW_KEY_KRB5, 4, enctype, key, length))
		return; /* a library without support for it */
	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), 0);
	ck_assert_int_eq(token.kvno, RXW_RXKAD_KVNO_ENCPART);
	ck_assert(!token.local);
	ck_assert_str_eq(token.client_name, options.name);
	ck_assert_int_eq(
		rxw_rxkad_ticket_open(&opener, 213, token.ticket, token.ticket_length, &ticket), 0);
	ck_assert_mem_eq(ticket.session_key, token.session_key, 8);
	ck_assert_str_eq(ticket.name, "carol");
	ck_assert_str_eq(ticket.instance, "admin");
	ck_assert_str_eq(ticket.cell, "RXWIRE.TEST");
	ck_assert_str_eq(ticket.principal, options.name);
	ck_assert_int_eq(ticket.start, 0);
	ck_assert_int_eq(ticket.end, token.expires);
	ck_assert(!ticket.local);
	key[0] ^= 0x30;
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 4, enctype, key, length), 0);
	ck_assert_int_eq(
		rxw_rxkad_ticket_open(&opener, 213, token.ticket, token.ticket_length, &ticket),
		RXW_RXKAD_BADTICKET);
	rxw_rxkad_token_free(&token);
}
END_TEST

static int64_t then(void *context)
{
	return *(int64_t *)context;
}

static void add_key(void)
{
	uint8_t key[32] = {1, 2, 3};

	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 4, 18, key, sizeof(key)), 0);
}

/* The superuser's token, and one that expires. */
START_TEST(print_local_and_lifetime)
{
	int64_t begin = NOW;
	struct rxw_rxkad_print_options options = {
		.size = sizeof(options), .lifetime_s = 600, .time = then, .time_context = &begin};
	struct rxw_rxkad_token token = {.size = sizeof(token)};

	ck_assert_int_eq(rxw_rxkad_print_token(keys, NULL, &token), -RXW_ENOKEY);
	add_key();
	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), 0);
	ck_assert(token.local);
	ck_assert_int_eq(token.expires, NOW + 600);
	for (int64_t at = NOW - 2000; at <= NOW + 2000; at += 100) {
		int32_t want = at > NOW + 600	? RXW_RXKAD_EXPIRED
			       : at < NOW - 900 ? RXW_RXKAD_NOAUTH
						: 0;

		opener.now = at;
		ck_assert_int_eq(rxw_rxkad_ticket_open(&opener, 213, token.ticket,
						       token.ticket_length, &ticket),
				 want);
	}
	ck_assert(ticket.local);
	rxw_rxkad_token_free(&token);
	options.lifetime_s = 31 * DAY;
	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), -RXW_EINVAL);
	options.lifetime_s = 0;
	options.name = "a/b/c@R";
	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), -RXW_EINVAL);
	options.name = "@R";
	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), -RXW_EINVAL);
}
END_TEST

/* "afs" is the service itself only without a realm and in the configured one. */
START_TEST(local_realm)
{
	struct rxw_rxkad_print_options options = {.size = sizeof(options), .name = "afs@HERE.TEST"};
	struct rxw_rxkad_token token = {.size = sizeof(token)};

	add_key();
	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), 0);
	for (unsigned i = 0; i < 3; i++) {
		static const char *const realms[] = {NULL, "THERE.TEST", "HERE.TEST"};

		opener.local_realm = realms[i];
		ck_assert_int_eq(rxw_rxkad_ticket_open(&opener, 213, token.ticket,
						       token.ticket_length, &ticket),
				 0);
		ck_assert(ticket.local == (i == 2));
	}
	rxw_rxkad_token_free(&token);
}
END_TEST

START_TEST(C_053_times)
{
	static const struct {
		int64_t start, end, now;
		int32_t code;
	} cases[] = {
		{NOW, NOW + 1, NOW, 0},
		{NOW, NOW, NOW, RXW_RXKAD_BADTICKET},
		{NOW + 1, NOW, NOW, RXW_RXKAD_BADTICKET},
		{NOW + 900, NOW + 901, NOW, 0},
		{NOW + 901, NOW + 902, NOW, RXW_RXKAD_NOAUTH},
		{NOW + 900 + 30 * DAY, NOW + 901 + 30 * DAY, NOW, RXW_RXKAD_NOAUTH},
		{NOW + 901 + 30 * DAY, NOW + 902 + 30 * DAY, NOW, RXW_RXKAD_BADTICKET},
		{NOW, NOW + 30 * DAY, NOW, 0},
		{NOW, NOW + 30 * DAY + 1, NOW, RXW_RXKAD_BADTICKET},
		{0, NOW + 4000 * (int64_t)DAY, NOW, 0},
		{NOW, INT64_MAX, NOW, 0},
		{NOW - 10000 * (int64_t)DAY, INT64_MAX, NOW, 0},
		{NOW - 2000, NOW - 900, NOW, 0},
		{NOW - 2000, NOW - 901, NOW, RXW_RXKAD_EXPIRED},
		{NOW - 31 * DAY, NOW - 2 * DAY, NOW, RXW_RXKAD_EXPIRED},
		{NOW - 31 * DAY - 1, NOW - 2 * DAY, NOW, RXW_RXKAD_BADTICKET},
		{0, 5, NOW, RXW_RXKAD_EXPIRED},
		/* Sums that would wrap in 32 bits. */
		{0xfffffff0, 0xfffffff8, 0xfffffff4, 0},
		{0xffffffff, 0x100000010, 0xfffffff0, 0},
		{NOW, NOW + 100, 0x1000000000, RXW_RXKAD_BADTICKET},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int32_t code = rxw_rxkad_check_times(cases[i].start, cases[i].end, cases[i].now);

		ck_assert_msg(code == cases[i].code, "case %zu: %d", i, code);
	}
}
END_TEST

START_TEST(C_053_lifetimes)
{
	ck_assert_int_eq(rxw_rxkad_lifetime(0), 0);
	ck_assert_int_eq(rxw_rxkad_lifetime(127), 38100);
	ck_assert_int_eq(rxw_rxkad_lifetime(128), 38400);
	ck_assert_int_eq(rxw_rxkad_lifetime(160), 326213);
	ck_assert_int_eq(rxw_rxkad_lifetime(191), 2592000);
	ck_assert_int_eq(rxw_rxkad_lifetime(192), 2592000);
	ck_assert_int_eq(rxw_rxkad_lifetime(254), 2592000);
	ck_assert(rxw_rxkad_lifetime(255) == INT64_MAX);
	for (unsigned code = 1; code < 192; code++)
		ck_assert_int_gt(rxw_rxkad_lifetime((uint8_t)code),
				 rxw_rxkad_lifetime((uint8_t)(code - 1)));
}
END_TEST

static struct rxw_rxkad_component component(const char *s)
{
	return (struct rxw_rxkad_component){(const uint8_t *)s, strlen(s)};
}

START_TEST(C_053_names)
{
	static const struct {
		const char *one, *two, *name, *instance, *principal;
	} cases[] = {
		{"alice", NULL, "alice", "", "alice@R"},
		{"alice", "admin", "alice", "admin", "alice/admin@R"},
		{"host", "a.b.c", "rcmd", "a", "host/a.b.c@R"},
		{"host", "plain", NULL, NULL, NULL},
		{"imap", "mail.example", "imap", "mail", "imap/mail.example@R"},
		{"mupdate", "x.y", "mupdate", "x", "mupdate/x.y@R"},
		{"kadmin", "a.b", "kadmin", "a.b", "kadmin/a.b@R"},
		{"zephyr", "zephyr", "zephyr", "zephyr", "zephyr/zephyr@R"},
		{"a.b", NULL, NULL, NULL, NULL},
		{"a.b", "c", NULL, NULL, NULL},
		{"", NULL, NULL, NULL, NULL},
		{"we@ird", "x\\y", "we@ird", "x\\y", "we\\@ird/x\\\\y@R"},
		{"123456789012345678901234567890123456789012345678901234567890123", NULL,
		 "123456789012345678901234567890123456789012345678901234567890123", "",
		 "123456789012345678901234567890123456789012345678901234567890123@R"},
		{"1234567890123456789012345678901234567890123456789012345678901234", NULL, NULL,
		 NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rxw_rxkad_component c[2] = {component(cases[i].one)};
		int32_t code;

		if (cases[i].two)
			c[1] = component(cases[i].two);
		code = rxw_rxkad_set_names(&opener, c, cases[i].two ? 2 : 1, component("R"),
					   &ticket);
		ck_assert_int_eq(code, cases[i].name ? 0 : RXW_RXKAD_BADTICKET);
		if (code)
			continue;
		ck_assert_str_eq(ticket.name, cases[i].name);
		ck_assert_str_eq(ticket.instance, cases[i].instance);
		ck_assert_str_eq(ticket.cell, "R");
		ck_assert_str_eq(ticket.principal, cases[i].principal);
	}
	{
		struct rxw_rxkad_component three[3] = {component("a"), component("b"),
						       component("c")};
		struct rxw_rxkad_component nul = {(const uint8_t *)"a\0b", 3};

		ck_assert_int_eq(rxw_rxkad_set_names(&opener, three, 3, component("R"), &ticket),
				 RXW_RXKAD_BADTICKET);
		ck_assert_int_eq(rxw_rxkad_set_names(&opener, three, 0, component("R"), &ticket),
				 RXW_RXKAD_BADTICKET);
		ck_assert_int_eq(rxw_rxkad_set_names(&opener, &nul, 1, component("R"), &ticket),
				 RXW_RXKAD_BADTICKET);
		ck_assert_int_eq(rxw_rxkad_set_names(&opener, three, 1, nul, &ticket),
				 RXW_RXKAD_BADTICKET);
		three[0] = component("a.b");
		opener.allow_dotted = true;
		ck_assert_int_eq(rxw_rxkad_set_names(&opener, three, 1, component("R"), &ticket),
				 0);
		ck_assert_str_eq(ticket.name, "a.b");
	}
}
END_TEST

/* A Kerberos 4 ticket in clear, in both byte orders, truncated anywhere. */
START_TEST(C_053_v4)
{
	uint8_t big[40] = "\0alice\0\0LAB.TEST\0\1\2\3\4KEYKEYKE\x0c\x6b\x01\x02\x03"
			  "afs\0";
	uint8_t clear[40], small[56];

	memcpy(clear, big, sizeof(clear));
	opener.now = 0x6b010203 + 10;
	ck_assert_int_eq(rxw_rxkad_ticket_v4(&opener, clear, 40, &ticket), 0);
	ck_assert_str_eq(ticket.name, "alice");
	ck_assert_str_eq(ticket.instance, "");
	ck_assert_str_eq(ticket.cell, "LAB.TEST");
	ck_assert_str_eq(ticket.principal, "alice@LAB.TEST");
	ck_assert_mem_eq(ticket.session_key, "KEYKEYKE", 8);
	ck_assert_int_eq(ticket.start, 0x6b010203);
	ck_assert_int_eq(ticket.end, 0x6b010203 + 3600);
	clear[0] = 1;
	memcpy(clear + 30, "\x03\x02\x01\x6b", 4);
	ck_assert_int_eq(rxw_rxkad_ticket_v4(&opener, clear, 40, &ticket), 0);
	ck_assert_int_eq(ticket.start, 0x6b010203);
	/* The one other permitted size. */
	memset(small, 0, sizeof(small));
	memcpy(small, big, sizeof(big));
	ck_assert_int_eq(rxw_rxkad_ticket_v4(&opener, small, 56, &ticket), 0);
	ck_assert_int_eq(rxw_rxkad_ticket_v4(&opener, small, 48, &ticket), RXW_RXKAD_BADTICKET);
	for (size_t size = 0; size < 40; size++) {
		uint8_t *copy = malloc(size ? size : 1);

		memcpy(copy, big, size);
		ck_assert_int_eq(rxw_rxkad_ticket_v4(&opener, copy, size, &ticket),
				 RXW_RXKAD_BADTICKET);
		free(copy);
	}
	/* A name of 64 bytes lacks its terminator. */
	memset(small, 'x', sizeof(small));
	ck_assert_int_eq(rxw_rxkad_ticket_v4(&opener, small, 56, &ticket), RXW_RXKAD_BADTICKET);
}
END_TEST

static void encrypt_cbc(const uint8_t key[8], const uint8_t iv[8], uint8_t *data, size_t size)
{
	OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
	OSSL_PROVIDER *legacy = OSSL_PROVIDER_load(context, "legacy");
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(context, "DES-CBC", NULL);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int got;

	ck_assert(EVP_EncryptInit_ex2(c, cipher, key, iv, NULL) &&
		  EVP_CIPHER_CTX_set_padding(c, 0) &&
		  EVP_EncryptUpdate(c, data, &got, data, (int)size));
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
	OSSL_PROVIDER_unload(legacy);
	OSSL_LIB_CTX_free(context);
}

/* Enctype 3 by hand: confounder, MD5 of all with zeros for the sum, message. */
START_TEST(single_des)
{
	static const uint8_t key[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}, zero[8];
	uint8_t data[8 + 16 + 16] = "confound", sealed[40], out[40];
	size_t start, length, got;

	if (!rxw_des_ready())
		return;
	memcpy(data + 24, "message of 16 b.", 16);
	ck_assert(EVP_Q_digest(NULL, "MD5", NULL, data, sizeof(data), out, &got));
	memcpy(data + 8, out, 16);
	memcpy(sealed, data, sizeof(sealed));
	encrypt_cbc(key, zero, sealed, sizeof(sealed));
	ck_assert(rxw_des_krb5_decrypt(3, key, sealed, sizeof(sealed), out, &start, &length));
	ck_assert_uint_eq(start, 24);
	ck_assert_uint_eq(length, 16);
	ck_assert_mem_eq(out + start, data + 24, 16);
	for (unsigned bit = 0; bit < 8 * sizeof(sealed); bit++) {
		sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert(!rxw_des_krb5_decrypt(3, key, sealed, sizeof(sealed), out, &start,
						&length));
		sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	ck_assert(!rxw_des_krb5_decrypt(2, key, sealed, sizeof(sealed), out, &start, &length));
	ck_assert(!rxw_des_krb5_decrypt(3, key, sealed, 39, out, &start, &length));
	ck_assert(!rxw_des_krb5_decrypt(3, key, sealed, 16, out, &start, &length));
	/* Enctype 1: confounder, sum, message; a sum of zeros is wrong. */
	memset(data, 0, sizeof(data));
	memcpy(data, "confound", 8);
	memcpy(sealed, data, 16);
	encrypt_cbc(key, key, sealed, 16);
	ck_assert(!rxw_des_krb5_decrypt(1, key, sealed, 16, out, &start, &length));
}
END_TEST

/*
 * Bytes of an EncTicketPart changed, and the part truncated anywhere: a result, and no read beyond
 * it.
 */
START_TEST(hostile_v5)
{
	json_t *root = vectors_load("rxkad-exchanges.json");
	json_t *info = member(json_array_get(member(root, "exchanges"), 4), "rxkad");
	size_t size;
	uint8_t *clear = bytes(member(info, "ticketContents"), "encTicketPart", &size);
	uint64_t state = 77;

	ck_assert_int_eq(rxw_rxkad_ticket_v5(&opener, clear, size, &ticket), 0);
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);

		memcpy(copy, clear, cut);
		ck_assert_int_eq(rxw_rxkad_ticket_v5(&opener, copy, cut, &ticket),
				 RXW_RXKAD_BADTICKET);
		free(copy);
	}
	for (unsigned turn = 0; turn < 20000; turn++) {
		uint8_t *copy = malloc(size);
		int32_t code;

		memcpy(copy, clear, size);
		for (unsigned n = rxw_prng(&state) % 3 + 1; n > 0; n--)
			copy[rxw_prng(&state) % size] = (uint8_t)rxw_prng(&state);
		code = rxw_rxkad_ticket_v5(&opener, copy, size, &ticket);
		ck_assert(code == 0 || code == RXW_RXKAD_BADTICKET || code == RXW_RXKAD_EXPIRED ||
			  code == RXW_RXKAD_NOAUTH);
		free(copy);
	}
	/* Its "invalid" flag. */
	ck_assert_int_eq(clear[8], 0x03);
	clear[11] |= 0x01;
	ck_assert_int_eq(rxw_rxkad_ticket_v5(&opener, clear, size, &ticket), RXW_RXKAD_NOAUTH);
	free(clear);
	json_decref(root);
}
END_TEST

/* Lengths that are wrong, not in their shortest form, or too long; integers and dates likewise. */
START_TEST(hostile_der)
{
	static const struct {
		uint8_t bytes[8];
		size_t size;
		bool good;
	} cases[] = {
		{{0x30, 0x00}, 2, true},
		{{0x30, 0x01, 0xff}, 3, true},
		{{0x30, 0x02, 0xff}, 3, false},
		{{0x30}, 1, false},
		{{0x31, 0x00}, 2, false},
		{{0x30, 0x80, 0x00, 0x00}, 4, false},
		{{0x30, 0x81, 0x01, 0x00}, 4, false},
		{{0x30, 0x81}, 2, false},
		{{0x30, 0x82, 0x00, 0x80}, 4, false},
		{{0x30, 0x84, 0xff, 0xff, 0xff, 0xff}, 6, false},
		{{0x30, 0xff, 0xff, 0xff, 0xff, 0xff}, 6, false},
	};
	struct rxw_der d, content;
	int64_t value;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t *copy = malloc(cases[i].size);

		memcpy(copy, cases[i].bytes, cases[i].size);
		d = (struct rxw_der){copy, cases[i].size};
		ck_assert(rxw_der_get(&d, 0x30, &content) == cases[i].good);
		free(copy);
	}
	d = (struct rxw_der){(const uint8_t *)"\xa0\x04\x02\x02\x00\x7f", 6};
	ck_assert(!rxw_der_get_integer(&d, 0, 0, 1000, &value));
	d = (struct rxw_der){(const uint8_t *)"\xa0\x03\x02\x01\x80", 5};
	ck_assert(rxw_der_get_integer(&d, 0, -128, 1000, &value));
	ck_assert_int_eq(value, -128);
	d = (struct rxw_der){(const uint8_t *)"\xa5\x11\x18\x0f"
					      "20260230000000Z",
			     19};
	ck_assert(!rxw_der_get_time(&d, 5, &value));
	d = (struct rxw_der){(const uint8_t *)"\xa5\x11\x18\x0f"
					      "20260228000000Z",
			     19};
	ck_assert(rxw_der_get_time(&d, 5, &value));
	ck_assert_int_eq(value, 1772236800);
	/* The application uses libcrypto on this thread, too. */
	ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ticket");
	TCase *tc = tcase_create("ticket");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, printed_clear);
	tcase_add_loop_test(tc, print_and_open, 0, 8);
	tcase_add_test(tc, print_local_and_lifetime);
	tcase_add_test(tc, local_realm);
	tcase_add_test(tc, C_053_times);
	tcase_add_test(tc, C_053_lifetimes);
	tcase_add_test(tc, C_053_names);
	tcase_add_test(tc, C_053_v4);
	tcase_add_test(tc, single_des);
	tcase_add_test(tc, hostile_v5);
	tcase_add_test(tc, hostile_der);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
