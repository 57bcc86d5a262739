/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared listeners: threads of the engine that receive for all endpoints with `listeners = shared`. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/lock.h"
#include "engine/objects.h"

#define KEEP_BUFFERS (100 * RXW_MS) /* an idle listener keeps its buffers for so long */
#define LOOK_EVERY   RXW_SEC	    /* while memory or connections are to go: receive.c */
#define IDLE_WAIT    (60 * RXW_SEC) /* then all idle shards get a turn, at the same time */
#define COLD	     __attribute__((cold))

/* A place of a listener. Its number is the name of the socket. */
struct seat {
	uint64_t due; /* ns, whole ticks: it gets a turn then; not later than its first timer */
	struct rxw_shard *shard; /* NULL: free */
	unsigned next;		 /* that wants a turn, counted from 1; 0: none */
	bool queued;
};

struct rxw_listener {
	struct rxw_listener *next; /* engine's thread_lock, as the next */
	unsigned shards;
	pthread_t thread;
	int set; /* of the sockets; fixed, as the next */
	struct rxw_pool *pool;
	_Atomic(bool) quit;
	/* Of the thread: buffers for the shard whose turn it is, and whether there are any. */
	struct rxw_io_rx buffer[RXW_IO_READY];
	bool holds;
	struct rxw_io_ready ready[RXW_IO_READY];
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t left;  /* the turn of a shard that leaves has ended, or it has left */
	unsigned present;     /* shards that have not left */
	struct rxw_shard *current;
	struct seat *seat;
	unsigned seats, first; /* of `seat`; that wants a turn, counted from 1 */
	uint64_t due;	       /* the earliest of all, or earlier */
};

static void queue_turn(struct rxw_listener *l, unsigned i)
{
	assert(rxw_is_locked(&l->lock) && i < l->seats);
	if (l->seat[i].queued)
		return;
	l->seat[i].queued = true;
	l->seat[i].next = l->first;
	l->first = i + 1;
}

/* Listener's lock held: queues the shards that are due. At most one walk in a tick, over 24 bytes each. */
static void queue_due(struct rxw_listener *l, uint64_t now)
{
	if (l->due > now)
		return;
	l->due = UINT64_MAX;
	for (unsigned i = 0; i < l->seats; i++) {
		if (l->seat[i].due <= now) {
			l->seat[i].due = UINT64_MAX;
			queue_turn(l, i);
		}
		l->due = rxw_min64(l->due, l->seat[i].due);
	}
}

COLD static int take_seat(struct rxw_listener *l, struct rxw_shard *s)
{
	unsigned i = 0;
	int r = -RXW_ENOMEM;

	pthread_mutex_lock(&l->lock);
	while (i < l->seats && l->seat[i].shard)
		i++;
	if (i == l->seats) {
		struct seat *more = realloc(l->seat, (i + 1) * sizeof(*more));

		if (!more)
			goto out;
		l->seat = more;
		l->seat[l->seats++] = (struct seat){.due = UINT64_MAX};
	}
	r = -RXW_ESYS;
	if (rxw_io_set_add(l->set, s->sock, i) < 0)
		goto out;
	r = 0;
	l->seat[i].shard = s;
	queue_turn(l, i);
	l->present++;
	free(s->rx.entry);
	s->rx.entry = l->buffer;
	s->listener = l;
	s->seat = i;
out:
	pthread_mutex_unlock(&l->lock);
	rxw_io_wake(s->sock);
	return r;
}

/* Afterwards the thread does not touch the shard. A turn of its seat may be queued; that does nothing. */
COLD static void leave_seat(struct rxw_shard *s)
{
	struct rxw_listener *l = s->listener;

	rxw_io_set_remove(l->set, s->sock);
	pthread_mutex_lock(&l->lock);
	assert(l->present && l->seat[s->seat].shard == s);
	l->seat[s->seat].shard = NULL;
	l->seat[s->seat].due = UINT64_MAX;
	while (l->current == s)
		pthread_cond_wait(&l->left, &l->lock);
	s->rx.entry = NULL;
	s->listener = NULL;
	l->present--;
	pthread_cond_broadcast(&l->left);
	pthread_mutex_unlock(&l->lock);
}

