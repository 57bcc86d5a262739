/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One receive batch, from the system call to the protocol core; ICMP errors, and the timers that are due after it. A
 * connection is locked once for all its runs.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/rtt.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/receive/batch.h"
#include "engine/observe/trace.h"
#include "proto/peer/event.h"

#define ACTIVE_SLEEP_US 10000u /* interval at which a shard with calls checks its timers */
#define LISTEN_FOR	RXW_SEC /* waits can be interrupted for so long: see may_sleep() */
#define QUIET_POLLS	2 /* receive calls without packets before the interruptible wait is used */
#define IDLE_WAIT	(60 * RXW_SEC)
#define KEEP_BUFFERS	(100 * RXW_MS) /* longest wait of a receiver that keeps its buffers */
/* Polling is judged by so many tries; and what a success may cost. */
#define SPIN_TRIES_LEAST 8u
#define SPIN_TRIES_MOST	 64u
#define SPIN_PAYS	 (40u * 1000) /* ns */
#define SPIN_BYTES	49152u /* bytes: after a larger batch polling does not pay */
#define POLLS_PER_CLOCK 4      /* receive calls between two readings of the clock */
#define REAP_EVERY	RXW_SEC
#define DELAY_MIN	20  /* us: a shorter delay costs more than it saves */
#define COALESCED_MIN	4   /* refusals during a delay that make it worthwhile */
/*
 * The delay grows up to DELAY_FACTOR times if calls queue DELAY_PART times as long anyway, and at
 * most COALESCED_MAX refusals are expected meanwhile.
 */
#define DELAY_FACTOR	4
#define DELAY_PART	10
#define COALESCED_MAX	128
#define BACKLOG_MAX	256 /* messages that are read after a delay without another look at timers */
#define HELD_MAX	112 /* replies that are sent in one system call */
#define FIRE_ROOM	16 /* effects that one connection can cause; 4 of them by the protocol core */
#define ERRORS_MAX	16
/* Connections of a peer that are told, in each table; the others time out by themselves. */
#define CONNS_MAX 16

/*
 * Supplies buffers for the next receive call and returns how many. If the memory is used up it is
 * the reserve buffer only.
 */
static unsigned supply_buffers(struct rxw_shard *s, bool *reserve)
{
	struct rxw_pool *pool = rxw_pool_for(s);
	unsigned n;

	*reserve = false;
	for (n = 0; n < s->rx.depth; n++) {
		if (!s->rx.entry[n].buf)
			s->rx.entry[n].buf = rxw_buf_get(pool);
		if (!s->rx.entry[n].buf)
			break;
	}
	if (!n) {
		s->rx.entry[0].buf = s->rx.reserve;
		*reserve = true;
		n = 1;
	}
	return n;
}

/* Buffers that were not queued are used again, the most recently used first. */
static void recycle_buffers(struct rxw_shard *s, unsigned n, bool reserve)
{
	if (reserve) {
		s->rx.entry[0].buf = NULL;
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		struct rxw_buf *b = s->rx.entry[i].buf;

		if (atomic_load_explicit(&b->refs, memory_order_acquire) != 1) {
			rxw_buf_unref(b);
			s->rx.entry[i].buf = NULL;
		}
	}
	if (n == s->rx.depth && s->rx.depth < s->ep->settings.constants.batch)
		s->rx.depth = s->rx.depth * 2 < s->ep->settings.constants.batch
				      ? s->rx.depth * 2
				      : s->ep->settings.constants.batch;
	else if (n * 4 < s->rx.depth && s->rx.depth > 4)
		s->rx.depth--;
}

/* Before a long wait: a thousand idle sockets must not hold memory that others could send with. */
static void release_buffers(struct rxw_shard *s, bool *reserve)
{
	if (*reserve)
		s->rx.entry[0].buf = NULL;
	*reserve = false;
	for (unsigned i = 0; i < s->ep->settings.constants.batch; i++) {
		rxw_buf_unref(s->rx.entry[i].buf);
		s->rx.entry[i].buf = NULL;
	}
}

