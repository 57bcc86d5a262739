/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of breaks.c: changes that wait for clients, clients that do not answer, several volumes. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rxwire/error.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/clients.h"
#include "tests/main.h"
#include "tests/tools/testing.h"

#define VOLUMES 120

static struct fsd_clients *clients;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static unsigned wakes; /* lock */

static void wake(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	wakes++;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
}

/* Volumes 1, 2, … */
static size_t volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	size_t n = 0;

	(void)arg;
	while (n < max && after < VOLUMES)
		ids[n++] = ++after;
	return n;
}

static void setup(void)
{
	const struct fsd_clients_options options = {.volumes = volumes,
						    .strict = true,
						    .hosts_max = 1000,
						    .promises_max = 100000,
						    .wake = wake};

	clients = fsd_clients_create(&options);
	ck_assert_ptr_nonnull(clients);
}

#define NEIGHBOUR 1000u /* from this number on, clients of one address */

static struct sockaddr_storage peer(unsigned n)
{
	struct sockaddr_storage sa = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(n < NEIGHBOUR ? 0x7f000000u + n : 0x0a010203u);
	in->sin_port = htons(n < NEIGHBOUR ? 7001 : (uint16_t)n);
	return sa;
}

static struct fsd_caller enter(unsigned n)
{
	struct sockaddr_storage sa = peer(n);
	struct fsd_caller caller;

	fsd_clients_enter(clients, &sa, NULL, 132, fsd_now(), &caller);
	return caller;
}

static void finish(const struct fsd_work *w, int32_t code)
{
	const struct fsd_answer answer = {.code = code};

	fsd_work_done(clients, w, &answer, fsd_now());
}

static void answer_all(void)
{
	struct fsd_work w;

	while (fsd_work_take(clients, &w, fsd_now()))
		finish(&w, 0);
}

static void bring_up(unsigned n)
{
	struct fsd_caller caller = enter(n);

	fsd_clients_leave(clients, &caller);
	answer_all();
}

static uint32_t give(unsigned n, AFSFid fid)
{
	struct fsd_caller caller = enter(n);
	uint32_t seconds = fsd_promise_give(clients, &caller, &fid, false, fsd_now());

	fsd_clients_leave(clients, &caller);
	return seconds;
}

/* Waits for work of this kind. */
static struct fsd_work take(enum fsd_work_kind kind)
{
	struct fsd_work w;

	pthread_mutex_lock(&lock);
	for (;;) {
		unsigned seen = wakes;

		pthread_mutex_unlock(&lock);
		if (fsd_work_take(clients, &w, fsd_now()))
			break;
		pthread_mutex_lock(&lock);
		while (wakes == seen)
			pthread_cond_wait(&work, &lock);
	}
	ck_assert_int_eq(w.kind, kind);
	return w;
}

/* The host is told to forget each volume. */
static void forget_volumes(void)
{
	unsigned told = 0;

	while (told < VOLUMES) {
		struct fsd_work w = take(FSD_WORK_FORGET);

		ck_assert_uint_eq(w.fids[0].Volume, told + 1);
		ck_assert_uint_eq(w.fids[0].Vnode, 0);
		told += w.count;
		finish(&w, 0);
	}
	ck_assert_uint_eq(told, VOLUMES);
}

/* A change on a thread of its own. */
struct change {
	struct fsd_break what;
	unsigned wait_ms, except; /* except: number of a client, or 0 */
	pthread_t thread;
	_Atomic bool ended;
	unsigned given_up;
};

static void *change_main(void *arg)
{
	struct change *c = arg;
	struct fsd_caller caller = {0};

	if (c->except)
		caller = enter(c->except);
	c->given_up = fsd_promise_break_all(clients, &c->what, 1, caller.host, c->wait_ms);
	c->ended = true;
	fsd_clients_leave(clients, &caller);
	return NULL;
}

static void begin(struct change *c)
{
	ck_assert_int_eq(pthread_create(&c->thread, NULL, change_main, c), 0);
}

