/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of ledger.c: promises that outlive the server. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "fileserver/callbacks/memory.h"
#include "fileserver/callbacks/clients.h"
#include "tests/main.h"

#define VOLUME	 0x20000001u
#define NOW	 100000u
#define HEADER	 80 /* of the file */
#define SLOT	 48
#define PROMISES 1000

static char *folder;
static char path[4200], message[FSD_MESSAGE_MAX];
static struct fsd_clients *clients;
static bool complete;
static size_t restored;

static size_t volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	(void)arg;
	if (!max || after >= VOLUME)
		return 0;
	ids[0] = VOLUME;
	return 1;
}

/* A server begins, without an end of the one before. */
static void start(size_t hosts, size_t promises, uint64_t now)
{
	const struct fsd_clients_options options = {.volumes = volumes,
						    .strict = true,
						    .hosts_max = hosts,
						    .promises_max = promises};

	clients = fsd_clients_create(&options);
	ck_assert_ptr_nonnull(clients);
	ck_assert_msg(fsd_ledger_open(clients, path, promises, now, &complete, &restored,
				      message) == 0,
		      "%s", message);
}

static void setup(void)
{
	folder = test_folder();
	snprintf(path, sizeof(path), "%s/promises", folder);
	start(100, PROMISES, NOW);
	ck_assert(!complete);
	ck_assert_uint_eq(restored, 0);
}

static void teardown(void)
{
	fsd_clients_destroy(clients);
	tree_remove(folder);
}

/* A killed server leaves the file as it is, and nothing else. */
static void kill_server(void)
{
	struct fsd_ledger *ledger = clients->ledger;

	clients->ledger = NULL;
	fsd_clients_destroy(clients);
	fsd_ledger_close(ledger);
}

static struct sockaddr_storage peer(unsigned n)
{
	struct sockaddr_storage sa = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;

	if (n % 2) {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(0x7f000000u + n);
		in->sin_port = htons(7001);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr.s6_addr[15] = (uint8_t)n;
		in6->sin6_scope_id = 3;
		in6->sin6_port = htons(7001);
	}
	return sa;
}

static AFSFid fid(uint32_t vnode)
{
	return (AFSFid){VOLUME, vnode, vnode + 1};
}

static struct fsd_caller enter(unsigned n, uint64_t now)
{
	struct sockaddr_storage sa = peer(n);
	struct fsd_caller caller;

	fsd_clients_enter(clients, &sa, NULL, 132, now, &caller);
	return caller;
}

static void finish(const struct fsd_work *work, int32_t code, uint64_t now)
{
	fsd_work_done(clients, work, &(struct fsd_answer){.code = code}, now);
}

static uint32_t give(unsigned n, AFSFid f, uint64_t now)
{
	struct fsd_caller caller = enter(n, now);
	uint32_t seconds = fsd_promise_give(clients, &caller, &f, false, now);

	fsd_clients_leave(clients, &caller);
	return seconds;
}

/* All clients answer; returns the number of single objects that they are told of. */
static unsigned answer_all(uint64_t now)
{
	struct fsd_work work;
	unsigned told = 0;

	while (fsd_work_take(clients, &work, 1000)) {
		told += work.kind == FSD_WORK_BREAK ? work.count : 0;
		finish(&work, 0, now);
	}
	return told;
}

static void bring_up(unsigned n, uint64_t now)
{
	struct fsd_caller caller = enter(n, now);

	fsd_clients_leave(clients, &caller);
	answer_all(now);
}

static bool is_ready(unsigned n, uint64_t now)
{
	struct fsd_caller caller = enter(n, now);
	bool ready = fsd_clients_ready(clients, &caller, now, 1);

	fsd_clients_leave(clients, &caller);
	return ready;
}

/* The next work is of this kind, for this client. */
static struct fsd_work take(enum fsd_work_kind kind, unsigned n)
{
	struct sockaddr_storage sa = peer(n);
	struct fsd_work work;

	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, kind);
	ck_assert_mem_eq(&work.peer, &sa, sizeof(sa));
	return work;
}

static void tell(enum fsd_work_kind kind, unsigned n, uint64_t now)
{
	struct fsd_work work = take(kind, n);

	finish(&work, 0, now);
}