/* Connection's lock held: queue the runs of the group that have yet to be verified. */
static void queue_verification(struct rxw_shard *s, struct rxw_batch_group *g, uint32_t packets,
			       struct rxw_effects *a)
{
	struct rxw_batch *b = s->rx.batch;

	for (int i = g->first; i >= 0; i = b->run[i].next)
		if (b->run[i].run.count)
			rxw_verify_queue(s, g->conn, &b->run[i].run, packets);
	rxw_verify_wake(g->conn, a);
}

/*
 * Connection's lock held. A call that cannot start yet keeps no reservation: its first packet, the
 * validation of its client, or a RESPONSE is missing. Clients that never send these would exhaust
 * the reservations.
 */
static void release_reservations(struct rxw_connection *c)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->p.channel[i];

		if (p && rxw_pcall_awaits_attach(p))
			rxw_workers_release_call(rxw_call_of(p));
	}
}

/* Connection's lock held: will a handler now reply over a path on which calls are paced? */
static bool will_be_paced(const struct rxw_connection *c, const struct rxw_rxrun *run)
{
	return (run->last_flags & RXW_LAST_PACKET) && !c->p.client &&
	       atomic_load_explicit(&c->p.peer->least_rtt, memory_order_relaxed) >= RXW_LONG_RTT;
}

static void handle_group(struct rxw_shard *s, struct rxw_batch_group *g, struct rxw_effects *a,
			 bool drained)
{
	struct rxw_batch *b = s->rx.batch;
	const struct rxw_rxrun *cookie_run = NULL;
	struct rxw_connection *c = g->conn;
	uint32_t verify = 0;

	if (rxw_effects_full(a))
		rxw_dispatch(a);
	if (rxw_deferred_full(s))
		drained = true;
	rxw_conn_lock(c);
	for (int i = g->first; i >= 0; i = b->run[i].next) {
		if (c->admit.unvalidated &&
		    rxw_unvalidated_needs_cookie(c, &b->run[i].run, a->out.now))
			cookie_run = &b->run[i].run;
		if (will_be_paced(c, &b->run[i].run))
			s->rx.listen_until = a->out.now + LISTEN_FOR;
		if (rxw_pconn_input(&c->p, &b->run[i].run, &a->out) == RXW_INPUT_VERIFY)
			verify += b->run[i].run.count;
		else
			b->run[i].run.count = 0; /* done */
	}
	if (rxw_ack_reports_marks(&c->p))
		rxw_io_read_ecn(&s->ep->io); /* before the first report leaves */
	rxw_pconn_batch_end(&c->p, drained, &a->out);
	if (verify)
		queue_verification(s, g, verify, a);
	if (c->admit.unvalidated)
		rxw_unvalidated_recheck(c, a->out.now);
	if (!c->p.client)
		release_reservations(c);
	rxw_effects_collect(a, drained);
	if (!drained)
		rxw_defer_until_drained(s, c, a->out.now);
	rxw_conn_unlock(c);
	if (cookie_run)
		rxw_unvalidated_send_cookie(s, c, cookie_run, a);
	rxw_conn_unref(c);
}

static void handle_groups(struct rxw_shard *s, struct rxw_effects *a, bool drained)
{
	struct rxw_batch *b = s->rx.batch;

	for (unsigned i = 0; i < b->groups; i++) {
		b->chain[rxw_batch_chain(b->group[i].conn->p.cid)] = 0;
		handle_group(s, &b->group[i], a, drained);
	}
	b->runs = b->groups = 0;
}

static bool same_connection(const struct rxw_connection *c, const struct rxw_rxrun *run)
{
	return c->p.cid == (run->head.cid & ~3u) && c->p.epoch == run->head.epoch &&
	       c->p.client == !(run->head.flags & RXW_CLIENT_INITIATED) &&
	       rxw_addr_equal(&rxw_pconn_path(&c->p)->peer, &run->path->peer);
}

