/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls under every security class and level: streams, concurrent calls, identities, minimum
 * levels.
 */
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "harness.h"

#define FIRST_OWN 2 /* names from here on have an exchange */
#define LEAST	  110 /* service id */
#define NONE	  111

static const char *const names[] = {"null",	   "test",	 "rxkad-clear", "rxkad-auth",
				    "rxkad-crypt", "rxgk-clear", "rxgk-auth",	"rxgk-crypt"};
static const uint8_t levels[] = {0, 0, 0, 1, 2, 0, 1, 2};
static const uint8_t indexes[] = {0, 251, 2, 2, 2, 4, 4, 4};
#define NAMES ((int)(sizeof(names) / sizeof(names[0])))

static struct h_bed bed;
static int which, gone;

static void both(rxw_connection *connection, uint64_t bytes, unsigned how)
{
	h_good_call(&bed, connection,
		    &(struct h_ask){.op = H_BOTH, .how = how, .bytes = bytes, .seed = 5});
}

/* Sizes around the capacity of one packet and one padded block, both ways; then bulk. */
START_TEST(streams)
{
	static const uint64_t sizes[] = {0,  1,	 3,  4,	  5,	7,    8,    9,
					 15, 16, 17, 100, 2816, 9999, 65536};
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){.security = names[_i]});
	connection = h_connect(&bed, H_SERVICE);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		both(connection, sizes[i], i % 16);
	for (uint64_t size = 1340; size <= 1420; size++)
		both(connection, size, 0);
	for (unsigned how = 0; how < 16; how++)
		both(connection, 300000, how);
	both(connection, h_small() ? 1u << 20 : 8u << 20, 0);
	ck_assert_uint_eq(counter_of(bed.server, "drops.verify"), 0);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* Inline handlers. */
START_TEST(inline_calls)
{
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){.security = names[_i]});
	connection = h_connect(&bed, H_INLINE);
	for (unsigned i = 0; i < 50; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

#define THREADS 16

struct one {
	pthread_t thread;
	rxw_connection *connection;
	int32_t code;
};

static void *one_of_many(void *arg)
{
	struct one *w = arg;

	w->code = h_call(&bed, w->connection,
			 &(struct h_ask){.op = H_BOTH, .bytes = h_small() ? 100000 : 1000000});
	return NULL;
}

/* On four connections that use all of their channels at once, with as many listeners. */
START_TEST(concurrent_calls)
{
	struct one w[THREADS];
	struct counters s;

	h_open(&bed, &(struct h_options){.security = names[_i], .both = "listeners=4"});
	for (unsigned i = 0; i < THREADS; i++) {
		w[i].connection = i < 4 ? h_connect(&bed, H_SERVICE) : w[i % 4].connection;
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, one_of_many, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		ck_assert_int_eq(w[i].code, 0);
	}
	s = counters_of(bed.server);
	ck_assert_uint_ge(counter_in(&s, "packets.sent.challenge"), _i < FIRST_OWN ? 0 : 4);
	ck_assert_uint_ge(counter_in(&s, "packets.received.response"), _i < FIRST_OWN ? 0 : 4);
	ck_assert_uint_eq(counter_in(&s, "drops.verify"), 0);
	ck_assert_uint_eq(counter_in(&s, "calls_started"), THREADS);
	for (unsigned i = 0; i < 4; i++)
		rxw_connection_release(w[i].connection);
	h_close(&bed);
}
END_TEST

struct seen {
	struct rxw_identity identity;
	char name[64];
	struct rxw_call_statistics stats;
	int result;
};

static int32_t look(rxw_call *call, void *context)
{
	struct seen *seen = context;

	seen->identity.size = sizeof(seen->identity);
	seen->result = rxw_call_identity(call, &seen->identity);
	if (seen->identity.name)
		strncpy(seen->name, seen->identity.name, sizeof(seen->name) - 1);
	seen->stats.size = sizeof(seen->stats);
	rxw_call_stats(call, &seen->stats);
	return 0;
}

static void add(uint16_t id, rxw_security *const *classes, size_t count, uint8_t level_min,
		struct seen *seen)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = id,
					.handler = look,
					.context = seen,
					.security = classes,
					.security_count = count,
					.level_min = level_min};

	ck_assert_int_eq(rxw_service_add(bed.server, &o, NULL), 0);
}

