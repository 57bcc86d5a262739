/* SPDX-License-Identifier: BSD-2-Clause */
/* The protection service: who sees what, lists of any length, and requests that are wrong. */
#include "tests/fileserver/anycall.h"
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <rxwire/error.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "afs/numbers.h"
#include "afs/pt.h"
#include "fileserver/pt/pt.h"
#include "fileserver/service/service.h"
#include "protection/protection.h"

#define LIST_MAX    5000 /* of the service */
#define ENTRIES_MAX 1000

static const char *const realm = "OTHER.REALM";
static char *folder, message[PROT_MESSAGE_MAX];
static struct prot *prot;
static rxw_keys *keys;
static rxw_engine *engine;
static struct fsd_pt *service_under_test;
static rxw_endpoint *server, *client;
static rxw_connection *nobody, *myself; /* myself: the service itself */
static rxw_connection *opened[16];
static unsigned open_count;

static void well(int rc)
{
	ck_assert_msg(rc == 0, "%s", message);
}

static int32_t user(const char *name, int32_t id)
{
	int32_t given;

	well(prot_add_user(prot, name, id, &given, message));
	return given;
}

static int32_t group(const char *name, int32_t id, int32_t owner)
{
	int32_t given;

	well(prot_add_group(prot, name, id, owner, &given, message));
	return given;
}

static void member(int32_t id, int32_t of)
{
	well(prot_add_member(prot, of, id, message));
}

static void open_database(void)
{
	const struct prot_options options = {.path = folder,
					     .create = true,
					     .cell = "test.example",
					     .realms = &realm,
					     .realm_count = 1};

	well(prot_open(&options, &prot, message));
	user("alice", 1);
	user("bob", 2);
	user("carol", 3);
	user("alice.admin", 4);
	user("eve@foreign.example", 5);
	group("staff", -206, 1);
	group("secret", -207, -206);
	group("alice:friends", -208, 1);
	member(2, -206);
	member(3, -207);
	member(5, -208);
	well(prot_set_access(prot, -207, PROT_STATUS_MEM | PROT_MEMBER_MEM, message));
}

static rxw_connection *connect_with(rxw_security *security)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	ck_assert_int_eq(rxw_endpoint_address(server, &sa, &length), 0);
	ck_assert_uint_lt(open_count, 16);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&sa, length,
					       AFS_SERVICE_PT, security, &opened[open_count]),
			 0);
	if (security)
		rxw_security_unref(security);
	return opened[open_count++];
}

/* With a ticket for a principal, or for the service itself (NULL). */
static rxw_connection *kad(const char *name)
{
	return connect_with(token_for_rxkad(keys, name, RXW_LEVEL_CRYPT));
}

static rxw_connection *gk(const char *name)
{
	return connect_with(token_for_rxgk(keys, name));
}

static void open_server(void)
{
	const struct rxw_rxkad_server_options kad_options = {.size = sizeof(kad_options),
							     .keys = keys};
	const struct rxw_rxgk_server_options gk_options = {.size = sizeof(gk_options),
							   .keys = keys};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct rxw_endpoint_options here = {.size = sizeof(here),
						  .address = (const struct sockaddr *)&sa,
						  .address_len = sizeof(sa),
						  .server = 1};
	rxw_security *classes[3] = {rxw_security_null()};
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = AFS_SERVICE_PT,
					      .name = "pt",
					      .handler = fsd_pt_serve,
					      .context = service_under_test,
					      .security = classes,
					      .security_count = 3};
	rxw_service *service;

	ck_assert_ptr_nonnull(service_under_test);
	ck_assert_int_eq(rxw_rxkad_server(&kad_options, &classes[1]), 0);
	ck_assert_int_eq(rxw_rxgk_server(&gk_options, &classes[2]), 0);
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &here, &server), 0);
	ck_assert_int_eq(rxw_service_add(server, &options, &service), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, NULL, &client), 0);
	for (int i = 0; i < 3; i++)
		rxw_security_unref(classes[i]);
}

static void setup(void)
{
	folder = test_folder();
	open_database();
	service_under_test = fsd_pt_create(prot, NULL, NULL);
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 3, 18), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, 3, 18), 0);
	open_server();
	nobody = connect_with(NULL);
	myself = kad(NULL);
}

static void teardown(void)
{
	while (open_count)
		rxw_connection_release(opened[--open_count]);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	fsd_pt_destroy(service_under_test);
	rxw_keys_unref(keys);
	prot_close(prot);
	tree_remove(folder);
}