/* Add the run in b->run[b->runs] to the group of its connection. */
static void group_run(struct rxw_shard *s, struct rxw_effects *a)
{
	struct rxw_batch *b = s->rx.batch;
	struct rxw_batch_run *r = &b->run[b->runs];
	uint8_t *first = &b->chain[rxw_batch_chain(r->run.head.cid)];
	struct rxw_batch_group *g = NULL;

	assert(b->runs < RXW_BATCH_RUNS && b->groups < RXW_BATCH_GROUPS);
	r->next = -1;
	for (unsigned i = *first; i && !g; i = b->group[i - 1].chain)
		if (same_connection(b->group[i - 1].conn, &r->run))
			g = &b->group[i - 1];
	if (g) {
		b->run[g->last].next = (int)b->runs;
	} else {
		struct rxw_connection *c = rxw_find_connection(s, &r->run, a);

		if (!c)
			return;
		g = &b->group[b->groups++];
		g->conn = c;
		g->first = (int)b->runs;
		g->chain = *first;
		*first = (uint8_t)b->groups;
	}
	g->last = (int)b->runs++;
}

static void answer_debug(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a)
{
	if (a->out.ctl_count >= a->out.ctl_room)
		rxw_dispatch(a);
	if (rxw_inspect(s, run, a->out.now, &a->out.ctl[a->out.ctl_count]))
		a->out.ctl_count++;
}

static void handle_batch(struct rxw_shard *s, unsigned n, bool reserve, bool drained,
			 struct rxw_effects *a)
{
	struct rxw_batch *b = s->rx.batch;

	b->runs = b->groups = 0;
	rxw_shard_trace_received(s, n);
	for (unsigned i = 0; i < n; i++) {
		struct rxw_io_rx *rx = &s->rx.entry[i];
		struct rxw_jumbo jumbo;
		uint32_t at = 0;

		RXW_PROBE(datagram_in, &rx->path.peer.u.sa, rx->length, rx->segment);
		if (rx->truncated || !rx->length || !rx->path.peer.len) {
			rxw_drop(&s->stats, rx->truncated ? RXW_DROP_TRUNCATED : RXW_DROP_SHORT, 1);
			continue;
		}
		memset(&jumbo, 0, sizeof(jumbo));
		for (;;) {
			struct rxw_rxrun *run = &b->run[b->runs].run;

			if (!rxw_run_next(rx->buf, &rx->path, rx->length, rx->segment, &at, &jumbo,
					  run, &s->stats))
				break;
			run->ecn = rx->ecn;
			run->waited = rx->waited;
			RXW_PROBE(packet_in, run->head.cid, run->head.call, run->head.type,
				  run->head.seq, run->count, run->size);
			if (run->head.type == RXW_VERSION || run->head.type == RXW_DEBUG)
				answer_debug(s, run, a);
			else if (reserve && run->head.type == RXW_DATA)
				rxw_drop(&s->stats, RXW_DROP_MEMORY, run->count);
			else
				group_run(s, a);
			if (b->runs == RXW_BATCH_RUNS || b->groups == RXW_BATCH_GROUPS)
				handle_groups(s, a, false);
		}
	}
	handle_groups(s, a, drained);
}

/* Connection's lock held. A writer that found no memory is told to try again. */
static unsigned callback_effects(struct rxw_call *call)
{
	if (!call->events.starved)
		return RXW_DO_CALLBACK;
	call->events.starved = false;
	if (!call->events.queued)
		rxw_callback_note(call);
	return RXW_DO_CALLBACK;
}

