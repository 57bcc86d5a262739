/* SPDX-License-Identifier: BSD-2-Clause */
/* The file and the socket for Prometheus: answers, and hostile clients. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "tests/tools/testing.h"
#include "program/metrics.h"

static char folder[64], path[80], file[80], message[512];
static rxw_engine *engine;
static rxw_endpoint *endpoint;

static void setup(void)
{
	struct rxw_config config;

	snprintf(folder, sizeof(folder), "/tmp/rxwire-metrics-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(file, sizeof(file), "%s/rxwire.prom", folder);
	rxw_config_init(&config, sizeof(config));
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, NULL, &endpoint), 0);
}

static void teardown(void)
{
	rxw_endpoint_destroy(endpoint);
	rxw_engine_destroy(engine);
	unlink(file);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static char *more(void *arg)
{
	return arg ? strdup(arg) : NULL;
}

static struct tools_metrics *start(const char *f, const char *s)
{
	static char text[] = "more_than_that 7\n";
	struct tools_metrics_options o = {
		.file = f, .socket = s, .interval_ms = 100, .more = more, .arg = text};
	struct tools_metrics *m;
	int rc = tools_metrics_start(&o, &endpoint, 1, &m, message, sizeof(message));

	ck_assert_msg(rc == 0, "%s", message);
	return m;
}

static int open_client(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	memcpy(name.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

/* Reads until the other side closes. */
static char *read_reply(int fd)
{
	size_t used = 0, room = 1 << 20;
	char *text = malloc(room);
	ssize_t n;

	while ((n = recv(fd, text + used, room - used - 1, 0)) > 0)
		used += (size_t)n;
	text[used] = 0;
	close(fd);
	return text;
}

static void send_text(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static char *ask(const char *request)
{
	int fd = open_client();

	send_text(fd, request);
	return read_reply(fd);
}

static void answers(const char *request, const char *status)
{
	char *text = ask(request), want[64];

	snprintf(want, sizeof(want), "HTTP/1.1 %s\r\n", status);
	ck_assert_msg(!strncmp(text, want, strlen(want)), "%s: %.60s", request, text);
	free(text);
}

static void served(void)
{
	char *text = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), *body;
	unsigned long length;
	double started;

	ck_assert_int_eq(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	ck_assert_ptr_nonnull(strstr(text, "Content-Type: text/plain; version=0.0.4"));
	body = strstr(text, "\r\n\r\n") + 4;
	length = strtoul(strstr(text, "Content-Length: ") + 16, NULL, 10);
	ck_assert_uint_eq(strlen(body), length);
	ck_assert_ptr_nonnull(strstr(body, "\nrxwire_peers{endpoint=\""));
	ck_assert_ptr_nonnull(strstr(body, "\nmore_than_that 7\n"));
	ck_assert_ptr_nonnull(strstr(body, "\nprocess_cpu_seconds_total "));
	ck_assert_ptr_nonnull(strstr(body, "\nprocess_open_fds "));
	started = strtod(strstr(body, "\nprocess_start_time_seconds ") + 28, NULL);
	ck_assert(started > (double)time(NULL) - 3600 && started < (double)time(NULL) + 2);
	free(text);
}

START_TEST(socket_answers)
{
	struct tools_metrics *m = start(NULL, path);
	struct stat st;
	char *text;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0660);
	served();
	served();
	answers("GET /metrics?x=1 HTTP/1.0\n\n", "200 OK");
	answers("GET /calls HTTP/1.0\r\n\r\n", "200 OK");
	answers("GET /callsandmore HTTP/1.0\r\n\r\n", "404 Not Found");
	text = ask("GET /calls HTTP/1.1\r\nHost: x\r\n\r\n");
	ck_assert_ptr_nonnull(strstr(text, "Content-Type: application/json\r\n"));
	ck_assert_str_eq(strstr(text, "\r\n\r\n") + 4, "{\"calls\":[],\"left_out\":0}\n");
	free(text);
	answers("GET /metricsandmore HTTP/1.0\r\n\r\n", "404 Not Found");
	answers("GET / HTTP/1.0\r\n\r\n", "404 Not Found");
	answers("POST /metrics HTTP/1.0\r\n\r\n", "405 Method Not Allowed");
	answers("\r\n\r\n", "405 Method Not Allowed");
	tools_metrics_stop(m);
	ck_assert_int_eq(stat(path, &st), -1);
}
END_TEST

/*
 * Clients that send half a request, never read, or request too much: the others are served all the
 * same.
 */