/* A list of ids as text; freed. */
static const char *text_of(prlist *list)
{
	static char text[512];
	size_t at = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < list->len && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", i ? " " : "",
				       list->val[i]);
	xdrfree_prlist(list);
	return text;
}

/* The list, or the code as text. */
static const char *elements(rxw_connection *c, int32_t id)
{
	static char text[16];
	prlist list;
	int32_t over, code = PR_ListElements(c, id, &list, &over);

	snprintf(text, sizeof(text), "code %d", code);
	return code ? text : text_of(&list);
}

static const char *cps(rxw_connection *c, int32_t id)
{
	static char text[16];
	prlist list, same;
	int32_t over = 1, code = PR_GetCPS(c, id, &list, &over), more;

	snprintf(text, sizeof(text), "code %d", code);
	ck_assert_int_eq(PR_GetCPS2(c, id, 0x0a000001, &same, &more), code);
	if (code)
		return text;
	ck_assert_int_eq(over, 0);
	ck_assert_uint_eq(list.len, same.len);
	ck_assert_mem_eq(list.val, same.val, list.len * sizeof(*list.val));
	xdrfree_prlist(&same);
	return text_of(&list);
}

static const char *owned(rxw_connection *c, int32_t id)
{
	static char text[16];
	prlist list;
	int32_t last = 0, code = PR_ListOwned(c, id, &list, &last);

	snprintf(text, sizeof(text), "code %d", code);
	return code ? text : text_of(&list);
}

static int32_t look_up(rxw_connection *c, const char *name)
{
	prname one = {0};
	const namelist names = {1, &one};
	idlist ids;
	int32_t id;

	memcpy(one, name, strnlen(name, sizeof(one)));
	ck_assert_int_eq(PR_NameToID(c, &names, &ids), 0);
	ck_assert_uint_eq(ids.len, 1);
	id = ids.val[0];
	xdrfree_idlist(&ids);
	return id;
}

START_TEST(names_and_ids)
{
	static int32_t asked[] = {1, -206, 32766, 777, INT32_MIN, 0};
	static const char *const want[] = {"alice", "staff",	   "anonymous",
					   "777",   "-2147483648", "0"};
	const idlist ids = {6, asked};
	char longest[65];
	namelist names;
	int32_t highest, lowest, pos;

	setup();
	ck_assert_int_eq(look_up(nobody, "alice"), 1);
	ck_assert_int_eq(look_up(nobody, "ALICE"), 32766);
	ck_assert_int_eq(look_up(nobody, "system:anyuser"), -101);
	ck_assert_int_eq(look_up(nobody, "eve@foreign.example"), 5);
	ck_assert_int_eq(look_up(nobody, "nobody"), 32766);
	ck_assert_int_eq(look_up(nobody, ""), 32766);
	ck_assert_int_eq(look_up(nobody, "1"), 32766);
	/* 64 bytes without an end. */
	memset(longest, 'a', 64);
	longest[64] = 0;
	ck_assert_int_eq(look_up(nobody, longest), 32766);
	user("Alice", 9);
	ck_assert_int_eq(look_up(nobody, "Alice"), 9);
	ck_assert_int_eq(look_up(nobody, "alice"), 1);
	ck_assert_int_eq(PR_IDToName(nobody, &ids, &names), 0);
	ck_assert_uint_eq(names.len, 6);
	for (int i = 0; i < 6; i++)
		ck_assert_str_eq(names.val[i], want[i]);
	xdrfree_namelist(&names);
	ck_assert_int_eq(PR_ListMax(nobody, &highest, &lowest), 0);
	ck_assert_int_eq(highest, 9);
	ck_assert_int_eq(lowest, -208);
	ck_assert_int_eq(PR_WhereIsIt(nobody, 1, &pos), 0);
	ck_assert_int_eq(PR_WhereIsIt(nobody, 99, &pos), AFS_PT_NOENT);
	teardown();
}
END_TEST

