/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/report.c: the keys, the sums, differences of counters. */

#include "tests/tools/testing.h"

#include "tools/common/report.h"

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
	struct rxw_stats stats = { .size = sizeof(stats) };
	struct tools_histogram *h = calloc(1, sizeof(*h));
	json_t *o = json_object();

	tools_histogram_init(h);
	tools_histogram_add(h, 50000);
	stats.packets_sent[1] = 11;
	stats.packets_received[1] = 12;
	stats.packets_sent[2] = 13;
	stats.packets_received[2] = 14;
	stats.drops[RXW_DROP_SHORT] = 2;
	stats.drops[RXW_DROP_STATE] = 3;
	stats.kernel_drops = 4;
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

/*
 * Every 8-byte counter is included in differences and sums: a new one that is forgotten is found
 * here.
 */
START_TEST(differences)
{
	struct rxw_stats a, b, d;
	uint64_t *raw_a = (uint64_t *)&a, *raw_b = (uint64_t *)&b, *raw_d = (uint64_t *)&d;
	size_t gauges = offsetof(struct rxw_stats, connections_client) / 8;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	for (size_t i = 1; i < gauges; i++) {
		raw_a[i] = 10 * i;
		raw_b[i] = 13 * i;
	}
	a.size = b.size = sizeof(a);
	for (int i = 0; i < RXW_LOCK_COUNT; i++) {
		a.lock_contended[i] = 7;
		b.lock_contended[i] = (uint64_t)i + 8;
	}
	a.peers = 5;
	b.peers = 7;
	d = tools_stats_between(&a, &b);
	for (size_t i = 1; i < gauges; i++)
		ck_assert_msg(raw_d[i] == 3 * i, "counter at byte %zu is not in the difference",
			      8 * i);
	for (int i = 0; i < RXW_LOCK_COUNT; i++)
		ck_assert_uint_eq(d.lock_contended[i], (uint64_t)i + 1);
	ck_assert_uint_eq(d.peers, 7);
	tools_stats_add(&b, &a);
	for (size_t i = 1; i < gauges; i++)
		ck_assert_msg(raw_b[i] == 23 * i, "counter at byte %zu is not in the sum", 8 * i);
	for (int i = 0; i < RXW_LOCK_COUNT; i++)
		ck_assert_uint_eq(b.lock_contended[i], (uint64_t)i + 15);
	ck_assert_uint_eq(b.peers, 12);
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

TEST_MAIN("report", all_keys, differences, machine, configuration, usage)
