/* SPDX-License-Identifier: BSD-2-Clause */
/* CombineTokens and AFSCombineTokens, client side (rx-protocol 7.4.7). */
#ifndef TESTS_RXGK_COMBINE_H
#define TESTS_RXGK_COMBINE_H

#include "rxgk/client.h"

/*
 * Combine the token of a user with that of a cache manager. `server_uuid` (16 bytes) is the file
 * server that the token is for (AFSCombineTokens); NULL: that of the connection (CombineTokens).
 * Returns the server's code.
 */
int32_t combine_tokens(rxw_connection *connection, const struct rxw_rxgk_token *user,
		       const struct rxw_rxgk_token *cm, uint32_t level, const uint8_t *server_uuid,
		       struct rxw_rxgk_token *token);

#endif
