/* SPDX-License-Identifier: BSD-2-Clause */
/* Routers and NATs of the emulated link: ICMP, fragments, large packets, addresses, checksums. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "nat.h"
#include "packet.h"
#include "tests/main.h"

static uint8_t packet[PACKET_MOST];

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* A datagram or segment with `payload` bytes, complete. Returns its length. */
static uint32_t make(unsigned version, uint8_t protocol, uint32_t payload, bool df)
{
	uint32_t header = version == 4 ? 20 : 40, inner = protocol == IPPROTO_UDP ? 8 : 32;
	uint32_t length = header + inner + payload;
	struct packet_view v;

	for (uint32_t i = 0; i < length; i++)
		packet[i] = (uint8_t)(i * 7 + i / 256);
	memset(packet, 0, header + inner);
	if (version == 4) {
		packet[0] = 0x45;
		packet[1] = 2; /* ECT(0) */
		put16(packet + 2, length);
		put16(packet + 4, 0xfffe);
		put16(packet + 6, df ? 0x4000 : 0);
		packet[8] = 64;
		packet[9] = protocol;
		ck_assert(inet_pton(AF_INET, "10.0.0.1", packet + 12) == 1);
		ck_assert(inet_pton(AF_INET, "10.0.0.2", packet + 16) == 1);
	} else {
		packet[0] = 0x60;
		packet[1] = 0x20;
		put16(packet + 4, length - 40);
		packet[6] = protocol;
		packet[7] = 64;
		ck_assert(inet_pton(AF_INET6, "fd00::1", packet + 8) == 1);
		ck_assert(inet_pton(AF_INET6, "fd00::2", packet + 24) == 1);
	}
	put16(packet + header, 1000);
	put16(packet + header + 2, 2000);
	if (protocol == IPPROTO_TCP) {
		put16(packet + header + 6, 0xff00); /* sequence number 65280 */
		packet[header + 12] = 0x80;
		packet[header + 13] = 0x99; /* CWR, ACK, PSH, FIN */
	}
	v = packet_view(packet, length);
	ck_assert(v.version == version && v.inner == inner && v.may_cut == (version == 4 && !df));
	packet_set_length(packet, &v, length);
	packet_set_sum(packet, &v, length, false);
	return length;
}

/* Sums over what the checksums cover, which are right if they are all ones. */
static bool sums_right(const uint8_t *p, uint32_t length)
{
	struct packet_view v = packet_view(p, length);
	uint64_t sum = length - v.header + v.protocol;

	if (v.version == 4 && packet_fold(packet_sum(p, v.header, 0)) != 0xffff)
		return false;
	sum = packet_sum(p + (v.version == 4 ? 12 : 8), v.version == 4 ? 8 : 32, sum);
	if (v.version == 4 && v.protocol == IPPROTO_ICMP)
		sum = 0;
	return packet_fold(packet_sum(p + v.header, length - v.header, sum)) == 0xffff;
}

START_TEST(test_views)
{
	uint32_t length = make(4, IPPROTO_UDP, 100, true);

	ck_assert(sums_right(packet, length));
	/* Anything else is "other", or has no ports. */
	ck_assert(packet_view(packet, length - 1).version == 0);
	ck_assert(packet_view(packet, 19).version == 0);
	ck_assert(packet_view(packet, 0).version == 0);
	packet[0] = 0x44;
	ck_assert(packet_view(packet, length).version == 0);
	packet[0] = 0x4f;
	put16(packet + 2, 60);
	ck_assert(packet_view(packet, 60).inner == 0);
	ck_assert(packet_view(packet, 59).version == 0);
	length = make(4, IPPROTO_UDP, 100, true);
	put16(packet + 6, 0x2000);
	ck_assert(packet_view(packet, length).fragment && packet_view(packet, length).inner == 0);
	length = make(6, IPPROTO_TCP, 0, false);
	packet[40 + 12] = 0xf0; /* longer than the packet */
	ck_assert(packet_view(packet, length).inner == 0);
	packet[40 + 12] = 0x40;
	ck_assert(packet_view(packet, length).inner == 0);
	/* All first bytes, at all lengths: nothing beyond the end is read (under a sanitizer). */
	for (unsigned first = 0; first < 256; first++) {
		for (uint32_t n = 0; n < 90; n++) {
			uint8_t *p = malloc(n + 1), report[PACKET_REPORT_MOST];

			memset(p, 0, n + 1);
			p[0] = (uint8_t)first;
			if (n > 9) {
				put16(p + (first >> 4 == 4 ? 2 : 4), first >> 4 == 4 ? n : n - 40);
				p[first >> 4 == 4 ? 9 : 6] =
					(uint8_t)(n % 2 ? IPPROTO_UDP : IPPROTO_TCP);
			}
			packet_view(p, n);
			packet_is_report(p, n);
			packet_report(p, n, 1280, report);
			free(p);
		}
	}
}
END_TEST

