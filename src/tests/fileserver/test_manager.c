/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program under a service manager: its messages on the notify socket, and the results of `rxfsd
 * --reload`.
 */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define LIMIT_MS 60000
#define WORDS	 32

static char *root, *folder, keytab[256], prom[256], program[512];
static int manager = -1;
static pid_t server = -1;

/* Runs the program. Its standard output and error go to `output`, a file in the folder. */
static pid_t run(const char *output, ...)
{
	char *words[WORDS] = {program}, path[256];
	va_list args;
	int n = 1;
	pid_t pid;

	va_start(args, output);
	while (n < WORDS - 1 && (words[n] = va_arg(args, char *)))
		n++;
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", folder, output);
	pid = fork();
	if (pid < 0)
		ck_abort_msg("fork failed");
	if (pid == 0) {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(fd, 1);
		dup2(fd, 2);
		execv(program, words);
		_exit(127);
	}
	return pid;
}

static int exit_of(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* The next message to the manager; it must contain these texts. */
static void expect_message(const char *first, const char *second)
{
	struct pollfd p = {.fd = manager, .events = POLLIN};
	char text[1024];
	ssize_t n;

	ck_assert_msg(poll(&p, 1, LIMIT_MS) == 1, "not expect_message: %s", first);
	n = recv(manager, text, sizeof(text) - 1, 0);
	ck_assert_int_gt(n, 0);
	text[n] = 0;
	ck_assert_msg(strstr(text, first) && strstr(text, second), "%s, %s: %s", first, second,
		      text);
}

static void no_more_messages(void)
{
	char text[64];

	ck_assert_int_eq(recv(manager, text, sizeof(text), MSG_DONTWAIT), -1);
}

static void write_keytab(int32_t kvno)
{
	rxw_keys *keys;
	char why[256];

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, kvno, 18), 0);
	ck_assert_msg(rxw_keys_write(keys, keytab, 1, why, sizeof(why)) == 0, "%s", why);
	rxw_keys_unref(keys);
}

/* A file of the folder contains this text. */
static bool has(const char *name, const char *want)
{
	char path[300], *text = calloc(1, 1 << 20);
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (f) {
		found = fread(text, 1, (1 << 20) - 1, f) > 0 && strstr(text, want);
		fclose(f);
	}
	free(text);
	return found;
}

static int reload(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)server);
	return exit_of(run("reload", "--reload", pid, NULL));
}

static void setup(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const char *top = getenv("top_builddir");
	char state[256];

	snprintf(program, sizeof(program), "%s/src/fileserver/rxfsd", top ? top : ".");
	root = tree_make();
	folder = test_folder();
	snprintf(keytab, sizeof(keytab), "%s/KeyFileExt", folder);
	snprintf(prom, sizeof(prom), "%s/rxfsd.prom", folder);
	snprintf(state, sizeof(state), "%s/state", folder);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/notify", folder);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&name, sizeof(name)), 0);
	setenv("NOTIFY_SOCKET", name.sun_path, 1);
	write_keytab(1);
	server = run("log", "--export", root, "--volume", "data", "--port", "0", "--vl-port", "0",
		     "--state", state, "--keytab", keytab, "--drain", "90", "--metrics-file", prom,
		     NULL);
}

static void teardown(void)
{
	unsetenv("NOTIFY_SOCKET");
	close(manager);
	tree_remove(root);
	tree_remove(folder);
}

START_TEST(life)
{
	setup();
	expect_message("READY=1\n", "STATUS=volume data of ");
	ck_assert_int_eq(kill(server, SIGTERM), 0);
	/* The drain time and a margin, whatever the unit says. */
	expect_message("STOPPING=1\n", "EXTEND_TIMEOUT_USEC=120000000\n");
	ck_assert_int_eq(exit_of(server), 0);
	no_more_messages();
	teardown();
}
END_TEST

START_TEST(reload_reports_result)
{
	char path[300];

	setup();
	expect_message("READY=1\n", "STATUS=volume data");
	write_keytab(2);
	ck_assert_int_eq(reload(), 0);
	ck_assert(!has("reload", "keys"));
	expect_message("RELOADING=1\n", "MONOTONIC_USEC=");
	expect_message("READY=1\n", "STATUS=volume data");
	ck_assert_int_eq(truncate(keytab, 7), 0);
	ck_assert_int_eq(reload(), 1);
	ck_assert(has("reload", "could not be read"));
	ck_assert(has("log", "old keys stay"));
	expect_message("RELOADING=1\n", "");
	expect_message("READY=1\n", "could not be read again");
	snprintf(path, sizeof(path), "%s.away", keytab);
	ck_assert_int_eq(rename(keytab, path), 0);
	ck_assert_int_eq(reload(), 1);
	expect_message("RELOADING=1\n", "");
	expect_message("READY=1\n", "could not be read again");
	/* A plain signal does the same, without a result for its sender. */
	write_keytab(3);
	ck_assert_int_eq(kill(server, SIGHUP), 0);
	expect_message("RELOADING=1\n", "");
	expect_message("READY=1\n", "STATUS=volume data");
	ck_assert_int_eq(kill(server, SIGTERM), 0);
	expect_message("STOPPING=1\n", "");
	ck_assert_int_eq(exit_of(server), 0);
	/* The initial keys, and the valid ones loaded later. */
	ck_assert(has("rxfsd.prom", "\nrxfsd_key_loads_total{result=\"success\"} 3\n"));
	ck_assert(has("rxfsd.prom", "\nrxfsd_key_loads_total{result=\"failure\"} 2\n"));
	ck_assert(has("rxfsd.prom", "\nrxfsd_keys_loaded_time_seconds 1") ||
		  has("rxfsd.prom", "\nrxfsd_keys_loaded_time_seconds 2"));
	teardown();
}
END_TEST

START_TEST(reload_refuses_other_processes)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	char pid[16];

	sigaction(SIGHUP, &ignore, NULL); /* the test would die of a signal that must not be sent */
	setup();
	expect_message("READY=1\n", "");
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	ck_assert_int_eq(exit_of(run("reload", "--reload", pid, NULL)), 1);
	ck_assert(has("reload", "not a process of rxfsd"));
	ck_assert_int_eq(kill(server, SIGTERM), 0);
	ck_assert_int_eq(exit_of(server), 0);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(240, "manager", life, reload_reports_result, reload_refuses_other_processes)
