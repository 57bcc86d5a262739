/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output record: what a call into the protocol core leaves to be done. Control packets are
 * written into it, and each call with work to do is linked to it.
 */
#ifndef RXW_PROTO_OUTPUT_H
#define RXW_PROTO_OUTPUT_H

#include "proto/peer/core.h"
#include "proto/peer/event.h"

#define RXW_ACK_FRAME 37u /* an ACK without its header and tables */
/* Bytes of an ACK behind its header. */
static inline uint32_t rxw_ack_size(const struct rxw_ack *ack)
{
	return RXW_ACK_FRAME +
	       (ack->part > 0		    ? 8
		: ack->extended && ack->ecn ? 4
					    : 0) +
	       rxw_min32(ack->count, RXW_MAX_ACKS) + ack->tables * RXW_ACK_TABLE;
}

/* A control packet, complete. */
struct rxw_ctl {
	struct rxw_path path;
	uint16_t length;
	uint16_t padding; /* zero bytes to send after it (MTU probes) */
	bool client;	  /* sent by a client end: the local address need not be fixed */
	uint8_t bytes[RXW_ACK_MAX_SIZE];
};

/* Tasks for a call after its connection's lock was released. */
enum rxw_out_event {
	RXW_OUT_READ = 1, /* wake a reader: enough data, the end of the stream, or an error */
	/* wake a writer: the send queue fell below its low-water mark, or an error */
	RXW_OUT_WRITE = 2,
	RXW_OUT_SEND = 4,   /* rxw_pcall_burst() would yield something */
	RXW_OUT_ATTACH = 8, /* a server call may get its handler now */
	RXW_OUT_DONE = 16,  /* the call is over: finished and acknowledged, or in error */
	RXW_OUT_TIMER = 32, /* its deadline moved to an earlier time */
	RXW_OUT_READ_LATER =
		64, /* readable, below the wake threshold: wake when the socket is drained */
	RXW_OUT_RELEASE = 128, /* queues of the call are to be released: rxw_pcall_release() */
};

/*
 * The output record. The caller provides it, with space for control packets, and handles it after
 * releasing the lock. The calls in `posted` are linked through themselves; the list holds a
 * reference of each (ops->hold), which the caller drops. When the ctl array is full,
 * acknowledgements stay owed; the next end of a batch or the timer tries them again.
 */
struct rxw_out {
	uint64_t now; /* ns, monotonic; set by the caller */
	struct rxw_pstats *stats;
	struct rxw_ctl *ctl;
	unsigned ctl_count, ctl_room;
	struct rxw_pcall *posted;
	struct rxw_pconn *auth; /* a job of the exchange became due on it (proto/peer/auth.h) */
};

/* The part of a call that links it to an output record. Invariant: `events` is 0 unless linked. */
struct rxw_outlink {
	struct rxw_pcall *next;
	uint32_t events; /* enum rxw_out_event */
	bool linked;
};

/* The part of a call that remembers its ABORT. */
struct rxw_abortstate {
	uint64_t at; /* ns, when it was last sent; 0 = never */
	bool owed;   /* it could not be sent; the peer's next packet triggers another try */
};

/* Post events of a call; links the call to the record. */
void rxw_pcall_post_event(struct rxw_pcall *p, struct rxw_out *out, uint32_t events);

/*
 * A new control packet with its header, to be followed by `body` bytes. Control packets and the
 * bursts of the send module are all that a connection sends, so this is where a control packet is
 * charged to an address that is not validated (6.7). NULL: the record is full, or the address has
 * reached three times what it sent.
 */
struct rxw_ctl *rxw_ctl_add(struct rxw_pconn *c, struct rxw_out *out, unsigned type, unsigned flags,
			    unsigned channel, uint32_t call, unsigned status, size_t body);

/* The ABORT of a call; at most one per 100 ms (2.8). */
struct rxw_aborting {
	unsigned channel;
	uint32_t number;
	int32_t error;
	uint8_t status;
	struct rxw_abortstate *state;
};
/* False: not sent. Updates the state. */
bool rxw_ctl_abort(struct rxw_pconn *c, struct rxw_aborting *a, struct rxw_out *out);
/* The same for a call that exists, and for the connection. */
bool rxw_pcall_write_abort(struct rxw_pcall *p, struct rxw_out *out);
void rxw_pconn_write_abort(struct rxw_pconn *c, struct rxw_out *out);
/* Counts a refused call. */
void rxw_pconn_write_busy(struct rxw_pconn *c, unsigned channel, uint32_t call,
			  struct rxw_out *out);
/* A VERSION packet that asks for no answer (6.5). */
void rxw_pconn_write_version(struct rxw_pconn *c, struct rxw_out *out);

#endif
