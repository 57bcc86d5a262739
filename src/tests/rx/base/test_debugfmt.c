/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of base/debugfmt.c: every field at its offset of rx-protocol 8.2, and back. test_vectors.c
 * has the recorded answers.
 */

#include "testing.h"

#include "base/debugfmt.h"
#include "base/wire.h"

/* Big-endian number of `size` bytes at `offset`. */
static uint64_t at(const uint8_t *p, size_t offset, size_t size)
{
	uint64_t v = 0;

	while (size--)
		v = v << 8 | p[offset++];
	return v;
}

START_TEST(stats)
{
	struct rxw_debug_stats v = {
		.free_packets = 1,
		.reclaims = 2,
		.calls_executed = 3,
		.waiting_for_packets = 1,
		.used_fds = 5,
		.waiting = 6,
		.idle_threads = 7,
		.waited = 8,
		.packets = 9,
	};
	struct rxw_debug_stats back;
	uint8_t p[57], again[56];

	memset(p, 0xaa, sizeof(p));
	ck_assert_uint_eq(rxw_debug_stats_put(p, &v), 56);
	ck_assert_uint_eq(p[56], 0xaa);
	ck_assert_uint_eq(at(p, 0, 4), 1);
	ck_assert_uint_eq(at(p, 4, 4), 2);
	ck_assert_uint_eq(at(p, 8, 4), 3);
	ck_assert_uint_eq(p[12], 1);
	ck_assert_uint_eq(p[13], 5);
	ck_assert_int_eq(p[14], 'S');
	ck_assert_uint_eq(p[15], 0);
	ck_assert_uint_eq(at(p, 16, 4), 6);
	ck_assert_uint_eq(at(p, 20, 4), 7);
	ck_assert_uint_eq(at(p, 24, 4), 8);
	ck_assert_uint_eq(at(p, 28, 4), 9);
	for (int i = 32; i < 56; i++)
		ck_assert_uint_eq(p[i], 0);
	ck_assert(!rxw_debug_stats_get(p, 55, &back));
	ck_assert(rxw_debug_stats_get(p, 56, &back));
	/* As bytes on the wire: padding of the structure is not defined. */
	ck_assert_uint_eq(rxw_debug_stats_put(again, &back), 56);
	ck_assert_mem_eq(again, p, sizeof(again));
}
END_TEST

START_TEST(connection)
{
	uint64_t state = test_seed();
	struct rxw_debug_conn v, back;
	uint8_t p[177], again[176];

	memset(&v, 0, sizeof(v));
	v.host[0] = 10;
	v.host[3] = 3;
	v.port = 7001;
	v.cid = 0x11223344;
	v.serial = 5;
	v.call[3] = 77;
	v.error = -1;
	v.flags = 0x28;
	v.type = 1;
	v.security = 2;
	v.call_state[1] = 2;
	v.call_mode[2] = 1;
	v.call_flags[3] = 32;
	v.call_other[0] = 1;
	v.sec_type = 3;
	v.sec_level = 2;
	v.sec_expires = 99;
	v.epoch = 0x80000001u;
	v.nat_mtu = 1444;
	memset(p, 0xaa, sizeof(p));
	ck_assert_uint_eq(rxw_debug_conn_put(p, &v), 176);
	ck_assert_uint_eq(p[176], 0xaa);
	ck_assert_uint_eq(at(p, 0, 4), 0x0a000003);
	ck_assert_uint_eq(at(p, 4, 4), 0x11223344);
	ck_assert_uint_eq(at(p, 8, 4), 5);
	ck_assert_uint_eq(at(p, 24, 4), 77);
	ck_assert_uint_eq(at(p, 28, 4), 0xffffffff);
	ck_assert_uint_eq(at(p, 32, 2), 7001);
	ck_assert_uint_eq(p[34], 0x28);
	ck_assert_uint_eq(p[35], 1);
	ck_assert_uint_eq(p[36], 2);
	ck_assert_uint_eq(p[41], 2);
	ck_assert_uint_eq(p[46], 1);
	ck_assert_uint_eq(p[51], 32);
	ck_assert_uint_eq(p[52], 1);
	ck_assert_uint_eq(p[56], 3);
	ck_assert_uint_eq(p[57], 2);
	ck_assert_uint_eq(at(p, 72, 4), 99);
	ck_assert_uint_eq(at(p, 132, 4), 0x80000001u);
	ck_assert_uint_eq(at(p, 136, 4), 1444);
	ck_assert(!rxw_debug_conn_get(p, 175, &back));
	ck_assert(rxw_debug_conn_get(p, 176, &back));
	ck_assert_mem_eq(&back, &v, sizeof(v));
	ck_assert_uint_eq(rxw_debug_conn_end_put(p), 176);
	ck_assert_uint_eq(at(p, 4, 4), 0xffffffff);
	ck_assert_uint_eq(at(p, 0, 4), 0);
	/* Whatever the bytes are, decoded fields survive encoding. */
	for (int i = 0; i < 1000; i++) {
		test_fill(&state, p, 176);
		ck_assert(rxw_debug_conn_get(p, 176, &v));
		rxw_debug_conn_put(again, &v);
		ck_assert(rxw_debug_conn_get(again, 176, &back));
		ck_assert_mem_eq(&back, &v, sizeof(v));
	}
}
END_TEST

