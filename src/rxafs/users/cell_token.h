/* SPDX-License-Identifier: BSD-2-Clause */
/* Making tokens. */
#ifndef RXAFS_CELL_TOKEN_H
#define RXAFS_CELL_TOKEN_H

#include <stddef.h>

#include <rxafs/client.h>
#include <rxwire/token.h>

#include "program/address.h"

/* The address that gives tokens of rxgk for a cell. 0, or -1 with a line in `message`. May wait for DNS. */
int find_token_server(rxafs_client *client, const char *cell, struct tools_address *server,
		      char *message, size_t size);
/*
 * A token for a cell, of rxgk if that can be had, else of rxkad; `class`: "rxgk" or "rxkad" only. `cache` is a credential
 * cache; NULL: that of this process. 0, or a negative result of rxw_token_create() with a line in `message`. May wait for the KDC and the server.
 */
int make_cell_token(const struct tools_address *server, const char *cell, const char *class,
		    const char *cache, rxw_token **token, char *message, size_t size);

#endif
