/* SPDX-License-Identifier: BSD-2-Clause */
/* Kerberos tickets. */
#include "rxafs/users/tickets.h"

#include <errno.h>
#include <krb5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rxwire/rxwire.h>
#include <rxwire/token.h>

#define FILE_MOST (256 * 1024) /* bytes of the tickets for a cell */

/* A cache that is open. */
struct opened {
	krb5_context context;
	krb5_ccache cache;
	krb5_principal client;
	char *message;
};

static int complain_of(const struct opened *o, const char *what, krb5_error_code code)
{
	const char *text = krb5_get_error_message(o->context, code);

	snprintf(o->message, TICKETS_MESSAGE, "%s: %s", what, text);
	krb5_free_error_message(o->context, text);
	return -1;
}

static void close_ticket_cache(struct opened *o)
{
	if (!o->context)
		return;
	if (o->client)
		krb5_free_principal(o->context, o->client);
	if (o->cache)
		krb5_cc_close(o->context, o->cache);
	krb5_free_context(o->context);
}

static int open_ticket_cache(struct opened *o, const char *name, char message[TICKETS_MESSAGE])
{
	krb5_error_code code;

	*o = (struct opened){.message = message};
	code = krb5_init_context(&o->context);
	if (code) {
		o->context = NULL;
		snprintf(message, TICKETS_MESSAGE, "Kerberos does not start: error %d", (int)code);
		return -1;
	}
	code = name ? krb5_cc_resolve(o->context, name, &o->cache)
		    : krb5_cc_default(o->context, &o->cache);
	if (code)
		o->cache = NULL;
	else
		code = krb5_cc_get_principal(o->context, o->cache, &o->client);
	if (!code)
		return 0;
	o->client = NULL;
	complain_of(o, "no Kerberos tickets; get some with kinit", code);
	close_ticket_cache(o);
	return -1;
}

/* The initial ticket of the client's own realm. */
static krb5_error_code find_initial(const struct opened *o, krb5_creds *found)
{
	krb5_creds like = {.client = o->client};
	const krb5_data *realm = &o->client->realm;
	krb5_error_code code =
		krb5_build_principal_ext(o->context, &like.server, realm->length, realm->data, 6,
					 "krbtgt", realm->length, realm->data, 0);

	if (code)
		return code;
	code = krb5_cc_retrieve_cred(o->context, o->cache, 0, &like, found);
	krb5_free_principal(o->context, like.server);
	return code;
}

int tickets_look(const char *cache, struct tickets *tickets, char message[TICKETS_MESSAGE])
{
	krb5_creds initial = {0};
	struct opened o;
	char *name = NULL;
	krb5_error_code code;

	*tickets = (struct tickets){.ends = 0};
	if (open_ticket_cache(&o, cache, message))
		return -1;
	code = krb5_unparse_name(o.context, o.client, &name);
	if (!code) {
		snprintf(tickets->principal, sizeof tickets->principal, "%s", name);
		krb5_free_unparsed_name(o.context, name);
		code = find_initial(&o, &initial);
	}
	if (!code) {
		/* A ticket that is valid from its making on may not say when that was. */
		tickets->begins = (uint32_t)(initial.times.starttime ? initial.times.starttime
								     : initial.times.authtime);
		tickets->ends = (uint32_t)initial.times.endtime;
		if (initial.ticket_flags & TKT_FLG_RENEWABLE)
			tickets->renewable = (uint32_t)initial.times.renew_till;
		krb5_free_cred_contents(o.context, &initial);
	} else {
		complain_of(&o, "no initial ticket; get one with kinit", code);
	}
	close_ticket_cache(&o);
	return code ? -1 : 0;
}

int64_t tickets_renewal(const struct tickets *tickets)
{
	return tickets->renewable > tickets->ends
		       ? tickets->ends - (tickets->ends - tickets->begins) / 4
		       : INT64_MAX;
}

