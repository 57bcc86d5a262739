/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to a store: what is refused, also from those who send anything, and what changes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/admin/fixture.h"

static const char *const commands[] = {"create", "list",   "examine", "remove",	 "rename", "clone",
				       "quota",	 "online", "offline", "check",	 "acl",	   "mount",
				       "import", "export", "mounts",  "unmount", "which"};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char *const members[] = {"volume",	  "name",     "path",	"target",  "quota", "id",
				      "owner",	  "acl",      "backup", "message", "fast",  "rw",
				      "progress", "command2", "vnode",	"unique"};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

START_TEST(not_requests)
{
	static const char *const texts[] = {
		"null",
		"true",
		"0",
		"\"list\"",
		"[]",
		"[{\"command\": \"list\"}]",
		"{}",
		"{\"command\": null}",
		"{\"command\": 7}",
		"{\"command\": [\"list\"]}",
		"{\"command\": {}}",
		"{\"command\": \"\"}",
		"{\"command\": \"LIST\"}",
		"{\"command\": \"init\"}",
		"{\"command\": \"list \"}",
		"{\"Command\": \"list\"}",
		"{\"command\": \"list\", \"\": 1}",
		"{\"command\": \"examine\"}",
		"{\"command\": \"list\", \"volume\": \"v\"}",
	};
	struct fixture f;

	fixture_open(&f);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		fixture_refuses(&f, 2, "request", "%s", texts[i]);
	fixture_close(&f);
}
END_TEST

/* Values of all types, and of sizes at and beyond the bounds. */
static json_t *hostile(unsigned which)
{
	char *text = NULL;
	json_t *value = NULL;
	size_t sizes[] = {4095, 4096, 100000};

	switch (which) {
	case 0:
		return json_null();
	case 1:
		return json_true();
	case 2:
		return json_integer(-1);
	case 3:
		return json_integer(INT64_MAX);
	case 4:
		return json_integer(INT64_MIN);
	case 5:
		return json_real(1e300);
	case 6:
		return json_string("");
	case 7:
		return json_stringn_nocheck("a\0b", 3);
	case 8:
		return json_string("\\");
	case 9:
		return json_string("../../..");
	case 10:
		return json_string("%s%n%s%n");
	case 11:
		return json_object();
	case 12:
		return json_pack("[[[{}]]]");
	case 13:
	case 14:
	case 15:
		text = malloc(sizes[which - 13]);
		memset(text, 'x', sizes[which - 13]);
		value = json_stringn(text, sizes[which - 13]);
		free(text);
		return value;
	case 16:
		value = json_array();
		for (int i = 0; i < 1000; i++)
			json_array_append_new(value,
					      json_pack("{s:s, s:s}", "name", "1", "rights", "r"));
		return value;
	case 17:
		value = json_object();
		for (int i = 0; i < 1000; i++) {
			json_t *outer = json_pack("{s:o}", "acl", value);

			value = outer;
		}
		return value;
	case 18:
		return json_pack("[{s:s}]", "name", "1");
	case 19:
		return json_pack("[{s:s, s:s, s:i}]", "name", "1", "rights", "r", "negative", 1);
	case 20:
		return json_pack("[{s:s, s:s, s:s}]", "name", "1", "rights", "r", "more", "r");
	case 21:
		return json_pack("[{s:[], s:s}]", "name", "rights", "r");
	default:
		return NULL;
	}
}

/* A request that would succeed but for what replaces one of its members. */
static json_t *complete(const char *command, unsigned serial)
{
	char name[32];
	json_t *request = json_pack("{s:s}", "command", command);

	snprintf(name, sizeof(name), "made%u", serial);
	if (strcmp(command, "create") && strcmp(command, "list") && strcmp(command, "check"))
		json_object_set_new(request, "volume", json_string("v"));
	if (!strcmp(command, "create") || !strcmp(command, "rename"))
		json_object_set_new(request, "name", json_string(name));
	if (!strcmp(command, "mount"))
		json_object_set_new(request, "target", json_string("root.cell"));
	return request;
}