static void fire_timers(struct rxw_connection *c, struct rxw_effects *a)
{
	uint64_t now = a->out.now;
	struct rxw_call *call;

	if (rxw_effects_full(a) || rxw_effects_room(a) < FIRE_ROOM)
		rxw_dispatch(a);
	rxw_conn_lock(c);
	for (unsigned i = 0; i < 4; i++) {
		call = rxw_call_of(c->p.channel[i]);
		if (call && call->timer.pace_at && call->timer.pace_at <= now) {
			call->timer.pace_at = 0;
			rxw_call_ref(call);
			rxw_effects_add(a, call, RXW_DO_SEND);
		}
		if (call && rxw_pcall_deadline(&call->p) <= now)
			rxw_pcall_timer(&call->p, &a->out);
	}
	if (rxw_pconn_deadline(&c->p) <= now)
		rxw_pconn_timer(&c->p, &a->out);
	while ((call = c->timer.callbacks) && rxw_effects_room(a) > 4) {
		c->timer.callbacks = call->events.due_next;
		call->events.due = false;
		rxw_effects_add(a, call, callback_effects(call));
	}
	rxw_effects_collect(a, true);
	/* Deadlines in the past do not make the wheel spin: the next check is one tick away. */
	rxw_timer_recompute(c);
	rxw_conn_unlock(c);
}

static void run_due_timers(struct rxw_shard *s, uint64_t now)
{
	struct rxw_effects a;

	if (!rxw_timer_due(s, now))
		return;
	rxw_effects_init(&a, s, true);
	a.out.now = now;
	rxw_timer_expire(s, &a, fire_timers);
	rxw_dispatch(&a);
}

/* Up to CONNS_MAX connections of one table with this peer, one reference each. */
static unsigned conns_of_peer(struct rxw_shard *table, const struct rxw_addr *peer,
			      struct rxw_connection **hit)
{
	unsigned n = 0;

	rxw_table_lock(table);
	for (struct rxw_pconn *p = rxw_conntable_of_peer(&table->table, peer); p && n < CONNS_MAX;
	     p = p->links.peer_next) {
		hit[n] = rxw_conn_of(p);
		rxw_conn_ref(hit[n++]);
	}
	rxw_table_unlock(table);
	return n;
}

/* Tell the peer's connections of one table. */
static void tell_connections(struct rxw_shard *s, struct rxw_shard *table,
			     const struct rxw_io_error *error)
{
	struct rxw_connection *hit[CONNS_MAX];
	unsigned hits = conns_of_peer(table, &error->peer, hit);

	for (unsigned k = 0; k < hits; k++) {
		struct rxw_effects a;

		rxw_effects_init(&a, s, false);
		rxw_conn_lock(hit[k]);
		rxw_pconn_icmp(&hit[k]->p, error->error, error->mtu, &a.out);
		rxw_effects_collect(&a, true);
		rxw_conn_unlock(hit[k]);
		rxw_dispatch(&a);
		rxw_conn_unref(hit[k]);
	}
}

/* Of sockets that share a port, any may get the error, whichever sent the packet. */
static void handle_io_errors(struct rxw_shard *s)
{
	struct rxw_io_error error[ERRORS_MAX];
	unsigned n = rxw_io_errors(s->sock, error, ERRORS_MAX);

	for (unsigned i = 0; i < n; i++)
		for (unsigned t = 0; t < s->ep->shard_count; t++)
			tell_connections(s, &s->ep->shard[t], &error[i]);
}

/*
 * How long this thread polls before it sleeps, in microseconds. A listener does so only if
 * configured: its peers, handlers and writers need the CPU.
 */
static unsigned busy_poll_us(const struct rxw_shard *s)
{
	if (rxw_on_library_thread(NULL))
		return atomic_load_explicit(&s->ep->settings.poll_us, memory_order_relaxed);
	return s->ep->settings.constants.spin_us;
}

/*
 * Each polling caller may keep a CPU from the threads that it waits for. With many of them on few
 * CPUs that halves the rate of calls.
 */
static bool too_many_pollers(const struct rxw_engine *e)
{
	return atomic_load_explicit(&e->pollers, memory_order_relaxed) > e->pollers_max &&
	       !rxw_on_library_thread(NULL);
}

