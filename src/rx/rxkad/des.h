/* SPDX-License-Identifier: BSD-2-Clause */
/* Single DES by libcrypto's legacy provider, for servers that were told to take tickets of it. */
#ifndef RXW_RXKAD_DES_H
#define RXW_RXKAD_DES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Load the provider, once in a process. False: it is not installed. */
bool rxw_des_ready(void);

/* PCBC with the key as start vector, as Kerberos 4 does; size a multiple of 8. False: libcrypto. */
bool rxw_des_pcbc_decrypt(const uint8_t key[8], const uint8_t *in, uint8_t *out, size_t size);

/*
 * Enctypes 1, 2 and 3 (RFC 3961 6.2). `out` has room for `size` bytes; *start and *length are where
 * the message lies in it, its padding included. False: the checksum is wrong, or the size.
 */
bool rxw_des_krb5_decrypt(int32_t enctype, const uint8_t key[8], const uint8_t *in, size_t size,
			  uint8_t *out, size_t *start, size_t *length);

#endif
