/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing the streams of a call: bytes into slots, slots into runs, runs into the send queue. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define MEMORY_PAUSE	  (2 * RXW_MS)
#define MEMORY_WAIT	  (30 * RXW_SEC) /* while other calls release no buffer */
#define QUEUE_MIN	  64		 /* packets */
#define QUEUE_MIN_TIGHT	  12		 /* packets; if half of the memory is used up */
#define PART_OF_FREE	  48
#define QUEUE_UNVALIDATED 32
/*
 * Bytes that all calls over short paths may queue together, or QUEUE_MIN each. They should stay in
 * the caches until they are received.
 */
#define NEAR_MOST	  (4u << 20)

static bool can_write(const struct rxw_call *call)
{
	return call->p.error || rxw_pcall_writable(&call->p);
}

/* Non-blocking writers yield after their quantum, since other jobs wait for the thread. */
static bool may_fill(const struct rxw_call *call)
{
	if ((call->flags & RXW_CALL_NONBLOCK) && rxw_callback_quantum_used(call))
		return false;
	return can_write(call);
}

/* Writes of a short handler, and results of a deferred stub, may exceed the limit of the queue. */
static bool is_unlimited(const struct rxw_call *call)
{
	return (call->is_inline && rxw_receiving()) || call->w.unlimited;
}

/* The address may be spoofed, or the peer drops most of what it requests. */
static bool needs_short_queue(const struct rxw_peer *peer)
{
	uint64_t now = rxw_clock_cached();

	return !rxw_peer_trusted(peer, false, now) || rxw_peer_wasteful(peer, now);
}

/*
 * Connection's lock held. Active calls share three quarters of the engine's memory, so that the
 * first of many streams does not queue it all. Calls that queued more than their share before
 * others came release it slowly if their readers are slow. One call therefore adds at most a part
 * of what is left of the first half. Once that half is used up, a call adds only to a queue of a few
 * packets, and no more than that part of the third quarter. The rest is for small calls and receivers.
 * Not only to an empty queue: peers acknowledge the last packets that they have read after a delay,
 * OpenAFS after 100 ms.
 */
static void limit_sendq(struct rxw_call *call, uint32_t stride)
{
	struct rxw_endpoint *ep = call->conn->ep;
	uint64_t live = atomic_load_explicit(&ep->usage.live, memory_order_relaxed);
	uint64_t all = ep->engine->config.memory, used = rxw_pool_about(ep->engine->pool);
	bool tight = used >= all / 2;
	uint64_t share, more = tight ? 0 : (all / 2 - used) / PART_OF_FREE / stride;
	/* When memory is short, no more than one buffer holds. */
	uint64_t least = tight ? rxw_min64(QUEUE_MIN_TIGHT, RXW_BUF_SIZE / stride) : QUEUE_MIN;
	uint64_t third = used < all / 4 * 3 ? all / 4 * 3 - used : 0; /* what is left of that quarter */

	live = live ? live : 1;
	/*
	 * Data that is queued for a short path waits for processors, not for the path. The less there is, the more of it is
	 * still in a cache when it is sent, and when it is received.
	 */
	share = all / 4 * 3;
	if (rxw_peer_is_near(call->conn->p.peer))
		share = rxw_min64(share, NEAR_MOST);
	share = share / live / stride;
	if (share > more && share > rxw_pcall_queued(&call->p) + more)
		share = rxw_pcall_queued(&call->p) + more;
	if (share < least)
		share = least;
	if (share > QUEUE_UNVALIDATED && !call->p.client && needs_short_queue(call->conn->p.peer))
		share = QUEUE_UNVALIDATED;
	rxw_pcall_limit_queue(&call->p, share > UINT32_MAX ? UINT32_MAX : (uint32_t)share);
	call->w.next_room =
		tight ? rxw_max64(third / PART_OF_FREE / stride, QUEUE_MIN_TIGHT) : UINT64_MAX;
}

/* Connection's lock held. Fewer packets are ready than half of a window, for which they would be held back. */
static bool too_few_ready(const struct rxw_call *call)
{
	uint32_t ready = rxw_pcall_ready(&call->p);

	return ready && ready < rxw_pcall_most(&call->p) / 2;
}

