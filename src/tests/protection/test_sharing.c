/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads and several processes on one database. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "tests/protection/database.h"

static struct database d;

/* Wait until another process's change is seen: its user is there. */
static void wait_for_user(const char *name)
{
	for (;;) {
		const struct prot_view *view = prot_view_get(d.prot);
		bool there = prot_by_name(view, name);

		prot_view_put(view);
		if (there)
			return;
		usleep(1000);
	}
}

/* Run `work` in another process, which must succeed. */
static pid_t child(void (*work)(struct prot *prot))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		ck_abort_msg("fork failed");
	if (pid == 0) {
		const struct prot_options options = {.path = d.folder, .create = true};
		char message[PROT_MESSAGE_MAX];
		struct prot *prot;

		if (prot_open(&options, &prot, message)) {
			fprintf(stderr, "%s\n", message);
			_exit(1);
		}
		work(prot);
		prot_close(prot);
		_exit(0);
	}
	return pid;
}

static void reap(pid_t pid, int want)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, want);
}

static void must(int rc, const char *message)
{
	if (rc) {
		fprintf(stderr, "%s\n", message);
		_exit(1);
	}
}

static void add_one(struct prot *prot)
{
	char message[PROT_MESSAGE_MAX];

	must(prot_add_user(prot, "from-child", 0, NULL, message), message);
}

static void remove_alice(struct prot *prot)
{
	char message[PROT_MESSAGE_MAX];

	must(prot_remove_member(prot, -206, 1, message), message);
	must(prot_add_user(prot, "removed", 0, NULL, message), message);
}

START_TEST(other_process)
{
	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_group(&d, "staff", -206, 0);
	ck_assert_int_eq(prot_add_member(d.prot, -206, 1, d.message), 0);
	database_shut(&d);
	reap(child(add_one), 0);
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-206 -102 -101 1");
	database_shut(&d);
	/* A fork must not carry an open connection over, so the child is there before. */
	{
		pid_t pid = child(remove_alice);
		const struct prot_options options = {.path = d.folder};

		ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
		wait_for_user("removed");
		reap(pid, 0);
	}
	ck_assert_str_eq(database_cps(&d, 1), "-102 -101 1");
	database_close(&d);
}
END_TEST

#define WRITERS 4
#define EACH	25

static void add_many(struct prot *prot)
{
	static unsigned number;
	char message[PROT_MESSAGE_MAX], name[40];

	for (int i = 0; i < EACH; i++) {
		snprintf(name, sizeof(name), "u%d.%u", (int)getpid(), number++);
		must(prot_add_user(prot, name, 0, NULL, message), message);
	}
}

/* Processes make the database together and add users: each gets an id of its own. */
START_TEST(many_processes)
{
	const struct prot_view *view;
	int32_t user, group;
	pid_t pids[WRITERS];

	d = (struct database){.folder = test_folder()};
	ck_assert_int_gt(asprintf(&d.file, "%s/" PROT_FILE, d.folder), 0);
	for (int i = 0; i < WRITERS; i++)
		pids[i] = child(add_many);
	for (int i = 0; i < WRITERS; i++)
		reap(pids[i], 0);
	database_reopen(&d);
	view = prot_view_get(d.prot);
	prot_max_ids(view, &user, &group);
	ck_assert_int_eq(user, WRITERS * EACH);
	ck_assert_uint_eq(prot_count(view), WRITERS * EACH + 6);
	prot_view_put(view);
	database_close(&d);
}
END_TEST

static void add_for_ever(struct prot *prot)
{
	for (;;)
		add_many(prot);
}

/* A process that is killed while it writes leaves whole transactions. */
START_TEST(killed)
{
	const struct prot_view *view;
	int32_t user, group;
	pid_t pid;

	database_open(&d, NULL);
	database_shut(&d);
	for (int i = 0; i < 5; i++) {
		const struct prot_options options = {.path = d.folder};
		size_t before, now = 0;

		pid = child(add_for_ever);
		ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
		view = prot_view_get(d.prot);
		before = prot_count(view);
		prot_view_put(view);
		while (now < before + 3) {
			view = prot_view_get(d.prot);
			now = prot_count(view);
			prot_view_put(view);
			usleep(100);
		}
		kill(pid, SIGKILL);
		reap(pid, SIGKILL);
		database_shut(&d);
		database_reopen(&d);
		view = prot_view_get(d.prot);
		prot_max_ids(view, &user, &group);
		ck_assert_uint_eq(prot_count(view), (size_t)user + 6);
		prot_view_put(view);
		database_shut(&d);
	}
	database_close(&d);
}
END_TEST

