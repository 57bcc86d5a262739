/* SPDX-License-Identifier: BSD-2-Clause */
/* The send role: trains of several calls leave in one system call, by whoever holds the role. */
#include "engine/internal.h"
#include "engine/lock.h"
#include "engine/trace.h"

#define TX_ENTRIES  128	       /* trains gathered at once */
#define TX_BYTES    (2u << 20) /* and about so much data */
#define TX_BRIEF    65536u     /* less than that takes no time to speak of */
#define TX_QUANTUM  4	       /* trains of one call before the next one has its turn */
#define TX_STAY	    8	       /* batches that a thread sends for others before it looks around */
#define TX_FLOOD    (16u << 20) /* windows of all calls at work: peers lag behind */
#define TX_CTL	    128	       /* control packets handed over at once */
#define TX_CTL_BYTES 8192	       /* of them; on the stack, which may be the application's */
#define TX_CTL_LOOK 8	       /* messages looked through for one that another can join */
#define TX_JOINED   64	       /* small packets in one message: what the kernel cuts at most */
#define JOINED_MOST 64000u     /* bytes of them: below what IPv6 allows */

static _Thread_local struct rxw_shard *held_back __attribute__((tls_model("initial-exec")));

/* The call in whose write() this thread is. */
static _Thread_local struct rxw_call *writing __attribute__((tls_model("initial-exec")));

struct rxw_call *rxw_tx_writing(struct rxw_call *call)
{
	struct rxw_call *before = writing;

	writing = call;
	return before;
}

void rxw_tx_hold(struct rxw_shard *s)
{
	held_back = s;
}

struct rxw_shard *rxw_tx_queue(struct rxw_call *call)
{
	struct rxw_shard *s = rxw_home(call->conn);

	if (atomic_exchange(&call->tx_queued, true))
		return NULL;
	rxw_call_ref(call);
	rxw_txq_lock(s);
	call->tx_next = NULL;
	*s->txq_tail = call;
	s->txq_tail = &call->tx_next;
	atomic_store(&s->txq_any, true);
	rxw_txq_unlock(s);
	return s;
}

static struct rxw_call *tx_pop(struct rxw_shard *s)
{
	struct rxw_call *call;

	/* Whoever queues one afterwards looks for a sender afterwards. */
	if (!atomic_load(&s->txq_any))
		return NULL;
	rxw_txq_lock(s);
	call = s->txq_head;
	if (call) {
		s->txq_head = call->tx_next;
		if (!s->txq_head) {
			s->txq_tail = &s->txq_head;
			atomic_store(&s->txq_any, false);
		}
	}
	rxw_txq_unlock(s);
	/* From here on it can be queued again, and will be looked at again. */
	if (call)
		atomic_store(&call->tx_queued, false);
	return call;
}

/* What leaves together, in one system call if it can. */
struct tx_batch {
	struct rxw_shard *shard;
	struct rxw_shard *other; /* a call was queued there, for its home had moved */
	unsigned count, calls, messages;
	unsigned joined; /* most packets that may share a message, 1 = none do */
	uint32_t bytes;
	struct rxw_train train[TX_ENTRIES];
	struct iovec iov[TX_ENTRIES]; /* of train[i] */
	/* train[i] is, or is number place[i] of, what tx[message[i]] sends */
	uint8_t message[TX_ENTRIES], place[TX_ENTRIES];
	struct rxw_io_tx tx[TX_ENTRIES];
	/* one reference each; trains first[i] up to first[i + 1] */
	struct rxw_call *call[TX_ENTRIES];
	unsigned first[TX_ENTRIES + 1];
};

/*
 * --defer on: the receiving thread never sends for a writer that waits for room. True if it was
 * left to the writer, which is woken.
 */
static bool left_to_writer(struct rxw_call *call)
{
	struct rxw_shard *r = rxw_receiving();

	return r && call->conn->ep->config.defer == RXW_ON && call->writer == RXW_WRITER_WAITING &&
	       r->ep == call->conn->ep;
}

static void count_window(struct rxw_shard *s, struct rxw_call *call)
{
	if (rxw_receiving()) {
		rxw_count(&s->windows_by_receiver, 1);
		rxw_count(&call->windows_by_receiver, 1);
	} else {
		rxw_count(&s->windows_by_writer, 1);
		rxw_count(&call->windows_by_writer, 1);
	}
}

static void queue_again(struct tx_batch *b, struct rxw_call *call)
{
	struct rxw_shard *s = rxw_tx_queue(call);

	if (s && s != b->shard)
		b->other = s;
}

