/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue of a socket, and batches: packets of several calls in one system call. */
#include "engine/objects.h"
#include "engine/lock.h"
#include "engine/observe/trace.h"

#define TX_ENTRIES  128	       /* bursts in one batch */
#define TX_BYTES    (2u << 20) /* and roughly its bytes */
#define TX_SMALL    65536u     /* a smaller batch takes negligible time */
#define TX_QUANTUM  4	       /* bursts of one call before the next call is served */
#define TX_SHORT    45u	       /* packets, one full burst: a call that has sent more is bulk */
#define TX_BRIEF    64	       /* bursts of other calls in a batch, while bulk waits, */
#define TX_BRIEF_BYTES (TX_BYTES / 2) /* and roughly their bytes */
#define TX_JOINED   64		/* small packets in one message: the kernel's limit of segments */
#define JOINED_MOST 64000u	/* bytes of them: below the limit of IPv6 */

struct rxw_shard *rxw_tx_queue(struct rxw_call *call)
{
	struct rxw_shard *s = rxw_home(call->conn);
	struct rxw_txq *q;

	if (atomic_exchange(&call->tx.queued, true))
		return NULL;
	rxw_call_ref(call);
	q = atomic_load_explicit(&call->tx.bulk, memory_order_relaxed) ? &s->tx.bulk : &s->tx.brief;
	rxw_txq_lock(s);
	call->tx.next = NULL;
	*q->tail = call;
	q->tail = &call->tx.next;
	atomic_store(&s->tx.any, true);
	rxw_txq_unlock(s);
	return s;
}

/* `first`: short replies do not wait for bulk, unless half of the batch is theirs. `brief`: nothing else. */
static struct rxw_call *tx_pop(struct rxw_shard *s, bool first, bool brief)
{
	struct rxw_call *call;
	struct rxw_txq *q;

	/* A thread that queues a call after this check looks for a sender after that. */
	if (!atomic_load(&s->tx.any))
		return NULL;
	rxw_txq_lock(s);
	q = brief || (s->tx.brief.head && (first || !s->tx.bulk.head)) ? &s->tx.brief : &s->tx.bulk;
	call = q->head;
	if (call) {
		if (q == &s->tx.bulk)
			atomic_store_explicit(&s->tx.sends_bulk, true, memory_order_relaxed);
		q->head = call->tx.next;
		if (!q->head)
			q->tail = &q->head;
		if (!s->tx.brief.head && !s->tx.bulk.head)
			atomic_store(&s->tx.any, false);
	}
	rxw_txq_unlock(s);
	/* From here on it may be queued again. */
	if (call)
		atomic_store(&call->tx.queued, false);
	return call;
}

/* The packets of one batch, in one system call if possible. */
struct tx_batch {
	struct rxw_shard *shard;
	struct rxw_shard *other; /* a call was queued on that shard, since its home had changed */
	unsigned count, calls, messages;
	unsigned joined; /* packets that may share a message; 1: none */
	uint32_t bytes;
	struct rxw_burst burst[TX_ENTRIES];
	struct iovec iov[TX_ENTRIES]; /* of burst[i] */
	/* burst[i] is segment place[i] of message tx[message[i]] */
	uint8_t message[TX_ENTRIES], place[TX_ENTRIES];
	struct rxw_io_tx tx[TX_ENTRIES];
	bool to_server; /* the latest message is one to a server */
	/* one reference each; bursts first[i] up to first[i + 1] */
	struct rxw_call *call[TX_ENTRIES];
	unsigned first[TX_ENTRIES + 1];
};

static void count_window(struct rxw_shard *s, struct rxw_call *call)
{
	bool receives = rxw_receiving();

	rxw_count(receives ? &s->tx.windows_by_receiver : &s->tx.windows_by_writer, 1);
	rxw_count(receives ? &call->tx.windows_by_receiver : &call->tx.windows_by_writer, 1);
}

static void requeue_call(struct tx_batch *b, struct rxw_call *call)
{
	struct rxw_shard *s = rxw_tx_queue(call);

	if (s && s != b->shard)
		b->other = s;
}

/* May a packet of `c` share the latest message? */
static bool may_share(const struct tx_batch *b, const struct rxw_connection *c)
{
	const struct rxw_io_tx *m = &b->tx[b->messages - 1];
	const struct rxw_path *path = rxw_pconn_path(&c->p);

	if (m->path == path)
		return true;
	/*
	 * The kernel steers a burst by its first packet. Packets of different connections to a
	 * server are never mixed, since the server's listeners share the connections. Packets to
	 * one client may share a message: it usually has one socket, and if it has several, the
	 * packets still find their calls.
	 */
	return !b->to_server && !c->p.client && rxw_addr_equal(&m->path->peer, &path->peer) &&
	       rxw_addr_equal(&m->path->local, &path->local) && m->path->ifindex == path->ifindex;
}