START_TEST(groups_of_callers)
{
	prlist host;
	int32_t over, flag;

	setup();
	ck_assert_str_eq(cps(myself, 2), "-206 -102 -101 2");
	ck_assert_str_eq(cps(myself, 1), "-102 -101 1");
	ck_assert_str_eq(cps(myself, 99), "code 267268");
	ck_assert_str_eq(cps(nobody, 32766), "-101 32766");
	ck_assert_str_eq(cps(nobody, 2), "code 267269");
	ck_assert_int_eq(PR_GetHostCPS(nobody, 0x7f000001, &host, &over), 0);
	ck_assert_uint_eq(host.len, 0);
	xdrfree_prlist(&host);
	/* The groups of a machine and of its network, and with those of a user: each once. */
	member(user("127.0.0.1", 50), -206);
	member(user("127.0.0.0", 51), -206);
	member(51, -207);
	ck_assert_int_eq(PR_GetHostCPS(nobody, 0x7f000001, &host, &over), 0);
	ck_assert_uint_eq(host.len, 2);
	ck_assert_int_eq(host.val[0], -207);
	ck_assert_int_eq(host.val[1], -206);
	xdrfree_prlist(&host);
	ck_assert_int_eq(over, 0);
	ck_assert_int_eq(PR_GetCPS2(myself, 2, 0x7f000001, &host, &over), 0);
	ck_assert_uint_eq(host.len, 5);
	ck_assert_int_eq(host.val[0], -207);
	ck_assert_int_eq(host.val[1], -206);
	ck_assert_int_eq(host.val[4], 2);
	xdrfree_prlist(&host);
	ck_assert_int_eq(PR_GetCPS2(nobody, 2, 0x7f000001, &host, &over), AFS_PT_PERM);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 2, -206, &flag), 0);
	ck_assert_int_eq(flag, 1);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 1, -206, &flag), 0);
	ck_assert_int_eq(flag, 0);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 1, -102, &flag), 0);
	ck_assert_int_eq(flag, 1);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 32766, -102, &flag), 0);
	ck_assert_int_eq(flag, 0);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 32766, -101, &flag), 0);
	ck_assert_int_eq(flag, 1);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 3, -207, &flag), AFS_PT_PERM);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 1, 2, &flag), AFS_PT_BADARG);
	ck_assert_int_eq(PR_IsAMemberOf(nobody, 99, -206, &flag), AFS_PT_NOENT);
	teardown();
}
END_TEST

/* Each identity sees what its user may see. */
START_TEST(who_sees_what)
{
	rxw_connection *alice, *bob, *carol, *admin, *eve, *other, *unknown;
	prcheckentry entry;

	setup();
	alice = kad("alice@TEST.EXAMPLE");
	bob = gk("bob@TEST.EXAMPLE");
	carol = gk("carol@OTHER.REALM");
	admin = kad("alice/admin@TEST.EXAMPLE");
	eve = gk("eve@FOREIGN.EXAMPLE");
	other = kad("alice@FOREIGN.EXAMPLE");
	unknown = gk("mallory@TEST.EXAMPLE");

	/* Groups of a user: that user, its administrators. */
	ck_assert_str_eq(elements(bob, 2), "-206");
	ck_assert_str_eq(cps(bob, 2), "-206 -102 -101 2");
	ck_assert_str_eq(elements(alice, 2), "code 267269");
	ck_assert_str_eq(elements(other, 2), "code 267269");
	ck_assert_str_eq(elements(eve, 5), "-208");
	/* Members of a group that anyone may see, and of one that members may see. */
	ck_assert_str_eq(elements(nobody, -206), "2");
	ck_assert_str_eq(elements(nobody, -207), "code 267269");
	ck_assert_str_eq(elements(unknown, -207), "code 267269");
	ck_assert_str_eq(elements(other, -207), "code 267269");
	ck_assert_str_eq(elements(alice, -207), "code 267269");
	ck_assert_str_eq(elements(carol, -207), "3");
	/* Its owner is a group: a member of that. */
	ck_assert_str_eq(elements(bob, -207), "3");
	ck_assert_int_eq(PR_ListEntry(nobody, -207, &entry), AFS_PT_PERM);
	ck_assert_int_eq(PR_ListEntry(carol, -207, &entry), 0);
	ck_assert_str_eq(entry.name, "secret");
	ck_assert_int_eq(entry.flags, 0x48);
	ck_assert_int_eq(entry.owner, -206);
	ck_assert_int_eq(entry.creator, -204);
	ck_assert_int_eq(entry.count, 1);
	ck_assert_int_eq(PR_ListEntry(nobody, 1, &entry), 0);
	ck_assert_int_eq(entry.ngroups, 20);
	ck_assert_int_eq(PR_ListEntry(nobody, 99, &entry), AFS_PT_NOENT);
	/* Entries that alice owns: she, and administrators. */
	ck_assert_str_eq(owned(alice, 1), "-208 -206");
	ck_assert_str_eq(owned(admin, 1), "code 267269");
	ck_assert_str_eq(owned(nobody, 1), "code 267269");
	ck_assert_str_eq(owned(myself, 1), "-208 -206");
	ck_assert_str_eq(owned(myself, 0), "");
	ck_assert_str_eq(owned(nobody, 0), "code 267269");
	ck_assert_str_eq(owned(nobody, 99), "code 267268");
	member(4, PROT_ADMINISTRATORS);
	ck_assert_str_eq(owned(admin, 1), "-208 -206");
	ck_assert_str_eq(elements(admin, -207), "3");
	ck_assert_str_eq(owned(alice, -206), "-207");
	well(prot_remove_member(prot, PROT_ADMINISTRATORS, 4, message));
	ck_assert_str_eq(owned(admin, 1), "code 267269");
	member(3, PROT_PTSVIEWERS);
	ck_assert_str_eq(owned(carol, 1), "-208 -206");
	teardown();
}
END_TEST