static unsigned end(struct change *c)
{
	pthread_join(c->thread, NULL);
	return c->given_up;
}

static const AFSFid f = {1, 2, 3}, g = {1, 4, 5}, elsewhere = {2, 2, 3};

START_TEST(change_waits_for_holders)
{
	struct change c = {.what.fid = f, .wait_ms = 60000, .except = 1};
	struct fsd_work first, second;

	setup();
	for (unsigned n = 1; n <= 4; n++)
		bring_up(n);
	for (unsigned n = 1; n <= 3; n++)
		ck_assert_uint_gt(give(n, f), 0);
	ck_assert_uint_gt(give(4, elsewhere), 0);
	begin(&c);
	first = take(FSD_WORK_BREAK);
	second = take(FSD_WORK_BREAK);
	ck_assert(first.fids[0].Volume == 1 && first.fids[0].Vnode == 2);
	finish(&first, 0);
	ck_assert(!c.ended);
	finish(&second, 0);
	ck_assert_uint_eq(end(&c), 0);
	/* the client that made the change keeps its promise, and so do those of another object */
	ck_assert(fsd_promise_held(clients, &f));
	ck_assert(fsd_promise_held(clients, &elsewhere));
	/* nobody else holds one: nothing to wait for */
	begin(&c);
	ck_assert_uint_eq(end(&c), 0);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(gone_objects_need_no_message)
{
	const struct fsd_break what[] = {{.fid = f, .gone = true}, {.fid = g, .for_all = true}};
	struct change c = {.what = what[1], .wait_ms = 60000, .except = 1};
	struct fsd_work w;

	setup();
	bring_up(1);
	ck_assert_uint_gt(give(1, f), 0);
	ck_assert_uint_gt(give(1, g), 0);
	ck_assert_uint_eq(fsd_promise_break_all(clients, what, 1, NULL, 60000), 0);
	ck_assert(!fsd_promise_held(clients, &f));
	ck_assert(!fsd_work_take(clients, &w, fsd_now()));
	/* including the client that made the change */
	begin(&c);
	w = take(FSD_WORK_BREAK);
	ck_assert(w.count == 1 && w.fids[0].Vnode == 4);
	finish(&w, 0);
	ck_assert_uint_eq(end(&c), 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* It is told of each promise before it is served again. */
START_TEST(silent_client_is_given_up)
{
	struct change c = {.what.fid = f, .wait_ms = 50};
	struct fsd_clients_stats stats;
	struct fsd_caller caller;
	struct fsd_work w;

	setup();
	bring_up(1);
	ck_assert_uint_gt(give(1, f), 0);
	ck_assert_uint_gt(give(1, g), 0);
	begin(&c);
	w = take(FSD_WORK_BREAK);
	ck_assert_uint_eq(end(&c), 1);
	ck_assert(!fsd_promise_held(clients, &g));
	caller = enter(1);
	ck_assert_uint_eq(fsd_promise_give(clients, &caller, &f, false, fsd_now()), 0);
	ck_assert(!fsd_clients_ready(clients, &caller, fsd_now(), 20));
	/* a late answer to the break does not help, because of its other promise */
	finish(&w, 0);
	ck_assert(!fsd_clients_ready(clients, &caller, fsd_now(), 20));
	w = take(FSD_WORK_INIT);
	finish(&w, 0);
	forget_volumes();
	ck_assert(!fsd_clients_ready(clients, &caller, fsd_now(), 20));
	w = take(FSD_WORK_BREAK);
	ck_assert(w.count == 1 && w.fids[0].Vnode == g.Vnode);
	finish(&w, 0);
	ck_assert(fsd_clients_ready(clients, &caller, fsd_now(), 20));
	ck_assert_uint_gt(fsd_promise_give(clients, &caller, &f, false, fsd_now()), 0);
	fsd_clients_leave(clients, &caller);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.given_up, 1);
	ck_assert_uint_eq(stats.turned_away, 3);
	fsd_clients_destroy(clients);
}
END_TEST

static void *call_main(void *arg)
{
	struct fsd_caller caller = enter(1);

	*(bool *)arg = fsd_clients_ready(clients, &caller, fsd_now(), 60000);
	fsd_clients_leave(clients, &caller);
	return NULL;
}

/* A client whose break failed: its next call waits until it was told, in the order of the steps. */
START_TEST(next_call_waits_until_told)
{
	struct change c = {.what.fid = f, .wait_ms = 60000};
	pthread_t thread;
	struct fsd_work w;
	bool ready = false;

	setup();
	bring_up(1);
	ck_assert_uint_gt(give(1, f), 0);
	ck_assert_uint_gt(give(1, g), 0);
	begin(&c);
	w = take(FSD_WORK_BREAK);
	finish(&w, RXW_CALL_DEAD);
	ck_assert_uint_eq(end(&c), 0); /* it has failed, which is known */
	ck_assert_int_eq(pthread_create(&thread, NULL, call_main, &ready), 0);
	w = take(FSD_WORK_INIT);
	finish(&w, 0);
	forget_volumes();
	/* the break that failed, and the promise that was left */
	w = take(FSD_WORK_BREAK);
	ck_assert_uint_eq(w.count, 2);
	ck_assert(w.fids[0].Vnode == f.Vnode && w.fids[1].Vnode == g.Vnode);
	finish(&w, 0);
	pthread_join(thread, NULL);
	ck_assert(ready);
	ck_assert(!fsd_work_take(clients, &w, fsd_now()));
	fsd_clients_destroy(clients);
}
END_TEST

/* It cannot be told: it is turned away, without a try at each call. */
START_TEST(unreachable_client_is_turned_away)
{
	struct change c = {.what.fid = f, .wait_ms = 60000};
	pthread_t thread;
	struct fsd_caller caller;
	struct fsd_work w;
	bool ready = true;

	setup();
	bring_up(1);
	ck_assert_uint_gt(give(1, f), 0);
	begin(&c);
	w = take(FSD_WORK_BREAK);
	finish(&w, RXW_CALL_DEAD);
	end(&c);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_main, &ready), 0);
	w = take(FSD_WORK_INIT);
	finish(&w, RXW_CALL_DEAD);
	pthread_join(thread, NULL);
	ck_assert(!ready);
	caller = enter(1);
	ck_assert(!fsd_clients_ready(clients, &caller, fsd_now(), 60000));
	ck_assert(!fsd_work_take(clients, &w, fsd_now()));
	/* once its promises would have ended it is served, without new ones */
	ck_assert(fsd_clients_ready(clients, &caller, fsd_now() + 5 * 3600, 60000));
	/* the same if it says that it forgets them */
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

START_TEST(one_promise_for_a_volume)
{
	const AFSFid whole = {7, 0, 0}, inside = {7, 2, 3};
	struct change c = {.what.fid = whole, .wait_ms = 60000};
	struct fsd_work w;

	setup();
	bring_up(1);
	bring_up(2);
	ck_assert_uint_ge(give(1, whole), 7200 - 128);
	ck_assert_uint_le(give(1, whole), 7200 + 128);
	ck_assert_uint_gt(give(2, inside), 0);
	ck_assert_uint_gt(give(2, f), 0);
	begin(&c);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_storage first = peer(1);

		w = take(FSD_WORK_BREAK);
		ck_assert_uint_eq(w.count, 1);
		ck_assert(fsd_same_fid(&w.fids[0],
				       memcmp(&w.peer, &first, sizeof(first)) ? &inside : &whole));
		finish(&w, 0);
	}
	ck_assert_uint_eq(end(&c), 0);
	ck_assert(!fsd_promise_held(clients, &whole) && !fsd_promise_held(clients, &inside));
	ck_assert(fsd_promise_held(clients, &f));
	fsd_clients_destroy(clients);
}
END_TEST

