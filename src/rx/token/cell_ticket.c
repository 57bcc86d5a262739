/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets for the servers of a cell: names of the service, and realms (rx-protocol 7.3.5). */

#include "base/ascii.h"
#include "rxgk/client.h"
#include "token/cell_ticket.h"

#include <rxwire/error.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REALMS	  4
#define REALM_MAX 256
#define NAME_ROOM 560

/* A search for a ticket. */
struct search {
	const struct rxw_token_options *options;
	struct rxw_cell_ticket *ticket;
	krb5_ccache cache;
	krb5_keytab keytab;
	krb5_principal client;
	char realms[REALMS][REALM_MAX];
	size_t realm_count;
	char *error;
	size_t room;
	krb5_error_code worst; /* the first failure that is not "no such service" */
	char tried[256];
};

int rxw_token_say(char *error, size_t room, const char *what, int result)
{
	if (room)
		snprintf(error, room, "%s: %s", what, rxw_strerror(result));
	return result;
}

static int complain_krb5(struct search *s, const char *what, krb5_error_code code, int result)
{
	const char *text = krb5_get_error_message(s->ticket->context, code);

	if (s->room)
		snprintf(s->error, s->room, "%s: %s%s", what, text, rxw_kerberos_advice(code));
	krb5_free_error_message(s->ticket->context, text);
	return code == ENOMEM ? -RXW_ENOMEM : result;
}

static void add_realm(struct search *s, const char *realm, size_t length)
{
	if (length == 0 || length >= REALM_MAX || s->realm_count == REALMS)
		return;
	for (size_t i = 0; i < s->realm_count; i++) {
		if (strlen(s->realms[i]) == length && memcmp(s->realms[i], realm, length) == 0)
			return;
	}
	memcpy(s->realms[s->realm_count], realm, length);
	s->realms[s->realm_count++][length] = '\0';
}

/* The realms that may have the service, the most likely first. */
static void find_realms(struct search *s)
{
	const char *cell = s->options->cell;
	char capitals[REALM_MAX], **configured;
	size_t length = strlen(cell);

	if (s->options->realm) {
		add_realm(s, s->options->realm, strlen(s->options->realm));
		return;
	}
	/* An empty name means that libkrb5 chooses the realm. */
	if (krb5_get_host_realm(s->ticket->context, cell, &configured) == 0) {
		if (configured[0])
			add_realm(s, configured[0], strlen(configured[0]));
		krb5_free_host_realm(s->ticket->context, configured);
	}
	if (length < sizeof(capitals)) {
		for (size_t i = 0; i <= length; i++)
			capitals[i] = rxw_ascii_upper(cell[i]);
		add_realm(s, capitals, length);
	}
	add_realm(s, s->client->realm.data, s->client->realm.length);
}

/* The client principal of a credential cache. */
static int open_cache(struct search *s)
{
	krb5_context context = s->ticket->context;
	const char *name = s->options->cache;
	krb5_error_code code = name ? krb5_cc_resolve(context, name, &s->cache)
				    : krb5_cc_default(context, &s->cache);

	if (code)
		goto fail;
	code = krb5_cc_get_principal(context, s->cache, &s->client);
	if (code)
		goto fail;
	return 0;
fail:
	return complain_krb5(s, "no Kerberos tickets; get some with kinit", code, -RXW_ENOKEY);
}

/* The client principal of the first entry of a keytab. */
static krb5_error_code first_client(struct search *s)
{
	krb5_context context = s->ticket->context;
	krb5_keytab_entry entry;
	krb5_kt_cursor cursor;
	krb5_error_code code = krb5_kt_start_seq_get(context, s->keytab, &cursor);

	if (code)
		return code;
	code = krb5_kt_next_entry(context, s->keytab, &entry, &cursor);
	if (code == 0) {
		code = krb5_copy_principal(context, entry.principal, &s->client);
		krb5_free_keytab_entry_contents(context, &entry);
	}
	krb5_kt_end_seq_get(context, s->keytab, &cursor);
	return code;
}

static int open_keytab(struct search *s)
{
	krb5_context context = s->ticket->context;
	krb5_error_code code = krb5_kt_resolve(context, s->options->keytab, &s->keytab);

	if (code)
		goto fail;
	code = s->options->client ? krb5_parse_name(context, s->options->client, &s->client)
				  : first_client(s);
	if (code)
		goto fail;
	return 0;
fail:
	return complain_krb5(s, s->options->keytab, code, -RXW_ENOKEY);
}

