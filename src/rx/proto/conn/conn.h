/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: four channels, checks on packets received, errors, their table (rx-protocol 1.8, 2).
 */
#ifndef RXW_PROTO_CONN_H
#define RXW_PROTO_CONN_H

#include "proto/conn/call.h"
#include "proto/state.h"

/*
 * Fill a zeroed structure. Takes over one reference of `peer`, and takes one of `security` (its
 * conn_create() is called; dropping it after rxw_pconn_fini() is left to the caller). 0 or a
 * negative result.
 */
int rxw_pconn_init(struct rxw_pconn *c, const struct rxw_params *params,
		   const struct rxw_proto_ops *ops, struct rxw_peer *peer,
		   const struct rxw_path *path, uint32_t epoch, uint32_t cid, uint16_t service,
		   struct rxw_security *security, bool client, uint64_t now);
/*
 * The connection takes no more part in the protocol: drop the channels' calls and the peer. What
 * tells its id, error and identity is left.
 */
void rxw_pconn_end(struct rxw_pconn *c, uint64_t now);
/* The same, and drop the security state. */
void rxw_pconn_fini(struct rxw_pconn *c, uint64_t now);

/* Server: the client's identity was verified, or need not be. Client: always. */
static inline bool rxw_pconn_authenticated(const struct rxw_pconn *c)
{
	return c->auth.authenticated;
}

/* --- input --- */

/*
 * A run of packets for this connection: checks 7 to 16 of 1.8, then the packet's work. Any type
 * except VERSION and DEBUG. The ACKs that this makes due are written by rxw_pconn_batch_end(),
 * apart from the immediate ones of 3.6. RXW_INPUT_DONE or RXW_INPUT_VERIFY.
 */
enum rxw_input_result rxw_pconn_input(struct rxw_pconn *c, const struct rxw_rxrun *run,
				      struct rxw_out *out);
/*
 * The receive batch is over for this connection: write the merged ACKs. `drained`: the socket is
 * drained.
 */
void rxw_pconn_batch_end(struct rxw_pconn *c, bool drained, struct rxw_out *out);
/*
 * ACKs are still owed: call rxw_pconn_batch_end() again when the socket is drained, or a timer of 1
 * ms.
 */
bool rxw_pconn_owes(const struct rxw_pconn *c);
/* Verified packets: the good ones are input, the others counted. ACKs become due as above. */
void rxw_pconn_input_verified(struct rxw_pconn *c, const struct rxw_rxrun *run,
			      const struct rxw_security_packet *packet, struct rxw_out *out);
/*
 * The connection has just been authenticated: take out the next run that was queued before, to
 * verify it. True: *run has a reference of its buffer for the caller, and no path. The lock must
 * not be released before all were taken.
 */
bool rxw_pconn_take_unverified(struct rxw_pconn *c, struct rxw_rxrun *run);
/* --- a client at another address: move.c --- */
/*
 * Server: a packet came from another address than the connection's. For a live call: ask for proof
 * by a PING, one within two round trips and 100 ms. Returns the code of a call that failed, or 0.
 */
int32_t rxw_pconn_ask(struct rxw_pconn *c, const struct rxw_rxrun *run, struct rxw_out *out);
/* That no proof has come is counted: the connection ends, or another address is asked. */
void rxw_pconn_ask_end(struct rxw_pconn *c, struct rxw_pstats *stats);
/*
 * The packet answers that PING, from the address that was asked, and nothing has arrived meanwhile
 * from where the client was.
 */
bool rxw_pconn_proves(const struct rxw_pconn *c, const struct rxw_rxrun *run);
/*
 * The client is at `path`, of `peer`, which it has proved: that becomes validated. The connection
 * must not be in its table. False: out of memory, or it has moved too often.
 */
bool rxw_pconn_move(struct rxw_pconn *c, struct rxw_peer *peer, const struct rxw_path *path,
		    struct rxw_out *out);

/* An ICMP report about the peer: a hint (6.2). */
void rxw_pconn_icmp(struct rxw_pconn *c, int error, uint32_t mtu, struct rxw_out *out);

/*
 * A job of the exchange was done. Returns the RESPONSE to be sent, which may be larger than a
 * datagram of the path, or NULL.
 */
struct rxw_buf *rxw_pconn_auth_done(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				    struct rxw_out *out);

/* --- calls --- */

/*
 * Client: put `call` (zeroed, with one reference for the channel) on a free channel, and set its
 * number. -RXW_EAGAIN: no channel is free; -RXW_ECALL: the connection failed; -RXW_ELIMIT: used up.
 */
