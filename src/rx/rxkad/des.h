/* SPDX-License-Identifier: BSD-2-Clause */
/* Single DES by libcrypto's legacy provider, for servers that accept tickets under it. */
#ifndef RXW_RXKAD_DES_H
#define RXW_RXKAD_DES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Load the provider, once per process. False: it is not installed. */
bool rxw_des_ready(void);

/*
 * Decrypt in PCBC mode with the key as initial vector, as in Kerberos 4; size is a multiple of 8.
 * False: libcrypto failed.
 */
bool rxw_des_pcbc_decrypt(const uint8_t key[8], const uint8_t *in, uint8_t *out, size_t size);

/*
 * Decrypt enctypes 1, 2 and 3 (RFC 3961 6.2). `out` has room for `size` bytes; *start and *length
 * are the position of the message in it, including padding. False: wrong checksum or size.
 */
bool rxw_des_krb5_decrypt(int32_t enctype, const uint8_t key[8], const uint8_t *in, size_t size,
			  uint8_t *out, size_t *start, size_t *length);

#endif