/* Very many breaks: a change waits for its own, and is told by itself. */
START_TEST(break_behind_many_is_awaited)
{
	struct change c = {.what.fid = {3, 9999, 9}, .wait_ms = 60000};
	struct fsd_work w;
	unsigned told = 0;

	setup();
	bring_up(1);
	for (uint32_t v = 2; v < 1002; v++)
		ck_assert_uint_gt(give(1, (AFSFid){3, v, 1}), 0);
	ck_assert_uint_gt(give(1, c.what.fid), 0);
	for (uint32_t v = 2; v < 702; v++)
		fsd_promise_break(clients, &(AFSFid){3, v, 1}, NULL);
	begin(&c);
	while (fsd_promise_held(clients, &c.what.fid))
		usleep(1000);
	for (uint32_t v = 702; v < 1002; v++)
		fsd_promise_break(clients, &(AFSFid){3, v, 1}, NULL);
	while (told < 1001) {
		ck_assert(told > 700 || !c.ended);
		w = take(FSD_WORK_BREAK);
		for (uint32_t i = 0; i < w.count; i++, told++)
			ck_assert_uint_eq(w.fids[i].Vnode, told < 700	 ? told + 2
							   : told == 700 ? 9999
									 : told + 1);
		finish(&w, 0);
		if (told > 700 && told <= 750)
			ck_assert_uint_eq(end(&c), 0);
	}
	ck_assert(!fsd_work_take(clients, &w, fsd_now()));
	fsd_clients_destroy(clients);
}
END_TEST

