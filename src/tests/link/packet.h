/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 and IPv6 packets of an emulated link: what a router, a NAT or a network card does to them.
 * Nothing is trusted: a packet that cannot be read is "other", and passes as it is.
 */
#ifndef RXW_TESTS_LINK_PACKET_H
#define RXW_TESTS_LINK_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#define PACKET_MOST 65535u

struct packet_view {
	unsigned version; /* 4, 6; 0: other */
	uint8_t protocol; /* IPPROTO_…, of the first header behind that of IP */
	uint32_t header;  /* bytes of the IP header */
	bool fragment;	  /* one of several; then nothing below is valid */
	bool may_cut;	  /* IPv4 without DF */
	uint8_t ecn;	  /* 0: not ECN-capable, 3: marked */
	/* UDP and TCP: bytes of that header, 0 for others, and the offset of its checksum */
	uint32_t inner, sum;
};

/* `length` is that of the whole packet. */
struct packet_view packet_view(const uint8_t *packet, uint32_t length);

/* Ones' complement sum of bytes, added to `sum`. packet_fold() makes 16 bits of it. */
uint64_t packet_sum(const uint8_t *bytes, uint32_t length, uint64_t sum);
uint16_t packet_fold(uint64_t sum);

/* Sets the codepoint "congestion experienced". */
void packet_mark(uint8_t *packet, const struct packet_view *v);
/* Sets the ECN bits, 0 to 3. */
void packet_set_ecn(uint8_t *packet, const struct packet_view *v, unsigned bits);

/*
 * Sets the lengths in the headers of IP and UDP to those of a packet of `length` bytes, and the checksum of
 * the IP header.
 */
void packet_set_length(uint8_t *packet, const struct packet_view *v, uint32_t length);

/*
 * UDP or TCP of a packet that is complete: its checksum, or only that of the pseudo header if the
 * receiver is to add the rest (`partial`).
 */
void packet_set_sum(uint8_t *packet, const struct packet_view *v, uint32_t length, bool partial);

/* ICMP that reports a packet as undeliverable or too long. */
bool packet_is_report(const uint8_t *packet, uint32_t length);

#define PACKET_REPORT_MOST 1280u
/*
 * Writes the ICMP packet with which a router reports that a packet exceeds `mtu`. `size`: of `report`,
 * at least PACKET_REPORT_MOST. Returns its length, 0 if there must be none.
 */
uint32_t packet_report(const uint8_t *packet, uint32_t length, uint32_t mtu, uint8_t *report);

/*
 * Cuts an IPv4 packet, which is complete with its checksums, into fragments of at most `mtu` bytes.
 * `each` gets them in order. False: the header permits no fragments.
 */
bool packet_cut(const uint8_t *packet, uint32_t length, uint32_t mtu,
		void (*each)(void *arg, const uint8_t *fragment, uint32_t length), void *arg);

/*
 * A packet that stands for several of one flow, which differ in their payload, and in the sequence number
 * of TCP or the identification of IPv4.
 */
struct packet_large {
	const uint8_t *bytes;
	uint32_t length, headers; /* headers: of IP and UDP or TCP */
	uint32_t segment;	  /* payload of each, the last may be shorter */
};
uint32_t packet_parts(const struct packet_large *l);
uint32_t packet_part_length(const struct packet_large *l, uint32_t part);
/*
 * The headers of a packet that stands for `count` parts from `first`, without the checksum of UDP or TCP;
 * `headers` has room for l->headers bytes. Returns the bytes of their payload, which starts at *payload.
 */
uint32_t packet_part_headers(const struct packet_large *l, const struct packet_view *v,
			     uint32_t first, uint32_t count, uint8_t *headers, uint32_t *payload);

#endif
