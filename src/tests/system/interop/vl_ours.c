/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the calls of a script to a location server and prints their results, so that those of two servers can be compared.
 *
 *   vl_ours HOST PORT KEYFILE|- < SCRIPT
 *
 * Each line is a call with its arguments. A site is ADDRESS:PARTITION:FLAGS, a change of a site
 * MASK:SERVER:PARTITION:NEW-SERVER:NEW-PARTITION:NEW-FLAGS. Other numbers are in C's notation. "#" begins a comment.
 *
 *   create NAME RW RO BACKUP FLAGS SITE...            replace ID TYPE RELEASE NAME RW RO BACKUP FLAGS SITE...
 *   delete ID TYPE            lock ID TYPE OPERATION            unlock ID TYPE RELEASE
 *   update ID TYPE RELEASE MASK NAME RW RO BACKUP CLONE FLAGS CHANGE...
 *   updatename NAME RELEASE MASK NAME RW RO BACKUP CLONE FLAGS CHANGE...
 *   get NAME        getid ID TYPE        list MASK SERVER PARTITION ID FLAG PATTERN        listn, listo, linked: without PATTERN
 *   refused CALL...: only whether it is
 *   register NUMBER ADDRESS...        change ADDRESS ADDRESS        addrs NUMBER|ADDRESS        newid COUNT        stats
 */
#include <arpa/inet.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "afs/vl.h"

#define WORDS 40

static rxw_connection *c;

static void die(const char *what, int result, const char *why)
{
	fprintf(stderr, "vl_ours: %s: %s\n", what, why && *why ? why : rxw_strerror(result));
	exit(1);
}

