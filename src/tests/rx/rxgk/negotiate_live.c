/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * negotiate_live KEYTAB PRINCIPAL...: run with a KDC (KRB5_CONFIG, KRB5CCNAME). Negotiates tokens
 * of every enctype and level for the service with the key in KEYTAB, makes calls with them,
 * combines them.
 */
#include "live.h"

#include "combine.h"
#include "keys/keys.h"
#include "rig.h"
#include "rxgk/negotiate.h"

#define CELL "rxwire.test"

static const char *keytab, *client_name;
static rxw_keys *keys, *other_server;

static int add(void *context, rxw_endpoint *server)
{
	return rxw_rxgk_negotiation_add(context, server, NULL);
}

static rxw_keys *keys_of(void *context, const uint8_t *uuid)
{
	static const uint8_t known[16] = {1,	2,  3,	4,  5,	6,  7,	  8,
					  0x89, 10, 11, 12, 13, 14, 0xff, 16};

	(void)context;
	return memcmp(uuid, known, 16) ? NULL : other_server;
}

struct bed {
	struct live live;
	rxw_rxgk_negotiation *negotiation;
	rxw_security *classes[2];
	rxw_connection *negotiator;
};

static void bed_begin(struct bed *b, uint8_t level_min, uint8_t index)
{
	struct rxw_rxgk_negotiation_options o = {.size = sizeof(o), .keys = keys, .keytab = keytab,
						 .level_min = level_min, .index = index,
						 .rekey_s = 600, .rekey_bytes = 30,
						 .lifetime_s = 3600, .server_keys = keys_of};
	struct rxw_rxgk_server_options so = {.size = sizeof(so), .keys = keys, .index = index};
	char why[256];

	ck_assert_msg(!rxw_rxgk_negotiation_create(&o, &b->negotiation, why, sizeof(why)), "%s",
		      why);
	ck_assert_int_eq(rxw_rxgk_server(&so, &b->classes[0]), 0);
	live_begin(&b->live, b->classes, 1, add, b->negotiation);
	b->negotiator = live_connect(&b->live, RXW_RXGK_NEGOTIATION_SERVICE, NULL);
}

static void bed_end(struct bed *b)
{
	rxw_connection_release(b->negotiator);
	live_end(&b->live);
	rxw_security_unref(b->classes[0]);
	rxw_rxgk_negotiation_destroy(b->negotiation);
}

static void use(struct bed *b, const struct rxw_rxgk_token *t, uint8_t index, const char *name)
{
	struct rxw_rxgk_client_options co = {.index = index};
	char who[LIVE_WHO], expected[LIVE_WHO];
	rxw_security *s;
	rxw_connection *c;

	snprintf(expected, sizeof(expected), "%u 0 %s", t->level, name);
	ck_assert_int_eq(rxw_rxgk_client(t, &co, &s), 0);
	c = live_connect(&b->live, LIVE_SERVICE, s);
	ck_assert_int_eq(live_call(c, 5000, who), 0);
	ck_assert_str_eq(who, expected);
	rxw_connection_release(c);
	rxw_security_unref(s);
}

START_TEST(tokens_for_a_ticket)
{
	struct bed b;

	for (uint8_t index = 4; index <= 6; index += 2) {
		bed_begin(&b, 0, index);
		for (int32_t e = 16; e <= 20; e++) {
			for (uint32_t level = 0; level <= 2; level++) {
				struct rxw_rxgk_negotiate_options o = {
					.cell = CELL, .level = level, .enctype = e > 16 ? e : 0};
				struct rxw_rxgk_token t = {0};
				char why[256];

				ck_assert_msg(!rxw_rxgk_negotiate(b.negotiator, &o, &t, why,
								  sizeof(why)), "%s", why);
				ck_assert_int_eq(t.enctype, e > 16 ? e : 20);
				ck_assert_uint_eq(t.level, level);
				ck_assert_uint_eq(t.lifetime, 600);
				ck_assert_uint_eq(t.bytelife, 30);
				ck_assert_int_gt(t.expires, rxw_gk_clock(NULL));
				use(&b, &t, index, client_name);
				rxw_rxgk_token_free(&t);
			}
		}
		bed_end(&b);
	}
}
END_TEST

START_TEST(refused_requests)
{
	struct rxw_rxgk_negotiate_options o = {.cell = CELL, .level = 1};
	struct rxw_rxgk_negotiation_options no = {.size = sizeof(no), .keys = keys,
						  .keytab = "/nonexistent/keytab"};
	rxw_rxgk_negotiation *none;
	struct rxw_rxgk_token t = {0};
	struct bed b;
	char why[256];

	bed_begin(&b, 2, 4);
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &t, why, sizeof(why)), -RXW_ECALL);
	ck_assert_ptr_nonnull(strstr(why, "level"));
	o.level = 2;
	o.cell = "no.such.cell";
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &t, why, sizeof(why)), -RXW_ENOKEY);
	ck_assert_uint_gt(strlen(why), 0);
	o.cell = CELL;
	o.ccache = "FILE:/nonexistent/cache";
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &t, why, sizeof(why)), -RXW_ENOKEY);
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &t, NULL, 0), -RXW_ENOKEY);
	o.enctype = 16;
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &t, why, sizeof(why)), -RXW_EINVAL);
	ck_assert_int_eq(rxw_rxgk_negotiation_create(&no, &none, why, sizeof(why)), -RXW_ENOKEY);
	ck_assert_uint_gt(strlen(why), 0);
	bed_end(&b);
}
END_TEST

