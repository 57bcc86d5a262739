/* SPDX-License-Identifier: BSD-2-Clause */
/* How many workers there are: more than processors only while these sleep. */
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/asleep.h"
#include "engine/receive/admit.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define COMPUTES 201
#define BLOCKS	 202
#define ONE	 203 /* blocks; the service has one worker */
#define FEW	 2
#define MOST	 16
#define NEVER	 (UINT64_MAX - 1) /* not armed by waiting calls either */

static struct h_bed bed;
static sem_t pass; /* one handler returns for each */
static _Atomic(bool) computes;
static _Atomic(unsigned) arrived;
static uint8_t head[H_ASK_SIZE];
static uint32_t cid;
static uint64_t t; /* the clock of the test, far beyond that of the listener */

static int32_t compute(rxw_call *call, void *context)
{
	(void)call;
	(void)context;
	atomic_fetch_add(&arrived, 1);
	while (atomic_load(&computes))
		;
	return 0;
}

static int32_t block(rxw_call *call, void *context)
{
	(void)call;
	(void)context;
	atomic_fetch_add(&arrived, 1);
	while (sem_wait(&pass))
		;
	return 0;
}

static void set_sample_at(uint64_t at)
{
	rxw_workers_lock(bed.server);
	atomic_store(&bed.server->workers->sample_at, at);
	rxw_workers_unlock(bed.server);
}

/* `sampled`: by the listener; otherwise only look() does. */
static void open_bed(bool sampled)
{
	struct rxw_service_options service = {.size = sizeof(service), .name = "workers"};

	sem_init(&pass, 0, 0);
	atomic_store(&computes, true);
	atomic_store(&arrived, 0);
	cid = 0;
	t = rxw_now() + 3600 * RXW_SEC;
	h_open(&bed, &(struct h_options){
			     .server = "workers-max=16 reserved-peers=0 queue=64 listeners=1"});
	bed.server->workers->few = FEW;
	if (!sampled)
		set_sample_at(NEVER);
	service.id = COMPUTES;
	service.handler = compute;
	ck_assert_int_eq(rxw_service_add(bed.server, &service, NULL), 0);
	service.id = BLOCKS;
	service.handler = block;
	ck_assert_int_eq(rxw_service_add(bed.server, &service, NULL), 0);
	service.id = ONE;
	service.workers_max = 1;
	ck_assert_int_eq(rxw_service_add(bed.server, &service, NULL), 0);
}

static void close_bed(void)
{
	atomic_store(&computes, false);
	for (int i = 0; i < 100; i++)
		sem_post(&pass);
	h_close(&bed);
	sem_destroy(&pass);
}

/* Complete requests, each on a connection of its own. */
static void ask(int fd, uint16_t service, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct h_raw raw = h_raw_request(head, H_PING, cid += 4);

		raw.service = service;
		h_raw_send(fd, &raw);
	}
}

static bool waits(void *arg)
{
	return counter_of(bed.server, "calls_waiting") == *(unsigned *)arg;
}

static bool has_arrived(void *arg)
{
	return atomic_load(&arrived) == *(unsigned *)arg;
}

struct wanted {
	unsigned busy, sleeping;
};

static bool sleep_now(void *arg)
{
	const struct wanted *wanted = arg;
	unsigned busy = 0, sleeping = 0;

	rxw_workers_lock(bed.server);
	for (struct rxw_worker *k = bed.server->workers->list; k; k = k->next) {
		busy += k->call != NULL;
		sleeping += k->call && thread_sleeps(k->tid);
	}
	rxw_workers_unlock(bed.server);
	return busy == wanted->busy && sleeping == wanted->sleeping;
}

/* Of the handlers that have begun, so many sleep; the other threads do not exist. */
static void expect(unsigned busy, unsigned sleeping)
{
	struct wanted wanted = {busy, sleeping};

	h_wait_for(has_arrived, &busy, "so many handlers have begun");
	h_wait_for(sleep_now, &wanted, "so many of them sleep");
	ck_assert_uint_eq(counter_of(bed.server, "workers"), busy);
}

static void look(unsigned ms)
{
	t += ms * RXW_MS;
	set_sample_at(0);
	rxw_end_slow_calls(bed.server, t);
}

