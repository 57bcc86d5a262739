/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes as results. Interfaces exist whose successful calls end with one, for example with a date:
 * codes have no meaning for the library, and calls that end with one are as good as others.
 */
#include <semaphore.h>
#include <string.h>

#include "harness.h"
#include "tests/main.h"

#define DATE	1700000000
#define BEACONS 10000u

static struct h_bed bed;

static const rxw_code codes[] = {-1,   INT32_MIN, INT32_MAX, DATE, -DATE, 1,  -100,	-3,  -6,
				 -455, 2,	  110,	     -2,   -4,	  -5, 19270409, 128, -458};
#define CODES (sizeof(codes) / sizeof(codes[0]))

/* One aborted call: its code arrives untouched, and says nothing about the connection. */
static void abort_with(rxw_connection *c, rxw_code code)
{
	rxw_call *call = h_begin(c, &(struct h_ask){.op = H_ABORT, .code = code});
	enum rxw_origin origin;

	ck_assert_int_eq(rxw_call_end(call, 0, &origin), code);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	ck_assert_int_eq(rxw_connection_error(c, NULL), 0);
}

START_TEST(any_code)
{
	static const uint16_t services[] = {H_SERVICE, H_INLINE};

	h_open(&bed, NULL);
	for (size_t s = 0; s < 2; s++) {
		rxw_connection *c = h_connect(&bed, services[s]);

		for (size_t i = 0; i < CODES; i++) {
			abort_with(c, codes[i]);
			h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
		}
		rxw_connection_release(c);
	}
	/* A handler's -1 is no dead client. */
	ck_assert_uint_eq(counter_of(bed.server, "calls_timed_out"), 0);
	ck_assert_uint_eq(counter_of(bed.server, "calls_aborted"), 2 * CODES);
	ck_assert_uint_eq(h_warnings(&bed), 0);
	h_close(&bed);
}
END_TEST

static sem_t returned; /* posted when a handler has ended its call */

/* The same from a handler that has written a reply already, and from one that has deferred it. */
static rxw_code defer(rxw_call *call, void *context)
{
	uint8_t word[4];
	rxw_code code;

	(void)context;
	if (rxw_call_read(call, word, sizeof(word)) != sizeof(word) || rxw_call_defer(call))
		return 7;
	memcpy(&code, word, sizeof(code));
	rxw_call_end(call, code, NULL);
	sem_post(&returned);
	return 0;
}

START_TEST(any_code_in_other_ways)
{
	struct rxw_service_options o = {.size = sizeof(o), .id = 300, .handler = defer};
	rxw_connection *c, *deferred;

	sem_init(&returned, 0, 0);
	h_open(&bed, NULL);
	h_offer(&bed, o);
	c = h_connect(&bed, H_SERVICE);
	deferred = h_connect(&bed, 300);
	for (size_t i = 0; i < CODES; i++) {
		struct h_ask late = {.op = H_LATE, .bytes = 5000, .code = codes[i]};
		rxw_call *call;

		ck_assert_int_eq(h_call(&bed, c, &late), codes[i]);
		ck_assert_int_eq(rxw_call_begin(deferred, NULL, &call), 0);
		ck_assert_int_eq(rxw_call_write(call, &codes[i], sizeof(codes[i])), 4);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), codes[i]);
		/* The client knows the code before the handler's rxw_call_end() has returned. */
		ck_assert_int_eq(sem_wait(&returned), 0);
	}
	ck_assert_int_eq(rxw_connection_error(c, NULL), 0);
	ck_assert_int_eq(rxw_connection_error(deferred, NULL), 0);
	rxw_connection_release(c);
	rxw_connection_release(deferred);
	h_close(&bed);
	sem_destroy(&returned);
}
END_TEST

/*
 * Nothing limits ABORTs of calls that were served, however many there are: each call has one, the
 * client never has to ask again, and nothing is logged.
 */
