/* SPDX-License-Identifier: BSD-2-Clause */
/* One receive batch: from the system call to the protocol, each connection locked once. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/rx/batch.h"
#include "engine/trace/trace.h"
#include "engine/verify/verify.h"
#include "proto/event/event.h"

#define ACTIVE_SLEEP_US 10000u /* a shard with calls looks at its timers so often */
#define QUIET_POLLS	2 /* receive calls without result before the interruptible wait is used */
#define IDLE_WAIT	(60 * RXW_SEC)
#define SPIN_BYTES	49152u /* a batch of more is bulk: its sender waits for half a window */
#define LOOKS		4      /* between two looks at the clock */
#define REAP_EVERY	RXW_SEC
#define FETCH_LEAST	8   /* connections that are fetched at once */
#define FETCH_MOST	64  /* in a batch */
#define FETCH_SMALL	512 /* bytes of a packet that is small */
#define LEAST_NAP	20  /* us: less costs more than it brings */
#define LEAST_GATHERED	4   /* refusals in a nap */
#define LONGER		4   /* times the nap at most, where calls wait for long anyway ... */
#define PART_OF_WAIT	10  /* ... so much longer than that ... */
#define MOST_GATHERED	128 /* ... and no more than so many refusals come meanwhile */
#define NAP_MOST	256 /* messages: more than that did not gather in a nap, but came since */
#define HELD_MOST	112 /* answers that leave in one system call */
#define OWING_MOST	RXW_MS /* longest wait for a dry socket, by the times of batches */

/* Offer buffers to the kernel. Returns how many; with the memory used up, one that stays ours. */
static unsigned offer_buffers(struct rxw_shard *s, bool *reserve)
{
	unsigned n;

	*reserve = false;
	for (n = 0; n < s->rx.depth; n++) {
		if (!s->rx.entry[n].buf)
			s->rx.entry[n].buf = rxw_buf_get(s->ep->engine->pool);
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

/* Buffers that nobody queued are used again, the warmest first. */
static void take_back(struct rxw_shard *s, unsigned n, bool reserve)
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
	if (n == s->rx.depth && s->rx.depth < s->ep->config.batch)
		s->rx.depth = s->rx.depth * 2 < s->ep->config.batch ? s->rx.depth * 2
								    : s->ep->config.batch;
	else if (n * 4 < s->rx.depth && s->rx.depth > 4)
		s->rx.depth--;
}

/* Before a long wait: a thousand idle sockets are not to hold what others could send with. */
static void rest_buffers(struct rxw_shard *s, bool *reserve)
{
	if (*reserve)
		s->rx.entry[0].buf = NULL;
	*reserve = false;
	for (unsigned i = 0; i < s->ep->config.batch; i++) {
		rxw_buf_unref(s->rx.entry[i].buf);
		s->rx.entry[i].buf = NULL;
	}
}

/* Lock held. The runs of the group that were not dealt with must be verified, and not here. */
static void leave_to_verify(struct rxw_shard *s, struct rxw_batch_group *g, uint32_t packets,
			    struct rxw_effects *a)
{
	struct rxw_batch *b = s->rx.batch;

	for (int i = g->first; i >= 0; i = b->run[i].next)
		if (b->run[i].run.count)
			rxw_verify_note(s, g->conn, &b->run[i].run, packets);
	rxw_verify_wake(g->conn, a);
}

/*
 * A call that cannot begin yet, since its first packet, its client's proof or the answer to a
 * challenge is missing, keeps no place among those that wait for workers: who never sends that would
 * take the places of all others.
 */
static void give_places_back(struct rxw_connection *c)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->p.channel[i];

		if (p && rxw_pcall_awaits_attach(p))
			rxw_workers_release_call(rxw_call_of(p));
	}
}

