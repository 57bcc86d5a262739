/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers blocked on slow clients: other workers replace them, within limits. */
#include <unistd.h>

#include "base/wire.h"
#include "engine/lock.h"
#include "engine/sched/inner.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

static struct h_bed bed;
static uint8_t head[H_ASK_SIZE];
static uint32_t cid;

static void open_bed(const char *tunables)
{
	cid = 0;
	h_open(&bed, &(struct h_options){.server = tunables});
}

/*
 * Even clients never read the reply, odd ones never finish the request. Each has its own
 * connection.
 */
static void stall(int fd, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		enum h_op op = i % 2 ? H_SINK : H_SOURCE;
		struct h_raw raw = h_raw_request(head, op, cid += 4);

		h_encode_ask(head, &(struct h_ask){.op = op, .bytes = 10u << 20});
		if (i % 2)
			raw.flags &= ~(unsigned)RXW_LAST_PACKET;
		h_raw_send(fd, &raw);
	}
}

static void good_calls(unsigned n)
{
	rxw_connection *c = h_connect(&bed, H_SERVICE);

	for (unsigned i = 0; i < n; i++)
		h_good_call(&bed, c, &(struct h_ask){.op = H_BOTH, .bytes = 20000});
	rxw_connection_release(c);
}

static bool parked(void *arg)
{
	return counter_of(bed.server, "workers_parked") == *(unsigned *)arg;
}

static bool calls_wait(void *arg)
{
	return counter_of(bed.server, "calls_waiting") == *(unsigned *)arg;
}

static bool few_workers(void *arg)
{
	return counter_of(bed.server, "workers") <= *(unsigned *)arg;
}

static bool given_up(void *arg)
{
	return counter_of(bed.server, "calls_given_up") >= *(uint64_t *)arg;
}

/* The next packet of a stalled call ends it. */
static void abort_all(int fd)
{
	for (uint32_t k = 4; k <= cid; k += 4) {
		struct h_raw raw = h_raw_request(head, H_PING, k);

		raw.type = RXW_ABORT;
		raw.call = raw.seq = 0;
		raw.flags = RXW_CLIENT_INITIATED;
		raw.body = (const uint8_t *)"\0\0\0\1";
		raw.size = 4;
		h_raw_send(fd, &raw);
	}
}

/* Ten stalled calls and four workers: all calls are served at once, and none is aborted. */
START_TEST(others_take_their_places)
{
	unsigned ten = 10, four = 4, none = 0;
	int fd;

	open_bed("workers-max=4 waiters-max=12 reserved-peers=0 dead-ms=60000");
	fd = h_raw_socket(&bed);
	stall(fd, 10);
	h_wait_for(parked, &ten, "all that wait are parked");
	good_calls(20);
	ck_assert_uint_le(counter_of(bed.server, "workers"), 16);
	ck_assert_uint_eq(counter_of(bed.server, "calls_given_up"), 0);
	abort_all(fd);
	h_wait_for(parked, &none, "none waits");
	h_wait_for(few_workers, &four, "threads that are not needed any more end");
	good_calls(5);
	close(fd);
	h_close(&bed);
}
END_TEST

/* Beyond the limit, calls without progress are aborted and counted. */
START_TEST(who_moves_nothing_goes)
{
	uint64_t twelve = 12;
	int fd;

	open_bed("workers-max=4 waiters-max=4 reserved-peers=0 queue-burst-ms=0 dead-ms=60000");
	fd = h_raw_socket(&bed);
	stall(fd, 20);
	h_wait_for(given_up, &twelve, "all of them but those that there is room for");
	good_calls(20);
	ck_assert_uint_le(counter_of(bed.server, "workers"), 8);
	ck_assert_uint_le(counter_of(bed.server, "calls_given_up"), 20);
	abort_all(fd);
	close(fd);
	h_close(&bed);
}
END_TEST

/* The default sets the limit. With 0 no worker is replaced, and each counts. */
START_TEST(each_one_counts)
{
	unsigned eight = 8;
	int fd;

	open_bed("workers-max=2 waiters-max=0 reserved-peers=0 dead-ms=60000");
	fd = h_raw_socket(&bed);
	stall(fd, 2);
	stall(fd, 8);
	h_wait_for(calls_wait, &eight, "two have the workers");
	ck_assert_uint_eq(counter_of(bed.server, "workers"), 2);
	ck_assert_uint_eq(counter_of(bed.server, "workers_parked"), 0);
	ck_assert(atomic_load(&bed.server->workers->sample_at) == UINT64_MAX);
	abort_all(fd);
	good_calls(5);
	close(fd);
	h_close(&bed);
}
END_TEST