/* Is there work that neither a packet nor a timer announces? */
static bool has_more(struct rxw_shard *s)
{
	return atomic_load(&s->wheel.inbox) || rxw_pending(s, RXW_PENDING_ANY);
}

static uint64_t end_of_tick(uint64_t at)
{
	return at > UINT64_MAX - RXW_MS ? UINT64_MAX : (at + RXW_MS - 1) / RXW_MS * RXW_MS;
}

/* When the shard needs a turn without a packet (ns). */
static uint64_t plan_turn(struct rxw_shard *s, uint64_t now)
{
	uint64_t next = rxw_timer_next(s, now, RXW_WHEEL_SLOTS),
		 sample = rxw_workers_sample_at(s->ep),
		 look = atomic_load_explicit(&s->ep->admit.unvalidated, memory_order_relaxed)
				? s->rx.reaped_at + LOOK_EVERY
				: (now / IDLE_WAIT + 1) * IDLE_WAIT;

	return end_of_tick(rxw_min64(rxw_min64(next, sample), look));
}

/* No lock held: one batch with its effects, without a wait. Returns when the next turn is due. */
static uint64_t run_shard_turn(struct rxw_shard *s)
{
	struct rxw_verify_job *jobs;

	atomic_store(&s->role.in_wait, false);
	rxw_set_library_thread(s->ep);
	rxw_set_receiving(s);
	rxw_tx_leave(s, true); /* a receiver that has more to send does not wait */
	rxw_receive_batch(s);
	jobs = rxw_verify_take_own(s);
	if (jobs) {
		rxw_set_receiving(NULL);
		rxw_verify_run(jobs);
		rxw_set_receiving(s);
		rxw_verify_deliver(s, jobs, true, true);
	}
	rxw_set_receiving(NULL);
	return plan_turn(s, rxw_now());
}

/* Listener's lock held, but not during the turn. */
static void serve_seat(struct rxw_listener *l, unsigned i)
{
	struct rxw_shard *s = l->seat[i].shard;
	uint64_t next;

	l->seat[i].queued = false;
	if (!s)
		return;
	assert(!l->current);
	l->current = s;
	pthread_mutex_unlock(&l->lock);
	next = run_shard_turn(s);
	pthread_mutex_lock(&l->lock);
	l->current = NULL;
	if (l->seat[i].shard != s) {
		pthread_cond_broadcast(&l->left);
		return;
	}
	/* Most timers move to a later time in each turn, which counts once the earlier one has come. */
	l->seat[i].due = rxw_min64(l->seat[i].due, next);
	l->due = rxw_min64(l->due, next);
	atomic_store(&s->role.wait_until, l->seat[i].due);
	atomic_store(&s->role.in_wait, true);
	/* Each store of another thread precedes its look at in_wait. */
	if (has_more(s) || end_of_tick(rxw_workers_sample_at(s->ep)) < l->seat[i].due)
		queue_turn(l, i);
}

COLD static void release_turn_buffers(struct rxw_listener *l)
{
	for (unsigned i = 0; i < RXW_IO_READY; i++) {
		rxw_buf_unref(l->buffer[i].buf);
		l->buffer[i].buf = NULL;
	}
	l->holds = false;
}

/* Listener's lock held, but not during the sleep: queues the shards that want a turn. */
static void await_work(struct rxw_listener *l)
{
	uint64_t now = rxw_now(), due = l->due, most = UINT64_MAX;
	unsigned n;

	if (l->holds)
		most = now + KEEP_BUFFERS;
	else if (!rxw_pool_settled(l->pool))
		most = now + LOOK_EVERY;
	due = l->first ? now : rxw_min64(due, most);
	pthread_mutex_unlock(&l->lock);
	n = rxw_io_set_wait(l->set, due > now ? due - now : 0, l->ready);
	now = rxw_now();
	if (!n && now >= most) {
		release_turn_buffers(l);
		rxw_pool_settle(l->pool);
	}
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < n; i++) {
		struct rxw_shard *s = l->seat[l->ready[i].name].shard;

		if (s && l->ready[i].errors)
			rxw_io_note_errors(s->sock);
		queue_turn(l, l->ready[i].name);
	}
	queue_due(l, now);
}

