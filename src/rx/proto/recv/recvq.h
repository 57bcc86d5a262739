/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive queue of a call, and the memory that it pins (rx-protocol 3.4, 3.7). */
#ifndef RXW_PROTO_RECVQ_H
#define RXW_PROTO_RECVQ_H

#include "base/bitmap.h"
#include "proto/peer/core.h"
#include "proto/peer/output.h"
#include "proto/peer/slab.h"

/*
 * Until the first ACK tells them, peers assume that our window has this size (4.1): the first
 * packets of a stream are accepted up to here, however small the window is.
 */
#define RXW_FIRST_FLIGHT 16u

/* Received packets: consecutive, in one buffer. */
struct rxw_rxent {
	struct rxw_buf *buf; /* one reference; NULL: taken by the reader */
	uint8_t *data;	     /* payload of the first packet */
	uint32_t first;
	uint32_t charge; /* bytes charged to the memory limits */
	uint16_t stride, length, last_length, count;
	uint16_t next;
	bool unverified; /* not authenticated yet: whole payloads, with their headers in front */
};

/*
 * Packets received behind a gap, by sequence number modulo `room`. No operation takes time in proportion to their
 * number. Invariants: `have` has their packets, all of them
 * within `room` of rxw_recvq.next; `entry` has the entry of the first and of the last packet of each.
 */
struct rxw_later {
	struct rxw_buf *buf; /* NULL: no packet was behind a gap */
	struct rxw_bitmap have;
	uint16_t *entry;
	uint32_t count; /* entries */
};

/*
 * Growth and shrinking of a wide window, by a measurement that begins with an ACK which moves the
 * right edge, and ends with the first packet that it permitted.
 */
struct rxw_tuning {
	uint64_t at;	    /* ns, when the ACK was written; 0 = no measurement */
	uint64_t least;	    /* ns, the shortest measurement; 0 = none */
	uint32_t edge;	    /* the right edge before */
	uint32_t fresh;	    /* recvq.fresh then */
	uint64_t shrunk_at; /* ns, when memory last was short */
	uint32_t flight;    /* packets that arrive in a round trip, by the latest measurement */
};

/*
 * The receive queue of a call. Invariants: consumed <= taken <= next; hard <= next; the entries of
 * `ready` cover [consumed.., next) without a gap (the first may be partly consumed); those of
 * `later` are above next and not above `highest`, and do not overlap; `pinned` is the sum of all charges.
 */
struct rxw_recvq {
	struct rxw_slab ents;
	uint16_t ready_head, ready_tail, ready_take; /* ready_take: first entry not taken */
	uint16_t unverified; /* the first entry that waits to be taken out for verification */
	uint16_t dead;	     /* stopped: the first entry that is to be released */
	struct rxw_later later;
	/* sequence numbers: next to be consumed, taken, received in order */
	uint32_t consumed, taken, next;
	uint32_t hard;	       /* firstPacket of our ACKs */
	uint32_t highest;      /* highest accepted, 0 = none */
	uint32_t shown;	       /* highest ever acknowledged, if more than `highest` */
	uint32_t last;	       /* seq of LAST_PACKET, 0 = unknown */
	uint32_t verified_to;  /* packets from here on are not verified yet; UINT32_MAX = all are */
	uint32_t window;       /* advertised now */
	uint32_t window_limit; /* the engine's limit below params->window, 0 = none */
	uint32_t grown_at;     /* `next` when the window last grew */
	uint32_t fresh;	       /* packets queued, modulo 2^32 */
	uint32_t rested;       /* the window before a pause, 0 = none */
	uint64_t fresh_at;     /* ns, when the latest ones were received */
	struct rxw_tuning tuning;
	uint32_t edge; /* highest right edge advertised */
	int64_t pinned;
	int64_t grant;	       /* bytes of memory for more than 255 packets (proto/peer/wide.h) */
	uint32_t largest;      /* bytes of the largest packet received */
	uint32_t failed;       /* packets that failed verification since the last good one */
	uint64_t failed_since; /* ns, when the first of them arrived */
	bool stopped;	       /* in error or finished: nothing is queued any more */
	bool stream;	       /* counted as such by the peer */
	uint32_t parts;	       /* ACKs that described a part of the window */
	struct rxw_rxent own[4];
};

/* `now`: ns. */
void rxw_recvq_init(struct rxw_pcall *p, uint64_t now);
void rxw_recvq_fini(struct rxw_pcall *p);
/*
 * How long the receiver of a long stream may leave packets in the socket, ns: a small part of the round trip, in which
 * few packets arrive. 0: the path is short, or nothing is known of it.
 */
