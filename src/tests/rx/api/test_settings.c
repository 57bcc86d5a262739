/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunables that change while engines and endpoints exist. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/main.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

static struct h_bed bed;

/* Each tunable either changes or says that it cannot; wrong names and values are told apart. */
START_TEST(every_tunable)
{
	static const char fixed[] =
		" listeners rcvbuf sndbuf gso gro io peer-memory memory affinity ";
	const struct rxw_option *option;
	struct rxw_config config;
	size_t count;

	h_open(&bed, NULL);
	rxw_config_init(&config, sizeof(config));
	option = rxw_config_options(&count);
	for (size_t i = 0; i < count; i++) {
		char value[300], name[64];
		int expected;

		snprintf(name, sizeof(name), " %s ", option[i].name);
		expected = strstr(fixed, name) ? -RXW_ESTATE : 0;
		ck_assert_int_ge(rxw_config_get(&config, option[i].name, value, sizeof(value)), 0);
		ck_assert_msg(rxw_endpoint_set(bed.server, option[i].name, value) == expected,
			      "endpoint: %s", option[i].name);
		ck_assert_msg(rxw_endpoint_set(bed.server, option[i].name, "wrong") == -RXW_EVALUE,
			      "wrong value: %s", option[i].name);
	}
	ck_assert_int_eq(rxw_endpoint_set(bed.server, "no-such", "1"), -RXW_ENAME);
	h_close(&bed);
}
END_TEST

/* The limit of workers counts at once. */
START_TEST(workers)
{
	struct h_ask ask = {.op = H_WAIT};
	rxw_connection *c;
	rxw_call *call[2];

	h_open(&bed, &(struct h_options){.server = "workers-max=1"});
	c = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 2; i++) {
		call[i] = h_begin(c, &ask);
		ck_assert_int_eq(rxw_call_send_end(call[i]), 0);
	}
	h_gate_arrived(&bed, 1);
	ck_assert_int_eq(rxw_endpoint_set(bed.server, "workers_max", "2"), 0);
	h_gate_arrived(&bed, 2);
	h_gate_open(&bed);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	rxw_connection_release(c);
	h_close(&bed);
}
END_TEST

/* Timeouts are those of connections that begin later. */
START_TEST(timeouts)
{
	struct h_ask ask = {.op = H_WAIT};
	rxw_connection *before, *after;
	rxw_call *call;

	h_open(&bed, NULL);
	before = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(rxw_endpoint_set(bed.client, "hard-ms", "100"), 0);
	after = h_connect(&bed, H_SERVICE);
	call = h_begin(before, &ask);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_gate_arrived(&bed, 1);
	ck_assert_int_eq(h_call(&bed, after, &ask), RXW_CALL_TIMEOUT);
	ck_assert_int_eq(rxw_call_error(call, NULL), 0);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(before);
	rxw_connection_release(after);
	h_close(&bed);
}
END_TEST

static _Atomic(bool) enough;

static void *change_often(void *arg)
{
	static const char *const mtu[] = {"1444", "900", "1300"}, *const window[] = {"255", "16", "3"};

	(void)arg;
	for (unsigned i = 0; !atomic_load(&enough); i++) {
		ck_assert_int_eq(rxw_endpoint_set(bed.server, "mtu", mtu[i % 3]), 0);
		ck_assert_int_eq(rxw_endpoint_set(bed.server, "window", window[i % 3]), 0);
		ck_assert_int_eq(rxw_endpoint_set(bed.client, "window", window[i % 3]), 0);
		ck_assert_int_eq(rxw_endpoint_set(bed.server, "congestion", "rate"), 0);
		ck_assert_int_eq(rxw_endpoint_set(bed.server, "queue", "100"), 0);
		ck_assert_int_eq(rxw_endpoint_set(bed.server, "debug-clients", "10.0.0.0/8"), 0);
	}
	return NULL;
}

/* Connections come and go while settings change. */
START_TEST(under_load)
{
	struct rxw_effective e = {.size = sizeof(e)};
	rxw_connection *first;
	pthread_t thread;

	h_open(&bed, NULL);
	first = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(pthread_create(&thread, NULL, change_often, NULL), 0);
	for (int i = 0; i < 100; i++) {
		struct h_ask ask = {.op = H_BOTH, .bytes = 20000};
		rxw_connection *c = h_connect(&bed, H_SERVICE);

		h_good_call(&bed, c, &ask);
		h_good_call(&bed, first, &ask);
		rxw_connection_release(c);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rxw_endpoint_set(bed.server, "mtu", "1300"), 0);
	ck_assert_int_eq(rxw_endpoint_set(bed.server, "window", "7"), 0);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	ck_assert_uint_eq(e.mtu, 1300);
	ck_assert_uint_eq(e.window, 7);
	rxw_connection_release(first);
	h_close(&bed);
}
END_TEST

/* Lines that are less important than the level do not reach the program. */
START_TEST(log_level)
{
	static const char *const level[] = {"error", "warning"};
	rxw_connection *c[2];
	rxw_call *call[2];

	h_open(&bed, NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct rxw_service_options o = {.size = sizeof(o),
						.id = (uint16_t)(7 + i),
						.handler = h_serve,
						.context = &bed,
						.security = bed.offered,
						.security_count = 4};
		rxw_service *service;

		ck_assert_int_eq(rxw_endpoint_set(bed.server, "log-level", level[i]), 0);
		ck_assert_int_eq(rxw_service_add(bed.server, &o, &service), 0);
		c[i] = h_connect(&bed, o.id);
		call[i] = h_begin(c[i], &(struct h_ask){.op = H_WAIT});
		ck_assert_int_eq(rxw_call_send_end(call[i]), 0);
		h_gate_arrived(&bed, i + 1);
		/* A handler that does not return causes a warning. */
		ck_assert_int_eq(rxw_service_remove(service, 0), -RXW_ETIMEDOUT);
		ck_assert_uint_eq(h_warnings(&bed), i);
	}
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), RXW_INVALID_OPERATION);
		rxw_connection_release(c[i]);
	}
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "settings", every_tunable, workers, timeouts, under_load, log_level)
