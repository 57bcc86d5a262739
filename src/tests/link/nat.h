/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A NAT in front of one side: UDP and TCP from inside get an outside address and port. After a
 * rebinding, mappings are forgotten: flows get other ports, and the next of the outside addresses.
 * No I/O and no clock.
 */
#ifndef RXW_TESTS_LINK_NAT_H
#define RXW_TESTS_LINK_NAT_H

#include <stdbool.h>
#include <stdint.h>

struct link_nat;

struct link_nat_counters {
	uint64_t mappings, rebindings;
	uint64_t refused; /* packets without a mapping, and fragments, which have no ports */
};

struct link_nat *link_nat_new(void);
void link_nat_free(struct link_nat *nat);

/* One more outside address, as text. False: it is none, or there are too many. */
bool link_nat_add(struct link_nat *nat, const char *address);

/*
 * Packets from inside and from outside. `partial`: the checksum of UDP or TCP is that of the pseudo
 * header only. False: the NAT drops the packet.
 */
bool link_nat_out(struct link_nat *nat, uint8_t *packet, uint32_t length, bool partial);
bool link_nat_in(struct link_nat *nat, uint8_t *packet, uint32_t length, bool partial);

void link_nat_rebind(struct link_nat *nat);

const struct link_nat_counters *link_nat_counters(const struct link_nat *nat);

#endif