/* May `c` send behind `m` in one message of the kernel? */
static bool same_way(const struct rxw_io_tx *m, const struct rxw_connection *c)
{
	const struct rxw_path *path = &c->p.path;

	if (m->path == path)
		return true;
	/*
	 * The kernel steers a train by its first packet: towards a server, whose listeners share
	 * the connections, it never mixes them. What goes to a client may share one: it has one
	 * socket as a rule, and where it has several the packets still find their calls.
	 */
	return m->reply && !c->p.client && rxw_addr_equal(&m->path->peer, &path->peer) &&
	       rxw_addr_equal(&m->path->local, &path->local) && m->path->ifindex == path->ifindex;
}

/* The train behind the others: small packets of equal size, the last may be shorter, join. */
static void add_message(struct tx_batch *b, struct rxw_connection *c)
{
	unsigned i = b->count++;
	const struct rxw_train *t = &b->train[i];
	struct rxw_io_tx *m = b->messages ? &b->tx[b->messages - 1] : NULL;

	b->bytes += t->length;
	b->iov[i] = (struct iovec){.iov_base = t->data, .iov_len = t->length};
	if (m && t->count == 1 && m->iov_count < b->joined && !t->fragment && !m->fragment &&
	    m->length == m->iov_count * m->segment && t->length <= m->segment &&
	    m->length + t->length <= JOINED_MOST && same_way(m, c)) {
		b->place[i] = (uint8_t)m->iov_count++;
		m->length += t->length;
	} else {
		m = &b->tx[b->messages++];
		b->place[i] = 0;
		*m = (struct rxw_io_tx){.path = &c->p.path,
					.iov = &b->iov[i],
					.iov_count = 1,
					.length = t->length,
					.segment = t->segment,
					.fragment = t->fragment,
					.reply = !c->p.client};
	}
	b->message[i] = (uint8_t)(m - b->tx);
}

/* Trains of one call. Its lock is taken here. Takes over the reference of the queue. */
static void gather(struct tx_batch *b, struct rxw_call *call, struct rxw_actions *a)
{
	struct rxw_connection *c = call->conn;
	unsigned start = b->count, max = rxw_io_max_segments(b->shard->sock);
	bool again = false, wake = false;
	uint64_t not_before = 0;

	rxw_conn_lock(c);
	if (call->tx_claimed) {
		call->tx_again = true;
	} else if (!call->tx_own && left_to_writer(call)) {
		call->send_wanted = wake = true;
	} else {
		/* Its writer had its turn, and found this thread sending already. */
		call->tx_own = false;
		while (b->count < TX_ENTRIES && b->count - start < TX_QUANTUM) {
			struct rxw_train *t = &b->train[b->count];
			enum rxw_train_result r =
				rxw_pcall_train(&call->p, max, t, &not_before, &a->out);

			if (r == RXW_TRAIN_PACED)
				call->pace_at = not_before;
			if (r != RXW_TRAIN_READY)
				break;
			add_message(b, c);
		}
		again = b->count - start == TX_QUANTUM || b->count == TX_ENTRIES;
		if (b->count > start) {
			call->tx_claimed = true;
			call->tx_again |= again;
			count_window(b->shard, call);
		} else if (again) {
			queue_again(b, call);
		}
	}
	rxw_actions_collect(a, false);
	rxw_timer_update(call);
	rxw_conn_unlock(c);
	if (wake)
		pthread_cond_broadcast(&call->cond);
	if (b->count > start) {
		b->call[b->calls] = call;
		b->first[b->calls++] = start;
		b->first[b->calls] = b->count;
	} else {
		rxw_call_unref(call);
	}
}

/* The system call is over: tell floor 1, and queue again what has more to send. */
static void settle(struct tx_batch *b, unsigned i, struct rxw_actions *a)
{
	struct rxw_call *call = b->call[i];
	struct rxw_connection *c = call->conn;
	bool refused = false;

	rxw_conn_lock(c);
	for (unsigned k = b->first[i]; k < b->first[i + 1]; k++) {
		const struct rxw_io_tx *tx = &b->tx[b->message[k]];
		unsigned count = b->train[k].count, sent = count;

		if (tx->error)
			sent = tx->sent_segments > b->place[k] ? tx->sent_segments - b->place[k]
							       : 0;
		if (sent > count)
			sent = count;
		rxw_pcall_train_done(&call->p, &b->train[k], sent, sent < count ? tx->error : 0,
				     &a->out);
		refused |= sent < count;
	}
	call->tx_claimed = false;
	if (refused) {
		/* The kernel has no room, or refuses: the next look is by timer, not in a loop. */
		call->pace_at = a->out.now + RXW_MS;
	} else if (call->tx_again || rxw_pcall_sendable(&call->p, a->out.now)) {
		queue_again(b, call);
	}
	call->tx_again = false;
	rxw_actions_collect(a, false);
	rxw_timer_update(call);
	rxw_conn_unlock(c);
	rxw_call_unref(call);
}

