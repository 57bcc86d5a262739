/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection identifiers, the clock, and run times of handlers. */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "engine/objects.h"
#include "engine/sched/sched.h"
#include "tests/main.h"

static int by_name(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * A server keeps a connection long after the client released it. If a new connection reused its
 * identifier, the server would answer the first packets as those of an old call.
 */
START_TEST(no_name_comes_twice)
{
	enum { N = 200000 }; /* with random ids, 18 collisions would be expected */
	uint64_t *name = malloc(N * sizeof(*name));
	uint32_t epoch, cid, before;
	struct rxw_engine *e;

	ck_assert_ptr_nonnull(name);
	ck_assert_int_eq(rxw_engine_create(NULL, &e), 0);
	for (int i = 0; i < N; i++) {
		if (rxw_engine_name(e, &epoch, &cid) || !cid || cid & 3)
			ck_abort_msg("the %d-th name is %08x %08x", i, epoch, cid);
		name[i] = (uint64_t)epoch << 32 | cid;
	}
	qsort(name, N, sizeof(*name), by_name);
	for (int i = 1; i < N; i++)
		if (name[i] == name[i - 1])
			ck_abort_msg("%08x comes twice", (uint32_t)name[i]);
	/* An exhausted epoch is replaced (1.6). */
	before = epoch;
	e->named = RXW_NAMES_MAX - 1;
	ck_assert_int_eq(rxw_engine_name(e, &epoch, &cid), 0);
	ck_assert_uint_eq(epoch, before);
	ck_assert_int_eq(rxw_engine_name(e, &epoch, &cid), 0);
	ck_assert_uint_ne(epoch, before);
	ck_assert_uint_eq(epoch >> 30, 2);
	ck_assert_int_eq(rxw_engine_name(e, &before, &cid), 0);
	ck_assert_uint_eq(epoch, before);
	ck_assert_int_eq(rxw_engine_destroy(e), 0);
	free(name);
}
END_TEST

static int refuse_connection(void *data, const struct rxw_security_id *id, void **conn)
{
	(void)data;
	(void)id;
	*conn = NULL;
	return -RXW_EINVAL;
}

/* A class that refuses a connection: the connection's references of its peer are dropped. */
START_TEST(a_refused_connection_leaves_its_peer)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_security refusing = *rxw_security_null();
	struct rxw_connection *c;
	struct rxw_endpoint *ep;
	struct rxw_peer *peer;
	struct rxw_engine *e;
	struct rxw_addr addr;

	refusing.class.conn_create = refuse_connection;
	ck_assert_int_eq(rxw_engine_create(NULL, &e), 0);
	ck_assert_int_eq(rxw_endpoint_create(e, NULL, &ep), 0);
	ck_assert_int_eq(
		rxw_connection_create(ep, (struct sockaddr *)&to, sizeof(to), 1, &refusing, &c),
		-RXW_EINVAL);
	ck_assert(rxw_addr_set(&addr, (struct sockaddr *)&to, sizeof(to)));
	peer = rxw_peer_get(ep->peers.table, &addr, rxw_now());
	ck_assert_uint_eq(atomic_load(&peer->refs), 1);
	rxw_peer_unref(peer, rxw_now());
	ck_assert_int_eq(rxw_endpoint_destroy(ep), 0);
	ck_assert_int_eq(rxw_engine_destroy(e), 0);
}
END_TEST

/* The monotonic clock: changes of the system time end no call. */
START_TEST(times_are_monotonic)
{
	struct timespec t;
	uint64_t before, now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	before = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	now = rxw_now();
	clock_gettime(CLOCK_MONOTONIC, &t);
	ck_assert_uint_ge(now, before);
	ck_assert_uint_le(now, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}
END_TEST

static long preemptions; /* of this thread, for the library */

/* NOLINTNEXTLINE: it replaces that of the C library */
int getrusage(__rusage_who_t who, struct rusage *u)
{
	(void)who;
	*u = (struct rusage){.ru_nivcsw = preemptions};
	return 0;
}

/* A preempted handler makes no service slow; one that took as long by itself does, and so do many. */
START_TEST(preempted_handlers)
{
	enum { QUICK = 5000, LONG = 3000000 };
	static struct rxw_endpoint ep;
	static struct rxw_service service;

	ep.settings.constants.inline_us = 500;
	service.ep = &ep;
	ck_assert(rxw_run_note(&service, QUICK));
	for (int i = 0; i < 200; i++) {
		preemptions += i % 8 == 0;
		ck_assert(rxw_run_note(&service, i % 8 == 0 ? LONG : QUICK));
	}
	ck_assert(!rxw_run_note(&service, LONG));
	for (int i = 0; i < 200; i++)
		rxw_run_note(&service, QUICK);
	ck_assert(rxw_run_note(&service, QUICK));
	for (int i = 0; i < 200; i++) {
		preemptions++;
		rxw_run_note(&service, LONG);
	}
	ck_assert(!rxw_run_note(&service, QUICK));
}
END_TEST

TEST_MAIN("core of the engine", no_name_comes_twice, a_refused_connection_leaves_its_peer,
	  times_are_monotonic, preempted_handlers)
