/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our side of the groups localauth_server and localauth_cell: the operations of a cell's own tools,
 * with the keys of its servers in a KeyFileExt.
 *
 *   cell_ours key KEYFILE KVNO ENCTYPE HEX
 *       adds a key, as asetkey does from a keytab
 *   cell_ours token KEYFILE NAME SECONDS AGE
 *       writes a token for NAME ("user@REALM") in Linux's format for keys of type rxrpc: made AGE
 *       seconds ago, for SECONDS
 *   cell_ours ptserver PORT KEYFILE LEVEL
 *       runs a protection server that knows its largest numbers
 *   cell_ours pt HOST PORT KEYFILE LEVEL N
 *       makes N calls to a protection server, as the service itself
 *   cell_ours vl HOST PORT KEYFILE LEVEL N
 *       the same to a location server, and lists all its entries
 *
 * LEVEL is 0, 1 or 2. Codes of failed calls go to stderr.
 */
#include <arpa/inet.h>
#include <rxwire/afs.h>
#include <rxwire/rxwire.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "afs/numbers.h"
#include "afs/pt.h"
#include "afs/vl.h"

#define PT_SERVICE     73
#define ADMINISTRATORS (-204)
#define USER_MAX       4711
#define GROUP_MAX      (-815)

static void die(const char *what, int result, const char *why)
{
	fprintf(stderr, "cell_ours: %s: %s\n", what, why && *why ? why : rxw_strerror(result));
	exit(1);
}

static rxw_keys *keys_of(const char *path)
{
	char why[300] = "";
	rxw_keys *keys;
	int result = rxw_keys_create(&keys);

	if (result == 0)
		result = rxw_keys_load(keys, path, NULL, why, sizeof(why));
	if (result < 0)
		die(path, result, why);
	return keys;
}

static int add_key(char **argv)
{
	uint8_t key[RXW_KEY_MAX];
	char why[300] = "";
	rxw_keys *keys;
	size_t n = 0;
	unsigned v;
	int result;

	for (const char *p = argv[5]; n < sizeof(key) && sscanf(p, "%2x", &v) == 1; p += 2)
		key[n++] = (uint8_t)v;
	if (access(argv[2], F_OK) == 0)
		keys = keys_of(argv[2]);
	else if ((result = rxw_keys_create(&keys)))
		die("keys", result, NULL);
	if ((result = rxw_keys_add(keys, RXW_KEY_KRB5, atoi(argv[3]), atoi(argv[4]), key, n)) ||
	    (result = rxw_keys_write(keys, argv[2], 1, why, sizeof(why))))
		die(argv[2], result, why);
	rxw_keys_unref(keys);
	return 0;
}

static int64_t age; /* of the token, s */

static int64_t then(void *context)
{
	(void)context;
	return (int64_t)time(NULL) - age;
}

/* Version 1 of the kernel's format, in host byte order: the security index, then rxkad's data. */
static int write_token(char **argv)
{
	const struct rxw_rxkad_print_options options = {.size = sizeof(options),
							.name = argv[3],
							.lifetime_s = (uint32_t)atoi(argv[4]),
							.time = then};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	struct {
		uint32_t version;
		uint16_t security_index, ticket_length;
		uint32_t expires, kvno;
		uint8_t session_key[8];
	} head = {.version = 1, .security_index = RXW_RXKAD_INDEX};
	rxw_keys *keys = keys_of(argv[2]);
	int result;

	age = atoi(argv[5]);
	result = rxw_rxkad_print_token(keys, &options, &token);
	if (result)
		die(argv[2], result, NULL);
	head.ticket_length = (uint16_t)token.ticket_length;
	/* Later than the ticket's end, so that the server's check of the ticket is tested. */
	head.expires = (uint32_t)time(NULL) + 86400;
	head.kvno = (uint32_t)token.kvno;
	memcpy(head.session_key, token.session_key, sizeof(head.session_key));
	if (fwrite(&head, sizeof(head), 1, stdout) != 1 ||
	    fwrite(token.ticket, token.ticket_length, 1, stdout) != 1 || fflush(stdout))
		die("token", -RXW_ESYS, NULL);
	rxw_rxkad_token_free(&token);
	rxw_keys_unref(keys);
	return 0;
}

/* ---- the server ---- */

static int32_t list_max(void *context, rxw_call *call, int32_t *user, int32_t *group)
{
	struct rxw_identity id = {.size = sizeof(id)};

	(void)context;
	if (rxw_call_identity(call, &id))
		return RXW_USER_ABORT;
	printf("call by %s, level %u\n", id.local ? "the service itself" : "another user",
	       id.level);
	fflush(stdout);
	*user = USER_MAX;
	*group = GROUP_MAX;
	return 0;
}

