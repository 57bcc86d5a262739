/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards: initialization, the listener thread, and the receive role. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/receive/batch.h"

#define CALLER_GRACE RXW_MS /* how long a role that a caller left stays free */
/* How often the listener looks while callers take turns: each time twice as late, up to that. */
#define LOOK_FIRST   (2 * RXW_MS)
#define LOOK_LAST    (16 * RXW_MS)
#define QUEUE_IDLE   (20 * RXW_MS) /* how long a thread at a queue receives without an event */
#define DEPUTY_GRACE RXW_MS	   /* how long a handler may keep the listener from receiving */

/* The shard whose role this listener has lent to its deputy; NULL: none, or the deputy knows. */
static _Thread_local struct rxw_shard *lent_here __attribute__((tls_model("initial-exec")));

int rxw_shard_init(struct rxw_shard *s, struct rxw_endpoint *ep, unsigned index)
{
	s->ep = ep;
	s->index = index;
	s->sock = ep->io.sock[index];
	s->own.alone = true;
	rxw_mutex_init(&s->lock);
	rxw_mutex_init(&s->role.lock);
	s->wheel.tick = rxw_now() / RXW_MS;
	s->role.grace = CALLER_GRACE;
	s->role.idle = QUEUE_IDLE;
	s->rx.entry = calloc(ep->settings.constants.batch, sizeof(*s->rx.entry));
	s->rx.batch = calloc(1, sizeof(*s->rx.batch));
	s->rx.depth = ep->settings.constants.batch < 4 ? ep->settings.constants.batch : 4;
	rxw_budget_init(&s->rx.reserve_budget, 4 * (int64_t)RXW_BUF_SIZE);
	s->rx.reserve_pool = rxw_pool_create(&s->rx.reserve_budget, 2 * RXW_BUF_SIZE, 1);
	if (s->rx.reserve_pool)
		s->rx.reserve = rxw_buf_get(s->rx.reserve_pool);
	if (!rxw_send_init(s) || !s->rx.entry || !s->rx.batch || !s->rx.reserve ||
	    rxw_cond_init(&s->role.free) || rxw_cond_init(&s->role.deputy) ||
	    rxw_conntable_init(&s->table, ep->engine->key))
		return -RXW_ENOMEM;
	return 0;
}

void rxw_shard_fini(struct rxw_shard *s)
{
	if (!s->ep)
		return;
	if (s->rx.batch)
		rxw_verify_drop(rxw_verify_take_own(s));
	for (unsigned i = 0; s->rx.entry && i < s->ep->settings.constants.batch; i++)
		rxw_buf_unref(s->rx.entry[i].buf);
	rxw_buf_unref(s->rx.reserve);
	if (s->rx.reserve_pool)
		rxw_pool_destroy(s->rx.reserve_pool);
	rxw_conntable_fini(&s->table);
	pthread_cond_destroy(&s->role.free);
	pthread_cond_destroy(&s->role.deputy);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->role.lock);
	rxw_send_fini(s);
	free(s->rx.entry);
	free(s->rx.batch);
}

bool rxw_role_wanted(const struct rxw_shard *s)
{
	const struct rxw_endpoint *ep = s->ep;

	/*
	 * The listener serves several callers better: otherwise one of them would work for all and
	 * be late itself. On a server other calls must not wait for a writer either.
	 */
	if (atomic_load(&s->role.waiters) > 1)
		return true;
	return ep->server && (!ep->settings.constants.writer_receives ||
			      atomic_load_explicit(&ep->usage.live, memory_order_relaxed) != 1);
}

/* role.lock held. */
static enum rxw_role_state role_state(const struct rxw_shard *s)
{
	return atomic_load_explicit(&s->role.state, memory_order_relaxed);
}

#define TO(state) (1u << RXW_ROLE_##state)

/* role.lock held: the only function that changes the state. */
static void change_role(struct rxw_shard *s, enum rxw_role_state to)
{
	static const uint8_t after[] = {
		[RXW_ROLE_LISTENER] = TO(SERVING) | TO(FREE) | TO(CLAIMED),
		[RXW_ROLE_SERVING] = TO(LISTENER),
		[RXW_ROLE_CALLER] = TO(FREE),
		[RXW_ROLE_FREE] = TO(LISTENER) | TO(CALLER) | TO(CLAIMED),
		[RXW_ROLE_CLAIMED] = TO(LISTENER),
	};

	assert(rxw_is_locked(&s->role.lock));
	assert(after[role_state(s)] >> to & 1);
	(void)after;
	atomic_store(&s->role.state, to);
}