uint64_t rxw_recvq_pause(const struct rxw_recvq *q);
/* Stop: nothing is delivered any more. rxw_recvq_release() releases the entries. */
void rxw_recvq_clear(struct rxw_pcall *p);
/* The application has finished with the stream, whatever it did not read. Stops, too. */
void rxw_recvq_discard(struct rxw_pcall *p);
/* Release up to `most` entries of a queue that has stopped. False: others are left. */
bool rxw_recvq_release(struct rxw_pcall *p, unsigned most);
/* Packets wait behind a gap, or for verification. */
static inline bool rxw_recvq_has_later(const struct rxw_recvq *q)
{
	return !q->stopped && (q->later.count > 0 || q->unverified != RXW_NO_NODE);
}
/* The whole stream has arrived. */
bool rxw_recvq_ended(const struct rxw_recvq *q);
/* Update firstPacket and the window to advertise. */
void rxw_recvq_advance(struct rxw_pcall *p, uint64_t now);
/*
 * Fill the table of a plain ACK: packets first..highest, at most `room`. Returns the number of
 * entries.
 */
unsigned rxw_recvq_table(const struct rxw_recvq *q, uint32_t first, uint32_t upto, uint8_t *acks,
			 unsigned room);
/*
 * The same for an extended ACK, which has `first`: all that was received, within `tables` tables.
 * Sets `previous` and the description; `acks` must point to the tables. False: a plain one will do.
 */
bool rxw_recvq_wide(struct rxw_recvq *q, struct rxw_ack *ack, uint8_t *acks, unsigned tables);
/* The right edge to advertise. A wide window begins with what is unread, for which it has memory. */
uint32_t rxw_recvq_edge(const struct rxw_recvq *q);
/* An ACK that moves the right edge to `edge` is written. */
void rxw_recvq_advertised(struct rxw_pcall *p, uint32_t edge, uint64_t now);
/* Packets were received. False: the window would grow if the peer's address were validated. */
bool rxw_recvq_measure(struct rxw_pcall *p, uint64_t now);
/* If nothing has arrived for a while: give the memory of a wide window back. `now`: ns. */
void rxw_recvq_rest(struct rxw_pcall *p, uint64_t now);
/* First sequence number that is not accepted. */
uint32_t rxw_recvq_limit(const struct rxw_pcall *p, uint64_t now);
/* The next gap of [*at, end); sets *at to its beginning and returns its length, 0 = no gap. */
uint32_t rxw_recvq_missing(const struct rxw_recvq *q, uint32_t *at, uint32_t end);
/* Packets of a run: [first, first + count), after the first `skip` packets of the run. */
struct rxw_rxpart {
	uint32_t first, count, skip;
};
/* Queue packets that are next in order, or behind a gap. False: out of memory. */
bool rxw_recvq_append(struct rxw_pcall *p, const struct rxw_rxrun *run,
		      const struct rxw_rxpart *part);
bool rxw_recvq_later(struct rxw_pcall *p, const struct rxw_rxrun *run,
		     const struct rxw_rxpart *part);
/* Move the packets that are in order now from `later` to `ready`. Returns their number. */
uint32_t rxw_recvq_absorb(struct rxw_pcall *p);

/*
 * For rxw_pconn_take_unverified(): the next run that was queued before the connection was
 * authenticated.
 */
bool rxw_recvq_take_unverified(struct rxw_pcall *p, struct rxw_rxrun *run);

/*
 * In-order packets that can be taken now. *ended (may be NULL): the last of them ends the stream;
 * with a result of 0, nothing is left.
 */
uint32_t rxw_pcall_readable(const struct rxw_pcall *p, bool *ended);
/* Move up to `room` pieces to the reader. They count as unread until rxw_pcall_consumed(). */
unsigned rxw_pcall_take(struct rxw_pcall *p, struct rxw_rxpiece *pieces, unsigned room);
/*
 * The application has read `packets` more of those taken, in order. Returns their memory to the
 * budgets; a window update may become due.
 */
void rxw_pcall_consumed(struct rxw_pcall *p, uint32_t packets, struct rxw_out *out);

/* Note the end of the stream, or with 0 that it is unknown. */
void rxw_recvq_set_last(struct rxw_recvq *q, uint32_t seq);
/* Packets failed verification; a packet was verified, or needs no verification. */
void rxw_recvq_note_failed(struct rxw_recvq *q, uint32_t packets, uint64_t now);
void rxw_recvq_note_good(struct rxw_recvq *q);
/* Received bytes that the call pins. */
int64_t rxw_pcall_pinned(const struct rxw_pcall *p);
/* Limit the receive window below params->window; in packets, 0 = no limit. */
void rxw_pcall_limit_window(struct rxw_pcall *p, uint32_t packets);

#endif