/* Get a ticket for the service, from the cache or with the key. */
static krb5_error_code get_ticket(struct search *s, krb5_principal service, const char *name)
{
	krb5_context context = s->ticket->context;
	krb5_creds wanted = {.client = s->client, .server = service}, *got;
	krb5_error_code code;

	if (s->cache)
		return krb5_get_credentials(context, 0, s->cache, &wanted, &s->ticket->creds);
	got = calloc(1, sizeof(*got));
	if (!got)
		return ENOMEM;
	code = krb5_get_init_creds_keytab(context, got, s->client, s->keytab, 0, name, NULL);
	if (code)
		free(got);
	else
		s->ticket->creds = got;
	return code;
}

static bool unknown_service(krb5_error_code code)
{
	return code == KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN || code == KRB5_CC_NOTFOUND ||
	       code == KRB5_REALM_UNKNOWN || code == KRB5_KDC_UNREACH ||
	       code == KRB5_REALM_CANT_RESOLVE;
}

/* Try this name. True: there is a ticket. */
static bool try_name(struct search *s, const char *name)
{
	krb5_context context = s->ticket->context;
	krb5_principal service;
	krb5_error_code code = krb5_parse_name(context, name, &service);
	size_t at = strlen(s->tried);

	snprintf(s->tried + at, sizeof(s->tried) - at, "%s%s", at ? ", " : "", name);
	if (code == 0) {
		code = get_ticket(s, service, name);
		krb5_free_principal(context, service);
	}
	/* An unreachable KDC may be the right one, but other errors are more informative. */
	if (code && (s->worst == 0 || (unknown_service(s->worst) && !unknown_service(code))))
		s->worst = code;
	return code == 0;
}

static bool try_realm(struct search *s, const char *realm)
{
	char name[NAME_ROOM];

	snprintf(name, sizeof(name), "afs/%s@%s", s->options->cell, realm);
	if (try_name(s, name))
		return true;
	/* In another realm "afs" belongs to another cell. */
	if (!s->options->realm && !rxw_ascii_same(realm, s->options->cell))
		return false;
	snprintf(name, sizeof(name), "afs@%s", realm);
	return try_name(s, name);
}

static int search_ticket(struct search *s)
{
	krb5_context context = s->ticket->context;
	krb5_timestamp now;
	char what[320];
	int result = s->options->source == RXW_TOKEN_KEYTAB ? open_keytab(s) : open_cache(s);

	if (result < 0)
		return result;
	find_realms(s);
	for (size_t i = 0; i < s->realm_count && !s->ticket->creds; i++) {
		if (try_realm(s, s->realms[i]))
			break;
	}
	if (!s->ticket->creds) {
		snprintf(what, sizeof(what), "no ticket for %s", s->tried);
		return complain_krb5(s, what, s->worst, -RXW_ENOKEY);
	}
	/* A KDC may return a ticket that has just expired, which no server accepts. */
	if (krb5_timeofday(context, &now) == 0 &&
	    (uint32_t)s->ticket->creds->times.endtime <= (uint32_t)now)
		return complain_krb5(s, "ticket", KRB5KRB_AP_ERR_TKT_EXPIRED, -RXW_ENOKEY);
	if (krb5_unparse_name(context, s->ticket->creds->client, &s->ticket->client) ||
	    krb5_unparse_name(context, s->ticket->creds->server, &s->ticket->service))
		return complain_krb5(s, "cannot parse the ticket's names", ENOMEM, -RXW_ENOMEM);
	return 0;
}

__attribute__((cold)) int rxw_cell_ticket_get(const struct rxw_token_options *options,
					      struct rxw_cell_ticket *ticket, char *error,
					      size_t room)
{
	struct search s = {.options = options, .ticket = ticket, .error = error, .room = room};
	krb5_error_code code;
	int result;

	*ticket = (struct rxw_cell_ticket){0};
	code = krb5_init_context(&ticket->context);
	if (code) {
		ticket->context = NULL;
		return complain_krb5(&s, "Kerberos", code, -RXW_EINVAL);
	}
	result = search_ticket(&s);
	if (s.client)
		krb5_free_principal(ticket->context, s.client);
	if (s.cache)
		krb5_cc_close(ticket->context, s.cache);
	if (s.keytab)
		krb5_kt_close(ticket->context, s.keytab);
	if (result < 0)
		rxw_cell_ticket_free(ticket);
	return result;
}

