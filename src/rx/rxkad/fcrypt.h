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

/*
 * An implementation. All kernels give the same results; they differ in the number of blocks that
 * they process in parallel. One chain is limited by the latency of 16 rounds, so several are
 * faster.
 */
struct rxw_fcrypt_kernel {
	const char *name;
	bool (*usable)(void); /* on this CPU */
	/* Independent blocks (ECB); `out` may be `in`. */
	void (*encrypt)(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, size_t blocks);
	void (*decrypt)(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, size_t blocks);
	/* Encrypt in PCBC mode: each text is a chain. Changes data, blocks and x. */
	void (*chain)(const struct rxw_fcrypt *f, struct rxw_fcrypt_text *texts, size_t count);
};

/* The kernels of this build, the best first, terminated by NULL. The last one is portable. */
extern const struct rxw_fcrypt_kernel *const rxw_fcrypt_kernels[];
extern const struct rxw_fcrypt_kernel rxw_fcrypt_portable;
#if defined(__x86_64__) && defined(__GNUC__)
#	define RXW_FCRYPT_VBMI 1
extern const struct rxw_fcrypt_kernel rxw_fcrypt_vbmi;
#endif

/* The first usable kernel. */
const struct rxw_fcrypt_kernel *rxw_fcrypt_best(void);

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
/* The same with a kernel of the caller's choice, for tests and benchmarks. */
void rxw_fcrypt_pcbc_decrypt_by(const struct rxw_fcrypt_kernel *kernel, const struct rxw_fcrypt *f,
				struct rxw_fcrypt_text *texts, size_t count);

#endif
