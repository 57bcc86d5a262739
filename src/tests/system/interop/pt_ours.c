/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks a protection server everything that can be asked, call by call, and prints the answers.
 *
 *   pt_ours HOST PORT KEYFILE|- NAME|ID...
 *   pt_ours HOST PORT KEYFILE|- hosts ID ADDRESS...
 *   pt_ours HOST PORT KEYFILE script < SCRIPT
 *
 * A script changes the database; each line is a call. Entries are names or ids; 0 is no entry.
 *
 *   as USER@REALM|service|nobody        new NAME ID OWNER        newuser NAME        newgroup NAME OWNER
 *   add USER GROUP        remove USER GROUP        delete ENTRY        rename ENTRY NAME        chown GROUP OWNER
 *   number ENTRY ID       fields ENTRY MASK FLAGS GROUPS USERS        max ID IS-GROUP        show ENTRY...        owned ENTRY
 *   super ENTRY           cps ENTRY ADDRESS           is MEMBER GROUP
 *
 * With the keys of the cell's servers it asks as the service itself, with "-" as nobody.
 */
#include <arpa/inet.h>
#include <rxwire/afs.h>
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

/* -- scripts -- */

static rxw_endpoint *from;
static struct sockaddr_in server;
static rxw_keys *server_keys;

/* The connection that acts as somebody; it replaces `old`. */
static rxw_connection *act_as(const char *who, rxw_connection *old)
{
	const struct rxw_rxkad_print_options options = {.size = sizeof(options),
							.name = strcmp(who, "service") ? who : NULL,
							.lifetime_s = 3600};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *security = NULL;
	rxw_connection *c;
	int result = 0;

	rxw_connection_release(old);
	if (strcmp(who, "nobody") != 0) {
		result = rxw_rxkad_print_token(server_keys, &options, &token);
		if (!result)
			result = rxw_rxkad_client(&token, RXW_LEVEL_CRYPT, &security);
		rxw_rxkad_token_free(&token);
	}
	if (result ||
	    (result = rxw_connection_create(from, (struct sockaddr *)&server, sizeof(server),
					    AFS_SERVICE_PT, security, &c)))
		die(who, result, NULL);
	if (security)
		rxw_security_unref(security);
	return c;
}

/* The id of a name; numbers stay. */
static int32_t id_of(rxw_connection *c, const char *text)
{
	char *end;
	long number = strtol(text, &end, 0);
	prname name = {0};
	const namelist list = {1, &name};
	idlist ids = {0};
	int32_t id = 0;

	if (!*end)
		return (int32_t)number;
	memcpy(name, text, strnlen(text, sizeof(name) - 1));
	if (!PR_NameToID(c, &list, &ids) && ids.len == 1)
		id = ids.val[0];
	xdrfree_idlist(&ids);
	return id;
}

static int32_t show_one(rxw_connection *c, const char *text)
{
	int32_t id = id_of(c, text), over = 0, code;
	prcheckentry e = {0};
	prlist list = {0};

	code = PR_ListEntry(c, id, &e);
	if (code)
		return code;
	printf("  %.64s %d owner %d creator %d flags %x quota %d count %d:", e.name, e.id, e.owner,
	       e.creator, (unsigned)e.flags, e.ngroups, e.count);
	code = PR_ListElements(c, id, &list, &over);
	for (uint32_t i = 0; i < list.len; i++)
		printf(" %d", list.val[i]);
	printf("\n");
	xdrfree_prlist(&list);
	return code;
}

/* Each id once: OpenAFS's server repeats groups that it finds in several ways. */
static int32_t print_ids(const char *what, prlist *list, int32_t code)
{
	printf("  %s:", what);
	for (uint32_t i = 0; i < list->len; i++)
		if (i == 0 || list->val[i] != list->val[i - 1])
			printf(" %d", list->val[i]);
	printf("\n");
	xdrfree_prlist(list);
	return code;
}

static int32_t list_owned(rxw_connection *c, const char *text)
{
	prlist list = {0};
	int32_t over = 0, code = PR_ListOwned(c, id_of(c, text), &list, &over);

	return print_ids("owned", &list, code);
}