void rxw_cell_ticket_free(struct rxw_cell_ticket *ticket)
{
	if (!ticket->context)
		return;
	krb5_free_unparsed_name(ticket->context, ticket->client);
	krb5_free_unparsed_name(ticket->context, ticket->service);
	krb5_free_creds(ticket->context, ticket->creds);
	krb5_free_context(ticket->context);
	*ticket = (struct rxw_cell_ticket){0};
}

/* Create a cache in memory, with an initial ticket from the client's key. */
static int fill_cache(struct search *s)
{
	krb5_context context = s->ticket->context;
	krb5_creds creds = {0};
	krb5_error_code code =
		krb5_get_init_creds_keytab(context, &creds, s->client, s->keytab, 0, NULL, NULL);

	if (code)
		return complain_krb5(s, s->options->keytab, code, -RXW_ENOKEY);
	code = krb5_cc_new_unique(context, "MEMORY", NULL, &s->cache);
	if (code)
		goto out;
	code = krb5_cc_initialize(context, s->cache, s->client);
	if (code)
		goto out;
	code = krb5_cc_store_cred(context, s->cache, &creds);
out:
	krb5_free_cred_contents(context, &creds);
	return code ? complain_krb5(s, "cannot create a credential cache in memory", code,
				    -RXW_ENOMEM)
		    : 0;
}

int rxw_cell_client_open(const struct rxw_token_options *options, struct rxw_cell_client *client,
			 char *error, size_t room)
{
	struct rxw_cell_ticket ticket = {0};
	struct search s = {.options = options, .ticket = &ticket, .error = error, .room = room};
	krb5_error_code code = krb5_init_context(&ticket.context);
	int result;

	*client = (struct rxw_cell_client){.own = options->source == RXW_TOKEN_KEYTAB};
	if (code) {
		ticket.context = NULL;
		return complain_krb5(&s, "Kerberos", code, -RXW_EINVAL);
	}
	client->context = ticket.context;
	result = client->own ? open_keytab(&s) : open_cache(&s);
	if (result)
		goto out;
	if (client->own) {
		result = fill_cache(&s);
		if (result)
			goto out;
	}
	if (krb5_unparse_name(ticket.context, s.client, &client->name) ||
	    krb5_cc_get_full_name(ticket.context, s.cache, &client->where))
		result = complain_krb5(&s, "cannot get the credential cache's name", ENOMEM,
				       -RXW_ENOMEM);
out:
	client->cache = s.cache;
	if (s.client)
		krb5_free_principal(ticket.context, s.client);
	if (s.keytab)
		krb5_kt_close(ticket.context, s.keytab);
	if (result < 0)
		rxw_cell_client_close(client);
	return result;
}

void rxw_cell_client_close(struct rxw_cell_client *client)
{
	if (!client->context)
		return;
	krb5_free_unparsed_name(client->context, client->name);
	krb5_free_string(client->context, client->where);
	if (client->cache && client->own)
		krb5_cc_destroy(client->context, client->cache);
	else if (client->cache)
		krb5_cc_close(client->context, client->cache);
	krb5_free_context(client->context);
	*client = (struct rxw_cell_client){0};
}

/* The content of the next DER element, if it has this tag; advances *at. */
static bool next_element(const uint8_t **at, const uint8_t *end, uint8_t tag,
			 const uint8_t **content, size_t *length)
{
	const uint8_t *p = *at;
	size_t n, bytes;

	if (end - p < 2 || p[0] != tag)
		return false;
	n = p[1];
	p += 2;
	if (n & 0x80) {
		bytes = n & 0x7f;
		if (bytes == 0 || bytes > 4 || (size_t)(end - p) < bytes)
			return false;
		for (n = 0; bytes > 0; bytes--)
			n = n << 8 | *p++;
	}
	if ((size_t)(end - p) < n)
		return false;
	*content = p;
	*length = n;
	*at = p + n;
	return true;
}

bool rxw_ticket_encrypted_part(const uint8_t *ticket, size_t size, const uint8_t **part,
			       size_t *length)
{
	const uint8_t *at = ticket, *content;
	size_t n;

	/*
	 * Ticket ::= [APPLICATION 1] SEQUENCE { tkt-vno [0], realm [1], sname [2], enc-part [3] }
	 */
	if (!next_element(&at, ticket + size, 0x61, &content, &n))
		return false;
	at = content;
	if (!next_element(&at, content + n, 0x30, &content, &n))
		return false;
	at = content;
	for (uint8_t tag = 0xa0; tag <= 0xa3; tag++) {
		if (!next_element(&at, content + n, tag, part, length))
			return false;
	}
	return true;
}