/* Send role held: does much leave here, for more calls than peers can keep up with? */
static void note_batch(struct rxw_shard *s, uint32_t bytes)
{
	const struct rxw_endpoint *ep = s->ep;
	uint64_t windows = (uint64_t)atomic_load_explicit(&ep->live, memory_order_relaxed) *
			   ep->params.window * ep->params.mtu;
	bool bulk;

	/* A batch or two of little is no end of it. */
	s->tx_bytes -= s->tx_bytes / 16;
	if (s->tx_bytes < bytes)
		s->tx_bytes = bytes;
	bulk = windows > TX_FLOOD && s->tx_bytes > TX_BRIEF;
	if (bulk != atomic_load_explicit(&s->tx_bulk, memory_order_relaxed))
		atomic_store_explicit(&s->tx_bulk, bulk, memory_order_relaxed);
}

/* Returns another shard that has to be run, or NULL. */
static struct rxw_shard *send_batch(struct rxw_shard *s)
{
	struct tx_batch b;
	struct rxw_actions a;
	struct rxw_call *call;

	b.shard = s; /* the arrays need no clearing: count says what is valid */
	b.other = NULL;
	b.count = b.calls = b.messages = 0;
	b.bytes = 0;
	b.joined = rxw_io_gso(s->sock) ? TX_JOINED : 1;
	rxw_actions_init(&a, s, false);
	while (b.count < TX_ENTRIES && b.bytes < TX_BYTES && (call = tx_pop(s))) {
		if (rxw_actions_full(&a))
			rxw_actions_run(&a);
		gather(&b, call, &a);
	}
	if (b.count) {
		rxw_trace_tx(s, b.tx, b.messages, rxw_receiving() != NULL);
		if (b.bytes > TX_BRIEF)
			a.out.now = rxw_now();
	}
	for (unsigned i = 0; i < b.calls; i++) {
		if (rxw_actions_full(&a))
			rxw_actions_run(&a);
		settle(&b, i, &a);
	}
	rxw_actions_run(&a);
	note_batch(s, b.bytes);
	return b.other;
}

/*
 * Of the threads that have bulk of many calls to send only ep->senders do so at a time: more of
 * them fill the peers' receive buffers faster than these are read, with what has left every cache
 * by then.
 */
static bool take_place(struct rxw_endpoint *ep)
{
	unsigned n = atomic_load(&ep->tx_senders);

	do {
		if (n >= ep->senders)
			return false;
	} while (!atomic_compare_exchange_weak(&ep->tx_senders, &n, n + 1));
	return true;
}

/* Is there something to send on `s` that nobody sends, and that this thread may? */
static bool waits(const struct rxw_shard *s)
{
	return s != held_back && atomic_load(&s->txq_any) && !atomic_load(&s->tx_busy);
}

/*
 * A batch of `s`. Flag and place are no locks: whoever finds them taken leaves its call in the
 * queue and goes on. The holder looks at the queue again after it gave the flag back, and at those
 * of all shards after it gave a place back (*placed), so that nothing stays behind. False: somebody
 * else will look.
 */
static bool send_some(struct rxw_shard *s, bool *placed)
{
	struct rxw_endpoint *ep = s->ep;
	struct rxw_shard *other = NULL;
	bool flag, place = ep->senders < ep->shard_count &&
			   atomic_load_explicit(&s->tx_bulk, memory_order_relaxed);

	if (place && !take_place(ep))
		return false;
	flag = !atomic_exchange(&s->tx_busy, true);
	if (flag) {
		other = send_batch(s);
		rxw_now_keep(0); /* the next one is later */
		atomic_store(&s->tx_busy, false);
	}
	if (place)
		atomic_fetch_sub(&ep->tx_senders, 1);
	*placed |= place;
	if (other)
		rxw_tx_run(other);
	return flag || place;
}

/*
 * Who sends for many must not neglect what it is for: the holder of the receive role its own
 * socket, a writer its own stream, of which half a window should be ready, and anybody else, who
 * ends a call say, whatever comes next. Others may queue for as long as it sends.
 */
static bool wanted_elsewhere(const struct rxw_shard *sent, unsigned batches)
{
	struct rxw_shard *receiving = rxw_receiving();
	bool long_enough = batches >= TX_STAY, dry;

	if (!long_enough && !atomic_load_explicit(&sent->tx_bulk, memory_order_relaxed))
		return false;
	if (receiving)
		return receiving != sent;
	if (!writing)
		return long_enough;
	rxw_conn_lock(writing->conn);
	dry = rxw_pcall_ready(&writing->p) < writing->conn->ep->params.window / 2;
	rxw_conn_unlock(writing->conn);
	return dry;
}

/* What is left goes on with whoever sends next, the listeners at the latest. */
static void leave_rest(struct rxw_endpoint *ep)
{
	for (unsigned i = 0; i < ep->shard_count; i++) {
		struct rxw_shard *s = &ep->shard[i];

		if (!waits(s))
			continue;
		atomic_store(&s->tx_left, true);
		if (atomic_load(&s->in_wait))
			rxw_io_wake(s->sock);
	}
}

