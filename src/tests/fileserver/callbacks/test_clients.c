/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of clients.c and promises.c: which clients get promises and callbacks. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "afs/uuid.h"
#include "fileserver/callbacks/memory.h"
#include "fileserver/callbacks/clients.h"

#define VOLUME 0x20000001u

static struct fsd_clients *clients;
static unsigned wakes;

static void wake(void *arg)
{
	(void)arg;
	wakes++;
}

static void setup(size_t hosts, size_t promises)
{
	struct fsd_clients_options options = {
		.volume = VOLUME, .hosts_max = hosts, .promises_max = promises, .wake = wake};

	clients = fsd_clients_create(&options);
	ck_assert_ptr_nonnull(clients);
	wakes = 0;
}

static struct sockaddr_storage peer(unsigned n)
{
	struct sockaddr_storage sa = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x7f000000u + n);
	in->sin_port = htons(7001);
	return sa;
}

static struct fsd_caller enter(unsigned n, uint32_t opcode, uint64_t now)
{
	struct sockaddr_storage sa = peer(n);
	struct fsd_caller caller;

	fsd_clients_enter(clients, &sa, NULL, opcode, now, &caller);
	return caller;
}

static AFSFid fid(uint32_t vnode)
{
	return (AFSFid){VOLUME, vnode, vnode + 1};
}

/* A client has answered, or not; it tells no identity. */
static void done(const struct fsd_work *work, int32_t code, uint32_t caps, uint64_t now)
{
	struct fsd_answer answer = {.code = code, .caps = caps};

	fsd_work_done(clients, work, &answer, now);
}

/*
 * Does all pending work; every client answers, with this capability word. Returns the number of
 * work items.
 */
static unsigned answer_all(uint32_t caps, uint64_t now)
{
	struct fsd_work work;
	unsigned n = 0;

	while (fsd_work_take(clients, &work, 1000)) {
		done(&work, 0, caps, now);
		n++;
	}
	return n;
}

static uint32_t give(unsigned n, uint32_t vnode, uint64_t now)
{
	struct fsd_caller caller = enter(n, 132, now);
	AFSFid f = fid(vnode);
	uint32_t seconds = fsd_promise_give(clients, &caller, &f, false, now);

	fsd_clients_leave(clients, &caller);
	return seconds;
}

static void bring_up(unsigned n, uint64_t now)
{
	struct fsd_caller caller = enter(n, 132, now);

	fsd_clients_leave(clients, &caller);
	answer_all(1, now);
}

