/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Session keys and checksums (rx-protocol 7.3.3 to 7.3.6), and single DES, by libcrypto's legacy provider, for servers
 * that accept tickets under it.
 */
#ifndef RXW_RXKAD_DERIVE_H
#define RXW_RXKAD_DERIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rxkad/fcrypt.h"

/* Set the lowest bit of each byte for odd parity. */
void rxw_des_set_parity(uint8_t key[8]);
/* Whether the parity is right and the key is not weak or semi-weak. In constant time. */
bool rxw_des_key_usable(const uint8_t key[8]);

/* Bytes as a big-endian number, the form of initial vectors of fcrypt. */
uint64_t rxw_rxkad_number(const uint8_t bytes[8]);

/* Initial value of the header checksums of a connection; cid without channel. */
uint64_t rxw_rxkad_preseq(const struct rxw_fcrypt *cipher, uint64_t key, uint32_t epoch,
			  uint32_t cid, uint32_t index);

/* Checksum of the first 56 bytes of a decrypted RESPONSE, with its checksum field as zero. */
uint32_t rxw_rxkad_response_checksum(const uint8_t response[56]);

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
