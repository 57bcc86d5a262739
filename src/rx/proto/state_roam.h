/* SPDX-License-Identifier: BSD-2-Clause */
/* A client that moves, as its connection knows it (rx-protocol 2.3). Included by state.h. */
#ifndef RXW_PROTO_STATE_ROAM_H
#define RXW_PROTO_STATE_ROAM_H

#include "proto/peer/core.h"

/* Server: the latest PING to another address of the client, for proof. */
struct rxw_asked {
	uint64_t at;	 /* ns; 0 = none */
	uint64_t address; /* its hash */
	uint32_t serial; /* only the owner of the address learns it */
};

/* A path to which the client moved. */
struct rxw_moved {
	struct rxw_moved *before;
	uint64_t used_at; /* ns: the client came here, or left for another path, the latest of both */
	struct rxw_path path;
};

/* Server: a client that seems to have moved, or has. */
struct rxw_roam {
	struct rxw_asked asked;
	/* the present one; changes under the locks of connection and table, read under neither */
	_Atomic(const struct rxw_path *) path;
	struct rxw_moved *moved;     /* other paths than the first, latest first */
};

/* Frees it, with the connection. */
void rxw_pconn_forget_moves(struct rxw_pconn *c);

#endif