/* The client of a server that was killed is told of each promise before it is served. */
START_TEST(each_promise_is_told)
{
	for (unsigned n = 1; n <= 2; n++) {
		struct fsd_work work;

		setup();
		bring_up(n, NOW);
		for (uint32_t v = 0; v < 120; v++)
			ck_assert_uint_gt(give(n, fid(2 + 2 * v), NOW), 0);
		/* of these, some are gone: broken, returned, with their object */
		fsd_promise_break(clients, &(AFSFid){VOLUME, 2, 3}, NULL);
		ck_assert_uint_eq(answer_all(NOW), 1);
		fsd_promise_break_all(clients,
				      &(struct fsd_break){.fid = fid(4), .gone = true}, 1, NULL, 0);
		/* and some not: no answer came yet */
		fsd_promise_break(clients, &(AFSFid){VOLUME, 6, 7}, NULL);
		kill_server();
		for (int again = 0; again < 2; again++) { /* also if the next one is killed */
			start(100, PROMISES, NOW + 10);
			ck_assert(complete);
			ck_assert_uint_eq(restored, 118);
			ck_assert(!is_ready(n, NOW + 10));
			if (again)
				break;
			tell(FSD_WORK_IDENTIFY, n, NOW + 10);
			kill_server();
		}
		tell(FSD_WORK_IDENTIFY, n, NOW + 10);
		tell(FSD_WORK_INIT, n, NOW + 10);
		tell(FSD_WORK_FORGET, n, NOW + 10);
		for (uint32_t told = 0, seen[242] = {0}; told < 118; told += work.count) {
			ck_assert(!is_ready(n, NOW + 10));
			work = take(FSD_WORK_BREAK, n);
			ck_assert_uint_eq(work.count, told < 100 ? 50 : 18);
			for (uint32_t i = 0; i < work.count; i++) {
				uint32_t vnode = work.fids[i].Vnode;

				ck_assert(vnode >= 6 && vnode <= 240 && !seen[vnode]++);
				ck_assert_uint_eq(work.fids[i].Unique, vnode + 1);
			}
			finish(&work, 0, NOW + 10);
		}
		ck_assert(!fsd_work_take(clients, &work, 1000));
		ck_assert(is_ready(n, NOW + 10));
		ck_assert_uint_gt(give(n, fid(2), NOW + 10), 0);
		/* nothing of it is left, but the new one */
		kill_server();
		start(100, PROMISES, NOW + 20);
		ck_assert_uint_eq(restored, 1);
		teardown();
	}
}
END_TEST

static void *change_main(void *arg)
{
	const struct fsd_break what = {.fid = fid(2)};

	*(unsigned *)arg = 100 + fsd_promise_break_all(clients, &what, 1, NULL, 60000);
	return NULL;
}

/* A change waits for a client that holds a promise of the killed server, and has not called since. */
START_TEST(changes_wait_for_old_promises)
{
	_Atomic unsigned ended = 0;
	pthread_t thread;
	struct fsd_work work;

	setup();
	bring_up(1, NOW);
	ck_assert_uint_gt(give(1, fid(2), NOW), 0);
	kill_server();
	start(100, PROMISES, NOW);
	ck_assert_int_eq(pthread_create(&thread, NULL, change_main, (void *)&ended), 0);
	for (enum fsd_work_kind kind = FSD_WORK_IDENTIFY; kind <= FSD_WORK_FORGET; kind++)
		if (kind != FSD_WORK_WHO)
			tell(kind, 1, NOW);
	work = take(FSD_WORK_BREAK, 1);
	ck_assert(work.count == 1 && work.fids[0].Vnode == 2);
	ck_assert_uint_eq(ended, 0);
	finish(&work, 0, NOW);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(ended, 100); /* nobody was given up */
	teardown();
}
END_TEST

START_TEST(expired_promises_are_forgotten)
{
	setup();
	bring_up(1, NOW);
	ck_assert_uint_gt(give(1, fid(2), NOW), 0);
	ck_assert_uint_gt(give(1, fid(4), NOW + 1000), 0);
	ck_assert_uint_gt(give(1, (AFSFid){VOLUME, 0, 0}, NOW), 0); /* 2 hours */
	kill_server();
	start(100, PROMISES, NOW + 7200 + 128 + 181);
	ck_assert_uint_eq(restored, 2);
	kill_server();
	start(100, PROMISES, NOW + FSD_PROMISE_S + 181);
	ck_assert(complete);
	ck_assert_uint_eq(restored, 1);
	kill_server();
	start(100, PROMISES, NOW + 1000 + FSD_PROMISE_S + 181);
	ck_assert_uint_eq(restored, 0);
	ck_assert(is_ready(1, NOW + 1000 + FSD_PROMISE_S + 181));
	teardown();
}
END_TEST

