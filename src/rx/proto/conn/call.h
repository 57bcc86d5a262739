/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: their states, packets received, transmission, timers (rx-protocol 2 to 6). */
#ifndef RXW_PROTO_CALL_H
#define RXW_PROTO_CALL_H

#include "proto/state.h"

/* All functions: with the connection's lock. */

/*
 * --- the application's side; reading: see also proto/recv/recv.h, writing: proto/send/send.h ---
 */

/* Server: a handler takes the call. */
void rxw_pcall_attach(struct rxw_pcall *p, struct rxw_out *out);
/*
 * Queue a run, and take over its reference. Its bytes must be sealed for the sequence numbers that
 * rxw_pcall_next_seq() gave. Posts RXW_OUT_SEND if the thresholds say that it is worth sending now.
 * -RXW_ECALL: the call is in error; -RXW_ESTATE: the peer's reply began before our request ended
 * (2.1: further writes fail with -5); -RXW_EINVAL; -RXW_ENOMEM. After an error the run is dropped.
 */
int rxw_pcall_push(struct rxw_pcall *p, const struct rxw_txrun *run, struct rxw_out *out);
/* A read has returned, or is about to wait: write a window update if one is worth sending (3.6). */
void rxw_pcall_read_pause(struct rxw_pcall *p, struct rxw_out *out);
/* End with an error, with an ABORT to the peer if `tell`. The first error of a call stays. */
void rxw_pcall_fail(struct rxw_pcall *p, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out);
/* The application ends it with an error, and the peer gets the ABORT: any code but 0. */
void rxw_pcall_abort(struct rxw_pcall *p, int32_t code, struct rxw_out *out);
/*
 * The application is done. Client: the reply is consumed, or the call is in error: DALLY, the final
 * ACK is sent within 2 ms. Server: everything was pushed, with `last`: HOLD until acknowledged. To
 * end a server call with an error use rxw_pcall_abort().
 */
void rxw_pcall_finish(struct rxw_pcall *p, struct rxw_out *out);

/* --- transmission; by one thread at a time for each call --- */

/*
 * The next burst of at most max_packets: retransmissions first, then new data. Assigns serials,
 * writes headers, records the transmission.
 */
enum rxw_burst_result rxw_pcall_burst(struct rxw_pcall *p, unsigned max_packets,
				      struct rxw_burst *burst, uint64_t *not_before,
				      struct rxw_out *out);
/*
 * The system call is over: `error` is 0 or an errno, `sent` datagrams were sent. The others count
 * as never sent (EAGAIN and the like) or as lost. Drops the burst's reference.
 */
void rxw_pcall_burst_done(struct rxw_pcall *p, const struct rxw_burst *burst, unsigned sent,
			  int error, struct rxw_out *out);

/* --- timers --- */

/* When rxw_pcall_timer() has something to do; RXW_NEVER = nothing. */
uint64_t rxw_pcall_deadline(const struct rxw_pcall *p);
void rxw_pcall_timer(struct rxw_pcall *p, struct rxw_out *out);

/* --- state --- */

/* Server: the client may send no more to this call. Client: the call is done. Nothing is owed. */
bool rxw_pcall_done(const struct rxw_pcall *p);
/* Server: the call waits for events before it can be given a handler. */
bool rxw_pcall_awaits_attach(const struct rxw_pcall *p);
/* A client sends until its request is complete; a server receives until it replies. */
bool rxw_pcall_sends(const struct rxw_pcall *p);
/*
 * Packets that the peer acknowledged, plus packets consumed: grows while the call makes progress.
 */
uint64_t rxw_pcall_progress(const struct rxw_pcall *p);
/*
 * The call is over, or its connection given up: it no longer counts as live. May be repeated. The
 * release order makes its final counters and returned memory visible to those who see the count
 * drop.
 */
void rxw_pcall_live_dec(struct rxw_pcall *p);
/* Release the queues, before the storage of the call is freed. */
void rxw_pcall_fini(struct rxw_pcall *p);
/*
 * Release up to `most` runs of each queue that the call needs no longer: a peer decides how many there are, and may end
 * the call by any packet. False: others are left; RXW_OUT_RELEASE says that.
 */
bool rxw_pcall_release(struct rxw_pcall *p, unsigned most);
/* Trace event: the application began a call, or a server received its first packet. */
void rxw_event_begin(const struct rxw_pcall *p, const struct rxw_pstats *stats);

/* --- for the connection --- */

void rxw_pcall_init(struct rxw_pcall *p, struct rxw_pconn *c, unsigned channel, uint32_t number,
		    uint64_t now);
/* Post RXW_OUT_DONE, once, if the call is done. */
void rxw_pcall_done_event(struct rxw_pcall *p, struct rxw_out *out);
/* End the call because its channel is reused. `out` may be NULL: no events. */
void rxw_pcall_abandon(struct rxw_pcall *p, struct rxw_out *out);
/* The peer has all that was sent: reply DATA, ACKs, ACKALL or a higher call number say it. */
void rxw_pcall_all_acked(struct rxw_pcall *p, struct rxw_out *out);
/*
 * Server: let the call have its handler, if it may. If its client has to authenticate first, sets
 * auth.wanted of the connection; if its address has to be validated first, asks for that.
 */
void rxw_pcall_try_attach(struct rxw_pcall *p, struct rxw_out *out);
/* The address is validated: release what waits for that. */
void rxw_pcall_validated(struct rxw_pcall *p, struct rxw_out *out);
/* The client seems to be at another address: that the old one is unreachable means nothing. */
void rxw_pcall_moving(struct rxw_pcall *p);
/* A PING_RESPONSE has come: the mapping of a NAT outlived the silence before the PING. */
void rxw_pcall_pong(struct rxw_pcall *p);
/* Before a client's move is noted: the silence before it bounds the life of its mapping. */
void rxw_pcall_remapped(struct rxw_pcall *p, uint64_t now);
/* The client has moved, to another address of the same host or to another host. */
void rxw_pcall_moved(struct rxw_pcall *p, bool same_host, struct rxw_out *out);
/*
 * Recompute the deadline after any change; posts RXW_OUT_TIMER if it is earlier. `out` may be NULL.
 */
void rxw_pcall_arm(struct rxw_pcall *p, struct rxw_out *out);

enum rxw_input_result {
	RXW_INPUT_DONE,	    /* handled: queued, answered, or dropped and counted */
	RXW_INPUT_VERIFY,   /* verify() each packet without the lock, set `verified`, input again */
	RXW_INPUT_VALIDATED /* of rxw_pcall_input(): the address is validated, for all calls */
};
/* A run for this call, of any type but DATA. */
enum rxw_input_result rxw_pcall_input(struct rxw_pcall *p, const struct rxw_rxrun *run,
				      struct rxw_out *out);
/* A run of DATA for this call. */
enum rxw_input_result rxw_pcall_input_data(struct rxw_pcall *p, const struct rxw_rxrun *run,
					   struct rxw_out *out);

/* The most packets in flight: 255, or as many as the peer allows beyond that. */
static inline uint32_t rxw_pcall_most(const struct rxw_pcall *p)
{
	return rxw_min32(p->conn->params->window, rxw_max32(p->tx.window, RXW_MAX_ACKS));
}

#endif
