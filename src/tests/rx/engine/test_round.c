/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds: callers that one batch woke send together, and no request waits for callers that stay away. */
#include "engine/dispatch/dispatch.h"
#include "engine/objects.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define CALLERS 12u
#define A_DAY	(24 * 3600 * RXW_SEC)

static struct h_bed bed;
static struct rxw_shard *shard;

static void open_bed(void)
{
	h_open(&bed, NULL);
	shard = &bed.client->shard[0];
	bed.client->engine->cpus = 1;
}

/* As if the latest batch had woken so many callers. */
static void await(int callers)
{
	atomic_store(&shard->tx.round.until, rxw_now() + A_DAY);
	atomic_store(&shard->tx.round.awaited, callers);
}

static void ping(void)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	rxw_connection_release(connection);
}

/* The first caller guards the round, and the last one sends. */
START_TEST(last_caller_sends)
{
	struct rxw_left left = {.guard = false};
	uint64_t now = rxw_now();

	open_bed();
	ck_assert(!rxw_round_open(shard));
	rxw_round_begin(shard, 1, now);
	ck_assert_msg(!rxw_round_open(shard), "a processor is free for a single caller");
	rxw_round_begin(shard, 3, now);
	ck_assert(rxw_round_leave(shard, now, &left));
	ck_assert(left.guard);
	ck_assert_uint_gt(left.until, now);
	left.guard = false;
	ck_assert(rxw_round_leave(shard, now, &left));
	ck_assert(!left.guard);
	ck_assert(!rxw_round_leave(shard, now, &left));
	ck_assert(!rxw_round_open(shard));
	h_close(&bed);
}
END_TEST

/* A caller that comes late sends, and so does the next one. */
START_TEST(late_caller_sends)
{
	struct rxw_left left = {.guard = false};
	uint64_t now = rxw_now();

	open_bed();
	rxw_round_begin(shard, 8, now);
	ck_assert(rxw_round_leave(shard, now, &left));
	ck_assert(!rxw_round_leave(shard, now + RXW_MS, &left));
	ck_assert(!rxw_round_open(shard));
	rxw_round_begin(shard, 2, now + RXW_MS);
	left.guard = false;
	ck_assert(rxw_round_leave(shard, now + RXW_MS, &left));
	ck_assert_msg(left.guard, "the next round has a guard of its own");
	h_close(&bed);
}
END_TEST

/* Nobody else comes: the caller's own guard sends, and no round follows for a while. */
START_TEST(absent_callers)
{
	struct rxw_round *r;

	open_bed();
	r = &shard->tx.round;
	for (unsigned missed = 1; missed <= 3; missed++) {
		/* Another thread that looks at the queue meanwhile, such as the listener once a second, sends first. */
		do {
			await(8);
			ping();
		} while (atomic_load(&r->missed) < missed);
		ck_assert_uint_ge(atomic_load(&r->left), missed);
		ck_assert_uint_eq(atomic_load(&r->missed), missed);
		ck_assert_uint_eq(atomic_load(&r->pause), 4u << (missed - 1));
		ck_assert(!rxw_round_open(shard));
	}
	for (unsigned left = 16; left; left--) {
		rxw_round_begin(shard, 8, rxw_now());
		ck_assert(!rxw_round_open(shard));
	}
	rxw_round_begin(shard, 8, rxw_now());
	ck_assert(rxw_round_open(shard));
	h_close(&bed);
}
END_TEST

static void *waiting_call(void *arg)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	(void)arg;
	h_good_call(&bed, connection, &(struct h_ask){.op = H_WAIT});
	rxw_connection_release(connection);
	return NULL;
}

/* The same while the listener receives, since other callers wait. */
START_TEST(absent_callers_and_listener)
{
	pthread_t thread[2];

	open_bed();
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, waiting_call, NULL);
	h_gate_arrived(&bed, 2);
	do {
		await(8);
		ping();
	} while (atomic_load(&shard->tx.round.missed) < 1);
	h_gate_open(&bed);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	h_close(&bed);
}
END_TEST

/* A request that nobody has sent does not outlive its connection, and a later call is not left. */
START_TEST(failed_call)
{
	rxw_connection *connection;
	rxw_call *call;
	char byte;

	open_bed();
	connection = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	await(8);
	rxw_call_abort(call, 77);
	ck_assert_int_lt(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 77);
	rxw_connection_release(connection);
	await(8);
	ping();
	h_close(&bed);
}
END_TEST

static unsigned each;

static void *many_calls(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < each; i++)
		ping();
	return NULL;
}

/* More callers than processors, as far as the engine knows. Every call ends. */
START_TEST(crowd)
{
	pthread_t thread[CALLERS];

	open_bed();
	each = h_small() ? 100 : 500;
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_create(&thread[i], NULL, many_calls, NULL);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(thread[i], NULL);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(240, "round", last_caller_sends, late_caller_sends, absent_callers,
		 absent_callers_and_listener, failed_call, crowd)