/* --- successive scans, with a clock of the test's own --- */

static unsigned that_wait(void)
{
	struct rxw_workers *w = bed.server->workers;
	unsigned n = 0;

	rxw_workers_lock(bed.server);
	for (struct rxw_worker *k = w->list; k; k = k->next)
		n += k->call && !k->ending && atomic_load(&k->blocked) == RXW_BLOCKED_ON_PEER;
	rxw_workers_unlock(bed.server);
	return n;
}

static bool so_many_wait(void *arg)
{
	return that_wait() == *(unsigned *)arg;
}

static void set_waiters(unsigned n)
{
	rxw_workers_lock(bed.server);
	bed.server->workers->waiters = n;
	atomic_store(&bed.server->workers->sample_at, 0);
	rxw_workers_unlock(bed.server);
}

/* Sets the packets that each call moved since its first scan. known: or is said to have moved. */
static void moved(uint32_t packets, bool known)
{
	rxw_workers_lock(bed.server);
	for (struct rxw_worker *k = bed.server->workers->list; k; k = k->next) {
		k->moved_before -= packets;
		if (!known)
			atomic_fetch_sub(&k->moved, packets);
	}
	rxw_workers_unlock(bed.server);
}

/* The only client of these tests. */
static void set_served(bool was)
{
	rxw_workers_lock(bed.server);
	for (struct rxw_worker *k = bed.server->workers->list; k; k = k->next)
		if (k->call)
			k->call->conn->p.peer->served = was;
	rxw_workers_unlock(bed.server);
}

static void look(uint64_t at)
{
	rxw_end_slow_calls(bed.server, at);
}

static void expect(unsigned parked_now, uint64_t given)
{
	struct counters s = counters_of(bed.server);

	ck_assert_uint_eq(counter_in(&s, "workers_parked"), parked_now);
	ck_assert_uint_eq(counter_in(&s, "calls_given_up"), given);
}

START_TEST(looks)
{
	unsigned two = 2, four = 4, six = 6, waiting = 4;
	uint64_t t;
	int fd;

	open_bed("workers-max=2 waiters-max=0 reserved-peers=0 dead-ms=60000 server-idle-ms=off "
		 "listeners=1 writer-receives=0");
	fd = h_raw_socket(&bed);
	stall(fd, 8);
	h_wait_for(calls_wait, &six, "two have the workers");
	h_wait_for(so_many_wait, &two, "these wait for their clients");
	/* Only this test runs the scans, with its own clock. */
	atomic_store(&bed.server->life.quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	set_waiters(2);
	t = rxw_now() + RXW_SEC;
	look(t);
	expect(0, 0);
	look(t + 9 * RXW_MS); /* too early to decide */
	expect(0, 0);
	look(t + 10 * RXW_MS);
	expect(2, 0);
	h_wait_for(calls_wait, &waiting, "two more take their places");
	h_wait_for(so_many_wait, &four, "and wait, too");
	look(t + 20 * RXW_MS);
	look(t + 30 * RXW_MS);
	expect(2, 0);
	/* Half a second after their first scan they count as slow if they made no progress. */
	moved(1000, true);
	look(t + 600 * RXW_MS);
	expect(2, 0);
	moved((uint32_t)-1000, true);
	moved(1000, false);
	look(t + 700 * RXW_MS);
	expect(2, 0);
	ck_assert_uint_eq(that_wait(), 4);
	/* Progress made long ago does not count. */
	look(t + 12 * RXW_SEC);
	expect(2, 0);
	look(t + 12 * RXW_SEC + 400 * RXW_MS);
	expect(2, 0);
	/* A client that was served before has more time. */
	set_served(true);
	look(t + 13 * RXW_SEC);
	expect(2, 0);
	set_served(false);
	look(t + 14 * RXW_SEC);
	ck_assert_uint_eq(counter_of(bed.server, "calls_given_up"), 2);
	h_wait_for(calls_wait, &two, "two that waited have their workers");
	close(fd);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(120, "waiting", others_take_their_places, who_moves_nothing_goes, each_one_counts,
		 looks)
