/* SPDX-License-Identifier: BSD-2-Clause */
/* Bursts that the kernel refuses: with any errno all bytes arrive, and no packet is sent twice. */
#include <stdio.h>
#include <string.h>

#include "tests/kernel.h"
#include "tests/rx/api/harness.h"

static const char *const errnos[] = { "EIO", "EINVAL", "EMSGSIZE", "ENOBUFS", "EPERM" };
static const unsigned places[] = { 1, 2, 100 };
#define CASES (5 * 3 * 2)

static struct h_bed bed;

/*
 * Neither the sender's datagrams nor the packets received exceed the packets that the sender's
 * protocol core counted.
 */
static void check_sender(rxw_endpoint *sender, rxw_endpoint *receiver, unsigned place, bool refusal)
{
	struct counters s = counters_of(sender), r = counters_of(receiver);

	ck_assert_uint_le(counter_in(&s, "datagrams.sent"), counters_sum(&s, "packets.sent."));
	ck_assert_uint_le(counter_in(&r, "packets.received.data"),
			  counter_in(&s, "packets.sent.data"));
	if (refusal) {
		ck_assert_uint_ge(counter_in(&s, "gso_messages"), place - 1);
		ck_assert_uint_eq(counter_in(&s, "gso_fallbacks"), 1);
	} else {
		ck_assert_uint_ge(counter_in(&s, "gso_messages"), place);
		ck_assert_uint_ge(counter_in(&s, "send_retries"), 1);
	}
}

/* The server's or the client's burst is refused once. EIO and EINVAL mean no support for bursts. */
START_TEST(one_burst_refused)
{
	const char *error = errnos[_i % 5];
	unsigned place = places[_i / 5 % 3];
	bool server = _i < CASES / 2, refusal = !strcmp(error, "EIO") || !strcmp(error, "EINVAL");
	struct rxw_effective e = { .size = sizeof(e) };
	struct h_options o = { .both = "window=32" };
	rxw_connection *connection;
	char inject[64];

	snprintf(inject, sizeof(inject), "inject=gso:%s@%u", error, place);
	*(server ? &o.server : &o.client) = inject;
	h_open(&bed, &o);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = server ? H_SOURCE : H_SINK,
						       .bytes = 6u << 20, .seed = (uint32_t)_i });
	if (e.gso)
		check_sender(server ? bed.server : bed.client, server ? bed.client : bed.server,
			     place, refusal);
	if (e.gso && refusal)
		ck_assert_uint_ge(h_warnings(&bed), 1);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* From some burst on all are refused. The rest of the stream is sent as single datagrams. */
START_TEST(all_bursts_refused)
{
	static const char *const rules[] = { "inject=gso:EIO@1+", "inject=gso:EINVAL@7+",
					     "inject=gso:EMSGSIZE@30+" };
	rxw_connection *connection;

	if (kernel_lacks(KERNEL_GSO))
		return;
	h_open(&bed, &(struct h_options){ .both = rules[_i] });
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 4u << 20 });
	ck_assert_uint_le(counter_of(bed.server, "gso_fallbacks"), 1);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* Single sends of any packets fail now and then. */
START_TEST(single_sends_fail)
{
	static const char *const rules[] = {
		"gso=off inject=send:ENOBUFS@1,send:EPERM@2,send:ENOBUFS@50",
		"gso=off inject=send:EAGAIN@3,send:EAGAIN@4,send:EAGAIN@90",
		"gso=off inject=send:ECONNREFUSED@1,send:EHOSTUNREACH@20",
		"gso=off io=msg inject=send:EMSGSIZE@5,send:ENOMEM@60"
	};
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){ .both = rules[_i] });
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 1u << 20 });
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* Socket options that the kernel refuses at open affect speed only. */
START_TEST(refused_at_set_up)
{
	static const char *const rules[] = { "inject=gro:ENOPROTOOPT@0", "inject=gso:ENOPROTOOPT@0",
					     "listeners=4 inject=steer:EPERM@0",
					     "listeners=4 inject=reuseport:ENOPROTOOPT@0" };
	struct rxw_effective e = { .size = sizeof(e) };
	rxw_connection *connection;

	if (kernel_lacks(_i == 2 ? KERNEL_SHARE : 0))
		return;
	h_open(&bed, &(struct h_options){ .server = rules[_i] });
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	if (_i == 0)
		ck_assert_int_eq(e.gro, 0);
	if (_i == 1)
		ck_assert_int_eq(e.gso, 0);
	if (_i == 2)
		ck_assert_int_eq(e.steered, 0);
	if (_i == 3)
		ck_assert_uint_eq(e.listeners, 1);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 1u << 20 });
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("transmit");
	TCase *tc = tcase_create("faults");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, one_burst_refused, 0, CASES);
	tcase_add_loop_test(tc, all_bursts_refused, 0, 3);
	tcase_add_loop_test(tc, single_sends_fail, 0, 4);
	tcase_add_loop_test(tc, refused_at_set_up, 0, 4);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