/* An empty call; returns its code. */
static int32_t empty(uint16_t service)
{
	rxw_connection *connection = h_connect(&bed, service);
	struct rxw_identity identity = {.size = sizeof(identity)};
	rxw_call *call;
	int32_t code;

	ck_assert_int_eq(rxw_call_begin(connection, 0, &call), 0);
	code = rxw_call_end(call, 0, NULL);
	ck_assert_int_eq(rxw_connection_identity(connection, &identity), 0);
	ck_assert_uint_eq(identity.index, indexes[which]);
	rxw_connection_release(connection);
	return code;
}

START_TEST(identities)
{
	struct seen seen = {0};

	h_open(&bed, &(struct h_options){.security = names[_i]});
	which = _i;
	add(LEAST, bed.offered, 4, 0, &seen);
	ck_assert_int_eq(empty(LEAST), 0);
	ck_assert_int_eq(seen.result, 0);
	ck_assert_uint_eq(seen.identity.index, indexes[_i]);
	ck_assert_uint_eq(seen.identity.level, levels[_i]);
	ck_assert_uint_eq(seen.stats.security, indexes[_i]);
	ck_assert_uint_eq(seen.stats.level, levels[_i]);
	/* The bed's tokens name the service itself. */
	ck_assert(seen.identity.local == (_i >= FIRST_OWN));
	h_close(&bed);
}
END_TEST

/* A service's minimum level: a weaker connection gets a code, and no handler runs. */
START_TEST(minimum_level)
{
	struct seen seen = {0};

	h_open(&bed, &(struct h_options){.security = names[_i]});
	which = _i;
	for (uint8_t level = 0; level < 3; level++) {
		bool taken = level == 0 || levels[_i] >= level;
		int32_t code, weak = indexes[_i] == 2	? RXW_RXKAD_LEVELFAIL :
				     indexes[_i] == 4	? RXW_RXGK_BADLEVEL :
							  RXW_INVALID_OPERATION;

		add((uint16_t)(LEAST + level), bed.offered, 4, level, &seen);
		seen.result = 1;
		code = empty((uint16_t)(LEAST + level));
		ck_assert_int_eq(code, taken ? 0 : weak);
		ck_assert_int_eq(seen.result, taken ? 0 : 1);
	}
	h_close(&bed);
}
END_TEST

/* A class that the service does not offer is reported as such, whichever others it offers. */
START_TEST(class_not_offered)
{
	rxw_security *others[4];
	struct seen seen = {.result = 1};
	size_t n = 0;

	h_open(&bed, &(struct h_options){.security = names[_i]});
	which = _i;
	for (unsigned i = 0; i < 4; i++)
		if (((const uint8_t[]){0, 251, 2, 4})[i] != indexes[_i])
			others[n++] = bed.offered[i];
	add(NONE, others, n, 0, &seen);
	ck_assert_int_eq(empty(NONE), RXW_INVALID_OPERATION);
	ck_assert_int_eq(seen.result, 1);
	h_close(&bed);
}
END_TEST

static const uint8_t counted;

static void destroyed(void *data)
{
	ck_assert_ptr_eq(data, &counted);
	++gone;
}

/* Services and connections hold references to a class; the last one releases it. */
START_TEST(references)
{
	struct rxw_security_class k = {.size = sizeof(k), .name = "mine", .index = 99,
				       .destroy = destroyed};
	rxw_security *mine, *bad;
	struct seen seen = {0};
	rxw_connection *connection;

	gone = 0;
	ck_assert_int_eq(rxw_security_create(&k, (void *)(uintptr_t)&counted, &mine), 0);
	k.challenge = (int (*)(void *, uint8_t *, size_t))(uintptr_t)&counted;
	ck_assert_int_eq(rxw_security_create(&k, NULL, &bad), -RXW_EINVAL);
	h_open(&bed, NULL);
	add(LEAST, &mine, 1, 0, &seen);
	bed.security = mine;
	connection = h_connect(&bed, LEAST);
	bed.security = NULL;
	rxw_security_unref(mine);
	rxw_security_unref(NULL);
	ck_assert_int_eq(gone, 0);
	rxw_connection_release(connection);
	ck_assert_int_eq(gone, 0);
	h_close(&bed);
	ck_assert_int_eq(gone, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("classes");
	TCase *tcase = tcase_create("classes");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, streams, 0, NAMES);
	tcase_add_loop_test(tcase, inline_calls, 0, NAMES);
	tcase_add_loop_test(tcase, concurrent_calls, 0, NAMES);
	tcase_add_loop_test(tcase, identities, 0, NAMES);
	tcase_add_loop_test(tcase, minimum_level, 0, NAMES);
	tcase_add_loop_test(tcase, class_not_offered, 0, NAMES);
	tcase_add_test(tcase, references);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
