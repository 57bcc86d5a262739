/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Security: classes, runs sealed and verified, and the exchange of CHALLENGE and RESPONSE (7.1).
 * The module changes only a connection's `auth`, and returns to the connection what else follows.
 */
#ifndef RXW_PROTO_AUTH_H
#define RXW_PROTO_AUTH_H

#include <stdatomic.h>

#include <rxwire/security.h>

#include "proto/peer/core.h"
#include "proto/peer/output.h"

/* A class with its keys; shared by services and connections. */
struct rxw_security {
	struct rxw_security_class class; /* fixed; its `size` is that of this structure */
	void *data;
	_Atomic(uint32_t) refs; /* 0: static, not counted */
};

extern struct rxw_security rxw_security_null_class;

struct rxw_auth_job;

/*
 * The security of a connection. Invariants: `authenticated` is set once and never cleared; `room`
 * is fixed from then on, and may be read without the lock by a thread that saw `authenticated`
 * under it; `job` != NULL only if `busy`; challenge_at is meaningful while challenge_since != 0.
 */
struct rxw_auth {
	struct rxw_security *security; /* fixed */
	void *sec;		       /* the class's data for this connection */
	bool authenticated;	       /* the peer's identity was verified, or need not be */
	bool busy;		       /* a job is under way: no second one */
	bool wanted;		       /* server: a call waits for the client to authenticate */
	uint8_t level, level_min; /* enum rxw_level: the actual one; server: the required one */
	struct rxw_security_room room;
	uint16_t challenges; /* sent by timer, less those that PINGs of the client allow */
	uint16_t responses;
	struct rxw_auth_job *job;	/* due, and not taken yet */
	struct rxw_auth_job *challenge; /* server: the outstanding CHALLENGE, or NULL */
	uint64_t challenge_at;		/* when to make one, or to send it again */
	uint64_t challenge_since;	/* when a call first wanted one, 0 = none does */
	uint64_t challenge_sent;	/* the latest one */
	uint64_t refused_at;		/* server: time of the first wrong RESPONSE */
	int32_t refused;	  /* server: code of the latest wrong RESPONSE, 0 = none */
	unsigned wrong, intervals; /* server: wrong RESPONSEs; intervals left until the ABORT */
	uint32_t claimed[4];	  /* server: call numbers of the good RESPONSE */
	uint64_t responded_at;	  /* client: start of the second that `responses` counts */
};

/* Bytes of a sealed payload with `length` bytes of data. */
static inline uint32_t rxw_sealed_size(const struct rxw_security_room *r, uint32_t length)
{
	uint32_t block = r->block ? r->block : 1,
		 size = (r->head + length + block - 1) / block * block;

	return (size < r->least ? r->least : size) + r->tail;
}

/* Most data that fits into a payload of `size` bytes; 0 if none does. */
static inline uint32_t rxw_sealed_capacity(const struct rxw_security_room *r, uint32_t size)
{
	uint32_t block = r->block ? r->block : 1;

	if (size < (uint32_t)r->tail + r->head || size < (uint32_t)r->tail + r->least)
		return 0;
	size = (size - r->tail) / block * block;
	return size > r->head ? size - r->head : 0;
}

/* The class adds nothing to the data. Only then are jumbograms accepted. */
static inline bool rxw_room_none(const struct rxw_security_room *r)
{
	return !r->head && !r->tail && r->block <= 1 && !r->least;
}

/*
 * Seal the packets of a run at `data`, `stride` bytes each, header included: all have `length`
 * bytes of data but the last, which has `last`. Sets the spare words. No lock. 0 or a negative
 * result.
 */
int rxw_run_seal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		 uint8_t *data, uint16_t stride, uint16_t count, uint32_t length, uint32_t last);

/*
 * Packets about to be sent, for the first time or again: seal them again if their key is no longer
 * accepted. `last_size`: size of the last one, header included. With the connection's lock, while
 * no other thread reads or sends these packets. 0 or a negative result.
 */
int rxw_run_reseal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		   uint8_t *data, uint16_t stride, uint16_t count, uint16_t last_size);
/* The data of sealed packets again, and their lengths: behind the class's own bytes. In the same way. */
int rxw_run_unseal(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		   uint8_t *data, uint16_t stride, uint16_t count, uint16_t last_size,
		   uint16_t *length);

#define RXW_VERIFY_MOST 64 /* packets verified by one call */

/*
 * Verify the packets of a run, RXW_VERIFY_MOST at most, without the connection's lock; the verdicts
 * are left in packet[].
 */
void rxw_run_verify(const struct rxw_pconn *c, const struct rxw_rxrun *run,
		    struct rxw_security_packet *packet);
/* The connection accepts jumbograms. */
static inline bool rxw_auth_takes_jumbo(const struct rxw_auth *a)
{
	return a->authenticated && rxw_room_none(&a->room);
}