START_TEST(identity_call_before_promises)
{
	struct fsd_caller caller;
	struct fsd_work work;

	setup(10, 100);
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	ck_assert_uint_eq(wakes, 1);
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	ck_assert_uint_eq(wakes, 1); /* only once */
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_IDENTIFY);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	done(&work, 0, 1, 1000);
	/*
	 * it is reset, because it may hold promises of an earlier server, and only then gets new
	 * ones
	 */
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_INIT);
	done(&work, 0, 0, 1000);
	/* by two calls: Linux 6.8 and later acts on the second */
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_FORGET);
	ck_assert_uint_eq(work.count, 1);
	ck_assert(work.fids[0].Volume == VOLUME && work.fids[0].Vnode == 0);
	done(&work, 0, 0, 1000);
	ck_assert_uint_ge(give(1, 2, 1000), 4 * 3600);
	caller = enter(1, 132, 1000);
	ck_assert(caller.uae);
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(silent_clients_not_called_again_soon)
{
	struct fsd_work work;

	setup(10, 100);
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	ck_assert(fsd_work_take(clients, &work, 1000));
	done(&work, RXW_CALL_DEAD, 0, 1000);
	for (uint64_t now = 1000; now < 1300; now += 10) {
		ck_assert_uint_eq(give(1, 2, now), 0);
		ck_assert(!fsd_work_take(clients, &work, 1000));
	}
	ck_assert_uint_eq(give(1, 2, 1301), 0);
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_IDENTIFY);
	done(&work, 0, 1, 1301);
	answer_all(0, 1301);
	ck_assert_uint_gt(give(1, 2, 1302), 0);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(error_numbers_by_client)
{
	struct fsd_caller caller;
	struct fsd_work work;

	setup(10, 100);
	caller = enter(1, 132, 5);
	ck_assert(!caller.uae);
	fsd_clients_leave(clients, &caller);
	caller = enter(2, 65540, 5);
	ck_assert(caller.uae);
	fsd_clients_leave(clients, &caller);
	caller = enter(2, 132, 5); /* remembered */
	ck_assert(caller.uae);
	fsd_clients_leave(clients, &caller);
	/* its own capability word takes precedence */
	while (fsd_work_take(clients, &work, 1000))
		done(&work, 0, 0, 5);
	caller = enter(2, 65540, 5);
	ck_assert(!caller.uae);
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(durations)
{
	setup(200, 10000);
	for (unsigned n = 1; n <= 80; n++)
		bring_up(n, 1000);
	for (unsigned n = 1; n <= 80; n++) {
		uint32_t s = give(n, 2, 1000), least = n <= 8	 ? 14400
						       : n <= 16 ? 3600
						       : n <= 24 ? 1800
						       : n <= 40 ? 900
						       : n <= 64 ? 600
								 : 420;

		ck_assert_uint_ge(s, least);
		ck_assert_uint_lt(s, least + 128);
		ck_assert_uint_eq((1000 + s) % 128, 0);
	}
	struct fsd_caller caller = enter(1, 65536, 1000);
	AFSFid f = fid(44);
	uint32_t bulk = fsd_promise_give(clients, &caller, &f, true, 1000);

	ck_assert_uint_ge(bulk, 1800);
	ck_assert_uint_lt(bulk, 1928);
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(breaks_reach_holders)
{
	AFSFid f = fid(2), g = fid(4);
	struct fsd_caller changer;
	struct fsd_work work;

	setup(10, 100);
	for (unsigned n = 1; n <= 3; n++)
		bring_up(n, 1000);
	ck_assert_uint_gt(give(1, 2, 1000), 0);
	ck_assert_uint_gt(give(2, 2, 1000), 0);
	ck_assert_uint_gt(give(3, 4, 1000), 0);
	changer = enter(1, 132, 1000);
	fsd_promise_break(clients, &f, changer.host);
	fsd_clients_leave(clients, &changer);
	ck_assert(fsd_promise_held(clients, &f)); /* the client that made the change */
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_BREAK);
	ck_assert_uint_eq(work.count, 1);
	ck_assert_mem_eq(&work.fids[0], &f, sizeof(f));
	ck_assert_uint_eq(ntohl(((struct sockaddr_in *)&work.peer)->sin_addr.s_addr), 0x7f000002);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	fsd_promise_break(clients, &f, NULL);
	ck_assert(!fsd_promise_held(clients, &f));
	ck_assert(fsd_promise_held(clients, &g));
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(one_call_for_many_breaks)
{
	struct fsd_work work;
	unsigned total = 0;

	setup(10, 10000);
	bring_up(1, 1000);
	for (uint32_t v = 2; v < 2 + 120; v++)
		ck_assert_uint_gt(give(1, v, 1000), 0);
	for (uint32_t v = 2; v < 2 + 120; v++) {
		AFSFid f = fid(v);

		fsd_promise_break(clients, &f, NULL);
	}
	for (int i = 0; i < 3; i++) {
		ck_assert(fsd_work_take(clients, &work, 1000));
		ck_assert_uint_le(work.count, 50);
		total += work.count;
		done(&work, 0, 0, 1000);
	}
	ck_assert_uint_eq(total, 120);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	fsd_clients_destroy(clients);
}
END_TEST

/* However many: each is told by itself, and nothing else. */
START_TEST(very_many_breaks)
{
	struct fsd_work work;
	struct fsd_clients_stats stats;
	unsigned total = 0;

	setup(10, 10000);
	bring_up(1, 1000);
	for (uint32_t v = 2; v < 2 + 2000; v++)
		ck_assert_uint_gt(give(1, v, 1000), 0);
	for (uint32_t v = 2; v < 2 + 1000; v++) {
		AFSFid f = fid(v);

		fsd_promise_break(clients, &f, NULL);
	}
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.promises, 1000);
	while (fsd_work_take(clients, &work, 1000)) {
		for (uint32_t i = 0; i < work.count; i++)
			ck_assert_uint_eq(work.fids[i].Vnode, 2 + total++);
		done(&work, 0, 0, 1000);
	}
	ck_assert_uint_eq(total, 1000);
	ck_assert_uint_eq(clients->owed, 0);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(failed_break_drops_all_promises)
{
	AFSFid f = fid(2), g = fid(4);
	struct fsd_work work;

	setup(10, 100);
	bring_up(1, 1000);
	give(1, 2, 1000);
	give(1, 4, 1000);
	fsd_promise_break(clients, &f, NULL);
	ck_assert(fsd_work_take(clients, &work, 1000));
	done(&work, RXW_CALL_DEAD, 0, 1000);
	ck_assert(!fsd_promise_held(clients, &g));
	ck_assert_uint_eq(give(1, 2, 1001), 0);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	/* later the server asks for its identity and resets it before it gets promises again */
	ck_assert_uint_eq(give(1, 2, 1031), 0);
	ck_assert_uint_eq(answer_all(1, 1031), 3);
	ck_assert_uint_gt(give(1, 2, 1032), 0);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(promises_given_up)
{
	AFSFid f = fid(2), g = fid(4);
	struct fsd_caller caller;

	setup(10, 100);
	bring_up(1, 1000);
	give(1, 2, 1000);
	give(1, 4, 1000);
	caller = enter(1, 147, 1000);
	fsd_promise_drop(clients, &caller, &f);
	fsd_promise_drop(clients, &caller, &f);
	ck_assert(!fsd_promise_held(clients, &f));
	ck_assert(fsd_promise_held(clients, &g));
	fsd_promise_drop_all(clients, &caller);
	ck_assert(!fsd_promise_held(clients, &g));
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

/* -- locks: what happens between two of them -- */

#define GIVEN 1500

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

static struct {
	bool on;
	unsigned unlocks;
	size_t before, most; /* promises when the lock was taken; removed until it was released */
	struct fsd_breaking *breaking;
} watched;

/*
 * While promises are given up, one of the rest is broken. The client gets no new one: it would rely on that, and lose it
 * with the others.
 */
static void change_meanwhile(void)
{
	const struct fsd_break broken = {.fid = fid(2)};

	watched.on = false;
	watched.breaking = fsd_promise_break_begin(clients, &broken, 1, NULL);
	ck_assert_ptr_nonnull(watched.breaking);
	ck_assert_uint_eq(give(1, 2 + 2 * GIVEN, 1000), 0);
	ck_assert_uint_gt(give(2, 2 + 2 * GIVEN, 1000), 0);
	watched.on = true;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int rc = __real_pthread_mutex_lock(lock);

	if (watched.on && lock == &clients->lock)
		watched.before = clients->stats.promises;
	return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	bool counts = watched.on && lock == &clients->lock;
	size_t removed = counts ? watched.before - clients->stats.promises : 0;
	int rc = __real_pthread_mutex_unlock(lock);

	if (!counts)
		return rc;
	watched.most = removed > watched.most ? removed : watched.most;
	if (++watched.unlocks == 2)
		change_meanwhile();
	return rc;
}

/* A client with very many promises gives them up, while others use the table. */
START_TEST(very_many_given_up)
{
	AFSFid f = fid(2 + 2 * GIVEN);
	struct fsd_clients_stats stats;
	struct fsd_caller caller;
	struct fsd_work work;

	setup(10, 4 * GIVEN);
	bring_up(1, 1000);
	bring_up(2, 1000);
	for (uint32_t v = 0; v < GIVEN; v++)
		ck_assert_uint_gt(give(1, 2 + 2 * v, 1000), 0);
	caller = enter(1, 147, 1000);
	watched.on = true;
	fsd_promise_drop_all(clients, &caller);
	watched.on = false;
	fsd_clients_leave(clients, &caller);
	ck_assert_uint_le(watched.most, 256);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.promises, 1);
	ck_assert(fsd_promise_held(clients, &f)); /* by the other client */
	/* The change still waits for the client. */
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_BREAK);
	ck_assert_uint_eq(work.count, 1);
	done(&work, 0, 1, 1000);
	ck_assert_uint_eq(fsd_promise_break_end(clients, watched.breaking, 0), 0);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	ck_assert_uint_gt(give(1, 2, 1000), 0);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(full_table_evicts_idle_clients)
{
	struct fsd_clients_stats stats;
	struct fsd_work work;

	setup(10, 100);
	for (unsigned n = 1; n <= 3; n++)
		bring_up(n, 1000 + n);
	for (uint32_t v = 0; v < 50; v++)
		ck_assert_uint_gt(give(1, 2 + 2 * v, 1010), 0);
	/* one client may not fill it alone */
	ck_assert_uint_eq(give(1, 1002, 1010), 0);
	for (uint32_t v = 0; v < 50; v++)
		ck_assert_uint_gt(give(2, 2 + 2 * v, 1020), 0);
	ck_assert_uint_gt(give(3, 2, 1030), 0);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.promises, 51);
	/* the first is reset, and may hold some again after that */
	ck_assert_uint_eq(give(1, 2, 1031), 0);
	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, FSD_WORK_INIT);
	ck_assert_uint_eq(ntohl(((struct sockaddr_in *)&work.peer)->sin_addr.s_addr), 0x7f000001);
	done(&work, 0, 0, 1031);
	ck_assert_uint_eq(answer_all(1, 1031), 1);
	ck_assert_uint_gt(give(1, 2, 1032), 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* Of those with promises, the one whose last call is the oldest loses them. */
START_TEST(full_table_keeps_who_called)
{
	AFSFid of_first = fid(2), of_second = fid(1002), of_third = fid(2002);
	struct fsd_clients_stats stats;
	struct fsd_caller caller;

	setup(10, 100);
	for (unsigned n = 1; n <= 5; n++)
		bring_up(n, 1000 + n);
	for (uint32_t v = 0; v < 50; v++)
		ck_assert_uint_gt(give(1, 2 + 2 * v, 1010), 0);
	for (uint32_t v = 0; v < 49; v++)
		ck_assert_uint_gt(give(2, 1002 + 2 * v, 1020), 0);
	ck_assert_uint_gt(give(3, 2002, 1030), 0);
	caller = enter(1, 132, 1040);
	fsd_clients_leave(clients, &caller);
	ck_assert_uint_gt(give(4, 3002, 1050), 0);
	ck_assert(fsd_promise_held(clients, &of_first));
	ck_assert(!fsd_promise_held(clients, &of_second));
	ck_assert(fsd_promise_held(clients, &of_third));
	/* The third one cannot lose a promise that it has returned. */
	caller = enter(3, 132, 1050);
	fsd_promise_drop_all(clients, &caller);
	fsd_clients_leave(clients, &caller);
	for (uint32_t v = 0; v < 49; v++)
		ck_assert_uint_gt(give(4, 4002 + 2 * v, 1060), 0);
	ck_assert_uint_gt(give(5, 5002, 1070), 0);
	ck_assert(!fsd_promise_held(clients, &of_first));
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.promises, 51);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(host_table_bounded)
{
	struct fsd_clients_stats stats;
	struct fsd_caller caller;
	struct fsd_work work;
	unsigned asked = 0;

	setup(100, 100);
	for (unsigned n = 1; n <= 100; n++) {
		caller = enter(n, 132, 1000);
		ck_assert_ptr_nonnull(caller.host);
		fsd_clients_leave(clients, &caller);
	}
	/*
	 * while clients wait for the identity call, none can be evicted: served, but without an
	 * entry
	 */
	caller = enter(101, 65540, 1000);
	ck_assert_ptr_null(caller.host);
	ck_assert(caller.uae);
	while (fsd_work_take(clients, &work, 1000)) {
		done(&work, RXW_CALL_DEAD, 0, 1000);
		asked++;
	}
	ck_assert_uint_eq(asked, 100);
	caller = enter(102, 132, 1001);
	ck_assert_ptr_nonnull(caller.host);
	fsd_clients_leave(clients, &caller);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.hosts, 100);
	/* idle clients are evicted */
	caller = enter(103, 132, 100000);
	fsd_clients_leave(clients, &caller);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_lt(stats.hosts, 100);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(sweep_sees_all_and_expires)
{
	AFSFid fids[16];
	bool seen[200] = {0};
	struct fsd_clients_stats stats;
	size_t cursor = 0;

	setup(10, 1000);
	bring_up(1, 1000);
	for (uint32_t v = 0; v < 200; v++)
		give(1, v, 1000);
	/* One round sees every object, wherever the bounds between two sweeps fall. */
	while (cursor < clients->objects.size) {
		size_t n = fsd_promise_sweep(clients, &cursor, fids, 16, 1000);

		ck_assert_uint_gt(n, 0);
		for (size_t j = 0; j < n; j++)
			seen[fids[j].Vnode] = true;
	}
	for (int i = 0; i < 200; i++)
		ck_assert(seen[i]);
	for (int i = 0; i < 500; i++)
		fsd_promise_sweep(clients, &cursor, fids, 16, 1000 + 14400 + 128 + 181);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.promises, 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* Random use; at the end everything is released to check the counters and lists. */
START_TEST(random_use)
{
	uint64_t state = 0x853c49e6748fea9bull;
	struct fsd_clients_stats stats;
	struct fsd_work work;

	setup(20, 150);
	for (int i = 0; i < 50000; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		unsigned n = 1 + (unsigned)(state >> 8) % 30;
		AFSFid f = fid((uint32_t)(state >> 16) % 60);
		struct fsd_caller caller = enter(n, 132, 1000 + (uint64_t)i / 10);

		switch ((state >> 40) % 8) {
		case 0:
			fsd_promise_break(clients, &f, state & 1 ? caller.host : NULL);
			break;
		case 1:
			fsd_promise_drop(clients, &caller, &f);
			break;
		case 2:
			if ((state >> 50) % 50 == 0)
				fsd_promise_drop_all(clients, &caller);
			break;
		case 3:
			if (fsd_work_take(clients, &work, 1000))
				done(&work, (state >> 44) % 10 ? 0 : RXW_CALL_DEAD, 1,
				     1000 + (uint64_t)i / 10);
			break;
		default:
			fsd_promise_give(clients, &caller, &f, state & 2, 1000 + (uint64_t)i / 10);
		}
		fsd_clients_leave(clients, &caller);
		fsd_clients_stats(clients, &stats);
		ck_assert_uint_le(stats.promises, 150);
		ck_assert_uint_le(stats.hosts, 20);
	}
	for (uint32_t v = 0; v < 60; v++) {
		AFSFid f = fid(v);

		fsd_promise_break(clients, &f, NULL);
		ck_assert(!fsd_promise_held(clients, &f));
	}
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.promises, 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* One work item of this kind. */
static struct fsd_work take(enum fsd_work_kind kind)
{
	struct fsd_work work;

	ck_assert(fsd_work_take(clients, &work, 1000));
	ck_assert_int_eq(work.kind, kind);
	return work;
}

/* The client was reset by one call; resets it by the other. */
static void forget(unsigned code, uint64_t now)
{
	struct fsd_work work = take(FSD_WORK_FORGET);

	done(&work, (int32_t)code, 0, now);
}

static uint32_t peer_of(const struct fsd_work *work)
{
	return ntohl(((const struct sockaddr_in *)&work->peer)->sin_addr.s_addr);
}

START_TEST(older_clients_get_older_calls)
{
	struct fsd_answer answer = {.uuid = {.time_low = 7, .node = {-1}}};
	struct fsd_caller caller;
	struct fsd_work work;

	setup(10, 100);
	/* one that lacks the call for its identity, but has the older one */
	ck_assert_uint_eq(give(1, 2, 1000), 0);
	work = take(FSD_WORK_IDENTIFY);
	done(&work, RXW_RPC_OPCODE, 0, 1000);
	work = take(FSD_WORK_WHO);
	fsd_work_done(clients, &work, &answer, 1000);
	work = take(FSD_WORK_INIT);
	ck_assert(work.identified);
	ck_assert(afs_uuid_same(&work.uuid, &answer.uuid));
	done(&work, 0, 0, 1000);
	forget(0, 1000);
	ck_assert_uint_gt(give(1, 2, 1000), 0);
	/* the error numbers that it knows are unknown */
	caller = enter(1, 132, 1000);
	ck_assert(!caller.uae);
	fsd_clients_leave(clients, &caller);
	/* one that lacks both: reset all the same */
	ck_assert_uint_eq(give(2, 2, 1000), 0);
	work = take(FSD_WORK_IDENTIFY);
	done(&work, RXW_RPC_OPCODE, 0, 1000);
	work = take(FSD_WORK_WHO);
	done(&work, RXW_RPC_OPCODE, 0, 1000);
	work = take(FSD_WORK_INIT);
	ck_assert(!work.identified);
	done(&work, 0, 0, 1000);
	forget((unsigned)RXW_RPC_OPCODE, 1000);
	ck_assert_uint_gt(give(2, 2, 1000), 0);
	/* one that does not answer the second call */
	ck_assert_uint_eq(give(3, 2, 1000), 0);
	work = take(FSD_WORK_IDENTIFY);
	done(&work, RXW_RPC_OPCODE, 0, 1000);
	work = take(FSD_WORK_WHO);
	done(&work, RXW_CALL_DEAD, 0, 1000);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	ck_assert_uint_eq(give(3, 2, 1000), 0);
	fsd_clients_destroy(clients);
}
END_TEST

static void introduce(unsigned n, const struct fsd_answer *answer, uint64_t now)
{
	struct fsd_caller caller = enter(n, 132, now);
	struct fsd_work work;

	fsd_clients_leave(clients, &caller);
	work = take(FSD_WORK_IDENTIFY);
	fsd_work_done(clients, &work, answer, now);
	work = take(FSD_WORK_INIT);
	done(&work, 0, 0, now);
	forget(0, now);
}

START_TEST(idle_clients_probed)
{
	struct fsd_answer answer = {.caps = 1, .uuid = {.time_low = 7}};
	AFSFid f = fid(2), g = fid(4);
	struct fsd_work work;

	setup(10, 100);
	for (unsigned n = 1; n <= 3; n++)
		introduce(n, &answer, 1000);
	ck_assert_uint_gt(give(1, 2, 1000), 0);
	ck_assert_uint_gt(give(2, 4, 1500), 0);
	fsd_clients_check(clients, 1899);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	/* the third holds nothing, the second has called */
	wakes = 0;
	fsd_clients_check(clients, 1900);
	ck_assert_uint_eq(wakes, 1);
	work = take(FSD_WORK_PROBE);
	ck_assert_uint_eq(peer_of(&work), 0x7f000001);
	ck_assert(work.identified && afs_uuid_same(&work.uuid, &answer.uuid));
	ck_assert(!fsd_work_take(clients, &work, 1000));
	done(&work, 0, 0, 1900);
	ck_assert(fsd_promise_held(clients, &f));
	/* the first has answered recently */
	fsd_clients_check(clients, 2400);
	work = take(FSD_WORK_PROBE);
	ck_assert_uint_eq(peer_of(&work), 0x7f000002);
	/*
	 * another machine has its address: its promises are dropped, and the server asks for its
	 * identity
	 */
	ck_assert(fsd_promise_held(clients, &g));
	done(&work, 1, 0, 2400);
	ck_assert(!fsd_promise_held(clients, &g));
	work = take(FSD_WORK_IDENTIFY);
	fsd_work_done(clients, &work, &answer, 2400);
	work = take(FSD_WORK_INIT);
	done(&work, 0, 0, 2400);
	forget(0, 2400);
	/* a pending callback also shows that it is reachable */
	fsd_clients_check(clients, 2800);
	fsd_promise_break(clients, &f, NULL);
	work = take(FSD_WORK_BREAK);
	ck_assert_uint_eq(work.count, 1);
	done(&work, 0, 0, 2800);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	/* no answer: it loses its promises */
	ck_assert_uint_gt(give(1, 2, 3000), 0);
	fsd_clients_check(clients, 3900);
	work = take(FSD_WORK_PROBE);
	done(&work, RXW_CALL_DEAD, 0, 3900);
	ck_assert(!fsd_promise_held(clients, &f));
	ck_assert(!fsd_work_take(clients, &work, 1000));
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(idle_for_hours_is_reset)
{
	AFSFid f = fid(2);
	struct fsd_clients_stats stats;
	struct fsd_work work;

	setup(10, 100);
	bring_up(1, 1000);
	ck_assert_uint_gt(give(1, 2, 1000), 0);
	fsd_clients_check(clients, 1000 + 7200);
	ck_assert(!fsd_promise_held(clients, &f));
	work = take(FSD_WORK_INIT);
	ck_assert(!work.identified);
	done(&work, 0, 0, 8200);
	forget(0, 8200);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.hosts_up, 1);
	ck_assert_uint_eq(stats.promises, 0);
	ck_assert_uint_eq(stats.objects, 0);
	ck_assert_uint_eq(fsd_clients_active(clients, 8200, 900), 0);
	ck_assert_uint_gt(give(1, 2, 8201), 0);
	ck_assert_uint_eq(fsd_clients_active(clients, 8202, 900), 1);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(forgotten_clients_are_not_up)
{
	struct fsd_clients_stats stats;
	struct fsd_caller caller;

	setup(10, 100);
	bring_up(1, 1000);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.hosts_up, 1);
	caller = enter(2, 132, 100000);
	fsd_clients_leave(clients, &caller);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.hosts, 1);
	ck_assert_uint_eq(stats.hosts_up, 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* Dead clients fill the table. Active ones are called first, and do not wait for free workers. */
START_TEST(dead_clients_delay_no_others)
{
	struct fsd_work work[100];
	unsigned taken = 0;

	setup(300, 200);
	for (unsigned n = 1; n <= 100; n++)
		bring_up(n, 1000);
	for (unsigned n = 1; n <= 100; n++)
		for (uint32_t v = 0; v < 2; v++)
			ck_assert_uint_gt(give(n, 1000 * n + 2 * v, 1001), 0);
	/* a full table: each promise to an active client evicts two of a dead one */
	bring_up(200, 1010);
	for (uint32_t v = 0; v < 90; v++)
		ck_assert_uint_gt(give(200, 2 + 2 * v, 1011), 0);
	while (taken < 100 && fsd_work_take(clients, &work[taken], 1000))
		ck_assert_int_eq(work[taken++].kind, FSD_WORK_INIT);
	ck_assert_uint_eq(taken, 32);
	ck_assert_uint_eq(give(201, 2, 1012), 0);
	ck_assert(fsd_work_take(clients, &work[taken], 1000));
	ck_assert_int_eq(work[taken].kind, FSD_WORK_IDENTIFY);
	ck_assert_uint_eq(peer_of(&work[taken]), 0x7f000000 + 201);
	/* and it continues as calls to dead clients fail */
	done(&work[0], RXW_CALL_DEAD, 0, 1013);
	ck_assert(fsd_work_take(clients, &work[0], 1000));
	ck_assert_int_eq(work[0].kind, FSD_WORK_INIT);
	for (unsigned i = 0; i < taken; i++)
		done(&work[i], RXW_CALL_DEAD, 0, 1014);
	done(&work[taken], 0, 1, 1014);
	answer_all(1, 1015);
	ck_assert_uint_gt(give(201, 2, 1016), 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* While promises are short, the server probes clients that have been idle for a minute. */
START_TEST(promise_shortage_probes_idle_clients)
{
	setup(10, 64);
	bring_up(1, 1000);
	bring_up(2, 1000);
	for (uint32_t v = 0; v < 40; v++)
		ck_assert_uint_gt(give(1, 2 + 2 * v, 1000), 0);
	fsd_clients_check(clients, 1060);
	ck_assert_uint_eq(answer_all(0, 1060), 0);
	for (uint32_t v = 0; v < 20; v++)
		ck_assert_uint_gt(give(2, 2 + 2 * v, 1050), 0);
	fsd_clients_check(clients, 1060);
	struct fsd_work work = take(FSD_WORK_PROBE);

	ck_assert_uint_eq(peer_of(&work), 0x7f000001);
	done(&work, RXW_CALL_DEAD, 0, 1064);
	ck_assert(!fsd_work_take(clients, &work, 1000));
	fsd_clients_destroy(clients);
}
END_TEST

static unsigned raised;

static int note_up(void *arg, const struct sockaddr_storage *sa,
		   const struct sockaddr_storage *local)
{
	(void)arg, (void)local;
	raised = ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr);
	return 0;
}

static void recall(void *arg, const struct sockaddr_storage *sa,
		   const struct sockaddr_storage *local, int record)
{
	(void)arg;
	fsd_clients_recall(clients, sa, local, record, 1000);
}

/*
 * State for a restart: the addresses of active clients are in a file, and the server resets them.
 */
START_TEST(active_clients_survive_restart)
{
	char *folder = test_folder(), path[4200], message[FSD_MESSAGE_MAX];
	struct fsd_remember *remember;
	struct sockaddr_storage sa, own = peer(99);
	uint32_t date = 0;
	bool damaged;

	snprintf(path, sizeof(path), "%s/clients", folder);
	setup(10, 100);
	clients->options.keep = note_up;
	bring_up(7, 1000);
	ck_assert_uint_eq(raised, 0);
	ck_assert_uint_gt(give(7, 2, 1000), 0);
	ck_assert_uint_eq(raised, 0x7f000007);
	remember = fsd_remember_open(path, 4, recall, NULL, &damaged, message);
	ck_assert_ptr_nonnull(remember);
	for (unsigned n = 1; n <= 5; n++) { /* the fifth replaces the first */
		sa = peer(n);
		ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, n == 5), (n - 1) % 4);
	}
	date = fsd_remember_date(remember);
	ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, true), 1); /* in place of the second */
	ck_assert_int_eq(fsd_remember_add(NULL, &sa, &own, true), -1);
	fsd_remember_close(remember);
	ck_assert_uint_eq(answer_all(1, 1000), 0);
	for (int i = 0; i < 2; i++) {
		unsigned seen = 0;

		fsd_clients_destroy(clients);
		setup(10, 100);
		remember = fsd_remember_open(path, 4, recall, NULL, &damaged, message);
		ck_assert_ptr_nonnull(remember);
		for (int n = 0; n < 3; n++) {
			struct fsd_work work = take(FSD_WORK_IDENTIFY);

			seen |= 1u << (peer_of(&work) & 0xff);
			/* Called from the address that it called before. */
			ck_assert_uint_eq(((struct sockaddr_in *)&work.local)->sin_addr.s_addr,
					  ((struct sockaddr_in *)&own)->sin_addr.s_addr);
			done(&work, 0, 1, 1000);
		}
		ck_assert_uint_eq(answer_all(0, 1000), 2 * 3);
		ck_assert(!fsd_work_take(clients, &(struct fsd_work){0}, 1000));
		ck_assert(!damaged);
		ck_assert_uint_eq(seen, 1u << 3 | 1u << 4 | 1u << 5);
		/* they get promises at once */
		ck_assert_uint_gt(give(3, 2, 1001), 0);
		ck_assert_uint_gt(fsd_remember_date(remember), date);
		date = fsd_remember_date(remember);
		fsd_remember_close(remember);
	}
	/* Garbage in the file yields no addresses. */
	tree_file(folder, "clients", "\1\2\3 this is no file of addresses, and it ends oddly", 50,
		  0600);
	remember = fsd_remember_open(path, 4, recall, NULL, &damaged, message);
	ck_assert_ptr_nonnull(remember);
	ck_assert(damaged);
	ck_assert(!fsd_work_take(clients, &(struct fsd_work){0}, 1000));
	/* A place that is free again is taken first. */
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, false), i);
	fsd_remember_drop(remember, 2);
	ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, false), 2);
	fsd_remember_close(remember);
	ck_assert_ptr_null(fsd_remember_open("/proc/none/clients", 4, recall, NULL, NULL, message));
	ck_assert_ptr_nonnull(strstr(message, "/proc/none/clients"));
	fsd_clients_destroy(clients);
	tree_remove(folder);
}
END_TEST

