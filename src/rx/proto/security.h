/* SPDX-License-Identifier: BSD-2-Clause */
/* Security classes inside the library: the room they need, runs verified, the exchange (7.1). */
#ifndef RXW_PROTO_SECURITY_H
#define RXW_PROTO_SECURITY_H

#include <stdatomic.h>

#include <rxwire/security.h>

#include "proto/proto.h"

/* A class with its keys; shared by services and connections. */
struct rxw_security {
	struct rxw_security_class class; /* fixed; `size` is that of this structure */
	void *data;
	_Atomic(uint32_t) refs; /* 0: static, not counted */
};

extern struct rxw_security rxw_security_null_class;
/* Tests only: index 251; 8 bytes before the data, 12 behind, all bytes changed, slow. */
extern struct rxw_security rxw_security_test_class;

/* Bytes of a sealed payload with `length` bytes of data. */
static inline uint32_t rxw_sealed_size(const struct rxw_security_room *r, uint32_t length)
{
	uint32_t block = r->block ? r->block : 1, size = (r->head + length + block - 1) / block * block;

	return (size < r->least ? r->least : size) + r->tail;
}

/* Most data that a payload of `size` bytes has room for; 0 also where it has none. */
static inline uint32_t rxw_sealed_capacity(const struct rxw_security_room *r, uint32_t size)
{
	uint32_t block = r->block ? r->block : 1;

	if (size < (uint32_t)r->tail + r->head || size < (uint32_t)r->tail + r->least)
		return 0;
	size = (size - r->tail) / block * block;
	return size > r->head ? size - r->head : 0;
}

/* Data are taken as they are only where there is nothing around them: in jumbograms, say. */
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
 * Packets that leave now, the first time or again: what was sealed under a key that is no longer taken
 * is sealed anew. `last_size` of the last one, header included. With the connection's lock; nobody else
 * reads or sends these packets. 0 or a negative result.
 */
int rxw_run_renew(const struct rxw_pconn *c, uint8_t channel, uint32_t call, uint32_t seq,
		  uint8_t *data, uint16_t stride, uint16_t count, uint16_t last_size);

#define RXW_VERIFY_MOST 64 /* packets that are verified in one piece */

/*
 * Verify the packets of a run, RXW_VERIFY_MOST at most, without the connection's lock; the verdicts
 * are left in packet[].
 */
void rxw_run_verify(const struct rxw_pconn *c, const struct rxw_rxrun *run,
		    struct rxw_security_packet *packet);
/*
 * With the lock: what passed goes to the calls, what failed is counted. ACKs become due as with
 * rxw_pconn_input().
 */
void rxw_pconn_input_verified(struct rxw_pconn *c, const struct rxw_rxrun *run,
			      const struct rxw_security_packet *packet, struct rxw_out *out);
/*
 * The connection is good since a moment ago: the next run that was kept until then is no longer
 * queued and is to be verified. True: *run has a reference of its buffer that is the caller's, and
 * no path. With the lock, which is not released before all were taken.
 */
bool rxw_pconn_take_kept(struct rxw_pconn *c, struct rxw_rxrun *run);

/* --- the exchange: work that must not be done under a lock --- */

#define RXW_CHALLENGE_MOST 64u	    /* bytes of a CHALLENGE of ours */
#define RXW_RESPONSE_MOST  16384u   /* of a RESPONSE */

enum rxw_auth_work {
	RXW_AUTH_CHALLENGE, /* server: make one */
	RXW_AUTH_RESPOND,   /* client: answer it */
	RXW_AUTH_CHECK	    /* server: is the answer good? */
};

/* One at a time per connection; lies in `buf`, with the bytes of the packet behind it. */
struct rxw_auth_job {
	struct rxw_buf *buf;   /* holds this structure */
	struct rxw_buf *reply; /* RESPOND: the packet, room for its header in front */
	enum rxw_auth_work work;
	uint16_t spare;
	unsigned tries;
	uint32_t calls[4];
	uint32_t size; /* of bytes[] */
	uint32_t written;
	int32_t result;
	uint8_t bytes[]; /* what came; CHALLENGE: what is to be sent */
};

/*
 * out->auth is set when input made such work due: take it with the connection's lock held, do it
 * without, report it with the lock, and take out what was kept. Or drop it: as if the packet had
 * been lost.
 */
struct rxw_auth_job *rxw_pconn_auth_take(struct rxw_pconn *c);
void rxw_auth_do(const struct rxw_pconn *c, struct rxw_auth_job *job);
/* The RESPONSE to be sent, NULL for none: it may be larger than the path takes in one piece. */
struct rxw_buf *rxw_pconn_auth_done(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				    struct rxw_out *out);
void rxw_pconn_auth_drop(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out);

#endif