static int run_server(rxw_engine *engine, char **argv)
{
	static const struct PR_handlers handlers = {.ListMax = list_max};
	struct PR_service service = {.handlers = &handlers};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(argv[2]))};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .server = 1,
					  .address = (struct sockaddr *)&address,
					  .address_len = sizeof(address)};
	rxw_keys *keys = keys_of(argv[3]);
	struct rxw_rxkad_server_options kad = {
		.size = sizeof(kad), .keys = keys, .level_min = (uint8_t)atoi(argv[4])};
	rxw_security *security;
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = PT_SERVICE,
					 .name = "pt",
					 .handler = PR_ExecuteRequest,
					 .context = &service,
					 .security = &security,
					 .security_count = 1};
	rxw_endpoint *endpoint = NULL;
	rxw_service *added;
	sigset_t stop;
	int result, got;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	if ((result = rxw_rxkad_server(&kad, &security)) ||
	    (result = rxw_endpoint_create(engine, &eo, &endpoint)) ||
	    (result = rxw_service_add(endpoint, &so, &added)))
		die("cannot start the server", result, NULL);
	rxw_security_unref(security);
	rxw_keys_unref(keys);
	sigwait(&stop, &got);
	rxw_endpoint_stop(endpoint, 1000);
	return rxw_endpoint_destroy(endpoint);
}

/* ---- the clients ---- */

static int failed(const char *what, int32_t code)
{
	fprintf(stderr, "cell_ours: %s: code %d\n", what, code);
	return 1;
}

static int ask_pt(rxw_connection *connection, long calls)
{
	int32_t user = 0, group = 0, over = 0, code;
	prlist members = {0};

	for (long i = 0; i < calls; i++) {
		code = PR_ListMax(connection, &user, &group);
		if (code)
			return failed("ListMax", code);
	}
	code = PR_ListElements(connection, ADMINISTRATORS, &members, &over);
	if (code)
		return failed("ListElements", code);
	printf("calls %ld user %d group %d administrators %u\n", calls, user, group, members.len);
	xdrfree_prlist(&members);
	return 0;
}

static int ask_vl(rxw_connection *connection, long calls)
{
	const VldbListByAttributes all = {0};
	nbulkentries entries = {0};
	nvldbentry entry;
	int32_t count = 0, code;

	for (long i = 0; i < calls; i++) {
		code = VL_GetEntryByNameN(connection, "test", &entry);
		if (code)
			return failed("GetEntryByNameN", code);
	}
	code = VL_ListAttributesN(connection, &all, &count, &entries);
	if (code)
		return failed("ListAttributesN", code);
	printf("calls %ld name %s entries %d\n", calls, entry.name, count);
	xdrfree_nbulkentries(&entries);
	return 0;
}

static int run_client(rxw_engine *engine, char **argv)
{
	bool pt = !strcmp(argv[1], "pt");
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(argv[3]))};
	struct rxw_token_options to = {.size = sizeof(to),
				       .source = RXW_TOKEN_LOCAL,
				       .index = RXW_RXKAD_INDEX,
				       .level = (uint8_t)atoi(argv[5]),
				       .keys = keys_of(argv[4])};
	rxw_endpoint *endpoint = NULL;
	rxw_connection *connection = NULL;
	rxw_token *token = NULL;
	char why[300] = "";
	int result;

	inet_pton(AF_INET, argv[2], &address.sin_addr);
	if ((result = rxw_token_create(&to, &token, why, sizeof(why))))
		die("token", result, why);
	if ((result = rxw_endpoint_create(engine, NULL, &endpoint)) ||
	    (result = rxw_connection_create(endpoint, (struct sockaddr *)&address, sizeof(address),
					    pt ? PT_SERVICE : AFS_SERVICE_VL,
					    rxw_token_security(token), &connection)))
		die("cannot start the client", result, NULL);
	result = (pt ? ask_pt : ask_vl)(connection, atol(argv[6]));
	rxw_connection_release(connection);
	rxw_endpoint_destroy(endpoint);
	rxw_token_unref(token);
	rxw_keys_unref(to.keys);
	return result;
}

int main(int argc, char **argv)
{
	bool key = argc == 6 && !strcmp(argv[1], "key");
	bool token = argc == 6 && !strcmp(argv[1], "token");
	bool server = argc == 5 && !strcmp(argv[1], "ptserver");
	bool client = argc == 7 && (!strcmp(argv[1], "pt") || !strcmp(argv[1], "vl"));
	rxw_engine *engine;
	sigset_t stop;
	int result;

	if (key)
		return add_key(argv);
	if (token)
		return write_token(argv);
	if (!server && !client) {
		fprintf(stderr, "usage: cell_ours key KEYFILE KVNO ENCTYPE HEX\n"
				"       cell_ours token KEYFILE NAME SECONDS AGE\n"
				"       cell_ours ptserver PORT KEYFILE LEVEL\n"
				"       cell_ours pt|vl HOST PORT KEYFILE LEVEL N\n");
		return 2;
	}
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	result = rxw_engine_create(NULL, &engine);
	if (result)
		die("no engine", result, NULL);
	result = server ? run_server(engine, argv) : run_client(engine, argv);
	rxw_engine_destroy(engine);
	return result ? 1 : 0;
}