/* The entries from ListEntries, in replies of any number. */
static size_t count_entries(int32_t flags, int32_t *replies)
{
	int32_t next = 0;
	size_t count = 0;
	uint32_t last = 0;

	for (*replies = 0; next != -1; ++*replies) {
		prentries entries;

		ck_assert_int_lt(*replies, 100);
		ck_assert_int_eq(PR_ListEntries(myself, flags, next, &entries, &next), 0);
		ck_assert_uint_le(entries.len, ENTRIES_MAX);
		for (uint32_t i = 0; i < entries.len; i++) {
			ck_assert_uint_gt((uint32_t)entries.val[i].id, last);
			last = (uint32_t)entries.val[i].id;
		}
		count += entries.len;
		xdrfree_prentries(&entries);
	}
	return count;
}

START_TEST(long_lists)
{
	int32_t replies, over, last = 0;
	char name[32];
	prlist list;
	size_t all = 0;

	setup();
	ck_assert_uint_eq(count_entries(PRUSERS, &replies), 6);
	ck_assert_uint_eq(count_entries(PRGROUPS, &replies), 8);
	ck_assert_uint_eq(count_entries(PRUSERS | PRGROUPS, &replies), 14);
	ck_assert_uint_eq(count_entries(0, &replies), 0);
	well(prot_begin(prot, message));
	for (int i = 0; i < LIST_MAX + 10; i++) {
		snprintf(name, sizeof(name), "u%d", i);
		member(user(name, 0), -206);
		snprintf(name, sizeof(name), "g%d", i);
		group(name, 0, 1);
	}
	well(prot_commit(prot, message));
	ck_assert_uint_eq(count_entries(PRUSERS, &replies), LIST_MAX + 16);
	ck_assert_int_eq(replies, 6);
	ck_assert_uint_eq(count_entries(PRGROUPS, &replies), LIST_MAX + 18);
	ck_assert_uint_eq(count_entries(PRUSERS | PRGROUPS, &replies), 2 * (LIST_MAX + 10) + 14);
	/* Lists of ids say that they are cut. */
	ck_assert_int_eq(PR_ListElements(nobody, -206, &list, &over), 0);
	ck_assert_uint_eq(list.len, LIST_MAX);
	ck_assert_int_eq(over, 1);
	xdrfree_prlist(&list);
	do {
		ck_assert_int_eq(PR_ListOwned(myself, 1, &list, &last), 0);
		all += list.len;
		xdrfree_prlist(&list);
	} while (last);
	ck_assert_uint_eq(all, LIST_MAX + 12);
	teardown();
}
END_TEST

/* One request as bytes; the code. */
static int32_t raw(const uint32_t *words, size_t count)
{
	uint8_t bytes[65536 + 64], reply[64];
	struct rxw_xdr x;
	rxw_call *call;
	int32_t code;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	for (size_t i = 0; i < count; i++)
		rxw_xdr_put_u32(&x, words[i]);
	ck_assert_int_eq(rxw_call_begin(nobody, NULL, &call), 0);
	ck_assert_int_ge(rxw_call_write(call, bytes, count * 4), 0);
	while (rxw_call_read(call, reply, sizeof(reply)) > 0)
		;
	code = rxw_call_error(call, NULL);
	rxw_call_end(call, 0, NULL);
	return code;
}

