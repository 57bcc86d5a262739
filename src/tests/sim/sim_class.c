/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulation: the real rxkad and rxgk, with keys of the run and the simulated time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/afs.h>
#include <rxwire/keys.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "proto/peer/auth.h"
#include "rxgk/client.h"
#include "sim.h"
#include "tests/support/test_class.h"

#define BASE 1700000000 /* rxkad: the wall clock at the start of a run, seconds since 1970 */

static const struct sim *at_work;

void sim_class_clock(const struct sim *sim)
{
	at_work = sim;
}

static uint64_t elapsed(void)
{
	return at_work != NULL ? at_work->now - RXW_SEC : 0;
}

static int64_t kad_time(void *context)
{
	(void)context;
	return BASE + (int64_t)(elapsed() / RXW_SEC);
}

static int64_t gk_time(void *context)
{
	return ((const struct sim_class *)context)->base + (int64_t)(elapsed() / 100);
}

static bool make_kad(struct sim_class *k, rxw_keys *keys, uint8_t level, uint32_t lifetime)
{
	struct rxw_rxkad_server_options server = {
		.size = sizeof(server), .keys = keys, .level_min = level, .time = kad_time};
	struct rxw_rxkad_print_options print = {.size = sizeof(print),
						.name = "user@TEST",
						.lifetime_s = lifetime,
						.time = kad_time};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	bool good = rxw_keys_generate(keys, RXW_KEY_KRB5, 3, 18) == 0 &&
		    rxw_rxkad_print_token(keys, &print, &token) == 0 &&
		    rxw_rxkad_server(&server, &k->server) == 0 &&
		    rxw_rxkad_client(&token, level, &k->client) == 0;

	rxw_rxkad_token_free(&token);
	return good;
}

/* Tokens are created with the system's clock, so the run starts at that time. */
static bool make_gk(struct sim_class *k, rxw_keys *keys, uint8_t level, int enctype,
		    uint32_t lifetime, uint32_t rekey_bytes)
{
	struct rxw_rxgk_server_options server = {.size = sizeof(server),
						 .keys = keys,
						 .level_min = level,
						 .time = gk_time,
						 .time_context = k};
	struct rxw_rxgk_client_options client = {.time = gk_time, .time_context = k};
	struct rxw_rxgk_print_options print = {.level = level,
					       .lifetime_s = lifetime != 0 ? lifetime : 1u << 30,
					       .rekey_bytes = rekey_bytes,
					       .name = "user@TEST"};
	struct rxw_rxgk_token token = {0};
	bool good = rxw_keys_generate(keys, RXW_KEY_RXGK, 3, enctype) == 0 &&
		    rxw_rxgk_print_token(keys, &print, &token) == 0;

	k->base = token.expires - print.lifetime_s * RXW_RXGK_SECOND;
	good = good && rxw_rxgk_server(&server, &k->server) == 0 &&
	       rxw_rxgk_client(&token, &client, &k->client) == 0;
	rxw_rxgk_token_free(&token);
	return good;
}

/* The level of a name, or 3 if it has none. */
static uint8_t level_of(const char *name)
{
	static const char *const levels[] = {"clear", "auth", "crypt"};
	const char *at = strchr(name, '-');
	uint8_t level = 0;

	while (level < 3 &&
	       (at == NULL || strncmp(at + 1, levels[level], strlen(levels[level])) != 0))
		level++;
	return level;
}

bool sim_class_make(struct sim_class *k, const char *name, uint32_t lifetime, uint32_t rekey_bytes)
{
	const char *enctype = strrchr(name, '-');
	uint8_t level = level_of(name);
	rxw_keys *keys = NULL;
	bool good = false;

	memset(k, 0, sizeof(*k));
	if (strcmp(name, "null") == 0 || strcmp(name, "test") == 0) {
		k->client = k->server =
			*name == 'n' ? &rxw_security_null_class : &rxw_security_test_class;
		return true;
	}
	sim_class_clock(NULL);
	if (level < 3 && rxw_keys_create(&keys) == 0) {
		if (strncmp(name, "rxkad-", 6) == 0)
			good = make_kad(k, keys, level, lifetime);
		else if (strncmp(name, "rxgk-", 5) == 0)
			good = make_gk(k, keys, level, atoi(enctype + 1) ? atoi(enctype + 1) : 18,
				       lifetime, rekey_bytes);
	}
	rxw_keys_unref(keys);
	if (!good)
		sim_class_free(k);
	return good;
}

void sim_class_free(struct sim_class *k)
{
	rxw_security_unref(k->server);
	rxw_security_unref(k->client);
	k->server = k->client = NULL;
}

void sim_class_use(struct sim_setup *setup, const struct sim_class *k)
{
	setup->security = k->client;
	setup->server_security = k->server;
}

uint32_t sim_class_capacity(const struct sim_class *k, uint32_t payload)
{
	const struct rxw_security_class *c = &k->client->class;
	struct rxw_security_id id = {.index = c->index, .client = true};
	struct rxw_security_room room = {0};
	void *conn = NULL;

	if (c->conn_create != NULL && c->conn_create(k->client->data, &id, &conn) != 0)
		abort();
	if (c->room != NULL)
		c->room(conn, &room);
	if (conn != NULL)
		c->conn_destroy(conn);
	return rxw_sealed_capacity(&room, payload);
}

const struct sim_class *sim_class_common(void)
{
	const char *name = getenv("RXW_TEST_CLASS");
	static struct sim_class common;

	if (name == NULL || *name == '\0' || strcmp(name, "null") == 0)
		return NULL;
	if (common.client == NULL && !sim_class_make(&common, name, 0, 0)) {
		fprintf(stderr, "no class \"%s\"\n", name);
		exit(2);
	}
	return &common;
}
