/* SPDX-License-Identifier: BSD-2-Clause */
/* Cookies: PINGs to unvalidated addresses of which no state is kept (12.3). The caller locks. */
#ifndef RXW_PROTO_PEER_COOKIE_H
#define RXW_PROTO_PEER_COOKIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/wire.h"

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