/* Connection's lock held; released meanwhile. Nothing will be added before there is room. */
static void send_ready(struct rxw_call *call, bool waits)
{
	struct rxw_effects a;

	rxw_effects_init(&a, rxw_home(call->conn), false);
	rxw_pcall_flush_window(&call->p, &a.out);
	if (waits)
		call->w.state = RXW_WRITER_WAITING;
	rxw_change_end(&a, call->conn);
	rxw_conn_lock(call->conn);
}

/*
 * Waits for room in the send queue, unless `force`; *stride: size of the datagrams to build. 0,
 * -RXW_EAGAIN, -RXW_EDEADLK or -RXW_ECALL. After a wait, the writer counts as inside write().
 */
static int wait_room(struct rxw_call *call, bool force, uint32_t *stride)
{
	struct rxw_connection *c = call->conn;
	int r = 0;

	rxw_conn_lock(c);
	if (!call->live && rxw_call_is_deferred(call))
		rxw_call_live(call);
	limit_sendq(call, rxw_pcall_datagram_size(&call->p));
	while (!force && !may_fill(call) && !is_unlimited(call)) {
		if (call->flags & RXW_CALL_NONBLOCK)
			r = -RXW_EAGAIN;
		else if (rxw_must_not_wait())
			r = -RXW_EDEADLK;
		if (!r || too_few_ready(call))
			send_ready(call, !r);
		if (r)
			break;
		rxw_wait(call, can_write);
		call->w.state = RXW_WRITER_AWAKE;
		/* A part of the queue was released: there may be memory for more. */
		limit_sendq(call, rxw_pcall_datagram_size(&call->p));
	}
	if (call->p.error)
		r = -RXW_ECALL;
	if (!r)
		*stride = rxw_pcall_datagram_size(&call->p);
	rxw_conn_unlock(c);
	return r;
}

/*
 * No memory: wait for others to release some. False: the call is in error, must not wait or has
 * waited long enough; *until is 0 at first. Meanwhile queued packets are sent: all calls may
 * wait for their buffers.
 */
static bool wait_for_memory(struct rxw_call *call, uint64_t *until)
{
	const struct timespec pause = {.tv_nsec = (long)MEMORY_PAUSE};
	struct rxw_connection *c = call->conn;
	struct rxw_effects a;
	bool error, worker;
	NOT_CANCELLED;

	if ((call->flags & RXW_CALL_NONBLOCK) || rxw_must_not_wait())
		return false;
	if (!*until)
		*until = rxw_now() + MEMORY_WAIT;
	if (rxw_now() >= *until)
		return false;
	rxw_change_begin(&a, c);
	error = call->p.error != 0;
	worker = !error && rxw_worker_blocked(call, RXW_BLOCKED_ON_MEMORY);
	if (!error)
		rxw_pcall_flush_window(&call->p, &a.out);
	rxw_change_end(&a, c);
	if (error)
		return false;
	nanosleep(&pause, NULL);
	if (worker)
		rxw_worker_unblocked();
	return true;
}

/* NULL: no memory, or the call is in error. */
static struct rxw_buf *get_buffer(struct rxw_call *call, size_t small)
{
	struct rxw_pool *pool = rxw_pool_for(rxw_home(call->conn));
	uint64_t until = 0;
	struct rxw_buf *b;

	do
		b = small ? rxw_buf_get_small(pool, small) : rxw_buf_get(pool);
	while (!b && wait_for_memory(call, &until));
	return b;
}

/*
 * Connection's lock held: a non-blocking writer found no memory. No event may release any to this
 * call, so it is told to try again at the next expiry of the timers. Until then room is not
 * reported.
 */
static void mark_starved(struct rxw_call *call)
{
	call->events.starved = true;
	rxw_timer_post_callback(call);
}

static bool in_error(struct rxw_call *call)
{
	bool error;

	rxw_conn_lock(call->conn);
	error = call->p.error != 0;
	rxw_conn_unlock(call->conn);
	return error;
}

