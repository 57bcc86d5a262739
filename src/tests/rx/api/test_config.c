/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunables as text and back, their ranges, and structures of other sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/rxwire.h>

#include "engine/core/config.h"
#include "tests/asserts.h"

static struct rxw_config config;
static char message[256];

static void set_up(void)
{
	rxw_config_init(&config, sizeof(config));
}

static int set(const char *name, const char *value)
{
	memset(message, 'x', sizeof(message));
	return rxw_config_set(&config, name, value, message, sizeof(message));
}

static const char *get(const char *name)
{
	static char text[300];

	if (rxw_config_get(&config, name, text, sizeof(text)) < 0)
		return "?";
	return text;
}

START_TEST(defaults)
{
	ck_assert_uint_eq(config.size, sizeof(config));
	ck_assert_uint_eq(config.listeners, 0);
	ck_assert_uint_eq(config.window, 32768);
	ck_assert_uint_eq(config.mtu, 1444);
	ck_assert_uint_eq(config.dead_ms, 12000);
	ck_assert_uint_eq(config.idle_ms, 0);
	ck_assert_uint_eq(config.server_idle_ms, 60000);
	ck_assert_uint_eq(config.peer_memory, 64u << 20);
	ck_assert_uint_eq(config.memory, 192u << 20);
	ck_assert_int_eq(config.debug_access, RXW_DEBUG_LOCAL);
	ck_assert_uint_eq(config.queue, 1024);
	ck_assert_uint_eq(config.workers_max, 64);
	ck_assert_uint_eq(config.connections_max, 262144);
	ck_assert_ptr_null(config.log);
}
END_TEST

/* Each value that get returns is accepted by set and changes nothing. */
START_TEST(round_trip)
{
	size_t count = 0;
	const struct rxw_option *options = rxw_config_options(&count);

	/* New tunables must be justified: doc/notes/mechanisms.md. */
	ck_assert_uint_le(count, 25);
	ck_assert_ptr_nonnull(rxw_config_options(NULL));
	for (size_t i = 0; i < count; i++) {
		struct rxw_config before = config;
		char text[300];
		int n = rxw_config_get(&config, options[i].name, text, sizeof(text));

		ck_assert_msg(n >= 0 && (size_t)n == strlen(text), "%s", options[i].name);
		ck_assert_msg(!set(options[i].name, text), "%s", message);
		ck_assert_msg(!memcmp(&before, &config, sizeof(config)), "%s changed",
			      options[i].name);
		ck_assert(*options[i].argument && *options[i].help && *options[i].scope);
		ck_assert_ptr_nonnull(options[i].unit);
	}
}
END_TEST