#define RECORD 20u /* bytes, of which the file has one before those of clients */

/* The records of clients in the file. */
static void read_records(const char *path, uint8_t *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, bytes, size, RECORD), (ssize_t)size);
	close(fd);
}

/*
 * On a full disk the file is written in place. A crash meanwhile may leave any part of it as it was: no record may have another
 * place than before.
 */
START_TEST(full_disk_moves_no_address)
{
	char *folder = test_folder(), path[4200], new_path[4300], message[FSD_MESSAGE_MAX];
	uint8_t before[8 * RECORD], after[8 * RECORD];
	struct sockaddr_storage sa, own = peer(99);
	struct fsd_remember *remember;
	bool damaged;

	snprintf(path, sizeof(path), "%s/clients", folder);
	snprintf(new_path, sizeof(new_path), "%s.new", path);
	setup(10, 100);
	remember = fsd_remember_open(path, 8, recall, NULL, &damaged, message);
	ck_assert_ptr_nonnull(remember);
	for (unsigned n = 0; n < 6; n++) {
		sa = peer(60 - n); /* not in the order of addresses */
		ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, true), (int)n);
	}
	fsd_remember_drop(remember, 2);
	fsd_remember_close(remember);
	read_records(path, before, sizeof(before));
	/* A new file cannot be written. */
	ck_assert_int_eq(symlink("/dev/full", new_path), 0);
	remember = fsd_remember_open(path, 8, recall, NULL, &damaged, message);
	ck_assert_msg(remember != NULL, "%s", message);
	ck_assert(!damaged);
	read_records(path, after, sizeof(after));
	ck_assert_mem_eq(before, after, sizeof(before));
	/* The place that is free, and the last ones. */
	ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, true), 2);
	ck_assert_int_eq(fsd_remember_add(remember, &sa, &own, true), 6);
	fsd_remember_close(remember);
	fsd_clients_destroy(clients);
	tree_remove(folder);
}
END_TEST