static void handle_group(struct rxw_shard *s, struct rxw_batch_group *g, struct rxw_effects *a,
			 bool dry)
{
	struct rxw_batch *b = s->rx.batch;
	const struct rxw_rxrun *ask = NULL;
	struct rxw_connection *c = g->conn;
	uint32_t verify = 0;

	if (rxw_effects_full(a))
		rxw_dispatch(a);
	if (s->deferred.count == RXW_DEFERRED_MAX)
		dry = true; /* no place to wait in */
	rxw_conn_lock(c);
	for (int i = g->first; i >= 0; i = b->run[i].next) {
		if (c->admit.unvalidated && rxw_stranger_watch(c, &b->run[i].run, a->out.now))
			ask = &b->run[i].run;
		if (rxw_pconn_input(&c->p, &b->run[i].run, &a->out) == RXW_INPUT_VERIFY)
			verify += b->run[i].run.count;
		else
			b->run[i].run.count = 0; /* dealt with */
	}
	rxw_pconn_batch_end(&c->p, dry, &a->out);
	if (verify)
		leave_to_verify(s, g, verify, a);
	if (c->admit.unvalidated)
		rxw_stranger_look(c, a->out.now);
	if (!c->p.client)
		give_places_back(c);
	rxw_effects_collect(a, dry);
	if (!dry)
		rxw_defer_until_drained(s, c, a->out.now);
	rxw_conn_unlock(c);
	if (ask)
		rxw_stranger_meet(s, c, ask, a);
	rxw_conn_unref(c);
}

/* The socket is dry, or has not been for OWING_MOST: deferred ACKs and wake-ups are done now. */
static void settle_owing(struct rxw_shard *s, struct rxw_effects *a)
{
	for (unsigned i = 0; i < s->deferred.count; i++) {
		struct rxw_connection *c = s->deferred.conn[i];

		if (rxw_effects_full(a))
			rxw_dispatch(a);
		rxw_conn_lock(c);
		c->deferred = false;
		rxw_pconn_batch_end(&c->p, true, &a->out);
		for (unsigned k = 0; k < 4; k++) {
			struct rxw_call *call =
				c->p.channel[k] ? rxw_call_of(c->p.channel[k]) : NULL;

			if (!call || !call->effects.quiet)
				continue;
			call->effects.quiet = false;
			rxw_effects_readable(a, call);
		}
		rxw_effects_collect(a, true);
		rxw_conn_unlock(c);
		rxw_conn_unref(c);
	}
	s->deferred.count = 0;
}

static bool owing_overdue(const struct rxw_shard *s, uint64_t now)
{
	return s->deferred.count && now - s->deferred.since >= OWING_MOST;
}

static void handle_groups(struct rxw_shard *s, struct rxw_effects *a, bool dry)
{
	struct rxw_batch *b = s->rx.batch;

	for (unsigned i = 0; i < b->groups; i++) {
		b->chain[rxw_batch_chain(b->group[i].conn->p.cid)] = 0;
		handle_group(s, &b->group[i], a, dry);
	}
	b->runs = b->groups = 0;
}

static bool same_connection(const struct rxw_connection *c, const struct rxw_rxrun *run)
{
	return c->p.cid == (run->head.cid & ~3u) && c->p.epoch == run->head.epoch &&
	       c->p.client == !(run->head.flags & RXW_CLIENT_INITIATED) &&
	       rxw_addr_equal(&c->p.path.peer, &run->path->peer);
}

/* The run in b->run[b->runs] joins the group of its connection. */
static void group_run(struct rxw_shard *s, struct rxw_effects *a)
{
	struct rxw_batch *b = s->rx.batch;
	struct rxw_batch_run *r = &b->run[b->runs];
	uint8_t *first = &b->chain[rxw_batch_chain(r->run.head.cid)];
	struct rxw_batch_group *g = NULL;

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

static void inspect(struct rxw_shard *s, const struct rxw_rxrun *run, struct rxw_effects *a)
{
	if (a->out.ctl_count >= a->out.ctl_room)
		rxw_dispatch(a);
	if (rxw_inspect(s, run, a->out.now, &a->out.ctl[a->out.ctl_count]))
		a->out.ctl_count++;
}

/*
 * Small packets of many connections, each of which lies in a dozen lines that are in no cache any
 * more: all of them are asked for before the first is waited for.
 */
static void fetch_ahead(struct rxw_shard *s, unsigned n)
{
	struct rxw_pconn *first[FETCH_MOST];
	uint32_t cid[FETCH_MOST];
	unsigned many = 0;

	for (unsigned i = 0; i < n && many < FETCH_MOST; i++) {
		const struct rxw_io_rx *rx = &s->rx.entry[i];

		if (rx->length < RXW_HEADER_SIZE || rx->length > FETCH_SMALL)
			continue;
		cid[many] = rxw_get32(rx->buf->data + 4);
		if (!many || cid[many] >> 2 != cid[many - 1] >> 2)
			many++;
	}
	if (many < FETCH_LEAST)
		return;
	rxw_table_lock(s);
	rxw_conntable_first(&s->table, cid, many, first);
	rxw_table_unlock(s);
	for (unsigned i = 0; i < many; i++)
		for (size_t at = 0; first[i] && at < sizeof(struct rxw_connection); at += 64)
			__builtin_prefetch((const char *)rxw_conn_of(first[i]) + at);
}

static void handle_batch(struct rxw_shard *s, unsigned n, bool reserve, bool dry,
			 struct rxw_effects *a)
{
	struct rxw_batch *b = s->rx.batch;

	b->runs = b->groups = 0;
	rxw_shard_trace_received(s, n);
	fetch_ahead(s, n);
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
			RXW_PROBE(packet_in, run->head.cid, run->head.call, run->head.type,
				  run->head.seq, run->count, run->size);
			if (run->head.type == RXW_VERSION || run->head.type == RXW_DEBUG)
				inspect(s, run, a);
			else if (reserve && run->head.type == RXW_DATA)
				rxw_drop(&s->stats, RXW_DROP_MEMORY, run->count);
			else
				group_run(s, a);
			if (b->runs == RXW_BATCH_RUNS || b->groups == RXW_BATCH_GROUPS)
				handle_groups(s, a, false);
		}
	}
	handle_groups(s, a, dry);
}