START_TEST(hostile_members)
{
	struct fixture f;
	struct store_volume volume;
	json_t *value;
	unsigned refused = 0, serial = 0;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	fixture_directory(&f, "empty");
	for (size_t c = 0; c < COMMANDS; c++)
		for (size_t m = 0; m < MEMBERS; m++)
			for (unsigned h = 0; (value = hostile(h)); h++) {
				json_t *request = complete(commands[c], serial++);

				json_object_set_new(request, members[m], value);
				refused += fixture_ask_json(&f, request) != 0;
				json_decref(request);
				/* `remove` and `rename` are complete without the hostile member, too. */
				if (f.store->ops->volume_by_name(f.store, "v", &volume))
					fixture_do(&f,
						   "{\"command\": \"create\", \"name\": \"v\"}");
			}
	/* Few of the values fit: true for a flag, 4095 letters as a path or message. */
	ck_assert_uint_gt(refused, COMMANDS * MEMBERS * 20);
	ck_assert_uint_lt(refused, COMMANDS * MEMBERS * 22);
	fixture_do(&f, "{\"command\": \"check\"}");
	fixture_close(&f);
}
END_TEST

START_TEST(answers)
{
	struct fixture f;
	const json_t *result, *volume;

	fixture_open(&f);
	result = fixture_do(
		&f, "{\"command\": \"create\", \"name\": \"v\", \"quota\": 1500, "
		    "\"id\": 77, \"owner\": \"12\", \"acl\": [{\"name\": \"system:anyuser\", "
		    "\"rights\": \"read\"}]}");
	volume = json_object_get(result, "volume");
	ck_assert_str_eq(json_string_value(json_object_get(volume, "name")), "v");
	ck_assert_int_eq(json_integer_value(json_object_get(volume, "id")), 77);
	/* Parts of a KiB count. */
	ck_assert_int_eq(json_integer_value(json_object_get(volume, "quota_kib")), 2);
	ck_assert_str_eq(json_string_value(json_object_get(volume, "type")), "rw");
	fixture_refuses(&f, 1, "exists already", "{\"command\": \"create\", \"name\": \"v\"}");
	fixture_refuses(&f, 1, "exists already",
			"{\"command\": \"create\", \"name\": \"w\", \"id\": 77}");
	fixture_refuses(&f, 2, "at most",
			"{\"command\": \"create\", \"name\": \"w\", \"id\": 4294967296}");
	fixture_refuses(&f, 1, "4294967373: no such volume",
			"{\"command\": \"examine\", \"volume\": \"4294967373\"}");
	fixture_do(&f, "{\"command\": \"examine\", \"volume\": \"77\"}");
	result = fixture_do(&f, "{\"command\": \"list\"}");
	ck_assert_uint_eq(json_array_size(json_object_get(result, "volumes")), 1);
	fixture_close(&f);
}
END_TEST

static const char *rights_of(struct fixture *f, const char *list, const char *name)
{
	const json_t *result = fixture_do(f, "{\"command\": \"acl\", \"volume\": \"v\"}"), *entry;
	size_t i;

	json_array_foreach(
		json_object_get(json_object_get((json_t *)result, "acl"), list), i,
		entry) if (!strcmp(json_string_value(json_object_get(entry, "name")),
				   name)) return json_string_value(json_object_get(entry,
										   "rights"));
	return "";
}

static void set_rights(struct fixture *f, const char *name, const char *rights, bool negative)
{
	fixture_do(f,
		   "{\"command\": \"acl\", \"volume\": \"v\", \"acl\": [{\"name\": \"%s\", "
		   "\"rights\": \"%s\", \"negative\": %s}]}",
		   name, rights, negative ? "true" : "false");
}

#define ADDED 9 /* entries of each thread: with that of administrators, all that fit */

struct adder {
	struct fixture f;
	int first;
};

static void *add_entries(void *arg)
{
	struct adder *adder = arg;

	for (int i = 0; i < ADDED; i++)
		fixture_do(&adder->f,
			   "{\"command\": \"acl\", \"volume\": \"v\", \"acl\": "
			   "[{\"name\": \"%d\", \"rights\": \"rl\"}]}",
			   adder->first + i);
	return NULL;
}

