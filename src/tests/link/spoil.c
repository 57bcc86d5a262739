/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes bits of UDP datagrams, with or without a matching checksum. */
#include <netinet/in.h>
#include <stddef.h>

#include "spoil.h"

#define UDP_HEADER 8u

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Offset of the UDP header; 0 if this is not a complete datagram. */
static uint32_t find_udp(const uint8_t *packet, uint32_t length)
{
	uint32_t at;

	if (length >= 20 && packet[0] >> 4 == 4) {
		at = (packet[0] & 15u) * 4;
		if (at < 20 || packet[9] != IPPROTO_UDP || get16(packet + 6) & 0x3fff)
			return 0;
	} else if (length >= 40 && packet[0] >> 4 == 6) {
		at = 40;
		if (packet[6] != IPPROTO_UDP)
			return 0;
	} else {
		return 0;
	}
	if (length < at + UDP_HEADER || get16(packet + at + 4) != length - at)
		return 0;
	return at;
}

/*
 * Replacing a word changes the sum, which is stored complemented, by the difference of the words
 * (modulo 65535).
 */
static unsigned fixed_sum(unsigned sum, unsigned was, unsigned is)
{
	uint32_t s = (~sum & 0xffff) + (~was & 0xffff) + is;

	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	s = ~s & 0xffff;
	return s ? s : 0xffff; /* 0 would mean that there is none */
}

bool spoil(uint8_t *packet, uint32_t length, uint64_t random, bool fix_checksum, uint32_t behind)
{
	uint32_t udp = find_udp(packet, length), words, at;
	unsigned was, is, bits, sum;

	behind &= ~1u;
	if (!udp || length < udp + UDP_HEADER + behind + 2)
		return false;
	sum = get16(packet + udp + 6);
	words = (length - udp - UDP_HEADER - behind) / 2;
	/* Half of the changes are in the packet's header. */
	if (random & 1 && words > 16 && !behind)
		words = 16;
	at = udp + UDP_HEADER + behind + 2 * (uint32_t)((random >> 1 & 0xffffffff) % words);
	was = get16(packet + at);
	bits = (unsigned)(random >> 40) & 0xffff;
	if (bits == 0)
		bits = 1;
	is = was ^ bits;
	/* 0 and 65535 are equal in the checksum, so that change would not be detected. */
	if ((was ^ is) == 0xffff)
		is ^= 1;
	put16(packet + at, is);
	if (fix_checksum && sum)
		put16(packet + udp + 6, fixed_sum(sum, was, is));
	return true;
}