START_TEST(bad_clients)
{
	struct tools_metrics *m = start(NULL, path);
	char *long_one = malloc(5001), *text;
	int half[40], unread[10], fd;

	memset(long_one, 'x', 5000);
	long_one[5000] = 0;
	for (int i = 0; i < 40; i++) {
		half[i] = open_client();
		send_text(half[i], "GET /met");
	}
	served();
	for (int i = 0; i < 10; i++) {
		unread[i] = open_client();
		send_text(unread[i], "GET /metrics HTTP/1.0\r\n\r\n");
	}
	served();
	fd = open_client();
	ck_assert_int_gt(send(fd, long_one, 4096, MSG_NOSIGNAL), 0);
	text = read_reply(fd);
	ck_assert_int_eq(strncmp(text, "HTTP/1.1 431 ", 13), 0);
	free(text);
	close(open_client()); /* and one that disconnects at once */
	served();
	for (int i = 0; i < 40; i++)
		close(half[i]);
	for (int i = 0; i < 10; i++)
		close(unread[i]);
	free(long_one);
	tools_metrics_stop(m);
}
END_TEST

/* Another process: opens 60 connections that never finish, then waits until its stdin is closed. */
static pid_t start_connection_hog(int *hold)
{
	int told[2], held[2];
	pid_t pid;
	char byte;

	ck_assert_int_eq(pipe(told), 0);
	ck_assert_int_eq(pipe(held), 0);
	pid = fork();
	if (pid < 0)
		ck_abort_msg("fork failed");
	if (pid == 0) {
		close(held[1]);
		for (int i = 0; i < 60; i++)
			send_text(open_client(), "GET /met");
		if (write(told[1], "x", 1) != 1 || read(held[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	close(held[0]);
	close(told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	close(told[0]);
	*hold = held[1];
	return pid;
}

/* A process that takes all connections loses one of its own, not a slow one of another process. */
START_TEST(one_process_takes_all_connections)
{
	struct tools_metrics *m = start(NULL, path);
	int slow = open_client(), hold, status;
	char *text;
	pid_t pid;

	send_text(slow, "GET /metrics HTTP/1.0\r\n");
	pid = start_connection_hog(&hold);
	served();
	send_text(slow, "\r\n");
	text = read_reply(slow);
	ck_assert_int_eq(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	free(text);
	close(hold);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	tools_metrics_stop(m);
}
END_TEST

/* The reader of the file is another user's program; the umask of a service would exclude it. */
START_TEST(file_for_others)
{
	mode_t before = umask(0077);
	struct tools_metrics *m = start(file, NULL);
	struct stat st;

	umask(before);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0644);
	tools_metrics_stop(m);
}
END_TEST

START_TEST(file_is_replaced)
{
	struct tools_metrics *m = start(file, NULL);
	char first[64] = "", line[512];
	struct stat before, after;
	bool ended = false;
	FILE *f;

	ck_assert_int_eq(stat(file, &before), 0);
	do {
		poll(NULL, 0, 10);
		ck_assert_int_eq(stat(file, &after), 0); /* it exists at any time */
	} while (after.st_ino == before.st_ino && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec &&
		 after.st_mtim.tv_sec == before.st_mtim.tv_sec);
	tools_metrics_stop(m);
	f = fopen(file, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (!*first)
			snprintf(first, sizeof(first), "%.60s", line);
		ended = !strncmp(line, "process_resident_memory_bytes ", 30);
	}
	fclose(f);
	ck_assert_int_eq(strncmp(first, "# HELP rxwire_build_info", 24), 0);
	ck_assert(ended);
	snprintf(line, sizeof(line), "%s.tmp", file);
	ck_assert_int_eq(stat(line, &after), -1);
}
END_TEST

static void refused(const char *f, const char *s, const char *want)
{
	struct tools_metrics_options o = {.file = f, .socket = s};
	struct tools_metrics *m;

	ck_assert_int_eq(tools_metrics_start(&o, &endpoint, 1, &m, message, sizeof(message)), -1);
	ck_assert_ptr_null(m);
	ck_assert_msg(strstr(message, want) != NULL, "%s", message);
}

START_TEST(bad_paths)
{
	struct tools_metrics *m;
	char text[300];
	int fd;

	ck_assert_ptr_null(start(NULL, NULL));
	tools_metrics_stop(NULL);
	refused("/nowhere/at/all", NULL, "--metrics-file /nowhere/at/all: No such file");
	snprintf(text, sizeof(text), "%s/%0200d", folder, 7);
	refused(NULL, text, strerror(ENAMETOOLONG));
	/* A file of another kind is not replaced. */
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	refused(NULL, path, "File exists");
	ck_assert_int_eq(unlink(path), 0);
	/* A socket that answers belongs to another program; a stale one is replaced. */
	m = start(NULL, path);
	refused(NULL, path, strerror(EADDRINUSE));
	served();
	tools_metrics_stop(m);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	memcpy(name.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	close(fd);
	m = start(NULL, path);
	served();
	tools_metrics_stop(m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *t = tcase_create("metrics");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, socket_answers);
	tcase_add_test(t, bad_clients);
	tcase_add_test(t, one_process_takes_all_connections);
	tcase_add_test(t, file_for_others);
	tcase_add_test(t, file_is_replaced);
	tcase_add_test(t, bad_paths);
	suite_add_tcase(suite, t);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
