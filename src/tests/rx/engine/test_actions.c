/* SPDX-License-Identifier: BSD-2-Clause */
/* Effects of the protocol core are carried out, even if they overflow the record. */
#include "engine/objects.h"
#include "engine/lock.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;

/* Four calls end at once, and the record has room for one. The owner of each is notified. */
START_TEST(more_than_there_is_room_for)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	struct rxw_connection *c;
	rxw_connection *connection;
	rxw_call *call[4];
	struct rxw_queue_event event[8];
	struct rxw_effects a;
	rxw_queue *queue;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &queue), 0);
	options.queue = queue;
	options.events = RXW_EVENT_READ;
	connection = c = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(rxw_call_begin(connection, &options, &call[i]), 0);
		ck_assert_uint_eq(rxw_call_events(call[i]) & RXW_EVENT_READ, 0);
	}
	ck_assert_int_eq(rxw_queue_next(queue, event, 8, 0), 0);
	rxw_effects_init(&a, rxw_home(c), false);
	a.room = 1;
	rxw_conn_lock(c);
	for (int i = 0; i < 4; i++)
		rxw_pcall_fail(c->p.channel[i], 77, RXW_ORIGIN_LOCAL, false, &a.out);
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	ck_assert_int_eq(rxw_queue_next(queue, event, 8, 0), 4);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 77);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* Two records hold the same call at the same time. Neither loses the other's entries. */
START_TEST(one_call_in_two_records)
{
	struct rxw_connection *c;
	rxw_connection *connection;
	struct rxw_call *call;
	struct rxw_effects a, b;
	rxw_call *made;
	uint32_t refs;

	h_open(&bed, NULL);
	connection = c = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &made), 0);
	call = made;
	refs = atomic_load(&call->refs);
	rxw_effects_init(&a, rxw_home(c), false);
	rxw_effects_init(&b, rxw_home(c), false);
	a.room = b.room = 1;
	rxw_conn_lock(c);
	for (int i = 0; i < 2; i++) {
		call->sleep.threads++; /* one thread to wake */
		rxw_effects_readable(&a, call);
		rxw_effects_readable(&b, call);
		call->sleep.threads--;
	}
	rxw_conn_unlock(c);
	ck_assert_uint_eq(a.count + b.count, 2);
	ck_assert((a.spill == call) != (b.spill == call));
	rxw_dispatch(&a);
	rxw_dispatch(&b);
	ck_assert_uint_eq(atomic_load(&call->refs), refs);
	ck_assert_uint_eq(call->effects.todo, 0);
	rxw_call_end(made, RXW_USER_ABORT, NULL);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

TEST_MAIN("actions", more_than_there_is_room_for, one_call_in_two_records)