static void beacons(const char *class)
{
	unsigned count = h_small() ? BEACONS / 20 : BEACONS;
	rxw_connection *c;
	uint64_t aborts;

	h_open(&bed, &(struct h_options){.security = class});
	c = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	for (unsigned i = 0; i < count; i++)
		abort_with(c, DATE + (rxw_code)i);
	/* One more for each request that a slow machine made the client send again. */
	aborts = counter_of(bed.server, "packets.sent.abort");
	ck_assert_uint_ge(aborts, count);
	ck_assert_uint_le(aborts - count, counter_of(bed.client, "retransmitted"));
	ck_assert_uint_eq(counter_of(bed.server, "drops.rate"), 0);
	ck_assert_uint_eq(counter_of(bed.server, "packets.sent.busy"), 0);
	ck_assert_uint_eq(counter_of(bed.server, "calls_aborted"), count);
	ck_assert_uint_eq(h_warnings(&bed), 0);
	h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	rxw_connection_release(c);
	h_close(&bed);
}

START_TEST(many_codes)
{
	beacons("null");
}
END_TEST

START_TEST(many_codes_rxkad)
{
	beacons("rxkad-crypt");
}
END_TEST

/* ---- DONE for an ABORT before any data ---- */

static sem_t told;

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	(void)call;
	*(_Atomic(unsigned) *)arg |= events;
	if (events & RXW_EVENT_DONE)
		sem_post(&told);
}

static void finish(rxw_call *call, rxw_code code)
{
	uint8_t byte;

	ck_assert_int_eq(rxw_call_error(call, NULL), code);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), code);
}

/* A non-blocking call that the server aborts, with its request sent. */
static rxw_call *begin_aborted(rxw_connection *c, struct rxw_call_options options, rxw_code code)
{
	rxw_call *call;

	options.size = sizeof(options);
	options.flags = RXW_CALL_NONBLOCK;
	ck_assert_int_eq(rxw_call_begin(c, &options, &call), 0);
	h_write_ask(call, &(struct h_ask){.op = H_ABORT, .code = code});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

START_TEST(done_to_a_callback)
{
	_Atomic(unsigned) events = 0;
	rxw_connection *c;

	h_open(&bed, NULL);
	ck_assert_int_eq(sem_init(&told, 0, 0), 0);
	c = h_connect(&bed, H_SERVICE);
	for (size_t i = 0; i < CODES; i++) {
		struct rxw_call_options options = {.callback = on_event, .arg = &events};
		rxw_call *call = begin_aborted(c, options, codes[i]);

		sem_wait(&told);
		/* An error can be read, too: a caller that waits for READ alone is told. */
		ck_assert_uint_eq(events & RXW_EVENT_READ, RXW_EVENT_READ);
		events = 0;
		finish(call, codes[i]);
	}
	rxw_connection_release(c);
	h_close(&bed);
	sem_destroy(&told);
}
END_TEST

/* Of four calls on one queue, each is reported once as done; READ alone tells it as well. */
static void done_in_queue(unsigned events)
{
	struct rxw_queue_event event;
	rxw_connection *c;
	rxw_queue *queue;
	rxw_call *call[4];
	unsigned seen = 0;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &queue), 0);
	c = h_connect(&bed, H_SERVICE);
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_call_options options = {
			.queue = queue, .events = events, .arg = &call[i]};

		call[i] = begin_aborted(c, options, codes[i]);
	}
	while (seen != 15) {
		unsigned i;

		ck_assert_int_eq(rxw_queue_next(queue, &event, 1, 60000), 1);
		ck_assert_uint_eq(event.events & events, events);
		i = (unsigned)((rxw_call **)event.arg - call);
		ck_assert_uint_lt(i, 4);
		ck_assert_uint_eq(seen & 1u << i, 0);
		ck_assert_ptr_eq(event.call, call[i]);
		seen |= 1u << i;
		finish(call[i], codes[i]);
	}
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	h_close(&bed);
}

START_TEST(done_to_a_queue)
{
	done_in_queue(RXW_EVENT_DONE);
}
END_TEST

START_TEST(read_to_a_queue)
{
	done_in_queue(RXW_EVENT_READ);
}
END_TEST

TEST_MAIN_WITHIN(120, "codes", any_code, any_code_in_other_ways, many_codes, many_codes_rxkad,
		 done_to_a_callback, done_to_a_queue, read_to_a_queue)
