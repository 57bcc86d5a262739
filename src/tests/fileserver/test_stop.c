/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server whose file system does not answer any more: reads of a file block for ever. It ends all
 * the same, and names the calls.
 */
#include "tests/fileserver/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "fileserver/base/base.h"
#include "fileserver/server.h"

#define STOP_MS 500
#define LIMIT_S 60 /* only turns a hang into a failure */

static char *root, *folder;
static int begun[2], never[2], where[2];

/* Blocks until the process ends; the pipe never becomes readable. */
static ssize_t blocked_read(struct export_file *file, const struct iovec *iov, int count,
			    uint64_t offset, unsigned flags)
{
	char byte = 0;

	(void)file;
	(void)iov;
	(void)count;
	(void)offset;
	if (flags & STORE_CACHED)
		return -EAGAIN;
	if (write(begun[1], &byte, 1) != 1)
		abort();
	return read(never[0], &byte, 1);
}

/* The server's process, as in rxfsd, from start to end. */
static void serve(void)
{
	static struct export_layer_ops blocked;
	struct fsd_settings settings = {.export = root,
					.volume = "data",
					.listen = "127.0.0.1",
					.state = tree_path(folder, "state"),
					.readers = 2,
					.read_ahead = 8 << 20,
					.watches = 16,
					.promises = 1024,
					.stop_ms = STOP_MS};
	char message[FSD_MESSAGE_MAX], text[256];
	struct fsd_server *server;
	struct export_layer *layer;
	struct rxw_config config;
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (dup2(open(tree_path(folder, "log"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2) < 0 ||
	    export_layer_posix(root, 0, &layer))
		_exit(10);
	blocked = *layer->ops;
	blocked.preadv = blocked_read;
	layer->ops = &blocked;
	settings.layer = layer;
	rxw_config_init(&config, sizeof(config));
	if (fsd_server_start(&settings, &config, &server, message)) {
		fprintf(stderr, "%s\n", message);
		_exit(11);
	}
	snprintf(text, sizeof(text), "127.0.0.1:%u:%u", fsd_server_vl_port(server),
		 fsd_server_fs_port(server));
	if (write(where[1], text, strlen(text)) < 0)
		_exit(12);
	sigwait(&set, &number);
	fsd_server_drain(server);
	fsd_server_report(server);
	fsd_server_stop(server);
	_exit(0);
}

static pid_t start(const char *program, const char *server, const char *path)
{
	pid_t pid = fork();

	if (pid < 0)
		ck_abort_msg("fork failed");
	if (pid)
		return pid;
	if (!program)
		serve();
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
	execl(program, program, "-q", "-s", server, "get", path, "/dev/null", NULL);
	_exit(127);
}

static void read_from(int fd, char *text, size_t size)
{
	ssize_t n = read(fd, text, size - 1);

	ck_assert_int_gt(n, 0);
	text[n] = 0;
}

static const char *log_text(void)
{
	static char text[65536];
	FILE *f = fopen(tree_path(folder, "log"), "re");

	ck_assert_ptr_nonnull(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return text;
}

/* The handler reads small files itself; other threads read larger ones ahead of it. */
START_TEST(stop_with_blocked_read)
{
	const char *path = _i ? "data:/large" : "data:/small", *top = getenv("top_builddir");
	char program[512], server[256], byte[2];
	pid_t daemon, client;
	int status;

	root = tree_make();
	folder = test_folder();
	tree_dir(folder, "state", 0700);
	tree_text(root, "small", "some bytes");
	tree_text(root, "large", "");
	ck_assert_int_eq(truncate(tree_path(root, "large"), 8 << 20), 0);
	ck_assert(!pipe2(begun, O_CLOEXEC) && !pipe2(never, O_CLOEXEC) && !pipe2(where, O_CLOEXEC));
	snprintf(program, sizeof(program), "%s/src/afscp/afscp", top ? top : ".");
	daemon = start(NULL, NULL, NULL);
	read_from(where[0], server, sizeof(server));
	client = start(program, server, path);
	read_from(begun[0], byte, sizeof(byte));
	ck_assert_int_eq(kill(daemon, SIGTERM), 0);
	ck_assert_int_eq(waitpid(daemon, &status, 0), daemon);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE, "status %x: %s",
		      (unsigned)status, log_text());
	ck_assert_msg(strstr(log_text(), "cut short; does the file system of "), "%s", log_text());
	ck_assert_msg(strstr(log_text(), "still running: RXAFS_FetchData64 from 127.0.0.1"), "%s",
		      log_text());
	kill(client, SIGKILL);
	ck_assert_int_eq(waitpid(client, &status, 0), client);
	tree_remove(root);
	tree_remove(folder);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stop");
	TCase *tc = tcase_create("stop");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, LIMIT_S);
	tcase_add_loop_test(tc, stop_with_blocked_read, 0, 2);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