/* How long this thread looks before it sleeps, in microseconds. */
static unsigned patience(const struct rxw_shard *s)
{
	const struct rxw_config *config = &s->ep->config;

	return rxw_on_library_thread(NULL) ? config->poll_us : config->spin_us;
}

/*
 * Each caller that looks may keep a processor from those that it waits for: with many of them on few
 * processors that costs half of all calls.
 */
static bool crowded(const struct rxw_engine *e)
{
	return atomic_load_explicit(&e->waiting, memory_order_relaxed) > e->lookers_max &&
	       !rxw_on_library_thread(NULL);
}

/*
 * Look again and again before sleeping, as long as that finds something often enough (one try in
 * three; else every 16th wait tries again), but not beyond `until`, when a timer is due. A caller
 * that receives for itself does so by default; a listener only if it was told to (poll_us): the
 * processor it burns is the one that its peers, handlers and writers need. After a bulk batch
 * nobody does: the next one takes its time. True: the socket was found empty.
 */
static bool spin(struct rxw_shard *s, unsigned room, uint64_t now, uint64_t until, int *got)
{
	uint64_t end = now + patience(s) * 1000ull;

	*got = 0;
	if (end == now || s->rx.last_bytes > SPIN_BYTES || crowded(s->ep->engine) ||
	    (s->deferred.count && rxw_on_library_thread(NULL)))
		return false;
	if (s->rx.spin_tries >= 8 && s->rx.spin_hits * 3 < s->rx.spin_tries) {
		if (++s->rx.spin_skip % 16)
			return false;
		s->rx.spin_tries = s->rx.spin_hits = 0;
	}
	if (until > end)
		s->rx.spin_tries++;
	else
		end = until; /* cut short: no proof that looking is of no use */
	do {
		for (unsigned i = 0; i < LOOKS; i++) {
			*got = rxw_io_recv(s->sock, s->rx.entry, room, 0);
			if (*got) {
				if (s->rx.spin_tries > s->rx.spin_hits)
					s->rx.spin_hits++;
				return false;
			}
		}
	} while (rxw_now() < end && !crowded(s->ep->engine));
	return true;
}

/*
 * Before a caller that receives bulk sleeps: let packets gather for a while. Who sleeps on the
 * socket is woken by the first train of each burst, which costs its sender more than sending it,
 * and answers each with an acknowledgement of its own. Not beyond `until`, when a timer is due.
 */
static bool nap(struct rxw_shard *s, uint64_t now, uint64_t until)
{
	unsigned us = s->ep->config.nap_us;

	if (!us || s->rx.last_bytes <= SPIN_BYTES || rxw_on_library_thread(NULL) ||
	    until < now + us * 1000ull)
		return false;
	rxw_sleep_us(us);
	return true;
}

/*
 * Most of what came were calls that are refused, and more of them will: to be woken for each and to
 * answer it by itself is most of what they cost. Clients that are told BUSY wait much longer.
 * Timers wait as long as packets do: with calls at work one is due in nearly every tick.
 */
static bool gather(struct rxw_shard *s)
{
	uint64_t us = s->ep->config.refusal_nap_us, longer;

	s->rx.refusing = false;
	if (us < LEAST_NAP || s->deferred.count || s->effects.ctl_held || !rxw_on_library_thread(NULL))
		return false;
	longer = rxw_workers_wait(s->ep) / PART_OF_WAIT;
	if (longer > s->rx.batch->refused_gap * MOST_GATHERED)
		longer = s->rx.batch->refused_gap * MOST_GATHERED;
	if (longer > us * LONGER * 1000)
		us *= LONGER;
	else if (longer > us * 1000)
		us = longer / 1000;
	s->rx.batch->gathered = true;
	rxw_sleep_us((unsigned)us);
	return true;
}

