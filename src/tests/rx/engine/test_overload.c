/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More calls than workers: bursts are queued, a standing backlog is bounded, new clients are
 * served.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define SERVICE 200
#define HOLDS	201 /* its handlers are fast enough for the listener to run */
#define QUEUE	16
#define FLOOD	476

static struct h_bed bed;
static sem_t pass;			  /* one handler returns for each */
static sem_t held, let_go;		  /* the listener has returned; may receive again */
static _Atomic(unsigned) arrived, passed; /* handlers */
static uint8_t head[H_ASK_SIZE], packet[2048];
static uint32_t cid;

static int32_t one_at_a_time(rxw_call *call, void *context)
{
	char request[H_ASK_SIZE];

	(void)context;
	if (rxw_call_read(call, request, sizeof(request)) != (ssize_t)sizeof(request))
		return RXW_RPC_DECODE;
	atomic_fetch_add(&arrived, 1);
	while (sem_wait(&pass))
		;
	atomic_fetch_add(&passed, 1);
	return 0;
}

static int32_t hold_the_listener(rxw_call *call, void *context)
{
	(void)call;
	(void)context;
	sem_post(&held);
	while (sem_wait(&let_go))
		;
	return 0;
}

static void open_bed(const char *tunables)
{
	struct rxw_service_options service = { .size = sizeof(service), .id = SERVICE,
					       .name = "door", .handler = one_at_a_time };

	sem_init(&pass, 0, 0);
	atomic_store(&arrived, 0);
	atomic_store(&passed, 0);
	cid = 0;
	h_open(&bed, &(struct h_options){ .server = tunables, .no_client = true });
	ck_assert_int_eq(rxw_service_add(bed.server, &service, NULL), 0);
}

static void close_bed(void)
{
	for (int i = 0; i < 100; i++)
		sem_post(&pass);
	h_close(&bed);
	sem_destroy(&pass);
}

/* A complete request, each on a connection of its own. */
static void ask_service(int fd, uint16_t service)
{
	struct h_raw raw = h_raw_request(head, H_PING, cid += 4);

	raw.service = service;
	h_raw_send(fd, &raw);
}

static void ask(int fd)
{
	ask_service(fd, SERVICE);
}

static bool waits(void *arg)
{
	return counter_of(bed.server, "calls_waiting") == *(unsigned *)arg;
}

static void wait_for_waiting(unsigned n)
{
	h_wait_for(waits, &n, "so many calls wait");
}

static bool refused(void *arg)
{
	return counter_of(bed.server, "calls_refused") == *(uint64_t *)arg;
}

static void wait_for_refused(uint64_t n)
{
	h_wait_for(refused, &n, "so many calls were refused");
}

static bool has_arrived(void *arg)
{
	return atomic_load(&arrived) >= *(unsigned *)arg;
}

static void wait_for_arrived(unsigned n)
{
	h_wait_for(has_arrived, &n, "so many calls have their worker");
}

/* Handlers return one after the other, and the next calls start. */
static void let_pass(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned next = atomic_load(&arrived) + 1;

		sem_post(&pass);
		wait_for_arrived(next);
	}
}

