/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ticket_forms KEYTAB SERVICE CLIENT: presents to a server with the keytab a ticket for SERVICE
 * from the credential cache, complete (kvno 256) and its encrypted part alone (213), at each level.
 * Prints one line for each that the server accepted as CLIENT, with the enctypes of ticket and
 * session key.
 */
#include <arpa/inet.h>
#include <krb5.h>
#include <netinet/in.h>
#include <rxwire/afs.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "token/cell_ticket.h"

#define SERVICE 78

static const char *expected;

static void must(const char *what, int result)
{
	if (result == 0)
		return;
	fprintf(stderr, "ticket_forms: %s: %d\n", what, result);
	exit(1);
}

/* The code tells whether it is the right client. */
static int32_t serve(rxw_call *call, void *context)
{
	struct rxw_identity id = {.size = sizeof(id)};

	(void)context;
	if (rxw_call_identity(call, &id) || !id.name || strcmp(id.name, expected))
		return 4001;
	return 0;
}

static void call_with(rxw_endpoint *client, const struct sockaddr_storage *to, socklen_t to_len,
		      const krb5_creds *creds, bool whole, uint8_t level)
{
	struct rxw_rxkad_token t = {.size = sizeof(t),
				    .kvno = whole ? RXW_RXKAD_KVNO_TICKET : RXW_RXKAD_KVNO_ENCPART,
				    .begins = creds->times.starttime,
				    .expires = creds->times.endtime};
	const uint8_t *part;
	rxw_connection *connection;
	rxw_security *security;
	rxw_call *call;
	size_t length;

	must("session key", rxw_rxkad_session_key(creds->keyblock.enctype, creds->keyblock.contents,
						  creds->keyblock.length, t.session_key));
	if (!rxw_ticket_encrypted_part((const uint8_t *)creds->ticket.data, creds->ticket.length,
				       &part, &length))
		must("ticket", -RXW_EDECODE);
	t.ticket = whole ? (void *)creds->ticket.data : (void *)part;
	t.ticket_length = whole ? creds->ticket.length : length;
	must("class", rxw_rxkad_client(&t, level, &security));
	must("connection", rxw_connection_create(client, (const struct sockaddr *)to, to_len,
						 SERVICE, security, &connection));
	must("call", rxw_call_begin(connection, NULL, &call));
	must(whole ? "call, kvno 256" : "call, kvno 213", rxw_call_end(call, 0, NULL));
	rxw_connection_release(connection);
	rxw_security_unref(security);
}

static krb5_creds *get_ticket(krb5_context context, const char *service)
{
	krb5_creds wanted = {0}, *got = NULL;
	krb5_ccache cache;

	must("cache", krb5_cc_default(context, &cache));
	must("client", krb5_cc_get_principal(context, cache, &wanted.client));
	must("service", krb5_parse_name(context, service, &wanted.server));
	must("ticket", krb5_get_credentials(context, 0, cache, &wanted, &got));
	krb5_free_cred_contents(context, &wanted);
	krb5_cc_close(context, cache);
	return got;
}

static void try_forms(const krb5_creds *creds, int32_t enctype, rxw_keys *keys)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&loopback,
					  .address_len = sizeof(loopback)};
	struct rxw_rxkad_server_options kad = {.size = sizeof(kad), .keys = keys};
	rxw_security *class;
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = SERVICE,
					 .name = "forms",
					 .handler = serve,
					 .security = &class,
					 .security_count = 1};
	struct sockaddr_storage at;
	socklen_t at_len = sizeof(at);
	rxw_endpoint *server, *client;
	rxw_service *service;
	rxw_engine *engine;

	must("server's class", rxw_rxkad_server(&kad, &class));
	must("engine", rxw_engine_create(NULL, &engine));
	must("client", rxw_endpoint_create(engine, &eo, &client));
	eo.server = 1;
	must("server", rxw_endpoint_create(engine, &eo, &server));
	must("service", rxw_service_add(server, &so, &service));
	must("address", rxw_endpoint_address(server, &at, &at_len));
	for (int whole = 0; whole <= 1; whole++) {
		for (uint8_t level = 0; level <= RXW_LEVEL_CRYPT; level++)
			call_with(client, &at, at_len, creds, whole, level);
		printf("kvno %d, ticket of enctype %d, session key of %d\n", whole ? 256 : 213,
		       enctype, creds->keyblock.enctype);
	}
	rxw_endpoint_destroy(client);
	rxw_endpoint_destroy(server);
	rxw_engine_destroy(engine);
	rxw_security_unref(class);
}

int main(int argc, char **argv)
{
	krb5_context context;
	krb5_ticket *ticket;
	krb5_creds *creds;
	rxw_keys *keys;
	char why[300];

	if (argc != 4) {
		fprintf(stderr, "usage: ticket_forms KEYTAB SERVICE CLIENT\n");
		return 2;
	}
	expected = argv[3];
	must("Kerberos", krb5_init_context(&context));
	creds = get_ticket(context, argv[2]);
	must("ticket", krb5_decode_ticket(&creds->ticket, &ticket));
	must("keys", rxw_keys_create(&keys));
	must("keytab", rxw_keys_load(keys, argv[1], argv[2], why, sizeof(why)));
	try_forms(creds, ticket->enc_part.enctype, keys);
	rxw_keys_unref(keys);
	krb5_free_ticket(context, ticket);
	krb5_free_creds(context, creds);
	krb5_free_context(context);
	return 0;
}
