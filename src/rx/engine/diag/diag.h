/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to VERSION and DEBUG packets (rxdebug). */
#ifndef RXW_ENGINE_DIAG_H
#define RXW_ENGINE_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/peer/peer.h"

struct rxw_ctl;
struct rxw_rxrun;
struct rxw_shard;

/*
 * Of a shard: how far DEBUG has listed its connections, and those with active calls. Its table's
 * lock.
 */
struct rxw_shard_diag {
	struct rxw_listing all, busy;
};

/* Receive role, no lock held. A packet of these types; true: one answer is in *ctl. */
bool rxw_inspect(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now,
		 struct rxw_ctl *ctl);

#endif
