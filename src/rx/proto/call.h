/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: state machine, streams, acknowledgements, recovery and timers (rx-protocol 2 to 6). */
#ifndef RXW_PROTO_CALL_H
#define RXW_PROTO_CALL_H

#include "base/recovery.h"
#include "base/rtt.h"
#include "base/mtu.h"
#include "proto/proto.h"

/*
 * What peers take for our window before the first ACK says it (4.1): packets of a stream up to here
 * are accepted, however small the window is.
 */
#define RXW_FIRST_FLIGHT 16u

enum rxw_call_state {
	RXW_CS_NOTINIT,
	RXW_CS_PRECALL,
	RXW_CS_ACTIVE,
	RXW_CS_DALLY,
	RXW_CS_HOLD,
	RXW_CS_RESET
};

/* The parts of its state: send queue, receive queue, acknowledgements, timers. */
#include "proto/parts.h"

/*
 * Protocol half of a call; covered by its connection's lock. Invariants: `state` is DALLY or RESET
 * exactly when nothing more is sent but answers; error != 0 means no more DATA in either direction.
 */
struct rxw_pcall {
	struct rxw_pconn *conn;
	struct rxw_pcall *out_next; /* in the touched list of an out record */
	uint32_t out_events;
	bool out_linked;
	enum rxw_call_state state;
	bool client;
	bool counted; /* in conn->live */
	uint8_t channel;
	uint8_t local_status, peer_status;
	uint32_t number;
	int32_t error;
	enum rxw_origin error_origin;
	struct rxw_sendq tx;
	struct rxw_recvq rx;
	struct rxw_ackstate ack;
	struct rxw_calltimers timer;
	struct rxw_rtt rtt;
	struct rxw_cc cc;
	struct rxw_recovery recovery;
	struct rxw_mtu mtu;
	/* statistics of the call */
	uint64_t bytes_sent, bytes_received, packets_sent, packets_received, retransmitted,
		duplicates;
	uint64_t acks_sent, acks_received;
};

/*
 * It is over, or its connection given up: not counted as live any more. May be said again.
 * Said after its end was counted and its bytes were given back: who sees it gone sees those, too.
 */
void rxw_pcall_uncount(struct rxw_pcall *p);

/* --- application side; all under the connection's lock --- */

/* Server: a handler takes the call. */
void rxw_pcall_attach(struct rxw_pcall *p, struct rxw_out *out);
/*
 * Server: no handler will; its client is told BUSY, and may ask again. False: it is over, or at
 * work already.
 */
bool rxw_pcall_refuse(struct rxw_pcall *p, struct rxw_out *out);

/*
 * Queue a run (its reference goes over). The bytes were sealed for the sequence numbers
 * rxw_pcall_next_seq() gave. `out` gets SEND when the thresholds say that it is worth sending now.
 * -RXW_ECALL when the call is in error, -RXW_ESTATE when the peer's reply began before our request
 * ended (2.1: further writes fail with -5), -RXW_ENOMEM; in each case the run is dropped.
 */
int rxw_pcall_push(struct rxw_pcall *p, const struct rxw_txrun *run, struct rxw_out *out);
/*
 * Size of the datagrams to build now, header included: our own size, the path's and the peer's
 * limits.
 */
uint32_t rxw_pcall_datagram_size(const struct rxw_pcall *p);
/* Sequence number of the next packet pushed. */
uint32_t rxw_pcall_next_seq(const struct rxw_pcall *p);
/* Send what is queued without regard to thresholds, up to here: flush, end of the stream. */
void rxw_pcall_urge(struct rxw_pcall *p, struct rxw_out *out);
/*
 * The same for what the windows let go now: the writer waits for room. What they let go later is
 * held to the thresholds again: else each small ACK would draw a small train, and that a small ACK.
 */
void rxw_pcall_urge_room(struct rxw_pcall *p, struct rxw_out *out);
/*
 * Packets queued and not yet acknowledged; and whether the writer should wait (above high water
 * until below low water).
 */