/* A promise that lasts longer is found with its new end, one that would be shorter with the old one. */
START_TEST(renewed_promises)
{
	setup();
	bring_up(1, NOW);
	ck_assert_uint_gt(give(1, fid(2), NOW), 0);
	ck_assert_uint_gt(give(1, fid(2), NOW + 5000), 0);
	ck_assert_uint_gt(fsd_promise_give(clients, &(struct fsd_caller){.host = clients->newest},
					   &(AFSFid){VOLUME, 2, 3}, true, NOW + 5000),
			  0);
	kill_server();
	start(100, PROMISES, NOW + 5000 + 14400);
	ck_assert_uint_eq(restored, 1);
	teardown();
}
END_TEST

static void poke(off_t at, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, length, at), (ssize_t)length);
	close(fd);
}

/* Bits of the file are wrong, or it is something else. What can be told is told; then see below. */
START_TEST(damaged_files)
{
	static const struct {
		off_t at;
		size_t restored;
	} places[] = {
		{0, 0},			{9, 0},	 {13, 0}, {16, 0}, {24, 0}, {72, 0},
		{HEADER + SLOT, 9},	{HEADER + SLOT + 4, 9},	   {HEADER + SLOT + 24, 9},
		{HEADER + SLOT + 36, 9}, {HEADER + SLOT + 40, 9}, {HEADER + SLOT + 45, 9},
	};
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) + 3; i++) {
		setup();
		bring_up(1, NOW);
		for (uint32_t v = 0; v < 10; v++)
			ck_assert_uint_gt(give(1, fid(2 + 2 * v), NOW), 0);
		kill_server();
		if (i < sizeof(places) / sizeof(places[0])) {
			uint8_t byte;
			int fd = open(path, O_RDONLY | O_CLOEXEC);

			ck_assert_int_eq(pread(fd, &byte, 1, places[i].at), 1);
			close(fd);
			byte ^= 0x20;
			poke(places[i].at, &byte, 1);
			start(100, PROMISES, NOW);
			ck_assert_uint_eq(restored, places[i].restored);
		} else if (i % 3 == 0) {
			ck_assert_int_eq(truncate(path, HEADER + 3 * SLOT + 7), 0);
			start(100, PROMISES, NOW);
			ck_assert_uint_eq(restored, 3);
		} else if (i % 3 == 1) {
			tree_text(folder, "promises", "this is something else");
			start(100, PROMISES, NOW);
			ck_assert_uint_eq(restored, 0);
		} else {
			ck_assert_int_eq(unlink(path), 0);
			ck_assert_int_eq(symlink("elsewhere", path), 0);
			start(100, PROMISES, NOW);
			ck_assert_uint_eq(restored, 0);
		}
		ck_assert_msg(!complete, "case %zu", i);
		/* a good file has taken its place */
		kill_server();
		ck_assert_int_eq(lstat(path, &st), 0);
		ck_assert(S_ISREG(st.st_mode));
		start(100, PROMISES, NOW);
		ck_assert(complete);
		teardown();
	}
}
END_TEST

/* A copy of the file does not have what the server wrote to the original later. */
START_TEST(copied_file)
{
	char other[4300], command[4 * sizeof(other)];

	setup();
	bring_up(1, NOW);
	ck_assert_uint_gt(give(1, fid(2), NOW), 0);
	kill_server();
	snprintf(other, sizeof(other), "%s/copy", folder);
	snprintf(command, sizeof(command), "cp '%s' '%s' && mv '%s' '%s'", path, other, other, path);
	ck_assert_int_eq(system(command), 0);
	start(100, PROMISES, NOW);
	ck_assert(!complete);
	ck_assert_uint_eq(restored, 0);
	teardown();
}
END_TEST