int64_t tickets_pause(const struct tickets *tickets)
{
	int64_t quarter = (tickets->ends - tickets->begins) / 4;

	return quarter < (int64_t)2 * TICKETS_AGAIN_S ? quarter / 2 + 1 : TICKETS_AGAIN_S;
}

int tickets_renew(const char *cache, char message[TICKETS_MESSAGE])
{
	krb5_creds fresh = {0};
	struct opened o;
	krb5_error_code code;

	if (open_ticket_cache(&o, cache, message))
		return -1;
	code = krb5_get_renewed_creds(o.context, &fresh, o.client, o.cache, NULL);
	if (!code) {
		code = krb5_cc_initialize(o.context, o.cache, o.client);
		if (!code)
			code = krb5_cc_store_cred(o.context, o.cache, &fresh);
		krb5_free_cred_contents(o.context, &fresh);
	}
	if (code)
		complain_of(&o, "the ticket cannot be renewed", code);
	close_ticket_cache(&o);
	return code ? -1 : 0;
}

/* -- tickets for a cell ---------------------------------------------------------------------- */

/* Into the cache: of rxkad by the library's own search for names and realms, and of rxgk as GSS-API names the service. */
static void get_service_tickets(const struct opened *o, const char *cache, const char *cell,
				char message[TICKETS_MESSAGE])
{
	struct rxw_token_options options = {.size = sizeof options,
					    .source = RXW_TOKEN_CACHE,
					    .index = RXW_RXKAD_INDEX,
					    .level = RXW_LEVEL_CRYPT,
					    .cell = cell,
					    .cache = cache};
	krb5_creds wanted = {.client = o->client}, *got = NULL;
	rxw_token *token = NULL;
	char host[256];

	snprintf(host, sizeof host, "_afs.%s", cell);
	if (!krb5_sname_to_principal(o->context, host, "afs-rxgk", KRB5_NT_SRV_HST,
				     &wanted.server)) {
		if (!krb5_get_credentials(o->context, 0, o->cache, &wanted, &got))
			krb5_free_creds(o->context, got);
		krb5_free_principal(o->context, wanted.server);
	}
	if (rxw_token_create(&options, &token, message, TICKETS_MESSAGE) >= 0)
		rxw_token_unref(token);
}

static bool is_for_afs(const krb5_creds *creds)
{
	const krb5_data *first = &creds->server->data[0];

	return creds->server->length >= 1 &&
	       ((first->length == 3 && !memcmp(first->data, "afs", 3)) ||
		(first->length == 8 && !memcmp(first->data, "afs-rxgk", 8)));
}

/* The count of tickets that were copied. */
static unsigned copy_service_tickets(const struct opened *o, krb5_ccache to)
{
	krb5_cc_cursor cursor;
	krb5_creds creds;
	unsigned count = 0;

	if (krb5_cc_start_seq_get(o->context, o->cache, &cursor))
		return 0;
	while (!krb5_cc_next_cred(o->context, o->cache, &cursor, &creds)) {
		count += is_for_afs(&creds) && !krb5_cc_store_cred(o->context, to, &creds);
		krb5_free_cred_contents(o->context, &creds);
	}
	krb5_cc_end_seq_get(o->context, o->cache, &cursor);
	return count;
}

static int read_whole(const char *path, uint8_t **data, size_t *size)
{
	FILE *f = fopen(path, "rbe");
	bool read = false;

	*data = f ? malloc(FILE_MOST) : NULL;
	if (*data) {
		*size = fread(*data, 1, FILE_MOST, f);
		read = *size > 0 && *size < FILE_MOST && !ferror(f);
	}
	if (f)
		fclose(f);
	if (read)
		return 0;
	free(*data);
	*data = NULL;
	return -1;
}

/* A folder for a file that lives for milliseconds: in memory if possible. */
static bool make_private_folder(char path[64])
{
	static const char *const places[] = {"/dev/shm", "/tmp"};

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		snprintf(path, 64, "%s/rxafs-XXXXXX", places[i]);
		if (mkdtemp(path))
			return true;
	}
	return false;
}