START_TEST(test_marking)
{
	for (unsigned version = 4; version <= 6; version += 2) {
		uint32_t length = make(version, IPPROTO_UDP, 50, true);
		struct packet_view v = packet_view(packet, length);

		ck_assert(v.ecn == 2);
		packet_mark(packet, &v);
		ck_assert(packet_view(packet, length).ecn == 3 && sums_right(packet, length));
		for (unsigned bits = 0; bits < 4; bits++) {
			packet_set_ecn(packet, &v, bits);
			ck_assert(packet_view(packet, length).ecn == bits &&
				  sums_right(packet, length));
		}
	}
}
END_TEST

START_TEST(test_reports)
{
	uint8_t report[PACKET_REPORT_MOST];
	uint32_t length = make(4, IPPROTO_UDP, 1400, true), n;

	n = packet_report(packet, length, 1280, report);
	ck_assert(n == 576 && sums_right(report, n));
	ck_assert(report[20] == 3 && report[21] == 4 && get16(report + 26) == 1280);
	/* To the sender, about its packet. */
	ck_assert(memcmp(report + 16, packet + 12, 4) == 0 &&
		  memcmp(report + 28, packet, 548) == 0);
	ck_assert(packet_is_report(report, n));
	ck_assert(packet_report(report, n, 500, packet) == 0);
	length = make(6, IPPROTO_UDP, 1400, true);
	n = packet_report(packet, length, 1300, report);
	ck_assert(n == 1280 && sums_right(report, n) && packet_is_report(report, n));
	ck_assert(report[40] == 2 && get16(report + 46) == 1300);
	ck_assert(packet_report(report, n, 500, packet) == 0);
}
END_TEST

static uint8_t joined[PACKET_MOST];
static uint32_t joined_length, fragments;

static void on_fragment(void *arg, const uint8_t *f, uint32_t length)
{
	uint32_t at = (get16(f + 6) & 0x1fffu) * 8;

	(void)arg;
	ck_assert(length <= 576 && get16(f + 2) == length);
	ck_assert(packet_fold(packet_sum(f, 20, 0)) == 0xffff);
	ck_assert(packet_view(f, length).fragment);
	ck_assert(at == joined_length);
	memcpy(joined + at, f + 20, length - 20);
	joined_length = at + length - 20;
	ck_assert(((get16(f + 6) & 0x2000) != 0) == (joined_length < 1408));
	fragments++;
}

START_TEST(test_fragments)
{
	uint32_t length = make(4, IPPROTO_UDP, 1400, false);

	joined_length = fragments = 0;
	ck_assert(packet_cut(packet, length, 576, on_fragment, NULL));
	ck_assert(fragments == 3 && joined_length == 1408 &&
		  memcmp(joined, packet + 20, 1408) == 0);
	make(4, IPPROTO_UDP, 1400, true);
	ck_assert(!packet_cut(packet, length, 576, on_fragment, NULL));
	length = make(6, IPPROTO_UDP, 1400, false);
	ck_assert(!packet_cut(packet, length, 576, on_fragment, NULL));
}
END_TEST