START_TEST(hostile)
{
	static const uint32_t changing[] = {500, 502, 503, 506, 507, 509, 511, 513, 516, 520};
	static uint32_t many[16384];
	prentries entries;
	int32_t next, over;
	prlist list;

	setup();
	/* Nobody may change anything, whatever the arguments are. */
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++)
		ck_assert_int_eq(raw(&changing[i], 1), AFS_PT_PERM);
	ck_assert_int_eq(raw((uint32_t[]){499}, 1), RXW_RPC_OPCODE);
	ck_assert_int_eq(raw((uint32_t[]){522}, 1), RXW_RPC_OPCODE);
	ck_assert_int_eq(raw((uint32_t[]){504, 0xffffffff}, 2), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(raw((uint32_t[]){505, 500000, 1}, 3), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(raw((uint32_t[]){512}, 1), RXW_RPC_SS_UNMARSHAL);
	/* Letters that are none: cut to a byte or refused, but never found. */
	many[0] = 504;
	many[1] = 1;
	for (int i = 2; i < 66; i++)
		many[i] = 0xffffffff;
	ck_assert_int_ne(raw(many, 66), RXW_RPC_OPCODE);
	many[0] = 505;
	many[1] = LIST_MAX;
	ck_assert_int_eq(raw(many, 2 + LIST_MAX), 0);
	many[1] = LIST_MAX + 1;
	ck_assert_int_eq(raw(many, 3 + LIST_MAX), AFS_PT_TOOMANY);
	/* Strangers must not make the server keep lists that it refuses anyhow. */
	many[1] = PR_ASKEDLIMIT + 1;
	ck_assert_int_eq(raw(many, 3 + PR_ASKEDLIMIT), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(PR_ListEntries(nobody, 3, 0, &entries, &next), AFS_PT_PERM);
	for (int32_t start = INT32_MIN; start < INT32_MAX - 1000000000; start += 1000000000) {
		ck_assert_int_eq(PR_ListEntries(myself, -1, start, &entries, &next), 0);
		xdrfree_prentries(&entries);
	}
	ck_assert_int_eq(PR_ListEntries(myself, 3, -1, &entries, &next), 0);
	ck_assert_uint_eq(entries.len, 0);
	ck_assert_int_eq(next, -1);
	xdrfree_prentries(&entries);
	next = INT32_MAX;
	ck_assert_int_eq(PR_ListOwned(myself, -204, &list, &next), 0);
	ck_assert_uint_eq(list.len, 0);
	ck_assert_int_eq(next, 0);
	xdrfree_prlist(&list);
	ck_assert_int_eq(PR_ListSuperGroups(nobody, -206, &list, &over), 0);
	ck_assert_uint_eq(list.len, 0);
	xdrfree_prlist(&list);
	well(prot_add_member(prot, -206, -208, message));
	ck_assert_int_eq(PR_ListSuperGroups(nobody, -208, &list, &over), 0);
	ck_assert_str_eq(text_of(&list), "-206");
	ck_assert_int_eq(PR_ListSuperGroups(nobody, -207, &list, &over), AFS_PT_PERM);
	ck_assert_int_eq(PR_ListSuperGroups(nobody, 99, &list, &over), AFS_PT_NOENT);
	ck_assert_int_eq(look_up(nobody, "alice"), 1);
	/* A change of nothing is none of an entry that does not exist. */
	ck_assert_int_eq(PR_ChangeEntry(kad("alice@TEST.EXAMPLE"), 0, "", 0, 0), AFS_PT_NOENT);
	teardown();
}
END_TEST

/* -- turns of changes by users -- */

static _Atomic bool enough;

/* Change something again and again, also after refusals. */
static void *change_endlessly(void *connection)
{
	for (bool add = false; !atomic_load(&enough); add = !add)
		if (add)
			PR_AddToGroup(connection, 3, -206);
		else
			PR_RemoveFromGroup(connection, 3, -206);
	return NULL;
}

static void *change_once(void *connection)
{
	static int32_t code;

	code = PR_AddToGroup(connection, 3, -206);
	return &code;
}

/* The next change by a user takes so long, as with a large database, that the pause after it is of the greatest length. */
static void make_slow_change(rxw_connection *by)
{
	pthread_t thread;
	int32_t user, group;
	void *code;

	/* The view is fresh: nothing before the change itself waits for the database. */
	ck_assert_int_eq(PR_ListMax(by, &user, &group), 0);
	well(prot_begin(prot, message));
	ck_assert_int_eq(pthread_create(&thread, NULL, change_once, by), 0);
	nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
	prot_rollback(prot);
	ck_assert_int_eq(pthread_join(thread, &code), 0);
	ck_assert_int_eq(*(int32_t *)code, 0);
}

/* A change that takes long delays the next one, but neither refuses it, nor gives one user all turns. */
START_TEST(turns_of_users)
{
	rxw_connection *alice[2], *bob;
	pthread_t threads[2];
	int32_t id;

	setup();
	bob = kad("bob@TEST.EXAMPLE");
	for (int i = 0; i < 2; i++)
		alice[i] = kad("alice@TEST.EXAMPLE");
	make_slow_change(alice[0]);
	ck_assert_int_eq(PR_RemoveFromGroup(alice[0], 3, -206), 0);
	make_slow_change(alice[0]);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, change_endlessly, alice[i]), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(PR_NewEntry(bob, (char[]){'b', 'o', 'b', ':', (char)('a' + i), 0},
					     PRGRP, 0, &id),
				 0);
	atomic_store(&enough, true);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	teardown();
}
END_TEST

/* A server that stops does not wait for them. Administrators need no turn. */
START_TEST(turns_end_with_the_service)
{
	rxw_connection *alice, *admin;

	setup();
	member(4, PROT_ADMINISTRATORS);
	alice = kad("alice@TEST.EXAMPLE");
	admin = kad("alice/admin@TEST.EXAMPLE");
	fsd_pt_stop(service_under_test);
	ck_assert_int_eq(PR_AddToGroup(alice, 3, -206), AFS_VBUSY);
	ck_assert_int_eq(PR_AddToGroup(admin, 3, -206), 0);
	teardown();
}
END_TEST

/* -- any calls -- */

/* The database is sound, and what it has can be listed. */
static void check_database(rxw_connection *c)
{
	const struct prot_options options = {.path = folder, .cell = "test.example"};
	struct prot *again;
	prentries entries = {0};
	int32_t next = 0;

	ck_assert_int_eq(PR_ListEntries(c, PRUSERS | PRGROUPS, 0, &entries, &next), 0);
	xdrfree_prentries(&entries);
	well(prot_open(&options, &again, message));
	prot_close(again);
}

START_TEST(any_calls)
{
	static const struct anycall_form forms[] = {
		{500, "sii"},	{500, "sii"},  {501, "i"},    {503, "ii"}, {503, "ii"},
		{503, "ii"},	{504, "L"},    {505, "l"},    {506, "i"},  {507, "ii"},
		{508, "i"},	{509, "swi"},  {509, "swi"},  {510, ""},   {511, "iw"},
		{512, "i"},	{513, "isii"}, {513, "isiw"}, {514, "i"},  {515, "ii"},
		{516, "ibb4w"}, {516, "i6w"},  {517, "iw"},   {518, "ii"}, {519, "i"},
		{521, "ww"},	{530, "i"},    {520, "i"},    {7, "w"}};
	static const uint32_t ids[] = {1,
				       2,
				       3,
				       4,
				       5,
				       6,
				       7,
				       32766,
				       0,
				       (uint32_t)-101,
				       (uint32_t)-102,
				       (uint32_t)-204,
				       (uint32_t)-206,
				       (uint32_t)-207,
				       (uint32_t)-208,
				       (uint32_t)-209,
				       (uint32_t)-210,
				       0x7fffffff,
				       0x80000000u};
	static const char *const names[] = {
		"alice",
		"bob",
		"new",
		"alice:new",
		"bob:new",
		"staff:x",
		"alice:friends",
		"system:administrators",
		"10.0.0.1",
		"",
		"a\nb",
		"a:b:c",
		"x@y@z",
		"\xff",
		"-n",
		"123",
		"staff",
		"sixty-four-letters-and-no-more-than-that-are-too-long-for-a-name"};
	static struct anycall any = {.forms = forms,
				     .form_count = sizeof(forms) / sizeof(forms[0]),
				     .ids = ids,
				     .id_count = sizeof(ids) / sizeof(ids[0]),
				     .names = names,
				     .name_count = sizeof(names) / sizeof(names[0])};

	setup();
	any.connection[0] = any.connection[1] = myself;
	any.connection[2] = kad("alice@TEST.EXAMPLE");
	any.connection[3] = nobody;
	anycall_run(&any, 400);
	check_database(myself);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(60, "protection service", any_calls, names_and_ids, groups_of_callers,
		 who_sees_what, long_lists, hostile, turns_of_users, turns_end_with_the_service)