int rxw_pconn_begin(struct rxw_pconn *c, struct rxw_pcall *call, uint64_t now);
bool rxw_pconn_has_free_channel(const struct rxw_pconn *c, uint64_t now);
bool rxw_pconn_used_up(const struct rxw_pconn *c); /* no channel has call numbers left */
/* Server: no handler is available; send BUSY, the client may try again. False: too late. */
bool rxw_pcall_refuse(struct rxw_pcall *p, struct rxw_out *out);
/*
 * If the call is done and still has its channel, the channel remembers a few words of it and drops
 * its reference. The caller has a reference of its own.
 */
void rxw_pcall_retire(struct rxw_pcall *p);

/* End all calls with an error; `tell`: send the ABORT of the connection. */
void rxw_pconn_fail(struct rxw_pconn *c, int32_t code, enum rxw_origin origin, bool tell,
		    struct rxw_out *out);
void rxw_pconn_close(struct rxw_pconn *c, struct rxw_out *out); /* write final ACKs owed */
/* Client: send a VERSION packet every so many ns, for the mapping of a NAT (6.5). 0 = none. */
void rxw_pconn_keep_mapping(struct rxw_pconn *c, uint64_t every, uint64_t now);
bool rxw_pconn_idle(const struct rxw_pconn *c); /* no call is unfinished */
/* Since when (ns; it may be later) none of its calls can begin or end; RXW_NEVER: one can. */
uint64_t rxw_pconn_unused_since(const struct rxw_pconn *c);
/* Timers of the connection, not of its calls: CHALLENGE, delayed ABORT, NAT; RXW_NEVER = none. */
uint64_t rxw_pconn_deadline(const struct rxw_pconn *c);
void rxw_pconn_timer(struct rxw_pconn *c, struct rxw_out *out);

/* --- within the module --- */

/* A PING to another address of the client was sent lately. */
bool rxw_pconn_moving(const struct rxw_pconn *c, uint64_t now);
/* With the connection: frees the paths of its client. */
void rxw_pconn_forget_moves(struct rxw_pconn *c);

/* The channel takes another call: end this one, and drop the channel's reference. */
void rxw_pcall_detach(struct rxw_pcall *p, struct rxw_out *out);
void rxw_pconn_input_challenge(struct rxw_pconn *c, const struct rxw_rxrun *run,
			       struct rxw_out *out);
/* The address is validated: release what waits for that in all calls. */
void rxw_pconn_validated(struct rxw_pconn *c, struct rxw_out *out);
/* Send a CHALLENGE if a call wants one. */
void rxw_pconn_challenge_wanted(struct rxw_pconn *c, struct rxw_out *out);
/* A packet for the call that the channel remembers; the answers, merged per batch; a new call. */
void rxw_finished_input(struct rxw_pconn *c, unsigned channel, const struct rxw_rxrun *run,
			struct rxw_out *out);
/* A new call is over before it exists: the channel remembers the code, and sends the ABORT. */
void rxw_finished_refuse(struct rxw_pconn *c, unsigned channel, uint32_t number, int32_t code,
			 struct rxw_out *out);
void rxw_finished_batch_end(struct rxw_pconn *c, struct rxw_out *out);
static inline void rxw_finished_clear(struct rxw_pconn *c, unsigned channel)
{
	c->finished[channel].state = RXW_CS_NOTINIT;
	c->finished_owes &= (uint8_t) ~(1u << channel);
}

/* --- the table of connections by (role, epoch, cid, address); the caller locks it --- */

/*
 * Chains of connections by cid, and chains of one connection of each address. `size` is a power of
 * two, not below the count. mark[i] has one of 16 bits for each connection of slot[i]. When the
 * table has doubled, each insertion moves a few old slots: those from `moved` on are still in the
 * old arrays, and the others are empty there. old_size is 0 otherwise.
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
 * By 2.3: for a server end, address and port must be equal; for a client end, the port. *other (may
 * be NULL) is set to the first connection with the same epoch and cid but another address; more may
 * follow it in its chain.
 */
struct rxw_pconn *rxw_conntable_find(const struct rxw_conntable *t, bool client, uint32_t epoch,
				     uint32_t cid, const struct rxw_addr *from,
				     struct rxw_pconn **other);
/* The first connection with this address, NULL = none; the others follow by links.peer_next. */
struct rxw_pconn *rxw_conntable_of_peer(const struct rxw_conntable *t, const struct rxw_addr *peer);
/*
 * For walking the table: chains 0..rxw_conntable_chains()-1, linked by links.hash_next. If the lock
 * is released between two of them, connections may be missed or seen twice.
 */
static inline unsigned rxw_conntable_chains(const struct rxw_conntable *t)
{
	return t->size + t->old_size;
}
static inline struct rxw_pconn *rxw_conntable_chain(const struct rxw_conntable *t, unsigned i)
{
	return i < t->size ? t->slot[i] : t->old_slot[i - t->size];
}
/* Does any connection have this cid? For drawing unpredictable, unused ids. */
bool rxw_conntable_has_cid(const struct rxw_conntable *t, uint32_t cid);

#endif