/* The parts of a large packet, and a packet of some of them, are what a network card would make. */
static void check_parts(unsigned version, uint8_t protocol)
{
	uint32_t length = make(version, protocol, 10 * 1000 + 1, true), payload, bytes;
	struct packet_view v = packet_view(packet, length);
	struct packet_large l = {packet, length, v.header + v.inner, 1000};
	static uint8_t part[PACKET_MOST];
	uint8_t *tcp = part + v.header;

	ck_assert(packet_parts(&l) == 11);
	ck_assert(packet_part_length(&l, 0) == l.headers + 1000);
	ck_assert(packet_part_length(&l, 10) == l.headers + 1);
	for (uint32_t first = 0; first < 11; first++) {
		for (uint32_t count = 1; first + count <= 11; count++) {
			uint32_t whole;
			struct packet_view pv;

			bytes = packet_part_headers(&l, &v, first, count, part, &payload);
			ck_assert(payload == l.headers + first * 1000);
			ck_assert(bytes ==
				  (first + count == 11 ? (count - 1) * 1000 + 1 : count * 1000));
			memcpy(part + l.headers, packet + payload, bytes);
			whole = l.headers + bytes;
			pv = packet_view(part, whole);
			ck_assert(pv.version == version && pv.inner == v.inner);
			packet_set_sum(part, &pv, whole, false);
			ck_assert(sums_right(part, whole));
			ck_assert(version != 4 || get16(part + 4) == ((0xfffe + first) & 0xffff));
			if (protocol == IPPROTO_UDP) {
				ck_assert(get16(part + v.header + 4) == 8 + bytes);
				continue;
			}
			ck_assert_uint_eq((uint32_t)get16(tcp + 4) << 16 | get16(tcp + 6),
					  0xff00 + first * 1000);
			ck_assert(tcp[13] == (0x10 | (first == 0 ? 0x80 : 0) |
					      (first + count == 11 ? 0x09 : 0)));
		}
	}
}

START_TEST(test_large_packets)
{
	check_parts(4, IPPROTO_UDP);
	check_parts(6, IPPROTO_UDP);
	check_parts(4, IPPROTO_TCP);
	check_parts(6, IPPROTO_TCP);
}
END_TEST

/* The packet as its receiver would answer it. */
static void turn_round(unsigned version, uint32_t length)
{
	struct packet_view v = packet_view(packet, length);
	uint32_t size = version == 4 ? 4 : 16, at = version == 4 ? 12 : 8;
	uint8_t t[16];

	memcpy(t, packet + at, size);
	memcpy(packet + at, packet + at + size, size);
	memcpy(packet + at + size, t, size);
	memcpy(t, packet + v.header, 2);
	memcpy(packet + v.header, packet + v.header + 2, 2);
	memcpy(packet + v.header + 2, t, 2);
}

static void check_nat(unsigned version, uint8_t protocol, const char *first, const char *second)
{
	struct link_nat *nat = link_nat_new();
	uint32_t header = version == 4 ? 20 : 40, size = version == 4 ? 4 : 16,
		 source = version == 4 ? 12 : 8;
	uint32_t length = make(version, protocol, 101, true);
	uint8_t outer[16], original[PACKET_MOST];
	uint16_t port;

	ck_assert(link_nat_add(nat, first) && link_nat_add(nat, second));
	ck_assert(!link_nat_add(nat, "example"));
	memcpy(original, packet, length);
	ck_assert(link_nat_out(nat, packet, length, false) && sums_right(packet, length));
	ck_assert(inet_pton(version == 4 ? AF_INET : AF_INET6, first, outer) == 1);
	ck_assert(memcmp(packet + source, outer, size) == 0);
	port = get16(packet + header);
	ck_assert(port >= 20000 && memcmp(packet + header + 4, original + header + 4, 2) == 0);
	/* The answer comes back to where the packet came from. */
	turn_round(version, length);
	ck_assert(link_nat_in(nat, packet, length, false) && sums_right(packet, length));
	turn_round(version, length);
	ck_assert(memcmp(packet, original, length) == 0);
	/* The mapping stays, until it is forgotten: then another port, and another address. */
	ck_assert(link_nat_out(nat, packet, length, false) && get16(packet + header) == port);
	link_nat_rebind(nat);
	turn_round(version, length);
	ck_assert(!link_nat_in(nat, packet, length, false));
	memcpy(packet, original, length);
	ck_assert(link_nat_out(nat, packet, length, false) && sums_right(packet, length));
	ck_assert(get16(packet + header) != port && memcmp(packet + source, outer, size) != 0);
	turn_round(version, length);
	ck_assert(link_nat_in(nat, packet, length, false));
	ck_assert(link_nat_counters(nat)->refused == 1 && link_nat_counters(nat)->mappings == 2);
	link_nat_free(nat);
}

START_TEST(test_nat)
{
	check_nat(4, IPPROTO_UDP, "10.1.0.1", "10.1.0.2");
	check_nat(4, IPPROTO_TCP, "10.1.0.1", "10.1.0.2");
	check_nat(6, IPPROTO_UDP, "fd01::1", "fd01::2");
	check_nat(6, IPPROTO_TCP, "fd01::1", "fd01::2");
}
END_TEST

