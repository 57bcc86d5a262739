/* SPDX-License-Identifier: BSD-2-Clause */
/* Every class at every level, and what each promises of a packet that was changed on its way. */
#ifndef TESTS_RX_SECURITY_KINDS_H
#define TESTS_RX_SECURITY_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include <rxwire/rxwire.h>

struct kind {
	const char *name;
	bool exchange;	/* a server asks, and does not know the client before its answer */
	size_t guarded; /* bytes from the beginning of the payload that cannot be changed unnoticed */
	bool header;	/* so are the numbers of call, channel and packet, and the word `spare` */
	/*
	 * How many changes may pass, of hundreds: classes whose check has 16 bits let one pass in
	 * 65,536, and more than two of those is less likely than 1e-7.
	 */
	unsigned misses;
	void (*make)(rxw_security **server, rxw_security **client);
};

extern const struct kind kinds[];
extern const int kind_count;

#endif
