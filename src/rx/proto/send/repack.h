/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that were sent, and are too large for the path: how far a call is with cutting them anew. */
#ifndef RXW_PROTO_SENDQ_REPACK_H
#define RXW_PROTO_SENDQ_REPACK_H

#include <stdbool.h>
#include <stdint.h>

struct rxw_renumber {
	enum {
		RXW_RENUMBER_NONE,
		RXW_RENUMBER_ASKING, /* nothing is sent, and later a PING asks for the peer's state */
		RXW_RENUMBER_READY   /* it was answered: cut packets anew with the next burst */
	} state;
	bool unproven; /* nothing of the new size arrived yet: other calls do not know it */
	bool whole; /* a request of one packet was: which does the server have? */
	bool single;   /* the lowest missing packet is too large: no other one is sent */
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

#endif
