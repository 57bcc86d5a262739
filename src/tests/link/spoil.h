/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changed bits in flight: UDP datagrams with a wrong checksum, or with a matching one that hides
 * it.
 */
#ifndef RXW_TESTS_LINK_SPOIL_H
#define RXW_TESTS_LINK_SPOIL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Changes bits of one 16-bit word of a UDP datagram's payload so that its checksum is wrong. With
 * `fix_checksum` the checksum is corrected, as a router with faulty memory would do. `packet` is a
 * complete IPv4 or IPv6 packet; `random` chooses word and bits. The first `behind` bytes of the
 * payload stay unchanged; if `behind` is 0, half of all changes are in the first 32 bytes. Returns
 * false without a change if it is not UDP, a fragment, or too short.
 */
bool spoil(uint8_t *packet, uint32_t length, uint64_t random, bool fix_checksum, uint32_t behind);

#endif