/*
 * Provides slots to fill, for at least `length` bytes. A stream that may be one packet gets a buffer of
 * that size, so that a thousand small calls do not hold a thousand large ones.
 */
static int open_slots(struct rxw_call *call, size_t length, bool force)
{
	const struct rxw_security_room *room = &call->conn->p.auth.room;
	uint32_t stride = call->w.next_stride, capacity, slots;

	call->w.next_stride = 0;
	if (!stride) {
		int r = wait_room(call, force, &stride);

		if (r)
			return r;
	}
	capacity = rxw_sealed_capacity(room, stride - RXW_HEADER_SIZE);
	if (!capacity)
		return -RXW_ELIMIT;
	/*
	 * Full packets are contiguous and sealed; the rest of a slot that padding cannot fill is
	 * not used.
	 */
	stride = RXW_HEADER_SIZE + rxw_sealed_size(room, capacity);
	slots = RXW_BUF_SIZE / stride;
	if (call->w.seq == 1 && length <= capacity)
		slots = 1;
	else if (call->w.next_room < slots)
		slots = (uint32_t)call->w.next_room;
	call->w.buf = get_buffer(call, slots < RXW_BUF_SIZE / stride ? slots * stride : 0);
	if (!call->w.buf && in_error(call))
		return -RXW_ECALL;
	if (!call->w.buf && !(call->flags & RXW_CALL_NONBLOCK))
		return -RXW_ENOMEM;
	if (!call->w.buf) {
		rxw_conn_lock(call->conn);
		mark_starved(call);
		rxw_conn_unlock(call->conn);
		return -RXW_EAGAIN;
	}
	call->w.base = call->w.buf->data;
	call->w.stride = (uint16_t)stride;
	call->w.room = (uint16_t)slots;
	call->w.head = room->head;
	call->w.capacity = (uint16_t)capacity;
	call->w.full = call->w.fill = 0;
	return 0;
}

/* Connection's lock held: the handler has returned. */
static void complete_server_call(struct rxw_call *call, uint64_t now)
{
	call->w.state = RXW_WRITER_GONE;
	call->ended = true;
	call->finished = now;
	if (!call->p.error)
		rxw_latency_add(&rxw_home(call->conn)->stats.latency[0], now - call->started);
	rxw_call_unlive(call);
}

/*
 * Takes the connection's lock and queues the run; the caller keeps its buffer. If there is no
 * memory for the entry it waits, as for a buffer.
 */
static int queue_sealed_run(struct rxw_call *call, const struct rxw_txrun *run,
			    struct rxw_effects *a)
{
	struct rxw_connection *c = call->conn;
	uint64_t until = 0;
	bool wait = true;

	for (;;) {
		int r;

		rxw_buf_ref(run->buf);
		rxw_change_begin(a, c);
		r = rxw_pcall_push(&call->p, run, &a->out);
		if (r != -RXW_ENOMEM || !wait)
			return r;
		rxw_conn_unlock(c);
		wait = wait_for_memory(call, &until); /* the next try is the last one */
	}
}

/*
 * Connection's lock held: ends writing. To be called before the packet can be sent, since its reply
 * may cause a callback that ends the call. Returns the buffer that the caller must release.
 */
static struct rxw_buf *finish_writing(struct rxw_call *call)
{
	struct rxw_buf *left = call->w.buf;

	call->w.finished = true;
	call->w.buf = NULL;
	return left;
}

/*
 * Seals the full packets, and with `partial` the packet being filled. *run has a count of 0 if
 * there are none. The remaining slots, and the buffer, stay with the writer until advance_writer().
 */