static void *serve_shards(void *arg)
{
	struct rxw_listener *l = arg;

	pthread_mutex_lock(&l->lock);
	while (!atomic_load(&l->quit)) {
		unsigned i, next;

		await_work(l);
		/* One turn each: after one batch of a flood, all others have theirs. */
		next = l->first;
		l->first = 0;
		while ((i = next)) {
			next = l->seat[i - 1].next;
			l->holds = true;
			serve_seat(l, i - 1);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

COLD static void free_listener(struct rxw_listener *l)
{
	rxw_io_set_close(l->set);
	release_turn_buffers(l);
	free(l->seat);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->left);
	free(l);
}

/* Engine's thread_lock held: the listener with the fewest shards; a new one while a CPU has none. NULL: no memory. */
COLD static struct rxw_listener *find_listener(struct rxw_engine *e, unsigned *ordinal)
{
	struct rxw_listener *l, *found = NULL;

	for (l = e->listeners; l; l = l->next, ++*ordinal)
		if (!found || l->shards < found->shards)
			found = l;
	if (*ordinal >= e->cpus)
		return found;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->left, NULL);
	l->pool = e->pool;
	l->set = rxw_io_set_open();
	return l;
}

/* The shard is its first one, and has a seat; without the thread it leaves it. */
COLD static int start_listener(struct rxw_listener *l, struct rxw_shard *s, unsigned ordinal)
{
	char name[16];
	int r;

	snprintf(name, sizeof(name), "rxw-shared%u", ordinal % 100);
	r = rxw_engine_thread_create(&l->thread, s->ep->engine, &s->ep->settings.config, ordinal,
				     name, serve_shards, l);
	if (r)
		leave_seat(s);
	return r;
}

COLD int rxw_listener_join(struct rxw_shard *s)
{
	struct rxw_engine *e = s->ep->engine;
	struct rxw_listener *l;
	unsigned ordinal = 0;
	int r = -RXW_ENOMEM;

	pthread_mutex_lock(&e->thread_lock);
	l = find_listener(e, &ordinal);
	if (!l)
		goto out;
	r = l->set < 0 ? -RXW_ESYS : take_seat(l, s);
	if (!r && !l->shards)
		r = start_listener(l, s, ordinal);
	if (!r && !l->shards++) {
		l->next = e->listeners;
		e->listeners = l;
	}
	if (!l->shards)
		free_listener(l);
out:
	pthread_mutex_unlock(&e->thread_lock);
	return r;
}

/* The shard is the last one: no other one joins, but some may still be leaving. */
COLD static void end_listener(struct rxw_listener *l, struct rxw_shard *s)
{
	pthread_mutex_lock(&l->lock);
	while (l->present > 1)
		pthread_cond_wait(&l->left, &l->lock);
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->quit, true);
	rxw_io_wake(s->sock);
	pthread_join(l->thread, NULL);
	leave_seat(s);
	free_listener(l);
}

COLD void rxw_listener_leave(struct rxw_shard *s)
{
	struct rxw_engine *e = s->ep->engine;
	struct rxw_listener *l = s->listener, **at = &e->listeners;
	bool last;

	pthread_mutex_lock(&e->thread_lock);
	assert(l->shards);
	last = !--l->shards;
	if (last) {
		while (*at != l)
			at = &(*at)->next;
		*at = l->next;
	}
	pthread_mutex_unlock(&e->thread_lock);
	if (last)
		end_listener(l, s);
	else
		leave_seat(s);
}

COLD void rxw_listeners_forget(struct rxw_engine *e)
{
	for (struct rxw_listener *l = e->listeners; l; l = l->next) {
		rxw_io_set_close(l->set);
		l->set = -1;
	}
}