/* role.lock held: does the listener have the role? Otherwise it waits for it, or verifies packets. */
static bool listener_has_role(const struct rxw_shard *s)
{
	return role_state(s) == RXW_ROLE_LISTENER || role_state(s) == RXW_ROLE_SERVING;
}

/* role.lock held: no caller is to take the role from now on. */
static void request_listener(struct rxw_shard *s)
{
	s->role.wanted = true;
	if (role_state(s) == RXW_ROLE_FREE)
		change_role(s, RXW_ROLE_CLAIMED);
}

bool rxw_role_try(struct rxw_shard *s)
{
	bool got;

	/*
	 * On a client one of several callers may: it leaves the role to the listener after a batch.
	 */
	if (!rxw_role_is_free(&s->role) || (s->ep->server && rxw_role_wanted(s)))
		return false;
	rxw_role_lock(s);
	got = role_state(s) == RXW_ROLE_FREE;
	if (got) {
		change_role(s, RXW_ROLE_CALLER);
		s->role.serves = false;
	}
	rxw_role_unlock(s);
	if (got)
		rxw_set_receiving(s);
	return got;
}

void rxw_role_leave(struct rxw_shard *s)
{
	bool listener, sent;

	assert(rxw_receiving() == s);
	sent = rxw_tx_run_rest(s);
	rxw_set_receiving(NULL);
	rxw_role_lock(s);
	s->role.left_at = rxw_now();
	change_role(s, RXW_ROLE_FREE);
	if (s->role.wanted || atomic_load(&s->role.sleepers) || rxw_role_wanted(s) ||
	    rxw_pending(s, RXW_PENDING_DISPATCH) || !sent)
		request_listener(s);
	listener = s->role.wanted || s->role.dozes;
	s->role.dozes = false;
	rxw_role_unlock(s);
	if (listener)
		pthread_cond_signal(&s->role.free);
}

void rxw_role_reclaim(struct rxw_shard *s)
{
	bool away;

	rxw_role_lock(s);
	away = !listener_has_role(s);
	atomic_store_explicit(&s->role.reclaimed, true, memory_order_relaxed);
	if (away)
		request_listener(s);
	rxw_role_unlock(s);
	if (away)
		pthread_cond_signal(&s->role.free);
}

void rxw_role_waiter_begin(struct rxw_shard *s)
{
	atomic_fetch_add(&s->role.waiters, 1);
}

void rxw_role_waiter_end(struct rxw_shard *s)
{
	rxw_count_down(&s->role.waiters);
}

/* How the waiting listener looks for the role. */
struct look {
	uint64_t seen; /* left_at at the latest look */
	uint64_t next; /* ns: from that look to the next one */
};

/*
 * role.lock held: when the waiting listener looks next (ns). A caller that leaves and takes the role
 * in turns does not signal it, so it looks periodically. A caller that has held the role since the
 * latest look waits for packets: it signals the listener when it leaves.
 */
static uint64_t plan_look(struct rxw_shard *s, uint64_t now, struct look *look)
{
	uint64_t left_at = s->role.left_at, wait = look->next;
	bool turn = left_at != look->seen, held = role_state(s) == RXW_ROLE_CALLER;

	look->seen = left_at;
	s->role.dozes = held && !turn;
	if (s->role.dozes)
		return UINT64_MAX;
	if (!held)
		return left_at + s->role.grace;
	look->next = wait < LOOK_LAST ? 2 * wait : wait;
	return now + wait;
}

/* role.lock held. */
static bool listener_may_take(const struct rxw_shard *s, uint64_t now)
{
	return role_state(s) == RXW_ROLE_CLAIMED ||
	       (role_state(s) == RXW_ROLE_FREE && now >= s->role.left_at + s->role.grace);
}

/* Waits until the listener holds the role. False: a caller holds it, and the endpoint ends. */
static bool wait_for_role(struct rxw_shard *s)
{
	struct look look = {.next = LOOK_FIRST};
	uint64_t now = rxw_now();
	bool taken;

	rxw_role_lock(s);
	look.seen = s->role.left_at;
	while (!atomic_load(&s->ep->life.quit) && !listener_may_take(s, now)) {
		rxw_cond_wait_until(&s->role.free, &s->role.lock, plan_look(s, now, &look));
		now = rxw_now();
	}
	s->role.dozes = false;
	taken = role_state(s) != RXW_ROLE_CALLER;
	if (taken)
		change_role(s, RXW_ROLE_LISTENER);
	rxw_role_unlock(s);
	return taken;
}

/*
 * Called after a batch that woke a blocking caller: within microseconds that caller waits for the
 * next packet, and may as well receive it itself. On a server this holds for the writer of the only
 * call. The listener waits until the role was free for a while, or several callers wait.
 * It keeps the role while a thread that the batch brought nothing for is asleep, and if that writer
 * has finished.
 */
