/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR on the streams of a call: a window of memory that is written when it is full, or follows the
 * bytes read. A request or reply that fits costs one rxw_call_write() or one read.
 */
#include <rxwire/stub.h>

#include "engine/stream/observer.h"

#define DEFAULT_LIMIT ((size_t)256 << 20)
/*
 * Limit of allocations while decoding: a constant, plus a number of bytes for each byte of the
 * limit.
 */
#define BUDGET_BASE ((size_t)64 << 10)
#define BUDGET_RATE 16

/* The cursor is the first member of its stream. */
static struct rxw_rpc_stream *stream_of(struct rxw_xdr *x)
{
	return (struct rxw_rpc_stream *)x;
}

/*
 * The beginning of a reply ends its request (rx-protocol 2.1). That is not an error: the server has
 * read as much as it needs.
 */
static bool reply_has_begun(rxw_call *call, ssize_t written)
{
	return written == -RXW_ECALL && !rxw_call_error(call, NULL) &&
	       rxw_call_events(call) & (RXW_EVENT_READ | RXW_EVENT_DONE);
}

/* Write the window. Only calls that must not wait write less than all of it. */
static bool write_out(struct rxw_rpc_stream *s, bool more)
{
	size_t length = (size_t)(s->xdr.at - s->xdr.start);
	ssize_t n = length ? rxw_call_write_part(s->call, s->xdr.start, length, more) : 0;

	if (n != (ssize_t)length && !reply_has_begun(s->call, n))
		return rxw_xdr_fail(&s->xdr);
	s->xdr.at = s->xdr.start;
	return true;
}

static bool more_to_write(struct rxw_xdr *x, size_t size)
{
	(void)size; /* at most RXW_XDR_BLOCK, which fits an empty window */
	return write_out(stream_of(x), true);
}

/* Without a call all operations fail. */
void rxw_rpc_writer(struct rxw_rpc_stream *s, rxw_call *call)
{
	if (!s)
		return;
	rxw_xdr_writer(&s->xdr, s->window, sizeof(s->window));
	s->xdr.more = more_to_write;
	s->xdr.later = SIZE_MAX;
	s->call = call;
	s->exact = s->ended = false;
	s->least = 0;
	if (call)
		rxw_call_unlimit(call);
}

bool rxw_rpc_flush(struct rxw_rpc_stream *s)
{
	return s && !s->xdr.failed && write_out(s, false);
}

/* Bytes that an exact reader may request: `need`, or more if they belong to the item anyway. */
static size_t most_to_read(size_t need, size_t room, size_t least)
{
	if (least > room)
		least = room;
	return least > need ? least : need;
}

/*
 * Make min(size, window) bytes available at the cursor; later bytes start at the front of the
 * window.
 */
static bool more_to_read(struct rxw_xdr *x, size_t size)
{
	struct rxw_rpc_stream *s = stream_of(x);
	size_t have = (size_t)(x->end - x->at);

	if (size > sizeof(s->window))
		size = sizeof(s->window);
	memmove(s->window, x->at, have);
	x->at = s->window;
	x->end = s->window + have;
	while (have < size) {
		size_t room = sizeof(s->window) - have;
		ssize_t n;

		if (s->exact && room > size - have)
			room = most_to_read(size - have, room, s->least);

		if (room > x->later)
			room = x->later;
		if (s->ended || room < size - have)
			return false;
		n = s->exact ? rxw_call_read(s->call, x->end, room)
			     : rxw_call_read_some(s->call, x->end, room);
		if (n <= 0) {
			s->ended = !n;
			return false;
		}
		x->end += n;
		x->later -= (size_t)n;
		have += (size_t)n;
		s->least -= (size_t)n < s->least ? (size_t)n : s->least;
	}
	return true;
}

void rxw_rpc_reader(struct rxw_rpc_stream *s, rxw_call *call, enum rxw_rpc_reading how,
		    size_t limit)
{
	if (!s)
		return;
	if (!limit)
		limit = DEFAULT_LIMIT;
	rxw_xdr_reader(&s->xdr, s->window, 0);
	if (__builtin_mul_overflow(limit, (size_t)BUDGET_RATE, &s->xdr.budget) ||
	    __builtin_add_overflow(s->xdr.budget, BUDGET_BASE, &s->xdr.budget))
		s->xdr.budget = SIZE_MAX;
	s->xdr.more = more_to_read;
	s->xdr.later = limit;
	s->call = call;
	s->exact = how == RXW_RPC_EXACT;
	s->ended = false;
	s->least = 0;
}

void rxw_rpc_expect(struct rxw_rpc_stream *s, size_t least)
{
	size_t have;

	if (!s)
		return;
	have = (size_t)(s->xdr.end - s->xdr.at);
	s->least = least > have ? least - have : 0;
}
