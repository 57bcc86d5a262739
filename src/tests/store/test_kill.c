/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight writers in a process that is killed at a random time, on real files. Each acknowledged
 * operation is told to this process through a pipe. After the restart every writer's directory is as
 * it was after its last acknowledged operation, or after the one that was in progress.
 *
 * $STORE_KILLS: how often; default 25.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/store/crashdisk.h"
#include "tests/store/model.h"
#include "tests/store/state.h"

#define WRITERS 8

static char folder[200];
static char message[STORE_MESSAGE_MAX];
static uint32_t volume;

/* -- the process that is killed -- */

struct acknowledged {
	uint32_t writer, n;
};

struct writer {
	struct store *store;
	pthread_t thread;
	struct model model;
	unsigned number;
	uint32_t next;
	int pipe;
};

static void *run_writer(void *arg)
{
	struct writer *w = arg;

	for (;; w->next++) {
		struct acknowledged ack = {w->number, w->next};

		if (model_perform(w->store, volume, &w->model, w->number, w->next))
			_exit(3);
		/* Records of this size are whole, or not in the pipe at all. */
		if (write(w->pipe, &ack, sizeof(ack)) != (ssize_t)sizeof(ack))
			_exit(4);
	}
	return NULL;
}

static struct store *open_store(void)
{
	const struct store_options options = {.path = folder};
	struct store *store = NULL;

	return store_open(&options, &store, message) == 0 ? store : NULL;
}

static void child(struct writer *writers, int pipe)
{
	struct store *store = open_store();

	if (!store)
		_exit(2);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].store = store;
		writers[i].pipe = pipe;
		pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]);
	}
	for (;;)
		pause();
}

/* -- this process -- */

static void fault(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "%s\n", line);
}

static void kill_once(struct writer *writers, uint64_t *random)
{
	uint32_t acknowledged[WRITERS];
	struct acknowledged ack;
	struct store *store;
	uint64_t wanted = crashdisk_random(random) % 200 + 1, got = 0;
	int fds[2], status;
	pid_t pid;

	for (unsigned i = 0; i < WRITERS; i++)
		acknowledged[i] = writers[i].next;
	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(writers, fds[1]);
	close(fds[1]);
	while (read(fds[0], &ack, sizeof(ack)) == (ssize_t)sizeof(ack)) {
		acknowledged[ack.writer] = ack.n + 1;
		if (++got == wanted)
			kill(pid, SIGKILL);
	}
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status), "status %d", WEXITSTATUS(status));
	store = open_store();
	ck_assert_msg(store != NULL, "%s", message);
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_msg(model_follow(store, volume, &writers[i].model, i, &writers[i].next,
					   acknowledged[i]),
			      "writer %u after %u operations", i, acknowledged[i]);
	ck_assert_int_eq(store_check(store, &(struct store_checker){.each = fault}), 0);
	store->ops->close(store);
}

START_TEST(killed)
{
	const struct store_new_volume new = {.name = "v"};
	const char *times = getenv("STORE_KILLS");
	struct store_options options = {0};
	struct writer writers[WRITERS];
	uint64_t random = 1;
	struct store *store;

	options.path = folder;
	ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	store = open_store();
	ck_assert_msg(store != NULL, "%s", message);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	memset(writers, 0, sizeof(writers));
	for (unsigned i = 0; i < WRITERS; i++) {
		char path[32];

		snprintf(path, sizeof(path), "w%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_DIR, NULL), 0);
		writers[i].number = i;
		model_begin(&writers[i].model);
	}
	store->ops->close(store);
	for (int i = times ? atoi(times) : 25; i > 0; i--)
		kill_once(writers, &random);
}
END_TEST

static void remove_folder(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command) != 0)
		perror(folder);
}

int main(void)
{
	const TTest *const tests[] = {killed};
	const char *tmp = getenv("TMPDIR");
	int rc;

	snprintf(folder, sizeof(folder), "%s/store-kill-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	rc = test_main("kill", 600, tests, 1);
	remove_folder();
	return rc;
}
