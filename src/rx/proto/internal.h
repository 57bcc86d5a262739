/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of floor 1 share. Everything here runs under the connection's lock. */
#ifndef RXW_PROTO_INTERNAL_H
#define RXW_PROTO_INTERNAL_H

#include "proto/connection.h"
#include "proto/seen.h"
#include "proto/slab.h"

#define RXW_NEVER UINT64_MAX

static inline uint64_t rxw_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint32_t rxw_min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t rxw_max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline struct rxw_pool *rxw_pcall_pool(const struct rxw_pcall *p)
{
	return p->conn->ops->pool(p->conn);
}

static inline void rxw_pcall_touch(struct rxw_pcall *p, struct rxw_out *out, uint32_t events)
{
	p->out_events |= events;
	if (p->out_linked)
		return;
	p->conn->ops->hold(p);
	p->out_linked = true;
	p->out_next = out->touched;
	out->touched = p;
}

/* The call takes part in the protocol: neither finished nor in error. */
static inline bool rxw_pcall_live(const struct rxw_pcall *p)
{
	return p->state == RXW_CS_PRECALL || p->state == RXW_CS_ACTIVE || p->state == RXW_CS_HOLD;
}

/* call.c */
void rxw_pcall_init(struct rxw_pcall *p, struct rxw_pconn *c, unsigned channel, uint32_t number,
		    uint64_t now);
void rxw_pcall_done_event(struct rxw_pcall *p, struct rxw_out *out);
/*
 * The channel takes another call: nothing more is owed for this one. Drops the channel's reference.
 */
void rxw_pcall_detach(struct rxw_pcall *p, struct rxw_out *out);
/* A server call whose reply is acknowledged: DALLY. */
void rxw_pcall_reply_acked(struct rxw_pcall *p, struct rxw_out *out);
/* Server: give the call its handler if it may have one. */
void rxw_pcall_try_attach(struct rxw_pcall *p, struct rxw_out *out);

/*
 * calltimer.c: the deadline anew after anything changed; tells the caller if it moved to an earlier
 * time.
 */
void rxw_pcall_arm(struct rxw_pcall *p, struct rxw_out *out);
/*
 * The address is asked for a proof, at once if it may be sent a PING and else as soon as it may;
 * *since: the time, never 0. False: the record is full, and nothing was done.
 */
bool rxw_pcall_ask_proof(struct rxw_pcall *p, uint64_t *since, struct rxw_out *out);

/*
 * control.c: a packet without stream data, `body` bytes behind its header. This and the trains of
 * transmit.c are all that leaves a connection, so here it is charged to an address that is not
 * validated (6.7). NULL: the record is full, or the address got three times what it sent.
 */
struct rxw_ctl *rxw_ctl_add(struct rxw_pconn *c, struct rxw_out *out, unsigned type, unsigned flags,
			    unsigned channel, uint32_t call, unsigned status, size_t body);
/* The ABORT of a call, and when it last left: at most one per 100 ms (2.8). */
struct rxw_aborting {
	unsigned channel;
	uint32_t number;
	int32_t error;
	uint8_t status;
	uint64_t aborted; /* ns, 0 = never */
	bool owed;	  /* could not leave: whatever comes next draws it */
};
bool rxw_ctl_abort(struct rxw_pconn *c, struct rxw_aborting *a, struct rxw_out *out);
bool rxw_pcall_write_abort(struct rxw_pcall *p, struct rxw_out *out);
void rxw_pconn_write_abort(struct rxw_pconn *c, struct rxw_out *out);
void rxw_pconn_write_busy(struct rxw_pconn *c, unsigned channel, uint32_t call,
			  struct rxw_out *out);

/* ended.c: a packet for the call that the channel remembers; answers merged per batch; a new call. */
void rxw_ended_input(struct rxw_pconn *c, unsigned channel, const struct rxw_rxrun *run,
		     struct rxw_out *out);
void rxw_ended_batch_end(struct rxw_pconn *c, struct rxw_out *out);
void rxw_ended_forget(struct rxw_pconn *c, unsigned channel);

/* ack.c */
#define RXW_ACK_FRAME 37u /* an ACK without its header and table */
void rxw_ack_init(struct rxw_pcall *p);
/* What every ACK says of our limits; `size`: datagrams that the path is known to carry. */
void rxw_ack_trailer(const struct rxw_pconn *c, uint32_t size, struct rxw_ack *ack);
/* An ACK of what arrived in order below `upto`; false: no room, it stays owed. */
bool rxw_ack_write(struct rxw_pcall *p, unsigned reason, uint32_t serial, uint32_t upto,
		   struct rxw_out *out);
bool rxw_ack_ping(struct rxw_pcall *p, uint32_t size, struct rxw_out *out);
/* May one more PING be answered? Counts it. */
bool rxw_ack_may_pong(struct rxw_pconn *c, struct rxw_out *out);
void rxw_ack_answer_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_out *out);
/*
 * Server: the call is about to be refused. Where its packets were acknowledged they are said to be
 * missing again: 2.9 lets clients ignore the BUSY that follows, and nothing else draws them out.
 */
void rxw_ack_take_back(struct rxw_pcall *p, struct rxw_out *out);
void rxw_ack_owe(struct rxw_pcall *p, unsigned reason, uint32_t serial, bool now);
/* `count` packets from `first` came in order, the first with `serial`. */
void rxw_ack_in_order(struct rxw_pcall *p, uint32_t first, uint32_t count, uint32_t serial,
		      bool requested, bool filled, struct rxw_out *out);
