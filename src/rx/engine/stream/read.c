/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the streams of a call: pieces of the receive queue, lent or copied. */
#include <limits.h>
#include <string.h>

#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"

static bool has_data(const struct rxw_call *call)
{
	bool ended;

	return call->p.error || rxw_pcall_readable(&call->p, &ended) || ended;
}

/* Packets to verify are work for this thread, too. */
static bool can_read(const struct rxw_call *call)
{
	return rxw_verify_ready(call) || has_data(call);
}

static void drop_piece(struct rxw_rxpiece *piece)
{
	rxw_buf_unref(piece->buf);
	piece->buf = NULL;
}

/*
 * The stream was a single packet and the call is about to end on this thread: the end reports its
 * consumption as well. Not if a handler may run for long: the peer waits for the ACK.
 */
static bool ends_soon(const struct rxw_call *call)
{
	const struct rxw_rxpiece *only = &call->r.piece[0];

	return call->r.ended && call->r.count == 1 && only->count == 1 && only->first_seq == 1 &&
	       (call->p.client || call->r.brief);
}

/*
 * Report consumed packets to the protocol core. With `pause` it may send a window update, also for
 * packets that were reported before.
 */
static void report_consumed(struct rxw_call *call, bool pause)
{
	struct rxw_connection *c = call->conn;
	struct rxw_effects a;

	if ((!call->r.consumed && !pause) || ends_soon(call))
		return;
	rxw_change_begin(&a, c);
	if (call->r.consumed)
		rxw_pcall_consumed(&call->p, call->r.consumed, &a.out);
	call->r.consumed = 0;
	if (pause)
		rxw_pcall_read_pause(&call->p, &a.out);
	rxw_change_end(&a, c);
}

/* The current piece is consumed. */
static void next_piece(struct rxw_call *call)
{
	drop_piece(&call->r.piece[call->r.at++]);
	call->r.keep = call->r.at;
	call->r.packet = call->r.offset = 0;
	report_consumed(call, false);
}

/*
 * Connection's lock held; released meanwhile. Verifies the call's packets on this thread, which
 * saves waking another one.
 */
static void verify_own(struct rxw_call *call)
{
	struct rxw_verify_job *jobs = rxw_verify_take(call, UINT_MAX);

	rxw_conn_unlock(call->conn);
	rxw_verify_and_deliver(call->conn, jobs);
	rxw_conn_lock(call->conn);
}

/* Connection's lock held. Waits for data to read, and verifies it if necessary. */
static void wait_to_read(struct rxw_call *call)
{
	do {
		call->sleep.reading = true;
		rxw_wait(call, can_read);
		call->sleep.reading = false;
		if (rxw_verify_ready(call) && !call->p.error)
			verify_own(call);
	} while (!has_data(call));
}

/* Makes r.piece[r.at] valid. 1: it is; 0: end of stream; -RXW_EAGAIN, -RXW_EDEADLK, -RXW_ECALL. */
static int refill_pieces(struct rxw_call *call, bool wait)
{
	struct rxw_connection *c = call->conn;
	bool ended = false;
	int r;

	if (call->r.at < call->r.count)
		return 1;
	if (call->r.ended)
		return 0;
	rxw_conn_lock(c);
	if (rxw_verify_ready(call) && !has_data(call) && !rxw_receiving())
		verify_own(call);
	if (!has_data(call) && wait) {
		struct rxw_effects a;

		if (call->flags & RXW_CALL_NONBLOCK || (call->is_inline && rxw_receiving())) {
			rxw_conn_unlock(c);
			report_consumed(call, true);
			return -RXW_EAGAIN;
		}
		if (rxw_must_not_wait()) {
			rxw_conn_unlock(c);
			report_consumed(call, true);
			return -RXW_EDEADLK;
		}
		rxw_effects_init(&a, rxw_home(c), false);
		rxw_pcall_read_pause(&call->p, &a.out);
		rxw_change_end(&a, c);
		rxw_conn_lock(c);
		wait_to_read(call);
	}
	call->r.at = call->r.count = call->r.keep = 0;
	if (call->p.error) {
		r = -RXW_ECALL;
	} else {
		call->r.count = rxw_pcall_take(&call->p, call->r.piece, RXW_READ_PIECES);
		call->r.ended = !rxw_pcall_readable(&call->p, &ended) && ended;
		r = call->r.count ? 1 : call->r.ended ? 0 : -RXW_EAGAIN;
	}
	rxw_conn_unlock(c);
	return r;
}

