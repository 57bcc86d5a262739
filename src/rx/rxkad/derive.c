/* SPDX-License-Identifier: BSD-2-Clause */
/* Derivation of session keys and checksums (rx-protocol 7.3.3 to 7.3.6); single DES by libcrypto's legacy provider. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <string.h>

#include "base/wire.h"
#include "rxkad/derive.h"
#include "rxwire/afs.h"
#include "rxwire/error.h"

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

__attribute__((cold)) bool rxw_des_krb5_decrypt(int32_t enctype, const uint8_t key[8],
						const uint8_t *in, size_t size, uint8_t *out,
						size_t *start, size_t *length)
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

/* Enctypes of RFC 3961's registry that 7.3.6 names. */
enum {
	DES_CBC_CRC = 1,
	DES_CBC_MD4 = 2,
	DES_CBC_MD5 = 3,
	DES3_A = 5,
	DES3_B = 7,
	DES3_C = 16
};

static const uint8_t weak_keys[16][8] = {
	{0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01},
	{0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe},
	{0x1f, 0x1f, 0x1f, 0x1f, 0x0e, 0x0e, 0x0e, 0x0e},
	{0xe0, 0xe0, 0xe0, 0xe0, 0xf1, 0xf1, 0xf1, 0xf1},
	{0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe},
	{0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01},
	{0x1f, 0xe0, 0x1f, 0xe0, 0x0e, 0xf1, 0x0e, 0xf1},
	{0xe0, 0x1f, 0xe0, 0x1f, 0xf1, 0x0e, 0xf1, 0x0e},
	{0x01, 0xe0, 0x01, 0xe0, 0x01, 0xf1, 0x01, 0xf1},
	{0xe0, 0x01, 0xe0, 0x01, 0xf1, 0x01, 0xf1, 0x01},
	{0x1f, 0xfe, 0x1f, 0xfe, 0x0e, 0xfe, 0x0e, 0xfe},
	{0xfe, 0x1f, 0xfe, 0x1f, 0xfe, 0x0e, 0xfe, 0x0e},
	{0x01, 0x1f, 0x01, 0x1f, 0x01, 0x0e, 0x01, 0x0e},
	{0x1f, 0x01, 0x1f, 0x01, 0x0e, 0x01, 0x0e, 0x01},
	{0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1, 0xfe},
	{0xfe, 0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1},
};

void rxw_des_set_parity(uint8_t key[8])
{
	for (unsigned i = 0; i < 8; i++) {
		uint8_t ones = key[i] >> 1;

		ones ^= ones >> 4;
		ones ^= ones >> 2;
		ones ^= ones >> 1;
		key[i] = (uint8_t)((key[i] & 0xfe) | (~ones & 1));
	}
}

bool rxw_des_key_usable(const uint8_t key[8])
{
	uint8_t right[8];
	unsigned bad;

	memcpy(right, key, sizeof(right));
	rxw_des_set_parity(right);
	bad = CRYPTO_memcmp(right, key, sizeof(right)) != 0;
	for (unsigned i = 0; i < sizeof(weak_keys) / sizeof(*weak_keys); i++)
		bad |= CRYPTO_memcmp(weak_keys[i], key, 8) == 0;
	explicit_bzero(right, sizeof(right));
	return !bad;
}

/* The derivation of 7.3.6 from a key without parity bits. */
static int derive_des_key(const uint8_t *key, size_t length, uint8_t out[8])
{
	uint8_t label[11] = {0, 'r', 'x', 'k', 'a', 'd', 0, 0, 0, 0, 0x40};
	uint8_t mac[16];
	int result = -RXW_ESYS;

	for (unsigned i = 1; i < 256 && result; i++) {
		size_t got;

		label[0] = (uint8_t)i;
		if (!EVP_Q_mac(NULL, "HMAC", NULL, "MD5", NULL, key, length, label, sizeof(label),
			       mac, sizeof(mac), &got))
			break;
		rxw_des_set_parity(mac);
		if (!rxw_des_key_usable(mac))
			continue;
		memcpy(out, mac, 8);
		result = 0;
	}
	explicit_bzero(mac, sizeof(mac));
	return result;
}

/* Triple DES: the last of 8 bytes supplies the low bits of the other 7. */
static void drop_parity(const uint8_t key[24], uint8_t out[21])
{
	for (unsigned group = 0; group < 3; group++)
		for (unsigned i = 0; i < 7; i++)
			out[7 * group + i] = (uint8_t)((key[8 * group + i] & 0xfe) |
						       ((key[8 * group + 7] >> (i + 1)) & 1));
}

int rxw_rxkad_session_key(int32_t enctype, const void *key, size_t length, uint8_t session_key[8])
{
	uint8_t packed[21];
	int result;

	if (key == NULL || session_key == NULL)
		return -RXW_EINVAL;
	switch (enctype) {
	case DES_CBC_CRC:
	case DES_CBC_MD4:
	case DES_CBC_MD5:
		if (length != 8)
			return -RXW_EINVAL;
		memcpy(session_key, key, 8);
		return 0;
	case DES3_A:
	case DES3_B:
	case DES3_C:
		if (length != 24)
			return -RXW_EINVAL;
		drop_parity(key, packed);
		result = derive_des_key(packed, sizeof(packed), session_key);
		explicit_bzero(packed, sizeof(packed));
		return result;
	default:
		break;
	}
	if (enctype < DES3_C)
		return -RXW_ENOTSUP;
	if (length < 7 || length > RXW_KEY_MAX)
		return -RXW_EINVAL;
	return derive_des_key(key, length, session_key);
}

uint64_t rxw_rxkad_number(const uint8_t bytes[8])
{
	return (uint64_t)rxw_get32(bytes) << 32 | rxw_get32(bytes + 4);
}

uint64_t rxw_rxkad_preseq(const struct rxw_fcrypt *cipher, uint64_t key, uint32_t epoch,
			  uint32_t cid, uint32_t index)
{
	uint8_t block[16];
	struct rxw_fcrypt_text text = {block, 2, key};

	rxw_put32(block, epoch);
	rxw_put32(block + 4, cid);
	rxw_put32(block + 8, 0);
	rxw_put32(block + 12, index);
	rxw_fcrypt_pcbc_encrypt(cipher, &text, 1);
	return rxw_rxkad_number(block + 8);
}

uint32_t rxw_rxkad_response_checksum(const uint8_t response[56])
{
	uint32_t sum = 1000003;

	for (unsigned i = 0; i < 56; i++)
		sum = sum * 0x10204081u + (i >= 16 && i < 20 ? 0 : response[i]);
	return sum;
}
