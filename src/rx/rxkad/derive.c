/* SPDX-License-Identifier: BSD-2-Clause */
/* Derivation of session keys and checksums (rx-protocol 7.3.3 to 7.3.6). */
#include "rxkad/derive.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/wire.h"
#include "rxwire/error.h"
#include "rxwire/afs.h"

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