START_TEST(peer)
{
	uint64_t state = test_seed();
	struct rxw_debug_peer v, back;
	uint8_t p[133], again[132];

	memset(&v, 0, sizeof(v));
	v.host[0] = 127;
	v.host[3] = 1;
	v.port = 7000;
	v.if_mtu = 1444;
	v.idle_when = 11;
	v.refs = 2;
	v.rtt = 8;
	v.rtt_dev = 4;
	v.sent = 100;
	v.resent = 3;
	v.nat_mtu = 1445;
	v.max_mtu = 5692;
	v.max_dgram_packets = 4;
	v.if_dgram_packets = 1;
	v.mtu = 1446;
	v.cwind = 32;
	v.dgram_packets = 2;
	v.congest_seq = 9;
	v.bytes_sent = 0x100000002ull;
	v.bytes_received = 0x300000004ull;
	memset(p, 0xaa, sizeof(p));
	ck_assert_uint_eq(rxw_debug_peer_put(p, &v), 132);
	ck_assert_uint_eq(p[132], 0xaa);
	ck_assert_uint_eq(at(p, 0, 4), 0x7f000001);
	ck_assert_uint_eq(at(p, 4, 2), 7000);
	ck_assert_uint_eq(at(p, 6, 2), 1444);
	ck_assert_uint_eq(at(p, 8, 4), 11);
	ck_assert_uint_eq(at(p, 12, 2), 2);
	ck_assert_uint_eq(at(p, 24, 4), 8);
	ck_assert_uint_eq(at(p, 28, 4), 4);
	ck_assert_uint_eq(at(p, 40, 4), 100);
	ck_assert_uint_eq(at(p, 44, 4), 3);
	ck_assert_uint_eq(at(p, 60, 2), 1445);
	ck_assert_uint_eq(at(p, 62, 2), 5692);
	ck_assert_uint_eq(at(p, 64, 2), 4);
	ck_assert_uint_eq(at(p, 66, 2), 1);
	ck_assert_uint_eq(at(p, 68, 2), 1446);
	ck_assert_uint_eq(at(p, 70, 2), 32);
	ck_assert_uint_eq(at(p, 72, 2), 2);
	ck_assert_uint_eq(at(p, 74, 2), 9);
	ck_assert_uint_eq(at(p, 76, 8), 0x100000002ull);
	ck_assert_uint_eq(at(p, 84, 8), 0x300000004ull);
	ck_assert(!rxw_debug_peer_get(p, 131, &back));
	ck_assert(rxw_debug_peer_get(p, 132, &back));
	ck_assert_uint_eq(back.bytes_sent, v.bytes_sent);
	ck_assert_uint_eq(back.congest_seq, 9);
	ck_assert_uint_eq(rxw_debug_peer_end_put(p), 132);
	ck_assert_uint_eq(at(p, 0, 4), 0xffffffff);
	for (int i = 0; i < 1000; i++) {
		test_fill(&state, p, 132);
		ck_assert(rxw_debug_peer_get(p, 132, &v));
		rxw_debug_peer_put(again, &v);
		ck_assert(rxw_debug_peer_get(again, 132, &back));
		rxw_debug_peer_put(p, &back);
		ck_assert_mem_eq(again, p, 132);
	}
}
END_TEST

START_TEST(rxstats)
{
	struct rxw_debug_rxstats v, back;
	uint8_t p[285];

	for (uint32_t i = 0; i < 71; i++)
		v.word[i] = i * 0x01010101u;
	memset(p, 0xaa, sizeof(p));
	ck_assert_uint_eq(rxw_debug_rxstats_put(p, &v), 284);
	ck_assert_uint_eq(p[284], 0xaa);
	ck_assert_uint_eq(at(p, 4 * 70, 4), 0x46464646);
	ck_assert(!rxw_debug_rxstats_get(p, 283, &back));
	ck_assert(rxw_debug_rxstats_get(p, 284, &back));
	ck_assert_mem_eq(&back, &v, sizeof(v));
}
END_TEST

START_TEST(requests)
{
	static const uint8_t body[8] = { 0, 0, 0, 3, 0, 0, 0, 58 };
	uint8_t out[8];
	int32_t type = 9, index = 9;

	rxw_debug_request_get(body, 8, &type, &index);
	ck_assert_int_eq(type, RXW_DEBUG_ALLCONN);
	ck_assert_int_eq(index, 58);
	for (size_t size = 0; size < 8; size++) {
		type = index = 9;
		rxw_debug_request_get(body, size, &type, &index);
		ck_assert_int_eq(type, 0);
		ck_assert_int_eq(index, 0);
	}
	ck_assert_uint_eq(rxw_debug_bad_put(out), 8);
	ck_assert_int_eq((int32_t)rxw_get32(out), -8);
	ck_assert_int_eq((int32_t)rxw_get32(out + 4), -8);
}
END_TEST

TEST_MAIN("debugfmt", stats, connection, peer, rxstats, requests)
