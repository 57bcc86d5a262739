/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of emulated links, and the file of profiles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "tests/main.h"

#define PROFILES RXW_TEST_SRCDIR "/link/profiles"

static struct link_profile p;
static char why[300];

static bool set(const char *name, const char *value)
{
	return link_profile_set(&p, name, value, why, sizeof(why));
}

START_TEST(test_units)
{
	link_profile_init(&p);
	ck_assert(set("rate", "1.5Gbit") && p.way[0].way.rate == 1500000000);
	ck_assert(set("rate", "250 kbit") && p.way[1].way.rate == 250000);
	ck_assert(set("rate", "0") && p.way[1].way.rate == 0);
	ck_assert(set("delay", "2.5ms") && p.way[0].way.delay == 2500000);
	ck_assert(set("up-delay", "1s") && p.way[0].way.delay == 1000000000 &&
		  p.way[1].way.delay == 2500000);
	ck_assert(set("down-loss", "0.1%") && p.way[1].way.loss == 0.001 && p.way[0].way.loss == 0);
	ck_assert(set("loss", "0.25") && p.way[0].way.loss == 0.25);
	ck_assert(set("discipline", "codel") && p.way[0].way.discipline == LINK_CODEL);
	ck_assert(set("icmp", "no") && !p.way[0].icmp && !p.way[1].icmp);
	ck_assert(set("down-ecn-bits", "ect1") && p.way[1].ecn_bits == LINK_ECN_ECT1 &&
		  p.way[0].ecn_bits == LINK_ECN_KEPT);
	ck_assert(set("device-mtu", "9000") && p.device_mtu == 9000);
	ck_assert(set("nat", "10.0.0.1, fd00::1") && p.nat_count == 2 &&
		  !strcmp(p.nat[1], "fd00::1"));
	ck_assert(set("at", "2s down-rate 10Mbit") && p.change_count == 1 &&
		  p.change[0].at == 2000000000);
	ck_assert_str_eq(p.change[0].name, "down-rate");
}
END_TEST

START_TEST(test_refused)
{
	static const char *const bad[][2] = {
		{"rate", "100"},
		{"rate", "fast"},
		{"rate", "-1Mbit"},
		{"rate", "1e30Gbit"},
		{"rate", "1Mbits"},
		{"delay", "5"},
		{"delay", "nan ms"},
		{"loss", "101%"},
		{"loss", "1.5"},
		{"queue", "10"},
		{"queue", "5 apples"},
		{"discipline", "red"},
		{"icmp", "maybe"},
		{"ecn-bits", "gone"},
		{"bandwidth", "1Gbit"},
		{"up-", "1"},
		{"up-seed", "1"},
		{"down-about", "x"},
		{"at", "2 rate 1Mbit"},
		{"at", "2s rate"},
		{"at", "2s rate slow"},
		{"at", "2s at 3s"},
		{"mtu", ""},
		{"nat", "1.1.1.1,2.2.2.2,3,4,5,6,7,8,9"},
	};

	link_profile_init(&p);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = 0;
		ck_assert_msg(!set(bad[i][0], bad[i][1]), "%s %s", bad[i][0], bad[i][1]);
		ck_assert(strstr(why, bad[i][0]) != NULL);
	}
	ck_assert(p.change_count == 0);
	for (unsigned i = 0; i < LINK_CHANGES; i++)
		ck_assert(set("at", "2s mtu 1280"));
	ck_assert(!set("at", "2s mtu 1280"));
}
END_TEST

