/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A class for tests: bytes around the data, every byte changed, slow verification. No protection.
 */
#include <string.h>

#include "base/hash.h"
#include "base/wire.h"
#include "tests/support/test_class.h"

#define TEST_INDEX 251
#define TEST_HEAD  8u
#define TEST_TAIL  12u

static const uint64_t test_key[2] = {0x7278776972652074ull, 0x65737420636c6173ull};

struct test_conn {
	struct rxw_security_id id;
};

static uint64_t seed_of(const struct test_conn *c, const struct rxw_security_packet *p, bool client)
{
	uint32_t words[5] = {c->id.epoch, c->id.cid | p->channel, p->call, p->seq, client};

	return rxw_siphash(words, sizeof(words), test_key) | 1;
}

/* XOR with a stream of bytes from the seed; opens what it sealed. */
static void change(uint8_t *p, size_t length, uint64_t state)
{
	while (length > 0) {
		uint64_t word = rxw_prng(&state), there = 0;
		size_t n = length < sizeof(word) ? length : sizeof(word);

		/* both ends use this library: byte order does not matter */
		memcpy(&there, p, n);
		there ^= word;
		memcpy(p, &there, n);
		p += n;
		length -= n;
	}
}

static int test_create(void *data, const struct rxw_security_id *id, void **conn)
{
	struct test_conn *c = rxw_mem_get(NULL, sizeof(*c));

	(void)data;
	if (c == NULL)
		return -RXW_ENOMEM;
	c->id = *id;
	*conn = c;
	return 0;
}

static void test_destroy(void *conn)
{
	rxw_mem_give(NULL, conn, sizeof(struct test_conn));
}

static void test_room(const void *conn, struct rxw_security_room *room)
{
	(void)conn;
	room->head = TEST_HEAD;
	room->tail = TEST_TAIL;
}

static void seal_one(const struct test_conn *c, struct rxw_security_packet *p)
{
	uint64_t seed = seed_of(c, p, c->id.client), sum;

	sum = rxw_siphash(p->data + TEST_HEAD, p->length, test_key) ^ seed;
	rxw_put32(p->data, (uint32_t)(sum >> 32));
	rxw_put32(p->data + 4, (uint32_t)sum);
	memset(p->data + TEST_HEAD + p->length, 0x5a, TEST_TAIL);
	change(p->data, TEST_HEAD + p->length + TEST_TAIL, seed);
	p->spare = (uint16_t)(seed >> 16);
}

static int test_seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		seal_one(conn, &packets[i]);
	return 0;
}

static bool open_one(const struct test_conn *c, struct rxw_security_packet *p)
{
	uint64_t seed = seed_of(c, p, !c->id.client), sum;
	uint32_t length = p->length - TEST_HEAD - TEST_TAIL;

	if (p->length < TEST_HEAD + TEST_TAIL || p->spare != (uint16_t)(seed >> 16))
		return false;
	change(p->data, p->length, seed);
	sum = rxw_siphash(p->data + TEST_HEAD, length, test_key) ^ seed;
	if (rxw_get32(p->data) != (uint32_t)(sum >> 32) || rxw_get32(p->data + 4) != (uint32_t)sum)
		return false;
	for (size_t i = 0; i < TEST_TAIL; i++)
		if (p->data[TEST_HEAD + length + i] != 0x5a)
			return false;
	p->length = length;
	return true;
}

static void test_verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		packets[i].result = open_one(conn, &packets[i]) ? 0 : -1;
}

struct rxw_security rxw_security_test_class = {
	.class =
		{
			.size = sizeof(struct rxw_security_class),
			.name = "test",
			.index = TEST_INDEX,
			.flags = RXW_CLASS_SLOW,
			.conn_create = test_create,
			.conn_destroy = test_destroy,
			.room = test_room,
			.seal = test_seal,
			.verify = test_verify,
		},
};
