/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of rxgk for a Kerberos ticket, from the negotiation service of a cell. */
#ifndef KEYS_NEGOTIATED_H
#define KEYS_NEGOTIATED_H

#include <rxwire/rxgk.h>
#include <rxwire/token.h>

#include "rxgk/client.h"

/*
 * The result, in memory of rxw_secret_alloc(); strings of malloc(). Freed by rxw_negotiated_free().
 */
struct rxw_negotiated {
	struct rxw_rxgk_token token;
	char *client, *service;
};

/*
 * According to the options (RXW_TOKEN_CACHE, RXW_TOKEN_KEYTAB). Results as of rxw_token_create().
 */
int rxw_token_negotiate(const struct rxw_token_options *options, struct rxw_negotiated *result,
			char *error, size_t room);
void rxw_negotiated_free(struct rxw_negotiated *result);

#endif