static int seal_next(struct rxw_call *call, bool partial, bool last, struct rxw_txrun *run)
{
	struct rxw_connection *c = call->conn;
	uint16_t data = call->w.capacity;

	assert(call->w.full <= call->w.room && call->w.fill <= call->w.capacity);
	*run = (struct rxw_txrun){.buf = call->w.buf,
				  .data = call->w.base,
				  .stride = call->w.stride,
				  .count = call->w.full,
				  .last = last,
				  .seq = call->w.seq};
	if (partial && (call->w.fill || last)) {
		run->count++;
		data = call->w.fill;
	}
	if (!run->count)
		return 0;
	run->last_size = (uint16_t)(RXW_HEADER_SIZE + rxw_sealed_size(&c->p.auth.room, data));
	/* Without a lock, one burst at a time. */
	return rxw_run_seal(&c->p, call->p.channel, call->p.number, call->w.seq, run->data,
			    run->stride, run->count, call->w.capacity, data);
}

/* The run was queued or kept: the writer continues after it. */
static void advance_writer(struct rxw_call *call, const struct rxw_txrun *run, bool partial)
{
	assert(run->count <= call->w.room);
	call->w.seq += run->count;
	call->w.base += (size_t)run->count * call->w.stride;
	call->w.room -= run->count;
	call->w.full = 0;
	if (partial)
		call->w.fill = 0;
	if (!call->w.room) {
		rxw_buf_unref(call->w.buf);
		call->w.buf = NULL;
	}
}

/*
 * Like queue_sealed_run(): 0 or a negative result. If there is no memory for its entry, a sealed run is
 * kept, since its bytes were accepted and have sequence numbers: it is queued before any other.
 */
static int queue_or_keep(struct rxw_call *call, const struct rxw_txrun *run, struct rxw_effects *a)
{
	struct rxw_txrun *kept = &call->w.kept;
	int r = queue_sealed_run(call, run, a);

	if (r == -RXW_ENOMEM && !kept->buf) {
		rxw_buf_ref(run->buf);
		*kept = *run;
	} else if (r != -RXW_ENOMEM && kept->buf) {
		rxw_buf_unref(kept->buf);
		kept->buf = NULL;
	}
	if (r == -RXW_ENOMEM && (call->flags & RXW_CALL_NONBLOCK)) {
		mark_starved(call);
		return -RXW_EAGAIN;
	}
	return r;
}

/* Queue the kept run, unless it ends the stream. */
static int push_kept(struct rxw_call *call)
{
	struct rxw_txrun run = call->w.kept;
	struct rxw_effects a;
	int r;

	if (!run.buf || run.last)
		return 0;
	r = queue_or_keep(call, &run, &a);
	rxw_change_end(&a, call->conn);
	return r;
}

/*
 * Connection's lock held, after a run was queued: if there is room for the next one, its writer
 * need not take the lock to check.
 */
static void check_next_room(struct rxw_call *call)
{
	uint32_t stride = rxw_pcall_datagram_size(&call->p);

	call->w.window_queued = rxw_pcall_queued(&call->p) >= rxw_pcall_most(&call->p);
	limit_sendq(call, stride);
	if (may_fill(call) || is_unlimited(call))
		call->w.next_stride = stride;
}

enum push {
	PUSH_PARTIAL = 1, /* the packet being filled, too */
	PUSH_LAST = 2,	  /* the stream ends */
	PUSH_FLUSH = 4,	  /* send everything */
};

/*
 * Moves the full packets to the send queue. -RXW_ENOMEM, and -RXW_EAGAIN of a non-blocking call,
 * lose nothing: the function may be called again.
 */
