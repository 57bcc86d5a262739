/* SPDX-License-Identifier: BSD-2-Clause */
/* One procedure on many connections: order, repeated connections, members that fail. */
#include <errno.h>
#include <arpa/inet.h>
#include <semaphore.h>

#include "stubs.h"

#define MANY 40

/* The result of a member; `place` is the number of its reply, from 1. */
struct result {
	int32_t code;
	uint32_t value;
	unsigned place;
};

static unsigned replies;

/* In the form of a compiled multi_T_Wait(): member i has key i, `bad` cannot be encoded. */
static int32_t start(rxw_call *call, unsigned index, unsigned bad)
{
	return index == bad ? RXW_RPC_CC_MARSHAL : StartT_Wait(call, index);
}

static void run(rxw_connection *const *connections, unsigned count, unsigned bad,
		struct result *results, void (*then)(unsigned index))
{
	struct rxw_rpc_multi *multi = rxw_rpc_multi_create(connections, count, NULL);
	enum rxw_rpc_step step;
	unsigned index;
	rxw_call *call;
	int32_t code;

	ck_assert_ptr_nonnull(multi);
	replies = 0;
	for (unsigned i = 0; i < count; i++)
		results[i] = (struct result){ 0 };
	while ((step = rxw_rpc_multi_next(multi, &index, &call, &code)) != RXW_RPC_DONE) {
		ck_assert_uint_lt(index, count);
		ck_assert_uint_eq(results[index].place, 0);
		if (step == RXW_RPC_START) {
			rxw_rpc_multi_started(multi, index, start(call, index, bad));
			continue;
		}
		if (step == RXW_RPC_REPLY) {
			code = EndT_Wait(call, &results[index].value);
			code = rxw_rpc_multi_ended(multi, index, code, &T_interface, T_FN_WAIT);
		}
		results[index].code = code;
		results[index].place = ++replies;
		if (then)
			then(index);
	}
	ck_assert_uint_eq(replies, count);
	rxw_rpc_multi_destroy(multi);
}

static void good(const struct result *r, unsigned index)
{
	ck_assert_int_eq(r[index].code, 0);
	ck_assert_uint_eq(r[index].value, ~index);
}

START_TEST(no_members)
{
	run(NULL, 0, MANY, NULL, NULL);
	ck_assert_ptr_null(rxw_rpc_multi_create(NULL, 1, NULL));
	rxw_rpc_multi_destroy(NULL);
}
END_TEST

/* Each reply opens the next key, backwards. */
static void open_before(unsigned index)
{
	if (index)
		t_open(index - 1);
}

START_TEST(order_of_arrival)
{
	rxw_connection *c[MANY];
	struct result results[MANY];

	for (unsigned i = 0; i < MANY; i++)
		c[i] = h_connect(&bed, T_SERVICE);
	t_open(MANY - 1);
	run(c, MANY, MANY, results, open_before);
	for (unsigned i = 0; i < MANY; i++) {
		good(results, i);
		ck_assert_uint_eq(results[i].place, MANY - i);
		rxw_connection_release(c[i]);
	}
}
END_TEST

/* Two connections of four channels each, twenty members each, alternating and in sequence. */
START_TEST(repeated_connections)
{
	rxw_connection *two[2] = { h_connect(&bed, T_SERVICE), h_connect(&bed, T_SERVICE) };
	rxw_connection *c[MANY];
	struct result results[MANY];

	for (int in_turns = 0; in_turns < 2; in_turns++) {
		for (unsigned i = 0; i < MANY; i++) {
			c[i] = two[in_turns ? i % 2 : i / (MANY / 2)];
			t_open(i);
		}
		run(c, MANY, MANY, results, NULL);
		for (unsigned i = 0; i < MANY; i++)
			good(results, i);
	}
	rxw_connection_release(two[0]);
	rxw_connection_release(two[1]);
}
END_TEST

/* Another thread holds all channels of a connection and releases them silently. */
static rxw_call *held[4];
static sem_t replied;

static void post_replied(unsigned index)
{
	(void)index;
	sem_post(&replied);
}

static void *let_go(void *arg)
{
	uint32_t key;

	(void)arg;
	/*
	 * The other member's call ends while multi waits for channels; otherwise this never
	 * returns.
	 */
	while (sem_wait(&replied))
		;
	for (unsigned i = 0; i < 4; i++) {
		t_open(100 + i);
		ck_assert_int_eq(EndT_Wait(held[i], &key), 0);
		ck_assert_int_eq(rxw_call_end(held[i], 0, NULL), 0);
	}
	return NULL;
}