/* A queue for which this thread receives has an entry of another thread. */
static bool queue_interrupts(const struct rxw_shard *s)
{
	return s->rx.limit && atomic_load(s->rx.limit->interrupted);
}

/*
 * Whether the last tries were worth it: one in three succeeded, and a success cost no more processor time than a sleep and a
 * wake-up. A server that works for each reply for longer may need the processor that polls.
 */
static bool polling_pays(struct rxw_shard *s)
{
	if (s->rx.spin_tries >= SPIN_TRIES_MOST) {
		s->rx.spin_tries /= 2;
		s->rx.spin_hits /= 2;
		s->rx.spin_ns /= 2;
	}
	return s->rx.spin_tries < SPIN_TRIES_LEAST ||
	       (s->rx.spin_hits * 3 >= s->rx.spin_tries &&
		s->rx.spin_ns <= s->rx.spin_hits * SPIN_PAYS);
}

/*
 * Polls before sleeping, as long as that pays: otherwise every 16th wait tries again. Not beyond `until`, when a timer is due, and not for bulk: polling helps
 * callers that wait for a short reply. True: the socket was found empty.
 */
static bool busy_poll(struct rxw_shard *s, unsigned room, uint64_t now, uint64_t until, int *got)
{
	uint64_t end = now + busy_poll_us(s) * 1000ull;

	*got = 0;
	if (end == now || s->rx.last_bytes > SPIN_BYTES || s->rx.bulk ||
	    too_many_pollers(s->ep->engine) ||
	    (rxw_on_library_thread(NULL) && rxw_pending(s, RXW_PENDING_DEFERRED)))
		return false;
	if (!polling_pays(s)) {
		if (++s->rx.spin_skip % 16)
			return false;
		/* The next one decides. */
		s->rx.spin_tries = SPIN_TRIES_LEAST - 1;
		s->rx.spin_hits = SPIN_TRIES_LEAST / 3;
		s->rx.spin_ns = 0;
	}
	if (until > end)
		s->rx.spin_tries++;
	else
		end = until; /* cut short: says nothing about success */
	do {
		for (unsigned i = 0; i < POLLS_PER_CLOCK; i++) {
			*got = rxw_io_recv(s->sock, s->rx.entry, room, 0);
			if (*got) {
				if (s->rx.spin_tries > s->rx.spin_hits)
					s->rx.spin_hits++;
				s->rx.spin_ns += rxw_now() - now;
				return false;
			}
		}
	} while (rxw_now() < end && !too_many_pollers(s->ep->engine) && !queue_interrupts(s));
	s->rx.spin_ns += rxw_now() - now;
	return true;
}

/*
 * Before a caller that receives bulk sleeps: delay, so that packets coalesce. Otherwise the first
 * datagrams of each burst wake it, which costs the sender more than sending the burst, and each
 * burst causes an ACK of its own. Over a long path a small part of the round trip is no delay.
 * Not beyond `until`, when a timer is due.
 */
static bool delay_receive(struct rxw_shard *s, uint64_t now, uint64_t until)
{
	unsigned us = s->ep->settings.constants.coalesce_us;

	if (us && s->rx.bulk && s->rx.pause_us > us)
		us = s->rx.pause_us;
	if (!us || (s->rx.last_bytes <= SPIN_BYTES && !s->rx.bulk) || rxw_on_library_thread(NULL) ||
	    until < now + us * 1000ull)
		return false;
	rxw_sleep_us(us);
	return true;
}

/*
 * Most packets were calls that were refused, and more are expected. Waking for each of them and
 * answering it separately is most of their cost, and clients that get BUSY wait much longer anyway.
 * Timers are delayed likewise: with active calls, one is due in nearly every tick.
 */
