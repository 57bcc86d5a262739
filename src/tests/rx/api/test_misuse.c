/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that are ended twice, and those that cannot be destroyed: the library says so. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static char logged[2000];

static void keep_line(void *unused, enum rxw_log_level level, const char *line)
{
	(void)unused;
	(void)level;
	strncat(logged, line, sizeof(logged) - strlen(logged) - 1);
}

static rxw_code hold(rxw_call *call, void *held)
{
	ck_assert_int_eq(rxw_call_defer(call), 0);
	*(rxw_call **)held = call;
	return 0;
}

/* A client of its own service. */
struct own {
	rxw_engine *engine;
	rxw_endpoint *server, *client;
	rxw_connection *c;
	rxw_call *held;
};

static void make(struct own *o)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&any,
					       .address_len = sizeof(any),
					       .server = 1};
	struct rxw_service_options service = {
		.size = sizeof(service), .id = 5, .handler = hold, .context = &o->held};
	struct sockaddr_storage to;
	struct rxw_config config;
	socklen_t length;

	*o = (struct own){.held = NULL};
	rxw_config_init(&config, sizeof(config));
	config.log = keep_line;
	ck_assert_int_eq(rxw_engine_create(&config, &o->engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(o->engine, &options, &o->server), 0);
	ck_assert_int_eq(rxw_service_add(o->server, &service, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_create(o->engine, NULL, &o->client), 0);
	ck_assert_int_eq(rxw_endpoint_address(o->server, &to, &length), 0);
	ck_assert_int_eq(
		rxw_connection_create(o->client, (struct sockaddr *)&to, length, 5, NULL, &o->c),
		0);
}

static bool is_held(void *held)
{
	return __atomic_load_n((rxw_call **)held, __ATOMIC_SEQ_CST);
}

/* Each refusal has a line in the log that names what is open. */
START_TEST(what_is_still_open)
{
	rxw_queue *queue;
	rxw_call *call;
	struct own o;

	make(&o);
	ck_assert_int_eq(rxw_call_begin(o.c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_wait_for(is_held, &o.held, "the handler");
	ck_assert_int_eq(rxw_endpoint_destroy(o.client), -RXW_ESTATE);
	ck_assert_ptr_nonnull(
		strstr(logged, "1 connections are not released, 1 calls are not ended"));
	ck_assert_int_eq(rxw_endpoint_destroy(o.server), -RXW_ESTATE);
	ck_assert_ptr_nonnull(strstr(logged, "1 deferred calls of service 5 are not ended"));
	ck_assert_int_eq(rxw_engine_destroy(o.engine), -RXW_ESTATE);
	ck_assert_ptr_nonnull(strstr(logged, "2 endpoints"));
	ck_assert_int_eq(rxw_call_end(o.held, 0, NULL), 0);
	ck_assert_int_eq(rxw_queue_create(o.engine, NULL, &queue), 0);
	ck_assert_int_eq(rxw_call_set_queue(call, queue, NULL), 0);
	ck_assert_int_eq(rxw_queue_destroy(queue), -RXW_ESTATE);
	ck_assert_ptr_nonnull(strstr(logged, "1 calls, services"));
	rxw_call_end(call, 0, NULL);
	rxw_connection_release(o.c);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(o.client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(o.server), 0);
	ck_assert_int_eq(rxw_engine_destroy(o.engine), 0);
}
END_TEST

/* ---- twice ---- */

static void end_twice(struct own *o)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(o->c, NULL, &call), 0);
	rxw_call_end(call, 1, NULL);
	rxw_call_end(call, 1, NULL);
}

static void end_deferred_twice(struct own *o)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(o->c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_wait_for(is_held, &o->held, "the handler");
	rxw_call_end(o->held, 0, NULL);
	rxw_call_end(o->held, 0, NULL);
}

static void destroy_endpoint_twice(struct own *o)
{
	rxw_connection_release(o->c);
	ck_assert_int_eq(rxw_endpoint_destroy(o->client), 0);
	rxw_endpoint_destroy(o->client);
}

static void destroy_queue_twice(struct own *o)
{
	rxw_queue *queue;

	ck_assert_int_eq(rxw_queue_create(o->engine, NULL, &queue), 0);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	rxw_queue_destroy(queue);
}

static void (*const twice[])(struct own *o) = {end_twice, end_deferred_twice,
					       destroy_endpoint_twice, destroy_queue_twice};

/* An assertion fails; a sanitizer reports the use of freed memory before that. */
START_TEST(the_second_end)
{
	struct own o;

	make(&o);
	twice[_i](&o);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("misuse");
	TCase *tcase = tcase_create("misuse");
	SRunner *runner;
	int left;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_is_still_open);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
#if !defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (srunner_fork_status(runner) == CK_FORK)
		tcase_add_loop_test_raise_signal(tcase, the_second_end, SIGABRT, 0,
						 sizeof(twice) / sizeof(twice[0]));
#else
	printf("skipped: ending twice, which a sanitizer reports\n");
	(void)the_second_end;
#endif
	srunner_run_all(runner, CK_ENV);
	left = srunner_ntests_failed(runner);
	srunner_free(runner);
	return left ? EXIT_FAILURE : EXIT_SUCCESS;
}