void rxw_tx_run(struct rxw_shard *s)
{
	struct rxw_endpoint *ep = s->ep;
	bool again, placed = false;
	unsigned batches = 0;

	do {
		unsigned n = placed ? ep->shard_count : 1;

		again = false;
		for (unsigned i = 0; i < n; i++) {
			struct rxw_shard *t = &ep->shard[(s->index + i) % ep->shard_count];

			if (!waits(t))
				continue;
			again |= send_some(t, &placed);
			if (wanted_elsewhere(t, ++batches)) {
				leave_rest(ep);
				return;
			}
		}
	} while (again);
}

/* Control packets on their way to messages. */
struct ctl_batch {
	unsigned count;		 /* messages */
	uint8_t message[TX_CTL]; /* of packet i */
	uint8_t packets[TX_CTL]; /* of message m */
	const struct rxw_ctl *head[TX_CTL]; /* its first */
	/* what leaves in one message is side by side: to the kernel one piece costs less than many */
	uint8_t bytes[TX_CTL_BYTES];
};

/*
 * The message that the packet can leave in: towards a client, the latest to its address if all in
 * it are of the same size; so nothing overtakes anything. Towards a server packets go singly, for
 * the kernel steers a train by its first.
 */
static unsigned message_of(const struct ctl_batch *b, const struct rxw_ctl *c)
{
	unsigned last = b->count > TX_CTL_LOOK ? b->count - TX_CTL_LOOK : 0;

	if (c->client || c->padding)
		return b->count;
	for (unsigned m = b->count; m-- > last;) {
		const struct rxw_ctl *head = b->head[m];

		if (head->client || !rxw_addr_equal(&head->path.peer, &c->path.peer))
			continue;
		if (head->length != c->length || head->padding ||
		    head->path.ifindex != c->path.ifindex ||
		    !rxw_addr_equal(&head->path.local, &c->path.local))
			break;
		return m;
	}
	return b->count;
}

/* Which packets leave in which message, in the order of their first. */
static void join_ctl(struct ctl_batch *b, const struct rxw_ctl *ctl, unsigned n, bool joined)
{
	b->count = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned m = joined ? message_of(b, &ctl[i]) : b->count;

		if (m == b->count) {
			b->head[b->count++] = &ctl[i];
			b->packets[m] = 0;
		}
		b->message[i] = (uint8_t)m;
		b->packets[m]++;
	}
}

static void send_ctl(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned n)
{
	static const uint8_t zeros[9000];
	struct iovec iov[TX_CTL][2];
	struct rxw_io_tx tx[TX_CTL];
	struct ctl_batch b;
	size_t used = 0;

	join_ctl(&b, ctl, n, n > 1 && rxw_io_gso(s->sock));
	for (unsigned m = 0; m < b.count; m++) {
		const struct rxw_ctl *head = b.head[m];
		size_t pad = head->padding <= sizeof(zeros) ? head->padding : sizeof(zeros);
		bool train = b.packets[m] > 1; /* nothing in it is padded */

		iov[m][0] = (struct iovec){
			.iov_base = train ? b.bytes + used : (uint8_t *)(uintptr_t)head->bytes,
			.iov_len = train ? 0 : head->length};
		iov[m][1] = (struct iovec){.iov_base = (void *)(uintptr_t)zeros, .iov_len = pad};
		tx[m] = (struct rxw_io_tx){.path = &head->path,
					   .iov = iov[m],
					   .iov_count = pad ? 2 : 1,
					   .length = (uint32_t)(train ? 0 : head->length + pad),
					   .segment = train ? head->length : 0,
					   .reply = !head->client};
		used += train ? (size_t)b.packets[m] * head->length : 0;
	}
	for (unsigned i = 0; i < n && used; i++) {
		struct rxw_io_tx *t = &tx[b.message[i]];
		struct iovec *v = iov[b.message[i]];

		if (!t->segment)
			continue;
		memcpy((uint8_t *)v->iov_base + v->iov_len, ctl[i].bytes, ctl[i].length);
		v->iov_len += ctl[i].length;
		t->length += ctl[i].length;
	}
	/* An ACK that the kernel refuses is owed again: a retransmission or a PING draws it. */
	rxw_trace_tx(s, tx, b.count, rxw_receiving() != NULL);
}

void rxw_ctl_send(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned count)
{
	for (unsigned at = 0, n; at < count; at += n) {
		size_t bytes = 0;

		for (n = 0; n < TX_CTL && at + n < count; n++) {
			bytes += ctl[at + n].length;
			if (bytes > TX_CTL_BYTES)
				break;
		}
		send_ctl(s, ctl + at, n);
	}
}