static void leave_to_callers(struct rxw_shard *s)
{
	bool leaves;

	rxw_role_lock(s);
	s->role.left_at = rxw_now();
	change_role(s, RXW_ROLE_FREE);
	leaves = !atomic_load(&s->role.sleepers) &&
		 !atomic_load_explicit(&s->role.reclaimed, memory_order_relaxed);
	if (leaves)
		s->role.wanted = false;
	else
		change_role(s, RXW_ROLE_LISTENER);
	rxw_role_unlock(s);
	if (leaves)
		wait_for_role(s);
}

/* Lend the role while this thread verifies. */
static void lend_to_callers(struct rxw_shard *s)
{
	rxw_set_receiving(NULL);
	rxw_role_lock(s);
	s->role.left_at = rxw_clock_cached();
	change_role(s, s->role.wanted ? RXW_ROLE_CLAIMED : RXW_ROLE_FREE);
	rxw_role_unlock(s);
}

/* False: a caller has it. */
static bool retake_from_callers(struct rxw_shard *s)
{
	bool retaken;

	rxw_role_lock(s);
	retaken = role_state(s) != RXW_ROLE_CALLER;
	if (retaken) {
		change_role(s, RXW_ROLE_LISTENER);
		s->role.wanted = false;
	}
	rxw_role_unlock(s);
	if (retaken)
		rxw_set_receiving(s);
	return retaken;
}

/*
 * Verify the packets that were left to this thread, without the role. False: a caller has taken it,
 * and the endpoint ends.
 */
static bool verify_own_jobs(struct rxw_shard *s)
{
	struct rxw_verify_job *jobs = rxw_verify_take_own(s);
	bool retaken;

	if (!jobs)
		return true;
	lend_to_callers(s);
	rxw_verify_run(jobs);
	retaken = retake_from_callers(s);
	rxw_verify_deliver(s, jobs, retaken, true);
	if (retaken)
		return true;
	rxw_workers_hand_over(s->ep);
	return wait_for_role(s);
}

static void lend_to_deputy(struct rxw_shard *s)
{
	bool wake;

	assert(rxw_receiving() == s && !lent_here && s->role.serves);
	rxw_set_receiving(NULL);
	rxw_role_lock(s);
	change_role(s, RXW_ROLE_SERVING);
	s->role.lends++;
	wake = !s->role.watched;
	s->role.watched = true;
	rxw_role_unlock(s);
	lent_here = s;
	if (wake)
		pthread_cond_signal(&s->role.deputy);
}

/* False: the deputy is the listener now. */
static bool retake_from_deputy(struct rxw_shard *s)
{
	bool retaken;

	lent_here = NULL;
	rxw_role_lock(s);
	retaken = role_state(s) == RXW_ROLE_SERVING;
	if (retaken)
		change_role(s, RXW_ROLE_LISTENER);
	s->role.blocked = false;
	rxw_role_unlock(s);
	return retaken;
}

void rxw_role_forget(void)
{
	lent_here = NULL;
}

void rxw_role_blocks(void)
{
	struct rxw_shard *s = lent_here;

	if (!s)
		return;
	lent_here = NULL;
	rxw_role_lock(s);
	s->role.blocked = role_state(s) == RXW_ROLE_SERVING;
	rxw_role_unlock(s);
	pthread_cond_signal(&s->role.deputy);
}

/*
 * Waits until the listener is kept from receiving; then this thread has the role. To be signalled
 * each time the role is lent would cost the listener a system call for each batch. So the deputy
 * looks periodically, as long as the role is lent in each period. False: the endpoint ends.
 */
static bool wait_as_deputy(struct rxw_shard *s)
{
	bool due = false;

	rxw_role_lock(s);
	atomic_store_explicit(&s->role.has_deputy, true, memory_order_relaxed);
	while (!due && !atomic_load(&s->ep->life.quit)) {
		uint64_t at = s->role.watched ? rxw_now() + DEPUTY_GRACE : UINT64_MAX;
		unsigned seen = s->role.lends;
		bool serving = role_state(s) == RXW_ROLE_SERVING, still;

		rxw_cond_wait_until(&s->role.deputy, &s->role.lock, at);
		still = role_state(s) == RXW_ROLE_SERVING;
		due = s->role.blocked ||
		      (serving && still && s->role.lends == seen && rxw_now() >= at);
		s->role.watched = still || s->role.lends != seen;
	}
	atomic_store_explicit(&s->role.has_deputy, false, memory_order_relaxed);
	if (role_state(s) == RXW_ROLE_SERVING)
		change_role(s, RXW_ROLE_LISTENER);
	s->role.blocked = s->role.watched = false;
	rxw_role_unlock(s);
	return due;
}