uint32_t rxw_pcall_queued(const struct rxw_pcall *p);
uint32_t rxw_pcall_ready(const struct rxw_pcall *p); /* of those, packets that never left */
bool rxw_pcall_writable(const struct rxw_pcall *p);
/* High water of this call's queue, where that is less than the endpoint's; in packets. */
void rxw_pcall_limit_queue(struct rxw_pcall *p, uint32_t packets);
/* All that was pushed, LAST_PACKET included, is acknowledged. */
bool rxw_pcall_send_complete(const struct rxw_pcall *p);

/*
 * In-order packets that can be taken now; *ended: the last of them ends the stream (0 and ended:
 * nothing is left).
 */
uint32_t rxw_pcall_readable(const struct rxw_pcall *p, bool *ended);
/* Move up to `room` pieces to the reader. They count as unread until rxw_pcall_consumed(). */
unsigned rxw_pcall_take(struct rxw_pcall *p, struct rxw_rxpiece *pieces, unsigned room);
/*
 * The application is through with `packets` more of those taken (in order). Memory charges are
 * returned; may make a window update due.
 */
void rxw_pcall_consumed(struct rxw_pcall *p, uint32_t packets, struct rxw_out *out);
/*
 * A read returned to the application, or is about to wait: writes a window update if one is worth
 * it (3.6).
 */
void rxw_pcall_read_pause(struct rxw_pcall *p, struct rxw_out *out);

/* End with an error: ABORT to the peer when `tell`. Idempotent: the first error stays. */
void rxw_pcall_fail(struct rxw_pcall *p, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out);
/*
 * The application is done. Client: reply consumed, or the call is in error: DALLY, the final ACK
 * owed within 2 ms. Server: everything was pushed with `last`: HOLD until acknowledged. Server with
 * code != 0: use rxw_pcall_fail().
 */
void rxw_pcall_finish(struct rxw_pcall *p, struct rxw_out *out);

/*
 * --- transmission; under the connection's lock, by whoever claimed the call's transmission (one
 * thread at a time) ---
 */

enum rxw_train_result {
	RXW_TRAIN_READY, /* *train is filled */
	RXW_TRAIN_NONE,	 /* nothing may be sent now: window, nothing queued, thresholds */
	RXW_TRAIN_PACED, /* not before *not_before */
	RXW_TRAIN_BUSY	 /* it lies in a train not yet done: again after rxw_pcall_train_done() */
};
/*
 * The next train of at most max_packets: retransmissions first, then new data. Gives serials,
 * writes headers, records the transmission.
 */
enum rxw_train_result rxw_pcall_train(struct rxw_pcall *p, unsigned max_packets,
				      struct rxw_train *train, uint64_t *not_before,
				      struct rxw_out *out);
/*
 * The system call is over. error 0 or errno; `sent` datagrams of it left. Unsent ones count as
 * never sent (EAGAIN and the like) or as lost.
 */
void rxw_pcall_train_done(struct rxw_pcall *p, const struct rxw_train *train, unsigned sent,
			  int error, struct rxw_out *out);
/* Would rxw_pcall_train() yield something by the thresholds? */
bool rxw_pcall_sendable(const struct rxw_pcall *p, uint64_t now);

/* Earliest time at which rxw_pcall_timer() has something to do, UINT64_MAX = none. */
uint64_t rxw_pcall_deadline(const struct rxw_pcall *p);
void rxw_pcall_timer(struct rxw_pcall *p, struct rxw_out *out);

/*
 * A server call may be released from its channel's memory, a client call is done: nothing is owed
 * any more.
 */
bool rxw_pcall_done(const struct rxw_pcall *p);
/*
 * If it is done and still has its channel: the channel remembers a few words of it instead
 * (`ended`) and drops its reference. The caller has one of its own.
 */
void rxw_pcall_retire(struct rxw_pcall *p);
/* Free queues; before the storage of the call is freed. */
void rxw_pcall_fini(struct rxw_pcall *p);

#endif