/* Clients whose promises are not known get none, until those would have expired. */
START_TEST(doubtful_clients)
{
	struct sockaddr_storage sa = peer(1);
	struct fsd_caller caller;

	for (int all = 0; all < 2; all++) {
		setup();
		fsd_clients_recall(clients, &sa, &(struct sockaddr_storage){0}, 0, NOW);
		fsd_clients_doubt(clients, all, NOW);
		/* told to forget before it is served: that helps most clients */
		ck_assert(!is_ready(1, NOW));
		ck_assert(is_ready(3, NOW) == !all);
		answer_all(NOW);
		for (unsigned n = 1; n <= 3; n += 2) {
			ck_assert(is_ready(n, NOW));
			ck_assert((give(n, fid(2), NOW) > 0) == (n == 3 && !all));
		}
		/* it is not forgotten meanwhile */
		for (unsigned n = 100; n < 300; n++) {
			caller = enter(n, NOW + 8000);
			fsd_clients_leave(clients, &caller);
			answer_all(NOW + 8000);
		}
		ck_assert_uint_eq(give(1, fid(4), NOW + 8000), 0);
		ck_assert_uint_gt(give(1, fid(4), NOW + FSD_PROMISE_S), 0);
		teardown();
	}
}
END_TEST

/* The table is smaller than before: those that do not fit count as unknown. */
START_TEST(smaller_table)
{
	setup();
	for (unsigned n = 1; n <= 5; n++) {
		bring_up(n, NOW);
		for (uint32_t v = 0; v < 20; v++)
			ck_assert_uint_gt(give(n, fid(2 + 2 * v), NOW), 0);
	}
	kill_server();
	start(100, 60, NOW);
	ck_assert(!complete);
	ck_assert_uint_eq(restored, 60);
	kill_server();
	start(2, PROMISES, NOW);
	ck_assert(!complete);
	ck_assert_uint_eq(restored, 40);
	teardown();
}
END_TEST

/* The file has as many slots as there may be promises, and they are used again. */
START_TEST(size_is_bounded)
{
	struct stat before, after;

	setup();
	ck_assert_int_eq(stat(path, &before), 0);
	ck_assert_int_eq(before.st_size, HEADER + PROMISES * SLOT);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned n = 1; n <= 90; n++) {
			bring_up(n, NOW + round);
			for (uint32_t v = 0; v < 30; v++)
				give(n, fid(2 + 2 * (v + n * 30)), NOW + round);
		}
		answer_all(NOW + round);
	}
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_int_eq(before.st_size, after.st_size);
	ck_assert_uint_le(clients->stats.promises + clients->owed, PROMISES);
	kill_server();
	start(100, PROMISES, NOW);
	ck_assert(complete);
	ck_assert_uint_gt(restored, PROMISES / 2);
	teardown();
}
END_TEST

/* A client whose promises were taken to make room cannot be told of each: it gets none for a while. */
START_TEST(reclaimed_client_gets_none)
{
	setup();
	for (unsigned n = 1; n <= 3; n++) {
		bring_up(n, NOW + n);
		for (uint32_t v = 0; v < PROMISES / 2; v++)
			give(n, fid(2 + 2 * v), NOW + n);
	}
	ck_assert_uint_eq(answer_all(NOW + 10), 0);
	ck_assert(is_ready(1, NOW + 10));
	ck_assert_uint_eq(give(1, fid(2), NOW + 10), 0);
	ck_assert_uint_eq(give(1, fid(2), NOW + 14000), 0);
	ck_assert_uint_gt(give(1, fid(2), NOW + FSD_PROMISE_S + 1), 0);
	teardown();
}
END_TEST

START_TEST(folder_that_is_missing)
{
	const struct fsd_clients_options options = {
		.volumes = volumes, .strict = true, .hosts_max = 10, .promises_max = 10};

	clients = fsd_clients_create(&options);
	ck_assert_int_eq(fsd_ledger_open(clients, "/proc/none/promises", 10, NOW, &complete,
					 &restored, message),
			 -1);
	ck_assert_ptr_nonnull(strstr(message, "/proc/none/promises"));
	fsd_clients_destroy(clients);
}
END_TEST

TEST_MAIN("ledger", each_promise_is_told, changes_wait_for_old_promises,
	  expired_promises_are_forgotten, renewed_promises, damaged_files, copied_file,
	  doubtful_clients, smaller_table, size_is_bounded, reclaimed_client_gets_none,
	  folder_that_is_missing)
