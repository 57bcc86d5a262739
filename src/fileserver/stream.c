/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams over calls of the library. */
#include "fileserver/stream.h"

#include <string.h>
#include <rxwire/call.h>

static ssize_t call_read(struct fsd_stream *stream, void *data, size_t length)
{
	return rxw_call_read(stream->call, data, length);
}

static ssize_t call_write(struct fsd_stream *stream, const void *data, size_t length)
{
	return rxw_call_write(stream->call, data, length);
}

static ssize_t call_reserve(struct fsd_stream *stream, size_t length, struct iovec *iov,
			    unsigned *count)
{
	return rxw_call_reserve(stream->call, length, iov, count);
}

static int call_commit(struct fsd_stream *stream, size_t length)
{
	return rxw_call_commit(stream->call, length);
}

static const struct fsd_stream_ops call_ops = {
	.read = call_read,
	.write = call_write,
	.reserve = call_reserve,
	.commit = call_commit,
};

void fsd_stream_from_call(struct fsd_stream *stream, rxw_call *call)
{
	socklen_t length = sizeof(stream->peer);

	memset(stream, 0, sizeof(*stream));
	stream->ops = &call_ops;
	stream->call = call;
	rxw_call_peer(call, &stream->peer, &length);
	length = sizeof(stream->local);
	if (rxw_call_local(call, &stream->local, &length) || length == 0)
		stream->local.ss_family = 0;
}

int fsd_stream_write(struct fsd_stream *stream, const void *data, size_t length)
{
	return stream->ops->write(stream, data, length) == (ssize_t)length ? 0 : FSD_LOST;
}
