/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a call and of a connection: one part for each module, which defines the part, states
 * its invariant, and alone changes it. Other modules read it, or call the module. The fields
 * outside of parts belong to call and conn, and each module notes what it sees in `time` and
 * `count`. A module calls only modules below it: core, event, sent, slab, peer < output < auth < recvq <
 * recv < sendq < send < call < conn.
 */
#ifndef RXW_PROTO_STATE_H
#define RXW_PROTO_STATE_H

#include "proto/peer/auth.h"
#include "proto/peer/core.h"
#include "proto/peer/event.h"
#include "proto/peer/output.h"
#include "proto/peer/peer.h"
#include "proto/peer/validation.h"
#include "proto/recv/recv.h"
#include "proto/recv/recvq.h"
#include "proto/send/send.h"
#include "proto/send/sendq.h"
#include "proto/send/sent.h"

enum rxw_call_state {
	RXW_CS_NOTINIT,
	RXW_CS_PRECALL,
	RXW_CS_ACTIVE,
	RXW_CS_DALLY,
	RXW_CS_HOLD,
	RXW_CS_RESET
};

/* Times of a call, ns; 0 = never. Each module notes the events that it sees. */
struct rxw_calltimes {
	uint64_t began, first_sent, last_sent, last_heard, last_moved;
};

/* Statistics of a call. */
struct rxw_callcounts {
	uint64_t bytes_sent, bytes_received, packets_sent, packets_received, retransmitted,
		duplicates;
	uint64_t acks_sent, acks_received;
	/* packets declared lost; loss events; losses that were none; retransmission timeouts */
	uint32_t lost, loss_events, spurious, timeouts;
	/* packets received with CE; reactions to CE that the peer reported */
	uint32_t marks_received, mark_events;
};

/*
 * The call module's timers and limits. Invariant: `deadline` is the earliest time with work to do.
 */
struct rxw_calltimers {
	uint64_t deadline;	   /* RXW_NEVER = none */
	uint64_t ping;		   /* next check for a keepalive; RXW_NEVER = none */
	uint64_t dead, idle, hard; /* limits, ns; 0 = none */
	/*
	 * Keepalives (6.2): the silence after which the next is sent, 0 = as at first; the shortest
	 * silence after which the mapping of a NAT had changed, 0 = none; the silence before the
	 * one that has no answer yet, and its time, 0 = none.
	 */
	uint64_t quiet, broke, asked, asked_at;
	uint64_t unreachable, excused; /* an ICMP report; silence begins then or later; 0 = none */
	uint64_t proof_since;	   /* a handler waits for address validation, 0 = none */
	bool attach_posted;	   /* RXW_OUT_ATTACH was posted */
	bool done_posted;	   /* RXW_OUT_DONE was posted */
};

/*
 * The protocol half of a call; covered by its connection's lock. Invariants: `state` is DALLY or
 * RESET exactly when only answers are sent any more; error != 0 means no more DATA in either
 * direction.
 */
struct rxw_pcall {
	struct rxw_pconn *conn; /* fixed, as are client, channel and number */
	enum rxw_call_state state;
	bool client;
	bool counted; /* in conn->live */
	uint8_t channel;
	uint8_t local_status, peer_status;
	uint32_t number;
	int32_t error;
	enum rxw_origin error_origin;
	struct rxw_outlink out; /* of output, as the next */
	struct rxw_abortstate abort;
	struct rxw_sendq tx;	     /* of sendq and send */
	struct rxw_proof proof;	     /* of send */
	struct rxw_recvq rx;	     /* of recvq */
	struct rxw_ackstate ack;     /* of recv */
	struct rxw_calltimers timer; /* of call */
	struct rxw_calltimes time;
	struct rxw_callcounts count;
	const char *traced; /* of send: phase in the latest trace event; NULL: none */
};

/* The call takes part in the protocol: neither finished nor in error. */
static inline bool rxw_pcall_live(const struct rxw_pcall *p)
{
	return p->state == RXW_CS_PRECALL || p->state == RXW_CS_ACTIVE || p->state == RXW_CS_HOLD;
}

/* DATA of the call may be sent at all. */
static inline bool rxw_pcall_may_send(const struct rxw_pcall *p)
{
	return p->error == 0 && !p->tx.stopped &&
	       (p->state == RXW_CS_ACTIVE || p->state == RXW_CS_HOLD);
}

/*
 * The memory of a call that is over, in its channel: enough to answer late packets, so that the
 * storage of the call can be released. Its number is the channel's highest. Invariant: `state`
 * tells which members are valid.
 */
