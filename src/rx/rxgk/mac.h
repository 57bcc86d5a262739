/* SPDX-License-Identifier: BSD-2-Clause */
/* HMAC with precomputed key blocks, so that a packet costs only hashing its bytes. */
#ifndef RXW_RXGK_MAC_H
#define RXW_RXGK_MAC_H

#include <stddef.h>
#include <stdint.h>

/*
 * The low-level API of libcrypto: its states are plain structures, so a keyed state is copied by
 * assignment. EVP needs two allocations and four shared reference counts for that, 70 ns per packet
 * on one core, and more with more cores.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

enum rxw_gk_digest {
	RXW_GK_SHA1,
	RXW_GK_SHA256,
	RXW_GK_SHA384
};

#define RXW_GK_DIGEST_MAX 48

union rxw_gk_hash {
	SHA_CTX sha1;
	SHA256_CTX sha256;
	SHA512_CTX sha384;
};

/* A secret: in memory of rxw_secret_alloc(), or wiped by its owner. Constant once it is keyed. */
struct rxw_gk_mac {
	enum rxw_gk_digest digest;
	union rxw_gk_hash inner, outer;
};

/* Bytes of a digest: 20, 32 or 48. */
size_t rxw_gk_digest_size(enum rxw_gk_digest digest);

void rxw_gk_mac_key(struct rxw_gk_mac *m, enum rxw_gk_digest digest, const void *key,
		    size_t length);

/*
 * HMAC over two pieces, either of which may be empty; the whole digest goes to `out`. Any thread.
 */
void rxw_gk_mac(const struct rxw_gk_mac *m, const void *a, size_t a_length, const void *b,
		size_t b_length, uint8_t out[RXW_GK_DIGEST_MAX]);

/* The plain digest, for RFC 3961's PRF. */
void rxw_gk_digest(enum rxw_gk_digest digest, const void *data, size_t length,
		   uint8_t out[RXW_GK_DIGEST_MAX]);

#endif
