/* SPDX-License-Identifier: BSD-2-Clause */
/* CoDel (RFC 8289): decides for each packet at the head of a queue. */
#ifndef RXW_TESTS_LINK_CODEL_H
#define RXW_TESTS_LINK_CODEL_H

#include <stdbool.h>
#include <stdint.h>

struct codel {
	uint64_t first_above, drop_next;
	uint32_t count, last_count;
	bool dropping;
};

/*
 * A packet leaves the queue now, after `sojourn` in it; `left` bytes remain. True: it is to be
 * dropped or marked. Times in ns.
 */
bool codel_hits(struct codel *c, uint64_t target, uint64_t interval, uint64_t now, uint64_t sojourn,
		uint64_t left);

#endif