/* Append the latest burst. Small packets of equal size are joined; the last one may be shorter. */
static void add_message(struct tx_batch *b, struct rxw_connection *c)
{
	unsigned i = b->count++;
	const struct rxw_burst *t = &b->burst[i];
	struct rxw_io_tx *m = b->messages ? &b->tx[b->messages - 1] : NULL;

	b->bytes += t->length;
	b->iov[i] = (struct iovec){.iov_base = t->data, .iov_len = t->length};
	if (m && t->count == 1 && m->iov_count < b->joined && !t->fragment && !m->fragment &&
	    m->length == m->iov_count * m->segment && t->length <= m->segment &&
	    m->length + t->length <= JOINED_MOST && m->ect == t->ect && may_share(b, c)) {
		b->place[i] = (uint8_t)m->iov_count++;
		m->length += t->length;
	} else {
		m = &b->tx[b->messages++];
		b->place[i] = 0;
		b->to_server = c->p.client;
		*m = (struct rxw_io_tx){.path = rxw_pconn_path(&c->p),
					.iov = &b->iov[i],
					.iov_count = 1,
					.length = t->length,
					.segment = t->segment,
					.fragment = t->fragment,
					.ect = t->ect};
	}
	b->message[i] = (uint8_t)(m - b->tx);
}

/* Build bursts of one call. Takes its connection's lock, and takes over the queue's reference. */
static void build_bursts(struct tx_batch *b, struct rxw_call *call, struct rxw_effects *a)
{
	struct rxw_connection *c = call->conn;
	unsigned start = b->count, max = rxw_io_max_segments(b->shard->sock);
	bool more = false;
	uint64_t not_before = 0;

	rxw_conn_lock(c);
	if (call->tx.claimed) {
		call->tx.again = true;
	} else {
		while (b->count < TX_ENTRIES && b->count - start < TX_QUANTUM) {
			struct rxw_burst *t = &b->burst[b->count];
			enum rxw_burst_result r =
				rxw_pcall_burst(&call->p, max, t, &not_before, &a->out);

			if (r == RXW_BURST_PACED)
				call->tx.pace_at = not_before;
			if (r != RXW_BURST_READY)
				break;
			add_message(b, c);
		}
		more = b->count - start == TX_QUANTUM || b->count == TX_ENTRIES;
		if (b->count > start) {
			call->tx.claimed = true;
			call->tx.again |= more;
			count_window(b->shard, call);
		} else if (more) {
			requeue_call(b, call);
		}
	}
	rxw_effects_collect(a, false);
	rxw_timer_update(call);
	rxw_conn_unlock(c);
	if (b->count > start) {
		b->call[b->calls] = call;
		b->first[b->calls++] = start;
		b->first[b->calls] = b->count;
	} else {
		rxw_call_unref(call);
	}
}

/*
 * The system call is over: complete the bursts of one call, and queue it again if it has more to
 * send.
 */
static void tx_complete(struct tx_batch *b, unsigned i, struct rxw_effects *a)
{
	struct rxw_call *call = b->call[i];
	struct rxw_connection *c = call->conn;
	bool refused = false;

	rxw_conn_lock(c);
	assert(call->tx.claimed && b->first[i] < b->first[i + 1]);
	for (unsigned k = b->first[i]; k < b->first[i + 1]; k++) {
		const struct rxw_io_tx *tx = &b->tx[b->message[k]];
		unsigned count = b->burst[k].count, sent = count;

		if (tx->error)
			sent = tx->sent_segments > b->place[k] ? tx->sent_segments - b->place[k]
							       : 0;
		if (sent > count)
			sent = count;
		rxw_pcall_burst_done(&call->p, &b->burst[k], sent, sent < count ? tx->error : 0,
				     &a->out);
		refused |= sent < count;
	}
	call->tx.claimed = false;
	atomic_store_explicit(&call->tx.bulk, rxw_pcall_next_seq(&call->p) > TX_SHORT,
			      memory_order_relaxed);
	if (refused) {
		/*
		 * The kernel has no room or refuses the packet. A timer retries: a loop would spin.
		 */
		call->tx.pace_at = a->out.now + RXW_MS;
	} else if (call->tx.again || rxw_pcall_sendable(&call->p, a->out.now)) {
		requeue_call(b, call);
	}
	call->tx.again = false;
	rxw_effects_collect(a, false);
	rxw_timer_update(call);
	rxw_conn_unlock(c);
	rxw_call_unref(call);
}

/* Ensure room for the control packets of two calls. Other effects can spill. */
static void make_control_room(struct rxw_effects *a)
{
	if (a->out.ctl_count * 2 <= a->out.ctl_room)
		return;
	rxw_ctl_send(a->shard, a->out.ctl, a->out.ctl_count);
	a->out.ctl_count = 0;
}

struct rxw_shard *rxw_tx_batch(struct rxw_shard *s, struct rxw_effects *a, bool brief)
{
	struct tx_batch b;
	struct rxw_call *call;

	b.shard = s; /* the arrays need no clearing: count says what is valid */
	b.other = NULL;
	b.count = b.calls = b.messages = 0;
	b.bytes = 0;
	b.joined = rxw_io_gso(s->sock) ? TX_JOINED : 1;
	while (b.count < TX_ENTRIES && b.bytes < TX_BYTES &&
	       (call = tx_pop(s, b.count < TX_BRIEF && b.bytes < TX_BRIEF_BYTES, brief))) {
		make_control_room(a);
		build_bursts(&b, call, a);
	}
	if (b.count) {
		rxw_shard_send(s, b.tx, b.messages, rxw_receiving() != NULL);
		if (b.bytes > TX_SMALL)
			a->out.now = rxw_now();
	}
	for (unsigned i = 0; i < b.calls; i++) {
		make_control_room(a);
		tx_complete(&b, i, a);
	}
	return b.other;
}
