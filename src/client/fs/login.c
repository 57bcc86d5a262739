/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens with the Kerberos tickets of the process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rxafs/admin.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/token.h>

#include "client/fs/fs.h"

static int make_ticket_token(const char *cell, uint8_t index, const struct sockaddr_storage *server,
		      socklen_t length, rxw_token **token, char *text, size_t size)
{
	struct rxw_token_options o = {.size = sizeof o,
				      .source = RXW_TOKEN_CACHE,
				      .index = index,
				      .level = RXW_LEVEL_CRYPT,
				      .cell = cell,
				      .server = (const struct sockaddr *)server,
				      .server_len = length};

	return rxw_token_create(&o, token, text, size);
}

/* For rxgk, or for what cells without it understand. */
static int make_best_token(rxafs_user *user, struct rxafs_request *request, const char *cell,
			   rxw_token **token)
{
	char gk[160] = "", kad[160] = "", text[sizeof gk + sizeof kad + 20];
	struct sockaddr_storage server;
	socklen_t length;
	int result = rxafs_cell_address(user->client, cell, &server, &length);

	if (result)
		return result;
	if (!make_ticket_token(cell, RXW_RXGK_INDEX, &server, length, token, gk, sizeof gk) ||
	    !make_ticket_token(cell, RXW_RXKAD_INDEX, &server, length, token, kad, sizeof kad))
		return 0;
	snprintf(text, sizeof text, "rxgk: %s; rxkad: %s", gk, kad);
	/* The end of a message has the reason. */
	if (strlen(text) >= sizeof request->failure.text)
		snprintf(text, sizeof text, "rxkad: %s", kad);
	return fs_fail(request, -EACCES, text);
}

int rxafs_log_in(rxafs_user *user, struct rxafs_request *request, const char *cell)
{
	struct rxw_token_details details = {.size = sizeof details};
	struct cl_cell *home = cl_cells_home(user->client->cells);
	rxw_token *token;
	int result;

	if (!cell && !home)
		return fs_fail(request, -EDESTADDRREQ, "no home cell is known");
	if (!cell)
		cell = cl_cell_name(home);
	result = make_best_token(user, request, cell, &token);
	if (result)
		return result;
	if (rxw_token_info(token, &details) < 0)
		result = -EINVAL;
	else
		result = rxafs_set_token(user, cell, rxw_token_security(token), details.expires);
	rxw_token_unref(token);
	return result;
}
