/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of wide windows: how much of it a peer and its calls may have. */
#ifndef RXW_PROTO_WIDE_H
#define RXW_PROTO_WIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Wide windows of a peer, in both directions: what they hold beyond windows of 255 packets, or what
 * the peer may send because it was advertised. Its calls share it. Bytes; any thread.
 */
struct rxw_wide {
	struct rxw_budget *all; /* of all peers of the engine; NULL: there is no limit. Fixed */
	int64_t most;		/* of this peer. Fixed */
	_Atomic(int64_t) used;
	_Atomic(uint32_t) calls;   /* that have a part of it */
	_Atomic(uint32_t) streams; /* calls that receive with windows of 255 packets or more */
};

/* A peer whose received data may take `memory` bytes. */
void rxw_wide_init(struct rxw_wide *w, struct rxw_budget *all, uint64_t memory);
/*
 * A call that has `have` bytes wants `want`. Returns what it has now: less than it wanted if memory
 * is short, never less than both. More than its equal share only if others leave it.
 */
int64_t rxw_wide_grant(struct rxw_wide *w, int64_t have, int64_t want);
/*
 * The peer has more than it may have by now, and this call more than its share, which is
 * returned; else INT64_MAX.
 */
int64_t rxw_wide_excess(const struct rxw_wide *w, int64_t have);
/* The call receives with a window of 255 packets or more, or does not any longer. */
void rxw_wide_stream(struct rxw_wide *w, bool begins);

#endif