struct rxw_finished_call {
	uint8_t state; /* NOTINIT: nothing; DALLY; RESET: ended by an error */
	uint8_t local_status;
	union {
		struct { /* DALLY */
			uint16_t mtu;
			uint8_t reason; /* of the ACK that is owed */
			uint8_t rwind;
		};
		int32_t error; /* RESET */
	};
	union {
		struct {			/* DALLY */
			uint32_t next, highest; /* of the receive queue */
			uint32_t serial;	/* for the owed ACK */
			uint32_t ping_answered;
		};
		struct rxw_abortstate abort; /* RESET */
	};
};

/* The links of the connection table; covered by the table's lock. */
struct rxw_tablelinks {
	struct rxw_pconn *hash_next;
	/*
	 * Of one address: the first is in the chain of the address (peer_chain), the others follow
	 * it.
	 */
	struct rxw_pconn *peer_next, *peer_prev, *peer_chain;
};

/* Server: the latest PING to another address of the client, for proof. */
struct rxw_asked {
	uint64_t at;	  /* ns; 0 = none */
	uint64_t address; /* its hash */
	uint32_t serial;  /* only the owner of the address learns it */
};

/* A path to which the client moved. */
struct rxw_moved {
	struct rxw_moved *before;
	uint64_t
		used_at; /* ns: the client came here, or left for another path, the latest of both */
	struct rxw_path path;
};

/* Server: a client that seems to have moved, or has. */
struct rxw_roam {
	struct rxw_asked asked;
	/* the present one; changes under the locks of connection and table, read under neither */
	_Atomic(const struct rxw_path *) path;
	struct rxw_moved *moved; /* other paths than the first, latest first */
};

struct rxw_conncounts {
	uint64_t packets_received, packets_sent, bytes_received, bytes_sent;
};

/*
 * The protocol half of a connection. Its lock is the engine's; this code takes none. Invariants:
 * the channel of a live call is occupied; error != 0 means that all calls are in error.
 */
struct rxw_pconn {
	/* fixed at creation */
	const struct rxw_params *params;
	const struct rxw_proto_ops *ops;
	struct rxw_peer *account;   /* whose memory and threads are used; one reference */
	/* destination of our packets at first, and their source address; see rxw_pconn_path() */
	struct rxw_path path;
	uint32_t epoch, cid;   /* channel bits 0 */
	uint16_t service;
	uint8_t security_index;
	bool client;
	_Atomic(uint32_t) *live; /* its live calls are counted here, too; NULL: nowhere */
	struct rxw_tablelinks links;
	/*
	 * The peer at the destination, one reference, which changes under the locks of connection
	 * and table; and the state of a client that moves, or NULL, which is complete when it is
	 * stored and stays. Paths stay while the connection exists.
	 */
	struct rxw_peer *peer;
	_Atomic(struct rxw_roam *) roam;
	/* everything below is covered by the connection's lock */
	uint64_t dead, idle, hard; /* limits of new calls, ns; 0 = none */
	uint32_t serial;	   /* the last one used */
	int32_t error;
	enum rxw_origin error_origin;
	uint32_t peer_window;	/* receive window last advertised by the peer, for new calls */
	uint32_t peer_max_mtu;	/* largest datagram that its ACKs allow, 0 = unknown */
	uint64_t error_sent_at;	      /* latest ABORT of the connection */
	uint64_t abort_at;	      /* delayed ABORT of the connection, 0 = none */
	uint64_t nat_every, nat_at; /* client: interval of VERSION packets, 0 = none; the next one */
	struct rxw_pcall *channel[4]; /* one reference each; NULL: none, or over (`finished`) */
	struct rxw_finished_call finished[4];
	uint8_t finished_owes;	/* bit of each channel whose `finished` owes an ACK */
	bool validate_first;	/* no handler before the address is validated */
	bool crowded;		/* queue at most 2 packets until the address is validated */
	bool evicted;		/* not in its table: a packet makes a new connection */
	uint32_t number[4];	/* highest call number */
	uint64_t busy_until[4]; /* client: the channel received BUSY */
	uint64_t busy_sent_at;	/* server: the latest BUSY to a wasteful client */
	uint64_t last_heard, last_sent;
	struct rxw_auth auth;	 /* of auth */
	struct rxw_recvshare rx; /* of recvq and recv */
	struct rxw_conncounts count;
};

/* The destination of our packets. Without the lock of connection or table, it may change at once. */
static inline const struct rxw_path *rxw_pconn_path(const struct rxw_pconn *c)
{
	const struct rxw_roam *roam = atomic_load_explicit(&c->roam, memory_order_acquire);

	return roam != NULL ? atomic_load_explicit(&roam->path, memory_order_acquire) : &c->path;
}

#endif
