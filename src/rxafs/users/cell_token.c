/* SPDX-License-Identifier: BSD-2-Clause */
/* A token for a cell, from Kerberos tickets. */
#include "rxafs/users/cell_token.h"

#include <stdio.h>
#include <string.h>

#include <rxafs/admin.h>
#include <rxwire/rxwire.h>

int find_token_server(rxafs_client *client, const char *cell, struct tools_address *server,
		      char *message, size_t size)
{
	*server = (struct tools_address){.len = 0};
	if (!rxafs_cell_address(client, cell, &server->sa, &server->len))
		return 0;
	snprintf(message, size, "the cell %s is not known", cell);
	return -1;
}

int make_cell_token(const struct tools_address *server, const char *cell, const char *class,
		    const char *cache, rxw_token **token, char *message, size_t size)
{
	static const struct {
		const char *name;
		uint8_t index;
	} classes[] = {{"rxgk", RXW_RXGK_INDEX}, {"rxkad", RXW_RXKAD_INDEX}};
	bool any = !class || (strcmp(class, "rxgk") && strcmp(class, "rxkad"));
	int result = -RXW_ENOKEY;

	for (size_t i = 0; i < 2 && result < 0; i++) {
		struct rxw_token_options o = {.size = sizeof o,
					      .source = RXW_TOKEN_CACHE,
					      .index = classes[i].index,
					      .level = RXW_LEVEL_CRYPT,
					      .cell = cell,
					      .cache = cache,
					      .server = (const struct sockaddr *)&server->sa,
					      .server_len = server->len};

		if (any || !strcmp(class, classes[i].name))
			result = rxw_token_create(&o, token, message, size);
	}
	return result;
}
