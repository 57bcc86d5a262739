/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sized structures, as passed by programs compiled against an older or a newer library. Every such
 * structure that a program passes is in one of the two tables.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "rxgk/client.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define MORE	64 /* extra bytes of a newer structure */
#define CANARY	0xc5
#define TOO_BIG 1000000u

static struct h_bed bed;
static rxw_connection *connection;
static rxw_call *call;
static rxw_token *token;
static rxw_rxgk_negotiation *negotiation;

/* A structure of `size` bytes in memory of exactly that many, so that sanitizers see its end. */
static void *sized(const void *from, size_t known, size_t size)
{
	char *made = calloc(1, size);

	ck_assert_ptr_nonnull(made);
	memcpy(made, from, known < size ? known : size);
	memcpy(made, &size, sizeof(size));
	return made;
}

/* ---- structures that programs fill in ---- */

static int engine_of(const void *p)
{
	rxw_engine *engine;
	int r = rxw_engine_create(p, &engine);

	if (!r)
		ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	return r;
}

static int endpoint_of(const void *p)
{
	rxw_endpoint *endpoint;
	int r = rxw_endpoint_create(bed.client_engine, p, &endpoint);

	if (!r)
		ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	return r;
}

static int queue_of(const void *p)
{
	rxw_queue *queue;
	int r = rxw_queue_create(bed.client_engine, p, &queue);

	if (!r)
		ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	return r;
}

static int call_of(const void *p)
{
	rxw_call *made;
	int r = rxw_call_begin(connection, p, &made);

	if (!r)
		rxw_call_end(made, RXW_USER_ABORT, NULL);
	return r;
}

static int trace_of(const void *p)
{
	return rxw_trace_start(bed.client, p);
}

static int service_of(const void *p)
{
	int r = rxw_service_add(bed.server, p, NULL);

	return r == -RXW_ESTATE || r == -RXW_ELIMIT ? 0 : r; /* it was added before */
}

static int let_go(int r, rxw_security *security)
{
	if (!r)
		rxw_security_unref(security);
	return r;
}

static int class_of(const void *p)
{
	rxw_security *security;
	int r = rxw_security_create(p, NULL, &security);

	return let_go(r, security);
}

static int token_of(const void *p)
{
	rxw_token *made;
	int r = rxw_token_create(p, &made, NULL, 0);

	if (!r)
		rxw_token_unref(made);
	return r;
}

static int rxkad_server_of(const void *p)
{
	rxw_security *security;
	int r = rxw_rxkad_server(p, &security);

	return let_go(r, security);
}

static int rxkad_client_of(const void *p)
{
	rxw_security *security;
	int r = rxw_rxkad_client(p, RXW_LEVEL_CRYPT, &security);

	return let_go(r, security);
}

static int rxkad_print_of(const void *p)
{
	struct rxw_rxkad_token made = {.size = sizeof(made)};
	int r = rxw_rxkad_print_token(bed.keys, p, &made);

	rxw_rxkad_token_free(&made);
	return r;
}

static rxw_rpcstats *rpcstats;

static int rpcstats_of(const void *p)
{
	rxw_rpcstats *made;
	int r = rxw_rpcstats_create(p, &made);

	if (!r)
		rxw_rpcstats_destroy(made);
	return r;
}

static int rpcstats_record_of(const void *p)
{
	return rxw_rpcstats_record(rpcstats, p);
}

static int rxgk_server_of(const void *p)
{
	rxw_security *security;
	int r = rxw_rxgk_server(p, &security);

	return let_go(r, security);
}

static struct rxw_rxkad_token kad_token;

/* There is no keytab: the function fails when it looks for one. */
static int negotiation_of(const void *p)
{
	int r = rxw_rxgk_negotiation_create(p, &negotiation, NULL, 0);

	return r == -RXW_ENOKEY ? 0 : r;
}

