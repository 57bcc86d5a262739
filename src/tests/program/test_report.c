/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/report.c: the keys, the sums, differences of counters. */

#include "tests/tools/testing.h"

#include <stdbool.h>

#include "program/report.h"

static void set(struct counters *counters, const char *name, uint64_t value)
{
	size_t place = counters_place(name);

	ck_assert_uint_lt(place, COUNTERS_ROOM);
	counters->value[place] = value;
}

START_TEST(all_keys)
{
	static const char *const keys[] = {
		"bytes", "seconds", "MBps", "calls", "calls_per_s", "p50_us", "p99_us", "p999_us",
		"max_us", "cpu_user_s", "cpu_sys_s", "cpu_s_per_GB", "packets_sent",
		"packets_received", "retransmitted", "acks_sent", "acks_received", "syscalls_send",
		"syscalls_recv", "context_switches", "drops",
	};
	struct tools_usage usage = { .wall_ns = 2000000000, .user_s = 1, .sys_s = 3,
				     .context_switches = 5 };
	struct counters stats = { { 0 } };
	struct tools_histogram *h = calloc(1, sizeof(*h));
	json_t *o = json_object();

	tools_histogram_init(h);
	tools_histogram_add(h, 50000);
	set(&stats, "packets.sent.data", 11);
	set(&stats, "packets.received.data", 12);
	set(&stats, "packets.sent.ack", 13);
	set(&stats, "packets.received.ack", 14);
	set(&stats, "drops.short", 2);
	set(&stats, "drops.state", 3);
	set(&stats, "kernel_drops", 4);
	ck_assert_int_eq(tools_report_fill(o, 4000000000, 100, &usage, &stats, h), 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ck_assert_msg(json_is_number(json_object_get(o, keys[i])), "%s", keys[i]);
#define NUMBER(key) json_number_value(json_object_get(o, key))
	ck_assert(NUMBER("MBps") == 2000);
	ck_assert(NUMBER("calls_per_s") == 50);
	ck_assert(NUMBER("cpu_s_per_GB") == 1);
	ck_assert(NUMBER("packets_sent") == 11);
	ck_assert(NUMBER("packets_received") == 12);
	ck_assert(NUMBER("acks_sent") == 13);
	ck_assert(NUMBER("acks_received") == 14);
	ck_assert(NUMBER("drops") == 9);
	ck_assert(NUMBER("max_us") == 50);
	ck_assert(NUMBER("p50_us") == 50);
	json_decref(o);
	/* Without latencies or bytes the keys are present, with null for unknown numbers. */
	o = json_object();
	ck_assert_int_eq(tools_report_fill(o, 0, 0, &usage, &stats, NULL), 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ck_assert_ptr_nonnull(json_object_get(o, keys[i]));
	ck_assert(json_is_null(json_object_get(o, "p50_us")));
	ck_assert(json_is_null(json_object_get(o, "cpu_s_per_GB")));
	json_decref(o);
	free(h);
}
END_TEST

/* Differences of what counts, the later one of what is current, and sums of both. */
START_TEST(differences)
{
	struct counters a = {{0}}, b = {{0}}, d;
	const struct rxw_counter *c;
	size_t current = 0;

	for (size_t i = 0; i < COUNTERS_ROOM; i++) {
		a.value[i] = 10 * i;
		b.value[i] = 13 * i;
	}
	d = tools_stats_between(&a, &b);
	for (size_t i = 0; (c = rxw_counter_at(i)); i++) {
		bool total = c->kind == RXW_COUNTER_TOTAL;

		ck_assert_msg(d.value[i] == (total ? 3 * i : 13 * i), "%s", c->name);
		current += !total;
	}
	ck_assert_uint_ge(current, 9);
	tools_stats_add(&b, &a);
	for (size_t i = 0; i < COUNTERS_ROOM; i++)
		ck_assert_uint_eq(b.value[i], 23 * i);
}
END_TEST

/* The JSON has every counter by its name, and contended locks per million packets. */
START_TEST(counters_as_json)
{
	struct counters c = {{0}};
	const struct rxw_counter *one;
	json_t *o, *locks;

	set(&c, "packets.sent.data", 3000000);
	set(&c, "packets.received.ack", 1000000);
	set(&c, "lock_contended.table", 8);
	set(&c, "calls_started", 5);
	o = tools_stats_json(&c);
	for (size_t i = 0; (one = rxw_counter_at(i)); i++)
		ck_assert_int_eq(json_integer_value(json_object_get(o, one->name)),
				 (json_int_t)c.value[i]);
	locks = json_object_get(o, "lock_contended_per_Mpackets");
	ck_assert(json_real_value(json_object_get(locks, "table")) == 2);
	ck_assert(json_real_value(json_object_get(locks, "peers")) == 0);
	json_decref(o);
	/* Without packets there is no rate. */
	set(&c, "packets.sent.data", 0);
	set(&c, "packets.received.ack", 0);
	o = tools_stats_json(&c);
	locks = json_object_get(o, "lock_contended_per_Mpackets");
	ck_assert(json_is_object(locks));
	ck_assert_uint_eq(json_object_size(locks), 0);
	json_decref(o);
}
END_TEST

START_TEST(machine)
{
	json_t *o = tools_facts_json();

	ck_assert(json_string_length(json_object_get(o, "kernel")) > 0);
	ck_assert(json_string_length(json_object_get(o, "cpu")) > 0);
	ck_assert_int_ge(json_integer_value(json_object_get(o, "cpus")), 1);
	ck_assert(json_is_object(json_object_get(o, "mitigations")));
	json_decref(o);
}
END_TEST

START_TEST(configuration)
{
	struct rxw_config config;
	size_t count;
	json_t *o;

	rxw_config_init(&config, sizeof(config));
	config.window = 17;
	rxw_config_options(&count);
	o = tools_config_json(&config);
	ck_assert_uint_eq(json_object_size(o), count);
	ck_assert_str_eq(json_string_value(json_object_get(o, "window")), "17");
	json_decref(o);
}
END_TEST

START_TEST(usage)
{
	struct tools_usage a, b, d;
	volatile uint64_t work = 0;

	tools_usage_now(&a);
	do {
		for (int i = 0; i < 1000000; i++)
			work = work + (uint64_t)i;
		tools_usage_now(&b);
	} while (b.user_s + b.sys_s <= a.user_s + a.sys_s);
	d = tools_usage_between(&a, &b);
	ck_assert(d.user_s + d.sys_s > 0);
	ck_assert_uint_gt(d.wall_ns, 0);
	ck_assert_uint_gt(d.peak_rss, 0);
}
END_TEST

START_TEST(text)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\xfc", "\xc3\xbc" },
		{ "a\xc3", "a\xc3\x83" },
		{ "\xff\xc3\xbc\x80z", "\xc3\xbf\xc3\xbc\xc2\x80z" },
		{ "\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80" }, /* a surrogate */
		{ "\xc0\xaf", "\xc3\x80\xc2\xaf" },	    /* longer than needed */
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		json_t *json = tools_json_text(pairs[i][0]);

		ck_assert_str_eq(json_string_value(json), pairs[i][1]);
		json_decref(json);
	}
}
END_TEST

TEST_MAIN("report", all_keys, differences, counters_as_json, machine, configuration, usage, text)