static bool coalesce_refusals(struct rxw_shard *s)
{
	uint64_t us = s->ep->settings.constants.refusal_us, longer;

	s->rx.refusing = false;
	if (us < DELAY_MIN || !rxw_on_library_thread(NULL) ||
	    rxw_pending(s, RXW_PENDING_DEFERRED | RXW_PENDING_CTL))
		return false;
	longer = rxw_workers_wait(s->ep) / DELAY_PART;
	if (longer > s->rx.batch->refused_gap * COALESCED_MAX)
		longer = s->rx.batch->refused_gap * COALESCED_MAX;
	if (longer > us * DELAY_FACTOR * 1000)
		us *= DELAY_FACTOR;
	else if (longer > us * 1000)
		us = longer / 1000;
	s->rx.batch->coalesced = true;
	rxw_sleep_us((unsigned)us);
	return true;
}

/*
 * Decides whether to delay the next receive call, after `refused` calls in `messages` messages.
 * Only if enough calls arrive meanwhile, since others with active calls wait as well; and only once
 * the socket is drained, since one batch may be less than what arrives during a delay. What
 * coalesced in a delay is read to its end, even if a batch of it had few refusals because workers
 * became free.
 */
static void update_refusing(struct rxw_shard *s, uint64_t refused, unsigned messages, bool drained,
			    uint64_t now)
{
	struct rxw_batch *b = s->rx.batch;

	b->refused += refused;
	b->received += messages;
	s->rx.refusing_more = !drained && ((b->coalesced && b->received < BACKLOG_MAX) ||
					   2 * b->refused >= b->received);
	if (!drained)
		return;
	b->coalesced = false;
	if (b->refused) {
		s->rx.refusing = 2 * b->refused >= b->received &&
				 (now - b->refused_at) * COALESCED_MIN <=
					 b->refused * s->ep->settings.constants.refusal_us * 1000;
		b->refused_gap = (now - b->refused_at) / b->refused;
		b->refused_at = now;
	}
	b->refused = b->received = 0;
}

/*
 * If most calls are refused, replies are held and sent together with those of the timers; and if
 * the socket has more packets, together with later replies. True: they are held
 * until the next batch.
 */
static bool hold_replies(struct rxw_shard *s, struct rxw_effects *a, unsigned n)
{
	bool more = s->rx.refusing_more && a->out.ctl_count + n <= HELD_MAX;

	if ((!s->rx.refusing_more && !s->rx.refusing) || !rxw_on_library_thread(NULL))
		return false;
	rxw_effects_hold(a);
	return more;
}

/*
 * Sleep until the socket is readable or another thread needs this one, at the latest until `next`.
 * Each store of another thread precedes its look at in_wait.
 */
static int wait_interruptibly(struct rxw_shard *s, uint64_t now, uint64_t next)
{
	int n;

	atomic_store(&s->role.wait_until, next);
	atomic_store(&s->role.in_wait, true);
	n = atomic_load(&s->wheel.inbox) || rxw_pending(s, RXW_PENDING_SEND) ||
			    atomic_load(&s->ep->life.quit) || queue_interrupts(s) ||
			    rxw_workers_sample_at(s->ep) < next
		    ? 0
		    : rxw_io_wait(s->sock, (next - now) / 1000 + 1);
	atomic_store(&s->role.in_wait, false);
	return n;
}

/*
 * Batches come so seldom that a receiver would wake in between, only to look at its timers. A process
 * with a thousand sockets does little else then. All timers are looked at instead, and the wait lasts
 * until the first of them.
 */
static bool receives_seldom(const struct rxw_shard *s)
{
	return s->rx.gap > ACTIVE_SLEEP_US * 1000ull;
}

/*
 * Blocking in the receive call saves the separate system call of a wait, but other threads cannot
 * interrupt it: a burst that they have paced would be late by up to ACTIVE_SLEEP_US. So waits can be
 * interrupted for LISTEN_FOR after the end of a request over a long path, whose reply will be paced,
 * and after another thread has paced a call.
 */