static int copy_through_file(const struct opened *o, const char *folder, uint8_t **data,
			     size_t *size)
{
	char name[96];
	krb5_ccache to;
	krb5_error_code code;
	int result = -1;

	snprintf(name, sizeof name, "FILE:%s/cache", folder);
	code = krb5_cc_resolve(o->context, name, &to);
	if (code)
		return complain_of(o, name, code);
	code = krb5_cc_initialize(o->context, to, o->client);
	if (code)
		complain_of(o, name, code);
	else if (!copy_service_tickets(o, to))
		result = -1; /* The message is that of the search. */
	else if (read_whole(name + strlen("FILE:"), data, size))
		snprintf(o->message, TICKETS_MESSAGE, "the tickets cannot be copied");
	else
		result = 0;
	/* Overwrites the file, too. */
	krb5_cc_destroy(o->context, to);
	return result;
}

int tickets_for_cell(const char *cache, const char *cell, uint8_t **data, size_t *size,
		     char message[TICKETS_MESSAGE])
{
	struct opened o;
	char folder[64];
	int result;

	if (open_ticket_cache(&o, cache, message))
		return -1;
	snprintf(message, TICKETS_MESSAGE, "no ticket for the cell %s", cell);
	get_service_tickets(&o, cache, cell, message);
	if (make_private_folder(folder)) {
		result = copy_through_file(&o, folder, data, size);
		rmdir(folder);
	} else {
		snprintf(message, TICKETS_MESSAGE, "no folder for temporary files: %s",
			 strerror(errno));
		result = -1;
	}
	close_ticket_cache(&o);
	return result;
}

static bool name_cache(const struct opened *o, krb5_ccache cache, char name[TICKETS_NAME])
{
	char *whole;
	bool fits;

	if (krb5_cc_get_full_name(o->context, cache, &whole))
		return false;
	fits = snprintf(name, TICKETS_NAME, "%s", whole) < TICKETS_NAME;
	krb5_free_string(o->context, whole);
	return fits;
}

int tickets_for_services(const char *cache, char copy[TICKETS_NAME], char message[TICKETS_MESSAGE])
{
	krb5_ccache to;
	struct opened o;
	krb5_error_code code;
	int result = -1;

	if (open_ticket_cache(&o, cache, message))
		return -1;
	code = krb5_cc_new_unique(o.context, "MEMORY", NULL, &to);
	if (code) {
		complain_of(&o, "no cache in memory", code);
		goto out;
	}
	code = krb5_cc_initialize(o.context, to, o.client);
	if (code)
		complain_of(&o, "no cache in memory", code);
	else if (!copy_service_tickets(&o, to))
		snprintf(message, TICKETS_MESSAGE, "no ticket for a cell was handed over");
	else if (name_cache(&o, to, copy))
		result = 0;
	if (result)
		krb5_cc_destroy(o.context, to);
	else
		krb5_cc_close(o.context, to);
out:
	close_ticket_cache(&o);
	return result;
}

void tickets_forget(const char *copy)
{
	krb5_context context;
	krb5_ccache cache;

	if (krb5_init_context(&context))
		return;
	if (!krb5_cc_resolve(context, copy, &cache))
		krb5_cc_destroy(context, cache);
	krb5_free_context(context);
}

char *tickets_file(const char *cache)
{
	char *path = NULL;
	krb5_context context;
	krb5_ccache opened;

	if (krb5_init_context(&context))
		return NULL;
	if (!(cache ? krb5_cc_resolve(context, cache, &opened)
		    : krb5_cc_default(context, &opened))) {
		if (!strcmp(krb5_cc_get_type(context, opened), "FILE"))
			path = strdup(krb5_cc_get_name(context, opened));
		krb5_cc_close(context, opened);
	}
	krb5_free_context(context);
	return path;
}
