/* SPDX-License-Identifier: BSD-2-Clause */
/* A security class with a shared key: an example of implementing rxwire/security.h. */
#ifndef PSK_H
#define PSK_H

#include <stdint.h>

#include <rxwire/security.h>

#define PSK_INDEX 200 /* not used by other classes; SECURITY.md lists theirs */
#define PSK_KEY	  32

/* Codes of calls that fail for reasons of this class. */
#define PSK_BAD_RESPONSE 1500001
#define PSK_WRONG_KEY	 1500002

/*
 * Creates the class. One object serves any number of connections, at either end. `key` is copied;
 * the copy is wiped when the last reference is released. `name` is the name that a server reports
 * for clients that have the key. Returns 0 or a negative result.
 */
int psk_create(const uint8_t key[PSK_KEY], const char *name, rxw_security **security);

#endif
