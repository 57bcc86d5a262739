/* SPDX-License-Identifier: BSD-2-Clause */
/* The test class: it opens what it sealed, and nothing else. */
#include <string.h>

#include "tests/rx/proto/bench.h"
#include "tests/support/test_class.h"

static const struct rxw_security_id id = {1, 4, 3, 251, true}, peers = {1, 4, 3, 251, false};
static const struct rxw_security_class *k = &rxw_security_test_class.class;

static void *conn(const struct rxw_security_id *of)
{
	void *c;

	ck_assert_int_eq(k->conn_create(NULL, of, &c), 0);
	return c;
}

START_TEST(seal_and_open)
{
	void *one = conn(&id), *other = conn(&peers);
	struct rxw_security_room room = {0};
	uint8_t packet[1500], clear[1500];

	k->room(one, &room);
	for (uint32_t size = 0; size <= 1400; size += 7) {
		struct rxw_security_packet p = {.data = packet, .call = 3, .seq = 4, .length = size};

		for (size_t i = 0; i < size; i++)
			clear[i] = packet[room.head + i] = (uint8_t)(i * 3);
		ck_assert_int_eq(k->seal(one, &p, 1), 0);
		if (size > 16)
			ck_assert_mem_ne(packet + 8, clear, size);
		p.length = rxw_sealed_size(&room, size);
		ck_assert_uint_eq(p.length, size + 20);
		p.result = 7;
		k->verify(other, &p, 1);
		ck_assert_int_eq(p.result, 0);
		ck_assert_uint_eq(p.length, size);
		ck_assert_mem_eq(packet + room.head, clear, size);
	}
	k->conn_destroy(one);
	k->conn_destroy(other);
}
END_TEST

static int32_t verdict(const struct rxw_security_id *of, const struct rxw_security_packet *p,
		       const uint8_t *bytes, uint32_t length)
{
	struct rxw_security_packet copy = *p;
	uint8_t data[200];
	void *c = conn(of);

	memcpy(data, bytes, sizeof(data));
	copy.data = data;
	copy.length = length;
	copy.result = 0;
	k->verify(c, &copy, 1);
	k->conn_destroy(c);
	return copy.result;
}

START_TEST(refuses)
{
	uint8_t packet[200];
	struct rxw_security_packet p = {.data = packet, .call = 3, .seq = 4, .length = 100}, other;
	struct rxw_security_id of;
	void *c = conn(&id);

	memset(packet, 7, sizeof(packet));
	k->seal(c, &p, 1);
	ck_assert_int_eq(verdict(&peers, &p, packet, 120), 0);
	for (unsigned i = 0; i < 120; i++) {
		packet[i] ^= 1;
		ck_assert_int_eq(verdict(&peers, &p, packet, 120), -1);
		packet[i] ^= 1;
	}
	for (unsigned i = 0; i < 7; i++) {
		other = p;
		of = peers;
		of.epoch += i == 0;
		of.cid += i == 1 ? 4 : 0;
		of.client ^= i == 2;
		other.call += i == 3;
		other.seq += i == 4;
		other.spare = (uint16_t)(other.spare + (i == 5));
		other.channel = i == 6;
		ck_assert_int_eq(verdict(&of, &other, packet, 120), -1);
	}
	ck_assert_int_eq(verdict(&peers, &p, packet, 19), -1);
	k->conn_destroy(c);
}
END_TEST

/* Sealed sizes and payload sizes, for classes with padding. */
START_TEST(room)
{
	static const struct rxw_security_room rooms[] = {
		{0},
		{8, 12, 0, 0, false},
		{4, 0, 1, 8, false},
		{8, 0, 8, 0, false},
		{64, 64, 16, 64, false},
		{28, 12, 16, 0, false}};

	for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		for (uint32_t size = 0; size < 1500; size++) {
			uint32_t most = rxw_sealed_capacity(&rooms[i], size);

			if (most > 0)
				ck_assert_uint_le(rxw_sealed_size(&rooms[i], most), size);
			if (rxw_sealed_size(&rooms[i], 1) <= size)
				ck_assert_uint_gt(rxw_sealed_size(&rooms[i], most + 1), size);
		}
	ck_assert_uint_eq(rxw_sealed_size(&rooms[3], 0), 8);
	ck_assert_uint_eq(rxw_sealed_size(&rooms[3], 1), 16);
	ck_assert_uint_eq(rxw_sealed_size(&rooms[2], 1), 8);
	ck_assert_uint_eq(rxw_sealed_size(&rooms[2], 5), 9);
	ck_assert_uint_eq(rxw_sealed_capacity(&rooms[3], 1416), 1408);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("security_test");
	TCase *tcase = tcase_create("security_test");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, seal_and_open);
	tcase_add_test(tcase, refuses);
	tcase_add_test(tcase, room);
	return bench_main(suite);
}
