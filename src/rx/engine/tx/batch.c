/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue of a socket, and one batch of it: packets of several calls in one system call. */
#include "engine/objects.h"
#include "engine/lock.h"
#include "engine/trace/trace.h"

#define TX_ENTRIES  128		/* trains gathered at once */
#define TX_BYTES    (2u << 20)	/* and about so much data */
#define TX_BRIEF    65536u	/* less than that takes no time to speak of */
#define TX_QUANTUM  4		/* trains of one call before the next one has its turn */
#define TX_FLOOD    (16u << 20) /* windows of all calls at work: peers lag behind */
#define TX_JOINED   64		/* small packets in one message: what the kernel cuts at most */
#define JOINED_MOST 64000u	/* bytes of them: below what IPv6 allows */

struct rxw_shard *rxw_tx_queue(struct rxw_call *call)
{
	struct rxw_shard *s = rxw_home(call->conn);

	if (atomic_exchange(&call->tx.queued, true))
		return NULL;
	rxw_call_ref(call);
	rxw_txq_lock(s);
	call->tx.next = NULL;
	*s->tx.tail = call;
	s->tx.tail = &call->tx.next;
	atomic_store(&s->tx.any, true);
	rxw_txq_unlock(s);
	return s;
}

static struct rxw_call *tx_pop(struct rxw_shard *s)
{
	struct rxw_call *call;

	/* Whoever queues one afterwards looks for a sender afterwards. */
	if (!atomic_load(&s->tx.any))
		return NULL;
	rxw_txq_lock(s);
	call = s->tx.head;
	if (call) {
		s->tx.head = call->tx.next;
		if (!s->tx.head) {
			s->tx.tail = &s->tx.head;
			atomic_store(&s->tx.any, false);
		}
	}
	rxw_txq_unlock(s);
	/* From here on it can be queued again, and will be looked at again. */
	if (call)
		atomic_store(&call->tx.queued, false);
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

	return r && call->conn->ep->config.defer == RXW_ON && call->tx.writer == RXW_WRITER_WAITING &&
	       r->ep == call->conn->ep;
}

static void count_window(struct rxw_shard *s, struct rxw_call *call)
{
	if (rxw_receiving()) {
		rxw_count(&s->tx.windows_by_receiver, 1);
		rxw_count(&call->tx.windows_by_receiver, 1);
	} else {
		rxw_count(&s->tx.windows_by_writer, 1);
		rxw_count(&call->tx.windows_by_writer, 1);
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
static void gather(struct tx_batch *b, struct rxw_call *call, struct rxw_effects *a)
{
	struct rxw_connection *c = call->conn;
	unsigned start = b->count, max = rxw_io_max_segments(b->shard->sock);
	bool again = false, wake = false;
	uint64_t not_before = 0;

	rxw_conn_lock(c);
	if (call->tx.claimed) {
		call->tx.again = true;
	} else if (!call->tx.own && left_to_writer(call)) {
		call->tx.send_wanted = wake = true;
	} else {
		/* Its writer had its turn, and found this thread sending already. */
		call->tx.own = false;
		while (b->count < TX_ENTRIES && b->count - start < TX_QUANTUM) {
			struct rxw_train *t = &b->train[b->count];
			enum rxw_train_result r =
				rxw_pcall_train(&call->p, max, t, &not_before, &a->out);

			if (r == RXW_TRAIN_PACED)
				call->tx.pace_at = not_before;
			if (r != RXW_TRAIN_READY)
				break;
			add_message(b, c);
		}
		again = b->count - start == TX_QUANTUM || b->count == TX_ENTRIES;
		if (b->count > start) {
			call->tx.claimed = true;
			call->tx.again |= again;
			count_window(b->shard, call);
		} else if (again) {
			queue_again(b, call);
		}
	}
	rxw_effects_collect(a, false);
	rxw_timer_update(call);
	rxw_conn_unlock(c);
	if (wake)
		pthread_cond_broadcast(&call->sleep.cond);
	if (b->count > start) {
		b->call[b->calls] = call;
		b->first[b->calls++] = start;
		b->first[b->calls] = b->count;
	} else {
		rxw_call_unref(call);
	}
}

/* The system call is over: tell floor 1, and queue again what has more to send. */
static void settle(struct tx_batch *b, unsigned i, struct rxw_effects *a)
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
	call->tx.claimed = false;
	if (refused) {
		/* The kernel has no room, or refuses: the next look is by timer, not in a loop. */
		call->tx.pace_at = a->out.now + RXW_MS;
	} else if (call->tx.again || rxw_pcall_sendable(&call->p, a->out.now)) {
		queue_again(b, call);
	}
	call->tx.again = false;
	rxw_effects_collect(a, false);
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
	s->tx.bytes -= s->tx.bytes / 16;
	if (s->tx.bytes < bytes)
		s->tx.bytes = bytes;
	bulk = windows > TX_FLOOD && s->tx.bytes > TX_BRIEF;
	if (bulk != atomic_load_explicit(&s->tx.bulk, memory_order_relaxed))
		atomic_store_explicit(&s->tx.bulk, bulk, memory_order_relaxed);
}

/* What two calls cause always has room: control packets leave, and other effects have a list behind. */
static void make_room(struct rxw_effects *a)
{
	if (a->out.ctl_count * 2 <= a->out.ctl_room)
		return;
	rxw_ctl_send(a->shard, a->out.ctl, a->out.ctl_count);
	a->out.ctl_count = 0;
}

struct rxw_shard *rxw_tx_batch(struct rxw_shard *s, struct rxw_effects *a)
{
	struct tx_batch b;
	struct rxw_call *call;

	b.shard = s; /* the arrays need no clearing: count says what is valid */
	b.other = NULL;
	b.count = b.calls = b.messages = 0;
	b.bytes = 0;
	b.joined = rxw_io_gso(s->sock) ? TX_JOINED : 1;
	while (b.count < TX_ENTRIES && b.bytes < TX_BYTES && (call = tx_pop(s))) {
		make_room(a);
		gather(&b, call, a);
	}
	if (b.count) {
		rxw_shard_send(s, b.tx, b.messages, rxw_receiving() != NULL);
		if (b.bytes > TX_BRIEF)
			a->out.now = rxw_now();
	}
	for (unsigned i = 0; i < b.calls; i++) {
		make_room(a);
		settle(&b, i, a);
	}
	note_batch(s, b.bytes);
	return b.other;
}