/* Every member of the public structure has an option. */
START_TEST(every_field_has_an_option)
{
	static const char *const names[] = {"listeners",
					    "mtu",
					    "rcvbuf",
					    "dead_ms",
					    "idle_ms",
					    "hard_ms",
					    "memory",
					    "workers_max",
					    "queue",
					    "debug_clients",
					    "gso",
					    "gro",
					    "io",
					    "poll_us",
					    "window",
					    "sndbuf",
					    "affinity",
					    "congestion",
					    "path_mtu",
					    "jumbo",
					    "server_idle_ms",
					    "peer_memory",
					    "connections_max",
					    "log_level",
					    "ecn"};
	size_t count;

	rxw_config_options(&count);
	ck_assert_uint_eq(count, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(strcmp(get(names[i]), "?"), "%s", names[i]);
}
END_TEST

static const struct {
	const char *name, *value, *back;
} good[] = {
	{"window", "1", "1"},
	{"window", "65535", "65535"},
	{"poll-us", "1000", "1000"},
	{"listeners", "64", "64"},
	{"listeners", "auto", "auto"},
	{"listeners", "0", "auto"},
	{"mtu", "548", "548"},
	{"mtu", "9000", "9000"},
	{"rcvbuf", "4M", "4194304"},
	{"rcvbuf", "64k", "65536"},
	{"sndbuf", "1G", "1073741824"},
	{"rcvbuf", "auto", "auto"},
	{"gso", "on", "on"},
	{"gro", "off", "off"},
	{"io", "msg", "msg"},
	{"affinity", "0-3,8", "0-3,8"},
	{"affinity", "", ""},
	{"affinity", "auto", "auto"},
	{"idle-ms", "off", "off"},
	{"idle_ms", "1500", "1500"},
	{"dead-ms", "1000", "1000"},
	{"hard-ms", "0", "off"},
	{"debug-clients", "any", "any"},
	{"debug_clients", "off", "off"},
	{"debug-clients", "10.1.0.0/16", "10.1.0.0/16"},
	{"debug-clients", "fe80::/10", "fe80::/10"},
	{"debug-clients", "local", "local"},
	{"queue", "0", "0"},
	{"ecn", "off", "off"},
	{"ecn", "auto", "auto"},
	{"congestion", "rate", "rate"},
	{"congestion", "reno", "reno"},
	{"congestion", "auto", "auto"},
	{"connections-max", "off", "off"},
	{"connections-max", "16", "16"},
};

START_TEST(good_values)
{
	ck_assert_msg(!set(good[_i].name, good[_i].value), "%s", message);
	ck_assert_str_eq(message, "");
	ck_assert_str_eq(get(good[_i].name), good[_i].back);
}
END_TEST

static const struct {
	const char *name, *value;
} bad[] = {
	{"window", "0"},
	{"window", "65536"},
	{"window", ""},
	{"window", "-1"},
	{"window", "1 "},
	{"window", " 1"},
	{"window", "0x10"},
	{"window", "1K"},
	{"window", "auto"},
	{"window", "99999999999999999999999"},
	{"poll-us", "1001"},
	{"listeners", "65"},
	{"mtu", "547"},
	{"mtu", "9001"},
	{"rcvbuf", "1"},
	{"rcvbuf", "4Q"},
	{"rcvbuf", "4MB"},
	{"rcvbuf", "M"},
	{"rcvbuf", "17592186044416G"},
	{"rcvbuf", "18446744073709551616"},
	{"gso", "yes"},
	{"gso", "ON"},
	{"gso", ""},
	{"io", "uring"},
	{"congestion", "cubic"}, /* of older configurations */
	{"affinity", "3-1"},
	{"affinity", "0,"},
	{"affinity", ",0"},
	{"affinity", "0--1"},
	{"affinity", "a"},
	{"affinity", "0-"},
	{"affinity", "99999999999"},
	{"affinity", "8192"},
	{"affinity", "auto,1"},
	{"affinity", "0,auto"},
	{"affinity", "Auto"},
	{"affinity", "auto "},
	{"dead-ms", "999"},
	{"dead-ms", "off"},
	{"debug-clients", "10.0.0.0/33"},
	{"debug-clients", "host"},
	{"debug-clients", ""},
	{"debug-clients", "10.0.0.0/8/8"},
	{"workers-max", "0"},
	{"memory", "1M"},
	{"peer-memory", "1"},
	{"connections-max", "15"},
	{"connections-max", "16777217"},
	{"congestion", "no-such"},
	{"congestion", "off"},
};

/* Refused with one line that names the option and the permitted values; nothing changes. */
START_TEST(bad_values)
{
	struct rxw_config before = config;

	ck_assert_int_eq(set(bad[_i].name, bad[_i].value), -RXW_EVALUE);
	ck_assert(!strncmp(message, bad[_i].name, strlen(bad[_i].name)));
	ck_assert_uint_gt(strlen(message), strlen(bad[_i].name) + 10);
	ck_assert_ptr_null(strchr(message, '\n'));
	ck_assert(!memcmp(&before, &config, sizeof(config)));
}
END_TEST

START_TEST(messages)
{
	char tiny[8];

	set("window", "70000");
	ck_assert_str_eq(message, "window: \"70000\" is not a whole number from 1 to 65535 (packets)");
	set("rcvbuf", "1");
	ck_assert_str_eq(message, "rcvbuf: \"1\" is not a number of bytes from 4K to 1G, or auto");
	set("gso", "x");
	ck_assert_str_eq(message, "gso: \"x\" is not one of on|off|auto");
	ck_assert_int_eq(set("windows", "1"), -RXW_ENAME);
	ck_assert_str_eq(message, "windows: there is no option of this name; did you mean window?");
	ck_assert_int_eq(set("", "1"), -RXW_ENAME);
	ck_assert_int_eq(rxw_config_set(&config, "window", "0", NULL, 0), -RXW_EVALUE);
	ck_assert_int_eq(rxw_config_set(&config, "window", "0", tiny, sizeof(tiny)), -RXW_EVALUE);
	ck_assert_uint_eq(strlen(tiny), sizeof(tiny) - 1);
	ck_assert_int_eq(rxw_config_set(NULL, "window", "1", NULL, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_config_set(&config, NULL, "1", NULL, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_config_set(&config, "window", NULL, NULL, 0), -RXW_EINVAL);
}
END_TEST

START_TEST(get_checks_its_arguments)
{
	char text[6];

	ck_assert_int_eq(rxw_config_get(&config, "window", text, 5), -RXW_EINVAL);
	ck_assert_int_eq(rxw_config_get(&config, "window", text, 6), 5);
	ck_assert_int_eq(rxw_config_get(&config, "none", text, 4), -RXW_ENAME);
	ck_assert_int_eq(rxw_config_get(&config, "window", NULL, 4), -RXW_EINVAL);
	config.gso = (enum rxw_switch)17;
	ck_assert_int_eq(rxw_config_get(&config, "gso", text, 4), -RXW_EINVAL);
	config.debug_access = (enum rxw_debug_access)17;
	ck_assert_int_eq(rxw_config_get(&config, "debug-clients", text, 4), -RXW_EINVAL);
}
END_TEST

/* Programs built with an older structure: missing members are neither read nor written. */
START_TEST(smaller_structures)
{
	volatile size_t size =
		offsetof(struct rxw_config, window); /* hidden from the compiler */
	struct rxw_config *old = malloc(size), full; /* a sanitizer checks its bounds */
	char text[16];

	rxw_config_init(old, size);
	ck_assert_uint_eq(old->size, size);
	ck_assert_uint_eq(old->mtu, 1444);
	ck_assert_int_eq(rxw_config_set(old, "mtu", "1000", message, sizeof(message)), 0);
	ck_assert_int_eq(rxw_config_set(old, "window", "1", message, sizeof(message)), -RXW_ENAME);
	ck_assert_int_eq(rxw_config_get(old, "window", text, sizeof(text)), -RXW_ENAME);
	ck_assert_int_eq(rxw_config_adopt(&full, old), 0);
	ck_assert_uint_eq(full.size, sizeof(full));
	ck_assert_uint_eq(full.mtu, 1000);
	ck_assert_uint_eq(full.window, config.window);
	ck_assert_uint_eq(full.queue, 1024);
	free(old);
}
END_TEST

START_TEST(larger_structures)
{
	size_t size = sizeof(config) + 64;
	struct rxw_config *new = malloc(size), full;
	const uint8_t *bytes = (const uint8_t *)new;

	memset(new, 0xff, size);
	rxw_config_init(new, size);
	ck_assert_uint_eq(new->size, size);
	for (size_t i = sizeof(config); i < size; i++)
		ck_assert_uint_eq(bytes[i], 0);
	new->mtu = 700;
	ck_assert_int_eq(rxw_config_adopt(&full, new), 0);
	ck_assert_uint_eq(full.mtu, 700);
	ck_assert_uint_eq(full.size, sizeof(full));
	free(new);
}
END_TEST

START_TEST(adoption_checks_every_field)
{
	struct rxw_config full, c = config;

	ck_assert_int_eq(rxw_config_adopt(&full, &c), 0);
	c.memory = c.peer_memory = 0;
	ck_assert_int_eq(rxw_config_adopt(&full, &c), 0);
	ck_assert_uint_eq(full.memory, 192u << 20);
	ck_assert_uint_eq(full.peer_memory, 64u << 20);
#define REFUSED(member, value)                                                  \
	do {                                                                    \
		c = config;                                                     \
		c.member = value;                                               \
		ck_assert_int_eq(rxw_config_adopt(&full, &c), -RXW_EINVAL);     \
	} while (0)
	REFUSED(size, 0);
	REFUSED(window, 0);
	REFUSED(window, 65536);
	REFUSED(poll_us, 1001);
	REFUSED(mtu, 100);
	REFUSED(dead_ms, 0);
	REFUSED(gso, (enum rxw_switch)3);
	REFUSED(debug_access, (enum rxw_debug_access)4);
	REFUSED(debug_access, RXW_DEBUG_NET); /* without a network */
	c = config;
	strcpy(c.affinity, "1-");
	ck_assert_int_eq(rxw_config_adopt(&full, &c), -RXW_EINVAL);
	memset(c.affinity, '1', sizeof(c.affinity)); /* unterminated */
	ck_assert_int_eq(rxw_config_adopt(&full, &c), -RXW_EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *tc = tcase_create("config");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, set_up, NULL);
	tcase_add_test(tc, defaults);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, every_field_has_an_option);
	tcase_add_loop_test(tc, good_values, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(tc, bad_values, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, messages);
	tcase_add_test(tc, get_checks_its_arguments);
	tcase_add_test(tc, smaller_structures);
	tcase_add_test(tc, larger_structures);
	tcase_add_test(tc, adoption_checks_every_field);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
