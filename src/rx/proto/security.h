/* SPDX-License-Identifier: BSD-2-Clause */
/* The table behind which security classes plug in: sealing and verifying (rx-protocol 7). */
#ifndef RXW_PROTO_SECURITY_H
#define RXW_PROTO_SECURITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rxw_security;	  /* a class with its keys; counted; shared by connections */
struct rxw_security_conn; /* what a class keeps per connection; NULL for classes without */

/* What of a packet is bound into its seal. */
struct rxw_seal_info {
	uint32_t epoch, cid /* with channel */, call, seq;
	uint8_t security;
	bool client; /* sent by the client end */
};

struct rxw_security_ops {
	const char *name;
	uint8_t index;	    /* securityIndex on the wire */
	uint8_t head, tail; /* bytes that a sealed packet needs before and behind the data */
	bool needs_verify;  /* DATA must pass verify() before it is delivered or acknowledged */
	bool deferred;	    /* verify() is slow: never on the thread that received */

	/* Per-connection state; NULL functions for classes without. 0 or a negative result. */
	int (*conn_create)(struct rxw_security *s, bool client, struct rxw_security_conn **c);
	void (*conn_destroy)(struct rxw_security_conn *c);

	/*
	 * Seal in place: `packet` is head + length + tail bytes with the data at packet + head.
	 * *spare is the header's spare word. Any thread, no lock, several packets of a connection
	 * at a time.
	 */
	int (*seal)(struct rxw_security *s, struct rxw_security_conn *c,
		    const struct rxw_seal_info *info, uint8_t *packet, size_t length,
		    uint16_t *spare);
	/*
	 * Verify and open in place: `packet` of `size` bytes as received. 0: data at packet +
	 * *offset, *length bytes (for every packet of a class offset == head; length == size - head
	 * - tail unless the class pads). Negative: drop.
	 */
	int (*verify)(struct rxw_security *s, struct rxw_security_conn *c,
		      const struct rxw_seal_info *info, uint8_t *packet, size_t size,
		      uint16_t spare, size_t *offset, size_t *length);

	/*
	 * Server: 0 = authenticated or needs none. Client and server hooks of the CHALLENGE
	 * exchange; NULL = none. Sizes are of the payload.
	 */
	bool (*authenticated)(const struct rxw_security_conn *c);
	int (*challenge)(struct rxw_security *s, struct rxw_security_conn *c, uint8_t *out,
			 size_t room);
	int (*respond)(struct rxw_security *s, struct rxw_security_conn *c,
		       const uint8_t *challenge, size_t size, const uint32_t epoch_cid[2],
		       const uint32_t calls[4], uint8_t *out, size_t room);
	int (*check_response)(struct rxw_security *s, struct rxw_security_conn *c,
			      const uint8_t *response, size_t size, uint16_t spare,
			      const uint32_t epoch_cid[2], uint32_t calls[4], int32_t *code);
};

struct rxw_security {
	const struct rxw_security_ops *ops;
	_Atomic(uint32_t) refs; /* not used by static classes */
	void *data;
};

extern struct rxw_security rxw_security_null_class;
/* Tests only: index 251; 8 bytes before the data, 12 behind, all bytes changed, deferred. */
extern struct rxw_security rxw_security_test_class;

#endif
