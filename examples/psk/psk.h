/* SPDX-License-Identifier: BSD-2-Clause */
/* A security class of our own: both ends know one key. An example of what rxwire/security.h asks. */
#ifndef PSK_H
#define PSK_H

#include <stdint.h>

#include <rxwire/security.h>

#define PSK_INDEX 200 /* no number of a class that others use (rxwire's documents name those) */
#define PSK_KEY	  32

/* Codes of calls that fail for reasons of this class. */
#define PSK_BAD_RESPONSE 1500001
#define PSK_WRONG_KEY	 1500002

/*
 * One object serves any number of connections, at either end. `key` is copied; the copy is wiped
 * when the last reference is released. `name` is what a server says of a client that had the key.
 * 0, or a negative result.
 */
int psk_create(const uint8_t key[PSK_KEY], const char *name, rxw_security **security);

#endif