START_TEST(test_nat_partial_sums)
{
	for (unsigned version = 4; version <= 6; version += 2) {
		struct link_nat *nat = link_nat_new();
		uint32_t length = make(version, IPPROTO_UDP, 300, true);
		struct packet_view v = packet_view(packet, length);
		uint16_t sum;

		ck_assert(link_nat_add(nat, version == 4 ? "10.1.0.1" : "fd01::1"));
		packet_set_sum(packet, &v, length, true);
		ck_assert(link_nat_out(nat, packet, length, true));
		sum = get16(packet + v.sum);
		packet_set_sum(packet, &v, length, true);
		ck_assert(get16(packet + v.sum) == sum);
		link_nat_free(nat);
	}
}
END_TEST

START_TEST(test_nat_without_udp_sum)
{
	struct link_nat *nat = link_nat_new();
	uint32_t length = make(4, IPPROTO_UDP, 300, true);

	ck_assert(link_nat_add(nat, "10.1.0.1"));
	put16(packet + 26, 0);
	ck_assert(link_nat_out(nat, packet, length, false) && get16(packet + 26) == 0);
	ck_assert(packet_fold(packet_sum(packet, 20, 0)) == 0xffff);
	/* Without ports: not from inside, and not to it. Other packets are none of its business. */
	put16(packet + 6, 0x2000);
	ck_assert(!link_nat_out(nat, packet, length, false));
	length = make(6, IPPROTO_UDP, 10, true);
	ck_assert(link_nat_out(nat, packet, length, false));
	link_nat_free(nat);
}
END_TEST

START_TEST(test_nat_reports)
{
	for (unsigned version = 4; version <= 6; version += 2) {
		struct link_nat *nat = link_nat_new();
		uint32_t header = version == 4 ? 20 : 40,
			 length = make(version, IPPROTO_UDP, 600, true), n;
		uint32_t source = version == 4 ? 12 : 8, size = version == 4 ? 4 : 16;
		uint8_t report[PACKET_REPORT_MOST], inside[16];

		ck_assert(link_nat_add(nat, version == 4 ? "10.1.0.1" : "fd01::1"));
		memcpy(inside, packet + source, size);
		ck_assert(link_nat_out(nat, packet, length, false));
		n = packet_report(packet, length, 1280, report);
		ck_assert(link_nat_in(nat, report, n, false) && sums_right(report, n));
		/* To the inside, about the packet as it was there. */
		ck_assert(memcmp(report + source + size, inside, size) == 0);
		ck_assert(memcmp(report + header + 8 + source, inside, size) == 0);
		ck_assert(get16(report + 2 * header + 8) == 1000);
		/* Of a mapping that is forgotten. */
		link_nat_rebind(nat);
		n = packet_report(packet, length, 1280, report);
		ck_assert(!link_nat_in(nat, report, n, false));
		link_nat_free(nat);
	}
}
END_TEST

START_TEST(test_nat_is_bounded)
{
	struct link_nat *nat = link_nat_new();
	uint32_t length = make(4, IPPROTO_UDP, 0, true);
	uint8_t original[64];

	ck_assert(link_nat_add(nat, "10.1.0.1"));
	memcpy(original, packet, length);
	for (unsigned i = 0; i < 300; i++) {
		memcpy(packet, original, length);
		put16(packet + 20, 1 + i);
		put16(packet + 26, 0);
		ck_assert(link_nat_out(nat, packet, length, false));
		ck_assert_uint_eq(get16(packet + 20), 20000 + i);
	}
	/* The newest answers; the oldest has been replaced. */
	turn_round(4, length);
	ck_assert(link_nat_in(nat, packet, length, false) && get16(packet + 22) == 300);
	memcpy(packet, original, length);
	put16(packet + 26, 0);
	put16(packet + 20, 2000);
	put16(packet + 22, 20000);
	ck_assert(inet_pton(AF_INET, "10.1.0.1", packet + 16) == 1);
	ck_assert(!link_nat_in(nat, packet, length, false));
	link_nat_free(nat);
}
END_TEST

TEST_MAIN("link_packet", test_views, test_marking, test_reports, test_fragments, test_large_packets,
	  test_nat, test_nat_partial_sums, test_nat_without_udp_sum, test_nat_reports,
	  test_nat_is_bounded)
