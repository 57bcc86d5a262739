/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: four channels, checks on packets received, errors (rx-protocol 1.8, 2). */
#ifndef RXW_PROTO_CONNECTION_H
#define RXW_PROTO_CONNECTION_H

#include "proto/call.h"
#include "proto/peer.h"
#include "proto/proto.h"
#include "proto/security.h"

/*
 * What a channel remembers of a call that is over: enough to answer what may still come of it, so
 * that the storage of the call can be given back. Its number is the channel's highest.
 */
struct rxw_ended {
	uint8_t state;	/* NOTINIT: nothing; DALLY; RESET: ended by an error */
	uint8_t reason; /* DALLY: of the ACK that is owed */
	uint8_t rwind;
	uint8_t local_status;
	uint16_t mtu;
	bool abort_owed;
	union {
		struct { /* DALLY */
			uint32_t next, highest; /* of the receive queue */
			uint32_t serial;	/* for the owed ACK */
			uint32_t ping_answered;
		};
		struct { /* RESET */
			uint64_t aborted;
			int32_t error;
		};
	};
};

/*
 * Protocol half of a connection. Everything below `lock-free` is covered by the lock of whoever
 * embeds this structure; floor 1 itself takes none.
 */
struct rxw_pconn {
	/* fixed at creation */
	const struct rxw_params *params;
	const struct rxw_proto_ops *ops;
	struct rxw_peer *peer; /* one reference */
	struct rxw_path path;  /* where answers go, and from which address */
	uint32_t epoch, cid;   /* channel bits 0 */
	uint16_t service;
	uint8_t security_index;
	bool client;
	struct rxw_security *security;
	void *sec; /* what the class keeps for it */
	/* its calls that are neither finished nor in error are counted here, too; NULL: nowhere */
	_Atomic(uint32_t) *live;
	uint64_t dead, idle, hard;   /* ns; for calls begun from now on */
	struct rxw_pconn *hash_next; /* conntable's lock, as the next three */
	/* Of the same address: the first is in the chain of its address, the others behind it. */
	struct rxw_pconn *peer_next, *peer_prev, *peer_chain;
	/* lock-free: none; all below by the connection's lock */
	uint32_t serial; /* last one given */
	int32_t error;	 /* != 0: connection error, remembered */
	enum rxw_origin error_origin;
	/* the call of a channel, one reference each; NULL: none, or over and kept as `ended` */
	struct rxw_pcall *channel[4];
	struct rxw_ended ended[4];
	uint32_t number[4];	      /* its highest call number */
	uint32_t claimed[4];	      /* server: those of the good RESPONSE */
	uint64_t busy_until[4];	      /* client: channel drew BUSY */
	uint64_t busy_sent_at;	      /* server: the latest BUSY to a wasteful client */
	/* receive window that the peer last advertised, for new calls */
	uint32_t peer_window;
	bool strict_reach; /* no handler before the address is proven */
	/* server: of the latest PING whose serial nobody else can guess, 0 = none; ns */
	uint32_t proof_serial;
	uint64_t proof_asked;
	uint8_t pongs;	   /* PINGs answered since pong_at */
	uint64_t pong_at;
	/* taken out of its table to make room: the peer's next packet makes a new one */
	bool forgotten;
	uint64_t last_heard, last_sent, error_sent_at;
	struct rxw_budget memory; /* received bytes pinned by its calls */
	uint64_t packets_received, packets_sent, bytes_received, bytes_sent;
	/*
	 * Who the peer is was proven, or need not be; set once. `room` is fixed from then on, and
	 * read without the lock by those who saw `authenticated` under it.
	 */
	bool authenticated;
	uint8_t level, level_min; /* enum rxw_level: what it is; server: what it must be */
	bool auth_busy; /* work of the exchange is under way: no second one */
	struct rxw_security_room room;
	struct rxw_auth_job *auth_job; /* due, and not yet taken */
	struct rxw_auth_job *challenge; /* server: the one outstanding, or NULL */
	uint64_t challenge_at;	  /* next look whether one is to be made or sent again */
	uint64_t challenge_since; /* when a call first wanted one, 0 = none does */
	uint64_t challenge_sent;  /* latest one */
	uint64_t abort_at;	  /* delayed connection ABORT, 0 = none */
	uint64_t refused_at;	  /* server: a good RESPONSE must have come by then (`refused`) */
	int32_t refused;	  /* server: code of the latest wrong RESPONSE, 0 = none */
	unsigned wrong_responses; /* server */
	uint64_t responded_at;	  /* client: latest RESPONSE */
	unsigned challenges;	  /* by timer, less those that a PING asked for */
	unsigned responses;	  /* client: in this second */
	/* many strangers: this one may queue 2 packets until it is proven */
	bool pressed;
	uint8_t ended_owes; /* bit of each channel whose `ended` owes an ACK */
};

