/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints with shared listeners: calls of every form, timers, a flood, their beginning and end. */
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define MANY	100
#define CALLERS 8
#define SHARED	"rxw-shared"

static struct h_bed bed;
static rxw_endpoint *endpoint[MANY];
static rxw_connection *connection[MANY];

static rxw_connection *connect_from(rxw_endpoint *from, uint16_t service)
{
	rxw_connection *made;

	ck_assert_int_eq(rxw_connection_create(from, (struct sockaddr *)&bed.address,
					       bed.address_len, service, bed.security, &made),
			 0);
	return made;
}

static void set_up(void)
{
	h_open(&bed, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		endpoint[i] = h_client(&bed, "listeners=shared");
		connection[i] = connect_from(endpoint[i], H_SERVICE);
	}
}

static void tear_down(void)
{
	for (unsigned i = 0; i < MANY; i++) {
		rxw_connection_release(connection[i]);
		ck_assert_int_eq(rxw_endpoint_destroy(endpoint[i]), 0);
	}
	h_close(&bed);
}

/* Threads of this process whose names begin with `name`; *switches: how often they went to sleep. */
static unsigned count_threads(const char *name, unsigned long *switches)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	ck_assert_ptr_nonnull(tasks);
	*switches = 0;
	for (struct dirent *e; (e = readdir(tasks));) {
		char path[300], line[200];
		bool named = false;
		unsigned long n;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (!strncmp(line, "Name:\t", 6))
				named = !strncmp(line + 6, name, strlen(name));
			if (named && sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
				*switches += n;
		}
		if (f)
			fclose(f);
		count += named;
	}
	closedir(tasks);
	return count;
}

static unsigned cpu_count(void)
{
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	return (unsigned)CPU_COUNT(&set);
}

static void *call_in_turns(void *arg)
{
	static const enum h_op ops[] = {H_PING, H_SINK, H_SOURCE, H_BOTH};
	unsigned first = *(unsigned *)arg;

	for (unsigned i = first; i < MANY; i += CALLERS)
		for (unsigned k = 0; k < 4; k++)
			h_good_call(&bed, connection[i],
				    &(struct h_ask){.op = ops[k], .bytes = 100000, .seed = i});
	return NULL;
}

static void run_callers(void)
{
	pthread_t thread[CALLERS];
	unsigned first[CALLERS];

	for (unsigned i = 0; i < CALLERS; i++) {
		first[i] = i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, call_in_turns, &first[i]), 0);
	}
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(thread[i], NULL);
}

START_TEST(callers_that_wait)
{
	unsigned long switches;
	unsigned server = (unsigned)counter_of(bed.server, "calls_ended");

	run_callers();
	ck_assert_uint_ge(counter_of(bed.server, "calls_ended"), server);
	/* No endpoint of the client has a thread of its own, and no caller received. */
	ck_assert_uint_le(count_threads(SHARED, &switches), cpu_count());
	for (unsigned i = 0; i < MANY; i++) {
		struct rxw_effective e = {.size = sizeof(e)};

		ck_assert_int_eq(rxw_endpoint_effective(endpoint[i], &e), 0);
		ck_assert_uint_eq(e.listeners, 1);
	}
}
END_TEST

START_TEST(a_server_that_shares)
{
	struct h_bed clients = bed;
	unsigned long switches;

	memset(&bed, 0, sizeof(bed));
	h_open(&bed, &(struct h_options){.both = "listeners=shared"});
	for (unsigned i = 0; i < 4; i++) {
		rxw_connection *c = h_connect(&bed, i % 2 ? H_INLINE : H_SERVICE);

		h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
		if (i % 2 == 0)
			h_good_call(&bed, c, &(struct h_ask){.op = H_BOTH, .bytes = 3000000});
		rxw_connection_release(c);
	}
	ck_assert_uint_le(count_threads(SHARED, &switches), 3 * cpu_count());
	h_close(&bed);
	bed = clients;
}
END_TEST

static atomic_uint done, refused;