static int push_packets(struct rxw_call *call, unsigned how)
{
	bool partial = how & PUSH_PARTIAL, last = how & PUSH_LAST, back = false, over;
	struct rxw_connection *c = call->conn;
	struct rxw_buf *left = NULL;
	struct rxw_txrun run;
	struct rxw_effects a;
	int r = push_kept(call);

	if (r)
		return r == -RXW_ESTATE ? -RXW_ECALL : r;
	if (call->w.kept.buf) {
		run = call->w.kept;
		r = queue_or_keep(call, &run, &a);
	} else {
		r = seal_next(call, partial, last, &run);
		if (r) {
			rxw_call_fail(call, RXW_USER_ABORT);
			return r;
		}
		if (run.count) {
			r = queue_or_keep(call, &run, &a);
			advance_writer(call, &run, partial);
		} else {
			rxw_change_begin(&a, c);
		}
	}
	if (!r) {
		/* Packets that wait may have been cut into more, for a path that carries less. */
		call->w.seq = rxw_pcall_next_seq(&call->p);
		if (how & PUSH_FLUSH)
			rxw_pcall_flush(&call->p, &a.out);
		else
			check_next_room(call);
	}
	over = last && r != -RXW_EAGAIN;
	if (last)
		atomic_store_explicit(&call->w.end_pending, !over, memory_order_relaxed);
	if (over) {
		call->w.state = RXW_WRITER_GONE;
		left = finish_writing(call);
		back = call->sleep.received_at != 0;
	}
	if (last && !c->p.client && !r) {
		/*
		 * Before the packet can be sent: the next call of a quick client must not find this
		 * one active.
		 */
		complete_server_call(call, a.out.now);
		rxw_pcall_finish(&call->p, &a.out);
	}
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_buf_unref(left);
	rxw_dispatch(&a);
	if (back)
		rxw_role_reclaim(rxw_home(c));
	return r == -RXW_ESTATE ? -RXW_ECALL : r;
}

/*
 * The application does not know how much of its data was accepted, so it can neither continue nor
 * start over. The call fails, so that both ends see that the stream is incomplete.
 */
static int fail_write(struct rxw_call *call, int r)
{
	if (r != -RXW_ECALL)
		rxw_call_fail(call, RXW_USER_ABORT);
	return r;
}

/*
 * Called before a writing function returns. Full packets may have been held back to fill a batch,
 * but they are not while the window is not full.
 */
static int leave_write(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	bool underfull;

	if (!call->w.full || call->w.window_queued)
		return 0;
	rxw_conn_lock(c);
	underfull = rxw_pcall_queued(&call->p) < rxw_pcall_most(&call->p);
	rxw_conn_unlock(c);
	return underfull ? push_packets(call, 0) : 0;
}

/*
 * 0 or -RXW_ESTATE: the stream ends, or slices of the buffer are lent to the application, which fills
 * them: no other bytes may take their place.
 */
static int check_writable(const struct rxw_call *call)
{
	bool ends = call->w.finished ||
		    atomic_load_explicit(&call->w.end_pending, memory_order_relaxed);

	return ends || call->w.reserved || rxw_call_inherited(call) ? -RXW_ESTATE : 0;
}

void rxw_stream_cancel_reservation(struct rxw_call *call)
{
	call->w.reserved = 0;
}

/* The first free bytes of the open slots; *n: of the same slot, `most` at most. */
static uint8_t *free_bytes(const struct rxw_call *call, size_t most, size_t *n)
{
	assert(call->w.buf && call->w.full < call->w.room);
	*n = call->w.capacity - call->w.fill;
	if (*n > most)
		*n = most;
	return call->w.base + (size_t)call->w.full * call->w.stride + RXW_HEADER_SIZE +
	       call->w.head + call->w.fill;
}

/* `n` of them are data now. */
static void use_bytes(struct rxw_call *call, size_t n)
{
	call->w.bytes += n;
	call->w.fill = (uint16_t)(call->w.fill + n);
	if (call->w.fill < call->w.capacity)
		return;
	call->w.full++;
	call->w.fill = 0;
}

/* Copy up to `length` bytes into the open slots. */
static size_t copy_into_slots(struct rxw_call *call, const uint8_t *data, size_t length)
{
	size_t done = 0;

	while (done < length && call->w.full < call->w.room) {
		size_t n;
		uint8_t *to = free_bytes(call, length - done, &n);

		memcpy(to, data + done, n);
		done += n;
		use_bytes(call, n);
	}
	return done;
}

