/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets for a cell's servers, by libkrb5. */
#ifndef KEYS_TICKET_H
#define KEYS_TICKET_H

#include <rxwire/token.h>

#include <krb5.h>

/* A ticket and whose it is. Everything is freed by rxw_cell_ticket_free(). */
struct rxw_cell_ticket {
	krb5_context context;
	krb5_creds *creds;
	char *client, *service; /* names, of libkrb5 */
};

/*
 * Get a ticket as the options say (RXW_TOKEN_CACHE, RXW_TOKEN_KEYTAB). 0, -RXW_ENOKEY, -RXW_ENOMEM, -RXW_EINVAL,
 * with a sentence in error.
 */
int rxw_cell_ticket_get(const struct rxw_token_options *options, struct rxw_cell_ticket *ticket,
			char *error, size_t room);
void rxw_cell_ticket_free(struct rxw_cell_ticket *ticket);

/* Who asks for tickets, and a cache that has his. Everything is freed by rxw_cell_client_close(). */
struct rxw_cell_client {
	krb5_context context;
	krb5_ccache cache;
	bool own;    /* the cache is ours, in memory, and goes with this */
	char *name;  /* "user@REALM", of libkrb5 */
	char *where; /* the cache's full name, of libkrb5 */
};

/*
 * Open the cache of the options, or (RXW_TOKEN_KEYTAB) fill one in memory with a ticket that the key got from
 * the KDC. Results as above.
 */
int rxw_cell_client_open(const struct rxw_token_options *options, struct rxw_cell_client *client,
			 char *error, size_t room);
void rxw_cell_client_close(struct rxw_cell_client *client);

/* The encrypted part of a ticket in DER, EncryptedData as it is sent; false: the ticket is no ticket. */
bool rxw_ticket_encrypted_part(const uint8_t *ticket, size_t size, const uint8_t **part,
			       size_t *length);

#endif