/*
 * Fill a zeroed structure. Takes over one reference of `peer`, and takes one of `security`
 * (its conn_create() is called; rxw_pconn_fini() leaves it to the caller to drop it). 0 or a negative result.
 */
int rxw_pconn_init(struct rxw_pconn *c, const struct rxw_params *params,
		   const struct rxw_proto_ops *ops, struct rxw_peer *peer,
		   const struct rxw_path *path, uint32_t epoch, uint32_t cid, uint16_t service,
		   struct rxw_security *security, bool client, uint64_t now);
/* Drop what it holds: channels' calls, peer, security state. */
void rxw_pconn_fini(struct rxw_pconn *c, uint64_t now);

/* Server: the client has proven who it is, or need not; client: always. */
static inline bool rxw_pconn_authenticated(const struct rxw_pconn *c)
{
	return c->authenticated;
}

/* What comes proves nothing, not even that the peer lives, before it is verified. */
static inline bool rxw_pconn_unsure(const struct rxw_pconn *c)
{
	return !c->authenticated || c->security->class.verify != NULL;
}

static inline bool rxw_pconn_must_verify(const struct rxw_pconn *c, const struct rxw_rxrun *run)
{
	return c->security->class.verify != NULL && c->authenticated && !run->verified;
}

static inline bool rxw_pconn_takes_jumbo(const struct rxw_pconn *c)
{
	return c->authenticated && rxw_room_none(&c->room);
}

enum rxw_input_result {
	RXW_INPUT_DONE,	 /* handled: queued, answered, or dropped and counted */
	RXW_INPUT_VERIFY /* verify() each packet without the lock, set `verified`, come again */
};

/*
 * A run of packets for this connection: checks 7 to 16 of 1.8, then the packet's work. Any type but
 * VERSION and DEBUG. ACKs that this makes due are not written before rxw_pconn_batch_end(), but for
 * the immediate ones of 3.6.
 */
enum rxw_input_result rxw_pconn_input(struct rxw_pconn *c, const struct rxw_rxrun *run,
				      struct rxw_out *out);

/*
 * The receive batch is over for this connection: write the merged ACKs. `dry`: nothing more was
 * waiting on the socket.
 */
void rxw_pconn_batch_end(struct rxw_pconn *c, bool dry, struct rxw_out *out);

/*
 * ACKs stayed owed at the last batch end: call it again, dry, when the socket is; else a timer of 1
 * ms writes them.
 */
bool rxw_pconn_owes(const struct rxw_pconn *c);

/*
 * Client: put `call` (zeroed, one reference given to the channel) on a free channel; -RXW_EAGAIN if
 * there is none, -RXW_ECALL if the connection is in error. Sets its number.
 */
int rxw_pconn_begin(struct rxw_pconn *c, struct rxw_pcall *call, uint64_t now);
bool rxw_pconn_has_free_channel(const struct rxw_pconn *c, uint64_t now);

/* End everything with an error; `tell`: send the connection ABORT. */
void rxw_pconn_fail(struct rxw_pconn *c, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out);
/* The connection is given up: final ACKs of calls that owe one leave now. */
void rxw_pconn_close(struct rxw_pconn *c, struct rxw_out *out);
/* An ICMP report about the peer: a hint (6.2). */
void rxw_pconn_icmp(struct rxw_pconn *c, int error, uint32_t mtu, struct rxw_out *out);