/*
 * Many changes wait for a client that does not answer. Not more than WAITING_MAX threads do; for the
 * others it is given up at once.
 */
START_TEST(few_threads_wait)
{
	static struct change changes[WAITING_MAX + 1];
	uint64_t begun;

	setup();
	bring_up(1);
	for (uint32_t i = 0; i <= WAITING_MAX; i++) {
		changes[i] = (struct change){.what.fid = {1, 2 + 2 * i, 1}, .wait_ms = 600000};
		ck_assert_uint_gt(give(1, changes[i].what.fid), 0);
	}
	begun = monotonic_ns();
	for (uint32_t i = 0; i <= WAITING_MAX; i++)
		begin(&changes[i]);
	/* The last of them gives up for all. */
	for (uint32_t i = 0; i <= WAITING_MAX; i++)
		end(&changes[i]);
	ck_assert_uint_lt(monotonic_ns() - begun, 60 * (uint64_t)NS_PER_S);
	fsd_clients_destroy(clients);
}
END_TEST

struct settling {
	AFSFid fids[2];
	_Atomic int settled; /* -1: it waits */
	pthread_t thread;
};

static void *settle_main(void *arg)
{
	struct settling *s = arg;
	uint64_t until = 0;

	s->settled = fsd_change_settled(clients, s->fids, 2, 60000, &until);
	return NULL;
}

/* Calls that wait for changes of others. */
static void await_settling(unsigned count)
{
	struct fsd_clients_stats stats;

	do {
		fsd_clients_stats(clients, &stats);
	} while (stats.settling != count && usleep(1000) == 0);
}

/* A call that may have seen a change waits for its end, but not for changes that begin later. */
START_TEST(calls_wait_for_changes)
{
	const struct fsd_break what[] = {{.fid = f}, {.fid = {9, 0, 0}}, {.fid = g, .gone = true}};
	struct settling s = {.fids = {{5, 5, 5}, g}, .settled = -1};
	struct fsd_change first = {0}, second = {0};
	uint64_t until = 0;

	setup();
	ck_assert(fsd_change_settled(clients, s.fids, 2, 0, &until));
	fsd_change_begin(clients, &first, what, 3);
	ck_assert_uint_eq(first.count, 2);
	ck_assert(fsd_change_settled(clients, &elsewhere, 1, 0, &until));
	ck_assert(fsd_change_settled(clients, &what[1].fid, 1, 0, &until));
	ck_assert(!fsd_change_settled(clients, &f, 1, 10, &until));
	ck_assert_uint_gt(until, 0);
	ck_assert(!fsd_change_settled(clients, &f, 1, 60000, &until)); /* it waits no more */
	ck_assert_int_eq(pthread_create(&s.thread, NULL, settle_main, &s), 0);
	await_settling(1);
	fsd_change_begin(clients, &second, what, 3);
	ck_assert_int_eq(s.settled, -1);
	fsd_change_end(clients, &first);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(s.settled, 1);
	fsd_change_end(clients, &first);
	until = 0;
	ck_assert(!fsd_change_settled(clients, &g, 1, 10, &until));
	fsd_change_end(clients, &second);
	ck_assert(fsd_change_settled(clients, &g, 1, 10, &until));
	fsd_clients_destroy(clients);
}
END_TEST