static bool may_sleep(struct rxw_shard *s, uint64_t now, uint64_t next)
{
	if (atomic_load_explicit(&s->role.others_pace, memory_order_relaxed)) {
		atomic_store_explicit(&s->role.others_pace, false, memory_order_relaxed);
		s->rx.listen_until = now + LISTEN_FOR;
	}
	return !s->rx.limit && !receives_seldom(s) && next != UINT64_MAX &&
	       next >= now + ACTIVE_SLEEP_US * 1000ull && now >= s->rx.listen_until &&
	       rxw_workers_sample_at(s->ep) >= now + RXW_MS &&
	       !atomic_load_explicit(&s->ep->threads.callbacks_left, memory_order_relaxed);
}

/* Wait for a batch, no longer than the timers allow. May replace the buffers. */
static int wait_for_batch(struct rxw_shard *s, unsigned *supplied, bool *reserve, bool quiet)
{
	bool empty, seldom = receives_seldom(s);
	unsigned room = *supplied;
	uint64_t now, next;
	int n;

	/* The rest is sent, and more callbacks run, after this receive call. */
	if (rxw_pending(s, RXW_PENDING_SEND | RXW_PENDING_DISPATCH)) {
		rxw_tx_leave(s, false);
		return rxw_io_recv(s->sock, s->rx.entry, room, 0);
	}
	if (s->rx.refusing_more || (s->rx.refusing && coalesce_refusals(s)))
		return rxw_io_recv(s->sock, s->rx.entry, room, 0);
	now = rxw_now();
	next = rxw_timer_next(s, now, quiet || seldom ? RXW_WHEEL_SLOTS : ACTIVE_SLEEP_US / 1000 + 1);
	if (s->rx.limit && next > s->rx.limit->until)
		next = s->rx.limit->until;
	if (next <= now)
		return rxw_io_recv(s->sock, s->rx.entry, room, 0);
	empty = !quiet && busy_poll(s, room, now, next, &n);
	if (!quiet && n)
		return n;
	if (rxw_pending(s, RXW_PENDING_DEFERRED))
		return empty ? 0 : rxw_io_recv(s->sock, s->rx.entry, room, 0);
	if (!quiet && !seldom && delay_receive(s, now, next)) {
		n = rxw_io_recv(s->sock, s->rx.entry, room, 0);
		if (n)
			return n;
		empty = true;
	}
	if (empty)
		now = rxw_now();
	if (!quiet && may_sleep(s, now, next))
		return rxw_io_recv(s->sock, s->rx.entry, room, ACTIVE_SLEEP_US);
	/* Idle for a while, or a timer is close: wait where other threads can interrupt. */
	if (next <= now)
		return 0;
	if (next - now > IDLE_WAIT)
		next = now + IDLE_WAIT;
	/* Connections of unvalidated addresses expire in time even without packets, and memory goes back after a peak. */
	if (next > s->rx.reaped_at + REAP_EVERY &&
	    (atomic_load_explicit(&s->ep->admit.unvalidated, memory_order_relaxed) ||
	     !rxw_pool_settled(s->ep->engine->pool)))
		next = s->rx.reaped_at + REAP_EVERY > now ? s->rx.reaped_at + REAP_EVERY : now + 1;
	if (next > rxw_workers_sample_at(s->ep))
		next = rxw_workers_sample_at(s->ep) > now ? rxw_workers_sample_at(s->ep) : now + 1;
	if (quiet)
		release_buffers(s, reserve);
	else if (next - now > KEEP_BUFFERS)
		next = now + KEEP_BUFFERS; /* without timers too, so that it is quiet soon */
	n = wait_interruptibly(s, now, next);
	if (quiet && n > 0)
		room = *supplied = supply_buffers(s, reserve);
	return n > 0 ? rxw_io_recv(s->sock, s->rx.entry, room, 0) : 0;
}