START_TEST(channels_held_by_others)
{
	rxw_connection *full = h_connect(&bed, T_SERVICE), *other = h_connect(&bed, T_SERVICE);
	rxw_connection *c[7] = { full, full, other, full, full, full, full };
	struct result results[7];
	pthread_t thread;

	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(rxw_call_begin(full, NULL, &held[i]), 0);
		ck_assert_int_eq(StartT_Wait(held[i], 100 + i), 0);
		ck_assert_int_eq(rxw_call_send_end(held[i]), 0);
	}
	t_waiting(4);
	for (unsigned i = 0; i < 7; i++)
		t_open(i);
	ck_assert_int_eq(sem_init(&replied, 0, 0), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
	run(c, 7, 7, results, post_replied);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(results[2].place, 1);
	for (unsigned i = 0; i < 7; i++)
		good(results, i);
	rxw_connection_release(full);
	rxw_connection_release(other);
}
END_TEST

/* Nobody releases the channels: the deadline ends the wait, or the timeout of the connection. */
START_TEST(channels_held_too_long)
{
	struct rxw_call_options options = { .size = sizeof(options), .deadline_ms = _i ? 3600000 : 50 };
	rxw_connection *full = h_connect(&bed, T_SERVICE);
	rxw_connection *c[6] = { full, full, full, full, full, full };
	struct rxw_rpc_multi *multi;
	enum rxw_rpc_step step;
	unsigned index, failed = 0;
	rxw_call *call;
	uint32_t key;
	int32_t code;

	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(rxw_call_begin(full, NULL, &held[i]), 0);
		ck_assert_int_eq(StartT_Wait(held[i], 100 + i), 0);
		ck_assert_int_eq(rxw_call_send_end(held[i]), 0);
	}
	t_waiting(4);
	if (_i)
		ck_assert_int_eq(rxw_connection_set_timeouts(full, 0, 0, 50), 0);
	multi = rxw_rpc_multi_create(c, 6, _i > 1 ? NULL : &options);
	while ((step = rxw_rpc_multi_next(multi, &index, &call, &code)) != RXW_RPC_DONE) {
		ck_assert_int_eq(step, RXW_RPC_FAILED);
		ck_assert_uint_eq(index, failed++);
		ck_assert_int_eq(code, RXW_CALL_TIMEOUT);
	}
	ck_assert_uint_eq(failed, 6);
	rxw_rpc_multi_destroy(multi);
	for (unsigned i = 0; i < 4; i++) {
		t_open(100 + i);
		ck_assert_int_eq(EndT_Wait(held[i], &key), 0);
		ck_assert_int_eq(rxw_call_end(held[i], 0, NULL), 0);
	}
	rxw_connection_release(full);
}
END_TEST

static rxw_connection *connect_to(uint16_t port, uint16_t service)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	rxw_connection *c;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&in, sizeof(in),
					       service, bed.security, &c), 0);
	return c;
}

/* A dead server, an unknown service, one with malformed replies, bad arguments. */
START_TEST(failures_affect_one_member)
{
	rxw_connection *well = h_connect(&bed, T_SERVICE), *dead = connect_to(9, T_SERVICE);
	rxw_connection *absent = h_connect(&bed, 999), *raw = h_connect(&bed, T_RAW);
	rxw_connection *c[8] = { dead, well, absent, well, well, raw, well, well };
	struct result r[8];

	rxw_connection_set_timeouts(dead, 1000, 0, 1000);
	for (unsigned i = 0; i < 8; i++)
		t_open(i);
	run(c, 8, 4, r, NULL);
	ck_assert_msg(r[0].code == RXW_CALL_DEAD || r[0].code == RXW_CALL_TIMEOUT, "code %d",
		      r[0].code);
	good(r, 1);
	ck_assert_int_eq(r[2].code, RXW_INVALID_OPERATION);
	good(r, 3);
	ck_assert_int_eq(r[4].code, RXW_RPC_CC_MARSHAL);
	ck_assert_int_eq(r[5].code, 0); /* T_RAW returns the opcode: a valid word */
	ck_assert_uint_eq(r[5].value, T_OP_WAIT);
	good(r, 6);
	good(r, 7);
	rxw_connection_release(well);
	rxw_connection_release(dead);
	rxw_connection_release(absent);
	rxw_connection_release(raw);
}
END_TEST

