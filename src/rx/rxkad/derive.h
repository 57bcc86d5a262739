/* SPDX-License-Identifier: BSD-2-Clause */
/* Derivation of session keys and checksums (rx-protocol 7.3.3 to 7.3.6). */
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

#endif
