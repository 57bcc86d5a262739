/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes of packets, for programs that choose their transfers by them. */
#ifndef RXWIRE_CLASSIC_PACKET_H
#define RXWIRE_CLASSIC_PACKET_H

#include <rx/rx_types.h>

#define RX_HEADER_SIZE 28 /* bytes of the header of each packet */
extern int RX_IPUDP_SIZE; /* bytes of the headers of IPv4 and UDP; 28. Some programs assign it */

/* Bytes of a UDP payload: the least that any path carries, and that of Ethernet. */
#define RX_MIN_PACKET_SIZE	548
#define RX_MAX_PACKET_SIZE	1472
#define RX_MAX_PACKET_DATA_SIZE (RX_MAX_PACKET_SIZE - RX_HEADER_SIZE)

/* Types of packets. */
#define RX_PACKET_TYPE_DATA	 1
#define RX_PACKET_TYPE_ACK	 2
#define RX_PACKET_TYPE_BUSY	 3
#define RX_PACKET_TYPE_ABORT	 4
#define RX_PACKET_TYPE_ACKALL	 5
#define RX_PACKET_TYPE_CHALLENGE 6
#define RX_PACKET_TYPE_RESPONSE	 7
#define RX_PACKET_TYPE_DEBUG	 8
#define RX_PACKET_TYPE_PARAMS	 9
#define RX_PACKET_TYPE_VERSION	 13

#endif