/* Reads the reply, and tries what no callback may do. */
static void on_event(rxw_call *call, unsigned events, void *arg)
{
	rxw_endpoint *own = arg;
	char reply[64];
	ssize_t n;

	(void)events;
	if (rxw_endpoint_stop(own, 0) == -RXW_EDEADLK && rxw_endpoint_destroy(own) == -RXW_EDEADLK)
		atomic_fetch_add(&refused, 1);
	do
		n = rxw_call_read_some(call, reply, sizeof(reply));
	while (n > 0);
	if (n == -RXW_EAGAIN)
		return;
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	atomic_fetch_add(&done, 1);
}

static bool all_done(void *arg)
{
	return atomic_load(&done) == *(unsigned *)arg;
}

START_TEST(callbacks)
{
	unsigned all = MANY;

	for (unsigned i = 0; i < MANY; i++) {
		struct rxw_call_options options = {.size = sizeof(options),
						   .flags = RXW_CALL_NONBLOCK};
		rxw_call *call;

		ck_assert_int_eq(rxw_call_begin(connection[i], &options, &call), 0);
		h_write_ask(call, &(struct h_ask){.op = H_SOURCE, .bytes = 200000});
		ck_assert_int_eq(rxw_call_send_end(call), 0);
		rxw_call_set_callback(call, on_event, endpoint[i]);
	}
	h_wait_for(all_done, &all, "the callbacks end all calls");
	ck_assert_uint_ge(atomic_load(&refused), MANY);
}
END_TEST

/* Calls of the first `count` endpoints report to one queue. */
static void use_queue(unsigned count)
{
	struct rxw_queue_event event;
	rxw_queue *queue;

	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &queue), 0);
	for (unsigned i = 0; i < count; i++) {
		struct rxw_call_options options = {.size = sizeof(options),
						   .flags = RXW_CALL_NONBLOCK,
						   .queue = queue,
						   .events = RXW_EVENT_DONE};
		rxw_call *call;

		ck_assert_int_eq(rxw_call_begin(connection[i], &options, &call), 0);
		h_write_ask(call, &(struct h_ask){.op = H_PING});
		ck_assert_int_eq(rxw_call_send_end(call), 0);
	}
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(rxw_queue_next(queue, &event, 1, 60000), 1);
		ck_assert_int_eq(rxw_call_end(event.call, 0, NULL), 0);
	}
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
}

START_TEST(queues)
{
	use_queue(MANY);
	for (unsigned i = 0; i < 20; i++)
		use_queue(1);
}
END_TEST

/* Nothing wakes the thread for these but its timers. */
START_TEST(deadlines)
{
	rxw_call *call[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		struct rxw_call_options options = {.size = sizeof(options),
						   .deadline_ms = 1000 + i % 7 * 50};

		ck_assert_int_eq(rxw_call_begin(connection[i], &options, &call[i]), 0);
		if (h_try_write_ask(call[i], &(struct h_ask){.op = H_WAIT}))
			(void)rxw_call_send_end(call[i]);
	}
	for (unsigned i = 0; i < MANY; i++) {
		char reply[4];

		ck_assert_int_eq(rxw_call_read(call[i], reply, sizeof(reply)), -RXW_ECALL);
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), RXW_CALL_TIMEOUT);
	}
}
END_TEST

static atomic_bool stop;

static void *come_and_go(void *arg)
{
	unsigned *rounds = arg;

	for (; !atomic_load(&stop); ++*rounds) {
		rxw_endpoint *made = h_client(&bed, "listeners=shared");
		rxw_connection *c = connect_from(made, H_SERVICE);

		h_good_call(&bed, c, &(struct h_ask){.op = H_SOURCE, .bytes = 5000});
		rxw_connection_release(c);
		ck_assert_int_eq(rxw_endpoint_destroy(made), 0);
	}
	return NULL;
}

START_TEST(others_come_and_go)
{
	pthread_t thread[2];
	unsigned rounds[2] = {0};

	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, &rounds[i]), 0);
	for (unsigned i = 0; i < 3; i++)
		run_callers();
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_uint_gt(rounds[i], 0);
	}
}
END_TEST