/* Few threads wait for changes of others as long as they want. */
START_TEST(few_threads_wait_for_changes)
{
	static struct settling s[SETTLING_MAX];
	const struct fsd_break what = {.fid = f};
	struct fsd_change change = {0};
	uint64_t until = 0, begun;

	setup();
	fsd_change_begin(clients, &change, &what, 1);
	for (unsigned i = 0; i < SETTLING_MAX; i++) {
		s[i] = (struct settling){.fids = {f, g}, .settled = -1};
		ck_assert_int_eq(pthread_create(&s[i].thread, NULL, settle_main, &s[i]), 0);
	}
	await_settling(SETTLING_MAX);
	begun = monotonic_ns();
	ck_assert(!fsd_change_settled(clients, &f, 1, 600000, &until));
	ck_assert_uint_lt(monotonic_ns() - begun, 60 * (uint64_t)NS_PER_S);
	fsd_change_end(clients, &change);
	for (unsigned i = 0; i < SETTLING_MAX; i++) {
		pthread_join(s[i].thread, NULL);
		ck_assert_int_eq(s[i].settled, 1);
	}
	fsd_clients_destroy(clients);
}
END_TEST

/* A second change waits for the client that is being told of the first one. */
START_TEST(second_change_waits_for_the_first)
{
	struct change one = {.what.fid = f, .wait_ms = 60000, .except = 2},
		      two = {.what.fid = f, .wait_ms = 60000, .except = 3};
	struct fsd_work w;

	setup();
	for (unsigned n = 1; n <= 3; n++)
		bring_up(n);
	ck_assert_uint_gt(give(1, f), 0);
	begin(&one);
	w = take(FSD_WORK_BREAK);
	begin(&two);
	do {
		pthread_mutex_lock(&clients->lock);
		two.given_up = clients->waiting;
		pthread_mutex_unlock(&clients->lock);
	} while (two.given_up < 2 && usleep(1000) == 0);
	ck_assert(!one.ended && !two.ended);
	finish(&w, 0);
	ck_assert_uint_eq(end(&one), 0);
	ck_assert_uint_eq(end(&two), 0);
	ck_assert(!fsd_work_take(clients, &w, fsd_now()));
	fsd_clients_destroy(clients);
}
END_TEST

/* Another call of the same client on the same object. */
static struct fsd_given give_call(const struct fsd_caller *caller, AFSFid fid)
{
	struct fsd_given given = {.fid = fid};

	fsd_promise_give_all(clients, caller, &given, 1, false, fsd_now());
	ck_assert_uint_gt(given.seconds, 0);
	return given;
}