static size_t longest_chain(bool six, size_t hosts)
{
	size_t longest = 0;

	setup(hosts, 100);
	for (unsigned n = 0; n < hosts; n++) {
		struct sockaddr_storage sa = peer(n);
		struct fsd_caller caller;

		if (six) {
			struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;

			/* Addresses of one network, chosen to collide under a simple sum. */
			memset(&sa, 0, sizeof(sa));
			in6->sin6_family = AF_INET6;
			in6->sin6_port = htons((uint16_t)n);
			in6->sin6_addr.s6_addr[0] = 0x20;
		}
		fsd_clients_enter(clients, &sa, NULL, 132, 1000, &caller);
		fsd_clients_leave(clients, &caller);
	}
	for (size_t i = 0; i < clients->hosts.size; i++) {
		size_t length = 0;

		for (const struct fsd_host *h = *htable_chain(&clients->hosts, i); h; h = h->chain)
			length++;
		longest = length > longest ? length : longest;
	}
	fsd_clients_destroy(clients);
	return longest;
}

/* An attacker cannot predict the hash slot of an address, and tables use different keys. */
START_TEST(hash_slots_are_secret)
{
	struct fsd_host *first[2];
	unsigned same = 0;

	ck_assert_uint_lt(longest_chain(false, 4096), 20);
	ck_assert_uint_lt(longest_chain(true, 4096), 20);
	for (unsigned n = 0; n < 64; n++) {
		size_t chain[2] = {0};

		for (int k = 0; k < 2; k++) {
			struct sockaddr_storage sa = peer(n);
			struct fsd_caller caller;

			setup(1024, 100);
			fsd_clients_enter(clients, &sa, NULL, 132, 1000, &caller);
			first[k] = caller.host;
			while (*htable_chain(&clients->hosts, chain[k]) != first[k])
				chain[k]++;
			fsd_clients_leave(clients, &caller);
			fsd_clients_destroy(clients);
		}
		same += chain[0] == chain[1];
	}
	ck_assert_uint_lt(same, 10);
}
END_TEST