static struct rxw_config config;
static struct rxw_endpoint_options endpoint_options;
static struct rxw_call_options call_options;
static struct rxw_queue_options queue_options;
static struct rxw_trace_options trace_options;
static struct rxw_service_options service_options;
static struct rxw_security_class class;
static struct rxw_token_options token_options;
static struct rxw_rxkad_server_options rxkad_server;
static struct rxw_rxkad_print_options rxkad_print;
static struct rxw_rpcstats_options rpcstats_options;
static struct rxw_rpcstats_call rpcstats_call;
static struct rxw_rxgk_server_options rxgk_server;
static struct rxw_rxgk_negotiation_options rxgk_negotiation;

/* `needed`: bytes up to the last member that the function needs. */
#define IN(use, structure, last)                                                        \
	{                                                                               \
#		structure, use, &structure, sizeof(structure), END_OF(structure, last) \
	}
#define END_OF(structure, last) \
	((size_t)((const char *)(&structure.last + 1) - (const char *)&structure))

static const struct {
	const char *name;
	int (*use)(const void *p);
	const void *structure;
	size_t size, needed;
} given[] = {
	IN(engine_of, config, size),
	IN(endpoint_of, endpoint_options, size),
	IN(call_of, call_options, size),
	IN(queue_of, queue_options, size),
	IN(trace_of, trace_options, size),
	IN(service_of, service_options, security_count),
	IN(class_of, class, index),
	IN(token_of, token_options, keys),
	IN(rxkad_server_of, rxkad_server, keys),
	IN(rxkad_client_of, kad_token, ticket_length),
	IN(rxkad_print_of, rxkad_print, size),
	IN(rpcstats_of, rpcstats_options, size),
	IN(rpcstats_record_of, rpcstats_call, functions),
	IN(rxgk_server_of, rxgk_server, keys),
	IN(negotiation_of, rxgk_negotiation, keytab),
};
#define GIVEN (sizeof(given) / sizeof(given[0]))

/* ---- structures that the library fills in ---- */

static int fill_effective(void *p)
{
	return rxw_endpoint_effective(bed.client, p);
}

static int fill_call_stats(void *p)
{
	return rxw_call_stats(call, p);
}

static int fill_identity(void *p)
{
	return rxw_connection_identity(connection, p);
}

static int fill_durations(void *p)
{
	return rxw_endpoint_durations(bed.client, p);
}

static int fill_counts(void *p)
{
	return rxw_trace_count(bed.client, p);
}

static int fill_key(void *p)
{
	return rxw_keys_info(bed.keys, 0, p);
}

static int fill_counters(void *p)
{
	static const struct rxw_rpc_function function = {1, "F_One"};
	static const struct rxw_rpc_interface interface = {"F_", 4711, 1, &function, false};

	return rxw_rpcstats_get(rpcstats, &interface, 0, false, p);
}

static int fill_token_info(void *p)
{
	return rxw_token_info(token, p);
}

#define OUT(use, structure)                               \
	{                                                 \
#		structure, use, sizeof(struct structure) \
	}
static const struct {
	const char *name;
	int (*use)(void *p);
	size_t size;
} filled[] = {
	OUT(fill_effective, rxw_effective),
	OUT(fill_call_stats, rxw_call_statistics),
	OUT(fill_identity, rxw_identity),
	OUT(fill_counts, rxw_trace_counts),
	OUT(fill_key, rxw_key_info),
	OUT(fill_token_info, rxw_token_details),
	OUT(fill_counters, rxw_rpcstats_counters),
	OUT(fill_durations, rxw_durations),
};
#define FILLED (sizeof(filled) / sizeof(filled[0]))

/* ---- setting up ---- */

static int32_t handler(rxw_call *c, void *context)
{
	(void)c;
	(void)context;
	return 0;
}

