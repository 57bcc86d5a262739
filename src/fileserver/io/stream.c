/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams into the replies of calls. */
#include "fileserver/io/io.h"

#include <errno.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/error.h>
#include <rxwire/stub.h>

static ssize_t result_of(ssize_t n)
{
	return n == -RXW_EAGAIN ? -EAGAIN : n < 0 ? FSD_LOST : n;
}

static ssize_t call_write(struct fsd_stream *stream, const void *data, size_t length)
{
	return result_of(rxw_call_write(stream->call, data, length));
}

/* Bytes that a stub writes are held back until its window is full. */
static ssize_t call_hold(struct fsd_stream *stream, const void *data, size_t length)
{
	const uint8_t *from = data;
	struct rxw_rpc_stream s;

	rxw_rpc_writer(&s, stream->call);
	for (size_t left = length, part; left; from += part, left -= part) {
		part = left < sizeof(s.window) ? left : sizeof(s.window);
		memcpy(s.window, from, part);
		s.xdr.at = s.window + part;
		if (!rxw_rpc_flush(&s))
			return FSD_LOST;
	}
	return (ssize_t)length;
}

static ssize_t call_reserve(struct fsd_stream *stream, size_t length, struct iovec *iov,
			    unsigned *count)
{
	return result_of(rxw_call_reserve(stream->call, length, iov, count));
}

static int call_commit(struct fsd_stream *stream, size_t length)
{
	return rxw_call_commit(stream->call, length);
}

static void report_room(rxw_call *call, unsigned events, void *arg)
{
	const struct fsd_stream *stream = arg;

	(void)call;
	(void)events;
	stream->visit(stream->arg);
}

static int call_watch(struct fsd_stream *stream, void (*visit)(void *arg), void *arg)
{
	stream->visit = visit;
	stream->arg = arg;
	return rxw_call_set_callback(stream->call, report_room, stream);
}

/* If there is room already, the callback runs soon, on a thread of the library. */
static int call_again(struct fsd_stream *stream)
{
	return rxw_call_set_callback(stream->call, report_room, stream);
}

static const struct fsd_stream_ops call_ops = {
	.write = call_write,
	.hold = call_hold,
	.reserve = call_reserve,
	.commit = call_commit,
	.watch = call_watch,
	.again = call_again,
};

void fsd_stream_from_call(struct fsd_stream *stream, rxw_call *call)
{
	stream->ops = &call_ops;
	stream->call = call;
}

int fsd_stream_write(struct fsd_stream *stream, const void *data, size_t length)
{
	return stream->ops->write(stream, data, length) == (ssize_t)length ? 0 : FSD_LOST;
}