/* Requests that change one list at the same time: none undoes the change of another one. */
START_TEST(rights_by_two)
{
	struct adder adder[2];
	pthread_t thread[2];
	struct fixture f;
	char name[16];

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	for (int i = 0; i < 2; i++) {
		adder[i] = (struct adder){f, 100 + ADDED * i};
		adder[i].f.last = NULL;
		pthread_create(&thread[i], NULL, add_entries, &adder[i]);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		json_decref(adder[i].f.last);
	}
	for (int i = 0; i < 2 * ADDED; i++) {
		snprintf(name, sizeof(name), "%d", 100 + i);
		ck_assert_str_eq(rights_of(&f, "positive", name), "rl");
	}
	fixture_close(&f);
}
END_TEST

#define CHECKS 10

struct asker {
	struct fixture f;
	_Atomic unsigned *ended;
	int status;
};

static void *ask_for_check(void *arg)
{
	struct asker *asker = arg;

	asker->status = fixture_ask(&asker->f, "{\"command\": \"check\"}");
	++*asker->ended;
	return NULL;
}

/* Eight checks take turns; more are refused, so that other requests find a connection. */
START_TEST(many_checks)
{
	struct asker asker[CHECKS];
	pthread_t thread[CHECKS];
	_Atomic unsigned ended = 0;
	_Atomic bool held = true;
	unsigned refused = 0;
	struct fixture f;

	fixture_open(&f);
	f.held = &held;
	for (int i = 0; i < CHECKS; i++) {
		asker[i] = (struct asker){.f = f, .ended = &ended};
		asker[i].f.last = NULL;
		pthread_create(&thread[i], NULL, ask_for_check, &asker[i]);
	}
	/* Those that are refused do not wait. */
	while (ended < CHECKS - 8)
		usleep(1000);
	held = false;
	for (int i = 0; i < CHECKS; i++) {
		pthread_join(thread[i], NULL);
		refused += asker[i].status != 0;
		json_decref(asker[i].f.last);
	}
	ck_assert_uint_eq(refused, CHECKS - 8);
	f.held = NULL;
	fixture_do(&f, "{\"command\": \"check\"}");
	fixture_close(&f);
}
END_TEST

static bool told(const struct fixture *f, uint32_t volume, uint32_t vnode)
{
	for (unsigned i = 0; i < f->changes && i < CHANGES_KEPT; i++)
		if (f->change[i].fid.volume == volume && f->change[i].fid.vnode == vnode)
			return true;
	return false;
}

/* Whoever keeps copies is told of every change, and of nothing else. */
START_TEST(changes)
{
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\", \"id\": 77}");
	f.changes = 0;
	fixture_do(&f, "{\"command\": \"acl\", \"volume\": \"v\"}");
	fixture_do(&f, "{\"command\": \"list\"}");
	fixture_do(&f, "{\"command\": \"check\"}");
	fixture_refuses(&f, 1, "no such", "{\"command\": \"remove\", \"volume\": \"w\"}");
	ck_assert_uint_eq(f.changes, 0);
	fixture_do(&f, "{\"command\": \"acl\", \"volume\": \"v\", \"acl\": [{\"name\": \"5\", "
		       "\"rights\": \"rl\"}]}");
	ck_assert(told(&f, 77, STORE_ROOT_VNODE));
	f.changes = 0;
	fixture_do(
		&f,
		"{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"m\", \"target\": \"w\"}");
	ck_assert(told(&f, 77, STORE_ROOT_VNODE));
	f.changes = 0;
	fixture_do(&f, "{\"command\": \"clone\", \"volume\": \"v\"}");
	ck_assert(f.changes == 1 && f.change[0].fid.volume != 77 && f.change[0].fid.vnode == 0);
	f.changes = 0;
	fixture_do(&f, "{\"command\": \"offline\", \"volume\": \"v\", \"message\": \"later\"}");
	ck_assert(f.changes == 1 && told(&f, 77, 0));
	/* An administrator can mend what clients must not see meanwhile. */
	f.changes = 0;
	set_rights(&f, "6", "rl", false);
	ck_assert_str_eq(rights_of(&f, "positive", "6"), "rl");
	ck_assert(told(&f, 77, STORE_ROOT_VNODE));
	fixture_do(
		&f,
		"{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"n\", \"target\": \"w\"}");
	fixture_do(&f, "{\"command\": \"online\", \"volume\": \"v\"}");
	fixture_do(&f, "{\"command\": \"remove\", \"volume\": \"v.readonly\"}");
	f.changes = 0;
	fixture_do(&f, "{\"command\": \"remove\", \"volume\": \"v\"}");
	ck_assert(f.changes == 1 && told(&f, 77, 0));
	fixture_close(&f);
}
END_TEST