static uint32_t number(const char *text)
{
	return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

/* A dotted address, or a number. */
static uint32_t address_of(const char *text)
{
	struct in_addr in;

	return text && strchr(text, '.') && inet_pton(AF_INET, text, &in) == 1 ? ntohl(in.s_addr)
									       : number(text);
}

static void print_address(uint32_t address)
{
	printf("%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
	       address & 255);
}

/* Up to `room` parts of TEXT between colons. */
static void split(const char *text, uint32_t *parts, int room)
{
	char copy[200], *rest = copy, *part;

	snprintf(copy, sizeof(copy), "%s", text);
	for (int i = 0; i < room; i++) {
		part = strsep(&rest, ":");
		parts[i] = part ? address_of(part) : 0;
	}
}

/* NAME RW RO BACKUP FLAGS SITE... */
static void take_entry(char **word, int count, nvldbentry *e)
{
	memset(e, 0, sizeof(*e));
	snprintf(e->name, sizeof(e->name), "%s", count ? word[0] : "");
	for (int i = 0; i < 3; i++)
		e->volumeId[i] = i + 1 < count ? number(word[i + 1]) : 0;
	e->flags = count > 4 ? (int32_t)number(word[4]) : 0;
	for (int i = 5; i < count && e->nServers < NMAXNSERVERS; i++) {
		uint32_t part[3];

		split(word[i], part, 3);
		e->serverNumber[e->nServers] = (int32_t)part[0];
		e->serverPartition[e->nServers] = (int32_t)part[1];
		e->serverFlags[e->nServers++] = (int32_t)part[2];
	}
}

/* MASK NAME RW RO BACKUP CLONE FLAGS CHANGE... */
static void take_update(char **word, int count, VldbUpdateEntry *u)
{
	memset(u, 0, sizeof(*u));
	if (count < 7)
		return;
	u->Mask = number(word[0]);
	snprintf(u->name, sizeof(u->name), "%s", word[1]);
	u->spares3 = (int32_t)number(word[2]);
	u->ReadOnlyId = number(word[3]);
	u->BackupId = number(word[4]);
	u->cloneId = number(word[5]);
	u->flags = (int32_t)number(word[6]);
	for (int i = 7; i < count && u->nModifiedRepsites < OMAXNSERVERS; i++) {
		int at = u->nModifiedRepsites++;
		uint32_t part[6];

		split(word[i], part, 6);
		u->RepsitesMask[at] = part[0];
		u->RepsitesTargetServer[at] = (int32_t)part[1];
		u->RepsitesTargetPart[at] = (int32_t)part[2];
		u->RepsitesNewServer[at] = (int32_t)part[3];
		u->RepsitesNewPart[at] = (int32_t)part[4];
		u->RepsitesNewFlags[at] = (int32_t)part[5];
	}
}

static void print_entry(const nvldbentry *e)
{
	printf("  %.65s ids %u %u %u clone %u flags %x match %x", e->name, e->volumeId[0],
	       e->volumeId[1], e->volumeId[2], e->cloneId, (unsigned)e->flags,
	       (unsigned)e->matchindex);
	for (int i = 0; i < e->nServers && i < NMAXNSERVERS; i++) {
		printf(" ");
		print_address((uint32_t)e->serverNumber[i]);
		printf(":%d:%x", e->serverPartition[i], (unsigned)e->serverFlags[i]);
	}
	printf("\n");
}

static void print_old_entry(const vldbentry *e)
{
	printf("  %.65s ids %u %u %u flags %x, %d sites\n", e->name, e->volumeId[0], e->volumeId[1],
	       e->volumeId[2], (unsigned)e->flags, e->nServers);
}

/* MASK SERVER PARTITION ID FLAG */
static void take_attributes(char **word, int count, VldbListByAttributes *a)
{
	*a = (VldbListByAttributes){
		.Mask = count ? number(word[0]) : 0,
		.server = count > 1 ? (int32_t)address_of(word[1]) : 0,
		.partition = count > 2 ? (int32_t)number(word[2]) : 0,
		.volumeid = count > 3 ? number(word[3]) : 0,
		.flag = count > 4 ? (int32_t)number(word[4]) : 0,
	};
}

static int32_t list_pages(char **word, int count)
{
	int32_t next = 0, code = 0, n;
	VldbListByAttributes a;

	take_attributes(word, count, &a);
	while (!code && next >= 0) {
		nbulkentries es = {0};

		code = VL_ListAttributesN2(c, &a, count > 5 ? word[5] : "", next, &n, &es, &next);
		for (uint32_t i = 0; !code && i < es.len; i++)
			print_entry(&es.val[i]);
		xdrfree_nbulkentries(&es);
	}
	return code;
}

static int32_t list_at_once(const char *form, char **word, int count)
{
	nbulkentries new = {0};
	bulkentries old = {0};
	nvldb_list linked = {0};
	VldbListByAttributes a;
	int32_t n = 0, code;

	take_attributes(word, count, &a);
	code = !strcmp(form, "listn")	? VL_ListAttributesN(c, &a, &n, &new)
	       : !strcmp(form, "listo") ? VL_ListAttributes(c, &a, &n, &old)
					: VL_LinkedListN(c, &a, &n, &linked);
	for (uint32_t i = 0; i < new.len; i++)
		print_entry(&new.val[i]);
	for (uint32_t i = 0; i < old.len; i++)
		print_old_entry(&old.val[i]);
	for (nvldblist at = linked.node; at; at = at->next_vldb)
		print_entry(&at->VldbEntry);
	printf("  %d\n", n);
	xdrfree_nbulkentries(&new);
	xdrfree_bulkentries(&old);
	xdrfree_nvldb_list(&linked);
	return code;
}

static struct rxw_uuid uuid_of(uint32_t number)
{
	return (struct rxw_uuid){.time_low = number, .node = {1, 2, 3, 4, 5, 6}};
}

static int32_t register_server(char **word, int count)
{
	const struct rxw_uuid uuid = uuid_of(count ? number(word[0]) : 0);
	uint32_t list[WORDS];
	const bulkaddrs addrs = {.len = (uint32_t)(count ? count - 1 : 0), .val = list};

	for (int i = 1; i < count; i++)
		list[i - 1] = address_of(word[i]);
	return VL_RegisterAddrs(c, &uuid, 0, &addrs);
}

static int32_t print_server(const char *text)
{
	ListAddrByAttributes a = {.Mask = strchr(text, '.') ? AFS_VL_BY_ADDRESS : AFS_VL_BY_UUID,
				  .ipaddr = address_of(text),
				  .uuid = uuid_of(number(text))};
	int32_t unique = 0, n = 0, code;
	struct rxw_uuid uuid = {0};
	bulkaddrs addrs = {0};

	if (strchr(text, '.'))
		a.uuid = uuid;
	code = VL_GetAddrsU(c, &a, &uuid, &unique, &n, &addrs);
	if (!code) {
		printf("  %u, list %d:", uuid.time_low, unique);
		for (uint32_t i = 0; i < addrs.len; i++) {
			printf(" ");
			print_address(addrs.val[i]);
		}
		printf("\n");
	}
	xdrfree_bulkaddrs(&addrs);
	return code;
}

static int32_t print_stats(void)
{
	vital_vlheader header = {0};
	vldstats stats = {0};
	int32_t code = VL_GetStats(c, &stats, &header);

	printf("  creations %d\n", stats.requests[517 - 501]);
	return code;
}

static int32_t change_entry(const char *verb, char **word, int count)
{
	bool by_name = !strcmp(verb, "updatename");
	int skip = by_name ? 2 : 3;
	VldbUpdateEntry u;
	nvldbentry e;

	if (!strcmp(verb, "create")) {
		take_entry(word, count, &e);
		return VL_CreateEntryN(c, &e);
	}
	if (count < skip)
		return -1;
	if (!strcmp(verb, "replace")) {
		take_entry(word + skip, count - skip, &e);
		return VL_ReplaceEntryN(c, number(word[0]), (int32_t)number(word[1]), &e,
					(int32_t)number(word[2]));
	}
	take_update(word + skip, count - skip, &u);
	return by_name ? VL_UpdateEntryByName(c, word[0], &u, (int32_t)number(word[1]))
		       : VL_UpdateEntry(c, number(word[0]), (int32_t)number(word[1]), &u,
					(int32_t)number(word[2]));
}

static int32_t ask_entry(const char *verb, char **word)
{
	nvldbentry e;
	int32_t code = !strcmp(verb, "get")
			       ? VL_GetEntryByNameN(c, word[0], &e)
			       : VL_GetEntryByIDN(c, number(word[0]), (int32_t)number(word[1]), &e);

	if (!code)
		print_entry(&e);
	return code;
}

static int32_t make_call(const char *verb, char **word, int count)
{
	uint32_t id = 0;
	int32_t code;

	if (!strcmp(verb, "get") || !strcmp(verb, "getid"))
		return ask_entry(verb, word);
	if (!strcmp(verb, "delete"))
		return VL_DeleteEntry(c, number(word[0]), (int32_t)number(word[1]));
	if (!strcmp(verb, "lock"))
		return VL_SetLock(c, number(word[0]), (int32_t)number(word[1]),
				  (int32_t)number(word[2]));
	if (!strcmp(verb, "unlock"))
		return VL_ReleaseLock(c, number(word[0]), (int32_t)number(word[1]),
				      (int32_t)number(word[2]));
	if (!strcmp(verb, "list"))
		return list_pages(word, count);
	if (!strcmp(verb, "listn") || !strcmp(verb, "listo") || !strcmp(verb, "linked"))
		return list_at_once(verb, word, count);
	if (!strcmp(verb, "register"))
		return register_server(word, count);
	if (!strcmp(verb, "change"))
		return VL_ChangeAddr(c, address_of(word[0]), address_of(word[1]));
	if (!strcmp(verb, "addrs"))
		return print_server(word[0]);
	if (!strcmp(verb, "stats"))
		return print_stats();
	if (!strcmp(verb, "newid")) {
		code = VL_GetNewVolumeId(c, number(word[0]), &id);
		printf("  %s\n", id ? "an id" : "none");
		return code;
	}
	return change_entry(verb, word, count);
}

static void run_line(char *line)
{
	char *word[WORDS] = {0}, *rest = line, *at;
	int count = 0, first;
	int32_t code;

	line[strcspn(line, "\n#")] = 0;
	printf("%s\n", line);
	while (count < WORDS - 4 && (at = strsep(&rest, " ")))
		if (*at)
			word[count++] = strcmp(at, "''") ? at : at + 2;
	first = count && !strcmp(word[0], "refused");
	if (count <= first)
		return;
	code = make_call(word[first], word + first + 1, count - first - 1);
	printf(first && code ? "  refused\n" : "  code %d\n", code);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct rxw_token_options to = {.size = sizeof(to),
				       .source = RXW_TOKEN_LOCAL,
				       .index = RXW_RXKAD_INDEX,
				       .level = RXW_LEVEL_CRYPT};
	rxw_endpoint *endpoint;
	rxw_token *token = NULL;
	rxw_engine *engine;
	char line[4096] = "";
	int result;

	if (argc != 4) {
		fprintf(stderr, "usage: vl_ours HOST PORT KEYFILE|- < SCRIPT\n");
		return 2;
	}
	inet_pton(AF_INET, argv[1], &address.sin_addr);
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	if ((result = rxw_engine_create(NULL, &engine)))
		die("engine", result, NULL);
	if (strcmp(argv[3], "-") != 0 &&
	    ((result = rxw_keys_create(&to.keys)) ||
	     (result = rxw_keys_load(to.keys, argv[3], NULL, line, sizeof(line))) < 0 ||
	     (result = rxw_token_create(&to, &token, line, sizeof(line)))))
		die("token", result, line);
	if ((result = rxw_endpoint_create(engine, NULL, &endpoint)) ||
	    (result = rxw_connection_create(endpoint, (struct sockaddr *)&address, sizeof(address),
					    AFS_SERVICE_VL,
					    token ? rxw_token_security(token) : NULL, &c)))
		die("cannot start the client", result, NULL);
	while (fgets(line, sizeof(line), stdin))
		run_line(line);
	rxw_connection_release(c);
	rxw_endpoint_destroy(endpoint);
	rxw_token_unref(token);
	rxw_keys_unref(to.keys);
	rxw_engine_destroy(engine);
	return 0;
}