/* A caller that found nothing in its last polls is not counted in engine->pollers. */
static int receive_messages(struct rxw_shard *s, unsigned *supplied, bool *reserve)
{
	struct rxw_engine *e = s->ep->engine;
	bool quiet = s->rx.quiet >= QUIET_POLLS;
	int n;

	if (quiet || rxw_on_library_thread(NULL))
		return wait_for_batch(s, supplied, reserve, quiet);
	atomic_fetch_add_explicit(&e->pollers, 1, memory_order_relaxed);
	n = wait_for_batch(s, supplied, reserve, false);
	atomic_fetch_sub_explicit(&e->pollers, 1, memory_order_relaxed);
	return n;
}

/* Record the size of the batch: the next wait will likely be similar. */
static void record_batch(struct rxw_shard *s, unsigned n)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += s->rx.entry[i].length;
	/*
	 * A burst ends with a smaller batch: it takes several small batches to leave the bulk
	 * state.
	 */
	s->rx.last_bytes -= s->rx.last_bytes / 16;
	if (s->rx.last_bytes < bytes)
		s->rx.last_bytes = bytes;
}

/* Calls refused by this receiver, not by other threads. */
static uint64_t refused_here(const struct rxw_shard *s)
{
	return atomic_load_explicit(&s->own.calls_refused, memory_order_relaxed);
}

void rxw_receive_batch(struct rxw_shard *s)
{
	struct rxw_effects a;
	bool reserve, overdue, more = false;
	unsigned room = supply_buffers(s, &reserve);
	uint64_t now;
	int n;

	assert(rxw_receiving() == s);
	n = receive_messages(s, &room, &reserve);
	if (n > 0) {
		/*
		 * A caller that receives for itself calls again at once. Deferred work waits for
		 * that, so that a reader which is faster than its sender merges ACKs, too.
		 */
		bool drained = (unsigned)n < room && rxw_on_library_thread(NULL);
		uint64_t refused = refused_here(s);

		s->rx.quiet = 0;
		record_batch(s, (unsigned)n);
		rxw_effects_init(&a, s, true);
		rxw_clock_cache_set(a.out.now);
		s->rx.gap = s->rx.batch_at ? a.out.now - s->rx.batch_at : 0;
		s->rx.batch_at = a.out.now;
		handle_batch(s, (unsigned)n, reserve, drained, &a);
		rxw_clock_cache_set(0);
		refused = refused_here(s) - refused;
		update_refusing(s, refused, (unsigned)n, (unsigned)n < room, a.out.now);
		overdue = rxw_deferred_overdue(s, a.out.now);
		if (drained || overdue)
			rxw_deferred_complete(s, &a);
		more = hold_replies(s, &a, (unsigned)n) && !overdue;
		rxw_dispatch(&a);
		now = a.out.now;
	} else if (rxw_pending(s, RXW_PENDING_DEFERRED | RXW_PENDING_CTL)) {
		rxw_effects_init(&a, s, true);
		rxw_deferred_complete(s, &a);
		update_refusing(s, 0, 0, true, a.out.now);
		rxw_dispatch(&a);
		now = a.out.now;
	} else {
		s->rx.quiet++;
		now = rxw_now();
		update_refusing(s, 0, 0, true, now);
	}
	if (rxw_io_errors_pending(s->sock))
		handle_io_errors(s);
	recycle_buffers(s, n > 0 ? (unsigned)n : 0, reserve);
	if (!more) {
		run_due_timers(s, now);
		rxw_dispatch_held(s);
	}
	rxw_dispatch_callbacks(s);
	rxw_tx_run(s);
	rxw_release_step(s);
	if (now >= rxw_workers_sample_at(s->ep))
		rxw_end_slow_calls(s->ep, now);
	if (rxw_must_evict(s->ep))
		rxw_evict_idle(s, now);
	if (now >= s->rx.reaped_at + REAP_EVERY) {
		s->rx.reaped_at = now;
		rxw_shard_reap(s, now);
		rxw_pool_settle(s->ep->engine->pool);
	}
}
