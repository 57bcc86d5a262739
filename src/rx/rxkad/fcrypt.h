/* SPDX-License-Identifier: BSD-2-Clause */
/* fcrypt, the cipher of rxkad (rx-protocol 7.3.8): blocks of 8 bytes, keys of 56 bits, weak. */
#ifndef RXW_RXKAD_FCRYPT_H
#define RXW_RXKAD_FCRYPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RXW_FCRYPT_BLOCK  8u
#define RXW_FCRYPT_ROUNDS 16u

/* A prepared key. Constant: any thread may use it. As secret as the key. */
struct rxw_fcrypt {
	uint32_t k[RXW_FCRYPT_ROUNDS];
};

/* A text of whole blocks, changed in place, and its chaining value, at first the initial vector. */
struct rxw_fcrypt_text {
	uint8_t *data; /* of any alignment */
	size_t blocks;
	uint64_t x; /* as a big-endian number */
};

/* The low bit of each byte of the key is ignored. */
void rxw_fcrypt_key(struct rxw_fcrypt *f, const uint8_t key[8]);

/* ECB over whole blocks, in place. */
void rxw_fcrypt_encrypt(const struct rxw_fcrypt *f, uint8_t *data, size_t blocks);
void rxw_fcrypt_decrypt(const struct rxw_fcrypt *f, uint8_t *data, size_t blocks);

/* PCBC, in place, for many texts; the contents of `texts` are undefined afterwards. */
void rxw_fcrypt_pcbc_encrypt(const struct rxw_fcrypt *f, struct rxw_fcrypt_text *texts,
			     size_t count);
void rxw_fcrypt_pcbc_decrypt(const struct rxw_fcrypt *f, struct rxw_fcrypt_text *texts,
			     size_t count);

#endif