START_TEST(rights)
{
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	ck_assert_str_eq(rights_of(&f, "positive", "system:administrators"), "rlidwka");
	set_rights(&f, "7", "akwdilr", false);
	ck_assert_str_eq(rights_of(&f, "positive", "7"), "rlidwka");
	set_rights(&f, "7", "write", false);
	ck_assert_str_eq(rights_of(&f, "positive", "7"), "rlidwk");
	set_rights(&f, "8", "rAH", false);
	ck_assert_str_eq(rights_of(&f, "positive", "8"), "rAH");
	set_rights(&f, "8", "none", false);
	set_rights(&f, "7", "ll", true);
	ck_assert_str_eq(rights_of(&f, "positive", "7"), "rlidwk");
	ck_assert_str_eq(rights_of(&f, "negative", "7"), "l");
	set_rights(&f, "7", "none", false);
	ck_assert_str_eq(rights_of(&f, "positive", "7"), "");
	ck_assert_str_eq(rights_of(&f, "negative", "7"), "l");
	set_rights(&f, "-300", "r", false);
	ck_assert_str_eq(rights_of(&f, "positive", "-300"), "r");
	set_rights(&f, "-204", "none", false);
	ck_assert_str_eq(rights_of(&f, "positive", "system:administrators"), "");
	/* The administrator of the store can still change everything. */
	set_rights(&f, "system:authuser", "all", true);
	fixture_do(
		&f,
		"{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"m\", \"target\": \"w\"}");
	fixture_refuses(&f, 2, "no such user",
			"{\"command\": \"acl\", \"volume\": \"v\", \"acl\": "
			"[{\"name\": \"2147483648\", \"rights\": \"r\"}]}");
	fixture_refuses(&f, 2, "rlidwka",
			"{\"command\": \"acl\", \"volume\": \"v\", \"acl\": "
			"[{\"name\": \"1\", \"rights\": \"read \"}]}");
	fixture_refuses(&f, 1, "only a directory",
			"{\"command\": \"acl\", \"volume\": \"v\", \"path\": "
			"\"m\", \"acl\": [{\"name\": \"1\", \"rights\": \"r\"}]}");
	fixture_close(&f);
}
END_TEST

