/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of rxgk for a ticket of Kerberos, from a cell's negotiation service. */
#ifndef KEYS_NEGOTIATED_H
#define KEYS_NEGOTIATED_H

#include <rxwire/rxgk.h>
#include <rxwire/token.h>

/* What came of it; strings of malloc(). Freed by rxw_negotiated_free(). In memory of rxw_secret_alloc(). */
struct rxw_negotiated {
	struct rxw_rxgk_token token;
	char *client, *service;
};

/* As the options say (RXW_TOKEN_CACHE, RXW_TOKEN_KEYTAB). Results of rxw_token_create(). */
int rxw_token_negotiate(const struct rxw_token_options *options, struct rxw_negotiated *result,
			char *error, size_t room);
void rxw_negotiated_free(struct rxw_negotiated *result);

#endif
