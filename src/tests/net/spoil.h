/* SPDX-License-Identifier: BSD-2-Clause */
/* Bits that change on their way: UDP datagrams with a wrong checksum, or with one that hides it. */
#ifndef NET_SPOIL_H
#define NET_SPOIL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Change bits of one 16-bit word of what a UDP datagram carries, such that its checksum cannot be
 * right any more; with `mend` that is made right again, as a bad router does that changes bits in
 * its memory. `packet` is a whole IPv4 or IPv6 packet, `random` chooses word and bits. False: no
 * UDP, a fragment, or too short; nothing was changed. The first `behind` bytes of what the datagram
 * carries stay as they are; where that is 0 half of all changes are in the first 32.
 */
bool spoil(uint8_t *packet, uint32_t length, uint64_t random, bool mend, uint32_t behind);

#endif
