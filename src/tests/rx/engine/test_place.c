/* SPDX-License-Identifier: BSD-2-Clause */
/* `affinity` = auto: which processors shards get, for trees like /sys of other machines, and that their threads do. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/sys.h"
#include "engine/objects.h"
#include "io/io_sock.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

static char sys[] = "/tmp/test_place.XXXXXX";

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(sys));
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", sys);
	ck_assert_int_eq(system(command), 0);
}

/* A file of the tree, with the folders above it. */
static void make_file(const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	for (char *at = path + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void make_node(unsigned number, const char *cpus)
{
	char name[64];

	snprintf(name, sizeof(name), "devices/system/node/node%u/cpulist", number);
	make_file(name, cpus);
}

/* The processors, in the order of the shards, of those in the list. */
static const char *placed(const char *allowed, unsigned count)
{
	static char text[512];
	int cpus[CPU_SETSIZE];
	uint16_t cpu[64];
	cpu_set_t set;
	size_t length = 0;

	CPU_ZERO(&set);
	for (int n = rxw_cpu_list(allowed, cpus); n > 0; n--)
		CPU_SET((size_t)cpus[n - 1], &set);
	rxw_place(sys, &set, count, cpu);
	for (unsigned i = 0; i < count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u",
					   i ? " " : "", cpu[i]);
	return text;
}

START_TEST(without_nodes)
{
	set_up();
	ck_assert_str_eq(placed("0-7", 4), "0 1 2 3");
	ck_assert_str_eq(placed("3,5,9", 3), "3 5 9");
	ck_assert_str_eq(placed("1023", 2), "1023 1023");
	tear_down();
}
END_TEST

START_TEST(spread_over_nodes)
{
	set_up();
	make_node(0, "0-3,8-11\n");
	make_node(1, "4-7,12-15\n");
	ck_assert_str_eq(placed("0-15", 4), "0 4 1 5");
	ck_assert_str_eq(placed("0-15", 16), "0 4 1 5 2 6 3 7 8 12 9 13 10 14 11 15");
	/* What the process may use of them. */
	ck_assert_str_eq(placed("2,3,7-15", 4), "2 7 3 12");
	ck_assert_str_eq(placed("8-11", 4), "8 9 10 11");
	tear_down();
}
END_TEST

/* The larger node has what is left; nodes without processors, and with gaps in their numbers, do no harm. */
START_TEST(unequal_nodes)
{
	set_up();
	make_node(0, "0-5\n");
	make_node(3, "6,7\n");
	make_node(8, "\n");
	make_node(255, "nonsense\n");
	ck_assert_str_eq(placed("0-7", 8), "0 6 1 7 2 3 4 5");
	tear_down();
}
END_TEST

/* Each is used once before any is used twice. */
START_TEST(fewer_processors_than_shards)
{
	set_up();
	make_node(0, "0,1\n");
	make_node(1, "2\n");
	ck_assert_str_eq(placed("0-2", 7), "0 2 1 2 0 1 2");
	ck_assert_str_eq(placed("5", 3), "5 5 5");
	tear_down();
}
END_TEST

START_TEST(queues_of_cards)
{
	set_up();
	ck_assert(!rxw_place_has_queues(sys, 1));
	make_file("class/net/lo/queues/rx-7/x", "");
	make_file("class/net/veth0/queues/rx-7/x", ""); /* no card: it has no device */
	make_file("class/net/eth0/device/net/eth0/queues/rx-0/x", "");
	make_file("class/net/eth1/device/net/eth1/queues/rx-3/x", "");
	ck_assert(rxw_place_has_queues(sys, 1));
	ck_assert(rxw_place_has_queues(sys, 4));
	ck_assert(!rxw_place_has_queues(sys, 2)); /* rx-1 is missing: no such tree exists */
	ck_assert(!rxw_place_has_queues(sys, 8));
	tear_down();
}
END_TEST

/* The processor of the thread with this name; -1: there is none, or it may use several. */
static int processor_of(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	int cpu = -1;

	ck_assert_ptr_nonnull(tasks);
	while ((e = readdir(tasks))) {
		char path[300], text[32] = "";
		cpu_set_t set;
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof(text) - 1) > 0 && !strncmp(text, name, strlen(name)) &&
		    !sched_getaffinity((pid_t)atoi(e->d_name), sizeof(set), &set) &&
		    CPU_COUNT(&set) == 1)
			for (cpu = 0; !CPU_ISSET((size_t)cpu, &set);)
				cpu++;
		close(fd);
	}
	closedir(tasks);
	return cpu;
}

static struct h_bed bed;

static bool is_placed(void *arg)
{
	const struct rxw_shard *s = arg;
	char name[16];

	snprintf(name, sizeof(name), "rxw-listen%u", s->index);
	return processor_of(name) == s->ep->threads.cpu[s->index];
}

/* Three listeners: more than some machines have processors. */
START_TEST(listeners_and_sockets)
{
	struct h_options o = {.server = "affinity=auto listeners=3"};
	rxw_connection *connection;
	cpu_set_t allowed;

	h_open(&bed, &o);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (unsigned i = 0; i < bed.server->shard_count; i++) {
		struct rxw_shard *s = &bed.server->shard[i];
		int cpu = -1;
		socklen_t length = sizeof(cpu);

		h_wait_for(is_placed, s, "a listener is on its processor");
		ck_assert(CPU_ISSET(bed.server->threads.cpu[i], &allowed));
		ck_assert_int_eq(
			getsockopt(s->sock->fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &length), 0);
		ck_assert_int_eq(cpu, bed.server->threads.cpu[i]);
	}
	/* The client's only listener is placed nowhere, nor are workers. */
	ck_assert(!bed.client->threads.placed);
	for (unsigned i = 0; i < 6; i++) {
		connection = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 100000});
		rxw_connection_release(connection);
	}
	if (CPU_COUNT(&allowed) > 1)
		ck_assert_int_eq(processor_of("rxw-work"), -1);
	h_close(&bed);
}
END_TEST

/* Packets reach sockets of other shards than their connection's: the calls succeed. */
START_TEST(steered_to_others)
{
	struct h_options o = {.both = "affinity=auto listeners=2", .server = "steer=wrong"};
	rxw_connection *connection;

	h_open(&bed, &o);
	for (unsigned i = 0; i < 4; i++) {
		connection = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 300000});
		rxw_connection_release(connection);
	}
	if (bed.server->shard_count > 1 && bed.server->io.steered)
		ck_assert_uint_gt(counter_of(bed.server, "wrong_shard"), 0);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "place", without_nodes, spread_over_nodes, unequal_nodes,
		 fewer_processors_than_shards, queues_of_cards, listeners_and_sockets, steered_to_others)