/* A client at a port of an address that is not one of this machine. */
static struct fsd_caller enter_at(unsigned address, uint16_t port, uint64_t now)
{
	struct sockaddr_storage sa = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	struct fsd_caller caller;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0xc0000200u + address);
	in->sin_port = htons(port);
	fsd_clients_enter(clients, &sa, NULL, 132, now, &caller);
	return caller;
}

static uint16_t port_of(const struct fsd_work *work)
{
	return ntohs(((const struct sockaddr_in *)&work->peer)->sin_port);
}

#define PORTS 400

/* Silent clients at the ports of one address: that of another one is called without a wait for them. */
START_TEST(silent_ports_delay_no_others)
{
	struct fsd_work work[IN_FLIGHT_MAX];
	unsigned taken = 0;
	struct fsd_caller caller;

	setup(10000, 100);
	for (uint16_t port = 1; port <= PORTS; port++) {
		caller = enter_at(1, port, 1000);
		fsd_clients_leave(clients, &caller);
	}
	/* They have half of the calls at most. */
	while (taken < IN_FLIGHT_MAX && fsd_work_take(clients, &work[taken], 1000))
		taken++;
	ck_assert_uint_eq(taken, IN_FLIGHT_MAX / 2);
	/* There is a place in the queue for a client of another address, and it is called at once. */
	caller = enter_at(2, 5000, 1000);
	fsd_clients_leave(clients, &caller);
	ck_assert(fsd_work_take(clients, &work[taken], 1000));
	ck_assert_uint_eq(port_of(&work[taken]), 5000);
	done(&work[taken], 0, 1, 1000);
	ck_assert(fsd_work_take(clients, &work[taken], 1000));
	ck_assert_uint_eq(port_of(&work[taken]), 5000);
	done(&work[taken], 0, 1, 1000);
	while (taken--)
		done(&work[taken], RXW_CALL_DEAD, 0, 1004);
	/* Now the others go on. */
	ck_assert(fsd_work_take(clients, &work[0], 1000));
	done(&work[0], RXW_CALL_DEAD, 0, 1004);
	fsd_clients_destroy(clients);
}
END_TEST