static int32_t list_supergroups(rxw_connection *c, const char *text)
{
	prlist list = {0};
	int32_t over = 0, code = PR_ListSuperGroups(c, id_of(c, text), &list, &over);

	return print_ids("supergroups", &list, code);
}

/* Of a user alone, of a user on a machine, and of the machine. */
static int32_t list_cps(rxw_connection *c, const char *text, const char *address)
{
	int32_t id = id_of(c, text), host = (int32_t)ntohl(inet_addr(address)), over = 0;
	prlist list = {0};
	int32_t code = PR_GetCPS(c, id, &list, &over), other;

	print_ids("cps", &list, code);
	other = PR_GetCPS2(c, id, host, &list, &over);
	print_ids("cps2", &list, other);
	other = PR_GetHostCPS(c, host, &list, &over);
	print_ids("host cps", &list, other);
	return code;
}

static int32_t ask_member(rxw_connection *c, const char *member, const char *group)
{
	int32_t flag = 0, code = PR_IsAMemberOf(c, id_of(c, member), id_of(c, group), &flag);

	printf("  member %d\n", flag);
	return code;
}

/* `a` to `e`: the arguments, "0" if there are none. */
static int32_t make_change(rxw_connection *c, char **word)
{
	const char *verb = word[0], *a = word[1], *b = word[2];
	int32_t id = 0, code;

	if (!strcmp(verb, "new"))
		return PR_INewEntry(c, a, id_of(c, b), id_of(c, word[3]));
	if (!strcmp(verb, "newuser") || !strcmp(verb, "newgroup")) {
		code = PR_NewEntry(c, a, !strcmp(verb, "newuser") ? PRUSER : PRGRP, id_of(c, b),
				   &id);
		printf("  id %d\n", id);
		return code;
	}
	if (!strcmp(verb, "add"))
		return PR_AddToGroup(c, id_of(c, a), id_of(c, b));
	if (!strcmp(verb, "remove"))
		return PR_RemoveFromGroup(c, id_of(c, a), id_of(c, b));
	if (!strcmp(verb, "delete"))
		return PR_Delete(c, id_of(c, a));
	if (!strcmp(verb, "rename"))
		return PR_ChangeEntry(c, id_of(c, a), b, 0, 0);
	if (!strcmp(verb, "chown"))
		return PR_ChangeEntry(c, id_of(c, a), "", id_of(c, b), 0);
	if (!strcmp(verb, "number"))
		return PR_ChangeEntry(c, id_of(c, a), "", 0, id_of(c, b));
	if (!strcmp(verb, "fields"))
		return PR_SetFieldsEntry(c, id_of(c, a), (uint32_t)strtoul(b, NULL, 0),
					 (uint32_t)strtoul(word[3], NULL, 0), atoi(word[4]),
					 atoi(word[5]), 0, 0);
	if (!strcmp(verb, "max"))
		return PR_SetMax(c, id_of(c, a), atoi(b));
	if (!strcmp(verb, "super"))
		return list_supergroups(c, a);
	if (!strcmp(verb, "cps"))
		return list_cps(c, a, b);
	if (!strcmp(verb, "is"))
		return ask_member(c, a, b);
	return !strcmp(verb, "owned") ? list_owned(c, a) : -1;
}

static void run_script(void)
{
	rxw_connection *c = act_as("nobody", NULL);
	char line[1000];

	while (fgets(line, sizeof(line), stdin)) {
		char *word[12], *rest = line, *at;
		int count = 0;

		line[strcspn(line, "\n#")] = 0;
		printf("%s\n", line);
		while (count < 12 && (at = strsep(&rest, " ")))
			if (*at)
				word[count++] = at;
		for (int i = count; i < 12; i++)
			word[i] = "0";
		if (count && !strcmp(word[0], "as"))
			c = act_as(word[1], c);
		else if (count && !strcmp(word[0], "show"))
			for (int i = 1; i < count; i++)
				printf("  code %d\n", show_one(c, word[i]));
		else if (count)
			printf("  code %d\n", make_change(c, word));
	}
	rxw_connection_release(c);
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
	from = endpoint;
	server = address;
	server_keys = to.keys;
	if (strcmp(argv[4], "script") == 0)
		run_script();
	else if (strcmp(argv[4], "hosts") == 0 && argc > 6)
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