/* An endpoint that stops makes every member fail; a multi call begun later fails at once. */
START_TEST(calls_that_cannot_begin)
{
	rxw_endpoint *endpoint = h_client(&bed, NULL);
	rxw_connection *c[6];
	struct result r[6];

	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&bed.address,
					       bed.address_len, T_SERVICE, bed.security,
					       &c[0]), 0);
	for (unsigned i = 1; i < 6; i++)
		c[i] = c[0];
	rxw_endpoint_stop(endpoint, 0);
	run(c, 6, 6, r, NULL);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(r[i].code, rxw_code_from_errno(ESHUTDOWN));
	rxw_connection_release(c[0]);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
}
END_TEST

/* Ended at any step, nothing is left: the bed closes in order. */
START_TEST(ended_early)
{
	rxw_connection *c[10];

	c[0] = h_connect(&bed, T_SERVICE);
	for (unsigned i = 1; i < 10; i++)
		c[i] = i % 5 ? c[i - 1] : h_connect(&bed, T_SERVICE);
	t_open_all();
	for (unsigned steps = 0; steps <= 9; steps++) {
		struct rxw_rpc_multi *multi = rxw_rpc_multi_create(c, 10, NULL);
		unsigned index;
		rxw_call *call;
		int32_t code;

		/* Eight can begin. */
		for (unsigned i = 0; i < steps; i++) {
			enum rxw_rpc_step step = rxw_rpc_multi_next(multi, &index, &call, &code);

			ck_assert_int_eq(step, i < 8 ? RXW_RPC_START : RXW_RPC_REPLY);
			if (step == RXW_RPC_START && i + 1 < steps)
				rxw_rpc_multi_started(multi, index, StartT_Wait(call, index));
		}
		rxw_rpc_multi_destroy(multi);
	}
	rxw_connection_release(c[0]);
	rxw_connection_release(c[5]);
}
END_TEST

/* Replies of many windows: only the first packet of each announces a reply to be read. */
START_TEST(long_replies)
{
	rxw_connection *c[8];
	unsigned done = 0, index;
	struct rxw_rpc_multi *multi;
	enum rxw_rpc_step step;
	rxw_call *call;
	int32_t code;

	for (unsigned i = 0; i < 8; i++)
		c[i] = i % 6 ? c[i - 1] : h_connect(&bed, T_SERVICE);
	multi = rxw_rpc_multi_create(c, 8, NULL);
	while ((step = rxw_rpc_multi_next(multi, &index, &call, &code)) != RXW_RPC_DONE) {
		struct rxw_rpc_stream s;
		struct t_items items;

		ck_assert_int_ne(step, RXW_RPC_FAILED);
		if (step == RXW_RPC_START) {
			rxw_rpc_writer(&s, call);
			rxw_xdr_put_u32(&s.xdr, T_OP_LIST);
			rxw_xdr_put_u32(&s.xdr, T_ITEMS_MAX - index);
			rxw_rpc_multi_started(multi, index, rxw_rpc_flush(&s) ? 0 : -450);
			continue;
		}
		rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, 0);
		code = t_get_items(&s.xdr, &items) ? 0 : RXW_RPC_CC_UNMARSHAL;
		ck_assert_int_eq(rxw_rpc_multi_ended(multi, index, code, &T_interface, 0), 0);
		ck_assert_uint_eq(items.len, T_ITEMS_MAX - index);
		t_free_items(&items);
		done++;
	}
	ck_assert_uint_eq(done, 8);
	rxw_rpc_multi_destroy(multi);
	rxw_connection_release(c[0]);
	rxw_connection_release(c[6]);
}
END_TEST

static void count_one(void *arg, const struct rxw_rpc_report *report)
{
	ck_assert(report->client && report->function == T_FN_WAIT);
	++*(unsigned *)arg;
}

START_TEST(observed)
{
	rxw_connection *c[6];
	struct result results[6];
	unsigned count = 0;
	struct rxw_rpc_observer observer = { count_one, &count };

	c[0] = h_connect(&bed, T_SERVICE);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.client, &observer), 0);
	for (unsigned i = 0; i < 6; i++) {
		c[i] = c[0];
		t_open(i);
	}
	run(c, 6, 3, results, NULL);
	ck_assert_uint_eq(count, 6);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.client, NULL), 0);
	rxw_connection_release(c[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("multi");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, t_set_up, t_tear_down);
	tcase_add_test(tc, no_members);
	tcase_add_test(tc, order_of_arrival);
	tcase_add_test(tc, repeated_connections);
	tcase_add_test(tc, channels_held_by_others);
	tcase_add_loop_test(tc, channels_held_too_long, 0, 3);
	tcase_add_test(tc, failures_affect_one_member);
	tcase_add_test(tc, calls_that_cannot_begin);
	tcase_add_test(tc, ended_early);
	tcase_add_test(tc, long_replies);
	tcase_add_test(tc, observed);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
