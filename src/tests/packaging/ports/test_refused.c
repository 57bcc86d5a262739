/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels without certain features: the endpoint reports what it lacks, and every byte arrives. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refuse.h"
#include "tests/rx/api/harness.h"

#define CONNECTIONS 6u

static struct h_bed bed;

static void open_bed(void)
{
	h_open(&bed, &(struct h_options){ .server = "listeners=3" });
}

static struct rxw_effective effective(rxw_endpoint *endpoint)
{
	struct rxw_effective e = { .size = sizeof(e) };

	ck_assert_int_eq(rxw_endpoint_effective(endpoint, &e), 0);
	return e;
}

/* Transfers both ways, on connections that are spread over the server's sockets. */
static void move_streams(void)
{
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		rxw_connection *c = h_connect(&bed, H_SERVICE);

		h_good_call(&bed, c, &(struct h_ask){ .op = H_BOTH, .bytes = 300000, .seed = i });
		rxw_connection_release(c);
	}
}

/* The state that the endpoint must report. */
static void check_figures(rxw_endpoint *endpoint, const struct rxw_effective *e, bool gso, bool gro)
{
	struct counters s = counters_of(endpoint);
	bool batches = !strcmp(e->io, "mmsg");

	if (!e->gso)
		ck_assert_uint_eq(counter_in(&s, "gso_messages"), 0);
	if (!e->gro)
		ck_assert_uint_eq(counter_in(&s, "gro_messages"), 0);
	/* Each socket without bursts counts that. */
	ck_assert_uint_eq(counter_in(&s, "gso_fallbacks"), batches && gso ? e->listeners : 0);
	ck_assert_uint_eq(counter_in(&s, "gro_fallbacks"), batches && gro ? e->listeners : 0);
	if (!batches) {
		ck_assert_uint_ge(counter_in(&s, "syscalls.send"), counter_in(&s, "datagrams.sent"));
		ck_assert_uint_ge(counter_in(&s, "syscalls.receive"),
				  counter_in(&s, "datagrams.received"));
	}
}

/* `what` is refused: only that may change. */
static void without(const char *what)
{
	bool all = !strcmp(what, "all"), mmsg = all || !strncmp(what, "mmsg", 4);
	bool gso = all || strstr(what, "gso"), gro = all || strstr(what, "gro");
	bool share = all || strstr(what, "reuseport"), steer = all || strstr(what, "steer");
	struct rxw_effective had, has;
	int rc;

	open_bed();
	had = effective(bed.server);
	h_close(&bed);
	rc = refuse(what);
	if (rc == -ENOTSUP) {
		printf("SKIP: this machine cannot refuse system calls\n");
		return;
	}
	ck_assert_int_eq(rc, 0);

	open_bed();
	has = effective(bed.server);
	ck_assert_str_eq(has.io, mmsg ? "msg" : had.io);
	ck_assert_int_eq(has.gso, gso || mmsg ? 0 : had.gso);
	ck_assert_int_eq(has.gro, gro || mmsg ? 0 : had.gro);
	ck_assert_uint_eq(has.listeners, share ? 1 : had.listeners);
	ck_assert_int_eq(has.steered, steer || share ? 0 : had.steered);
	move_streams();
	check_figures(bed.server, &has, gso, gro);
	has = effective(bed.client);
	check_figures(bed.client, &has, gso, gro);
	h_close(&bed);
}

static const char *const words[] = { "gso",	  "gro",  "steer",		     "reuseport",
				     "mmsg", "mmsg-filtered", "gso,gro", "gso,gro,steer", "all" };

START_TEST(lacks)
{
	without(words[_i]);
}
END_TEST

START_TEST(known_words)
{
	ck_assert_int_eq(refuse("gso,nothing"), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("refused");
	TCase *tc = tcase_create("kernel");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 90);
	tcase_add_loop_test(tc, lacks, 0, sizeof(words) / sizeof(words[0]));
	tcase_add_test(tc, known_words);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
