/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of a server's and a client's object, with keys made for the test. */
#include "kinds.h"
#include "rxgk/client.h"
#include "tests/asserts.h"

#include <stdint.h>

#include <rxwire/afs.h>
#include <rxwire/keys.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "examples/psk/psk.h"
#include "tests/support/internals.h"

#define ALL SIZE_MAX

static void make_test(rxw_security **server, rxw_security **client)
{
	*server = rxw_security_ref(internals_test_class());
	*client = rxw_security_ref(internals_test_class());
}

/* An application's own class. */
static void make_psk(rxw_security **server, rxw_security **client)
{
	static const uint8_t key[PSK_KEY] = "the key that both of them have.";

	ck_assert_int_eq(psk_create(key, "them", server), 0);
	ck_assert_int_eq(psk_create(key, "", client), 0);
}

static void make_rxkad(uint8_t level, rxw_security **server, rxw_security **client)
{
	struct rxw_rxkad_server_options options = {.size = sizeof(options), .level_min = level};
	struct rxw_rxkad_token token = {.size = sizeof(token)};

	ck_assert_int_eq(rxw_keys_create(&options.keys), 0);
	ck_assert_int_eq(rxw_keys_generate(options.keys, RXW_KEY_KRB5, 3, 18), 0);
	ck_assert_int_eq(rxw_rxkad_print_token(options.keys, NULL, &token), 0);
	ck_assert_int_eq(rxw_rxkad_server(&options, server), 0);
	ck_assert_int_eq(rxw_rxkad_client(&token, level, client), 0);
	rxw_rxkad_token_free(&token);
	rxw_keys_unref(options.keys);
}

static void make_rxgk(uint32_t level, int32_t enctype, rxw_security **server, rxw_security **client)
{
	struct rxw_rxgk_server_options options = {.size = sizeof(options),
						  .level_min = (uint8_t)level};
	struct rxw_rxgk_print_options print = {.level = level, .name = "user@TEST"};
	struct rxw_rxgk_token token = {0};

	ck_assert_int_eq(rxw_keys_create(&options.keys), 0);
	ck_assert_int_eq(rxw_keys_generate(options.keys, RXW_KEY_RXGK, 3, enctype), 0);
	ck_assert_int_eq(rxw_rxgk_print_token(options.keys, &print, &token), 0);
	ck_assert_int_eq(rxw_rxgk_server(&options, server), 0);
	ck_assert_int_eq(rxw_rxgk_client(&token, NULL, client), 0);
	rxw_rxgk_token_free(&token);
	rxw_keys_unref(options.keys);
}

static void make_rxkad_clear(rxw_security **server, rxw_security **client)
{
	make_rxkad(RXW_LEVEL_CLEAR, server, client);
}

static void make_rxkad_auth(rxw_security **server, rxw_security **client)
{
	make_rxkad(RXW_LEVEL_AUTH, server, client);
}

static void make_rxkad_crypt(rxw_security **server, rxw_security **client)
{
	make_rxkad(RXW_LEVEL_CRYPT, server, client);
}

static void make_rxgk_clear(rxw_security **server, rxw_security **client)
{
	make_rxgk(RXW_LEVEL_CLEAR, 18, server, client);
}

static void make_rxgk_auth(rxw_security **server, rxw_security **client)
{
	make_rxgk(RXW_LEVEL_AUTH, 17, server, client);
}

static void make_rxgk_crypt(rxw_security **server, rxw_security **client)
{
	make_rxgk(RXW_LEVEL_CRYPT, 18, server, client);
}

static void make_rxgk_sha2(rxw_security **server, rxw_security **client)
{
	make_rxgk(RXW_LEVEL_CRYPT, 20, server, client);
}

/*
 * rxkad checks the numbers of a packet and the first block of its payload, with 16 bits. The rest
 * is encrypted at level crypt, but no level has a checksum over it.
 */
const struct kind kinds[] = {
	{"test", false, ALL, true, 0, make_test},
	{"psk", true, ALL, true, 0, make_psk},
	{"rxkad clear", true, 0, true, 2, make_rxkad_clear},
	{"rxkad auth", true, 8, true, 2, make_rxkad_auth},
	{"rxkad crypt", true, 8, true, 2, make_rxkad_crypt},
	{"rxgk clear", true, 0, false, 0, make_rxgk_clear},
	{"rxgk auth", true, ALL, true, 0, make_rxgk_auth},
	{"rxgk crypt", true, ALL, true, 0, make_rxgk_crypt},
	{"rxgk crypt, enctype 20", true, ALL, true, 0, make_rxgk_sha2},
};
const int kind_count = sizeof(kinds) / sizeof(kinds[0]);
