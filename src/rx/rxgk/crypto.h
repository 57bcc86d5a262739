/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encryption types of Kerberos 5 that rxgk uses: RFC 3961, 3962 and 8009 (rx-protocol 7.4.1). HMAC has precomputed
 * key blocks, so that a packet costs only hashing its bytes.
 */
#ifndef RXW_RXGK_CRYPTO_H
#define RXW_RXGK_CRYPTO_H

/*
 * The low-level API of libcrypto: its states are plain structures, so a keyed state is copied by
 * assignment. EVP needs two allocations and four shared reference counts for that, 70 ns per packet
 * on one core, and more with more cores.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/*
 * HMAC over two pieces, either of which may be empty; the whole digest goes to `out`. Any thread.
 */
void rxw_gk_mac(const struct rxw_gk_mac *m, const void *a, size_t a_length, const void *b,
		size_t b_length, uint8_t out[RXW_GK_DIGEST_MAX]);

/* The plain digest, for RFC 3961's PRF. */
void rxw_gk_digest(enum rxw_gk_digest digest, const void *data, size_t length,
		   uint8_t out[RXW_GK_DIGEST_MAX]);

#define RXW_GK_KEY_MAX	  32
#define RXW_GK_MAC_MAX	  24
#define RXW_GK_CONFOUNDER 16
#define RXW_GK_PRF_MAX	  48

/* Key usages of rxgk. */
enum rxw_gk_usage {
	RXW_GK_CLIENT_ENC_PACKET = 1026,
	RXW_GK_CLIENT_MIC_PACKET = 1027,
	RXW_GK_SERVER_ENC_PACKET = 1028,
	RXW_GK_SERVER_MIC_PACKET = 1029,
	RXW_GK_CLIENT_ENC_RESPONSE = 1030,
	RXW_GK_SERVER_ENC_TOKEN = 1036
};

struct rxw_gk_enctype {
	int32_t id;
	uint8_t key_length;    /* bytes; also of the seed, since random-to-key changes nothing */
	uint8_t mac_length;    /* bytes after a ciphertext, and of a MIC */
	uint8_t prf_length;    /* output of PRF, bytes */
	bool encrypt_then_mac; /* RFC 8009: MAC of the ciphertext; RFC 3961: of the plain text */
	enum rxw_gk_digest digest;
	const char *cbc, *cts; /* names of the ciphers in libcrypto */
};

/* 17, 18, 19, 20; NULL for others. */
const struct rxw_gk_enctype *rxw_gk_enctype(int32_t id);
/* The supported enctypes, best first: 20, 19, 18, 17; ends with 0. */
extern const int32_t rxw_gk_enctypes[5];

/*
 * Keys derived from a key for one usage; for packets they are derived once. A secret. Constant
 * after its creation: any thread may use it.
 */
struct rxw_gk_protect {
	const struct rxw_gk_enctype *enctype;
	struct rxw_gk_mac mac;	    /* Ki, or Kc for MICs */
	uint8_t ke[RXW_GK_KEY_MAX]; /* zero for MICs */
	bool crypt;		    /* false: for MICs */
};

/* Derive for encryption, or (crypt false) for MICs. 0 or -RXW_ENOMEM: libcrypto failed. */
int rxw_gk_protect_init(struct rxw_gk_protect *p, const struct rxw_gk_enctype *enctype,
			const uint8_t *key, uint32_t usage, bool crypt);

/* A cipher context for one direction; for one thread at a time. NULL: no memory. */
EVP_CIPHER_CTX *rxw_gk_cipher_new(const struct rxw_gk_protect *p, bool encrypt);

/*
 * Encrypt in place: `text` has a confounder of 16 random bytes, which the caller provides, and the
 * plain text, together `length` bytes, with room for mac_length more. 0 or -RXW_ESYS.
 */
int rxw_gk_encrypt(const struct rxw_gk_protect *p, EVP_CIPHER_CTX *cipher, uint8_t *text,
		   size_t length);
/*
 * Verify and decrypt `size` bytes in place, including the MAC. The plain text is at text + 16, with
 * size - 16 - mac_length bytes. 0, or -RXW_EDECODE: too short, or wrong MAC; then the contents of
 * `text` are undefined. The MAC is compared in constant time.
 */
int rxw_gk_decrypt(const struct rxw_gk_protect *p, EVP_CIPHER_CTX *cipher, uint8_t *text,
		   size_t size);
/* The enctype's checksum over two pieces; mac_length bytes to `out`. */
void rxw_gk_mic(const struct rxw_gk_protect *p, const void *a, size_t a_length, const void *b,
		size_t b_length, uint8_t out[RXW_GK_MAC_MAX]);

/* The same, deriving the keys for one use. `text` and sizes as above. */
int rxw_gk_encrypt_once(const struct rxw_gk_enctype *enctype, const uint8_t *key, uint32_t usage,
			uint8_t *text, size_t length);
int rxw_gk_decrypt_once(const struct rxw_gk_enctype *enctype, const uint8_t *key, uint32_t usage,
			uint8_t *text, size_t size);

/* PRF and PRF+ (RFC 4402's form); `seed` of at most 64 bytes. 0 or -RXW_ENOMEM. */
int rxw_gk_prf(const struct rxw_gk_enctype *enctype, const uint8_t *key, const void *seed,
	       size_t length, uint8_t out[RXW_GK_PRF_MAX]);

/* Key number `number` of a connection (7.4.3); `cid` with channel bits 0, start_time in 100 ns. */
int rxw_gk_transport_key(const struct rxw_gk_enctype *enctype, const uint8_t *k0, uint32_t epoch,
			 uint32_t cid, int64_t start_time, uint32_t number,
			 uint8_t out[RXW_GK_KEY_MAX]);

/* KRB-FX-CF2(k0, k1, "AFS", "rxgk"): the key of a combined token, of type `out_type` (7.4.7). */
int rxw_gk_combine_keys(const struct rxw_gk_enctype *type0, const uint8_t *k0,
			const struct rxw_gk_enctype *type1, const uint8_t *k1,
			const struct rxw_gk_enctype *out_type, uint8_t out[RXW_GK_KEY_MAX]);

#endif