/* `more`: full packets stay until the next write or the end of the stream. */
static ssize_t write_stream(rxw_call *call, const void *data, size_t length, bool more)
{
	struct rxw_call *before;
	size_t done = 0;
	int r;

	if (!call || (!data && length) || length > SSIZE_MAX)
		return -RXW_EINVAL;
	r = check_writable(call);
	if (r)
		return r;
	before = rxw_tx_writing(call);
	call->w.window_queued = false;
	while (done < length && !r) {
		if (!call->w.buf)
			r = open_slots(call, length - done, false);
		if (r)
			break;
		done += copy_into_slots(call, (const uint8_t *)data + done, length - done);
		if (call->w.full == call->w.room)
			r = push_packets(call, 0);
	}
	if (r)
		leave_write(call);
	else if (!more)
		r = leave_write(call);
	rxw_tx_writing(before);
	if (r == -RXW_EAGAIN && done)
		r = 0;
	if (r && done)
		return fail_write(call, r);
	return r ? r : (ssize_t)done;
}

ssize_t rxw_call_write(rxw_call *call, const void *data, size_t length)
{
	return write_stream(call, data, length, false);
}

ssize_t rxw_stream_write_more(struct rxw_call *call, const void *data, size_t length)
{
	return write_stream(call, data, length, true);
}

/* There are no free bytes: provides slots for `length`. */
static int renew_slots(struct rxw_call *call, size_t length)
{
	struct rxw_call *before = rxw_tx_writing(call);
	int r = 0;

	call->w.window_queued = false;
	if (call->w.buf)
		r = push_packets(call, 0);
	r = r ? r : open_slots(call, length, false);
	leave_write(call);
	rxw_tx_writing(before);
	return r;
}

ssize_t rxw_call_reserve(rxw_call *call, size_t length, struct iovec *iov, unsigned *count)
{
	size_t offered = 0;
	unsigned n = 0;
	uint16_t packet, fill;
	int r;

	if (!call || !iov || !count || !*count || !length)
		return -RXW_EINVAL;
	r = check_writable(call);
	if (r)
		return r;
	if (!call->w.buf || call->w.full == call->w.room) {
		r = renew_slots(call, length);
		if (r)
			return r;
	}
	packet = call->w.full;
	fill = call->w.fill;
	while (n < *count && offered < length && packet < call->w.room) {
		size_t bytes = call->w.capacity - fill;

		if (bytes > length - offered)
			bytes = length - offered;
		iov[n].iov_base = call->w.base + (size_t)packet * call->w.stride + RXW_HEADER_SIZE +
				  call->w.head + fill;
		iov[n++].iov_len = bytes;
		offered += bytes;
		packet++;
		fill = 0;
	}
	*count = n;
	call->w.reserved = offered;
	return (ssize_t)offered;
}

int rxw_call_commit(rxw_call *call, size_t length)
{
	struct rxw_call *before;
	size_t left = length, n;
	int r = 0;

	if (!call || length > call->w.reserved)
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	call->w.reserved = 0;
	if (!length)
		return 0;
	while (left) {
		free_bytes(call, left, &n);
		left -= n;
		use_bytes(call, n);
	}
	before = rxw_tx_writing(call);
	call->w.window_queued = false;
	if (call->w.full == call->w.room)
		r = push_packets(call, 0);
	if (r)
		leave_write(call);
	else
		r = leave_write(call);
	rxw_tx_writing(before);
	if (r == -RXW_EAGAIN)
		r = 0; /* the bytes are accepted and will be queued by the next function */
	return r ? fail_write(call, r) : 0;
}

/* Fills slices from the file. 0 or -RXW_ESYS; *n: bytes, 0 at the end of the file. */
static int read_slices(int fd, off_t offset, const struct iovec *iov, unsigned count, size_t *n)
{
	ssize_t got;
	NOT_CANCELLED;

	do
		got = preadv(fd, iov, (int)count, offset);
	while (got < 0 && errno == EINTR);
	*n = got > 0 ? (size_t)got : 0;
	return got < 0 ? -RXW_ESYS : 0;
}

/* Up to `length` bytes of the file; *n: how many. After an error none was accepted, or the call failed. */
static int send_some(rxw_call *call, int fd, off_t offset, size_t length, size_t *n)
{
	struct iovec iov[64];
	unsigned count = 64;
	ssize_t room = rxw_call_reserve(call, length, iov, &count);
	int r, saved;

	if (room < 0)
		return (int)room;
	r = read_slices(fd, offset, iov, count, n);
	if (!r)
		return rxw_call_commit(call, *n);
	saved = errno;
	rxw_call_commit(call, 0);
	errno = saved;
	return r;
}

