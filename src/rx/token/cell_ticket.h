/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets for the servers of a cell, by libkrb5. */
#ifndef RXW_TOKEN_CELL_TICKET_H
#define RXW_TOKEN_CELL_TICKET_H

#include <rxwire/token.h>

#include <krb5.h>

/* Put "`what`: the text of `result`" into `error`, if it has room. Returns `result`. */
int rxw_token_say(char *error, size_t room, const char *what, int result);

/* A ticket, its client and service. Freed by rxw_cell_ticket_free(). */
struct rxw_cell_ticket {
	krb5_context context;
	krb5_creds *creds;
	char *client, *service; /* names, of libkrb5 */
};

/*
 * Get a ticket according to the options (RXW_TOKEN_CACHE, RXW_TOKEN_KEYTAB). 0, -RXW_ENOKEY,
 * -RXW_ENOMEM, -RXW_EINVAL, with a message in `error`.
 */
int rxw_cell_ticket_get(const struct rxw_token_options *options, struct rxw_cell_ticket *ticket,
			char *error, size_t room);
void rxw_cell_ticket_free(struct rxw_cell_ticket *ticket);

/* The client and its ticket cache. Freed by rxw_cell_client_close(). */
struct rxw_cell_client {
	krb5_context context;
	krb5_ccache cache;
	bool own;    /* the cache is in memory, and destroyed with this */
	char *name;  /* "user@REALM", of libkrb5 */
	char *where; /* the cache's full name, of libkrb5 */
};

/*
 * Open the cache of the options, or (RXW_TOKEN_KEYTAB) create one in memory with an initial ticket
 * from the KDC. Results as above.
 */
int rxw_cell_client_open(const struct rxw_token_options *options, struct rxw_cell_client *client,
			 char *error, size_t room);
void rxw_cell_client_close(struct rxw_cell_client *client);

/* The encoded EncryptedData of a ticket; false: the ticket is malformed. */
bool rxw_ticket_encrypted_part(const uint8_t *ticket, size_t size, const uint8_t **part,
			       size_t *length);

#endif
