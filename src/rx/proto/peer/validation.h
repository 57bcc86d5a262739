/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address validation (rx-protocol 6.7, 12.3): whether an address is validated, and what it may have until then. All
 * rules are here; other files ask these functions. Addresses of clients may be forged; a client knows its servers.
 */
#ifndef RXW_PROTO_PEER_VALIDATION_H
#define RXW_PROTO_PEER_VALIDATION_H

#include "proto/peer/peer.h"

#define RXW_VALIDATION_LIFE (60 * RXW_SEC)

/* --- the state of an address; any thread --- */

static inline bool rxw_peer_validated(const struct rxw_peer *p, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&p->validated_at, memory_order_relaxed);

	return at != 0 && now < at + RXW_VALIDATION_LIFE;
}
/* False: it was validated already. */
bool rxw_peer_set_validated(struct rxw_peer *p, uint64_t now);
/*
 * A server: its validation is to be renewed, in time, by a PING that only its owner can answer. A client: by any
 * packet of the server.
 */
static inline bool rxw_peer_proof_due(const struct rxw_peer *p, uint64_t now)
{
	return !rxw_peer_validated(p, now + RXW_VALIDATION_LIFE / 2);
}
/* Something waits since then for the validation of the address; `since` 0: nothing does. */
static inline bool rxw_peer_awaited(const struct rxw_peer *p, uint64_t since, uint64_t now)
{
	return since != 0 && !rxw_peer_validated(p, now);
}

/* --- what an address may have; `client`: this end of the connection is the client --- */

/* The packets of the address are its owner's: a path is measured, and keepalives are sent as needed. */
static inline bool rxw_peer_known(const struct rxw_peer *p, bool client, uint64_t now)
{
	return client || rxw_peer_validated(p, now);
}
/* It gets full windows and queues, and probes of the path MTU. Packets of this host are not forged. */
static inline bool rxw_peer_trusted(const struct rxw_peer *p, bool client, uint64_t now)
{
	return client || p->local || rxw_peer_validated(p, now);
}
/* Bytes of UDP payload came from it, in `datagrams` datagrams: three times as many may be sent. */
void rxw_peer_heard(struct rxw_peer *p, uint64_t bytes, unsigned datagrams, uint64_t now);
/* May `bytes` of UDP payload be sent in `datagrams` datagrams? Charges them if so. A validated peer always may. */
bool rxw_peer_may_send(struct rxw_peer *p, uint64_t bytes, unsigned datagrams, uint64_t now);
/* Bytes, with IP and UDP headers, that may be sent; UINT64_MAX for a validated peer. */
uint64_t rxw_peer_allowance(const struct rxw_peer *p, uint64_t now);
/* Bytes of IP and UDP headers of a datagram to or from it. */
unsigned rxw_peer_overhead(const struct rxw_peer *p);

/* --- marks: one bit for each validated address, for floods --- */

#define RXW_MARKS 65536u
/*
 * Four generations of RXW_VALIDATION_LIFE each. The current generation and the one before it have the mark of every
 * validated address; the next is clear, and the one after that is being cleared. Addresses share bits, so a bit means
 * "perhaps".
 */
struct rxw_validated_marks {
	_Atomic(uint64_t) bits[4][RXW_MARKS / 64];
	_Atomic(bool) used[4];
};
/* The mark of an address, from its keyed hash. */
uint16_t rxw_mark_of(uint64_t hash);
bool rxw_marks_have(const struct rxw_validated_marks *m, uint16_t mark, uint64_t now);
/* Once a second. Nothing is marked there for another RXW_VALIDATION_LIFE. A missed call leaves old marks, that is all. */
void rxw_marks_clear(struct rxw_validated_marks *m, uint64_t now);

/* --- cookies: PINGs to unvalidated addresses of which no state is kept. The caller locks. --- */

struct rxw_cookies;
/* The secret is 128 random bits. NULL: out of memory. */
struct rxw_cookies *rxw_cookies_create(const uint64_t secret[2], uint64_t now);
void rxw_cookies_destroy(struct rxw_cookies *q);
/*
 * The serial of a PING to the sender of `head`. 0: send none, since its host was sent one within
 * the last 4 s, or others 4,000 within the last second.
 */
uint32_t rxw_cookie_issue(struct rxw_cookies *q, const struct rxw_addr *peer,
			  const struct rxw_header *head, uint64_t now);
/*
 * An answer with the header `head` names `serial`: was a PING with it sent to this address and
 * port, for this call, at most 4 to 8 s ago?
 */
bool rxw_cookie_check(const struct rxw_cookies *q, const struct rxw_addr *peer,
		      const struct rxw_header *head, uint32_t serial, uint64_t now);
/*
 * Write the packet, of RXW_HEADER_SIZE + RXW_ACK_FRAME bytes (output/output.h): a PING that
 * acknowledges nothing. Returns its size.
 */
size_t rxw_cookie_put_ping(uint8_t *out, const struct rxw_header *request, uint32_t serial,
			   unsigned mtu, unsigned window);

#endif
