/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A security class for tests. The server challenges with a nonce that the client sends back.
 * Packets end in "seal" and have CHALLENGER_SPARE in `spare`.
 */
#ifndef TESTS_SUPPORT_CHALLENGER_H
#define TESTS_SUPPORT_CHALLENGER_H

#include <stddef.h>
#include <stdint.h>

#include <rxwire/security.h>

#define CHALLENGER_INDEX 252
#define CHALLENGER_SPARE 0x5ea1
#define CHALLENGER_NONCE 16u
#define CHALLENGER_WRONG 4712 /* the code that a wrong RESPONSE ends a connection with */

rxw_security *challenger_class(void); /* static */

/* The latest CHALLENGE that the client's side received. */
struct challenger_asked {
	uint32_t epoch;
	uint32_t calls[4];
	size_t room;
};

/* Of a server's half, `sec` of its connection: CHALLENGER_NONCE bytes. */
const uint8_t *challenger_nonce(const void *sec);
/* Of a client's half. */
const struct challenger_asked *challenger_asked(const void *sec);

#endif
