/* SPDX-License-Identifier: BSD-2-Clause */
/* A class for tests: bytes around the data, every byte changed, verdicts late. No protection. */
#include <string.h>

#include "base/hash.h"
#include "base/wire.h"
#include "proto/security.h"

#define TEST_INDEX 251
#define TEST_HEAD  8u
#define TEST_TAIL  12u

static const uint64_t test_key[2] = {0x7278776972652074ull, 0x65737420636c6173ull};

static uint64_t seed_of(const struct rxw_seal_info *info)
{
	uint32_t words[5] = {info->epoch, info->cid, info->call, info->seq, info->client};

	return rxw_siphash(words, sizeof(words), test_key) | 1;
}

/* A stream of bytes from the seed: sealing and opening are the same. */
static void change(uint8_t *p, size_t length, uint64_t state)
{
	while (length > 0) {
		uint64_t word = rxw_prng(&state);
		size_t n = length < sizeof(word) ? length : sizeof(word);

		for (size_t i = 0; i < n; i++)
			p[i] ^= (uint8_t)(word >> 8 * i);
		p += n;
		length -= n;
	}
}

static int test_seal(struct rxw_security *s, struct rxw_security_conn *c,
		     const struct rxw_seal_info *info, uint8_t *packet, size_t length,
		     uint16_t *spare)
{
	uint64_t seed = seed_of(info), sum;

	(void)s;
	(void)c;
	sum = rxw_siphash(packet + TEST_HEAD, length, test_key) ^ seed;
	rxw_put32(packet, (uint32_t)(sum >> 32));
	rxw_put32(packet + 4, (uint32_t)sum);
	memset(packet + TEST_HEAD + length, 0x5a, TEST_TAIL);
	change(packet, TEST_HEAD + length + TEST_TAIL, seed);
	*spare = (uint16_t)(seed >> 16);
	return 0;
}

static int test_verify(struct rxw_security *s, struct rxw_security_conn *c,
		       const struct rxw_seal_info *info, uint8_t *packet, size_t size,
		       uint16_t spare, size_t *offset, size_t *length)
{
	uint64_t seed = seed_of(info), sum;

	(void)s;
	(void)c;
	if (size < TEST_HEAD + TEST_TAIL || spare != (uint16_t)(seed >> 16))
		return -1;
	change(packet, size, seed);
	*offset = TEST_HEAD;
	*length = size - TEST_HEAD - TEST_TAIL;
	sum = rxw_siphash(packet + TEST_HEAD, *length, test_key) ^ seed;
	if (rxw_get32(packet) != (uint32_t)(sum >> 32) || rxw_get32(packet + 4) != (uint32_t)sum)
		return -1;
	for (size_t i = 0; i < TEST_TAIL; i++)
		if (packet[TEST_HEAD + *length + i] != 0x5a)
			return -1;
	return 0;
}

static const struct rxw_security_ops test_ops = {
	.name = "test",
	.index = TEST_INDEX,
	.head = TEST_HEAD,
	.tail = TEST_TAIL,
	.needs_verify = true,
	.deferred = true,
	.seal = test_seal,
	.verify = test_verify,
};

struct rxw_security rxw_security_test_class = {.ops = &test_ops};
