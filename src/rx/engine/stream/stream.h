/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing the streams of a call. No lock held unless stated. */
#ifndef RXW_ENGINE_STREAM_H
#define RXW_ENGINE_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/conn/conn.h"

struct rxw_call;
struct rxw_queue;
struct rxw_queue_event;

#define RXW_READ_PIECES 16

/* Of a call; its reading thread only. */
struct rxw_call_reader {
	struct rxw_rxpiece piece[RXW_READ_PIECES];
	unsigned count, at; /* pieces; the one being read */
	unsigned keep;	    /* the first that was not released: [keep, at) is lent */
	uint16_t packet;    /* packets of the piece that were consumed */
	uint16_t offset;    /* bytes of the current packet that were consumed */
	uint32_t consumed;  /* packets consumed and not yet reported */
	bool ended;	    /* these pieces are the last */
	bool lent;
	bool brief;	/* the thread that serves the call expects its handler to end at once */
	uint64_t bytes; /* read or lent */
};

/* The state of the writing thread. */
enum rxw_writer {
	RXW_WRITER_AWAKE,   /* neither of these */
	RXW_WRITER_WAITING, /* sleeps for room */
	RXW_WRITER_GONE	    /* the stream is complete */
};

/* Of a call; its writing thread only, unless stated. */
struct rxw_call_writer {
	enum rxw_writer state; /* connection's lock */
	struct rxw_buf *buf;
	uint8_t *base;	       /* first datagram of the run being filled */
	uint16_t stride, room; /* bytes of a slot; slots from base on */
	uint16_t full;	       /* complete packets from base on */
	uint16_t fill;	       /* data bytes in the packet after them */
	uint16_t capacity;     /* data bytes of a full packet */
	uint8_t head;	       /* bytes of the security class before the data */
	uint32_t seq;	       /* of the next packet */
	bool window_queued; /* the latest run of this function found a window of packets queued */
	/* of the next buffer, for which there is room; 0: to be determined under the lock */
	uint32_t next_stride;
	uint64_t next_room; /* packets that it may have at most */
	bool unlimited;	      /* results of a deferred stub: they may exceed the send queue */
	bool finished;	      /* LAST_PACKET was queued */
	_Atomic(bool) ending; /* a thread queues the end, or has done so: any thread, once */
	/* stored under the connection's lock: no memory to queue the request's end; a read queues it */
	_Atomic(bool) end_pending;
	size_t reserved; /* bytes of slots that the application fills; they are not committed yet */
	uint64_t bytes; /* written */
	/* a sealed run not queued for lack of memory: it goes first; buf NULL: none */
	struct rxw_txrun kept;
};

/*
 * Connection's lock held, and released while the thread sleeps: wait until `ready`. On a client
 * endpoint a lone waiter takes the receive role. The caller has dispatched its effects.
 */
void rxw_wait(struct rxw_call *call, bool (*ready)(const struct rxw_call *call));
/*
 * Take events out of a queue, and wait for them until `end` (ns; 0: not at all). Returns how many.
 * A lone waiter takes the receive role of the endpoint whose calls use the queue.
 */
unsigned rxw_wait_queue(struct rxw_queue *q, struct rxw_queue_event *events, unsigned max,
			uint64_t end);
/* Server: the call becomes a non-blocking one, on its handler's thread. */
void rxw_stream_defer(struct rxw_call *call);
/* Server: the handler returned `code`. Ends the stream or aborts the call. */
void rxw_stream_finish(struct rxw_call *call, int32_t code);
/* rxw_call_write(), but full packets stay until the next write or flush, or the end of the stream. */
ssize_t rxw_stream_write_more(struct rxw_call *call, const void *data, size_t length);
/* The call ends: what was reserved and not committed is no part of its stream. */
void rxw_stream_cancel_reservation(struct rxw_call *call);
/* Client: the request ends before the first read. -RXW_ESTATE: a reservation is not committed. */
int rxw_stream_half_close(struct rxw_call *call);
/* Read and drop the rest. 0 at the end, or a negative result. */
int rxw_stream_discard(struct rxw_call *call);

#endif
