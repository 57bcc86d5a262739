/* SPDX-License-Identifier: BSD-2-Clause */
/* Where bulk data go: the reply of a call; or a test's memory, whose pace the test decides. */
#ifndef FILESERVER_STREAM_H
#define FILESERVER_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rxwire/types.h>

struct fsd_stream;

/*
 * As the functions of the same names in rxwire/call.h; every failure is negative, and then the call
 * is lost.
 */
struct fsd_stream_ops {
	ssize_t (*write)(struct fsd_stream *stream, const void *data, size_t length);
	/* *count is the number of elements that iov has room for, then how many were used. */
	ssize_t (*reserve)(struct fsd_stream *stream, size_t length, struct iovec *iov,
			   unsigned *count);
	int (*commit)(struct fsd_stream *stream, size_t length);
};

struct fsd_stream {
	const struct fsd_stream_ops *ops;
	rxw_call *call; /* of the library's streams */
};

/* A stream into the reply of a call that a service handler was given. */
void fsd_stream_from_call(struct fsd_stream *stream, rxw_call *call);

/* The call was lost while a reply was written; what the handler returns goes nowhere. */
#define FSD_LOST (-1000)

/* All bytes or FSD_LOST. */
int fsd_stream_write(struct fsd_stream *stream, const void *data, size_t length);

#endif
