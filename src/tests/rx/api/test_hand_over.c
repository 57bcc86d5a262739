/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server hands its sockets over to its successor, again and again, under load: no call fails, and
 * each runs once. The servers are processes that this program starts with its own file.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "tests/asserts.h"

#define SERVICE 100
#define SOCKETS 2
#define CALLERS 6u	/* threads, each with a connection */
#define CALLS	150u	/* until the next server takes over */
#define BULK	200000u /* bytes of every eighth reply */
#define LIMIT	20000u	/* ms */

/* --- a server process: "ready", then by command 's' start, 'h' hand over --- */

static _Atomic(uint64_t) served;

/* The request says how long the handler takes and how much it replies. */
static int32_t handle(rxw_call *call, void *context)
{
	static const char zeros[4096];
	uint32_t ask[2];
	int32_t code = 0;

	(void)context;
	if (rxw_call_read(call, ask, sizeof(ask)) != sizeof(ask))
		return 7;
	atomic_fetch_add(&served, 1);
	usleep(ask[0]);
	for (uint32_t left = ask[1]; left && !code;) {
		size_t n = left < sizeof(zeros) ? left : sizeof(zeros);

		code = rxw_call_write(call, zeros, n) == (ssize_t)n ? 0 : 8;
		left -= (uint32_t)n;
	}
	return code;
}

static int serve(char *argv[])
{
	struct rxw_service_options s = {
		.size = sizeof(s), .id = SERVICE, .name = "wait", .handler = handle};
	struct rxw_endpoint_options o = {.size = sizeof(o), .server = 1, .paused = 1};
	int fd[SOCKETS], r = 0;
	rxw_endpoint *endpoint;
	rxw_engine *engine;

	for (unsigned i = 0; i < SOCKETS; i++)
		fd[i] = atoi(argv[2 + i]);
	o.sockets = fd;
	o.socket_count = SOCKETS;
	if (rxw_engine_create(NULL, &engine) || rxw_endpoint_create(engine, &o, &endpoint) ||
	    rxw_service_add(endpoint, &s, NULL))
		return 1;
	printf("ready\n");
	fflush(stdout);
	if (getchar() != 's' || rxw_endpoint_start(endpoint))
		return 2;
	if (getchar() != 'h')
		return 3;
	r = rxw_endpoint_hand_over(endpoint, LIMIT);
	if (rxw_endpoint_destroy(endpoint) || rxw_engine_destroy(engine))
		return 4;
	printf("%d %llu\n", r, (unsigned long long)atomic_load(&served));
	return 0;
}

/* --- the test --- */

struct server {
	pid_t pid;
	FILE *to, *from;
};

static int sockets[SOCKETS];
static struct sockaddr_in address;

