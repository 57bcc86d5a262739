/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmission. The send queue of a socket and its batches: packets of several calls in one system call. Control
 * packets: those of equal size to one client leave as one message. The send role: its holder sends what is queued.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/observe/trace.h"

#define TX_ENTRIES     128	  /* bursts in one batch */
#define TX_BYTES       (2u << 20) /* and roughly its bytes */
#define TX_SMALL       65536u	  /* a smaller batch takes negligible time */
#define TX_QUANTUM     4	  /* bursts of one call before the next call is served */
#define TX_SHORT       45u	  /* packets, one full burst: a call that has sent more is bulk */
#define TX_BRIEF       64	  /* bursts of other calls in a batch, while bulk waits, */
#define TX_BRIEF_BYTES (TX_BYTES / 2) /* and roughly their bytes */
#define TX_JOINED      64     /* small packets in one message: the kernel's limit of segments */
#define JOINED_MOST    64000u /* bytes of them: below the limit of IPv6 */
#define TX_CTL	       128    /* control packets in one system call */
#define TX_CTL_BYTES   8192   /* their bytes; on the stack, which may be the application's */
#define TX_CTL_LOOK    8      /* recent messages that a packet may join */
#define REST_BATCHES   8      /* that are sent before the receive role is left */
#define TX_STAY 8 /* batches that a thread sends before it returns to its own work */

/* Control packets, assigned to messages. */
struct ctl_batch {
	unsigned count;			    /* messages */
	uint8_t message[TX_CTL];	    /* message of packet i */
	uint8_t packets[TX_CTL];	    /* packets of message m */
	const struct rxw_ctl *head[TX_CTL]; /* its first packet */
	/* packets of a message are contiguous: one piece costs the kernel less than many */
	uint8_t bytes[TX_CTL_BYTES];
};

/*
 * The message that the packet joins. Towards a client: the latest one to its address, if all its
 * packets have the same size, which keeps the order. Towards a server each packet is a message of
 * its own: the kernel steers a burst by its first packet.
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

/* Assign packets to messages, in the order of their first packets. */
static void assign_messages(struct ctl_batch *b, const struct rxw_ctl *ctl, unsigned n, bool joined)
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

/* Our own device cannot carry a probe of this size: no need to wait for an answer. */
static void probe_refused(struct rxw_shard *s, const struct rxw_addr *addr, uint32_t size)
{
	struct rxw_peer *peer;

	rxw_peers_lock(s->ep);
	peer = rxw_peer_find(s->ep->peers.table, addr);
	if (peer)
		atomic_store_explicit(&peer->mtu_refused, size, memory_order_relaxed);
	rxw_peers_unlock(s->ep);
}