/*
 * Of `messages` that came, as many calls were refused: is it worth while to let more gather? Only
 * if enough of them come in that time, for others, who have calls at work, wait for it; and only
 * once the socket is dry, since a batch of each nap may be less than what comes meanwhile. What a nap
 * let gather is read to its end, though a batch of it may be what workers that end together let in.
 */
static void note_refused(struct rxw_shard *s, uint64_t refused, unsigned messages, bool dry,
			 uint64_t now)
{
	struct rxw_batch *b = s->rx.batch;

	b->refused += refused;
	b->came += messages;
	s->rx.refusing_more =
		!dry && ((b->gathered && b->came < NAP_MOST) || 2 * b->refused >= b->came);
	if (!dry)
		return;
	b->gathered = false;
	if (b->refused) {
		s->rx.refusing = 2 * b->refused >= b->came &&
			      (now - b->refused_at) * LEAST_GATHERED <=
				      b->refused * s->ep->config.refusal_nap_us * 1000;
		b->refused_gap = (now - b->refused_at) / b->refused;
		b->refused_at = now;
	}
	b->refused = b->came = 0;
}

/*
 * Most of what came is refused: what is to be said so far leaves with what timers have to say; and
 * where more is waiting on the socket with what that draws, in longer trains. True: it waits for
 * the next batch.
 */
static bool hold_answers(struct rxw_shard *s, struct rxw_effects *a, unsigned n)
{
	bool more = s->rx.refusing_more && a->out.ctl_count + n <= HELD_MOST;

	if ((!s->rx.refusing_more && !s->rx.refusing) || !rxw_on_library_thread(NULL))
		return false;
	rxw_effects_hold(a);
	return more;
}

/* Workers are looked at then. */
static uint64_t look_at(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->workers.look_at, memory_order_relaxed);
}

/* Wait for a batch, no longer than the timers allow. The buffers may be others afterwards. */
static int await(struct rxw_shard *s, unsigned *offered, bool *reserve, bool quiet)
{
	unsigned room = *offered;
	uint64_t now, next;
	bool empty;
	int n;

	if (atomic_load(&s->tx.left)) {
		atomic_store(&s->tx.left, false); /* what was left is sent behind this look */
		return rxw_io_recv(s->sock, s->rx.entry, room, 0);
	}
	if (s->rx.refusing_more || (s->rx.refusing && gather(s)))
		return rxw_io_recv(s->sock, s->rx.entry, room, 0);
	now = rxw_now();
	next = rxw_timer_next(s, now, quiet ? RXW_WHEEL_SLOTS : ACTIVE_SLEEP_US / 1000 + 1);
	if (next <= now)
		return rxw_io_recv(s->sock, s->rx.entry, room, 0);
	empty = !quiet && spin(s, room, now, next, &n);
	if (!quiet && n)
		return n;
	if (s->deferred.count)
		return empty ? 0 : rxw_io_recv(s->sock, s->rx.entry, room, 0);
	if (!quiet && nap(s, now, next)) {
		n = rxw_io_recv(s->sock, s->rx.entry, room, 0);
		if (n)
			return n;
		empty = true;
	}
	if (empty)
		now = rxw_now();
	if (!quiet && next != UINT64_MAX && next >= now + ACTIVE_SLEEP_US * 1000ull &&
	    !atomic_load_explicit(&s->ep->callbacks_left, memory_order_relaxed))
		return rxw_io_recv(s->sock, s->rx.entry, room, ACTIVE_SLEEP_US);
	/* Idle for a while, or a timer is close: wait where others can interrupt. */
	if (next <= now)
		return 0;
	if (next - now > IDLE_WAIT)
		next = now + IDLE_WAIT;
	/* Strangers are looked at in time even if nobody says anything. */
	if (atomic_load_explicit(&s->admit.count, memory_order_relaxed) &&
	    next > s->rx.reaped_at + REAP_EVERY)
		next = s->rx.reaped_at + REAP_EVERY > now ? s->rx.reaped_at + REAP_EVERY : now + 1;
	if (next > look_at(s->ep))
		next = look_at(s->ep) > now ? look_at(s->ep) : now + 1;
	if (quiet)
		rest_buffers(s, reserve);
	atomic_store(&s->role.wait_until, next);
	atomic_store(&s->role.in_wait, true);
	n = atomic_load(&s->wheel.inbox) || atomic_load(&s->tx.left) || atomic_load(&s->ep->quit)
		    ? 0
		    : rxw_io_wait(s->sock, (next - now) / 1000 + 1);
	atomic_store(&s->role.in_wait, false);
	if (quiet && n > 0)
		room = *offered = offer_buffers(s, reserve);
	return n > 0 ? rxw_io_recv(s->sock, s->rx.entry, room, 0) : 0;
}

