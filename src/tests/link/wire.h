/* SPDX-License-Identifier: BSD-2-Clause */
/* An emulated link between two TUN devices: packets from one pass a link_way and go to the other. */
#ifndef RXW_TESTS_LINK_WIRE_H
#define RXW_TESTS_LINK_WIRE_H

#include <stdio.h>

#include "device.h"
#include "nat.h"
#include "profile.h"

/* Packets that are handed over that late, in ns, show that the program lacked the processor. */
#define WIRE_LATE 1000000u

/* All by the thread that serves the link. */
struct wire {
	struct link_profile profile;
	struct device device[2]; /* sides a, b */
	struct link_way *way[2]; /* LINK_UP: from a to b */
	struct link_nat *nat;	 /* NULL: none */
	struct {
		uint64_t muted, ecn_lost, reported, too_long, cut, refused;
		uint64_t read, written;	  /* system calls */
		uint64_t late, late_most; /* handed over later than due by WIRE_LATE; ns */
	} n;
};

/* Needs profile and devices. False: no memory, or an address of the NAT that is none. */
bool wire_start(struct wire *w, char *why, size_t why_size);
void wire_stop(struct wire *w);

/* Takes packets of a side, as many as one turn should. Returns whether there may be more. */
bool wire_take(struct wire *w, unsigned side, uint64_t now);
/* Hands over what has left the link. */
void wire_deliver(struct wire *w, uint64_t now);
/* When wire_deliver() has something to do. */
uint64_t wire_next(const struct wire *w);

/* Applies the profile, which has changed, at once. */
void wire_change(struct wire *w, uint64_t now);
/* From now on, packets pass unchanged. */
void wire_calm(struct wire *w, uint64_t now);

/* The counters as one JSON object, or as words of both directions together. */
void wire_print_json(const struct wire *w, FILE *to);
void wire_print_words(const struct wire *w, FILE *to);

#endif