static void open_all(void)
{
	struct rxw_token_options local = {
		.size = sizeof(local), .source = RXW_TOKEN_LOCAL, .index = RXW_RXKAD_INDEX};

	h_open(&bed, &(struct h_options){.security = "null"});
	connection = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	rxw_config_init(&config, sizeof(config));
	service_options.id = 4711;
	service_options.handler = handler;
	class.index = 77;
	rpcstats_call.interface = rpcstats_call.functions = 1;
	ck_assert_int_eq(rxw_rpcstats_create(NULL, &rpcstats), 0);
	local.keys = bed.keys;
	token_options = local;
	ck_assert_int_eq(rxw_token_create(&local, &token, NULL, 0), 0);
	rxkad_server.keys = rxgk_server.keys = rxgk_negotiation.keys = bed.keys;
	rxgk_negotiation.keytab = "FILE:/nonexistent/keytab";
	kad_token.size = sizeof(kad_token);
	ck_assert_int_eq(rxw_rxkad_print_token(bed.keys, NULL, &kad_token), 0);
}

static void close_all(void)
{
	rxw_rxkad_token_free(&kad_token);
	rxw_token_unref(token);
	rxw_rpcstats_destroy(rpcstats);
	rxw_call_end(call, RXW_USER_ABORT, NULL);
	rxw_connection_release(connection);
	h_close(&bed);
}

static int use_given(size_t i, size_t size, size_t set)
{
	char *p = sized(given[i].structure, given[i].size, size);
	int r;

	if (set)
		p[set] = 1;
	r = given[i].use(p);
	free(p);
	return r;
}

/* Members missing in an older program get their defaults. */
START_TEST(older_programs)
{
	open_all();
	for (size_t i = 0; i < GIVEN; i++)
		for (size_t size = given[i].size; size >= given[i].needed; size -= sizeof(size_t)) {
			int r = use_given(i, size, 0);

			ck_assert_msg(!r, "%s with %zu of %zu bytes: %d", given[i].name, size,
				      given[i].size, r);
			if (size == sizeof(size_t))
				break;
		}
	close_all();
}
END_TEST

/* Members that only a newer library has must not be set. */
START_TEST(newer_programs)
{
	open_all();
	for (size_t i = 0; i < GIVEN; i++) {
		size_t size = given[i].size + MORE;

		ck_assert_msg(!use_given(i, size, 0), "%s", given[i].name);
		ck_assert_msg(use_given(i, size, given[i].size) == -RXW_EINVAL, "%s",
			      given[i].name);
		ck_assert_msg(use_given(i, size, size - 1) == -RXW_EINVAL, "%s", given[i].name);
	}
	close_all();
}
END_TEST

START_TEST(size_not_set)
{
	open_all();
	for (size_t i = 0; i < GIVEN; i++)
		for (unsigned k = 0; k < 2; k++) {
			char *p = sized(given[i].structure, given[i].size, given[i].size);
			size_t wrong = k ? TOO_BIG : 0;

			memcpy(p, &wrong, sizeof(wrong));
			ck_assert_msg(given[i].use(p) == -RXW_EINVAL, "%s", given[i].name);
			free(p);
		}
	for (size_t i = 0; i < FILLED; i++) {
		void *p = calloc(1, filled[i].size);

		ck_assert_msg(filled[i].use(p) == -RXW_EINVAL, "%s", filled[i].name);
		ck_assert_msg(filled[i].use(NULL) == -RXW_EINVAL, "%s", filled[i].name);
		free(p);
	}
	close_all();
}
END_TEST

/* The library neither writes beyond a structure nor leaves part of it unset. */
START_TEST(filled_in)
{
	open_all();
	for (size_t i = 0; i < FILLED; i++)
		for (size_t size = sizeof(size_t); size <= filled[i].size + MORE; size += 8) {
			uint8_t *p = malloc(size + MORE);

			ck_assert_ptr_nonnull(p);
			memset(p, CANARY, size + MORE);
			memcpy(p, &size, sizeof(size));
			ck_assert_msg(!filled[i].use(p), "%s", filled[i].name);
			ck_assert_mem_eq(p, &size, sizeof(size));
			for (size_t k = filled[i].size; k < size; k++)
				ck_assert_uint_eq(p[k], 0);
			for (size_t k = size; k < size + MORE; k++)
				ck_assert_uint_eq(p[k], CANARY);
			free(p);
		}
	close_all();
}
END_TEST

TEST_MAIN_WITHIN(60, "structures with a size", older_programs, newer_programs, size_not_set,
		 filled_in)