/* The unread data of the current packet. */
static uint8_t *packet_data(const struct rxw_call *call, size_t *length)
{
	const struct rxw_rxpiece *p = &call->r.piece[call->r.at];
	size_t size = call->r.packet + 1 == p->count ? p->last_length : p->length;

	*length = size - call->r.offset;
	return p->data + (size_t)call->r.packet * p->stride + call->r.offset;
}

static void advance_reader(struct rxw_call *call, size_t bytes)
{
	const struct rxw_rxpiece *p = &call->r.piece[call->r.at];
	size_t left;

	packet_data(call, &left);
	assert(bytes <= left);
	call->r.offset = (uint16_t)(call->r.offset + bytes);
	if (bytes < left)
		return;
	call->r.offset = 0;
	call->r.consumed++;
	if (++call->r.packet == p->count)
		next_piece(call);
}

/* The slices lent by the last rxw_call_readv() end here. */
static void reclaim_lent(struct rxw_call *call)
{
	if (!call->r.lent)
		return;
	call->r.lent = false;
	while (call->r.keep < call->r.at)
		drop_piece(&call->r.piece[call->r.keep++]);
	report_consumed(call, true);
}

void rxw_stream_defer(struct rxw_call *call)
{
	call->flags |= RXW_CALL_NONBLOCK;
	call->is_inline = call->r.brief = false;
	/* The peer may wait for the acknowledgement of what a short handler has read. */
	report_consumed(call, true);
	rxw_conn_lock(call->conn);
	rxw_call_relax(call);
	rxw_conn_unlock(call->conn);
}

/* Before a client reads, its request ends. */
static int begin_read(struct rxw_call *call)
{
	int r = rxw_stream_half_close(call);

	reclaim_lent(call);
	/* A reply that began before the request was complete is delivered all the same. */
	return r == -RXW_ECALL ? 0 : r;
}

static ssize_t read_stream(struct rxw_call *call, uint8_t *data, size_t length, bool all)
{
	size_t done = 0;
	int r = begin_read(call);

	if (r)
		return r;
	while (done < length) {
		size_t n;
		const uint8_t *from;

		r = refill_pieces(call, all || !done);
		if (r <= 0)
			break;
		from = packet_data(call, &n);
		if (n > length - done)
			n = length - done;
		if (data)
			memcpy(data + done, from, n);
		done += n;
		advance_reader(call, n);
	}
	call->r.bytes += done;
	report_consumed(call, true);
	if (r == -RXW_EAGAIN && done)
		r = 0;
	/* Part of the data was consumed: reading cannot continue. */
	if (r == -RXW_EDEADLK && done)
		rxw_call_fail(call, RXW_USER_ABORT);
	return r < 0 ? r : (ssize_t)done;
}

static ssize_t check_and_read(rxw_call *call, void *data, size_t length, bool all)
{
	if (!call || (!data && length) || length > SSIZE_MAX)
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	return read_stream(call, data, length, all);
}

ssize_t rxw_call_read(rxw_call *call, void *data, size_t length)
{
	return check_and_read(call, data, length, true);
}

ssize_t rxw_call_read_some(rxw_call *call, void *data, size_t length)
{
	return check_and_read(call, data, length, false);
}

ssize_t rxw_call_readv(rxw_call *call, size_t length, struct iovec *iov, unsigned *count)
{
	size_t lent = 0;
	unsigned n = 0, most;
	int r;

	if (!call || !iov || !count || !*count || !length)
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	most = *count;
	*count = 0;
	r = begin_read(call);
	if (r)
		return r;
	r = refill_pieces(call, true);
	/* Empty packets have no data to lend. */
	while (r == 1) {
		size_t left;

		packet_data(call, &left);
		if (left)
			break;
		advance_reader(call, 0);
		r = refill_pieces(call, true);
	}
	if (r <= 0)
		return r;
	while (n < most && lent < length && call->r.at < call->r.count) {
		size_t bytes, left;

		iov[n].iov_base = packet_data(call, &left);
		bytes = left < length - lent ? left : length - lent;
		iov[n].iov_len = bytes;
		lent += bytes;
		n += bytes != 0;
		call->r.offset = (uint16_t)(call->r.offset + bytes);
		if (bytes < left)
			break;
		call->r.offset = 0;
		call->r.consumed++;
		if (++call->r.packet == call->r.piece[call->r.at].count) {
			call->r.packet = 0;
			call->r.at++; /* its buffer is kept until the slices are released */
		}
	}
	call->r.lent = true;
	call->r.bytes += lent;
	*count = n;
	return (ssize_t)lent;
}

int rxw_stream_discard(struct rxw_call *call)
{
	ssize_t r;

	rxw_stream_cancel_reservation(call);
	do
		r = read_stream(call, NULL, 1u << 20, false);
	while (r > 0);
	return (int)r;
}