/* All endpoints of an engine leave, and others come: threads end and begin. */
START_TEST(the_last_one_leaves)
{
	unsigned long switches;

	for (unsigned round = 0; round < 10; round++) {
		h_good_call(&bed, connection[round], &(struct h_ask){.op = H_PING});
		for (unsigned i = 0; i < MANY; i++) {
			rxw_connection_release(connection[i]);
			ck_assert_int_eq(rxw_endpoint_destroy(endpoint[i]), 0);
		}
		ck_assert_uint_eq(count_threads(SHARED, &switches), 0);
		for (unsigned i = 0; i < MANY; i++) {
			endpoint[i] = h_client(&bed, "listeners=shared");
			connection[i] = connect_from(endpoint[i], H_SERVICE);
		}
		if (h_small() && round == 1)
			return;
	}
}
END_TEST

/* Strangers' packets arrive at one endpoint as fast as they can be sent. */
static void *flood(void *arg)
{
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	char packet[1000] = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rxw_endpoint_address(arg, &to, &length), 0);
	((struct sockaddr_in *)&to)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (!atomic_load(&stop))
		(void)sendto(fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&to,
			     length);
	close(fd);
	return NULL;
}

static bool is_flooded(void *arg)
{
	return counter_of(arg, "datagrams.received") > 10000;
}

START_TEST(a_flood_leaves_turns_to_others)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, flood, endpoint[0]), 0);
	h_wait_for(is_flooded, endpoint[0], "the flood arrives");
	run_callers(); /* of the flooded endpoint, too */
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}
END_TEST

static bool sleeps(void *arg)
{
	unsigned long before, after;

	(void)arg;
	count_threads(SHARED, &before);
	usleep(400000);
	count_threads(SHARED, &after);
	return before == after;
}

START_TEST(idle_threads_sleep)
{
	run_callers();
	/* Memory goes back, connections settle; and once a minute idle connections are looked for. */
	h_wait_for(sleeps, NULL, "idle threads do not wake");
}
END_TEST

/* The child may destroy what it inherited; the parent does not notice. */
START_TEST(fork_leaves_the_parent_alone)
{
	int status;
	pid_t child;

	run_callers();
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		int bad = 0;

		for (unsigned i = 0; i < MANY; i++)
			bad |= rxw_endpoint_destroy(endpoint[i]);
		_exit(bad || rxw_engine_destroy(bed.client_engine));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	run_callers();
}
END_TEST

START_TEST(text_of_the_tunable)
{
	struct rxw_config config;
	char text[100];

	rxw_config_init(&config, sizeof(config));
	ck_assert_int_eq(rxw_config_set(&config, "listeners", "shared", NULL, 0), 0);
	ck_assert_uint_eq(config.listeners, RXW_LISTENERS_SHARED);
	ck_assert_int_eq(rxw_config_get(&config, "listeners", text, sizeof(text)), 6);
	ck_assert_str_eq(text, "shared");
	ck_assert_int_eq(rxw_config_set(&config, "listeners", "4294967295", text, sizeof(text)),
			 -RXW_EVALUE);
	ck_assert_ptr_nonnull(strstr(text, "auto, or shared"));
	ck_assert_int_eq(rxw_config_set(&config, "window", "shared", NULL, 0), -RXW_EVALUE);
	ck_assert_int_eq(rxw_endpoint_set(endpoint[0], "listeners", "shared"), -RXW_ESTATE);
}
END_TEST

int main(void)
{
	const TTest *const each[] = {callers_that_wait,	  a_server_that_shares,
				     callbacks,		  queues,
				     deadlines,		  others_come_and_go,
				     the_last_one_leaves, a_flood_leaves_turns_to_others,
				     idle_threads_sleep,  fork_leaves_the_parent_alone,
				     text_of_the_tunable};
	Suite *suite = suite_create("shared");
	TCase *tcase = tcase_create("shared");
	SRunner *runner;
	int left;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		tcase_add_test(tcase, each[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	left = srunner_ntests_failed(runner);
	srunner_free(runner);
	return left ? EXIT_FAILURE : EXIT_SUCCESS;
}