static _Atomic bool done;
static _Atomic unsigned long looks;

/* Alice is in both groups or in neither. */
static void *read_on(void *arg)
{
	uint64_t last = 0;

	(void)arg;
	while (!atomic_load(&done)) {
		const struct prot_view *view = prot_view_get(d.prot);
		int32_t list[8];
		size_t count = prot_cps(view, 1, list, 8);

		ck_assert_msg(count == 3 || count == 5, "%zu", count);
		ck_assert_uint_ge(prot_generation(view), last);
		last = prot_generation(view);
		prot_view_put(view);
		atomic_fetch_add(&looks, 1);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t thread[4];

	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_group(&d, "a", -206, 0);
	database_group(&d, "b", -207, 0);
	/* From here on all threads see that. */
	ck_assert_str_eq(database_cps(&d, 1), "-102 -101 1");
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_on, NULL), 0);
	for (int i = 0; i < 100; i++) {
		int (*change)(struct prot *, int32_t, int32_t, char *) =
			i % 2 ? prot_remove_member : prot_add_member;

		ck_assert_int_eq(prot_begin(d.prot, d.message), 0);
		ck_assert_int_eq(change(d.prot, -206, 1, d.message), 0);
		ck_assert_int_eq(change(d.prot, -207, 1, d.message), 0);
		ck_assert_int_eq(prot_commit(d.prot, d.message), 0);
		/* A change by this process is in the next view. */
		ck_assert_str_eq(database_cps(&d, 1),
				 i % 2 ? "-102 -101 1" : "-207 -206 -102 -101 1");
		/* Each change is looked at, however few processors the threads get. */
		for (unsigned long seen = atomic_load(&looks); atomic_load(&looks) < seen + 2;)
			usleep(100);
	}
	atomic_store(&done, true);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_gt(atomic_load(&looks), 100);
	database_close(&d);
}
END_TEST

static _Atomic unsigned warnings;

static void count_warning(void *arg, const char *line)
{
	ck_assert_ptr_eq(arg, &d);
	ck_assert_msg(strstr(line, "stays in use") != NULL, "%s", line);
	atomic_fetch_add(&warnings, 1);
}

/* The file has become unusable: there is one warning, and what was read before stays in use. */
static void keeps_its_view(void)
{
	while (!atomic_load(&warnings)) {
		ck_assert_str_eq(database_cps(&d, 1), "-102 -101 1");
		usleep(1000);
	}
	usleep(250000);
	ck_assert_str_eq(database_cps(&d, 1), "-102 -101 1");
	ck_assert_uint_eq(atomic_load(&warnings), 1);
}

/* A file that is damaged while it is open: what was read stays, with one warning. */
START_TEST(damaged_later)
{
	const struct prot_options options = {.warn = count_warning, .arg = &d};
	sqlite3 *db;

	database_open(&d, &options);
	database_user(&d, "alice", 1);
	ck_assert_str_eq(database_cps(&d, 1), "-102 -101 1");
	ck_assert_int_eq(sqlite3_open_v2(d.file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM last", NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	keeps_its_view();
	database_close(&d);
}
END_TEST

/* A file that is moved away while it is open: what was read stays, with one warning. */
START_TEST(replaced)
{
	const struct prot_options options = {.warn = count_warning, .arg = &d};
	char *aside;

	atomic_store(&warnings, 0);
	database_open(&d, &options);
	database_user(&d, "alice", 1);
	ck_assert_int_gt(asprintf(&aside, "%s.aside", d.file), 0);
	ck_assert_int_eq(rename(d.file, aside), 0);
	keeps_its_view();
	ck_assert_int_eq(rename(aside, d.file), 0);
	free(aside);
	database_close(&d);
}
END_TEST

static void *take_view(void *count)
{
	const struct prot_view *view = prot_view_get(d.prot);

	*(size_t *)count = prot_count(view);
	prot_view_put(view);
	return NULL;
}

/* Another thread does not wait for the one that has changed the database and not looked at it yet. */
START_TEST(others_go_on)
{
	size_t before, during, after;
	pthread_t thread;

	database_open(&d, NULL);
	take_view(&before);
	database_user(&d, "alice", 0);
	ck_assert_int_eq(prot_begin(d.prot, d.message), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_view, &during), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(during, before);
	prot_rollback(d.prot);
	take_view(&after);
	ck_assert_uint_eq(after, before + 1);
	database_close(&d);
}
END_TEST

TEST_MAIN_WITHIN(60, "protection sharing", other_process, many_processes, killed, threads,
		 damaged_later, replaced, others_go_on)