ssize_t rxw_call_sendfile(rxw_call *call, int fd, off_t offset, size_t length)
{
	size_t done = 0, n = 1;
	int r, saved;

	if (!call || fd < 0 || offset < 0 || length > SSIZE_MAX)
		return -RXW_EINVAL;
	r = check_writable(call);
	for (; !r && n && done < length; done += n) {
		n = 0;
		r = send_some(call, fd, offset + (off_t)done, length - done, &n);
		if (r)
			break;
	}
	if (!r || (r == -RXW_EAGAIN && done))
		return (ssize_t)done;
	if (!done)
		return r;
	saved = errno;
	r = fail_write(call, r);
	errno = saved;
	return r;
}

/* One packet above the limit is better than a stream without an end. */
static int push_end(struct rxw_call *call)
{
	int r = call->w.buf ? 0 : push_kept(call);

	if (r)
		return r;
	if (!call->w.buf && !call->w.kept.buf) {
		r = open_slots(call, 0, true);
		if (r)
			return r;
	}
	return push_packets(call, PUSH_PARTIAL | PUSH_FLUSH | PUSH_LAST);
}

/* Send the data written so far, with the end of the stream if `last`. 0 or a negative result. */
static int flush_stream(struct rxw_call *call, bool last)
{
	struct rxw_buf *left;
	int r;

	/*
	 * A callback that reads or ends the call may run before the thread that sends the end
	 * returns.
	 */
	if (last ? atomic_exchange(&call->w.ending, true) : call->w.finished)
		return 0;
	r = last ? push_end(call) : push_packets(call, PUSH_PARTIAL | PUSH_FLUSH);
	if (!r)
		return 0;
	rxw_conn_lock(call->conn);
	if (r == -RXW_EAGAIN || !last) {
		call->w.end_pending |= last;
		left = NULL;
	} else {
		call->w.state = RXW_WRITER_GONE;
		left = finish_writing(call);
	}
	rxw_conn_unlock(call->conn);
	rxw_buf_unref(left);
	if (last && r == -RXW_EAGAIN)
		atomic_store(&call->w.ending, false); /* it may be called again */
	else if (last)
		fail_write(call, r);
	return r == -RXW_ESTATE ? -RXW_ECALL : r;
}

/* The packets that are sent may cause a callback on another thread that ends the call meanwhile. */
static int flush_with_ref(rxw_call *call, bool last)
{
	int r;

	if (call->w.reserved)
		return -RXW_ESTATE;
	rxw_call_ref(call);
	r = flush_stream(call, last);
	rxw_call_unref(call);
	return r;
}

int rxw_call_flush(rxw_call *call)
{
	if (!call)
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	return flush_with_ref(call, call->w.end_pending);
}

int rxw_call_send_end(rxw_call *call)
{
	if (!call)
		return -RXW_EINVAL;
	if (!call->p.client || rxw_call_inherited(call))
		return -RXW_ESTATE;
	return flush_with_ref(call, true);
}

int rxw_stream_half_close(struct rxw_call *call)
{
	if (!call->p.client || atomic_load_explicit(&call->w.ending, memory_order_relaxed))
		return 0;
	if (call->w.reserved)
		return -RXW_ESTATE;
	return flush_stream(call, true);
}

void rxw_stream_finish(struct rxw_call *call, int32_t code)
{
	struct rxw_connection *c = call->conn;
	struct rxw_effects a;

	rxw_stream_cancel_reservation(call);
	if (!code) {
		int r = flush_stream(call, true);

		if (!r)
			return;
		code = r == -RXW_ECALL ? RXW_CALL_DEAD : RXW_USER_ABORT;
	}
	rxw_change_begin(&a, c);
	complete_server_call(call, a.out.now);
	rxw_pcall_abort(&call->p, code, &a.out);
	rxw_pcall_finish(&call->p, &a.out);
	rxw_timer_update(call);
	rxw_change_end(&a, c);
}