/* Waits longer than a burst lasts here, and longer than recent dequeues count. */
static void wait_for_end_of_burst(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

/* A burst takes all workers and queue slots. Another call is refused. */
static void fill(int fd, unsigned workers)
{
	for (unsigned i = 0; i < workers; i++)
		ask(fd);
	wait_for_arrived(workers);
	for (unsigned i = 0; i < QUEUE; i++)
		ask(fd);
	wait_for_waiting(QUEUE);
	ck_assert_uint_eq(counter_of(bed.server, "calls_refused"), 0);
	ask(fd);
	wait_for_refused(1);
	ck_assert_int_eq(h_raw_receive(fd, RXW_BUSY, packet), (ssize_t)RXW_HEADER_SIZE);
}

static bool all_sleep(void *arg)
{
	struct counters s = counters_of(bed.server);

	return counter_in(&s, "workers") == *(unsigned *)arg &&
	       counter_in(&s, "workers_idle") == counter_in(&s, "workers");
}

/* Not all workers are woken at once, yet each call of a burst gets a sleeping one without delay. */
START_TEST(each_that_sleeps_is_called)
{
	unsigned workers = 16;
	int fd;

	open_bed("workers-max=16 queue=16 reserved-peers=0");
	fd = h_raw_socket(&bed);
	for (unsigned round = 1; round <= 20; round++) {
		/* Half of the workers while the others are busy. */
		for (unsigned i = 0; i < workers / 2; i++)
			ask(fd);
		if (round % 2)
			wait_for_arrived((round - 1) * workers + workers / 2);
		for (unsigned i = 0; i < workers / 2; i++)
			ask(fd);
		wait_for_arrived(round * workers);
		for (unsigned i = 0; i < workers; i++)
			sem_post(&pass);
		h_wait_for(all_sleep, &workers, "all workers are idle again");
	}
	ck_assert_uint_eq(counter_of(bed.server, "calls_refused"), 0);
	close(fd);
	close_bed();
}
END_TEST

/* Bursts that need all sleeping workers and one new worker. The new one takes no other's call. */
START_TEST(each_that_is_made_is_one_more)
{
	unsigned all = 0;
	int fd;

	open_bed("workers-max=24 queue=24 reserved-peers=0");
	fd = h_raw_socket(&bed);
	for (unsigned burst = 1; burst <= 24; burst++) {
		for (unsigned i = 0; i < burst; i++)
			ask(fd);
		all += burst;
		wait_for_arrived(all);
		for (unsigned i = 0; i < burst; i++)
			sem_post(&pass);
		h_wait_for(all_sleep, &burst, "all workers are idle again");
	}
	close(fd);
	close_bed();
}
END_TEST

static uint64_t told; /* datagrams sent to the server */

static bool all_came(void *arg)
{
	struct counters s = counters_of(bed.server);

	(void)arg;
	return counter_in(&s, "datagrams.received") + counter_in(&s, "kernel_drops") >= told;
}

static bool few_left(void *arg)
{
	(void)arg;
	return atomic_load(&bed.server->usage.calls) <= 4;
}

/*
 * Calls that end before a worker takes them, by an ABORT or by the next call number, leave the
 * queue. A client that repeats this does not make the server hold more calls.
 */
static void end_before_they_run(bool by_abort)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x9000), abort;
	int fd;

	open_bed("workers-max=1 waiters-max=0 queue=16 listeners=1");
	fd = h_raw_socket(&bed);
	ask(fd);
	wait_for_arrived(1);
	told = 1;
	raw.service = SERVICE;
	for (unsigned i = 0; i < 3000; i++) {
		if (by_abort) {
			abort = raw;
			abort.type = RXW_ABORT;
			abort.seq = 0;
			abort.body = "\0\0\0\7";
			abort.size = 4;
			h_raw_send(fd, &abort);
			told++;
		}
		raw.call++;
		raw.serial++;
		h_raw_send(fd, &raw);
		told++;
		if (i % 100 == 99)
			h_wait_for(all_came, NULL, "a hundred calls");
	}
	ck_assert_uint_le(counter_of(bed.server, "calls_waiting"), 1);
	/* The listener may still hold the calls of its last batch. */
	h_wait_for(few_left, NULL, "calls that are over are gone");
	close(fd);
	close_bed();
}

START_TEST(calls_that_were_followed_do_not_wait)
{
	end_before_they_run(false);
}
END_TEST

START_TEST(calls_that_were_aborted_do_not_wait)
{
	end_before_they_run(true);
}
END_TEST

static bool requests_came(void *arg)
{
	return counter_of(bed.server, "packets.received.data") >= *(unsigned *)arg;
}

/* Only the latest of a channel's queued calls is served. */
START_TEST(latest_of_a_channel_is_served)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x9000);
	unsigned three = 3;
	int fd;

	open_bed("workers-max=1 waiters-max=0 queue=16 listeners=1");
	fd = h_raw_socket(&bed);
	ask(fd);
	wait_for_arrived(1);
	raw.service = SERVICE;
	h_raw_send(fd, &raw);
	raw.call = 5;
	h_raw_send(fd, &raw);
	h_wait_for(requests_came, &three, "three requests");
	let_pass(1);
	sem_post(&pass);
	do
		ck_assert_int_gt(h_raw_receive(fd, RXW_DATA, packet), 0);
	while (rxw_get32(packet + 4) != raw.cid);
	ck_assert_uint_eq(rxw_get32(packet + 8), 5);
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), 2);
	close(fd);
	close_bed();
}
END_TEST

/*
 * Two workers: a burst gets 16 slots. After eight calls with a standing backlog, at most four calls
 * may wait until the queue has drained.
 */
START_TEST(burst_waits_and_standing_queue_does_not)
{
	int fd;

	open_bed("workers-max=2 queue=16 queue-burst-ms=1 reserved-peers=0");
	fd = h_raw_socket(&bed);
	fill(fd, 2);
	let_pass(8);
	wait_for_waiting(8);
	wait_for_end_of_burst();
	ask(fd);
	wait_for_refused(2);
	let_pass(5);
	wait_for_waiting(3);
	wait_for_end_of_burst();
	ask(fd);
	wait_for_waiting(4);
	ask(fd);
	wait_for_refused(3);
	ck_assert_uint_eq(counter_of(bed.server, "calls_waiting"), 4);
	let_pass(4);
	wait_for_waiting(0);
	wait_for_end_of_burst(); /* checked once in that time */
	for (unsigned i = 0; i < QUEUE; i++)
		ask(fd);
	wait_for_waiting(QUEUE);
	ck_assert_uint_eq(counter_of(bed.server, "calls_refused"), 3);
	close(fd);
	close_bed();
}
END_TEST

