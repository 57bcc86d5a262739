/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls over loopback under rxgk: every enctype and level, many at a time, key changes meanwhile.
 */
#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

#include "rxgk/rxgk_conn.h"
#include "rig.h"

static rxw_security *server_class(rxw_keys *keys, uint8_t level_min, uint8_t index,
				  int64_t (*time)(void *))
{
	struct rxw_rxgk_server_options o = {.size = sizeof(o), .keys = keys, .index = index,
					    .level_min = level_min, .time = time};
	rxw_security *s;

	ck_assert_int_eq(rxw_rxgk_server(&o, &s), 0);
	return s;
}

static rxw_security *client_class(rxw_keys *keys, struct rxw_rxgk_print_options *o,
				  int64_t (*time)(void *))
{
	struct rxw_rxgk_client_options co = {.index = o->index, .time = time};
	struct rxw_rxgk_token t = {0};
	rxw_security *s;

	ck_assert_int_eq(rxw_rxgk_print_token(keys, o, &t), 0);
	ck_assert_int_eq(rxw_rxgk_client(&t, &co, &s), 0);
	rxw_rxgk_token_free(&t);
	return s;
}

START_TEST(every_level)
{
	rxw_keys *keys = rig_keys(2, 20);
	rxw_security *classes[2] = {server_class(keys, 0, 4, NULL), server_class(keys, 0, 6, NULL)};
	struct live l;

	live_begin(&l, classes, 2, NULL, NULL);
	for (const int32_t *e = rxw_gk_enctypes; *e; e++) {
		for (uint32_t i = 0; i < 6; i++) {
			struct rxw_rxgk_print_options o = {.enctype = *e, .level = i % 3,
							   .index = i < 3 ? 4 : 6,
							   .name = i % 2 ? NULL : "alice@REALM"};
			rxw_security *s = client_class(keys, &o, NULL);
			rxw_connection *c = live_connect(&l, LIVE_SERVICE, s);
			static const size_t sizes[] = {0, 1, 1363, 1364, 1365, 100000};
			char who[LIVE_WHO], expected[LIVE_WHO];

			snprintf(expected, sizeof(expected), "%u %u %s", o.level, !o.name,
				 o.name ? o.name : "-");
			rxw_security_unref(s);
			for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
				ck_assert_int_eq(live_call(c, sizes[k], who), 0);
				ck_assert_str_eq(who, expected);
			}
			rxw_connection_release(c);
		}
	}
	live_end(&l);
	rxw_security_unref(classes[0]);
	rxw_security_unref(classes[1]);
	rxw_keys_unref(keys);
}
END_TEST

/* Refused: no token, a weaker level, another server's token. */
START_TEST(refused)
{
	rxw_keys *keys = rig_keys(2, 18), *others = rig_keys(2, 18);
	rxw_security *class = server_class(keys, 2, 4, NULL), *s;
	struct rxw_rxgk_print_options o = {.level = 1};
	rxw_connection *c;
	struct live l;
	char who[LIVE_WHO];

	live_begin(&l, &class, 1, NULL, NULL);
	c = live_connect(&l, LIVE_SERVICE, NULL);
	ck_assert_int_ne(live_call(c, 10, who), 0);
	rxw_connection_release(c);

	s = client_class(keys, &o, NULL);
	c = live_connect(&l, LIVE_SERVICE, s);
	ck_assert_int_eq(live_call(c, 10, who), RXW_RXGK_BADLEVEL);
	rxw_connection_release(c);
	rxw_security_unref(s);

	o.level = 2;
	s = client_class(others, &o, NULL);
	c = live_connect(&l, LIVE_SERVICE, s);
	ck_assert_int_eq(live_call(c, 10, who), RXW_RXGK_SEALED_INCON);
	rxw_connection_release(c);
	rxw_security_unref(s);
	live_end(&l);
	rxw_security_unref(class);
	rxw_keys_unref(keys);
	rxw_keys_unref(others);
}
END_TEST

/* A clock that the test sets; both ends use it. */
static _Atomic(int64_t) ahead;

static int64_t moved(void *context)
{
	return rxw_gk_clock(context) + atomic_load(&ahead);
}

struct caller {
	pthread_t thread;
	rxw_connection *connection;
	unsigned calls;
};

static void *caller(void *arg)
{
	struct caller *c = arg;
	char who[LIVE_WHO];

	for (unsigned i = 0; i < c->calls; i++)
		ck_assert_int_eq(live_call(c->connection, 30000 + 777 * (size_t)i, who), 0);
	return NULL;
}

/* Concurrent calls on one connection, with key changes among them. */
START_TEST(many_and_new_keys)
{
	rxw_keys *keys = rig_keys(2, 18);
	struct rxw_rxgk_print_options o = {.level = (uint32_t)_i, .rekey_s = 1};
	rxw_security *class = server_class(keys, 0, 4, moved), *s = client_class(keys, &o, moved);
	struct caller callers[4];
	rxw_connection *c;
	struct live l;

	live_begin(&l, &class, 1, NULL, NULL);
	c = live_connect(&l, LIVE_SERVICE, s);
	for (int round = 0; round < 6; round++) {
		/*
		 * The clock moves while no call runs: keys are a minute apart, and no packet is
		 * that old.
		 */
		atomic_fetch_add(&ahead, 61 * RXW_RXGK_SECOND);
		for (int i = 0; i < 4; i++) {
			callers[i].connection = c;
			callers[i].calls = 4;
			ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, caller,
							&callers[i]), 0);
		}
		for (int i = 0; i < 4; i++)
			pthread_join(callers[i].thread, NULL);
	}
	rxw_connection_release(c);
	live_end(&l);
	rxw_security_unref(s);
	rxw_security_unref(class);
	rxw_keys_unref(keys);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rxgk_live");
	TCase *tcase = tcase_create("rxgk_live");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, every_level);
	tcase_add_test(tcase, refused);
	tcase_add_loop_test(tcase, many_and_new_keys, 1, 3);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