/* One address gets half of the entries; then its own clients make room for each other. */
START_TEST(entries_of_one_address)
{
	struct fsd_clients_stats stats;
	struct fsd_caller first[50], caller;

	setup(100, 100);
	for (uint16_t port = 1; port <= 50; port++) {
		first[port - 1] = enter_at(1, port, 1000);
		ck_assert_ptr_nonnull(first[port - 1].host);
	}
	caller = enter_at(1, 51, 1000);
	ck_assert_ptr_null(caller.host);
	for (unsigned address = 2; address < 20; address++) {
		caller = enter_at(address, 1, 1001);
		ck_assert_ptr_nonnull(caller.host);
		fsd_clients_leave(clients, &caller);
	}
	for (unsigned i = 0; i < 50; i++)
		fsd_clients_leave(clients, &first[i]);
	answer_all(1, 1002);
	caller = enter_at(1, 51, 1003);
	ck_assert_ptr_nonnull(caller.host);
	fsd_clients_leave(clients, &caller);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.hosts, 50 + 18);
	fsd_clients_destroy(clients);
}
END_TEST

/* However often somebody asks, all clients are looked at once a second. */
START_TEST(active_clients_are_counted_once_a_second)
{
	struct fsd_caller caller;

	setup(100, 100);
	bring_up(1, 1000);
	ck_assert_uint_eq(fsd_clients_active(clients, 1000, 900), 1);
	caller = enter(2, 132, 1000);
	fsd_clients_leave(clients, &caller);
	ck_assert_uint_eq(fsd_clients_active(clients, 1000, 900), 1);
	ck_assert_uint_eq(fsd_clients_active(clients, 1001, 900), 2);
	fsd_clients_destroy(clients);
}
END_TEST

TEST_MAIN("clients", identity_call_before_promises, silent_clients_not_called_again_soon,
	  error_numbers_by_client, durations, breaks_reach_holders, one_call_for_many_breaks,
	  very_many_breaks, failed_break_drops_all_promises, promises_given_up, very_many_given_up,
	  full_table_evicts_idle_clients, full_table_keeps_who_called, host_table_bounded,
	  sweep_sees_all_and_expires, random_use, older_clients_get_older_calls,
	  idle_clients_probed, idle_for_hours_is_reset, forgotten_clients_are_not_up,
	  dead_clients_delay_no_others, promise_shortage_probes_idle_clients,
	  active_clients_survive_restart, full_disk_moves_no_address, hash_slots_are_secret,
	  silent_ports_delay_no_others, entries_of_one_address,
	  active_clients_are_counted_once_a_second)