START_TEST(switched_off)
{
	int fd;

	open_bed("workers-max=2 queue=16 queue-burst-ms=0 reserved-peers=0");
	fd = h_raw_socket(&bed);
	fill(fd, 2);
	let_pass(8);
	wait_for_waiting(8);
	wait_for_end_of_burst();
	for (unsigned i = 0; i < 8; i++)
		ask(fd);
	wait_for_waiting(QUEUE);
	ck_assert_uint_eq(counter_of(bed.server, "calls_refused"), 1);
	close(fd);
	close_bed();
}
END_TEST

/* Each worker must have served four calls: a few long calls do not end a burst. */
START_TEST(long_calls_are_no_standing_queue)
{
	int fd;

	open_bed("workers-max=2 queue=16 queue-burst-ms=1 reserved-peers=0");
	fd = h_raw_socket(&bed);
	fill(fd, 2);
	let_pass(7);
	wait_for_waiting(9);
	wait_for_end_of_burst();
	for (unsigned i = 0; i < 7; i++)
		ask(fd);
	wait_for_waiting(QUEUE);
	ck_assert_uint_eq(counter_of(bed.server, "calls_refused"), 1);
	close(fd);
	close_bed();
}
END_TEST

/*
 * A client without calls here gets the reserved worker, however many calls of another client wait.
 */
START_TEST(newcomer_is_served_beside_a_standing_queue)
{
	int greedy, modest;

	open_bed("workers-max=4 queue=32 queue-burst-ms=1 reserved-peers=1");
	greedy = h_raw_socket(&bed);
	modest = h_raw_socket(&bed);
	for (unsigned i = 0; i < 3; i++)
		ask(greedy);
	wait_for_arrived(3);
	for (unsigned i = 0; i < 25; i++)
		ask(greedy);
	wait_for_waiting(25);
	let_pass(12);
	wait_for_waiting(13);
	wait_for_end_of_burst();
	ask(greedy);
	wait_for_refused(1);
	ask(modest);
	wait_for_arrived(16);
	wait_for_waiting(13);
	ck_assert_uint_eq(counter_of(bed.server, "calls_refused"), 1);
	close(greedy);
	close(modest);
	close_bed();
}
END_TEST

static bool has_sent(void *arg)
{
	return counter_of(bed.server, "datagrams.sent") >= *(uint64_t *)arg;
}

/* The listener finds all requests on its socket, so the replies are sent in few system calls. */
START_TEST(refusals_leave_together)
{
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = HOLDS,
					      .name = "holds",
					      .flags = RXW_SERVICE_INLINE,
					      .handler = hold_the_listener};
	struct rxw_effective e = { .size = sizeof(e) };
	struct counters before, after;
	uint64_t all;
	int fd;

	open_bed("workers-max=2 queue=16 queue-burst-ms=0 reserved-peers=0 listeners=1 "
		 "inline-us=0");
	ck_assert_int_eq(rxw_service_add(bed.server, &service, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	sem_init(&held, 0, 0);
	sem_init(&let_go, 0, 0);
	fd = h_raw_socket(&bed);
	fill(fd, 2);
	ask_service(fd, HOLDS);
	while (sem_wait(&held))
		;
	before = counters_of(bed.server);
	for (unsigned i = 0; i < FLOOD; i++)
		ask(fd);
	sem_post(&let_go);
	wait_for_refused(FLOOD + 1);
	all = counter_in(&before, "datagrams.sent") + FLOOD;
	h_wait_for(has_sent, &all, "all answers have left");
	after = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&after, "packets.sent.busy"), FLOOD + 1);
	if (e.gso)
		ck_assert_uint_le(counter_in(&after, "syscalls.send") -
					  counter_in(&before, "syscalls.send"),
				  FLOOD / 56);
	close(fd);
	close_bed();
	sem_destroy(&held);
	sem_destroy(&let_go);
}
END_TEST

TEST_MAIN_WITHIN(120, "overload", refusals_leave_together,
		 burst_waits_and_standing_queue_does_not, switched_off, each_that_sleeps_is_called,
		 each_that_is_made_is_one_more, long_calls_are_no_standing_queue,
		 newcomer_is_served_beside_a_standing_queue,
		 calls_that_were_followed_do_not_wait, calls_that_were_aborted_do_not_wait,
		 latest_of_a_channel_is_served)