/* A call that fails takes back its promise, but not one that the client has from elsewhere. */
START_TEST(failed_call_keeps_other_promises)
{
	struct fsd_given first, second;
	struct fsd_caller caller;

	setup();
	bring_up(1);
	caller = enter(1);
	first = give_call(&caller, f);
	fsd_promise_undo(clients, &caller, &first);
	ck_assert(!fsd_promise_held(clients, &f));
	first = give_call(&caller, f);
	second = give_call(&caller, f);
	fsd_promise_undo(clients, &caller, &second);
	ck_assert(fsd_promise_held(clients, &f));
	second = give_call(&caller, f);
	fsd_promise_undo(clients, &caller, &second);
	ck_assert(fsd_promise_held(clients, &f));
	fsd_promise_undo(clients, &caller, &first);
	ck_assert(!fsd_promise_held(clients, &f));
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

/* The promise of a long call is broken, and a shorter call is given the next one, before the long one fails. */
START_TEST(failed_call_keeps_a_later_promise)
{
	struct change c = {.what.fid = f, .wait_ms = 60000};
	struct fsd_given broken, later;
	struct fsd_caller caller;
	struct fsd_work w;

	setup();
	bring_up(1);
	caller = enter(1);
	broken = give_call(&caller, f);
	begin(&c);
	w = take(FSD_WORK_BREAK);
	finish(&w, 0);
	ck_assert_uint_eq(end(&c), 0);
	later = give_call(&caller, f);
	fsd_promise_undo(clients, &caller, &broken);
	ck_assert(fsd_promise_held(clients, &f));
	fsd_promise_undo(clients, &caller, &later);
	ck_assert(!fsd_promise_held(clients, &f));
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

/* Each object of a bulk call has its own promise, and one that the call skips has none. */
START_TEST(many_promises_at_once)
{
	struct fsd_given given[3] = {{.fid = f}, {.seconds = 7}, {.fid = g}};
	struct fsd_caller caller;

	setup();
	bring_up(1);
	caller = enter(1);
	fsd_promise_give_all(clients, &caller, given, 3, true, fsd_now());
	ck_assert_uint_gt(given[0].seconds, 0);
	ck_assert_uint_eq(given[1].seconds, 0);
	ck_assert_uint_eq(given[0].seconds, given[2].seconds);
	ck_assert(fsd_promise_held(clients, &f) && fsd_promise_held(clients, &g));
	fsd_promise_undo(clients, &caller, &given[0]);
	ck_assert(!fsd_promise_held(clients, &f) && fsd_promise_held(clients, &g));
	fsd_clients_leave(clients, &caller);
	fsd_clients_destroy(clients);
}
END_TEST

/* Promises that were broken do not make the next one shorter, before and after their holders are told. */
START_TEST(broken_promises_do_not_count)
{
	setup();
	for (unsigned n = 1; n <= 20; n++)
		bring_up(n);
	for (unsigned n = 1; n <= 18; n++)
		ck_assert_uint_gt(give(n, f), 0);
	ck_assert_uint_lt(give(18, f), 3600);
	fsd_promise_break(clients, &f, NULL);
	ck_assert(!fsd_promise_held(clients, &f));
	ck_assert_uint_gt(give(19, f), 3600);
	ck_assert(fsd_promise_held(clients, &f));
	answer_all();
	ck_assert(fsd_promise_held(clients, &f));
	ck_assert_uint_gt(give(20, f), 3600);
	fsd_clients_destroy(clients);
}
END_TEST

/* How often calls that wait for changes of others were woken. */
static _Atomic unsigned wakings;

int __real_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	wakings += clients && cond == &clients->opened;
	return __real_pthread_cond_broadcast(cond);
}

static void *await_change(void *settled)
{
	uint64_t until = 0;

	*(bool *)settled = fsd_change_settled(clients, &f, 1, 60000, &until);
	return NULL;
}

static bool is_settling(void)
{
	struct fsd_clients_stats stats;

	fsd_clients_stats(clients, &stats);
	return stats.settling > 0;
}

/* A call that waits for a change is not woken by the ends of others, of which there may be thousands. */
START_TEST(other_changes_wake_nobody)
{
	const struct fsd_break of_f = {.fid = f}, of_g = {.fid = g};
	struct fsd_change first = {0}, other;
	bool settled = false;
	pthread_t thread;

	setup();
	fsd_change_begin(clients, &first, &of_f, 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, await_change, &settled), 0);
	while (!is_settling())
		usleep(1000);
	wakings = 0;
	for (int i = 0; i < 10; i++) {
		other = (struct fsd_change){0};
		fsd_change_begin(clients, &other, &of_g, 1);
		fsd_change_end(clients, &other);
	}
	ck_assert_uint_eq(wakings, 0);
	fsd_change_end(clients, &first);
	ck_assert_uint_eq(wakings, 1);
	pthread_join(thread, NULL);
	ck_assert(settled);
	fsd_clients_destroy(clients);
}
END_TEST