void rxw_ack_out_of_sequence(struct rxw_pcall *p, uint32_t count, uint32_t serial,
			     struct rxw_out *out);
void rxw_ack_batch_end(struct rxw_pcall *p, bool dry, struct rxw_out *out);
void rxw_ack_timer(struct rxw_pcall *p, struct rxw_out *out);
void rxw_ack_consumed(struct rxw_pcall *p, struct rxw_out *out);
/* Reply DATA leaves: it says what the owed ACK would. */
void rxw_ack_forget(struct rxw_pcall *p);

/* recvq.c */
void rxw_recvq_init(struct rxw_recvq *q, const struct rxw_params *params);
void rxw_recvq_clear(struct rxw_pcall *p);
/* The application is through with the stream: let go of what it did not read. */
void rxw_recvq_discard(struct rxw_pcall *p);
bool rxw_recvq_ended(const struct rxw_recvq *q);
/* firstPacket and the window to advertise, brought up to date. */
void rxw_recvq_advance(struct rxw_pcall *p);
/* Fill the ACK table: packets first..highest, at most `room`. Returns the number of entries. */
unsigned rxw_recvq_table(const struct rxw_recvq *q, uint32_t first, uint32_t upto, uint8_t *acks,
			 unsigned room);
/* Packets of a run, [first, first + count) with `skip` packets of it left out in front. */
struct rxw_rxpart {
	uint32_t first, count, skip;
};
bool rxw_recvq_append(struct rxw_pcall *p, const struct rxw_rxrun *run,
		      const struct rxw_rxpart *part);
bool rxw_recvq_later(struct rxw_pcall *p, const struct rxw_rxrun *run,
		     const struct rxw_rxpart *part);
/* Move what has become in order; returns how many packets. */
uint32_t rxw_recvq_absorb(struct rxw_pcall *p);
/* Next piece of [*at, end) that is not yet there; returns its length, 0 at the end. */
uint32_t rxw_recvq_missing(const struct rxw_recvq *q, uint32_t *at, uint32_t end);
/* The connection is authenticated now: see rxw_pconn_take_kept(). */
bool rxw_recvq_take_kept(struct rxw_pcall *p, struct rxw_rxrun *run);

/* sendq.c */
void rxw_sendq_init(struct rxw_sendq *q, uint32_t window, uint64_t now);
void rxw_sendq_clear(struct rxw_pcall *p);
struct rxw_txent *rxw_sendq_entry(const struct rxw_sendq *q, uint32_t seq);
struct rxw_txseg *rxw_sendq_seg(const struct rxw_sendq *q, uint16_t index);
/*
 * Split so that a segment begins at `seq`: its index, or RXW_NO_NODE if memory is out or nothing is
 * there.
 */
uint16_t rxw_sendq_split(struct rxw_pcall *p, uint32_t seq);
void rxw_sendq_set(struct rxw_sendq *q, struct rxw_txseg *s, enum rxw_txstate state);
/* New transmission of never sent packets at nxt. */
bool rxw_sendq_add(struct rxw_pcall *p, uint32_t count, uint32_t serial, uint32_t token,
		   uint64_t now);
void rxw_sendq_free_below(struct rxw_pcall *p, uint32_t first);
int rxw_sendq_repack(struct rxw_pcall *p, uint32_t size);

/* transmit.c */
uint32_t rxw_pcall_cwnd_room(const struct rxw_pcall *p);
/* May DATA of the call go out at all? */
static inline bool rxw_pcall_may_transmit(const struct rxw_pcall *p)
{
	return p->error == 0 && !p->tx.stopped &&
	       (p->state == RXW_CS_ACTIVE || p->state == RXW_CS_HOLD);
}
/* Tell the caller if something can be sent now, else see to it that time makes it so. */
void rxw_pcall_offer(struct rxw_pcall *p, uint32_t events, struct rxw_out *out);

/* ackinput.c */
void rxw_pcall_input_ack(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out);
/* The peer has everything that was sent: reply DATA, ACKALL, a higher call number. */
void rxw_pcall_all_acked(struct rxw_pcall *p, struct rxw_out *out);
/* Declare lost what counts as lost now; `flight`: packets that were in flight before. */
void rxw_pcall_find_losses(struct rxw_pcall *p, uint32_t flight, struct rxw_out *out);

/* callinput.c */
enum rxw_input_result rxw_pcall_input_data(struct rxw_pcall *p, const struct rxw_rxrun *run,
					   struct rxw_out *out);
void rxw_pcall_input_busy(struct rxw_pcall *p, struct rxw_out *out);
void rxw_pcall_input_abort(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out);

/* connauth.c */
int rxw_pconn_auth_init(struct rxw_pconn *c);
void rxw_pconn_auth_fini(struct rxw_pconn *c);
void rxw_pconn_challenge_over(struct rxw_pconn *c);
void rxw_pconn_challenge(struct rxw_pconn *c, bool timer, struct rxw_out *out);
void rxw_pconn_input_challenge(struct rxw_pconn *c, const struct rxw_rxrun *run,
			       struct rxw_out *out);
void rxw_pconn_input_response(struct rxw_pconn *c, const struct rxw_rxrun *run,
			      struct rxw_out *out);
void rxw_pconn_proved(struct rxw_pconn *c, struct rxw_out *out);
/*
 * The client still has to authenticate, and an ACK of so many bytes behind its header would leave
 * too little of what its address may get for a CHALLENGE, without which nothing goes on.
 */
bool rxw_pconn_challenge_first(const struct rxw_pconn *c, size_t body, uint64_t now);

#endif
