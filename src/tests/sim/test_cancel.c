/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a cancellation or a deadline of a client takes to reach its server, in virtual time: the
 * path's delay, and the time until a thread runs; with bulk on its way also the queue of the path.
 */
#include <stdio.h>

#include "sim.h"
#include "tests/main.h"

#define CODE  4711
#define SEEDS 20
#define AFTER 1000 /* ms from the start of the run to the end of the calls */

static struct sim sim;
static uint64_t queued; /* the longest that an ABORT of the client waits in the queue of the path */

static bool tap(struct sim *at, const struct sim_node *from, const uint8_t *bytes, uint32_t length)
{
	const struct sim_link *up = &at->setup.up;

	if (from->client && length > 20 && bytes[20] == RXW_ABORT &&
	    up->busy_until > at->now + queued)
		queued = up->busy_until - at->now;
	return false;
}

/* All channels of a connection wait for their replies, or send and receive bulk. */
static void waiting(struct sim_setup *s, uint64_t delay, bool bulk)
{
	sim_default(s);
	s->up = s->down = (struct sim_link){.delay = delay, .mtu = 65507};
	s->request = 100;
	s->reply = 1u << 30;
	s->stall = 3600 * RXW_SEC; /* channel 0 of the server is not read: its handler waits */
	s->limit = 30 * RXW_SEC;
	if (!bulk)
		return;
	s->stall = 0;
	s->channels = 4;
	s->up.rate = s->down.rate = 10000000;
	s->up.queue = s->down.queue = 4000000; /* nothing is lost */
	s->request = 1u << 30;
}

/* Virtual ns from the end of the calls at the client to that at the server. */
static uint64_t run(struct sim_setup *s, uint64_t seed, int32_t code)
{
	unsigned channels = s->channels;
	uint64_t took;

	s->may_end = code;
	/* A second call on each channel, so that the run goes on when the first ones have ended. */
	s->calls = 2;
	s->stop_at = AFTER * RXW_MS * 3 / 2;
	sim_run(&sim, s, seed);
	ck_assert_msg(sim.failure[0] == '\0', "seed %llu: %s", (unsigned long long)seed,
		      sim.failure);
	ck_assert_uint_eq(sim.client.calls_failed, channels);
	ck_assert_uint_eq(sim.server.calls_failed, channels);
	took = sim.server.failed_at - sim.client.failed_at;
	sim_free(&sim);
	ck_assert_msg(sim.failure[0] == '\0', "%s", sim.failure);
	return took;
}

/* Receiving takes up to `receive_wait`, and longer if there is a batch before. */
static void expect(const char *what, struct sim_setup *s, int32_t code, uint64_t extra)
{
	uint64_t delay = s->up.delay, worst = 0;

	queued = 0;
	s->tap = tap;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_setup copy = *s;
		uint64_t took = run(&copy, seed, code);

		worst = took > worst ? took : worst;
		ck_assert_uint_ge(took, delay);
	}
	printf("%s: at most %.3f ms, of these %.3f ms in the queue of the path; its round trip is "
	       "%.1f ms\n",
	       what, (double)worst / 1e6, (double)queued / 1e6, (double)(2 * delay) / 1e6);
	ck_assert_msg(worst <= delay + queued + s->receive_wait + extra, "%.3f ms",
		      (double)worst / 1e6);
}

static const uint64_t delays[] = {RXW_MS / 10, 10 * RXW_MS, 100 * RXW_MS};
#define DELAYS (sizeof(delays) / sizeof(delays[0]))

START_TEST(an_abort)
{
	for (unsigned i = 0; i < DELAYS; i++) {
		struct sim_setup s;

		waiting(&s, delays[i], false);
		sim_plan(&s, AFTER, SIM_ABORT, SIM_UP, CODE);
		expect("an abort", &s, CODE, 0);
	}
}
END_TEST

START_TEST(a_deadline)
{
	for (unsigned i = 0; i < DELAYS; i++) {
		struct sim_setup s;

		waiting(&s, delays[i], false);
		s.client.hard = AFTER * RXW_MS;
		expect("a deadline", &s, RXW_CALL_TIMEOUT, 0);
	}
}
END_TEST

/* The ABORT waits behind what is in the queue of the path already, and not for acknowledgements. */
START_TEST(an_abort_beside_bulk)
{
	for (unsigned i = 0; i < DELAYS; i++) {
		struct sim_setup s;

		waiting(&s, delays[i], true);
		sim_plan(&s, AFTER, SIM_ABORT, SIM_UP, CODE);
		expect("an abort beside bulk", &s, CODE, s.up.queue * RXW_SEC / s.up.rate + RXW_MS);
	}
}
END_TEST

TEST_MAIN("cancel", an_abort, a_deadline, an_abort_beside_bulk)