/* The change of an object, for which the answer of client 1 is awaited that comes after some seconds. */
static void change_slowly(const AFSFid *fid, unsigned seconds)
{
	const struct fsd_break what = {.fid = *fid};
	const struct fsd_answer well = {0};
	struct fsd_breaking *breaking = fsd_promise_break_begin(clients, &what, 1, NULL);
	struct fsd_work w = take(FSD_WORK_BREAK);

	ck_assert_ptr_nonnull(breaking);
	fsd_work_done(clients, &w, &well, fsd_now() + seconds);
	ck_assert_uint_eq(fsd_promise_break_end(clients, breaking, 0), 0);
}

/* A client that lets changes wait again and again gets no promises for a while. Others do. */
START_TEST(slow_client_gets_no_promises)
{
	setup();
	bring_up(1);
	bring_up(2);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_gt(give(1, f), 0);
		change_slowly(&f, 5);
	}
	ck_assert_uint_eq(give(1, f), 0);
	ck_assert_uint_gt(give(2, f), 0);
	/* Answers that come at once are no reason, however many. */
	for (int i = 0; i < 20; i++) {
		ck_assert_uint_gt(give(2, f), 0);
		change_slowly(&f, 0);
	}
	ck_assert_uint_gt(give(2, f), 0);
	fsd_clients_destroy(clients);
}
END_TEST

/* Clients of one address let changes wait in turn: the address gets no promises for a while. */
START_TEST(slow_address_gets_no_promises)
{
	const struct fsd_break what = {.fid = f};
	const struct fsd_answer well = {0};
	struct fsd_breaking *breaking;
	struct fsd_work w[6];

	setup();
	bring_up(1);
	for (unsigned i = 0; i < 6; i++)
		bring_up(NEIGHBOUR + i);
	/* All at once count as one. */
	for (unsigned i = 0; i < 6; i++)
		ck_assert_uint_gt(give(NEIGHBOUR + i, f), 0);
	breaking = fsd_promise_break_begin(clients, &what, 1, NULL);
	for (unsigned i = 0; i < 6; i++)
		w[i] = take(FSD_WORK_BREAK);
	for (unsigned i = 0; i < 6; i++)
		fsd_work_done(clients, &w[i], &well, w[i].begun + 5);
	ck_assert_uint_eq(fsd_promise_break_end(clients, breaking, 0), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_gt(give(NEIGHBOUR + i, f), 0);
		breaking = fsd_promise_break_begin(clients, &what, 1, NULL);
		w[0] = take(FSD_WORK_BREAK);
		w[0].begun += 10 * (i + 1);
		fsd_work_done(clients, &w[0], &well, w[0].begun + 5);
		ck_assert_uint_eq(fsd_promise_break_end(clients, breaking, 0), 0);
	}
	ck_assert_uint_eq(give(NEIGHBOUR + 4, f), 0);
	ck_assert_uint_gt(give(1, f), 0);
	fsd_clients_destroy(clients);
}
END_TEST

TEST_MAIN("breaks", change_waits_for_holders, gone_objects_need_no_message,
	  silent_client_is_given_up, next_call_waits_until_told, unreachable_client_is_turned_away,
	  one_promise_for_a_volume, break_behind_many_is_awaited, few_threads_wait,
	  calls_wait_for_changes, few_threads_wait_for_changes, second_change_waits_for_the_first,
	  failed_call_keeps_other_promises, failed_call_keeps_a_later_promise,
	  many_promises_at_once, slow_client_gets_no_promises, slow_address_gets_no_promises,
	  broken_promises_do_not_count, other_changes_wake_nobody)