/*
 * Timers of the connection itself (CHALLENGE, delayed connection ABORT); calls have their own.
 * UINT64_MAX = none.
 */
uint64_t rxw_pconn_deadline(const struct rxw_pconn *c);
void rxw_pconn_timer(struct rxw_pconn *c, struct rxw_out *out);

/* No call that is not finished (DALLY or none). */
bool rxw_pconn_idle(const struct rxw_pconn *c);

/* --- Table of connections by (role, epoch, cid, address); the caller locks it. --- */

/*
 * Chains of connections by cid, and of one connection of each address by that. `size` is a power of
 * two, not below the count. mark[i] has one of 16 bits for each connection of slot[i]. A table that
 * has become twice as large moves its old slots a few at a time, with each insertion: those from
 * `moved` on are still in the old arrays, the others empty there. old_size is 0 otherwise.
 */
struct rxw_conntable {
	struct rxw_pconn **slot, **peer_slot;
	struct rxw_pconn **old_slot, **old_peer_slot;
	uint16_t *mark, *old_mark;
	unsigned size, old_size, moved, count;
	unsigned clients; /* of the count */
	uint64_t key[2];
};
int rxw_conntable_init(struct rxw_conntable *t, const uint64_t key[2]);
void rxw_conntable_fini(struct rxw_conntable *t);
/* -RXW_ELIMIT: too many connections with this cid. */
int rxw_conntable_insert(struct rxw_conntable *t, struct rxw_pconn *c);
void rxw_conntable_remove(struct rxw_conntable *t, struct rxw_pconn *c);
/*
 * By 2.3: server half: address and port must be equal; client half: the port. *other (may be NULL)
 * is set when connections of the same epoch and cid but another address exist: to the first; more
 * may follow it by hash_next.
 */
struct rxw_pconn *rxw_conntable_find(const struct rxw_conntable *t, bool client, uint32_t epoch,
				     uint32_t cid, const struct rxw_addr *from,
				     struct rxw_pconn **other);
/*
 * The first connection with this address, the others follow by peer_next; NULL: there is none.
 */
struct rxw_pconn *rxw_conntable_of_peer(const struct rxw_conntable *t, const struct rxw_addr *peer);
/*
 * Where `n` ids will be looked for: the first of each one's chain, NULL if none has it. Nothing of
 * them was read: the caller can have them fetched into its cache, all at once.
 */
void rxw_conntable_first(const struct rxw_conntable *t, const uint32_t *cid, unsigned n,
			 struct rxw_pconn **first);
/*
 * To see all connections: chains 0..rxw_conntable_chains()-1, linked by hash_next. Who releases the
 * lock between two of them may miss some or see some twice.
 */
static inline unsigned rxw_conntable_chains(const struct rxw_conntable *t)
{
	return t->size + t->old_size;
}
static inline struct rxw_pconn *rxw_conntable_chain(const struct rxw_conntable *t, unsigned i)
{
	return i < t->size ? t->slot[i] : t->old_slot[i - t->size];
}
/* Any client or server connection with this cid? For drawing unpredictable, unused ids. */
bool rxw_conntable_has_cid(const struct rxw_conntable *t, uint32_t cid);

/* --- Cutting what was received into runs. --- */

/*
 * Cut the bytes of one received train (datagrams of `segment` bytes, the last may be shorter) into
 * runs, from *at on; returns 1 with *run filled and *at moved behind it, 0 at the end. Datagrams
 * below 28 bytes and truncated jumbogram tails are counted and skipped. buf and path are copied
 * into the run.
 */
int rxw_run_next(struct rxw_buf *buf, const struct rxw_path *path, uint32_t length,
		 uint32_t segment, uint32_t *at, struct rxw_jumbo *jumbo, struct rxw_rxrun *run,
		 struct rxw_pstats *stats);

#endif
