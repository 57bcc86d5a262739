/* SPDX-License-Identifier: BSD-2-Clause */
/* Every class at every level, and the changes to a packet that it detects. */
#ifndef TESTS_RX_SECURITY_KINDS_H
#define TESTS_RX_SECURITY_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include <rxwire/rxwire.h>

struct kind {
	const char *name;
	bool exchange;	/* a server challenges, and does not know the client before its answer */
	size_t guarded; /* bytes from the beginning of the payload whose changes are detected */
	bool header;	/* so are the numbers of call, channel and packet, and the word `spare` */
	/*
	 * How many changes of hundreds may pass: classes with a 16-bit check let one of 65,536
	 * pass. More than two are less likely than 1e-7.
	 */
	unsigned misses;
	void (*make)(rxw_security **server, rxw_security **client);
};

extern const struct kind kinds[];
extern const int kind_count;

#endif