START_TEST(targets)
{
	static const char *const good[] = {"w",		"root.cell.readonly",	 "a.backup",
					   "536870912", "example.org:root.cell", "1a"};
	static const char *const bad[] = {
		"a b", "a\\n",	  ".",		 ":w",	      "cell:",
		"a/b", "a:b:c",	  "12345678901", ".readonly", "a.readonly.readonly",
		"a.",  "\\u00e4", "#w"};
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		fixture_do(&f,
			   "{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"m%zu\", "
			   "\"target\": \"%s\"}",
			   i, good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (strcmp(bad[i], ".") && strcmp(bad[i], "a."))
			fixture_refuses(&f, 2, "not the name",
					"{\"command\": \"mount\", \"volume\": \"v\", "
					"\"path\": \"b\", \"target\": \"%s\"}",
					bad[i]);
	fixture_close(&f);
}
END_TEST

/* A client stores a list between the look of a request and its change: both changes stay. */
START_TEST(rights_beside_a_client)
{
	struct store_volume volume;
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	ck_assert_int_eq(f.store->ops->volume_by_name(f.store, "v", &volume), 0);
	f.disturbed = volume.id;
	set_rights(&f, "5", "rl", false);
	ck_assert_uint_eq(f.disturbed, 0);
	ck_assert_str_eq(rights_of(&f, "positive", "5"), "rl");
	ck_assert_str_eq(rights_of(&f, "positive", "77"), "rl");
	fixture_close(&f);
}
END_TEST

/* Of a server that lets other machines call, but not write anonymously. */
START_TEST(anonymous_writes)
{
#define WRITERS "\"acl\": [{\"name\": \"system:anyuser\", \"rights\": \"write\"}]"
	struct store_volume volume;
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"open\", " WRITERS "}");
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"shut\"}");
	fixture_do(&f, "{\"command\": \"offline\", \"volume\": \"open\"}");
	f.guarded = true;
	fixture_refuses(&f, 1, "--allow-anonymous-writes",
			"{\"command\": \"create\", \"name\": \"third\", " WRITERS "}");
	fixture_refuses(&f, 1, "no such volume",
			"{\"command\": \"examine\", \"volume\": \"third\"}");
	fixture_refuses(&f, 1, "--allow-anonymous-writes",
			"{\"command\": \"acl\", \"volume\": \"shut\", " WRITERS "}");
	/* It is not served before its list is judged. */
	ck_assert_int_eq(f.store->ops->volume_by_name(f.store, "open", &volume), 0);
	f.watched = volume.id;
	fixture_refuses(&f, 1, "--allow-anonymous-writes",
			"{\"command\": \"online\", \"volume\": \"open\"}");
	f.watched = 0;
	fixture_do(&f, "{\"command\": \"acl\", \"volume\": \"open\", \"acl\": "
		       "[{\"name\": \"system:anyuser\", \"rights\": \"read\"}]}");
	fixture_do(&f, "{\"command\": \"online\", \"volume\": \"open\"}");
	fixture_close(&f);
}
END_TEST

/* The next id of the store may be that of another volume of the cell: no command takes one, also while no server runs. */
START_TEST(members_of_cells)
{
	static const char *const requests[] = {
		"{\"command\": \"create\", \"name\": \"w\"}",
		"{\"command\": \"create\", \"name\": \"w\", \"id\": 78}",
		"{\"command\": \"clone\", \"volume\": \"v\"}",
		"{\"command\": \"clone\", \"volume\": \"v\", \"backup\": true}",
		"{\"command\": \"restore\", \"volume\": \"w\"}",
		"{\"command\": \"restore\", \"volume\": \"v\", \"replace\": true}",
		"{\"command\": \"rename\", \"volume\": \"v\", \"name\": \"w\"}",
		"{\"command\": \"remove\", \"volume\": \"v\"}",
	};
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	f.directory = memfd_create("dump", MFD_CLOEXEC);
	ck_assert_int_ge(f.directory, 0);
	ck_assert_int_eq(store_set_member(f.store, true), 0);
	f.store->ops->close(f.store);
	fixture_again(&f);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		fixture_refuses(&f, 1, "use vos", "%s", requests[i]);
	fixture_do(&f, "{\"command\": \"quota\", \"volume\": \"v\", \"quota\": 8192}");
	fixture_refuses(&f, 2, "give the number that pts shows",
			"{\"command\": \"acl\", \"volume\": \"v\", \"acl\": [{\"name\": "
			"\"alice\", \"rights\": \"read\"}]}");
	fixture_do(&f, "{\"command\": \"acl\", \"volume\": \"v\", \"acl\": [{\"name\": "
		       "\"204\", \"rights\": \"read\"}]}");
	ck_assert_int_eq(store_set_member(f.store, false), 0);
	fixture_do(&f, "{\"command\": \"clone\", \"volume\": \"v\"}");
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"w\"}");
	fixture_close(&f);
}
END_TEST

TEST_MAIN_WITHIN(120, "administration of a store: requests", anonymous_writes, not_requests,
		 hostile_members, answers, changes, rights, rights_by_two, rights_beside_a_client,
		 many_checks, targets, members_of_cells)
