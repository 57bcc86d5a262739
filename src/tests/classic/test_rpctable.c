/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of calls: limits, calls that do not fit, threads. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>

#include "classic/watch/rpctable.h"
#include "tests/main.h"

#define PEERS	1500
#define KEPT	1024
#define THREADS 4
#define CALLS	2000

static void add(struct rpctable *table, afs_uint32 host, unsigned interface_id, unsigned function,
		unsigned functions)
{
	const struct rpctable_function of = {interface_id, function, functions, false};
	const struct classic_usage usage = {.host = htonl(host), .port = htons(7001), .sent = 3};

	rpctable_add(table, &of, &usage);
}

/* Calls of a peer in a list of one interface with one function. */
static afs_uint32 calls_of(const afs_uint32 *words, int count, afs_uint32 host)
{
	for (int i = 0; i < count; i++)
		if (words[i * RPCTABLE_WORDS] == htonl(host))
			return words[i * RPCTABLE_WORDS + 7];
	return 0;
}

START_TEST(peers_are_bounded)
{
	afs_uint32 *words;
	int count;

	rpctable_count(&rpctable_peers, true);
	add(&rpctable_peers, 1, 7, 0, 1);
	for (afs_uint32 i = 2; i <= PEERS; i++) {
		add(&rpctable_peers, i, 7, 0, 1);
		add(&rpctable_peers, 1, 7, 0, 1); /* the first one stays */
	}
	count = rpctable_list(&rpctable_peers, &words);
	ck_assert_int_eq(count, KEPT);
	ck_assert_uint_eq(calls_of(words, count, 1), PEERS);
	ck_assert_uint_eq(calls_of(words, count, 2), 0);
	ck_assert_uint_eq(calls_of(words, count, PEERS - KEPT + 1), 0);
	ck_assert_uint_eq(calls_of(words, count, PEERS - KEPT + 2), 1);
	ck_assert_uint_eq(calls_of(words, count, PEERS), 1);
	free(words);
	rpctable_count(&rpctable_peers, false);
	ck_assert_int_eq(rpctable_list(&rpctable_peers, &words), 0);
	ck_assert_ptr_null(words);
}
END_TEST

START_TEST(calls_that_do_not_fit)
{
	afs_uint32 *words;

	add(&rpctable_process, 1, 7, 0, 2); /* does not count yet */
	rpctable_count(&rpctable_process, true);
	ck_assert_int_eq(rpctable_list(&rpctable_process, &words), 0);
	add(&rpctable_process, 1, 7, 2, 2); /* no such function */
	add(&rpctable_process, 1, 7, 0, 0);
	ck_assert_int_eq(rpctable_list(&rpctable_process, &words), 0);
	add(&rpctable_process, 1, 7, 1, 2);
	add(&rpctable_process, 1, 7, 1, 3); /* another interface with the same number */
	add(&rpctable_process, 1, 7, 2, 3);
	ck_assert_int_eq(rpctable_list(&rpctable_process, &words), 2);
	ck_assert_uint_eq(words[7], 0);
	ck_assert_uint_eq(words[RPCTABLE_WORDS + 7], 1);
	ck_assert_uint_eq(words[RPCTABLE_WORDS + 9], 3);
	free(words);
	rpctable_count(&rpctable_process, false);
}
END_TEST

static void *run(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < CALLS; i++) {
		add(&rpctable_process, 1, i % 3, i % 5, 5);
		add(&rpctable_peers, i, i % 3, i % 5, 5);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t thread[THREADS];
	afs_uint32 *words, calls = 0;
	int count;

	rpctable_count(&rpctable_process, true);
	rpctable_count(&rpctable_peers, true);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run, NULL), 0);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_ge(rpctable_list(&rpctable_peers, &words), 0);
		free(words);
		rpctable_clear(&rpctable_peers, AFS_RX_STATS_CLEAR_ALL);
		rpctable_count(&rpctable_peers, i % 2);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	count = rpctable_list(&rpctable_process, &words);
	ck_assert_int_eq(count, 15);
	for (int i = 0; i < count; i++)
		calls += words[i * RPCTABLE_WORDS + 7];
	ck_assert_uint_eq(calls, THREADS * CALLS);
	free(words);
	rpctable_count(&rpctable_process, false);
	rpctable_count(&rpctable_peers, false);
}
END_TEST

TEST_MAIN("rpctable", peers_are_bounded, calls_that_do_not_fit, threads)