/* This thread is the deputy until it is the listener. The former listener's calls and replies wait. */
static void stand_by(struct rxw_shard *s)
{
	struct rxw_endpoint *ep = s->ep;

	if (!wait_as_deputy(s))
		return;
	rxw_workers_hand_over(ep);
	for (unsigned i = 0; i < ep->shard_count; i++)
		rxw_tx_run(&ep->shard[i]);
}

static void *deputy_loop(void *arg);

static void start_deputy(struct rxw_shard *s)
{
	char name[16];

	s->second_tried = true;
	snprintf(name, sizeof(name), "rxw-deputy%u", s->index % 100);
	s->second_started = !rxw_thread_create(&s->second, s->ep, RXW_OF_SHARD + s->index, name,
					       deputy_loop, s);
	if (!s->second_started)
		rxw_log(s->ep->engine, RXW_LOG_WARNING,
			"cannot start a thread beside listener %u: workers run short handlers, too",
			s->index);
}

/* Serve calls that were left to listeners. False: this thread was the deputy meanwhile. */
static bool serve_left_calls(struct rxw_shard *s)
{
	uint64_t shards;

	if (!s->second_tried && rxw_workers_any_quick(s->ep))
		start_deputy(s);
	if (!rxw_workers_left(s->ep))
		return true;
	if (!s->role.serves) {
		rxw_workers_hand_over(s->ep);
		return true;
	}
	lend_to_deputy(s);
	shards = rxw_workers_serve(s->ep);
	for (unsigned i = 0; i < s->ep->shard_count; i++)
		if (shards >> i & 1)
			rxw_tx_run(&s->ep->shard[i]);
	if (retake_from_deputy(s))
		return true;
	stand_by(s);
	return false;
}

static void receive_loop(struct rxw_shard *s)
{
	while (!atomic_load(&s->ep->life.quit)) {
		/* A writer that waited before the batch is the one that the batch woke, if any. */
		bool writer = s->ep->server && atomic_load(&s->role.waiters) == 1;

		rxw_set_receiving(s);
		s->role.woke_caller = false;
		if (atomic_load_explicit(&s->role.reclaimed, memory_order_relaxed))
			atomic_store_explicit(&s->role.reclaimed, false, memory_order_relaxed);
		s->role.serves = atomic_load_explicit(&s->role.has_deputy, memory_order_relaxed);
		rxw_receive_batch(s);
		if (!verify_own_jobs(s) || !serve_left_calls(s))
			continue;
		rxw_set_receiving(NULL);
		if (s->role.woke_caller && (!s->ep->server || writer) && !rxw_role_wanted(s) &&
		    !atomic_load(&s->role.sleepers) && !rxw_pending(s, RXW_PENDING_DISPATCH) &&
		    rxw_tx_run_rest(s))
			leave_to_callers(s);
	}
}

static void *listen_loop(void *arg)
{
	struct rxw_shard *s = arg;

	rxw_set_library_thread(s->ep);
	receive_loop(s);
	return NULL;
}

static void *deputy_loop(void *arg)
{
	struct rxw_shard *s = arg;

	rxw_set_library_thread(s->ep);
	stand_by(s);
	receive_loop(s);
	return NULL;
}

int rxw_shard_start(struct rxw_shard *s)
{
	char name[16];
	int r;

	if (s->ep->settings.config.listeners == RXW_LISTENERS_SHARED)
		return rxw_listener_join(s);
	snprintf(name, sizeof(name), "rxw-listen%u", s->index % 100);
	r = rxw_thread_create(&s->first, s->ep, RXW_OF_SHARD + s->index, name, listen_loop, s);
	s->first_started = !r;
	return r;
}

static void join_threads(struct rxw_shard *s)
{
	rxw_role_lock(s);
	request_listener(s);
	rxw_role_unlock(s);
	pthread_cond_broadcast(&s->role.free);
	pthread_cond_broadcast(&s->role.deputy);
	rxw_io_wake(s->sock);
	pthread_join(s->first, NULL);
	s->first_started = false;
	if (s->second_started)
		pthread_join(s->second, NULL);
	s->second_started = false;
}

void rxw_shard_stop(struct rxw_shard *s)
{
	if (s->listener)
		rxw_listener_leave(s);
	else if (s->first_started)
		join_threads(s);
	else
		return;
	rxw_dispatch_forget(s);
	rxw_timer_forget_all(s);
}