static void send_ctl(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned n)
{
	static uint8_t
		zeros[9000]; /* not constant, so that the library's file does not contain it */
	struct iovec iov[TX_CTL][2];
	struct rxw_io_tx tx[TX_CTL];
	struct ctl_batch b;
	size_t used = 0;

	assert(n && n <= TX_CTL);
	assign_messages(&b, ctl, n, n > 1 && rxw_io_gso(s->sock));
	for (unsigned m = 0; m < b.count; m++) {
		const struct rxw_ctl *head = b.head[m];
		size_t pad = head->padding <= sizeof(zeros) ? head->padding : sizeof(zeros);
		bool burst = b.packets[m] > 1; /* joined packets are never padded */

		iov[m][0] = (struct iovec){.iov_base = burst ? b.bytes + used
							     : (uint8_t *)(uintptr_t)head->bytes,
					   .iov_len = burst ? 0 : head->length};
		iov[m][1] = (struct iovec){.iov_base = zeros, .iov_len = pad};
		tx[m] = (struct rxw_io_tx){.path = &head->path,
					   .iov = iov[m],
					   .iov_count = pad ? 2 : 1,
					   .length = (uint32_t)(burst ? 0 : head->length + pad),
					   .segment = burst ? head->length : 0};
		used += burst ? (size_t)b.packets[m] * head->length : 0;
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
	/*
	 * An ACK that the kernel refuses is not queued again: a retransmission or a PING causes
	 * another.
	 */
	if (rxw_shard_send(s, tx, b.count, rxw_receiving() != NULL) == b.count)
		return;
	for (unsigned m = 0; m < b.count; m++)
		if (tx[m].error == EMSGSIZE && b.head[m]->padding)
			probe_refused(s, &b.head[m]->path.peer, tx[m].length);
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

bool rxw_send_init(struct rxw_shard *s)
{
	rxw_mutex_init(&s->tx.lock);
	s->tx.brief.tail = &s->tx.brief.head;
	s->tx.bulk.tail = &s->tx.bulk.head;
	s->effects.ctl = calloc(RXW_CTL_ROOM, sizeof(*s->effects.ctl));
	s->effects.item = calloc(RXW_EFFECTS_ROOM, sizeof(*s->effects.item));
	return s->effects.ctl && s->effects.item;
}

void rxw_send_fini(struct rxw_shard *s)
{
	pthread_mutex_destroy(&s->tx.lock);
	free(s->effects.ctl);
	free(s->effects.item);
}

/* Drops the references of calls that are still queued for transmission. */
static void drain_send_queue(struct rxw_txq *q)
{
	struct rxw_call *call = q->head, *next;

	for (; call; call = next) {
		next = call->tx.next;
		rxw_call_unref(call);
	}
	q->head = NULL;
	q->tail = &q->head;
}

void rxw_send_forget(struct rxw_shard *s)
{
	drain_send_queue(&s->tx.brief);
	drain_send_queue(&s->tx.bulk);
}

static void lock_queues(struct rxw_shard *s)
{
	rxw_mutex_lock(&s->tx.lock, &s->contended[RXW_LOCK_SEND_QUEUE]);
}

struct rxw_shard *rxw_tx_queue(struct rxw_call *call)
{
	struct rxw_shard *s = rxw_home(call->conn);
	struct rxw_txq *q;

	if (atomic_exchange(&call->tx.queued, true))
		return NULL;
	rxw_call_ref(call);
	q = atomic_load_explicit(&call->tx.bulk, memory_order_relaxed) ? &s->tx.bulk : &s->tx.brief;
	lock_queues(s);
	call->tx.next = NULL;
	*q->tail = call;
	q->tail = &call->tx.next;
	if (!atomic_load(&s->tx.any)) /* only changed under the lock */
		atomic_store(&s->tx.any, true);
	pthread_mutex_unlock(&s->tx.lock);
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
	lock_queues(s);
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
	pthread_mutex_unlock(&s->tx.lock);
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

	rxw_count(receives ? &s->windows_by_receiver : &s->windows_by_writer, 1);
	rxw_count(receives ? &call->windows_by_receiver : &call->windows_by_writer, 1);
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
				call->timer.pace_at = not_before;
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
		call->timer.pace_at = a->out.now + RXW_MS;
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

/* Does `s` have queued calls, no sender, and may this thread send? */
static bool needs_sender(const struct rxw_shard *s)
{
	return s != held_back && atomic_load(&s->tx.any) && !atomic_load(&s->tx.busy);
}

static bool may_send(const struct rxw_shard *s)
{
	return needs_sender(s) || (s != held_back && atomic_load(&s->tx.any) &&
				   atomic_load_explicit(&s->tx.sends_bulk, memory_order_relaxed));
}

/*
 * Sends a batch of `s`. The flag `busy` is no lock: a thread that finds it set leaves its call in
 * the queue. The holder checks the queue again after clearing the flag, so that nothing is left
 * behind. Returns false if the flag was set. The peers of a holder that sends bulk are woken meanwhile, and may have its
 * processor for milliseconds: short replies do not wait for that.
 */
static bool send_batch(struct rxw_shard *s)
{
	bool brief = atomic_exchange(&s->tx.busy, true);
	struct rxw_shard *other;
	struct rxw_effects a;

	if (brief && !atomic_load_explicit(&s->tx.sends_bulk, memory_order_relaxed))
		return false;
	rxw_effects_init(&a, s, false);
	other = rxw_tx_batch(s, &a, brief);
	rxw_dispatch(&a);
	rxw_clock_cache_set(0); /* the cached time is stale for the next batch */
	if (!brief) {
		atomic_store_explicit(&s->tx.sends_bulk, false, memory_order_relaxed);
		atomic_store(&s->tx.busy, false);
	}
	if (other)
		rxw_tx_run(other);
	/* The holder may be gone, and some of these calls may have more to send. */
	return !brief || needs_sender(s);
}

/*
 * A thread that sends for many calls must not neglect its own work: a listener its socket, at which
 * it looks after each batch; a writer its stream, of which half a window should be ready; any other
 * thread whatever it does next. Others may queue calls for as long as it sends.
 */
static bool should_stop(const struct rxw_shard *sent, unsigned batches)
{
	struct rxw_shard *receiving = rxw_receiving();
	bool low;

	if (receiving == sent)
		return rxw_on_library_thread(NULL);
	if (batches < TX_STAY)
		return false;
	if (receiving)
		return true;
	if (!writing)
		return true;
	rxw_conn_lock(writing->conn);
	low = rxw_pcall_ready(&writing->p) < rxw_pcall_most(&writing->p) / 2;
	rxw_conn_unlock(writing->conn);
	return low;
}

/* The rest is sent by the next sender, at the latest by the listener. */
static void leave_rest(struct rxw_shard *s)
{
	if (!needs_sender(s))
		return;
	atomic_store(&s->tx.left, true);
	if (atomic_load(&s->role.in_wait))
		rxw_io_wake(s->sock);
}

#define COLLECT_MAX 8

static _Thread_local struct {
	bool on;
	unsigned count;
	struct rxw_shard *shard[COLLECT_MAX];
} collected __attribute__((tls_model("initial-exec")));

/* False: the thread does not collect, or has no room. */
static bool collect_shard(struct rxw_shard *s)
{
	if (!collected.on)
		return false;
	for (unsigned i = 0; i < collected.count; i++)
		if (collected.shard[i] == s)
			return true;
	if (collected.count == COLLECT_MAX)
		return false;
	collected.shard[collected.count++] = s;
	return true;
}

void rxw_tx_collect_begin(void)
{
	collected.on = true;
}

bool rxw_tx_collecting(void)
{
	return collected.on;
}

void rxw_tx_collect_end(void)
{
	collected.on = false;
	for (unsigned i = 0; i < collected.count; i++)
		rxw_tx_run(collected.shard[i]);
	collected.count = 0;
}

void rxw_tx_forget(void)
{
	collected.on = false;
	collected.count = 0;
	held_back = NULL;
	writing = NULL;
}

void rxw_tx_run(struct rxw_shard *s)
{
	unsigned batches = 0;

	if (collect_shard(s))
		return;
	while (may_send(s) && send_batch(s)) {
		if (should_stop(s, ++batches)) {
			leave_rest(s);
			return;
		}
	}
}

bool rxw_pending(const struct rxw_shard *s, unsigned what)
{
	const struct rxw_shard_effects *e = &s->effects;

	return ((what & RXW_PENDING_SEND) && atomic_load(&s->tx.left)) ||
	       ((what & RXW_PENDING_DISPATCH) && (e->callbacks || e->release)) ||
	       ((what & RXW_PENDING_DEFERRED) && e->deferred.count) ||
	       ((what & RXW_PENDING_CTL) && e->ctl_held);
}

bool rxw_tx_leave(struct rxw_shard *s, bool left)
{
	bool before = atomic_load(&s->tx.left);

	if (before != left)
		atomic_store(&s->tx.left, left);
	return before;
}

bool rxw_tx_run_rest(struct rxw_shard *s)
{
	for (unsigned i = 0; i < REST_BATCHES && rxw_tx_leave(s, false); i++)
		rxw_tx_run(s);
	return !rxw_pending(s, RXW_PENDING_SEND);
}
