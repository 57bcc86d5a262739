/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transmissions of a call and the state of each packet sent. No operation takes time in proportion to the
 * number of packets, apart from those that it changes: a peer decides how the states alternate.
 */
#ifndef RXW_PROTO_SENT_H
#define RXW_PROTO_SENT_H

#include "base/bitmap.h"
#include "base/buf.h"

enum rxw_txstate {
	RXW_TX_FLIGHT,
	RXW_TX_ACKED, /* softly */
	RXW_TX_LOST
};

/* A transmission: consecutive packets that left in one burst. */
struct rxw_txseg {
	uint64_t sent_at;
	uint32_t first, count;
	uint32_t order, serial; /* of its first packet; those of the others follow */
	uint32_t prev_order;	/* of the transmission before, of its first packet; 0 = none */
	uint16_t ent;		/* the run of the send queue that its packets belong to */
	uint16_t left; /* packets that left this host: those after them were refused by it */
	/* for the rate of delivery: rxw_sendq.rate when it was sent, and the flight with it */
	uint64_t delivered_at, began_at;
	uint32_t delivered, flight, began_order; /* began_order: of the packet sent at began_at */
	bool limited;				 /* there was not enough data for the window then */
	bool busy;	/* the burst is not complete: its bytes must not change */
	uint8_t marked; /* enum rxw_ecn_packet */
};

/*
 * A retransmission, and serial and order of its packets before it. A DUPLICATE that names either serial shows that both
 * arrived; `needless` has a bit for each packet of which that is known.
 */
struct rxw_resent {
	uint32_t serial, count, was, order, distance;
	uint64_t needless;
};
#define RXW_RESENT_KEPT 8u

#define RXW_SENT_LEAST	64u /* packets that the first memory has space for */

/*
 * Packets [una, nxt) of the owner's send queue, by sequence number modulo `room`, and the log of their transmissions
 * in the order of time. Invariants: `flight` and `lost` are disjoint and have no other packets; the log has the latest
 * transmission of each packet; low[w] is not later than the order of any packet of word w of `flight`, and low_top
 * the same for 64 words. Orders and serials may wrap around.
 */
struct rxw_sent {
	struct rxw_buf *buf; /* bits and orders; NULL: they are in the first memory */
	uint32_t room;
	uint32_t *order; /* of the latest transmission */
	uint32_t *low, *low_top;
	struct rxw_bitmap flight, lost;
	struct rxw_bitmap once;	   /* was acknowledged, though the peer may have dropped it since */
	struct rxw_bitmap doubted; /* declared lost because of others that arrived, or of time */
	/*
	 * The first memory: `resent`, and bits, orders and log until they grow. NULL: nothing was sent; calls that wait
	 * for a reply to send have no such memory.
	 */
	struct rxw_buf *first;
	struct rxw_resent *resent; /* the latest retransmissions of packets declared lost */
	struct rxw_buf *log_buf;   /* as `buf` */
	struct rxw_txseg *log;
	uint32_t log_room, log_head, log_count;
};

/* Packets that were sent, and are too large for the path: how far a call is with cutting them anew. */
struct rxw_renumber {
	enum {
		RXW_RENUMBER_NONE,
		RXW_RENUMBER_ASKING, /* nothing is sent, and later a PING asks for the peer's state */
		RXW_RENUMBER_READY   /* it was answered: cut packets anew with the next burst */
	} state;
	bool unproven;	 /* nothing of the new size arrived yet: other calls do not know it */
	bool whole;	 /* a request of one packet was: which does the server have? */
	bool single;	 /* the lowest missing packet is too large: no other one is sent */
	uint8_t tries;	 /* PINGs of this size */
	uint8_t in_vain; /* PINGs that were answered in a row, with packet `head` missing */
	uint32_t head;	 /* the lowest missing packet at the latest timeout */
	uint32_t ping;	 /* serial of the latest PING, 0 = none, or answered */
	uint64_t at;	 /* when to ask again */
	/*
	 * [from, to) were given to other bytes; to = 0: none, or all are acknowledged. Nothing beyond is
	 * sent until then, so that no stream can end that has old packets in it.
	 */
	uint32_t from, to;
	uint32_t serial; /* the latest one before that */
};

/* Packets from `first` on that have the same transmission, state and history. */
struct rxw_txpart {
	struct rxw_txseg *seg;
	uint32_t first, count;
	uint32_t order; /* of the first */
	uint8_t state;
	bool never_left, once, doubted;
};

void rxw_sent_init(struct rxw_sent *b);
/* Before the first packet: memory for a few. False: out of memory. */
bool rxw_sent_begin(struct rxw_sent *b, struct rxw_pool *pool);
void rxw_sent_fini(struct rxw_sent *b);
/* Space for `count` packets more than [una, nxt), and one transmission. False: out of memory. */
bool rxw_sent_reserve(struct rxw_sent *b, struct rxw_pool *pool, uint32_t una, uint32_t nxt,
		      uint32_t count);
/* A transmission of packets [first, first + count), for which there is space: they are in flight now. Zeroed otherwise. */
struct rxw_txseg *rxw_sent_add(struct rxw_sent *b, uint32_t first, uint32_t count, uint32_t order,
			       uint32_t serial);
/* Packets are acknowledged softly, or lost. */
void rxw_sent_acked(struct rxw_sent *b, uint32_t first, uint32_t count);
void rxw_sent_lost(struct rxw_sent *b, uint32_t first, uint32_t count, bool doubted);
/* Packets [una, first) are acknowledged for good. */
void rxw_sent_forget(struct rxw_sent *b, uint32_t una, uint32_t first);

/* Packets [from, nxt) count as never sent. */
void rxw_sent_forget_from(struct rxw_sent *b, uint32_t from, uint32_t nxt);
/* Does a burst use the bytes of a packet from `from` on? */
bool rxw_sent_is_busy(const struct rxw_sent *b, uint32_t from);

/* The transmission that has this order, or serial; NULL: none. All of its packets may have been sent again. */
struct rxw_txseg *rxw_sent_find(const struct rxw_sent *b, uint32_t order);
struct rxw_txseg *rxw_sent_find_serial(const struct rxw_sent *b, uint32_t serial);
/* The first transmission of the log of which pred() is false; NULL: none. It is true of none after that. */
struct rxw_txseg *rxw_sent_split(const struct rxw_sent *b,
				 bool (*pred)(const struct rxw_txseg *s, void *arg), void *arg);
enum rxw_txstate rxw_sent_state(const struct rxw_sent *b, uint32_t seq);
/* The first packet of [from, to) that is not acknowledged; `to`: none. */
uint32_t rxw_sent_missing(const struct rxw_sent *b, uint32_t from, uint32_t to);
/* The end of the packets from `seq` on, below `to`, that have the state of the first. */
uint32_t rxw_sent_same(const struct rxw_sent *b, uint32_t seq, uint32_t to);
/* The part that begins with `seq`, up to `to` at most. */
struct rxw_txpart rxw_sent_part(const struct rxw_sent *b, uint32_t seq, uint32_t to);
/* The first packet of [from, to) in flight with an order before `bound`; `to`: none. */
uint32_t rxw_sent_before(struct rxw_sent *b, uint32_t from, uint32_t to, uint32_t bound);
/* The lowest order of a packet in flight. False: none is. */
bool rxw_sent_oldest(struct rxw_sent *b, uint32_t *order);

static inline uint32_t rxw_sent_order(const struct rxw_sent *b, uint32_t seq)
{
	return b->order[seq % b->room];
}

#endif