/* Others gain nothing as long as each call takes its turn. */
START_TEST(those_that_run_suffice)
{
	unsigned waiting = 20 - FEW;
	int fd;

	open_bed(false);
	fd = h_raw_socket(&bed);
	ask(fd, COMPUTES, 20);
	h_wait_for(waits, &waiting, "the others wait");
	for (unsigned i = 0; i < 10; i++) {
		look(10);
		expect(FEW, 0);
	}
	/* No call has begun for 100 ms: shorter ones should not wait longer. One thread each time. */
	for (unsigned more = 1; more <= 3; more++) {
		look(10);
		expect(FEW + more, 0);
		for (unsigned i = 0; i < 10; i++) {
			look(10);
			expect(FEW + more, 0);
		}
	}
	close(fd);
	close_bed();
}
END_TEST

START_TEST(those_that_sleep_are_doubled)
{
	unsigned waiting = 40 - FEW;
	int fd;

	open_bed(false);
	fd = h_raw_socket(&bed);
	ask(fd, BLOCKS, 40);
	h_wait_for(waits, &waiting, "the others wait");
	expect(FEW, FEW);
	look(1); /* once may be for a moment */
	expect(FEW, FEW);
	for (unsigned threads = 2 * FEW; threads <= MOST; threads *= 2) {
		look(10);
		expect(threads, threads);
	}
	look(10);
	expect(MOST, MOST);
	close(fd);
	close_bed();
}
END_TEST

/* As many as are missing to occupy the processors. */
START_TEST(each_that_sleeps_is_replaced)
{
	unsigned waiting = 20 - FEW;
	int fd;

	open_bed(false);
	fd = h_raw_socket(&bed);
	ask(fd, COMPUTES, 1);
	ask(fd, BLOCKS, 2);
	ask(fd, COMPUTES, 17);
	h_wait_for(waits, &waiting, "the others wait");
	expect(2, 1);
	look(1);
	expect(2, 1);
	look(2);
	expect(3, 2);
	look(10);
	expect(4, 2);
	for (unsigned i = 0; i < 5; i++) {
		look(10);
		expect(4, 2);
	}
	close(fd);
	close_bed();
}
END_TEST

/* A thread that finds no call which may run is one too many, not one of many. */
START_TEST(calls_that_may_not_run_start_none)
{
	unsigned waiting = 19, one = 1;
	int fd;

	open_bed(false);
	fd = h_raw_socket(&bed);
	ask(fd, ONE, 20);
	h_wait_for(waits, &waiting, "all but one wait");
	h_wait_for(has_arrived, &one, "that one has begun");
	for (unsigned i = 0; i < 10; i++) {
		look(10);
		ck_assert_uint_le(counter_of(bed.server, "workers"), FEW);
	}
	close(fd);
	close_bed();
}
END_TEST

/* The listener itself finds out, also while it has nothing to receive. */
START_TEST(a_small_call_gets_its_worker)
{
	unsigned threads = FEW;
	rxw_connection *c;
	int fd;

	open_bed(true);
	c = h_connect(&bed, H_SERVICE);
	fd = h_raw_socket(&bed);
	ask(fd, BLOCKS, FEW);
	h_wait_for(has_arrived, &threads, "they have the workers");
	h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	ask(fd, COMPUTES, FEW + 1);
	threads += FEW + 1;
	h_wait_for(has_arrived, &threads, "those that compute, too");
	h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	rxw_connection_release(c);
	close(fd);
	close_bed();
}
END_TEST

/* A sample that was due before an endpoint's workers ended keeps no receiver awake. */
START_TEST(receivers_sleep_after_the_end)
{
	open_bed(false);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 0), 0);
	look(0);
	ck_assert_uint_eq(atomic_load(&bed.server->workers->sample_at), UINT64_MAX);
	close_bed();
}
END_TEST

TEST_MAIN_WITHIN(120, "workers", receivers_sleep_after_the_end, those_that_run_suffice,
		 those_that_sleep_are_doubled, each_that_sleeps_is_replaced,
		 calls_that_may_not_run_start_none, a_small_call_gets_its_worker)