/* Received packets prove nothing, not even that the peer is alive, before they are verified. */
static inline bool rxw_auth_unsure(const struct rxw_auth *a)
{
	return !a->authenticated || a->security->class.verify != NULL;
}

static inline bool rxw_auth_must_verify(const struct rxw_auth *a, const struct rxw_rxrun *run)
{
	return a->security->class.verify != NULL && a->authenticated && !run->verified;
}

/* --- the exchange: jobs that must not be done under a lock --- */

#define RXW_CHALLENGE_MOST 64u	  /* bytes of a CHALLENGE of ours */
#define RXW_RESPONSE_MOST  16384u /* bytes of a RESPONSE */

enum rxw_auth_work {
	RXW_AUTH_CHALLENGE, /* server: make a CHALLENGE */
	RXW_AUTH_RESPOND,   /* client: make the RESPONSE */
	RXW_AUTH_CHECK	    /* server: check a RESPONSE */
};

/* One at a time per connection; stored in `buf`, followed by the bytes of the packet. */
struct rxw_auth_job {
	struct rxw_buf *buf;   /* holds this structure */
	struct rxw_buf *reply; /* RESPOND: the packet, with space for its header */
	enum rxw_auth_work work;
	uint16_t spare;
	unsigned tries;
	uint32_t calls[4];
	uint32_t size; /* of bytes[] */
	uint32_t written;
	int32_t result;
	uint8_t bytes[]; /* what was received; CHALLENGE: what is to be sent */
};

/*
 * out->auth is set when input made a job due: take it with the connection's lock held, do it
 * without, and report it with the lock (rxw_pconn_auth_done(), proto/conn/conn.h). Or drop it,
 * which is as if the packet had been lost.
 */
struct rxw_auth_job *rxw_pconn_auth_take(struct rxw_pconn *c);
void rxw_auth_do(const struct rxw_pconn *c, struct rxw_auth_job *job);
void rxw_pconn_auth_drop(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out);

int rxw_auth_init(struct rxw_pconn *c, struct rxw_security *security); /* 0, or negative */
/* Drop all but the class's data, which still tells the identity. */
void rxw_auth_end(struct rxw_pconn *c);
void rxw_auth_fini(struct rxw_pconn *c);
/*
 * The client still has to authenticate, and an ACK with `body` bytes after its header would leave
 * its address too little allowance for a CHALLENGE, without which the call cannot proceed.
 */
bool rxw_auth_needs_allowance(const struct rxw_pconn *c, size_t body, uint64_t now);
/* Make or send a CHALLENGE; `timer`: it is time for another one. */
void rxw_auth_challenge(struct rxw_pconn *c, bool timer, struct rxw_out *out);
/* The client moved: sends an outstanding CHALLENGE to its new address, which is validated. */
void rxw_auth_moved(struct rxw_pconn *c, struct rxw_out *out);
void rxw_auth_end_challenge(struct rxw_pconn *c);
/* A call waits for the client to authenticate. Does one? Clears that. */
void rxw_auth_want(struct rxw_pconn *c);
bool rxw_auth_take_wanted(struct rxw_pconn *c);
/* The client sent a PING: it may be sent one more CHALLENGE. */
void rxw_auth_pinged(struct rxw_pconn *c);
uint64_t rxw_auth_deadline(const struct rxw_pconn *c); /* of the timer; RXW_NEVER = none */
bool rxw_auth_timer(struct rxw_pconn *c, struct rxw_out *out); /* false: its time is over */
/* A CHALLENGE or RESPONSE was received; `calls`: call numbers to answer, or to compare with. */
void rxw_auth_input(struct rxw_pconn *c, enum rxw_auth_work work, const struct rxw_rxrun *run,
		    const uint32_t calls[4], struct rxw_out *out);

void rxw_auth_job_done(struct rxw_pconn *c); /* another may begin */
/* False: the CHALLENGE is not usable. */
bool rxw_auth_challenge_made(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out);
/* `calls`, the numbers now, differ from those of the job: do it again, a few times at most. */
bool rxw_auth_respond_again(struct rxw_pconn *c, struct rxw_auth_job *job, const uint32_t calls[4],
			    struct rxw_out *out);
/* The RESPONSE to be sent, NULL for none. */
struct rxw_buf *rxw_auth_response(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				  struct rxw_out *out);
/*
 * A RESPONSE was checked; `fit`: its call numbers are possible. 0: the client is authenticated.
 * Else the error of the connection, and *final: it fails now, with an ABORT at *abort_at.
 */
int32_t rxw_auth_checked(struct rxw_pconn *c, const struct rxw_auth_job *job, bool fit, bool *final,
			 uint64_t *abort_at, struct rxw_out *out);

#endif
