/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight writers in a process that is killed at a random time, on real files. Each acknowledged
 * operation is told to this process through a pipe. After the restart every writer's directory is as
 * it was after its last acknowledged operation, or after the one that was in progress.
 *
 * Then one writer of pages of a file.
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
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/model.h"
#include "tests/volume/store/state.h"
#include "volume/store/upkeep.h"

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

static void start_writers(struct writer *writers, int pipe)
{
	struct store *store = open_store();

	if (!store)
		_exit(2);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].store = store;
		writers[i].pipe = pipe;
		pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]);
	}
}

/* -- this process -- */

static void fault(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "%s\n", line);
}

/*
 * A process that runs `child` is killed after so many acknowledged operations; `each` takes them.
 * The store that it leaves is given back, open.
 */
static struct store *kill_after(uint64_t wanted, void (*child)(void *arg, int pipe),
				void (*each)(void *arg, const struct acknowledged *ack), void *arg)
{
	struct acknowledged ack;
	struct store *store;
	uint64_t got = 0;
	int fds[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	if (pid < 0)
		ck_abort_msg("fork failed");
	if (pid == 0) {
		child(arg, fds[1]);
		for (;;)
			pause();
	}
	close(fds[1]);
	while (read(fds[0], &ack, sizeof(ack)) == (ssize_t)sizeof(ack)) {
		each(arg, &ack);
		if (++got == wanted)
			kill(pid, SIGKILL);
	}
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status), "status %d", WEXITSTATUS(status));
	store = open_store();
	ck_assert_msg(store != NULL, "%s", message);
	return store;
}

static void close_sound(struct store *store)
{
	ck_assert_int_eq(store_check(store, &(struct store_checker){.each = fault}), 0);
	store->ops->close(store);
}

struct group {
	struct writer writer[WRITERS];
	uint32_t acknowledged[WRITERS];
};

static void group_child(void *arg, int pipe)
{
	start_writers(((struct group *)arg)->writer, pipe);
}

static void group_each(void *arg, const struct acknowledged *ack)
{
	((struct group *)arg)->acknowledged[ack->writer] = ack->n + 1;
}

static void kill_once(struct group *group, uint64_t *random)
{
	struct writer *w = group->writer;
	struct store *store;

	for (unsigned i = 0; i < WRITERS; i++)
		group->acknowledged[i] = w[i].next;
	store = kill_after(crashdisk_random(random) % 200 + 1, group_child, group_each, group);
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_msg(model_follow(store, volume, &w[i].model, i, &w[i].next,
					   group->acknowledged[i]),
			      "writer %u after %u operations", i, group->acknowledged[i]);
	close_sound(store);
}

static struct store *make_store(void)
{
	const struct store_new_volume new = {.name = "v"};
	struct store_options options = {.path = folder};
	struct store *store;

	ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	store = open_store();
	ck_assert_msg(store != NULL, "%s", message);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	return store;
}

static int times(void)
{
	const char *text = getenv("STORE_KILLS");

	return text ? atoi(text) : 25;
}

START_TEST(killed)
{
	static struct group group;
	struct writer *writers = group.writer;
	uint64_t random = 1;
	struct store *store = make_store();

	for (unsigned i = 0; i < WRITERS; i++) {
		char path[32];

		snprintf(path, sizeof(path), "w%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_DIR, NULL), 0);
		writers[i].number = i;
		model_begin(&writers[i].model);
	}
	store->ops->close(store);
	for (int i = times(); i > 0; i--)
		kill_once(&group, &random);
}
END_TEST

/* -- pages of one file -- */

#define PAGE  4096u
#define PAGES 256u

struct rewriting {
	uint32_t next, acknowledged;
	uint32_t seed[PAGES]; /* operations that wrote them last */
};

static unsigned page_of(uint32_t n)
{
	uint64_t random = n;

	return (unsigned)(crashdisk_random(&random) % PAGES);
}

static int write_page(struct store *store, uint32_t n)
{
	return state_write(store, volume, "pages", page_of(n) * PAGE, PAGE, PAGES * PAGE, n);
}

static void rewriting_child(void *arg, int pipe)
{
	const struct store_options options = {.path = folder};
	struct store *store;

	if (store_open(&options, &store, message))
		_exit(2);
	for (uint32_t n = ((struct rewriting *)arg)->next;; n++) {
		struct acknowledged ack = {0, n};

		if (write_page(store, n))
			_exit(3);
		if (write(pipe, &ack, sizeof(ack)) != (ssize_t)sizeof(ack))
			_exit(4);
	}
}

static void rewriting_each(void *arg, const struct acknowledged *ack)
{
	((struct rewriting *)arg)->acknowledged = ack->n + 1;
}

static bool has_pages(struct store *store, const uint32_t seed[PAGES])
{
	static uint8_t want[PAGES * PAGE], got[PAGES * PAGE];
	struct iovec iov = {got, sizeof(got)};
	struct store_reader *reader;
	struct store_status status;
	struct store_fid fid;

	for (unsigned i = 0; i < PAGES; i++)
		state_bytes(want + i * PAGE, i * PAGE, PAGE, seed[i]);
	ck_assert_int_eq(state_walk(store, volume, "pages", &fid), 0);
	ck_assert_int_eq(store->ops->read_begin(store, &state_admin, &fid, &reader, &status), 0);
	ck_assert_int_eq(store->ops->read(reader, &iov, 1, 0, 0), sizeof(got));
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	return memcmp(want, got, sizeof(want)) == 0;
}

static void kill_rewriting(struct rewriting *r, uint64_t *random)
{
	struct store *store;

	r->acknowledged = r->next;
	store = kill_after(crashdisk_random(random) % 600 + 100, rewriting_child, rewriting_each,
			   r);
	for (; r->next < r->acknowledged; r->next++)
		r->seed[page_of(r->next)] = r->next;
	if (!has_pages(store, r->seed)) {
		r->seed[page_of(r->next)] = r->next;
		r->next++;
		ck_assert_msg(has_pages(store, r->seed), "after %u operations", r->acknowledged);
	}
	close_sound(store);
}

START_TEST(killed_rewriting)
{
	static struct rewriting rewriting = {.next = 1};
	uint64_t random = 2;
	uint32_t clone;
	struct store *store = make_store();

	ck_assert_int_eq(state_create(store, volume, "pages", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "pages", 0, PAGES * PAGE, PAGES * PAGE, 0), 0);
	store->ops->close(store);
	for (int i = times(); i > 0; i--) {
		kill_rewriting(&rewriting, &random);
		store = open_store();
		ck_assert_msg(store != NULL, "%s", message);
		if (i % 4 == 0)
			ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &clone), 0);
		if (i == 1) {
			ck_assert_int_eq(write_page(store, 0), 0);
			rewriting.seed[page_of(0)] = 0;
			ck_assert(has_pages(store, rewriting.seed));
		}
		store->ops->close(store);
	}
}
END_TEST

static void start(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/store-kill-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

int main(void)
{
	Suite *suite = suite_create("kill");
	TCase *tcase = tcase_create("kill");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, start, end);
	tcase_add_test(tcase, killed);
	tcase_add_test(tcase, killed_rewriting);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