/* Who has waited in vain for a while does not look, and is no reason for others not to. */
static int receive(struct rxw_shard *s, unsigned *offered, bool *reserve)
{
	struct rxw_engine *e = s->ep->engine;
	bool quiet = s->rx.quiet >= QUIET_POLLS;
	int n;

	if (quiet || rxw_on_library_thread(NULL))
		return await(s, offered, reserve, quiet);
	atomic_fetch_add_explicit(&e->waiting, 1, memory_order_relaxed);
	n = await(s, offered, reserve, false);
	atomic_fetch_sub_explicit(&e->waiting, 1, memory_order_relaxed);
	return n;
}

/* Remember what came: the next wait is as this one was, more often than not. */
static void note_batch(struct rxw_shard *s, unsigned n)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += s->rx.entry[i].length;
	/* A burst ends with less than a whole train: it takes a few small batches to be no bulk. */
	s->rx.last_bytes -= s->rx.last_bytes / 16;
	if (s->rx.last_bytes < bytes)
		s->rx.last_bytes = bytes;
	s->rx.singles = n == 1 ? s->rx.singles + 1 : 0;
}

/* Calls that this batch or those before it refused; what others refuse meanwhile is not its work. */
static uint64_t refused_here(const struct rxw_shard *s)
{
	return atomic_load_explicit(&s->own.calls_refused, memory_order_relaxed);
}

void rxw_receive_batch(struct rxw_shard *s)
{
	struct rxw_effects a;
	bool reserve, overdue, more = false;
	unsigned room = offer_buffers(s, &reserve);
	uint64_t now;
	int n;

	/*
	 * Where one message at a time comes and empty looks are made anyway, the kernel need not
	 * look for a second one. Every 16th time it does.
	 */
	if (s->rx.singles >= 8 && s->rx.singles % 16 && patience(s))
		room = 1;
	n = receive(s, &room, &reserve);

	if (n > 0) {
		/*
		 * A caller that receives for itself reads what came and looks again at once: what
		 * can wait for a dry socket waits for that look, so that a reader faster than its
		 * sender merges acknowledgements too.
		 */
		bool dry = (unsigned)n < room && rxw_on_library_thread(NULL);

		uint64_t refused = refused_here(s);

		s->rx.quiet = 0;
		note_batch(s, (unsigned)n);
		rxw_effects_init(&a, s, true);
		rxw_clock_cache_set(a.out.now);
		handle_batch(s, (unsigned)n, reserve, dry, &a);
		rxw_clock_cache_set(0);
		refused = refused_here(s) - refused;
		note_refused(s, refused, (unsigned)n, (unsigned)n < room, a.out.now);
		overdue = owing_overdue(s, a.out.now);
		if (dry || overdue)
			settle_owing(s, &a);
		more = hold_answers(s, &a, (unsigned)n) && !overdue;
		rxw_dispatch(&a);
		now = a.out.now;
	} else if (s->deferred.count || s->effects.ctl_held) {
		rxw_effects_init(&a, s, true);
		settle_owing(s, &a);
		note_refused(s, 0, 0, true, a.out.now);
		rxw_dispatch(&a);
		now = a.out.now;
	} else {
		s->rx.quiet++;
		now = rxw_now();
		note_refused(s, 0, 0, true, now);
	}
	if (rxw_io_errors_pending(s->sock))
		rxw_shard_errors(s);
	take_back(s, n > 0 ? (unsigned)n : 0, reserve);
	if (!more) {
		rxw_timer_run(s, now);
		rxw_dispatch_held(s);
	}
	rxw_tx_run(s);
	if (now >= look_at(s->ep))
		rxw_end_slow_calls(s->ep, now);
	if (rxw_too_many_connections(s->ep))
		rxw_evict_idle(s, now);
	if (now >= s->rx.reaped_at + REAP_EVERY) {
		s->rx.reaped_at = now;
		rxw_shard_reap(s, now);
	}
}
