/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks a protection server everything that can be asked, call by call, and prints the answers.
 *
 *   pt_ours HOST PORT KEYFILE|- NAME|ID...
 *   pt_ours HOST PORT KEYFILE|- hosts ID ADDRESS...
 *
 * With the keys of the cell's servers it asks as the service itself, with "-" as nobody.
 */
#include <arpa/inet.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "afs/pt.h"

static void die(const char *what, int result, const char *why)
{
	fprintf(stderr, "pt_ours: %s: %s\n", what, why && *why ? why : rxw_strerror(result));
	exit(1);
}

static void print_list(const char *what, int32_t id, int32_t code, prlist *list, int32_t over)
{
	printf("%s %d: code %d over %d:", what, id, code, over);
	for (uint32_t i = 0; i < list->len; i++)
		printf(" %d", list->val[i]);
	printf("\n");
	xdrfree_prlist(list);
}

static void ask_lists(rxw_connection *c, int32_t id)
{
	prlist list = {0};
	int32_t over = 0, code = PR_GetCPS(c, id, &list, &over);

	print_list("GetCPS", id, code, &list, over);
	code = PR_GetCPS2(c, id, 0x0a5b0701, &list, &over);
	print_list("GetCPS2", id, code, &list, over);
	code = PR_ListElements(c, id, &list, &over);
	print_list("ListElements", id, code, &list, over);
	over = 0;
	code = PR_ListOwned(c, id, &list, &over);
	print_list("ListOwned", id, code, &list, over);
	code = PR_ListSuperGroups(c, id, &list, &over);
	print_list("ListSuperGroups", id, code, &list, over);
}

static void ask_entry(rxw_connection *c, int32_t id)
{
	prcheckentry e;
	int32_t pos, code = PR_ListEntry(c, id, &e);

	printf("ListEntry %d: code %d id %d owner %d creator %d flags %x ngroups %d nusers %d count %d "
	       "name %.64s\n",
	       id, code, e.id, e.owner, e.creator, (unsigned)e.flags, e.ngroups, e.nusers, e.count,
	       e.name);
	code = PR_WhereIsIt(c, id, &pos);
	printf("WhereIsIt %d: code %d\n", id, code);
}

static void ask_memberships(rxw_connection *c, const int32_t *ids, int count)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < count; k++) {
			int32_t flag, code = PR_IsAMemberOf(c, ids[i], ids[k], &flag);

			printf("IsAMemberOf %d %d: code %d flag %d\n", ids[i], ids[k], code, flag);
		}
}

/* The ids of the names of the command line; numbers stay. */
static void ask_names(rxw_connection *c, char **texts, int count, int32_t *ids)
{
	prname *names = calloc((size_t)count, sizeof(*names));
	const namelist list = {(uint32_t)count, names};
	idlist found = {0};
	namelist back = {0};
	int32_t code;

	for (int i = 0; i < count; i++)
		memcpy(names[i], texts[i], strnlen(texts[i], sizeof(names[i]) - 1));
	code = PR_NameToID(c, &list, &found);
	printf("NameToID: code %d, %u ids\n", code, found.len);
	for (int i = 0; i < count; i++) {
		char *end;

		ids[i] = (int32_t)strtol(texts[i], &end, 10);
		if ((uint32_t)i < found.len)
			printf("NameToID %s: %d\n", texts[i], found.val[i]);
		if (*end && (uint32_t)i < found.len)
			ids[i] = found.val[i];
	}
	xdrfree_idlist(&found);
	found = (idlist){(uint32_t)count, ids};
	code = PR_IDToName(c, &found, &back);
	printf("IDToName: code %d, %u names\n", code, back.len);
	for (uint32_t i = 0; i < back.len; i++)
		printf("IDToName %d: %.64s\n", ids[i], back.val[i]);
	xdrfree_namelist(&back);
	free(names);
}

static void ask(rxw_connection *c, char **texts, int count)
{
	int32_t *ids = calloc((size_t)count, sizeof(*ids)), user = 0, group = 0, over = 0, code;
	prlist list = {0};

	ask_names(c, texts, count, ids);
	for (int i = 0; i < count; i++) {
		ask_lists(c, ids[i]);
		ask_entry(c, ids[i]);
	}
	ask_memberships(c, ids, count);
	code = PR_ListMax(c, &user, &group);
	printf("ListMax: code %d %d %d\n", code, user, group);
	code = PR_GetHostCPS(c, 0x0a5b0701, &list, &over);
	print_list("GetHostCPS", 0, code, &list, over);
	free(ids);
}

/* The groups of machines, alone and beside those of a user. */
static void ask_hosts(rxw_connection *c, int32_t id, char **addresses, int count)
{
	for (int i = 0; i < count; i++) {
		int32_t host = (int32_t)ntohl(inet_addr(addresses[i])), over = 0, code;
		prlist list = {0};

		printf("%s: ", addresses[i]);
		code = PR_GetHostCPS(c, host, &list, &over);
		print_list("GetHostCPS", 0, code, &list, over);
		printf("%s: ", addresses[i]);
		over = 0;
		code = PR_GetCPS2(c, id, host, &list, &over);
		print_list("GetCPS2", id, code, &list, over);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct rxw_token_options to = {.size = sizeof(to),
				       .source = RXW_TOKEN_LOCAL,
				       .index = RXW_RXKAD_INDEX,
				       .level = RXW_LEVEL_CRYPT};
	rxw_endpoint *endpoint;
	rxw_connection *c = NULL;
	rxw_token *token = NULL;
	rxw_engine *engine;
	char why[300] = "";
	int result;

	if (argc < 5) {
		fprintf(stderr, "usage: pt_ours HOST PORT KEYFILE|- NAME|ID...\n");
		return 2;
	}
	inet_pton(AF_INET, argv[1], &address.sin_addr);
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	if ((result = rxw_engine_create(NULL, &engine)))
		die("engine", result, NULL);
	if (strcmp(argv[3], "-") != 0 &&
	    ((result = rxw_keys_create(&to.keys)) ||
	     (result = rxw_keys_load(to.keys, argv[3], NULL, why, sizeof(why))) < 0 ||
	     (result = rxw_token_create(&to, &token, why, sizeof(why)))))
		die("token", result, why);
	if ((result = rxw_endpoint_create(engine, NULL, &endpoint)) ||
	    (result = rxw_connection_create(endpoint, (struct sockaddr *)&address, sizeof(address),
					    AFS_SERVICE_PT,
					    token ? rxw_token_security(token) : NULL, &c)))
		die("cannot start the client", result, NULL);
	if (strcmp(argv[4], "hosts") == 0 && argc > 6)
		ask_hosts(c, atoi(argv[5]), argv + 6, argc - 6);
	else
		ask(c, argv + 4, argc - 4);
	rxw_connection_release(c);
	rxw_endpoint_destroy(endpoint);
	rxw_token_unref(token);
	rxw_keys_unref(to.keys);
	rxw_engine_destroy(engine);
	return 0;
}