static void bind_sockets(void)
{
	socklen_t length = sizeof(address);
	int on = 1;

	address = (struct sockaddr_in){.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	for (unsigned i = 0; i < SOCKETS; i++) {
		sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
		ck_assert_int_ge(sockets[i], 0);
		ck_assert_int_eq(
			setsockopt(sockets[i], SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
		ck_assert_int_eq(bind(sockets[i], (struct sockaddr *)&address, length), 0);
		ck_assert_int_eq(getsockname(sockets[i], (struct sockaddr *)&address, &length), 0);
	}
}

static void run_server(int in, int out)
{
	char number[SOCKETS][12];
	char *argv[3 + SOCKETS] = {"test_hand_over", "serve"};

	for (unsigned i = 0; i < SOCKETS; i++) {
		snprintf(number[i], sizeof(number[i]), "%d", sockets[i]);
		argv[2 + i] = number[i];
	}
	dup2(in, 0);
	dup2(out, 1);
	execv("/proc/self/exe", argv);
	_exit(9);
}

static struct server start_server(void)
{
	int to[2], from[2];
	struct server s;
	char line[20];

	ck_assert_int_eq(pipe2(to, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(from, O_CLOEXEC), 0);
	s.pid = fork();
	if (s.pid == 0) /* asserts nothing: see asserts.h */
		run_server(to[0], from[1]);
	ck_assert_int_gt(s.pid, 0);
	close(to[0]);
	close(from[1]);
	s.to = fdopen(to[1], "w");
	s.from = fdopen(from[0], "r");
	ck_assert(s.to && s.from);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), s.from));
	ck_assert_str_eq(line, "ready\n");
	return s;
}

static void tell(struct server *s, char what)
{
	ck_assert_int_eq(fputc(what, s->to), what);
	ck_assert_int_eq(fflush(s->to), 0);
}

/* Returns the calls that it served. */
static uint64_t wait_for_end(struct server *s)
{
	unsigned long long count;
	int r, status;

	ck_assert_int_eq(fscanf(s->from, "%d %llu", &r, &count), 2);
	ck_assert_int_eq(waitpid(s->pid, &status, 0), s->pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(r, 0);
	fclose(s->to);
	fclose(s->from);
	return count;
}

static _Atomic(uint64_t) made;
static _Atomic(bool) over;

static void one_call(rxw_connection *connection, uint32_t n)
{
	uint32_t ask[2] = {n % 5 * 1000, n % 8 ? 16 : BULK};
	char buffer[8192];
	size_t got = 0;
	rxw_call *call;
	int32_t code;
	ssize_t r;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, ask, sizeof(ask)), sizeof(ask));
	while ((r = rxw_call_read(call, buffer, sizeof(buffer))) > 0)
		got += (size_t)r;
	code = rxw_call_end(call, 0, NULL);
	ck_assert_msg(code == 0, "call %u ends with %d (%s)", n, code, rxw_code_text(code));
	ck_assert_uint_eq(got, ask[1]);
	atomic_fetch_add(&made, 1);
}

static void *calling(void *arg)
{
	rxw_endpoint *client = arg;
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&address, sizeof(address),
					       SERVICE, NULL, &connection),
			 0);
	for (uint32_t n = 0; !atomic_load(&over); n++)
		one_call(connection, n);
	rxw_connection_release(connection);
	return NULL;
}

START_TEST(none_fails_and_each_runs_once)
{
	struct server s, next;
	pthread_t caller[CALLERS];
	uint64_t sum = 0, until = 0;
	rxw_endpoint *client;
	rxw_engine *engine;

	bind_sockets();
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, NULL, &client), 0);
	s = start_server();
	tell(&s, 's');
	for (unsigned i = 0; i < CALLERS; i++)
		ck_assert_int_eq(pthread_create(&caller[i], NULL, calling, client), 0);
	for (unsigned turn = 0; turn < 4; turn++) {
		for (until += CALLS; atomic_load(&made) < until;)
			usleep(1000);
		next = start_server();
		tell(&s, 'h');
		sum += wait_for_end(&s);
		tell(&next, 's');
		until = atomic_load(&made);
		s = next;
	}
	for (until += CALLS; atomic_load(&made) < until;)
		usleep(1000);
	atomic_store(&over, true);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(caller[i], NULL);
	tell(&s, 'h');
	sum += wait_for_end(&s);
	ck_assert_uint_eq(sum, atomic_load(&made));
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	for (unsigned i = 0; i < SOCKETS; i++)
		close(sockets[i]);
}
END_TEST

START_TEST(misuse)
{
	struct rxw_endpoint_options o = {.size = sizeof(o), .server = 1};
	rxw_endpoint *server, *client;
	rxw_engine *engine;

	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &o, &server), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, NULL, &client), 0);
	ck_assert_int_eq(rxw_endpoint_hand_over(NULL, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_hand_over(client, 0), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_hand_over(server, 0), 0);
	ck_assert_int_eq(rxw_endpoint_hand_over(server, 0), -RXW_ESTATE);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &o, &server), 0);
	ck_assert_int_eq(rxw_endpoint_stop(server, 0), 0);
	ck_assert_int_eq(rxw_endpoint_hand_over(server, 0), -RXW_ESTATE);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}
END_TEST

static int test(void)
{
	Suite *s = suite_create("hand-over");
	TCase *tc = tcase_create("hand-over");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, none_fails_and_each_runs_once);
	tcase_add_test(tc, misuse);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

int main(int argc, char *argv[])
{
	return argc == 2 + SOCKETS && !strcmp(argv[1], "serve") ? serve(argv) : test();
}
