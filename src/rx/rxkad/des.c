/* SPDX-License-Identifier: BSD-2-Clause */
/* Single DES by libcrypto's legacy provider, for servers that accept tickets under it. */
#include "rxkad/des.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <string.h>

/* A separate library context, so that the application's does not get weak ciphers. */
static OSSL_LIB_CTX *context;
static EVP_CIPHER *ecb, *cbc;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_ciphers(void)
{
	context = OSSL_LIB_CTX_new();
	if (context == NULL)
		return;
	if (OSSL_PROVIDER_load(context, "legacy") == NULL ||
	    OSSL_PROVIDER_load(context, "default") == NULL)
		return;
	cbc = EVP_CIPHER_fetch(context, "DES-CBC", NULL);
	ecb = EVP_CIPHER_fetch(context, "DES-ECB", NULL);
}

bool rxw_des_ready(void)
{
	pthread_once(&once, load_ciphers);
	return ecb != NULL && cbc != NULL;
}

static bool decrypt_by(EVP_CIPHER *cipher, const uint8_t *key, const uint8_t *iv, const uint8_t *in,
		       uint8_t *out, size_t size)
{
	EVP_CIPHER_CTX *c;
	int got = 0, more = 0;
	bool good;

	if (!rxw_des_ready() || size > 65536)
		return false;
	c = EVP_CIPHER_CTX_new();
	good = c != NULL && EVP_DecryptInit_ex2(c, cipher, key, iv, NULL) &&
	       EVP_CIPHER_CTX_set_padding(c, 0) && EVP_DecryptUpdate(c, out, &got, in, (int)size) &&
	       EVP_DecryptFinal_ex(c, out + got, &more) && (size_t)(got + more) == size;
	EVP_CIPHER_CTX_free(c);
	return good;
}

bool rxw_des_pcbc_decrypt(const uint8_t key[8], const uint8_t *in, uint8_t *out, size_t size)
{
	uint8_t x[8];

	/* No provider has PCBC: use ECB, and chain here. */
	if (size % 8 != 0 || !rxw_des_ready() || !decrypt_by(ecb, key, NULL, in, out, size))
		return false;
	memcpy(x, key, sizeof(x));
	for (size_t at = 0; at < size; at += 8)
		for (unsigned i = 0; i < 8; i++) {
			out[at + i] ^= x[i];
			x[i] = out[at + i] ^ in[at + i];
		}
	explicit_bzero(x, sizeof(x));
	return true;
}

/* The CRC of RFC 3961 6.1.3: initial value 0, not inverted, least significant byte first. */
static void compute_crc(const uint8_t *p, size_t size, uint8_t out[4])
{
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++) {
		sum ^= p[i];
		for (unsigned bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (0xedb88320u & (0u - (sum & 1)));
	}
	for (unsigned i = 0; i < 4; i++)
		out[i] = (uint8_t)(sum >> 8 * i);
}

static bool compute_checksum(int32_t enctype, const uint8_t *p, size_t size, uint8_t out[16])
{
	size_t got = 0;

	if (enctype == 1) {
		compute_crc(p, size, out);
		return true;
	}
	return EVP_Q_digest(context, enctype == 2 ? "MD4" : "MD5", NULL, p, size, out, &got) &&
	       got == 16;
}

bool rxw_des_krb5_decrypt(int32_t enctype, const uint8_t key[8], const uint8_t *in, size_t size,
			  uint8_t *out, size_t *start, size_t *length)
{
	static const uint8_t zero[8];
	size_t sum_size = enctype == 1 ? 4 : 16;
	uint8_t want[16], got[16];

	if (enctype < 1 || enctype > 3 || size % 8 != 0 || size < 8 + sum_size ||
	    !rxw_des_ready() || !decrypt_by(cbc, key, enctype == 1 ? key : zero, in, out, size))
		return false;
	memcpy(want, out + 8, sum_size);
	memset(out + 8, 0, sum_size);
	if (!compute_checksum(enctype, out, size, got) || CRYPTO_memcmp(want, got, sum_size) != 0)
		return false;
	*start = 8 + sum_size;
	*length = size - *start;
	return true;
}