START_TEST(test_queues)
{
	link_profile_init(&p);
	ck_assert(p.way[0].way.queue_packets == 1000);
	ck_assert(set("queue", "0.5bdp") && set("rate", "1Gbit") && set("up-delay", "30ms") &&
		  set("down-delay", "70ms") && set("down-rate", "100Mbit"));
	link_profile_finish(&p);
	ck_assert(p.way[0].way.queue_bytes == 6250000 && p.way[1].way.queue_bytes == 625000);
	ck_assert(p.way[0].way.queue_packets == 0 && link_profile_rtt(&p) == 100000000);
	/* It stays, whatever changes later. */
	ck_assert(set("rate", "1Mbit"));
	link_profile_finish(&p);
	ck_assert(p.way[0].way.queue_bytes == 6250000);
	ck_assert(set("queue", "10ms"));
	link_profile_finish(&p);
	ck_assert(p.way[0].way.queue_bytes == 1250);
	ck_assert(set("queue", "64KiB"));
	link_profile_finish(&p);
	ck_assert(p.way[0].way.queue_bytes == 65536);
	ck_assert(set("queue", "60packets"));
	link_profile_finish(&p);
	ck_assert(p.way[0].way.queue_bytes == 0 && p.way[0].way.queue_packets == 60);
}
END_TEST

static unsigned names;

static void on_name(void *arg, const char *name)
{
	static const char *const expected[] = {
		"gigabit-50",	 "gigabit-100", "gigabit-200", "gigabit-100-loss", "reorder-40",
		"mobile-100",	 "quarter-bdp", "codel",       "marking",	   "mtu-9000",
		"mtu-1280-drop", "black-hole",	"rebinding"};
	unsigned *found = arg;

	names++;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		*found += strcmp(expected[i], name) == 0;
	link_profile_init(&p);
	ck_assert_msg(link_profile_load(&p, PROFILES, name, why, sizeof(why)), "%s: %s", name, why);
	link_profile_finish(&p);
	ck_assert_str_eq(p.name, name);
	ck_assert(p.about[0] != 0 && p.way[0].way.rate > 0 && p.way[0].way.queue_bytes > 0);
}

START_TEST(test_profiles)
{
	unsigned found = 0;

	ck_assert_msg(link_profile_list(PROFILES, on_name, &found, why, sizeof(why)), "%s", why);
	ck_assert_uint_eq(found, 13);
	ck_assert(names >= found);
	link_profile_init(&p);
	ck_assert(link_profile_load(&p, PROFILES, "gigabit-100", why, sizeof(why)));
	link_profile_finish(&p);
	ck_assert(p.way[0].way.rate == 1000000000 && link_profile_rtt(&p) == 100000000 &&
		  p.way[0].way.queue_bytes == 12500000);
	ck_assert(link_profile_load(&p, PROFILES, "marking", why, sizeof(why)));
	ck_assert(p.way[0].way.discipline == LINK_CODEL && p.way[0].way.ecn == 1);
	ck_assert(!link_profile_load(&p, PROFILES, "nothing", why, sizeof(why)));
	ck_assert(strstr(why, "no profile nothing") != NULL);
	ck_assert(!link_profile_load(&p, "/nowhere", "codel", why, sizeof(why)));
	ck_assert(strstr(why, "/nowhere: No such file") != NULL);
}
END_TEST

/* Loads profile b of a file with this text. */
static bool load_text(const char *text)
{
	char path[] = "/tmp/rxw-profiles-XXXXXX";
	int fd = mkstemp(path);
	bool good;

	ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	link_profile_init(&p);
	good = link_profile_load(&p, path, "b", why, sizeof(why));
	unlink(path);
	return good;
}

START_TEST(test_bad_files)
{
	ck_assert(load_text("[a]\nrate = quick\n[b]\nrate = 1Gbit\n"));
	ck_assert(!load_text("[a]\nrate = 1Gbit\n[b]\nrate = quick\nrate = 1Gbit\n"));
	ck_assert_str_eq(why, "rate: not a value: quick");
	ck_assert(!load_text("[b]\nrate = 1Gbit\nno value\n"));
	ck_assert_msg(strstr(why, ":3: ") != NULL, "%s", why);
}
END_TEST

TEST_MAIN("link_profile", test_units, test_refused, test_queues, test_profiles, test_bad_files)
