/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that the user has named: only these are used. */
#ifndef CLIENT_NET_PAIRS_H
#define CLIENT_NET_PAIRS_H

#include "client/net/server.h"

/* Whether a pair may lead to this address of a server. */
bool cl_pair_leads_to(const struct cl_pair *pair, const struct sockaddr_storage *remote);
/* Leaves only addresses of a server to which named pairs lead; all if there are none. Their number. */
unsigned cl_pairs_keep(const struct cl_net *net, struct cl_address *list, unsigned count);

#endif
