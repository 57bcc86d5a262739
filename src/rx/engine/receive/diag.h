/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies to VERSION and DEBUG packets (rxdebug). */
#ifndef RXW_ENGINE_DIAG_H
#define RXW_ENGINE_DIAG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "proto/peer/peer.h"

struct rxw_ctl;
struct rxw_rxrun;
struct rxw_shard;

/* Of an endpoint; admit.lock, unless stated. */
struct rxw_ep_debug {
	uint64_t answers_at;	  /* ns: no DEBUG answer before that */
	_Atomic(unsigned) access; /* enum rxw_debug_access; relaxed */
	struct rxw_cidr net;
	bool net_valid;
	char version_text[65]; /* fixed */
};

/*
 * Of a shard: positions in the DEBUG listings of all connections and of those with active calls.
 * The lock of its table.
 */
struct rxw_shard_diag {
	struct rxw_listing all, busy;
};

/* Receive role, no lock held. Handle a packet of these types. True: a reply is in *ctl. */
bool rxw_inspect(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now,
		 struct rxw_ctl *ctl);

#endif
