/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets as routers and network cards treat them: ICMP errors, fragments, checksums, segments. */
#include <netinet/in.h>
#include <string.h>

#include "packet.h"

#define IP4	    20u
#define IP6	    40u
#define UDP	    8u
#define TCP	    20u
#define ICMP	    8u
#define DF	    0x4000u
#define MF	    0x2000u
#define OFFSET	    0x1fffu
#define TCP_FIN_PSH 0x09u
#define TCP_CWR	    0x80u
#define QUOTED4	    548u /* of an IPv4 report: 576 bytes in all (RFC 1812, 4.3.2.3) */

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

uint64_t packet_sum(const uint8_t *bytes, uint32_t length, uint64_t sum)
{
	for (; length > 1; bytes += 2, length -= 2)
		sum += get16(bytes);
	return length != 0 ? sum + ((unsigned)bytes[0] << 8) : sum;
}

uint16_t packet_fold(uint64_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void set_ip_sum(uint8_t *packet, uint32_t header)
{
	put16(packet + 10, 0);
	put16(packet + 10, (uint16_t)~packet_fold(packet_sum(packet, header, 0)));
}

struct packet_view packet_view(const uint8_t *packet, uint32_t length)
{
	struct packet_view v = {0};

	if (length >= IP4 && packet[0] >> 4 == 4) {
		v.header = (packet[0] & 15u) * 4;
		if (v.header < IP4 || v.header > length || get16(packet + 2) != length)
			return (struct packet_view){0};
		v.version = 4;
		v.protocol = packet[9];
		v.fragment = (get16(packet + 6) & (MF | OFFSET)) != 0;
		v.may_cut = (get16(packet + 6) & DF) == 0;
		v.ecn = packet[1] & 3;
	} else if (length >= IP6 && packet[0] >> 4 == 6) {
		if (get16(packet + 4) + IP6 != length)
			return v;
		v.version = 6;
		v.header = IP6;
		v.protocol = packet[6];
		v.fragment = v.protocol == IPPROTO_FRAGMENT;
		v.ecn = packet[1] >> 4 & 3;
	}
	if (v.version == 0 || v.fragment)
		return v;
	if (v.protocol == IPPROTO_UDP && length >= v.header + UDP) {
		v.inner = UDP;
		v.sum = v.header + 6;
	} else if (v.protocol == IPPROTO_TCP && length >= v.header + TCP) {
		v.inner = (packet[v.header + 12] >> 4) * 4u;
		v.sum = v.header + 16;
		if (v.inner < TCP || v.header + v.inner > length)
			v.inner = 0;
	}
	return v;
}

void packet_set_ecn(uint8_t *packet, const struct packet_view *v, unsigned bits)
{
	if (v->version == 4) {
		packet[1] = (uint8_t)((packet[1] & ~3u) | bits);
		set_ip_sum(packet, v->header);
	} else if (v->version == 6) {
		packet[1] = (uint8_t)((packet[1] & ~0x30u) | bits << 4);
	}
}

void packet_mark(uint8_t *packet, const struct packet_view *v)
{
	packet_set_ecn(packet, v, 3);
}

void packet_set_length(uint8_t *packet, const struct packet_view *v, uint32_t length)
{
	if (v->version == 4) {
		put16(packet + 2, length);
		set_ip_sum(packet, v->header);
	} else {
		put16(packet + 4, length - IP6);
	}
	if (v->protocol == IPPROTO_UDP && v->inner != 0)
		put16(packet + v->header + 4, length - v->header);
}

static uint64_t pseudo_sum(const uint8_t *packet, const struct packet_view *v, uint32_t length)
{
	uint64_t sum =
		v->version == 4 ? packet_sum(packet + 12, 8, 0) : packet_sum(packet + 8, 32, 0);

	return sum + v->protocol + (length - v->header);
}

void packet_set_sum(uint8_t *packet, const struct packet_view *v, uint32_t length, bool partial)
{
	uint64_t sum = pseudo_sum(packet, v, length);
	uint16_t folded;

	if (partial) {
		put16(packet + v->sum, packet_fold(sum));
		return;
	}
	put16(packet + v->sum, 0);
	folded = (uint16_t)~packet_fold(packet_sum(packet + v->header, length - v->header, sum));
	/* 0 would mean that there is none. */
	put16(packet + v->sum, folded == 0 && v->protocol == IPPROTO_UDP ? 0xffff : folded);
}

bool packet_is_report(const uint8_t *packet, uint32_t length)
{
	struct packet_view v = packet_view(packet, length);

	if (v.version == 4 && v.protocol == IPPROTO_ICMP && !v.fragment && length > v.header) {
		uint8_t type = packet[v.header];

		return type == 3 || type == 11 || type == 12;
	}
	/* Of ICMPv6, types below 128 are errors. */
	return v.version == 6 && v.protocol == IPPROTO_ICMPV6 && length > IP6 && packet[IP6] < 128;
}

uint32_t packet_report(const uint8_t *packet, uint32_t length, uint32_t mtu, uint8_t *report)
{
	struct packet_view v = packet_view(packet, length), r = {0};
	uint32_t quoted, total;
	uint8_t *icmp;

	/* Errors are not reported, nor are fragments but the first (RFC 1122, 3.2.2). */
	if (v.version == 0 || packet_is_report(packet, length) ||
	    (v.version == 4 && (get16(packet + 6) & OFFSET) != 0))
		return 0;
	quoted = v.version == 4 ? QUOTED4 : PACKET_REPORT_MOST - IP6 - ICMP;
	if (quoted > length)
		quoted = length;
	total = (v.version == 4 ? IP4 : IP6) + ICMP + quoted;
	memset(report, 0, total - quoted);
	memcpy(report + total - quoted, packet, quoted);
	icmp = report + total - quoted - ICMP;
	r.version = v.version;
	if (v.version == 4) {
		report[0] = 0x45;
		report[8] = 64;
		report[9] = r.protocol = IPPROTO_ICMP;
		memcpy(report + 12, packet + 16, 4);
		memcpy(report + 16, packet + 12, 4);
		r.header = IP4;
		icmp[0] = 3;
		icmp[1] = 4;
		put16(icmp + 6, mtu > 0xffff ? 0xffff : mtu);
	} else {
		report[0] = 0x60;
		report[6] = r.protocol = IPPROTO_ICMPV6;
		report[7] = 64;
		memcpy(report + 8, packet + 24, 16);
		memcpy(report + 24, packet + 8, 16);
		r.header = IP6;
		icmp[0] = 2;
		put32(icmp + 4, mtu);
	}
	packet_set_length(report, &r, total);
	if (v.version == 4)
		put16(icmp + 2, (uint16_t)~packet_fold(packet_sum(icmp, ICMP + quoted, 0)));
	else
		put16(icmp + 2, (uint16_t)~packet_fold(packet_sum(icmp, ICMP + quoted,
								  pseudo_sum(report, &r, total))));
	return total;
}

bool packet_cut(const uint8_t *packet, uint32_t length, uint32_t mtu,
		void (*each)(void *arg, const uint8_t *fragment, uint32_t length), void *arg)
{
	struct packet_view v = packet_view(packet, length);
	uint8_t fragment[PACKET_MOST];
	uint32_t step, first;

	/* Options would have to be left out of some fragments; no program here uses any. */
	if (v.version != 4 || !v.may_cut || v.header != IP4 || mtu < IP4 + 8)
		return false;
	step = (mtu - IP4) & ~7u;
	first = get16(packet + 6);
	for (uint32_t at = IP4; at < length; at += step) {
		uint32_t n = length - at < step ? length - at : step;
		unsigned more = at + n < length ? MF : first & MF;

		memcpy(fragment, packet, IP4);
		memcpy(fragment + IP4, packet + at, n);
		put16(fragment + 2, IP4 + n);
		put16(fragment + 6, ((first & OFFSET) + (at - IP4) / 8) | more);
		set_ip_sum(fragment, IP4);
		each(arg, fragment, IP4 + n);
	}
	return true;
}

uint32_t packet_parts(const struct packet_large *l)
{
	uint32_t payload = l->length - l->headers;

	return payload == 0 ? 1 : (payload + l->segment - 1) / l->segment;
}

uint32_t packet_part_length(const struct packet_large *l, uint32_t part)
{
	uint32_t left = l->length - l->headers - part * l->segment;

	return l->headers + (left < l->segment ? left : l->segment);
}

uint32_t packet_part_headers(const struct packet_large *l, const struct packet_view *v,
			     uint32_t first, uint32_t count, uint8_t *headers, uint32_t *payload)
{
	uint32_t offset = first * l->segment, left = l->length - l->headers - offset;
	uint32_t bytes = (uint64_t)count * l->segment < left ? count * l->segment : left;

	memcpy(headers, l->bytes, l->headers);
	if (v->version == 4)
		put16(headers + 4, (get16(headers + 4) + first) & 0xffff);
	packet_set_length(headers, v, l->headers + bytes);
	if (v->protocol == IPPROTO_TCP) {
		uint8_t *tcp = headers + v->header;

		put32(tcp + 4, get32(tcp + 4) + offset);
		if (bytes < left)
			tcp[13] &= (uint8_t)~TCP_FIN_PSH;
		if (first != 0)
			tcp[13] &= (uint8_t)~TCP_CWR;
	}
	*payload = l->headers + offset;
	return bytes;
}
