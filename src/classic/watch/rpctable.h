/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of procedure calls by the numbers that classic Rx gives to interfaces and functions: a
 * table of the process, or of its most recent peers. Any thread may call any function.
 */
#ifndef RXWIRE_CLASSIC_WATCH_RPCTABLE_H
#define RXWIRE_CLASSIC_WATCH_RPCTABLE_H

#include <rx/rx.h>

#include "../classic.h"

/* Words of a function in the output. */
#define RPCTABLE_WORDS 28

struct rpctable;

/* A function of an interface, at one side. */
struct rpctable_function {
	unsigned interface_id, function, functions; /* functions: of the interface */
	bool remote_is_server;
};

/* The tables exist from the start of the process, and count nothing. */
extern struct rpctable rpctable_process, rpctable_peers;

bool rpctable_counts(struct rpctable *table);
/* Stopping discards the counters. */
void rpctable_count(struct rpctable *table, bool on);
/*
 * Add a call. One whose number of functions is not that of earlier calls of its interface is not
 * counted, nor is one for which there is no memory.
 */
void rpctable_add(struct rpctable *table, const struct rpctable_function *function,
		  const struct classic_usage *usage);
/* Set the counters back whose bits, AFS_RX_STATS_CLEAR_..., are set. */
void rpctable_clear(struct rpctable *table, afs_uint32 what);
/*
 * RPCTABLE_WORDS for each function of each interface, malloc()ed, in *words; NULL if there are
 * none. Returns the number of functions; -1 without memory.
 */
int rpctable_list(struct rpctable *table, afs_uint32 **words);

#endif
