/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers that receive for themselves: who looks at the socket, and who sleeps. */
#include "engine/internal.h"
#include "tests/main.h"
#include "tests/rx/face/harness.h"

#define CALLS 400u

static struct h_bed bed;

static unsigned most_seen;

/* What a caller does while it waits for a reply: the receive calls that it made for each. */
static uint64_t looks_of_calls(unsigned lookers)
{
	rxw_connection *connection;
	uint64_t before;

	h_open(&bed, &(struct h_options){.client = "spin-us=1000"});
	bed.client_engine->lookers_max = lookers;
	connection = h_connect(&bed, H_SERVICE);
	before = h_stats(bed.client).syscalls_recv;
	for (unsigned i = 0; i < CALLS; i++) {
		unsigned waiting;

		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
		waiting = atomic_load(&bed.client_engine->waiting);
		most_seen = waiting > most_seen ? waiting : most_seen;
	}
	before = h_stats(bed.client).syscalls_recv - before;
	rxw_connection_release(connection);
	return before;
}

/* More wait than may look: it sleeps, and is woken by what comes. */
START_TEST(a_crowd_sleeps)
{
	uint64_t looks = looks_of_calls(0);

	ck_assert_uint_le(looks, 8 * CALLS);
	ck_assert_uint_eq(most_seen, 0); /* nobody waits any more once its call is answered */
	h_close(&bed);
}
END_TEST

/* One that may looks at least once for each call, and counts itself no longer than it waits. */
START_TEST(one_looks)
{
	uint64_t looks = looks_of_calls(1);

	ck_assert_uint_ge(looks, CALLS);
	ck_assert_uint_eq(most_seen, 0);
	ck_assert_uint_ge(bed.client_engine->lookers_max, 1);
	h_close(&bed);
}
END_TEST

TEST_MAIN("listener", a_crowd_sleeps, one_looks)