START_TEST(combined_tokens)
{
	static const uint8_t uuid[16] = {1,    2,  3,  4,  5,  6,  7,	 8,
					 0x89, 10, 11, 12, 13, 14, 0xff, 16};
	static const uint8_t other_uuid[16] = {9};
	struct rxw_rxgk_negotiate_options o = {.cell = CELL, .level = 1};
	struct rxw_rxgk_print_options po = {.level = 2,
					    .lifetime_s = 1000,
					    .rekey_s = 70,
					    .rekey_bytes = 20,
					    .enctype = 17,
					    .name = "host/cm@RXWIRE.TEST"};
	struct rxw_rxgk_token user = {0}, cm = user, both = user;
	struct rxw_gk_body body;
	struct bed b;

	bed_begin(&b, 0, 4);
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &user, NULL, 0), 0);
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &po, &cm), 0);
	/* Not below it either; if the two sides derived different keys, the call would fail. */
	ck_assert_int_eq(combine_tokens(b.negotiator, &user, &cm, 1, NULL, &both),
			 RXW_RXGK_BADLEVEL);
	ck_assert_int_eq(combine_tokens(b.negotiator, &user, &cm, 2, NULL, &both), 0);
	ck_assert_int_eq(both.enctype, 20);
	ck_assert_uint_eq(both.lifetime, 70);
	ck_assert_uint_eq(both.bytelife, 20);
	ck_assert_int_eq(both.expires, cm.expires);
	use(&b, &both, 4, client_name);
	rxw_rxgk_token_free(&both);

	/* For another server: its keys open it, ours do not. */
	ck_assert_int_eq(combine_tokens(b.negotiator, &user, &cm, 2, other_uuid, &both),
			 RXW_RXGK_BADKEYNO);
	ck_assert_int_eq(combine_tokens(b.negotiator, &user, &cm, 2, uuid, &both), 0);
	ck_assert_int_eq(rxw_gk_token_open(other_server, 4, both.token, both.token_length, &body),
			 0);
	ck_assert_int_eq(memcmp(body.k0, both.key, 32), 0);
	rxw_rxgk_token_free(&both);

	/* Printed tokens and those without expiry cannot be combined. */
	rxw_rxgk_token_free(&cm);
	po.name = NULL;
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &po, &cm), 0);
	ck_assert_int_eq(combine_tokens(b.negotiator, &user, &cm, 2, NULL, &both),
			 RXW_RXGK_BAD_TOKEN);
	rxw_rxgk_token_free(&cm);
	po.name = "x@Y";
	po.lifetime_s = 0;
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &po, &cm), 0);
	ck_assert_int_eq(combine_tokens(b.negotiator, &user, &cm, 2, NULL, &both),
			 RXW_RXGK_BAD_TOKEN);
	rxw_rxgk_token_free(&cm);
	rxw_rxgk_token_free(&user);
	bed_end(&b);
}
END_TEST

/* Malformed requests end with a code, and the service goes on. */
START_TEST(malformed_requests)
{
	struct rxw_rxgk_negotiate_options o = {.cell = CELL, .level = 1};
	uint64_t seed = test_seed();
	struct rxw_rxgk_token t = {0};
	struct bed b;

	bed_begin(&b, 0, 4);
	for (int i = 0; i < 200; i++) {
		uint8_t junk[600];
		size_t length = test_below(&seed, sizeof(junk));
		rxw_call *call;

		test_fill(&seed, junk, sizeof(junk));
		/* Mostly an existing opcode and short lists. */
		rxw_xdr_store32(junk, (uint32_t)(i % 4));
		if (i % 3)
			rxw_xdr_store32(junk + 4, (uint32_t)(i % 7));
		ck_assert_int_eq(rxw_rpc_begin(b.negotiator, NULL, &call), 0);
		/* The server may refuse it early. */
		if (rxw_call_write(call, junk, length) == (ssize_t)length)
			while (rxw_call_read(call, junk, sizeof(junk)) > 0)
				;
		rxw_call_end(call, 0, NULL);
	}
	ck_assert_int_eq(rxw_rxgk_negotiate(b.negotiator, &o, &t, NULL, 0), 0);
	rxw_rxgk_token_free(&t);
	bed_end(&b);
}
END_TEST

static void set_up(void)
{
	keys = rig_keys(4, 20);
	other_server = rig_keys(9, 18);
}

static void tear_down(void)
{
	rxw_keys_unref(keys);
	rxw_keys_unref(other_server);
}

int main(int argc, char **argv)
{
	const TTest *const tests[] = {tokens_for_a_ticket, refused_requests, combined_tokens,
				      malformed_requests};
	Suite *suite = suite_create("rxgk_negotiate");
	TCase *tcase = tcase_create("rxgk_negotiate");
	SRunner *runner;
	int failed;

	if (argc != 3) {
		fprintf(stderr, "usage: negotiate_live KEYTAB CLIENT\n");
		return 2;
	}
	keytab = argv[1];
	client_name = argv[2];
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
