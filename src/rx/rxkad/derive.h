/* SPDX-License-Identifier: BSD-2-Clause */
/* What rxkad makes of keys: session keys and checksums (rx-protocol 7.3.3 to 7.3.6). */
#ifndef RXW_RXKAD_DERIVE_H
#define RXW_RXKAD_DERIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rxkad/fcrypt.h"

/* The lowest bit of each byte makes the number of its ones odd. */
void rxw_des_set_parity(uint8_t key[8]);
/* Parity is right and it is none of the 16 weak and semi-weak keys. Takes the same time for all. */
bool rxw_des_key_usable(const uint8_t key[8]);

/* Bytes as a big-endian number, as fcrypt takes its start vector. */
uint64_t rxw_rxkad_number(const uint8_t bytes[8]);

/* What header checksums of a connection begin with; cid without channel. */
uint64_t rxw_rxkad_preseq(const struct rxw_fcrypt *cipher, uint64_t key, uint32_t epoch,
			  uint32_t cid, uint32_t index);

/* Over the first 56 bytes of a RESPONSE in clear, its checksum field taken as zero. */
uint32_t rxw_rxkad_response_checksum(const uint8_t response[56]);

#endif
